"""A second, independent implementation of docs/reference/wire-format, for the tests.

It verifies what the product makes (records, receipts, outcomes, CRM syncs, migrations, routes, chain links,
checkpoints, packets) from that page alone. It shares no code with the product, and uses other libraries where there is
a choice, so that a mistake on one side does not hide on the other.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

PROTOCOL_VERSION = "decision_protocol_v1"
RECORD_VERSION = "decision_record_v1"
CHAIN_VERSION = "decision_chain_v1"
CHECKPOINT_VERSION = "decision_checkpoint_v1"
EPOCH_VERSION = "decision_checkpoint_epoch_v1"
ATTESTATION_VERSION = "rulebook_attestation_v1"
ATTESTATION_SIGNATURE_VERSION = "rulebook_attestation_signature_v1"
REGISTRY_VERSION = "decision_rulebook_registry_v1"
REGISTRY_ATTESTATION_VERSION = "decision_registry_attestation_v1"
RULEBOOK_SCHEMA_VERSION = "rulebook_v1"
ADAPTER_MANIFEST_VERSION = "trusted_adapter_manifest_v1"
ADAPTER_ISOLATION = "process_one_shot_v1"
EVALUATOR_VERSION = "svc_rulebook_v1"
ADVISORY_EVALUATOR = "svc_advisory_v1"
CANONICALIZATION = "json.sort_deep.v1"
HASH_ALGORITHM = "sha256"
MERKLE_STRATEGY = "rolling_sha256_pair_v1"

DIRECT_BINDING = "direct_declarative_rulebook"
ADAPTER_BINDING = "trusted_adapter_facts_then_declarative_rulebook"

ADVISORY_CONTRACT: dict[str, Any] = {
    "authority": "advisory_only",
    "production_verdict": False,
    "production_binding_required": True,
}

ADVISORY_HAS_NO = (
    "rulebook",
    "rulebook_contract",
    "runtime_binding",
    "rulebook_registry",
    "registry_attestation",
    "rulebook_attestation",
    "trusted_adapter",
    "adapter_facts",
)

MIGRATION_VERSION = "decision_migration_v1"
ROUTE_VERSION = "decision_route_v1"

RESOLUTION_VERSION = "decision_resolution_v1"
ENTRY_TYPES = ("decision", "execution", "outcome", "crm_sync", "erasure", "migration", "route", "resolution")

HASH_TEXT = re.compile(r"[0-9a-f]{64}")
TIMESTAMP_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
CHAIN_ID_TEXT = re.compile(r"[a-z0-9:_-]{1,180}")
BASE64URL_TEXT = re.compile(r"[A-Za-z0-9_-]+")

ENVELOPE_TEXTS = (
    "decision_id",
    "request_id",
    "idempotency_key",
    "verdict",
    "action",
    "policy_id",
    "policy_version",
    "policy_hash",
    "input_hash",
    "output_hash",
    "created_at",
    "replay_url",
    "verify_url",
)

ENVELOPE_COMPACTED = (
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

POLICY_BUNDLE_MEMBERS = ("id", "version", "hash", "hash_algorithm", "canonicalization", "source")

EXECUTION_FIELDS = (
    "decision_protocol_version",
    "decision_execution_version",
    "execution_receipt_id",
    "decision_id",
    "idempotency_key",
    "execution_status",
    "execution_result",
    "action_taken",
    "target_system",
    "target_object_id",
    "mutation",
    "external_ref",
    "execution_id",
    "executor",
    "decision_record_hash",
    "decision_receipt_hash",
    "decision_verdict",
    "decision_action",
    "policy_id",
    "policy_version",
    "policy_bundle_hash",
    "action_binding",
    "action_binding_hash",
    "action_binding_match",
    "state_before_hash",
    "state_after_hash",
    "state_before_ref",
    "state_after_ref",
    "evidence_refs",
    "execution_input_hash",
    "executed_at",
    "reported_at",
    "decision_found",
)

OUTCOME_FIELDS = (
    "decision_protocol_version",
    "decision_outcome_version",
    "outcome_id",
    "decision_id",
    "idempotency_key",
    "outcome_status",
    "action_executed",
    "action_taken",
    "target_system",
    "target_object_id",
    "mutation",
    "external_ref",
    "decision_record_hash",
    "decision_receipt_hash",
    "decision_verdict",
    "decision_action",
    "policy_id",
    "policy_version",
    "policy_bundle_hash",
    "action_binding",
    "observed_metrics",
    "evidence_refs",
    "outcome_input_hash",
    "executed_at",
    "reported_at",
    "decision_found",
)

SYNC_FIELDS = (
    "decision_protocol_version",
    "decision_crm_sync_version",
    "sync_id",
    "decision_id",
    "idempotency_key",
    "sync_status",
    "sync_direction",
    "crm_provider",
    "crm_object_type",
    "crm_object_id",
    "crm_record_url",
    "mapped_fields",
    "decision_record_hash",
    "decision_receipt_hash",
    "decision_verdict",
    "decision_action",
    "policy_id",
    "policy_version",
    "sync_input_hash",
    "reported_at",
)

MIGRATION_MEMBERS = (
    "decision_protocol_version",
    "decision_migration_version",
    "migration_entry_id",
    "migration_id",
    "event",
    "manifest_hash",
    "evidence_hash",
    "candidates",
    "actor",
    "note",
    "recorded_at",
    "migration_hash",
)

ROUTE_MEMBERS = (
    "decision_protocol_version",
    "decision_route_version",
    "route_entry_id",
    "rulebook_id",
    "from",
    "to",
    "cause",
    "migration_id",
    "approval_hash",
    "evidence_hash",
    "actor",
    "note",
    "recorded_at",
    "route_hash",
)

LINK_MEMBERS = (
    "decision_chain_version",
    "chain_id",
    "chain_position",
    "previous_link_hash",
    "previous_merkle_root",
    "leaf_hash",
    "merkle_root",
    "merkle_strategy",
    "entry_type",
    "decision_id",
    "record_hash",
    "receipt_hash",
    "policy_id",
    "policy_version",
    "created_at",
    "link_hash",
)

AUDIT_CHAIN_MEMBERS = (
    "decision_chain_version",
    "chain_id",
    "chain_position",
    "entry_type",
    "leaf_hash",
    "link_hash",
    "merkle_root",
)

EPOCH_MEMBERS = ("checkpoint_epoch_version", "reason", "begun_at", "chains", "heads_hash", "key_id", "signature")

CHECKPOINT_MEMBERS = (
    "checkpoint_version",
    "chain_id",
    "chain_size",
    "merkle_root",
    "link_hash",
    "issued_at",
    "key_id",
    "signature",
)


# Canonical JSON, H(x), compact(x)


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a JSON value; ValueError where it has none."""
    return rfc8785.dumps(_doubles(value))


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical_hash(value: Any) -> str:
    """H(x)."""
    return sha256_hex(canonical(value))


def compact(value: Any) -> Any:
    """Drop, recursively, members and items that are null, "", {} or [] after compacting."""
    if isinstance(value, dict):
        members = {key: compact(member) for key, member in value.items()}
        return {key: member for key, member in members.items() if not _empty(member)}
    if isinstance(value, list):
        return [item for item in (compact(item) for item in value) if not _empty(item)]
    return value


def _doubles(value: Any) -> Any:
    # rfc8785 refuses every integer beyond 2^53-1; the format admits those that are exactly the canonical
    # text of their double, and those hash as that double.
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) > 2**53 - 1:
        try:
            double = float(value)
        except OverflowError as error:
            raise ValueError("an integer overflows a double") from error
        if rfc8785.dumps(double) != str(value).encode("ascii"):
            raise ValueError(f"integer {value} is not the canonical text of a double")
        return double
    if isinstance(value, dict):
        return {key: _doubles(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_doubles(item) for item in value]
    return value


def _empty(value: Any) -> bool:
    # `false` and `0` are not empty, so this is not a truth test.
    return value is None or (isinstance(value, str | dict | list) and len(value) == 0)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _array(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: Any) -> int | None:
    # JSON's integer: 1.0 is one, true is not.
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and HASH_TEXT.fullmatch(value) is not None


def _is_timestamp(value: Any) -> bool:
    return isinstance(value, str) and TIMESTAMP_TEXT.fullmatch(value) is not None


def _without(value: dict[str, Any], member: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != member}


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}


class _Findings:
    def __init__(self) -> None:
        self.failures: list[str] = []

    def fail(self, failure: str) -> None:
        self.failures.append(failure)

    def require(self, holds: bool, failure: str) -> None:
        if not holds:
            self.failures.append(failure)

    def equal(self, what: str, actual: Any, expected: Any) -> None:
        # Compared as canonical bytes: 1 is 1.0, and true is not 1.
        found, wanted = canonical(actual), canonical(expected)
        if found != wanted:
            self.failures.append(f"{what}: found {_shown(found)}, expected {_shown(wanted)}")

    def canonical_input(self, what: str, value: Any) -> bool:
        try:
            canonical(value)
        except ValueError as error:
            self.failures.append(f"{what} has no canonical JSON: {error}")
            return False
        return True


