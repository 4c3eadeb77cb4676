"""Says how far the outcomes of a policy's decisions support it. It counts the lake's cases with the function that
records and the service use.

    confidence(open_lake("var/lake").scope("acme"), "refund_policy", verdict="yes").to_dict()["score"]

Over the same chain, this is the service's own report, byte for byte. The formula is in
`docs/reference/formulas/confidence.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import polars as pl

from gate.policy.confidence import MIN_SAMPLE, Counts, Coverage, add, wilson_interval
from gate.policy.effectiveness import Standing
from gate.policy.questions import ConfidenceQuestion
from gate.policy.reports import confidence_report
from workbench.engines.arguments import require_decided, require_snapshot
from workbench.engines.findings import standings, support
from workbench.engines.rendering import cut, of_terminal, page, percent, prompt, readable
from workbench.engines.slicing import date_of, latest, looked_at
from workbench.engines.wording import phrase, stated
from workbench.history.marks import marked
from workbench.lake.reader import Snapshot

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, slots=True)
class ConfidenceReport:
    """The support that outcomes give a policy.

    Attributes:
        body: The report as the service answers it, with `confidence_hash`.
        frame: One row for each version, `{policy_version, <a column for each outcome status>, terminal, success_rate,
            low, high}`.
        scope: The scope's name.
    """

    body: dict[str, Any]
    frame: pl.DataFrame
    scope: str

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return self.body

    def __repr__(self) -> str:
        body = self.body
        told = of_terminal(body["success_rate"], int(self.frame["terminal"].sum()))
        counts = f"{told}, {body['coverage']['decisions']:,} decisions with an outcome"
        judged = f"score {percent(body['score'])}, level {body['level']}; {body['recommendation']}"
        return prompt("Confidence", body["policy_id"], self.scope, self._asked(), counts, judged)

    def _repr_html_(self) -> str:
        body = self.body
        facts = [("scope", self.scope)]
        facts += [(name, body[name]) for name in ("policy_version", "verdict", "action") if body[name] is not None]
        facts += [("score", percent(body["score"])), ("level", body["level"])]
        facts += [("similar_decisions", body["similar_decisions"])]
        facts += [("policy_stability", percent(body["policy_stability"]))]
        facts += [("recommendation", phrase(body["recommendation"]))]
        facts += [(name, stated(body["coverage"][name])) for name in ("from", "to")]
        title = f"Confidence in {body['policy_id']}"
        return page(
            title, facts, ("By version", readable(self.frame)), said=[f"{self._finding()}."], small=body["notes"]
        )

    def _asked(self) -> str:
        named = (("version", "policy_version"), ("verdict", "verdict"), ("action", "action"))
        return ", ".join(f"{name} {cut(self.body[of])}" for name, of in named if self.body[of] is not None)

    def _parts(self) -> dict[str, Standing]:
        return standings(self.frame, "policy_version")

    def _finding(self) -> str:
        body = self.body
        return support(body["policy_id"], body["score"], body["level"], self._parts(), body["min_sample"])

    def plot(self) -> alt.LayerChart | alt.FacetChart:
        """A chart with the success rate of each version, its interval, and the score as a dashed line."""
        from workbench.charts.confidence import by_version

        asked = f", {self._asked()}" if self._asked() else ""
        notes = [f"Policy {cut(self.body['policy_id'])} in scope {cut(self.scope)}{asked}."]
        # No version is marked: these rates are of whatever cases each met, which the report on effectiveness compares.
        return by_version(self.frame, self._finding(), self.body["score"], notes)


def confidence(
    snapshot: Snapshot,
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: str | None = None,
    since: date | None = None,
    until: date | None = None,
    clock: str | None = None,
    action: str | None = None,
    limit: int | None = None,
    min_sample: int = MIN_SAMPLE,
) -> ConfidenceReport:
    """Reports how far the outcomes of a policy's decisions support it.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        policy_version: One of its versions; None for all.
        verdict: One verdict, `yes`, `no`, or `review`; None for all.
        since: Only decisions from this moment on. A date, or a datetime without a time zone, is in UTC.
        until: Only decisions before this moment. A date includes its whole day.
        clock: The dates to use, `recorded` or `occurred`; None for those of the snapshot.
        action: One action; None for all.
        limit: The most decisions to consider, those with the latest outcomes, 1 to 1,000,000; None for all.
        min_sample: The number of terminal outcomes that a level needs, and that a version needs to be compared with the
            policy, 1 to 10,000.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`, or `LAKE_POLICY_UNKNOWN`.
    """
    require_snapshot(snapshot)
    question = ConfidenceQuestion(
        policy_id,
        policy_version=policy_version,
        verdict=verdict,
        since=since,
        until=until,
        clock=snapshot.clock if clock is None else clock,
        action=action,
        limit=limit,
        min_sample=min_sample,
    )
    require_decided(snapshot, policy_id, policy_version)
    return answer(snapshot, question)


def answer(snapshot: Snapshot, question: ConfidenceQuestion) -> ConfidenceReport:
    """Answers a confidence question.

    Args:
        snapshot: The scope's chain.
        question: The question.
    """
    version = question.policy_version
    rows = looked_at(snapshot.binding(question.policy_id), question).cases(question.policy_id)
    rows = rows.filter(pl.col("outcome_status").is_not_null())
    if question.action is not None:
        rows = rows.filter(pl.col("action") == question.action)
    chosen = rows if version is None else rows.filter(pl.col("policy_version") == version)
    chosen, truncated = latest(chosen, "outcome_position", question.limit)
    found, policy = pl.collect_all([_counted(chosen, "policy_version"), _counted(rows)], engine="streaming")
    by_version = {row[0]: Counts(*row[1:7]) for row in found.sort("policy_version").rows()}
    coverage = Coverage(
        by_version,
        add(Counts(*row[:6]) for row in policy.rows()) if policy.height else Counts(),
        date_of(found["first"].min()),
        date_of(found["last"].max()),
        truncated,
    )
    body = marked(confidence_report(coverage, question), snapshot, "confidence_hash")
    return ConfidenceReport(body, _frame(by_version), snapshot.title)


def _counted(rows: pl.LazyFrame, *by: str) -> pl.LazyFrame:
    statuses = [(pl.col("outcome_status") == status).sum().cast(pl.Int64).alias(status) for status in Counts._fields]
    dates = [pl.col("first_outcome_at").min().alias("first"), pl.col("last_outcome_at").max().alias("last")]
    return rows.group_by(by).agg(*statuses, *dates) if by else rows.select(*statuses, *dates)


def _frame(by_version: dict[str, Counts]) -> pl.DataFrame:
    rows = []
    for version, counts in by_version.items():
        low, high = wilson_interval(counts.succeeded, counts.terminal)
        told = {"terminal": counts.terminal, "success_rate": counts.success_rate, "low": low, "high": high}
        rows.append({"policy_version": version, **counts._asdict(), **told})
    numbers = dict.fromkeys((*Counts._fields, "terminal"), pl.Int64)
    rates = dict.fromkeys(("success_rate", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema={"policy_version": pl.String, **numbers, **rates})
