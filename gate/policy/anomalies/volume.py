"""Volume: an hour, day, or week with far more or fewer decisions than usual.

The grain is the finest whose median cell has five decisions. A cell is compared with the median of the eight earlier
cells of its kind: the same hour of the same weekday, the same weekday, or the weeks before. So neither the rhythm of a
week nor a season stands out. The distance is the difference between twice the square roots of both (Anscombe 1948). For
counts by chance, it is a normal variable. It is divided by the usual size of such distances here, if that is larger.

Arrivals are compared, not decisions. Of the decisions of one minute, only as many count as chance puts there, judged by
the rest of the hour. So a burst in a quiet hour is one arrival, single decisions around it count in full, and so do the
decisions of each minute of a busy hour.

The probability of a surge by chance follows from the arrivals of earlier cells of its kind. Each cell expects an equal
part of all arrivals (the conditional test of two Poisson counts, Przyborowski and Wilenski 1940). So a usual value from
few cells is not treated as certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from gate.policy.anomalies.statistics import NORMAL_MAD, binomial_test, modified_z, required_p, required_z
from gate.policy.anomalies.weekly.windows import ALARM_CHANCE

LIKE: Final = 8
"""The number of earlier cells of the same kind that a cell is compared with."""

_Number = TypeVar("_Number", int, float)

_OTHERS: Final = 59
_DEVIATIONS: Final = 3
_LEAST_LIKE: Final = 4
_CARRIED: Final = 5


class Grain(NamedTuple):
    """The length of a cell, and the number of cells to the next one of its kind."""

    name: str
    length: timedelta
    period: int


GRAINS: Final = (
    Grain("hour", timedelta(hours=1), 7 * 24),
    Grain("day", timedelta(days=1), 7),
    Grain("week", timedelta(weeks=1), 1),
)
"""The grains, from the finest."""


@dataclass(frozen=True, slots=True)
class Surge:
    """Consecutive cells with far more, or far fewer, decisions than usual.

    Attributes:
        grain: The kind of cells.
        first: The start of the first cell, UTC.
        last: The end of the last cell.
        decisions: The number of decisions in them.
        usual: The usual number of decisions in such cells, by the medians.
        arrivals: The number of arrivals in them.
        usual_arrivals: The usual number of arrivals.
        z: The distance of the farthest cell, in scaled median absolute deviations.
        required: The distance from which a cell stands out among so many.
        cells: The number of cells.
        like_cells: The number of earlier cells of the same kind.
        like_arrivals: Their arrivals.
        p_value: The probability that chance alone divides these arrivals as unevenly between the cells.
        required_p: The p-value below which the surge is certain.
    """

    grain: Grain
    first: datetime
    last: datetime
    decisions: int
    usual: int
    arrivals: int
    usual_arrivals: int
    z: float
    required: float
    cells: int
    like_cells: int
    like_arrivals: int
    p_value: float
    required_p: float

    @property
    def is_certain(self) -> bool:
        """Whether it is certain by itself, whatever the other cells have."""
        return self.p_value <= self.required_p

    @property
    def rose(self) -> bool:
        """Whether there were more than usual."""
        return self.arrivals > self.usual_arrivals

    @property
    def surplus(self) -> int:
        """The number of decisions above or below usual. Decisions that arrived together count once."""
        return abs(self.arrivals - self.usual_arrivals)

    @property
    def times(self) -> float:
        """The count as a multiple or fraction of the usual one. An empty cell counts as one half."""
        ends = (self.arrivals, self.usual_arrivals)
        great, small = max(ends), min(ends)
        return great / max(small, 0.5)


def most_arrivals(others: int) -> int:
    """The most arrivals that the decisions of one minute count as: the average of the other minutes of its hour, plus
    one, plus three Poisson standard deviations.

    Args:
        others: The number of decisions in these 59 minutes together.
    """
    # In whole numbers, so that no last digit of a float decides.
    return 1 + (others + math.isqrt(_DEVIATIONS**2 * _OTHERS * others)) // _OTHERS


def grain_of(counts: Sequence[Sequence[int]]) -> int | None:
    """The finest grain whose median cell has enough decisions, as an index into `GRAINS`; None if not even weeks have.

    Args:
        counts: For each grain, the decisions in each cell, from the first to the last that has any.
    """
    for number, cells in enumerate(counts):
        if cells and _median(cells) >= _CARRIED:
            return number
    return None


def find_surges(
    grain: Grain, start: datetime, counts: Sequence[int], arrivals: Sequence[int] | None = None
) -> list[Surge]:
    """The cells with far more or fewer decisions than usual.

    Args:
        grain: The kind of cells.
        start: The start of the first cell.
        counts: The decisions in each complete cell.
        arrivals: The arrivals in each cell; None if each decision arrived alone.
    """
    arrivals = counts if arrivals is None else arrivals
    usual = _usual(grain, counts)
    usual_arrivals = usual if arrivals == counts else _usual(grain, arrivals)
    distances = {
        at: _stable(arrivals[at]) - _stable(expected)
        for at, expected in enumerate(usual_arrivals)
        if expected is not None
    }
    if not distances:
        return []
    mad = max(_median([abs(distance) for distance in distances.values()]), NORMAL_MAD)
    required = required_z(len(distances))
    out = [at for at, distance in distances.items() if modified_z(abs(distance), mad) > required]
    surges = []
    for run in _runs(out, distances):
        decisions, expected, came, come = (
            sum(of[at] or 0 for at in run) for of in (counts, usual, arrivals, usual_arrivals)
        )
        z = max(modified_z(abs(distances[at]), mad) for at in run)
        first, last = start + run[0] * grain.length, start + (run[-1] + 1) * grain.length
        like, held = _before(grain, run, arrivals, came, come)
        p_value = binomial_test(came, held, len(run) / (len(run) + like))
        certain = required_p(len(distances), ALARM_CHANCE)
        surges.append(
            Surge(
                grain, first, last, decisions, expected, came, come, z, required, len(run), like, held, p_value, certain
            )
        )
    return surges


def _likes(grain: Grain, at: int) -> range:
    """The cells of the kind of one before it with which it is compared."""
    return range(at % grain.period, at, grain.period)[-LIKE:]


def _usual(grain: Grain, counts: Sequence[int]) -> list[int | None]:
    """What cells of the kind of each held before; None where there are too few of them."""
    usual: list[int | None] = [None] * len(counts)
    for kind in range(min(grain.period, len(counts))):
        like = counts[kind :: grain.period]
        for number in range(_LEAST_LIKE, len(like)):
            usual[kind + number * grain.period] = _median(like[max(0, number - LIKE) : number])
    return usual


def _before(grain: Grain, run: Sequence[int], arrivals: Sequence[int], came: int, usual: int) -> tuple[int, int]:
    """How many cells like those of a run are before it, and their arrivals: all of them, or as many as are usual where
    that is nearer to those of the run, for one great cell among few is no measure of what is lacking.
    """
    likes = {before for at in run for before in _likes(grain, at)} - {*run}
    every, by_median = sum(arrivals[at] for at in likes), usual * len(likes) // len(run)
    return len(likes), max(every, by_median) if came > usual else min(every, by_median)


def _stable(count: int) -> float:
    """A count on the scale on which chance moves all counts alike, by a standard deviation of 1."""
    return 2 * math.sqrt(count + 3 / 8)


def _runs(cells: Sequence[int], distances: dict[int, float]) -> list[list[int]]:
    """Cells that follow one another and lie out to the same side."""
    runs: list[list[int]] = []
    for at in cells:
        follows = bool(runs) and runs[-1][-1] == at - 1
        if follows and (distances[at] > 0) == (distances[at - 1] > 0):
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


def _median(values: Sequence[_Number]) -> _Number:
    """The lower median, which is one of the values."""
    return sorted(values)[(len(values) - 1) // 2]
