"""What an import understood and what it refused, added up stretch by stretch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import polars as pl

from gate.ids import timestamp
from workbench.history.accounts.cells import shown_cell, shown_refused
from workbench.history.accounts.dates import Dates, dates_of, read_dates
from workbench.history.sources import Refused
from workbench.history.values import Bound, Tally, Typed

FIRST: Final = 20
"""How many refused rows a report shows."""

_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Account:
    """What was understood so far.

    Attributes:
        read: How many rows were read.
        rows: How many of them are imported; each has the position of its place among them.
        refused: How many are not.
        first: The earliest event time of an imported row.
        last: The latest.
        tallies: What the rows had, by member.
        reasons: How many rows have each fault, by column and reason; a row may have several.
        shown: The first refused rows, as JSON.
        dates: Dates of imported rows that are odd among the others.
    """

    read: int = 0
    rows: int = 0
    refused: int = 0
    first: str | None = None
    last: str | None = None
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    reasons: Mapping[tuple[str | None, str, str], int] = field(default_factory=dict)
    shown: tuple[Mapping[str, Any], ...] = ()
    dates: Dates = field(default_factory=Dates)

    def plus(self, other: Account) -> Account:
        """With the rows after these."""
        last = max((of for of in (self.last, other.last) if of), default=None)
        names = [*self.tallies, *(name for name in other.tallies if name not in self.tallies)]
        return Account(
            read=self.read + other.read,
            rows=self.rows + other.rows,
            refused=self.refused + other.refused,
            first=min((of for of in (self.first, other.first) if of), default=None),
            last=last,
            tallies={name: _sum(self.tallies.get(name), other.tallies.get(name)) for name in names},
            reasons=Counter(self.reasons) + Counter(other.reasons),
            shown=(*self.shown, *other.shown)[:FIRST],
            dates=self.dates.plus(other.dates, last),
        )

    def to_dict(self) -> dict[str, Any]:
        """The account as JSON."""
        return {
            "read": self.read,
            "rows": self.rows,
            "refused": self.refused,
            "from": self.first,
            "to": self.last,
            "columns": {
                name: {
                    "values": of.values,
                    "absent": of.absent,
                    "refused": of.refused,
                    "examples": list(of.examples),
                    "least": of.least,
                    "greatest": of.greatest,
                }
                for name, of in self.tallies.items()
            },
            "reasons": [
                {"column": column, "code": code, "reason": reason, "rows": count}
                for (column, code, reason), count in sorted(
                    self.reasons.items(), key=lambda each: (-each[1], each[0][0] or "", each[0][1:])
                )
            ],
            "first_refused": [dict(of) for of in self.shown],
            "outcome_dates": {"before_decision": self.dates.early, "long_after": self.dates.long_after},
        }

    def state(self) -> dict[str, Any]:
        """All of it as JSON, from which `read_account` makes it again."""
        return {**self.to_dict(), "dates": self.dates.state()}


def account_of(
    typed: Typed,
    others: Sequence[Refused],
    imported: pl.DataFrame,
    file: str,
) -> Account:
    """The account of a stretch.

    Args:
        typed: What its rows had.
        others: The rows that were refused before, for their form, or after, for their id.
        imported: The rows that are imported, as `typed` has them.
        file: What messages call their file.
    """
    rows = imported.height
    refused = sorted((*typed.refused, *others), key=lambda of: of.row)
    reasons = typed.reasons + Counter((of.column, of.code, of.reason) for of in others)
    times: Any = (imported["occurred_at"].min(), imported["occurred_at"].max())
    first, last = (None if of is None else timestamp(of) for of in times)
    return Account(
        read=rows + len(refused),
        rows=rows,
        refused=len(refused),
        first=first,
        last=last,
        tallies={name: replace(of, examples=tuple(map(shown_cell, of.examples))) for name, of in typed.tallies.items()},
        reasons={
            (None if column is None else shown_cell(column), code, reason): rows
            for (column, code, reason), rows in reasons.items()
        },
        shown=tuple(map(shown_refused, refused[:FIRST])),
        dates=dates_of(imported, file, last),
    )


def read_account(body: Mapping[str, Any]) -> Account:
    """The account of a `state`."""
    return Account(
        read=body["read"],
        rows=body["rows"],
        refused=body["refused"],
        first=body["from"],
        last=body["to"],
        tallies={
            name: Tally(
                *(of["values"], of["absent"], of["refused"], tuple(of["examples"])), of["least"], of["greatest"]
            )
            for name, of in body["columns"].items()
        },
        reasons={(of["column"], of["code"], of["reason"]): of["rows"] for of in body["reasons"]},
        shown=tuple(body["first_refused"]),
        dates=read_dates(body["dates"]),
    )


def _sum(one: Tally | None, other: Tally | None) -> Tally:
    one, other = one or Tally(), other or Tally()
    return Tally(
        one.values + other.values,
        one.absent + other.absent,
        one.refused + other.refused,
        (*one.examples, *other.examples)[:_EXAMPLES],
        _end(min, one.least, other.least),
        _end(max, one.greatest, other.greatest),
    )


def _end(choose: Callable[..., Any], one: Bound, other: Bound) -> Bound:
    there = [of for of in (one, other) if of is not None]
    return choose(there) if there else None
