"""What the anomaly report is made of: counts of a policy's decisions, in three scans of the lake.

Nothing is summed but integers, and of floats only what orders them is taken: the counts do not depend on the order of
rows, files or threads. What is held in memory is bounded, however many decisions there are: counts by hour, and samples
of facts and metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

import polars as pl

from gate.ids import timestamp
from gate.policy.anomalies import breaks
from gate.policy.anomalies.anomaly import MOST_IDS, Anomaly, Shown
from gate.policy.anomalies.breaks import Broken
from gate.policy.anomalies.report import MAX_AGE, MAX_REASONS, MAX_WEEKS, TERMINAL, Cells, Counted, Weeks
from gate.policy.anomalies.volume import GRAINS
from gate.policy.questions import AnomaliesQuestion
from gate.records.advisory import ADVISORY_POLICIES
from workbench.columns import IS_ADVISORY, NO_VERDICT
from workbench.engines.anomalies.samples import (
    far_values,
    fields_of_policy,
    learn,
    outliers_of,
    sampled_one_of,
    samples_of,
)
from workbench.engines.slicing import date_of, last_left_out
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot

_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(weeks=1)
_EVERY: Final = ("1h", "1d", "1w")
"""The grains of `volume`, as Polars calls them."""

_YES: Final = pl.col("verdict") == "yes"
_TERMINAL: Final = pl.col("outcome_status").is_in(TERMINAL).fill_null(value=False)
_BROKE_AT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("executed_without_yes", "duplicate_execution", "binding_mismatch", "action_mismatch", "state_mismatch"),
        "execution_reported_at",
    ),
    "outcome_reversed": "outcome_reported_at",
}
"""The date of what broke a decision; of the other breaks, that of the decision."""

_EXECUTED: Final = pl.col("times_executed") > 0


class Choice(NamedTuple):
    """Which decisions are looked at.

    Attributes:
        cases: They, with what was reported of them.
        kept: They, and the advisory ones with the same policy_id: a receipt of advice breaks the protocol as well.
        after: The chain position after which they come; None where a limit leaves none out.
        question: The question that chooses them.
    """

    cases: pl.LazyFrame
    kept: pl.LazyFrame
    after: int | None
    question: AnomaliesQuestion

    def of(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows of another table that are about these decisions."""
        if self.question.policy_version is not None:
            rows = rows.filter(pl.col("policy_version") == self.question.policy_version)
        return rows if self.after is None else rows.filter(pl.col("position") > self.after)


def choose(snapshot: Snapshot, question: AnomaliesQuestion) -> Choice:
    """The decisions of a policy, of one version or all, the latest so many."""
    cases, kept = snapshot.cases(question.policy_id), snapshot.with_advice().cases(question.policy_id)
    chosen = Choice(cases, kept, None, question)
    chosen = chosen._replace(after=last_left_out(chosen.of(cases), "position", question.limit))
    return chosen._replace(cases=chosen.of(cases), kept=chosen.of(kept))


def count(snapshot: Snapshot, choice: Choice) -> Counted:
    """Everything that the report is made of.

    Args:
        snapshot: The scope's chain.
        choice: The decisions.
    """
    told = choice.cases.select(pl.len(), pl.col("created_at").min(), pl.col("created_at").max().alias("last"))
    decisions, first, last = told.collect(engine="streaming").row(0)
    as_of = snapshot.last_entry_at() or last
    if not decisions:
        return replace(_counted(snapshot, choice, as_of), broken=_breaks_of_advice(choice, as_of))
    policy_id = choice.question.policy_id
    metrics = choice.of(snapshot.metrics(policy_id))
    fields = fields_of_policy(snapshot, policy_id)
    facts = choice.of(snapshot.facts(fields, policy_id))
    one_of = sampled_one_of(decisions)
    # All at once, so that no processor is idle.
    hours, decided, outcomes, totals, names, values, known = pl.collect_all(
        [
            _by_hour(choice.cases),
            _by_week(choice.cases),
            _by_age(choice.cases),
            _totals(choice, as_of),
            *samples_of(metrics, facts, fields, Personal.of(snapshot.manifest.personal).facts, one_of),
        ],
        engine="streaming",
    )
    weeks = _weeks(decided, outcomes, as_of)
    learned = learn(names, values, known, fields, weeks, choice.question.min_sample)
    total = totals.row(0, named=True)
    broken, *far = pl.collect_all(
        [_broken(choice, total, as_of), *far_values(metrics, learned.measures)], engine="streaming"
    )
    return replace(
        _counted(snapshot, choice, as_of),
        decisions=decisions,
        first=date_of(first),
        last=date_of(last),
        weeks=weeks,
        cells=_cells(hours, weeks, as_of),
        histograms=learned.histograms,
        outliers=outliers_of(learned.measures, far),
        # No receipts are imported, so their want breaks nothing.
        broken=() if snapshot.imported is not None else _breaks(broken.row(0, named=True), total),
        sampled_one_of=one_of,
        metrics=learned.metrics,
    )