def _shown(data: bytes) -> str:
    text = data.decode("utf-8")
    return text if len(text) <= 200 else text[:200] + "..."


# Keys and signatures


def _base64url(text: str) -> bytes | None:
    """Strict base64url without padding: one text for one byte string."""
    if BASE64URL_TEXT.fullmatch(text) is None:
        return None
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii") != text:
        return None
    return data


def _pem_fingerprint(pem: str) -> str:
    return sha256_hex(pem.strip().encode("utf-8"))


def _registry_entry(
    findings: _Findings, what: str, document: dict[str, Any], key_id: Any, used_at: Any
) -> dict[str, Any] | None:
    entries = [
        entry
        for entry in _array(document.get("keys"))
        if isinstance(entry, dict) and isinstance(key_id, str) and entry.get("key_id") == key_id
    ]
    if len(entries) != 1:
        findings.fail(f"{what}: key {key_id!r} stands {len(entries)} times in the key registry, expected once")
        return None
    entry = entries[0]
    status = entry.get("status")
    findings.require(
        status in ("active", "retired"), f"{what}: key {key_id!r} has status {status!r}, not to be trusted"
    )
    findings.require(
        status != "retired" or not _empty(entry.get("not_after")),
        f"{what}: key {key_id!r} is retired without not_after",
    )
    # Timestamps have one fixed form in UTC, so their text order is their order in time.
    not_before, not_after = entry.get("not_before"), entry.get("not_after")
    if not _empty(not_before):
        findings.require(
            _is_timestamp(not_before) and _is_timestamp(used_at) and not_before <= used_at,
            f"{what}: key {key_id!r} used at {used_at!r}, before its not_before {not_before!r}",
        )
    if not _empty(not_after):
        findings.require(
            _is_timestamp(not_after) and _is_timestamp(used_at) and used_at <= not_after,
            f"{what}: key {key_id!r} used at {used_at!r}, after its not_after {not_after!r}",
        )
    return entry


def _ed25519_key(
    findings: _Findings, what: str, document: dict[str, Any], key_id: Any, used_at: Any
) -> tuple[Ed25519PublicKey, str] | None:
    """The registry's key and its recomputed fingerprint."""
    entry = _registry_entry(findings, what, document, key_id, used_at)
    if entry is None:
        return None
    findings.equal(f"{what}: key algorithm", entry.get("algorithm"), "ed25519")
    pem = _text(entry.get("public_key"))
    fingerprint = _pem_fingerprint(pem)
    findings.equal(f"{what}: public_key_fingerprint in the registry", entry.get("public_key_fingerprint"), fingerprint)
    try:
        key = load_pem_public_key(pem.strip().encode("utf-8"))
    except (ValueError, UnsupportedAlgorithm):
        findings.fail(f"{what}: key {key_id!r} has no readable PEM public key")
        return None
    if not isinstance(key, Ed25519PublicKey):
        findings.fail(f"{what}: key {key_id!r} is not an Ed25519 key")
        return None
    return key, fingerprint


def _check_ed25519(findings: _Findings, what: str, key: Ed25519PublicKey, signature_text: str, message: bytes) -> None:
    signature = _base64url(signature_text)
    if signature is None:
        findings.fail(f"{what}: signature is not base64url without padding")
        return
    try:
        key.verify(signature, message)
    except InvalidSignature:
        findings.fail(f"{what}: Ed25519 signature does not hold")


def _check_prefixed_ed25519(
    findings: _Findings, what: str, key: Ed25519PublicKey, signature: Any, message: bytes
) -> None:
    text = _text(signature)
    if not text.startswith("ed25519:"):
        findings.fail(f"{what}: signature has no ed25519: prefix")
        return
    _check_ed25519(findings, what, key, text.removeprefix("ed25519:"), message)


# Record: what the hashes are made of


def _or_default(value: Any, default: Any) -> Any:
    return default if value is None else value


def _output(record: dict[str, Any]) -> dict[str, Any]:
    attested = _object(_object(_object(record.get("rulebook_attestation")).get("bundle")).get("outcome"))
    # The full record need not repeat the evaluation's status; the attested outcome always states it.
    status = record.get("status")
    return {
        "status": attested.get("status") if status is None else status,
        "verdict": record.get("verdict"),
        "application_verdict": record.get("application_verdict"),
        "action": record.get("action"),
        "reason_code": record.get("reason_code"),
        "matched_rule_id": record.get("matched_rule_id"),
        "evidence": record.get("evidence"),
    }


def _envelope(record: dict[str, Any]) -> dict[str, Any]:
    envelope: dict[str, Any] = {
        "decision_protocol_version": _or_default(record.get("decision_protocol_version"), PROTOCOL_VERSION),
        "decision_record_version": _or_default(record.get("decision_record_version"), ""),
        "action_binding": _or_default(record.get("action_binding"), {}),
        "evidence": _or_default(record.get("evidence"), []),
        "evidence_manifest": _or_default(record.get("evidence_manifest"), {}),
    }
    for name in ENVELOPE_TEXTS:
        envelope[name] = _or_default(record.get(name), "")
    if not _empty(record.get("policy_bundle_hash")):
        envelope["policy_bundle_hash"] = record["policy_bundle_hash"]
    policy_bundle = _object(record.get("policy_bundle"))
    stated = {name: policy_bundle[name] for name in POLICY_BUNDLE_MEMBERS if not _empty(policy_bundle.get(name))}
    if stated:
        envelope["policy_bundle"] = stated
    for name in ENVELOPE_COMPACTED:
        value = compact(record.get(name))
        if not _empty(value):
            envelope[name] = value
    return envelope


def _receipt(record: dict[str, Any]) -> dict[str, Any]:
    receipt: dict[str, Any] = {
        "action_binding_hash": canonical_hash(_or_default(record.get("action_binding"), {})),
        "evidence_manifest_hash": canonical_hash(_or_default(record.get("evidence_manifest"), {})),
    }
    for name in (
        "decision_record_version",
        "decision_id",
        "record_hash",
        "input_hash",
        "output_hash",
        "policy_hash",
    ):
        receipt[name] = _or_default(record.get(name), "")
    if not _empty(record.get("policy_bundle_hash")):
        receipt["policy_bundle_hash"] = record["policy_bundle_hash"]
    return receipt


def _leaf(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "decision_chain_version": entry.get("decision_chain_version"),
        "entry_type": entry.get("entry_type"),
        "decision_id": entry.get("decision_id"),
        "record_hash": entry.get("record_hash"),
        "receipt_hash": entry.get("receipt_hash") or None,
    }


# Record: the checks, in the order of the format's page


def _check_rulebook_identity(findings: _Findings, record: dict[str, Any]) -> None:
    rulebook = _object(record.get("rulebook"))
    findings.equal(
        "rulebook",
        rulebook,
        {
            "schema_version": RULEBOOK_SCHEMA_VERSION,
            "id": record.get("policy_id"),
            "version": record.get("policy_version"),
            "hash": record.get("policy_hash"),
        },
    )
    findings.require(_is_hash(record.get("policy_hash")), "policy_hash is not a hash")
    findings.equal("evaluator_version", record.get("evaluator_version"), EVALUATOR_VERSION)
    contract = _object(record.get("rulebook_contract"))
    findings.equal("rulebook_contract.schema_version", contract.get("schema_version"), RULEBOOK_SCHEMA_VERSION)
    findings.equal("rulebook_contract.evaluator_version", contract.get("evaluator_version"), EVALUATOR_VERSION)
    findings.require(
        _text(contract.get("schema_url")).endswith("/schemas/rulebook-v1.schema.json"),
        "rulebook_contract.schema_url does not name the rulebook schema",
    )
    findings.require(_is_hash(contract.get("schema_hash")), "rulebook_contract.schema_hash is not a hash")


def _check_rulebook_body(findings: _Findings, record: dict[str, Any], where: str, body: dict[str, Any]) -> None:
    rulebook = _object(record.get("rulebook"))
    findings.equal(f"rulebook.hash against {where}", rulebook.get("hash"), canonical_hash(body))
    findings.equal(f"rulebook.id against {where}", rulebook.get("id"), body.get("rulebook_id"))
    findings.equal(f"rulebook.version against {where}", rulebook.get("version"), body.get("version"))
    findings.equal(
        f"rulebook.schema_version against {where}", rulebook.get("schema_version"), body.get("schema_version")
    )


def _check_runtime_binding(findings: _Findings, record: dict[str, Any]) -> None:
    expected = {
        "production_core": "hybrid_declarative_rulebook_with_trusted_adapters",
        "binding_mode": DIRECT_BINDING,
        "verdict_authority": "declarative_rulebook",
        "customer_supplied_code": "rejected",
    }
    if not _empty(record.get("trusted_adapter")):
        expected["binding_mode"] = ADAPTER_BINDING
        expected["adapter_authority"] = "facts_only"
    findings.equal("runtime_binding", record.get("runtime_binding"), expected)


