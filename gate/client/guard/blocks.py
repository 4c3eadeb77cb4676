"""Guarded blocks and functions, as `Client.guard` and `Client.guarded` return them, for threads and for asyncio."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import wraps
from types import GeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar

from gate.client.errors import AlreadyStarted, GateUnavailable
from gate.client.guard.delivery import Courier
from gate.client.guard.entering import enter
from gate.client.guard.held.resuming import resume
from gate.client.guard.leaving import leave
from gate.client.guard.permit import AsyncPermit, Permit
from gate.client.guard.proposal import Proposal, require_one_source
from gate.client.guard.terms import OnReview, Terms
from gate.client.store.intents import Intent, StoreUnavailable
from gate.client.transport.engine import Engine
from gate.client.transport.flow import Flow

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord
    from gate.client.guard.proposal import Target
    from gate.client.transport.async_engine import AsyncEngine

    # For type checkers alone, so that importing the client need not make it.
    class Asked(TypedDict):
        """The required arguments of a guarded function: see `Client.guarded`."""

        rulebook: str | Mapping[str, object]
        facts: Callable[..., Mapping[str, object]] | None
        adapter: Callable[..., Mapping[str, object]] | None
        action: str
        target: Target | tuple[str, ...] | Callable[..., Target | tuple[str, ...]]


P = ParamSpec("P")
R = TypeVar("R")


class Guard:
    """A guarded block for threads. `Client.guard` and `Client.resume` create it. You can enter it once."""

    def __init__(self, engine: Engine, courier: Courier, wanted: Proposal | str, terms: Terms) -> None:
        """Takes the engine, the courier for reports, the action or the id of a held intent, and the terms."""
        self._engine = engine
        self._courier = courier
        self._terms = terms
        self._permit: Permit | None = None
        self._wanted = wanted

    @property
    def intent_id(self) -> str:
        """The id of the intent in the guard's store."""
        return _intent_of(self._wanted)

    def __enter__(self) -> Permit:
        """Returns the permit under which the body runs.

        Raises:
            Blocked, HeldForReview, GateUnavailable, AlreadyStarted: The body must not run.
            OperatorError: `INTENT_UNKNOWN` or `INTENT_NOT_HELD`: there is nothing to resume.
        """
        if self._permit is not None:
            raise RuntimeError(_ENTERED)
        try:
            intent, record = self._engine.run(_way(self._wanted, self._terms))
        except BaseException as refusal:
            _wake(self._courier, refusal)
            raise
        self._permit = Permit(self._engine, self._courier.wake, self._terms.store, intent, record)
        self._process = os.getpid()
        return self._permit

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stores how the body ended, with the receipt for delivery. It does not suppress an error of the body.

        Raises:
            StoreUnavailable: The body succeeded, but the guard could neither store its end nor report it.
        """
        if self._permit is None:
            raise RuntimeError(_NOT_ENTERED)
        if os.getpid() != self._process:
            # A fork in the body: what the child makes of it is not the end of the parent's run.
            return
        try:
            self._engine.run(leave(self._terms, self._permit, error))
        finally:
            self._terms.store.when_kept(self._courier.wake)


class AsyncGuard:
    """A guarded block for asyncio. `AsyncClient.guard` and `AsyncClient.resume` create it. You can enter it once."""

    def __init__(self, engine: AsyncEngine, courier: Courier, wanted: Proposal | str, terms: Terms) -> None:
        """Takes the engine, the courier for reports, the action or the id of a held intent, and the terms."""
        self._engine = engine
        self._courier = courier
        self._terms = terms
        self._permit: AsyncPermit | None = None
        self._wanted = wanted

    @property
    def intent_id(self) -> str:
        """The id of the intent in the guard's store."""
        return _intent_of(self._wanted)

    async def __aenter__(self) -> AsyncPermit:
        """As `Guard.__enter__`."""
        if self._permit is not None:
            raise RuntimeError(_ENTERED)
        try:
            intent, record = await self._engine.run(_way(self._wanted, self._terms))
        except BaseException as refusal:
            _wake(self._courier, refusal)
            raise
        self._permit = AsyncPermit(self._engine, self._courier.wake, self._terms.store, intent, record)
        self._process = os.getpid()
        return self._permit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """As `Guard.__exit__`."""
        if self._permit is None:
            raise RuntimeError(_NOT_ENTERED)
        if os.getpid() != self._process:
            # A fork in the body: what the child makes of it is not the end of the parent's run.
            return
        try:
            await self._engine.run_to_its_end(leave(self._terms, self._permit, error))
        finally:
            self._terms.store.when_kept(self._courier.wake)


def _intent_of(wanted: Proposal | str) -> str:
    return wanted if isinstance(wanted, str) else wanted.intent_id


