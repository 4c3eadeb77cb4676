"""Where the review of a decision stands, and what its owner answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gate.ids import parse_timestamp
from gate.ledger.chain.reviews import HELD
from gate.ledger.reviews import ReviewRow
from gate.records.documents import Resolution
from gate.records.reports.breaches import breaches
from gate.verify import Verification
from workbench.dashboard.store.ledger import Story
from workbench.dashboard.store.reviews import Standing
from workbench.dashboard.views.html import when
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.reviews.words import STATES, TONES, asked, due, owned
from workbench.engines.rendering import cut

_ACTORS: Final[Mapping[str, str]] = {"user": "the user {}", "key": "the API key {}", "service": "the service itself"}


@dataclass(frozen=True, slots=True)
class Done:
    """The review that was resolved a moment ago.

    Attributes:
        text: What became of it.
        url: Its page.
    """

    text: str
    url: str


def done(location: Location, review: ReviewRow, record: Mapping[str, Any]) -> Done | None:
    """The review that a location names as resolved a moment ago; None where it is still held.

    Args:
        location: The location.
        review: The review.
        record: The record of its decision, or at least its action.
    """
    if review.state == HELD:
        return None
    text = f"{asked(record)}: {STATES[review.state]} on {when(review.resolved_at)}."
    return Done(text, location.to("review", id=review.decision_id, done=None).url)


def standing(location: Location, story: Story, now: datetime) -> dict[str, Any] | None:
    """What a page says of a review; None where the decision is not held for an owner.

    Args:
        location: The page.
        story: The decision.
        now: The moment.
    """
    found, record = story.review, story.record
    if found is None:
        return None
    review = found.review
    if review is None:
        return {
            "fault": found.fault,
            "title": "The review cannot be shown",
            "state": "not known",
            "tone": "bad",
            "url": None,
        }
    state = str(review["state"])
    resolution = review["resolution"]
    return {
        "fault": None,
        "title": _title(state, review["owner"], resolution),
        "state": STATES[state],
        "tone": TONES[state],
        "owner": owned(review["owner"]),
        "due": due(review["due_at"], now) if state == HELD else None,
        "due_at": review["due_at"],
        "asked": asked(record),
        "breaches": broken(story),
        "resolution": None if resolution is None else _answer(resolution, found.verification, now),
        "url": Location("review", scope=location.scope, id=record["decision_id"]).url,
    }


def broken(story: Story) -> list[str]:
    """How the receipts behind the review's grant break it, a sentence for each way."""
    ends_at = _grant_end(story.review)
    return [] if ends_at is None else breaches(_receipts(story), ends_at)


def broken_by(story: Story) -> frozenset[str]:
    """The ids of the receipts that break the review's grant."""
    ends_at = _grant_end(story.review)
    if ends_at is None or not broken(story):
        # A late receipt alone is no breach where another one says that the action was queued in time.
        return frozenset()
    return frozenset(each["execution_receipt_id"] for each in _receipts(story) if breaches([each], ends_at))


def grant_position(found: Standing | None) -> int | None:
    """The chain position of a verified grant; None where there is none."""
    if found is None or found.review is None or found.verification is None or not found.verification.integrity_valid:
        return None
    resolution = found.review["resolution"]
    if resolution is None or resolution["resolution"] != "granted":
        return None
    return resolution["audit_chain"]["chain_position"]


def actor(resolution: Mapping[str, Any]) -> str:
    """Who resolved a review, as the service authenticated it."""
    of = resolution["actor"]
    return _ACTORS[of["type"]].format(cut(of["id"]))


def _receipts(story: Story) -> list[Mapping[str, Any]]:
    return list(story.executions.reports)


def _grant_end(found: Standing | None) -> str | None:
    """When the grant of a review ends or ended; None where there is none."""
    resolution = None if found is None or found.review is None else found.review["resolution"]
    return resolution["expires_at"] if resolution is not None and resolution["resolution"] == "granted" else None


def _title(state: str, owner: str | None, resolution: Resolution | None) -> str:
    if resolution is None:
        return f"The review is held for {owned(owner)}" if owner else "The review is held and has no owner"
    return f"The review was {resolution['resolution']} by {actor(resolution)}{', and executed' * (state == 'executed')}"


def _answer(resolution: Resolution, verification: Verification | None, now: datetime) -> dict[str, Any]:
    expires_at = resolution.get("expires_at")
    over = expires_at is not None and parse_timestamp(expires_at) <= now
    return {
        "answer": resolution["resolution"],
        "at": when(resolution["recorded_at"]),
        "actor": actor(resolution),
        "resolved_by": resolution.get("resolved_by"),
        "note": resolution.get("note"),
        "evidence": list(resolution.get("evidence_refs", ())),
        "expires": None if expires_at is None else when(expires_at),
        "over": over,
        "granted": resolution["resolution"] == "granted",
        "position": resolution["audit_chain"]["chain_position"],
        "hash": resolution["resolution_hash"],
        "binding": resolution["action_binding_hash"],
        **_proof(verification),
    }


def _proof(verification: Verification | None) -> dict[str, Any]:
    if verification is None or verification.verified:
        return {"proof": "verified", "proof_tone": "good", "message": None}
    if verification.error == "RESOLUTION_UNSIGNED":
        return {
            "proof": "not signed",
            "proof_tone": "warn",
            "message": "It is not signed, so it does not allow the action.",
        }
    return {"proof": "not verified", "proof_tone": "bad", "message": verification.message}
