"""Compiled evaluation of Rulebook v1: closures built once, no interpretation while facts wait.

    evaluator = compile_rulebook(body)
    evaluator.decide({"discount_percent": 10, "margin_percent": 22})     # the outcome alone
    evaluator.explain({"discount_percent": 10, "margin_percent": 22})    # with every test and what it saw

Facts are JSON values, as `strict_json` reads them. JSON's types hold, not Python's: true is not 1, 1 equals 1.0.
A comparison on an absent field is false, negative operators included; only exists and not_exists speak of absence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeGuard, cast

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import Json
from gate.rulebooks.documents import (
    AbsentTest,
    Condition,
    DeclaredOutcome,
    DeclaredRule,
    Evaluation,
    InvalidField,
    NamedTest,
    ObservedTest,
    RulebookBody,
    TriedRule,
    TriedTest,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rulebook says about facts.

    Attributes:
        status: `ok`, or `needs_input` where required facts are missing or facts have the wrong type.
        decision: yes, no or review.
        verdict: The application verdict, for example APPROVE.
        action: The action label.
        reason_code: The reason code.
        matched_rule_id: The rule that matched; None for the default outcome and for needs_input.
    """

    status: str
    decision: str
    verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None


class Explained(NamedTuple):
    """An outcome and how it came about.

    Attributes:
        outcome: The outcome.
        evaluation: Every rule up to and including the match, in order of evaluation, each with every test of it,
            without short cut.
    """

    outcome: Outcome
    evaluation: Evaluation


NEEDS_INPUT: Final = Outcome(
    "needs_input", "review", "NEEDS_INPUT", "collect_required_input", "INPUT_SCHEMA_FAILED", None
)

# An observed value beyond this many canonical bytes is shown by its digest.
OBSERVED_LIMIT: Final = 1024
# JSON writes a character in at most 6 bytes (\\uXXXX), and a string adds two quotes.
_SURELY_SMALL_STRING: Final = (OBSERVED_LIMIT - 2) // 6


class _Absent:
    """Stands for a field that is not there, which is not the same as null."""

    __slots__ = ()


ABSENT: Final = _Absent()
"""The value of a field that facts do not have."""

_Getter = Callable[[Mapping[str, object]], object]
_Predicate = Callable[[object], bool]
_Operator = Callable[[Json], _Predicate]
_Holds = Callable[[Mapping[str, object]], bool]


class _Trace:
    """The tests of one rule as they are explained, and what each field showed, which is worked out once."""

    __slots__ = ("shown", "tests")

    def __init__(self, shown: dict[str, object]) -> None:
        self.shown = shown
        self.tests: list[TriedTest] = []


_Explain = Callable[[Mapping[str, object], _Trace], bool]


@dataclass(frozen=True, slots=True)
class _Rule:
    rule_id: str
    priority: int
    holds: _Holds
    explain: _Explain
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class _Declared:
    name: str
    get: _Getter
    type: str
    accepts: _Predicate


class Evaluator:
    """A compiled rulebook."""

    __slots__ = ("_declared", "_default", "_required", "_rules")

    def __init__(
        self,
        required: tuple[tuple[str, _Getter], ...],
        declared: tuple[_Declared, ...],
        rules: tuple[_Rule, ...],
        default: Outcome,
    ) -> None:
        """Takes compiled parts; `compile_rulebook` makes them."""
        self._required = required
        self._declared = declared
        self._rules = rules
        self._default = default

    def decide(self, facts: Mapping[str, object]) -> Outcome:
        """The outcome for facts, without explanation. Never raises on JSON facts."""
        for _, get in self._required:
            if get(facts) is ABSENT:
                return NEEDS_INPUT
        for field in self._declared:
            value = field.get(facts)
            if value is not ABSENT and not field.accepts(value):
                return NEEDS_INPUT
        for rule in self._rules:
            if rule.holds(facts):
                return rule.outcome
        return self._default

    def explain(self, facts: Mapping[str, object]) -> Explained:
        """The outcome for facts, the same as `decide` gives, with the evaluation that led to it."""
        missing = [name for name, get in self._required if get(facts) is ABSENT]
        invalid: list[InvalidField] = [
            {"field": field.name, "expected": field.type, "observed_type": _type_name(value)}
            for field in self._declared
            if (value := field.get(facts)) is not ABSENT and not field.accepts(value)
        ]
        outcome = self._default
        matched = False
        rules: list[TriedRule] = []
        if missing or invalid:
            outcome = NEEDS_INPUT
        else:
            shown: dict[str, object] = {}
            for rule in self._rules:
                trace = _Trace(shown)
                matched = rule.explain(facts, trace)
                rules.append(
                    {"rule_id": rule.rule_id, "priority": rule.priority, "passed": matched, "tests": trace.tests}
                )
                if matched:
                    outcome = rule.outcome
                    break
        return Explained(
            outcome,
            {"matched": matched, "missing_fields": missing, "invalid_fields": invalid, "rules": rules},
        )


