"""What every report asks of its rows: the latest of them, as `limit` says, and when the first and the last were."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from gate.ids import timestamp


def last_left_out(rows: pl.LazyFrame, position: str, limit: int | None) -> int | None:
    """The greatest position among those that a limit leaves out; None where it leaves out none.

    Args:
        rows: The rows; no two of them have one position.
        position: The column with the chain position that counts.
        limit: How many at most; None for all.
    """
    if limit is None:
        return None
    # Reading one more than is used tells whether there are more.
    last = rows.select(pl.col(position).top_k(limit + 1)).collect(engine="streaming")[position].sort()
    return None if last.len() <= limit else int(last[0])


def latest(rows: pl.LazyFrame, position: str, limit: int | None) -> tuple[pl.LazyFrame, bool]:
    """The rows with the greatest positions, and whether others were left out; arguments as `last_left_out`."""
    after = last_left_out(rows, position, limit)
    return (rows, False) if after is None else (rows.filter(pl.col(position) > after), True)


def date_of(moment: object) -> str | None:
    """A moment as the protocol writes it; None where there were no rows to have one."""
    return timestamp(moment) if isinstance(moment, datetime) else None
