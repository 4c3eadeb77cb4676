"""What benchmarks look like: a policy's rates on the percentiles of other scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

import altair as alt
import polars as pl

from workbench.charts.rates import COLOURS, PERCENT, SHARE, told_of

_PERCENTILES: Final = ("p10", "p25", "p50", "p75", "p90")
_NAMED: Final = {
    "success_rate": "success rate",
    "approval_rate": "approval rate",
    "terminal_coverage": "terminal coverage",
}
_WIDTH: Final = 460
_STEP: Final = 44
# As many as the chart is wide.
_CHARACTERS: Final = 88


def on_percentiles(
    frame: pl.DataFrame, policy_id: str, across: Mapping[str, Any], about: Sequence[str]
) -> alt.LayerChart | alt.FacetChart:
    """Your rates as dots on the others' percentiles; where nothing is told of others, a sentence says why."""
    told = list(about)
    if across["percentiles"] is None:
        told += wrap(str(across["explanation"]), _CHARACTERS)
    else:
        outer = ", thin lines from p10 to p90" if frame["p10"].is_not_null().all() else ""
        told.append(f"Diamonds are yours. Of {across['scopes_at_least']:,} other scopes or more, rounded to 5 %:")
        told.append(f"bars from p25 to p75, ticks at p50{outer}.")
    rows = frame.with_columns(pl.col("metric").replace_strict(_NAMED))
    base = alt.Chart(rows).encode(
        y=alt.Y("metric:N", title=None, sort=list(_NAMED.values()), axis=alt.Axis(labelLimit=200)),
        tooltip=told_of("metric", "yours", *_PERCENTILES, "delta"),
    )
    low = alt.X("p10:Q", title="Share", axis=PERCENT, scale=SHARE)
    whiskers = base.mark_rule(strokeWidth=1.5, color=COLOURS[0]).encode(x=low, x2=alt.X2("p90:Q"))
    # Where both ends are one value, a bar has no width, and the tick shows where it is.
    bars = base.mark_bar(height=16, opacity=0.35, color=COLOURS[0]).encode(
        x=alt.X("p25:Q", scale=SHARE), x2=alt.X2("p75:Q")
    )
    ticks = base.mark_tick(thickness=3, size=22, color=COLOURS[0]).encode(x=alt.X("p50:Q"))
    dots = base.mark_point(filled=True, size=110, opacity=1, color=COLOURS[1], shape="diamond").encode(
        x=alt.X("yours:Q")
    )
    title = alt.TitleParams(f"{policy_id} beside other scopes", subtitle=told, anchor="start")
    return alt.layer(whiskers, bars, ticks, dots).properties(title=title, width=_WIDTH, height=alt.Step(_STEP))
