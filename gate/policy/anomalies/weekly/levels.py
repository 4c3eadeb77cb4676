"""Levels: the location and spread of the values of a metric by week, and where they differ from before.

Values are counted in bins of about equal size. A window is compared with its reference by ranks (Mann and Whitney), so
no single value counts for more than its rank. For the spread, the distances from a median are compared. Versions that
decide in the same weeks are compared week by week (van Elteren). Windows, false discoveries, certainty, and echoes are
those of `shifts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Final

from gate.policy.anomalies.scores import BELOW_HIGH, DELTA, EFFECT, score
from gate.policy.anomalies.statistics import discoveries, fisher_exact, nearest_h, required_p, standard_distance
from gate.policy.anomalies.weekly.costs import lasts_to
from gate.policy.anomalies.weekly.groups import GroupSums, are_few, design_effects, singly
from gate.policy.anomalies.weekly.ranks import Compared, compare, dominance, stratified
from gate.policy.anomalies.weekly.tails import ABOVE, TAILS, Tail, tails
from gate.policy.anomalies.weekly.values import Level, Middle, is_wider, middle, spread
from gate.policy.anomalies.weekly.windows import ALARM_CHANCE, FALSE_DISCOVERIES, Windows, windows, without_echoes

BINS: Final = 64
"""The most bins for the values of a metric."""

COMMON_WEEKS: Final = 4
"""The number of weeks in which two versions must both decide to be compared."""

LOCATION: Final = "location"
SPREAD: Final = "spread"

# Shifts of less than half of a noticeable one are not examined, but they are among the tests made.
_LEAST: Final = DELTA.noticeable / 2
_NEAR: Final = 2.0
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class MetricShift:
    """Values of a metric whose location or spread differs from before.

    Attributes:
        metric: The name of the metric.
        of: location, spread, tail_above, or tail_below.
        windows: The weeks. For a comparison of versions, only weeks in which others decided too.
        horizon: The horizon of its outcomes.
        version: The version that is compared with the others; None for weeks.
        before: The values of the weeks before, or of the other versions.
        within: The values of the window, or of the version.
        groups: The number of groups of the earlier values, and of those within.
        design_effects: The number of values that carry as much information as a single one, on each side.
        effect: Cliff's delta; for a tail, the `h` of Cohen.
        least_effect: The end of its 95% interval that is nearer to zero, without its sign.
        p_value: The p-value of Mann and Whitney, of van Elteren, or, for a tail, of Fisher.
        required_p: The p-value below which the shift is certain.
        decisions: The number of decisions with a value within, of all and not only of a sample.
        ratios: Whether distances between values are ratios.
        distance: The distance of the effect from zero in standard errors. It separates shifts that share the least
            p-value.
        until: The last week that it lasts; None for the end of the window.
        later: The number of decisions with a value in the weeks that it lasts after the window.
        tail: The tail, if it is one, and the number of values in it.
        cut: The greatest value below an upper tail, or in a lower one.
        mixed: For a version, the facts in which its cases differ from those of the others.
        delta: For a tail, Cliff's delta of all values, and the end of its interval that is nearer to zero.
    """

    metric: str
    of: str
    windows: Windows
    horizon: int
    version: str | None
    before: Middle
    within: Middle
    groups: tuple[int, int]
    design_effects: tuple[float, float]
    effect: float
    least_effect: float
    p_value: float
    required_p: float = 0.0
    decisions: int = 0
    ratios: bool = False
    distance: float = 0.0
    until: int | None = None
    later: int = 0
    tail: Tail | None = None
    cut: float = 0.0
    delta: tuple[float, float] = (0.0, 0.0)
    mixed: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """Its score; below high if chance alone could have caused it, or if a version decided different cases."""
        of = score(self.least_effect, DELTA if self.tail is None else EFFECT)
        return of if self.is_certain and not self.mixed else min(of, BELOW_HIGH)

    @property
    def what(self) -> tuple[str, str]:
        """The metric, and what differs about it."""
        return self.metric, self.of

    @property
    def is_certain(self) -> bool:
        """Whether it is certain by itself, whatever else was found."""
        return self.p_value <= self.required_p

    @property
    def rose(self) -> bool:
        """Whether values lie higher, or farther apart, than before."""
        return self.effect > 0


def find_metric_shifts(
    levels: Sequence[Level], weeks: int, horizons: Sequence[int], min_sample: int
) -> list[MetricShift]:
    """The metrics that shifted. The windows of one metric do not overlap.

    Args:
        levels: The metrics, over the same weeks.
        weeks: The number of weeks.
        horizons: For each week, the horizon of the values that a window ending with it compares; -1 if they are
            too recent.
        min_sample: The least information of a window, and of the time before it, in single values.
    """
    found: list[MetricShift] = []
    tests = 0
    every = list(windows(weeks, slow=True))
    for level in levels:
        sums = {
            at: [list(accumulate(of, initial=0)) for of in zip(*aged, strict=True)] for at, aged in level.aged.items()
        }
        for of in every:
            horizon = horizons[of.last]
            if horizon < 0:
                continue
            before, within = (
                [column[last + 1] - column[first] for column in sums[horizon]]
                for first, last in ((of.reference, of.before), (of.first, of.last))
            )
            if min(sum(before), sum(within)) < min_sample:
                continue
            tests += len((LOCATION, SPREAD, *TAILS))
            found += _moved(level, of, horizon, before, within, min_sample)
        for version in _versions(level, min_sample):
            tests += 1
            found += version
    found = [replace(shift, required_p=required_p(tests, ALARM_CHANCE)) for shift in found]
    greatest = discoveries([shift.p_value for shift in found], FALSE_DISCOVERIES, of=tests)
    kept = [shift for shift in found if shift.p_value <= greatest]
    level_of = {level.metric: level for level in levels}
    listed = _with_versions(
        _between_weeks([shift for shift in kept if shift.version is None]),
        # Two versions differ from one another alike: the later one is named.
        sorted(
            sorted((of for of in kept if of.version), key=lambda of: of.version or "", reverse=True), key=_certain_first
        ),
    )
    return [replace(shift, until=_until(shift, level_of[shift.metric], weeks, horizons)) for shift in listed]


def _until(shift: MetricShift, level: Level, weeks: int, horizons: Sequence[int]) -> int | None:
    """The last week that a shift of location lasts: its weeks have more than half of the window's delta together."""
    if shift.version is not None or shift.of == SPREAD:
        return None
    of, tail = shift.windows, shift.tail

    def lying(counts: Sequence[int]) -> list[int]:
        """The values by bin; of a tail, those outside it and those in it."""
        if tail is None:
            return list(counts)
        inside = sum(counts[tail.first : tail.last + 1])
        return [sum(counts) - inside, inside]

    def excess(week: int) -> Fraction:
        if horizons[week] < 0:
            return Fraction(0)
        aged = level.aged[horizons[week]]
        then, window, now = (
            lying([sum(column) for column in zip(*aged[first : last + 1], strict=True)])
            for first, last in ((of.reference, of.before), (of.first, of.last), (week, week))
        )
        if not (sum(then) and sum(window)):
            return Fraction(0)
        sign = 1 if shift.rose else -1
        half = Fraction(dominance(window, then), 2 * sum(window) * sum(then)) * sum(now)
        beyond: Fraction = Fraction(dominance(now, then), sum(then)) - half
        return sign * beyond

    return lasts_to(of.last, weeks, excess)


