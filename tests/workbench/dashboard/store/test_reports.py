"""Answers that are kept follow the chain, the lake's files and the months frozen for benchmarks."""

from __future__ import annotations

from pathlib import Path

from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.policy.peers import MonthCounts
from tests.support.samples import NOW
from tests.workbench.benchmarking import POLICY, chain_of
from tests.workbench.conftest import Export
from tests.workbench.made_up import DAY, HOUR, MONDAY, MadeUp
from tests.workbench.support import Chain
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.store.reports import ReportStore, ScopeReports
from workbench.dashboard.store.slices import Shown, Slice
from workbench.dashboard.store.snapshots import FRESH_FOR, Seen, Snapshots, reading
from workbench.kept import Kept
from workbench.lake.cohorts import freeze, write
from workbench.lake.entries import Personal
from workbench.lake.manifest import LakeFile


def paths(files: tuple[LakeFile, ...]) -> set[str]:
    return {file.path for file in files}


def test_a_month_that_is_frozen_meanwhile_is_compared_with(lake: Path) -> None:
    own = MonthCounts(decisions=100, approved=70, succeeded=30, terminal=60)
    chains = [chain_of(f"s{at}", {"2026-09": own}, lake) for at in range(8)]
    memo, seen = Memo(9), Seen(chains[0], NOW)
    before = ScopeReports("s0", seen, memo, Kept(0)).benchmarks(POLICY)
    assert before.body["cross_customer"]["percentiles"] is None
    write(lake, "2026-11", freeze(chains, "2026-11"))
    after = ScopeReports("s0", seen, memo, Kept(0)).benchmarks(POLICY)
    assert after.body["cross_customer"]["percentiles"] is not None


def test_the_decisions_of_a_kept_report_are_read_after_compaction_deleted_old_files(
    instance: Instance, scope: Scope, authority: Authority, export: Export, compact: Export, lake: Path
) -> None:
    chain, now = Chain(instance, authority), [NOW]
    held = chain.decide(discount_percent=20, margin_percent=22)
    chain.execution(held)
    export()
    compact()
    chain.decide()
    export()
    store = ReportStore(Snapshots(reading(instance.ledger, lake, Personal()), lambda: now[0]))
    old = store.of(scope.scope_id)
    old.anomalies("pricing_exception")
    compacted = compact()
    replaced = paths(old.snapshot.manifest.files) - paths(compacted.files)
    assert any("cases" in path for path in replaced)
    for path in replaced:
        (lake / path).unlink()
    now[0] += FRESH_FOR
    report = store.of(scope.scope_id).anomalies("pricing_exception")
    assert old.snapshot.position == store.of(scope.scope_id).snapshot.position
    shown = [report.decisions(at).collect()["decision_id"].to_list() for at in range(len(report.body["anomalies"]))]
    assert [held] in shown


def test_the_decisions_of_an_anomaly_of_one_version_are_those_of_its_own_report(tmp_path: Path) -> None:
    chain = MadeUp()
    for number in range(60):
        at = MONDAY + number * HOUR
        chain.receipt(chain.decide(at, verdict="no", version=str(number % 2)), at + DAY)
    reports = ScopeReports("s1", Seen(chain.snapshot(tmp_path), NOW), Memo(9), Kept(0))
    for version, number in ((None, 60), ("0", 30)):
        anomaly = reports.anomalies("refunds", Slice(version)).body["anomalies"][0]
        assert anomaly["decisions"] == number
        assert reports.shown_by(Shown("refunds", Slice(version), anomaly["anomaly_id"])).len() == number


def test_answers_about_an_older_chain_are_forgotten(tmp_path: Path) -> None:
    chain, now = MadeUp(), [NOW]
    chain.decide(MONDAY)
    snapshots = {"s1": chain.snapshot(tmp_path), "s2": chain.snapshot(tmp_path)}
    store = ReportStore(Snapshots(snapshots.__getitem__, lambda: now[0]))
    first, other = store.of("s1"), store.of("s2")
    assert [of.kept("chart", 1, lambda: "old") for of in (first, other)] == ["old", "old"]
    chain.decide(MONDAY + DAY)
    snapshots["s1"] = chain.snapshot(tmp_path)
    now[0] += FRESH_FOR
    store.of("s1")
    assert [of.kept("chart", 1, lambda: "new") for of in (first, other)] == ["new", "old"]
