"""The decisions of a scope, searched."""

from __future__ import annotations

from typing import Final

from workbench.dashboard.pages.anomalies import looked_at
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.reports import ScopeReports
from workbench.dashboard.store.slices import Part, Shown
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.decided import decisions
from workbench.dashboard.views.decided.listing import criteria, set_filters
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.listing import Criteria, Listing
from workbench.lake.reader import RECORDED

_COUNT: Final = Part(limit=1)


def load(store: Store, visit: Visit) -> Page:
    """The decisions that meet the filters.

    Raises:
        NotFound: `DASHBOARD_ANOMALY_UNKNOWN`.
    """
    chain, location = store.reports(visit.access), visit.location
    reports = chain.of_source(location.history)
    found = _found(reports, location, part(location))
    without, elsewhere = {}, None
    if not found.total:
        elsewhere = _elsewhere(reports, location)
        without = {name: _found(reports, wider, _COUNT).total for name, _, wider in set_filters(location)}
    return decisions.view(
        location,
        found,
        reports.names(),
        as_of=reports.seen.at,
        now=visit.now,
        without=without,
        elsewhere=elsewhere,
        histories=chain.snapshot.histories,
        imported=reports.snapshot.imported,
        anomaly=_anomaly(reports, location),
        unlisted=not found.total
        and location.history is None
        and elsewhere is None
        and location.ref is not None
        and store.ledger.holds(visit.access.scope_id, location.ref),
    )


def part(location: Location, *, oldest_first: bool = False) -> Part:
    """The page of a list that a location names."""
    before, after = (None if at is None else int(at) for at in (location.before, location.after))
    return Part(before=before, after=after, oldest_first=oldest_first)


def _elsewhere(reports: ScopeReports, location: Location) -> str | None:
    """The decision with the id that is asked for, whatever the other filters are; None where it is none or not one."""
    if location.ref is None or location.history is not None:
        return None
    found = reports.find(Criteria(ref=location.ref), _COUNT)
    return str(found.frame["decision_id"][0]) if found.total == 1 else None


def _found(reports: ScopeReports, location: Location, of: Part) -> Listing:
    return reports.find(criteria(location), of, _shown(location), location.clock or RECORDED)


def _shown(location: Location) -> Shown | None:
    """The anomaly whose decisions are listed; None where there is none."""
    # A location with an anomaly has the policy, too.
    if location.anomaly is None or location.policy is None or location.history is not None:
        return None
    return Shown(location.policy, looked_at(location), location.anomaly)


def _anomaly(reports: ScopeReports, location: Location) -> str | None:
    """The page of that anomaly, with the filters of the report that lists it."""
    if (shown := _shown(location)) is None:
        return None
    of = reports.listing(shown)
    clock = None if of.clock == RECORDED else of.clock
    return location.to("anomaly", id=shown.anomaly_id, version=of.policy_version, verdict=of.verdict, clock=clock).url
