"""One request to an endpoint, and what came of it: no redirects, no proxies, one deadline for everything.

transport = Transport(rules)
answer = await transport.post("https://hooks.example.com/gate", headers, body)
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import h11

from gate.errors import OperatorError
from gate.services.webhooks.addresses import Rules, Target, read_url
from gate.services.webhooks.connection import Connection, Headers, Resolve, connect, resolved

SECONDS: Final = 15.0
"""How long a delivery may take as a whole, the name service and the handshake included."""

AT_ONCE: Final = 16
"""How many requests one endpoint gets at the same time."""

_IDLE_SECONDS: Final = 15.0
_GONE: Final = 410


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
        resolve: Resolve = resolved,
        context: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
    ) -> None:
        """Composes a transport.

        Args:
            rules: The URLs and addresses that the settings allow.
            resolve: Asks the name service.
            context: Whose certificates are trusted; by default those that this machine trusts.
            seconds: How long a request may take.
        """
        self._rules = rules
        self._resolve = resolve
        self._context = context or ssl.create_default_context()
        self._seconds = seconds
        # By origin, each with the moment since when it is idle; the last one is used first.
        self._idle: dict[tuple[str, str, int], list[tuple[Connection, float]]] = {}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Sends one event. Only a status of 2xx says that it was taken.

        Args:
            url: The endpoint's URL.
            headers: The headers that verify the event.
            body: The bytes.
        """
        began = time.monotonic()
        status: list[int] = []
        error: str | None
        try:
            target = read_url(url, self._rules)
            async with asyncio.timeout(self._seconds):
                await self._send(target, _headers(target, headers, body), body, status)
        except OperatorError as refused:
            error = refused.message
        except (OSError, h11.RemoteProtocolError) as failed:
            error = _reason(failed, self._seconds)
        else:
            error = "The connection was interrupted."
        if status:
            # The status counts, even where the rest of the answer never ends.
            error = _judged(status[0])
        return Answer(status[0] if status else None, error, time.monotonic() - began)

    async def close(self) -> None:
        """Closes every connection."""
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection, _ in connections:
                connection.close()
        # The event loop closes sockets in its next turn.
        await asyncio.sleep(0)

    async def _send(self, target: Target, headers: Headers, body: bytes, status: list[int]) -> None:
        kept = self._kept(target)
        if kept is not None:
            try:
                await self._over(kept, target, headers, body, status)
            except (OSError, h11.RemoteProtocolError):
                # Mostly the endpoint closed it just as it was used again; a new connection tells.
                if kept.answered:
                    raise
            else:
                return
        connection = await connect(target, self._rules, self._resolve, self._context)
        await self._over(connection, target, headers, body, status)

    async def _over(
        self, connection: Connection, target: Target, headers: Headers, body: bytes, status: list[int]
    ) -> None:
        again = False
        try:
            again = await connection.send(target.path, headers, body, status)
        finally:
            if again:
                self._idle.setdefault(_origin(target), []).append((connection, time.monotonic()))
            else:
                connection.close()

    def _kept(self, target: Target) -> Connection | None:
        idle = self._idle.get(_origin(target), [])
        while idle:
            connection, since = idle.pop()
            if connection.is_open and time.monotonic() - since < _IDLE_SECONDS:
                return connection
            connection.close()
        return None


def _origin(target: Target) -> tuple[str, str, int]:
    return target.scheme, target.host, target.port


def _headers(target: Target, headers: Mapping[str, str], body: bytes) -> Headers:
    return [
        ("host", target.authority),
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("user-agent", "decision-gate-webhooks"),
        *headers.items(),
    ]


def _judged(status: int) -> str | None:
    """Why a status does not say that the event was taken; None where it does."""
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"It answered {status}, a redirect; redirects are not followed. Add an endpoint with the new URL."
    return f"It answered {status}."


def _reason(error: Exception, seconds: float) -> str:
    """Why there was no answer, as a sentence without anything that the other end chose."""
    match error:
        case socket.gaierror():
            return "Its name cannot be resolved."
        case ssl.SSLCertVerificationError():
            return f"Its certificate is not trusted: {error.verify_message}."
        case ssl.SSLError():
            return "The TLS handshake failed."
        case TimeoutError():
            return f"It gave no answer within {seconds:g} seconds."
        case ConnectionRefusedError():
            return "It refused the connection."
        case h11.RemoteProtocolError():
            return "Its answer is not HTTP, is too large, or is incomplete."
        case ConnectionError():
            return "The connection was interrupted."
    return "It cannot be reached."
