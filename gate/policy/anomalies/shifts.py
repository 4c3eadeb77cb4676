"""Shifts: the rate of a verdict, reason, or outcome in some weeks differs from that of the eight weeks before them.

Windows of 1, 2, 4, and 8 weeks that end with any week are compared with the eight weeks before, by Fisher's exact test.
To catch gradual changes, windows of 8 weeks are also compared with the eight weeks that begin 26 weeks earlier.

Decisions that arrive in one minute need not be independent, so a design effect divides each count before the
test. All tests of a report together keep a false discovery rate of 5 percent under any dependence, because windows
overlap and rates of one whole move together. That is enough to list a shift, but not to raise an alarm: if much has
changed, some other findings may be chance. A shift is certain if its own p-value excludes chance among all tests.

Outcomes have half of that chance to themselves, because they are few among many verdicts and reasons, and they are what
a policy is for. Outcomes since a version took over are tested for each version, not for every week, and share that
half.

The most certain and likeliest window of each rate is taken first. Windows that overlap it, or are compared with weeks
of it, are its echo. So a lasting shift is reported once, and the return after a short shift is not reported as a new
one. A gradual change is listed if no such shift explains half of it; smaller shifts are then its parts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
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
from gate.policy.anomalies.weekly.costs import Block, Lasting, blocks, lasts_to
from gate.policy.anomalies.weekly.groups import Groups, are_few, design_effect, singly
from gate.policy.anomalies.weekly.windows import ALARM_CHANCE, FALSE_DISCOVERIES, Windows, windows, without_echoes

ROLLOUT_CHANCE: Final = 0.01
"""The same among the tests of outcomes since a version took over. These tests are few, and follow a deliberate change.
"""

OUTCOMES_PART: Final = 0.5
"""The share of the chance of a false alarm that the tests of outcomes have. Verdicts and reasons share the rest."""

LEAST_EFFECT: Final = 0.1
"""The smallest change in Cohen's h that is tested: half of a small effect."""

# Nothing so near is a discovery at that rate, whatever the sample: it is not tested exactly, but counts as a test.
_NEAR: Final = 2.0
_DIGITS: Final = 6


class Rate:
    """The decisions of each week that have a value, and all decisions.

    Attributes:
        of: The kind of value: verdict, reason, or outcome.
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
        """Takes the counts by week for each horizon, and the groups in which decisions arrived.

        A horizon is the greatest age of an outcome in days; verdicts and reasons have one. Without groups, each
        decision arrived alone.
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
        """Some weeks and their share as a side of a comparison, given the rate under no change."""
        if self._groups is None:
            return Side(share, share.whole, 1.0)
        sums = self._groups[horizon].sums(first, last)
        return Side(share, sums.groups, design_effect(sums, rate), are_few(sums))


