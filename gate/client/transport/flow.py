"""What the client does, told once for threads and for asyncio.

A flow is a generator that yields what is to be done and is given what came of it. It neither waits nor sends by itself:
`Client` does what it yields in the caller's thread, `AsyncClient` in its event loop.

    def exchange(call: Call[T]) -> Flow[Answer[T]]:
        raw = yield from Send(call, deadline)
        return read_answer(call, raw, tries=1)

An effect is a flow of one step, so that `yield from` gives what came of it with its type.
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
    """Send a call; gives its raw answer or raises ApiError.

    Attributes:
        call: The call.
        deadline: When its answer must be whole, as `time.monotonic()` counts, in seconds.
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
    """Wait for so many seconds."""

    __slots__ = ("seconds",)
    __match_args__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        """Takes how long."""
        self.seconds = seconds

    def __iter__(self) -> Flow[None]:
        """The flow of this one step."""
        yield self


class Do(Generic[T_co]):
    """Call a function that may block, such as one of the store; gives what it returns."""

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
    """Call a function of the caller's, which may be a coroutine function; gives what it returns, whatever that is."""

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

# What is sent into a generator has one type for all of its steps. Each effect says its own, and the engines keep it.
Flow: TypeAlias = Generator[Effect, Any, T]


def run(flow: Flow[T], perform: Callable[[Effect], object]) -> T:
    """What a flow returns, each of its effects performed in this thread."""
    step: Callable[[], Effect] = partial(next, flow)
    while True:
        try:
            effect = step()
        except StopIteration as done:
            result: T = done.value
            return result
        step = _next_step(flow, *_outcome(perform, effect))


async def run_async(flow: Flow[T], perform: Callable[[Effect], Awaitable[object]]) -> T:
    """What a flow returns, each of its effects awaited."""
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
