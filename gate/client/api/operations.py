# Generated from the OpenAPI document by `make client`. Do not edit: change the document, in schemas/, or the
# generator, in api/description/client.
"""Every operation of the service as a function that returns its `Call`, with the names of the OpenAPI document. Pure.

    call = decide(request, idempotency_key="order-77")
    call.body       # the canonical JSON of the request

Required arguments are positional, and optional ones are keywords. An argument of None is not sent, and the service uses
its default. A function raises `RequestRefused` (`SVC_API_REQUEST_INVALID`) for an argument that cannot be sent, or that
would lead to another endpoint. It raises `MaterialRefused` (`SVC_API_JSON_INVALID`) for a body that is not I-JSON. The
service checks everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, overload

from gate.client.transport.building import call, member, readiness, retry_handle
from gate.client.transport.calls import Call, text

if TYPE_CHECKING:
    from gate.client.api.types import (
        AnomalyReport,
        BenchmarkReport,
        Chain,
        Checkpoint,
        ConfidenceReport,
        ConformanceFixture,
        ConformanceIndex,
        ContractIndex,
        CounterfactualsRequest,
        CounterfactualsResult,
        CrmSyncAnswer,
        CrmSyncList,
        CrmSyncReport,
        DecisionPacket,
        DecisionRecord,
        DecisionRequest,
        DecisionSearch,
        DocsMetadata,
        EffectivenessReport,
        ExecutionList,
        ExecutionReceipt,
        ExecutionReport,
        GoldenReplayIndex,
        GoldenReplays,
        Json,
        KeyRegistryDocument,
        Migration,
        MigrationEvidence,
        MigrationList,
        MigrationState,
        OutcomeList,
        OutcomeRecord,
        OutcomeReport,
        PacketVerificationRequest,
        PacketVerificationResult,
        PilotConfirmation,
        PilotConfirmationRequest,
        PilotRequest,
        PilotSubmission,
        PolicyAlerts,
        PolicyBundleAnswer,
        PolicyBundleRegistry,
        PolicyPatternAnswer,
        PolicyPatterns,
        PolicySources,
        PolicyTable,
        Probe,
        ProofMetrics,
        RecordVerificationRequest,
        RefundWorkflowAnswer,
        RefundWorkflowRequest,
        ReplayRequest,
        ReplayResult,
        Resolution,
        ResolutionRequest,
        ResolutionReview,
        RouteList,
        Rulebook,
        RulebookMetadata,
        RuntimeConfig,
        SandboxAnswer,
        Status,
        TrustedAdapters,
        Verdict,
        VerificationEndpoint,
        VerificationResult,
        View,
    )

__all__ = [
    "ask_refund_workflow",
    "confirm_pilot",
    "decide",
    "describe_packet_verification",
    "describe_verification",
    "diff_decision",
    "export_packet",
    "export_pilots",
    "find_decisions",
    "get_chain",
    "get_checkpoint",
    "get_conformance_fixture",
    "get_decision",
    "get_docs",
    "get_docs_metadata",
    "get_golden_replays",
    "get_livez",
    "get_metrics",
    "get_migration",
    "get_migration_report",
    "get_migration_report_html",
    "get_migration_report_markdown",
    "get_openapi",
    "get_policy_alerts",
    "get_policy_alerts_feed",
    "get_policy_anomalies",
    "get_policy_benchmarks",
    "get_policy_confidence",
    "get_policy_effectiveness",
    "get_policy_source",
    "get_policy_table",
    "get_proof_metrics",
    "get_readyz",
    "get_resolution",
    "get_rulebook",
    "get_runtime_config",
    "get_schema",
    "get_status",
    "list_attestation_keys",
    "list_conformance_fixtures",
    "list_crm_syncs",
    "list_executions",
    "list_golden_replays",
    "list_migrations",
    "list_outcomes",
    "list_policy_bundles",
    "list_policy_patterns",
    "list_policy_sources",
    "list_receipt_keys",
    "list_routes",
    "list_schemas",
    "list_trusted_adapters",
    "replay_decision",
    "report_crm_sync",
    "report_execution",
    "report_outcome",
    "resolve_decision",
    "simulate_counterfactuals",
    "submit_pilot",
    "try_decide",
    "verify_exported_packet",
    "verify_exported_record",
    "verify_stored_decision",
    "verify_supplied_record",
]

# In the place of a decision_id in a path, these words lead to other endpoints.
_NO_DECISION_ID: Final = frozenset(
    {
        "adapters",
        "chains",
        "migrations",
        "packet",
        "policies",
        "policy-bundles",
        "policy-patterns",
        "receipt-keys",
        "routes",
        "rulebooks",
        "status",
        "verify",
    }
)


# Decide: Ask whether an action is allowed, before it happens.


def decide(
    request: DecisionRequest | Mapping[str, object],
    *,
    idempotency_key: str | None = None,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[DecisionRecord]:
    """Create a Decision Record.

    Evaluates a rulebook over the facts in the request, and returns a signed, hashed, and chained record once it is
    stored.

    Only `verdict: yes` lets the action proceed. Every status other than 200 means: do not act. Store the full record
    before you act; only the full view can be verified.

    Mode `rulebook` gives a binding verdict. In the advisory modes `single`, `multi`, and `runtime`, an upstream
    model answers, and the record authorizes nothing: it has a `decision_contract`. Without a configured upstream
    these modes answer 503.

    A rulebook that is new to the scope is registered permanently under its `rulebook_id` and `version`. This also
    needs the access `register`.

    Args:
        request: At most 1 MiB of plain JSON, nested at most 32 levels deep.
        idempotency_key: Makes a retry safe: the same key with the same payload returns the first result; with
            another payload, it returns 409. A key is unique in the scope for decisions, and in each decision for
            each kind of report. Send one with every write, and the same one with every retry. Without a key, the
            client makes one for this call and its own retries. Only your own key makes a retry after a crash safe.
        view: The view of the record; `full` by default. It overrides `Prefer`, and `response_view` in a body
            overrides both.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        A decision. Read `verdict`, not only the status.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "decide",
        "POST",
        "/api/decide",
        body=request,
        idempotency_key=retry_handle(idempotency_key),
        view=view,
        request_id=request_id,
    )


