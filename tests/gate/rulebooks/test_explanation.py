"""Conditions as trees: results are those of the evaluation, and no sign contradicts the result above it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.rulebooks.explanation import Tree, explain_rules
from gate.rulebooks.rulebook import load
from tests.reference.strategies import facts, rulebooks
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.tiers import examples
from tests.support.torture import size


def nodes(tree: Tree) -> Iterator[Tree]:
    yield tree
    for child in tree.children:
        yield from nodes(child)


def tree_of(condition: Any, values: Any) -> Tree:
    found = load(rulebook(rule("only", condition)))
    (explained,) = explain_rules(found.body, found.evaluator.explain(values).evaluation)
    return explained.tree


@settings(max_examples=examples(size(60, 150)), deadline=None)
@given(rulebooks(), facts())
def test_a_tree_says_what_the_evaluation_says_and_its_signs_add_up(
    body: dict[str, Any], values: dict[str, Any]
) -> None:
    found = load(parse(canonical(body)))
    evaluation = found.evaluator.explain(values).evaluation
    explained = explain_rules(found.body, evaluation)
    assert [one.rule["rule_id"] for one in explained] == [one["rule_id"] for one in evaluation["rules"]]
    for one, tried in zip(explained, evaluation["rules"], strict=True):
        assert (one.matched, one.priority) == (tried["passed"], tried["priority"])
        assert one.tree.holds == one.tree.supports == tried["passed"]
        tests = {test["path"]: test["passed"] for test in tried["tests"]}
        assert {node.path: node.holds for node in nodes(one.tree) if not node.children} == tests
        for node in nodes(one.tree):
            signs = [child.supports for child in node.children]
            # Inside a `not`, all needs what any needs outside, and the other way round.
            inverted = node.holds != node.supports
            if node.text == "not":
                assert [node.supports] == signs
            elif node.children:
                together = all if (node.text == "all") is not inverted else any
                assert node.supports == together(signs)
            assert node.reason


@settings(max_examples=examples(size(24, 50)), deadline=None)
@given(rulebooks())
def test_without_facts_every_rule_is_shown_in_the_order_in_which_it_is_tried(body: dict[str, Any]) -> None:
    found = load(parse(canonical(body)))
    explained = explain_rules(found.body)
    order = sorted(found.body["rules"], key=lambda one: (-one.get("priority", 0), one["rule_id"]))
    assert [one.rule for one in explained] == order
    assert all(node.holds is node.supports is None for one in explained for node in nodes(one.tree))


def test_a_false_test_inside_a_not_supports_the_match() -> None:
    tree = tree_of({"not": compare("tags", "contains", "fraud")}, {"tags": ["vip"]})
    assert (tree.holds, tree.supports, tree.reason) == (True, True, "the condition inside is false")
    (test,) = tree.children
    assert (test.text, test.holds, test.supports) == ('tags contains "fraud"', False, True)
    assert test.reason == 'the fact is ["vip"]'


def test_every_kind_of_node_gives_its_reason() -> None:
    amount = compare("amount", "gt", 5)
    missing = compare("nowhere", "eq", 1)
    reasons = {
        "both inside are true": ({"all": [amount, amount]}, True),
        "1 of 2 inside is false": ({"all": [amount, missing]}, False),
        "1 of 2 inside is true": ({"any": [amount, missing]}, True),
        "2 of 3 inside are true": ({"any": [amount, amount, missing]}, True),
        "both inside are false": ({"any": [missing, missing]}, False),
        "all 3 inside are false": ({"any": [missing, missing, missing]}, False),
        "the one condition inside is true": ({"all": [amount]}, True),
        "the condition inside is true": ({"not": amount}, False),
        "the field is absent": (missing, False),
        "the fact is 7": (amount, True),
    }
    for reason, (condition, holds) in reasons.items():
        tree = tree_of(condition, {"amount": 7})
        assert (tree.reason, tree.holds) == (reason, holds)
    assert tree_of(amount, {"amount": "7"}).reason == 'the fact is "7", which is not a number'


def test_long_values_are_cut() -> None:
    tree = tree_of(compare("text", "eq", "y" * 5000), {"text": "x" * 900})
    assert max(len(tree.text), len(tree.reason)) < 200
