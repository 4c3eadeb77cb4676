"""What the service counts and times, for Prometheus.

The processes of a server share what they count by files in the folder that `DIRECTORY_VARIABLE` names, which has to be
in the environment before this module is loaded; without it a process counts for itself. A file outlives its process, so
that nothing that was counted is lost when a worker is replaced.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from gate import __version__
from gate.labels import EVALUATOR, INTERFACE_VERSION

DIRECTORY_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

UNMATCHED: Final = "unmatched"
"""The route of a request whose path is none of the service's: its own text is not counted, for it has no bound."""

METHODS: Final = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"})
"""The methods that are counted by their names; any other one is counted, and logged, as `other`."""

_LATENCIES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SYNCS: Final = (0.0001, 0.00025, *_LATENCIES)
_BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)
_QUEUES: Final = (0, *_BATCHES, 256, 1024, 4096)
_PREFIX: Final = "decision-gate-"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - each server makes a private folder of its own in it


def make_directory() -> Path:
    """A new private folder for the files that a server's processes share.

    In memory where there is such a file system: the files are mapped, and to write to a mapped file on a full disk ends
    the process.
    """
    usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    parent = _MEMORY if usable else Path(tempfile.gettempdir())
    # A killed server could not remove its own. Another one that stops or starts now may be quicker.
    for left in parent.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):
            if left.stat().st_uid == os.getuid() and not _lives(int(left.name.split("-")[2])):
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Metrics:
    """The counters of one process. Times are in seconds."""

    def __init__(self) -> None:
        """Begins at nothing."""
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "gate_http_request_seconds",
            "How long requests took, by route, method and status.",
            ("route", "method", "code"),
            registry=self._registry,
            buckets=_LATENCIES,
        )
        self._errors = Counter("gate_http_errors", "Error answers, by error code.", ("error",), registry=self._registry)
        self._decisions = Counter(
            "gate_decisions",
            "Decisions answered, by verdict; status is created or replayed.",
            ("verdict", "status"),
            registry=self._registry,
        )
        self._reports = Counter(
            "gate_reports",
            "Reports answered, by kind and reported status; status is created or replayed.",
            ("kind", "reported", "status"),
            registry=self._registry,
        )
        self._appends = Histogram(
            "gate_append_seconds",
            "Time from queueing an entry until it was durable or given up.",
            registry=self._registry,
            buckets=_LATENCIES,
        )
        self._syncs = Histogram(
            "gate_commit_sync_seconds",
            "Time to write a batch and sync it to disk.",
            registry=self._registry,
            buckets=_SYNCS,
        )
        self._batches = Histogram(
            "gate_commit_batch_entries",
            "Entries made durable by one commit.",
            registry=self._registry,
            buckets=_BATCHES,
        )
        self._queue = Histogram(
            "gate_commit_queue_entries",
            "Entries waiting when a commit ended.",
            registry=self._registry,
            buckets=_QUEUES,
        )
        self._webhooks = Counter(
            "gate_webhook_tries",
            "Events sent to webhook endpoints; result is delivered or failed.",
            ("result",),
            registry=self._registry,
        )
        self._of_request: dict[tuple[str, str, int], Histogram] = {}

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Counts an answered request.

        Args:
            route: The template of its path, or `UNMATCHED`.
            method: One of `METHODS`, or other.
            status: The answer's status.
            seconds: How long it took.
        """
        child = self._of_request.get((route, method, status))
        if child is None:
            child = self._of_request[route, method, status] = self._requests.labels(route, method, str(status))
        child.observe(seconds)

    def error(self, code: str) -> None:
        """Counts an error that was answered."""
        self._errors.labels(code).inc()

    def decision(self, verdict: str, status: str) -> None:
        """Counts an answered decision; status is created or replayed."""
        self._decisions.labels(verdict, status).inc()

    def report(self, kind: str, reported: str, status: str) -> None:
        """Counts a report about a decision.

        Args:
            kind: execution, outcome or crm-sync.
            reported: Its execution_status, outcome_status or sync_status.
            status: created or replayed.
        """
        self._reports.labels(kind, reported, status).inc()

    def webhook(self, result: str) -> None:
        """Counts an event that was sent to a webhook endpoint; result is delivered or failed."""
        self._webhooks.labels(result).inc()

    def appended(self, seconds: float) -> None:
        """Counts an append that ended, well or not. See `AppendObserver`."""
        self._appends.observe(seconds)

    def committed(self, entries: int, seconds: float, queued: int) -> None:
        """Counts a batch that is durable. See `AppendObserver`."""
        self._batches.observe(entries)
        self._syncs.observe(seconds)
        self._queue.observe(queued)

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> bytes:
        """Everything counted by all processes of the server, in Prometheus's text format.

        Args:
            gauges: What is measured now: by name, its meaning and its value. A name that ends in `_total` is that of a
                counter.
        """
        registry = self._registry
        if DIRECTORY_VARIABLE in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        now = CollectorRegistry()
        now.register(_Now(gauges))
        return generate_latest(registry) + generate_latest(now)


class _Now:
    def __init__(self, gauges: Mapping[str, tuple[str, float]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        about = {
            "version": __version__,
            "interface_version": INTERFACE_VERSION,
            "evaluator": EVALUATOR,
            "python": platform.python_version(),
        }
        yield InfoMetricFamily("gate", "What is running.", about)
        for name, (meaning, value) in self._gauges.items():
            yield (CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily)(name, meaning, value)
