"""Builds the Decision Record `decision_record_v1` from a request, a rulebook, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.labels import (
    ADAPTER_AUTHORITY,
    ADVISORY_EVALUATOR,
    BINDING_ADAPTER,
    CANONICALIZATION,
    CUSTOMER_CODE,
    DECISION_CONTRACT,
    EVALUATOR,
    HASH_ALGORITHM,
    PRODUCTION_CORE,
    PROTOCOL,
    RECORD,
    RULEBOOK_SCHEMA,
    VERDICT_AUTHORITY,
)
from gate.proof.signing import Signer
from gate.records.advisory import (
    ADVISORY_ACTION,
    ADVISORY_VERDICT,
    Advised,
    advisory_evidence,
    advisory_sources,
    policy_of,
)
from gate.records.attestation import rulebook_attestation
from gate.records.documents import (
    AdvisoryEvaluation,
    DecidedRecord,
    DecisionContract,
    EvidenceManifest,
    Record,
    Registration,
    RulebookAttestation,
    RulebookContract,
    RuntimeBinding,
    Source,
)
from gate.records.envelope import (
    action_binding,
    adapter_source,
    compact_verdict,
    decision_url,
    envelope,
    evidence_codes,
    integrity,
    output_material,
    receipt_material,
    receipt_payload,
)
from gate.records.request import DecisionRequest
from gate.rulebooks.documents import Evaluation, PolicyBundle
from gate.rulebooks.evaluation import Explained
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook


class Identity(NamedTuple):
    """The values that identify a record.

    Attributes:
        decision_id: The stable id in the ledger.
        request_id: The short id for logs.
        idempotency_key: The caller's idempotency key, or None.
        created_at: The UTC timestamp.
    """

    decision_id: str
    request_id: str
    idempotency_key: str | None
    created_at: str


class Signers(NamedTuple):
    """The signers of a record. A signer is None if its signing is off."""

    receipt: Signer | None
    registry: Signer | None


def build_record(
    request: DecisionRequest,
    rulebook: Rulebook,
    registry: Registration,
    facts: Facts,
    explained: Explained,
    identity: Identity,
    signers: Signers,
    *,
    schema_url: str,
    earlier: RulebookAttestation | None = None,
    compacted: Mapping[str, object] | None = None,
) -> Record:
    """Builds a full record without `audit_chain`, which is known after the record is appended to the chain.

    Args:
        request: The Decision Request.
        rulebook: The rulebook that decided.
        registry: Its stored registration, with `registry_attestation`.
        facts: The facts.
        explained: The rulebook's outcome for the facts, with its evaluation.
        identity: The record's ids and date.
        signers: The signers.
        schema_url: The address of the published Rulebook v1 schema.
        earlier: The rulebook attestation of an earlier record. If it has the same bundle, it is used again.
        compacted: As for `envelope`.
    """
    # All other parts of a record are texts and small integers under our own names.
    plain = request.plain and rulebook.plain and facts.plain
    outcome = explained.outcome
    evidence = evidence_codes(outcome.reason_code, outcome.matched_rule_id, outcome.status)
    policy_bundle = rulebook.policy_bundle
    runtime_binding = runtime_binding_of(facts.binding_mode)
    decided: DecidedRecord = {
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
        "evidence_manifest": _evidence_manifest(evidence, rulebook, facts, explained, plain),
        "evaluation": explained.evaluation,
        "policy_id": rulebook.rulebook_id,
        "policy_version": rulebook.version,
        "policy_hash": rulebook.hash,
        "source_hash": rulebook.hash,
        "policy_bundle": policy_bundle,
        "policy_bundle_hash": rulebook.policy_bundle_hash,
        "rulebook": rulebook.reference,
        "rulebook_contract": rulebook_contract(schema_url),
        "evaluator_version": EVALUATOR,
        "runtime_binding": runtime_binding,
        "rulebook_registry": registry.copy(),
        "registry_attestation": registry["registry_attestation"],
        "rulebook_attestation": rulebook_attestation(
            rulebook.reference,
            content_hash(facts.values, plain=plain),
            outcome,
            runtime_binding,
            signers.registry,
            trusted_adapter=facts.trusted_adapter,
            plain=plain,
            earlier=earlier,
        ),
        "input_hash": request.input_hash,
        "replay_url": f"{decision_url(identity.decision_id)}/replay",
        "verify_url": f"{decision_url(identity.decision_id)}/verify",
        "decision_url": decision_url(identity.decision_id),
        "created_at": identity.created_at,
    }
    if facts.trusted_adapter is not None:
        decided["trusted_adapter"] = facts.trusted_adapter
        decided["adapter_facts"] = facts.values
    if identity.idempotency_key is not None:
        decided["idempotency_key"] = identity.idempotency_key
    return _sealed(decided, outcome.status, signers.receipt, compacted or {}, plain=plain)


def build_advisory_record(
    request: DecisionRequest,
    template: tuple[str, str],
    evaluation: AdvisoryEvaluation,
    said: Advised,
    identity: Identity,
    signer: Signer | None,
    *,
    plain: bool = False,
) -> Record:
    """Builds a full advisory record without `audit_chain`. It states that it authorizes nothing.

    Args:
        request: The Decision Request.
        template: The version and the hash of the prompt template.
        evaluation: The answer of the upstream, with the mode and the model.
        said: The meaning of the answer.
        identity: The record's ids and date.
        signer: The signer of its receipt, or None if receipt signing is off.
        plain: Whether the evaluation is plain, as `canonical.is_plain` defines it.
    """
    plain = request.plain and plain
    version, template_hash = template
    policy_id = policy_of(request.mode)
    policy_bundle: PolicyBundle = {
        "id": policy_id,
        "version": version,
        "hash": template_hash,
        "hash_algorithm": HASH_ALGORITHM,
        "canonicalization": CANONICALIZATION,
    }
    answer_hash = content_hash(evaluation["answer"], plain=plain)
    evidence = advisory_evidence(said.reason_code, answer_hash)
    sources = advisory_sources(
        cast("dict[str, object]", policy_bundle), content_hash(evaluation, plain=plain), answer_hash
    )
    decided: DecidedRecord = {
        "decision_record_version": RECORD,
        "decision_protocol_version": PROTOCOL,
        "decision_id": identity.decision_id,
        "request_id": identity.request_id,
        "c": compact_verdict(said.verdict),
        "v": said.word,
        "verdict": said.verdict,
        "application_verdict": ADVISORY_VERDICT,
        "reason_code": said.reason_code,
        "matched_rule_id": None,
        "decision_contract": cast("DecisionContract", dict(DECISION_CONTRACT)),
        "action": ADVISORY_ACTION,
        "action_binding": action_binding(request.context),
        "evidence": evidence,
        "evidence_manifest": {"codes": evidence, "sources": list(sources)},
        # Its readers look at evaluator_version first.
        "evaluation": cast("Evaluation", evaluation),
        "policy_id": policy_id,
        "policy_version": version,
        "policy_hash": template_hash,
        "source_hash": template_hash,
        "policy_bundle": policy_bundle,
        "policy_bundle_hash": content_hash(policy_bundle, plain=plain),
        "evaluator_version": ADVISORY_EVALUATOR,
        "input_hash": request.input_hash,
        "replay_url": f"{decision_url(identity.decision_id)}/replay",
        "verify_url": f"{decision_url(identity.decision_id)}/verify",
        "decision_url": decision_url(identity.decision_id),
        "created_at": identity.created_at,
    }
    if identity.idempotency_key is not None:
        decided["idempotency_key"] = identity.idempotency_key
    return _sealed(decided, None, signer, {}, plain=plain)


def _sealed(
    decided: DecidedRecord,
    status: str | None,
    signer: Signer | None,
    compacted: Mapping[str, object],
    *,
    plain: bool,
) -> Record:
    """The record with its hashes and its receipt's signature. Each covers the one before."""
    # It has all fields of a record after this function.
    record = cast("Record", decided)
    record["output_hash"] = content_hash(output_material(record, status), plain=plain)
    record["record_hash"] = content_hash(envelope(record, compacted), plain=plain)
    record["receipt_hash"] = content_hash(receipt_material(record, plain=plain), plain=plain)
    if signer is not None:
        record["receipt_key_id"] = signer.key_id
        record["receipt_signature"] = signer.sign(receipt_payload(record, signer.key_id, plain=plain))
        record["receipt_signature_algorithm"] = signer.algorithm
        record["receipt_public_key_fingerprint"] = signer.fingerprint
    record["integrity"] = integrity(record)
    return record


