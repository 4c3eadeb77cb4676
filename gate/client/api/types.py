# Generated from the OpenAPI document by `make client`. Do not edit: change the document, in schemas/, or the
# generator, in api/description/client.
"""The types of requests and responses, for editors and type checkers. Nothing is checked at runtime.

Responses may have new fields, and enums may have new words in later releases. Programs must ignore unknown fields, and
handle unknown words. Hashes are SHA-256 in lower-case hex. Times are UTC timestamps such as `2026-01-31T12:00:00.000Z`.
Cursors and ids are opaque.
"""

# Annotations are evaluated here, as they are written: as texts, TypedDict would not see which members are NotRequired.

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Json: TypeAlias = Any
"""Any JSON value, as from `json.loads`. The document does not describe it further, so check it before use."""

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


# Requests: Decide.


class RulebookRef(TypedDict):
    """A registered rulebook instead of its body: `{rulebook_id, version}` or `{hash}`. With `{rulebook_id}` alone,
    its route chooses the version.
    """

    hash: NotRequired[str]
    """Hash of a registered rulebook, in lower-case hex."""
    rulebook_id: NotRequired[str]
    """Its `rulebook_id`."""
    version: NotRequired[str]
    """The version; by default the one that the route of `rulebook_id` leads to."""


class AdapterInvocation(TypedDict):
    """The field `adapter` of a Decision Request: one call of one registered adapter."""

    adapter_id: str
    """The adapter's id."""
    version: str
    """The adapter's exact version."""
    manifest_hash: str
    """Hash of the adapter's manifest, in lower-case hex."""
    input: Mapping[str, Json]
    """The adapter's input, as its manifest's `input_schema` requires."""


class DecisionContext(TypedDict):
    """The subject of the decision. Other fields are allowed; the advisory modes use some of them."""

    workflow: NotRequired[str]
    """Your workflow."""
    source_record_id: NotRequired[str]
    """The object of the workflow, in your terms."""
    requested_action: NotRequired[str]
    """The action; `action_binding.proposed_action` of the record."""
    target_system: NotRequired[str]
    """The system to change; `action_binding.system` of the record."""
    target_object_id: NotRequired[str]
    """The object to change; `action_binding.resource` of the record."""
    mutation: NotRequired[str]
    """The change, in your terms; `action_binding.mutation` of the record."""
    actor: NotRequired[Json]
    """The actor who asks; copied into `action_binding`."""
    subject: NotRequired[Json]
    """The person or object that the action concerns; copied into `action_binding`."""
    amount: NotRequired[Json]
    """The amount; copied into `action_binding` unchanged."""
    currency: NotRequired[Json]
    """The currency; copied into `action_binding`."""
    inputs: NotRequired[Mapping[str, Json]]
    """The facts that the rulebook tests."""


class DecisionRequest(TypedDict):
    """The body of `POST /api/decide`. In mode `rulebook`, send exactly one of `rulebook` and `rulebook_ref`, and at
    most one of `context.inputs` and `adapter`.
    """

    question: NotRequired[str]
    """The decision in plain language. Required in the advisory modes; only descriptive in mode `rulebook`."""
    mode: NotRequired[Mode]
    """`rulebook` gives a binding verdict. `single` (the default), `multi`, and `runtime` are advisory."""
    rulebook: NotRequired[Mapping[str, Json]]
    """A whole Rulebook v1."""
    rulebook_ref: NotRequired[RulebookRef]
    """A registered rulebook instead of its body: `{rulebook_id, version}` or `{hash}`. With `{rulebook_id}` alone,
    its route chooses the version.
    """
    binding_mode: NotRequired[str]
    """`direct_declarative_rulebook` or `trusted_adapter_facts_then_declarative_rulebook`. Anything else is rejected
    with `RULEBOOK_BINDING_MODE_UNSUPPORTED`.
    """
    adapter: NotRequired[AdapterInvocation]
    """One call of a registered trusted adapter, instead of `context.inputs`."""
    context: NotRequired[DecisionContext]
    """The subject of the decision. Other fields are allowed; the advisory modes use some of them."""
    occurred_at: NotRequired[str]
    """When the event behind the decision happened, UTC: `2026-01-31T12:00:00.000Z`, at most 5 minutes ahead of the
    service's clock. It is stored with the request, not in the record.
    """
    response_view: NotRequired[View]
    """The view of the answer. It is not part of the input hash."""


# Requests: Lifecycle.


class Executor(TypedDict):
    """The executor who performed it."""

    type: str
    """The type of executor, for example `service`, `agent`, or `person`."""
    id: str
    """The executor's id."""


class ExecutionReport(TypedDict):
    """A report of what happened to the action."""

    execution_status: ExecutionStatus
    """What happened to the action."""
    execution_result: NotRequired[str]
    """The result, in the caller's words."""
    action_taken: NotRequired[str]
    """The label of the action that was performed. If it is not the decision's action, the receipt has the flag
    `ACTION_TAKEN_MISMATCH`.
    """
    target_system: NotRequired[str]
    """The system that was changed."""
    target_object_id: NotRequired[str]
    """The object that was changed."""
    mutation: NotRequired[str]
    """The change, in the caller's terms."""
    external_ref: NotRequired[str]
    """The caller's reference to the transaction."""
    execution_id: NotRequired[str]
    """The caller's id of the execution."""
    executor: NotRequired[Executor]
    """The executor who performed it."""
    decision_record_hash: NotRequired[str]
    """The record's `record_hash`. If sent, it must equal that of the stored record."""
    decision_receipt_hash: NotRequired[str]
    """The record's `receipt_hash`. If sent, it must equal that of the stored record."""
    action_binding: NotRequired[Mapping[str, Json]]
    """The binding that the executor acted on, or part of it. Each field is compared with the record's."""
    state_before_hash: NotRequired[str]
    """A hash of the target's state before the action, with its algorithm: `sha256:...`."""
    state_after_hash: NotRequired[str]
    """A hash of the target's state after the action, with its algorithm."""
    state_before_ref: NotRequired[str]
    """Where the earlier state is kept."""
    state_after_ref: NotRequired[str]
    """Where the later state is kept."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence kept elsewhere."""
    executed_at: NotRequired[str]
    """When the action was performed, with a time zone. It is stored in UTC with milliseconds."""


class OutcomeReport(TypedDict):
    """A report of what the action led to."""

    outcome_status: OutcomeStatus
    """What the action led to. Use `pending` and `review` while the result is not clear; the others are final until
    another outcome is reported.
    """
    action_executed: NotRequired[bool]
    """Whether the action was executed at all."""
    action_taken: NotRequired[str]
    """The label of the action that was performed."""
    target_system: NotRequired[str]
    """The system that was changed."""
    target_object_id: NotRequired[str]
    """The object that was changed."""
    mutation: NotRequired[str]
    """The change, in the caller's terms."""
    external_ref: NotRequired[str]
    """The caller's reference to the transaction."""
    decision_record_hash: NotRequired[str]
    """The record's `record_hash`. If sent, it must equal that of the stored record."""
    decision_receipt_hash: NotRequired[str]
    """The record's `receipt_hash`. If sent, it must equal that of the stored record."""
    observed_metrics: NotRequired[dict[str, float]]
    """The measured values, by the metric's name. Each name has 1 to 120 characters."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence kept elsewhere."""
    executed_at: NotRequired[str]
    """When the action was performed, with a time zone. It is stored in UTC with milliseconds."""
    occurred_at: NotRequired[str]
    """When the outcome happened, UTC: `2026-01-31T12:00:00.000Z`, at most 5 minutes ahead of the service's clock."""


class ResolutionRequest(TypedDict):
    """The owner's answer to a held decision."""

    resolution: Literal["granted", "refused", "expired"]
    """The answer. `granted` lets the held action run until the grant expires. `refused` and `expired` keep it held
    permanently.
    """
    resolved_by: str
    """The person who answered, according to the caller; not blank, and without control characters. The service also
    records the key that sent it.
    """
    note: NotRequired[str]
    """The reason, in the person's words. It is kept permanently: leave out personal data of customers."""
    evidence: NotRequired[list[str]]
    """References to evidence kept elsewhere, such as ticket numbers. The resolution repeats them as `evidence_refs`."""
    decision_record_hash: NotRequired[str]
    """The record's `record_hash`. If sent, it must equal that of the stored record."""
    decision_receipt_hash: NotRequired[str]
    """The record's `receipt_hash`. If sent, it must equal that of the stored record."""


class CrmSyncReport(TypedDict):
    """A report of what a CRM holds about the decision."""

    sync_status: SyncStatus
    """The result of the sync."""
    sync_direction: NotRequired[SyncDirection]
    """`writeback`: from the decision into the CRM. `inbound`: from the CRM."""
    crm_provider: NotRequired[str]
    """The CRM."""
    crm_object_type: NotRequired[str]
    """The type of the CRM's object."""
    crm_object_id: NotRequired[str]
    """The CRM's object."""
    crm_record_url: NotRequired[str]
    """The URL of the object, without credentials."""
    mapped_fields: NotRequired[Mapping[str, Json]]
    """The mapped fields with their values. Never credentials. Each name has 1 to 200 characters. No value at any
    depth may be null, an empty string, an empty list, or an empty object, because `sync_hash` would not cover it.
    """
    decision_record_hash: NotRequired[str]
    """The record's `record_hash`. If sent, it must equal that of the stored record."""
    decision_receipt_hash: NotRequired[str]
    """The record's `receipt_hash`. If sent, it must equal that of the stored record."""
    decision_verdict: NotRequired[str]
    """The record's verdict. If sent, it must equal that of the stored record."""
    decision_action: NotRequired[str]
    """The record's `action`. If sent, it must equal that of the stored record."""
    policy_id: NotRequired[str]
    """The record's `policy_id`. If sent, it must equal that of the stored record."""
    policy_version: NotRequired[str]
    """The record's `policy_version`. If sent, it must equal that of the stored record."""


# Requests: Verify.


class RecordVerificationRequest(TypedDict):
    """The record in a wrapper. If the path contains a decision id, you can omit the record: the stored one is then
    verified.
    """

    record: NotRequired[Mapping[str, Json]]
    """A full Decision Record, as it was returned."""
    input: NotRequired[Json]
    """The Decision Request that belongs to it. Its hashes are then checked as well."""
    public_key: NotRequired[str | None]
    """An Ed25519 public key in PEM (SPKI), for diagnosis only. It never makes a record verified."""


class PacketVerificationRequest(TypedDict):
    """The packet in a wrapper."""

    packet: Mapping[str, Json]
    """The Decision Packet, as exported."""
    input: NotRequired[Json]
    """The Decision Request that belongs to the record. By default, the packet's own is used."""
    public_key: NotRequired[str | None]
    """An Ed25519 public key in PEM (SPKI), for diagnosis only. It never makes a packet verified."""
    checkpoint: NotRequired[Mapping[str, Json] | None]
    """A checkpoint of the chain that you kept. The packet must agree with it, and the packet's links must reach it."""


# Requests: Replay.


class ReplayRequest(TypedDict):
    """The body of a replay or a diff. An empty body means `{}`."""

    replay_mode: NotRequired[str]
    """`historical` (the default of replay): the stored request, with the rulebook that the record cites. `current`
    (the only mode of diff): with the version that the scope registered last. Anything else is rejected with
    `REPLAY_MODE_INVALID`.
    """
    input: NotRequired[Mapping[str, Json]]
    """A whole Decision Request in mode `rulebook`, decided instead of the stored one. Only in mode `current`. Its
    `response_view` has no effect.
    """
    response_view: NotRequired[View]
    """The view of `decision` in the answer."""


class Scenario(TypedDict):
    """One change to the context, or to the adapter's input."""

    scenario_id: str
    """Your id for it."""
    label: NotRequired[str]
    """A label for people; the `scenario_id` by default."""
    context_patch: Mapping[str, Json]
    """A merge patch (RFC 7396) over the stored context: null removes a field, an object is merged, and any other
    value replaces. Facts are under `inputs`.
    """
    adapter_input_patch: NotRequired[Mapping[str, Json]]
    """A merge patch over the stored input of the adapter, if an adapter made the facts."""


class CounterfactualsRequest(TypedDict):
    """Scenarios to simulate with the latest version of the rulebook."""

    scenarios: list[Scenario]
    """The scenarios, 1 to 50. Their ids are unique."""
    response_view: NotRequired[View]
    """How much of each scenario the answer shows: `standard` adds the evidence, and `full` also adds the evaluation."""


# Requests: Policy services.


class RefundWorkflowRequest(TypedDict):
    """A help desk's question about a refund."""

    vendor: str
    """The vendor, as the policy table names it."""
    region: NotRequired[str]
    """The country of the customer as ISO 3166-1 alpha-2, with a subdivision if it matters, for example `US` or
    `US-CA`.
    """
    plan: NotRequired[str]
    """The plan or product category."""
    days_since_purchase: NotRequired[float]
    """How many days ago the purchase was made. Fractions count."""
    ticket_id: str
    """The ticket's id in your help desk."""
    conditions_met: NotRequired[list[str]]
    """The names of the vendor's conditions that are met, as an earlier answer listed them."""


# Requests: Operations.


class PilotRequest(TypedDict):
    """A request to try the service in a pilot, with the person and the purpose. Values may not contain control
    characters or line breaks, and may not be blank.
    """

    name: str
    """The person's name."""
    email: str
    """The person's e-mail address, such as ada@example.com."""
    company: str
    """The company's name."""
    use: str
    """The planned use of the service."""


class PilotConfirmationRequest(TypedDict):
    """The confirmation of a pilot request."""

    pilot_id: str
    """The id of the pilot request."""
    token: str
    """The token that the operator sent to the person."""


# Responses: Decide.


class ActionBinding(TypedDict):
    """The action that the decision is bound to, from the request's context."""

    system: str
    """`context.target_system`."""
    resource: str
    """`context.target_object_id`."""
    proposed_action: str
    """`context.requested_action`."""
    mutation: NotRequired[str]
    """`context.mutation`."""
    actor: NotRequired[Json]
    """The actor who asked, as sent."""
    subject: NotRequired[Json]
    """The person or object that the action concerns, as sent."""
    amount: NotRequired[Json]
    """The amount, as sent."""
    currency: NotRequired[Json]
    """The currency, as sent."""


class EvidenceSource(TypedDict):
    """A source."""

    id: str
    """The source."""
    type: Literal["rulebook", "evaluation", "adapter", "prompt", "advisory"]
    """The type of source."""
    snapshot_hash: str
    """Hash of the source as it was used."""


class EvidenceManifest(TypedDict):
    """The evidence with the hashes of its sources."""

    codes: list[str]
    """The evidence codes."""
    sources: list[EvidenceSource]
    """The sources of the evidence."""


class InvalidField(TypedDict):
    """A fact with a wrong type."""

    field: str
    """The fact."""
    expected: str
    """The type that `input_schema` declares."""
    observed_type: str
    """The type that was sent."""


class EvaluatedTest(TypedDict):
    """A test. `observed` is absent if the fact is absent, and is `{sha256, bytes}` if it is larger than 1 KiB."""

    path: str
    """The place of the test in its rule, for example `condition.all[0]`."""
    field: str
    """The fact tested."""
    operator: str
    """The operator."""
    passed: bool
    """Whether the test held."""
    expected: NotRequired[Json]
    """The rule's value; absent with `exists` and `not_exists`."""
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
    """Every test of the condition; none is skipped."""


class Evaluation(TypedDict):
    """How the rulebook reached its outcome."""

    matched: bool
    """Whether a rule matched."""
    missing_fields: list[str]
    """Required facts that are absent."""
    invalid_fields: list[InvalidField]
    """Facts with a wrong type."""
    rules: list[RuleEvaluation]
    """The rules that were tried, in order, up to the one that matched."""


class DecisionRecordAdvisoryEvaluationAnswerScores(TypedDict):
    """An option with its score."""

    option: str
    """The option, as in `context.options`."""
    score: float
    """0 (unsuitable) to 100 (suitable)."""
    reason: str
    """The reason."""


class DecisionRecordAdvisoryEvaluationAnswerScorecard(TypedDict):
    """An option with its score."""

    option: str
    """The option, as in `context.options`."""
    score: float
    """0 (unsuitable) to 100 (suitable)."""
    reason: str
    """The reason."""


class DecisionRecordAdvisoryEvaluationAnswer(TypedDict):
    """The answer as the upstream gave it. Mode `single` has `answer` and `reason`. Mode `multi` has `scores`. Mode
    `runtime` has `recommended`, `reason`, and `scorecard`.
    """

    answer: NotRequired[Literal["yes", "no", "unclear"]]
    """Mode `single`: the answer."""
    reason: NotRequired[str]
    """Modes `single` and `runtime`: the reason."""
    scores: NotRequired[list[DecisionRecordAdvisoryEvaluationAnswerScores]]
    """Mode `multi`: each option once."""
    recommended: NotRequired[str]
    """Mode `runtime`: one of the options."""
    scorecard: NotRequired[list[DecisionRecordAdvisoryEvaluationAnswerScorecard]]
    """Mode `runtime`: each option once."""


class DecisionRecordAdvisoryEvaluation(TypedDict):
    """The upstream's answer; null after an erasure."""

    mode: Literal["single", "multi", "runtime"]
    """The mode of the request."""
    model: str
    """The model that was asked: the setting `advisory_model`."""
    answer: DecisionRecordAdvisoryEvaluationAnswer
    """The answer as the upstream gave it. Mode `single` has `answer` and `reason`. Mode `multi` has `scores`. Mode
    `runtime` has `recommended`, `reason`, and `scorecard`.
    """


class RecordedPolicyBundle(TypedDict):
    """The policy's identity."""

    id: str
    """The rulebook's id."""
    version: str
    """The rulebook's version."""
    hash: str
    """Hash of the rulebook."""
    hash_algorithm: str
    """The hash algorithm."""
    canonicalization: str
    """How JSON is turned into the bytes that are hashed."""
    source: NotRequired[str]
    """Where the policy comes from."""


class RulebookIdentity(TypedDict):
    """The rulebook that decided."""

    schema_version: str
    """Version of the rulebook format."""
    id: str
    """The rulebook's id."""
    version: str
    """Its version."""
    hash: str
    """Hash of the rulebook."""


class RulebookContract(TypedDict):
    """The contract by which the rulebook was validated and evaluated."""

    schema_version: str
    """Version of the rulebook format."""
    schema_url: str
    """Where the schema is published."""
    schema_hash: str
    """Hash of the schema."""
    evaluator_version: str
    """Version of the evaluator."""


class RuntimeBinding(TypedDict):
    """Which component decides, and where the facts come from."""

    production_core: str
    """The component that makes the verdict."""
    binding_mode: Literal["direct_declarative_rulebook", "trusted_adapter_facts_then_declarative_rulebook"]
    """Where the facts come from."""
    verdict_authority: str
    """The component that selects the verdict."""
    customer_supplied_code: str
    """How code from callers is treated."""
    adapter_authority: NotRequired[str]
    """The authority of an adapter, in adapter mode."""


class RegistryAttestation(TypedDict):
    """The registry key's signature over the registration."""

    registry_attestation_version: str
    """Version of the attestation format."""
    status: Literal["signed", "unsigned"]
    """`signed` if registry signing is configured."""
    attestation_hash: str
    """The hash that was signed: that of the registration."""
    key_id: str | None
    """The registry key that signed; null if unsigned."""
    signature_algorithm: str
    """The signature algorithm."""
    signature: str | None
    """The signature; null if unsigned."""


class AdapterDependency(TypedDict):
    """The trusted adapter that the rulebook is bound to, if there is one."""

    adapter_id: str
    """The adapter's id."""
    version: str
    """The adapter's version."""
    manifest_hash: str
    """Hash of the adapter's manifest."""
    implementation_hash: str
    """The hash of its source."""


