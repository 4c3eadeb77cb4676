"""Shares that are never rounded up: 999 of 1,000 are 99.9 %, 9,999 of 10,000 too, and only all of them are 100 %."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a number of things.

    Attributes:
        part: How many are in the part.
        whole: How many there are.
    """

    part: int
    whole: int

    @property
    def fraction(self) -> Fraction | None:
        """The exact share; None where there is nothing to have a share of."""
        return Fraction(self.part, self.whole) if self.whole else None

    @property
    def percent(self) -> str:
        """The share for people, rounded down to one decimal, such as `87.5 %`; `-` if there is nothing."""
        if not self.whole:
            return "-"
        tenths = 1000 * self.part // self.whole
        return "100 %" if self.part == self.whole else f"{tenths // 10}.{tenths % 10} %"
