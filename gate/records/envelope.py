"""What the hashes of a Decision Record cover, and what else in a record follows from it.

Making a record and verifying one use these same functions; the formulas are those of docs/wire-format.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gate.encoding.canonical import canonical, compact, content_hash, is_empty
from gate.labels import CANONICALIZATION, HASH_ALGORITHM


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


def erased_members(record: Mapping[str, Any]) -> frozenset[str]:
    """What a record says was erased of its decision: any of adapter_facts, evaluation and input."""
    said = record.get("erased")
    members = said.get("members") if isinstance(said, dict) else None
    return frozenset(name for name in members if name in ERASABLE) if isinstance(members, list) else frozenset()


ERASABLE: Final = ("adapter_facts", "evaluation", "input")
"""What an erasure takes: two members of a record, and the request that it answered."""


def receipt_material(record: Mapping[str, Any], *, plain: bool = False) -> dict[str, Any]:
    """What `receipt_hash` is the hash of; `plain` says that the record is, as `canonical.is_plain` has it."""
    names = (
        "decision_record_version",
        "decision_id",
        "record_hash",
        "input_hash",
        "output_hash",
        "policy_hash",
    )
    material = {name: record[name] for name in names}
    material["action_binding_hash"] = content_hash(record["action_binding"], plain=plain)
    material["evidence_manifest_hash"] = content_hash(record["evidence_manifest"], plain=plain)
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


def adapter_source(trusted_adapter: Mapping[str, Any]) -> dict[str, Any]:
    """What an evidence manifest names an adapter as."""
    return {
        "id": f"adapter:{trusted_adapter.get('adapter_id')}@{trusted_adapter.get('version')}",
        "type": "adapter",
        "snapshot_hash": trusted_adapter.get("manifest_hash"),
    }


def compact_verdict(verdict: str) -> str:
    """`c`: yes and no as they are, unclear for review."""
    return verdict if verdict in ("yes", "no") else "unclear"


def decision_url(decision_id: str) -> str:
    """The relative path of a decision."""
    return f"/api/decision/{decision_id}"


def action_binding(context: Mapping[str, Any]) -> dict[str, Any]:
    """What the decision is bound to: system, resource and proposed_action, and what else the context says of it."""
    binding = {
        "system": context.get("target_system", ""),
        "resource": context.get("target_object_id", ""),
        "proposed_action": context.get("requested_action") or context.get("mutation", ""),
    }
    extras = ("mutation", "actor", "subject", "amount", "currency")
    return binding | {name: context[name] for name in extras if name in context}


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
