"""Offsets in a text as a browser counts them: in units of UTF-16. A character above `U+FFFF` takes two units."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

_WIDE: Final = re.compile("[\U00010000-\U0010ffff]")


class Units:
    """The offsets of one text, in both ways of counting."""

    def __init__(self, text: str) -> None:
        """Looks for the characters that take two units; most texts have none."""
        self._wide: Final = [found.start() for found in _WIDE.finditer(text)]
        self._units: Final = [at + number for number, at in enumerate(self._wide)]

    def of(self, offset: int) -> int:
        """The offset in units of an offset in characters."""
        return offset + bisect_left(self._wide, offset)

    def at(self, units: int) -> int:
        """The offset in characters of an offset in units."""
        return units - bisect_left(self._units, units)
