"""How values of a metric are measured: by ratios or differences, by season, and at the ends of what a number can be."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gate.policy.anomalies.outliers import (
    GREATEST,
    SEASONS,
    by_ratio,
    distance_at,
    distance_of,
    far,
    kind_of,
    season_of,
)
from tests.gate.policy.counting import tried

numbers = st.floats(-1.7e308, 1.7e308, allow_nan=False)
above_zero = st.floats(5e-324, sys.float_info.max, exclude_min=False)


class TestRatios:
    @pytest.mark.parametrize(
        ("least", "deciles", "ratios"),
        [
            (1.0, (1.0, 10.0, 100.0), True),
            (0.0, (1.0, 10.0, 100.0), True),
            (-0.001, (1.0, 10.0, 100.0), False),
            (1.0, (10.0, 20.0, 30.0), False),
            (1.0, (1.0, 5.0, 9.0), False),
            (4.0, (4.0, 4.0, 4.0), False),
            (4.0, (4.0, 4.0, 9.0), False),
            (5e-324, (5e-324, 1.0, 1.7e308), True),
            (0.0, (1e300, 1e304, 1e308), True),
        ],
    )
    def test_values_that_lie_evenly_by_their_logarithms_are_measured_by_ratios(
        self, least: float, deciles: tuple[float, float, float], ratios: bool
    ) -> None:
        assert by_ratio(least, deciles) is ratios

    def test_deciles_that_have_one_logarithm_are_measured_by_differences(self) -> None:
        low, high = 10_000_000_000.0, 10_000_000_000.000002
        assert low < high
        assert math.log(low) == math.log(high)
        assert by_ratio(low, (low, low, high)) is False

    @tried
    @given(st.tuples(above_zero, above_zero, above_zero))
    def test_whatever_the_deciles_are_there_is_an_answer(self, of: tuple[float, float, float]) -> None:
        low, middle, high = sorted(of)
        assert by_ratio(low, (low, middle, high)) in (True, False)


class TestSeasons:
    def test_the_finest_is_taken_that_has_enough_of_every_kind(self) -> None:
        # Above the median by day, and never by night.
        every = {(day, hour): (30, 30 if 8 <= hour < 20 else 0) for day in range(1, 8) for hour in range(24)}
        assert season_of(every, 30) == "weekday and hour"
        assert season_of(every, 31) == "hour"
        assert season_of(every, 211) is None

    def test_weekdays_are_told_apart_where_hours_are_not(self) -> None:
        weekend = {(day, hour): (2, 2 if day > 5 else 0) for day in range(1, 8) for hour in range(24)}
        assert season_of(weekend, 48) == "weekday"

    def test_kinds_that_do_not_occur_need_nothing(self) -> None:
        assert season_of({(1, 9): (50, 0), (3, 17): (50, 50)}, 50) == "weekday and hour"

    @pytest.mark.parametrize("above", [25, 0, 50])
    def test_kinds_that_do_not_differ_are_one(self, above: int) -> None:
        assert season_of({(1, 9): (50, above), (3, 17): (50, above)}, 20) is None

    def test_one_kind_and_none_are_not_told_apart(self) -> None:
        assert season_of({(1, 9): (50, 25)}, 20) is season_of({}, 20) is None

    def test_chance_has_to_be_smaller_than_a_thousandth(self) -> None:
        # Mood's p is 0.0016 and 0.00098.
        assert season_of({(1, 9): (40, 13), (3, 17): (40, 27)}, 20) is None
        assert season_of({(1, 9): (43, 14), (3, 17): (43, 29)}, 20) is None
        assert season_of({(1, 9): (46, 15), (3, 17): (46, 31)}, 20) == "weekday and hour"

    def test_a_kind_has_the_parts_of_its_season(self) -> None:
        assert [kind_of(season, 3, 17) for season in (*SEASONS, None)] == [(3, 17), (17,), (3,), ()]


class TestDistances:
    @tried
    @given(numbers, numbers)
    def test_a_difference_is_a_number_however_far_apart_two_are(self, value: float, usual: float) -> None:
        found = distance_of(value, usual, ratios=False)
        assert 0 <= found <= GREATEST
        assert found == distance_of(usual, value, ratios=False)

    @tried
    @given(above_zero, above_zero)
    def test_a_ratio_is_the_same_up_and_down_and_always_a_number(self, value: float, usual: float) -> None:
        found = distance_of(value, usual, ratios=True)
        assert 0 <= found <= math.log(GREATEST)
        assert found == distance_of(usual, value, ratios=True)

    @tried
    @given(numbers, numbers, st.floats(5e-324, 1e308))
    def test_how_far_out_is_always_a_number(self, value: float, usual: float, mad: float) -> None:
        assert 0 <= far(7, value, usual, mad=mad, ratios=False).z <= GREATEST

    @tried
    @given(above_zero, above_zero, st.floats(1e-6, 200), st.floats(3.5, 9))
    def test_a_ratio_beyond_the_distance_lies_farther_out_than_required(
        self, value: float, usual: float, mad: float, z: float
    ) -> None:
        times = max(value / usual, usual / value)
        limit = distance_at(z, mad, ratios=True)
        assume(abs(times / limit - 1) > 1e-9 if math.isfinite(limit) and math.isfinite(times) else True)
        assert (far(7, value, usual, mad=mad, ratios=True).z > z) is (min(times, GREATEST) > limit)

    def test_no_ratio_lies_farther_than_all_numbers(self) -> None:
        assert distance_at(3.5, 1e6, ratios=True) == math.inf
        assert distance_at(3.5, 1.0, ratios=False) == pytest.approx(3.5 / 0.6744897501960817)
