"""Dates that lie far from the decisions: of outcomes in a file, of what happens by callers' clocks, of a last entry."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gate.ids import timestamp
from gate.policy.questions import AnomaliesQuestion
from tests.independent import anomalies as independent
from tests.workbench.history.importing import imported, plan_of, small_map, write_csv
from tests.workbench.made_up import DAY, HOUR, MONDAY, POLICY, WEEK, MadeUp
from workbench.engines.anomalies.report import anomalies, answer
from workbench.lake.reader import Snapshot


def history(tmp_path: Path, last_outcome: str) -> Snapshot:
    """Seven cases a day for 28 weeks; each outcome came a day later, and the last one at some date."""
    rows = []
    for number in range(28 * 49):
        day = MONDAY + number // 7 * DAY
        ended = last_outcome if number == 28 * 49 - 1 else f"{day + DAY:%Y-%m-%d}"
        rows.append((f"c{number}", f"{day:%Y-%m-%d}", str(number % 5), "kept", ended))
    file = write_csv(tmp_path / "cases.csv", rows, ("id", "when", "n", "result", "ended"))
    map_ = small_map(
        outcome={"column": "result", "values": {"kept": "succeeded"}},
        outcome_at={"column": "ended", "format": "date"},
    )
    return imported(plan_of(tmp_path / "lake", [file], map_))


@pytest.mark.parametrize("last_outcome", ["2026-07-20", "2026-12-01", "2029-01-01"])
def test_a_history_ends_with_its_last_case_whatever_its_outcomes_are_dated(last_outcome: str, tmp_path: Path) -> None:
    report = anomalies(history(tmp_path, last_outcome), "refund_policy", threshold=0)
    last_case = MONDAY + 28 * WEEK - DAY
    assert report.body["coverage"]["as_of"] == report.body["coverage"]["to"] == timestamp(last_case)
    assert report.body["coverage"]["weeks"] == 28
    # Nothing was decided after the file ends, and that is no lack of decisions.
    assert [of for of in report.body["anomalies"] if of["kind"] == "volume"] == []
    assert report.weekly["week"].max() == (MONDAY + 27 * WEEK).date()


def since_forgotten(years: int) -> MadeUp:
    """Decisions of 20 weeks, the last two of which are otherwise; an outcome years later is the chain's last entry."""
    chain, chance = MadeUp(), random.Random(5)  # noqa: S311 - for tests to be the same each time
    for number in range(20 * 40):
        at = MONDAY + number // 40 * WEEK + (number % 40) * 4 * HOUR
        verdict = "no" if chance.random() < (0.6 if number >= 18 * 40 else 0.1) else "yes"
        last = chain.decide(at, verdict=verdict)
        if number < 20 * 40 - 1:
            chain.outcome(last, at + HOUR, observed_metrics={"lost": chance.random()})
    chain.outcome(last, MONDAY + timedelta(days=365 * years))
    return chain


@pytest.mark.parametrize("years", [1, 2, 3, 60])
def test_a_policy_by_which_nobody_decides_any_more_keeps_its_weeks(years: int, tmp_path: Path) -> None:
    chain = since_forgotten(years)
    report = answer(chain.snapshot(tmp_path), AnomaliesQuestion(POLICY, threshold=0, max_items=200, value="lost"))
    every: dict[str, Any] = {"threshold": 0, "max_items": 200, "value": "lost"}
    assert report.body == independent.anomalies(chain.entries, chain.requests, POLICY, **every)
    assert report.body["coverage"]["weeks"] <= 104
    assert report.weekly.filter(of="verdict")["count"].sum() > 0


def test_a_clock_that_ran_far_ahead_of_what_happened_leaves_weeks_with_decisions(tmp_path: Path) -> None:
    chain = MadeUp()
    for number in range(200):
        at = MONDAY + number * 6 * HOUR
        chain.outcome(chain.decide(at, occurred_at=timestamp(at - DAY)), at + HOUR)
    last = chain.decide(at, occurred_at=timestamp(at))
    chain.outcome(last, at + HOUR, occurred_at="2031-01-01T00:00:00.000Z")
    snapshot = chain.snapshot(tmp_path)
    report = anomalies(snapshot, POLICY, clock="occurred", threshold=0)
    assert report.weekly.filter(of="verdict")["count"].sum() > 0
