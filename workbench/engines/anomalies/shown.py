"""The decisions that show an anomaly: some of their ids, and all of their cases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from gate.policy.anomalies.anomaly import MOST_IDS, Anomaly, Shown
from workbench.engines.anomalies.broken import ACTED, ENDED, break_conditions
from workbench.engines.anomalies.choice import Choice
from workbench.engines.anomalies.counts import Found
from workbench.engines.anomalies.groups import age_in_days
from workbench.engines.anomalies.samples import far_rows
from workbench.lake.reader import at_positions


def decisions_shown(decided: Sequence[pl.LazyFrame], shown: Sequence[Shown]) -> list[list[str]]:
    """Of each anomaly the ids of decisions that show it: those it names in its order, else the latest first.

    Args:
        decided: Of each the cases that it counts.
        shown: Which of them show it.
    """
    plans = []
    for rows, of in zip(decided, shown, strict=True):
        chosen = rows.filter(_condition(of)).select("position", "decision_id")
        plans.append(chosen if of.positions else chosen.top_k(MOST_IDS, by="position"))
    found = pl.collect_all(plans, engine="streaming") if plans else []
    ids = []
    for told, of in zip(found, shown, strict=True):
        by_position = dict(told.iter_rows())
        positions = of.positions or sorted(by_position, reverse=True)
        ids.append([by_position[position] for position in positions if position in by_position])
    return ids


def cases_shown(choice: Choice, found: Found, listed: Sequence[Anomaly]) -> list[pl.LazyFrame]:
    """Of each anomaly all the cases that it counts.

    Args:
        choice: The decisions that were looked at.
        found: What was counted of them.
        listed: The anomalies.
    """
    as_of = None if found.counted.as_of is None else datetime.fromisoformat(found.counted.as_of)
    of_breaks = {} if as_of is None else break_conditions(as_of, choice.question.policy_id)
    cases = []
    for anomaly in listed:
        if anomaly.kind == "lifecycle_break":
            cases.append(choice.kept.filter(of_breaks[anomaly.subject][0]))
        elif anomaly.kind == "metric_outlier":
            cases.append(choice.cases.join(_far(found, anomaly), on="position", how="semi"))
        else:
            within = choice.cases.filter(_within(anomaly.shown) & _compared(anomaly))
            measured = anomaly.kind == "metric_shift"
            cases.append(within.join(_measured(found, anomaly), on="position", how="semi") if measured else within)
    return cases


def _far(found: Found, anomaly: Anomaly) -> pl.LazyFrame:
    """The positions of the decisions whose value of a metric lies far out."""
    measures = (measure for measure in found.measures if measure.metric == anomaly.subject)
    return pl.concat([far_rows(found.metrics, measure).select("position") for measure in measures])


def _measured(found: Found, anomaly: Anomaly) -> pl.LazyFrame:
    """The positions of the decisions that have a value of a metric, so early as those that are compared."""
    days = anomaly.numbers["levels"][0]["age_days"]
    rows = found.metrics.filter(pl.col("name") == anomaly.subject)
    return (rows if days is None else rows.filter(pl.col("age") < days)).select("position")


def _compared(anomaly: Anomaly) -> pl.Expr:
    """Whether a case of the window is one of those that are compared: all are, but of outcomes and of a version."""
    if anomaly.kind == "metric_shift":
        version = anomaly.numbers["levels"][0]["version"]
        return pl.lit(value=True) if version is None else pl.col("policy_version") == version
    if anomaly.kind != "outcome_shift":
        return pl.lit(value=True)
    days = anomaly.numbers["changes"][0]["age_days"]
    terminal = ENDED & ACTED
    return terminal if days is None else terminal & (age_in_days() < days)


def _condition(shown: Shown) -> pl.Expr:
    if shown.positions:
        return at_positions(pl.Series(shown.positions, dtype=pl.Int64))
    if shown.column is None:
        return pl.lit(value=True)
    return pl.col(shown.column).cast(pl.String).is_in(list(shown.values))


def _within(shown: Shown) -> pl.Expr:
    first, last = (pl.lit(datetime.fromisoformat(text)) for text in (shown.first, shown.last))
    return pl.col("created_at").is_between(first, last, closed="left")
