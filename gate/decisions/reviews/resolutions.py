"""Held decisions are resolved here: an owner grants or refuses the action, or the service lets the review expire.

A resolution is final, and a decision has at most one. It is checked, hashed, and signed, and in the ledger before
anyone learns of it. The record's verdict stays `review`; only the signed grant allows the held action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, cast

import orjson

from gate.clock import new_id
from gate.decisions.cited import CitedRecords
from gate.decisions.claims import (
    Proposal,
    Used,
    entry_of,
    is_answer_of,
    not_as_made,
    operation_of,
    read_claim,
    require_free,
    settle,
)
from gate.decisions.reviews.refusals import final, not_held, require_approver
from gate.decisions.reviews.standing import ReviewStanding, standing_of, stored_resolution
from gate.encoding.canonical import content_hash
from gate.errors import GateError, ReviewConflict, ServiceUnavailable
from gate.ids import timestamp
from gate.ledger import Ledger
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.access.caller import Caller
from gate.ledger.access.users import User
from gate.ledger.chain.entries import StoredReport
from gate.ledger.chain.reviews import HELD
from gate.ledger.chain.writer import Appended, Claim, NewEntry
from gate.ledger.reviews import ReviewRow
from gate.proof import chain
from gate.records.changes import Actor
from gate.records.documents import Answer, Cited, Resolution
from gate.records.record import Signers
from gate.records.reports.report_request import check_request
from gate.records.reports.resolution import (
    EXPIRED,
    GRANTED,
    RESOLUTIONS,
    SERVICE,
    Resolving,
    build_resolution,
    resolution_link,
)
from gate.records.webhooks.events import resolution_made

_DUE_AT_ONCE: Final = 500
_RESOLVE: Final = operation_of(RESOLUTIONS)


@dataclass(frozen=True, slots=True)
class Resolved:
    """An answer to a resolution.

    Attributes:
        resolution: The stored resolution, with its audit_chain.
        status: `created`, or `replayed` where the idempotency key had been used with the same payload.
    """

    resolution: Resolution
    status: str


class Resolutions:
    """Takes resolutions of held decisions, lets reviews expire, and finds where a review stands."""

    def __init__(
        self, ledger: Ledger, signing: Callable[[], tuple[Signers, datetime]], clock: Callable[[], datetime]
    ) -> None:
        """Works on a ledger.

        Args:
            ledger: Where decisions and resolutions are kept.
            signing: What signs now, and the moment; raises `ServiceUnavailable` where that cannot be said.
            clock: The current moment, in UTC.
        """
        self._ledger = ledger
        self._signing = signing
        self._clock = clock
        self._decisions = CitedRecords(ledger.entries)

    def resolve(
        self, authority: Authority, decision_id: str, body: object, *, idempotency_key: str | None = None
    ) -> Resolved:
        """Takes a resolution that a key sends.

        Args:
            authority: The key, with the access `resolve`.
            decision_id: The held decision.
            body: The parsed request body.
            idempotency_key: The caller's retry handle, unique for one decision.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            IdempotencyConflict: `SVC_RESOLUTION_IDEMPOTENCY_CONFLICT`, or `SVC_RESOLUTION_IDEMPOTENCY_IN_PROGRESS`.
            RequestRefused: The body is no resolution, or cites another record.
            ReviewConflict: `SVC_RESOLUTION_NOT_HELD` or `SVC_RESOLUTION_FINAL`.
            AccessForbidden: The key may no longer resolve.
            ServiceUnavailable: Storage or signing is not available: nothing was acknowledged.
        """
        caller = Caller(self._ledger.directory, authority, "resolve", self._clock)
        with caller.confirming():
            record = self._decisions.find(caller.scope_id, decision_id)
            claim = read_claim(_RESOLVE, decision_id, idempotency_key, content_hash(body))
        actor: Actor = {"type": "key", "id": authority.key_id}
        with self._reserved(caller, claim) as free:

            def resolved() -> tuple[NewEntry, Resolution]:
                require_free(RESOLUTIONS, idempotency_key, free=free)
                sent = check_request(RESOLUTIONS, body)
                return self._resolving(caller.scope_id, record, actor, sent, claim)

            settled = settle(self._ledger.entries, caller, Proposal(claim, resolved))
        if isinstance(settled, Used):
            return Resolved(self._replayed(caller.scope_id, settled), "replayed")
        return Resolved(_linked(settled.document, settled.appended.link), "created")

    def resolve_as(
        self,
        user: User,
        scope: Scope,
        decision_id: str,
        answer: Answer,
        *,
        note: str = "",
        evidence: Sequence[str] = (),
        record_hash: str | None = None,
    ) -> Resolution:
        """Takes a resolution of a user who signed in.

        Args:
            user: The user, who needs the role approver.
            scope: The decision's scope.
            decision_id: The held decision.
            answer: granted, refused or expired.
            note: The reason, in the user's words.
            evidence: References to evidence that is kept elsewhere.
            record_hash: The record that the user looked at; None where nobody said.

        Raises:
            AccessForbidden: `REVIEW_FORBIDDEN`.
            NotFound, RequestRefused, ReviewConflict, ServiceUnavailable: As `resolve`.
        """
        require_approver(user, scope)
        record = self._decisions.find(scope.scope_id, decision_id)
        sent: dict[str, object] = {"resolution": answer, "resolved_by": user.name}
        sent |= {"note": note} if note else {}
        sent |= {"evidence": list(evidence)} if evidence else {}
        sent |= {"decision_record_hash": record_hash} if record_hash is not None else {}
        check_request(RESOLUTIONS, sent)
        actor: Actor = {"type": "user", "id": user.name}
        entry, resolution = self._resolving(scope.scope_id, record, actor, sent, None)
        return self._append(entry, resolution)

    def expire_due(self, failed: Callable[[ReviewRow, GateError], None]) -> int:
        """Lets every review expire whose time limit is over.

        Args:
            failed: Called for each that cannot be resolved now.

        Returns:
            How many expired.

        Raises:
            ServiceUnavailable: The reviews that are due cannot be read.
        """
        due = self._ledger.reviews.due(self._clock(), _DUE_AT_ONCE)
        expired = 0
        for review in due:
            try:
                self._expire(self._decisions.find(review.scope_id, review.decision_id), review)
                expired += 1
            except ReviewConflict:
                # Its owner was quicker.
                continue
            except GateError as error:
                failed(review, error)
        return expired

    def expire(self, scope_id: str, decision_id: str) -> bool:
        """Lets the review of one decision expire, where it is held and its time limit is over.

        Returns:
            Whether it expired now.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            ReviewConflict: `SVC_RESOLUTION_FINAL`: its owner was quicker.
            ServiceUnavailable: Storage or signing is not available: nothing was recorded.
        """
        record = self._decisions.find(scope_id, decision_id)
        return self._expire_due(record, self._ledger.reviews.find(scope_id, decision_id))

    def standing(self, scope_id: str, decision_id: str) -> ReviewStanding:
        """Where the review of a decision stands.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: something cannot be read, or is not as it was made.
        """
        return standing_of(self._ledger, scope_id, self._decisions.find(scope_id, decision_id))

    def _resolving(
        self,
        scope_id: str,
        record: Cited,
        actor: Actor,
        sent: Mapping[str, object],
        claim: Claim | None,
    ) -> tuple[NewEntry, Resolution]:
        """The entry of a resolution that somebody sends.

        Raises:
            ReviewConflict: `SVC_RESOLUTION_NOT_HELD` or `SVC_RESOLUTION_FINAL`.
        """
        review = self._ledger.reviews.find(scope_id, record["decision_id"])
        # The service lets it expire within a second; an answer that comes before that is still too late.
        if self._expire_due(record, review):
            review = self._ledger.reviews.find(scope_id, record["decision_id"])
        if review is None:
            raise not_held(record)
        if review.state != HELD:
            raise final(review)
        answer = cast("Answer", sent["resolution"])
        return self._made(record, review, answer, actor, sent, claim)

    def _made(
        self,
        record: Cited,
        review: ReviewRow,
        answer: Answer,
        actor: Actor,
        sent: Mapping[str, object] | None,
        claim: Claim | None,
    ) -> tuple[NewEntry, Resolution]:
        signers, now = self._signing()
        if answer == GRANTED and signers.receipt is None:
            raise ServiceUnavailable(
                "SVC_SIGNING_UNAVAILABLE",
                "Receipt signing is off, and an unsigned grant allows no action. The operator must turn on "
                "receipt signing.",
            )
        expires_at = review.due_at if answer == EXPIRED else None
        if answer == GRANTED:
            expires_at = timestamp(now + timedelta(seconds=review.grant_seconds))
        key = None if claim is None else claim.key
        resolving = Resolving(answer, actor, timestamp(now), expires_at, sent, key)
        resolution = build_resolution(record, resolving, new_id(RESOLUTIONS.id_prefix, now), signers.receipt)
        entry = NewEntry(
            scope_id=review.scope_id,
            entry_id=resolution["resolution_entry_id"],
            link=resolution_link(resolution, record),
            body=orjson.dumps(resolution),
            claim=claim,
            answer=answer,
            event=resolution_made(resolution),
        )
        return entry, resolution

    def _expire_due(self, record: Cited, review: ReviewRow | None) -> bool:
        """Lets a review expire where that is due, and says whether it was; raises ReviewConflict as `_expire` does."""
        if review is None or review.state != HELD or not review.is_due(self._clock()):
            return False
        self._expire(record, review)
        return True

    def _expire(self, record: Cited, review: ReviewRow) -> None:
        """Lets a review expire; raises ReviewConflict where somebody resolved it before."""
        self._append(*self._made(record, review, EXPIRED, SERVICE, None, None))

    def _append(self, entry: NewEntry, resolution: Resolution) -> Resolution:
        outcome = self._ledger.entries.append(entry)
        if isinstance(outcome, Appended):
            return _linked(resolution, outcome.link)
        review = self._ledger.reviews.find(entry.scope_id, resolution["decision_id"])
        raise final(review)

    def _reserved(self, caller: Caller, claim: Claim | None) -> AbstractContextManager[bool]:
        if claim is None:
            return nullcontext(True)
        return self._ledger.reservations.reserve(claim.digest(caller.scope_id))

    def _replayed(self, scope_id: str, used: Used) -> Resolution:
        entry = entry_of(self._ledger.entries, scope_id, _RESOLVE, used)
        stored = StoredReport(used.claimed.position, chain.record_link(entry.link), entry.body)
        resolution = stored_resolution(stored)
        if not is_answer_of(RESOLUTIONS, resolution, used.claim) or chain.find_break([entry.link]) is not None:
            raise not_as_made(_RESOLVE)
        return resolution


def _linked(resolution: Resolution, link: chain.RecordLink) -> Resolution:
    return {**resolution, "audit_chain": chain.record_link(link)}
