"""A policy compared with other scopes; by default the policy with the most decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views import benchmarks
from workbench.dashboard.views.figure import Figure
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """The page of a policy's benchmarks."""
    location, canvas, reports = visit.location, visit.canvas, store.reports(visit.access)
    if location.policy is None:
        every = reports.glance().frame["policy_id"].to_list()
        if not every:
            return benchmarks.nothing(location)
        location = location.change(policy=every[0])
    policy_id = str(location.policy)
    report = reports.benchmarks(policy_id, location.version)

    def leads(row: Mapping[str, Any]) -> str:
        return benchmarks.chart_link(location, report.body, row)

    def drawn() -> Figure:
        return canvas.figure(report.plot(link=leads))

    compared = report.body["cross_customer"]["percentiles"] is not None
    chart = reports.kept("benchmarks chart", (policy_id, location.version, canvas.width), drawn) if compared else None
    return benchmarks.view(location, report.body, report.frame, reports.names(), chart, as_of=reports.seen.at)
