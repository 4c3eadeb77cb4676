"""`python -m api.webhooks.process HOME SERVER`: the process that `gate serve` starts to deliver webhooks.

Only one host of an instance delivers at a time: the host with the lease, a lock in the ledger that ends with the
process. The process takes the lease again twice a minute. So a host that lost its connection to the database stops when
another host starts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from api.http.logs import open_log, places
from api.http.metrics import Metrics
from api.workers.companions import end_with
from gate.clock import utc_now
from gate.errors import GateError
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.instance.webhooks import kept_for
from gate.ledger.webhooks.deliveries import Delivery
from gate.ledger.webhooks.endpoints import Endpoint
from gate.services.webhooks.retries import MAX_TRIES
from gate.services.webhooks.transport import Answer

# Any number that no other lock of the ledger has: those of idempotency keys are random ones below 2^62.
_LEASE: Final = int.from_bytes(b"webhook", "big")
_LEASE_SECONDS: Final = 30.0
_PAUSE: Final = 2.0
_PRUNE_SECONDS: Final = 3600.0
_NICENESS: Final = 10


class _Told:
    """Writes failures into the service's log, and counts every try. No line has a URL: it may have a token in it."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._metrics = Metrics()

    def tried(self, endpoint: Endpoint, delivery: Delivery, answer: Answer) -> None:
        """See `gate.services.webhooks.deliverer.Observer`."""
        self._metrics.webhook("delivered" if answer.error is None else "failed")
        if answer.error is None:
            return
        dead = delivery.attempts + 1 >= MAX_TRIES and not answer.is_gone
        self._log.warning(
            "webhook_dead" if dead else "webhook_failed",
            endpoint=endpoint.endpoint_id,
            event_id=delivery.event_id,
            tries=delivery.attempts + 1,
            reason=answer.error,
        )

    def failed(self, endpoint: Endpoint | None, error: BaseException) -> None:
        """See `gate.services.webhooks.deliverer.Observer`; without an endpoint, the ledger itself failed."""
        of = {} if endpoint is None else {"endpoint": endpoint.endpoint_id}
        if isinstance(error, GateError):
            self._log.error("webhooks_failed", error=error.code, reason=error.message, **of)
        else:
            self._log.error("webhooks_failed", error_type=type(error).__qualname__, places=places(error), **of)


def main() -> None:
    """Runs the process until its server is gone."""
    home, server = sys.argv[1:]
    # A terminal's Ctrl-C reaches every process; this one ends with its server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What was sent and not written yet is sent again by the next one, with the same id.
    end_with(int(server))
    # Decisions come first.
    os.nice(_NICENESS)
    settings = load_settings(Path(home))
    told = _Told(open_log(settings.log_level))
    try:
        instance = open_instance(settings)
    except GateError as error:
        told.failed(None, error)
        sys.exit(2)
    deliver_for_ever(instance, told, kept_for(settings))


def deliver_for_ever(instance: Instance, told: _Told, kept: timedelta) -> None:
    """Delivers whenever this process holds the lease."""
    deliverer = instance.webhooks.deliverer(told)
    pruned = -_PRUNE_SECONDS
    while True:
        try:
            with instance.ledger.store.reserve(_LEASE) as mine:
                if mine:
                    if time.monotonic() - pruned >= _PRUNE_SECONDS:
                        instance.ledger.dead_letters.prune(kept, utc_now())
                        pruned = time.monotonic()
                    asyncio.run(deliverer.deliver(_LEASE_SECONDS))
            if mine:
                continue
        except GateError as error:
            told.failed(None, error)
        time.sleep(_PAUSE)


if __name__ == "__main__":
    main()
