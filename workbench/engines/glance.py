"""All policies of a scope at a glance: how much each decides, its results, its held decisions, and its trend.

    look = glance(open_lake("var/lake").scope("acme"))
    look.frame.filter(trend="falling")

Rates are defined as in effectiveness; `docs/reference/formulas/effectiveness.md` defines a trend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import polars as pl

from gate.policy.confidence import MIN_SAMPLE
from gate.policy.effectiveness import Standing, below_others
from gate.policy.questions import VERDICTS
from workbench.columns import IS_ADVISORY, TIME
from workbench.engines.arguments import require_snapshot
from workbench.engines.slicing import by_status, rated
from workbench.history.marks import mark_of
from workbench.lake.reader import Snapshot

RECENT: Final = timedelta(days=28)
"""The length of a policy's latest period, counted back from its newest decision."""

_WEEKLY: Final = ("policy_id", "week", "decisions", "terminal", "success_rate")
# A verdict and a status have one name.
_OUTCOME_COLUMNS: Final = {"review": "outcome_review"}
_COLUMNS: Final = (
    *("policy_id", "decisions", *VERDICTS, *(_OUTCOME_COLUMNS.get(name, name) for name in Standing._fields)),
    *("success_rate", "low", "high", "held", "oldest_held_at", "latest_version", "last_decision_at", "trend"),
)
_ADVISORY: Final = IS_ADVISORY.alias("advisory")
_RESOLVED: Final = pl.col("resolution").is_not_null().alias("resolved")
_OF_VERSION: Final = ("policy_id", "policy_version")
_OF_VERDICT: Final = {verdict: f"verdict:{verdict}" for verdict in VERDICTS}


@dataclass(frozen=True, slots=True)
class Glance:
    """All policies of a scope at a glance.

    Attributes:
        frame: `{policy_id, decisions, yes, no, review, succeeded, partial, failed, reverted, pending, outcome_review,
            unreported, success_rate, low, high, held, oldest_held_at, latest_version, last_decision_at, trend}`, the
            policy with the most decisions first. `review` is the verdict, and `outcome_review` the outcome status.
            `trend` is `falling`, `rising`, `steady`, or `unknown`.
        weekly: `{policy_id, week, decisions, terminal, success_rate}`, by policy and week.
        advisory: The number of decisions left out because they are advisory: no policy made them.
        acted_on: The policy_ids of those advisory decisions whose action was executed or queued anyway, sorted.
        history: The imported history that it reads, `{name, history_hash, rows, refused}`; None for the chain.
    """

    frame: pl.DataFrame
    weekly: pl.DataFrame
    advisory: int = 0
    acted_on: Sequence[str] = ()
    history: Mapping[str, object] | None = None


def glance(snapshot: Snapshot) -> Glance:
    """Summarizes all policies of a scope.

    Args:
        snapshot: The scope's chain.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    require_snapshot(snapshot)
    groups = _groups(snapshot.cases())
    advisory = groups.filter("advisory")
    cases, groups = snapshot.binding().cases(), groups.filter(~pl.col("advisory"))
    weekly = rated(groups.group_by("policy_id", "week").agg(by_status())).select(_WEEKLY)
    trends = _trends(groups, _recent(cases, groups))
    frame = _frame(groups, _latest_versions(groups, snapshot), trends)
    acted_on = advisory.filter(pl.col("unapproved") > 0)["policy_id"].unique().sort()
    return Glance(
        frame, weekly.sort("policy_id", "week"), int(advisory["decisions"].sum()), acted_on.to_list(), mark_of(snapshot)
    )


def _groups(cases: pl.LazyFrame) -> pl.DataFrame:
    """The decisions, counted by everything that the frames distinguish."""
    made = pl.col("created_at")
    return (
        cases.group_by(*_OF_VERSION, "week", "verdict", "outcome_status", "execution_status", _RESOLVED, _ADVISORY)
        .agg(
            pl.len().cast(pl.Int64).alias("decisions"),
            pl.col("times_unapproved").sum().alias("unapproved"),
            made.min().alias("first"),
            made.max().alias("last"),
            pl.col("position").min().alias("first_position"),
        )
        .collect(engine="streaming")
    )


def _recent(cases: pl.LazyFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The decisions of each policy's latest days, counted by outcome status."""
    since = groups.group_by("policy_id").agg((pl.col("last").max() - RECENT).alias("since"))
    made = pl.col("created_at")
    # What is older than the latest days of every policy need not be read.
    return (
        cases.filter(made > pl.lit(since["since"].min(), TIME))
        .join(since.lazy(), on="policy_id")
        .filter(made > pl.col("since"))
        .group_by("policy_id", "outcome_status")
        .agg(pl.len().cast(pl.Int64).alias("decisions"))
        .collect(engine="streaming")
    )


def _frame(groups: pl.DataFrame, latest_versions: pl.DataFrame, trends: pl.DataFrame) -> pl.DataFrame:
    # None of them is advisory, whose state is another.
    decisions = pl.col("decisions")
    is_held = pl.col("execution_status").is_null() & (pl.col("verdict") == "review") & ~pl.col("resolved")
    counted = groups.group_by("policy_id").agg(
        *by_status(),
        *(decisions.filter(pl.col("verdict") == verdict).sum().alias(name) for verdict, name in _OF_VERDICT.items()),
        decisions.filter(is_held).sum().alias("held"),
        pl.col("first").filter(is_held).min().alias("oldest_held_at"),
        pl.col("last").max().alias("last_decision_at"),
    )
    return (
        rated(counted)
        .rename(_OUTCOME_COLUMNS)
        .rename({name: verdict for verdict, name in _OF_VERDICT.items()})
        .join(latest_versions, on="policy_id", how="left")
        .join(trends, on="policy_id", how="left")
        .select(_COLUMNS)
        .sort("decisions", "policy_id", descending=[True, False])
    )


def _latest_versions(groups: pl.DataFrame, snapshot: Snapshot) -> pl.DataFrame:
    """{policy_id, latest_version}: of the versions that decided, the one whose rulebook was first used last."""
    used = snapshot.table("rulebooks").group_by(_OF_VERSION).agg(pl.col("position").max()).collect()
    decided = groups.group_by(_OF_VERSION).agg(pl.col("first_position").min()).join(used, on=_OF_VERSION, how="left")
    # A snapshot may have been read without its rulebooks; a version's first decision is where its rulebook stands.
    ordered = decided.with_columns(pl.coalesce("position", "first_position").alias("first"))
    latest = pl.col("policy_version").sort_by("first", "policy_version").last()
    return ordered.group_by("policy_id").agg(latest.alias("latest_version"))


def _trends(groups: pl.DataFrame, recent: pl.DataFrame) -> pl.DataFrame:
    """{policy_id, trend}: whether the latest days do worse, or better, than all days before them."""
    whole, latest = (
        {policy_id: Standing(*numbers) for policy_id, *numbers in of.group_by("policy_id").agg(by_status()).iter_rows()}
        for of in (groups, recent)
    )
    trends = {policy_id: _trend(latest[policy_id], standing) for policy_id, standing in whole.items()}
    schema = {"policy_id": pl.String, "trend": pl.String}
    return pl.DataFrame(list(trends.items()), schema=schema, orient="row")


def _trend(recent: Standing, whole: Standing) -> str:
    before = Standing(*(of - late for of, late in zip(whole, recent, strict=True)))
    if min(recent.terminal, before.terminal) < MIN_SAMPLE:
        return "unknown"
    below = below_others({"recent": recent, "before": before}, MIN_SAMPLE)
    if "recent" in below:
        return "falling"
    return "rising" if "before" in below else "steady"
