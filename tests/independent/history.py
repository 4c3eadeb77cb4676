"""A second way to the figures of a dry run: one decision at a time, in plain Python, from the words of
schemas/rulebook-migration-evidence-v1.schema.json.

It decides facts with the gate's scalar evaluator, and asks the exact analysis of single values and of single facts. It
shares no code with the product's counting, knows no columns and no stretches, and keeps every decision.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from typing import Any, Final

import rfc8785

from gate.rulebooks.analysis.difference import Difference
from gate.rulebooks.analysis.formulas.classes import FieldClasses
from gate.rulebooks.analysis.regions import Limit
from gate.rulebooks.analysis.wording import condition_words
from gate.rulebooks.conditions import tests_of
from gate.rulebooks.evaluation import ABSENT, Outcome, value_at
from gate.rulebooks.explanation import shown
from gate.rulebooks.rulebook import Rulebook
from tests.support.reference import stats

TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")
STATUSES: Final = (*TERMINAL, "pending", "review", "unreported")
REFUSED: Final = ("review", "NEEDS_INPUT", "collect_required_input", "INPUT_SCHEMA_FAILED")
WITHHELD: Final = object()

Json = dict[str, Any]
Told = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Anew:
    """A decision with what both rulebooks say of it.

    Attributes:
        position: Its place in the chain.
        decision_id: Its id.
        version: The version that decided.
        week: The Monday of its week.
        was: The outcome as it was, and `rule` as the evidence has it.
        base: That of the base, or was without one; None where it cannot be decided anew.
        then: That of the candidate.
        reason: Why it cannot be decided anew; None where it can.
        status: The status of the latest outcome, or unreported.
        value: The value of the metric; None without one.
        facts: Its facts; None where they were erased.
        seen: A fact as the lake has it: its value, `ABSENT`, or `WITHHELD`.
    """

    position: int
    decision_id: str
    version: str
    week: str
    was: Told
    base: Told | None
    then: Told | None
    reason: str | None
    status: str
    value: float | None
    facts: Json | None
    seen: Callable[[str], object]

    @property
    def changed(self) -> bool:
        return self.base is not None and alike(self.base) != alike(self.then)

    def goes(self, before: Sequence[str], after: Sequence[str]) -> bool:
        """Whether it goes from one of some verdicts to one of others."""
        return self.base is not None and self.then is not None and self.base[0] in before and self.then[0] in after

    @property
    def to_yes(self) -> bool:
        return self.goes(("no", "review"), ("yes",))

    @property
    def from_yes(self) -> bool:
        return self.goes(("yes",), ("no", "review"))


def alike(told: Told | None) -> Told | None:
    """An outcome as it is compared: a default outcome may read as that of facts which the schema refuses."""
    if told is not None and told[:4] == REFUSED and told[4] == "rule:default":
        return (*REFUSED, "schema:failed")
    return told


def told(outcome: Outcome) -> Told:
    rule = "rule:default" if outcome.matched_rule_id is None else f"rule:{outcome.matched_rule_id}"
    rule = "schema:failed" if outcome.status == "needs_input" else rule
    found = alike((outcome.decision, outcome.verdict, outcome.action, outcome.reason_code, rule))
    assert found is not None
    return found


def decide_anew(
    past: Iterable[Any],
    candidate: Rulebook,
    base: Rulebook | None,
    *,
    personal: Sequence[str] = (),
    metric: str | None = None,
    adapter: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> list[Anew]:
    """Every decision, decided anew where that can be done.

    Args:
        past: The decisions: position, record, rulebook, facts, status and metrics.
        candidate: The candidate.
        base: The version in force.
        personal: The paths of personal facts.
        metric: The metric.
        adapter: The manifest hash of the candidate's adapter.
        since: A timestamp from which on decisions are looked at.
        until: A timestamp before which they are.
    """
    found = []
    for one in past:
        made = one.record["created_at"]
        if (since is None or made >= since) and (until is None or made < until):
            found.append(_anew(one, candidate, base, personal, metric, adapter))
    return found


def _anew(
    one: Any,
    candidate: Rulebook,
    base: Rulebook | None,
    personal: Sequence[str],
    metric: str | None,
    adapter: str | None,
) -> Anew:
    record = one.record
    day = date.fromisoformat(record["created_at"][:10])
    names = ("verdict", "application_verdict", "action", "reason_code")
    was: Any = (*(record[name] for name in names), record["evidence"][1])
    own = read_by(one.rulebook)

    def seen(field: str) -> object:
        value = value_at(one.facts, field)
        hidden = any(_meet(field, path) for path in personal)
        if hidden and (field not in own or value is not ABSENT):
            return WITHHELD
        return value

    rulebooks = [candidate, *([] if base is None else [base])]
    reason = None
    if one.facts is None:
        reason = "facts_erased"
    elif (record.get("trusted_adapter") or {}).get("manifest_hash") != adapter:
        reason = "adapter_changed"
    elif any(seen(field) is WITHHELD for of in rulebooks for field in read_by(of.body)):
        reason = "facts_withheld"
    value = None
    if metric is not None and metric.startswith("inputs."):
        fact = None if one.facts is None else seen(metric.removeprefix("inputs."))
        value = float(fact) if type(fact) in (int, float) else None  # type: ignore[arg-type]
    elif metric is not None:
        value = one.metrics.get(metric)
    then = before = None
    if reason is None:
        then = told(candidate.evaluator.decide(one.facts))
        before = was if base is None else told(base.evaluator.decide(one.facts))
    return Anew(
        position=one.position,
        decision_id=record["decision_id"],
        version=record["policy_version"],
        week=(day - timedelta(days=day.weekday())).isoformat(),
        was=was,
        base=before,
        then=then,
        reason=reason,
        status=one.status or "unreported",
        value=value,
        facts=one.facts,
        seen=seen,
    )


def read_by(body: Any) -> set[str]:
    """The fields that a rulebook declares, requires or tests."""
    schema = body["input_schema"]
    return {*schema["required"], *schema["properties"], *(node.condition["field"] for _, node in tests_of(body))}


def _meet(field: str, path: str) -> bool:
    return field == path or field.startswith(f"{path}.") or path.startswith(f"{field}.")


# --- Figures ----------------------------------------------------------------------------------------------------------


def ids_of(decisions: Sequence[Anew]) -> list[str]:
    """The latest ten, in the order of the chain."""
    return [one.decision_id for one in sorted(decisions, key=lambda one: one.position)[-10:]]


def share(part: int, whole: int) -> float | None:
    return None if whole == 0 else round(part / whole, 6)


def part(decisions: Sequence[Anew], of: Sequence[Anew]) -> Json:
    return {
        "decisions": len(decisions),
        "share": share(len(decisions), len(of)),
        "decision_ids": ids_of(decisions),
    }


def rate(decisions: Sequence[Anew], of: Sequence[Anew]) -> Json:
    low, high = wilson(len(decisions), len(of))
    return {**part(decisions, of), "of": len(of), "low": low, "high": high}


def wilson(count: int, of: int) -> tuple[float | None, float | None]:
    if of == 0:
        return None, None
    z, observed = 1.959963984540054, count / of
    middle = observed + z**2 / (2 * of)
    reach = z * math.sqrt(observed * (1 - observed) / of + z**2 / (4 * of**2))
    whole = 1 + z**2 / of
    return round(max((middle - reach) / whole, 0.0), 6), round(min((middle + reach) / whole, 1.0), 6)


def by(decisions: Iterable[Anew], key: Callable[[Anew], Any]) -> dict[Any, list[Anew]]:
    found: dict[Any, list[Anew]] = {}
    for one in decisions:
        found.setdefault(key(one), []).append(one)
    return found


def changes(decisions: Sequence[Anew]) -> Json:
    anew = [one for one in decisions if one.reason is None]
    changed = [one for one in anew if one.changed]
    return {
        "decisions": len(decisions),
        "redecided": len(anew),
        "changed": len(changed),
        "newly_approved": sum(one.to_yes for one in anew),
        "newly_blocked": sum(one.from_yes for one in anew),
        "decision_ids": ids_of(changed),
    }


def figures(
    decisions: Sequence[Anew],
    candidate: Rulebook,
    base: Rulebook | None,
    difference: Difference | None,
    *,
    fields: Sequence[str],
    metric: str | None,
) -> Json:
    """The figures of a dry run, without its sentences, and without what was asked."""
    anew = [one for one in decisions if one.base is not None]
    changed = [one for one in anew if one.changed]
    verdicts = [one for one in anew if one.base[0] != one.then[0]]  # type: ignore[index]
    approved, blocked = [one for one in anew if one.to_yes], [one for one in anew if one.from_yes]
    other = [one for one in verdicts if not one.to_yes and not one.from_yes]
    failing = [one for one in anew if one.then[4] == "schema:failed" != alike(one.base)[4]]  # type: ignore[index]
    reasons = by((one for one in decisions if one.reason is not None), lambda one: one.reason)
    bodies = [candidate.body, *([] if base is None else [base.body])]
    return {
        "decisions": len(decisions),
        "redecided": len(anew),
        "not_redecided": [
            {"reason": reason, "decisions": len(of), "decision_ids": ids_of(of)}
            for reason in ("facts_erased", "adapter_changed", "facts_withheld")
            for of in [reasons.get(reason, [])]
            if of
        ],
        "changed": rate(changed, anew),
        "verdict_changed": rate(verdicts, anew),
        "newly_approved": {**rate(approved, anew), **_split(approved, "from", lambda one: one.base)},
        "newly_blocked": {**rate(blocked, anew), **_split(blocked, "to", lambda one: one.then)},
        "otherwise_refused": {**rate(other, anew), **_split(other, "to", lambda one: one.then)},
        "needs_input": part(failing, anew),
        "earlier": _earlier(anew, base),
        "matrix": {name: _matrix(anew, at, "base") for at, name in ((0, "verdict"), (2, "action"), (3, "reason_code"))},
        "was_matrix": _matrix(anew, 0, "was"),
        "rules": _by_rule(anew, lambda one: alike(one.base)[4]),  # type: ignore[index]
        "then_rules": _by_rule(anew, lambda one: one.then[4]),  # type: ignore[index]
        "transitions": _transitions(changed, anew),
        "weeks": [{"week": week, **changes(of)} for week, of in sorted(by(decisions, lambda one: one.week).items())],
        "versions": _most_first(
            {"policy_version": version, **changes(of)} for version, of in by(decisions, lambda one: one.version).items()
        ),
        "facts": [{"field": field, "classes": _classes(anew, field, bodies)} for field in fields],
        "outcomes": _outcomes(anew),
        "money": [] if metric is None else _money(anew),
        "missing_facts": _missing(decisions, candidate),
        "regions": [
            {"region": index, **part([one for one in changed if region.holds(one.facts)], anew)}  # type: ignore[arg-type]
            for index, region in enumerate([] if difference is None else difference.regions)
        ],
    }


def _split(decisions: Sequence[Anew], name: str, side: Callable[[Anew], Any]) -> Json:
    return {f"{name}_{verdict}": sum(side(one)[0] == verdict for one in decisions) for verdict in ("no", "review")}


def _most_first(rows: Iterable[Json]) -> list[Json]:
    found = list(rows)
    name = next(iter(found[0])) if found else ""
    return sorted(found, key=lambda row: (-row["decisions"], str(row[name])))


def _earlier(anew: Sequence[Anew], base: Rulebook | None) -> list[Json]:
    if base is None:
        return []
    versions = by(anew, lambda one: one.version)
    found = []
    for version, of in versions.items():
        otherwise = [one for one in of if alike(one.was) != one.base]
        if otherwise:
            figure = {"decisions": len(otherwise), "decision_ids": ids_of(otherwise)}
            found.append({"policy_version": version, **figure, "of": len(of)})
    return _most_first(found)


def _matrix(anew: Sequence[Anew], at: int, side: str) -> list[Json]:
    found = [
        {"from": before, "to": after, **part(of, anew)}
        for (before, after), of in by(anew, lambda one: (getattr(one, side)[at], one.then[at])).items()  # type: ignore[index]
    ]
    return sorted(found, key=lambda of: (of["from"] == of["to"], -of["decisions"], of["from"], of["to"]))


def _by_rule(anew: Sequence[Anew], rule: Callable[[Anew], str]) -> list[Json]:
    return _most_first({"rule": name, **changes(of)} for name, of in by(anew, rule).items())


def _transitions(changed: Sequence[Anew], anew: Sequence[Anew]) -> list[Json]:
    def key(one: Anew) -> tuple[str, ...]:
        assert one.base is not None
        assert one.then is not None
        before = alike(one.base)
        assert before is not None
        return before[4], one.then[4], before[0], one.then[0], before[2], one.then[2]

    names = ("rule", "then_rule", "verdict", "then_verdict", "action", "then_action")
    found = [
        {
            **dict(zip(names, values, strict=True)),
            **part(of, anew),
            "outcomes": {status: sum(one.status == status for one in of) for status in STATUSES},
        }
        for values, of in by(changed, key).items()
    ]
    return sorted(found, key=lambda of: (-of["decisions"], *(of[name] for name in names)))


def _outcomes(anew: Sequence[Anew]) -> Json:
    both = [one for one in anew if one.was[0] == "yes" and one.base is not None and one.base[0] == "yes"]
    good = [one for one in both if one.status == "succeeded"]
    bad = [one for one in both if one.status in TERMINAL[1:]]
    approved = [one for one in anew if one.to_yes]
    judged = [one for one in approved if one.status in TERMINAL]
    return {
        "good_newly_blocked": rate([one for one in good if one.from_yes], good),
        "bad_newly_blocked": rate([one for one in bad if one.from_yes], bad),
        "bad_newly_approved": rate([one for one in judged if one.status != "succeeded"], judged),
        "newly_approved_unknown": rate([one for one in approved if one.status not in TERMINAL], approved),
    }


def _money(anew: Sequence[Anew]) -> list[Json]:
    valued = [one for one in anew if one.value is not None]
    pairs = by(valued, lambda one: (one.base[0], one.then[0]))  # type: ignore[index]
    return [
        {"verdict": before, "then_verdict": after, **mean_of([one.value for one in of]), "decision_ids": ids_of(of)}  # type: ignore[misc]
        for (before, after), of in sorted(pairs.items())
    ]


def mean_of(values: Sequence[float]) -> Json:
    """The sum and the mean of some values; the intervals by the library's own quantiles, to nine digits."""
    exact = [Fraction(value) for value in values]
    count, total = len(exact), sum(exact, Fraction(0))
    mean = total / count
    told_: Json = {"values": count, "sum": rounded(total), "mean": rounded(mean)}
    if count < 2:
        return told_ | dict.fromkeys(("sum_low", "sum_high", "low", "high"))
    variance = sum(((value - mean) ** 2 for value in exact), Fraction(0)) / (count - 1)
    quantile = Fraction(round(float(stats().t.ppf(0.975, count - 1)), 9))
    half = quantile * root(variance / count)
    low, high = mean - half, mean + half
    ends = {"low": low, "high": high, "sum_low": low * count, "sum_high": high * count}
    return told_ | {name: rounded(end) for name, end in ends.items()}