class RulebookRegistration(TypedDict):
    """The rulebook's registration in the scope."""

    rulebook_registry_version: str
    """Version of the registration format."""
    schema_version: str
    """Version of the rulebook format."""
    rulebook_id: str
    """The rulebook's id."""
    version: str
    """Its version."""
    hash: str
    """Hash of the rulebook."""
    evaluator_version: str
    """The evaluator it is bound to."""
    hash_algorithm: str
    """The hash algorithm."""
    canonicalization: str
    """How JSON is turned into the bytes that are hashed."""
    scope_hash: str
    """Identifies the scope without naming it."""
    registered_at: str
    """When it was registered, UTC."""
    registry_attestation: RegistryAttestation
    """The registry key's signature over the registration."""
    adapter_dependency: NotRequired[AdapterDependency]
    """The trusted adapter that the rulebook is bound to, if there is one."""


class AttestedOutcome(TypedDict):
    """The outcome."""

    status: Literal["ok", "needs_input"]
    """`needs_input` if a required fact was missing or had a wrong type."""
    verdict: Verdict
    """The verdict."""
    application_verdict: str
    """The rulebook's own verdict."""
    action: str
    """Action label."""
    reason_code: str
    """Reason code."""
    matched_rule_id: str | None
    """The rule that matched; null if none did."""


class AttestedBundle(TypedDict):
    """The attested evaluation. It has no date, no decision id, and no data about the environment."""

    engine: str
    """The component that evaluated."""
    evaluator_version: str
    """Version of the evaluator."""
    rulebook: RulebookIdentity
    """The rulebook: `schema_version`, `id`, `version`, `hash`."""
    input_hash: str
    """Hash of the facts."""
    outcome: AttestedOutcome
    """The outcome."""
    runtime_binding: RuntimeBinding
    """As in the record."""
    trusted_adapter: dict[str, Json] | None
    """The adapter invocation; null if there is none."""


class AttestationSignature(TypedDict):
    """The signature over the hex digits of `bundle_hash`."""

    schema_version: str
    """Version of the signature format."""
    algorithm: str
    """The signature algorithm."""
    signed_field: str
    """The field that was signed."""
    status: Literal["signed", "unsigned", "error"]
    """Whether it is signed."""
    key_id: str | None
    """The registry key that signed; null if unsigned."""
    signature: str | None
    """The signature; null if unsigned."""


class RulebookAttestation(TypedDict):
    """The registry key's signature over this evaluation."""

    schema_version: str
    """Version of the attestation format."""
    bundle: AttestedBundle
    """The attested evaluation. It has no date, no decision id, and no data about the environment."""
    bundle_hash: str
    """Hash of `bundle`."""
    signature: AttestationSignature
    """The signature over the hex digits of `bundle_hash`."""


class ReceiptSigner(TypedDict):
    """The key that signed the receipt."""

    algorithm: Literal["ed25519", "hmac-sha256"]
    """The signature algorithm of the receipt."""
    key_id: str
    """As receipt_key_id of the record."""
    public_key_fingerprint: str | None
    """As receipt_public_key_fingerprint of the record."""


class Integrity(TypedDict):
    """How the record is protected."""

    canonicalization: str
    """How JSON is turned into the bytes that are hashed."""
    hash_algorithm: str
    """The hash algorithm."""
    policy_hash: str
    """As in the record."""
    policy_bundle_hash: str
    """As in the record."""
    signature: ReceiptSigner | None
    """The receipt's signature in short; null if unsigned."""


class DecisionConfidence(TypedDict):
    """Present once the scope has outcome records for the policy. The signature does not cover this field."""

    decision_confidence_version: str
    """Version of this format."""
    score: float
    """The success rate that the outcomes of similar decisions support: 0 to 1, six decimals."""
    level: ConfidenceLevel
    """The score in one word: `high`, `medium`, `low`, or `insufficient`."""
    similar_decisions: int
    """How many decisions of the same policy, version, verdict, and action have an outcome."""
    policy_stability: float | None
    """1 minus the gap by which this version's interval lies below the policy's interval; 1 if the two overlap. Null
    below 20 terminal outcomes.
    """
    recommendation: str
    """A recommendation. It authorizes nothing."""
    confidence_hash: str
    """Hash of this object without this field."""


class Erased(TypedDict):
    """Present after an erasure. The signature does not cover it; an erasure entry of the chain confirms it."""

    erasure_id: str
    """The chain entry of the erasure."""
    erased_at: str
    """When it was erased."""
    members: list[Literal["adapter_facts", "evaluation", "input"]]
    """The erased parts: fields of the record, which are null, and `input`, the stored request."""


class ChainPlace(TypedDict):
    """The record's place in its scope's chain. The signature does not cover this field."""

    decision_chain_version: str
    """Version of the link format."""
    chain_id: str
    """The scope's chain."""
    chain_position: int
    """The record's position in the chain, counted from 1."""
    entry_type: EntryType
    """The kind of entry that was appended."""
    leaf_hash: str
    """Hash of `decision_id`, `record_hash`, and `receipt_hash`."""
    link_hash: str
    """Hash of the link."""
    merkle_root: str
    """The rolling root after the link."""


class DecisionRecordDecisionContract(TypedDict):
    """Present in every view of every advisory record, and in no other record. It says that the record authorizes
    nothing.
    """

    authority: str
    """Always `advisory_only`."""
    production_verdict: bool
    """Always false: it is not a verdict for production."""
    production_binding_required: bool
    """Always true: a production action needs a decision in mode `rulebook`."""


class DecisionRecord(TypedDict):
    """The full Decision Record. Only this view can be verified. Views may have fewer fields, so fields that only
    some views have are not required.
    """

    decision_record_version: str
    """Version of the record format."""
    decision_protocol_version: NotRequired[str]
    """Version of the protocol."""
    decision_id: str
    """The decision's id."""
    request_id: str
    """A short id for logs."""
    idempotency_key: NotRequired[str]
    """The idempotency key, if one was sent."""
    c: Literal["yes", "no", "unclear"]
    """The verdict in short; `unclear` for `review`."""
    v: str
    """A detail of the verdict: the application verdict, or for an advisory answer `approved`, `denied`, or
    `unclear`.
    """
    verdict: Verdict
    """Only `yes` lets the action proceed, and only in a record without a `decision_contract`."""
    application_verdict: str
    """The rulebook's own word for the verdict; `ADVISORY` if no rulebook decided."""
    reason_code: str
    """The reason code of the matched rule, of the default outcome, or of missing or invalid input."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome and for missing or invalid input."""
    action: str
    """The action label of the outcome."""
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
    """Hash of the rulebook, or of the prompt template for an advisory record."""
    source_hash: NotRequired[str]
    """Hash of the rulebook."""
    policy_bundle: NotRequired[RecordedPolicyBundle]
    policy_bundle_hash: str
    """Hash of `policy_bundle`."""
    rulebook: NotRequired[RulebookIdentity]
    rulebook_contract: NotRequired[RulebookContract]
    evaluator_version: str
    """Version of the evaluator."""
    runtime_binding: NotRequired[RuntimeBinding]
    rulebook_registry: NotRequired[RulebookRegistration]
    registry_attestation: NotRequired[RegistryAttestation]
    """A copy of `rulebook_registry.registry_attestation`."""
    rulebook_attestation: NotRequired[RulebookAttestation]
    trusted_adapter: NotRequired[dict[str, Json]]
    """The adapter invocation, in adapter mode."""
    adapter_facts: NotRequired[dict[str, Json] | None]
    """The facts that the adapter made, in adapter mode."""
    input_hash: NotRequired[str]
    """Hash of the request body without `response_view`."""
    output_hash: NotRequired[str]
    """Hash of the outcome with its evidence."""
    record_hash: str
    """Hash of the record's envelope."""
    receipt_hash: str
    """Hash over `record_hash` and the input, output, policy, binding, and evidence hashes."""
    receipt_key_id: NotRequired[str]
    """The key that signed, if receipt signing is configured."""
    receipt_signature: NotRequired[str]
    """The key's signature."""
    receipt_signature_algorithm: NotRequired[Literal["ed25519", "hmac-sha256"]]
    """The signature algorithm of the receipt."""
    receipt_public_key_fingerprint: NotRequired[str | None]
    """SHA-256 of the public key's PEM text; null for HMAC."""
    replay_url: str
    """A path relative to the service's base address."""
    verify_url: str
    """A path relative to the service's base address."""
    decision_url: str
    """A path relative to the service's base address."""
    integrity: NotRequired[Integrity]
    decision_confidence: NotRequired[DecisionConfidence]
    confidence_hash: NotRequired[str]
    """A copy of `decision_confidence.confidence_hash`."""
    erased: NotRequired[Erased]
    audit_chain: ChainPlace
    created_at: NotRequired[str]
    """When the decision was made, UTC with milliseconds."""
    decision_contract: NotRequired[DecisionRecordDecisionContract]


class SandboxAnswer(TypedDict):
    """The answer of `POST /api/sandbox/decide`: the fields of a Decision Record, without anything binding. It is not
    signed or stored, and never verifies. The views `standard` and `full` add fields, as for a record.
    """

    decision_record_version: str
    """The version of the sandbox format. No record has it."""
    sandbox: bool
    """Always true."""
    notice: str
    """A sentence about the limits of this answer."""
    decision_protocol_version: NotRequired[str]
    """Version of the protocol."""
    decision_id: str
    """An id of the sandbox. Nothing is stored under it."""
    request_id: str
    """A short id for logs."""
    c: Literal["yes", "no", "unclear"]
    """The verdict in short; `unclear` for `review`."""
    v: str
    """A detail of the verdict: the application verdict."""
    verdict: Verdict
    """The rulebook's verdict. It authorizes nothing here."""
    application_verdict: str
    """The rulebook's own verdict."""
    reason_code: str
    """The reason code of the matched rule, of the default outcome, or of missing or invalid input."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome and for missing or invalid input."""
    action: str
    """The action label of the outcome."""
    action_binding: NotRequired[ActionBinding]
    """The action that a decision would be bound to."""
    evidence: NotRequired[list[str]]
    """Evidence codes."""
    evidence_manifest: NotRequired[EvidenceManifest]
    """The evidence with the hashes of its sources."""
    evaluation: NotRequired[Evaluation]
    """How the rulebook reached its outcome."""
    policy_id: NotRequired[str]
    """The rulebook's id."""
    policy_version: NotRequired[str]
    """The rulebook's version."""
    policy_hash: str
    """Hash of the rulebook, as in a decision."""
    source_hash: NotRequired[str]
    """Hash of the rulebook."""
    policy_bundle: NotRequired[RecordedPolicyBundle]
    """The policy's identity."""
    policy_bundle_hash: str
    """Hash of `policy_bundle`, as in a decision."""
    rulebook: RulebookIdentity
    """The rulebook that was evaluated."""
    rulebook_contract: NotRequired[RulebookContract]
    """The contract by which the rulebook was validated and evaluated."""
    evaluator_version: str
    """Version of the evaluator."""
    runtime_binding: NotRequired[RuntimeBinding]
    """Which component would decide, and where the facts come from."""
    rulebook_attestation: NotRequired[RulebookAttestation]
    """The attestation of this evaluation, always unsigned; its `bundle_hash` is the same as in a decision."""
    input_hash: NotRequired[str]
    """Hash of the request body without `response_view`, as in a decision."""
    output_hash: NotRequired[str]
    """Hash of the outcome with its evidence, as in a decision."""
    record_hash: str
    """Hash of the envelope under the version `decision_sandbox_v1`. No record has it."""
    receipt_hash: str
    """Hash over `record_hash` and the other hashes, under the version `decision_sandbox_v1`. No receipt has it."""
    integrity: NotRequired[Integrity]
    """How a record is protected; its signature is always null here."""
    created_at: NotRequired[str]
    """When it was evaluated, UTC with milliseconds."""


# Responses: Records.


class FoundDecisionDecisionContract(TypedDict):
    """Present on every advisory decision, and on no other. It says that the decision authorizes nothing, whatever
    its verdict.
    """

    authority: str
    """Always `advisory_only`."""
    production_verdict: bool
    """Always false: it is not a verdict for production."""
    production_binding_required: bool
    """Always true: a production action needs a decision in mode `rulebook`."""


class FoundDecision(TypedDict):
    """The main fields of a Decision Record. `decision_url` has the rest."""

    decision_id: str
    """The decision's id."""
    request_id: str
    """A short id for logs."""
    created_at: str
    """When it was decided, UTC with milliseconds."""
    verdict: Verdict
    """The verdict; binding unless the decision is advisory."""
    application_verdict: str
    """The rulebook's own word for the verdict."""
    reason_code: str
    """The reason code."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome."""
    action: str
    """The action label of the outcome."""
    action_binding: ActionBinding
    """The action that the decision is bound to: `system`, `resource`, `proposed_action`, and other values from the
    context.
    """
    policy_id: str
    """The rulebook's id; `advisory.<mode>` for an advisory decision."""
    policy_version: str
    """The rulebook's version, or that of the prompt template for an advisory decision."""
    decision_contract: NotRequired[FoundDecisionDecisionContract]
    """Present on every advisory decision, and on no other. It says that the decision authorizes nothing, whatever
    its verdict.
    """
    state: NotRequired[Literal["held", "granted", "refused", "expired", "executed"]]
    """The state of the review. Absent on decisions that were not held for an owner."""
    owner: NotRequired[str | None]
    """Reviews: the owner according to the scope's settings; null if none was set."""
    due_at: NotRequired[str | None]
    """Reviews: when it expires, UTC; null without a time limit."""
    age_seconds: NotRequired[int]
    """Reviews: the seconds from the decision to its resolution, or until now."""
    grant_ends_at: NotRequired[str | None]
    """Reviews: when the grant ends, UTC; act before then. Null without a grant."""
    record_hash: str
    """Hash of the record."""
    chain_position: int
    """The position in the scope's chain."""
    decision_url: str
    """Relative path of the record."""


class DecisionSearch(TypedDict):
    """A page of your scope's decisions, newest first unless the query asks for another order."""

    count: int
    """The number of decisions on this page."""
    decisions: list[FoundDecision]
    """The decisions found. A page can hold fewer than `limit`, or none, and more may follow."""
    next_cursor: str | None
    """The `cursor` of the next page; null at the end."""


# Responses: Lifecycle.


class ExecutionReceipt(TypedDict):
    """A report of what happened to a decided action. It is hashed and linked to the record and its action binding.
    Fields that were not sent are absent, except the state hashes.
    """

    decision_protocol_version: str
    """Version of the protocol."""
    decision_execution_version: str
    """Version of the report format."""
    execution_receipt_id: str
    """The id of the report."""
    decision_id: str
    """The decision that the report is about."""
    idempotency_key: NotRequired[str]
    """The caller's idempotency key; absent if none was sent."""
    execution_status: ExecutionStatus
    """The result of the action."""
    execution_result: NotRequired[str]
    """The result, in the caller's words."""
    action_taken: NotRequired[str]
    """The label of the action that was performed."""
    target_system: NotRequired[str]
    """The system that was changed."""
    target_object_id: NotRequired[str]
    """The object that was changed."""
    mutation: NotRequired[str]
    """The change, in the caller's terms."""
    external_ref: NotRequired[str]
    """The caller's reference to the transaction."""
    execution_id: NotRequired[str]
    """The caller's id of the execution."""
    executor: NotRequired[Executor]
    """The executor who performed it."""
    decision_record_hash: str
    """`record_hash` of the decision's record."""
    decision_receipt_hash: str
    """`receipt_hash` of the decision's record."""
    decision_verdict: Verdict
    """The decision's verdict."""
    decision_action: str
    """The decision's action."""
    policy_id: str
    """The policy that decided."""
    policy_version: str
    """Its version."""
    policy_bundle_hash: str
    """`policy_bundle_hash` of the decision's record."""
    action_binding: ActionBinding
    """The record's binding, with the values that the report sent instead: those of its `action_binding`, and
    `target_system`, `target_object_id`, and `mutation` as `system`, `resource`, and `mutation`. If a value was sent
    twice, the one that differs from the record is used.
    """
    action_binding_hash: str
    """Hash of the whole `action_binding`."""
    action_binding_match: bool
    """Whether the report states the decided action: it sent some of the binding, and `action_binding` equals the
    record's. False if it sent no part of the binding. `action_taken` is not compared here.
    """
    state_before_hash: str | None
    """Hash of the target's state before the action, as sent; null if none was sent."""
    state_after_hash: str | None
    """Hash of the target's state after the action, as sent; null if none was sent."""
    state_before_ref: NotRequired[str]
    """Where the earlier state is kept."""
    state_after_ref: NotRequired[str]
    """Where the later state is kept."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence kept elsewhere."""
    execution_input_hash: str
    """Hash of the canonical request body, including empty fields."""
    reported_at: str
    """When the service stored the report, UTC."""
    executed_at: NotRequired[str]
    """When the action was performed, UTC; absent if it was not sent."""
    decision_found: bool
    """Whether the service has the decision; always true here."""
    flags: list[ExecutionFlag]
    """Problems with the receipt. They follow from hashed fields and are not hashed themselves.
    `DECISION_NOT_APPROVED`: the decision is advisory, or its verdict is not `yes` and no grant comes before the
    receipt in the chain. `ACTION_BINDING_MISMATCH`: an `action_binding` or a target was sent, and
    `action_binding_match` is false. `ACTION_TAKEN_MISMATCH`: `action_taken` differs from `decision_action`; receipts
    of earlier releases do not have this flag.
    """
    execution_hash: str
    """Hash of the fields listed in the wire format, without empty ones."""
    audit_chain: ChainPlace
    """The report's link in the scope's chain."""


class ExecutionList(TypedDict):
    """The execution receipts of a decision, newest first."""

    decision_id: str
    """The decision's id."""
    count: int
    """The number of receipts in this answer."""
    executions: list[ExecutionReceipt]
    """The receipts, the latest first."""
    next_cursor: str | None
    """Send it as `cursor` to get earlier ones; null if there are none."""


class OutcomeRecord(TypedDict):
    """A report of what an action led to. It is hashed and linked to the record. The latest report of a decision, by
    chain position, counts.
    """

    decision_protocol_version: str
    """Version of the protocol."""
    decision_outcome_version: str
    """Version of the report format."""
    outcome_id: str
    """The id of the report."""
    decision_id: str
    """The decision that the report is about."""
    idempotency_key: NotRequired[str]
    """The caller's idempotency key; absent if none was sent."""
    outcome_status: OutcomeStatus
    """What the action led to. Use `pending` and `review` while the result is not clear; the others are final until
    another outcome is reported.
    """
    action_executed: NotRequired[bool]
    """Whether the action was executed at all."""
    action_taken: NotRequired[str]
    """The label of the action that was performed."""
    target_system: NotRequired[str]
    """The system that was changed."""
    target_object_id: NotRequired[str]
    """The object that was changed."""
    mutation: NotRequired[str]
    """The change, in the caller's terms."""
    external_ref: NotRequired[str]
    """The caller's reference to the transaction."""
    decision_record_hash: str
    """`record_hash` of the decision's record."""
    decision_receipt_hash: str
    """`receipt_hash` of the decision's record."""
    decision_verdict: Verdict
    """The decision's verdict."""
    decision_action: str
    """The decision's action."""
    policy_id: str
    """The policy that decided."""
    policy_version: str
    """Its version."""
    policy_bundle_hash: str
    """`policy_bundle_hash` of the decision's record."""
    action_binding: ActionBinding
    """The record's action binding."""
    observed_metrics: NotRequired[dict[str, float]]
    """The measured values, by the metric's name."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence kept elsewhere."""
    outcome_input_hash: str
    """Hash of the canonical request body, including empty fields."""
    reported_at: str
    """When the service stored the report, UTC."""
    executed_at: NotRequired[str]
    """When the action was performed, UTC; absent if it was not sent."""
    occurred_at: NotRequired[str]
    """When the outcome happened, UTC; absent if it was not sent, or if the decision's request was erased.
    `outcome_input_hash` covers it, but `outcome_hash` does not. The service keeps the request, and `gate chain
    check` compares both. A packet's verification cannot check this time: its check is null.
    """
    decision_found: bool
    """Whether the service has the decision; always true here."""
    outcome_hash: str
    """Hash of the fields listed in the wire format, without empty ones."""
    audit_chain: ChainPlace
    """The report's link in the scope's chain."""


