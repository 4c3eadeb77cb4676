"""Reports how well a policy does: the results of its decisions by version, verdict, rule, and week.

    report = effectiveness(open_lake("var/lake").scope("acme"), "refund_policy")
    report.to_dict()["effectiveness_score"]
    report.plot()

This module counts, and `gate.policy.effectiveness` judges. The formulas are in
`docs/reference/formulas/effectiveness.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from gate.ids import timestamp
from gate.policy.confidence import MIN_SAMPLE, wilson_interval
from gate.policy.effectiveness import LET_THROUGH, Counted, Footing, Group, Metric, Reviews, Standing, below_others
from gate.policy.effectiveness_report import effectiveness_report
from gate.policy.questions import EffectivenessQuestion
from gate.policy.reports import MAX_METRICS
from gate.policy.versions import Compared, compare_versions
from workbench.columns import NO_VERDICT
from workbench.engines.arguments import require_decided, require_snapshot
from workbench.engines.comparing.counting import Counting
from workbench.engines.comparing.middles import middles
from workbench.engines.comparing.strata import strata
from workbench.engines.findings import standings, success, versions_success
from workbench.engines.rendering import cut, interval, listed, of_terminal, on_one_line, page, percent, prompt, readable
from workbench.engines.slicing import by_status, date_of, looked_at, sampled_one_of
from workbench.engines.wording import decided_by, phrase, stated
from workbench.history.marks import marked
from workbench.kept import Kept
from workbench.lake.reader import RECORDED, Snapshot

if TYPE_CHECKING:
    import altair as alt

    from workbench.charts.drawing import Link

_STATUSES: Final = Standing._fields
_TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")
_NAMED: Final = {"version": "Policy version", "verdict": "Verdict", "rule": "Decided by"}
_COLUMNS: Final = {"version": "policy_version", "verdict": "verdict", "rule": "rule"}
_LISTED: Final = {"policy_version": "version", "verdict": "verdict", "rule": "rule"}


@dataclass(frozen=True, slots=True)
class EffectivenessReport:
    """The effectiveness of a policy.

    Attributes:
        body: The report as the service answers it, with `effectiveness_hash`.
        frame: Counts and rates, `{part, name, decisions, <a column for each outcome status>, unreported,
            effectiveness_score, success_rate, low, high, failure_rate, terminal_coverage}`. It has one row for
            everything (`part` is `all`), and one for each version, verdict, rule, and week.
        weekly: The same counts by week and version, `{week, policy_version, decisions, ..., success_rate, low, high}`.
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
        said = map(on_one_line, body["comparison"]["sentences"])
        recommended = f"{below}{body['recommendation']}"
        return prompt("Effectiveness", body["policy_id"], self.scope, self._asked(), counts, recommended, *said)

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
            f"Bounds: if every action had been let through, between {percent(bounds['low'])} and "
            f"{percent(bounds['high'])} would have succeeded. {bounds['unknown']:,} were let through and have no "
            f"terminal outcome; {bounds['unobservable']:,} were not let through."
        )
        title = f"Effectiveness of {body['policy_id']}"
        said = [f"{self.finding('version')}.", *map(on_one_line, body["comparison"]["sentences"])]
        return page(title, facts, *parts, said=said, small=[bounded, *body["notes"]])

    def _asked(self) -> str:
        return "" if (version := self.body["policy_version"]) is None else f"version {cut(version)}"

    def _below(self) -> str:
        """The versions below the others; empty where there are none."""
        return listed([of["policy_version"] for of in self.body["versions"] if of["below_others"]])

    def parts(self, by: str) -> dict[str, Standing]:
        """The counts of each version, verdict, or rule. Those of weeks are by week and version."""
        return standings(self.weekly if by == "week" else self._rows(by), "policy_version" if by == "week" else "name")

    def _marked(self, by: str) -> frozenset[str]:
        """The parts that do worse than the others. Versions are compared among like cases."""
        if by == "version":
            return frozenset(of["policy_version"] for of in self.body["versions"] if of["below_others"])
        return below_others(self.parts(by), self.body["min_sample"])

    def _let_through(self) -> pl.DataFrame:
        """The let-through decisions of the listed versions."""
        rows = [
            {"part": "version", "name": of["policy_version"], **_row(Standing(**of["let_through"]["outcomes"]))}
            for of in self.body["versions"]
        ]
        return pl.DataFrame(rows, schema=_FRAME).sort("name")

    def _rows(self, by: str) -> pl.DataFrame:
        return self.frame.filter(pl.col("part") == by)

    def finding(self, by: str = "version") -> str:
        """The sentence above the chart: which versions, verdicts, or rules do worse than the others, or that none does.

        Args:
            by: As for `plot`.
        """
        if by in ("version", "week"):
            return versions_success(self.body)
        return success(self.body["policy_id"], by, self.parts(by), self.body["min_sample"])

    def plot(self, by: str = "week", *, link: Link | None = None) -> alt.LayerChart | alt.FacetChart:
        """A chart of the success rate with its 95% Wilson interval, under a sentence that says what stands out.

        Args:
            by: `week` (one line for each of the versions with the most decisions), `version`, `verdict`, or `rule`.
            link: The target of each row's mark. The row has `policy_version`, `verdict`, or `rule`; for weeks, `week`
                and `policy_version`.

        Raises:
            ValueError: There is no such part.
        """
        from workbench.charts.colours import OF
        from workbench.charts.effectiveness import weekly
        from workbench.charts.rates import rates

        if by != "week" and by not in _NAMED:
            raise ValueError(f"A report has no part {by!r}; plot it by week, version, verdict, or rule.")
        asked = f", {self._asked()}" if self._asked() else ""
        notes = [f"Policy {cut(self.body['policy_id'])} in scope {cut(self.scope)}{asked}."]
        if by == "week":
            return weekly(self.weekly, self.finding(by), notes, link=link)
        below = self._marked(by)
        rows = (self._let_through() if by == "version" else self._rows(by)).with_columns(
            pl.col("name").alias(_COLUMNS[by])
        )
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
    verdict: str | None = None,
    since: date | None = None,
    until: date | None = None,
    clock: str | None = None,
    limit: int | None = None,
    min_sample: int = MIN_SAMPLE,
) -> EffectivenessReport:
    """Reports how well a policy does in a scope.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        policy_version: One of its versions; None for all.
        verdict: One verdict, `yes`, `no`, or `review`; None for all.
        since: Only decisions from this moment on. A date, or a datetime without a time zone, is in UTC.
        until: Only decisions before this moment. A date includes its whole day.
        clock: The dates to use, `recorded` or `occurred`; None for those of the snapshot.
        limit: The most decisions to consider, the latest in the chain, 1 to 1,000,000; None for all.
        min_sample: The number of terminal outcomes that a judgment needs, and that a version needs to be compared with
            the others, 1 to 10,000.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`, or `LAKE_POLICY_UNKNOWN`.
    """
    require_snapshot(snapshot)
    question = EffectivenessQuestion(
        policy_id,
        policy_version=policy_version,
        verdict=verdict,
        since=since,
        until=until,
        clock=snapshot.clock if clock is None else clock,
        limit=limit,
        min_sample=min_sample,
    )
    require_decided(snapshot, policy_id, policy_version)
    return answer(snapshot, question)


