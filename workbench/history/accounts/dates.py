"""Dates that are unusual among the others, counted by stretch.

A date that means that there is none, such as 1900-01-01, looks like any other. Its distance from the other cases gives
it away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, NamedTuple

import polars as pl

from workbench.history.sources import LINE, ROW

_YEAR: Final = 365
_MONTHS: Final = 12
_EPOCH: Final = date(1970, 1, 1).toordinal()


class Month(NamedTuple):
    """The cases of a month.

    Attributes:
        rows: How many there are.
        file: The file of the first of them.
        row: Its number in the file, from 1.
        line: The line it begins on; None where files have no lines.
    """

    rows: int
    file: str
    row: int
    line: int | None

    def plus(self, other: Month | None) -> Month:
        """With those of later rows."""
        return self if other is None else self._replace(rows=self.rows + other.rows)


@dataclass(frozen=True, slots=True)
class Dates:
    """The dates of imported rows, as far as they can still turn out odd.

    Attributes:
        early: How many outcomes are dated before their decision.
        late: How many outcomes are dated more than a year after the last case, by the day, counted from 1970.
        months: The cases of each month, counted from the year 0.
    """

    early: int = 0
    late: Mapping[int, int] = field(default_factory=dict)
    months: Mapping[int, Month] = field(default_factory=dict)

    def plus(self, other: Dates, last: str | None) -> Dates:
        """With those of the rows after these.

        Args:
            other: Those of the rows after.
            last: When the last case of all was decided.
        """
        months = {at: self.months[at].plus(other.months.get(at)) for at in self.months}
        late = _late(Counter(self.late) + Counter(other.late), last)
        return Dates(self.early + other.early, late, {**other.months, **months})

    @property
    def long_after(self) -> int:
        """How many outcomes are dated more than a year after the last case."""
        return sum(self.late.values())

    def far(self) -> dict[str, Month]:
        """The months whose cases lie more than a year from those of the greatest group, in their order: `1900-01`."""
        groups: list[list[int]] = []
        for at in sorted(self.months):
            if groups and at - groups[-1][-1] <= _MONTHS:
                groups[-1].append(at)
            else:
                groups.append([at])
        most = max(groups, key=lambda group: sum(self.months[at].rows for at in group), default=[])
        return {f"{at // 12:04}-{at % 12 + 1:02}": self.months[at] for of in groups if of is not most for at in of}

    def state(self) -> dict[str, Any]:
        """All of it as JSON, from which `read_dates` makes it again."""
        return {
            "early": self.early,
            "late": sorted(self.late.items()),
            "months": [[at, *of] for at, of in sorted(self.months.items())],
        }


def read_dates(body: Mapping[str, Any]) -> Dates:
    """The dates of a `state`."""
    return Dates(body["early"], dict(body["late"]), {at: Month(*of) for at, *of in body["months"]})


def dates_of(rows: pl.DataFrame, file: str, last: str | None) -> Dates:
    """The dates of a stretch.

    Args:
        rows: The rows that are imported.
        file: What messages call their file.
        last: When the last of them was decided.
    """
    early, days = _outcome_dates(rows)
    return Dates(early, _late(days, last), _months(rows, file))


def _months(rows: pl.DataFrame, file: str) -> dict[int, Month]:
    decided = pl.col("occurred_at").dt
    month = (decided.year().cast(pl.Int64) * 12 + decided.month() - 1).alias("month")
    first = rows.group_by(month, maintain_order=True).agg(pl.len(), pl.col(ROW, LINE).first())
    return {at: Month(count, file, row, line) for at, count, row, line in first.iter_rows()}


def _outcome_dates(rows: pl.DataFrame) -> tuple[int, Mapping[int, int]]:
    """How many outcomes are dated before their decision, and how many are dated on each day."""
    if not {"outcome", "outcome_at"} <= {*rows.columns}:
        return 0, {}
    dated = rows.filter(pl.col("outcome").is_not_null() & pl.col("outcome_at").is_not_null())
    early = dated.select((pl.col("outcome_at") < pl.col("occurred_at")).sum()).item()
    days = dated.group_by(pl.col("outcome_at").dt.epoch("d").alias("day")).agg(pl.len())
    return int(early), dict(days.iter_rows())


def _late(days: Mapping[int, int], last: str | None) -> dict[int, int]:
    """The days more than a year after the last case. A later case never makes another day late, so that the days of
    most outcomes need not be kept.
    """
    if last is None:
        return {}
    latest = date.fromisoformat(last[:10]).toordinal() - _EPOCH + _YEAR
    return {day: count for day, count in days.items() if day > latest}
