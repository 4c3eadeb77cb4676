"""Describes breaks, surges, and outliers."""

from __future__ import annotations

from dataclasses import replace

from gate.ids import timestamp
from gate.policy.anomalies.anomaly import Anomaly, Next, Shown
from gate.policy.anomalies.breaks import RULES, Broken
from gate.policy.anomalies.outliers import SEASONAL, Outliers
from gate.policy.anomalies.scores import (
    BELOW_HIGH,
    FAR,
    MANY_FAR,
    SURPLUS,
    TIMES,
    score,
)
from gate.policy.anomalies.statistics import Share
from gate.policy.anomalies.telling.base import Base, rounded, significant
from gate.policy.anomalies.volume import Surge
from gate.policy.confidence import wilson_interval


class Single(Base):
    """Turns breaks, surges, and outliers into anomalies."""

    def broken(self, of: Broken) -> Anomaly:
        """A kind of break."""
        rule = RULES[of.kind]
        return Anomaly(
            kind="lifecycle_break",
            subject=of.kind,
            score=of.score,
            reasons=[of.kind],
            summary=f"{rule.meaning}: {of.count:,} of {of.of:,} decisions.",
            first=of.first,
            last=of.last,
            decisions=of.count,
            shown=Shown(positions=of.positions),
            effect=self._effect(of.count, of.first, of.last, harm=True),
            numbers={"count": of.count, "of": of.of, "share": rounded(Share(of.count, of.of).rate)},
            next=[Next(rule.next)],
        )

    def surge(self, surge: Surge) -> Anomaly:
        """Cells with far more or fewer decisions than usual."""
        # As many times as many of few is little.
        usual = max(self._weeks.usual, 1)
        strength = min(score(surge.times, TIMES), score(surge.surplus / usual, SURPLUS))
        strength = strength if surge.is_certain else min(strength, BELOW_HIGH)
        first, last = timestamp(surge.first), timestamp(surge.last)
        shown = Shown(first=first, last=last)
        decisions, cells = counted(surge.decisions, "decision"), counted(surge.cells, surge.grain.name)
        are = "is" if surge.usual == 1 else "are"
        return Anomaly(
            kind="volume",
            subject=surge.grain.name,
            score=strength,
            reasons=["more_decisions_than_usual" if surge.rose else "fewer_decisions_than_usual"],
            summary=f"{decisions} in {cells}, where {surge.usual:,} {are} usual.",
            first=first,
            last=last,
            decisions=surge.decisions,
            shown=shown,
            effect=self._effect(abs(surge.decisions - surge.usual), first, last),
            numbers={
                "grain": surge.grain.name,
                "cells": surge.cells,
                "decisions": surge.decisions,
                "usual": surge.usual,
                "arrivals": surge.arrivals,
                "usual_arrivals": surge.usual_arrivals,
                "like_cells": surge.like_cells,
                "like_arrivals": surge.like_arrivals,
                "usual_week": usual,
                "times": rounded(surge.times),
                "modified_z": rounded(surge.z),
                "required_z": rounded(surge.required),
                "p_value": significant(surge.p_value),
                "required_p": significant(surge.required_p),
            },
            next=[
                Next("See who asked, and for what: the actor, subject, and target of the decisions."),
                *self._searches(shown),
            ],
        )

    def outliers(self, of: Outliers) -> Anomaly:
        """Values of a metric that lie far out."""
        return Anomaly(
            kind="metric_outlier",
            subject=of.metric,
            # Single numbers can be special cases, and no test tells how values are spread.
            score=score(of.strength, FAR)
            if wilson_interval(of.count, of.values)[0] >= MANY_FAR
            else min(BELOW_HIGH, score(of.strength, FAR)),
            reasons=["metric_far_from_usual"],
            summary=f"Unusual values of the metric {of.metric}: {of.count:,} of {of.values:,}.",
            first=of.first,
            last=of.last,
            decisions=of.count,
            shown=Shown(positions=tuple(far.position for far in of.farthest)),
            # Single values are no state that lasts, however many weeks lie between the first and the last.
            effect=replace(self._effect(of.count, of.first, of.last), lasting=False),
            numbers={
                "metric": of.metric,
                "values": of.values,
                "median": of.median,
                # Metrics have any scale: of rates in a thousandth six decimals would be nothing.
                "mad": significant(of.mad),
                "scale": "ratio" if of.ratios else "difference",
                "season": of.season,
                "seasonal_p": SEASONAL,
                "required_z": rounded(of.required),
                "farthest": [
                    {"value": far.value, "usual": far.usual, "modified_z": rounded(far.z)} for far in of.farthest
                ],
            },
            next=[Next("Check the number at its source: is it a wrong unit, a wrong sign, or a special case?")],
        )


def counted(number: int, noun: str) -> str:
    """A number of things, with their noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
