"""Cells as reports show them.

Cells can contain anything, and people copy reports into spreadsheets and terminals. So a cell is shortened, unprintable
characters are escaped, and an apostrophe precedes a cell that a spreadsheet would run.
"""

from __future__ import annotations

import re
from typing import Any, Final

from gate.encoding.csv_text import could_be_formula
from workbench.history.sources import Refused

_LONGEST: Final = 60
# A negative number begins like a formula, and is none.
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def shown_cell(text: str) -> str:
    """A cell as reports show it."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    escaped = "".join(of if of.isprintable() else of.encode("unicode_escape").decode() for of in cut)
    return f"'{escaped}" if could_be_formula(text) and not _NUMBER.fullmatch(text) else escaped


def shown_refused(of: Refused) -> dict[str, Any]:
    """A refused row as JSON."""
    return {
        "file": shown_cell(of.file),
        "row": of.row,
        "line": of.line,
        "column": None if of.column is None else shown_cell(of.column),
        "value": None if of.value is None else shown_cell(of.value),
        "code": of.code,
        "reason": of.reason,
    }
