# Generated from the OpenAPI document by `make client`. Do not edit: change the document, in schemas/, or the
# generator, in api/description/client.
"""The shapes of what is sent and answered, for editors and type checkers. Nothing is checked when a program runs.

Answers may gain members, and words may be added to those listed here: read them tolerantly. Hashes are lower-case hex
SHA-256, times are UTC timestamps `2026-01-31T12:00:00.000Z`, cursors and ids are opaque.
"""

# Annotations are evaluated here, as they are written: as texts, TypedDict would not see which members are NotRequired.

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Json: TypeAlias = Any
"""A JSON value that the document says no more of, as `json.loads` gives it: look at it before you use it."""

ActorType = Literal["key", "user", "service"]
ConfidenceLevel = Literal["high", "medium", "low", "insufficient"]
EntryType = Literal["decision", "execution", "outcome", "crm_sync", "erasure", "migration", "route", "resolution"]
ExecutionFlag = Literal["DECISION_NOT_APPROVED", "ACTION_BINDING_MISMATCH", "ACTION_TAKEN_MISMATCH"]
ExecutionStatus = Literal["executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted"]
KeySource = Literal["server", "registry", "public_key", "hmac_secret", "request", "none"]
MigrationState = Literal["proposed", "approved", "rejected", "superseded", "applied", "rolled_back"]
MigrationStatus = Literal["proposed", "approved", "rejected", "superseded"]
Mode = Literal["rulebook", "single", "multi", "runtime"]
OutcomeStatus = Literal["succeeded", "failed", "partial", "reverted", "pending", "review"]
PolicyStatus = Literal["active", "historical"]
Readiness = Literal["ready", "degraded"]
ReceiptSigning = Literal["ed25519", "hmac-sha256", "off"]
RegistrySigning = Literal["ed25519", "off"]
RouteCause = Literal["apply", "rollback"]
SyncDirection = Literal["writeback", "inbound"]
SyncStatus = Literal["written", "pending", "failed", "skipped"]
Verdict = Literal["yes", "no", "review"]
View = Literal["minimal", "standard", "full"]


# What is sent: Decide.


class RulebookRef(TypedDict):
    """A rulebook that the scope has registered, instead of its body: {rulebook_id, version} or {hash}; {rulebook_id}
    alone names the version that its route leads to.
    """

    hash: NotRequired[str]
    """H of a registered rulebook, lower-case hex."""
    rulebook_id: NotRequired[str]
    """Its rulebook_id."""
    version: NotRequired[str]
    """Its version; the one that the route of rulebook_id leads to where absent."""


class AdapterInvocation(TypedDict):
    """The member adapter of a Decision Request: one call of one registered adapter."""

    adapter_id: str
    """The adapter's id."""
    version: str
    """The adapter's exact version."""
    manifest_hash: str
    """H of the adapter's manifest, lower-case hex."""
    input: Mapping[str, Json]
    """What the adapter is given; its manifest's input_schema says what it takes."""


class DecisionContext(TypedDict):
    """What the decision is about. Open: advisory modes take further structured keys."""

    workflow: NotRequired[str]
    """The caller's workflow that asks."""
    source_record_id: NotRequired[str]
    """What the workflow is about, in the caller's terms."""
    requested_action: NotRequired[str]
    """The action asked for; action_binding.proposed_action of the record."""
    target_system: NotRequired[str]
    """The system that would be changed; action_binding.system."""
    target_object_id: NotRequired[str]
    """The object that would be changed; action_binding.resource."""
    mutation: NotRequired[str]
    """The change itself, in the caller's terms; action_binding.mutation."""
    actor: NotRequired[Json]
    """Who asks; copied into action_binding."""
    subject: NotRequired[Json]
    """Whom the action is about; copied into action_binding."""
    amount: NotRequired[Json]
    """The caller's number, untouched; copied into action_binding."""
    currency: NotRequired[Json]
    """Copied into action_binding."""
    inputs: NotRequired[Mapping[str, Json]]
    """The facts that the rulebook consumes."""


class DecisionRequest(TypedDict):
    """Body of POST /api/decide. In mode rulebook exactly one of rulebook and rulebook_ref, and at most one of
    context.inputs and adapter, is sent.
    """

    question: NotRequired[str]
    """Plain-language decision boundary. Required by the advisory modes; descriptive metadata in mode rulebook."""
    mode: NotRequired[Mode]
    """rulebook gives a binding verdict. single (the default), multi and runtime are advisory."""
    rulebook: NotRequired[Mapping[str, Json]]
    """A Rulebook v1 object: see rulebook-v1.schema.json."""
    rulebook_ref: NotRequired[RulebookRef]
    """A rulebook that the scope has registered, instead of its body: {rulebook_id, version} or {hash}; {rulebook_id}
    alone names the version that its route leads to.
    """
    binding_mode: NotRequired[str]
    """direct_declarative_rulebook or trusted_adapter_facts_then_declarative_rulebook; anything else is refused with
    RULEBOOK_BINDING_MODE_UNSUPPORTED.
    """
    adapter: NotRequired[AdapterInvocation]
    """One invocation of a registered trusted adapter, instead of context.inputs: see
    trusted-adapter-invocation.schema.json.
    """
    context: NotRequired[DecisionContext]
    """What the decision is about. Open: advisory modes take further structured keys."""
    occurred_at: NotRequired[str]
    """When what the decision is about happened, UTC: 2026-01-31T12:00:00.000Z, at most 5 minutes ahead of the
    service's clock. It is part of the request alone, and no member of the record.
    """
    response_view: NotRequired[View]
    """Projection of the answer. Not part of the canonical input hash."""


# What is sent: Verify.


class RecordVerificationRequest(TypedDict):
    """The record in a wrapper. Where the path names a decision, the record may be left out: the stored one is then
    verified.
    """

    record: NotRequired[Mapping[str, Json]]
    """A full Decision Record, as it was answered."""
    input: NotRequired[Json]
    """The Decision Request that it answers. Its hashes are then checked as well."""
    public_key: NotRequired[str | None]
    """An Ed25519 public key in PEM (SPKI), for diagnosis. It never makes a record verified."""


class PacketVerificationRequest(TypedDict):
    """The packet in a wrapper."""

    packet: Mapping[str, Json]
    """A Decision Packet, as it was exported."""
    input: NotRequired[Json]
    """The Decision Request that the record answers. Without it the packet's own is used."""
    public_key: NotRequired[str | None]
    """An Ed25519 public key in PEM (SPKI), for diagnosis. It never makes a packet verified."""
    checkpoint: NotRequired[Mapping[str, Json] | None]
    """A checkpoint of the chain that the verifier kept, with which the packet must agree: its links must reach it."""


# What is sent: Replay.


class ReplayRequest(TypedDict):
    """Body of POST .../replay and POST .../diff. An empty body is the same as {}."""

    replay_mode: NotRequired[str]
    """historical (the default of replay) decides the stored request by what the record cites; current (the only one
    of diff) by what the scope has registered by now. Anything else is refused with REPLAY_MODE_INVALID.
    """
    input: NotRequired[Mapping[str, Json]]
    """A whole Decision Request of mode rulebook, decided instead of the stored one: see
    decision-request.schema.json. Mode current alone takes it; its response_view has no effect.
    """
    response_view: NotRequired[View]
    """The view of `decision` in the answer."""


class Scenario(TypedDict):
    """One change of the context, or of the adapter's input."""

    scenario_id: str
    """The caller's id for it."""
    label: NotRequired[str]
    """What it stands for, for people. The scenario_id where it is absent."""
    context_patch: Mapping[str, Json]
    """A merge patch (RFC 7396) over the stored context: a member that is null is removed, an object is merged,
    everything else replaces. Facts stand under inputs.
    """
    adapter_input_patch: NotRequired[Mapping[str, Json]]
    """A merge patch over the stored input of the adapter, where the decision's facts came from one."""


class CounterfactualsRequest(TypedDict):
    """Body of POST .../counterfactuals: scenarios to simulate against the rulebook's latest version."""

    scenarios: list[Scenario]
    """What to simulate, 1 to 50. Their ids are unique."""
    response_view: NotRequired[View]
    """How much each scenario of the answer tells: standard adds evidence, full the evaluation as well."""


# What is sent: Lifecycle.


class Executor(TypedDict):
    """Who performed it."""

    type: str
    """What kind of executor it is: service, agent, person."""
    id: str
    """Which one."""


class ExecutionReport(TypedDict):
    """Body of POST /api/decision/{decision_id}/execution: what became of the action."""

    execution_status: ExecutionStatus
    """What became of the action."""
    execution_result: NotRequired[str]
    """The result in the caller's words."""
    action_taken: NotRequired[str]
    """The action that was actually performed, by its label. One that is not the decision's action sets the flag
    ACTION_TAKEN_MISMATCH of the receipt.
    """
    target_system: NotRequired[str]
    """The system that was changed."""
    target_object_id: NotRequired[str]
    """The object that was changed."""
    mutation: NotRequired[str]
    """The change itself, in the caller's terms."""
    external_ref: NotRequired[str]
    """The caller's reference to the transaction."""
    execution_id: NotRequired[str]
    """The caller's own id of the execution."""
    executor: NotRequired[Executor]
    """Who performed it."""
    decision_record_hash: NotRequired[str]
    """The record's record_hash. Where it is sent, it must be that of the stored record."""
    decision_receipt_hash: NotRequired[str]
    """The record's receipt_hash. Where it is sent, it must be that of the stored record."""
    action_binding: NotRequired[Mapping[str, Json]]
    """The binding that the executor acted on, or some of it. Each field that is sent is compared with that of the
    record.
    """
    state_before_hash: NotRequired[str]
    """A hash of the target's state before the action, with its algorithm: sha256:..."""
    state_after_hash: NotRequired[str]
    """A hash of the target's state after the action, with its algorithm."""
    state_before_ref: NotRequired[str]
    """Where the state before is kept."""
    state_after_ref: NotRequired[str]
    """Where the state after is kept."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence that is kept elsewhere."""
    executed_at: NotRequired[str]
    """When the action was performed: a time with its zone. It is stored in UTC with milliseconds."""


class OutcomeReport(TypedDict):
    """Body of POST /api/decision/{decision_id}/outcome: what the action led to."""

    outcome_status: OutcomeStatus
    """What the action led to. pending and review are for results that are still ambiguous; the others are final
    until another outcome is reported.
    """
    action_executed: NotRequired[bool]
    """Whether the action was executed at all."""
    action_taken: NotRequired[str]
    """The action that was actually performed, by its label."""
    target_system: NotRequired[str]
    """The system that was changed."""
    target_object_id: NotRequired[str]
    """The object that was changed."""
    mutation: NotRequired[str]
    """The change itself, in the caller's terms."""
    external_ref: NotRequired[str]
    """The caller's reference to the transaction."""
    decision_record_hash: NotRequired[str]
    """The record's record_hash. Where it is sent, it must be that of the stored record."""
    decision_receipt_hash: NotRequired[str]
    """The record's receipt_hash. Where it is sent, it must be that of the stored record."""
    observed_metrics: NotRequired[dict[str, float]]
    """What was measured: each metric's name and its number."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence that is kept elsewhere."""
    executed_at: NotRequired[str]
    """When the action was performed: a time with its zone. It is stored in UTC with milliseconds."""
    occurred_at: NotRequired[str]
    """When the outcome came about, UTC: 2026-01-31T12:00:00.000Z, at most 5 minutes ahead of the service's clock."""


class ResolutionRequest(TypedDict):
    """Body of POST /api/decision/{decision_id}/resolution: the owner's answer to a held decision."""

    resolution: Literal["granted", "refused", "expired"]
    """The answer. granted lets the held action run until the grant expires; refused and expired keep it held for
    good.
    """
    resolved_by: str
    """The person who answered, as the caller says; not blank, and without control characters. The service records
    the key that sent it beside this claim.
    """
    note: NotRequired[str]
    """The reason, in the person's words. It stays for good: leave out personal data of customers."""
    evidence: NotRequired[list[str]]
    """References to evidence that is kept elsewhere, such as ticket numbers. The resolution repeats them as
    evidence_refs.
    """
    decision_record_hash: NotRequired[str]
    """The record's record_hash. Where it is sent, it must be that of the stored record."""
    decision_receipt_hash: NotRequired[str]
    """The record's receipt_hash. Where it is sent, it must be that of the stored record."""


class CrmSyncReport(TypedDict):
    """Body of POST /api/decision/{decision_id}/crm-sync: what of the decision is in a CRM."""

    sync_status: SyncStatus
    """What became of the sync."""
    sync_direction: NotRequired[SyncDirection]
    """writeback: from the decision into the CRM; inbound: from the CRM."""
    crm_provider: NotRequired[str]
    """Which CRM."""
    crm_object_type: NotRequired[str]
    """What kind of object it is there."""
    crm_object_id: NotRequired[str]
    """Which object."""
    crm_record_url: NotRequired[str]
    """Where the object is shown, without credentials."""
    mapped_fields: NotRequired[Mapping[str, Json]]
    """The fields that were mapped, and their values. Never credentials. Nothing in it, at any depth, may be null or
    empty text, an empty list or an empty object: sync_hash would not bind it.
    """
    decision_record_hash: NotRequired[str]
    """The record's record_hash. Where it is sent, it must be that of the stored record."""
    decision_receipt_hash: NotRequired[str]
    """The record's receipt_hash. Where it is sent, it must be that of the stored record."""
    decision_verdict: NotRequired[str]
    """The record's verdict. Where it is sent, it must be that of the stored record."""
    decision_action: NotRequired[str]
    """The record's action; as decision_verdict."""
    policy_id: NotRequired[str]
    """The record's policy_id; as decision_verdict."""
    policy_version: NotRequired[str]
    """The record's policy_version; as decision_verdict."""


# What is sent: Policy services.


class RefundWorkflowRequest(TypedDict):
    """A help desk's question about a refund."""

    vendor: str
    """The vendor, as the policy table names it."""
    region: NotRequired[str]
    """The country of the customer as ISO 3166-1 alpha-2, with a subdivision where that matters: US, US-CA."""
    plan: NotRequired[str]
    """The plan or product category."""
    days_since_purchase: NotRequired[float]
    """How many days ago the purchase was made; fractions count."""
    ticket_id: str
    """The ticket, in your help desk."""
    conditions_met: NotRequired[list[str]]
    """The names of the vendor's conditions that hold, as an earlier answer listed them."""


# What is sent: Operations.


class PilotRequest(TypedDict):
    """The body of POST /api/pilot: who asks to try the service, and for what. Texts hold no control characters, line
    breaks included, and more than white space.
    """

    name: str
    """The person's name."""
    email: str
    """Where the operator writes to, such as ada@example.com."""
    company: str
    """The company's name."""
    use: str
    """What the service is to be used for."""


class PilotConfirmationRequest(TypedDict):
    """The body of POST /api/pilot/confirm."""

    pilot_id: str
    """The submission's id."""
    token: str
    """The token that the operator sent to the person."""


# What is answered: Decide.


class ActionBinding(TypedDict):
    """What the decision is bound to."""

    system: str
    """context.target_system."""
    resource: str
    """context.target_object_id."""
    proposed_action: str
    """context.requested_action."""
    mutation: NotRequired[str]
    """context.mutation."""
    actor: NotRequired[Json]
    """Who asked, as sent."""
    subject: NotRequired[Json]
    """Whom the action is about, as sent."""
    amount: NotRequired[Json]
    """The caller's number, untouched."""
    currency: NotRequired[Json]
    """As sent."""


class EvidenceSource(TypedDict):
    """A source."""

    id: str
    """Which source."""
    type: Literal["rulebook", "evaluation", "adapter", "prompt", "advisory"]
    """What kind of source."""
    snapshot_hash: str
    """Hash of the source as it was used."""


class EvidenceManifest(TypedDict):
    """The evidence with the hashes of what it came from."""

    codes: list[str]
    """The evidence codes."""
    sources: list[EvidenceSource]
    """What they rest on."""


class InvalidField(TypedDict):
    """A fact of the wrong type."""

    field: str
    """The fact."""
    expected: str
    """The type that input_schema declares."""
    observed_type: str
    """The type that was sent."""


class EvaluatedTest(TypedDict):
    """A test. observed is left out where the field was absent, and is {sha256, bytes} where it is over 1 KiB."""

    path: str
    """Where in the condition the test stands."""
    field: str
    """The fact tested."""
    operator: str
    """The operator."""
    passed: bool
    """Whether the test held."""
    expected: NotRequired[Json]
    """The rule's value; absent with exists and not_exists."""
    observed: NotRequired[Json]
    """The fact's value."""


class RuleEvaluation(TypedDict):
    """A rule that was tried, in order."""

    rule_id: str
    """The rule."""
    priority: int
    """Its priority."""
    passed: bool
    """Whether its condition held."""
    tests: list[EvaluatedTest]
    """Every test of its condition, without short cut."""


class Evaluation(TypedDict):
    """How the rulebook came to its outcome."""

    matched: bool
    """Whether a rule matched."""
    missing_fields: list[str]
    """Required facts that were absent."""
    invalid_fields: list[InvalidField]
    """Facts of the wrong type."""
    rules: list[RuleEvaluation]
    """The rules that were tried, up to and including the one that matched."""


class DecisionRecordAdvisoryEvaluationAnswerScores(TypedDict):
    """An option with its score."""

    option: str
    """The option, as context.options has it."""
    score: float
    """0 (unfit) to 100 (fit)."""
    reason: str
    """Why."""


class DecisionRecordAdvisoryEvaluationAnswerScorecard(TypedDict):
    """An option with its score."""

    option: str
    """The option, as context.options has it."""
    score: float
    """0 (unfit) to 100 (fit)."""
    reason: str
    """Why."""


class DecisionRecordAdvisoryEvaluationAnswer(TypedDict):
    """The answer, as the upstream gave it. Mode single has answer and reason, multi has scores, runtime has
    recommended, reason and scorecard.
    """

    answer: NotRequired[Literal["yes", "no", "unclear"]]
    """Mode single: the answer."""
    reason: NotRequired[str]
    """Modes single and runtime: why."""
    scores: NotRequired[list[DecisionRecordAdvisoryEvaluationAnswerScores]]
    """Mode multi: each option once."""
    recommended: NotRequired[str]
    """Mode runtime: one of the options."""
    scorecard: NotRequired[list[DecisionRecordAdvisoryEvaluationAnswerScorecard]]
    """Mode runtime: each option once."""


class DecisionRecordAdvisoryEvaluation(TypedDict):
    """The upstream's answer; null once it was erased."""

    mode: Literal["single", "multi", "runtime"]
    """The mode of the request."""
    model: str
    """The model that was asked, as the setting advisory_model names it."""
    answer: DecisionRecordAdvisoryEvaluationAnswer
    """The answer, as the upstream gave it. Mode single has answer and reason, multi has scores, runtime has
    recommended, reason and scorecard.
    """


class RecordedPolicyBundle(TypedDict):
    """The policy's identity."""

    id: str
    """The rulebook's id."""
    version: str
    """The rulebook's version."""
    hash: str
    """H(rulebook)."""
    hash_algorithm: str
    """The hash of this protocol."""
    canonicalization: str
    """How JSON becomes bytes."""
    source: NotRequired[str]
    """Where the policy comes from."""


class RulebookIdentity(TypedDict):
    """The rulebook that decided."""

    schema_version: str
    """Version of the rulebook's layout."""
    id: str
    """The rulebook's id."""
    version: str
    """Its version."""
    hash: str
    """H(rulebook)."""


class RulebookContract(TypedDict):
    """The contract under which the rulebook was validated and evaluated."""

    schema_version: str
    """Version of the rulebook's layout."""
    schema_url: str
    """Where the schema is published."""
    schema_hash: str
    """H(schema)."""
    evaluator_version: str
    """Version of the evaluator."""


class RuntimeBinding(TypedDict):
    """Who decides, and on whose facts."""

    production_core: str
    """What makes the verdict."""
    binding_mode: Literal["direct_declarative_rulebook", "trusted_adapter_facts_then_declarative_rulebook"]
    """Where the facts came from."""
    verdict_authority: str
    """What selects the verdict."""
    customer_supplied_code: str
    """What happens to code that a caller sends."""
    adapter_authority: NotRequired[str]
    """What an adapter may do, in adapter mode."""


