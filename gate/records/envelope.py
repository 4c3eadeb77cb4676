"""The material of a Decision Record's hashes, and the fields of a record that follow from others.

Making and verifying records use the same functions. The page `docs/reference/wire-format/record.md` has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, cast

from gate.encoding.canonical import canonical, compact, content_hash, is_empty
from gate.labels import CANONICALIZATION, HASH_ALGORITHM

# Callers that only make or check hashes need not load signing, where the links of these documents come from.
if TYPE_CHECKING:
    from gate.records.documents import ActionBinding, DecisionContext, Integrity, IntegritySignature, Signable, Source
    from gate.rulebooks.documents import TrustedAdapter


_NOTHING: Final[Mapping[str, object]] = {}


def envelope(record: Mapping[str, object], compacted: Mapping[str, object] = _NOTHING) -> dict[str, object]:
    """The material of `record_hash`, as "record_hash" in `docs/reference/wire-format/record.md` defines it.

    Args:
        record: The record.
        compacted: Fields of the record that are known to be compact, as `canonical.compact` returns them.
    """
    # A missing field is hashed like an empty one. A verifier must therefore require the fields by name, and refuse an
    # empty idempotency_key: the hash does not distinguish them.
    always = [*map(record.get, _ALWAYS)]
    material: dict[str, object] = dict(zip(_ALWAYS, always, strict=True))
    if not all(always):
        material = {name: value or _ALWAYS[name] for name, value in material.items()}
    if bundle_hash := record.get("policy_bundle_hash"):
        material["policy_bundle_hash"] = bundle_hash
    # An object in every record; verifiers make sure of that first.
    bundle = cast("Mapping[str, object]", record.get("policy_bundle") or {})
    if kept := {name: part for name in _BUNDLE_MEMBERS if (part := bundle.get(name)) or not is_empty(part)}:
        material["policy_bundle"] = kept
    for name in _WHERE_NOT_EMPTY:
        value = record.get(name)
        if type(value) is not str:
            value = compacted[name] if name in compacted else compact(value)
        if value or not is_empty(value):
            material[name] = value
    return material


_ALWAYS: Final[Mapping[str, object]] = {
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


def erased_members(record: Mapping[str, object]) -> frozenset[str]:
    """The erased parts of a decision, as its record states them: `adapter_facts`, `evaluation` and `input`."""
    said = record.get("erased")
    members = said.get("members") if isinstance(said, dict) else None
    return frozenset(name for name in members if name in ERASABLE) if isinstance(members, list) else frozenset()


ERASABLE: Final = ("adapter_facts", "evaluation", "input")
"""The parts that an erasure removes: two fields of a record, and its request."""


def receipt_material(record: Mapping[str, object], *, plain: bool = False) -> dict[str, object]:
    """The material of `receipt_hash`. `plain`: whether the record is plain, as `canonical.is_plain` defines it."""
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


def receipt_payload(record: Mapping[str, object], key_id: str, *, plain: bool = False) -> bytes:
    """The bytes that a receipt's signature covers. `plain` is as for `receipt_material`."""
    return canonical(
        {
            "decision_id": record["decision_id"],
            "key_id": key_id,
            "receipt_hash": record["receipt_hash"],
            "record_hash": record["record_hash"],
        },
        plain=plain,
    )


def input_material(request_body: object) -> object:
    """The material of `input_hash`: the request body as sent, without `response_view`."""
    if isinstance(request_body, dict) and "response_view" in request_body:
        return {name: value for name, value in request_body.items() if name != "response_view"}
    return request_body


def output_material(record: Mapping[str, object], status: object) -> dict[str, object]:
    """The material of `output_hash`. Missing fields are null."""
    names = ("verdict", "application_verdict", "action", "reason_code", "matched_rule_id", "evidence")
    return {"status": status, **{name: record.get(name) for name in names}}


def evidence_codes(reason_code: str, matched_rule_id: str | None, status: object) -> list[str]:
    """The evidence: the reason code, then the rule, the default, or the failed input schema."""
    if status == "needs_input":
        return [reason_code, "schema:failed"]
    return [reason_code, f"rule:{matched_rule_id}" if matched_rule_id is not None else "rule:default"]


def adapter_source(trusted_adapter: TrustedAdapter) -> Source:
    """The source for an adapter in an evidence manifest."""
    # A trusted_adapter under verification can lack each of these.
    return {
        "id": f"adapter:{trusted_adapter.get('adapter_id')}@{trusted_adapter.get('version')}",
        "type": "adapter",
        "snapshot_hash": trusted_adapter.get("manifest_hash"),
    }


def compact_verdict(verdict: str) -> str:
    """The field `c`: `yes`, `no`, or `unclear` for review."""
    return verdict if verdict in ("yes", "no") else "unclear"


def decision_url(decision_id: str) -> str:
    """The relative path of a decision."""
    return f"/api/decision/{decision_id}"


def action_binding(context: DecisionContext) -> ActionBinding:
    """The action binding of a decision: system, resource, proposed action, and optional fields of the context."""
    binding: ActionBinding = {
        "system": context.get("target_system", ""),
        "resource": context.get("target_object_id", ""),
        "proposed_action": context.get("requested_action") or context.get("mutation", ""),
    }
    if "mutation" in context:
        binding["mutation"] = context["mutation"]
    for name in _BOUND_WHERE_SENT:
        if name in context:
            binding[name] = context[name]
    return binding


_BOUND_WHERE_SENT: Final[tuple[Literal["actor", "subject", "amount", "currency"], ...]] = (
    "actor",
    "subject",
    "amount",
    "currency",
)


def integrity(record: Signable) -> Integrity:
    """The summary of a record's hashes and signature. `signature` is null if receipt signing is off."""
    signature: IntegritySignature | None = None
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
