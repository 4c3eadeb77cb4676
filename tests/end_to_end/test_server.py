"""The real server: two processes, concurrent requests, equal keys, draining on a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.support import Server, free_port, post_decide, running
from tests.support import sample_request

GATE = str(Path(sys.executable).with_name("gate"))


def create_key(home: Path) -> str:
    done = subprocess.run(
        [GATE, "keys", "create", "--scope", "acme", "--plan", "unlimited", "--home", str(home), "--json"],
        capture_output=True,
        check=True,
    )
    key: str = json.loads(done.stdout)["key"]
    return key


@pytest.fixture
def key(tmp_path: Path) -> str:
    return create_key(tmp_path / "home")


def serving(home: Path, workers: int) -> AbstractContextManager[Server]:
    port = free_port()
    command = [GATE, "serve", "--home", str(home), "--port", str(port), "--workers", str(workers)]
    return running(command, home.parent, f"http://127.0.0.1:{port}", "is ready at")


@pytest.fixture
def server(tmp_path: Path, key: str) -> Iterator[Server]:
    with serving(tmp_path / "home", workers=2) as started:
        yield started


@pytest.fixture
def single(tmp_path: Path, key: str) -> Iterator[Server]:
    """One worker: once it answers, none is still starting, and a signal meets a server that is up as a whole."""
    with serving(tmp_path / "home", workers=1) as started:
        yield started


def chain_check(home: Path) -> dict[str, Any]:
    done = subprocess.run([GATE, "chain", "check", "--home", str(home), "--json"], capture_output=True, check=False)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def in_threads(count: int, work: Any) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_concurrent_decisions_make_one_whole_chain(server: Server, key: str, tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = []

    def work(_: int) -> None:
        with httpx.Client(headers={"x-api-key": key}, timeout=30, trust_env=False) as client:
            for _ in range(25):
                response = client.post(f"{server.url}/api/decide", json=sample_request())
                assert response.status_code == 200, response.text
                answers.append(response.json())

    in_threads(8, work)
    assert sorted(answer["audit_chain"]["chain_position"] for answer in answers) == list(range(1, 201))
    checked = chain_check(tmp_path / "home")
    assert (checked["whole"], checked["chains"][0]["entries_checked"]) == (True, 200)


def test_one_key_from_many_clients_makes_one_record(server: Server, key: str, tmp_path: Path) -> None:
    bodies: list[bytes] = []
    statuses: list[str] = []
    start = threading.Barrier(16)

    def work(number: int) -> None:
        # Every second client spells the same numbers differently: the payload is the same.
        request = sample_request(discount_percent=10.0 if number % 2 else 10, margin_percent=22)
        start.wait()
        response = post_decide(server.url, key, request, **{"x-idempotency-key": "one"})
        bodies.append(response.content)
        statuses.append(response.headers["x-idempotency-status"])

    in_threads(16, work)
    assert len(set(bodies)) == 1
    assert sorted(statuses) == ["created"] + ["replayed"] * 15
    other = post_decide(
        server.url, key, sample_request(discount_percent=11, margin_percent=22), **{"x-idempotency-key": "one"}
    )
    assert other.status_code == 409
    assert chain_check(tmp_path / "home")["chains"][0]["entries_checked"] == 1


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_requests_in_flight_finish(single: Server, key: str, tmp_path: Path, sign: int) -> None:
    acknowledged: list[str] = []
    broken: list[str] = []
    going = threading.Barrier(5)

    def work(_: int) -> None:
        with httpx.Client(headers={"x-api-key": key}, timeout=30, trust_env=False) as client:
            for number in range(100_000):
                if number == 3:
                    going.wait()
                try:
                    response = client.post(f"{single.url}/api/decide", json=sample_request())
                except httpx.ConnectError:
                    return
                except httpx.TransportError as error:
                    broken.append(repr(error))
                    return
                assert response.status_code == 200
                acknowledged.append(response.json()["decision_id"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    going.wait()
    code = single.stop(sign)
    for thread in threads:
        thread.join(60)
    assert code == 0
    assert "Traceback" not in single.text()
    assert len(acknowledged) >= 12
    # What a client saw broken was a connection that the server had closed between two requests: no decision was made
    # that nobody heard of.
    checked = chain_check(tmp_path / "home")
    assert (checked["whole"], checked["chains"][0]["entries_checked"]) == (True, len(acknowledged)), broken


def test_a_disabled_key_is_refused_by_every_process_at_once(server: Server, key: str, tmp_path: Path) -> None:
    assert post_decide(server.url, key, sample_request()).status_code == 200
    subprocess.run(
        [GATE, "keys", "disable", key.split("_")[1], "--home", str(tmp_path / "home")], capture_output=True, check=True
    )
    for _ in range(8):
        assert post_decide(server.url, key, sample_request()).status_code == 403


def test_a_rotated_signing_key_is_used_by_every_process_at_once(server: Server, key: str, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    before = post_decide(server.url, key, sample_request()).json()
    rotated = subprocess.run(
        [GATE, "signing-keys", "rotate", "--home", home, "--json"], capture_output=True, check=True
    )
    new = json.loads(rotated.stdout)["key_id"]
    after = [post_decide(server.url, key, sample_request()).json() for _ in range(8)]
    assert {record["receipt_key_id"] for record in after} == {new} != {before["receipt_key_id"]}
    for record in (before, *after):
        verified = httpx.post(f"{server.url}/api/decision/verify", json=record, timeout=30, trust_env=False)
        assert verified.json()["verified"] is True


def test_a_killed_worker_is_replaced(server: Server, key: str) -> None:
    children = subprocess.run(
        ["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    if not children:
        pytest.skip("pgrep is not installed")
    import os

    for child in children:
        os.kill(int(child), signal.SIGKILL)
    for _ in range(300):
        try:
            if post_decide(server.url, key, sample_request()).status_code == 200:
                return
        except httpx.TransportError:
            threading.Event().wait(0.1)
    raise AssertionError(server.text())


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"401"),
        (b"content-type: application/json\r\ncontent-length: 99999999999\r\n\r\n", b"413"),
    ],
)
def test_odd_framing_gets_an_answer(server: Server, head: bytes, status: bytes) -> None:
    import socket

    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"POST /api/decide HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + head)
        answer = connection.recv(65536)
    assert answer.split(b" ")[1] == status


def test_a_chunked_body_is_never_cut_at_the_limit(server: Server, key: str, tmp_path: Path) -> None:
    request = json.dumps(sample_request()).encode()
    padding = b" " * (1024 * 1024 - len(request))

    def post(*pieces: bytes) -> int:
        headers = {"x-api-key": key, "content-type": "application/json"}
        answer = httpx.post(
            f"{server.url}/api/decide", content=iter(pieces), headers=headers, timeout=30, trust_env=False
        )
        return answer.status_code

    assert post(request, padding, b'GARBAGE","verdict":"no"}') == 413
    assert post(request, padding, b" ") == 413
    assert post(request, padding) == 200
    assert chain_check(tmp_path / "home")["chains"][0]["entries_checked"] == 1


def test_serving_where_nothing_can_be_written_is_refused(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    done = subprocess.run(
        [GATE, "serve", "--home", str(blocked / "home"), "--port", str(free_port())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "INSTANCE_UNWRITABLE" in done.stderr) == (2, True)