class RegistryAttestation(TypedDict):
    """What the registry key says of the registration."""

    registry_attestation_version: str
    """Version of the attestation's layout."""
    status: Literal["signed", "unsigned"]
    """signed where registry signing is configured."""
    attestation_hash: str
    """What is signed: H of the registration."""
    key_id: str | None
    """The registry key that signed; null where unsigned."""
    signature_algorithm: str
    """What the registry signs with."""
    signature: str | None
    """Its signature; null where unsigned."""


class AdapterDependency(TypedDict):
    """The trusted adapter that the rulebook is bound to, where there is one."""

    adapter_id: str
    """The adapter's id."""
    version: str
    """The adapter's version."""
    manifest_hash: str
    """The hash of its manifest."""
    implementation_hash: str
    """The hash of its source."""


class RulebookRegistration(TypedDict):
    """The rulebook's registration in the scope, as stored once."""

    rulebook_registry_version: str
    """Version of the registration's layout."""
    schema_version: str
    """Version of the rulebook's layout."""
    rulebook_id: str
    """The rulebook's id."""
    version: str
    """Its version."""
    hash: str
    """H(rulebook)."""
    evaluator_version: str
    """The evaluator it is bound to."""
    hash_algorithm: str
    """The hash of this protocol."""
    canonicalization: str
    """How JSON becomes bytes."""
    scope_hash: str
    """The scope, without naming it."""
    registered_at: str
    """When it was registered, UTC."""
    registry_attestation: RegistryAttestation
    """What the registry key says of it."""
    adapter_dependency: NotRequired[AdapterDependency]
    """The trusted adapter it is bound to, where there is one."""


class AttestedOutcome(TypedDict):
    """The outcome."""

    status: Literal["ok", "needs_input"]
    """needs_input where a required fact was missing or mistyped."""
    verdict: Verdict
    """The verdict."""
    application_verdict: str
    """The rulebook's own verdict."""
    action: str
    """Action label."""
    reason_code: str
    """Reason code."""
    matched_rule_id: str | None
    """The rule that matched; null where none did."""


class AttestedBundle(TypedDict):
    """The attested evaluation: no date, no id, nothing of the environment."""

    engine: str
    """What evaluated."""
    evaluator_version: str
    """Version of the evaluator."""
    rulebook: RulebookIdentity
    """The rulebook: schema_version, id, version, hash."""
    input_hash: str
    """H of the facts."""
    outcome: AttestedOutcome
    """The outcome."""
    runtime_binding: RuntimeBinding
    """As in the record."""
    trusted_adapter: dict[str, Json] | None
    """The adapter invocation; null without one."""


class AttestationSignature(TypedDict):
    """Signature over the hex of bundle_hash."""

    schema_version: str
    """Version of the signature's layout."""
    algorithm: str
    """What signed."""
    signed_field: str
    """What was signed."""
    status: Literal["signed", "unsigned", "error"]
    """Whether it is signed."""
    key_id: str | None
    """The registry key that signed; null where unsigned."""
    signature: str | None
    """The signature; null where unsigned."""


class RulebookAttestation(TypedDict):
    """What the registry key says of this evaluation."""

    schema_version: str
    """Version of the attestation's layout."""
    bundle: AttestedBundle
    """The attested evaluation: no date, no id, nothing of the environment."""
    bundle_hash: str
    """H(bundle)."""
    signature: AttestationSignature
    """Signature over the hex of bundle_hash."""


class ReceiptSigner(TypedDict):
    """The key that signed the receipt."""

    algorithm: Literal["ed25519", "hmac-sha256"]
    """What signed the receipt hash."""
    key_id: str
    """As receipt_key_id of the record."""
    public_key_fingerprint: str | None
    """As receipt_public_key_fingerprint of the record."""


class Integrity(TypedDict):
    """How the record is protected."""

    canonicalization: str
    """How JSON becomes bytes."""
    hash_algorithm: str
    """The hash of this protocol."""
    policy_hash: str
    """As in the record."""
    policy_bundle_hash: str
    """As in the record."""
    signature: ReceiptSigner | None
    """The receipt's signature in short; null where unsigned."""


class DecisionConfidence(TypedDict):
    """Present once the scope has Outcome Records for the policy. Outside the signature."""

    decision_confidence_version: str
    """Version of this layout."""
    score: float
    """0 to 1, six decimals: what success rate the outcomes of similar decisions support."""
    level: ConfidenceLevel
    """The score in a word: high, medium, low, or insufficient."""
    similar_decisions: int
    """How many decisions of the same policy, version, verdict and action have an outcome."""
    policy_stability: float | None
    """0 to 1: 1 less how far this version lies below the policy, as far as their intervals tell them apart; null
    below 20 terminal outcomes.
    """
    recommendation: str
    """What to make of it; it authorizes nothing."""
    confidence_hash: str
    """H of this object without this member."""


class Erased(TypedDict):
    """Present once what the decision held of its request and facts was erased. Outside the signature; an erasure
    entry of the chain confirms it.
    """

    erasure_id: str
    """The chain's entry about it."""
    erased_at: str
    """When it was erased."""
    members: list[Literal["adapter_facts", "evaluation", "input"]]
    """What was erased: members of the record, which are null, and input, the stored request."""


class ChainPlace(TypedDict):
    """The record's place in its scope's chain. Outside the signature."""

    decision_chain_version: str
    """Version of the link's layout."""
    chain_id: str
    """The scope's chain."""
    chain_position: int
    """The record's place in it, counted from 1."""
    entry_type: EntryType
    """What was appended."""
    leaf_hash: str
    """Hash of decision_id, record_hash and receipt_hash."""
    link_hash: str
    """Hash of the link."""
    merkle_root: str
    """The rolling root after the link."""


class DecisionRecordDecisionContract(TypedDict):
    """Stands in every advisory record, in every view, and in no other record: it authorizes nothing."""

    authority: str
    """What the record is: advice."""
    production_verdict: bool
    """It is no verdict for production."""
    production_binding_required: bool
    """A production action needs a decision in mode rulebook."""


class DecisionRecord(TypedDict):
    """A Decision Record in full. Only this view verifies. Callers may be answered with less: members that only some
    views have are not required.
    """

    decision_record_version: str
    """Version of the record's layout."""
    decision_protocol_version: NotRequired[str]
    """Version of the protocol."""
    decision_id: str
    """Stable ledger key."""
    request_id: str
    """Short handle for logs."""
    idempotency_key: NotRequired[str]
    """The caller's key, where one was supplied."""
    c: Literal["yes", "no", "unclear"]
    """Compact verdict."""
    v: str
    """Compact verdict detail: the application verdict, or the word of an advisory answer: approved, denied or
    unclear.
    """
    verdict: Verdict
    """Only yes lets the action proceed, and only in a record without a decision_contract."""
    application_verdict: str
    """The rulebook's own verdict; ADVISORY where no rulebook decided."""
    reason_code: str
    """Reason code of the matched rule, of the default outcome, or of a fail-closed path."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome and for missing or mistyped input."""
    action: str
    """Action label of the outcome."""
    action_binding: NotRequired[ActionBinding]
    evidence: NotRequired[list[str]]
    """Evidence codes."""
    evidence_manifest: NotRequired[EvidenceManifest]
    evaluation: NotRequired[Evaluation | DecisionRecordAdvisoryEvaluation | None]
    policy_id: NotRequired[str]
    """The rulebook's id."""
    policy_version: NotRequired[str]
    """The rulebook's version."""
    policy_hash: str
    """H(rulebook), or H(prompt template) of an advisory record."""
    source_hash: NotRequired[str]
    """H(rulebook)."""
    policy_bundle: NotRequired[RecordedPolicyBundle]
    policy_bundle_hash: str
    """H(policy_bundle)."""
    rulebook: NotRequired[RulebookIdentity]
    rulebook_contract: NotRequired[RulebookContract]
    evaluator_version: str
    """Version of the evaluator."""
    runtime_binding: NotRequired[RuntimeBinding]
    rulebook_registry: NotRequired[RulebookRegistration]
    registry_attestation: NotRequired[RegistryAttestation]
    """Copy of rulebook_registry.registry_attestation."""
    rulebook_attestation: NotRequired[RulebookAttestation]
    trusted_adapter: NotRequired[dict[str, Json]]
    """The adapter invocation, in adapter mode."""
    adapter_facts: NotRequired[dict[str, Json] | None]
    """The facts that the adapter emitted, in adapter mode."""
    input_hash: NotRequired[str]
    """H(request body without response_view)."""
    output_hash: NotRequired[str]
    """H of the outcome with its evidence."""
    record_hash: str
    """H(envelope)."""
    receipt_hash: str
    """H over record_hash and the input, output, policy, binding and evidence hashes."""
    receipt_key_id: NotRequired[str]
    """The key that signed, where receipt signing is configured."""
    receipt_signature: NotRequired[str]
    """Its signature."""
    receipt_signature_algorithm: NotRequired[Literal["ed25519", "hmac-sha256"]]
    """What signed the receipt hash."""
    receipt_public_key_fingerprint: NotRequired[str | None]
    """SHA-256 of the public key's PEM text; null for HMAC."""
    replay_url: str
    """Relative path."""
    verify_url: str
    """Relative path."""
    decision_url: str
    """Relative path."""
    integrity: NotRequired[Integrity]
    decision_confidence: NotRequired[DecisionConfidence]
    confidence_hash: NotRequired[str]
    """Copy of decision_confidence.confidence_hash."""
    erased: NotRequired[Erased]
    audit_chain: ChainPlace
    created_at: NotRequired[str]
    """When the decision was made, UTC with milliseconds."""
    decision_contract: NotRequired[DecisionRecordDecisionContract]


class SandboxAnswer(TypedDict):
    """The answer of POST /api/sandbox/decide: members of a Decision Record without anything that binds. It is not
    signed, not stored and never verifies. The views standard and full add members as those of a record do.
    """

    decision_record_version: str
    """Never that of a record."""
    sandbox: bool
    """Always true."""
    notice: str
    """Says to people what this is not."""
    decision_protocol_version: NotRequired[str]
    """Version of the protocol."""
    decision_id: str
    """An id of the sandbox's own. Nothing is stored under it."""
    request_id: str
    """Short handle for logs."""
    c: Literal["yes", "no", "unclear"]
    """Compact verdict."""
    v: str
    """Compact verdict detail: the application verdict."""
    verdict: Verdict
    """What the rulebook says. It authorizes nothing here."""
    application_verdict: str
    """The rulebook's own verdict."""
    reason_code: str
    """Reason code of the matched rule, of the default outcome, or of a fail-closed path."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome and for missing or mistyped input."""
    action: str
    """Action label of the outcome."""
    action_binding: NotRequired[ActionBinding]
    """What a decision would be bound to."""
    evidence: NotRequired[list[str]]
    """Evidence codes."""
    evidence_manifest: NotRequired[EvidenceManifest]
    """The evidence with the hashes of what it came from."""
    evaluation: NotRequired[Evaluation]
    """How the rulebook came to its outcome."""
    policy_id: NotRequired[str]
    """The rulebook's id."""
    policy_version: NotRequired[str]
    """The rulebook's version."""
    policy_hash: str
    """H(rulebook), as of a decision."""
    source_hash: NotRequired[str]
    """H(rulebook)."""
    policy_bundle: NotRequired[RecordedPolicyBundle]
    """The policy's identity."""
    policy_bundle_hash: str
    """H(policy_bundle), as of a decision."""
    rulebook: RulebookIdentity
    """The rulebook that was evaluated."""
    rulebook_contract: NotRequired[RulebookContract]
    """The contract under which the rulebook was validated and evaluated."""
    evaluator_version: str
    """Version of the evaluator."""
    runtime_binding: NotRequired[RuntimeBinding]
    """Who would decide, and on whose facts."""
    rulebook_attestation: NotRequired[RulebookAttestation]
    """The attestation of this evaluation, always unsigned; its bundle_hash is that of a decision."""
    input_hash: NotRequired[str]
    """H(request body without response_view), as of a decision."""
    output_hash: NotRequired[str]
    """H of the outcome with its evidence, as of a decision."""
    record_hash: str
    """H(envelope) under the version decision_sandbox_v1. No record has it."""
    receipt_hash: str
    """H over record_hash and the other hashes, under the version decision_sandbox_v1. No receipt has it."""
    integrity: NotRequired[Integrity]
    """How a record is protected; its signature is always null here."""
    created_at: NotRequired[str]
    """When it was evaluated, UTC with milliseconds."""


# What is answered: Records.


class FoundDecisionDecisionContract(TypedDict):
    """Stands on every advisory decision, and on no other: it authorizes nothing, whatever its verdict."""

    authority: str
    """What the record is: advice."""
    production_verdict: bool
    """It is no verdict for production."""
    production_binding_required: bool
    """A production action needs a decision in mode rulebook."""


class FoundDecision(TypedDict):
    """Of a Decision Record, what tells it from others. `decision_url` has the rest."""

    decision_id: str
    """Stable ledger key."""
    request_id: str
    """Short handle for logs."""
    created_at: str
    """When it was decided; UTC, ISO 8601 with milliseconds."""
    verdict: Verdict
    """What binds the caller, unless the decision is advisory."""
    application_verdict: str
    """The outcome's own word for it."""
    reason_code: str
    """Why, as a stable word."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome."""
    action: str
    """What the outcome asks for."""
    action_binding: ActionBinding
    """What the decision is bound to: system, resource and proposed_action, and what else the context said."""
    policy_id: str
    """The rulebook's id; `advisory.<mode>` of an advisory decision."""
    policy_version: str
    """The rulebook's version, or that of an advisory decision's prompt template."""
    decision_contract: NotRequired[FoundDecisionDecisionContract]
    """Stands on every advisory decision, and on no other: it authorizes nothing, whatever its verdict."""
    state: NotRequired[Literal["held", "granted", "refused", "expired", "executed"]]
    """Of a decision that is held for an owner: where its review stands. Absent on every other decision."""
    owner: NotRequired[str | None]
    """Of a review: its owner by the scope's settings; null where none was named."""
    due_at: NotRequired[str | None]
    """Of a review: when it expires, UTC; null without a time limit."""
    age_seconds: NotRequired[int]
    """Of a review: how long it has waited for its resolution, or waited until it was resolved, in seconds."""
    grant_ends_at: NotRequired[str | None]
    """Of a review: when its grant ends, UTC; the caller has to act before. Null without a grant."""
    record_hash: str
    """Hash of the record."""
    chain_position: int
    """Its place in the scope's chain."""
    decision_url: str
    """Relative path of the record."""


class DecisionSearch(TypedDict):
    """A page of the caller's decisions, newest first unless the query says otherwise."""

    count: int
    """How many are in this page."""
    decisions: list[FoundDecision]
    """Those that were found; a page may hold fewer than `limit`, or none, and more may follow."""
    next_cursor: str | None
    """The `cursor` of the next page; null where everything was looked through."""


# What is answered: Verify.


class VerificationResult(TypedDict):
    """What verification found. ok equals verified."""

    ok: bool
    """Equals verified, so that nobody who reads only the one is misled."""
    verified: bool
    """Integrity and authenticity both hold."""
    integrity_valid: bool
    """Nothing was changed since the record was hashed."""
    authenticity_valid: bool
    """A trusted key signed it."""
    key_source: KeySource
    """Where the key came from."""
    checks: dict[str, bool | None]
    """true it holds, false it does not, null not checked for want of material."""
    expected: dict[str, Json]
    """For each failed comparison, what it should be."""
    actual: dict[str, Json]
    """For each failed comparison, what the record says."""
    unknown_members: NotRequired[list[str]]
    """Where members stand that this release does not know, so that nothing vouches for them; at most 50. Absent
    where there are none.
    """
    error: NotRequired[str]
    """A code where the record is not verified."""
    notice: NotRequired[Literal["MATERIAL_ERASED"]]
    """What there is to say of a record that is verified: what was erased of it could not be checked."""
    message: NotRequired[str]
    """The error or the notice as a sentence."""


class VerificationEndpoint(TypedDict):
    """What the verify endpoint takes and answers."""

    ok: bool
    """The endpoint is there."""
    endpoint: str
    """Its path."""
    methods: list[str]
    """The methods that it takes."""
    decision_protocol_version: str
    """Version of the protocol."""
    decision_record_version: str
    """Version of the records that it verifies."""
    decision_packet_version: NotRequired[str]
    """Version of the packets that it verifies; only at the endpoint of packets."""
    canonicalization: str
    """How JSON becomes bytes."""
    hash_algorithm: str
    """The hash of this protocol."""
    signature_algorithms: list[str]
    """The signatures that it verifies."""
    accepts: dict[str, str]
    """What each member of a body is, in a sentence."""
    receipt_keys_url: str
    """Where the keys of receipts are published."""
    attestation_keys_url: str
    """Where the keys of attestations are published."""


class VerificationStep(TypedDict):
    """What one step found."""

    holds: bool | None
    """true it holds, false it does not, null it could not be made."""
    failed: list[str]
    """The names of the checks that failed in it."""


class PacketVerificationSteps(TypedDict):
    """The steps of the verification, in order."""

    packet_hash: VerificationStep
    """The packet's members and its own hash."""
    decision_record: VerificationStep
    """The embedded record: hashes, bundle hash, signature, and what the packet repeats of it."""
    execution_and_outcome_hashes: VerificationStep
    """The reports: own hashes, record ids, action binding and receipt references."""
    intelligence_and_chain: VerificationStep
    """Report hashes, retained links, the reports' places among them, and checkpoints."""


class PacketVerificationResult(TypedDict):
    """What the verification of a packet found. ok equals verified."""

    ok: bool
    """Equals verified, so that nobody who reads only the one is misled."""
    verified: bool
    """Integrity and authenticity both hold."""
    integrity_valid: bool
    """No hash, repeated member or place in the chain tells of a change."""
    authenticity_valid: bool
    """A trusted key signed the record, and no signature fails."""
    key_source: KeySource
    """Where the key of the record came from."""
    checks: dict[str, bool | None]
    """true it holds, false it does not, null not checked for want of material. Names say where; what holds of many
    items is one entry, and of failures the first 50 are named.
    """
    expected: dict[str, Json]
    """For each failed comparison, what it should be; {sha256, bytes} of what is long."""
    actual: dict[str, Json]
    """For each failed comparison, what the packet says; likewise."""
    steps: PacketVerificationSteps
    """The steps of the verification, in order."""
    unknown_members: NotRequired[list[str]]
    """Where members stand that this release does not know, so that nothing vouches for them; at most 50. Absent
    where there are none.
    """
    error: NotRequired[str]
    """A code where the packet is not verified."""
    notice: NotRequired[Literal["MATERIAL_ERASED", "REPORTS_UNSIGNED"]]
    """What there is to say of a packet that is verified: what was erased of it could not be checked; or no signed
    checkpoint covers some of its reports, which the message names.
    """
    message: NotRequired[str]
    """The error or the notice as a sentence."""


