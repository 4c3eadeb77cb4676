"""The anomalies of a scope's policies, each with whether it is open and who dismissed it, as all pages count them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gate.policy.anomalies.alerts import still_open
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.flagged.anomalies import Flagged
from workbench.engines.anomalies.report import AnomalyReport
from workbench.engines.anomalies.sentences import improved

LOOKED_AT: Final = 20
"""In how many policies anomalies and versions that do worse are looked for, those with the most decisions."""


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
