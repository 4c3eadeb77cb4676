"""The statistics of the anomaly report against SciPy, and against exact arithmetic where that is feasible."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gate.policy.anomalies.statistics import (
    LEAST_P,
    NORMAL_MAD,
    Share,
    binomial_test,
    chance_index,
    chi_squared,
    cohens_h,
    difference_interval,
    discoveries,
    fisher_exact,
    homogeneity,
    median_test,
    modified_z,
    nearest_h,
    required_z,
    stability_index,
    standard_distance,
)
from tests.gate.policy.counting import tried

NEAR = 1e-9


@pytest.fixture(scope="session")
def stats() -> Any:
    """SciPy's statistics, which take a second to load: a process that runs other tests does without."""
    return import_module("scipy.stats")


def shares(most: int) -> st.SearchStrategy[Share]:
    """So many of so many, none of nothing among them."""
    return st.integers(0, most).flatmap(lambda whole: st.builds(Share, st.integers(0, whole), st.just(whole)))


def histograms(most: int, *, bins: int = 14) -> st.SearchStrategy[tuple[list[int], list[int]]]:
    """Two histograms over the same bins."""
    counts = st.integers(0, most)
    return st.integers(1, bins).flatmap(
        lambda number: st.tuples(*[st.lists(counts, min_size=number, max_size=number)] * 2)
    )


def exact(a: Share, b: Share) -> Fraction:
    """Fisher's p-value without rounding: all tables with the same margins that are no likelier."""
    parts = a.part + b.part
    tables = {
        part: math.comb(a.whole, part) * math.comb(b.whole, parts - part)
        for part in range(max(0, parts - b.whole), min(a.whole, parts) + 1)
    }
    here = tables[a.part]
    return Fraction(sum(of for of in tables.values() if of <= here), sum(tables.values()))


class TestFisher:
    @tried
    @given(shares(60), shares(60))
    def test_it_is_the_exact_sum_over_all_tables_that_are_no_likelier(self, a: Share, b: Share) -> None:
        assert fisher_exact(a, b) == pytest.approx(float(max(exact(a, b), Fraction(LEAST_P))), rel=NEAR)

    @settings(max_examples=25)
    @given(shares(900), shares(300))
    def test_it_is_exact_beyond_what_floats_can_hold(self, a: Share, b: Share) -> None:
        assert fisher_exact(a, b) == pytest.approx(float(max(exact(a, b), Fraction(LEAST_P))), rel=NEAR)

    @pytest.mark.heavy
    @settings(max_examples=30)
    @given(shares(3000), shares(3000))
    def test_it_is_scipys(self, stats: Any, a: Share, b: Share) -> None:
        of_scipy = stats.fisher_exact([[a.part, a.whole - a.part], [b.part, b.whole - b.part]]).pvalue
        assert fisher_exact(a, b) == pytest.approx(max(of_scipy, LEAST_P), rel=1e-7)

    @tried
    @given(shares(500), shares(500))
    def test_it_is_the_same_either_way_around_and_of_the_others(self, a: Share, b: Share) -> None:
        others = (Share(a.whole - a.part, a.whole), Share(b.whole - b.part, b.whole))
        assert fisher_exact(b, a) == pytest.approx(fisher_exact(a, b), rel=NEAR)
        assert fisher_exact(*others) == pytest.approx(fisher_exact(a, b), rel=NEAR)

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            ((0, 0), (0, 0)),
            ((0, 0), (3, 9)),
            ((4, 7), (0, 0)),
            ((0, 12), (0, 5)),
            ((12, 12), (5, 5)),
            ((5, 10), (5, 10)),
            ((1, 1), (0, 1)),
        ],
    )
    def test_margins_that_leave_one_table_or_a_mode_prove_nothing(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        assert fisher_exact(Share(*a), Share(*b)) == 1.0

    def test_tables_that_are_as_likely_as_this_one_count(self, stats: Any) -> None:
        # With equal wholes the table with both parts swapped is exactly as likely.
        assert fisher_exact(Share(9, 40), Share(21, 40)) == pytest.approx(
            2 * stats.hypergeom.cdf(9, 80, 30, 40), rel=NEAR
        )

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            (Share(0, 400), Share(400, 400)),
            (Share(0, 3_000_000), Share(3_000_000, 3_000_000)),
            (Share(1_000_000, 3_000_000), Share(2_000_000, 3_000_000)),
            (Share(0, 5_000_000), Share(1_000, 8_000)),
        ],
    )
    def test_what_is_beyond_the_least_p_value_is_told_as_that(self, a: Share, b: Share) -> None:
        assert fisher_exact(a, b) == LEAST_P

    def test_just_above_the_least_p_value_it_is_still_told(self) -> None:
        a, b = Share(0, 67), Share(68, 68)
        assert LEAST_P < exact(a, b) < 10 * LEAST_P
        assert fisher_exact(a, b) == pytest.approx(float(exact(a, b)), rel=NEAR)
        assert exact(Share(0, 70), Share(70, 70)) < LEAST_P == fisher_exact(Share(0, 70), Share(70, 70))

    @pytest.mark.parametrize("distance", [0.5, 2, 5, 9, 12.5])
    def test_of_millions_it_is_scipys(self, stats: Any, distance: float) -> None:
        whole = 4_000_000
        parts = round(0.3 * whole + distance * math.sqrt(2 * 0.3 * 0.7 * whole))
        a, b = Share(parts, whole), Share(1_200_000, whole)
        of_scipy = stats.fisher_exact([[a.part, whole - a.part], [b.part, whole - b.part]]).pvalue
        assert fisher_exact(a, b) == pytest.approx(of_scipy, rel=1e-6)

    def test_a_handful_among_millions_is_scipys(self, stats: Any) -> None:
        a, b = Share(7, 9), Share(1_000, 5_000_000)
        of_scipy = stats.fisher_exact([[7, 2], [1_000, 4_999_000]]).pvalue
        assert fisher_exact(a, b) == pytest.approx(of_scipy, rel=1e-7)


