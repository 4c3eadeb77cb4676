"""Entering a guarded block, as a flow: everything that happens before the body.

`go_on` looks where the intent is, and does the one step that follows from there. It is called again until the body may
begin, so that a retry, a second process and a first call are the same: each finds what is kept and goes on with it.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from gate.client import operations
from gate.client.errors import ApiError, Conflict
from gate.client.guard.proposal import Proposal, idempotency_key, question_of
from gate.client.guard.recovery import Recovery, found_out, may_begin_again
from gate.client.guard.refusals import (
    already_started,
    clocks_apart,
    contended,
    foreign,
    no_verdict,
    not_approved,
    unexpected,
    unverified,
    waited_too_long,
)
from gate.client.guard.terms import Terms
from gate.client.store.intents import Intent, State, StoreUnavailable
from gate.client.transport.exchange import exchange
from gate.client.transport.flow import Consult, Do, Flow
from gate.clock import utc_now
from gate.encoding.canonical import content_hash
from gate.errors import GateError
from gate.ids import parse_timestamp, timestamp
from gate.records.envelope import input_material

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord
    from gate.records.documents import DecisionBody
    from gate.verify import Verification

# Each round ends a race that another process won, or begins an attempt; more than a few rounds are no longer races.
_ROUNDS: Final = 8
# How many earlier attempts are looked through.
_ATTEMPTS: Final = 100


def enter(proposal: Proposal, terms: Terms) -> Flow[tuple[Intent, DecisionRecord]]:
    """Everything before the body: the started attempt and its record.

    Raises:
        Blocked, HeldForReview, GateUnavailable, AlreadyStarted: The body must not run.
    """
    entry = _Entry(proposal, terms)
    try:
        for _ in range(_ROUNDS):
            begun = yield from entry.go_on()
            if begun is not None:
                return begun
    except StoreUnavailable as error:
        raise no_verdict(proposal, error) from error
    raise contended(proposal)


class _Entry:
    """One entering of a guard. A step gives what was begun, or None where the intent has to be looked at again."""

    def __init__(self, proposal: Proposal, terms: Terms) -> None:
        self._proposal = proposal
        self._terms = terms
        self._store = terms.store
        # Attempts that this entering made: none of them can have been asked before.
        self._made: set[int] = set()

    def go_on(self) -> Flow[tuple[Intent, DecisionRecord] | None]:
        """Goes on from where the intent is."""
        intent = yield from self._current()
        if intent is None:
            return None
        if intent.state in (State.STARTED, State.REPORTED):
            yield from self._recover(intent, intent.record, known=intent)
            return None
        if intent.answered is None:
            return (yield from self._ask(intent))
        # Answered, and not begun: by an earlier call that was refused, or that died between the answer and the start.
        if not self._is_wanted(intent):
            yield from self._supersede(intent)
            return None
        record = self._verified(intent.request, intent.record)
        return (yield from self._judge(intent, record))

    def _current(self) -> Flow[Intent | None]:
        """The intent's latest attempt, made where there is none; None where another process was quicker."""
        found = yield from Do(partial(self._store.find, self._proposal.intent_id))
        return found if found is not None else (yield from self._attempt(1, 1, instead_of=None))

    def _attempt(self, number: int, question: int, *, instead_of: Intent | None) -> Flow[Intent | None]:
        def hold() -> Intent | None:
            attempt = Intent(
                intent_id=self._proposal.intent_id,
                attempt=number,
                state=State.HELD,
                asked=self._proposal.request(
                    attempt=number, question=question, store=self._store.identity, nonce=secrets.token_hex(8)
                ),
                asked_hash=self._proposal.body_hash,
                asked_at=timestamp(utc_now()),
            )
            return attempt if self._store.hold(attempt, instead_of=instead_of) else None

        # On disk before it is sent: after a crash in between, the same bytes go out under the same key, and the
        # service answers with the decision that it made then, if it made one.
        attempt = yield from Do(hold)
        if attempt is not None:
            self._made.add(number)
        return attempt

    def _supersede(self, intent: Intent, *, undecided: bool = False) -> Flow[None]:
        """Makes the next attempt; under the same question where no decision of this one is known."""
        question = _question(intent)
        yield from self._attempt(intent.attempt + 1, question if undecided else question + 1, instead_of=intent)

    def _is_wanted(self, intent: Intent) -> bool:
        """Whether an attempt asks for what is asked for now, and not too long ago."""
        return intent.asked_hash == self._proposal.body_hash and _age(intent.asked_at) <= self._terms.max_age

    def _is_fresh(self, intent: Intent, record: DecisionRecord) -> bool:
        return self._is_wanted(intent) and _age(record["created_at"]) <= self._terms.max_age

    def _ask(self, intent: Intent) -> Flow[tuple[Intent, DecisionRecord] | None]:
        """Asks for an attempt's decision and keeps it.

        An attempt that was asked before is asked again as it was, even if it is not wanted any more: only so it is
        known whether the service gave it to this store or to another.
        """
        request = intent.request
        try:
            call = operations.decide(request, idempotency_key=_key(intent))
            answer = yield from exchange(call, seconds=self._terms.seconds, tries=self._terms.tries)
        except GateError as error:
            if error.code == "SVC_API_IDEMPOTENCY_CONFLICT" and isinstance(error, Conflict):
                latest = yield from Do(partial(self._store.find, intent.intent_id))
                if latest is None or latest.attempt != intent.attempt:
                    # Another process of this store was told that it cannot be decided, and has asked something else.
                    return None
                if (yield from self._was_given_to_an_earlier_attempt(intent, error.details.get("existing_input_hash"))):
                    yield from self._supersede(intent)
                    return None
                record = yield from self._of_another_store(error.details.get("decision_id"))
                yield from self._recover(intent, record, known=None)
                return None
            if self._is_wanted(intent) or not (isinstance(error, ApiError) and error.status is not None):
                raise no_verdict(self._proposal, error) from error
            # What was asked then has no decision, and what is asked now is something else. It goes under the same
            # question: should the service decide the other after all, it refuses this one, and says so.
            yield from self._supersede(intent, undecided=True)
            return None
        record = self._verified(request, answer.body)
        if self._is_wanted(intent):
            # A kept record is not asked for again, so a foreign one must not be kept.
            self._require_own(intent, record)
        state = State.PERMITTED if record["verdict"] == "yes" else State.HELD
        # No permission is used before it is kept. Where the attempt is held no longer, another process has gone on with
        # it: nothing is written, and the intent is looked at again.
        kept = yield from Do(partial(self._store.answer, intent, answer.content, state))
        return (yield from self._judge(replace(intent, answered=answer.content), record)) if kept else None

    def _was_given_to_an_earlier_attempt(self, intent: Intent, input_hash: object) -> Flow[bool]:
        """Whether the service has decided under an attempt's question what this store asked before and gave up, as it
        does with a request that arrives late. Nobody begins that attempt any more.

        The service's word is not enough: an answer to the earlier request, which it repeats, has to prove it.
        """
        attempts = yield from Do(partial(self._store.attempts, intent.intent_id, _ATTEMPTS))
        for earlier in attempts:
            if earlier.state is not State.SUPERSEDED or not earlier.asked or _question(earlier) != _question(intent):
                continue
            request = earlier.request
            if content_hash(input_material(request)) != input_hash:
                continue
            try:
                call = operations.decide(request, idempotency_key=_key(earlier))
                answer = yield from exchange(call, seconds=self._terms.seconds, tries=self._terms.tries)
                scope_hash = self._terms.scope_hash()
            except GateError as error:
                raise no_verdict(self._proposal, error) from error
            record = self._verified(request, answer.body)
            # An advisory record cites no registration; it is refused for what it is, and not for its scope.
            registry = record.get("rulebook_registry")
            is_of_scope = scope_hash is None or registry is None or registry.get("scope_hash") == scope_hash
            return is_of_scope and record["idempotency_key"] == _key(intent)
        return False

    def _judge(self, intent: Intent, record: DecisionRecord) -> Flow[tuple[Intent, DecisionRecord] | None]:
        """Acts on a record that verifies."""
        if not self._is_fresh(intent, record):
            # A decision that was asked for just now and is already too old would be again: the clocks differ.
            if intent.attempt not in self._made:
                yield from self._supersede(intent)
                return None
            raise clocks_apart(self._proposal, record, timestamp(utc_now()), self._terms.max_age)
        self._require_own(intent, record)
        if record["verdict"] != "yes":
            raise not_approved(self._proposal, record)
        begun = yield from self._start(intent, record)
        return None if begun is None else (begun, record)

    def _require_own(self, intent: Intent, record: DecisionRecord) -> None:
        try:
            why = self._proposal.objection(record, _key(intent), self._terms.scope_hash())
        except GateError as error:
            raise no_verdict(self._proposal, error) from error
        if why is not None:
            raise foreign(self._proposal, record, why)
        if record["verdict"] == "yes" and not self._proposal.approves(record):
            raise unexpected(self._proposal, record)

    def _start(self, intent: Intent, record: DecisionRecord) -> Flow[Intent | None]:
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
        if not self._is_fresh(intent, record):
            # The store kept it waiting.
            yield from Do(partial(self._store.unstart, begun))
            if self._store.follows_session:
                raise waited_too_long(self._proposal, record, self._terms.max_age)
            return None
        return begun

    def _recover(self, intent: Intent, record: DecisionRecord | None, *, known: Intent | None) -> Flow[None]:
        """Lets the hook say what became of an action that was begun before.

        Args:
            intent: The latest attempt, which is superseded where the action may begin again.
            record: The record of the action that was begun, where there is one.
            known: The attempt that was begun; None where another store holds it.

        Raises:
            AlreadyStarted: Nothing was said, or that it was executed.
        """
        error = already_started(self._proposal, record, known)
        recover = self._terms.recover
        # What is known to have been done is not open to opinion.
        if recover is None or (known is not None and not may_begin_again(known)):
            raise error
        said = yield from Consult(partial(recover, error))
        if not isinstance(said, Recovery):
            raise TypeError(f"A recovery hook must return a Recovery; this one returned {type(said).__name__}.")
        if said is Recovery.HOLD:
            raise error
        # That nothing was done is no news of a run that was told to have failed or been skipped.
        if known is not None and record is not None and (known.told is None or said is Recovery.EXECUTED):
            report = found_out(known, record, executed=said is Recovery.EXECUTED)
            kept = yield from Do(partial(self._store.settle, known, report))
            if not kept:
                return
            known = replace(known, told=report.body)
        if said is Recovery.EXECUTED:
            raise already_started(self._proposal, record, known)
        yield from self._supersede(intent if known is None else known)

    def _of_another_store(self, decision_id: object) -> Flow[DecisionRecord | None]:
        """The record that the service made for another store, where it can be had and is about this action."""
        if not isinstance(decision_id, str):
            return None
        try:
            call = operations.get_decision(decision_id)
            answer = yield from exchange(call, seconds=self._terms.seconds, tries=self._terms.tries)
            record = answer.body
            is_ours = self._verification(record).verified
        except GateError:
            return None
        return record if is_ours and record["action_binding"] == self._proposal.binding else None

    def _verification(self, record: DecisionRecord | None, request: DecisionBody | None = None) -> Verification:
        # Loaded with the first record, so that importing the client needs no cryptography.
        from gate.verify import verify_record

        return verify_record(record, self._terms.trust(), request_body=request)

    def _verified(self, request: DecisionBody, record: DecisionRecord | None) -> DecisionRecord:
        """A record of which it is known by now that it is one, and made from a request."""
        try:
            result = self._verification(record, request)
        except GateError as error:
            raise no_verdict(self._proposal, error) from error
        if record is None or not result.verified or result.error is not None:
            raise unverified(self._proposal, result)
        return record


def _question(intent: Intent) -> int:
    # Of a forgotten attempt only the number is left, and numbers never go back.
    return question_of(intent.attempt, intent.request) if intent.asked else intent.attempt


def _key(intent: Intent) -> str:
    return idempotency_key(intent.intent_id, _question(intent))


def _age(moment: str) -> float:
    """How far away a moment is, in seconds. Clocks differ; a record from the future is as old as it is far away."""
    return abs(utc_now() - parse_timestamp(moment)) / timedelta(seconds=1)
