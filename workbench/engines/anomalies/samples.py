"""The anomaly report's samples of facts and metrics: histograms by week, and the usual values.

Of many decisions, one in two, four, eight, ... is sampled by a hash of the chain position. So the sample is the same
everywhere, and fits into memory. Outliers are searched among all values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Final

import orjson
import polars as pl

from gate.ids import timestamp
from gate.policy.anomalies import outliers
from gate.policy.anomalies.counted import Weeks
from gate.policy.anomalies.drift import Histogram, are_others
from gate.policy.anomalies.outliers import Outliers
from gate.policy.anomalies.weekly.levels import MetricShift
from gate.policy.questions import AnomaliesQuestion
from gate.policy.reports import MAX_METRICS
from workbench.engines.anomalies.groups import groups_of_bins, in_weeks, thinned, week_of
from workbench.engines.anomalies.levels import Era, dated, eras, shifted
from workbench.engines.anomalies.reading import Samples
from workbench.engines.slicing import lower_quantiles, taken
from workbench.facts import ABSENT, WITHHELD, fields_of, number_of, string_of, type_of
from workbench.lake.reader import Snapshot

MAX_SAMPLED: Final = 100_000
"""How many decisions are taken, about."""

MAX_FACTS: Final = 32
"""How many facts are looked at, those of the most rulebooks."""

_NUMBER_BINS: Final = 10
_TEXT_BINS: Final = 9
# A text field with more values than this holds names, not categories.
_MOST_TEXTS: Final = 50
_LONGEST_TEXT: Final = 80
_BINS: Final = ("missing", "null", "false", "true", "list or object")
"""The first bins of a fact; those of its numbers and texts come after them."""


_REPORTED: Final = (
    pl.col("reported_at").dt.weekday().cast(pl.Int16).alias("day"),
    pl.col("reported_at").dt.hour().cast(pl.Int16).alias("hour"),
)


@dataclass(frozen=True, slots=True)
class Measure:
    """The usual values of a metric.

    Attributes:
        metric: Its name.
        values: The number of values.
        median: The lower median of the sampled values.
        ratios: Whether distances are ratios; zeros are then left out.
        season: What separates the kinds; None if all values are one kind.
        usual: The lower median of each kind, by its number.
        mad: The median distance; of logarithms if `ratios` is true.
        required: The distance from which a value stands out.
        era: The weeks whose decisions it covers; None for all.
    """

    metric: str
    values: int
    median: float
    ratios: bool
    season: str | None
    usual: Mapping[int, float]
    mad: float
    required: float
    era: Era | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned of facts and metrics.

    Attributes:
        histograms: The facts.
        measures: The metrics whose values have distances; one for each era of those that shifted.
        shifts: The metrics that shifted.
        metrics: How many metrics were looked at.
    """

    histograms: Sequence[Histogram]
    measures: Sequence[Measure]
    shifts: Sequence[MetricShift]
    metrics: int


def sampled_one_of(decisions: int) -> int:
    """Of how many decisions one is taken."""
    return 1 << max(0, math.ceil(math.log2(decisions / MAX_SAMPLED)))


def learn(
    names: pl.DataFrame,
    samples: Samples,
    fields: Sequence[str],
    weeks: Weeks,
    one_of: int,
    question: AnomaliesQuestion,
) -> Learned:
    """Learns what is usual.

    Args:
        names: Of each metric how many values it has, and the least.
        samples: What was taken.
        fields: The fields of the facts.
        weeks: The weeks that are looked at.
        one_of: Of how many decisions one is taken.
        question: The question.
    """
    min_sample = question.min_sample
    enough = names.filter(pl.col("values") >= min_sample)
    looked_at = enough.sort("values", "name", descending=[True, False]).head(MAX_METRICS)
    known = {name: (count, least) for name, count, least in sorted(looked_at.iter_rows())}
    every = dated(samples.values.lazy(), samples.made.lazy()).with_columns(week_of(weeks)).collect()
    values = every if one_of == 1 else every.filter(taken(thinned(one_of)))
    of_weeks, of_all = ({name: rows.filter(pl.col("name") == name) for name in known} for rows in (values, every))
    by_ratio = [(name, _ratios(of, known[name][1])) for name, of in of_all.items()]
    shifts = shifted(values, by_ratio, weeks, min_sample, question.value)
    measures = []
    for name, of in of_weeks.items():
        of_eras = eras(shifts, name, len(weeks.decisions))
        parts: list[tuple[Era | None, pl.DataFrame]] = [(None, of_all[name])]
        if of_eras:
            parts = [(era, of.filter(pl.col("at").is_between(*era))) for era in of_eras]
        found = (_measure(name, *known[name], part, min_sample) for _, part in parts)
        measures += [
            replace(measure, era=era) for measure, (era, _) in zip(found, parts, strict=True) if measure is not None
        ]
    histograms = _histograms(samples.facts, fields, weeks)
    shifts = [_with_mixes(shift, samples.facts, fields, weeks) for shift in shifts]
    return Learned(
        histograms=[histogram for histogram in histograms if histogram is not None],
        measures=measures,
        shifts=shifts,
        metrics=looked_at.height,
    )


