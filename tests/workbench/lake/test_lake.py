"""The lake: whatever the ledger holds is in it once, whenever it was exported, and whatever happened meanwhile."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gate.clock import utc_now
from gate.errors import OperatorError
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS, Authority, Scope
from tests.support.migrations import desk
from tests.support.samples import EXECUTED, sample_request
from tests.support.scopes import scope_of_old
from tests.support.torture import size
from tests.workbench.support import Chain, Shared, bring_together, bring_up, claim_request, shared
from workbench.columns import ENTRY_TABLES, TABLES, TIME, schema
from workbench.lake import compaction
from workbench.lake.cases import state
from workbench.lake.compaction import Compactor
from workbench.lake.entries import Personal
from workbench.lake.export import LINGER, Exporter
from workbench.lake.fresh import fresh
from workbench.lake.manifest import FILE_NAME, LAKE_VERSION, Manifest, directory_of, load
from workbench.lake.reader import Snapshot, open_lake
from workbench.lake.verify import verify

Step = Callable[..., Manifest]


@pytest.fixture
def chain(instance: Instance, authority: Authority) -> Chain:
    """The scope's chain, still empty."""
    return Chain(instance, authority, step=timedelta(hours=7))


@dataclass(frozen=True, slots=True)
class Brought:
    """A compacted lake that was brought up to its ledger; tests change copies of the lake, and nothing else."""

    made: Shared
    manifest: Manifest

    def checks(self, lake: Path, manifest: Manifest) -> list[str]:
        """The checks that find something wrong in a copy whose manifest says this."""
        followed = self.made.instance.ledger.tail.scope(self.made.scope.scope_id)
        return [found.check for found in verify(lake, manifest, self.made.instance.ledger, followed)]


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brought]:
    """The lake of a chain of seven decisions."""
    with shared(tmp_path_factory.mktemp("brought") / "home") as made:
        chain = Chain(made.instance, made.authority, step=timedelta(hours=7))
        chain.grow(6)
        chain.resolve(chain.hold(), "refused")
        bring_up(made.instance, made.lake, made.scope)
        yield Brought(made, bring_together(made.lake, made.scope))


@pytest.fixture
def copied(brought: Brought, tmp_path: Path) -> Path:
    """A copy of that lake."""
    return Path(shutil.copytree(brought.made.lake, tmp_path / "copied"))


def rows(snapshot: Snapshot) -> dict[str, pl.DataFrame]:
    """Every row of every table, in the order of the chain, metrics of one decision by name."""
    order = {"metrics": ["position", "name"]}
    return {name: snapshot.table(name).collect().sort(order.get(name, "position")) for name in TABLES}


def assert_same(one: Snapshot, other: Snapshot) -> None:
    """Asserts that two snapshots hold the same rows."""
    found = rows(other)
    for name, frame in rows(one).items():
        assert_frame_equal(frame, found[name])


def faults(instance: Instance, lake: Path, scope: Scope) -> list[str]:
    """What `gate lake verify --against-ledger` finds."""
    manifest = load(lake, scope.scope_id)
    assert manifest is not None
    followed = instance.ledger.tail.scope(scope.scope_id)
    return [found.check for found in verify(lake, manifest, instance.ledger, followed)]


def test_every_entry_of_every_type_is_exported_once(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, export: Step, snapshot: Callable[[], Snapshot]
) -> None:
    chain.grow()
    chain.review()
    chain.erase(chain.decided[3])
    chain.route(scope, "1")
    manifest = export(batch=7)
    found = snapshot()
    head = instance.ledger.entries.head(scope.scope_id)
    assert (manifest.position, manifest.merkle_root, manifest.link_hash) == (
        head.size,
        head.merkle_root,
        head.link_hash,
    )
    positions = sorted(at for table in ENTRY_TABLES.values() for at in found.table(table).collect()["position"])
    assert positions == list(range(1, head.size + 1))
    assert {name: found.table(name).collect_schema() for name in TABLES if name != "facts"} == {
        name: schema(name) for name in TABLES if name != "facts"
    }
    assert len({file.month for file in manifest.files}) > 1
    assert faults(instance, lake, scope) == []


def test_migrations_and_routes_are_rows_of_their_own(
    chain: Chain, lake: Path, export: Step, snapshot: Callable[[], Snapshot], instance: Instance, scope: Scope
) -> None:
    chain.route(scope, "1")
    export()
    at = desk(instance, scope)
    chain.route(scope, "2")
    back = at.acts.rollback(scope, at.approver, "pricing_exception", "too many")
    export()
    found = rows(snapshot())
    entries = at.migrations.migration(scope, "prices_2").entries
    migrations = found["migrations"].filter(pl.col("migration_id") == "prices_2").to_dicts()
    same = ("migration_entry_id", "event", "manifest_hash", "evidence_hash", "candidates")
    assert [{name: row[name] for name in same} for row in migrations] == [
        {name: entry[name] for name in same}  # type: ignore[literal-required]
        for entry in entries
    ]
    assert [orjson.loads(row["actor"]) for row in migrations] == [entry["actor"] for entry in entries]
    routes = found["routes"].to_dicts()
    told = [(row["cause"], row["from_version"], row["policy_version"], row["note"]) for row in routes]
    assert told == [("apply", None, "1", None), ("apply", "1", "2", None), ("rollback", "2", "1", "too many")]
    assert (routes[2]["route_entry_id"], routes[2]["approval_hash"]) == (back["route_entry_id"], back["approval_hash"])
    assert snapshot().slice(since=utc_now() + timedelta(days=1)).table("routes").collect().height == 3
    assert faults(instance, lake, scope) == []


