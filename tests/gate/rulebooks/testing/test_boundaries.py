"""Boundary values stand on either side of each test, and the unusual values of each field are among them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import MAX_SAFE_INTEGER
from gate.rulebooks.conditions import tests_of as nodes_of
from gate.rulebooks.evaluation import ABSENT, is_of_type, predicate_of
from gate.rulebooks.testing.boundaries import BoundaryValue, boundary_values
from tests.reference.strategies import rulebooks
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.tiers import examples
from tests.support.torture import size


def values(*tests: Any, **types: Any) -> dict[str, Any]:
    """The values of tests, by their labels."""
    body = rulebook(rule("one", {"any": list(tests)}), **types)
    return {one.label: one.value for one in boundary_values(body) if one.path is not None}


def unusual(*tests: Any, **types: Any) -> dict[str, Any]:
    """The values that no test names, by their labels."""
    body = rulebook(rule("one", {"any": list(tests)}), **types)
    return {one.label: one.value for one in boundary_values(body) if one.path is None}


@pytest.mark.parametrize("operator", ["gt", "gte", "lt", "lte", "eq", "neq"])
def test_a_number_has_values_just_below_at_and_just_above(operator: str) -> None:
    test = compare("amount", operator, 50)
    words = ["amount just below 50", "amount exactly 50", "amount just above 50"]
    assert values(test, amount="integer") == dict(zip(words, [49, 50, 51], strict=True))
    assert values(test, amount="number") == dict(zip(words, [49.99, 50, 50.01], strict=True))
    assert values(test) == dict(zip(words, [49.99, 50, 50.01], strict=True))


def test_no_value_jumps_over_another_threshold_of_its_field() -> None:
    found = values(compare("amount", "gt", 50), compare("amount", "in", [50.005, 90]))
    assert found["amount just above 50"] == 50.002
    assert found["amount just below 50"] == 49.99


def test_a_whole_number_field_has_whole_numbers_only() -> None:
    assert values(compare("n", "gt", 2.5), n="integer") == {"n just below 2.5": 2, "n just above 2.5": 3}


def test_a_list_has_an_item_and_a_value_that_it_does_not_have() -> None:
    assert values(compare("region", "in", ["EU", "other"])) == {
        'region is "EU", which is listed': "EU",
        'region is another text, "A", which is not listed': "A",
    }
    assert list(values(compare("n", "not_in", [1, 2]), n="integer").values()) == [1, 0]
    assert list(values(compare("n", "in", [])).values()) == ["other"]
    assert list(values(compare("n", "in", [True, False])).values()) == [True]


def test_texts_have_one_that_is_equal_and_one_that_is_not() -> None:
    tests = (compare("risk", "eq", "other"), compare("risk", "contains", "A"))
    assert values(*tests, risk="string") == {
        'risk is "other"': "other",
        'risk is another text, "B"': "B",
        'risk is a text that contains "A"': "A",
        'risk is a text that does not contain "A"': "B",
    }


def test_arrays_have_the_item_or_lack_it() -> None:
    assert list(values(compare("tags", "contains", "new"), tags="array").values()) == [["new"], []]
    assert list(values(compare("tags", "not_contains", 1)).values()) == [[1], []]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, [True, False]),
        (None, [None]),
        ([], [[], [None]]),
        ([1], [[1], []]),
        ({}, [{}, {"other": None}]),
        ({"a": 1}, [{"a": 1}, {}]),
    ],
)
def test_other_constants_have_an_equal_value_and_another(value: Any, expected: list[Any]) -> None:
    assert list(values(compare("f", "eq", value)).values()) == expected


def test_values_that_the_input_schema_refuses_are_left_to_the_unusual_ones() -> None:
    assert values(compare("amount", "eq", "50"), compare("amount", "in", ["a"]), amount="number") == {}


@pytest.mark.parametrize(
    ("type_", "wrong"),
    [
        ("number", ["50"]),
        ("integer", [0.5, "50"]),
        ("string", [1]),
        ("boolean", ["true"]),
        ("array", ["other"]),
        ("object", ["other"]),
    ],
)
def test_every_field_is_also_absent_null_and_of_a_wrong_type(type_: str, wrong: list[Any]) -> None:
    found = list(unusual(compare("f", "gt", 50), f=type_).values())
    assert found == [ABSENT, None, *wrong]
    assert not any(is_of_type(value, type_) for value in found[1:])


def test_a_field_that_is_only_required_or_only_tested_for_presence_is_absent_once_too() -> None:
    body = rulebook(rule("one", compare("seen", "exists")), required=["needed"])
    assert [one.field for one in boundary_values(body) if one.value is ABSENT] == ["needed", "seen"]


@settings(max_examples=examples(size(20, 2_000)))
@given(rulebooks())
def test_values_of_a_test_are_distinct_and_of_the_declared_type(body: Any) -> None:
    types = {name: declared["type"] for name, declared in body["input_schema"]["properties"].items()}
    nodes = {node.path: node.condition for _, node in nodes_of(body)}
    found: dict[str, list[BoundaryValue]] = {}
    for one in boundary_values(body):
        if one.path is not None:
            found.setdefault(one.path, []).append(one)
            assert one.field == nodes[one.path]["field"]
            assert one.field not in types or is_of_type(one.value, types[one.field])
    for path, ones in found.items():
        assert len({canonical(one.value) for one in ones}) == len(ones)
        if nodes[path]["operator"] in ("eq", "neq", "contains", "not_contains") and nodes[path]["field"] not in types:
            holds = predicate_of(nodes[path])
            assert (
                {holds(one.value) for one in ones} == {True, False}
                or nodes[path]["value"] in (None, "")
                or is_hemmed_in(nodes[path], nodes.values())
            )


def is_hemmed_in(test: Any, tests: Iterable[Any]) -> bool:
    """Whether there is no number beside that of a test, but for numbers that other tests of its field compare with."""
    number = test["value"]
    if not is_number(number):
        return False
    listed = [other["value"] for other in tests if other["field"] == test["field"] and "value" in other]
    numbers = {item for each in listed for item in (each if isinstance(each, list) else [each]) if is_number(item)}
    beside = {math.nextafter(number, direction) for direction in (-math.inf, math.inf)}
    return all(near in numbers or abs(number) <= MAX_SAFE_INTEGER < abs(near) for near in beside)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_a_number_between_its_neighbours_has_no_value_beside_it() -> None:
    body = rulebook(
        rule("one", compare("a", "eq", MAX_SAFE_INTEGER)), rule("two", compare("a", "eq", MAX_SAFE_INTEGER - 1))
    )
    found = [(one.path, one.value) for one in boundary_values(body) if one.path is not None]
    assert found == [
        ("rules[0].condition", MAX_SAFE_INTEGER),
        ("rules[1].condition", MAX_SAFE_INTEGER - 2),
        ("rules[1].condition", MAX_SAFE_INTEGER - 1),
    ]
