# Generated from the OpenAPI document by `make client`. Do not edit: change the document, in schemas/, or the
# generator, in api/description/client.
"""Every operation of the service as a function that gives its `Call`, named as in the OpenAPI document. Pure.

    call = decide(request, idempotency_key="order-77")
    call.body       # the canonical JSON of the request

What an operation needs is positional, and what it takes besides goes by name; what is None is left out, and the service
chooses. Arguments that no service could be sent, or that would lead to another endpoint, are refused here with
RequestRefused, SVC_API_REQUEST_INVALID; bodies that are no I-JSON with MaterialRefused, SVC_API_JSON_INVALID. All else
the service judges.
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

# These words lead to other endpoints where a decision_id stands in a path.
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


# Decide: Ask before acting.


def decide(
    request: DecisionRequest | Mapping[str, object],
    *,
    idempotency_key: str | None = None,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[DecisionRecord]:
    """Create a Decision Record.

    Evaluates a versioned rulebook over the facts in the request, and answers with a signed, hashed, chained record.

    Only `verdict: yes` lets the action proceed. Every answer but 200 means: do not act. Store the full record before
    acting; only the full view verifies.

    Mode `rulebook` gives a binding verdict. The advisory modes `single`, `multi` and `runtime` never authorize a
    production mutation; each of their records carries a `decision_contract`. Where no upstream is configured they
    answer 503.

    A rulebook that is new to the scope is registered under its `rulebook_id` and `version` for good, and needs a key
    with the access `register` as well.

    Args:
        request: A Decision Request: at most 1 MiB of plain JSON, nested at most 32 deep.
        idempotency_key: Retry handle: the same key with the same payload answers what was made then; with another
            payload, 409. Unique in the scope for decisions, and for each kind of report on each decision. Send one
            with every write, and the same with every retry. Without one a fresh one is made, under which this call
            may be sent again; only a key of the caller's own makes a retry after a crash safe.
        view: The view of the answer; `full` where nothing asks for another. It goes before `Prefer`; `response_view`
            in a body goes before both.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        A decision. Read `verdict`, not the status alone.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """Try the shape of a decision.

    Evaluates a Decision Request as `POST /api/decide` does, for anyone, and answers with the members of a Decision
    Record. The answer is not signed, not stored and not registered, authorizes nothing, and never verifies;
    `sandbox` and `notice` say so in every view.

    Only mode `rulebook` with the rulebook and the facts in the body is answered. A key, and an idempotency key, are
    ignored: each request is evaluated anew. The requests of one address are limited; `GET /api/runtime-config` has
    the limit.

    Args:
        request: A Decision Request with its rulebook: at most 64 KiB of plain JSON, nested at most 32 deep.
        view: The view of the answer; `full` where nothing asks for another. It goes before `Prefer`; `response_view`
            in a body goes before both.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What a decision would look like.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call(
        "tryDecide", "POST", "/api/sandbox/decide", body=request, view=view, request_id=request_id, credential=None
    )


# Records: What was decided.


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
    """Find decisions.

    The scope's decisions that meet every criterion, newest first. One request looks through at most 20,000 decisions
    (of the verdict, where one is named), and reads at most 8 MiB of records; a page may so hold fewer than `limit`,
    or none, and still have a `next_cursor`.

    Args:
        verdict: Only decisions with this verdict.
        policy_id: Only decisions of this policy.
        policy_version: Only decisions of this version of a policy.
        reason_code: Only decisions with this reason code.
        target_object_id: Only decisions that are bound to this resource.
        from_: Only decisions made at this time or later; with its zone.
        to: Only decisions made before this time; with its zone.
        state: Only reviews in this state.
        owner: Only reviews of this owner; it needs `state`.
        min_age: Only decisions made at least this many seconds ago.
        order: Which come first. Give the same one with a cursor. `oldest` needs `state`. None leaves it at newest.
        limit: How many at most. None leaves it at 20.
        cursor: The `next_cursor` of an earlier answer.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        A page of them.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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

    The record as it was answered, in the view asked for. A decision of another scope is not found.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        view: The view of the answer; `full` where nothing asks for another. It goes before `Prefer`; `response_view`
            in a body goes before both.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The stored record.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}"
    return call("getDecision", "GET", path, view=view, request_id=request_id)


# Verify: Whether a record or packet is what the service made.


