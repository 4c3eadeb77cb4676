"""Hypothesis strategies for small rulebooks and pairs of them, for laws that a brute force judges.

The rulebooks are small, so that every class of facts can be tried, and dense: few fields and constants, which meet
again and again, beside their neighbours and look-alikes. `tests.reference.strategies` makes the large and wild ones.
"""

from __future__ import annotations

import copy
import math
from functools import cache
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.reference.strategies import json_values

Body: TypeAlias = dict[str, Any]

PRESENCE: Final = ("exists", "not_exists")
ORDER: Final = ("gt", "gte", "lt", "lte")
LISTS: Final = ("in", "not_in")
PARTS: Final = ("contains", "not_contains")
EQUALITY: Final = ("eq", "neq")
OPERATORS: Final = (*PRESENCE, *ORDER, *LISTS, *PARTS, *EQUALITY)
TYPES: Final = ("number", "integer", "string", "boolean", "array", "object", "null")

FIELDS: Final = ("a", "a.b", "a.b.c", "a.c", "ab", "n", "b")
"""Paths that begin others, and a name that begins another without being its parent."""

_GREATEST: Final = 1.7976931348623157e308

NUMBERS: Final[tuple[tuple[Any, ...], ...]] = (
    (0, -0.0, 0.5, 1, 1.0),
    (1, 2, 3, 50),
    (0.1, math.nextafter(0.1, 1), math.nextafter(0.1, 0), 0),
    (2**53 - 1, float(2**53 - 1), float(2**53), -(2**53) + 1, 2**53 - 2),
    (1e308, -1e308, _GREATEST, -_GREATEST),
    (5e-324, 0, -5e-324, math.nextafter(1, 0), 1),
    (2.0**52, 2.0**52 - 0.5, 2.0**51, 2.0**53 + 2),
)
STRINGS: Final[tuple[tuple[Any, ...], ...]] = (
    ("", "a", "ab", "b", "ba"),
    ("aa", "a", "aaa", "baab"),
    ("\u00e9", "e", "\u00e9e", "e\u0301"),
    ("\U0001f600", "\uffff", "\U0001f600a", ""),
    ("1", "true", "null", "", "[1]"),
)
ARRAYS: Final[tuple[tuple[Any, ...], ...]] = (
    ([], [1], [1.0, 2], [2, 1]),
    (["a"], ["ab"], ["a", "ab"], [""]),
    ([[1]], [None], [True], [{"b": 1}]),
)
OBJECTS: Final[tuple[tuple[Any, ...], ...]] = (
    ({}, {"b": 1}, {"b": 1.0, "c": 1}, {"c": 1}),
    ({"b": {"c": 1}}, {"b": {"c": 1}, "c": 1}, {"b": {}}, {}),
    ({"b": {"c": "a"}, "x": 1}, {"b": {"c": "a"}}, {"c": "a"}, {"b": None}),
    ({"b": [1]}, {"b": "ab"}, {"x": {"b": 1}}, {"b": {"c": 1, "x": None}}),
)
SCALARS: Final = (None, True, False)
LOOKALIKES: Final[tuple[tuple[Any, ...], ...]] = (
    (None, True, False, 1, 0),
    (1, "1", True, [1], {"b": 1}),
    ("a", ["a"], "ab", {"b": "a"}),
    (0, "", [], {}, False, None),
)

OUTCOMES: Final = (
    {"decision": "yes", "verdict": "APPROVE", "action": "pay", "reason_code": "FINE"},
    {"decision": "no", "verdict": "BLOCK", "action": "reject", "reason_code": "BAD"},
    {"decision": "review", "verdict": "REVIEW", "action": "ask", "reason_code": "UNSURE"},
    {"decision": "yes", "verdict": "APPROVE", "action": "pay", "reason_code": "FINE_TOO"},
    {
        "decision": "review",
        "verdict": "NEEDS_INPUT",
        "action": "collect_required_input",
        "reason_code": "INPUT_SCHEMA_FAILED",
    },
)
_PRIORITIES: Final = (None, 0, 0, 1, 1, 5, -1)
_RULE_IDS: Final = ("r1", "r2", "r3", "r4", "r5")
_MOST_RULES: Final = 5
_MOST_DEPTH: Final = 3
_MOST_TESTS: Final = 7


