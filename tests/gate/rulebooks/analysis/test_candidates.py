"""Bad candidates of a real rulebook are found by the analysis, with the rule at fault, and by the rulebook's cases."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pytest

from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.encoding.yaml_text import read_yaml
from gate.rulebooks.analysis import Analysis, analyse
from gate.rulebooks.rulebook import load
from gate.rulebooks.testing.cases import read_cases
from gate.rulebooks.testing.runs import run


@cache
def policy() -> Any:
    return parse(resources.path("data", "rulebooks", "refund_policy.json").read_bytes())


@cache
def failing(candidate: Callable[[Any], None]) -> int:
    """How many of the rulebook's own cases do not hold on a candidate."""
    body = changed(candidate)
    file = read_cases(read_yaml(resources.path("data", "cases", "refund_policy.yaml").read_bytes()).value)
    return sum(not result.held for result in run(load(body), file.cases))


def changed(candidate: Callable[[Any], None]) -> Any:
    body = copy.deepcopy(policy())
    candidate(body)
    return body


def rule_of(body: Any, rule_id: str) -> Any:
    return next(rule for rule in body["rules"] if rule["rule_id"] == rule_id)


def a_threshold_is_moved(body: Any) -> None:
    rule_of(body, "block_window_closed")["condition"]["value"] = 120


def a_rule_is_shadowed(body: Any) -> None:
    rule_of(body, "review_large_amount")["priority"] = -5
    approve = rule_of(body, "approve_change_of_mind")
    approve["condition"] = {"field": "amount", "operator": "gt", "value": 0}


def a_test_is_negated(body: Any) -> None:
    fraud = rule_of(body, "block_fraud_flag")
    fraud["condition"] = {"not": fraud["condition"]}


def an_optional_field_is_denied(body: Any) -> None:
    body["input_schema"]["properties"]["account_state"] = {"type": "string"}
    fraud = rule_of(body, "block_fraud_flag")
    fraud["condition"] = {"any": [
        fraud["condition"], {"field": "account_state", "operator": "neq", "value": "active"},
    ]}  # fmt: skip


def dangers(found: Analysis) -> set[str | None]:
    """The rules that findings and regions of danger name."""
    assert found.difference is not None
    named = {rule_id for finding in found.findings if finding.severity == "danger" for rule_id in finding.rule_ids}
    regions = [region for region in found.difference.regions if region.severity == "danger"]
    return named | {region.before.rule_id for region in regions} | {region.after.rule_id for region in regions}


CANDIDATES: Final = [
    (a_threshold_is_moved, "block_window_closed"),
    (a_rule_is_shadowed, "review_large_amount"),
    (a_test_is_negated, "block_fraud_flag"),
    (an_optional_field_is_denied, "block_fraud_flag"),
]


@pytest.mark.parametrize(("candidate", "rule_id"), CANDIDATES, ids=lambda each: getattr(each, "__name__", each))
def test_the_analysis_names_the_rule(candidate: Callable[[Any], None], rule_id: str) -> None:
    found = analyse(changed(candidate), against=policy())
    assert found.dangerous
    assert rule_id in dangers(found)


@pytest.mark.parametrize("candidate", [candidate for candidate, _ in CANDIDATES[:3]], ids=lambda each: each.__name__)
def test_the_cases_of_the_rulebook_do_not_hold(candidate: Callable[[Any], None]) -> None:
    assert failing(candidate) > 0


def test_the_shadowed_rule_is_a_finding_with_the_rules_that_shadow_it() -> None:
    findings = analyse(changed(a_rule_is_shadowed)).findings
    (finding,) = [one for one in findings if one.rule_ids[:1] == ("review_large_amount",)]
    assert (finding.kind, finding.severity) == ("rule_shadowed", "danger")
    assert "approve_change_of_mind" in finding.rule_ids
    assert finding.message.startswith("The rule review_large_amount never matches: whenever its condition holds, ")


def test_the_silent_rule_is_a_finding_with_facts_that_are_approved() -> None:
    body = changed(an_optional_field_is_denied)
    (finding,) = [one for one in analyse(body).findings if one.kind == "silent_when_absent"]
    assert (finding.severity, finding.rule_ids[0]) == ("danger", "block_fraud_flag")
    assert finding.witness is not None
    assert "account_state" not in finding.witness
    assert load(body).evaluator.decide(finding.witness).decision == "yes"
    assert load(body).evaluator.decide({**finding.witness, "account_state": "closed"}).decision == "no"


def test_the_rulebook_itself_has_no_dangers_and_equals_itself_in_another_order() -> None:
    body: Any = {**policy(), "rules": list(reversed(policy()["rules"]))}
    found = analyse(body, against=policy())
    assert found.difference is not None
    assert (found.dangerous, found.decided, found.difference.equal, found.difference.regions) == (False, True, True, ())
