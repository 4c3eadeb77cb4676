"""CSV of texts that strangers wrote, for operators who open it in a spreadsheet.

    csv_row(["plt_1", "=1+1"])     '"plt_1","\\'=1+1"\\r\\n'

RFC 4180, every cell quoted. A spreadsheet runs a cell as a formula where it begins with one of a few characters, in
ASCII or in a wider form of the same; such a cell begins with an apostrophe here, which spreadsheets take for text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

_STARTS_FORMULA: Final = frozenset("=+-@\t\r\n")
# White space, and characters of format, such as a byte order mark or a mark of direction: a program may skip them.
_SKIPPED: Final = frozenset({"Zs", "Cf"})


def csv_row(cells: Sequence[str]) -> str:
    """A line of CSV, with its line break."""
    return ",".join(map(_cell, cells)) + "\r\n"


def _cell(text: str) -> str:
    return '"' + ("'" if _could_be_formula(text) else "") + text.replace('"', '""') + '"'


def _could_be_formula(text: str) -> bool:
    first = next((each for each in text if unicodedata.category(each) not in _SKIPPED), "")
    # Full-width, small and raised forms of a character become the plain one.
    return unicodedata.normalize("NFKC", first)[:1] in _STARTS_FORMULA