def _between_weeks(shifts: Sequence[MetricShift]) -> list[MetricShift]:
    """Those that are no echo: of another, nor of two levels that a window or its reference has together."""
    locations = without_echoes((shift for shift in shifts if shift.of == LOCATION), _certain_first)
    moved = [shift.windows for shift in locations if shift.is_certain and not shift.windows.slow]
    spreads = [
        shift
        for shift in shifts
        if shift.of == SPREAD
        and not any(shift.windows.is_linked_to(of) and shift.windows.first != of.first for of in moved)
    ]
    others = [*locations, *without_echoes(spreads, _certain_first)]
    found = without_echoes((shift for shift in shifts if shift.tail is not None), _certain_first)
    return [*others, *(tail for tail in found if not any(_explains(of, tail) for of in others))]


def _explains(shift: MetricShift, tail: MetricShift) -> bool:
    """Whether a shift of location or spread says of the same weeks as much as that of a tail, or more."""
    if shift.metric != tail.metric or not shift.windows.is_linked_to(tail.windows):
        return False
    return shift.least_effect >= DELTA.considerable or shift.score >= tail.score


def _certain_first(shift: MetricShift) -> tuple[bool, float, float, float, tuple[int, int], str, str]:
    # A great shift has the least p-value that is reported in each of its windows: of those the one that shows it best.
    return (
        not shift.is_certain,
        shift.p_value,
        -round(shift.distance, _DIGITS),
        -round(abs(shift.effect), _DIGITS),
        shift.windows.order,
        shift.metric,
        shift.of,
    )


