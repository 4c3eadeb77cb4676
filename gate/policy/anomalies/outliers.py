"""Outliers: single values of a metric that lie far from the others of their kind.

A value's distance is the distance from the median of its kind, divided by the median of such distances (MAD). Kinds are
hours or weekdays of the report, if values differ by them more than chance explains (Mood's median test) and each kind
has enough values. Otherwise, all values are one kind.

If no value is below zero and their logarithms are distributed more evenly, distances are ratios, and zeros are left
out. If at least half of the values are equal, there is no distance to measure by, and the metric is skipped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gate.policy.anomalies.statistics import NORMAL_MAD, median_test, modified_z, required_z

SEASONS: Final = ("weekday and hour", "hour", "weekday")
"""The kinds of values, from the finest."""

SEASONAL: Final = 0.001
"""Kinds are separated if chance would separate them with at most this probability."""

FARTHEST: Final = 10
"""The number of farthest values that are listed."""

GREATEST: Final = 1.7976931348623157e308
"""The greatest distance that is reported, because two numbers can differ by more than a number can hold."""


@dataclass(frozen=True, slots=True)
class Far:
    """A value that lies far out.

    Attributes:
        position: The chain position of its decision.
        value: The value.
        usual: The median of its kind.
        z: Its distance, in scaled median absolute deviations.
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
        values: The number of all values.
        median: The lower median of all values.
        mad: The median distance from the median of the kind; of logarithms if `ratios` is true.
        ratios: Whether distances are ratios.
        season: What separates the kinds; None if all values are one kind.
        required: The distance from which a value stands out among so many.
        count: The number of values that stand out.
        first: When the first of them was reported, a UTC timestamp.
        last: When the last of them was reported.
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
        """The distance of the farthest value, as a multiple of the required distance."""
        return self.farthest[0].z / self.required


def together(parts: Sequence[Outliers]) -> Outliers:
    """The outliers of a metric that had several levels, each measured separately. The last level defines what is usual.

    Args:
        parts: The outliers of each level, in the order of time.
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
    """The finest kind by which values differ; None if they do not.

    Args:
        cells: By weekday (1 is Monday) and hour, the number of values, and the number above the median.
        min_sample: The number of values that each kind needs.
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
    """The kind of a value, by weekday and hour of its report."""
    return {"weekday and hour": (weekday, hour), "hour": (hour,), "weekday": (weekday,)}.get(season or "", ())


def distance_of(value: float, usual: float, *, ratios: bool) -> float:
    """The distance of a value from the usual one; the logarithm of their ratio if `ratios` is true."""
    if ratios:
        return math.log(min(GREATEST, max(value / usual, usual / value)))
    return min(GREATEST, abs(value - usual))


def distance_at(z: float, mad: float, *, ratios: bool) -> float:
    """The distance in the unit of the metric at so many scaled median deviations; a ratio if `ratios` is true."""
    distance = z * mad / NORMAL_MAD
    if not ratios:
        return distance
    return math.exp(distance) if distance < math.log(GREATEST) else math.inf


def far(position: int, value: float, usual: float, *, mad: float, ratios: bool) -> Far:
    """A value that lies far out, with how far."""
    z = modified_z(distance_of(value, usual, ratios=ratios), mad)
    return Far(position, value, usual, min(GREATEST, z))


def required(values: int) -> float:
    """The distance from which a value stands out among so many."""
    return required_z(values)