def answer(snapshot: Snapshot, question: EffectivenessQuestion, kept: Kept | None = None) -> EffectivenessReport:
    """Answers an effectiveness question.

    Args:
        snapshot: The scope's chain.
        question: The question.
        kept: Earlier counts of the lake's files; None to keep nothing.
    """
    whole = snapshot.binding(question.policy_id)
    snapshot = looked_at(whole, question)
    has_event_dates = snapshot.imported is not None or snapshot.clock != RECORDED
    counting = Counting(snapshot, question, kept or Kept(0))
    groups, measured = counting.groups(), counting.measured()
    one_of = sampled_one_of(int(groups["decisions"].sum()))
    sample = counting.sample(one_of)
    by_version, by_week = middles(counting.values(one_of), measured["name"].to_list(), sample)
    compared, footing = _compared(whole, counting, groups, question)
    counted = Counted(
        by_version={
            name: Group(standing, timestamp(first), timestamp(last))
            for name, standing, first, last in _standings(groups, "policy_version")
        },
        by_verdict={name or NO_VERDICT: standing for name, standing, *_ in _standings(groups, "verdict")},
        by_rule={name: standing for name, standing, *_ in _standings(groups, "rule")},
        by_week={week.isoformat(): standing for week, standing, *_ in _standings(groups, "week")},
        by_disposition={name: standing for name, standing, *_ in _standings(groups, "disposition")},
        by_version_and_verdict={
            (version, verdict or NO_VERDICT): standing
            for version, verdict, standing, *_ in _standings(groups, "policy_version", "verdict")
        },
        let_through=_let_through(groups),
        compared=compared,
        footing=footing,
        # The most that a report lists: callers choose the names, and may choose a new one each time.
        metrics=[Metric(*row) for row in measured.head(MAX_METRICS).rows()],
        metrics_by_version=by_version,
        metrics_by_week=by_week,
        middles_one_of=one_of,
        more_metrics=max(measured.height - MAX_METRICS, 0),
        first=date_of(groups["first"].min()),
        last=date_of(groups["last"].max()),
        chain_position=snapshot.position,
        merkle_root=snapshot.merkle_root,
        truncated=counting.after is not None,
        advisory=snapshot.count_advisory(question.policy_id),
        # By the gate's own clock an outcome is never early; a clock that was set back has its place elsewhere.
        early=int(groups["early"].sum()) if has_event_dates else 0,
        # Imported cases have no owners.
        reviews=None if snapshot.imported is not None else _reviews(counting.reviews()),
    )
    body = marked(effectiveness_report(counted, question), snapshot, "effectiveness_hash")
    return EffectivenessReport(body, _frame(counted), _weekly(groups), snapshot.title)


