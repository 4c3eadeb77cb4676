"""Reports how a started action ended if the guard does not know it.

    settle(store, intent_id, executed=False, result="The bank has no such payment.")

The guard never runs a body again by itself. A person settles the action here, or a recovery hook reports how it ended.
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

# The statuses of a run that did not do what it should: a person may know that it did nothing at all. `skipped` is also
# the status from a settlement that was interrupted before it opened the intent again.
_MAY_BEGIN_AGAIN: Final = ("failed", "skipped")


class Recovery(Enum):
    """The answer of a recovery hook about an action that was started before.

    Attributes:
        HOLD: You do not know how it ended. The guard raises `AlreadyStarted`.
        EXECUTED: It was done. The guard reports this to the service and raises `AlreadyStarted`.
        NOT_EXECUTED: It was not done, and no process is doing it. The guard reports this and asks the gate again.
    """

    HOLD = "hold"
    EXECUTED = "executed"
    NOT_EXECUTED = "not_executed"


@dataclass(frozen=True, slots=True)
class Settled:
    """An attempt that somebody settled.

    Attributes:
        intent: The attempt before it was settled.
        report: The report that the store keeps for delivery, or None if the end had been reported before.
        following: The attempt that a retry of the guard continues with, or None if the action was executed.
    """

    intent: Intent
    report: Report | None
    following: Intent | None


def found_out(intent: Intent, record: DecisionRecord, *, executed: bool, result: str | None = None) -> Report:
    """The report for the execution receipt of a settled attempt: `executed` or `skipped`.

    Args:
        intent: The attempt.
        record: Its record.
        executed: Whether the action was done.
        result: The result in the words of the person who settles it.
    """
    body = {"execution_status": "skipped"}
    if executed:
        body = {"execution_status": "executed", **cited(record).taken}
    report = execution_report(intent, cited(record), body | {"execution_result": result or "found out in recovery"})
    # In addition to what was reported at the end of the body, which stays.
    return report if intent.told is None else replace(report, idempotency_key=f"{report.idempotency_key}-found-out")


def settle(store: Store, intent_id: str, *, executed: bool, result: str | None = None) -> Settled:
    """Reports how a started action ended. If it was not executed, a retry of the guard asks again and may begin it.

    First make sure that no process is still doing the action. You cannot stop such a process from here, and the action
    would happen twice. Both runs would be on record, because the process reports its own end too.

    Args:
        store: The store of the intent.
        intent_id: The id of the intent.
        executed: Whether the action was done. You can also report True for an action that was reported as failed or
            skipped. False adds no report for such an action.
        result: The result in your own words, 1 to 2,000 characters.

    Raises:
        OperatorError: `INTENT_UNKNOWN`, `INTENT_NOT_STARTED`, `INTENT_SETTLED` or `RESULT_INVALID`. The store keeps
            nothing then.
        StoreUnavailable: The store is unusable. You can safely call this again with the same arguments.
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
        OperatorError: `INTENT_UNKNOWN`.
        StoreUnavailable: The store is unusable.
    """
    # The guard's names are ASCII texts; what is not may be none that a database takes.
    found = store.find(intent_id) if isinstance(intent_id, str) and intent_id.isascii() else None
    if found is None:
        raise OperatorError("INTENT_UNKNOWN", f"The store has no intent {intent_id}; check the id.")
    return found


def begun(store: Store, intent_id: str) -> tuple[Intent, DecisionRecord]:
    """The attempt of a started action, with its record.

    Raises:
        OperatorError: `INTENT_UNKNOWN`; or `INTENT_NOT_STARTED`: it was never started, or its record was forgotten.
        StoreUnavailable: The store is unusable.
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
    """Whether a started attempt may begin again: its end is unknown, or was reported as failed or skipped."""
    is_unknown = intent.state is State.STARTED and intent.told is None
    return is_unknown or status_of(intent) in _MAY_BEGIN_AGAIN


def status_of(intent: Intent) -> str | None:
    """The reported execution status of an attempt, or None if nobody reported it or it was forgotten."""
    execution = intent.execution
    return None if execution is None else str(execution["execution_status"])


def _reopen(store: Store, settled: Intent) -> Intent:
    """The attempt after a settled one, which a retry of the guard sends."""
    latest = known_intent(store, settled.intent_id)
    # Meanwhile another process may deliver the report, a hook may be faster, or somebody may report that it was done.
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
    known = "was reported, and its record was forgotten" if status is None else f"was reported before as {status}"
    return OperatorError(
        "INTENT_SETTLED",
        f"The end of {intent.intent_id}, started at {intent.started_at}, {known}. Nothing was changed.",
    )
