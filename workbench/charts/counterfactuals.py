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


def verdicts(frame: pl.DataFrame, finding: str, notes: Sequence[str], *, was: str = "Verdict as it was") -> Drawn:
    """How many decisions of each verdict would have got which.

    Args:
        frame: {verdict, then_verdict, decisions}.
        finding: The sentence above the chart.
        notes: How to read it.
        was: What the verdicts are that others would take the place of.
    """
    counted = frame.group_by("verdict", "then_verdict").agg(pl.col("decisions").sum())
    every = alt.Scale(domain=VERDICTS)
    base = rows(counted).encode(
        x=alt.X("then_verdict:N", title="Verdict as it would be", scale=every, axis=_LABELS),
        y=alt.Y("verdict:N", title=was, scale=every, axis=_LABELS),
    )
    # Pale enough for the numbers, on white and on dark.
    shades = alt.Scale(range=[0.1, 0.5], domainMin=0)
    squares = base.mark_rect(stroke="white", strokeWidth=2, color=colours.FIGURE).encode(
        fillOpacity=alt.FillOpacity("decisions:Q", legend=None, scale=shades)
    )
    numbers = base.mark_text(fontSize=15, color="black").encode(text=alt.Text("decisions:Q", format=","))
    return titled([squares, numbers], finding, notes, width=330, height=240, outside=150)
