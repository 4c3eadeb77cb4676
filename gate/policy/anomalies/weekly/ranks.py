"""Rank tests of binned values: whether the values of one side are higher than those of another, and by how much.

    found = compare([5, 9, 2], [1, 6, 12])     # values by bin, in the order of the bins
    found.delta, found.p_value

Values of one bin are tied. The tests are those of Mann and Whitney (1947), by the normal approximation with the
correction for ties, and of van Elteren (1960) for several strata. The effect size is Cliff's delta ("Dominance
statistics", Psychological Bulletin 114, 1993), with the variance of DeLong and others (1988).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gate.policy.anomalies.statistics import LEAST_P, Z


class Compared(NamedTuple):
    """Two sides, compared.

    Attributes:
        delta: Cliff's delta: how much more often a value of the first side is the greater one than the smaller one, -1
            to 1.
        variance: The variance of delta under no change.
        spread: The variance of delta as observed.
    """

    delta: float
    variance: float
    spread: float

    @property
    def z(self) -> float:
        """The distance of delta from zero in standard errors, with its sign."""
        return self.delta / math.sqrt(self.variance) if self.variance > 0 else 0.0

    @property
    def p_value(self) -> float:
        """The probability that chance moves delta as far from zero, in either direction; `LEAST_P` if it is smaller."""
        return max(LEAST_P, math.erfc(abs(self.z) / math.sqrt(2)))

    @property
    def least_delta(self) -> float:
        """The end of the 95% interval of delta that is nearer to zero, without its sign."""
        return max(0.0, abs(self.delta) - Z * math.sqrt(self.spread))


NOTHING: Final = Compared(0.0, 0.0, 0.0)


def compare(
    first: Sequence[int], second: Sequence[int], first_effect: float = 1.0, second_effect: float = 1.0
) -> Compared:
    """Compares two sides.

    Args:
        first: The values of one side by bin, in the order of the bins.
        second: The values of the other side.
        first_effect: The design effect of the first side.
        second_effect: The design effect of the second side.
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
    """Compares two sides stratum by stratum: van Elteren's test, which weighs each stratum by `nm / (n + m + 1)`.

    Args:
        strata: For each stratum, the values of both sides by bin.
        effect: The design effect.
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
