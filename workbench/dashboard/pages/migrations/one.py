"""One migration."""

from __future__ import annotations

from gate.errors import NotFound
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.migrations.one import migration
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """A migration with its evidence, its routes, and its shadow."""
    who = visit.access
    if visit.location.id is None:
        raise NotFound("MIGRATION_UNKNOWN", "The address contains no migration. Choose one in the list.")
    stored = store.migrations.migration(who, visit.location.id)
    document = store.migrations.document(who, stored)
    ids = {of["rulebook_id"] for of in stored.standing.proposed["candidates"]}
    routes = {name: of for name, of in store.migrations.routes(who).items() if name in ids}
    shadow = store.migrations.shadows(who).get(stored.standing.migration_id)
    return migration(visit.location, stored, document, routes, shadow, who, self_approval=store.self_approval)