def _with_versions(weeks: Sequence[MetricShift], versions: Iterable[MetricShift]) -> list[MetricShift]:
    """The shifts between weeks, and those of versions that none of them explains, one for each stretch of weeks."""
    kept = [*weeks]
    for shift in versions:
        beside = [
            of for of in kept if of.what == shift.what and shift.windows.first <= of.windows.first <= shift.windows.last
        ]
        if all(of.version is None and abs(of.effect) < abs(shift.effect) for of in beside):
            # What moved with the weeks is then the part that the version has in them.
            kept = [of for of in kept if of not in beside]
            kept.append(shift)
    return sorted(kept, key=lambda of: (of.windows, of.what, of.version or ""))


def _moved(
    level: Level, of: Windows, horizon: int, before: Sequence[int], within: Sequence[int], min_sample: int
) -> list[MetricShift]:
    """The shifts of a window that may be discoveries."""
    found = compare(within, before)
    middles = [middle(level.values, counts) for counts in (before, within)]
    far = abs(found.z) >= _NEAR and abs(found.delta) >= _LEAST
    wide, ends = is_wider(level, *middles), list(tails(before, within))
    if not far and not wide and not ends:
        return []
    sums = [level.groups.sums(of.reference, of.before), level.groups.sums(of.first, of.last)]
    if any(map(are_few, sums)):
        return []
    effects = design_effects(sums)

    def is_enough(effects: Sequence[float]) -> bool:
        return min(sum(before) / effects[0], sum(within) / effects[1]) >= min_sample

    ranked = compare(within, before, effects[1], effects[0]) if far or ends else found
    compared = [(LOCATION, ranked, effects)] if far else []
    if wide:
        compared.append((SPREAD, *spread(level, of, before, within)))
    moved = [
        _shift(level, what, of, horizon, None, middles, sums, own, test)
        for what, test, own in compared
        if abs(test.z) >= _NEAR and abs(test.delta) >= _LEAST and is_enough(own)
    ]
    if is_enough(effects):
        whole = (_shift(level, tail.of, of, horizon, None, middles, sums, effects, ranked) for tail in ends)
        moved += [_tail(shift, level, tail) for shift, tail in zip(whole, ends, strict=True)]
    return moved


def _tail(shift: MetricShift, level: Level, tail: Tail) -> MetricShift:
    """The shift of a tail, from that of all values in the same weeks."""
    then, now = (
        singly(share, effect) for share, effect in zip((tail.before, tail.within), shift.design_effects, strict=True)
    )
    return replace(
        shift,
        effect=tail.effect,
        least_effect=nearest_h(tail.effect, now.whole, then.whole),
        p_value=fisher_exact(now, then),
        distance=standard_distance(now, then),
        tail=tail,
        cut=level.greatest[tail.first - 1 if tail.of == ABOVE else tail.last],
        delta=(shift.effect, shift.least_effect),
    )


def _shift(
    level: Level,
    what: str,
    of: Windows,
    horizon: int,
    version: str | None,
    middles: Sequence[Middle],
    sums: Sequence[GroupSums],
    effects: Sequence[float],
    test: Compared,
) -> MetricShift:
    return MetricShift(
        level.metric,
        what,
        of,
        horizon,
        version,
        middles[0],
        middles[1],
        (sums[0].groups, sums[-1].groups),
        (effects[0], effects[-1]),
        test.delta,
        test.least_delta,
        test.p_value,
        ratios=level.ratios,
        distance=abs(test.z),
    )


def _versions(level: Level, min_sample: int) -> Iterable[list[MetricShift]]:
    """The comparison of each version with the others, in the weeks in which both decided: one or none each."""
    weeks = [[sum(of) for of in zip(*every, strict=True)] for every in zip(*level.versions.values(), strict=True)]
    for version, counts in sorted(level.versions.items()):
        strata = [
            (at, own, [whole - part for whole, part in zip(every, own, strict=True)])
            for at, (own, every) in enumerate(zip(counts, weeks, strict=True))
            if 0 < sum(own) < sum(every)
        ]
        sizes = [sum(sum(side) for _, *sides in strata for side in sides[at : at + 1]) for at in range(2)]
        if len(strata) < COMMON_WEEKS or min(sizes) < min_sample:
            continue
        first, last = strata[0][0], strata[-1][0]
        sums = level.groups.sums(first, last)
        if are_few(sums):
            continue
        (effect,) = design_effects([sums])
        if min(sizes) / effect < min_sample:
            continue
        test = stratified([(own, others) for _, own, others in strata], effect)
        if abs(test.z) < _NEAR or abs(test.delta) < _LEAST:
            yield []
            continue
        sides = [[sum(of) for of in zip(*(each[side] for each in strata), strict=True)] for side in (2, 1)]
        middles = [middle(level.values, counts) for counts in sides]
        of = Windows(first, last, first)
        yield [_shift(level, LOCATION, of, max(level.aged), version, middles, [sums], [effect], test)]
