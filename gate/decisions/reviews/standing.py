"""Where the review of a decision stands, with its resolution as it was answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypedDict, cast

from gate.decisions.stored import stored_report
from gate.errors import ServiceUnavailable
from gate.ledger import Ledger
from gate.ledger.chain.entries import StoredReport
from gate.ledger.chain.reviews import HELD
from gate.ledger.reviews import ReviewRow
from gate.proof import chain
from gate.records.documents import Cited, Resolution
from gate.records.reports.receipts import BINDING_MISMATCH, EXECUTIONS
from gate.records.reports.resolution import GRANTED, RESOLUTIONS

# A decision has rarely more than one or two.
_RECEIPTS: Final = 100
_RECEIPTS_BYTES: Final = 4 * 1024 * 1024


class ReviewStanding(TypedDict):
    """The state of the review of a decision. The fields about an owner are null if the decision is not held for one.

    `executed_at` is when a receipt said that the action was executed on its target, permitted or not. It is null
    without such a receipt, or if a later receipt says that the action was reverted.
    """

    decision_id: str
    verdict: str
    state: str | None
    owner: str | None
    due_at: str | None
    executed_at: str | None
    resolution: Resolution | None


def standing_of(ledger: Ledger, scope_id: str, record: Cited) -> ReviewStanding:
    """Where the review of a decision stands.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: something cannot be read, or is not as it was made.
    """
    review = ledger.reviews.find(scope_id, record["decision_id"])
    return {
        "decision_id": record["decision_id"],
        "verdict": record["verdict"],
        "state": None if review is None else review.state,
        "owner": None if review is None else review.owner or None,
        "due_at": None if review is None else review.due_at,
        "executed_at": None if review is None else _executed_at(ledger, scope_id, record["decision_id"]),
        "resolution": None if review is None else _resolution_of(ledger, review),
    }


def last_receipts(ledger: Ledger, scope_id: str, decision_id: str) -> list[Mapping[str, Any]]:
    """The last execution receipts of a decision, the newest first.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: a receipt cannot be read, or is not as it was made.
    """
    found, _ = ledger.entries.reports(
        scope_id, decision_id, EXECUTIONS.entry_type, limit=_RECEIPTS, room=_RECEIPTS_BYTES
    )
    return [stored_report(EXECUTIONS, stored) for stored in found]


def _executed_at(ledger: Ledger, scope_id: str, decision_id: str) -> str | None:
    for receipt in last_receipts(ledger, scope_id, decision_id):
        if receipt["execution_status"] in ("executed", "reverted") and BINDING_MISMATCH not in receipt["flags"]:
            return receipt["reported_at"] if receipt["execution_status"] == "executed" else None
    return None


def stored_resolution(stored: StoredReport) -> Resolution:
    """A resolution as it was answered when it was made.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it is not readable, not what was hashed and linked, or has fields
            that nothing covers.
    """
    return cast("Resolution", stored_report(RESOLUTIONS, stored))


def _is_state_of(state: str, resolution: Resolution) -> bool:
    """Whether a review may stand so after a resolution."""
    return state == resolution["resolution"] or (state == "executed" and resolution["resolution"] == GRANTED)


def _resolution_of(ledger: Ledger, review: ReviewRow) -> Resolution | None:
    if review.resolved_position is None and review.state == HELD:
        return None
    entry = None
    if review.resolved_position is not None:
        entry = ledger.entries.at(review.scope_id, review.resolved_position)
    if entry is not None and entry.link["entry_type"] == RESOLUTIONS.entry_type:
        stored = StoredReport(entry.link["chain_position"], chain.record_link(entry.link), entry.body)
        resolution = stored_resolution(stored)
        if resolution["decision_id"] == review.decision_id and _is_state_of(review.state, resolution):
            return resolution
    raise ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        f"In the ledger, the review of {review.decision_id} does not match its resolution. The operator must run "
        "`gate chain check`.",
    )
