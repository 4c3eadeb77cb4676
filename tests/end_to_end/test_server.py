"""The real server: two processes, concurrent requests, equal keys, draining on a signal."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.site import Site, analytics_of, asked, decides, wait_until, workers_of
from tests.end_to_end.support import Server, free_port, post_decide, running
from tests.gate.adapters.support import eventually, refusing
from tests.support.samples import sample_request
from tests.support.syscalls import descendants


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The instance of the server that most tests share, each with a scope of its own. One test kills its workers."""
    return Site(tmp_path_factory.mktemp("server") / "home", None)


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[Server]:
    """The server that they share."""
    site.gate("scopes", "create", "first")
    with site.serving(workers=2) as started:
        yield started


@pytest.fixture
def own(tmp_path: Path) -> Site:
    """An instance for a test that ends its server or a part of it."""
    return Site(tmp_path / "home", None)


def require_whole(site: Site, scope: str, entries: int) -> None:
    """Requires that a scope's chain is whole and has so many entries."""
    checked = site.gate("chain", "check", "--scope", scope)
    assert (checked["whole"], checked["chains"][0]["entries_checked"]) == (True, entries)


def in_threads(count: int, work: Any) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_concurrent_decisions_make_one_whole_chain(site: Site, server: Server) -> None:
    key = site.create_key("concurrent")
    answers: list[dict[str, Any]] = []

    def work(_: int) -> None:
        with httpx.Client(headers={"x-api-key": key}, timeout=30, trust_env=False) as client:
            for _ in range(25):
                response = client.post(f"{server.url}/api/decide", json=sample_request())
                assert response.status_code == 200, response.text
                answers.append(response.json())

    in_threads(8, work)
    assert sorted(answer["audit_chain"]["chain_position"] for answer in answers) == list(range(1, 201))
    require_whole(site, "concurrent", 200)


def test_one_key_from_many_clients_makes_one_record(site: Site, server: Server) -> None:
    key = site.create_key("one-key")
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
    require_whole(site, "one-key", 1)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_requests_in_flight_finish(own: Site, sign: int) -> None:
    key = own.create_key("acme")
    acknowledged: list[str] = []
    going = threading.Barrier(5)

    def work(_: int) -> None:
        with httpx.Client(headers={"x-api-key": key}, timeout=30, trust_env=False) as client:
            for number in range(100_000):
                if number == 3:
                    going.wait()
                try:
                    response = client.post(f"{single.url}/api/decide", json=sample_request())
                except httpx.TransportError:
                    return
                assert response.status_code == 200
                acknowledged.append(response.json()["decision_id"])

    # One worker: once it answers, none is still starting, and the signal meets a server that is up as a whole.
    with own.serving(workers=1) as single:
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
    require_whole(own, "acme", len(acknowledged))


def test_a_worker_that_is_told_twice_to_end_writes_no_error(own: Site) -> None:
    with own.serving(workers=1) as server:
        (worker,) = workers_of(server)
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            # Not yet a whole request, so that the worker waits for it.
            connection.sendall(b"POST /api/decide HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{")
            # It may have ended by then.
            with suppress(OSError):
                for _ in range(5):
                    os.kill(worker, signal.SIGTERM)
                    time.sleep(0.1)
                connection.sendall(b"}")
        assert server.stop(signal.SIGTERM) == 0
    assert "Traceback" not in server.text()


@pytest.mark.skipif(sys.platform != "linux", reason="what a thread blocks is told by /proc")
def test_ctrl_c_in_a_terminal_reaches_no_thread_of_a_worker(server: Server) -> None:
    for worker in workers_of(server):
        threads = [(task / "status").read_text() for task in Path(f"/proc/{worker}/task").iterdir()]
        # A worker that heard of it from the terminal, and then from the server, would not finish.
        blocked = [int(text.partition("SigBlk:")[2].split()[0], 16) for text in threads]
        assert len(blocked) > 2
        assert [mask for mask in blocked if not mask >> (signal.SIGINT - 1) & 1] == []


def test_a_disabled_key_is_refused_by_every_process_at_once(site: Site, server: Server) -> None:
    key = site.create_key("disabled")
    assert post_decide(server.url, key, sample_request()).status_code == 200
    site.gate("keys", "disable", "--yes", key.split("_")[1])
    for _ in range(8):
        assert post_decide(server.url, key, sample_request()).status_code == 403


def test_a_rotated_signing_key_is_used_by_every_process_at_once(site: Site, server: Server) -> None:
    key = site.create_key("rotated")
    before = post_decide(server.url, key, sample_request()).json()
    new = site.gate("signing-keys", "rotate")["key_id"]
    after = [post_decide(server.url, key, sample_request()).json() for _ in range(8)]
    assert {record["receipt_key_id"] for record in after} == {new} != {before["receipt_key_id"]}
    for record in (before, *after):
        verified = httpx.post(f"{server.url}/api/decision/verify", json=record, timeout=30, trust_env=False)
        assert verified.json()["verified"] is True


def status_of(server: Server) -> dict[str, Any]:
    """The status, from any worker that answers."""
    found: dict[str, Any] = asked(f"{server.url}/api/decision/status").json()
    return found


