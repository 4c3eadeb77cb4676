"""What every report asks of its rows: the latest of them, as `limit` says, and when the first and the last were."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl

from gate.ids import timestamp


def latest(rows: pl.LazyFrame, position: str, limit: int | None) -> tuple[pl.LazyFrame, bool]:
    """The rows with the greatest positions, and whether others were left out.

    Args:
        rows: The rows; no two of them have one position.
        position: The column with the chain position that counts.
        limit: How many at most; None for all.
    """
    if limit is None:
        return rows, False
    # One more than are looked at tells whether that is all.
    last = rows.select(pl.col(position).top_k(limit + 1)).collect(engine="streaming")[position].sort()
    if last.len() <= limit:
        return rows, False
    return rows.filter(pl.col(position) > last[0]), True


def date_of(moment: Any) -> str | None:
    """A moment as the protocol writes it; None where there were no rows to have one."""
    return timestamp(moment) if isinstance(moment, datetime) else None
