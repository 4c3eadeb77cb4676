"""Which windows are compared, which shifts are discoveries, and what is the echo of another."""

from __future__ import annotations

from collections.abc import Container, Sequence

import pytest

from gate.policy.anomalies.shifts import Rate, Shift, find_shifts, taken_over
from gate.policy.anomalies.statistics import Share, cohens_h, fisher_exact, nearest_h
from gate.policy.anomalies.weekly.groups import Groups, GroupSums
from gate.policy.anomalies.weekly.windows import Windows, windows

ALL = 0


def rate(parts: Sequence[int], wholes: Sequence[int], of: str = "verdict", value: str = "no") -> Rate:
    return Rate(of, value, [parts], [wholes])


def shifts(
    *rates: Rate,
    weeks: int,
    horizons: Sequence[int] | None = None,
    min_sample: int = 20,
    rollouts: Container[int] = (),
) -> list[Shift]:
    return find_shifts(rates, weeks, [ALL] * weeks if horizons is None else horizons, min_sample, rollouts)


class TestWindows:
    def test_each_ends_with_any_week_and_has_at_least_one_before_it(self) -> None:
        assert list(windows(4)) == [
            *(Windows(1, 1, 0), Windows(2, 2, 0), Windows(3, 3, 0)),
            *(Windows(1, 2, 0), Windows(2, 3, 0)),
        ]
        assert list(windows(0)) == list(windows(1)) == []

    def test_lengths_are_one_two_four_and_eight_weeks_and_references_the_eight_before(self) -> None:
        every = list(windows(30))
        assert {window.last - window.first + 1 for window in every} == {1, 2, 4, 8}
        assert all(window.reference == max(0, window.first - 8) for window in every)
        for length in (1, 2, 4, 8):
            ends = [of.last for of in every if of.last - of.first + 1 == length]
            assert ends == list(range(length, 30))

    @pytest.mark.parametrize(
        ("one", "other", "together"),
        [
            ((5, 5), (5, 5), True),
            ((5, 5), (5, 6), True),
            ((5, 5), (6, 7), False),
            ((5, 6), (6, 7), True),
            ((5, 6), (6, 9), False),
            ((5, 8), (6, 7), True),
            ((5, 8), (7, 10), True),
            ((5, 8), (8, 11), False),
            ((5, 8), (6, 9), True),
            ((5, 12), (9, 12), True),
            ((5, 12), (9, 16), True),
            ((5, 12), (10, 17), False),
            ((5, 12), (5, 5), True),
            ((5, 12), (12, 12), False),
            ((5, 5), (9, 9), False),
        ],
    )
    def test_windows_go_together_by_a_quarter_of_all_their_weeks_or_by_their_first(
        self, one: tuple[int, int], other: tuple[int, int], together: bool
    ) -> None:
        a, b = Windows(*one, 0), Windows(*other, 0)
        assert a.goes_with(b) is b.goes_with(a) is together

    def test_a_window_overlaps_what_shares_a_week_with_it_or_with_its_reference(self) -> None:
        window = Windows(10, 11, 2)
        assert [week for week in range(16) if window.overlaps(week, week)] == list(range(2, 12))
        assert window.overlaps(0, 2)
        assert not window.overlaps(0, 1)
        assert not window.overlaps(12, 19)


