"""What a table changes is the member that it shows, as an author types it, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gate.drafting.diagnosis import diagnose
from gate.drafting.editing import add_rule, add_test, remove, set_value, typed_value
from gate.drafting.splicing import read
from gate.encoding.canonical import canonical
from gate.encoding.yaml_text import write_yaml
from gate.errors import MaterialRefused
from tests.reference.strategies import rulebooks
from tests.support.tiers import examples
from tests.support.torture import size

TEXT = """\
# The prices.
schema_version: rulebook_v1
rulebook_id: prices
version: "1"
input_schema:
  required: []
  properties:
    amount: {type: number}
    segment: {type: string}
rules:
  # The first.
  - rule_id: one
    condition: {field: amount, operator: lte, value: 5} # a test
    outcome: {decision: "yes", verdict: APPROVE, action: pay, reason_code: SMALL}
  - rule_id: two
    priority: 3
    condition:
      all:
        - {field: segment, operator: in, value: [gold, silver]}
        - {field: amount, operator: exists}
    outcome: {decision: "no", verdict: BLOCK, action: stop, reason_code: NOT}
default_outcome: {decision: review, verdict: REVIEW, action: ask, reason_code: NONE}
"""


def at(text: str, *steps: str | int) -> Any:
    found: Any = read(text).value
    for step in steps:
        found = found[step]
    return found


@pytest.mark.parametrize(
    ("path", "typed", "value"),
    [
        ("rules[0].condition.value", "7.50", 7.5),
        ("rules[0].condition.value", " 8 ", 8),
        ("rules[0].condition.value", "gold", "gold"),
        ("rules[1].condition.all[0].value", "gold", ["gold"]),
        ("rules[1].condition.all[0].value", "gold, 7", ["gold", "7"]),
        ("rules[1].condition.all[0].value", '["a, b"]', ["a, b"]),
        ("rules[1].condition.all[0].value", "", []),
        ("rules[0].priority", "-4", -4),
        ("rules[1].priority", "10", 10),
        ("rules[0].outcome.decision", "no", "no"),
        ("rules[0].rule_id", "first", "first"),
        ("version", "2", "2"),
    ],
)
def test_a_member_has_what_was_typed(path: str, typed: str, value: object) -> None:
    made = set_value(TEXT, path, typed)
    steps = [int(step) if step.isdecimal() else step for step in path.replace("[", ".").replace("]", "").split(".")]
    assert at(made, *steps) == value
    assert {line for line in TEXT.splitlines() if "#" in line} - {
        line for line in made.splitlines() if "#" in line
    } <= {"    condition: {field: amount, operator: lte, value: 5} # a test"}
    assert made.count("#") == TEXT.count("#")


def test_a_text_field_takes_numbers_for_texts() -> None:
    text = TEXT.replace("field: amount, operator: lte, value: 5", "field: segment, operator: eq, value: gold")
    assert at(set_value(text, "rules[0].condition.value", "7"), "rules", 0, "condition", "value") == "7"
    assert at(set_value(text, "rules[0].condition.value", '"7"'), "rules", 0, "condition", "value") == "7"


def test_an_operator_brings_the_value_that_it_needs() -> None:
    test = ("rules", 0, "condition")
    made = set_value(TEXT, "rules[0].condition.operator", "exists")
    assert at(made, *test) == {"field": "amount", "operator": "exists"}
    assert at(set_value(made, "rules[0].condition.operator", "gt"), *test)["value"] == 0
    listed = set_value(TEXT, "rules[0].condition.operator", "in")
    assert at(listed, *test)["value"] == [5]
    assert at(set_value(listed, "rules[0].condition.operator", "eq"), *test)["value"] == 5


def test_rules_and_tests_come_and_go() -> None:
    made = add_rule(TEXT, like="one")
    assert [rule["rule_id"] for rule in at(made, "rules")] == ["one", "one_2", "two"]
    assert at(add_rule(TEXT), "rules", 2, "condition", "field") == "amount"
    assert diagnose(add_rule(TEXT)).rulebook is not None
    assert remove(made, "rules[1]") == TEXT
    assert at(remove(TEXT, "rules[1].condition.all[1]"), "rules", 1, "condition", "all") == [
        {"field": "segment", "operator": "in", "value": ["gold", "silver"]}
    ]
    assert "priority" not in remove(TEXT, "rules[1].priority")


def test_a_new_test_repeats_the_one_before_it_and_changes_nothing_yet() -> None:
    small = {"field": "amount", "operator": "lte", "value": 5}
    assert at(add_test(TEXT, "rules[0].condition"), "rules", 0, "condition") == {"all": [small, small]}
    both = ("rules", 1, "condition", "all")
    tests = at(TEXT, *both)
    assert at(add_test(TEXT, "rules[1].condition"), *both) == [*tests, tests[1]]
    # Of tests and groups of tests, it is the last test.
    grouped = json.dumps({"rules": [{"condition": {"any": [small, {"all": tests}]}}]})
    assert at(add_test(grouped, "rules[0].condition"), "rules", 0, "condition", "any") == [small, {"all": tests}, small]


@pytest.mark.parametrize(
    ("path", "typed", "code"),
    [
        ("rules[9].rule_id", "x", "DRAFT_PATH_UNKNOWN"),
        ("rules[0].none.x", "x", "DRAFT_PATH_UNKNOWN"),
        ("rules[0].rule_id.x", "x", "DRAFT_PATH_UNKNOWN"),
        ("", "x", "DRAFT_PATH_UNKNOWN"),
        ("rules[0]]", "x", "DRAFT_PATH_UNKNOWN"),
        ("rules[0].priority", "high", "DRAFT_VALUE_INVALID"),
        ("rules[0].priority", "true", "DRAFT_VALUE_INVALID"),
        ("rules[0].priority", "1.5", "DRAFT_VALUE_INVALID"),
    ],
)
def test_what_cannot_be_changed_is_refused(path: str, typed: str, code: str) -> None:
    with pytest.raises(MaterialRefused) as refused:
        set_value(TEXT, path, typed)
    assert refused.value.code == code


@pytest.mark.parametrize("text", ["rules: 7\n", "a: [\n", "[]", "{}"])
def test_a_text_that_is_no_rulebook_is_refused(text: str) -> None:
    with pytest.raises(MaterialRefused):
        add_rule(text)
    with pytest.raises(MaterialRefused):
        set_value(text, "rules[0].priority", "1")


@settings(max_examples=examples(size(60, 400)), deadline=None)
@given(rulebooks(), st.booleans())
def test_what_a_table_shows_of_a_value_is_that_value_again(body: dict[str, Any], yaml: bool) -> None:
    text = write_yaml(json.loads(json.dumps(body))) if yaml else json.dumps(body)
    for index, rule in enumerate(body["rules"]):
        test = rule["condition"]
        if "value" not in test:
            continue
        declared = body["input_schema"]["properties"].get(test["field"], {}).get("type")
        if not is_allowed(test["value"], test["operator"], declared):
            continue
        typed = typed_value(test["value"], test["operator"], declared)
        made = set_value(text, f"rules[{index}].condition.value", typed)
        assert canonical(at(made, "rules", index, "condition", "value")) == canonical(test["value"])


def is_allowed(value: object, operator: str, declared: str | None) -> bool:
    """A field of texts is compared with a text, or with a list of texts where the operator takes one."""
    if declared != "string" or isinstance(value, str):
        return True
    return operator in ("in", "not_in") and isinstance(value, list) and all(isinstance(item, str) for item in value)


@given(
    st.text() | st.lists(st.text(), max_size=3) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
    st.sampled_from(["eq", "in", "contains"]),
    st.sampled_from([None, "number", "string"]),
)
def test_any_value_is_shown_so_that_it_is_read_again(value: Any, operator: str, declared: str | None) -> None:
    value = [value] if operator == "in" and not isinstance(value, list) else value
    assume(is_allowed(value, operator, declared))
    text = json.dumps(
        {
            "input_schema": {"properties": {} if declared is None else {"a": {"type": declared}}},
            "rules": [{"condition": {"field": "a", "operator": operator, "value": 0}}],
        }
    )
    typed = typed_value(value, operator, declared)
    made = set_value(text, "rules[0].condition.value", typed)
    assert canonical(at(made, "rules", 0, "condition", "value")) == canonical(value)
