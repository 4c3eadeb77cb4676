"""The process that computes reports: what was acknowledged is in the next one, and nothing else needs it."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.end_to_end.site import PATIENCE, Load, Site, analytics_of, decides, wait_until, workers_of
from tests.end_to_end.support import Server, post_decide
from tests.support.samples import sample_request
from tests.support.torture import report, size

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a server's processes are found in /proc")

EFFECTIVENESS: Final = "/api/decision/policies/pricing_exception/effectiveness"


def get(server: Server, key: str, path: str = EFFECTIVENESS) -> httpx.Response:
    """An answer over a connection of its own, and so of any worker."""
    return httpx.get(f"{server.url}{path}", headers={"x-api-key": key}, timeout=PATIENCE, trust_env=False)


def when_counted(server: Server, key: str) -> dict[str, Any]:
    """The report, as soon as there is one; until then each answer says when to ask again."""
    answers: list[httpx.Response] = []

    def is_counted() -> bool:
        answers.append(get(server, key))
        told = (answers[-1].status_code, answers[-1].headers.get("retry-after"))
        assert told in ((200, None), (503, "5")), answers[-1].text
        assert told[0] == 200 or answers[-1].json()["error"] == "SVC_REPORT_UNAVAILABLE"
        return told[0] == 200

    wait_until(is_counted)
    counted: dict[str, Any] = answers[-1].json()
    return counted


def socket_of(server: Server) -> Path:
    """Where the workers of a server reach its analytics process."""
    variables = Path(f"/proc/{workers_of(server)[0]}/environ").read_bytes().split(b"\0")
    return Path(next(variable for variable in variables if variable.startswith(b"GATE_ANALYTICS=")).decode()[15:])


def is_gone(pid: int) -> bool:
    """Whether a process has ended, and was seen to."""
    return not Path(f"/proc/{pid}").exists()


def require_whole_lake(site: Site, entries: int) -> None:
    """Requires that the lake, brought up to the ledger, is what the ledger says, and has so many entries."""
    site.gate("lake", "export")
    told = site.gate("lake", "verify", "--against-ledger")
    assert (told["whole"], [scope["entries_checked"] for scope in told["scopes"]]) == (True, [entries])


@pytest.fixture
def database_url() -> None:
    """In the home: the ledger's contract is the same on both databases."""


def test_what_was_acknowledged_is_in_the_next_report_and_kill_9_costs_nothing_else(site: Site) -> None:
    key = site.create_key("acme")
    kills = size(1, 12)
    with site.serving(2, "--analytics") as server:
        assert when_counted(server, key)["coverage"]["decisions"] == 0
        wait_until(lambda: any((site.home / "lake" / "benchmarks").glob("*.parquet")))
        across = get(server, key, EFFECTIVENESS.replace("effectiveness", "benchmarks")).json()["cross_customer"]
        assert across["reason"] == "not_opted_in"
        for number in range(1, 7):
            decided = post_decide(server.url, key, sample_request()).json()
            assert get(server, key).json()["outcomes"]["unreported"] == 1
            told = httpx.post(
                f"{server.url}{decided['decision_url']}/outcome",
                json={"outcome_status": "succeeded"},
                headers={"x-api-key": key},
                timeout=PATIENCE,
                trust_env=False,
            )
            assert told.status_code == 201
            counted = get(server, key).json()
            assert (counted["outcomes"]["succeeded"], counted["outcomes"]["unreported"]) == (number, 0)
        packet = get(server, key, f"{decided['decision_url']}/packet").json()
        assert packet["policy_intelligence"]["effectiveness"]["outcomes"]["succeeded"] == number
        workers = workers_of(server)
        (process,) = analytics_of(server)
        assert (os.getpriority(os.PRIO_PROCESS, process), os.sched_getscheduler(process)) == (10, os.SCHED_BATCH)
        with Load([server.url], key, clients=4, pause=0.02, reporting=True) as load:
            for _ in range(kills):
                (process,) = analytics_of(server)
                os.kill(process, signal.SIGKILL)
                assert get(server, key).status_code in (200, 503)
                load.wait_for(20)
                when_counted(server, key)
                assert analytics_of(server) != [process]
        assert (dict(load.failures), load.retried, workers_of(server)) == ({}, 0, workers)
        outcomes = number + sum(name.startswith("outcome ") for name in load.reports)
        decisions, entries = number + len(load.answers), 2 * number + len(load.answers) + len(load.reports)
        counted = when_counted(server, key)
        assert counted["outcomes"]["succeeded"] == outcomes > number
        assert (counted["coverage"]["decisions"], counted["coverage"]["chain_position"]) == (decisions, entries)
        (process,) = analytics_of(server)
        server.process.kill()
        wait_until(lambda: all(map(is_gone, (process, *workers))))
        server.process.wait(30)
    require_whole_lake(site, entries)
    report(f"{kills} kills of the analytics process, {decisions} decisions, {outcomes} outcomes counted")


def test_where_it_cannot_start_everything_else_works_and_it_says_why(site: Site) -> None:
    key = site.create_key("acme")
    # A setting that only the lake reads, and cannot use.
    with (site.home / "settings.toml").open("a") as settings:
        settings.write('personal_fields = ["merkle_root"]\n')
    # The announcement would wait for it, and it would be started again and again meanwhile.
    with site.serving(1, "--analytics", ready="merkle_root") as server:
        wait_until(lambda: decides(server, key))
        answer = get(server, key)
        assert (answer.status_code, answer.json()["error"]) == (503, "SVC_REPORT_UNAVAILABLE")
        assert get(server, key, "/readyz").status_code == 200
        directory = socket_of(server).parent
        assert directory.stat().st_mode & 0o777 == 0o700
        assert server.stop() == 0
    assert not directory.exists()
    assert all(json.loads(line) for line in server.lines if line.startswith("{"))
