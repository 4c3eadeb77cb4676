"""Counts of decisions as an engine makes them, for what judges them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final

from gate.policy.anomalies.anomaly import Anomaly
from gate.policy.anomalies.counted import MAX_AGE, Counted, Weeks
from gate.policy.anomalies.report import anomaly_report, find, strongest
from gate.policy.questions import AnomaliesQuestion

POLICY: Final = "refunds"
MONDAY: Final = date(2026, 1, 5)
STATUSES: Final = ("succeeded", "partial", "failed", "reverted")

NOTHING: Final = Counted(0, None, None, None, None, (), (), (), (), 1, 0, 0, None)
"""A policy that nobody has decided by."""


def weeks_of(
    decisions: Sequence[int],
    *,
    verdicts: Mapping[str, Sequence[int]] | None = None,
    reasons: Mapping[str, Sequence[int]] | None = None,
    versions: Mapping[str, Sequence[int]] | None = None,
    outcomes: Mapping[str, Sequence[int]] | None = None,
    horizons: Sequence[int] | None = None,
) -> Weeks:
    """Weeks with so many decisions, all yes, of one reason and one version where nothing else is said; outcomes came
    at once.
    """
    nothing = [0] * len(decisions)
    return Weeks(
        first=MONDAY,
        decisions=decisions,
        versions=versions or {"1": decisions},
        verdicts=verdicts or {"yes": decisions},
        reasons=reasons or {"ALLOWED": decisions},
        outcomes={status: [(outcomes or {}).get(status, nothing)] * (MAX_AGE + 1) for status in STATUSES},
        horizons=[MAX_AGE] * len(decisions) if horizons is None else horizons,
    )


def counted(weeks: Weeks | None = None, **changes: Any) -> Counted:
    """Counts of a policy; of the decisions in some weeks where they are given."""
    number = 0 if weeks is None else sum(weeks.decisions)
    return replace(NOTHING, weeks=weeks, **{"decisions": number, **changes})


def found(of: Counted, min_sample: int = 20) -> list[Anomaly]:
    """The anomalies."""
    return find(of, AnomaliesQuestion(POLICY, min_sample=min_sample))


def report_of(of: Counted, **chosen: Any) -> dict[str, Any]:
    """The report; each anomaly is shown by one decision."""
    question = AnomaliesQuestion(POLICY, **chosen)
    every = find(of, question)
    ids = [[f"dec_{number}"] for number, _ in enumerate(strongest(every, question))]
    return anomaly_report(of, every, ids, question)
