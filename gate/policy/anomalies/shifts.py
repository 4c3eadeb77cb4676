"""Shifts: the rate of a verdict, reason or outcome in some weeks differs from that of the eight weeks before them.

Windows of 1, 2, 4 and 8 weeks that end with any week are compared with the eight weeks before, by Fisher's exact test.
Decisions that arrive in one minute need not be independent: each count is divided by its design effect before it is
tested. All tests of a report together keep a false discovery rate of 5 percent, under any dependence (windows overlap,
and rates of one whole move together). That is enough to be listed, but not for an alarm: where much has truly changed,
some of what is found besides may be chance. A shift is certain where its own p-value is too small for chance among all
tests; or, for outcomes since a version took over, which is asked of each version and not looked for in every week,
among those.

Of the windows of one rate that are left, the certain and likeliest shift is taken first; others that overlap it, or are
compared with weeks of it, are its echo. So a shift that stays is told once, and what comes after a shift that passed is
not taken for one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from gate.policy.anomalies.statistics import (
    Share,
    cohens_h,
    discoveries,
    fisher_exact,
    nearest_h,
    required_p,
    standard_distance,
)

LENGTHS: Final = (1, 2, 4, 8)
"""How many weeks a window has."""

REFERENCE: Final = 8
"""With how many weeks before it a window is compared."""

FALSE_DISCOVERIES: Final = 0.05
"""The rate of false discoveries among all shifts of a report, at most."""

ALARM_CHANCE: Final = 0.001
"""The chance, at most, that among all tests of a report some shift is certain where nothing changed."""

ROLLOUT_CHANCE: Final = 0.01
"""The same among the tests of outcomes since a version took over: these are few and far between, and somebody just
changed something.
"""

LEAST_EFFECT: Final = 0.1
"""A smaller change, in Cohen's h, is not tested: half of what counts as small."""

# Nothing so near is a discovery at that rate, whatever the sample: it is not tested exactly, but counts as a test.
_NEAR: Final = 2.0


# How far decisions are alike has six decimals.
_PARTS: Final = 10**6


class Windows(NamedTuple):
    """A window of weeks and the weeks before it that it is compared with, by their indexes; both ends are within."""

    first: int
    last: int
    reference: int

    @property
    def order(self) -> tuple[int, int]:
        """By which windows that are as likely are taken: the shorter, for weeks without decisions add nothing."""
        return self.last - self.first, self.first

    def overlaps(self, first: int, last: int) -> bool:
        """Whether the window, or what it is compared with, has a week of these."""
        return self.reference <= last and first <= self.last

    def goes_with(self, other: Windows) -> bool:
        """Whether two windows begin with the same week, or have at least a quarter of all their weeks in common."""
        if self.first == other.first:
            return True
        common = min(self.last, other.last) - max(self.first, other.first) + 1
        return 4 * common >= max(self.last, other.last) - min(self.first, other.first) + 1


def windows(weeks: int) -> Iterator[Windows]:
    """Every window of so many weeks in a row, with at least one week before it."""
    for length in LENGTHS:
        for first in range(1, weeks - length + 1):
            yield Windows(first, first + length - 1, max(0, first - REFERENCE))


class Arrivals:
    """In how large groups the decisions of each week arrive, a group being those of one minute."""

    def __init__(self, decisions: Sequence[int], squares: Sequence[int], *, one_of: int = 1) -> None:
        """Takes the decisions of each week, and the sum over its groups of their decisions, squared; and of how many
        decisions one is looked at.
        """
        self._decisions = [0, *accumulate(decisions)]
        self._squares = [0, *accumulate(squares)]
        self._one_of = one_of

    def size(self, first: int, last: int) -> float:
        """The size of the group of an average decision of some weeks, both ends within, itself among them; of the
        others so many as are looked at.
        """
        decisions = self._decisions[last + 1] - self._decisions[first]
        others = self._squares[last + 1] - self._squares[first] - decisions
        return 1 + others / (decisions * self._one_of) if decisions else 1.0

    def design_effect(self, first: int, last: int, alike: float) -> float:
        """How many decisions of some weeks say as much as a single one, where those of one group are so far alike."""
        return 1 + (self.size(first, last) - 1) * alike

    def singly(self, count: int, first: int, last: int, alike: float = 1.0) -> int:
        """As how many decisions that came singly so many of some weeks say as much: their number, by the design effect,
        in whole numbers, so that no last digit of a float decides.
        """
        decisions = self._decisions[last + 1] - self._decisions[first]
        others = self._squares[last + 1] - self._squares[first] - decisions
        whole = decisions * self._one_of * _PARTS
        return count * whole // (whole + others * round(alike * _PARTS)) if decisions else count


