"""The types of the protocol's documents, from request to packet.

The pages in `docs/reference/wire-format/` and the schemas define them. The types describe documents that the gate made
or compared with a schema. Before that, a document from somebody else is a `Json` value. `verify.members` says which
parts of it a verifier may read.

    requests      DecisionBody, DecisionContext
    records       Record and its parts; Registration, RulebookAttestation
    reports       Report and the fields of each kind; Resolution; Erasure
    packets       Packet and its parts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict

from gate.encoding.strict_json import JsonObject
from gate.policy.confidence import DecisionConfidence
from gate.proof.chain import Link, RecordLink
from gate.proof.checkpoint import Checkpoint
from gate.records.changes import Actor
from gate.rulebooks.documents import (
    AdapterDependency,
    Evaluation,
    PolicyBundle,
    RulebookReference,
    TrustedAdapter,
)


class DecisionContext(TypedDict, total=False):
    """The context of a Decision Request. Callers may add their own fields."""

    workflow: str
    source_record_id: str
    requested_action: str
    target_system: str
    target_object_id: str
    mutation: str
    actor: object
    subject: object
    amount: object
    currency: object
    inputs: JsonObject


class RulebookPointer(TypedDict, total=False):
    """A reference to a registered rulebook: {rulebook_id, version}, {hash}, or {rulebook_id} for its route."""

    rulebook_id: str
    version: str
    hash: str


class DecisionBody(TypedDict, total=False):
    """A Decision Request with a valid shape, as in `schemas/decision-request.schema.json`.

    The rulebook and the adapter have their own schemas, which are checked later.
    """

    question: str
    mode: str
    rulebook: JsonObject
    rulebook_ref: RulebookPointer
    binding_mode: str
    adapter: JsonObject
    context: DecisionContext
    occurred_at: str
    response_view: str


class ActionBinding(TypedDict):
    """The action that a decision is bound to. A text is "" if the context does not have it."""

    system: str
    resource: str
    proposed_action: str
    mutation: NotRequired[str]
    actor: NotRequired[object]
    subject: NotRequired[object]
    amount: NotRequired[object]
    currency: NotRequired[object]


class Source(TypedDict):
    """A source of an outcome, with the hash of the used snapshot."""

    id: str
    type: str
    snapshot_hash: str


class EvidenceManifest(TypedDict):
    """The evidence of a record with its sources, including its evaluation."""

    codes: list[str]
    sources: list[Source]


class RulebookContract(TypedDict):
    """The versions of the schema and the evaluator that apply to a rulebook."""

    schema_version: str
    schema_url: str
    schema_hash: str
    evaluator_version: str


class RuntimeBinding(TypedDict):
    """Which component decides, and where the facts come from. Only facts of an adapter have `adapter_authority`."""

    production_core: str
    binding_mode: str
    verdict_authority: str
    adapter_authority: NotRequired[str]
    customer_supplied_code: str


class RegistryAttestation(TypedDict):
    """The registry key's signature of a registration. Key and signature are null if registry signing is off."""

    registry_attestation_version: str
    status: str
    attestation_hash: str
    key_id: str | None
    signature_algorithm: str
    signature: str | None


class RegistrationMaterial(TypedDict):
    """The fields of a registration that its attestation covers."""

    rulebook_registry_version: str
    schema_version: str
    rulebook_id: str
    version: str
    hash: str
    evaluator_version: str
    hash_algorithm: str
    canonicalization: str
    scope_hash: str
    registered_at: str
    adapter_dependency: NotRequired[AdapterDependency]


class Registration(RegistrationMaterial):
    """The registration of a rulebook in a scope. Records that cite it have it as `rulebook_registry`."""

    registry_attestation: RegistryAttestation


class AttestedOutcome(TypedDict):
    """The outcome in an attestation's bundle. `verdict` is `yes`, `no` or `review`."""

    status: str
    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None


class AttestationBundle(TypedDict):
    """The signed part of a rulebook attestation. It contains no date, no id, and no data from the environment."""

    engine: str
    evaluator_version: str
    rulebook: RulebookReference
    input_hash: str
    outcome: AttestedOutcome
    runtime_binding: RuntimeBinding
    trusted_adapter: TrustedAdapter | None


class AttestationSignature(TypedDict):
    """The registry key's signature of a bundle. Key and signature are null if registry signing is off."""

    schema_version: str
    algorithm: str
    signed_field: str
    status: str
    key_id: str | None
    signature: str | None


class RulebookAttestation(TypedDict):
    """The attestation of one evaluation."""

    schema_version: str
    bundle: AttestationBundle
    bundle_hash: str
    signature: AttestationSignature


