"""A real service with someone in the line before it, who does what networks, proxies and forgers do.

gate = FaultyGate(server.url)
with gate.striking("decide", cut("answered")):
    Client(gate.url, ...).decide(request)              # raises Unreachable, and the service has decided

Every caller has a line of its own: it listens on its own port, and its faults strike nobody else. `FaultyApplication`
is the same without a server and a network: a transport for clients in this process, for faults that are in messages and
not in the bytes or the time that they take.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import orjson
from flask import Flask

from tests.end_to_end.site import PATIENCE
from tests.end_to_end.support import free_port

Fault = Callable[["Exchange"], None]

_CALLS: Final = (
    ("decide", re.compile(r"POST /api/decide")),
    ("execution", re.compile(r"POST /api/decision/[^/]+/execution")),
    ("outcome", re.compile(r"POST /api/decision/[^/]+/outcome")),
    ("resolution", re.compile(r"GET /api/decision/[^/]+/resolution")),
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
        self,
        request: Message,
        answered: Callable[[Message], Message],
        send: Callable[[bytes], object],
        ended: threading.Event,
    ) -> None:
        """Takes the request, the service's answers, and the way back to the caller."""
        self.request = request
        self._answered = answered
        self._send = send
        self._ended = ended

    def forward(self, **changes: Any) -> Message:
        """What the service answers to the request, or to one with other members."""
        return self._answered(replace(self.request, **changes))

    def send(self, content: bytes) -> None:
        """Sends the caller bytes."""
        try:
            self._send(content)
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


class Line:
    """The way to a service, for one caller.

    Attributes:
        url: Where it is.
        came: How many calls of each kind have come: decide, execution, outcome, resolution, read.
    """

    def __init__(self, url: str) -> None:
        """Takes its address."""
        self.url = url
        self.came: Counter[str] = Counter()
        self._faults: dict[str, Fault] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    @property
    def transport(self) -> Any:
        """The transport of its callers; None for the network."""
        return None

    @contextmanager
    def striking(self, call: str, fault: Fault) -> Iterator[None]:
        """Lets a fault strike every call of a kind while the block runs."""
        self._faults[call] = fault
        try:
            yield
        finally:
            del self._faults[call]

    def close(self) -> None:
        """Ends everything."""
        self._ended.set()

    def _answer(self, exchange: Exchange) -> None:
        call = next(name for name, pattern in _CALLS if pattern.fullmatch(exchange.request.start))
        with self._lock:
            self.came[call] += 1
        fault = self._faults.get(call)
        if fault is None:
            exchange.send(exchange.forward().wire())
        else:
            fault(exchange)


class FaultyGate(Line):
    """A line to a service over the network."""

    def __init__(self, service: str) -> None:
        """Listens for a service's callers."""
        address = urlsplit(service)
        self._service = (str(address.hostname), int(address.port or 0))
        self._port = free_port()
        super().__init__(f"http://127.0.0.1:{self._port}")
        self._open: set[socket.socket] = set()
        self._listening: socket.socket | None = None
        self.up()

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
        super().close()
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
                    self._answer(Exchange(request, self._answered, caller.sendall, self._ended))
        finally:
            with self._lock:
                self._open.discard(caller)

    def _answered(self, request: Message) -> Message:
        method, _, path = request.start.partition(" ")
        connection = http.client.HTTPConnection(*self._service, timeout=PATIENCE)
        try:
            connection.request(method, path, request.body, dict(request.headers))
            answer = connection.getresponse()
            return Message(str(answer.status), _carried(answer.getheaders()), answer.read())
        finally:
            connection.close()


class FaultyApplication(Line, httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A line to an application in this process, for clients of either kind."""

    def __init__(self, application: Flask) -> None:
        """Takes the application."""
        super().__init__("http://gate.example")
        self._application = httpx.WSGITransport(application)

    @property
    def transport(self) -> Any:
        """See `Line.transport`."""
        return self

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answers a `Client`."""
        request.read()
        return self._exchanged(request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answers an `AsyncClient`."""
        await request.aread()
        return self._exchanged(request)

    def _exchanged(self, request: httpx.Request) -> httpx.Response:
        start = f"{request.method} {request.url.raw_path.decode()}"
        came, sent = Message(start, _carried(request.headers.items()), request.content), bytearray()
        self._answer(Exchange(came, self._answered, sent.extend, self._ended))
        answer = http.client.HTTPResponse(_Received(bytes(sent)))  # type: ignore[arg-type]
        answer.begin()
        return httpx.Response(answer.status, headers=answer.getheaders(), stream=httpx.ByteStream(answer.read()))

    def _answered(self, request: Message) -> Message:
        method, _, path = request.start.partition(" ")
        asked = httpx.Request(method, f"{self.url}{path}", headers=dict(request.headers), content=request.body)
        answer = self._application.handle_request(asked)
        return Message(str(answer.status_code), _carried(answer.headers.items()), answer.read())


class _Received:
    """What was sent, for a reader that wants a socket."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._content)


def _carried(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers if name.lower() not in _OF_THE_LINE}


def _read(stream: Any) -> Message | None:
    start = stream.readline().decode().strip()
    if not start:
        return None
    headers = {}
    while line := stream.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", 0)))
    return Message(start.rpartition(" ")[0], _carried(headers.items()), body)


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
