"""Comparisons of two versions of a rulebook name every part that differs, and no other."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from gate.rulebooks.comparison import Field, compare
from tests.support.samples import sample_rulebook

RULE = "approve_standard_exception"


def versions() -> tuple[Any, Any]:
    """A rulebook, and a copy of it to change."""
    before = sample_rulebook()
    return before, deepcopy(before)


def rule_of(body: Any) -> Any:
    return next(rule for rule in body["rules"] if rule["rule_id"] == RULE)


def test_two_versions_with_other_names_and_the_same_rules_do_not_differ() -> None:
    before, after = versions()
    after["version"] = "later"
    after["rules"].reverse()
    found = compare(before, after)
    assert (found.rules, found.fields, found.default) == ((), (), None)


def test_a_rule_says_which_of_its_parts_differ() -> None:
    before, after = versions()
    rule_of(after)["priority"] = 77
    rule_of(after)["condition"] = {"field": "discount_percent", "operator": "lte", "value": 40}
    (found,) = compare(before, after).rules
    assert (found.name, found.differs) == (RULE, ("condition", "priority"))
    assert found.after is not None
    assert (found.after.priority, found.after.tree.text) == (77, "discount_percent lte 40")

    rule_of(after).update(deepcopy(rule_of(before)))
    rule_of(after)["outcome"]["reason_code"] = "another"
    assert [each.differs for each in compare(before, after).rules] == [("outcome",)]


def test_a_priority_of_zero_is_as_none() -> None:
    before, after = versions()
    rule_of(before)["priority"] = 0
    rule_of(after).pop("priority", None)
    assert compare(before, after).rules == ()


def test_values_that_only_python_takes_for_equal_differ() -> None:
    before, after = versions()
    rule_of(before)["condition"] = {"field": "discount_percent", "operator": "eq", "value": 1}
    rule_of(after)["condition"] = {"field": "discount_percent", "operator": "eq", "value": True}
    assert [each.differs for each in compare(before, after).rules] == [("condition",)]


def test_rules_that_were_added_and_removed_have_one_side() -> None:
    before, after = versions()
    rule_of(after)["rule_id"] = "renamed"
    added, removed = compare(before, after).rules
    assert (added.name, added.before, removed.name, removed.after) == ("renamed", None, RULE, None)


def test_fields_and_the_default_outcome_are_compared() -> None:
    before, after = versions()
    schema = after["input_schema"]
    schema["properties"]["discount_percent"] = {"type": "integer"}
    schema["properties"]["coupon"] = {"type": "string"}
    schema["required"].remove("margin_percent")
    after["default_outcome"]["action"] = "escalate"
    found = compare(before, after)
    assert [(each.name, each.before, each.after) for each in found.fields] == [
        ("coupon", None, Field("string", required=False)),
        ("discount_percent", Field("number", required=True), Field("integer", required=True)),
        ("margin_percent", Field("number", required=True), Field("number", required=False)),
    ]
    assert found.default is not None
    assert found.default.after == after["default_outcome"]