def test_resolutions_are_rows_of_their_own_and_stand_with_their_cases(
    chain: Chain,
    lake: Path,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
    instance: Instance,
    scope: Scope,
) -> None:
    held = chain.hold()
    made_at = chain.now
    export()
    compact()
    chain.now += timedelta(minutes=90)
    resolution: Any = chain.resolve(held, "refused", note="Too dear.", evidence=["ticket-7"])
    told = {name: resolution[name] for name in ("resolution", "resolved_by", "note", "evidence_refs", "key_id")}

    def case() -> dict[str, Any]:
        found = fresh(instance.ledger, lake, scope.scope_id, Personal())
        return found.cases().filter(decision_id=held).collect().row(0, named=True)

    for step in (lambda: None, export, compact):
        step()
        found = case()
        assert (found["resolution"], found["resolution_position"], found["resolved_at"]) == ("refused", 2, chain.now)
        assert found["waiting_seconds"] == (chain.now - made_at).total_seconds()
    row = snapshot().table("resolutions").collect().row(0, named=True)
    assert {name: row[name] for name in told} == told
    assert (row["resolution_entry_id"], row["record_hash"]) == (
        resolution["resolution_entry_id"],
        resolution["resolution_hash"],
    )
    assert (row["decision_id"], row["decision_position"], row["expires_at"]) == (held, 1, None)
    assert orjson.loads(row["actor"]) == resolution["actor"]
    assert faults(instance, lake, scope) == []


def test_what_people_wrote_about_a_resolution_can_be_left_out(
    chain: Chain, instance: Instance, lake: Path, scope: Scope
) -> None:
    chain.resolve(chain.hold(), "granted", note="Ada agreed.")
    bring_up(instance, lake, scope, personal=Personal.of(["resolved_by", "note", "actor"]))
    row = open_lake(lake).scope("acme").table("resolutions").collect().row(0, named=True)
    assert (row["resolution"], row["resolved_by"], row["note"], row["actor"]) == ("granted", None, None, None)


def test_a_case_says_which_of_its_receipts_came_without_a_yes_or_a_grant(
    chain: Chain, export: Step, compact: Step, snapshot: Callable[[], Snapshot], instance: Instance, scope: Scope
) -> None:
    named = chain.review()
    export()
    compact()
    found = {row["decision_id"]: row for row in snapshot().cases().collect().to_dicts()}
    cases = {name: found[decision_id] for name, decision_id in named.items()}
    assert {name: (of["resolution"], of["times_unapproved"]) for name, of in cases.items()} == {
        "open": (None, 1),
        "granted": ("granted", 0),
        "early": ("granted", 1),
        "refused": ("refused", 1),
        "before": ("refused", 1),
        "expired": ("expired", 1),
        "unused": ("granted", 0),
    }
    assert [name for name, of in cases.items() if of["executed_against"]] == ["refused", "expired"]
    assert cases["early"]["execution_position"] > cases["early"]["resolution_position"]
    ends = {name: of["grant_ends_at"] for name, of in cases.items() if of["grant_ends_at"] is not None}
    assert ends == {name: cases[name]["resolved_at"] + timedelta(days=1) for name in ("granted", "early", "unused")}
    assert (cases["granted"]["not_approved"], cases["refused"]["not_approved"]) == (False, True)
    states = dict(snapshot().cases().select("decision_id", state()).collect().iter_rows())
    assert (states[named["unused"]], states[named["open"]]) == ("granted", "executed")


@pytest.mark.parametrize(
    ("held", "taken", "told"),
    [
        (True, "approve_discount", (True, False)),
        (True, "wire_money", (True, True)),
        (False, "wire_money", (True, True)),
        (False, "approve_discount", (False, False)),
    ],
)
def test_a_receipt_of_the_proposed_action_that_nothing_opened_names_no_other_action(
    chain: Chain, export: Step, snapshot: Callable[[], Snapshot], held: bool, taken: str, told: tuple[bool, bool]
) -> None:
    decision_id = chain.hold() if held else chain.decide(discount_percent=10, margin_percent=22)
    chain.execution(decision_id, action_taken=taken)
    export()
    (row,) = snapshot().table("executions").select("action_mismatch", "other_action").collect().rows()
    assert row == told
    assert snapshot().cases().select("times_other_action").collect().item() == told[1]


