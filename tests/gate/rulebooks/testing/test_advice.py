"""Advice about cases: misspelt facts and impossible expectations do not pass silently."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings

from gate.encoding.canonical import canonical
from gate.encoding.shapes import MAX_ERRORS
from gate.encoding.strict_json import parse
from gate.rulebooks.rulebook import load
from gate.rulebooks.testing.advice import find_case_warnings
from gate.rulebooks.testing.cases import Case, Expect
from gate.rulebooks.testing.runs import observe
from tests.reference.strategies import facts, rulebooks
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size


def case(values: dict[str, Any], **expect: Any) -> Case:
    return Case("one", values, cast("Expect", expect or {"verdict": "review"}))


def warnings(body: Any, *cases: Case) -> list[tuple[str, str]]:
    return [(warning.field, warning.message) for warning in find_case_warnings(load(body).body, cases)]


class TestFacts:
    """Facts that the rulebook does not know."""

    def test_a_misspelt_fact_is_named_with_the_one_that_was_meant(self) -> None:
        ((field, message),) = warnings(sample_rulebook(), case({"discount_percent": 1, "marginPercnt": 2}))
        assert field == "cases[0].facts.marginPercnt"
        assert message.endswith("so this fact changes nothing. Did you mean 'margin_percent'?")

    def test_facts_that_are_declared_required_or_read_are_known(self) -> None:
        body = rulebook(
            rule("aa", compare("read", "eq", 1)), required=["required", "whole"], declared="number", order="object"
        )
        known = {"read": 1, "required": {"any": 1}, "declared": 2, "order": {"total": 3}, "whole": []}
        assert warnings(body, case(known)) == []

    def test_a_fact_beside_one_that_is_read_in_the_same_object(self) -> None:
        body = rulebook(rule("aa", compare("customer.country", "eq", "DE")), customer="object")
        fine, wrong = case({"customer": {"country": "DE"}}), case({"customer": {"contry": "DE"}})
        ((field, message),) = warnings(body, fine, wrong)
        assert field == "cases[1].facts.customer.contry"
        assert "Did you mean 'customer.country'?" in message
        # The wrong type is tested, not misspelt.
        assert warnings(body, case({"customer": None})) == []

    def test_a_test_that_compares_an_object_reads_everything_in_it(self) -> None:
        compared, present = compare("order", "eq", {"id": 1}), compare("order", "exists")
        total = compare("order.total", "gt", 1)
        values = case({"order": {"id": 1}})
        assert warnings(rulebook(rule("aa", {"any": [compared, total]})), values) == []
        assert len(warnings(rulebook(rule("aa", {"any": [present, total]})), values)) == 1

    def test_a_name_with_a_dot_is_out_of_reach(self) -> None:
        body = rulebook(rule("aa", compare("customer.country", "eq", "DE")))
        ((field, message),) = warnings(body, case({"customer.country": "DE"}))
        assert field == "cases[0].facts.customer.country"
        assert "Nest it" in message

    def test_a_fact_of_several_cases_is_named_once(self) -> None:
        cases = [case({"colour": 1}) for _ in range(4)]
        ((field, message),) = warnings(sample_rulebook(), *cases)
        assert field == "cases[0].facts.colour"
        assert "Remove it, or declare it in the rulebook. 3 more cases have it." in message

    def test_hostile_facts_are_looked_at_in_bounds(self) -> None:
        huge = case({f"{number}{'x' * 50_000}": 1 for number in range(400)})
        found = warnings(sample_rulebook(), huge)
        assert len(found) == MAX_ERRORS
        assert max(len(field) + len(message) for field, message in found) < 1_000


class TestExpectations:
    """Expectations that can never hold."""

    @pytest.mark.parametrize(
        ("member", "value", "place", "message"),
        [
            ("matched_rule_id", "block_below_margin_flor", "", "Did you mean 'block_below_margin_floor'?"),
            ("matched_rule_id", "zzz", "", "The rulebook has no rule 'zzz', so the case can never hold. Correct it"),
            ("reason_code", "MARGIN_FLOOR_BREACHED", "", "Did you mean 'MARGIN_FLOOR_BREACH'?"),
            ("application_verdict", "APROVE", "", "Did you mean 'APPROVE'?"),
            ("action", "approve", "", "No outcome has the action 'approve'"),
            ("missing_fields", ["margin_percent", "margin"], "[1]", "does not require 'margin'"),
            ("invalid_fields", ["margin"], "[0]", "declares no type for 'margin'"),
            ("invalid_fields", [{"field": "margin"}], "[0]", "declares no type for 'margin'"),
            ("invalid_fields", [{"field": "margin_percent", "expected": "string"}], "[0].expected", "as number"),
        ],
    )
    def test_each_member(self, member: str, value: object, place: str, message: str) -> None:
        ((field, found),) = warnings(sample_rulebook(), case({}, **{member: value}))
        assert field == f"cases[0].expect.{member}{place}"
        assert message in found

    def test_members_that_no_outcome_has_together(self) -> None:
        expect = {"verdict": "yes", "matched_rule_id": "block_below_margin_floor"}
        ((field, message),) = warnings(sample_rulebook(), case({}, **expect))
        assert field == "cases[0].expect"
        assert message.endswith('together: verdict "yes", matched_rule_id "block_below_margin_floor".')

    def test_missing_input_is_an_outcome_where_the_rulebook_asks_for_input(self) -> None:
        expecting = case({}, reason_code="INPUT_SCHEMA_FAILED")
        assert warnings(sample_rulebook(), expecting) == []
        assert len(warnings(rulebook(), expecting)) == 1


@settings(max_examples=examples(size(30, 300)), deadline=None)
@given(rulebooks(), facts())
def test_an_answer_of_the_rulebook_is_never_impossible(body: dict[str, Any], values: dict[str, Any]) -> None:
    found = load(parse(canonical(body)))
    cases = [Case("made", values, cast("Expect", observe(found, values)))]
    assert [each for each in find_case_warnings(found.body, cases) if each.code != "unknown_fact"] == []


@settings(max_examples=examples(size(30, 300)), deadline=None)
@given(rulebooks(), facts())
def test_a_fact_that_is_warned_of_changes_nothing(body: dict[str, Any], values: dict[str, Any]) -> None:
    found = load(parse(canonical(body)))
    unknown = [
        each.field.removeprefix("cases[0].facts.")
        for each in find_case_warnings(found.body, [case(values)])
        if each.code == "unknown_fact"
    ]
    without = {name: value for name, value in values.items() if name not in unknown}
    assert observe(found, without) == observe(found, values)
