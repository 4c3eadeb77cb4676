"""Hostile HTTP against a real server with two workers: framing that two readers could read in two ways, senders that
are slow or have no end, bodies that inflate. Each gets a documented error or, where the HTTP library refuses what it
cannot frame before the service sees it, a bare 4xx or a closed connection; the server goes on, and nothing is recorded
that was not asked for.
"""

from __future__ import annotations

import json
import re
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from gate.encoding import resources
from gate.ledger import Ledger
from tests.end_to_end.site import PATIENCE, Site, connections_of, side_by_side, wait_until, workers_of
from tests.end_to_end.support import Server, post_decide
from tests.support.samples import cases, sample_request

REQUEST_SECONDS: Final = 4
SLOW: Final = 300
MEGABYTE: Final = 1024 * 1024
# The last byte of a lock that a process keeps as long as it has the ledger open; those of statements end below it.
_SQLITE_OPEN: Final = 128

_BODY: Final = json.dumps(sample_request())
_HIDDEN: Final = (
    "POST /api/decide HTTP/1.1\r\nhost: x\r\nx-api-key: <KEY>\r\ncontent-type: application/json\r\n"
    "content-length: <LENGTH>\r\n\r\n<BODY>"
)
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ([0-9]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Service:
    """A running server, its ledger and a key.

    Attributes:
        site: Its instance.
        server: Its processes.
        ledger: Its ledger, as another process sees it.
        key: A key of the scope `acme`.
    """

    site: Site
    server: Server
    ledger: Ledger
    key: str

    def connect(self) -> socket.socket:
        """A connection."""
        host, _, port = self.server.url.removeprefix("http://").rpartition(":")
        return socket.create_connection((host, int(port)), timeout=PATIENCE)

    def records(self) -> int:
        """How many records the scope has."""
        return self.ledger.entries.head(self.ledger.directory.scope("acme").scope_id).size

    def decide(self) -> None:
        """Has an ordinary request answered."""
        assert post_decide(self.server.url, self.key, sample_request()).status_code == 200

    def head(self, *lines: str, path: str = "/api/decide") -> bytes:
        """The head of a POST with a key and JSON, and with further lines."""
        known = [f"POST {path} HTTP/1.1", "host: x", f"x-api-key: {self.key}", "content-type: application/json"]
        return "\r\n".join([*known, *lines, "", ""]).encode()

    def resident_mb(self) -> float:
        """The memory of the workers together."""
        found = [Path(f"/proc/{pid}/status").read_text() for pid in workers_of(self.server)]
        return sum(int(text.partition("VmRSS:")[2].split()[0]) for text in found) / 1024


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that waits for a request for a few seconds only."""
    site = Site(tmp_path_factory.mktemp("hostile") / "home", None)
    key = site.create_key("acme")
    with site.serving(2, "--request-seconds", str(REQUEST_SECONDS)) as server, site.ledger() as ledger:
        yield Service(site, server, ledger, key)
        assert "Traceback" not in server.text()
        assert len(site.chain("acme")) == Service(site, server, ledger, key).records()


def _filled_in(text: str, key: str) -> bytes:
    """What a case sends."""
    body = _BODY.replace("\r", "")
    hidden = _HIDDEN.replace("<KEY>", key).replace("<LENGTH>", str(len(body))).replace("<BODY>", body)
    for name, value in {
        "<KEY>": key,
        "<BODY>": body,
        "<LENGTH>": str(len(body)),
        "<HEXLENGTH>": f"{len(body):X}",
        "<HIDDENLENGTH>": str(len(hidden)),
        "<64KB>": "a" * 65536,
        "<1MB>": "a" * MEGABYTE,
        "<10000 HEADERS>": "".join(f"x-{number}: a\r\n" for number in range(10_000)),
    }.items():
        text = text.replace(name, value)
    return text.encode("latin-1")


def _split(received: bytes) -> tuple[list[tuple[int, bytes]], bytes]:
    """The whole answers that were received, status and body of each, and what is left."""
    answers = []
    while b"\r\n\r\n" in received:
        head, _, rest = received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        size = int(length[1]) if length else 0
        if len(rest) < size:
            break
        answers.append((int(head.split()[1]), rest[:size]))
        received = rest[size:]
    return answers, received


def _told(status: int, body: bytes) -> str:
    """An answer as the cases write it: the status, with the code of an error of ours. An error has to be documented."""
    if not body or status < 400:
        return str(status)
    error: dict[str, Any] = json.loads(body)
    jsonschema.Draft202012Validator(resources.schema("error")).validate(error)
    return f"{status} {error['error']}"


@pytest.mark.parametrize("case", cases("hostile_http"), ids=lambda case: case["name"])
def test_a_request_gets_its_own_answers_and_hides_no_other(service: Service, case: dict[str, Any]) -> None:
    before = service.records()
    received, cut = b"", False
    with service.connect() as connection:
        try:
            connection.sendall(_filled_in(case["send"], service.key))
            if case.get("then") != "half-close":
                while len(_split(received)[0]) < len(case["answers"]) and (piece := connection.recv(65536)):
                    received += piece
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                received += piece
        except TimeoutError:
            raise
        except OSError:
            cut = True
    answers, rest = _split(received)
    told = [_told(*answer) for answer in answers]
    # A server that closes on a sender in full flow may take its own last words with it.
    assert told == (case["answers"][: len(told)] if cut else case["answers"])
    assert rest == b""
    assert service.records() - before == case["records"]
    assert case["records"] <= case["answers"].count("200")


def test_slow_senders_hold_up_nobody_and_are_not_waited_for(service: Service) -> None:
    before = service.records()
    with ExitStack() as stack:
        bodies, heads = (
            [stack.enter_context(service.connect()) for _ in range(count)] for count in (SLOW // 2, SLOW - SLOW // 2)
        )
        for number, connection in enumerate(bodies):
            connection.sendall(service.head(f"content-length: {len(_BODY)}") + b"{"[: number % 2])
        # A sender that waits for leave, one that was answered before, and one that was never heard of again.
        others = [stack.enter_context(service.connect()) for _ in range(3)]
        others[0].sendall(service.head("expect: 100-continue", f"content-length: {len(_BODY)}"))
        others[1].sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n" + service.head(f"content-length: {len(_BODY)}"))
        others[2].sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
        for connection in heads:
            connection.sendall(service.head()[:-5])
        wait_until(lambda: sum(connections_of(service.server).values()) >= SLOW)
        dripping = {*bodies[1::3][:20], *heads[:20]}
        for _ in range(20):
            service.decide()
            for connection in dripping:
                with suppress(OSError):
                    connection.sendall(b" ")
        for connection in heads:
            with suppress(ConnectionError):
                assert connection.recv(65536) == b""
        for connection in bodies:
            answer = b""
            with suppress(ConnectionError):
                while piece := connection.recv(65536):
                    answer += piece
            if answer or connection not in dripping:
                assert [_told(*each) for each in _split(answer)[0]] == ["400 SVC_API_JSON_INVALID"]
                assert b"took too long to arrive" in answer
        for connection in others:
            with suppress(ConnectionError):
                while connection.recv(65536):
                    pass
    service.decide()
    assert service.records() - before == 21


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel does not tell its locks")
def test_looking_at_slow_senders_takes_no_lock_from_the_ledger(service: Service) -> None:
    ledger = service.site.home / "ledger.db"

    def held() -> set[tuple[str, str]]:
        """Who holds the ledger open, by process and file: its own locks last, those of a statement come and go."""
        inodes = {str(ledger.with_name(ledger.name + suffix).stat().st_ino) for suffix in ("", "-shm", "-wal")}
        locks = (line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" not in line)
        return {
            (process, file.rpartition(":")[2])
            for _, _, _, _, process, file, _, end in locks
            if file.rpartition(":")[2] in inodes and int(end) >= _SQLITE_OPEN
        }

    service.decide()
    before = held()
    assert before
    with ExitStack() as stack:
        slow = [stack.enter_context(service.connect()) for _ in range(8)]
        for connection in slow:
            connection.sendall(service.head(f"content-length: {len(_BODY)}") + b"{")
        for connection in slow:
            # Once it is ended it was looked at, and so were all descriptors.
            with suppress(ConnectionError):
                while connection.recv(65536):
                    pass
        assert held() >= before
    # The last process to close a file that nobody has locked would take its write-ahead log away.
    service.site.gate("keys", "list")
    assert ledger.with_name("ledger.db-wal").exists()
    service.decide()


@pytest.mark.parametrize(("path", "limit"), [("/api/decide", MEGABYTE), ("/api/decision/verify", 16 * MEGABYTE)])
def test_a_body_without_an_end_is_cut_off_at_the_limit(service: Service, path: str, limit: int) -> None:
    before, memory = service.records(), service.resident_mb()
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"

    def send(_: int) -> tuple[int, list[str]]:
        sent, received = 0, b""
        with service.connect() as connection, suppress(ConnectionError):
            connection.sendall(service.head("transfer-encoding: chunked", path=path))
            try:
                while sent < 1024 * MEGABYTE:
                    connection.sendall(chunk)
                    sent += 65536
            except ConnectionError:
                pass
            while piece := connection.recv(65536):
                received += piece
        return sent, [_told(*answer) for answer in _split(received)[0]]

    for sent, told in side_by_side(send, range(8), threads=4):
        # What the kernel holds for both ends comes on top: by its settings that can be some 40 MB.
        assert sent < limit + 128 * MEGABYTE
        assert told in (["400 SVC_API_JSON_INVALID"], [])
    service.decide()
    assert service.records() - before == 1
    assert service.resident_mb() - memory < 4 * 16 * 2 + 64


def _bomb() -> bytes:
    """Close to a gigabyte of zeros, deflated to less than a body may have."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    # After a full flush nothing refers to what came before it, so that the same bytes can stand again and again.
    part = deflate.compress(bytes(16 * MEGABYTE)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return part * (MEGABYTE // len(part) - 1) + b"\x03\x00"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "x-gzip", "compress", "identity", "gzip, gzip"])
def test_a_compressed_body_is_not_inflated(service: Service, coding: str) -> None:
    bomb = _bomb()
    before, memory = service.records(), service.resident_mb()
    with service.connect() as connection:
        connection.sendall(service.head(f"content-encoding: {coding}", f"content-length: {len(bomb)}") + bomb)
        received = b""
        while not _split(received)[0] and (piece := connection.recv(65536)):
            received += piece
    assert [_told(*answer) for answer in _split(received)[0]] == ["415 SVC_API_MEDIA_TYPE_UNSUPPORTED"]
    assert service.resident_mb() - memory < 32
    assert service.records() == before


def test_the_server_answers_after_all_of_it(service: Service) -> None:
    before = service.records()
    side_by_side(lambda _: service.decide(), range(20))
    assert service.records() - before == 20
    assert len(workers_of(service.server)) == 2