def _check_trusted_adapter(findings: _Findings, record: dict[str, Any]) -> None:
    adapter = _object(record.get("trusted_adapter"))
    dependency = _object(_object(record.get("rulebook_registry")).get("adapter_dependency"))
    if not adapter:
        findings.require(_empty(record.get("adapter_facts")), "adapter_facts stand in a record without trusted_adapter")
        findings.require(
            not dependency, "rulebook_registry.adapter_dependency stands in a record without trusted_adapter"
        )
        return
    findings.equal("trusted_adapter.manifest_version", adapter.get("manifest_version"), ADAPTER_MANIFEST_VERSION)
    findings.equal("trusted_adapter.execution_isolation", adapter.get("execution_isolation"), ADAPTER_ISOLATION)
    for name in ("implementation_hash", "manifest_hash", "input_hash", "output_hash"):
        findings.require(_is_hash(adapter.get(name)), f"trusted_adapter.{name} is not a hash")
    findings.equal(
        "trusted_adapter.output_hash",
        adapter.get("output_hash"),
        canonical_hash(_or_default(record.get("adapter_facts"), {})),
    )
    findings.equal(
        "rulebook_registry.adapter_dependency",
        dependency,
        {name: adapter.get(name) for name in ("adapter_id", "version", "manifest_hash", "implementation_hash")},
    )


def _check_rulebook_attestation(
    findings: _Findings, record: dict[str, Any], attestation_keys: dict[str, Any] | None
) -> None:
    attestation = _object(record.get("rulebook_attestation"))
    bundle = _object(attestation.get("bundle"))
    findings.equal("rulebook_attestation.schema_version", attestation.get("schema_version"), ATTESTATION_VERSION)
    findings.equal("rulebook_attestation.bundle_hash", attestation.get("bundle_hash"), canonical_hash(bundle))

    outcome = _object(bundle.get("outcome"))
    status = outcome.get("status")
    findings.require(
        status in ("ok", "needs_input"),
        f"rulebook_attestation.bundle.outcome.status is {status!r}, expected 'ok' or 'needs_input'",
    )
    if record.get("status") is not None:
        findings.equal("status", record.get("status"), status)
    findings.equal(
        "rulebook_attestation.bundle",
        bundle,
        {
            "engine": EVALUATOR_VERSION,
            "evaluator_version": EVALUATOR_VERSION,
            "rulebook": record.get("rulebook"),
            "input_hash": bundle.get("input_hash"),
            "outcome": {
                "status": status,
                "verdict": record.get("verdict"),
                "application_verdict": record.get("application_verdict"),
                "action": record.get("action"),
                "reason_code": record.get("reason_code"),
                "matched_rule_id": record.get("matched_rule_id"),
            },
            "runtime_binding": record.get("runtime_binding"),
            "trusted_adapter": record.get("trusted_adapter") or None,
        },
    )
    findings.require(_is_hash(bundle.get("input_hash")), "rulebook_attestation.bundle.input_hash is not a hash")
    if not _empty(record.get("trusted_adapter")):
        findings.equal(
            "facts hash of adapter_facts",
            bundle.get("input_hash"),
            canonical_hash(_or_default(record.get("adapter_facts"), {})),
        )

    signature = _object(attestation.get("signature"))
    what = "rulebook_attestation.signature"
    findings.equal(f"{what}.schema_version", signature.get("schema_version"), ATTESTATION_SIGNATURE_VERSION)
    findings.equal(f"{what}.algorithm", signature.get("algorithm"), "Ed25519")
    findings.equal(f"{what}.signed_field", signature.get("signed_field"), "bundle_hash")
    signed = signature.get("status")
    findings.require(signed in ("signed", "unsigned", "error"), f"{what}.status is {signed!r}, which is not a status")
    if signed != "signed":
        findings.require(_empty(signature.get("signature")), f"{what}: signature stands beside status {signed!r}")
        findings.require(attestation_keys is None, f"{what}: not signed, though attestation keys were given")
        return
    findings.require(not _empty(signature.get("signature")), f"{what}: status signed without a signature")
    if attestation_keys is None:
        return
    key = _ed25519_key(findings, what, attestation_keys, signature.get("key_id"), record.get("created_at"))
    if key is not None:
        message = _text(attestation.get("bundle_hash")).encode("utf-8")
        _check_ed25519(findings, what, key[0], _text(signature.get("signature")), message)


def _check_rulebook_registry(
    findings: _Findings, record: dict[str, Any], attestation_keys: dict[str, Any] | None
) -> None:
    registry = _object(record.get("rulebook_registry"))
    rulebook = _object(record.get("rulebook"))
    expected = {
        "rulebook_registry_version": REGISTRY_VERSION,
        "schema_version": rulebook.get("schema_version"),
        "rulebook_id": rulebook.get("id"),
        "version": rulebook.get("version"),
        "hash": rulebook.get("hash"),
        "evaluator_version": record.get("evaluator_version"),
        "hash_algorithm": HASH_ALGORITHM,
        "canonicalization": CANONICALIZATION,
    }
    for name, value in expected.items():
        findings.equal(f"rulebook_registry.{name}", registry.get(name), value)
    findings.require(_is_hash(registry.get("scope_hash")), "rulebook_registry.scope_hash is not a hash")
    findings.require(_is_timestamp(registry.get("registered_at")), "rulebook_registry.registered_at is not a timestamp")

    what = "rulebook_registry.registry_attestation"
    attestation = _object(registry.get("registry_attestation"))
    findings.equal(
        f"{what}.registry_attestation_version",
        attestation.get("registry_attestation_version"),
        REGISTRY_ATTESTATION_VERSION,
    )
    findings.equal(
        f"{what}.attestation_hash",
        attestation.get("attestation_hash"),
        canonical_hash(_without(registry, "registry_attestation")),
    )
    findings.equal("registry_attestation", record.get("registry_attestation"), attestation)
    if attestation.get("status") != "signed":
        findings.require(
            _empty(attestation.get("signature")),
            f"{what}: signature stands beside status {attestation.get('status')!r}",
        )
        findings.require(attestation_keys is None, f"{what}: not signed, though attestation keys were given")
        return
    findings.equal(f"{what}.signature_algorithm", attestation.get("signature_algorithm"), "ed25519")
    findings.require(not _empty(attestation.get("signature")), f"{what}: status signed without a signature")
    if attestation_keys is None:
        return
    # The metadata is signed once, at its first registration.
    key = _ed25519_key(findings, what, attestation_keys, attestation.get("key_id"), registry.get("registered_at"))
    if key is not None:
        message = _text(attestation.get("attestation_hash")).encode("utf-8")
        _check_prefixed_ed25519(findings, what, key[0], attestation.get("signature"), message)


def _check_policy_bundle(findings: _Findings, record: dict[str, Any], is_rulebook: bool) -> None:
    policy_bundle = _object(record.get("policy_bundle"))
    if not policy_bundle:
        findings.fail("policy_bundle is absent")
        findings.require(_empty(record.get("policy_bundle_hash")), "policy_bundle_hash stands without a policy_bundle")
        return
    findings.equal(
        "policy_bundle",
        _without(policy_bundle, "source"),
        {
            "id": record.get("policy_id"),
            "version": record.get("policy_version"),
            "hash": record.get("policy_hash"),
            "hash_algorithm": HASH_ALGORITHM,
            "canonicalization": CANONICALIZATION,
        },
    )
    findings.equal("policy_bundle_hash", record.get("policy_bundle_hash"), canonical_hash(policy_bundle))


def _check_input(findings: _Findings, record: dict[str, Any], request_body: dict[str, Any]) -> None:
    findings.equal("input_hash", record.get("input_hash"), canonical_hash(_without(request_body, "response_view")))
    context = _object(request_body.get("context"))
    binding: dict[str, Any] = {
        "system": context.get("target_system") or "",
        "resource": context.get("target_object_id") or "",
        "proposed_action": context.get("requested_action") or context.get("mutation") or "",
    }
    for name in ("mutation", "actor", "subject", "amount", "currency"):
        if name in context:
            binding[name] = context[name]
    findings.equal(
        "action_binding",
        _without_nulls(_object(record.get("action_binding"))),
        _without_nulls(binding),
    )


def _check_facts(findings: _Findings, record: dict[str, Any], request_body: dict[str, Any]) -> None:
    bundle = _object(_object(record.get("rulebook_attestation")).get("bundle"))
    adapter = _object(record.get("trusted_adapter"))
    request_adapter = _object(request_body.get("adapter"))
    findings.equal("use of an adapter against the request", bool(adapter), bool(request_adapter))
    if request_adapter:
        # The facts themselves are not in the request; their hash is checked against adapter_facts.
        for name in ("adapter_id", "version", "manifest_hash"):
            findings.equal(f"trusted_adapter.{name} against the request", adapter.get(name), request_adapter.get(name))
        findings.equal(
            "trusted_adapter.input_hash",
            adapter.get("input_hash"),
            canonical_hash(_or_default(request_adapter.get("input"), {})),
        )
    else:
        facts = _or_default(_object(request_body.get("context")).get("inputs"), {})
        findings.equal("facts hash of context.inputs", bundle.get("input_hash"), canonical_hash(facts))


