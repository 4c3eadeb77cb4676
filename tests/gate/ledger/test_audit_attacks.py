"""What somebody who can write the database does beside the entries, or to bodies whose hashes stay: each is found, and
the finding names the table, the row, and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from sqlalchemy import Table, delete, insert, update

from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.encoding.canonical import canonical, content_hash
from gate.instance.audit import Finding, chains, check_chain, check_chains
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.chain.writer import Claim
from gate.ledger.packing import pack, unpack
from gate.ledger.reads import audited
from gate.ledger.tables import (
    chain_heads,
    claims,
    decisions,
    entries,
    latest_outcomes,
    outcome_counts,
    rulebooks,
    scopes,
)
from gate.policy.confidence import DecisionConfidence
from gate.records.attestation import registration_hash
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, OUTCOMES
from gate.rulebooks.rulebook import load
from tests.gate.ledger.test_audit import (
    CRM_SYNC,
    ERASED,
    ERASURE,
    EXECUTION,
    OUTCOME,
    SIZE,
    changed,
    found,
    found_at,
    on_one_database,
    row_at,
    rows,
)
from tests.gate.ledger.test_audit import lived as lived
from tests.support.samples import sample_request, sample_rulebook

RESTORE = "restore a backup that passes `gate chain check`"

pytestmark = on_one_database


def stored_as(scope: Scope, key: str, operation: str = "decide", decision_id: str = "") -> bytes:
    return Claim(operation, decision_id, key, "").stored_as(scope.scope_id)


def put_claim(instance: Instance, scope: Scope, claim: bytes, position: int, input_hash: str) -> None:
    with instance.ledger.store.write() as connection:
        values = {"scope_id": scope.scope_id, "claim": claim, "position": position, "input_hash": input_hash}
        connection.execute(insert(claims), values)


def requires(finding: Finding | None, table: str, position: int | None, *told: str) -> Finding:
    assert finding is not None
    assert (finding.table, finding.position) == (table, position), finding
    assert RESTORE in finding.reason
    for part in told:
        assert part in finding.reason, finding.reason
    return finding


@pytest.mark.parametrize("table", [chain_heads, scopes])
def test_a_scope_that_lost_its_head_or_its_name_is_named(lived: Instance, scope: Scope, table: Table) -> None:
    assert lived.ledger.audited.lost_scopes() == []
    with lived.ledger.store.write() as connection:
        connection.execute(delete(table).where(table.c.scope_id == scope.scope_id))
    assert lived.ledger.audited.lost_scopes() == [("entries", scope.scope_id)]


@pytest.mark.parametrize("table", [claims, decisions, rulebooks, entries])
def test_rows_of_a_scope_that_is_not_there_are_named(lived: Instance, scope: Scope, table: Table) -> None:
    row = rows(lived, table)[0]
    with lived.ledger.store.write() as connection:
        connection.execute(insert(table), {**row._mapping, "scope_id": "f" * 16})
    assert lived.ledger.audited.lost_scopes() == [(table.name, "f" * 16)]


class TestClaims:
    @pytest.mark.parametrize("position", [1, ERASED, EXECUTION, OUTCOME, CRM_SYNC, ERASURE, SIZE])
    def test_an_unused_key_that_stands_for_an_entry_is_found(
        self, lived: Instance, scope: Scope, position: int
    ) -> None:
        """A request with the key would be answered with that entry: an old yes, though nothing was ever decided."""
        body = orjson.loads(unpack(row_at(lived, position).body))
        claim = stored_as(scope, "unused")
        put_claim(lived, scope, claim, position, body.get("input_hash", "0" * 64))
        finding = requires(found(lived, scope), "claims", position, claim.hex(), "was not made with that key")
        assert finding.row == claim.hex()

    def test_a_second_key_of_a_keyless_decision_is_found(
        self, lived: Instance, scope: Scope, authority: Authority
    ) -> None:
        record = lived.gate().decide(authority, sample_request(), request_id="req_1").record
        claim = stored_as(scope, "added later")
        put_claim(lived, scope, claim, SIZE + 1, record["input_hash"])
        requires(found(lived, scope), "claims", SIZE + 1, claim.hex())

    @pytest.mark.parametrize(
        ("operation", "named"), [("execution", "order-0"), ("outcome", "order-0"), ("decide", "order-0 ")]
    )
    def test_the_same_key_for_another_operation_is_found(
        self, lived: Instance, scope: Scope, operation: str, named: str
    ) -> None:
        decision_id = row_at(lived, 1).decision_id if operation != "decide" else ""
        claim = stored_as(scope, named, operation, decision_id)
        put_claim(lived, scope, claim, 1, orjson.loads(unpack(row_at(lived, 1).body))["input_hash"])
        requires(found(lived, scope), "claims", 1, claim.hex())

    def test_one_stray_key_among_many_pages_is_found(
        self, lived: Instance, scope: Scope, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("gate.instance.audit.beside._PAGE", 2)
        for number in range(3):
            put_claim(lived, scope, stored_as(scope, f"unused-{number}"), 2, "0" * 64)
        requires(found(lived, scope), "claims", 2, "was not made with that key")

    def test_a_key_that_is_taken_away_is_found_at_its_entry(self, lived: Instance, scope: Scope) -> None:
        claim = stored_as(scope, "order-1")
        with lived.ledger.store.write() as connection:
            connection.execute(delete(claims).where(claims.c.claim == claim))
        assert requires(found(lived, scope), "claims", 2, "has no row for it").row == claim.hex()

    def test_a_stray_key_does_not_hide_behind_one_that_was_taken_away(self, lived: Instance, scope: Scope) -> None:
        """Their number stays the same."""
        with lived.ledger.store.write() as connection:
            connection.execute(
                update(claims)
                .where(claims.c.claim == stored_as(scope, "order-1"))
                .values(claim=stored_as(scope, "unused"))
            )
        requires(found(lived, scope), "claims", 2)


class TestTheEndOfTheChain:
    def cut(self, instance: Instance, scope: Scope, *tables: Any) -> None:
        """The last entry goes with its rows in these tables, and the head moves back."""
        before = row_at(instance, SIZE - 1)
        with instance.ledger.store.write() as connection:
            for table in tables:
                connection.execute(delete(table).where(table.c.position == SIZE))
            connection.execute(
                update(chain_heads)
                .where(chain_heads.c.scope_id == scope.scope_id)
                .values(chain_size=SIZE - 1, merkle_root=before.merkle_root, link_hash=before.link_hash)
            )

    def test_a_cut_that_leaves_nothing_shows_by_checkpoints_alone(self, lived: Instance, scope: Scope) -> None:
        self.cut(lived, scope, entries, decisions, claims)
        assert check_chain(lived, scope.scope_id) == (SIZE - 1, None)

    @pytest.mark.parametrize(
        ("left", "taken"),
        [("claims", (entries, decisions)), ("decisions", (entries, claims)), ("entries", (decisions, claims))],
    )
    def test_a_row_that_a_cut_left_is_found(
        self, lived: Instance, scope: Scope, left: str, taken: tuple[Any, ...]
    ) -> None:
        row = {
            "claims": stored_as(scope, "order-9").hex(),
            "decisions": str(SIZE),
            "entries": row_at(lived, SIZE).entry_id,
        }[left]
        self.cut(lived, scope, *taken)
        assert requires(found(lived, scope), left, SIZE, str(SIZE - 1)).row == row

    def test_a_latest_outcome_that_a_cut_left_is_found(
        self, lived: Instance, scope: Scope, authority: Authority
    ) -> None:
        decision_id = row_at(lived, SIZE).decision_id
        lived.lifecycle().report(authority, OUTCOMES, decision_id, {"outcome_status": "failed"})
        before = row_at(lived, SIZE)
        with lived.ledger.store.write() as connection:
            connection.execute(delete(entries).where(entries.c.position > SIZE))
            connection.execute(
                update(chain_heads).values(chain_size=SIZE, merkle_root=before.merkle_root, link_hash=before.link_hash)
            )
        assert requires(found(lived, scope), "latest_outcomes", SIZE + 1).row == decision_id

    def test_a_key_that_stands_for_an_entry_to_come_is_found(self, lived: Instance, scope: Scope) -> None:
        claim = stored_as(scope, "unused")
        put_claim(lived, scope, claim, SIZE + 7, "0" * 64)
        assert requires(found(lived, scope), "claims", SIZE + 7, f"ends at {SIZE}").row == claim.hex()

    @pytest.mark.parametrize("position", [0, -1, SIZE + 1, 99])
    @pytest.mark.parametrize("table", [entries, decisions, claims], ids=lambda table: table.name)
    def test_a_row_outside_the_chain_is_found(self, lived: Instance, scope: Scope, table: Any, position: int) -> None:
        """Looked up by its id, an entry there would be shown like any other."""
        values = dict(rows(lived, table)[0]._mapping) | {"position": position}
        if table is entries:
            values |= {"entry_id": "dec_0", "decision_id": "dec_0"}
        if table is claims:
            values |= {"claim": stored_as(scope, "unused")}
        with lived.ledger.store.write() as connection:
            connection.execute(insert(table), values)
        requires(found(lived, scope), table.name, position)

    def test_an_entry_that_goes_while_its_chain_is_read_is_found(
        self, lived: Instance, scope: Scope, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where stretches meet, both have to have seen the same entry."""
        monkeypatch.setattr(chains, "_STRETCH", 5)

        def tamper(read: int) -> None:
            if read == 5:
                with lived.ledger.store.write() as connection:
                    connection.execute(update(entries).where(entries.c.position == 5).values(merkle_root="0" * 64))

        (audit,) = check_chains(lived, [scope.scope_id], processes=1, told=tamper)
        requires(audit.finding, "entries", 5, "while the chain was read")


