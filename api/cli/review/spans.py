"""Time spans in options and in tables."""

from __future__ import annotations

import re
from typing import Final

from gate.errors import OperatorError

_UNITS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def seconds_of(option: str, text: str) -> int:
    """Reads a time span from an option: `90s`, `30m`, `4h` or `2d`.

    Raises:
        OperatorError: `USAGE_INVALID`.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,7})([smhd])", text)
    if found is None:
        raise OperatorError("USAGE_INVALID", f"{option} must be a number with s, m, h or d, such as 30m or 4h.")
    return int(found[1]) * _UNITS[found[2]]


def span(seconds: int) -> str:
    """Formats a time span in its two largest units: `45s`, `3h 20m`, `12d 4h`."""
    parts = []
    for unit, size in _UNITS.items():
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts[:2]) or "0s"
