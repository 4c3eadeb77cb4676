"""Decides a slice of a policy's decisions again, under other facts or another rulebook.

    report = counterfactuals(snapshot, "refund_policy", rulebook=candidate)
    report = counterfactuals(snapshot, "refund_policy", patch={"order_total": 900}, verdict="yes")
    report.frame                       # transitions between verdicts, their counts, and outcomes
    report.decisions.collect()         # the decisions behind them

It is a simulation: it stores and signs nothing, and authorizes no mutation. Outcomes are those of the original
decisions. How a decision would have ended under another verdict is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, cast

import orjson
import polars as pl

from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import parse_document
from gate.policy.bounds import refusal
from gate.policy.confidence import Counts
from gate.policy.effectiveness import Standing
from gate.policy.means import Sums, mean_interval
from gate.policy.notes import by_clock, without_advice
from gate.policy.questions import VERDICTS, CounterfactualsQuestion
from gate.records.reports.resolution import ANSWERS
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.rulebook import Rulebook, load
from workbench.columns import NO_VERDICT
from workbench.engines.arguments import require_decided, require_known_values, require_snapshot
from workbench.engines.findings import approvals, failing, redecided
from workbench.engines.rendering import cut, listed, page, prompt
from workbench.engines.slicing import date_of, latest, looked_at
from workbench.engines.wording import decided_by, stated, without_verdict
from workbench.evaluator import DEFAULT, FAILED, VectorEvaluator, compile_frame_evaluator
from workbench.facts import ABSENT, fields_of, find_typed, patched, type_of, with_fields
from workbench.history.marks import marked
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot, at_positions, unmoved
from workbench.values import exact_sums, values_of

if TYPE_CHECKING:
    import altair as alt

COUNTERFACTUAL_SLICE: Final = "policy_counterfactuals_v1"

MAX_TRANSITIONS: Final = 200
"""The most transitions that the report lists, those of the most decisions first."""

_EXAMPLES: Final = 10
_STRETCH: Final = 250_000
_PREFIX: Final = "then_"
_NOTES: Final = (
    "Simulation only: no decision was made, and nothing here authorizes an action.",
    "Outcomes are those of the original decisions: how an action would have ended under another verdict is unknown.",
    "Decisions whose facts were erased or left out as personal count as unknown.",
)


@dataclass(frozen=True, slots=True, eq=False)
class CounterfactualReport:
    """A slice of decisions, decided again.

    Attributes:
        body: The report as JSON, described below.
        frame: The transitions, one row each, with a column for each outcome status.
        decisions: The decisions whose result would change, with the original and the new result; lazy.
        scope: The scope's name.

    `body` repeats the question, and has these counts:

    - `redecided` and `unknown` split `decisions` by whether their facts are known.
    - `changed` counts decisions with any change: of verdict, application verdict, action, reason code, or rule.
      `verdict_changed` counts those with another verdict.
    - `needs_input` counts decisions that would fail the rulebook's schema. `unfit` splits them by fact, `{fact,
      missing, mistyped}`; it is null if several rulebooks decide.
    - `let_through` has `{more, fewer}`, and `verdicts` has `{before, after}`.
    - `unread` lists the paths of the patch that no deciding rulebook declares or tests. They change nothing.
    - `transitions` list verdict and rule as decided, `then_verdict`, `then_rule`, `decisions`, `outcomes`, up to ten
      decision ids, and `worth`.
    - `worth` of a transition has `{metric, values, sum}` for each requested metric: how many decisions have a value,
      and their sum. The report's own `worth` has `{metric, verdict, then_verdict, values, sum}` of the decisions with
      another verdict.
    - `reviews` count how owners resolved the held decisions, by their new verdict: `{then_verdict, decisions, held,
      granted, refused, expired}`. It is absent without any.
    - `counterfactual_hash` covers all other fields.
    """

    body: dict[str, Any]
    frame: pl.DataFrame
    decisions: pl.LazyFrame
    scope: str

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return self.body

    def __repr__(self) -> str:
        body = self.body
        counts = (
            f"{body['redecided']:,} of {body['decisions']:,} decisions redecided ({body['unknown']:,} unknown): "
            f"{body['verdict_changed']:,} would get another verdict, {body['changed']:,} changed in any way; "
            f"{failing(body) or 'none would fail the schema check'}"
        )
        said = (self._asked(), counts, without_verdict(body), *approvals(body), self._unread())
        return prompt("Counterfactuals", body["policy_id"], self.scope, *said)

    def _repr_html_(self) -> str:
        shown = ("decisions", "redecided", "unknown", "changed", "verdict_changed", "needs_input")
        facts = [("scope", self.scope), *((name, self.body[name]) for name in shown)]
        facts += [(name, stated(self.body["coverage"][name])) for name in ("from", "to")]
        said = (
            f"{self._changed()}.",
            without_verdict(self.body),
            *approvals(self.body),
            f"Under {self._asked()}.",
            self._unread(),
        )
        title = f"What {self.body['policy_id']} would have decided"
        named = [pl.col(name).map_elements(decided_by, return_dtype=pl.String) for name in ("rule", "then_rule")]
        transitions = ("Changes of verdict", self.frame.with_columns(named))
        return page(title, facts, transitions, said=said, small=self.body["notes"])

    def _changed(self) -> str:
        """The number of decisions that would get another verdict."""
        if self.body["redecided"] and not self._told():
            return "No imported case has a verdict to compare"
        return redecided({**self.body, "redecided": self._told()})

    def _told(self) -> int:
        """The number of redecided decisions that have a verdict."""
        return int(self.body["redecided"] - self.body["verdicts"]["before"].get(NO_VERDICT, 0))

    def _asked(self) -> str:
        """The rulebook and the patch, in words."""
        body, parts = self.body, []
        if body["rulebook"] is not None:
            parts.append(f"rulebook version {cut(body['rulebook']['version'])}")
        if body["patch"]:
            parts.append(f"patch {cut(orjson.dumps(body['patch']).decode())}")
        parts = parts or ["its own rulebooks, unchanged"]
        parts += [f"{name} {body[name][:10]}" for name in ("since", "until") if body[name] is not None]
        parts += [f"version {cut(body['policy_version'])}"] if body["policy_version"] is not None else []
        parts += [f"verdict {body['verdict']}"] if body["verdict"] is not None else []
        return ", ".join(parts)

    def _unread(self) -> str:
        """The part of the patch that changes nothing, as a sentence; empty if all of it is read."""
        unread = self.body["unread"]
        return f"No rulebook of the slice reads {listed(unread)}: patching it changes nothing." if unread else ""

    def plot(self) -> alt.LayerChart | alt.FacetChart:
        """A chart of the decisions by their original and their new verdict."""
        from workbench.charts.counterfactuals import verdicts

        body = self.body
        notes = [
            f"Policy {cut(body['policy_id'])} in scope {cut(self.scope)}, under {self._asked()}.",
            "On the diagonal, the verdict stays the same." if body["redecided"] else "",
            without_verdict(body),
            f"{failing(body)}." if body["needs_input"] else "",
            f"The facts of {body['unknown']:,} more are unknown." if body["redecided"] and body["unknown"] else "",
            self._unread(),
        ]
        return verdicts(self.frame, self._changed(), notes)


def counterfactuals(
    snapshot: Snapshot,
    policy_id: str,
    *,
    rulebook: Mapping[str, Any] | None = None,
    patch: Mapping[str, Any] | None = None,
    policy_version: str | None = None,
    verdict: str | None = None,
    since: date | None = None,
    until: date | None = None,
    clock: str | None = None,
    limit: int | None = None,
    metrics: Sequence[str] = (),
) -> CounterfactualReport:
    """Decides a slice of a policy's decisions again.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        rulebook: The body of another rulebook; None for each decision's own.
        patch: An RFC 7396 merge patch over the facts; None for no change.
        policy_version: One of the policy's versions; None for all.
        verdict: One verdict, `yes`, `no`, or `review`; None for all.
        since: Only decisions from this moment on. A date, or a datetime without a time zone, is in UTC.
        until: Only decisions before this moment. A date includes its whole day.
        clock: The dates to use, `recorded` or `occurred`; None for those of the snapshot.
        limit: The most decisions to consider, the latest in the chain, 1 to 1,000,000; None for all.
        metrics: At most five values to sum over the decisions: metrics of the latest outcomes by name, and facts as
            `inputs.<path>`.

    Raises:
        RulebookRefused: `RULEBOOK_INVALID`.
        OperatorError: `ENGINE_ARGUMENT_INVALID`, also for a rulebook of another policy; `LAKE_POLICY_UNKNOWN`;
            `METRIC_UNKNOWN`; `LAKE_MOVED_ON` if facts were erased since the lake was opened.
    """
    require_snapshot(snapshot)
    question = CounterfactualsQuestion(
        policy_id,
        policy_version=policy_version,
        verdict=verdict,
        limit=limit,
        since=since,
        until=until,
        clock=snapshot.clock if clock is None else clock,
        patch=patch,
        rulebook=rulebook,
        # A text is refused as what it is, and not taken for its letters.
        metrics=cast("tuple[str, ...]", metrics if isinstance(metrics, str) else tuple(metrics)),
    )
    require_decided(snapshot, policy_id, policy_version)
    require_known_values(snapshot, policy_id, question.metrics, None if rulebook is None else load(dict(rulebook)).body)
    return answer(snapshot, question)


def answer(snapshot: Snapshot, question: CounterfactualsQuestion) -> CounterfactualReport:
    """Answers a counterfactuals question.

    Args:
        snapshot: The scope's chain.
        question: The question.

    Raises:
        RulebookRefused: `RULEBOOK_INVALID`.
        OperatorError: `ENGINE_ARGUMENT_INVALID` for a rulebook of another policy; `LAKE_MOVED_ON`.
    """
    policy_id, patch = question.policy_id, question.changes()
    other = None if question.rulebook is None else load(question.rulebook)
    _require_own(policy_id, other)
    if other is None and snapshot.imported is not None:
        raise refusal(
            "Imported cases have no rulebook of their own that could decide them again: give rulebook, the body of "
            "the rulebook that should decide them."
        )
    snapshot = snapshot.binding(policy_id)
    cases, truncated = latest(_chosen(snapshot, question), "position", question.limit)
    # Of an imported case no more than the verdict can be compared.
    changed = _CHANGED if snapshot.imported is None else _ANOTHER_VERDICT
    with unmoved():
        anew = _redecided(snapshot, policy_id, other, patch)
        unread = _unread(snapshot, policy_id, other, patch, cases)
        counted, covered = pl.collect_all([_counted_by_code(cases, anew), _covered(cases)], engine="streaming")
        groups = _grouped(counted, anew, changed)
        # Imported cases have no owners.
        reviews = [] if snapshot.imported is not None else _reviews(counted, anew)
        summed = {name: _worth(snapshot, policy_id, name, cases, anew, changed) for name in question.metrics}
        transitions = _transitions(groups, cases, summed)
    asked = {
        "decision_counterfactual_slice_version": COUNTERFACTUAL_SLICE,
        "simulation_only": True,
        "authorizes_mutation": False,
        **question.asked(),
        "limit": question.limit,
        "rulebook": None if other is None else other.reference,
        "patch": patch,
        "metrics": list(question.metrics),
        "unread": unread,
    }
    # As JSON has it, which is what is hashed.
    found = _found(snapshot, question, groups, covered, transitions, truncated=truncated)
    found["unfit"] = _unfit(snapshot, policy_id, other, patch, cases) if found["needs_input"] else []
    found["worth"] = [each for name, sums in summed.items() for each in _moved(name, sums)]
    if reviews:
        found["reviews"] = reviews
    body = orjson.loads(orjson.dumps(asked | found))
    report = marked({**body, "counterfactual_hash": content_hash(body)}, snapshot, "counterfactual_hash")
    behind = _compared(cases, anew).filter(changed).sort("position")
    return CounterfactualReport(report, _frame(transitions), behind, snapshot.title)


def _found(
    snapshot: Snapshot,
    question: CounterfactualsQuestion,
    groups: pl.DataFrame,
    covered: pl.DataFrame,
    transitions: list[_Transition],
    *,
    truncated: bool,
) -> dict[str, object]:
    """The report's content, without the question."""
    decisions, first, last = covered.row(0)
    known = groups.filter(pl.col("then_verdict").is_not_null())
    return {
        "decisions": decisions,
        "redecided": int(known["decisions"].sum()),
        "unknown": decisions - int(known["decisions"].sum()),
        "changed": _counted(groups, pl.col("changed")),
        "verdict_changed": _counted(known, pl.col("verdict").cast(pl.String) != pl.col("then_verdict").cast(pl.String)),
        "let_through": {
            "more": _counted(known, (pl.col("verdict") != "yes") & (pl.col("then_verdict") == "yes")),
            "fewer": _counted(known, (pl.col("verdict") == "yes") & (pl.col("then_verdict") != "yes")),
        },
        "needs_input": _counted(known, pl.col("then_rule") == FAILED),
        "verdicts": {"before": _by_verdict(known, "verdict"), "after": _by_verdict(known, "then_verdict")},
        "transitions": transitions[:MAX_TRANSITIONS],
        "coverage": {
            "from": date_of(first),
            "to": date_of(last),
            "transitions": len(transitions),
            "chain_position": snapshot.position,
            "merkle_root": snapshot.merkle_root,
            "truncated": truncated,
        },
        "notes": [*_NOTES, *by_clock(question.clock), *without_advice(snapshot.count_advisory(question.policy_id))],
    }


def _counted(groups: pl.DataFrame, holds: pl.Expr) -> int:
    return int(groups.filter(holds)["decisions"].sum())


def _require_own(policy_id: str, other: Rulebook | None) -> None:
    """Refuses a rulebook of another policy, because the slice lacks the facts that it asks for."""
    if other is not None and other.rulebook_id != policy_id:
        raise refusal(
            f"The rulebook belongs to {cut(other.rulebook_id)!r}, the decisions to {cut(policy_id)!r}: give a "
            "rulebook whose rulebook_id is the policy, or ask about the rulebook's own policy."
        )


def _unread(
    snapshot: Snapshot, policy_id: str, other: Rulebook | None, patch: Mapping[str, object], cases: pl.LazyFrame
) -> list[str]:
    """The paths of the patch that no rulebook of the slice declares or tests."""
    if not patch:
        return []
    if other is not None:
        bodies: list[RulebookBody] = [other.body]
    else:
        used = cases.select("policy_hash").unique()
        rulebooks = snapshot.table("rulebooks").filter(pl.col("policy_id") == policy_id)
        texts = rulebooks.join(used, on="policy_hash", how="semi").select("body").collect()["body"]
        bodies = [parse_document(text.encode()) for text in texts]
    read = {tuple(field.split(".")) for body in bodies for field in fields_of(body)}
    # A patch changes a field by replacing it, by replacing what contains it, or by changing something within it.
    reached = {field[:length] for field in read for length in range(1, len(field) + 1)}
    return sorted(
        ".".join(path)
        for path in _leaves(patch)
        if path not in reached and not any(path[:length] in read for length in range(1, len(path)))
    )


def _leaves(patch: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    for name, value in patch.items():
        if isinstance(value, Mapping) and value:
            yield from ((name, *path) for path in _leaves(value))
        else:
            yield (name,)


def _chosen(snapshot: Snapshot, question: CounterfactualsQuestion) -> pl.LazyFrame:
    cases = looked_at(snapshot, question).cases(question.policy_id)
    version = question.policy_version
    return cases if version is None else cases.filter(pl.col("policy_version") == version)


@dataclass(frozen=True, slots=True)
class _Anew:
    """The new result of every decision of a policy.

    Attributes:
        rows: {position, then}: the code of a result, null if it is unknown; lazy.
        outcomes: {then, then_verdict, ...}: the meaning of the codes. A million decisions have few of them.
    """

    rows: pl.LazyFrame
    outcomes: pl.DataFrame


class _Unfit(TypedDict):
    """The number of decisions that fail the input schema because of a fact: it is missing, or has the wrong type."""

    fact: str
    missing: int
    mistyped: int


def _unfit(
    snapshot: Snapshot, policy_id: str, other: Rulebook | None, patch: Mapping[str, object], cases: pl.LazyFrame
) -> list[_Unfit] | None:
    """By which facts decisions fail the schema of the one rulebook that decides; None where several do."""
    if other is None:
        bodies = snapshot.table("rulebooks").filter(pl.col("policy_id") == policy_id).select("body").collect()["body"]
        if len(bodies) != 1:
            return None
    body: RulebookBody = parse_document(bodies[0].encode()) if other is None else other.body
    evaluator = compile_frame_evaluator(body)
    facts = _facts(snapshot, policy_id, evaluator.fields, patch)
    looked = facts.join(cases.select("position"), on="position", how="semi")
    is_absent = {name: type_of(name) == ABSENT for name in evaluator.fields}
    sums = [
        (unfit & (is_absent[name] if kind == "missing" else ~is_absent[name])).sum().alias(f"{kind}:{name}")
        for name, unfit in evaluator.unfit.items()
        for kind in ("missing", "mistyped")
    ]
    row = looked.select(sums).collect(engine="streaming").row(0, named=True)
    found = [_Unfit(fact=name, missing=row[f"missing:{name}"], mistyped=row[f"mistyped:{name}"]) for name in is_absent]
    return sorted((of for of in found if _rows(of)), key=lambda of: (-_rows(of), of["fact"]))


def _rows(of: _Unfit) -> int:
    return of["missing"] + of["mistyped"]


def _redecided(snapshot: Snapshot, policy_id: str, other: Rulebook | None, patch: Mapping[str, object]) -> _Anew:
    if other is not None:
        return _under(snapshot, policy_id, compile_frame_evaluator(other.body), patch)
    rulebooks = snapshot.table("rulebooks").filter(pl.col("policy_id") == policy_id).select("policy_hash", "body")
    bodies = {hash_: parse_document(text.encode()) for hash_, text in rulebooks.collect().iter_rows()}
    if len(bodies) == 1:
        return _under(snapshot, policy_id, compile_frame_evaluator(next(iter(bodies.values()))), patch)
    return _under_their_own(snapshot, policy_id, bodies, patch)


def _under(snapshot: Snapshot, policy_id: str, evaluator: VectorEvaluator, patch: Mapping[str, object]) -> _Anew:
    facts = _facts(snapshot, policy_id, evaluator.fields, patch)
    return _Anew(_coded(evaluator, facts, 0), _outcomes([*evaluator.outcomes]))


def _under_their_own(
    snapshot: Snapshot, policy_id: str, bodies: Mapping[str, RulebookBody], patch: Mapping[str, object]
) -> _Anew:
    """Each decision under the rulebook that decided it, a stretch of the chain at a time: versions may be many, and a
    scan for each would read everything as often.
    """
    fields = sorted({field for body in bodies.values() for field in fields_of(body)})
    facts = _facts(snapshot, policy_id, fields, patch)
    evaluators: dict[str, tuple[VectorEvaluator, int]] = {}
    outcomes: list[Outcome] = []
    parts = [pl.DataFrame(schema={"position": pl.Int64, "then": pl.Int32})]
    for after in range(0, snapshot.position, _STRETCH):
        stretch = facts.filter(pl.col("position").is_between(after + 1, after + _STRETCH))
        for part in stretch.collect(engine="streaming").partition_by("policy_hash"):
            hash_ = part["policy_hash"][0]
            if hash_ not in evaluators and hash_ in bodies:
                evaluators[hash_] = compile_frame_evaluator(bodies[hash_]), len(outcomes)
                outcomes += evaluators[hash_][0].outcomes
            if hash_ in evaluators:
                evaluator, first = evaluators[hash_]
                parts.append(_coded(evaluator, part.lazy(), first).collect())
    return _Anew(pl.concat(parts).lazy(), _outcomes(outcomes))


def _coded(evaluator: VectorEvaluator, facts: pl.LazyFrame, first: int) -> pl.LazyFrame:
    """What a rulebook says of each row, as a code; the first of its outcomes has the code `first`."""
    return facts.select("position", (evaluator.index.cast(pl.Int32) + first).alias("then"))


def _outcomes(outcomes: Sequence[Outcome]) -> pl.DataFrame:
    rows = [(code, of.decision, of.verdict, of.action, of.reason_code, _rule(of)) for code, of in enumerate(outcomes)]
    return pl.DataFrame(rows, schema={"then": pl.Int32, **_THEN_SCHEMA}, orient="row")


def _rule(of: Outcome) -> str:
    """What decided, as evidence codes have it."""
    if of.status == "needs_input":
        return FAILED
    return DEFAULT if of.matched_rule_id is None else f"rule:{of.matched_rule_id}"


def _facts(snapshot: Snapshot, policy_id: str, fields: Sequence[str], patch: Mapping[str, object]) -> pl.LazyFrame:
    facts = snapshot.facts(fields, policy_id)
    withheld = Personal.of(snapshot.manifest.personal).facts
    typed = find_typed(facts, fields, pl.col("known"))
    if patch:
        return patched(facts, patch, fields, withheld, typed=typed)
    return with_fields(facts, fields, withheld, typed=typed)


_THEN_SCHEMA: Final[Mapping[str, pl.DataType | type[pl.DataType]]] = {
    "then_verdict": pl.Enum(VERDICTS),
    "then_application_verdict": pl.String,
    "then_action": pl.String,
    "then_reason_code": pl.String,
    "then_rule": pl.String,
}
_SAID: Final = tuple(name.removeprefix(_PREFIX) for name in _THEN_SCHEMA)
_CHANGED: Final = pl.any_horizontal(pl.col(name) != pl.col(f"{_PREFIX}{name}") for name in _SAID).fill_null(value=False)

_ANOTHER_VERDICT: Final = (pl.col("verdict").cast(pl.String) != pl.col("then_verdict").cast(pl.String)).fill_null(
    value=False
)


def _compared(cases: pl.LazyFrame, anew: _Anew) -> pl.LazyFrame:
    kept = ("position", "decision_id", "created_at", "policy_version", *_SAID, "outcome_status")
    coded = cases.select(kept).join(anew.rows, on="position", how="left", maintain_order="left")
    return coded.join(anew.outcomes.lazy(), on="then", how="left", maintain_order="left").drop("then")


def _counted_by_code(cases: pl.LazyFrame, anew: _Anew) -> pl.LazyFrame:
    """How many decisions went one way and would go another, by codes, and the positions of the first of them."""
    return (
        cases.select("position", *_SAID, "outcome_status", "resolution")
        .join(anew.rows, on="position", how="left")
        .group_by(*_SAID, "outcome_status", "resolution", "then")
        .agg(pl.len().alias("decisions"), pl.col("position").bottom_k(_EXAMPLES).alias("examples"))
    )


def _grouped(counted: pl.DataFrame, anew: _Anew, changed: pl.Expr) -> pl.DataFrame:
    return (
        counted.join(anew.outcomes, on="then", how="left")
        .with_columns(changed.alias("changed"))
        .group_by("verdict", "rule", "then_verdict", "then_rule", "changed", "outcome_status")
        .agg(pl.col("decisions").sum(), pl.col("examples").list.explode(keep_nulls=False, empty_as_null=False))
    )


def _reviews(counted: pl.DataFrame, anew: _Anew) -> list[dict[str, object]]:
    """How the redecided reviews were resolved, by the verdict that they would get."""
    known = counted.filter(pl.col("verdict") == "review").join(anew.outcomes, on="then", how="inner")
    resolution = pl.col("resolution").cast(pl.String).fill_null("held").alias("resolution")
    groups = known.group_by(pl.col("then_verdict").cast(pl.String), resolution).agg(pl.col("decisions").sum())
    numbers = {(then, answer): number for then, answer, number in groups.iter_rows()}
    return [
        {
            "then_verdict": then,
            "decisions": sum(number for (verdict, _), number in numbers.items() if verdict == then),
            **{answer: numbers.get((then, answer), 0) for answer in ("held", *ANSWERS)},
        }
        for then in VERDICTS
        if any(verdict == then for verdict, _ in numbers)
    ]


def _covered(cases: pl.LazyFrame) -> pl.LazyFrame:
    return cases.select(
        pl.len().alias("decisions"),
        pl.col("created_at").min().alias("first"),
        pl.col("created_at").max().alias("last"),
    )


_Keys: TypeAlias = tuple[str, ...]
_TOLD_APART: Final = ("verdict", "rule", "then_verdict", "then_rule", "changed")


def _worth(
    snapshot: Snapshot, policy_id: str, name: str, cases: pl.LazyFrame, anew: _Anew, changed: pl.Expr
) -> dict[tuple[str, str, str, str, bool], Sums]:
    """The sums of a metric by transition, exact, a stretch of the chain at a time."""
    values = values_of(snapshot, policy_id, name)
    coded = cases.select("position", *_SAID).join(anew.rows, on="position", how="inner")
    by_code: dict[_Keys, Sums] = {}
    for after in range(0, snapshot.position, _STRETCH):
        stretch = pl.col("position").is_between(after + 1, after + _STRETCH)
        rows = coded.filter(stretch & pl.col("then").is_not_null()).join(values.filter(stretch), on="position")
        for keys, sums in exact_sums(rows.collect(engine="streaming"), (*_SAID, "then")).items():
            by_code[keys] = by_code.get(keys, Sums()) + sums
    names = pl.DataFrame(list(by_code), schema=dict.fromkeys((*_SAID, "then"), pl.String), orient="row")
    # A case without a verdict has the text of None there.
    verdict = pl.when(pl.col("verdict").is_in(VERDICTS)).then("verdict").cast(pl.Enum(VERDICTS))
    told = names.with_columns(pl.col("then").cast(pl.Int32), verdict.alias("verdict"))
    told = told.join(anew.outcomes, on="then", how="left", maintain_order="left")
    told = told.with_columns(changed.alias("changed"))
    found: dict[tuple[str, str, str, str, bool], Sums] = {}
    for (was, *rest), sums in zip(told.select(_TOLD_APART).iter_rows(), by_code.values(), strict=True):
        key = (was or NO_VERDICT, *rest)
        found[key] = found.get(key, Sums()) + sums
    return found


def _moved(name: str, worth: Mapping[tuple[str, str, str, str, bool], Sums]) -> list[dict[str, Any]]:
    """What a metric comes to in the decisions that would get another verdict, by both verdicts."""
    by_verdicts: dict[tuple[str, str], Sums] = {}
    for (verdict, _, then, *_), sums in worth.items():
        if verdict not in (then, NO_VERDICT):
            by_verdicts[verdict, then] = by_verdicts.get((verdict, then), Sums()) + sums
    return [
        {"metric": name, "verdict": verdict, "then_verdict": then, **_summed(sums)}
        for (verdict, then), sums in sorted(by_verdicts.items())
    ]


def _summed(sums: Sums) -> dict[str, Any]:
    mean = mean_interval(sums)
    return {"values": sums.values, "sum": 0.0 if mean is None else mean.sum}


class _Transition(TypedDict):
    """What some decisions were, and what they would have been."""

    verdict: str
    rule: str
    then_verdict: str
    then_rule: str
    changed: bool
    decisions: int
    outcomes: dict[str, int]
    worth: list[dict[str, Any]]
    decision_ids: list[str]


@dataclass(slots=True)
class _Seen:
    """The decisions of a transition: how many had each outcome, and the positions of the first."""

    outcomes: dict[str, int] = field(default_factory=dict)
    examples: list[int] = field(default_factory=list)


def _transitions(
    groups: pl.DataFrame, cases: pl.LazyFrame, worth: Mapping[str, Mapping[tuple[str, str, str, str, bool], Sums]]
) -> list[_Transition]:
    """What became what, the changed ones first, then those of the most decisions."""
    found: dict[tuple[str, str, str, str, bool], _Seen] = {}
    known = groups.filter(pl.col("then_verdict").is_not_null())
    for verdict, rule, then_verdict, then_rule, changed, status, decisions, examples in known.rows():
        seen = found.setdefault((verdict or NO_VERDICT, rule, then_verdict, then_rule, changed), _Seen())
        seen.outcomes[status or "unreported"] = decisions
        seen.examples += examples
    examples = {key: sorted(seen.examples)[:_EXAMPLES] for key, seen in found.items()}
    ids = _ids(cases, examples.values())
    transitions: list[_Transition] = [
        {
            "verdict": verdict,
            "rule": rule,
            "then_verdict": then_verdict,
            "then_rule": then_rule,
            "changed": changed,
            "decisions": sum(seen.outcomes.values()),
            "outcomes": Standing(**seen.outcomes)._asdict(),
            "worth": [
                {"metric": name, **_summed(of.get((verdict, rule, then_verdict, then_rule, changed), Sums()))}
                for name, of in worth.items()
            ],
            "decision_ids": [ids[position] for position in examples[verdict, rule, then_verdict, then_rule, changed]],
        }
        for (verdict, rule, then_verdict, then_rule, changed), seen in found.items()
    ]
    return sorted(
        transitions,
        key=lambda of: (
            *(not of["changed"], -of["decisions"]),
            *(of["verdict"], of["rule"], of["then_verdict"], of["then_rule"]),
        ),
    )


def _ids(cases: pl.LazyFrame, positions: Iterable[Sequence[int]]) -> dict[int, str]:
    wanted = pl.Series([at for of in positions for at in of], dtype=pl.Int64).unique().sort()
    found = cases.filter(at_positions(wanted)).select("position", "decision_id").collect(engine="streaming")
    return dict(found.iter_rows())


def _by_verdict(groups: pl.DataFrame, name: str) -> dict[str, int]:
    counted = dict(groups.group_by(name).agg(pl.col("decisions").sum()).iter_rows())
    unknown = {NO_VERDICT: int(counted[None])} if None in counted else {}
    return {verdict: int(counted.get(verdict, 0)) for verdict in VERDICTS} | unknown


def _frame(transitions: list[_Transition]) -> pl.DataFrame:
    rows = [
        {**{name: value for name, value in of.items() if name in (*_TOLD_APART, "decisions")}, **of["outcomes"]}
        for of in transitions
    ]
    texts = dict.fromkeys(("verdict", "rule", "then_verdict", "then_rule"), pl.String)
    numbers = dict.fromkeys(("decisions", *Counts._fields, "unreported"), pl.Int64)
    return pl.DataFrame(rows, schema={**texts, "changed": pl.Boolean, **numbers})
