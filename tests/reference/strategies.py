"""Hypothesis strategies for JSON values, facts and valid Rulebook v1 objects.

They feed the reference evaluator, an oracle that shares no code with the product; nothing here does either.
Facts are built over a small pool of names, and rulebooks are written with some facts at hand, so that tests
hit their fields and values often. The patterns and limits are restated here, not imported.
"""

from __future__ import annotations

import copy
import math
import re
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

OPERATORS: Final = (
    "exists",
    "not_exists",
    "eq",
    "neq",
    "gt",
    "gte",
    "lt",
    "lte",
    "in",
    "not_in",
    "contains",
    "not_contains",
)
TYPES: Final = ("number", "integer", "string", "boolean", "array", "object", "null")

# Paths that facts() can fill, and some that it cannot ("tags.0" would index an array, "risk.level" enter a
# string, "nowhere" is never set).
FIELDS: Final = (
    "amount",
    "count",
    "risk",
    "approved",
    "tags",
    "nothing",
    "_x-1",
    "f" * 160,
    "owner",
    "owner.name",
    "owner.age",
    "owner.address",
    "owner.address.country",
    "owner.address.geo.lat",
    "owner.address.geo.marks",
    "order",
    "order.total",
    "order.items",
    "order.paid",
    "deep.a.b.c.d",
    "tags.0",
    "risk.level",
    "nowhere",
)

_MAX_DEPTH: Final = 4
_MAX_CHILDREN: Final = 8
# Six rules of at most this many condition nodes stay below the limit of 256 for a whole rulebook.
_MAX_NODES: Final = 40

_TWO_IN_THREE: Final[SearchStrategy[bool]] = st.sampled_from((True, True, False))
_THREE_IN_FOUR: Final[SearchStrategy[bool]] = st.sampled_from((True, True, True, False))

_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,159}")

_TEXTS: Final = (
    "",
    "a",
    "ab",
    "abc",
    "high",
    "low",
    "0",
    "1",
    "true",
    "null",
    "\u0000",
    "a\u0000b",
    '"\\/\b\f\n\r\t\u001f\u007f',
    "\u00e9",
    "e\u0301",
    "\u00df",
    "\u2028",
    "\ue000",
    "\uffff",
    "\U0001f600",
    "a\U0001f600b",
    "\U0010ffff",
)

_NUMBERS: Final = (
    0,
    0.0,
    -0.0,
    1,
    1.0,
    -1,
    1.5,
    2,
    100,
    100.0,
    0.1,
    0.30000000000000004,
    1e-6,
    1e-7,
    1e20,
    1e21,
    5e-324,
    1.7976931348623157e308,
    2**53 - 1,
    -(2**53) + 1,
    float(2**53 - 1),
    float(2**53),
)

_SPELLED: Final[dict[str, Any]] = {"0": 0, "1": 1, "true": True, "null": None}

# Canonical forms of 1024 bytes, the most that is reported as it is, and of 1025; and one far above.
_LARGE: Final[tuple[Any, ...]] = (
    "x" * 1022,
    "x" * 1023,
    "\u00e9" * 511,
    "\u00e9" * 511 + "x",
    "\u0000" * 170 + "xx",
    "\u0000" * 170 + "xxx",
    ["y" * 1020],
    ["y" * 1021],
    {"k": "z" * 1016},
    {"k": "z" * 1017},
    [float(n) for n in range(600)],
)


@cache
def json_texts() -> SearchStrategy[str]:
    """Strings without lone surrogates, U+0000 and astral characters included."""
    free = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    return st.sampled_from(_TEXTS) | free


@cache
def json_numbers() -> SearchStrategy[int | float]:
    """Finite numbers; integers stay within 2**53-1."""
    return st.one_of(
        st.integers(-3, 3),
        st.sampled_from(_NUMBERS),
        st.integers(-3, 3).map(float),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
    )


@cache
def json_scalars() -> SearchStrategy[Any]:
    """Null, booleans, numbers and strings."""
    return st.one_of(st.none(), st.booleans(), json_numbers(), json_texts())


@cache
def json_values(max_depth: int = 3) -> SearchStrategy[Any]:
    """Values of every JSON type; arrays and objects nest at most `max_depth` levels."""
    if max_depth == 0:
        return json_scalars()
    inner = json_values(max_depth - 1)
    return st.one_of(
        json_scalars(),
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(("a", "b", "0")) | json_texts(), inner, max_size=3),
    )


