"""One anomaly, and what its forms do: dismiss it with a note, or reopen it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from gate.ledger.access.dismissals import FlaggedAnomaly
from gate.policy.anomalies.anomaly import AnomalyDocument
from workbench.dashboard.pages.anomalies import flags, looked_at
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.reports import ScopeReports, unknown_anomaly
from workbench.dashboard.store.slices import Shown
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.figure import Figure
from workbench.dashboard.views.flagged import anomaly
from workbench.dashboard.views.flagged.anomalies import Flagged
from workbench.dashboard.views.flagged.anomaly import FIRST, Found
from workbench.dashboard.views.page import Form, Page
from workbench.engines.anomalies.report import AnomalyReport

_COLUMNS: Final = (
    "decision_id",
    "created_at",
    "policy_version",
    "verdict",
    "reason_code",
    "execution_status",
    "outcome_status",
)


def load(store: Store, visit: Visit) -> Page:
    """The page of an anomaly.

    Raises:
        NotFound: `DASHBOARD_ANOMALY_UNKNOWN`: no report lists it.
    """
    reports = store.reports(visit.access)
    report, at = _listed(reports, visit)
    every = flags(store, visit, {report.body["policy_id"]: report})
    flagged = every[at]
    id_ = flagged.anomaly["anomaly_id"]
    return anomaly.view(
        visit.location,
        _found(reports, visit, report, flagged),
        store.dismissals.history(visit.access.scope_id, id_),
        anomaly.at_that_time(flagged, every),
        may_dismiss=visit.access.may("dismiss"),
        as_of=reports.seen.at,
    )


def act(store: Store, visit: Visit, form: Form, note: str) -> None:
    """Dismisses an anomaly, or reopens it.

    Raises:
        AccessForbidden: `DASHBOARD_FORBIDDEN`: the user may do neither.
        NotFound: `DASHBOARD_ANOMALY_UNKNOWN`: no report lists it.
        RequestRefused: As `Dismissals.dismiss` and `Dismissals.reopen`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    visit.access.require("dismiss")
    {"dismiss": _dismiss, "reopen": _reopen}[form.act](store, visit, note)


def _dismiss(store: Store, visit: Visit, note: str) -> None:
    report, at = _listed(store.reports(visit.access), visit)
    listed: AnomalyDocument = report.body["anomalies"][at]
    flagged = FlaggedAnomaly(
        listed["anomaly_id"], report.body["policy_id"], listed["severity"], listed["anomaly_score"]
    )
    store.dismissals.dismiss(store.scope(visit.access), flagged, note, visit.access.user.name, visit.now)


def _reopen(store: Store, visit: Visit, note: str) -> None:
    report, at = _listed(store.reports(visit.access), visit)
    id_ = report.body["anomalies"][at]["anomaly_id"]
    store.dismissals.reopen(store.scope(visit.access), id_, note, visit.access.user.name, visit.now)


def _listed(reports: ScopeReports, visit: Visit) -> tuple[AnomalyReport, int]:
    """The report that lists the anomaly of a visit, and its place in it."""
    location = visit.location
    if location.policy is None or location.id is None:
        raise unknown_anomaly()
    return reports.listed(Shown(location.policy, looked_at(location), location.id), location.value)


def _found(reports: ScopeReports, visit: Visit, report: AnomalyReport, flagged: Flagged) -> Found:
    location, canvas, at = visit.location, visit.canvas, flagged.at

    def leads(row: Mapping[str, Any]) -> str | None:
        return anomaly.chart_link(location, flagged.anomaly, row)

    def drawn() -> Figure:
        return canvas.figure(report.plot(at, link=leads))

    key = (location.policy, looked_at(location), location.value, location.id)
    first, whole = reports.kept("anomaly decisions", key, lambda: _first(report, at))
    return Found(
        flagged,
        first,
        whole,
        reports.kept("anomaly numbers", key, lambda: report.beside(at)),
        reports.kept("anomaly chart", (*key, canvas.width), drawn),
        reports.kept("anomaly going back", key, lambda: report.going_back(at)),
    )


def _first(report: AnomalyReport, at: int) -> tuple[pl.DataFrame, int]:
    """The latest of the decisions that show an anomaly, or the farthest of a metric; and how many there are."""
    listed: AnomalyDocument = report.body["anomalies"][at]
    cases = report.decisions(at).select(*_COLUMNS, "position")
    if listed["kind"] == "metric_outlier":
        ids = pl.LazyFrame({"decision_id": listed["decision_ids"]}, schema={"decision_id": pl.String})
        first = ids.join(cases, on="decision_id", maintain_order="left")
    else:
        first = cases.top_k(FIRST, by="position").sort("position", descending=True)
    shown, whole = pl.collect_all([first, cases.select(pl.len())], engine="streaming")
    return shown, int(whole.item())
