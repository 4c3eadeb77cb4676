"""Series of readings with and without a planted change, as imported histories for the anomaly report.

A series is half a year of readings, eight a day, with a daily and a weekly rhythm and correlated noise. The series of
the `Numenta` Anomaly Benchmark (`Lavin` and Ahmad 2015) are similar. There are five kinds of changes: the level rises
or falls, it drifts, the noise grows, or spikes occur for three weeks. A change is found if an anomaly of medium or high
severity about the metric overlaps it. Without a change, there must be no anomaly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from gate.ids import parse_timestamp
from workbench.engines.anomalies.report import anomalies
from workbench.history.importing import Plan, import_history
from workbench.history.mapping import load_map
from workbench.history.sources import examine
from workbench.lake.entries import Personal
from workbench.lake.reader import open_lake

_POLICY: Final = "readings"
_METRIC: Final = "reading"
_START: Final = datetime(2026, 1, 5, tzinfo=UTC)
_STEP: Final = timedelta(hours=3)
_A_WEEK: Final = 56
_WEEKS: Final = 30
_FIRST: Final = (10, 18)
_SPIKE_WEEKS: Final = 3
_LEVEL: Final = 90.0
_DAILY, _WEEKEND, _NOISE = 6.0, -3.0, 10.0
_MEMORY: Final = 0.2
_SHIFT: Final = 20.0
_MAP: Final[Mapping[str, Any]] = {
    "history_map_version": "decision_history_map_v1",
    "id": {"column": "id"},
    "occurred_at": {"column": "at"},
    "policy_id": _POLICY,
    "verdict": {"column": "verdict", "values": {"yes": "yes"}},
    "outcome": {"column": "outcome", "values": {"succeeded": "succeeded"}},
    "facts": {"sensor": {"column": "sensor", "type": "string"}},
    "metrics": {_METRIC: {"column": "value"}},
}


class Change(NamedTuple):
    """A change of readings: the added value, from the week it begins in; the weeks it lasts, or None to the end."""

    added: Callable[[random.Random, float, float], float]
    weeks: int | None = None


CHANGES: Final[Mapping[str, Change]] = {
    "level shift up": Change(lambda _, __, ___: _SHIFT),
    "level shift down": Change(lambda _, __, ___: -_SHIFT),
    "slow drift": Change(lambda _, weeks, ___: 1.5 * weeks),
    "spread change": Change(lambda _, __, noise: 2 * noise),
    "spike train": Change(lambda chance, _, __: 15 * _NOISE if chance.random() < 1 / 8 else 0.0, _SPIKE_WEEKS),
}
"""Each kind of change; it is given the weeks since it began, and the reading's noise."""


def found_in(directory: Path, name: str | None, seed: int) -> dict[str, bool]:
    """What the anomaly report says of a series.

    Args:
        directory: Where its history is imported; it must be empty.
        name: What changes; None for nothing.
        seed: By what it is drawn.

    Returns:
        Whether what was planted is found at medium or high severity, and whether at high; without a change, whether
        anything is.
    """
    chance = random.Random(f"{name} {seed}")
    first = chance.randrange(*_FIRST)
    weeks = None if name is None else CHANGES[name].weeks
    last = _WEEKS if weeks is None else first + weeks
    file = directory / "readings.csv"
    _drawn(chance, None if name is None else CHANGES[name], first, last).write_csv(file)
    sources, now = [examine(file, None)], _START + timedelta(weeks=_WEEKS)
    plan = Plan(directory / "lake", "scope", "acme", "series", load_map(_MAP, "map"), sources, Personal(), now)
    import_history(plan)
    snapshot = open_lake(directory / "lake").scope("acme").history("series")
    begins, ends = (_START + timedelta(weeks=week) for week in (first, last))
    found = {"found": False, "alarm": False}
    for anomaly in anomalies(snapshot, _POLICY, max_items=200).to_dict()["anomalies"]:
        since, until = (parse_timestamp(anomaly["window"][end]) for end in ("from", "to"))
        overlaps = name is None or (anomaly["subject"] == _METRIC and since < ends and begins < until)
        found["found"] |= overlaps and anomaly["severity"] != "low"
        found["alarm"] |= overlaps and anomaly["severity"] == "high"
    return found


def _drawn(chance: random.Random, change: Change | None, first: int, last: int) -> pl.DataFrame:
    rows, noise = [], 0.0
    for at in range(_WEEKS * _A_WEEK):
        noise = _MEMORY * noise + math.sqrt(1 - _MEMORY**2) * chance.gauss(0, _NOISE)
        moment, week = _START + at * _STEP, at / _A_WEEK
        value = _LEVEL + _DAILY * math.sin(2 * math.pi * moment.hour / 24) + noise
        value += _WEEKEND if moment.weekday() >= 5 else 0.0
        if change is not None and first <= week < last:
            value += change.added(chance, week - first, noise)
        rows.append((f"r{at}", moment.isoformat(), "yes", "succeeded", "s1", round(value, 3)))
    return pl.DataFrame(rows, schema=["id", "at", "verdict", "outcome", "sensor", "value"], orient="row")