class ExecutionReceipt(TypedDict):
    """What became of an action that was decided on: hashed, and linked to the record and its action binding. Members
    that were not sent are absent, state hashes apart.
    """

    decision_protocol_version: str
    """Version of the protocol."""
    decision_execution_version: str
    """Version of the report's layout."""
    execution_receipt_id: str
    """The report's own id."""
    decision_id: str
    """The decision that it is about."""
    idempotency_key: NotRequired[str]
    """The caller's retry handle; absent where none was sent."""
    execution_status: ExecutionStatus
    """What became of the action."""
    execution_result: NotRequired[str]
    """The result in the caller's words."""
    action_taken: NotRequired[str]
    """The action that was actually performed, by its label."""
    target_system: NotRequired[str]
    """The system that was changed."""
    target_object_id: NotRequired[str]
    """The object that was changed."""
    mutation: NotRequired[str]
    """The change itself, in the caller's terms."""
    external_ref: NotRequired[str]
    """The caller's reference to the transaction."""
    execution_id: NotRequired[str]
    """The caller's own id of the execution."""
    executor: NotRequired[Executor]
    """Who performed it."""
    decision_record_hash: str
    """record_hash of the decision's record."""
    decision_receipt_hash: str
    """receipt_hash of the decision's record."""
    decision_verdict: Verdict
    """The decision's verdict."""
    decision_action: str
    """The decision's action."""
    policy_id: str
    """The policy that decided."""
    policy_version: str
    """Its version."""
    policy_bundle_hash: str
    """policy_bundle_hash of the decision's record."""
    action_binding: ActionBinding
    """The record's binding, with the fields that the report named in the place of its own: those of its
    action_binding, and its target_system, target_object_id and mutation as system, resource and mutation. Of a field
    that was named twice, the value that differs from the record's.
    """
    action_binding_hash: str
    """Hash of action_binding, as a whole."""
    action_binding_match: bool
    """Whether the report names what was decided: it named some of the binding, and action_binding is the record's.
    False where it named nothing of it. action_taken has no part in it.
    """
    state_before_hash: str | None
    """The hash of the target's state before the action, as it was sent; null where none was."""
    state_after_hash: str | None
    """The hash of the target's state after the action, as it was sent; null where none was."""
    state_before_ref: NotRequired[str]
    """Where the state before is kept."""
    state_after_ref: NotRequired[str]
    """Where the state after is kept."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence that is kept elsewhere."""
    execution_input_hash: str
    """Hash of the canonical request body. It binds also what is empty."""
    reported_at: str
    """When the service took the report, UTC."""
    executed_at: NotRequired[str]
    """When the action was performed, UTC; absent where it was not sent."""
    decision_found: bool
    """Whether the service holds the decision; always so here."""
    flags: list[ExecutionFlag]
    """What speaks against the receipt; it follows from hashed members and is not hashed itself:
    DECISION_NOT_APPROVED where the decision is advisory, or decision_verdict is not yes and no grant of its owner
    stands before the receipt in the chain, whatever was done about it; ACTION_BINDING_MISMATCH where an
    action_binding or a field of the target was sent and action_binding_match is false; ACTION_TAKEN_MISMATCH where
    action_taken was sent and is not decision_action, which receipts of releases before this flag do not have.
    """
    execution_hash: str
    """Hash of the members that docs/wire-format.md lists, without those that are empty."""
    audit_chain: ChainPlace
    """The report's link in the scope's chain."""


class OutcomeRecord(TypedDict):
    """What an action led to: hashed, and linked to the record. The latest one of a decision, by chain position, is
    the one that counts.
    """

    decision_protocol_version: str
    """Version of the protocol."""
    decision_outcome_version: str
    """Version of the report's layout."""
    outcome_id: str
    """The report's own id."""
    decision_id: str
    """The decision that it is about."""
    idempotency_key: NotRequired[str]
    """The caller's retry handle; absent where none was sent."""
    outcome_status: OutcomeStatus
    """What the action led to. pending and review are for results that are still ambiguous; the others are final
    until another outcome is reported.
    """
    action_executed: NotRequired[bool]
    """Whether the action was executed at all."""
    action_taken: NotRequired[str]
    """The action that was actually performed, by its label."""
    target_system: NotRequired[str]
    """The system that was changed."""
    target_object_id: NotRequired[str]
    """The object that was changed."""
    mutation: NotRequired[str]
    """The change itself, in the caller's terms."""
    external_ref: NotRequired[str]
    """The caller's reference to the transaction."""
    decision_record_hash: str
    """record_hash of the decision's record."""
    decision_receipt_hash: str
    """receipt_hash of the decision's record."""
    decision_verdict: Verdict
    """The decision's verdict."""
    decision_action: str
    """The decision's action."""
    policy_id: str
    """The policy that decided."""
    policy_version: str
    """Its version."""
    policy_bundle_hash: str
    """policy_bundle_hash of the decision's record."""
    action_binding: ActionBinding
    """The record's action binding."""
    observed_metrics: NotRequired[dict[str, float]]
    """What was measured: each metric's name and its number."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence that is kept elsewhere."""
    outcome_input_hash: str
    """Hash of the canonical request body. It binds also what is empty."""
    reported_at: str
    """When the service took the report, UTC."""
    executed_at: NotRequired[str]
    """When the action was performed, UTC; absent where it was not sent."""
    occurred_at: NotRequired[str]
    """When the outcome came about, UTC; absent where it was not sent, or where the request of the decision was
    erased. outcome_input_hash binds it, and outcome_hash does not.
    """
    decision_found: bool
    """Whether the service holds the decision; always so here."""
    outcome_hash: str
    """Hash of the members that docs/wire-format.md lists, without those that are empty."""
    audit_chain: ChainPlace
    """The report's link in the scope's chain."""


class Standing(TypedDict):
    """Decisions by the status of their latest outcome."""

    succeeded: int
    """The result is the one that was meant. Terminal."""
    partial: int
    """It is so in part. Terminal."""
    failed: int
    """It is not. Terminal."""
    reverted: int
    """It was undone. Terminal."""
    pending: int
    """Not known yet."""
    review: int
    """Somebody is looking."""
    unreported: int
    """No outcome was reported."""


class Rate(TypedDict):
    """The share of succeeded among the terminal outcomes, with its 95% Wilson interval; six decimals."""

    rate: float | None
    """The share; null without terminal outcomes."""
    low: float
    """The lower end; 0 without terminal outcomes."""
    high: float
    """The upper end; 1 without terminal outcomes."""


class SuccessBounds(TypedDict):
    """Between what the share of all decided actions lies that would have succeeded had every one been let through,
    the blocked and held ones among them.
    """

    decisions: int
    """The decided actions."""
    observed: int
    """Those that were let through and have a terminal outcome."""
    succeeded: int
    """Those of them that succeeded."""
    unknown: int
    """Those that were let through and have no terminal outcome."""
    unobservable: int
    """Those that were not let through: what would have come of them is not known."""
    low: float
    """The share if of the unknown and unobservable none would have succeeded; 0 without decisions."""
    high: float
    """The share if all of them would have; 1 without decisions."""


class EffectivenessReportComparison(TypedDict):
    """On what footing versions are compared with each other: let-through actions with a terminal outcome, among
    cases with like facts.
    """

    of: str
    """Which actions are compared."""
    facts: list[str]
    """The facts by which cases are alike: at most six of those that the policy's rulebooks test, or that an imported
    history has, those that tell successes from failures best; none where versions are compared as they are.
    """
    decisions: int
    """How many decisions were looked at."""
    unknown: int
    """How many were left out because their facts are not known."""
    strata: int
    """How many kinds of like cases there are."""
    sampled_one_of: int
    """Of so many decisions one was looked at: 1 up to 100,000 of them."""
    design_effect: float
    """How many times as much rates vary as those of decisions that come one by one: 1 where none arrive together."""
    disagreements: int
    """Of how many versions the raw rates say another thing than those among like cases."""
    sentences: list[str]
    """Where raw rates mislead, and which versions with enough cases are not judged."""


class VersionEffectivenessLetThrough(TypedDict):
    """Those of its decisions whose action was let through."""

    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, and half of partial, among the terminal outcomes; null without any."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null without any."""
    terminal_coverage: float | None
    """The share of the decisions that have a terminal outcome; null without decisions."""


class EffectivenessReportBesideDifference(TypedDict):
    """The first less the second, with its 95% interval."""

    value: float
    """The difference."""
    low: float
    """The lower end."""
    high: float
    """The upper end."""


class EffectivenessReportBeside(TypedDict):
    """The rates of a version and of all others together."""

    success_rate: float
    """The share of the version's cases that succeeded."""
    others: float
    """The share of the others'."""
    difference: EffectivenessReportBesideDifference
    """The first less the second, with its 95% interval."""
    p_value: float
    """How likely rates at least as different are where both do equally well; six digits."""
    cases: int
    """How many cases of the version are compared."""
    other_cases: int
    """How many of the others."""


class VersionEffectivenessCompared(TypedDict):
    """Beside all other versions together; null where it or they have no let-through action whose outcome is terminal
    and whose facts are known.
    """

    raw: EffectivenessReportBeside
    """As they are."""
    standardized: EffectivenessReportBeside | None
    """Among like cases; null where no other version met a like one."""
    admitted: EffectivenessReportBeside | None
    """Its cases of kinds that it mostly lets through and the others mostly stop, beside all that the others let
    through; null where there are none.
    """
    share: float
    """The share of its cases that have a like one among the others'."""
    raw_below_others: bool
    """Whether it would be below_others by raw."""
    like_below_others: bool
    """Whether its let-through actions succeeded less often among like cases: it and the others have enough of these,
    the difference is below 0, its p_value at most 0.01 divided by the tests made, and half of its cases have a like
    one.
    """
    admits_worse: bool
    """Whether the admitted succeeded less often than what the others let through, by at least a tenth, with a
    p_value at most 0.01 divided by the tests made.
    """
    disagrees: bool
    """Whether raw says another thing of it than below_others."""


class VersionEffectiveness(TypedDict):
    """One version."""

    policy_version: str
    """Its label."""
    first: str
    """When the first of its decisions was made, UTC."""
    last: str
    """When the last was."""
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, and half of partial, among the terminal outcomes; null without any."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null without any."""
    terminal_coverage: float | None
    """The share of the decisions that have a terminal outcome; null without decisions."""
    below_others: bool
    """Whether it does worse than all other versions together: like_below_others or admits_worse of compared."""
    let_through: VersionEffectivenessLetThrough
    """Those of its decisions whose action was let through."""
    compared: VersionEffectivenessCompared | None
    """Beside all other versions together; null where it or they have no let-through action whose outcome is terminal
    and whose facts are known.
    """


class EffectivenessReportVersionsByVerdict(TypedDict):
    """One verdict of one version."""

    policy_version: str
    """Its label."""
    verdict: Verdict
    """Which."""
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, and half of partial, among the terminal outcomes; null without any."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null without any."""
    terminal_coverage: float | None
    """The share of the decisions that have a terminal outcome; null without decisions."""


class VerdictEffectiveness(TypedDict):
    """One verdict."""

    verdict: Verdict
    """Which."""
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, and half of partial, among the terminal outcomes; null without any."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null without any."""
    terminal_coverage: float | None
    """The share of the decisions that have a terminal outcome; null without decisions."""


class EffectivenessReportDispositions(TypedDict):
    """One of them."""

    disposition: Literal["let_through", "granted", "blocked", "held", "refused", "expired", "not_executed"]
    """let_through where the latest outcome says action_executed true, or says nothing of it and either the verdict
    is yes, or the owner granted the action and a receipt says executed or the outcome is terminal; of the others
    blocked where the verdict is no, not_executed where it is yes or the owner granted the action and the outcome
    says action_executed false, and else, where the verdict is review, granted, refused or expired as the review was
    resolved, and held until then.
    """
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, and half of partial, among the terminal outcomes; null without any."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null without any."""
    terminal_coverage: float | None
    """The share of the decisions that have a terminal outcome; null without decisions."""


class EffectivenessReportReviewsWaitingSeconds(TypedDict):
    """From the decision to its resolution, of those that were resolved, in whole seconds by the recorded dates; null
    where none was.
    """

    median: int
    """The lower median."""
    p90: int
    """The least time that nine of ten did not exceed."""


class EffectivenessReportReviews(TypedDict):
    """How those with the verdict review were resolved; absent where there are none, and for imported histories."""

    decisions: int
    """All of them."""
    held: int
    """Those that nobody resolved yet."""
    granted: int
    """Those that their owner granted, executed or not."""
    refused: int
    """Those that their owner refused."""
    expired: int
    """Those whose time limit was over before anybody answered."""
    waiting_seconds: EffectivenessReportReviewsWaitingSeconds | None
    """From the decision to its resolution, of those that were resolved, in whole seconds by the recorded dates; null
    where none was.
    """


class RuleEffectiveness(TypedDict):
    """One rule."""

    rule: str
    """The second evidence code of its records: rule:<rule_id>, rule:default where no rule matched, schema:failed
    where facts were missing or of another type.
    """
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, and half of partial, among the terminal outcomes; null without any."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null without any."""
    terminal_coverage: float | None
    """The share of the decisions that have a terminal outcome; null without decisions."""


class WeekEffectiveness(TypedDict):
    """One week."""

    week: str
    """Its Monday, UTC."""
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, and half of partial, among the terminal outcomes; null without any."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null without any."""
    terminal_coverage: float | None
    """The share of the decisions that have a terminal outcome; null without decisions."""


class ObservedMetric(TypedDict):
    """One metric."""

    name: str
    """Its name."""
    decisions: int
    """How many decisions have it."""
    min: float
    """The least value."""
    median: float
    """The lower median: a value that was observed."""
    max: float
    """The greatest value."""


class EffectivenessReportMetricsByVersion(TypedDict):
    """One metric of one version."""

    name: str
    """Its name."""
    policy_version: str
    """Its label."""
    decisions: int
    """How many decisions have it."""
    median: float
    """The lower median: a value that was observed."""
    low: float | None
    """The lower end of the median's 95% interval: a value that was observed; null of fewer than six."""
    high: float | None
    """The upper end; null of fewer than six."""


class EffectivenessReportMetricsByWeek(TypedDict):
    """One metric of one week."""

    name: str
    """Its name."""
    week: str
    """Its Monday, UTC."""
    decisions: int
    """How many decisions have it."""
    median: float
    """The lower median: a value that was observed."""
    low: float | None
    """The lower end of the median's 95% interval: a value that was observed; null of fewer than six."""
    high: float | None
    """The upper end; null of fewer than six."""


EffectivenessCoverage = TypedDict(
    "EffectivenessCoverage",
    {
        # How many decisions.
        "decisions": int,
        # How many policy versions.
        "versions": int,
        # How many rules.
        "rules": int,
        # How many weeks.
        "weeks": int,
        # How many metrics.
        "metrics": int,
        # When the first of these decisions was made, UTC; null without any.
        "from": str | None,
        # When the last was; null without any.
        "to": str | None,
        # The last position of the scope's chain that was read; 0 where the chain is empty.
        "chain_position": int,
        # The rolling root of the chain there; null where the chain is empty.
        "merkle_root": str | None,
        # Whether limit left earlier decisions out.
        "truncated": bool,
    },
)
"""What the report looks at."""


class EffectivenessReport(TypedDict):
    """How well a policy does, from what came of its decisions. It holds no date but those of what it covers: the
    same entries of the chain give the same report, byte for byte. Shares have six decimals.
    """

    policy_effectiveness_version: str
    """Version of the formulas."""
    policy_id: str
    """The policy that was asked for."""
    policy_version: str | None
    """The one version that was asked for; null for all."""
    verdict: Verdict | None
    """The one verdict that was asked for; null for all."""
    since: str | None
    """Only decisions from this moment on were asked for, UTC; null for all."""
    until: str | None
    """Only decisions before this moment were, UTC; null for all."""
    clock: Literal["recorded", "occurred"]
    """By which dates: recorded, when the gate recorded a decision; occurred, when it happened as callers said."""
    effectiveness_score: float | None
    """The share of succeeded, and half of partial, among the terminal outcomes; null without any."""
    confidence: float
    """How much stands behind the score: 1 less the width of success_rate's interval, times the share of the
    decisions with verdict yes that have a terminal outcome (of all decisions where none has that verdict); 0 without
    any.
    """
    recommendation: Literal[
        "no_decisions",
        "collect_outcomes",
        "review_version",
        "report_outcomes",
        "healthy",
        "monitor_outcomes",
        "review_policy",
    ]
    """What to make of it; it authorizes nothing."""
    outcomes: Standing
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null without any."""
    review_rate: float | None
    """The share of those whose latest outcome is review among those with any outcome; null where there are none."""
    terminal_coverage: float | None
    """The share of the decisions that have a terminal outcome; null without decisions."""
    bounds: SuccessBounds
    """Between what the share of all decided actions lies that would have succeeded had every one been let through,
    the blocked and held ones among them.
    """
    versions_below_others: int
    """How many versions are below_others."""
    comparison: EffectivenessReportComparison
    """On what footing versions are compared with each other: let-through actions with a terminal outcome, among
    cases with like facts.
    """
    versions: list[VersionEffectiveness]
    """The versions, at most 50: those that are below_others first, then those with the most decisions."""
    versions_by_verdict: list[EffectivenessReportVersionsByVerdict]
    """The listed versions, in their order, each by the verdicts that occur: yes, no, review."""
    verdicts: list[VerdictEffectiveness]
    """The verdicts that occur: yes, no, review."""
    dispositions: list[EffectivenessReportDispositions]
    """What became of the actions, as far as it occurs."""
    reviews: NotRequired[EffectivenessReportReviews]
    """How those with the verdict review were resolved; absent where there are none, and for imported histories."""
    rules: list[RuleEffectiveness]
    """What decided, at most 200, with the most decisions first."""
    weeks: list[WeekEffectiveness]
    """The weeks in which decisions were made, the latest 520 at most, ascending."""
    metrics: list[ObservedMetric]
    """observed_metrics of the latest outcomes, at most 64, those of the most decisions first. Values are as they
    were reported.
    """
    metrics_by_version: list[EffectivenessReportMetricsByVersion]
    """The middle of the 16 metrics of the most decisions by listed version, those of the most decisions first within
    a metric.
    """
    metrics_by_week: list[EffectivenessReportMetricsByWeek]
    """The same by the week in which decisions were made, the latest 104, ascending within a metric."""
    min_sample: int
    """How many terminal outcomes of let-through actions a judgement needs, and a version, and its others, to be
    judged.
    """
    limit: int | None
    """How many decisions were looked at, the latest in the chain; null for all."""
    coverage: EffectivenessCoverage
    """What the report looks at."""
    notes: list[str]
    """What the report cannot know, in sentences."""
    effectiveness_hash: str
    """H of this report without this member."""


class OutcomeCounts(TypedDict):
    """Decisions by the status of their latest outcome."""

    succeeded: int
    """The result is the one that was meant. Terminal."""
    partial: int
    """It is so in part; counts as no success. Terminal."""
    failed: int
    """It is not. Terminal."""
    reverted: int
    """It was undone. Terminal."""
    pending: int
    """Not known yet."""
    review: int
    """Somebody is looking."""


class VersionConfidence(TypedDict):
    """One version."""

    policy_version: str
    """Its label."""
    outcomes: OutcomeCounts
    """The latest outcomes of its decisions."""
    success_rate: Rate
    """Theirs."""


Coverage = TypedDict(
    "Coverage",
    {
        # How many decisions with an outcome.
        "decisions": int,
        # How many policy versions.
        "versions": int,
        # When the first outcome of these decisions was reported, UTC; null without any.
        "from": str | None,
        # When the last was; null without any.
        "to": str | None,
        # Whether limit left decisions with older outcomes out.
        "truncated": bool,
    },
)
"""What the report looks at."""


class ConfidenceReport(TypedDict):
    """How far the outcomes of a policy's decisions support it. It holds no date but those of what it covers: the
    same outcomes give the same report, byte for byte.
    """

    decision_confidence_version: str
    """Version of the formula."""
    policy_id: str
    """The policy that was asked for."""
    policy_version: str | None
    """The one version that was asked for; null for all."""
    verdict: Verdict | None
    """The one verdict that was asked for; null for all."""
    since: str | None
    """Only decisions from this moment on were asked for, UTC; null for all."""
    until: str | None
    """Only decisions before this moment were, UTC; null for all."""
    clock: Literal["recorded", "occurred"]
    """By which dates: recorded, when the gate recorded a decision; occurred, when it happened as callers said."""
    action: str | None
    """The one action that was asked for; null for all."""
    score: float
    """What success rate the terminal outcomes support: the lower end of its 95% Wilson interval, six decimals; 0
    without any.
    """
    level: ConfidenceLevel
    """The score in a word; insufficient below min_sample."""
    similar_decisions: int
    """How many of the decisions looked at have an outcome."""
    policy_stability: float | None
    """1 less how far the worst version lies below the policy, as far as their intervals tell them apart; null where
    no version has min_sample terminal outcomes.
    """
    recommendation: Literal[
        "high_confidence_proceed",
        "high_confidence_block",
        "high_confidence_review",
        "high_confidence",
        "monitor_outcomes",
        "review_policy",
        "collect_outcomes",
    ]
    """What to make of it; it authorizes nothing."""
    outcomes: OutcomeCounts
    """The latest outcomes of the decisions looked at."""
    success_rate: Rate
    """Of the decisions looked at."""
    policy_success_rate: Rate
    """Of all decisions of the policy with that verdict and action, under every version and whatever the limit."""
    versions: list[VersionConfidence]
    """The versions of the decisions looked at, at most 50, those with the most decisions first."""
    min_sample: int
    """How many terminal outcomes a level needs, and a version to be compared."""
    limit: int | None
    """How many decisions were looked at, those with the latest outcomes; null for all."""
    coverage: Coverage
    """What the report looks at."""
    notes: list[str]
    """What the report cannot know, in sentences."""
    confidence_hash: str
    """H of this report without this member."""


class AnomalySeverities(TypedDict):
    """How many of them are of each severity."""

    high: int
    """Those with a score of 0.8 or more."""
    medium: int
    """Those with a score from 0.6."""
    low: int
    """The others."""


AnomalyWindow = TypedDict(
    "AnomalyWindow",
    {
        # Where it begins.
        "from": str,
        # Where it ends; for breaks and metrics the last of them.
        "to": str,
    },
)
"""When it was, UTC."""


class AnomalyEffect(TypedDict):
    """What it costs, about: an estimate from counts, by which anomalies are sorted."""

    cases: int
    """How many decisions went otherwise than they would have before, or are concerned."""
    value: float | None
    """Of shifts and drift, what the metric that was asked for came to, less what it would have come to by its mean
    before; of all others, its mean in the weeks of the window, times cases; null where none was asked for or none is
    known.
    """
    until: str
    """To when both are counted, UTC: the end of the window, or of a shift or drift that lasts beyond it."""
    lasting: bool
    """Whether it goes on, or lasted two weeks or more; never of single values of a metric."""
    harm: bool | None
    """Whether it is for the worse; null where counts cannot tell."""


class CountedShare(TypedDict):
    """So many of so many."""

    count: int
    """Those with the value."""
    of: int
    """All of them."""
    rate: float
    """The share."""


class RateDifference(TypedDict):
    """The rate within less the rate before, with Newcombe's 95% interval."""

    rate: float
    """The difference."""
    low: float
    """The low end of its interval."""
    high: float
    """The high end."""


