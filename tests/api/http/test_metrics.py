"""What is counted: by many threads and processes at once, in bounded memory, and for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from api.http import metrics as metrics_module
from api.http.figures import FAMILIES, REQUESTS, Labels, exposition
from api.http.metrics import DIRECTORY_VARIABLE, Metrics
from tests.gate.adapters.support import eventually

CASES = Path(__file__).parents[2] / "cases"

# Processes of a server. The first tells how many it counted before it goes on.
_COUNTS_FOR_EVER = """
import itertools, time
from api.http.metrics import Metrics
metrics = Metrics()
for counted in itertools.count(1):
    metrics.decision("yes", "created")
    print(counted, flush=True)
    time.sleep(0.001)
"""
_COUNTS_AND_ENDS = """
from api.http.metrics import Metrics
metrics = Metrics()
for _ in range(7):
    metrics.decision("yes", "created")
metrics.webhook("failed")
"""
_COUNTS_AND_FORKS = """
import os
from api.http.metrics import Metrics
metrics = Metrics()
for _ in range(7):
    metrics.decision("yes", "created")
metrics.text({})
if child := os.fork():
    os.waitpid(child, 0)
else:
    metrics.decision("yes", "created")
"""


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.text({}).decode())
        for sample in family.samples
    }


def decided(metrics: Metrics) -> float:
    return samples(metrics).get(("gate_decisions_total", (("status", "created"), ("verdict", "yes"))), 0)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a server that this process is one of."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    return tmp_path


@contextmanager
def process(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process of the same server."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as started:
        try:
            yield started
        finally:
            started.kill()


def test_the_text_has_the_names_labels_and_meanings_that_dashboards_know() -> None:
    metrics = Metrics()
    for seconds in (0.0001, 0.0005, 0.003, 0.004, 20.5):
        metrics.request("/api/decide", "POST", 200, seconds)
    metrics.request("unmatched", "other", 405, 0.01)
    for code in ("SVC_X", "SVC_X", "SVC_Y"):
        metrics.error(code)
    metrics.decision("yes", "created")
    metrics.decision("no", "replayed")
    metrics.report("outcome", "failed", "created")
    metrics.appended(0.002)
    metrics.committed(3, 0.0002, 0)
    metrics.committed(100, 0.02, 5000)
    metrics.webhook("failed")
    text = metrics.text({"gate_ready": True, "gate_worker_deaths_total": 3}).decode()
    lines = [line for line in text.splitlines() if "gate_info" not in line]
    assert sorted(lines) == sorted((CASES / "metrics.txt").read_text().splitlines())


def test_many_threads_that_count_at_once_lose_nothing() -> None:
    metrics = Metrics()
    before = sys.getswitchinterval()
    # As often as can be, so that one thread comes between what another reads and what it writes.
    sys.setswitchinterval(1e-6)

    def count(_: int) -> None:
        for _ in range(5000):
            metrics.request("/api/decide", "POST", 200, 0.25)
            metrics.decision("yes", "created")
            metrics.committed(2, 0.5, 1)

    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(count, range(8)))
    finally:
        sys.setswitchinterval(before)
    found = samples(metrics)
    of_request = (("code", "200"), ("method", "POST"), ("route", "/api/decide"))
    assert found["gate_http_request_seconds_count", of_request] == 40_000
    assert found["gate_http_request_seconds_sum", of_request] == 10_000
    assert decided(metrics) == 40_000
    assert found["gate_commit_batch_entries_sum", ()] == 80_000
    assert found["gate_commit_queue_entries_count", ()] == 40_000


def test_what_is_counted_and_never_asked_for_takes_no_more_memory() -> None:
    metrics = Metrics()

    def count(times: int) -> None:
        for _ in range(times):
            metrics.request("/api/decide", "POST", 200, 0.001)
            metrics.appended(0.001)

    count(10_000)
    tracemalloc.start()
    try:
        count(100_000)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Two hundred thousand floats alone would take 4.8 MB.
    assert held < 500_000


_VALUES = st.floats(0, 100) | st.sampled_from(REQUESTS.buckets)


@given(st.lists(st.lists(_VALUES, max_size=20), min_size=1, max_size=4))
def test_a_bucket_holds_all_that_is_no_more_than_its_bound_of_all_processes(processes: list[list[float]]) -> None:
    counted = []
    for values in processes:
        figures = REQUESTS.nothing()
        for value in values:
            REQUESTS.add(figures, value)
        series = {family.name: list[tuple[Labels, list[float]]]() for family in FAMILIES}
        series[REQUESTS.name] = [(("/api/decide", "POST", 200), figures)]
        counted.append(series)
    told = {
        (sample.name, sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(exposition(counted, {}).decode())
        for sample in family.samples
    }
    values = [value for each in processes for value in each]
    name = REQUESTS.name
    for bound in REQUESTS.buckets:
        assert told[f"{name}_bucket", str(bound)] == sum(value <= bound for value in values)
    assert told[f"{name}_bucket", "+Inf"] == told[f"{name}_count", None] == len(values)
    assert told[f"{name}_sum", None] == pytest.approx(sum(values))


def test_what_processes_count_adds_up_and_stays_when_they_end(shared: Path) -> None:
    metrics = Metrics()
    metrics.decision("yes", "created")
    for ended in (1, 2):
        with process(_COUNTS_AND_ENDS) as other:
            assert other.wait(30) == 0
        # What it counted last was written when it ended.
        assert decided(metrics) == 1 + 7 * ended
    assert samples(metrics)["gate_webhook_tries_total", (("result", "failed"),)] == 2
    # Whichever process is asked tells the same.
    assert samples(Metrics()) == samples(metrics)


def test_a_killed_process_loses_its_last_second_at_most(shared: Path) -> None:
    metrics = Metrics()
    with process(_COUNTS_FOR_EVER) as other:
        assert other.stdout is not None
        assert eventually(lambda: decided(metrics) > 0)
        seen = decided(metrics)
        assert eventually(lambda: decided(metrics) > seen)
        seen = decided(metrics)
        os.kill(other.pid, signal.SIGKILL)
        counted = [int(line) for line in other.stdout.read().split()]
    assert seen <= decided(metrics) <= counted[-1] + 1
    # It counts one in a millisecond at most.
    assert counted[-1] - decided(metrics) <= 1500
    before = decided(metrics)
    metrics.decision("yes", "created")
    assert decided(metrics) == before + 1


def test_the_process_that_is_asked_next_knows_all_that_was_told(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "_WRITE_SECONDS", 3600.0)
    asked, told = [Metrics() for _ in range(3)], 0.0
    # A counter that fell would be taken for one that began anew.
    for turn in range(30):
        asked[turn % 3].decision("yes", "created")
        now = decided(asked[(turn * 2 + turn // 3) % 3])
        assert now >= told
        told = now
    for one in asked:
        decided(one)
    assert [decided(one) for one in asked] == [30, 30, 30]


def test_a_forked_process_does_not_count_for_its_parent(shared: Path) -> None:
    with process(_COUNTS_AND_FORKS) as other:
        assert other.wait(30) == 0
    assert decided(Metrics()) == 7


def test_without_room_or_folder_a_process_goes_on_and_tells_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "later"
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(folder))
    metrics = Metrics()
    metrics.decision("yes", "created")
    assert decided(metrics) == 1
    folder.mkdir()
    # With room again, what was kept back is written.
    metrics.text({})
    assert decided(Metrics()) == 1


def test_a_file_is_written_only_where_something_was_counted(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "_WRITE_SECONDS", 3600.0)
    metrics = Metrics()
    metrics.text({})
    (file,) = shared.iterdir()
    before = file.stat().st_ino
    metrics.text({})
    assert file.stat().st_ino == before
    metrics.appended(0.1)
    metrics.text({})
    (file,) = shared.iterdir()
    assert file.stat().st_ino != before


def test_threads_that_count_and_ask_at_once_are_told_no_less_each_time(shared: Path) -> None:
    metrics = Metrics()
    ended = threading.Event()

    def count(_: int) -> None:
        for _ in range(3000):
            metrics.decision("yes", "created")

    def ask() -> list[float]:
        told = []
        while not ended.is_set():
            told.append(decided(metrics))
        return told

    with ThreadPoolExecutor(5) as pool:
        asking = pool.submit(ask)
        list(pool.map(count, range(4)))
        ended.set()
    assert asking.result() == sorted(asking.result())
    assert decided(metrics) == decided(Metrics()) == 12_000
