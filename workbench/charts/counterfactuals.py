"""Verdicts as they were, and as they would be; and week by week, what would have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

import altair as alt
import polars as pl

from gate.policy.questions import VERDICTS
from workbench.charts import colours
from workbench.charts.drawing import COUNT, Drawn, legend, months, rows, titled, tooltip
from workbench.columns import NO_VERDICT
from workbench.engines.wording import counted

_LABELS: Final = alt.Axis(labelAngle=0, labelFontSize=12)
_WIDTH: Final = 680
_HEIGHT: Final = 200
# A bar ends a little before the next begins.
_BAR: Final = timedelta(days=6)
_APPROVED: Final = "newly approved"
_BLOCKED: Final = "newly blocked or held"
_OTHER: Final = "other changes"


def verdicts(frame: pl.DataFrame, finding: str, notes: Sequence[str], *, was: str = "Original verdict") -> Drawn:
    """The number of decisions by their original and their new verdict.

    Args:
        frame: {verdict, then_verdict, decisions}.
        finding: The sentence above the chart.
        notes: Sentences that explain it.
        was: The title of the original verdicts.
    """
    counted = frame.group_by("verdict", "then_verdict").agg(pl.col("decisions").sum()).sort("verdict", "then_verdict")
    every = alt.Scale(domain=VERDICTS)
    # Imported cases may have none.
    before = alt.Scale(domain=[*VERDICTS, *([NO_VERDICT] if NO_VERDICT in counted["verdict"] else [])])
    base = rows(counted).encode(
        x=alt.X("then_verdict:N", title="New verdict", scale=every, axis=_LABELS),
        y=alt.Y("verdict:N", title=was, scale=before, axis=_LABELS),
    )
    # Pale enough for the numbers, on white and on dark.
    shades = alt.Scale(range=[0.1, 0.5], domainMin=0)
    squares = base.mark_rect(stroke="white", strokeWidth=2, color=colours.FIGURE).encode(
        fillOpacity=alt.FillOpacity("decisions:Q", legend=None, scale=shades)
    )
    numbers = base.mark_text(fontSize=15, color="black").encode(text=alt.Text("decisions:Q", format=","))
    return titled([squares, numbers], finding, notes, width=330, height=240, outside=150)


def verdict_changes(history: Mapping[str, Any]) -> Drawn:
    """How many decisions of each verdict a migration would give which.

    Args:
        history: The figures of its dry run.
    """
    told = [
        {"verdict": row["from"], "then_verdict": row["to"], "decisions": row["decisions"]}
        for row in history["matrix"]["verdict"]
    ]
    frame = pl.DataFrame(told, schema={"verdict": pl.String, "then_verdict": pl.String, "decisions": pl.Int64})
    changed = history["verdict_changed"]["decisions"]
    finding = f"{counted(changed, 'decision')} of {history['redecided']:,} would get another verdict"
    was = "Original verdict" if history["base"] is None else "Verdict of the active version"
    return verdicts(frame, finding, ["On the diagonal, the verdict stays the same."], was=was)


def weekly_changes(history: Mapping[str, Any]) -> Drawn:
    """How many decisions of each week a migration would change.

    Args:
        history: The figures of its dry run.
    """
    kinds = [_BLOCKED, _APPROVED, _OTHER]
    found = []
    for of in history["weeks"]:
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
    return titled([bars], "Decisions that would have changed, by week", [], width=_WIDTH, height=_HEIGHT)
