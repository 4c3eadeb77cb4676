"""Plain text tables."""

from __future__ import annotations

from collections.abc import Sequence


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table: the first column to the left, the others to the right."""
    widths = [max(len(row[index]) for row in [columns, *rows]) for index in range(len(columns))]
    rule = ["-" * width for width in widths]
    return "\n".join(_line(row, widths) for row in [columns, rule, *rows])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]).rstrip()
