"""The success rate of each version, and the score of confidence."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from workbench.charts import colours
from workbench.charts.drawing import Drawn, rows
from workbench.charts.rates import rates


def by_version(frame: pl.DataFrame, finding: str, score: float, notes: Sequence[str]) -> Drawn:
    """The success rate of each version with its interval, and the score as a dashed line."""
    scored = rows(pl.DataFrame({"score": [score], "told": [f"score {score:.1%}"]})).encode(x=alt.X("score:Q"))
    line = scored.mark_rule(strokeDash=[4, 4], strokeWidth=1.5, color=colours.REFERENCE)
    above = alt.YValue(-5)  # type: ignore[no-untyped-call]
    told = scored.mark_text(baseline="bottom", color=colours.REFERENCE).encode(y=above, text=alt.Text("told:N"))
    score_is = f"Dashed: the score, {score:.1%}, the low end of the interval of all versions together."
    return rates(
        frame,
        "policy_version",
        named="Policy version",
        finding=finding,
        notes=[*notes, score_is] if frame.height else notes,
        least=score,
        more=(line, told),
    )
