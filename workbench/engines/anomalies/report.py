"""What is anomalous about a policy's decisions: wrong lives of decisions, shifted rates, odd values, other facts.

    report = anomalies(open_lake("var/lake").scope("acme"), "refund_policy")
    report.frame                       # what was found, what is high and costs most first
    report.plot(0)                     # the first of it, week by week
    report.decisions(0).collect()      # the decisions that show it
    report.going_back(0)               # what the version before would have decided then

What is counted here, `gate.policy.anomalies` judges; the formulas are in `docs/reference/formulas/anomalies.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from gate.policy.anomalies.anomaly import AnomalyDocument
from gate.policy.anomalies.counted import Counted
from gate.policy.anomalies.report import anomaly_report, find, strongest
from gate.policy.anomalies.scores import THRESHOLD
from gate.policy.anomalies.weekly.stretch import moved
from gate.policy.bounds import refusal
from gate.policy.confidence import MIN_SAMPLE
from gate.policy.questions import MAX_ITEMS, AnomaliesQuestion
from workbench.engines.anomalies.choice import choose
from workbench.engines.anomalies.counts import count
from workbench.engines.anomalies.going_back import GoingBack, going_back
from workbench.engines.anomalies.sentences import several
from workbench.engines.anomalies.shown import cases_shown, decisions_shown
from workbench.engines.arguments import require_decided, require_measured, require_snapshot
from workbench.engines.findings import anomalies as listed_in
from workbench.engines.rendering import cut, on_one_line, page, prompt
from workbench.engines.slicing import looked_at
from workbench.engines.wording import phrase, stated
from workbench.history.marks import marked
from workbench.kept import Kept
from workbench.lake.reader import Snapshot

if TYPE_CHECKING:
    import altair as alt

    from workbench.charts.drawing import Link

BESIDE: Final = timedelta(weeks=10)
"""How much of the time before and after its window an anomaly is shown with."""

_PROMPTED = 10
_SHIFTS: Final = ("outcome_shift", "verdict_shift")


@dataclass(frozen=True, slots=True)
class AnomalyReport:
    """The anomalies of a policy's decisions.

    Attributes:
        body: The report as the service answers it, with `anomaly_hash`.
        frame: The listed anomalies, one row each: `{severity, score, kind, subject, from, to, decisions, summary}`.
        weekly: The examined rates: `{week, of, value, count, whole, rate}`. `of` is `verdict`, `reason`, or `outcome`.
        scope: The scope's name.
    """

    body: dict[str, Any]
    frame: pl.DataFrame
    weekly: pl.DataFrame
    scope: str
    _cases: pl.LazyFrame = field(repr=False)
    _shown: Sequence[pl.LazyFrame] = field(repr=False)
    _metrics: pl.LazyFrame = field(repr=False)
    _snapshot: Snapshot = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return self.body

    def decisions(self, at: int) -> pl.LazyFrame:
        """All the cases that a listed anomaly counts: as many as its `decisions`.

        Args:
            at: Which of `anomalies`, from 0.

        Raises:
            OperatorError: `ENGINE_ARGUMENT_INVALID`: there is none at that place.
        """
        self._listed(at)
        return self._shown[at]

    def beside(self, at: int) -> pl.DataFrame:
        """The context of a shift, a volume, or a break: the numbers behind its chart, by week or day.

        Args:
            at: The index in `anomalies`, from 0.

        Returns:
            For a shift of rates, `{week, of, value, count, whole, rate}`. For a shifted metric, `{week, values, low,
            median, high}` with the quartiles of each week. For a volume or a break, `{start, unit, decisions}`. For the
            other kinds, an empty frame without columns, because the document has all their numbers.

        Raises:
            OperatorError: `ENGINE_ARGUMENT_INVALID`: there is no such anomaly.
        """
        anomaly = self._listed(at)
        if anomaly["kind"] in _SHIFTS:
            return _rates_beside(anomaly, self.weekly)
        if anomaly["kind"] == "metric_shift":
            return _levels_beside(anomaly, self._metrics, self._cases)
        if anomaly["kind"] in ("volume", "lifecycle_break"):
            return _counts_beside(anomaly, self._cases if anomaly["kind"] == "volume" else self.decisions(at))
        return pl.DataFrame()

    def going_back(self, at: int) -> GoingBack | None:
        """The window of a listed anomaly, decided by the version before the new one that came with it.

        Args:
            at: The index in `anomalies`, from 0.

        Returns:
            None if no new version came with it, or if the version before is unknown.

        Raises:
            OperatorError: `ENGINE_ARGUMENT_INVALID`: there is no such anomaly; `LAKE_MOVED_ON`.
        """
        return going_back(self._snapshot, self.body["policy_id"], self._listed(at))

    def plot(
        self, at: int | None = None, *, only: Sequence[int] | None = None, link: Link | None = None
    ) -> alt.LayerChart | alt.FacetChart:
        """A chart of all listed anomalies over time, or of one anomaly in its context.

        Args:
            at: The index in `anomalies`, from 0; None for all.
            only: The indexes to include in the chart of all; None for all.
            link: The target of the mark of a row. The row has `at` if all are listed. For one anomaly, it has
                `week`, `of`, and `value` (rates), `week` (a metric), `start` and `unit` (counts), or `decision_id`
                (outliers).

        Raises:
            OperatorError: `ENGINE_ARGUMENT_INVALID`: there is no such anomaly.
        """
        from workbench.charts import anomalies as charts

        about = [f"Policy {cut(self.body['policy_id'])} in scope {cut(self.scope)}{self._asked()}."]
        if at is None:
            every = self.frame.with_row_index("at")
            if only is None:
                return charts.overview(every, listed_in(self.body), about, link=link)
            chosen = [self._listed(each) for each in sorted({*only})]
            finding = several(chosen, of=cut(self.body["policy_id"]))
            return charts.overview(every.filter(pl.col("at").is_in(sorted({*only}))), finding, about, link=link)
        anomaly = self._listed(at)
        if anomaly["kind"] in _SHIFTS:
            return charts.shift(anomaly, self.beside(at), about, link=link)
        if anomaly["kind"] == "metric_shift":
            return charts.level(anomaly, self.beside(at), about, link=link)
        if anomaly["kind"] == "fact_drift":
            return charts.drift(anomaly, about)
        if anomaly["kind"] == "metric_outlier":
            return charts.outlier(anomaly, about, link=link)
        return charts.count(anomaly, self.beside(at), about, link=link)

    def __repr__(self) -> str:
        body = self.body
        told = [f"{name} {number}" for name, number in body["severities"].items() if number]
        listed = [
            f"{of['severity']:<6} {of['anomaly_score']:.2f}  {of['window']['from'][:10]}  {on_one_line(of['summary'])}"
            for of in body["anomalies"][:_PROMPTED]
        ]
        more = body["anomaly_count"] - len(listed)
        return prompt(
            "Anomalies",
            body["policy_id"],
            self.scope,
            self._asked().removeprefix(", "),
            f"{', '.join(told) or 'none'}, in {body['coverage']['decisions']:,} decisions; {body['recommendation']}",
            *listed,
            f"and {more:,} more" if more > 0 else "",
        )

    def _repr_html_(self) -> str:
        body = self.body
        coverage = body["coverage"]
        facts = [("scope", self.scope), ("recommendation", phrase(body["recommendation"]))]
        facts += [("policy_version", body["policy_version"])] if body["policy_version"] is not None else []
        facts += [(f"{name}_severity", number) for name, number in body["severities"].items()]
        facts += [("decisions", coverage["decisions"])]
        facts += [(name, stated(coverage[name])) for name in ("from", "to", "as_of")]
        shown = self.frame.with_columns(pl.col("kind", "subject").map_elements(phrase, return_dtype=pl.String))
        title, said = f"Anomalies of {body['policy_id']}", [f"{listed_in(body)}."]
        return page(title, facts, ("High severity and highest cost first", shown), said=said, small=body["notes"])

    def _asked(self) -> str:
        return "" if (version := self.body["policy_version"]) is None else f", version {cut(version)}"

    def _listed(self, at: object) -> AnomalyDocument:
        listed: Sequence[AnomalyDocument] = self.body["anomalies"]
        if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < len(listed):
            there = f"its anomalies are numbered from 0 to {len(listed) - 1}" if listed else "it lists none"
            raise refusal(f"The report has no anomaly {at!r}: {there}.")
        return listed[at]


def anomalies(
    snapshot: Snapshot,
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: str | None = None,
    since: date | None = None,
    until: date | None = None,
    clock: str | None = None,
    limit: int | None = None,
    min_sample: int = MIN_SAMPLE,
    threshold: float = THRESHOLD,
    max_items: int = MAX_ITEMS,
    value: str | None = None,
) -> AnomalyReport:
    """What is anomalous about a policy's decisions in a scope.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        policy_version: One of its versions; None for all.
        verdict: One verdict, yes, no or review; None for all.
        since: Only decisions from this moment on; a date, or a datetime without a zone, is in UTC.
        until: Only decisions before this moment; a date includes its day.
        clock: By which dates, `recorded` or `occurred`; those of the snapshot where None.
        limit: How many decisions are looked at, the latest in the chain, 1 to 1,000,000; None for all.
        min_sample: How many cases a window needs, and what it is compared with, 1 to 10,000.
        threshold: The least score that is listed, 0 to 1.
        max_items: How many anomalies are listed, 1 to 200.
        value: The observed metric in which costs are estimated; None for none.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`, `LAKE_POLICY_UNKNOWN`, or `METRIC_UNKNOWN`.
    """
    require_snapshot(snapshot)
    question = AnomaliesQuestion(
        policy_id,
        policy_version=policy_version,
        verdict=verdict,
        since=since,
        until=until,
        clock=snapshot.clock if clock is None else clock,
        limit=limit,
        min_sample=min_sample,
        threshold=threshold,
        max_items=max_items,
        value=value,
    )
    if not snapshot.count_advisory(policy_id):
        require_decided(snapshot, policy_id, policy_version)
    if value is not None:
        require_measured(snapshot, policy_id, value)
    return answer(snapshot, question)


def answer(snapshot: Snapshot, question: AnomaliesQuestion, kept: Kept | None = None) -> AnomalyReport:
    """What is anomalous about a policy's decisions in a scope.

    Args:
        snapshot: The scope's chain.
        question: The question.
        kept: What was counted of the lake's files before; nothing is kept where None.
    """
    snapshot = looked_at(snapshot.binding(question.policy_id), question)
    choice = choose(snapshot, question)
    counting = count(snapshot, choice, kept or Kept(0))
    every = find(counting.counted, question)
    listed = strongest(every, question)
    shown = cases_shown(choice, counting, listed)
    ids = decisions_shown(shown, [anomaly.shown for anomaly in listed])
    body = marked(anomaly_report(counting.counted, every, ids, question), snapshot, "anomaly_hash")
    return AnomalyReport(
        body,
        _frame(body["anomalies"]),
        _weekly(counting.counted),
        snapshot.title,
        choice.kept,
        shown,
        counting.metrics,
        snapshot,
    )


def _near(column: str, anomaly: AnomalyDocument) -> pl.Expr:
    first, last = (datetime.fromisoformat(anomaly["window"][end]) for end in ("from", "to"))
    return pl.col(column).is_between(moved(first, -BESIDE), moved(last, BESIDE))


def _rates_beside(anomaly: AnomalyDocument, weekly: pl.DataFrame) -> pl.DataFrame:
    """The rates that shifted, in the weeks around the window that have any."""
    changed = pl.DataFrame([{"of": each["of"], "value": each["value"]} for each in anomaly["numbers"]["changes"]])
    week = pl.col("week").cast(pl.Datetime("ms", "UTC")).alias("start")
    near = weekly.with_columns(week).filter(_near("start", anomaly) & pl.col("rate").is_not_null()).drop("start")
    return near.join(changed, on=["of", "value"]).sort("of", "value", "week")


def _levels_beside(anomaly: AnomalyDocument, metrics: pl.LazyFrame, cases: pl.LazyFrame) -> pl.DataFrame:
    """Where the values of a metric lie, in the weeks around the window and of what it is compared with."""
    level = anomaly["numbers"]["levels"][0]
    since, until = (datetime.fromisoformat(of) for of in (level["reference_from"], level["to"]))
    near = cases.filter(pl.col("created_at").is_between(moved(since, -BESIDE), moved(until, BESIDE)))
    if level["version"] is not None:
        near = near.filter(pl.col("policy_version") == level["version"])
    values = metrics.filter(pl.col("name") == anomaly["subject"]).select("position", "value")
    rows = near.select("position", "week").join(values, on="position")
    ordered = pl.col("value").sort()
    quartiles = (
        ordered.get((pl.len() - 1) * quarter // 4).alias(name)
        for quarter, name in ((1, "low"), (2, "median"), (3, "high"))
    )
    counted = rows.group_by("week").agg(pl.len().alias("values"), *quartiles)
    return counted.sort("week").collect(engine="streaming")


def _counts_beside(anomaly: AnomalyDocument, cases: pl.LazyFrame) -> pl.DataFrame:
    """How many decisions there were around the window, by day where its grain is finer than a week."""
    weekly = anomaly["kind"] == "lifecycle_break" or anomaly["numbers"]["grain"] == "week"
    start = pl.col("created_at").dt.truncate("1w" if weekly else "1d").alias("start")
    counted = cases.filter(_near("created_at", anomaly)).group_by(start).agg(pl.len().alias("decisions"))
    unit = pl.lit("week" if weekly else "day").alias("unit")
    return counted.sort("start").select("start", unit, "decisions").collect()


def _frame(listed: Sequence[AnomalyDocument]) -> pl.DataFrame:
    rows = [
        {
            "severity": of["severity"],
            "score": of["anomaly_score"],
            "kind": of["kind"],
            "subject": of["subject"],
            "from": of["window"]["from"],
            "to": of["window"]["to"],
            "decisions": of["decisions"],
            "summary": of["summary"],
        }
        for of in listed
    ]
    texts = dict.fromkeys(("severity", "kind", "subject", "from", "to", "summary"), pl.String)
    types = {**texts, "score": pl.Float64, "decisions": pl.Int64}
    names = ("severity", "score", "kind", "subject", "from", "to", "decisions", "summary")
    frame = pl.DataFrame(rows, schema={name: types[name] for name in names})
    return frame.with_columns(pl.col("from", "to").str.to_datetime(time_zone="UTC", time_unit="ms"))


def _weekly(counted: Counted) -> pl.DataFrame:
    rows: list[tuple[object, ...]] = []
    if counted.weeks is not None:
        weeks = counted.weeks
        starts = [weeks.starts(at).date() for at in range(len(weeks.decisions))]
        ended = {status: ages[-1] for status, ages in weeks.outcomes.items()}
        terminal = [sum(of) for of in zip(*ended.values(), strict=True)]
        for of, series, wholes in (
            ("verdict", weeks.verdicts, weeks.decisions),
            ("reason", weeks.reasons, weeks.decisions),
            ("outcome", ended, terminal),
        ):
            for value, parts in sorted(series.items()):
                rows += [(week, of, value, *counts) for week, *counts in zip(starts, parts, wholes, strict=True)]
    schema = {"week": pl.Date, "of": pl.String, "value": pl.String, "count": pl.Int64, "whole": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(pl.when(pl.col("whole") > 0).then(pl.col("count") / pl.col("whole")).alias("rate"))
