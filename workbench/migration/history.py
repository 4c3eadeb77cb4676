"""The history dry run: what a candidate would have decided of past decisions, and what is known of their outcomes.

    run = dry_run(LakeHistory(snapshot, "refund_policy"), candidate, base)
    run.body["verdict_changed"]                # the figures, each with the ids of some decisions behind it
    run.decisions().filter("changed")          # every decision behind them

A decision is looked at in three ways: `was`, as it was decided; `base`, as the version in force decides the same facts;
and `then`, as the candidate does. What differs between base and then is the candidate's; what differs between was and
base is that of earlier versions. Without a base, for a first route, base is was.

The source is a parameter: whatever gives the rows of a stretch of a chain is a `History`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Protocol

import polars as pl

from gate.errors import OperatorError
from gate.policy.bounds import moment
from gate.rulebooks.analysis import NotDecided, compare
from gate.rulebooks.analysis.classes import FieldClasses
from gate.rulebooks.analysis.difference import Difference
from gate.rulebooks.analysis.encoding import REFUSED, Result, result_of
from gate.rulebooks.analysis.finding import Inconsistent
from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.rulebook import Rulebook
from workbench.evaluator import VectorEvaluator, compile_frame_evaluator
from workbench.facts import WITHHELD, find_typed, number_of, type_of, with_fields
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot
from workbench.migration.classes import class_code, classes_of, region_columns
from workbench.migration.figures import FAILED, REASONS, Asked, Figures, asked_of, positions_of, with_ids
from workbench.migration.tally import Codes, Tally, Told

STRETCH: Final = 500_000
"""How many chain positions are looked at at a time."""

MAX_FIELDS: Final = 20
"""How many fields are told by class, unless the caller names some."""

_WAS: Final = ("verdict", "application_verdict", "action", "reason_code", "rule")
_FACT: Final = "inputs."
_ERASED, _ADAPTER, _WITHHELD = range(len(REASONS))


class History(Protocol):
    """Past decisions of one rulebook id, in the order of a chain."""

    @property
    def rulebook_id(self) -> str:
        """The rulebook id."""

    @property
    def read_at(self) -> Mapping[str, object]:
        """What identifies the history: {chain_id, chain_position, merkle_root}."""

    @property
    def size(self) -> int:
        """The last position."""

    def rows(self, fields: Sequence[str], metric: str | None) -> pl.LazyFrame:
        """Every decision: position, created_at, week, policy_version, the five members of its outcome by their names in
        records (`rule` as evidence codes have it), outcome_status, adapter_manifest_hash, known, value (of the metric),
        and the columns of the fields as `workbench.facts` has them.
        """

    def ids(self, positions: pl.Series) -> Mapping[int, str]:
        """The decision ids at some positions."""


@dataclass(frozen=True, slots=True)
class LakeHistory:
    """The decisions of a rulebook id in a scope's lake.

    Attributes:
        snapshot: The scope's chain; a slice of it by date is a history as well.
        rulebook_id: The rulebook id.
    """

    snapshot: Snapshot
    rulebook_id: str

    @property
    def read_at(self) -> Mapping[str, object]:
        """As `History.read_at`."""
        of = self.snapshot
        return {
            "chain_id": of.manifest.chain_id,
            "chain_position": of.position,
            "merkle_root": of.merkle_root,
        }

    @property
    def size(self) -> int:
        """As `History.size`."""
        return self.snapshot.position

    def rows(self, fields: Sequence[str], metric: str | None) -> pl.LazyFrame:
        """As `History.rows`."""
        cases = self.snapshot.cases(self.rulebook_id).select(
            "position", "created_at", "week", "policy_version", *_WAS, "outcome_status"
        )
        facts = self.snapshot.facts(fields, self.rulebook_id)
        withheld = Personal.of(self.snapshot.manifest.personal).facts
        typed = find_typed(facts, fields, pl.col("known"))
        facts = with_fields(facts, fields, withheld, typed=typed)
        known = ["position", "known", *(name for of in fields for name in _columns(of))]
        rows = cases.join(facts.select(known), on="position", how="left")
        rows = rows.join(self._adapters(), on="position", how="left")
        if metric is None or metric.startswith(_FACT):
            return rows.with_columns(_fact_value(metric).alias("value"))
        named = self.snapshot.metrics(self.rulebook_id).filter(pl.col("name") == metric)
        return rows.join(named.select("position", "value"), on="position", how="left")

    def _adapters(self) -> pl.LazyFrame:
        """The adapters that made facts; few histories have any, and those that have none join nothing."""
        decisions = self.snapshot.table("decisions").filter(pl.col("policy_id") == self.rulebook_id)
        made = decisions.filter(pl.col("adapter_manifest_hash").is_not_null())
        return made.select("position", "adapter_manifest_hash").collect(engine="streaming").lazy()

    def ids(self, positions: pl.Series) -> Mapping[int, str]:
        """As `History.ids`."""
        rows = self.snapshot.at("decisions", positions).select("position", "decision_id").collect(engine="streaming")
        return dict(rows.iter_rows())


def _columns(field: str) -> list[str]:
    return [f"{field}:{suffix}" for suffix in ("type", "number", "string", "json")]


def _fact_value(metric: str | None) -> pl.Expr:
    if metric is None:
        return pl.lit(None, pl.Float64)
    field = metric.removeprefix(_FACT)
    return pl.when(type_of(field) == "number").then(number_of(field))


@dataclass(frozen=True, slots=True, eq=False)
class HistoryRun:
    """What a candidate would have decided of past decisions.

    Attributes:
        body: The figures; schemas/rulebook-migration-history.schema.json. Each comes with the ids of up to ten
            decisions behind it, the latest.
        difference: The exact difference of candidate and base; None without a base.
    """

    body: dict[str, Any]
    difference: Difference | None
    _rows: pl.LazyFrame

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON."""
        return self.body

    def decisions(self) -> pl.LazyFrame:
        """Every decision, with `was_`, `base_` and `then_` columns of its outcomes, `changed`, `verdict_changed`,
        `not_redecided` (the reason, null where it was decided anew), `outcome_status` and `value`.
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
    """Decides past decisions anew by a candidate.

    Args:
        history: The decisions.
        candidate: The rulebook that is proposed.
        base: The version that is in force; None for a first route.
        metric: What money is told of: a metric of the latest outcomes by its name, or a fact as `inputs.<path>`.
        by: The fields that are told by class; those that the rulebooks test or declare, at most `MAX_FIELDS`, where
            None.
        since: Only decisions from this moment on; a date, or a datetime without a zone, is in UTC.
        until: Only decisions before this moment, as `since`.
        adapter_manifest_hash: The adapter that makes the candidate's facts; None where callers send them.
        difference: How the candidate differs from the base, where that is known already.
        told: Told how many positions are done, of how many.
        cancelled: Asked between stretches.

    Raises:
        OperatorError: DRY_RUN_CANCELLED; LAKE_MOVED_ON where facts were erased since the lake was opened.
    """
    _require_own(history.rulebook_id, candidate, base)
    asked = Asked(metric, moment("since", since), moment("until", until))
    if base is not None and difference is None:
        difference = compare(base.body, candidate.body)
    run = _Run(history, candidate, base, asked, by, adapter_manifest_hash, difference)
    try:
        run.tally(told, cancelled)
        return run.result()
    except FileNotFoundError as error:
        raise OperatorError(
            "LAKE_MOVED_ON", "Facts were erased since the lake was opened, and their files are gone; open it again."
        ) from error


def _require_own(rulebook_id: str, candidate: Rulebook, base: Rulebook | None) -> None:
    for of in (candidate, *([] if base is None else [base])):
        if of.rulebook_id != rulebook_id:
            raise OperatorError(
                "ENGINE_ARGUMENT_INVALID",
                f"The rulebook is that of {of.rulebook_id!r}, the decisions those of {rulebook_id!r}; compare a "
                f"rulebook with the decisions of its own id.",
            )


class _Run:
    """A dry run as it goes on."""

    def __init__(
        self,
        history: History,
        candidate: Rulebook,
        base: Rulebook | None,
        asked: Asked,
        by: Sequence[str] | None,
        adapter: str | None,
        difference: Difference | None,
    ) -> None:
        self._history = history
        self._candidate, self._base = candidate, base
        self._asked = asked
        self._adapter = adapter
        self._then = compile_frame_evaluator(candidate.body)
        self._before = None if base is None else compile_frame_evaluator(base.body)
        self._codes = Codes()
        self._tally = Tally()
        self._difference = difference
        bodies = [candidate.body, *([] if base is None else [base.body])]
        read = {name for of in self._evaluators() for name in of.fields}
        named = sorted(read)[:MAX_FIELDS] if by is None else list(dict.fromkeys(by))
        self._classes: dict[str, FieldClasses] = {}
        self._undecided: list[str] = []
        for name in named:
            try:
                self._classes[name] = classes_of(name, bodies)
            except NotDecided as error:
                self._undecided.append(f"The classes of {name} are not told: {error}.")
        metric = asked.metric or ""
        valued = [metric.removeprefix(_FACT)] if metric.startswith(_FACT) else []
        self._fields = sorted({*read, *self._classes, *valued})
        regions = [] if difference is None else [changed.region for changed in difference.regions]
        self._regions = region_columns(regions)

    def _evaluators(self) -> Iterator[VectorEvaluator]:
        yield self._then
        if self._before is not None:
            yield self._before

    def rows(self) -> pl.LazyFrame:
        """Every decision with what each rulebook says of it, by the place of the outcome in its evaluator."""
        rows = self._history.rows(self._fields, self._asked.metric)
        if self._asked.since is not None:
            rows = rows.filter(pl.col("created_at") >= self._asked.since)
        if self._asked.until is not None:
            rows = rows.filter(pl.col("created_at") < self._asked.until)
        reads = sorted({name for of in self._evaluators() for name in of.fields})
        withheld = pl.any_horizontal(pl.lit(value=False), *(type_of(name) == WITHHELD for name in reads))
        made_by = pl.col("adapter_manifest_hash")
        other = made_by.is_not_null() if self._adapter is None else made_by.ne_missing(pl.lit(self._adapter))
        reason = (
            pl.when(~pl.col("known").fill_null(value=False))
            .then(pl.lit(_ERASED, pl.Int8))
            .when(other)
            .then(pl.lit(_ADAPTER, pl.Int8))
            .when(withheld)
            .then(pl.lit(_WITHHELD, pl.Int8))
        )
        before = pl.lit(None, pl.Int16) if self._before is None else self._before.index
        return rows.with_columns(
            reason.alias("reason"), before.alias("base_index"), self._then.index.alias("then_index")
        )

    def tally(self, told: Callable[[int, int], None], cancelled: Callable[[], bool]) -> None:
        """Counts all stretches.

        Raises:
            OperatorError: DRY_RUN_CANCELLED.
        """
        size = self._history.size
        rows = self.rows()
        classes = [class_code(name, of) for name, of in self._classes.items()]
        lacks = [(type_of(name) == "absent").alias(f"{name}:lacks") for name in self._then.fields]
        kept = ("position", "week", "policy_version", *_WAS, "outcome_status", "value", "reason")
        narrow = rows.select(*kept, "base_index", "then_index", *classes, *lacks, *self._regions.columns)
        for after in range(0, size, STRETCH):
            if cancelled():
                raise OperatorError("DRY_RUN_CANCELLED", "The dry run was cancelled; nothing was kept of it.")
            stretch = narrow.filter(pl.col("position").is_between(after + 1, min(after + STRETCH, size)))
            self._count(stretch.collect(engine="streaming").sort("position"))
            told(min(after + STRETCH, size), size)

    def _count(self, rows: pl.DataFrame) -> None:
        rows = self._coded(rows)
        tally = self._tally
        tally.add_cells(rows)
        anew = rows.filter(pl.col("reason").is_null())
        for name in self._classes:
            tally.add_classes(name, anew, f"{name}:class")
        known = rows.filter(pl.col("reason").ne_missing(pl.lit(_ERASED, pl.Int8)))
        for name in self._then.fields:
            tally.add_missing(name, known.filter(pl.col(f"{name}:lacks"))["position"])
        self._count_regions(anew)
        if self._asked.metric is not None:
            verdicts = {code: outcome[0] for code, outcome in enumerate(self._codes.outcomes)}
            tally.add_money(anew.filter(pl.col("value").is_not_null()), verdicts)

    def _coded(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with `was`, `base` and `then` as numbers of `Codes`."""
        outcomes = rows.select(pl.col(name).cast(pl.String) for name in _WAS).unique()
        codes = [self._codes.of(outcome) for outcome in outcomes.iter_rows()]
        numbered = outcomes.with_columns(pl.Series("was", codes, pl.Int32))
        texts = rows.with_columns(pl.col("verdict").cast(pl.String))
        coded = texts.join(numbered, on=_WAS, how="left", maintain_order="left").drop(_WAS)
        then = self._numbers(self._then)
        before = None if self._before is None else self._numbers(self._before)
        anew = pl.col("reason").is_null()
        base = pl.col("was") if before is None else before.gather(pl.col("base_index"))
        return coded.with_columns(
            pl.when(anew).then(base).alias("base"),
            pl.when(anew).then(then.gather(pl.col("then_index"))).alias("then"),
        )

    def _numbers(self, evaluator: VectorEvaluator) -> pl.Expr:
        return pl.lit(pl.Series([self._codes.of(_told(outcome)) for outcome in evaluator.outcomes], dtype=pl.Int32))

    def _count_regions(self, anew: pl.DataFrame) -> None:
        if self._difference is None or not self._difference.regions:
            return
        changed = anew.filter(pl.col("base") != pl.col("then"))
        parts = changed.partition_by("base", "then", as_dict=True)
        for index, (region, holds) in enumerate(zip(self._difference.regions, self._regions.holds, strict=True)):
            pair = self._codes.of(told_result(region.before)), self._codes.of(told_result(region.after))
            if pair in parts:
                self._tally.add_region(index, parts[pair].filter(holds)["position"])

    def result(self) -> HistoryRun:
        """The figures, with the ids of decisions in the place of their positions."""
        regions = 0 if self._difference is None else len(self._difference.regions)
        found = Figures(self._tally, self._codes.outcomes).body(self._candidate, self._classes, regions)
        if self._difference is not None and self._difference.equal and found["changed"]["decisions"]:
            raise Inconsistent("The rulebooks were proved equal, and decide past decisions otherwise.")
        positions = pl.Series(sorted(set(positions_of(found))), dtype=pl.Int64)
        ids = self._history.ids(positions) if len(positions) else {}
        body = {
            "rulebook_id": self._candidate.rulebook_id,
            "base": None if self._base is None else _version(self._base),
            "candidate": _version(self._candidate),
            "read_at": dict(self._history.read_at),
            **asked_of(self._asked),
            **with_ids(found, ids),
            "undecided": self._undecided,
        }
        return HistoryRun(body, self._difference, self._whole())

    def _whole(self) -> pl.LazyFrame:
        """Every decision with its outcomes in words."""
        then = _named("then", self._then, "then_index")
        if self._before is not None:
            base = _named("base", self._before, "base_index")
        else:
            base = [pl.col(name).cast(pl.String).alias(f"base_{name}") for name in _WAS]
        anew = pl.col("reason").is_null()
        rows = (
            self.rows()
            .with_columns(*then, *base)
            .with_columns(
                pl.when(anew).then(pl.col(f"{of}_{name}")).alias(f"{of}_{name}")
                for of in ("base", "then")
                for name in _WAS
            )
        )
        changed = pl.any_horizontal(pl.col(f"base_{name}") != pl.col(f"then_{name}") for name in _WAS)
        return rows.select(
            "position",
            "created_at",
            "week",
            "policy_version",
            *(pl.col(name).cast(pl.String).alias(f"was_{name}") for name in _WAS),
            *(f"{of}_{name}" for of in ("base", "then") for name in _WAS),
            changed.fill_null(value=False).alias("changed"),
            (pl.col("base_verdict") != pl.col("then_verdict")).fill_null(value=False).alias("verdict_changed"),
            pl.col("reason").replace_strict(dict(enumerate(REASONS)), return_dtype=pl.String).alias("not_redecided"),
            pl.col("outcome_status").cast(pl.String),
            "value",
        ).sort("position")


def _named(of: str, evaluator: VectorEvaluator, index: str) -> list[pl.Expr]:
    """The outcomes of an evaluator in words."""
    told = [_told(outcome) for outcome in evaluator.outcomes]
    return [
        pl.lit(pl.Series([each[at] for each in told], dtype=pl.String)).gather(pl.col(index)).alias(f"{of}_{name}")
        for at, name in enumerate(_WAS)
    ]


def _told(outcome: Outcome) -> Told:
    if outcome.status != "ok":
        return outcome.decision, outcome.verdict, outcome.action, outcome.reason_code, FAILED
    return told_result(result_of(outcome))


def told_result(result: Result) -> Told:
    """A result of the analysis as the tally knows it."""
    rule = "rule:default" if result.rule_id is None else f"rule:{result.rule_id}"
    rule = FAILED if result == REFUSED else rule
    return result.decision, result.verdict, result.action, result.reason_code, rule


def _version(rulebook: Rulebook) -> dict[str, str]:
    return {"version": rulebook.version, "hash": rulebook.hash}
