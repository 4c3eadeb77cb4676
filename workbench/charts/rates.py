"""What charts of reports have in common: rates with their intervals, and colours that the colour-blind tell apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")
"""Okabe and Ito's, those that stand out from white first."""

SHAPES: Final = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)
"""For each colour one, so that nothing is told by colour alone."""

PERCENT: Final = alt.Axis(format="%")
SHARE: Final = alt.Scale(domain=[0, 1])
SUCCESS: Final = "Success rate (share of terminal outcomes)"

NOTHING: Final = "There are no decisions."
"""What a chart without rows says."""

_ROWS: Final = 40
_STEP: Final = 24
_WIDTH: Final = 520
_TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")


def told_of(*columns: str) -> list[alt.Tooltip]:
    """What a chart tells of the row that a pointer is over."""
    return [alt.Tooltip(column) for column in columns]


def most(rows: pl.DataFrame, count: pl.Expr) -> tuple[pl.DataFrame, int]:
    """The rows of a chart that can still be read, those that count most, in their order; and how many are left out."""
    kept = rows.with_row_index("_at").sort(count, "_at", descending=[True, False]).head(_ROWS).sort("_at").drop("_at")
    return kept, rows.height - kept.height


def rates(
    rows: pl.DataFrame,
    name: str,
    *,
    named: str,
    title: str,
    least: float = 1.0,
    about: Sequence[str] = (),
    without: str = NOTHING,
) -> alt.LayerChart | alt.FacetChart:
    """Success rates, a row each, with their 95 % Wilson intervals, and the numbers beside them.

    Args:
        rows: {<name>, success_rate, low, high, and a column for each outcome status}; rows without a rate are left out.
        name: The column with the rows' names.
        named: What the names are, for the axis.
        title: The chart's title.
        least: What the axis reaches at least down to, besides the intervals.
        about: Sentences for the subtitle: what was looked at, and what else the chart shows.
        without: What the subtitle says where there are no rows at all.
    """
    terminal = pl.sum_horizontal(*_TERMINAL)
    shown, left_out = most(rows.filter(pl.col("success_rate").is_not_null()), terminal)
    told = [
        f"{rate:.1%} of {count:,}"
        for rate, count in shown.select("success_rate", terminal.alias("terminal")).iter_rows()
    ]
    shown = shown.with_columns(pl.Series("told", told, pl.String))
    # Dots need no zero, and intervals need the room.
    start = math.floor(10 * min([least, *shown["low"]])) / 10
    start = min(start, 0.9)
    scale = alt.Scale(domain=[start, 1])
    # Every tenth, or every twentieth where there are few.
    parts = 20 if start >= 0.5 else 10
    axis = alt.Axis(format="%", values=[part / parts for part in range(round(start * parts), parts + 1)])
    base = alt.Chart(shown).encode(
        y=alt.Y(f"{name}:N", title=named, sort=None, axis=alt.Axis(grid=True, labelLimit=320)),
        tooltip=told_of(name, "success_rate", "low", "high", *_TERMINAL),
    )
    intervals = base.mark_rule(strokeWidth=2.5, color=COLOURS[0]).encode(
        x=alt.X("low:Q", title=SUCCESS, axis=axis, scale=scale),
        x2=alt.X2("high:Q"),
    )
    points = base.mark_point(filled=True, size=80, opacity=1, color=COLOURS[0]).encode(x=alt.X("success_rate:Q"))
    beside = alt.XValue(_WIDTH + 8)  # type: ignore[no-untyped-call]
    numbers = base.mark_text(align="left", fontSize=11).encode(x=beside, text=alt.Text("told:N"))
    how = "Lines are 95 % Wilson intervals; on the right the rate, and of how many terminal outcomes."
    subtitle = [*about, how if shown.height else empty(rows, without)]
    if left_out:
        subtitle.append(f"{left_out:,} more with fewer terminal outcomes are left out.")
    described = alt.TitleParams(title, subtitle=subtitle, anchor="start")
    return alt.layer(intervals, points, numbers).properties(title=described, width=_WIDTH, height=alt.Step(_STEP))


def empty(rows: pl.DataFrame, without: str = NOTHING) -> str:
    """Why a chart of rates shows nothing: there are rows without a rate, or none at all."""
    return "There are no terminal outcomes." if rows.height else without
