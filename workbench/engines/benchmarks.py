"""Compares a policy with that of other scopes: your own decisions of a month, and the frozen rates of the others.

    report = benchmarks(open_lake("var/lake").scope("acme"), "refund_policy")
    report.to_dict()["cross_customer"]["percentiles"]
    report.plot()

This module counts, and `gate.policy.peers` judges. The formulas and limits are in
`docs/reference/formulas/benchmarks.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from gate.policy.peers import METRICS, Cohort, MonthCounts, Own, benchmark_report, month_of
from gate.policy.questions import MIN_DECISIONS, MIN_SCOPES, BenchmarksQuestion
from workbench.engines.arguments import require_chain, require_decided, require_snapshot
from workbench.engines.findings import benchmark
from workbench.engines.rendering import cut, page, percent, prompt
from workbench.engines.slicing import date_of, looked_at
from workbench.engines.slicing import latest as latest_cases
from workbench.engines.wording import heading, month, phrase
from workbench.lake.cohorts import cases_at, counts, latest
from workbench.lake.reader import Snapshot

if TYPE_CHECKING:
    import altair as alt

    from workbench.charts.drawing import Link

_PERCENTILES: Final = ("p10", "p25", "p50", "p75", "p90")


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """A policy compared with that of other scopes.

    Attributes:
        body: The report as the service answers it, with `benchmark_hash`.
        frame: One row for each metric, `{metric, yours, p10, p25, p50, p75, p90, delta}`; null where nothing is shown.
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
        own, across = body["your_metrics"], body["cross_customer"]
        counted = f"success rate {percent(own['success_rate'])} of {own['terminal']:,} terminal outcomes"
        lines = [f"{counted}, {own['decisions']:,} decisions{self._when()}"]
        if across["percentiles"] is not None:
            of = across["percentiles"]["success_rate"]
            quarters = ", ".join(f"{name} {percent(of[name])}" for name in ("p25", "p50", "p75"))
            lines.append(f"at least {across['scopes_at_least']:,} other scopes: {quarters}; {body['recommendation']}")
        else:
            lines.append(f"not compared, {across['reason']}: {across['explanation']}")
        return prompt("Benchmarks", body["policy_id"], self.scope, self._asked(), *lines)

    def _repr_html_(self) -> str:
        body = self.body
        across = body["cross_customer"]
        facts = [("scope", self.scope)]
        facts += [("policy_version", body["policy_version"])] if body["policy_version"] is not None else []
        facts += [(name, body["your_metrics"][name]) for name in ("decisions", "terminal")]
        present = body["your_metrics"]["present"]
        facts += [("present success rate", f"{percent(present['success_rate'])} of {present['terminal']:,} terminal")]
        facts += [("decisions_made", self._period()), ("recommendation", phrase(body["recommendation"]))]
        facts += [("comparison", phrase(across["status"])), ("compared_month", month(across["month"]))]
        facts += [(name, across[name]) for name in ("scopes_at_least", "decisions_at_least")]
        shown = self.frame.select(
            pl.Series("metric", list(map(heading, self.frame["metric"])), pl.String),
            *(
                pl.Series(name, list(map(percent, self.frame[name])), pl.String)
                for name in ("yours", *_PERCENTILES)
                if name == "yours" or self.frame[name].is_not_null().any()
            ),
        )
        said = [f"{benchmark(body)}.", across["explanation"] or ""]
        title = f"Benchmarks of {body['policy_id']}"
        return page(title, facts, ("Your metrics and those of other scopes", shown), said=said, small=body["notes"])

    def _asked(self) -> str:
        return "" if (version := self.body["policy_version"]) is None else f"version {cut(version)}"

    def _period(self) -> str:
        """The month in which the decisions were made."""
        return month(self.body["cross_customer"]["from"])

    def _when(self) -> str:
        return "" if self.body["cross_customer"]["from"] is None else f" made in {self._period()}"

    def plot(self, *, link: Link | None = None) -> alt.LayerChart | alt.FacetChart:
        """A chart with your rates as diamonds on the percentiles of others. Without a comparison, a sentence says why.

        Args:
            link: The target of each row's diamond; the row has `metric`.
        """
        from workbench.charts.benchmarks import on_percentiles

        asked = f", {self._asked()}" if self._asked() else ""
        made = "" if self.body["cross_customer"]["from"] is None else f" Decisions of {self._period()}."
        notes = [f"Policy {cut(self.body['policy_id'])} in scope {cut(self.scope)}{asked}.{made}"]
        return on_percentiles(self.frame, self.body, benchmark(self.body), notes, link=link)


