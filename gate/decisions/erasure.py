"""Erasure, a person's right and an operator's command: what a decision holds of its request and its facts leaves the
ledger, and an entry of the chain says so.

Every hash stays, and so do the outcome of the decision and its action binding. The receipt, its signature, and the
chain therefore still verify. Somebody who kept the record or the request can still prove that it is the one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson

from gate.clock import new_id
from gate.encoding.canonical import compact, content_hash
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.labels import ERASURE, PROTOCOL
from gate.ledger import Ledger
from gate.ledger.chain.entries import StoredEntry
from gate.ledger.chain.erasures import PlannedErasure
from gate.ledger.stores.store import has_utf8, read_object
from gate.proof import chain
from gate.records.documents import Erasure, ErasureMaterial, ErasureNote, Record
from gate.records.envelope import ERASABLE

MAX_REASON: Final = 500
"""How many characters a reason may have."""

ERASURE_MEMBERS: Final = frozenset(
    {
        "decision_protocol_version",
        "decision_erasure_version",
        "erasure_id",
        "decision_id",
        "decision_record_hash",
        "decision_receipt_hash",
        "reason",
        "erased",
        "erased_at",
        "erasure_hash",
    }
)
"""What the chain's entry about an erasure has."""

_ENTRY_TYPE: Final = "erasure"


@dataclass(frozen=True, slots=True)
class Erased:
    """A decision that was erased.

    Attributes:
        erasure: The chain's entry about it.
        scope: The name of its scope.
    """

    erasure: Erasure
    scope: str


def erase(ledger: Ledger, decision_id: str, reason: str, now: datetime) -> Erased:
    """Erases what a decision holds of its request and its facts, and when its outcomes came about.

    Args:
        ledger: The ledger.
        decision_id: The decision, of whatever scope.
        reason: The reason, for readers of the chain; 1 to `MAX_REASON` characters. It stays, so it should not identify
            a person.
        now: The current moment.

    Raises:
        OperatorError: `ERASURE_REASON_INVALID`, `DECISION_NOT_FOUND`, `DECISION_ALREADY_ERASED`, or
            `ERASURE_UNFINISHED` where it is erased, and the ledger's own files still hold a copy.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    require_reason(reason)
    erasures: list[Erasure] = []

    def plan(stored: StoredEntry) -> PlannedErasure:
        record = read_object(stored.body, decision_id)
        if "erased" in record:
            raise OperatorError(
                "DECISION_ALREADY_ERASED",
                f"The decision {decision_id} was already erased at {record['erased'].get('erased_at')}.",
            )
        erasure = build(record, stored.request is not None, reason, new_id("era", now), timestamp(now))
        erasures.append(erasure)
        left = orjson.dumps(left_of(record, erasure))
        return PlannedErasure(
            erasure["erasure_id"], erasure_link(erasure, record), orjson.dumps(erasure), left, left_of_outcome
        )

    try:
        scope = ledger.erasures.erase(decision_id, plan, now)
    except OperatorError:
        # An earlier erasure may have been interrupted before this step.
        _overwrite(ledger, decision_id)
        raise
    if scope is None:
        raise _not_found(decision_id)
    # The decision is erased by now, whatever happens; if this run dies here, the next one overwrites what is left.
    _overwrite(ledger, decision_id)
    return Erased(erasures[-1], scope)


def require_reason(reason: str) -> None:
    """Requires that a reason can stand in the chain.

    Raises:
        OperatorError: `ERASURE_REASON_INVALID`.
    """
    if not reason.strip() or len(reason) > MAX_REASON or not has_utf8(reason):
        raise OperatorError(
            "ERASURE_REASON_INVALID",
            f"The reason must have 1 to {MAX_REASON} characters in UTF-8. Do not name a person in it.",
        )


def erasable(ledger: Ledger, decision_id: str) -> tuple[str, list[str]]:
    """The scope of a decision, and the parts of it that `erase` would erase; none where it was erased before.

    Raises:
        OperatorError: `DECISION_NOT_FOUND`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    found = ledger.erasures.find(decision_id)
    if found is None:
        raise _not_found(decision_id)
    scope, stored = found
    record = read_object(stored.body, decision_id)
    return scope, [] if "erased" in record else _parts(record, stored.request is not None)


def _not_found(decision_id: str) -> OperatorError:
    return OperatorError("DECISION_NOT_FOUND", f"No scope has a decision {decision_id}. Check the id.")


def _parts(record: Mapping[str, object], has_input: bool) -> list[str]:
    there = {"adapter_facts": "adapter_facts" in record, "evaluation": True, "input": has_input}
    return [name for name in ERASABLE if there[name]]


