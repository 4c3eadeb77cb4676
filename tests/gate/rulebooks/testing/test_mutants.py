"""Mutants are valid, all different, and each is its rulebook with one small change; every kind of change is there."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings

from gate.encoding.canonical import canonical, content_hash
from gate.rulebooks.bundles import active_rulebooks
from gate.rulebooks.rulebook import MAX_CONDITION_DEPTH, MAX_CONDITION_NODES, find_errors
from gate.rulebooks.testing.mutants import MAX_DROPPED_ITEMS, Mutant, mutants_of
from tests.reference.strategies import rulebooks
from tests.support.rulebooks import compare, outcome, rule, rulebook
from tests.support.tiers import examples
from tests.support.torture import size

SMALL = rule("approve_small", compare("amount", "lte", 50), priority=5)


def of_kind(body: Any, kind: str) -> list[Mutant]:
    return [mutant for mutant in mutants_of(body) if mutant.kind == kind]


def conditions_of(body: Any, *kinds: str) -> list[Any]:
    """The condition of the first rule in the mutants of some kinds."""
    return [mutant.body["rules"][0]["condition"] for mutant in mutants_of(body) if mutant.kind in kinds]


def check(body: Any, mutants: Iterable[Mutant]) -> None:
    hashes = [content_hash(body)]
    for mutant in mutants:
        assert find_errors(mutant.body) == [], mutant.description
        hashes.append(content_hash(mutant.body))
    assert [hash_ for hash_, number in Counter(hashes).items() if number > 1] == []


@settings(max_examples=examples(size(20, 2_000)))
@given(rulebooks())
def test_mutants_are_valid_and_all_different(body: Any) -> None:
    before = copy.deepcopy(body)
    check(body, mutants_of(body))
    assert canonical(body) == canonical(before), "making mutants changed the rulebook"


def test_the_rulebooks_of_the_product_have_mutants_of_every_kind() -> None:
    kinds = set()
    for own in active_rulebooks():
        mutants = list(mutants_of(own.body))
        check(own.body, mutants)
        assert [one.description for one in mutants] == [one.description for one in mutants_of(own.body)]
        kinds |= {mutant.kind for mutant in mutants}
    assert len(kinds) == 11


def test_a_mutant_names_its_rule_its_place_and_the_change() -> None:
    body = rulebook(rule("other", compare("x", "exists")), SMALL)
    (strict,) = [one for one in of_kind(body, "operator_swapped") if one.body["rules"][1] != SMALL][:1]
    assert (strict.rule_id, strict.path) == ("approve_small", "rules[1].condition")
    assert strict.description == "rules[1] approve_small: amount lte 50 becomes lt 50"


@pytest.mark.parametrize(
    ("types", "value", "expected"),
    [
        ({"amount": "integer"}, 50, [49, 51]),
        ({"amount": "number"}, 50, [49.99, 50.01]),
        ({}, 0.125, [0.124, 0.126]),
        ({}, "50", []),
        ({}, True, []),
    ],
)
@pytest.mark.parametrize("operator", ["gt", "gte", "lt", "lte", "eq", "neq"])
def test_thresholds_move_by_one_step(operator: str, types: dict[str, Any], value: Any, expected: list[Any]) -> None:
    body = rulebook(rule("one", compare("amount", operator, value)), **types)
    assert [one["value"] for one in conditions_of(body, "threshold_moved")] == expected


@pytest.mark.parametrize(
    ("operator", "value", "swapped"),
    [
        ("gt", 1, ["gte", "lt"]),
        ("gte", 1, ["gt", "lte"]),
        ("lt", 1, ["lte", "gt"]),
        ("lte", 1, ["lt", "gte"]),
        ("lt", "1", []),
        ("eq", None, ["neq"]),
        ("neq", {}, ["eq"]),
        ("in", [1], ["not_in"]),
        ("not_in", [1], ["in"]),
        ("contains", "a", ["not_contains"]),
        ("not_contains", 1, ["contains"]),
    ],
)
def test_operators_are_swapped(operator: str, value: Any, swapped: list[str]) -> None:
    body = rulebook(rule("one", compare("amount", operator, value)))
    assert [one["operator"] for one in conditions_of(body, "operator_swapped")] == swapped


def test_tests_of_presence_are_swapped_and_not_negated_as_well() -> None:
    for operator, other in (("exists", "not_exists"), ("not_exists", "exists")):
        for wrapped in (False, True):
            test, swapped = compare("a", operator), compare("a", other)
            body = rulebook(rule("one", {"not": test} if wrapped else test))
            assert conditions_of(body, "operator_swapped") == [{"not": swapped} if wrapped else swapped]
            assert conditions_of(body, "test_negated") == []


def test_an_item_of_a_list_is_dropped_unless_it_is_the_only_one_or_listed_twice() -> None:
    def lists(*items: Any) -> list[Any]:
        body = rulebook(rule("one", compare("region", "in", list(items))))
        return [one["value"] for one in conditions_of(body, "list_item_dropped")]

    assert lists("a", "b") == [["b"], ["a"]]
    assert lists("a") == []
    assert lists(1, 1.0) == []
    assert lists(1, 1.0, True) == [[1, 1.0]]
    assert len(lists(*range(100))) == MAX_DROPPED_ITEMS


def test_combinators_are_swapped_and_lose_their_children_one_by_one() -> None:
    a, b, c = (compare(name, "exists") for name in "abc")
    body = rulebook(rule("one", {"any": [a, {"all": [b, c]}]}))
    assert conditions_of(body, "combinator_swapped") == [{"all": [a, {"all": [b, c]}]}, {"any": [a, {"any": [b, c]}]}]
    dropped = of_kind(body, "test_dropped")
    assert {one.path.removeprefix("rules[0].condition"): one.body["rules"][0]["condition"] for one in dropped} == {
        ".any[0]": {"any": [{"all": [b, c]}]},
        ".any[1]": {"any": [a]},
        ".any[1].all[0]": {"any": [a, {"all": [c]}]},
        ".any[1].all[1]": {"any": [a, {"all": [b]}]},
    }
    single = rulebook(rule("one", {"all": [a]}))
    assert conditions_of(single, "combinator_swapped", "test_dropped") == []
    twice = rulebook(rule("one", {"all": [a, b, a]}))
    assert conditions_of(twice, "test_dropped") == [{"all": [a, a]}]


def test_tests_are_wrapped_in_a_not_or_lose_theirs() -> None:
    test = compare("a", "eq", 1)
    assert conditions_of(rulebook(rule("one", test)), "test_negated") == [{"not": test}]
    assert conditions_of(rulebook(rule("one", {"not": test})), "test_negated") == [test]
    assert conditions_of(rulebook(rule("one", {"not": {"not": test}})), "test_negated") == [{"not": test}]
    both: Any = {"not": {"any": [test]}}
    assert conditions_of(rulebook(rule("one", both)), "test_negated") == [
        {"any": [test]},
        {"not": {"any": [{"not": test}]}},
    ]


def test_no_mutant_is_deeper_or_larger_than_a_rulebook_may_be() -> None:
    deepest: Any = compare("a", "eq", 1)
    for _ in range(MAX_CONDITION_DEPTH - 1):
        deepest = {"all": [deepest]}
    assert conditions_of(rulebook(rule("one", deepest)), "test_negated") == []
    full = [
        rule(f"rule_{n}", {"all": [compare("a", "eq", n), compare("b", "eq", n), compare("c", "eq", n)]})
        for n in range(64)
    ]
    assert sum(4 for _ in full) == MAX_CONDITION_NODES
    assert conditions_of(rulebook(*full), "test_negated") == []


def test_outcomes_are_exchanged_with_the_default_and_with_the_next_rule() -> None:
    low, high, same = (
        rule(name, compare("a", "exists"), priority=at) for name, at in (("low", 1), ("high", 2), ("same", 3))
    )
    same["outcome"] = high["outcome"]
    body = rulebook(low, high, same)
    outcomes = {
        (
            mutant.rule_id,
            (mutant.body["rules"] + [{"outcome": mutant.body["default_outcome"]}])[at]["outcome"]["action"],
        )
        for mutant in of_kind(body, "outcome_exchanged")
        for at in ({"low": 0, "high": 1, "same": 2, None: 3}[mutant.rule_id],)
    }
    assert outcomes == {("low", "default"), ("high", "default"), ("high", "low"), ("same", "default"), (None, "low")}


def test_neighbours_in_the_order_of_trial_exchange_different_priorities() -> None:
    body = rulebook(
        *(
            rule(name, compare("a", "exists"), **priority)
            for name, priority in (("c", {}), ("b", {"priority": 0}), ("a", {"priority": -1}), ("d", {"priority": 7}))
        )
    )
    exchanged = [
        {one["rule_id"]: one.get("priority") for one in mutant.body["rules"]}
        for mutant in of_kind(body, "priorities_exchanged")
    ]
    assert exchanged == [
        {"c": None, "b": 7, "a": -1, "d": 0},
        {"c": -1, "b": 0, "a": 0, "d": 7},
    ]


def test_rules_are_dropped_where_others_remain() -> None:
    assert of_kind(rulebook(SMALL), "rule_dropped") == []
    body = rulebook(SMALL, rule("other", compare("x", "exists")))
    assert [[one["rule_id"] for one in mutant.body["rules"]] for mutant in of_kind(body, "rule_dropped")] == [
        ["other"],
        ["approve_small"],
    ]


def test_the_input_schema_asks_for_less() -> None:
    body = rulebook(SMALL, required=["amount", "region"], amount="number", tags="array")
    required, declared = of_kind(body, "requirement_dropped"), of_kind(body, "declaration_dropped")
    assert [mutant.body["input_schema"]["required"] for mutant in required] == [["region"], ["amount"]]
    assert [list(mutant.body["input_schema"]["properties"]) for mutant in declared] == [["tags"], ["amount"]]
    assert declared[1].description == "input_schema: tags is no longer checked to be of type array"


def test_a_mutant_shares_what_did_not_change() -> None:
    body = rulebook(SMALL, rule("other", {"all": [compare("x", "exists"), compare("y", "exists")]}))
    for mutant in of_kind(body, "threshold_moved"):
        assert mutant.body["rules"][1] is body["rules"][1]
    for mutant in of_kind(body, "operator_swapped")[-1:]:
        assert mutant.body["rules"][1]["condition"]["all"][0] is body["rules"][1]["condition"]["all"][0]


def test_the_largest_rulebook_has_a_bounded_number_of_mutants() -> None:
    tests = [compare("f", "in", [f"{n}_{item}" for item in range(50)]) for n in range(MAX_CONDITION_NODES - 100)]
    body = rulebook(*(rule(f"rule_{n}", {"any": tests[n::100]}, outcome=outcome("one")) for n in range(100)))
    assert find_errors(body) == []
    assert 20 * len(tests) < sum(1 for _ in mutants_of(body)) < 27 * MAX_CONDITION_NODES
