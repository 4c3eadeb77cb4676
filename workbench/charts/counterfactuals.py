"""Verdicts as they were, and as they would be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

from gate.policy.questions import VERDICTS
from workbench.charts import colours
from workbench.charts.drawing import Drawn, rows, titled

_LABELS: Final = alt.Axis(labelAngle=0, labelFontSize=12)


def verdicts(frame: pl.DataFrame, finding: str, notes: Sequence[str]) -> Drawn:
    """How many decisions of each verdict would have got which."""
    counted = frame.group_by("verdict", "then_verdict").agg(pl.col("decisions").sum())
    counted = counted.with_columns((pl.col("decisions") > pl.col("decisions").max() / 2).alias("dark"))
    every = alt.Scale(domain=VERDICTS)
    base = rows(counted).encode(
        x=alt.X("then_verdict:N", title="Verdict as it would be", scale=every, axis=_LABELS),
        y=alt.Y("verdict:N", title="Verdict as it was", scale=every, axis=_LABELS),
    )
    shades = alt.Scale(range=["#e3eef6", colours.FIGURE], domainMin=0)
    squares = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("decisions:Q", legend=None, scale=shades)
    )
    numbers = base.mark_text(fontSize=15).encode(
        text=alt.Text("decisions:Q", format=","),
        color=alt.condition("datum.dark", alt.value("white"), alt.value("black")),
    )
    return titled([squares, numbers], finding, notes, width=330, height=240, outside=150)
