"""The protocol's timestamps, and the part of an identifier that sorts by time. Pure: `gate.clock` has the clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

AHEAD: Final = timedelta(minutes=5)
"""How far the time of an event may be ahead of the service's clock, because callers' clocks differ."""


def timestamp(moment: datetime) -> str:
    """An aware datetime in the protocol's form: UTC, ISO 8601, milliseconds, `Z`."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"


# The library's own parser accepts more: any character between date and time, and some text after a zero character.
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)


def parse_timestamp(text: str) -> datetime:
    """Parses an ISO 8601 text with a time zone: `2026-01-31T12:00:00.000Z`, `2026-01-31 13:00+01:00`.

    Raises:
        ValueError: The text is not a time, or has no time zone.
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


def event_fault(text: str, now: datetime | None) -> tuple[str, str] | None:
    """Checks the time that a caller reports for an event. Returns a code and a sentence, or None if the time is valid.

    Only the protocol's own form is valid, because the text is hashed as sent, and each time must have only one text.

    Args:
        text: The text that was sent.
        now: The service's clock, or None to check a time again that was accepted before.
    """
    try:
        moment = parse_timestamp(text)
    except ValueError:
        return _NO_SUCH if _FORM.fullmatch(text) else _NO_EVENT
    if timestamp(moment) != text:
        return _NO_EVENT
    if now is not None and moment > now + AHEAD:
        return "future", _FUTURE
    return None


_FORM: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_NO_EVENT: Final = ("format", "It must be a UTC time with milliseconds, such as 2026-01-31T12:00:00.000Z.")
_NO_SUCH: Final = ("format", "There is no such day or time. Send when it happened, such as 2026-01-31T12:00:00.000Z.")
_FUTURE: Final = (
    f"It is in the future, more than {AHEAD // timedelta(minutes=1)} minutes ahead of the service's clock. Send when "
    f"it happened, or check the sender's clock."
)


def not_before(moment: datetime) -> str:
    """The first timestamp that is not before a moment, which may fall between two milliseconds."""
    shown = timestamp(moment)
    if parse_timestamp(shown) >= moment or moment.astimezone(UTC) > datetime.max.replace(tzinfo=UTC) - _MILLISECOND:
        return shown
    return timestamp(moment + _MILLISECOND)


_MILLISECOND: Final = timedelta(milliseconds=1)


def month_end(moment: datetime) -> datetime:
    """The end of a moment's UTC month."""
    utc = moment.astimezone(UTC)
    return datetime(utc.year + utc.month // 12, utc.month % 12 + 1, 1, tzinfo=UTC)


def first_id(prefix: str, moment: datetime) -> str:
    """A text that sorts before every identifier created at a moment or later, and after every earlier one."""
    return f"{prefix}_{int(moment.timestamp() * 1000) & (2**48 - 1):012x}"
