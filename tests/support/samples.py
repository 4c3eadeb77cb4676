"""What several tests need: the sample rulebook, requests over it, records made from fixed keys."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from alembic import command
from alembic.config import Config
from sqlalchemy import Dialect, MetaData, insert, inspect, select, table, text

from gate.encoding import resources
from gate.encoding.canonical import canonical, content_hash
from gate.encoding.strict_json import MAX_VERIFY_DEPTH, parse
from gate.ids import timestamp
from gate.ledger import Ledger, schema
from gate.ledger.packing import unpack
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.stores.store import Statement, Store
from gate.policy.confidence import Counts, Coverage, decision_confidence
from gate.policy.effectiveness import Counted, Group, Metric, Standing
from gate.policy.questions import AnomaliesQuestion, BenchmarksQuestion, ConfidenceQuestion, EffectivenessQuestion
from gate.policy.reports import confidence_report
from gate.proof import chain
from gate.proof.chain import link_material
from gate.proof.checkpoint import sign_checkpoint
from gate.proof.signing import Ed25519Signer, KeyRegistry, PublicKey, Signer
from gate.records.attestation import registration
from gate.records.changes import Actor
from gate.records.envelope import input_material
from gate.records.packet import build_packet
from gate.records.record import Identity, Signers, build_record
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, KINDS, OUTCOMES, Kind, build, report_link
from gate.records.reports.resolution import Resolving, build_resolution, resolution_link
from gate.records.request import read_request
from gate.rulebooks.facts import Facts, dependency_of
from gate.rulebooks.patterns import find_pattern
from gate.rulebooks.rulebook import load
from gate.verify import Trust
from tests.support.reports import FixedReports

Answer = TypeVar("Answer")

CASES: Final = Path(__file__).parents[1] / "cases"
VECTORS: Final = Path(__file__).parents[1] / "vectors"

NOW: Final = datetime(2026, 6, 11, 12, 30, 45, 678_000, UTC)
SCHEMA_URL: Final = "https://gate.example/schemas/rulebook-v1.schema.json"
RECEIPT_SIGNER: Final = Ed25519Signer("receipt_test", bytes(range(32)))
REGISTRY_SIGNER: Final = Ed25519Signer("registry_test", bytes(range(32, 64)))

REPORTS: Final[dict[str, dict[str, Any]]] = {
    "execution": {"execution_status": "executed"},
    "outcome": {"outcome_status": "succeeded"},
    "crm-sync": {"sync_status": "written"},
}
"""The smallest report of each kind."""


PILOT: Final[dict[str, str]] = {
    "name": "Ada Example",
    "email": "ada@example.com",
    "company": "Example Ltd",
    "use": "Refunds before our agents pay them out.",
}
"""A submission for a pilot."""


def cases(name: str) -> list[Any]:
    """The cases of tests/cases/<name>.json."""
    found: list[Any] = json.loads((CASES / f"{name}.json").read_text())
    return found


def case_bytes(case: dict[str, Any]) -> bytes:
    """The bytes that a case tells: `text`, `hex`, `repeat` [piece, count], `pieces` of those, or `nest` [opening,
    closing, depth] around `middle`.
    """
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    if "nest" in case:
        opening, closing, depth = case["nest"]
        return str(opening * depth + case["middle"] + closing * depth).encode()
    return case_text(case).encode()


def case_text(case: dict[str, Any]) -> str:
    """The text that a case tells: `text`, `repeat` [piece, count], or `pieces` of those."""
    pieces = case.get("pieces", [case.get("repeat", (case.get("text"), 1))])
    return "".join(piece * count for piece, count in pieces)


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, and of the same types: 1 is neither 1.0 nor true."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)


def sample_rulebook() -> dict[str, Any]:
    """A fresh copy of the sample rulebook."""
    body: dict[str, Any] = parse(resources.path("data", "rulebooks", "pricing_exception.json").read_bytes())
    return body


def sample_request(**inputs: Any) -> dict[str, Any]:
    """A Decision Request over the sample rulebook; by default its facts are approved."""
    return {
        "mode": "rulebook",
        "rulebook": sample_rulebook(),
        "context": {
            "workflow": "pricing",
            "source_record_id": "opp-77",
            "requested_action": "approve_discount",
            "target_system": "crm",
            "target_object_id": "deal-1042",
            "mutation": "discount.update",
            "actor": {"type": "agent", "id": "a-1"},
            "subject": "customer-9",
            "amount": 1200.50,
            "currency": "EUR",
            "inputs": inputs or {"discount_percent": 10, "margin_percent": 22},
        },
    }


def sqlite_file(ledger: Ledger) -> Path:
    """The file of a ledger that is kept in SQLite."""
    assert isinstance(ledger.store, SqliteLedgerStore)
    return ledger.store.database


def ledger_url(ledger: Ledger) -> str:
    """The URL under which other processes open the same ledger."""
    return ledger.store.engine.url.render_as_string(hide_password=False).replace("+psycopg", "")


def public_key(signer: Ed25519Signer, *, status: str = "active", not_after: str | None = None) -> PublicKey:
    """The registry entry of a test signer."""
    return PublicKey(signer.key_id, "ed25519", signer.public_key, status, "2026-01-01T00:00:00.000Z", not_after)


RECEIPT_KEYS: Final = KeyRegistry((public_key(RECEIPT_SIGNER),), RECEIPT_SIGNER.key_id)
ATTESTATION_KEYS: Final = KeyRegistry((public_key(REGISTRY_SIGNER),), REGISTRY_SIGNER.key_id)
TRUST: Final = Trust(receipt_keys=RECEIPT_KEYS, attestation_keys=ATTESTATION_KEYS, source="registry")
SIGNERS: Final = Signers(RECEIPT_SIGNER, REGISTRY_SIGNER)


def make_record(
    request: dict[str, Any] | None = None,
    *,
    signers: Signers = SIGNERS,
    idempotency_key: str | None = "order-1",
    serial: int = 1,
    facts: Facts | None = None,
) -> Any:
    """A full record over fixed ids, date and keys, the first link of its chain; over the facts of an adapter where they
    are given.
    """
    body = sample_request() if request is None else request
    read = read_request(body, content_hash(input_material(body)))
    rulebook = load(read.rulebook)
    facts = facts or Facts(read.inputs, plain=False)
    dependency = None if facts.trusted_adapter is None else dependency_of(facts.trusted_adapter)
    registered = registration(
        rulebook.reference, "scope-1", timestamp(NOW), signers.registry, adapter_dependency=dependency
    )
    identity = Identity(f"dec_{serial:032x}", f"req_{serial:032x}", idempotency_key, timestamp(NOW))
    explained = rulebook.evaluator.explain(facts.values)
    record = build_record(read, rulebook, registered, facts, explained, identity, signers, schema_url=SCHEMA_URL)
    link = chain.append(chain.Head("chain_test"), link_material(record))
    return {**record, "audit_chain": chain.record_link(link)}


EXECUTED: Final[dict[str, Any]] = {
    "execution_status": "executed",
    "execution_result": "done",
    "action_taken": "approve_discount",
    "target_system": "crm",
    "target_object_id": "deal-1042",
    "mutation": "discount.update",
    "external_ref": "tx-1",
    "execution_id": "run-1",
    "executor": {"type": "service", "id": "billing"},
    "state_before_hash": "sha256:0",
    "state_before_ref": "s3://states/0",
    "evidence_refs": ["log-1", "log-2"],
    "executed_at": "2026-06-11T14:31:00+02:00",
}
SUCCEEDED: Final[dict[str, Any]] = {
    "outcome_status": "succeeded",
    "action_executed": True,
    "action_taken": "approve_discount",
    "observed_metrics": {"discount_percent": 10, "margin": 0.5},
    "evidence_refs": ["invoice-1"],
}


HELD: Final[dict[str, Any]] = {"discount_percent": 40, "margin_percent": 22}
"""Inputs over which the sample rulebook holds the action for its owner."""

GRANT: Final[dict[str, Any]] = {
    "resolution": "granted",
    "resolved_by": "Maya Lindqvist",
    "note": "A framework customer; agreed with sales.",
    "evidence": ["ticket-4711"],
}


def make_resolution(
    record: Any = None,
    *,
    head: chain.Head | None = None,
    body: dict[str, Any] = GRANT,
    signer: Signer | None = RECEIPT_SIGNER,
) -> Any:
    """A resolution of a held decision, over fixed ids, dates and keys: by default the next link behind its decision."""
    held = make_record(sample_request(**HELD)) if record is None else record
    expires_at = timestamp(NOW + timedelta(hours=4)) if body["resolution"] == "granted" else None
    actor: Actor = {"type": "key", "id": "8f7f47779ccb4ee47ae61c65"}
    resolving = Resolving(body["resolution"], actor, timestamp(NOW), expires_at, body, "grant-1")
    resolution = build_resolution(held, resolving, f"res_{1:032x}", signer)
    before = chain.head_of(chain.append(chain.Head("chain_test"), link_material(held))) if head is None else head
    return {**resolution, "audit_chain": chain.record_link(chain.append(before, resolution_link(resolution, held)))}


def make_packet(
    *,
    record: Any = None,
    resolved: dict[str, Any] | None = None,
    signer: Signer | None = RECEIPT_SIGNER,
    chain_limit: int = 1000,
    with_input: bool = True,
) -> Any:
    """A packet of two execution receipts and two outcomes, over fixed ids, date and keys.

    Its chain has an entry before the decision, a foreign one between the reports, and a CRM sync at its end. Where the
    body of a resolution is given, the decision is held, and it is resolved between the first receipt and the second.
    """
    request = sample_request() if resolved is None else sample_request(**HELD)
    made: Any = make_record(request) if record is None else record
    resolution: Any = None
    counts = Counts(succeeded=30, failed=1)
    confidence = decision_confidence(made["verdict"], counts, counts)
    made = {**made, "decision_confidence": confidence, "confidence_hash": confidence["confidence_hash"]}
    foreign = link_material(make_record(serial=2))
    links = [chain.append(chain.Head("chain_test"), foreign)]
    links.append(chain.append(chain.head_of(links[-1]), link_material(made)))
    made = {**made, "audit_chain": chain.record_link(links[-1])}
    reports: dict[str, list[Any]] = {kind.name: [] for kind in KINDS}
    told: list[tuple[Kind, dict[str, Any], str | None]] = [
        (EXECUTIONS, {"execution_status": "queued"}, None),
        (OUTCOMES, {"outcome_status": "pending"}, None),
        (EXECUTIONS, EXECUTED, "run-1"),
        (OUTCOMES, SUCCEEDED, "outcome-1"),
        (CRM_SYNCS, {"sync_status": "written"}, None),
    ]
    for number, (kind, body, key) in enumerate(told, start=1):
        if number == 3:
            links.append(chain.append(chain.head_of(links[-1]), foreign))
        if number == 3 and resolved is not None:
            resolution = make_resolution(made, head=chain.head_of(links[-1]), body=resolved, signer=signer)
            links.append(chain.append(chain.head_of(links[-1]), resolution_link(resolution, made)))
        granted = resolution is not None and resolution["resolution"] == "granted"
        id_ = f"{kind.id_prefix}_{number:032x}"
        report = build(kind, made, body, id_, idempotency_key=key, reported_at=timestamp(NOW), granted=granted)
        links.append(chain.append(chain.head_of(links[-1]), report_link(kind, report)))
        reports[kind.name].insert(0, {**report, "audit_chain": chain.record_link(links[-1])})
    retained = links[1 : 1 + chain_limit]
    coverage = Coverage({"2026-06-11": counts}, counts, timestamp(NOW), timestamp(NOW), truncated=False)
    policy_id, version = made["policy_id"], made["policy_version"]
    similar = ConfidenceQuestion(policy_id, policy_version=version, verdict=made["verdict"], action=made["action"])
    counting = FixedReports(_counted(made, links[-1]))
    packet = build_packet(
        made,
        reports[EXECUTIONS.name],
        reports[OUTCOMES.name],
        exported_at=timestamp(NOW),
        resolution=resolution,
        intelligence={
            "effectiveness": counting.answer("", EffectivenessQuestion(policy_id, policy_version=version)),
            "confidence": confidence_report(coverage, similar),
            "anomalies": counting.answer("", AnomaliesQuestion(policy_id)),
            "benchmarks": counting.answer("", BenchmarksQuestion(policy_id)),
            "patterns": [pattern for pattern in (find_pattern(policy_id),) if pattern is not None],
        },
        links=retained,
        checkpoint=None if signer is None else sign_checkpoint(chain.head_of(retained[-1]), timestamp(NOW), signer),
        with_input=with_input,
        request_body=request,
    )
    return parse(canonical(packet), max_depth=MAX_VERIFY_DEPTH)


def _counted(record: Any, link: chain.Link) -> Counted:
    """What came of the decisions of a record's policy, 31 of them, up to a link of the chain."""
    standing = Standing(succeeded=30, failed=1)
    return Counted(
        by_version={record["policy_version"]: Group(standing, timestamp(NOW), timestamp(NOW))},
        by_verdict={record["verdict"]: standing},
        by_rule={"rule:approve_standard_exception": standing},
        by_week={"2026-06-08": standing},
        by_disposition={"let_through": standing},
        metrics=(Metric("margin", 1, 0.5, 0.5, 0.5),),
        first=timestamp(NOW),
        last=timestamp(NOW),
        chain_position=link["chain_position"],
        merkle_root=link["merkle_root"],
        truncated=False,
    )