def test_each_column_holds_what_was_decided_and_reported(
    chain: Chain, export: Step, snapshot: Callable[[], Snapshot], instance: Instance, authority: Authority
) -> None:
    decision_id = chain.decide(discount_percent=10, margin_percent=22)
    chain.execution(decision_id, **{name: value for name, value in EXECUTED.items() if name != "execution_status"})
    chain.outcome(decision_id, observed_metrics={"b": 1e308, "a": 2}, evidence_refs=["log-1"], external_ref="tx-1")
    chain.crm_sync(decision_id)
    export()
    record: Any = instance.gate().decision(authority, decision_id)
    assert record is not None
    row = {name: frame.row(0, named=True) for name, frame in rows(snapshot()).items() if frame.height}
    decided = row["decisions"]
    same = ["decision_id", "policy_id", "policy_version", "policy_hash", "verdict", "application_verdict", "action"]
    same += ["reason_code", "request_id", "input_hash", "output_hash", "record_hash", "receipt_hash"]
    assert {name: decided[name] for name in same} == {name: record[name] for name in same}
    binding = record["action_binding"]
    assert (decided["target_system"], decided["target_object_id"]) == (binding["system"], binding["resource"])
    assert (decided["amount"], decided["currency"]) == (1200.5, "EUR")
    assert orjson.loads(decided["actor"]) == binding["actor"]
    assert orjson.loads(decided["subject"]) == binding["subject"]
    assert decided["rule"] == record["evidence"][1] == "rule:approve_standard_exception"
    assert decided["merkle_root"] == record["audit_chain"]["merkle_root"]
    executed = row["executions"]
    assert {name: executed[name] for name in EXECUTED if name not in ("executor", "executed_at")} == {
        name: value for name, value in EXECUTED.items() if name not in ("executor", "executed_at")
    }
    assert orjson.loads(executed["executor"]) == EXECUTED["executor"]
    assert executed["executed_at"].isoformat() == "2026-06-11T12:31:00+00:00"
    assert (executed["decision_id"], executed["decision_position"]) == (decision_id, 1)
    assert row["outcomes"]["observed_metrics"] == [{"name": "a", "value": 2.0}, {"name": "b", "value": 1e308}]
    assert (row["outcomes"]["evidence_refs"], row["outcomes"]["external_ref"]) == (["log-1"], "tx-1")
    assert [
        (metric["position"], metric["policy_id"], metric["reported_at"], metric["name"], metric["value"])
        for metric in snapshot().table("metrics").sort("name").collect().to_dicts()
    ] == [
        (1, decided["policy_id"], row["outcomes"]["reported_at"], name, value)
        for name, value in (("a", 2.0), ("b", 1e308))
    ]
    assert orjson.loads(row["crm_syncs"]["mapped_fields"]) == {"owner": {"name": "Ada"}, "stage": "won"}
    assert row["facts"]["inputs"] == '{"discount_percent":10,"margin_percent":22}'
    case = row["cases"]
    assert (case["outcome_status"], case["execution_status"], case["outcomes"]) == ("succeeded", "executed", 1)
    assert case["week"].isoformat() <= decided["created_at"].date().isoformat()
    assert case["week"].weekday() == 0


@pytest.mark.heavy
def test_it_does_not_matter_in_how_many_steps_a_chain_was_exported_and_compacted(
    lake: Path,
    chain: Chain,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compaction, "STEP", 9)
    monkeypatch.setattr(compaction, "FULL", 3)
    for _ in range(4):
        chain.grow(5)
        export(batch=4)
        compact(many=2)
        chain.outcome(chain.decided[0], "reverted")
        chain.execution(chain.decided[1], "failed")
        export(batch=1)
    held = [chain.hold() for _ in range(4)]
    chain.execution(held[0])
    export(batch=1)
    compact(many=2)
    for decision_id, answer in zip(held, ("granted", "refused", "expired"), strict=False):
        chain.resolve(decision_id, answer)
    export(batch=1)
    compact(many=2)
    chain.execution(held[1])
    chain.erase(chain.decided[2])
    export()
    in_steps = snapshot()
    assert len(in_steps.manifest.of("cases")) > 3
    kept = lake.rename(lake.with_name("kept"))
    lake.mkdir()
    export()
    assert_same(Snapshot(kept, in_steps.manifest, in_steps.position, in_steps.merkle_root), snapshot())
    compact()
    assert_same(Snapshot(kept, in_steps.manifest, in_steps.position, in_steps.merkle_root), snapshot())


def test_metrics_are_those_of_the_latest_outcome_of_a_decision(
    chain: Chain,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
    instance: Instance,
    lake: Path,
    scope: Scope,
) -> None:
    def measured() -> list[tuple[Any, ...]]:
        found = rows(fresh(instance.ledger, lake, scope.scope_id, Personal()))["metrics"]
        return found.select("position", "name", "value").rows()

    first, second, third = (chain.decide(discount_percent=10, margin_percent=22) for _ in range(3))
    for decision_id in (first, second, third):
        chain.outcome(decision_id, observed_metrics={"hours": 1, "revenue": 2})
    export()
    compact()
    chain.outcome(first, "reverted", observed_metrics={"hours": 3})
    chain.outcome(second, "pending")
    chain.outcome(third, observed_metrics={"hours": 4})
    chain.outcome(third, observed_metrics={"hours": 5, "revenue": 6})
    chain.execution(third)
    expected = [(1, "hours", 3.0), (3, "hours", 5.0), (3, "revenue", 6.0)]
    assert measured() == expected
    export()
    assert measured() == expected
    compact()
    assert measured() == expected
    assert snapshot().resolved("metrics").collect().height == len(expected)
    for decision_id in (first, third):
        chain.outcome(decision_id, "failed")
    export()
    manifest = compact()
    assert measured() == []
    assert manifest.of("metrics") == []
    assert faults(instance, lake, scope) == []


def test_the_tail_and_the_lake_together_are_the_same_wherever_the_watermark_stands(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, export: Step, compact: Step
) -> None:
    chain.grow(6)
    at_first = fresh(instance.ledger, lake, scope.scope_id, Personal())
    assert at_first.manifest.position == 0
    export(batch=5)
    compact()
    chain.grow(4)
    chain.erase(chain.decided[0])
    between = fresh(instance.ledger, lake, scope.scope_id, Personal())
    assert 0 < between.manifest.position < between.position
    facts = between.facts(("discount_percent",)).filter(pl.col("position") == 1).collect()
    expected = rows(between)
    export()
    compact()
    for name, frame in rows(fresh(instance.ledger, lake, scope.scope_id, Personal())).items():
        assert_frame_equal(frame, expected[name])
    assert facts["known"].to_list() == [False]
    assert facts["inputs"].to_list() == facts["discount_percent:type"].to_list() == [None]