def compile_rulebook(body: RulebookBody) -> Evaluator:
    """Compiles a valid rulebook body; `gate.rulebooks.rulebook.load` validates first."""
    schema = body["input_schema"]
    rules = sorted(body["rules"], key=lambda rule: (-rule.get("priority", 0), rule["rule_id"]))
    return Evaluator(
        required=tuple((name, _getter(name)) for name in sorted(schema["required"])),
        declared=tuple(
            _Declared(name, _getter(name), declared["type"], _TYPES[declared["type"]])
            for name, declared in sorted(schema["properties"].items())
        ),
        rules=tuple(map(_compile_rule, rules)),
        default=_outcome(body["default_outcome"], None),
    )


def _compile_rule(rule: DeclaredRule) -> _Rule:
    holds, explain = _compile_condition(rule["condition"], "condition")
    outcome = _outcome(rule["outcome"], rule["rule_id"])
    return _Rule(rule["rule_id"], int(rule.get("priority", 0)), holds, explain, outcome)


def _outcome(body: DeclaredOutcome, rule_id: str | None) -> Outcome:
    return Outcome("ok", body["decision"], body["verdict"], body["action"], body["reason_code"], rule_id)


def _compile_condition(condition: Condition, path: str) -> tuple[_Holds, _Explain]:
    if "not" in condition:
        holds, explain = _compile_condition(condition["not"], f"{path}.not")
        return lambda facts: not holds(facts), lambda facts, trace: not explain(facts, trace)
    if "all" in condition:
        return _combined(all, _compile_children(condition["all"], f"{path}.all"))
    if "any" in condition:
        return _combined(any, _compile_children(condition["any"], f"{path}.any"))
    return _compile_test(condition, path)


def _compile_children(children: Sequence[Condition], path: str) -> list[tuple[_Holds, _Explain]]:
    return [_compile_condition(child, f"{path}[{index}]") for index, child in enumerate(children)]


def _combined(
    together: Callable[[list[bool]], bool], children: list[tuple[_Holds, _Explain]]
) -> tuple[_Holds, _Explain]:
    all_holds = tuple(holds for holds, _ in children)
    all_explain = tuple(explain for _, explain in children)
    # A loop with an early return is three times as fast as all() over a generator.
    stop_at = together is any

    def holds(facts: Mapping[str, object]) -> bool:
        for child in all_holds:
            if child(facts) is stop_at:
                return stop_at
        return not stop_at

    def explain(facts: Mapping[str, object], trace: _Trace) -> bool:
        # A list, so that every child is tried: an explanation leaves no test out.
        return together([child(facts, trace) for child in all_explain])

    return holds, explain


def _compile_test(test: Condition, path: str) -> tuple[_Holds, _Explain]:
    field, operator = test["field"], test["operator"]
    get, predicate = _getter(field), predicate_of(test)
    told: NamedTest = {"path": path, "field": field, "operator": operator}
    if "value" in test:
        told["expected"] = test["value"]

    def holds(facts: Mapping[str, object]) -> bool:
        return predicate(get(facts))

    def explain(facts: Mapping[str, object], trace: _Trace) -> bool:
        value = get(facts)
        passed = predicate(value)
        if value is ABSENT:
            absent: AbsentTest = {**told, "passed": passed}
            trace.tests.append(absent)
        else:
            if field not in trace.shown:
                trace.shown[field] = _shown(value)
            observed: ObservedTest = {**told, "observed": trace.shown[field], "passed": passed}
            trace.tests.append(observed)
        return passed

    return holds, explain


def predicate_of(test: Condition) -> Callable[[object], bool]:
    """A test of a valid rulebook as a predicate over the value of its field, which may be `ABSENT`."""
    operator = test["operator"]
    return _PRESENCE[operator] if operator in _PRESENCE else _OPERATORS[operator](test["value"])


def is_of_type(value: object, type_: str) -> bool:
    """Whether a value that is there has a declared type: `number`, `integer`, `string` and so on."""
    return _TYPES[type_](value)


def value_at(facts: Mapping[str, object], field: str) -> object:
    """The value of a field, a dotted path; `ABSENT` where facts do not have it."""
    return _getter(field)(facts)


