"""The middle of each observed metric by version and by week, with its interval: values alone, nothing is added up."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gate.policy.effectiveness import Middle
from gate.policy.effectiveness_report import MAX_METRIC_WEEKS, MAX_MIDDLES
from gate.policy.medians import lower_rank, median_ranks


def middles(values: pl.DataFrame, names: Sequence[str], cases: pl.DataFrame) -> tuple[list[Middle], list[Middle]]:
    """The middles by version, those of the most decisions first within a metric; and by week, in their order.

    Args:
        values: What was measured: {position, name, value}.
        names: The metrics that are looked at, those of the most decisions first.
        cases: The decisions: {position, policy_version, week}.
    """
    rows = values.filter(pl.col("name").is_in(list(names[:MAX_MIDDLES]))).join(cases, on="position", how="inner")
    by_version, by_week = (_middles(rows, part) for part in ("policy_version", "week"))
    weeks = set(sorted({of.part for of in by_week})[-MAX_METRIC_WEEKS:])
    order = {name: at for at, name in enumerate(names)}
    return (
        sorted(by_version, key=lambda of: (order[of.name], -of.decisions, of.part)),
        sorted((of for of in by_week if of.part in weeks), key=lambda of: (order[of.name], of.part)),
    )


def _middles(rows: pl.DataFrame, part: str) -> list[Middle]:
    grouped = rows.group_by("name", pl.col(part).cast(pl.String)).agg(pl.col("value").sort())
    return [_middle(*row) for row in zip(*(grouped[name] for name in ("name", part, "value")), strict=True)]


def _middle(name: str, part: str, values: pl.Series) -> Middle:
    number = values.len()
    ranks = median_ranks(number)
    low, high = (None, None) if ranks is None else (values[ranks[0] - 1], values[ranks[1] - 1])
    return Middle(name, part, number, values[lower_rank(number) - 1], low, high)
