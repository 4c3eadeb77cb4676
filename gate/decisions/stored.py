"""Stored decisions and the reports about them: what an entry holds, and whether it is still what was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gate.decisions.erasure import is_confirmed, stored_erasure
from gate.encoding.canonical import content_hash, is_hash_of
from gate.errors import GateError, NotFound, OperatorError, ServiceUnavailable
from gate.labels import BINDING_ADAPTER
from gate.ledger import Ledger
from gate.ledger.chain.entries import StoredEntry, StoredReport
from gate.ledger.chain.writer import Appended, Claim, Decided
from gate.ledger.stores.store import read_object
from gate.policy.confidence import DecisionConfidence
from gate.proof import chain
from gate.proof.chain import Linked, RecordLink, link_material
from gate.records.advisory import is_advisory
from gate.records.documents import DecisionBody, Record, Report
from gate.records.envelope import compact_verdict, envelope, erased_members, output_material, receipt_material
from gate.records.reports.receipts import OUTCOMES, Kind, event_time_fault, report_hash
from gate.verify.members import at, uncovered_members
from gate.verify.reports import uncovered_members as uncovered_members_of_report


def decision_not_found() -> NotFound:
    """The answer for an id that is unknown, or not of the caller's scope: nobody can tell the two apart."""
    return NotFound(
        "SVC_DECISION_NOT_FOUND",
        "This scope has no decision with that id. Check the id, and the scope or its API key.",
    )


def stored_record(entry: StoredEntry) -> Record:
    """The full record of a stored decision.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the stored record is not readable, or has fields that no hash
            covers.
    """
    confidence = None if entry.confidence is None else read_object(entry.confidence, entry.entry_id)
    record: Record = read_object(entry.body, entry.entry_id)
    require_covered(record, f"the record of {entry.entry_id}")
    return whole_record(record, confidence, entry.link)


def require_covered(record: Mapping[str, object], what: str) -> None:
    """Requires that a record that was read from the ledger has no field that its hashes do not cover.

    Such a field would be shown next to a signature that does not cover it.

    Args:
        record: The record.
        what: Its name in the error.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    _require_none(uncovered_members(record), what)


def require_as_made(record: Mapping[str, Any], what: str) -> None:
    """Requires that a record that is going to be shown has no uncovered field and is what its record_hash covers.

    It costs one hash, and no signature: verification judges the rest.

    Args:
        record: The record.
        what: Its name in the error.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    require_covered(record, what)
    try:
        # What was erased cannot be hashed again; its erasure stands in the chain.
        as_made = isinstance(record["erased"], dict) if "erased" in record else _is_as_hashed(record)
    except (KeyError, TypeError, AttributeError, GateError):
        as_made = False
    if not as_made:
        raise _changed(what, "was changed after it was made")


def _is_as_hashed(record: Mapping[str, Any]) -> bool:
    explained = [source["snapshot_hash"] for source in record["evidence_manifest"]["sources"]]
    return (
        is_hash_of(record["record_hash"], envelope(record))
        and record["c"] == compact_verdict(record["verdict"])
        and ("evaluation" not in record or content_hash(record["evaluation"]) in explained)
    )


def stored_report(kind: Kind, stored: StoredReport) -> Report:
    """A report as it was answered when it was made.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the stored report is not readable, differs from its hash or link,
            or has fields that no hash covers.
    """
    what = f"the {kind.name} at chain position {stored.position}"
    report: Report = read_object(stored.body, what)
    hash_ = report_hash(kind, report)
    leaf = chain.leaf(kind.entry_type, str(report.get("decision_id")), hash_, None)
    if (report.get(kind.hash_member), leaf) != (hash_, stored.link["leaf_hash"]):
        raise _changed(what, "was changed after it was made")
    _require_none(uncovered_members_of_report(kind, report), what)
    request = None if stored.request is None else read_object(stored.request, what)
    if kind is OUTCOMES and event_time_fault(report, request) is not None:
        raise _changed(what, "has a different occurred_at than its request")
    return {**report, "audit_chain": stored.link}


