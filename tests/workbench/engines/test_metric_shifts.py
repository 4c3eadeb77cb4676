"""Metrics that shift, through the engine: what is planted is found, what is chance or comes together is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from math import exp, log
from pathlib import Path
from typing import Any, Final

import pytest

from gate.ids import timestamp
from gate.policy.questions import AnomaliesQuestion
from tests.independent import anomalies as independent
from tests.workbench.made_up import DAY, HOUR, MONDAY, POLICY, WEEK, MadeUp, rulebook_of
from tests.workbench.readings import METRIC, Draw, read, readings
from workbench.engines.anomalies import samples
from workbench.engines.anomalies.report import AnomalyReport, anomalies, answer
from workbench.engines.anomalies.sentences import surroundings


def seen(chain: MadeUp, lake: Path, **chosen: Any) -> AnomalyReport:
    return anomalies(chain.snapshot(lake), POLICY, max_items=200, **chosen)


def shifts(report: AnomalyReport) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = [of for of in report.body["anomalies"] if of["kind"] == "metric_shift"]
    return listed


PLANTED: Final[dict[str, tuple[Draw, dict[str, int], int, str]]] = {
    # What is drawn, how much of it, from which week on it is otherwise, and what is said of it.
    "readings of about 90 raised by 90": (lambda of, week: of.gauss(90, 20) + 90 * (week >= 7), {}, 7, "metric_rose"),
    "readings of about 180 lowered by 90": (
        lambda of, week: of.gauss(180, 20) - 90 * (week >= 7),
        {},
        7,
        "metric_fell",
    ),
    "a rise of one standard deviation": (
        lambda of, week: of.gauss(0, 10) + 10 * (week >= 12),
        {"per_week": 160},
        12,
        "metric_rose",
    ),
    "a fall of the middle half's width": (
        lambda of, week: of.gauss(0, 10) - 13.5 * (week >= 12),
        {},
        12,
        "metric_fell",
    ),
    "three times as much": (lambda of, week: of.lognormvariate(2, 0.6) * (3 if week >= 9 else 1), {}, 9, "metric_rose"),
    "three times as wide": (
        lambda of, week: of.gauss(50, 15 if week >= 12 else 5),
        {},
        12,
        "metric_spread_grew",
    ),
    "a third as wide": (lambda of, week: of.gauss(50, 5 if week >= 12 else 15), {}, 12, "metric_spread_shrank"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_an_alert_from_the_week_on_in_which_it_began(name: str, tmp_path: Path) -> None:
    draw, much, week, reason = PLANTED[name]
    report = seen(readings(draw, **much), tmp_path)
    (found,) = shifts(report)
    assert (found["subject"], found["severity"]) == (METRIC, "high")
    assert found["reasons"][0] == f"{reason}:{METRIC}"
    assert found["window"]["from"] == timestamp(MONDAY + week * WEEK)
    (level, *_) = found["numbers"]["levels"]
    assert level["p_value"] <= level["required_p"]
    assert 0 < level["least_delta"] <= abs(level["cliffs_delta"])
    # What the new level has is usual by now, and no outlier.
    assert [of["kind"] for of in report.body["anomalies"] if of["severity"] == "high"] == ["metric_shift"]


def losses(share: float, then: float, *, sign: int = 1) -> Draw:
    """Nothing in most cases; in so many of them a loss, and in others from the tenth week on."""
    return lambda of, week: sign * of.uniform(10, 20) if of.random() < (share if week >= 10 else then) else 0.0


def widening(of: random.Random, week: int) -> float:
    """Readings that lie farther apart from the tenth week on, as ratios."""
    return of.lognormvariate(3, 1.2 if week >= 10 else 0.4)


SAME_MEDIANS: Final[dict[str, tuple[Draw, str, str]]] = {
    "the upper quartile": (losses(0.4, 0.05), "rose: its upper quartile went from 0 to 1", "An upper quartile of 1"),
    "the lower quartile": (losses(0.4, 0.05, sign=-1), "fell: its lower quartile went from 0 to -1", "quartile of -1"),
    "values above": (losses(0.22, 0.01), "rose: the share of values above 0 went from ", "% of values above 0"),
    "values below": (
        losses(0.22, 0.01, sign=-1),
        "fell: the share of values below 0 went from ",
        "% of values below 0",
    ),
}


@pytest.mark.parametrize("name", SAME_MEDIANS)
def test_where_the_median_stays_the_sentence_names_what_moved(name: str, tmp_path: Path) -> None:
    draw, sentence, heading = SAME_MEDIANS[name]
    found, *_ = shifts(seen(readings(draw, per_week=160), tmp_path))
    assert found["summary"].startswith(f"The metric {METRIC} {sentence}")
    assert found["summary"].endswith(", its median stayed at 0.")
    told = surroundings(found)  # type: ignore[arg-type]
    assert heading.lower() in told.lower()
    assert "a median of 0" not in told
    level = found["numbers"]["levels"][0]
    others = "below" if found["reasons"][0] == f"metric_rose:{METRIC}" else "above"
    assert level["within"][others] == level["before"][others] == 0


def test_a_spread_by_ratios_says_so_and_what_differs_is_the_width(tmp_path: Path) -> None:
    found = shifts(seen(readings(widening, per_week=160), tmp_path))
    spread = next(of for of in found if of["reasons"] == [f"metric_spread_grew:{METRIC}"])
    (level,) = spread["numbers"]["levels"]
    assert level["scale"] == "ratio"
    before, within = (
        log(level[when]["upper_quartile"] / level[when]["lower_quartile"]) for when in ("before", "within")
    )
    assert level["difference"] == float(f"{within - before:.6g}")
    assert "than before, measured by ratios: the middle half of the values lay between " in spread["summary"]
    assert f"({exp(before):,.4g} times), and lies between " in spread["summary"]
    assert spread["summary"].endswith(f" in the window ({exp(within):,.4g} times).")


@pytest.mark.parametrize("raised", [12, 30, 90, 900])
def test_the_greater_a_lasting_shift_is_the_better_it_is_seen_to_last(raised: int, tmp_path: Path) -> None:
    chain = readings(lambda of, week: of.gauss(90, 20) + raised * (week >= 12), per_week=160)
    found, *_ = shifts(seen(chain, tmp_path))
    weeks = datetime.fromisoformat(found["window"]["to"]) - datetime.fromisoformat(found["window"]["from"])
    assert found["window"]["from"] == timestamp(MONDAY + 12 * WEEK)
    assert weeks > 7 * WEEK
    assert found["effect"]["lasting"]


def test_all_decisions_that_a_shift_counts_are_given(tmp_path: Path) -> None:
    draw, much, week, _ = PLANTED["readings of about 90 raised by 90"]
    report = seen(readings(draw, **much), tmp_path)
    at = next(at for at, of in enumerate(report.body["anomalies"]) if of["kind"] == "metric_shift")
    told, cases = report.body["anomalies"][at], report.decisions(at).collect()
    assert cases.height == told["decisions"]
    # It lasts to the last week of which outcomes are known, and costs as long.
    until = datetime.fromisoformat(told["effect"]["until"])
    assert until == MONDAY + 23 * WEEK > datetime.fromisoformat(told["window"]["to"])
    assert told["effect"]["cases"] == (23 - week) * 60
    assert set(told["decision_ids"]) <= set(cases["decision_id"])
    assert cases["created_at"].min() >= MONDAY + week * WEEK  # type: ignore[operator]
    (chart,) = (report.plot(at).to_dict(),)
    assert chart["layer"]
    assert report.beside(at).columns == ["week", "values", "low", "median", "high"]


def failing(weeks: int, *, losing: float = 100.0) -> MadeUp:
    """Failures, which alone lose something, of one case in twenty; of seven for ten weeks from the twentieth on."""
    chance, chain = random.Random(4), MadeUp()  # noqa: S311 - for tests to be the same each time
    for week in range(weeks):
        for minute in sorted(chance.sample(range(7 * 24 * 60), 40)):
            at = MONDAY + week * WEEK + minute * timedelta(minutes=1)
            bad = chance.random() < (0.35 if 20 <= week < 30 else 0.05)
            lost = {METRIC: losing if bad else 0.0}
            chain.outcome(chain.decide(at), at + HOUR, "failed" if bad else "succeeded", observed_metrics=lost)
    return chain


def test_failures_that_cost_are_valued_by_what_they_cost_as_long_as_they_last(tmp_path: Path) -> None:
    chain = failing(44)
    every: dict[str, Any] = {"threshold": 0, "max_items": 200, "value": METRIC}
    body = answer(chain.snapshot(tmp_path), AnomaliesQuestion(POLICY, **every)).body
    assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every)
    outcomes, metric = (
        next(of for of in body["anomalies"] if of["kind"] == kind) for kind in ("outcome_shift", "metric_shift")
    )
    assert outcomes["window"]["from"] == metric["window"]["from"] == timestamp(MONDAY + 20 * WEEK)
    assert outcomes["effect"]["until"] == metric["effect"]["until"] == timestamp(MONDAY + 30 * WEEK)
    # 400 cases, of which about 140 fail and 20 would have: 100 each.
    assert outcomes["effect"]["value"] == pytest.approx(metric["effect"]["value"]) == pytest.approx(12_000, rel=0.15)
    assert outcomes["effect"]["value"] == pytest.approx(100 * outcomes["effect"]["cases"], rel=0.01)


def rare(share: float, then: float, *, sign: int = 1) -> Draw:
    """A loss of 500 in few cases; in more of them from the twentieth week on."""
    return lambda of, week: sign * 500.0 if of.random() < (share if week >= 20 else then) else 0.0


def a_tail(of: random.Random, week: int) -> float:
    """Great values that come to be many from the twentieth week on, among others that stay."""
    return of.gauss(100, 10) + (of.uniform(200, 900) if of.random() < (0.13 if week >= 20 else 0.01) else 0.0)


TAILS: Final[dict[str, tuple[Draw, str]]] = {
    "a loss": (rare(0.2, 0.03), "upper_tail_grew"),
    "a negative loss": (rare(0.2, 0.03, sign=-1), "lower_tail_grew"),
    "great values": (a_tail, "upper_tail_grew"),
}


@pytest.mark.parametrize("name", TAILS)
def test_a_tail_that_grows_is_found_and_lasts(name: str, tmp_path: Path) -> None:
    draw, reason = TAILS[name]
    chain = readings(draw, weeks=32, per_week=60)
    every: dict[str, Any] = {"max_items": 200, "value": METRIC}
    report = answer(chain.snapshot(tmp_path), AnomaliesQuestion(POLICY, **every))
    assert report.body == independent.anomalies(chain.entries, chain.requests, POLICY, **every)
    found, *_ = shifts(report)
    assert f"metric_{reason}:{METRIC}" in found["reasons"]
    assert found["window"]["from"] == timestamp(MONDAY + 20 * WEEK)
    assert found["effect"]["lasting"]
    level = next(of for of in found["numbers"]["levels"] if "tail" in of)
    assert level["tail"]["within"]["rate"] > 2 * level["tail"]["before"]["rate"]
    assert surroundings(found)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(6))
def test_tails_of_what_stays_are_no_alarm(seed: int, tmp_path: Path) -> None:
    draw = rare(0.1, 0.1) if seed % 2 else (lambda of, _: of.lognormvariate(5, 1.5))
    report = seen(readings(draw, weeks=32, per_week=60, seed=seed), tmp_path)
    assert shifts(report) == []


def test_what_creeps_is_told_against_half_a_year_before(tmp_path: Path) -> None:
    # By two standard deviations in a year, a third of one in eight weeks.
    chain = readings(lambda of, week: of.gauss(100, 10) + week * 20 / 52, weeks=52)
    found = shifts(seen(chain, tmp_path))
    slow = [of for of in found if "slow" in of["reasons"]]
    assert len(slow) == 1
    assert slow[0]["severity"] in ("medium", "high")
    assert slow[0]["summary"].endswith(", compared with half a year earlier.")
    (level, *_) = slow[0]["numbers"]["levels"]
    ends = (datetime.fromisoformat(level[name]) for name in ("reference_from", "from"))
    assert -(next(ends) - next(ends)) == 26 * WEEK


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "draw",
    [
        lambda of, _: of.gauss(90, 20),
        lambda of, _: of.lognormvariate(3, 1),
        lambda of, _: of.choice([0, 0, 1, 2, 5]),
        # A spike in a hundred values is no shift.
        lambda of, _: of.gauss(90, 20) * (30 if of.random() < 0.01 else 1),
    ],
    ids=["normal", "skewed", "few values", "spikes"],
)
def test_nothing_shifts_by_chance(draw: Draw, seed: int, tmp_path: Path) -> None:
    report = seen(readings(draw, seed=seed, per_week=40), tmp_path, threshold=0)
    assert shifts(report) == []
    assert report.body["severities"]["high"] == 0


def test_many_readings_of_one_minute_are_no_shift(tmp_path: Path) -> None:
    chance = random.Random(2)  # noqa: S311 - for tests to be the same each time
    chain = MadeUp()
    for week in range(20):
        minutes = sorted(chance.sample(range(6 * 24 * 60), 60))
        for minute in minutes:
            read(chain, MONDAY + week * WEEK + minute * timedelta(minutes=1), chance.gauss(90, 20))
        if week == 14:
            for _ in range(80):
                read(chain, MONDAY + week * WEEK + 6 * DAY + 9 * HOUR, chance.gauss(180, 20))
    assert shifts(seen(chain, tmp_path, threshold=0)) == []


def side_by_side(differ: float) -> MadeUp:
    """Two versions that decide in the same weeks, of which the second one's readings are higher."""
    chance = random.Random(3)  # noqa: S311 - for tests to be the same each time
    chain = MadeUp()
    for week in range(16):
        for number, minute in enumerate(sorted(chance.sample(range(7 * 24 * 60), 80))):
            version = "2" if number % 2 else "1"
            value = chance.gauss(90, 20) + (differ if version == "2" else 0)
            read(chain, MONDAY + week * WEEK + minute * timedelta(minutes=1), value, version)
    return chain


