"""What a migration changes, week by week."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

import altair as alt
import polars as pl

from workbench.charts import colours
from workbench.charts.drawing import COUNT, Drawn, legend, months, rows, titled, tooltip

_WIDTH: Final = 680
_HEIGHT: Final = 200
# A bar ends a little before the next begins.
_BAR: Final = timedelta(days=6)
_APPROVED: Final = "newly approved"
_BLOCKED: Final = "newly blocked or held"
_OTHER: Final = "other changes"


def weekly_changes(weeks: Sequence[Mapping[str, Any]], finding: str, notes: Sequence[str]) -> Drawn:
    """How many decisions of each week would change.

    Args:
        weeks: {week, changed, newly_approved, newly_blocked}, as a dry run tells them.
        finding: The sentence above the chart.
        notes: What was looked at.
    """
    kinds = [_BLOCKED, _APPROVED, _OTHER]
    found = []
    for of in weeks:
        other = of["changed"] - of["newly_approved"] - of["newly_blocked"]
        below, begins = 0, date.fromisoformat(of["week"])
        for kind, decisions in zip(kinds, (of["newly_blocked"], of["newly_approved"], other), strict=True):
            # Vega stacks no bars that have two ends in time.
            ends = {"week": begins, "until": begins + _BAR, "below": below, "above": below + decisions}
            found.append({**ends, "change": kind, "decisions": decisions})
            below += decisions
    shown = pl.DataFrame(
        found,
        schema={
            "week": pl.Date,
            "until": pl.Date,
            "below": pl.Int64,
            "above": pl.Int64,
            "change": pl.String,
            "decisions": pl.Int64,
        },
    )
    scale = alt.Scale(domain=kinds, range=[colours.OF["no"], colours.OF["yes"], colours.OF["review"]])
    bars = (
        rows(shown)
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("week:T", title="Week of the decision (from Monday, UTC)", axis=months(shown["week"])),
            x2=alt.X2("until:T"),
            y=alt.Y("below:Q", title="Decisions that change", axis=COUNT),
            y2=alt.Y2("above:Q"),
            color=alt.Color("change:N", legend=legend("Change"), scale=scale, sort=kinds),
            tooltip=tooltip("week", "change", "decisions"),
        )
    )
    return titled([bars], finding, notes, width=_WIDTH, height=_HEIGHT)