def try_decide(
    request: DecisionRequest | Mapping[str, object], *, view: View | None = None, request_id: str | None = None
) -> Call[SandboxAnswer]:
    """Try a decision without a key.

    Evaluates a Decision Request as `POST /api/decide` does, without a key, and returns the fields of a Decision
    Record. The answer is not signed, stored, or registered. It authorizes nothing and never verifies: `sandbox` and
    `notice` say so in every view.

    Only mode `rulebook` works, with the rulebook and the facts in the body. The sandbox ignores API keys and
    idempotency keys, and evaluates every request again. Each address has a limit: see `GET /api/runtime-config`.

    Args:
        request: A Decision Request with its rulebook: at most 64 KiB of plain JSON, nested at most 32 levels deep.
        view: The view of the record; `full` by default. It overrides `Prefer`, and `response_view` in a body
            overrides both.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The fields of a decision, without its authority.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "tryDecide", "POST", "/api/sandbox/decide", body=request, view=view, request_id=request_id, credential=None
    )


# Records: Find and fetch stored decisions.


def find_decisions(
    *,
    verdict: Verdict | None = None,
    policy_id: str | None = None,
    policy_version: str | None = None,
    reason_code: str | None = None,
    target_object_id: str | None = None,
    from_: str | datetime | None = None,
    to: str | datetime | None = None,
    state: Literal["held", "granted", "refused", "expired", "executed"] | None = None,
    owner: str | None = None,
    min_age: int | None = None,
    order: Literal["newest", "oldest"] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    request_id: str | None = None,
) -> Call[DecisionSearch]:
    """Search decisions.

    Returns the scope's decisions that match every parameter, newest first. To find held decisions, use `state=held`.

    One request searches at most 20,000 decisions (of the `verdict` or `state`, if you send one) and reads at most 8
    MiB of records. A page can therefore hold fewer than `limit` decisions, or none, and still have a `next_cursor`:
    continue until it is null. No decision appears on two pages, and none is skipped. Decisions made while you read
    are not included.

    A review also has `state`, `owner`, `due_at`, `age_seconds`, and `grant_ends_at`. The state stays `granted` after
    the grant has ended if nobody reported an execution. `grant_ends_at` is not signed; the resolution's `expires_at`
    is.

    `from` and `to` filter the results by the service's clock. They do not shorten the search, which follows the
    order of the chain.

    Args:
        verdict: Only decisions with this verdict.
        policy_id: Only decisions of this policy: the rulebook's id.
        policy_version: Only decisions of this version of a policy.
        reason_code: Only decisions with this reason code.
        target_object_id: Only decisions bound to exactly this `action_binding.resource`.
        from_: Only decisions made at this time or later. Include the time zone.
        to: Only decisions made before this time, which must not be earlier than `from`. Include the time zone.
        state: Only reviews in this state.
        owner: Only reviews of this owner. Needs `state`.
        min_age: Only decisions made at least this many seconds ago.
        order: The order. Send the same one with a cursor. `oldest` needs `state`. None means newest.
        limit: The largest number of results. None means 20.
        cursor: The `next_cursor` of the previous page, with the same order.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        A page of decisions.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "findDecisions",
        "GET",
        "/api/decisions",
        query={
            "verdict": verdict,
            "policy_id": policy_id,
            "policy_version": policy_version,
            "reason_code": reason_code,
            "target_object_id": target_object_id,
            "from": from_,
            "to": to,
            "state": state,
            "owner": owner,
            "min_age": min_age,
            "order": order,
            "limit": limit,
            "cursor": cursor,
        },
        request_id=request_id,
    )


def get_decision(decision_id: str, *, view: View | None = None, request_id: str | None = None) -> Call[DecisionRecord]:
    """Fetch a stored decision.

    Returns the record as it was first returned, in the requested view. A decision of another scope is not found.

    Only the full view can be verified. After an erasure, `evaluation` is null, and so is `adapter_facts` if there
    were any. In every view, `erased` says when that happened.

    Args:
        decision_id: `decision_id` of a record in your scope.
        view: The view of the record; `full` by default. It overrides `Prefer`, and `response_view` in a body
            overrides both.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The stored record.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}"
    return call("getDecision", "GET", path, view=view, request_id=request_id)


# Lifecycle: Report what happened after a decision: the execution, the outcome, the CRM sync, and the owner's
# resolution.


def report_execution(
    decision_id: str,
    report: ExecutionReport | Mapping[str, object],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[ExecutionReceipt]:
    """Report an execution.

    Stores what happened to the action. The receipt is hashed over the record and its action binding, and linked into
    the scope's chain.

    You can report any number of receipts for a decision, in any order. None is ever changed. `flags` says when the
    decision was not `yes`, and when the report states a target or an action other than the decision's. A missing
    `yes` is a breach only if the status is `executed` or `queued`.

    An error means that nothing was stored: do not treat the execution as reported.

    Args:
        decision_id: `decision_id` of a record in your scope.
        report: The report: at most 1 MiB of plain JSON, nested at most 32 levels deep.
        idempotency_key: Makes a retry safe: the same key with the same payload returns the first result; with
            another payload, it returns 409. A key is unique in the scope for decisions, and in each decision for
            each kind of report. Send one with every write, and the same one with every retry. Without a key, the
            client makes one for this call and its own retries. Only your own key makes a retry after a crash safe.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The idempotency key was used before with the same payload. This is the earlier receipt.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/execution"
    return call(
        "reportExecution",
        "POST",
        path,
        body=report,
        idempotency_key=retry_handle(idempotency_key),
        request_id=request_id,
        accepts=(200, 201),
    )


def list_executions(
    decision_id: str, *, limit: int | None = None, cursor: str | None = None, request_id: str | None = None
) -> Call[ExecutionList]:
    """List execution receipts.

    Returns the execution receipts of a decision, the latest first. Continue with `next_cursor` until it is null. A
    page of large reports holds fewer than `limit`.

    Args:
        decision_id: `decision_id` of a record in your scope.
        limit: The largest number of results. None means 20.
        cursor: `next_cursor` of the previous page.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The receipts; an empty list if there are none.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/execution"
    return call("listExecutions", "GET", path, query={"limit": limit, "cursor": cursor}, request_id=request_id)


def report_outcome(
    decision_id: str,
    report: OutcomeReport | Mapping[str, object],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[OutcomeRecord]:
    """Report an outcome.

    Stores what the action led to. The outcome is hashed over the record, and linked into the scope's chain.

    The latest outcome of a decision counts; earlier ones are kept. Use `pending` and `review` while the result is
    not clear.

    An error means that nothing was stored: do not treat the outcome as reported.

    Args:
        decision_id: `decision_id` of a record in your scope.
        report: The report: at most 1 MiB of plain JSON, nested at most 32 levels deep.
        idempotency_key: Makes a retry safe: the same key with the same payload returns the first result; with
            another payload, it returns 409. A key is unique in the scope for decisions, and in each decision for
            each kind of report. Send one with every write, and the same one with every retry. Without a key, the
            client makes one for this call and its own retries. Only your own key makes a retry after a crash safe.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The idempotency key was used before with the same payload. This is the earlier outcome.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/outcome"
    return call(
        "reportOutcome",
        "POST",
        path,
        body=report,
        idempotency_key=retry_handle(idempotency_key),
        request_id=request_id,
        accepts=(200, 201),
    )


