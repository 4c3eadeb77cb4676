"""Expires reviews while the service runs, in a thread of `gate serve`.

Every second, the thread finds the held reviews of all scopes that are past their time limit, and appends the `expired`
resolution of each. Reviews that became due while no service ran expire at the next start. Several hosts may do this at
once: the ledger accepts one resolution of a decision.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final

from structlog.typing import FilteringBoundLogger

from gate.clock import utc_now
from gate.errors import GateError
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import Settings
from gate.ledger.reviews import ReviewRow

INTERVAL: Final = 1.0
"""Seconds between two rounds."""


class Expiry:
    """Expires the reviews of an instance in a separate thread while a `with` block runs."""

    def __init__(
        self,
        settings: Settings,
        log: FilteringBoundLogger,
        *,
        interval: float = INTERVAL,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Takes the instance's settings, the log, the seconds between two rounds, and the clock."""
        self._settings = settings
        self._log = log
        self._interval = interval
        self._clock = clock
        self._instance: Instance | None = None
        # Each failure is logged once, and not every second.
        self._failed: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="expiry", daemon=True)

    def __enter__(self) -> Expiry:
        """Starts the thread, whose first round is immediate."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the thread."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                found = self._look()
                # More may be due than one look takes.
                if self._stopping.wait(0 if found else self._interval):
                    return
        finally:
            if self._instance is not None:
                self._instance.close()

    def _look(self) -> int:
        try:
            if self._instance is None:
                self._instance = open_instance(self._settings)
            expired = self._instance.resolutions(self._clock).expire_due(self._note)
        except (GateError, OSError) as error:
            reason = error.message if isinstance(error, GateError) else f"{error}."
            if "" not in self._failed:
                self._log.error("reviews_not_expired", reason=reason)
                self._failed.add("")
            return 0
        self._failed.discard("")
        if expired:
            self._log.info("reviews_expired", reviews=expired)
        return expired

    def _note(self, review: ReviewRow, error: GateError) -> None:
        if review.decision_id not in self._failed:
            self._log.error(
                "review_not_expired", decision_id=review.decision_id, error=error.code, reason=error.message
            )
            self._failed.add(review.decision_id)
