"""Dates that lie far from the decisions: of outcomes in a file, of what happens by callers' clocks, of a last entry."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from gate.ids import timestamp
from gate.policy.anomalies.alerts import still_open
from gate.policy.questions import AnomaliesQuestion
from tests.independent import anomalies as independent
from tests.workbench.history.importing import imported, plan_of, small_map, write_csv
from tests.workbench.made_up import DAY, HOUR, MONDAY, POLICY, WEEK, MadeUp
from tests.workbench.readings import METRIC, read, readings
from workbench.engines.anomalies import samples
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


SENTINELS: Final = ("0001-01-01T00:00:00Z", "1900-01-01T00:00:00Z", "2099-12-31T00:00:00Z", "9999-12-31T23:59:59.999Z")


def with_a_sentinel(*sentinels: str) -> MadeUp:
    """Readings that doubled, of 30 weeks; and decisions at other dates."""
    chain = readings(lambda of, week: of.gauss(180 if week >= 15 else 90, 10), weeks=30, per_week=30)
    for sentinel in sentinels:
        at = datetime.fromisoformat(sentinel)
        read(chain, at if at.year < 9999 else at - DAY, 90.0)
    return chain


@pytest.mark.parametrize("sentinels", [*((of,) for of in SENTINELS), SENTINELS, ("2099-01-01T00:00:00Z",) * 40])
def test_a_date_that_stands_for_none_silences_nothing_and_the_report_says_so(
    sentinels: tuple[str, ...], tmp_path: Path
) -> None:
    chain = with_a_sentinel(*sentinels)
    every: dict[str, Any] = {"threshold": 0, "max_items": 200, "value": METRIC}
    body = answer(chain.snapshot(tmp_path / "lake"), AnomaliesQuestion(POLICY, **every)).body
    (found,) = (of for of in body["anomalies"] if of["severity"] == "high")
    assert found["reasons"] == [f"metric_rose:{METRIC}"]
    assert found["window"]["from"] == timestamp(MONDAY + 15 * WEEK)
    farthest = max(sentinels) if max(sentinels) > "2026" else min(sentinels)
    far = f"{len(sentinels):,} of {900 + len(sentinels):,} decisions"
    told = f"{far} lie more than 104 weeks from the others, such as that of "
    (note,) = (of for of in body["notes"] if of.startswith(told))
    assert note.startswith(f"{told}{farthest[:8]}")
    assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every)


def test_a_report_without_far_dates_says_nothing_of_them(tmp_path: Path) -> None:
    body = answer(with_a_sentinel().snapshot(tmp_path / "lake"), AnomaliesQuestion(POLICY)).body
    assert not [of for of in body["notes"] if "104 weeks" in of]


@pytest.mark.parametrize("year", [1, 9999])
def test_decisions_at_an_end_of_the_calendar_are_reported(year: int, tmp_path: Path) -> None:
    chain, end = MadeUp(), datetime(year, 12 if year == 9999 else 1, 28 if year == 9999 else 1, tzinfo=UTC)
    for number in range(60):
        weeks = number // 6 - 9 * (year == 9999)
        read(chain, end + weeks * WEEK + number % 6 * HOUR, float(number))
    report = anomalies(chain.snapshot(tmp_path / "lake"), POLICY, threshold=0, min_sample=3)
    assert report.body["coverage"]["weeks"] >= 10
    assert report.body["anomalies"]
    for at in range(len(report.body["anomalies"])):
        report.decisions(at).collect()
        report.plot(at).to_dict()
    assert still_open(report.body)


def by_day(of: datetime, hours: int = 0) -> datetime:
    """The midnight of a day, where it is so many hours behind UTC's."""
    return of.replace(hour=0, minute=0, second=0, microsecond=0) + hours * HOUR


@pytest.mark.parametrize("hours", [None, 0, 22])
def test_a_volume_is_seen_where_only_days_are_known(hours: int | None, tmp_path: Path) -> None:
    chain, chance = MadeUp(), random.Random(2)  # noqa: S311 - for tests to be the same each time
    for week in range(30):
        for minute in sorted(chance.sample(range(7 * 24 * 60), 300 if week in (20, 21) else 30)):
            at = MONDAY + week * WEEK + minute * timedelta(minutes=1)
            read(chain, at if hours is None else by_day(at, hours), chance.gauss(90, 10))
    every: dict[str, Any] = {"threshold": 0, "max_items": 200}
    body = answer(chain.snapshot(tmp_path / "lake"), AnomaliesQuestion(POLICY, **every)).body
    (found,) = (of for of in body["anomalies"] if of["severity"] == "high")
    assert found["kind"] == "volume"
    assert found["reasons"] == ["more_decisions_than_usual"]
    assert any("Their minute is unknown" in of for of in body["notes"]) == (hours is not None)
    assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every)


def of_days(*, month: bool = False, timed: int = 0) -> MadeUp:
    """Failures that rise from week 20 on, of which only days are known, or months; and so many with a time in one
    minute, which all failed.
    """
    chain, chance = MadeUp(), random.Random(3)  # noqa: S311 - for tests to be the same each time
    for week in range(30):
        for day in sorted(chance.choices(range(7), k=30)):
            at = MONDAY + week * WEEK + day * DAY
            at = at.replace(day=1) if month else at
            decision_id = chain.decide(at, facts={"kind": "late" if week >= 20 and chance.random() < 0.5 else "usual"})
            failed = chance.random() < (0.4 if week >= 20 else 0.05)
            chain.outcome(
                decision_id, at + DAY, "failed" if failed else "succeeded", observed_metrics={"lost": float(failed)}
            )
    for _ in range(timed):
        at = MONDAY + 10 * WEEK + 17 * timedelta(minutes=1)
        chain.outcome(chain.decide(at), at + DAY, "failed")
    return chain


@pytest.mark.parametrize("month", [False, True])
def test_failures_are_seen_where_only_days_or_months_are_known(month: bool, tmp_path: Path) -> None:
    chain = of_days(month=month)
    every: dict[str, Any] = {"threshold": 0, "max_items": 200}
    body = answer(chain.snapshot(tmp_path / "lake"), AnomaliesQuestion(POLICY, **every)).body
    found = next(of for of in body["anomalies"] if of["kind"] == "outcome_shift")
    assert found["severity"] == "high"
    assert {of["design_effect"]["within"] for of in found["numbers"]["changes"]} == {1.0}
    assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every)


@pytest.mark.parametrize("most", [100, 300, 100_000])
def test_a_minute_that_is_known_stays_a_group_among_days(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "MAX_SAMPLED", most)
    chain = of_days(timed=40)
    every: dict[str, Any] = {"threshold": 0, "max_items": 200}
    body = answer(chain.snapshot(tmp_path / "lake"), AnomaliesQuestion(POLICY, **every)).body
    assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every, most_sampled=most)
    weeks = [of["window"]["from"] for of in body["anomalies"] if of["kind"] == "outcome_shift"]
    assert timestamp(MONDAY + 10 * WEEK) not in weeks