class OutcomeList(TypedDict):
    """The outcome records of a decision, newest first."""

    decision_id: str
    """The decision's id."""
    count: int
    """The number of outcomes in this answer."""
    outcomes: list[OutcomeRecord]
    """The outcomes, the latest first."""
    next_cursor: str | None
    """Send it as `cursor` to get earlier ones; null if there are none."""


class ResolutionActor(TypedDict):
    """The authenticated actor: the API key, the user who signed in, or the service itself."""

    type: ActorType
    """The type of actor."""
    id: str
    """The key's id, the user's name, or `gate`."""


class ResolutionAuditChain(TypedDict):
    """The resolution's link in the scope's chain."""

    decision_chain_version: str
    """Version of the link format."""
    chain_id: str
    """The chain's id."""
    chain_position: int
    """The position in the chain. A receipt follows a grant if its position is higher."""
    entry_type: str
    """The kind of entry that was appended."""
    leaf_hash: str
    """Hash of the decision and the resolution's own hash."""
    link_hash: str
    """Hash of the link."""
    merkle_root: str
    """The chain's rolling root after the link."""


class Resolution(TypedDict):
    """The owner's resolution of a held decision: hashed, signed with the receipt key, linked into the scope's chain,
    and final. Empty fields are absent.
    """

    decision_protocol_version: str
    """Version of the protocol."""
    decision_resolution_version: str
    """Version of the resolution format."""
    resolution_entry_id: str
    """The resolution's id."""
    decision_id: str
    """The held decision."""
    decision_record_hash: str
    """`record_hash` of the decision's record."""
    decision_receipt_hash: str
    """`receipt_hash` of the decision's record."""
    action_binding_hash: str
    """Hash of the decision's `action_binding`: the action that is resolved."""
    resolution: Literal["granted", "refused", "expired"]
    """The answer."""
    resolved_by: NotRequired[str]
    """The person who answered, according to the caller; absent if the service let the review expire."""
    evidence_refs: NotRequired[list[str]]
    """References to evidence kept elsewhere."""
    note: NotRequired[str]
    """The reason, in the person's words."""
    idempotency_key: NotRequired[str]
    """The caller's idempotency key; absent if none was sent."""
    resolution_input_hash: NotRequired[str]
    """Hash of the canonical request body; absent if the service let the review expire."""
    expires_at: NotRequired[str]
    """For a grant: the action must begin before this time, UTC. For an expired review: when its time limit passed.
    Absent for a refusal, and for a review without a time limit that someone closed as expired.
    """
    actor: ResolutionActor
    """The authenticated actor: the API key, the user who signed in, or the service itself."""
    recorded_at: str
    """When the service stored the resolution, UTC."""
    resolution_hash: str
    """Hash of every other field except `key_id`, `signature`, and `audit_chain`."""
    key_id: NotRequired[str]
    """The receipt key that signed it; absent if receipt signing is off."""
    signature: NotRequired[str]
    """The receipt key's signature over the canonical `{decision_id, key_id, record_hash, resolution_hash}`; absent
    if receipt signing is off.
    """
    audit_chain: ResolutionAuditChain
    """The resolution's link in the scope's chain."""


class ResolutionReview(TypedDict):
    """The state of the review of a decision."""

    decision_id: str
    """The decision's id."""
    verdict: Verdict
    """The decision's verdict, which never changes."""
    state: Literal["held", "granted", "refused", "expired", "executed"] | None
    """`held` until it is resolved; then `granted`, `refused`, or `expired`; `executed` after a granted action was
    reported as executed. Null if the decision was not held for an owner: its verdict is not `review`, or it is
    advisory.
    """
    owner: str | None
    """The owner according to the scope's settings at the time of the decision; null if none was set."""
    due_at: str | None
    """When the review expires, UTC; null without a time limit."""
    executed_at: str | None
    """When a receipt reported the action as executed on its target, UTC, with or without a grant before it. Null if
    no receipt did, or if a later one reported the action as reverted.
    """
    resolution: Resolution | None
    """The resolution; null if there is none."""


class CrmSync(TypedDict):
    """A report of what a CRM holds about a decision: the mapped fields and the CRM's object, never credentials. It
    is hashed and linked to the record.
    """

    decision_protocol_version: str
    """Version of the protocol."""
    decision_crm_sync_version: str
    """Version of the report format."""
    sync_id: str
    """The id of the report."""
    decision_id: str
    """The decision that the report is about."""
    idempotency_key: NotRequired[str]
    """The caller's idempotency key; absent if none was sent."""
    sync_status: SyncStatus
    """The result of the sync."""
    sync_direction: NotRequired[SyncDirection]
    """`writeback`: from the decision into the CRM. `inbound`: from the CRM."""
    crm_provider: NotRequired[str]
    """The CRM."""
    crm_object_type: NotRequired[str]
    """The type of the CRM's object."""
    crm_object_id: NotRequired[str]
    """The CRM's object."""
    crm_record_url: NotRequired[str]
    """The URL of the object, without credentials."""
    mapped_fields: NotRequired[dict[str, Json]]
    """The mapped fields with their values. Never credentials."""
    decision_record_hash: str
    """`record_hash` of the decision's record."""
    decision_receipt_hash: str
    """`receipt_hash` of the decision's record."""
    decision_verdict: Verdict
    """The decision's verdict."""
    decision_action: str
    """The decision's action."""
    policy_id: str
    """The policy that decided."""
    policy_version: str
    """Its version."""
    sync_input_hash: str
    """Hash of the canonical request body, including empty fields."""
    reported_at: str
    """When the service stored the report, UTC."""
    sync_hash: str
    """Hash of the fields listed in the wire format, without empty ones."""
    audit_chain: ChainPlace
    """The report's link in the scope's chain."""


class CrmSyncAnswer(TypedDict):
    """The answer to a reported CRM sync."""

    decision_id: str
    """The decision's id."""
    crm_sync: CrmSync
    """The stored record."""


class CrmSyncList(TypedDict):
    """The CRM sync records of a decision, newest first."""

    decision_id: str
    """The decision's id."""
    count: int
    """The number of syncs in this answer."""
    crm_syncs: list[CrmSync]
    """The syncs, the latest first."""
    next_cursor: str | None
    """Send it as `cursor` to get earlier ones; null if there are none."""


# Responses: Verify.


class VerificationResult(TypedDict):
    """The result of verifying a record. `ok` equals `verified`."""

    ok: bool
    """Equals `verified`, so that reading only one of them does not mislead."""
    verified: bool
    """Integrity and authenticity both hold."""
    integrity_valid: bool
    """Nothing was changed since the record was hashed."""
    authenticity_valid: bool
    """A trusted key signed it."""
    key_source: KeySource
    """The source of the key. `server`: the service. `registry`: a key registry. `public_key`, `hmac_secret`: given
    to a command. `request`: sent with the request, and not trusted. `none`: no key was used.
    """
    checks: dict[str, bool | None]
    """The result of each check: true if it passed, false if it failed, null if it was skipped because its material
    was not given.
    """
    expected: dict[str, Json]
    """For each failed comparison, the expected value."""
    actual: dict[str, Json]
    """For each failed comparison, the value in the record."""
    unknown_members: NotRequired[list[str]]
    """Fields that this release does not know, at most 50. They are not authenticated. Absent if there are none."""
    error: NotRequired[str]
    """If the record is not verified: why, as a code."""
    notice: NotRequired[Literal["MATERIAL_ERASED"]]
    """A remark about a verified record: erased parts could not be checked."""
    message: NotRequired[str]
    """The error or the notice, as a sentence."""


class VerificationEndpoint(TypedDict):
    """A description of what the verify endpoint accepts and returns."""

    ok: bool
    """Always true: the endpoint is available."""
    endpoint: str
    """Its path."""
    methods: list[str]
    """The supported methods."""
    decision_protocol_version: str
    """Version of the protocol."""
    decision_record_version: str
    """The version of the records that it verifies."""
    decision_packet_version: NotRequired[str]
    """The version of the packets that it verifies; only at the packet endpoint."""
    canonicalization: str
    """How JSON is turned into the bytes that are hashed."""
    hash_algorithm: str
    """The hash algorithm."""
    signature_algorithms: list[str]
    """The signatures that it verifies."""
    accepts: dict[str, str]
    """The meaning of the fields of a body, in one sentence."""
    receipt_keys_url: str
    """Where the keys of receipts are published."""
    attestation_keys_url: str
    """Where the keys of attestations are published."""


class VerificationStep(TypedDict):
    """The result of one step."""

    holds: bool | None
    """true if it passed, false if it failed, null if it could not be done."""
    failed: list[str]
    """The failed checks of the step."""


class PacketVerificationSteps(TypedDict):
    """The steps of the verification, in order."""

    packet_hash: VerificationStep
    """The packet's fields and its own hash."""
    decision_record: VerificationStep
    """The embedded record: its hashes, bundle hash, and signature, and the values that the packet repeats."""
    execution_and_outcome_hashes: VerificationStep
    """The reports: their hashes, record ids, action binding, and receipt references."""
    intelligence_and_chain: VerificationStep
    """The hashes of reports, the retained links, the positions of the reports in them, and checkpoints."""


class PacketVerificationResult(TypedDict):
    """The result of verifying a packet."""

    ok: bool
    """Equals `verified`, so that reading only one of them does not mislead."""
    verified: bool
    """Integrity and authenticity both hold."""
    integrity_valid: bool
    """No hash, repeated field, or chain position shows a change."""
    authenticity_valid: bool
    """A trusted key signed the record, and no signature fails."""
    key_source: KeySource
    """The source of the record's key. `server`: the service. `registry`: a key registry. `public_key`,
    `hmac_secret`: given to a command. `request`: sent with the request, and not trusted. `none`: no key was used.
    """
    checks: dict[str, bool | None]
    """The result of each check: true if it passed, false if it failed, null if it was skipped because its material
    was not given. A check of many items is one entry if all pass; of its failures, the first 50 have an entry each.
    """
    expected: dict[str, Json]
    """For each failed comparison, the expected value; `{sha256, bytes}` if it is long."""
    actual: dict[str, Json]
    """For each failed comparison, the value in the packet; `{sha256, bytes}` if it is long."""
    steps: PacketVerificationSteps
    """The steps of the verification, in order."""
    unknown_members: NotRequired[list[str]]
    """Fields that this release does not know, at most 50. They are not authenticated. Absent if there are none."""
    error: NotRequired[str]
    """If the packet is not verified: why, as a code."""
    notice: NotRequired[Literal["MATERIAL_ERASED", "REPORTS_UNSIGNED"]]
    """A remark about a verified packet. Either erased parts could not be checked, or no signed checkpoint covers
    some of its reports; the message lists them.
    """
    message: NotRequired[str]
    """The error or the notice, as a sentence."""


class Standing(TypedDict):
    """Decisions by the status of their latest outcome."""

    succeeded: int
    """The result is the intended one. Terminal."""
    partial: int
    """The result is partly the intended one. Terminal."""
    failed: int
    """The result is not the intended one. Terminal."""
    reverted: int
    """The action was undone. Terminal."""
    pending: int
    """Not known yet."""
    review: int
    """Somebody is checking the result."""
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
    """The bounds of the share of all decided actions that would have succeeded if all of them had been let through,
    including the blocked and held ones.
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
    """Those that were not let through: their result cannot be known."""
    low: float
    """The share if none of the unknown and unobservable ones had succeeded; 0 without decisions."""
    high: float
    """The share if all of them had succeeded; 1 without decisions."""


class EffectivenessReportComparison(TypedDict):
    """How versions are compared: by let-through actions with a terminal outcome, among cases with similar facts."""

    of: str
    """Which actions are compared."""
    facts: list[str]
    """The facts that make cases similar: at most six of the facts that the policy's rulebooks test, or that an
    imported history has, those that best separate successes from failures. Empty if versions are compared without
    adjustment.
    """
    decisions: int
    """How many decisions were used."""
    unknown: int
    """How many were left out because their facts are not known."""
    strata: int
    """How many groups of similar cases there are."""
    sampled_one_of: int
    """One of this many decisions was used: 1 up to 100,000 of them."""
    design_effect: float
    """How much more rates vary than if decisions arrived one at a time; 1 if none arrive together."""
    disagreements: int
    """For how many versions the raw rates say something different from the rates among similar cases."""
    sentences: list[str]
    """Where raw rates mislead, and which versions with enough cases are not judged."""


class VersionEffectivenessLetThrough(TypedDict):
    """Its decisions whose action was let through."""

    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, plus half of partial, among the terminal outcomes; null if there are none."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""


class EffectivenessReportBesideDifference(TypedDict):
    """The first minus the second, with its 95% interval."""

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
    """The share of the others' cases that succeeded."""
    difference: EffectivenessReportBesideDifference
    """The first minus the second, with its 95% interval."""
    p_value: float
    """How likely such a difference is if both do equally well; six significant digits."""
    cases: int
    """How many cases of the version are compared."""
    other_cases: int
    """How many cases of the others are compared."""


class VersionEffectivenessCompared(TypedDict):
    """The comparison with all other versions together; null if one of the two sides has no let-through action with a
    terminal outcome and known facts.
    """

    raw: EffectivenessReportBeside
    """Without adjustment."""
    standardized: EffectivenessReportBeside | None
    """Among similar cases; null if no other version had a similar one."""
    admitted: EffectivenessReportBeside | None
    """Its cases of groups that it mostly lets through and the others mostly stop, compared with everything that the
    others let through; null if there are none.
    """
    share: float
    """The share of its cases that have a similar one among the others'."""
    raw_below_others: bool
    """Whether `raw` alone would make it `below_others`."""
    like_below_others: bool
    """Whether its let-through actions succeeded less often among similar cases: both sides have enough of them, the
    difference is below 0, its `p_value` is at most 0.01 divided by the number of tests, and half of its cases have a
    similar one.
    """
    admits_worse: bool
    """Whether the admitted cases succeeded less often than what the others let through, by at least a tenth, with a
    `p_value` of at most 0.01 divided by the number of tests.
    """
    disagrees: bool
    """Whether `raw` says something different from `below_others`."""


class VersionEffectiveness(TypedDict):
    """One version."""

    policy_version: str
    """The version label."""
    first: str
    """When its first decision was made, UTC."""
    last: str
    """When its last decision was made, UTC."""
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, plus half of partial, among the terminal outcomes; null if there are none."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""
    below_others: bool
    """Whether it does worse than all other versions together: `like_below_others` or `admits_worse` of `compared`."""
    let_through: VersionEffectivenessLetThrough
    """Its decisions whose action was let through."""
    compared: VersionEffectivenessCompared | None
    """The comparison with all other versions together; null if one of the two sides has no let-through action with a
    terminal outcome and known facts.
    """


class EffectivenessReportVersionsByVerdict(TypedDict):
    """One verdict of one version."""

    policy_version: str
    """The version label."""
    verdict: Verdict
    """The verdict."""
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, plus half of partial, among the terminal outcomes; null if there are none."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""


class VerdictEffectiveness(TypedDict):
    """One verdict."""

    verdict: Verdict
    """The verdict."""
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, plus half of partial, among the terminal outcomes; null if there are none."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""


class EffectivenessReportDispositions(TypedDict):
    """One disposition."""

    disposition: Literal["let_through", "granted", "blocked", "held", "refused", "expired", "not_executed"]
    """`let_through`: the latest outcome says `action_executed: true`, or does not say and either the verdict is yes,
    or the owner granted the action and a receipt says executed or the outcome is terminal. Otherwise: `blocked` for
    the verdict no; `not_executed` for a yes or a grant whose outcome says `action_executed: false`; and for the
    verdict review `granted`, `refused` or `expired` as it was resolved, and `held` until then.
    """
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, plus half of partial, among the terminal outcomes; null if there are none."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""


class EffectivenessReportReviewsWaitingSeconds(TypedDict):
    """Whole seconds from the decision to its resolution, by the recorded dates; null if none was resolved."""

    median: int
    """The lower median."""
    p90: int
    """The smallest time that nine of ten did not exceed."""


class EffectivenessReportReviews(TypedDict):
    """How decisions with the verdict review were resolved; absent if there are none, and for imported histories."""

    decisions: int
    """All decisions with the verdict review."""
    held: int
    """Those that nobody has resolved yet."""
    granted: int
    """Those that their owner granted, executed or not."""
    refused: int
    """Those that their owner refused."""
    expired: int
    """Those whose time limit passed before anybody answered."""
    waiting_seconds: EffectivenessReportReviewsWaitingSeconds | None
    """Whole seconds from the decision to its resolution, by the recorded dates; null if none was resolved."""


class RuleEffectiveness(TypedDict):
    """One rule."""

    rule: str
    """The second evidence code of its records: `rule:<rule_id>`, `rule:default` if no rule matched, `schema:failed`
    if facts were missing or had a wrong type.
    """
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, plus half of partial, among the terminal outcomes; null if there are none."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""


class WeekEffectiveness(TypedDict):
    """One week."""

    week: str
    """Its Monday, UTC."""
    decisions: int
    """How many decisions."""
    outcomes: Standing
    effectiveness_score: float | None
    """The share of succeeded, plus half of partial, among the terminal outcomes; null if there are none."""
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""


class ObservedMetric(TypedDict):
    """One metric."""

    name: str
    """Its name."""
    decisions: int
    """How many decisions have it."""
    min: float
    """The smallest value."""
    median: float
    """The lower median: an observed value."""
    max: float
    """The largest value."""


class EffectivenessReportMetricsByVersion(TypedDict):
    """One metric of one version."""

    name: str
    """Its name."""
    policy_version: str
    """The version label."""
    decisions: int
    """How many decisions have it."""
    median: float
    """The lower median: an observed value."""
    low: float | None
    """The lower end of the median's 95% interval: an observed value; null below six values."""
    high: float | None
    """The upper end; null below six values."""


class EffectivenessReportMetricsByWeek(TypedDict):
    """One metric of one week."""

    name: str
    """Its name."""
    week: str
    """Its Monday, UTC."""
    decisions: int
    """How many decisions have it."""
    median: float
    """The lower median: an observed value."""
    low: float | None
    """The lower end of the median's 95% interval: an observed value; null below six values."""
    high: float | None
    """The upper end; null below six values."""


EffectivenessCoverage = TypedDict(
    "EffectivenessCoverage",
    {
        # How many decisions.
        "decisions": int,
        # How many policy versions.
        "versions": int,
        # The number of rules.
        "rules": int,
        # The number of weeks.
        "weeks": int,
        # The number of metrics.
        "metrics": int,
        # When the first of these decisions was made, UTC; null if there are none.
        "from": str | None,
        # When the last of them was made, UTC; null if there are none.
        "to": str | None,
        # The last position of the scope's chain that was read; 0 for an empty chain.
        "chain_position": int,
        # The chain's rolling root at that position; null for an empty chain.
        "merkle_root": str | None,
        # Whether `limit` left out earlier decisions.
        "truncated": bool,
    },
)
"""What the report covers."""


