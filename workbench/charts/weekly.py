"""Decisions week by week: their verdicts, and how long their first outcomes take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import altair as alt
import polars as pl

from gate.policy.questions import VERDICTS
from workbench.charts import colours
from workbench.charts.drawing import (
    COUNT,
    Drawn,
    Link,
    legend,
    linked,
    months,
    rows,
    runs,
    titled,
    tooltip,
    with_links,
)
from workbench.engines.findings import FEW
from workbench.engines.wording import counted, day, span, whole_percent

_WIDTH: Final = 680
_HEIGHT: Final = 260
_WEEK: Final = "Week of the decision (from Monday, UTC)"
# A bar ends a little before the next begins.
_BAR: Final = timedelta(days=6)
_LONG: Final = 48
_HALF: Final = "half of them"
_MOST: Final = "90% of them"


def verdicts(frame: pl.DataFrame, finding: str, notes: Sequence[str], *, link: Link | None = None) -> Drawn:
    """How many decisions of each week got which verdict.

    Args:
        frame: {week, policy_version, verdict, decisions}.
        finding: The sentence above the chart.
        notes: What was looked at.
        link: What the bar of a week and a verdict leads to; the row has `week` and `verdict`.
    """
    added = frame.group_by("week", "verdict").agg(pl.col("decisions").sum()).filter(pl.col("decisions") > 0)
    order = {verdict: at for at, verdict in enumerate(VERDICTS)}
    shown = added.with_columns(
        pl.col("week").cast(pl.Date),
        (pl.col("week").cast(pl.Date) + _BAR).alias("until"),
        pl.col("verdict").replace_strict(order, return_dtype=pl.Int64).alias("order"),
        pl.col("decisions").sum().over("week").alias("whole"),
    ).sort("week", "order")
    # Vega stacks no bars that have two ends in time.
    shown = shown.with_columns(pl.col("decisions").cum_sum().over("week").alias("above"))
    shown = shown.with_columns((pl.col("above") - pl.col("decisions")).alias("below"))
    scale = alt.Scale(domain=list(VERDICTS), range=[colours.OF[verdict] for verdict in VERDICTS])
    bars = (
        rows(with_links(shown, link, _says_verdict))
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("week:T", title=_WEEK, axis=months(shown["week"])),
            x2=alt.X2("until:T"),
            y=alt.Y("below:Q", title="Decisions", axis=COUNT),
            y2=alt.Y2("above:Q"),
            color=alt.Color("verdict:N", legend=legend("Verdict"), scale=scale, sort=list(VERDICTS)),
            tooltip=tooltip("week", "verdict", "decisions", "whole"),
        )
    )
    return titled([linked(bars, link)], finding, notes, width=_WIDTH, height=_HEIGHT)


def latency(frame: pl.DataFrame, finding: str, notes: Sequence[str], *, link: Link | None = None) -> Drawn:
    """The time within which half and 90% of the first outcomes came, by the week of the decision.

    Args:
        frame: {week, decisions, with_outcome, median_hours, `p90_hours`}; weeks without an outcome are left out.
        finding: The sentence above the chart.
        notes: Sentences about the selected decisions.
        link: The target of the points of a week; the row has `week`.
    """
    days = (frame["p90_hours"].cast(pl.Float64).max() or 0) > _LONG  # type: ignore[operator]
    known = frame.filter(pl.col("median_hours").is_not_null())
    each = [
        known.with_columns(pl.lit(of).alias("of"), pl.col(column).cast(pl.Float64).alias("hours"))
        for of, column in ((_HALF, "median_hours"), (_MOST, "p90_hours"))
    ]
    shown = runs(pl.concat(each).with_columns(pl.col("week").cast(pl.Date)), "of").with_columns(
        (pl.col("hours") / (24 if days else 1)).alias("length"), (pl.col("with_outcome") < FEW).alias("few")
    )
    of_what, lines = legend("First outcomes"), [_HALF, _MOST]
    colour = alt.Color("of:N", legend=of_what, scale=alt.Scale(domain=lines, range=[colours.FIGURE, colours.REFERENCE]))
    shape = alt.Shape("of:N", legend=of_what, scale=alt.Scale(domain=lines, range=list(colours.SHAPES[:2])))
    base = rows(with_links(shown, link, _says_latency)).encode(
        x=alt.X("week:T", title=_WEEK, axis=months(shown["week"])),
        y=alt.Y("length:Q", title=f"Time from the decision to its first outcome ({'days' if days else 'hours'})"),
        color=colour,
        detail=alt.Detail("run:N"),
    )
    points = base.mark_point(filled=True, size=50, opacity=1).encode(
        shape=shape,
        color=alt.condition("datum.few", alt.value(colours.FEW), colour),
        tooltip=tooltip("week", "with_outcome", "decisions", "median_hours", "p90_hours"),
    )
    how = ["Outcomes that have not arrived yet are not counted: recent weeks look faster than they are."]
    if shown["few"].any():
        how.append(f"Gray: fewer than {FEW} outcomes.")
    layers = [base.mark_line(strokeWidth=2), linked(points, link)]
    told = " ".join(how) if shown.height else ""
    return titled(layers, finding, [*notes, told], width=_WIDTH, height=_HEIGHT)


def _says_verdict(row: Mapping[str, Any]) -> str:
    share = whole_percent(row["decisions"] / row["whole"])
    return f"{row['verdict'].capitalize()}, week of {day(row['week'])}: {share} of {counted(row['whole'], 'decision')}"


def _says_latency(row: Mapping[str, Any]) -> str:
    outcomes = counted(row["with_outcome"], "first outcome")
    share = row["of"].removesuffix(" of them").capitalize()
    return f"Week of {day(row['week'])}: {share} of {outcomes} within {span(row['hours'])}"
