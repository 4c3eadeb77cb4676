"""The guard: a body runs only on a verified yes about this very action, and once.

    with client.guard("refund_policy@2026-06-11", facts, action="pay_refund", target=("shop", "order-77")) as permit:
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import Any, Final

from gate.client import operations
from gate.client.delivery import call_of
from gate.client.errors import (
    AlreadyStarted,
    ApiError,
    Blocked,
    Conflict,
    GateUnavailable,
    HeldForReview,
    Refused,
    StoreUnavailable,
)
from gate.client.exchange import exchange
from gate.client.flow import Consult, Do, Flow
from gate.client.intention import Plan, idempotency_key
from gate.client.permit import BasePermit, execution_report
from gate.client.store.intents import Intent, State, Store
from gate.errors import GateError, MaterialRefused
from gate.ids import parse_timestamp, timestamp, utc_now
from gate.verify import Trust, Verification, verify_record

MAX_AGE: Final = 300.0
"""How old the verdict may be when the body begins, in seconds, where nothing else is said."""

# Each round ends a race that another process won, or begins an attempt; more than a few are no races any more.
_ROUNDS: Final = 8

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
        max_age: How old the verdict may be when the body begins, in seconds.
        recover: The recovery hook.
    """

    store: Store
    trust: Callable[[], Trust]
    seconds: float
    tries: int
    max_age: float = MAX_AGE
    recover: Callable[[AlreadyStarted], Any] | None = None


def enter(plan: Plan, terms: Terms) -> Flow[tuple[Intent, Mapping[str, Any]]]:
    """Everything before the body: the started attempt and its record.

    Raises:
        Blocked, HeldForReview, GateUnavailable, AlreadyStarted: The body must not run.
    """
    try:
        for _ in range(_ROUNDS):
            begun = yield from _round(plan, terms)
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
        StoreUnavailable: The body succeeded, and its end could neither be kept nor be told to the service.
    """
    report = permit.execution_report(error)
    try:
        kept: bool = yield Do(partial(terms.store.finish, permit.intent, report))
        if not kept:
            # Somebody settled it while it was running; what it came to is told nevertheless.
            log.error("%s had been settled before it ended.", permit.decision_id)
            late = replace(report, idempotency_key=f"{report.idempotency_key}-late")
            yield Do(partial(terms.store.tell, late))
    except StoreUnavailable as failure:
        try:
            yield from exchange(call_of(report), seconds=terms.seconds, tries=terms.tries)
        except ApiError as missed:
            failure.add_note(f"Nor could the service be told: {missed}")
            log.critical("What became of %s could be kept nowhere: %s", permit.decision_id, failure.code)
            if error is None:
                raise
        else:
            log.error("What became of %s was told to the service alone: %s", permit.decision_id, failure.code)


def _round(plan: Plan, terms: Terms) -> Flow[tuple[Intent, Mapping[str, Any]] | None]:
    """One attempt at going on from where the intent is; None where it has to be looked at again."""
    intent, is_new = yield from _current(plan, terms)
    if intent is None:
        return None
    if intent.state in (State.STARTED, State.REPORTED):
        yield from _recover(plan, terms, intent, intent.record, intent)
        return None
    is_same = intent.asked_hash == plan.body_hash
    if intent.answered is None:
        answered = yield from _ask(plan, terms, intent, is_new=is_new)
        return None if answered is None else (yield from _judge(plan, terms, *answered, is_new=is_new))
    record = intent.record or {}
    if not is_same or _age(intent, record) > terms.max_age:
        yield from _supersede(plan, terms, intent)
        return None
    _verify(plan, terms, intent, record)
    return (yield from _judge(plan, terms, intent, record, is_new=is_new))


def _current(plan: Plan, terms: Terms) -> Flow[tuple[Intent | None, bool]]:
    """The intent's latest attempt, made where there is none, and whether it was; None where another was quicker."""
    store = terms.store
    found: Intent | None = yield Do(partial(store.find, plan.intent_id))
    if found is not None:
        return found, False
    first = _attempt(plan, store, 1)
    kept: bool = yield Do(partial(store.hold, first))
    return (first if kept else None), True


