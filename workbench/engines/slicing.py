"""The latest of some rows, as every report's `limit` asks for."""

from __future__ import annotations

import polars as pl


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
