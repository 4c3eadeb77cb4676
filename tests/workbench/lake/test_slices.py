"""A slice of a chain has the decisions that it names and what was reported about these, and every engine runs on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import OperatorError
from gate.ids import timestamp
from gate.policy.effectiveness import Standing, together
from tests.independent import recount
from tests.support.torture import size
from tests.workbench.made_up import DAY, MONDAY, WEEK, MadeUp
from tests.workbench.mixed import DAYS, POLICIES, mixed, snapshots
from workbench.engines.anomalies.report import anomalies
from workbench.engines.benchmarks import benchmarks
from workbench.engines.confidence import confidence
from workbench.engines.counterfactuals import counterfactuals
from workbench.engines.effectiveness import effectiveness
from workbench.engines.roll_up import roll_up
from workbench.lake.reader import Snapshot

ENGINES: Final[Sequence[Callable[..., Any]]] = (anomalies, benchmarks, confidence, counterfactuals, effectiveness)
CHAIN: Final = mixed(1, 90)
POLICY: Final = "refunds"

moments = st.none() | st.integers(-1, DAYS * 24).map(lambda hours: MONDAY + timedelta(hours=hours))
verdicts = st.sampled_from((None, *recount.VERDICTS))


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Snapshot]:
    return snapshots(CHAIN, tmp_path_factory.mktemp("sliced"))


def within(
    entries: Sequence[dict[str, Any]], since: datetime | None, until: datetime | None, verdict: str | None
) -> Any:
    """The entries of a chain that are about the decisions of a slice."""

    def chosen(record: dict[str, Any]) -> bool:
        made = datetime.fromisoformat(record["created_at"])
        return (
            (since is None or made >= since)
            and (until is None or made < until)
            and verdict in (None, record["verdict"])
        )

    ids = {entry["decision_id"] for entry in entries if "created_at" in entry and chosen(entry)}
    return [entry for entry in entries if entry["decision_id"] in ids]


def counted(body: dict[str, Any]) -> dict[str, Any]:
    """A report without what it says of the whole chain."""
    coverage = {name: of for name, of in body["coverage"].items() if name not in ("chain_position", "merkle_root")}
    return {**{name: of for name, of in body.items() if not name.endswith("_hash")}, "coverage": coverage}


@given(since=moments, until=moments, verdict=verdicts)
@settings(max_examples=size(6, 12), deadline=None)
def test_a_slice_is_counted_like_a_chain_of_its_decisions_alone(
    held: Sequence[Snapshot], since: datetime | None, until: datetime | None, verdict: str | None
) -> None:
    # Of the whole chain: rulebooks are not sliced.
    rulebooks = [of["rulebook"] for of in CHAIN.requests.values() if of["rulebook"]["rulebook_id"] == POLICY]
    sliced_entries = within(CHAIN.entries, since, until, verdict)
    expected = counted(recount.effectiveness(sliced_entries, POLICY, requests=CHAIN.requests, rulebooks=rulebooks))
    for snapshot in held:
        sliced = snapshot.slice(since, until, verdict)
        body = effectiveness(sliced, POLICY).to_dict()
        assert counted(body) == expected
        assert body["coverage"]["merkle_root"] == snapshot.merkle_root
        assert (sliced.position, sliced.scope) == (snapshot.position, snapshot.scope)


@pytest.fixture(scope="module")
def wholes(held: Sequence[Snapshot]) -> Sequence[tuple[dict[str, Standing], list[int]]]:
    """What is counted of each without a slice."""
    return [(_standings(snapshot), _heights(snapshot)) for snapshot in held]


@given(middle=moments.filter(bool))
@settings(max_examples=size(3, 5), deadline=None)
def test_two_halves_add_up(
    held: Sequence[Snapshot], wholes: Sequence[tuple[dict[str, Standing], list[int]]], middle: datetime
) -> None:
    for snapshot, (whole, heights) in zip(held, wholes, strict=True):
        parts = [snapshot.slice(until=middle), snapshot.slice(since=middle)]
        found = [_standings(part) for part in parts]
        assert {name: together([of.get(name, Standing()) for of in found]) for name in whole} == whole
        assert list(map(sum, zip(*map(_heights, parts), strict=True))) == heights


def _heights(snapshot: Snapshot) -> list[int]:
    """How many rows each table has."""
    tables = ("decisions", "outcomes", "executions", "erasures", "metrics", "facts")
    return [snapshot.table(table).collect().height for table in tables]


def _standings(snapshot: Snapshot) -> dict[str, Standing]:
    rows = roll_up(snapshot).to_dict()["policies"]
    assert isinstance(rows, list)
    return {row["policy_id"]: Standing(*(row[status] for status in Standing._fields)) for row in rows}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)
def test_a_slice_of_everything_is_everything(engine: Callable[..., Any], held: Sequence[Snapshot]) -> None:
    for snapshot in size(held[ENGINES.index(engine) % 2 :: 2], held):
        whole = engine(snapshot, POLICY).to_dict()
        assert engine(snapshot.slice(), POLICY).to_dict() == whole
        assert engine(snapshot.slice(since=date(2020, 1, 1), until=date(2030, 1, 1)), POLICY).to_dict() == whole


def _looked_at(engine: Callable[..., Any], snapshot: Snapshot) -> int:
    """How many decisions an engine says that it looks at."""
    body = engine(snapshot, POLICY).to_dict()
    if engine is confidence:
        return sum(body["outcomes"].values())
    if engine is benchmarks:
        return int(body["your_metrics"]["decisions"])
    return int((body if engine is counterfactuals else body["coverage"])["decisions"])


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)
def test_every_engine_looks_at_the_decisions_of_the_slice(engine: Callable[..., Any], held: Sequence[Snapshot]) -> None:
    expected = [1 for of in recount.told(CHAIN.entries) if _is_chosen(of) and (of.outcomes or engine is not confidence)]
    # In the short form every other one, and those that the test of a slice of everything leaves out.
    for snapshot in size(held[1 - ENGINES.index(engine) % 2 :: 2], held):
        by_verdict = [_looked_at(engine, snapshot.slice(verdict=verdict)) for verdict in recount.VERDICTS]
        assert all(by_verdict)
        assert sum(by_verdict) == _looked_at(engine, snapshot)
        if engine is not benchmarks:
            assert by_verdict[0] == len(expected)


def _is_chosen(decision: recount.Told) -> bool:
    return (decision.record["policy_id"], decision.record["verdict"]) == (POLICY, "yes")


def test_a_slice_of_a_slice_has_what_both_have(held: Sequence[Snapshot]) -> None:
    first, second, third = (MONDAY + timedelta(days=days) for days in (10, 30, 50))
    for snapshot in held:
        twice = snapshot.slice(first, third).slice(since=second).slice(verdict="no")
        once = snapshot.slice(second, third, "no")
        for policy_id in POLICIES:
            assert effectiveness(twice, policy_id).to_dict() == effectiveness(once, policy_id).to_dict()
        assert once.slice(verdict="yes").cases().collect().is_empty()


def test_the_reports_of_a_slice_are_those_about_its_decisions(held: Sequence[Snapshot]) -> None:
    for snapshot in held:
        sliced = snapshot.slice(verdict="review")
        decisions = set(sliced.table("decisions").collect()["position"])
        assert decisions == set(sliced.cases().collect()["position"])
        assert decisions == set(sliced.facts(["amount"]).collect()["position"])
        for table in ("outcomes", "executions", "resolutions", "erasures"):
            rows = sliced.table(table).collect()
            assert rows.height
            assert set(rows["decision_position"]) <= decisions
        assert sliced.table("rulebooks").collect().height == snapshot.table("rulebooks").collect().height


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (0, 2, 1, 4, 3, 5), (1, 0, 2, 3, 5, 4), (5, 4, 3, 2, 1, 0)])
def test_a_period_has_what_was_reported_about_its_decisions_in_whatever_order_they_were_committed(
    order: Sequence[int], tmp_path: Path
) -> None:
    chain = MadeUp()
    for day in order:
        decision_id = chain.decide(MONDAY + day * DAY)
        chain.outcome(decision_id, MONDAY + WEEK, observed_metrics={"day": day})
    snapshot = chain.snapshot(tmp_path)

    def days(sliced: Snapshot) -> list[float]:
        return sorted(sliced.metrics(POLICY).collect()["value"])

    assert days(snapshot.slice(since=MONDAY + 2 * DAY)) == [2, 3, 4, 5]
    assert days(snapshot.slice(until=MONDAY + 2 * DAY)) == [0, 1]
    assert days(snapshot.slice(MONDAY + 2 * DAY, MONDAY + 5 * DAY)) == [2, 3, 4]
    assert days(snapshot.slice(since=MONDAY + 2 * DAY).slice(until=MONDAY + 4 * DAY)) == [2, 3]
    assert days(snapshot.slice(since=MONDAY + WEEK)) == days(snapshot.slice(until=MONDAY)) == []


def test_the_ends_of_a_slice_are_to_the_millisecond(tmp_path: Path) -> None:
    chain = MadeUp()
    for late in range(3):
        chain.decide(MONDAY + timedelta(milliseconds=late))
    snapshot = chain.snapshot(tmp_path)

    def found(since: datetime | None = None, until: datetime | None = None) -> list[int]:
        return snapshot.slice(since, until).cases().collect()["position"].to_list()

    second = MONDAY + timedelta(milliseconds=1)
    assert (found(since=second), found(until=second)) == ([2, 3], [1])
    between = second + timedelta(microseconds=1)
    assert (found(since=between), found(until=between)) == ([3], [1, 2])
    assert found(since=datetime.max.replace(tzinfo=UTC)) == found(until=datetime.min.replace(tzinfo=UTC)) == []


def test_the_time_after_a_slice_is_not_time_in_which_nothing_was_decided(tmp_path: Path) -> None:
    chain = MadeUp()
    for number in range(60 * 8):
        chain.decide(MONDAY + number * DAY / 8)
    snapshot = chain.snapshot(tmp_path)
    end = MONDAY + 6 * WEEK
    sliced = snapshot.slice(until=end)
    assert sliced.last_entry_at() == end
    report = anomalies(sliced, POLICY).to_dict()
    assert report["coverage"]["as_of"] == timestamp(end)
    assert [of for of in report["anomalies"] if of["kind"] == "volume"] == []
    assert snapshot.slice(until=end + 520 * WEEK).last_entry_at() == snapshot.last_entry_at()
    assert replace(snapshot, tail={}, position=0).slice(until=end).last_entry_at() is None


@pytest.mark.parametrize(
    ("wrong", "told"), [({"verdict": "maybe"}, "yes, no or review"), ({"since": "2026"}, "a datetime or a date")]
)
def test_a_wrong_window_is_refused_in_a_sentence(held: Sequence[Snapshot], wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(OperatorError) as caught:
        held[0].slice(**wrong)
    assert caught.value.code == "ENGINE_ARGUMENT_INVALID"
    assert told in caught.value.message


def test_a_slice_says_that_it_is_one(held: Sequence[Snapshot]) -> None:
    assert "sliced" in repr(held[0].slice(verdict="no"))
    assert "sliced" not in repr(held[0])
    assert held[0].slice(verdict="no").table("cases").filter(pl.col("verdict") != "no").collect().is_empty()


def test_a_date_as_until_includes_its_day_and_a_moment_is_not_included(held: Sequence[Snapshot]) -> None:
    chain = held[0]
    day = MONDAY.date()
    whole = chain.slice(MONDAY, MONDAY + DAY).cases().collect()
    assert whole.height > 0
    assert chain.slice(day, day).cases().collect().equals(whole)
    assert effectiveness(chain, POLICY, since=day, until=day).body == (
        effectiveness(chain, POLICY, since=MONDAY, until=MONDAY + DAY).body
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_span_is_refused_instead_of_a_report_of_no_decisions(
    engine: Callable[..., Any], held: Sequence[Snapshot]
) -> None:
    asking: list[Callable[[], object]] = [
        lambda: engine(held[0], POLICY, since=MONDAY, until=MONDAY),
        lambda: engine(held[0], POLICY, since=date(2026, 7, 2), until=date(2026, 7, 1)),
    ]
    for ask in asking:
        with pytest.raises(OperatorError, match=r"The period is empty: until is .+ Give a later until"):
            ask()