class EffectivenessReport(TypedDict):
    """How well a policy works, from the outcomes of its decisions. The report has no dates except those of its data:
    the same chain entries give the same report, byte for byte. Shares have six decimals.
    """

    policy_effectiveness_version: str
    """Version of the formulas."""
    policy_id: str
    """The policy of the report."""
    policy_version: str | None
    """The requested version; null for all."""
    verdict: Verdict | None
    """The requested verdict; null for all."""
    since: str | None
    """Only decisions from this time on, UTC; null for no limit."""
    until: str | None
    """Only decisions before this time, UTC; null for no limit."""
    clock: Literal["recorded", "occurred"]
    """Which date counts: `recorded`, when the gate recorded the decision, or `occurred`, when it happened according
    to the caller.
    """
    effectiveness_score: float | None
    """The share of succeeded, plus half of partial, among the terminal outcomes; null if there are none."""
    confidence: float
    """How much supports the score: 1 minus the width of the interval of `success_rate`, times the share of decisions
    with the verdict yes that have a terminal outcome (of all decisions if none has that verdict); 0 if there are
    none.
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
    """What to do. It authorizes nothing."""
    outcomes: Standing
    success_rate: Rate
    failure_rate: float | None
    """The share of failed and reverted among the terminal outcomes; null if there are none."""
    review_rate: float | None
    """The share of decisions whose latest outcome is `review` among those with any outcome; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null without decisions."""
    bounds: SuccessBounds
    """The bounds of the share of all decided actions that would have succeeded if all of them had been let through,
    including the blocked and held ones.
    """
    versions_below_others: int
    """How many versions are `below_others`."""
    comparison: EffectivenessReportComparison
    """How versions are compared: by let-through actions with a terminal outcome, among cases with similar facts."""
    versions: list[VersionEffectiveness]
    """The versions, at most 50: first those that are `below_others`, then those with the most decisions."""
    versions_by_verdict: list[EffectivenessReportVersionsByVerdict]
    """The listed versions in their order, each by the verdicts that occur: yes, no, review."""
    verdicts: list[VerdictEffectiveness]
    """The verdicts that occur: yes, no, review."""
    dispositions: list[EffectivenessReportDispositions]
    """What happened to the actions."""
    reviews: NotRequired[EffectivenessReportReviews]
    """How decisions with the verdict review were resolved; absent if there are none, and for imported histories."""
    rules: list[RuleEffectiveness]
    """The rules that decided, at most 200, those with the most decisions first."""
    weeks: list[WeekEffectiveness]
    """The weeks in which decisions were made, at most the latest 520, ascending."""
    metrics: list[ObservedMetric]
    """`observed_metrics` of the latest outcomes, at most 64, those with the most decisions first. Values are as
    reported.
    """
    metrics_by_version: list[EffectivenessReportMetricsByVersion]
    """The medians of the 16 metrics with the most decisions, by listed version; within a metric, those with the most
    decisions first.
    """
    metrics_by_week: list[EffectivenessReportMetricsByWeek]
    """The same by the week of the decision, the latest 104, ascending within a metric."""
    min_sample: int
    """How many terminal outcomes of let-through actions are needed for a judgment, and for comparing a version with
    the others.
    """
    limit: int | None
    """How many decisions were counted, the latest in the chain; null for all."""
    coverage: EffectivenessCoverage
    """What the report covers."""
    notes: list[str]
    """What the report cannot know, as sentences."""
    effectiveness_hash: str
    """Hash of this report without this field."""


class OutcomeCounts(TypedDict):
    """Decisions by the status of their latest outcome."""

    succeeded: int
    """The result is the intended one. Terminal."""
    partial: int
    """The result is partly the intended one; not counted as a success. Terminal."""
    failed: int
    """The result is not the intended one. Terminal."""
    reverted: int
    """The action was undone. Terminal."""
    pending: int
    """Not known yet."""
    review: int
    """Somebody is checking the result."""


class VersionConfidence(TypedDict):
    """One version."""

    policy_version: str
    """The version label."""
    outcomes: OutcomeCounts
    """The latest outcomes of its decisions."""
    success_rate: Rate
    """The success rate of its decisions."""


Coverage = TypedDict(
    "Coverage",
    {
        # How many decisions have an outcome.
        "decisions": int,
        # How many policy versions.
        "versions": int,
        # When the first outcome of these decisions was reported, UTC; null if there is none.
        "from": str | None,
        # When the last of them was reported, UTC; null if there is none.
        "to": str | None,
        # Whether `limit` left out decisions with older outcomes.
        "truncated": bool,
    },
)
"""What the report covers."""


class ConfidenceReport(TypedDict):
    """How far the outcomes of a policy's decisions support it. The report has no dates except those of its data: the
    same outcomes give the same report, byte for byte.
    """

    decision_confidence_version: str
    """Version of the formula."""
    policy_id: str
    """The policy of the report."""
    policy_version: str | None
    """The requested version; null for all."""
    verdict: Verdict | None
    """The requested verdict; null for all."""
    since: str | None
    """Only decisions from this time on, UTC; null for no limit."""
    until: str | None
    """Only decisions before this time, UTC; null for no limit."""
    clock: Literal["recorded", "occurred"]
    """Which date counts: `recorded`, when the gate recorded the decision, or `occurred`, when it happened according
    to the caller.
    """
    action: str | None
    """The requested action; null for all."""
    score: float
    """The success rate that the terminal outcomes support: the lower end of its 95% Wilson interval, six decimals; 0
    if there are none.
    """
    level: ConfidenceLevel
    """The score in one word; `insufficient` below `min_sample`."""
    similar_decisions: int
    """How many of the counted decisions have an outcome."""
    policy_stability: float | None
    """1 minus how far the worst version is below the policy, as far as their intervals tell them apart; null if no
    version has `min_sample` terminal outcomes.
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
    """What to do. It authorizes nothing."""
    outcomes: OutcomeCounts
    """The latest outcomes of the counted decisions."""
    success_rate: Rate
    """The success rate of the counted decisions."""
    policy_success_rate: Rate
    """The success rate of all decisions of the policy with that verdict and action, in every version and without the
    limit.
    """
    versions: list[VersionConfidence]
    """The versions of the counted decisions, at most 50, those with the most decisions first."""
    min_sample: int
    """How many terminal outcomes a level needs, and a version to be compared."""
    limit: int | None
    """How many decisions were counted, those with the latest outcomes; null for all."""
    coverage: Coverage
    """What the report covers."""
    notes: list[str]
    """What the report cannot know, as sentences."""
    confidence_hash: str
    """Hash of this report without this field."""


class AnomalySeverities(TypedDict):
    """The number of anomalies by severity."""

    high: int
    """Those with a score of 0.8 or more."""
    medium: int
    """Those with a score of at least 0.6 and less than 0.8."""
    low: int
    """Those with a lower score."""


AnomalyWindow = TypedDict(
    "AnomalyWindow",
    {
        # The start of the window.
        "from": str,
        # The end of the window; for broken sequences and metrics, the time of the last case.
        "to": str,
    },
)
"""When it happened, UTC."""


class AnomalyEffect(TypedDict):
    """The estimated cost, by which anomalies are sorted."""

    cases: int
    """How many decisions went differently than they would have before, or are affected."""
    value: float | None
    """For shifts and drift: the total of the requested metric, minus the total expected from its earlier mean. For
    other kinds: the metric's mean in the weeks of the window, times `cases`. Null if no metric was requested or no
    value is known.
    """
    until: str
    """Up to when both are counted, UTC: the end of the window, or of a shift or drift that lasts longer."""
    lasting: bool
    """Whether it continues, or lasted two weeks or more. Always false for single values of a metric."""
    harm: bool | None
    """Whether the change is for the worse; null if the counts cannot tell."""


class CountedShare(TypedDict):
    """A count, and its share of a total."""

    count: int
    """The cases with the value."""
    of: int
    """All cases."""
    rate: float
    """The share."""


class RateDifference(TypedDict):
    """The rate in the window minus the rate before, with Newcombe's 95% interval."""

    rate: float
    """The difference."""
    low: float
    """The low end of its interval."""
    high: float
    """The high end."""


class AnomalyReportSides(TypedDict):
    """For groups: in how many minutes the cases arrived. For design effects: how many cases carry the information of
    a single independent one.
    """

    before: float
    """In the weeks before."""
    within: float
    """In the window."""


ShiftedRate = TypedDict(
    "ShiftedRate",
    {
        # The subject of the rate.
        "of": Literal["verdict", "reason", "outcome"],
        # Which verdict, reason code or outcome status.
        "value": str,
        # The start of its own window, UTC.
        "from": str,
        # The end of that window.
        "to": str,
        # The start of the weeks that it is compared with.
        "reference_from": str,
        # The end of those weeks: the start of the window, or 18 weeks before it for slow changes.
        "reference_to": str,
        # Outcomes only: outcomes that came within this many days of their decision are compared; null for all.
        "age_days": NotRequired[int | None],
        # .
        "before": CountedShare,
        # .
        "within": CountedShare,
        # The rate in the window minus the rate before, with Newcombe's 95% interval.
        "difference": RateDifference,
        # The effect size: 0.2 is small, 0.5 medium, 0.8 large.
        "cohens_h": float,
        # The end of its 95% interval that is closer to zero, without its sign. The score is computed from it.
        "least_h": float,
        # .
        "groups": AnomalyReportSides,
        # .
        "design_effect": AnomalyReportSides,
        # Fisher's exact test, two-sided, of the counts divided by their design effects. 1e-40 means anything
        # smaller.
        "p_value": float,
        # The highest `p_value` that is certain: `alarm_chance`, or `rollout_chance` for outcomes since a version
        # took over, divided by the number of tests. A rate with a higher `p_value` scores below high.
        "required_p": float,
    },
)
"""One rate."""


class AnomalyReportLevel(TypedDict):
    """The distribution of a metric's values."""

    values: int
    """The number of values used."""
    lower_quartile: float
    """A quarter of the values are not larger."""
    median: float
    """The lower median."""
    upper_quartile: float
    """About a quarter of the values are larger."""
    above: int
    """How many are larger than the median of the values before."""
    below: int
    """How many are smaller than that median."""


class ShiftedMetricTail(TypedDict):
    """Tails only: how many values are in the tail."""

    cut: float
    """The largest value outside an upper tail, or inside a lower tail."""
    before: CountedShare
    within: CountedShare
    cohens_h: float
    """The effect size, with its sign."""
    least_h: float
    """The end of its 95% interval that is closer to zero, without its sign. The score is computed from it."""


ShiftedMetric = TypedDict(
    "ShiftedMetric",
    {
        # `location`: where the values are. `spread`: how far they are from their median. `tail_above` or
        # `tail_below`: how many are beyond most of the others.
        "of": Literal["location", "spread", "tail_above", "tail_below"],
        # The version that is compared with the others in the same weeks; null if weeks are compared.
        "version": str | None,
        # The start of its own window, UTC.
        "from": str,
        # The end of that window.
        "to": str,
        # The start of the weeks that it is compared with.
        "reference_from": str,
        # The end of those weeks.
        "reference_to": str,
        # Values of outcomes that came within this many days of their decision are compared; null for all.
        "age_days": int | None,
        # .
        "before": AnomalyReportLevel,
        # .
        "within": AnomalyReportLevel,
        # Spread only: whether distances are differences or ratios.
        "scale": NotRequired[Literal["difference", "ratio"]],
        # Location: the median in the window minus the median before. Spread: the width of the middle half (upper
        # minus lower quartile) in the window minus the width before; for ratios, the logarithm of the factor. Six
        # significant digits.
        "difference": float,
        # The effect size, -1 to 1: how much more often a value in the window is the larger one. For spread, the same
        # for distances. 0.147 is small, 0.33 medium, 0.474 large.
        "cliffs_delta": float,
        # The end of its 95% interval that is closer to zero, without its sign. The score is computed from it.
        "least_delta": float,
        # .
        "groups": AnomalyReportSides,
        # .
        "design_effect": AnomalyReportSides,
        # Tails only: how many values are in the tail.
        "tail": NotRequired[ShiftedMetricTail],
        # The Mann-Whitney test; for versions van Elteren's test; for tails Fisher's. 1e-40 means anything smaller.
        "p_value": float,
        # The highest `p_value` that is certain. A shift with a higher one scores below high.
        "required_p": float,
    },
)
"""The position or the spread of its values."""


class FarValue(TypedDict):
    """One value."""

    value: float
    """The value."""
    usual: float
    """The lower median of its kind."""
    modified_z: float
    """The distance, in robust standard deviations."""


class FactBin(TypedDict):
    """One bin."""

    holds: str
    """The values in the bin."""
    before: int
    """Decisions in the weeks before."""
    within: int
    """Decisions in the window."""


DriftedFact = TypedDict(
    "DriftedFact",
    {
        # Its path.
        "fact": str,
        # The start of its own window, UTC.
        "from": str,
        # The end of that window.
        "to": str,
        # The start of the weeks that it is compared with.
        "reference_from": str,
        # The end of those weeks.
        "reference_to": str,
        # The population stability index, minus what chance alone adds.
        "stability_index": float,
        # The same, minus what chance alone exceeds with a probability of 5 percent. The score is computed from it.
        "least_index": float,
        # How many decisions carry the information of a single independent one; the larger of both sides.
        "design_effect": float,
        # The highest `p_value` that is certain. A fact with a higher one scores below high.
        "required_p": float,
        # Pearson's chi-squared test. 1e-40 means anything smaller.
        "p_value": float,
        # The decisions by the value of the fact.
        "bins": list[FactBin],
    },
)
"""One fact."""


class AnomalyNumbers(TypedDict):
    """The numbers behind the anomaly. The fields depend on its kind."""

    count: NotRequired[int]
    """Broken sequences: the decisions that have one."""
    of: NotRequired[int]
    """Broken sequences: the decisions that could have one."""
    share: NotRequired[float]
    """Broken sequences: `count` divided by `of`."""
    changes: NotRequired[list[ShiftedRate]]
    """Shifts: the rates that changed, the largest change first."""
    levels: NotRequired[list[ShiftedMetric]]
    """Metrics that shifted: what shifted, the largest shift first."""
    new_versions: NotRequired[list[str]]
    """Shifts: the versions that took over at least half of the decisions at that time."""
    grain: NotRequired[Literal["hour", "day", "week"]]
    """Volume: the length of a cell."""
    cells: NotRequired[int]
    """Volume: how many cells in a row."""
    decisions: NotRequired[int]
    """Volume: the decisions in these cells."""
    usual: NotRequired[int]
    """Volume: the usual number of decisions in such cells, by medians."""
    arrivals: NotRequired[int]
    """Volume: how many single, independent decisions carry the same information."""
    usual_arrivals: NotRequired[int]
    """Volume: the usual number of arrivals in such cells, by medians."""
    like_cells: NotRequired[int]
    """Volume: how many earlier cells of the same kinds they are compared with."""
    like_arrivals: NotRequired[int]
    """Volume: the arrivals in those cells, or the usual number if that is closer to the observed one."""
    usual_week: NotRequired[int]
    """Volume: the decisions in a usual week."""
    times: NotRequired[float]
    """Volume: the factor by which there are more, or fewer, arrivals."""
    modified_z: NotRequired[float]
    """Volume: the distance of the farthest cell, in robust standard deviations."""
    p_value: NotRequired[float]
    """Volume: how likely chance alone splits the arrivals this unevenly between the cells (binomial test). 1e-40
    means anything smaller.
    """
    required_p: NotRequired[float]
    """Volume: the highest `p_value` that is certain: `alarm_chance` divided by the number of all cells. With a
    higher one, the anomaly scores below high.
    """
    required_z: NotRequired[float]
    """Volume and metrics: the distance needed to stand out among so many values."""
    metric: NotRequired[str]
    """Metrics: the metric's name."""
    values: NotRequired[int]
    """Metrics: the number of values."""
    median: NotRequired[float]
    """Metrics: the lower median."""
    mad: NotRequired[float]
    """Metrics: the median distance from the median of the kind; for ratios, the logarithm."""
    scale: NotRequired[Literal["difference", "ratio"]]
    """Metrics: whether distances are differences or ratios."""
    season: NotRequired[Literal["weekday and hour", "hour", "weekday"] | None]
    """Metrics: the times of reporting that separate kinds of values; null if there is one kind."""
    seasonal_p: NotRequired[float]
    """Metrics: the highest p-value of Mood's median test at which kinds are separated."""
    farthest: NotRequired[list[FarValue]]
    """Metrics: the values farthest out, in the order of `decision_ids`."""
    facts: NotRequired[list[DriftedFact]]
    """Drift: the facts that drifted, the largest drift first."""


class AnomalyStep(TypedDict):
    """One step."""

    what: str
    """What to do, in one sentence."""
    href: str | None
    """A path of this service that shows it; null if the service has none."""


class Anomaly(TypedDict):
    """One anomaly: its strength, its reasons, its time, example decisions, the numbers behind it, and what to check
    next.
    """

    anomaly_id: str
    """The anomaly's id. It stays the same as long as an anomaly of the same kind begins at the same time."""
    kind: Literal[
        "lifecycle_break", "outcome_shift", "verdict_shift", "metric_shift", "volume", "metric_outlier", "fact_drift"
    ]
    """What is unusual: the sequence of events of decisions, rates of outcomes, rates of verdicts and reasons, the
    distribution of an observed metric, the number of decisions, single values of a metric, or facts.
    """
    subject: str | None
    """Which broken sequence, which metric, or `hour`, `day` or `week` for volume; null for other kinds."""
    severity: Literal["high", "medium", "low"]
    """`high` from a score of 0.8, `medium` from 0.6, otherwise `low`."""
    anomaly_score: float
    """The strength, from 0 to 1."""
    reasons: list[str]
    """The reasons for programs: the name of a broken sequence, `outcome_fell:<status>`, `verdict_rose:<verdict>`,
    `reason_rose:<reason code>`, `policy_version_changed`, `version_differs:<version>`, `cases_differ:<fact>` (that
    version had different cases), `slow` (compared with weeks half a year earlier), `more_decisions_than_usual`,
    `fewer_decisions_than_usual`, `metric_rose:<metric>`, `metric_fell:<metric>`, `metric_spread_grew:<metric>`,
    `metric_spread_shrank:<metric>`, `metric_upper_tail_grew:<metric>`, `metric_upper_tail_shrank:<metric>`,
    `metric_lower_tail_grew:<metric>`, `metric_lower_tail_shrank:<metric>`, `metric_far_from_usual`,
    `fact_drifted:<path>`.
    """
    summary: str
    """The anomaly in one sentence."""
    window: AnomalyWindow
    """When it happened, UTC."""
    decisions: int
    """How many decisions show it."""
    decision_ids: list[str]
    """Up to 10 of these decisions: the latest, or for a metric those farthest out."""
    effect: AnomalyEffect
    """The estimated cost, by which anomalies are sorted."""
    numbers: AnomalyNumbers
    look_at_next: list[AnomalyStep]
    """What to check next."""


class AnomalyParameters(TypedDict):
    """The other constants of the formulas. They are the same in every report of this version."""

    window_weeks: list[int]
    """The length of a window, in weeks."""
    reference_weeks: int
    """How many weeks before the window it is compared with."""
    slow_weeks: int
    """For slow changes: a window is also compared with `reference_weeks` that begin this many weeks before it."""
    least_groups: int
    """In how many different minutes the decisions of a window and of its reference must have arrived, unless all
    arrived one at a time.
    """
    false_discovery_rate: float
    """The highest rate of false discoveries among shifts of rates, among drifts, and among shifts of metrics."""
    alarm_chance: float
    """The highest chance that any test of shifts of rates, of drifts, or of metrics gives such a small `p_value`
    although nothing changed. `required_p` is this value divided by the number of those tests.
    """
    rollout_chance: float
    """The same for tests of outcomes in windows that begin in the week in which a version took over. Their
    `required_p` is this value divided by the number of those tests.
    """
    receipt_due_hours: int
    """How many hours after a yes its execution receipt is due."""
    outcome_due_days: int
    """How many days after an execution a terminal outcome is due."""
    medium_score: float
    """The lowest score of medium severity."""
    high_score: float
    """The lowest score of high severity."""


AnomalyCoverage = TypedDict(
    "AnomalyCoverage",
    {
        # The number of decisions.
        "decisions": int,
        # When the first of them was made, UTC; null if there are none.
        "from": str | None,
        # When the last of them was made, UTC; null if there are none.
        "to": str | None,
        # The date up to which everything is counted: the date of the chain's last entry, or of the last case of an
        # imported history. If later entries are more than 104 weeks away, the date of the last decision in the
        # counted weeks. Null for an empty chain.
        "as_of": str | None,
        # How many weeks were counted, at most the latest 104.
        "weeks": int,
        # One of this many decisions was used to learn what is usual for facts and metrics; 1 means all.
        "sampled_one_of": int,
        # The paths of the facts that were checked, at most 32.
        "facts": list[str],
        # How many observed metrics were checked, at most 64.
        "metrics": int,
        # The last position of the scope's chain that was read; 0 for an empty chain.
        "chain_position": int,
        # The chain's rolling root at that position; null for an empty chain.
        "merkle_root": str | None,
        # Whether `limit` left out earlier decisions.
        "truncated": bool,
    },
)
"""Which decisions the report covers, and how far the chain was read."""


