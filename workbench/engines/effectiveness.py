"""How well a policy does: what came of its decisions, by version, verdict, rule and week.

    report = effectiveness(open_lake("var/lake").scope("acme"), "refund_policy")
    report.to_dict()["effectiveness_score"]
    report.plot()

What is counted here, `gate.policy.effectiveness` judges; the formulas are in docs/effectiveness.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from gate.ids import timestamp
from gate.policy.confidence import MIN_SAMPLE, wilson_interval
from gate.policy.effectiveness import Counted, Group, Metric, Standing, below_others
from gate.policy.questions import EffectivenessQuestion
from gate.policy.reports import MAX_METRICS, effectiveness_report
from workbench.columns import NO_VERDICT
from workbench.engines.arguments import require_decided, require_snapshot
from workbench.engines.findings import standings, success
from workbench.engines.rendering import cut, interval, listed, of_terminal, page, percent, prompt, readable
from workbench.engines.slicing import by_status, date_of, last_left_out
from workbench.engines.wording import decided_by, phrase, stated
from workbench.history.marks import marked
from workbench.lake.reader import Snapshot

if TYPE_CHECKING:
    import altair as alt

    from workbench.charts.drawing import Link

_STATUSES: Final = Standing._fields
_TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")
_MOST_FIRST: Final = ("decisions", "name")
_NAMED: Final = {"version": "Policy version", "verdict": "Verdict", "rule": "Decided by"}
_COLUMNS: Final = {"version": "policy_version", "verdict": "verdict", "rule": "rule"}
_LISTED: Final = {"policy_version": "version", "verdict": "verdict", "rule": "rule"}


@dataclass(frozen=True, slots=True)
class EffectivenessReport:
    """How well a policy does.

    Attributes:
        body: The report as the service answers it, with `effectiveness_hash`.
        frame: Its counts and rates: a row for everything together (`part` all), and one for each version, verdict, rule
            and week; {part, name, decisions, <a column for each outcome status>, unreported, effectiveness_score,
            success_rate, low, high, failure_rate, terminal_coverage}.
        weekly: The same counts by week and version: {week, policy_version, decisions, ..., success_rate, low, high}.
        scope: The scope's name.
    """

    body: dict[str, Any]
    frame: pl.DataFrame
    weekly: pl.DataFrame
    scope: str

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return self.body

    def __repr__(self) -> str:
        body = self.body
        outcomes = body["outcomes"]
        terminal = sum(outcomes[status] for status in _TERMINAL)
        counts = f"{of_terminal(body['success_rate'], terminal)}, {body['coverage']['decisions']:,} decisions"
        below = f"below the other versions: {self._below()}; " if body["versions_below_others"] else ""
        return prompt(
            "Effectiveness", body["policy_id"], self.scope, self._asked(), counts, f"{below}{body['recommendation']}"
        )

    def _repr_html_(self) -> str:
        body = self.body
        coverage, bounds = body["coverage"], body["bounds"]
        facts = [("scope", self.scope)]
        facts += [("policy_version", body["policy_version"])] if body["policy_version"] is not None else []
        facts += [(name, percent(body[name])) for name in ("effectiveness_score", "confidence")]
        facts += [
            ("recommendation", phrase(body["recommendation"])),
            ("success_rate", interval(**body["success_rate"])),
        ]
        facts += [(name, percent(body[name])) for name in ("failure_rate", "review_rate", "terminal_coverage")]
        facts += [("decisions", coverage["decisions"])]
        facts += [(name, stated(coverage[name])) for name in ("from", "to")]
        parts = [
            (f"By {part}", _listed(body[f"{part}s"], name))
            for part, name in (("version", "policy_version"), ("verdict", "verdict"), ("rule", "rule"))
        ]
        bounded = (
            f"Bounds: had every action been let through, between {percent(bounds['low'])} and "
            f"{percent(bounds['high'])} would have succeeded; {bounds['unknown']:,} were let through and have no "
            f"terminal outcome, {bounds['unobservable']:,} were not let through."
        )
        title = f"Effectiveness of {body['policy_id']}"
        return page(title, facts, *parts, said=[f"{self.finding('version')}."], small=[bounded, *body["notes"]])

    def _asked(self) -> str:
        return "" if (version := self.body["policy_version"]) is None else f"version {cut(version)}"

    def _below(self) -> str:
        """The versions below the others; empty where there are none."""
        return listed([of["policy_version"] for of in self.body["versions"] if of["below_others"]])

    def parts(self, by: str) -> dict[str, Standing]:
        """The counts of each version, verdict or rule; of weeks, too, those of each version."""
        return standings(self.weekly if by == "week" else self._rows(by), "policy_version" if by == "week" else "name")

    def _rows(self, by: str) -> pl.DataFrame:
        return self.frame.filter(pl.col("part") == by)

    def finding(self, by: str = "version") -> str:
        """The sentence above the chart: which versions, verdicts or rules do worse than the others, or that none does.

        Args:
            by: As for `plot`.
        """
        part = "version" if by == "week" else by
        return success(self.body["policy_id"], part, self.parts(by), self.body["min_sample"])

    def plot(self, by: str = "week", *, link: Link | None = None) -> alt.LayerChart | alt.FacetChart:
        """The success rate with its 95% Wilson interval, under a sentence that says what stands out.

        Args:
            by: `week` (a line for each of the versions with the most decisions), `version`, `verdict` or `rule`.
            link: What the mark of a row leads to; the row has `policy_version`, `verdict` or `rule`, and of weeks
                `week` and `policy_version`.

        Raises:
            ValueError: There is no such part.
        """
        from workbench.charts.colours import OF
        from workbench.charts.effectiveness import weekly
        from workbench.charts.rates import rates

        if by != "week" and by not in _NAMED:
            raise ValueError(f"A report has no part {by!r}; plot it by week, version, verdict or rule.")
        asked = f", {self._asked()}" if self._asked() else ""
        notes = [f"Policy {cut(self.body['policy_id'])} in scope {cut(self.scope)}{asked}."]
        if by == "week":
            return weekly(self.weekly, self.finding(by), notes, link=link)
        below = below_others(self.parts(by), self.body["min_sample"])
        rows = self._rows(by).with_columns(pl.col("name").alias(_COLUMNS[by]))
        if by == "rule":
            # As the finding names them; what decided is unique under either name.
            rows = rows.with_columns(pl.col("name").map_elements(decided_by, return_dtype=pl.String))
            below = frozenset(map(decided_by, below))
        return rates(
            rows,
            "name",
            named=_NAMED[by],
            finding=self.finding(by),
            notes=notes,
            meanings=OF if by == "verdict" else {},
            marked=below,
            link=link,
        )


def effectiveness(
    snapshot: Snapshot,
    policy_id: str,
    *,
    policy_version: str | None = None,
    limit: int | None = None,
    min_sample: int = MIN_SAMPLE,
) -> EffectivenessReport:
    """How well a policy does in a scope.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        policy_version: One of its versions; None for all.
        limit: How many decisions are looked at, the latest in the chain, 1 to 1,000,000; None for all.
        min_sample: How many terminal outcomes a judgement needs, and a version to be compared with the others; 1 to
            10,000.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID, or LAKE_POLICY_UNKNOWN.
    """
    require_snapshot(snapshot)
    question = EffectivenessQuestion(policy_id, policy_version=policy_version, limit=limit, min_sample=min_sample)
    require_decided(snapshot, policy_id, policy_version)
    return answer(snapshot, question)


def answer(snapshot: Snapshot, question: EffectivenessQuestion) -> EffectivenessReport:
    """How well a policy does in a scope.

    Args:
        snapshot: The scope's chain.
        question: The question.
    """
    snapshot = snapshot.binding(question.policy_id)
    cases, metrics, truncated = _chosen(snapshot, question)
    groups, measured = pl.collect_all([_grouped(cases), _measured(metrics)], engine="streaming")
    counted = Counted(
        by_version={
            name: Group(standing, timestamp(first), timestamp(last))
            for name, standing, first, last in _standings(groups, "policy_version")
        },
        by_verdict={name or NO_VERDICT: standing for name, standing, *_ in _standings(groups, "verdict")},
        by_rule={name: standing for name, standing, *_ in _standings(groups, "rule")},
        by_week={week.isoformat(): standing for week, standing, *_ in _standings(groups, "week")},
        acted=next((standing for acted, standing, *_ in _standings(groups, "acted") if acted), Standing()),
        # The most that a report lists: callers choose the names, and may choose a new one each time.
        metrics=[Metric(*row) for row in measured.sort(_MOST_FIRST, descending=[True, False]).head(MAX_METRICS).rows()],
        more_metrics=max(measured.height - MAX_METRICS, 0),
        first=date_of(groups["first"].min()),
        last=date_of(groups["last"].max()),
        chain_position=snapshot.position,
        merkle_root=snapshot.merkle_root,
        truncated=truncated,
        advisory=snapshot.count_advisory(question.policy_id),
    )
    body = marked(effectiveness_report(counted, question), snapshot, "effectiveness_hash")
    return EffectivenessReport(body, _frame(counted), _weekly(groups), snapshot.title)


def _chosen(snapshot: Snapshot, question: EffectivenessQuestion) -> tuple[pl.LazyFrame, pl.LazyFrame, bool]:
    """The decisions looked at, what their latest outcomes measured, and whether earlier decisions were left out."""
    cases, metrics = snapshot.cases(question.policy_id), snapshot.metrics(question.policy_id)
    if question.policy_version is not None:
        asked = pl.col("policy_version") == question.policy_version
        cases, metrics = cases.filter(asked), metrics.filter(asked)
    after = last_left_out(cases, "position", question.limit)
    if after is None:
        return cases, metrics, False
    looked_at = pl.col("position") > after
    return cases.filter(looked_at), metrics.filter(looked_at), True


def _grouped(rows: pl.LazyFrame) -> pl.LazyFrame:
    acted = pl.coalesce("action_executed", pl.col("verdict") == "yes").alias("acted")
    return rows.group_by("policy_version", "verdict", "rule", "week", acted, "outcome_status").agg(
        pl.len().alias("decisions"),
        pl.col("created_at").min().alias("first"),
        pl.col("created_at").max().alias("last"),
    )


def _measured(metrics: pl.LazyFrame) -> pl.LazyFrame:
    """The metrics by name. Only what orders them: sums of floats depend on the order they are added in."""
    value = pl.col("value")
    return metrics.group_by("name").agg(
        pl.len().alias("decisions"),
        value.min().alias("min"),
        value.quantile(0.5, "lower").alias("median"),
        value.max().alias("max"),
    )


def _standings(groups: pl.DataFrame, *by: str) -> list[tuple[Any, ...]]:
    """(name..., Standing, first, last) of each group."""
    counted = groups.group_by(by).agg(*by_status(), pl.col("first").min(), pl.col("last").max())
    names = len(by)
    return [(*row[:names], Standing(*row[names:-2]), *row[-2:]) for row in counted.rows()]


def _row(standing: Standing) -> dict[str, float | None]:
    low, high = wilson_interval(standing.succeeded, standing.terminal)
    return {
        "decisions": standing.decisions,
        **standing._asdict(),
        "effectiveness_score": standing.score,
        "success_rate": standing.success_rate,
        "low": low,
        "high": high,
        "failure_rate": standing.failure_rate,
        "terminal_coverage": standing.terminal_coverage,
    }


_RATES: Final = ("effectiveness_score", "success_rate", "low", "high", "failure_rate", "terminal_coverage")
_NUMBERS: Final = {**dict.fromkeys(("decisions", *_STATUSES), pl.Int64), **dict.fromkeys(_RATES, pl.Float64)}


def _frame(counted: Counted) -> pl.DataFrame:
    parts: list[tuple[str, str, Standing]] = [("all", "all", counted.standing)]
    parts += [("version", name, group.standing) for name, group in sorted(counted.by_version.items())]
    parts += [
        (part, name, standing)
        for part, named in (("verdict", counted.by_verdict), ("rule", counted.by_rule), ("week", counted.by_week))
        for name, standing in sorted(named.items())
    ]
    rows = [{"part": part, "name": name, **_row(standing)} for part, name, standing in parts]
    return pl.DataFrame(rows, schema={"part": pl.String, "name": pl.String, **_NUMBERS})


def _weekly(groups: pl.DataFrame) -> pl.DataFrame:
    rows: list[dict[str, date | str | int | float | None]] = [
        {"week": week, "policy_version": version, **_row(standing)}
        for week, version, standing, *_ in _standings(groups, "week", "policy_version")
    ]
    schema = {"week": pl.Date, "policy_version": pl.String, **_NUMBERS}
    return pl.DataFrame(rows, schema=schema).sort("week", "policy_version")


def _listed(parts: Sequence[Mapping[str, Any]], name: str) -> pl.DataFrame:
    """The parts of a report in its own order, as a table to read; versions with which lie below the others."""
    rows = [
        {
            _NAMED[_LISTED[name]]: decided_by(of[name]) if name == "rule" else of[name],
            **({"below others": "below others" if of["below_others"] else ""} if "below_others" in of else {}),
            "decisions": of["decisions"],
            **{share: of[share] for share in ("effectiveness_score", "failure_rate", "terminal_coverage")},
            "success_rate": of["success_rate"]["rate"],
            "low": of["success_rate"]["low"],
            "high": of["success_rate"]["high"],
        }
        for of in parts
    ]
    return readable(pl.DataFrame(rows, infer_schema_length=None)) if rows else pl.DataFrame()
