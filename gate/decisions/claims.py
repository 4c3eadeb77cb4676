"""Idempotency: what happens where a request carries a key that may have been used before.

One append with a key goes the same way for a decision and for every report about one:

    claim = read_claim(DECIDE, "", key, input_hash)
    settled = settle(entries, caller, Proposal(claim, prepare))      # Created, or Used by an earlier request
    entry = entry_of(entries, scope_id, DECIDE, used)      # the entry of a used key, or a conflict

The transaction that appends also decides whether a key was used, so of two requests with one key the second finds the
first. A request that fails before that claims nothing. A used key answers before any check of the request. Otherwise, a
retry after a change of its rulebook would be refused, and the caller would never learn that the action was decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from gate.errors import GateError, IdempotencyConflict, LimitReached, RequestRefused, ServiceUnavailable
from gate.ids import month_end, parse_timestamp
from gate.ledger.access.caller import Caller
from gate.ledger.chain.entries import Entries, StoredEntry
from gate.ledger.chain.writer import (
    Appended,
    AppendResult,
    CapReached,
    Claim,
    Claimed,
    NewEntry,
    ReviewMoved,
    RouteMoved,
)
from gate.records.reports.receipts import Kind

MAX_IDEMPOTENCY_KEY: Final = 300
"""How many characters a key may have."""

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation whose requests may carry a key.

    Attributes:
        name: decide, execution, outcome, crm-sync or resolution.
        code: In its error codes: `SVC_<code>_IDEMPOTENCY_CONFLICT`.
        id_member: The name of the entry's id in errors.
        noun: What sentences call that entry.
    """

    name: str
    code: str
    id_member: str
    noun: str


DECIDE: Final = Operation("decide", "API", "decision_id", "record")


def operation_of(kind: Kind) -> Operation:
    """The operation that records something about a decision."""
    return Operation(kind.name, kind.code, kind.id_member, kind.noun)


class Created(NamedTuple, Generic[Document]):
    """The entry is in the chain, durably.

    Attributes:
        document: The document that was appended.
        appended: The fields that only the append can add.
    """

    document: Document
    appended: Appended


@dataclass(frozen=True, slots=True)
class Used:
    """The key was used before.

    Attributes:
        claim: The claim of this request.
        claimed: The entry that claimed the key, and for which payload.
    """

    claim: Claim
    claimed: Claimed


Settled: TypeAlias = Created[Document] | Used


class Proposal(NamedTuple, Generic[Document]):
    """What a request proposes to append.

    Attributes:
        claim: The request's key.
        prepare: Makes the entry, and the document in it; raises `GateError` where the request cannot be answered. It is
            called again where a route that it went by has moved, or a review was resolved.
    """

    claim: Claim | None
    prepare: Callable[[], tuple[NewEntry, Document]]


def read_claim(operation: Operation, decision_id: str, key: str | None, input_hash: str) -> Claim | None:
    """The claim of an idempotency key, if one was sent.

    Args:
        operation: The operation that uses the key.
        decision_id: The decision it is used on; "" for decide.
        key: The key.
        input_hash: H of the payload it was sent with.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: it is too long, or no printable ASCII.
    """
    if key is None:
        return None
    if not is_usable_key(key):
        raise RequestRefused(
            "SVC_API_REQUEST_INVALID",
            f"An idempotency key must be 1 to {MAX_IDEMPOTENCY_KEY} printable ASCII characters. Use a simpler key.",
        )
    return Claim(operation.name, decision_id, key, input_hash)


def is_usable_key(key: str) -> bool:
    """Whether an idempotency key is short enough, and printable ASCII."""
    return 1 <= len(key) <= MAX_IDEMPOTENCY_KEY and key.isascii() and key.isprintable()


def settle(entries: Entries, caller: Caller, proposal: Proposal[Document]) -> Settled[Document]:
    """Appends the proposal of a request, or finds the entry of its key.

    Args:
        entries: Where entries are appended.
        caller: The caller.
        proposal: The proposal.

    Raises:
        AccessForbidden: The key may no longer do this.
        GateError: As the proposal's `prepare`, where the idempotency key is new.
        LimitReached: `SVC_API_MONTHLY_CAP_EXCEEDED`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was acknowledged.
    """
    claim = proposal.claim
    prepared = _prepared(entries, caller, proposal)
    while True:
        if isinstance(prepared, Used):
            return prepared
        entry, document = prepared
        # Only under the head's lock is it certain that nothing changed between looking the key up and appending.
        outcome = entries.append(entry._replace(access_epoch=caller.authority.access_epoch))
        settled = outcome_of(claim, entry, document, outcome)
        if settled is not None:
            return settled
        if isinstance(outcome, RouteMoved | ReviewMoved):
            prepared = _prepared(entries, caller, proposal)
        else:
            # Access changed. If the key still holds, the same entry is offered again under the new epoch.
            caller.confirm()