class AnomalyReportSides(TypedDict):
    """Of groups: in how many minutes the cases came. Of design effects: how many of the cases say as much as one
    that came alone.
    """

    before: float
    """Those before."""
    within: float
    """Those in the window."""


ShiftedRate = TypedDict(
    "ShiftedRate",
    {
        # Of what it is the rate.
        "of": Literal["verdict", "reason", "outcome"],
        # Which verdict, reason code or outcome status.
        "value": str,
        # Where its own window begins, UTC.
        "from": str,
        # Where that ends.
        "to": str,
        # Where the weeks begin that it is compared with.
        "reference_from": str,
        # Where they end: where the window begins, or 18 weeks before it for what creeps.
        "reference_to": str,
        # Of outcomes: within how many days of their decision those came that are compared; null for all.
        "age_days": NotRequired[int | None],
        # .
        "before": CountedShare,
        # .
        "within": CountedShare,
        # The rate within less the rate before, with Newcombe's 95% interval.
        "difference": RateDifference,
        # The effect size: 0.2 is small, 0.5 medium, 0.8 large.
        "cohens_h": float,
        # The end of its 95% interval that is nearer to none, without its sign; the score follows from it.
        "least_h": float,
        # .
        "groups": AnomalyReportSides,
        # .
        "design_effect": AnomalyReportSides,
        # Fisher's exact test, two-sided, of the counts divided by their design effects; 1e-40 stands for anything
        # smaller.
        "p_value": float,
        # The greatest p_value that is certain: alarm_chance by the number of all tests, or rollout_chance by that of
        # outcomes since a version took over; with a greater one the rate scores below high.
        "required_p": float,
    },
)
"""One rate."""


class AnomalyReportLevel(TypedDict):
    """Where the values of a metric lie."""

    values: int
    """How many there are, of those that were taken."""
    lower_quartile: float
    """A quarter of them are not greater."""
    median: float
    """The lower median."""
    upper_quartile: float
    """A quarter of them are greater, about."""
    above: int
    """How many are greater than the median of those before."""
    below: int
    """How many are less than it."""


class ShiftedMetricTail(TypedDict):
    """Of a tail: how many values lie in it."""

    cut: float
    """The greatest value that is not in a tail above, or is in one below."""
    before: CountedShare
    within: CountedShare
    cohens_h: float
    """The effect size, with its sign."""
    least_h: float
    """The end of its 95% interval that is nearer to none, without its sign; the score follows from it."""


ShiftedMetric = TypedDict(
    "ShiftedMetric",
    {
        # location, where they lie; spread, how far they lie from their median; tail_above or tail_below, how many
        # lie beyond most of them.
        "of": Literal["location", "spread", "tail_above", "tail_below"],
        # The version that is compared with the others in the same weeks; null where weeks are compared.
        "version": str | None,
        # Where its own window begins, UTC.
        "from": str,
        # Where that ends.
        "to": str,
        # Where the weeks begin that it is compared with.
        "reference_from": str,
        # Where they end.
        "reference_to": str,
        # Within how many days of their decision the outcomes came whose values are compared; null for all.
        "age_days": int | None,
        # .
        "before": AnomalyReportLevel,
        # .
        "within": AnomalyReportLevel,
        # Of spread: whether distances are differences or ratios.
        "scale": NotRequired[Literal["difference", "ratio"]],
        # Of location, the median within less the median before; of spread, the width of the middle half within less
        # that before: its upper quartile less the lower one, of ratios the logarithm of how many times as great it
        # is. Six digits.
        "difference": float,
        # The effect size, -1 to 1: how much more often a value within is the greater one than the lesser one; of
        # spread, of the distances. 0.147 is small, 0.33 medium, 0.474 large.
        "cliffs_delta": float,
        # The end of its 95% interval that is nearer to none, without its sign; the score follows from it.
        "least_delta": float,
        # .
        "groups": AnomalyReportSides,
        # .
        "design_effect": AnomalyReportSides,
        # Of a tail: how many values lie in it.
        "tail": NotRequired[ShiftedMetricTail],
        # Mann and Whitney's test, of versions van Elteren's, of tails Fisher's; 1e-40 stands for anything smaller.
        "p_value": float,
        # The greatest p_value that is certain; with a greater one it scores below high.
        "required_p": float,
    },
)
"""Where its values lie, or how far apart."""


class FarValue(TypedDict):
    """One value."""

    value: float
    """The value."""
    usual: float
    """The lower median of its kind."""
    modified_z: float
    """How far out it lies, in robust standard deviations."""


class FactBin(TypedDict):
    """One bin."""

    holds: str
    """What it holds."""
    before: int
    """Decisions in the weeks before."""
    within: int
    """Decisions in the window."""


DriftedFact = TypedDict(
    "DriftedFact",
    {
        # Its path.
        "fact": str,
        # Where its own window begins, UTC.
        "from": str,
        # Where that ends.
        "to": str,
        # Where the weeks begin that it is compared with.
        "reference_from": str,
        # Where they end.
        "reference_to": str,
        # The population stability index, less what chance alone adds.
        "stability_index": float,
        # The same, less what chance alone exceeds that by with a chance of 5 percent; the score follows from it.
        "least_index": float,
        # How many decisions say as much as one that came alone, the greater of both sides.
        "design_effect": float,
        # The greatest p_value that is certain; with a greater one the fact scores below high.
        "required_p": float,
        # Pearson's chi-squared test; 1e-40 stands for anything smaller.
        "p_value": float,
        # The decisions by the fact's value.
        "bins": list[FactBin],
    },
)
"""One fact."""


class AnomalyNumbers(TypedDict):
    """What the anomaly follows from; which members there are depends on its kind."""

    count: NotRequired[int]
    """Of a break: the decisions that have it."""
    of: NotRequired[int]
    """Of a break: the decisions that could."""
    share: NotRequired[float]
    """Of a break: count of them."""
    changes: NotRequired[list[ShiftedRate]]
    """Of a shift: the rates that changed, the greatest change first."""
    levels: NotRequired[list[ShiftedMetric]]
    """Of a metric that shifted: what of it did, the greatest shift first."""
    new_versions: NotRequired[list[str]]
    """Of a shift: the versions that took over at least half of the decisions with it."""
    grain: NotRequired[Literal["hour", "day", "week"]]
    """Of volume: how long a cell is."""
    cells: NotRequired[int]
    """Of volume: how many cells in a row."""
    decisions: NotRequired[int]
    """Of volume: the decisions in them."""
    usual: NotRequired[int]
    """Of volume: the decisions that such cells have, by medians."""
    arrivals: NotRequired[int]
    """Of volume: as how many decisions that came singly the decisions say as much."""
    usual_arrivals: NotRequired[int]
    """Of volume: the arrivals that such cells have, by medians."""
    like_cells: NotRequired[int]
    """Of volume: how many cells of the same kinds before them they are compared with."""
    like_arrivals: NotRequired[int]
    """Of volume: the arrivals of these, or as many as are usual where that is nearer to theirs."""
    usual_week: NotRequired[int]
    """Of volume: the decisions of a usual week."""
    times: NotRequired[float]
    """Of volume: how many times as many arrivals, or as few."""
    modified_z: NotRequired[float]
    """Of volume: how far out the farthest cell lies, in robust standard deviations."""
    p_value: NotRequired[float]
    """Of volume: how likely chance alone divides all these arrivals as unevenly between the cells, by the binomial
    test; 1e-40 stands for anything smaller.
    """
    required_p: NotRequired[float]
    """Of volume: the greatest p_value that is certain: alarm_chance by the number of all cells; with a greater one
    it scores below high.
    """
    required_z: NotRequired[float]
    """Of volume and metrics: how far one has to lie to stand out among so many."""
    metric: NotRequired[str]
    """Of a metric: its name."""
    values: NotRequired[int]
    """Of a metric: how many values there are."""
    median: NotRequired[float]
    """Of a metric: the lower median."""
    mad: NotRequired[float]
    """Of a metric: the median distance from the median of the kind; of ratios the logarithm."""
    scale: NotRequired[Literal["difference", "ratio"]]
    """Of a metric: whether distances are differences or ratios."""
    season: NotRequired[Literal["weekday and hour", "hour", "weekday"] | None]
    """Of a metric: by what kinds of values are told apart, by when they were reported; null where all are one."""
    seasonal_p: NotRequired[float]
    """Of a metric: the greatest p-value of Mood's median test at which kinds are told apart."""
    farthest: NotRequired[list[FarValue]]
    """Of a metric: the values farthest out, in the order of decision_ids."""
    facts: NotRequired[list[DriftedFact]]
    """Of drift: the facts that drifted, the farthest first."""


class AnomalyStep(TypedDict):
    """One step."""

    what: str
    """What to do, in a sentence."""
    href: str | None
    """A path of this service that shows it; null where it is not here."""


class Anomaly(TypedDict):
    """One anomaly: how strong it is, why it is one, when, which decisions show it, the numbers behind it, and where
    to look next.
    """

    anomaly_id: str
    """The same as long as it is the same kind of thing that begins at the same time."""
    kind: Literal[
        "lifecycle_break", "outcome_shift", "verdict_shift", "metric_shift", "volume", "metric_outlier", "fact_drift"
    ]
    """What is anomalous: the life of decisions, rates of outcomes, of verdicts and reasons, where the values of an
    observed metric lie, the number of decisions, single values of a metric, or facts.
    """
    subject: str | None
    """Which break, which metric, or hour, day or week of volume; null for the others."""
    severity: Literal["high", "medium", "low"]
    """high from a score of 0.8, medium from 0.6, else low."""
    anomaly_score: float
    """How strong it is."""
    reasons: list[str]
    """Why it is one, for machines: a break's name, outcome_fell:<status>, verdict_rose:<verdict>,
    reason_rose:<reason code>, policy_version_changed, version_differs:<version>, cases_differ:<fact> (that version
    met other cases), slow (the window is compared with weeks of half a year before), more_decisions_than_usual,
    fewer_decisions_than_usual, metric_rose:<metric>, metric_fell:<metric>, metric_spread_grew:<metric>,
    metric_spread_shrank:<metric>, metric_upper_tail_grew:<metric>, metric_upper_tail_shrank:<metric>,
    metric_lower_tail_grew:<metric>, metric_lower_tail_shrank:<metric>, metric_far_from_usual, fact_drifted:<path>.
    """
    summary: str
    """The same in a sentence."""
    window: AnomalyWindow
    """When it was, UTC."""
    decisions: int
    """How many decisions show it."""
    decision_ids: list[str]
    """Some of them, at most 10: the latest; of a metric those farthest out."""
    effect: AnomalyEffect
    """What it costs, about: an estimate from counts, by which anomalies are sorted."""
    numbers: AnomalyNumbers
    look_at_next: list[AnomalyStep]
    """What to look at next."""


class AnomalyParameters(TypedDict):
    """What else the formulas were computed with; the same in every report of this version."""

    window_weeks: list[int]
    """How many weeks windows have."""
    reference_weeks: int
    """With how many weeks before it a window is compared."""
    slow_weeks: int
    """For what creeps: how many weeks before a window of reference_weeks those begin with which it is compared as
    well.
    """
    least_groups: int
    """In how many minutes the decisions of a window, and of what it is compared with, must have come, where not all
    came alone.
    """
    false_discovery_rate: float
    """The rate of false discoveries among shifts of rates, among drifts, and among shifts of metrics, at most."""
    alarm_chance: float
    """The chance, at most, that among all tests of shifts of rates, of drift, or of metrics, some p_value is as
    small as its required_p where nothing changed: required_p is this, by the number of those tests.
    """
    rollout_chance: float
    """The same among the tests of outcomes in windows that begin with the week with which a version took over: their
    required_p is this, by the number of these tests.
    """
    receipt_due_hours: int
    """How long after a yes its execution receipt is due, in hours."""
    outcome_due_days: int
    """How long after an execution a terminal outcome is due, in days."""
    medium_score: float
    """The least score of medium severity."""
    high_score: float
    """The least score of high severity."""


AnomalyCoverage = TypedDict(
    "AnomalyCoverage",
    {
        # How many.
        "decisions": int,
        # When the first of them was made, UTC; null without any.
        "from": str | None,
        # When the last was.
        "to": str | None,
        # The date to which everything is counted: that of the chain's last entry, or of an imported history's last
        # case; of the last decision of the weeks where others lie more than 104 weeks after them; null for an empty
        # chain.
        "as_of": str | None,
        # How many weeks were looked at, at most the latest 104.
        "weeks": int,
        # From one of so many decisions it was learned what is usual for facts and metrics; 1 for all.
        "sampled_one_of": int,
        # The facts that were looked at, by their paths, at most 32.
        "facts": list[str],
        # How many observed metrics were looked at, at most 64.
        "metrics": int,
        # The last position of the scope's chain that was read; 0 for an empty chain.
        "chain_position": int,
        # The chain's rolling root there; null for an empty chain.
        "merkle_root": str | None,
        # Whether limit left earlier decisions out.
        "truncated": bool,
    },
)
"""Over which decisions the report was made, and up to where the chain was read."""


class AnomalyReport(TypedDict):
    """What is anomalous about a policy's decisions, by formulas that are written down, and by no model. It holds no
    date but those of the ledger: the same entries of the chain give the same report, byte for byte. Numbers have six
    decimals; p-values, mad and the difference of a level six digits.
    """

    policy_anomalies_version: str
    """Version of the formulas."""
    policy_id: str
    """The policy that was asked for."""
    policy_version: str | None
    """The one version that was asked for; null for all."""
    verdict: Verdict | None
    """The one verdict that was asked for; null for all."""
    since: str | None
    """Only decisions from this moment on were asked for, UTC; null for all."""
    until: str | None
    """Only decisions before this moment were, UTC; null for all."""
    clock: Literal["recorded", "occurred"]
    """By which dates: recorded, when the gate recorded a decision; occurred, when it happened as callers said."""
    recommendation: Literal["investigate", "review", "watch", "stable", "insufficient_data"]
    """What to make of it: investigate where an anomaly is high, review where one is medium, watch where all are low,
    stable where there is none; insufficient_data where there are fewer decisions than min_sample and nothing was
    found. It authorizes nothing.
    """
    anomaly_count: int
    """How many anomalies have a score of at least threshold."""
    severities: AnomalySeverities
    """How many of them are of each severity."""
    anomalies: list[Anomaly]
    """The anomalies, at most max_items: by severity, lasting harm first, then other harm, then what lasts; then by
    what they cost, then by score.
    """
    min_sample: int
    """How many cases a window needs, what it is compared with, and a metric."""
    threshold: float
    """The least score that is listed and counted."""
    max_items: int
    """How many are listed at most."""
    value: str | None
    """The observed metric in which effects are estimated; null for none."""
    limit: int | None
    """How many decisions were looked at, the latest in the chain; null for all."""
    parameters: AnomalyParameters
    """What else the formulas were computed with; the same in every report of this version."""
    coverage: AnomalyCoverage
    """Over which decisions the report was made, and up to where the chain was read."""
    notes: list[str]
    """What the report cannot know, in sentences."""
    anomaly_hash: str
    """H of the report without this member."""


class OwnMetricsPresent(TypedDict):
    """The same of all of your decisions of the policy, of whatever month, by their latest outcome: as of
    coverage.chain_position. Nothing is compared with it. Absent from reports of earlier releases.
    """

    decisions: int
    """How many decisions."""
    terminal: int
    """Those of them whose latest outcome is terminal."""
    success_rate: float | None
    """The share of succeeded among the terminal; null where there are none."""
    approval_rate: float | None
    """The share of decisions with verdict yes; null without decisions."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""


class OwnMetrics(TypedDict):
    """What came of your own decisions of the month, by their latest outcome reported before the freeze; and beside
    it, in present, of all of your decisions by now.
    """

    decisions: int
    """How many decisions."""
    terminal: int
    """Those of them whose latest outcome is terminal."""
    success_rate: float | None
    """The share of succeeded among the terminal; null where there are none."""
    approval_rate: float | None
    """The share of decisions with verdict yes; null without decisions."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""
    present: NotRequired[OwnMetricsPresent]
    """The same of all of your decisions of the policy, of whatever month, by their latest outcome: as of
    coverage.chain_position. Nothing is compared with it. Absent from reports of earlier releases.
    """


class Percentiles(TypedDict):
    """Percentiles of one rate; p10 and p90 where 20 other scopes count."""

    p10: NotRequired[float]
    """A rate as it is told: one of 0.05, 0.1, and so on to 0.95."""
    p25: float
    """A rate as it is told: one of 0.05, 0.1, and so on to 0.95."""
    p50: float
    """A rate as it is told: one of 0.05, 0.1, and so on to 0.95."""
    p75: float
    """A rate as it is told: one of 0.05, 0.1, and so on to 0.95."""
    p90: NotRequired[float]
    """A rate as it is told: one of 0.05, 0.1, and so on to 0.95."""


class CohortPercentiles(TypedDict):
    """Of the others' rates, by nearest rank: each is a rate that is told of one of them. Null where nothing is told."""

    success_rate: Percentiles
    approval_rate: Percentiles
    terminal_coverage: Percentiles


class CohortDeltas(TypedDict):
    """Your rates less p50, six decimals; null where nothing is told."""

    success_rate: float | None
    """Your rate less the others' p50; null where you have no rate."""
    approval_rate: float | None
    """Your rate less the others' p50; null where you have no rate."""
    terminal_coverage: float | None
    """Your rate less the others' p50; null where you have no rate."""


CrossCustomer = TypedDict(
    "CrossCustomer",
    {
        # Whether anything is told.
        "status": Literal["available", "withheld"],
        # Why nothing is told; null where something is.
        "reason": Literal["not_frozen", "not_opted_in", "too_few_scopes", "too_few_decisions"] | None,
        # The same in sentences, and what would change it; null where something is told.
        "explanation": str | None,
        # The month of the freeze, 2026-11: who took part when it began. Null where nothing is frozen yet.
        "month": str | None,
        # The first moment of the month in which the decisions were made, UTC; null for an empty chain where nothing
        # is frozen.
        "from": str | None,
        # The last moment of it; null likewise.
        "to": str | None,
        # How many other scopes count, rounded down to a step: 5, 10, 20, 50, and so on; null where nothing is told.
        "scopes_at_least": int | None,
        # How many decisions they made, each rounded down to a step, and so is the sum; null where nothing is told.
        "decisions_at_least": int | None,
        # Of the others' rates, by nearest rank: each is a rate that is told of one of them. Null where nothing is
        # told.
        "percentiles": CohortPercentiles | None,
        # Your rates less p50, six decimals; null where nothing is told.
        "deltas": CohortDeltas | None,
    },
)
"""What is told of the other scopes together, or why nothing is."""


