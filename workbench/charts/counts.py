"""How many decisions each reason and each rule stands behind, by verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import polars as pl

from gate.policy.questions import VERDICTS
from workbench.charts import colours
from workbench.charts.drawing import (
    COUNT,
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
from workbench.engines.wording import counted, day, decided_by, whole_percent

_WIDTH: Final = 520
_STEP: Final = 24
_BAR: Final = 14
_REASONS: Final = 15
_RULES: Final = 25


def reasons(frame: pl.DataFrame, finding: str, notes: Sequence[str], *, link: Link | None = None) -> Drawn:
    """How many decisions have each reason, the most frequent first.

    Args:
        frame: {reason_code, verdict, decisions, terminal, success_rate, low, high}.
        finding: The sentence above the chart.
        notes: What was looked at.
        link: What the bar of a reason and a verdict leads to; the row has `reason_code` and `verdict`.
    """
    named = frame.with_columns(pl.col("reason_code").alias("name"))
    return _bars(named, "Reason", _REASONS, "reasons", finding, notes, link)


def rules(frame: pl.DataFrame, finding: str, notes: Sequence[str], *, link: Link | None = None) -> Drawn:
    """How many decisions each rule made, the most frequent first, and the rules that never hit.

    Args:
        frame: {rule, verdict, decisions, terminal, success_rate, low, high, last_hit_at}; a rule that never hit has no
            decisions, and perhaps no verdict.
        finding: The sentence above the chart.
        notes: What was looked at.
        link: What the bar of a rule and a verdict leads to; the row has `rule` and `verdict`.
    """
    named = frame.with_columns(pl.col("rule").map_elements(decided_by, return_dtype=pl.String).alias("name"))
    return _bars(named, "Decided by", _RULES, "rules", finding, notes, link)


def _bars(
    frame: pl.DataFrame, axis: str, most: int, noun: str, finding: str, notes: Sequence[str], link: Link | None
) -> Drawn:
    order = {verdict: at for at, verdict in enumerate(VERDICTS)}
    counts = (
        frame.group_by("name")
        .agg(pl.col("decisions").sum().alias("of_name"))
        .sort("of_name", "name", descending=[True, False])
    )
    kept, whole = counts.head(most), int(counts["of_name"].sum())
    kept = kept.with_columns(
        pl.Series("label", labels(kept["name"].to_list()), pl.String),
        pl.Series("told", [_told(number, whole) for number in kept["of_name"]], pl.String),
    )
    shown = kept.join(frame, on="name", how="left", maintain_order="left").with_columns(
        pl.col("verdict").replace_strict(order, default=None, return_dtype=pl.Int64).alias("order")
    )
    names = alt.Y("label:N", sort=kept["label"].to_list(), axis=names_axis(axis))
    hit = with_links(shown.filter(pl.col("decisions") > 0), link, _says)
    verdicts = [verdict for verdict in VERDICTS if verdict in hit["verdict"]]
    scale = alt.Scale(domain=verdicts, range=[colours.OF[verdict] for verdict in verdicts])
    # Right of the plot stand the numbers.
    below = alt.Legend(title="Verdict", orient="bottom", direction="horizontal")
    at = ["last_hit_at"] if "last_hit_at" in frame.columns else []
    bars = (
        rows(hit)
        .mark_bar(height=_BAR)
        .encode(
            y=names,
            x=alt.X("decisions:Q", title="Decisions", axis=COUNT, stack="zero"),
            color=alt.Color("verdict:N", legend=below if verdicts else None, scale=scale, sort=verdicts),
            order=alt.Order("order:Q"),
            tooltip=tooltip("label", "verdict", "decisions", "terminal", "success_rate", "low", "high", *at),
        )
    )
    numbers = beside_plot(rows(kept).encode(y=names)).encode(text=alt.Text("told:N"))
    left_out = counts.height - kept.height
    how = ["Numbers: decisions, and their share of all."] if kept.height else []
    how += [f"{left_out:,} more {noun} with fewer decisions are left out."] if left_out else []
    layers = [linked(bars, link), numbers]
    return titled(layers, finding, [*notes, " ".join(how)], width=_WIDTH, height=alt.Step(_STEP), outside=200)


def _told(decisions: int, whole: int) -> str:
    return f"{decisions:,} ({whole_percent(decisions / whole)})" if decisions else "never hit"


def _says(row: Mapping[str, Any]) -> str:
    """What a bar shows."""
    told = f"{row['label']}, {row['verdict'] or 'no verdict'}: {counted(row['decisions'], 'decision')}"
    if row["success_rate"] is not None:
        told += f", {whole_percent(row['success_rate'])} of {counted(row['terminal'], 'case')} succeeded"
    return f"{told}, the last on {day(row['last_hit_at'])}" if row.get("last_hit_at") is not None else told
