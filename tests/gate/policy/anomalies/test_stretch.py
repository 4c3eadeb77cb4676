"""Which weeks are looked at together where a few dates lie far from all others."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.policy.anomalies.weekly.stretch import Stretch, moved, stretch

WEEK = timedelta(weeks=1)
MONDAY = date(2026, 1, 5)


def weeks_from(first: date, *decisions: int) -> dict[date, int]:
    return {first + at * WEEK: of for at, of in enumerate(decisions)}


@pytest.mark.parametrize("sentinel", [date(1, 1, 1), date(1970, 1, 5), date(2099, 1, 5), date(9999, 12, 27)])
def test_one_week_far_from_all_others_is_left_aside_however_many_decisions_it_has(sentinel: date) -> None:
    usual = weeks_from(MONDAY, 5, 5, 5, 5)
    assert stretch({**usual, sentinel: 1000}) == (MONDAY, MONDAY + 3 * WEEK)


def test_the_latest_of_two_parts_is_looked_at_where_both_have_enough_weeks() -> None:
    old, new = weeks_from(MONDAY, *[100] * 60), weeks_from(MONDAY + 300 * WEEK, 1, 1, 1, 1)
    assert stretch({**old, **new}) == (MONDAY + 300 * WEEK, MONDAY + 303 * WEEK)


def test_the_greatest_part_is_looked_at_where_none_has_enough_weeks_and_the_latest_of_equals() -> None:
    parts = {MONDAY: 4, MONDAY + 200 * WEEK: 7, MONDAY + 400 * WEEK: 7, MONDAY + 600 * WEEK: 2}
    assert stretch(parts) == (MONDAY + 400 * WEEK, MONDAY + 400 * WEEK)


def test_104_weeks_without_decisions_are_no_parting_and_one_more_is() -> None:
    assert stretch({MONDAY: 9, MONDAY + 104 * WEEK: 1}) == (MONDAY, MONDAY + 104 * WEEK)
    assert stretch({MONDAY: 9, MONDAY + 105 * WEEK: 1}) == (MONDAY, MONDAY)


@given(st.dictionaries(st.integers(0, 2000).map(lambda at: MONDAY + at * WEEK), st.integers(1, 50), min_size=1))
def test_no_two_weeks_in_a_row_of_a_stretch_lie_far_apart_and_those_beside_it_do(weeks: dict[date, int]) -> None:
    first, last = stretch(weeks)
    within = [week for week in sorted(weeks) if first <= week <= last]
    assert (within[0], within[-1]) == Stretch(first, last)
    assert all(later - week <= 104 * WEEK for week, later in pairwise(within))
    assert all(min(abs(week - first), abs(week - last)) > 104 * WEEK for week in weeks if week not in within)


def test_a_moment_ends_with_the_calendar() -> None:
    last, first = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
    assert moved(last, WEEK) == last
    assert moved(first, -WEEK) == first
    assert moved(first, WEEK) == first + WEEK
