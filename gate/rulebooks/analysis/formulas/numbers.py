"""Numbers cut into spans: the points that tests name, and the open intervals between them.

    spans([50, 100], split=False)     # below 50, 50, between 50 and 100, 100, above 100

A number of JSON is a finite double, so an interval between adjacent doubles is empty and is left out. If a field is
declared an integer, each interval is split into its whole numbers and the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from gate.encoding.strict_json import MAX_SAFE_INTEGER

# From here on every double is a whole number.
_ALL_WHOLE: Final = 2.0**52


@dataclass(frozen=True, slots=True)
class Span:
    """A point, or an open interval of numbers.

    Attributes:
        low: The point, or the lower bound, which is no part of the interval; -inf where there is none.
        high: The point again, or the upper bound, which is no part of the interval; inf where there is none.
        whole: Whether the interval is that of whole numbers (True) or of others (False); None of both, and of a point.
        sample: A number in it.
    """

    low: float
    high: float
    whole: bool | None
    sample: float

    @property
    def is_point(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high


def spans(cuts: Iterable[float], *, split: bool) -> list[Span]:
    """Every number, cut at some points: the spans in ascending order, none of them empty.

    Args:
        cuts: The points, in any order and number.
        split: Whether to tell whole numbers from others.
    """
    found: list[Span] = []
    low = -math.inf
    for cut in [*sorted(set(cuts)), math.inf]:
        for whole in (True, False) if split else (None,):
            sample = _between(low, cut, whole)
            if sample is not None:
                found.append(Span(low, cut, whole, sample))
        if cut != math.inf:
            found.append(Span(cut, cut, None, _plain(cut)))
        low = cut
    return found


def _between(low: float, high: float, whole: bool | None) -> float | None:
    """A number between two bounds, one that people can read where there is one; None where there is none."""
    candidates = _whole(low, high) if whole else _broken(low, high) if whole is False else _any(low, high)
    for number in map(_plain, candidates):
        wanted = whole is None or float(number).is_integer() is whole
        if wanted and low < number < high and math.isfinite(number):
            return number
    return None


def _any(low: float, high: float) -> Iterator[float]:
    yield from _natural(low, high)
    yield from _rounded(low, high)
    yield from _beside(low, high)


def _whole(low: float, high: float) -> Iterator[float]:
    """Whole numbers that may lie between, the last of which does if any does."""
    yield from _natural(low, high)
    # Beyond 2^53 not every whole number is a double, and every double is a whole number.
    yield from _beside(low, high)


def _natural(low: float, high: float) -> Iterator[float]:
    """The whole numbers that people would name."""
    if math.isinf(low):
        yield 0 if math.isinf(high) else math.ceil(high) - 1
        return
    if not math.isinf(high) and high - low > 2:
        yield math.floor(low / 2 + high / 2)
    yield math.floor(low) + 1


def _beside(low: float, high: float) -> Iterator[float]:
    """The double next to a bound."""
    yield math.nextafter(high, -math.inf) if math.isinf(low) else math.nextafter(low, math.inf)


def _broken(low: float, high: float) -> Iterator[float]:
    """Numbers with a fraction that may lie between, the last of which does if any does."""
    yield from _halves(low, high)
    yield from _rounded(low, high)
    yield from _next_ones(low)


def _halves(low: float, high: float) -> Iterator[float]:
    if not math.isinf(low):
        yield math.floor(low) + 0.5
        yield math.floor(low) + 1.5
    elif not math.isinf(high):
        yield math.ceil(high) - 0.5
        yield math.ceil(high) - 1.5
    else:
        yield 0.5


def _next_ones(low: float) -> Iterator[float]:
    # The first double above a bound may be a whole number, the second is then none.
    start = max(low, -_ALL_WHOLE)
    first = math.nextafter(start, math.inf)
    yield first
    yield math.nextafter(first, math.inf)


def _rounded(low: float, high: float) -> Iterator[float]:
    if math.isinf(low) or math.isinf(high):
        return
    middle = low / 2 + high / 2
    for digits in range(1, 18):
        yield round(middle, digits)
    yield middle


def _plain(number: float) -> float:
    """The number as an int where JSON has it as one."""
    if isinstance(number, float) and number.is_integer() and abs(number) <= MAX_SAFE_INTEGER:
        return int(number)
    if isinstance(number, int) and abs(number) > MAX_SAFE_INTEGER:
        return float(number)
    return number
