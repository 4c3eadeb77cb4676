"""The migrations of a scope and the history of its routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gate.records.changes import RouteEntry
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.figure import Figure
from workbench.dashboard.views.migrations.listing import MOST_CHARTS, listing
from workbench.dashboard.views.migrations.results import begin
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """All migrations, and where each rulebook id leads, with how each version did."""
    found = store.migrations.migrations(visit.access)
    routes = store.migrations.routes(visit.access)
    figures = store.version_figures(visit.access, list(routes)) if routes else {}
    return listing(visit.location, found, routes, figures, _charts(store, visit, routes), now=visit.now)


def _charts(store: Store, visit: Visit, routes: Mapping[str, Sequence[RouteEntry]]) -> dict[str, Figure]:
    """The chart of each policy that is looked at; of all policies those whose routes changed last."""
    reports, location = store.reports(visit.access), visit.location
    latest = sorted(routes, key=lambda name: routes[name][-1]["recorded_at"], reverse=True)
    names = latest[:MOST_CHARTS] if location.policy is None else [location.policy] if location.policy in routes else []

    def draw() -> dict[str, Figure]:
        begun = {
            name: begin(location.to("policy", policy=name), reports.effectiveness(name), routes[name], visit.canvas)
            for name in names
        }
        return {name: wait() for name, wait in begun.items() if wait is not None}

    # Routes are only ever added.
    key = (location.scope, visit.canvas.width, tuple((name, len(routes[name])) for name in names))
    return reports.kept("charts of routes", key, draw)
