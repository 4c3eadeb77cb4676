"""The figures of a dry run, from the counts: `$defs/history` of `rulebook-migration-evidence-v1.schema.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import polars as pl

from gate.ids import not_before
from gate.policy.confidence import Counts, wilson_interval
from gate.policy.effectiveness import share
from gate.policy.means import mean_interval
from gate.policy.questions import VERDICTS
from gate.records.reports.resolution import ANSWERS
from gate.rulebooks.rulebook import Rulebook
from workbench.columns import NO_VERDICT
from workbench.evaluator import FAILED
from workbench.migration import sentences
from workbench.migration.deciding import REASONS, Told
from workbench.migration.source import OUTCOME
from workbench.migration.tally import DIFFERS, FROM_YES, IS_CHANGED, REDECIDED, TO_YES, Latest, Money, Tally, latest
from workbench.migration.values import ValueTally

MAX_ROWS: Final = 200
"""How many rows a list has of transitions, rules, versions and so on, those of the most decisions first."""

MAX_WEEKS: Final = 520
"""How many weeks are listed, the latest."""

_TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")
_UNREPORTED: Final = "unreported"
_MATRICES: Final = ("verdict", "action", "reason_code")


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of a dry run.

    Attributes:
        metric: The metric whose sums are reported; None for none.
        since: Only decisions from this moment on.
        until: Only decisions before this moment.
        adapter_manifest_hash: The adapter that makes the candidate's facts; None if callers send them.
    """

    metric: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    adapter_manifest_hash: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        """What was asked, as the figures repeat it."""
        return {
            "since": None if self.since is None else not_before(self.since),
            "until": None if self.until is None else not_before(self.until),
            "metric": self.metric,
            "adapter_manifest_hash": self.adapter_manifest_hash,
        }