def _getter(field: str) -> _Getter:
    # A dot always leads into an object; a fact whose own name has one is out of reach.
    first, *rest = field.split(".")
    if not rest:
        return lambda facts: facts.get(first, ABSENT)

    def get(facts: Mapping[str, object]) -> object:
        value = facts.get(first, ABSENT)
        for name in rest:
            if type(value) is not dict:
                return ABSENT
            value = value.get(name, ABSENT)
        return value

    return get


def _shown(value: object) -> object:
    kind = type(value)
    if kind is int or kind is float or kind is bool or value is None:
        return value
    if type(value) is str and len(value) <= _SURELY_SMALL_STRING:
        return value
    written = canonical(value)
    if len(written) <= OBSERVED_LIMIT:
        return value
    return {"sha256": hashlib.sha256(written).hexdigest(), "bytes": len(written)}


# By `type` and not `isinstance`, here and below: to Python true is an integer, to JSON it is none.
def _is_number(value: object) -> TypeGuard[float]:
    return type(value) is int or type(value) is float


def _is_integer(value: object) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


_TYPES: Final[Mapping[str, _Predicate]] = {
    "number": _is_number,
    "integer": _is_integer,
    "string": lambda value: type(value) is str,
    "boolean": lambda value: type(value) is bool,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
    "null": lambda value: value is None,
}


def _type_name(value: object) -> str:
    if _is_integer(value):
        return "integer"
    return next(name for name, accepts in _TYPES.items() if accepts(value))


def _equals(expected: Json) -> _Predicate:
    kind = type(expected)
    if kind is int or kind is float:
        return lambda value: (type(value) is int or type(value) is float) and value == expected
    if kind is list or kind is dict:
        return lambda value: _same(value, expected)
    return lambda value: type(value) is kind and value == expected


def _same(left: object, right: object) -> bool:
    """Whether two JSON values have equal canonical bytes, at no more cost than the smaller of them."""
    if type(left) is dict:
        return (
            type(right) is dict
            and left.keys() == right.keys()
            and all(_same(left[name], item) for name, item in right.items())
        )
    if type(left) is list:
        return type(right) is list and len(left) == len(right) and all(map(_same, left, right))
    return _scalar_kind(left) is _scalar_kind(right) and bool(left == right)


def _is_in(expected: Json) -> _Predicate:
    listed = cast("list[Json]", expected)
    # Scalars by type and value: 1 and 1.0 meet as equal floats hash alike, true and 1 do not.
    scalars = {(_scalar_kind(item), item) for item in listed if type(item) not in (list, dict)}
    containers = [item for item in listed if type(item) in (list, dict)]

    def predicate(value: object) -> bool:
        if type(value) is list or type(value) is dict:
            return any(_same(value, item) for item in containers)
        return (_scalar_kind(value), value) in scalars

    return predicate


def _scalar_kind(value: object) -> type:
    return float if type(value) is int else type(value)


def _contains(expected: Json) -> _Predicate:
    equals = _equals(expected)

    def predicate(value: object) -> bool:
        if type(value) is list:
            return any(map(equals, value))
        return type(value) is str and type(expected) is str and expected in value

    return predicate


def _negated(make: _Operator) -> _Operator:
    def make_negated(expected: Json) -> _Predicate:
        predicate = make(expected)
        # An absent field has no value that could differ: `neq` of it is as false as `eq`.
        return lambda value: value is not ABSENT and not predicate(value)

    return make_negated


def _greater(expected: float) -> _Predicate:
    return lambda value: (type(value) is int or type(value) is float) and value > expected


def _greater_or_equal(expected: float) -> _Predicate:
    return lambda value: (type(value) is int or type(value) is float) and value >= expected


def _less(expected: float) -> _Predicate:
    return lambda value: (type(value) is int or type(value) is float) and value < expected


def _less_or_equal(expected: float) -> _Predicate:
    return lambda value: (type(value) is int or type(value) is float) and value <= expected


# JSON orders nothing but numbers, so that text, true and null are neither greater nor less than anything.
def _between_numbers(make: Callable[[float], _Predicate]) -> _Operator:
    return lambda expected: make(expected) if _is_number(expected) else _never


def _never(_: object) -> bool:
    return False


_PRESENCE: Final[Mapping[str, _Predicate]] = {
    "exists": lambda value: value is not ABSENT,
    "not_exists": lambda value: value is ABSENT,
}

_OPERATORS: Final[Mapping[str, _Operator]] = {
    "eq": _equals,
    "neq": _negated(_equals),
    "gt": _between_numbers(_greater),
    "gte": _between_numbers(_greater_or_equal),
    "lt": _between_numbers(_less),
    "lte": _between_numbers(_less_or_equal),
    "in": _is_in,
    "not_in": _negated(_is_in),
    "contains": _contains,
    "not_contains": _negated(_contains),
}