BenchmarkCoverage = TypedDict(
    "BenchmarkCoverage",
    {
        # How many decisions.
        "decisions": int,
        # When the first of these decisions was made, UTC; null without any.
        "from": str | None,
        # When the last was; null without any.
        "to": str | None,
        # The last position of the scope's chain that was read; 0 where the chain is empty.
        "chain_position": int,
        # The rolling root of the chain there; null where the chain is empty.
        "merkle_root": str | None,
        # Whether limit left earlier decisions out.
        "truncated": bool,
    },
)
"""Which of your own decisions the report looks at."""


class BenchmarkReport(TypedDict):
    """How a policy does beside that of other scopes that opted in. Others' rates are rounded to 0.05, and nothing is
    told of fewer than 5 of them. It holds no date but those of what it covers: the same ledger gives the same
    report, byte for byte. Your own shares have six decimals.
    """

    policy_benchmarks_version: str
    """Version of the formulas."""
    policy_id: str
    """The policy that was asked for."""
    policy_version: str | None
    """The one version of which your own decisions were looked at; null for all."""
    verdict: Verdict | None
    """The one verdict of which your own decisions were looked at; null for all."""
    since: str | None
    """Only your own decisions from this moment on were looked at, UTC; null for all."""
    until: str | None
    """Only your own decisions before this moment were looked at, UTC; null for all."""
    clock: str
    """By which dates: when the gate recorded a decision."""
    your_metrics: OwnMetrics
    """What came of your own decisions of the month, by their latest outcome reported before the freeze; and beside
    it, in present, of all of your decisions by now.
    """
    cross_customer: CrossCustomer
    """What is told of the other scopes together, or why nothing is."""
    recommendation: Literal["not_compared", "insufficient_outcomes", "below_cohort", "within_cohort", "above_cohort"]
    """What to make of it, by your success rate rounded as the others' are; it authorizes nothing."""
    min_cohort_scopes: int
    """How many other scopes a comparison needs."""
    min_cohort_decisions: int
    """How many of their decisions it needs."""
    limit: int | None
    """How many of your own decisions were looked at, the latest in the chain; null for all."""
    coverage: BenchmarkCoverage
    """Which of your own decisions the report looks at."""
    notes: list[str]
    """What the report cannot know, in sentences."""
    benchmark_hash: str
    """H of this report without this member."""


class RulebookField(TypedDict):
    """An entry of `properties` in RulebookInputs."""

    type: Literal["number", "integer", "string", "boolean", "array", "object", "null"]
    """Its JSON type."""


class RulebookInputs(TypedDict):
    """The facts that the rules may test."""

    required: list[str]
    """Facts without which the verdict is review, with `INPUT_SCHEMA_FAILED`."""
    properties: dict[str, RulebookField]
    """The type of each fact, by its dotted path."""


RulebookCondition = TypedDict(
    "RulebookCondition",
    {
        # Holds where every condition in it does.
        "all": NotRequired["list[RulebookCondition]"],
        # Holds where one condition in it does.
        "any": NotRequired["list[RulebookCondition]"],
        # Holds where its condition does not.
        "not": NotRequired["RulebookCondition"],
        # In a test: the fact, by its dotted path.
        "field": NotRequired[str],
        # In a test: how the fact is compared.
        "operator": NotRequired[
            Literal[
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
            ]
        ],
        # In a test: what the fact is compared with; not with exists and not_exists.
        "value": NotRequired[Json],
    },
)
"""Exactly one of: a test {field, operator, value}, {all: [...]}, {any: [...]}, {not: condition}."""


class RulebookOutcome(TypedDict):
    """What a rule, or the default, decides."""

    decision: Verdict
    """The verdict of the record."""
    verdict: str
    """The rulebook's own verdict, for example APPROVE."""
    action: str
    """Action label."""
    reason_code: str
    """Stable reason code."""


class RulebookRule(TypedDict):
    """What must hold, and the outcome it then gives."""

    rule_id: str
    """Identifier, unique in the rulebook; `matched_rule_id` of the records it decides."""
    priority: NotRequired[int]
    """Higher goes first."""
    condition: RulebookCondition
    """What must hold."""
    outcome: RulebookOutcome
    """What it then gives."""


class Rulebook(TypedDict):
    """A versioned declarative rulebook. Beyond what a schema can say: rule ids are unique, all rules together hold
    at most 256 condition nodes, and a condition nests at most 8 deep.
    """

    schema_version: str
    """Version of the rulebook's layout."""
    rulebook_id: str
    """Identifier; `policy_id` of the records it decides."""
    version: str
    """Version label. With the id it is bound to one body for good."""
    input_schema: RulebookInputs
    """The facts that the rules may test."""
    rules: list[RulebookRule]
    """The rules. The highest priority that holds supplies the outcome; equal priorities go by `rule_id`."""
    default_outcome: RulebookOutcome
    """The outcome where no rule holds."""


class DecisionRequestTemplate(TypedDict):
    """A Decision Request that runs as it stands and is answered with yes."""

    mode: str
    """The verdict is binding."""
    question: str
    """What is decided, for readers."""
    rulebook: Rulebook
    """The whole Rulebook v1."""
    context: DecisionContext
    """What is decided about, and the facts."""
    adapter: NotRequired[AdapterInvocation]
    """What makes the facts of what it is given; without it, they stand in context.inputs."""


class OutcomeTemplate(TypedDict):
    """What to report once the action was taken. What stands in angle brackets is copied from the record's member of
    that name.
    """

    outcome_status: OutcomeStatus
    """How it ended."""
    action_taken: str
    """The action that was taken."""
    action_executed: bool
    """Whether it was carried out."""
    target_system: str
    """The system that was changed."""
    target_object_id: str
    """The object that was changed."""
    mutation: str
    """The change."""
    external_ref: str
    """The caller's own reference."""
    decision_record_hash: str
    """The record's record_hash."""
    decision_receipt_hash: str
    """The record's receipt_hash."""
    observed_metrics: dict[str, float]
    """What was measured, by name."""


class CrmSyncTemplate(TypedDict):
    """What to report once the decision was written into a CRM. What stands in angle brackets is copied from the
    record's member of that name.
    """

    sync_status: SyncStatus
    """How it ended."""
    sync_direction: SyncDirection
    """To the CRM, or from it."""
    crm_provider: str
    """The CRM."""
    crm_object_type: str
    """The kind of the CRM's object."""
    crm_object_id: str
    """The CRM's object."""
    crm_record_url: str
    """Where people find it."""
    decision_record_hash: str
    """The record's record_hash."""
    decision_receipt_hash: str
    """The record's receipt_hash."""
    decision_verdict: str
    """The record's verdict."""
    decision_action: str
    """The record's action."""
    policy_id: str
    """The record's policy_id."""
    policy_version: str
    """The record's policy_version."""


class PatternExamples(TypedDict):
    """Programs that decide with the template. They read GATE_URL and GATE_API_KEY, and exit with 0 only where the
    verdict is yes.
    """

    curl: str
    """For bash, with curl."""
    python: str
    """For Python, with httpx."""


class PolicyPattern(TypedDict):
    """A policy with a request, templates and examples over it."""

    pattern_id: str
    """The pattern's name."""
    policy_id: str
    """The id of its rulebook."""
    title: str
    """The name for readers."""
    description: str
    """What it decides, and how."""
    tags: list[str]
    """What the registry can be filtered by."""
    recommended_policy_version: str
    """The version of the policy to use: the active one."""
    policy_hash: str
    """The hash of the rulebook in that version."""
    decision_request_template: DecisionRequestTemplate
    """A Decision Request that runs as it stands and is answered with yes."""
    outcome_template: OutcomeTemplate
    crm_sync_template: CrmSyncTemplate
    sdk_examples: PatternExamples
    """Programs that decide with the template. They read GATE_URL and GATE_API_KEY, and exit with 0 only where the
    verdict is yes.
    """
    pattern_hash: str
    """The hash of the pattern without this member."""


class PolicyIntelligence(TypedDict):
    """What is known of the policy; absent with `include_intelligence=false`."""

    effectiveness: NotRequired[EffectivenessReport]
    """The effectiveness report of decisions of the same policy and version; absent from packets of earlier releases."""
    confidence: NotRequired[ConfidenceReport]
    """The confidence report of decisions of the same policy, version, verdict and action."""
    anomalies: NotRequired[AnomalyReport]
    """The anomaly report of decisions of the same policy, of all its versions; absent from packets of earlier
    releases.
    """
    benchmarks: NotRequired[BenchmarkReport]
    """The benchmark report of decisions of the same policy, of all its versions; absent from packets of earlier
    releases.
    """
    patterns: NotRequired[list[PolicyPattern]]
    """The patterns of the policy; none for a policy of the caller's own."""


class ChainLink(TypedDict):
    """One entry of the chain, bound to the one before."""

    decision_chain_version: str
    """Version of the link's layout."""
    chain_id: str
    """The chain that the link belongs to."""
    chain_position: int
    """The link's place, counted from 1 without a gap."""
    previous_link_hash: str | None
    """The hash of the link before; null for the first."""
    previous_merkle_root: str | None
    """The rolling root before this link; null for the first."""
    leaf_hash: str
    """Hash of the entry's id, record hash and receipt hash."""
    merkle_root: str
    """The rolling root after this link."""
    merkle_strategy: str
    """How the root rolls."""
    entry_type: EntryType
    """What was appended."""
    decision_id: str
    """The decision that the entry belongs to."""
    record_hash: str
    """Hash of the appended record."""
    receipt_hash: str | None
    """The record's receipt hash; null where the entry has none."""
    policy_id: str | None
    """The policy that decided; null where the entry has none."""
    policy_version: str | None
    """Its version; null where the entry has none."""
    created_at: str
    """When the entry was appended, UTC."""
    link_hash: str
    """Hash of this link without this member."""


class Checkpoint(TypedDict):
    """A signed statement of a chain's size and root, to be kept by someone else."""

    checkpoint_version: str
    """Version of the checkpoint's layout."""
    chain_id: str
    """The chain."""
    chain_size: int
    """How many links it had."""
    merkle_root: str | None
    """Its rolling root then; null for an empty chain."""
    link_hash: str | None
    """The hash of its last link then; null for an empty chain."""
    issued_at: str
    """When the checkpoint was made, UTC with milliseconds."""
    key_id: str
    """The receipt key that signed."""
    signature: str
    """Its signature over the other members."""


class VerificationHints(TypedDict):
    """How the parts are verified, in words, and a checkpoint that speaks for the retained links."""

    checkpoint: NotRequired[Checkpoint]
    """Signed at the export, over the last retained link; absent with receipt signing off."""


class PacketChain(TypedDict):
    """The decision's place in its chain, and what follows it; absent with `include_chain=false`."""

    chain_id: str
    """The chain."""
    chain_size: int
    """The position of the last retained link."""
    merkle_root: str
    """The rolling root after the last retained link."""
    retained_links: list[ChainLink]
    """Consecutive links, the first of them the decision's own."""
    verification_hints: VerificationHints
    """How the parts are verified, in words, and a checkpoint that speaks for the retained links."""


class DecisionPacket(TypedDict):
    """A decision with its reports and proofs, which verifies without any other source, up to the key that signed its
    record. Further optional members may be added.
    """

    decision_packet_version: str
    """Version of the packet's layout."""
    decision_id: str
    """The decision."""
    record_hash: str
    """That of the record."""
    receipt_hash: str
    """That of the record."""
    decision_record: DecisionRecord
    """The full Decision Record."""
    execution_receipts: list[ExecutionReceipt]
    """The newest execution receipts, newest first, as they were answered."""
    outcome_records: list[OutcomeRecord]
    """The newest Outcome Records, newest first, as they were answered."""
    resolution: NotRequired[dict[str, Json]]
    """The resolution of a held decision, as it was answered; absent where there is none."""
    policy_intelligence: NotRequired[PolicyIntelligence]
    """What is known of the policy; absent with `include_intelligence=false`."""
    audit_chain: NotRequired[PacketChain]
    """The decision's place in its chain, and what follows it; absent with `include_chain=false`."""
    input: NotRequired[dict[str, Json] | None]
    """The Decision Request that was answered; only with `include_input=true`, and null where it was erased."""
    exported_at: str
    """When the packet was made, UTC with milliseconds."""
    packet_hash: str
    """The hash of the packet without this member."""


# What is answered: Replay.


class ReplayDifference(TypedDict):
    """A member that differs."""

    field: Literal["verdict", "evidence", "record_hash", "policy_bundle_hash"]
    """Its name."""
    stored: str | list[str]
    """What the stored record says."""
    replayed: str | list[str]
    """What the replay says."""


class ReplayedDecision(TypedDict):
    """The replayed record, in the view asked for: a Decision Record without receipt signature, audit_chain and
    decision_confidence.
    """

    decision_id: str
    """As stored."""
    request_id: str
    """As stored."""
    verdict: Verdict
    """What the replay says. It lets no action proceed."""
    application_verdict: str
    """The rulebook's own verdict; ADVISORY of an advisory decision."""
    reason_code: str
    """Reason code of the outcome."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome."""
    action: str
    """Action label."""
    rulebook: NotRequired[RulebookIdentity]
    """{schema_version, id, version, hash} of the rulebook that the replay decided by; absent of an advisory
    decision.
    """
    decision_contract: NotRequired[dict[str, Json]]
    """Of an advisory decision: it authorizes nothing. Absent of any other."""
    policy_bundle_hash: str
    """Hash of that rulebook, or of the prompt template, as a policy."""
    record_hash: str
    """Hash of the replayed record's envelope."""
    receipt_hash: str
    """Receipt hash of the replayed record. Nothing signs it."""


class ReplayResult(TypedDict):
    """A stored decision made again, and where it differs from what was stored. It proves and authorizes nothing."""

    decision_id: str
    """The decision that was replayed."""
    replay_contract: NotRequired[str]
    """What a historical replay keeps to; absent from a current one."""
    replay_against: Literal["historical", "current"]
    """What the decision was made again by."""
    compared_fields: list[str]
    """The members that were compared."""
    replay_status: Literal["matched", "drifted"]
    """matched where drift is empty."""
    drift: list[ReplayDifference]
    """Each compared member that differs."""
    decision: ReplayedDecision
    """The replayed record, in the view asked for: a Decision Record without receipt signature, audit_chain and
    decision_confidence.
    """


class ScenarioBase(TypedDict):
    """The five members that a scenario is held against."""

    verdict: str
    """Normalized verdict."""
    application_verdict: str
    """The rulebook's own verdict."""
    action: str
    """Action label."""
    reason_code: str
    """Reason code."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome and for missing input."""


class ScenarioDifference(TypedDict):
    """A member that differs."""

    field: Literal["verdict", "application_verdict", "action", "reason_code", "matched_rule_id"]
    """Its name."""
    stored: str | None
    """What the stored record says."""
    scenario: str | None
    """What the scenario says."""


class ScenarioResult(TypedDict):
    """What the rulebook says to one scenario."""

    scenario_id: str
    """As in the request."""
    label: str
    """As in the request; the scenario_id where none was sent."""
    facts_changed: bool
    """Whether the facts, context.inputs, are others than those that were decided over. A patch of anything else
    changes no verdict.
    """
    verdict: str
    """What the verdict would be."""
    application_verdict: str
    """What the rulebook's own verdict would be."""
    action: str
    """What the action label would be."""
    reason_code: str
    """What the reason code would be."""
    matched_rule_id: str | None
    """The rule that would match; null for the default outcome and for missing input."""
    diff: list[ScenarioDifference]
    """Each of these five that differs from the stored record."""
    recommendation: Literal["no_change", "same_verdict", "would_proceed", "would_block", "would_hold"]
    """no_change: none of the five differs. same_verdict: the verdict stays, something else differs. would_proceed,
    would_block, would_hold: the verdict becomes yes, no, review.
    """
    evidence: NotRequired[list[str]]
    """Evidence codes; in the views standard and full."""
    evaluation: NotRequired[Evaluation]
    """Every rule up to the match with every test, as in a record; in the view full."""


class CounterfactualsResult(TypedDict):
    """What the rulebook's latest version says to each scenario. A simulation: nothing is stored, and nothing
    authorizes a mutation.
    """

    decision_counterfactuals_version: str
    """Version of this layout."""
    decision_id: str
    """The decision whose context was patched."""
    simulation_only: bool
    """Nothing here was decided."""
    authorizes_mutation: bool
    """No action may proceed on it."""
    rulebook: RulebookIdentity
    """The rulebook that was simulated: the version that the scope registered last."""
    base: ScenarioBase
    """What the stored record says."""
    scenarios: list[ScenarioResult]
    """The scenarios, in the order of the request."""
    counterfactual_hash: str
    """Hash of this answer without this member, in the view in which it was answered."""


# What is answered: Lifecycle.


class ExecutionList(TypedDict):
    """The execution receipts of a decision, newest first."""

    decision_id: str
    """The decision."""
    count: int
    """How many receipts are in this answer."""
    executions: list[ExecutionReceipt]
    """The receipts, the one reported last first."""
    next_cursor: str | None
    """What to send as `cursor` for those reported earlier; null where there are none."""


class OutcomeList(TypedDict):
    """The outcome records of a decision, newest first."""

    decision_id: str
    """The decision."""
    count: int
    """How many outcomes are in this answer."""
    outcomes: list[OutcomeRecord]
    """The outcomes, the one reported last first."""
    next_cursor: str | None
    """What to send as `cursor` for those reported earlier; null where there are none."""


class ResolutionActor(TypedDict):
    """The authenticated actor: the API key that sent it, the user who signed in, or the service itself."""

    type: ActorType
    """What kind of actor it is."""
    id: str
    """The key's id, the user's name, or gate."""


class ResolutionAuditChain(TypedDict):
    """The resolution's link in the scope's chain."""

    decision_chain_version: str
    """Version of the link's layout."""
    chain_id: str
    """The chain."""
    chain_position: int
    """The link's place. A receipt is in order if its own place follows a grant's."""
    entry_type: str
    """What was appended."""
    leaf_hash: str
    """Hash of the decision and the resolution's own hash."""
    link_hash: str
    """Hash of the link."""
    merkle_root: str
    """The chain's rolling root after the link."""


class Resolution(TypedDict):
    """The owner's resolution of a held decision: hashed, signed with the receipt key, linked into the scope's chain,
    and final. Members that would be empty are absent.
    """

    decision_protocol_version: str
    """Version of the protocol."""
    decision_resolution_version: str
    """Version of the resolution's layout."""
    resolution_entry_id: str
    """The resolution's own id."""
    decision_id: str
    """The held decision."""
    decision_record_hash: str
    """record_hash of the decision's record."""
    decision_receipt_hash: str
    """receipt_hash of the decision's record."""
    action_binding_hash: str
    """Hash of the decision's action_binding: the action that is resolved."""
    resolution: Literal["granted", "refused", "expired"]
    """The answer."""
    resolved_by: NotRequired[str]
    """The person who answered, as the caller said; absent where the service itself let the review expire."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence that is kept elsewhere."""
    note: NotRequired[str]
    """The reason, in the person's words."""
    idempotency_key: NotRequired[str]
    """The caller's retry handle; absent where none was sent."""
    resolution_input_hash: NotRequired[str]
    """Hash of the canonical request body; absent where the service itself let the review expire."""
    expires_at: NotRequired[str]
    """Of a grant: the action may begin before this moment, UTC. Of an expired review: when its time limit was over.
    Absent for a refusal, and where someone closed the review as expired without a time limit.
    """
    actor: ResolutionActor
    """The authenticated actor: the API key that sent it, the user who signed in, or the service itself."""
    recorded_at: str
    """When the service took the resolution, UTC."""
    resolution_hash: str
    """Hash of every other member but key_id, signature and audit_chain."""
    key_id: NotRequired[str]
    """The receipt key that signed it; absent where receipt signing is off."""
    signature: NotRequired[str]
    """The receipt key's signature over the canonical {decision_id, key_id, record_hash, resolution_hash}; absent
    where receipt signing is off.
    """
    audit_chain: ResolutionAuditChain
    """The resolution's link in the scope's chain."""