def _histograms(facts: pl.DataFrame, fields: Sequence[str], weeks: Weeks) -> list[Histogram | None]:
    shared = pl.col("minute").is_duplicated().alias("shared")
    seen = in_weeks(facts.with_columns(shared), weeks)
    return [_histogram(seen, field, len(weeks.decisions)) for field in fields]


def _with_mixes(shift: MetricShift, facts: pl.DataFrame, fields: Sequence[str], weeks: Weeks) -> MetricShift:
    """A shift of a version with the facts in which its cases differ from those of others in the same weeks."""
    if shift.version is None:
        return shift
    within = pl.col("at").is_between(shift.windows.first, shift.windows.last)
    own = (pl.col("policy_version").cast(pl.String) == shift.version).cast(pl.Int32)
    rows = in_weeks(facts, weeks).filter(within).with_columns(own.alias("at"), pl.lit(value=False).alias("shared"))
    sides = ((field, _histogram(rows, field, 2)) for field in fields)
    mixed = [field for field, of in sides if of is not None and are_others(of.weeks[1], of.weeks[0], len(fields))]
    return replace(shift, mixed=tuple(mixed))


def far_values(metrics: pl.LazyFrame, measures: Sequence[Measure]) -> list[pl.LazyFrame]:
    """Of each measure how many of its values lie far out, and when the first and the last were reported.

    Args:
        metrics: The metrics; with the index of the week of their decisions, `at`, where a measure is of an era.
        measures: The measures.
    """
    reported = pl.col("reported_at")
    told = (pl.len().alias("count"), reported.min().alias("first"), reported.max().alias("last"))
    return [far_rows(metrics, measure).select(told) for measure in measures]


def farthest_values(metrics: pl.LazyFrame, measures: Sequence[Measure]) -> list[pl.LazyFrame]:
    """Of each measure its farthest values.

    Args:
        metrics: As `far_values` takes them.
        measures: The measures.
    """
    by, reverse = ["distance", "position"], [False, True]
    return [far_rows(metrics, measure).top_k(outliers.FARTHEST, by=by, reverse=reverse) for measure in measures]


def outliers_of(
    measures: Sequence[Measure], counted: Sequence[pl.DataFrame], farthest: Sequence[pl.DataFrame]
) -> list[Outliers]:
    """The metrics with values that lie far out.

    Args:
        measures: The metrics that have any.
        counted: What `far_values` plans of each.
        farthest: What `farthest_values` plans of each.
    """
    far: dict[str, list[Outliers]] = {}
    for measure, told, of in zip(measures, counted, farthest, strict=True):
        far.setdefault(measure.metric, []).append(_outliers(measure, told.row(0), of))
    return [outliers.together(parts) for parts in far.values()]


def _outliers(measure: Measure, told: tuple[int, datetime, datetime], farthest: pl.DataFrame) -> Outliers:
    count, first, last = told
    ordered = farthest.sort("distance", "position", descending=[True, False]).select("position", "value", "usual")
    return Outliers(
        metric=measure.metric,
        values=measure.values,
        median=measure.median,
        mad=measure.mad,
        ratios=measure.ratios,
        season=measure.season,
        required=measure.required,
        count=count,
        first=timestamp(first),
        last=timestamp(last),
        farthest=[outliers.far(*row, mad=measure.mad, ratios=measure.ratios) for row in ordered.iter_rows()],
    )


