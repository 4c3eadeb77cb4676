"""To which week a shift lasts, and what a metric came to meanwhile that it would not have come to before.

A window ends where a test shows a shift best. What lasts goes on after it, as long as weeks lie nearer to the window
than to what the window is compared with; and it costs as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Final, NamedTuple

from gate.policy.anomalies.weekly.windows import Windows

ENDED: Final = 8
"""After how many weeks in a row that add nothing a shift has ended."""

_NOTHING: Final = Fraction(0)


class Lasting(NamedTuple):
    """To where a shift lasts.

    Attributes:
        until: Its last week.
        cases: How many cases went otherwise than they would have before.
    """

    until: int
    cases: int


class Block(NamedTuple):
    """Weeks of a shift, both ends within, with the horizon at which they are compared."""

    first: int
    last: int
    horizon: int


def lasts_to(last: int, weeks: int, excess: Callable[[int], Fraction]) -> int:
    """The last week of a shift: that up to which its weeks together lie farthest beyond the middle between what was
    before and the window.

    Args:
        last: The last week of its window.
        weeks: How many weeks there are.
        excess: How far a week lies beyond that middle, times its cases; less than nothing where it lies before it.
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
    """The window of a shift, and each week that it lasts after it; those of which no outcome can be known left out."""
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
        """What the metric came to in the weeks of a shift, less what it would have come to by its mean before.

        Args:
            windows: The weeks of the shift.
            until: The last week that it lasts.
            horizons: Of each week the horizon at which it is compared; -1 where outcomes are too young.
            decisions: The decisions of each week, where the mean is that of a decision; None for that of a value.

        Returns:
            None where no value is known of the window, or of the weeks before.
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
