"""The times of events in a lake: exported, resolved, erased and made anew like everything else that requests tell."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.policy.questions import EffectivenessQuestion
from tests.support.samples import sample_request
from tests.support.torture import size
from tests.workbench.support import Chain
from workbench import analytics
from workbench.columns import TABLES, TIME
from workbench.lake import compaction
from workbench.lake.entries import Personal
from workbench.lake.export import Exporter
from workbench.lake.fresh import fresh
from workbench.lake.manifest import Manifest, load
from workbench.lake.reader import Snapshot
from workbench.lake.verify import verify

Step = Callable[..., Manifest]

EVENT: Final = datetime(2019, 4, 1, 8, tzinfo=UTC)
NEEDLES: Final = tuple(EVENT + timedelta(days=day) for day in range(4))
"""What the erased decision, its outcomes and its receipt say; the last is not erased."""


@pytest.fixture
def chain(instance: Instance, authority: Authority) -> Chain:
    """The scope's chain, still empty."""
    return Chain(instance, authority, step=timedelta(hours=7))


def rows(snapshot: Snapshot) -> dict[str, pl.DataFrame]:
    order = {"metrics": ["position", "name"]}
    return {name: snapshot.table(name).collect().sort(order.get(name, "position")) for name in TABLES}


def faults(instance: Instance, lake: Path, scope: Scope) -> list[str]:
    manifest = load(lake, scope.scope_id)
    assert manifest is not None
    return [of.check for of in verify(lake, manifest, instance.ledger, instance.ledger.tail.scope(scope.scope_id))]


def holding(lake: Path, *needles: datetime) -> set[str]:
    """The tables of the files, listed or not, that hold one of some moments."""
    found = set()
    for file in lake.rglob("*.parquet*"):
        frame = pl.read_parquet(file, glob=False, hive_partitioning=False)
        times = [name for name, dtype in frame.schema.items() if dtype == TIME]
        if any(frame[name].is_in(list(needles)).any() for name in times):
            found.add(file.name.partition("-")[0])
    return found


def tell(chain: Chain) -> str:
    """Appends a decision, two outcomes and a receipt that say when it all happened; the decision's id."""
    decision_id = chain.decide({**sample_request(), "occurred_at": timestamp(NEEDLES[0])})
    chain.outcome(decision_id, "pending", occurred_at=timestamp(NEEDLES[1]), observed_metrics={"hours": 1})
    chain.outcome(decision_id, occurred_at=timestamp(NEEDLES[2]), observed_metrics={"hours": 2})
    chain.execution(decision_id, executed_at=timestamp(NEEDLES[3]))
    return decision_id


def test_each_column_holds_when_it_happened(
    chain: Chain,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
    instance: Instance,
    scope: Scope,
    lake: Path,
) -> None:
    tell(chain)
    chain.decide(discount_percent=10, margin_percent=22)
    export()
    for step in (lambda: None, compact):
        step()
        found = rows(snapshot())
        assert found["decisions"]["occurred_at"].to_list() == [NEEDLES[0], None]
        assert found["facts"]["occurred_at"].to_list() == [NEEDLES[0], None]
        assert found["outcomes"]["occurred_at"].to_list() == [*NEEDLES[1:3]]
        assert found["metrics"]["occurred_at"].to_list() == [NEEDLES[2]]
        case, other = found["cases"].to_dicts()
        assert (case["occurred_at"], case["outcome_occurred_at"], case["execution_event_at"]) == (
            NEEDLES[0],
            *NEEDLES[2:],
        )
        assert (case["first_outcome_event_at"], case["last_outcome_event_at"]) == NEEDLES[1:3]
        assert case["first_executed_event_at"] == NEEDLES[3]
        assert case["created_at"].year == 2090
        assert {
            name for name, of in other.items() if name.endswith(("occurred_at", "event_at")) and of is not None
        } == set()
        assert faults(instance, lake, scope) == []


@pytest.mark.parametrize("compacted", [True, False])
def test_a_time_that_was_erased_is_in_no_file_any_more(
    compacted: bool,
    chain: Chain,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
    instance: Instance,
    scope: Scope,
    lake: Path,
) -> None:
    decision_id = tell(chain)
    chain.decide({**sample_request(), "occurred_at": timestamp(EVENT - timedelta(days=1))})
    export()
    if compacted:
        compact()
        # What compaction replaced lingers, and holds it as well.
        chain.outcome(decision_id, occurred_at=timestamp(NEEDLES[1]), observed_metrics={"hours": 3})
        export()
        compact()
    tables = {"decisions", "outcomes", "facts"} | ({"cases", "metrics"} if compacted else set())
    assert holding(lake, *NEEDLES[:3]) == tables
    chain.erase(decision_id)
    between = rows(fresh(instance.ledger, lake, scope.scope_id, Personal()))
    # Between the two the ledger has lost more than the lake, and that is no fault of the lake.
    assert faults(instance, lake, scope) == []
    export()
    assert holding(lake, *NEEDLES[:3]) == set()
    assert "executions" in holding(lake, NEEDLES[3])
    assert "decisions" in holding(lake, EVENT - timedelta(days=1))
    assert faults(instance, lake, scope) == []
    expected = rows(snapshot())
    for name, frame in between.items():
        assert_frame_equal(frame, expected[name])
    compact()
    assert faults(instance, lake, scope) == []
    assert rows(snapshot())["cases"]["outcome_occurred_at"].to_list() == [None, None]


