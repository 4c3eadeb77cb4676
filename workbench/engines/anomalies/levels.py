"""Where the values of observed metrics lie, week by week: what `gate.policy.anomalies.weekly.levels` judges.

Values stand in the week of their decision. They are taken from the sample that outliers are learned from, in bins that
are quantiles of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Final, NamedTuple

import polars as pl

from gate.policy.anomalies.counted import MAX_AGE, Weeks
from gate.policy.anomalies.scores import DELTA
from gate.policy.anomalies.weekly.groups import BinGroups
from gate.policy.anomalies.weekly.levels import BINS, LOCATION, MetricShift, find_metric_shifts
from gate.policy.anomalies.weekly.values import Level, Middle, ranked
from workbench.engines.anomalies.groups import groups_of_ranks, in_weeks
from workbench.engines.slicing import lower_quantiles
from workbench.values import exact_sums

_WEEK: Final = timedelta(weeks=1)
_NAMES: Final = ("position", "name", "value", "reported_at", "policy_version")


class Era(NamedTuple):
    """Weeks in which a metric had one level; both ends are within."""

    first: int
    last: int


def dated(metrics: pl.LazyFrame, cases: pl.LazyFrame) -> pl.LazyFrame:
    """Values with the week and minute of their decisions, and how many days after it their outcomes came.

    Args:
        metrics: The values.
        cases: The decisions: {position, created_at, week, minute}.
    """
    made = cases.select("position", "created_at", "week", "minute")
    days = (pl.col("reported_at") - pl.col("created_at")).dt.total_days().clip(0, MAX_AGE).fill_null(MAX_AGE)
    age = days.cast(pl.Int16).alias("age")
    return metrics.select(*_NAMES).join(made, on="position").select(*_NAMES, "week", "minute", age)


def shifted(
    values: pl.DataFrame, names: Iterable[tuple[str, bool]], weeks: Weeks, min_sample: int, valued: str | None
) -> list[MetricShift]:
    """The metrics that shifted, with the location of their values.

    Args:
        values: The sampled values, from `dated`.
        names: The metrics to examine, and for each whether distances are ratios.
        weeks: The weeks.
        min_sample: The least information of a window, in single values.
        valued: The metric whose means are requested when versions are compared; None for none.
    """
    rows = in_weeks(values, weeks)
    of_metrics = {name: rows.filter(pl.col("name") == name) for name, _ in names}
    levels = [_level(name, of_metrics[name], weeks, ratios=ratios) for name, ratios in names if of_metrics[name].height]
    found = find_metric_shifts(levels, len(weeks.decisions), weeks.horizons, min_sample)
    return [
        _measured(shift, of_metrics[shift.metric], means=shift.metric == valued and shift.version is not None)
        for shift in found
    ]


def eras(shifts: Sequence[MetricShift], metric: str, weeks: int) -> list[Era]:
    """The weeks in which a metric had one level, without those in which a shift began or ended, which may have two;
    none where it has one throughout.
    """
    certain = [
        shift.windows
        for shift in shifts
        if shift.metric == metric
        and shift.of == LOCATION
        and shift.version is None
        and shift.is_certain
        and shift.least_effect >= DELTA.considerable
        and not shift.windows.slow
    ]
    if not certain:
        return []
    aside = {at for of in certain for at in (of.first - 1, of.first, of.last, of.last + 1)}
    found: list[Era] = []
    for at in range(weeks):
        if at in aside:
            continue
        if found and found[-1].last == at - 1:
            found[-1] = Era(found[-1].first, at)
        else:
            found.append(Era(at, at))
    return found


def condition(shift: MetricShift) -> pl.Expr:
    """Whether a value, as `dated` gives it with its week's index, is within a shift's window."""
    within = pl.col("at").is_between(shift.windows.first, shift.windows.last)
    if shift.version is not None:
        return within & (pl.col("policy_version") == shift.version)
    return within & (pl.col("age") <= shift.horizon)


def after(shift: MetricShift) -> pl.Expr:
    """Whether a value is in the weeks that a shift lasts after its window."""
    last = shift.windows.last
    return pl.col("at").is_between(last + 1, last if shift.until is None else shift.until)


def _level(metric: str, rows: pl.DataFrame, weeks: Weeks, *, ratios: bool) -> Level:
    number = len(weeks.decisions)
    edges = sorted(set(lower_quantiles(rows["value"], BINS)))
    place = pl.Series(edges, dtype=pl.Float64).search_sorted(rows["value"], side="left")
    binned = rows.select("at", "minute", "age", "policy_version", "value", pl.Series("place", place))
    middles = (
        binned.group_by("place")
        .agg(pl.col("value").sort().get((pl.len() - 1) // 2), pl.len(), (pl.col("value").max() + 0.0).alias("greatest"))
        .sort("place")
    )
    ranks = ranked(middles["len"].to_list())
    used = {at: place for place, at in enumerate(middles["place"])}
    told = {"place": middles["place"], "bin": [*used.values()], "rank": ranks}
    kinds = pl.DataFrame(told, schema={"place": middles.schema["place"], "bin": pl.Int32, "rank": pl.Int64})
    binned = binned.join(kinds, on="place")
    horizons = sorted({horizon for horizon in weeks.horizons if horizon >= 0} | {MAX_AGE})
    # Each value is counted once, at the first horizon that has it; later ones have those of earlier ones as well.
    since = sum(((pl.col("age") > horizon).cast(pl.Int16) for horizon in horizons[:-1]), pl.lit(0, pl.Int16))
    counted = binned.group_by(since.alias("since"), "at", "bin").agg(pl.len().alias("values"))
    aged = {horizon: [[0] * len(used) for _ in range(number)] for horizon in horizons}
    for place, at, of_bin, found in counted.iter_rows():
        aged[horizons[place]][at][of_bin] = found
    for younger, older in pairwise(horizons):
        aged[older] = [
            [a + b for a, b in zip(*both, strict=True)] for both in zip(aged[younger], aged[older], strict=True)
        ]
    shared = binned.filter(pl.col("minute").is_duplicated()).group_by("at", "minute", "bin").agg(pl.len())
    versions = binned.group_by("policy_version", "at", "bin").agg(pl.len().alias("values"))
    return Level(
        metric=metric,
        values=middles["value"].to_list(),
        ratios=ratios,
        greatest=middles["greatest"].to_list(),
        aged=aged,
        groups=groups_of_ranks(binned.select("at", "minute", "rank"), number),
        together=BinGroups(aged[MAX_AGE], shared.rows()),
        versions={
            str(version): _histograms(of.select("at", "bin", "values"), number, len(used))
            for (version,), of in versions.partition_by("policy_version", as_dict=True).items()
        },
    )


def _histograms(rows: pl.DataFrame, weeks: int, bins: int) -> list[list[int]]:
    found = [[0] * bins for _ in range(weeks)]
    for at, place, values in rows.iter_rows():
        found[at][place] += values
    return found


def _measured(shift: MetricShift, rows: pl.DataFrame, *, means: bool) -> MetricShift:
    """A shift with where its values lie."""
    windows = shift.windows
    if shift.version is None:
        aged = pl.col("age") <= shift.horizon
        before = rows.filter(aged & pl.col("at").is_between(windows.reference, windows.before))
        within = rows.filter(condition(shift))
    else:
        weeks = rows.filter(pl.col("at").is_between(windows.first, windows.last))
        mine = pl.col("policy_version") == shift.version
        both = weeks.filter(mine)["at"].unique().implode(), weeks.filter(~mine)["at"].unique().implode()
        weeks = weeks.filter(pl.col("at").is_in(both[0]) & pl.col("at").is_in(both[1]))
        before, within = weeks.filter(~mine), weeks.filter(mine)
    usual = lower_quantiles(before["value"], 2)[0]
    sides = [_middle(side, usual, means=means) for side in (before, within)]
    decisions, later = rows.filter(condition(shift)).height, rows.filter(after(shift)).height
    return replace(shift, before=sides[0], within=sides[1], decisions=decisions, later=later)


def _middle(rows: pl.DataFrame, usual: float, *, means: bool) -> Middle:
    values = rows["value"]
    low, median, high = lower_quantiles(values, 4)
    found = Middle(rows.height, low, median, high, above=int((values > usual).sum()), below=int((values < usual).sum()))
    if not means:
        return found
    (sums,) = exact_sums(rows.select("value", pl.lit("").alias("all")), ["all"]).values()
    return found._replace(mean=float(sums.total / sums.values))