# A few constants that belong together, so that the tests of a field meet.
@cache
def _pools() -> SearchStrategy[tuple[Any, ...]]:
    kinds = (NUMBERS, NUMBERS, NUMBERS, STRINGS, STRINGS, ARRAYS, OBJECTS, OBJECTS, LOOKALIKES)
    of_one_kind = st.sampled_from(kinds).flatmap(st.sampled_from)
    mixed = st.tuples(*(st.sampled_from(kind).flatmap(st.sampled_from) for kind in (NUMBERS, STRINGS, ARRAYS, OBJECTS)))
    free = json_values(1).map(lambda value: (value,))
    return st.one_of(of_one_kind, of_one_kind, of_one_kind, mixed, free)


@st.composite
def rulebooks(draw: DrawFn, *, rulebook_id: str = "rb") -> Body:
    """A valid rulebook of at most 5 rules over at most 4 fields."""
    return draw(_over(draw(_vocabularies()), rulebook_id))


@st.composite
def pairs(draw: DrawFn) -> tuple[Body, Body]:
    """Two valid rulebooks: mostly the second is the first with some edits, else it may share fields and constants."""
    pools = draw(_vocabularies())
    before = draw(_over(pools, "rb"))
    kind = draw(st.sampled_from(("edited", "edited", "edited", "edited", "same fields", "other fields")))
    if kind == "edited":
        after = before
        for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
            after = draw(_edited(after, pools))
        return before, after
    others = draw(_vocabularies(most=2)) if kind == "other fields" else {}
    return before, draw(_over({**dict(list(pools.items())[:2]), **others} if others else pools, "rb"))


@st.composite
def _vocabularies(draw: DrawFn, most: int = 4) -> dict[str, tuple[Any, ...]]:
    """Fields, each with the constants that its tests name."""
    fields = draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=most, unique=True))
    return {field: draw(_pools()) for field in fields}


@st.composite
def _over(draw: DrawFn, pools: dict[str, tuple[Any, ...]], rulebook_id: str) -> Body:
    left = _MOST_TESTS
    rules: list[Body] = []
    for rule_id in draw(st.lists(st.sampled_from(_RULE_IDS), min_size=1, max_size=_MOST_RULES, unique=True)):
        condition = draw(_conditions(pools, max(1, min(3, left))))
        left -= _size(condition)
        rules.append(draw(_rules(rule_id, condition)))
        if left <= 0:
            break
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": rulebook_id,
        "version": "1",
        "input_schema": draw(_schemas(tuple(pools))),
        "rules": rules,
        "default_outcome": copy.deepcopy(draw(st.sampled_from(OUTCOMES))),
    }


@st.composite
def _rules(draw: DrawFn, rule_id: str, condition: Body) -> Body:
    rule: Body = {"rule_id": rule_id, "condition": condition}
    if (priority := draw(st.sampled_from(_PRIORITIES))) is not None:
        rule["priority"] = priority
    return rule | {"outcome": copy.deepcopy(draw(st.sampled_from(OUTCOMES)))}


@st.composite
def _schemas(draw: DrawFn, fields: tuple[str, ...]) -> Body:
    """Some fields declared, some required, each with and without the other; mostly of types that leave facts valid."""
    known = st.sampled_from((*fields, *fields, "a", "a.b"))
    declared = draw(st.lists(known, max_size=2, unique=True))
    required = draw(st.lists(known, max_size=2, unique=True))
    properties = {}
    for field in declared:
        types = ("object",) if _has_children(field, fields) and draw(st.booleans()) else TYPES
        properties[field] = {"type": draw(st.sampled_from(types))}
    return {"required": required, "properties": properties}


def _has_children(field: str, fields: tuple[str, ...]) -> bool:
    return any(other.startswith(f"{field}.") for other in fields)


@st.composite
def _conditions(draw: DrawFn, pools: dict[str, tuple[Any, ...]], most: int, depth: int = _MOST_DEPTH) -> Body:
    kind = draw(st.sampled_from(("test", "test", "all", "any", "not"))) if depth > 1 else "test"
    if kind == "test":
        return draw(_tests(pools))
    if kind == "not":
        return {"not": draw(_conditions(pools, most, depth - 1))}
    children: list[Body] = []
    for _ in range(draw(st.integers(1, most))):
        children.append(draw(_conditions(pools, max(1, most - 1), depth - 1)))
        if sum(map(_size, children)) >= most:
            break
    return {kind: children}


@st.composite
def _tests(draw: DrawFn, pools: dict[str, tuple[Any, ...]]) -> Body:
    field = draw(st.sampled_from(tuple(pools)))
    return {"field": field} | draw(_comparisons(pools[field]))


