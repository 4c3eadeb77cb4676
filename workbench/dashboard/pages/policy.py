"""One policy's page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.dashboard.pages.anomalies import flags
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.reports import ScopeReports
from workbench.dashboard.store.slices import EVERYTHING, Part, Slice
from workbench.dashboard.store.store import Store
from workbench.dashboard.views import policy
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.listing import Criteria
from workbench.lake.reader import RECORDED


def load(store: Store, visit: Visit) -> Page:
    """The page of a policy; of the one with the most decisions where none is named."""
    chain, location = store.reports(visit.access), visit.location
    reports = chain.of_source(location.history)
    names, histories = reports.names(), chain.snapshot.histories
    if location.history is not None and names.policies and location.policy not in names.policies:
        # A history has one policy.
        location = location.change(policy=names.policies[0])
    if location.policy is None and names.policies:
        location = location.change(policy=names.policies[0])
    if location.policy is None:
        return policy.empty(location, names, histories, known=False, now=visit.now)
    asked = sliced(location)
    report = reports.effectiveness(location.policy, asked)
    if not report.body["coverage"]["decisions"]:
        whole = reports.effectiveness(location.policy, EVERYTHING)
        return policy.empty(location, names, histories, known=bool(whole.body["coverage"]["decisions"]), now=visit.now)
    found = policy.Found(
        names=names,
        compared=reports.effectiveness(location.policy, replace(asked, policy_version=None)),
        asked=report,
        done=reports.activity(location.policy, asked),
        **_in_chain(store, visit, reports, location, asked),
        histories=histories,
        imported=reports.snapshot.imported,
    )
    drawn = reports.kept(
        "policy figures",
        (location, visit.canvas.width, len(found.routes)),
        lambda: policy.figures(location, found, visit.canvas),
    )
    return policy.view(location, found, drawn, now=visit.now)


def _in_chain(store: Store, visit: Visit, reports: ScopeReports, location: Location, asked: Slice) -> dict[str, Any]:
    """What only decisions in the chain have; nothing of an imported history."""
    if location.history is not None or location.policy is None:
        return {"held": 0, "flagged": (), "change": None, "routes": ()}
    version = location.version
    return {
        "held": _held(reports, location.policy, asked),
        "flagged": flags(store, visit, {location.policy: reports.anomalies(location.policy, Slice(clock=asked.clock))}),
        "change": None if version is None else store.ledger.changes(visit.access.scope_id, location.policy, version),
        "routes": store.migrations.routes(visit.access, location.policy).get(location.policy, ()),
    }


def sliced(location: Location) -> Slice:
    """Which decisions the filters of a location leave."""
    since, until = location.period()
    return Slice(location.version, location.verdict, since, until, location.clock or RECORDED)


def _held(reports: ScopeReports, policy_id: str, asked: Slice) -> int:
    criteria = Criteria(
        policy_id=policy_id,
        policy_version=asked.policy_version,
        verdict=asked.verdict,
        since=asked.since,
        until=asked.until,
        state="held",
    )
    return reports.find(criteria, Part(limit=1), clock=asked.clock).total
