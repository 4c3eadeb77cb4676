"""What the client does, told once for threads and for asyncio.

A flow is a generator that yields what is to be done and is given what came of it. It neither waits nor sends by itself:
`Client` does what it yields in the caller's thread, `AsyncClient` in its event loop.

    def exchange(call: Call[T]) -> Flow[Answer[T]]:
        raw = yield Send(call, deadline)
        return read_answer(call, raw, tries=1)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, NamedTuple, TypeVar

from gate.client.transport.calls import Call

T = TypeVar("T")


class Send(NamedTuple):
    """Send a call; gives a RawAnswer or raises ApiError.

    Attributes:
        call: The call.
        deadline: When its answer must be whole, as `time.monotonic()` counts, in seconds.
    """

    call: Call[Any]
    deadline: float


class Pause(NamedTuple):
    """Wait for so many seconds."""

    seconds: float


class Do(NamedTuple):
    """Call a function that may block, such as one of the store; gives what it returns."""

    work: Callable[[], Any]


class Consult(NamedTuple):
    """Call a function of the caller's, which may be a coroutine function; gives what it returns."""

    work: Callable[[], Any]


Effect = Send | Pause | Do | Consult
Flow = Generator[Effect, Any, T]


def run(flow: Flow[T], perform: Callable[[Effect], Any]) -> T:
    """What a flow returns, each of its effects performed in this thread."""
    step: Callable[[], Effect] = partial(next, flow)
    while True:
        try:
            effect = step()
        except StopIteration as done:
            result: T = done.value
            return result
        step = _next_step(flow, *_outcome(perform, effect))


async def run_async(flow: Flow[T], perform: Callable[[Effect], Awaitable[Any]]) -> T:
    """What a flow returns, each of its effects awaited."""
    step: Callable[[], Effect] = partial(next, flow)
    while True:
        try:
            effect = step()
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            value, error = await perform(effect), None
        except BaseException as failure:  # noqa: BLE001 - the flow decides, cancellation included
            value, error = None, failure
        step = _next_step(flow, value, error)


def _outcome(perform: Callable[[Effect], Any], effect: Effect) -> tuple[Any, BaseException | None]:
    try:
        return perform(effect), None
    except BaseException as failure:  # noqa: BLE001 - the flow decides, Ctrl-C included
        return None, failure


def _next_step(flow: Flow[Any], value: Any, error: BaseException | None) -> Callable[[], Effect]:
    return partial(flow.send, value) if error is None else partial(flow.throw, error)
