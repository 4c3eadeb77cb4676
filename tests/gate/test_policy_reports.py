"""The confidence report: its members, its hash, the same bytes anywhere, and the documentation's worked example."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate import resources
from gate.canonical import canonical, content_hash
from gate.confidence import HIGH, MIN_SAMPLE, Counts, Coverage, add, wilson_interval
from gate.policy_reports import MAX_VERSIONS, confidence_report
from tests.end_to_end.support import ROOT
from tests.gate.test_confidence import counts, verdicts
from tests.test_documentation import rows, section

PAGE = (ROOT / "docs" / "confidence.md").read_text()
EXAMPLE = json.loads(resources.path("schemas", "examples", "confidence-report.json").read_bytes())
VERSIONS = {
    "2026-06-11": Counts(succeeded=392, partial=3, failed=4, reverted=1, pending=6),
    "2026-09-01": Counts(succeeded=54, failed=24, reverted=2, pending=15, review=5),
}
FIRST, LAST = "2026-06-12T08:04:11.120Z", "2026-11-02T16:31:09.004Z"


def coverage(by_version: dict[str, Counts], *, truncated: bool = False) -> Coverage:
    return Coverage(by_version, add(by_version.values()), FIRST, LAST, truncated)


def example() -> dict[str, Any]:
    return confidence_report(
        coverage(VERSIONS), policy_id="pricing_exception", verdict="yes", action="approve_discount"
    )


def test_the_published_example_is_what_its_counts_give() -> None:
    assert example() == EXAMPLE


coverages = st.builds(
    Coverage,
    st.dictionaries(st.text(max_size=3), counts, max_size=60),
    counts,
    st.none() | st.just(FIRST),
    st.none() | st.just(LAST),
    st.booleans(),
)


@given(coverages, verdicts, st.none() | st.text(), st.integers(1, 10_000), st.none() | st.integers(1, 1_000_000))
def test_a_report_fits_its_schema_and_carries_the_hash_of_the_rest(
    of: Coverage, verdict: str | None, text: str | None, min_sample: int, limit: int | None
) -> None:
    report = confidence_report(
        of,
        policy_id="pricing \0 é",
        policy_version=text,
        verdict=verdict,
        action=text,
        min_sample=min_sample,
        limit=limit,
    )
    jsonschema.Draft202012Validator(resources.schema("confidence-report")).validate(report)
    assert report.pop("confidence_hash") == content_hash(report)
    assert [report[name] for name in ("policy_version", "verdict", "action", "limit")] == [text, verdict, text, limit]
    assert report["coverage"]["decisions"] == report["similar_decisions"] == sum(report["outcomes"].values())


@given(coverages, st.randoms(use_true_random=False))
def test_the_order_in_which_versions_were_found_changes_no_byte(of: Coverage, random: Any) -> None:
    found = list(of.by_version.items())
    shuffled = Coverage(dict(random.sample(found, len(found))), of.policy, of.first, of.last, of.truncated)
    one, other = (confidence_report(covered, policy_id="p") for covered in (of, shuffled))
    assert json.dumps(one) == json.dumps(other)


def test_two_processes_make_the_same_bytes() -> None:
    code = (
        "import sys; from gate.canonical import canonical; from tests.gate.test_policy_reports import example; "
        "sys.stdout.buffer.write(canonical(example()))"
    )
    for seed in ("0", "1"):
        made = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert made.stdout == canonical(EXAMPLE)


def test_versions_are_bounded_and_those_with_the_most_decisions_come_first() -> None:
    by_version = {f"v{number:02}": Counts(succeeded=number % 7, pending=number % 3) for number in range(80)}
    report = confidence_report(coverage(by_version), policy_id="p")
    shown = report["versions"]
    assert (len(shown), report["coverage"]["versions"]) == (MAX_VERSIONS, 80)
    assert report["similar_decisions"] == sum(of.total for of in by_version.values())
    order = sorted(by_version, key=lambda version: (-by_version[version].total, version))
    assert [version["policy_version"] for version in shown] == order[:MAX_VERSIONS]


def test_a_report_over_nothing_says_so() -> None:
    report = confidence_report(Coverage({}, Counts(), None, None, False), policy_id="p")
    assert (report["score"], report["level"], report["policy_stability"]) == (0, "insufficient", None)
    assert report["success_rate"] == {"rate": None, "low": 0, "high": 1}
    assert (report["versions"], report["coverage"]["from"], report["coverage"]["to"]) == ([], None, None)


def test_notes_tell_what_this_report_cannot_know() -> None:
    def notes(verdict: str | None, *, truncated: bool) -> list[str]:
        covered = coverage(VERSIONS, truncated=truncated)
        return list(confidence_report(covered, policy_id="p", verdict=verdict)["notes"])

    always = notes("yes", truncated=False)
    assert any("blocked or held action has no outcome" in note for note in always)
    assert len(notes(None, truncated=False)) == len(notes("yes", truncated=True)) == len(always) + 1
    assert set(notes(None, truncated=True)) > set(always)
    for note in always:
        assert note in PAGE


class TestDocumentation:
    def test_the_worked_example_is_what_the_formula_gives(self) -> None:
        told = section(PAGE, "## A worked example")
        report = example()
        for version in report["versions"]:
            rate = version["success_rate"]
            terminal = VERSIONS[version["policy_version"]].terminal
            line = [version["policy_version"], str(version["outcomes"]["succeeded"]), str(terminal)]
            assert [*line, *(f"{rate[name]}" for name in ("rate", "low", "high"))] in rows(told)
        together = report["success_rate"]
        line = ["all", "446", "480", *(f"{together[name]}" for name in ("rate", "low", "high"))]
        assert line in rows(told)
        for name in ("score", "policy_stability"):
            assert f"`{name}` {report[name]}" in told
        assert f"`level` {report['level']}" in told
        assert f"`recommendation` {report['recommendation']}" in told

    @pytest.mark.parametrize("cells", rows(section(PAGE, "### How many outcomes it takes")))
    def test_so_many_outcomes_make_a_level_high_and_fewer_do_not(self, cells: list[str]) -> None:
        percent, needed = int(cells[0].rstrip(" %")), int(cells[1].replace(",", ""))
        enough = [
            number
            for number in range(MIN_SAMPLE, needed + 1)
            if percent * number % 100 == 0 and wilson_interval(percent * number // 100, number)[0] >= HIGH
        ]
        assert enough == [needed]
