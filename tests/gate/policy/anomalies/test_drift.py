"""Which facts drifted, and where."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gate.policy.anomalies.drift import Drift, Histogram, find_drift
from gate.policy.anomalies.statistics import chance_index, homogeneity, stability_index
from gate.policy.anomalies.weekly.groups import Groups, GroupSums
from gate.policy.anomalies.weekly.windows import Windows

BEFORE, AFTER = [30, 10], [10, 30]


def drifts(*facts: list[list[int]], min_sample: int = 20) -> list[Drift]:
    histograms = [Histogram(f"fact {number}", ["a", "b"], weeks) for number, weeks in enumerate(facts)]
    return find_drift(histograms, max(map(len, facts), default=0), min_sample)


def test_facts_that_stay_do_not_drift() -> None:
    assert drifts([BEFORE] * 20) == drifts() == []


def test_a_drift_that_stays_is_told_once_with_both_histograms() -> None:
    (drift,) = drifts([BEFORE] * 9 + [AFTER] * 6)
    assert (drift.windows.first, drift.windows.reference) == (9, 1)
    weeks = drift.windows.last - 8
    assert (drift.before, drift.within) == ([240, 80], [10 * weeks, 30 * weeks])
    assert drift.index == stability_index(drift.before, drift.within)
    assert drift.p_value == homogeneity(drift.before, drift.within).p_value


def test_each_fact_has_its_own_windows() -> None:
    found = drifts([BEFORE] * 9 + [AFTER] * 2, [BEFORE] * 11, [BEFORE] * 10 + [AFTER])
    assert [(of.fact, of.windows.first) for of in found] == [("fact 0", 9), ("fact 2", 10)]


def test_a_window_or_reference_with_too_few_known_facts_is_no_test() -> None:
    assert drifts([[16, 3], [0, 40]]) == drifts([[40, 0], [3, 16]]) == []
    assert len(drifts([[16, 3], [0, 40]], min_sample=19)) == 1


def test_weeks_without_a_known_fact_count_nowhere() -> None:
    (drift,) = drifts([BEFORE] * 5 + [[0, 0]] * 3 + [AFTER])
    assert drift.windows == Windows(8, 8, 0)
    assert drift.before == [150, 50]


def test_a_small_index_counts_as_a_test_and_no_more() -> None:
    # 0.0404 and 0.0634.
    for moved, number in (([2400, 1600], 0), ([2250, 1750], 1)):
        assert len(drifts([[2800, 1200], moved])) == number


@pytest.mark.parametrize("others", [0, 400])
def test_more_tests_need_a_smaller_p_value(others: int) -> None:
    found = drifts([[30, 10], [19, 21]], *[[[30, 10], [30, 10]]] * others)
    assert len(found) == (others == 0)


def test_the_near_end_of_the_index_is_less_by_what_chance_adds_to_so_many_decisions() -> None:
    (drift,) = drifts([BEFORE] * 9 + [AFTER] * 6)
    sizes = (sum(drift.before), sum(drift.within))
    assert drift.least_index == drift.index - chance_index(2, *sizes)
    assert drift.is_certain


def in_tens(weeks: Sequence[Sequence[int]]) -> list[Groups]:
    """Of each bin the groups of decisions that came ten at a time, those of each group in one bin."""
    return [
        Groups(
            GroupSums(sum(week) // 10, sum(week), week[at], week[at], 10 * sum(week), 10 * week[at], 10 * week[at])
            for week in weeks
        )
        for at in range(len(weeks[0]))
    ]


def test_decisions_that_came_in_groups_count_as_so_many_groups() -> None:
    weeks = [[300, 100], [100, 300]]
    (found,) = find_drift([Histogram("f", ["a", "b"], weeks, in_tens(weeks))], 2, 20)
    assert (found.before, found.within, found.design_effect) == ([300, 100], [100, 300], 10)
    assert found.index == stability_index([30, 10], [10, 30])
    assert found.p_value == homogeneity([30, 10], [10, 30]).p_value
    assert find_drift([Histogram("f", ["a", "b"], weeks, in_tens(weeks))], 2, 41) == []
    few = [[300, 100], [10, 30]]
    assert find_drift([Histogram("f", ["a", "b"], few, in_tens(few))], 2, 1) == []


def test_a_fact_that_creeps_is_told_against_half_a_year_before() -> None:
    weeks = [[200 - 2 * week, 100 + 2 * week] for week in range(52)]
    (drift,) = find_drift([Histogram("f", ["a", "b"], weeks)], 52, 20)
    assert (drift.windows.slow, drift.windows.first - drift.windows.reference) == (True, 26)
    assert drift.before == [sum(of[at] for of in weeks[drift.windows.reference :][:8]) for at in range(2)]


def test_the_greater_a_lasting_drift_is_the_better_it_is_seen_to_last() -> None:
    # All of these have the least p-value that is told; the first week is a little farther off than those that follow.
    weeks = [[400, 0]] * 10 + [[1, 399], *[[2, 398]] * 7]
    (drift,) = drifts(weeks)
    assert (drift.windows, drift.p_value) == (Windows(10, 17, 2), 1e-40)