def _overwrite(ledger: Ledger, decision_id: str) -> None:
    if not ledger.store.overwrite():
        raise OperatorError(
            "ERASURE_UNFINISHED",
            f"The decision {decision_id} is erased, but the write-ahead log of the ledger still holds a copy, "
            "because another process is reading it. Wait until running backups and checks have ended, and run "
            "the command again.",
        )


def build(record: Record, has_input: bool, reason: str, erasure_id: str, erased_at: str) -> Erasure:
    """The chain's entry about an erasure.

    Args:
        record: The decision's record, whole.
        has_input: Whether its request is kept.
        reason: Why.
        erasure_id: The entry's id.
        erased_at: UTC timestamp.
    """
    erasure: ErasureMaterial = {
        "decision_protocol_version": PROTOCOL,
        "decision_erasure_version": ERASURE,
        "erasure_id": erasure_id,
        "decision_id": record["decision_id"],
        "decision_record_hash": record["record_hash"],
        "decision_receipt_hash": record["receipt_hash"],
        "reason": reason,
        "erased": _parts(record, has_input),
        "erased_at": erased_at,
    }
    return {**erasure, "erasure_hash": erasure_hash(erasure)}


def erasure_hash(erasure: Mapping[str, object]) -> str:
    """What an erasure's own hash should be."""
    return content_hash(compact({name: value for name, value in erasure.items() if name != "erasure_hash"}))


def left_of(record: Record, erasure: Erasure) -> dict[str, object]:
    """What an erasure leaves of a record."""
    gone = {name: None for name in erasure["erased"] if name in record}
    return {**record, **gone, "erased": _note(erasure)}


def left_of_outcome(body: bytes) -> bytes:
    """The JSON bytes that an erasure leaves of an outcome of the decision: its request goes, and so does what only that
    request binds.
    """
    return orjson.dumps(
        {name: value for name, value in read_object(body, "an outcome").items() if name != "occurred_at"}
    )


def _note(erasure: Erasure) -> ErasureNote:
    """What a record says of its erasure."""
    return {
        "erasure_id": erasure["erasure_id"],
        "erased_at": erasure["erased_at"],
        "members": erasure["erased"],
    }


def erasure_link(erasure: Erasure, record: Record) -> chain.Entry:
    """The parts of the chain link of an erasure."""
    return chain.Entry(
        entry_type=_ENTRY_TYPE,
        decision_id=erasure["decision_id"],
        record_hash=erasure["erasure_hash"],
        receipt_hash=None,
        policy_id=record["policy_id"],
        policy_version=record["policy_version"],
        created_at=erasure["erased_at"],
    )


def stored_erasure(ledger: Ledger, scope_id: str, decision_id: str) -> Erasure | None:
    """The chain's entry about the erasure of a decision, where it is as it was made; None where there is none such.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it cannot be read.
    """
    for stored in ledger.entries.reports(scope_id, decision_id, _ENTRY_TYPE, limit=1, room=0)[0]:
        erasure: Erasure = read_object(stored.body, f"the erasure at chain position {stored.position}")
        if erasure.get("erasure_hash") == erasure_hash(erasure) and is_leaf_of_erasure(
            stored.link["leaf_hash"], decision_id, erasure
        ):
            return erasure
    return None


def is_leaf_of_erasure(leaf_hash: str, decision_id: str, erasure: Erasure) -> bool:
    """Whether a leaf of the chain is that of an erasure of a decision."""
    expected = chain.leaf(_ENTRY_TYPE, decision_id, erasure["erasure_hash"], None)
    return erasure.get("decision_id") == decision_id and leaf_hash == expected


def is_confirmed(record: Mapping[str, object], erasure: Erasure | None) -> bool:
    """Whether a record and the chain agree on whether the decision was erased, and how."""
    if erasure is None:
        return "erased" not in record
    cited = {"decision_record_hash": "record_hash", "decision_receipt_hash": "receipt_hash"}
    return record.get("erased") == _note(erasure) and all(
        erasure.get(name) == record.get(of_record) for name, of_record in cited.items()
    )


def as_stored(record: Mapping[str, object], stored: Mapping[str, object]) -> Mapping[str, object]:
    """A record as it would be stored by now: one that was exported before the stored one was erased has lost as much.

    Args:
        record: A record, from wherever.
        stored: The stored record of the decision.
    """
    note = stored.get("erased")
    if not isinstance(note, dict) or "erased" in record:
        return record
    gone = {name: None for name in note.get("members", ()) if name in record}
    return {**record, **gone, "erased": note}
