"""What is compared week by week besides rates: ranks of values in bins, and decisions that come together."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.policy.anomalies.statistics import Share
from gate.policy.anomalies.weekly.groups import (
    BinGroups,
    Groups,
    GroupSums,
    are_few,
    design_effect,
    mean_effect,
    singly,
)
from gate.policy.anomalies.weekly.ranks import compare, stratified
from tests.gate.policy.counting import tried


@pytest.fixture(scope="session")
def stats() -> Any:
    """SciPy's statistics, which take a second to load: a process that runs other tests does without."""
    return import_module("scipy.stats")


def two_sides(most: int) -> st.SearchStrategy[tuple[list[int], list[int]]]:
    """Values of two sides by bin, some on each."""
    bins = st.lists(st.tuples(st.integers(0, most), st.integers(0, most)), min_size=1, max_size=6)
    return bins.map(lambda of: ([*(one for one, _ in of), 1], [*(other for _, other in of), 1]))


def values(counts: Sequence[int]) -> list[int]:
    return [at for at, count in enumerate(counts) for _ in range(count)]


class TestRanks:
    @tried
    @given(two_sides(12))
    def test_it_is_mann_and_whitneys_test_with_ties(self, stats: Any, sides: tuple[list[int], list[int]]) -> None:
        first, second = map(values, sides)
        found = compare(*sides)
        dominance = sum((a > b) - (a < b) for a in first for b in second) / (len(first) * len(second))
        assert found.delta == pytest.approx(dominance)
        if len({*first, *second}) > 1:
            told = stats.mannwhitneyu(first, second, use_continuity=False, method="asymptotic")
            assert found.p_value == pytest.approx(told.pvalue, rel=1e-6, abs=1e-40)
        else:
            assert found.p_value == 1

    @tried
    @given(two_sides(12))
    def test_the_sides_can_be_exchanged(self, sides: tuple[list[int], list[int]]) -> None:
        one, other = compare(*sides), compare(sides[1], sides[0])
        assert one.delta == pytest.approx(-other.delta)
        assert (one.variance, one.least_delta) == pytest.approx((other.variance, other.least_delta))

    def test_one_stratum_is_compared_as_if_there_were_none(self) -> None:
        sides = ([4, 7, 2], [1, 3, 9])
        one, whole = stratified([sides]), compare(*sides)
        assert (one.delta, one.z) == pytest.approx((whole.delta, whole.z))
        assert stratified([]).p_value == stratified([([3], [0])]).p_value == 1

    def test_what_differs_between_strata_only_is_no_difference(self) -> None:
        low, high = ([20, 0], [5, 0]), ([0, 5], [0, 20])
        together = compare([20, 5], [5, 20])
        assert together.p_value < 1e-3
        assert stratified([low, high]).p_value == 1

    def test_the_near_end_covers_the_effect_95_times_of_100(self) -> None:
        chance = random.Random(4)  # noqa: S311 - for tests to be the same each time
        # Of two normal variables a standard deviation apart.
        true, beyond, tries = math.erf(0.5), 0, 400
        for _ in range(tries):
            counts = [[0] * 60 for _ in range(2)]
            for side, mean in zip(counts, (1, 0), strict=True):
                for _ in range(80):
                    side[min(59, max(0, int(30 + 10 * chance.gauss(mean, 1))))] += 1
            beyond += compare(counts[0], counts[1]).least_delta > true
        assert beyond / tries < 0.06


def sums_of(groups: Sequence[Sequence[int]]) -> GroupSums:
    """The sums of groups of numbers."""
    every = [number for group in groups for number in group]
    return GroupSums(
        groups=len(groups),
        members=len(every),
        total=sum(every),
        squares=sum(number * number for number in every),
        sizes=sum(len(group) ** 2 for group in groups),
        products=sum(len(group) * sum(group) for group in groups),
        totals=sum(sum(group) ** 2 for group in groups),
    )


def drawn(chance: random.Random, groups: int, size: int) -> list[list[int]]:
    """Groups whose decisions are alike with a correlation of 1 / 4: beta-binomial ones."""
    rates = (chance.betavariate(2.1, 0.9) for _ in range(groups))
    return [[int(chance.random() < rate) for _ in range(size)] for rate in rates]


class TestGroups:
    @tried
    @given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=2, max_size=8), st.floats(0, 9))
    def test_the_sums_give_what_the_groups_do(self, groups: list[list[int]], mean: float) -> None:
        apart = [[number - mean for number in group] for group in groups]
        alone = sum(of * of for group in apart for of in group)
        products = sum(sum(group) ** 2 - sum(of * of for of in group) for group in apart)
        told = 1.0 if alone <= 1e-9 else max(1.0, 1 + len(groups) / (len(groups) - 1) * products / alone)
        if alone > 1e-9:
            assert design_effect(sums_of(groups), mean) == pytest.approx(told, rel=1e-6, abs=2e-6)

    def test_single_decisions_count_in_full_and_equal_ones_of_a_group_as_one(self) -> None:
        assert design_effect(sums_of([[1]] * 30 + [[0]] * 70), 0.3) == 1
        alike = design_effect(sums_of([[1] * 5] * 30 + [[0] * 5] * 70), 0.3)
        assert alike == pytest.approx(1 + 4 * 100 / 99, abs=1e-6)
        assert singly(Share(150, 500), alike) == Share(int(150 / alike), int(500 / alike))

    def test_groups_with_a_correlation_have_the_design_effect_that_follows_from_it(self) -> None:
        chance = random.Random(5)  # noqa: S311 - for tests to be the same each time
        groups = drawn(chance, 3_000, 9)
        # 1 + (9 - 1) / 4.
        assert design_effect(sums_of(groups), 0.7) == pytest.approx(3, abs=0.2)
        none = [1 - number for group in groups for number in group]
        of_none = sums_of([none[at : at + 9] for at in range(0, len(none), 9)])
        bins = [sums_of(groups), of_none]
        assert mean_effect(bins, [0.7, 0.3]) == pytest.approx(3, abs=0.2)

    def test_few_are_those_of_less_than_five_groups_unless_they_are_alone(self) -> None:
        assert [are_few(sums_of([[1, 0]] * number)) for number in (1, 4, 5)] == [True, True, False]
        assert not are_few(sums_of([[1]] * 2))
        assert are_few(GroupSums())

    @tried
    @given(
        st.lists(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=5), min_size=1, max_size=4),
        st.lists(st.integers(0, 1000), min_size=4, max_size=4),
    )
    def test_groups_of_bins_have_the_sums_of_any_numbers(
        self, weeks: list[list[list[int]]], numbers: list[int]
    ) -> None:
        counts = [[sum(group.count(place) for group in week) for place in range(4)] for week in weeks]
        shared = [
            (at, minute, place, group.count(place))
            for at, week in enumerate(weeks)
            for minute, group in enumerate(week)
            for place in {*group}
            if len(group) > 1
        ]
        for first in range(len(weeks)):
            groups = [[numbers[place] for place in group] for week in weeks[first:] for group in week]
            found = BinGroups(counts, shared).sums(first, len(weeks) - 1, numbers)
            assert found == sums_of(groups)

    def test_weeks_are_added(self) -> None:
        weeks = [sums_of([[1, 0]]), sums_of([[1]] * 3), sums_of([[0, 0, 1]])]
        assert Groups(weeks).sums(0, 2) == sums_of([[1, 0], [1], [1], [1], [0, 0, 1]])
        assert Groups(weeks).sums(1, 1) == weeks[1]
