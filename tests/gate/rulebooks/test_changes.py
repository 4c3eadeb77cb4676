"""What a rulebook changes: every difference is found, none is made up, and each reads as its author would say it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings

from gate.rulebooks.changes import Change, changes
from tests.reference.strategies import rulebooks
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.tiers import examples


def small(**more: Any) -> Any:
    condition = {"all": [compare("amount", "lte", 100), {"not": compare("flag", "exists")}]}
    return rulebook(rule("pay", condition, **more), rule("block", compare("amount", "gt", 1000)), amount="number")


def test_a_threshold_that_moved_is_one_test() -> None:
    later = small()
    later["rules"][0]["condition"]["all"][0]["value"] = 500
    assert changes(small(), later) == [Change("rule pay", "test", "amount lte 100", "amount lte 500")]


def test_a_condition_that_is_built_differently_is_shown_whole() -> None:
    later = small()
    later["rules"][0]["condition"] = {"any": [compare("amount", "lt", 1), {"all": [compare("vip", "eq", True)]}]}
    before = "amount lte 100 and (not (flag exists))"
    assert changes(small(), later) == [
        Change("rule pay", "condition", before, "amount lt 1 or (vip eq true)"),
    ]


def test_rules_that_came_and_went() -> None:
    later = small()
    gone = later["rules"].pop()
    later["rules"].append(rule("hold", compare("amount", "gt", 700)))
    outcome = gone["outcome"]
    told = f"{outcome['decision']}, {outcome['reason_code']}, {outcome['action']}"
    new = later["rules"][1]["outcome"]
    assert changes(small(), later) == [
        Change("rule hold", "rule", None, f"amount gt 700: {new['decision']}, {new['reason_code']}, {new['action']}"),
        Change("rule block", "rule", f"amount gt 1000: {told}", None),
    ]


@pytest.mark.parametrize("member", ["decision", "verdict", "action", "reason_code"])
def test_each_member_of_an_outcome(member: str) -> None:
    later = small()
    for outcome in (later["rules"][0]["outcome"], later["default_outcome"]):
        outcome[member] = "CHANGED"
    found = changes(small(), later)
    assert [(of.where, of.what, of.after) for of in found] == [
        ("rule pay", member, "CHANGED"),
        ("default outcome", member, "CHANGED"),
    ]


def test_priorities_and_fields() -> None:
    later = small(priority=7)
    later["input_schema"] = {"required": ["amount"], "properties": {"amount": {"type": "integer"}}}
    assert changes(small(), later) == [
        Change("rule pay", "priority", "0", "7"),
        Change("field amount", "field", "number, may be absent", "integer, required"),
    ]
    del later["input_schema"]["properties"]["amount"]
    assert changes(small(priority=7), later)[0].after == "any type, required"


def meant(body: Any) -> Any:
    """All of a rulebook that a comparison looks at."""
    rules = {each["rule_id"]: {**each, "priority": each.get("priority", 0)} for each in body["rules"]}
    schema = body["input_schema"]
    types = {name: of["type"] for name, of in schema["properties"].items()}
    return rules, body["default_outcome"], types, set(schema["required"])


@settings(max_examples=examples(100))
@given(rulebooks(), rulebooks())
def test_rulebooks_differ_where_they_are_not_the_same(before: Any, after: Any) -> None:
    assert changes(before, deepcopy(before)) == []
    assert bool(changes(before, after)) == (meant(before) != meant(after))
