"""The values of a metric in bins: their location and spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Final, NamedTuple

from gate.policy.anomalies.outliers import GREATEST
from gate.policy.anomalies.weekly.groups import BinGroups, Groups, design_effects
from gate.policy.anomalies.weekly.ranks import NOTHING, Compared, compare
from gate.policy.anomalies.weekly.windows import Windows

WIDER: Final = 1.5
"""The factor by which the middle half of the values must widen, or narrow, for the spread to be tested."""

_RANKS: Final = 1000


@dataclass(frozen=True, slots=True)
class Level:
    """The values of a metric by week and bin.

    Attributes:
        metric: Its name.
        values: Of each bin the lower median of its values, from the least.
        ratios: Whether distances between values are ratios.
        aged: By horizon, of each week of decisions the number of values in each bin whose outcomes came so early.
        groups: The groups in which values of every age came; a value's number is its rank.
        together: The same groups, by bin.
        versions: Of each version the values of every age, by week and bin.
        greatest: Of each bin the greatest of its values.
    """

    metric: str
    values: Sequence[float]
    ratios: bool
    aged: Mapping[int, Sequence[Sequence[int]]]
    groups: Groups
    together: BinGroups
    versions: Mapping[str, Sequence[Sequence[int]]]
    greatest: Sequence[float] = ()


class Middle(NamedTuple):
    """Where the values of a side lie.

    Attributes:
        values: How many there are.
        low: Their lower quartile.
        median: Their lower median.
        high: Their upper quartile.
        mean: Their mean, where it is asked for.
        above: How many lie above the median of those before.
        below: How many lie below it.
    """

    values: int
    low: float
    median: float
    high: float
    mean: float | None = None
    above: int = 0
    below: int = 0


def spread(level: Level, of: Windows, before: Sequence[int], within: Sequence[int]) -> tuple[Compared, list[float]]:
    """Compares the distances of values from the median of their side, and from that of both sides. The smaller result
    counts.

    The first alone would treat another median among few different values as another spread, and the second alone would
    treat another location as one.

    Args:
        level: The metric.
        of: The window.
        before: The values of the weeks before, by bin.
        within: The values of the window.

    Returns:
        The comparison, and the design effects of the distances before and within.
    """
    both = middle(level.values, [a + b for a, b in zip(before, within, strict=True)]).median
    own = [middle(level.values, counts).median for counts in (before, within)]
    found = [_apart(level, of, before, within, medians) for medians in (own, [both, both])]
    (first, _), (second, _) = found
    if first.delta * second.delta <= 0:
        return NOTHING, [1.0, 1.0]
    return min(found, key=lambda test: abs(test[0].z))


def _apart(
    level: Level, of: Windows, before: Sequence[int], within: Sequence[int], medians: Sequence[float]
) -> tuple[Compared, list[float]]:
    """Compares how far the values of both sides lie from a median each."""
    away = [[_distance(value, median, ratios=level.ratios) for value in level.values] for median in medians]
    counted: dict[float, list[int]] = {}
    for side, (distances, counts) in enumerate(zip(away, (before, within), strict=True)):
        for distance, count in zip(distances, counts, strict=True):
            counted.setdefault(distance, [0, 0])[side] += count
    ordered = sorted(counted)
    then, now = ([counted[distance][side] for distance in ordered] for side in range(2))
    ranks = dict(zip(ordered, ranked([a + b for a, b in zip(then, now, strict=True)]), strict=True))
    weeks = ((of.reference, of.before), (of.first, of.last))
    sums = [
        level.together.sums(*ends, [ranks[distance] for distance in distances])
        for ends, distances in zip(weeks, away, strict=True)
    ]
    effects = design_effects(sums)
    return compare(now, then, effects[1], effects[0]), effects


def ranked(counts: Sequence[int]) -> list[int]:
    """The mean rank of the values of each bin, in thousandths. So every sum of squares fits into 64 bits."""
    whole, below, ranks = sum(counts), 0, []
    for count in counts:
        ranks.append((2 * below + count) * _RANKS // (2 * whole))
        below += count
    return ranks


def middle(values: Sequence[float], counts: Sequence[int]) -> Middle:
    """The approximate location of a histogram's values.

    Args:
        values: For each bin, its representative value, from the smallest.
        counts: The number of values in each bin.
    """
    whole = sum(counts)
    wanted = [(whole - 1) * quarter // 4 for quarter in (1, 2, 3)]
    found, below, at = [], 0, 0
    for place in wanted:
        while below + counts[at] <= place:
            below += counts[at]
            at += 1
        found.append(values[at])
    low, median, high = found
    return Middle(whole, low, median, high)


def is_wider(level: Level, before: Middle, within: Middle) -> bool:
    """Whether the middle half of the values is much wider, or narrower, than it was."""
    then, now = (width(of, ratios=level.ratios) for of in (before, within))
    return max(then, now) > 0 and max(then, now) >= WIDER * min(then, now)


def width(of: Middle, *, ratios: bool) -> float:
    """How wide the middle half of values is: the difference of the quartiles, or the logarithm of their ratio."""
    distance = min(GREATEST, _distance(of.high, of.low, ratios=ratios))
    return log(max(1.0, distance)) if ratios else distance


def _distance(value: float, median: float, *, ratios: bool) -> float:
    """How far apart two values are, in order; of ratios how many times as great one is, which is the same order."""
    if not ratios:
        return abs(value - median)
    # Zeros are no multiple of anything.
    return max(value / median, median / value) if value > 0 and median > 0 else inf
