"""Mutants of a rulebook: each is the rulebook with one small change, as an author might have made it by mistake.

    for mutant in mutants_of(body):
        mutant.description      # "rules[2] approve_small: amount lte 50 becomes lt 50"

Cases that notice no such change test little. A mutant shares its unchanged parts with its rulebook, so never modify it.
No two mutants of a rulebook are equal, and none equals the rulebook itself. Some decide alike nevertheless, which only
the exact analysis can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Final, Literal, TypeAlias, cast

from gate.encoding.canonical import canonical
from gate.encoding.shapes import json_type
from gate.encoding.strict_json import Json
from gate.rulebooks.conditions import Node, replaced, walk
from gate.rulebooks.documents import Condition, DeclaredOutcome, DeclaredRule, RulebookBody
from gate.rulebooks.explanation import condition_words, shown, test_words
from gate.rulebooks.rulebook import MAX_CONDITION_DEPTH, MAX_CONDITION_NODES
from gate.rulebooks.testing.steps import Direction, moved

MutantKind: TypeAlias = Literal[
    "threshold_moved",
    "list_item_dropped",
    "operator_swapped",
    "combinator_swapped",
    "test_dropped",
    "test_negated",
    "outcome_exchanged",
    "priorities_exchanged",
    "rule_dropped",
    "requirement_dropped",
    "declaration_dropped",
]

MAX_DROPPED_ITEMS: Final = 20
"""How many items of a list are dropped, one a mutant: the first ones."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rulebook with one small change.

    Attributes:
        kind: The kind of change.
        path: The place of the change in the rulebook: `rules[2].condition.all[0]`.
        rule_id: The rule that is changed, or the one that comes earlier of two; None where none is.
        description: The change as a sentence, without a full stop.
        body: The changed rulebook, valid.
        changed: The rule with the changed condition, where nothing but a condition changed; None elsewhere.
    """

    kind: MutantKind
    path: str
    rule_id: str | None
    description: str
    body: RulebookBody
    changed: DeclaredRule | None = None


def mutants_of(body: RulebookBody) -> Iterator[Mutant]:
    """The mutants of a valid rulebook, in the order of the rulebook; the bodies are made as they are asked for."""
    integers = {name for name, declared in body["input_schema"]["properties"].items() if declared["type"] == "integer"}
    nodes = sum(1 for rule in body["rules"] for _ in walk(rule["condition"]))
    in_order = sorted(enumerate(body["rules"]), key=lambda each: (-each[1].get("priority", 0), each[1]["rule_id"]))
    following = {place: after for (place, _), (_, after) in pairwise(in_order)}
    for place, rule in enumerate(body["rules"]):
        for edit in _edits(rule["condition"], integers, may_grow=nodes < MAX_CONDITION_NODES):
            changed: DeclaredRule = {**rule, "condition": edit.condition}
            path = f"rules[{place}].condition{edit.path}"
            mutant = _mutant(edit.kind, path, body, {place: changed}, f"{_named(place, rule)}: {edit.words}")
            yield replace(mutant, changed=changed)
        yield from _outcomes_exchanged(body, place, following.get(place))
        if len(body["rules"]) > 1:
            without: RulebookBody = {**body, "rules": [one for one in body["rules"] if one is not rule]}
            sentence = f"{_named(place, rule)} is dropped"
            yield Mutant("rule_dropped", f"rules[{place}]", rule["rule_id"], sentence, without)
    yield from _priorities_exchanged(body, in_order)
    yield from _default_exchanged(body, in_order[-1][1])
    yield from _schema_relaxed(body)


def _named(place: int, rule: DeclaredRule) -> str:
    return f"rules[{place}] {rule['rule_id']}"


def _mutant(
    kind: MutantKind, path: str, body: RulebookBody, changed: Mapping[int, DeclaredRule], sentence: str
) -> Mutant:
    """A rulebook with other rules at some places, of which the first one named is the one that the mutant is about."""
    rules = [changed.get(place, rule) for place, rule in enumerate(body["rules"])]
    about = next(iter(changed))
    return Mutant(kind, path, body["rules"][about]["rule_id"], sentence, {**body, "rules": rules})


# --- Conditions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Change:
    """A node and its replacement, with the place that is said to change: a child that is dropped is below the node."""

    kind: MutantKind
    new: Condition
    words: str
    below: str = ""


@dataclass(frozen=True, slots=True)
class _Edit:
    """A change in a condition: its kind, its place below the condition, its words, and the whole condition after it."""

    kind: MutantKind
    path: str
    words: str
    condition: Condition


def _edits(condition: Condition, integers: set[str], *, may_grow: bool) -> Iterator[_Edit]:
    for node in walk(condition):
        if "operator" in node.condition:
            changes = _test_changes(node, integers, may_grow=may_grow)
        elif "not" in node.condition:
            changes = _not_dropped(node)
        else:
            changes = _combinator_changes(node)
        for change in changes:
            whole = replaced(condition, node.path, change.new)
            yield _Edit(change.kind, f"{node.path}{change.below}", change.words, whole)


def _test_changes(node: Node, integers: set[str], *, may_grow: bool) -> Iterator[_Change]:
    test = node.condition
    operator = test["operator"]
    value = test.get("value")
    if json_type(value) in ("integer", "number") and operator in _NUMERIC:
        yield from _threshold_moved(test, cast("float", value), whole=test["field"] in integers)
    if operator in ("in", "not_in"):
        yield from _items_dropped(test, cast("list[Json]", value))
    # An order with what is no number never holds, whichever way it goes.
    if operator not in _ORDERED or json_type(value) in ("integer", "number"):
        for other in _SWAPPED[operator]:
            swapped: Condition = {**test, "operator": other}
            yield _Change("operator_swapped", swapped, _becomes(test, swapped))
    # A test of presence is negated by its other operator, and below a `not` it is the `not` that is dropped.
    may_deepen = may_grow and node.depth < MAX_CONDITION_DEPTH
    if operator not in ("exists", "not_exists") and may_deepen and not node.path.endswith(".not"):
        yield _Change("test_negated", {"not": test}, f"{test_words(test)} is negated")


_ORDERED: Final = ("gt", "gte", "lt", "lte")
_NUMERIC: Final = (*_ORDERED, "eq", "neq")

_SWAPPED: Final[Mapping[str, Sequence[str]]] = {
    "gt": ("gte", "lt"),
    "gte": ("gt", "lte"),
    "lt": ("lte", "gt"),
    "lte": ("lt", "gte"),
    "eq": ("neq",),
    "neq": ("eq",),
    "in": ("not_in",),
    "not_in": ("in",),
    "contains": ("not_contains",),
    "not_contains": ("contains",),
    "exists": ("not_exists",),
    "not_exists": ("exists",),
}
"""The operators that take the place of one: whether the bound is included, and the way around."""


def _threshold_moved(test: Condition, value: float, *, whole: bool) -> Iterator[_Change]:
    directions: tuple[Direction, ...] = (-1, 1)
    for direction in directions:
        number = moved(value, direction, whole=whole)
        if number is not None:
            changed: Condition = {**test, "value": number}
            yield _Change("threshold_moved", changed, _becomes(test, changed))


def _items_dropped(test: Condition, items: list[Json]) -> Iterator[_Change]:
    # An item that is listed twice is still listed without one of them.
    counted = Counter(canonical(item) for item in items)
    single = [at for at, item in enumerate(items) if counted[canonical(item)] == 1]
    for at in single[:MAX_DROPPED_ITEMS] if len(counted) > 1 else ():
        changed: Condition = {**test, "value": [*items[:at], *items[at + 1 :]]}
        yield _Change(
            "list_item_dropped", changed, f"{test['field']} {test['operator']} loses the item {shown(items[at])}"
        )


def _becomes(test: Condition, changed: Condition) -> str:
    # The field stays, and a list would be long to read twice.
    again = f" {shown(changed['value'])}" if "value" in changed and not isinstance(changed["value"], list) else ""
    return f"{test_words(test)} becomes {changed['operator']}{again}"


def _not_dropped(node: Node) -> Iterator[_Change]:
    inner = node.condition["not"]
    # Two `not` are the same without the one as without the other; a test of presence has another operator for it.
    if not node.path.endswith(".not") and inner.get("operator") not in ("exists", "not_exists"):
        yield _Change("test_negated", inner, f"the not around {condition_words(inner)} is dropped")


def _combinator_changes(node: Node) -> Iterator[_Change]:
    name: Literal["all", "any"] = "all" if "all" in node.condition else "any"
    children = node.condition[name]
    if len(children) < 2:
        return
    other: Literal["all", "any"] = "any" if name == "all" else "all"
    words = f"{condition_words(node.condition)} becomes {other}"
    yield _Change("combinator_swapped", _combined(other, children), words)
    written = [canonical(child) for child in children]
    counted = Counter(written)
    for index, child in enumerate(children):
        # Of two equal children one is enough, so that dropping the other changes nothing.
        if counted[written[index]] == 1:
            rest = [one for at, one in enumerate(children) if at != index]
            words = f"{condition_words(child)} is dropped"
            yield _Change("test_dropped", _combined(name, rest), words, below=f".{name}[{index}]")


def _combined(name: Literal["all", "any"], children: list[Condition]) -> Condition:
    return {"all": children} if name == "all" else {"any": children}


# --- Rules ------------------------------------------------------------------------------------------------------------


def _outcomes_exchanged(body: RulebookBody, place: int, following: DeclaredRule | None) -> Iterator[Mutant]:
    """A rule with the default outcome, and with that of the rule that is tried after it."""
    rule = body["rules"][place]
    others: list[tuple[str, DeclaredOutcome]] = [("the default outcome", body["default_outcome"])]
    if following is not None:
        others.append((f"that of {following['rule_id']}", following["outcome"]))
    used = [rule["outcome"]]
    for whose, outcome in others:
        if outcome not in used:
            used.append(outcome)
            changed: DeclaredRule = {**rule, "outcome": outcome}
            sentence = f"{_named(place, rule)}: the outcome {_summed(rule['outcome'])} becomes {whose}"
            yield _mutant(
                "outcome_exchanged", f"rules[{place}].outcome", body, {place: changed},
                f"{sentence}, {_summed(outcome)}",
            )  # fmt: skip


def _default_exchanged(body: RulebookBody, last: DeclaredRule) -> Iterator[Mutant]:
    outcome = body["default_outcome"]
    if outcome != last["outcome"]:
        sentence = (
            f"the default outcome {_summed(outcome)} becomes that of {last['rule_id']}, {_summed(last['outcome'])}"
        )
        changed: RulebookBody = {**body, "default_outcome": last["outcome"]}
        yield Mutant("outcome_exchanged", "default_outcome", None, sentence, changed)


def _summed(outcome: DeclaredOutcome) -> str:
    return f"{outcome['decision']} {outcome['verdict']} {outcome['reason_code']}"


def _priorities_exchanged(body: RulebookBody, in_order: Sequence[tuple[int, DeclaredRule]]) -> Iterator[Mutant]:
    """Two neighbours in the order of trial, each with the priority of the other."""
    for (place, rule), (next_place, following) in pairwise(in_order):
        high, low = rule.get("priority", 0), following.get("priority", 0)
        if high != low:
            lowered: DeclaredRule = {**rule, "priority": low}
            raised: DeclaredRule = {**following, "priority": high}
            sentence = (
                f"{_named(place, rule)} and {_named(next_place, following)} exchange their priorities {high:g} and "
                f"{low:g}"
            )
            changed = {place: lowered, next_place: raised}
            yield _mutant("priorities_exchanged", f"rules[{place}].priority", body, changed, sentence)


# --- The input schema -------------------------------------------------------------------------------------------------


def _schema_relaxed(body: RulebookBody) -> Iterator[Mutant]:
    return chain(_requirements_dropped(body), _declarations_dropped(body))


def _requirements_dropped(body: RulebookBody) -> Iterator[Mutant]:
    schema = body["input_schema"]
    for index, name in enumerate(schema["required"]):
        changed: RulebookBody = {
            **body,
            "input_schema": {**schema, "required": [one for one in schema["required"] if one != name]},
        }
        sentence = f"input_schema: {name} is no longer required"
        yield Mutant("requirement_dropped", f"input_schema.required[{index}]", None, sentence, changed)


def _declarations_dropped(body: RulebookBody) -> Iterator[Mutant]:
    schema = body["input_schema"]
    for name, declared in schema["properties"].items():
        rest = {other: its for other, its in schema["properties"].items() if other != name}
        changed: RulebookBody = {**body, "input_schema": {**schema, "properties": rest}}
        sentence = f"input_schema: {name} is no longer checked to be of type {declared['type']}"
        yield Mutant("declaration_dropped", f"input_schema.properties.{name}", None, sentence, changed)
