"""What an import understood and what it refused: the table of its report.

Cells come from anywhere, and reports are copied into spreadsheets and terminals: a cell is shown short, with escapes
for what does not print, and behind an apostrophe where a spreadsheet would run it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import polars as pl

from gate.encoding.canonical import canonical
from gate.encoding.csv_text import could_be_formula
from gate.ids import parse_timestamp, timestamp
from workbench.columns import IMPORTED
from workbench.engines.wording import counted
from workbench.history.mapping import Map
from workbench.history.sources import Refused
from workbench.history.values import Bound, Tally, Typed

FIRST: Final = 20
"""How many refused rows a report shows."""

_LONGEST: Final = 60
_YEAR: Final = 365
_EPOCH: Final = date(1970, 1, 1).toordinal()
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
        early: How many outcomes of imported rows are dated before their decision.
        late: How many outcomes are dated more than a year after the last case, by the day, counted from 1970.
    """

    read: int = 0
    rows: int = 0
    refused: int = 0
    first: str | None = None
    last: str | None = None
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    reasons: Mapping[tuple[str | None, str, str], int] = field(default_factory=dict)
    shown: tuple[Mapping[str, Any], ...] = ()
    early: int = 0
    late: Mapping[int, int] = field(default_factory=dict)

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
            early=self.early + other.early,
            late=_late(Counter(self.late) + Counter(other.late), last),
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
            "outcome_dates": {"before_decision": self.early, "long_after": sum(self.late.values())},
        }

    def state(self) -> dict[str, Any]:
        """All of it as JSON, from which `read_account` makes it again."""
        return {**self.to_dict(), "late": sorted(self.late.items())}


def account_of(
    typed: Typed,
    others: Sequence[Refused],
    imported: pl.DataFrame,
) -> Account:
    """The account of a stretch.

    Args:
        typed: What its rows had.
        others: The rows that were refused before, for their form, or after, for their id.
        imported: The rows that are imported, as `typed` has them.
    """
    rows = imported.height
    refused = sorted((*typed.refused, *others), key=lambda of: of.row)
    reasons = typed.reasons + Counter((of.column, of.code, of.reason) for of in others)
    times: Any = (imported["occurred_at"].min(), imported["occurred_at"].max())
    first, last = (None if of is None else timestamp(of) for of in times)
    early, days = _outcome_dates(imported)
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
        early=early,
        late=_late(days, last),
    )


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
        early=body["outcome_dates"]["before_decision"],
        late=dict(body["late"]),
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
            "least": of.least,
            "greatest": of.greatest,
            "zone": None if member.time is None else member.time.zone,
        }
        for member in map_.members
    ]


def range_of(column: Mapping[str, Any]) -> str:
    """The least and the greatest value of a column, times by the clock of its zone; empty where it has none.

    Args:
        column: A row of `columns_of`.
    """
    ends = [column["least"], column["greatest"]]
    if None in ends:
        return ""
    if column["zone"] is None:
        return " to ".join(canonical(of).decode() for of in ends)
    return " to ".join(_by_clock(parse_timestamp(of), column["zone"]) for of in ends)


def _by_clock(at: datetime, zone: str) -> str:
    try:
        return at.astimezone(ZoneInfo(zone)).isoformat(" ", "minutes")[: len("2024-06-30 12:00")]
    except OverflowError:
        # At the ends of the calendar another zone may have no such year.
        return at.isoformat(" ", "minutes")[: len("2024-06-30 12:00")]


def warnings_of(account: Account, map_: Map) -> list[str]:
    """What is odd about versions and the dates of outcomes, in sentences.

    Args:
        account: What was understood.
        map_: The map that it was read by.
    """
    told = []
    version = next((of for of in map_.members if of.name == "policy_version"), None)
    if version is not None and (absent := account.tallies.get(version.name, Tally()).absent):
        cells, have = counted(absent, "cell"), "is" if absent == 1 else "are"
        column = shown_cell(version.column)
        told.append(f"{cells} of {column} {have} empty: a row without a version gets the version {IMPORTED}.")
    if account.early:
        whole_days = any(of.name == "outcome_at" and of.time is not None and of.time.is_day for of in map_.members)
        why = " A date without a time of day is its first moment." if whole_days else ""
        told.append(f"{_dated(account.early)} before the decision.{why}")
    if late := sum(account.late.values()):
        told.append(f"{_dated(late)} more than a year after the last case. Check the format of outcome_at.")
    return told


def _dated(outcomes: int) -> str:
    return f"{counted(outcomes, 'outcome')} {'is' if outcomes == 1 else 'are'} dated"


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
