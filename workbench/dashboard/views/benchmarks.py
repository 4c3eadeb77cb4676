"""A policy compared with other scopes: its rates and theirs, or why there is no comparison, and its own figures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import polars as pl

from workbench.dashboard.views import links, offered
from workbench.dashboard.views.figure import Figure
from workbench.dashboard.views.html import points, render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.dashboard.views.tables import Cell, Table, table
from workbench.engines.findings import FEW, benchmark, beside_others
from workbench.engines.listing import Names
from workbench.engines.rendering import cut, percent
from workbench.engines.wording import counted, heading, month

# The decisions that each rate counts, as a filter.
_COUNTED: Final[Mapping[str, Mapping[str, str]]] = {
    "success_rate": {"outcome": "succeeded"},
    "approval_rate": {"verdict": "yes"},
    "terminal_coverage": {},
}
_WHOLES: Final[Mapping[str, str]] = {
    "success_rate": "case",
    "approval_rate": "decision",
    "terminal_coverage": "decision",
}
_ADVICE: Final[Mapping[str, str]] = {
    "not_compared": "There is no comparison.",
    "insufficient_outcomes": "Report more outcomes: there are too few to compare the success rate with other scopes.",
    "below_cohort": "The success rate is lower than in three quarters of the other scopes: look for the reason.",
    "within_cohort": "The success rate is normal: it lies in the middle half of the other scopes.",
    "above_cohort": "The success rate is higher than in three quarters of the other scopes.",
}
_PERCENTILES: Final = ("p10", "p25", "p50", "p75", "p90")


def view(
    location: Location,
    body: Mapping[str, Any],
    frame: pl.DataFrame,
    names: Names,
    chart: Figure | None,
    *,
    as_of: datetime,
) -> Page:
    """The page of a policy's benchmarks.

    Args:
        location: Where it is; it names the policy.
        body: The report.
        frame: Its rates, as `BenchmarkReport.frame` has them.
        names: The names to choose from.
        chart: The rates on those of others; None where nothing is compared.
        as_of: When the ledger was read.
    """
    own, across = body["your_metrics"], body["cross_customer"]
    context = {
        "policy_url": links.policy(location, body["policy_id"]),
        "policy": body["policy_id"],
        "finding": beside_others(body),
        "drawn": None if chart is None else replace(chart, finding=beside_others(body)),
        "compared": None if across["percentiles"] is None else _compared(location, body, frame),
        "across": across,
        "reason": across["reason"],
        "month": month(across["from"]),
        "frozen": month(across["month"]),
        "advice": _ADVICE[body["recommendation"]],
        "opt_in": f"gate scopes benchmarks opt-in {shlex.quote(location.scope or '')}",
        "own": _own(own, location, of_month(body)),
        "present": _own(own["present"], location, {}),
        "few": FEW,
        "notes": body["notes"],
        "as_of": as_of,
    }
    filters = (
        offered.policies(names.policies, all_=None),
        offered.versions(names.versions.get(body["policy_id"], ())),
    )
    return Page(location, benchmark(body), render("benchmarks.html", context), filters)


def nothing(location: Location) -> Page:
    """The page of a scope that has decided nothing."""
    title = f"No decisions in scope {cut(location.scope or '')} yet"
    return Page(location, title, render("benchmarks_empty.html", {}))


def of_month(body: Mapping[str, Any]) -> dict[str, str]:
    """The filters of the month whose decisions are compared; none where no month is."""
    across = body["cross_customer"]
    return {} if across["from"] is None else {"since": across["from"][:10], "until": across["to"][:10]}


def chart_link(location: Location, body: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """What the mark of a rate leads to: the decisions that it counts."""
    return links.decisions(location, **of_month(body), **_COUNTED[row["metric"]])


def _compared(location: Location, body: Mapping[str, Any], frame: pl.DataFrame) -> Table:
    shown = [name for name in _PERCENTILES if frame[name].is_not_null().any()]
    across = body["cross_customer"]
    caption = (
        f"Yours: decisions made in {month(across['from'])}, counted as theirs are. Theirs: "
        f"{across['scopes_at_least']:,} other scopes or more, with {across['decisions_at_least']:,} decisions or more, "
        f"rounded to 5%."
    )
    columns = ("Rate", "#Yours", "#Of", *(f"#{heading(name)}" for name in shown), "#Points from median")
    return table(
        "Your rates and those of other scopes",
        caption,
        columns,
        [_rate(location, body, row, shown) for row in frame.iter_rows(named=True)],
    )


def _rate(
    location: Location, body: Mapping[str, Any], row: Mapping[str, Any], shown: Sequence[str]
) -> tuple[Cell | str, ...]:
    own, noun = body["your_metrics"], _WHOLES[row["metric"]]
    whole = own["terminal"] if noun == "case" else own["decisions"]
    return (
        Cell(heading(row["metric"]), chart_link(location, body, row)),
        percent(row["yours"]),
        counted(whole, noun),
        *(percent(row[name]) for name in shown),
        points(row["delta"]),
    )


def _own(counts: Mapping[str, Any], location: Location, period: Mapping[str, str]) -> dict[str, Any]:
    urls = {metric: links.decisions(location, **period, **counted_) for metric, counted_ in _COUNTED.items()}
    return {**counts, "urls": urls, "thin": counts["terminal"] < FEW}
