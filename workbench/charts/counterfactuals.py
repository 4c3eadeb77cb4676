"""What counterfactuals look like: verdicts as they were, and as they would be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

from gate.policy.questions import VERDICTS

_LABELS: Final = alt.Axis(labelAngle=0, labelFontSize=12)


def verdicts(frame: pl.DataFrame, policy_id: str, subtitle: Sequence[str]) -> alt.LayerChart | alt.FacetChart:
    """How many decisions of each verdict would have got which."""
    rows = frame.group_by("verdict", "then_verdict").agg(pl.col("decisions").sum())
    rows = rows.with_columns((pl.col("decisions") > pl.col("decisions").max() / 2).alias("dark"))
    every = alt.Scale(domain=VERDICTS)
    base = alt.Chart(rows).encode(
        x=alt.X("then_verdict:N", title="Verdict as it would be", scale=every, axis=_LABELS),
        y=alt.Y("verdict:N", title="Verdict as it was", scale=every, axis=_LABELS),
    )
    squares = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("decisions:Q", legend=None, scale=alt.Scale(scheme="blues", domainMin=0))
    )
    numbers = base.mark_text(fontSize=15).encode(
        text=alt.Text("decisions:Q", format=","),
        color=alt.condition("datum.dark", alt.value("white"), alt.value("black")),
    )
    title = alt.TitleParams(f"What {policy_id} would have decided", subtitle=subtitle, anchor="start")
    return alt.layer(squares, numbers).properties(title=title, width=330, height=240)
