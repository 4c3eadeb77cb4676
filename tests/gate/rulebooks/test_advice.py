"""Advice to authors: every trap that is valid and not meant is named, and what is meant is left alone."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import given, settings

from gate.adapters.registry import registered
from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.rulebooks import advice
from gate.rulebooks.advice import find_warnings
from gate.rulebooks.bundles import own_rulebooks
from tests.reference.strategies import rulebooks
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size


def warned(body: Any, code: str, **others: Any) -> dict[str, str]:
    """The messages of the warnings with a code, by their places."""
    found = find_warnings(body, **others)
    return {warning.field: warning.message for warning in found if warning.code == code}


def reading(field: str, **types: str) -> Any:
    """A rulebook with one test of a field, over a schema."""
    return over(types, rule("only", compare(field, "exists")))


def over(types: dict[str, str], *rules: Any) -> Any:
    """A rulebook over a schema."""
    body = rulebook(*rules)
    body["input_schema"]["properties"] = {name: {"type": type_} for name, type_ in types.items()}
    return body


def test_warnings_name_rules_that_can_fall_silent_and_facts_that_would_be_refused() -> None:
    body: Any = sample_rulebook()
    assert find_warnings(body) == []
    body["input_schema"]["properties"]["country"] = {"type": "string"}
    body["rules"][0]["condition"] = {
        "any": [
            {"field": "country", "operator": "not_in", "value": ["DE"]},
            {"field": "margin_percent", "operator": "neq", "value": 3},
            {"field": "country", "operator": "gt", "value": "DE"},
            {"not": {"field": "country", "operator": "neq", "value": "DE"}},
            {"not": {"not": {"field": "country", "operator": "not_contains", "value": "D"}}},
        ]
    }
    body["input_schema"]["properties"] |= {"action": {"type": "string"}, "order.verdict": {"type": "string"}}
    body["input_schema"]["required"].append("x.adapter_facts")
    assert {(warning.code, warning.field) for warning in find_warnings(body)} == {
        ("silent_when_absent", "rules[0].condition.any[0]"),
        ("never_holds", "rules[0].condition.any[2]"),
        ("silent_when_absent", "rules[0].condition.any[4].not.not"),
        ("output_material", "input_schema.properties.action"),
        ("output_material", "input_schema.required[2]"),
        ("unread_requirement", "input_schema.required[2]"),
    }


def test_an_approving_rule_that_falls_silent_is_no_warning() -> None:
    body: Any = sample_rulebook()
    body["input_schema"]["properties"]["country"] = {"type": "string"}
    body["rules"][1]["condition"] = {"field": "country", "operator": "neq", "value": "DE"}
    assert find_warnings(body) == []


# --- Fields -----------------------------------------------------------------------------------------------------------


def test_a_misspelt_field_is_named_with_the_one_that_was_meant() -> None:
    body = rulebook(
        rule("late", {"any": [compare("days_since_purchse", "gt", 30), compare("amount", "gt", 500)]}),
        required=["days_since_purchase"],
        amount="number",
    )
    found = warned(body, "undeclared_field")
    assert list(found) == ["rules[0].condition.any[0].field"]
    assert "Did you mean 'days_since_purchase'?" in found["rules[0].condition.any[0].field"]


@pytest.mark.parametrize(
    ("field", "types", "meant"),
    [
        ("daysSincePurchase", {"days_since_purchase": "number"}, "days_since_purchase"),
        ("Amount", {"amount": "number", "count": "number"}, "amount"),
        ("customer.contry", {"customer.country": "string", "customer.name": "string"}, "customer.country"),
        ("ordr.total", {"order": "object"}, "order.total"),
        ("order.totl", {"order": "object", "order.total": "number"}, "order.total"),
        ("weather", {"amount": "number"}, None),
        ("a", {}, None),
    ],
)
def test_a_field_that_is_not_declared_is_warned_of(field: str, types: dict[str, str], meant: str | None) -> None:
    (message,) = warned(reading(field, **types), "undeclared_field").values()
    assert message.endswith(f"Did you mean {meant!r}?" if meant else "Declare it in input_schema.properties.")


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("order.total", reading("order.total", order="object")),
        ("order.total", rulebook(rule("only", compare("order.total", "exists")), required=["order"])),
        ("order.items.count", reading("order.items.count", **{"order.items": "object", "order": "object"})),
        ("order", reading("order", **{"order.total": "number"})),
        ("amount", rulebook(rule("only", compare("amount", "exists")), required=["amount"])),
        ("amount", reading("amount", amount="null")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_of_a_declared_object_is_no_misspelling(field: str, body: Any) -> None:
    assert find_warnings(body) == []


def test_a_field_below_one_that_is_no_object_can_never_be_there() -> None:
    (message,) = warned(reading("tags.0", tags="array"), "undeclared_field").values()
    assert "'tags' is declared as array, so 'tags.0' is always absent" in message


def test_the_facts_of_an_adapter_are_its_own() -> None:
    (refunds,) = (adapter for adapter in registered() if adapter.adapter_id == "refund_facts")
    schema = refunds.facts_schema
    made = next(iter(refunds.manifest["output_schema"]["properties"]))
    body = rulebook(rule("only", {"any": [compare(made, "exists"), compare("made_up", "exists")]}), required=["amont"])
    assert warned(body, "undeclared_field").keys() == {
        "rules[0].condition.any[0].field",
        "rules[0].condition.any[1].field",
    }
    assert {warning.code for warning in find_warnings(body, schema)} == {"not_made_by_adapter"}
    assert warned(body, "not_made_by_adapter", adapter_facts=schema).keys() == {
        "input_schema.required[0]",
        "rules[0].condition.any[1].field",
    }
    (own,) = (own for own in own_rulebooks() if own.rulebook.rulebook_id == "refund_order_policy")
    assert find_warnings(own.rulebook.body, schema) == []


@pytest.mark.parametrize(
    ("schema", "makes"),
    [
        ({"properties": {"a": {"type": "object", "properties": {"b": {"type": "number"}}}}}, ["a", "a.b"]),
        ({"properties": {"a": {"type": "object"}}}, ["a", "a.b", "a.c", "a.b.c"]),
        ({"properties": {"a": {"type": "number"}}}, ["a"]),
        ({"properties": {}}, []),
    ],
)
def test_a_schema_says_which_facts_there_can_be(schema: Any, makes: list[str]) -> None:
    for field in ("a", "a.b", "a.c", "a.b.c", "z"):
        assert (warned(reading(field), "not_made_by_adapter", adapter_facts=schema) == {}) is (field in makes), field


def test_a_hostile_schema_costs_a_bounded_number_of_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    class Counted(SequenceMatcher[str]):
        """Counts what is compared."""

        def set_seq1(self, a: Any) -> None:
            nonlocal compared
            compared += 1
            super().set_seq1(a)

    monkeypatch.setattr(advice, "SequenceMatcher", Counted)
    tests = [compare(f"unknown_{number}", "exists") for number in range(30)]
    known = {f"known_{number}": "object" for number in range(5_000)}
    body = over(known, *(rule(f"rule_{number}", {"any": tests}) for number in range(8)))
    assert len(find_warnings(body)) == 50
    assert compared < 5_000


def test_an_approval_of_a_request_without_facts_is_warned_of() -> None:
    absent = compare("blocked", "not_exists")
    body = over({"blocked": "boolean", "amount": "number"}, rule("open", absent))
    (message,) = warned(body, "approves_without_facts").values()
    assert message == "A request without any facts is approved by the rule open. Require the facts that the rules read."
    assert warned(body, "approves_without_facts", adapter_facts={"properties": {"blocked": {}}}) == {}
    body["default_outcome"] |= {"decision": "yes", "verdict": "APPROVE"}
    body["rules"][0]["condition"] = compare("blocked", "exists")
    (message,) = warned(body, "approves_without_facts").values()
    assert "approved by the default outcome" in message
    body["input_schema"]["required"] = ["amount"]
    assert warned(body, "approves_without_facts") == {}
    (message,) = warned(body, "approves_by_default").values()
    assert "misspelled" in message


def test_a_rule_that_approves_what_is_absent_is_warned_of() -> None:
    listed = compare("country", "in", ["RU"])
    body = over({"country": "string"}, rule("open", {"not": listed}))
    body["input_schema"]["required"] = ["amount"]
    assert warned(body, "approves_when_absent").keys() == {"rules[0].condition.not"}
    body["rules"][0]["condition"] = {"all": [{"not": listed}, compare("country", "exists")]}
    assert warned(body, "approves_when_absent") == {}
    body["rules"][0]["condition"] = {"not": {"not": listed}}
    assert warned(body, "approves_when_absent") == {}
    body["rules"][0]["condition"] = {"not": listed}
    body["input_schema"]["required"].append("country")
    assert warned(body, "approves_when_absent") == {}


# --- Rules and outcomes -----------------------------------------------------------------------------------------------


def test_equal_priorities_with_other_outcomes_are_named_in_the_order_in_which_they_are_tried() -> None:
    there = compare("amount", "exists")
    body = rulebook(rule("z", there), rule("b", there, priority=5), rule("a", there), amount="number")
    (message,) = warned(body, "equal_priorities").values()
    assert "2 rules of priority 0 have different outcomes" in message
    assert "order of their ids: a, z." in message
    assert warned(body, "equal_priorities").keys() == {"rules[0]"}


def test_equal_priorities_are_fine_where_the_order_does_not_matter() -> None:
    there = compare("amount", "exists")
    same = rule("one", there)["outcome"]
    body = rulebook(rule("one", there), rule("two", there, outcome=dict(same)), amount="number")
    assert find_warnings(body) == []
    body = rulebook(rule("one", there, priority=1), rule("two", there, priority=2), amount="number")
    assert find_warnings(body) == []


def test_many_rules_of_one_priority_make_one_short_warning() -> None:
    body = rulebook(*(rule(f"rule_{number:03}", compare("a", "exists")) for number in range(100)), a="number")
    (message,) = warned(body, "equal_priorities").values()
    assert "rule_000, rule_001, rule_002, rule_003, rule_004 and 95 more" in message


CONTRADICTIONS = [
    *(("yes", verdict) for verdict in ("BLOCK", "DENY", "DENIED", "REVIEW", "DEFER", "NEEDS_INPUT", "HARD_BLOCK")),
    *(("yes", verdict) for verdict in ("REJECT_PAYOUT", "NOT_APPROVED", "HOLD", "MANUAL_REVIEW", "NO")),
    *(("no", verdict) for verdict in ("APPROVE", "APPROVED", "ALLOW", "AUTO_APPROVE", "REVIEW", "GRANTED", "YES")),
    *(("review", verdict) for verdict in ("APPROVE", "BLOCK", "PASS_ALL", "DECLINED")),
]
CONSISTENT = [
    *(("yes", verdict) for verdict in ("APPROVE", "ALLOWED", "FREE_CANCEL", "TRIAL_AVAILABLE", "NO_REVIEW_NEEDED")),
    *(("no", verdict) for verdict in ("BLOCK", "DENIED", "EXPIRED", "NOT_ALLOWED", "NON_RETURNABLE", "DO_NOT_PAY")),
    *(("review", verdict) for verdict in ("REVIEW", "DEFER", "NEEDS_INPUT", "UNKNOWN", "VV", "ROUTE_TO_OWNER")),
]


@pytest.mark.parametrize(
    ("decision", "verdict", "contradicts"),
    [(*pair, True) for pair in CONTRADICTIONS] + [(*pair, False) for pair in CONSISTENT],
)
def test_a_verdict_that_says_another_decision_is_warned_of(decision: str, verdict: str, contradicts: bool) -> None:
    body = rulebook(rule("only", compare("amount", "exists")), amount="number")
    outcome = {**body["default_outcome"], "decision": decision, "verdict": verdict}
    body["rules"][0]["outcome"] = body["default_outcome"] = outcome
    places = {"rules[0].outcome.decision", "default_outcome.decision"}
    assert warned(body, "contradictory_outcome").keys() == (places if contradicts else set())


@settings(max_examples=examples(size(40, 100)), deadline=None)
@given(rulebooks())
def test_every_valid_rulebook_can_be_looked_over(body: dict[str, Any]) -> None:
    found = find_warnings(parse(canonical(body)))
    assert len(found) <= 50
    assert all(warning.message.endswith((".", "?")) for warning in found)


@pytest.mark.parametrize(
    ("test", "type_", "code", "message"),
    [
        (compare("x", "eq", "5"), "number", "never_holds", 'the text "5": the eq test never holds.'),
        (compare("x", "in", ["a", None]), "integer", "never_holds", "test never holds."),
        (compare("x", "eq", 1.5), "integer", "never_holds", "the number 1.5"),
        (compare("x", "contains", 5), "string", "never_holds", "the number 5: the contains test"),
        (compare("x", "gt", 5), "string", "never_holds", "'x' is declared as string"),
        (compare("x", "neq", True), "string", "always_holds", "the neq test always holds where 'x' is present."),
        (compare("x", "not_in", [1]), "string", "always_holds", "the array [1]"),
    ],
)  # fmt: skip
def test_a_test_that_the_declared_type_decides_is_warned_of(test: Any, type_: str, code: str, message: str) -> None:
    body = over({"x": type_}, rule("r1", test))
    (found,) = [warning for warning in find_warnings(body) if warning.code in ("never_holds", "always_holds")]
    assert (found.code, found.field) == (code, "rules[0].condition")
    assert message in found.message


@pytest.mark.parametrize(
    "test",
    [compare("x", "eq", 5), compare("x", "in", ["a", 5]), compare("x", "in", []), compare("x", "exists")],
)
def test_a_test_that_the_declared_type_leaves_open_is_not(test: Any) -> None:
    body = over({"x": "number"}, rule("r1", test))
    assert {"never_holds", "always_holds"}.isdisjoint(warning.code for warning in find_warnings(body))


def test_a_required_field_that_nothing_uses_is_named_with_the_one_that_was_meant() -> None:
    body = over({"country": "string", "order.total": "number"}, rule("r1", compare("country", "eq", "AT")))
    body["input_schema"]["required"] = ["county", "order"]
    (found,) = [warning for warning in find_warnings(body) if warning.code == "unread_requirement"]
    assert found.field == "input_schema.required[0]"
    assert found.message.endswith("Did you mean 'country'?")