def decisions_shown(cases: pl.LazyFrame, shown: Sequence[Shown]) -> list[list[str]]:
    """Of each anomaly the ids of decisions that show it: those it names in its order, else the latest first."""
    ids = cases.select("position", "decision_id", "created_at", *dict.fromkeys(of.column for of in shown if of.column))
    named = sorted({position for of in shown for position in of.positions})
    plans = [ids.filter(_condition(of)).top_k(MOST_IDS, by="position") for of in shown if not of.positions]
    plans += [ids.filter(pl.col("position").is_in(named))] if named else []
    if not plans:
        return []
    found = pl.collect_all(plans, engine="streaming")
    by_position = dict(found[-1].select("position", "decision_id").iter_rows()) if named else {}
    latest = iter(found)
    return [
        [by_position[position] for position in of.positions if position in by_position]
        if of.positions
        else next(latest).sort("position", descending=True)["decision_id"].to_list()
        for of in shown
    ]


def conditions(counted: Counted, policy_id: str, listed: Sequence[Anomaly]) -> list[pl.Expr]:
    """Of each anomaly of a policy what is true of the cases that show it."""
    of_breaks = {} if counted.as_of is None else _conditions(datetime.fromisoformat(counted.as_of), policy_id)
    return [
        of_breaks[anomaly.subject][0] if anomaly.kind == "lifecycle_break" else _condition(anomaly.shown)
        for anomaly in listed
    ]


def _condition(shown: Shown) -> pl.Expr:
    if shown.positions:
        return pl.col("position").is_in(list(shown.positions))
    first, last = (pl.lit(datetime.fromisoformat(text)) for text in (shown.first, shown.last))
    within = pl.col("created_at").is_between(first, last, closed="left")
    return within if shown.column is None else within & pl.col(shown.column).cast(pl.String).is_in(list(shown.values))


def _counted(snapshot: Snapshot, choice: Choice, as_of: datetime | None) -> Counted:
    """What is said of no decisions."""
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
    )


def _by_hour(cases: pl.LazyFrame) -> pl.LazyFrame:
    return cases.group_by(pl.col("created_at").dt.truncate("1h").alias("hour")).agg(pl.len().alias("decisions"))


def _by_week(cases: pl.LazyFrame) -> pl.LazyFrame:
    return cases.group_by("week", "policy_version", "verdict", "reason_code").agg(pl.len().alias("decisions"))


def _by_age(cases: pl.LazyFrame) -> pl.LazyFrame:
    """The terminal outcomes of actions that were let through, by how many days after the decision they came."""
    came = (pl.col("outcome_reported_at") - pl.col("created_at")).dt.total_days()
    # An imported outcome may have no date: it has come at some time, and only the last horizon holds it.
    age = came.clip(0, MAX_AGE).fill_null(MAX_AGE).alias("age")
    acted = pl.coalesce("action_executed", _YES)
    return cases.filter(_TERMINAL & acted).group_by("week", "outcome_status", age).agg(pl.len().alias("decisions"))


