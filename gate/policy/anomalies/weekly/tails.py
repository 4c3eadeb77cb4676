"""The tails of a metric: the share of its values above or below most of them, before and in a window.

Ranks say little about a loss that most cases do not have, or about the few greatest values. So their share is tested as
a rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gate.policy.anomalies.statistics import Share, cohens_h, standard_distance

ABOVE: Final = "tail_above"
BELOW: Final = "tail_below"
TAILS: Final = (ABOVE, BELOW)

PART: Final = 20
"""A tail has at least one of this many values, of window and reference together."""

_NEAR: Final = 2.0
_LEAST: Final = 0.1


class Tail(NamedTuple):
    """The share of values in a tail.

    Attributes:
        of: tail_above or tail_below.
        first: The first of its bins.
        last: The last of them.
        before: The share before.
        within: That in the window.
    """

    of: str
    first: int
    last: int
    before: Share
    within: Share

    @property
    def effect(self) -> float:
        """Cohen's h, with its sign."""
        return cohens_h(self.within.rate, self.before.rate)


def tails(before: Sequence[int], within: Sequence[int]) -> Iterator[Tail]:
    """The tails whose share may have changed.

    If one bin has half of all values, the tails lie above it and below it. Otherwise, they are the outermost bins that
    have one value in twenty.

    Args:
        before: The values before, by bin.
        within: The values in the window.
    """
    both = [a + b for a, b in zip(before, within, strict=True)]
    for of, (first, last) in zip(TAILS, _ends(both), strict=True):
        then, now = (Share(sum(counts[first : last + 1]), sum(counts)) for counts in (before, within))
        tail = Tail(of, first, last, then, now)
        if standard_distance(now, then) >= _NEAR and abs(tail.effect) >= _LEAST:
            yield tail


def _ends(both: Sequence[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    whole = sum(both)
    most = max(range(len(both)), key=lambda at: both[at])
    if 2 * both[most] >= whole:
        return (most + 1, len(both) - 1), (0, most - 1)
    low, high, found = 0, len(both) - 1, both[0]
    while PART * found < whole:
        low += 1
        found += both[low]
    found = both[high]
    while PART * found < whole:
        high -= 1
        found += both[high]
    return (high, len(both) - 1), (0, low)