class TestStandardDistance:
    @tried
    @given(shares(5_000_000), shares(5_000_000))
    def test_its_square_is_pearsons_statistic(self, stats: Any, a: Share, b: Share) -> None:
        assume(a.whole and b.whole and 0 < a.part + b.part < a.whole + b.whole)
        table = [[a.part, a.whole - a.part], [b.part, b.whole - b.part]]
        statistic = stats.chi2_contingency(table, correction=False).statistic
        assert standard_distance(a, b) ** 2 == pytest.approx(statistic, rel=1e-6, abs=1e-9)

    @pytest.mark.parametrize(("a", "b"), [((0, 0), (1, 2)), ((0, 5), (0, 9)), ((5, 5), (9, 9)), ((0, 0), (0, 0))])
    def test_where_nothing_can_differ_it_is_zero(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        assert standard_distance(Share(*a), Share(*b)) == 0.0


class TestDiscoveries:
    # Ranks apart from every edge: p <= slope * rank is one float away from the adjusted p <= level.
    @tried
    @given(st.lists(st.floats(0, 1) | st.floats(0, 1e-3), min_size=1, max_size=60), st.sampled_from([0.01, 0.05, 0.5]))
    def test_those_are_kept_that_scipy_adjusts_to_no_more_than_the_level(
        self, stats: Any, p_values: list[float], level: float
    ) -> None:
        adjusted = stats.false_discovery_control(p_values, method="by")
        assume(all(abs(of - level) > 1e-9 for of in adjusted))
        greatest = discoveries(p_values, level)
        kept = [p for p in p_values if p <= greatest] if greatest else [p for p in p_values if p == 0]
        assert sorted(kept) == sorted(p for p, of in zip(p_values, adjusted, strict=True) if of <= level)

    @tried
    @given(st.lists(st.floats(0, 1), max_size=20), st.integers(0, 40))
    def test_tests_that_found_nothing_count_as_a_p_value_of_one(self, p_values: list[float], others: int) -> None:
        told = discoveries(p_values, 0.05, of=len(p_values) + others)
        assert told == discoveries([*p_values, *[1.0] * others], 0.05)

    @tried
    @given(st.lists(st.floats(0, 0.1), max_size=20))
    def test_their_order_does_not_matter(self, p_values: list[float]) -> None:
        assert discoveries(sorted(p_values), 0.05) == discoveries(p_values, 0.05)

    def test_among_no_tests_nothing_is_discovered(self) -> None:
        assert discoveries([], 0.05) == discoveries([], 0.05, of=10) == discoveries([], 0.05, of=0) == 0.0

    def test_one_that_alone_would_not_count_is_kept_by_those_below_it(self) -> None:
        # The step-up looks from the greatest down: 0.05 / (1 + 1/2) * 2 / 2 is 0.0333.
        assert discoveries([0.033, 0.032], 0.05) == 0.033
        assert discoveries([0.033], 0.05, of=2) == 0.0
        assert discoveries([0.034, 0.032], 0.05) == 0.0

    def test_of_ten_thousand_tests_a_p_value_has_to_be_small(self) -> None:
        slope = 0.05 / (10_000 * sum(1 / rank for rank in range(1, 10_001)))
        assert discoveries([slope * 0.999], 0.05, of=10_000) == slope * 0.999
        assert discoveries([slope * 1.001], 0.05, of=10_000) == 0.0


class TestEffects:
    @tried
    @given(st.floats(0, 1), st.floats(0, 1))
    def test_cohens_h_has_the_sign_of_the_change_and_lies_within_pi(self, a: float, b: float) -> None:
        assert cohens_h(a, b) == -cohens_h(b, a)
        assert abs(cohens_h(a, b)) <= math.pi + NEAR
        assert cohens_h(1 - a, 1 - b) == pytest.approx(-cohens_h(a, b), abs=1e-6)
        if a > b:
            assert cohens_h(a, b) >= 0

    def test_cohens_h_of_what_cohen_tabulated(self) -> None:
        # 2 asin sqrt .5 is 1.571, of .25 1.047.
        assert cohens_h(0.5, 0.25) == pytest.approx(math.pi / 2 - math.pi / 3)
        assert cohens_h(1, 0) == pytest.approx(math.pi)

    def test_newcombes_interval_is_that_of_his_paper(self) -> None:
        # Table II of Newcombe 1998, method 10.
        for a, b, low, high in (
            ((56, 70), (48, 80), 0.0524, 0.3339),
            ((9, 10), (3, 10), 0.1705, 0.8090),
            ((5, 56), (0, 29), -0.0381, 0.1926),
            ((10, 10), (0, 10), 0.6075, 1.0),
        ):
            assert difference_interval(Share(*a), Share(*b)) == pytest.approx((low, high), abs=6e-5)

    @tried
    @given(shares(3000), shares(3000))
    def test_the_interval_holds_the_difference_and_lies_within_one(self, a: Share, b: Share) -> None:
        low, high = difference_interval(a, b)
        assert -1 <= low <= high <= 1
        assume(a.whole and b.whole)
        assert low - 1e-6 <= a.rate - b.rate <= high + 1e-6
        back = difference_interval(b, a)
        assert (-back[1], -back[0]) == pytest.approx((low, high))


class TestDistances:
    def test_the_constant_is_the_normal_quartile(self, stats: Any) -> None:
        assert stats.norm.ppf(0.75) == pytest.approx(NORMAL_MAD, rel=1e-15)

    @tried
    @given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=41).filter(lambda of: len(of) % 2 == 1))
    def test_the_modified_z_is_the_distance_in_scipys_robust_deviations(self, stats: Any, values: list[int]) -> None:
        deviation = stats.median_abs_deviation(values, scale="normal")
        assume(deviation > 0)
        median = sorted(values)[len(values) // 2]
        mad = sorted(abs(value - median) for value in values)[len(values) // 2]
        for value in values:
            assert modified_z(abs(value - median), mad) == pytest.approx(abs(value - median) / deviation)

    @tried
    @given(st.integers(0, 10**9))
    def test_among_so_many_normal_values_one_stands_out_with_a_chance_of_a_hundredth_at_most(
        self, stats: Any, values: int
    ) -> None:
        assert values * 2 * stats.norm.sf(required_z(values)) <= 0.01

    def test_it_is_three_and_a_half_until_so_many_make_it_more(self) -> None:
        assert required_z(0) == required_z(1) == required_z(4) == 3.5
        assert required_z(5) == pytest.approx(math.sqrt(2 * math.log(500)))
        assert required_z(10**6) < 6.1


class TestStabilityIndex:
    @tried
    @given(histograms(2_000_000))
    def test_it_is_both_divergences_less_what_chance_adds(self, stats: Any, of: tuple[list[int], list[int]]) -> None:
        before, within = of
        n, m, bins = sum(before), sum(within), len(before)
        assume(n and m)
        p, q = [count + 0.5 for count in before], [count + 0.5 for count in within]
        divergences = stats.entropy(p, q) + stats.entropy(q, p)
        expected = max(0.0, divergences - (bins - 1) * (1 / n + 1 / m))
        assert stability_index(before, within) == pytest.approx(expected, rel=1e-6, abs=1e-9)

    @tried
    @given(histograms(500))
    def test_it_is_the_same_either_way_and_in_whatever_order_of_bins(self, of: tuple[list[int], list[int]]) -> None:
        before, within = of
        assert stability_index(before, within) == pytest.approx(stability_index(within, before), abs=1e-12)
        assert stability_index(before[::-1], within[::-1]) == pytest.approx(stability_index(before, within), abs=1e-12)

    @pytest.mark.parametrize(
        ("before", "within"), [([], []), ([0], [0]), ([0, 0], [3, 4]), ([3, 4], [0, 0]), ([5], [9])]
    )
    def test_nothing_and_a_single_bin_are_stable(self, before: list[int], within: list[int]) -> None:
        assert stability_index(before, within) == 0.0

    def test_what_moved_from_one_bin_to_another_is_far_from_stable(self) -> None:
        assert stability_index([100, 0], [0, 100]) > 10


def pooled(before: Sequence[int], within: Sequence[int]) -> list[tuple[int, int]]:
    """Bins of which the smaller histogram expects fewer than five, put together; with the smallest other where that
    is still too few.
    """
    smaller = min(sum(before), sum(within))
    whole = sum(before) + sum(within)
    enough, few = [], (0, 0)
    for a, b in zip(before, within, strict=True):
        if Fraction((a + b) * smaller, whole) >= 5:
            enough.append((a, b))
        else:
            few = (few[0] + a, few[1] + b)
    if not any(few):
        return enough
    if Fraction(sum(few) * smaller, whole) >= 5 or not enough:
        return [*enough, few]
    least = enough.index(min(enough, key=sum))
    enough[least] = (enough[least][0] + few[0], enough[least][1] + few[1])
    return enough


class TestHomogeneity:
    @tried
    @given(histograms(60) | histograms(100_000))
    def test_it_is_pearsons_test_of_bins_that_hold_enough(self, stats: Any, of: tuple[list[int], list[int]]) -> None:
        before, within = of
        assume(sum(before) and sum(within))
        table = pooled(before, within)
        told = homogeneity(before, within).p_value
        if len(table) < 2:
            assert told == 1.0
        else:
            of_scipy = stats.chi2_contingency(table, correction=False).pvalue
            assert told == pytest.approx(max(of_scipy, LEAST_P), rel=1e-6)

    @pytest.mark.parametrize(
        ("before", "within"),
        [
            ([], []),
            ([0, 0], [0, 0]),
            ([0, 0], [30, 40]),
            ([30, 40], [0, 0]),
            ([50], [70]),
            ([1, 1, 1], [1, 1, 1]),
            ([4, 0], [0, 4]),
        ],
    )
    def test_too_little_to_compare_proves_nothing(self, before: list[int], within: list[int]) -> None:
        assert homogeneity(before, within).p_value == 1.0

    def test_huge_histograms_that_differ_are_told_by_the_least_p_value(self) -> None:
        assert homogeneity([5_000_000, 1], [1, 5_000_000]).p_value == LEAST_P
        assert homogeneity([1_000_000] * 25, [2_000_000] * 25).p_value == pytest.approx(1.0)


class TestMood:
    @tried
    @given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=30), min_size=2, max_size=7))
    def test_it_is_scipys_median_test(self, stats: Any, groups: list[list[int]]) -> None:
        together = sorted(value for group in groups for value in group)
        median = together[(len(together) - 1) // 2]
        above = [sum(value > median for value in group) for group in groups]
        assume(sum(above))
        expected = stats.median_test(*groups, ties="below", correction=False).pvalue
        assert median_test(above, list(map(len, groups))) == pytest.approx(max(expected, LEAST_P), rel=1e-6)

    @pytest.mark.parametrize(("above", "of"), [([], []), ([3], [9]), ([0, 0], [5, 7]), ([5, 7], [5, 7])])
    def test_where_no_group_can_differ_it_proves_nothing(self, above: list[int], of: list[int]) -> None:
        assert median_test(above, of) == 1.0

    def test_kinds_that_are_all_but_the_same_are_no_different(self) -> None:
        # The statistic is tiny, and there are many degrees of freedom.
        sizes = [3_000_001] * 168
        assert median_test([1_500_000] * 168, sizes) == 1.0
        assert median_test([1_500_000] * 167 + [1_500_003], sizes) == pytest.approx(1.0)


class TestChiSquared:
    @tried
    @given(st.integers(1, 400), st.floats(0, 3000))
    def test_it_is_scipys(self, stats: Any, degrees: int, statistic: float) -> None:
        assert chi_squared(statistic, degrees) == pytest.approx(
            max(stats.chi2.sf(statistic, degrees), LEAST_P), rel=1e-8
        )

    @pytest.mark.parametrize("degrees", [1, 2, 3, 24, 167, 5_000])
    @pytest.mark.parametrize(
        "statistic", [0.0, 5e-324, 1e-300, 1e-30, 1e-5, 0.1, 50, 300, 1_000, 5_000, 12_000, 1e6, 1e12, 1e100]
    )
    def test_neither_small_nor_great_numbers_are_too_much(self, stats: Any, degrees: int, statistic: float) -> None:
        expected = max(stats.chi2.sf(statistic, degrees), LEAST_P)
        assert chi_squared(statistic, degrees) == pytest.approx(expected, rel=1e-7)

    @tried
    @given(st.integers(1, 60), st.floats(0, 200), st.floats(0, 200))
    def test_it_falls_with_the_statistic_and_rises_with_the_degrees(self, degrees: int, a: float, b: float) -> None:
        less, more = sorted((a, b))
        assert chi_squared(more, degrees) <= chi_squared(less, degrees) * (1 + NEAR)
        assert chi_squared(less, degrees) <= chi_squared(less, degrees + 1) * (1 + NEAR)


class TestBinomial:
    @tried
    @given(st.integers(0, 3_000), st.integers(0, 3_000), st.integers(1, 20), st.integers(1, 20))
    def test_it_is_twice_the_lesser_tail(self, stats: Any, count: int, other: int, cells: int, others: int) -> None:
        share = cells / (cells + others)
        tails = stats.binom.cdf(count, count + other, share), stats.binom.sf(count - 1, count + other, share)
        assert binomial_test(count, other, share) == pytest.approx(min(1, max(LEAST_P, 2 * min(tails))), rel=1e-6)

    def test_nothing_is_divided_evenly(self) -> None:
        assert binomial_test(0, 0, 0.1) == 1

    def test_of_as_many_as_are_due_anything_is_as_likely(self) -> None:
        assert binomial_test(100, 800, 1 / 9) == 1

    def test_many_are_divided_in_a_moment_and_never_below_the_least(self) -> None:
        assert binomial_test(0, 24_000_000, 1 / 9) == binomial_test(3_000_000, 0, 1 / 9) == LEAST_P
        assert 0.9 < binomial_test(3_000_000, 24_000_000, 1 / 9) <= 1


class TestNearestEnds:
    @pytest.mark.parametrize(
        ("h", "n", "m", "told"),
        [(0.5, 100, 100, 0.5 - 1.959963984540054 * math.sqrt(0.02)), (0.2, 100, 100, 0), (0.0, 9, 9, 0), (2, 0, 9, 0)],
    )
    def test_of_an_effect_it_is_the_end_of_the_interval_and_never_beyond_none(
        self, h: float, n: int, m: int, told: float
    ) -> None:
        assert nearest_h(h, n, m) == nearest_h(-h, n, m) == pytest.approx(told, abs=1e-12)

    def test_more_decisions_leave_more_of_an_effect(self) -> None:
        ends = [nearest_h(0.6, n, 8 * n) for n in (5, 20, 100, 10_000)]
        assert ends == sorted(ends)
        assert ends[-1] == pytest.approx(0.6, abs=0.03)

    def test_of_two_samples_of_one_population_one_index_of_twenty_is_greater(self) -> None:
        chance = random.Random(11)  # noqa: S311 - for tests to be the same each time
        n, m, bins, beyond, tries = 300, 900, 6, 0, 1_500
        for _ in range(tries):
            one, other = ([0] * bins for _ in range(2))
            for counts, size in ((one, n), (other, m)):
                for _ in range(size):
                    counts[chance.randrange(bins)] += 1
            beyond += stability_index(other, one) > chance_index(bins, n, m)
        assert 0.02 < beyond / tries < 0.08

    def test_chance_adds_nothing_known_to_no_decisions(self) -> None:
        assert chance_index(4, 0, 9) == chance_index(4, 9, 0) == 0
