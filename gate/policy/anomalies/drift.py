"""Drift: the facts that a policy is asked with are others than in the weeks before.

Each fact's values are counted in bins: numbers by tenths of what was seen, texts by the commonest, and what is missing
or of another type for itself. Windows of weeks are those of `shifts`; the measure is the population stability index,
and a window counts where Pearson's chi-squared test says that it is no chance, at the same rate of false discoveries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from gate.policy.anomalies.scores import INDEX
from gate.policy.anomalies.shifts import FALSE_DISCOVERIES, Windows, windows
from gate.policy.anomalies.statistics import discoveries, homogeneity, stability_index

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
        p_value: That of the chi-squared test.
    """

    fact: str
    bins: Sequence[str]
    windows: Windows
    before: Sequence[int]
    within: Sequence[int]
    index: float
    p_value: float


def find_drift(histograms: Sequence[Histogram], weeks: int, min_sample: int) -> list[Drift]:
    """The facts that drifted, the windows of one fact without a week in common.

    Args:
        histograms: The facts, over the same weeks.
        weeks: How many weeks there are.
        min_sample: How many decisions a window, and what is before it, has at least.
    """
    found: list[Drift] = []
    tests = 0
    every = list(windows(weeks))
    for histogram in histograms:
        sums = [list(accumulate(column, initial=0)) for column in zip(*histogram.weeks, strict=True)]
        for of in every:
            within = [column[of.last + 1] - column[of.first] for column in sums]
            before = [column[of.first] - column[of.reference] for column in sums]
            if min(sum(within), sum(before)) < min_sample:
                continue
            tests += 1
            index = stability_index(before, within)
            if index >= _LEAST:
                p_value = homogeneity(before, within)
                found.append(Drift(histogram.fact, histogram.bins, of, before, within, index, p_value))
    greatest = discoveries([drift.p_value for drift in found], FALSE_DISCOVERIES, of=tests)
    return _without_echoes([drift for drift in found if drift.p_value <= greatest])


def _without_echoes(drifts: Sequence[Drift]) -> list[Drift]:
    kept: list[Drift] = []
    for drift in sorted(drifts, key=lambda of: (of.p_value, -round(of.index, _DIGITS), of.windows.order, of.fact)):
        taken = (of.windows for of in kept if of.fact == drift.fact)
        if not any(drift.windows.overlaps(of.first, of.last) for of in taken):
            kept.append(drift)
    return sorted(kept, key=lambda of: (of.windows, of.fact))
