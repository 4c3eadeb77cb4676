"""A policy's success rate, week by week."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

import altair as alt
import polars as pl

from gate.policy.confidence import wilson_interval
from workbench.charts import colours
from workbench.charts.drawing import (
    PERCENT,
    SHARE,
    Drawn,
    Link,
    labels,
    legend,
    linked,
    months,
    rows,
    runs,
    titled,
    tooltip,
    with_links,
)
from workbench.charts.rates import SUCCESS
from workbench.engines.findings import FEW
from workbench.engines.wording import counted, day, whole_percent

_PLOTTED_VERSIONS: Final = len(colours.NAMES)
# An outcome that is older than this will hardly come any more.
_RECENT: Final = timedelta(weeks=8)
_STATUSES: Final = ("succeeded", "partial", "failed", "reverted", "pending", "review", "unreported")
_TERMINAL: Final = _STATUSES[:4]
_MOST_ROUTES: Final = 12
# The names of so many routes are one below the other, so that those of neighbours do not overlap.
_STEPS: Final = 4
_STEP_HEIGHT: Final = 13


class Route(NamedTuple):
    """The activation of a version.

    Attributes:
        at: The moment, UTC.
        version: The version.
    """

    at: datetime
    version: str


def weekly(
    frame: pl.DataFrame,
    finding: str,
    notes: Sequence[str],
    *,
    link: Link | None = None,
    routes: Sequence[Route] = (),
) -> Drawn:
    """The success rate of each week, with a line for each of the versions with the most decisions.

    Args:
        frame: The weeks of an effectiveness report.
        finding: The sentence above the chart.
        notes: Sentences about the selected decisions.
        link: The target of the point of a week and a version; the row has `week` and `policy_version`.
        routes: The activations of versions, in order. The latest are drawn as dashed lines.
    """
    decided = frame.group_by("policy_version").agg(pl.col("decisions").sum())
    most = decided.sort("decisions", "policy_version", descending=[True, False]).head(_PLOTTED_VERSIONS)
    versions = most["policy_version"].sort().to_list()
    shown_names, named = labels(versions), legend("Policy version")
    usual = _coverage(frame)
    shown = runs(
        frame.filter(pl.col("policy_version").is_in(versions) & pl.col("success_rate").is_not_null()), "policy_version"
    )
    shown = shown.with_columns(
        pl.col("policy_version").replace_strict(versions, shown_names, return_dtype=pl.String).alias("label"),
        (_pending(usual) & (pl.col("week") > pl.lit(frame["week"].max(), pl.Date) - _RECENT)).alias("open"),
        (pl.sum_horizontal(*_TERMINAL) < FEW).alias("few"),
        pl.sum_horizontal(*_TERMINAL).alias("terminal"),
    )
    shown = with_links(shown, link, _says)
    colour = alt.Color("label:N", legend=named, scale=alt.Scale(domain=shown_names, range=list(colours.NAMES)))
    shape = alt.Shape("label:N", legend=named, scale=alt.Scale(domain=shown_names, range=list(colours.SHAPES)))
    base = rows(shown).encode(
        x=alt.X("week:T", title="Week of the decision (from Monday, UTC)", axis=months(shown["week"])),
        color=colour,
        detail=alt.Detail("run:N"),
    )
    low = alt.Y("low:Q", title=SUCCESS, axis=PERCENT, scale=SHARE)
    band = base.mark_area(opacity=0.18).encode(y=low, y2=alt.Y2("high:Q"))
    # A band of one week has no width.
    alone = base.transform_filter("datum.alone").mark_rule(strokeWidth=2).encode(y=low, y2=alt.Y2("high:Q"))
    line = base.mark_line(strokeWidth=2).encode(y=alt.Y("success_rate:Q"))
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        y=alt.Y("success_rate:Q"),
        shape=shape,
        color=alt.condition("datum.few", alt.value(colours.FEW), colour),
        tooltip=tooltip("week", "label", "success_rate", "low", "high", "terminal_coverage", "decisions", *_STATUSES),
    )
    # White within, over the filled one: the legend stays that of filled points.
    hollow = (
        rows(shown)
        .transform_filter("datum.open")
        .mark_point(filled=True, size=18, opacity=1, color="white", tooltip=None)
        .encode(x=alt.X("week:T"), y=alt.Y("success_rate:Q"), shape=shape)
    )
    how = [] if shown.is_empty() else ["Bands: 95% Wilson intervals."]
    if shown["open"].any():
        how.append(
            f"Hollow: recent weeks that still lack many outcomes. Usually, {whole_percent(usual)} of decisions have "
            "a final one."
        )
    if shown["few"].any():
        how.append(f"Gray: fewer than {FEW} cases.")
    if left_out := decided.height - len(versions):
        how.append(f"{left_out:,} more versions with fewer decisions are left out.")
    if routes:
        how.append("Dashed: a version became active.")
    if len(routes) > _MOST_ROUTES:
        how.append(f"{len(routes) - _MOST_ROUTES:,} earlier ones are left out.")
    layers = [*_in_force(routes[-_MOST_ROUTES:], shown["week"]), band, line, linked(points, link)]
    layers += [alone] if shown["alone"].any() else []
    layers += [hollow] if shown["open"].any() else []
    return titled(layers, finding, [*notes, " ".join(how)], width=680, height=320, outside=60)


def _in_force(routes: Sequence[Route], weeks: pl.Series) -> Iterator[alt.Chart]:
    """A line for each route, with its version next to it, on the side that has more room."""
    if not routes:
        return
    ends = [*weeks.cast(pl.Date).drop_nulls().sort(), *(route.at.date() for route in routes)]
    middle = min(ends) + (max(ends) - min(ends)) / 2
    shown = pl.DataFrame(
        {
            "in_force_since": [route.at for route in routes],
            "policy_version": [route.version for route in routes],
            "step": [at % _STEPS for at in range(len(routes))],
            "late": [route.at.date() > middle for route in routes],
        }
    )
    base = rows(shown).encode(x=alt.X("in_force_since:T"))
    line = base.mark_rule(strokeDash=[4, 4], strokeWidth=1.5, color=colours.REFERENCE)
    yield line.encode(tooltip=tooltip("in_force_since", "policy_version"))
    for step, late in sorted({(row["step"], row["late"]) for row in shown.iter_rows(named=True)}):
        y = alt.YValue(4 + step * _STEP_HEIGHT)  # type: ignore[no-untyped-call]
        here = base.transform_filter(f"datum.step == {step} && datum.late == {str(late).lower()}")
        align: Literal["left", "right"] = "right" if late else "left"
        texts = here.mark_text(
            align=align, dx=-4 if late else 4, baseline="top", fontSize=11, limit=140, color=colours.REFERENCE
        )
        yield texts.encode(y=y, text=alt.Text("policy_version:N"))


def _says(row: Mapping[str, Any]) -> str:
    """What a point shows."""
    cases = counted(row["terminal"], "case")
    return f"Version {row['label']}, week of {day(row['week'])}: {whole_percent(row['success_rate'])} of {cases}"


def _pending(usual: float) -> pl.Expr:
    """Whether the interval of a week's coverage ends below what is usual: its rate is that of the outcomes that came
    first.
    """
    counts = pl.struct(pl.sum_horizontal(*_TERMINAL).alias("terminal"), "decisions")
    high = counts.map_elements(lambda of: wilson_interval(of["terminal"], of["decisions"])[1], return_dtype=pl.Float64)
    return high < usual


def _coverage(frame: pl.DataFrame) -> float:
    """The share of all decisions with a terminal outcome."""
    decisions = frame["decisions"].sum()
    return float(frame.select(pl.sum_horizontal(*_TERMINAL).sum()).item() / decisions) if decisions else 0.0