class IntegritySignature(TypedDict):
    """The receipt's signature in the summary `integrity`."""

    algorithm: str
    key_id: str
    public_key_fingerprint: str | None


class Integrity(TypedDict):
    """The summary of a record's hashes and signature. `signature` is null if receipt signing is off."""

    canonicalization: str
    hash_algorithm: str
    policy_hash: str
    policy_bundle_hash: str
    signature: IntegritySignature | None


class DecisionContract(TypedDict):
    """The statement of an advisory record that it is no production verdict."""

    authority: str
    production_verdict: bool
    production_binding_required: bool


class AdvisoryEvaluation(TypedDict):
    """The upstream's answer in an advisory record, with the mode and the model."""

    mode: str
    model: str
    answer: JsonObject


class ErasureNote(TypedDict):
    """The note of an erasure in a record."""

    erasure_id: str
    erased_at: str
    members: list[str]


class ReceiptSignature(TypedDict, total=False):
    """The receipt's signature: all of these fields, or none if receipt signing is off."""

    receipt_key_id: str
    receipt_signature: str
    receipt_signature_algorithm: str
    receipt_public_key_fingerprint: str | None


class RecordTexts(TypedDict):
    """The text fields of a record, except for the hashes that are computed last."""

    decision_record_version: str
    decision_id: str
    request_id: str
    idempotency_key: NotRequired[str]
    c: str
    v: str
    verdict: str
    application_verdict: str
    reason_code: str
    matched_rule_id: str | None
    action: str
    policy_id: str
    policy_version: str
    policy_hash: str
    source_hash: str
    policy_bundle_hash: str
    evaluator_version: str
    input_hash: str
    replay_url: str
    verify_url: str
    decision_url: str
    created_at: str


class RecordHashes(ReceiptSignature):
    """The hashes of a record that cover other fields, and the receipt's signature of them."""

    output_hash: str
    record_hash: str
    receipt_hash: str
    confidence_hash: NotRequired[str]


class Signable(RecordTexts, RecordHashes):
    """All text fields of a record."""


class DecidedRecord(RecordTexts):
    """A record before it is hashed.

    `evaluation` and `adapter_facts` are null if they were erased. Only an advisory record has a `decision_contract`.
    It has none of the fields about a rulebook, and its `evaluation` is an `AdvisoryEvaluation`.
    """

    decision_protocol_version: str
    action_binding: ActionBinding
    evidence: list[str]
    evidence_manifest: EvidenceManifest
    evaluation: Evaluation | None
    policy_bundle: PolicyBundle
    decision_contract: NotRequired[DecisionContract]
    rulebook: NotRequired[RulebookReference]
    rulebook_contract: NotRequired[RulebookContract]
    runtime_binding: NotRequired[RuntimeBinding]
    rulebook_registry: NotRequired[Registration]
    registry_attestation: NotRequired[RegistryAttestation]
    rulebook_attestation: NotRequired[RulebookAttestation]
    trusted_adapter: NotRequired[TrustedAdapter]
    adapter_facts: NotRequired[Mapping[str, object] | None]


class Record(DecidedRecord, RecordHashes):
    """A Decision Record in the full view, as in `schemas/decision-record-v1.schema.json`.

    `audit_chain`, `decision_confidence` and `confidence_hash` are known after it is appended to the chain. `erased` is
    present if parts of it were erased.
    """

    integrity: Integrity
    audit_chain: NotRequired[RecordLink]
    decision_confidence: NotRequired[DecisionConfidence]
    erased: NotRequired[ErasureNote]


class Cited(TypedDict):
    """The fields of a record that its reports repeat, and the field that shows whether it is advisory."""

    decision_id: str
    record_hash: str
    receipt_hash: str
    verdict: str
    action: str
    policy_id: str
    policy_version: str
    policy_bundle_hash: str
    action_binding: ActionBinding
    evaluator_version: str


class Report(TypedDict):
    """The fields of every execution receipt, outcome record, and CRM sync record.

    Each kind has its own names for the version, the id, the status, and the hash: see `receipts.Kind`.
    """

    decision_protocol_version: str
    decision_id: str
    decision_record_hash: str
    decision_receipt_hash: str
    decision_verdict: str
    decision_action: str
    policy_id: str
    policy_version: str
    reported_at: str
    idempotency_key: NotRequired[str]
    audit_chain: NotRequired[RecordLink]


class _ActionReport(Report):
    """The fields that execution receipts and outcome records share."""

    policy_bundle_hash: str
    action_binding: JsonObject
    decision_found: bool
    action_taken: NotRequired[str]
    target_system: NotRequired[str]
    target_object_id: NotRequired[str]
    mutation: NotRequired[str]
    external_ref: NotRequired[str]
    evidence_refs: NotRequired[list[str]]
    executed_at: NotRequired[str]