def benchmarks(
    snapshot: Snapshot,
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: str | None = None,
    since: date | None = None,
    until: date | None = None,
    limit: int | None = None,
    min_cohort_scopes: int = MIN_SCOPES,
    min_cohort_decisions: int = MIN_DECISIONS,
) -> BenchmarkReport:
    """Compares a policy of a scope with the other scopes that took part when the latest month was frozen.

    Args:
        snapshot: The scope's chain. The frozen rates come from its lake.
        policy_id: The policy.
        policy_version: Only your own decisions of this version; None for all.
        verdict: Only your own decisions with this verdict, `yes`, `no`, or `review`; None for all.
        since: Only your own decisions from this moment on. A date, or a datetime without a time zone, is in UTC.
        until: Only your own decisions before this moment. A date includes its whole day.
        limit: The most decisions to consider, the latest in the chain, 1 to 1,000,000; None for all.
        min_cohort_scopes: The number of other scopes that a comparison needs, 5 to 1,000.
        min_cohort_decisions: The number of their decisions that it needs, 50 to 1,000,000.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`, `LAKE_POLICY_UNKNOWN`, or `LAKE_BENCHMARKS_INVALID`.
    """
    require_snapshot(snapshot)
    question = BenchmarksQuestion(
        policy_id,
        policy_version=policy_version,
        verdict=verdict,
        since=since,
        until=until,
        limit=limit,
        min_cohort_scopes=min_cohort_scopes,
        min_cohort_decisions=min_cohort_decisions,
    )
    require_decided(snapshot, policy_id, policy_version)
    return answer(snapshot, question)


def answer(snapshot: Snapshot, question: BenchmarksQuestion) -> BenchmarkReport:
    """Answers a benchmarks question about a scope, from the latest frozen month.

    Args:
        snapshot: The scope's chain. The frozen rates come from its lake.
        question: The question.

    Raises:
        OperatorError: `LAKE_BENCHMARKS_INVALID`.
    """
    require_chain(snapshot, "Benchmarks compare chains")
    snapshot = looked_at(snapshot.binding(question.policy_id), question)
    frozen, scope_id = latest(snapshot.lake), snapshot.manifest.scope_id
    month = _month_without_freeze(snapshot) if frozen is None else frozen.month
    cohort = None
    if frozen is not None:
        cohort = Cohort(frozen.month, frozen.has_member(scope_id), frozen.others(scope_id, question.policy_id))
    body = benchmark_report(_own(snapshot, month, question), cohort, question, month=month)
    return BenchmarkReport(body, _frame(body), snapshot.scope)


def _own(snapshot: Snapshot, month: str | None, question: BenchmarksQuestion) -> Own:
    """What came of the scope's own decisions that a freeze is about."""
    if month is None:
        none = MonthCounts()
        return Own(none, none, None, None, snapshot.position, snapshot.merkle_root, truncated=False)
    cases, truncated = _chosen(cases_at(snapshot, month, question.policy_id), question)
    present, _ = _chosen(snapshot.cases(question.policy_id), question)
    made = pl.col("created_at")
    counted = cases.select(*counts(), made.min().alias("first"), made.max().alias("last")).collect(engine="streaming")
    *numbers, first, last = counted.row(0)
    return Own(
        MonthCounts(*numbers),
        MonthCounts(*present.select(*counts()).collect(engine="streaming").row(0)),
        date_of(first),
        date_of(last),
        snapshot.position,
        snapshot.merkle_root,
        truncated=truncated,
        advisory=snapshot.count_advisory(question.policy_id),
    )


def _chosen(cases: pl.LazyFrame, question: BenchmarksQuestion) -> tuple[pl.LazyFrame, bool]:
    """The cases that a question chooses, and whether its limit left others out."""
    if question.policy_version is not None:
        cases = cases.filter(pl.col("policy_version") == question.policy_version)
    return latest_cases(cases, "position", question.limit)


def _month_without_freeze(snapshot: Snapshot) -> str | None:
    """The month that would have been frozen last when the chain's last entry was made; None for an empty chain."""
    last = snapshot.last_entry_at()
    return None if last is None else month_of(last)


def _frame(body: dict[str, Any]) -> pl.DataFrame:
    percentiles, deltas = (body["cross_customer"][name] or {} for name in ("percentiles", "deltas"))
    rows = [
        {
            "metric": metric,
            "yours": body["your_metrics"][metric],
            **{name: percentiles.get(metric, {}).get(name) for name in _PERCENTILES},
            "delta": deltas.get(metric),
        }
        for metric in METRICS
    ]
    numbers = dict.fromkeys(("yours", *_PERCENTILES, "delta"), pl.Float64)
    return pl.DataFrame(rows, schema={"metric": pl.String, **numbers})
