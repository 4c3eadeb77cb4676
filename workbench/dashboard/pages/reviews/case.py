"""One review as a case, read from the ledger and verified each time."""

from __future__ import annotations

from gate.decisions.reviews.refusals import require_approver
from gate.errors import AccessForbidden, NotFound
from workbench.dashboard.pages.reviews.queue import resolved
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.page import Page
from workbench.dashboard.views.reviews import case
from workbench.dashboard.views.reviews.queue import owner_of


def load(store: Store, visit: Visit) -> Page:
    """A review.

    Raises:
        NotFound: `DASHBOARD_REVIEW_UNKNOWN`: the scope holds no such decision for an owner.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the record cannot be read, or has fields that nothing covers.
    """
    location, scope_id = visit.location, visit.access.scope_id
    review = store.reviews.find(scope_id, location.id or "")
    if review is None:
        raise NotFound(
            "DASHBOARD_REVIEW_UNKNOWN",
            "This scope holds no decision with that id for an owner. Check the id and the scope, or choose a review in "
            "the queue.",
        )
    return case.view(
        location,
        store.ledger.story(scope_id, review.decision_id),
        review,
        store.reviews.around(review, owner_of(location)),
        done=resolved(store, scope_id, location),
        refused=_refused(store, visit),
        now=visit.now,
    )


def _refused(store: Store, visit: Visit) -> str | None:
    """Why the user may not answer; None where they may."""
    try:
        require_approver(visit.access.user, store.scope(visit.access))
    except AccessForbidden as error:
        return error.message
    return None