def _ask(plan: Plan, terms: Terms, intent: Intent, *, is_new: bool) -> Flow[tuple[Intent, Mapping[str, Any]] | None]:
    """Asks for an attempt's decision and keeps it; None where the intent has to be looked at again.

    An attempt that was asked before is asked again as it was, even if it is not wanted any more: only so it is known
    whether the service gave it to this store or to another.
    """
    key = idempotency_key(intent.intent_id, intent.attempt)
    try:
        call = operations.decide(intent.request, idempotency_key=key)
        answer = yield from exchange(call, seconds=terms.seconds, tries=terms.tries)
    except Conflict as error:
        if error.code != "SVC_API_IDEMPOTENCY_CONFLICT":
            raise _unavailable(plan, error) from error
        record = yield from _stored(plan, terms, error.details.get("decision_id"))
        yield from _recover(plan, terms, intent, record, None)
        return None
    except Refused as error:
        if intent.asked_hash == plan.body_hash:
            raise _unavailable(plan, error) from error
        # What was asked then can never be decided, and what is asked now is something else.
        yield from _supersede(plan, terms, intent)
        return None
    except GateError as error:
        raise _unavailable(plan, error) from error
    record = answer.body
    _verify(plan, terms, intent, record)
    if is_new and answer.replayed and answer.tries == 1:
        # The first time that this store asks is not the first time that it was asked: the store lost what it knew.
        yield from _recover(plan, terms, intent, record, None)
        return None
    state = State.PERMITTED if record["verdict"] == "yes" else State.HELD
    kept: bool = yield Do(partial(terms.store.answer, intent, answer.content, state))
    return (intent, record) if kept else None


def _judge(
    plan: Plan, terms: Terms, intent: Intent, record: Mapping[str, Any], *, is_new: bool
) -> Flow[tuple[Intent, Mapping[str, Any]] | None]:
    """Acts on a record that verifies."""
    if intent.asked_hash != plan.body_hash or _age(intent, record) > terms.max_age:
        if is_new:
            raise GateUnavailable(
                "PERMIT_EXPIRED",
                f"The decision is dated {record['created_at']}, more than {terms.max_age:g} s from this machine's "
                f"{timestamp(utc_now())}; set both clocks right, or allow a greater max_age.",
                intent_id=plan.intent_id,
                record=record,
            )
        yield from _supersede(plan, terms, intent)
        return None
    why = plan.objection(record, idempotency_key(intent.intent_id, intent.attempt))
    if why is not None:
        raise GateUnavailable(
            "RECORD_FOREIGN",
            f"The record {record['decision_id']} does not permit this action: {why}.",
            intent_id=plan.intent_id,
            record=record,
        )
    if record["verdict"] != "yes":
        raise _not_approved(plan, record)
    started: bool = yield from _start(terms, intent)
    return (intent, record) if started else None


def _start(terms: Terms, intent: Intent) -> Flow[bool]:
    begin = partial(terms.store.start, intent, timestamp(utc_now()))
    try:
        started: bool = yield Do(begin)
    except StoreUnavailable:
        raise
    except BaseException:
        # Cancelled in between: the write may have been done, and the body will not begin.
        yield Do(partial(terms.store.unstart, intent))
        raise
    return started


def _supersede(plan: Plan, terms: Terms, intent: Intent) -> Flow[None]:
    following = _attempt(plan, terms.store, intent.attempt + 1)
    yield Do(partial(terms.store.hold, following, instead_of=intent))


def _recover(
    plan: Plan, terms: Terms, intent: Intent, record: Mapping[str, Any] | None, known: Intent | None
) -> Flow[None]:
    """Lets the hook say what became of an action that was begun before; returns where the gate is to be asked again.

    Raises:
        AlreadyStarted: Nothing was said, or that it was executed.
    """
    error = _already_started(plan, record, known)
    said = Recovery.HOLD if terms.recover is None else (yield Consult(partial(terms.recover, error)))
    if not isinstance(said, Recovery):
        raise TypeError(f"A recovery hook returns a Recovery; this one returned {type(said).__name__}.")
    if said is Recovery.HOLD:
        raise error
    if known is not None and known.told is None and record is not None:
        body = {
            Recovery.EXECUTED: {"execution_status": "executed", "action_taken": record["action"]},
            Recovery.NOT_EXECUTED: {"execution_status": "skipped"},
        }[said] | {"execution_result": "found out in recovery"}
        yield Do(partial(terms.store.finish, known, execution_report(known, record, body)))
    if said is Recovery.EXECUTED:
        raise error
    yield from _supersede(plan, terms, intent)


