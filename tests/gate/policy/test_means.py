"""Means with their intervals, against the tables of Student's distribution and the standard library's arithmetic."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.policy.means import Mean, mean_interval, student_t, sums_of
from tests.support.reference import stats
from tests.support.tiers import examples

# Student's t for a 95 % interval, as printed tables have it.
TABLE = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 12: 2.179,
    15: 2.131, 20: 2.086, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980, 1000: 1.962, 1_000_000: 1.960,
}  # fmt: skip


@pytest.mark.parametrize(("degrees", "quantile"), TABLE.items())
def test_the_quantile_is_that_of_the_tables(degrees: int, quantile: float) -> None:
    assert round(student_t(degrees), 3) == quantile


def test_the_quantile_has_nine_digits_everywhere_and_falls_where_the_series_ends() -> None:
    degrees = [*range(1, 20), *range(390, 412), 9_999, 10**6, 10**9]
    found = [student_t(of) for of in degrees]
    assert found == sorted(found, reverse=True)
    assert found == pytest.approx([float(stats().t.ppf(0.975, of)) for of in degrees], rel=1e-9)


def test_nothing_is_said_of_no_values_and_no_interval_of_one() -> None:
    assert mean_interval(sums_of([])) is None
    assert mean_interval(sums_of([2.5])) == Mean(2.5, None, None, 2.5, None, None)
    assert mean_interval(sums_of([2.5] * 9)) == Mean(22.5, 22.5, 22.5, 2.5, 2.5, 2.5)


def test_a_mean_is_that_of_a_textbook() -> None:
    # W. S. Gosset's hours of sleep gained, 1908.
    found = mean_interval(sums_of([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]))
    assert found is not None
    assert (found.sum, found.mean) == (23.3, 2.33)
    assert (found.low, found.high) == (0.897678, 3.762322)


def test_what_a_double_cannot_hold_is_null_and_the_rest_is_told() -> None:
    assert mean_interval(sums_of([1.5e308, 1.5e308])) == Mean(None, None, None, 1.5e308, 1.5e308, 1.5e308)


def test_digits_are_not_lost_among_great_values() -> None:
    found = mean_interval(sums_of([1e15 + 1, 1e15 + 2, 1e15 + 3]))
    assert found is not None
    assert found.high is not None
    assert found.high - 1e15 == pytest.approx(2 + 4.302652730 / math.sqrt(3), abs=0.2)


@settings(max_examples=examples(60))
@given(st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 2)), min_size=2, max_size=60))
def test_the_interval_is_the_mean_with_so_many_standard_errors(values: list[float]) -> None:
    found = mean_interval(sums_of(values))
    assert found is not None
    mean, error = statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))
    half = float(stats().t.ppf(0.975, len(values) - 1)) * error
    expected = (math.fsum(values), mean, mean - half, mean + half)
    # The quantile has nine digits.
    close = 1e-8 * half + 2e-6
    assert (found.sum, found.mean, found.low, found.high) == pytest.approx(expected, abs=close)
    ends = ((mean - half) * len(values), (mean + half) * len(values))
    assert (found.sum_low, found.sum_high) == pytest.approx(ends, abs=close * len(values))


@settings(max_examples=examples(60))
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_the_order_of_values_means_nothing(values: list[float]) -> None:
    assert mean_interval(sums_of(values)) == mean_interval(sums_of(sorted(values)))
