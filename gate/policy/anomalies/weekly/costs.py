"""Finds the last week of a shift, and the change of a metric until then.

A window ends where a test shows a shift best. The shift may continue, as long as weeks lie nearer to the window than to
the weeks before, and it costs until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Final, NamedTuple

from gate.policy.anomalies.weekly.windows import Windows

ENDED: Final = 8
"""The number of consecutive weeks without a contribution that end a shift."""

_NOTHING: Final = Fraction(0)


class Lasting(NamedTuple):
    """The duration of a shift.

    Attributes:
        until: Its last week.
        cases: The number of cases that went differently than before.
    """

    until: int
    cases: int


class Block(NamedTuple):
    """Weeks of a shift, both ends within, with the horizon at which they are compared."""

    first: int
    last: int
    horizon: int


def lasts_to(last: int, weeks: int, excess: Callable[[int], Fraction]) -> int:
    """The last week of a shift: the week up to which its weeks together lie farthest beyond the middle between before
    and the window.

    Args:
        last: The last week of its window.
        weeks: The number of weeks.
        excess: The distance of a week beyond that middle, times its cases; negative if it lies before it.
    """
    until, total, most = last, _NOTHING, _NOTHING
    for week in range(last + 1, weeks):
        if week - until > ENDED:
            break
        total += excess(week)
        if total > most:
            until, most = week, total
    return until


def blocks(windows: Windows, until: int, horizons: Sequence[int]) -> Iterator[Block]:
    """The window of a shift, and each later week that it lasts. Weeks with outcomes still to come are left out."""
    parts = [(windows.first, windows.last), *((week, week) for week in range(windows.last + 1, until + 1))]
    yield from (Block(*part, horizons[part[1]]) for part in parts if horizons[part[1]] >= 0)


class Measured:
    """The values of a metric by the week of their decision, and by how many days after it their outcomes came.

    Attributes:
        metric: The metric.
    """

    def __init__(self, metric: str, weeks: Sequence[Mapping[int, tuple[int, Fraction]]]) -> None:
        """Takes of each week, by age, how many values there are, and their sum."""
        self.metric: Final = metric
        self._weeks = weeks
        self._known: dict[int, tuple[list[int], list[Fraction]]] = {}

    def sums(self, first: int, last: int, horizon: int) -> tuple[int, Fraction]:
        """How many values some weeks have, both ends within, whose outcomes came so early; and their sum."""
        if horizon not in self._known:
            told = [[of for age, of in week.items() if age <= horizon] for week in self._weeks]
            numbers = accumulate((sum(number for number, _ in week) for week in told), initial=0)
            totals = accumulate((sum((total for _, total in week), _NOTHING) for week in told), initial=_NOTHING)
            self._known[horizon] = (list(numbers), list(totals))
        values, sums = self._known[horizon]
        return values[last + 1] - values[first], sums[last + 1] - sums[first]

    def cost(
        self, windows: Windows, until: int, horizons: Sequence[int], decisions: Sequence[int] | None
    ) -> Fraction | None:
        """The sum of the metric in the weeks of a shift, less the sum that its earlier mean predicts.

        Args:
            windows: The weeks of the shift.
            until: The last week that it lasts.
            horizons: For each week, the horizon at which it is compared; -1 if outcomes are too recent.
            decisions: The decisions of each week, if the mean is per decision; None if it is per value.

        Returns:
            None if the window or the weeks before have no known value.
        """
        found = []
        for first, last, horizon in blocks(windows, until, horizons):
            (m, then), (n, now) = (
                self.sums(*weeks, horizon) for weeks in ((windows.reference, windows.before), (first, last))
            )
            if m and n:
                if decisions is not None:
                    m, n = (sum(decisions[a : b + 1]) for a, b in ((windows.reference, windows.before), (first, last)))
                found.append(now - then / m * n)
        return sum(found, _NOTHING) if found else None
