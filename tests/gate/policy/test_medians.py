"""The interval of a median: its ranks are those of the binomial, and it holds the median as often as it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.policy.medians import lower_rank, median_ranks
from tests.gate.policy.counting import tried
from tests.support.reference import stats


@pytest.mark.parametrize("values", [*range(6), 0])
def test_fewer_than_six_values_have_no_interval(values: int) -> None:
    assert median_ranks(values) is None


# Published tables of the ranks, for example W. J. Conover, Practical Nonparametric Statistics.
@pytest.mark.parametrize(
    ("values", "ranks"), [(6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15)), (100, (40, 61))]
)
def test_known_ranks(values: int, ranks: tuple[int, int]) -> None:
    assert median_ranks(values) == ranks


@pytest.mark.parametrize("values", range(6, 1001))
def test_they_are_the_closest_that_hold_the_median_95_percent_of_the_time(values: int) -> None:
    ranks = median_ranks(values)
    assert ranks is not None
    low, high = ranks
    assert low + high == values + 1
    assert stats().binom.cdf(low - 1, values, 0.5) <= 0.025 < stats().binom.cdf(low, values, 0.5)


@tried
@given(st.integers(1001, 300_000))
def test_of_many_values_they_are_at_most_one_farther_out(values: int) -> None:
    ranks = median_ranks(values)
    assert ranks is not None
    exact = int(stats().binom.ppf(0.025, values, 0.5))
    assert stats().binom.cdf(ranks[0] - 1, values, 0.5) <= 0.025
    assert exact - 1 <= ranks[0] <= exact + 1


@tried
@given(st.lists(st.integers(0, 50), min_size=1, max_size=99))
def test_the_lower_median_has_half_of_the_values_at_or_below_it_and_lies_in_the_interval(values: list[int]) -> None:
    ordered = sorted(values)
    median = ordered[lower_rank(len(values)) - 1]
    assert 2 * sum(value <= median for value in values) >= len(values)
    assert 2 * sum(value < median for value in values) < len(values)
    if (ranks := median_ranks(len(values))) is not None:
        assert ordered[ranks[0] - 1] <= median <= ordered[ranks[1] - 1]


@pytest.mark.parametrize("values", [6, 15, 40, 400])
def test_the_interval_holds_the_true_median(values: int) -> None:
    chance = np.random.default_rng(values)
    drawn = np.sort(chance.exponential(1, (4000, values)), axis=1)
    ranks = median_ranks(values)
    assert ranks is not None
    holds = (drawn[:, ranks[0] - 1] <= np.log(2)) & (np.log(2) <= drawn[:, ranks[1] - 1])
    assert 0.94 <= holds.mean() <= 0.99
