"""The page of one decision, read from the ledger and verified each time."""

from __future__ import annotations

from gate.errors import NotFound
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.decided import decision
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """A decision's story.

    Raises:
        NotFound: `DASHBOARD_DECISION_UNKNOWN`: the scope has no such decision; one of another scope is none.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the record cannot be read, or has fields that nothing covers.
    """
    try:
        story = store.ledger.story(visit.access.scope_id, visit.location.id or "")
    except NotFound as error:
        raise NotFound(
            "DASHBOARD_DECISION_UNKNOWN",
            "This scope has no decision with that ID. Check the ID and the scope, or search the list of decisions.",
        ) from error
    drafts = store.drafts.of(visit.access.scope_id) if visit.access.may("draft") else []
    return decision.view(visit.location, story, visit.now, drafts)