def uncited(instance: Instance, scope: Scope) -> Any:
    """A registration that no record cites."""
    body = sample_rulebook() | {"rulebook_id": "spare_policy", "version": "2027-01-01"}
    instance.gate().sources.register(scope.scope_id, load(body))
    return next(row for row in rows(instance, rulebooks) if row.rulebook_id == "spare_policy")


def cited(instance: Instance, scope: Scope) -> Any:
    """The registration of the rulebook that decided."""
    return rows(instance, rulebooks)[0]


def _attested(metadata: dict[str, Any], **attestation: Any) -> dict[str, Any]:
    """A registration whose attestation_hash was made again."""
    again = metadata["registry_attestation"] | {"attestation_hash": registration_hash(metadata)} | attestation
    return metadata | {"registry_attestation": again}


def _unsigned(metadata: dict[str, Any]) -> dict[str, Any]:
    return _attested(metadata, status="unsigned", key_id=None, signature=None)


EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "its date": lambda metadata: metadata | {"registered_at": "2026-01-01T00:00:00.000Z"},
    "its hash": lambda metadata: metadata | {"hash": "0" * 64},
    "its evaluator": lambda metadata: metadata | {"evaluator_version": "svc_rulebook_v2"},
    "its scope": lambda metadata: metadata | {"scope_hash": "0" * 64},
    "another field": lambda metadata: metadata | {"note": "approved by the board"},
    "an empty field": lambda metadata: metadata | {"note": None},
    "an adapter": lambda metadata: metadata | {"adapter_dependency": {"adapter_id": "a"}},
    "a field less": lambda metadata: {name: value for name, value in metadata.items() if name != "canonicalization"},
    "its attestation's hash": lambda metadata: _with(metadata, attestation_hash="0" * 64),
    "its attestation's signature": lambda metadata: _with(metadata, signature=_other(metadata)),
    "its attestation's status": lambda metadata: _with(metadata, status="revoked"),
    "half a signature": lambda metadata: _with(metadata, signature=None),
    "an attestation's field": lambda metadata: _with(metadata, note=""),
    "no attestation": lambda metadata: metadata | {"registry_attestation": None},
    "attested again, unsigned, with another field": lambda metadata: _unsigned(metadata | {"note": "x"}),
    "attested again with the old signature": lambda metadata: _attested(metadata | {"registered_at": "2026"}),
}


