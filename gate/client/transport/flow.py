"""Flows: the client's logic, written once for threads and for asyncio.

A flow is a generator that yields effects and receives their results. It neither waits nor sends by itself: `Client`
performs its effects in the caller's thread, and `AsyncClient` in its event loop.

    def exchange(call: Call[T]) -> Flow[Answer[T]]:
        raw = yield from Send(call, deadline)
        return read_answer(call, raw, tries=1)

An effect is a flow of one step, so that `yield from` returns its result with the right type.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from gate.client.transport.calls import Call, RawAnswer

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


# Plain classes: dataclasses and named tuples take longer to make, and every import of the client would wait for them.


class Send:
    """Sends a call. The result is its raw response, or an `ApiError`.

    Attributes:
        call: The call.
        deadline: When the response must be complete, in seconds of `time.monotonic()`.
    """

    __slots__ = ("call", "deadline")
    __match_args__ = ("call", "deadline")

    def __init__(self, call: Call[object], deadline: float) -> None:
        """Takes the call and its deadline."""
        self.call = call
        self.deadline = deadline

    def __iter__(self) -> Flow[RawAnswer]:
        """The flow of this one step."""
        raw: RawAnswer = yield self
        return raw


class Pause:
    """Waits for a number of seconds."""

    __slots__ = ("seconds",)
    __match_args__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        """Takes the number of seconds."""
        self.seconds = seconds

    def __iter__(self) -> Flow[None]:
        """The flow of this one step."""
        yield self


class Do(Generic[T_co]):
    """Calls a function that may block, such as a method of the store. The result is what it returns."""

    __slots__ = ("work",)
    __match_args__ = ("work",)

    def __init__(self, work: Callable[[], T_co]) -> None:
        """Takes the function."""
        self.work = work

    def __iter__(self) -> Flow[T_co]:
        """The flow of this one step."""
        result: T_co = yield self
        return result


class Consult:
    """Calls the caller's function, which may be a coroutine function. The result is what it returns."""

    __slots__ = ("work",)
    __match_args__ = ("work",)

    def __init__(self, work: Callable[[], object]) -> None:
        """Takes the function."""
        self.work = work

    def __iter__(self) -> Flow[object]:
        """The flow of this one step."""
        said: object = yield self
        return said


Effect: TypeAlias = Send | Pause | Do[object] | Consult

# A generator has one type for everything sent into it. Each effect states its own type, and the engines respect it.
Flow: TypeAlias = Generator[Effect, Any, T]


def run(flow: Flow[T], perform: Callable[[Effect], object]) -> T:
    """Runs a flow with its effects in this thread, and returns its result."""
    step: Callable[[], Effect] = partial(next, flow)
    while True:
        try:
            effect = step()
        except StopIteration as done:
            result: T = done.value
            return result
        step = _next_step(flow, *_outcome(perform, effect))


async def run_async(flow: Flow[T], perform: Callable[[Effect], Awaitable[object]]) -> T:
    """Runs a flow, awaits each of its effects, and returns its result."""
    step: Callable[[], Effect] = partial(next, flow)
    while True:
        try:
            effect = step()
        except StopIteration as done:
            result: T = done.value
            return result
        value: object = None
        error: BaseException | None = None
        try:
            value = await perform(effect)
        except BaseException as failure:  # noqa: BLE001 - the flow decides, cancellation included
            error = failure
        step = _next_step(flow, value, error)


def _outcome(perform: Callable[[Effect], object], effect: Effect) -> tuple[object, BaseException | None]:
    try:
        return perform(effect), None
    except BaseException as failure:  # noqa: BLE001 - the flow decides, Ctrl-C included
        return None, failure


def _next_step(flow: Flow[object], value: object, error: BaseException | None) -> Callable[[], Effect]:
    return partial(flow.send, value) if error is None else partial(flow.throw, error)
