"""What callers measured, by version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

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
from workbench.charts.rates import most
from workbench.engines.findings import FEW
from workbench.engines.wording import counted, described

_WIDTH: Final = 520
_STEP: Final = 26


def by_version(
    frame: pl.DataFrame, name: str, finding: str, notes: Sequence[str], *, link: Link | None = None
) -> Drawn:
    """The middle half of the values of a metric and their median, one row for each version.

    Args:
        frame: {name, policy_version, decisions, `p25`, median, `p75`, min, max}, of this metric and possibly of others.
        name: The metric.
        finding: The sentence above the chart.
        notes: Sentences about the selected decisions.
        link: The target of the bar of a version; the row has `name` and `policy_version`.
    """
    of = frame.filter((pl.col("name") == name) & pl.col("median").is_not_null()).sort("policy_version")
    shown, left_out = most(of, pl.col("decisions"))
    few = shown["decisions"] < FEW
    told = [f"{middle:,.4g} of {number:,}" for middle, number in shown.select("median", "decisions").iter_rows()]
    shown = shown.with_columns(
        pl.Series("label", labels(shown["policy_version"].to_list()), pl.String),
        pl.Series("told", told, pl.String),
        pl.Series("colour", [colours.FEW if each else colours.FIGURE for each in few], pl.String),
    )
    base = rows(with_links(shown, link, _says)).encode(
        y=alt.Y("label:N", sort=None, axis=names_axis("Policy version")),
        tooltip=tooltip("label", "decisions", "min", "p25", "median", "p75", "max"),
    )
    title = labels([described(name)])[0]
    low = alt.X("p25:Q", title=title, scale=alt.Scale(zero=False, padding=12))
    # Where both ends are one value, a bar has no width, and the tick shows where it is: that is what leads somewhere.
    bars = base.mark_bar(height=14, opacity=0.45).encode(
        x=low, x2=alt.X2("p75:Q"), color=alt.Color("colour:N", scale=None)
    )
    ticks = base.mark_tick(thickness=5, size=20, opacity=1).encode(
        x=alt.X("median:Q", title=title), color=alt.Color("colour:N", scale=None)
    )
    numbers = beside_plot(base).encode(text=alt.Text("told:N"))
    how = []
    if shown.height:
        how.append(
            "Bars: the middle half of the values, with a tick at the median. Numbers: the median, and the number "
            "of values."
        )
    if few.any():
        how.append(f"Gray: fewer than {FEW} values.")
    if left_out:
        how.append(f"{left_out:,} more versions with fewer values are left out.")
    layers = [bars, linked(ticks, link), numbers]
    return titled(layers, finding, [*notes, " ".join(how)], width=_WIDTH, height=alt.Step(_STEP), outside=160)


def _says(row: Mapping[str, Any]) -> str:
    values = counted(row["decisions"], "value")
    middle, low, high = row["median"], row["p25"], row["p75"]
    return f"Version {row['label']}: median {middle:,.4g} of {values}, the middle half from {low:,.4g} to {high:,.4g}"
