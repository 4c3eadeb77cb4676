"""Shifts: the rate of a verdict, reason or outcome in some weeks differs from that of the eight weeks before them.

Windows of 1, 2, 4 and 8 weeks that end with any week are compared with the eight weeks before, by Fisher's exact test;
those of 8 weeks also with the eight weeks that begin 26 weeks before them, for what creeps. Decisions that arrive in
one minute need not be independent: each count is divided by its design effect before it is tested. All tests of a
report together keep a false discovery rate of 5 percent, under any dependence (windows overlap, and rates of one whole
move together). That is enough to be listed, but not for an alarm: where much has truly changed, some of what is found
besides may be chance. A shift is certain where its own p-value is too small for chance among all tests; or, for
outcomes since a version took over, which is asked of each version and not looked for in every week, among those.

Of the windows of one rate that are left, the certain and likeliest shift is taken first; others that overlap it, or are
compared with weeks of it, are its echo. So a shift that stays is told once, and what comes after a shift that passed is
not taken for one. What creeps is told where no such shift explains half of it; lesser ones are then its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from gate.policy.anomalies.statistics import (
    Share,
    cohens_h,
    discoveries,
    fisher_exact,
    nearest_h,
    required_p,
    standard_distance,
)
from gate.policy.anomalies.weekly.groups import Groups, are_few, design_effect, singly

LENGTHS: Final = (1, 2, 4, 8)
"""How many weeks a window has."""

REFERENCE: Final = 8
"""With how many weeks before it a window is compared."""

HALF_A_YEAR: Final = 26
"""How many weeks before a window of eight weeks those begin with which it is compared for what creeps."""

EXPLAINED: Final = 0.5
"""A shift from one week to the next explains a slow one where it is at least so much of it."""

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


class Windows(NamedTuple):
    """A window of weeks and the weeks before it that it is compared with, by their indexes; both ends are within.

    Attributes:
        first: Its first week.
        last: Its last.
        reference: The first of the weeks that it is compared with.
        slow: Whether these are the eight weeks that begin half a year before it.
    """

    first: int
    last: int
    reference: int
    slow: bool = False

    @property
    def before(self) -> int:
        """The last of the weeks that it is compared with."""
        return self.reference + REFERENCE - 1 if self.slow else self.first - 1

    @property
    def order(self) -> tuple[int, int]:
        """By which windows that are as likely are taken: the shorter, for weeks without decisions add nothing."""
        return self.last - self.first, self.first

    def overlaps(self, first: int, last: int) -> bool:
        """Whether the window, or what lies between it and the beginning of its reference, has a week of these."""
        return self.reference <= last and first <= self.last

    def is_linked_to(self, other: Windows) -> bool:
        """Whether one of two windows overlaps the other."""
        return self.overlaps(other.first, other.last) or other.overlaps(self.first, self.last)

    def goes_with(self, other: Windows) -> bool:
        """Whether two windows begin with the same week, or have at least a quarter of all their weeks in common."""
        if self.slow != other.slow:
            return False
        if self.first == other.first:
            return True
        common = min(self.last, other.last) - max(self.first, other.first) + 1
        return 4 * common >= max(self.last, other.last) - min(self.first, other.first) + 1


def windows(weeks: int, *, slow: bool = False) -> Iterator[Windows]:
    """Every window of so many weeks in a row, with at least one week before it; those for what creeps, where asked."""
    for length in LENGTHS:
        for first in range(1, weeks - length + 1):
            yield Windows(first, first + length - 1, max(0, first - REFERENCE))
    if slow:
        for first in range(HALF_A_YEAR, weeks - REFERENCE + 1):
            yield Windows(first, first + REFERENCE - 1, first - HALF_A_YEAR, slow=True)


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
        groups: Mapping[int, Groups] | None = None,
    ) -> None:
        """Takes the counts by week, of each horizon: how old an outcome is at most, in days; others have just one. And
        the groups in which they came, by horizon; None where each came alone.
        """
        self.of: Final = of
        self.value: Final = value
        self._parts = [[0, *accumulate(weeks)] for weeks in parts]
        self._wholes = [[0, *accumulate(weeks)] for weeks in wholes]
        self._groups = groups

    def share(self, first: int, last: int, horizon: int = 0) -> Share:
        """The share in some weeks, both ends within."""
        parts, wholes = self._parts[horizon], self._wholes[horizon]
        return Share(parts[last + 1] - parts[first], wholes[last + 1] - wholes[first])

    def side(self, first: int, last: int, share: Share, rate: float, horizon: int = 0) -> Side:
        """Some weeks with their share as a side of a comparison, where the rate is so much if nothing changed."""
        if self._groups is None:
            return Side(share, share.whole, 1.0)
        sums = self._groups[horizon].sums(first, last)
        return Side(share, sums.groups, design_effect(sums, rate), are_few(sums))


class Side(NamedTuple):
    """The window of a shift, or what it is compared with.

    Attributes:
        share: The share.
        groups: In how many groups its decisions came.
        design_effect: How many of them say as much as one that came alone.
        few: Whether the groups are too few to tell.
    """

    share: Share
    groups: int
    design_effect: float
    few: bool = False

    @property
    def singly(self) -> Share:
        """As many decisions that came alone as say as much."""
        return singly(self.share, self.design_effect)


@dataclass(frozen=True, slots=True)
class Shift:
    """A rate in a window that is not what it was before.

    Attributes:
        of: verdict, reason or outcome.
        value: Which.
        windows: The weeks.
        then: The weeks before.
        now: The window.
        p_value: Fisher's, of these.
        required_p: How small it has to be for the shift to be certain.
    """

    of: str
    value: str
    windows: Windows
    then: Side
    now: Side
    p_value: float
    required_p: float

    @property
    def before(self) -> Share:
        """The share in the weeks before."""
        return self.then.share

    @property
    def within(self) -> Share:
        """The share in the window."""
        return self.now.share

    @property
    def what(self) -> tuple[str, str]:
        """Of what it is the rate, and of which value."""
        return self.of, self.value

    @property
    def is_certain(self) -> bool:
        """Whether it stands alone, whatever else was found."""
        return self.p_value <= self.required_p

    @property
    def distance(self) -> float:
        """How many standard errors the rates lie apart."""
        return standard_distance(self.now.singly, self.then.singly)

    @property
    def effect(self) -> float:
        """Cohen's h, with its sign."""
        return cohens_h(self.within.rate, self.before.rate)

    @property
    def least_effect(self) -> float:
        """The end of the effect's 95% interval that is nearer to none, without its sign."""
        return nearest_h(self.effect, self.now.singly.whole, self.then.singly.whole)

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
    found: list[tuple[Rate, Windows, Side, Side]] = []
    tests = since_rollouts = 0
    every = list(windows(weeks, slow=True))
    for rate in rates:
        for of in every:
            horizon = horizons[of.last] if rate.of == "outcome" else 0
            if horizon < 0:
                continue
            within = rate.share(of.first, of.last, horizon)
            before = rate.share(of.reference, of.before, horizon)
            if min(within.whole, before.whole) < min_sample:
                continue
            tests += 1
            since_rollouts += rate.of == "outcome" and of.first in rollouts
            if standard_distance(within, before) < _NEAR or abs(cohens_h(within.rate, before.rate)) < LEAST_EFFECT:
                continue
            sides = _sides(rate, of, before, within, horizon)
            if _is_enough(sides, min_sample):
                found.append((rate, of, *sides))
    shifts = []
    for rate, of, then, now in found:
        since_one = rate.of == "outcome" and of.first in rollouts
        required = required_p(since_rollouts, ROLLOUT_CHANCE) if since_one else required_p(tests, ALARM_CHANCE)
        shifts.append(Shift(rate.of, rate.value, of, then, now, fisher_exact(now.singly, then.singly), required))
    greatest = discoveries([shift.p_value for shift in shifts], FALSE_DISCOVERIES, of=tests)
    return without_echoes([shift for shift in shifts if shift.p_value <= greatest], _certain_first)


