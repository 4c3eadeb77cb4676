"""Two groups among like cases: against oracles written otherwise, the laws they keep, and what chance does to them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gate.policy.anomalies.statistics import LEAST_P, Share, fisher_exact
from gate.policy.standardization import LEAST_EXPECTED, Comparison, Groups, compare, design_effect, total
from tests.gate.policy.counting import tried
from tests.support.reference import stats

Z = NormalDist().inv_cdf(0.975)

Table = tuple[Share, Share]


def shares(most: int, least: int = 0) -> st.SearchStrategy[Share]:
    """Shares of `least` to `most` cases."""
    return st.integers(least, most).flatmap(lambda whole: st.builds(Share, st.integers(0, whole), st.just(whole)))


tables = st.dictionaries(st.text("abc,", max_size=4), st.tuples(shares(60), shares(60)), max_size=8)
with_common = tables.filter(lambda of: any(one.whole and other.whole for one, other in of.values()))
few = st.dictionaries(st.text("abcd", min_size=1, max_size=2), st.tuples(shares(3), shares(3)), min_size=1, max_size=20)
effects = st.floats(1, 20, allow_nan=False)


def found(of: Mapping[str, Table], effect: float = 1.0) -> Comparison:
    """A comparison that there is."""
    compared = compare(of, effect)
    assert compared is not None
    return compared


def common(of: Mapping[str, Table]) -> list[tuple[int, int, int, int]]:
    """(succeeded, cases) of both groups, of the strata that both have."""
    return [(*one, *other) for one, other in of.values() if one.whole and other.whole]


def weighted(of: Mapping[str, Table]) -> tuple[Fraction, Fraction]:
    """Both Mantel-Haenszel rates, exactly."""
    zero = Fraction(0)
    whole = sum((Fraction(n * m, n + m) for _, n, _, m in common(of)), zero)
    one = sum((Fraction(n * m, n + m) * Fraction(a, n) for a, n, _, m in common(of)), zero) / whole
    other = sum((Fraction(n * m, n + m) * Fraction(c, m) for _, n, c, m in common(of)), zero) / whole
    return one, other


def variance(of: Mapping[str, Table], supposed: float) -> float:
    """Sato's variance of the difference where it is as supposed."""
    whole = sum(n * m / (n + m) for _, n, _, m in common(of))
    p = sum((n**2 * c - m**2 * a + n * m * (m - n) / 2) / (n + m) ** 2 for a, n, c, m in common(of))
    q = sum((a * (m - c) / (n + m) + c * (n - a) / (n + m)) / 2 for a, n, c, m in common(of))
    return (supposed * p + q) / whole**2


def end(of: Mapping[str, Table], effect: float, side: int) -> float:
    """An end of the score interval, by bisection: where the distance is 1.96 standard errors of the one supposed."""
    one, other = weighted(of)
    difference = float(one - other)

    def within(supposed: float) -> bool:
        return (supposed - difference) ** 2 <= Z**2 * effect * variance(of, supposed)

    near, far = difference, difference + side * 1e4
    for _ in range(200):
        middle = (near + far) / 2
        near, far = (middle, far) if within(middle) else (near, middle)
    return max(-1.0, min(1.0, near))


def nearer(of: Mapping[str, Table]) -> float:
    """How far the nearer of the fewest and the most successes of the first group lies from what is expected."""
    ranges = [(n * (a + c) / (n + m), max(0, a + c - m), min(n, a + c)) for a, n, c, m in common(of)]
    expected, fewest, most = (math.fsum(column) for column in zip(*ranges, strict=True))
    return min(expected - fewest, most - expected)


def drawing(n: int, m: int, succeeded: int) -> dict[int, int]:
    """In how many ways so many of n cases succeed, where chance chooses which of n + m do."""
    numbers = range(max(0, succeeded - m), min(n, succeeded) + 1)
    return {of: math.comb(n, of) * math.comb(m, succeeded - of) for of in numbers}


def drawn(n: int, m: int, succeeded: int) -> tuple[Fraction, Fraction]:
    """The mean and variance of how many of n cases succeed, where chance chooses which of n + m do."""
    ways = drawing(n, m, succeeded)
    whole = sum(ways.values())
    mean = Fraction(sum(of * way for of, way in ways.items()), whole)
    return mean, Fraction(sum(of**2 * way for of, way in ways.items()), whole) - mean**2