def _erased(record: dict[str, Any]) -> list[Any]:
    return _array(_object(record.get("erased")).get("members"))


def _check_evidence(findings: _Findings, record: dict[str, Any], is_rulebook: bool) -> None:
    manifest = _object(record.get("evidence_manifest"))
    sources = [_object(source) for source in _array(manifest.get("sources"))]
    findings.equal("evidence_manifest.codes", manifest.get("codes"), record.get("evidence"))

    if not is_rulebook:
        _check_advice(findings, record, sources)
        return

    outcome = _object(_object(_object(record.get("rulebook_attestation")).get("bundle")).get("outcome"))
    if outcome.get("status") == "needs_input":
        cause = "schema:failed"
    elif not _empty(record.get("matched_rule_id")):
        cause = f"rule:{record.get('matched_rule_id')}"
    else:
        cause = "rule:default"
    findings.equal("evidence", record.get("evidence"), [record.get("reason_code"), cause])

    erased = _erased(record)
    findings.require(
        record.get("evaluation") is None if "evaluation" in erased else isinstance(record.get("evaluation"), dict),
        "evaluation is absent or not an object, or there although it was erased",
    )
    rulebook = _object(record.get("rulebook"))
    adapter = _object(record.get("trusted_adapter"))
    evaluation_hash: str | None = canonical_hash(record.get("evaluation"))
    if "evaluation" in erased:
        # What it was is not to be told any more; record_hash covers the hash that stands here.
        bound = [source.get("snapshot_hash") for source in sources if source.get("id") == "evaluation"]
        evaluation_hash = bound[0] if len(bound) == 1 and _is_hash(bound[0]) else None
    expected = [
        {
            "id": f"rulebook:{rulebook.get('id')}@{rulebook.get('version')}",
            "type": "rulebook",
            "snapshot_hash": rulebook.get("hash"),
        },
        {
            "id": "evaluation",
            "type": "evaluation",
            "snapshot_hash": evaluation_hash,
        },
    ]
    if adapter:
        expected.append(
            {
                "id": f"adapter:{adapter.get('adapter_id')}@{adapter.get('version')}",
                "type": "adapter",
                "snapshot_hash": adapter.get("manifest_hash"),
            }
        )
    findings.equal("evidence_manifest.sources", manifest.get("sources"), expected)


def _check_advice(findings: _Findings, record: dict[str, Any], sources: list[dict[str, Any]]) -> None:
    """An advisory record: what it says follows from the upstream's answer, and none of it from a rulebook."""
    for name in ADVISORY_HAS_NO:
        findings.require(name not in record, f"{name} stands in an advisory record")
    evaluation = _object(record.get("evaluation"))
    hashes = {"evaluation": canonical_hash(evaluation), "upstream_answer": canonical_hash(evaluation.get("answer"))}
    mode, code = _text(evaluation.get("mode")), record.get("reason_code")
    said = _ADVICE.get((mode, _text(_object(evaluation.get("answer")).get("answer")) if mode == "single" else ""))
    if "evaluation" in _erased(record):
        findings.require(record.get("evaluation") is None, "evaluation is there although it was erased")
        hashes = {_text(source.get("id")): _text(source.get("snapshot_hash")) for source in sources[1:]}
        mode, said = next(
            ((mode, says) for (mode, _), says in _ADVICE.items() if says[2] == code),
            ("", None),
        )
    policy = record.get("policy_id"), record.get("policy_version")
    findings.equal("policy_id", policy[0], f"advisory.{mode}")
    findings.equal("what the answer says", (record.get("verdict"), record.get("v"), code), said)
    findings.equal("application_verdict", record.get("application_verdict"), "ADVISORY")
    findings.equal("action", record.get("action"), "hold_for_binding_decision")
    findings.require(record.get("matched_rule_id") is None, "matched_rule_id stands in an advisory record")
    findings.equal("evidence", record.get("evidence"), [code, f"answer:{hashes.get('upstream_answer')}"])
    expected = [
        {"id": f"prompt:{policy[0]}@{policy[1]}", "type": "prompt", "snapshot_hash": record.get("policy_hash")},
        {"id": "evaluation", "type": "evaluation", "snapshot_hash": hashes.get("evaluation")},
        {"id": "upstream_answer", "type": "advisory", "snapshot_hash": hashes.get("upstream_answer")},
    ]
    findings.equal("evidence_manifest.sources", sources, expected)
    findings.require(all(_is_hash(source.get("snapshot_hash")) for source in sources), "a source has no hash")


_ADVICE: dict[tuple[str, str], tuple[str, str, str]] = {
    ("single", "yes"): ("yes", "approved", "ADVISORY_YES"),
    ("single", "no"): ("no", "denied", "ADVISORY_NO"),
    ("single", "unclear"): ("review", "unclear", "ADVISORY_UNCLEAR"),
    ("multi", ""): ("review", "unclear", "ADVISORY_SCORES"),
    ("runtime", ""): ("review", "unclear", "ADVISORY_RECOMMENDATION"),
}
"""By the mode and the answer of mode single: the verdict, the word `v`, and the reason code."""


def _check_hashes(findings: _Findings, record: dict[str, Any]) -> None:
    findings.equal("decision_record_version", record.get("decision_record_version"), RECORD_VERSION)
    if record.get("decision_protocol_version") is not None:
        findings.equal("decision_protocol_version", record["decision_protocol_version"], PROTOCOL_VERSION)
    findings.require(_is_timestamp(record.get("created_at")), "created_at is not a timestamp")
    findings.require(_is_hash(record.get("input_hash")), "input_hash is not a hash")
    findings.equal("output_hash", record.get("output_hash"), canonical_hash(_output(record)))
    findings.equal("record_hash", record.get("record_hash"), canonical_hash(_envelope(record)))
    findings.equal("receipt_hash", record.get("receipt_hash"), canonical_hash(_receipt(record)))


def _check_receipt_signature(
    findings: _Findings,
    record: Any,
    receipt_keys: Any,
    hmac_secret: bytes | None,
) -> None:
    what = "receipt_signature"
    signature = _text(record.get("receipt_signature"))
    key_id = record.get("receipt_key_id")
    fingerprint = record.get("receipt_public_key_fingerprint")
    if not signature:
        for name in (
            "receipt_key_id",
            "receipt_signature",
            "receipt_signature_algorithm",
            "receipt_public_key_fingerprint",
        ):
            findings.require(_empty(record.get(name)), f"{name} stands in a record without a signature")
        findings.require(receipt_keys is None and hmac_secret is None, f"{what}: absent, though key material was given")
        return

    message = canonical(
        {
            "decision_id": record.get("decision_id"),
            "key_id": key_id,
            "receipt_hash": record.get("receipt_hash"),
            "record_hash": record.get("record_hash"),
        }
    )
    algorithm = record.get("receipt_signature_algorithm")
    if algorithm == "ed25519":
        if receipt_keys is None:
            findings.fail(f"{what}: no key registry was given to check it with")
            return
        key = _ed25519_key(findings, what, receipt_keys, key_id, record.get("created_at"))
        if key is not None:
            findings.equal("receipt_public_key_fingerprint", fingerprint, key[1])
            _check_prefixed_ed25519(findings, what, key[0], signature, message)
    elif algorithm == "hmac-sha256":
        # There is no public key, so there is nothing a fingerprint could be made of.
        findings.require(_empty(fingerprint), "receipt_public_key_fingerprint stands beside an HMAC")
        if hmac_secret is None:
            findings.fail(f"{what}: no HMAC secret was given to check it with")
            return
        expected = "hmac-sha256:" + hmac.new(hmac_secret, message, hashlib.sha256).hexdigest()
        findings.require(
            hmac.compare_digest(signature.encode("utf-8"), expected.encode("utf-8")),
            f"{what}: HMAC does not hold",
        )
    else:
        findings.fail(f"receipt_signature_algorithm is {algorithm!r}, which is not an algorithm")


def _check_derived(findings: _Findings, record: dict[str, Any], is_rulebook: bool) -> None:
    verdict = record.get("verdict")
    findings.require(verdict in ("yes", "no", "review"), f"verdict is {verdict!r}, expected 'yes', 'no' or 'review'")
    findings.equal("c", record.get("c"), "unclear" if verdict == "review" else verdict)
    if is_rulebook:
        findings.equal("v", record.get("v"), record.get("application_verdict"))
        findings.require(record.get("decision_contract") is None, "decision_contract stands in a binding record")
    else:
        findings.equal("decision_contract", record.get("decision_contract"), ADVISORY_CONTRACT)
    findings.equal(
        "source_hash", _or_default(record.get("source_hash"), ""), _or_default(record.get("policy_hash"), "")
    )
    path = f"/api/decision/{record.get('decision_id')}"
    findings.equal("decision_url", record.get("decision_url"), path)
    findings.equal("replay_url", record.get("replay_url"), f"{path}/replay")
    findings.equal("verify_url", record.get("verify_url"), f"{path}/verify")
    # Members without a value may be left out, null or "": compacting makes the three one.
    findings.equal(
        "integrity",
        compact(_object(record.get("integrity"))),
        compact(
            {
                "canonicalization": CANONICALIZATION,
                "hash_algorithm": HASH_ALGORITHM,
                "policy_hash": record.get("policy_hash"),
                "policy_bundle_hash": record.get("policy_bundle_hash"),
                "signature": {
                    "algorithm": record.get("receipt_signature_algorithm"),
                    "key_id": record.get("receipt_key_id"),
                    "public_key_fingerprint": record.get("receipt_public_key_fingerprint"),
                },
            }
        ),
    )


