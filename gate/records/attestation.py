"""The documents that the registry key signs: attestations of evaluations, and registrations of rulebooks in scopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gate.encoding.canonical import content_hash
from gate.labels import (
    CANONICALIZATION,
    EVALUATOR,
    HASH_ALGORITHM,
    REGISTRY_ATTESTATION,
    RULEBOOK_ATTESTATION,
    RULEBOOK_ATTESTATION_SIGNATURE,
    RULEBOOK_REGISTRY,
)
from gate.proof.signing import ED25519, Signer

# A verifier evaluates nothing.
if TYPE_CHECKING:
    from gate.records.documents import (
        AttestationBundle,
        AttestationSignature,
        Registration,
        RegistrationMaterial,
        RulebookAttestation,
        RuntimeBinding,
    )
    from gate.rulebooks.documents import AdapterDependency, RulebookReference, TrustedAdapter
    from gate.rulebooks.evaluation import Outcome


def rulebook_attestation(
    rulebook: RulebookReference,
    facts_hash: str,
    outcome: Outcome,
    runtime_binding: RuntimeBinding,
    signer: Signer | None,
    *,
    trusted_adapter: TrustedAdapter | None = None,
    plain: bool = False,
    earlier: RulebookAttestation | None = None,
) -> RulebookAttestation:
    """The attestation {schema_version, bundle, bundle_hash, signature} of one evaluation.

    The bundle contains no date, no id, and no data from the environment. The same facts and rulebook therefore always
    result in the same `bundle_hash`.

    Args:
        rulebook: {schema_version, id, version, hash}.
        facts_hash: H of the facts.
        outcome: The rulebook's outcome for these facts.
        runtime_binding: Which component decided, and where the facts came from.
        signer: The registry key, or None if registry signing is off.
        trusted_adapter: The adapter's invocation, or None.
        plain: Whether the rulebook is plain, as `canonical.is_plain` defines it.
        earlier: An earlier attestation. If it has the same bundle, its signature is used again.
    """
    bundle: AttestationBundle = {
        "engine": EVALUATOR,
        "evaluator_version": EVALUATOR,
        "rulebook": rulebook,
        "input_hash": facts_hash,
        "outcome": {
            "status": outcome.status,
            "verdict": outcome.decision,
            "application_verdict": outcome.verdict,
            "action": outcome.action,
            "reason_code": outcome.reason_code,
            "matched_rule_id": outcome.matched_rule_id,
        },
        "runtime_binding": runtime_binding,
        "trusted_adapter": trusted_adapter,
    }
    bundle_hash = content_hash(bundle, plain=plain)
    if earlier is not None and earlier["bundle_hash"] == bundle_hash:
        signature = earlier["signature"]
    else:
        signature = _signature(bundle_hash, signer)
    return {
        "schema_version": RULEBOOK_ATTESTATION,
        "bundle": bundle,
        "bundle_hash": bundle_hash,
        "signature": signature,
    }


def _signature(bundle_hash: str, signer: Signer | None) -> AttestationSignature:
    # null if it is unsigned. The envelope drops "" like null, so verification accepts only null.
    return {
        "schema_version": RULEBOOK_ATTESTATION_SIGNATURE,
        "algorithm": "Ed25519",
        "signed_field": "bundle_hash",
        "status": "unsigned" if signer is None else "signed",
        "key_id": None if signer is None else signer.key_id,
        "signature": None if signer is None else attestation_signature(signer, bundle_hash),
    }


def attestation_signature(signer: Signer, bundle_hash: str) -> str:
    """The base64url signature of the UTF-8 hex bundle hash, without the scheme's prefix."""
    return signer.sign(bundle_hash.encode()).removeprefix(f"{ED25519}:")


def registration(
    rulebook: RulebookReference,
    scope_id: str,
    registered_at: str,
    signer: Signer | None,
    *,
    adapter_dependency: AdapterDependency | None = None,
) -> Registration:
    """The metadata of a rulebook's registration in a scope, with its attestation. It is made once.

    Args:
        rulebook: {schema_version, id, version, hash}.
        scope_id: The internal id of the scope. The metadata contains only its hash.
        registered_at: The UTC timestamp of the first registration.
        signer: The registry key, or None if registry signing is off.
        adapter_dependency: {adapter_id, version, manifest_hash, implementation_hash} of the adapter that computes the
            rulebook's facts, or None if callers send them.
    """
    metadata: RegistrationMaterial = {
        "rulebook_registry_version": RULEBOOK_REGISTRY,
        "schema_version": rulebook["schema_version"],
        "rulebook_id": rulebook["id"],
        "version": rulebook["version"],
        "hash": rulebook["hash"],
        "evaluator_version": EVALUATOR,
        "hash_algorithm": HASH_ALGORITHM,
        "canonicalization": CANONICALIZATION,
        # Outsiders see records, and the internal id is confidential: it is random, so its hash does not reveal it.
        "scope_hash": content_hash({"scope": scope_id}),
        "registered_at": registered_at,
    }
    if adapter_dependency is not None:
        metadata["adapter_dependency"] = adapter_dependency.copy()
    attestation_hash = registration_hash(metadata)
    return {
        **metadata,
        "registry_attestation": {
            "registry_attestation_version": REGISTRY_ATTESTATION,
            "status": "unsigned" if signer is None else "signed",
            "attestation_hash": attestation_hash,
            "key_id": None if signer is None else signer.key_id,
            "signature_algorithm": ED25519,
            "signature": None if signer is None else signer.sign(attestation_hash.encode()),
        },
    }


def registration_hash(metadata: Mapping[str, object], *, plain: bool = False) -> str:
    """`attestation_hash`: H of the metadata without `registry_attestation`. `plain` is as for `canonical`."""
    registered = {name: value for name, value in metadata.items() if name != "registry_attestation"}
    return content_hash(registered, plain=plain)