class TestOracles:
    @tried
    @given(with_common)
    def test_rates_are_the_mantel_haenszel_ones(self, of: dict[str, Table]) -> None:
        compared, (one, other) = found(of), weighted(of)
        assert compared.rate == pytest.approx(float(one), abs=6e-7)
        assert compared.others == pytest.approx(float(other), abs=6e-7)
        assert compared.difference.value == pytest.approx(float(one - other), abs=6e-7)
        assert (compared.strata, compared.cases, compared.other_cases) == (
            len(common(of)),
            sum(n for _, n, _, _ in common(of)),
            sum(m for _, _, _, m in common(of)),
        )

    @tried
    @given(with_common, effects)
    def test_the_interval_holds_the_differences_within_two_standard_errors(
        self, of: dict[str, Table], effect: float
    ) -> None:
        assume(any(0 < a + c < n + m for a, n, c, m in common(of)))
        compared = found(of, effect)
        assert compared.difference.low == pytest.approx(end(of, effect, -1), abs=2e-6)
        assert compared.difference.high == pytest.approx(end(of, effect, +1), abs=2e-6)

    @tried
    @given(with_common, effects)
    def test_the_p_value_of_many_is_that_of_the_hypergeometric_moments(
        self, of: dict[str, Table], effect: float
    ) -> None:
        assume(nearer(of) >= LEAST_EXPECTED)
        moments = [drawn(n, m, a + c) for a, n, c, m in common(of)]
        distance = sum(a for a, *_ in common(of)) - sum(mean for mean, _ in moments)
        spread = sum(variance for _, variance in moments)
        expected = stats().chi2.sf(float(distance**2 / spread) / effect, 1)
        assert found(of, effect).p_value == pytest.approx(max(expected, LEAST_P), rel=1e-6)

    @tried
    @given(few)
    def test_the_p_value_of_few_is_that_of_all_ways_in_which_chance_could_have_it(self, of: dict[str, Table]) -> None:
        assume(common(of))
        assume(nearer(of) < LEAST_EXPECTED)
        ways = {0: Fraction(1)}
        for a, n, c, m in common(of):
            stratum = drawing(n, m, a + c)
            whole = sum(stratum.values())
            together: dict[int, Fraction] = {}
            for before, way in ways.items():
                for number, more in stratum.items():
                    together[before + number] = together.get(before + number, Fraction(0)) + way * Fraction(more, whole)
            ways = together
        here = ways[sum(a for a, *_ in common(of))]
        expected = float(sum(way for way in ways.values() if way <= here))
        assert found(of).p_value == pytest.approx(expected, rel=1e-9)

    @tried
    @given(shares(300, 1), shares(6, 1))
    def test_the_p_value_of_few_in_one_stratum_is_fishers(self, one: Share, other: Share) -> None:
        assume(nearer({"": (one, other)}) < LEAST_EXPECTED)
        assert found({"": (one, other)}).p_value == pytest.approx(fisher_exact(one, other), rel=1e-9)

    @tried
    @given(few, effects)
    def test_groups_make_evidence_of_few_weaker_by_as_much(self, of: dict[str, Table], effect: float) -> None:
        assume(common(of))
        assume(nearer(of) < LEAST_EXPECTED)
        alone = stats().norm.isf(found(of).p_value / 2)
        assert stats().norm.isf(found(of, effect).p_value / 2) == pytest.approx(alone / math.sqrt(effect), abs=1e-6)

    def test_few_failures_that_are_all_in_one_group_are_no_chance(self) -> None:
        # Of 1,040 cases 70 failed, 20 of them among 40: 2.7 were to be expected, too few for the approximation.
        of = {"": (Share(20, 40), Share(950, 1000))}
        assert nearer(of) < LEAST_EXPECTED
        assert found(of).p_value == pytest.approx(fisher_exact(*of[""]), rel=1e-9)
        assert found(of).p_value < 1e-12

    def test_a_published_table_gives_the_published_numbers(self) -> None:
        # Berkeley's admissions of 1973, the six largest departments, men beside women: P. J. Bickel, E. A. Hammel and
        # J. W. O'Connell, Science 187, 1975; R's mantelhaen.test(UCBAdmissions, correct = FALSE) gives p 0.2169.
        berkeley = {
            "A": (Share(512, 825), Share(89, 108)),
            "B": (Share(353, 560), Share(17, 25)),
            "C": (Share(120, 325), Share(202, 593)),
            "D": (Share(138, 417), Share(131, 375)),
            "E": (Share(53, 191), Share(94, 393)),
            "F": (Share(22, 373), Share(24, 341)),
        }
        raw = found({"": (total(one for one, _ in berkeley.values()), total(one for _, one in berkeley.values()))})
        like = found(berkeley)
        assert raw.difference.value > 0.14
        assert raw.p_value < 1e-20
        assert like.p_value == pytest.approx(0.2169, abs=5e-4)
        assert like.difference.low < 0 < like.difference.high