class ResolutionReview(TypedDict):
    """Where the review of a decision stands."""

    decision_id: str
    """The decision."""
    verdict: Verdict
    """The decision's verdict, which never changes."""
    state: Literal["held", "granted", "refused", "expired", "executed"] | None
    """held until it is resolved; then granted, refused or expired; executed once a granted action was reported as
    executed. null where the decision was not held for an owner: its verdict is not review, or it is advisory.
    """
    owner: str | None
    """The owner by the scope's settings when the decision was made; null where none was named."""
    due_at: str | None
    """When the service lets the review expire, UTC; null without a time limit."""
    executed_at: str | None
    """When a receipt said that the action was executed on its target, UTC, whether that was in order or not; null
    where none does, or a later one says that it was reverted.
    """
    resolution: Resolution | None
    """The resolution; null while there is none."""


class CrmSync(TypedDict):
    """What of a decision is in a CRM: the mapped fields and the object there, never credentials. Hashed, and linked
    to the record.
    """

    decision_protocol_version: str
    """Version of the protocol."""
    decision_crm_sync_version: str
    """Version of the report's layout."""
    sync_id: str
    """The report's own id."""
    decision_id: str
    """The decision that it is about."""
    idempotency_key: NotRequired[str]
    """The caller's retry handle; absent where none was sent."""
    sync_status: SyncStatus
    """What became of the sync."""
    sync_direction: NotRequired[SyncDirection]
    """writeback: from the decision into the CRM; inbound: from the CRM."""
    crm_provider: NotRequired[str]
    """Which CRM."""
    crm_object_type: NotRequired[str]
    """What kind of object it is there."""
    crm_object_id: NotRequired[str]
    """Which object."""
    crm_record_url: NotRequired[str]
    """Where the object is shown, without credentials."""
    mapped_fields: NotRequired[dict[str, Json]]
    """The fields that were mapped, and their values. Never credentials."""
    decision_record_hash: str
    """record_hash of the decision's record."""
    decision_receipt_hash: str
    """receipt_hash of the decision's record."""
    decision_verdict: Verdict
    """The decision's verdict."""
    decision_action: str
    """The decision's action."""
    policy_id: str
    """The policy that decided."""
    policy_version: str
    """Its version."""
    sync_input_hash: str
    """Hash of the canonical request body. It binds also what is empty."""
    reported_at: str
    """When the service took the report, UTC."""
    sync_hash: str
    """Hash of the members that docs/wire-format.md lists, without those that are empty."""
    audit_chain: ChainPlace
    """The report's link in the scope's chain."""


class CrmSyncAnswer(TypedDict):
    """Answer to a reported CRM sync."""

    decision_id: str
    """The decision."""
    crm_sync: CrmSync
    """The stored record."""


class CrmSyncList(TypedDict):
    """The CRM sync records of a decision, newest first."""

    decision_id: str
    """The decision."""
    count: int
    """How many syncs are in this answer."""
    crm_syncs: list[CrmSync]
    """The syncs, the one reported last first."""
    next_cursor: str | None
    """What to send as `cursor` for those reported earlier; null where there are none."""


# What is answered: Reports.


class PolicyAlert(TypedDict):
    """One alert."""

    policy_id: str
    """The policy."""
    anomaly: Anomaly
    """The anomaly, as the policy's report lists it."""
    report: str
    """The path of that report."""


class AlertsCoverage(TypedDict):
    """What was looked at, and up to where the chain was read."""

    policies: int
    """How many policies, at most 100, those of the most decisions."""
    more_policies: int
    """How many others there are."""
    as_of: str | None
    """The date of the chain's last entry; null for an empty chain."""
    chain_position: int
    """The last position of the scope's chain that was read; 0 for an empty chain."""
    merkle_root: str | None
    """The chain's rolling root there; null for an empty chain."""


class PolicyAlertsChangedEntry(TypedDict):
    """An entry, by what names it."""

    vendor: str
    """The vendor."""
    region: str
    """The region; * for every one."""
    plan: str
    """The plan; * for every one."""
    members: NotRequired[list[str]]
    """What changed in it."""


class PolicyAlertsPolicyChange(TypedDict):
    """A policy table came into force in place of another."""

    service: Literal["refund", "cancel", "return", "trial"]
    """The service that answers from it."""
    number: int
    """Which table of the service it is, counted from 1."""
    changed_at: str
    """Since when it is in force, UTC."""
    origin: Literal["operator", "release"]
    """operator, or release where it came with the product."""
    previous_hash: str
    """The hash of the table before it."""
    table_hash: str
    """The hash of the table."""
    added: list[PolicyAlertsChangedEntry]
    """The entries that are new."""
    removed: list[PolicyAlertsChangedEntry]
    """The entries that are gone."""
    changed: list[PolicyAlertsChangedEntry]
    """The entries that have other members, with the names of these."""


class PolicyAlerts(TypedDict):
    """The open anomalies of high severity of all policies of a scope. An anomaly is open until open_days after its
    window, counted to the date of the chain's last entry; there is nothing to acknowledge.
    """

    policy_alerts_version: str
    """Version of the answer."""
    alert_count: int
    """How many alerts are open."""
    alerts: list[PolicyAlert]
    """The alerts, at most 100: lasting harm first, then other harm, then what lasts; then by what they cost, then by
    score.
    """
    open_days: int
    """How many days after its window an anomaly is open."""
    coverage: AlertsCoverage
    """What was looked at, and up to where the chain was read."""
    policy_changes: NotRequired[list[PolicyAlertsPolicyChange]]
    """What changed in the policy tables of the service, the newest first, of the 50 tables that came into force
    last. Absent where nothing changed, and in the answers of an engine over a lake.
    """
    alerts_hash: str
    """H of the answer without this member."""


# What is answered: Policy services.


class RefundWorkflowAnswerTicket(TypedDict):
    """What to write on the ticket."""

    tags: list[str]
    """Tags, of a-z, 0-9 and _."""
    private_note: str
    """A note for agents, plain text in lines. Escape it where notes are HTML."""
    recommended_action: str
    """What to do next, for a reader."""


class RefundWorkflowAnswerDecision(TypedDict):
    """The Decision Record, in short; only with a key."""

    decision_id: str
    """The record."""
    verdict: Verdict
    """Its verdict."""
    application_verdict: str
    """The verdict of the policy."""
    reason_code: str
    """Why."""
    record_hash: str
    """Its hash."""
    receipt_hash: str
    """The hash of its receipt."""
    verify_url: str
    """Where it verifies."""


class RefundWorkflowAnswer(TypedDict):
    """What the policy table says about a ticket's refund, ready for the ticket; with a key, as a Decision Record."""

    workflow_version: str
    """Version of the answer."""
    request_id: str
    """Store it with the ticket. Without a key: H({ body, day }) with the UTC day, so that the same question on one
    day has one id. With a key: the record's request_id.
    """
    ticketing_system: Literal["zendesk", "freshdesk", "intercom"]
    """The help desk."""
    ticket_id: str
    """The ticket."""
    action: str
    """What to do next, as the rulebook's action."""
    policy_class: Literal["ALLOWED", "DENIED", "UNKNOWN"]
    """The verdict of the policy."""
    code: str
    """Why, as a stable code."""
    message: str
    """The same for a reader."""
    execution_allowed: bool
    """Whether the refund may be made: true only where a key was sent and its signed record says yes."""
    ticket: RefundWorkflowAnswerTicket
    """What to write on the ticket."""
    policy: dict[str, Json]
    """The policy answer; its schema is policy-answer.schema.json."""
    decision: NotRequired[RefundWorkflowAnswerDecision]
    """The Decision Record, in short; only with a key."""


# What is answered: Audit chain.


class ChainVerification(TypedDict):
    """Whether the retained links hold and lead to the head."""

    valid: bool
    """Whether every retained link holds and the last one is the head."""
    links_checked: int
    """How many links were checked."""
    from_position: int | None
    """Position of the first link that was checked; null where there was none."""
    to_position: int | None
    """Position of the last link that was checked; null where there was none."""
    broken_at: int | None
    """Position of the first link that does not hold; null where all hold."""
    reason: str | None
    """What does not hold there; null where all hold."""


class Chain(TypedDict):
    """The head of the caller's chain and its last links, ascending."""

    chain_id: str
    """The chain; the caller's own."""
    chain_size: int
    """How many links the chain has."""
    merkle_root: str | None
    """The rolling root after the last link; null for an empty chain."""
    head_link_hash: str | None
    """The hash of the last link; null for an empty chain."""
    retained_links: list[ChainLink]
    """The last links, ascending by position, as many as `limit` asks for."""
    verification: ChainVerification
    """Whether the retained links hold and lead to the head."""


# What is answered: Migrations.


class RulebookVersion(TypedDict):
    """A version of the rulebook."""

    version: str
    """Its version label."""
    hash: str
    """H of the rulebook."""


class Actor(TypedDict):
    """Who did it."""

    type: ActorType
    """A user, a key, or the service itself."""
    id: str
    """The user's name, or the key's id."""


Route = TypedDict(
    "Route",
    {
        # Version of the protocol.
        "decision_protocol_version": str,
        # Version of the entry's layout.
        "decision_route_version": str,
        # The entry's own id; `decision_id` of its link.
        "route_entry_id": str,
        # The rulebook id that leads elsewhere from this entry on.
        "rulebook_id": str,
        # The version that it led to before; null for its first route.
        "from": RulebookVersion | None,
        # The version that it leads to.
        "to": RulebookVersion,
        # Whether a migration was applied, or an earlier version was rolled back to.
        "cause": RouteCause,
        # The migration that was applied, or that a rollback goes back to.
        "migration_id": str,
        # `migration_hash` of that migration's approval; null where it needed none.
        "approval_hash": str | None,
        # The evidence that the route rests on.
        "evidence_hash": str,
        # Who did it.
        "actor": Actor,
        # What they said about it; may be empty.
        "note": str,
        # When; UTC, ISO 8601 with milliseconds.
        "recorded_at": str,
        # Hash of the entry without this member; `record_hash` of its link.
        "route_hash": str,
    },
)
"""The chain's entry by which a rulebook id leads to a version."""


class RouteList(TypedDict):
    """The routes of the caller's scope that are in force, by rulebook id."""

    count: int
    """How many rulebook ids have a route; of the one asked for, 1 or 0."""
    routes: list[Route]
    """The route in force of each rulebook id, in the order of the ids."""
    history: NotRequired[list[Route]]
    """All routes of the rulebook id in `rulebook_id`, the newest first, as many as `limit` asks for. Absent where
    none was asked for.
    """


class MigrationCandidate(TypedDict):
    """A version of a rulebook that a migration proposes."""

    rulebook_id: str
    """The rulebook's id."""
    version: str
    """Its version label."""
    hash: str
    """H of the rulebook."""


class MigrationSummary(TypedDict):
    """A migration, and where it stands."""

    migration_id: str
    """The id that its author gave it."""
    state: MigrationState
    """Its status until it is applied; then `applied`, or `rolled_back`."""
    status: MigrationStatus
    """What was last said of it, as its manifest has it."""
    candidates: list[MigrationCandidate]
    """The versions that it proposes, in the order of their rulebook ids."""
    manifest_hash: str
    """H of the manifest of its latest proposal."""
    evidence_hash: str
    """The evidence of its latest proposal."""
    proposed_by: str
    """The name of the user who proposed it."""
    proposed_at: str
    """When it was last proposed; UTC, ISO 8601 with milliseconds."""
    decided_by: str | None
    """Who approved, rejected or superseded that proposal; null while nobody has."""
    decided_at: str | None
    """When; null while nobody has."""


class MigrationList(TypedDict):
    """A page of the migrations of the caller's scope, those proposed last first."""

    count: int
    """How many are in this page."""
    migrations: list[MigrationSummary]
    """The migrations."""
    next_cursor: str | None
    """The `cursor` of the next page; null on the last one."""


class MigrationEntry(TypedDict):
    """The chain's entry that a migration was proposed, approved, rejected or superseded."""

    decision_protocol_version: str
    """Version of the protocol."""
    decision_migration_version: str
    """Version of the entry's layout."""
    migration_entry_id: str
    """The entry's own id; `decision_id` of its link."""
    migration_id: str
    """The migration."""
    event: MigrationStatus
    """What became of it."""
    manifest_hash: str
    """H of its manifest."""
    evidence_hash: str
    """The evidence that the event rests on."""
    candidates: list[MigrationCandidate]
    """The versions that it proposes, in the order of their rulebook ids."""
    actor: Actor
    """Who did it."""
    note: str
    """What they said about it; may be empty."""
    recorded_at: str
    """When; UTC, ISO 8601 with milliseconds."""
    migration_hash: str
    """Hash of the entry without this member; `record_hash` of its link."""


class Migration(TypedDict):
    """A migration of the caller's scope: its manifest, where it stands, and all entries about it."""

    migration_id: str
    """The id that its author gave it."""
    state: MigrationState
    """Its status until it is applied; then `applied`, or `rolled_back`."""
    status: MigrationStatus
    """What was last said of it."""
    candidates: list[MigrationCandidate]
    """The versions that it proposes, in the order of their rulebook ids."""
    manifest_hash: str
    """H of the manifest of its latest proposal, as it was proposed."""
    evidence_hash: str
    """The evidence of its latest proposal."""
    proposed_by: str
    """The name of the user who proposed it."""
    proposed_at: str
    """When it was last proposed; UTC, ISO 8601 with milliseconds."""
    decided_by: str | None
    """Who approved, rejected or superseded that proposal; null while nobody has."""
    decided_at: str | None
    """When; null while nobody has."""
    manifest: dict[str, Json]
    """The manifest, rulebook_migration_v1, with `status` and `approval` as they are now."""
    entries: list[MigrationEntry]
    """All entries of the chain about it, in the order of the chain."""
    routes: list[Route]
    """The routes that cite it, and the rollbacks that took it back, in the order of the chain, as
    decision-routes.schema.json has them.
    """
    stale: list[str]
    """Why the evidence of an open migration, one that is proposed or approved, is stale now, as sentences; empty
    where it is not. Nobody can approve or apply a migration whose evidence is stale.
    """


class MigrationEvidenceVersion(TypedDict):
    """A version of a rulebook."""

    version: str
    """The version label."""
    hash: str
    """The rulebook's hash."""


class MigrationEvidenceEdit(TypedDict):
    """One thing that the author changed. What comes of it is in the difference."""

    kind: Literal[
        "rule_added",
        "rule_removed",
        "condition",
        "priority",
        "outcome",
        "default_outcome",
        "field_added",
        "field_removed",
        "field_changed",
    ]
    """What kind of thing."""
    name: str
    """The rule's id or the fact's name; empty for the default outcome."""
    text: str
    """A sentence for people."""


class MigrationEvidenceResult(TypedDict):
    """What a rulebook says of facts."""

    decision: Verdict
    """The verdict."""
    verdict: str
    """The application's verdict."""
    action: str
    """The action."""
    reason_code: str
    """The reason code."""
    rule_id: str | None
    """The rule that matches; null for the default outcome, and for facts that the input schema refuses."""


MigrationEvidenceRegion = TypedDict(
    "MigrationEvidenceRegion",
    {
        # The result of the base.
        "from": MigrationEvidenceResult,
        # The result of the candidate.
        "to": MigrationEvidenceResult,
        # How dangerous the change is.
        "severity": Literal["danger", "warning", "note"],
        # The facts of the region in words, among those that are valid for each rulebook that does not refuse them.
        "condition": str,
        # Facts in the region, which both evaluators were given.
        "witness": dict[str, Json],
    },
)
"""A region of facts whose result changes."""


class MigrationEvidenceDifference(TypedDict):
    """How the rulebook differs from the one that it was compared with."""

    decided: bool
    """Whether the regions are all there are."""
    equal: bool | None
    """Whether both have the same result for all facts; null where that is not decided."""
    regions: list[MigrationEvidenceRegion]
    """Regions of facts whose result changes, the most dangerous first. They may overlap."""
    undecided: list[str]
    """The questions that hit a bound, as sentences. Nothing is guessed about them."""


class MigrationEvidenceFinding(TypedDict):
    """Something that the analysis found."""

    kind: Literal[
        "rule_never_matches",
        "rule_shadowed",
        "equal_priorities_overlap",
        "test_always_true",
        "test_always_false",
        "undeclared_field",
        "silent_when_absent",
        "approves_without_fact",
        "approves_wrong_type",
        "falls_to_default",
    ]
    """What was found."""
    severity: Literal["danger", "warning", "note"]
    """How grave it is."""
    rule_ids: list[str]
    """The rules concerned, the one that the finding is about first."""
    path: str
    """The place in the rulebook: rules[0].condition.all[1]."""
    message: str
    """The same as a sentence."""
    witness: dict[str, Json] | None
    """Facts that show the finding, which the evaluator confirmed; null where it is proved without any."""
    name: str
    """The name that --accept takes: the kind and the field, rule or place."""
    accepted: bool
    """Whether --accept named it; it is then no danger."""


class MigrationEvidenceAnalysis(TypedDict):
    """What holds of the candidate for all facts."""

    decided: bool
    """Whether every question was decided, those of the difference included."""
    findings: list[MigrationEvidenceFinding]
    """What the analysis found, the dangers first."""
    undecided: list[str]
    """The questions that hit a bound, as sentences. Nothing is guessed about them."""


class MigrationEvidenceTestsFailures(TypedDict):
    """A case that does not hold."""

    case: str
    """Its name."""
    message: str
    """Why it does not hold."""
    rules: list[str]
    """The rules that decided otherwise than expected, or should have decided."""


class MigrationEvidenceGoals(TypedDict):
    """How many goals of a kind are met."""

    met: int
    """How many are met."""
    of: int
    """How many there are."""


class MigrationEvidenceTestsCoverage(TypedDict):
    """The goals that the cases meet, by kind."""

    rule_matched: MigrationEvidenceGoals
    default_reached: MigrationEvidenceGoals
    test_true: MigrationEvidenceGoals
    test_false: MigrationEvidenceGoals
    decides_alone: MigrationEvidenceGoals


class MigrationEvidenceTests(TypedDict):
    """Which of the author's cases hold, and what they cover."""

    cases: int
    """How many cases there are."""
    failed: int
    """How many do not hold."""
    cases_hash: str
    """H of the cases: name, facts and expectation of each."""
    failures: list[MigrationEvidenceTestsFailures]
    """The cases that do not hold, the first 50."""
    coverage: MigrationEvidenceTestsCoverage
    """The goals that the cases meet, by kind."""
    holes: list[str]
    """The goals that no case meets though facts could, as sentences, the first 50."""


class MigrationEvidenceHistoryReadAt(TypedDict):
    """What identifies the history."""

    chain_id: str
    """The chain."""
    chain_position: int
    """The position up to which it was read."""
    merkle_root: str | None
    """Its rolling Merkle root there; null for an empty chain."""


class MigrationEvidenceHistoryNotRedecided(TypedDict):
    """A reason, and the decisions that have it."""

    reason: Literal["facts_erased", "adapter_changed", "facts_withheld"]
    """facts_erased: its facts are not known; adapter_changed: its facts are not those of the candidate's adapter, or
    an adapter made them and callers send the candidate's; facts_withheld: a rulebook reads a personal fact that the
    lake leaves out. The first that holds.
    """
    decisions: int
    """How many decisions."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""


class MigrationEvidenceRate(TypedDict):
    """So many decisions of so many, with the interval of their share."""

    decisions: int
    """How many decisions."""
    of: int
    """Of how many."""
    share: float | None
    """Their share, six decimals; null of none."""
    low: float | None
    """The lower end of its 95 % Wilson interval; null of none."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""


class MigrationEvidenceHistoryNewlyApproved(TypedDict):
    """Those that become yes."""

    decisions: int
    """How many decisions."""
    of: int
    """Of how many."""
    share: float | None
    """Their share, six decimals; null of none."""
    low: float | None
    """The lower end of its 95 % Wilson interval; null of none."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""
    from_no: int
    """How many are no."""
    from_review: int
    """How many are review."""


class MigrationEvidenceHistoryNewlyBlocked(TypedDict):
    """Those that are yes no more."""

    decisions: int
    """How many decisions."""
    of: int
    """Of how many."""
    share: float | None
    """Their share, six decimals; null of none."""
    low: float | None
    """The lower end of its 95 % Wilson interval; null of none."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""
    to_no: int
    """How many become no."""
    to_review: int
    """How many become review."""