def in_threads(count: int, work: Callable[[int], Answer]) -> list[Answer]:
    """What `work` answers to 0, 1, 2 and so on, each called in a thread of its own, all at the same moment."""
    start = threading.Barrier(count)

    def run(number: int) -> Answer:
        start.wait(60)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


class LimitClock(Statement):
    """Stands for both clocks that rate limits read: Python's monotonic one, and the query for the server's."""

    def __init__(self) -> None:
        """Begins in 2026."""
        super().__init__(text("SELECT now()"))
        self.now = 1_780_000_000.0

    def monotonic(self) -> float:
        """As time.monotonic."""
        return self.now

    def on(self, dialect: Dialect) -> tuple[str, Callable[[Any], Any]]:
        """As a statement that asks the server."""
        return f"SELECT {self.now!r}::double precision", dict


def rows_of(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of the ledger, byte for byte."""
    with store.read() as connection:
        names = {*inspect(connection).get_table_names()} - {"alembic_version", "rate_windows"}
        rows = {name: connection.execute(select(text("*")).select_from(table(name))) for name in sorted(names)}
        return {name: sorted(map(tuple, found), key=repr) for name, found in rows.items()}


def _as_packed(revision: str, stored: Any) -> Any:
    """A stored value as an earlier release packed it: not at all, or deflated."""
    if not isinstance(stored, bytes) or (body := unpack(stored)) == stored:
        return stored
    return body if revision == "0001" else zlib.compress(body)


# How long a claim is that is stored under its digest alone.
_DIGEST = 32


def copy_as_release(source: Store, target: Store, revision: str = "0001") -> None:
    """Lays a ledger out in an empty database as an earlier release did, with what another ledger holds.

    Args:
        source: The other ledger, of this release; it holds nothing that there was no table for.
        target: The database.
        revision: The schema of the release: 0001, the first, or a later one.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parent / "schema_versions"))
    with source.read() as reading, target.write() as writing:
        config.attributes["connection"] = writing
        command.upgrade(config, revision)
        new, old = MetaData(), MetaData()
        new.reflect(reading)
        old.reflect(writing)
        heads = new.tables["chain_heads"].c
        plans = {row.scope_id: row.plan for row in reading.execute(select(heads.scope_id, heads.plan))}
        for table in old.sorted_tables:
            if table.name in new.tables and table.name != "alembic_version":
                rows = reading.execute(select(new.tables[table.name])).mappings().all()
                for row in rows:
                    kept = {name: row[name] for name in table.c.keys() & row.keys()}
                    if "plan" in table.c:
                        kept["plan"] = plans[row["scope_id"]]
                    kept |= {name: _as_packed(revision, stored) for name, stored in kept.items()}
                    if table.name == "claims" and revision < "0014":
                        kept["claim"] = row["claim"][-_DIGEST:]
                    writing.execute(insert(table).values(kept))
