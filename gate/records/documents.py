"""The protocol's documents from request to packet, as docs/wire-format.md and the schemas describe them.

The types describe documents that the gate made, or held against a schema. A document that someone else sent is a
`Json` value until then; `verify.members` says how far a verifier may look into it.

    requests      DecisionBody, DecisionContext
    records       Record and its parts; Registration, RulebookAttestation
    reports       Report and what each kind adds to it; Resolution; Erasure
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
    """The context of a Decision Request; callers may add members of their own."""

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
    """A registered rulebook instead of its body: {rulebook_id, version}, {hash}, or {rulebook_id} by its route."""

    rulebook_id: str
    version: str
    hash: str


class DecisionBody(TypedDict, total=False):
    """A Decision Request whose shape was found valid; schemas/decision-request.schema.json.

    Rulebook and adapter are held against schemas of their own later on.
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
    """The action that a decision is bound to; each member is "" where the context has none."""

    system: str
    resource: str
    proposed_action: str
    mutation: NotRequired[str]
    actor: NotRequired[object]
    subject: NotRequired[object]
    amount: NotRequired[object]
    currency: NotRequired[object]


class Source(TypedDict):
    """Something that an outcome came from, with the hash of the snapshot that was used."""

    id: str
    type: str
    snapshot_hash: str


class EvidenceManifest(TypedDict):
    """The evidence of a record with its sources, one of them its evaluation."""

    codes: list[str]
    sources: list[Source]


class RulebookContract(TypedDict):
    """The contract that a rulebook was validated and evaluated under."""

    schema_version: str
    schema_url: str
    schema_hash: str
    evaluator_version: str


class RuntimeBinding(TypedDict):
    """Who decides, and on whose facts; `adapter_authority` stands only where an adapter made the facts."""

    production_core: str
    binding_mode: str
    verdict_authority: str
    adapter_authority: NotRequired[str]
    customer_supplied_code: str


class RegistryAttestation(TypedDict):
    """The registry key's signature over a registration; key and signature are null where registry signing is off."""

    registry_attestation_version: str
    status: str
    attestation_hash: str
    key_id: str | None
    signature_algorithm: str
    signature: str | None


class RegistrationMaterial(TypedDict):
    """The members of a registration that its attestation covers."""

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
    """The registration of a rulebook in a scope: the `rulebook_registry` of the records that cite it."""

    registry_attestation: RegistryAttestation


class AttestedOutcome(TypedDict):
    """The outcome in an attestation's bundle; `verdict` is yes, no or review."""

    status: str
    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None


class AttestationBundle(TypedDict):
    """The part of a rulebook attestation that is hashed and signed: no date, no id, nothing of the environment."""

    engine: str
    evaluator_version: str
    rulebook: RulebookReference
    input_hash: str
    outcome: AttestedOutcome
    runtime_binding: RuntimeBinding
    trusted_adapter: TrustedAdapter | None


class AttestationSignature(TypedDict):
    """The registry key's signature over a bundle; key and signature are null where registry signing is off."""

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
    """The receipt's signature as `integrity` sums it up."""

    algorithm: str
    key_id: str
    public_key_fingerprint: str | None


class Integrity(TypedDict):
    """The summary of how a record is protected; `signature` is null where receipt signing is off."""

    canonicalization: str
    hash_algorithm: str
    policy_hash: str
    policy_bundle_hash: str
    signature: IntegritySignature | None


class DecisionContract(TypedDict):
    """What an advisory record is good for: advice, and no production verdict."""

    authority: str
    production_verdict: bool
    production_binding_required: bool


class AdvisoryEvaluation(TypedDict):
    """The upstream's answer in an advisory record, with the mode and the model that it was asked by."""

    mode: str
    model: str
    answer: JsonObject


class ErasureNote(TypedDict):
    """What a record says of its erasure."""

    erasure_id: str
    erased_at: str
    members: list[str]


class ReceiptSignature(TypedDict, total=False):
    """The receipt's signature: all of its members, or none where receipt signing is off."""

    receipt_key_id: str
    receipt_signature: str
    receipt_signature_algorithm: str
    receipt_public_key_fingerprint: str | None


class RecordTexts(TypedDict):
    """The members of a record that are text, but for the hashes that are made last."""

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
    """The hashes of a record that cover other members, and the receipt's signature over them."""

    output_hash: str
    record_hash: str
    receipt_hash: str
    confidence_hash: NotRequired[str]


class Signable(RecordTexts, RecordHashes):
    """All members of a record that are text."""


class DecidedRecord(RecordTexts):
    """A record before it is hashed.

    `evaluation` and `adapter_facts` are null where they were erased. Only an advisory record has a `decision_contract`;
    it has none of the members about a rulebook, and its `evaluation` is an AdvisoryEvaluation.
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
    """A Decision Record in the full view; schemas/decision-record-v1.schema.json.

    `audit_chain`, `decision_confidence` and `confidence_hash` are known once it is appended. `erased` stands where
    something was erased.
    """

    integrity: Integrity
    audit_chain: NotRequired[RecordLink]
    decision_confidence: NotRequired[DecisionConfidence]
    erased: NotRequired[ErasureNote]


class Cited(TypedDict):
    """The members of a record that reports about it repeat, and what says whether it is advisory."""

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
    """The members that every execution receipt, outcome record and CRM sync record has.

    A kind names its version, id, status and hash by members of its own; `receipts.Kind` says which.
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
    """What execution receipts and outcome records have in common."""

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
    """Who carried an action out."""

    type: str
    id: str


class ExecutionReceipt(_ActionReport):
    """An execution receipt; schemas/execution-receipt.schema.json."""

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
    """An outcome record; schemas/outcome-record.schema.json."""

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
    """The owner's resolution of a held decision. Members that would be empty are absent."""

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
    """A CRM sync record; schemas/crm-sync-record.schema.json."""

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
    """The members of an erasure that its own hash covers."""

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
    """How the parts of a packet are verified, in words; and a checkpoint, where there is one."""

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
    """The `audit_chain` of a packet: consecutive links, the first of them the decision's own."""

    chain_id: str
    chain_size: int
    merkle_root: str
    retained_links: Sequence[Link]
    verification_hints: VerificationHints


class PolicyIntelligence(TypedDict):
    """The reports about a record's policy; each carries a hash of its own."""

    effectiveness: Mapping[str, object]
    confidence: Mapping[str, object]
    anomalies: Mapping[str, object]
    benchmarks: Mapping[str, object]
    patterns: Sequence[Mapping[str, object]]


class PacketParts(TypedDict):
    """The parts of a packet; `input` is null where the request is no longer kept."""

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
    """The members of a packet that its hash covers."""

    exported_at: str


class Packet(PacketMaterial):
    """A Decision Packet; schemas/decision-packet-v1.schema.json."""

    packet_hash: str
