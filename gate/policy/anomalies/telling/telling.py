"""Turns any finding into an anomaly."""

from __future__ import annotations

from gate.policy.anomalies.telling.facts import Facts
from gate.policy.anomalies.telling.metrics import Metrics
from gate.policy.anomalies.telling.rates import Rates
from gate.policy.anomalies.telling.single import Single


class Telling(Rates, Metrics, Facts, Single):
    """Turns findings into anomalies."""