@st.composite
def _comparisons(draw: DrawFn, pool: tuple[Any, ...]) -> Body:
    """An operator with a constant that it can mean something with, and sometimes one that it cannot."""
    operators = tuple(operator for operator in OPERATORS if _suits(operator, pool))
    operator = draw(st.sampled_from(operators if draw(st.integers(0, 7)) else OPERATORS))
    if operator in PRESENCE:
        return {"operator": operator}
    constant = st.sampled_from((*pool, *pool, *pool, *SCALARS))
    if operator in LISTS:
        return {"operator": operator, "value": copy.deepcopy(draw(st.lists(constant, max_size=3)))}
    value = draw(constant)
    if operator in PARTS and isinstance(value, list) and value and draw(st.booleans()):
        value = draw(st.sampled_from(value))
    return {"operator": operator, "value": copy.deepcopy(value)}


def _suits(operator: str, pool: tuple[Any, ...]) -> bool:
    if operator in ORDER:
        return any(type(value) in (int, float) for value in pool)
    return operator not in PARTS or any(isinstance(value, str | list) for value in pool)


def _size(condition: Body) -> int:
    """How many tests a condition has."""
    children = [*condition.get("all", ()), *condition.get("any", ()), *([condition["not"]] if "not" in condition else ())]
    return sum(map(_size, children)) if children else 1


# --- Edits ------------------------------------------------------------------------------------------------------------


@st.composite
def _edited(draw: DrawFn, body: Body, pools: dict[str, tuple[Any, ...]]) -> Body:
    """A rulebook with one small change, of the kinds that authors make and that mutants stand for."""
    body = copy.deepcopy(body)
    edit = draw(st.sampled_from(("test", "test", "test", "negate", "rule", "priority", "outcome", "schema", "nothing")))
    rule = draw(st.sampled_from(body["rules"]))
    if edit == "test":
        _change_test(draw, draw(st.sampled_from(_tests_of(rule["condition"]))), pools)
    elif edit == "negate":
        node = draw(st.sampled_from(_tests_of(rule["condition"])))
        negated = {"not": dict(node)}
        node.clear()
        node.update(negated)
    elif edit == "rule":
        _change_rules(draw, body, rule, pools)
    elif edit == "priority":
        rule["priority"] = draw(st.sampled_from((-1, 0, 1, 5, 6)))
    elif edit == "outcome":
        at = draw(st.sampled_from((body["default_outcome"], rule["outcome"])))
        at.update(draw(st.sampled_from(OUTCOMES)))
    elif edit == "schema":
        body["input_schema"] = draw(_schemas(tuple(pools)))
    elif edit == "nothing":
        # Another spelling of the same rulebook.
        body["rules"].reverse()
    return body


def _tests_of(condition: Body) -> list[Body]:
    if "operator" in condition:
        return [condition]
    children = [*condition.get("all", ()), *condition.get("any", ()), *([condition["not"]] if "not" in condition else ())]
    return [test for child in children for test in _tests_of(child)]


_SWAPPED: Final = {
    "gt": "gte",
    "gte": "gt",
    "lt": "lte",
    "lte": "lt",
    "eq": "neq",
    "neq": "eq",
    "in": "not_in",
    "not_in": "in",
    "contains": "not_contains",
    "not_contains": "contains",
    "exists": "not_exists",
    "not_exists": "exists",
}


def _change_test(draw: DrawFn, test: Body, pools: dict[str, tuple[Any, ...]]) -> None:
    number = type(test.get("value")) in (int, float)
    change = draw(st.sampled_from(("move" if number else "swap", "swap", "redraw")))
    if change == "move":
        moved = (math.nextafter(test["value"], math.inf), math.nextafter(test["value"], -math.inf), test["value"] + 1.0)
        test["value"] = draw(st.sampled_from([value for value in moved if math.isfinite(value)]))
    elif change == "swap":
        test["operator"] = _SWAPPED[test["operator"]]
    else:
        field = test["field"]
        test.clear()
        test.update({"field": field} | draw(_comparisons(pools.get(field, SCALARS))))


def _change_rules(draw: DrawFn, body: Body, rule: Body, pools: dict[str, tuple[Any, ...]]) -> None:
    free = [rule_id for rule_id in _RULE_IDS if rule_id not in {each["rule_id"] for each in body["rules"]}]
    change = draw(st.sampled_from(("drop" if len(body["rules"]) > 1 else "rename", "add", "rename")))
    if change == "drop":
        body["rules"].remove(rule)
    elif free and change == "add":
        body["rules"].append(draw(_rules(free[0], draw(_conditions(pools, 2)))))
    elif free:
        rule["rule_id"] = free[-1]
