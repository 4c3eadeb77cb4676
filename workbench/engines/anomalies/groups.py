"""In what groups decisions come: the sums over the minutes of each week that design effects follow from.

Of many decisions those of one of so many minutes are taken, by a hash of the minute, so that groups stay whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import polars as pl

from gate.policy.anomalies.counted import MAX_AGE, TERMINAL, Weeks
from gate.policy.anomalies.weekly.groups import Groups, GroupSums
from workbench.engines.slicing import scattered

MINUTE: Final = (pl.col("created_at").cast(pl.Int64) // 60_000).alias("minute")
"""The minute in which a decision was made, since 1970: those of one minute are a group."""

_NAMES: Final = GroupSums._fields
_THINNED: Final = 4
_NOTHING: Final = GroupSums()


def thinned(one_of: int) -> int:
    """Of how many decisions, or minutes, one is taken where a few tell as much: a quarter of a sample."""
    return one_of if one_of == 1 else _THINNED * one_of


def grouped(cases: pl.LazyFrame, ended: pl.Expr, one_of: int) -> pl.LazyFrame:
    """The decisions with their minute, and with their outcome and its age where it is one that is counted.

    Args:
        cases: The decisions.
        ended: Whether the action of one was let through and has a terminal outcome.
        one_of: Of so many decisions one is taken elsewhere.
    """
    one_of = thinned(one_of)
    taken = pl.lit(value=True) if one_of == 1 else scattered(MINUTE) % one_of == 0
    age = (pl.col("outcome_reported_at") - pl.col("created_at")).dt.total_days().clip(0, MAX_AGE).alias("age")
    return cases.filter(taken).select(
        "week", MINUTE, "verdict", "reason_code", age, "outcome_status", ended.alias("ended")
    )


def groups_of(decided: pl.DataFrame, weeks: Weeks) -> dict[tuple[str, str], dict[int, Groups]]:
    """The groups of every rate of some weeks, by what it is of, its value and the horizon.

    Args:
        decided: The decisions, as `grouped` gives them.
        weeks: The weeks.
    """
    at = ((pl.col("week") - pl.lit(weeks.first)).dt.total_days() // 7).alias("at")
    number = len(weeks.decisions)
    seen = decided.with_columns(at).filter(pl.col("at") >= 0)
    rows = seen.group_by("at", "minute", "verdict", "reason_code").agg(pl.len().cast(pl.Int64).alias("x"))
    outcomes = seen.filter("ended").select("at", "minute", "age", "outcome_status")
    found: dict[tuple[str, str], dict[int, Groups]] = {}
    for of, column, values in (("verdict", "verdict", weeks.verdicts), ("reason", "reason_code", weeks.reasons)):
        for value, sums in _of_values(rows, column, values, number).items():
            found[of, value] = {0: Groups(sums)}
    horizons = sorted({horizon for horizon in weeks.horizons if horizon >= 0})
    for status, by_horizon in _of_outcomes(outcomes, horizons, number).items():
        found["outcome", status] = by_horizon
    return found


def _of_values(rows: pl.DataFrame, column: str, values: Iterable[str], weeks: int) -> dict[str, list[GroupSums]]:
    x, n = pl.col("x"), pl.col("n")
    named = rows.select("at", "minute", "x", pl.col(column).alias("value"))
    # Most come alone, and need no group.
    is_shared = (named["x"] > 1) | named["minute"].is_duplicated()
    alone, shared = named.filter(~is_shared), named.filter(is_shared)
    groups = shared.group_by("at", "minute").agg(x.sum().alias("n"))
    together = shared.group_by("at", "minute", "value").agg(x.sum()).join(groups, on=["at", "minute"])
    sizes = pl.concat([alone.select("at", x.alias("n")), groups.select("at", "n")])
    wholes = sizes.group_by("at").agg(pl.len().alias("groups"), n.sum().alias("members"), (n * n).sum().alias("sizes"))
    of_weeks = {at: sums for at, *sums in wholes.iter_rows()}
    columns = ("at", "value", "x", "n")
    summed = (
        pl.concat([alone.with_columns(x.alias("n")).select(columns), together.select(columns)])
        .group_by("value", "at")
        .agg(x.sum().alias("total"), (x * n).sum().alias("products"), (x * x).sum().alias("totals"))
    )
    found = {value: _wholes(of_weeks, weeks) for value in values}
    for of, at, total, products, totals in summed.iter_rows():
        value = "" if of is None else str(of)
        if value in found:
            whole = found[value][at]
            found[value][at] = whole._replace(total=total, squares=total, products=products, totals=totals)
    return found


def _wholes(of_weeks: Mapping[int, list[int]], weeks: int) -> list[GroupSums]:
    found = []
    for at in range(weeks):
        groups, members, sizes = of_weeks.get(at, (0, 0, 0))
        found.append(GroupSums(groups=groups, members=members, sizes=sizes))
    return found


def _of_outcomes(rows: pl.DataFrame, horizons: Iterable[int], weeks: int) -> dict[str, dict[int, Groups]]:
    """Of each status and horizon the groups. Outcomes come one by one, the earliest first: what each adds to the sums
    of its minute is summed by its age, so that those of any horizon are the sums of what came by then.
    """
    ordered = rows.sort("minute", "age")
    starts = (pl.col("minute") != pl.col("minute").shift()).fill_null(value=True)
    place = pl.int_range(1, pl.len() + 1)
    before = pl.when(pl.col("starts")).then(place - 1).forward_fill()
    ordered = ordered.with_columns(starts.alias("starts")).with_columns((place - before).alias("n"))
    told = [
        pl.col("starts").sum().alias("groups"),
        pl.len().alias("members"),
        (2 * pl.col("n") - 1).sum().alias("sizes"),
    ]
    for status in TERMINAL:
        one = (pl.col("outcome_status") == status).cast(pl.Int64)
        earlier = pl.when(pl.col("starts")).then(one.cum_sum() - one).forward_fill()
        ordered = ordered.with_columns(one.alias(status), (one.cum_sum() - earlier).alias(f"{status}:x"))
        x, n, one = pl.col(f"{status}:x"), pl.col("n"), pl.col(status)
        told += [
            one.sum().alias(f"{status}:total"),
            (x * n - (x - one) * (n - 1)).sum().alias(f"{status}:products"),
            (one * (2 * x - 1)).sum().alias(f"{status}:totals"),
        ]
    added = ordered.group_by("at", "age").agg(told)
    found: dict[str, dict[int, Groups]] = {status: {} for status in TERMINAL}
    for horizon in horizons:
        summed = added.filter(pl.col("age") <= horizon).group_by("at").agg(pl.exclude("at", "age").sum())
        by_week = {row["at"]: row for row in summed.iter_rows(named=True)}
        for status in TERMINAL:
            found[status][horizon] = Groups(_sums(by_week.get(at), status) for at in range(weeks))
    return found


def _sums(row: Mapping[str, int] | None, status: str) -> GroupSums:
    if row is None:
        return _NOTHING
    total = row[f"{status}:total"]
    return GroupSums(
        groups=row["groups"],
        members=row["members"],
        total=total,
        squares=total,
        sizes=row["sizes"],
        products=row[f"{status}:products"],
        totals=row[f"{status}:totals"],
    )


def groups_of_ranks(rows: pl.DataFrame, weeks: int) -> Groups:
    """The groups of values.

    Args:
        rows: The values: {at, minute, rank}.
        weeks: How many weeks there are.
    """
    rank, n, total, squares = (pl.col(name) for name in ("rank", "n", "total", "squares"))
    shared = rows["minute"].is_duplicated()
    # Most come alone, and are summed without being grouped.
    alone = rows.filter(~shared).select(
        "at", pl.lit(1, pl.Int64).alias("n"), rank.alias("total"), (rank * rank).alias("squares")
    )
    grouped = (
        rows.filter(shared)
        .group_by("at", "minute")
        .agg(pl.len().cast(pl.Int64).alias("n"), rank.sum().alias("total"), (rank * rank).sum().alias("squares"))
    )
    summed = (
        pl.concat([alone, grouped.select(alone.columns)])
        .group_by("at")
        .agg(
            pl.len().alias("groups"),
            n.sum().alias("members"),
            total.sum(),
            squares.sum(),
            (n * n).sum().alias("sizes"),
            (n * total).sum().alias("products"),
            (total * total).sum().alias("totals"),
        )
    )
    by_week = {at: GroupSums(*sums) for at, *sums in summed.select("at", *_NAMES).iter_rows()}
    return Groups(by_week.get(at, _NOTHING) for at in range(weeks))


def groups_of_bins(shared: pl.DataFrame, weeks: Sequence[Sequence[int]]) -> list[Groups] | None:
    """Of each bin the groups of all values, of which those in it have the number 1; None where each came alone.

    Args:
        shared: The values that did not come alone in their minute: {at, minute, bin}.
        weeks: Of each week how many values, of all, there are in each bin.
    """
    if not shared.height:
        return None
    numbered = shared.select("at", "minute", "bin", pl.lit(1, pl.Int64).alias("x"))
    bins = range(len(weeks[0]))
    found = _of_values(numbered, "bin", [str(at) for at in bins], len(weeks))
    return [Groups(map(_with_others, found[str(at)], weeks, [at] * len(weeks))) for at in bins]


def _with_others(of: GroupSums, counts: Sequence[int], place: int) -> GroupSums:
    """The sums of a week with those values as well that came alone."""
    members, having = sum(counts) - of.members, counts[place] - of.total
    alone = GroupSums(members, members, having, having, members, having, having)
    return GroupSums(*map(sum, zip(of, alone, strict=True)))
