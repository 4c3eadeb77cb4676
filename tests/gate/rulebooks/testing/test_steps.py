"""Steps between numbers are those that an author would write, and never leave JSON or jump over a threshold."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.encoding.strict_json import MAX_SAFE_INTEGER
from gate.rulebooks.testing.steps import Direction, beside, moved
from tests.reference.strategies import json_numbers
from tests.support.tiers import examples
from tests.support.torture import size

DIRECTIONS: tuple[Direction, ...] = (-1, 1)


@pytest.mark.parametrize(
    ("number", "whole", "below", "above"),
    [
        (50, True, 49, 51),
        (2.5, True, 1.5, 3.5),
        (50, False, 49.99, 50.01),
        (0.1, False, 0.09, 0.11),
        (0.125, False, 0.124, 0.126),
        (0.01, False, 0, 0.02),
        (-3.0, True, -4, -2),
        (1e-7, False, 0, 2e-7),
        (MAX_SAFE_INTEGER, True, MAX_SAFE_INTEGER - 1, None),
        (-MAX_SAFE_INTEGER, True, None, 1 - MAX_SAFE_INTEGER),
        (1.7976931348623157e308, False, 1.7976931348623155e308, None),
    ],
)
def test_a_number_moves_by_one_natural_step(
    number: float, whole: bool, below: float | None, above: float | None
) -> None:
    assert [moved(number, direction, whole=whole) for direction in DIRECTIONS] == [below, above]


@settings(max_examples=examples(size(50, 5_000)))
@given(json_numbers(), st.booleans(), st.sampled_from(DIRECTIONS))
def test_a_step_leads_in_its_direction_and_stays_in_json(number: float, whole: bool, direction: Direction) -> None:
    near = moved(number, direction, whole=whole)
    if near is None:
        assert abs(number) >= MAX_SAFE_INTEGER
    else:
        assert (near - number) * direction > 0
        assert math.isfinite(near)
        assert isinstance(near, float) or abs(near) <= MAX_SAFE_INTEGER


@pytest.mark.parametrize(
    ("thresholds", "whole", "below", "above"),
    [
        ([50], False, 49.99, 50.01),
        ([49.995, 50, 50.005], False, 49.998, 50.002),
        ([49.99, 50, 50.01], False, 49.995, 50.005),
        ([49, 50, 51], True, None, None),
        ([49.5, 50, 50.5], True, None, None),
        ([48, 50, 52], True, 49, 51),
    ],
)
def test_no_threshold_is_jumped_over(
    thresholds: list[float], whole: bool, below: float | None, above: float | None
) -> None:
    assert [beside(50, direction, thresholds, whole=whole) for direction in DIRECTIONS] == [below, above]


def test_a_whole_number_beside_a_fraction_is_the_next_one() -> None:
    assert [beside(2.5, direction, [2.5], whole=True) for direction in DIRECTIONS] == [2, 3]


@settings(max_examples=examples(size(50, 5_000)))
@given(st.lists(json_numbers(), min_size=2, max_size=5), st.booleans())
def test_what_is_beside_a_threshold_is_between_it_and_the_next(numbers: list[float], whole: bool) -> None:
    thresholds = sorted(set(numbers))
    for low, high in pairwise(thresholds):
        for number, direction in ((low, DIRECTIONS[1]), (high, DIRECTIONS[0])):
            near = beside(number, direction, thresholds, whole=whole)
            if near is not None:
                assert low < near < high
                assert not whole or float(near).is_integer()
            elif not whole:
                assert math.nextafter(low, high) == high or abs(number) >= MAX_SAFE_INTEGER
