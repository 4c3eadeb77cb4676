"""The counts of a policy's decisions that the anomaly report is made from.

Only integers are summed. Floats are only ordered, so the counts do not depend on the order of rows, files, or threads.
Memory is bounded for any number of decisions: it holds counts by minute, and samples of facts and metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple

import polars as pl

from gate.ids import timestamp
from gate.policy.anomalies.counted import MAX_AGE, MAX_REASONS, MAX_WEEKS, TERMINAL, Cells, Counted, Far, Weeks
from gate.policy.anomalies.volume import GRAINS
from gate.policy.anomalies.weekly.costs import Measured
from gate.policy.anomalies.weekly.levels import MetricShift
from gate.policy.anomalies.weekly.stretch import stretch
from gate.policy.means import Sums
from workbench.columns import NO_VERDICT
from workbench.engines.anomalies.broken import breaks_of_advice, broken_in
from workbench.engines.anomalies.choice import Choice
from workbench.engines.anomalies.groups import groups_of, week_of, with_great
from workbench.engines.anomalies.levels import after, condition, dated
from workbench.engines.anomalies.minutes import MINUTE, are_untimed, hours_of
from workbench.engines.anomalies.reading import Reading
from workbench.engines.anomalies.samples import (
    Measure,
    far_values,
    farthest_values,
    fields_of_policy,
    learn,
    outliers_of,
    sampled_one_of,
)
from workbench.engines.slicing import date_of
from workbench.kept import Kept
from workbench.lake.reader import Snapshot
from workbench.values import exact_sums

_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(weeks=1)
_EVERY: Final = ("1h", "1d", "1w")
"""The grains of `volume`, as Polars calls them."""

_STRETCH: Final = 250_000


class Found(NamedTuple):
    """Everything that the report is made of.

    Attributes:
        counted: The counts.
        metrics: The metrics of the decisions, as `levels.dated` gives them, with the index of their week as `at`.
        measures: What is usual for them.
    """

    counted: Counted
    metrics: pl.LazyFrame
    measures: Sequence[Measure]


def count(snapshot: Snapshot, choice: Choice, kept: Kept) -> Found:
    """Everything that the report is made of.

    Args:
        snapshot: The scope's chain.
        choice: The decisions.
        kept: What was counted of the lake's files before.
    """
    reading = Reading(snapshot, choice, kept)
    counts, minutes, names = reading.totals()
    decisions, first, last = counts.select(pl.col("decisions").sum(), pl.col("first").min(), pl.col("last").max()).row(
        0
    )
    as_of = snapshot.last_entry_at() or last
    policy_id = choice.question.policy_id
    metrics = choice.of(snapshot.metrics(policy_id))
    if not decisions:
        return Found(replace(_counted(snapshot, choice, as_of), broken=breaks_of_advice(choice, as_of)), metrics, ())
    one_of, untimed = sampled_one_of(decisions), are_untimed(minutes)
    fields = fields_of_policy(snapshot, policy_id)
    samples = reading.samples(fields, one_of, untimed=untimed)
    near, far = _near(counts)
    earliest, latest = min(near["first"].to_list()), max(near["last"].to_list())
    if as_of is None or (far is not None and (far.date > timestamp(latest) or as_of < earliest)):
        # The chain's last entry then is one of those that lie far from the others, or as far.
        as_of = latest
    weeks = _weeks(near, as_of)
    with ThreadPoolExecutor(1) as beside:
        # Neither needs what is learned, which leaves a processor idle.
        broken = beside.submit(broken_in, choice, as_of)
        cells = beside.submit(_cells, minutes, weeks, as_of, untimed=untimed)
        rows = with_great(samples.grouped, minutes, choice.cases, one_of, untimed=untimed)
        weeks = replace(weeks, groups=groups_of(rows, weeks))
        learned = learn(names, samples, fields, weeks, one_of, choice.question)
        in_weeks = dated(metrics, choice.cases.with_columns(MINUTE)).with_columns(week_of(weeks))
        measured = metrics if all(measure.era is None for measure in learned.measures) else in_weeks
        out_far = pl.collect_all(far_values(measured, learned.measures), engine="streaming")
        out = [measure for measure, told in zip(learned.measures, out_far, strict=True) if told.item(0, "count")]
        farthest = pl.collect_all(farthest_values(measured, out), engine="streaming")
    counted = replace(
        _counted(snapshot, choice, as_of),
        decisions=decisions,
        first=date_of(first),
        last=date_of(last),
        weeks=weeks,
        cells=cells.result(),
        histograms=learned.histograms,
        outliers=outliers_of(out, [told for told in out_far if told.item(0, "count")], farthest),
        # No receipts are imported, so their want breaks nothing.
        broken=() if snapshot.imported is not None else broken.result(),
        sampled_one_of=one_of,
        metrics=learned.metrics,
        metric_shifts=learned.shifts if one_of == 1 else _of_all(learned.shifts, in_weeks),
        value=_values(metrics, weeks, choice.question.value),
        measured=_measured(in_weeks, weeks, choice.question.value),
        far=far,
        untimed=untimed,
    )
    return Found(counted, in_weeks, learned.measures)


def _of_all(shifts: Sequence[MetricShift], metrics: pl.LazyFrame) -> Sequence[MetricShift]:
    """The shifts, with how many decisions they are of among all, and not only among those that were taken."""
    plans = [
        metrics.filter(pl.col("name") == shift.metric).select(
            condition(shift).sum().alias("decisions"), after(shift).sum().alias("later")
        )
        for shift in shifts
    ]
    found = pl.collect_all(plans, engine="streaming")
    numbers = (of.row(0) for of in found)
    return [
        replace(of, decisions=decisions, later=later) for of, (decisions, later) in zip(shifts, numbers, strict=True)
    ]


def _counted(snapshot: Snapshot, choice: Choice, as_of: datetime | None) -> Counted:
    """The counts without decisions."""
    return Counted(
        decisions=0,
        first=None,
        last=None,
        as_of=date_of(as_of),
        weeks=None,
        cells=(),
        histograms=(),
        outliers=(),
        broken=(),
        sampled_one_of=1,
        metrics=0,
        chain_position=snapshot.position,
        merkle_root=snapshot.merkle_root,
        truncated=choice.after is not None,
        advisory=snapshot.count_advisory(choice.question.policy_id),
        imported=snapshot.imported is not None,
    )


def _values(metrics: pl.LazyFrame, weeks: Weeks, name: str | None) -> list[tuple[int, float]] | None:
    """Of each week how many values a metric has, and their sum, exact and then rounded."""
    if name is None:
        return None
    week = ((pl.col("reported_at").dt.truncate("1w").dt.date() - pl.lit(weeks.first)).dt.total_days() // 7).alias("at")
    rows = metrics.filter(pl.col("name") == name).select(week, "value").collect(engine="streaming")
    sums: dict[int, Sums] = {}
    for part in rows.iter_slices(_STRETCH):
        for (at,), of in exact_sums(part, ["at"]).items():
            sums[int(at)] = sums.get(int(at), Sums()) + of
    of_weeks = (sums.get(week, Sums()) for week in range(len(weeks.decisions)))
    return [(of.values, float(of.total)) for of in of_weeks]


def _measured(metrics: pl.LazyFrame, weeks: Weeks, name: str | None) -> Measured | None:
    """The values of a metric by the week of their decision and the age of their outcome, exact."""
    if name is None:
        return None
    number = len(weeks.decisions)
    of_weeks = metrics.filter((pl.col("name") == name) & pl.col("at").is_between(0, number - 1))
    rows = of_weeks.select("at", "age", "value").collect(engine="streaming")
    found: list[dict[int, tuple[int, Fraction]]] = [{} for _ in range(number)]
    for part in rows.iter_slices(_STRETCH):
        for (at, age), of in exact_sums(part, ["at", "age"]).items():
            values, total = found[int(at)].get(int(age), (0, Fraction(0)))
            found[int(at)][int(age)] = (values + of.values, total + of.total)
    return Measured(name, found)


def _near(counts: pl.DataFrame) -> tuple[pl.DataFrame, Far | None]:
    """The counts of the decisions that are looked at together, and those that lie far from them."""
    part = stretch(dict(counts.group_by("week").agg(pl.col("decisions").sum()).iter_rows()))
    within = pl.col("week").is_between(*part)
    near, beyond = counts.filter(within), counts.filter(~within)
    if beyond.is_empty():
        return near, None
    decisions, first, last = beyond.select(pl.col("decisions").sum(), pl.col("first").min(), pl.col("last").max()).row(
        0
    )
    return near, Far(decisions, timestamp(first if last.date() < part.first else last))


def _weeks(counts: pl.DataFrame, as_of: datetime) -> Weeks:
    found = counts["week"].to_list()
    earliest, latest = min(found), max(found)
    # A clock that ran backwards can have dated decisions after the chain's last entry. One that ran far ahead, or a
    # policy by which nobody decides any more, would leave weeks without any decision.
    last = latest + min(max(0, (_monday(as_of) - latest) // _WEEK), MAX_WEEKS - 1) * _WEEK
    number = min((last - earliest) // _WEEK + 1, MAX_WEEKS)
    first = last - (number - 1) * _WEEK
    at = ((pl.col("week") - first).dt.total_days() // 7).alias("at")
    rows = counts.filter(pl.col("week") >= first).with_columns(at)
    reasons = _series(rows, "reason_code", number)
    kept = sorted(reasons, key=lambda name: (-sum(reasons[name]), name))[:MAX_REASONS]
    verdicts = _series(rows, "verdict", number)
    return Weeks(
        first=first,
        decisions=[sum(of) for of in zip(*verdicts.values(), strict=True)],
        versions=_series(rows, "policy_version", number),
        verdicts=verdicts,
        reasons={name: reasons[name] for name in kept},
        outcomes=_ages(rows.filter(pl.col("age").is_not_null()), number),
        horizons=[_horizon(first, week, as_of) for week in range(number)],
        last=timestamp(max(counts["last"].to_list())),
    )


def _series(rows: pl.DataFrame, name: str, weeks: int) -> dict[str, list[int]]:
    """The decisions of each week, by a column's values."""
    found: dict[str, list[int]] = {}
    for value, at, decisions in rows.group_by(name, "at").agg(pl.col("decisions").sum()).iter_rows():
        # Only imported cases may have no verdict.
        found.setdefault(value or (NO_VERDICT if name == "verdict" else ""), [0] * weeks)[at] = decisions
    return found