def _evidence_manifest(
    evidence: list[str], rulebook: Rulebook, facts: Facts, explained: Explained, plain: bool
) -> EvidenceManifest:
    """The evidence with its sources, so that the record hash covers the evaluation."""
    source = f"rulebook:{rulebook.rulebook_id}@{rulebook.version}"
    sources: list[Source] = [
        {"id": source, "type": "rulebook", "snapshot_hash": rulebook.hash},
        {"id": "evaluation", "type": "evaluation", "snapshot_hash": content_hash(explained.evaluation, plain=plain)},
    ]
    if facts.trusted_adapter is not None:
        sources.append(adapter_source(facts.trusted_adapter))
    return {"codes": evidence, "sources": sources}


def runtime_binding_of(binding_mode: str) -> RuntimeBinding:
    """Which component decides, and where the facts come from."""
    if binding_mode == BINDING_ADAPTER:
        return {
            "production_core": PRODUCTION_CORE,
            "binding_mode": binding_mode,
            "verdict_authority": VERDICT_AUTHORITY,
            "adapter_authority": ADAPTER_AUTHORITY,
            "customer_supplied_code": CUSTOMER_CODE,
        }
    return {
        "production_core": PRODUCTION_CORE,
        "binding_mode": binding_mode,
        "verdict_authority": VERDICT_AUTHORITY,
        "customer_supplied_code": CUSTOMER_CODE,
    }


def rulebook_contract(schema_url: str) -> RulebookContract:
    """The versions of the schema and the evaluator that apply to the rulebook."""
    return {
        "schema_version": RULEBOOK_SCHEMA,
        "schema_url": schema_url,
        "schema_hash": RULEBOOK_SCHEMA_HASH,
        "evaluator_version": EVALUATOR,
    }


RULEBOOK_SCHEMA_HASH: Final = content_hash(resources.schema("rulebook-v1"))