def list_outcomes(
    decision_id: str, *, limit: int | None = None, cursor: str | None = None, request_id: str | None = None
) -> Call[OutcomeList]:
    """List outcomes.

    Returns the outcome records of a decision, the latest first. Continue with `next_cursor` until it is null. A page
    of large reports holds fewer than `limit`.

    Args:
        decision_id: `decision_id` of a record in your scope.
        limit: The largest number of results. None means 20.
        cursor: `next_cursor` of the previous page.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The outcomes; an empty list if there are none.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/outcome"
    return call("listOutcomes", "GET", path, query={"limit": limit, "cursor": cursor}, request_id=request_id)


def resolve_decision(
    decision_id: str,
    request: ResolutionRequest | Mapping[str, object],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[Resolution]:
    """Resolve a held decision.

    Stores the owner's answer to a decision whose verdict is `review`. It is hashed, signed with the receipt key, and
    linked into the scope's chain.

    `granted` lets the held action run until `expires_at`. `refused` and `expired` keep it held permanently. A
    resolution is final, and the record's verdict stays `review`.

    A key with `decide` cannot have `resolve`. `resolved_by` is the caller's claim; `actor` is the authenticated key.

    An error means that nothing was resolved: the action stays held.

    Args:
        decision_id: `decision_id` of a record in your scope.
        request: The resolution: at most 1 MiB of plain JSON, nested at most 32 levels deep.
        idempotency_key: Makes a retry safe: the same key with the same payload returns the first result; with
            another payload, it returns 409. A key is unique in the scope for decisions, and in each decision for
            each kind of report. Send one with every write, and the same one with every retry. Without a key, the
            client makes one for this call and its own retries. Only your own key makes a retry after a crash safe.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The idempotency key was used before with the same payload. This is the earlier resolution.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/resolution"
    return call(
        "resolveDecision",
        "POST",
        path,
        body=request,
        idempotency_key=retry_handle(idempotency_key),
        request_id=request_id,
        accepts=(200, 201),
    )


def get_resolution(decision_id: str, *, request_id: str | None = None) -> Call[ResolutionReview]:
    """Fetch the state of a review.

    Returns the state of a held decision, its owner, its time limit, and its resolution if there is one. Any key of
    the scope may ask, so that a caller can wait for the owner. All of these are null for a decision that was never
    held.

    `executed_at` is the time at which a receipt reported the action as executed, even without a grant or before one:
    check it before you grant. `state` and `executed_at` are not signed. Only the signature of the resolution lets a
    held action run, until its `expires_at`: verify it.

    Args:
        decision_id: `decision_id` of a record in your scope.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The state of the review; `state` is null if the decision was never held for an owner.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/resolution"
    return call("getResolution", "GET", path, request_id=request_id)


def report_crm_sync(
    decision_id: str,
    report: CrmSyncReport | Mapping[str, object],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[CrmSyncAnswer]:
    """Report a CRM sync.

    Stores what a CRM holds about the decision: the mapped fields and the CRM's object. The report is hashed and
    linked into the scope's chain. Never send credentials; values that look like credentials are rejected.

    An error means that nothing was stored: do not treat the sync as reported.

    Args:
        decision_id: `decision_id` of a record in your scope.
        report: The report: at most 1 MiB of plain JSON, nested at most 32 levels deep.
        idempotency_key: Makes a retry safe: the same key with the same payload returns the first result; with
            another payload, it returns 409. A key is unique in the scope for decisions, and in each decision for
            each kind of report. Send one with every write, and the same one with every retry. Without a key, the
            client makes one for this call and its own retries. Only your own key makes a retry after a crash safe.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The idempotency key was used before with the same payload. This is the earlier report.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/crm-sync"
    return call(
        "reportCrmSync",
        "POST",
        path,
        body=report,
        idempotency_key=retry_handle(idempotency_key),
        request_id=request_id,
        accepts=(200, 201),
    )


def list_crm_syncs(
    decision_id: str, *, limit: int | None = None, cursor: str | None = None, request_id: str | None = None
) -> Call[CrmSyncList]:
    """List CRM syncs.

    Returns the CRM sync records of a decision, the latest first. Continue with `next_cursor` until it is null. A
    page of large reports holds fewer than `limit`.

    Args:
        decision_id: `decision_id` of a record in your scope.
        limit: The largest number of results. None means 20.
        cursor: `next_cursor` of the previous page.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The CRM syncs; an empty list if there are none.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/crm-sync"
    return call("listCrmSyncs", "GET", path, query={"limit": limit, "cursor": cursor}, request_id=request_id)


# Verify: Check that a record or a packet is unchanged and was signed by a trusted key. These endpoints answer 200
# even when the record is not verified: read `verified`.


def verify_stored_decision(decision_id: str, *, request_id: str | None = None) -> Call[VerificationResult]:
    """Verify a stored decision.

    Recomputes the record's hashes, and checks its signatures, its stored request, and its place in the chain. It
    does not evaluate the rulebook again.

    Args:
        decision_id: `decision_id` of a record in your scope.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The result. The status is 200 even if the record is not verified.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/verify"
    return call("verifyStoredDecision", "GET", path, request_id=request_id)


def verify_supplied_record(
    decision_id: str,
    material: RecordVerificationRequest | Mapping[str, object] | None = None,
    *,
    request_id: str | None = None,
) -> Call[VerificationResult]:
    """Verify a supplied record of a decision.

    Verifies the record in the body, and checks that it equals the record stored under this id. Without a body,
    verifies the stored record. Send the record alone, or in a wrapper: `{record, input?, public_key?}`. A public key
    in the request is for diagnosis only; it never makes a record verified.

    Args:
        decision_id: `decision_id` of a record in your scope.
        material: At most 16 MiB of plain JSON, nested at most 64 levels deep. Optional.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The result. The status is 200 even if the record is not verified.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/verify"
    return call("verifySuppliedRecord", "POST", path, body=material, request_id=request_id)


def describe_verification(*, request_id: str | None = None) -> Call[VerificationEndpoint]:
    """Describe the verify endpoint.

    Returns what the endpoint accepts, and where the public keys are.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The description.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("describeVerification", "GET", "/api/decision/verify", request_id=request_id, credential=None)


def verify_exported_record(
    material: RecordVerificationRequest | Mapping[str, object], *, request_id: str | None = None
) -> Call[VerificationResult]:
    """Verify an exported record.

    Verifies the hashes and signatures of a record against this service's keys, without looking it up. Send the
    record alone, or in a wrapper: `{record, input?, public_key?}`. A public key in the request is for diagnosis
    only; it never makes a record verified.

    Args:
        material: At most 16 MiB of plain JSON, nested at most 64 levels deep.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The result. The status is 200 even if the record is not verified.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "verifyExportedRecord", "POST", "/api/decision/verify", body=material, request_id=request_id, credential=None
    )


def describe_packet_verification(*, request_id: str | None = None) -> Call[VerificationEndpoint]:
    """Describe the verify endpoint of packets.

    Returns what the endpoint accepts, and where the public keys are.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The description.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "describePacketVerification", "GET", "/api/decision/packet/verify", request_id=request_id, credential=None
    )


