"""Writes texts of strangers as CSV for operators who open it in a spreadsheet.

    csv_row(["plt_1", "=1+1"])     '"plt_1","\\'=1+1"\\r\\n'

The format is RFC 4180 with quotes around every cell. A spreadsheet runs a cell as a formula if it begins with one of a
few characters, in ASCII or in another form. This module puts an apostrophe before such cells, so that spreadsheets
read them as text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

_STARTS_FORMULA: Final = frozenset("=+-@\t\r\n")
# White space, control characters, and characters of format such as a byte order mark: a program may skip them.
_SKIPPED: Final = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})


def csv_row(cells: Sequence[str]) -> str:
    """A line of CSV, with its line break."""
    return ",".join(map(_cell, cells)) + "\r\n"


def _cell(text: str) -> str:
    return '"' + ("'" if could_be_formula(text) else "") + text.replace('"', '""') + '"'


def could_be_formula(text: str) -> bool:
    """Whether a spreadsheet would run a cell with this text as a formula."""
    for character in text:
        # Full-width, small and raised forms of a character become the plain one.
        if unicodedata.normalize("NFKC", character) in _STARTS_FORMULA:
            return True
        if unicodedata.category(character) not in _SKIPPED:
            return False
    return False