def _check_confidence(findings: _Findings, record: dict[str, Any]) -> None:
    confidence = _object(record.get("decision_confidence"))
    if not confidence:
        findings.require(_empty(record.get("confidence_hash")), "confidence_hash stands without decision_confidence")
        return
    expected = canonical_hash(_without(confidence, "confidence_hash"))
    findings.equal("decision_confidence.confidence_hash", confidence.get("confidence_hash"), expected)
    if "confidence_hash" in record:
        findings.equal("confidence_hash", record.get("confidence_hash"), expected)


def _check_audit_chain(findings: _Findings, record: dict[str, Any]) -> None:
    chain = _object(record.get("audit_chain"))
    findings.equal("audit_chain members", sorted(chain), sorted(AUDIT_CHAIN_MEMBERS))
    findings.equal("audit_chain.decision_chain_version", chain.get("decision_chain_version"), CHAIN_VERSION)
    findings.equal("audit_chain.entry_type", chain.get("entry_type"), "decision")
    findings.require(
        CHAIN_ID_TEXT.fullmatch(_text(chain.get("chain_id"))) is not None, "audit_chain.chain_id is malformed"
    )
    position = _integer(chain.get("chain_position"))
    findings.require(position is not None and position >= 1, "audit_chain.chain_position is not a position")
    for name in ("leaf_hash", "link_hash", "merkle_root"):
        findings.require(_is_hash(chain.get(name)), f"audit_chain.{name} is not a hash")
    leaf_hash = canonical_hash(
        _leaf(
            {
                "decision_chain_version": CHAIN_VERSION,
                "entry_type": "decision",
                "decision_id": record.get("decision_id"),
                "record_hash": record.get("record_hash"),
                "receipt_hash": record.get("receipt_hash"),
            }
        )
    )
    findings.equal("audit_chain.leaf_hash", chain.get("leaf_hash"), leaf_hash)
    if position == 1:
        findings.equal("audit_chain.merkle_root at position 1", chain.get("merkle_root"), leaf_hash)


def _check_limits(findings: _Findings, record: dict[str, Any]) -> None:
    for name, longest in (
        ("idempotency_key", 300),
        ("request_id", 160),
        ("action", 140),
        ("decision_id", 200),
    ):
        findings.require(len(_text(record.get(name))) <= longest, f"{name} is longer than {longest} characters")
    for name in ("decision_id", "request_id"):
        findings.require(bool(_text(record.get(name))), f"{name} is absent")
    action = _text(record.get("action"))
    findings.require(action == action.strip(), "action has surrounding white space")
    codes = _array(record.get("evidence"))
    findings.require(len(codes) <= 32, "evidence holds more than 32 codes")
    for code in codes:
        findings.require(
            isinstance(code, str) and len(code) <= 180, f"evidence code {code!r} is not a text of at most 180"
        )
    sources = _array(_object(record.get("evidence_manifest")).get("sources"))
    findings.require(len(sources) <= 16, "evidence_manifest holds more than 16 sources")


def record_failures(
    record: Any,
    receipt_keys: Any,
    *,
    attestation_keys: Any = None,
    hmac_secret: bytes | None = None,
    request_body: Any = None,
    rulebook: Any = None,
) -> list[str]:
    """Every check of a full record; empty where all hold.

    A signed receipt without the key material to check it fails, and so does an unsigned one where key
    material was given. Attestation signatures are checked only where attestation_keys are given, and then
    must be there.
    """
    findings = _Findings()
    admitted = [
        findings.canonical_input(what, value)
        for what, value in (("record", record), ("request_body", request_body), ("rulebook", rulebook))
    ]
    if not all(admitted):
        return findings.failures

    is_rulebook = record.get("evaluator_version") != ADVISORY_EVALUATOR
    if is_rulebook:
        _check_rulebook_identity(findings, record)
        _check_runtime_binding(findings, record)
        _check_trusted_adapter(findings, record)
        _check_rulebook_attestation(findings, record, attestation_keys)
        _check_rulebook_registry(findings, record, attestation_keys)
    _check_policy_bundle(findings, record, is_rulebook)
    if rulebook is not None:
        _check_rulebook_body(findings, record, "the rulebook given", rulebook)
    if request_body is not None:
        _check_input(findings, record, request_body)
        if is_rulebook:
            _check_facts(findings, record, request_body)
        if isinstance(request_body.get("rulebook"), dict):
            _check_rulebook_body(findings, record, "the request's rulebook", request_body["rulebook"])
    _check_evidence(findings, record, is_rulebook)
    _check_hashes(findings, record)
    _check_receipt_signature(findings, record, receipt_keys, hmac_secret)
    _check_derived(findings, record, is_rulebook)
    _check_confidence(findings, record)
    _check_audit_chain(findings, record)
    _check_limits(findings, record)
    return findings.failures


# Receipts, outcomes, CRM syncs


def _fields_hash(value: dict[str, Any], fields: tuple[str, ...]) -> str:
    return canonical_hash(compact({name: value.get(name) for name in fields}))


def execution_hash(receipt: Any) -> str:
    return _fields_hash(receipt, EXECUTION_FIELDS)


def outcome_hash(outcome: Any) -> str:
    return _fields_hash(outcome, OUTCOME_FIELDS)


def sync_hash(sync: Any) -> str:
    return _fields_hash(sync, SYNC_FIELDS)


# Audit chain


def _check_link(findings: _Findings, what: str, link: dict[str, Any]) -> None:
    missing = [name for name in LINK_MEMBERS if name not in link]
    findings.require(not missing, f"{what}: members missing: {', '.join(missing)}")
    findings.equal(f"{what}: decision_chain_version", link.get("decision_chain_version"), CHAIN_VERSION)
    findings.equal(f"{what}: merkle_strategy", link.get("merkle_strategy"), MERKLE_STRATEGY)
    entry_type = link.get("entry_type")
    findings.require(bool(_text(entry_type)), f"{what}: entry_type is {entry_type!r}")
    findings.require(CHAIN_ID_TEXT.fullmatch(_text(link.get("chain_id"))) is not None, f"{what}: chain_id is malformed")
    findings.require(_is_timestamp(link.get("created_at")), f"{what}: created_at is not a timestamp")
    findings.require(_is_hash(link.get("record_hash")), f"{what}: record_hash is not a hash")
    if entry_type == "decision":
        findings.require(_is_hash(link.get("receipt_hash")), f"{what}: receipt_hash is not a hash")
    elif entry_type not in ENTRY_TYPES:
        # What an entry of a later release carries is not known here; its link holds like any other.
        found = link.get("receipt_hash")
        findings.require(found is None or _is_hash(found), f"{what}: receipt_hash is neither a hash nor null")
    else:
        findings.require(
            link.get("receipt_hash") is None,
            f"{what}: receipt_hash stands in an entry that is not a decision",
        )

    leaf_hash = canonical_hash(_leaf(link))
    findings.equal(f"{what}: leaf_hash", link.get("leaf_hash"), leaf_hash)

    position = _integer(link.get("chain_position"))
    findings.require(position is not None and position >= 1, f"{what}: chain_position is not a position")
    if position == 1:
        findings.require(link.get("previous_link_hash") is None, f"{what}: position 1 has a previous_link_hash")
        findings.require(link.get("previous_merkle_root") is None, f"{what}: position 1 has a previous_merkle_root")
        merkle_root = leaf_hash
    else:
        for name in ("previous_link_hash", "previous_merkle_root"):
            findings.require(_is_hash(link.get(name)), f"{what}: {name} is not a hash")
        merkle_root = canonical_hash(
            {
                "strategy": MERKLE_STRATEGY,
                "previous_merkle_root": link.get("previous_merkle_root"),
                "leaf_hash": leaf_hash,
                "chain_position": link.get("chain_position"),
            }
        )
    findings.equal(f"{what}: merkle_root", link.get("merkle_root"), merkle_root)

    findings.equal(
        f"{what}: link_hash",
        link.get("link_hash"),
        canonical_hash(
            {
                "decision_chain_version": link.get("decision_chain_version"),
                "chain_id": link.get("chain_id"),
                "chain_position": link.get("chain_position"),
                "previous_link_hash": link.get("previous_link_hash") or None,
                "previous_merkle_root": link.get("previous_merkle_root") or None,
                "leaf_hash": leaf_hash,
                "merkle_root": merkle_root,
                "merkle_strategy": MERKLE_STRATEGY,
                "entry_type": entry_type,
                "decision_id": link.get("decision_id"),
                "record_hash": link.get("record_hash"),
                "receipt_hash": link.get("receipt_hash") or None,
                "policy_id": link.get("policy_id") or None,
                "policy_version": link.get("policy_version") or None,
                "created_at": link.get("created_at"),
            }
        ),
    )