def verify_exported_packet(
    material: PacketVerificationRequest | Mapping[str, object], *, request_id: str | None = None
) -> Call[PacketVerificationResult]:
    """Verify an exported packet.

    Verifies a packet against this service's keys, without looking anything up. The four steps are the packet hash,
    the embedded record, the hashes of executions and outcomes, and the hashes of reports with the retained chain
    links. Send the packet alone, or in a wrapper: `{packet, input?, public_key?, checkpoint?}`. A public key in the
    request is for diagnosis only; it never makes a packet verified.

    Args:
        material: At most 16 MiB of plain JSON, nested at most 64 levels deep.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The result. The status is 200 even if the packet is not verified.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "verifyExportedPacket",
        "POST",
        "/api/decision/packet/verify",
        body=material,
        request_id=request_id,
        credential=None,
    )


def export_packet(
    decision_id: str,
    *,
    include_input: bool | None = None,
    include_chain: bool | None = None,
    include_intelligence: bool | None = None,
    execution_limit: int | None = None,
    outcome_limit: int | None = None,
    chain_limit: int | None = None,
    request_id: str | None = None,
) -> Call[DecisionPacket]:
    """Export a packet.

    Returns a decision with its reports, the reports about its policy, and its place in the chain, so that others can
    verify it elsewhere. The record, its reports, and its links are from the same moment, and the service verifies
    them first. The reports about the policy are counted afterward, and can include an outcome that the packet lacks.
    If a part cannot be read or was changed, the answer is 503: the service never returns an incomplete packet. If
    the packet would exceed 16 MiB or about 1,000,000 values, the answer is 400: ask for fewer receipts, outcomes, or
    links.

    The limits select the newest reports, and the chain links that start with the decision's own. Ask for enough
    links: the checkpoint in `audit_chain.verification_hints` covers only the reports whose link is retained. If a
    limit leaves out older reports while newer ones lie beyond the links, the packet holds fewer links than
    `chain_limit`.

    Args:
        decision_id: `decision_id` of a record in your scope.
        include_input: Whether to include `input`, the Decision Request. None means false.
        include_chain: Whether to include `audit_chain`. None means true.
        include_intelligence: Whether to include `policy_intelligence`. Packets of advisory records never do. None
            means true.
        execution_limit: The largest number of execution receipts, newest first. None means 20.
        outcome_limit: The largest number of outcome records, newest first. None means 20.
        chain_limit: The largest number of chain links, starting with the decision's own. None means 20.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The packet.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/packet"
    return call(
        "exportPacket",
        "GET",
        path,
        query={
            "include_input": include_input,
            "include_chain": include_chain,
            "include_intelligence": include_intelligence,
            "execution_limit": execution_limit,
            "outcome_limit": outcome_limit,
            "chain_limit": chain_limit,
        },
        request_id=request_id,
    )


# Replay: Repeat stored decisions, or ask what they would have been with other facts. Nothing here is stored, and
# nothing lets an action proceed.


