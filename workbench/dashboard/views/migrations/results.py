"""A policy's success week by week, and over it the moments from which another of its versions decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gate.ids import parse_timestamp
from gate.records.changes import RouteEntry
from workbench.charts import effectiveness
from workbench.charts.effectiveness import Route
from workbench.dashboard.views import links
from workbench.dashboard.views.figure import Canvas, Figure
from workbench.dashboard.views.location import Location
from workbench.engines import findings
from workbench.engines.effectiveness import EffectivenessReport


def begin(
    location: Location, report: EffectivenessReport, routes: Sequence[RouteEntry], canvas: Canvas
) -> Callable[[], Figure] | None:
    """Begins to draw the chart, as `Canvas.begin`; None where no decision has a final outcome yet.

    Args:
        location: A page of the policy, whose points lead to decisions.
        report: How well the policy did.
        routes: Its routes, in the order of the chain; the last of each day of the location's period is drawn.
        canvas: The canvas of the chart.
    """
    weeks = report.weekly
    if not weeks["success_rate"].is_not_null().any():
        return None

    def of_week_and_version(row: Mapping[str, Any]) -> str:
        return links.decisions(location, version=row["policy_version"], **links.week_of(location, row["week"]))

    since, until = location.period()
    within = [
        Route(at, route["to"]["version"])
        for at, route in ((parse_timestamp(route["recorded_at"]), route) for route in routes)
        if (since is None or since <= at) and (until is None or at < until)
    ]
    # Those of one day would stand on each other: the last of them decided from then on.
    drawn = list({of.at.date(): of for of in within}.values())
    return canvas.begin(effectiveness.weekly(weeks, findings.weeks(weeks), (), link=of_week_and_version, routes=drawn))