def _require_none(uncovered: Sequence[str], what: str) -> None:
    if uncovered:
        named = ", ".join(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..." for name in uncovered[:_NAMED])
        raise _changed(what, f"has fields that its hash does not cover ({named})")


_NAMED: Final = 5
_SHOWN: Final = 80


def _changed(what: str, how: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE", f"In the ledger, {what} {how}. The operator must run `gate chain check`."
    )


def appended_record(record: Record, appended: Appended) -> Record:
    """The full record of a new decision, after its append."""
    return whole_record(record, appended.confidence, appended.link)


def whole_record(record: Record, confidence: DecisionConfidence | None, link: RecordLink) -> Record:
    """A record with the fields that only its append could add.

    Args:
        record: The record in the entry's body.
        confidence: The entry's confidence.
        link: Its link.
    """
    whole: Record = {**record, "audit_chain": chain.record_link(link)}
    # Its recommendation could be read as leave to proceed, which no advisory record gives.
    if confidence is not None and not is_advisory(record):
        whole["decision_confidence"] = confidence
        whole["confidence_hash"] = confidence.get("confidence_hash")
    return whole


def stored_request(ledger: Ledger, scope_id: str, entry: StoredEntry) -> DecisionBody | None:
    """The request of a stored decision as it was sent, or None where it is no longer kept.

    A rulebook that was sent inline is stored once, with its registration, and restored here.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the stored request is not readable.
    """
    if entry.request is None:
        return None
    body: DecisionBody = read_object(entry.request, entry.entry_id)
    if body.get("mode") == "rulebook" and "rulebook_ref" not in body:
        body["rulebook"] = ledger.rulebooks.body(scope_id, stored_record(entry).get("policy_hash", ""))
    return body


def found_by(record: Record) -> Decided:
    """The values by which the ledger finds a decision and counts its outcomes."""
    return Decided(
        record["verdict"],
        record["action"],
        record["reason_code"],
        record["action_binding"]["resource"],
        advisory=is_advisory(record),
    )


def is_link_of(link: Mapping[str, object], record: Linked) -> bool:
    """Whether a chain link holds what its decision's record gives it."""
    return all(link[name] == value for name, value in link_material(record)._asdict().items())


def is_as_made(ledger: Ledger, scope_id: str, entry: StoredEntry, record: Record, claim: Claim) -> bool:
    """Whether a stored record is still the one that was made for a key and payload.

    A record with erased facts no longer matches its hash. Then everything else that its receipt and its attestation
    cover must still match, and the chain must say that the decision was erased.
    """
    try:
        made = (
            record["idempotency_key"] == claim.key
            and record["input_hash"] == claim.input_hash
            and (is_hash_of(record["record_hash"], envelope(record)) or _lost_facts(record))
            and is_link_of(entry.link, record)
            and chain.find_break([entry.link]) is None
        )
    except (KeyError, TypeError, AttributeError):
        return False
    if not made or "erased" not in record:
        return made
    return is_confirmed(record, stored_erasure(ledger, scope_id, record["decision_id"]))


def _lost_facts(record: Record) -> bool:
    """Whether a record's facts were erased, without which it does not hash, and what else it says still follows from
    what its receipt and its attestation were made over.
    """
    bundle = record["rulebook_attestation"]["bundle"]
    members: Mapping[str, object] = record
    outcome = {name: members[name] for name in ("verdict", "application_verdict", *_OUTCOME)}
    return (
        {"adapter_facts", "evaluation"} <= erased_members(record)
        and record["adapter_facts"] is None
        and record["runtime_binding"]["binding_mode"] == BINDING_ADAPTER
        and is_hash_of(record["receipt_hash"], receipt_material(record))
        and is_hash_of(record["output_hash"], output_material(record, bundle["outcome"]["status"]))
        and is_hash_of(record["rulebook_attestation"]["bundle_hash"], bundle)
        and bundle["outcome"] == {"status": bundle["outcome"]["status"], **outcome}
        and bundle["trusted_adapter"] == record["trusted_adapter"]
        and (record["c"], record["v"]) == (compact_verdict(record["verdict"]), record["application_verdict"])
    )


_OUTCOME: Final = ("action", "reason_code", "matched_rule_id")


def stored_facts(record: Mapping[str, Any], request: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The facts that a decision was made over: an adapter's, or those that its request sent."""
    if "adapter_facts" in record:
        facts: Mapping[str, Any] | None = record["adapter_facts"]
        return facts
    if request is None:
        return None
    inputs = at(request, "context", "inputs")
    return inputs if isinstance(inputs, dict) else {}


def record_and_facts(ledger: Ledger, scope_id: str, decision_id: str) -> tuple[Record, Mapping[str, Any] | None]:
    """The record of a decision, and the facts that it was made over; None where they were erased.

    Raises:
        NotFound: `SVC_DECISION_NOT_FOUND`.
        OperatorError: `DECISION_ADVISORY`: it was made over no facts.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it cannot be read, or is not as it was made.
    """
    entry = ledger.entries.decision(scope_id, decision_id)
    if entry is None:
        raise decision_not_found()
    record = stored_record(entry)
    if is_advisory(record):
        raise OperatorError(
            "DECISION_ADVISORY",
            f"{decision_id} is advisory: a model answered it, so no rulebook can decide it again. Choose a "
            "binding decision.",
        )
    return record, stored_facts(record, stored_request(ledger, scope_id, entry))
