"""Hypothesis strategies for small rulebooks and pairs of them, for laws that a brute force judges.

The rulebooks are small, so that every class of facts can be tried, and dense: few fields and constants, which meet
again and again, beside their neighbours and look-alikes. `tests.reference.strategies` makes the large and wild ones.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.reference.strategies import json_values
from tests.support.grids import written

Body: TypeAlias = dict[str, Any]
_Pools: TypeAlias = dict[str, tuple[Any, ...]]
_Option = TypeVar("_Option")

PRESENCE: Final = ("exists", "not_exists")
ORDER: Final = ("gt", "gte", "lt", "lte")
LISTS: Final = ("in", "not_in")
PARTS: Final = ("contains", "not_contains")
EQUALITY: Final = ("eq", "neq")
OPERATORS: Final = (*PRESENCE, *ORDER, *LISTS, *PARTS, *EQUALITY)
TYPES: Final = ("number", "integer", "string", "boolean", "array", "object", "null")

FIELDS: Final = ("a", "a.b", "a.b.c", "a.c", "ab", "n", "b")
"""Paths that begin others, and a name that begins another without being its parent."""

FAMILIES: Final = (("a",), ("a", "a.b"), ("a", "a.b", "a.b.c"), ("a", "a.b", "a.c", "n"), ("n", "ab"), FIELDS)
"""Fields that rulebooks are often about, so that their tests meet."""

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
_MOST_DEPTH: Final = 3
_MOST_TESTS: Final = 9

# An edit of an operator.
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


@st.composite
def rulebooks(draw: DrawFn) -> Body:
    """A valid rulebook of at most 5 rules over at most 4 fields."""
    return _Author(draw).rulebook()


@st.composite
def pairs(draw: DrawFn) -> tuple[Body, Body]:
    """Two valid rulebooks: mostly the second is the first with some edits, else it may share fields and constants."""
    author = _Author(draw)
    before = author.rulebook()
    kind = author.one_of(("edited", "edited", "edited", "edited", "same fields", "other fields"))
    if kind == "edited":
        after = before
        for _ in range(author.one_of((1, 1, 1, 2, 3))):
            after = author.edited(after)
        return before, after
    if kind == "other fields":
        shared = dict(list(author.pools.items())[:2])
        author.pools = {**shared, **author.vocabulary(most=2)}
    return before, author.rulebook()


@cache
def _below(number: int) -> SearchStrategy[int]:
    return st.integers(0, number - 1)


@cache
def _free_values() -> SearchStrategy[Any]:
    return json_values(1)


class _Author:
    """Writes rulebooks as hypothesis draws."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw
        self.pools = self.vocabulary(most=4)

    # Composite strategies inside one another would take most of a test's time.
    def one_of(self, options: Sequence[_Option]) -> _Option:
        return options[self._draw(_below(len(options)))]

    def some_of(self, options: Sequence[_Option], most: int) -> list[_Option]:
        left = list(options)
        chosen: list[_Option] = []
        while left and len(chosen) < most:
            chosen.append(left.pop(self._draw(_below(len(left)))))
        return chosen

    def vocabulary(self, most: int) -> _Pools:
        """Fields, each with the constants that its tests name."""
        family = self.one_of((FIELDS, *FAMILIES))
        pools: _Pools = {}
        for path in sorted(self.some_of(family, min(most, self.one_of((2, 1, 2, 3, 4))))):
            above, _, name = path.rpartition(".")
            # What the constants of the object around it have in this place.
            held = tuple(each[name] for each in pools.get(above, ()) if isinstance(each, dict) and name in each)
            is_held = bool(held) and self._draw(_below(3)) > 0
            pools[path] = held if is_held else self._pool()
        return pools

    def _pool(self) -> tuple[Any, ...]:
        """A few constants that belong together, so that the tests of a field meet."""
        kind = self.one_of(("number", "number", "number", "one", "one", "one", "one", "mixed", "free"))
        if kind == "number":
            return self.one_of(NUMBERS)
        if kind == "one":
            return self.one_of(self.one_of((STRINGS, STRINGS, ARRAYS, OBJECTS, OBJECTS, LOOKALIKES)))
        if kind == "mixed":
            return tuple(self.one_of(self.one_of(of)) for of in (NUMBERS, STRINGS, ARRAYS, OBJECTS))
        return (self._draw(_free_values()), 1)

    def rulebook(self) -> Body:
        left = _MOST_TESTS
        rules: list[Body] = []
        for rule_id in self.some_of(_RULE_IDS, self.one_of((3, 1, 2, 3, 4, 5))):
            condition = self._condition(max(1, min(4, left)), _MOST_DEPTH)
            left -= len(_tests_of(condition))
            rules.append(self._rule(rule_id, condition))
            if left <= 0:
                break
        return {
            "schema_version": "rulebook_v1",
            "rulebook_id": "rb",
            "version": "1",
            "input_schema": self._schema(),
            "rules": rules,
            "default_outcome": copy.deepcopy(self.one_of(OUTCOMES)),
        }

    def _rule(self, rule_id: str, condition: Body) -> Body:
        rule: Body = {"rule_id": rule_id, "condition": condition}
        if (priority := self.one_of(_PRIORITIES)) is not None:
            rule["priority"] = priority
        return rule | {"outcome": copy.deepcopy(self.one_of(OUTCOMES))}

    def _schema(self) -> Body:
        """Some fields declared, some required, each with and without the other."""
        known = list(dict.fromkeys((*self.pools, "a", "a.b")))
        properties = {}
        for path in self.some_of(known, self.one_of((0, 0, 1, 1, 2))):
            # An object leaves facts valid that have the fields below it.
            holds_others = any(other.startswith(f"{path}.") for other in known)
            fitting = ("object",) if holds_others else _types_of(self.pools.get(path, ()))
            properties[path] = {"type": self.one_of(self.one_of((fitting or TYPES, TYPES)))}
        return {"required": self.some_of(known, self.one_of((0, 0, 1, 1, 2))), "properties": properties}

    def _condition(self, most: int, depth: int) -> Body:
        kind = self.one_of(("test", "test", "all", "any", "not")) if depth > 1 else "test"
        if kind == "test":
            path = self.one_of(tuple(self.pools))
            return {"field": path} | self._comparison(self.pools[path])
        if kind == "not":
            return {"not": self._condition(most, depth - 1)}
        children: list[Body] = []
        for _ in range(self.one_of(range(1, most + 1))):
            children.append(self._condition(max(1, most - 1), depth - 1))
            if sum(len(_tests_of(child)) for child in children) >= most:
                break
        return {kind: children}

    def _comparison(self, pool: tuple[Any, ...]) -> Body:
        """An operator with a constant that it can mean something with, and sometimes with one that it cannot."""
        operator = self.one_of(self.one_of((_suited(pool),) * 7 + (OPERATORS,)))
        constants = (*pool, *pool, *pool, *SCALARS)
        if operator in PRESENCE:
            return {"operator": operator}
        if operator in LISTS:
            items = [self.one_of(constants) for _ in range(self.one_of((2, 0, 1, 2, 3)))]
            return {"operator": operator, "value": copy.deepcopy(items)}
        value = self.one_of(constants)
        if operator in PARTS and isinstance(value, list) and value and self.one_of((True, False)):
            value = self.one_of(value)
        return {"operator": operator, "value": copy.deepcopy(value)}

    # --- Edits ---

    def edited(self, body: Body) -> Body:
        """The rulebook with one small change, of the kinds that authors make and that mutants stand for."""
        body = copy.deepcopy(body)
        rule = self.one_of(body["rules"])
        edit = self.one_of(("test", "test", "test", "negate", "rules", "priority", "outcome", "schema", "nothing"))
        if edit == "test":
            self._change_test(self.one_of(_tests_of(rule["condition"])))
        elif edit == "negate":
            test = self.one_of(_tests_of(rule["condition"]))
            negated = {"not": dict(test)}
            test.clear()
            test.update(negated)
        elif edit == "rules":
            self._change_rules(body, rule)
        elif edit == "priority":
            rule["priority"] = self.one_of((-1, 0, 1, 5, 6))
        elif edit == "outcome":
            self.one_of((body["default_outcome"], rule["outcome"])).update(self.one_of(OUTCOMES))
        elif edit == "schema":
            body["input_schema"] = self._schema()
        else:
            # Another spelling of the same rulebook.
            body["rules"].reverse()
        return body

    def _change_test(self, test: Body) -> None:
        value: Any = test.get("value")
        change = self.one_of(("move" if type(value) in (int, float) else "swap", "swap", "redraw"))
        if change == "move":
            moved = (math.nextafter(value, math.inf), math.nextafter(value, -math.inf), value + 1.0)
            test["value"] = self.one_of([each for each in moved if math.isfinite(each)])
        elif change == "swap":
            test["operator"] = _SWAPPED[test["operator"]]
        else:
            path = test["field"]
            test.clear()
            test.update({"field": path} | self._comparison(self.pools[path]))

    def _change_rules(self, body: Body, rule: Body) -> None:
        free = [rule_id for rule_id in _RULE_IDS if rule_id not in {each["rule_id"] for each in body["rules"]}]
        change = self.one_of(("drop" if len(body["rules"]) > 1 else "rename", "add", "rename"))
        if change == "drop":
            body["rules"].remove(rule)
        elif free and change == "add":
            body["rules"].append(self._rule(free[0], self._condition(2, _MOST_DEPTH)))
        elif free:
            rule["rule_id"] = free[-1]


