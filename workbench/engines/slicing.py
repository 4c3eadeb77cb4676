"""Helpers that reports share: the latest rows under `limit`, their first and last dates, and their results."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final

import polars as pl

from gate.ids import timestamp
from gate.policy.confidence import Counts, wilson_interval
from gate.policy.effectiveness import share
from gate.policy.questions import PolicyQuestion
from workbench.lake.reader import Snapshot

MAX_SAMPLED: Final = 100_000
"""The approximate number of decisions in a sample, where a sample is enough."""


def looked_at(snapshot: Snapshot, question: PolicyQuestion) -> Snapshot:
    """The decisions that a question selects by date, before its version is applied."""
    return snapshot.on(question.clock).slice(question.since, question.until, question.verdict)


def sampled_one_of(decisions: int) -> int:
    """The sampling step: one in this many decisions is taken. It is a power of two."""
    return 1 << max(0, math.ceil(math.log2(decisions / MAX_SAMPLED))) if decisions else 1


def scattered(number: pl.Expr) -> pl.Expr:
    """Numbers without any pattern of the given ones: the upper half of Knuth's multiplicative hash."""
    return (number % 2**20 * 2654435761 % 2**32) // 2**16


def taken(one_of: int) -> pl.Expr:
    """Whether a row is in a sample, by its decision's chain position. All tables sample the same decisions."""
    return pl.lit(value=True) if one_of == 1 else scattered(pl.col("position")) % one_of == 0


def lower_quantiles(values: pl.Series, parts: int) -> list[float]:
    """The values that divide all into equal parts: those at floor((n - 1) k / parts) in order, for k from 1."""
    ordered = values.sort()
    return ordered.gather([(ordered.len() - 1) * part // parts for part in range(1, parts)]).to_list()


def last_left_out(rows: pl.LazyFrame, position: str, limit: int | None) -> int | None:
    """The greatest position that a limit leaves out; None if it leaves out none.

    Args:
        rows: The rows, each with a different position.
        position: The column with the chain position.
        limit: The most rows; None for all.
    """
    if limit is None:
        return None
    # Reading one more than is used tells whether there are more.
    last = rows.select(pl.col(position).top_k(limit + 1)).collect(engine="streaming")[position].sort()
    return None if last.len() <= limit else int(last[0])


def latest(rows: pl.LazyFrame, position: str, limit: int | None) -> tuple[pl.LazyFrame, bool]:
    """The rows with the greatest positions, and whether others were left out. The arguments are those of
    `last_left_out`.
    """
    after = last_left_out(rows, position, limit)
    return (rows, False) if after is None else (rows.filter(pl.col(position) > after), True)


def date_of(moment: object) -> str | None:
    """A moment in the format of the protocol; None without rows."""
    return timestamp(moment) if isinstance(moment, datetime) else None


def by_status() -> list[pl.Expr]:
    """The fields of `Standing`, summed over groups of `decisions` that share one `outcome_status`."""
    decisions, status = pl.col("decisions"), pl.col("outcome_status")
    counted = {name: status == name for name in Counts._fields} | {"unreported": status.is_null()}
    return [decisions.filter(has).sum().cast(pl.Int64).alias(name) for name, has in counted.items()]


def rated(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with the columns of `by_status`, and `decisions`, `terminal`, `success_rate`, `low` and `high` of these."""
    terminal = pl.sum_horizontal("succeeded", "partial", "failed", "reverted")
    rows = rows.with_columns(
        pl.sum_horizontal(*Counts._fields, "unreported").alias("decisions"), terminal.alias("terminal")
    )
    # The formulas round as Python does; few rows differ in what the formulas read.
    told = rows.select("succeeded", "terminal").unique()
    rates = [(share(*of), *wilson_interval(*of)) for of in told.iter_rows()]
    types = dict.fromkeys(("success_rate", "low", "high"), pl.Float64)
    found = pl.concat([told, pl.DataFrame(rates, schema=types, orient="row")], how="horizontal")
    return rows.join(found, on=["succeeded", "terminal"], how="left", maintain_order="left")
