"""An approver grants or refuses a held action."""

from __future__ import annotations

from typing import cast

from gate.errors import OperatorError, ReviewConflict
from gate.ledger.chain.reviews import HELD
from gate.records.documents import Answer as Resolved
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.views.location import NOBODY, Location

_ANSWERS = ("granted", "refused")


def resolve(turn: Turn) -> Answer:
    """Grants or refuses a held action, and leads to the next review: {decision, record_hash, answer, note?, evidence?,
    owner?}; the evidence has a reference on each line. It leads to the resolution of a review that was resolved before.
    """
    decision_id, answer, reviews = turn.text("decision"), turn.text("answer"), turn.store.reviews
    if answer not in _ANSWERS:
        raise OperatorError("ACT_INVALID", "You can only grant or refuse a review. Load the page again.")
    evidence = [line.strip() for line in (turn.word("evidence") or "").splitlines() if line.strip()]
    try:
        reviews.resolutions.resolve_as(
            turn.who.user,
            turn.scope,
            decision_id,
            cast("Resolved", answer),
            note=(turn.word("note") or "").strip(),
            evidence=evidence,
            record_hash=turn.text("record_hash"),
        )
    except ReviewConflict:
        review = reviews.find(turn.who.scope_id, decision_id)
        if review is None or review.state == HELD:
            raise
        # Somebody, or the time limit, was quicker: the page says so where the resolution stands, and keeps the note.
        shown = {"scope": turn.who.scope, "owner": turn.word("owner"), "done": decision_id}
        return {"go": Location("review", id=decision_id, **shown).url}
    reviews.recount(turn.who.scope_id)
    return {"go": _next(turn, decision_id), "forget": decision_id}


def _next(turn: Turn, decision_id: str) -> str:
    """The review behind the one that was resolved, or the queue where it was the last."""
    named = turn.word("owner")
    owner = "" if named == NOBODY else named
    review = turn.store.reviews.find(turn.who.scope_id, decision_id)
    following = None if review is None else turn.store.reviews.following(review, owner)
    shown = {"scope": turn.who.scope, "owner": named, "done": decision_id}
    if following is None:
        return Location("reviews", **shown).url
    return Location("review", id=following, **shown).url
