"""The parent process, over an application that starts in a moment: deaths, restarts, and stops in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.workers.roster import Facts, read_facts
from tests.end_to_end.site import wait_until, workers_of
from tests.end_to_end.support import ROOT, Server, free_port
from tests.support.syscalls import descendants

pytestmark = pytest.mark.heavy


@contextmanager
def serving(directory: Path, workers: int) -> Iterator[Server]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.api.workers.failing", str(directory), str(port), str(workers)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    server = Server(process, f"http://127.0.0.1:{port}")
    try:
        yield server
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        server.close()


def answers(server: Server) -> bool:
    try:
        return httpx.get(server.url, timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def facts(directory: Path) -> Facts:
    found = read_facts(directory)
    assert found is not None
    return found


def logged(server: Server, event: str) -> list[str]:
    return [line for line in server.lines if f'"event":"{event}"' in line]


def test_a_worker_that_cannot_start_is_tried_again_with_pauses_until_it_can(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    with serving(tmp_path, workers=1) as server:
        wait_until(lambda: read_facts(tmp_path) is not None and facts(tmp_path)["deaths"] >= 3)
        assert not answers(server)
        broken.unlink()
        wait_until(lambda: answers(server))
        assert server.stop(signal.SIGTERM) == 0
    (last, *_) = reversed(facts(tmp_path)["last_deaths"])
    assert last["cause"].startswith("exit code 1: LookupError at failing.py:")
    died = logged(server, "worker_died")
    assert ['"restart_in_seconds":0.0' in line for line in died[:2]] == [True, False]
    assert logged(server, "worker_not_started")
    # The message of an unexpected error could quote a secret.
    assert "hunter2" not in server.text()


@pytest.mark.parametrize(("sign", "workers"), [(signal.SIGINT, 1), (signal.SIGTERM, 2)])
def test_a_signal_ends_a_server_whose_workers_wait_for_their_restart(tmp_path: Path, sign: int, workers: int) -> None:
    (tmp_path / "broken").touch()
    with serving(tmp_path, workers=workers) as server:
        # After four deaths the pause is 2 seconds, far longer than the signal may take.
        wait_until(lambda: read_facts(tmp_path) is not None and facts(tmp_path)["deaths"] >= 4 * workers)
        assert server.stop(sign) == 0
    assert "refused to gracefully stop" not in server.text()


def test_a_hangup_replaces_every_worker_and_counts_no_death(tmp_path: Path) -> None:
    with serving(tmp_path, workers=1) as server:
        wait_until(lambda: answers(server))
        (before,) = workers_of(server)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: before not in workers_of(server))
        wait_until(lambda: answers(server))
        assert server.stop(signal.SIGTERM) == 0
    assert facts(tmp_path)["deaths"] == 0


def test_no_process_outlives_a_parent_that_is_killed_while_a_worker_waits(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    with serving(tmp_path, workers=1) as server:
        wait_until(lambda: read_facts(tmp_path) is not None and facts(tmp_path)["deaths"] >= 3)
        children: list[Any] = descendants(server.process.pid)
        server.process.kill()
        server.process.wait(30)
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