def test_what_was_erased_is_in_no_file_any_more(lake: Path, chain: Chain, export: Step, compact: Step) -> None:
    secret = "needle-7f3a"
    body = sample_request(discount_percent=10, margin_percent=22, note=secret)
    decision_id = chain.decide(body)
    export()
    compact()
    chain.decide(body | {"context": {**body["context"], "inputs": {"discount_percent": 1, "margin_percent": 2}}})
    export()
    compact()

    def holding() -> list[Path]:
        found = []
        for file in lake.rglob("*.parquet*"):
            frame = pl.read_parquet(file)
            if "inputs" in frame.columns and frame["inputs"].str.contains(secret, literal=True).any():
                found.append(file)
        return found

    assert holding()
    chain.erase(decision_id)
    export()
    assert holding() == []
    assert lake.exists()


def test_what_an_operator_marks_as_personal_is_left_out_and_taken_out(
    lake: Path, chain: Chain, export: Step, snapshot: Callable[[], Snapshot]
) -> None:
    body = sample_request(discount_percent=10, margin_percent=22, customer={"email": "ada@shop.example", "tier": 2})
    chain.decide(body)
    export()
    assert b"ada@shop" in snapshot().facts(()).collect()["inputs"][0].encode()
    manifest = export(personal=Personal.of(["inputs.customer.email", "target_object_id", "actor"]))
    assert manifest.personal == ("actor", "inputs.customer.email", "target_object_id")
    found = snapshot()
    assert found.facts(()).collect()["inputs"].to_list() == [
        '{"customer":{"tier":2},"discount_percent":10,"margin_percent":22}'
    ]
    decided = found.table("decisions").collect()
    assert decided["target_object_id"].to_list() == decided["actor"].to_list() == [None]
    assert decided["target_system"].to_list() == ["crm"]
    assert not [file for file in lake.rglob("*.parquet") if b"ada@shop" in file.read_bytes()]
    assert len(list(lake.rglob("*.parquet"))) == len(manifest.files)


def test_facts_that_an_adapter_made_lie_beside_those_that_callers_sent(
    instance: Instance,
    lake: Path,
    scope: Scope,
    authority: Authority,
    chain: Chain,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
) -> None:
    chain.decide(discount_percent=10, margin_percent=22)
    made = [chain.decide(claim_request()), chain.decide(claim_request({"captured_minor": None}))]
    chain.decide(discount_percent=20, margin_percent=22)
    for decision_id in made:
        chain.outcome(decision_id)
    export(batch=2)
    compact()
    found = snapshot()
    facts = found.facts(["amount", "share_of_payment_percent", "evidence"]).sort("position").collect()
    assert facts["inputs"].to_list() == [
        '{"discount_percent":10,"margin_percent":22}',
        '{"amount":45,"currency":"EUR","evidence":["photo"],"reason":"defective","share_of_payment_percent":50}',
        '{"amount":45,"currency":"EUR","evidence":["photo"],"reason":"defective"}',
        '{"discount_percent":20,"margin_percent":22}',
    ]
    assert facts["known"].to_list() == [True] * 4
    assert facts["amount:number"].to_list() == [None, 45.0, 45.0, None]
    assert facts["share_of_payment_percent:type"].to_list() == [None, "number", "absent", None]
    assert facts["evidence:json"].to_list() == [None, '["photo"]', '["photo"]', None]
    decided = found.table("decisions").sort("position").collect()
    records = [instance.gate().decision(authority, decision_id) for decision_id in chain.decided]
    told = [record and record.get("trusted_adapter") for record in records]
    assert decided["adapter"].to_list() == [None, "refund_facts@1.0.0", "refund_facts@1.0.0", None]
    for name in ("manifest_hash", "input_hash"):
        assert decided[f"adapter_{name}"].to_list() == [None if of is None else of[name] for of in told]
    assert decided["rule"].to_list()[1:3] == ["rule:pay_small", "schema:failed"]
    claims = found.cases().filter(pl.col("policy_id") == "claims").collect()
    assert claims["outcome_status"].to_list() == ["succeeded"] * 2
    assert faults(instance, lake, scope) == []


def test_facts_that_an_adapter_made_are_in_no_file_any_more_once_they_were_erased(
    instance: Instance,
    lake: Path,
    scope: Scope,
    chain: Chain,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
) -> None:
    secret = "needle-7f3a"
    erased = chain.decide(claim_request(claim={"reason": secret}))
    chain.decide(claim_request(claim={"reason": "defective"}))
    export()
    compact()
    assert [file for file in lake.rglob("*.parquet") if secret.encode() in _unpacked(file)]
    chain.erase(erased)
    tail = fresh(instance.ledger, lake, scope.scope_id, Personal())
    assert tail.facts(["reason"]).sort("position").collect()["reason:string"].to_list() == [None, "defective"]
    export()
    assert not [file for file in lake.rglob("*.parquet") if secret.encode() in _unpacked(file)]
    assert faults(instance, lake, scope) == []

    # Made anew, the lake never had them; what is not known is not taken for a decision without facts.
    shutil.rmtree(directory_of(lake, scope.scope_id))
    export()
    facts = snapshot().facts(["reason"]).sort("position").collect()
    assert facts["known"].to_list() == [False, True]
    assert facts["inputs"][0] is None
    assert facts["reason:type"].to_list() == [None, "string"]
    assert snapshot().table("decisions").collect()["adapter"].to_list() == ["refund_facts@1.0.0"] * 2
    assert faults(instance, lake, scope) == []


