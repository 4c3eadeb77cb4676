"""Which decisions of a policy the anomaly report looks at."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from gate.policy.questions import AnomaliesQuestion
from workbench.engines.slicing import last_left_out
from workbench.lake.reader import Snapshot


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
