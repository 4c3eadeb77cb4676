"""The shapes of what is sent and answered, for editors and type checkers. Nothing is checked when a program runs.

Answers may gain members, and words may be added to those listed here: read them tolerantly. Hashes are lower-case hex
SHA-256, times are UTC timestamps `2026-01-31T12:00:00.000Z`, cursors and ids are opaque.
"""

# Annotations are evaluated here, as they are written: as texts, TypedDict would not see which members are NotRequired.

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

Verdict = Literal["yes", "no", "review"]
View = Literal["minimal", "standard", "full"]
Mode = Literal["rulebook", "single", "multi", "runtime"]
ExecutionStatus = Literal["executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted"]
ExecutionFlag = Literal["DECISION_NOT_APPROVED", "ACTION_BINDING_MISMATCH"]
OutcomeStatus = Literal["succeeded", "failed", "partial", "reverted", "pending", "review"]
SyncStatus = Literal["written", "pending", "failed", "skipped"]
SyncDirection = Literal["writeback", "inbound"]
EntryType = Literal["decision", "execution", "outcome", "crm_sync", "erasure"]
ConfidenceLevel = Literal["high", "medium", "low", "insufficient"]
PolicyStatus = Literal["active", "historical"]
Readiness = Literal["ready", "degraded"]
ReceiptSigning = Literal["ed25519", "hmac-sha256", "off"]
RegistrySigning = Literal["ed25519", "off"]
KeySource = Literal["server", "registry", "public_key", "hmac_secret", "request", "none"]


# What is sent: decide.


class RulebookRef(TypedDict):
    """A registered rulebook, instead of its body: `rulebook_id` and `version`, or `hash`."""

    rulebook_id: NotRequired[str]
    version: NotRequired[str]
    hash: NotRequired[str]


class AdapterInvocation(TypedDict):
    """One invocation of a registered trusted adapter, instead of facts."""

    adapter_id: str
    version: str
    manifest_hash: str
    input: Mapping[str, Any]


class DecisionContext(TypedDict):
    """What a decision is about; `inputs` are the facts that the rulebook consumes."""

    workflow: NotRequired[str]
    source_record_id: NotRequired[str]
    requested_action: NotRequired[str]
    target_system: NotRequired[str]
    target_object_id: NotRequired[str]
    mutation: NotRequired[str]
    actor: NotRequired[Any]
    subject: NotRequired[Any]
    amount: NotRequired[Any]
    currency: NotRequired[Any]
    inputs: NotRequired[Mapping[str, Any]]


class DecisionRequest(TypedDict):
    """What is asked: mode `rulebook` with `rulebook` or `rulebook_ref` gives a binding verdict."""

    question: NotRequired[str]
    mode: NotRequired[Mode]
    rulebook: NotRequired[Mapping[str, Any]]
    rulebook_ref: NotRequired[RulebookRef]
    binding_mode: NotRequired[str]
    adapter: NotRequired[AdapterInvocation]
    context: NotRequired[DecisionContext]
    response_view: NotRequired[View]


# What is sent: reports.


class Executor(TypedDict):
    """Who carried the action out."""

    type: str
    id: str


class ExecutionReport(TypedDict):
    """What became of the action."""

    execution_status: ExecutionStatus
    execution_result: NotRequired[str]
    action_taken: NotRequired[str]
    target_system: NotRequired[str]
    target_object_id: NotRequired[str]
    mutation: NotRequired[str]
    external_ref: NotRequired[str]
    execution_id: NotRequired[str]
    executor: NotRequired[Executor]
    decision_record_hash: NotRequired[str]
    decision_receipt_hash: NotRequired[str]
    action_binding: NotRequired[Mapping[str, Any]]
    state_before_hash: NotRequired[str]
    state_after_hash: NotRequired[str]
    state_before_ref: NotRequired[str]
    state_after_ref: NotRequired[str]
    evidence_refs: NotRequired[list[str]]
    executed_at: NotRequired[str]


class OutcomeReport(TypedDict):
    """What the action led to."""

    outcome_status: OutcomeStatus
    action_executed: NotRequired[bool]
    action_taken: NotRequired[str]
    target_system: NotRequired[str]
    target_object_id: NotRequired[str]
    mutation: NotRequired[str]
    external_ref: NotRequired[str]
    decision_record_hash: NotRequired[str]
    decision_receipt_hash: NotRequired[str]
    observed_metrics: NotRequired[dict[str, float]]
    evidence_refs: NotRequired[list[str]]
    executed_at: NotRequired[str]


class CrmSyncReport(TypedDict):
    """What of the decision is in a CRM. Never send credentials."""

    sync_status: SyncStatus
    sync_direction: NotRequired[SyncDirection]
    crm_provider: NotRequired[str]
    crm_object_type: NotRequired[str]
    crm_object_id: NotRequired[str]
    crm_record_url: NotRequired[str]
    mapped_fields: NotRequired[Mapping[str, Any]]
    decision_record_hash: NotRequired[str]
    decision_receipt_hash: NotRequired[str]
    decision_verdict: NotRequired[str]
    decision_action: NotRequired[str]
    policy_id: NotRequired[str]
    policy_version: NotRequired[str]


# What is sent: verify and replay.


class RecordVerificationRequest(TypedDict):
    """A full record with its request, and a key for diagnosis; a bare record may be sent in its place."""

    record: NotRequired[Mapping[str, Any]]
    input: NotRequired[Any]
    public_key: NotRequired[str | None]


class PacketVerificationRequest(TypedDict):
    """A packet with its request, a key for diagnosis, and a checkpoint that was kept; or send the bare packet."""

    packet: Mapping[str, Any]
    input: NotRequired[Any]
    public_key: NotRequired[str | None]
    checkpoint: NotRequired[Mapping[str, Any] | None]


class ReplayRequest(TypedDict):
    """By what a decision is made again, and over which request."""

    replay_mode: NotRequired[str]
    input: NotRequired[Mapping[str, Any]]
    response_view: NotRequired[View]


