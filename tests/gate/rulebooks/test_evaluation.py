"""Evaluation: every operator on every type, order of rules, explanation, and agreement with a naive evaluator."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.rulebooks.evaluation import compile_rulebook
from gate.rulebooks.rulebook import find_errors, load
from tests.reference import evaluator as reference
from tests.reference.strategies import rulebooks_and_facts
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.samples import cases, sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

ALWAYS = {"not": {"field": "absent", "operator": "exists"}}


@pytest.mark.parametrize(("operator", "expected", "facts", "holds"), cases("operators"))
def test_an_operator_holds_or_not(operator: str, expected: Any, facts: dict[str, Any], holds: bool) -> None:
    value = () if operator in ("exists", "not_exists") else (expected,)
    evaluator = load(rulebook(rule("hit", compare("f", operator, *value)))).evaluator
    assert (evaluator.decide(facts).matched_rule_id == "hit") is holds
    explained = evaluator.explain(facts)
    assert (explained.outcome.matched_rule_id == "hit") is holds
    (told,) = explained.evaluation["rules"][0]["tests"]
    assert told["passed"] is holds
    assert ("observed" in told) is ("f" in facts)


@pytest.mark.parametrize(
    ("facts", "holds"),
    [
        ({"a": {"b": {"c": 1}}}, True),
        ({"a": {"b": {"c": 1.0, "d": 2}}}, True),
        ({"a.b.c": 1}, False),
        ({"a": {"b.c": 1}}, False),
        ({"a": [{"b": {"c": 1}}]}, False),
        ({"a": {"b": None}}, False),
        ({"a": {"b": "c"}}, False),
        ({"a": None}, False),
        ({}, False),
    ],
)
def test_a_dotted_field_is_a_path_through_objects(facts: dict[str, Any], holds: bool) -> None:
    evaluator = load(rulebook(rule("hit", compare("a.b.c", "eq", 1)))).evaluator
    assert (evaluator.decide(facts).matched_rule_id == "hit") is holds


def test_combinators_nest_and_not_inverts() -> None:
    condition = {
        "any": [
            {"all": [compare("a", "eq", 1), {"not": compare("b", "eq", 2)}]},
            {"not": {"any": [compare("a", "exists"), compare("c", "exists")]}},
        ]
    }
    evaluator = load(rulebook(rule("hit", condition))).evaluator
    matched = {
        name: evaluator.decide(facts).matched_rule_id == "hit"
        for name, facts in {
            "first holds": {"a": 1},
            "inner not fails": {"a": 1, "b": 2},
            "second holds": {},
            "neither": {"c": 1},
        }.items()
    }
    assert matched == {"first holds": True, "inner not fails": False, "second holds": True, "neither": False}


def test_higher_priority_wins_and_ties_go_by_rule_id_whatever_the_order() -> None:
    rules = [
        rule("zz_high", ALWAYS, priority=7),
        rule("b_tie", ALWAYS, priority=5),
        rule("a_tie", ALWAYS, priority=5),
        rule("no_priority", ALWAYS),
        rule("below", ALWAYS, priority=-1),
    ]
    for ordered in (rules, rules[::-1]):
        assert load(rulebook(*ordered)).evaluator.decide({}).matched_rule_id == "zz_high"
        assert (
            load(rulebook(*[r for r in ordered if r["rule_id"] != "zz_high"])).evaluator.decide({}).matched_rule_id
            == "a_tie"
        )
        assert (
            load(rulebook(*[r for r in ordered if r["rule_id"] in ("no_priority", "below")]))
            .evaluator.decide({})
            .matched_rule_id
            == "no_priority"
        )


def test_a_blocking_rule_of_higher_priority_wins_over_an_approving_one() -> None:
    evaluator = load(sample_rulebook()).evaluator
    assert evaluator.decide({"discount_percent": 5, "margin_percent": 14.99}).decision == "no"
    assert evaluator.decide({"discount_percent": 5, "margin_percent": 15}).decision == "yes"
    assert evaluator.decide({"discount_percent": 16, "margin_percent": 15}).decision == "review"


@pytest.mark.parametrize(
    ("type_", "accepted", "refused"),
    [
        ("number", [0, 1.5, -3, 1e300], [True, "1", None, [1], {}]),
        ("integer", [0, 1.0, -3.0, 9007199254740991, 1e20], [1.5, True, "1", None, []]),
        ("string", ["", "x"], [1, None, True, []]),
        ("boolean", [True, False], [0, 1, "true", None]),
        ("array", [[], [1]], [{}, "[]", None]),
        ("object", [{}, {"a": 1}], [[], "{}", None]),
        ("null", [None], [0, "", False, [], {}]),
    ],
)
def test_a_declared_type_accepts_json_types(type_: str, accepted: list[Any], refused: list[Any]) -> None:
    evaluator = load(rulebook(f=type_)).evaluator
    assert {evaluator.decide({"f": value}).status for value in accepted} == {"ok"}
    assert {evaluator.decide({"f": value}).status for value in refused} == {"needs_input"}
    assert evaluator.decide({}).status == "ok", "an optional field may be absent"


def test_missing_and_mistyped_facts_need_input_and_are_named() -> None:
    evaluator = load(rulebook(required=["z", "a.b", "n"], n="number", s="string", i="integer")).evaluator
    explained = evaluator.explain({"n": "5", "s": None, "i": 1.5, "a": {}})
    told = explained.outcome
    assert (told.status, told.decision, told.verdict, told.action, told.reason_code, told.matched_rule_id) == (
        "needs_input",
        "review",
        "NEEDS_INPUT",
        "collect_required_input",
        "INPUT_SCHEMA_FAILED",
        None,
    )
    assert explained.evaluation == {
        "matched": False,
        "missing_fields": ["a.b", "z"],
        "invalid_fields": [
            {"field": "i", "expected": "integer", "observed_type": "number"},
            {"field": "n", "expected": "number", "observed_type": "string"},
            {"field": "s", "expected": "string", "observed_type": "null"},
        ],
        "rules": [],
    }
    assert evaluator.decide({"n": "5"}) == told


def test_a_required_field_that_is_null_is_present() -> None:
    assert load(rulebook(required=["f"])).evaluator.decide({"f": None}).status == "ok"


def test_the_explanation_holds_every_test_up_to_the_match_without_short_cut() -> None:
    explained = load(sample_rulebook()).evaluator.explain({"discount_percent": 16, "margin_percent": 20})
    assert explained.outcome.matched_rule_id is None
    assert explained.evaluation["matched"] is False
    assert [told["rule_id"] for told in explained.evaluation["rules"]] == [
        "block_below_margin_floor",
        "approve_standard_exception",
    ]
    assert explained.evaluation["rules"][1] == {
        "rule_id": "approve_standard_exception",
        "priority": 50,
        "passed": False,
        "tests": [
            {
                "path": "condition.all[0]",
                "field": "discount_percent",
                "operator": "lte",
                "expected": 15,
                "observed": 16,
                "passed": False,
            },
            {
                "path": "condition.all[1]",
                "field": "margin_percent",
                "operator": "gte",
                "expected": 15,
                "observed": 20,
                "passed": True,
            },
        ],
    }
    blocked = load(sample_rulebook()).evaluator.explain({"discount_percent": 16, "margin_percent": 2})
    assert [told["rule_id"] for told in blocked.evaluation["rules"]] == ["block_below_margin_floor"]


@pytest.mark.parametrize(
    ("observed", "size"),
    [("x" * 1022, None), ("x" * 1023, 1025), ("\u0000" * 170, None), ("\u0000" * 171, 1028), ([1] * 600, 1201)],
)
def test_a_large_observed_value_is_shown_by_its_digest(observed: Any, size: int | None) -> None:
    explained = load(rulebook(rule("hit", compare("f", "exists")))).evaluator.explain({"f": observed})
    test: Any = explained.evaluation["rules"][0]["tests"][0]
    shown = test["observed"]
    if size is None:
        assert shown == observed
    else:
        assert set(shown) == {"sha256", "bytes"}
        assert shown["bytes"] == size


@settings(max_examples=examples(size(100, 300)), deadline=None)
@given(rulebooks_and_facts())
def test_compiled_evaluation_equals_the_naive_one(drawn: tuple[dict[str, Any], dict[str, Any]]) -> None:
    body, facts = parse(canonical(drawn[0])), parse(canonical(drawn[1]))
    assert find_errors(body) == []
    evaluator = compile_rulebook(body)
    explained = evaluator.explain(facts)
    told = explained.outcome
    ours = {
        "status": told.status,
        "decision": told.decision,
        "verdict": told.verdict,
        "action": told.action,
        "reason_code": told.reason_code,
        "matched_rule_id": told.matched_rule_id,
        "evaluation": explained.evaluation,
    }
    # Compared as canonical bytes: Python would take True for 1.
    assert canonical(ours) == canonical(reference.evaluate(body, facts))
    assert evaluator.decide(facts) == told
