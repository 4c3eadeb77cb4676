"""Advisory decisions in the lake: all of them are in it, and what reports about policies read has none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.policy.peers import earlier, month_of
from tests.support.advice import NAMESAKE, QUESTIONS, Advice
from tests.workbench.support import Shared, advised, bring_together, bring_up
from workbench.columns import ADVISORY, ENTRY_TABLES
from workbench.lake.cohorts import cases_at, freeze
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.manifest import Manifest
from workbench.lake.reader import Snapshot, open_lake
from workbench.lake.verify import verify

TABLES = (*ENTRY_TABLES.values(), "facts", "rulebooks", "cases", "metrics")


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shared, Advice]]:
    with advised(tmp_path_factory.mktemp("advice") / "home") as made:
        yield made


@pytest.fixture
def made(_made: tuple[Shared, Advice]) -> Iterator[Shared]:
    """The instance; its lake is empty."""
    yield _made[0]
    shutil.rmtree(_made[0].lake)
    _made[0].lake.mkdir()


@pytest.fixture
def given(_made: tuple[Shared, Advice]) -> Advice:
    """What is in its scope."""
    return _made[1]


def findings(made: Shared, manifest: Manifest) -> list[Any]:
    ledger = made.instance.ledger
    return list(verify(made.lake, manifest, ledger, ledger.tail.scope(made.scope.scope_id)))


def rows(snapshot: Snapshot, table: str) -> pl.DataFrame:
    found = snapshot.table(table)
    names = found.collect_schema().names()
    return found.sort([name for name in ("position", "name") if name in names]).collect()


def ids(snapshot: Snapshot, table: str) -> list[str]:
    return snapshot.table(table).collect()["decision_id"].to_list()


@pytest.mark.parametrize("batch", [1, 5, 20_000])
def test_all_of_it_is_exported_and_verifies(made: Shared, given: Advice, batch: int) -> None:
    manifest = bring_up(made.instance, made.lake, made.scope, batch=batch)
    assert manifest.position == given.entries
    assert findings(made, manifest) == []
    snapshot = open_lake(made.lake).scope("acme")
    decisions = rows(snapshot, "decisions").filter(pl.col("rule") == ADVISORY)
    assert decisions["decision_id"].to_list() == [record["decision_id"] for record in given.advisory.values()]
    for name, record in given.advisory.items():
        row = decisions.row(by_predicate=pl.col("decision_id") == record["decision_id"], named=True)
        told = ("policy_id", "policy_version", "policy_hash", "verdict", "application_verdict", "action", "reason_code")
        assert {of: row[of] for of in told} == {of: record[of] for of in told}
        assert row["target_object_id"] == QUESTIONS[name]["context"]["target_object_id"]
        assert (row["confidence_score"], row["confidence_level"], row["adapter"]) == (None, None, None)
    erased = given.advisory["erased"]["decision_id"]
    assert ids(snapshot, "outcomes").count(erased) == 2
    assert ids(snapshot, "erasures") == [erased]
    for table in ("outcomes", "executions", "crm_syncs"):
        reported = {given.advisory[name]["decision_id"] for name in ("single", "multi", "runtime", "erased")}
        assert reported <= set(ids(snapshot, table))


def test_no_rule_of_a_rulebook_reads_as_advice(made: Shared, given: Advice) -> None:
    bring_up(made.instance, made.lake, made.scope)
    decisions = rows(open_lake(made.lake).scope("acme"), "decisions").filter(pl.col("policy_id") == NAMESAKE)
    decided = [record["decision_id"] for record in given.namesake]
    told = decisions.filter(pl.col("decision_id").is_in(decided))["rule"].to_list()
    assert told == ["rule:approve_standard_exception"] * len(decided)
    # Everything else of them is as of advice.
    for name in ("policy_id", "policy_version", "verdict", "action"):
        assert given.namesake[0][name] == given.advisory["single"][name]


def test_advice_has_no_facts_and_no_rulebook(made: Shared, given: Advice) -> None:
    bring_up(made.instance, made.lake, made.scope)
    snapshot = open_lake(made.lake).scope("acme")
    binding = rows(snapshot.binding(), "decisions")
    assert rows(snapshot, "facts")["position"].to_list() == binding["position"].to_list()
    assert set(rows(snapshot, "rulebooks")["policy_hash"]) == set(binding["policy_hash"])
    # Its context looks like facts.
    assert "99" not in "".join(rows(snapshot, "facts")["inputs"].drop_nulls())


@pytest.mark.parametrize("exported", [0, 10, 20, None])
@pytest.mark.parametrize("compacted", [False, True])
def test_however_the_lake_holds_it_readers_see_the_same(
    made: Shared, given: Advice, exported: int | None, compacted: bool
) -> None:
    whole = fresh(made.instance.ledger, made.lake, made.scope.scope_id, Personal())
    if exported != 0:
        followed = made.instance.ledger.tail.scope(made.scope.scope_id)
        assert followed is not None
        from workbench.lake.export import Exporter

        for _ in Exporter(made.instance.ledger, made.lake, batch=3).export(followed, most=exported):
            pass
        if compacted:
            bring_together(made.lake, made.scope)
    held = fresh(made.instance.ledger, made.lake, made.scope.scope_id, Personal())
    for one, other in ((whole, held), (whole.binding(), held.binding())):
        for table in TABLES:
            assert_frame_equal(rows(one, table), rows(other, table), check_column_order=False)


def test_compaction_resolves_its_cases(made: Shared, given: Advice) -> None:
    bring_up(made.instance, made.lake, made.scope, batch=4)
    manifest = bring_together(made.lake, made.scope)
    assert findings(made, manifest) == []
    cases = rows(open_lake(made.lake).scope("acme"), "cases")
    multi = cases.row(by_predicate=pl.col("decision_id") == given.advisory["multi"]["decision_id"], named=True)
    assert (multi["rule"], multi["outcome_status"], multi["outcomes"]) == (ADVISORY, "succeeded", 2)
    assert (multi["execution_status"], multi["times_executed"], multi["not_approved"]) == ("executed", 1, True)


def test_a_lake_that_was_lost_is_made_again_the_same(made: Shared, given: Advice) -> None:
    bring_up(made.instance, made.lake, made.scope)
    before = {table: rows(open_lake(made.lake).scope("acme"), table) for table in TABLES}
    shutil.rmtree(made.lake)
    made.lake.mkdir()
    bring_up(made.instance, made.lake, made.scope)
    after = open_lake(made.lake).scope("acme")
    for table, frame in before.items():
        assert_frame_equal(frame, rows(after, table))


def test_a_row_that_poses_as_binding_shows(made: Shared, given: Advice) -> None:
    manifest = bring_up(made.instance, made.lake, made.scope)
    file = next(file for file in manifest.of("decisions"))
    path = made.lake / file.path
    changed = pl.read_parquet(path).with_columns(
        pl.when(pl.col("rule") == ADVISORY).then(pl.lit("rule:default")).otherwise("rule").alias("rule")
    )
    changed.write_parquet(path)
    found = verify(made.lake, manifest, made.instance.ledger, made.instance.ledger.tail.scope(made.scope.scope_id))
    assert [each.check for each in found] == ["files"]


def test_binding_is_the_chain_without_advice_and_all_about_it(made: Shared, given: Advice) -> None:
    bring_up(made.instance, made.lake, made.scope)
    snapshot = open_lake(made.lake).scope("acme")
    advisory = {record["decision_id"] for record in given.advisory.values()}
    binding = {record["decision_id"] for record in (*given.binding.values(), *given.namesake)}
    for table in ("decisions", "cases", "outcomes", "executions"):
        assert set(ids(snapshot, table)) & advisory
        assert set(ids(snapshot.binding(), table)) <= binding
    assert set(ids(snapshot.binding(), "cases")) == binding
    assert rows(snapshot.binding(), "crm_syncs").is_empty()
    assert rows(snapshot.binding(), "erasures").is_empty()
    assert rows(snapshot.binding(), "metrics")["value"].sort().to_list() == [7.0, 12.0]
    for sliced in (snapshot.slice(since=utc_now().replace(year=2020)), snapshot.slice(verdict="yes")):
        assert rows(sliced.binding(), "metrics")["value"].sort().to_list() == [7.0, 12.0]
        assert set(ids(sliced.binding(), "decisions")) == set(ids(sliced, "decisions")) - advisory
        assert sliced.binding().facts(["margin_percent"]).collect().height == len(ids(sliced.binding(), "decisions"))
    assert snapshot.binding("pricing_exception") is snapshot
    assert set(ids(snapshot.binding(NAMESAKE), "cases")) == binding
    assert [snapshot.count_advisory(of) for of in (NAMESAKE, "advisory.multi", "pricing_exception")] == [4, 1, 0]


def test_no_cohort_counts_it(made: Shared, given: Advice) -> None:
    """A policy_id of advice, with more succeeded outcomes than a scope needs to count."""
    for _ in range(50):
        record = given.post("/api/decide", QUESTIONS["multi"])
        given.report(record, "outcome", outcome_status="succeeded")
    snapshot = fresh(made.instance.ledger, made.lake, made.scope.scope_id, Personal())
    month = earlier(month_of(utc_now()), -2)
    assert cases_at(snapshot, month, "advisory.multi").collect().height == 51
    frozen = freeze([snapshot], month)
    assert frozen["policy_id"].to_list() == [None]


def test_erasing_it_reaches_what_was_exported(made: Shared, given: Advice) -> None:
    bring_up(made.instance, made.lake, made.scope)
    bring_together(made.lake, made.scope)
    erase(made.instance.ledger, given.advisory["runtime"]["decision_id"], "They asked for it.", utc_now())
    given.entries += 1
    manifest = bring_up(made.instance, made.lake, made.scope)
    assert findings(made, manifest) == []
    assert given.advisory["runtime"]["decision_id"] in ids(open_lake(made.lake).scope("acme"), "erasures")


@pytest.mark.parametrize(
    "context",
    [
        {"inputs": {"discount_percent": 10}, "amount": "12", "currency": 7, "mutation": ""},
        {"actor": None, "subject": {"name": "é \u2028"}, "amount": 1e300, "options": "none"},
        {"actor": [1, {"x": None}], "subject": "", "amount": True, "inputs": {}},
    ],
)
def test_whatever_a_question_says_of_its_case_is_exported(made: Shared, given: Advice, context: dict[str, Any]) -> None:
    record = given.post("/api/decide", {"question": "What about this?", "context": context})
    manifest = bring_up(made.instance, made.lake, made.scope)
    assert findings(made, manifest) == []
    assert record["decision_id"] in ids(open_lake(made.lake).scope("acme"), "decisions")
