"""Means of measured values with their 95% intervals.

    mean_interval(Sample(values=40, total=812.5, variance=31.2))

W. S. Gosset (Student), "The probable error of a mean", 1908. The interval holds for values that were drawn from a
distribution without heavy tails; amounts of money often have them, and then it is too narrow for few values.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, NamedTuple

_TAIL: Final = 0.05
_DIGITS: Final = 6


class Sample(NamedTuple):
    """Values that were measured.

    Attributes:
        values: How many.
        total: Their sum.
        variance: The sample's variance; None of fewer than two.
    """

    values: int
    total: float
    variance: float | None


class Mean(NamedTuple):
    """A mean with its 95% interval; the interval is None of fewer than two values. Rounded to six decimals."""

    mean: float
    low: float | None
    high: float | None


def mean_interval(sample: Sample) -> Mean | None:
    """The mean of a sample; None without values."""
    if not sample.values:
        return None
    mean = sample.total / sample.values
    if sample.variance is None:
        return Mean(round(mean, _DIGITS), None, None)
    half = student_t(sample.values - 1) * math.sqrt(sample.variance / sample.values)
    return Mean(*(round(at, _DIGITS) for at in (mean, mean - half, mean + half)))


def student_t(degrees: int) -> float:
    """How many standard errors from the mean its 95% interval ends, of so many degrees of freedom, at least 1.

    G. W. Hill, "Algorithm 396: Student's t-quantiles", Communications of the ACM 13 (1970); four digits hold.
    """
    n = float(degrees)
    if degrees == 1:
        return 1 / math.tan(_TAIL * math.pi / 2)
    if degrees == 2:
        return math.sqrt(2 / (_TAIL * (2 - _TAIL)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    x = -NormalDist().inv_cdf(1 - _TAIL / 2)
    y = x * x
    if degrees < 5:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    return math.sqrt(n * math.expm1(a * y * y))
