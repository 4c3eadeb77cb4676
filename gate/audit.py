"""Checking a whole chain against the records that are stored, and against a checkpoint that someone else kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gate import chain
from gate.chain import Break
from gate.decide import is_link_of, stored_record, stored_request
from gate.errors import GateError
from gate.instance import Instance
from gate.ledger.entries import StoredEntry
from gate.ledger.writer import Claim, Claimed
from gate.signing import verify_ed25519, verify_hmac
from gate.verify import Trust, verify_record


def check_chain(instance: Instance, scope_id: str) -> tuple[int, Break | None]:
    """Recomputes every hash, link and root of a scope's chain from its stored records.

    A record must hold in itself (its hashes, its derived members, its signature, the stored request behind its input
    hash), must be what its link says, and must be what its idempotency key is claimed by. The state of the key that
    signed it is no matter of the chain.

    Returns:
        How many entries were read, and where the chain breaks; None where it is whole.
    """
    head = instance.ledger.entries.head(scope_id)
    trust = instance.trust()
    read = 0
    unsound: Break | None = None

    def links() -> Iterator[dict[str, Any]]:
        nonlocal read, unsound
        for entry in instance.ledger.entries.walk(scope_id, up_to=head.size):
            read += 1
            reason = _unsound(instance, scope_id, entry, trust)
            if reason is not None:
                unsound = Break(entry.link["chain_position"], reason)
                return
            yield entry.link

    broken = chain.find_break(links(), start=chain.Head(head.chain_id), end=head)
    return read, unsound or broken


def check_checkpoint(instance: Instance, scope_id: str, document: Any) -> str | None:
    """Why a scope's chain is not the one that a checkpoint of this instance saw; None where it is.

    Args:
        instance: The instance.
        scope_id: The scope.
        document: The checkpoint.
    """
    members = {
        "checkpoint_version",
        "chain_id",
        "chain_size",
        "merkle_root",
        "link_hash",
        "issued_at",
        "key_id",
        "signature",
    }
    if not isinstance(document, dict) or set(document) != members or type(document["chain_size"]) is not int:
        return "It is no checkpoint: its members are not those of decision_checkpoint_v1."
    fault = _signature_fault(instance.trust(), document)
    if fault is not None:
        return fault
    entry = instance.ledger.entries.at(scope_id, document["chain_size"])
    contradicted = chain.contradicts(document, None if entry is None else entry.link)
    if contradicted:
        return f"The chain no longer has what it saw: {', '.join(contradicted)} at position {document['chain_size']}."
    return None


def _signature_fault(trust: Trust, document: dict[str, Any]) -> str | None:
    signature, payload = str(document["signature"]), chain.checkpoint_payload(document)
    key_id, issued_at = str(document["key_id"]), str(document["issued_at"])
    if trust.hmac_secret is not None and key_id == trust.hmac_key_id:
        holds = verify_hmac(trust.hmac_secret, payload, signature)
    else:
        key = trust.receipt_keys.find(key_id) if trust.receipt_keys is not None else None
        if key is None:
            return f"Its key {key_id} is none of this instance's receipt keys."
        objection = key.objection(issued_at)
        if objection is not None:
            return objection
        holds = verify_ed25519(key.public_key, payload, signature)
    return None if holds else "Its signature does not hold; it was changed after it was signed."


def _unsound(instance: Instance, scope_id: str, entry: StoredEntry, trust: Trust) -> str | None:
    try:
        record = stored_record(entry)
        request = stored_request(instance.ledger, scope_id, entry)
    except GateError as error:
        return error.message
    result = verify_record(record, trust, request_body=request)
    if not result.checks.get("members"):
        return f"The stored record does not hold. {result.message}"
    forged = "receipt_signature" in record and result.checks.get("receipt_signature") is False
    if forged or not result.integrity_valid:
        failed = ", ".join(name for name, holds in result.checks.items() if holds is False)
        return f"The stored record does not hold; these checks fail: {failed}."
    if not is_link_of(entry.link, record):
        return "The link is not that of the stored record."
    if "idempotency_key" in record:
        claim = Claim("decide", "", record["idempotency_key"], record["input_hash"])
        claimed = instance.ledger.entries.claimed(scope_id, claim)
        if claimed != Claimed(entry.link["chain_position"], claim.input_hash):
            return "Its idempotency key is not claimed by it: a retry would be answered with another record, or anew."
    return None