def _unpacked(file: Path) -> bytes:
    return pl.read_parquet(file).write_json().encode()


def test_facts_that_an_adapter_made_are_left_out_where_they_are_marked(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, export: Step, snapshot: Callable[[], Snapshot]
) -> None:
    chain.decide(claim_request())
    export(personal=Personal.of(["inputs.reason", "inputs.amount"]))
    facts = snapshot().facts(["amount", "reason"]).collect()
    assert facts["inputs"].to_list() == ['{"currency":"EUR","evidence":["photo"],"share_of_payment_percent":50}']
    assert facts["amount:type"].to_list() == facts["reason:type"].to_list() == ["withheld"]
    assert faults(instance, lake, scope) == []


def test_what_is_changed_in_the_facts_of_an_adapter_or_in_its_name_is_found(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, export: Step
) -> None:
    chain.decide(claim_request())
    manifest = export()
    followed = instance.ledger.tail.scope(scope.scope_id)
    for table, column in (("facts", "inputs"), ("decisions", "adapter"), ("decisions", "adapter_input_hash")):
        (file,) = manifest.of(table)
        path = lake / file.path
        content = path.read_bytes()
        pl.read_parquet(path).with_columns(pl.lit("{}").alias(column)).write_parquet(path)
        told = replace(file, sha256=sha256(path.read_bytes()).hexdigest(), bytes=path.stat().st_size)
        forged = replace(manifest, files=(*(of for of in manifest.files if of is not file), told))
        assert [found.check for found in verify(lake, forged, instance.ledger, followed)] == ["ledger"]
        path.write_bytes(content)


def test_a_name_that_is_no_column_cannot_be_marked_as_personal() -> None:
    with pytest.raises(OperatorError, match="merkle_root") as caught:
        Personal.of(["merkle_root"])
    assert caught.value.code == "SETTINGS_INVALID"
    for path in ("inputs.", "inputs.a..b", "inputs.a."):
        with pytest.raises(OperatorError):
            Personal.of([path])


def test_duckdb_and_pandas_read_what_polars_reads(
    chain: Chain, export: Step, compact: Step, lake: Path, snapshot: Callable[[], Snapshot]
) -> None:
    import duckdb
    import pandas

    chain.grow()
    export(batch=11)
    for table in ("cases", "metrics"):
        for refused in (open_lake(lake).sql, open_lake(lake).files):
            with pytest.raises(OperatorError, match=table) as caught:
                refused(table)
            assert caught.value.code == "LAKE_NOT_COMPACTED"
        assert duckdb.connect().execute(open_lake(lake).sql(table, stale=True)).fetchall() == []
    compact()
    opened = open_lake(lake)
    expected = snapshot().table("cases").collect().group_by("outcome_status").len().sort("outcome_status")
    connection = duckdb.connect()
    found = connection.execute(
        f"SELECT outcome_status, count(*) FROM ({opened.sql('cases')}) GROUP BY ALL"  # noqa: S608
    ).fetchall()
    assert sorted(found, key=str) == sorted(expected.rows(), key=str)
    for table in TABLES:
        frame = pandas.read_parquet(opened.files(table)) if opened.files(table) else []
        assert len(frame) == snapshot().table(table).collect().height
        assert connection.execute(f"SELECT count(*) FROM ({opened.sql(table)})").fetchone() == (len(frame),)  # noqa: S608


def test_a_table_without_rows_has_the_types_of_its_columns_in_duckdb(
    lake: Path, chain: Chain, export: Step, compact: Step
) -> None:
    import duckdb

    chain.decide(discount_percent=10, margin_percent=22)
    export()
    compact()
    opened, connection = open_lake(lake), duckdb.connect()
    for table in TABLES:
        if not opened.files(table):
            assert connection.execute(opened.sql(table)).fetchall() == []
    query = f"SELECT date_trunc('month', reported_at), median(value) FROM ({opened.sql('metrics')}) GROUP BY ALL"  # noqa: S608
    assert connection.execute(query).fetchall() == []
    query = f"SELECT unnest(observed_metrics).value + 1 FROM ({opened.sql('outcomes')})"  # noqa: S608
    assert connection.execute(query).fetchall() == []


def test_a_lake_that_was_opened_stays_as_it_was_while_it_is_compacted(
    lake: Path, chain: Chain, export: Step, compact: Step, snapshot: Callable[[], Snapshot]
) -> None:
    chain.grow()
    export(batch=5)
    before = snapshot()
    expected = rows(before)
    chain.grow()
    export()
    compact()
    for name, frame in rows(before).items():
        assert_frame_equal(frame, expected[name])


def test_files_that_were_replaced_linger_an_hour(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, export: Step
) -> None:
    chain.grow()
    export(batch=5)
    followed = instance.ledger.tail.scope(scope.scope_id)
    assert followed is not None
    exported = load(lake, scope.scope_id)
    assert exported is not None
    now = 1_000_000.0
    *_, manifest = Compactor(lake, clock=lambda: now).compact(exported)
    gone = [lake / file.path for file in manifest.retired]
    assert gone
    for later, there in ((LINGER - 1, True), (LINGER + 1, False)):
        # The files themselves are of now; what the manifest says of them is what counts.
        for file in gone:
            if file.exists():
                os.utime(file, (0, 0))
        chain.decide(discount_percent=1, margin_percent=20)
        followed = instance.ledger.tail.scope(scope.scope_id)
        assert followed is not None
        list(Exporter(instance.ledger, lake, clock=lambda later=later: now + later).export(followed))  # type: ignore[misc]
        assert [file.exists() for file in gone] == [there] * len(gone)
    assert faults(instance, lake, scope) == []