class Executor(TypedDict):
    """The person or system that performed an action."""

    type: str
    id: str


class ExecutionReceipt(_ActionReport):
    """An execution receipt, as in `schemas/execution-receipt.schema.json`."""

    decision_execution_version: str
    execution_receipt_id: str
    execution_status: str
    execution_result: NotRequired[str]
    execution_id: NotRequired[str]
    executor: NotRequired[Executor]
    action_binding_hash: str
    action_binding_match: bool
    state_before_hash: str | None
    state_after_hash: str | None
    state_before_ref: NotRequired[str]
    state_after_ref: NotRequired[str]
    execution_input_hash: str
    flags: list[str]
    execution_hash: str


class OutcomeRecord(_ActionReport):
    """An outcome record, as in `schemas/outcome-record.schema.json`."""

    decision_outcome_version: str
    outcome_id: str
    outcome_status: str
    action_executed: NotRequired[bool]
    observed_metrics: NotRequired[dict[str, float]]
    outcome_input_hash: str
    outcome_hash: str
    occurred_at: NotRequired[str]


Answer: TypeAlias = Literal["granted", "refused", "expired"]
"""How a held decision is resolved."""


class Resolution(TypedDict):
    """The owner's resolution of a held decision. It omits empty fields."""

    decision_protocol_version: str
    decision_resolution_version: str
    resolution_entry_id: str
    decision_id: str
    decision_record_hash: str
    decision_receipt_hash: str
    action_binding_hash: str
    resolution: Answer
    resolved_by: NotRequired[str]
    evidence_refs: NotRequired[list[str]]
    note: NotRequired[str]
    idempotency_key: NotRequired[str]
    resolution_input_hash: NotRequired[str]
    expires_at: NotRequired[str]
    actor: Actor
    recorded_at: str
    resolution_hash: str
    key_id: NotRequired[str]
    signature: NotRequired[str]
    audit_chain: NotRequired[RecordLink]


class CrmSync(Report):
    """A CRM sync record, as in `schemas/crm-sync-record.schema.json`."""

    decision_crm_sync_version: str
    sync_id: str
    sync_status: str
    sync_direction: NotRequired[str]
    crm_provider: NotRequired[str]
    crm_object_type: NotRequired[str]
    crm_object_id: NotRequired[str]
    crm_record_url: NotRequired[str]
    mapped_fields: NotRequired[JsonObject]
    sync_input_hash: str
    sync_hash: str


class ErasureMaterial(TypedDict):
    """The fields of an erasure that its own hash covers."""

    decision_protocol_version: str
    decision_erasure_version: str
    erasure_id: str
    decision_id: str
    decision_record_hash: str
    decision_receipt_hash: str
    reason: str
    erased: list[str]
    erased_at: str


class Erasure(ErasureMaterial):
    """The chain's entry about an erasure."""

    erasure_hash: str


class VerificationHints(TypedDict):
    """Texts about verifying the parts of a packet, and an optional checkpoint."""

    hash: str
    packet_hash: str
    retained_links: str
    leaf_hash: str
    merkle_root: str
    link_hash: str
    reports: str
    signature: str
    verify_url: str
    chain_url: str
    receipt_keys_url: str
    checkpoint: NotRequired[Checkpoint]


class PacketChain(TypedDict):
    """The `audit_chain` of a packet: consecutive links, beginning with the decision's own."""

    chain_id: str
    chain_size: int
    merkle_root: str
    retained_links: Sequence[Link]
    verification_hints: VerificationHints


class PolicyIntelligence(TypedDict):
    """The reports about a record's policy. Each has its own hash."""

    effectiveness: Mapping[str, object]
    confidence: Mapping[str, object]
    anomalies: Mapping[str, object]
    benchmarks: Mapping[str, object]
    patterns: Sequence[Mapping[str, object]]


class PacketParts(TypedDict):
    """The parts of a packet. `input` is null if the request is not stored any more."""

    decision_packet_version: str
    decision_id: str
    record_hash: str
    receipt_hash: str
    decision_record: Record
    execution_receipts: Sequence[Report]
    outcome_records: Sequence[Report]
    resolution: NotRequired[Resolution]
    policy_intelligence: NotRequired[PolicyIntelligence]
    audit_chain: NotRequired[PacketChain]
    input: NotRequired[object]


class PacketMaterial(PacketParts):
    """The fields of a packet that its hash covers."""

    exported_at: str


class Packet(PacketMaterial):
    """A Decision Packet, as in `schemas/decision-packet-v1.schema.json`."""

    packet_hash: str
