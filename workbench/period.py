"""Days and moments as people write them: `2026-07-01` until `2026-07-31`, both included, in UTC.

    begin("2026-07-01")     1 July 2026, 00:00 UTC
    end("2026-07-31")       1 August 2026, 00:00 UTC

An end is the first moment after the period.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from gate.ids import parse_timestamp

# One of the ways in which ISO 8601 writes a day; Python's parser knows the others, such as 2026-W29-1.
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def begin(text: str | None) -> datetime | None:
    """From when: the beginning of a day, or a moment; None stays None.

    Args:
        text: A day, or a timestamp as records have it.

    Raises:
        ValueError: It is neither.
    """
    if text is None:
        return None
    if _is_day(text):
        found = date.fromisoformat(text)
        return datetime(found.year, found.month, found.day, tzinfo=UTC)
    return parse_timestamp(text)


def end(text: str | None) -> datetime | None:
    """Until before when: the end of a day, or a moment; None stays None.

    Args:
        text: A day, or a timestamp as records have it.

    Raises:
        ValueError: It is neither.
    """
    found = begin(text)
    if found is None or text is None or not _is_day(text):
        return found
    return found + timedelta(days=1) if found.date() < date.max else found


def _is_day(text: str) -> bool:
    return _DAY.fullmatch(text) is not None
