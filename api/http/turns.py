"""Protects the service from slow senders: a request with an incomplete body never blocks others, or waits forever.

A `WSGI` server gives a request its thread before the body has arrived, and reading then waits as long as the sender
wants. So there are as many threads as connections. A request works only in its turn, and gives the turn up while it
waits for its body. The service refuses a body that takes too long. It stops reading from a connection that completes no
request, so its thread ends.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from werkzeug.exceptions import RequestTimeout

from api import app
from api.http.logs import open_log
from api.http.metrics import DIRECTORY_VARIABLE
from api.http.requests import MAX_BODY, TURN, declared_length
from api.workers.roster import starting

SECONDS_VARIABLE: Final = "GATE_REQUEST_SECONDS"
PORT_VARIABLE: Final = "GATE_PORT"

WORKING: Final = (os.cpu_count() or 1) + 1
"""The number of requests that a worker handles at a time, without those that wait for a commit. More would only compete
for the interpreter's lock.
"""

WAITING: Final = 512
"""The number of open requests of a worker, with complete or incomplete bodies. It equals the number of connections that
the server accepts, so connections run out before threads do.
"""

_LARGE: Final = 4
"""The number of requests of a worker that may have more than `MAX_BODY` bytes in memory at a time."""

_SMALL: Final = 16 * 1024
"""The largest body that is read before its turn, in bytes. `WAITING` of them may be in memory at a time."""

_FILES: Final = Path("/proc/self/fd")
# Of struct tcp_info: how many bytes were sent and acknowledged, and how many were received.
_SENT_AND_RECEIVED: Final = struct.Struct("=QQ")
_OFFSET: Final = 120


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def worker() -> Turns:
    """The application of one server process from `api.app.worker`, in turns. It also ends overdue connections."""
    with starting(Path(os.environ[DIRECTORY_VARIABLE]), open_log()):
        seconds = float(os.environ[SECONDS_VARIABLE])
        # First, because it keeps Ctrl-C from this thread, and so from every thread that this one starts.
        turns = Turns(app.worker(), seconds)
        threading.Thread(target=_watch, args=(seconds,), daemon=True).start()
        return turns


class Turns:
    """A `WSGI` application that runs another one for a few requests at a time, after their bodies have arrived."""

    def __init__(self, within: WSGIApplication, seconds: float) -> None:
        """Takes the application, and how many seconds a body may take to arrive."""
        self._within = within
        self.seconds = seconds
        # A token for each request that may work. A queue, because it is a semaphore without any Python in it.
        free: SimpleQueue[None] = SimpleQueue()
        for _ in range(WORKING):
            free.put(None)
        self.begin: Final = free.get
        self.end: Final = partial(free.put, None)
        self._large = threading.Semaphore(_LARGE)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request in its turn."""
        environ["wsgi.input"] = body = _Body(self, environ["wsgi.input"])
        environ[TURN] = self.waiting
        if 0 < declared_length(environ) <= _SMALL and "HTTP_EXPECT" not in environ:
            body.read_ahead(declared_length(environ))
        self.begin()
        try:
            return self._within(environ, start_response)
        finally:
            self.end()
            body.close()

    def waiting(self) -> AbstractContextManager[None]:
        """Lets another request work while the block waits."""
        return _Pause(self)

    def enter_large(self) -> None:
        """Waits for permission to read a large body, which lasts until `leave_large`.

        Raises:
            RequestTimeout: The wait took longer than a body may take to arrive.
        """
        with self.waiting():
            entered = self._large.acquire(timeout=self.seconds)
        if not entered:
            raise RequestTimeout

    def leave_large(self) -> None:
        """Lets another request read a large body."""
        self._large.release()


class _Pause(AbstractContextManager[None]):
    __slots__ = ("_turns",)

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __enter__(self) -> None:
        self._turns.end()

    def __exit__(self, *_: object) -> None:
        self._turns.begin()