def link_failures(links: Any) -> list[str]:
    """Every check of retained links, ascending and consecutive; empty where all hold."""
    findings = _Findings()
    if not findings.canonical_input("links", links):
        return findings.failures
    previous: dict[str, Any] | None = None
    for index, link in enumerate(links):
        what = f"link {index} (position {link.get('chain_position')})"
        _check_link(findings, what, link)
        if previous is not None:
            findings.equal(f"{what}: chain_id", link.get("chain_id"), previous.get("chain_id"))
            position, before = _integer(link.get("chain_position")), _integer(previous.get("chain_position"))
            findings.require(
                position is not None and before is not None and position == before + 1,
                f"{what}: does not follow position {previous.get('chain_position')}",
            )
            findings.equal(f"{what}: previous_link_hash", link.get("previous_link_hash"), previous.get("link_hash"))
            findings.equal(
                f"{what}: previous_merkle_root", link.get("previous_merkle_root"), previous.get("merkle_root")
            )
        previous = link
    return findings.failures


def unknown_types(links: Any) -> set[str]:
    """The types of entries in retained links that the format's page does not name: noted, and never failed on."""
    return {_text(_object(link).get("entry_type")) for link in _array(links)} - set(ENTRY_TYPES)


# Migrations and routes


def migration_hash(entry: Any) -> str:
    return canonical_hash(compact(_without(entry, "migration_hash")))


def route_hash(entry: Any) -> str:
    return canonical_hash(compact(_without(entry, "route_hash")))


def _check_version(findings: _Findings, what: str, version: Any) -> None:
    findings.equal(f"{what}: members", sorted(_object(version)), ["hash", "version"])
    findings.require(_is_hash(_object(version).get("hash")), f"{what}: hash is not a hash")
    findings.require(isinstance(_object(version).get("version"), str), f"{what}: version is no text")


def _check_shared(findings: _Findings, entry: dict[str, Any], members: tuple[str, ...]) -> None:
    findings.equal("members", sorted(entry), sorted(members))
    findings.equal("decision_protocol_version", entry.get("decision_protocol_version"), PROTOCOL_VERSION)
    actor = _object(entry.get("actor"))
    findings.equal("actor members", sorted(actor), ["id", "type"])
    findings.require(actor.get("type") in ("user", "key", "service"), f"actor.type is {actor.get('type')!r}")
    findings.require(isinstance(actor.get("id"), str), "actor.id is no text")
    findings.require(_is_hash(entry.get("evidence_hash")), "evidence_hash is not a hash")
    findings.require(_is_timestamp(entry.get("recorded_at")), "recorded_at is not a timestamp")
    note = entry.get("note")
    findings.require(isinstance(note, str) and len(note) <= 2000, "note is no text of at most 2000 characters")


def _check_migration(findings: _Findings, entry: dict[str, Any]) -> dict[str, Any]:
    _check_shared(findings, entry, MIGRATION_MEMBERS)
    findings.equal("decision_migration_version", entry.get("decision_migration_version"), MIGRATION_VERSION)
    findings.require(
        entry.get("event") in ("proposed", "approved", "rejected", "superseded"), f"event is {entry.get('event')!r}"
    )
    findings.require(_is_hash(entry.get("manifest_hash")), "manifest_hash is not a hash")
    named = [_object(candidate) for candidate in _array(entry.get("candidates"))]
    for candidate in named:
        findings.require(isinstance(candidate.get("rulebook_id"), str), "candidates: rulebook_id is no text")
        _check_version(findings, "candidates", _without(candidate, "rulebook_id"))
    ids = [_text(candidate.get("rulebook_id")) for candidate in named]
    findings.equal("candidates: order", ids, sorted(set(ids)))
    findings.equal("migration_hash", entry.get("migration_hash"), migration_hash(entry))
    return {
        "entry_type": "migration",
        "decision_id": entry.get("migration_entry_id"),
        "record_hash": entry.get("migration_hash"),
        "policy_id": None,
        "policy_version": None,
    }


def _check_route(findings: _Findings, entry: dict[str, Any]) -> dict[str, Any]:
    _check_shared(findings, entry, ROUTE_MEMBERS)
    findings.equal("decision_route_version", entry.get("decision_route_version"), ROUTE_VERSION)
    findings.require(entry.get("cause") in ("apply", "rollback"), f"cause is {entry.get('cause')!r}")
    if entry.get("from") is not None:
        _check_version(findings, "from", entry["from"])
    _check_version(findings, "to", entry.get("to"))
    if entry.get("approval_hash") is not None:
        findings.require(_is_hash(entry["approval_hash"]), "approval_hash is neither a hash nor null")
    findings.equal("route_hash", entry.get("route_hash"), route_hash(entry))
    return {
        "entry_type": "route",
        "decision_id": entry.get("route_entry_id"),
        "record_hash": entry.get("route_hash"),
        "policy_id": entry.get("rulebook_id"),
        "policy_version": _object(entry.get("to")).get("version"),
    }


def change_failures(entry: Any, link: Any) -> list[str]:
    """Every check of a migration or route entry and of the link that it has in the chain; empty where all hold."""
    findings = _Findings()
    if not findings.canonical_input("entry", entry):
        return findings.failures
    check = _check_route if "route_hash" in entry else _check_migration
    expected = {**check(findings, entry), "receipt_hash": None, "created_at": entry.get("recorded_at")}
    findings.equal("link", {name: _object(link).get(name) for name in expected}, expected)
    return findings.failures


# Resolutions

RESOLUTION_REQUIRED = (
    "decision_protocol_version",
    "decision_resolution_version",
    "resolution_entry_id",
    "decision_id",
    "decision_record_hash",
    "decision_receipt_hash",
    "action_binding_hash",
    "resolution",
    "actor",
    "recorded_at",
    "resolution_hash",
)
RESOLUTION_OPTIONAL = (
    "resolved_by",
    "evidence_refs",
    "note",
    "idempotency_key",
    "resolution_input_hash",
    "expires_at",
    "key_id",
    "signature",
    "audit_chain",
)


def resolution_hash(resolution: Any) -> str:
    kept = {name: value for name, value in resolution.items() if name in (*RESOLUTION_REQUIRED, *RESOLUTION_OPTIONAL)}
    for name in ("resolution_hash", "key_id", "signature", "audit_chain"):
        kept.pop(name, None)
    return canonical_hash(compact(kept))


def resolution_failures(
    resolution: Any, record: Any, receipt_keys: Any, *, hmac_secret: bytes | None = None, unsigned: bool = False
) -> list[str]:
    """Every check of a resolution against the record of its decision; empty where all hold.

    Without a signature it fails, unless `unsigned` says that it may lack one; then it grants nothing.
    """
    findings = _Findings()
    if not findings.canonical_input("resolution", resolution):
        return findings.failures
    missing = [name for name in RESOLUTION_REQUIRED if name not in resolution]
    findings.require(not missing, f"resolution: members missing: {', '.join(missing)}")
    known = [name for name in (*RESOLUTION_REQUIRED, *RESOLUTION_OPTIONAL) if name in resolution]
    empties = [name for name in known if _empty(resolution[name])]
    findings.equal("resolution: empty members", empties, [])
    expected = {
        "decision_protocol_version": PROTOCOL_VERSION,
        "decision_resolution_version": RESOLUTION_VERSION,
        "decision_id": record.get("decision_id"),
        "decision_record_hash": record.get("record_hash"),
        "decision_receipt_hash": record.get("receipt_hash"),
        "action_binding_hash": canonical_hash(record.get("action_binding")),
        "resolution_hash": resolution_hash(resolution),
    }
    for name, value in expected.items():
        findings.equal(f"resolution: {name}", resolution.get(name), value)
    answer = resolution.get("resolution")
    findings.require(answer in ("granted", "refused", "expired"), f"resolution is {answer!r}")
    findings.require(answer != "granted" or "expires_at" in resolution, "resolution: a grant without an end")
    held = record.get("verdict") == "review" and record.get("evaluator_version") != ADVISORY_EVALUATOR
    findings.require(held, "resolution: the decision was not held")
    findings.require(_is_timestamp(resolution.get("recorded_at")), "resolution: recorded_at is not a timestamp")
    if "expires_at" in resolution:
        findings.require(_is_timestamp(resolution["expires_at"]), "resolution: expires_at is not a timestamp")
    actor = _object(resolution.get("actor"))
    findings.equal("resolution: actor members", sorted(actor), ["id", "type"])
    kind = actor.get("type")
    findings.require(kind in ("user", "key", "service"), f"resolution: actor.type is {kind!r}")
    findings.require(isinstance(actor.get("id"), str), "resolution: actor.id is no text")
    references = resolution.get("evidence_refs", [])
    texts = isinstance(references, list) and all(isinstance(each, str) and each for each in references)
    findings.require(texts, "resolution: evidence_refs are no texts")
    for name in ("resolved_by", "note", "idempotency_key", "resolution_input_hash", "resolution_entry_id"):
        findings.require(isinstance(resolution.get(name, ""), str), f"resolution: {name} is no text")
    if "audit_chain" in resolution:
        link = _object(resolution["audit_chain"])
        entry = {
            "decision_chain_version": CHAIN_VERSION,
            "entry_type": "resolution",
            "decision_id": resolution.get("decision_id"),
            "record_hash": resolution.get("resolution_hash"),
            "receipt_hash": None,
        }
        findings.equal("resolution: audit_chain.entry_type", link.get("entry_type"), "resolution")
        findings.equal("resolution: audit_chain.leaf_hash", link.get("leaf_hash"), canonical_hash(_leaf(entry)))
    _check_resolution_signature(findings, resolution, receipt_keys, hmac_secret, unsigned)
    return findings.failures


