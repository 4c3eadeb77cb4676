"""The queries of an effectiveness report. Their results over unchanged files of the lake are kept."""

from __future__ import annotations

from typing import Final

import polars as pl

from gate.policy.anomalies.counted import TERMINAL
from gate.policy.effectiveness import GRANTED, LET_THROUGH, UNKNOWN
from gate.policy.questions import EffectivenessQuestion
from workbench.engines.slicing import last_left_out, taken
from workbench.kept import Kept
from workbench.lake.reader import Snapshot

_VERDICT: Final = pl.col("verdict")
_IS_GRANTED: Final = (pl.col("resolution") == GRANTED).fill_null(value=False)
_WAS_DONE: Final = (pl.col("times_executed") > 0) | pl.col("outcome_status").is_in(TERMINAL).fill_null(value=False)
DISPOSITION: Final = (
    pl.when(pl.coalesce("action_executed", (_VERDICT == "yes") | (_IS_GRANTED & _WAS_DONE)))
    .then(pl.lit(LET_THROUGH))
    .when(_VERDICT == "no")
    .then(pl.lit("blocked"))
    .when((_VERDICT == "review") & ~(_IS_GRANTED & pl.col("action_executed").is_not_null()))
    .then(pl.coalesce(pl.col("resolution").cast(pl.String), pl.lit("held")))
    # An imported case may have neither a verdict nor an outcome.
    .when(_VERDICT.is_null() & pl.col("action_executed").is_null())
    .then(pl.lit(UNKNOWN))
    .otherwise(pl.lit("not_executed"))
    .alias("disposition")
)
"""What became of an action: one of `gate.policy.effectiveness.DISPOSITIONS`."""

_BY: Final = ("policy_version", "verdict", "rule", "week", "disposition", "outcome_status")
_COUNTED: Final = (
    pl.len().cast(pl.Int64).alias("decisions"),
    pl.col("created_at").min().alias("first"),
    pl.col("created_at").max().alias("last"),
)
_ADDED: Final = (pl.col("decisions").sum(), pl.col("first").min(), pl.col("last").max(), pl.col("early").sum())
_SAMPLED: Final = ("position", "created_at", "week", "policy_version", "verdict", "outcome_status")


class Counting:
    """The decisions that a question chooses, counted and measured.

    Attributes:
        after: The chain position after which they come; None where a limit leaves none out.
    """

    def __init__(self, snapshot: Snapshot, question: EffectivenessQuestion, kept: Kept) -> None:
        """Takes the chain, with the decisions of other policies, the question, and what was counted before."""
        self._snapshot = snapshot
        self._policy_id = question.policy_id
        self._version = question.policy_version
        cases = self._of_version(snapshot.cases(question.policy_id))
        self.after: Final = last_left_out(cases, "position", question.limit)
        # Where a limit begins moves with each decision.
        self.kept: Final = kept if self.after is None else Kept(0)

    def groups(self) -> pl.DataFrame:
        """{policy_version, verdict, rule, week, disposition, outcome_status, decisions, first, last, early}, where
        `early` is how many of them have an outcome that happened before.
        """
        is_early = pl.col("outcome_occurred_at") < pl.col("created_at")
        if self._snapshot.imported is not None:
            # A file dates events alone, and outcomes often by their day.
            is_early = pl.col("outcome_reported_at") < pl.col("created_at").dt.truncate("1d")
        early = is_early.sum().cast(pl.Int64).alias("early")
        found = self.kept.of(
            self._snapshot,
            "cases",
            (self._policy_id, "groups"),
            lambda part: self._cases(part).with_columns(DISPOSITION).group_by(_BY).agg(*_COUNTED, early),
        )
        return self._of_version(found.lazy()).group_by(_BY).agg(_ADDED).collect()

    def reviews(self) -> pl.DataFrame:
        """{policy_version, resolution, waiting_seconds, decisions} of the decisions with the verdict review."""
        by = ("policy_version", "resolution", "waiting_seconds")
        number = pl.len().cast(pl.Int64).alias("decisions")
        found = self.kept.of(
            self._snapshot,
            "cases",
            (self._policy_id, "reviews"),
            lambda part: self._cases(part).filter(_VERDICT == "review").group_by(by).agg(number),
        )
        return self._of_version(found.lazy()).collect()

    def sample(self, one_of: int) -> pl.DataFrame:
        """One of so many decisions: {position, created_at, week, policy_version, verdict, outcome_status,
        disposition}."""
        found = self.kept.of(
            self._snapshot,
            "cases",
            (self._policy_id, "sample", one_of),
            lambda part: self._cases(part).filter(taken(one_of)).select(*_SAMPLED, DISPOSITION),
        )
        return self._of_version(found.lazy()).collect()

    def values(self, one_of: int) -> pl.DataFrame:
        """What the latest outcomes of one of so many decisions measured: {position, name, value}."""
        return self.kept.of(
            self._snapshot,
            "metrics",
            (self._policy_id, "values", one_of),
            lambda part: part.metrics(self._policy_id).filter(taken(one_of)).select("position", "name", "value"),
        )

    def measured(self) -> pl.DataFrame:
        """{name, decisions, min, median, max} of each metric, those of the most decisions first. Only what orders
        values: sums of floats depend on the order they are added in.
        """
        value = pl.col("value")
        rows = self._of_version(self._later(self._snapshot.metrics(self._policy_id)))
        counted = rows.group_by("name").agg(
            pl.len().alias("decisions"),
            value.min().alias("min"),
            value.quantile(0.5, "lower").alias("median"),
            value.max().alias("max"),
        )
        return counted.sort("decisions", "name", descending=[True, False]).collect(engine="streaming")

    def _cases(self, part: Snapshot) -> pl.LazyFrame:
        return self._later(part.cases(self._policy_id))

    def _later(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows if self.after is None else rows.filter(pl.col("position") > self.after)

    def _of_version(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows if self._version is None else rows.filter(pl.col("policy_version") == self._version)
