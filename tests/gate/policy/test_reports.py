"""The reports: their members, their hashes, the same bytes anywhere, and the documentation's worked examples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding import resources
from gate.encoding.canonical import canonical, content_hash
from gate.policy.anomalies.statistics import Share
from gate.policy.confidence import HIGH, MIN_SAMPLE, Counts, Coverage, add, wilson_interval
from gate.policy.effectiveness import DISPOSITIONS, Counted, Footing, Group, Metric, Middle, Reviews, Standing, together
from gate.policy.effectiveness_report import effectiveness_report
from gate.policy.questions import ConfidenceQuestion, EffectivenessQuestion
from gate.policy.reports import MAX_METRICS, MAX_RULES, MAX_VERSIONS, MAX_WEEKS, confidence_report
from gate.policy.versions import compare_versions, sentences
from gate.records.packet import packet_hash
from gate.verify import verify_packet
from tests.end_to_end.support import ROOT
from tests.gate.policy.counting import counted, counts, decisions, standings, tried, verdicts
from tests.independent import verifier
from tests.support.documentation import notes as listed_notes
from tests.support.documentation import rows, section
from tests.support.reports import COUNTED, EMPTY, FIRST, LAST, LIKE, VERSIONS, confidence_example, effectiveness_example
from tests.support.samples import RECEIPT_KEYS, TRUST, make_packet

FORMULAS = ROOT / "docs" / "reference" / "formulas"
PAGE = (FORMULAS / "confidence.md").read_text()
EFFECTIVENESS_PAGE = (FORMULAS / "effectiveness.md").read_text()
COMPARISON_PAGE = (FORMULAS / "comparison.md").read_text()
NOTES_PAGE = section((FORMULAS / "notes.md").read_text(), "## Effectiveness")
CONFIDENCE_NOTES = listed_notes(section((FORMULAS / "notes.md").read_text(), "## Confidence"))
EFFECTIVENESS_EXAMPLE = json.loads(resources.path("schemas", "examples", "effectiveness-report.json").read_bytes())
EXAMPLE = json.loads(resources.path("schemas", "examples", "confidence-report.json").read_bytes())


def coverage(by_version: dict[str, Counts], *, truncated: bool = False) -> Coverage:
    return Coverage(by_version, add(by_version.values()), FIRST, LAST, truncated)


def test_the_published_example_is_what_its_counts_give() -> None:
    assert confidence_example() == EXAMPLE


coverages = st.builds(
    Coverage,
    st.dictionaries(st.text(max_size=3), counts, max_size=60),
    counts,
    st.none() | st.just(FIRST),
    st.none() | st.just(LAST),
    st.booleans(),
)


@tried
@given(coverages, verdicts, st.none() | st.text(), st.integers(1, 10_000), st.none() | st.integers(1, 1_000_000))
def test_a_report_fits_its_schema_and_carries_the_hash_of_the_rest(
    of: Coverage, verdict: str | None, text: str | None, min_sample: int, limit: int | None
) -> None:
    report = confidence_report(
        of,
        ConfidenceQuestion(
            "pricing \0 é", policy_version=text, verdict=verdict, action=text, min_sample=min_sample, limit=limit
        ),
    )
    jsonschema.Draft202012Validator(resources.schema("confidence-report")).validate(report)
    assert report.pop("confidence_hash") == content_hash(report)
    assert [report[name] for name in ("policy_version", "verdict", "action", "limit")] == [text, verdict, text, limit]
    assert report["coverage"]["decisions"] == report["similar_decisions"] == sum(report["outcomes"].values())


@tried
@given(coverages, st.randoms(use_true_random=False))
def test_the_order_in_which_versions_were_found_changes_no_byte(of: Coverage, random: Any) -> None:
    found = list(of.by_version.items())
    shuffled = Coverage(dict(random.sample(found, len(found))), of.policy, of.first, of.last, of.truncated)
    one, other = (confidence_report(covered, ConfidenceQuestion("p")) for covered in (of, shuffled))
    assert json.dumps(one) == json.dumps(other)


def test_two_processes_make_the_same_bytes() -> None:
    code = (
        "import sys; from gate.encoding.canonical import canonical; from tests.support import reports; "
        "sys.stdout.buffer.write(canonical([reports.confidence_example(), reports.effectiveness_example()]))"
    )
    for seed in ("0", "1"):
        made = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert made.stdout == canonical([EXAMPLE, EFFECTIVENESS_EXAMPLE])


def test_versions_are_bounded_and_those_with_the_most_decisions_come_first() -> None:
    by_version = {f"v{number:02}": Counts(succeeded=number % 7, pending=number % 3) for number in range(80)}
    report = confidence_report(coverage(by_version), ConfidenceQuestion("p"))
    shown = report["versions"]
    assert (len(shown), report["coverage"]["versions"]) == (MAX_VERSIONS, 80)
    assert report["similar_decisions"] == sum(of.total for of in by_version.values())
    order = sorted(by_version, key=lambda version: (-by_version[version].total, version))
    assert [version["policy_version"] for version in shown] == order[:MAX_VERSIONS]


def test_a_report_over_nothing_says_so() -> None:
    report = confidence_report(Coverage({}, Counts(), None, None, False), ConfidenceQuestion("p"))
    assert (report["score"], report["level"], report["policy_stability"]) == (0, "insufficient", None)
    assert report["success_rate"] == {"rate": None, "low": 0, "high": 1}
    assert (report["versions"], report["coverage"]["from"], report["coverage"]["to"]) == ([], None, None)


def test_notes_tell_what_this_report_cannot_know() -> None:
    def notes(verdict: str | None, *, truncated: bool) -> list[str]:
        covered = coverage(VERSIONS, truncated=truncated)
        return list(confidence_report(covered, ConfidenceQuestion("p", verdict=verdict))["notes"])

    always = notes("yes", truncated=False)
    assert any("blocked or held action has no outcome" in note for note in always)
    assert len(notes(None, truncated=False)) == len(notes("yes", truncated=True)) == len(always) + 1
    assert set(notes(None, truncated=True)) > set(always)
    assert CONFIDENCE_NOTES[: len(always)] == always


def test_a_report_tells_where_versions_are_too_small_to_be_compared() -> None:
    def noted(min_sample: int) -> bool:
        notes = confidence_report(coverage(VERSIONS), ConfidenceQuestion("p", min_sample=min_sample))["notes"]
        return any("are left out of policy_stability" in note and note in CONFIDENCE_NOTES for note in notes)

    smallest = min(of.terminal for of in VERSIONS.values())
    assert (noted(smallest), noted(smallest + 1)) == (False, True)


class TestDocumentation:
    def test_the_worked_example_is_what_the_formula_gives(self) -> None:
        told = section(PAGE, "## A worked example")
        report = confidence_example()
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


# What an engine counts of decisions; and anything else of the right types.
counted_anyhow = st.builds(
    Counted,
    st.dictionaries(st.text(max_size=3), st.builds(Group, standings, st.just(FIRST), st.just(LAST)), max_size=60),
    st.dictionaries(st.sampled_from(["yes", "no", "review"]), standings),
    st.dictionaries(st.text(max_size=3), standings, max_size=20),
    st.dictionaries(st.dates().map(str), standings, max_size=20),
    st.dictionaries(st.sampled_from(DISPOSITIONS[1:]), standings),
    st.lists(st.builds(Metric, st.text(max_size=3), st.integers(1, 9), *[st.floats(-1e308, 1e308)] * 3), max_size=70),
    st.none() | st.just(FIRST),
    st.none() | st.just(LAST),
    st.integers(0, 2**53 - 1),
    st.none() | st.just("0" * 64),
    st.booleans(),
)


class TestEffectiveness:
    def test_the_published_example_is_what_its_counts_give(self) -> None:
        assert effectiveness_example() == EFFECTIVENESS_EXAMPLE
        for parts in (
            COUNTED.by_verdict,
            COUNTED.by_rule,
            COUNTED.by_week,
            COUNTED.by_disposition,
            COUNTED.by_version_and_verdict,
        ):
            assert together(parts.values()) == COUNTED.standing
        assert together(COUNTED.let_through.values()) == COUNTED.acted
        assert COUNTED.footing.decisions == COUNTED.acted.terminal
        for version, of in COUNTED.compared.items():
            let_through = COUNTED.let_through[version]
            assert (of.raw.cases, of.raw.rate) == (let_through.terminal, let_through.success_rate)

    @tried
    @given(
        decisions().map(counted) | counted_anyhow,
        st.none() | st.text(),
        st.integers(1, 10_000),
        st.none() | st.integers(1, 1_000_000),
    )
    def test_a_report_fits_its_schema_and_carries_the_hash_of_the_rest(
        self, of: Counted, version: str | None, min_sample: int, limit: int | None
    ) -> None:
        report = effectiveness_report(
            of, EffectivenessQuestion("pricing \0 é", policy_version=version, min_sample=min_sample, limit=limit)
        )
        jsonschema.Draft202012Validator(resources.schema("effectiveness-report")).validate(report)
        assert report.pop("effectiveness_hash") == content_hash(report)
        assert [report[name] for name in ("policy_version", "min_sample", "limit")] == [version, min_sample, limit]
        assert report["coverage"]["decisions"] == sum(report["outcomes"].values())
        for part in ("versions", "verdicts", "dispositions", "rules", "weeks", "versions_by_verdict"):
            for each in report[part]:
                assert each["decisions"] == sum(each["outcomes"].values())
        for each in report["versions"]:
            assert each["let_through"]["decisions"] == sum(each["let_through"]["outcomes"].values())

    @tried
    @given(counted_anyhow, st.randoms(use_true_random=False))
    def test_the_order_in_which_things_were_counted_changes_no_byte(self, of: Counted, random: Any) -> None:
        def shuffled(mapping: Any) -> dict[str, Any]:
            return dict(random.sample(list(mapping.items()), len(mapping)))

        named = {metric.name: metric for metric in of.metrics}
        of = replace(of, metrics=list(named.values()))
        other = replace(
            of,
            by_version=shuffled(of.by_version),
            by_verdict=shuffled(of.by_verdict),
            by_rule=shuffled(of.by_rule),
            by_week=shuffled(of.by_week),
            by_disposition=shuffled(of.by_disposition),
            metrics=list(shuffled(named).values()),
        )
        made = [json.dumps(effectiveness_report(each, EffectivenessQuestion("p"))) for each in (of, other)]
        assert made[0] == made[1]

    def test_a_report_over_nothing_says_so(self) -> None:
        report = effectiveness_report(EMPTY, EffectivenessQuestion("p"))
        assert (report["effectiveness_score"], report["confidence"]) == (None, 0)
        assert report["recommendation"] == "no_decisions"
        assert (report["failure_rate"], report["review_rate"], report["terminal_coverage"]) == (None, None, None)
        assert report["success_rate"] == {"rate": None, "low": 0, "high": 1}
        assert (report["bounds"]["low"], report["bounds"]["high"]) == (0, 1)
        assert not any(report[part] for part in ("versions", "verdicts", "rules", "weeks", "metrics"))
        assert (report["coverage"]["from"], report["coverage"]["to"], report["coverage"]["merkle_root"]) == (None,) * 3

    def test_what_is_listed_is_bounded_and_a_version_below_the_others_is_listed_first(self) -> None:
        by_version = {
            f"v{number:05}": Group(Standing(succeeded=40 + number % 7), FIRST, LAST) for number in range(10_000)
        }
        by_version["v05000"] = Group(Standing(failed=20), FIRST, LAST)
        by_version["v06000"] = Group(Standing(failed=30), FIRST, LAST)
        cells = {name: {"": Share(of.standing.succeeded, of.standing.terminal)} for name, of in by_version.items()}
        by_rule = {f"rule:{number:03}": Standing(succeeded=number % 7) for number in range(300)}
        weeks = [f"{1900 + number // 12}-{1 + number % 12:02}-01" for number in range(600)]
        metrics = [Metric(f"m{number:03}", 1 + number % 7, -1e308, 1e-9, 1e308) for number in range(100)]
        of = replace(
            EMPTY,
            by_version=by_version,
            by_rule=by_rule,
            by_week={week: Standing(unreported=1) for week in reversed(weeks)},
            by_version_and_verdict={(name, "yes"): of.standing for name, of in by_version.items()},
            let_through={name: of.standing for name, of in by_version.items()},
            compared=compare_versions(cells, 1.0, min_sample=20),
            metrics=metrics,
            metrics_by_version=[Middle("m006", name, 1, 2.0, None, None) for name in by_version],
        )
        report = effectiveness_report(of, EffectivenessQuestion("p"))

        versions = [version["policy_version"] for version in report["versions"]]
        common = sorted(by_version, key=lambda version: (-by_version[version].standing.decisions, version))
        assert versions == ["v06000", "v05000", *common[: MAX_VERSIONS - 2]]
        assert [version["below_others"] for version in report["versions"]] == [True, True] + [False] * 48
        assert report["versions_below_others"] == 2
        for part in ("versions_by_verdict", "metrics_by_version"):
            assert {each["policy_version"] for each in report[part]} == set(versions)
        rules = sorted(by_rule, key=lambda rule: (-by_rule[rule].decisions, rule))
        assert [rule["rule"] for rule in report["rules"]] == rules[:MAX_RULES]
        assert [week["week"] for week in report["weeks"]] == weeks[-MAX_WEEKS:]
        assert [metric["name"] for metric in report["metrics"]] == [
            metric.name for metric in sorted(metrics, key=lambda metric: (-metric.decisions, metric.name))
        ][:MAX_METRICS]
        assert report["metrics"][0].items() >= {"min": -1e308, "median": 1e-9, "max": 1e308}.items()
        seen = [report["coverage"][part] for part in ("versions", "rules", "weeks", "metrics")]
        assert seen == [10_000, 300, 600, 100]

    def test_versions_that_are_below_the_others_are_counted_where_they_are_too_many_to_list(self) -> None:
        by_version = {f"v{number:02}": Group(Standing(failed=20), FIRST, LAST) for number in range(60)}
        by_version["good"] = Group(Standing(succeeded=100_000), FIRST, LAST)
        cells = {name: {"": Share(of.standing.succeeded, of.standing.terminal)} for name, of in by_version.items()}
        counted = replace(EMPTY, by_version=by_version, compared=compare_versions(cells, 1.0, min_sample=20))
        report = effectiveness_report(counted, EffectivenessQuestion("p"))
        assert report["versions_below_others"] == 60
        assert all(version["below_others"] for version in report["versions"])

    def test_reviews_are_told_apart_by_how_they_were_resolved_and_left_out_where_there_are_none(self) -> None:
        def reviews(of: Reviews | None) -> Any:
            return effectiveness_report(replace(COUNTED, reviews=of), EffectivenessQuestion("p")).get("reviews")

        assert reviews(None) is None
        assert reviews(Reviews()) is None
        assert reviews(Reviews(held=2)) == {
            "decisions": 2,
            **{"held": 2, "granted": 0, "refused": 0, "expired": 0},
            "waiting_seconds": None,
        }
        assert reviews(Reviews(1, 4, 2, 1, median=90, p90=3_600)) == {
            "decisions": 8,
            **{"held": 1, "granted": 4, "refused": 2, "expired": 1},
            "waiting_seconds": {"median": 90, "p90": 3_600},
        }

    def test_notes_tell_what_this_report_cannot_know_and_the_page_lists_them_in_order(self) -> None:
        def notes(of: Counted) -> list[str]:
            return list(effectiveness_report(of, EffectivenessQuestion("p"))["notes"])

        always = notes(COUNTED)
        assert any("blocked or held action would have ended is unknown" in note for note in always)
        crowd = replace(COUNTED, by_rule={f"rule:{number}": Standing() for number in range(MAX_RULES + 1)})
        small = {**COUNTED.by_version, "small": Group(Standing(failed=1), FIRST, LAST)}
        for of in (crowd, replace(COUNTED, truncated=True), replace(COUNTED, by_version=small)):
            assert notes(of)[:-1] == always
        assert notes(replace(COUNTED, by_version={"small": small["small"]}, compared={})) == always
        listed = listed_notes(NOTES_PAGE)
        footing = COUNTED.footing._replace(
            facts=(),
            unknown=3,
            sampled_one_of=4,
            weaker=("fraud_flag",),
            ids=("booking_id",),
            parting=("channel",),
            pooled=("country",),
        )
        every = replace(crowd, truncated=True, by_version=small, footing=footing, middles_one_of=4, advisory=4, early=4)
        every = replace(every, reviews=Reviews(granted=1, median=60, p90=60))
        said = list(effectiveness_report(every, EffectivenessQuestion("p", clock="occurred"))["notes"])
        no_cases = notes(replace(COUNTED, compared={}, footing=footing._replace(sampled_one_of=1)))
        assert len(said) == len(always) + 15
        left_out = notes(replace(COUNTED, footing=Footing(("lead_days",), ("notice_days",))))
        assert no_cases[:-1] == left_out[:-1] == always
        assert [note for note in listed if note not in (no_cases[-1], left_out[-1])] == said
        assert {no_cases[-1], left_out[-1]} <= {*listed}

    def test_a_packet_with_it_verifies_and_with_another_does_not(self) -> None:
        packet = make_packet()
        policy_id, version = (packet["decision_record"][name] for name in ("policy_id", "policy_version"))
        own = effectiveness_report(COUNTED, EffectivenessQuestion(policy_id, policy_version=version))
        for report, holds in (
            (own, True),
            (effectiveness_report(COUNTED, EffectivenessQuestion(policy_id)), True),
            ({**own, "recommendation": "healthy"}, False),
            (effectiveness_report(COUNTED, EffectivenessQuestion("refund_review")), False),
        ):
            packet["policy_intelligence"]["effectiveness"] = report
            packet["packet_hash"] = packet_hash(packet)
            result = verify_packet(packet, TRUST)
            failed = [name for name, passed in result.checks.items() if passed is False]
            assert all(name.startswith("policy_intelligence.effectiveness") for name in failed)
            assert (result.verified, not failed) == (holds, holds)
            assert (verifier.packet_failures(packet, RECEIPT_KEYS.to_dict()) == []) is holds


class TestEffectivenessDocumentation:
    TOLD = section(EFFECTIVENESS_PAGE, "## A worked example")

    def test_the_worked_example_has_the_counts_and_rates_of_the_report(self) -> None:
        report = effectiveness_example()
        parts = [(f"version `{part['policy_version']}`", part["policy_version"], part) for part in report["versions"]]
        for label, name, part in [*parts, ("all", "all", report)]:
            of = part["outcomes"]
            terminal = [of[status] for status in ("succeeded", "partial", "failed", "reverted")]
            told = [sum(of.values()), *terminal, of["pending"] + of["review"], of["unreported"]]
            assert [label, *map(str, told)] in rows(self.TOLD)
            told = [of["succeeded"], sum(terminal), *(part["success_rate"][end] for end in ("rate", "low", "high"))]
            assert [name, *map(str, told)] in rows(self.TOLD)

    def test_the_worked_example_computes_what_the_report_says(self) -> None:
        report = effectiveness_example()
        told = " ".join(self.TOLD.split())
        for name, shown in (
            ("effectiveness_score", "`effectiveness_score` is (458 + 1.5) / 494 = {}"),
            ("failure_rate", "`failure_rate` 33 / 494 = {}"),
            ("terminal_coverage", "`terminal_coverage` 494 / 730 = {}"),
            ("review_rate", "`review_rate` is 5 of 520 with any outcome, {}"),
            ("confidence", "(0.946899 \u2212 0.90076)) · 0.90566 = {}"),
            ("recommendation", "`recommendation` is {}"),
        ):
            assert shown.format(report[name]) in told
        bounds = report["bounds"]
        assert f"{bounds['succeeded']} / {bounds['decisions']} = {bounds['low']}" in told
        assert (
            f"({bounds['succeeded']} + {bounds['unknown']} + {bounds['unobservable']}) / 730 = {bounds['high']}" in told
        )
        assert f"{bounds['observed']} are `observed`" in told
        assert report["verdicts"][0]["terminal_coverage"] == 0.90566

    def test_the_worked_example_compares_versions_as_the_report_does(self) -> None:
        told = " ".join(self.TOLD.split()).replace("\u2212", "-")
        for kind in ("low", "middle", "high"):
            cells = [str(number) for version in LIKE.values() for number in version[kind]]
            assert [kind, *cells] in rows(self.TOLD)
        report = effectiveness_example()
        (found,) = (each for each in report["versions"] if each["below_others"])
        like = found["compared"]["standardized"]
        difference = like["difference"]
        assert f"succeeded in {like['success_rate']} and the first in {like['others']}" in told
        assert f"is {difference['value']}, from {difference['low']} to {difference['high']}" in told
        assert f"`p_value` {like['p_value']}" in told

    def test_the_example_of_the_hotel_is_what_the_formulas_give(self) -> None:
        told = section(COMPARISON_PAGE, "## Why raw rates mislead")
        table = [cells for cells in rows(told) if len(cells) == 5 and cells[0].startswith(("made", "all"))]
        shares = [
            [Share(int(part.split()[0]), int(whole)) for part, whole in (cells[1:3], cells[3:5])] for cells in table
        ]
        for cells, of in zip(table, shares, strict=True):
            assert [cells[1], cells[3]] == [f"{share.part} ({share.rate:.1%})" for share in of]
        short, long, every = shares
        for at in (0, 1):
            assert every[at] == (short[at].part + long[at].part, short[at].whole + long[at].whole)
        cells_of = {name: {"short": short[at], "long": long[at]} for at, name in enumerate("AB")}
        compared = compare_versions(cells_of, 1.0, min_sample=20)
        assert [(of.raw_is_below, of.is_below, of.disagrees) for of in compared.values()] == [
            (False, True, True),
            (True, False, True),
        ]
        like = compared["A"].standardized
        assert like is not None
        words = " ".join(told.split()).replace("\u2212", "-")
        assert f"`raw`, {compared['A'].raw.rate:.1%} and {compared['B'].raw.rate:.1%}" in words
        assert f"{like.rate:.1%} for `A` and {like.others:.1%} for `B`" in words
        value, low, high = (100 * each for each in like.difference)
        assert f"a difference of {value:.1f} points, 95% interval {low:.1f} to {high:.1f}" in words
        assert sentences(compared) == listed_notes(told)

    def test_every_recommendation_has_a_row_in_the_order_in_which_they_are_looked_for(self) -> None:
        words = resources.schema("effectiveness-report")["properties"]["recommendation"]["enum"]
        table = rows(section(EFFECTIVENESS_PAGE, "## The recommendation"))
        assert [cells[0].strip("`") for cells in table] == words

    def test_the_answer_that_the_page_begins_with_is_that_over_nothing(self) -> None:
        report = effectiveness_report(EMPTY, EffectivenessQuestion("never_used"))
        lines = json.dumps(report, indent=4).splitlines()[1:11]
        assert "```text\n" + "\n".join(lines) + "\n```" in EFFECTIVENESS_PAGE