def _check_resolution_signature(
    findings: _Findings, resolution: Any, receipt_keys: Any, hmac_secret: bytes | None, unsigned: bool
) -> None:
    what, key_id = "resolution signature", resolution.get("key_id")
    findings.equal("resolution: key_id beside signature", "key_id" in resolution, "signature" in resolution)
    if "signature" not in resolution:
        findings.require(unsigned, f"{what}: absent")
        return
    message = canonical(
        {
            "decision_id": resolution.get("decision_id"),
            "key_id": key_id,
            "record_hash": resolution.get("decision_record_hash"),
            "resolution_hash": resolution.get("resolution_hash"),
        }
    )
    signature = _text(resolution["signature"])
    if signature.startswith("hmac-sha256:"):
        if hmac_secret is None:
            findings.fail(f"{what}: no HMAC secret was given to check it with")
            return
        expected = "hmac-sha256:" + hmac.new(hmac_secret, message, hashlib.sha256).hexdigest()
        findings.require(hmac.compare_digest(signature.encode(), expected.encode()), f"{what}: HMAC does not hold")
        return
    key = _ed25519_key(findings, what, receipt_keys or {}, key_id, resolution.get("recorded_at"))
    if key is not None:
        _check_prefixed_ed25519(findings, what, key[0], signature, message)


def _granted_at(packet: dict[str, Any]) -> int | None:
    """The chain position behind which receipts of a held action are in order."""
    resolution = _object(packet.get("resolution"))
    if resolution.get("resolution") != "granted" or "signature" not in resolution:
        return None
    return _integer(_object(resolution.get("audit_chain")).get("chain_position"))


def checkpoint_failures(checkpoint: Any, receipt_keys: Any) -> list[str]:
    """Every check of a checkpoint by itself; empty where all hold."""
    findings = _Findings()
    if not findings.canonical_input("checkpoint", checkpoint):
        return findings.failures
    findings.equal("checkpoint members", sorted(checkpoint), sorted(CHECKPOINT_MEMBERS))
    findings.equal("checkpoint_version", checkpoint.get("checkpoint_version"), CHECKPOINT_VERSION)
    findings.require(CHAIN_ID_TEXT.fullmatch(_text(checkpoint.get("chain_id"))) is not None, "chain_id is malformed")
    size = _integer(checkpoint.get("chain_size"))
    findings.require(size is not None and size >= 1, "chain_size is not a position")
    for name in ("merkle_root", "link_hash"):
        findings.require(_is_hash(checkpoint.get(name)), f"{name} is not a hash")
    findings.require(_is_timestamp(checkpoint.get("issued_at")), "issued_at is not a timestamp")
    key = _ed25519_key(
        findings, "checkpoint signature", receipt_keys, checkpoint.get("key_id"), checkpoint.get("issued_at")
    )
    if key is not None:
        message = canonical(_without(checkpoint, "signature"))
        _check_prefixed_ed25519(findings, "checkpoint signature", key[0], checkpoint.get("signature"), message)
    return findings.failures


def epoch_failures(epoch: Any, receipt_keys: Any) -> list[str]:
    """Every check of a checkpoint epoch by itself; empty where all hold."""
    findings = _Findings()
    if not findings.canonical_input("epoch", epoch):
        return findings.failures
    findings.equal("epoch members", sorted(epoch), sorted(EPOCH_MEMBERS))
    findings.equal("checkpoint_epoch_version", epoch.get("checkpoint_epoch_version"), EPOCH_VERSION)
    findings.require(_text(epoch.get("reason")) != "", "reason is empty")
    findings.require(_is_timestamp(epoch.get("begun_at")), "begun_at is not a timestamp")
    findings.require(_integer(epoch.get("chains")) is not None, "chains is not a number")
    findings.require(_is_hash(epoch.get("heads_hash")), "heads_hash is not a hash")
    key = _ed25519_key(findings, "epoch signature", receipt_keys, epoch.get("key_id"), epoch.get("begun_at"))
    if key is not None:
        message = canonical(_without(epoch, "signature"))
        _check_prefixed_ed25519(findings, "epoch signature", key[0], epoch.get("signature"), message)
    return findings.failures


# Packet


def packet_hash(packet: Any) -> str:
    return canonical_hash(_without(packet, "packet_hash"))


PACKET_VERSION = "decision_packet_v1"
PACKET_MEMBERS = (
    "decision_packet_version",
    "decision_id",
    "record_hash",
    "receipt_hash",
    "decision_record",
    "execution_receipts",
    "outcome_records",
    "exported_at",
    "packet_hash",
)
REPORT_HASHES = {
    "effectiveness": "effectiveness_hash",
    "confidence": "confidence_hash",
    "anomalies": "anomaly_hash",
    "benchmarks": "benchmark_hash",
}
# What a report on a policy can be narrowed to; null where it is not.
REPORT_NARROWED_BY = ("policy_version", "verdict", "action")
# Members of a report that may be empty: they are null by design, or bound whole by something else.
MAY_BE_EMPTY = ("action_binding", "state_before_hash", "state_after_hash", "flags", "audit_chain")


def _check_report(
    findings: _Findings,
    what: str,
    report: dict[str, Any],
    record: dict[str, Any],
    is_execution: bool,
    granted_at: int | None,
) -> None:
    hash_member = "execution_hash" if is_execution else "outcome_hash"
    fields = EXECUTION_FIELDS if is_execution else OUTCOME_FIELDS
    empties = [name for name in fields if name in report and name not in MAY_BE_EMPTY]
    empties = [name for name in empties if compact([report[name]]) != [report[name]]]
    findings.equal(f"{what}: members with empty parts", empties, [])
    computed = execution_hash(report) if is_execution else outcome_hash(report)
    findings.equal(f"{what}: {hash_member}", report.get(hash_member), computed)
    expected: dict[str, Any] = {
        "decision_protocol_version": PROTOCOL_VERSION,
        "decision_id": record.get("decision_id"),
        "decision_record_hash": record.get("record_hash"),
        "decision_receipt_hash": record.get("receipt_hash"),
        "decision_verdict": record.get("verdict"),
        "decision_action": record.get("action"),
        "policy_id": record.get("policy_id"),
        "policy_version": record.get("policy_version"),
        "policy_bundle_hash": record.get("policy_bundle_hash"),
        "decision_found": True,
    }
    if is_execution:
        binding = report.get("action_binding")
        expected["decision_execution_version"] = "decision_execution_v1"
        expected["action_binding_hash"] = canonical_hash(binding)
        if canonical(binding) != canonical(record.get("action_binding")):
            expected["action_binding_match"] = False
        elif _names_the_target(report, _object(binding)):
            expected["action_binding_match"] = True
        position = _integer(_object(report.get("audit_chain")).get("chain_position")) or 0
        granted = report.get("decision_verdict") == "review" and granted_at is not None and position > granted_at
        approved = granted or report.get("decision_verdict") == "yes"
        approved = approved and record.get("evaluator_version") != ADVISORY_EVALUATOR
        flags = [] if approved else ["DECISION_NOT_APPROVED"]
        bound_alike = canonical(binding) == canonical(record.get("action_binding"))
        named = not bound_alike or any(name in report for name in ("target_system", "target_object_id", "mutation"))
        mismatch = named and report.get("action_binding_match") is not True
        if mismatch:
            flags.append("ACTION_BINDING_MISMATCH")
        # Releases before this flag did not set it.
        allowed = [report.get("decision_action")]
        if granted:
            # A grant is about the proposed action; where there is none, any label is one.
            allowed.append(_object(record.get("action_binding")).get("proposed_action") or report.get("action_taken"))
        if report.get("action_taken", report.get("decision_action")) not in allowed:
            flags += ["ACTION_TAKEN_MISMATCH"] if report.get("flags") != flags else []
        expected["flags"] = flags
        for name in ("state_before_hash", "state_after_hash"):
            findings.require(name in report and report[name] != "", f"{what}: {name} is neither text nor null")
    else:
        expected["decision_outcome_version"] = "decision_outcome_v1"
        expected["action_binding"] = record.get("action_binding")
    for name, value in expected.items():
        findings.equal(f"{what}: {name}", report.get(name), value)
    link = _object(report.get("audit_chain"))
    findings.equal(f"{what}: audit_chain members", sorted(link), sorted(AUDIT_CHAIN_MEMBERS))
    entry = {
        "decision_chain_version": CHAIN_VERSION,
        "entry_type": "execution" if is_execution else "outcome",
        "decision_id": report.get("decision_id"),
        "record_hash": report.get(hash_member),
        "receipt_hash": None,
    }
    findings.equal(f"{what}: audit_chain.entry_type", link.get("entry_type"), entry["entry_type"])
    findings.equal(f"{what}: audit_chain.leaf_hash", link.get("leaf_hash"), canonical_hash(_leaf(entry)))
    findings.equal(
        f"{what}: audit_chain.chain_id", link.get("chain_id"), _object(record.get("audit_chain")).get("chain_id")
    )