def _weeks(decided: pl.DataFrame, outcomes: pl.DataFrame, as_of: datetime) -> Weeks:
    found = decided["week"].unique().to_list()
    # A clock that ran backwards can have dated decisions after the chain's last entry.
    last = max(_monday(as_of), *found)
    first = max(min(found), last - (MAX_WEEKS - 1) * _WEEK)
    number = (last - first) // _WEEK + 1
    rows, reported = (
        frame.filter(pl.col("week") >= first).with_columns(((pl.col("week") - first).dt.total_days() // 7).alias("at"))
        for frame in (decided, outcomes)
    )
    reasons = _series(rows, "reason_code", number)
    kept = sorted(reasons, key=lambda name: (-sum(reasons[name]), name))[:MAX_REASONS]
    verdicts = _series(rows, "verdict", number)
    return Weeks(
        first=first,
        decisions=[sum(of) for of in zip(*verdicts.values(), strict=True)],
        versions=_series(rows, "policy_version", number),
        verdicts=verdicts,
        reasons={name: reasons[name] for name in kept},
        outcomes=_ages(reported, number),
        horizons=[_horizon(first + (week + 1) * _WEEK, as_of) for week in range(number)],
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


def _horizon(end: date, as_of: datetime) -> int:
    """The horizon to which outcomes of a window that ended with a day are known; -1 where there is none yet."""
    return max(-1, min((as_of - datetime.combine(end, time(), UTC)) // _DAY - 1, MAX_AGE))


def _monday(moment: datetime) -> date:
    return moment.date() - timedelta(days=moment.weekday())


def _cells(hours: pl.DataFrame, weeks: Weeks, as_of: datetime) -> list[Cells]:
    """The decisions in each whole hour, day and week of those weeks, to where the chain ends."""
    rows = hours.filter(pl.col("hour") >= weeks.starts(0))
    cells = []
    for grain, every in zip(GRAINS, _EVERY, strict=True):
        counted = rows.group_by(pl.col("hour").dt.truncate(every)).agg(pl.col("decisions").sum())
        found: dict[datetime, int] = dict(counted.iter_rows())
        start = min(found, default=as_of)
        # A period that has only begun is not complete.
        number = max(0, (as_of - start) // grain.length)
        cells.append(Cells(start, [found.get(start + at * grain.length, 0) for at in range(number)]))
    return cells


def _conditions(as_of: datetime, policy_id: str) -> Mapping[str, tuple[pl.Expr, pl.Expr]]:
    """Of each kind of break the decisions that have it, and those that could. Of advice nothing is promised, but that
    nobody acts on it.
    """
    advisory = IS_ADVISORY if policy_id in ADVISORY_POLICIES else pl.lit(value=False)
    receipt_due = _YES & (pl.lit(as_of) - pl.col("created_at") > breaks.RECEIPT_DUE)
    standing = _EXECUTED & (pl.col("times_reverted") < pl.col("times_executed"))
    outcome_due = standing & (pl.lit(as_of) - pl.col("first_executed_at") > breaks.OUTCOME_DUE)
    told = pl.col("executions") > 0
    succeeded = pl.col("times_succeeded") > 0
    of_binding = {
        "duplicate_execution": (pl.col("times_executed") - pl.col("times_reverted") > 1, _EXECUTED),
        "binding_mismatch": (pl.col("times_mismatched") > 0, told),
        "action_mismatch": (pl.col("times_other_action") > 0, told),
        "state_mismatch": (pl.col("times_contradicted") > 0, told),
        "approved_without_receipt": (
            receipt_due & ~told & pl.col("action_executed").fill_null(value=True),
            receipt_due,
        ),
        "outcome_overdue": (outcome_due & ~_TERMINAL, outcome_due),
        "outcome_reversed": (succeeded & pl.col("outcome_status").is_in(["failed", "reverted"]), succeeded),
    }
    return {
        "executed_without_yes": (pl.col("times_unapproved") > 0, ~_YES | advisory),
        **{kind: (has & ~advisory, could & ~advisory) for kind, (has, could) in of_binding.items()},
    }


def _totals(choice: Choice, as_of: datetime) -> pl.LazyFrame:
    told = [
        expression.sum().alias(name)
        for kind, (has, could) in _conditions(as_of, choice.question.policy_id).items()
        for name, expression in ((kind, has), (f"{kind}:of", could))
    ]
    return choice.kept.select(told)


def _breaks_of_advice(choice: Choice, as_of: datetime | None) -> Sequence[Broken]:
    """The breaks where all decisions with the policy_id are advisory; none where there are none."""
    if as_of is None or choice.question.policy_id not in ADVISORY_POLICIES:
        return ()
    total = _totals(choice, as_of).collect(engine="streaming").row(0, named=True)
    found = _broken(choice, total, as_of).collect(engine="streaming").row(0, named=True)
    return _breaks(found, total)


def _broken(choice: Choice, total: Mapping[str, int], as_of: datetime) -> pl.LazyFrame:
    """When each kind of break was that there is, and where its latest decisions stand."""
    told = [
        expression.alias(f"{kind}:{name}")
        for kind, (has, _) in _conditions(as_of, choice.question.policy_id).items()
        if total[kind]
        for name, expression in (
            ("first", pl.col("created_at").filter(has).min()),
            ("last", pl.col(_BROKE_AT.get(kind, "created_at")).filter(has).max()),
            ("positions", pl.col("position").filter(has).top_k(MOST_IDS).implode()),
        )
    ]
    return choice.kept.select(told) if told else pl.LazyFrame({"none": [None]})


def _breaks(found: Mapping[str, Any], total: Mapping[str, int]) -> list[Broken]:
    return [
        Broken(
            kind=kind,
            count=total[kind],
            of=total[f"{kind}:of"],
            first=timestamp(found[f"{kind}:first"]),
            last=timestamp(found[f"{kind}:last"]),
            positions=tuple(sorted(found[f"{kind}:positions"], reverse=True)),
        )
        for kind in breaks.RULES
        if total[kind]
    ]
