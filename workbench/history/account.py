"""What an import understood and what it refused: the table of its report.

Cells come from anywhere, and reports are copied into spreadsheets and terminals: a cell is shown short, with escapes
for what does not print, and behind an apostrophe where a spreadsheet would run it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from gate.encoding.csv_text import could_be_formula
from gate.ids import timestamp
from workbench.history.mapping import Map
from workbench.history.sources import Refused
from workbench.history.values import Tally, Typed

FIRST: Final = 20
"""How many refused rows a report shows."""

_LONGEST: Final = 60
# A negative number begins like a formula, and is none.
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_EXAMPLES: Final = 3


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
    """

    read: int = 0
    rows: int = 0
    refused: int = 0
    first: str | None = None
    last: str | None = None
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    reasons: Mapping[tuple[str | None, str, str], int] = field(default_factory=dict)
    shown: tuple[Mapping[str, Any], ...] = ()

    def plus(self, other: Account) -> Account:
        """With the rows after these."""
        names = [*self.tallies, *(name for name in other.tallies if name not in self.tallies)]
        return Account(
            read=self.read + other.read,
            rows=self.rows + other.rows,
            refused=self.refused + other.refused,
            first=min((of for of in (self.first, other.first) if of), default=None),
            last=max((of for of in (self.last, other.last) if of), default=None),
            tallies={name: _sum(self.tallies.get(name), other.tallies.get(name)) for name in names},
            reasons=Counter(self.reasons) + Counter(other.reasons),
            shown=(*self.shown, *other.shown)[:FIRST],
        )

    def to_dict(self) -> dict[str, Any]:
        """The account as JSON, from which `read_account` makes it again."""
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
        }


def account_of(
    typed: Typed,
    others: Sequence[Refused],
    times: tuple[datetime | None, datetime | None],
    rows: int,
) -> Account:
    """The account of a stretch.

    Args:
        typed: What its rows had.
        others: The rows that were refused before, for their form, or after, for their id.
        times: The earliest and the latest event time of the imported ones.
        rows: How many are imported.
    """
    refused = sorted((*typed.refused, *others), key=lambda of: of.row)
    reasons = typed.reasons + Counter((of.column, of.code, of.reason) for of in others)
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
    )


def read_account(body: Mapping[str, Any]) -> Account:
    """The account that was written as JSON."""
    return Account(
        read=body["read"],
        rows=body["rows"],
        refused=body["refused"],
        first=body["from"],
        last=body["to"],
        tallies={
            name: Tally(of["values"], of["absent"], of["refused"], tuple(of["examples"]))
            for name, of in body["columns"].items()
        },
        reasons={(of["column"], of["code"], of["reason"]): of["rows"] for of in body["reasons"]},
        shown=tuple(body["first_refused"]),
    )


def columns_of(account: Account, map_: Map) -> list[dict[str, Any]]:
    """The table of a report: what was made of each column, a row for each member of the map."""
    nothing = Tally()
    return [
        {
            "column": shown_cell(member.column),
            "member": member.name,
            "type": member.kind if member.time is None else member.time.format,
            "values": (of := account.tallies.get(member.name, nothing)).values,
            "absent": of.absent,
            "refused": of.refused,
            "examples": list(of.examples),
        }
        for member in map_.members
    ]


def _sum(one: Tally | None, other: Tally | None) -> Tally:
    one, other = one or Tally(), other or Tally()
    return Tally(
        one.values + other.values,
        one.absent + other.absent,
        one.refused + other.refused,
        (*one.examples, *other.examples)[:_EXAMPLES],
    )
