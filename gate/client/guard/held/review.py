"""The review of a held action: its owner's resolution is asked for, and waited for where the caller wants that.

Where a review stands is not signed, so that it opens nothing: only a resolution that verifies does.
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
"""How long the first pause between two looks at a review is at most, in seconds; each later one may be half longer."""

LONGEST_PAUSE: Final = 30.0
"""How long any of them is at most, in seconds."""

_GROWTH: Final = 1.5
# Answered by a service that knows no reviews, for it knows no such address.
_NO_SUCH_ADDRESS: Final = "SVC_API_NOT_FOUND"
# What may be otherwise at the next look. Whatever else the service or a proxy refuses, it refuses again.
_PASSING: Final = (Unreachable, ServiceFailed, LimitReached, AnswerUnusable)


class Review:
    """The review of a held action during one entering of a guard.

    Attributes:
        was_open: Whether this entering saw the review without an answer.
        was_executed: Whether the service says that the action was executed before, with its owner's grant or without.
    """

    def __init__(self, proposal: Proposal, terms: Terms) -> None:
        """Takes the action, and under what terms its owner is waited for."""
        self.was_open = False
        self.was_executed = False
        self._proposal = proposal
        self._terms = terms
        self._ends: float | None = None
        self._pauses = _pauses()

    def heard(self, intent: Intent, record: DecisionRecord, *, is_new: bool) -> Flow[Judged | None]:
        """The owner's resolution, waited for as the terms say; None where nobody can resolve the decision.

        Args:
            intent: The held attempt, which may keep its resolution.
            record: Its record, which verifies and is about the action.
            is_new: Whether the decision was made just now, so that nobody can have answered.

        Raises:
            HeldForReview: ACTION_HELD: there is none yet.
            GateUnavailable: It cannot be read, does not verify, or is about something else.
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
        """How long the owner is still waited for, in seconds."""
        if not self._terms.waits:
            return 0.0
        now = time.monotonic()
        if self._ends is None:
            self._ends = now + self._terms.review_seconds
        return self._ends - now

    def _asked(self, record: DecisionRecord) -> Flow[ResolutionReview | None]:
        """Where the review stands, as the service says; None where it knows no reviews.

        Raises:
            ApiError: It does not say.
            GateUnavailable: RESOLUTION_FOREIGN: it says it of another decision; or the call cannot be made.
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
                f"The answer to GET {call.path} does not say where a review stands; check for a proxy between this "
                "host and the service.",
                status=answer.status,
                request_id=answer.request_id,
            )
        if answer.body["decision_id"] != decision_id:
            raise foreign_resolution(self._proposal, record, f"the answer is about {answer.body['decision_id']!r}")
        return answer.body

    def _judged(self, resolution: object, record: DecisionRecord) -> Judged:
        """A resolution that verifies and is about the record.

        Raises:
            GateUnavailable: RESOLUTION_UNVERIFIED or RESOLUTION_FOREIGN; or the pinned keys cannot be read.
        """
        try:
            trust = self._terms.trust()
            judged = judge(resolution, record, trust, now=utc_now(), max_age=self._terms.max_age)
        except GateError as error:
            raise no_verdict(self._proposal.intent_id, error) from error
        if judged.finding is Finding.UNVERIFIED:
            raise unverified_resolution(self._proposal, record, judged.verification)
        if judged.finding is Finding.FOREIGN:
            raise foreign_resolution(self._proposal, record, "it is about another decision than the held one")
        return judged


def kept_form(resolution: Resolution) -> bytes:
    """A resolution as the store keeps it."""
    return canonical(dict(resolution))


def _is_standing(body: object) -> bool:
    """Whether a JSON value says where a review stands."""
    if not isinstance(body, dict) or not isinstance(body.get("decision_id"), str):
        return False
    if "state" not in body or not isinstance(body["state"], str | None):
        return False
    if isinstance(body.get("resolution"), dict):
        return True
    # Only a review without an answer has no resolution.
    return "resolution" in body and body["resolution"] is None and body["state"] in ("held", None)


def _pauses() -> Iterator[float]:
    """The pauses between two looks, in seconds: they grow, and are drawn at random, so that callers spread."""
    longest = FIRST_PAUSE
    while True:
        yield random.uniform(longest / 2, longest)  # noqa: S311 - not a secret
        longest = min(LONGEST_PAUSE, longest * _GROWTH)
