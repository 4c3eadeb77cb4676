"""The decisions of a scope, searched."""

from __future__ import annotations

from typing import Final

from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.reports import Part, ScopeReports, Shown
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.decided import decisions
from workbench.dashboard.views.decided.listing import criteria, set_filters
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.listing import Listing

_COUNT: Final = Part(limit=1)


def load(store: Store, visit: Visit) -> Page:
    """The decisions that meet the filters.

    Raises:
        NotFound: DASHBOARD_ANOMALY_UNKNOWN.
    """
    reports, location = store.reports(visit.access), visit.location
    found = _found(reports, location, part(location))
    without = {}
    if not found.total:
        without = {name: _found(reports, wider, _COUNT).total for name, _, wider in set_filters(location)}
    return decisions.view(
        location,
        found,
        reports.names(),
        as_of=reports.seen.at,
        now=visit.now,
        without=without,
        unlisted=not found.total
        and location.ref is not None
        and store.ledger.holds(visit.access.scope_id, location.ref),
    )


def part(location: Location, *, oldest_first: bool = False) -> Part:
    """The page of a list that a location names."""
    before, after = (None if at is None else int(at) for at in (location.before, location.after))
    return Part(before=before, after=after, oldest_first=oldest_first)


def _found(reports: ScopeReports, location: Location, of: Part) -> Listing:
    shown = None
    # A location with an anomaly has the policy, too.
    if location.anomaly is not None and location.policy is not None:
        shown = Shown(location.policy, location.version, location.anomaly)
    return reports.find(criteria(location), of, shown)
