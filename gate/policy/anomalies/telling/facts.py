"""Describes facts that drifted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from gate.policy.anomalies.anomaly import SLOW, Anomaly, Next
from gate.policy.anomalies.drift import Drift
from gate.policy.anomalies.scores import (
    BELOW_HIGH,
    INDEX,
    score,
)
from gate.policy.anomalies.telling.base import Base, rounded, significant

_NAMED: Final = 3


class Facts(Base):
    """Turns drifted facts into anomalies."""

    def drifted(self, group: Sequence[Drift]) -> Anomaly:
        """Facts that drifted at about the same time."""
        first, last = self._ends(group[0].windows)
        shown = self._shown(group[0].windows)
        slow = group[0].windows.slow
        names = ", ".join(drift.fact for drift in group[:_NAMED])
        more = f" and {len(group) - _NAMED} more" if len(group) > _NAMED else ""
        return Anomaly(
            kind="fact_drift",
            subject="",
            score=max(_drift_score(drift) for drift in group),
            reasons=[*(f"fact_drifted:{drift.fact}" for drift in group), *([SLOW] if slow else [])],
            summary="The facts of decisions differ from those "
            f"{'half a year earlier' if slow else 'of the weeks before'}: {names}{more}.",
            first=first,
            last=last,
            decisions=self._decided(group[0].windows),
            shown=shown,
            effect=self._lasting_effect(group[0].windows, group[0].until, self._moved(group[0])),
            numbers={"facts": [self._fact(drift) for drift in group]},
            next=[
                Next(
                    "See which values became more frequent: does a caller send something else, or are there other "
                    "customers?"
                ),
                *self._searches(shown),
            ],
        )

    def _moved(self, drift: Drift) -> int:
        """How many decisions since the window began, as long as it lasts, have another value of a fact than they would
        have had before: the total variation distance, so many times.
        """
        n, m = sum(drift.before), sum(drift.within)
        distance = math.fsum(abs(a / n - b / m) for a, b in zip(drift.before, drift.within, strict=True)) / 2
        last = drift.windows.last if drift.until is None else drift.until
        return round(distance * sum(self._weeks.decisions[drift.windows.first : last + 1]))

    def _fact(self, drift: Drift) -> dict[str, object]:
        first, last = self._ends(drift.windows)
        return {
            "fact": drift.fact,
            "from": first,
            "to": last,
            **self._reference(drift.windows),
            "stability_index": rounded(drift.index),
            "least_index": rounded(drift.least_index),
            "design_effect": drift.design_effect,
            "p_value": significant(drift.p_value),
            "required_p": significant(drift.required_p),
            "bins": [
                {"holds": holds, "before": before, "within": within}
                for holds, before, within in zip(drift.bins, drift.before, drift.within, strict=True)
                if before or within
            ],
        }


def _drift_score(drift: Drift) -> float:
    of = score(drift.least_index, INDEX)
    return of if drift.is_certain else min(of, BELOW_HIGH)
