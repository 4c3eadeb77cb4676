"""A policy's rates on the percentiles of other scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import polars as pl

from workbench.charts import colours
from workbench.charts.drawing import PERCENT, SHARE, Drawn, Link, linked, names_axis, rows, titled, tooltip, with_links
from workbench.engines.findings import FEW
from workbench.engines.rendering import percent
from workbench.engines.wording import heading

_PERCENTILES: Final = ("p10", "p25", "p50", "p75", "p90")
# The number of decisions that each rate is a share of.
_WHOLES: Final = {"success_rate": "terminal", "approval_rate": "decisions", "terminal_coverage": "decisions"}
_WIDTH: Final = 460
_STEP: Final = 44


def on_percentiles(
    frame: pl.DataFrame, body: Mapping[str, Any], finding: str, notes: Sequence[str], *, link: Link | None = None
) -> Drawn:
    """Your rates as diamonds on the others' percentiles; without a comparison, a sentence says why."""
    own, across = body["your_metrics"], body["cross_customer"]
    few = [own[_WHOLES[metric]] < FEW for metric in frame["metric"]]
    how = []
    if across["percentiles"] is None:
        how.append(str(across["explanation"]))
    else:
        outer = ", thin lines from the 10th to the 90th" if frame["p10"].is_not_null().all() else ""
        how.append(
            "Diamonds: your values. Gray bars: the 25th to 75th percentile of at least "
            f"{across['scopes_at_least']:,} other scopes, ticks at the median{outer}. Their values are rounded to "
            "5%."
        )
    if any(few) and frame["yours"].is_not_null().any():
        how.append(f"Pale: fewer than {FEW} cases.")
    shown = with_links(frame, link, lambda row: f"{heading(row['metric'])}: {percent(row['yours'])}").with_columns(
        pl.col("metric").map_elements(heading, return_dtype=pl.String),
        pl.Series("colour", [colours.FEW if each else colours.FIGURE for each in few], pl.String),
    )
    base = rows(shown).encode(
        y=alt.Y("metric:N", sort=[heading(metric) for metric in _WHOLES], axis=names_axis(None)),
        tooltip=tooltip("metric", "yours", *_PERCENTILES, "delta"),
    )
    low = alt.X("p10:Q", title="Share of decisions (success rate: of cases)", axis=PERCENT, scale=SHARE)
    whiskers = base.mark_rule(strokeWidth=1.5, color=colours.REFERENCE).encode(x=low, x2=alt.X2("p90:Q"))
    # Where both ends are one value, a bar has no width, and the tick shows where it is.
    bars = base.mark_bar(height=16, opacity=0.3, color=colours.REFERENCE).encode(
        x=alt.X("p25:Q", scale=SHARE), x2=alt.X2("p75:Q")
    )
    ticks = base.mark_tick(thickness=3, size=22, color=colours.REFERENCE).encode(x=alt.X("p50:Q"))
    dots = (
        linked(base, link)
        .mark_point(filled=True, size=110, opacity=1, shape="diamond")
        .encode(x=alt.X("yours:Q"), color=alt.Color("colour:N", scale=None))
    )
    layers = [whiskers, bars, ticks, linked(dots, link)]
    return titled(layers, finding, [*notes, *how], width=_WIDTH, height=alt.Step(_STEP))