def test_a_lake_of_another_ledger_is_refused(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, export: Step, tmp_path: Path
) -> None:
    chain.grow(2)
    file = directory_of(lake, scope.scope_id) / FILE_NAME
    export()
    told = orjson.loads(file.read_bytes())
    manifest = load(lake, scope.scope_id)
    assert manifest is not None
    for change in ({"merkle_root": "0" * 64}, {"position": 10_000}):
        changed = Manifest(**{name: getattr(manifest, name) for name in Manifest.__slots__} | change)
        file.write_bytes(orjson.dumps(changed.to_dict()))
        with pytest.raises(OperatorError) as caught:
            export()
        assert caught.value.code == "LAKE_OF_ANOTHER_LEDGER"
        assert str(scope.name) in caught.value.message
    file.write_bytes(orjson.dumps(told))
    export()


@pytest.mark.parametrize("name", [field for field in Manifest.__slots__ if field not in ("scope_id", "scope")])
def test_a_manifest_that_was_changed_is_refused(brought: Brought, copied: Path, name: str) -> None:
    file = directory_of(copied, brought.made.scope.scope_id) / FILE_NAME
    told = orjson.loads(file.read_bytes())
    numbers = {"position": 1, "generation": 99, "compacted": 1}
    told[name] = numbers.get(name, ["x"] if name in ("files", "personal", "retired") else "x")
    file.write_bytes(orjson.dumps(told))
    with pytest.raises(OperatorError) as caught:
        load(copied, brought.made.scope.scope_id)
    assert caught.value.code == "LAKE_MANIFEST_INVALID"


def damaged(lake: Path, manifest: Manifest, table: str) -> Iterator[tuple[str, Manifest]]:
    """A lake damaged in several ways, one after another, each undone before the next: what was done, and a manifest
    that agrees with the file as it is.
    """
    file = manifest.of(table)[0]
    path = lake / file.path
    content = path.read_bytes()
    frame = pl.read_parquet(path)
    changes: dict[str, pl.DataFrame] = {
        "left out": frame.head(frame.height - 1),
        "doubled": pl.concat([frame, frame.tail(1)]),
    }
    for column, change in {
        "decision_id": pl.col("decision_id") + "x",
        "record_hash": pl.lit("0" * 64),
        "leaf_hash": pl.lit("0" * 64),
        "merkle_root": pl.lit("0" * 64),
        "policy_id": pl.col("policy_id") + "x",
        "link_hash": pl.lit("0" * 64),
    }.items():
        if column in frame.columns:
            changes[column] = frame.with_columns(change.alias(column))
    for what, changed in changes.items():
        changed.write_parquet(path)
        yield what, manifest
    path.write_bytes(content)
    path.unlink()
    yield "removed", manifest
    path.write_bytes(content)


@pytest.mark.parametrize(
    "table", ["decisions", "executions", "outcomes", "crm_syncs", "facts", "rulebooks", "cases", "metrics"]
)
def test_whatever_is_changed_in_a_file_is_found(brought: Brought, copied: Path, table: str) -> None:
    for what, _ in damaged(copied, brought.manifest, table):
        assert faults(brought.made.instance, copied, brought.made.scope) == ["files"], what
    assert faults(brought.made.instance, copied, brought.made.scope) == []