class AnomalyReport(TypedDict):
    """The anomalies in a policy's decisions, found by published formulas, not by a model. The report has no dates
    except those of the ledger: the same chain entries give the same report, byte for byte. Numbers have six
    decimals; p-values, `mad` and the difference of a level have six significant digits.
    """

    policy_anomalies_version: str
    """Version of the formulas."""
    policy_id: str
    """The policy of the report."""
    policy_version: str | None
    """The requested version; null for all."""
    verdict: Verdict | None
    """The requested verdict; null for all."""
    since: str | None
    """Only decisions from this time on, UTC; null for no limit."""
    until: str | None
    """Only decisions before this time, UTC; null for no limit."""
    clock: Literal["recorded", "occurred"]
    """Which date counts: `recorded`, when the gate recorded the decision, or `occurred`, when it happened according
    to the caller.
    """
    recommendation: Literal["investigate", "review", "watch", "stable", "insufficient_data"]
    """What to do: `investigate` if an anomaly is high, `review` if one is medium, `watch` if all are low, `stable`
    if there are none, `insufficient_data` if there are none and fewer decisions than `min_sample`. It authorizes
    nothing.
    """
    anomaly_count: int
    """The number of anomalies with a score of at least `threshold`."""
    severities: AnomalySeverities
    """The number of anomalies by severity."""
    anomalies: list[Anomaly]
    """The anomalies, at most `max_items`. The order is by severity; then lasting harm, other harm, other lasting
    changes; then by cost; then by score.
    """
    min_sample: int
    """How many cases are needed in a window, in the period it is compared with, and for a metric."""
    threshold: float
    """The lowest score that is listed and counted."""
    max_items: int
    """The largest number of anomalies listed."""
    value: str | None
    """The observed metric in which effects are estimated; null for none."""
    limit: int | None
    """How many decisions were counted, the latest in the chain; null for all."""
    parameters: AnomalyParameters
    """The other constants of the formulas. They are the same in every report of this version."""
    coverage: AnomalyCoverage
    """Which decisions the report covers, and how far the chain was read."""
    notes: list[str]
    """What the report cannot know, as sentences."""
    anomaly_hash: str
    """Hash of the report without this field."""


class OwnMetricsPresent(TypedDict):
    """The same for all of your decisions of the policy in any month, by their latest outcome as of
    `coverage.chain_position`. Nothing is compared with it. Absent from reports of earlier releases.
    """

    decisions: int
    """How many decisions."""
    terminal: int
    """Those whose latest outcome is terminal."""
    success_rate: float | None
    """The share of succeeded among the terminal outcomes; null if there are none."""
    approval_rate: float | None
    """The share of decisions with the verdict yes; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null if there are none."""


class OwnMetrics(TypedDict):
    """Your own decisions of the month, by their latest outcome reported before the freeze. `present` has all of your
    decisions up to now.
    """

    decisions: int
    """How many decisions."""
    terminal: int
    """Those whose latest outcome is terminal."""
    success_rate: float | None
    """The share of succeeded among the terminal outcomes; null if there are none."""
    approval_rate: float | None
    """The share of decisions with the verdict yes; null if there are none."""
    terminal_coverage: float | None
    """The share of decisions with a terminal outcome; null if there are none."""
    present: NotRequired[OwnMetricsPresent]
    """The same for all of your decisions of the policy in any month, by their latest outcome as of
    `coverage.chain_position`. Nothing is compared with it. Absent from reports of earlier releases.
    """


class Percentiles(TypedDict):
    """Percentiles of one rate. p10 and p90 need 20 other scopes."""

    p10: NotRequired[float]
    """A rounded rate: 0.05, 0.1 and so on to 0.95."""
    p25: float
    """A rounded rate: 0.05, 0.1 and so on to 0.95."""
    p50: float
    """A rounded rate: 0.05, 0.1 and so on to 0.95."""
    p75: float
    """A rounded rate: 0.05, 0.1 and so on to 0.95."""
    p90: NotRequired[float]
    """A rounded rate: 0.05, 0.1 and so on to 0.95."""


class CohortPercentiles(TypedDict):
    """Percentiles of the others' rates, by nearest rank: each is the rounded rate of one scope. Null if nothing is
    shown.
    """

    success_rate: Percentiles
    approval_rate: Percentiles
    terminal_coverage: Percentiles


class CohortDeltas(TypedDict):
    """Your rates minus p50, six decimals; null if nothing is shown."""

    success_rate: float | None
    """Your rate minus the others' p50; null if you have no rate."""
    approval_rate: float | None
    """Your rate minus the others' p50; null if you have no rate."""
    terminal_coverage: float | None
    """Your rate minus the others' p50; null if you have no rate."""


CrossCustomer = TypedDict(
    "CrossCustomer",
    {
        # Whether anything is shown.
        "status": Literal["available", "withheld"],
        # Why nothing is shown; null if something is.
        "reason": Literal["not_frozen", "not_opted_in", "too_few_scopes", "too_few_decisions"] | None,
        # The reason in sentences, and what would change it; null if something is shown.
        "explanation": str | None,
        # The month of the freeze, for example 2026-11. Scopes that had opted in when it began take part. Null if
        # nothing is frozen yet.
        "month": str | None,
        # The first moment of the month in which the decisions were made, UTC; null for an empty chain if nothing is
        # frozen.
        "from": str | None,
        # The last moment of that month; null in the same case.
        "to": str | None,
        # The number of other scopes, rounded down to a step: 5, 10, 20, 50 and so on; null if nothing is shown.
        "scopes_at_least": int | None,
        # The number of their decisions: each scope's number is rounded down to a step, and so is the sum; null if
        # nothing is shown.
        "decisions_at_least": int | None,
        # Percentiles of the others' rates, by nearest rank: each is the rounded rate of one scope. Null if nothing
        # is shown.
        "percentiles": CohortPercentiles | None,
        # Your rates minus p50, six decimals; null if nothing is shown.
        "deltas": CohortDeltas | None,
    },
)
"""What is known about the other scopes together, or why nothing is shown."""


BenchmarkCoverage = TypedDict(
    "BenchmarkCoverage",
    {
        # How many decisions.
        "decisions": int,
        # When the first of these decisions was made, UTC; null if there are none.
        "from": str | None,
        # When the last of them was made, UTC; null if there are none.
        "to": str | None,
        # The last position of the scope's chain that was read; 0 for an empty chain.
        "chain_position": int,
        # The chain's rolling root at that position; null for an empty chain.
        "merkle_root": str | None,
        # Whether `limit` left out earlier decisions.
        "truncated": bool,
    },
)
"""Which of your own decisions the report covers."""


class BenchmarkReport(TypedDict):
    """A policy of your scope next to the same policy in other scopes that opted in. Others' rates are rounded to
    0.05, and nothing is shown for fewer than 5 of them. The report has no dates except those of its data: the same
    ledger gives the same report, byte for byte. Your own shares have six decimals.
    """

    policy_benchmarks_version: str
    """Version of the formulas."""
    policy_id: str
    """The policy of the report."""
    policy_version: str | None
    """Of your own decisions, only those under this version; null for all."""
    verdict: Verdict | None
    """Of your own decisions, only those with this verdict; null for all."""
    since: str | None
    """Of your own decisions, only those from this time on, UTC; null for no limit."""
    until: str | None
    """Of your own decisions, only those before this time, UTC; null for no limit."""
    clock: str
    """Which date counts: when the gate recorded the decision."""
    your_metrics: OwnMetrics
    """Your own decisions of the month, by their latest outcome reported before the freeze. `present` has all of your
    decisions up to now.
    """
    cross_customer: CrossCustomer
    """What is known about the other scopes together, or why nothing is shown."""
    recommendation: Literal["not_compared", "insufficient_outcomes", "below_cohort", "within_cohort", "above_cohort"]
    """What to do, by your success rate, rounded like the others'. It authorizes nothing."""
    min_cohort_scopes: int
    """How many other scopes a comparison needs."""
    min_cohort_decisions: int
    """How many decisions of theirs it needs."""
    limit: int | None
    """How many of your own decisions were counted, the latest in the chain; null for all."""
    coverage: BenchmarkCoverage
    """Which of your own decisions the report covers."""
    notes: list[str]
    """What the report cannot know, as sentences."""
    benchmark_hash: str
    """Hash of this report without this field."""


class RulebookField(TypedDict):
    """An entry of `properties` in RulebookInputs."""

    type: Literal["number", "integer", "string", "boolean", "array", "object", "null"]
    """The JSON type that the fact must have."""


class RulebookInputs(TypedDict):
    """The facts that the rules can test."""

    required: list[str]
    """Required facts. If one is missing, the verdict is `review` with `INPUT_SCHEMA_FAILED`."""
    properties: dict[str, RulebookField]
    """The type of each fact, by its dotted path."""


RulebookCondition = TypedDict(
    "RulebookCondition",
    {
        # Conditions that must all hold.
        "all": NotRequired["list[RulebookCondition]"],
        # Conditions. At least one must hold.
        "any": NotRequired["list[RulebookCondition]"],
        # A condition that must not hold.
        "not": NotRequired["RulebookCondition"],
        # In a test: the fact, as a dotted path.
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
        # In a test: the value to compare with; omitted with `exists` and `not_exists`.
        "value": NotRequired[Json],
    },
)
"""Exactly one of: a test {field, operator, value}, {all: [...]}, {any: [...]}, {not: condition}."""


class RulebookOutcome(TypedDict):
    """The decision of a rule or of the default."""

    decision: Verdict
    """The verdict of the record."""
    verdict: str
    """Your own word for it, for example `APPROVE`."""
    action: str
    """A label for what the caller should do."""
    reason_code: str
    """A stable code for the reason."""


class RulebookRule(TypedDict):
    """A condition, and the outcome if it holds."""

    rule_id: str
    """The rule's id, unique in the rulebook: `matched_rule_id` of the records it decides."""
    priority: NotRequired[int]
    """Higher comes first."""
    condition: RulebookCondition
    """When the rule matches."""
    outcome: RulebookOutcome
    """The outcome if the rule matches."""


class Rulebook(TypedDict):
    """A versioned declarative rulebook. Beyond what a schema can say: rule ids are unique, all rules together hold
    at most 256 condition nodes, and a condition nests at most 8 deep.
    """

    schema_version: str
    """Version of this format."""
    rulebook_id: str
    """The rulebook's id: `policy_id` of the records it decides."""
    version: str
    """The version label. The rules of a registered id and version never change."""
    input_schema: RulebookInputs
    """The facts that the rules can test."""
    rules: list[RulebookRule]
    """The rules. Among those that match, the highest priority decides; equal priorities go by `rule_id`."""
    default_outcome: RulebookOutcome
    """The outcome if no rule matches."""


class DecisionRequestTemplate(TypedDict):
    """A Decision Request that runs as written and gets the verdict `yes`."""

    mode: str
    """Always `rulebook`: the verdict is binding."""
    question: str
    """The decision in words."""
    rulebook: Rulebook
    """The whole Rulebook v1."""
    context: DecisionContext
    """The subject of the decision, and the facts."""
    adapter: NotRequired[AdapterInvocation]
    """The adapter that makes the facts; without it, they are in `context.inputs`."""


class OutcomeTemplate(TypedDict):
    """The report to send after the action. Replace each value in angle brackets with the record's field of that
    name.
    """

    outcome_status: OutcomeStatus
    """The outcome."""
    action_taken: str
    """The action that was taken."""
    action_executed: bool
    """Whether the action was executed."""
    target_system: str
    """The system that was changed."""
    target_object_id: str
    """The object that was changed."""
    mutation: str
    """The change."""
    external_ref: str
    """Your own reference."""
    decision_record_hash: str
    """The record's `record_hash`."""
    decision_receipt_hash: str
    """The record's `receipt_hash`."""
    observed_metrics: dict[str, float]
    """The measured values, by name."""


class CrmSyncTemplate(TypedDict):
    """The report to send after you write the decision to a CRM. Replace each value in angle brackets with the
    record's field of that name.
    """

    sync_status: SyncStatus
    """The result of the sync."""
    sync_direction: SyncDirection
    """To the CRM, or from it."""
    crm_provider: str
    """The CRM."""
    crm_object_type: str
    """The type of the CRM's object."""
    crm_object_id: str
    """The CRM's object."""
    crm_record_url: str
    """The URL of the object."""
    decision_record_hash: str
    """The record's `record_hash`."""
    decision_receipt_hash: str
    """The record's `receipt_hash`."""
    decision_verdict: str
    """The record's verdict."""
    decision_action: str
    """The record's action."""
    policy_id: str
    """The record's `policy_id`."""
    policy_version: str
    """The record's `policy_version`."""


class PatternExamples(TypedDict):
    """Programs that decide with the template. They read `GATE_URL` and `GATE_API_KEY`, and exit with 0 only if the
    verdict is `yes`.
    """

    curl: str
    """For bash, with curl."""
    python: str
    """For Python, with httpx."""


class PolicyPattern(TypedDict):
    """A policy with a request, templates and examples for it."""

    pattern_id: str
    """The pattern's id."""
    policy_id: str
    """The id of its rulebook."""
    title: str
    """The pattern's title."""
    description: str
    """The subject of the policy, and how it decides."""
    tags: list[str]
    """The tags by which patterns can be filtered."""
    recommended_policy_version: str
    """The version to use: the active one."""
    policy_hash: str
    """Hash of the rulebook in that version."""
    decision_request_template: DecisionRequestTemplate
    """A Decision Request that runs as written and gets the verdict `yes`."""
    outcome_template: OutcomeTemplate
    crm_sync_template: CrmSyncTemplate
    sdk_examples: PatternExamples
    """Programs that decide with the template. They read `GATE_URL` and `GATE_API_KEY`, and exit with 0 only if the
    verdict is `yes`.
    """
    pattern_hash: str
    """Hash of the pattern without this field."""


class PolicyIntelligence(TypedDict):
    """Reports about the policy; absent with `include_intelligence=false`, and for advisory records."""

    effectiveness: NotRequired[EffectivenessReport]
    """The effectiveness report for the same policy and version. Absent from packets of earlier releases."""
    confidence: NotRequired[ConfidenceReport]
    """The confidence report for the same policy, version, verdict, and action."""
    anomalies: NotRequired[AnomalyReport]
    """The anomaly report for the same policy in all versions. Absent from packets of earlier releases."""
    benchmarks: NotRequired[BenchmarkReport]
    """The benchmark report for the same policy in all versions. Absent from packets of earlier releases."""
    patterns: NotRequired[list[PolicyPattern]]
    """The patterns of the policy; empty for a policy of your own."""


class ChainLink(TypedDict):
    """One entry of the chain, linked to the one before."""

    decision_chain_version: str
    """Version of the link format."""
    chain_id: str
    """The chain that the link belongs to."""
    chain_position: int
    """The position in the chain, counted from 1 without gaps."""
    previous_link_hash: str | None
    """The hash of the link before; null for the first."""
    previous_merkle_root: str | None
    """The rolling root before this link; null for the first."""
    leaf_hash: str
    """Hash of the entry's id, record hash, and receipt hash."""
    merkle_root: str
    """The rolling root after this link."""
    merkle_strategy: str
    """How the rolling root is computed."""
    entry_type: EntryType
    """The kind of entry that was appended."""
    decision_id: str
    """The decision that the entry belongs to."""
    record_hash: str
    """Hash of the record that was appended."""
    receipt_hash: str | None
    """The record's receipt hash; null if the entry has none."""
    policy_id: str | None
    """The policy that decided; null if the entry has none."""
    policy_version: str | None
    """The policy's version; null if the entry has none."""
    created_at: str
    """When the entry was appended, UTC."""
    link_hash: str
    """Hash of this link without this field."""


class Checkpoint(TypedDict):
    """A signed statement of a chain's size and root, for someone else to keep."""

    checkpoint_version: str
    """Version of the checkpoint format."""
    chain_id: str
    """The chain's id."""
    chain_size: int
    """The number of links at that time."""
    merkle_root: str | None
    """The chain's rolling root at that time; null for an empty chain."""
    link_hash: str | None
    """The hash of the chain's last link at that time; null for an empty chain."""
    issued_at: str
    """When the checkpoint was signed, UTC with milliseconds."""
    key_id: str
    """The receipt key that signed it."""
    signature: str
    """The key's signature over the other fields."""


class VerificationHints(TypedDict):
    """How to verify the parts, in words, and a checkpoint that covers the retained links."""

    checkpoint: NotRequired[Checkpoint]
    """A checkpoint of the last retained link, signed at the export; absent if receipt signing is off."""


class PacketChain(TypedDict):
    """The decision's place in its chain, and the links after it; absent with `include_chain=false`."""

    chain_id: str
    """The chain's id."""
    chain_size: int
    """The position of the last retained link."""
    merkle_root: str
    """The rolling root after the last retained link."""
    retained_links: list[ChainLink]
    """Consecutive links, starting with the decision's own."""
    verification_hints: VerificationHints
    """How to verify the parts, in words, and a checkpoint that covers the retained links."""


class DecisionPacket(TypedDict):
    """A decision with its reports and proofs. To verify it, you need only the key that signed its record. Later
    releases may add optional fields.
    """

    decision_packet_version: str
    """Version of the packet format."""
    decision_id: str
    """The decision's id."""
    record_hash: str
    """The record's hash of that name."""
    receipt_hash: str
    """The record's hash of that name."""
    decision_record: DecisionRecord
    """The full Decision Record."""
    execution_receipts: list[ExecutionReceipt]
    """The execution receipts, newest first, as they were returned."""
    outcome_records: list[OutcomeRecord]
    """The outcome records, newest first, as they were returned."""
    resolution: NotRequired[dict[str, Json]]
    """The resolution of a held decision, as it was returned; absent if there is none."""
    policy_intelligence: NotRequired[PolicyIntelligence]
    """Reports about the policy; absent with `include_intelligence=false`, and for advisory records."""
    audit_chain: NotRequired[PacketChain]
    """The decision's place in its chain, and the links after it; absent with `include_chain=false`."""
    input: NotRequired[dict[str, Json] | None]
    """The Decision Request; only with `include_input=true`. Null if it was erased."""
    exported_at: str
    """When the packet was exported, UTC with milliseconds."""
    packet_hash: str
    """Hash of the packet without this field."""


# Responses: Replay.


class ReplayDifference(TypedDict):
    """A field that differs."""

    field: Literal["verdict", "evidence", "record_hash", "policy_bundle_hash"]
    """Its name."""
    stored: str | list[str]
    """The value in the stored record."""
    replayed: str | list[str]
    """The value in the replay."""


class ReplayedDecision(TypedDict):
    """The replayed record in the requested view: a Decision Record without a receipt signature, `audit_chain`, and
    `decision_confidence`.
    """

    decision_id: str
    """The id of the stored decision."""
    request_id: str
    """As in the stored record."""
    verdict: Verdict
    """The verdict of the replay. It lets no action proceed."""
    application_verdict: str
    """The rulebook's own word for it; `ADVISORY` for an advisory decision."""
    reason_code: str
    """Reason code of the outcome."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome."""
    action: str
    """Action label."""
    rulebook: NotRequired[RulebookIdentity]
    """The rulebook of the replay: `schema_version`, `id`, `version`, `hash`. Absent for an advisory decision."""
    decision_contract: NotRequired[dict[str, Json]]
    """Present only for an advisory decision: it authorizes nothing."""
    policy_bundle_hash: str
    """Hash of the policy bundle of that rulebook, or of the prompt template."""
    record_hash: str
    """Hash of the replayed record's envelope."""
    receipt_hash: str
    """Receipt hash of the replayed record. It is not signed."""


class ReplayResult(TypedDict):
    """The repeated decision, and its differences from the stored one. It proves and authorizes nothing."""

    decision_id: str
    """The decision that was replayed."""
    replay_contract: NotRequired[str]
    """Label of the rules of a historical replay; absent from a replay in mode `current`."""
    replay_against: Literal["historical", "current"]
    """The rulebook that was used: the `historical` or the `current` one."""
    compared_fields: list[str]
    """The fields that were compared."""
    replay_status: Literal["matched", "drifted"]
    """`matched` if `drift` is empty."""
    drift: list[ReplayDifference]
    """Each compared field that differs."""
    decision: ReplayedDecision
    """The replayed record in the requested view: a Decision Record without a receipt signature, `audit_chain`, and
    `decision_confidence`.
    """


