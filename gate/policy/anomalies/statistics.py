"""The statistics of the anomaly report: exact tests, effect sizes, false discoveries, and distances from medians.

    fisher_exact(Share(8, 10), Share(1, 10))    the probability of such unequal shares by chance
    discoveries([0.001, 0.2], 0.05)             the greatest p-value that counts among so many

Sums are exact (`math.fsum`) or in a fixed order. Results of the machine's math library (logarithms, exponentials, arc
sines) are rounded before they are reported. So the same counts give the same report everywhere. Sources: Fisher 1935;
Benjamini and Yekutieli 2001; Cohen 1988; Newcombe 1998, method 10; Iglewicz and Hoaglin 1993; Mood 1950; Siddiqi 2006
for the population stability index. `docs/reference/formulas/anomalies.md` has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from gate.policy.confidence import wilson_interval

LEAST_P: Final = 1e-40
"""The smallest p-value that is reported. Smaller ones mean the same."""

_NEGLIGIBLE: Final = 1e-42
# The walk below would end as small, step by step; the logarithm of no table is as far off.
_FAR_BELOW: Final = math.log(1e-60)
# Too small to change a sum.
_LEFT_OUT: Final = 1e-18
# Two tables are equally likely if they differ by no more than the error of floats.
_TIE: Final = 1 + 1e-9
NORMAL_MAD: Final = 0.6744897501960817
"""The median absolute deviation of a standard normal variable."""

Z: Final = 1.959963984540054
"""The distance that a standard normal variable exceeds in either direction with a probability of 5 percent."""

ONE_SIDED: Final = 1.6448536269514722
"""The value that it exceeds with that probability."""

_DIGITS: Final = 6
_FEW: Final = 5
_HALF: Final = 0.5


class Share(NamedTuple):
    """A part of a whole."""

    part: int
    whole: int

    @property
    def rate(self) -> float:
        """The share; 0 if the whole is 0."""
        return self.part / self.whole if self.whole else 0.0


def fisher_exact(a: Share, b: Share) -> float:
    """Fisher's exact test, two-sided: the probability of two shares at least as unequal, if both come from one rate.

    It adds the probabilities of all tables with the same margins that are not likelier than this one.

    Returns:
        The p-value; `LEAST_P` if it is smaller.
    """
    if a.part * b.whole < b.part * a.whole:
        # The same tables, described by what the parts leave over: the first share is now the greater one.
        a, b = Share(a.whole - a.part, a.whole), Share(b.whole - b.part, b.whole)
    parts = a.part + b.part
    low, high = max(0, parts - b.whole), min(a.whole, parts)
    mode = min(a.part, max(low, (a.whole + 1) * (parts + 1) // (a.whole + b.whole + 2)))
    if _logarithm(a, b, a.part) - _logarithm(a, b, mode) < _FAR_BELOW:
        return LEAST_P
    # How likely each table is, as a multiple of how likely the likeliest is.
    weights, here = [1.0], 1.0
    for at in range(mode, a.part):
        here *= (a.whole - at) * (parts - at) / ((at + 1) * (b.whole - parts + at + 1))
        if here < _NEGLIGIBLE:
            return LEAST_P
        weights.append(here)
    least, weight = here * _LEFT_OUT, here
    for at in range(a.part, high):
        weight *= (a.whole - at) * (parts - at) / ((at + 1) * (b.whole - parts + at + 1))
        if weight < least:
            break
        weights.append(weight)
    weight = 1.0
    for at in range(mode, low, -1):
        weight *= at * (b.whole - parts + at) / ((a.whole - at + 1) * (parts - at + 1))
        if weight < least:
            break
        weights.append(weight)
    tail = math.fsum(weight for weight in weights if weight <= here * _TIE)
    return min(1.0, max(LEAST_P, tail / math.fsum(weights)))


def _logarithm(a: Share, b: Share, part: int) -> float:
    """The logarithm of how likely a table is, but for what tables of the same margins have in common, about."""
    rest = a.part + b.part - part
    cells = (part, a.whole - part, rest, b.whole - rest)
    return -math.fsum(math.lgamma(cell + 1) for cell in cells)


def standard_distance(a: Share, b: Share) -> float:
    """The distance of two shares in standard errors under one rate: the pooled z, without its sign."""
    whole, part = a.whole + b.whole, a.part + b.part
    if part in (0, whole) or not a.whole or not b.whole:
        return 0.0
    rate = part / whole
    return abs(a.rate - b.rate) / math.sqrt(rate * (1 - rate) * (1 / a.whole + 1 / b.whole))


def discoveries(p_values: Sequence[float], level: float, *, of: int | None = None) -> float:
    """The greatest p-value that is a discovery, by the step-up of Benjamini and Yekutieli.

    It keeps a false discovery rate of at most `level` under any dependence.

    Args:
        p_values: The candidates.
        level: The rate.
        of: The number of all tests, if the others are known to be no discoveries.

    Returns:
        The p-value; 0 if there is no discovery.
    """
    tests = len(p_values) if of is None else of
    if not tests:
        return 0.0
    slope = level / (tests * math.fsum(1 / rank for rank in range(1, tests + 1)))
    found = [p for rank, p in enumerate(sorted(p_values), 1) if p <= slope * rank]
    return found[-1] if found else 0.0


def cohens_h(a: float, b: float) -> float:
    """The effect size of a change from rate b to rate a, with its sign; 0.2 is small, 0.5 medium, 0.8 large."""
    return 2 * math.asin(math.sqrt(a)) - 2 * math.asin(math.sqrt(b))


def nearest_h(h: float, n: int, m: int) -> float:
    """The end of the 95% interval of an effect size h that is nearer to zero, without its sign.

    Under equal rates, the difference of the arc sines of n and m cases has the variance `1/n + 1/m`.
    """
    return max(0.0, abs(h) - Z * math.sqrt(1 / n + 1 / m)) if n and m else 0.0


def chance_index(bins: int, n: int, m: int) -> float:
    """The excess of the stability index of two samples from one population that chance exceeds in 5 percent of cases.

    It comes in addition to the part that `stability_index` subtracts. The deviation is about `sqrt(2 (bins - 1)) (1/n +
    1/m)`.
    """
    return ONE_SIDED * math.sqrt(2 * max(bins - 1, 1)) * (1 / n + 1 / m) if n and m else 0.0


def difference_interval(a: Share, b: Share) -> tuple[float, float]:
    """The 95% interval of the rate of a less that of b: Newcombe's interval, from both Wilson intervals."""
    (low_a, high_a), (low_b, high_b) = wilson_interval(*a), wilson_interval(*b)
    difference = a.rate - b.rate
    low = difference - math.sqrt((a.rate - low_a) ** 2 + (high_b - b.rate) ** 2)
    high = difference + math.sqrt((high_a - a.rate) ** 2 + (b.rate - low_b) ** 2)
    return max(-1.0, low), min(1.0, high)