def test_an_outcome_after_the_erasure_keeps_its_time(
    chain: Chain,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
    instance: Instance,
    scope: Scope,
    lake: Path,
) -> None:
    decision_id = tell(chain)
    export()
    compact()
    chain.erase(decision_id)
    late = EVENT + timedelta(days=9)
    chain.outcome(decision_id, "failed", occurred_at=timestamp(late))
    between = rows(fresh(instance.ledger, lake, scope.scope_id, Personal()))
    export()
    assert rows(fresh(instance.ledger, lake, scope.scope_id, Personal()))["outcomes"].equals(between["outcomes"])
    compact()
    case = rows(snapshot())["cases"].row(0, named=True)
    assert (case["occurred_at"], case["outcome_occurred_at"], case["first_outcome_event_at"]) == (None, late, late)
    assert case["last_outcome_event_at"] == case["first_outcome_at"] + timedelta(hours=7)
    assert_frame_equal(rows(snapshot())["cases"], between["cases"])
    assert faults(instance, lake, scope) == []


def test_an_erasure_of_what_has_no_time_disturbs_no_reader(
    chain: Chain, export: Step, compact: Step, snapshot: Callable[[], Snapshot]
) -> None:
    chain.grow(4)
    export()
    compact()
    opened = snapshot()
    chain.erase(chain.decided[0])
    export()
    for table in ("decisions", "outcomes", "cases", "metrics"):
        assert {file.path for file in opened.manifest.of(table)} <= {file.path for file in snapshot().manifest.files}


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(size(2, 8)))
def test_it_does_not_matter_how_a_lake_came_to_hold_the_times(
    seed: int,
    chain: Chain,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
    instance: Instance,
    scope: Scope,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compaction, "STEP", 9)
    monkeypatch.setattr(compaction, "FULL", 3)
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    erased: list[str] = []

    def when() -> dict[str, Any]:
        at = EVENT + timedelta(minutes=chance.randrange(10**6))
        return {"occurred_at": timestamp(at)} if chance.random() < 0.7 else {}

    for _ in range(6):
        for _ in range(4):
            decision_id = chain.decide({**sample_request(), **when()})
            about = chance.choice(chain.decided)
            chain.outcome(about, **when(), observed_metrics={"hours": chance.randrange(9)})
            chain.execution(decision_id, executed_at=timestamp(EVENT + timedelta(hours=chance.randrange(10**6))))
        gone = chance.choice(chain.decided)
        if gone not in erased:
            erased.append(gone)
            chain.erase(gone)
            chain.outcome(gone, **when())
        now = rows(fresh(instance.ledger, lake, scope.scope_id, Personal()))
        if batch := chance.choice([5, 1, None]):
            export(batch=batch)
        if load(lake, scope.scope_id) is not None and chance.random() < 0.5:
            compact(many=2)
        for name, frame in rows(fresh(instance.ledger, lake, scope.scope_id, Personal())).items():
            assert_frame_equal(frame, now[name])
    export()
    compact()
    assert faults(instance, lake, scope) == []
    in_steps = rows(snapshot())
    lake.rename(lake.with_name("kept"))
    lake.mkdir()
    export()
    compact()
    for name, frame in rows(snapshot()).items():
        assert_frame_equal(frame, in_steps[name])


def test_a_crash_between_an_erasure_and_its_end_leaves_no_time_for_long(
    chain: Chain,
    export: Step,
    compact: Step,
    instance: Instance,
    scope: Scope,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decision_id = tell(chain)
    export()
    compact()
    chain.erase(decision_id)
    followed = instance.ledger.tail.scope(scope.scope_id)
    assert followed is not None

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("workbench.lake.export._remove_unlisted", dies)
        exporter = Exporter(instance.ledger, lake)
        patch.setattr(exporter, "_swept", lambda manifest: manifest)
        with pytest.raises(KeyboardInterrupt):
            list(exporter.export(followed))
    assert holding(lake, *NEEDLES[:3])
    list(Exporter(instance.ledger, lake).export(followed))
    assert holding(lake, *NEEDLES[:3]) == set()


def test_a_report_that_misses_a_file_which_was_erased_is_made_once_more(
    chain: Chain,
    export: Step,
    compact: Step,
    instance: Instance,
    scope: Scope,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decision_id = tell(chain)
    export()
    compact()
    before = fresh(instance.ledger, lake, scope.scope_id, Personal())
    chain.erase(decision_id)
    export()
    with pytest.raises(FileNotFoundError):
        before.cases().collect()
    now = [before]
    monkeypatch.setattr(analytics, "fresh", lambda *of, **how: now.pop() if now else fresh(*of, **how))
    answering = analytics.Analytics(instance.ledger, lake, Personal(), instance.migrations())
    answer: Any = answering.answer(scope.scope_id, EffectivenessQuestion("pricing_exception"))
    assert now == []
    assert answer["coverage"]["decisions"] == 1