class MigrationEvidenceHistoryOtherwiseRefused(TypedDict):
    """Those that go from no to review, or from review to no."""

    decisions: int
    """How many decisions."""
    of: int
    """Of how many."""
    share: float | None
    """Their share, six decimals; null of none."""
    low: float | None
    """The lower end of its 95 % Wilson interval; null of none."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""
    to_no: int
    """How many become no."""
    to_review: int
    """How many become review."""


class MigrationEvidenceHistoryReviews(TypedDict):
    """Those with one verdict."""

    then_verdict: Verdict
    """What the candidate decides."""
    decisions: int
    """How many decisions."""
    held: int
    """Those that nobody resolved yet."""
    granted: int
    """Those that their owner granted."""
    refused: int
    """Those that their owner refused."""
    expired: int
    """Those whose time limit was over before anybody answered."""


class MigrationEvidenceFigure(TypedDict):
    """So many of the decisions."""

    decisions: int
    """How many decisions."""
    share: float | None
    """Their share of the whole, six decimals; null where that is empty."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""


class MigrationEvidenceHistoryEarlier(TypedDict):
    """A version that decided."""

    policy_version: str | None
    """The version that decided."""
    decisions: int
    """How many of its decisions the base decides otherwise."""
    of: int
    """Of how many that can be decided anew."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""


MigrationEvidenceTransition = TypedDict(
    "MigrationEvidenceTransition",
    {
        # What it is, or was. Null for those outcomes of a past without a base that are not told apart.
        "from": str | None,
        # What it becomes.
        "to": str,
        # How many decisions.
        "decisions": int,
        # Their share of the whole, six decimals; null where that is empty.
        "share": float | None,
        # The ids of up to ten of these decisions, the latest in the chain; the latest last.
        "decision_ids": list[str],
    },
)
"""How many decisions go from one value to another."""


class MigrationEvidenceHistoryMatrix(TypedDict):
    """What becomes what, from base to candidate, those that stay among them: the changes first, then the most
    decisions.
    """

    verdict: list[MigrationEvidenceTransition]
    """By verdict."""
    action: list[MigrationEvidenceTransition]
    """By action."""
    reason_code: list[MigrationEvidenceTransition]
    """By reason code."""


class MigrationEvidenceHistoryRules(TypedDict):
    """A rule of the base."""

    rule: str | None
    """What decides under the base: rule:<id>, rule:default or schema:failed. Null for those outcomes of a past
    without a base that are not told apart.
    """
    decisions: int
    """How many decisions."""
    redecided: int
    """How many of them can be decided anew."""
    changed: int
    """How many of these the candidate decides otherwise."""
    newly_approved: int
    """How many of these it newly approves."""
    newly_blocked: int
    """How many of these it approves no more."""
    decision_ids: list[str]
    """The latest of those that it decides otherwise."""


class MigrationEvidenceHistoryThenRules(TypedDict):
    """A rule of the candidate."""

    rule: str
    """What decides under the candidate."""
    decisions: int
    """How many decisions."""
    redecided: int
    """How many of them can be decided anew."""
    changed: int
    """How many of these the candidate decides otherwise."""
    newly_approved: int
    """How many of these it newly approves."""
    newly_blocked: int
    """How many of these it approves no more."""
    decision_ids: list[str]
    """The latest of those that it decides otherwise."""


class MigrationEvidenceHistoryTransitionsOutcomes(TypedDict):
    """What came of the decisions as they were made, by the status of the latest outcome."""

    succeeded: int
    """Those of the status succeeded."""
    partial: int
    """Those of the status partial."""
    failed: int
    """Those of the status failed."""
    reverted: int
    """Those of the status reverted."""
    pending: int
    """Those of the status pending."""
    review: int
    """Those of the status review."""
    unreported: int
    """Those without any outcome."""


class MigrationEvidenceHistoryTransitions(TypedDict):
    """What goes from one rule to another."""

    rule: str | None
    """What decides under the base. Null for those outcomes of a past without a base that are not told apart."""
    then_rule: str
    """What decides under the candidate."""
    verdict: Verdict
    """The verdict of the base."""
    then_verdict: Verdict
    """That of the candidate."""
    action: str | None
    """The action of the base. Null for those outcomes of a past without a base that are not told apart."""
    then_action: str
    """That of the candidate."""
    decisions: int
    """How many decisions."""
    share: float | None
    """Their share of the whole, six decimals; null where that is empty."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""
    outcomes: MigrationEvidenceHistoryTransitionsOutcomes
    """What came of the decisions as they were made, by the status of the latest outcome."""


class MigrationEvidenceHistoryWeeks(TypedDict):
    """A week."""

    week: str
    """The Monday of the week, UTC."""
    decisions: int
    """How many decisions."""
    redecided: int
    """How many of them can be decided anew."""
    changed: int
    """How many of these the candidate decides otherwise."""
    newly_approved: int
    """How many of these it newly approves."""
    newly_blocked: int
    """How many of these it approves no more."""
    decision_ids: list[str]
    """The latest of those that it decides otherwise."""


class MigrationEvidenceHistoryVersions(TypedDict):
    """A version that decided."""

    policy_version: str | None
    """The version that decided."""
    decisions: int
    """How many decisions."""
    redecided: int
    """How many of them can be decided anew."""
    changed: int
    """How many of these the candidate decides otherwise."""
    newly_approved: int
    """How many of these it newly approves."""
    newly_blocked: int
    """How many of these it approves no more."""
    decision_ids: list[str]
    """The latest of those that it decides otherwise."""


MigrationEvidenceHistoryFactsClasses = TypedDict(
    "MigrationEvidenceHistoryFactsClasses",
    {
        # The values in words: `10 <= amount < 50`.
        "class": str,
        # How many decisions.
        "decisions": int,
        # How many of them can be decided anew.
        "redecided": int,
        # How many of these the candidate decides otherwise.
        "changed": int,
        # How many of these it newly approves.
        "newly_approved": int,
        # How many of these it approves no more.
        "newly_blocked": int,
        # The latest of those that it decides otherwise.
        "decision_ids": list[str],
    },
)
"""A class of values."""


class MigrationEvidenceHistoryFacts(TypedDict):
    """A field."""

    field: str
    """The field."""
    classes: list[MigrationEvidenceHistoryFactsClasses]
    """The classes that occur: absence, null, booleans; numbers, cut at the constants of the rulebooks' tests; of
    texts, arrays and objects the 20 most frequent, which are looked for among the first 10,000 that occur and have
    at most 200 characters, and the others together; and values of a type that no rulebook declares.
    """


class MigrationEvidenceHistoryOutcomesGoodNewlyBlocked(TypedDict):
    """Of the decisions that were yes, are yes under the base, and succeeded: those that the candidate approves no
    more.
    """

    decisions: int
    """How many decisions."""
    of: int
    """Of how many."""
    share: float | None
    """Their share, six decimals; null of none."""
    low: float | None
    """The lower end of its 95 % Wilson interval; null of none."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""
    sentence: str
    """The same as a sentence."""


class MigrationEvidenceHistoryOutcomesBadNewlyBlocked(TypedDict):
    """Of those that were yes, are yes under the base, and ended otherwise: those that it approves no more."""

    decisions: int
    """How many decisions."""
    of: int
    """Of how many."""
    share: float | None
    """Their share, six decimals; null of none."""
    low: float | None
    """The lower end of its 95 % Wilson interval; null of none."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""
    sentence: str
    """The same as a sentence."""


class MigrationEvidenceHistoryOutcomesBadNewlyApproved(TypedDict):
    """Of the newly approved with a final outcome: those that did not succeed."""

    decisions: int
    """How many decisions."""
    of: int
    """Of how many."""
    share: float | None
    """Their share, six decimals; null of none."""
    low: float | None
    """The lower end of its 95 % Wilson interval; null of none."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""
    sentence: str
    """The same as a sentence."""


class MigrationEvidenceHistoryOutcomesNewlyApprovedUnknown(TypedDict):
    """Of the newly approved: those without a final outcome."""

    decisions: int
    """How many decisions."""
    of: int
    """Of how many."""
    share: float | None
    """Their share, six decimals; null of none."""
    low: float | None
    """The lower end of its 95 % Wilson interval; null of none."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""
    sentence: str
    """The same as a sentence."""


class MigrationEvidenceHistoryOutcomes(TypedDict):
    """What is known of the outcomes of changed decisions. An outcome counts by its latest status; succeeded,
    partial, failed and reverted are final.
    """

    good_newly_blocked: MigrationEvidenceHistoryOutcomesGoodNewlyBlocked
    """Of the decisions that were yes, are yes under the base, and succeeded: those that the candidate approves no
    more.
    """
    bad_newly_blocked: MigrationEvidenceHistoryOutcomesBadNewlyBlocked
    """Of those that were yes, are yes under the base, and ended otherwise: those that it approves no more."""
    bad_newly_approved: MigrationEvidenceHistoryOutcomesBadNewlyApproved
    """Of the newly approved with a final outcome: those that did not succeed."""
    newly_approved_unknown: MigrationEvidenceHistoryOutcomesNewlyApprovedUnknown
    """Of the newly approved: those without a final outcome."""
    unknowable: str
    """What cannot be known, as a sentence."""


class MigrationEvidenceHistoryMoney(TypedDict):
    """A pair of verdicts."""

    verdict: Verdict
    """The verdict of the base."""
    then_verdict: Verdict
    """That of the candidate."""
    values: int
    """How many decisions have a value."""
    sum: float | None
    """Their sum, six decimals; null where a double cannot hold it, as of the other numbers."""
    sum_low: float | None
    """The lower end of its 95 % interval: that of the mean, times the number of values; null of one value."""
    sum_high: float | None
    """The upper end."""
    mean: float | None
    """Their mean."""
    low: float | None
    """The lower end of its 95 % interval, by Student's t; null of one value."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""


class MigrationEvidenceHistoryMissingFacts(TypedDict):
    """A fact."""

    field: str
    """The field."""
    required: bool
    """Whether the candidate requires it."""
    decisions: int
    """How many decisions."""
    share: float | None
    """Their share of the whole, six decimals; null where that is empty."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""


class MigrationEvidenceHistoryRegions(TypedDict):
    """A region."""

    region: int
    """The region's index in `difference.regions`."""
    decisions: int
    """How many decisions."""
    share: float | None
    """Their share of the whole, six decimals; null where that is empty."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain; the latest last."""


class MigrationEvidenceHistoryLeftOut(TypedDict):
    """How many decisions are in rows that a list has no room for, by list."""

    earlier: int
    """Those of `earlier`."""
    verdict: int
    """Those of `matrix.verdict`."""
    action: int
    """Those of `matrix.action`."""
    reason_code: int
    """Those of `matrix.reason_code`."""
    was_verdict: int
    """Those of `was_matrix`."""
    rules: int
    """Those of `rules`."""
    then_rules: int
    """Those of `then_rules`."""
    transitions: int
    """Those of `transitions`."""
    weeks: int
    """Those of `weeks`."""
    versions: int
    """Those of `versions`."""


class MigrationEvidenceHistory(TypedDict):
    """What a candidate would have decided of the past decisions of its rulebook id, what would have changed, and
    what is known of the outcomes. Each figure comes with the ids of the latest decisions behind it. The same ledger
    and the same question give the same document, byte for byte.
    """

    rulebook_id: str
    """The rulebook id, which all decisions, the base and the candidate have."""
    base: MigrationEvidenceVersion | None
    """The version in force, which past decisions are compared by; null for a first route, where they are compared as
    they were decided.
    """
    candidate: MigrationEvidenceVersion
    """The version that is proposed."""
    read_at: MigrationEvidenceHistoryReadAt
    """What identifies the history."""
    since: str | None
    """From when on decisions were looked at; null for the whole past."""
    until: str | None
    """Before when; null for no end."""
    metric: str | None
    """What `money` is told of: a metric of outcomes, or a fact as `inputs.<path>`; null for nothing."""
    adapter_manifest_hash: str | None
    """The adapter that makes the candidate's facts; null where callers send them."""
    decisions: int
    """How many decisions were looked at."""
    redecided: int
    """How many of them both rulebooks can decide anew. All shares are of these, unless another whole is named."""
    not_redecided: list[MigrationEvidenceHistoryNotRedecided]
    """The decisions that cannot be decided anew, by reason. Nothing is guessed about them."""
    changed: MigrationEvidenceRate
    """The decisions of which the candidate says another verdict, application verdict, action, reason code or rule
    than the base.
    """
    verdict_changed: MigrationEvidenceRate
    """Those of another verdict."""
    newly_approved: MigrationEvidenceHistoryNewlyApproved
    """Those that become yes."""
    newly_blocked: MigrationEvidenceHistoryNewlyBlocked
    """Those that are yes no more."""
    otherwise_refused: MigrationEvidenceHistoryOtherwiseRefused
    """Those that go from no to review, or from review to no."""
    reviews: NotRequired[list[MigrationEvidenceHistoryReviews]]
    """How owners resolved the redecided decisions that were held, by the candidate's verdict, as far as it occurs;
    absent where none of them was resolved.
    """
    needs_input: MigrationEvidenceFigure
    """The decisions whose facts fail the candidate's input schema, and not the base's."""
    earlier: list[MigrationEvidenceHistoryEarlier]
    """What earlier versions decided otherwise than the base, by version, the most decisions first. It is not the
    candidate's doing, and is in no other figure. Empty without a base.
    """
    matrix: MigrationEvidenceHistoryMatrix
    """What becomes what, from base to candidate, those that stay among them: the changes first, then the most
    decisions.
    """
    was_matrix: list[MigrationEvidenceTransition]
    """What becomes what, from the verdict as it was decided to that of the candidate."""
    rules: list[MigrationEvidenceHistoryRules]
    """What changes, by the rule of the base, the most decisions first."""
    then_rules: list[MigrationEvidenceHistoryThenRules]
    """What changes, by the rule of the candidate, the most decisions first."""
    transitions: list[MigrationEvidenceHistoryTransitions]
    """What changes, from rule to rule, the most decisions first."""
    weeks: list[MigrationEvidenceHistoryWeeks]
    """What changes, by the week of the decision, ascending; the latest where there are more."""
    versions: list[MigrationEvidenceHistoryVersions]
    """What changes, by the version that decided, the most decisions first."""
    facts: list[MigrationEvidenceHistoryFacts]
    """What changes, by the values of some fields."""
    outcomes: MigrationEvidenceHistoryOutcomes
    """What is known of the outcomes of changed decisions. An outcome counts by its latest status; succeeded,
    partial, failed and reverted are final.
    """
    money: list[MigrationEvidenceHistoryMoney]
    """The values of the metric as they were observed, by verdict of base and candidate. Empty without a metric."""
    missing_facts: list[MigrationEvidenceHistoryMissingFacts]
    """The facts that the candidate reads and some decisions lack; the share is of the decisions whose facts are
    known. The required ones first, then the most decisions.
    """
    regions: list[MigrationEvidenceHistoryRegions]
    """How many past decisions lie in each region of the difference."""
    note: str
    """What these figures do not say: regions may overlap."""
    left_out: MigrationEvidenceHistoryLeftOut
    """How many decisions are in rows that a list has no room for, by list."""
    undecided: list[str]
    """What is not told because it would cost too much, as sentences."""


class MigrationEvidenceRulebook(TypedDict):
    """What is known of a candidate. The edits, the difference and the history compare it with the base."""

    rulebook_id: str
    """The rulebook's id."""
    base: MigrationEvidenceVersion | None
    """The version that its route leads to; null for a first route."""
    candidate: MigrationEvidenceVersion
    """The version that is proposed."""
    edits: list[MigrationEvidenceEdit] | None
    """What its author changed in the base, one edit after another: rules, the default outcome, then facts; null
    without a base.
    """
    difference: MigrationEvidenceDifference | None
    """The exact difference of the rulebooks, for all facts and not only those of the past; null without a base."""
    analysis: MigrationEvidenceAnalysis
    tests: MigrationEvidenceTests | None
    """The author's cases; null where there are none."""
    history: MigrationEvidenceHistory


class MigrationEvidenceDrift(TypedDict):
    """A fixture that drifts."""

    fixture: str
    """The fixture's id."""
    fields: list[
        Literal[
            "statusCode",
            "engine",
            "evaluator_version",
            "semantic_output",
            "rulebook",
            "input_hash",
            "attestation_hash",
            "trusted_adapter",
            "adapter_facts",
        ]
    ]
    """The fields that drift, in the order of the manifest's schema."""


class MigrationEvidenceCorpusCounts(TypedDict):
    """How many fixtures there are of each sort."""

    fixtures: int
    """In the corpus."""
    concerned: int
    """Those that the candidate concerns."""
    unchanged: int
    """Those concerned that do not drift."""
    expected: int
    """Those that drift as the manifest expects."""
    unexpected: int
    """Those that drift otherwise."""


class MigrationEvidenceCorpus(TypedDict):
    """The dry run over the golden corpus."""

    ok: bool
    """Whether no fixture drifts."""
    drift: list[MigrationEvidenceDrift]
    """The fixtures that drift, each with the fields that do."""
    unexpected: list[MigrationEvidenceDrift]
    """The fixtures that drift in fields that the manifest does not expect, with these fields."""
    errors: list[str]
    """What the manifest expects and does not happen, as sentences."""
    counts: MigrationEvidenceCorpusCounts
    """How many fixtures there are of each sort."""
    corpus: str
    """The corpus, by the label of its index."""
    corpus_hash: str
    """H of its index."""
    published: bool
    """Whether it is the published corpus."""


class MigrationEvidence(TypedDict):
    """Everything that a person who approves a migration has to know, rulebook_migration_evidence_v1. It names no
    moment, place or person: the same manifest, candidates, bases, corpus, cases and history give the same evidence,
    and the same hash.
    """

    evidence_version: str
    """Version of the evidence's layout."""
    migration_id: str
    """The migration, by the id that its author gave it."""
    manifest_hash: str
    """H of the manifest as it was proposed."""
    rulebooks: list[MigrationEvidenceRulebook]
    """What is known of each candidate, in the order of their rulebook ids."""
    corpus: MigrationEvidenceCorpus
    evidence_hash: str
    """H of the evidence without this member."""


# What is answered: Registries.


class PublicKeyEntry(TypedDict):
    """A public key."""

    key_id: str
    """The name by which signatures cite the key."""
    algorithm: str
    """What the key signs with."""
    public_key: str
    """PEM (SPKI)."""
    public_key_fingerprint: str
    """SHA-256 of the PEM text, lower-case hex."""
    status: Literal["active", "retired", "compromised"]
    """active signs; retired verifies what it signed up to not_after; compromised verifies nothing. Where receipts
    are signed by HMAC, or nothing is signed, a key that could sign is given as retired.
    """
    not_before: str
    """When the key came into use, UTC."""
    not_after: str | None
    """When it went out of use, UTC; null while active. A retired key always has it."""


class KeyRegistryDocument(TypedDict):
    """The public keys of one purpose, active and past."""

    keys: list[PublicKeyEntry]
    """Every key of this purpose, oldest first."""
    active_key_id: str | None
    """The key that signs now; null where signing is off."""


class PolicyBundle(TypedDict):
    """The policy as records cite it in their member of the same name."""

    id: str
    """policy_id."""
    version: str
    """policy_version."""
    hash: str
    """policy_hash."""
    hash_algorithm: str
    """What makes the hash."""
    canonicalization: str
    """The rules of the canonical bytes that are hashed."""


class PolicyBundleEntry(TypedDict):
    """One version of a policy."""

    policy_id: str
    """The rulebook's id."""
    policy_version: str
    """The rulebook's version."""
    policy_hash: str
    """The rulebook's hash."""
    policy_bundle: PolicyBundle
    policy_bundle_hash: str
    """The hash of policy_bundle."""
    status: PolicyStatus
    """active, or historical where a later version took its place."""
    source: str
    """The path of the rulebook's body on this service."""


class PolicyBundleRegistry(TypedDict):
    """Every own policy in every version, by policy id and version."""

    policy_bundles: list[PolicyBundleEntry]
    """The entries."""
    count: int
    """How many entries there are."""
    hash_algorithm: str
    """What makes the hashes."""
    canonicalization: str
    """What is hashed: the canonical bytes by these rules."""


class PolicyBundleAnswer(TypedDict):
    """One entry."""

    policy_bundle_entry: PolicyBundleEntry


class RulebookMetadataWarnings(TypedDict):
    """One warning."""

    field: str
    """Where it stands: a dotted path with array indexes in brackets."""
    code: str
    """What is probably wrong, in one stable word."""
    message: str
    """The same for a person, and what to do."""


