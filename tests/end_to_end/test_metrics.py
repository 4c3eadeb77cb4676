"""Metrics of a server with several processes: what each counts is summed, and outlives it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.http import metrics
from api.http.metrics import make_directory
from tests.end_to_end.site import PATIENCE, Load, Site, asked, wait_until, workers_of
from tests.end_to_end.support import Server


@pytest.fixture
def database_url() -> None:
    """In the home: what counts is no matter of the database."""


def counted(server: Server, site: Site, name: str, **labels: str) -> float:
    token = (site.home / "metrics.token").read_text().strip()
    answer = httpx.get(f"{server.url}/metrics", headers={"x-metrics-token": token}, timeout=PATIENCE, trust_env=False)
    return sum(
        sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def folders_of(pid: int) -> list[Path]:
    return list(Path("/dev/shm").glob(f"decision-gate-{pid}-*"))  # noqa: S108 - looked at, not written to


def test_what_the_workers_count_is_summed_and_outlives_them(site: Site) -> None:
    key = site.create_key("acme")
    decided = {"route": "/api/decide", "code": "200"}
    with site.serving(workers=2) as server:
        with Load([server.url], key, clients=6) as load:
            load.wait_for(60)
        made = len(load.answers)
        # A worker knows what another counted within a second; from then on each tells the sum of all.
        wait_until(lambda: counted(server, site, "gate_http_request_seconds_count", **decided) == made + load.retried)
        wait_until(lambda: counted(server, site, "gate_commit_batch_entries_sum") == made)
        sums = {counted(server, site, "gate_http_request_seconds_count", **decided) for _ in range(8)}
        assert sums == {made + load.retried}
        assert counted(server, site, "gate_commit_batch_entries_sum") == made
        before = set(workers_of(server))
        os.kill(min(before), signal.SIGKILL)
        wait_until(lambda: len(set(workers_of(server)) - before) == 1)
        wait_until(lambda: asked(f"{server.url}/readyz").is_success)
        assert counted(server, site, "gate_decisions_total", verdict="yes") == made
        server.stop()
    assert folders_of(server.process.pid) == []


def test_what_a_killed_server_left_is_removed_by_the_next(site: Site) -> None:
    site.create_key("acme")
    with site.serving(workers=1) as server:
        left = folders_of(server.process.pid)
        server.stop(signal.SIGKILL)
    if not left:
        pytest.skip("no file system in memory")
    # A server of another test may have been the next already.
    mine = make_directory()
    assert not left[0].exists()
    assert make_directory().parent == mine.parent
    assert mine.stat().st_mode & 0o777 == 0o700
    for folder in folders_of(os.getpid()):
        folder.rmdir()


def test_what_another_server_removes_at_the_same_moment_is_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_MEMORY", tmp_path)
    # As one that is gone between being listed and being looked at.
    (tmp_path / "decision-gate-1-gone").symlink_to(tmp_path / "nowhere")
    assert make_directory().is_dir()