def replay_decision(
    decision_id: str,
    request: ReplayRequest | Mapping[str, object] | None = None,
    *,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[ReplayResult]:
    """Replay a stored decision.

    Repeats a stored decision, and lists the differences. By default it repeats the original: the stored rulebook
    over the stored request, with the evaluator that the record states. With `replay_mode: current`, it uses the
    version of the rulebook that the scope registered last, or decides your own `input`. An advisory decision can
    only be replayed in mode `current`, which asks the upstream again. This needs a key with the access `decide`, and
    counts toward its rate.

    Nothing is stored or signed: a replay proves and authorizes nothing.

    Args:
        decision_id: `decision_id` of a record in your scope.
        request: At most 1 MiB of plain JSON, nested at most 33 levels deep, so that `input` may be as deep as a
            decide request. Optional.
        view: The view of the record; `full` by default. It overrides `Prefer`, and `response_view` in a body
            overrides both.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The result. The status is 200 whether it matched or drifted.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/replay"
    return call("replayDecision", "POST", path, body=request, view=view, request_id=request_id)


def diff_decision(
    decision_id: str,
    request: ReplayRequest | Mapping[str, object] | None = None,
    *,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[ReplayResult]:
    """Compare a stored decision with the present.

    Works like `POST /api/decision/{decision_id}/replay` with `replay_mode: current`: the version of the rulebook
    that the scope registered last decides the stored request, or your own `input`. For an advisory decision, the key
    also needs the access `decide`.

    Args:
        decision_id: `decision_id` of a record in your scope.
        request: At most 1 MiB of plain JSON, nested at most 33 levels deep, so that `input` may be as deep as a
            decide request. Optional.
        view: The view of the record; `full` by default. It overrides `Prefer`, and `response_view` in a body
            overrides both.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The result. The status is 200 whether it matched or drifted.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/diff"
    return call("diffDecision", "POST", path, body=request, view=view, request_id=request_id)


def simulate_counterfactuals(
    decision_id: str,
    request: CounterfactualsRequest | Mapping[str, object],
    *,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[CounterfactualsResult]:
    """Simulate what-if scenarios.

    Returns the decisions that the latest registered version of the rulebook would make in other contexts. Each of up
    to 50 scenarios is a merge patch (RFC 7396) over the stored context; facts are under `inputs`. If a trusted
    adapter made the facts, patch its input with `adapter_input_patch` instead. Advisory decisions have no
    counterfactuals.

    This is a simulation: nothing is stored, and nothing authorizes an action.

    Args:
        decision_id: `decision_id` of a record in your scope.
        request: At most 1 MiB of plain JSON, nested at most 34 levels deep, so that a patched context may be as deep
            as one that is decided.
        view: The view of the record; `full` by default. It overrides `Prefer`, and `response_view` in a body
            overrides both.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The result of each scenario.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/counterfactuals"
    return call("simulateCounterfactuals", "POST", path, body=request, view=view, request_id=request_id)


# Reports: Learn how well a policy works, from the outcomes of its decisions. A report never authorizes an action.


def get_policy_confidence(
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: Verdict | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    clock: Literal["recorded", "occurred"] | None = None,
    action: str | None = None,
    limit: int | None = None,
    min_sample: int | None = None,
    request_id: str | None = None,
) -> Call[ConfidenceReport]:
    """Report the confidence in a policy.

    Returns how well outcomes support a policy: the success rate, whether its versions agree, and what the report
    cannot know. It counts the latest outcome of each decision in your scope. Without outcomes the level is
    `insufficient`, even for an unknown policy.

    A report authorizes nothing: only the `verdict: yes` of a decision does. With `since`, `until`, or
    `clock=occurred`, a separate process counts the decisions. While it cannot, the answer is 503.

    Args:
        policy_id: `policy_id` of records in your scope.
        policy_version: Only decisions under this version.
        verdict: Only decisions with this verdict.
        since: Only decisions from this time on. Include the time zone.
        until: Only decisions before this time. Include the time zone.
        clock: The date that counts. `recorded`: when the gate recorded the decision. `occurred`: when it happened
            according to the caller, or when it was recorded if the caller did not say. None means recorded.
        action: Only decisions with this action.
        limit: Count only this many decisions, those with the latest outcomes; all by default.
        min_sample: How many terminal outcomes a level needs, and a version needs for comparison. None means 20.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The report.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/policies/{member('policy_id', policy_id)}/confidence"
    return call(
        "getPolicyConfidence",
        "GET",
        path,
        query={
            "policy_version": policy_version,
            "verdict": verdict,
            "since": since,
            "until": until,
            "clock": clock,
            "action": action,
            "limit": limit,
            "min_sample": min_sample,
        },
        request_id=request_id,
    )


def get_policy_effectiveness(
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: Verdict | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    clock: Literal["recorded", "occurred"] | None = None,
    limit: int | None = None,
    min_sample: int | None = None,
    request_id: str | None = None,
) -> Call[EffectivenessReport]:
    """Report the effectiveness of a policy.

    Returns how well a policy works, from every decision in your scope and its latest outcome. It counts successes by
    version, verdict, rule, and week, and lists versions that do worse than the others. It gives bounds for the
    success rate of all decided actions, and says what it cannot know. Without decisions, the recommendation is
    `no_decisions`, even for an unknown policy.

    A report authorizes nothing: only the `verdict: yes` of a decision does. A separate process counts the decisions.
    While it cannot, the answer is 503; ask again, after `retry-after` if it is sent. Decisions are not affected.

    Args:
        policy_id: `policy_id` of records in your scope.
        policy_version: Only decisions under this version.
        verdict: Only decisions with this verdict.
        since: Only decisions from this time on. Include the time zone.
        until: Only decisions before this time. Include the time zone.
        clock: The date that counts. `recorded`: when the gate recorded the decision. `occurred`: when it happened
            according to the caller, or when it was recorded if the caller did not say. None means recorded.
        limit: Count only this many decisions, the latest in the chain; all by default.
        min_sample: How many terminal outcomes are needed for a judgment, and for comparing a version with the
            others. None means 20.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The report.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/policies/{member('policy_id', policy_id)}/effectiveness"
    return call(
        "getPolicyEffectiveness",
        "GET",
        path,
        query={
            "policy_version": policy_version,
            "verdict": verdict,
            "since": since,
            "until": until,
            "clock": clock,
            "limit": limit,
            "min_sample": min_sample,
        },
        request_id=request_id,
    )


def get_policy_anomalies(
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: Verdict | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    clock: Literal["recorded", "occurred"] | None = None,
    limit: int | None = None,
    min_sample: int | None = None,
    threshold: float | None = None,
    max_items: int | None = None,
    value: str | None = None,
    request_id: str | None = None,
) -> Call[AnomalyReport]:
    """Report anomalies in a policy's decisions.

    Returns what is unusual about a policy's decisions in your scope:

    - broken sequences, such as executed without a `yes`, executed twice, or approved without a receipt - rates of
    verdicts, reasons, and outcomes that shifted - days with unusually many or few decisions - outlying values of
    observed metrics - facts that drifted

    Each anomaly has a severity, a score, reasons, a window, example decisions, the numbers behind it, and the next
    check to make. The report uses formulas, not a model: the same chain gives the same report. An unknown policy has
    no anomalies.

    A report authorizes nothing: only the `verdict: yes` of a decision does. A separate process counts the decisions.
    While it cannot, the answer is 503; ask again, after `retry-after` if it is sent. Decisions are not affected.

    Args:
        policy_id: `policy_id` of records in your scope.
        policy_version: Only decisions under this version.
        verdict: Only decisions with this verdict.
        since: Only decisions from this time on. Include the time zone.
        until: Only decisions before this time. Include the time zone.
        clock: The date that counts. `recorded`: when the gate recorded the decision. `occurred`: when it happened
            according to the caller, or when it was recorded if the caller did not say. None means recorded.
        limit: Count only this many decisions, the latest in the chain; all by default.
        min_sample: How many cases are needed in a window, in the period it is compared with, and for a metric. None
            means 20.
        threshold: The lowest score that is listed and counted, with at most six decimals. None means 0.35.
        max_items: The largest number of anomalies listed, the costliest first. None means 20.
        value: The observed metric in which effects are estimated; none by default.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The report.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/policies/{member('policy_id', policy_id)}/anomalies"
    return call(
        "getPolicyAnomalies",
        "GET",
        path,
        query={
            "policy_version": policy_version,
            "verdict": verdict,
            "since": since,
            "until": until,
            "clock": clock,
            "limit": limit,
            "min_sample": min_sample,
            "threshold": threshold,
            "max_items": max_items,
            "value": value,
        },
        request_id=request_id,
    )


def get_policy_alerts(*, open_days: int | None = None, request_id: str | None = None) -> Call[PolicyAlerts]:
    """List policy alerts.

    Returns the open anomalies of high severity of all policies in your scope. `policy_changes` lists what changed in
    the service's policy tables. An anomaly stays open until `open_days` after its window. You cannot acknowledge an
    anomaly.

    A separate process counts the decisions. While it cannot, the answer is 503. Decisions are not affected.

    Args:
        open_days: How many days an anomaly stays open after its window, counted to the date of the chain's last
            entry. None means 90.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The alerts.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("getPolicyAlerts", "GET", "/api/policy-alerts", query={"open_days": open_days}, request_id=request_id)


def get_policy_alerts_feed(*, open_days: int | None = None, request_id: str | None = None) -> Call[str]:
    """List policy alerts as a feed.

    Returns the alerts of `GET /api/policy-alerts` as an Atom feed: an entry for each open anomaly and for each
    change of a policy table, newest first.

    Args:
        open_days: How many days an anomaly stays open after its window, counted to the date of the chain's last
            entry. None means 90.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The feed.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "getPolicyAlertsFeed",
        "GET",
        "/api/policy-alerts.atom",
        query={"open_days": open_days},
        request_id=request_id,
        read=text,
        media_type="application/atom+xml",
    )


def get_policy_benchmarks(
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: Verdict | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    clock: Literal["recorded"] | None = None,
    limit: int | None = None,
    min_cohort_scopes: int | None = None,
    min_cohort_decisions: int | None = None,
    request_id: str | None = None,
) -> Call[BenchmarkReport]:
    """Compare a policy with other scopes.

    Returns your rates for the decisions of one month, next to percentiles of other scopes that opted in and decide
    under the same policy id. Cohorts are frozen once a month. Other scopes' rates are rounded to 0.05, and nothing
    is shown for fewer than 5 other scopes. If nothing is shown, `cross_customer` says why, and how to change that. A
    scope that did not opt in sees only its own metrics.

    A report authorizes nothing: only the `verdict: yes` of a decision does. A separate process counts the decisions.
    While it cannot, the answer is 503; ask again, after `retry-after` if it is sent. Decisions are not affected.

    Args:
        policy_id: `policy_id` of records in your scope.
        policy_version: Of your own decisions, only those under this version. The cohort is always of the whole
            policy.
        verdict: Of your own decisions, only those with this verdict.
        since: Only decisions from this time on. Include the time zone.
        until: Only decisions before this time. Include the time zone.
        clock: Only `recorded`: months are frozen by the date of the record. None means recorded.
        limit: Count only this many of your own decisions, the latest in the chain. By default, it counts every
            decision of the month.
        min_cohort_scopes: How many other scopes a comparison needs. Their number is first rounded down to a step of
            1, 2, or 5. None means 5.
        min_cohort_decisions: How many decisions of theirs a comparison needs. Their number is rounded down in the
            same way. None means 50.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The report.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/policies/{member('policy_id', policy_id)}/benchmarks"
    return call(
        "getPolicyBenchmarks",
        "GET",
        path,
        query={
            "policy_version": policy_version,
            "verdict": verdict,
            "since": since,
            "until": until,
            "clock": clock,
            "limit": limit,
            "min_cohort_scopes": min_cohort_scopes,
            "min_cohort_decisions": min_cohort_decisions,
        },
        request_id=request_id,
    )


# Policy services: Ask what vendors' published policies say about refunds, cancellations, returns, and trials. An
# answer by itself never authorizes an action.


def ask_refund_workflow(
    ticketing_system: Literal["zendesk", "freshdesk", "intercom"],
    request: RefundWorkflowRequest | Mapping[str, object],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[RefundWorkflowAnswer]:
    """Ask about a ticket's refund.

    Returns what a vendor's published policy says about a refund, with tags and a note for the ticket.

    Without a key, nothing is stored, `execution_allowed` is false, and each address has a limit. With a key, the
    service decides over the facts behind the answer in your scope, and returns a signed Decision Record.
    `execution_allowed` is true only if that record says `yes`. The first decision of a scope registers the rulebook
    `refund_eligibility`, which also needs the access `register`. A retry with the same idempotency key returns the
    first record, even if the policy table has changed since.

    Args:
        ticketing_system: The help desk.
        request: The question about the ticket.
        idempotency_key: Makes a retry safe: the same key with the same payload returns the first result; with
            another payload, it returns 409. A key is unique in the scope for decisions, and in each decision for
            each kind of report. Send one with every write, and the same one with every retry. Without a key, the
            client makes one for this call and its own retries. Only your own key makes a retry after a crash safe.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The answer. Read `execution_allowed`, not only the status.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/v1/workflows/{member('ticketing_system', ticketing_system)}/refund"
    return call(
        "askRefundWorkflow",
        "POST",
        path,
        body=request,
        idempotency_key=retry_handle(idempotency_key),
        request_id=request_id,
    )


# Audit chain: Read the chain: all entries of a scope in order, linked by hashes.


def get_chain(chain_id: str, *, limit: int | None = None, request_id: str | None = None) -> Call[Chain]:
    """Fetch the audit chain.

    Returns the head of your scope's chain and its last links in ascending order, and checks that each link follows
    from the one before.

    Args:
        chain_id: `audit_chain.chain_id` of a record in your scope.
        limit: The largest number of links. None means 20.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The chain.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/chains/{member('chain_id', chain_id)}"
    return call("getChain", "GET", path, query={"limit": limit}, request_id=request_id)


def get_checkpoint(chain_id: str, *, request_id: str | None = None) -> Call[Checkpoint]:
    """Sign a checkpoint.

    Returns a signed statement of the chain's size and root. Kept by someone else, it shows later whether the chain
    was rewritten.

    Args:
        chain_id: `audit_chain.chain_id` of a record in your scope.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The checkpoint.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/chains/{member('chain_id', chain_id)}/checkpoint"
    return call("getCheckpoint", "GET", path, request_id=request_id)


# Operations: Check an instance's readiness and liveness, and read its metrics and public settings.


def get_status(*, request_id: str | None = None) -> Call[Status]:
    """Check readiness in detail.

    Returns whether everything that a decision needs is ready, part by part, with the reason if it is not. The parts
    are signing, rulebook evaluation, ledger, idempotency, registries, authentication, backends, disk, checkpoints,
    and workers. The answer also lists the version label of every contract. If a part is not ready, the status is 503
    with the same fields. The service reuses a result for one second.

    `backends.advisory` is `ready` if an upstream is configured; the endpoint does not call it.
    `contracts.application_binding` is only a label: no schema, check, or record uses it.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        Ready.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "getStatus",
        "GET",
        "/api/decision/status",
        request_id=request_id,
        credential=None,
        accepts=(200, 503),
        read=readiness,
    )


def get_livez(*, request_id: str | None = None) -> Call[Probe]:
    """Check liveness.

    Returns 200 if a process answers.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The process is alive.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("getLivez", "GET", "/livez", request_id=request_id, credential=None)


def get_readyz(*, request_id: str | None = None) -> Call[Probe]:
    """Check readiness.

    Returns whether the service can decide now. `GET /api/decision/status` says why not.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        Ready.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "getReadyz", "GET", "/readyz", request_id=request_id, credential=None, accepts=(200, 503), read=readiness
    )


def get_metrics(*, request_id: str | None = None) -> Call[str]:
    """Fetch metrics.

    Returns counters and histograms in the Prometheus text format.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The metrics.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "getMetrics", "GET", "/metrics", request_id=request_id, credential="metrics", read=text, media_type="text/plain"
    )


