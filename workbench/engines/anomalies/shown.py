"""The decisions that show an anomaly: some of their ids, and all of their cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import polars as pl

from gate.policy.anomalies.anomaly import MOST_IDS, Anomaly, Shown
from gate.policy.anomalies.counted import Counted
from workbench.engines.anomalies.broken import ACTED, ENDED, break_conditions
from workbench.engines.anomalies.choice import Choice
from workbench.engines.anomalies.counts import age_in_days


def decisions_shown(cases: pl.LazyFrame, shown: Sequence[Shown]) -> list[list[str]]:
    """Of each anomaly the ids of decisions that show it: those it names in its order, else the latest first."""
    ids = cases.select("position", "decision_id", "created_at", *dict.fromkeys(of.column for of in shown if of.column))
    named = sorted({position for of in shown for position in of.positions})
    plans = [ids.filter(_condition(of)).top_k(MOST_IDS, by="position") for of in shown if not of.positions]
    plans += [ids.filter(pl.col("position").is_in(named))] if named else []
    if not plans:
        return []
    found = pl.collect_all(plans, engine="streaming")
    by_position = dict(found[-1].select("position", "decision_id").iter_rows()) if named else {}
    latest = iter(found)
    return [
        [by_position[position] for position in of.positions if position in by_position]
        if of.positions
        else next(latest).sort("position", descending=True)["decision_id"].to_list()
        for of in shown
    ]


def cases_shown(
    choice: Choice, counted: Counted, listed: Sequence[Anomaly], far: Mapping[str, pl.LazyFrame]
) -> list[pl.LazyFrame]:
    """Of each anomaly all the cases that it counts.

    Args:
        choice: The decisions that were looked at.
        counted: What was counted of them.
        listed: The anomalies.
        far: The positions of each metric's values that lie far out.
    """
    as_of = None if counted.as_of is None else datetime.fromisoformat(counted.as_of)
    of_breaks = {} if as_of is None else break_conditions(as_of, choice.question.policy_id)
    found = []
    for anomaly in listed:
        if anomaly.kind == "lifecycle_break":
            found.append(choice.kept.filter(of_breaks[anomaly.subject][0]))
        elif anomaly.kind == "metric_outlier":
            found.append(choice.cases.join(far[anomaly.subject], on="position", how="semi"))
        else:
            found.append(choice.cases.filter(_within(anomaly.shown) & _compared(anomaly)))
    return found


def _compared(anomaly: Anomaly) -> pl.Expr:
    """Whether a case of the window is one of those that are compared: all are, but of outcomes."""
    if anomaly.kind != "outcome_shift":
        return pl.lit(value=True)
    days = anomaly.numbers["changes"][0]["age_days"]
    terminal = ENDED & ACTED
    return terminal if days is None else terminal & (age_in_days() < days)


def _condition(shown: Shown) -> pl.Expr:
    within = _within(shown)
    return within if shown.column is None else within & pl.col(shown.column).cast(pl.String).is_in(list(shown.values))


def _within(shown: Shown) -> pl.Expr:
    first, last = (pl.lit(datetime.fromisoformat(text)) for text in (shown.first, shown.last))
    return pl.col("created_at").is_between(first, last, closed="left")
