"""The minute in which decisions were made, and whether it is known.

If nearly all decisions are dated to a whole quarter of an hour, such as in files without a time of day, their minutes
are unknown. Each decision then counts as a single arrival.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from gate.policy.anomalies.volume import most_arrivals
from workbench.columns import TIME

MINUTE: Final = (pl.col("created_at").cast(pl.Int64) // 60_000).alias("minute")
"""The minute in which a decision was made, since 1970: those of one minute are a group."""

_HOUR_MS: Final = 3_600_000
_QUARTER_MS: Final = 900_000
_ROUND: Final = (pl.col("created_at").cast(pl.Int64) % _QUARTER_MS == 0).alias("round")
# Beyond any minute of the calendar.
_ALONE: Final = 2**40
# Nearly all: 19 of 20.
_NEARLY: Final = (19, 20)


def by_minute(cases: pl.LazyFrame) -> pl.LazyFrame:
    """The decisions of each minute, and how many of them are dated to a whole quarter of an hour."""
    return cases.group_by(MINUTE).agg(pl.len().cast(pl.Int64).alias("decisions"), _ROUND.cast(pl.Int64).sum())


def are_untimed(minutes: pl.DataFrame) -> bool:
    """Whether nearly all decisions are dated to a whole quarter of an hour, and several to one: no clock does that.

    Args:
        minutes: As `by_minute` gives them.
    """
    part, of = _NEARLY
    decisions, whole = minutes.select("decisions", "round").sum().row(0)
    return of * whole >= part * decisions and bool((minutes["round"] > 1).any())


def minute_of(*, untimed: bool) -> pl.Expr:
    """The minute in which a decision was made; where minutes are not known, a number of its own.

    Args:
        untimed: Whether they are not; see `are_untimed`.
    """
    if not untimed:
        return MINUTE
    return pl.when(_ROUND).then(_ALONE + pl.col("position").cast(pl.Int64)).otherwise(MINUTE).alias("minute")


def hours_of(minutes: pl.DataFrame, *, untimed: bool) -> pl.DataFrame:
    """The decisions of each hour, and the number of arrivals they count as.

    Args:
        minutes: The minutes from `by_minute`.
        untimed: Whether minutes are unknown.
    """
    hour = (pl.col("minute") // 60 * _HOUR_MS).cast(TIME).alias("hour")
    alone = pl.col("round") if untimed else pl.lit(0, pl.Int64)
    together = (pl.col("decisions") - alone).alias("together")
    of_minutes = minutes.select(hour, "decisions", together)
    found = of_minutes.group_by("hour").agg(pl.col("decisions", "together").sum())
    # Of one decision in a minute there is nothing to leave out.
    several = of_minutes.filter(pl.col("together") > 1).select("hour", of="together").join(found, on="hour")
    others = several["together"] - several["of"]
    most = {number: most_arrivals(number) for number in others.unique()}
    beyond = several["of"] - others.replace_strict(most, return_dtype=pl.Int64)
    left_out = several.select("hour", beyond.clip(lower_bound=0).alias("left_out")).group_by("hour").sum()
    arrivals = (pl.col("decisions") - pl.col("left_out").fill_null(0)).alias("arrivals")
    return found.join(left_out, on="hour", how="left").select("hour", "decisions", arrivals)
