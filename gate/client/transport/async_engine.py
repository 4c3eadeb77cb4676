"""Runs flows in the caller's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, TypeVar

from gate.client.errors import Unreachable
from gate.client.transport.engine import Credentials
from gate.client.transport.flow import Consult, Do, Effect, Flow, Pause, Send, run_async
from gate.client.transport.forks import begin_in_forks

if TYPE_CHECKING:
    import httpx

    from gate.client.transport.transport import AsyncTransport

T = TypeVar("T")

# How often work that others cancel is started again.
_TRIES: Final = 3


class AsyncEngine:
    """Runs flows in the running event loop."""

    def __init__(self, url: str, credentials: Credentials, transport: httpx.AsyncBaseTransport | None) -> None:
        """Takes the service's address, the keys, and optionally the caller's own transport."""
        self._url = url
        self._credentials = credentials
        self._given = transport
        begin_in_forks(self)

    def begin(self) -> None:
        """Starts without connections and threads, because a forked process inherits no threads."""
        # The loop's own threads also look up names, which may take long; the store must not wait for that.
        self._threads = _threads()
        self._opened: tuple[asyncio.AbstractEventLoop, AsyncTransport] | None = None

    async def run(self, flow: Flow[T]) -> T:
        """Runs a flow and returns its result."""
        return await run_async(flow, self._perform)

    async def run_to_its_end(self, flow: Flow[T]) -> T:
        """Runs a flow and returns its result. A cancellation takes effect only after the flow has ended.

        It then raises `CancelledError`, unless the flow failed.
        """
        cancelled: list[asyncio.CancelledError] = []

        async def perform(effect: Effect) -> object:
            for _ in range(_TRIES):
                doing = self._begun(effect)
                while not doing.done():
                    try:
                        await asyncio.wait([doing])
                    except asyncio.CancelledError as error:
                        cancelled.append(error)
                if not doing.cancelled():
                    return doing.result()
                # Ending a loop cancels everything that runs in it.
            raise Unreachable("GATE_UNREACHABLE", "The event loop canceled the request repeatedly; retry.")

        result = await run_async(flow, perform)
        if cancelled:
            raise cancelled[-1]
        return result

    def _begun(self, effect: Effect) -> asyncio.Future[object]:
        if isinstance(effect, Do):
            # Not a task, which is cancelled with all others, perhaps before its first step.
            loop = asyncio.get_running_loop()
            try:
                return loop.run_in_executor(self._threads, effect.work)
            except RuntimeError:
                # The main thread has ended, and no thread can be started any more.
                return _done_here(loop, effect.work)
        return asyncio.create_task(self._perform(effect))

    async def close(self) -> None:
        """Closes every connection and ends every thread. The next flow opens new ones."""
        threads, self._threads = self._threads, _threads()
        threads.shutdown(wait=False)
        opened, self._opened = self._opened, None
        if opened is not None and opened[0] is asyncio.get_running_loop():
            await opened[1].close()

    async def _perform(self, effect: Effect) -> object:
        match effect:
            case Send(call, deadline):
                return await self._transport().send(call, self._credentials.headers(call), deadline)
            case Pause(seconds):
                await asyncio.sleep(seconds)
                return None
            case Do(work):
                return await self._in_thread(work)
            case Consult(work):
                said = work()
                return await said if isawaitable(said) else said

    async def _in_thread(self, work: Callable[[], object]) -> object:
        """Runs blocking work and returns its result. After a cancellation, it first waits for the work: the work
        cannot be stopped, and later steps must not overtake it.
        """
        done = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            while not done.done():
                try:
                    await asyncio.wait([done])
                except asyncio.CancelledError:
                    continue
            # Retrieved, so that asyncio does not report an unretrieved exception.
            done.exception()
            raise

    def _transport(self) -> AsyncTransport:
        from gate.client.transport.transport import AsyncTransport

        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened[0] is not loop:
            self._opened = loop, AsyncTransport(self._url, self._given)
        return self._opened[1]


def _done_here(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> asyncio.Future[object]:
    done = loop.create_future()
    try:
        done.set_result(work())
    except Exception as error:  # noqa: BLE001 - the flow decides
        done.set_exception(error)
    return done


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="gate-client-store")
