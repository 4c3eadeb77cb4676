"""Deadlines over real sockets, connections after forks and in several event loops, cancellation."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import httpx
import pytest

from gate.client import AnswerUnusable, AsyncClient, Client, Unreachable, operations
from gate.client.connection import Secret
from gate.client.transport.async_engine import AsyncEngine
from gate.client.transport.engine import Credentials
from gate.client.transport.flow import Do, Flow
from gate.client.transport.transport import _DeadlineBackend

BODY: Final = json.dumps({"keys": [], "active_key_id": None}).encode()
HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY)
# Longer than any deadline here: who waits for the end of a slow answer gets it, and the test fails.
PIECES: Final = 200
PAUSE: Final = 0.05

Behave = Callable[[socket.socket], None]


class Server:
    """Answers each connection in a way of its own.

    Attributes:
        url: Where it is.
        accepted: How many connections there were.
    """

    def __init__(self, behave: Behave) -> None:
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.accepted = 0
        self._stopped = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self._behave(connection)

    def stop(self) -> None:
        self._stopped.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def serving(behave: Behave) -> Iterator[Server]:
    server = Server(behave)
    try:
        yield server
    finally:
        server.stop()


def read_head(connection: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError
        received += part


def at_once(connection: socket.socket) -> None:
    while True:
        read_head(connection)
        connection.sendall(HEAD + BODY)


def drip(connection: socket.socket, content: bytes) -> None:
    for at in range(len(content)):
        connection.sendall(content[at : at + 1])
        time.sleep(PAUSE)


def dripping_head(connection: socket.socket) -> None:
    read_head(connection)
    filler = b"x-filler: " + b"x" * PIECES + b"\r\n"
    drip(connection, b"HTTP/1.1 200 OK\r\n" + filler)
    connection.sendall(HEAD.partition(b"\r\n")[2] + BODY)


def dripping_body(connection: socket.socket) -> None:
    read_head(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(PIECES):
        connection.sendall(b"1\r\n \r\n")
        time.sleep(PAUSE)
    connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY))


def informing_for_ever(connection: socket.socket) -> None:
    read_head(connection)
    for _ in range(PIECES):
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(PAUSE)
    connection.sendall(HEAD + BODY)


def silent(connection: socket.socket) -> None:
    read_head(connection)
    time.sleep(PIECES * PAUSE)
    connection.sendall(HEAD + BODY)


def deaf(connection: socket.socket) -> None:
    time.sleep(PIECES * PAUSE)
    while True:
        read_head(connection)
        connection.sendall(HEAD + BODY)


SLOW: Final = [dripping_head, dripping_body, informing_for_ever, silent, deaf]


@pytest.mark.parametrize("behave", SLOW)
def test_a_slow_answer_ends_with_the_deadline(behave: Behave) -> None:
    with serving(behave) as server, Client(server.url, timeout=0.4, tries=1) as client:
        with pytest.raises(Unreachable) as late:
            client.list_receipt_keys()
        assert late.value.code == "GATE_TIMED_OUT"


@pytest.mark.parametrize("behave", SLOW)
def test_a_slow_answer_ends_with_the_deadline_in_an_event_loop(behave: Behave) -> None:
    async def ask(url: str) -> None:
        async with AsyncClient(url, timeout=0.4, tries=1) as client:
            with pytest.raises(Unreachable) as late:
                await client.list_receipt_keys()
            assert late.value.code == "GATE_TIMED_OUT"

    with serving(behave) as server:
        asyncio.run(ask(server.url))


def test_a_large_body_that_is_taken_in_slowly_ends_with_the_deadline() -> None:
    def sipping(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(PIECES):
            connection.recv(4096)
            time.sleep(PAUSE)
        while connection.recv(1 << 20):
            pass

    record = {"padding": "x" * 12_000_000}
    with serving(sipping) as server, Client(server.url, timeout=0.4, tries=1) as client:
        with pytest.raises(Unreachable) as late:
            client.verify_exported_record(record)
        assert late.value.code == "GATE_TIMED_OUT"


def test_a_deadline_of_one_call_goes_before_that_of_the_client() -> None:
    with serving(silent) as server, Client(server.url, timeout=60, tries=1) as client, pytest.raises(Unreachable):
        client.send(operations.list_receipt_keys(), timeout=0.2)


def test_an_answer_that_is_cut_off_is_none() -> None:
    def cut(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(HEAD + BODY[:-3])

    with serving(cut) as server, Client(server.url, tries=1) as client:
        with pytest.raises(Unreachable) as gone:
            client.list_receipt_keys()
        assert gone.value.code == "GATE_UNREACHABLE"


@pytest.mark.parametrize("header", [b"set-cookie: a=" + b"x" * 4000, b"location: http://xn--a/"])
def test_nothing_that_a_server_sends_besides_comes_back_to_it_or_is_followed(header: bytes) -> None:
    heads: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        while True:
            received = connection.recv(65536)
            if not received:
                return
            heads.append(received)
            status = b"302 Found" if header.startswith(b"location") else b"200 OK"
            connection.sendall(HEAD.replace(b"200 OK", status).replace(b"\r\n", b"\r\n" + header + b"\r\n", 1) + BODY)

    async def ask(url: str) -> None:
        async with AsyncClient(url, tries=1) as client:
            for _ in range(2):
                with suppress(AnswerUnusable):
                    await client.list_receipt_keys()

    with serving(answer) as server, Client(server.url, tries=1) as client:
        for _ in range(2):
            with suppress(AnswerUnusable):
                client.list_receipt_keys()
        asyncio.run(ask(server.url))
    assert len(heads) == 4
    assert max(map(len, heads)) < 500


def test_a_key_is_in_no_traceback_when_time_runs_out_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = _DeadlineBackend.connect_tcp

    def slow(*arguments: Any, **named: Any) -> Any:
        stream = connect(*arguments, **named)
        time.sleep(0.3)
        return stream

    monkeypatch.setattr(_DeadlineBackend, "connect_tcp", slow)
    with (
        serving(silent) as server,
        Client(server.url, key="dgk_1_notToBeSeen", timeout=0.2, tries=1) as client,
        pytest.raises(Unreachable) as late,
    ):
        client.find_decisions()
    shown = "".join(traceback.TracebackException.from_exception(late.value, capture_locals=True).format())
    assert "GATE_TIMED_OUT" in shown
    assert "notToBeSeen" not in shown


def test_a_key_is_in_no_traceback_of_a_proxys(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    transport = httpx.HTTPTransport(proxy=f"http://127.0.0.1:{port}")
    with (
        Client("http://gate.example", key="dgk_1_notToBeSeen", tries=1, transport=transport) as client,
        pytest.raises(Unreachable) as gone,
    ):
        client.find_decisions()
    shown = "".join(traceback.TracebackException.from_exception(gone.value, capture_locals=True).format())
    assert "ConnectError" in shown
    assert "notToBeSeen" not in shown


def test_nobody_there_is_said_with_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", tries=1) as client, pytest.raises(Unreachable, match="refused"):
        client.list_receipt_keys()


def test_a_connection_that_was_closed_meanwhile_is_made_anew() -> None:
    def once(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(HEAD + BODY)

    with serving(once) as server, Client(server.url) as client:
        assert client.list_receipt_keys() == client.list_receipt_keys()
        assert server.accepted == 2


def test_threads_share_a_client() -> None:
    with serving(at_once) as server, Client(server.url) as client:
        found: list[Any] = []
        threads = [
            threading.Thread(target=lambda: found.append([client.list_receipt_keys() for _ in range(20)]))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [len(answers) for answers in found] == [20] * 8


def test_a_forked_process_has_connections_of_its_own() -> None:
    with serving(at_once) as server, Client(server.url) as client:
        client.list_receipt_keys()
        before = server.accepted
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                client.list_receipt_keys()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        client.list_receipt_keys()
        assert server.accepted == before + 1


def test_one_client_serves_several_event_loops() -> None:
    with serving(at_once) as server:
        client = AsyncClient(server.url)

        async def ask() -> Any:
            async with client:
                return await client.list_receipt_keys()

        assert asyncio.run(ask()) == asyncio.run(ask())
        assert server.accepted == 2


def test_what_was_begun_when_its_caller_was_cancelled_is_known_before_the_caller_goes_on() -> None:
    engine = AsyncEngine("https://gate.example", Credentials(Secret(None, None), None), None)
    order: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def write() -> None:
        begun.set()
        go_on.wait(30)
        order.append("written")

    def flow() -> Flow[None]:
        try:
            yield Do(write)
        except asyncio.CancelledError:
            order.append("cancelled")
            yield Do(lambda: order.append("undone"))
            raise

    async def main() -> None:
        task = asyncio.create_task(engine.run(flow()))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert order == []
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert order == ["written", "cancelled", "undone"]