def _with(metadata: dict[str, Any], **attestation: Any) -> dict[str, Any]:
    return metadata | {"registry_attestation": metadata["registry_attestation"] | attestation}


def _other(metadata: dict[str, Any]) -> str:
    signature: str = metadata["registry_attestation"]["signature"]
    return signature[:-4] + ("AAAA" if signature[-4:] != "AAAA" else "AAAQ")


@pytest.mark.parametrize("which", [cited, uncited], ids=["cited", "uncited"])
class TestRegistrations:
    def requires_named(self, instance: Instance, scope: Scope, row: Any, position: int | None) -> None:
        finding = requires(found(instance, scope), "rulebooks", position, row.rulebook_id)
        assert finding.row.startswith(row.rulebook_id)

    @pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
    def test_a_registration_that_was_edited_is_found(
        self, lived: Instance, scope: Scope, which: Callable[..., Any], change: Callable[..., Any]
    ) -> None:
        row = which(lived, scope)
        metadata = change(orjson.loads(row.registration))
        with changed(lived, rulebooks, row, {"registration": canonical(metadata)}):
            self.requires_named(lived, scope, row, 1 if which is cited else None)

    @pytest.mark.parametrize("rehashed", [False, True], ids=["hash kept", "hash made again"])
    def test_a_body_that_was_edited_is_found(
        self, lived: Instance, scope: Scope, which: Callable[..., Any], rehashed: bool
    ) -> None:
        """The blocking rule is gone, and a reader of the registry would believe that it never existed."""
        row = which(lived, scope)
        body = orjson.loads(row.body)
        body["rules"] = body["rules"][1:]
        values: dict[str, Any] = {"body": canonical(body)} | ({"hash": content_hash(body)} if rehashed else {})
        with changed(lived, rulebooks, row, values):
            self.requires_named(lived, scope, row, 1 if which is cited else None)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("rulebook_id", "other_policy"),
            ("version", "2031-01-01"),
            ("hash", "0" * 64),
            ("registered_at", "2026-01-01T00:00:00.000Z"),
            ("body", b"\xff"),
            ("body", b"[]"),
            ("registration", b"{"),
            ("registration", b"{}"),
        ],
        ids=["id", "version", "hash", "date", "no text", "no object", "half an object", "an empty object"],
    )
    def test_any_column_that_was_edited_is_found(
        self, lived: Instance, scope: Scope, which: Callable[..., Any], name: str, value: Any
    ) -> None:
        row = which(lived, scope)
        with changed(lived, rulebooks, row, {name: value}):
            requires(found(lived, scope), "rulebooks", 1 if which is cited else None)


