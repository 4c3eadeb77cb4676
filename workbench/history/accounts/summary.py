"""An account as reports show it: a table of the columns, and warnings in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from gate.encoding.canonical import canonical
from gate.ids import parse_timestamp
from workbench.columns import IMPORTED
from workbench.engines.wording import counted
from workbench.history.accounts.account import Account
from workbench.history.accounts.cells import shown_cell
from workbench.history.accounts.dates import Month
from workbench.history.mapping import Map
from workbench.history.values import Tally

_FAR_SHOWN: Final = 3


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
    """What is odd about versions and dates, in sentences.

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
    if far := account.dates.far():
        told.append(_far(far))
    if account.dates.early:
        whole_days = any(of.name == "outcome_at" and of.time is not None and of.time.is_day for of in map_.members)
        why = " A date without a time of day is its first moment." if whole_days else ""
        told.append(f"{_dated(account.dates.early)} before the decision.{why}")
    if late := account.dates.long_after:
        told.append(f"{_dated(late)} more than a year after the last case. Check the format of outcome_at.")
    return told


def _dated(outcomes: int) -> str:
    return f"{counted(outcomes, 'outcome')} {'is' if outcomes == 1 else 'are'} dated"


def _far(months: Mapping[str, Month]) -> str:
    """Which cases are dated far from the others, with the first row of each month."""
    rows = sum(of.rows for of in months.values())
    places = [_place(month, of) for month, of in [*months.items()][:_FAR_SHOWN]]
    if more := len(months) - len(places):
        places.append(f"and in {counted(more, 'more month')}")
    are, dates = ("is", "its date") if rows == 1 else ("are", "their dates")
    return (
        f"{counted(rows, 'row')} {are} dated more than a year away from the others: {'; '.join(places)}. Check {dates}."
    )


def _place(month: str, of: Month) -> str:
    line = "" if of.line is None else f", line {of.line:,}"
    first = f"{shown_cell(of.file)}, row {of.row:,}{line}"
    return f"in {month} {first}" if of.rows == 1 else f"in {month} {counted(of.rows, 'row')}, first {first}"
