"""The figures of a dry run, made of what was counted; schemas/rulebook-migration-history.schema.json has the shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import polars as pl

from gate.ids import timestamp
from gate.policy.confidence import Counts, wilson_interval
from gate.policy.effectiveness import share
from gate.policy.means import Sample, mean_interval
from gate.policy.questions import VERDICTS
from gate.rulebooks.analysis.classes import FieldClasses
from gate.rulebooks.rulebook import Rulebook
from workbench.migration import sentences
from workbench.migration.classes import class_words
from workbench.migration.tally import EXAMPLES, Money, Tally, Told

MAX_ROWS: Final = 200
"""How many transitions, versions and classes of a field are told, those of the most decisions first."""

FAILED: Final = "schema:failed"
REASONS: Final = ("facts_erased", "adapter_changed", "facts_withheld")
"""Why a decision cannot be decided anew, in the order in which they are asked for."""

_TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")
_UNREPORTED: Final = "unreported"
_PARTS: Final = ("verdict", "application_verdict", "action", "reason_code", "rule")
_MATRICES: Final = ("verdict", "action", "reason_code")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a dry run was asked.

    Attributes:
        metric: What money is told of; None for nothing.
        since: Only decisions from this moment on.
        until: Only decisions before this moment.
    """

    metric: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class Figures:
    """Makes the figures of a tally."""

    def __init__(self, tally: Tally, outcomes: Sequence[Told]) -> None:
        """Takes what was counted, and the outcomes by their numbers."""
        self._tally = tally
        named = pl.DataFrame(
            [(code, *outcome) for code, outcome in enumerate(outcomes)],
            schema={"code": pl.Int32, **dict.fromkeys(_PARTS, pl.String)},
            orient="row",
        )
        self._named = named
        self._cells = self._with_names(tally.cells)
        self._anew = self._cells.filter(pl.col("reason").is_null())

    def body(
        self,
        candidate: Rulebook,
        classes: Mapping[str, FieldClasses],
        regions: int,
    ) -> dict[str, Any]:
        """The figures, each with the positions of decisions behind it in place of their ids.

        Args:
            candidate: The candidate.
            classes: The classes of the fields that are told by class.
            regions: How many regions the difference has.
        """
        anew, redecided = self._anew, _count(self._anew)
        changed = anew.filter(_CHANGED)
        to_yes, from_yes = anew.filter(_TO_YES), anew.filter(_FROM_YES)
        return {
            "decisions": _count(self._cells),
            "redecided": redecided,
            "not_redecided": self._not_redecided(),
            "changed": _rate(changed, redecided),
            "verdict_changed": _rate(anew.filter(_VERDICT_CHANGED), redecided),
            "newly_approved": _rate(to_yes, redecided),
            "newly_blocked": {
                **_rate(from_yes, redecided),
                "to_no": _count(from_yes.filter(pl.col("then_verdict") == "no")),
                "to_review": _count(from_yes.filter(pl.col("then_verdict") == "review")),
            },
            "needs_input": _figure(
                anew.filter((pl.col("then_rule") == FAILED) & (pl.col("base_rule") != FAILED)), redecided
            ),
            "earlier": self._earlier(),
            "matrix": {name: self._matrix(f"base_{name}", f"then_{name}") for name in _MATRICES},
            "was_matrix": self._matrix("was_verdict", "then_verdict"),
            "rules": self._by("base_rule", "rule"),
            "then_rules": self._by("then_rule", "rule"),
            "transitions": self._transitions(changed, redecided),
            "weeks": self._by("week", "week", order="week"),
            "versions": self._by("policy_version", "policy_version"),
            "facts": [self._facts(name, of) for name, of in classes.items()],
            "outcomes": self._outcomes(),
            "money": self._money(),
            "missing_facts": self._missing(candidate),
            "regions": [self._region(index, redecided) for index in range(regions)],
        }

    def _with_names(self, cells: pl.DataFrame) -> pl.DataFrame:
        for of in ("was", "base", "then"):
            named = self._named.rename({"code": of, **{part: f"{of}_{part}" for part in _PARTS}})
            cells = cells.join(named, on=of, how="left")
        return cells.with_columns(pl.col("outcome_status").cast(pl.String).fill_null(_UNREPORTED))

    def _not_redecided(self) -> list[dict[str, Any]]:
        found = []
        for at, reason in enumerate(REASONS):
            of = self._cells.filter(pl.col("reason") == at)
            if of.height:
                found.append({"reason": reason, **_figure(of)})
        return found

    def _earlier(self) -> list[dict[str, Any]]:
        """How many decisions were decided otherwise than the base decides them, by the version that decided."""
        other = self._anew.filter(pl.col("was") != pl.col("base"))
        decided = dict(self._anew.group_by("policy_version").agg(pl.col("decisions").sum()).iter_rows())
        found = [
            {"policy_version": version, **_figure(part), "of": decided[version]}
            for (version,), part in other.partition_by("policy_version", as_dict=True).items()
        ]
        return sorted(found, key=lambda of: (-of["decisions"], of["policy_version"]))[:MAX_ROWS]

    def _matrix(self, before: str, after: str) -> list[dict[str, Any]]:
        total = _count(self._anew)
        found = [
            {"from": was, "to": then, **_figure(part, total)}
            for (was, then), part in self._anew.partition_by(before, after, as_dict=True).items()
        ]
        return sorted(found, key=lambda of: (of["from"] == of["to"], -of["decisions"], of["from"], of["to"]))[:MAX_ROWS]

    def _by(self, column: str, name: str, *, order: str | None = None) -> list[dict[str, Any]]:
        """The changes by what decisions have in common; those that were not decided anew count as decisions alone."""
        rows = self._cells if column in ("week", "policy_version") else self._anew
        found = []
        for (value,), part in rows.partition_by(column, as_dict=True).items():
            shown = value.isoformat() if isinstance(value, date) else value
            found.append({name: shown, **_changes(part)})
        if order is not None:
            return sorted(found, key=lambda of: str(of[order]))
        return sorted(found, key=lambda of: (-of["decisions"], str(of[name])))[:MAX_ROWS]

    def _transitions(self, changed: pl.DataFrame, redecided: int) -> list[dict[str, Any]]:
        found = []
        for values, part in changed.partition_by(*_OF_TRANSITION, as_dict=True).items():
            named = dict(zip(_OF_TRANSITION.values(), values, strict=True))
            found.append({**named, **_figure(part, redecided), "outcomes": _statuses(part)})
        found.sort(key=lambda of: (-of["decisions"], *(of[name] for name in _OF_TRANSITION.values())))
        return found[:MAX_ROWS]

    def _facts(self, field: str, of: FieldClasses) -> dict[str, Any]:
        counted = self._tally.classes.get(field)
        if counted is None:
            return {"field": field, "classes": []}
        # Of these decisions nothing else is told, and all were decided anew.
        rows = counted.with_columns(
            pl.lit(None, pl.String).alias("outcome_status"), pl.lit(None, pl.Int8).alias("reason")
        )
        found: list[tuple[int, dict[str, Any]]] = []
        for (index,), part in self._with_names(rows).partition_by(f"{field}:class", as_dict=True).items():
            at = -1 if index is None else int(index)
            words = "not known" if index is None else class_words(field, of, at)
            found.append((at, {"class": words, **_changes(part)}))
        found.sort(key=lambda each: each[0])
        return {"field": field, "classes": [each for _, each in found][:MAX_ROWS]}

    def _outcomes(self) -> dict[str, Any]:
        anew = self._anew
        good = anew.filter((pl.col("was_verdict") == "yes") & (pl.col("outcome_status") == "succeeded"))
        bad = anew.filter((pl.col("was_verdict") == "yes") & pl.col("outcome_status").is_in(_TERMINAL[1:]))
        approved = anew.filter(_TO_YES)
        judged = approved.filter(pl.col("outcome_status").is_in(_TERMINAL))
        found = {
            "good_newly_blocked": _rate(good.filter(_FROM_YES), _count(good.filter(_BASE_YES))),
            "bad_newly_blocked": _rate(bad.filter(_FROM_YES), _count(bad.filter(_BASE_YES))),
            "bad_newly_approved": _rate(judged.filter(pl.col("outcome_status") != "succeeded"), _count(judged)),
            "newly_approved_unknown": _rate(
                approved.filter(~pl.col("outcome_status").is_in(_TERMINAL)), _count(approved)
            ),
        }
        told = {name: {**of, "sentence": sentences.OUTCOMES[name](of)} for name, of in found.items()}
        return {**told, "unknowable": sentences.unknowable(found["newly_approved_unknown"])}

    def _money(self) -> list[dict[str, Any]]:
        found = [
            {"verdict": before, "then_verdict": after, **_moved(money)}
            for (before, after), money in sorted(self._tally.money.items())
        ]
        return [of for of in found if of["values"]]

    def _missing(self, candidate: Rulebook) -> list[dict[str, Any]]:
        """The fields that the candidate reads and some decisions lack."""
        known = _count(self._cells.filter(pl.col("reason").ne_missing(pl.lit(0, pl.Int8))))
        required = candidate.body["input_schema"]["required"]
        found = [
            {
                "field": name,
                "required": name in required,
                "decisions": count,
                "share": share(count, known),
                "positions": positions,
            }
            for name, (count, positions) in self._tally.missing.items()
            if count
        ]
        return sorted(found, key=lambda of: (not of["required"], -of["decisions"], of["field"]))

    def _region(self, index: int, redecided: int) -> dict[str, Any]:
        count, positions = self._tally.regions.get(index, (0, []))
        return {"region": index, "decisions": count, "share": share(count, redecided), "positions": positions}