def test_a_registration_that_records_cite_and_that_is_gone_is_found(lived: Instance, scope: Scope) -> None:
    row = cited(lived, scope)
    with changed(lived, rulebooks, row, None):
        requires(found(lived, scope), "rulebooks", 1, row.rulebook_id, "lacks")


def test_a_registration_made_again_without_a_signature_differs_from_what_records_cite(
    lived: Instance, scope: Scope
) -> None:
    row = cited(lived, scope)
    metadata = _unsigned(orjson.loads(row.registration))
    with changed(lived, rulebooks, row, {"registration": canonical(metadata)}):
        requires(found(lived, scope), "rulebooks", 1, "a different registration")


def test_a_change_to_one_of_many_registrations_is_found(
    lived: Instance, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gate.instance.audit.registrations._PAGE", 2)
    for number in range(5):
        body = sample_rulebook() | {"rulebook_id": f"spare_{number}"}
        lived.gate().sources.register(scope.scope_id, load(body))
    assert found(lived, scope) is None
    for row in rows(lived, rulebooks)[1:]:
        with changed(lived, rulebooks, row, {"registered_at": "2026-01-01T00:00:00.000Z"}):
            requires(found(lived, scope), "rulebooks", None, f"{row.rulebook_id} {row.version}")


RECORD_FIELDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "approved_by": lambda record: record | {"approved_by": "the board"},
    "note": lambda record: record | {"note": None},
    "rulebook.note": lambda record: record | {"rulebook": record["rulebook"] | {"note": ""}},
    "integrity.note": lambda record: record | {"integrity": record["integrity"] | {"note": ""}},
    "runtime_binding.note": lambda record: record | {"runtime_binding": record["runtime_binding"] | {"note": {}}},
    "audit_chain": lambda record: record | {"audit_chain": {"chain_id": "chain_0"}},
    "decision_confidence": lambda record: record | {"decision_confidence": {"score": 1}},
    "confidence_hash": lambda record: record | {"confidence_hash": "0" * 64},
}


@pytest.mark.parametrize("position", [1, ERASED], ids=["whole", "erased"])
@pytest.mark.parametrize(("field", "add"), RECORD_FIELDS.items(), ids=RECORD_FIELDS)
def test_a_field_that_was_added_to_a_stored_record_is_found_by_its_name(
    lived: Instance, scope: Scope, field: str, add: Callable[..., Any], position: int
) -> None:
    row = row_at(lived, position)
    forged = add(orjson.loads(unpack(row.body)))
    with changed(lived, entries, row, {"body": pack(orjson.dumps(forged))}):
        assert requires(found(lived, scope), "entries", position, field, "no hash covers").row == row.entry_id


@pytest.mark.parametrize("name", ["response_view", "rulebook"])
def test_a_field_that_was_added_to_a_stored_request_is_found(lived: Instance, scope: Scope, name: str) -> None:
    row = row_at(lived, 1)
    forged = orjson.loads(unpack(row.request)) | {name: "full" if name == "response_view" else {}}
    with changed(lived, entries, row, {"request": pack(orjson.dumps(forged))}):
        requires(found(lived, scope), "entries", 1, f"request.{name}")


