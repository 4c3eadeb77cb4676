"""One policy's page."""

from __future__ import annotations

from dataclasses import replace

from workbench.dashboard.pages.anomalies import flags
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.reports import EVERYTHING, Part, ScopeReports, Slice
from workbench.dashboard.store.store import Store
from workbench.dashboard.views import policy
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.listing import Criteria


def load(store: Store, visit: Visit) -> Page:
    """The page of a policy; of the one with the most decisions where none is named."""
    reports = store.reports(visit.access)
    names, location = reports.names(), visit.location
    if location.policy is None and names.policies:
        location = location.change(policy=names.policies[0])
    if location.policy is None:
        return policy.empty(location, names, known=False, now=visit.now)
    asked = sliced(location)
    report = reports.effectiveness(location.policy, asked)
    if not report.body["coverage"]["decisions"]:
        whole = reports.effectiveness(location.policy, EVERYTHING)
        return policy.empty(location, names, known=bool(whole.body["coverage"]["decisions"]), now=visit.now)
    found = policy.Found(
        names=names,
        compared=reports.effectiveness(location.policy, replace(asked, policy_version=None)),
        asked=report,
        done=reports.activity(location.policy, asked),
        held=_held(reports, location.policy, asked),
        flagged=flags(store, visit, {location.policy: reports.anomalies(location.policy)}),
        change=None
        if location.version is None
        else store.ledger.changes(visit.access.scope_id, location.policy, location.version),
        routes=store.migrations.routes(visit.access, location.policy).get(location.policy, ()),
    )
    drawn = reports.kept(
        "policy figures",
        (location, visit.canvas.width, len(found.routes)),
        lambda: policy.figures(location, found, visit.canvas),
    )
    return policy.view(location, found, drawn, now=visit.now)


def sliced(location: Location) -> Slice:
    """Which decisions the filters of a location leave."""
    since, until = location.period()
    return Slice(location.version, location.verdict, since, until)


def _held(reports: ScopeReports, policy_id: str, asked: Slice) -> int:
    criteria = Criteria(
        policy_id=policy_id,
        policy_version=asked.policy_version,
        verdict=asked.verdict,
        since=asked.since,
        until=asked.until,
        state="held",
    )
    return reports.find(criteria, Part(limit=1)).total
