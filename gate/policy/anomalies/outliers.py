"""Outliers: single values of an observed metric that lie far from the others of their kind.

A value's distance is that from the median of its kind, by the median of such distances (MAD). Where values differ by
hour or weekday of their report as no chance explains (Mood's median test), and each kind has enough of them, that is
their kind; else all are one. Where no value is below zero and they lie more evenly by their logarithms, distances are
ratios; zeros, which are no multiple of anything, are then left aside. Where half of the values or more are the same,
there is no distance to measure by, and the metric is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gate.policy.anomalies.statistics import NORMAL_MAD, median_test, modified_z, required_z

SEASONS: Final = ("weekday and hour", "hour", "weekday")
"""What kinds there are, from the finest."""

SEASONAL: Final = 0.001
"""Kinds are told apart where chance would tell them so with at most this probability."""

FARTHEST: Final = 10
"""How many of the farthest values are named."""

GREATEST: Final = 1.7976931348623157e308
"""How far a value lies at most: two numbers can differ by more than a number can tell."""


@dataclass(frozen=True, slots=True)
class Far:
    """One value that lies far out.

    Attributes:
        position: The chain position of its decision.
        value: The value.
        usual: The median of its kind.
        z: How far out it lies, in robust standard deviations.
    """

    position: int
    value: float
    usual: float
    z: float


@dataclass(frozen=True, slots=True)
class Outliers:
    """The values of a metric that lie far out.

    Attributes:
        metric: Its name.
        values: How many there are in all.
        median: The lower median of all.
        mad: The median distance from the median of the kind; by logarithms where `ratios`.
        ratios: Whether distances are ratios.
        season: By what kinds are told apart; None where all are one.
        required: How far out a value has to lie to stand out among so many.
        count: How many do.
        first: When the first of them was reported; UTC timestamp.
        last: When the last was.
        farthest: The farthest of them.
    """

    metric: str
    values: int
    median: float
    mad: float
    ratios: bool
    season: str | None
    required: float
    count: int
    first: str
    last: str
    farthest: Sequence[Far]

    @property
    def strength(self) -> float:
        """How many times as far out the farthest lies as it has to."""
        return self.farthest[0].z / self.required


def together(parts: Sequence[Outliers]) -> Outliers:
    """The outliers of a metric that had several levels, each measured by its own. What is usual, the last level says.

    Args:
        parts: Those of each level, in the order of time.
    """
    farthest = sorted((far for part in parts for far in part.farthest), key=lambda far: (-far.z, far.position))
    return replace(
        parts[-1],
        count=sum(part.count for part in parts),
        first=min(part.first for part in parts),
        last=max(part.last for part in parts),
        farthest=farthest[:FARTHEST] if len(parts) > 1 else parts[0].farthest,
    )


def by_ratio(least: float, deciles: Sequence[float]) -> bool:
    """Whether a metric is measured by ratios.

    Args:
        least: The least value.
        deciles: The first decile, the median and the last decile of those above zero.
    """
    low, middle, high = deciles
    # Values that are next to each other can have one logarithm.
    if least < 0 or math.log(low) == math.log(high):
        return False
    return abs(_skew(math.log(low), math.log(middle), math.log(high))) < abs(_skew(low, middle, high))


def _skew(low: float, middle: float, high: float) -> float:
    """Kelly's: how much farther one decile lies from the median than the other."""
    return (high - middle - (middle - low)) / (high - low)


def season_of(cells: Mapping[tuple[int, int], tuple[int, int]], min_sample: int) -> str | None:
    """By what values are told apart, the finest that they carry; None where it is nothing.

    Args:
        cells: By weekday (1 is Monday) and hour, how many values there are, and how many of them lie above the median.
        min_sample: How many values each kind needs.
    """
    for season in SEASONS:
        kinds: dict[tuple[int, ...], tuple[int, int]] = {}
        for cell, (size, above) in cells.items():
            kind = kind_of(season, *cell)
            sizes = kinds.get(kind, (0, 0))
            kinds[kind] = (sizes[0] + size, sizes[1] + above)
        counted = [kinds[kind] for kind in sorted(kinds)]
        if len(counted) > 1 and min(size for size, _ in counted) >= min_sample:
            p_value = median_test([above for _, above in counted], [size for size, _ in counted])
            if p_value <= SEASONAL:
                return season
    return None


def kind_of(season: str | None, weekday: int, hour: int) -> tuple[int, ...]:
    """Which kind a value is of, by weekday and hour of its report."""
    return {"weekday and hour": (weekday, hour), "hour": (hour,), "weekday": (weekday,)}.get(season or "", ())


def distance_of(value: float, usual: float, *, ratios: bool) -> float:
    """How far a value lies from what is usual; the logarithm of how many times as great or small, where `ratios`."""
    if ratios:
        return math.log(min(GREATEST, max(value / usual, usual / value)))
    return min(GREATEST, abs(value - usual))


def distance_at(z: float, mad: float, *, ratios: bool) -> float:
    """How far a value lies at so many robust standard deviations; how many times as great or small, where `ratios`."""
    distance = z * mad / NORMAL_MAD
    if not ratios:
        return distance
    return math.exp(distance) if distance < math.log(GREATEST) else math.inf


def far(position: int, value: float, usual: float, *, mad: float, ratios: bool) -> Far:
    """A value that lies far out, with how far."""
    z = modified_z(distance_of(value, usual, ratios=ratios), mad)
    return Far(position, value, usual, min(GREATEST, z))


def required(values: int) -> float:
    """How far out a value has to lie among so many."""
    return required_z(values)
