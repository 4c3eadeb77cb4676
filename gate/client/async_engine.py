"""Doing what flows ask for, in the caller's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gate.client.engine import Credentials
from gate.client.flow import Consult, Do, Effect, Flow, Pause, Send, run_async

if TYPE_CHECKING:
    import httpx

    from gate.client.transport import AsyncTransport

T = TypeVar("T")


class AsyncEngine:
    """Performs flows in the event loop that runs."""

    def __init__(self, url: str, credentials: Credentials, transport: httpx.AsyncBaseTransport | None) -> None:
        """Takes the service's address, its keys, and a transport of the caller's own where there is one."""
        self._url = url
        self._credentials = credentials
        self._given = transport
        self._opened: tuple[asyncio.AbstractEventLoop, AsyncTransport] | None = None

    async def run(self, flow: Flow[T]) -> T:
        """What a flow returns."""
        return await run_async(flow, self._perform)

    async def run_to_its_end(self, flow: Flow[T]) -> T:
        """What a flow returns; where this is cancelled, it is waited for first, and CancelledError raised then."""
        task = asyncio.create_task(self.run(flow))
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            # Looked at, so that a failure is not reported as one that nobody saw.
            task.exception()
            raise cancelled
        return task.result()

    async def close(self) -> None:
        """Closes every connection; the next flow opens new ones."""
        opened, self._opened = self._opened, None
        if opened is not None and opened[0] is asyncio.get_running_loop():
            await opened[1].close()

    async def _perform(self, effect: Effect) -> Any:
        match effect:
            case Send(call, deadline):
                return await self._transport().send(call, self._credentials.headers(call), deadline)
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case Do(work):
                return await _in_thread(work)
            case Consult(work):
                said = work()
                return await said if asyncio.iscoroutine(said) else said

    def _transport(self) -> AsyncTransport:
        from gate.client.transport import AsyncTransport

        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened[0] is not loop:
            self._opened = loop, AsyncTransport(self._url, self._given)
        return self._opened[1]


async def _in_thread(work: Callable[[], Any]) -> Any:
    """What blocking work gives. Where this is cancelled, the work is waited for before that is told: it cannot be
    stopped, and what follows must not overtake it.
    """
    done = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            try:
                await asyncio.wait([done])
            except asyncio.CancelledError:
                continue
        # Looked at, so that a failure is not reported as one that nobody saw.
        done.exception()
        raise
