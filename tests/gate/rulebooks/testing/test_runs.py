"""Runs of cases: which hold, and the differences of those that do not."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import JsonObject, parse
from gate.rulebooks.rulebook import Rulebook, load
from gate.rulebooks.testing.cases import Case, Expect, read_cases
from gate.rulebooks.testing.runs import Difference, observe, run
from tests.reference.strategies import facts, rulebooks
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

APPROVED: JsonObject = {"discount_percent": 10, "margin_percent": 22}
MISSING = {"margin_percent": 22}
INVALID = {"discount_percent": None, "margin_percent": "22"}


def pricing() -> Rulebook:
    return load(sample_rulebook())


def differences(given: dict[str, Any], expect: dict[str, Any]) -> list[Difference]:
    (result,) = run(pricing(), [Case("one", given, cast("Expect", expect))])
    assert result.held is not bool(result.differences)
    return list(result.differences)


NULL_DISCOUNT = {"field": "discount_percent", "expected": "number", "observed_type": "null"}
TEXT_MARGIN = {"field": "margin_percent", "expected": "number", "observed_type": "string"}


@pytest.mark.parametrize(
    ("given", "member", "holding", "failing"),
    [
        (APPROVED, "verdict", "yes", "no"),
        (APPROVED, "application_verdict", "APPROVE", "BLOCK"),
        (APPROVED, "action", "approve_discount", "reject_discount"),
        (APPROVED, "reason_code", "STANDARD_EXCEPTION_ALLOWED", "MARGIN_FLOOR_BREACH"),
        (APPROVED, "matched_rule_id", "approve_standard_exception", "block_below_margin_floor"),
        (APPROVED, "matched_rule_id", "approve_standard_exception", None),
        ({"discount_percent": 20, "margin_percent": 22}, "matched_rule_id", None, "approve_standard_exception"),
        (APPROVED, "missing_fields", [], ["discount_percent"]),
        (MISSING, "missing_fields", ["discount_percent"], []),
        ({}, "missing_fields", ["margin_percent", "discount_percent"], ["margin_percent"]),
        (APPROVED, "invalid_fields", [], ["margin_percent"]),
        (INVALID, "invalid_fields", ["margin_percent", "discount_percent"], ["margin_percent"]),
        (INVALID, "invalid_fields", [TEXT_MARGIN, NULL_DISCOUNT], [TEXT_MARGIN]),
        (
            INVALID,
            "invalid_fields",
            ["discount_percent", {"field": "margin_percent", "observed_type": "string"}],
            ["discount_percent", {"field": "margin_percent", "observed_type": "boolean"}],
        ),
        (INVALID, "invalid_fields", [NULL_DISCOUNT, TEXT_MARGIN], [{**NULL_DISCOUNT, "expected": "null"}, TEXT_MARGIN]),
    ],
)
def test_each_member_is_compared_by_itself(
    given: dict[str, Any], member: str, holding: object, failing: object
) -> None:
    assert differences(given, {member: holding}) == []
    (difference,) = differences(given, {member: failing})
    observed: dict[str, Any] = {**observe(pricing(), given)}
    assert difference == Difference(member, failing, observed[member])


def test_every_difference_is_given_in_one_order() -> None:
    expect = {"missing_fields": ["margin_percent"], "verdict": "no", "action": "approve_discount", "reason_code": "X1"}
    assert [each.member for each in differences(APPROVED, expect)] == ["verdict", "reason_code", "missing_fields"]


def test_results_come_in_the_order_of_the_cases() -> None:
    cases = [Case(name, APPROVED, {"verdict": verdict}) for name, verdict in (("b", "no"), ("a", "yes"))]
    assert [(result.case.name, result.held) for result in run(pricing(), cases)] == [("b", False), ("a", True)]


@settings(max_examples=examples(size(40, 400)), deadline=None)
@given(rulebooks(), facts())
def test_a_case_made_from_the_answer_of_a_rulebook_holds(body: dict[str, Any], values: dict[str, Any]) -> None:
    rulebook = load(parse(canonical(body)))
    answer = observe(rulebook, values)
    explained = rulebook.evaluator.explain(values)
    assert answer["missing_fields"] == explained.evaluation["missing_fields"]
    assert answer["invalid_fields"] == explained.evaluation["invalid_fields"]
    assert (answer["verdict"], answer["matched_rule_id"]) == (
        explained.outcome.decision,
        explained.outcome.matched_rule_id,
    )
    file = read_cases({"rulebook": "r", "cases": [{"name": "made", "facts": values, "expect": answer}]})
    assert [result.held for result in run(rulebook, file.cases)] == [True]