def test_a_worker_killed_five_times_in_a_row_comes_back_while_the_other_one_answers(own: Site) -> None:
    key = own.create_key("acme")
    with own.serving(workers=2) as server:
        victim, survivor = workers_of(server)
        known = {survivor}
        for _ in range(5):
            os.kill(victim, signal.SIGKILL)
            known.add(victim)
            wait_until(lambda: decides(server, key))
            # Who was killed may still be listed for a moment.
            wait_until(lambda: len(set(workers_of(server)) - known) == 1)
            (victim,) = set(workers_of(server)) - known
        # A report may be a second old.
        wait_until(lambda: status_of(server)["workers"]["deaths"] == 5)
        workers = status_of(server)["workers"]
        assert (workers["ready"], workers["asked"], workers["running"], workers["deaths"]) == (False, 2, 2, 5)
        assert [death["cause"] for death in workers["last_deaths"]] == ["signal SIGKILL"] * 5
        assert [death["worker"] for death in workers["last_deaths"]] == workers["crash_looping"] * 5
        assert f"Worker {workers['crash_looping'][0]} keeps dying" in workers["reason"]
        ready = asked(f"{server.url}/readyz")
        assert (ready.status_code, ready.json()) == (503, {"ok": False, "status": "degraded"})
        token = {"x-metrics-token": (own.home / "metrics.token").read_text().strip()}
        metrics = httpx.get(f"{server.url}/metrics", headers=token, timeout=30, trust_env=False).text.splitlines()
        assert {"gate_workers 2.0", "gate_workers_running 2.0", "gate_worker_deaths_total 5.0"} <= set(metrics)
        assert len([line for line in server.lines if '"event":"worker_died"' in line]) == 5
        assert server.stop(signal.SIGTERM) == 0
    assert "refused to gracefully stop" not in server.text()


def test_killed_workers_that_find_no_ledger_say_so_and_serve_as_soon_as_it_is_back(site: Site, server: Server) -> None:
    key = site.create_key("no-ledger")
    away = site.home.parent / "away"
    away.mkdir()
    for file in site.home.glob("ledger.db*"):
        file.rename(away / file.name)
    killed = workers_of(server)
    for worker in killed:
        os.kill(worker, signal.SIGKILL)
    wait_until(lambda: len(set(workers_of(server)) - set(killed)) == 2)
    wait_until(lambda: status_of(server)["workers"]["deaths"] == 2)
    status = status_of(server)
    assert (status["ok"], status["ledger"]["ready"], "ledger" in status["ledger"]["reason"]) == (False, False, True)
    assert not decides(server, key)
    for file in away.iterdir():
        file.rename(site.home / file.name)
    wait_until(lambda: decides(server, key))
    # Both workers, whichever is asked: other tests go on with them.
    wait_until(lambda: all(asked(f"{server.url}/readyz").is_success for _ in range(8)))
    require_whole(site, "no-ledger", 1)


def test_no_process_outlives_a_server_that_is_killed(own: Site) -> None:
    with own.serving(2, "--analytics") as server:
        wait_until(lambda: len(analytics_of(server)) == 1)
        children = descendants(server.process.pid)
        assert len(children) > len(workers_of(server)) == 2
        server.process.kill()
        server.process.wait(30)
        wait_until(lambda: not [pid for pid in children if Path(f"/proc/{pid}").exists()])


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"400"),
        (b"content-type: application/json\r\ncontent-length: 99999999999\r\n\r\n", b"413"),
    ],
)
def test_odd_framing_gets_an_answer(server: Server, head: bytes, status: bytes) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"POST /api/decide HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + head)
        answer = connection.recv(65536)
    assert answer.split(b" ")[1] == status


def test_the_start_logs_once_that_adapters_cannot_run_and_why(own: Site) -> None:
    own.gate("scopes", "create", "first")
    with (own.home / "settings.toml").open("a") as settings:
        settings.write('adapter_isolation = ["network_namespace"]\n')
    url = f"http://127.0.0.1:{(port := free_port())}"
    serve = own.command("serve", "--port", str(port), "--workers", "1", "--no-analytics")
    with running(refusing("unshare", *serve), own.home.parent, url, "is ready at") as server:
        status = _of_adapters_that_were_tried(url)
        token = {"x-metrics-token": (own.home / "metrics.token").read_text().strip()}
        metrics = httpx.get(f"{url}/metrics", headers=token, trust_env=False).text.splitlines()
        assert eventually(lambda: any('"adapters_not_ready"' in line for line in server.lines))
        (told,) = [json.loads(line) for line in server.lines if '"adapters_not_ready"' in line]
    assert (status["ok"], status["trusted_adapters"]["ready"]) == (True, False)
    assert told["level"] == "warning"
    assert told["reason"] == status["trusted_adapters"]["reason"]
    assert "network_namespace" in told["reason"]
    assert "network_namespace" in told["required"]
    assert "network_namespace" not in told["in_force"]
    assert {"gate_ready 1.0", "gate_trusted_adapters_ready 0.0"} <= set(metrics)


def test_the_start_logs_nothing_of_adapters_that_can_run(server: Server) -> None:
    assert _of_adapters_that_were_tried(server.url)["trusted_adapters"]["ready"] is True
    assert not [line for line in server.lines if '"adapters_not_ready"' in line]


def _of_adapters_that_were_tried(url: str) -> dict[str, Any]:
    """The status, once it is known there whether adapters can run."""
    found: dict[str, Any] = {}

    def is_known() -> bool:
        found.update(httpx.get(f"{url}/api/decision/status", trust_env=False).json())
        return "in_force" in found["trusted_adapters"]

    assert eventually(is_known)
    return found


def test_serving_where_nothing_can_be_written_is_refused(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    command = Site(blocked / "home", None).command("serve", "--port", str(free_port()))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "INSTANCE_UNWRITABLE" in done.stderr) == (2, True)
