"""The golden replay corpus: each case, replayed by the product, by a second evaluator, and over HTTP, gives the verdict
that was written down and the hashes that were frozen. What the corpus covers is computed from its cases.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from gate.contract.published import GoldenCase, golden_cases, published
from gate.encoding import resources
from gate.labels import EVALUATOR, GOLDEN_REPLAY, HISTORICAL_REPLAY
from gate.rulebooks.rulebook import find_errors
from tests.independent import verifier
from tests.independent.verifier import canonical_hash
from tests.reference import evaluator as reference
from tests.support.samples import ATTESTATION_KEYS, RECEIPT_KEYS, make_record

GOLDEN = golden_cases()
INDEX = published()["/replay/index.json"].document
FILES = [file["path"] for file in INDEX["files"]]

OPERATORS = {"eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "not_contains"}
TYPES = {"number", "integer", "string", "boolean", "array", "object", "null"}

RUNTIME_BINDING = {
    "production_core": "hybrid_declarative_rulebook_with_trusted_adapters",
    "binding_mode": "direct_declarative_rulebook",
    "verdict_authority": "declarative_rulebook",
    "customer_supplied_code": "rejected",
}

OF_ADAPTERS = RUNTIME_BINDING | {
    "binding_mode": "trusted_adapter_facts_then_declarative_rulebook",
    "adapter_authority": "facts_only",
}


def cases_of(file: str) -> list[GoldenCase]:
    found = [golden for golden in GOLDEN if golden.case["case_id"].startswith(file.removesuffix("json"))]
    assert found
    return found


def facts_of(golden: GoldenCase) -> dict[str, Any]:
    return dict(golden.facts.values)


def said_by(record: dict[str, Any], expected: Mapping[str, object]) -> dict[str, Any]:
    """What a record says of the members that a case expects, with the three hashes."""
    evaluation = record["evaluation"]
    shown = {**record, **evaluation, "evaluated_rules": [rule["rule_id"] for rule in evaluation["rules"]]}
    return {name: shown[name] for name in expected} | {
        "rulebook_hash": record["rulebook"]["hash"],
        "input_hash": record["rulebook_attestation"]["bundle"]["input_hash"],
        "bundle_hash": record["rulebook_attestation"]["bundle_hash"],
        **({"trusted_adapter": record["trusted_adapter"]} if "trusted_adapter" in record else {}),
    }


@pytest.mark.parametrize("file", FILES)
def test_the_product_replays_every_case(file: str) -> None:
    for golden in cases_of(file):
        record = make_record(golden.request(), facts=golden.facts)
        expected = golden.case["expected"]
        assert said_by(record, expected) == {**expected, **golden.case["frozen"]}, golden.case["case_id"]


@pytest.mark.heavy
@pytest.mark.parametrize("file", FILES)
def test_a_second_verifier_agrees_with_every_record(file: str) -> None:
    for golden in cases_of(file):
        failures = verifier.record_failures(
            make_record(golden.request(), facts=golden.facts),
            RECEIPT_KEYS.to_dict(),
            attestation_keys=ATTESTATION_KEYS.to_dict(),
            request_body=golden.request(),
            rulebook=dict(golden.rulebook),
        )
        assert failures == [], golden.case["case_id"]


@pytest.mark.parametrize("file", FILES)
def test_a_second_evaluator_and_hasher_replays_every_case(file: str) -> None:
    for golden in cases_of(file):
        case, facts = golden.case, facts_of(golden)
        told = case["frozen"].get("trusted_adapter")
        if told is not None:
            hashes = canonical_hash(case["adapter"]["input"]), canonical_hash(case["adapter_facts"])
            assert hashes == (told["input_hash"], told["output_hash"]), case["case_id"]
        found = reference.evaluate(dict(golden.rulebook), facts)
        evaluation = found["evaluation"]
        outcome = {
            "verdict": found["decision"],
            "application_verdict": found["verdict"],
            "action": found["action"],
            "reason_code": found["reason_code"],
            "matched_rule_id": found["matched_rule_id"],
        }
        evaluated = [rule["rule_id"] for rule in evaluation["rules"]]
        shown = outcome | evaluation | {"evaluated_rules": evaluated}
        assert {name: shown[name] for name in case["expected"]} == case["expected"], case["case_id"]
        bundle: dict[str, Any] = {
            "engine": "svc_rulebook_v1",
            "evaluator_version": "svc_rulebook_v1",
            "rulebook": {
                "schema_version": "rulebook_v1",
                "id": case["rulebook"]["rulebook_id"],
                "version": case["rulebook"]["version"],
                "hash": canonical_hash(golden.rulebook),
            },
            "input_hash": canonical_hash(facts),
            "outcome": {"status": found["status"], **outcome},
            "runtime_binding": RUNTIME_BINDING if told is None else OF_ADAPTERS,
            "trusted_adapter": told,
        }
        frozen = {
            "rulebook_hash": bundle["rulebook"]["hash"],
            "input_hash": bundle["input_hash"],
            "bundle_hash": canonical_hash(bundle),
        }
        assert frozen == {name: hash_ for name, hash_ in case["frozen"].items() if name in frozen}, case["case_id"]


@pytest.mark.parametrize("file", FILES)
def test_the_service_replays_every_case(client: FlaskClient, key: str, file: str) -> None:
    for golden in cases_of(file):
        response = client.post("/api/decide", json=golden.request(), headers={"x-api-key": key})
        assert response.status_code == 200, response.text
        expected = golden.case["expected"]
        assert said_by(response.get_json(), expected) == {**expected, **golden.case["frozen"]}, golden.case["case_id"]


def test_the_index_counts_and_binds_what_the_corpus_holds() -> None:
    documents = [published()[f"/replay/{path}"].document for path in FILES]
    assert [file["sha256"] for file in INDEX["files"]] == [canonical_hash(document) for document in documents]
    assert INDEX["corpus_hash"] == canonical_hash([file["sha256"] for file in INDEX["files"]])
    assert [file["cases"] for file in INDEX["files"]] == [len(document["cases"]) for document in documents]
    assert INDEX["cases"] == len(GOLDEN)
    assert INDEX["covers"] == Counter(tag for golden in GOLDEN for tag in golden.case["covers"])
    assert INDEX["rulebook_schema_hash"] == canonical_hash(resources.schema("rulebook-v1"))
    labels = ("corpus", "replay_contract", "evaluator_version")
    assert [INDEX[name] for name in labels] == [GOLDEN_REPLAY, HISTORICAL_REPLAY, EVALUATOR]


def test_every_case_and_every_version_of_a_rulebook_stands_once() -> None:
    documents = [published()[f"/replay/{path}"].document for path in FILES]
    ids = Counter(golden.case["case_id"] for golden in GOLDEN)
    assert {name for name, count in ids.items() if count > 1} == set()
    bodies = [body for document in documents for body in document["rulebooks"]]
    versions = Counter((body["rulebook_id"], body["version"]) for body in bodies)
    assert {version for version, count in versions.items() if count > 1} == set()
    used = {tuple(golden.case["rulebook"].values()) for golden in GOLDEN}
    assert used == set(versions)
    assert [error for body in bodies for error in find_errors(body)] == []


def test_the_case_that_the_documentation_shows_is_one_of_them() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "check-conformance.md").read_text()
    (shown,) = re.findall(r"^```json\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert json.loads(shown) in [golden.case for golden in GOLDEN]


# What the corpus covers


def carried_out() -> Iterator[dict[str, Any]]:
    """Every test of every case, as the explanation gives it: {path, field, operator, expected?, observed?, passed}."""
    for golden in GOLDEN:
        for rule in reference.evaluate(dict(golden.rulebook), facts_of(golden))["evaluation"]["rules"]:
            yield from rule["tests"]


def test_every_comparing_operator_holds_fails_and_meets_absence_null_and_other_types() -> None:
    seen: dict[str, set[str]] = defaultdict(set)
    for test in carried_out():
        present = "observed" in test
        seen[test["operator"]].add(("holds" if test["passed"] else "fails") if present else "absent")
        assert present or not test["passed"] or test["operator"] == "not_exists"
        if present:
            seen[test["operator"]].add(reference.json_type(test["observed"]))
    wanted = {"holds", "fails", "absent", "null", "boolean", "string"}
    missing = {operator: wanted - seen[operator] for operator in OPERATORS}
    assert missing == {operator: set() for operator in OPERATORS} | {
        # Text and arrays are what these two are about; they meet other types as numbers and null.
        "contains": {"boolean"},
        "not_contains": {"boolean"},
    }
    assert {"integer", "array", "object"} <= seen["contains"] & seen["eq"] & seen["in"]
    assert {"integer", "array"} <= seen["not_contains"]


def test_presence_is_asked_of_present_null_and_absent_fields() -> None:
    seen = {
        (test["operator"], test["passed"], reference.json_type(test["observed"]) if "observed" in test else "absent")
        for test in carried_out()
    }
    assert {("exists", True, "null"), ("exists", True, "string"), ("exists", False, "absent")} <= seen
    assert {("not_exists", True, "absent"), ("not_exists", False, "null"), ("not_exists", False, "integer")} <= seen


@pytest.mark.parametrize(
    ("expected", "observed", "passed"),
    [
        (1, 1.0, True),
        (1, True, False),
        (True, 1, False),
        (0, -0.0, True),
        (9007199254740991, 9007199254740991, True),
        (9007199254740991, 9007199254740990, False),
        (1e300, 1e300, True),
        (None, None, True),
        ("\u00e9", "\u00e9", True),
        ("\u00e9", "e\u0301", False),
        ("\U0001f600", "\U0001f600", True),
        ("\U0001f600", "\U0001f601", False),
        ([1, 2, {"a": True}], [1.0, 2, {"a": True}], True),
        ([1, 2, {"a": True}], [2, 1, {"a": True}], False),
        ({"a": 1, "b": [2, None]}, {"b": [2, None], "a": 1.0}, True),
    ],
)
def test_equality_is_asked_of_what_implementations_confuse(expected: Any, observed: Any, passed: bool) -> None:
    """Compared by repr, which tells 1, 1.0, True and -0.0 apart."""
    wanted = (repr(expected), repr(observed), passed)
    seen = {
        (repr(test["expected"]), repr(test["observed"]), test["passed"])
        for test in carried_out()
        if test["operator"] == "eq" and "observed" in test
    }
    assert wanted in seen


def nodes(condition: Any, path: str, passed: dict[str, bool]) -> tuple[bool, list[tuple[str, int, bool]]]:
    """Whether a condition holds, and each of its nodes: (kind, how deep it reaches, whether it holds)."""
    for kind in ("all", "any"):
        if kind in condition:
            children = [nodes(child, f"{path}.{kind}[{index}]", passed) for index, child in enumerate(condition[kind])]
            holds = (all if kind == "all" else any)(child for child, _ in children)
            break
    else:
        if "not" not in condition:
            return passed[path], [("test", 1, passed[path])]
        kind, children = "not", [nodes(condition["not"], f"{path}.not", passed)]
        holds = not children[0][0]
    below = [node for _, found in children for node in found]
    return holds, [(kind, 1 + max(depth for _, depth, _ in below), holds), *below]


def test_every_combinator_holds_and_fails_and_conditions_nest_to_the_limit() -> None:
    seen = set()
    for golden in GOLDEN:
        conditions = {rule["rule_id"]: rule["condition"] for rule in golden.rulebook["rules"]}
        for rule in reference.evaluate(dict(golden.rulebook), facts_of(golden))["evaluation"]["rules"]:
            passed = {test["path"]: test["passed"] for test in rule["tests"]}
            holds, found = nodes(conditions[rule["rule_id"]], "condition", passed)
            assert holds is rule["passed"]
            seen |= {(kind, holds) for kind, _, holds in found} | {(depth, holds) for _, depth, holds in found}
    assert {(kind, holds) for kind in ("all", "any", "not") for holds in (True, False)} <= seen
    assert {(8, True), (8, False)} <= seen


def test_not_meets_a_false_comparison_on_an_absent_field() -> None:
    inverted = {
        test["operator"]
        for test in carried_out()
        if test["path"].endswith(".not") and "observed" not in test and not test["passed"]
    }
    assert {"eq", "neq"} <= inverted


def test_paths_lead_through_objects_and_end_at_everything_else() -> None:
    ends = set()
    for golden in GOLDEN:
        for rule in golden.rulebook["rules"]:
            first, _, rest = rule["condition"].get("field", "").partition(".")
            if rest and first in facts_of(golden):
                value = facts_of(golden)[first]
                for name in rest.split("."):
                    if not isinstance(value, dict) or name not in value:
                        ends.add(reference.json_type(value))
                        break
                    value = value[name]
                else:
                    ends.add("found")
    assert {"found", "object", "string", "integer", "null", "array"} <= ends


def test_ties_are_broken_between_every_two_neighbours_in_code_point_order() -> None:
    beaten = set()
    for golden in GOLDEN:
        matched = golden.case["expected"]["matched_rule_id"]
        by_id = {rule["rule_id"]: rule for rule in golden.rulebook["rules"]}
        for rule_id, rule in by_id.items():
            if matched is None or rule_id == matched or rule.get("priority", 0) != by_id[matched].get("priority", 0):
                continue
            alone = {**golden.rulebook, "rules": [rule]}
            if reference.evaluate(alone, facts_of(golden))["matched_rule_id"] == rule_id:
                beaten.add((matched, rule_id))
    assert all(first < second for first, second in beaten)
    ids = ["r-", "r.", "r0", "r:", "r_", "ra", "raa", "step10", "step9"]
    assert set(pairwise(ids)) <= beaten


def test_priorities_are_negative_absent_zero_and_at_their_limits_and_beat_rules_that_would_hold() -> None:
    priorities = {rule.get("priority") for golden in GOLDEN for rule in golden.rulebook["rules"]}
    assert {-1000, -5, None, 0, 10, 1000} <= priorities
    lower = {
        golden.case["case_id"]
        for golden in GOLDEN
        if (matched := golden.case["expected"]["matched_rule_id"]) is not None
        for rule in golden.rulebook["rules"]
        if rule["rule_id"] != matched
        and reference.evaluate({**golden.rulebook, "rules": [rule]}, facts_of(golden))["matched_rule_id"]
        and rule.get("priority", 0)
        < next(other.get("priority", 0) for other in golden.rulebook["rules"] if other["rule_id"] == matched)
    }
    assert {"priority.highest_first", "priority.default_is_zero", "priority.negative"} <= lower


def test_the_order_of_the_array_of_rules_means_nothing() -> None:
    """The same rules in two orders: another rulebook, the same outcome."""
    by_inputs: dict[str, list[GoldenCase]] = defaultdict(list)
    for golden in GOLDEN:
        rules = sorted(golden.rulebook["rules"], key=lambda rule: str(rule["rule_id"]))
        by_inputs[canonical_hash([rules, facts_of(golden)])].append(golden)
    pairs = [pair for pair in by_inputs.values() if len({case.case["frozen"]["rulebook_hash"] for case in pair}) == 2]
    assert len(pairs) == 9
    for pair in pairs:
        assert pair[0].rulebook["rules"] == pair[1].rulebook["rules"][::-1]
        assert pair[0].case["expected"] == pair[1].case["expected"]


def test_every_type_is_met_and_missed() -> None:
    mistyped: set[tuple[str, str]] = set()
    fitting: set[tuple[str, str]] = set()
    for golden in GOLDEN:
        wrong = {fault["field"]: fault for fault in golden.case["expected"]["invalid_fields"]}
        mistyped |= {(fault["expected"], fault["observed_type"]) for fault in wrong.values()}
        for name, declared in golden.rulebook["input_schema"]["properties"].items():
            if name in facts_of(golden) and name not in wrong:
                fitting.add((declared["type"], repr(facts_of(golden)[name])))
    assert {declared for declared, _ in mistyped} == {declared for declared, _ in fitting} == TYPES
    assert {(declared, "null") for declared in TYPES - {"null"}} <= mistyped
    assert ("integer", "1.0") in fitting
    assert {("integer", "number"), ("number", "boolean"), ("boolean", "integer"), ("null", "boolean")} <= mistyped


def test_required_inputs_are_missing_alone_together_with_mistyped_ones_and_altogether() -> None:
    shapes: set[tuple[Any, ...]] = set()
    for golden in GOLDEN:
        expected = golden.case["expected"]
        missing, invalid = len(expected["missing_fields"]), len(expected["invalid_fields"])
        shapes.add((min(missing, 2), min(invalid, 2), "inputs" in golden.case))
        for name in golden.rulebook["input_schema"]["required"]:
            if name in facts_of(golden) and facts_of(golden)[name] is None:
                shapes.add(("required null", name in expected["missing_fields"]))
    assert {(1, 0, True), (2, 0, True), (0, 1, True), (0, 2, True), (1, 1, True), (2, 0, False)} <= shapes
    assert ("required null", False) in shapes
    assert ("required null", True) not in shapes


def test_every_decision_comes_by_rule_and_by_default_and_the_default_is_explained() -> None:
    seen = set()
    for golden in GOLDEN:
        expected = golden.case["expected"]
        if not expected["missing_fields"] and not expected["invalid_fields"]:
            explained = len(expected.get("evaluated_rules", ())) == len(golden.rulebook["rules"])
            by = "default" if expected["matched_rule_id"] is None else "rule"
            seen |= {(expected["verdict"], by), (expected["verdict"], by, explained)}
    decisions = ("yes", "no", "review")
    assert {(decision, by) for decision in decisions for by in ("rule", "default")} <= seen
    assert {(decision, "default", True) for decision in decisions} <= seen