class Scenario(TypedDict):
    """One what-if: a merge patch (RFC 7396) over the stored context."""

    scenario_id: str
    label: str
    context_patch: Mapping[str, Any]
    adapter_input_patch: NotRequired[Mapping[str, Any]]


class CounterfactualsRequest(TypedDict):
    """Up to 50 scenarios."""

    scenarios: list[Scenario]
    response_view: NotRequired[View]


# The Decision Record and its parts.


class ActionBinding(TypedDict):
    """What a decision is bound to: it permits this action on this object, and no other."""

    system: str
    resource: str
    proposed_action: str
    mutation: NotRequired[str]
    actor: NotRequired[Any]
    subject: NotRequired[Any]
    amount: NotRequired[Any]
    currency: NotRequired[Any]


class EvidenceSource(TypedDict):
    """What evidence came from, with its hash."""

    id: str
    type: Literal["rulebook", "evaluation", "adapter"]
    snapshot_hash: str


class EvidenceManifest(TypedDict):
    """The evidence codes with what they came from."""

    codes: list[str]
    sources: list[EvidenceSource]


class InvalidField(TypedDict):
    """A fact of another type than the rulebook asks for."""

    field: str
    expected: str
    observed_type: str


class EvaluatedTest(TypedDict):
    """One test of a rule, and what it saw."""

    path: str
    field: str
    operator: str
    passed: bool
    expected: NotRequired[Any]
    observed: NotRequired[Any]


class RuleEvaluation(TypedDict):
    """One rule, and whether its condition held."""

    rule_id: str
    priority: int
    passed: bool
    tests: list[EvaluatedTest]


class Evaluation(TypedDict):
    """Why the rulebook said what it said."""

    matched: bool
    missing_fields: list[str]
    invalid_fields: list[InvalidField]
    rules: list[RuleEvaluation]


class PolicyBundle(TypedDict):
    """The identity of a policy."""

    id: str
    version: str
    hash: str
    hash_algorithm: str
    canonicalization: str


class RecordedPolicyBundle(PolicyBundle):
    """The identity of the policy that decided."""

    source: NotRequired[str]


class RulebookIdentity(TypedDict):
    """The rulebook that decided."""

    schema_version: str
    id: str
    version: str
    hash: str


class RulebookContract(TypedDict):
    """The contract that the rulebook was validated and evaluated under."""

    schema_version: str
    schema_url: str
    schema_hash: str
    evaluator_version: str


class RuntimeBinding(TypedDict):
    """Who decided, and on whose facts."""

    production_core: str
    binding_mode: Literal["direct_declarative_rulebook", "trusted_adapter_facts_then_declarative_rulebook"]
    verdict_authority: str
    customer_supplied_code: str
    adapter_authority: NotRequired[str]


class AdapterDependency(TypedDict):
    """The adapter whose facts a rulebook consumes."""

    adapter_id: str
    version: str
    manifest_hash: str
    implementation_hash: str


class RegistryAttestation(TypedDict):
    """The registry key's signature over a registration."""

    registry_attestation_version: str
    status: Literal["signed", "unsigned"]
    attestation_hash: str
    key_id: str | None
    signature_algorithm: str
    signature: str | None


class RulebookRegistration(TypedDict):
    """The registration of a rulebook in a scope."""

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
    registry_attestation: RegistryAttestation
    adapter_dependency: NotRequired[AdapterDependency]


class AttestedOutcome(TypedDict):
    """What an evaluation said."""

    status: Literal["ok", "needs_input"]
    verdict: Verdict
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None


class AttestedBundle(TypedDict):
    """What is attested of an evaluation; the same facts and rulebook always give the same."""

    engine: str
    evaluator_version: str
    rulebook: RulebookIdentity
    input_hash: str
    outcome: AttestedOutcome
    runtime_binding: RuntimeBinding
    trusted_adapter: dict[str, Any] | None


class AttestationSignature(TypedDict):
    """The registry key's signature over an evaluation."""

    schema_version: str
    algorithm: str
    signed_field: str
    status: Literal["signed", "unsigned", "error"]
    key_id: str | None
    signature: str | None


class RulebookAttestation(TypedDict):
    """The attestation of one evaluation."""

    schema_version: str
    bundle: AttestedBundle
    bundle_hash: str
    signature: AttestationSignature


class ReceiptSigner(TypedDict):
    """Which key signed the receipt."""

    algorithm: Literal["ed25519", "hmac-sha256"]
    key_id: str
    public_key_fingerprint: str | None


class Integrity(TypedDict):
    """By what a record is verified."""

    canonicalization: str
    hash_algorithm: str
    policy_hash: str
    policy_bundle_hash: str
    signature: ReceiptSigner | None


class DecisionConfidence(TypedDict):
    """How far the outcomes of similar decisions supported this one when it was made. It never changes a verdict."""

    decision_confidence_version: str
    score: float
    level: ConfidenceLevel
    similar_decisions: int
    policy_stability: float | None
    recommendation: str
    confidence_hash: str


class Erased(TypedDict):
    """What was erased of a decision, and when."""

    erasure_id: str
    erased_at: str
    members: list[Literal["adapter_facts", "evaluation", "input"]]


class ChainPlace(TypedDict):
    """Where something stands in the audit chain."""

    decision_chain_version: str
    chain_id: str
    chain_position: int
    entry_type: EntryType
    leaf_hash: str
    link_hash: str
    merkle_root: str


