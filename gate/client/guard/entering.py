"""Entering a guarded block, as a flow: everything that happens before the body.

`go_on` reads the state of the intent and takes the next step from there. The guard calls it until the body may begin.
A first call, a retry and a second process therefore run the same code: each continues from the stored state.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from gate.client import operations
from gate.client.errors import AlreadyStarted, ApiError, Conflict
from gate.client.guard.attempts import Attempts
from gate.client.guard.checking import Checks, key_of
from gate.client.guard.held.judging import Finding, Judged
from gate.client.guard.held.review import Review, kept_form
from gate.client.guard.held.unopened import executed_elsewhere, not_opened
from gate.client.guard.proposal import Proposal
from gate.client.guard.recovery import Recovery, found_out, may_begin_again
from gate.client.guard.refusals import (
    already_started,
    clocks_apart,
    contended,
    no_verdict,
    not_approved,
    waited_too_long,
)
from gate.client.guard.terms import Terms
from gate.client.store.intents import Intent, State, StoreUnavailable
from gate.client.transport.exchange import exchange
from gate.client.transport.flow import Consult, Do, Flow
from gate.clock import utc_now
from gate.errors import GateError
from gate.ids import parse_timestamp, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from gate.client.api.types import DecisionRecord

# Each round ends a race that another process won, or begins an attempt; more than a few rounds are no longer races.
_ROUNDS: Final = 8
# What no longer opens a held action, whatever its owner said: only a new review can.
_OVER: Final = (Finding.EXPIRED, Finding.ENDED, Finding.RETIRED)


def enter(proposal: Proposal, terms: Terms) -> Flow[tuple[Intent, DecisionRecord]]:
    """Everything before the body: the started attempt and its record.

    Raises:
        Blocked, HeldForReview, GateUnavailable, AlreadyStarted: The body must not run.
    """
    return (yield from begin(Entry(proposal, terms), proposal))


def begin(entry: Entry, proposal: Proposal) -> Flow[tuple[Intent, DecisionRecord]]:
    """Continues an entry until the body may begin.

    Raises:
        Blocked, HeldForReview, GateUnavailable, AlreadyStarted: The body must not run.
    """
    try:
        for _ in range(_ROUNDS):
            begun = yield from entry.go_on()
            if begun is not None:
                return begun
    except StoreUnavailable as error:
        raise no_verdict(proposal.intent_id, error) from error
    raise contended(proposal)


class Entry:
    """One entering of a guard. A step returns what was begun, or None if the guard must read the intent again."""

    def __init__(self, proposal: Proposal, terms: Terms) -> None:
        self._proposal = proposal
        self._terms = terms
        self._store = terms.store
        self._checks = Checks(proposal, terms)
        self._review = Review(proposal, terms)
        self._attempts = Attempts(proposal, terms.store)

    def go_on(self) -> Flow[tuple[Intent, DecisionRecord] | None]:
        """Takes the next step from the state of the intent."""
        intent = yield from self._attempts.current()
        if intent is None:
            return None
        if intent.state in (State.STARTED, State.REPORTED):
            yield from self._recover(intent, intent.record, known=intent)
            return None
        if intent.answered is None:
            return (yield from self._ask(intent))
        # Answered, and not begun: by an earlier call that was refused, or that died between the answer and the start.
        if not self._is_wanted(intent) and not (self._is_same(intent) and self._checks.is_own_review(intent)):
            yield from self._attempts.supersede(intent)
            return None
        record = self._checks.verified(intent.request, intent.record)
        return (yield from self._judge(intent, record))

    def _is_same(self, intent: Intent) -> bool:
        """Whether an attempt asks for what is asked for now."""
        return intent.asked_hash == self._proposal.body_hash

    def _is_wanted(self, intent: Intent) -> bool:
        """The same, and not too long ago."""
        return self._is_same(intent) and _age(intent.asked_at) <= self._terms.verdict_age

    def _is_fresh(self, intent: Intent, record: DecisionRecord) -> bool:
        return self._is_wanted(intent) and _age(record["created_at"]) <= self._terms.verdict_age

    def _ask(self, intent: Intent) -> Flow[tuple[Intent, DecisionRecord] | None]:
        """Asks for an attempt's decision and stores it.

        If an attempt was sent before, the guard sends it again unchanged, even if the caller now wants something else.
        Only this tells whether the service decided it for this store or for another one.
        """
        request = intent.request
        try:
            call = operations.decide(request, idempotency_key=key_of(intent))
            answer = yield from exchange(call, seconds=self._terms.seconds, tries=self._terms.tries)
        except GateError as error:
            if error.code == "SVC_API_IDEMPOTENCY_CONFLICT" and isinstance(error, Conflict):
                latest = yield from Do(partial(self._store.find, intent.intent_id))
                if latest is None or latest.attempt != intent.attempt:
                    # Another process of this store learned that it cannot be decided, and has asked something else.
                    return None
                decided = error.details.get("existing_input_hash")
                if (yield from self._checks.was_given_to_an_earlier_attempt(intent, decided)):
                    yield from self._attempts.supersede(intent)
                    return None
                record = yield from self._checks.of_another_store(error.details.get("decision_id"))
                yield from self._recover(intent, record, known=None)
                return None
            if self._is_wanted(intent) or not (isinstance(error, ApiError) and error.status is not None):
                raise no_verdict(self._proposal.intent_id, error) from error
            # What was asked then has no decision, and what is asked now is something else. It goes under the same
            # question: should the service decide the other after all, it refuses this one, and says so.
            yield from self._attempts.supersede(intent, undecided=True)
            return None
        record = self._checks.verified(request, answer.body)
        if self._is_wanted(intent):
            # A kept record is not asked for again, so a foreign one must not be kept.
            self._checks.require_own(intent, record)
        state = State.PERMITTED if record["verdict"] == "yes" else State.HELD
        # No permission is used before it is stored. If the attempt is not held any more, another process continued
        # with it: nothing is written, and the intent is read again.
        kept = yield from Do(partial(self._store.answer, intent, answer.content, state))
        if not kept:
            return None
        # The service says so where it made the decision before, and then its owner may have answered by now.
        is_new = not answer.replayed
        return (yield from self._judge(replace(intent, answered=answer.content, state=state), record, is_new=is_new))

    def _judge(
        self, intent: Intent, record: DecisionRecord, *, is_new: bool = False
    ) -> Flow[tuple[Intent, DecisionRecord] | None]:
        """Acts on a verified record.

        A review waits for its owner, however long that takes. The guard never asks again while it is open or granted.
        Otherwise each retry would create another review, and no grant would permit any of them.
        """
        if record["verdict"] == "review" and self._is_for_its_owner(intent, record):
            judged = yield from self._review.heard(intent, record, is_new=is_new)
            if judged is not None:
                return (yield from self._act_on(judged, intent, record))
        if not self._is_fresh(intent, record):
            # A decision that was asked for just now and is already too old would be again: the clocks differ.
            if not self._attempts.made(intent):
                yield from self._attempts.supersede(intent)
                return None
            raise clocks_apart(self._proposal, record, timestamp(utc_now()), self._terms.verdict_age)
        self._checks.require_own(intent, record)
        if record["verdict"] != "yes":
            raise not_approved(self._proposal, record)
        begun = yield from self._start(intent, record, partial(self._is_fresh, intent, record))
        return None if begun is None else (begun, record)

    def _is_for_its_owner(self, intent: Intent, record: DecisionRecord) -> bool:
        """Whether a review is about the action as it is asked for now.

        Raises:
            GateUnavailable: `RECORD_FOREIGN`: the guard asked for it now, and it is about something else.
        """
        if self._is_fresh(intent, record):
            self._checks.require_own(intent, record)
        return self._is_same(intent) and self._checks.objection(intent, record) is None

    def _act_on(
        self, judged: Judged, intent: Intent, record: DecisionRecord
    ) -> Flow[tuple[Intent, DecisionRecord] | None]:
        """Acts on the resolution of a review."""
        is_grant = judged.finding is Finding.GRANTED
        if is_grant and self._review.was_executed:
            yield from self._done_before(intent, record)
            return None
        if intent.resolved is None and judged.finding in (Finding.GRANTED, Finding.REFUSED, Finding.EXPIRED):
            # No grant is used before it is kept. Where this changes nothing, another process was quicker.
            state = State.PERMITTED if is_grant else State.HELD
            content = kept_form(judged.resolution)
            if not (yield from Do(partial(self._store.resolve, intent, content, state))):
                return None
            intent = replace(intent, state=state, resolved=content)
        if not is_grant:
            if judged.finding in _OVER and self._asks_anew(intent):
                yield from self._attempts.supersede(intent)
                return None
            now, max_age = timestamp(utc_now()), self._terms.max_age
            raise not_opened(self._proposal, record, judged, now=now, max_age=max_age)
        begun = yield from self._start(intent, record, lambda: judged.holds(utc_now(), self._terms.max_age))
        return None if begun is None else (begun, record)

    def _done_before(self, intent: Intent, record: DecisionRecord) -> Flow[None]:
        """Acts on a granted action that the service knows to be executed."""
        latest = yield from Do(partial(self._store.find, intent.intent_id))
        if latest is not None and (latest.attempt, latest.state) == (intent.attempt, State.HELD):
            # Not by this store, as far as it knows: a copy of it was used, or an older one was put in its place.
            yield from self._recover(latest, record, known=None)

    def _asks_anew(self, intent: Intent) -> bool:
        """Whether to ask again after a review that was over when the guard was entered, and not while it waited."""
        return not self._review.was_open and not self._attempts.made(intent)

    def _start(self, intent: Intent, record: DecisionRecord, is_valid: Callable[[], bool]) -> Flow[Intent | None]:
        # `by` names this entering. Of several that find the permission, the conditional write lets one through; and
        # none of the others can undo or end what that one began.
        at, by = timestamp(utc_now()), secrets.token_hex(8)
        begun = replace(intent, state=State.STARTED, started_at=at, started_by=by)
        # Noted by the work itself: a flow that is cancelled after the write is never given its result.
        won: list[bool] = []

        def start() -> None:
            won.append(self._store.start(intent, at, by))

        try:
            yield from Do(start)
        except StoreUnavailable:
            # Whether it was written is not known, and a store that fails cannot undo it. The body does not run; if it
            # was written, a retry raises AlreadyStarted, which errs on the safe side.
            raise
        except BaseException:
            # Cancelled. Only a start that is this one's is undone: another's body may be running.
            if won == [True]:
                yield from Do(partial(self._store.unstart, begun))
            raise
        if not won[0]:
            return None
        if not is_valid():
            # The store kept it waiting.
            yield from Do(partial(self._store.unstart, begun))
            if self._store.follows_session:
                raise waited_too_long(self._proposal, record)
            return None
        return begun

    def _recover(self, intent: Intent, record: DecisionRecord | None, *, known: Intent | None) -> Flow[None]:
        """Asks the hook how an action ended that was begun before.

        Args:
            intent: The latest attempt, which is superseded if the action may begin again.
            record: The record of the action that was begun, if there is one.
            known: The attempt that was begun, or None if another store holds it.

        Raises:
            AlreadyStarted: The hook does not know, or says that the action was executed.
        """
        error = self._already_started(record, known)
        recover = self._terms.recover
        # What is known to have been done is not open to opinion.
        if recover is None or (known is not None and not may_begin_again(known)):
            raise error
        said = yield from Consult(partial(recover, error))
        if not isinstance(said, Recovery):
            raise TypeError(f"A recovery hook must return a Recovery; this one returned {type(said).__name__}.")
        if said is Recovery.HOLD:
            raise error
        # If a run was reported as failed or skipped, that nothing was done is not new.
        if known is not None and record is not None and (known.told is None or said is Recovery.EXECUTED):
            report = found_out(known, record, executed=said is Recovery.EXECUTED)
            kept = yield from Do(partial(self._store.settle, known, report))
            if not kept:
                return
            known = replace(known, told=report.body)
        if said is Recovery.EXECUTED:
            raise self._already_started(record, known)
        yield from self._attempts.supersede(intent if known is None else known)

    def _already_started(self, record: DecisionRecord | None, known: Intent | None) -> AlreadyStarted:
        if known is None and record is not None and self._review.was_executed:
            return executed_elsewhere(self._proposal, record)
        return already_started(self._proposal, record, known)


def _age(moment: str) -> float:
    """How far away a moment is, in seconds. Clocks differ; a record from the future is as old as it is far away."""
    return abs(utc_now() - parse_timestamp(moment)) / timedelta(seconds=1)
