"""Explanations of cases that do not hold: the rules at issue, and only the tests that made the difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from hypothesis import given, settings

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.rulebooks.explanation import Tree
from gate.rulebooks.rulebook import load
from gate.rulebooks.testing.cases import Case, Expect
from gate.rulebooks.testing.failures import Explainer, Reason
from gate.rulebooks.testing.runs import observe, run
from tests.reference.strategies import facts, rulebooks
from tests.support.rulebooks import compare, outcome, rule, rulebook
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size


def reasons(body: Any, values: dict[str, Any], **expect: Any) -> list[Reason]:
    found = load(body)
    (result,) = run(found, [Case("one", values, cast("Expect", expect))])
    return Explainer(found).reasons(result)


def leaves(tree: Tree | None) -> Iterator[Tree]:
    if tree is not None:
        yield from () if tree.children else [tree]
        for child in tree.children:
            yield from leaves(child)


def told(found: list[Reason]) -> list[tuple[str, list[str]]]:
    """The sentences, each with the tests that are shown below it."""
    return [(reason.text, [leaf.text for leaf in leaves(reason.tree)]) for reason in found]


APPROVE = "approve_standard_exception"
BLOCK = "block_below_margin_floor"


def test_a_case_that_holds_needs_none() -> None:
    assert reasons(sample_rulebook(), {"discount_percent": 1, "margin_percent": 20}, verdict="yes") == []


def test_the_rule_that_matched_and_the_one_expected_with_the_tests_between_them() -> None:
    found = reasons(sample_rulebook(), {"discount_percent": 1, "margin_percent": 14}, matched_rule_id=APPROVE)
    assert told(found) == [
        (f"{BLOCK} matched (priority 100)", ["margin_percent lt 15"]),
        (f"{APPROVE} would not have matched (priority 50)", ["margin_percent gte 15"]),
    ]
    assert [reason.rule_id for reason in found] == [BLOCK, APPROVE]
    (shown,) = leaves(found[1].tree)
    assert (shown.supports, shown.reason) == (False, "the fact is 14")


def test_a_rule_that_was_tried_and_the_default_outcome() -> None:
    found = reasons(sample_rulebook(), {"discount_percent": 16, "margin_percent": 20}, verdict="yes")
    assert told(found) == [
        ("no rule matched, so the default outcome holds", []),
        (f"{APPROVE} did not match (priority 50)", ["discount_percent lte 15"]),
    ]


def test_a_rule_that_comes_too_late() -> None:
    first, second = rule("first", compare("a", "exists"), priority=9), rule("second", compare("a", "eq", 1))
    assert told(reasons(rulebook(first, second), {"a": 1}, matched_rule_id="second")) == [
        ("first matched (priority 9)", ["a exists"]),
        ("second would also have matched (priority 0), but first comes first", []),
    ]


def test_of_any_and_not_only_the_parts_that_mattered_are_shown() -> None:
    condition = {
        "any": [
            {"all": [compare("a", "eq", 1), compare("b", "eq", 1)]},
            {"not": {"any": [compare("c", "eq", 1), compare("d", "eq", 1)]}},
        ]
    }
    body = rulebook(rule("only", condition))
    matched = reasons(body, {"a": 1, "b": 1, "c": 1, "d": 2}, verdict="no")
    assert told(matched)[0] == ("only matched (priority 0)", ["a eq 1", "b eq 1"])
    missed = reasons(body, {"a": 1, "b": 2, "c": 1, "d": 2}, verdict="yes")
    assert told(missed)[1] == ("only did not match (priority 0)", ["b eq 1", "c eq 1"])


def test_of_the_rules_that_fit_the_nearest_come_first() -> None:
    far = rule("far", {"all": [compare("a", "eq", number) for number in (1, 2, 3)]}, priority=9)
    # Any one of its tests would do.
    near = rule("near", {"any": [compare("a", "eq", number) for number in (1, 2, 3)]}, priority=8)
    middle = rule("middle", {"not": {"any": [compare("a", "eq", 0), compare("a", "lt", 1)]}}, priority=7)
    last = rule("last", {"not": {"all": [compare("a", "eq", 0), compare("a", "lt", 1)]}}, priority=6)
    other = {**rule("other", compare("a", "eq", 5)), "outcome": outcome("other", "no")}
    found = reasons(rulebook(far, near, middle, last, other), {"a": 0}, verdict="yes")
    assert [reason.rule_id for reason in found] == [None, "near", "last", "middle", None]
    assert found[-1].text == "1 more rule has a matching outcome"


def test_missing_and_invalid_input_is_the_reason_where_there_is_some() -> None:
    assert told(reasons(sample_rulebook(), {"margin_percent": "9"}, verdict="yes")) == [
        ("discount_percent is required but missing", []),
        ("margin_percent must be of type number, but is of type string", []),
        ("so no rule was tried", []),
    ]


def test_expected_faults_of_the_input_that_are_not_there() -> None:
    values = {"discount_percent": 1, "margin_percent": 20}
    found = reasons(
        sample_rulebook(),
        values,
        missing_fields=["margin_percent", "x"],
        invalid_fields=["y", {"field": "margin_percent"}],
    )
    assert told(found)[1:] == [
        ("margin_percent is not missing", []),
        ("x is not required", []),
        ("no type is declared for y", []),
        ("margin_percent has the declared type number", []),
    ]


def test_expectations_that_no_rule_fits() -> None:
    values = {"discount_percent": 1, "margin_percent": 20}
    for expect, text in {
        (
            "reason_code",
            "NO_RULE_MATCHED",
        ): "only the default outcome is as expected, and it applies where no rule matches",
        ("matched_rule_id", None): "only the default outcome is as expected, and it applies where no rule matches",
        (
            "reason_code",
            "INPUT_SCHEMA_FAILED",
        ): "only missing or invalid input gives the expected outcome, and no input is missing or invalid",
        ("reason_code", "NOBODYS"): "no outcome of the rulebook is as expected",
        ("matched_rule_id", "nobodys"): "the rulebook has no rule nobodys",
    }.items():
        found = reasons(sample_rulebook(), values, **dict([expect]))
        assert [reason.text for reason in found[1:]] == [text]


@settings(max_examples=examples(size(30, 300)), deadline=None)
@given(rulebooks(), facts())
def test_a_rule_is_shown_with_the_tests_that_decided_it(body: dict[str, Any], values: dict[str, Any]) -> None:
    found = load(parse(canonical(body)))
    answer = observe(found, values)
    explainer = Explainer(found)
    for expected in found.body["rules"]:
        rule_id = expected["rule_id"]
        (result,) = run(found, [Case("one", values, {"matched_rule_id": rule_id})])
        told_of = explainer.reasons(result)
        assert bool(told_of) is (answer["matched_rule_id"] != rule_id)
        for reason in told_of:
            if reason.tree is None:
                continue
            matches = reason.rule_id == answer["matched_rule_id"]
            assert reason.tree.supports is matches
            assert all(leaf.supports is matches for leaf in leaves(reason.tree))
            assert list(leaves(reason.tree))