class Figures:
    """Makes the figures of a tally."""

    def __init__(self, tally: Tally, left: Sequence[Told], then: Sequence[Told], *, first: bool) -> None:
        """Takes what was counted, and the outcomes of both sides by their places.

        Args:
            tally: What was counted.
            left: The outcomes of the base, or without one those of the past.
            then: The outcomes of the candidate.
            first: Whether there is no base.
        """
        self._tally = tally
        self._first = first
        cells = tally.cells.frame.lazy().with_columns(*_named("base", left, "left"), *_named("then", then, "then"))
        self._cells = cells.collect()
        self._anew = self._cells.filter(REDECIDED)
        self._redecided = _count(self._anew)
        self._left_out: dict[str, int] = {}

    def body(self, candidate: Rulebook, values: Sequence[ValueTally], regions: int) -> dict[str, Any]:
        """The figures, each with the positions of decisions behind it in place of their ids.

        Args:
            candidate: The candidate.
            values: The decisions by the values of fields.
            regions: How many regions the difference has.
        """
        anew, redecided = self._anew, self._redecided
        to_yes, from_yes = anew.filter(TO_YES), anew.filter(FROM_YES)
        other = anew.filter(_VERDICT_CHANGED & ~TO_YES & ~FROM_YES)
        body = {
            "decisions": _count(self._cells),
            "redecided": redecided,
            "not_redecided": self._not_redecided(),
            "changed": _rate(anew.filter(IS_CHANGED), redecided),
            "verdict_changed": _rate(anew.filter(_VERDICT_CHANGED), redecided),
            "newly_approved": {**_rate(to_yes, redecided), **_split(to_yes, "from", "base_verdict")},
            "newly_blocked": {**_rate(from_yes, redecided), **_split(from_yes, "to", "then_verdict")},
            "otherwise_refused": {**_rate(other, redecided), **_split(other, "to", "then_verdict")},
            "needs_input": _figure(anew.filter((_rule("then") == FAILED) & (_rule("base") != FAILED)), redecided),
            "earlier": self._earlier(),
            "matrix": {name: self._matrix(name, f"base_{name}", f"then_{name}") for name in _MATRICES},
            "was_matrix": self._matrix("was_verdict", "was_verdict", "then_verdict"),
            "rules": self._by_rule("rules", "base_rule"),
            "then_rules": self._by_rule("then_rules", "then_rule"),
            "transitions": self._transitions(),
            "weeks": self._weeks(),
            "versions": self._versions(),
            "facts": [{"field": of.field, "classes": list(of.classes(_changes_of))} for of in values],
            "outcomes": self._outcomes(),
            "money": [_moved(pair, money) for pair, money in sorted(self._tally.money.items())],
            "missing_facts": self._missing(candidate),
            "regions": [self._region(index) for index in range(regions)],
            "note": sentences.REGIONS,
        }
        return {**body, **self._reviews(), "left_out": self._left_out}

    def _reviews(self) -> dict[str, Any]:
        """How owners resolved the held decisions whose verdict the candidate changes; nothing if none was resolved."""
        found = self._tally.reviews
        if not any(found[then, answer] for then in VERDICTS for answer in ANSWERS):
            return {}
        rows = [
            {"then_verdict": then, **{answer: found[then, answer] for answer in ("held", *ANSWERS)}}
            for then in VERDICTS
        ]
        told = [{**row, "decisions": sum(number for number in row.values() if isinstance(number, int))} for row in rows]
        return {"reviews": [row for row in told if row["decisions"]]}

    def _listed(self, name: str, rows: list[dict[str, Any]], beyond: int = 0) -> list[dict[str, Any]]:
        """The first of some rows; `left_out` counts the decisions of the others."""
        most = MAX_WEEKS if name == "weeks" else MAX_ROWS
        self._left_out[name] = beyond + sum(of["decisions"] for of in rows[most:])
        return rows[:most]

    def _not_redecided(self) -> list[dict[str, Any]]:
        parts = [(reason, self._cells.filter(pl.col("fate") == at)) for at, reason in enumerate(REASONS)]
        return [{"reason": reason, **_figure(part)} for reason, part in parts if part.height]

    def _earlier(self) -> list[dict[str, Any]]:
        """How many decisions were decided otherwise than the base decides them, by the version that decided."""
        if self._first:
            return self._listed("earlier", [])
        names = self._tally.versions
        frame, beyond = (_with_fates(of) for of in (names.frame, names.beyond))
        differs = REDECIDED & pl.col("differs")
        found = _grouped(frame.filter(REDECIDED), "name", differs).filter(pl.col("shown") > 0)
        rows = [
            {"policy_version": version, "decisions": shown, "positions": positions, "of": decisions}
            for version, decisions, shown, positions in found.iter_rows()
        ]
        rows.sort(key=lambda of: (-of["decisions"], str(of["policy_version"])))
        return self._listed("earlier", rows, _count(beyond.filter(differs)))

    def _matrix(self, name: str, before: str, after: str) -> list[dict[str, Any]]:
        # How an imported case was decided may not be known.
        verdict = before if before not in ("base_verdict", "was_verdict") else pl.col(before).fill_null(NO_VERDICT)
        found = self._anew.group_by(verdict, after).agg(pl.col("decisions").sum(), latest())
        rows = [
            {"from": was, "to": then, **_told(decisions, positions, self._redecided)}
            for was, then, decisions, positions in found.iter_rows()
        ]
        rows.sort(key=lambda of: (of["from"] == of["to"], -of["decisions"], str(of["from"]), str(of["to"])))
        return self._listed(name, rows)

    def _by_rule(self, name: str, column: str) -> list[dict[str, Any]]:
        rows = [{"rule": rule, **changes} for rule, changes in _changes(self._anew, column)]
        rows.sort(key=lambda of: (-of["decisions"], str(of["rule"])))
        return self._listed(name, rows)

    def _weeks(self) -> list[dict[str, Any]]:
        weeks = self._tally.weeks.told().with_columns(pl.col("of").cast(pl.Int32).cast(pl.Date))
        found = sorted(_changes(weeks, "of"), key=lambda each: str(each[0]))
        rows = [{"week": week.isoformat(), **changes} for week, changes in reversed(found)]
        return self._listed("weeks", rows)[::-1]

    def _versions(self) -> list[dict[str, Any]]:
        names = self._tally.versions
        found = _changes(_with_fates(names.frame), "name")
        rows = [{"policy_version": version, **changes} for version, changes in found]
        rows.sort(key=lambda of: (-of["decisions"], str(of["policy_version"])))
        return self._listed("versions", rows, _count(names.beyond))

    def _transitions(self) -> list[dict[str, Any]]:
        changed = self._anew.filter(IS_CHANGED)
        statuses = [
            pl.col("decisions").filter(pl.col("outcome_status") == status).sum().alias(f"outcome:{status}")
            for status in (*Counts._fields, _UNREPORTED)
        ]
        found = changed.group_by(*_OF_TRANSITION).agg(pl.col("decisions").sum(), latest(), *statuses)
        rows = []
        for row in found.iter_rows(named=True):
            rows.append(
                {
                    **{name: row[column] for column, name in _OF_TRANSITION.items()},
                    **_told(row["decisions"], row["positions"], self._redecided),
                    "outcomes": {status: row[f"outcome:{status}"] for status in (*Counts._fields, _UNREPORTED)},
                }
            )
        rows.sort(key=lambda of: (-of["decisions"], *(str(of[name]) for name in _OF_TRANSITION.values())))
        return self._listed("transitions", rows)

    def _outcomes(self) -> dict[str, Any]:
        anew, status = self._anew, pl.col("outcome_status")
        # An imported case without a verdict was let through if an outcome tells what came of it.
        let_through = (pl.col("was_verdict") == "yes") | pl.col("was_verdict").is_null()
        was_yes = let_through & (pl.col("base_verdict") == "yes")
        good = anew.filter(was_yes & (status == "succeeded"))
        bad = anew.filter(was_yes & status.is_in(_TERMINAL[1:]))
        approved = anew.filter(TO_YES)
        judged = approved.filter(status.is_in(_TERMINAL))
        found = {
            "good_newly_blocked": _rate(good.filter(FROM_YES), _count(good)),
            "bad_newly_blocked": _rate(bad.filter(FROM_YES), _count(bad)),
            "bad_newly_approved": _rate(judged.filter(status != "succeeded"), _count(judged)),
            "newly_approved_unknown": _rate(approved.filter(~status.is_in(_TERMINAL)), _count(approved)),
        }
        told = {name: {**of, "sentence": sentences.OUTCOMES[name](of)} for name, of in found.items()}
        return {**told, "unknowable": sentences.unknowable(found["newly_approved_unknown"])}

    def _missing(self, candidate: Rulebook) -> list[dict[str, Any]]:
        """The fields that the candidate reads and some decisions lack."""
        required = candidate.body["input_schema"]["required"]
        found = [
            {"field": name, "required": name in required, **_told(of.decisions, of.positions, self._tally.known)}
            for name, of in self._tally.missing.items()
        ]
        return sorted(found, key=lambda of: (not of["required"], -of["decisions"], of["field"]))

    def _region(self, index: int) -> dict[str, Any]:
        of = self._tally.regions.get(index, Latest())
        return {"region": index, **_told(of.decisions, of.positions, self._redecided)}