def root(value: Fraction) -> Fraction:
    """A square root, to many more digits than a double has."""
    with localcontext(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN):
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def rounded(value: Fraction) -> float | None:
    try:
        return float(round(value, 6)) + 0.0
    except OverflowError:
        return None


def _missing(decisions: Sequence[Anew], candidate: Rulebook) -> list[Json]:
    known = [one for one in decisions if one.facts is not None]
    required = candidate.body["input_schema"]["required"]
    found = []
    for field in read_by(candidate.body):
        lacking = [one for one in known if one.seen(field) is ABSENT]
        if lacking:
            found.append({"field": field, "required": field in required, **part(lacking, known)})
    return sorted(found, key=lambda of: (not of["required"], -of["decisions"], of["field"]))


# --- Values -----------------------------------------------------------------------------------------------------------

_CALLED: Final[Mapping[type, tuple[str, str]]] = {
    type(None): ("null", "null"),
    bool: ("boolean", "a boolean"),
    int: ("number", "a number"),
    float: ("number", "a number"),
    str: ("string", "a string"),
    list: ("array", "an array"),
    dict: ("object", "an object"),
}


def _classes(anew: Sequence[Anew], field: str, bodies: Sequence[Any]) -> list[Json]:
    """The decisions by the value of a field: what is single, numbers, the most frequent other values, the rest."""
    types = [
        body["input_schema"]["properties"][field]["type"]
        for body in bodies
        if field in body["input_schema"]["properties"]
    ]
    tests = [node.condition for body in bodies for _, node in tests_of(body) if node.condition["field"] == field]
    of = FieldClasses(tests, types, has_members=False)
    kinds = {"number" if type_ == "integer" else type_ for type_ in types} or {kind for kind, _ in _CALLED.values()}
    every = frozenset(range(len(of.classes)))
    single: dict[tuple[float, ...], dict[str, list[Anew]]] = {}
    valued: dict[tuple[str, str], list[Anew]] = {}
    rest: list[Anew] = []

    def add(order: tuple[float, ...], words: str, one: Anew) -> None:
        single.setdefault(order, {}).setdefault(words, []).append(one)

    for one in anew:
        value: Any = one.seen(field)
        if value is ABSENT:
            add((0,), f"{field} is absent", one)
            continue
        if value is WITHHELD:
            add((9,), f"{field} is withheld", one)
            continue
        kind, called = _CALLED[type(value)]
        if kind in ("null", "boolean"):
            words = f"{field} is {shown(value)}{'' if kind in kinds else ' (wrong type)'}"
            add((1,) if kind == "null" else (2, value), words, one)
        elif kind not in kinds:
            add((8, ("number", "string", "array", "object").index(kind)), f"{field} is {called} (wrong type)", one)
        elif kind == "number":
            index = of.place(value).index
            words = condition_words([Limit(field, of, frozenset({index}), every, {}, {})])
            add((3, min(span.low for span in of.classes[index].spans), index), words, one)
        elif len(value if kind == "string" else rfc8785.dumps(value).decode()) > 200:
            rest.append(one)
        elif kind == "string":
            valued.setdefault(("string", value), []).append(one)
        else:
            valued.setdefault(("json", rfc8785.dumps(value).decode()), []).append(one)
    frequent = sorted(valued.items(), key=lambda item: (-len(item[1]), "js".index(item[0][0][0]), item[0][1]))
    named = [(f"{field} is {_shown(name)}", found) for name, found in frequent[:20]]
    rest += [one for _, found in frequent[20:] for one in found]
    first = [item for order, words in sorted(single.items()) if order[0] < 8 for item in words.items()]
    last = [item for order, words in sorted(single.items()) if order[0] >= 8 for item in words.items()]
    others = [(f"{field} is {'another value' if named else 'a long value'}", rest)] if rest else []
    return [{"class": words, **changes(found)} for words, found in [*first, *named, *others, *last]]


def _shown(name: tuple[str, str]) -> str:
    return shown(name[1] if name[0] == "string" else json.loads(name[1]))
