"""A load client that costs little: one thread, non-blocking sockets, requests made beforehand."""

from __future__ import annotations

import hashlib
import math
import re
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Final

from bench.measure import Mismatch, percentile

_BUFFER: Final = 65536
_SILENCE_SECONDS: Final = 30
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)
_END_OF_HEAD: Final = b"\r\n\r\n"
# Those of all clients, so that none of them asks for a replay of what another was answered.
_KEYS: Final = count()

KEY: Final = b"bench-<idempotency>"
"""Stands in a body for the idempotency key of its request, which has as many characters."""


def counting(number: int) -> bytes:
    """An idempotency key that comes after those of smaller numbers, as order numbers and ULIDs do."""
    return b"bench-%013d" % number


def scattered(number: int) -> bytes:
    """An idempotency key that comes anywhere among the others, as random UUIDs do."""
    return hashlib.sha256(b"%d" % number).hexdigest()[: len(KEY)].encode()


@dataclass(frozen=True, slots=True)
class Load:
    """What one round of load showed.

    Attributes:
        answers: How many requests were sent and answered as they should be.
        seconds: From the first request to the last answer.
        latencies_ms: The time of each request, ascending.
    """

    answers: int
    seconds: float
    latencies_ms: Sequence[float]

    @property
    def per_second(self) -> float:
        """Requests answered a second."""
        return self.answers / self.seconds

    def latency_ms(self, percent: float) -> float:
        """The latency that so many percent of the requests did not exceed."""
        return percentile(self.latencies_ms, percent)


@dataclass(slots=True)
class _Exchange:
    connection: socket.socket
    received: bytearray
    sent_at: float


class Client:
    """Keep-alive connections, each with one open request at a time.

    Every request has a new idempotency key, in its body if the body has a field for it, otherwise in a header.
    """

    def __init__(
        self,
        connections: Sequence[socket.socket],
        paths: Iterator[str],
        headers: Sequence[str],
        body: bytes,
        status: int = 200,
        key: Callable[[int], bytes] = counting,
    ) -> None:
        """Takes open connections, which `close` closes, and what requests are made of.

        Args:
            connections: The connections.
            paths: The path of each request.
            headers: The headers of every request.
            body: The body of every request.
            status: How every request is to be answered.
            key: The idempotency key of each request, by its number.
        """
        self._connections = connections
        self._selector = selectors.DefaultSelector()
        for connection in connections:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
            self._selector.register(connection, selectors.EVENT_READ, _Exchange(connection, bytearray(), 0.0))
        lines = ["host: 127.0.0.1", "content-type: application/json", *headers, f"content-length: {len(body)}"]
        self._paths = paths
        if KEY not in body:
            lines.append(f"x-idempotency-key: {KEY.decode()}")
        self._after_path = "\r\n".join([" HTTP/1.1", *lines]).encode() + _END_OF_HEAD + body
        self._status = str(status).encode()
        self._key = key

    def run(self, seconds: float = math.inf, *, requests: float = math.inf) -> Load:
        """Keeps every connection busy for a number of seconds or requests, then waits for the open requests.

        Raises:
            Mismatch: An answer has another status, or the server fell silent.
        """
        exchanges = [key.data for key in self._selector.get_map().values()]
        latencies: list[float] = []
        started = time.perf_counter()
        for exchange in exchanges:
            self._send(exchange)
        pending = sent = len(exchanges)
        while pending:
            ready = self._selector.select(_SILENCE_SECONDS)
            if not ready:
                raise Mismatch(f"The server was silent for {_SILENCE_SECONDS} seconds.")
            for key, _ in ready:
                exchange = key.data
                if not _receive(exchange, self._status):
                    continue
                now = time.perf_counter()
                latencies.append((now - exchange.sent_at) * 1000)
                if now - started < seconds and sent < requests:
                    self._send(exchange)
                    sent += 1
                else:
                    pending -= 1
        elapsed = time.perf_counter() - started
        return Load(len(latencies), elapsed, sorted(latencies))

    def close(self) -> None:
        """Closes the connections."""
        with ExitStack() as stack:
            stack.callback(self._selector.close)
            for connection in self._connections:
                stack.callback(connection.close)

    def _send(self, exchange: _Exchange) -> None:
        key = self._key(next(_KEYS))
        request = b"POST %b%b" % (next(self._paths).encode(), self._after_path.replace(KEY, key))
        exchange.received.clear()
        exchange.sent_at = time.perf_counter()
        sent = exchange.connection.send(request)
        if sent < len(request):
            # A batch is longer than what a socket takes at once.
            exchange.connection.setblocking(True)
            exchange.connection.sendall(request[sent:])
            exchange.connection.setblocking(False)


def _receive(exchange: _Exchange, status: bytes) -> bool:
    """Reads what has come; whether the answer is complete."""
    chunk = exchange.connection.recv(_BUFFER)
    if not chunk:
        raise Mismatch("The server closed a connection that was to be kept alive.")
    received = exchange.received
    received += chunk
    head = received.find(_END_OF_HEAD)
    if head < 0:
        return False
    if received[9:12] != status:
        raise Mismatch(f"A request was not answered with {status.decode()} but: {bytes(received[:800])!r}")
    length = _LENGTH.search(received, 0, head + 2)
    if length is None:
        raise Mismatch("An answer has no content-length.")
    return len(received) >= head + len(_END_OF_HEAD) + int(length[1])