@cache
def facts() -> SearchStrategy[dict[str, Any]]:
    """Objects over the names of FIELDS: mostly of the type the name suggests, at times of another."""
    geo = st.fixed_dictionaries({}, optional={"lat": _mostly(json_numbers()), "marks": _mostly(_arrays())})
    address = st.fixed_dictionaries({}, optional={"country": _mostly(json_texts()), "geo": _mostly(geo)})
    owner = st.fixed_dictionaries(
        {},
        optional={
            "name": _mostly(json_texts()),
            "age": _mostly(_integers()),
            "address": _mostly(address),
        },
    )
    order = st.fixed_dictionaries(
        {},
        optional={
            "total": _mostly(json_numbers()),
            "items": _mostly(_arrays()),
            "paid": _mostly(st.booleans()),
        },
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "amount": _mostly(json_numbers()),
            "count": _mostly(_integers()),
            "risk": _mostly(json_texts()),
            "approved": _mostly(st.booleans()),
            "tags": _mostly(_arrays()),
            "nothing": _mostly(st.none()),
            "_x-1": json_values(2),
            "f" * 160: json_values(1),
            "owner": _mostly(owner),
            "order": _mostly(order),
            "deep": _mostly(json_scalars().map(lambda value: {"a": {"b": {"c": {"d": value}}}})),
            # Literal dots, which no path reaches.
            "owner.name": json_scalars(),
            "tags.0": json_scalars(),
        },
    )


def rulebooks() -> SearchStrategy[dict[str, Any]]:
    """Valid Rulebook v1 objects."""
    return facts().flatmap(_rulebooks_for)


