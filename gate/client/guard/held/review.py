"""The review of a held action: asks for its owner's resolution, and waits for it if the caller wants that.

The state of a review is not signed, so it permits nothing. Only a verified resolution does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gate.client import operations
from gate.client.errors import (
    AnswerUnusable,
    ApiError,
    LimitReached,
    NotFound,
    ServiceFailed,
    Unreachable,
)
from gate.client.guard.held.judging import Finding, Judged, judge
from gate.client.guard.held.unopened import foreign_resolution, unheard, unverified_resolution
from gate.client.guard.proposal import Proposal
from gate.client.guard.refusals import no_verdict, not_approved
from gate.client.guard.terms import Terms
from gate.client.store.intents import Intent
from gate.client.transport.exchange import exchange
from gate.client.transport.flow import Flow, Pause
from gate.clock import utc_now
from gate.encoding.canonical import canonical
from gate.errors import GateError

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord, Resolution, ResolutionReview

FIRST_PAUSE: Final = 1.0
"""The maximum of the first pause between two requests, in seconds. Each later pause may be 1.5 times as long."""

LONGEST_PAUSE: Final = 30.0
"""The maximum of every pause, in seconds."""

_GROWTH: Final = 1.5
# From a service without reviews, which has no such address.
_NO_SUCH_ADDRESS: Final = "SVC_API_NOT_FOUND"
# Errors that may pass. The service or a proxy would repeat all others.
_PASSING: Final = (Unreachable, ServiceFailed, LimitReached, AnswerUnusable)


class Review:
    """The review of a held action during one entering of a guard.

    Attributes:
        was_open: Whether this entering saw the review without an answer.
        was_executed: Whether the service says that the action was executed before, with or without a grant.
    """

    def __init__(self, proposal: Proposal, terms: Terms) -> None:
        """Takes the action, and the terms of waiting for its owner."""
        self.was_open = False
        self.was_executed = False
        self._proposal = proposal
        self._terms = terms
        self._ends: float | None = None
        self._pauses = _pauses()

    def heard(self, intent: Intent, record: DecisionRecord, *, is_new: bool) -> Flow[Judged | None]:
        """The owner's resolution, after waiting as the terms say. None if nobody can resolve the decision.

        Args:
            intent: The held attempt, which may already have its resolution.
            record: Its record, which verifies and is about the action.
            is_new: Whether the decision is new, so that nobody can have answered.

        Raises:
            HeldForReview: `ACTION_HELD`: there is no resolution yet.
            GateUnavailable: The resolution cannot be read, does not verify, or is about something else.
        """
        if intent.resolved is not None:
            return self._judged(intent.resolution, record)
        if is_new and not self._terms.waits:
            raise not_approved(self._proposal, record)
        while True:
            failure = None
            try:
                standing = yield from self._asked(record)
            except ApiError as error:
                failure = error
            else:
                if standing is None or (standing["state"] is None and standing["resolution"] is None):
                    return None
                if standing["resolution"] is not None:
                    # Services of earlier releases do not say when.
                    executed_at = standing.get("executed_at")
                    self.was_executed = standing["state"] == "executed" or executed_at is not None
                    return self._judged(standing["resolution"], record)
                self.was_open = True
            left = self._left()
            if failure is not None and (left <= 0 or not isinstance(failure, _PASSING)):
                raise unheard(self._proposal, record, failure) from failure
            if left <= 0:
                raise not_approved(self._proposal, record)
            wished = 0.0 if failure is None else failure.retry_after or 0.0
            yield from Pause(min(max(next(self._pauses), wished), left))

    def _left(self) -> float:
        """How long to wait for the owner from now on, in seconds."""
        if not self._terms.waits:
            return 0.0
        now = time.monotonic()
        if self._ends is None:
            self._ends = now + self._terms.review_seconds
        return self._ends - now

    def _asked(self, record: DecisionRecord) -> Flow[ResolutionReview | None]:
        """The state of the review at the service. None if the service has no reviews.

        Raises:
            ApiError: The service does not return it.
            GateUnavailable: `RESOLUTION_FOREIGN`: it is about another decision; or the call is invalid.
        """
        decision_id = record["decision_id"]
        try:
            call = operations.get_resolution(decision_id)
            answer = yield from exchange(call, seconds=self._terms.seconds, tries=self._terms.tries)
        except NotFound as error:
            if error.code == _NO_SUCH_ADDRESS:
                return None
            raise
        except ApiError:
            raise
        except GateError as error:
            raise no_verdict(self._proposal.intent_id, error) from error
        if not _is_standing(answer.body):
            raise AnswerUnusable(
                "ANSWER_UNUSABLE",
                f"The response to GET {call.path} does not contain the state of a review; check for a proxy between "
                "this host and the service.",
                status=answer.status,
                request_id=answer.request_id,
            )
        if answer.body["decision_id"] != decision_id:
            raise foreign_resolution(self._proposal, record, f"the response is about {answer.body['decision_id']!r}")
        return answer.body

    def _judged(self, resolution: object, record: DecisionRecord) -> Judged:
        """A resolution that verifies and is about the record.

        Raises:
            GateUnavailable: `RESOLUTION_UNVERIFIED` or `RESOLUTION_FOREIGN`; or the guard cannot read the pinned keys.
        """
        try:
            trust = self._terms.trust()
            judged = judge(resolution, record, trust, now=utc_now(), max_age=self._terms.max_age)
        except GateError as error:
            raise no_verdict(self._proposal.intent_id, error) from error
        if judged.finding is Finding.UNVERIFIED:
            raise unverified_resolution(self._proposal, record, judged.verification)
        if judged.finding is Finding.FOREIGN:
            raise foreign_resolution(self._proposal, record, "it is about a decision other than the held one")
        return judged


def kept_form(resolution: Resolution) -> bytes:
    """A resolution as the store keeps it."""
    return canonical(dict(resolution))


def _is_standing(body: object) -> bool:
    """Whether a JSON value is the state of a review."""
    if not isinstance(body, dict) or not isinstance(body.get("decision_id"), str):
        return False
    if "state" not in body or not isinstance(body["state"], str | None):
        return False
    if isinstance(body.get("resolution"), dict):
        return True
    # Only a review without an answer has no resolution.
    return "resolution" in body and body["resolution"] is None and body["state"] in ("held", None)


def _pauses() -> Iterator[float]:
    """The pauses between two requests, in seconds. They grow and are random, so that callers spread out."""
    longest = FIRST_PAUSE
    while True:
        yield random.uniform(longest / 2, longest)  # noqa: S311 - not a secret
        longest = min(LONGEST_PAUSE, longest * _GROWTH)