def get_runtime_config(*, request_id: str | None = None) -> Call[RuntimeConfig]:
    """Fetch the public settings.

    Returns the settings that a caller may know: modes, views, signing, and limits. A mode is `binding`, `advisory`,
    or `unconfigured`.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The settings.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("getRuntimeConfig", "GET", "/api/runtime-config", request_id=request_id, credential=None)


def get_proof_metrics(*, request_id: str | None = None) -> Call[ProofMetrics]:
    """Count records and keys.

    Returns how many scopes, chain entries, registered rulebooks, and keys the instance holds, across all scopes.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The counts.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("getProofMetrics", "GET", "/api/proof-metrics", request_id=request_id, credential="metrics")


def submit_pilot(
    request: PilotRequest | Mapping[str, object], *, request_id: str | None = None
) -> Call[PilotSubmission]:
    """Request a pilot.

    Sends the operator a name, an e-mail address, a company, and a use. The answer is the same whether the address is
    new or not. The request has no idempotency key, so a retry can store it twice. The operator then sends the person
    a token, which confirms the request. One IP address may send 5 of these requests per minute.

    Args:
        request: At most 16 KiB of plain JSON.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The request is stored and waits for confirmation.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "submitPilot", "POST", "/api/pilot", body=request, request_id=request_id, credential=None, accepts=(202,)
    )


def confirm_pilot(
    request: PilotConfirmationRequest | Mapping[str, object], *, request_id: str | None = None
) -> Call[PilotConfirmation]:
    """Confirm a pilot request.

    Confirms a request for a pilot with the token that the operator sent. A wrong token, an unknown id, and an
    expired or erased request get the same answer. Confirming again changes nothing. One IP address may send 5 of
    these requests per minute.

    Args:
        request: At most 16 KiB of plain JSON.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The request is confirmed.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("confirmPilot", "POST", "/api/pilot/confirm", body=request, request_id=request_id, credential=None)