class TestLaws:
    @tried
    @given(with_common, effects)
    def test_groups_that_change_places_mirror_the_result(self, of: dict[str, Table], effect: float) -> None:
        there, back = found(of, effect), found({name: (other, one) for name, (one, other) in of.items()}, effect)
        assert (there.rate, there.others) == (back.others, back.rate)
        assert there.difference.value == -back.difference.value
        assert there.difference.low == pytest.approx(-back.difference.high, abs=2e-6)
        assert there.difference.high == pytest.approx(-back.difference.low, abs=2e-6)
        assert there.p_value == pytest.approx(back.p_value, rel=1e-9)
        assert there.strata == back.strata

    @tried
    @given(with_common, effects)
    def test_successes_and_failures_that_change_places_mirror_it_too(self, of: dict[str, Table], effect: float) -> None:
        def less(share: Share) -> Share:
            return Share(share.whole - share.part, share.whole)

        there, back = (
            found(of, effect),
            found({name: (less(one), less(two)) for name, (one, two) in of.items()}, effect),
        )
        assert there.difference.low == pytest.approx(-back.difference.high, abs=2e-6)
        assert there.difference.value == pytest.approx(-back.difference.value, abs=2e-6)
        assert there.p_value == pytest.approx(back.p_value, rel=1e-9)

    @tried
    @given(with_common, shares(90), st.booleans())
    def test_an_empty_stratum_or_one_of_a_single_group_changes_nothing(
        self, of: dict[str, Table], alone: Share, is_first: bool
    ) -> None:
        none = Share(0, 0)
        more = {"zz": (none, none), "zy": (alone, none) if is_first else (none, alone)}
        assert compare({**of, **more}) == compare(of)

    @tried
    @given(with_common)
    def test_the_order_of_strata_changes_nothing(self, of: dict[str, Table]) -> None:
        assert compare(dict(reversed(of.items()))) == compare(of)

    @tried
    @given(shares(400, 1), shares(400, 1))
    def test_one_stratum_is_the_table_of_two_by_two(self, one: Share, other: Share) -> None:
        compared = found({"": (one, other)})
        assert (compared.rate, compared.others) == (round(one.rate, 6), round(other.rate, 6))
        n, m, succeeded = one.whole, other.whole, one.part + other.part
        pooled = succeeded / (n + m)
        if nearer({"": (one, other)}) >= LEAST_EXPECTED:
            z = (one.rate - other.rate) / math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m) * (n + m) / (n + m - 1))
            assert compared.p_value == pytest.approx(max(2 * stats().norm.sf(abs(z)), LEAST_P), rel=1e-6)
        if pooled in (0, 1):
            assert (compared.p_value, compared.difference.value) == (1, 0)

    @tried
    @given(with_common, effects)
    def test_the_difference_lies_in_its_interval_and_that_between_minus_1_and_1(
        self, of: dict[str, Table], effect: float
    ) -> None:
        for compared in (found(of), found(of, effect)):
            difference = compared.difference
            assert -1 <= difference.low <= difference.value <= difference.high <= 1
            assert 0 < compared.p_value <= 1
        assert found(of, effect).p_value >= found(of).p_value

    @tried
    @given(few)
    def test_tiny_strata_break_nothing(self, of: dict[str, Table]) -> None:
        compared = compare(of)
        assert (compared is None) == (not common(of))
        if compared is not None:
            assert compared.difference.low <= compared.difference.value <= compared.difference.high
            assert compared.difference.high - compared.difference.low > 0

    @pytest.mark.parametrize("rate", [0, 1], ids=["all failed", "all succeeded"])
    def test_groups_without_a_difference_have_an_interval_all_the_same(self, rate: int) -> None:
        compared = found({"a": (Share(rate * 40, 40), Share(rate * 30, 30)), "b": (Share(rate, 1), Share(rate * 5, 5))})
        assert (compared.rate, compared.others, compared.difference.value) == (rate, rate, 0)
        assert compared.p_value == 1
        assert compared.difference.low < -0.05 < 0.05 < compared.difference.high
        # As Newcombe's of 41 and 35 cases without a failure: 3.8416 / (n + 3.8416) at either side.
        assert max(map(abs, compared.difference)) == pytest.approx(Z**2 / (35 + Z**2), abs=1e-6)

    def test_groups_that_tie_in_every_stratum_do_not_differ(self) -> None:
        compared = found({"a": (Share(10, 20), Share(5, 10)), "b": (Share(3, 30), Share(30, 300))})
        assert (compared.difference.value, compared.p_value) == (0, 1)

    def test_nothing_in_common_is_not_compared(self) -> None:
        nothing = Share(0, 0)
        assert compare({}) is None
        assert compare({"a": (Share(3, 4), nothing), "b": (nothing, Share(1, 9)), "c": (nothing, nothing)}) is None

    def test_huge_counts_are_no_trouble(self) -> None:
        compared = found({"a": (Share(2**52, 2**53), Share(2**52 - 1, 2**53))})
        assert math.isfinite(compared.difference.low)
        assert compared.difference.value == 0