class TestShifts:
    def test_a_rate_that_stays_does_not_shift(self) -> None:
        assert shifts(rate([12] * 20, [40] * 20), weeks=20) == []

    def test_a_rate_that_stays_what_it_became_is_told_once_from_when_it_did(self) -> None:
        # Each later window is compared with weeks of the first, or shares one with it.
        (shift,) = shifts(rate([4] * 10 + [20] * 6, [40] * 16), weeks=16)
        assert shift.windows.first == 10
        assert (shift.before, shift.within.rate, shift.rose) == (Share(32, 320), 0.5, True)
        assert shift.effect == cohens_h(0.5, 0.1)
        assert shift.p_value == fisher_exact(shift.within, shift.before)

    def test_a_bad_week_is_told_as_one_week_and_what_follows_it_is_its_echo(self) -> None:
        (shift,) = shifts(rate([4] * 10 + [24] + [4] * 9, [40] * 20), weeks=20)
        assert (shift.windows.first, shift.windows.last) == (10, 10)

    def test_a_second_shift_is_told_where_its_reference_has_no_week_of_the_first(self) -> None:
        parts = [4] * 10 + [24] + [4] * 9 + [24] + [4]
        first, second = shifts(rate(parts, [40] * len(parts)), weeks=len(parts))
        assert (first.windows.first, second.windows.first) == (10, 20)

    def test_a_window_does_not_begin_with_weeks_that_have_nothing_in_them(self) -> None:
        (shift,) = shifts(rate([4] * 5 + [0] * 3 + [24], [40] * 5 + [0] * 3 + [40]), weeks=9)
        assert shift.windows == Windows(8, 8, 0)

    def test_another_rate_is_no_echo(self) -> None:
        rates = [
            rate([4] * 10 + [24], [40] * 11, value=value, of=of)
            for of, value in (("verdict", "no"), ("reason", "no"), ("verdict", "yes"))
        ]
        assert [(of.of, of.value) for of in shifts(*rates, weeks=11)] == [
            ("reason", "no"),
            ("verdict", "no"),
            ("verdict", "yes"),
        ]

    def test_the_likeliest_window_is_taken_and_of_the_least_p_value_the_one_most_standard_errors_apart(self) -> None:
        # From 1e-40 on p-values tell nothing apart.
        for bad in (1, 2, 4, 8):
            (shift,) = shifts(rate([350] * 10 + [0] * bad + [350] * 8, [400] * (18 + bad)), weeks=18 + bad)
            assert (shift.windows, shift.p_value) == (Windows(10, 9 + bad, 2), 1e-40)

    def test_of_windows_that_are_as_likely_the_shorter_and_the_earlier_is_taken(self) -> None:
        (shift,) = shifts(rate([0] * 8 + [40] + [0] * 3, [40] * 9 + [0] * 3), weeks=12)
        assert shift.windows == Windows(8, 8, 0)

    def test_fewer_cases_than_the_sample_are_no_test_on_either_side(self) -> None:
        assert shifts(rate([0, 19], [40, 19]), weeks=2) == []
        assert len(shifts(rate([0, 19], [40, 19]), weeks=2, min_sample=19)) == 1
        assert shifts(rate([0, 40], [19, 40]), weeks=2) == []
        assert len(shifts(rate([0, 40], [20, 40]), weeks=2)) == 1

    def test_a_change_that_is_certain_but_small_is_none(self) -> None:
        # h is 0.098 and 0.102, and the samples are huge.
        for rose, number in ((14_250, 0), (14_400, 1)):
            found = shifts(rate([11_000, rose], [100_000] * 2), weeks=2)
            assert len(found) == number

    def test_more_tests_need_a_smaller_p_value(self) -> None:
        moved = rate([4] * 8 + [14], [40] * 9)
        still = [rate([4] * 9, [40] * 9, value=f"still {number}") for number in range(60)]
        assert len(shifts(moved, weeks=9)) == 1
        assert shifts(moved, *still, weeks=9) == []

    def test_a_discovery_that_others_vouch_for_need_not_stand_alone(self) -> None:
        rates = [rate([4] * 8 + [38], [40] * 9, value=f"moved {number}") for number in range(20)]
        faint = rate([4] * 8 + [13], [40] * 9, value="faint")
        found = {shift.value: shift for shift in shifts(*rates, faint, weeks=9)}
        assert found["moved 0"].is_certain
        assert not found["faint"].is_certain
        # Windows of 1, 2, 4 and 8 weeks among 9, of each rate.
        assert {shift.required_p for shift in found.values()} == {0.0005 / (21 * (8 + 7 + 5 + 1))}

    def test_outcomes_and_verdicts_have_half_of_the_chance_each_however_many_the_others_are(self) -> None:
        still = [rate([4] * 9, [40] * 9, value=f"still {number}") for number in range(60)]
        worse = rate([4] * 8 + [21], [40] * 9, of="outcome", value="failed")
        moved = rate([4] * 8 + [34], [40] * 9)
        outcome, verdict = sorted(shifts(worse, moved, *still, weeks=9), key=lambda shift: shift.of)
        assert (outcome.required_p, verdict.required_p) == (0.0005 / 21, 0.0005 / (61 * 21))

    def test_outcomes_since_a_version_took_over_are_certain_among_such_tests(self) -> None:
        still = [rate([4] * 9, [40] * 9, of="outcome", value=f"still {number}") for number in range(9)]
        parts = [4] * 8 + [21]
        worse = rate(parts, [40] * 9, of="outcome", value="failed")
        (alone,) = shifts(worse, *still, weeks=9)
        (since,) = shifts(worse, *still, weeks=9, rollouts={8})
        assert [of.required_p for of in (alone, since)] == [0.0005 / (10 * 21), 0.01 / 10]
        verdict = rate(parts, [40] * 9)
        (other,) = shifts(verdict, *still, weeks=9, rollouts={8})
        assert other.required_p == 0.0005 / 21

    def test_what_is_certain_goes_before_what_is_likelier(self) -> None:
        # A little worse the week before the version took over, and much worse from then on.
        worse = rate([8] * 8 + [14] + [17] * 4, [60] * 13, of="outcome", value="failed")
        parts = [4] * 9 + [38] + [4] * 3
        moved = [rate(parts, [40] * 13, of="outcome", value=f"moved {number}") for number in range(6)]
        (likeliest,) = (shift for shift in shifts(worse, *moved, weeks=13) if shift.value == "failed")
        (certain,) = (shift for shift in shifts(worse, *moved, weeks=13, rollouts={9}) if shift.value == "failed")
        assert likeliest.p_value < certain.p_value
        assert (likeliest.windows.first, likeliest.is_certain) == (8, False)
        assert (certain.windows.first, certain.is_certain) == (9, True)

    @pytest.mark.parametrize(
        ("decisions", "versions", "weeks"),
        [
            ([10] * 4, [[10, 10, 0, 0], [0, 0, 10, 10]], {2}),
            ([10] * 4, [[10, 6, 5, 0], [0, 4, 5, 10]], {2}),
            ([10, 0, 10], [[10, 0, 0], [0, 0, 10]], {2}),
            ([10] * 4, [[10, 0, 10, 0], [0, 10, 0, 10]], {1}),
            ([10] * 3, [[4, 4, 4], [3, 3, 3], [3, 3, 3]], set()),
            ([10] * 3, [[10, 10, 10]], set()),
            ([], [], set()),
        ],
    )
    def test_a_version_takes_over_with_the_first_week_in_which_it_makes_half_of_the_decisions(
        self, decisions: list[int], versions: list[list[int]], weeks: set[int]
    ) -> None:
        assert taken_over(decisions, versions) == weeks

    def test_outcomes_are_compared_at_the_age_of_the_window_and_not_while_it_is_too_young(self) -> None:
        whole = [40] * 10
        # At the first horizon nothing has failed yet; at the second one half of the last week has.
        failed = Rate("outcome", "failed", [[0] * 10, [2] * 9 + [20]], [whole, whole])
        for horizon, number in ((-1, 0), (0, 0), (1, 1)):
            assert len(shifts(failed, weeks=10, horizons=[1] * 9 + [horizon])) == number

    def test_verdicts_are_compared_however_young_the_window_is(self) -> None:
        assert len(shifts(rate([4] * 9 + [24], [40] * 10), weeks=10, horizons=[-1] * 10)) == 1

    def test_a_single_week_has_nothing_to_be_compared_with(self) -> None:
        assert shifts(rate([40], [40]), weeks=1) == shifts(weeks=0) == []