# What the decisions of a transition have in common, and what the figures call it.
_OF_TRANSITION: Final = {
    "base_rule": "rule",
    "then_rule": "then_rule",
    "base_verdict": "verdict",
    "then_verdict": "then_verdict",
    "base_action": "action",
    "then_action": "then_action",
}

_CHANGED: Final = pl.col("base") != pl.col("then")
_VERDICT_CHANGED: Final = pl.col("base_verdict") != pl.col("then_verdict")
_BASE_YES: Final = pl.col("base_verdict") == "yes"
_THEN_YES: Final = pl.col("then_verdict") == "yes"
_TO_YES: Final = ~_BASE_YES & _THEN_YES
_FROM_YES: Final = _BASE_YES & ~_THEN_YES


def _count(cells: pl.DataFrame) -> int:
    return int(cells["decisions"].sum())


def _positions(cells: pl.DataFrame) -> list[int]:
    return cells["positions"].explode().drop_nulls().sort().tail(EXAMPLES).to_list() if cells.height else []


def _figure(cells: pl.DataFrame, of: int | None = None) -> dict[str, Any]:
    count = _count(cells)
    shares = {} if of is None else {"share": share(count, of)}
    return {"decisions": count, **shares, "positions": _positions(cells)}


def _rate(cells: pl.DataFrame, of: int) -> dict[str, Any]:
    """So many of so many, with the 95% Wilson interval of the share; nulls where there are none."""
    count = _count(cells)
    low, high = wilson_interval(count, of) if of else (None, None)
    told = {"decisions": count, "of": of, "share": share(count, of), "low": low, "high": high}
    return {**told, "positions": _positions(cells)}


