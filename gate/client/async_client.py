"""The client of the decision gate for asyncio.

    async with AsyncClient("https://gate.example", key_file="gate.key", registry="keys.json", store="gate.db") as gate:
        record = await gate.decide(request)
        async with gate.guard("refund_policy@2026-09-01", facts, action="issue_refund", target=("shop", "order-77")):
            await payments.refund("order-77")

It has the same methods as `gate.client.Client`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar, Unpack

from gate.client.api.endpoints import AsyncEndpoints
from gate.client.client import BaseClient
from gate.client.guard.blocks import AsyncGuard, PerFunction, guarded_async
from gate.client.guard.delivery import LAST_SECONDS, Delivery
from gate.client.guard.permit import AsyncPermit
from gate.client.guard.proposal import Proposal, Target
from gate.client.guard.recovery import begun
from gate.client.guard.terms import Terms
from gate.client.transport.async_engine import AsyncEngine
from gate.client.transport.calls import Answer, Call
from gate.client.transport.engine import Engine

if TYPE_CHECKING:
    import httpx

    from gate.client.guard.blocks import Asked

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class AsyncClient(BaseClient[AsyncGuard, "httpx.AsyncBaseTransport"], AsyncEndpoints):
    """The client for asyncio. It has the methods of `Client`.

    Each endpoint is a coroutine method, and you enter guards with `async with`. Recovery hooks may be coroutine
    functions.
    """

    def _open(self, transport: httpx.AsyncBaseTransport | None, delivery_transport: httpx.BaseTransport | None) -> None:
        self._engine = AsyncEngine(self._url, self._credentials, transport)
        # A thread delivers what waits, so that no event loop need be running.
        self._background = Engine(self._url, self._credentials, delivery_transport)
        self._courier = self._courier_of(self._background)

    async def send(self, call: Call[T], *, timeout: float | None = None) -> Answer[T]:
        """As `Client.send`."""
        return await self._engine.run(self._exchange(call, timeout))

    def guarded(
        self,
        rulebook: str | Mapping[str, object],
        *,
        facts: Callable[..., Mapping[str, object]] | None = None,
        adapter: Callable[..., Mapping[str, object]] | None = None,
        action: str,
        target: Target | tuple[str, ...] | Callable[..., Target | tuple[str, ...]],
        **more: Unpack[PerFunction],
    ) -> Callable[[Callable[P, Coroutine[object, None, R]]], Callable[P, Coroutine[object, None, R]]]:
        """As `Client.guarded`, for coroutine functions.

        Raises:
            RequestRefused: As `Client.guarded`.
            TypeError: The function is not a coroutine function.
        """
        said: Asked = {
            "rulebook": rulebook,
            "facts": facts,
            "adapter": adapter,
            "action": action,
            "target": target,
        }
        return guarded_async(self.guard, said, more)

    async def recall(self, intent_id: str) -> AsyncPermit:
        """As `Client.recall`."""
        found = await asyncio.to_thread(begun, self._kept_in(), intent_id)
        return AsyncPermit(self._engine, self._courier.wake, self._kept_in(), *found, ended=True)

    async def flush(self, *, again: bool = False) -> Delivery:
        """As `Client.flush`."""
        return await asyncio.to_thread(self._courier.deliver, again=again)

    async def close(self) -> None:
        """As `Client.close`."""
        await asyncio.to_thread(self._courier.close, LAST_SECONDS)
        self._background.close()
        await self._engine.close()

    async def __aenter__(self) -> AsyncClient:
        """Returns the client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Closes the client."""
        await self.close()

    def _guard(self, wanted: Proposal | str, terms: Terms) -> AsyncGuard:
        return AsyncGuard(self._engine, self._courier, wanted, terms)
