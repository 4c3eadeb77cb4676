"""What was, is and would be decided, as expressions over the rows of a history.

    deciding = Deciding(candidate, base, adapter_manifest_hash=None)
    rows.with_columns(deciding.columns).with_columns(deciding.fate)

Outcomes stand in columns as their places in the evaluators' outcomes, and are put in words only for a reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import polars as pl

from gate.policy.questions import VERDICTS
from gate.rulebooks.analysis.formulas.encoding import REFUSED, Result, result_of
from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.rulebook import Rulebook
from workbench.columns import IMPORTED
from workbench.evaluator import DEFAULT, FAILED, VectorEvaluator, compile_frame_evaluator
from workbench.facts import WITHHELD, type_of
from workbench.migration.source import OUTCOME

Told: TypeAlias = tuple[str | None, ...]
"""An outcome as it is compared: verdict, application verdict, action, reason code and rule, as `OUTCOME` names them."""

REASONS: Final = ("facts_erased", "adapter_changed", "facts_withheld")
"""Why a decision cannot be decided again, in the order in which they are asked for."""

ERASED, ADAPTER, WITHHELD_FACT, SAME, CHANGED, APPROVED, BLOCKED = range(7)
"""The fate of a decision: a reason why it cannot be decided again, by its index in `REASONS`; or nothing changes,
something changes, it is newly approved, or it is no longer approved.
"""

_CODE: Final = pl.UInt8


class Deciding:
    """Two rulebooks over the rows of a history.

    Attributes:
        then: The candidate.
        base: The active version; None for a first route.
    """

    def __init__(self, candidate: Rulebook, base: Rulebook | None, adapter: str | None) -> None:
        """Takes the rulebooks, and the manifest hash of the adapter that makes the candidate's facts."""
        self.then: Final = compile_frame_evaluator(candidate.body)
        self.base: Final = None if base is None else compile_frame_evaluator(base.body)
        self._adapter: Final = adapter

    @property
    def fields(self) -> list[str]:
        """The fields that either rulebook reads, sorted."""
        return sorted({*self.then.fields, *(() if self.base is None else self.base.fields)})

    @property
    def columns(self) -> list[pl.Expr]:
        """The columns `reason`, `base_index`, and `then_index`.

        `reason` says why a decision cannot be decided again, and is null if it can. The others are the indexes of the
        outcomes, null if it cannot. The rows need `known`, `adapter_manifest_hash`, and the columns of the fields.
        """
        made_by = pl.col("adapter_manifest_hash")
        other = made_by.is_not_null() if self._adapter is None else made_by.ne_missing(pl.lit(self._adapter))
        withheld = pl.any_horizontal(type_of(name) == WITHHELD for name in self.fields)
        reason = (
            pl.when(~pl.col("known").fill_null(value=False))
            .then(pl.lit(ERASED, _CODE))
            .when(other)
            .then(pl.lit(ADAPTER, _CODE))
            .when(withheld)
            .then(pl.lit(WITHHELD_FACT, _CODE))
        )
        before = pl.lit(None, pl.Int16) if self.base is None else pl.when(reason.is_null()).then(self.base.index)
        then = pl.when(reason.is_null()).then(self.then.index)
        return [reason.alias("reason"), before.alias("base_index"), then.alias("then_index")]

    @property
    def read(self) -> set[str]:
        """The columns that `columns` needs."""
        return {name for of in self.columns for name in of.meta.root_names()}

    @property
    def differs(self) -> pl.Expr:
        """Whether the original decision differs from the base's, or, without a base, from the candidate's.

        The rows need `columns` and the fields of the original outcome.
        """
        evaluator, index = (self.then, "then_index") if self.base is None else (self.base, "base_index")
        told = told_by(evaluator)
        place = pl.col(index)

        def other(name: str) -> pl.Expr:
            dtype = pl.Enum(VERDICTS) if name == "verdict" else pl.String
            values = pl.Series([outcome[OUTCOME.index(name)] for outcome in told], dtype=dtype)
            return pl.col(name).ne_missing(pl.lit(values).gather(place))

        # A default outcome that reads as that of refused facts is the same outcome.
        refused = pl.lit(pl.Series([outcome[-1] == FAILED for outcome in told])).gather(place)
        rule = other("rule") & ~(refused & (pl.col("rule") == DEFAULT))
        differs = pl.any_horizontal(*(other(name) for name in OUTCOME[:-1]), rule)
        # Of an imported case no more than the verdict can be compared, and only where there is one.
        imported = pl.col("verdict").is_not_null() & other("verdict")
        return pl.when(pl.col("rule").eq_missing(IMPORTED)).then(imported).otherwise(differs).alias("differs")

    def cell(self, left: pl.Expr) -> pl.Expr:
        """The place of both outcomes in a table of all pairs, of rows with `columns`; null where there is none.

        Args:
            left: The place of the outcome on the left: that of the base, or without one that of the past.
        """
        thens = len(self.then.outcomes)
        return (left.cast(pl.UInt32) * thens + pl.col("then_index").cast(pl.UInt32)).alias("cell")

    @property
    def fate(self) -> pl.Expr:
        """What becomes of a decision, of rows with `columns` and `cell`, and without a base `verdict` and `differs`."""
        then = [outcome[0] == "yes" for outcome in told_by(self.then)]
        if self.base is not None:
            fates = [
                _fate(before[0] == "yes", after[0] == "yes", differs=before != after)
                for before in told_by(self.base)
                for after in told_by(self.then)
            ]
            found = pl.lit(pl.Series(fates, dtype=_CODE)).gather(pl.col("cell"))
        else:
            was_yes, is_yes = pl.col("verdict") == "yes", pl.lit(pl.Series(then)).gather(pl.col("then_index"))
            found = (
                pl.when(~pl.col("differs"))
                .then(pl.lit(SAME, _CODE))
                .when(~was_yes & is_yes)
                .then(pl.lit(APPROVED, _CODE))
                .when(was_yes & ~is_yes)
                .then(pl.lit(BLOCKED, _CODE))
                .otherwise(pl.lit(CHANGED, _CODE))
            )
        return pl.coalesce(pl.col("reason"), found).alias("fate")