def _suited(pool: tuple[Any, ...]) -> tuple[str, ...]:
    """Operators that can mean something with constants, those more often that are about their types."""
    suited: tuple[str, ...] = (*PRESENCE, *EQUALITY, *LISTS)
    if any(type(value) in (int, float) for value in pool):
        suited += (*ORDER, *ORDER)
    if any(isinstance(value, str | list) for value in pool):
        suited += (*PARTS, *PARTS, *PARTS)
    return suited


def _types_of(pool: tuple[Any, ...]) -> tuple[str, ...]:
    types = {bool: "boolean", str: "string", list: "array", dict: "object", type(None): "null"}
    return tuple(dict.fromkeys(types.get(type(value), kind) for value in pool for kind in ("integer", "number")))


def _tests_of(condition: Body) -> list[Body]:
    if "operator" in condition:
        return [condition]
    children = [*condition.get("all", ()), *condition.get("any", ())]
    children += [condition["not"]] if "not" in condition else []
    return [test for child in children for test in _tests_of(child)]


# --- Facts ------------------------------------------------------------------------------------------------------------


@st.composite
def facts_near(draw: DrawFn, bodies: Sequence[Body]) -> dict[str, Any]:
    """Facts made without thought from the fields and constants of rulebooks, and from arbitrary JSON values."""
    witness = _Witness(draw, bodies)
    facts: dict[str, Any] = {}
    # An object above others is written over where it comes last.
    for path in witness.one_of(((), *(witness.fields[:count] for count in (1, 2, 3, 4)))):
        _write(facts, path.split("."), witness.value(2))
    for _ in range(witness.one_of((0, 1, 2))):
        _write(facts, witness.one_of(witness.fields).split("."), witness.value(2))
    return facts


