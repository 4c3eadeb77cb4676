"""Files of cases: their shape, and the places of what is wrong with them."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from gate.contract.published import contract_index
from gate.encoding import resources
from gate.errors import MaterialRefused
from gate.rulebooks.testing.cases import MAX_FACTS_DEPTH, Case, CaseFile, read_cases
from tests.support.rulebooks import change


def document() -> Any:
    return {
        "$schema": "rulebook-cases-v1.schema.json",
        "schema_version": "rulebook_cases_v1",
        "description": "About discounts.",
        "rulebook": "pricing.json",
        "cases": [
            {"name": "one", "description": "Why.", "facts": {"margin": 3}, "expect": {"verdict": "no"}},
            {"name": "two", "facts": {}, "expect": {"matched_rule_id": None, "invalid_fields": ["a", {"field": "b"}]}},
        ],
    }


def nested(depth: int) -> Any:
    return {} if depth == 1 else {"a": nested(depth - 1)}


def errors(value: object) -> list[tuple[str, str]]:
    with pytest.raises(MaterialRefused) as refused:
        read_cases(value)
    assert refused.value.code == "CASES_INVALID"
    return [(error.field, error.code) for error in refused.value.errors]


def test_a_file_is_read_without_its_comments() -> None:
    jsonschema.Draft202012Validator(resources.schema("rulebook-cases-v1")).validate(document())
    assert read_cases(document()) == CaseFile(
        "pricing.json",
        (
            Case("one", {"margin": 3}, {"verdict": "no"}),
            Case("two", {}, {"matched_rule_id": None, "invalid_fields": ["a", {"field": "b"}]}),
        ),
    )


def test_what_may_be_left_out() -> None:
    smallest = {"rulebook": "r", "cases": [{"name": "n", "facts": {}, "expect": {"verdict": "yes"}}]}
    assert read_cases(smallest).cases[0].name == "n"


@pytest.mark.parametrize(
    ("path", "value", "field", "code"),
    [
        ("schema_version", "rulebook_cases_v2", "schema_version", "const"),
        ("rulebok", "x", "rulebok", "unknown_field"),
        ("rulebook", "", "rulebook", "too_short"),
        ("rulebook", "r" * 301, "rulebook", "too_long"),
        ("rulebook", "a\x00b", "rulebook", "pattern"),
        ("cases", [], "cases", "too_few"),
        ("cases.0.name", "", "cases[0].name", "too_short"),
        ("cases.0.name", "n" * 201, "cases[0].name", "too_long"),
        ("cases.1.name", "one", "cases[1].name", "duplicate"),
        ("cases.0.facts", [], "cases[0].facts", "type"),
        ("cases.0.expected", {}, "cases[0].expected", "unknown_field"),
        ("cases.0.expect", {}, "cases[0].expect", "too_few"),
        ("cases.0.expect.verdict", "maybe", "cases[0].expect.verdict", "enum"),
        ("cases.0.expect.verdict", False, "cases[0].expect.verdict", "enum"),
        ("cases.0.expect.application_verdict", "approve", "cases[0].expect.application_verdict", "pattern"),
        ("cases.0.expect.action", " pay", "cases[0].expect.action", "pattern"),
        ("cases.0.expect.reason_code", None, "cases[0].expect.reason_code", "type"),
        ("cases.0.expect.matched_rule_id", "No", "cases[0].expect.matched_rule_id", "pattern"),
        ("cases.0.expect.missing_fields", "a", "cases[0].expect.missing_fields", "type"),
        ("cases.1.expect.invalid_fields.0", "", "cases[1].expect.invalid_fields[0]", "pattern"),
        ("cases.1.expect.invalid_fields.0", 7, "cases[1].expect.invalid_fields[0]", "type"),
        ("cases.1.expect.invalid_fields.1", {}, "cases[1].expect.invalid_fields[1].field", "required"),
        (
            "cases.1.expect.invalid_fields.1.expected",
            "text",
            "cases[1].expect.invalid_fields[1].expected",
            "enum",
        ),
        ("cases.0.facts", nested(MAX_FACTS_DEPTH + 1), "cases[0].facts", "too_deep"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(path: str, value: object, field: str, code: str) -> None:
    changed = document()
    change(changed, path, value)
    assert errors(changed) == [(field, code)]


@pytest.mark.parametrize("member", ["rulebook", "cases", "cases.0.name", "cases.0.facts", "cases.0.expect"])
def test_what_is_missing_is_named(member: str) -> None:
    changed = document()
    change(changed, member, remove=True)
    assert errors(changed) == [(member.replace(".0", "[0]"), "required")]


@pytest.mark.parametrize("value", [None, [], "cases", 1])
def test_a_file_that_holds_no_object(value: object) -> None:
    assert errors(value) == [("", "type")]


def test_the_deepest_facts_that_a_request_can_send_are_read() -> None:
    changed = document()
    changed["cases"][0]["facts"] = nested(MAX_FACTS_DEPTH)
    assert len(read_cases(changed).cases) == 2


def test_at_most_ten_thousand_cases() -> None:
    case = document()["cases"][0]
    many = [{**case, "name": str(number)} for number in range(10_001)]
    assert len(read_cases({"rulebook": "r", "cases": many[:-1]}).cases) == 10_000
    assert errors({"rulebook": "r", "cases": many}) == [("cases", "too_many")]


def test_no_more_errors_are_listed_than_anyone_reads() -> None:
    case = document()["cases"][0]
    assert len(errors({"rulebook": "r", "cases": [case] * 200})) == 50


def test_the_schema_is_published() -> None:
    assert {"rulebook-cases-v1", "rulebook-test-report"} <= {entry["name"] for entry in contract_index()["schemas"]}
