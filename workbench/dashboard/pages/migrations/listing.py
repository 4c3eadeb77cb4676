"""The migrations of a scope and the history of its routes."""

from __future__ import annotations

from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.migrations.listing import listing
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """All migrations, and where each rulebook id leads, with how each version did."""
    found = store.migrations.migrations(visit.access)
    routes = store.migrations.routes(visit.access)
    figures = store.version_figures(visit.access, list(routes)) if routes else {}
    return listing(visit.location, found, routes, figures, now=visit.now)