def outcome_of(
    claim: Claim | None, entry: NewEntry, document: Document, outcome: AppendResult
) -> Settled[Document] | None:
    """What an append says of a proposal; None where it has to be made, or offered, again.

    Args:
        claim: The proposal's key.
        entry: The entry to append.
        document: The document in it.
        outcome: What the append said.

    Raises:
        LimitReached: `SVC_API_MONTHLY_CAP_EXCEEDED`.
    """
    if isinstance(outcome, Appended):
        return Created(document, outcome)
    if isinstance(outcome, Claimed) and claim is not None:
        return Used(claim, outcome)
    if isinstance(outcome, CapReached):
        raise cap_reached(outcome.cap, parse_timestamp(entry.link.created_at))
    return None


def _prepared(entries: Entries, caller: Caller, proposal: Proposal[Document]) -> tuple[NewEntry, Document] | Used:
    """What `prepare` makes, or the entry of the key if it refuses; raises as `settle`."""
    try:
        return proposal.prepare()
    except GateError:
        caller.confirm()
        if (used := used_before(entries, caller.scope_id, proposal.claim)) is not None:
            return used
        raise


def used_before(entries: Entries, scope_id: str, claim: Claim | None) -> Used | None:
    """The earlier use of a key; None if the key is new or missing."""
    if claim is None:
        return None
    claimed = entries.claimed(scope_id, claim)
    return None if claimed is None else Used(claim, claimed)


def entry_of(entries: Entries, scope_id: str, operation: Operation, used: Used) -> StoredEntry:
    """The entry of a used key, if it was made for the same payload.

    Whether it is still as it was made, the caller has to see; see `not_as_made`.

    Raises:
        IdempotencyConflict: `SVC_<code>_IDEMPOTENCY_CONFLICT`: it was made for another payload.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it cannot be read.
    """
    entry = entries.at(scope_id, used.claimed.position)
    if entry is None:
        raise ServiceUnavailable(
            "SVC_STORAGE_UNAVAILABLE",
            f"The {operation.noun} of this idempotency key cannot be read. Retry with the same key.",
        )
    if used.claimed.input_hash != used.claim.input_hash:
        raise IdempotencyConflict(
            f"SVC_{operation.code}_IDEMPOTENCY_CONFLICT",
            "The idempotency key was used before with a different payload. Send that payload, or use a new key.",
            details={
                "idempotency_key": used.claim.key,
                operation.id_member: entry.entry_id,
                "input_hash": used.claim.input_hash,
                "existing_input_hash": used.claimed.input_hash,
            },
        )
    return entry


def require_free(kind: Kind, idempotency_key: str | None, *, free: bool) -> None:
    """Requires that no other request with a key is in progress.

    Raises:
        IdempotencyConflict: `SVC_<kind>_IDEMPOTENCY_IN_PROGRESS`.
    """
    if not free:
        raise IdempotencyConflict(
            f"SVC_{kind.code}_IDEMPOTENCY_IN_PROGRESS",
            "Another request with this idempotency key is in progress. Wait a moment, and send the same request "
            "again to get its answer.",
            details={"idempotency_key": idempotency_key},
        )


def is_answer_of(kind: Kind, report: Mapping[str, object], claim: Claim) -> bool:
    """Whether a stored report is still the one that was made for a key and payload."""
    stored = (report["decision_id"], report.get("idempotency_key"), report.get(kind.input_hash_member))
    return stored == (claim.decision_id, claim.key, claim.input_hash)


def not_as_made(operation: Operation) -> ServiceUnavailable:
    """The error if the entry of a key is no longer the one that was made for it."""
    return ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        f"The {operation.noun} of this idempotency key was changed after it was made. The operator must run "
        "`gate chain check`.",
    )


def cap_reached(cap: int, now: datetime) -> LimitReached:
    """The refusal of a record that the plan of its scope does not allow in this UTC month."""
    return LimitReached(
        "SVC_API_MONTHLY_CAP_EXCEEDED",
        f"The scope has used all {cap} records of its plan for this UTC month. Hold the action, and ask the "
        "operator for a higher cap.",
        details={"retry_after": max(1, math.ceil((month_end(now) - now).total_seconds())), "monthly_remaining": 0},
    )
