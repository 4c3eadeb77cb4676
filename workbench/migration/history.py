"""The history dry run: the decisions that a candidate would have made in the past, and the known outcomes.

    run = dry_run(LakeHistory(snapshot, "refund_policy"), candidate, base)
    run.body["verdict_changed"]                # the figures, each with the ids of some decisions behind it
    run.decisions().filter("changed")          # every decision behind them

Each decision has three results: `was`, the original one; `base`, by the active version; and `then`, by the candidate.
Differences between base and then come from the candidate. Differences between was and base come from earlier versions.
Without a base, for a first route, base equals was.

The source is a parameter: any `History` gives the rows of a chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from gate.errors import OperatorError
from gate.policy.bounds import period, refusal, shown
from gate.rulebooks.analysis import NotDecided, compare
from gate.rulebooks.analysis.difference import ChangedRegion, Difference
from gate.rulebooks.analysis.finding import Inconsistent
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.rulebook import Rulebook
from workbench.evaluator import VectorEvaluator
from workbench.facts import columns_of, type_of
from workbench.lake.reader import Window, unmoved
from workbench.migration.classes import region_columns
from workbench.migration.deciding import ERASED, REASONS, Deciding, in_words, told_by, told_result
from workbench.migration.figures import Asked, Figures, positions_of, with_ids
from workbench.migration.headline import history_lines
from workbench.migration.source import OUTCOME, History, LakeHistory
from workbench.migration.tally import (
    DIFFERS,
    EXAMPLES,
    IS_CHANGED,
    REDECIDED,
    Cells,
    Latest,
    Outcomes,
    Tally,
    grouped,
    keyed,
    latest,
)
from workbench.migration.values import ValueTally
from workbench.values import FACT, fact_value

if TYPE_CHECKING:
    from workbench.charts.drawing import Drawn

STRETCH: Final = 250_000
"""How many decisions are looked at at a time, about."""

BUCKET: Final = 65_536
"""How many chain positions come into a stretch together."""

MAX_FIELDS: Final = 20
"""How many fields break the figures down by their values."""

_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,159}", re.ASCII)

__all__ = ["BUCKET", "MAX_FIELDS", "STRETCH", "History", "HistoryRun", "LakeHistory", "dry_run"]


@dataclass(frozen=True, slots=True, eq=False)
class HistoryRun:
    """The results of a candidate on past decisions.

    Attributes:
        body: The figures, each with the ids of up to ten of the latest decisions behind it; `$defs/history` of
            `rulebook-migration-evidence-v1.schema.json`.
        difference: The exact difference of candidate and base; None without a base.
    """

    body: dict[str, Any]
    difference: Difference | None
    _rows: pl.LazyFrame

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON."""
        return self.body

    @property
    def lines(self) -> list[str]:
        """What the run comes to, in the sentences that its report begins with."""
        difference = None if self.difference is None else self.difference.to_dict()
        of = {name: self.body[name] for name in ("rulebook_id", "base", "candidate")}
        return [line.text for line in history_lines({**of, "difference": difference, "history": self.body})]

    def plot(self, what: Literal["verdicts", "weeks"] = "verdicts") -> Drawn:
        """A chart: which verdict becomes which, or what would have changed week by week."""
        # Altair is loaded where something is drawn.
        from workbench.charts.counterfactuals import verdict_changes, weekly_changes

        return (weekly_changes if what == "weeks" else verdict_changes)(self.body)

    def decisions(self) -> pl.LazyFrame:
        """Every decision, in the order of the chain.

        The columns are `position`, `decision_id`, `created_at`, `week`, `policy_version`, and `outcome_status`. The
        `was_`, `base_`, and `then_` columns have its results. `changed` and `verdict_changed` are false if it cannot be
        decided again, and `not_redecided` says why. `value` is that of the metric.
        """
        return self._rows