class TestChance:
    """What a correct implementation meets by far, of samples with fixed seeds."""

    RUNS = 2000

    def simulated(self, seed: int, strata: int, most: int, difference: float) -> list[Comparison]:
        """Comparisons of groups that differ by as much in every stratum, the rates and sizes of which differ widely."""
        chance = np.random.default_rng(seed)
        made = []
        for _ in range(self.RUNS):
            ones, others = chance.integers(0, most + 1, strata), chance.integers(0, most + 1, strata)
            rates = chance.uniform(0.1, 0.85 - max(difference, 0), strata)
            won = chance.binomial(ones, rates + difference), chance.binomial(others, rates)
            of = {
                f"{at:03}": (Share(int(won[0][at]), int(ones[at])), Share(int(won[1][at]), int(others[at])))
                for at in range(strata)
            }
            compared = compare(of)
            if compared is not None:
                made.append(compared)
        return made

    @pytest.mark.parametrize(("strata", "most"), [(100, 2), (40, 5), (5, 60), (1, 200)])
    def test_the_test_keeps_its_level(self, strata: int, most: int) -> None:
        p_values = [of.p_value for of in self.simulated(1, strata, most, 0.0)]
        assert 0.03 <= sum(p <= 0.05 for p in p_values) / len(p_values) <= 0.07
        assert sum(p <= 0.01 for p in p_values) / len(p_values) <= 0.02

    @pytest.mark.parametrize("difference", [0.0, 0.1])
    @pytest.mark.parametrize(("strata", "most"), [(100, 2), (40, 5), (5, 60), (1, 200)])
    def test_the_interval_covers_the_true_difference(self, strata: int, most: int, difference: float) -> None:
        made = self.simulated(2, strata, most, difference)
        covered = sum(of.difference.low - 1e-6 <= difference <= of.difference.high + 1e-6 for of in made)
        assert 0.93 <= covered / len(made) <= 0.985

    def test_the_test_of_few_keeps_its_level(self) -> None:
        p_values = [of.p_value for of in self.simulated(6, 6, 4, 0.0)]
        assert 0.005 <= sum(p <= 0.05 for p in p_values) / len(p_values) <= 0.06

    def test_a_difference_is_found(self) -> None:
        made = self.simulated(3, 60, 20, -0.1)
        assert sum(of.p_value <= 0.01 and of.difference.value < 0 for of in made) / len(made) > 0.8


def grouped(groups: list[list[bool]]) -> Groups:
    """A population of groups of cases that succeeded or not."""
    sizes, won = [len(of) for of in groups], [sum(of) for of in groups]
    return Groups(
        len(groups),
        sum(sizes),
        sum(won),
        sum(size**2 for size in sizes),
        sum(size * of for size, of in zip(sizes, won, strict=True)),
        sum(of**2 for of in won),
    )


class TestDesignEffect:
    @tried
    @given(st.lists(st.lists(st.booleans(), min_size=1, max_size=200), max_size=4))
    def test_cases_that_come_alone_count_once(self, populations: list[list[bool]]) -> None:
        assert design_effect(grouped([[case] for case in of]) for of in populations) == 1.0

    @tried
    @given(st.integers(2, 40), st.lists(st.booleans(), min_size=30, max_size=200))
    def test_identical_cases_count_as_one(self, size: int, results: list[bool]) -> None:
        assume(len(set(results)) == 2)
        effect = design_effect([grouped([[result] * size for result in results])])
        assert size * 0.98 <= effect <= size * (1 + 2 / len(results))

    @tried
    @given(st.lists(st.lists(st.lists(st.booleans(), min_size=1, max_size=9), min_size=1, max_size=9), max_size=4))
    def test_it_is_the_variance_between_groups_by_that_of_cases(self, populations: list[list[list[bool]]]) -> None:
        observed = independent = 0.0
        for groups in populations:
            cases = [case for group in groups for case in group]
            if len(groups) > 1:
                rate = sum(cases) / len(cases)
                residuals = [sum(group) - rate * len(group) for group in groups]
                observed += sum(of**2 for of in residuals) * len(groups) / (len(groups) - 1)
                independent += float(np.var(cases, ddof=1)) * len(cases)
        expected = max(1.0, observed / independent) if independent > 1e-12 else 1.0
        assert design_effect(grouped(of) for of in populations) == pytest.approx(expected, abs=2e-6)

    def test_nothing_and_one_group_tell_nothing(self) -> None:
        assert design_effect([]) == 1.0
        assert design_effect([grouped([[True, False, True]])]) == 1.0

    def test_independent_cases_in_groups_have_about_1(self) -> None:
        chance = np.random.default_rng(4)
        effects = [design_effect([grouped((chance.random((200, 5)) < 0.7).tolist())]) for _ in range(100)]
        assert 1.0 <= sum(effects) / len(effects) <= 1.1
