"""The nearest flip of a decision is that of brute force, and the evaluator gives what it says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gate.rulebooks.analysis import nearest_flips
from gate.rulebooks.analysis.flips import MAX_CHANGED, MAX_FLIPS, Flip
from gate.rulebooks.evaluation import compile_rulebook, value_at
from tests.support.grids import Axes, TooLarge, fields_of, look_up
from tests.support.random_rulebooks import facts_near, rulebooks
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

MOST = 1_000


def texts(body: Any, facts: Any, **asked: Any) -> list[str]:
    return [flip.text for flip in nearest_flips(body, facts, **asked)]


@settings(max_examples=examples(size(60, 3_000)), suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
def test_no_change_of_fewer_facts_gives_another_verdict(data: st.DataObject) -> None:
    body: Any = data.draw(rulebooks())
    try:
        grid = Axes([body]).grid(most=MOST)
    except TooLarge:
        assume(False)
    facts = data.draw(st.one_of(st.sampled_from(grid), facts_near([body])))
    evaluator = compile_rulebook(body)
    before = evaluator.decide(facts).decision
    others = [other for other in grid if is_another(evaluator.decide(other), before)]
    found = nearest_flips(body, facts)
    for flip in found:
        hold(flip, facts, evaluator, before)
        assert len(flip.changes) <= len(found[0].changes) <= MAX_CHANGED
    if facts in grid:
        least = min((changed_names(facts, other) for other in others), default=None)
        if least is None or not found:
            assert least is None or least > MAX_CHANGED
            assert found == []
        elif any("." in field for field in fields_of(body)):
            assert least <= min(len({change.field.split(".")[0] for change in flip.changes}) for flip in found)
        else:
            assert len(found[0].changes) == least


def hold(flip: Flip, facts: Any, evaluator: Any, before: str) -> None:
    """What a flip says is so, and it changes nothing else."""
    outcome = evaluator.decide(flip.facts)
    assert (outcome.status, outcome.decision) == ("ok", flip.result.decision)
    assert outcome.decision != before
    changed = {change.field.split(".")[0] for change in flip.changes}
    assert {name: value for name, value in flip.facts.items() if name not in changed} == {
        name: value for name, value in facts.items() if name not in changed
    }
    for change in flip.changes:
        assert change.after == value_at(flip.facts, change.field)
        assert change.text in flip.text


def is_another(outcome: Any, before: str) -> bool:
    return bool(outcome.status == "ok" and outcome.decision != before)


def changed_names(one: Any, other: Any) -> int:
    return sum(repr(look_up(one, name)) != repr(look_up(other, name)) for name in {*one, *other})


def test_the_numbers_of_a_flip_are_the_nearest_with_no_more_decimals() -> None:
    body = sample_rulebook()
    assert texts(body, {"discount_percent": 20, "margin_percent": 40}) == [
        "discount_percent 20 -> 15 gives yes (STANDARD_EXCEPTION_ALLOWED)",
        "margin_percent 40 -> below 15 (such as 14) gives no (MARGIN_FLOOR_BREACH)",
    ]
    assert texts(body, {"discount_percent": 10.25, "margin_percent": 15}, to="review") == [
        "discount_percent 10.25 -> above 15 (such as 15.01) gives review (NO_RULE_MATCHED)"
    ]
    assert texts(body, {"discount_percent": 16.5, "margin_percent": 14.2}, to="yes") == [
        "discount_percent 16.5 -> 15 and margin_percent 14.2 -> 15 give yes (STANDARD_EXCEPTION_ALLOWED)"
    ]


def test_facts_that_are_missing_are_told_with_what_they_would_have_to_be() -> None:
    assert texts(sample_rulebook(), {"discount_percent": 10}, to="yes") == [
        "margin_percent absent -> 15 gives yes (STANDARD_EXCEPTION_ALLOWED)"
    ]


def test_a_flip_is_told_to_machines_without_the_sides_that_are_absent() -> None:
    body: Any = sample_rulebook()
    (found,) = nearest_flips(body, {"discount_percent": 10}, to="yes")
    assert found.to_dict() == {
        "changes": [{"field": "margin_percent", "after": 15}],
        "facts": {"discount_percent": 10, "margin_percent": 15},
        "result": {
            "decision": "yes",
            "verdict": "APPROVE",
            "action": "approve_discount",
            "reason_code": "STANDARD_EXCEPTION_ALLOWED",
            "rule_id": "approve_standard_exception",
        },
        "text": found.text,
    }


def test_only_the_facts_that_may_change_do() -> None:
    body, facts = sample_rulebook(), {"discount_percent": 20, "margin_percent": 10}
    assert texts(body, facts, among={"margin_percent"}) == ["margin_percent 10 -> 15 gives review (NO_RULE_MATCHED)"]
    assert texts(body, facts, among={"discount_percent"}) == []
    assert texts(body, facts, among=(), to="yes") == []
    assert texts(body, facts, to="no") == []


@pytest.mark.parametrize(
    ("condition", "facts", "expected"),
    [
        (compare("risk", "eq", "low"), {"risk": "high"}, 'risk "high" -> "low"'),
        (compare("risk", "neq", "high"), {"risk": "high"}, 'risk "high" -> another text (such as "other")'),
        (compare("tags", "contains", "vip"), {"tags": ["new"]}, 'tags ["new"] -> ["vip"]'),
        (compare("order.total", "gte", 50), {"order": {"total": 49.5}}, "order.total 49.5 -> 50"),
        (compare("order.total", "gte", 50), {"order": {"id": 7}}, "order.total absent -> 50"),
        (compare("order.total", "gte", 50), {}, "order.total absent -> 50"),
        ({"field": "hold", "operator": "not_exists"}, {"hold": True}, "hold true -> absent"),
        (compare("paid", "eq", True), {"paid": False}, "paid false -> true"),
        # An id that only looks like a number is no number.
        (compare("amount", "lt", 5), {"amount": "9"}, 'amount "9" -> 4'),
    ],
)
def test_facts_of_every_type_flip(condition: Any, facts: Any, expected: str) -> None:
    body = rulebook(rule("only", condition))
    (found,) = nearest_flips(body, facts, to="yes")
    assert found.text.startswith(f"{expected} gives yes")
    rest = {name: value for name, value in facts.items() if name not in expected}
    assert {name: value for name, value in found.facts.items() if name in rest} == rest


def test_a_fact_below_a_value_that_holds_none_cannot_change() -> None:
    body = rulebook(rule("only", compare("order.total", "gte", 50)))
    assert nearest_flips(body, {"order": 5}, to="yes") == []


def test_a_rulebook_without_another_verdict_has_no_flip() -> None:
    body: Any = sample_rulebook()
    for each in (*(one["outcome"] for one in body["rules"]), body["default_outcome"]):
        each["decision"] = "no"
    assert nearest_flips(body, {"discount_percent": 20, "margin_percent": 40}) == []


def test_a_large_rulebook_is_answered() -> None:
    rules = [
        rule(f"rule_{number}", {"all": [compare(f"f_{number}", "gte", 5), compare("amount", "lt", number)]})
        for number in range(100)
    ]
    found = nearest_flips(rulebook(*rules), {"amount": 99.5})
    assert [len(flip.changes) for flip in found] == [2] * MAX_FLIPS
