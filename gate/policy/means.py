"""Means of measured values with their 95% intervals.

    mean_interval(sums_of([812.5, 31.2, 40]))

The source is Student, "The probable error of a mean", 1908. The interval holds for values from a distribution without
heavy tails. Amounts of money often have heavy tails, and then the interval is too narrow for few values.

Sums are exact, and rounded once at the end: the same values give the same figures on every machine, in any order and in
any parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

_TAIL: Final = 0.05
_DIGITS: Final = 6
# A quantile of so many digits is the same whichever library of mathematics works it out.
_QUANTILE_DIGITS: Final = 9
# From here on the series takes longer than the expansion, which is then as exact.
_MANY: Final = 400
_ROOT_BITS: Final = 128


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of some values, exact.

    Attributes:
        values: How many values.
        total: Their sum.
        squares: The sum of their squares.
    """

    values: int = 0
    total: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)

    def __add__(self, other: Sums) -> Sums:
        """The sums of both together."""
        return Sums(self.values + other.values, self.total + other.total, self.squares + other.squares)


class Mean(NamedTuple):
    """A sum and a mean with their 95% intervals, rounded to six decimals.

    The intervals are None of fewer than two values, and any figure is that a double cannot hold.
    """

    sum: float | None
    sum_low: float | None
    sum_high: float | None
    mean: float | None
    low: float | None
    high: float | None


def sums_of(values: Iterable[float]) -> Sums:
    """The sums of some values."""
    exact = [Fraction(value) for value in values]
    return Sums(len(exact), sum(exact, Fraction(0)), sum((value * value for value in exact), Fraction(0)))


def mean_interval(sums: Sums) -> Mean | None:
    """The sum and the mean of some values; None without values."""
    if not sums.values:
        return None
    mean = sums.total / sums.values
    if sums.values < 2:
        return Mean(_rounded(sums.total), None, None, _rounded(mean), None, None)
    variance = (sums.squares - sums.total * mean) / (sums.values - 1)
    half = Fraction(student_t(sums.values - 1)) * _root(variance / sums.values)
    ends = [(mean - half, mean + half), ((mean - half) * sums.values, (mean + half) * sums.values)]
    (low, high), (sum_low, sum_high) = ((_rounded(at), _rounded(to)) for at, to in ends)
    return Mean(_rounded(sums.total), sum_low, sum_high, _rounded(mean), low, high)


@lru_cache(maxsize=1024)
def student_t(degrees: int) -> float:
    """The distance of the 95% interval's end from the mean in standard errors, for these degrees of freedom, at least
    1.
    """
    return round(_expanded(degrees) if degrees > _MANY else _bisected(degrees), _QUANTILE_DIGITS)


def _rounded(value: Fraction) -> float | None:
    try:
        # Adding 0 leaves no -0.
        return float(round(value, _DIGITS)) + 0.0
    except OverflowError:
        return None


def _root(value: Fraction) -> Fraction:
    """The square root of a fraction that is not negative, to about 128 bits."""
    if not value:
        return Fraction(0)
    shift = max(0, _ROOT_BITS - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = (value.numerator << 2 * shift) // value.denominator
    return Fraction(math.isqrt(scaled), 1 << shift)


def _bisected(degrees: int) -> float:
    """The angle at which as much lies within as the interval holds, by halves; t is its tangent."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if _within(middle, degrees) < 1 - _TAIL:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan((low + high) / 2)


def _within(angle: float, degrees: int) -> float:
    """How much of Student's distribution lies within sqrt(degrees) * tan(angle) of 0.

    M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.
    """
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2 == 1
    term = cosine if odd else 1.0
    found = term if degrees > 1 else 0.0
    for number in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine * cosine * (number - 1) / number
        found += term
    return 2 / math.pi * (angle + sine * found) if odd else sine * found


def _expanded(degrees: int) -> float:
    """The expansion around the normal quantile; the same handbook, 26.7.5."""
    z = NormalDist().inv_cdf(1 - _TAIL / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + math.fsum(term / degrees**power for power, term in enumerate(terms, 1))