def export_pilots(*, request_id: str | None = None) -> Call[str]:
    """Export pilot requests.

    Returns all pilot requests as CSV in UTF-8, oldest first. The columns are `pilot_id`, `status`, `submitted_at`,
    `confirmed_at`, `name`, `email`, `company`, and `use`. Every cell is quoted. A cell that a spreadsheet could
    treat as a formula begins with an apostrophe.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The pilot requests.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "exportPilots",
        "GET",
        "/api/pilot-export",
        request_id=request_id,
        credential="metrics",
        read=text,
        media_type="text/csv",
    )


# Migrations: Read the rulebook changes that a scope has proposed, approved, and applied. People make them on the
# command line with `gate migrate`. A new scope has none.


def list_routes(
    *, rulebook_id: str | None = None, limit: int | None = None, request_id: str | None = None
) -> Call[RouteList]:
    """List the routes of rulebook ids.

    Returns the version that each rulebook id of the scope leads to when a request states no version. Each route is
    the chain entry that set it. With `rulebook_id`, the answer also has the earlier routes of that id.

    Args:
        rulebook_id: Only the routes of this rulebook id, with their `history`.
        limit: With `rulebook_id`: the largest number of routes in the history; 20 by default.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The routes.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "listRoutes",
        "GET",
        "/api/decision/routes",
        query={"rulebook_id": rulebook_id, "limit": limit},
        request_id=request_id,
    )


def list_migrations(
    *,
    state: MigrationState | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    request_id: str | None = None,
) -> Call[MigrationList]:
    """List migrations.

    Returns the scope's migrations, the latest proposal first. A migration that is proposed again moves to the front.

    Args:
        state: Only migrations in this state.
        limit: The largest number of results. None means 20.
        cursor: The `next_cursor` of the previous page.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        A page of migrations.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "listMigrations",
        "GET",
        "/api/decision/migrations",
        query={"state": state, "limit": limit, "cursor": cursor},
        request_id=request_id,
    )


def get_migration(migration_id: str, *, request_id: str | None = None) -> Call[Migration]:
    """Fetch a migration.

    Returns a migration: its manifest with the current `status` and `approval`, all of its chain entries, and the
    routes that cite it or rolled it back. If the evidence of an open migration no longer applies, `stale` says why,
    and nobody can approve or apply the migration. A migration of another scope is not found.

    Args:
        migration_id: `migration_id` of a migration in your scope.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The migration.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/migrations/{member('migration_id', migration_id)}"
    return call("getMigration", "GET", path, request_id=request_id)


def get_migration_report(migration_id: str, *, request_id: str | None = None) -> Call[MigrationEvidence]:
    """Fetch the evidence of a migration.

    Returns the evidence of a migration's latest proposal, which an approver should read. The header `accept` chooses
    the form: `text/markdown` for a pull request or a ticket, `text/html` for a browser, and JSON for anything else.
    The pages load no resources, run no scripts, and escape every name.

    A separate process makes the pages. While it cannot, they answer 503; the JSON is still available.

    Args:
        migration_id: `migration_id` of a migration in your scope.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The evidence in the requested form.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/migrations/{member('migration_id', migration_id)}/report"
    return call("getMigrationReport", "GET", path, request_id=request_id)


def get_migration_report_markdown(migration_id: str, *, request_id: str | None = None) -> Call[str]:
    """Fetch the evidence of a migration.

    Returns the evidence of a migration's latest proposal, which an approver should read. The header `accept` chooses
    the form: `text/markdown` for a pull request or a ticket, `text/html` for a browser, and JSON for anything else.
    The pages load no resources, run no scripts, and escape every name.

    A separate process makes the pages. While it cannot, they answer 503; the JSON is still available.

    Args:
        migration_id: `migration_id` of a migration in your scope.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        A page in Markdown.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/migrations/{member('migration_id', migration_id)}/report"
    return call("getMigrationReport", "GET", path, request_id=request_id, read=text, media_type="text/markdown")


def get_migration_report_html(migration_id: str, *, request_id: str | None = None) -> Call[str]:
    """Fetch the evidence of a migration.

    Returns the evidence of a migration's latest proposal, which an approver should read. The header `accept` chooses
    the form: `text/markdown` for a pull request or a ticket, `text/html` for a browser, and JSON for anything else.
    The pages load no resources, run no scripts, and escape every name.

    A separate process makes the pages. While it cannot, they answer 503; the JSON is still available.

    Args:
        migration_id: `migration_id` of a migration in your scope.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        A page in HTML.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/api/decision/migrations/{member('migration_id', migration_id)}/report"
    return call("getMigrationReport", "GET", path, request_id=request_id, read=text, media_type="text/html")


# Registries: Look up public keys, policies, rulebooks, adapters, and patterns.


def list_receipt_keys(*, request_id: str | None = None) -> Call[KeyRegistryDocument]:
    """List the public receipt keys.

    Returns the current and past Ed25519 keys that verify receipts and checkpoints.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The keys.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("listReceiptKeys", "GET", "/api/decision/receipt-keys", request_id=request_id, credential=None)


def list_attestation_keys(*, request_id: str | None = None) -> Call[KeyRegistryDocument]:
    """List the public attestation keys.

    Returns the current and past Ed25519 keys that verify rulebook attestations and registrations.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The keys.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "listAttestationKeys",
        "GET",
        "/.well-known/rulebook-attestation-keys.json",
        request_id=request_id,
        credential=None,
    )


@overload
def list_policy_bundles(*, hash: None = None, request_id: str | None = None) -> Call[PolicyBundleRegistry]: ...


@overload
def list_policy_bundles(*, hash: str, request_id: str | None = None) -> Call[PolicyBundleAnswer]: ...


def list_policy_bundles(
    *, hash: str | None = None, request_id: str | None = None
) -> Call[PolicyBundleRegistry] | Call[PolicyBundleAnswer]:
    """List policy bundles.

    Returns the current and historical bundles of the service's own policies. With `hash`, returns one bundle. Never
    lists rulebooks of scopes.

    Args:
        hash: The `policy_hash` or `policy_bundle_hash` of a record. Returns that one bundle in
            `policy_bundle_entry`.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The bundles, or the one bundle.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "listPolicyBundles",
        "GET",
        "/api/decision/policy-bundles",
        query={"hash": hash},
        request_id=request_id,
        credential=None,
    )