def verify_stored_decision(decision_id: str, *, request_id: str | None = None) -> Call[VerificationResult]:
    """Verify a stored decision.

    Recomputes the record's hashes, its signatures and its place in the chain, without evaluating anything again.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What verification found; 200 whether or not the record is verified.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/verify"
    return call("verifyStoredDecision", "GET", path, request_id=request_id)


def verify_supplied_record(
    decision_id: str,
    material: RecordVerificationRequest | Mapping[str, object] | None = None,
    *,
    request_id: str | None = None,
) -> Call[VerificationResult]:
    """Verify a supplied record as that of a decision.

    Verifies the record in the body, and that it is the one stored under this id. Without a body, the stored record.
    Send the record with its wrapper, `{record, input?, public_key?}`, or bare. A key in the request serves diagnosis
    alone; it never makes a record verified.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        material: At most 16 MiB of plain JSON, nested at most 64 deep; may be left out.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What verification found; 200 whether or not the record is verified.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/verify"
    return call("verifySuppliedRecord", "POST", path, body=material, request_id=request_id)


def describe_verification(*, request_id: str | None = None) -> Call[VerificationEndpoint]:
    """Describe the verification endpoint.

    What the endpoint takes and answers.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The description.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("describeVerification", "GET", "/api/decision/verify", request_id=request_id, credential=None)


def verify_exported_record(
    material: RecordVerificationRequest | Mapping[str, object], *, request_id: str | None = None
) -> Call[VerificationResult]:
    """Verify an exported record.

    Verifies a record's hashes and signatures against this service's keys, without looking it up. Anyone may ask.
    Send the record with its wrapper, `{record, input?, public_key?}`, or bare. A key in the request serves diagnosis
    alone; it never makes a record verified.

    Args:
        material: At most 16 MiB of plain JSON, nested at most 64 deep.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What verification found; 200 whether or not the record is verified.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call(
        "verifyExportedRecord", "POST", "/api/decision/verify", body=material, request_id=request_id, credential=None
    )


def describe_packet_verification(*, request_id: str | None = None) -> Call[VerificationEndpoint]:
    """Describe the verification endpoint of packets.

    What the endpoint takes and answers.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The description.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call(
        "describePacketVerification", "GET", "/api/decision/packet/verify", request_id=request_id, credential=None
    )


def verify_exported_packet(
    material: PacketVerificationRequest | Mapping[str, object], *, request_id: str | None = None
) -> Call[PacketVerificationResult]:
    """Verify an exported packet.

    Verifies a packet in four steps against this service's keys, without looking anything up: the packet hash; the
    embedded record; execution and outcome hashes; intelligence hashes and retained chain links. Anyone may ask. Send
    the packet with its wrapper, `{packet, input?, public_key?, checkpoint?}`, or bare. A key in the request serves
    diagnosis alone; it never makes a packet verified.

    Args:
        material: At most 16 MiB of plain JSON, nested at most 64 deep.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What verification found; 200 whether or not the packet is verified.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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

    A decision with its reports, what is known of its policy, and its place in the chain, for whoever verifies it
    elsewhere. All of it is of one moment and verified before it is answered; where a part cannot be read or is not
    as it was made, there is no packet.

    Limits take the newest reports, and the links from the decision's own on. Ask for enough links: the checkpoint in
    `audit_chain.verification_hints` speaks for reports whose link is retained, and for no others.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        include_input: Whether the packet has `input`, the Decision Request. None leaves it at false.
        include_chain: Whether the packet has `audit_chain`. None leaves it at true.
        include_intelligence: Whether the packet has `policy_intelligence`. None leaves it at true.
        execution_limit: How many of the newest execution receipts. None leaves it at 20.
        outcome_limit: How many of the newest Outcome Records. None leaves it at 20.
        chain_limit: How many links, from the decision's own on. None leaves it at 20.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The packet.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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


# Replay: Stored decisions made again, and what they would have been otherwise.