@st.composite
def rulebooks_and_facts(draw: DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A valid rulebook and facts that its tests often hit."""
    given = draw(facts())
    return draw(_rulebooks_for(given)), given


def _mostly(usual: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return _weighted((8, usual), (1, json_values(1)), (1, st.sampled_from(_LARGE).map(copy.deepcopy)))


def _weighted(*choices: tuple[int, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    # one_of() flattens its arguments and drops repeats, so weights need an index of their own.
    index = [position for position, (weight, _) in enumerate(choices) for _ in range(weight)]
    return st.sampled_from(index).flatmap(lambda position: choices[position][1])


@cache
def _integers() -> SearchStrategy[int | float]:
    return st.integers(-3, 3) | st.integers(-3, 3).map(float) | st.sampled_from((2**53 - 1, 1e21))


@cache
def _arrays() -> SearchStrategy[list[Any]]:
    return st.lists(json_values(1), max_size=4)


def _paths(value: Any, prefix: str = "") -> dict[str, Any]:
    """Everything that a valid dotted path reaches, by path."""
    found: dict[str, Any] = {}
    if isinstance(value, dict):
        for name, member in value.items():
            path = f"{prefix}{name}"
            if name and "." not in name and _FIELD.fullmatch(path):
                found[path] = member
                found.update(_paths(member, f"{path}."))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _types_of(value: Any) -> list[str]:
    """The declared types that accept a value."""
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["boolean"]
    if isinstance(value, (int, float)):
        return ["number", "integer"] if float(value).is_integer() else ["number"]
    if isinstance(value, str):
        return ["string"]
    return ["array"] if isinstance(value, list) else ["object"]


@cache
def _ids() -> SearchStrategy[str]:
    # Neighbours in code-point order that a natural or locale-aware order would place otherwise.
    known = ("a-b", "a.b", "a0", "a10", "a9", "a:b", "a_b", "aa", "ab", "b0", "z" * 120)
    return _weighted(
        (5, st.sampled_from(known)),
        (1, st.from_regex(r"[a-z][a-z0-9_.:-]{1,11}", fullmatch=True)),
        (1, st.from_regex(r"[a-z][a-z0-9_.:-]{1,119}", fullmatch=True)),
    )


@cache
def _codes() -> SearchStrategy[str]:
    known = ("APPROVE", "REVIEW", "BLOCK", "DEFER", "DENY", "NEEDS_INPUT", "OK", "A" * 80)
    return _weighted((6, st.sampled_from(known)), (1, st.from_regex(r"[A-Z][A-Z0-9_]{1,79}", fullmatch=True)))


@cache
def _outcomes() -> SearchStrategy[dict[str, Any]]:
    actions = ("a", "proceed", "block_payment", "hold for review", "x" * 140)
    return st.fixed_dictionaries(
        {
            "decision": st.sampled_from(("yes", "no", "review")),
            "verdict": _codes(),
            "action": st.sampled_from(actions),
            "reason_code": _codes(),
        }
    )


@cache
def _priorities() -> SearchStrategy[int | float]:
    return st.sampled_from((0, 0, 1, 1, 1.0, -1, -0.0, 5, 5.0, 1000, -1000)) | st.integers(-1000, 1000)


@st.composite
def _rulebooks_for(draw: DrawFn, given: dict[str, Any]) -> dict[str, Any]:
    reached = _paths(given)
    rules: list[dict[str, Any]] = []
    for rule_id in draw(st.lists(_ids(), min_size=1, max_size=6, unique=True)):
        rule: dict[str, Any] = {"rule_id": rule_id}
        if draw(_THREE_IN_FOUR):
            rule["priority"] = draw(_priorities())
        rule["condition"] = draw(_conditions(reached))
        rule["outcome"] = draw(_outcomes())
        rules.append(rule)
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": draw(_ids()),
        "version": draw(st.sampled_from(("1", "1.0.0", "2024-11-05", "v" * 80))),
        "input_schema": draw(_input_schemas(reached)),
        "rules": rules,
        "default_outcome": draw(_outcomes()),
    }


@st.composite
def _input_schemas(draw: DrawFn, reached: dict[str, Any]) -> dict[str, Any]:
    """Names and types that mostly suit the facts, so that rules are reached, and at times do not."""
    names = st.lists(_fields(reached), max_size=4, unique=True)
    fitting_types, fitting_names = draw(_TWO_IN_THREE), draw(_TWO_IN_THREE)
    properties: dict[str, Any] = {}
    for name in draw(names):
        types = _types_of(reached[name]) if fitting_types and name in reached else TYPES
        properties[name] = {"type": draw(st.sampled_from(types))}
    required = [name for name in draw(names) if name in reached or not fitting_names]
    return {"required": required, "properties": properties}


@st.composite
def _conditions(draw: DrawFn, reached: dict[str, Any]) -> dict[str, Any]:
    left = _MAX_NODES

    def condition(depth: int) -> dict[str, Any]:
        nonlocal left
        kinds = ["test", "test", "all", "any", "not"] if depth > 1 and left > 0 else ["test"]
        kind = draw(st.sampled_from(kinds))
        if kind == "test":
            return draw(_tests(reached))
        if kind == "not":
            left -= 1
            return {"not": condition(depth - 1)}
        most = draw(st.sampled_from((2, 3, _MAX_CHILDREN)))
        count = draw(st.integers(1, min(most, left)))
        left -= count
        return {kind: [condition(depth - 1) for _ in range(count)]}

    left -= 1
    return condition(_MAX_DEPTH)


@st.composite
def _tests(draw: DrawFn, reached: dict[str, Any]) -> dict[str, Any]:
    operator = draw(st.sampled_from(OPERATORS))
    suited = {path: value for path, value in reached.items() if _suits(operator, value)}
    only_suited = bool(suited) and draw(_THREE_IN_FOUR)
    field = draw(_fields(suited if only_suited else reached))
    test: dict[str, Any] = {"field": field, "operator": operator}
    if operator in ("exists", "not_exists"):
        return test
    if field in reached and draw(_THREE_IN_FOUR):
        value = draw(_values_near(operator, reached[field]))
    elif operator in ("in", "not_in"):
        value = draw(st.lists(json_values(1), max_size=4))
    else:
        value = draw(json_values(2))
    # A value may come from the facts: the rulebook must not share objects with them.
    test["value"] = copy.deepcopy(value)
    return test


def _fields(reached: dict[str, Any]) -> SearchStrategy[str]:
    anywhere = st.sampled_from(FIELDS)
    return _weighted((3, st.sampled_from(sorted(reached))), (1, anywhere)) if reached else anywhere


def _suits(operator: str, observed: Any) -> bool:
    """Whether an operator can tell values of this type apart."""
    if operator in ("gt", "gte", "lt", "lte"):
        return _is_number(observed)
    if operator in ("contains", "not_contains"):
        return isinstance(observed, (list, str))
    return True


def _values_near(operator: str, observed: Any) -> SearchStrategy[Any]:
    """Values that equal, contain, border on, or are easily mistaken for the observed one."""
    near = st.sampled_from([observed, *_equals(observed), *_lookalikes(observed)])
    if operator in ("in", "not_in"):
        others = st.lists(near | json_values(1), max_size=3)
        return st.tuples(near, others).flatmap(lambda pair: st.permutations([pair[0], *pair[1]]))
    if operator in ("contains", "not_contains"):
        if isinstance(observed, list) and observed:
            member = st.sampled_from(observed)
            return member.flatmap(lambda item: st.sampled_from([item, *_equals(item), *_lookalikes(item)]))
        if isinstance(observed, str):
            ends = st.tuples(st.integers(0, len(observed)), st.integers(0, len(observed)))
            return near | ends.map(lambda pair: observed[min(pair) : max(pair)])
        if isinstance(observed, dict) and observed:
            return st.sampled_from([*observed, *observed.values()])
    if operator in ("gt", "gte", "lt", "lte") and _is_number(observed):
        return near | json_numbers()
    return near


def _equals(value: Any) -> list[Any]:
    """Equal values that Python, or a careless serializer, writes in another way."""
    if _is_number(value):
        equals: list[Any] = [float(value)]
        if float(value).is_integer() and abs(value) < 2**53:
            equals.append(int(value))
        return [*equals, -0.0] if value == 0 else equals
    if isinstance(value, dict):
        return [dict(reversed(value.items()))]
    return []


def _lookalikes(value: Any) -> list[Any]:
    """Unequal values that a loose comparison would take for equal."""
    if value is None:
        return [False, 0, "", "null"]
    if isinstance(value, bool):
        return [int(value), float(value), str(value).lower(), not value]
    if isinstance(value, (int, float)):
        wrong: list[Any] = [str(value)]
        if value in (0, 1):
            wrong.append(bool(value))
        if value != 0:
            wrong.append(math.nextafter(value, 0.0))
        if abs(value) < 2**52:
            wrong += [value + 1, value - 1]
        return wrong
    if isinstance(value, str):
        wrong = [value + "x", value.upper() + "X", [value]]
        if value in _SPELLED:
            wrong.append(_SPELLED[value])
        return wrong
    if isinstance(value, list):
        return [[*value, None], value[:-1] if value else {}]
    return [{**value, "a": [value.get("a")]}, []]
