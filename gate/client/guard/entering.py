"""The guard: a body runs only on a verified yes about this very action, and once.

    with client.guard("refund_policy@2026-09-01", facts, action="issue_refund", target=("shop", "order-77")) as permit:
        payments.refund("order-77")

What happens, in this order; each step is durable before the next one begins:

    1  the intent is kept as held, with the request that will be sent
    2  the service decides; its record must verify against a pinned key and be about this request, action and target
    3  the record is kept: permitted for yes; for no and review the intent stays held and the body does not run
    4  permitted becomes started, by one conditional write that one process alone wins
    5  the body runs
    6  its end is kept together with the execution receipt; from there the receipt is delivered, now or later

A process may die between any two of them. Before 4 a retry goes on where it was. After it a retry never runs the body
by itself: it raises AlreadyStarted, and a person or a recovery hook says what became of it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gate.client import operations
from gate.client.errors import (
    AlreadyStarted,
    ApiError,
    Blocked,
    Conflict,
    GateUnavailable,
    HeldForReview,
    Refused,
    StoreUnavailable,
    Undecidable,
)
from gate.client.guard.delivery import call_of
from gate.client.guard.permit import BasePermit
from gate.client.guard.proposal import Plan, idempotency_key, question_of
from gate.client.guard.recovery import found_out, may_begin_again
from gate.client.store.intents import Intent, Report, State, Store
from gate.client.transport.exchange import exchange
from gate.client.transport.flow import Consult, Do, Flow
from gate.encoding.canonical import content_hash
from gate.errors import GateError, MaterialRefused
from gate.ids import parse_timestamp, timestamp, utc_now
from gate.records.envelope import input_material

if TYPE_CHECKING:
    from gate.verify import Trust, Verification

MAX_AGE: Final = 300.0
"""How old the verdict may be when the body begins, in seconds, where nothing else is said."""

# Each round ends a race that another process won, or begins an attempt; more than a few are no races any more.
_ROUNDS: Final = 8
# How many earlier attempts are looked through.
_ATTEMPTS: Final = 100

log = logging.getLogger("gate.client")


class Recovery(Enum):
    """What a recovery hook says of an action that was begun before.

    HOLD: not known; AlreadyStarted is raised. EXECUTED: it was done; that is reported, and AlreadyStarted raised.
    NOT_EXECUTED: it was not done and nobody is doing it; that is reported, and the gate asked again.
    """

    HOLD = "hold"
    EXECUTED = "executed"
    NOT_EXECUTED = "not_executed"


@dataclass(frozen=True, slots=True)
class Terms:
    """Under what terms a guard lets a body run.

    Attributes:
        store: Where intents are kept.
        trust: Gives the keys that a record must be signed with.
        seconds: How long one call to the service may take with all its tries.
        tries: How often a call is sent at most.
        scope_hash: Gives the scope that must have decided, as records name it; None for any.
        max_age: How old the verdict may be when the body begins, in seconds.
        recover: The recovery hook.
    """

    store: Store
    trust: Callable[[], Trust]
    seconds: float
    tries: int
    scope_hash: Callable[[], str | None]
    max_age: float = MAX_AGE
    recover: Callable[[AlreadyStarted], Any] | None = None


def enter(plan: Plan, terms: Terms) -> Flow[tuple[Intent, Mapping[str, Any]]]:
    """Everything before the body: the started attempt and its record.

    Raises:
        Blocked, HeldForReview, GateUnavailable, AlreadyStarted: The body must not run.
    """
    entry = _Entry(plan, terms)
    try:
        for _ in range(_ROUNDS):
            begun = yield from entry.go_on()
            if begun is not None:
                return begun
    except StoreUnavailable as error:
        raise _unavailable(plan, error) from error
    raise GateUnavailable(
        "GUARD_CONTENDED",
        "Other processes keep changing this intent; the action stays held. Try again.",
        intent_id=plan.intent_id,
    )


def leave(terms: Terms, permit: BasePermit, error: BaseException | None) -> Flow[None]:
    """Everything after the body: its end is kept, with the receipt to deliver.

    Raises:
        StoreUnavailable: The body succeeded, and its end could neither be kept nor be told to the service. With a
            session also START_LOST: it was rolled back in the body, so that nothing of it may be committed.
    """
    report, store = permit.execution_report(error), terms.store
    finish = partial(store.finish, permit.intent, report)
    try:
        try:
            kept: bool = yield Do(finish)
        except StoreUnavailable:
            raise
        except BaseException:
            # A signal, such as Ctrl-C, whose handler raised: the end is kept first. Where it is kept already, this
            # changes nothing.
            yield Do(finish)
            raise
        if not kept and (yield from _follows_session(store)):
            raise StoreUnavailable(
                "START_LOST",
                "The session was rolled back in the body, and with it that the body was started: what was written "
                "since is not to be committed. Roll back, and enter the guard again.",
            )
        if not kept:
            # Somebody settled it while it was running; what it came to is told nevertheless.
            log.error(
                "%s (intent %s) ended after somebody had settled it: it may be done twice. Its end is told to the "
                "service besides; compare it with `gate client show %s`.",
                permit.decision_id,
                permit.intent_id,
                permit.intent_id,
            )
            yield Do(partial(store.tell, _besides(report)))
    except StoreUnavailable as failure:
        if (yield from _follows_session(store)):
            # The service is told what was committed, and nothing else.
            if error is None:
                raise
            return
        try:
            yield from exchange(call_of(_besides(report)), seconds=terms.seconds, tries=terms.tries)
        except GateError as missed:
            failure.add_note(f"Nor could the service be told: {missed}")
            log.critical("What became of %s could be kept nowhere: %s", permit.decision_id, failure.code)
            if error is None:
                raise failure from missed
        else:
            log.error("What became of %s was told to the service alone: %s", permit.decision_id, failure.code)


def _follows_session(store: Store) -> Flow[bool]:
    follows: bool = yield Do(lambda: store.follows_session)
    return follows


def _besides(report: Report) -> Report:
    """The same report under a key of its own: the attempt is, or may yet be, told of by somebody else."""
    return replace(report, idempotency_key=f"{report.idempotency_key}-{secrets.token_hex(8)}")


class _Entry:
    """One entering of a guard. A step gives what was begun, or None where the intent has to be looked at again."""

    def __init__(self, plan: Plan, terms: Terms) -> None:
        self._plan = plan
        self._terms = terms
        self._store = terms.store
        # Attempts that were made by this entering, so that none can have been asked before.
        self._made: set[int] = set()

    def go_on(self) -> Flow[tuple[Intent, Mapping[str, Any]] | None]:
        """Goes on from where the intent is."""
        intent = yield from self._current()
        if intent is None:
            return None
        if intent.state in (State.STARTED, State.REPORTED):
            yield from self._recover(intent, intent.record, known=intent)
            return None
        if intent.answered is None:
            return (yield from self._ask(intent))
        if not self._is_wanted(intent):
            yield from self._supersede(intent)
            return None
        record = intent.record or {}
        self._verify(intent.request, record)
        return (yield from self._judge(intent, record))

    def _current(self) -> Flow[Intent | None]:
        """The intent's latest attempt, made where there is none; None where another process was quicker."""
        found: Intent | None = yield Do(partial(self._store.find, self._plan.intent_id))
        return found if found is not None else (yield from self._attempt(1, 1, instead_of=None))

    def _attempt(self, number: int, question: int, *, instead_of: Intent | None) -> Flow[Intent | None]:
        def hold() -> Intent | None:
            attempt = Intent(
                intent_id=self._plan.intent_id,
                attempt=number,
                state=State.HELD,
                asked=self._plan.request(
                    attempt=number, question=question, store=self._store.identity, nonce=secrets.token_hex(8)
                ),
                asked_hash=self._plan.body_hash,
                asked_at=timestamp(utc_now()),
            )
            return attempt if self._store.hold(attempt, instead_of=instead_of) else None

        attempt: Intent | None = yield Do(hold)
        if attempt is not None:
            self._made.add(number)
        return attempt

    def _supersede(self, intent: Intent, *, undecided: bool = False) -> Flow[None]:
        """Makes the next attempt; under the same question where no decision of this one is known."""
        question = _question(intent)
        yield from self._attempt(intent.attempt + 1, question if undecided else question + 1, instead_of=intent)

    def _is_wanted(self, intent: Intent) -> bool:
        """Whether an attempt asks for what is asked for now, and not too long ago."""
        return intent.asked_hash == self._plan.body_hash and _age(intent.asked_at) <= self._terms.max_age

    def _is_fresh(self, intent: Intent, record: Mapping[str, Any]) -> bool:
        return self._is_wanted(intent) and _age(record["created_at"]) <= self._terms.max_age

    def _ask(self, intent: Intent) -> Flow[tuple[Intent, Mapping[str, Any]] | None]:
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
                latest: Intent | None = yield Do(partial(self._store.find, intent.intent_id))
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
                raise _unavailable(self._plan, error) from error
            # What was asked then has no decision, and what is asked now is something else. It goes under the same
            # question: should the service decide the other after all, it refuses this one, and says so.
            yield from self._supersede(intent, undecided=True)
            return None
        record = answer.body
        self._verify(request, record)
        if self._is_wanted(intent):
            # What is kept is not asked for again, so that nothing foreign may be.
            self._require_own(intent, record)
        state = State.PERMITTED if record["verdict"] == "yes" else State.HELD
        kept: bool = yield Do(partial(self._store.answer, intent, answer.content, state))
        return (yield from self._judge(replace(intent, answered=answer.content), record)) if kept else None

    def _was_given_to_an_earlier_attempt(self, intent: Intent, input_hash: Any) -> Flow[bool]:
        """Whether the service has decided under an attempt's question what this store asked before and gave up, as it
        does with a request that arrives late. Nobody begins that attempt any more.

        The service's word is not enough: an answer to the earlier request, which it repeats, has to prove it.
        """
        attempts: Sequence[Intent] = yield Do(partial(self._store.attempts, intent.intent_id, _ATTEMPTS))
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
                raise _unavailable(self._plan, error) from error
            record = answer.body
            self._verify(request, record)
            is_of_scope = scope_hash is None or record["rulebook_registry"].get("scope_hash") == scope_hash
            return is_of_scope and record["idempotency_key"] == _key(intent)
        return False

    def _judge(self, intent: Intent, record: Mapping[str, Any]) -> Flow[tuple[Intent, Mapping[str, Any]] | None]:
        """Acts on a record that verifies."""
        if not self._is_fresh(intent, record):
            if intent.attempt not in self._made:
                yield from self._supersede(intent)
                return None
            raise GateUnavailable(
                "PERMIT_EXPIRED",
                f"The decision is dated {record['created_at']} and it is {timestamp(utc_now())} here, more than "
                f"{self._terms.max_age:g} s apart; set both clocks right, or allow a greater max_age.",
                intent_id=self._plan.intent_id,
                record=record,
            )
        self._require_own(intent, record)
        if record["verdict"] != "yes":
            raise _not_approved(self._plan, record)
        begun = yield from self._start(intent, record)
        return None if begun is None else (begun, record)

    def _require_own(self, intent: Intent, record: Mapping[str, Any]) -> None:
        try:
            why = self._plan.objection(record, _key(intent), self._terms.scope_hash())
        except GateError as error:
            raise _unavailable(self._plan, error) from error
        if why is not None:
            raise GateUnavailable(
                "RECORD_FOREIGN",
                f"The record {record['decision_id']} does not permit this action: {why}. Either what the guard is made "
                f"with is not what the service has, or somebody in between passed on the answer to something else.",
                intent_id=self._plan.intent_id,
                record=record,
            )
        if record["verdict"] == "yes" and not self._plan.is_expected(record):
            raise _unexpected(self._plan, record)

    def _start(self, intent: Intent, record: Mapping[str, Any]) -> Flow[Intent | None]:
        at, by = timestamp(utc_now()), secrets.token_hex(8)
        begun = replace(intent, state=State.STARTED, started_at=at, started_by=by)
        won: list[bool] = []

        def start() -> None:
            won.append(self._store.start(intent, at, by))

        try:
            yield Do(start)
        except StoreUnavailable:
            raise
        except BaseException:
            # Cancelled. Only a start that is this one's is undone: another's body may be running.
            if won == [True]:
                yield Do(partial(self._store.unstart, begun))
            raise
        if not won[0]:
            return None
        if not self._is_fresh(intent, record):
            # The store kept it waiting.
            yield Do(partial(self._store.unstart, begun))
            if self._store.follows_session:
                raise GateUnavailable(
                    "PERMIT_EXPIRED",
                    f"The database kept the guard waiting for longer than max_age ({self._terms.max_age:g} s). Roll "
                    f"the session back, and enter the guard again.",
                    intent_id=self._plan.intent_id,
                    record=record,
                )
            return None
        return begun

    def _recover(self, intent: Intent, record: Mapping[str, Any] | None, *, known: Intent | None) -> Flow[None]:
        """Lets the hook say what became of an action that was begun before.

        Args:
            intent: The latest attempt, which is superseded where the action may begin again.
            record: The record of the action that was begun, where there is one.
            known: The attempt that was begun; None where another store holds it.

        Raises:
            AlreadyStarted: Nothing was said, or that it was executed.
        """
        error = _already_started(self._plan, record, known)
        recover = self._terms.recover
        # What is known to have been done is not open to opinion.
        if recover is None or (known is not None and not may_begin_again(known)):
            raise error
        said = yield Consult(partial(recover, error))
        if not isinstance(said, Recovery):
            raise TypeError(f"A recovery hook returns a Recovery; this one returned {type(said).__name__}.")
        if said is Recovery.HOLD:
            raise error
        if known is not None and record is not None and (known.told is None or said is Recovery.EXECUTED):
            report = found_out(known, record, executed=said is Recovery.EXECUTED)
            kept: bool = yield Do(partial(self._store.settle, known, report))
            if not kept:
                return
            known = replace(known, told=report.body)
        if said is Recovery.EXECUTED:
            raise _already_started(self._plan, record, known)
        yield from self._supersede(intent if known is None else known)

    def _of_another_store(self, decision_id: Any) -> Flow[Mapping[str, Any] | None]:
        """The record that the service made for another store, where it can be had and is about this action."""
        if not isinstance(decision_id, str):
            return None
        try:
            call = operations.get_decision(decision_id)
            answer = yield from exchange(call, seconds=self._terms.seconds, tries=self._terms.tries)
            record: Mapping[str, Any] = answer.body
            is_ours = self._verification(record).verified
        except GateError:
            return None
        return record if is_ours and record["action_binding"] == self._plan.binding else None

    def _verification(self, record: Mapping[str, Any], request: Mapping[str, Any] | None = None) -> Verification:
        # Loaded with the first record: who only imports the client is spared the cryptography.
        from gate.verify import verify_record

        return verify_record(record, self._terms.trust(), request_body=request)

    def _verify(self, request: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        try:
            result = self._verification(record, request)
        except GateError as error:
            raise _unavailable(self._plan, error) from error
        if not result.verified or result.error is not None:
            raise GateUnavailable(
                "RECORD_UNVERIFIED",
                f"The record that was answered does not verify, so that it permits nothing. {result.message} "
                f"({result.error})",
                intent_id=self._plan.intent_id,
                failure=MaterialRefused(str(result.error), str(result.message)),
                verification=result,
            )


def _question(intent: Intent) -> int:
    # Of an attempt that was forgotten nothing is left but its number, which is no smaller.
    return question_of(intent.attempt, intent.request) if intent.asked else intent.attempt


def _key(intent: Intent) -> str:
    return idempotency_key(intent.intent_id, _question(intent))


def _is_refusal(error: GateError) -> bool:
    """Whether the service says that a request can never be decided as it is, and has not decided it for another store
    either: it says so only after it has looked at the idempotency key. What it says before that, or what a proxy says,
    proves nothing.
    """
    if isinstance(error, Conflict):
        return error.code == "RULEBOOK_VERSION_CONFLICT"
    return isinstance(error, Refused) and error.status == 422 and not error.code.startswith("HTTP_")


def _age(moment: str) -> float:
    """How far away a moment is, in seconds. Clocks differ; a record from the future is as old as it is far away."""
    return abs(utc_now() - parse_timestamp(moment)) / timedelta(seconds=1)


def _unavailable(plan: Plan, error: GateError) -> GateUnavailable:
    refused = _is_refusal(error)
    why = "The service cannot decide what it was asked" if refused else "There is no verdict"
    return (Undecidable if refused else GateUnavailable)(
        error.code,
        f"{why}, and the action stays held. {error.message}",
        error.errors,
        error.details,
        intent_id=plan.intent_id,
        failure=error,
    )


def _not_approved(plan: Plan, record: Mapping[str, Any]) -> Blocked | HeldForReview:
    said = f"{record['application_verdict']}, {record['reason_code']}, decision {record['decision_id']}"
    if record["verdict"] == "no":
        return Blocked("ACTION_BLOCKED", f"The gate says no ({said}).", intent_id=plan.intent_id, record=record)
    message = f"The gate asks for a review ({said}); the action is held until its owner has decided."
    if unusable := _unusable_facts(record["evaluation"]):
        named = ", ".join(unusable[:_NAMED])
        message = f"The gate cannot decide over these facts: {named} ({said}); {_mend_facts(plan)}"
    return HeldForReview("ACTION_HELD", message, intent_id=plan.intent_id, record=record)


def _mend_facts(plan: Plan) -> str:
    if "adapter" in plan.body:
        return "the adapter leaves out or makes otherwise what the rulebook asks for; look at what it was given."
    return "give them as the rulebook asks for them."


def _unusable_facts(evaluation: Mapping[str, Any]) -> list[str]:
    missing = [f"{name} (missing)" for name in evaluation.get("missing_fields", ())]
    invalid = [
        f"{fault['field']} (a {fault['observed_type']} where a {fault['expected']} is asked for)"
        for fault in evaluation.get("invalid_fields", ())
    ]
    return missing + invalid


_NAMED: Final = 5


def _unexpected(plan: Plan, record: Mapping[str, Any]) -> GateUnavailable:
    expected = ", ".join(sorted(plan.actions or ()))
    return GateUnavailable(
        "ACTION_UNEXPECTED",
        f"The gate approves {record['action']!r}, and expected_action is {expected}; the action stays held. Mend the "
        f"rulebook's outcome or the guard.",
        intent_id=plan.intent_id,
        record=record,
    )


def _already_started(plan: Plan, record: Mapping[str, Any] | None, known: Intent | None) -> AlreadyStarted:
    settle = f"`gate client settle {plan.intent_id}` or a recovery hook"
    if known is None:
        message = (
            f"The service gave the intent {plan.intent_id} to another store, or this store lost what it knew: the "
            f"action may have been done. Find out, and let a recovery hook say so."
        )
    elif known.state is State.REPORTED and known.told is None:
        message = f"The action was begun at {known.started_at}; it ended, and how is forgotten. It is not begun again."
    elif known.told is None:
        message = (
            f"The action was begun at {known.started_at} and its end is not known: it may be going on, or its process "
            f"died. Find out, and say so with {settle}."
        )
    else:
        status = (known.execution or {}).get("execution_status")
        message = f"The action was begun at {known.started_at} and ended as {status}; it is not begun again"
        message += f", unless {settle} says that nothing was done." if may_begin_again(known) else "."
    return AlreadyStarted("ACTION_ALREADY_STARTED", message, intent_id=plan.intent_id, record=record, intent=known)
