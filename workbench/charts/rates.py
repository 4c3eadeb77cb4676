"""Success rates with their intervals, a row each."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import altair as alt
import polars as pl

from workbench.charts import colours
from workbench.charts.drawing import (
    Drawn,
    Link,
    beside_plot,
    labels,
    linked,
    names_axis,
    rows,
    titled,
    tooltip,
    with_links,
)
from workbench.engines.findings import FEW

SUCCESS: Final = "Success rate (share of cases that succeeded)"

_READ: Final = (
    "Lines: 95% Wilson intervals. Numbers: the success rate, and its number of cases (decisions with a final outcome)."
)
_ROWS: Final = 40
_STEP: Final = 24
_WIDTH: Final = 520
_TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")


def most(frame: pl.DataFrame, count: pl.Expr) -> tuple[pl.DataFrame, int]:
    """The rows of a chart that can still be read, those that count most, in their order; and how many are left out."""
    kept = frame.with_row_index("_at").sort(count, "_at", descending=[True, False]).head(_ROWS).sort("_at").drop("_at")
    return kept, frame.height - kept.height


def rates(
    frame: pl.DataFrame,
    name: str,
    *,
    named: str,
    finding: str,
    notes: Sequence[str] = (),
    meanings: Mapping[str, str] = MappingProxyType({}),
    marked: Collection[str] = (),
    least: float = 1.0,
    more: Sequence[alt.Chart] = (),
    link: Link | None = None,
) -> Drawn:
    """Success rates, one row each, with their 95% Wilson intervals and their numbers.

    Args:
        frame: {<name>, success_rate, low, high, and a column for each outcome status}; rows without a rate are left
            out.
        name: The column with the names of the rows.
        named: The title of the axis of names.
        finding: The sentence above the chart.
        notes: Sentences about the selected decisions and other content of the chart.
        meanings: The colors of rows whose names have a meaning; others have the color of own numbers.
        marked: Names of rows that do worse than the others together.
        least: The value that the axis reaches down to at least, in addition to the intervals.
        more: Further layers over the same axis.
        link: The target of the point of a row.
    """
    terminal = pl.sum_horizontal(*_TERMINAL)
    shown, left_out = most(frame.filter(pl.col("success_rate").is_not_null()), terminal)
    cases = shown.select(terminal.alias("cases"))["cases"]
    told = [
        f"{rate:.1%} of {count:,}{', below the others' if named_ in marked else ''}"
        for named_, rate, count in zip(shown[name], shown["success_rate"], cases, strict=True)
    ]
    colour = [
        colours.FEW if count < FEW else meanings.get(named_, colours.FIGURE)
        for named_, count in zip(shown[name], cases, strict=True)
    ]
    shown = shown.with_columns(
        pl.Series("label", labels(shown[name].to_list()), pl.String),
        pl.Series("told", told, pl.String),
        pl.Series("colour", colour, pl.String),
        cases.alias("terminal"),
    )
    shown = with_links(shown, link, lambda row: f"{row['label']}: {row['told']}")
    # Dots need no zero, and intervals need the room.
    start = min(math.floor(10 * min([least, *shown["low"]])) / 10, 0.9)
    scale = alt.Scale(domain=[start, 1])
    # Every tenth, or every twentieth where there are few.
    parts = 20 if start >= 0.5 else 10
    axis = alt.Axis(format="%", values=[part / parts for part in range(round(start * parts), parts + 1)])
    base = rows(shown).encode(
        y=alt.Y("label:N", sort=None, axis=names_axis(named)),
        color=alt.Color("colour:N", scale=None),
        tooltip=tooltip("label", "success_rate", "low", "high", "terminal", *_TERMINAL),
    )
    intervals = base.mark_rule(strokeWidth=2.5).encode(
        x=alt.X("low:Q", title=SUCCESS, axis=axis, scale=scale), x2=alt.X2("high:Q")
    )
    points = base.mark_point(filled=True, size=80, opacity=1).encode(x=alt.X("success_rate:Q"))
    numbers = beside_plot(base).encode(text=alt.Text("told:N"), color=alt.value("black"))
    how = [] if shown.is_empty() else [_READ]
    if (cases < FEW).any():
        how.append(f"Gray: fewer than {FEW} cases.")
    if left_out:
        how.append(f"{left_out:,} more with fewer cases are left out.")
    layers = [intervals, linked(points, link), numbers, *(more if shown.height else ())]
    return titled(layers, finding, [*notes, " ".join(how)], width=_WIDTH, height=alt.Step(_STEP), outside=260)