def get_rulebook(
    *,
    hash: str | None = None,
    rulebook_id: str | None = None,
    version: str | None = None,
    request_id: str | None = None,
) -> Call[RulebookMetadata]:
    """Fetch a rulebook's registration.

    Returns the registration of one rulebook of your scope, as records cite it. Identify it by `hash`, or by
    `rulebook_id` and `version`; everything that you send must match. The answer also has warnings about the
    rulebook, and its author's comments in `annotations`, which are not authenticated. It never has the rulebook's
    body.

    Args:
        hash: The rulebook's hash.
        rulebook_id: Together with `version`, instead of `hash`.
        version: Together with `rulebook_id`, instead of `hash`.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The registration.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "getRulebook",
        "GET",
        "/api/decision/rulebooks",
        query={"hash": hash, "rulebook_id": rulebook_id, "version": version},
        request_id=request_id,
    )


def list_trusted_adapters(*, request_id: str | None = None) -> Call[TrustedAdapters]:
    """List trusted adapters.

    Returns the manifest of every adapter that can supply the facts of a decision. A manifest has the schemas of the
    adapter's input and facts, the hash of its source, its limits, and the `manifest_hash` that a request must state.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The manifests.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("listTrustedAdapters", "GET", "/api/decision/adapters", request_id=request_id, credential=None)


@overload
def list_policy_patterns(
    *, pattern_id: None = None, tag: str | None = None, request_id: str | None = None
) -> Call[PolicyPatterns]: ...


@overload
def list_policy_patterns(
    *, pattern_id: str, tag: str | None = None, request_id: str | None = None
) -> Call[PolicyPatternAnswer]: ...


def list_policy_patterns(
    *, pattern_id: str | None = None, tag: str | None = None, request_id: str | None = None
) -> Call[PolicyPatterns] | Call[PolicyPatternAnswer]:
    """List policy patterns.

    Returns complete starting points. Each has a request that runs as written, templates for the reports that follow,
    and examples in curl and Python.

    Args:
        pattern_id: A pattern's id, or its policy's. Returns that one pattern in `policy_pattern`.
        tag: Only the patterns with this tag. The list may be empty.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The patterns, or the one pattern.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call(
        "listPolicyPatterns",
        "GET",
        "/api/decision/policy-patterns",
        query={"pattern_id": pattern_id, "tag": tag},
        request_id=request_id,
        credential=None,
    )


def list_policy_sources(*, request_id: str | None = None) -> Call[PolicySources]:
    """List the service's own policies.

    Returns every version of every policy that the service provides, with the path of its rulebook, and the active
    policy tables.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The policies.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("listPolicySources", "GET", "/rules/policy-sources.json", request_id=request_id, credential=None)


def get_policy_table(
    service: Literal["refund", "cancel", "return", "trial"], *, request_id: str | None = None
) -> Call[PolicyTable]:
    """Fetch a policy table.

    Returns the table that a policy service answers from: the operator's, or the one that comes with the product.

    Args:
        service: The service.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The table.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/rules/policy-tables/{member('service', service)}.json"
    return call("getPolicyTable", "GET", path, request_id=request_id, credential=None)


def get_policy_source(policy_id: str, version: str, *, request_id: str | None = None) -> Call[Rulebook]:
    """Fetch a policy's rulebook.

    Returns the rulebook of a policy that the service provides, to read, copy, or hash.

    Args:
        policy_id: `policy_id` of an entry of `GET /rules/policy-sources.json`.
        version: `policy_version` of that entry.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The rulebook.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/rules/{member('policy_id', policy_id)}/{member('version', version)}.json"
    return call("getPolicySource", "GET", path, request_id=request_id, credential=None)


# Contract: Fetch the published contract: JSON Schemas, conformance fixtures, and golden replays. You may cache all
# of it for an hour.


def list_schemas(*, request_id: str | None = None) -> Call[ContractIndex]:
    """List the published schemas.

    Returns every schema of the contract with its hash, and the paths of the conformance fixtures and the replay
    corpus.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The index.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("listSchemas", "GET", "/schemas/", request_id=request_id, credential=None)


def get_schema(name: str, *, request_id: str | None = None) -> Call[dict[str, Json]]:
    """Fetch a schema.

    Returns a JSON Schema (draft 2020-12) of the contract. Records cite the hash of the schema `rulebook-v1`.

    Args:
        name: The schema's name, for example `rulebook-v1`.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The schema.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/schemas/{member('name', name)}.schema.json"
    return call("getSchema", "GET", path, request_id=request_id, credential=None)


def list_conformance_fixtures(*, request_id: str | None = None) -> Call[ConformanceIndex]:
    """List the conformance fixtures.

    Returns the fixtures with their hashes: requests, and the answers of every conforming service.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The index.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("listConformanceFixtures", "GET", "/conformance/", request_id=request_id, credential=None)


def get_conformance_fixture(fixture_id: str, *, request_id: str | None = None) -> Call[ConformanceFixture]:
    """Fetch a conformance fixture.

    Returns a request, and the fields that every answer to it must contain. The id `index` returns the index.

    Args:
        fixture_id: `fixture_id` of an entry of the index.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The fixture.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/conformance/{member('fixture_id', fixture_id)}.json"
    return call("getConformanceFixture", "GET", path, request_id=request_id, credential=None)


def list_golden_replays(*, request_id: str | None = None) -> Call[GoldenReplayIndex]:
    """List the files of the golden replay corpus.

    Returns the files of the corpus with their hashes, and how many cases cover each subject. The cases are rulebooks
    and facts with the outcomes and hashes that they always give.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The index.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("listGoldenReplays", "GET", "/replay/", request_id=request_id, credential=None)


def get_golden_replays(file: str, *, request_id: str | None = None) -> Call[GoldenReplays]:
    """Fetch a file of the corpus.

    Returns the rulebooks and cases of one theme. The name `index` returns the index.

    Args:
        file: `path` of an entry of the index, without `.json`.
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The cases.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    path = f"/replay/{member('file', file)}.json"
    return call("getGoldenReplays", "GET", path, request_id=request_id, credential=None)


# Documentation: Read this API description, as a program or as a person.


def get_openapi(*, request_id: str | None = None) -> Call[dict[str, Json]]:
    """Fetch the OpenAPI document.

    Returns this description as OpenAPI 3.1, in one file without outside references. Generate clients from it.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The document.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("getOpenapi", "GET", "/openapi.json", request_id=request_id, credential=None)


def get_docs(*, request_id: str | None = None) -> Call[str]:
    """Read the documentation page.

    Returns this description as a page with examples. It loads no other resource and runs no script.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The page.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("getDocs", "GET", "/docs", request_id=request_id, credential=None, read=text, media_type="text/html")


def get_docs_metadata(*, request_id: str | None = None) -> Call[DocsMetadata]:
    """Fetch endpoints, schemas, and limits.

    Returns every endpoint with its access and statuses, every published schema, the limits of the plans, and the
    largest sizes that the service accepts.

    Args:
        request_id: Your trace id. The response repeats it if its characters are safe. The record has its own
            `request_id`.

    Returns:
        The summary.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent.
    """
    return call("getDocsMetadata", "GET", "/docs.json", request_id=request_id, credential=None)