def _reviews(found: pl.DataFrame) -> Reviews:
    """How reviews were resolved, and how long that took."""
    answers = dict(found.group_by("resolution").agg(pl.col("decisions").sum()).iter_rows())
    held = answers.pop(None, 0)
    waited = found.select("waiting_seconds", "decisions").drop_nulls().sort("waiting_seconds")
    reached = waited["decisions"].cum_sum()

    def at(rank: int) -> int | None:
        return None if waited.is_empty() else int(waited["waiting_seconds"][reached.search_sorted(rank, side="left")])

    number = int(waited["decisions"].sum())
    return Reviews(held, **answers, median=at((number + 1) // 2), p90=at(-(-9 * number // 10)))


def _let_through(groups: pl.DataFrame) -> dict[str, Standing]:
    """The results of the let-through decisions of each version."""
    return {
        name: standing
        for name, standing, *_ in _standings(groups.filter(pl.col("disposition") == LET_THROUGH), "policy_version")
    }


def _compared(
    snapshot: Snapshot, counting: Counting, groups: pl.DataFrame, question: EffectivenessQuestion
) -> tuple[Mapping[str, Compared], Footing]:
    """The compared versions; none if fewer than two let through decisions with a known result.

    Args:
        snapshot: The scope's chain, not yet restricted to the question.
        counting: The decisions that the question selects.
        groups: Their counts.
        question: The question.
    """
    if sum(of.terminal > 0 for of in _let_through(groups).values()) < len(("one", "other")):
        return {}, Footing()
    after, one_of = counting.after, sampled_one_of(int(groups["decisions"].sum()))
    if question.verdict is not None:
        # What a version stops has another verdict than what it lets through.
        every = replace(question, verdict=None, limit=None)
        snapshot = looked_at(snapshot, every)
        counting = Counting(snapshot, every, counting.kept)
        one_of = sampled_one_of(int(counting.groups()["decisions"].sum()))
    else:
        snapshot = looked_at(snapshot, question)
    sample = counting.sample(one_of)
    if after is not None:
        sample = sample.filter(pl.col("position") > after)
    found = strata(snapshot, question.policy_id, sample, one_of, counting.kept, question.verdict)
    compared = compare_versions(found.cells, found.footing.design_effect, min_sample=question.min_sample, met=found.met)
    return {version: of.described(found.described) for version, of in compared.items()}, found.footing


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
_FRAME: Final = {"part": pl.String, "name": pl.String, **_NUMBERS}


def _frame(counted: Counted) -> pl.DataFrame:
    parts: list[tuple[str, str, Standing]] = [("all", "all", counted.standing)]
    parts += [("version", name, group.standing) for name, group in sorted(counted.by_version.items())]
    parts += [
        (part, name, standing)
        for part, named in (("verdict", counted.by_verdict), ("rule", counted.by_rule), ("week", counted.by_week))
        for name, standing in sorted(named.items())
    ]
    rows = [{"part": part, "name": name, **_row(standing)} for part, name, standing in parts]
    return pl.DataFrame(rows, schema=_FRAME)


def _weekly(groups: pl.DataFrame) -> pl.DataFrame:
    rows: list[dict[str, date | str | int | float | None]] = [
        {"week": week, "policy_version": version, **_row(standing)}
        for week, version, standing, *_ in _standings(groups, "week", "policy_version")
    ]
    schema = {"week": pl.Date, "policy_version": pl.String, **_NUMBERS}
    return pl.DataFrame(rows, schema=schema).sort("week", "policy_version")


def _beside(of: Mapping[str, Any]) -> dict[str, str]:
    """A version compared with the others: its let-through rate, and both rates among like cases."""
    like = (of["compared"] or {}).get("standardized") or {}
    return {
        "below others": "below others" if of["below_others"] else "",
        "let-through success": percent(of["let_through"]["success_rate"]["rate"]),
        "among like cases": percent(like.get("success_rate")),
        "the others": percent(like.get("others")),
    }


def _listed(parts: Sequence[Mapping[str, Any]], name: str) -> pl.DataFrame:
    """The parts of a report in its own order, as a table to read; versions with which lie below the others."""
    rows = [
        {
            _NAMED[_LISTED[name]]: decided_by(of[name]) if name == "rule" else of[name],
            **(_beside(of) if "compared" in of else {}),
            "decisions": of["decisions"],
            **{share: of[share] for share in ("effectiveness_score", "failure_rate", "terminal_coverage")},
            "success_rate": of["success_rate"]["rate"],
            "low": of["success_rate"]["low"],
            "high": of["success_rate"]["high"],
        }
        for of in parts
    ]
    return readable(pl.DataFrame(rows, infer_schema_length=None)) if rows else pl.DataFrame()