def _stored(plan: Plan, terms: Terms, decision_id: Any) -> Flow[Mapping[str, Any] | None]:
    """The record that the service made for another store, where it can be had and is about this action."""
    if not isinstance(decision_id, str):
        return None
    try:
        answer = yield from exchange(operations.get_decision(decision_id), seconds=terms.seconds, tries=terms.tries)
        record: Mapping[str, Any] = answer.body
        is_ours = verify_record(record, terms.trust()).verified and record["action_binding"] == plan.binding
    except GateError:
        return None
    return record if is_ours else None


def _attempt(plan: Plan, store: Store, attempt: int) -> Intent:
    return Intent(
        intent_id=plan.intent_id,
        attempt=attempt,
        state=State.HELD,
        asked=plan.request(attempt=attempt, store=store.identity),
        asked_hash=plan.body_hash,
        asked_at=timestamp(utc_now()),
    )


def _age(intent: Intent, record: Mapping[str, Any]) -> float:
    """How old a verdict is, in seconds: from when it was asked or dated, whichever is further from now.

    The service's clock may be another than this one; a record from the future is as old as it is far away.
    """
    now = utc_now()
    moments: list[datetime] = [parse_timestamp(intent.asked_at), parse_timestamp(str(record["created_at"]))]
    return max(abs(now - moment) for moment in moments) / timedelta(seconds=1)


def _verify(plan: Plan, terms: Terms, intent: Intent, record: Mapping[str, Any]) -> None:
    try:
        result = verify_record(record, terms.trust(), request_body=intent.request)
    except GateError as error:
        raise _unavailable(plan, error) from error
    if result.verified and result.error is None:
        return
    raise _unverified(plan, result)


def _unverified(plan: Plan, result: Verification) -> GateUnavailable:
    why = f"{result.message} ({result.error})"
    return GateUnavailable(
        "RECORD_UNVERIFIED",
        f"The record that was answered does not verify, so that it permits nothing. {why}",
        intent_id=plan.intent_id,
        failure=MaterialRefused(str(result.error), str(result.message)),
        verification=result,
    )


def _unavailable(plan: Plan, error: GateError) -> GateUnavailable:
    return GateUnavailable(
        error.code,
        f"There is no verdict, and the action stays held. {error.message}",
        error.errors,
        error.details,
        intent_id=plan.intent_id,
        failure=error,
    )


def _not_approved(plan: Plan, record: Mapping[str, Any]) -> Blocked | HeldForReview:
    said = f"{record['application_verdict']}, {record['reason_code']}, decision {record['decision_id']}"
    if record["verdict"] == "no":
        return Blocked("ACTION_BLOCKED", f"The gate says no ({said}).", intent_id=plan.intent_id, record=record)
    return HeldForReview(
        "ACTION_HELD",
        f"The gate asks for a review ({said}); the action is held until its owner has decided.",
        intent_id=plan.intent_id,
        record=record,
    )


def _already_started(plan: Plan, record: Mapping[str, Any] | None, known: Intent | None) -> AlreadyStarted:
    if known is None:
        message = (
            "The service gave this intent to another store, or this store lost what it knew, so that the action may "
            "have been done; find out, and let a recovery hook say so."
        )
    elif known.told is None:
        message = (
            f"The action was begun at {known.started_at} and its end is not known: it may be going on, or its process "
            f"died. Find out, and say so with `gate client settle` or a recovery hook."
        )
    else:
        status = (known.execution or {}).get("execution_status")
        message = f"The action was begun at {known.started_at} and ended as {status}; it is not begun again."
    return AlreadyStarted("ACTION_ALREADY_STARTED", message, intent_id=plan.intent_id, record=record, intent=known)
