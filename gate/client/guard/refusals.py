"""The errors that a guard raises if a body must not run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from gate.client.errors import AlreadyStarted, Blocked, Conflict, GateUnavailable, HeldForReview, Refused, Undecidable
from gate.client.guard.proposal import Proposal
from gate.client.guard.recovery import may_begin_again, status_of
from gate.client.store.intents import Intent, State
from gate.errors import GateError, MaterialRefused

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord, Evaluation
    from gate.verify import Verification

_NAMED: Final = 5


def no_verdict(intent_id: str, error: GateError) -> GateUnavailable:
    """The service or the store failed, or the service refuses to decide the request as it is."""
    refused = _is_refusal(error)
    why = "The service cannot decide this request" if refused else "There is no verdict"
    return (Undecidable if refused else GateUnavailable)(
        error.code,
        f"{why}, and the action stays held. {error.message}",
        error.errors,
        error.details,
        intent_id=intent_id,
        failure=error,
    )


def _is_refusal(error: GateError) -> bool:
    """Whether the service says that it can never decide a request as sent. It says so only after it has checked the
    idempotency key, so it has not decided the request for another store either. Errors before that check, or from a
    proxy, prove nothing.
    """
    if isinstance(error, Conflict):
        return error.code == "RULEBOOK_VERSION_CONFLICT"
    return isinstance(error, Refused) and error.status == 422 and not error.code.startswith("HTTP_")


def contended(proposal: Proposal) -> GateUnavailable:
    """Other processes were repeatedly faster."""
    return GateUnavailable(
        "GUARD_CONTENDED",
        "Other processes keep changing this intent; the action stays held. Retry.",
        intent_id=proposal.intent_id,
    )


def unverified(proposal: Proposal, found: Verification) -> GateUnavailable:
    """The record in the response does not verify."""
    return GateUnavailable(
        "RECORD_UNVERIFIED",
        f"The record in the response does not verify, so it permits nothing. {found.message} ({found.error})",
        intent_id=proposal.intent_id,
        failure=MaterialRefused(str(found.error), str(found.message)),
        verification=found,
    )


def foreign(proposal: Proposal, record: DecisionRecord, why: str) -> GateUnavailable:
    """The record verifies, but is about something else."""
    return GateUnavailable(
        "RECORD_FOREIGN",
        (
            f"The record {record['decision_id']} does not permit this action: {why}. Either the "
            "guard's arguments do not match the service's data, or a proxy returned the response to "
            "another request."
        ),
        intent_id=proposal.intent_id,
        record=record,
    )


def clocks_apart(proposal: Proposal, record: DecisionRecord, now: str, max_age: float) -> GateUnavailable:
    """The record is new, but its date is too far from the current time."""
    return GateUnavailable(
        "PERMIT_EXPIRED",
        (
            f"The decision is dated {record['created_at']} and it is {now} here, more than {max_age:g}"
            " s apart; correct the clocks, or allow a greater max_age."
        ),
        intent_id=proposal.intent_id,
        record=record,
    )


def waited_too_long(proposal: Proposal, record: DecisionRecord) -> GateUnavailable:
    """When the session wrote the start, the permission was already too old."""
    return GateUnavailable(
        "PERMIT_EXPIRED",
        (
            "The database kept the guard waiting until the permission was too old (max_age, or the end of the grant). "
            "Roll back the session and enter the guard again."
        ),
        intent_id=proposal.intent_id,
        record=record,
    )


def not_approved(proposal: Proposal, record: DecisionRecord) -> Blocked | HeldForReview:
    """The verdict is no or review."""
    said = f"{record['application_verdict']}, {record['reason_code']}, decision {record['decision_id']}"
    if record["verdict"] == "no":
        return Blocked("ACTION_BLOCKED", f"The gate says no ({said}).", intent_id=proposal.intent_id, record=record)
    message = (
        f"The gate requires a review ({said}); the action is held until its owner answers. After the grant, continue "
        f'with client.resume("{proposal.intent_id}").'
    )
    # A guard refuses an advisory record before it looks at the verdict.
    if unusable := _unusable_facts(cast("Evaluation | None", record["evaluation"])):
        named = ", ".join(unusable[:_NAMED])
        message = f"The gate cannot decide on these facts: {named} ({said}); {_mend_facts(proposal)}"
    return HeldForReview("ACTION_HELD", message, intent_id=proposal.intent_id, record=record)


def _mend_facts(proposal: Proposal) -> str:
    if "adapter" in proposal.body:
        return "the adapter omits a field that the rulebook needs, or gives it another type; check the adapter's input."
    return "send them with the types that the rulebook's input_schema requires."


def _unusable_facts(evaluation: Evaluation | None) -> list[str]:
    if evaluation is None:
        return []
    missing = [f"{name} (missing)" for name in evaluation.get("missing_fields", ())]
    invalid = [
        f"{fault['field']} (a {fault['observed_type']} where a {fault['expected']} is required)"
        for fault in evaluation.get("invalid_fields", ())
    ]
    return missing + invalid


def unexpected(proposal: Proposal, record: DecisionRecord) -> GateUnavailable:
    """The verdict is yes, but the rulebook's outcome approves a different action from the guarded one."""
    allowed, expected = record["action"], " or ".join(map(repr, sorted(proposal.actions)))
    return GateUnavailable(
        "ACTION_UNEXPECTED",
        f"The gate approves {allowed!r}, but this guard is for {expected}; the action stays held. Correct the outcome "
        f"of rule {record['matched_rule_id'] or 'default'} or the guard; if the two names mean one action, pass "
        f"outcome_action={allowed!r}.",
        intent_id=proposal.intent_id,
        record=record,
    )


def already_started(proposal: Proposal, record: DecisionRecord | None, known: Intent | None) -> AlreadyStarted:
    """The action was started before.

    Args:
        proposal: The action.
        record: Its record, if there is one.
        known: The attempt that was started, or None if another store holds it.
    """
    settle = f"`gate client settle {proposal.intent_id}` or a recovery hook"
    if known is None:
        message = (
            f"The service has decided the intent {proposal.intent_id} for another store, or this store "
            "lost its data: the action may have been done. Find out, and report it with a recovery "
            "hook."
        )
    elif known.state is State.REPORTED and known.told is None:
        message = (
            f"The action was started at {known.started_at} and has ended, but its result was forgotten. It"
            " is not started again."
        )
    elif known.told is None:
        message = (
            f"The action was started at {known.started_at} and its end is unknown: it may still be "
            f"running, or its process died. Find out, and report it with {settle}."
        )
    else:
        status = status_of(known)
        message = f"The action was started at {known.started_at} and ended as {status}; it is not started again"
        message += f", unless {settle} reports that nothing was done." if may_begin_again(known) else "."
    return AlreadyStarted("ACTION_ALREADY_STARTED", message, intent_id=proposal.intent_id, record=record, intent=known)
