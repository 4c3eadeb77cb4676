"""Offline verification of a Decision Record: every hash recomputed, every derived member derived again, the signature
checked against a trusted key. Nothing is looked up and no rule is run.

    result = verify_record(record, Trust(receipt_keys=registry, source="registry"))
    result.verified         # True only where integrity and authenticity both hold
    result.checks           # {"members": True, "record_hash": True, ...}; None: not checked, for want of material

Two members stand outside the signature: `decision_confidence` is checked against its own hash, and `audit_chain`
against the record as far as a record alone can tell; the chain and its checkpoints prove the rest of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gate.attestation import registration_hash
from gate.canonical import canonical, compact, content_hash
from gate.chain import leaf
from gate.errors import MaterialRefused
from gate.labels import BINDING_ADAPTER, CHAIN, EVALUATOR, PROTOCOL, RECORD
from gate.record import (
    compact_verdict,
    decision_url,
    envelope,
    evidence_codes,
    input_material,
    integrity,
    output_material,
    receipt_material,
    receipt_payload,
)
from gate.signing import ED25519, HMAC_SHA256, KeyRegistry, fingerprint, verify_ed25519, verify_hmac


@dataclass(frozen=True, slots=True)
class Trust:
    """What a verifier trusts.

    Attributes:
        receipt_keys: Receipt keys by id, with their states.
        public_key: A single trusted receipt key (PEM), for whatever key_id a record names.
        hmac_secret: The secret of hmac-sha256 receipts.
        hmac_key_id: The key_id that the secret goes by; None for whatever key_id a record names.
        attestation_keys: Registry keys by id, for the attestations inside a record.
        source: What to report as `key_source` when one of these verified: server, registry, public_key, hmac_secret.
    """

    receipt_keys: KeyRegistry | None = None
    public_key: str | None = None
    hmac_secret: bytes | None = None
    hmac_key_id: str | None = None
    attestation_keys: KeyRegistry | None = None
    source: str = "none"


@dataclass(slots=True)
class Verification:
    """What verification found.

    Attributes:
        checks: Each check by name: True it holds, False it does not, None it could not be made for want of material.
        expected: For each failed comparison, what it should be.
        actual: For each failed comparison, what the record says.
        integrity_valid: Nothing was changed since the record was hashed.
        authenticity_valid: A trusted key signed it.
        key_source: Where the key came from: server, registry, public_key, hmac_secret, request, or none.
        error: A code where the record is not verified.
        message: The same as a sentence.
    """

    checks: dict[str, bool | None] = field(default_factory=dict)
    expected: dict[str, Any] = field(default_factory=dict)
    actual: dict[str, Any] = field(default_factory=dict)
    integrity_valid: bool = False
    authenticity_valid: bool = False
    key_source: str = "none"
    error: str | None = None
    message: str | None = None

    @property
    def verified(self) -> bool:
        """Integrity and authenticity both hold."""
        return self.integrity_valid and self.authenticity_valid

    def to_dict(self) -> dict[str, Any]:
        """{ok, verified, integrity_valid, authenticity_valid, key_source, checks, expected, actual, error?, message?}.

        `ok` equals `verified`, so that nobody who reads only the one is misled.
        """
        result = {
            "ok": self.verified,
            "verified": self.verified,
            "integrity_valid": self.integrity_valid,
            "authenticity_valid": self.authenticity_valid,
            "key_source": self.key_source,
            "checks": self.checks,
            "expected": self.expected,
            "actual": self.actual,
        }
        if self.error is not None:
            result |= {"error": self.error, "message": self.message}
        return result

    def require(self, name: str, holds: bool | None) -> None:
        """Records a further check that a caller made, which the record must pass to be verified."""
        self.checks[name] = holds
        if holds is False:
            self.integrity_valid = False
            self.error, self.message = "RECORD_MISMATCH", f"The record is not the one asked for; {name} does not hold."

    def compare(self, name: str, expected: Any, actual: Any) -> None:
        """Records a check that two JSON values are the same value."""
        same = canonical(expected) == canonical(actual)
        self.checks[name] = same
        if not same:
            self.expected[name] = expected
            self.actual[name] = actual


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
}
"""The members that a full record may have."""

_NESTED: Final[Mapping[tuple[str, ...], type]] = {
    ("evidence_manifest", "sources"): list,
    ("rulebook_attestation", "bundle"): dict,
    ("rulebook_attestation", "bundle", "outcome"): dict,
    ("rulebook_attestation", "signature"): dict,
    ("rulebook_registry", "registry_attestation"): dict,
}

_AUTHENTICITY: Final = (
    "receipt_signature",
    "receipt_key",
    "attestation_signature",
    "registry_attestation_signature",
)


def verify_record(
    record: Any, trust: Trust, *, request_body: Any = None, untrusted_key: str | None = None
) -> Verification:
    """Verifies an exported full record.

    Args:
        record: The parsed record.
        trust: What the verifier trusts.
        request_body: The original Decision Request, where it is at hand: its hashes are then checked as well.
        untrusted_key: A PEM key that came with the record. It serves diagnosis where no trusted key is known and never
            makes a record verified.

    Returns:
        The result; never raises for what a record holds.
    """
    result = Verification()
    try:
        if _check_members(result, record):
            _check_hashes(result, record)
            _check_derived(result, record)
            _check_attestations(result, record, trust)
            _check_input(result, record, request_body)
            _check_outside_signature(result, record)
            _check_receipt(result, record, trust, untrusted_key)
    except MaterialRefused as error:
        result.checks["material"] = False
        result.error, result.message = error.code, error.message
    failed = [name for name, holds in result.checks.items() if holds is False]
    result.integrity_valid = not [name for name in failed if name not in _AUTHENTICITY]
    result.authenticity_valid = (
        result.checks.get("receipt_signature") is True
        and result.checks.get("receipt_key") is True
        and not [name for name in failed if name in _AUTHENTICITY]
    )
    if failed and (result.error is None or (not result.integrity_valid and result.error not in _UNREADABLE)):
        result.error, result.message = _verdict_on(failed)
    return result


# What cannot be read is said as such; otherwise a change weighs more than a key that is not known.
_UNREADABLE: Final = ("RECORD_INVALID", "RECORD_INCOMPLETE", "SVC_API_JSON_INVALID", "PUBLIC_KEY_INVALID")


def _verdict_on(failed: list[str]) -> tuple[str, str]:
    named = ", ".join(failed)
    if all(name in _AUTHENTICITY for name in failed):
        return "RECORD_SIGNATURE_INVALID", f"The record is not authentic; these checks fail: {named}."
    return "RECORD_INTEGRITY_FAILED", f"The record was changed after it was made; these checks fail: {named}."


def _check_members(result: Verification, record: Any) -> bool:
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
    mistyped = [name for name in record if name in known and not isinstance(record[name], known[name])]
    mistyped += [".".join(path) for path, type_ in _NESTED.items() if not isinstance(_at(record, *path), type_)]
    result.checks["members"] = not missing and not mistyped
    # Later versions of the protocol may add members, which nothing here can vouch for.
    result.checks["unknown_members"] = None if set(record) - set(known) - {"decision_contract"} else True
    if missing:
        result.error = "RECORD_INCOMPLETE"
        result.message = f"Only the full view of a record verifies; this one lacks {', '.join(missing)}."
    elif mistyped:
        result.error = "RECORD_INVALID"
        result.message = f"These members have a type that no record gives them: {', '.join(mistyped)}."
    return not missing and not mistyped


def _check_hashes(result: Verification, record: Mapping[str, Any]) -> None:
    result.compare("record_hash", content_hash(envelope(record)), record["record_hash"])
    result.compare("receipt_hash", content_hash(receipt_material(record)), record["receipt_hash"])
    result.compare("policy_bundle_hash", content_hash(record["policy_bundle"]), record["policy_bundle_hash"])
    status = record["rulebook_attestation"]["bundle"]["outcome"].get("status")
    result.compare("output_hash", content_hash(output_material(record, status)), record["output_hash"])
    bound = [source for source in record["evidence_manifest"]["sources"] if _at(source, "id") == "evaluation"]
    result.compare(
        "evaluation",
        content_hash(record["evaluation"]),
        _at(bound[0], "snapshot_hash") if len(bound) == 1 else None,
    )


def _check_derived(result: Verification, record: Mapping[str, Any]) -> None:
    """Derives again what the record repeats. None of these members is free to differ from what it repeats."""
    status = record["rulebook_attestation"]["bundle"]["outcome"].get("status")
    hash_, url = record["policy_hash"], decision_url(record["decision_id"])
    derived: dict[str, tuple[Any, Any]] = {
        "decision_record_version": (RECORD, record["decision_record_version"]),
        "decision_protocol_version": (PROTOCOL, record.get("decision_protocol_version", PROTOCOL)),
        "evaluator_version": (EVALUATOR, record["evaluator_version"]),
        "c": (compact_verdict(record["verdict"]), record["c"]),
        "v": (record["application_verdict"], record["v"]),
        "evidence": (
            evidence_codes(record["reason_code"], record["matched_rule_id"], status),
            record["evidence"],
        ),
        "evidence_manifest.codes": (record["evidence"], _at(record, "evidence_manifest", "codes")),
        "source_hash": (hash_, record["source_hash"]),
        "policy_bundle": (
            [record["policy_id"], record["policy_version"], hash_],
            [_at(record, "policy_bundle", name) for name in ("id", "version", "hash")],
        ),
        "rulebook": (
            [record["policy_id"], record["policy_version"], hash_],
            [_at(record, "rulebook", name) for name in ("id", "version", "hash")],
        ),
        "rulebook_registry": (
            [record["policy_id"], record["policy_version"], hash_, record["evaluator_version"]],
            [
                _at(record, "rulebook_registry", name)
                for name in ("rulebook_id", "version", "hash", "evaluator_version")
            ],
        ),
        # The envelope drops empty members, so that adding one here would leave record_hash as it is.
        "rulebook_contract": (compact(record["rulebook_contract"]), record["rulebook_contract"]),
        "registry_attestation": (
            record["rulebook_registry"].get("registry_attestation"),
            record["registry_attestation"],
        ),
        "urls": (
            [url, f"{url}/replay", f"{url}/verify"],
            [record["decision_url"], record["replay_url"], record["verify_url"]],
        ),
        "integrity": (integrity(record) if _receipt_members_agree(record) else None, record["integrity"]),
    }
    for name, (expected, actual) in derived.items():
        result.compare(name, expected, actual)
    result.checks["verdict"] = record["verdict"] in ("yes", "no", "review")
    # Only advisory records carry a decision contract, and no advisory record has a rulebook.
    result.checks["decision_contract"] = "decision_contract" not in record
    result.checks["idempotency_key"] = record.get("idempotency_key") != ""


def _receipt_members_agree(record: Mapping[str, Any]) -> bool:
    """Whether the four receipt members are all there, or none of them."""
    names = (
        "receipt_key_id",
        "receipt_signature",
        "receipt_signature_algorithm",
        "receipt_public_key_fingerprint",
    )
    present = [name in record for name in names]
    return all(present) or not any(present)


def _check_attestations(result: Verification, record: Mapping[str, Any], trust: Trust) -> None:
    attestation, registry = record["rulebook_attestation"], record["rulebook_registry"]
    bundle, signature = attestation["bundle"], attestation["signature"]
    result.compare("bundle_hash", content_hash(bundle), attestation.get("bundle_hash"))
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
    result.compare("registry_attestation_hash", registration_hash(registry), registered.get("attestation_hash"))
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


def _signed_or_not(signature: Any) -> bool:
    """Whether key and signature are both named where it is signed, and both null where it is not.

    The envelope drops empty members, so that "" in the place of null would leave record_hash as it is.
    """
    named = [signature["key_id"], signature["signature"]]
    if signature["status"] == "signed":
        return all(isinstance(text, str) for text in named)
    return named == [None, None]


def _attestation_holds(
    trust: Trust, signed_at: Any, signed_hash: Any, status: Any, key_id: Any, signature: Any
) -> bool | None:
    if status != "signed" or trust.attestation_keys is None:
        return None
    texts = (signed_at, signed_hash, key_id, signature)
    if not all(isinstance(text, str) for text in texts):
        return False
    key = trust.attestation_keys.find(key_id)
    # A compromised key's signature neither confirms nor refutes; the receipt still binds the attestation.
    if key is None or key.status == "compromised":
        return None
    return key.objection(signed_at) is None and verify_ed25519(key.public_key, signed_hash.encode(), signature)


def _check_input(result: Verification, record: Mapping[str, Any], request_body: Any) -> None:
    facts_hash = record["rulebook_attestation"]["bundle"].get("input_hash")
    binding_mode = record["runtime_binding"].get("binding_mode")
    if binding_mode == BINDING_ADAPTER:
        result.compare("facts_hash", content_hash(record.get("adapter_facts", {})), facts_hash)
    else:
        result.checks["facts_hash"] = None
        result.checks["adapter_facts"] = "adapter_facts" not in record and "trusted_adapter" not in record
    result.checks["input_hash"] = None
    result.checks["rulebook_hash"] = None
    if request_body is None:
        return
    result.compare("input_hash", content_hash(input_material(request_body)), record["input_hash"])
    if binding_mode != BINDING_ADAPTER:
        inputs = _at(request_body, "context", "inputs")
        result.compare("facts_hash", content_hash({} if inputs is None else inputs), facts_hash)
    rulebook = _at(request_body, "rulebook")
    if rulebook is not None:
        result.compare("rulebook_hash", content_hash(rulebook), record["policy_hash"])


def _check_outside_signature(result: Verification, record: Mapping[str, Any]) -> None:
    confidence = record.get("decision_confidence")
    result.checks["confidence_hash"] = None
    if confidence is not None:
        expected = content_hash({name: value for name, value in confidence.items() if name != "confidence_hash"})
        said = [confidence.get("confidence_hash"), record.get("confidence_hash")]
        result.compare("confidence_hash", [expected, expected], said)
    elif "confidence_hash" in record:
        result.checks["confidence_hash"] = False
    audit_chain = record.get("audit_chain")
    result.checks["audit_chain"] = None
    if audit_chain is not None:
        leaf_hash = leaf("decision", record["decision_id"], record["record_hash"], record["receipt_hash"])
        link = {"decision_chain_version": CHAIN, "entry_type": "decision", "leaf_hash": leaf_hash}
        result.compare("audit_chain", link, {name: audit_chain.get(name) for name in link})


def _check_receipt(result: Verification, record: Mapping[str, Any], trust: Trust, untrusted_key: str | None) -> None:
    result.checks["receipt_signature"] = None
    result.checks["receipt_key"] = None
    if not _receipt_members_agree(record):
        result.checks["receipt_members"] = False
        return
    if "receipt_signature" not in record:
        result.checks["receipt_signature"] = False
        result.error, result.message = "RECORD_UNSIGNED", "The record carries no receipt signature."
        return
    payload = receipt_payload(record, record["receipt_key_id"])
    algorithm, signature = record["receipt_signature_algorithm"], record["receipt_signature"]
    if algorithm == HMAC_SHA256:
        _check_hmac_receipt(result, record, trust, payload)
    elif algorithm == ED25519:
        _check_ed25519_receipt(result, record, trust, payload, untrusted_key)
    else:
        result.checks["receipt_signature"] = False
        result.error = "RECORD_SIGNATURE_INVALID"
        result.message = f"The signature algorithm {algorithm!r} is not one of ed25519 and hmac-sha256."
    result.checks["receipt_signature_scheme"] = signature.startswith(f"{algorithm}:")


def _check_hmac_receipt(result: Verification, record: Mapping[str, Any], trust: Trust, payload: bytes) -> None:
    result.compare("receipt_public_key_fingerprint", None, record["receipt_public_key_fingerprint"])
    if trust.hmac_secret is None or trust.hmac_key_id not in (None, record["receipt_key_id"]):
        _no_key(result, "The record is signed with HMAC; only the holder of that secret can verify it.")
        return
    result.key_source = trust.source
    result.checks["receipt_signature"] = verify_hmac(trust.hmac_secret, payload, record["receipt_signature"])
    result.checks["receipt_key"] = True


def _check_ed25519_receipt(
    result: Verification, record: Mapping[str, Any], trust: Trust, payload: bytes, untrusted_key: str | None
) -> None:
    key_id, signature = record["receipt_key_id"], record["receipt_signature"]
    known = trust.receipt_keys.find(key_id) if trust.receipt_keys is not None else None
    public_key = known.public_key if known is not None else trust.public_key
    if public_key is not None:
        result.key_source = trust.source
        result.checks["receipt_key"] = True
        objection = known.objection(record["created_at"]) if known is not None else None
        if objection is not None:
            result.checks["receipt_key"] = False
            result.error, result.message = "SIGNING_KEY_NOT_TRUSTED", objection
    elif untrusted_key is not None:
        public_key = untrusted_key
        result.key_source = "request"
        result.checks["receipt_key"] = False
        result.error = "SIGNING_KEY_NOT_TRUSTED"
        result.message = "The only key at hand came with the record; it shows integrity and proves no origin."
    else:
        given = trust.receipt_keys is not None
        why = f"is not in the key registry at hand: {key_id}" if given else "was not given"
        _no_key(result, f"The record's key {why}; verify against the publisher's key registry.")
        return
    result.checks["receipt_signature"] = verify_ed25519(public_key, payload, signature)
    expected = fingerprint(public_key)
    result.compare("receipt_public_key_fingerprint", expected, record["receipt_public_key_fingerprint"])


def _no_key(result: Verification, message: str) -> None:
    result.checks["receipt_key"] = False
    result.error, result.message = "SIGNING_KEY_UNKNOWN", message


def _at(value: Any, *names: str) -> Any:
    """The member under a path of names; None where the path leaves the objects."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
