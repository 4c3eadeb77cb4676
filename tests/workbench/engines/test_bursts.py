"""Bursts of one minute among decisions that come alone: a burst says as much as one, and hides nothing beside it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from gate.policy.questions import AnomaliesQuestion
from tests.independent import anomalies as independent
from tests.workbench.made_up import DAY, HOUR, MONDAY, POLICY, WEEK, MadeUp
from tests.workbench.readings import METRIC, read
from workbench.engines.anomalies.report import AnomalyReport, anomalies, answer

MINUTE: Final = timedelta(minutes=1)
BURST: Final = MONDAY + 22 * WEEK + 2 * DAY + 10 * HOUR
"""When a burst comes, in the 23rd of 30 weeks."""


def with_bursts(*bursts: Sequence[float], per_week: int = 30, weeks: int = 30, seed: int = 3) -> MadeUp:
    """Weeks of single decisions with a reading of about 90, and bursts of one minute with the readings given, each
    half an hour after the last.
    """
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    found = []
    for week in range(weeks):
        for _ in range(per_week):
            found.append((MONDAY + week * WEEK + chance.randrange(7 * 24 * 60) * MINUTE, chance.gauss(90, 10)))
    for at, burst in enumerate(bursts):
        found += [(BURST + at * 30 * MINUTE, value) for value in burst]
    chain = MadeUp()
    for moment, value in sorted(found):
        read(chain, moment, value)
    return chain


def report_of(chain: MadeUp, lake: Path) -> AnomalyReport:
    """The report about a chain, which equals its recount."""
    snapshot = chain.snapshot(lake)
    every: dict[str, Any] = {"threshold": 0, "max_items": 200}
    body = answer(snapshot, AnomaliesQuestion(POLICY, **every)).body
    assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every)
    return anomalies(snapshot, POLICY)


def kinds(report: AnomalyReport) -> list[str]:
    return [of["kind"] for of in report.body["anomalies"]]


@pytest.mark.parametrize("size", [8, 15, 25, 50, 100])
def test_a_burst_beside_single_decisions_is_no_lack_of_them(size: int, tmp_path: Path) -> None:
    chance = random.Random(size)  # noqa: S311 - for tests to be the same each time
    report = report_of(with_bursts([chance.gauss(90, 10) for _ in range(size)]), tmp_path)
    assert "volume" not in kinds(report)


def test_a_week_of_more_single_decisions_beside_a_burst_is_found(tmp_path: Path) -> None:
    alone = [[80.0 + at / 10] for at in range(200)]
    report = report_of(with_bursts([90.0] * 25, *alone), tmp_path)
    (found,) = (of for of in report.body["anomalies"] if of["kind"] == "volume")
    assert found["severity"] == "high"
    assert found["reasons"] == ["more_decisions_than_usual"]


@pytest.mark.parametrize("size", [25, 50, 100])
def test_a_burst_of_like_values_is_no_narrower_spread(size: int, tmp_path: Path) -> None:
    assert kinds(report_of(with_bursts([90.0] * size), tmp_path)) == []


def test_as_many_like_values_that_came_singly_are_a_narrower_spread(tmp_path: Path) -> None:
    report = report_of(with_bursts(*[[90.0]] * 100), tmp_path)
    (found,) = (of for of in report.body["anomalies"] if of["kind"] == "metric_shift")
    assert found["reasons"] == [f"metric_spread_shrank:{METRIC}"]
    assert found["severity"] == "high"


def test_values_of_a_burst_lie_far_out_and_ordinary_ones_beside_it_do_not(tmp_path: Path) -> None:
    report = report_of(with_bursts([300.0] * 100), tmp_path)
    (at,) = (place for place, of in enumerate(report.body["anomalies"]) if of["kind"] == "metric_outlier")
    assert report.body["anomalies"][at]["decisions"] == 100
    assert {of["value"] for of in report.body["anomalies"][at]["numbers"]["farthest"]} == {300.0}
