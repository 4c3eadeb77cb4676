"""The overview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gate.policy.anomalies.alerts import still_open
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views import overview
from workbench.dashboard.views.page import Page

LOOKED_AT: Final = 20
"""In how many policies anomalies and versions that do worse are looked for, those with the most decisions."""


def load(store: Store, visit: Visit) -> Page:
    """The overview of a scope."""
    reports = store.reports(visit.access)
    found = reports.glance()
    policies = found.frame["policy_id"].to_list()[:LOOKED_AT]
    anomalies = {policy_id: still_open(reports.anomalies(policy_id).to_dict()) for policy_id in policies}
    return overview.view(
        visit.location,
        found,
        without_dismissed(store, visit, anomalies),
        {policy_id: reports.effectiveness(policy_id) for policy_id in policies},
        store.health(visit.access),
        as_of=reports.seen.at,
        now=visit.now,
        not_looked=found.frame.height - len(policies),
    )


def without_dismissed(
    store: Store, visit: Visit, anomalies: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, list[Mapping[str, Any]]]:
    """Anomalies by policy, without those that somebody dismissed."""
    ids = [anomaly["anomaly_id"] for each in anomalies.values() for anomaly in each]
    latest = store.dismissals.latest(visit.access.scope_id, ids) if ids else {}
    return {
        policy_id: [each for each in of if not (each["anomaly_id"] in latest and latest[each["anomaly_id"]].dismissed)]
        for policy_id, of in anomalies.items()
    }