def event_times(packet: Any) -> dict[str, None]:
    """What verification of a packet says of the event times in it: null, for it does not hold the requests."""
    outcomes = enumerate(_array(_object(packet).get("outcome_records")))
    return {f"outcome_records[{index}].occurred_at": None for index, of in outcomes if "occurred_at" in _object(of)}


def event_time_holds(outcome: Any, request: Any) -> bool:
    """Whether an outcome repeats the event time of its request, which is at hand."""
    bound = canonical_hash(request) == outcome.get("outcome_input_hash")
    return bool(bound and outcome.get("occurred_at") == request.get("occurred_at"))


def _names_the_target(report: dict[str, Any], binding: dict[str, Any]) -> bool:
    named = {"target_system": "system", "target_object_id": "resource", "mutation": "mutation"}
    told = [name for name in named if name in report]
    return bool(told) and all(report[name] == binding.get(named[name], "") for name in told)


def _check_report_link(
    findings: _Findings, what: str, report: dict[str, Any], link: dict[str, Any], hash_member: str
) -> None:
    told = {name: link.get(name) for name in AUDIT_CHAIN_MEMBERS}
    findings.equal(f"{what}: audit_chain against the retained link", report.get("audit_chain"), told)
    entry = {
        "decision_id": report.get("decision_id"),
        "record_hash": report.get(hash_member),
        "policy_id": report.get("policy_id"),
        "policy_version": report.get("policy_version"),
        "created_at": report.get("reported_at"),
    }
    findings.equal(f"{what}: retained link", {name: link.get(name) for name in entry}, entry)


def _check_collection(
    findings: _Findings, collection: str, packet: dict[str, Any], links: dict[int, dict[str, Any]]
) -> None:
    is_execution = collection == "execution_receipts"
    hash_member = "execution_hash" if is_execution else "outcome_hash"
    record = _object(packet.get("decision_record"))
    positions: list[int] = []
    for index, report in enumerate(_array(packet.get(collection))):
        what = f"{collection}[{index}]"
        _check_report(findings, what, _object(report), record, is_execution, _granted_at(packet))
        position = _integer(_object(_object(report).get("audit_chain")).get("chain_position")) or 0
        if position in links:
            _check_report_link(findings, what, _object(report), links[position], hash_member)
        positions.append(position)
    findings.equal(f"{collection}: newest first", positions, sorted(set(positions), reverse=True))
    entry_type = "execution" if is_execution else "outcome"
    told = [
        position
        for position, link in links.items()
        if link.get("entry_type") == entry_type and link.get("decision_id") == record.get("decision_id")
    ]
    hidden = [position for position in told if position not in positions]
    beyond = any(position not in links for position in positions)
    left_out = [position for position in hidden if beyond or position > min(positions, default=0)]
    findings.equal(f"{collection}: reports that retained links tell of", left_out, [])


def _check_intelligence(findings: _Findings, packet: dict[str, Any]) -> None:
    record, said = _object(packet.get("decision_record")), _object(packet.get("policy_intelligence"))
    hashed = [(name, said[name], member) for name, member in REPORT_HASHES.items() if name in said]
    hashed += [("patterns", pattern, "pattern_hash") for pattern in _array(said.get("patterns"))]
    for name, document, member in hashed:
        findings.equal(f"{name}: {member}", _object(document).get(member), canonical_hash(_without(document, member)))
        findings.equal(f"{name}: policy_id", _object(document).get("policy_id"), record.get("policy_id"))
    # A report can be of one version, verdict or action alone, and is then of the record's.
    for name in REPORT_HASHES:
        narrowed = [_object(said.get(name)).get(member) for member in REPORT_NARROWED_BY]
        own = [record.get(member) for member in REPORT_NARROWED_BY]
        told = [of_record if value is None else value for value, of_record in zip(narrowed, own, strict=True)]
        findings.equal(f"{name}: {', '.join(REPORT_NARROWED_BY)}", told, own)


def packet_failures(
    packet: Any,
    receipt_keys: Any,
    *,
    attestation_keys: Any = None,
    hmac_secret: bytes | None = None,
) -> list[str]:
    """Every check of a packet, its record included; empty where all hold.

    A checkpoint in the packet is checked where it is signed with Ed25519. What is optional in a packet may be absent.
    """
    findings = _Findings()
    if not findings.canonical_input("packet", packet):
        return findings.failures
    missing = [name for name in PACKET_MEMBERS if name not in packet]
    findings.require(not missing, f"members missing: {', '.join(missing)}")
    findings.equal("packet_hash", packet.get("packet_hash"), packet_hash(packet))
    findings.equal("decision_packet_version", packet.get("decision_packet_version"), PACKET_VERSION)
    record = _object(packet.get("decision_record"))
    findings.failures += record_failures(
        record,
        receipt_keys,
        attestation_keys=attestation_keys,
        hmac_secret=hmac_secret,
        request_body=packet.get("input"),
    )
    for name in ("decision_id", "record_hash", "receipt_hash"):
        findings.equal(name, packet.get(name), record.get(name))
    if packet.get("input", "") is None:
        erased = _array(_object(record.get("erased")).get("members"))
        findings.require("input" in erased, "input is null, and was not erased")

    chain = _object(packet.get("audit_chain"))
    retained = [_object(link) for link in _array(chain.get("retained_links"))]
    if chain:
        findings.failures += link_failures(retained)
        first, last = (retained[0], retained[-1]) if retained else ({}, {})
        told = {name: first.get(name) for name in AUDIT_CHAIN_MEMBERS}
        findings.equal("the first retained link", told, record.get("audit_chain"))
        entry = {
            "decision_id": record.get("decision_id"),
            "record_hash": record.get("record_hash"),
            "receipt_hash": record.get("receipt_hash"),
            "policy_id": record.get("policy_id"),
            "policy_version": record.get("policy_version"),
            "created_at": record.get("created_at"),
        }
        findings.equal("the first retained link's entry", {name: first.get(name) for name in entry}, entry)
        summary = {"chain_id": "chain_id", "chain_size": "chain_position", "merkle_root": "merkle_root"}
        for name, of_link in summary.items():
            findings.equal(f"audit_chain.{name}", chain.get(name), last.get(of_link))
        checkpoint = _object(_object(chain.get("verification_hints")).get("checkpoint"))
        if checkpoint:
            if _text(checkpoint.get("signature")).startswith("ed25519:"):
                findings.failures += checkpoint_failures(checkpoint, receipt_keys or {})
            findings.equal("checkpoint.issued_at", checkpoint.get("issued_at"), packet.get("exported_at"))
            for name, of_link in {**summary, "link_hash": "link_hash"}.items():
                findings.equal(f"checkpoint.{name}", checkpoint.get(name), last.get(of_link))

    links = {position: link for link in retained if (position := _integer(link.get("chain_position"))) is not None}
    for collection in ("execution_receipts", "outcome_records"):
        _check_collection(findings, collection, packet, links)
    if "resolution" in packet:
        resolution = _object(packet["resolution"])
        findings.failures += resolution_failures(
            resolution, record, receipt_keys, hmac_secret=hmac_secret, unsigned=True
        )
        findings.require("audit_chain" in resolution, "resolution: it has no chain position")
    _check_resolution_link(findings, packet, record, links)
    _check_intelligence(findings, packet)
    return findings.failures


def _check_resolution_link(
    findings: _Findings, packet: dict[str, Any], record: dict[str, Any], links: dict[int, dict[str, Any]]
) -> None:
    resolution = _object(packet.get("resolution"))
    told = [
        link
        for link in links.values()
        if link.get("entry_type") == "resolution" and link.get("decision_id") == record.get("decision_id")
    ]
    findings.require(not told or bool(resolution), "resolution: a retained link tells of one that is left out")
    findings.require(len(told) <= 1, "resolution: retained links tell of two")
    for link in told if resolution else []:
        own = {name: link.get(name) for name in AUDIT_CHAIN_MEMBERS}
        findings.equal("resolution: audit_chain against the retained link", resolution.get("audit_chain"), own)
        entry = {
            "record_hash": resolution.get("resolution_hash"),
            "policy_id": record.get("policy_id"),
            "policy_version": record.get("policy_version"),
            "created_at": resolution.get("recorded_at"),
        }
        findings.equal("resolution: the retained link's entry", {name: link.get(name) for name in entry}, entry)