class RulebookMetadataAnnotationsRules(TypedDict):
    """The comments on one rule."""

    description: NotRequired[str]
    """The comment on the rule."""
    outcome: NotRequired[str]
    """The comment on its outcome."""


class RulebookMetadataAnnotations(TypedDict):
    """The comments of the rulebook's author, from the file that was registered last. Not authenticated: no hash or
    signature covers them. Absent where there are none.
    """

    authenticated: bool
    """Always false."""
    schema: NotRequired[str]
    """$schema of the file."""
    description: NotRequired[str]
    """The comment on the rulebook."""
    rules: NotRequired[dict[str, RulebookMetadataAnnotationsRules]]
    """The comments on rules, by rule_id."""
    default_outcome: NotRequired[str]
    """The comment on the default outcome."""


class RulebookMetadata(TypedDict):
    """The registration of a rulebook in the caller's scope, as records cite it, with warnings and comments. Never
    the rulebook's body.
    """

    ok: bool
    """The registration was found."""
    rulebook: RulebookRegistration
    """What was registered, once and for good."""
    warnings: list[RulebookMetadataWarnings]
    """What is valid and probably not meant, as `gate rulebook check` warns of it. Made for this answer; no hash
    covers it.
    """
    annotations: NotRequired[RulebookMetadataAnnotations]
    """The comments of the rulebook's author, from the file that was registered last. Not authenticated: no hash or
    signature covers them. Absent where there are none.
    """


class AdapterLimits(TypedDict):
    """What a call may take."""

    timeout_ms: int
    """How long, in milliseconds."""
    memory_bytes: int
    """How much memory a worker may allocate, in bytes."""
    output_bytes: int
    """How long the JSON text of the facts may be, in bytes."""


class AdapterManifest(TypedDict):
    """What a registered adapter is. manifest_hash is H of the rest, and records cite it."""

    manifest_version: Literal["trusted_adapter_manifest_v1"]
    """The format of manifests."""
    adapter_id: str
    """The adapter's id."""
    version: str
    """Its exact version."""
    title: str
    """What it is called."""
    description: str
    """What it makes of what."""
    implementation_revision: str
    """The revision of its source, as its author counts."""
    implementation_hash: str
    """SHA-256 of the bytes of its source, lower-case hex."""
    adapter_authority: Literal["facts_only"]
    """It emits facts; the rulebook selects the verdict."""
    execution_isolation: Literal["process_one_shot_v1"]
    """Each call runs once, in a process of its own."""
    capability_enforcement: Literal["seccomp_allow_list_v1"]
    """What denies a worker everything but computing. Status tells what is in force beyond it."""
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
    """What a worker cannot do."""
    limits: AdapterLimits
    """What a call may take."""
    input_schema: dict[str, Json]
    """The JSON Schema of its input; closed."""
    output_schema: dict[str, Json]
    """The JSON Schema of its facts; closed."""
    manifest_hash: str
    """H of the manifest without this member, lower-case hex."""


class TrustedAdapters(TypedDict):
    """Answer of GET /api/decision/adapters: every adapter that can be invoked."""

    adapters: list[AdapterManifest]
    """Their manifests, by id and version. Each is as trusted-adapter-manifest.schema.json says."""


class PolicyPatterns(TypedDict):
    """The patterns, by pattern id."""

    patterns: list[PolicyPattern]
    """The patterns that bear the tag, or all."""
    count: int
    """How many patterns these are."""


class PolicyPatternAnswer(TypedDict):
    """One pattern."""

    policy_pattern: PolicyPattern


class PolicySource(TypedDict):
    """One version of a policy."""

    policy_id: str
    """The rulebook's id."""
    policy_version: str
    """The rulebook's version."""
    policy_hash: str
    """The rulebook's hash: lower-case hex SHA-256 of its canonical bytes."""
    status: PolicyStatus
    """active, or historical where a later version took its place."""
    source: str
    """The path of the rulebook's body on this service."""


class PolicySourcesPolicyTables(TypedDict):
    """A table."""

    service: Literal["refund", "cancel", "return", "trial"]
    """The service that answers from it."""
    tool: str
    """The name of the question, as a tool."""
    table_hash: str
    """The hash of the table."""
    origin: Literal["operator", "release"]
    """operator, or release where it came with the product."""
    entries: int
    """How many entries it has."""
    source: str
    """The path of the table on this service."""
    rulebook: str
    """The path of the rulebook that decides over it."""


class PolicySources(TypedDict):
    """Where the bodies of the service's own policies and the policy tables in force stand."""

    policy_sources: list[PolicySource]
    """Every own policy in every version, by policy id and version."""
    count: int
    """How many sources there are."""
    policy_tables: list[PolicySourcesPolicyTables]
    """The tables in force that the policy services answer from."""


class PolicyTableEntryWindows(TypedDict):
    """Periods, in days. refund: refund_days. return: return_days. cancel: free_days, in which cancelling costs
    nothing, and locked_days, the number of full days for which cancelling is not possible; from the day of that
    number on it is possible.
    """

    refund_days: NotRequired[int | str]
    """Days after the purchase, the last one included; or never."""
    return_days: NotRequired[int | str]
    """Days after the delivery, the last one included; or never."""
    free_days: NotRequired[int]
    """Whole days."""
    locked_days: NotRequired[int]
    """Whole days."""


class PolicyTableEntryOffersAlternative2(TypedDict):
    """An entry of `alternative_2` in PolicyTableEntryOffers."""

    trial_days: int
    """Length of the trial, in days."""
    card_required: bool | None
    """Whether a means of payment is required; null where the source does not say."""


class PolicyTableEntryConditions(TypedDict):
    """An entry of `conditions` in PolicyTableEntry."""

    name: str
    """As callers confirm it."""
    text: str
    """For readers."""


class PolicyTableEntry(TypedDict):
    """What one vendor publishes for one region and plan."""

    vendor: str
    """The vendor, as callers name it."""
    name: str
    """The vendor's name for readers; callers may use it too."""
    region: str
    """A country as ISO 3166-1 alpha-2, with a subdivision where that matters (US-CA), or * for every region."""
    plan: str
    """A plan or a product category, or * for every plan."""
    decision_mode: Literal["deterministic", "conditional", "review_only"]
    """deterministic: the days alone carry a verdict. conditional: the caller must confirm the conditions before a
    favourable verdict. review_only: a person reads the source; the answer is always UNKNOWN.
    """
    windows: NotRequired[PolicyTableEntryWindows]
    """Periods, in days. refund: refund_days. return: return_days. cancel: free_days, in which cancelling costs
    nothing, and locked_days, the number of full days for which cancelling is not possible; from the day of that
    number on it is possible.
    """
    penalties: NotRequired[list[str]]
    """cancel: what cancelling costs outside free_days; empty where it costs nothing."""
    offers: NotRequired[str | PolicyTableEntryOffersAlternative2]
    """trial: the free trial of the plan, or none."""
    conditions: NotRequired[list[PolicyTableEntryConditions]]
    """conditional: what the caller must confirm."""
    source: str
    """The public page with the vendor's own words."""
    notes: NotRequired[str]
    """For readers."""
    last_verified: str | None
    """The day on which somebody last read the source and found the entry right; null where nobody did. A day to come
    is refused.
    """


class PolicyTable(TypedDict):
    """What vendors publish about one question: refunds, cancelling, returns or trials. An operator's to edit."""

    policy_table_version: str
    """Version of this format."""
    service: Literal["refund", "cancel", "return", "trial"]
    """The question that the table answers."""
    description: NotRequired[str]
    """For readers of the file."""
    entries: list[PolicyTableEntry]
    """One entry for each vendor, region and plan; their order means nothing."""


# What is answered: Contract.


class SchemaEntry(TypedDict):
    """An entry of `schemas` in ContractIndex."""

    name: str
    """The schema's name."""
    title: str
    """The same for readers."""
    url: str
    """Its path."""
    hash: str
    """H(schema)."""


class ContractIndex(TypedDict):
    """GET /schemas/: everything that the service publishes of its contract. Addresses are paths from the service's
    base address.
    """

    ok: bool
    """The index is complete."""
    interface_version: str
    """Version of the interface description."""
    compatibility_policy: str
    """What may change, and what may not."""
    schemas: list[SchemaEntry]
    """The JSON Schemas, by name."""
    conformance_url: str
    """Path of the conformance fixtures' index."""
    replay_url: str
    """Path of the golden replay corpus' index."""


class ConformanceEntry(TypedDict):
    """An entry of `fixtures` in ConformanceIndex."""

    fixture_id: str
    """The fixture's id."""
    title: str
    """What it shows, for readers."""
    path: str
    """Beside the index."""
    sha256: str
    """Of the fixture's canonical JSON."""


class ConformanceIndex(TypedDict):
    """The conformance fixtures. Hashes are SHA-256 of canonical JSON, in lower-case hex."""

    interface_version: str
    """Version of the interface description."""
    compatibility_policy: str
    """What may change, and what may not."""
    protocol: str
    """Version of the protocol."""
    hash_algorithm: str
    """The hash of this protocol."""
    canonicalization: str
    """How JSON becomes bytes."""
    fixtures: list[ConformanceEntry]
    """The fixtures."""
    conformance_hash: str
    """H of the list of the fixtures' hashes, in their order."""


class FixtureRequest(TypedDict):
    """What to send."""

    method: Literal["GET", "POST"]
    """The HTTP method."""
    path: str
    """From the service's base address."""
    headers: dict[str, str]
    """The headers to send, besides the key."""
    body: dict[str, Json]
    """A JSON value."""


class FixtureExpectation(TypedDict):
    """What must come of it."""

    status: int
    """The HTTP status."""
    body: dict[str, Json]
    """Members that the answer must hold. An object needs at least the members named; an array as many items, each as
    named; anything else must be equal.
    """
    absent: list[str]
    """Members that the answer must not have at its root."""


class ConformanceFixture(TypedDict):
    """A request to a service, and what must come of it. The caller adds its x-api-key."""

    fixture_id: str
    """The fixture's id."""
    title: str
    """What it shows, for readers."""
    request: FixtureRequest
    """What to send."""
    expected: FixtureExpectation
    """What must come of it."""


class GoldenReplayFile(TypedDict):
    """An entry of `files` in GoldenReplayIndex."""

    path: str
    """Beside the index."""
    sha256: str
    """Of the file's canonical JSON."""
    cases: int
    """How many cases the file holds."""


class GoldenReplayIndex(TypedDict):
    """What the corpus holds. Hashes are SHA-256 of canonical JSON, in lower-case hex."""

    corpus: str
    """The corpus' label."""
    replay_contract: str
    """How the cases are to be replayed: as stored, never reinterpreted."""
    evaluator_version: str
    """The evaluator that the hashes name."""
    rulebook_schema_hash: str
    """Of the Rulebook v1 schema that the rulebooks follow."""
    hash_algorithm: str
    """The hash of this protocol."""
    canonicalization: str
    """How JSON becomes bytes."""
    files: list[GoldenReplayFile]
    """The files."""
    cases: int
    """How many cases there are in all files."""
    covers: dict[str, int]
    """How many cases speak of each subject."""
    corpus_hash: str
    """H of the list of the files' hashes, in their order."""


class GoldenRulebook(TypedDict):
    """One of the file's rulebooks."""

    rulebook_id: str
    """Its id."""
    version: str
    """Its version."""


class GoldenOutcome(TypedDict):
    """What the record must say."""

    verdict: Verdict
    """Its verdict."""
    application_verdict: str
    """Its application verdict."""
    action: str
    """Its action."""
    reason_code: str
    """Its reason code."""
    matched_rule_id: str | None
    """null for the default outcome, and where input is needed."""
    missing_fields: list[str]
    """As in the record's evaluation."""
    invalid_fields: list[InvalidField]
    """As in the record's evaluation."""
    evaluated_rules: NotRequired[list[str]]
    """Where the order is the subject: the rule_id of each rule of the record's evaluation, in its order."""


class GoldenHashes(TypedDict):
    """What never changes: H(rulebook), H(facts), and rulebook_attestation.bundle_hash of the record."""

    trusted_adapter: NotRequired[dict[str, Json]]
    """trusted_adapter of the record, in adapter mode."""
    rulebook_hash: str
    """H(rulebook)."""
    input_hash: str
    """H(facts)."""
    bundle_hash: str
    """rulebook_attestation.bundle_hash of the record."""


class GoldenCase(TypedDict):
    """Facts, and what a rulebook must say about them."""

    case_id: str
    """The case's id."""
    title: str
    """What it shows, for readers."""
    covers: list[str]
    """The subjects it speaks of."""
    rulebook: GoldenRulebook
    """One of the file's rulebooks."""
    inputs: NotRequired[dict[str, Json]]
    """The facts, sent as context.inputs. Absent: the request carries none, which means {}."""
    adapter: NotRequired[AdapterInvocation]
    """The adapter that makes the facts, sent as adapter instead of context.inputs."""
    adapter_facts: NotRequired[dict[str, Json]]
    """The facts that the adapter makes."""
    expected: GoldenOutcome
    """What the record must say."""
    frozen: GoldenHashes
    """What never changes: H(rulebook), H(facts), and rulebook_attestation.bundle_hash of the record."""


class GoldenReplays(TypedDict):
    """Rulebooks, and what each must say about facts. A rulebook here follows rulebook-v1.schema.json; once
    published, its version never changes.
    """

    corpus: str
    """The corpus' label."""
    theme: str
    """What the cases are about; the file's name."""
    title: str
    """The same for readers."""
    rulebooks: list[Rulebook]
    """The rulebooks that the cases use."""
    cases: list[GoldenCase]
    """The cases."""


# What is answered: Operations.


class StatusPart(TypedDict):
    """One part of the service; parts carry further members of their own."""

    ready: bool
    """Whether the part works now."""
    reason: NotRequired[str]
    """Why it does not."""


class Status(TypedDict):
    """Readiness of everything that a decision needs; the same shape ready (200) and degraded (503)."""

    ok: bool
    """Whether every part is ready."""
    status: Readiness
    """The same in one word."""
    version: str
    """Version of the service."""
    interface_version: str
    """Version of this interface description."""
    signing: StatusPart
    """Receipt and registry signing."""
    rulebook_runtime: StatusPart
    """The contract under which rulebooks are validated and evaluated."""
    ledger: StatusPart
    """Where records are kept."""
    idempotency: StatusPart
    """Whether retries can be recognized."""
    registries: StatusPart
    """Where the public keys are."""
    auth: StatusPart
    """How callers are known."""
    backends: StatusPart
    """Each backend by name: ledger (sqlite, postgresql), advisory, trusted_adapters, and reports, the process that
    counts for reports. Each of the last three is ready, unavailable, unconfigured, or unknown where the report was
    made without a running server. Decisions need none of them.
    """
    disk: StatusPart
    """Whether the ledger's disk has room."""
    checkpoints: StatusPart
    """Whether the service keeps signed checkpoints of every chain (kept), when it last looked at all of them
    (looked_at, UTC or null), and how many chains no longer contain the last checkpoint that was kept (refused). note
    says why none are kept.
    """
    workers: NotRequired[StatusPart]
    """The processes that answer requests: asked, running, crash_looping, deaths and last_deaths. Present under `gate
    serve`.
    """
    trusted_adapters: StatusPart
    """What can be invoked, and what holds a worker on the service's machine: registered, required and in_force.
    Where none can run, ok is as it is without them.
    """
    policy_tables: StatusPart
    """The tables that policy services answer from, as tables: service, origin (operator, or release where it came
    with the product), hash, entries, and fault where the operator's file is broken. The last good table then stays
    in force, and ok is as it is without them.
    """
    contracts: dict[str, str]
    """The label of each contract of the protocol, those among them whose parts come with later releases."""


class Probe(TypedDict):
    """Answer to a health probe: whether the process lives, or whether it is ready."""

    ok: bool
    """Whether the answer is good."""
    status: Literal["alive", "ready", "degraded"]
    """The same in one word."""


class RequestLimits(TypedDict):
    """Bounds of requests."""

    request_bytes: int
    """Largest body of a request."""
    verify_bytes: int
    """Largest body at the verify endpoints."""
    nesting: int
    """How deep arrays and objects may nest."""
    idempotency_key_characters: int
    """Longest idempotency key."""
    sandbox_bytes: NotRequired[int]
    """Largest body at the sandbox."""
    sandbox_requests_per_minute: NotRequired[int]
    """Requests that one address may send to the sandbox in a minute."""
    pilot_requests_per_minute: NotRequired[int]
    """Submissions, and confirmations, of pilots that one address may send in a minute."""


class RuntimeConfig(TypedDict):
    """What a caller may have to know of how this service is set up; nothing secret."""

    ok: bool
    """Always true."""
    version: str
    """Version of the service."""
    interface_version: str
    """Version of this interface description."""
    base_url: str
    """Where callers reach the service."""
    schema_url: str
    """Where the Rulebook v1 schema is published; records cite it."""
    openapi_url: str
    """Path of the interface description."""
    docs_url: str
    """Path of the same as a page."""
    modes: dict[str, Literal["binding", "advisory", "unconfigured"]]
    """How each mode of a Decision Request is answered: binding, advisory, or unconfigured (503)."""
    binding_modes: list[str]
    """The binding modes that can be used here."""
    response_views: list[str]
    """The views of a record."""
    receipt_signing: ReceiptSigning
    """How receipts are signed."""
    registry_signing: RegistrySigning
    """How attestations and registrations are signed."""
    limits: RequestLimits
    """Bounds of requests."""


class ProofMetrics(TypedDict):
    """How much proof the instance holds, over all of its scopes."""

    ok: bool
    """Always true."""
    generated_at: str
    """When it was counted, UTC."""
    status: Readiness
    """Readiness at that moment."""
    scopes: int
    """Scopes, each with its own chain."""
    chain_entries: int
    """Entries of all chains together."""
    registered_rulebooks: int
    """Rulebook versions that scopes have registered."""
    receipt_keys: int
    """Published receipt keys, active and past."""
    attestation_keys: int
    """Published attestation keys, active and past."""
    receipt_signing: ReceiptSigning
    """How receipts are signed."""
    registry_signing: RegistrySigning
    """How attestations and registrations are signed."""


class PilotSubmission(TypedDict):
    """The answer of POST /api/pilot. It is the same whether or not the e-mail address was sent before."""

    pilot_id: str
    """The submission's id; the operator's message repeats it."""
    status: str
    """The submission waits to be confirmed."""


class PilotConfirmation(TypedDict):
    """The answer of POST /api/pilot/confirm."""

    status: str
    """The submission is confirmed, now or before."""


# What is answered: Documentation.


class EndpointEntry(TypedDict):
    """One method of one path."""

    method: str
    """The HTTP method."""
    path: str
    """The path, parameters in braces."""
    summary: str
    """What it does."""
    auth: Literal["public", "key", "optional key", "metrics token"]
    """What the caller has to send."""
    access: str
    """What a key has to allow, or public, or metrics."""
    rate_limited: bool
    """Whether the plan's rate and cap hold here."""
    statuses: list[int]
    """Every status that it answers, ascending."""


class SchemaLink(TypedDict):
    """A published JSON Schema."""

    name: str
    """Its name."""
    url: str
    """Its path."""


class Plan(TypedDict):
    """What a scope on this plan may do."""

    plan: str
    """Its name."""
    requests_per_minute: int | None
    """Decide requests a key in a sliding minute; null for no limit."""
    records_per_month: int | None
    """Records a scope in a UTC month, where the operator set no other cap; null for no cap."""


class RateLimits(TypedDict):
    """What the plans allow."""

    scope: str
    """What is counted, and for whom."""
    headers: list[str]
    """The response headers that tell of it."""
    plans: list[Plan]
    """The plans."""


class DocsMetadata(TypedDict):
    """The interface in short: every endpoint, every schema, and the limits."""

    ok: bool
    """The metadata is complete."""
    interface_version: str
    """Version of this interface description."""
    openapi_url: str
    """Path of the OpenAPI document."""
    docs_url: str
    """Path of the page that renders it."""
    endpoints: list[EndpointEntry]
    """The endpoints, in the order of the OpenAPI document."""
    schemas: list[SchemaLink]
    """The published JSON Schemas, by name."""
    rate_limits: RateLimits
    limits: dict[str, int]
    """The largest of what the service takes, by name: bytes, depths and counts."""