def _way(wanted: Proposal | str, terms: Terms) -> Flow[tuple[Intent, DecisionRecord]]:
    return resume(wanted, terms) if isinstance(wanted, str) else enter(wanted, terms)


def _wake(courier: Courier, refusal: BaseException) -> None:
    # Recovery may have told what became of an action; a store that cannot be used has nothing to deliver.
    if not (isinstance(refusal, GateUnavailable) and isinstance(refusal.failure, StoreUnavailable)):
        courier.wake()


_ENTERED = "A guard can be entered only once; create another one for another run."
_NOT_ENTERED = "This guard was not entered, so it cannot be left."


class PerFunction(TypedDict, total=False):
    """The optional arguments of a guarded function: see `Client.guard`.

    `intent` and `context` may be functions of the call's arguments.
    """

    intent: str | Callable[..., str | None] | None
    context: Mapping[str, object] | Callable[..., Mapping[str, object] | None] | None
    outcome_action: str | Collection[str] | None
    max_age: float | None
    on_review: OnReview
    review_seconds: float | None
    recover: Callable[[AlreadyStarted], object] | None
    timeout: float | None


def guarded(make: Callable[..., Guard], said: Asked, more: PerFunction) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for functions.

    Args:
        make: Creates a guard from the arguments of `Client.guard`.
        said: The required arguments. Those that depend on the call may be functions of its arguments.
        more: The optional arguments.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: there are both facts and an adapter, or neither.
        TypeError: There is no such argument. When it decorates: the function is a coroutine function or a generator,
            so its body would run outside the guard.
    """
    arguments = _arguments(said, more)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{_name_of(function)} is a coroutine function; guard it with an AsyncClient.")
        signature = _signature(function)

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            _require_fit(_name_of(function), signature, args, kwargs)
            with make(**_told(arguments, args, kwargs)) as permit:
                return _ran(function(*args, **_with(permit, signature, kwargs)))

        return wrapper

    return decorate


def guarded_async(
    make: Callable[..., AsyncGuard], said: Asked, more: PerFunction
) -> Callable[[Callable[P, Coroutine[object, None, R]]], Callable[P, Coroutine[object, None, R]]]:
    """As `guarded`, for coroutine functions."""
    arguments = _arguments(said, more)

    def decorate(function: Callable[P, Coroutine[object, None, R]]) -> Callable[P, Coroutine[object, None, R]]:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{_name_of(function)} is not a coroutine function; guard it with a Client.")
        signature = _signature(function)

        @wraps(function)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            _require_fit(_name_of(function), signature, args, kwargs)
            async with make(**_told(arguments, args, kwargs)) as permit:
                return _ran(await function(*args, **_with(permit, signature, kwargs)))

        return wrapper

    return decorate


def _arguments(said: Asked, more: PerFunction) -> Mapping[str, object]:
    if unknown := sorted(more.keys() - PerFunction.__optional_keys__):
        raise TypeError(f"A guarded function does not take {unknown[0]}; use a guarded block instead.")
    require_one_source(said["facts"], said["adapter"])
    return {**said, **more}


_PER_CALL = ("facts", "adapter", "target", "intent", "context")


def _told(said: Mapping[str, object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
    return {
        name: value(*args, **kwargs) if name in _PER_CALL and callable(value) else value for name, value in said.items()
    }


_LAZY = (GeneratorType, map, filter, zip)


def _ran(result: R) -> R:
    """A function's result, which must not be something that has yet to run."""
    if inspect.isawaitable(result) or inspect.isasyncgen(result) or isinstance(result, _LAZY):
        if inspect.iscoroutine(result):
            result.close()
        elif callable(cancel := getattr(result, "cancel", None)):
            cancel()
        raise TypeError(
            f"A guarded function returned a {type(result).__name__}, whose body would run after the guard has ended."
        )
    return result


def _signature(function: Callable[..., object]) -> inspect.Signature:
    if isinstance(function, staticmethod | classmethod):
        raise TypeError("Guard the function itself: put the decorator below @staticmethod or @classmethod.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{_name_of(function)} is a generator, whose body would run after the guard has ended.")
    return inspect.signature(function)


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _with(permit: object, signature: inspect.Signature, kwargs: Mapping[str, object]) -> Any:
    # The caller's own arguments, whose types P has, and one more, which no ParamSpec can say.
    return {**kwargs, "permit": permit} if "permit" in signature.parameters else kwargs


def _require_fit(
    name: str, signature: inspect.Signature, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> None:
    """Requires that a call fits before anything is asked: one that does not would use up the intent."""
    try:
        signature.bind(*args, **_with(None, signature, kwargs))
    except TypeError as error:
        raise TypeError(f"{name}() was called with the wrong arguments: {error}") from None