class ScenarioBase(TypedDict):
    """The five fields that each scenario is compared with."""

    verdict: str
    """The verdict."""
    application_verdict: str
    """The rulebook's own verdict."""
    action: str
    """Action label."""
    reason_code: str
    """Reason code."""
    matched_rule_id: str | None
    """The rule that matched; null for the default outcome and for missing input."""


class ScenarioDifference(TypedDict):
    """A field that differs."""

    field: Literal["verdict", "application_verdict", "action", "reason_code", "matched_rule_id"]
    """Its name."""
    stored: str | None
    """The value in the stored record."""
    scenario: str | None
    """The value in the scenario."""


class ScenarioResult(TypedDict):
    """The rulebook's decision in one scenario."""

    scenario_id: str
    """As in the request."""
    label: str
    """As in the request; the `scenario_id` by default."""
    facts_changed: bool
    """Whether the facts (`context.inputs`) differ from the stored ones. A patch of other parts does not change the
    verdict.
    """
    verdict: str
    """The verdict in the scenario."""
    application_verdict: str
    """The rulebook's own word for it in the scenario."""
    action: str
    """The action label in the scenario."""
    reason_code: str
    """The reason code in the scenario."""
    matched_rule_id: str | None
    """The rule that would match; null for the default outcome and for missing input."""
    diff: list[ScenarioDifference]
    """The fields of these five that differ from the stored record."""
    recommendation: Literal["no_change", "same_verdict", "would_proceed", "would_block", "would_hold"]
    """`no_change`: none of the five fields differs. `same_verdict`: only other fields differ. `would_proceed`,
    `would_block`, `would_hold`: the verdict becomes `yes`, `no`, or `review`.
    """
    evidence: NotRequired[list[str]]
    """Evidence codes; in the views `standard` and `full`."""
    evaluation: NotRequired[Evaluation]
    """Every rule up to the match, with every test, as in a record; in the view `full`."""


class CounterfactualsResult(TypedDict):
    """The decision of the latest version of the rulebook in each scenario. This is a simulation: nothing is stored,
    and nothing authorizes an action.
    """

    decision_counterfactuals_version: str
    """Version of this format."""
    decision_id: str
    """The decision whose context was patched."""
    simulation_only: bool
    """Always true: nothing here was decided."""
    authorizes_mutation: bool
    """Always false: no action may proceed because of it."""
    rulebook: RulebookIdentity
    """The rulebook that was used: the version that the scope registered last."""
    base: ScenarioBase
    """The value in the stored record."""
    scenarios: list[ScenarioResult]
    """The scenarios, in the order of the request."""
    counterfactual_hash: str
    """Hash of this answer without this field, in the view in which it was returned."""


# Responses: Reports.


class PolicyAlert(TypedDict):
    """One alert."""

    policy_id: str
    """The policy."""
    anomaly: Anomaly
    """The anomaly, as the policy's report lists it."""
    report: str
    """The path of that report."""


class AlertsCoverage(TypedDict):
    """What the answer covers, and how far the chain was read."""

    policies: int
    """The number of policies covered, at most 100, those with the most decisions."""
    more_policies: int
    """The number of other policies."""
    as_of: str | None
    """The date of the chain's last entry; null for an empty chain."""
    chain_position: int
    """The last position of the scope's chain that was read; 0 for an empty chain."""
    merkle_root: str | None
    """The chain's rolling root at that position; null for an empty chain."""


class PolicyAlertsChangedEntry(TypedDict):
    """An entry, by its key."""

    vendor: str
    """The vendor."""
    region: str
    """The region; `*` for all."""
    plan: str
    """The plan; `*` for all."""
    members: NotRequired[list[str]]
    """The changed fields."""


class PolicyAlertsPolicyChange(TypedDict):
    """A policy table that replaced another."""

    service: Literal["refund", "cancel", "return", "trial"]
    """The service that answers from it."""
    number: int
    """Which of the service's tables it is, counted from 1."""
    changed_at: str
    """When it became active, UTC."""
    origin: Literal["operator", "release"]
    """`operator`, or `release` if it came with the product."""
    previous_hash: str
    """The hash of the table before it."""
    table_hash: str
    """The hash of the table."""
    added: list[PolicyAlertsChangedEntry]
    """New entries."""
    removed: list[PolicyAlertsChangedEntry]
    """Removed entries."""
    changed: list[PolicyAlertsChangedEntry]
    """Changed entries, each with the names of its changed fields."""


class PolicyAlerts(TypedDict):
    """The open anomalies of high severity of all policies of a scope. An anomaly stays open until `open_days` after
    its window, counted to the date of the chain's last entry. You cannot acknowledge one.
    """

    policy_alerts_version: str
    """Version of the answer."""
    alert_count: int
    """The number of open alerts."""
    alerts: list[PolicyAlert]
    """The alerts, at most 100. The order is lasting harm, other harm, other lasting changes; then by cost; then by
    score.
    """
    open_days: int
    """How many days an anomaly stays open after its window."""
    coverage: AlertsCoverage
    """What the answer covers, and how far the chain was read."""
    policy_changes: NotRequired[list[PolicyAlertsPolicyChange]]
    """Changes of the service's policy tables, newest first, among the 50 most recent tables. Absent if nothing
    changed, and in reports over a lake.
    """
    alerts_hash: str
    """Hash of the answer without this field."""


# Responses: Policy services.


class RefundWorkflowAnswerTicket(TypedDict):
    """Content for the ticket."""

    tags: list[str]
    """Tags of the characters `a-z`, `0-9`, and `_`."""
    private_note: str
    """A note for agents, as lines of plain text. Escape it if notes are HTML."""
    recommended_action: str
    """The next step, as a sentence."""


class RefundWorkflowAnswerDecision(TypedDict):
    """The Decision Record in short; only with a key."""

    decision_id: str
    """The record's decision id."""
    verdict: Verdict
    """Its verdict."""
    application_verdict: str
    """The verdict of the policy."""
    reason_code: str
    """The reason."""
    record_hash: str
    """Its hash."""
    receipt_hash: str
    """The hash of its receipt."""
    verify_url: str
    """The path that verifies it."""


class RefundWorkflowAnswer(TypedDict):
    """The policy table's answer about a ticket's refund, ready for the ticket. With a key, it also refers to a
    Decision Record.
    """

    workflow_version: str
    """Version of the answer."""
    request_id: str
    """Store it with the ticket. Without a key: the hash of `{body, day}` with the UTC day, so that the same question
    on the same day has the same id. With a key: the record's `request_id`.
    """
    ticketing_system: Literal["zendesk", "freshdesk", "intercom"]
    """The help desk."""
    ticket_id: str
    """The ticket."""
    action: str
    """The next step: the rulebook's action."""
    policy_class: Literal["ALLOWED", "DENIED", "UNKNOWN"]
    """The verdict of the policy."""
    code: str
    """The stable reason code."""
    message: str
    """The reason as a sentence."""
    execution_allowed: bool
    """Whether the refund may be made: true only if a key was sent and its signed record says `yes`."""
    ticket: RefundWorkflowAnswerTicket
    """Content for the ticket."""
    policy: dict[str, Json]
    """The policy answer."""
    decision: NotRequired[RefundWorkflowAnswerDecision]
    """The Decision Record in short; only with a key."""


# Responses: Audit chain.


class ChainVerification(TypedDict):
    """Whether the links fit together and lead to the head."""

    valid: bool
    """Whether every link fits, and the last one is the head."""
    links_checked: int
    """The number of links checked."""
    from_position: int | None
    """Position of the first link checked; null if there was none."""
    to_position: int | None
    """Position of the last link checked; null if there was none."""
    broken_at: int | None
    """Position of the first broken link; null if there is none."""
    reason: str | None
    """The fault of that link; null if there is none."""


class Chain(TypedDict):
    """The head of your scope's chain and its last links, in ascending order."""

    chain_id: str
    """The id of your scope's chain."""
    chain_size: int
    """The number of links in the chain."""
    merkle_root: str | None
    """The rolling root after the last link; null for an empty chain."""
    head_link_hash: str | None
    """The hash of the last link; null for an empty chain."""
    retained_links: list[ChainLink]
    """The last links in ascending order, as many as `limit` allows."""
    verification: ChainVerification
    """Whether the links fit together and lead to the head."""


# Responses: Operations.


class StatusPart(TypedDict):
    """One part of the service. Parts have more fields of their own."""

    ready: bool
    """Whether the part works now."""
    reason: NotRequired[str]
    """Why it does not work."""


class Status(TypedDict):
    """Readiness of everything that a decision needs. The service tries each part. The fields are the same when it is
    ready (200) and when it is not (503).
    """

    ok: bool
    """Whether every part is ready."""
    status: Readiness
    """The result in one word."""
    version: str
    """Version of the service."""
    interface_version: str
    """Version of this interface description."""
    signing: StatusPart
    """Receipt and registry signing: whether the keys can be loaded, and whether the clock is not earlier than their
    first use.
    """
    rulebook_runtime: StatusPart
    """The contract by which rulebooks are validated and evaluated. Each process decides the golden replay corpus
    once, and must reach the frozen results.
    """
    ledger: StatusPart
    """The store of the records: whether a write to it becomes durable."""
    idempotency: StatusPart
    """Whether the table of idempotency keys can be used."""
    registries: StatusPart
    """Whether the key registries and the registered rulebooks can be read."""
    auth: StatusPart
    """Whether the tables of API keys and rate limits can be used."""
    backends: StatusPart
    """Each backend by name: `ledger` (`sqlite` or `postgresql`), `advisory`, `trusted_adapters`, and `reports`, the
    process that computes reports. Each of the last three is `ready`, `unavailable`, `unconfigured`, or `unknown` if
    no server is running. Decisions do not need these three.
    """
    disk: StatusPart
    """Whether the ledger's disk has at least 64 MiB free. Not checked on PostgreSQL."""
    checkpoints: StatusPart
    """Whether the service keeps signed checkpoints of every chain (`kept`), when it last checked all of them
    (`looked_at`, UTC or null), and how many chains no longer contain the last kept checkpoint (`refused`). `note`
    says why none are kept.
    """
    workers: NotRequired[StatusPart]
    """The processes that answer requests: `asked`, `running`, `crash_looping`, `deaths`, and `last_deaths`. Not
    ready if fewer than `asked` run for 10 seconds, or if one dies three times in a row within 30 seconds of its
    start. Present under `gate serve`.
    """
    trusted_adapters: StatusPart
    """The adapters that can be called, and how a worker is restricted on the service's machine: `registered`,
    `required`, and `in_force`. `ok` does not depend on it.
    """
    policy_tables: StatusPart
    """The tables that policy services answer from, as `tables`: `service`, `origin` (`operator`, or `release` if it
    came with the product), `hash`, `entries`, and `fault` if the operator's file is broken. The last good table then
    stays active. `ok` does not depend on it.
    """
    contracts: dict[str, str]
    """The version label of each contract of the protocol, including those whose parts come with later releases."""


class Probe(TypedDict):
    """The answer to a health probe: whether the process is alive, or ready."""

    ok: bool
    """Whether the answer is good."""
    status: Literal["alive", "ready", "degraded"]
    """The result in one word."""


class RequestLimits(TypedDict):
    """Limits of requests."""

    request_bytes: int
    """Largest body of a request."""
    verify_bytes: int
    """Largest body at the verify endpoints."""
    nesting: int
    """How many levels deep arrays and objects may nest."""
    idempotency_key_characters: int
    """Longest idempotency key."""
    sandbox_bytes: NotRequired[int]
    """Largest body at the sandbox."""
    sandbox_requests_per_minute: NotRequired[int]
    """How many requests one IP address may send to the sandbox per minute."""
    pilot_requests_per_minute: NotRequired[int]
    """How many pilot requests, and how many confirmations, one IP address may send per minute."""


class RuntimeConfig(TypedDict):
    """The settings of this service that callers may know. None of them is secret."""

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
    """Path of the OpenAPI document."""
    docs_url: str
    """Path of the documentation page."""
    modes: dict[str, Literal["binding", "advisory", "unconfigured"]]
    """How each mode of a Decision Request is answered: `binding`, `advisory`, or `unconfigured` (503)."""
    binding_modes: list[str]
    """The binding modes that this service supports."""
    response_views: list[str]
    """The views of a record."""
    receipt_signing: ReceiptSigning
    """How receipts are signed."""
    registry_signing: RegistrySigning
    """How attestations and registrations are signed."""
    limits: RequestLimits
    """Limits of requests."""


class ProofMetrics(TypedDict):
    """How many records and keys the instance holds, across all of its scopes."""

    ok: bool
    """Always true."""
    generated_at: str
    """When they were counted, UTC."""
    status: Readiness
    """Readiness at that time."""
    scopes: int
    """The number of scopes, each with its own chain."""
    chain_entries: int
    """The number of entries in all chains together."""
    registered_rulebooks: int
    """The number of registered rulebook versions."""
    receipt_keys: int
    """The number of current and past receipt keys that are published."""
    attestation_keys: int
    """The number of current and past attestation keys that are published."""
    receipt_signing: ReceiptSigning
    """How receipts are signed."""
    registry_signing: RegistrySigning
    """How attestations and registrations are signed."""


class PilotSubmission(TypedDict):
    """The answer to a pilot request. It is the same whether the e-mail address is new or not."""

    pilot_id: str
    """The id of the pilot request; the operator's message repeats it."""
    status: str
    """The request waits for confirmation."""


class PilotConfirmation(TypedDict):
    """The answer to a confirmation."""

    status: str
    """The request is confirmed, now or earlier."""


# Responses: Migrations.


class RulebookVersion(TypedDict):
    """A version of the rulebook."""

    version: str
    """Its version label."""
    hash: str
    """Hash of the rulebook."""


class Actor(TypedDict):
    """The actor."""

    type: ActorType
    """The type of actor: a user, an API key, or the service itself."""
    id: str
    """The user's name, or the key's id."""


Route = TypedDict(
    "Route",
    {
        # Version of the protocol.
        "decision_protocol_version": str,
        # Version of the entry format.
        "decision_route_version": str,
        # The entry's id; `decision_id` of its link.
        "route_entry_id": str,
        # The rulebook id.
        "rulebook_id": str,
        # The previous version; null for the first route.
        "from": RulebookVersion | None,
        # The new version.
        "to": RulebookVersion,
        # Whether a migration was applied, or an earlier version was restored.
        "cause": RouteCause,
        # The migration that was applied, or whose version a rollback restored.
        "migration_id": str,
        # `migration_hash` of that migration's approval; null if it needed none.
        "approval_hash": str | None,
        # Hash of the evidence behind the route.
        "evidence_hash": str,
        # The actor.
        "actor": Actor,
        # The actor's comment; may be empty.
        "note": str,
        # When it was recorded, UTC with milliseconds.
        "recorded_at": str,
        # Hash of the entry without this field; `record_hash` of its link.
        "route_hash": str,
    },
)
"""The chain entry that set the version of a rulebook id."""


class RouteList(TypedDict):
    """The current routes of your scope, by rulebook id."""

    count: int
    """The number of rulebook ids with a route; with `rulebook_id`, 1 or 0."""
    routes: list[Route]
    """The current route of each rulebook id, in the order of the ids."""
    history: NotRequired[list[Route]]
    """All routes of the requested `rulebook_id`, newest first, as many as `limit` allows. Absent without
    `rulebook_id`.
    """


class MigrationCandidate(TypedDict):
    """A version of a rulebook that the migration proposes."""

    rulebook_id: str
    """The rulebook's id."""
    version: str
    """Its version label."""
    hash: str
    """Hash of the rulebook."""


class MigrationSummary(TypedDict):
    """A migration and its state."""

    migration_id: str
    """The id that its author gave it."""
    state: MigrationState
    """The migration's status until it is applied; then `applied` or `rolled_back`."""
    status: MigrationStatus
    """The status in its manifest."""
    candidates: list[MigrationCandidate]
    """The proposed versions, in the order of their rulebook ids."""
    manifest_hash: str
    """Hash of the manifest of its latest proposal."""
    evidence_hash: str
    """Hash of the evidence of its latest proposal."""
    proposed_by: str
    """The user who proposed it."""
    proposed_at: str
    """When it was last proposed, UTC with milliseconds."""
    decided_by: str | None
    """The user who approved, rejected, or superseded that proposal; null if nobody has."""
    decided_at: str | None
    """When that happened, UTC; null if it has not."""


class MigrationList(TypedDict):
    """A page of the migrations of your scope, the latest proposal first."""

    count: int
    """The number of migrations on this page."""
    migrations: list[MigrationSummary]
    """The migrations."""
    next_cursor: str | None
    """The `cursor` of the next page; null on the last one."""


class MigrationEntry(TypedDict):
    """The chain entry of a proposal, approval, rejection, or supersession."""

    decision_protocol_version: str
    """Version of the protocol."""
    decision_migration_version: str
    """Version of the entry format."""
    migration_entry_id: str
    """The entry's id; `decision_id` of its link."""
    migration_id: str
    """The migration's id."""
    event: MigrationStatus
    """The event."""
    manifest_hash: str
    """Hash of its manifest."""
    evidence_hash: str
    """Hash of the evidence behind the event."""
    candidates: list[MigrationCandidate]
    """The proposed versions, in the order of their rulebook ids."""
    actor: Actor
    """The actor."""
    note: str
    """The actor's comment; may be empty."""
    recorded_at: str
    """When it was recorded, UTC with milliseconds."""
    migration_hash: str
    """Hash of the entry without this field; `record_hash` of its link."""


class Migration(TypedDict):
    """A migration of your scope: its manifest, its state, and all chain entries about it."""

    migration_id: str
    """The id that its author gave it."""
    state: MigrationState
    """The migration's status until it is applied; then `applied` or `rolled_back`."""
    status: MigrationStatus
    """The status of the latest proposal."""
    candidates: list[MigrationCandidate]
    """The proposed versions, in the order of their rulebook ids."""
    manifest_hash: str
    """Hash of the manifest of its latest proposal."""
    evidence_hash: str
    """Hash of the evidence of its latest proposal."""
    proposed_by: str
    """The user who proposed it."""
    proposed_at: str
    """When it was last proposed, UTC with milliseconds."""
    decided_by: str | None
    """The user who approved, rejected, or superseded that proposal; null if nobody has."""
    decided_at: str | None
    """When that happened, UTC; null if it has not."""
    manifest: dict[str, Json]
    """The manifest (`rulebook_migration_v1`) with the current `status` and `approval`."""
    entries: list[MigrationEntry]
    """All chain entries about it, in the order of the chain."""
    routes: list[Route]
    """The routes that cite it, and the rollbacks that undid it, in the order of the chain."""
    stale: list[str]
    """Why the evidence of an open migration (proposed or approved) no longer applies, as sentences; empty if it is
    current. Nobody can approve or apply a migration with stale evidence.
    """


class MigrationEvidenceVersion(TypedDict):
    """A version of a rulebook."""

    version: str
    """The version label."""
    hash: str
    """The rulebook's hash."""


class MigrationEvidenceEdit(TypedDict):
    """One change by the author. Its effect is in the difference."""

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
    """The kind of change."""
    name: str
    """The rule's id or the fact's name; empty for the default outcome."""
    text: str
    """The change as a sentence."""


class MigrationEvidenceResult(TypedDict):
    """The result of a rulebook for some facts."""

    decision: Verdict
    """The verdict."""
    verdict: str
    """The rulebook's own word for the verdict."""
    action: str
    """The action."""
    reason_code: str
    """The reason code."""
    rule_id: str | None
    """The rule that matches; null for the default outcome, and for facts that the input schema rejects."""


MigrationEvidenceRegion = TypedDict(
    "MigrationEvidenceRegion",
    {
        # The result of the base.
        "from": MigrationEvidenceResult,
        # The result of the candidate.
        "to": MigrationEvidenceResult,
        # How dangerous the change is.
        "severity": Literal["danger", "warning", "note"],
        # The facts of the region in words. In addition, the facts match the input schema of each rulebook that
        # accepts them.
        "condition": str,
        # An example: facts in the region, evaluated under both rulebooks.
        "witness": dict[str, Json],
    },
)
"""A region of facts whose result changes."""