def replay_decision(
    decision_id: str,
    request: ReplayRequest | Mapping[str, object] | None = None,
    *,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[ReplayResult]:
    """Replay a stored decision.

    Makes a stored decision again and says where it differs. By default as it was made: by the stored rulebook, over
    the stored request, and only by the evaluator that the record names. With `replay_mode: current`, by the version
    of the rulebook that the scope registered last, or over an `input` of the caller's own.

    Nothing is stored, and nothing is signed: a replay proves and authorizes nothing.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        request: At most 1 MiB of plain JSON, nested at most 33 deep, so that `input` may be nested as deep as a
            decide request; may be left out.
        view: The view of the answer; `full` where nothing asks for another. It goes before `Prefer`; `response_view`
            in a body goes before both.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What the replay found; 200 whether it matched or drifted.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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

    As replay, with `replay_mode` always current: what the version of the rulebook that the scope registered last
    says of the stored request, or of an `input` of the caller's own.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        request: At most 1 MiB of plain JSON, nested at most 33 deep, so that `input` may be nested as deep as a
            decide request; may be left out.
        view: The view of the answer; `full` where nothing asks for another. It goes before `Prefer`; `response_view`
            in a body goes before both.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What the comparison found; 200 whether it matched or drifted.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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

    What the version of the rulebook that the scope registered last would say, had the context been another: up to 50
    scenarios, each a merge patch (RFC 7396) over the stored context. A simulation: nothing is stored, and nothing
    authorizes a mutation.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        request: At most 1 MiB of plain JSON, nested at most 34 deep, so that a patched context may be nested as deep
            as one that is decided.
        view: The view of the answer; `full` where nothing asks for another. It goes before `Prefer`; `response_view`
            in a body goes before both.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What each scenario comes to.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/counterfactuals"
    return call("simulateCounterfactuals", "POST", path, body=request, view=view, request_id=request_id)


# Lifecycle: After the decision: what was done, what it led to, what a CRM holds.


def report_execution(
    decision_id: str,
    report: ExecutionReport | Mapping[str, object],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[ExecutionReceipt]:
    """Report an execution receipt.

    What became of the action: stored, hashed over the record and its action binding, and linked into the scope's
    chain.

    Any number may be reported of a decision, in any order; none is ever changed. `flags` says where the decision was
    not `yes`, which is a breach with `executed` or `queued` alone, and where the report names another target or
    another action than the decision.

    An error means that nothing is proven: do not claim that it was reported.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        report: The report: at most 1 MiB of plain JSON, nested at most 32 deep.
        idempotency_key: Retry handle: the same key with the same payload answers what was made then; with another
            payload, 409. Unique in the scope for decisions, and for each kind of report on each decision. Send one
            with every write, and the same with every retry. Without one a fresh one is made, under which this call
            may be sent again; only a key of the caller's own makes a retry after a crash safe.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The idempotency key was used before with the same payload: what was reported then.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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

    The execution receipts of a decision, the one reported last first. Go on with `next_cursor` until it is null; an
    answer holds fewer than `limit` where they are very large.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        limit: How many at most. None leaves it at 20.
        cursor: `next_cursor` of an earlier answer: goes on where that one ended.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What was reported; an empty list where nothing was.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """Report an outcome record.

    What the action led to: stored, hashed over the record, and linked into the scope's chain.

    The latest one of a decision counts; an earlier one stays. `pending` and `review` are for results that are still
    ambiguous.

    An error means that nothing is proven: do not claim that it was reported.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        report: The report: at most 1 MiB of plain JSON, nested at most 32 deep.
        idempotency_key: Retry handle: the same key with the same payload answers what was made then; with another
            payload, 409. Unique in the scope for decisions, and for each kind of report on each decision. Send one
            with every write, and the same with every retry. Without one a fresh one is made, under which this call
            may be sent again; only a key of the caller's own makes a retry after a crash safe.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The idempotency key was used before with the same payload: what was reported then.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """List outcome records.

    The outcome records of a decision, the one reported last first. Go on with `next_cursor` until it is null; an
    answer holds fewer than `limit` where they are very large.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        limit: How many at most. None leaves it at 20.
        cursor: `next_cursor` of an earlier answer: goes on where that one ended.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What was reported; an empty list where nothing was.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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

    The owner's answer to a decision whose verdict is review: stored once, hashed, signed with the receipt key, and
    linked into the scope's chain.

    `granted` lets the held action run until `expires_at`; `refused` and `expired` keep it held for good. A
    resolution is final. The record's verdict stays `review`.

    It needs a key with the access `resolve`, which no key with `decide` can have. `resolved_by` is a claim of the
    caller; `actor` is the authenticated key.

    An error means that nothing is resolved: the action stays held.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        request: The resolution: at most 1 MiB of plain JSON, nested at most 32 deep.
        idempotency_key: Retry handle: the same key with the same payload answers what was made then; with another
            payload, 409. Unique in the scope for decisions, and for each kind of report on each decision. Send one
            with every write, and the same with every retry. Without one a fresh one is made, under which this call
            may be sent again; only a key of the caller's own makes a retry after a crash safe.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The idempotency key was used before with the same payload: the resolution that was made then.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """Ask where a review stands.

    The state of a held decision, its owner and time limit, and its resolution, if there is one. Any key of the scope
    may ask, so that a caller can wait for the owner's answer.

    The state is not signed. Only the resolution's own signature opens a held action: verify it.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        Where the review stands; `state` is null where the decision was never held for an owner.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """Report a CRM sync record.

    What of the decision is in a CRM: the mapped fields and the object there, stored, hashed and linked into the
    scope's chain. Never send credentials; what looks like one is refused.

    An error means that nothing is proven: do not claim that it was reported.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        report: The report: at most 1 MiB of plain JSON, nested at most 32 deep.
        idempotency_key: Retry handle: the same key with the same payload answers what was made then; with another
            payload, 409. Unique in the scope for decisions, and for each kind of report on each decision. Send one
            with every write, and the same with every retry. Without one a fresh one is made, under which this call
            may be sent again; only a key of the caller's own makes a retry after a crash safe.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The idempotency key was used before with the same payload: what was reported then.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """List CRM sync records.

    The CRM sync records of a decision, the one reported last first. Go on with `next_cursor` until it is null; an
    answer holds fewer than `limit` where they are very large.

    Args:
        decision_id: `decision_id` of a record of the caller's scope.
        limit: How many at most. None leaves it at 20.
        cursor: `next_cursor` of an earlier answer: goes on where that one ended.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        What was reported; an empty list where nothing was.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/{member('decision_id', decision_id, _NO_DECISION_ID)}/crm-sync"
    return call("listCrmSyncs", "GET", path, query={"limit": limit, "cursor": cursor}, request_id=request_id)


# Reports: What the outcomes of a policy's decisions say of it.


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
    """How far outcomes support a policy.

    From the latest outcome of each decision of the policy in the caller's scope: the success rate that they support,
    whether its versions agree, and what the report cannot know. A policy without outcomes is insufficiently known,
    whether or not there is one of that id.

    A report authorizes nothing: only `verdict: yes` of a decision does.

    Args:
        policy_id: `policy_id` of records of the caller's scope.
        policy_version: Only decisions under this version.
        verdict: Only decisions with this verdict.
        since: Only decisions from this time on; with its zone.
        until: Only decisions before this time; with its zone.
        clock: By which dates: `recorded`, when the gate recorded a decision; `occurred`, when it happened as callers
            said, and where they said nothing when it was recorded. None leaves it at recorded.
        action: Only decisions with this action.
        limit: How many decisions to look at, those with the latest outcomes; all where absent.
        min_sample: How many terminal outcomes a level needs, and a version to be compared. None leaves it at 20.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The report.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """How well a policy does.

    From every decision of the policy in the caller's scope and its latest outcome: how many went well, by version,
    verdict, rule and week; which versions do worse than the others; between what bounds the success of all decided
    actions lies; and what the report cannot know. A policy without decisions is answered as such, whether or not
    there is one of that id.

    A report authorizes nothing: only `verdict: yes` of a decision does. It is counted apart from deciding: where
    that cannot be done now, the answer is 503, and decisions are made as ever.

    Args:
        policy_id: `policy_id` of records of the caller's scope.
        policy_version: Only decisions under this version.
        verdict: Only decisions with this verdict.
        since: Only decisions from this time on; with its zone.
        until: Only decisions before this time; with its zone.
        clock: By which dates: `recorded`, when the gate recorded a decision; `occurred`, when it happened as callers
            said, and where they said nothing when it was recorded. None leaves it at recorded.
        limit: How many decisions to look at, the latest in the chain; all where absent.
        min_sample: How many terminal outcomes a judgement needs, and a version, and its others, to be compared. None
            leaves it at 20.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The report.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """What is anomalous about a policy's decisions.

    Decisions whose life went otherwise than the protocol asks (executed without a yes, executed twice, approved
    without a receipt, and others), rates of verdicts, reasons and outcomes that shifted, days with far more or fewer
    decisions than usual, values of observed metrics that lie far out, and facts that drifted. Each anomaly has a
    severity, a score, reasons, a window, decisions that show it, the numbers behind it, and what to look at next. By
    formulas, not by a model: the same chain gives the same report. A policy without decisions is answered as such,
    whether or not there is one of that id.

    A report authorizes nothing: only `verdict: yes` of a decision does. It is counted apart from deciding: where
    that cannot be done now, the answer is 503, and decisions are made as ever.

    Args:
        policy_id: `policy_id` of records of the caller's scope.
        policy_version: Only decisions under this version.
        verdict: Only decisions with this verdict.
        since: Only decisions from this time on; with its zone.
        until: Only decisions before this time; with its zone.
        clock: By which dates: `recorded`, when the gate recorded a decision; `occurred`, when it happened as callers
            said, and where they said nothing when it was recorded. None leaves it at recorded.
        limit: How many decisions to look at, the latest in the chain; all where absent.
        min_sample: How many cases a window needs, what it is compared with, and a metric. None leaves it at 20.
        threshold: The least score that is listed and counted, with at most six decimals. None leaves it at 0.35.
        max_items: How many anomalies to list, those first that cost most. None leaves it at 20.
        value: The observed metric in which effects are estimated.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The report.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """What is wrong now.

    The open anomalies of high severity, of all policies of the caller's scope, and what changed in the policy tables
    of the service. An anomaly is open until `open_days` after its window; there is nothing to acknowledge. It is
    counted apart from deciding, as every report is.

    Args:
        open_days: How many days after its window an anomaly is open, to the date of the chain's last entry. None
            leaves it at 90.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The alerts.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("getPolicyAlerts", "GET", "/api/policy-alerts", query={"open_days": open_days}, request_id=request_id)


def get_policy_alerts_feed(*, open_days: int | None = None, request_id: str | None = None) -> Call[str]:
    """What is wrong now, as a feed.

    The alerts and the changes of policy tables as an Atom feed: an entry for each open anomaly and for each change.

    Args:
        open_days: How many days after its window an anomaly is open, to the date of the chain's last entry. None
            leaves it at 90.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The feed.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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

    Your own rates over the decisions of one month, and percentiles of the rates of other scopes that opted in and
    decide under the same policy id. Cohorts are frozen once a month; others' rates are rounded to 0.05 before anyone
    sees them, and nothing is told of fewer than 5 other scopes. Where nothing is told, `cross_customer` says why,
    and what would change it. Who did not opt in sees only its own metrics.

    A report authorizes nothing: only `verdict: yes` of a decision does. It is counted apart from deciding: where
    that cannot be done now, the answer is 503, and decisions are made as ever.

    Args:
        policy_id: `policy_id` of records of the caller's scope.
        policy_version: Of your own decisions, only those under this version; the cohort is always of the policy as a
            whole.
        verdict: Only decisions with this verdict.
        since: Only decisions from this time on; with its zone.
        until: Only decisions before this time; with its zone.
        clock: By which dates: months are frozen by those of the record. None leaves it at recorded.
        limit: How many of your own decisions to look at, the latest in the chain; all of the month where absent.
        min_cohort_scopes: How many other scopes a comparison needs; their number is rounded down to a step of 1, 2
            or 5 before it is compared. None leaves it at 5.
        min_cohort_decisions: How many of their decisions a comparison needs; their number is rounded down likewise.
            None leaves it at 50.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The report.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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


# Policy services: What vendors' published policies say; it authorizes nothing by itself.


def ask_refund_workflow(
    ticketing_system: Literal["zendesk", "freshdesk", "intercom"],
    request: RefundWorkflowRequest | Mapping[str, object],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[RefundWorkflowAnswer]:
    """Ask about a ticket's refund.

    What a vendor's published policy says about a refund, with tags and a note for the ticket.

    Without a key nothing is stored, `execution_allowed` is false, and each address has a limit of its own. With a
    key, the facts that the answer rests on are decided in the caller's scope: the answer is a signed Decision
    Record, and `execution_allowed` is true only where that record says yes. The first decision of a scope registers
    the rulebook `refund_eligibility`, which needs a key with the access `register` as well.

    Args:
        ticketing_system: The help desk.
        request: The ticket's question.
        idempotency_key: Retry handle: the same key with the same payload answers what was made then; with another
            payload, 409. Unique in the scope for decisions, and for each kind of report on each decision. Send one
            with every write, and the same with every retry. Without one a fresh one is made, under which this call
            may be sent again; only a key of the caller's own makes a retry after a crash safe.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The answer. Read `execution_allowed`, not the status alone.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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


# Audit chain: Every record of a scope, linked in order.


def get_chain(chain_id: str, *, limit: int | None = None, request_id: str | None = None) -> Call[Chain]:
    """Inspect the audit chain.

    The head of the caller's chain and its last links, ascending, checked against one another.

    Args:
        chain_id: `audit_chain.chain_id` of a record of the caller's scope.
        limit: How many of the last links. None leaves it at 20.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The chain.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/chains/{member('chain_id', chain_id)}"
    return call("getChain", "GET", path, query={"limit": limit}, request_id=request_id)


def get_checkpoint(chain_id: str, *, request_id: str | None = None) -> Call[Checkpoint]:
    """Sign a checkpoint.

    A signed statement of the chain's size and root. Kept by someone else, it shows later whether the chain was
    rewritten.

    Args:
        chain_id: `audit_chain.chain_id` of a record of the caller's scope.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The checkpoint.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/chains/{member('chain_id', chain_id)}/checkpoint"
    return call("getCheckpoint", "GET", path, request_id=request_id)


# Migrations: Changes of rulebooks that a scope proposes, approves and routes to, to read.


def list_routes(
    *, rulebook_id: str | None = None, limit: int | None = None, request_id: str | None = None
) -> Call[RouteList]:
    """Routes of rulebook ids.

    The version that each rulebook id of the scope leads to, for requests that name no version: the entry of the
    chain that says so. Of the one in `rulebook_id`, its earlier routes as well.

    Args:
        rulebook_id: Only the routes of this rulebook id, with their `history`.
        limit: With `rulebook_id`: how many routes of its history at most; 20 where absent.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The routes.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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

    The scope's migrations, those proposed last first. One that is proposed again comes first again.

    Args:
        state: Only migrations in this state.
        limit: How many at most. None leaves it at 20.
        cursor: The `next_cursor` of an earlier answer.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        A page of them.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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

    The manifest of a migration with its status and approval as they are now, every entry of the chain about it, the
    routes that cite it or took it back, and whether its evidence is still of today. A migration of another scope is
    not found.

    Args:
        migration_id: `migration_id` of a migration of the caller's scope.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The migration.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/migrations/{member('migration_id', migration_id)}"
    return call("getMigration", "GET", path, request_id=request_id)


def get_migration_report(migration_id: str, *, request_id: str | None = None) -> Call[MigrationEvidence]:
    """The report of a migration.

    The evidence of a migration's latest proposal. The header `accept` chooses the form: the evidence itself as JSON,
    also where no form is accepted, or a page in Markdown or HTML that says the same to people. The pages load
    nothing and run no script.

    Pages are made apart from deciding: where that cannot be done now, the answer is 503, and the evidence as JSON is
    answered as ever.

    Args:
        migration_id: `migration_id` of a migration of the caller's scope.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The evidence, in the form asked for.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/migrations/{member('migration_id', migration_id)}/report"
    return call("getMigrationReport", "GET", path, request_id=request_id)


def get_migration_report_markdown(migration_id: str, *, request_id: str | None = None) -> Call[str]:
    """The report of a migration.

    The evidence of a migration's latest proposal. The header `accept` chooses the form: the evidence itself as JSON,
    also where no form is accepted, or a page in Markdown or HTML that says the same to people. The pages load
    nothing and run no script.

    Pages are made apart from deciding: where that cannot be done now, the answer is 503, and the evidence as JSON is
    answered as ever.

    Args:
        migration_id: `migration_id` of a migration of the caller's scope.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        A page in Markdown.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/migrations/{member('migration_id', migration_id)}/report"
    return call("getMigrationReport", "GET", path, request_id=request_id, read=text, media_type="text/markdown")


def get_migration_report_html(migration_id: str, *, request_id: str | None = None) -> Call[str]:
    """The report of a migration.

    The evidence of a migration's latest proposal. The header `accept` chooses the form: the evidence itself as JSON,
    also where no form is accepted, or a page in Markdown or HTML that says the same to people. The pages load
    nothing and run no script.

    Pages are made apart from deciding: where that cannot be done now, the answer is 503, and the evidence as JSON is
    answered as ever.

    Args:
        migration_id: `migration_id` of a migration of the caller's scope.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        A page in HTML.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/api/decision/migrations/{member('migration_id', migration_id)}/report"
    return call("getMigrationReport", "GET", path, request_id=request_id, read=text, media_type="text/html")


# Registries: Public keys, policy bundles, rulebooks and patterns.


def list_receipt_keys(*, request_id: str | None = None) -> Call[KeyRegistryDocument]:
    """Public receipt keys.

    The Ed25519 keys that verify receipts and checkpoints, active and past.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The registry.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("listReceiptKeys", "GET", "/api/decision/receipt-keys", request_id=request_id, credential=None)


def list_attestation_keys(*, request_id: str | None = None) -> Call[KeyRegistryDocument]:
    """Public attestation keys.

    The Ed25519 keys that verify rulebook attestations and registrations, active and past.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The registry.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """Policy bundle registry.

    The bundles of the service's own policies, active and historical, or the one that `hash` asks for. A scope's own
    rulebooks are never in it.

    Args:
        hash: Answers the one entry whose `policy_bundle_hash` or `policy_hash` this is.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The registry, or the entry.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """Rulebook metadata.

    The registration of one rulebook of the caller's scope, as records cite it: by `hash`, or by `rulebook_id` and
    `version`. Beside it the warnings about the rulebook, and the comments of its author, which are not
    authenticated. Never its body, and never a list.

    Args:
        hash: H of the rulebook.
        rulebook_id: With `version`, instead of `hash`.
        version: With `rulebook_id`, instead of `hash`.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The registration.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call(
        "getRulebook",
        "GET",
        "/api/decision/rulebooks",
        query={"hash": hash, "rulebook_id": rulebook_id, "version": version},
        request_id=request_id,
    )


def list_trusted_adapters(*, request_id: str | None = None) -> Call[TrustedAdapters]:
    """Trusted adapters.

    Every adapter that a decision may take its facts from: its manifest with the schemas of input and facts, the hash
    of its source, its limits, and manifest_hash.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The manifests.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """Policy patterns.

    Complete starting points: each with a request that runs as it stands, templates for what is reported afterwards,
    and examples in curl and Python.

    Args:
        pattern_id: A pattern id or a policy id: answers that one pattern.
        tag: Answers the patterns that bear this tag.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The patterns, or the pattern.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """Where the service's own policies stand.

    Every own policy in every version, with the path of its body; and the policy tables in force.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The sources.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("listPolicySources", "GET", "/rules/policy-sources.json", request_id=request_id, credential=None)


def get_policy_table(
    service: Literal["refund", "cancel", "return", "trial"], *, request_id: str | None = None
) -> Call[PolicyTable]:
    """A policy table in force.

    The table that a policy service answers from: the operator's, or the one that came with the product.

    Args:
        service: The service.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The table.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/rules/policy-tables/{member('service', service)}.json"
    return call("getPolicyTable", "GET", path, request_id=request_id, credential=None)


def get_policy_source(policy_id: str, version: str, *, request_id: str | None = None) -> Call[Rulebook]:
    """The body of an own policy.

    The rulebook of one of the service's own policies, to read, to copy and to hash.

    Args:
        policy_id: `policy_id` of an entry.
        version: `policy_version` of an entry.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The rulebook.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/rules/{member('policy_id', policy_id)}/{member('version', version)}.json"
    return call("getPolicySource", "GET", path, request_id=request_id, credential=None)


# Contract: The published contract: schemas, conformance fixtures, golden replays.


def list_schemas(*, request_id: str | None = None) -> Call[ContractIndex]:
    """Index of the published contract.

    Every schema and corpus of the contract, with its hash.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The index.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("listSchemas", "GET", "/schemas/", request_id=request_id, credential=None)


def get_schema(name: str, *, request_id: str | None = None) -> Call[dict[str, Json]]:
    """One schema.

    A JSON Schema of the contract. Records cite that of Rulebook v1.

    Args:
        name: The schema's name, for example `rulebook-v1`.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The schema.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/schemas/{member('name', name)}.schema.json"
    return call("getSchema", "GET", path, request_id=request_id, credential=None)


def list_conformance_fixtures(*, request_id: str | None = None) -> Call[ConformanceIndex]:
    """Index of the conformance fixtures.

    Requests with the answers that any conforming service gives.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The index.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("listConformanceFixtures", "GET", "/conformance/", request_id=request_id, credential=None)


def get_conformance_fixture(fixture_id: str, *, request_id: str | None = None) -> Call[ConformanceFixture]:
    """One conformance fixture.

    A request, and what every answer to it has in common.

    Args:
        fixture_id: The fixture's id.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The fixture.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/conformance/{member('fixture_id', fixture_id)}.json"
    return call("getConformanceFixture", "GET", path, request_id=request_id, credential=None)


def list_golden_replays(*, request_id: str | None = None) -> Call[GoldenReplayIndex]:
    """Index of the golden replay corpus.

    Facts, rulebooks and the outcomes and hashes they always give.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The index.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("listGoldenReplays", "GET", "/replay/", request_id=request_id, credential=None)


def get_golden_replays(file: str, *, request_id: str | None = None) -> Call[GoldenReplays]:
    """One file of the corpus.

    Cases of one kind.

    Args:
        file: The file's name in the index, without its ending.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The cases.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    path = f"/replay/{member('file', file)}.json"
    return call("getGoldenReplays", "GET", path, request_id=request_id, credential=None)


# Operations: Readiness, liveness and measurement.


def get_status(*, request_id: str | None = None) -> Call[Status]:
    """Readiness.

    Whether everything that a decision needs is there: signing, rulebook runtime, ledger, idempotency, registries,
    authentication, backends, disk; and the label of every contract of the protocol.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        Ready.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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
    """Liveness.

    Whether the process answers.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        It does.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("getLivez", "GET", "/livez", request_id=request_id, credential=None)


def get_readyz(*, request_id: str | None = None) -> Call[Probe]:
    """Readiness in short.

    Whether the service can decide now; `/api/decision/status` says why not.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        It can.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call(
        "getReadyz", "GET", "/readyz", request_id=request_id, credential=None, accepts=(200, 503), read=readiness
    )


def get_metrics(*, request_id: str | None = None) -> Call[str]:
    """Prometheus metrics.

    Counters and histograms in the Prometheus text format.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The metrics.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call(
        "getMetrics", "GET", "/metrics", request_id=request_id, credential="metrics", read=text, media_type="text/plain"
    )


def get_runtime_config(*, request_id: str | None = None) -> Call[RuntimeConfig]:
    """What this instance is set to.

    The settings that a caller may know.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The settings.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("getRuntimeConfig", "GET", "/api/runtime-config", request_id=request_id, credential=None)


def get_proof_metrics(*, request_id: str | None = None) -> Call[ProofMetrics]:
    """What was proved.

    How many records, links and signatures the instance holds, over all scopes.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The figures.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("getProofMetrics", "GET", "/api/proof-metrics", request_id=request_id, credential="metrics")


def submit_pilot(
    request: PilotRequest | Mapping[str, object], *, request_id: str | None = None
) -> Call[PilotSubmission]:
    """Ask for a pilot.

    Leaves a name, an e-mail address, a company and a use with the operator. The answer is the same whether or not
    the address was sent before. The operator sends a token to the person, who confirms with it. One address may send
    5 of these requests a minute.

    Args:
        request: At most 16 KiB of plain JSON.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The submission is stored, and waits to be confirmed.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call(
        "submitPilot", "POST", "/api/pilot", body=request, request_id=request_id, credential=None, accepts=(202,)
    )


def confirm_pilot(
    request: PilotConfirmationRequest | Mapping[str, object], *, request_id: str | None = None
) -> Call[PilotConfirmation]:
    """Confirm a pilot.

    Confirms a submission with the token that the operator sent. A wrong token, an unknown id, and a submission that
    expired or was erased are answered alike. Confirming again changes nothing. One address may send 5 of these
    requests a minute.

    Args:
        request: At most 16 KiB of plain JSON.
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The submission is confirmed.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("confirmPilot", "POST", "/api/pilot/confirm", body=request, request_id=request_id, credential=None)


def export_pilots(*, request_id: str | None = None) -> Call[str]:
    """The submissions for pilots.

    All submissions as CSV in UTF-8, oldest first, with the columns pilot_id, status, submitted_at, confirmed_at,
    name, email, company and use. Every cell is quoted. One that a spreadsheet could take for a formula begins with
    an apostrophe.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The submissions.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
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


# Documentation: This description, for programs and people.


def get_openapi(*, request_id: str | None = None) -> Call[dict[str, Json]]:
    """This description.

    The OpenAPI 3.1 document, in one file that refers to nothing outside itself.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The document.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("getOpenapi", "GET", "/openapi.json", request_id=request_id, credential=None)


def get_docs(*, request_id: str | None = None) -> Call[str]:
    """This description, to read.

    A page that renders the OpenAPI document. It loads nothing else and runs no script.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The page.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("getDocs", "GET", "/docs", request_id=request_id, credential=None, read=text, media_type="text/html")


def get_docs_metadata(*, request_id: str | None = None) -> Call[DocsMetadata]:
    """Endpoints, schemas and limits in short.

    Every endpoint, every published schema, the plans' rate limits and the sizes that the service takes.

    Args:
        request_id: Optional trace id of the caller. It is echoed where it is safe to echo; the record keeps its own
            `request_id`.

    Returns:
        The metadata.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: an argument cannot be sent.
    """
    return call("getDocsMetadata", "GET", "/docs.json", request_id=request_id, credential=None)
