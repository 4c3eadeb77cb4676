"""The two attestations inside a record: of the evaluation, and of the rulebook's registration."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import JsonObject
from gate.proof.signing import ED25519, verify_ed25519
from gate.records.attestation import registration_hash
from gate.verify.members import ReadableRecord
from gate.verify.result import Trust, Verification


def check_attestations(result: Verification, record: ReadableRecord, trust: Trust) -> None:
    """Checks the fields of the record that both attestations repeat, and their signatures if the key is known."""
    attestation, registry = record["rulebook_attestation"], record["rulebook_registry"]
    bundle, signature = attestation["bundle"], attestation["signature"]
    result.compare("bundle_hash", content_hash(bundle, plain=result.plain), attestation.get("bundle_hash"))
    outcome = {
        "status": bundle["outcome"].get("status"),
        "verdict": record["verdict"],
        "application_verdict": record["application_verdict"],
        "action": record["action"],
        "reason_code": record["reason_code"],
        "matched_rule_id": record["matched_rule_id"],
    }
    repeated = {
        "engine": record["evaluator_version"],
        "evaluator_version": record["evaluator_version"],
        "rulebook": record["rulebook"],
        "input_hash": bundle.get("input_hash"),
        "outcome": outcome,
        "runtime_binding": record["runtime_binding"],
        "trusted_adapter": record.get("trusted_adapter"),
    }
    result.compare("rulebook_attestation", repeated, bundle)
    result.checks["rulebook_attestation_members"] = (
        set(attestation) == _ATTESTATION_MEMBERS
        and set(attestation["signature"]) == _ATTESTATION_SIGNATURE_MEMBERS
        and _signed_or_not(signature)
    )
    result.checks["attestation_signature"] = _attestation_holds(
        trust,
        record["created_at"],
        attestation.get("bundle_hash"),
        signature.get("status"),
        signature.get("key_id"),
        f"{ED25519}:{signature.get('signature')}",
    )
    registered = registry["registry_attestation"]
    registration = registration_hash(registry, plain=result.plain)
    result.compare("registry_attestation_hash", registration, registered.get("attestation_hash"))
    result.checks["registry_attestation_members"] = set(registered) == _REGISTRY_ATTESTATION_MEMBERS and _signed_or_not(
        registered
    )
    result.checks["registry_attestation_signature"] = _attestation_holds(
        trust,
        registry.get("registered_at"),
        registered.get("attestation_hash"),
        registered.get("status"),
        registered.get("key_id"),
        registered.get("signature"),
    )


_ATTESTATION_MEMBERS: Final = {"schema_version", "bundle", "bundle_hash", "signature"}


_ATTESTATION_SIGNATURE_MEMBERS: Final = {
    "schema_version",
    "algorithm",
    "signed_field",
    "status",
    "key_id",
    "signature",
}


_REGISTRY_ATTESTATION_MEMBERS: Final = {
    "registry_attestation_version",
    "status",
    "attestation_hash",
    "key_id",
    "signature_algorithm",
    "signature",
}


def _signed_or_not(signature: JsonObject) -> bool:
    """Whether the key and the signature are both texts if it is signed, and both null otherwise.

    The envelope drops empty fields, so "" instead of null would not change `record_hash`.
    """
    named = [signature["key_id"], signature["signature"]]
    if signature["status"] == "signed":
        return all(isinstance(text, str) for text in named)
    return named == [None, None]


def _attestation_holds(
    trust: Trust, signed_at: object, signed_hash: object, status: object, key_id: object, signature: object
) -> bool | None:
    if status != "signed" or trust.attestation_keys is None:
        return None
    if not (isinstance(signed_at, str) and isinstance(signed_hash, str)):
        return False
    if not (isinstance(key_id, str) and isinstance(signature, str)):
        return False
    key = trust.attestation_keys.find(key_id)
    # A compromised key's signature neither confirms nor refutes; the receipt still binds the attestation.
    if key is None or key.status == "compromised":
        return None
    return key.objection(signed_at) is None and _signed(key.public_key, signed_hash, signature)


def _signed(public_key: str, signed_hash: str, signature: str) -> bool:
    # Only texts of the right length are remembered, so that senders of records cannot fill the memory.
    verify = _verified if len(signed_hash) == _HASH and len(signature) <= _LONGEST_SIGNATURE else _verify
    return verify(public_key, signed_hash, signature)


def _verify(public_key: str, signed_hash: str, signature: str) -> bool:
    return verify_ed25519(public_key, signed_hash.encode(), signature)


# Every record of a rulebook cites the same registration, and the same facts always have the same attestation.
_verified: Final = lru_cache(maxsize=1024)(_verify)
_HASH: Final = 64
_LONGEST_SIGNATURE: Final = 100
