"""A policy over time: its verdicts, reasons, rules, latency of outcomes, and metrics.

    done = activity(open_lake("var/lake").scope("acme"), "refund_policy")
    done.rules.filter(decisions=0)  # rules that decided nothing
    done.median_hours

Rates are defined as in effectiveness; `docs/guides/find-decisions.md` explains the other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson
import polars as pl

from gate.policy.effectiveness import Standing
from gate.policy.questions import PolicyQuestion
from gate.policy.reports import MAX_METRICS, MAX_RULES, MAX_VERSIONS
from workbench.columns import TIME, VERDICT, DataType
from workbench.engines.arguments import require_decided, require_snapshot
from workbench.engines.slicing import by_status, rated
from workbench.history.marks import mark_of
from workbench.lake.reader import Snapshot

MAX_REASONS: Final = MAX_RULES
"""The most rows of `reasons`, and of `rules`."""

_MAX_RULEBOOKS: Final = 200
_HOUR_MS: Final = 3_600_000
_DIGITS: Final = 6
_WAITED: Final = {"median_hours": 0.5, "p90_hours": 0.9}
_QUARTILES: Final = {"p25": 0.25, "median": 0.5, "p75": 0.75}
_RATED: Final = ("decisions", "terminal", "success_rate", "low", "high")


@dataclass(frozen=True, slots=True)
class Activity:
    """A policy's activity over time.

    Attributes:
        weekly: `{week, policy_version, verdict, decisions}`, by week, version, and verdict. Beyond 50 versions, the
            ones with the fewest decisions are merged under the version null.
        reasons: `{reason_code, verdict, decisions, terminal, success_rate, low, high}`, most decisions first, at most
            200 rows.
        rules: `{rule, verdict, decisions, terminal, success_rate, low, high, last_hit_at}`, likewise. A rule that
            decided nothing has 0 decisions and no verdict.
        latency: `{week, decisions, with_outcome, median_hours, p90_hours}`: the time from the decisions of a week to
            their first outcomes; null if there are none.
        metrics: `{name, policy_version, decisions, p25, median, p75, min, max}`: the values of the latest outcomes, for
            at most 64 names and 50 versions. Names with the most decisions come first.
        decisions: The number of decisions that the policy made.
        with_outcome: The number of these decisions that have an outcome with a known date.
        median_hours: The median time from the decision to its first outcome; None without outcomes.
        p90_hours: The 90th percentile of that time.
        reasons_left_out: The number of rows left out of `reasons`.
        rules_left_out: The number of rows left out of `rules`.
        metrics_left_out: The number of metric names left out of `metrics`.
        versions_left_out: The number of versions that are merged in `weekly` and left out of `metrics`.
        history: The imported history that it reads, `{name, history_hash, rows, refused}`; None for the chain. The
            verdict of imported cases may be null.
    """

    weekly: pl.DataFrame
    reasons: pl.DataFrame
    rules: pl.DataFrame
    latency: pl.DataFrame
    metrics: pl.DataFrame
    decisions: int
    with_outcome: int
    median_hours: float | None
    p90_hours: float | None
    reasons_left_out: int
    rules_left_out: int
    metrics_left_out: int
    versions_left_out: int
    history: Mapping[str, object] | None = None


def activity(snapshot: Snapshot, policy_id: str, policy_version: str | None = None) -> Activity:
    """Summarizes a policy over time.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        policy_version: One of its versions; None for all.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`, or `LAKE_POLICY_UNKNOWN`.
    """
    require_snapshot(snapshot)
    question = PolicyQuestion(policy_id, policy_version=policy_version)
    require_decided(snapshot, policy_id, policy_version)
    snapshot = snapshot.binding(policy_id)
    # One after the other: together they take longer, as each needs all processors and memory of its own.
    cases = _asked(snapshot.cases(policy_id), question)
    groups = _groups(cases)
    waits = _waits(cases)
    metrics = _metrics(_asked(snapshot.metrics(policy_id), question))
    versions = _most(groups, "policy_version")
    kept = versions.head(MAX_VERSIONS)
    measured = _most(metrics, "name")
    reasons = _rows(groups, "reason_code").drop("last_hit_at")
    hit = _rows(groups, "rule")
    rules = pl.concat([hit, _never_hit(snapshot, policy_id, kept, hit["rule"])])
    return Activity(
        weekly=_weekly(groups, kept),
        reasons=reasons.head(MAX_REASONS),
        rules=rules.head(MAX_RULES),
        latency=_latency(groups, waits),
        metrics=_listed(metrics, measured.head(MAX_METRICS), kept),
        decisions=int(groups["decisions"].sum()),
        with_outcome=waits.height,
        median_hours=_hours(waits["wait"].quantile(_WAITED["median_hours"], "lower")),
        p90_hours=_hours(waits["wait"].quantile(_WAITED["p90_hours"], "lower")),
        reasons_left_out=max(reasons.height - MAX_REASONS, 0),
        rules_left_out=max(rules.height - MAX_RULES, 0),
        metrics_left_out=max(measured.len() - MAX_METRICS, 0),
        versions_left_out=max(versions.len() - MAX_VERSIONS, 0),
        history=mark_of(snapshot),
    )


def _asked(rows: pl.LazyFrame, question: PolicyQuestion) -> pl.LazyFrame:
    version = question.policy_version
    return rows if version is None else rows.filter(pl.col("policy_version") == version)


def _groups(cases: pl.LazyFrame) -> pl.DataFrame:
    """The decisions, counted by everything that the frames distinguish."""
    return (
        cases.group_by("week", "policy_version", "verdict", "reason_code", "rule", "outcome_status")
        .agg(pl.len().cast(pl.Int64).alias("decisions"), pl.col("created_at").max().alias("last"))
        .collect(engine="streaming")
    )


def _waits(cases: pl.LazyFrame) -> pl.DataFrame:
    """`{wait}` by week: the milliseconds from each decision to its first outcome, if that outcome has a date."""
    wait = (pl.col("first_outcome_at") - pl.col("created_at")).dt.total_milliseconds().alias("wait")
    return cases.filter(pl.col("first_outcome_at").is_not_null()).select("week", wait).collect(engine="streaming")


def _metrics(rows: pl.LazyFrame) -> pl.DataFrame:
    """The metrics by name and version. It only takes values by their order, because sums of floats depend on the order
    of addition.
    """
    value = pl.col("value")
    quartiles = [value.quantile(share, "lower").alias(name) for name, share in _QUARTILES.items()]
    return (
        rows.group_by("name", "policy_version")
        .agg(pl.len().cast(pl.Int64).alias("decisions"), *quartiles, value.min().alias("min"), value.max().alias("max"))
        .collect(engine="streaming")
    )


def _most(rows: pl.DataFrame, name: str) -> pl.Series:
    """The names in a column, that of the most decisions first."""
    counted = rows.group_by(name).agg(pl.col("decisions").sum())
    return counted.sort("decisions", name, descending=[True, False])[name]


def _weekly(groups: pl.DataFrame, versions: pl.Series) -> pl.DataFrame:
    # Callers choose the versions, and may choose a new one each time.
    version = pl.col("policy_version")
    folded = pl.when(version.is_in(versions.implode())).then(version).alias("policy_version")
    by = ("week", "policy_version", "verdict")
    return groups.group_by("week", folded, "verdict").agg(pl.col("decisions").sum()).sort(by, nulls_last=True)


def _rows(groups: pl.DataFrame, name: str) -> pl.DataFrame:
    """The decisions of each name and verdict, and what came of them."""
    counted = groups.group_by(name, "verdict").agg(*by_status(), pl.col("last").max().alias("last_hit_at"))
    rows = rated(counted).select(name, "verdict", *_RATED, "last_hit_at")
    return rows.sort("decisions", name, "verdict", descending=[True, False, False])


def _never_hit(snapshot: Snapshot, policy_id: str, versions: pl.Series, hit: pl.Series) -> pl.DataFrame:
    """The rules of the latest rulebooks of some versions that decided nothing, as rows of rules."""
    used = (
        snapshot.table("rulebooks")
        .filter((pl.col("policy_id") == policy_id) & pl.col("policy_version").is_in(versions.implode()))
        .select("body", "position")
        .top_k(_MAX_RULEBOOKS, by="position")
        .collect()
    )
    named = {f"rule:{rule['rule_id']}" for body in used["body"] for rule in orjson.loads(body)["rules"]}
    names = sorted(named - {*hit})
    counts = dict.fromkeys(Standing._fields, pl.Int64())
    types: dict[str, DataType] = {"rule": pl.String, "verdict": VERDICT, **counts, "last_hit_at": TIME}
    rows = [{"rule": name, **dict.fromkeys(counts, 0)} for name in names]
    return rated(pl.DataFrame(rows, schema=types)).select("rule", "verdict", *_RATED, "last_hit_at")


def _latency(groups: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    wait = pl.col("wait")
    told = waits.group_by("week").agg(
        pl.len().cast(pl.Int64).alias("with_outcome"),
        *(wait.quantile(share, "lower").alias(name) for name, share in _WAITED.items()),
    )
    counted = groups.group_by("week").agg(pl.col("decisions").sum())
    rows = counted.join(told, on="week", how="left").sort("week")
    return rows.select(
        "week",
        "decisions",
        pl.col("with_outcome").fill_null(0),
        *(pl.Series(name, list(map(_hours, rows[name])), pl.Float64) for name in _WAITED),
    )


def _hours(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / _HOUR_MS, _DIGITS)


def _listed(metrics: pl.DataFrame, names: pl.Series, versions: pl.Series) -> pl.DataFrame:
    """The metrics with some names and versions, in the order of the names and most decisions first."""
    order = pl.DataFrame({"name": names}).with_row_index("order")
    return (
        metrics.filter(pl.col("policy_version").is_in(versions.implode()))
        .join(order, on="name")
        .sort("order", "decisions", "policy_version", descending=[False, True, False])
        .drop("order")
        .select("name", "policy_version", "decisions", *_QUARTILES, "min", "max")
    )