class DecisionRecord(TypedDict):
    """A decision. Every view has the members that are required here; only the full view verifies."""

    decision_record_version: str
    decision_protocol_version: NotRequired[str]
    decision_id: str
    request_id: str
    idempotency_key: NotRequired[str]
    c: Literal["yes", "no", "unclear"]
    v: str
    verdict: Verdict
    application_verdict: str
    reason_code: str
    matched_rule_id: str | None
    action: str
    action_binding: NotRequired[ActionBinding]
    evidence: NotRequired[list[str]]
    evidence_manifest: NotRequired[EvidenceManifest]
    evaluation: NotRequired[Evaluation | None]
    policy_id: NotRequired[str]
    policy_version: NotRequired[str]
    policy_hash: str
    source_hash: NotRequired[str]
    policy_bundle: NotRequired[RecordedPolicyBundle]
    policy_bundle_hash: str
    rulebook: RulebookIdentity
    rulebook_contract: NotRequired[RulebookContract]
    evaluator_version: str
    runtime_binding: NotRequired[RuntimeBinding]
    rulebook_registry: NotRequired[RulebookRegistration]
    registry_attestation: NotRequired[RegistryAttestation]
    rulebook_attestation: NotRequired[RulebookAttestation]
    trusted_adapter: NotRequired[dict[str, Any]]
    adapter_facts: NotRequired[dict[str, Any] | None]
    input_hash: NotRequired[str]
    output_hash: NotRequired[str]
    record_hash: str
    receipt_hash: str
    receipt_key_id: NotRequired[str]
    receipt_signature: NotRequired[str]
    receipt_signature_algorithm: NotRequired[Literal["ed25519", "hmac-sha256"]]
    receipt_public_key_fingerprint: NotRequired[str | None]
    replay_url: str
    verify_url: str
    decision_url: str
    integrity: NotRequired[Integrity]
    decision_confidence: NotRequired[DecisionConfidence]
    confidence_hash: NotRequired[str]
    erased: NotRequired[Erased]
    audit_chain: ChainPlace
    created_at: NotRequired[str]


class FoundDecision(TypedDict):
    """A decision as a search shows it."""

    decision_id: str
    request_id: str
    created_at: str
    verdict: Verdict
    application_verdict: str
    reason_code: str
    matched_rule_id: str | None
    action: str
    action_binding: ActionBinding
    policy_id: str
    policy_version: str
    record_hash: str
    chain_position: int
    decision_url: str


class DecisionSearch(TypedDict):
    """A page of decisions, newest first; go on with `next_cursor` until it is None."""

    count: int
    decisions: list[FoundDecision]
    next_cursor: str | None


# Reports, as they are stored.


class ExecutionReceipt(TypedDict):
    """What was told of the action, hashed over its decision."""

    decision_protocol_version: str
    decision_execution_version: str
    execution_receipt_id: str
    decision_id: str
    idempotency_key: NotRequired[str]
    execution_status: ExecutionStatus
    execution_result: NotRequired[str]
    action_taken: NotRequired[str]
    target_system: NotRequired[str]
    target_object_id: NotRequired[str]
    mutation: NotRequired[str]
    external_ref: NotRequired[str]
    execution_id: NotRequired[str]
    executor: NotRequired[Executor]
    decision_record_hash: str
    decision_receipt_hash: str
    decision_verdict: Verdict
    decision_action: str
    policy_id: str
    policy_version: str
    policy_bundle_hash: str
    action_binding: ActionBinding
    action_binding_hash: str
    action_binding_match: bool
    state_before_hash: str | None
    state_after_hash: str | None
    state_before_ref: NotRequired[str]
    state_after_ref: NotRequired[str]
    evidence_refs: NotRequired[list[str]]
    execution_input_hash: str
    reported_at: str
    executed_at: NotRequired[str]
    decision_found: bool
    flags: list[ExecutionFlag]
    execution_hash: str
    audit_chain: ChainPlace


class ExecutionList(TypedDict):
    """A page of execution receipts, newest first; go on with `next_cursor` until it is None."""

    decision_id: str
    count: int
    executions: list[ExecutionReceipt]
    next_cursor: str | None


class OutcomeRecord(TypedDict):
    """What was told of the result, hashed over its decision."""

    decision_protocol_version: str
    decision_outcome_version: str
    outcome_id: str
    decision_id: str
    idempotency_key: NotRequired[str]
    outcome_status: OutcomeStatus
    action_executed: NotRequired[bool]
    action_taken: NotRequired[str]
    target_system: NotRequired[str]
    target_object_id: NotRequired[str]
    mutation: NotRequired[str]
    external_ref: NotRequired[str]
    decision_record_hash: str
    decision_receipt_hash: str
    decision_verdict: Verdict
    decision_action: str
    policy_id: str
    policy_version: str
    policy_bundle_hash: str
    action_binding: ActionBinding
    observed_metrics: NotRequired[dict[str, float]]
    evidence_refs: NotRequired[list[str]]
    outcome_input_hash: str
    reported_at: str
    executed_at: NotRequired[str]
    decision_found: bool
    outcome_hash: str
    audit_chain: ChainPlace


class OutcomeList(TypedDict):
    """A page of outcome records, newest first; go on with `next_cursor` until it is None."""

    decision_id: str
    count: int
    outcomes: list[OutcomeRecord]
    next_cursor: str | None


class CrmSync(TypedDict):
    """What was told of a CRM, hashed over its decision."""

    decision_protocol_version: str
    decision_crm_sync_version: str
    sync_id: str
    decision_id: str
    idempotency_key: NotRequired[str]
    sync_status: SyncStatus
    sync_direction: NotRequired[SyncDirection]
    crm_provider: NotRequired[str]
    crm_object_type: NotRequired[str]
    crm_object_id: NotRequired[str]
    crm_record_url: NotRequired[str]
    mapped_fields: NotRequired[dict[str, Any]]
    decision_record_hash: str
    decision_receipt_hash: str
    decision_verdict: Verdict
    decision_action: str
    policy_id: str
    policy_version: str
    sync_input_hash: str
    reported_at: str
    sync_hash: str
    audit_chain: ChainPlace


class CrmSyncAnswer(TypedDict):
    """A CRM sync record with the decision that it is about."""

    decision_id: str
    crm_sync: CrmSync


class CrmSyncList(TypedDict):
    """A page of CRM sync records, newest first; go on with `next_cursor` until it is None."""

    decision_id: str
    count: int
    crm_syncs: list[CrmSync]
    next_cursor: str | None


