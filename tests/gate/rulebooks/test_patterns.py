"""The product's own policies and patterns: what each rulebook decides, and what each pattern is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema
import pytest

from gate.adapters.invocation import TrustedAdapters
from gate.adapters.registry import registered
from gate.adapters.worker import Workers
from gate.encoding import resources
from gate.rulebooks.advice import find_warnings
from gate.rulebooks.bundles import own_rulebooks
from gate.rulebooks.patterns import find_pattern, patterns, with_tag
from gate.rulebooks.rulebook import Rulebook
from tests.independent.verifier import canonical_hash
from tests.support.samples import cases

POLICIES: Final = {f"{own.rulebook.rulebook_id} {own.rulebook.version}": own for own in own_rulebooks()}
TABLES: Final = {f"{table['policy_id']} {table['version']}": table for table in cases("own_rulebooks")}
PATTERNS: Final = [pattern["pattern_id"] for pattern in patterns()]


def facts_of(table: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    facts = {**table["base"], **case["facts"]}
    return {name: value for name, value in facts.items() if name not in case.get("absent", [])}


@pytest.fixture(scope="module")
def adapters() -> Iterator[TrustedAdapters]:
    """The adapters of this release, and what runs them."""
    running = TrustedAdapters(registered(), Workers(registered()))
    yield running
    running.close()


def facts_for(request: dict[str, Any], adapters: TrustedAdapters) -> Mapping[str, Any]:
    """The facts of a request: those that it sends, or those that its adapter makes."""
    if "adapter" not in request:
        sent: dict[str, Any] = request["context"]["inputs"]
        return sent
    assert "inputs" not in request["context"]
    return adapters.facts(adapters.invocation(request["adapter"])).values


def rulebook(name: str) -> Rulebook:
    return POLICIES[name].rulebook


def test_every_policy_has_a_table() -> None:
    assert TABLES.keys() == POLICIES.keys()


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, id=f"{name} {json.dumps(case['facts'])} {case['reason_code']}")
        for name, table in TABLES.items()
        for case in table["cases"]
    ],
)
def test_a_policy_decides_as_its_table_says(name: str, case: dict[str, Any]) -> None:
    outcome = rulebook(name).evaluator.decide(facts_of(TABLES[name], case))
    assert (outcome.decision, outcome.reason_code) == (case["verdict"], case["reason_code"])


@pytest.mark.parametrize("name", TABLES)
def test_a_table_reaches_every_rule_the_default_and_the_input_schema(name: str) -> None:
    body = rulebook(name).body
    outcomes = [rule["outcome"] for rule in body["rules"]] + [body["default_outcome"]]
    expected = {outcome["reason_code"] for outcome in outcomes} | {"INPUT_SCHEMA_FAILED"}
    # Each rule has a reason of its own, so that the reasons tell which of them decided.
    assert len(expected) == len(outcomes) + 1
    assert {case["reason_code"] for case in TABLES[name]["cases"]} == expected


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_gives_its_author_nothing_to_mend(name: str) -> None:
    body = rulebook(name).body
    assert find_warnings(body) == []
    assert body["default_outcome"]["decision"] == "review"
    # Blocking rules go first, then reviews, then approvals, each at a priority of its own.
    rules = sorted(body["rules"], key=lambda rule: -rule["priority"])
    decisions = [rule["outcome"]["decision"] for rule in rules]
    assert decisions == sorted(decisions, key=["no", "review", "yes"].index)
    assert len({rule["priority"] for rule in rules}) == len(rules)


@pytest.mark.parametrize("name", POLICIES)
def test_a_missing_required_fact_is_asked_for(name: str) -> None:
    base = TABLES[name]["base"]
    for required in rulebook(name).body["input_schema"]["required"]:
        facts = {other: value for other, value in base.items() if other != required}
        assert rulebook(name).evaluator.decide(facts).reason_code == "INPUT_SCHEMA_FAILED"


def test_one_version_of_each_policy_is_active_and_a_historical_one_decides_otherwise() -> None:
    active = [own.rulebook.rulebook_id for own in own_rulebooks() if own.status == "active"]
    assert sorted(set(active)) == active
    historical = [own.rulebook for own in own_rulebooks() if own.status == "historical"]
    assert [(old.rulebook_id, old.version) for old in historical] == [("refund_policy", "2026-02-01")]
    facts = TABLES["refund_policy 2026-09-01"]["base"]
    decisions = [
        rulebook(f"refund_policy {version}").evaluator.decide(facts) for version in ("2026-02-01", "2026-09-01")
    ]
    assert [outcome.decision for outcome in decisions] == ["review", "yes"]


def test_the_policy_that_the_documents_cite_is_unchanged() -> None:
    assert (
        rulebook("pricing_exception 2026-06-11").hash
        == "c986eb64d4d724d7a86436458d3d6502a97fea01ef1f7f37c015d94426fb56ee"
    )


def test_the_patterns_are_the_five_over_their_policies() -> None:
    assert [(pattern["pattern_id"], pattern["policy_id"]) for pattern in patterns()] == [
        ("agent_action_gate", "agent_action_policy"),
        ("crm_writeback_gate", "crm_writeback_policy"),
        ("pricing_exception", "pricing_exception"),
        ("refund_from_order", "refund_order_policy"),
        ("refund_review", "refund_policy"),
    ]


@pytest.mark.parametrize("pattern_id", PATTERNS)
def test_a_pattern_is_whole_and_hashed(pattern_id: str) -> None:
    pattern = find_pattern(pattern_id)
    assert pattern is not None
    schema = resources.schema("policy-patterns")
    jsonschema.Draft202012Validator({**schema, "$ref": "#/$defs/pattern"}).validate(pattern)
    assert pattern["pattern_hash"] == canonical_hash({k: v for k, v in pattern.items() if k != "pattern_hash"})
    request = pattern["decision_request_template"]
    jsonschema.Draft202012Validator(resources.schema("decision-request")).validate(request)
    policy = POLICIES[f"{pattern['policy_id']} {pattern['recommended_policy_version']}"]
    assert policy.status == "active"
    assert request["rulebook"] == policy.rulebook.body
    assert pattern["policy_hash"] == canonical_hash(request["rulebook"])


@pytest.mark.parametrize("pattern_id", PATTERNS)
def test_the_templates_of_a_pattern_speak_of_its_decision(pattern_id: str, adapters: TrustedAdapters) -> None:
    pattern: Any = find_pattern(pattern_id)
    assert pattern is not None
    context, outcome, sync = (
        pattern["decision_request_template"]["context"],
        pattern["outcome_template"],
        pattern["crm_sync_template"],
    )
    approved = rulebook(f"{pattern['policy_id']} {pattern['recommended_policy_version']}").evaluator.decide(
        facts_for(pattern["decision_request_template"], adapters)
    )
    assert (approved.decision, approved.action) == ("yes", context["requested_action"])
    assert outcome["action_taken"] == approved.action
    assert (sync["policy_id"], sync["policy_version"]) == (pattern["policy_id"], pattern["recommended_policy_version"])
    for name in ("target_system", "target_object_id", "mutation"):
        assert outcome[name] == context[name]
    unknown = {name: value for name, value in {**outcome, **sync}.items() if str(value).startswith("<")}
    assert unknown == {
        "decision_record_hash": "<record_hash>",
        "decision_receipt_hash": "<receipt_hash>",
        "decision_verdict": "<verdict>",
        "decision_action": "<action>",
    }


def test_the_policy_over_an_order_reads_what_its_adapter_makes_and_declares_it_the_same(
    adapters: TrustedAdapters,
) -> None:
    pattern: Any = find_pattern("refund_order_policy")
    assert pattern is not None
    request = pattern["decision_request_template"]
    adapter = adapters.invocation(request["adapter"]).adapter
    assert request["adapter"]["manifest_hash"] == adapter.manifest_hash
    made = adapter.manifest["output_schema"]["properties"]
    declared = request["rulebook"]["input_schema"]["properties"]
    assert {name: of["type"] for name, of in declared.items()} == {name: of["type"] for name, of in made.items()}
    base = TABLES["refund_order_policy 2026-11-16"]["base"]
    assert facts_for(request, adapters) == base
    for table_case in TABLES["refund_order_policy 2026-11-16"]["cases"]:
        facts = facts_of(TABLES["refund_order_policy 2026-11-16"], table_case)
        assert adapter.output_shape.errors(facts, root="adapter_facts") == []


RETURNED: Final = {"final_sale": False, "returned": True}


@pytest.mark.parametrize(
    ("of", "member", "value"),
    [
        ("payment", "refunded_minor", 2491),
        ("claim", "line_ids", ["lamp", "bulbs"]),
        ("claim", "line_ids", ["desk"]),
        ("order", "placed_on", "2026-11-17"),
        ("claim", "line_ids", ["lamp", "lamp"]),
        ("payment", "order_id", "order-33411"),
        ("claim", "amount_minor", 6491),
        ("order", "lines", [{**RETURNED, "line_id": "lamp", "paid_minor": 6490, "refunded_minor": 1}]),
        ("payment", "dispute_statuses", ["lost"]),
        ("order", "customer_refunds_on", ["2026-11-17"]),
        ("claim", "payout_method_id", "card-1"),
        ("claim", "reason", "not_received"),
        ("payment", "dispute_statuses", ["won", "open"]),
        ("order", "customer_refunds_on", ["2025-11-16", "2026-11-16", "2026-01-01"]),
    ],
)
def test_what_the_order_or_the_payment_says_against_it_keeps_a_refund_from_being_paid(
    of: str, member: str, value: Any, adapters: TrustedAdapters
) -> None:
    pattern = find_pattern("refund_from_order")
    assert pattern is not None
    request = json.loads(json.dumps(pattern["decision_request_template"]))
    request["adapter"]["input"][of][member] = value
    outcome = rulebook("refund_order_policy 2026-11-16").evaluator.decide(facts_for(request, adapters))
    assert outcome.decision != "yes"


@pytest.mark.parametrize("pattern_id", PATTERNS)
def test_the_examples_of_a_pattern_carry_its_request_and_nothing_left_open(pattern_id: str) -> None:
    pattern = find_pattern(pattern_id)
    assert pattern is not None
    for text in pattern["sdk_examples"].values():
        embedded = re.search(r"^\{\n.*?^\}$", text, flags=re.MULTILINE | re.DOTALL)
        assert embedded is not None
        assert json.loads(embedded[0]) == pattern["decision_request_template"]
        assert not re.search(r"@\w+@|localhost|127\.0\.0\.1|dgk_", text)
        assert "GATE_URL" in text
        assert text.count("GATE_API_KEY") == 1


def test_a_pattern_is_found_by_its_id_and_by_its_policys() -> None:
    for pattern in patterns():
        assert find_pattern(pattern["pattern_id"]) is find_pattern(pattern["policy_id"]) is pattern
    assert find_pattern("refund") is None


def test_a_tag_selects_the_patterns_that_bear_it() -> None:
    assert [pattern["pattern_id"] for pattern in with_tag("crm")] == ["crm_writeback_gate", "pricing_exception"]
    assert with_tag("cr") == []
