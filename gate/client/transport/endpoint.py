"""An operation as a method of a client. Both clients share its signature, its types, and its description."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Generic, ParamSpec, Protocol, TypeVar

from gate.client.transport.calls import Answer, Call

P = ParamSpec("P")
T = TypeVar("T")


class _Sends(Protocol):
    def send(self, call: Call[T]) -> Answer[T]: ...


class _SendsAsync(Protocol):
    async def send(self, call: Call[T]) -> Answer[T]: ...


class Endpoint(Generic[P, T]):
    """An operation as a method that returns the body of the response."""

    def __init__(self, operation: Callable[P, Call[T]]) -> None:
        """Takes the operation."""
        self._operation = operation
        self.__doc__ = operation.__doc__
        self.__wrapped__ = operation

    def __get__(self, client: _Sends | None, owner: object = None) -> Callable[P, T]:
        """The method of a client."""

        @wraps(self._operation)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            if client is None:
                raise TypeError(f"{self._operation.__name__} is a method of a client; create a client first.")
            return client.send(self._operation(*args, **kwargs)).body

        return method


class AsyncEndpoint(Generic[P, T]):
    """An operation as a coroutine method that returns the body of the response."""

    def __init__(self, operation: Callable[P, Call[T]]) -> None:
        """Takes the operation."""
        self._operation = operation
        self.__doc__ = operation.__doc__
        self.__wrapped__ = operation

    def __get__(self, client: _SendsAsync | None, owner: object = None) -> Callable[P, Coroutine[object, None, T]]:
        """The method of a client."""

        @wraps(self._operation)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            if client is None:
                raise TypeError(f"{self._operation.__name__} is a method of a client; create a client first.")
            return (await client.send(self._operation(*args, **kwargs))).body

        return method
