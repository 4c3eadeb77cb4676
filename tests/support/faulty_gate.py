"""A real service with someone in the line before it, who does what networks, proxies and forgers do.

gate = FaultyGate(server.url)
with gate.striking("decide", cut("answered")):
    Client(gate.url, ...).decide(request)              # raises Unreachable, and the service has decided

Every caller has a line of its own: it listens on its own port, and its faults strike nobody else.
"""

from __future__ import annotations

import http.client
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from tests.end_to_end.site import PATIENCE
from tests.end_to_end.support import free_port

Fault = Callable[["Exchange"], None]

_CALLS: Final = (
    ("decide", re.compile(r"POST /api/decide")),
    ("execution", re.compile(r"POST /api/decision/[^/]+/execution")),
    ("outcome", re.compile(r"POST /api/decision/[^/]+/outcome")),
    ("read", re.compile(r"GET /api/decision/.*")),
)
# What each end says of its own connection.
_OF_THE_LINE: Final = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer.

    Attributes:
        start: The method and path, or the status.
        headers: The headers, by their names in small letters.
        body: The body.
    """

    start: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def document(self) -> Any:
        """The body's JSON."""
        return orjson.loads(self.body)

    def wire(self, *, length: int | None = None) -> bytes:
        """An answer as it is sent; `length` is what it announces, where that is not so."""
        headers = {**self.headers, "content-length": str(len(self.body) if length is None else length)}
        lines = [f"HTTP/1.1 {self.start} told", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        return "\r\n".join(lines).encode() + self.body


class LineCut(Exception):
    """The connection ends."""


class Exchange:
    """One request on its way.

    Attributes:
        request: The request.
    """

    def __init__(
        self, request: Message, caller: socket.socket, service: tuple[str, int], ended: threading.Event
    ) -> None:
        self.request = request
        self._caller = caller
        self._service = service
        self._ended = ended

    def forward(self, **changes: Any) -> Message:
        """What the service answers to the request, or to one with other members."""
        request = replace(self.request, **changes)
        method, _, path = request.start.partition(" ")
        connection = http.client.HTTPConnection(*self._service, timeout=PATIENCE)
        try:
            connection.request(method, path, request.body, dict(request.headers))
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders() if name.lower() not in _OF_THE_LINE}
            return Message(str(answer.status), headers, answer.read())
        finally:
            connection.close()

    def send(self, content: bytes) -> None:
        """Sends the caller bytes."""
        try:
            self._caller.sendall(content)
        except OSError as error:
            raise LineCut from error

    def drip(self, content: bytes, pause: float) -> None:
        """Sends the caller a byte now and then, in seconds, until it has gone away or has everything."""
        for at in range(len(content)):
            self.send(content[at : at + 1])
            self.pause(pause)

    def pause(self, seconds: float) -> None:
        """Lets time pass, unless the line is closed meanwhile."""
        if self._ended.wait(seconds):
            raise LineCut


class FaultyGate:
    """A line to a service.

    Attributes:
        url: Where it listens.
        came: How many calls of each kind have come: decide, execution, outcome, read.
    """

    def __init__(self, service: str) -> None:
        """Listens for a service's callers."""
        address = urlsplit(service)
        self._service = (str(address.hostname), int(address.port or 0))
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.came: Counter[str] = Counter()
        self._faults: dict[str, Fault] = {}
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._ended = threading.Event()
        self._listening: socket.socket | None = None
        self.up()

    @contextmanager
    def striking(self, call: str, fault: Fault) -> Iterator[None]:
        """Lets a fault strike every call of a kind while the block runs."""
        self._faults[call] = fault
        try:
            yield
        finally:
            del self._faults[call]

    @contextmanager
    def away(self) -> Iterator[None]:
        """Lets nothing listen while the block runs."""
        self.down()
        try:
            yield
        finally:
            self.up()

    def up(self) -> None:
        """Listens again."""
        self._listening = socket.create_server(("127.0.0.1", self._port), backlog=64)
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def down(self) -> None:
        """Ends every connection, and listens no longer."""
        listening, self._listening = self._listening, None
        if listening is not None:
            # Closing alone does not wake who waits in accept.
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        with self._lock:
            for caller in self._open:
                with suppress(OSError):
                    caller.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends everything."""
        self._ended.set()
        self.down()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                caller, _ = listening.accept()
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with self._lock:
            self._open.add(caller)
            if self._listening is None:
                caller.close()
        try:
            with caller, caller.makefile("rb") as stream, suppress(LineCut, OSError):
                while (request := _read(stream)) is not None:
                    self._answer(Exchange(request, caller, self._service, self._ended))
        finally:
            with self._lock:
                self._open.discard(caller)

    def _answer(self, exchange: Exchange) -> None:
        call = next(name for name, pattern in _CALLS if pattern.fullmatch(exchange.request.start))
        with self._lock:
            self.came[call] += 1
        fault = self._faults.get(call)
        if fault is None:
            exchange.send(exchange.forward().wire())
        else:
            fault(exchange)


def _read(stream: Any) -> Message | None:
    start = stream.readline().decode().strip()
    if not start:
        return None
    headers = {}
    while line := stream.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", 0)))
    carried = {name: value for name, value in headers.items() if name not in _OF_THE_LINE}
    return Message(start.rpartition(" ")[0], carried, body)


def cut(where: str) -> Fault:
    """Ends the connection: once the request is `asked` and goes no further, once it is `answered` and nothing is
    passed on, or in the `middle` of the answer.
    """

    def strike(exchange: Exchange) -> None:
        if where != "asked":
            wire = exchange.forward().wire()
            if where == "middle":
                exchange.send(wire[: -len(wire) // 3])
        raise LineCut

    return strike


def answering(answer: Message) -> Fault:
    """Answers in the service's place, which hears nothing."""
    return lambda exchange: exchange.send(answer.wire())


def spoilt(spoil: Callable[[Message], Message], *, announces: int = 0) -> Fault:
    """Changes the service's answer, and announces so many bytes more than there are, or fewer."""

    def strike(exchange: Exchange) -> None:
        answer = spoil(exchange.forward())
        exchange.send(answer.wire(length=len(answer.body) + announces))
        if announces > 0:
            exchange.pause(PATIENCE)

    return strike


def slow(part: str) -> Fault:
    """Is longer about a part of the answer than anyone waits: all of it (`answer`), its `headers` or its `body`."""

    def strike(exchange: Exchange) -> None:
        answer = exchange.forward()
        head, _, body = answer.wire().partition(b"\r\n\r\n")
        if part == "answer":
            exchange.pause(PATIENCE)
        elif part == "headers":
            exchange.drip(head, 0.1)
        else:
            exchange.send(head + b"\r\n\r\n")
            exchange.drip(body, 0.1)

    return strike


def asking_otherwise(change: Callable[[Message], Message]) -> Fault:
    """Changes the request before the service sees it."""

    def strike(exchange: Exchange) -> None:
        changed = change(exchange.request)
        exchange.send(exchange.forward(start=changed.start, headers=changed.headers, body=changed.body).wire())

    return strike


class Hold:
    """A fault that lets nothing go on: from the request on, or from the answer on.

    Attributes:
        reached: Set once that is so.
    """

    def __init__(self, what: str) -> None:
        """Takes what is held back: the `request`, or the `answer`."""
        self.reached = threading.Event()
        self._what = what

    def __call__(self, exchange: Exchange) -> None:
        """Holds it back."""
        if self._what == "answer":
            exchange.forward()
        self.reached.set()
        exchange.pause(PATIENCE)