class MigrationEvidenceDifference(TypedDict):
    """The differences from the rulebook that it was compared with."""

    decided: bool
    """Whether all regions are listed."""
    equal: bool | None
    """Whether both give the same result for all facts; null if that is not decided."""
    regions: list[MigrationEvidenceRegion]
    """Regions of facts whose result changes, the most dangerous first. They may overlap."""
    undecided: list[str]
    """The questions that reached a limit, as sentences. Nothing is guessed about them."""


class MigrationEvidenceFinding(TypedDict):
    """A finding of the analysis."""

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
    """The kind of finding."""
    severity: Literal["danger", "warning", "note"]
    """How serious it is."""
    rule_ids: list[str]
    """The rules concerned; the first is the one that the finding is about."""
    path: str
    """The place in the rulebook, for example `rules[0].condition.all[1]`."""
    message: str
    """The finding as a sentence."""
    witness: dict[str, Json] | None
    """Facts that show the finding, confirmed by the evaluator; null if the proof needs no example."""
    name: str
    """The name for `--accept`: the kind, and the field, rule, or place."""
    accepted: bool
    """Whether `--accept` lists it. An accepted finding is not a danger."""


class MigrationEvidenceAnalysis(TypedDict):
    """The analysis of the candidate for every possible set of facts."""

    decided: bool
    """Whether every question was decided, including those of the difference."""
    findings: list[MigrationEvidenceFinding]
    """The findings of the analysis; dangers come first."""
    undecided: list[str]
    """The questions that reached a limit, as sentences. Nothing is guessed about them."""


class MigrationEvidenceTestsFailures(TypedDict):
    """A failed case."""

    case: str
    """Its name."""
    message: str
    """Why it failed."""
    rules: list[str]
    """The rules that decided unexpectedly, or that should have decided."""


class MigrationEvidenceGoals(TypedDict):
    """The number of goals of one kind that are reached."""

    met: int
    """The number reached."""
    of: int
    """The total number."""


class MigrationEvidenceTestsCoverage(TypedDict):
    """The goals that the cases reach, by kind."""

    rule_matched: MigrationEvidenceGoals
    default_reached: MigrationEvidenceGoals
    test_true: MigrationEvidenceGoals
    test_false: MigrationEvidenceGoals
    decides_alone: MigrationEvidenceGoals


class MigrationEvidenceTests(TypedDict):
    """Which of the author's cases pass, and what they cover."""

    cases: int
    """The number of cases."""
    failed: int
    """The number of failed cases."""
    cases_hash: str
    """Hash of the cases: name, facts, and expectation of each."""
    failures: list[MigrationEvidenceTestsFailures]
    """The first 50 failed cases."""
    coverage: MigrationEvidenceTestsCoverage
    """The goals that the cases reach, by kind."""
    holes: list[str]
    """The goals that no case reaches although some facts could, as sentences; the first 50."""


class MigrationEvidenceHistoryReadAt(TypedDict):
    """The point of the chain up to which the history was read."""

    chain_id: str
    """The chain's id."""
    chain_position: int
    """The position up to which it was read."""
    merkle_root: str | None
    """The chain's rolling root at that position; null for an empty chain."""


class MigrationEvidenceHistoryNotRedecided(TypedDict):
    """A reason, and the decisions that have it."""

    reason: Literal["facts_erased", "adapter_changed", "facts_withheld"]
    """The first reason that applies. `facts_erased`: the facts were erased. `adapter_changed`: the facts do not come
    from the candidate's adapter, or an adapter made them although callers send the candidate's facts.
    `facts_withheld`: a rulebook reads a personal fact that the lake leaves out.
    """
    decisions: int
    """How many decisions."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""


class MigrationEvidenceRate(TypedDict):
    """A number of decisions out of a total, with the interval of their share."""

    decisions: int
    """How many decisions."""
    of: int
    """The total."""
    share: float | None
    """Their share, six decimals; null if the total is 0."""
    low: float | None
    """The lower end of its 95% Wilson interval; null if the total is 0."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""


class MigrationEvidenceHistoryNewlyApproved(TypedDict):
    """The decisions that become `yes`."""

    decisions: int
    """How many decisions."""
    of: int
    """The total."""
    share: float | None
    """Their share, six decimals; null if the total is 0."""
    low: float | None
    """The lower end of its 95% Wilson interval; null if the total is 0."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""
    from_no: int
    """How many of them were `no`."""
    from_review: int
    """How many of them were `review`."""


class MigrationEvidenceHistoryNewlyBlocked(TypedDict):
    """The decisions that are no longer `yes`."""

    decisions: int
    """How many decisions."""
    of: int
    """The total."""
    share: float | None
    """Their share, six decimals; null if the total is 0."""
    low: float | None
    """The lower end of its 95% Wilson interval; null if the total is 0."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""
    to_no: int
    """How many become `no`."""
    to_review: int
    """How many become `review`."""


class MigrationEvidenceHistoryOtherwiseRefused(TypedDict):
    """The decisions that change from `no` to `review`, or from `review` to `no`."""

    decisions: int
    """How many decisions."""
    of: int
    """The total."""
    share: float | None
    """Their share, six decimals; null if the total is 0."""
    low: float | None
    """The lower end of its 95% Wilson interval; null if the total is 0."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""
    to_no: int
    """How many become `no`."""
    to_review: int
    """How many become `review`."""


class MigrationEvidenceHistoryReviews(TypedDict):
    """Those with one verdict."""

    then_verdict: Verdict
    """The candidate's verdict."""
    decisions: int
    """How many decisions."""
    held: int
    """Those that nobody has resolved yet."""
    granted: int
    """Those that their owner granted."""
    refused: int
    """Those that their owner refused."""
    expired: int
    """Those whose time limit passed before anybody answered."""


class MigrationEvidenceFigure(TypedDict):
    """A number of decisions."""

    decisions: int
    """How many decisions."""
    share: float | None
    """Their share of the total, six decimals; null if the total is 0."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""


class MigrationEvidenceHistoryEarlier(TypedDict):
    """A version that decided."""

    policy_version: str | None
    """The version that decided."""
    decisions: int
    """How many of its decisions the base decides differently."""
    of: int
    """The number that can be decided again."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""


MigrationEvidenceTransition = TypedDict(
    "MigrationEvidenceTransition",
    {
        # The value before. Without a base, null for outcomes beyond the first 1,000 different ones, which are
        # counted together.
        "from": str | None,
        # The value after.
        "to": str,
        # How many decisions.
        "decisions": int,
        # Their share of the total, six decimals; null if the total is 0.
        "share": float | None,
        # The ids of up to ten of these decisions, the latest in the chain, in ascending order.
        "decision_ids": list[str],
    },
)
"""The number of decisions that change from one value to another."""


class MigrationEvidenceHistoryMatrix(TypedDict):
    """Counts of each pair of values under base and candidate, including unchanged values. Changes come first, then
    the pairs with the most decisions.
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
    """The deciding rule under the base: `rule:<id>`, `rule:default`, or `schema:failed`. Without a base, null for
    outcomes beyond the first 1,000 different ones, which are counted together.
    """
    decisions: int
    """How many decisions."""
    redecided: int
    """How many of them can be decided again."""
    changed: int
    """How many of these the candidate decides differently."""
    newly_approved: int
    """How many of these it newly approves."""
    newly_blocked: int
    """How many of these it no longer approves."""
    decision_ids: list[str]
    """The ids of the latest decisions that it decides differently."""


class MigrationEvidenceHistoryThenRules(TypedDict):
    """A rule of the candidate."""

    rule: str
    """The deciding rule under the candidate."""
    decisions: int
    """How many decisions."""
    redecided: int
    """How many of them can be decided again."""
    changed: int
    """How many of these the candidate decides differently."""
    newly_approved: int
    """How many of these it newly approves."""
    newly_blocked: int
    """How many of these it no longer approves."""
    decision_ids: list[str]
    """The ids of the latest decisions that it decides differently."""


class MigrationEvidenceHistoryTransitionsOutcomes(TypedDict):
    """The outcomes of the decisions as they were made, by the latest status."""

    succeeded: int
    """Those that succeeded."""
    partial: int
    """Those that succeeded in part."""
    failed: int
    """Those that failed."""
    reverted: int
    """Those that were undone."""
    pending: int
    """Those whose result is pending."""
    review: int
    """Those whose result is under review."""
    unreported: int
    """Those without any outcome."""


class MigrationEvidenceHistoryTransitions(TypedDict):
    """The decisions that change from one rule to another."""

    rule: str | None
    """The deciding rule under the base. Without a base, null for outcomes beyond the first 1,000 different ones,
    which are counted together.
    """
    then_rule: str
    """The deciding rule under the candidate."""
    verdict: Verdict
    """The verdict of the base."""
    then_verdict: Verdict
    """The verdict of the candidate."""
    action: str | None
    """The action of the base. Without a base, null for outcomes beyond the first 1,000 different ones, which are
    counted together.
    """
    then_action: str
    """The action of the candidate."""
    decisions: int
    """How many decisions."""
    share: float | None
    """Their share of the total, six decimals; null if the total is 0."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""
    outcomes: MigrationEvidenceHistoryTransitionsOutcomes
    """The outcomes of the decisions as they were made, by the latest status."""


class MigrationEvidenceHistoryWeeks(TypedDict):
    """A week."""

    week: str
    """The Monday of the week, UTC."""
    decisions: int
    """How many decisions."""
    redecided: int
    """How many of them can be decided again."""
    changed: int
    """How many of these the candidate decides differently."""
    newly_approved: int
    """How many of these it newly approves."""
    newly_blocked: int
    """How many of these it no longer approves."""
    decision_ids: list[str]
    """The ids of the latest decisions that it decides differently."""


class MigrationEvidenceHistoryVersions(TypedDict):
    """A version that decided."""

    policy_version: str | None
    """The version that decided."""
    decisions: int
    """How many decisions."""
    redecided: int
    """How many of them can be decided again."""
    changed: int
    """How many of these the candidate decides differently."""
    newly_approved: int
    """How many of these it newly approves."""
    newly_blocked: int
    """How many of these it no longer approves."""
    decision_ids: list[str]
    """The ids of the latest decisions that it decides differently."""


MigrationEvidenceHistoryFactsClasses = TypedDict(
    "MigrationEvidenceHistoryFactsClasses",
    {
        # The values in words, for example `10 <= amount < 50`.
        "class": str,
        # How many decisions.
        "decisions": int,
        # How many of them can be decided again.
        "redecided": int,
        # How many of these the candidate decides differently.
        "changed": int,
        # How many of these it newly approves.
        "newly_approved": int,
        # How many of these it no longer approves.
        "newly_blocked": int,
        # The ids of the latest decisions that it decides differently.
        "decision_ids": list[str],
    },
)
"""A class of values."""


class MigrationEvidenceHistoryFacts(TypedDict):
    """A field."""

    field: str
    """The field."""
    classes: list[MigrationEvidenceHistoryFactsClasses]
    """The classes of values that occur. Absent, null, and boolean values are classes. Numbers are split at the
    constants of the rulebooks' tests. Strings, arrays, and objects have a class for each of the 20 most frequent
    values, and one for all others. The 20 are taken from the first 10,000 different values with at most 200
    characters. Values of an undeclared type are a class.
    """


class MigrationEvidenceHistoryOutcomesGoodNewlyBlocked(TypedDict):
    """Of the decisions that were `yes`, are `yes` under the base, and succeeded: those that the candidate no longer
    approves.
    """

    decisions: int
    """How many decisions."""
    of: int
    """The total."""
    share: float | None
    """Their share, six decimals; null if the total is 0."""
    low: float | None
    """The lower end of its 95% Wilson interval; null if the total is 0."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""
    sentence: str
    """The figures as a sentence."""


class MigrationEvidenceHistoryOutcomesBadNewlyBlocked(TypedDict):
    """Of the decisions that were `yes`, are `yes` under the base, and ended otherwise: those that the candidate no
    longer approves.
    """

    decisions: int
    """How many decisions."""
    of: int
    """The total."""
    share: float | None
    """Their share, six decimals; null if the total is 0."""
    low: float | None
    """The lower end of its 95% Wilson interval; null if the total is 0."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""
    sentence: str
    """The figures as a sentence."""


class MigrationEvidenceHistoryOutcomesBadNewlyApproved(TypedDict):
    """Of the newly approved with a final outcome: those that did not succeed."""

    decisions: int
    """How many decisions."""
    of: int
    """The total."""
    share: float | None
    """Their share, six decimals; null if the total is 0."""
    low: float | None
    """The lower end of its 95% Wilson interval; null if the total is 0."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""
    sentence: str
    """The figures as a sentence."""


class MigrationEvidenceHistoryOutcomesNewlyApprovedUnknown(TypedDict):
    """Of the newly approved: those without a final outcome."""

    decisions: int
    """How many decisions."""
    of: int
    """The total."""
    share: float | None
    """Their share, six decimals; null if the total is 0."""
    low: float | None
    """The lower end of its 95% Wilson interval; null if the total is 0."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""
    sentence: str
    """The figures as a sentence."""


class MigrationEvidenceHistoryOutcomes(TypedDict):
    """The known outcomes of changed decisions. The latest status of an outcome counts; `succeeded`, `partial`,
    `failed`, and `reverted` are final.
    """

    good_newly_blocked: MigrationEvidenceHistoryOutcomesGoodNewlyBlocked
    """Of the decisions that were `yes`, are `yes` under the base, and succeeded: those that the candidate no longer
    approves.
    """
    bad_newly_blocked: MigrationEvidenceHistoryOutcomesBadNewlyBlocked
    """Of the decisions that were `yes`, are `yes` under the base, and ended otherwise: those that the candidate no
    longer approves.
    """
    bad_newly_approved: MigrationEvidenceHistoryOutcomesBadNewlyApproved
    """Of the newly approved with a final outcome: those that did not succeed."""
    newly_approved_unknown: MigrationEvidenceHistoryOutcomesNewlyApprovedUnknown
    """Of the newly approved: those without a final outcome."""
    unknowable: str
    """The limit of this knowledge, as a sentence."""


class MigrationEvidenceHistoryMoney(TypedDict):
    """A pair of verdicts."""

    verdict: Verdict
    """The verdict of the base."""
    then_verdict: Verdict
    """The verdict of the candidate."""
    values: int
    """How many decisions have a value."""
    sum: float | None
    """Their sum, six decimals; null if it is too large for a double. The same applies to the other numbers."""
    sum_low: float | None
    """The lower end of its 95% interval: the mean's, times the number of values; null for one value."""
    sum_high: float | None
    """The upper end."""
    mean: float | None
    """Their mean."""
    low: float | None
    """The lower end of its 95% interval, by Student's t; null for one value."""
    high: float | None
    """The upper end."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""


class MigrationEvidenceHistoryMissingFacts(TypedDict):
    """A fact."""

    field: str
    """The field."""
    required: bool
    """Whether the candidate requires it."""
    decisions: int
    """How many decisions."""
    share: float | None
    """Their share of the total, six decimals; null if the total is 0."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""


class MigrationEvidenceHistoryRegions(TypedDict):
    """A region."""

    region: int
    """The region's index in `difference.regions`."""
    decisions: int
    """How many decisions."""
    share: float | None
    """Their share of the total, six decimals; null if the total is 0."""
    decision_ids: list[str]
    """The ids of up to ten of these decisions, the latest in the chain, in ascending order."""


class MigrationEvidenceHistoryLeftOut(TypedDict):
    """How many decisions are in rows that did not fit into a list, by list."""

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
    """The past decisions of the candidate's rulebook id, decided again by the candidate: the changes, and their
    known outcomes. Each figure has the ids of the latest decisions behind it. The same ledger and the same question
    give the same document, byte for byte.
    """

    rulebook_id: str
    """The rulebook id of all decisions, of the base, and of the candidate."""
    base: MigrationEvidenceVersion | None
    """The current version, to which past decisions are compared. Null for a first route: past decisions are then
    compared with their original result.
    """
    candidate: MigrationEvidenceVersion
    """The proposed version."""
    read_at: MigrationEvidenceHistoryReadAt
    """The point of the chain up to which the history was read."""
    since: str | None
    """Only decisions from this time on; null for all."""
    until: str | None
    """Only decisions before this time; null for no limit."""
    metric: str | None
    """The value that `money` sums: a metric of outcomes, or a fact as `inputs.<path>`; null for none."""
    adapter_manifest_hash: str | None
    """The adapter that makes the candidate's facts; null if callers send them."""
    decisions: int
    """How many decisions were used."""
    redecided: int
    """How many of them both rulebooks can decide again. All shares refer to these, unless another total is given."""
    not_redecided: list[MigrationEvidenceHistoryNotRedecided]
    """The decisions that cannot be decided again, by reason. Nothing is guessed about them."""
    changed: MigrationEvidenceRate
    """The decisions whose verdict, application verdict, action, reason code, or rule differs between the base and
    the candidate.
    """
    verdict_changed: MigrationEvidenceRate
    """The decisions whose verdict differs."""
    newly_approved: MigrationEvidenceHistoryNewlyApproved
    """The decisions that become `yes`."""
    newly_blocked: MigrationEvidenceHistoryNewlyBlocked
    """The decisions that are no longer `yes`."""
    otherwise_refused: MigrationEvidenceHistoryOtherwiseRefused
    """The decisions that change from `no` to `review`, or from `review` to `no`."""
    reviews: NotRequired[list[MigrationEvidenceHistoryReviews]]
    """The held decisions that get another verdict from the candidate than from the base, by the candidate's verdict
    and by the owner's resolution; absent if none was resolved.
    """
    needs_input: MigrationEvidenceFigure
    """The decisions whose facts fail the candidate's input schema, but not the base's."""
    earlier: list[MigrationEvidenceHistoryEarlier]
    """Decisions that earlier versions decided differently from the base, by version; versions with the most
    decisions come first. The candidate did not cause them, and no other figure includes them. Empty without a base.
    """
    matrix: MigrationEvidenceHistoryMatrix
    """Counts of each pair of values under base and candidate, including unchanged values. Changes come first, then
    the pairs with the most decisions.
    """
    was_matrix: list[MigrationEvidenceTransition]
    """Changes from the original verdict to the candidate's."""
    rules: list[MigrationEvidenceHistoryRules]
    """The changes by the rule of the base; rules with the most decisions come first."""
    then_rules: list[MigrationEvidenceHistoryThenRules]
    """The changes by the rule of the candidate; rules with the most decisions come first."""
    transitions: list[MigrationEvidenceHistoryTransitions]
    """The changes from rule to rule; pairs with the most decisions come first."""
    weeks: list[MigrationEvidenceHistoryWeeks]
    """The changes by the week of the decision, in ascending order; only the latest weeks if there are more than fit."""
    versions: list[MigrationEvidenceHistoryVersions]
    """The changes by the version that decided; versions with the most decisions come first."""
    facts: list[MigrationEvidenceHistoryFacts]
    """The changes by the values of some fields."""
    outcomes: MigrationEvidenceHistoryOutcomes
    """The known outcomes of changed decisions. The latest status of an outcome counts; `succeeded`, `partial`,
    `failed`, and `reverted` are final.
    """
    money: list[MigrationEvidenceHistoryMoney]
    """The observed values of the metric, by the verdicts of the base and the candidate. Empty without a metric."""
    missing_facts: list[MigrationEvidenceHistoryMissingFacts]
    """The facts that the candidate reads and some decisions do not have. The share refers to the decisions whose
    facts are known. Required facts come first, then those with the most decisions.
    """
    regions: list[MigrationEvidenceHistoryRegions]
    """How many past decisions lie in each region of the difference."""
    note: str
    """A remark on these figures: regions may overlap."""
    left_out: MigrationEvidenceHistoryLeftOut
    """How many decisions are in rows that did not fit into a list, by list."""
    undecided: list[str]
    """The results that would have cost too much to compute, as sentences."""