class Side(NamedTuple):
    """The window of a shift, or the weeks it is compared with.

    Attributes:
        share: The share.
        groups: The number of groups in which its decisions arrived.
        design_effect: The number of decisions that carry as much information as one that arrived alone.
        few: Whether there are too few groups to judge.
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
    """A rate in a window that differs from before.

    Attributes:
        of: verdict, reason, or outcome.
        value: The value.
        windows: The weeks.
        then: The weeks before.
        now: The window.
        p_value: Fisher's p-value.
        required_p: The p-value below which the shift is certain.
        lasting: The weeks that it lasts; unknown for findings that are dropped.
    """

    of: str
    value: str
    windows: Windows
    then: Side
    now: Side
    p_value: float
    required_p: float
    lasting: Lasting | None = None

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
        """The kind and the value of the rate."""
        return self.of, self.value

    @property
    def is_certain(self) -> bool:
        """Whether it is certain by itself, whatever else was found."""
        return self.p_value <= self.required_p

    @property
    def distance(self) -> float:
        """The distance of the rates, in standard errors."""
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
    """The weeks in which a version took over: the first week in which it made at least half of the decisions, unless
    that is the first week of all.

    Args:
        decisions: The decisions of each week.
        versions: The decisions of each version.
    """
    first = {
        next((week for week, of in enumerate(counts) if of and 2 * of >= decisions[week]), 0) for counts in versions
    }
    return first - {0}


def find_shifts(
    rates: Sequence[Rate], weeks: int, horizons: Sequence[int], min_sample: int, rollouts: Container[int] = ()
) -> list[Shift]:
    """The shifts of rates. The windows of one rate do not overlap.

    Args:
        rates: The rates, over the same weeks.
        weeks: The number of weeks.
        horizons: For each week, the horizon of the outcomes that a window ending with it compares; -1 if they
            are too recent.
        min_sample: The least information of a window, and of the time before it, in single cases.
        rollouts: The weeks in which a version took over.
    """
    found: list[tuple[Rate, Windows, Side, Side]] = []
    tests = outcomes = since_rollouts = 0
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
            outcomes += rate.of == "outcome"
            since_rollouts += rate.of == "outcome" and of.first in rollouts
            if standard_distance(within, before) < _NEAR or abs(cohens_h(within.rate, before.rate)) < LEAST_EFFECT:
                continue
            sides = _sides(rate, of, before, within, horizon)
            if _is_enough(sides, min_sample):
                found.append((rate, of, *sides))
    of_outcomes = required_p(outcomes, ALARM_CHANCE * OUTCOMES_PART)
    of_verdicts = required_p(tests - outcomes, ALARM_CHANCE * (1 - OUTCOMES_PART))
    of_rollouts = required_p(since_rollouts, ROLLOUT_CHANCE)
    shifts, rate_of = [], {(rate.of, rate.value): rate for rate in rates}
    for rate, of, then, now in found:
        required = of_verdicts if rate.of != "outcome" else of_rollouts if of.first in rollouts else of_outcomes
        shifts.append(Shift(rate.of, rate.value, of, then, now, fisher_exact(now.singly, then.singly), required))
    greatest = discoveries([shift.p_value for shift in shifts], FALSE_DISCOVERIES, of=tests)
    kept = without_echoes([shift for shift in shifts if shift.p_value <= greatest], _certain_first)
    return [replace(shift, lasting=_lasting(shift, rate_of[shift.what], weeks, horizons)) for shift in kept]


def _lasting(shift: Shift, rate: Rate, weeks: int, horizons: Sequence[int]) -> Lasting:
    """To where a shift lasts, each week after its window compared at its own age."""
    of, ages = shift.windows, horizons if rate.of == "outcome" else [0] * weeks

    def beyond(first: int, last: int, horizon: int, *, half: bool) -> Fraction:
        """The number of decisions of some weeks beyond the expected ones that have the value, or beyond the middle
        between before and the window.
        """
        now, then, window = (
            rate.share(*ends, horizon) for ends in ((first, last), (of.reference, of.before), (of.first, of.last))
        )
        if not (then.whole and window.whole):
            return Fraction(0)
        usual, other = Fraction(then.part, then.whole), Fraction(window.part, window.whole)
        return now.part - ((usual + other) / 2 if half else usual) * now.whole

    def excess(week: int) -> Fraction:
        sign = 1 if shift.rose else -1
        return sign * beyond(week, week, ages[week], half=True) if ages[week] >= 0 else Fraction(0)

    until = lasts_to(of.last, weeks, excess)
    more: Iterable[Block] = blocks(of, until, ages)
    return Lasting(until, round(abs(sum((beyond(*block, half=False) for block in more), Fraction(0)))))


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


def _certain_first(shift: Shift) -> tuple[bool, float, float, float, tuple[int, int], str, str]:
    # If many decisions changed, several windows share the least reported p-value.
    distance, effect = (-round(abs(of), _DIGITS) for of in (shift.distance, shift.effect))
    return not shift.is_certain, shift.p_value, distance, effect, shift.windows.order, shift.of, shift.value