def far_rows(metrics: pl.LazyFrame, measure: Measure) -> pl.LazyFrame:
    """The values of a measure that lie far out, as `far_values` takes them."""
    rows = metrics.filter(pl.col("name") == measure.metric)
    if measure.era is not None:
        rows = rows.filter(pl.col("at").is_between(*measure.era))
    if measure.ratios:
        rows = rows.filter(pl.col("value") > 0)
    kinds = list(measure.usual.values())
    usual = pl.lit(kinds[0])
    if measure.season is not None:
        usual = _kind(measure.season).replace_strict(
            dict(measure.usual), default=measure.median, return_dtype=pl.Float64
        )
    rows = rows.select("position", "reported_at", "value", usual.alias("usual"))
    distance = _distance(ratios=measure.ratios).alias("distance")
    least = outliers.distance_at(measure.required, measure.mad, ratios=measure.ratios)
    return rows.with_columns(distance).filter(pl.col("distance") > least)


def _distance(*, ratios: bool) -> pl.Expr:
    value = pl.col("value")
    # Polars divides by one number by multiplying with its reciprocal, which is another number, and for the least ones
    # none; added to zeros it is as many numbers.
    usual = value * 0.0 + pl.col("usual")
    distance = pl.max_horizontal(value / usual, usual / value) if ratios else (value - usual).abs()
    return distance.clip(upper_bound=outliers.GREATEST)


def _kind(season: str | None) -> pl.Expr:
    """The number of a value's kind, by when it was reported."""
    return _kind_of(season, *_REPORTED)


def _kind_of(season: str | None, weekday: pl.Expr, hour: pl.Expr) -> pl.Expr:
    numbers: Mapping[str | None, pl.Expr] = {"weekday and hour": weekday * 24 + hour, "hour": hour, "weekday": weekday}
    return numbers.get(season, pl.lit(0, pl.Int16))


def _once(rows: pl.DataFrame, values: pl.Expr) -> pl.DataFrame:
    """{day, hour, value}: of decisions of one minute that were reported in one hour of the week, their lower median."""
    told = rows.select("minute", *_REPORTED, values.alias("value"))
    # Most come alone, and are not grouped.
    shared = told["minute"].is_duplicated()
    together = told.filter(shared).group_by("minute", "day", "hour").agg(_lower_median(pl.col("value")))
    return pl.concat([told.filter(~shared), together]).select("day", "hour", "value")


def _measure(name: str, count: int, least: float, rows: pl.DataFrame, min_sample: int) -> Measure | None:
    positive = _above_zero(rows, least)
    if positive.height < min_sample:
        return None
    ratios = _ratios(rows, least)
    rows = positive if ratios else rows
    once = _once(rows, pl.col("value"))
    median = lower_quantiles(once["value"], 2)[0]
    counted = once.group_by("day", "hour").agg(pl.len(), (pl.col("value") > median).sum().alias("above"))
    season = outliers.season_of({(day, hour): (n, above) for day, hour, n, above in counted.iter_rows()}, min_sample)
    kinds = once.group_by(_kind_of(season, pl.col("day"), pl.col("hour")).alias("kind"))
    usual: dict[int, float] = dict(kinds.agg(_lower_median(pl.col("value"))).iter_rows())
    if ratios and min(usual.values()) <= 0:
        return None
    rows = rows.with_columns(_kind(season).replace_strict(usual, return_dtype=pl.Float64).alias("usual"))
    spread = lower_quantiles(_once(rows, _distance(ratios=ratios))["value"], 2)[0]
    mad = math.log(spread) if ratios else spread
    if mad <= 0:
        return None
    return Measure(name, count, median, ratios, season, usual, mad, outliers.required(count))


def _above_zero(rows: pl.DataFrame, least: float) -> pl.DataFrame:
    return rows.filter(pl.col("value") > 0) if least == 0 else rows


def _ratios(rows: pl.DataFrame, least: float) -> bool:
    """Whether values are measured by ratios."""
    positive = _above_zero(rows, least)
    return bool(positive.height) and outliers.by_ratio(least, lower_quantiles(positive["value"], 10)[::4])


