"""Every endpoint's outbox, delivered round by round.

A round of an endpoint reads what it may be sent, sends it, and writes the cursor and the failures in one transaction.
Endpoints have rounds of their own, so that one that is slow keeps nobody else waiting. Nothing is remembered between
two rounds: where a process dies, the next one finds in the ledger where to go on.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from gate.clock import utc_now
from gate.ledger.webhooks.deliveries import Deliveries, Delivery
from gate.ledger.webhooks.endpoints import Endpoint
from gate.services.webhooks.lanes import into_lanes, joined, run_lane
from gate.services.webhooks.secrets import signed_headers
from gate.services.webhooks.transport import AT_ONCE, Answer, Transport

POLL: Final = 0.2
"""How many seconds pass, where nothing is due, before the ledger is asked again."""

_REST: Final = 2.0
# After so many seconds a round sends nothing more, so that its cursor is written, and its lease can end.
_ROUND_SECONDS: Final = 20.0

Secrets: TypeAlias = Callable[[Endpoint, datetime], Sequence[str]]
"""The secrets of an endpoint that sign at a moment, the newest first."""


class Observer(Protocol):
    """Hears of deliveries, for the log and the metrics."""

    def tried(self, endpoint: Endpoint, delivery: Delivery, answer: Answer) -> None:
        """An event was sent, and taken or not."""

    def failed(self, endpoint: Endpoint, error: BaseException) -> None:
        """A round of an endpoint failed; it is done again."""


class Deliverer:
    """Delivers a ledger's outbox."""

    def __init__(
        self,
        deliveries: Deliveries,
        secrets: Secrets,
        transport: Callable[[], Transport],
        observer: Observer,
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Composes a deliverer.

        Args:
            deliveries: What is sent to the ledger's endpoints.
            secrets: What signs.
            transport: Makes what sends.
            observer: Hears of every try.
            clock: Gives the current moment.
        """
        self._deliveries = deliveries
        self._secrets = secrets
        self._transport = transport
        self._observer = observer
        self._clock = clock

    async def deliver(self, seconds: float) -> None:
        """Delivers for some seconds, and until the rounds that have begun are over.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the ledger cannot say what is due.
        """
        until = time.monotonic() + seconds
        transport = self._transport()
        rounds: dict[str, asyncio.Task[bool]] = {}
        resting: dict[str, float] = {}
        try:
            while (now := time.monotonic()) < until:
                for endpoint in await asyncio.to_thread(self._deliveries.due, self._clock()):
                    name = endpoint.endpoint_id
                    if name not in rounds and resting.get(name, now) <= now:
                        rounds[name] = asyncio.create_task(self._round(endpoint, transport))
                await _some(rounds.values())
                for name in [name for name, task in rounds.items() if task.done()]:
                    if not rounds.pop(name).result():
                        resting[name] = time.monotonic() + _REST
        finally:
            await asyncio.gather(*rounds.values())
            await transport.close()

    async def _round(self, endpoint: Endpoint, transport: Transport) -> bool:
        """One round; whether it did anything."""
        try:
            return await self._delivered(endpoint, transport)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other endpoints do not wait for it
            self._observer.failed(endpoint, error)
            return False

    async def _delivered(self, endpoint: Endpoint, transport: Transport) -> bool:
        page = await asyncio.to_thread(self._deliveries.page, endpoint)
        lanes, waiting = into_lanes(page, self._clock())
        if not lanes and not waiting and page.last == endpoint.cursor:
            return False
        attempt = self._attempt(endpoint, transport)
        outcomes = await asyncio.gather(*(run_lane(lane, attempt, self._clock, random.random) for lane in lanes))
        tried = joined(endpoint, page, outcomes, waiting)
        return await asyncio.to_thread(self._deliveries.keep, endpoint, page.last, tried, self._clock())

    def _attempt(self, endpoint: Endpoint, transport: Transport) -> Callable[[Delivery], Awaitable[Answer | None]]:
        turns, gone, over = asyncio.Semaphore(AT_ONCE), False, time.monotonic() + _ROUND_SECONDS

        async def attempt(delivery: Delivery) -> Answer | None:
            nonlocal gone
            async with turns:
                if gone or time.monotonic() > over:
                    return None
                answer = await self._sent(endpoint, transport, delivery)
                gone = gone or answer.is_gone
            return answer

        return attempt

    async def _sent(self, endpoint: Endpoint, transport: Transport, delivery: Delivery) -> Answer:
        now = self._clock()
        headers = signed_headers(self._secrets(endpoint, now), delivery.event_id, delivery.body, now)
        answer = await transport.post(endpoint.url, headers, delivery.body)
        self._observer.tried(endpoint, delivery, answer)
        return answer


async def _some(rounds: Collection[asyncio.Task[bool]]) -> None:
    """Waits until a round is over, or for `POLL`."""
    if rounds:
        await asyncio.wait(rounds, timeout=POLL, return_when=asyncio.FIRST_COMPLETED)
    else:
        await asyncio.sleep(POLL)