def forged(lake: Path, manifest: Manifest, table: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Manifest:
    """A manifest that agrees with a file of changed rows."""
    file = manifest.of(table)[0]
    path = lake / file.path
    changed = change(pl.read_parquet(path))
    changed.write_parquet(path)
    content = path.read_bytes()
    ends: dict[str, Any] = {"first_position": changed["position"].min(), "last_position": changed["position"].max()}
    told = replace(file, rows=changed.height, bytes=len(content), sha256=sha256(content).hexdigest(), **ends)
    return replace(manifest, files=tuple(told if of.path == file.path else of for of in manifest.files))


def beyond(frame: pl.DataFrame) -> pl.DataFrame:
    """With a copy of a row at a position that the chain has not."""
    return pl.concat([frame, frame.head(1).with_columns(pl.col("position") + 1_000)])


def nowhere(frame: pl.DataFrame) -> pl.DataFrame:
    """With a copy of a row at no position."""
    return pl.concat([frame, frame.head(1).with_columns(pl.lit(None, pl.Int64).alias("position"))])


def at_noon(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """With another time in a column."""
    return frame.with_columns(pl.lit(datetime(2026, 1, 31, 12, tzinfo=UTC)).cast(TIME).alias(column))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("table", "change", "check"),
    [
        *((table, beyond, "rows") for table in ("outcomes", "decisions", "facts", "cases", "metrics")),
        *((table, nowhere, "rows") for table in ("outcomes", "cases", "metrics")),
        ("metrics", lambda frame: frame.with_columns(pl.col("position") - pl.col("position").min()), "rows"),
        ("metrics", lambda frame: frame.with_columns(pl.col("value").cast(pl.Float32)), "rows"),
        ("outcomes", lambda frame: frame.with_columns(pl.lit(1).alias("record_hash")), "rows"),
        ("outcomes", lambda frame: frame.head(frame.height - 1), "chain"),
        ("outcomes", lambda frame: pl.concat([frame, frame.head(1)]), "chain"),
        ("decisions", lambda frame: frame.with_columns(pl.lit("0" * 64).alias("receipt_hash")), "chain"),
        ("decisions", lambda frame: frame.with_columns(decision_id=pl.col("decision_id") + "x"), "chain"),
        ("crm_syncs", lambda frame: frame.with_columns(pl.lit("0" * 64).alias("record_hash")), "chain"),
        ("cases", lambda frame: frame.with_columns(outcomes=pl.col("outcomes") + 1), "cases"),
        (
            "cases",
            lambda frame: frame.with_columns(pl.lit("no").cast(frame["verdict"].dtype).alias("verdict")),
            "cases",
        ),
        ("metrics", lambda frame: frame.with_columns(pl.col("value") + 1), "metrics"),
        ("metrics", lambda frame: frame.head(frame.height - 1), "metrics"),
        ("outcomes", lambda frame: frame.with_columns(pl.lit("forged").alias("external_ref")), "ledger"),
        ("decisions", lambda frame: frame.with_columns(pl.lit(1.0).alias("amount")), "ledger"),
        ("resolutions", lambda frame: frame.with_columns(pl.lit("0" * 64).alias("record_hash")), "chain"),
        (
            "resolutions",
            lambda frame: frame.with_columns(pl.lit("granted").cast(frame["resolution"].dtype).alias("resolution")),
            "cases",
        ),
        ("resolutions", lambda frame: at_noon(frame, "recorded_at"), "cases"),
        ("resolutions", lambda frame: at_noon(frame, "expires_at"), "ledger"),
        ("cases", lambda frame: frame.with_columns(waiting_seconds=pl.col("waiting_seconds") + 1), "cases"),
        ("facts", lambda frame: frame.with_columns(pl.lit("{}").alias("inputs")), "ledger"),
        ("facts", lambda frame: frame.with_columns(pl.lit(1.0).alias("margin_percent:number")), "ledger"),
        ("decisions", lambda frame: at_noon(frame, "occurred_at"), "cases"),
        ("outcomes", lambda frame: at_noon(frame, "occurred_at"), "cases"),
        ("executions", lambda frame: at_noon(frame, "executed_at"), "cases"),
        ("cases", lambda frame: at_noon(frame, "first_outcome_event_at"), "cases"),
        ("metrics", lambda frame: at_noon(frame, "occurred_at"), "metrics"),
        ("facts", lambda frame: at_noon(frame, "occurred_at"), "ledger"),
    ],
)
def test_rows_that_a_forged_manifest_agrees_with_are_held_against_the_chain_and_the_ledger(
    brought: Brought, copied: Path, table: str, change: Callable[[pl.DataFrame], pl.DataFrame], check: str
) -> None:
    assert brought.checks(copied, forged(copied, brought.manifest, table, change)) == [check]


@pytest.mark.parametrize("table", list(ENTRY_TABLES.values()))
def test_a_lake_with_a_column_of_another_type_is_said_to_be_damaged(
    lake: Path, chain: Chain, export: Step, compact: Step, instance: Instance, scope: Scope, table: str
) -> None:
    chain.grow(6)
    chain.resolve(chain.hold())
    chain.erase(chain.decided[2])
    chain.route(scope, "1")
    export()
    manifest = forged(lake, compact(), table, lambda frame: frame.with_columns(pl.col("position").cast(pl.Int32)))
    followed = instance.ledger.tail.scope(scope.scope_id)
    (found,) = verify(lake, manifest, instance.ledger, followed)
    assert found.check == "rows"
    assert "position" in found.detail


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"compacted": 1_000_000}, "rows"),
        ({"compacted": 0}, "rows"),
        ({"compacted": -1}, "rows"),
    ],
)
def test_a_forged_manifest_that_says_that_more_or_less_was_resolved_is_told_of(
    brought: Brought, copied: Path, change: dict[str, Any], check: str
) -> None:
    found = list(verify(copied, replace(brought.manifest, **change)))
    assert {fault.check for fault in found} == {check}


@pytest.mark.parametrize("change", [{"merkle_root": "0" * 64}, {"chain_position": 1}, {"chain_position": 1_000}])
def test_a_forged_manifest_that_binds_a_file_to_another_place_of_the_chain_is_told_of(
    brought: Brought, copied: Path, change: dict[str, Any]
) -> None:
    for file in brought.manifest.files:
        others = tuple(of for of in brought.manifest.files if of is not file)
        forged_ = replace(brought.manifest, files=(*others, replace(file, **change)))
        assert [found.check for found in verify(copied, forged_)] == ["chain"]


@pytest.mark.parametrize("earlier", [f"decision_lake_v{number}" for number in range(1, 7)])
def test_a_lake_of_an_earlier_release_is_made_anew(
    earlier: str,
    lake: Path,
    chain: Chain,
    export: Step,
    compact: Step,
    instance: Instance,
    scope: Scope,
    snapshot: Callable[[], Snapshot],
) -> None:
    chain.grow(6)
    export()
    compact()
    expected = rows(snapshot())
    file = directory_of(lake, scope.scope_id) / FILE_NAME
    file.write_text(file.read_text().replace(LAKE_VERSION, earlier))
    with pytest.raises(OperatorError, match="gate lake export"):
        open_lake(lake)
    assert fresh(instance.ledger, lake, scope.scope_id, Personal()).manifest.position == 0
    export()
    compact()
    for name, frame in rows(snapshot()).items():
        assert_frame_equal(frame, expected[name])
    assert faults(instance, lake, scope) == []
    assert len(list(lake.rglob("*.parquet"))) == len(snapshot().manifest.files) + len(snapshot().manifest.retired)


