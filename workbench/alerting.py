"""Notifies webhooks of new anomalies: those that `GET /api/policy-alerts` lists, each once.

    alerting = Alerting(ledger, analytics)
    alerting.look()             # computes the alerts if the chain grew; returns at once if nobody subscribed

Each alert is sent once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Protocol

from gate.clock import utc_now
from gate.errors import GateError
from gate.ledger import Ledger
from gate.policy.questions import AlertsQuestion, LakeQuestion, ReportDocument
from gate.records.webhooks.events import anomaly_alert
from gate.records.webhooks.types import ALERT

PAUSE: Final = 60.0
"""How many seconds pass between two looks at a scope at least."""


class Answers(Protocol):
    """What computes reports."""

    def answer(self, scope_id: str, question: LakeQuestion) -> ReportDocument:
        """See `gate.policy.questions.Reports`."""


class Alerting:
    """Tells of the new anomalies of a ledger's scopes."""

    def __init__(
        self, ledger: Ledger, reports: Answers, *, pause: float = PAUSE, clock: Callable[[], datetime] = utc_now
    ) -> None:
        """Takes the ledger, what computes its reports, how many seconds pass between two looks, and the clock."""
        self._ledger = ledger
        self._reports = reports
        self._pause = pause
        self._clock = clock
        # For each scope: the size of its chain at the last look, and when that was.
        self._seen: dict[str, tuple[int, float]] = {}

    def look(self) -> list[GateError]:
        """Tells of what is new in those scopes that have an endpoint for it.

        Returns:
            Why single scopes could not be looked at; they are looked at again.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the ledger cannot tell its scopes.
        """
        failed: list[GateError] = []
        for scope_id in sorted(self._ledger.tidings.scopes(ALERT).values()):
            size = self._ledger.entries.head(scope_id).size
            seen, at = self._seen.get(scope_id, (-1, -self._pause))
            if size == seen or time.monotonic() - at < self._pause:
                continue
            try:
                self._look_at(scope_id)
            except GateError as error:
                failed.append(error)
                size = -1
            self._seen[scope_id] = size, time.monotonic()
        return failed

    def _look_at(self, scope_id: str) -> None:
        alerts: Any = self._reports.answer(scope_id, AlertsQuestion())["alerts"]
        for alert in alerts:
            event = anomaly_alert(alert)
            self._ledger.tidings.tell_once(scope_id, event, event.data["anomaly_id"], self._clock())