def test_a_version_whose_readings_differ_in_the_same_weeks_is_named(tmp_path: Path) -> None:
    report = seen(side_by_side(40), tmp_path)
    (found,) = shifts(report)
    assert (found["severity"], found["reasons"]) == ("high", [f"metric_rose:{METRIC}", "version_differs:2"])
    (level,) = found["numbers"]["levels"]
    assert (level["version"], found["decisions"], level["within"]["values"]) == ("2", 640, 640)
    at = report.body["anomalies"].index(found)
    assert report.decisions(at).collect()["policy_version"].unique().to_list() == ["2"]


def routed(lower: float) -> MadeUp:
    """Two versions in the same weeks: the second reads so much less in each kind of case, and has most of the hard."""
    chance, chain = random.Random(9), MadeUp()  # noqa: S311 - for tests to be the same each time
    for week in range(20):
        for minute in sorted(chance.sample(range(7 * 24 * 60), 40)):
            hard = chance.random() < 0.5
            version = "2" if chance.random() < (0.8 if hard else 0.2) else "1"
            kind, at = "hard" if hard else "easy", MONDAY + week * WEEK + minute * timedelta(minutes=1)
            decision_id = chain.decide(at, version=version, facts={"kind": kind}, rulebook=rulebook_of("kind"))
            value = chance.gauss(150 if hard else 90, 10) - lower * (version == "2")
            chain.outcome(decision_id, at + HOUR, observed_metrics={METRIC: round(value, 3)})
    return chain