# The audit chain.


class ChainLink(TypedDict):
    """One link of the audit chain."""

    decision_chain_version: str
    chain_id: str
    chain_position: int
    previous_link_hash: str | None
    previous_merkle_root: str | None
    leaf_hash: str
    merkle_root: str
    merkle_strategy: str
    entry_type: EntryType
    decision_id: str
    record_hash: str
    receipt_hash: str | None
    policy_id: str | None
    policy_version: str | None
    created_at: str
    link_hash: str


class ChainVerification(TypedDict):
    """What was found of the links that are shown."""

    valid: bool
    links_checked: int
    from_position: int | None
    to_position: int | None
    broken_at: int | None
    reason: str | None


class Chain(TypedDict):
    """The head of a chain and its last links, ascending."""

    chain_id: str
    chain_size: int
    merkle_root: str | None
    head_link_hash: str | None
    retained_links: list[ChainLink]
    verification: ChainVerification


class Checkpoint(TypedDict):
    """A signed statement of a chain's size and root. Keep it elsewhere."""

    checkpoint_version: str
    chain_id: str
    chain_size: int
    merkle_root: str | None
    link_hash: str | None
    issued_at: str
    key_id: str
    signature: str


# What outcomes say of a policy.


class OutcomeCounts(TypedDict):
    """How many decisions ended how."""

    succeeded: int
    partial: int
    failed: int
    reverted: int
    pending: int
    review: int


class Rate(TypedDict):
    """A rate with its bounds; `rate` is None without outcomes."""

    rate: float | None
    low: float
    high: float


class VersionConfidence(TypedDict):
    """The outcomes of one version of a policy."""

    policy_version: str
    outcomes: OutcomeCounts
    success_rate: Rate


# `from` is a word of the language.
Coverage = TypedDict(
    "Coverage", {"decisions": int, "versions": int, "from": str | None, "to": str | None, "truncated": bool}
)
"""Over which decisions a report was made."""


class ConfidenceReport(TypedDict):
    """How far outcomes support a policy, and what cannot be known."""

    decision_confidence_version: str
    policy_id: str
    policy_version: str | None
    verdict: Verdict | None
    action: str | None
    score: float
    level: ConfidenceLevel
    similar_decisions: int
    policy_stability: float | None
    recommendation: Literal[
        "high_confidence_proceed",
        "high_confidence_block",
        "high_confidence_review",
        "high_confidence",
        "monitor_outcomes",
        "review_policy",
        "collect_outcomes",
    ]
    outcomes: OutcomeCounts
    success_rate: Rate
    policy_success_rate: Rate
    versions: list[VersionConfidence]
    min_sample: int
    limit: int | None
    coverage: Coverage
    notes: list[str]
    confidence_hash: str


class Standing(TypedDict):
    """Decisions by the status of their latest outcome; `unreported` have none."""

    succeeded: int
    partial: int
    failed: int
    reverted: int
    pending: int
    review: int
    unreported: int


class VersionEffectiveness(TypedDict):
    """One version of a policy; `below_others` where it does worse than all others together."""

    policy_version: str
    first: str
    last: str
    decisions: int
    outcomes: Standing
    effectiveness_score: float | None
    success_rate: Rate
    failure_rate: float | None
    terminal_coverage: float | None
    below_others: bool


class VerdictEffectiveness(TypedDict):
    """One verdict."""

    verdict: Verdict
    decisions: int
    outcomes: Standing
    effectiveness_score: float | None
    success_rate: Rate
    failure_rate: float | None
    terminal_coverage: float | None


class RuleEffectiveness(TypedDict):
    """One rule: the second evidence code of its records."""

    rule: str
    decisions: int
    outcomes: Standing
    effectiveness_score: float | None
    success_rate: Rate
    failure_rate: float | None
    terminal_coverage: float | None


class WeekEffectiveness(TypedDict):
    """One week, by its Monday in UTC."""

    week: str
    decisions: int
    outcomes: Standing
    effectiveness_score: float | None
    success_rate: Rate
    failure_rate: float | None
    terminal_coverage: float | None


class ObservedMetric(TypedDict):
    """A metric that was reported; `median` is a value that was observed."""

    name: str
    decisions: int
    min: float
    median: float
    max: float


class SuccessBounds(TypedDict):
    """Between what the share lies that would have succeeded had every decided action been let through."""

    decisions: int
    observed: int
    succeeded: int
    unknown: int
    unobservable: int
    low: float
    high: float


EffectivenessCoverage = TypedDict(
    "EffectivenessCoverage",
    {
        "decisions": int,
        "versions": int,
        "rules": int,
        "weeks": int,
        "metrics": int,
        "from": str | None,
        "to": str | None,
        "chain_position": int,
        "merkle_root": str | None,
        "truncated": bool,
    },
)
"""Over which decisions an effectiveness report was made, and up to where the chain was read."""


class EffectivenessReport(TypedDict):
    """How well a policy does, and what cannot be known."""

    policy_effectiveness_version: str
    policy_id: str
    policy_version: str | None
    effectiveness_score: float | None
    confidence: float
    recommendation: Literal[
        "no_decisions",
        "collect_outcomes",
        "review_version",
        "report_outcomes",
        "healthy",
        "monitor_outcomes",
        "review_policy",
    ]
    outcomes: Standing
    success_rate: Rate
    failure_rate: float | None
    review_rate: float | None
    terminal_coverage: float | None
    bounds: SuccessBounds
    versions_below_others: int
    versions: list[VersionEffectiveness]
    verdicts: list[VerdictEffectiveness]
    rules: list[RuleEffectiveness]
    weeks: list[WeekEffectiveness]
    metrics: list[ObservedMetric]
    min_sample: int
    limit: int | None
    coverage: EffectivenessCoverage
    notes: list[str]
    effectiveness_hash: str