@pytest.mark.parametrize(
    ("position", "kind"),
    [(EXECUTION, EXECUTIONS), (OUTCOME, OUTCOMES), (CRM_SYNC, CRM_SYNCS)],
    ids=["execution", "outcome", "crm-sync"],
)
@pytest.mark.parametrize(
    ("name", "value"), [("approved_by", "the board"), ("note", None), ("audit_chain", {"chain_id": "chain_0"})]
)
def test_a_field_that_was_added_to_a_stored_report_is_found_by_its_name(
    lived: Instance, scope: Scope, position: int, kind: Any, name: str, value: Any
) -> None:
    row = row_at(lived, position)
    forged = orjson.loads(unpack(row.body)) | {name: value}
    with changed(lived, entries, row, {"body": pack(orjson.dumps(forged))}):
        requires(found(lived, scope), "entries", position, kind.name, name)


def test_a_field_that_was_added_to_an_erasure_is_found(lived: Instance, scope: Scope) -> None:
    row = row_at(lived, ERASURE)
    forged = orjson.loads(unpack(row.body)) | {"note": None}
    with changed(lived, entries, row, {"body": pack(orjson.dumps(forged))}):
        requires(found(lived, scope), "entries", ERASURE, "erasure")


@pytest.mark.parametrize("name", ["score", "note"])
def test_a_confidence_that_is_not_that_of_its_hash_is_found(lived: Instance, scope: Scope, name: str) -> None:
    row = row_at(lived, SIZE)
    confidence: DecisionConfidence = orjson.loads(row.confidence)
    with changed(lived, entries, row, {"confidence": orjson.dumps({**confidence, name: 0.99})}):
        requires(found(lived, scope), "entries", SIZE, "confidence_hash")


@pytest.mark.parametrize(("stretch", "page"), [(1, 1), (3, 2), (5, 256)])
def test_stretches_and_pages_of_any_size_find_the_same(
    lived: Instance, scope: Scope, monkeypatch: pytest.MonkeyPatch, stretch: int, page: int
) -> None:
    monkeypatch.setattr(chains, "_STRETCH", stretch)
    monkeypatch.setattr(audited, "STRETCH", page)
    assert check_chain(lived, scope.scope_id) == (SIZE, None)
    for row in rows(lived, entries):
        with changed(lived, entries, row, {"link_hash": "0" * 64}):
            requires(found(lived, scope), "entries", row.position)
        with changed(lived, entries, row, None):
            requires(found(lived, scope), "entries", found_at(row.position))
    for table in (decisions, latest_outcomes, outcome_counts):
        with changed(lived, table, rows(lived, table)[1], None):
            finding = found(lived, scope)
        assert finding is not None
        assert finding.table == table.name
    assert found(lived, scope) is None


def test_a_decision_with_many_outcomes_of_which_one_is_lost_is_found(
    instance: Instance, authority: Authority, scope: Scope
) -> None:
    gate, lifecycle = instance.gate(), instance.lifecycle()
    decision_id = gate.decide(authority, sample_request(), request_id="req_1").record["decision_id"]
    for status in ("pending", "partial", "failed", "pending", "succeeded"):
        lifecycle.report(authority, OUTCOMES, decision_id, {"outcome_status": status})
    assert check_chain(instance, scope.scope_id) == (6, None)
    (row,) = rows(instance, latest_outcomes)
    with changed(instance, latest_outcomes, row, {"position": 5, "outcome_status": "pending"}):
        finding = found(instance, scope)
    assert finding is not None
    assert (finding.table, finding.row) == ("latest_outcomes", decision_id)


def test_a_chain_is_whole_after_everything_in_it_was_erased(
    instance: Instance, authority: Authority, scope: Scope
) -> None:
    ids = [
        instance.gate().decide(authority, sample_request(), request_id="r", idempotency_key=str(number)).record
        for number in range(4)
    ]
    for record in ids:
        instance.lifecycle().report(authority, OUTCOMES, record["decision_id"], {"outcome_status": "failed"})
        erase(instance.ledger, record["decision_id"], "asked for", utc_now())
    assert check_chain(instance, scope.scope_id) == (12, None)


def test_chains_that_are_broken_and_whole_are_told_apart(lived: Instance, scope: Scope) -> None:
    second = lived.ledger.directory.create_scope("second", "unlimited", utc_now())
    with lived.ledger.store.write() as connection:
        connection.execute(update(entries).where(entries.c.position == 2).values(leaf_hash="0" * 64))
    broken, whole = check_chains(lived, [scope.scope_id, second.scope_id], processes=1)
    assert (broken.scope_id, broken.entries, whole.entries, whole.finding) == (scope.scope_id, 2, 0, None)
    requires(broken.finding, "entries", 2, "leaf_hash")
