"""Windows of weeks, and which of what is found in them is the echo of another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol, TypeVar

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


class Moved(Protocol):
    """A difference between some weeks and earlier ones. It may be the echo of another."""

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
        # What creeps for a year is listed once.
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