def in_groups(weeks: Sequence[Sequence[tuple[int, int]]]) -> dict[int, Groups]:
    """Of each week the groups: how many decisions each has, and how many of these have the value."""
    return {
        ALL: Groups(
            GroupSums(
                groups=len(groups),
                members=sum(n for n, _ in groups),
                total=sum(x for _, x in groups),
                squares=sum(x for _, x in groups),
                sizes=sum(n * n for n, _ in groups),
                products=sum(n * x for n, x in groups),
                totals=sum(x * x for _, x in groups),
            )
            for groups in weeks
        )
    }


def grouped(*weeks: Sequence[tuple[int, int]]) -> Rate:
    parts, wholes = ([sum(of[at] for of in groups) for groups in weeks] for at in (1, 0))
    return Rate("verdict", "no", [parts], [wholes], in_groups(weeks))


class TestGroups:
    def test_what_came_in_groups_that_differ_counts_for_less(self) -> None:
        alone = shifts(rate([10, 40], [100, 100]), weeks=2)
        pairs = shifts(grouped([(2, 2)] * 5 + [(2, 0)] * 45, [(2, 2)] * 20 + [(2, 0)] * 30), weeks=2)
        (found,), (single,) = pairs, alone
        assert (found.before, found.within) == (single.before, single.within) == (Share(10, 100), Share(40, 100))
        # Groups of two that are all alike, and 50 / 49 for what is estimated: a little more than two.
        assert all(2 <= side.design_effect < 2.2 for side in (found.then, found.now))
        assert found.p_value == fisher_exact(found.now.singly, found.then.singly) > single.p_value
        assert found.effect == single.effect
        assert found.least_effect == nearest_h(single.effect, found.now.singly.whole, found.then.singly.whole)
        assert found.least_effect < single.least_effect

    def test_what_came_together_and_was_decided_singly_counts_nearly_in_full(self) -> None:
        # Groups of pairs that differ as single decisions do.
        mixed = grouped([(2, 0)] * 40 + [(2, 1)] * 20, [(2, 0)] * 18 + [(2, 1)] * 24 + [(2, 2)] * 8)
        (found,) = shifts(mixed, weeks=2)
        assert max(found.then.design_effect, found.now.design_effect) < 1.2

    def test_one_minute_is_no_shift_however_many_decisions_it_has(self) -> None:
        usual = [(1, 0)] * 95 + [(1, 1)] * 5
        assert shifts(grouped(*[usual] * 8, [*usual, (90, 90)]), weeks=9) == []

    def test_of_few_minutes_nothing_is_told(self) -> None:
        usual = [(1, 0)] * 95 + [(1, 1)] * 5
        assert shifts(grouped(usual, [(25, 24)] * 4), weeks=2) == []
        assert shifts(grouped(usual, [(25, 24)] * 5), weeks=2) == []
        assert len(shifts(grouped(usual, [(25, 24)] * 60), weeks=2)) == 1
        # Single decisions are not few, though their minutes are no more than they.
        assert len(shifts(grouped(usual, [(1, 1)] * 4), weeks=2, min_sample=4)) == 1

    def test_fewer_single_decisions_than_the_sample_are_no_discovery(self) -> None:
        # As many as 10 and 30 single ones.
        tens, thirty = [(10, 0)] * 5 + [(10, 10)] * 5, [(10, 10)] * 30
        assert shifts(grouped(thirty, [(10, 0)] * 30), weeks=2, min_sample=20)
        assert shifts(grouped([(10, 0)] * 30, tens), weeks=2, min_sample=20) == []


class TestCreeping:
    # From 10 to 40 percent in a year, and less than a small effect in eight weeks.
    CREEPING = tuple(30 + round(week * 90 / 51) for week in range(52))

    def test_what_creeps_is_told_against_half_a_year_before(self) -> None:
        found = shifts(rate(self.CREEPING, [300] * 52), weeks=52)
        slow = [of for of in found if of.windows.slow]
        assert slow
        for of in slow:
            assert of.windows.last - of.windows.first == 7
            assert of.windows.first - of.windows.reference == 26
            assert of.windows.before - of.windows.reference == 7
            assert of.rose

    def test_what_happened_at_once_is_not_told_a_second_time_as_creeping(self) -> None:
        found = shifts(rate([30] * 30 + [90] * 22, [300] * 52), weeks=52)
        assert [of.windows.slow for of in found] == [False]

    def test_in_less_than_34_weeks_nothing_creeps(self) -> None:
        assert [of for of in windows(33, slow=True) if of.slow] == []
        assert [of for of in windows(34, slow=True) if of.slow] == [Windows(26, 33, 0, slow=True)]
