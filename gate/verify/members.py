"""Whether a record has what verification reads: the members of the full view, with their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gate.records.envelope import ERASABLE, erased_members
from gate.verify.material import incomplete
from gate.verify.result import Verification

FULL_RECORD: Final[Mapping[str, type | tuple[type, ...]]] = {
    "decision_record_version": str,
    "decision_id": str,
    "request_id": str,
    "c": str,
    "v": str,
    "verdict": str,
    "application_verdict": str,
    "reason_code": str,
    "matched_rule_id": (str, type(None)),
    "action": str,
    "action_binding": dict,
    "evidence": list,
    "evidence_manifest": dict,
    "evaluation": dict,
    "policy_id": str,
    "policy_version": str,
    "policy_hash": str,
    "source_hash": str,
    "policy_bundle": dict,
    "policy_bundle_hash": str,
    "rulebook": dict,
    "rulebook_contract": dict,
    "evaluator_version": str,
    "runtime_binding": dict,
    "rulebook_registry": dict,
    "registry_attestation": dict,
    "rulebook_attestation": dict,
    "input_hash": str,
    "output_hash": str,
    "record_hash": str,
    "receipt_hash": str,
    "replay_url": str,
    "verify_url": str,
    "decision_url": str,
    "integrity": dict,
    "created_at": str,
}
"""The members that every full record has, and their JSON types."""


OPTIONAL_MEMBERS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "decision_protocol_version": str,
    "idempotency_key": str,
    "trusted_adapter": dict,
    "adapter_facts": dict,
    "decision_confidence": dict,
    "confidence_hash": str,
    "receipt_key_id": str,
    "receipt_signature": str,
    "receipt_signature_algorithm": str,
    "receipt_public_key_fingerprint": (str, type(None)),
    "audit_chain": dict,
    "erased": dict,
}
"""The members that a full record may have."""


_NESTED: Final[Mapping[tuple[str, ...], type]] = {
    ("evidence_manifest", "sources"): list,
    ("rulebook_attestation", "bundle"): dict,
    ("rulebook_attestation", "bundle", "outcome"): dict,
    ("rulebook_attestation", "signature"): dict,
    ("rulebook_registry", "registry_attestation"): dict,
}


def check_members(result: Verification, record: Any) -> bool:
    """Whether the record can be looked at further: all members of the full view are there, with their types, and so are
    the nested ones that the checks read.
    """
    if not isinstance(record, dict):
        result.checks["members"] = False
        result.error, result.message = (
            "RECORD_INVALID",
            "The record is no JSON object; export it again, whole.",
        )
        return False
    missing = sorted(name for name in FULL_RECORD if name not in record)
    known = {**FULL_RECORD, **OPTIONAL_MEMBERS}
    gone = {name for name in erased_members(record) if record.get(name, "") is None}
    mistyped = [
        name for name in record if name in known and name not in gone and not isinstance(record[name], known[name])
    ]
    mistyped += [".".join(path) for path, type_ in _NESTED.items() if not isinstance(at(record, *path), type_)]
    result.checks["members"] = not missing and not mistyped
    result.note_unknown("unknown_members", "", record.keys() - known.keys() - {"decision_contract"})
    if missing:
        result.error = "RECORD_INCOMPLETE"
        result.message = incomplete(record, missing, "Decision Record")
    elif mistyped:
        result.error = "RECORD_INVALID"
        result.message = f"These members have a type that no record gives them: {', '.join(mistyped)}."
    return not missing and not mistyped


def is_erasure_note(record: Mapping[str, Any]) -> bool:
    """Whether what a record says of its erasure is well-formed, and what it says was erased is null."""
    note = record["erased"]
    members = note.get("members")
    return (
        set(note) == {"erasure_id", "erased_at", "members"}
        and all(isinstance(note[name], str) and note[name] for name in ("erasure_id", "erased_at"))
        and bool(members)
        and members == [name for name in ERASABLE if name in erased_members(record)]
        and all(record.get(name) is None for name in members)
    )


def receipt_members_agree(record: Mapping[str, Any]) -> bool:
    """Whether the four receipt members are all there, or none of them."""
    names = (
        "receipt_key_id",
        "receipt_signature",
        "receipt_signature_algorithm",
        "receipt_public_key_fingerprint",
    )
    present = [name in record for name in names]
    return all(present) or not any(present)


def at(value: Any, *names: str) -> Any:
    """The member under a path of names; None where the path leaves the objects."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