class AnomalySeverities(TypedDict):
    """How many anomalies are of each severity."""

    high: int
    medium: int
    low: int


AnomalyWindow = TypedDict("AnomalyWindow", {"from": str, "to": str})
"""When an anomaly was, UTC."""


class AnomalyStep(TypedDict):
    """What to look at next; `href` is a path of the service, or None where it is not there."""

    what: str
    href: str | None


class CountedShare(TypedDict):
    """So many of so many."""

    count: int
    of: int
    rate: float


class RateDifference(TypedDict):
    """The difference of two rates, with Newcombe's 95 % interval."""

    rate: float
    low: float
    high: float


ShiftedRate = TypedDict(
    "ShiftedRate",
    {
        "of": Literal["verdict", "reason", "outcome"],
        "value": str,
        "from": str,
        "to": str,
        "reference_from": str,
        "age_days": NotRequired[int | None],
        "before": CountedShare,
        "within": CountedShare,
        "difference": RateDifference,
        "cohens_h": float,
        "p_value": float,
        "required_p": float,
    },
)
"""A rate that differs from that of the weeks before."""


class FarValue(TypedDict):
    """A value of a metric that lies far out."""

    value: float
    usual: float
    modified_z: float


class FactBin(TypedDict):
    """The decisions with some values of a fact."""

    holds: str
    before: int
    within: int


DriftedFact = TypedDict(
    "DriftedFact",
    {
        "fact": str,
        "from": str,
        "to": str,
        "reference_from": str,
        "stability_index": float,
        "p_value": float,
        "bins": list[FactBin],
    },
)
"""A fact that differs from that of the weeks before."""


class AnomalyNumbers(TypedDict):
    """What an anomaly follows from; which members there are depends on its kind."""

    count: NotRequired[int]
    of: NotRequired[int]
    share: NotRequired[float]
    changes: NotRequired[list[ShiftedRate]]
    new_versions: NotRequired[list[str]]
    grain: NotRequired[Literal["hour", "day", "week"]]
    cells: NotRequired[int]
    decisions: NotRequired[int]
    usual: NotRequired[int]
    times: NotRequired[float]
    modified_z: NotRequired[float]
    required_z: NotRequired[float]
    metric: NotRequired[str]
    values: NotRequired[int]
    median: NotRequired[float]
    mad: NotRequired[float]
    scale: NotRequired[Literal["difference", "ratio"]]
    season: NotRequired[Literal["weekday and hour", "hour", "weekday"] | None]
    seasonal_p: NotRequired[float]
    farthest: NotRequired[list[FarValue]]
    facts: NotRequired[list[DriftedFact]]


class Anomaly(TypedDict):
    """One anomaly, with what it follows from and where to look next."""

    anomaly_id: str
    kind: Literal["lifecycle_break", "outcome_shift", "verdict_shift", "volume", "metric_outlier", "fact_drift"]
    subject: str | None
    severity: Literal["high", "medium", "low"]
    anomaly_score: float
    reasons: list[str]
    summary: str
    window: AnomalyWindow
    decisions: int
    decision_ids: list[str]
    numbers: AnomalyNumbers
    look_at_next: list[AnomalyStep]


class AnomalyParameters(TypedDict):
    """What the formulas were computed with."""

    window_weeks: list[int]
    reference_weeks: int
    false_discovery_rate: float
    receipt_due_hours: int
    outcome_due_days: int
    medium_score: float
    high_score: float
    alarm_chance: float
    rollout_chance: float


AnomalyCoverage = TypedDict(
    "AnomalyCoverage",
    {
        "decisions": int,
        "from": str | None,
        "to": str | None,
        "as_of": str | None,
        "weeks": int,
        "sampled_one_of": int,
        "facts": list[str],
        "metrics": int,
        "chain_position": int,
        "merkle_root": str | None,
        "truncated": bool,
    },
)
"""Over which decisions an anomaly report was made, and up to where the chain was read."""


class AnomalyReport(TypedDict):
    """What is anomalous about a policy's decisions."""

    policy_anomalies_version: str
    policy_id: str
    policy_version: str | None
    recommendation: Literal["investigate", "review", "watch", "stable", "insufficient_data"]
    anomaly_count: int
    severities: AnomalySeverities
    anomalies: list[Anomaly]
    min_sample: int
    threshold: float
    max_items: int
    limit: int | None
    parameters: AnomalyParameters
    coverage: AnomalyCoverage
    notes: list[str]
    anomaly_hash: str


class PolicyAlert(TypedDict):
    """An open anomaly of high severity, and the path of the report that lists it."""

    policy_id: str
    anomaly: Anomaly
    report: str


class AlertsCoverage(TypedDict):
    """What alerts were looked for in."""

    policies: int
    more_policies: int
    as_of: str | None
    chain_position: int
    merkle_root: str | None


class PolicyAlerts(TypedDict):
    """The open alerts of a scope."""

    policy_alerts_version: str
    alert_count: int
    alerts: list[PolicyAlert]
    open_days: int
    coverage: AlertsCoverage
    alerts_hash: str


class OwnMetrics(TypedDict):
    """What came of the caller's own decisions of a month."""

    decisions: int
    terminal: int
    success_rate: float | None
    approval_rate: float | None
    terminal_coverage: float | None


class Percentiles(TypedDict):
    """Percentiles of the rates of others, as they are told; the outer ones where 20 others count."""

    p10: NotRequired[float]
    p25: float
    p50: float
    p75: float
    p90: NotRequired[float]


class CohortPercentiles(TypedDict):
    """The percentiles of each rate."""

    success_rate: Percentiles
    approval_rate: Percentiles
    terminal_coverage: Percentiles


class CohortDeltas(TypedDict):
    """The caller's rates less the others' p50."""

    success_rate: float | None
    approval_rate: float | None
    terminal_coverage: float | None


