"""A table of numbers as a value: its columns, and cells that may lead somewhere. `numbers.html` writes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell.

    Attributes:
        text: What it says.
        url: Where it leads; None where nowhere.
    """

    text: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        name: Its heading.
        number: Whether its cells are numbers, which are compared from the right.
    """

    name: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of numbers.

    Attributes:
        label: Its name for screen readers.
        caption: What the numbers count.
        columns: The columns; the first names the row.
        rows: The rows, a cell for each column.
    """

    label: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def table(label: str, caption: str, columns: Iterable[str], rows: Iterable[Iterable[Cell | str]]) -> Table:
    """A table of numbers.

    Args:
        label: As `Table`.
        caption: As `Table`.
        columns: The headings; one that begins with `#` is that of numbers.
        rows: The rows; a text is a cell that leads nowhere.
    """
    named = tuple(Column(name.removeprefix("#"), name.startswith("#")) for name in columns)
    return Table(
        label,
        caption,
        named,
        tuple(tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row) for row in rows),
    )