# What the decisions of a transition have in common, and what the figures call it.
_OF_TRANSITION: Final = {
    "base_rule": "rule",
    "then_rule": "then_rule",
    "base_verdict": "verdict",
    "then_verdict": "then_verdict",
    "base_action": "action",
    "then_action": "then_action",
}

_VERDICT_CHANGED: Final = pl.col("base_verdict") != pl.col("then_verdict")


def _rule(of: str) -> pl.Expr:
    return pl.col(f"{of}_rule").fill_null("")


def _named(of: str, outcomes: Sequence[Told], place: str) -> Iterator[pl.Expr]:
    for at, name in enumerate(OUTCOME):
        names = pl.lit(pl.Series([outcome[at] for outcome in outcomes], dtype=pl.String))
        yield pl.when(REDECIDED).then(names.gather(pl.col(place))).alias(f"{of}_{name}")


def _with_fates(groups: pl.DataFrame) -> pl.DataFrame:
    """Groups of versions with what becomes of them, and whether they were decided otherwise than the base decides."""
    number = pl.col("number")
    return groups.with_columns((number % DIFFERS).alias("fate"), (number >= DIFFERS).alias("differs"))


def _count(groups: pl.DataFrame) -> int:
    return int(groups["decisions"].sum())


def _positions(groups: pl.DataFrame) -> list[int]:
    return groups.select(latest()).to_series().to_list()