CrossCustomer = TypedDict(
    "CrossCustomer",
    {
        "status": Literal["available", "withheld"],
        "reason": Literal["not_frozen", "not_opted_in", "too_few_scopes", "too_few_decisions"] | None,
        "explanation": str | None,
        "month": str | None,
        "from": str | None,
        "to": str | None,
        "scopes_at_least": int | None,
        "decisions_at_least": int | None,
        "percentiles": CohortPercentiles | None,
        "deltas": CohortDeltas | None,
    },
)
"""What is told of other scopes, or why nothing is."""


BenchmarkCoverage = TypedDict(
    "BenchmarkCoverage",
    {
        "decisions": int,
        "from": str | None,
        "to": str | None,
        "chain_position": int,
        "merkle_root": str | None,
        "truncated": bool,
    },
)
"""Over which of the caller's decisions a benchmark report was made, and up to where the chain was read."""


class BenchmarkReport(TypedDict):
    """How a policy does beside that of other scopes that opted in."""

    policy_benchmarks_version: str
    policy_id: str
    policy_version: str | None
    your_metrics: OwnMetrics
    cross_customer: CrossCustomer
    recommendation: Literal["not_compared", "insufficient_outcomes", "below_cohort", "within_cohort", "above_cohort"]
    min_cohort_scopes: int
    min_cohort_decisions: int
    limit: int | None
    coverage: BenchmarkCoverage
    notes: list[str]
    benchmark_hash: str


# Policies to read.


# `not` is a word of the language.
RulebookCondition = TypedDict(
    "RulebookCondition",
    {
        "all": "list[RulebookCondition]",
        "any": "list[RulebookCondition]",
        "not": "RulebookCondition",
        "field": str,
        "operator": Literal[
            "exists",
            "not_exists",
            "eq",
            "neq",
            "gt",
            "gte",
            "lt",
            "lte",
            "in",
            "not_in",
            "contains",
            "not_contains",
        ],
        "value": Any,
    },
    total=False,
)
"""A test of one fact, or a combination of conditions: `all`, `any` or `not`."""


class RulebookOutcome(TypedDict):
    """What a rulebook says."""

    decision: Verdict
    verdict: str
    action: str
    reason_code: str


class RulebookRule(TypedDict):
    """One rule."""

    rule_id: str
    priority: NotRequired[int]
    condition: RulebookCondition
    outcome: RulebookOutcome


class RulebookField(TypedDict):
    """The type of a fact."""

    type: Literal["number", "integer", "string", "boolean", "array", "object", "null"]


class RulebookInputs(TypedDict):
    """The facts that a rulebook consumes."""

    required: list[str]
    properties: dict[str, RulebookField]


class Rulebook(TypedDict):
    """A Rulebook v1."""

    schema_version: str
    rulebook_id: str
    version: str
    input_schema: RulebookInputs
    rules: list[RulebookRule]
    default_outcome: RulebookOutcome


class DecisionRequestTemplate(TypedDict):
    """A request that runs as it stands."""

    mode: str
    question: str
    rulebook: Rulebook
    adapter: NotRequired[AdapterInvocation]
    context: DecisionContext


class OutcomeTemplate(TypedDict):
    """An outcome report to fill in."""

    outcome_status: OutcomeStatus
    action_taken: str
    action_executed: bool
    target_system: str
    target_object_id: str
    mutation: str
    external_ref: str
    decision_record_hash: str
    decision_receipt_hash: str
    observed_metrics: dict[str, float]


class CrmSyncTemplate(TypedDict):
    """A CRM sync report to fill in."""

    sync_status: SyncStatus
    sync_direction: SyncDirection
    crm_provider: str
    crm_object_type: str
    crm_object_id: str
    crm_record_url: str
    decision_record_hash: str
    decision_receipt_hash: str
    decision_verdict: str
    decision_action: str
    policy_id: str
    policy_version: str


class PatternExamples(TypedDict):
    """How a pattern is used."""

    curl: str
    python: str


class PolicyPattern(TypedDict):
    """A whole starting point for a policy."""

    pattern_id: str
    policy_id: str
    title: str
    description: str
    tags: list[str]
    recommended_policy_version: str
    policy_hash: str
    decision_request_template: DecisionRequestTemplate
    outcome_template: OutcomeTemplate
    crm_sync_template: CrmSyncTemplate
    sdk_examples: PatternExamples
    pattern_hash: str


class PolicyPatterns(TypedDict):
    """The patterns."""

    patterns: list[PolicyPattern]
    count: int


class PolicyPatternAnswer(TypedDict):
    """The pattern that was asked for."""

    policy_pattern: PolicyPattern


class AdapterLimits(TypedDict):
    """What a call of an adapter may take."""

    timeout_ms: int
    memory_bytes: int
    output_bytes: int


class AdapterManifest(TypedDict):
    """What a registered adapter is."""

    manifest_version: Literal["trusted_adapter_manifest_v1"]
    adapter_id: str
    version: str
    title: str
    description: str
    implementation_revision: str
    implementation_hash: str
    adapter_authority: Literal["facts_only"]
    execution_isolation: Literal["process_one_shot_v1"]
    capability_enforcement: Literal["seccomp_allow_list_v1"]
    denied_capabilities: list[
        Literal[
            "child_processes",
            "clock",
            "environment",
            "file_system",
            "network",
            "other_processes",
            "randomness",
            "shared_memory",
        ]
    ]
    limits: AdapterLimits
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    manifest_hash: str


class TrustedAdapters(TypedDict):
    """The adapters that requests may invoke."""

    adapters: list[AdapterManifest]


class PolicyBundleEntry(TypedDict):
    """One of the service's own policies, in one version."""

    policy_id: str
    policy_version: str
    policy_hash: str
    policy_bundle: PolicyBundle
    policy_bundle_hash: str
    status: PolicyStatus
    source: str


class PolicyBundleRegistry(TypedDict):
    """The service's own policies, in every version."""

    policy_bundles: list[PolicyBundleEntry]
    count: int
    hash_algorithm: str
    canonicalization: str


