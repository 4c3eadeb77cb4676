"""What somebody found out of an action that was begun and whose end the guard does not know.

    settle(store, intent_id, executed=False, result="The bank knows no such payment.")

The guard never runs a body again by itself; who knows what became of it says so, here or with a recovery hook.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from gate.client.guard.proposal import GUARD, numbered, question_of
from gate.client.guard.reporting import cited, execution_report
from gate.client.guard.saying import LONGEST_RESULT, holds_credential, is_text
from gate.client.store.intents import Intent, Report, State, Store
from gate.clock import utc_now
from gate.encoding.canonical import canonical
from gate.errors import OperatorError
from gate.ids import timestamp

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord

# What is told of a run that did not do what it should: a person may know that it did nothing at all. `skipped` is also
# what a settlement has told that was interrupted before the intent was open again.
_MAY_BEGIN_AGAIN: Final = ("failed", "skipped")


class Recovery(Enum):
    """What a recovery hook says of an action that was begun before.

    HOLD: not known; AlreadyStarted is raised. EXECUTED: it was done; that is reported, and AlreadyStarted raised.
    NOT_EXECUTED: it was not done and nobody is doing it; that is reported, and the gate asked again.
    """

    HOLD = "hold"
    EXECUTED = "executed"
    NOT_EXECUTED = "not_executed"


@dataclass(frozen=True, slots=True)
class Settled:
    """An attempt whose end somebody said.

    Attributes:
        intent: The attempt, as it was before.
        report: What is kept for delivery; None where its end had been told before.
        following: The attempt that a retry of the guard goes on with; None where the action was executed.
    """

    intent: Intent
    report: Report | None
    following: Intent | None


def found_out(intent: Intent, record: DecisionRecord, *, executed: bool, result: str | None = None) -> Report:
    """The execution receipt to be about a started attempt whose end somebody found out: `executed`, or `skipped`.

    Args:
        intent: The attempt.
        record: Its record.
        executed: Whether the action was done.
        result: The result in the words of who found it out.
    """
    body = {"execution_status": "skipped"}
    if executed:
        body = {"execution_status": "executed", **cited(record).taken}
    report = execution_report(intent, cited(record), body | {"execution_result": result or "found out in recovery"})
    # In addition to what was reported at the end of the body, which stays.
    return report if intent.told is None else replace(report, idempotency_key=f"{report.idempotency_key}-found-out")


def settle(store: Store, intent_id: str, *, executed: bool, result: str | None = None) -> Settled:
    """Says what became of a started action, and keeps that for delivery. Where it was not executed, a retry of the
    guard asks anew, and may begin it again.

    Somebody must have made sure that no process is doing it any more. One that is cannot be stopped from here, and the
    action happens twice; but not unseen, for at its end it reports what it did, beside what is said here.

    Args:
        store: Where the intent is kept.
        intent_id: Its name.
        executed: Whether the action was done. It can be said of one that was told to have failed or been skipped as
            well; that such a one was not done is nothing new, and nothing more is reported.
        result: The result in the words of who found it out, 1 to 2,000 characters.

    Raises:
        OperatorError: INTENT_UNKNOWN, INTENT_NOT_STARTED, INTENT_SETTLED or RESULT_INVALID; nothing was kept.
        StoreUnavailable: The store cannot be used. Whatever was kept, the same can be said again.
    """
    if result is not None and not is_text(result, LONGEST_RESULT):
        raise OperatorError("RESULT_INVALID", f"The result must be a string of 1 to {LONGEST_RESULT} characters.")
    if result is not None and holds_credential({"execution_result": result}):
        raise OperatorError("RESULT_INVALID", "The result looks like a credential, which is never stored; remove it.")
    intent = known_intent(store, intent_id)
    if intent.state in (State.HELD, State.PERMITTED):
        raise OperatorError(
            "INTENT_NOT_STARTED",
            f"Attempt {intent.attempt} of {intent_id} was never started (it is {intent.state}), so "
            "there is nothing to settle; retry the guard to continue."
            + (" The attempt before it no longer counts." if intent.attempt > 1 else ""),
        )
    record = intent.record if intent.answered else None
    is_unknown = intent.state is State.STARTED and intent.told is None
    if record is not None and (is_unknown or (executed and may_begin_again(intent))):
        report = found_out(intent, record, executed=executed, result=result)
        if not store.settle(intent, report):
            raise OperatorError(
                "INTENT_SETTLED",
                f"Another process has just reported the end of {intent_id}; see `gate client show {intent_id}`.",
            )
        return Settled(intent, report, None if executed else _reopen(store, intent))
    if executed or status_of(intent) not in _MAY_BEGIN_AGAIN:
        raise _known_already(intent)
    if result is not None:
        raise OperatorError(
            "RESULT_INVALID",
            f"The action of {intent_id} was already reported as {status_of(intent)}; leave the result out.",
        )
    return Settled(intent, None, _reopen(store, intent))


def known_intent(store: Store, intent_id: str) -> Intent:
    """The latest attempt at an intent.

    Raises:
        OperatorError: INTENT_UNKNOWN.
        StoreUnavailable: The store cannot be used.
    """
    # The guard's names are ASCII texts; what is not may be none that a database takes.
    found = store.find(intent_id) if isinstance(intent_id, str) and intent_id.isascii() else None
    if found is None:
        raise OperatorError("INTENT_UNKNOWN", f"The store has no intent {intent_id}; check the id.")
    return found


def begun(store: Store, intent_id: str) -> tuple[Intent, DecisionRecord]:
    """The attempt of an action that was begun, with its record.

    Raises:
        OperatorError: INTENT_UNKNOWN, or INTENT_NOT_STARTED: it was not begun, or its record is forgotten.
        StoreUnavailable: The store cannot be used.
    """
    intent = known_intent(store, intent_id)
    record = intent.record if intent.answered else None
    if intent.state not in (State.STARTED, State.REPORTED) or record is None:
        raise OperatorError(
            "INTENT_NOT_STARTED",
            f"The action of {intent_id} was never started, or its record was forgotten; there is nothing to report.",
        )
    return intent, record


def may_begin_again(intent: Intent) -> bool:
    """Whether it is open what a begun attempt did: its end is not known, or it was told to have come to nothing."""
    is_unknown = intent.state is State.STARTED and intent.told is None
    return is_unknown or status_of(intent) in _MAY_BEGIN_AGAIN


def status_of(intent: Intent) -> str | None:
    """What was told of an attempt: the execution status; None where nothing was, or where it is forgotten."""
    execution = intent.execution
    return None if execution is None else str(execution["execution_status"])


def _reopen(store: Store, settled: Intent) -> Intent:
    """The attempt after a settled one, which a retry of the guard asks for."""
    latest = known_intent(store, settled.intent_id)
    # Another process may deliver the report meanwhile, a recovery hook be quicker, or somebody say that it was done.
    while latest.attempt == settled.attempt:
        if not may_begin_again(latest):
            raise _known_already(latest)
        following = _following(latest)
        if store.hold(following, instead_of=latest):
            return following
        latest = known_intent(store, settled.intent_id)
    return latest


def _following(intent: Intent) -> Intent:
    attempt = intent.attempt + 1
    # The context is open: what the guard says in it is no member of its type.
    context: Mapping[str, Any] = intent.request["context"]
    said = {name: value for name, value in context[GUARD].items() if name != "question"}
    question = question_of(intent.attempt, intent.request) + 1
    guard = {**said, **numbered(attempt, question), "nonce": secrets.token_hex(8)}
    return replace(
        intent,
        attempt=attempt,
        state=State.HELD,
        asked=canonical({**intent.request, "context": {**context, GUARD: guard}}),
        asked_at=timestamp(utc_now()),
        answered=None,
        started_at=None,
        started_by=None,
        told=None,
        resolved=None,
    )


def _known_already(intent: Intent) -> OperatorError:
    status = status_of(intent)
    known = "was reported, and its record was forgotten" if status is None else f"was told before: {status}"
    return OperatorError(
        "INTENT_SETTLED",
        f"The end of {intent.intent_id}, started at {intent.started_at}, {known}. Nothing was changed.",
    )
