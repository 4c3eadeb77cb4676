"""One request to an endpoint: to an address that was checked, without redirects or proxies, its answer within bounds.

The name is resolved once for a connection. Every address that it has is judged, and the connection goes to one of these
very addresses, with TLS for the name: a name service that changes its answer afterwards changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpcore

from gate.errors import OperatorError
from gate.services.webhooks.addresses import Rules, Target, read_url, refused_address

SECONDS: Final = 15.0
"""How long a delivery may take as a whole, the name service and the handshake included."""

MAX_ANSWER: Final = 4096
"""How many bytes of an answer's body are read."""

AT_ONCE: Final = 16
"""How many requests one endpoint gets at the same time."""

_IDLE_SECONDS: Final = 20.0
_CONNECT_SECONDS: Final = 10.0
_GONE: Final = 410

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a name, for a port."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request.

    Attributes:
        status: The HTTP status; None where there was no answer.
        error: Why the event was not taken, as a sentence; None where it was.
        seconds: How long it took.
    """

    status: int | None
    error: str | None
    seconds: float

    @property
    def is_gone(self) -> bool:
        """Whether the endpoint says that it is there no more."""
        return self.status == _GONE


class Transport:
    """Sends to endpoints, over connections that are used again."""

    def __init__(
        self,
        rules: Rules,
        *,
        resolve: Resolve | None = None,
        context: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
    ) -> None:
        """Composes a transport.

        Args:
            rules: The URLs and addresses that the settings allow.
            resolve: Asks the name service; by default the system's.
            context: Whose certificates are trusted; by default those that this machine trusts.
            seconds: How long a request may take.
        """
        self._rules = rules
        self._backend = _Checked(rules, resolve or _resolve)
        self._context = context or ssl.create_default_context()
        self._seconds = seconds
        self._pools: dict[tuple[str, str, int], httpcore.AsyncConnectionPool] = {}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Sends one event. Only a status of 2xx says that it was taken.

        Args:
            url: The endpoint's URL.
            headers: The headers that verify the event.
            body: The bytes.
        """
        began = time.monotonic()
        status: list[int] = []
        try:
            target = read_url(url, self._rules)
            async with asyncio.timeout(self._seconds):
                await self._send(target, headers, body, status)
            error = _judged(status[0])
        except TimeoutError:
            # An endpoint that answers and then never ends its body has taken the event.
            error = _judged(status[0]) if status else f"It gave no answer within {self._seconds:g} seconds."
        except OperatorError as refused:
            error = refused.message
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError) as failed:
            error = _judged(status[0]) if status else _reason(failed)
        return Answer(status[0] if status else None, error, time.monotonic() - began)

    async def close(self) -> None:
        """Closes every connection."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()

    async def _send(self, target: Target, headers: Mapping[str, str], body: bytes, status: list[int]) -> None:
        sent = [
            (b"host", target.authority.encode()),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"accept", b"*/*"),
            (b"user-agent", b"decision-gate-webhooks"),
            *((name.encode(), value.encode()) for name, value in headers.items()),
        ]
        place = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        extensions = {"timeout": {"connect": _CONNECT_SECONDS, "pool": None}}
        pool = self._pool(target)
        async with pool.stream("POST", place, headers=sent, content=body, extensions=extensions) as answer:
            status.append(answer.status)
            size = 0
            async for piece in answer.aiter_stream():
                size += len(piece)
                if size > MAX_ANSWER:
                    # Leaving closes the connection: the rest is not read.
                    return

    def _pool(self, target: Target) -> httpcore.AsyncConnectionPool:
        origin = (target.scheme, target.host, target.port)
        if origin not in self._pools:
            self._pools[origin] = httpcore.AsyncConnectionPool(
                ssl_context=self._context,
                max_connections=2 * AT_ONCE,
                max_keepalive_connections=AT_ONCE,
                keepalive_expiry=_IDLE_SECONDS,
                network_backend=self._backend,
            )
        return self._pools[origin]


class _Checked(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were judged, and to nothing else."""

    def __init__(self, rules: Rules, resolve: Resolve) -> None:
        self._rules = rules
        self._resolve = resolve
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._resolve(host, port)
        for address in addresses:
            if (refused := refused_address(address, self._rules)) is not None:
                raise OperatorError("WEBHOOK_ADDRESS_REFUSED", f"The name of the endpoint leads to {refused}.")
        failed: Exception = httpcore.ConnectError("The name of the endpoint has no address.")
        for address in addresses:
            try:
                return await self._plain.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def _resolve(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError("The name of the endpoint cannot be resolved.") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _judged(status: int) -> str | None:
    """Why a status does not say that the event was taken; None where it does."""
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"It answered {status}, a redirect; redirects are not followed. Give the endpoint its new URL."
    return f"It answered {status}."


def _reason(error: Exception) -> str:
    """Why there was no answer, as a sentence without anything that the other end chose."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"Its certificate cannot be trusted: {cause.verify_message}."
        if isinstance(cause, ssl.SSLError):
            return "The TLS handshake failed."
        if isinstance(cause, ConnectionRefusedError):
            return "It refused the connection."
        cause = cause.__cause__ or cause.__context__
    match error:
        case httpcore.ConnectTimeout():
            return f"No connection came about within {_CONNECT_SECONDS:g} seconds."
        case httpcore.ConnectError() if str(error).startswith("The name"):
            return str(error)
        case httpcore.ConnectError():
            return "It cannot be reached."
        case httpcore.ProtocolError():
            return "Its answer is not HTTP, or broke off."
    return "The connection broke off."