def modified_z(distance: float, mad: float) -> float:
    """The distance of a value from a median, in scaled median absolute deviations: `NORMAL_MAD` times it, divided by
    the median absolute deviation.
    """
    return NORMAL_MAD * distance / mad


def required_p(tests: int, chance: float) -> float:
    """The p-value below which one test is certain among so many, whatever the others say.

    If nothing has changed, some test falls below it with at most this probability. It is the Bonferroni bound.
    """
    return chance / max(tests, 1)


def required_z(values: int, *, least: float = 3.5, chance: float = 0.01) -> float:
    """The distance from which a value stands out among so many.

    Of normal values, one lies that far with at most this probability. It is the Gaussian tail bound: `P(|Z| > z) <=
    exp(-z^2 / 2)`.
    """
    return max(least, math.sqrt(2 * math.log(max(values, 1) / chance)))


def binomial_test(count: int, other: int, share: float) -> float:
    """The binomial test, two-sided: the probability of a division at least as uneven. It is twice the smaller tail.

    Args:
        count: The number on one side.
        other: The number on the other side.
        share: The expected share of the first side, between 0 and 1.

    Returns:
        The p-value; `LEAST_P` if it is smaller.
    """
    whole, odds = count + other, share / (1 - share)
    below = count < whole * share
    logarithm = math.lgamma(whole + 1) - math.lgamma(count + 1) - math.lgamma(other + 1)
    terms = [math.exp(logarithm + count * math.log(share) + other * math.log1p(-share))]
    at = count
    while terms[-1] > _LEFT_OUT * terms[0] and (at > 0 if below else at < whole):
        terms.append(terms[-1] * (at / ((whole - at + 1) * odds) if below else (whole - at) * odds / (at + 1)))
        at += -1 if below else 1
    return min(1.0, max(LEAST_P, 2 * math.fsum(terms)))