def test_outcomes_that_measured_very_much_are_resolved_in_several_steps_and_files(
    lake: Path,
    chain: Chain,
    export: Step,
    compact: Step,
    instance: Instance,
    scope: Scope,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(6):
        decision_id = chain.decide(discount_percent=10, margin_percent=22)
        chain.outcome(decision_id, observed_metrics={f"{number} {name} {'x' * 60}": name for name in range(40)})
        export()
    monkeypatch.setattr(compaction, "LARGE", 6_000)
    before = load(lake, scope.scope_id)
    assert before is not None
    steps = list(Compactor(lake).compact(before, many=100))
    assert len({manifest.compacted for manifest in steps}) > 3
    files = steps[-1].of("metrics")
    assert [file.rows for file in files] == [40] * 6
    chain.outcome(chain.decided[2], "reverted", observed_metrics={"hours": 1})
    export()
    compact()
    assert faults(instance, lake, scope) == []


class Crash(BaseException):
    """Stands for the end of the process, which nothing catches."""


@pytest.mark.heavy
def test_a_crash_at_any_step_loses_and_doubles_nothing(
    instance: Instance,
    lake: Path,
    scope: Scope,
    chain: Chain,
    export: Step,
    compact: Step,
    snapshot: Callable[[], Snapshot],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every call by which something becomes durable or goes is once the last thing that the process does."""
    monkeypatch.setattr(compaction, "STEP", 12)
    monkeypatch.setattr(compaction, "FULL", 8)
    chain.grow(4)
    chain.erase(chain.decided[1])
    chain.grow(3)
    export()
    compact()
    expected = rows(snapshot())
    calls: Counter[str] = Counter()
    crash_at: tuple[str, int] = ("", 0)
    crashed: list[str] = []

    def crashing(call: Callable[..., Any]) -> Callable[..., Any]:
        name = call.__name__

        def counted(*arguments: Any, **named: Any) -> Any:
            calls[name] += 1
            if crash_at == (name, calls[name]):
                crashed.append(name)
                raise Crash
            return call(*arguments, **named)

        return counted

    for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink")):
        monkeypatch.setattr(owner, name, crashing(getattr(owner, name)))

    def completes() -> bool:
        shutil.rmtree(lake)
        lake.mkdir()
        calls.clear()
        try:
            export(batch=9)
            compact()
        except Crash:
            return False
        return True

    # How many calls there are differs from run to run, so each kind is counted by itself.
    for kind, apart in (("fsync", 30), ("replace", 30), ("unlink", 1)):
        crash_at = (kind, 1)
        while not completes():
            assert faults(instance, lake, scope) == [] if load(lake, scope.scope_id) else True
            export(batch=9)
            compact()
            assert faults(instance, lake, scope) == []
            for name, frame in rows(snapshot()).items():
                assert_frame_equal(frame, expected[name])
            crash_at = (kind, crash_at[1] + size(apart, 1))
    assert len(crashed) > size(4, 70)
    assert {*crashed} == {"fsync", "replace", "unlink"}


def test_scopes_do_not_mix(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, export: Step, authority: Authority
) -> None:
    import duckdb
    import pandas

    other = scope_of_old(instance.ledger, "other ' --", "unlimited", utc_now())
    key = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())[0]
    theirs = Chain(instance, instance.ledger.directory.authenticate(key, utc_now()))
    chain.grow(3)
    theirs.grow(2)
    for followed in instance.ledger.tail.scopes():
        list(Exporter(instance.ledger, lake).export(followed))
    opened = open_lake(lake)
    assert opened.scopes == ["acme", "other ' --"]
    assert opened.scope("acme").table("decisions").collect().height == 3
    assert opened.table("decisions").collect().height == 5
    assert duckdb.connect().execute(opened.sql("cases", stale=True)).fetchall() == []
    assert len(duckdb.connect().execute(opened.sql("decisions")).fetchall()) == 5
    assert len(duckdb.connect().execute(opened.scope("acme").sql("decisions")).fetchall()) == 3
    assert len(pandas.read_parquet(opened.scope("other ' --").files("decisions"))) == 2
    assert set(opened.files("decisions")) == {
        file for name in opened.scopes for file in opened.scope(name).files("decisions")
    }
    with pytest.raises(OperatorError) as caught:
        opened.scope("nobody")
    assert caught.value.code == "LAKE_SCOPE_UNKNOWN"


def test_what_is_not_there_is_said_in_a_sentence(tmp_path: Path, lake: Path) -> None:
    with pytest.raises(OperatorError) as caught:
        open_lake(tmp_path / "nowhere")
    assert caught.value.code == "LAKE_MISSING"
    with pytest.raises(OperatorError) as caught:
        open_lake(lake)
    assert caught.value.code == "LAKE_MISSING"


def test_what_was_meant_is_said_where_it_can_be_told(
    instance: Instance, lake: Path, chain: Chain, export: Step, snapshot: Callable[[], Snapshot]
) -> None:
    chain.grow(1)
    export()
    with pytest.raises(OperatorError) as caught:
        open_lake(lake.parent)
    assert caught.value.code == "LAKE_MISSING"
    assert f"Did you mean {lake}?" in caught.value.message
    with pytest.raises(OperatorError) as caught:
        open_lake(lake).table("invoices")
    assert caught.value.code == "LAKE_TABLE_UNKNOWN"
    with pytest.raises(OperatorError) as caught:
        snapshot().facts("margin_percent")
    assert caught.value.code == "LAKE_FACT_INVALID"
    assert snapshot().fact_fields() == ["discount_percent", "margin_percent"]
    assert (repr(open_lake(lake)), repr(snapshot())) == (
        "<Lake lake: acme>",
        f"<Snapshot of acme: {snapshot().position} entries>",
    )