def _changes(cells: pl.DataFrame) -> dict[str, Any]:
    """How many decisions, and what changes of those that were decided anew."""
    anew = cells.filter(pl.col("reason").is_null())
    changed = anew.filter(_CHANGED)
    return {
        "decisions": _count(cells),
        "redecided": _count(anew),
        "changed": _count(changed),
        "newly_approved": _count(anew.filter(_TO_YES)),
        "newly_blocked": _count(anew.filter(_FROM_YES)),
        "positions": _positions(changed),
    }


def _statuses(cells: pl.DataFrame) -> dict[str, int]:
    counted = dict(cells.group_by("outcome_status").agg(pl.col("decisions").sum()).iter_rows())
    return {name: int(counted.get(name, 0)) for name in (*Counts._fields, _UNREPORTED)}


def _moved(money: Money) -> dict[str, Any]:
    mean = mean_interval(Sample(money.values, money.total, money.variance))
    if mean is None:
        return {"values": 0}
    times = money.values
    return {
        "values": times,
        "sum": round(money.total, 6),
        "sum_low": None if mean.low is None else round(mean.low * times, 6),
        "sum_high": None if mean.high is None else round(mean.high * times, 6),
        "mean": mean.mean,
        "low": mean.low,
        "high": mean.high,
    }


def with_ids(value: Any, ids: Mapping[int, str]) -> Any:
    """A document with `decision_ids` in the place of `positions`, the latest last."""
    if isinstance(value, dict):
        named = {name: with_ids(item, ids) for name, item in value.items() if name != "positions"}
        return named | ({"decision_ids": [ids[at] for at in value["positions"]]} if "positions" in value else {})
    return [with_ids(item, ids) for item in value] if isinstance(value, list) else value


def positions_of(value: Any) -> Iterable[int]:
    """All positions in a document."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from item if name == "positions" else positions_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from positions_of(item)


def asked_of(asked: Asked) -> dict[str, Any]:
    """What was asked, as the figures repeat it."""
    moments = {"since": asked.since, "until": asked.until}
    told: Callable[[datetime | None], str | None] = lambda at: None if at is None else timestamp(at)  # noqa: E731
    return {**{name: told(at) for name, at in moments.items()}, "metric": asked.metric}


__all__ = ["FAILED", "REASONS", "VERDICTS", "Asked", "Figures", "asked_of", "positions_of", "with_ids"]