def stability_index(expected: Sequence[int], actual: Sequence[int]) -> float:
    """The population stability index of two histograms over the same bins, less the part that chance alone adds.

    Every bin counts half a case more, so that an empty one has a logarithm. Two samples from one population have an
    index of about `(bins - 1) * (1/n + 1/m)`.
    """
    bins, n, m = len(expected), sum(expected), sum(actual)
    if not n or not m:
        return 0.0
    terms = []
    for of_expected, of_actual in zip(expected, actual, strict=True):
        p, q = (of_expected + _HALF) / (n + _HALF * bins), (of_actual + _HALF) / (m + _HALF * bins)
        terms.append((q - p) * math.log(q / p))
    return max(0.0, math.fsum(terms) - (bins - 1) * (1 / n + 1 / m))


class Homogeneity(NamedTuple):
    """The result of Pearson's test of two histograms.

    Attributes:
        statistic: Their distance, chi-squared.
        p_value: The probability of a difference at least as large, if both come from one population.
    """

    statistic: float
    p_value: float


def homogeneity(first: Sequence[int], second: Sequence[int]) -> Homogeneity:
    """Pearson's chi-squared test: the probability of histograms at least as different, if both come from one
    population.

    Bins with an expected count below five in the smaller histogram are merged.
    """
    pooled = _enough(first, second)
    n, m = sum(a for a, _ in pooled), sum(b for _, b in pooled)
    if len(pooled) < len((first, second)) or not n or not m:
        return Homogeneity(0.0, 1.0)
    terms = []
    for a, b in pooled:
        of_first, of_second = (a + b) * n / (n + m), (a + b) * m / (n + m)
        terms += [(a - of_first) ** 2 / of_first, (b - of_second) ** 2 / of_second]
    statistic = math.fsum(terms)
    return Homogeneity(statistic, chi_squared(statistic, len(pooled) - 1))


def _enough(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]]:
    n, m = sum(first), sum(second)
    least = _FEW * (n + m) / max(min(n, m), 1)
    kept = [(a, b) for a, b in zip(first, second, strict=True) if a + b >= least]
    rest = [(a, b) for a, b in zip(first, second, strict=True) if 0 < a + b < least]
    if rest:
        together = (sum(a for a, _ in rest), sum(b for _, b in rest))
        if sum(together) >= least or not kept:
            kept.append(together)
        else:
            smallest = min(range(len(kept)), key=lambda at: (sum(kept[at]), at))
            kept[smallest] = (kept[smallest][0] + together[0], kept[smallest][1] + together[1])
    return kept


def median_test(above: Sequence[int], of: Sequence[int]) -> float:
    """Mood's median test: the probability that groups with one median differ as much.

    Args:
        above: For each group, the number of values above the median of all.
        of: For each group, the number of values.
    """
    whole, part = sum(of), sum(above)
    if part in (0, whole) or len(of) < len(("one", "other")):
        return 1.0
    terms = []
    for high, size in zip(above, of, strict=True):
        for seen, expected in ((high, size * part / whole), (size - high, size * (whole - part) / whole)):
            terms.append((seen - expected) ** 2 / expected)
    return chi_squared(math.fsum(terms), len(of) - 1)


def chi_squared(statistic: float, degrees: int) -> float:
    """The probability that a chi-squared variable with these degrees of freedom is at least as large; `LEAST_P` if it
    is smaller.
    """
    half = statistic / 2
    if half <= 0:
        return 1.0
    # As logarithms: many degrees of freedom have terms that are too small, or too great, for a float.
    if degrees % 2:
        start, term, at, terms = math.erfc(math.sqrt(half)), math.log(2 * math.sqrt(half / math.pi)), 1.5, degrees // 2
    else:
        start, term, at, terms = 0.0, 0.0, 1.0, degrees // 2
    found = [start]
    for _ in range(terms):
        found.append(math.exp(term - half))
        term, at = term + math.log(half) - math.log(at), at + 1
    return min(1.0, max(LEAST_P, math.fsum(found)))
