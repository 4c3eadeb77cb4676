"""The decisions that wait for a reviewer."""

from __future__ import annotations

from typing import Final

from workbench.dashboard.pages.decided.decisions import part
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.slices import Part
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.decided import held
from workbench.dashboard.views.decided.listing import criteria, set_filters
from workbench.dashboard.views.page import Page

_OLDEST: Final = Part(limit=1, oldest_first=True)


def load(store: Store, visit: Visit) -> Page:
    """The held decisions. All readers see the same ages: those at the moment when the ledger was read."""
    reports, location = store.reports(visit.access), visit.location
    now = reports.seen.at
    asked = held.asked(location, now)
    found = reports.find(asked, part(location, oldest_first=True))
    without = {}
    if not found.total:
        without = {
            name: reports.find(held.asked(wider, now), _OLDEST).total for name, _, wider in set_filters(location)
        }
    first = reports.find(asked, _OLDEST).frame["created_at"]
    return held.view(
        location,
        found,
        reports.held(criteria(location, state="held"), now),
        reports.names(),
        oldest=None if first.is_empty() else first[0],
        now=now,
        without=without,
    )