class MigrationEvidenceRulebook(TypedDict):
    """The evidence for one candidate. The edits, the difference, and the history compare it with the base."""

    rulebook_id: str
    """The rulebook's id."""
    base: MigrationEvidenceVersion | None
    """The version that its route leads to now; null for a first route."""
    candidate: MigrationEvidenceVersion
    """The proposed version."""
    edits: list[MigrationEvidenceEdit] | None
    """The author's changes to the base: first to rules, then to the default outcome, then to facts. Null without a
    base.
    """
    difference: MigrationEvidenceDifference | None
    """The exact difference of the rulebooks for all facts, not only past ones; null without a base."""
    analysis: MigrationEvidenceAnalysis
    tests: MigrationEvidenceTests | None
    """The author's cases; null if there are none."""
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
    """The number of fixtures of each kind."""

    fixtures: int
    """All fixtures of the corpus."""
    concerned: int
    """The fixtures that the candidate concerns."""
    unchanged: int
    """The concerned fixtures that do not drift."""
    expected: int
    """The fixtures that drift as the manifest expects."""
    unexpected: int
    """The fixtures that drift in other ways."""


class MigrationEvidenceCorpus(TypedDict):
    """The dry run over the golden corpus."""

    ok: bool
    """Whether no fixture drifts."""
    drift: list[MigrationEvidenceDrift]
    """The fixtures that drift, each with the fields that drift."""
    unexpected: list[MigrationEvidenceDrift]
    """The fixtures that drift in fields that the manifest does not expect, with these fields."""
    errors: list[str]
    """Expectations of the manifest that were not met, as sentences."""
    counts: MigrationEvidenceCorpusCounts
    """The number of fixtures of each kind."""
    corpus: str
    """The corpus, by the label of its index."""
    corpus_hash: str
    """Hash of its index."""
    published: bool
    """Whether it is the published corpus."""


class MigrationEvidence(TypedDict):
    """Everything that an approver of a migration needs to know. It has no date, place, or person: the same manifest,
    candidates, bases, corpus, cases, and history give the same evidence and the same hash.
    """

    evidence_version: str
    """Version of the evidence format."""
    migration_id: str
    """The migration, by the id that its author gave it."""
    manifest_hash: str
    """Hash of the proposed manifest."""
    rulebooks: list[MigrationEvidenceRulebook]
    """The evidence for each candidate, in the order of their rulebook ids."""
    corpus: MigrationEvidenceCorpus
    evidence_hash: str
    """Hash of the evidence without this field."""


# Responses: Registries.


class PublicKeyEntry(TypedDict):
    """A public key."""

    key_id: str
    """The id by which signatures cite the key."""
    algorithm: str
    """The signature algorithm."""
    public_key: str
    """PEM (SPKI)."""
    public_key_fingerprint: str
    """SHA-256 of the PEM text, lower-case hex."""
    status: Literal["active", "retired", "compromised"]
    """`active`: it signs. `retired`: it verifies what it signed until `not_after`. `compromised`: it verifies
    nothing. If receipts are signed by HMAC or not signed, a key that could sign is listed as `retired`.
    """
    not_before: str
    """The start of the key's use, UTC."""
    not_after: str | None
    """The end of the key's use, UTC; null while it is active. A retired key always has this date."""


class KeyRegistryDocument(TypedDict):
    """The current and past public keys of one purpose."""

    keys: list[PublicKeyEntry]
    """Every key of this purpose, oldest first."""
    active_key_id: str | None
    """The key that signs now; null if signing is off."""


class PolicyBundle(TypedDict):
    """The policy, as records cite it in `policy_bundle`."""

    id: str
    """The policy's `policy_id`."""
    version: str
    """The policy's `policy_version`."""
    hash: str
    """The policy's `policy_hash`."""
    hash_algorithm: str
    """The hash algorithm."""
    canonicalization: str
    """How JSON is turned into the bytes that are hashed."""


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
    """Hash of `policy_bundle`."""
    status: PolicyStatus
    """`active`, or `historical` if a later version replaced it."""
    source: str
    """The path of the rulebook on this service."""


class PolicyBundleRegistry(TypedDict):
    """Every version of every policy of the service, by policy id and version."""

    policy_bundles: list[PolicyBundleEntry]
    """The entries."""
    count: int
    """The number of entries."""
    hash_algorithm: str
    """The hash algorithm."""
    canonicalization: str
    """How JSON is turned into the bytes that are hashed."""


class PolicyBundleAnswer(TypedDict):
    """One entry."""

    policy_bundle_entry: PolicyBundleEntry


class RulebookMetadataWarnings(TypedDict):
    """One warning."""

    field: str
    """The field: a dotted path with array indexes in brackets."""
    code: str
    """The probable mistake, as a stable word."""
    message: str
    """The probable mistake and its correction, as a sentence."""


class RulebookMetadataAnnotationsRules(TypedDict):
    """The comments on one rule."""

    description: NotRequired[str]
    """The comment on the rule."""
    outcome: NotRequired[str]
    """The comment on its outcome."""


class RulebookMetadataAnnotations(TypedDict):
    """The author's comments, from the file that was registered last. They are not authenticated: no hash or
    signature covers them. Absent if there are none.
    """

    authenticated: bool
    """Always false."""
    schema: NotRequired[str]
    """`$schema` of the file."""
    description: NotRequired[str]
    """The comment on the rulebook."""
    rules: NotRequired[dict[str, RulebookMetadataAnnotationsRules]]
    """The comments on rules, by `rule_id`."""
    default_outcome: NotRequired[str]
    """The comment on the default outcome."""


class RulebookMetadata(TypedDict):
    """The registration of a rulebook in your scope, as records cite it, with warnings and comments. It never has the
    rulebook's body.
    """

    ok: bool
    """Always true: the registration was found."""
    rulebook: RulebookRegistration
    """The registration, which never changes."""
    warnings: list[RulebookMetadataWarnings]
    """Valid parts of the rulebook that are probably mistakes, as `gate rulebook check` lists them, at most 50. No
    hash covers them.
    """
    annotations: NotRequired[RulebookMetadataAnnotations]
    """The author's comments, from the file that was registered last. They are not authenticated: no hash or
    signature covers them. Absent if there are none.
    """


class AdapterLimits(TypedDict):
    """The limits of one call."""

    timeout_ms: int
    """The longest run time, in milliseconds."""
    memory_bytes: int
    """The most memory that a worker may allocate, in bytes."""
    output_bytes: int
    """The longest JSON text of the facts, in bytes."""


class AdapterManifest(TypedDict):
    """A registered adapter. `manifest_hash` is the hash of all other fields, and records cite it."""

    manifest_version: Literal["trusted_adapter_manifest_v1"]
    """The format of manifests."""
    adapter_id: str
    """The adapter's id."""
    version: str
    """Its exact version."""
    title: str
    """The adapter's title."""
    description: str
    """A description of its input, and of the facts that it makes from it."""
    implementation_revision: str
    """The revision of its source, counted by its author."""
    implementation_hash: str
    """SHA-256 of the bytes of its source, lower-case hex."""
    adapter_authority: Literal["facts_only"]
    """It only makes facts; the rulebook selects the verdict."""
    execution_isolation: Literal["process_one_shot_v1"]
    """Each call runs once, in its own process."""
    capability_enforcement: Literal["seccomp_allow_list_v1"]
    """What restricts a worker to computing. `GET /api/decision/status` shows the other active measures."""
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
    """The capabilities that a worker does not have."""
    limits: AdapterLimits
    """The limits of one call."""
    input_schema: dict[str, Json]
    """The JSON Schema of its input. Unknown fields are rejected."""
    output_schema: dict[str, Json]
    """The JSON Schema of its facts. Unknown fields are rejected."""
    manifest_hash: str
    """Hash of the manifest without this field, in lower-case hex."""


class TrustedAdapters(TypedDict):
    """Every adapter that can be called."""

    adapters: list[AdapterManifest]
    """Their manifests, by id and version."""


class PolicyPatterns(TypedDict):
    """The patterns, by pattern id."""

    patterns: list[PolicyPattern]
    """The patterns with the tag, or all."""
    count: int
    """The number of patterns listed."""


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
    """Hash of the rulebook: SHA-256 of its canonical bytes, in lower-case hex."""
    status: PolicyStatus
    """`active`, or `historical` if a later version replaced it."""
    source: str
    """The path of the rulebook on this service."""


class PolicySourcesPolicyTables(TypedDict):
    """A table."""

    service: Literal["refund", "cancel", "return", "trial"]
    """The service that answers from it."""
    tool: str
    """The name of the question's MCP tool."""
    table_hash: str
    """The hash of the table."""
    origin: Literal["operator", "release"]
    """`operator`, or `release` if it came with the product."""
    entries: int
    """The number of entries."""
    source: str
    """The path of the table on this service."""
    rulebook: str
    """The path of the rulebook that decides over it."""


class PolicySources(TypedDict):
    """Where to find the rulebooks of the service's own policies, and the active policy tables."""

    policy_sources: list[PolicySource]
    """Every version of every policy of the service, by policy id and version."""
    count: int
    """The number of policy sources."""
    policy_tables: list[PolicySourcesPolicyTables]
    """The active tables of the policy services."""


class PolicyTableEntryWindows(TypedDict):
    """Periods in days. Service `refund`: `refund_days`. Service `return`: `return_days`. Service `cancel`: canceling
    is free for `free_days`, and impossible for the first `locked_days` full days: it is possible from the day with
    that number on. `free_days` must not end before `locked_days`.
    """

    refund_days: NotRequired[int | str]
    """Days after the purchase, including the last one; or `never`."""
    return_days: NotRequired[int | str]
    """Days after the delivery, including the last one; or `never`."""
    free_days: NotRequired[int]
    """Whole days."""
    locked_days: NotRequired[int]
    """Whole days."""


class PolicyTableEntryOffersAlternative2(TypedDict):
    """An entry of `alternative_2` in PolicyTableEntryOffers."""

    trial_days: int
    """Length of the trial, in days."""
    card_required: bool | None
    """Whether a means of payment is required; null if the source does not say."""


class PolicyTableEntryConditions(TypedDict):
    """An entry of `conditions` in PolicyTableEntry."""

    name: str
    """The name by which callers confirm it."""
    text: str
    """The condition in words."""


class PolicyTableEntry(TypedDict):
    """One vendor's published policy for one region and plan."""

    vendor: str
    """The vendor's id for callers."""
    name: str
    """The vendor's name. Callers may use it too."""
    region: str
    """A country as ISO 3166-1 alpha-2, with a subdivision if it matters (`US-CA`), or `*` for all regions. Codes
    that the standard does not assign, such as `UK` and `EU`, are refused. The service looks for the subdivision,
    then for its country, then for `*`.
    """
    plan: str
    """A plan or a product category, or `*` for all. In each region, the service looks for the plan, then for `*`. A
    question without a plan finds only `*`; without such an entry, the answer is `PLAN_UNKNOWN`.
    """
    decision_mode: Literal["deterministic", "conditional", "review_only"]
    """`deterministic`: the days alone decide. `conditional`: the caller must confirm the conditions for a favorable
    verdict. `review_only`: a person must read the source, and the answer is always `UNKNOWN`.
    """
    windows: NotRequired[PolicyTableEntryWindows]
    """Periods in days. Service `refund`: `refund_days`. Service `return`: `return_days`. Service `cancel`: canceling
    is free for `free_days`, and impossible for the first `locked_days` full days: it is possible from the day with
    that number on. `free_days` must not end before `locked_days`.
    """
    penalties: NotRequired[list[str]]
    """Service `cancel`: the cost of canceling outside `free_days`. If it is empty, canceling is free, and
    `free_days` must be absent.
    """
    offers: NotRequired[str | PolicyTableEntryOffersAlternative2]
    """Service `trial`: the free trial of the plan, or `none`."""
    conditions: NotRequired[list[PolicyTableEntryConditions]]
    """Mode `conditional`: the conditions that the caller must confirm."""
    source: str
    """The vendor's public page."""
    notes: NotRequired[str]
    """A remark for readers."""
    last_verified: str | None
    """The day on which somebody last compared the entry with the source; null if nobody did, which only
    `review_only` allows. A day later than tomorrow (UTC) is rejected.
    """


class PolicyTable(TypedDict):
    """Vendors' published policies on one question: refunds, cancellations, returns, or trials. Operators can edit
    it.
    """

    policy_table_version: str
    """Version of this format."""
    service: Literal["refund", "cancel", "return", "trial"]
    """The question that the table answers."""
    description: NotRequired[str]
    """A comment for readers of the file."""
    entries: list[PolicyTableEntry]
    """One entry for each combination of vendor, region, and plan. Their order does not matter."""


# Responses: Contract.


class SchemaEntry(TypedDict):
    """An entry of `schemas` in ContractIndex."""

    name: str
    """The schema's name."""
    title: str
    """The schema's title."""
    url: str
    """Its path."""
    hash: str
    """Hash of the schema."""


class ContractIndex(TypedDict):
    """The index of the published contract. URLs are paths from the service's base address."""

    ok: bool
    """Always true: the index is complete."""
    interface_version: str
    """Version of the interface description."""
    compatibility_policy: str
    """Label of the rules for compatible changes."""
    schemas: list[SchemaEntry]
    """The JSON Schemas, by name."""
    conformance_url: str
    """Path of the index of conformance fixtures."""
    replay_url: str
    """Path of the index of the golden replay corpus."""


class ConformanceEntry(TypedDict):
    """An entry of `fixtures` in ConformanceIndex."""

    fixture_id: str
    """The fixture's id."""
    title: str
    """What it shows."""
    path: str
    """The path, relative to the index."""
    sha256: str
    """Hash of the fixture's canonical JSON."""


class ConformanceIndex(TypedDict):
    """The conformance fixtures. Hashes are SHA-256 of canonical JSON, in lower-case hex."""

    interface_version: str
    """Version of the interface description."""
    compatibility_policy: str
    """Label of the rules for compatible changes."""
    protocol: str
    """Version of the protocol."""
    hash_algorithm: str
    """The hash algorithm."""
    canonicalization: str
    """How JSON is turned into the bytes that are hashed."""
    fixtures: list[ConformanceEntry]
    """The fixtures."""
    conformance_hash: str
    """Hash of the list of the fixtures' hashes, in order."""


class FixtureRequest(TypedDict):
    """The request to send."""

    method: Literal["GET", "POST"]
    """The HTTP method."""
    path: str
    """The path from the service's base address."""
    headers: dict[str, str]
    """The headers to send in addition to the key."""
    body: dict[str, Json]
    """The JSON body."""


class FixtureExpectation(TypedDict):
    """The content that the answer must have."""

    status: int
    """The HTTP status."""
    body: dict[str, Json]
    """Fields that the answer must have. An object needs at least these fields. An array needs the same number of
    items, each as given. Any other value must be equal.
    """
    absent: list[str]
    """Fields that the answer must not have at the top level."""


class ConformanceFixture(TypedDict):
    """A request to a service, and the content that the answer must have. Add your own `x-api-key` to the request."""

    fixture_id: str
    """The fixture's id."""
    title: str
    """What it shows."""
    request: FixtureRequest
    """The request to send."""
    expected: FixtureExpectation
    """The content that the answer must have."""


class GoldenReplayFile(TypedDict):
    """An entry of `files` in GoldenReplayIndex."""

    path: str
    """The path, relative to the index."""
    sha256: str
    """Hash of the file's canonical JSON."""
    cases: int
    """The number of cases in the file."""


class GoldenReplayIndex(TypedDict):
    """The index of the golden replay corpus. Hashes are SHA-256 of canonical JSON, in lower-case hex."""

    corpus: str
    """The label of the corpus."""
    replay_contract: str
    """Label of the rules of a replay: cases are replayed as stored, and never reinterpreted."""
    evaluator_version: str
    """The evaluator that gives these hashes."""
    rulebook_schema_hash: str
    """Hash of the Rulebook v1 schema that the rulebooks follow."""
    hash_algorithm: str
    """The hash algorithm."""
    canonicalization: str
    """How JSON is turned into the bytes that are hashed."""
    files: list[GoldenReplayFile]
    """The files."""
    cases: int
    """The number of cases in all files."""
    covers: dict[str, int]
    """The number of cases for each subject."""
    corpus_hash: str
    """Hash of the list of the files' hashes, in order."""


class GoldenRulebook(TypedDict):
    """One of the file's rulebooks."""

    rulebook_id: str
    """Its id."""
    version: str
    """Its version."""


class GoldenOutcome(TypedDict):
    """The content that the record must have."""

    verdict: Verdict
    """Its verdict."""
    application_verdict: str
    """Its application verdict."""
    action: str
    """Its action."""
    reason_code: str
    """Its reason code."""
    matched_rule_id: str | None
    """The rule that matches; null for the default outcome, and if input is missing or invalid."""
    missing_fields: list[str]
    """As in the record's evaluation."""
    invalid_fields: list[InvalidField]
    """As in the record's evaluation."""
    evaluated_rules: NotRequired[list[str]]
    """In cases about the order: the `rule_id` of each rule of the record's evaluation, in order."""


class GoldenHashes(TypedDict):
    """Hashes that never change: of the rulebook, of the facts, and of the attested evaluation. They are the same on
    every service.
    """

    trusted_adapter: NotRequired[dict[str, Json]]
    """`trusted_adapter` of the record, in adapter mode."""
    rulebook_hash: str
    """Hash of the rulebook."""
    input_hash: str
    """Hash of the facts: `rulebook_attestation.bundle.input_hash` of the record, not the record's own `input_hash`."""
    bundle_hash: str
    """`rulebook_attestation.bundle_hash` of the record. It covers no date, id, or key."""


class GoldenCase(TypedDict):
    """Facts, and the decision that a rulebook must make about them."""

    case_id: str
    """The case's id."""
    title: str
    """What it shows."""
    covers: list[str]
    """The subjects that the case covers."""
    rulebook: GoldenRulebook
    """One of the file's rulebooks."""
    inputs: NotRequired[dict[str, Json]]
    """The facts, sent as `context.inputs`. If absent, the request has no facts, which means `{}`."""
    adapter: NotRequired[AdapterInvocation]
    """The adapter that makes the facts, sent as `adapter` instead of `context.inputs`."""
    adapter_facts: NotRequired[dict[str, Json]]
    """The facts that the adapter makes."""
    expected: GoldenOutcome
    """The content that the record must have."""
    frozen: GoldenHashes
    """Hashes that never change: of the rulebook, of the facts, and of the attested evaluation. They are the same on
    every service.
    """


class GoldenReplays(TypedDict):
    """Rulebooks, facts, and the decision that each rulebook must make. The rulebooks follow Rulebook v1. Once
    published, a version never changes.
    """

    corpus: str
    """The label of the corpus."""
    theme: str
    """The theme of the cases, which is the file's name."""
    title: str
    """The theme as a title."""
    rulebooks: list[Rulebook]
    """The rulebooks that the cases use."""
    cases: list[GoldenCase]
    """The cases."""


# Responses: Documentation.


class EndpointEntry(TypedDict):
    """One method of one path."""

    method: str
    """The HTTP method."""
    path: str
    """The path, with parameters in braces."""
    summary: str
    """A summary of the endpoint."""
    auth: Literal["public", "key", "optional key", "metrics token"]
    """The credentials that the caller must send."""
    access: str
    """The access that a key needs, or `public`, or `metrics`."""
    rate_limited: bool
    """Whether the plan's rate and cap apply."""
    statuses: list[int]
    """Every status that it returns, ascending."""


class SchemaLink(TypedDict):
    """A published JSON Schema."""

    name: str
    """Its name."""
    url: str
    """Its path."""


class Plan(TypedDict):
    """The limits of a scope on this plan."""

    plan: str
    """Its name."""
    requests_per_minute: int | None
    """How many decide requests a key may send in any 60 seconds; null for no limit."""
    records_per_month: int | None
    """How many records a scope may create in a UTC month, unless the operator set another cap; null for no cap."""


class RateLimits(TypedDict):
    """The limits of the plans."""

    scope: str
    """The limits in words: the things that are counted, per key and per scope."""
    headers: list[str]
    """The response headers about limits."""
    plans: list[Plan]
    """The plans."""


class DocsMetadata(TypedDict):
    """A summary of the service's endpoints, schemas, and limits."""

    ok: bool
    """Always true: the metadata is complete."""
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
    """The largest values that the service accepts, by name: bytes, depths, and counts."""
