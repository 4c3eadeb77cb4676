"""What effectiveness looks like: a policy's success rate, week by week."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

from workbench.charts.rates import COLOURS, PERCENT, SHAPES, SHARE, SUCCESS, empty, told_of

_PLOTTED_VERSIONS: Final = len(COLOURS)
# With less of a week covered, its rate is that of the decisions whose outcomes came first.
_COVERED: Final = 0.5
_FEW_DAYS: Final = 60
_TOLD: Final = ("decisions", "succeeded", "partial", "failed", "reverted", "pending", "review", "unreported")


def weekly(frame: pl.DataFrame, policy_id: str, about: Sequence[str]) -> alt.LayerChart | alt.FacetChart:
    """The success rate of each week, a line for each of the versions with the most decisions."""
    counted = frame.group_by("policy_version").agg(pl.col("decisions").sum())
    most = counted.sort("decisions", "policy_version", descending=[True, False]).head(_PLOTTED_VERSIONS)
    versions = most["policy_version"].sort().to_list()
    rows = _runs(frame.filter(pl.col("policy_version").is_in(versions) & pl.col("success_rate").is_not_null()))
    rows = rows.with_columns((pl.col("terminal_coverage") < _COVERED).alias("open"))
    named = alt.Legend(title="Policy version", symbolSize=90, symbolOpacity=1)
    base = alt.Chart(rows).encode(
        x=alt.X("week:T", title="Week of the decision (its Monday, UTC)", axis=_months(rows)),
        color=alt.Color("policy_version:N", legend=named, scale=alt.Scale(domain=versions, range=COLOURS)),
        detail=alt.Detail("run:N"),
    )
    low = alt.Y("low:Q", title=SUCCESS, axis=PERCENT, scale=SHARE)
    band = base.mark_area(opacity=0.22).encode(y=low, y2=alt.Y2("high:Q"))
    # A band of one week has no width.
    alone = base.transform_filter("datum.alone").mark_rule(strokeWidth=2).encode(y=low, y2=alt.Y2("high:Q"))
    line = base.mark_line(strokeWidth=2).encode(y=alt.Y("success_rate:Q"))
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        y=alt.Y("success_rate:Q"),
        shape=alt.Shape("policy_version:N", legend=named, scale=alt.Scale(domain=versions, range=SHAPES)),
        tooltip=told_of("week", "policy_version", "success_rate", "low", "high", "terminal_coverage", *_TOLD),
    )
    # White within, over the filled one: the legend stays that of filled points.
    hollow = (
        alt.Chart(rows)
        .transform_filter("datum.open")
        .mark_point(filled=True, size=18, opacity=1, color="white", tooltip=None)
        .encode(
            x=alt.X("week:T"),
            y=alt.Y("success_rate:Q"),
            shape=alt.Shape("policy_version:N", legend=named, scale=alt.Scale(domain=versions, range=SHAPES)),
        )
    )
    how = "By policy version; bands are 95 % Wilson intervals, wide where few outcomes are terminal."
    subtitle = [*about, how if rows.height else empty(frame)]
    if rows["open"].any():
        subtitle.append("Hollow points: weeks of which fewer than half of the decisions have a terminal outcome.")
    if left_out := counted.height - len(versions):
        subtitle.append(f"{left_out:,} more with fewer decisions are left out.")
    title = alt.TitleParams(f"What came of {policy_id}, week by week", subtitle=subtitle, anchor="start")
    return alt.layer(band, alone, line, points, hollow).properties(title=title, width=680, height=320)


def _months(rows: pl.DataFrame) -> alt.Axis:
    """Labels with month and year; with the day too where there are too few weeks for months to tell them apart."""
    weeks = rows["week"].unique().sort()
    if weeks.len() and (weeks[-1] - weeks[0]).days < _FEW_DAYS:
        return alt.Axis(format="%d %b %Y", tickCount=alt.TimeIntervalStep(interval="week", step=1), labelOverlap=True)
    return alt.Axis(format="%b %Y", tickCount=alt.TimeIntervalStep(interval="month", step=1), labelOverlap=True)


def _runs(rows: pl.DataFrame) -> pl.DataFrame:
    """With `run`, which changes where a version pauses for a week or more, so that no line leads over weeks in which it
    decided nothing; and whether a run is `alone`, a single week.
    """
    paused = (pl.col("week").diff() != pl.duration(weeks=1)).fill_null(value=True).over("policy_version")
    numbered = rows.sort("policy_version", "week").with_columns(paused.cum_sum().alias("run"))
    return numbered.with_columns((pl.len().over("run") == 1).alias("alone"))
