"""The groups in which decisions arrive: the sums over the minutes of each week from which design effects follow.

Of many decisions, whole minutes are sampled by a hash of the minute, so that groups stay complete. Minutes with many
decisions are all taken, because one of them can dominate a week.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import polars as pl

from gate.policy.anomalies.counted import MAX_AGE, TERMINAL, Weeks
from gate.policy.anomalies.weekly.groups import Groups, GroupSums
from workbench.columns import NO_VERDICT
from workbench.engines.anomalies.broken import ACTED, ENDED
from workbench.engines.anomalies.minutes import minute_of
from workbench.engines.slicing import scattered

_NAMES: Final = GroupSums._fields
_THINNED: Final = 2
_NOTHING: Final = GroupSums()
# Only imported cases may have no verdict.
_UNNAMED: Final = {"verdict": NO_VERDICT}


def thinned(one_of: int) -> int:
    """Of how many decisions, or minutes, one is taken where a few tell as much: half of a sample."""
    return one_of if one_of == 1 else _THINNED * one_of


def age_in_days() -> pl.Expr:
    """How many whole days after its decision an outcome came, `MAX_AGE` at most. An imported outcome may have no date:
    it has come at some time, and only the last horizon holds it.
    """
    return (pl.col("outcome_reported_at") - pl.col("created_at")).dt.total_days().clip(0, MAX_AGE).fill_null(MAX_AGE)


def week_of(weeks: Weeks) -> pl.Expr:
    """The index of a row's week."""
    return ((pl.col("week") - pl.lit(weeks.first)).dt.total_days() // 7).cast(pl.Int32).alias("at")


def in_weeks(rows: pl.DataFrame, weeks: Weeks) -> pl.DataFrame:
    """The rows of the weeks that are looked at, with the index of theirs as `at`."""
    return rows.with_columns(week_of(weeks)).filter(pl.col("at").is_between(0, len(weeks.decisions) - 1))


def grouped(cases: pl.LazyFrame, one_of: int, *, untimed: bool) -> pl.LazyFrame:
    """The decisions with their minute, and with their outcome and its age where it is one that is counted.

    Args:
        cases: The decisions.
        one_of: Of so many decisions one is taken elsewhere.
        untimed: Whether minutes are not known.
    """
    one_of, minute = thinned(one_of), minute_of(untimed=untimed)
    return _told(cases if one_of == 1 else cases.filter(scattered(minute) % one_of == 0), one_of, minute)


def with_great(
    taken: pl.DataFrame, minutes: pl.DataFrame, cases: pl.LazyFrame, one_of: int, *, untimed: bool
) -> pl.DataFrame:
    """The sampled decisions, and those of every minute that has many.

    Args:
        taken: The decisions from `grouped`.
        minutes: The minutes from `by_minute`.
        cases: The decisions.
        one_of: The sampling step used elsewhere.
        untimed: Whether minutes are unknown.
    """
    together = pl.col("decisions") - pl.col("round") if untimed else pl.col("decisions")
    great = minutes.filter(together > thinned(one_of))["minute"]
    if one_of == 1 or not great.len():
        return taken
    minute = minute_of(untimed=untimed)
    rows = _told(cases.filter(minute.is_in(great.implode())), 1, minute).collect(engine="streaming")
    return pl.concat([taken.filter(~pl.col("minute").is_in(great.implode())), rows])


def _told(cases: pl.LazyFrame, weight: int, minute: pl.Expr) -> pl.LazyFrame:
    return cases.select(
        "week",
        minute,
        "verdict",
        "reason_code",
        age_in_days().alias("age"),
        "outcome_status",
        (ENDED & ACTED).alias("ended"),
        pl.lit(weight, pl.Int64).alias("w"),
    )


def groups_of(decided: pl.DataFrame, weeks: Weeks) -> dict[tuple[str, str], dict[int, Groups]]:
    """The groups of every rate of some weeks, by what it is of, its value and the horizon.

    Args:
        decided: The decisions, as `with_great` gives them.
        weeks: The weeks.
    """
    number = len(weeks.decisions)
    seen = in_weeks(decided, weeks)
    rows = seen.group_by("at", "minute", "verdict", "reason_code", "w").agg(pl.len().cast(pl.Int64).alias("x"))
    outcomes = seen.filter("ended").select("at", "minute", "age", "outcome_status", "w")
    found: dict[tuple[str, str], dict[int, Groups]] = {}
    for of, column, values in (("verdict", "verdict", weeks.verdicts), ("reason", "reason_code", weeks.reasons)):
        for value, sums in _of_values(rows, column, values, number).items():
            found[of, value] = {0: Groups(sums)}
    horizons = sorted({horizon for horizon in weeks.horizons if horizon >= 0})
    for status, by_horizon in _of_outcomes(outcomes, horizons, number).items():
        found["outcome", status] = by_horizon
    return found


def _of_values(rows: pl.DataFrame, column: str, values: Iterable[str], weeks: int) -> dict[str, list[GroupSums]]:
    x, n, w = pl.col("x"), pl.col("n"), pl.col("w")
    named = rows.select("at", "minute", "x", "w", pl.col(column).alias("value"))
    # Most come alone, and need no group.
    is_shared = (named["x"] > 1) | named["minute"].is_duplicated()
    alone, shared = named.filter(~is_shared), named.filter(is_shared)
    groups = shared.group_by("at", "minute", "w").agg(x.sum().alias("n"))
    together = shared.group_by("at", "minute", "value", "w").agg(x.sum()).join(groups, on=["at", "minute", "w"])
    sizes = pl.concat([alone.select("at", x.alias("n"), "w"), groups.select("at", "n", "w")])
    wholes = sizes.group_by("at").agg(
        w.sum().alias("groups"), (w * n).sum().alias("members"), (w * n * n).sum().alias("sizes")
    )
    of_weeks = {at: sums for at, *sums in wholes.iter_rows()}
    columns = ("at", "value", "x", "n", "w")
    summed = (
        pl.concat([alone.with_columns(x.alias("n")).select(columns), together.select(columns)])
        .group_by("value", "at")
        .agg((w * x).sum().alias("total"), (w * x * n).sum().alias("products"), (w * x * x).sum().alias("totals"))
    )
    found = {value: _wholes(of_weeks, weeks) for value in values}
    for of, at, total, products, totals in summed.iter_rows():
        value = _UNNAMED.get(column, "") if of is None else str(of)
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
    w, n = pl.col("w"), pl.col("n")
    told = [
        (w * pl.col("starts")).sum().alias("groups"),
        w.sum().alias("members"),
        (w * (2 * n - 1)).sum().alias("sizes"),
    ]
    for status in TERMINAL:
        one = (pl.col("outcome_status") == status).cast(pl.Int64)
        earlier = pl.when(pl.col("starts")).then(one.cum_sum() - one).forward_fill()
        ordered = ordered.with_columns(one.alias(status), (one.cum_sum() - earlier).alias(f"{status}:x"))
        x, one = pl.col(f"{status}:x"), pl.col(status)
        told += [
            (w * one).sum().alias(f"{status}:total"),
            (w * (x * n - (x - one) * (n - 1))).sum().alias(f"{status}:products"),
            (w * one * (2 * x - 1)).sum().alias(f"{status}:totals"),
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
    """For each bin, the groups of all values, in which the values of the bin have the number 1; None if each came
    alone.

    Args:
        shared: The values that did not come alone in their minute: {at, minute, bin}.
        weeks: For each week, the number of values in each bin.
    """
    if not shared.height:
        return None
    one = pl.lit(1, pl.Int64)
    numbered = shared.select("at", "minute", "bin", one.alias("x"), one.alias("w"))
    bins = range(len(weeks[0]))
    found = _of_values(numbered, "bin", [str(at) for at in bins], len(weeks))
    return [Groups(map(_with_others, found[str(at)], weeks, [at] * len(weeks))) for at in bins]


def _with_others(of: GroupSums, counts: Sequence[int], place: int) -> GroupSums:
    """The sums of a week with those values as well that came alone."""
    members, having = sum(counts) - of.members, counts[place] - of.total
    alone = GroupSums(members, members, having, having, members, having, having)
    return GroupSums(*map(sum, zip(of, alone, strict=True)))
