"""Slow senders: a request whose body is still on its way holds up no other, and none is waited for without end.

A WSGI server gives a request its thread before its body has come, and reading then waits for as long as the sender
likes. So there are far more threads than work at a time: a request works only in its turn, and gives its turn up while
it waits for its body. A connection that has kept the service waiting for a request for too long is read no further; its
request is then refused as one that ended early.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, Final, Protocol

from werkzeug.exceptions import RequestTimeout

from api import app
from api.requests import MAX_BODY

SECONDS_VARIABLE: Final = "GATE_REQUEST_SECONDS"

WORKING: Final = 2 * (os.cpu_count() or 1) + 1
"""How many requests a worker works on at a time. Threads wait for the disk most of the time; more of them than this
only pass the interpreter's lock around.
"""

WAITING: Final = 256
"""How many requests of a worker may be under way, their bodies still coming or not."""

_LARGE: Final = 4
"""How many requests of a worker may have more than `MAX_BODY` bytes in memory at a time."""

_LOOK_SECONDS: Final = 0.5
_FILES: Final = "/proc/self/fd"
# Of struct tcp_info: milliseconds since data was last sent and since it was last received; how much was acknowledged.
_LAST_SENT: Final = 44
_LAST_RECEIVED: Final = 52
_ACKNOWLEDGED: Final = 120
_TCP_INFO_BYTES: Final = 128

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def worker() -> Turns:
    """The application of one server process, as `api.app.worker` makes it, with turns."""
    return Turns(app.worker(), float(os.environ[SECONDS_VARIABLE]))


class Turns:
    """A WSGI application that lets a few requests at a time into another one, and none while its body is coming."""

    def __init__(self, within: Wsgi, seconds: float) -> None:
        """Takes the application, and how many seconds a request may take to arrive."""
        self._within = within
        self.seconds = seconds
        self._working = threading.Semaphore(WORKING)
        self._large = threading.Semaphore(_LARGE)
        self._waiting: dict[object, tuple[int, float]] = {}
        threading.Thread(target=self._watch, daemon=True).start()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answers a request in its turn."""
        with ExitStack() as held, self._working:
            environ["wsgi.input"] = _Body(self, environ["wsgi.input"], int(environ["SERVER_PORT"]), held)
            return self._within(environ, start_response)

    def wait(self, port: int, read: Callable[[], bytes]) -> tuple[bytes, float]:
        """What a read from a sender gives, and how many seconds it took. Meanwhile another request may work."""
        waiter = object()
        started = time.monotonic()
        self._waiting[waiter] = port, started
        self._working.release()
        try:
            return read(), time.monotonic() - started
        finally:
            del self._waiting[waiter]
            self._working.acquire()

    def enter_large(self, held: ExitStack) -> None:
        """Waits until one more request may grow large; it may until `held` ends.

        Raises:
            RequestTimeout: That took longer than a request may take to arrive.
        """
        self._working.release()
        try:
            entered = self._large.acquire(timeout=self.seconds)
        finally:
            self._working.acquire()
        if not entered:
            raise RequestTimeout
        held.callback(self._large.release)

    def _watch(self) -> None:
        since: dict[tuple[int, int], float] = {}
        while True:
            time.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            ports = {port for port, started in list(self._waiting.values()) if now - started > _LOOK_SECONDS}
            since = _cut_overdue(ports, since, now, self.seconds) if ports else {}


class _Body:
    """The body of a request, read in its sender's time and not in the worker's. It has `read` alone."""

    def __init__(self, turns: Turns, within: _Readable, port: int, held: ExitStack) -> None:
        self._turns = turns
        self._within = within
        self._port = port
        self._held = held
        self._length = 0
        self._large = False
        self._waited = 0.0

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `MAX_BODY` of them even where more are asked for; none at the end.

        Raises:
            RequestTimeout: The sender is too slow.
        """
        if self._length >= MAX_BODY and not self._large:
            self._turns.enter_large(self._held)
            self._large = True
        at_most = MAX_BODY if self._large else MAX_BODY - self._length
        asked = at_most if size < 0 else min(size, at_most)
        piece, waited = self._turns.wait(self._port, lambda: self._within.read(asked))
        self._length += len(piece)
        self._waited += waited
        if self._waited >= self._turns.seconds:
            # The connection may have been cut, and what came until then look whole without being so.
            raise RequestTimeout
        return piece


def _cut_overdue(
    ports: set[int], since: dict[tuple[int, int], float], now: float, seconds: float
) -> dict[tuple[int, int], float]:
    """Reads no further from connections that have been in the middle of a request for so many seconds.

    Args:
        ports: Where requests wait for their bodies.
        since: What this gave when it was last called.
        now: The moment, in monotonic seconds.
        seconds: How long a request may take to arrive.

    Returns:
        Since when each connection has been in the middle of the request that it is in now.
    """
    found = {}
    for connection in _connections(ports):
        with connection, suppress(OSError, struct.error):
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            sent, received = (struct.unpack_from("=I", info, at)[0] for at in (_LAST_SENT, _LAST_RECEIVED))
            if received >= sent:
                # Its last word was ours: it is between two requests.
                continue
            state = os.fstat(connection.fileno()).st_ino, struct.unpack_from("=Q", info, _ACKNOWLEDGED)[0]
            found[state] = since.get(state, now)
            if now - found[state] >= seconds:
                connection.shutdown(socket.SHUT_RD)
    return found


def _connections(ports: set[int]) -> Iterator[socket.socket]:
    """The process's TCP connections to its own ports, each by a descriptor of its own; none but on Linux."""
    try:
        names = os.listdir(_FILES)  # noqa: PTH208 - a name is all there is to a descriptor
    except FileNotFoundError:
        return
    for name in names:
        with suppress(OSError):
            # A copy stays the same connection even where the original is closed and its number used anew.
            copy = os.dup(int(name))
            try:
                is_socket = stat.S_ISSOCK(os.fstat(copy).st_mode)
                connection = socket.socket(fileno=copy) if is_socket else None
            finally:
                if not is_socket:
                    os.close(copy)
            if connection is None:
                continue
            if _is_connection_to(connection, ports):
                yield connection
            else:
                connection.close()


def _is_connection_to(connection: socket.socket, ports: set[int]) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
        return False
    listens = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return not listens and connection.getsockname()[1] in ports
