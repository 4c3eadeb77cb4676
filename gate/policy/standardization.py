"""Compares two groups of cases on an equal basis: by their success rates among like cases.

    compared = compare({("true", "2"): (Share(18, 20), Share(70, 90)), ...})
    compared.difference            # the first group's rate less the other's, among like cases
    compared.p_value

Cases are alike if they lie in one stratum. Each stratum weighs `n1 * n0 / (n1 + n0)` (Mantel and Haenszel, "Statistical
aspects of the analysis of data from retrospective studies of disease", Journal of the National Cancer Institute 22,
1959). So both groups are standardized to the same mix of cases, and a stratum that only one of them has weighs nothing.
Small strata do no harm: the estimates are consistent in many strata of one or two cases.

    difference  the Mantel-Haenszel risk difference, with Sato's variance ("On the variance estimator for the
                Mantel-Haenszel risk difference", Biometrics 45, 1989)
    interval    Klingenberg's score interval ("A new and improved confidence interval for the Mantel-Haenszel risk
                difference", Statistics in Medicine 33, 2014); Newcombe's if no stratum has both results
    p_value     the Cochran-Mantel-Haenszel test, without continuity correction; Fisher's exact test over all strata
                if too few other results were possible, by the criterion of Mantel and Fleiss ("Minimum expected cell
                size requirements for the Mantel-Haenszel one-degree-of-freedom chi-square test", American Journal of
                Epidemiology 112, 1980)
    groups      if cases came in groups, variances count `design_effect` times (Rao and Scott, "A simple method for
                the analysis of clustered binary data", Biometrics 48, 1992)

Everything is pure and deterministic: whole numbers are added, and divided in the order of the names of the strata.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

from gate.policy.anomalies.statistics import LEAST_P, Share, chi_squared

_Z: Final = NormalDist().inv_cdf(0.975)
_DIGITS: Final = 6
# Such a small share of the likeliest number changes no reported p-value.
_NEGLIGIBLE: Final = 1e-45
# Two numbers are equally likely if they differ by no more than the error of floats.
_TIE: Final = 1 + 1e-9

LEAST_EXPECTED: Final = 5.0
"""The distance of the fewest and the most possible successes from the expected ones, below which the exact test is
used.
"""


class _Rates(NamedTuple):
    """The standardized rates of both groups."""

    one: float
    other: float


class Interval(NamedTuple):
    """A difference of two rates with its 95% interval, six decimals."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two groups among like cases.

    Attributes:
        rate: The standardized rate of the first group, six decimals.
        others: The standardized rate of the other group.
        difference: The first less the other.
        p_value: The probability of rates at least as different, if the groups do equally well among like cases.
        strata: The number of strata that both groups have.
        cases: The number of cases of the first group in these.
        other_cases: The number of cases of the other group.
    """

    rate: float
    others: float
    difference: Interval
    p_value: float
    strata: int
    cases: int
    other_cases: int


def compare(strata: Mapping[str, tuple[Share, Share]], design_effect: float = 1.0) -> Comparison | None:
    """Two groups, standardized to the same mix of cases.

    Args:
        strata: By stratum how many cases of the first group succeeded, of how many, and of the other group.
        design_effect: How many times as much the rates vary as those of as many independent cases, at least 1.

    Returns:
        None where they have no stratum in common.
    """
    common = [(one, other) for _, (one, other) in sorted(strata.items()) if one.whole and other.whole]
    if not common:
        return None
    weight = math.fsum(_weight(one, other) for one, other in common)
    rates = _Rates(
        math.fsum(_weight(one, other) * one.part / one.whole for one, other in common) / weight,
        math.fsum(_weight(one, other) * other.part / other.whole for one, other in common) / weight,
    )
    return Comparison(
        rate=round(rates.one, _DIGITS),
        others=round(rates.other, _DIGITS),
        difference=_interval(common, rates, weight, design_effect),
        p_value=_p_value(common, design_effect),
        strata=len(common),
        cases=sum(one.whole for one, _ in common),
        other_cases=sum(other.whole for _, other in common),
    )


class Groups(NamedTuple):
    """Cases of one population, such as a version, by the groups in which they arrived.

    Attributes:
        groups: How many groups there are.
        cases: How many cases.
        succeeded: How many of them succeeded.
        squares: The sum over the groups of their cases, squared.
        products: Of their cases, times those that succeeded.
        succeeded_squares: Of those that succeeded, squared.
    """

    groups: int
    cases: int
    succeeded: int
    squares: int
    products: int
    succeeded_squares: int

    @property
    def observed(self) -> float:
        """How much the number of successes varies from group to group, compared with the expectation from its cases."""
        if self.groups == 1:
            return 0.0
        rate = self.succeeded / self.cases
        squares = self.succeeded_squares - 2 * rate * self.products + rate**2 * self.squares
        return max(0.0, squares) * self.groups / (self.groups - 1)

    @property
    def independent(self) -> float:
        """How much it would vary if each case were a group of its own."""
        return self.succeeded * (self.cases - self.succeeded) / (self.cases - 1) if self.groups > 1 else 0.0


def design_effect(populations: Iterable[Groups]) -> float:
    """The factor by which rates vary more than those of independent cases, if cases arrive in groups.

    Args:
        populations: The groups of each population. A population of one group says nothing.

    Returns:
        At least 1, six decimals; exactly 1 if each case arrived alone.
    """
    of = list(populations)
    independent = math.fsum(each.independent for each in of)
    return max(1.0, round(math.fsum(each.observed for each in of) / independent, _DIGITS)) if independent else 1.0


def total(shares: Iterable[Share]) -> Share:
    """Several shares, of cases that none of them has in common, as one."""
    of = list(shares)
    return Share(sum(share.part for share in of), sum(share.whole for share in of))


def _weight(one: Share, other: Share) -> float:
    return one.whole * other.whole / (one.whole + other.whole)


def _interval(common: Sequence[tuple[Share, Share]], rates: _Rates, weight: float, design_effect: float) -> Interval:
    """Klingenberg's: the differences whose distance from that observed is at most 1.96 standard errors, the variance
    (Sato's) being that of the difference supposed. Where no stratum has both results, that variance is none at all, and
    Newcombe's interval of both rates takes its place.
    """
    difference = rates.one - rates.other
    p = design_effect * math.fsum(_linear(one, other) for one, other in common) / weight**2
    q = design_effect * math.fsum(_constant(one, other) for one, other in common) / weight**2
    if q:
        middle = difference + _Z**2 * p / 2
        half = math.sqrt(max(0.0, middle**2 - difference**2 + _Z**2 * q))
        ends = (middle - half, middle + half)
    else:
        sizes = (
            sum(of) / design_effect for of in zip(*((one.whole, other.whole) for one, other in common), strict=True)
        )
        ends = _newcombe(rates, *sizes)
    return Interval(*(round(value, _DIGITS) + 0.0 for value in (difference, max(-1.0, ends[0]), min(1.0, ends[1]))))


def _newcombe(rates: _Rates, size: float, other_size: float) -> tuple[float, float]:
    (low, high), (other_low, other_high) = _wilson(rates.one, size), _wilson(rates.other, other_size)
    below = math.hypot(rates.one - low, other_high - rates.other)
    above = math.hypot(high - rates.one, rates.other - other_low)
    return rates.one - rates.other - below, rates.one - rates.other + above


def _wilson(rate: float, size: float) -> tuple[float, float]:
    middle = (rate + _Z**2 / (2 * size)) / (1 + _Z**2 / size)
    half = _Z * math.sqrt(rate * (1 - rate) / size + _Z**2 / (4 * size**2)) / (1 + _Z**2 / size)
    return middle - half, middle + half


def _linear(one: Share, other: Share) -> float:
    """A stratum's part of what grows with the difference in Sato's variance."""
    n1, n0 = one.whole, other.whole
    # Twice the numerator, so that it is a whole number.
    return (2 * (n1**2 * other.part - n0**2 * one.part) + n1 * n0 * (n0 - n1)) / (2 * (n1 + n0) ** 2)


def _constant(one: Share, other: Share) -> float:
    """A stratum's part of what does not."""
    crossed = one.part * (other.whole - other.part) + other.part * (one.whole - one.part)
    return crossed / (2 * (one.whole + other.whole))


def _p_value(common: Sequence[tuple[Share, Share]], design_effect: float) -> float:
    if _expected_range(common) >= LEAST_EXPECTED:
        return chi_squared(_cochran_mantel_haenszel(common) / design_effect, 1)
    p_value = _exact(common)
    # As much evidence as so great a variable of the test above, which the design effect divides.
    return p_value if design_effect == 1 else chi_squared(NormalDist().inv_cdf(p_value / 2) ** 2 / design_effect, 1)


def _expected_range(common: Iterable[tuple[Share, Share]]) -> float:
    """How far the fewest and the most successes that the margins allow lie from what is expected; the nearer one."""
    expected, fewest, most = [], 0, 0
    for one, other in common:
        succeeded = one.part + other.part
        expected.append(one.whole * succeeded / (one.whole + other.whole))
        fewest += max(0, succeeded - other.whole)
        most += min(one.whole, succeeded)
    middle = math.fsum(expected)
    return min(middle - fewest, most - middle)


def _cochran_mantel_haenszel(common: Iterable[tuple[Share, Share]]) -> float:
    distance, variance = [], []
    for one, other in common:
        whole, succeeded = one.whole + other.whole, one.part + other.part
        distance.append((one.part * whole - one.whole * succeeded) / whole)
        variance.append(one.whole * other.whole * succeeded * (whole - succeeded) / (whole**2 * (whole - 1)))
    return math.fsum(distance) ** 2 / math.fsum(variance)


class _Likely(NamedTuple):
    """How likely each number of successes is, from the fewest on; of those left out none is likely at all."""

    fewest: int
    weights: Sequence[float]


def _exact(common: Iterable[tuple[Share, Share]]) -> float:
    """Fisher's test over all strata: how likely numbers are that are no likelier than the first group's successes,
    where in each stratum chance alone says which of its cases succeeded.
    """
    found, observed = _Likely(0, [1.0]), 0
    for one, other in common:
        found, observed = _added(found, _drawn(one, other)), observed + one.part
    at = observed - found.fewest
    if not 0 <= at < len(found.weights):
        return LEAST_P
    here = found.weights[at] * _TIE
    p_value = math.fsum(weight for weight in found.weights if weight <= here) / math.fsum(found.weights)
    return min(1.0, max(p_value, LEAST_P))


def _drawn(one: Share, other: Share) -> _Likely:
    """Of one stratum: the hypergeometric distribution, as multiples of the likeliest number."""
    n, m, succeeded = one.whole, other.whole, one.part + other.part
    fewest, most = max(0, succeeded - m), min(n, succeeded)
    mode = min(most, max(fewest, (n + 1) * (succeeded + 1) // (n + m + 2)))
    above, weight = [], 1.0
    for at in range(mode, most):
        weight *= (n - at) * (succeeded - at) / ((at + 1) * (m - succeeded + at + 1))
        if weight < _NEGLIGIBLE:
            break
        above.append(weight)
    below, weight = [], 1.0
    for at in range(mode, fewest, -1):
        weight *= at * (m - succeeded + at) / ((n - at + 1) * (succeeded - at + 1))
        if weight < _NEGLIGIBLE:
            break
        below.append(weight)
    return _Likely(mode - len(below), [*reversed(below), 1.0, *above])


def _added(first: _Likely, second: _Likely) -> _Likely:
    """Of two strata together."""
    weights = [0.0] * (len(first.weights) + len(second.weights) - 1)
    for at, weight in enumerate(first.weights):
        for beyond, other in enumerate(second.weights, at):
            weights[beyond] += weight * other
    likeliest = max(weights)
    kept = [at for at, weight in enumerate(weights) if weight >= likeliest * _NEGLIGIBLE]
    return _Likely(
        first.fewest + second.fewest + kept[0],
        [weight / likeliest for weight in weights[kept[0] : kept[-1] + 1]],
    )