def _told(decisions: int, positions: Sequence[int], of: int) -> dict[str, Any]:
    return {"decisions": decisions, "share": share(decisions, of), "positions": list(positions)}


def _figure(groups: pl.DataFrame, of: int | None = None) -> dict[str, Any]:
    if of is None:
        return {"decisions": _count(groups), "positions": _positions(groups)}
    return _told(_count(groups), _positions(groups), of)


def _rate(groups: pl.DataFrame, of: int) -> dict[str, Any]:
    """So many of so many, with the 95% Wilson interval of the share; nulls where there are none."""
    count = _count(groups)
    low, high = wilson_interval(count, of) if of else (None, None)
    told = {"decisions": count, "of": of, "share": share(count, of), "low": low, "high": high}
    return {**told, "positions": _positions(groups)}


def _split(groups: pl.DataFrame, name: str, column: str) -> dict[str, int]:
    """How many decisions come from no and from review, or go there."""
    return {f"{name}_{verdict}": _count(groups.filter(pl.col(column) == verdict)) for verdict in VERDICTS[1:]}


def _grouped(groups: pl.DataFrame, column: str, shown: pl.Expr) -> pl.DataFrame:
    """Groups by a column: decisions, how many of them are to be shown, and the latest of these."""
    decisions = pl.col("decisions")
    return groups.group_by(column).agg(
        decisions.sum().alias("decisions"), decisions.filter(shown).sum().alias("shown"), latest(shown)
    )


_COUNTS: Final[Mapping[str, pl.Expr]] = {
    "decisions": pl.lit(value=True),
    "redecided": REDECIDED,
    "changed": IS_CHANGED,
    "newly_approved": TO_YES,
    "newly_blocked": FROM_YES,
}


def _counting() -> list[pl.Expr]:
    decisions = pl.col("decisions")
    counts = [decisions.sum().alias("decisions")]
    counts += [decisions.filter(holds).sum().alias(name) for name, holds in _COUNTS.items() if name != "decisions"]
    return [*counts, latest(IS_CHANGED)]


def _changes(groups: pl.DataFrame, column: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """What changes, by a column; decisions that were not decided again count as decisions alone."""
    for row in groups.group_by(column).agg(_counting()).iter_rows(named=True):
        yield row.pop(column), row


def _changes_of(groups: pl.DataFrame) -> dict[str, Any]:
    """What changes of some groups together."""
    ((_, found),) = _changes(groups.with_columns(pl.lit(0).alias("all")), "all")
    return found


def _moved(pair: tuple[str, str], money: Money) -> dict[str, Any]:
    mean = mean_interval(money.sums)
    told = {} if mean is None else mean._asdict()
    return {"verdict": pair[0], "then_verdict": pair[1], "values": money.sums.values, **told, **_last(money.latest)}


def _last(of: Latest) -> dict[str, Any]:
    return {"positions": of.positions}


def with_ids(value: Any, ids: Mapping[int, str]) -> Any:
    """A document with `decision_ids` in the place of `positions`, the latest last."""
    if isinstance(value, dict):
        named = {name: with_ids(item, ids) for name, item in value.items() if name != "positions"}
        return named | ({"decision_ids": [ids[at] for at in value["positions"]]} if "positions" in value else {})
    return [with_ids(item, ids) for item in value] if isinstance(value, list) else value


def positions_of(value: Any) -> Iterator[int]:
    """All positions in a document."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from item if name == "positions" else positions_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from positions_of(item)
