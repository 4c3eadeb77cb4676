"""The errors that a guard raises if a resolution does not permit a held action. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gate.client.errors import AlreadyStarted, Blocked, GateUnavailable, HeldForReview
from gate.client.guard.held.judging import Finding, Judged
from gate.client.guard.proposal import Proposal
from gate.client.store.intents import Intent
from gate.client.transport.calls import one_line
from gate.errors import GateError, MaterialRefused, OperatorError

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord, Resolution
    from gate.verify import Verification

_ASK_AGAIN: Final = "Enter client.guard() again to ask for a new decision."


def not_opened(
    proposal: Proposal, record: DecisionRecord, judged: Judged, *, now: str, max_age: float | None
) -> Blocked | HeldForReview | GateUnavailable:
    """Why a verified resolution does not permit the action now.

    Args:
        proposal: The action.
        record: The record of its decision.
        judged: The resolution with the result of its check.
        now: The time by this machine's clock, as a timestamp.
        max_age: The maximum age of a grant, in seconds. None: it is valid until it ends.
    """
    match judged.finding:
        case Finding.REFUSED:
            return refused_by_owner(proposal, record, judged.resolution)
        case Finding.EXPIRED:
            return review_expired(proposal, record, judged.resolution)
        case Finding.RETIRED:
            return grant_key_retired(proposal, record, judged.resolution)
        case Finding.AHEAD:
            return grant_ahead(proposal, record, judged.resolution, now)
        case _:
            limit = max_age if judged.finding is Finding.AGED else None
            return grant_expired(proposal, record, judged.resolution, max_age=limit)


def unheard(proposal: Proposal, record: DecisionRecord, error: GateError) -> GateUnavailable:
    """The guard could not read the state of a held action's review."""
    return GateUnavailable(
        error.code,
        f"The guard cannot find out whether the review of decision {record['decision_id']} was answered, and the "
        f"action stays held. {error.message}",
        error.errors,
        error.details,
        intent_id=proposal.intent_id,
        record=record,
        failure=error,
    )


def unverified_resolution(proposal: Proposal, record: DecisionRecord, found: Verification) -> GateUnavailable:
    """The resolution of a held action does not verify."""
    return GateUnavailable(
        "RESOLUTION_UNVERIFIED",
        f"The resolution of decision {record['decision_id']} does not verify, so it permits nothing. {found.message} "
        f"({found.error})",
        intent_id=proposal.intent_id,
        record=record,
        failure=MaterialRefused(str(found.error), str(found.message)),
        verification=found,
    )


def foreign_resolution(proposal: Proposal, record: DecisionRecord, why: str) -> GateUnavailable:
    """The response to the request for a resolution is about something else."""
    return GateUnavailable(
        "RESOLUTION_FOREIGN",
        f"The response is not the resolution of decision {record['decision_id']}: {one_line(why)}. It permits nothing; "
        "check for a proxy that returns the response to another request.",
        intent_id=proposal.intent_id,
        record=record,
    )


def refused_by_owner(proposal: Proposal, record: DecisionRecord, resolution: Resolution) -> Blocked:
    """The owner of a held action refused it."""
    return Blocked(
        "ACTION_REFUSED",
        f"{_person(resolution)} refused the action at {resolution['recorded_at']}{_reason(resolution)} (decision "
        f"{record['decision_id']}). The same request stays refused.",
        intent_id=proposal.intent_id,
        record=record,
        resolution=resolution,
    )


def review_expired(proposal: Proposal, record: DecisionRecord, resolution: Resolution) -> HeldForReview:
    """The review ended without an answer: its time limit passed, or somebody closed it."""
    at = resolution["recorded_at"]
    if resolution["actor"]["type"] == "service":
        how = f"expired at {at} without an answer"
    else:
        how = f"was closed by {_person(resolution)} at {at}{_reason(resolution)}"
    return HeldForReview(
        "REVIEW_EXPIRED",
        f"The review {how} (decision {record['decision_id']}). {_ASK_AGAIN}",
        intent_id=proposal.intent_id,
        record=record,
        resolution=resolution,
    )


def grant_expired(
    proposal: Proposal, record: DecisionRecord, resolution: Resolution, *, max_age: float | None
) -> HeldForReview:
    """The grant of a held action was not used before it ended, or before it was older than the caller's `max_age`."""
    if max_age is None:
        why = f"It ended at {resolution.get('expires_at')}. {_ASK_AGAIN}"
    else:
        why = (
            f"It is older than max_age ({max_age:g} s). Allow a greater max_age; it ends at "
            f"{resolution.get('expires_at')}."
        )
    return HeldForReview(
        "GRANT_EXPIRED",
        f"{_person(resolution)} granted the action at {resolution['recorded_at']} (decision {record['decision_id']}), "
        f"but the grant was not used in time. {why}",
        intent_id=proposal.intent_id,
        record=record,
        resolution=resolution,
    )


def grant_key_retired(proposal: Proposal, record: DecisionRecord, resolution: Resolution) -> HeldForReview:
    """The key that signed the grant of a held action is retired."""
    return HeldForReview(
        "GRANT_KEY_RETIRED",
        f"{_person(resolution)} granted the action at {resolution['recorded_at']} (decision {record['decision_id']}), "
        f"but the key that signed the grant, {resolution.get('key_id')}, is now retired, so the grant permits nothing. "
        "Enter client.guard() again for a new review.",
        intent_id=proposal.intent_id,
        record=record,
        resolution=resolution,
    )


def grant_ahead(proposal: Proposal, record: DecisionRecord, resolution: Resolution, now: str) -> GateUnavailable:
    """The grant is dated too far in the future."""
    return GateUnavailable(
        "PERMIT_EXPIRED",
        f"The grant is dated {resolution['recorded_at']} and it is {now} here; correct the clocks.",
        intent_id=proposal.intent_id,
        record=record,
        resolution=resolution,
    )


def executed_elsewhere(proposal: Proposal, record: DecisionRecord) -> AlreadyStarted:
    """The service has a receipt of a granted action, but this store never started the action."""
    return AlreadyStarted(
        "ACTION_ALREADY_STARTED",
        "The service has a receipt that says the action was executed, but this store never started it. Either someone "
        "else reported it, perhaps before its owner granted it, or this store is an older copy of the one that started "
        f'it. Check the receipt with client.list_executions("{record["decision_id"]}"). If nothing was done, report '
        "that with a recovery hook.",
        intent_id=proposal.intent_id,
        record=record,
    )


def not_held(intent: Intent, why: str) -> OperatorError:
    """There is no review to resume."""
    return OperatorError(
        "INTENT_NOT_HELD",
        f"Attempt {intent.attempt} of {intent.intent_id} is not held for review ({why}), so there is nothing to "
        "resume; enter client.guard() instead.",
    )


def _person(resolution: Resolution) -> str:
    return one_line(resolution.get("resolved_by", resolution["actor"]["id"]))


def _reason(resolution: Resolution) -> str:
    note = resolution.get("note")
    return "" if note is None else f': "{one_line(note)}"'
