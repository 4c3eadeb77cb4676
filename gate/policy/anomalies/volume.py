"""Volume: an hour, day or week with far more or fewer decisions than such ones have.

The grain is the finest whose median cell holds five decisions. A cell is compared with the median of the eight before
it of the same kind (the same hour of the same weekday, the same weekday, the weeks before), so that neither a week's
rhythm nor a season stands out. Its distance is that between twice the square roots of both (Anscombe 1948), which for
counts by chance is a normal variable's, and is divided by what such distances usually are here where that is more.

What is compared are arrivals: of the decisions of one minute no more count than chance puts there, going by the rest
of its hour. So a burst of a quiet hour is one arrival, those that came singly beside it count in full, and so do the
several of each minute of a busy hour.

How likely chance is to make what stands out, the arrivals of the like cells before it say: of all arrivals together
each cell is due as many (the conditional test of two Poisson counts, Przyborowski and Wilenski 1940). So what is usual
is not taken for known where few cells say it.
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
"""With how many cells of the same kind before it a cell is compared."""

_Number = TypeVar("_Number", int, float)

_OTHERS: Final = 59
_DEVIATIONS: Final = 3
_LEAST_LIKE: Final = 4
_CARRIED: Final = 5


class Grain(NamedTuple):
    """How long a cell is, and how many cells later the next of its kind comes."""

    name: str
    length: timedelta
    period: int


GRAINS: Final = (
    Grain("hour", timedelta(hours=1), 7 * 24),
    Grain("day", timedelta(days=1), 7),
    Grain("week", timedelta(weeks=1), 1),
)
"""From the finest."""


@dataclass(frozen=True, slots=True)
class Surge:
    """Cells in a row with far more, or far fewer, decisions than usual.

    Attributes:
        grain: The cells.
        first: Where the first of them begins, UTC.
        last: Where the last of them ends.
        decisions: How many decisions they hold.
        usual: How many such cells hold, by the medians.
        arrivals: As how many that came singly they say as much.
        usual_arrivals: As how many those of such cells do.
        z: How far out the farthest of them is, in robust standard deviations.
        required: How far one has to be to stand out among so many.
        cells: How many there are.
        like_cells: How many like cells before it there are.
        like_arrivals: Their arrivals.
        p_value: How likely chance alone divides all these arrivals as unevenly between the cells.
        required_p: How small it has to be for the surge to be certain.
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
        """Whether it stands alone, whatever the other cells have."""
        return self.p_value <= self.required_p

    @property
    def rose(self) -> bool:
        """Whether there were more than usual."""
        return self.arrivals > self.usual_arrivals

    @property
    def surplus(self) -> int:
        """How many more or fewer came than usual, those that came together counted once."""
        return abs(self.arrivals - self.usual_arrivals)

    @property
    def times(self) -> float:
        """How many times as many, or as few, as usual; a cell of nothing counts as one of a half."""
        ends = (self.arrivals, self.usual_arrivals)
        great, small = max(ends), min(ends)
        return great / max(small, 0.5)


def most_arrivals(others: int) -> int:
    """As how many arrivals the decisions of one minute count at most: one more than its hour's other minutes have on
    average, and three standard deviations of chance (Poisson's).

    Args:
        others: How many decisions these 59 minutes have together.
    """
    # In whole numbers, so that no last digit of a float decides.
    return 1 + (others + math.isqrt(_DEVIATIONS**2 * _OTHERS * others)) // _OTHERS


def grain_of(counts: Sequence[Sequence[int]]) -> int | None:
    """The finest grain whose median cell holds enough, as an index into `GRAINS`; None where not even weeks do.

    Args:
        counts: Of each grain, the decisions in each cell, from the first to the last that has any.
    """
    for number, cells in enumerate(counts):
        if cells and _median(cells) >= _CARRIED:
            return number
    return None


def find_surges(
    grain: Grain, start: datetime, counts: Sequence[int], arrivals: Sequence[int] | None = None
) -> list[Surge]:
    """Where there were far more or fewer decisions than usual.

    Args:
        grain: How long a cell is.
        start: Where the first cell begins.
        counts: The decisions in each whole cell; what has only begun is not among them.
        arrivals: As how many decisions that came singly those of each cell count; None where they did come singly.
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
