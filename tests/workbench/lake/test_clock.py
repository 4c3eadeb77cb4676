"""A snapshot on a clock: the same chain, dated by when things were told or by when they happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gate.errors import OperatorError
from gate.ids import timestamp
from gate.policy.questions import CLOCKS
from tests.independent import recount
from tests.support.torture import size
from tests.workbench.made_up import MONDAY, MadeUp
from tests.workbench.mixed import DAYS, mixed, snapshots, timed
from workbench.columns import TABLES
from workbench.engines.anomalies.report import anomalies
from workbench.engines.confidence import confidence
from workbench.engines.counterfactuals import counterfactuals
from workbench.engines.effectiveness import effectiveness
from workbench.lake.reader import Snapshot

CHAIN: Final = timed(mixed(3, 120), 4)
POLICY: Final = "refunds"
LATEST: Final = timedelta(minutes=5)

moments = st.none() | st.integers(-DAYS * 24, DAYS * 24).map(lambda hours: MONDAY + timedelta(hours=hours))
verdicts = st.sampled_from((None, *recount.VERDICTS))


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Snapshot]:
    return snapshots(CHAIN, tmp_path_factory.mktemp("timed"))


@pytest.fixture(scope="module")
def untimed(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Snapshot]:
    return snapshots(mixed(3, 120), tmp_path_factory.mktemp("untimed"))


def event_of(chain: MadeUp, position: int, entry: dict[str, Any]) -> str:
    """When what an entry tells of happened; when it was told, where nobody said."""
    told: str = entry.get("created_at") or entry["reported_at"]
    erased_at = chain.erased_at(entry["decision_id"])
    if "created_at" in entry:
        sent = None if erased_at else chain.requests[entry["decision_id"]].get("occurred_at")
    elif "outcome_id" in entry:
        sent = None if position < erased_at else entry.get("occurred_at")
    else:
        sent = entry.get("executed_at")
        if sent is not None and datetime.fromisoformat(sent) > datetime.fromisoformat(told) + LATEST:
            sent = None
    return sent or told


def redated(chain: MadeUp) -> list[dict[str, Any]]:
    """The entries of a chain, as they would be if everything had been told when it happened."""
    found = []
    for position, entry in enumerate(chain.entries, 1):
        name = "created_at" if "created_at" in entry else "reported_at"
        found.append({**entry, name: event_of(chain, position, entry)})
    return found


EVENTS: Final = redated(CHAIN)


def rows(snapshot: Snapshot) -> dict[str, pl.DataFrame]:
    order = {"metrics": ["position", "name"]}
    return {name: snapshot.table(name).collect().sort(order.get(name, "position")) for name in TABLES}


def test_every_entry_is_dated_by_its_event(held: Sequence[Snapshot]) -> None:
    dates = {number: entry.get("created_at") or entry["reported_at"] for number, entry in enumerate(EVENTS, 1)}
    assert (
        sum(
            date != (of.get("created_at") or of["reported_at"])
            for date, of in zip(dates.values(), CHAIN.entries, strict=True)
        )
        > 100
    )
    for snapshot in held:
        dated = snapshot.on("occurred")
        found: dict[int, str] = {}
        for table, name in (("decisions", "created_at"), ("outcomes", "reported_at"), ("executions", "reported_at")):
            shown = dated.table(table).collect().select("position", name).rows()
            found |= {position: timestamp(date) for position, date in shown}
        others = [
            *snapshot.table("erasures").collect()["position"],
            *snapshot.table("resolutions").collect()["position"],
        ]
        assert found == {position: date for position, date in dates.items() if position not in others}
        decided = {
            position: timestamp(date)
            for position, date in dated.facts(()).select("position", "created_at").collect().rows()
        }
        assert decided == {at: dates[at] for at in decided}


def expected_case(decision_id: str) -> dict[str, Any]:
    """The dates of a case, recounted by event."""
    about = [entry for entry in EVENTS if entry["decision_id"] == decision_id]
    made = next(entry["created_at"] for entry in about if "created_at" in entry)
    outcomes = [entry["reported_at"] for entry in about if "outcome_id" in entry]
    receipts = [entry for entry in about if "execution_receipt_id" in entry]
    executed = [of["reported_at"] for of in receipts if of["execution_status"] == "executed"]
    day = datetime.fromisoformat(made).date()
    return {
        "created_at": made,
        "week": day - timedelta(days=day.weekday()),
        "outcome_reported_at": outcomes[-1] if outcomes else None,
        "first_outcome_at": min(outcomes, default=None),
        "last_outcome_at": max(outcomes, default=None),
        "execution_reported_at": receipts[-1]["reported_at"] if receipts else None,
        "first_executed_at": min(executed, default=None),
    }


def test_cases_are_dated_by_event_and_resolved_in_the_order_of_the_chain(held: Sequence[Snapshot]) -> None:
    ids = [entry["decision_id"] for entry in EVENTS if "created_at" in entry]
    expected = [expected_case(decision_id) for decision_id in ids]
    weeks = Counter(case["week"] for case in expected)
    assert len(weeks) > DAYS // 7
    for snapshot in held:
        found = snapshot.on("occurred").cases().sort("position").collect()
        told = [
            {name: timestamp(of) if isinstance(of, datetime) else of for name, of in row.items()}
            for row in found.select(list(expected[0])).to_dicts()
        ]
        assert told == expected
        assert dict(found["week"].value_counts().rows()) == weeks
        recorded = snapshot.cases().sort("position").collect()
        latest = ["outcome_position", "outcome_id", "outcome_status", "execution_position", "execution_status"]
        assert_frame_equal(found.select(latest), recorded.select(latest))


def test_metrics_are_dated_by_the_outcome_that_measured_them(held: Sequence[Snapshot]) -> None:
    for snapshot in held:
        dated = snapshot.on("occurred")
        by_case = dict(dated.cases().select("position", "outcome_reported_at").collect().rows())
        found = dated.metrics().select("position", "reported_at").collect().rows()
        assert found
        assert all(by_case[position] == date for position, date in found)


@given(since=moments, until=moments, verdict=verdicts)
@settings(max_examples=size(8, 30), deadline=None)
def test_a_slice_cuts_by_the_clock_in_either_order(
    held: Sequence[Snapshot], since: datetime | None, until: datetime | None, verdict: str | None
) -> None:
    def chosen(entry: dict[str, Any]) -> bool:
        made = datetime.fromisoformat(entry["created_at"])
        return (
            (since is None or made >= since)
            and (until is None or made < until)
            and verdict
            in (
                None,
                entry["verdict"],
            )
        )

    ids = {entry["decision_id"] for entry in EVENTS if "created_at" in entry and chosen(entry)}
    for snapshot in held:
        first, second = snapshot.on("occurred").slice(since, until, verdict), snapshot.slice(since, until, verdict)
        second = second.on("occurred")
        for table in ("decisions", "outcomes", "executions", "cases"):
            found = first.table(table).select("position", "decision_id").sort("position").collect()
            assert set(found["decision_id"]) <= ids
            if table in ("decisions", "cases"):
                assert found.height == len(ids)
            else:
                assert_frame_equal(
                    found,
                    snapshot.table(table)
                    .filter(pl.col("decision_id").is_in(list(ids)))
                    .select("position", "decision_id")
                    .sort("position")
                    .collect(),
                )
            assert_frame_equal(found, second.table(table).select("position", "decision_id").sort("position").collect())
        positions = set(first.table("decisions").collect()["position"])
        assert set(first.facts(()).collect()["position"]) == positions
        assert set(first.metrics().collect()["position"]) <= positions
        assert first.last_entry_at() == second.last_entry_at()


@given(since=moments, until=moments, verdict=verdicts)
@settings(max_examples=size(4, 12), deadline=None)
def test_a_report_by_event_is_that_of_a_chain_that_was_told_as_it_happened(
    held: Sequence[Snapshot], since: datetime | None, until: datetime | None, verdict: str | None
) -> None:
    def chosen(entry: dict[str, Any]) -> bool:
        made = datetime.fromisoformat(entry["created_at"])
        return (
            (since is None or made >= since)
            and (until is None or made < until)
            and verdict
            in (
                None,
                entry["verdict"],
            )
        )

    ids = {entry["decision_id"] for entry in EVENTS if "created_at" in entry and chosen(entry)}
    told = [of for of in EVENTS if of["decision_id"] in ids]
    rulebooks = [of["rulebook"] for of in CHAIN.requests.values() if of["rulebook"]["rulebook_id"] == POLICY]
    expected = counted(recount.effectiveness(told, POLICY, requests=CHAIN.requests, rulebooks=rulebooks))
    for snapshot in held:
        report = effectiveness(snapshot.on("occurred").slice(since, until, verdict), POLICY).to_dict()
        assert undated(counted(report)) == undated(expected)


def test_how_long_a_review_waited_is_by_the_recorded_dates_on_either_clock(held: Sequence[Snapshot]) -> None:
    expected = recount.effectiveness(CHAIN.entries, POLICY, requests=CHAIN.requests)["reviews"]
    assert expected["waiting_seconds"]["median"]
    for snapshot in held:
        for clock in ("recorded", "occurred"):
            assert effectiveness(snapshot.on(clock), POLICY).to_dict()["reviews"] == expected


def undated(body: dict[str, Any]) -> dict[str, Any]:
    """A report without what it says of its clock, and of times that are by the recorded dates on either clock."""
    rest = {name: of for name, of in body.items() if name != "clock" and not name.endswith("_hash")}
    if isinstance(of_reviews := body.get("reviews"), dict):
        rest["reviews"] = {name: of for name, of in of_reviews.items() if name != "waiting_seconds"}
    clock = ("Dates are event times", "Check these dates.")
    return {**rest, "notes": [note for note in body["notes"] if not any(of in note for of in clock)]}


def counted(body: dict[str, Any]) -> dict[str, Any]:
    """A report without what it says of the whole chain."""
    coverage = {name: of for name, of in body["coverage"].items() if name not in ("chain_position", "merkle_root")}
    return {**{name: of for name, of in body.items() if not name.endswith("_hash")}, "coverage": coverage}


def test_the_last_entry_is_the_latest_on_the_clock_or_the_end_of_the_slice(held: Sequence[Snapshot]) -> None:
    latest = max(datetime.fromisoformat(of.get("created_at") or of["reported_at"]) for of in EVENTS)
    for snapshot in held:
        dated = snapshot.on("occurred")
        assert dated.last_entry_at() == latest
        end = MONDAY + timedelta(days=3)
        assert dated.slice(until=end).last_entry_at() == end
        assert dated.slice(since=end).last_entry_at() == latest
        assert dated.on("recorded").last_entry_at() == snapshot.last_entry_at() != latest


@given(since=moments, until=moments, verdict=verdicts)
@settings(max_examples=size(5, 20), deadline=None)
def test_without_any_event_time_the_clocks_agree(
    untimed: Sequence[Snapshot], since: datetime | None, until: datetime | None, verdict: str | None
) -> None:
    for snapshot in untimed:
        recorded = snapshot.slice(since, until, verdict)
        assert recorded.on("occurred").last_entry_at() == recorded.last_entry_at()
        expected, found = rows(recorded), rows(recorded.on("occurred"))
        for name, frame in expected.items():
            assert_frame_equal(found[name], frame)


@pytest.mark.parametrize("engine", [anomalies, confidence, counterfactuals, effectiveness], ids=lambda of: of.__name__)
def test_every_report_is_the_same_by_either_clock_where_no_event_has_a_time(
    engine: Callable[..., Any], untimed: Sequence[Snapshot]
) -> None:
    for snapshot in untimed[1:3]:
        dated = engine(snapshot.on("occurred"), POLICY).to_dict()
        assert dated["clock"] == "occurred"
        assert "Dates are event times" in dated["notes"][-1]
        assert undated(dated) == undated(engine(snapshot, POLICY).to_dict())
        assert engine(snapshot, POLICY, clock="occurred").to_dict() == dated


@pytest.mark.parametrize("engine", [anomalies, confidence, counterfactuals, effectiveness], ids=lambda of: of.__name__)
def test_a_report_by_event_does_not_depend_on_how_the_lake_holds_the_chain(
    engine: Callable[..., Any], held: Sequence[Snapshot]
) -> None:
    reports = [engine(snapshot.on("occurred"), POLICY).to_dict() for snapshot in held]
    assert all(report == reports[0] for report in reports)
    sliced = [engine(of.slice(since=MONDAY).on("occurred"), POLICY).to_dict() for of in held]
    assert all(report == sliced[0] != reports[0] for report in sliced)


def test_the_clock_recorded_is_the_one_that_a_snapshot_has(held: Sequence[Snapshot]) -> None:
    for snapshot in held:
        assert snapshot.clock == CLOCKS[0]
        again = snapshot.on("occurred").on("recorded")
        for name, frame in rows(snapshot).items():
            assert_frame_equal(rows(again)[name], frame)
        # Nothing is added to what is read.
        assert again.cases().explain() == snapshot.cases().explain()
        report = anomalies(snapshot, POLICY).to_dict()
        assert anomalies(again, POLICY).to_dict() == report


def test_a_chain_without_entries_has_no_last_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = MadeUp().snapshot(tmp_path_factory.mktemp("empty"))
    assert empty.on("occurred").last_entry_at() is None


@pytest.mark.parametrize("clock", ["event", "", "Recorded", None, 1, datetime(2026, 1, 1, tzinfo=UTC)])
def test_another_clock_is_refused(held: Sequence[Snapshot], clock: Any) -> None:
    with pytest.raises(OperatorError) as refused:
        held[0].on(clock)
    assert refused.value.code == "ENGINE_ARGUMENT_INVALID"


def test_outcomes_that_are_dated_before_their_decision_are_noted(tmp_path: Path) -> None:
    chain = MadeUp()
    for at in ("1970-01-01T00:00:00.000Z", timestamp(MONDAY - timedelta(hours=1)), timestamp(MONDAY), None):
        decision_id = chain.decide(MONDAY, policy_id=POLICY)
        chain.outcome(decision_id, MONDAY + timedelta(days=1), **({} if at is None else {"occurred_at": at}))
    snapshot = chain.snapshot(tmp_path)
    dated = effectiveness(snapshot, POLICY, clock="occurred").to_dict()["notes"]
    assert dated[-1] == "2 decisions have an outcome that is dated before the decision. Check these dates."
    assert not any("dated before" in note for note in effectiveness(snapshot, POLICY).to_dict()["notes"])
