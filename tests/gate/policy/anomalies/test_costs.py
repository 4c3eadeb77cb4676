"""To which week a shift lasts, and what a metric came to meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from gate.policy.anomalies.weekly.costs import Measured, lasts_to
from gate.policy.anomalies.weekly.windows import Windows


def until(*after: int, last: int = 9) -> int:
    """The last week of a shift, by how far the weeks after its window lie beyond the middle."""
    return lasts_to(last, last + 1 + len(after), lambda week: Fraction(after[week - last - 1]))


@pytest.mark.parametrize(
    ("after", "week"),
    [
        ((), 9),
        ((-1,), 9),
        ((1, 1, 1), 12),
        ((3, -1, 3), 12),
        ((3, -5, 1), 10),
        ((0,) * 8 + (5,), 9),
        ((0,) * 7 + (5,), 17),
        ((2, 2, -2, -2, -2), 11),
    ],
)
def test_a_shift_lasts_as_long_as_its_weeks_together_lie_beyond_the_middle(after: Sequence[int], week: int) -> None:
    assert until(*after) == week


def measured(*weeks: Sequence[float], age: int = 0) -> Measured:
    """Values of a metric, by week, whose outcomes came at one age."""
    return Measured("lost", [{age: (len(of), sum(map(Fraction, of), Fraction(0)))} for of in weeks])


WINDOWS = Windows(2, 2, 0)
HORIZONS = (56, 56, 56, 56)


def test_a_cost_is_what_came_in_more_than_by_the_mean_before() -> None:
    of = measured([1, 1], [1, 1], [5, 5], [3, 5])
    assert of.cost(WINDOWS, 2, HORIZONS, None) == 8
    assert of.cost(WINDOWS, 3, HORIZONS, None) == 14


def test_by_decision_values_that_are_no_longer_there_are_lost() -> None:
    of = measured([10, 10], [10, 10], [10], [10])
    assert of.cost(WINDOWS, 2, HORIZONS, None) == 0
    assert of.cost(WINDOWS, 2, HORIZONS, (2, 2, 2, 2)) == -10


def test_values_are_compared_at_equal_age_and_those_of_young_weeks_not_at_all() -> None:
    of = Measured(
        "lost", [{0: (1, Fraction(1)), 30: (1, Fraction(99))}, {}, {0: (1, Fraction(4))}, {0: (1, Fraction(9))}]
    )
    assert of.cost(WINDOWS, 3, (56, 56, 5, -1), None) == 3


@pytest.mark.parametrize("weeks", [([], [], [5.0]), ([1.0], [1.0], [])])
def test_nothing_is_known_where_one_side_has_no_value(weeks: Sequence[Sequence[float]]) -> None:
    assert measured(*weeks).cost(WINDOWS, 2, HORIZONS, None) is None
