"""The overview."""

from __future__ import annotations

from workbench.dashboard.pages.anomalies import LOOKED_AT, flags
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views import overview
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """The overview of a scope."""
    reports = store.reports(visit.access)
    found = reports.glance()
    policies = found.frame["policy_id"].to_list()[:LOOKED_AT]
    looked_at = list(dict.fromkeys([*policies, *found.acted_on]))
    flagged = flags(store, visit, {policy_id: reports.anomalies(policy_id) for policy_id in looked_at})
    return overview.view(
        visit.location,
        found,
        {policy_id: [each for each in flagged if each.policy_id == policy_id] for policy_id in looked_at},
        {policy_id: reports.effectiveness(policy_id) for policy_id in policies},
        store.health(visit.access),
        as_of=reports.seen.at,
        now=visit.now,
        waiting=store.reviews.waiting(visit.access.scope_id),
        not_looked=found.frame.height - len(policies),
    )
