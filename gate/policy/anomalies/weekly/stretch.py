"""Which weeks are looked at together where a few dates lie far from all others, and moments that no calendar has.

A date of 9999-12-31 or 2099-01-01 often stands for none. Alone it would make all other decisions those of long ago.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

FAR: Final = timedelta(weeks=104)
"""Decisions lie far apart that have more time between them without any."""

ENOUGH: Final = 4
"""In how many weeks a part of the decisions must have some to be the one that is looked at."""

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)


class Stretch(NamedTuple):
    """The Mondays of the first and the last week of a part of the decisions."""

    first: date
    last: date


def stretch(weeks: Mapping[date, int]) -> Stretch:
    """The part of the decisions that is looked at: the latest that has decisions in enough weeks, else the one with the
    most, of equal ones the latest. Between two parts lie more than 104 weeks without any.

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
    """A moment so much later, or earlier where it is less than nothing; the last or the first of the calendar where
    that ends before.
    """
    try:
        return at + by
    except OverflowError:
        return _LAST if by > timedelta(0) else _FIRST
