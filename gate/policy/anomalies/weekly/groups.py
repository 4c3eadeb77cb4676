"""Groups: decisions that arrive in one minute need not be independent, so they count only for the information they
carry.

    sums = GroupSums(groups=40, members=120, total=30, sizes=620, products=180, totals=150)
    design_effect(sums, 0.25)                  # the number of decisions that carry as much as a single one
    singly(Share(30, 120), design_effect(sums, 0.25))

Counts are divided by their design effect, and tested as if they were independent (Rao and Scott, "A simple method for
the analysis of clustered binary data", Biometrics 48, 1992). Decisions of one group add to the variance by the products
of each with the others of its group. A single decision adds nothing, and counts in full.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import Final, NamedTuple

from gate.policy.anomalies.statistics import Share

LEAST_GROUPS: Final = 5
"""The number of groups from which a window, or its reference, is tested. Fewer groups do not show how much they vary.
"""

_DIGITS: Final = 6


class GroupSums(NamedTuple):
    """Sums over the groups of some decisions. Each decision has a number: 1 or 0 for a rate, a rank for a metric.

    Attributes:
        groups: The number of groups.
        members: The number of decisions.
        total: The sum of their numbers.
        squares: The sum of the squared numbers; for ones and zeros, it equals the total.
        sizes: The sum of the squared group sizes.
        products: The sum of each group's size times its total.
        totals: The sum of the squared group totals.
    """

    groups: int = 0
    members: int = 0
    total: int = 0
    squares: int = 0
    sizes: int = 0
    products: int = 0
    totals: int = 0


class Groups:
    """The sums of any weeks in a row."""

    def __init__(self, weeks: Iterable[GroupSums]) -> None:
        """Takes those of each week."""
        self._columns = [[0, *accumulate(column)] for column in zip(*weeks, strict=True)]

    def sums(self, first: int, last: int) -> GroupSums:
        """Those of some weeks, both ends within."""
        return GroupSums(*(column[last + 1] - column[first] for column in self._columns))


class BinGroups:
    """The groups of values in bins, whatever number each bin has."""

    def __init__(self, weeks: Sequence[Sequence[int]], shared: Sequence[tuple[int, int, int, int]]) -> None:
        """Takes the values of each week by bin; and of those that did not come alone the week, the minute, the bin and
        how many there are.
        """
        self._weeks = weeks
        self._shared = shared

    @cached_property
    def _together(self) -> list[list[list[tuple[int, int]]]]:
        """Of each week the groups of several values: how many in which bins."""
        found: list[dict[int, list[tuple[int, int]]]] = [{} for _ in self._weeks]
        for week, minute, place, values in self._shared:
            found[week].setdefault(minute, []).append((place, values))
        return [list(groups.values()) for groups in found]

    def sums(self, first: int, last: int, numbers: Sequence[int]) -> GroupSums:
        """The sums over some weeks, both ends included.

        Args:
            first: The first week.
            last: The last week.
            numbers: For each bin, the number of its values.
        """
        alone = [sum(of) for of in zip(*self._weeks[first : last + 1], strict=True)]
        found = []
        for group in (group for week in self._together[first : last + 1] for group in week):
            size = total = squares = 0
            for place, values in group:
                number = numbers[place]
                alone[place] -= values
                size += values
                total += values * number
                squares += values * number * number
            found.append((1, size, total, squares, size * size, size * total, total * total))
        count = sum(alone)
        total = sum(map(mul, alone, numbers))
        squares = sum(values * number * number for values, number in zip(alone, numbers, strict=True))
        found.append((count, count, total, squares, count, total, squares))
        return GroupSums(*map(sum, zip(*found, strict=True)))


def are_few(sums: GroupSums) -> bool:
    """Whether decisions that did not all arrive alone came in too few groups to judge."""
    return sums.groups < max(1, min(LEAST_GROUPS, sums.members))


def design_effect(sums: GroupSums, mean: float) -> float:
    """The design effect: the number of decisions that carry as much information as a single one; at least 1, six
    decimals.

    Args:
        sums: Their groups.
        mean: The mean of their numbers under no change: that of window and reference together.
    """
    alone = sums.squares - 2 * mean * sums.total + mean * mean * sums.members
    if sums.groups < 2 or alone <= 0:
        return 1.0
    together = sums.totals - 2 * mean * sums.products + mean * mean * sums.sizes
    more = sums.groups / (sums.groups - 1) * (together - alone) / alone
    return round(max(1.0, 1 + more), _DIGITS)


def design_effects(sides: Sequence[GroupSums]) -> list[float]:
    """The design effect of each side, by the mean of all of them together."""
    members = sum(of.members for of in sides)
    mean = sum(of.total for of in sides) / members if members else 0.0
    return [design_effect(of, mean) for of in sides]


def singly(share: Share, effect: float) -> Share:
    """The number of single decisions that carry as much information."""
    return Share(math.floor(share.part / effect), math.floor(share.whole / effect))


def mean_effect(bins: Sequence[GroupSums], shares: Sequence[float]) -> float:
    """The mean design effect of a histogram's bins. Pearson's chi-squared is divided by it (Rao and Scott).

    Args:
        bins: The sums of each bin, over the same groups.
        shares: The share of each bin, in window and reference together.
    """
    used = [(sums, share) for sums, share in zip(bins, shares, strict=True) if share > 0]
    members = used[0][0].members if used else 0
    if len(used) < len(("one", "other")) or not members:
        return 1.0
    terms = []
    for sums, share in used:
        alone = sums.squares - 2 * share * sums.total + share * share * sums.members
        together = sums.totals - 2 * share * sums.products + share * share * sums.sizes
        terms.append((together - alone) / share)
    return round(max(1.0, 1 + math.fsum(terms) / (members * (len(used) - 1))), _DIGITS)
