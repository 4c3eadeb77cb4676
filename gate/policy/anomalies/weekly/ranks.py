"""Tests by ranks of values in bins: whether values of one side lie higher than those of another, and how far.

    found = compare([5, 9, 2], [1, 6, 12])     # values by bin, in the order of the bins
    found.delta, found.p_value

Values of one bin are tied. H. B. Mann and D. R. Whitney 1947, by the normal approximation with the correction for ties;
E. van Elteren 1960 for several strata; N. Cliff, "Dominance statistics", Psychological Bulletin 114, 1993, for the
effect size, with the variance of E. R. DeLong and others 1988.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gate.policy.anomalies.statistics import LEAST_P, Z


class Compared(NamedTuple):
    """Two sides beside each other.

    Attributes:
        delta: Cliff's: how much more often a value of the first side is the greater one than the lesser one, -1 to 1.
        variance: Of delta, where nothing changed.
        spread: Of delta, as it is.
    """

    delta: float
    variance: float
    spread: float

    @property
    def z(self) -> float:
        """How many standard errors delta lies from none, with its sign."""
        return self.delta / math.sqrt(self.variance) if self.variance > 0 else 0.0

    @property
    def p_value(self) -> float:
        """How likely delta is as far from none by chance, to either side; `LEAST_P` where less."""
        return max(LEAST_P, math.erfc(abs(self.z) / math.sqrt(2)))

    @property
    def least_delta(self) -> float:
        """The end of the 95% interval of delta that is nearer to none, without its sign."""
        return max(0.0, abs(self.delta) - Z * math.sqrt(self.spread))


NOTHING: Final = Compared(0.0, 0.0, 0.0)


def compare(
    first: Sequence[int], second: Sequence[int], first_effect: float = 1.0, second_effect: float = 1.0
) -> Compared:
    """Compares two sides.

    Args:
        first: The values of one side by bin, in the order of the bins.
        second: Those of the other.
        first_effect: How many values of the first side say as much as one.
        second_effect: Those of the second.
    """
    n, m = sum(first), sum(second)
    if not n or not m:
        return NOTHING
    whole = n + m
    dominance = squares = others = tied = 0
    below_first = below_second = 0
    for a, b in zip(first, second, strict=True):
        # How many more of the other side lie below than above, from each value of a bin.
        of_first = 2 * below_second + b - m
        of_second = 2 * below_first + a - n
        dominance += a * of_first
        squares += a * of_first * of_first
        others += b * of_second * of_second
        tied += (a + b) ** 3 - (a + b)
        below_first += a
        below_second += b
    delta = dominance / (n * m)
    alone, beside = n / first_effect, m / second_effect
    untied = 1 - tied / (whole**3 - whole) if whole > 1 else 0.0
    variance = (alone + beside + 1) / (3 * alone * beside) * untied
    spread = (squares / (n * m * m) - delta * delta) / alone + (others / (m * n * n) - delta * delta) / beside
    return Compared(delta, variance, max(spread, 1 / (alone * beside)))


def dominance(first: Sequence[int], second: Sequence[int]) -> int:
    """How many more pairs of two sides, by bin, have the greater value on the first than on the second."""
    found = below_first = below_second = 0
    for a, b in zip(first, second, strict=True):
        found += a * below_second - b * below_first
        below_first += a
        below_second += b
    return found


def stratified(strata: Iterable[tuple[Sequence[int], Sequence[int]]], effect: float = 1.0) -> Compared:
    """Compares two sides stratum by stratum: van Elteren's test, which weighs each by nm / (n + m + 1).

    Args:
        strata: Of each stratum the values of both sides by bin.
        effect: How many values say as much as one.
    """
    deltas, variances, spreads, weights = [], [], [], []
    for first, second in strata:
        n, m = sum(first), sum(second)
        if not n or not m:
            continue
        weight = n * m / (n + m + 1)
        found = compare(first, second)
        weights.append(weight)
        deltas.append(weight * found.delta)
        variances.append(weight * weight * found.variance)
        spreads.append(weight * weight * found.spread)
    whole = math.fsum(weights)
    if not whole:
        return NOTHING
    return Compared(
        math.fsum(deltas) / whole,
        effect * math.fsum(variances) / whole**2,
        effect * math.fsum(spreads) / whole**2,
    )