class Rate:
    """How many decisions of each week have a value, of how many.

    Attributes:
        of: What has the value: verdict, reason or outcome.
        value: The value.
    """

    def __init__(
        self,
        of: str,
        value: str,
        parts: Sequence[Sequence[int]],
        wholes: Sequence[Sequence[int]],
        arrivals: Arrivals | None = None,
        alike: float = 0.0,
    ) -> None:
        """Takes the counts by week, of each horizon: how old an outcome is at most, in days; others have just one; how
        decisions arrive, and how far those of one group are alike in the value, 0 to 1.
        """
        self.of: Final = of
        self.value: Final = value
        self._parts = [[0, *accumulate(weeks)] for weeks in parts]
        self._wholes = [[0, *accumulate(weeks)] for weeks in wholes]
        self._arrivals = arrivals
        self._alike = alike

    def share(self, first: int, last: int, horizon: int = 0) -> Share:
        """The share in some weeks, both ends within."""
        parts, wholes = self._parts[horizon], self._wholes[horizon]
        return Share(parts[last + 1] - parts[first], wholes[last + 1] - wholes[first])

    def singly(self, share: Share, first: int, last: int) -> Share:
        """The share of as many decisions that came singly as say as much as those of some weeks."""
        if self._arrivals is None or not self._alike:
            return share
        return Share(*(self._arrivals.singly(count, first, last, self._alike) for count in share))


@dataclass(frozen=True, slots=True)
class Shift:
    """A rate in a window that is not what it was before.

    Attributes:
        of: verdict, reason or outcome.
        value: Which.
        windows: The weeks.
        before: The share in the weeks before.
        within: The share in the window.
        before_singly: As many decisions of before that came singly as say as much.
        within_singly: Those of the window.
        p_value: Fisher's, of these.
        required_p: How small it has to be for the shift to be certain.
    """

    of: str
    value: str
    windows: Windows
    before: Share
    within: Share
    before_singly: Share
    within_singly: Share
    p_value: float
    required_p: float

    @property
    def is_certain(self) -> bool:
        """Whether it stands alone, whatever else was found."""
        return self.p_value <= self.required_p

    @property
    def distance(self) -> float:
        """How many standard errors the rates lie apart."""
        return standard_distance(self.within_singly, self.before_singly)

    @property
    def effect(self) -> float:
        """Cohen's h, with its sign."""
        return cohens_h(self.within.rate, self.before.rate)

    @property
    def least_effect(self) -> float:
        """The end of the effect's 95% interval that is nearer to none, without its sign."""
        return nearest_h(self.effect, self.within_singly.whole, self.before_singly.whole)

    @property
    def rose(self) -> bool:
        """Whether the rate is greater than before."""
        return self.within.rate > self.before.rate


def taken_over(decisions: Sequence[int], versions: Iterable[Sequence[int]]) -> set[int]:
    """The weeks with which a version took over: of each version the first in which it made half of the decisions or
    more, unless that is the first of all weeks.

    Args:
        decisions: The decisions of each week.
        versions: Those of each version.
    """
    first = {
        next((week for week, of in enumerate(counts) if of and 2 * of >= decisions[week]), 0) for counts in versions
    }
    return first - {0}


def find_shifts(
    rates: Sequence[Rate], weeks: int, horizons: Sequence[int], min_sample: int, rollouts: Container[int] = ()
) -> list[Shift]:
    """The shifts of rates, those of one rate without a week in common.

    Args:
        rates: The rates, over the same weeks.
        weeks: How many weeks there are.
        horizons: For each week the horizon at which outcomes of a window that ends with it are compared; -1 where they
            are too young.
        min_sample: As how many single cases a window, and what is before it, says as much at least.
        rollouts: The weeks with which a version took over.
    """
    found: list[tuple[Rate, Windows, tuple[Share, Share], tuple[Share, Share]]] = []
    tests = since_rollouts = 0
    every = list(windows(weeks))
    for rate in rates:
        for of in every:
            horizon = horizons[of.last] if rate.of == "outcome" else 0
            if horizon < 0:
                continue
            within = rate.share(of.first, of.last, horizon)
            before = rate.share(of.reference, of.first - 1, horizon)
            singles = (
                rate.singly(before, of.reference, of.first - 1),
                rate.singly(within, of.first, of.last),
            )
            if min(share.whole for share in singles) < min_sample:
                continue
            tests += 1
            since_rollouts += rate.of == "outcome" and of.first in rollouts
            if standard_distance(*singles) < _NEAR or abs(cohens_h(within.rate, before.rate)) < LEAST_EFFECT:
                continue
            found.append((rate, of, (before, within), singles))
    shifts = []
    for rate, of, shares, singles in found:
        since_one = rate.of == "outcome" and of.first in rollouts
        required = required_p(since_rollouts, ROLLOUT_CHANCE) if since_one else required_p(tests, ALARM_CHANCE)
        shifts.append(Shift(rate.of, rate.value, of, *shares, *singles, fisher_exact(*singles), required))
    greatest = discoveries([shift.p_value for shift in shifts], FALSE_DISCOVERIES, of=tests)
    return _without_echoes([shift for shift in shifts if shift.p_value <= greatest])


def _without_echoes(shifts: Sequence[Shift]) -> list[Shift]:
    kept: list[Shift] = []
    # Where many decisions changed, several windows have the least p-value that is told.
    for shift in sorted(
        shifts, key=lambda of: (not of.is_certain, of.p_value, -of.distance, of.windows.order, of.of, of.value)
    ):
        taken = (of.windows for of in kept if (of.of, of.value) == (shift.of, shift.value))
        if not any(shift.windows.overlaps(of.first, of.last) for of in taken):
            kept.append(shift)
    return sorted(kept, key=lambda of: (of.windows, of.of, of.value))
