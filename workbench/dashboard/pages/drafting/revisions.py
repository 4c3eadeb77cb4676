"""The revisions of a draft."""

from __future__ import annotations

from workbench.dashboard.pages.drafting.drafts import named
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.drafting import revisions as views
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """The revisions of a draft, and what it can be compared with."""
    scope_id, draft_id = visit.access.scope_id, named(visit)
    draft = store.drafts.draft(scope_id, draft_id)
    found = store.drafts.revisions(scope_id, draft_id)
    return views.revisions(visit.location, draft, found, store.ledger.rulebook_versions(scope_id))