class _Body:
    """The body of a request, read in its sender's time and not in the worker's. It has `read` alone."""

    def __init__(self, turns: Turns, within: _Readable) -> None:
        self._turns = turns
        self._within = within
        self._ahead = b""
        self._length = 0
        self._large = False
        self._waited = 0.0

    def read_ahead(self, length: int) -> None:
        """Reads a short body before the request has its turn, which then need not be given up for it."""
        started = time.monotonic()
        while len(self._ahead) < length and (piece := self._within.read(length - len(self._ahead))):
            self._ahead += piece
        self._waited = time.monotonic() - started

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `MAX_BODY` of them even where more are asked for; none at the end.

        Raises:
            RequestTimeout: The sender is too slow.
        """
        if self._ahead:
            asked = len(self._ahead) if size < 0 else size
            piece, self._ahead = self._ahead[:asked], self._ahead[asked:]
        else:
            piece = self._next(size)
        self._length += len(piece)
        if self._waited >= self._turns.seconds:
            # The connection may have been ended, and what came until then may look whole without being so.
            raise RequestTimeout
        return piece

    def close(self) -> None:
        """Lets another request grow large, if this one did."""
        if self._large:
            self._turns.leave_large()

    def _next(self, size: int) -> bytes:
        if self._length >= MAX_BODY and not self._large:
            self._turns.enter_large()
            self._large = True
        at_most = MAX_BODY if self._large else MAX_BODY - self._length
        started = time.monotonic()
        with self._turns.waiting():
            piece = self._within.read(at_most if size < 0 else min(size, at_most))
        self._waited += time.monotonic() - started
        return piece


@dataclass(slots=True)
class _Connection:
    """What was seen of a connection.

    Attributes:
        sent: Bytes that the service sent.
        received: Bytes that it received.
        answered: How many it had received when it last sent some.
        asked_at: Since when it has received more than that; None where it has not.
        changed_at: When one of the first two last changed.
    """

    sent: int
    received: int
    answered: int
    asked_at: float | None
    changed_at: float

    def look(self, sent: int, received: int, now: float) -> None:
        """Takes note of what is to be seen now, in monotonic seconds."""
        if (sent, received) != (self.sent, self.received):
            self.changed_at = now
        if sent != self.sent:
            self.answered, self.asked_at = received, None
        elif received > self.answered and self.asked_at is None:
            self.asked_at = now
        self.sent, self.received = sent, received

    def is_overdue(self, now: float, seconds: float) -> bool:
        """Whether it has been in the middle of a request, or silent, for so long."""
        return now - min(self.changed_at, now if self.asked_at is None else self.asked_at) >= seconds


def _watch(seconds: float) -> None:
    """Ends overdue connections as long as the process lives.

    A head may take `seconds`, after which the server ends it, and a body may take the same time. A connection is
    overdue if it has completed no request, or was silent, for three times as long.
    """
    seen: dict[int, _Connection] = {}
    while True:
        time.sleep(min(1.0, seconds / 4))
        seen = _end_overdue(seen, time.monotonic(), 3 * seconds)


def _end_overdue(seen: dict[int, _Connection], now: float, seconds: float) -> dict[int, _Connection]:
    """Stops reading from overdue connections.

    Args:
        seen: The result of the last call.
        now: The moment, in monotonic seconds.
        seconds: How long a connection may take.

    Returns:
        The current connections by inode.
    """
    found: dict[int, _Connection] = {}
    for connection, inode in _connections():
        with suppress(OSError, struct.error):
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _OFFSET + _SENT_AND_RECEIVED.size)
            sent, received = _SENT_AND_RECEIVED.unpack_from(info, _OFFSET)
            known = found[inode] = seen.get(inode) or _Connection(sent, received, received, now, now)
            known.look(sent, received, now)
            if known.is_overdue(now, seconds) and os.fstat(connection.fileno()).st_ino == inode:
                connection.shutdown(socket.SHUT_RD)
    return found


def _connections() -> Iterator[tuple[socket.socket, int]]:
    """The process's accepted TCP connections with their inodes; none but on Linux.

    Each is looked at through its own descriptor, which is never copied and never closed: to close any descriptor of a
    file, a copy as well, takes away every lock that the process has on that file, and SQLite's are of that kind.
    """
    try:
        files = list(_FILES.iterdir())
    except OSError:
        # No such folder, or no descriptor left to open it with: the thread goes on, and looks again later.
        return
    for file in files:
        with suppress(OSError):
            target = str(file.readlink())
            if not target.startswith("socket:"):
                continue
            looked_at = socket.socket(fileno=int(file.name))
            try:
                if _is_accepted(looked_at):
                    yield looked_at, int(target[len("socket:[") : -1])
            finally:
                looked_at.detach()


def _is_accepted(connection: socket.socket) -> bool:
    """Whether a socket is a connection to the server's own port, and not to a database."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
        return False
    listens = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return not listens and connection.getsockname()[1] == int(os.environ[PORT_VARIABLE])