class PolicyBundleAnswer(TypedDict):
    """The policy that was asked for."""

    policy_bundle_entry: PolicyBundleEntry


class PolicySource(TypedDict):
    """Where the body of an own policy stands."""

    policy_id: str
    policy_version: str
    policy_hash: str
    status: PolicyStatus
    source: str


class PolicySources(TypedDict):
    """Where the bodies of the service's own policies stand."""

    policy_sources: list[PolicySource]
    count: int


class RulebookMetadata(TypedDict):
    """The registration of one rulebook of the scope. Never its body."""

    ok: bool
    rulebook: RulebookRegistration


# The packet.


class PolicyIntelligence(TypedDict):
    """What is known of a decision's policy."""

    effectiveness: NotRequired[EffectivenessReport]
    anomalies: NotRequired[AnomalyReport]
    benchmarks: NotRequired[BenchmarkReport]
    confidence: NotRequired[ConfidenceReport]
    patterns: NotRequired[list[PolicyPattern]]


class VerificationHints(TypedDict):
    """How the parts are verified, in words, and a checkpoint that speaks for the retained links."""

    checkpoint: NotRequired[Checkpoint]


class PacketChain(TypedDict):
    """Consecutive links, the first of them the decision's own."""

    chain_id: str
    chain_size: int
    merkle_root: str
    retained_links: list[ChainLink]
    verification_hints: VerificationHints


class DecisionPacket(TypedDict):
    """A decision with its reports and its proofs, for whoever verifies it elsewhere."""

    decision_packet_version: str
    decision_id: str
    record_hash: str
    receipt_hash: str
    decision_record: DecisionRecord
    execution_receipts: list[ExecutionReceipt]
    outcome_records: list[OutcomeRecord]
    policy_intelligence: NotRequired[PolicyIntelligence]
    audit_chain: NotRequired[PacketChain]
    input: NotRequired[dict[str, Any] | None]
    exported_at: str
    packet_hash: str


# Verification.


class VerificationResult(TypedDict):
    """What was found of a record. In `checks`, None is a check that lacked material."""

    ok: bool
    verified: bool
    integrity_valid: bool
    authenticity_valid: bool
    key_source: KeySource
    checks: dict[str, bool | None]
    expected: dict[str, Any]
    actual: dict[str, Any]
    unknown_members: NotRequired[list[str]]
    error: NotRequired[str]
    notice: NotRequired[Literal["MATERIAL_ERASED"]]
    message: NotRequired[str]


class VerificationStep(TypedDict):
    """One step of verifying a packet; `holds` is None where it lacked material."""

    holds: bool | None
    failed: list[str]


class PacketVerificationSteps(TypedDict):
    """The four steps of verifying a packet."""

    packet_hash: VerificationStep
    decision_record: VerificationStep
    execution_and_outcome_hashes: VerificationStep
    intelligence_and_chain: VerificationStep


class PacketVerificationResult(TypedDict):
    """What was found of a packet. In `checks`, None is a check that lacked material."""

    ok: bool
    verified: bool
    integrity_valid: bool
    authenticity_valid: bool
    key_source: KeySource
    checks: dict[str, bool | None]
    expected: dict[str, Any]
    actual: dict[str, Any]
    steps: PacketVerificationSteps
    unknown_members: NotRequired[list[str]]
    error: NotRequired[str]
    notice: NotRequired[Literal["MATERIAL_ERASED", "REPORTS_UNSIGNED"]]
    message: NotRequired[str]


class VerificationEndpoint(TypedDict):
    """What a verify endpoint takes and answers."""

    ok: bool
    endpoint: str
    methods: list[str]
    decision_protocol_version: str
    decision_record_version: str
    decision_packet_version: NotRequired[str]
    canonicalization: str
    hash_algorithm: str
    signature_algorithms: list[str]
    accepts: dict[str, str]
    receipt_keys_url: str
    attestation_keys_url: str


# Replay and what-if.


class ReplayDifference(TypedDict):
    """Where a decision that is made again differs from the stored one."""

    field: Literal["verdict", "evidence", "record_hash", "policy_bundle_hash"]
    stored: str | list[str]
    replayed: str | list[str]


class ReplayedDecision(TypedDict):
    """The decision made again: nothing signed, and nothing stored."""

    decision_id: str
    request_id: str
    verdict: Verdict
    application_verdict: str
    reason_code: str
    matched_rule_id: str | None
    action: str
    rulebook: RulebookIdentity
    policy_bundle_hash: str
    record_hash: str
    receipt_hash: str


class ReplayResult(TypedDict):
    """A stored decision made again, and where it differs."""

    decision_id: str
    replay_contract: NotRequired[str]
    replay_against: Literal["historical", "current"]
    compared_fields: list[str]
    replay_status: Literal["matched", "drifted"]
    drift: list[ReplayDifference]
    decision: ReplayedDecision


class ScenarioBase(TypedDict):
    """What the stored decision said."""

    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None


class ScenarioDifference(TypedDict):
    """Where a scenario differs from the stored decision."""

    field: Literal["verdict", "application_verdict", "action", "reason_code", "matched_rule_id"]
    stored: str | None
    scenario: str | None


class ScenarioResult(TypedDict):
    """What the rulebook would say to a scenario."""

    scenario_id: str
    label: str
    facts_changed: bool
    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None
    diff: list[ScenarioDifference]
    recommendation: Literal["no_change", "same_verdict", "would_proceed", "would_block", "would_hold"]
    evidence: NotRequired[list[str]]
    evaluation: NotRequired[Evaluation]


class CounterfactualsResult(TypedDict):
    """What the rulebook would say to other contexts. A simulation: it authorizes nothing."""

    decision_counterfactuals_version: str
    decision_id: str
    simulation_only: bool
    authorizes_mutation: bool
    rulebook: RulebookIdentity
    base: ScenarioBase
    scenarios: list[ScenarioResult]
    counterfactual_hash: str


# The service.


class StatusPart(TypedDict):
    """Whether one part can be used, and why not."""

    ready: bool
    reason: NotRequired[str]


