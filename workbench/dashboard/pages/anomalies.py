"""The anomalies of a policy, or of those policies of a scope that have the most decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gate.policy.anomalies.alerts import still_open
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.reports import ScopeReports
from workbench.dashboard.store.slices import Slice
from workbench.dashboard.store.store import Store
from workbench.dashboard.views import links
from workbench.dashboard.views.figure import Figure
from workbench.dashboard.views.flagged import anomalies
from workbench.dashboard.views.flagged.anomalies import Flagged, Looked
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.anomalies.report import AnomalyReport
from workbench.engines.anomalies.sentences import improved
from workbench.lake.reader import RECORDED

LOOKED_AT: Final = 20
"""In how many policies anomalies and versions that do worse are looked for, those with the most decisions."""


def load(store: Store, visit: Visit) -> Page:
    """The list of anomalies."""
    location, reports = visit.location, store.reports(visit.access)
    at_a_glance = reports.glance()
    every: list[str] = at_a_glance.frame["policy_id"].to_list()
    usual = list(dict.fromkeys([*every[:LOOKED_AT], *at_a_glance.acted_on]))
    chosen = usual if location.policy is None else [location.policy]
    asked = looked_at(location)
    found = {policy_id: reports.anomalies(policy_id, asked, location.value) for policy_id in chosen}
    looked = Looked(
        chosen,
        sum(report.body["coverage"]["decisions"] for report in found.values()),
        0 if location.policy is not None else max(0, len(every) - LOOKED_AT),
        found[chosen[0]].body if location.policy is not None else None,
    )
    flagged = flags(store, visit, found)
    return anomalies.view(
        location,
        flagged,
        looked,
        reports.names(),
        reports.metrics(location.policy),
        _chart(reports, visit, found[chosen[0]], flagged) if location.policy is not None else None,
        as_of=reports.seen.at,
        now=visit.now,
    )


def looked_at(location: Location) -> Slice:
    """In which decisions anomalies are looked for; a period chooses among those that are found."""
    return Slice(location.version, location.verdict, clock=location.clock or RECORDED)


def flags(store: Store, visit: Visit, found: Mapping[str, AnomalyReport]) -> list[Flagged]:
    """The anomalies of reports by policy, each with whether it is open, and who dismissed it."""
    ids = [anomaly["anomaly_id"] for report in found.values() for anomaly in report.body["anomalies"]]
    latest = store.dismissals.latest(visit.access.scope_id, ids) if ids else {}
    dismissals = {anomaly_id: act for anomaly_id, act in latest.items() if act.dismissed}
    flagged = []
    for policy_id, report in found.items():
        recent = {anomaly["anomaly_id"] for anomaly in still_open(report.body) if not improved(anomaly)}
        for at, anomaly in enumerate(report.body["anomalies"]):
            dismissal = dismissals.get(anomaly["anomaly_id"])
            is_open = dismissal is None and anomaly["anomaly_id"] in recent
            flagged.append(Flagged(policy_id, at, anomaly, is_open, dismissal))
    return flagged


def _chart(reports: ScopeReports, visit: Visit, report: AnomalyReport, flagged: list[Flagged]) -> Figure | None:
    """Those that the list shows, over time; None where there are none."""
    location, canvas = visit.location, visit.canvas
    only = tuple(each.at for each in anomalies.shown(location, flagged))
    if not only:
        return None

    def leads(row: Mapping[str, Any]) -> str:
        return links.anomaly(location, report.body["policy_id"], report.body["anomalies"][row["at"]]["anomaly_id"])

    key = (report.body["policy_id"], looked_at(location), location.value, only, canvas.width)
    return reports.kept("anomalies chart", key, lambda: canvas.figure(report.plot(only=only, link=leads)))