def _lower_median(values: pl.Expr) -> pl.Expr:
    return values.sort().get((pl.len() - 1) // 2)


def fields_of_policy(snapshot: Snapshot, policy_id: str) -> list[str]:
    """The facts that the policy's rulebooks declare or test, those of the most rulebooks first; of an imported history
    all of its facts.
    """
    if snapshot.imported is not None:
        return snapshot.fact_fields()[:MAX_FACTS]
    rulebooks = snapshot.table("rulebooks").filter(pl.col("policy_id") == policy_id).select("body").collect()
    used: dict[str, int] = {}
    for body in rulebooks["body"]:
        for field in fields_of(orjson.loads(body)):
            used[field] = used.get(field, 0) + 1
    return sorted(sorted(used, key=lambda field: (-used[field], field))[:MAX_FACTS])


def _histogram(rows: pl.DataFrame, field: str, weeks: int) -> Histogram | None:
    """The values of a fact by bin and week; None where all are in one bin."""
    facts = rows.select(
        "at",
        "minute",
        "shared",
        type_of(field).alias("type"),
        number_of(field).alias("number"),
        string_of(field).alias("text"),
    )
    numbers = facts.filter(pl.col("type") == "number")["number"]
    edges = sorted(set(lower_quantiles(numbers, _NUMBER_BINS))) if numbers.len() else []
    common = _common(facts.filter(pl.col("type") == "string")["text"])
    binned = facts.select("at", "minute", "shared", _bin(edges, common).alias("bin")).drop_nulls("bin")
    counted = binned.group_by("at", "bin").agg(pl.len().alias("decisions"))
    used = {number: at for at, number in enumerate(counted["bin"].unique().sort())}
    if len(used) <= 1:
        return None
    names = [
        *_BINS,
        *_ranges(edges),
        *map(_quoted, common),
        "other text" if common else "text",
    ]
    found = [[0] * len(used) for _ in range(weeks)]
    for week, number, decisions in counted.iter_rows():
        found[week][used[number]] = decisions
    places = pl.col("bin").replace_strict(used, return_dtype=pl.Int32)
    shared = binned.filter("shared").select("at", "minute", places)
    return Histogram(field, [names[number] for number in used], found, groups_of_bins(shared, found))


def _bin(edges: Sequence[float], common: Sequence[str]) -> pl.Expr:
    """The number of a fact's bin; null where the fact is not known."""
    kind = pl.col("type")
    above = sum(((pl.col("number") > edge).cast(pl.Int16) for edge in edges), pl.lit(0, pl.Int16))
    first = len(_BINS) + len(edges) + 1
    other = pl.lit(first + len(common), pl.Int16)
    listed = {text: first + at for at, text in enumerate(common)}
    text = pl.col("text").replace_strict(listed, default=other, return_dtype=pl.Int16) if listed else other
    missing, null, false, _, container = range(len(_BINS))
    return (
        pl.when(kind == "number")
        .then(len(_BINS) + above)
        .when(kind == "string")
        .then(text)
        .when(kind == "boolean")
        .then(false + pl.col("number").cast(pl.Int16))
        .when(kind == ABSENT)
        .then(missing)
        .when(kind == "null")
        .then(null)
        .when(kind.is_not_null() & (kind != WITHHELD))
        .then(container)
    )


def _common(texts: pl.Series) -> list[str]:
    """The commonest texts, by name; none where there are too many to be kinds of something."""
    counted = texts.value_counts(name="values")
    if counted.height > _MOST_TEXTS:
        return []
    return sorted(counted.sort("values", "text", descending=[True, False])["text"].head(_TEXT_BINS))


def _quoted(text: str) -> str:
    """A text as JSON; of a long one its beginning, for a report names many."""
    return orjson.dumps(text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}...").decode()


def _ranges(edges: Sequence[float]) -> list[str]:
    """What bins of numbers hold."""
    if not edges:
        return ["any number"]
    told = [f"{edge:.6g}" for edge in edges]
    between = (f"above {low} to {high}" for low, high in pairwise(told))
    return [f"to {told[0]}", *between, f"above {told[-1]}"]
