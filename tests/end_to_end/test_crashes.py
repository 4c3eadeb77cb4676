"""kill -9, of single workers and of whole servers: what was answered with success is there afterwards, once."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.end_to_end.site import Load, Site, wait_until, workers_of
from tests.end_to_end.support import Server
from tests.support.torture import LONG, chance, report, size

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a server's workers are found in /proc")

CLIENTS = 8


def killed(server: Server, what: str, chances: random.Random) -> bool:
    """Whether a server's process group, or one of its workers, was there to be killed."""
    workers = workers_of(server)
    if server.process.poll() is not None or not workers:
        return False
    if what == "server":
        os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait(30)
    else:
        # A server gives up when a worker dies that it has only just started; the short form spares itself the restart.
        os.kill(chances.choice(workers) if LONG else min(workers), signal.SIGKILL)
    return True


def test_what_was_acknowledged_survives_kill_9(site: Site) -> None:
    key = site.create_key("acme")
    chances, seed = chance()
    kills = ["worker"] * size(1, 60) + ["server"] * size(0, 39)
    chances.shuffle(kills)
    # Last, so that the server that is asked about everything afterwards is one that nothing happens to.
    kills.append("server")
    starts, done = 1, 0
    with ExitStack() as running:
        server = running.enter_context(site.serving())

        def ended() -> bool:
            return server.process.poll() is not None

        with Load([server.url], key, clients=CLIENTS, pause=size(0.15, 0.02), reporting=True) as load:
            while True:
                # Whatever ended it, an operator starts it again.
                if ended():
                    running.close()
                    server = running.enter_context(site.serving(size(1, 2)))
                    load.urls = [server.url]
                    starts += 1
                if done == len(kills):
                    break
                load.wait_for(CLIENTS, until=ended)
                time.sleep(chances.uniform(0, 0.2))
                done += killed(server, kills[done], chances)
        site.require_exactly(load.answers, "acme", server.url, key, load.reports)
    report(
        f"seed {seed}: {done} kills, {starts} starts; {len(load.answers)} decisions and {len(load.reports)} reports "
        f"acknowledged, {load.retried} retried, of which {load.found} had been recorded; {dict(load.failures)}"
    )
    assert load.retried


@pytest.fixture
def own(tmp_path: Path) -> Site:
    """For what no database has a part in."""
    return Site(tmp_path / "home", None)


def test_workers_keep_to_one_processor_each_and_leave_it_to_whoever_replaces_them(
    own: Site, request: pytest.FixtureRequest
) -> None:
    everything = os.sched_getaffinity(0)
    # Two are enough to tell, and a large machine would start a worker for each.
    usable = sorted(everything)[:2]

    def kept(server: Server) -> list[list[int]]:
        return sorted(sorted(os.sched_getaffinity(worker)) for worker in workers_of(server))

    request.addfinalizer(lambda: os.sched_setaffinity(0, everything))
    os.sched_setaffinity(0, usable)
    with own.serving(len(usable)) as server:
        wait_until(lambda: kept(server) == [[one] for one in usable])
        before = workers_of(server)
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: before[0] not in workers_of(server) and kept(server) == [[one] for one in usable])
    with own.serving(len(usable), "--no-pin-workers") as server:
        assert kept(server) == [usable] * len(usable)
