"""Where there were far more or fewer decisions than such hours, days or weeks have."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.policy.anomalies.statistics import required_z
from gate.policy.anomalies.volume import GRAINS, Surge, find_surges, grain_of, most_arrivals
from tests.gate.policy.counting import tried

HOUR, DAY, WEEK = GRAINS
START = datetime(2026, 1, 5, tzinfo=UTC)


def weekly(counts: Sequence[int]) -> list[Surge]:
    return find_surges(WEEK, START, counts)


class TestGrain:
    @pytest.mark.parametrize(
        ("counts", "grain"),
        [
            ([[5, 5, 4], [9], [9]], 0),
            ([[4, 5, 4], [9], [9]], 1),
            ([[5, 4], [9], [9]], 1),
            ([[0], [4], [5]], 2),
            ([[0], [4], [4]], None),
            ([[], [], []], None),
            ([[4], [], [7]], 2),
        ],
    )
    def test_it_is_the_finest_whose_lower_median_holds_five(self, counts: list[list[int]], grain: int | None) -> None:
        assert grain_of(counts) == grain


class TestArrivals:
    @pytest.mark.parametrize(
        ("others", "most"), [(0, 1), (1, 1), (5, 1), (6, 2), (25, 3), (59, 5), (118, 7), (590, 20), (59 * 400, 461)]
    )
    def test_of_a_minute_as_many_count_as_chance_puts_there(self, others: int, most: int) -> None:
        assert most_arrivals(others) == most

    @tried
    @given(st.integers(0, 10**12))
    def test_it_is_one_more_than_the_mean_and_three_deviations(self, others: int) -> None:
        above = most_arrivals(others) - 1
        # floor(mean + 3 sqrt mean), squared so that it stays whole: the next is beyond, this one is not.
        assert above * 59 <= others or (above * 59 - others) ** 2 <= 9 * 59 * others
        assert ((above + 1) * 59 - others) ** 2 > 9 * 59 * others

    @pytest.mark.parametrize("mean", [0.02, 0.5, 2, 5, 20])
    def test_where_decisions_come_by_chance_nearly_all_count(self, mean: float) -> None:
        chance = random.Random(7)  # noqa: S311 - for tests to be the same each time
        came = counted = 0
        for _ in range(400):
            # As many in an hour as Poisson's distribution gives about, each in any of its minutes.
            minutes = [0] * 60
            for _ in range(round(max(0, chance.gauss(60 * mean, math.sqrt(60 * mean))))):
                minutes[chance.randrange(60)] += 1
            came += sum(minutes)
            counted += sum(min(size, most_arrivals(sum(minutes) - size)) for size in minutes)
        assert counted >= 0.96 * came


class TestSurges:
    def test_what_is_as_usual_does_not_stand_out(self) -> None:
        assert weekly([20] * 30) == weekly([]) == weekly([20]) == []

    def test_a_cell_needs_four_before_it_to_be_compared_with(self) -> None:
        assert weekly([20] * 3 + [900] + [20] * 9) == []
        assert len(weekly([20] * 4 + [900] + [20] * 9)) == 1

    def test_it_says_how_many_when_and_how_far(self) -> None:
        (surge,) = weekly([20] * 12 + [200] + [20] * 3)
        assert (surge.first, surge.last) == (START + timedelta(weeks=12), START + timedelta(weeks=13))
        assert (surge.decisions, surge.usual, surge.cells, surge.rose, surge.times) == (200, 20, 1, True, 10)
        # All others are as usual, and chance alone moves counts by a standard deviation of 1.
        distance = 2 * math.sqrt(200.375) - 2 * math.sqrt(20.375)
        assert surge.z == pytest.approx(distance, rel=1e-12)
        assert surge.required == required_z(12)

    def test_where_counts_move_more_than_by_chance_more_is_needed(self) -> None:
        steady, moving = [20] * 16 + [70], [20, 45] * 8 + [70]
        assert len(weekly(steady)) == 1
        assert weekly(moving) == []

    def test_an_hour_is_compared_with_the_same_hour_of_the_same_weekday(self) -> None:
        week = [30 if hour % 24 == 9 else 2 for hour in range(168)]
        assert find_surges(HOUR, START, week * 9) == []
        late = [*week * 9]
        late[168 * 8 + 24 + 3] = 30
        (surge,) = find_surges(HOUR, START, late)
        assert surge.first == START + timedelta(weeks=8, days=1, hours=3)
        assert (surge.decisions, surge.usual) == (30, 2)

    def test_a_day_is_compared_with_the_same_weekday(self) -> None:
        counts = [40, 40, 40, 40, 40, 8, 8] * 9
        assert find_surges(DAY, START, counts) == []
        counts[7 * 8 + 6] = 40
        (surge,) = find_surges(DAY, START, counts)
        assert (surge.first, surge.usual) == (START + timedelta(weeks=8, days=6), 8)

    def test_a_level_that_lasts_becomes_usual(self) -> None:
        (surge,) = weekly([20] * 10 + [200] * 20)
        # The median of the eight before is 200 from the sixth such week on.
        assert surge.cells == 5

    def test_cells_in_a_row_to_the_same_side_are_one_and_to_another_side_are_two(self) -> None:
        together, after = weekly([40] * 12 + [300, 400, 0])
        assert (together.cells, together.decisions, together.usual) == (2, 700, 80)
        assert (after.cells, after.decisions, after.usual, after.rose) == (1, 0, 40, False)
        assert after.times == 80

    def test_cells_with_one_as_usual_between_them_are_two(self) -> None:
        assert [surge.cells for surge in weekly([40] * 12 + [300, 40, 300])] == [1, 1]

    def test_a_lack_that_few_weeks_before_it_say_is_not_certain(self) -> None:
        # A year in which nothing is the matter, and one week of 48 by chance has one decision.
        before = [14, 12, 17, 10, 16, 13, 15, 14] * 5 + [17, 15, 11, 11, 21, 16, 8, 16]
        (lack,) = weekly([*before, 1, 14, 15, 13])
        assert (lack.decisions, lack.usual, lack.like_cells, lack.like_arrivals) == (1, 15, 8, 115)
        assert lack.p_value == pytest.approx(2 * (8 / 9) ** 116 * (1 + 116 / 8), rel=1e-9)
        assert not lack.is_certain

    @pytest.mark.parametrize("counts", [[20] * 12 + [200], [90] * 12 + [0], [30] * 12 + [0, 0, 0], [4] * 12 + [40]])
    def test_what_is_many_times_as_many_or_as_few_is_certain(self, counts: list[int]) -> None:
        (surge,) = weekly(counts)
        assert surge.is_certain

    def test_a_run_is_compared_with_the_cells_before_it_and_not_with_its_own(self) -> None:
        (lack,) = weekly([30] * 20 + [0, 0, 0])
        assert (lack.cells, lack.like_cells, lack.like_arrivals) == (3, 8, 240)
        days = [40, 40, 40, 40, 40, 8, 8] * 9
        days[7 * 8 : 7 * 8 + 2] = [0, 0]
        (lack,) = find_surges(DAY, START, days)
        assert (lack.cells, lack.like_cells, lack.like_arrivals) == (2, 16, 640)

    def test_a_surge_before_it_makes_no_lack_certain(self) -> None:
        calm = [20, 19, 21, 20, 20] * 4
        (alone,) = (of for of in weekly([*calm, 5]) if not of.rose)
        (after,) = (of for of in weekly([*calm, 300, 310, 290, *calm[:5], 5]) if not of.rose)
        assert not alone.is_certain
        assert (after.like_arrivals, after.is_certain) == (alone.like_arrivals, False)

    def test_years_of_chance_alone_have_no_certain_surge(self) -> None:
        chance = random.Random(12)  # noqa: S311 - for tests to be the same each time
        certain = 0
        for _ in range(400):
            # Weeks of 12 decisions on average.
            counts = [sum(chance.random() < 0.05 for _ in range(240)) for _ in range(52)]
            certain += any(surge.is_certain for surge in weekly(counts))
        assert certain == 0

    @tried
    @given(st.lists(st.integers(0, 3_000_000), max_size=60))
    def test_whatever_the_counts_are_what_stands_out_lies_as_far_as_required(self, counts: list[int]) -> None:
        for surge in weekly(counts):
            assert surge.z > surge.required >= 3.5
            assert surge.times >= 1
            assert surge.rose is (surge.decisions > surge.usual)
            assert surge.first < surge.last <= START + timedelta(weeks=len(counts))
