"""The Decision Record `decision_record_v1`: its members, the envelope its hash covers, and its receipt.

What is hashed stands in `envelope` and `receipt_material`; making a record and verifying one use the same two
functions. Everything else in a record is derived from what they cover. The formulas are those of docs/wire-format.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gate import resources
from gate.attestation import rulebook_attestation
from gate.canonical import canonical, compact, content_hash, is_empty
from gate.labels import (
    BINDING_DIRECT,
    CANONICALIZATION,
    CUSTOMER_CODE,
    EVALUATOR,
    HASH_ALGORITHM,
    PRODUCTION_CORE,
    PROTOCOL,
    RECORD,
    RULEBOOK_SCHEMA,
    VERDICT_AUTHORITY,
)
from gate.signing import Signer

# The verifier needs this module without what validates requests and rulebooks.
if TYPE_CHECKING:
    from gate.evaluate import Explained
    from gate.request import DecisionRequest
    from gate.rulebook import Rulebook


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one record from another.

    Attributes:
        decision_id: The stable ledger key.
        request_id: The short handle for logs.
        idempotency_key: The caller's key, where one was sent.
        created_at: UTC timestamp.
    """

    decision_id: str
    request_id: str
    idempotency_key: str | None
    created_at: str


@dataclass(frozen=True, slots=True)
class Signers:
    """What signs a record; None where that signing is switched off."""

    receipt: Signer | None
    registry: Signer | None


def build_record(
    request: DecisionRequest,
    rulebook: Rulebook,
    registry: Mapping[str, Any],
    explained: Explained,
    identity: Identity,
    signers: Signers,
    *,
    schema_url: str,
) -> dict[str, Any]:
    """A full record, all but `audit_chain`, which is known once the record is appended.

    Args:
        request: The request that is answered.
        rulebook: The rulebook that decided.
        registry: Its registration as stored, with registry_attestation.
        explained: What the rulebook said about the facts, and why.
        identity: The record's ids and date.
        signers: What signs it.
        schema_url: Where the Rulebook v1 schema is published.
    """
    outcome = explained.outcome
    evidence = evidence_codes(outcome.reason_code, outcome.matched_rule_id, outcome.status)
    policy_bundle = {
        "id": rulebook.rulebook_id,
        "version": rulebook.version,
        "hash": rulebook.hash,
        "hash_algorithm": HASH_ALGORITHM,
        "canonicalization": CANONICALIZATION,
    }
    runtime_binding = runtime_binding_of(BINDING_DIRECT)
    record: dict[str, Any] = {
        "decision_record_version": RECORD,
        "decision_protocol_version": PROTOCOL,
        "decision_id": identity.decision_id,
        "request_id": identity.request_id,
        "c": compact_verdict(outcome.decision),
        "v": outcome.verdict,
        "verdict": outcome.decision,
        "application_verdict": outcome.verdict,
        "reason_code": outcome.reason_code,
        "matched_rule_id": outcome.matched_rule_id,
        "action": outcome.action,
        "action_binding": action_binding(request.context),
        "evidence": evidence,
        "evidence_manifest": {
            "codes": evidence,
            "sources": [
                {
                    "id": f"rulebook:{rulebook.rulebook_id}@{rulebook.version}",
                    "type": "rulebook",
                    "snapshot_hash": rulebook.hash,
                },
                {
                    "id": "evaluation",
                    "type": "evaluation",
                    "snapshot_hash": content_hash(explained.evaluation),
                },
            ],
        },
        "evaluation": explained.evaluation,
        "policy_id": rulebook.rulebook_id,
        "policy_version": rulebook.version,
        "policy_hash": rulebook.hash,
        "source_hash": rulebook.hash,
        "policy_bundle": policy_bundle,
        "policy_bundle_hash": content_hash(policy_bundle),
        "rulebook": rulebook.reference,
        "rulebook_contract": rulebook_contract(schema_url),
        "evaluator_version": EVALUATOR,
        "runtime_binding": runtime_binding,
        "rulebook_registry": dict(registry),
        "registry_attestation": registry["registry_attestation"],
        "rulebook_attestation": rulebook_attestation(
            rulebook.reference, content_hash(request.inputs), outcome, runtime_binding, signers.registry
        ),
        "input_hash": request.input_hash,
        "replay_url": f"{decision_url(identity.decision_id)}/replay",
        "verify_url": f"{decision_url(identity.decision_id)}/verify",
        "decision_url": decision_url(identity.decision_id),
        "created_at": identity.created_at,
    }
    if identity.idempotency_key is not None:
        record["idempotency_key"] = identity.idempotency_key
    record["output_hash"] = content_hash(output_material(record, outcome.status))
    record["record_hash"] = content_hash(envelope(record))
    record["receipt_hash"] = content_hash(receipt_material(record))
    record.update(_receipt_signature(record, signers.receipt))
    record["integrity"] = integrity(record)
    return record


def envelope(record: Mapping[str, Any]) -> dict[str, Any]:
    """What `record_hash` is the hash of."""
    material: dict[str, Any] = {name: record.get(name) or empty for name, empty in _ALWAYS.items()}
    if bundle_hash := record.get("policy_bundle_hash"):
        material["policy_bundle_hash"] = bundle_hash
    bundle = record.get("policy_bundle") or {}
    if kept := {name: bundle[name] for name in _BUNDLE_MEMBERS if not is_empty(bundle.get(name))}:
        material["policy_bundle"] = kept
    for name in _WHERE_NOT_EMPTY:
        value = compact(record.get(name))
        if not is_empty(value):
            material[name] = value
    return material


