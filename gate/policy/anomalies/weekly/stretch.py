"""Selects the weeks that are examined together if a few dates lie far from all others, and handles dates beyond the
calendar.

A date of 9999-12-31 or 2099-01-01 often means that there is none. Left in, it would make all other decisions seem old.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

FAR: Final = timedelta(weeks=104)
"""The gap without decisions from which parts of the decisions lie far apart."""

ENOUGH: Final = 4
"""The number of weeks with decisions that a part needs to be examined."""

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)


class Stretch(NamedTuple):
    """The Mondays of the first and the last week of a part of the decisions."""

    first: date
    last: date


def stretch(weeks: Mapping[date, int]) -> Stretch:
    """The part of the decisions that is examined: the latest with decisions in enough weeks, else the one with the
    most.

    Of equal parts, the latest is taken. More than 104 weeks without decisions separate two parts.

    Args:
        weeks: The decisions of each week that has any, by its Monday.
    """
    parts: list[list[date]] = []
    for week in sorted(weeks):
        if parts and week - parts[-1][-1] <= FAR:
            parts[-1].append(week)
        else:
            parts.append([week])
    enough = [part for part in parts if len(part) >= ENOUGH]
    found = enough[-1] if enough else max(parts, key=lambda part: (sum(weeks[week] for week in part), part[0]))
    return Stretch(found[0], found[-1])


def moved(at: datetime, by: timedelta) -> datetime:
    """A moment that much later, or earlier if negative; at most the last, and at least the first, of the calendar."""
    try:
        return at + by
    except OverflowError:
        return _LAST if by > timedelta(0) else _FIRST
