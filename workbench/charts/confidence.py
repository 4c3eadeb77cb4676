"""What confidence looks like: the success rate of each version beside the score."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from workbench.charts.rates import COLOURS, rates


def by_version(
    frame: pl.DataFrame, policy_id: str, score: float, about: Sequence[str]
) -> alt.LayerChart | alt.FacetChart:
    """The success rate of each version with its interval, and the score as a dashed line."""
    told = [f"The dashed line is the score, {score:.1%}: the low end of the interval of all together."]
    chart = rates(
        frame,
        "policy_version",
        named="Policy version",
        title=f"What outcomes say of {policy_id}, by policy version",
        least=score,
        about=[*about, *(told if frame.height else [])],
        without="There are no decisions with an outcome.",
    )
    scored = alt.Chart(pl.DataFrame({"score": [score], "told": [f"score {score:.1%}"]}))
    line = scored.mark_rule(strokeDash=[4, 4], strokeWidth=1.5, color=COLOURS[1]).encode(x=alt.X("score:Q"))
    top = alt.YValue(0)  # type: ignore[no-untyped-call]
    named = scored.mark_text(align="right", dx=-5, dy=10, color=COLOURS[1]).encode(
        x=alt.X("score:Q"), y=top, text=alt.Text("told:N")
    )
    return alt.layer(chart, line, named)
