"""Drift: the facts that a policy is asked with are others than in the weeks before.

Each fact's values are counted in bins: numbers by tenths of what was seen, texts by the commonest, and what is missing
or of another type for itself. Windows of weeks are those of `shifts`; the measure is the population stability index,
and a window counts where Pearson's chi-squared test says that it is no chance, at the same rate of false discoveries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from gate.policy.anomalies.scores import INDEX
from gate.policy.anomalies.shifts import ALARM_CHANCE, FALSE_DISCOVERIES, Arrivals, Windows, windows
from gate.policy.anomalies.statistics import chance_index, discoveries, homogeneity, required_p, stability_index

# Half of what counts as noticeable is not tested, but counts as a test.
_LEAST: Final = INDEX.noticeable / 2
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Histogram:
    """A fact's values by bin, week by week.

    Attributes:
        fact: The fact's path.
        bins: What each bin holds, for people.
        weeks: Of each week the number of decisions in each bin.
    """

    fact: str
    bins: Sequence[str]
    weeks: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Drift:
    """A fact whose values in a window are not those of before.

    Attributes:
        fact: The fact's path.
        bins: What each bin holds.
        windows: The weeks.
        before: The decisions in each bin in the weeks before.
        within: Those in the window.
        index: The population stability index.
        least_index: The same, less what chance alone adds one time in twenty.
        p_value: That of the chi-squared test.
        required_p: How small it has to be for the drift to be certain.
    """

    fact: str
    bins: Sequence[str]
    windows: Windows
    before: Sequence[int]
    within: Sequence[int]
    index: float
    least_index: float
    p_value: float
    required_p: float = 0.0

    @property
    def is_certain(self) -> bool:
        """Whether it stands alone, whatever else was found."""
        return self.p_value <= self.required_p


def find_drift(
    histograms: Sequence[Histogram], weeks: int, min_sample: int, arrivals: Arrivals | None = None
) -> list[Drift]:
    """The facts that drifted, the windows of one fact without a week in common.

    Args:
        histograms: The facts, over the same weeks.
        weeks: How many weeks there are.
        min_sample: As how many single decisions a window, and what is before it, says as much at least.
        arrivals: In how large groups the decisions arrive that the histograms have; None where they come singly.
    """
    found: list[Drift] = []
    tests = 0
    every = list(windows(weeks))
    for histogram in histograms:
        sums = [list(accumulate(column, initial=0)) for column in zip(*histogram.weeks, strict=True)]
        for of in every:
            within = [column[of.last + 1] - column[of.first] for column in sums]
            before = [column[of.first] - column[of.reference] for column in sums]
            ends = ((before, of.reference, of.first - 1), (within, of.first, of.last))
            alone = [_singly(counts, arrivals, first, last) for counts, first, last in ends]
            sizes = [sum(counts) for counts in alone]
            if min(sizes) < min_sample:
                continue
            tests += 1
            index = stability_index(*alone)
            if index >= _LEAST:
                least = max(0.0, index - chance_index(len(histogram.bins), *sizes))
                p_value = homogeneity(*alone)
                found.append(Drift(histogram.fact, histogram.bins, of, before, within, index, least, p_value))
    found = [replace(drift, required_p=required_p(tests, ALARM_CHANCE)) for drift in found]
    greatest = discoveries([drift.p_value for drift in found], FALSE_DISCOVERIES, of=tests)
    return _without_echoes([drift for drift in found if drift.p_value <= greatest])


def _singly(counts: Sequence[int], arrivals: Arrivals | None, first: int, last: int) -> Sequence[int]:
    """As many decisions in each bin that came singly as say as much: those of one group are taken as having one value,
    for of so many facts and bins nobody counts how far they do.
    """
    return counts if arrivals is None else [arrivals.singly(count, first, last) for count in counts]


def _most_certain_first(drift: Drift) -> tuple[bool, float, float, tuple[int, int], str]:
    return not drift.is_certain, drift.p_value, -round(drift.index, _DIGITS), drift.windows.order, drift.fact


def _without_echoes(drifts: Sequence[Drift]) -> list[Drift]:
    kept: list[Drift] = []
    for drift in sorted(drifts, key=_most_certain_first):
        taken = (of.windows for of in kept if of.fact == drift.fact)
        if not any(drift.windows.overlaps(of.first, of.last) for of in taken):
            kept.append(drift)
    return sorted(kept, key=lambda of: (of.windows, of.fact))
