"""The figures that are counted, and how those of several processes become Prometheus's text format."""

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
"""Of a counter its value. Of a histogram how many values each bucket took, how many were above the last, and the sum of
all values. The figures of several processes are added one by one.
"""

Counted: TypeAlias = Mapping[str, Iterable[tuple[Labels, Figures]]]
"""What a process counted: the series of each metric, by its name."""

_LATENCIES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)


class Family(NamedTuple):
    """A metric: a histogram where it has buckets, else a counter."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    def nothing(self) -> Figures:
        """The figures of a series that has counted nothing."""
        return [0] * (len(self.buckets) + 2 if self.buckets else 1)

    def add(self, figures: Figures, value: float) -> None:
        """Adds a value to the figures of a series."""
        figures[-1] += value
        if self.buckets:
            figures[bisect_left(self.buckets, value)] += 1


REQUESTS: Final = Family(
    "gate_http_request_seconds",
    "How long requests took, by route, method and status.",
    ("route", "method", "code"),
    _LATENCIES,
)
ERRORS: Final = Family("gate_http_errors", "Error answers, by error code.", ("error",))
DECISIONS: Final = Family(
    "gate_decisions", "Decisions answered, by verdict; status is created or replayed.", ("verdict", "status")
)
REPORTS: Final = Family(
    "gate_reports",
    "Reports answered, by kind and reported status; status is created or replayed.",
    ("kind", "reported", "status"),
)
APPENDS: Final = Family(
    "gate_append_seconds", "Time from queueing an entry until it was durable or given up.", buckets=_LATENCIES
)
SYNCS: Final = Family(
    "gate_commit_sync_seconds",
    "Time to write a batch and sync it to disk.",
    buckets=(0.0001, 0.00025, *_LATENCIES),
)
BATCHES: Final = Family("gate_commit_batch_entries", "Entries made durable by one commit.", buckets=_BATCHES)
QUEUES: Final = Family(
    "gate_commit_queue_entries", "Entries waiting when a commit ended.", buckets=(0, *_BATCHES, 256, 1024, 4096)
)
WEBHOOKS: Final = Family(
    "gate_webhook_tries", "Events sent to webhook endpoints; result is delivered or failed.", ("result",)
)

FAMILIES: Final = (REQUESTS, ERRORS, DECISIONS, REPORTS, APPENDS, SYNCS, BATCHES, QUEUES, WEBHOOKS)


def exposition(counted: Sequence[Counted], gauges: Mapping[str, tuple[str, float]]) -> bytes:
    """What processes counted together, and what is measured now, in Prometheus's text format.

    Args:
        counted: What each process counted.
        gauges: What is measured now: by name, its meaning and its value. A name that ends in `_total` is that of a
            counter.
    """
    registry = CollectorRegistry()
    registry.register(_Told(counted, gauges))
    return generate_latest(registry)


class _Told(Collector):
    def __init__(self, counted: Sequence[Counted], gauges: Mapping[str, tuple[str, float]]) -> None:
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
        yield InfoMetricFamily("gate", "What is running.", about)
        for name, (meaning, value) in self._gauges.items():
            yield (CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily)(name, meaning, value)


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
