"""Reports where there is little, much, or something extreme to report, as people meet them: bodies, frames, plots and
HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import polars as pl
import pytest

from tests.independent import recount
from tests.support.torture import size
from tests.workbench.engines.edges import (
    HOSTILE,
    POLICY,
    TAGS,
    Entry,
    Seen,
    chained,
    decision,
    outcome,
    snapshot_of,
)
from workbench.columns import TIME_COLUMNS
from workbench.engines.confidence import ConfidenceReport, confidence
from workbench.engines.effectiveness import EffectivenessReport, effectiveness
from workbench.engines.roll_up import RollUp, roll_up
from workbench.lake.cases import measured, unreported, updated
from workbench.lake.files import Files, by_month
from workbench.lake.reader import Snapshot

if TYPE_CHECKING:
    import altair as alt

STATUSES: Final = ("succeeded", "partial", "failed", "reverted", "pending", "review", "unreported")
RATES: Final = ("effectiveness_score", "success_rate", "low", "high")


class Report(Protocol):
    """What every report can do."""

    def to_dict(self) -> dict[str, Any]: ...

    def _repr_html_(self) -> str: ...

    def plot(self) -> alt.LayerChart | alt.FacetChart: ...


def resolved(snapshot: Snapshot) -> Snapshot:
    """The same chain where the lake holds all of it, in Parquet."""
    decisions, outcomes = snapshot.tail["decisions"], snapshot.tail["outcomes"]
    nothing = pl.DataFrame(schema={"decision_position": pl.Int64})
    cases = updated(unreported(decisions), outcomes, nothing, nothing)
    root = str(snapshot.merkle_root)
    files = Files(snapshot.lake, snapshot.manifest, snapshot.position, root)
    written = [
        files.write(table, month, rows)
        for table, frame in (("cases", cases), ("metrics", measured(outcomes)))
        for month, rows in by_month(frame, TIME_COLUMNS[table])
    ]
    manifest = replace(
        snapshot.manifest,
        position=snapshot.position,
        merkle_root=root,
        compacted=snapshot.position,
        files=tuple(written),
    )
    return Snapshot(snapshot.lake, manifest, snapshot.position, root)


def reports(snapshot: Snapshot, policy_id: str = POLICY) -> tuple[EffectivenessReport, ConfidenceReport, RollUp]:
    """Every report."""
    return effectiveness(snapshot, policy_id), confidence(snapshot, policy_id), roll_up(snapshot)


def assert_recounted(snapshot: Snapshot, entries: Sequence[Entry], **chosen: Any) -> None:
    assert effectiveness(snapshot, POLICY, **chosen).to_dict() == recount.effectiveness(entries, POLICY, **chosen)
    assert confidence(snapshot, POLICY, **chosen).to_dict() == recount.confidence(entries, POLICY, **chosen)
    # It takes no parameters.
    assert chosen or roll_up(snapshot).to_dict() == {"policies": recount.roll_up({"acme": entries})}


CHAINS: Final[Mapping[str, Sequence[Entry]]] = {
    "nothing": [],
    "another policy only": [decision(1, policy_id="other"), outcome(1)],
    "one decision": [decision(1)],
    "one decision that was blocked": [decision(1, verdict="no")],
    "one decision that succeeded": [decision(1), outcome(1)],
    "one decision that was let through though it was blocked": [
        decision(1, verdict="no"),
        outcome(1, "failed", action_executed=True),
    ],
    "everything pending": [entry for number in range(30) for entry in (decision(number), outcome(number, "pending"))],
    "everything back to pending": [
        entry
        for number in range(25)
        for entry in (decision(number), outcome(number, "failed"), outcome(number, "pending", hours=number))
    ],
    "everything succeeded": [entry for number in range(40) for entry in (decision(number), outcome(number))],
    "everything failed": [entry for number in range(40) for entry in (decision(number), outcome(number, "failed"))],
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_of_little_is_reported_as_it_is(name: str, tmp_path: Path) -> None:
    entries = chained(CHAINS[name])
    snapshot = snapshot_of(entries, tmp_path)
    for chosen in ({}, {"min_sample": 1}, {"limit": 1}, {"policy_version": "1"}, {"policy_version": "2", "limit": 1}):
        assert_recounted(snapshot, entries, **chosen)


def test_a_policy_without_decisions_has_no_score_and_is_not_known(tmp_path: Path) -> None:
    body = effectiveness(snapshot_of([], tmp_path), POLICY).to_dict()
    assert (body["effectiveness_score"], body["confidence"], body["recommendation"]) == (None, 0, "no_decisions")
    assert (body["bounds"]["low"], body["bounds"]["high"]) == (0, 1)
    assert body["coverage"] == {
        **dict.fromkeys(("decisions", "versions", "rules", "weeks", "metrics", "chain_position"), 0),
        **dict.fromkeys(("from", "to", "merkle_root")),
        "truncated": False,
    }
    assert [body[part] for part in ("versions", "verdicts", "rules", "weeks", "metrics")] == [[]] * 5
    known = confidence(snapshot_of([], tmp_path), POLICY).to_dict()
    assert (known["score"], known["level"], known["policy_stability"]) == (0, "insufficient", None)


def test_where_everything_is_pending_nothing_is_claimed(tmp_path: Path) -> None:
    body = effectiveness(snapshot_of(chained(CHAINS["everything pending"]), tmp_path), POLICY).to_dict()
    assert (body["effectiveness_score"], body["failure_rate"], body["terminal_coverage"]) == (None, None, 0)
    assert (body["confidence"], body["recommendation"]) == (0, "collect_outcomes")
    assert body["success_rate"] == {"rate": None, "low": 0, "high": 1}
    assert body["bounds"] == {
        **{"decisions": 30, "observed": 0, "succeeded": 0, "unknown": 30, "unobservable": 0},
        **{"low": 0, "high": 1},
    }


def test_metrics_at_the_ends_of_what_a_number_can_be_are_told_as_they_are(tmp_path: Path) -> None:
    values = [1e308, -1e308, 1.7976931348623157e308, 5e-324, 1e308, -5e-324, 2**53 - 1, 0.1]
    entries = chained(
        [
            entry
            for number, value in enumerate(values)
            for entry in (decision(number), outcome(number, observed_metrics={"m": value, f"of {number}": value}))
        ]
    )
    snapshot = snapshot_of(entries, tmp_path)
    told = {metric["name"]: metric for metric in effectiveness(snapshot, POLICY).to_dict()["metrics"]}
    assert told.pop("m") == {
        **{"name": "m", "decisions": 8, "min": -1e308, "median": 0.1, "max": 1.7976931348623157e308}
    }
    assert {name: (of["min"], of["median"], of["max"]) for name, of in told.items()} == {
        f"of {number}": (value, value, value) for number, value in enumerate(values)
    }
    assert_recounted(snapshot, entries)
    assert_recounted(resolved(snapshot), entries)


def test_more_parts_than_a_report_lists_are_counted_and_said_to_be_more(tmp_path: Path) -> None:
    metrics = [{f"metric {number:03}": number for number in range(start, start + 64)} for start in (0, 40)]
    entries: list[Entry] = []
    for number in range(530):
        made = decision(number, version=str(number % 60), hours=168 * number)
        entries += [made | {"evidence": ["CODE", f"rule:r{number % 210}"]}]
    entries += [outcome(number, observed_metrics=observed) for number, observed in enumerate(metrics)]
    entries = chained(entries)
    snapshot = snapshot_of(entries, tmp_path)
    body = effectiveness(snapshot, POLICY).to_dict()
    listed = {part: len(body[part]) for part in ("versions", "rules", "weeks", "metrics")}
    assert listed == {"versions": 50, "rules": 200, "weeks": 520, "metrics": 64}
    assert {part: body["coverage"][part] for part in listed} == {
        **{"versions": 60, "rules": 210, "weeks": 530, "metrics": 104}
    }
    assert recount.MORE_THAN_LISTED in body["notes"]
    assert_recounted(snapshot, entries)


MANY: Final = size(3_001, 10_000)
"""Many more versions than any report lists."""


@pytest.fixture(scope="module")
def many() -> list[Entry]:
    """Decisions by thousands of versions, the last of which does worse than all others."""
    entries: list[Entry] = []
    for number in range(MANY):
        entries.append(decision(number, version=f"v{number:05}", hours=number % 5_000))
        if number % 3 == 0:
            entries.append(outcome(number, hours=number % 5_000))
    for number in range(MANY, MANY + 30):
        # A minute each, for those of one minute count as one.
        entries += [decision(number, version=f"v{MANY - 1:05}", hours=number), outcome(number, "failed", hours=number)]
    return chained(entries)


@pytest.mark.heavy
@pytest.mark.parametrize("where", ["the ledger", "the lake"])
def test_thousands_of_versions_are_counted_and_the_bad_one_stands_first(
    many: list[Entry], where: str, tmp_path: Path
) -> None:
    snapshot = snapshot_of(many, tmp_path)
    if where == "the lake":
        snapshot = resolved(snapshot)
    body = effectiveness(snapshot, POLICY).to_dict()
    assert (body["coverage"]["versions"], len(body["versions"])) == (MANY, 50)
    assert (body["versions_below_others"], body["recommendation"]) == (1, "review_version")
    assert (body["versions"][0]["policy_version"], body["versions"][0]["below_others"]) == (f"v{MANY - 1:05}", True)
    assert recount.MORE_THAN_LISTED in body["notes"]
    assert confidence(snapshot, POLICY).to_dict()["coverage"]["versions"] == MANY // 3 + 1
    for report in reports(snapshot):
        assert report.plot().to_dict()
        assert len(report._repr_html_()) < 100_000


@pytest.mark.heavy
def test_thousands_of_versions_equal_the_recount(many: list[Entry], tmp_path: Path) -> None:
    snapshot = snapshot_of(many, tmp_path)
    assert effectiveness(snapshot, POLICY).to_dict() == recount.effectiveness(many, POLICY)
    assert confidence(snapshot, POLICY).to_dict() == recount.confidence(many, POLICY)


@pytest.mark.heavy
@pytest.mark.parametrize("hostile", [HOSTILE, "]]><svg onload=a()>", "&lt;b&gt;", "\x00</table>", '"><iframe>'])
def test_names_show_as_text_whatever_is_in_them(hostile: str, tmp_path: Path) -> None:
    entries = chained(
        [
            decision(1, policy_id=hostile, version=hostile) | {"evidence": ["CODE", f"rule:{hostile}"]},
            outcome(1),
        ]
    )
    snapshot = snapshot_of(entries, tmp_path)
    for report in reports(snapshot, hostile):
        seen = Seen(report._repr_html_())
        assert seen.tags <= TAGS
        assert hostile.replace("\x00", "") in seen.text.replace("\x00", "").replace("\ufffd", "")
        assert report.plot().to_dict()


@pytest.mark.heavy
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("of", [effectiveness, confidence, lambda snapshot, _: roll_up(snapshot)])
def test_every_report_can_be_plotted_and_shown(
    of: Callable[[Snapshot, str], Report], name: str, tmp_path: Path
) -> None:
    report = of(snapshot_of(chained(CHAINS[name]), tmp_path), POLICY)
    assert report.plot().to_dict()["layer"]
    assert Seen(report._repr_html_()).tags >= {"div", "h3", "table"}


@pytest.mark.heavy
@pytest.mark.parametrize("name", CHAINS)
def test_effectiveness_can_be_plotted_by_each_part(name: str, tmp_path: Path) -> None:
    report = effectiveness(snapshot_of(chained(CHAINS[name]), tmp_path), POLICY)
    # By week it is in the test above.
    for by in ("version", "verdict", "rule"):
        assert report.plot(by).to_dict()["layer"], by


def test_a_part_that_there_is_none_of_is_not_plotted(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no part 'moon'"):
        effectiveness(snapshot_of([], tmp_path), POLICY).plot("moon")


@pytest.mark.parametrize("name", CHAINS)
def test_frames_have_the_columns_that_are_promised(name: str, tmp_path: Path) -> None:
    effective, confident, rolled = reports(snapshot_of(chained(CHAINS[name]), tmp_path))
    assert effective.frame.columns == [
        *("part", "name", "decisions", *STATUSES),
        *(*RATES, "failure_rate", "terminal_coverage"),
    ]
    assert effective.weekly.columns == [
        *("week", "policy_version", "decisions", *STATUSES),
        *(*RATES, "failure_rate", "terminal_coverage"),
    ]
    assert confident.frame.columns == ["policy_version", *STATUSES[:-1], "terminal", "success_rate", "low", "high"]
    assert rolled.frame.columns == ["scope", "policy_id", "decisions", *STATUSES, *RATES, "terminal_coverage"]
    numbers = {"decisions": pl.Int64, "succeeded": pl.Int64, "unreported": pl.Int64, "low": pl.Float64}
    for frame in (effective.frame, effective.weekly, rolled.frame):
        assert {column: frame.schema[column] for column in numbers} == numbers


def test_the_frame_says_what_the_body_says(tmp_path: Path) -> None:
    entries = chained(
        [
            entry
            for number in range(12)
            for entry in (
                decision(number, version="12"[number % 2], verdict=recount.VERDICTS[number % 3], hours=60 * number),
                outcome(number, recount.REPORTED[number % 6]),
            )
        ]
    )
    report = effectiveness(snapshot_of(entries, tmp_path), POLICY)
    body = report.to_dict()
    parts = {("all", "all"): body | {"decisions": body["coverage"]["decisions"]}}
    for part, named in (("version", "policy_version"), ("verdict", "verdict"), ("rule", "rule"), ("week", "week")):
        parts |= {(part, of[named]): of for of in body[f"{part}s"]}
    rows = report.frame.rows(named=True)
    assert {(row["part"], row["name"]) for row in rows} == set(parts)
    for row in rows:
        told = parts[row["part"], row["name"]]
        rate = told["success_rate"]
        assert row == {
            **{"part": row["part"], "name": row["name"], "decisions": told["decisions"], **told["outcomes"]},
            **{"effectiveness_score": told["effectiveness_score"], "success_rate": rate["rate"]},
            **{"low": rate["low"], "high": rate["high"]},
            **{name: told[name] for name in ("failure_rate", "terminal_coverage")},
        }
    assert report.weekly["decisions"].sum() == 12