def _fate(was_yes: bool, is_yes: bool, *, differs: bool) -> int:
    if was_yes != is_yes:
        return APPROVED if is_yes else BLOCKED
    return CHANGED if differs else SAME


def told_by(evaluator: VectorEvaluator) -> list[Told]:
    """The outcomes of an evaluator, by their places."""
    return [told(outcome) for outcome in evaluator.outcomes]


def told(outcome: Outcome) -> Told:
    """An outcome of the evaluator as it is compared."""
    return told_result(result_of(outcome))


def told_result(result: Result) -> Told:
    """A result of the analysis as it is compared."""
    rule = DEFAULT if result.rule_id is None else f"rule:{result.rule_id}"
    return alike((result.decision, result.verdict, result.action, result.reason_code, rule))


def alike(outcome: Told) -> Told:
    """An outcome as it is compared: a default outcome that reads as that of refused facts is the same outcome."""
    return _REFUSED if outcome == (*_REFUSED[:-1], DEFAULT) else outcome


_REFUSED: Final[Told] = (REFUSED.decision, REFUSED.verdict, REFUSED.action, REFUSED.reason_code, FAILED)


def in_words(of: str, evaluator: VectorEvaluator, index: str) -> list[pl.Expr]:
    """The outcome at a place of an evaluator, as columns `<of>_<member>`."""
    outcomes: Sequence[Told] = told_by(evaluator)
    return [
        pl.lit(pl.Series([outcome[at] for outcome in outcomes], dtype=pl.String)).gather(pl.col(index)).alias(name)
        for at, name in enumerate(f"{of}_{member}" for member in OUTCOME)
    ]
