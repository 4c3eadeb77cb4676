"""Answers about rulebooks, found by trying all facts that matter: an independent judge of the exact analysis.

    axes = Axes([body])
    tried = Tried(body, axes.grid(most=2_000))
    tried.shadowed()

Sets of facts are the bits of an integer: bit i stands for the i-th facts of the grid.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gate.rulebooks.conditions import tests_of, walk
from gate.rulebooks.evaluation import Evaluator, Outcome, compile_rulebook
from tests.support.grids import ABSENT, Axes, TooLarge, facts_of, look_up

Said: TypeAlias = tuple[str, str, str, str, str | None]
"""Decision, verdict, action, reason code and rule of an outcome."""

_NO_SCHEMA: Final[Any] = {"required": [], "properties": {}}
_NEGATIVE: Final = ("neq", "not_in", "not_contains")


def said(outcome: Outcome) -> Said:
    """What two outcomes are compared by."""
    return outcome.decision, outcome.verdict, outcome.action, outcome.reason_code, outcome.matched_rule_id


def transitions(before: Any, after: Any, grid: Iterable[dict[str, Any]]) -> Iterator[tuple[Said, Said]]:
    """The outcomes of two rulebooks, for each facts of a grid."""
    deciders = compile_rulebook(before), compile_rulebook(after)
    for facts in grid:
        first, second = (said(decider.decide(facts)) for decider in deciders)
        yield first, second


class Tried:
    """A rulebook, tried on every facts of a grid.

    Attributes:
        order: The rule ids in the order in which rules are tried.
        valid: The facts that the input schema accepts.
        holds: For each rule, the valid facts for which its condition holds.
        reaches: For each rule, the valid facts for which it is tried.
        unmatched: The valid facts that no rule matches.
        passes: For each test by its path, the facts for which it holds.
    """

    def __init__(self, body: Any, grid: Sequence[dict[str, Any]]) -> None:
        """Tries it."""
        self.body: Final = body
        places = {rule["rule_id"]: place for place, rule in enumerate(body["rules"])}
        rules = sorted(body["rules"], key=lambda rule: (-rule.get("priority", 0), rule["rule_id"]))
        self.order: Final[list[str]] = [rule["rule_id"] for rule in rules]
        self.rules: Final[dict[str, Any]] = {rule["rule_id"]: rule for rule in rules}
        alone = {rule_id: only(body, rule) for rule_id, rule in self.rules.items()}
        whole = compile_rulebook(body)
        self.valid = 0
        self.holds: Final[dict[str, int]] = dict.fromkeys(self.order, 0)
        self.passes: Final[dict[str, int]] = defaultdict(int)
        for bit, facts in enumerate(grid):
            self.valid |= (whole.decide(facts).status == "ok") << bit
            for rule_id, evaluator in alone.items():
                (tried,) = evaluator.explain(facts).evaluation["rules"]
                self.holds[rule_id] |= tried["passed"] << bit
                for test in tried["tests"]:
                    self.passes[f"rules[{places[rule_id]}].{test['path']}"] |= test["passed"] << bit
        self.reaches: Final[dict[str, int]] = {}
        left = self.valid
        for rule_id in self.order:
            self.holds[rule_id] &= self.valid
            self.reaches[rule_id] = left
            left &= ~self.holds[rule_id]
        self.unmatched: Final = left

    def matches(self, rule_id: str) -> int:
        """The facts that a rule decides."""
        return self.reaches[rule_id] & self.holds[rule_id]

    def never_holding(self) -> set[str]:
        """The rules whose condition holds for no valid facts."""
        return {rule_id for rule_id in self.order if not self.holds[rule_id]}

    def shadowed(self) -> set[str]:
        """The rules whose condition can hold, but never before that of another rule."""
        return {rule_id for rule_id in self.order if self.holds[rule_id] and not self.matches(rule_id)}

    def is_least_cover(self, facts: int, rule_id: str, others: Sequence[str]) -> bool:
        """Whether rules that are tried before another hold for all of some facts together, and none can be left out."""
        earlier = self.order[: self.order.index(rule_id)]
        return (
            set(others) <= set(earlier)
            and not self._left_by(others, facts)
            and all(self._left_by([each for each in others if each != left_out], facts) for left_out in others)
        )

    def _left_by(self, rule_ids: Iterable[str], facts: int) -> int:
        for rule_id in rule_ids:
            facts &= ~self.holds[rule_id]
        return facts

    def overlaps(self) -> dict[tuple[str, str], int]:
        """Pairs of rules of one priority and different outcomes, and the facts that the first decides and both fit."""
        found = {}
        for first, second in itertools.combinations(self.order, 2):
            one, other = self.rules[first], self.rules[second]
            both = self.matches(first) & self.holds[second]
            if one.get("priority", 0) == other.get("priority", 0) and one["outcome"] != other["outcome"] and both:
                found[first, second] = both
        return found

    def constant_tests(self) -> dict[str, bool]:
        """The tests with one result for all valid facts for which their rule is tried, and that result."""
        found = {}
        for rule, node in tests_of(self.body):
            tried = self.reaches[rule["rule_id"]]
            passes = self.passes[node.path] & tried
            if tried and passes in (0, tried):
                found[node.path] = passes == tried
        return found


def only(body: Any, rule: Any) -> Evaluator:
    """An evaluator of one rule of a rulebook, without its input schema."""
    alone: Any = {**body, "input_schema": _NO_SCHEMA, "rules": [rule]}
    return compile_rulebook(alone)


# --- Facts that are missing or of a wrong type ------------------------------------------------------------------------


@dataclass(frozen=True)
class Silence:
    """A negative test of a rule that holds back, which is false for the absence of its field.

    Attributes:
        path: The test.
        field: Its field.
        danger: Whether facts are approved that the rule would have decided.
        facts: Such facts.
    """

    path: str
    field: str
    danger: bool
    facts: dict[str, Any]


def silences(body: Any, grid: Sequence[dict[str, Any]]) -> dict[str, Silence]:
    """By path, the negative tests for which a rule that does not approve is passed over where their field is absent.

    It would match if the test held there too.
    """
    tried, evaluator = Tried(body, grid), compile_rulebook(body)
    found: dict[str, Silence] = {}
    for place, rule in enumerate(body["rules"]):
        rule_id = rule["rule_id"]
        for node in walk(rule["condition"]) if rule["outcome"]["decision"] != "yes" else ():
            if node.inverted or node.condition.get("operator") not in _NEGATIVE:
                continue
            field = node.condition["field"]
            meant = only(body, {**rule, "condition": _held_when_absent(rule["condition"], node.condition)})
            for bit, facts in enumerate(grid):
                silent = tried.reaches[rule_id] & ~tried.holds[rule_id]
                if not silent >> bit & 1 or look_up(facts, field) is not ABSENT:
                    continue
                if meant.decide(facts).matched_rule_id is not None:
                    path = f"rules[{place}].condition{node.path}"
                    danger = evaluator.decide(facts).decision == "yes"
                    if path not in found or (danger and not found[path].danger):
                        found[path] = Silence(path, field, danger, facts)
    return found


def _held_when_absent(condition: Any, test: Any) -> Any:
    """A condition, with a test in it that also holds where its field is absent."""
    if condition is test:
        return {"any": [test, {"field": test["field"], "operator": "not_exists"}]}
    if "not" in condition:
        return {"not": _held_when_absent(condition["not"], test)}
    for combinator in ("all", "any"):
        if combinator in condition:
            return {combinator: [_held_when_absent(child, test) for child in condition[combinator]]}
    return condition


def tested_fields(body: Any) -> set[str]:
    """The fields that the tests of a rulebook read."""
    return {node.condition["field"] for _, node in tests_of(body)}


def approved_without(body: Any, axes: Axes, field: str, *, most: int) -> bool:
    """Whether facts are approved with a field taken out of them that are valid and not approved with it.

    Raises:
        TooLarge: There are more facts than `most`.
    """
    pairs = ((without(whole, field), whole) for whole in _wholes(axes, field) if _held(whole, field) is not ABSENT)
    return _approves(body, axes, field, pairs, most)


def approved_mistyped(body: Any, axes: Axes, field: str, *, most: int) -> bool:
    """Whether facts are approved with a value of a field that no test of it speaks of, and with another are not.

    Only for fields that are not declared. The other value is of a type that some test speaks of.

    Raises:
        TooLarge: There are more facts than `most`.
    """
    spoken_of = {
        kind for _, node in tests_of(body) if node.condition["field"] == field for kind in _kinds(node.condition)
    }
    if field in body["input_schema"]["properties"] or not spoken_of:
        return False
    odd: list[Any] = [value for value in (None, True, 1, "\u2603", [], {}) if kind_of(value) not in spoken_of]
    wholes = (whole for whole in _wholes(axes, field) if kind_of(_held(whole, field)) in spoken_of)
    pairs = ((replaced(whole, field, value), whole) for whole in wholes for value in odd)
    return _approves(body, axes, field, pairs, most)


def _approves(body: Any, axes: Axes, field: str, pairs: Iterable[tuple[Any, Any]], most: int) -> bool:
    top = field.split(".")[0]
    distinct: dict[Hashable, tuple[dict[str, Any], dict[str, Any]]] = {}
    for pair in pairs:
        partial, whole = (facts_of([top], [value]) for value in pair)
        distinct.setdefault((axes.signature(partial), axes.signature(whole)), (partial, whole))
    others = axes.grid(most=most, names=[name for name in axes.classes if name != top])
    if len(others) * len(distinct) > most:
        raise TooLarge
    decide = compile_rulebook(body).decide
    for rest, (partial, whole) in itertools.product(others, distinct.values()):
        if decide(rest | partial).decision == "yes":
            otherwise = decide(rest | whole)
            if otherwise.status == "ok" and otherwise.decision != "yes":
                return True
    return False


def _wholes(axes: Axes, field: str) -> Iterator[Any]:
    """Values of the top-level name of a field; also those that hold each value of the field."""
    for value in axes.raw[field.split(".")[0]]:
        yield value
        if "." in field and _may_hold(value, field):
            yield from (replaced(value, field, held) for held in axes.values_of(field) if held is not ABSENT)


def _held(value: Any, field: str) -> Any:
    """The value of a field where its top-level name has some value."""
    return look_up({} if value is ABSENT else {field.split(".")[0]: value}, field)


def _may_hold(value: Any, field: str) -> bool:
    return isinstance(_held(value, field.rpartition(".")[0]), dict)


def without(value: Any, field: str) -> Any:
    """A value of a top-level name, with a field taken out of it."""
    return replaced(value, field, ABSENT)


def replaced(value: Any, field: str, held: Any) -> Any:
    """A value of a top-level name, with another value of a field in it."""
    _, _, below = field.partition(".")
    if not below:
        return held
    name = below.split(".")[0]
    inner = replaced(value.get(name, ABSENT), below, held)
    rest = {other: kept for other, kept in value.items() if other != name}
    return rest if inner is ABSENT else {**rest, name: inner}


def kind_of(value: Any) -> str:
    """The JSON type of a value; `absent` for none."""
    if value is ABSENT:
        return "absent"
    names = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def _kinds(test: Any) -> set[str]:
    """The JSON types for which a test can have another result than for all other values."""
    operator = test["operator"]
    if operator in ("exists", "not_exists"):
        return set()
    if operator in ("gt", "gte", "lt", "lte"):
        return {"number"}
    if operator in ("contains", "not_contains"):
        return {"array", "string"} if isinstance(test["value"], str) else {"array"}
    return {kind_of(value) for value in (test["value"] if operator in ("in", "not_in") else [test["value"]])}
