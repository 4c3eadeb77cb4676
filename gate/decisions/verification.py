"""Verifying a stored decision: its record with the request that it answered, its link, and its erasure."""

from __future__ import annotations

from collections.abc import Mapping

from gate.decisions.erasure import is_confirmed, stored_erasure
from gate.decisions.stored import decision_not_found, is_link_of, stored_record, stored_request
from gate.ledger import Ledger
from gate.ledger.chain.entries import StoredEntry
from gate.proof import chain
from gate.records.documents import Record
from gate.verify import Trust, Verification, verify_record


def verify_decision(ledger: Ledger, trust: Trust, scope_id: str, decision_id: str) -> Verification:
    """Verifies the stored record of a decision, with the request that it answered.

    Args:
        ledger: The ledger.
        trust: The keys that signatures are verified with.
        scope_id: The decision's scope.
        decision_id: The decision.

    Raises:
        NotFound: `SVC_DECISION_NOT_FOUND`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the stored decision is not readable, or has fields that no hash
            covers.
    """
    entry = ledger.entries.decision(scope_id, decision_id)
    if entry is None:
        raise decision_not_found()
    record = stored_record(entry)
    result = verify_record(record, trust, request_body=stored_request(ledger, scope_id, entry))
    if result.error == "INPUT_MISMATCH":
        result.message = "The stored request does not match the record. The operator must run `gate chain check`."
    result.require("audit_chain.link_hash", is_linked(entry, record))
    require_erasure(result, ledger, scope_id, decision_id, record)
    return result


def is_linked(entry: StoredEntry, record: Record) -> bool:
    """Whether a stored decision's chain link follows from its record and from the link before it."""
    return is_link_of(entry.link, record) and chain.find_break([entry.link]) is None


def require_erasure(
    result: Verification, ledger: Ledger, scope_id: str, decision_id: str, record: Mapping[str, object]
) -> None:
    """Adds the check that a record says it was erased exactly where the chain does; nothing where neither does."""
    erasure = stored_erasure(ledger, scope_id, decision_id)
    if erasure is not None or "erased" in record:
        result.require("erasure", is_confirmed(record, erasure))