def test_a_version_that_met_other_cases_is_no_alarm_and_the_report_says_so(tmp_path: Path) -> None:
    chain = routed(3)
    every: dict[str, Any] = {"threshold": 0, "max_items": 200}
    body = answer(chain.snapshot(tmp_path), AnomaliesQuestion(POLICY, **every)).body
    found = next(of for of in body["anomalies"] if "version_differs:2" in of["reasons"])
    assert (found["severity"], found["anomaly_score"]) == ("medium", 0.79)
    assert "cases_differ:kind" in found["reasons"]
    assert found["summary"].endswith("; its cases differ in kind.")
    assert found["look_at_next"][0]["what"] == "Compare like cases: version 2 decided different ones."
    assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every)


def test_versions_that_read_the_same_are_not_told_apart(tmp_path: Path) -> None:
    assert shifts(seen(side_by_side(0), tmp_path, threshold=0)) == []


def test_what_a_shift_of_the_named_metric_costs_is_the_difference_of_its_means(tmp_path: Path) -> None:
    draw, much, *_ = PLANTED["readings of about 90 raised by 90"]
    (found,) = shifts(seen(readings(draw, **much), tmp_path, value=METRIC))
    assert found["effect"]["value"] / found["effect"]["cases"] == pytest.approx(90, abs=5)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "made",
    [
        lambda: readings(PLANTED["readings of about 90 raised by 90"][0], weeks=14, per_week=25),
        lambda: readings(PLANTED["three times as much"][0], weeks=16, per_week=20),
        lambda: readings(PLANTED["three times as wide"][0], weeks=20, per_week=25),
        lambda: readings(lambda of, week: of.gauss(100, 10) + week, weeks=40, per_week=15),
        lambda: side_by_side(30),
        lambda: readings(losses(0.5, 0.05, sign=-1), weeks=16, per_week=25),
        lambda: readings(losses(0.24, 0.02), weeks=16, per_week=60),
        lambda: readings(widening, weeks=16, per_week=25),
    ],
    ids=["raised", "times", "wider", "creeping", "versions", "quartile", "share", "ratios"],
)
def test_metric_shifts_are_recounted(made: Callable[[], MadeUp], tmp_path: Path) -> None:
    chain = made()
    snapshot = chain.snapshot(tmp_path)
    for chosen in ({}, {"min_sample": 5, "value": METRIC}):
        every: dict[str, Any] = {"threshold": 0, "max_items": 200, **chosen}
        body = answer(snapshot, AnomaliesQuestion(POLICY, **every)).body
        assert "metric_shift" in {of["kind"] for of in body["anomalies"]}
        assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every)


@pytest.mark.heavy
@pytest.mark.parametrize("most", [100, 300])
def test_a_minute_with_many_is_recounted_whatever_is_sampled(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "MAX_SAMPLED", most)
    chain = readings(PLANTED["readings of about 90 raised by 90"][0], weeks=12, per_week=60)
    for week in (10, 11):
        for _ in range(60):
            read(chain, MONDAY + (12 + week) * WEEK, 400.0, "2")
    snapshot = chain.snapshot(tmp_path)
    every: dict[str, Any] = {"threshold": 0, "max_items": 200, "min_sample": 5}
    body = answer(snapshot, AnomaliesQuestion(POLICY, **every)).body
    assert body["coverage"]["sampled_one_of"] > 1
    assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every, most_sampled=most)
