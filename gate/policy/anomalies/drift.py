"""Drift: facts whose values differ from the weeks before.

Each fact's values are counted in bins: numbers by tenths of the observed values, and texts by frequency. Missing values
and values of another type have bins of their own. The windows are those of `shifts`. The measure is the population
stability index. A window counts if Pearson's chi-squared test excludes chance, at the same rate of false discoveries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Final

from gate.policy.anomalies.scores import INDEX
from gate.policy.anomalies.statistics import chance_index, discoveries, homogeneity, required_p, stability_index
from gate.policy.anomalies.weekly.costs import lasts_to
from gate.policy.anomalies.weekly.groups import Groups, are_few, mean_effect
from gate.policy.anomalies.weekly.windows import ALARM_CHANCE, FALSE_DISCOVERIES, Windows, windows, without_echoes

# Half of what counts as noticeable is not tested, but counts as a test.
_LEAST: Final = INDEX.noticeable / 2
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Histogram:
    """A fact's values by bin and week.

    Attributes:
        fact: The fact's path.
        bins: The content of each bin, in words.
        weeks: For each week, the number of decisions in each bin.
        groups: For each bin, the groups in which decisions arrived; None if each arrived alone.
    """

    fact: str
    bins: Sequence[str]
    weeks: Sequence[Sequence[int]]
    groups: Sequence[Groups] | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """A fact whose values in a window differ from those before.

    Attributes:
        fact: The fact's path.
        bins: The content of each bin, in words.
        windows: The weeks.
        before: The decisions in each bin in the weeks before.
        within: The decisions in each bin in the window.
        index: The population stability index.
        least_index: The index less the part that chance alone exceeds one time in twenty.
        p_value: The p-value of the chi-squared test.
        design_effect: The number of decisions in the window that carry as much information as one that arrived alone.
        required_p: The p-value below which the drift is certain.
        distance: The statistic of the test, chi-squared. It separates drifts that share the least p-value.
        until: The last week that it lasts; unknown for findings that are dropped.
    """

    fact: str
    bins: Sequence[str]
    windows: Windows
    before: Sequence[int]
    within: Sequence[int]
    index: float
    least_index: float
    p_value: float
    design_effect: float = 1.0
    required_p: float = 0.0
    distance: float = 0.0
    until: int | None = None

    @property
    def effect(self) -> float:
        """The index."""
        return self.index

    @property
    def what(self) -> tuple[str, str]:
        """The fact that drifted."""
        return "fact", self.fact

    @property
    def is_certain(self) -> bool:
        """Whether it is certain by itself, whatever else was found."""
        return self.p_value <= self.required_p


def are_others(one: Sequence[int], other: Sequence[int], tests: int) -> bool:
    """Whether the cases of two versions differ in a fact noticeably, and certainly among so many facts.

    Args:
        one: The cases of one version in each bin of the fact.
        other: The cases of the other versions.
        tests: The number of facts.
    """
    if stability_index(other, one) < INDEX.noticeable:
        return False
    return homogeneity(other, one).p_value <= required_p(tests, ALARM_CHANCE)


def find_drift(histograms: Sequence[Histogram], weeks: int, min_sample: int) -> list[Drift]:
    """The facts that drifted. The windows of one fact do not overlap.

    Args:
        histograms: The facts, over the same weeks.
        weeks: The number of weeks.
        min_sample: The least information of a window, and of the time before it, in single decisions.
    """
    found: list[Drift] = []
    tests = 0
    every = list(windows(weeks, slow=True))
    for histogram in histograms:
        sums = [list(accumulate(column, initial=0)) for column in zip(*histogram.weeks, strict=True)]
        for of in every:
            within = [column[of.last + 1] - column[of.first] for column in sums]
            before = [column[of.before + 1] - column[of.reference] for column in sums]
            if min(sum(within), sum(before)) < min_sample:
                continue
            tests += 1
            if stability_index(before, within) < _LEAST:
                continue
            drift = _drift(histogram, of, before, within, min_sample)
            if drift is not None and drift.index >= _LEAST:
                found.append(drift)
    found = [replace(drift, required_p=required_p(tests, ALARM_CHANCE)) for drift in found]
    greatest = discoveries([drift.p_value for drift in found], FALSE_DISCOVERIES, of=tests)
    kept = without_echoes([drift for drift in found if drift.p_value <= greatest], _most_certain_first)
    counted = {histogram.fact: histogram.weeks for histogram in histograms}
    return [replace(drift, until=_until(drift, counted[drift.fact])) for drift in kept]


def _until(drift: Drift, weeks: Sequence[Sequence[int]]) -> int:
    """The last week that a drift lasts: weeks belong to it whose shares lie nearer to its window than to before."""
    usual, other = ([Fraction(count, sum(counts)) for count in counts] for counts in (drift.before, drift.within))

    def excess(week: int) -> Fraction:
        whole = sum(weeks[week])
        terms = ((q - p) * (count - whole * (p + q) / 2) for count, p, q in zip(weeks[week], usual, other, strict=True))
        return sum(terms, Fraction(0))

    return lasts_to(drift.windows.last, len(weeks), excess)


def _drift(
    histogram: Histogram, of: Windows, before: Sequence[int], within: Sequence[int], min_sample: int
) -> Drift | None:
    """What a window's drift is, each side counted for as many decisions as it says; None where these are too few."""
    effects = [1.0, 1.0]
    if histogram.groups is not None:
        whole = sum(before) + sum(within)
        shares = [(a + b) / whole for a, b in zip(before, within, strict=True)]
        for side, ends in enumerate(((of.reference, of.before), (of.first, of.last))):
            sums = [groups.sums(*ends) for groups in histogram.groups]
            if are_few(sums[0]):
                return None
            effects[side] = mean_effect(sums, shares)
    if any(sum(counts) / effect < min_sample for counts, effect in zip((before, within), effects, strict=True)):
        return None
    alone = [
        [math.floor(count / effect) for count in counts]
        for counts, effect in zip((before, within), effects, strict=True)
    ]
    sizes = [sum(counts) for counts in alone]
    index = stability_index(*alone)
    least = max(0.0, index - chance_index(len(histogram.bins), *sizes))
    distance, p_value = homogeneity(*alone)
    return Drift(
        histogram.fact, histogram.bins, of, before, within, index, least, p_value, max(effects), distance=distance
    )


def _most_certain_first(drift: Drift) -> tuple[bool, float, float, float, tuple[int, int], str]:
    # A great drift has the least p-value that is reported in each of its windows: of those the one that shows it best.
    distance, index = (-round(of, _DIGITS) for of in (drift.distance, drift.index))
    return not drift.is_certain, drift.p_value, distance, index, drift.windows.order, drift.fact
