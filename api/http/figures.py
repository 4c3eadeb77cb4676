"""The metrics of the service, and merging those of several processes into Prometheus's text format."""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from gate import __version__
from gate.labels import EVALUATOR, INTERFACE_VERSION

Labels: TypeAlias = tuple[str | int, ...]

Figures: TypeAlias = list[float]
"""The value of a counter. For a histogram: the number of values in each bucket, the number above the last bucket, and
the sum of all values. The figures of several processes are added one by one.
"""

Counted: TypeAlias = Mapping[str, Iterable[tuple[Labels, Figures]]]
"""The counts of a process: the series of each metric, by its name."""

_LATENCIES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)


class Family(NamedTuple):
    """A metric: a histogram if it has buckets, else a counter."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    def nothing(self) -> Figures:
        """The figures of an empty series."""
        return [0] * (len(self.buckets) + 2 if self.buckets else 1)

    def add(self, figures: Figures, value: float) -> None:
        """Adds a value to the figures of a series."""
        figures[-1] += value
        if self.buckets:
            figures[bisect_left(self.buckets, value)] += 1


REQUESTS: Final = Family(
    "gate_http_request_seconds",
    "Answered requests, and the seconds that each took. The label route is a path template or unmatched, method a "
    "known one or other, and code the status.",
    ("route", "method", "code"),
    _LATENCIES,
)
ERRORS: Final = Family("gate_http_errors", "Error answers, by error code.", ("error",))
DECISIONS: Final = Family(
    "gate_decisions", "Answered decisions, by verdict. The label status is created or replayed.", ("verdict", "status")
)
REPORTS: Final = Family(
    "gate_reports",
    "Answered reports: kind is execution, outcome, or crm-sync, and reported the status that the report states. The "
    "label status is created or replayed.",
    ("kind", "reported", "status"),
)
APPENDS: Final = Family(
    "gate_append_seconds", "Seconds from queueing an entry until it was durable or given up.", buckets=_LATENCIES
)
SYNCS: Final = Family(
    "gate_commit_sync_seconds",
    "Seconds to write a batch of entries and sync it to disk.",
    buckets=(0.0001, 0.00025, *_LATENCIES),
)
BATCHES: Final = Family("gate_commit_batch_entries", "Entries that one commit made durable.", buckets=_BATCHES)
QUEUES: Final = Family(
    "gate_commit_queue_entries",
    "Entries that waited for the next commit when one ended.",
    buckets=(0, *_BATCHES, 256, 1024, 4096),
)
WEBHOOKS: Final = Family(
    "gate_webhook_tries", "Events sent to webhook endpoints. The label result is delivered or failed.", ("result",)
)

FAMILIES: Final = (REQUESTS, ERRORS, DECISIONS, REPORTS, APPENDS, SYNCS, BATCHES, QUEUES, WEBHOOKS)

INFO: Final = ("gate", "What is running. The value is always 1.")
"""The name and meaning of the metric `gate_info`."""

GAUGES: Final[Mapping[str, str]] = {
    "gate_ready": "1 if everything that a decision needs is usable, as found by the worker that answers.",
    "gate_workers": "Workers that the server was asked to run.",
    "gate_workers_running": "Workers whose process runs.",
    "gate_workers_crash_looping": "Workers that keep dying.",
    "gate_worker_deaths_total": "Workers that ended without being asked to.",
    "gate_trusted_adapters_ready": "1 if trusted adapters can run under the setting adapter_isolation, as found by the "
    "worker that answers.",
    "gate_checkpoints_refused": "Chains that do not contain their last kept checkpoint.",
    "gate_checkpoints_ready": "1 if a checkpoint of each chain is kept as the chain grows.",
    "gate_scopes": "Scopes in the ledger.",
    "gate_chain_entries": "Entries of all chains.",
    "gate_registered_rulebooks": "Rulebooks that scopes have registered.",
    "gate_ledger_bytes": "Size of the ledger on disk, in bytes.",
    "gate_ledger_disk_free_bytes": "Free space on the ledger's disk, in bytes. Absent for PostgreSQL.",
}
"""The metrics that are measured on each read, with their meanings. Names with the ending `_total` are counters."""


def exposition(counted: Sequence[Counted], gauges: Mapping[str, float]) -> bytes:
    """The sums of the counts of all processes, and the current measurements, in Prometheus's text format.

    Args:
        counted: The counts of each process.
        gauges: The current measurements, by a name in `GAUGES`.
    """
    registry = CollectorRegistry()
    registry.register(_Told(counted, gauges))
    return generate_latest(registry)


class _Told(Collector):
    def __init__(self, counted: Sequence[Counted], gauges: Mapping[str, float]) -> None:
        self._counted = counted
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        for family in FAMILIES:
            series = _sums(family, self._counted)
            yield _histogram(family, series) if family.buckets else _counter(family, series)
        about = {
            "version": __version__,
            "interface_version": INTERFACE_VERSION,
            "evaluator": EVALUATOR,
            "python": platform.python_version(),
        }
        yield InfoMetricFamily(*INFO, about)
        for name, value in self._gauges.items():
            yield (CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily)(name, GAUGES[name], value)


def _sums(family: Family, counted: Iterable[Counted]) -> dict[tuple[str, ...], Figures]:
    sums: dict[tuple[str, ...], Figures] = {}
    for labels, figures in (series for of_process in counted for series in of_process[family.name]):
        key = tuple(str(label) for label in labels)
        before = sums.get(key)
        sums[key] = figures if before is None else [sum(pair) for pair in zip(before, figures, strict=True)]
    return sums


def _counter(family: Family, series: Mapping[tuple[str, ...], Figures]) -> Metric:
    metric = CounterMetricFamily(family.name, family.meaning, labels=family.labels)
    for labels, (value,) in series.items():
        metric.add_metric(labels, value)
    return metric


def _histogram(family: Family, series: Mapping[tuple[str, ...], Figures]) -> Metric:
    metric = HistogramMetricFamily(family.name, family.meaning, labels=family.labels)
    bounds = [*(str(float(bound)) for bound in family.buckets), "+Inf"]
    for labels, (*taken, total) in series.items():
        metric.add_metric(labels, list(zip(bounds, accumulate(taken), strict=True)), total)
    return metric
