"""The order of one endpoint's deliveries: events of one subject one after another, and different subjects in parallel.

    lanes, waiting = into_lanes(page, now)
    outcome = await run_lane(lane, attempt)

An event that fails holds back the later ones of its subject, until it is taken or given up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeAlias

from gate.ids import timestamp
from gate.ledger.webhooks.deliveries import Delivery, Page, Tried, failed
from gate.ledger.webhooks.endpoints import Endpoint
from gate.services.webhooks.retries import next_try
from gate.services.webhooks.transport import Answer

Attempt: TypeAlias = Callable[[Delivery], Awaitable[Answer | None]]
"""Sends an event; None where nothing is sent to the endpoint any more in this round."""

DOWN: Final = 5
"""How many subjects have to fail in a row before an endpoint counts as having been down."""


@dataclass(slots=True)
class Outcome:
    """What came of a lane, or of several.

    Attributes:
        delivered: What the endpoint took.
        kept: The deliveries to store.
        gone: Whether the endpoint answered that it is gone.
    """

    delivered: list[Delivery] = field(default_factory=list)
    kept: list[Delivery] = field(default_factory=list)
    gone: bool = False


def into_lanes(page: Page, now: datetime) -> tuple[list[list[Delivery]], list[Delivery]]:
    """The deliveries to send now, and the waiting ones.

    Args:
        page: The events that an endpoint may get.
        now: The current moment.

    Returns:
        A lane for each subject whose first event is due, in order. Also the deliveries of other subjects, which are
        stored because they wait behind an event that is not due.
    """
    subjects: dict[str, list[Delivery]] = {}
    for delivery in sorted((*page.pending, *page.fresh), key=lambda each: each.seq):
        subjects.setdefault(delivery.subject, []).append(delivery)
    lanes, waiting = [], []
    moment = timestamp(now)
    for lane in subjects.values():
        if lane[0].next_at is None or lane[0].next_at <= moment:
            lanes.append(lane)
        else:
            waiting += _behind(lane[1:])
    return lanes, waiting


async def run_lane(
    lane: Sequence[Delivery], attempt: Attempt, clock: Callable[[], datetime], chance: Callable[[], float]
) -> Outcome:
    """Sends the events of one subject in order, until one has to be tried again later.

    Args:
        lane: The events.
        attempt: Sends one.
        clock: Gives the current moment.
        chance: Gives random numbers from 0 to 1.
    """
    outcome = Outcome()
    for place, delivery in enumerate(lane):
        answer = await attempt(delivery)
        if answer is None:
            # The first of its subject has a time, by which the endpoint is found due again.
            outcome.kept += [replace(delivery, next_at=timestamp(clock())), *_behind(lane[place + 1 :])]
            break
        if answer.error is None:
            outcome.delivered.append(delivery)
            continue
        now = clock()
        # An endpoint that is gone gets nothing before it is enabled again, and then this one first.
        due = now if answer.is_gone else next_try(delivery.attempts + 1, now, chance())
        outcome.kept.append(failed(delivery, answer.status, answer.error, due, now))
        outcome.gone = outcome.gone or answer.is_gone
        if due is not None:
            outcome.kept += _behind(lane[place + 1 :])
            break
    return outcome


def joined(endpoint: Endpoint, page: Page, outcomes: Sequence[Outcome], waiting: Sequence[Delivery]) -> Tried:
    """What came of all lanes of a round."""
    delivered = [delivery for outcome in outcomes for delivery in outcome.delivered]
    kept = [delivery for outcome in outcomes for delivery in outcome.kept]
    # Where several subjects failed since the endpoint took something last, it was down, and now it works again: what
    # waits need not wait for hours. One event that it never takes keeps its own time.
    since = endpoint.delivered_at or ""
    down = {of.subject for of in page.pending if of.last_at is not None and of.last_at > since}
    recovered = bool(delivered) and len(down) >= DOWN and not any(of.attempts for of in kept)
    return Tried(delivered, [*kept, *waiting], any(outcome.gone for outcome in outcomes), recovered)


def _behind(deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Those that have to be stored, because they are new or have a time of their own, and wait behind another."""
    return [replace(of, next_at=None) for of in deliveries if not of.stored or of.next_at is not None]
