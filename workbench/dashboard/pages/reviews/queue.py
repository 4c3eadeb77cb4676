"""The queue of reviews, read from the ledger each time. The numbers by owner are some seconds old."""

from __future__ import annotations

from gate.ledger.chain.reviews import HELD, STATES
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.location import Location, LocationInvalid
from workbench.dashboard.views.page import Page
from workbench.dashboard.views.reviews import queue
from workbench.dashboard.views.reviews.standing import Done, done


def load(store: Store, visit: Visit) -> Page:
    """The reviews of a state and an owner.

    Raises:
        LocationInvalid: There is no such state.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    location, scope_id, reviews = visit.location, visit.access.scope_id, store.reviews
    state = location.state or HELD
    if state not in STATES:
        raise LocationInvalid("DASHBOARD_ADDRESS_INVALID", f"The filter state is one of {', '.join(STATES)}.")
    beyond = location.after if state == HELD else location.before
    return queue.view(
        location,
        reviews.queue(scope_id, state, queue.owner_of(location), None if beyond is None else int(beyond)),
        reviews.waiting(scope_id),
        reviews.owners(scope_id),
        done=resolved(store, scope_id, location),
        now=visit.now,
    )


def resolved(store: Store, scope_id: str, location: Location) -> Done | None:
    """The review that a location names as resolved a moment ago."""
    review = None if location.done is None else store.reviews.find(scope_id, location.done)
    return None if review is None else done(location, review, store.reviews.cited(review))
