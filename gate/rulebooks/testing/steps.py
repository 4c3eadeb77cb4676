"""Numbers one natural step apart, as an author would write them: 49 and 50, 49.99 and 50, 0.124 and 0.125.

The step is 1 for a field declared an integer. For others it is a unit of the last decimal that the author wrote, and
at most 0.01. Where doubles lie farther apart than that, the step leads to the next double.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from gate.encoding.strict_json import MAX_SAFE_INTEGER

Direction: TypeAlias = Literal[-1, 1]

# As many as people write. A number between closer thresholds is shown with all of its decimals.
_DECIMALS: Final = range(18)


def moved(number: float, direction: Direction, *, whole: bool) -> float | None:
    """The number one step further.

    Args:
        number: A number of JSON.
        direction: 1 for up, -1 for down.
        whole: Whether its field is declared an integer.

    Returns:
        Another number; None where JSON has none there.
    """
    # The digits as written: the double 0.1 is a little more than a tenth.
    exact = Fraction(repr(number))
    return _next_to(number, exact + direction * (1 if whole else _step(exact)), direction)


def beside(number: float, direction: Direction, thresholds: Sequence[float], *, whole: bool) -> float | None:
    """A number slightly above or below a threshold, on the same side of all other thresholds.

    Args:
        number: The threshold.
        direction: 1 for the number above, -1 for the number below.
        thresholds: The thresholds of the field in ascending order.
        whole: Whether the field is declared an integer, so that only whole numbers will do.

    Returns:
        The number; None where no number of JSON lies between the threshold and the next.
    """
    if whole:
        near = math.floor(number) + 1 if direction == 1 else math.ceil(number) - 1
        found = _next_to(number, Fraction(near), direction)
    else:
        found = moved(number, direction, whole=False)
    limit = _next_threshold(number, direction, thresholds)
    if limit is None or (found is not None and (limit - found) * direction > 0):
        return found
    return None if whole else _between(number, limit)


def _step(exact: Fraction) -> Fraction:
    decimals = 2
    while (exact * 10**decimals).denominator != 1:
        decimals += 1
    return Fraction(1, 10**decimals)


def _next_to(number: float, exact: Fraction, direction: Direction) -> float | None:
    try:
        near = float(exact)
    except OverflowError:
        return None
    if near == number:
        near = math.nextafter(number, direction * math.inf)
    # Beyond 2^53-1 the wire knows no integers, so that a step from within leads nowhere.
    if not math.isfinite(near) or abs(number) <= MAX_SAFE_INTEGER < abs(near):
        return None
    return _plain(near)


def _next_threshold(number: float, direction: Direction, thresholds: Sequence[float]) -> float | None:
    if direction == 1:
        at = bisect_right(thresholds, number)
        return thresholds[at] if at < len(thresholds) else None
    at = bisect_left(thresholds, number)
    return thresholds[at - 1] if at > 0 else None


def _between(one: float, other: float) -> float | None:
    """The number in the middle with the fewest decimals that still lies between two others; None where none does."""
    middle = one / 2 + other / 2
    low, high = sorted((one, other))
    return next((_plain(near) for near in (*(round(middle, n) for n in _DECIMALS), middle) if low < near < high), None)


def _plain(number: float) -> float:
    """The number as an int where JSON has it as one."""
    return int(number) if float(number).is_integer() and abs(number) <= MAX_SAFE_INTEGER else number
