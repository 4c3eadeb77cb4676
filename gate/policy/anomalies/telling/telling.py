"""Makes an anomaly of whatever was found."""

from __future__ import annotations

from gate.policy.anomalies.telling.facts import Facts
from gate.policy.anomalies.telling.metrics import Metrics
from gate.policy.anomalies.telling.rates import Rates
from gate.policy.anomalies.telling.single import Single


class Telling(Rates, Metrics, Facts, Single):
    """Makes an anomaly of what was found."""