class Status(TypedDict):
    """Readiness, part by part."""

    ok: bool
    status: Readiness
    version: str
    interface_version: str
    signing: StatusPart
    rulebook_runtime: StatusPart
    ledger: StatusPart
    idempotency: StatusPart
    registries: StatusPart
    auth: StatusPart
    backends: StatusPart
    disk: StatusPart
    trusted_adapters: StatusPart
    contracts: dict[str, str]


class Probe(TypedDict):
    """Readiness or liveness in a word."""

    ok: bool
    status: Literal["alive", "ready", "degraded"]


class RequestLimits(TypedDict):
    """The sizes that the service takes: bytes, levels, characters."""

    request_bytes: int
    verify_bytes: int
    nesting: int
    idempotency_key_characters: int


class RuntimeConfig(TypedDict):
    """What an instance is set to."""

    ok: bool
    version: str
    interface_version: str
    base_url: str
    schema_url: str
    openapi_url: str
    docs_url: str
    modes: dict[str, Literal["binding", "advisory", "unconfigured"]]
    binding_modes: list[str]
    response_views: list[str]
    receipt_signing: ReceiptSigning
    registry_signing: RegistrySigning
    limits: RequestLimits


class ProofMetrics(TypedDict):
    """How much proof an instance holds, over all scopes."""

    ok: bool
    generated_at: str
    status: Readiness
    scopes: int
    chain_entries: int
    registered_rulebooks: int
    receipt_keys: int
    attestation_keys: int
    receipt_signing: ReceiptSigning
    registry_signing: RegistrySigning


class PublicKeyEntry(TypedDict):
    """A public key: PEM (SPKI), and when it is valid."""

    key_id: str
    algorithm: str
    public_key: str
    public_key_fingerprint: str
    status: Literal["active", "retired", "compromised"]
    not_before: str
    not_after: str | None


class KeyRegistryDocument(TypedDict):
    """The public keys of one kind, active and past."""

    keys: list[PublicKeyEntry]
    active_key_id: str | None


# The published contract.


class SchemaEntry(TypedDict):
    """A schema of the contract, with its hash."""

    name: str
    title: str
    url: str
    hash: str


class ContractIndex(TypedDict):
    """Every schema of the contract, and where the other two indexes are."""

    ok: bool
    interface_version: str
    compatibility_policy: str
    schemas: list[SchemaEntry]
    conformance_url: str
    replay_url: str


class ConformanceEntry(TypedDict):
    """A conformance fixture, with its hash."""

    fixture_id: str
    title: str
    path: str
    sha256: str


class ConformanceIndex(TypedDict):
    """The conformance fixtures."""

    interface_version: str
    compatibility_policy: str
    protocol: str
    hash_algorithm: str
    canonicalization: str
    fixtures: list[ConformanceEntry]
    conformance_hash: str


class FixtureRequest(TypedDict):
    """What a conformance fixture sends."""

    method: Literal["GET", "POST"]
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class FixtureExpectation(TypedDict):
    """What every answer to a conformance fixture has in common."""

    status: int
    body: dict[str, Any]
    absent: list[str]


class ConformanceFixture(TypedDict):
    """A request, and what every answer to it has in common."""

    fixture_id: str
    title: str
    request: FixtureRequest
    expected: FixtureExpectation


class GoldenReplayFile(TypedDict):
    """A file of the golden replay corpus, with its hash."""

    path: str
    sha256: str
    cases: int


class GoldenReplayIndex(TypedDict):
    """The files of the golden replay corpus, and how many cases each subject has."""

    corpus: str
    replay_contract: str
    evaluator_version: str
    rulebook_schema_hash: str
    hash_algorithm: str
    canonicalization: str
    files: list[GoldenReplayFile]
    cases: int
    covers: dict[str, int]
    corpus_hash: str


class GoldenRulebook(TypedDict):
    """Which rulebook a case is about."""

    rulebook_id: str
    version: str


class GoldenOutcome(TypedDict):
    """What the rulebook always says to a case."""

    verdict: Verdict
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None
    missing_fields: list[str]
    invalid_fields: list[InvalidField]
    evaluated_rules: NotRequired[list[str]]


class GoldenHashes(TypedDict):
    """The hashes that a case always gives."""

    rulebook_hash: str
    input_hash: str
    bundle_hash: str
    trusted_adapter: NotRequired[dict[str, Any]]


class GoldenCase(TypedDict):
    """Facts, and what a rulebook always says to them."""

    case_id: str
    title: str
    covers: list[str]
    rulebook: GoldenRulebook
    inputs: NotRequired[dict[str, Any]]
    adapter: NotRequired[AdapterInvocation]
    adapter_facts: NotRequired[dict[str, Any]]
    expected: GoldenOutcome
    frozen: GoldenHashes


class GoldenReplays(TypedDict):
    """Rulebooks and cases on one theme."""

    corpus: str
    theme: str
    title: str
    rulebooks: list[Rulebook]
    cases: list[GoldenCase]


# The documentation.


class EndpointEntry(TypedDict):
    """An endpoint in short."""

    method: str
    path: str
    summary: str
    auth: Literal["public", "key", "metrics token"]
    access: str
    rate_limited: bool
    statuses: list[int]


class SchemaLink(TypedDict):
    """Where a schema stands."""

    name: str
    url: str


class Plan(TypedDict):
    """A plan's limits; None where there is none."""

    plan: str
    requests_per_minute: int | None
    records_per_month: int | None


class RateLimits(TypedDict):
    """What is limited, and where a caller hears of it."""

    scope: str
    headers: list[str]
    plans: list[Plan]


class DocsMetadata(TypedDict):
    """Endpoints, schemas and limits in short."""

    ok: bool
    interface_version: str
    openapi_url: str
    docs_url: str
    endpoints: list[EndpointEntry]
    schemas: list[SchemaLink]
    rate_limits: RateLimits
    limits: dict[str, int]
