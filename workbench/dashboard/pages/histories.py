"""The imported histories of a scope."""

from __future__ import annotations

from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.imported import listing
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """The histories of a scope, and the import of another one."""
    who = visit.access
    found = store.histories.of(who.scope_id, store.reports(who))
    return listing.view(visit.location, found, may_import=who.may("draft") or who.may("approve"))