_ALWAYS: Final[Mapping[str, Any]] = {
    "decision_protocol_version": "",
    "decision_record_version": "",
    "decision_id": "",
    "request_id": "",
    "idempotency_key": "",
    "verdict": "",
    "action": "",
    "action_binding": {},
    "evidence": [],
    "evidence_manifest": {},
    "policy_id": "",
    "policy_version": "",
    "policy_hash": "",
    "input_hash": "",
    "output_hash": "",
    "created_at": "",
    "replay_url": "",
    "verify_url": "",
}
_BUNDLE_MEMBERS: Final = ("id", "version", "hash", "hash_algorithm", "canonicalization", "source")
_WHERE_NOT_EMPTY: Final = (
    "application_verdict",
    "reason_code",
    "matched_rule_id",
    "rulebook",
    "rulebook_contract",
    "evaluator_version",
    "runtime_binding",
    "rulebook_registry",
    "rulebook_attestation",
    "trusted_adapter",
    "adapter_facts",
)


def receipt_material(record: Mapping[str, Any]) -> dict[str, Any]:
    """What `receipt_hash` is the hash of."""
    names = (
        "decision_record_version",
        "decision_id",
        "record_hash",
        "input_hash",
        "output_hash",
        "policy_hash",
    )
    material = {name: record[name] for name in names}
    material["action_binding_hash"] = content_hash(record["action_binding"])
    material["evidence_manifest_hash"] = content_hash(record["evidence_manifest"])
    if bundle_hash := record.get("policy_bundle_hash"):
        material["policy_bundle_hash"] = bundle_hash
    return material


def receipt_payload(record: Mapping[str, Any], key_id: str) -> bytes:
    """The bytes that a receipt's signature is over."""
    return canonical(
        {
            "decision_id": record["decision_id"],
            "key_id": key_id,
            "receipt_hash": record["receipt_hash"],
            "record_hash": record["record_hash"],
        }
    )


def input_material(request_body: Any) -> Any:
    """What `input_hash` is the hash of: the request body as sent, without response_view."""
    if isinstance(request_body, dict) and "response_view" in request_body:
        return {name: value for name, value in request_body.items() if name != "response_view"}
    return request_body


def output_material(record: Mapping[str, Any], status: str) -> dict[str, Any]:
    """What `output_hash` is the hash of; absent members are null."""
    names = ("verdict", "application_verdict", "action", "reason_code", "matched_rule_id", "evidence")
    return {"status": status} | {name: record.get(name) for name in names}


def evidence_codes(reason_code: str, matched_rule_id: str | None, status: str) -> list[str]:
    """The evidence: the reason code, then the rule, the default, or the failed input schema."""
    if status == "needs_input":
        return [reason_code, "schema:failed"]
    return [reason_code, f"rule:{matched_rule_id}" if matched_rule_id is not None else "rule:default"]


def compact_verdict(verdict: str) -> str:
    """`c`: yes and no as they are, unclear for review."""
    return verdict if verdict in ("yes", "no") else "unclear"


def action_binding(context: Mapping[str, Any]) -> dict[str, Any]:
    """What the decision is bound to: system, resource and proposed_action, and what else the context says of it."""
    binding = {
        "system": context.get("target_system", ""),
        "resource": context.get("target_object_id", ""),
        "proposed_action": context.get("requested_action") or context.get("mutation", ""),
    }
    extras = ("mutation", "actor", "subject", "amount", "currency")
    return binding | {name: context[name] for name in extras if name in context}


def runtime_binding_of(binding_mode: str) -> dict[str, str]:
    """Who decides, and on whose facts."""
    return {
        "production_core": PRODUCTION_CORE,
        "binding_mode": binding_mode,
        "verdict_authority": VERDICT_AUTHORITY,
        "customer_supplied_code": CUSTOMER_CODE,
    }


def rulebook_contract(schema_url: str) -> dict[str, str]:
    """The contract that the rulebook was validated and evaluated under."""
    return {
        "schema_version": RULEBOOK_SCHEMA,
        "schema_url": schema_url,
        "schema_hash": RULEBOOK_SCHEMA_HASH,
        "evaluator_version": EVALUATOR,
    }


RULEBOOK_SCHEMA_HASH: Final = content_hash(resources.schema("rulebook-v1"))


def decision_url(decision_id: str) -> str:
    """The relative path of a decision."""
    return f"/api/decision/{decision_id}"


def integrity(record: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of how a record is protected; `signature` is null where receipt signing is off."""
    signature = None
    if "receipt_signature" in record:
        signature = {
            "algorithm": record["receipt_signature_algorithm"],
            "key_id": record["receipt_key_id"],
            "public_key_fingerprint": record["receipt_public_key_fingerprint"],
        }
    return {
        "canonicalization": CANONICALIZATION,
        "hash_algorithm": HASH_ALGORITHM,
        "policy_hash": record["policy_hash"],
        "policy_bundle_hash": record["policy_bundle_hash"],
        "signature": signature,
    }


def _receipt_signature(record: Mapping[str, Any], signer: Signer | None) -> dict[str, Any]:
    if signer is None:
        return {}
    return {
        "receipt_key_id": signer.key_id,
        "receipt_signature": signer.sign(receipt_payload(record, signer.key_id)),
        "receipt_signature_algorithm": signer.algorithm,
        "receipt_public_key_fingerprint": signer.fingerprint,
    }