def dry_run(
    history: History,
    candidate: Rulebook,
    base: Rulebook | None,
    *,
    metric: str | None = None,
    by: Sequence[str] | None = None,
    since: date | None = None,
    until: date | None = None,
    adapter_manifest_hash: str | None = None,
    difference: Difference | None = None,
    told: Callable[[int, int], None] = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> HistoryRun:
    """Decides past decisions again with a candidate.

    Args:
        history: The decisions.
        candidate: The proposed rulebook.
        base: The active version; None for a first route.
        metric: The metric whose sums are reported: a metric of the latest outcomes by name, or a fact as
            `inputs.<path>`.
        by: The fields whose values break the figures down, at most `MAX_FIELDS`. With None, the first by name of those
            that the rulebooks read.
        since: Only decisions from this moment on. A date, or a datetime without a time zone, is in UTC.
        until: Only decisions before this moment. A date includes its whole day.
        adapter_manifest_hash: The adapter that makes the candidate's facts; None if callers send them.
        difference: The difference of candidate and base, if it is already known.
        told: Called after each stretch with the chain position that is done, and the last position.
        cancelled: Asked before each stretch whether to stop.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`; `DRY_RUN_CANCELLED`; `LAKE_MOVED_ON` if facts were erased since the
            lake was opened.
        Inconsistent: The exact analysis contradicts the decisions, which is a defect.
    """
    _require_own(history.rulebook_id, candidate, base)
    _require_metric(metric)
    asked = Asked(metric, *period(since, until), adapter_manifest_hash)
    deciding = Deciding(candidate, base, adapter_manifest_hash)
    fields = deciding.fields[:MAX_FIELDS] if by is None else _require_fields(by)
    if base is None:
        difference = None
    elif difference is None:
        difference = compare(base.body, candidate.body)
    with unmoved():
        run = _Run(history, candidate, base, deciding, asked, fields, difference)
        run.count(told, cancelled)
        return run.result()


def _require_own(rulebook_id: str, candidate: Rulebook, base: Rulebook | None) -> None:
    for of in (candidate, *([] if base is None else [base])):
        if of.rulebook_id != rulebook_id:
            raise refusal(
                f"The rulebook belongs to {of.rulebook_id!r}, the decisions to {rulebook_id!r}: compare a rulebook "
                "with the decisions of its own id."
            )


def _require_metric(metric: object) -> None:
    if metric is None or (isinstance(metric, str) and not metric.startswith(FACT) and metric):
        return
    if not isinstance(metric, str) or not _FIELD.fullmatch(metric.removeprefix(FACT)):
        raise refusal(
            f"metric is {shown(metric)}: give a metric of outcomes, or a fact as {FACT}<path>, such as "
            f"{FACT}order.total; or None for no money."
        )


def _require_fields(by: object) -> list[str]:
    if isinstance(by, str) or not isinstance(by, Sequence):
        raise refusal(f'by is {shown(by)}: give fields in a list, such as ["region", "order.total"].')
    for name in by:
        if not isinstance(name, str) or not _FIELD.fullmatch(name):
            raise refusal(f"by has {shown(name)}, which is not a field: write a field as a path, such as order.total.")
    fields = list(dict.fromkeys(by))
    if len(fields) > MAX_FIELDS:
        raise refusal(f"by has {len(fields)} fields: give at most {MAX_FIELDS}.")
    return fields


class _Run:
    """A dry run as it goes on."""

    def __init__(
        self,
        history: History,
        candidate: Rulebook,
        base: Rulebook | None,
        deciding: Deciding,
        asked: Asked,
        by: Sequence[str],
        difference: Difference | None,
    ) -> None:
        self._history = history
        self._candidate, self._base = candidate, base
        self._deciding = deciding
        self._asked = asked
        self._difference = difference
        bodies = [candidate.body, *([] if base is None else [base.body])]
        self._undecided: list[str] = []
        self._values = list(self._tallies(by, bodies))
        regions = [] if difference is None else difference.regions
        self._regions = region_columns([changed.region for changed in regions])
        self._holds = [] if deciding.base is None else list(self._within(deciding.base, regions))
        self._tally = Tally(Cells(len(deciding.then.outcomes)))
        self._outcomes = Outcomes()
        self._changed: list[pl.DataFrame] = []
        self._window = Window(asked.since, asked.until)
        metric = asked.metric or ""
        self._fact = metric.removeprefix(FACT) if metric.startswith(FACT) else None
        valued = [] if self._fact is None else [self._fact]
        fields = sorted({*deciding.fields, *(tally.field for tally in self._values), *valued})
        self._decisions = self._window.of(history.decisions())
        self._facts = history.facts(fields)
        self._adapters = history.adapters()
        self._measured = history.values(metric) if metric and self._fact is None else None
        self._read = {*deciding.read, *self._regions.read, *(name for of in self._values for name in of.read)}
        self._read |= {name for field in valued for name in columns_of(field)}

    def _tallies(self, by: Sequence[str], bodies: Sequence[RulebookBody]) -> Iterator[ValueTally]:
        for name in by:
            try:
                yield ValueTally(name, bodies)
            except NotDecided as error:
                self._undecided.append(f"The classes of {name} cannot be determined: {error}.")

    def _within(self, base: VectorEvaluator, regions: Sequence[ChangedRegion]) -> Iterator[pl.Expr]:
        """Whether a decision lies in each region: it has the region's results, and its facts are within the limits."""
        then = self._deciding.then
        for number, (region, holds) in enumerate(zip(regions, self._regions.holds, strict=True)):
            befores, afters = (
                [place for place, outcome in enumerate(told_by(of)) if outcome == told_result(result)]
                for of, result in ((base, region.before), (then, region.after))
            )
            cells = [len(then.outcomes) * before + after for before in befores for after in afters]
            results = reduce(or_, [pl.col("cell") == cell for cell in cells], pl.lit(value=False))
            yield (results & holds).alias(str(number))

    # --- Counting -----------------------------------------------------------------------------------------------------

    def count(self, told: Callable[[int, int], None], cancelled: Callable[[], bool]) -> None:
        """Counts all stretches.

        Raises:
            OperatorError: `DRY_RUN_CANCELLED`.
        """
        size = self._history.size
        stretches = list(self._stretches())
        for number, (first, last) in enumerate(stretches, 1):
            if cancelled():
                raise OperatorError(
                    "DRY_RUN_CANCELLED", "The dry run was canceled, and its results were discarded; run it again."
                )
            self._count(self._rows(first, last))
            if number == len(stretches) and self._changed:
                self._count_regions()
            told(size if number == len(stretches) else last, size)

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """The first and the last position of each stretch, which depend on the positions of the decisions alone."""
        bucket = ((pl.col("position") - 1) // BUCKET).alias("bucket")
        buckets = self._decisions.group_by(bucket).len().collect(engine="streaming").sort("bucket")
        first, last, decisions = 1, 0, 0
        for number, counted in buckets.iter_rows():
            if decisions and decisions + counted > STRETCH:
                yield first, last
                first, decisions = number * BUCKET + 1, 0
            last, decisions = (number + 1) * BUCKET, decisions + counted
        if decisions:
            yield first, last

    def _rows(self, first: int, last: int) -> pl.DataFrame:
        """The decisions of a stretch with their facts, in the order of the chain."""
        within = pl.col("position").is_between(first, last)
        facts = ["position", "known", *sorted(self._read - {"known", "adapter_manifest_hash"})]
        parts = [
            self._decisions.filter(within).drop("decision_id", "created_at"),
            self._facts.filter(within).select(facts),
            self._adapters.filter(within),
            *([] if self._measured is None else [self._measured.filter(within)]),
        ]
        rows, *others = (
            part if part["position"].is_sorted() else part.sort("position")
            for part in pl.collect_all(parts, engine="streaming")
        )
        for other in others:
            # A join costs more than to see that there is nothing to join.
            if other["position"].equals(rows["position"]):
                rows = rows.hstack(other.drop("position"))
            else:
                rows = rows.join(other, on="position", how="left", maintain_order="left")
        if self._fact is not None:
            rows = rows.with_columns(fact_value(self._asked.metric or "").alias("value"))
        return rows

    def _count(self, rows: pl.DataFrame) -> None:
        deciding, tally = self._deciding, self._tally
        if deciding.base is None:
            rows = rows.with_columns(self._outcomes.numbers(rows))
        rows = self._decided(rows.lazy()).collect()
        tally.cells.add(rows)
        tally.weeks.add(rows.select(keyed(pl.col("week").to_physical()), "position"))
        number = pl.col("fate") + pl.col("differs").fill_null(value=False).cast(pl.UInt8) * DIFFERS
        tally.versions.add(rows.select(pl.col("policy_version").alias("name"), number.alias("number"), "position"))
        anew = rows if not rows["reason"].count() else rows.filter(REDECIDED)
        for values in self._values:
            values.add(anew)
        self._count_missing(rows)
        self._gather_changed(anew)
        self._count_reviews(anew)
        if self._asked.metric is not None:
            self._count_money(anew)

    def _decided(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        deciding = self._deciding
        # Without a base the place of the past outcome is wanted for counting alone.
        there = "base_index" if deciding.base is not None or "left" not in rows.collect_schema() else "left"
        cell = deciding.cell(pl.when(pl.col("reason").is_null()).then(pl.col(there)))
        return rows.with_columns(deciding.columns).with_columns(deciding.differs, cell).with_columns(deciding.fate)

    def _count_missing(self, rows: pl.DataFrame) -> None:
        known = pl.col("reason").ne_missing(pl.lit(ERASED, pl.UInt8))
        lacks = [((type_of(name) == "absent") & known).alias(name) for name in self._deciding.then.fields]
        found = rows.select(known.alias(":known"), *lacks)
        self._tally.known += int(found[":known"].sum())
        for name, count in found.drop(":known").sum().row(0, named=True).items():
            if count:
                at = found[name].arg_true().tail(EXAMPLES)
                self._tally.missing.setdefault(name, Latest()).add(rows["position"].gather(at), count)

    def _gather_changed(self, anew: pl.DataFrame) -> None:
        """Keeps what regions need of the changed decisions of a stretch: groups that no region tells apart."""
        if self._difference is None:
            return
        needed = sorted({"position", "cell", "fate", *self._regions.read})
        changed = anew.lazy().select(needed).filter(IS_CHANGED).with_columns(self._regions.columns).collect()
        names = [column.meta.output_name() for column in self._regions.columns]
        self._changed.append(grouped(changed, "cell", *names))
        if sum(part.height for part in self._changed) >= STRETCH:
            self._count_regions()

    def _count_regions(self) -> None:
        """Counts the changed decisions that were kept."""
        changed, self._changed = pl.concat(self._changed), []
        if changed.is_empty() or self._difference is None:
            return
        if self._difference.equal:
            raise Inconsistent("The rulebooks were proved equal, but decide past decisions differently.")
        found = changed.lazy().select(pl.lit(value=False).alias("none"), *self._holds).collect()
        if self._difference.decided and not found.select(pl.any_horizontal(pl.all()).all()).item():
            raise Inconsistent(
                "The candidate decides past decisions differently that are in no region of the difference."
            )
        for region in range(len(self._holds)):
            within = changed.filter(found[str(region)])
            if not within.is_empty():
                decisions, positions = int(within["decisions"].sum()), within.select(latest()).to_series()
                self._tally.regions.setdefault(region, Latest()).add(positions, decisions)

    def _count_reviews(self, anew: pl.DataFrame) -> None:
        held = anew.filter(pl.col("verdict") == "review")
        found = held.select(*self._verdicts(), pl.col("resolution").cast(pl.String))
        # What the base decides like the candidate says nothing about the migration, whatever owners answered.
        self._tally.add_reviews(found.filter(pl.col("base_verdict") != pl.col("then_verdict")))

    def _count_money(self, anew: pl.DataFrame) -> None:
        if self._deciding.base is None:
            # There is nothing to move from where nobody knows how an imported case was decided.
            anew = anew.filter(pl.col("verdict").is_not_null())
        self._tally.add_money(anew.filter(pl.col("value").is_not_null()).select("position", "value", *self._verdicts()))

    def _verdicts(self) -> list[pl.Expr]:
        """The verdicts of base and candidate; for a first version, that of the decision in the place of the base's."""
        base = self._deciding.base
        before = pl.col("verdict").cast(pl.String).alias("base_verdict")
        if base is not None:
            before = in_words("base", base, "base_index")[0]
        return [in_words("then", self._deciding.then, "then_index")[0], before]

    # --- The result ---------------------------------------------------------------------------------------------------

    def result(self) -> HistoryRun:
        """The figures, with the ids of decisions in the place of their positions."""
        base = self._deciding.base
        left = self._outcomes.told if base is None else told_by(base)
        figures = Figures(self._tally, left, told_by(self._deciding.then), first=base is None)
        found = figures.body(self._candidate, self._values, len(self._holds))
        positions = pl.Series(sorted(set(positions_of(found))), dtype=pl.Int64)
        ids = self._history.ids(positions) if len(positions) else {}
        body = {
            "rulebook_id": self._candidate.rulebook_id,
            "base": None if self._base is None else _version(self._base),
            "candidate": _version(self._candidate),
            "read_at": dict(self._history.read_at),
            **self._asked.to_dict(),
            **with_ids(found, ids),
            "undecided": self._undecided,
        }
        return HistoryRun(body, self._difference, self._whole())

    def _whole(self) -> pl.LazyFrame:
        """Every decision with its outcomes in words."""
        rows = self._decisions.join(self._facts, on="position", how="left").join(
            self._adapters, on="position", how="left"
        )
        if self._measured is not None:
            rows = rows.join(self._measured, on="position", how="left")
        elif self._fact is not None:
            rows = rows.with_columns(fact_value(self._asked.metric or "").alias("value"))
        else:
            rows = rows.with_columns(pl.lit(None, pl.Float64).alias("value"))
        deciding, anew = self._deciding, pl.col("reason").is_null()
        was = [pl.col(name).cast(pl.String).alias(f"was_{name}") for name in OUTCOME]
        then = in_words("then", deciding.then, "then_index")
        if deciding.base is not None:
            base = in_words("base", deciding.base, "base_index")
        else:
            base = [pl.when(anew).then(pl.col(name).cast(pl.String)).alias(f"base_{name}") for name in OUTCOME]
        decided = self._decided(rows)
        return (
            decided.with_columns(*was, *base, *then)
            .select(
                "position",
                "decision_id",
                "created_at",
                "week",
                "policy_version",
                *(f"{of}_{name}" for of in ("was", "base", "then") for name in OUTCOME),
                IS_CHANGED.alias("changed"),
                (pl.col("base_verdict") != pl.col("then_verdict")).fill_null(value=False).alias("verdict_changed"),
                pl.lit(pl.Series(REASONS)).gather(pl.col("reason")).alias("not_redecided"),
                pl.col("outcome_status").cast(pl.String),
                "value",
            )
            .sort("position")
        )


def _version(rulebook: Rulebook) -> Mapping[str, str]:
    return {"version": rulebook.version, "hash": rulebook.hash}
