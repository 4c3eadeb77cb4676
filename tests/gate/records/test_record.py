"""The Decision Record: all its members, its hashes frozen, its signing modes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import given

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import parse
from gate.proof.signing import HmacSigner
from gate.records.envelope import action_binding, envelope
from gate.records.record import RULEBOOK_SCHEMA_HASH, Signers
from gate.records.views import project
from tests.reference.strategies import json_values
from tests.support.samples import RECEIPT_SIGNER, REGISTRY_SIGNER, SIGNERS, VECTORS, make_record, sample_request

FROZEN = json.loads((VECTORS / "record.json").read_text())

# The specification's table of the Decision Record, less what belongs to adapters and to decisions with outcomes.
SPECIFIED = {
    "decision_record_version",
    "c",
    "v",
    "verdict",
    "application_verdict",
    "reason_code",
    "matched_rule_id",
    "rulebook",
    "evaluator_version",
    "rulebook_contract",
    "runtime_binding",
    "rulebook_registry",
    "registry_attestation",
    "rulebook_attestation",
    "request_id",
    "decision_id",
    "idempotency_key",
    "evidence",
    "evidence_manifest",
    "action",
    "action_binding",
    "policy_id",
    "policy_version",
    "policy_hash",
    "source_hash",
    "policy_bundle",
    "policy_bundle_hash",
    "input_hash",
    "output_hash",
    "record_hash",
    "receipt_hash",
    "receipt_key_id",
    "receipt_signature",
    "receipt_signature_algorithm",
    "receipt_public_key_fingerprint",
    "replay_url",
    "verify_url",
    "integrity",
    "created_at",
}


def test_a_full_record_has_every_specified_member() -> None:
    record = make_record()
    assert set(record) >= SPECIFIED
    assert set(record) - SPECIFIED == {"decision_protocol_version", "decision_url", "evaluation", "audit_chain"}


def test_nested_members_are_those_of_the_specification() -> None:
    record = make_record()
    assert record["rulebook"].keys() == {"schema_version", "id", "version", "hash"}
    assert record["rulebook_contract"].keys() == {"schema_version", "schema_url", "schema_hash", "evaluator_version"}
    assert record["runtime_binding"] == {
        "production_core": "hybrid_declarative_rulebook_with_trusted_adapters",
        "binding_mode": "direct_declarative_rulebook",
        "verdict_authority": "declarative_rulebook",
        "customer_supplied_code": "rejected",
    }
    assert record["rulebook_registry"].keys() == {
        "rulebook_registry_version",
        "schema_version",
        "rulebook_id",
        "version",
        "hash",
        "evaluator_version",
        "hash_algorithm",
        "canonicalization",
        "scope_hash",
        "registered_at",
        "registry_attestation",
    }
    assert record["registry_attestation"].keys() == {
        "registry_attestation_version",
        "status",
        "attestation_hash",
        "key_id",
        "signature_algorithm",
        "signature",
    }
    assert record["policy_bundle"].keys() == {"id", "version", "hash", "hash_algorithm", "canonicalization"}
    assert record["evidence_manifest"].keys() == {"codes", "sources"}
    assert record["integrity"].keys() == {
        "canonicalization",
        "hash_algorithm",
        "policy_hash",
        "policy_bundle_hash",
        "signature",
    }
    assert record["integrity"]["signature"].keys() == {"algorithm", "key_id", "public_key_fingerprint"}
    assert record["action_binding"] == {
        "system": "crm",
        "resource": "deal-1042",
        "proposed_action": "approve_discount",
        "mutation": "discount.update",
        "actor": {"type": "agent", "id": "a-1"},
        "subject": "customer-9",
        "amount": 1200.50,
        "currency": "EUR",
    }


@pytest.mark.parametrize("case", FROZEN["records"], ids=lambda case: case["name"])
def test_hashes_are_frozen(case: dict[str, Any]) -> None:
    record = make_record(sample_request(**case["inputs"]))
    assert {name: record[name] for name in case["record"]} == case["record"]
    assert record["rulebook_attestation"]["bundle_hash"] == case["bundle_hash"]
    assert record["audit_chain"]["link_hash"] == case["link_hash"]


def test_the_published_schema_is_frozen_with_the_evaluator_version() -> None:
    assert FROZEN["rulebook_schema_hash"] == RULEBOOK_SCHEMA_HASH
    assert content_hash(resources.schema("rulebook-v1")) == RULEBOOK_SCHEMA_HASH


def test_every_record_fits_the_record_schema() -> None:
    schema = resources.schema("decision-record-v1")
    for view in ("full", "standard", "minimal"):
        validator = jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{view}"})
        for inputs in ({"discount_percent": 10, "margin_percent": 22}, {"discount_percent": 99}, {"x": None}):
            for signers in (SIGNERS, Signers(None, None), Signers(HmacSigner("h", b"h" * 32), REGISTRY_SIGNER)):
                validator.validate(project(make_record(sample_request(**inputs), signers=signers), view))


def test_the_bundle_hash_depends_on_facts_and_rulebook_alone() -> None:
    first = make_record(serial=1)
    second = make_record(sample_request(margin_percent=22.0, discount_percent=10), serial=2, idempotency_key=None)
    other = make_record(sample_request(margin_percent=23, discount_percent=10))
    bundles = [record["rulebook_attestation"]["bundle_hash"] for record in (first, second, other)]
    assert bundles[0] == bundles[1] != bundles[2]
    assert first["record_hash"] != second["record_hash"]


def test_what_was_not_sent_is_empty_in_the_binding_and_the_envelope() -> None:
    request = {"mode": "rulebook", "rulebook": sample_request()["rulebook"]}
    record = make_record(request, idempotency_key=None)
    assert record["action_binding"] == {"system": "", "resource": "", "proposed_action": ""}
    assert record["reason_code"] == "INPUT_SCHEMA_FAILED"
    assert record["evidence"] == ["INPUT_SCHEMA_FAILED", "schema:failed"]
    assert "idempotency_key" not in record
    assert envelope(record)["idempotency_key"] == ""
    assert "matched_rule_id" not in envelope(record)


@pytest.mark.parametrize(
    ("context", "proposed"),
    [
        ({"requested_action": "refund", "mutation": "ledger.write"}, "refund"),
        ({"requested_action": "", "mutation": "ledger.write"}, "ledger.write"),
        ({"mutation": "ledger.write"}, "ledger.write"),
        ({}, ""),
    ],
)
def test_the_proposed_action_is_the_requested_one_or_else_the_mutation(context: Any, proposed: str) -> None:
    assert action_binding(context)["proposed_action"] == proposed


@pytest.mark.parametrize(
    ("inputs", "c", "verdict", "evidence"),
    [
        ({"discount_percent": 10, "margin_percent": 22}, "yes", "yes", "rule:approve_standard_exception"),
        ({"discount_percent": 10, "margin_percent": 2}, "no", "no", "rule:block_below_margin_floor"),
        ({"discount_percent": 30, "margin_percent": 22}, "unclear", "review", "rule:default"),
        ({"discount_percent": "10", "margin_percent": 22}, "unclear", "review", "schema:failed"),
    ],
)
def test_the_verdict_in_its_forms(inputs: dict[str, Any], c: str, verdict: str, evidence: str) -> None:
    record = make_record(sample_request(**inputs))
    assert (record["c"], record["verdict"]) == (c, verdict)
    assert record["v"] == record["application_verdict"]
    assert record["evidence"] == [record["reason_code"], evidence] == record["evidence_manifest"]["codes"]


def test_hmac_receipts_have_no_public_key() -> None:
    record = make_record(signers=SIGNERS._replace(receipt=HmacSigner("receipt_hmac", b"h" * 32)))
    assert record["receipt_signature"].startswith("hmac-sha256:")
    assert record["receipt_signature_algorithm"] == "hmac-sha256"
    assert record["receipt_public_key_fingerprint"] is None
    assert record["integrity"]["signature"] == {
        "algorithm": "hmac-sha256",
        "key_id": "receipt_hmac",
        "public_key_fingerprint": None,
    }


def test_signing_can_be_off_and_says_so() -> None:
    record = make_record(signers=Signers(None, None))
    assert not [name for name in record if name.startswith("receipt_") and name != "receipt_hash"]
    assert record["integrity"]["signature"] is None
    assert record["registry_attestation"]["status"] == "unsigned"
    assert record["registry_attestation"]["signature"] is None
    assert record["rulebook_attestation"]["signature"]["status"] == "unsigned"
    signed = make_record()
    assert signed["registry_attestation"]["status"] == "signed"
    assert signed["receipt_key_id"] == RECEIPT_SIGNER.key_id


def test_views_are_projections_of_one_record() -> None:
    record = make_record() | {"decision_confidence": {"confidence_hash": "x"}, "confidence_hash": "x"}
    full, standard, minimal = (project(record, view) for view in ("full", "standard", "minimal"))
    assert full == record
    assert minimal.items() <= standard.items() <= full.items()
    assert set(minimal) == {
        "decision_record_version",
        "decision_id",
        "request_id",
        "idempotency_key",
        "c",
        "v",
        "verdict",
        "application_verdict",
        "reason_code",
        "matched_rule_id",
        "action",
        "rulebook",
        "evaluator_version",
        "policy_hash",
        "policy_bundle_hash",
        "record_hash",
        "receipt_hash",
        "receipt_key_id",
        "receipt_signature",
        "receipt_signature_algorithm",
        "receipt_public_key_fingerprint",
        "decision_confidence",
        "confidence_hash",
        "verify_url",
        "decision_url",
        "replay_url",
        "audit_chain",
    }
    assert set(standard) - set(minimal) == {
        "evidence",
        "policy_id",
        "policy_version",
        "source_hash",
        "policy_bundle",
        "action_binding",
        "rulebook_contract",
        "runtime_binding",
        "rulebook_registry",
        "registry_attestation",
        "rulebook_attestation",
        "input_hash",
        "output_hash",
        "created_at",
    }
    assert set(full) - set(standard) == {
        "decision_protocol_version",
        "evidence_manifest",
        "evaluation",
        "integrity",
    }


@given(json_values(max_depth=4))
def test_what_is_stored_reads_back_to_the_same_bytes(value: Any) -> None:
    """A replay answers from stored bytes what the first answer wrote from memory."""
    sent = parse(json.dumps(value).encode())
    assert orjson.dumps(parse(orjson.dumps(sent))) == orjson.dumps(sent)