def _ages(rows: pl.DataFrame, weeks: int) -> dict[str, list[list[int]]]:
    """Of each terminal status and horizon the decisions of each week: horizon h holds outcomes that came within h days
    and the rest of the day after, the last one all of them.
    """
    found = {status: [[0] * weeks for _ in range(MAX_AGE + 1)] for status in TERMINAL}
    for at, status, age, decisions in rows.select("at", "outcome_status", "age", "decisions").iter_rows():
        found[status][age][at] += decisions
    for ages in found.values():
        for younger, older in pairwise(ages):
            for at, decisions in enumerate(younger):
                older[at] += decisions
    return found


def _horizon(first: date, week: int, as_of: datetime) -> int:
    """The horizon to which outcomes of a window that ends with a week are known; -1 where there is none yet."""
    since = as_of - datetime.combine(first, time(), UTC) - (week + 1) * _WEEK
    return max(-1, min(since // _DAY - 1, MAX_AGE))


def _monday(moment: datetime) -> date:
    return moment.date() - timedelta(days=moment.weekday())


def _cells(minutes: pl.DataFrame, weeks: Weeks, as_of: datetime, *, untimed: bool) -> list[Cells]:
    """The decisions in each whole hour, day and week of those weeks, to where the chain ends."""
    end = min(as_of, weeks.starts(len(weeks.decisions)))
    rows = hours_of(minutes, untimed=untimed).filter(
        pl.col("hour").is_between(weeks.starts(0), weeks.starts(len(weeks.decisions)))
    )
    cells = []
    for grain, every in zip(GRAINS, _EVERY, strict=True):
        counted = rows.group_by(pl.col("hour").dt.truncate(every)).agg(pl.col("decisions", "arrivals").sum())
        found = {start: sums for start, *sums in counted.iter_rows()}
        start = min(found, default=end)
        # A period that has only begun is not complete.
        number = max(0, (end - start) // grain.length)
        sums = [found.get(start + at * grain.length, (0, 0)) for at in range(number)]
        cells.append(Cells(start, [count for count, _ in sums], [arrivals for _, arrivals in sums]))
    return cells