def _sides(rate: Rate, of: Windows, before: Share, within: Share, horizon: int) -> tuple[Side, Side]:
    pooled = (before.part + within.part) / (before.whole + within.whole)
    ends = ((before, of.reference, of.before), (within, of.first, of.last))
    then, now = (rate.side(first, last, share, pooled, horizon) for share, first, last in ends)
    return then, now


def _is_enough(sides: tuple[Side, Side], min_sample: int) -> bool:
    if any(side.few or side.singly.whole < min_sample for side in sides):
        return False
    then, now = sides
    return standard_distance(now.singly, then.singly) >= _NEAR


def _certain_first(shift: Shift) -> tuple[bool, float, float, tuple[int, int], str, str]:
    # Where many decisions changed, several windows have the least p-value that is told.
    return not shift.is_certain, shift.p_value, -shift.distance, shift.windows.order, shift.of, shift.value


class Moved(Protocol):
    """What differs in some weeks from what it was, and may be an echo of another."""

    @property
    def windows(self) -> Windows:
        """The weeks."""

    @property
    def effect(self) -> float:
        """How much it differs, with its sign."""

    @property
    def what(self) -> tuple[str, str]:
        """What differs: only of the same one is something an echo."""


_Moved = TypeVar("_Moved", bound=Moved)


def without_echoes(found: Iterable[_Moved], order: Callable[[_Moved], Any]) -> list[_Moved]:
    """Those that are no echo of another: of each thing the first by an order, without a week in common; and what
    creeps, where nothing sudden explains half of it.
    """
    ordered = sorted(found, key=order)
    kept: list[_Moved] = []
    for item in (item for item in ordered if not item.windows.slow):
        if not any(of.what == item.what and item.windows.overlaps(*of.windows[:2]) for of in kept):
            kept.append(item)
    slow: list[_Moved] = []
    for item in (item for item in ordered if item.windows.slow):
        # What creeps for a year is told once.
        if any(of.what == item.what and of.windows.is_linked_to(item.windows) for of in slow):
            continue
        parts = [
            of
            for of in kept
            if of.what == item.what and item.windows.overlaps(*of.windows[:2]) and of.effect * item.effect > 0
        ]
        if all(abs(of.effect) < EXPLAINED * abs(item.effect) for of in parts):
            slow.append(item)
            kept = [of for of in kept if of not in parts]
    return sorted([*kept, *slow], key=lambda of: (of.windows, of.what))
