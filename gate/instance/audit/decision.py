"""The audit of a decision: its record, its request, its registration, and the row for searches."""

from __future__ import annotations

from typing import Any, Final

from gate.decisions.erasure import is_confirmed
from gate.decisions.stored import is_link_of, whole_record
from gate.instance.audit.changes import routed_fault
from gate.instance.audit.finding import Finding, beside, read_stored, tampered
from gate.instance.audit.material import Entry, Material, entry_tampered
from gate.instance.audit.registrations import Registration, signature_holds
from gate.ledger.chain.writer import SEARCHABLE
from gate.ledger.reads.audited import AuditedEntry
from gate.ledger.tables import decisions, rulebooks
from gate.proof.chain import Link
from gate.proof.signing import ED25519
from gate.records.advisory import is_advisory
from gate.records.documents import Record
from gate.records.envelope import erased_members
from gate.verify import AUTHENTICITY, Trust, verify_record
from gate.verify.members import uncovered_members


def decision_finding(entry: Entry, link: Link, material: Material) -> Finding | None:
    """The fault of a decision, or of a row that follows from it; None if all agree.

    Raises:
        GateError, KeyError, TypeError, AttributeError: It has not the fields that every decision has.
    """
    row = entry.row
    confidence = None if row.confidence is None else read_stored(row.confidence, "confidence")[0]
    record = whole_record(entry.document, confidence, link)
    cited = record.get("policy_hash")
    registration = material.registrations.get(cited) if isinstance(cited, str) else None
    # Without the rulebook that was sent inline, the record is judged alone.
    request, plain = None, entry.plain
    if is_advisory(record):
        request = entry.request
    elif registration is not None and registration.fault is None:
        request, plain = _whole_request(entry, registration)
    fault = _record_fault(entry, record, request, material, plain=plain)
    if fault is None and confidence is not None and is_advisory(record):
        fault = "It has a confidence, but advisory decisions have none."
    if fault is not None:
        return entry_tampered(row, fault)
    # An advisory record cites no rulebook.
    if not is_advisory(record) and (found := _registration_finding(row, record, registration)):
        return found
    fault = _erased_fault(record, entry.request, material)
    if fault is not None:
        return entry_tampered(row, fault)
    if fault := routed_fault(record, entry.request, row.position, material):
        return entry_tampered(row, fault)
    if row.entry_id != record["decision_id"] or not is_link_of(link, record):
        return entry_tampered(row, "The link does not match the stored record.")
    return _search_finding(row, record, material)


def _whole_request(entry: Entry, registration: Registration) -> tuple[Any, bool]:
    """The request of a decision as it was sent, and whether it and the record are plain. An inline rulebook is kept
    once, with its registration.
    """
    if entry.request is None or "rulebook_ref" in entry.request:
        return entry.request, entry.plain
    return {**entry.request, "rulebook": registration.body}, entry.plain and registration.plain


def _record_fault(entry: Entry, record: Record, request: Any, material: Material, *, plain: bool) -> str | None:
    result = verify_record(record, material.trust, request_body=request, plain=plain)
    if not result.checks.get("members"):
        return f"The stored record is not valid. {result.message}"
    if added := _added(entry, record):
        return (
            f"The stored record has fields that no hash covers and that records do not have: {', '.join(added)}. "
            "They were added after it was made."
        )
    failed = [name for name, holds in result.checks.items() if holds is False]
    if set(failed) <= set(AUTHENTICITY):
        # The state of a key is no matter of the chain; that it made the signature is.
        failed = [name for name in failed if name == "receipt_signature" and name in record]
        if (
            not is_advisory(record)
            and result.checks["attestation_signature"] is not True
            and not _attested(record, material.trust)
        ):
            failed.append("attestation_signature")
    return f"The stored record is not valid; these checks fail: {', '.join(failed)}." if failed else None


def _added(entry: Entry, record: Record) -> list[str]:
    """The fields of a stored decision that its hashes do not cover, but for those that stand outside by design."""
    kept_elsewhere = sorted(_KEPT_ELSEWHERE & entry.document.keys())
    of_request = sorted(_NOT_STORED & entry.request.keys()) if entry.request is not None else []
    return [*uncovered_members(record), *kept_elsewhere, *(f"request.{name}" for name in of_request)]


# Columns of their own, from which they are added to a record when it is shown.
_KEPT_ELSEWHERE: Final = {"audit_chain", "decision_confidence", "confidence_hash"}
# The view is no part of the request, and the rulebook is kept with its registration.
_NOT_STORED: Final = {"response_view", "rulebook"}


def _attested(record: Record, trust: Trust) -> bool:
    attestation = record["rulebook_attestation"]
    key_id, signature = attestation["signature"]["key_id"], attestation["signature"]["signature"]
    return key_id is None or signature_holds(trust, key_id, f"{ED25519}:{signature}", attestation["bundle_hash"])


def _erased_fault(record: Record, request: Any, material: Material) -> str | None:
    """An erasure of the chain and what is missing of a decision have to be the same."""
    said = "erased" in record
    if said and not is_confirmed(record, material.erasures.get(record["decision_id"])):
        return "The record says that it was erased, but the chain has no such erasure."
    if (request is None) != ("input" in erased_members(record)):
        return (
            "Its request still exists, though it was erased."
            if said
            else "Its request is missing, though the chain has no erasure of it."
        )
    return None


def _registration_finding(row: AuditedEntry, record: Record, registration: Registration | None) -> Finding | None:
    policy = f"{record['policy_id']} {record['policy_version']}"
    if registration is None:
        fault = f"The table rulebooks lacks the rulebook {policy}, which decided at position {row.position}."
    elif registration.fault is not None:
        fault = registration.fault
    elif record["rulebook_registry"] != registration.metadata:
        fault = (
            f"The table rulebooks has a different registration of the rulebook {registration.name} than the "
            f"record at position {row.position} cites."
        )
    else:
        return None
    return tampered(row.position, fault, policy, table=rulebooks.name)


def _search_finding(row: AuditedEntry, record: Record, material: Material) -> Finding | None:
    expected = {
        "scope_id": material.scope_id,
        "position": row.position,
        "verdict": record["verdict"],
        "policy_id": record["policy_id"],
        "policy_version": record["policy_version"].encode(),
        "reason_code": record["reason_code"],
        "target_object_id": record["action_binding"]["resource"][:SEARCHABLE].encode(),
        "created_at": record["created_at"],
    }
    if material.searchable.get(row.position) == expected:
        return None
    what = "Its row in the table decisions does not match its record, so searches give wrong results."
    return beside(row.position, what, row.position, table=decisions.name)