def _write(facts: dict[str, Any], names: Sequence[str], value: Any) -> None:
    *above, last = names
    for name in above:
        if not isinstance(facts.get(name), dict):
            facts[name] = {}
        facts = facts[name]
    facts[last] = value


class _Witness:
    """Makes up values as hypothesis draws."""

    def __init__(self, draw: DrawFn, bodies: Sequence[Body]) -> None:
        self._draw = draw
        tests = [test for body in bodies for rule in body["rules"] for test in _tests_of(rule["condition"])]
        tested = [test["field"] for test in tests]
        schemas = [body["input_schema"] for body in bodies]
        read = [*tested, *(path for schema in schemas for path in (*schema["required"], *schema["properties"]))]
        self.fields = tuple(dict.fromkeys(read))
        self._names = (*dict.fromkeys(name for path in self.fields for name in path.split(".")), "z")
        constants = [part for test in tests if "value" in test for part in _parts_of(test["value"])]
        self._constants = (*constants, None, 0)
        self._numbers = (*(value for value in constants if type(value) in (int, float)), 0)
        self._texts = (*(value for value in constants if isinstance(value, str)), "z")

    def one_of(self, options: Sequence[_Option]) -> _Option:
        return options[self._draw(_below(len(options)))]

    def value(self, depth: int) -> Any:
        kind = self.one_of(("constant", "constant", "constant", "number", "text", "any", "list", "object", "object"))
        if kind == "any":
            return self._draw(_free_values())
        if kind == "number":
            return self._number(self.one_of(self._numbers))
        if kind == "text":
            joined = "".join(self.one_of(self._texts) for _ in range(self.one_of((1, 2, 3))))
            return joined[self.one_of((0, 0, 1)) :]
        if kind == "constant" or depth == 0:
            return self._changed(copy.deepcopy(self.one_of(self._constants)))
        if kind == "list":
            return [self.value(0) for _ in range(self.one_of((0, 1, 2, 3)))]
        return {self.one_of(self._names): self.value(depth - 1) for _ in range(self.one_of((0, 1, 2, 3)))}

    def _number(self, near: float) -> float:
        steps = (near, -near, near / 2, near * 2, near + 1.0, near - 0.25, round(near) * 1.0)
        to = self.one_of((math.inf, -math.inf, 0.0))
        moved = self.one_of((*steps, math.nextafter(near, to)))
        return written(float(moved)) if math.isfinite(moved) else near

    def _changed(self, value: Any) -> Any:
        """A constant, often with a part of it taken out or put in."""
        if isinstance(value, dict) and self.one_of((True, False)):
            value.pop(self.one_of(self._names), None)
        if isinstance(value, dict) and self.one_of((True, False, False)):
            value[self.one_of(self._names)] = self.one_of(self._constants)
        if isinstance(value, list) and self.one_of((True, False, False)):
            value.append(self.one_of(self._constants))
        return value


def _parts_of(value: Any) -> list[Any]:
    """A constant and all that it holds."""
    held = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value, *(part for item in held for part in _parts_of(item))]
