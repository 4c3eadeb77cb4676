"""Explanations say what the evaluation of a record says, and nothing that it does not."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gate.encoding.shapes import shape
from gate.records.documents import Record
from gate.records.explanation import explanation
from tests.support.samples import make_record, sample_request


def record_of(facts: dict[str, Any]) -> Record:
    record: Record = make_record(sample_request(**{"discount_percent": 10, "margin_percent": 22, **facts}))
    return record


def explained(**facts: Any) -> dict[str, Any]:
    found = cast("dict[str, Any]", explanation(record_of(facts)))
    assert shape("decision-explanation").errors(found) == []
    return found


@pytest.mark.parametrize(
    ("facts", "verdict", "because"),
    [
        ({}, "yes", "the rule approve_standard_exception matched"),
        ({"margin_percent": 9}, "no", "the rule block_below_margin_floor matched"),
        ({"discount_percent": 40}, "review", "no rule matched, and the default outcome of the rulebook applies"),
        ({"discount_percent": "much"}, "review", "facts that the rulebook requires are missing or of the wrong type"),
    ],
)
def test_the_first_sentence_says_the_verdict_and_why(facts: dict[str, Any], verdict: str, because: str) -> None:
    found = explained(**facts)
    assert found["verdict"] == verdict
    assert found["sentences"][0] == f"The verdict is {verdict}: {because}."


@pytest.mark.parametrize("facts", [{}, {"margin_percent": 9}, {"discount_percent": 40}, {"discount_percent": "much"}])
def test_the_data_has_every_rule_and_test_of_the_evaluation(facts: dict[str, Any]) -> None:
    evaluation = record_of(facts)["evaluation"]
    assert evaluation is not None
    found = explained(**facts)
    assert [(rule["rule_id"], rule["matched"]) for rule in found["rules"]] == [
        (rule["rule_id"], rule["passed"]) for rule in evaluation["rules"]
    ]
    assert [(test["path"], test["holds"]) for rule in found["rules"] for test in rule["tests"]] == [
        (test["path"], test["passed"]) for rule in evaluation["rules"] for test in rule["tests"]
    ]


@pytest.mark.parametrize("facts", [{"margin_percent": 9}, {"discount_percent": 40}, {"discount_percent": "much"}])
def test_what_is_no_yes_says_not_to_act(facts: dict[str, Any]) -> None:
    assert explained(**facts)["sentences"][-1].endswith("do not perform it.")


def test_of_a_held_case_the_action_is_said_to_be_the_outcomes() -> None:
    sentences = explained(discount_percent=40)["sentences"]
    told = (
        "The rulebook sends the case to route_to_owner, the action of its outcome; the reason code is NO_RULE_MATCHED."
    )
    assert sentences[-1].startswith(told)
    assert explained()["sentences"][-1].startswith("The action is approve_discount, and the reason code is ")


def test_an_erased_evaluation_is_said_to_be_erased() -> None:
    record = cast("Record", {**record_of({}), "evaluation": None})
    found = explanation(record)
    assert shape("decision-explanation").errors(found) == []
    assert found["sentences"][0].endswith("its tests were erased.")
    assert found["rules"] == []
