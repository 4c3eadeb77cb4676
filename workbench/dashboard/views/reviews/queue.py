"""The queue: the reviews of a state by owner and age. Held ones come oldest first, all others newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from gate.ids import parse_timestamp
from gate.ledger.chain.reviews import GRANTED, HELD, STATES
from gate.ledger.reads.decisions import Found
from gate.ledger.reads.decisions import Page as Queue
from gate.ledger.reviews import Waiting
from workbench.dashboard.views import links
from workbench.dashboard.views.html import clock, render
from workbench.dashboard.views.location import NOBODY, Location
from workbench.dashboard.views.page import Choice, Page
from workbench.dashboard.views.reviews.standing import Done
from workbench.dashboard.views.reviews.words import CHOICES, asked, due, grant, owned, waits
from workbench.dashboard.views.reviews.words import STATES as WORDS
from workbench.engines.rendering import on_one_line
from workbench.engines.wording import phrase


def view(
    location: Location,
    queue: Queue,
    waiting: Sequence[Waiting],
    owners: Sequence[str],
    *,
    done: Done | None,
    now: datetime,
) -> Page:
    """The page of the queue.

    Args:
        location: Where it is.
        queue: The reviews of its state and owner.
        waiting: The held reviews of the scope by owner.
        owners: The owners that the filter offers.
        done: The review that was resolved a moment ago.
        now: The moment.
    """
    state = location.state or HELD
    here = [each for each in waiting if location.owner is None or each.owner == (owner_of(location) or "")]
    beyond = "after" if state == HELD else "before"
    more = {beyond: str(queue.next_position)} if queue.next_position is not None else None
    context = {
        "rows": [_row(location, each, now) for each in queue.found],
        "held": state == HELD,
        "granted": state == GRANTED,
        "everyone": location.owner is None,
        "state": WORDS[state],
        "caption": f"Reviews, {'longest waiting' if state == HELD else 'newest'} first",
        "more_url": None if more is None else location.change(done=None, **more).url,
        "first_url": location.change(done=None).url if location.before or location.after else None,
        "owners": owners_of(location, waiting, now),
        "done": done,
        "total": sum(each.number for each in here),
    }
    filters = (
        Choice("state", "State", {"": "Held", **{each: phrase(CHOICES[each]) for each in STATES if each != HELD}}),
        Choice(
            "owner", "Owner", {"": "All owners", **{each: on_one_line(each) for each in owners}, NOBODY: "No owner"}
        ),
    )
    return Page(location, _title(location, state, here, queue, now), render("reviews.html", context), filters=filters)


def owner_of(location: Location) -> str | None:
    """The owner that a location names, as the ledger has it: "" for none, None for all."""
    return "" if location.owner == NOBODY else location.owner


def owners_of(location: Location, waiting: Sequence[Waiting], now: datetime) -> list[dict[str, Any]]:
    """The held reviews by owner, the one whose oldest waits longest first."""
    return [
        {
            "owner": owned(each.owner),
            "url": Location("reviews", scope=location.scope, owner=each.owner or NOBODY).url,
            "number": each.number,
            "oldest": waits(each.oldest_at, now),
            "due": each.due,
        }
        for each in waiting
    ]


def _title(location: Location, state: str, here: Sequence[Waiting], queue: Queue, now: datetime) -> str:
    named = owner_of(location)
    owner = "" if named is None else f" for {owned(named)}" if named else " without an owner"
    if state == GRANTED:
        return f"Granted actions that are not executed yet{owner}" if queue.found else f"No unused grants{owner}"
    if state != HELD:
        return f"Reviews that were {WORDS[state]}{owner}" if queue.found else f"No review was {WORDS[state]}{owner}"
    number = sum(each.number for each in here)
    if not number:
        # The counts are some seconds old.
        return f"Reviews are waiting{owner}" if queue.found else f"No review is waiting{owner}"
    oldest = waits(min(each.oldest_at for each in here), now)
    if number == 1:
        return f"1 review is waiting{owner}, for {oldest}"
    return f"{number:,} reviews are waiting{owner}, the oldest for {oldest}"


def _row(location: Location, found: Found, now: datetime) -> dict[str, Any]:
    record, review = found.record, found.review
    due_at, resolved_at = (None, None) if review is None else (review.due_at, review.resolved_at)
    decision_id = record["decision_id"]
    return {
        "id": decision_id,
        "asked": asked(record),
        "url": location.to("review", id=decision_id, done=None).url,
        "waits": waits(record["created_at"], now if resolved_at is None else parse_timestamp(resolved_at)),
        "due": due(due_at, now),
        "resolved": None if resolved_at is None else clock(parse_timestamp(resolved_at)),
        "grant": grant(None if review is None else review.grant_ends_at, now),
        "policy": record["policy_id"],
        "policy_url": links.policy(location, record["policy_id"]),
        "action": record["action"],
        "reason": record["reason_code"],
        "owner": owned("" if review is None else review.owner),
    }
