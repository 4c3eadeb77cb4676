"""What a dry run counts, a stretch of the chain at a time: groups of decisions alike, with the latest of each.

A figure is a sum over groups, and the latest decisions of a sum are among the latest of its groups. So ten positions a
group are all that has to be kept of the decisions themselves, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

Told = tuple[str, str, str, str, str]
"""An outcome as it is compared: verdict, application verdict, action, reason code and rule."""

EXAMPLES: Final = 10
"""How many decisions stand behind a figure at most."""

CELL: Final = ("policy_version", "week", "was", "base", "then", "outcome_status", "reason")
"""What the decisions of a cell have in common."""

CHANGED: Final = ("was", "base", "then")

_COUNTED: Final = ("decisions", "valued")
_CELLS: Final = pl.Schema(
    {
        "policy_version": pl.String(),
        "week": pl.Date(),
        "was": pl.Int32(),
        "base": pl.Int32(),
        "then": pl.Int32(),
        "outcome_status": pl.String(),
        "reason": pl.Int8(),
        "decisions": pl.Int64(),
        "valued": pl.Int64(),
        "positions": pl.List(pl.Int64()),
    }
)


class Codes:
    """Outcomes as numbers, in the order in which they were first seen."""

    def __init__(self) -> None:
        """Begins with none."""
        self._codes: dict[Told, int] = {}

    def of(self, outcome: Told) -> int:
        """The number of an outcome."""
        return self._codes.setdefault(outcome, len(self._codes))

    @property
    def outcomes(self) -> list[Told]:
        """The outcomes by their numbers."""
        return list(self._codes)


@dataclass(slots=True)
class Money:
    """The values of the metric of some decisions: how many, and their sums stretch by stretch.

    Each sum is rounded once, whatever the order of its values, so that the same decisions give the same sum.
    """

    values: int = 0
    sums: list[float] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)

    def add(self, values: pl.Series) -> None:
        """Takes the values of a stretch."""
        numbers = values.to_numpy()
        self.values += len(numbers)
        self.sums.append(math.fsum(numbers))
        self.squares.append(math.fsum(numbers * numbers))

    @property
    def total(self) -> float:
        """The sum of the values."""
        return math.fsum(self.sums)

    @property
    def variance(self) -> float | None:
        """The sample's variance; None of fewer than two values."""
        if self.values < 2:
            return None
        total = self.total
        return max(0.0, (math.fsum(self.squares) - total * total / self.values) / (self.values - 1))


@dataclass(slots=True)
class Tally:
    """What was counted so far.

    Attributes:
        cells: The decisions by `CELL`: how many, how many with a value, and the latest positions.
        classes: By field, the decisions by class, base and then.
        regions: By region of the difference, how many decisions and the latest positions.
        missing: By field of the candidate, how many decisions lack it, and the latest positions.
        money: By the verdicts of base and then, the values of the metric.
    """

    cells: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_CELLS))
    classes: dict[str, pl.DataFrame] = field(default_factory=dict)
    regions: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    missing: dict[str, tuple[int, list[int]]] = field(default_factory=dict)
    money: dict[tuple[str, str], Money] = field(default_factory=dict)

    def add_cells(self, rows: pl.DataFrame) -> None:
        """Takes the decisions of a stretch, in the order of the chain."""
        self.cells = _together(self.cells, _grouped(rows, CELL).cast(_CELLS), CELL)

    def add_classes(self, name: str, rows: pl.DataFrame, code: str) -> None:
        """Takes the classes of a field in a stretch."""
        keys = (code, *CHANGED)
        self.classes[name] = _together(self.classes.get(name), _grouped(rows, keys), keys)

    def add_region(self, index: int, positions: pl.Series) -> None:
        """Takes the positions of the decisions of a stretch that are in a region."""
        self.regions[index] = _more(self.regions.get(index), positions)

    def add_missing(self, name: str, positions: pl.Series) -> None:
        """Takes the positions of the decisions of a stretch that lack a field."""
        self.missing[name] = _more(self.missing.get(name), positions)

    def add_money(self, rows: pl.DataFrame, verdicts: Mapping[int, str]) -> None:
        """Takes the values of the metric in a stretch.

        Args:
            rows: The decisions with a value that were decided anew.
            verdicts: The verdict of each outcome's number.
        """
        named = rows.select(
            "value",
            *(pl.col(of).replace_strict(verdicts, return_dtype=pl.String) for of in ("base", "then")),
        )
        for (before, after), part in named.partition_by("base", "then", as_dict=True).items():
            self.money.setdefault((str(before), str(after)), Money()).add(part["value"])


def _grouped(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    return rows.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias("decisions"),
        pl.col("value").count().cast(pl.Int64).alias("valued"),
        pl.col("position").tail(EXAMPLES).alias("positions"),
    )


def _together(before: pl.DataFrame | None, new: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    if before is None:
        return new
    return (
        pl.concat([before, new])
        .group_by(keys)
        .agg(
            *(pl.col(name).sum() for name in _COUNTED),
            # Of a later stretch are later positions.
            pl.col("positions").explode().sort().tail(EXAMPLES),
        )
    )


def _more(before: tuple[int, list[int]] | None, positions: pl.Series) -> tuple[int, list[int]]:
    count, latest = before or (0, [])
    return count + len(positions), [*latest, *positions.tail(EXAMPLES).to_list()][-EXAMPLES:]
