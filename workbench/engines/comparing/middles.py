"""The middle of each observed metric by version and by week, with its interval: values alone, nothing is added up."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gate.policy.effectiveness import Middle
from gate.policy.effectiveness_report import MAX_METRIC_WEEKS, MAX_MIDDLES
from gate.policy.medians import lower_rank, median_ranks
from workbench.engines.slicing import sampled_one_of, scattered


def middles(
    metrics: pl.LazyFrame, names: Sequence[str], most: Sequence[int]
) -> tuple[tuple[pl.LazyFrame, pl.LazyFrame], int]:
    """Plans of the middles by version and by week, and of how many decisions one is taken.

    Args:
        metrics: The metrics of the decisions that are looked at.
        names: The metrics that are looked at, those of the most decisions first.
        most: How many decisions have the first of them; empty without any.
    """
    one_of = sampled_one_of(max(most, default=0))
    taken = pl.lit(value=True) if one_of == 1 else scattered(pl.col("position")) % one_of == 0
    rows = metrics.filter(taken & pl.col("name").is_in(list(names[:MAX_MIDDLES])))
    week = pl.col("reported_at").dt.truncate("1w").dt.date().cast(pl.String).alias("part")
    version = pl.col("policy_version").alias("part")
    return (_sorted(rows, version), _sorted(rows, week)), one_of


def _sorted(rows: pl.LazyFrame, part: pl.Expr) -> pl.LazyFrame:
    return rows.group_by("name", part).agg(pl.col("value").sort())


def of_versions(found: pl.DataFrame) -> list[Middle]:
    """The middles by version, those of the most decisions first within a metric."""
    return sorted(_middles(found), key=lambda of: (of.name, -of.decisions, of.part))


def of_weeks(found: pl.DataFrame) -> list[Middle]:
    """The middles of the latest weeks, in their order within a metric."""
    weeks = sorted(set(found["part"]))[-MAX_METRIC_WEEKS:]
    return sorted((of for of in _middles(found) if of.part in weeks), key=lambda of: (of.name, of.part))


def _middles(found: pl.DataFrame) -> list[Middle]:
    return [
        _middle(name, part, values)
        for name, part, values in zip(found["name"], found["part"], found["value"], strict=True)
    ]


def _middle(name: str, part: str, values: pl.Series) -> Middle:
    number = values.len()
    ranks = median_ranks(number)
    low, high = (None, None) if ranks is None else (values[ranks[0] - 1], values[ranks[1] - 1])
    return Middle(name, part, number, values[lower_rank(number) - 1], low, high)
