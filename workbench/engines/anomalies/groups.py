"""In how large groups decisions arrive, and how far those of one group are alike: a group is what one minute has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from gate.policy.anomalies import statistics
from gate.policy.anomalies.counted import Weeks
from workbench.columns import TIME
from workbench.engines.anomalies.broken import ACTED, ENDED
from workbench.engines.slicing import scattered

_MINUTE: Final = (pl.col("created_at").cast(pl.Int64) // 60_000).alias("minute")
"""The minute in which a decision was made, since 1970: those of one minute are a group."""

_HOUR_MS: Final = 3_600_000


def by_minute(cases: pl.LazyFrame) -> pl.LazyFrame:
    """The decisions of each minute."""
    return cases.group_by(_MINUTE).agg(pl.len().cast(pl.Int64).alias("decisions"))


def hours_of(minutes: pl.DataFrame) -> pl.DataFrame:
    """The decisions of each hour, and the sum over its minutes of theirs, squared."""
    hour = (pl.col("minute") // 60 * _HOUR_MS).cast(TIME).alias("hour")
    decisions = pl.col("decisions")
    return minutes.group_by(hour).agg(decisions.sum(), (decisions * decisions).sum().alias("squares"))


def alike_by_minute(cases: pl.LazyFrame, one_of: int) -> list[pl.LazyFrame]:
    """Of verdicts, reasons and terminal outcomes the decisions of each week, minute and value; of many, those of one of
    so many minutes.
    """
    taken = cases if one_of == 1 else cases.filter(scattered(_MINUTE) % one_of == 0)
    rows = (taken, taken, taken.filter(ENDED & ACTED))
    return [
        of.group_by("week", _MINUTE, pl.col(name).cast(pl.String).alias("value")).agg(
            pl.len().cast(pl.Int64).alias("x")
        )
        for of, name in zip(rows, ("verdict", "reason_code", "outcome_status"), strict=True)
    ]


def with_groups(weeks: Weeks, hours: pl.DataFrame, alike: Sequence[pl.DataFrame]) -> Weeks:
    """The weeks with what is known of the groups in which decisions arrive."""
    at = ((pl.col("hour").dt.truncate("1w").dt.date() - pl.lit(weeks.first)).dt.total_days() // 7).alias("at")
    summed = hours.group_by(at).agg(pl.col("squares").sum()).filter(pl.col("at") >= 0)
    squares = dict(summed.iter_rows())
    found: dict[tuple[str, str], float] = {}
    for of, rows in zip(("verdict", "reason", "outcome"), alike, strict=True):
        for value, sums in _sums_of_groups(rows.filter(pl.col("week") >= weeks.first)).items():
            looked_at = of != "reason" or value in weeks.reasons
            if looked_at and (correlation := statistics.alike(sums)):
                found[of, value] = correlation
    return replace(weeks, squares=[squares.get(week, 0) for week in range(len(weeks.decisions))], alike=found)


def _sums_of_groups(rows: pl.DataFrame) -> dict[str, list[tuple[int, ...]]]:
    """Of each value and week what `statistics.alike` takes."""
    x, n = pl.col("x"), pl.col("n")
    groups = rows.group_by("week", "minute").agg(x.sum().alias("n"))
    whole = groups.group_by("week").agg(n.sum().alias("decisions"), (n * n).sum().alias("squares"))
    joined = rows.join(groups, on=["week", "minute"])
    summed = joined.group_by("value", "week").agg(
        x.sum().alias("having"), (x * n).sum().alias("products"), (x * x).sum().alias("having_squares")
    )
    found: dict[str, list[tuple[int, ...]]] = {}
    named = summed.join(whole, on="week").sort("value", "week")
    for value, *sums in named.select(
        "value", "decisions", "having", "squares", "products", "having_squares"
    ).iter_rows():
        found.setdefault(value or "", []).append(tuple(sums))
    return found
