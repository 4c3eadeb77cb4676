"""The protocol's timestamps, and the part of an identifier that sorts by time. Pure: `gate.clock` has the clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final


def timestamp(moment: datetime) -> str:
    """An aware moment as the protocol writes it: UTC, ISO 8601, milliseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


# The library's own parser accepts more: any character between date and time, and some text after a zero character.
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)


def parse_timestamp(text: str) -> datetime:
    """The moment that an ISO 8601 text with a time zone names: `2026-01-31T12:00:00.000Z`, `2026-01-31 13:00+01:00`.

    Raises:
        ValueError: It is no such text, or it names no time zone.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time; write UTC times as 2026-01-31T12:00:00.000Z.")
    if found[1] is None:
        raise ValueError(f"{text!r} has no time zone; write UTC times as 2026-01-31T12:00:00.000Z.")
    moment = datetime.fromisoformat(text)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC.") from error


def not_before(moment: datetime) -> str:
    """The first timestamp that is not before a moment; timestamps have milliseconds, and a moment may fall between."""
    shown = timestamp(moment)
    if parse_timestamp(shown) >= moment or moment.astimezone(UTC) > datetime.max.replace(tzinfo=UTC) - _MILLISECOND:
        return shown
    return timestamp(moment + _MILLISECOND)


_MILLISECOND: Final = timedelta(milliseconds=1)


def month_end(moment: datetime) -> datetime:
    """The moment at which the UTC month of a moment is over."""
    utc = moment.astimezone(UTC)
    return datetime(utc.year + utc.month // 12, utc.month % 12 + 1, 1, tzinfo=UTC)


def first_id(prefix: str, moment: datetime) -> str:
    """What sorts before every identifier made at a moment or later, and after every earlier one."""
    return f"{prefix}_{int(moment.timestamp() * 1000) & (2**48 - 1):012x}"
