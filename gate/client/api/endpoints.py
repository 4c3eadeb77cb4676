# Generated from the OpenAPI document by `make client`. Do not edit: change the document, in schemas/, or the
# generator, in api/description/client.
"""Every endpoint as a method, which sends the operation of `gate.client.operations` and returns the answer.

Each operation is described once. Its signature, types, and description are the same for both clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from gate.client.api import operations
from gate.client.transport.endpoint import AsyncEndpoint, Endpoint

if TYPE_CHECKING:
    from gate.client.api.types import PolicyBundleAnswer, PolicyBundleRegistry, PolicyPatternAnswer, PolicyPatterns


class Endpoints:
    """Every endpoint, for threads."""

    # Decide: Ask whether an action is allowed, before it happens.
    decide = Endpoint(operations.decide)
    try_decide = Endpoint(operations.try_decide)

    # Records: Find and fetch stored decisions.
    find_decisions = Endpoint(operations.find_decisions)
    get_decision = Endpoint(operations.get_decision)

    # Lifecycle: Report what happened after a decision: the execution, the outcome, the CRM sync, and the owner's
    # resolution.
    report_execution = Endpoint(operations.report_execution)
    list_executions = Endpoint(operations.list_executions)
    report_outcome = Endpoint(operations.report_outcome)
    list_outcomes = Endpoint(operations.list_outcomes)
    resolve_decision = Endpoint(operations.resolve_decision)
    get_resolution = Endpoint(operations.get_resolution)
    report_crm_sync = Endpoint(operations.report_crm_sync)
    list_crm_syncs = Endpoint(operations.list_crm_syncs)

    # Verify: Check that a record or a packet is unchanged and was signed by a trusted key. These endpoints answer
    # 200 even when the record is not verified: read `verified`.
    verify_stored_decision = Endpoint(operations.verify_stored_decision)
    verify_supplied_record = Endpoint(operations.verify_supplied_record)
    describe_verification = Endpoint(operations.describe_verification)
    verify_exported_record = Endpoint(operations.verify_exported_record)
    describe_packet_verification = Endpoint(operations.describe_packet_verification)
    verify_exported_packet = Endpoint(operations.verify_exported_packet)
    export_packet = Endpoint(operations.export_packet)

    # Replay: Repeat stored decisions, or ask what they would have been with other facts. Nothing here is stored, and
    # nothing lets an action proceed.
    replay_decision = Endpoint(operations.replay_decision)
    diff_decision = Endpoint(operations.diff_decision)
    simulate_counterfactuals = Endpoint(operations.simulate_counterfactuals)

    # Reports: Learn how well a policy works, from the outcomes of its decisions. A report never authorizes an
    # action.
    get_policy_confidence = Endpoint(operations.get_policy_confidence)
    get_policy_effectiveness = Endpoint(operations.get_policy_effectiveness)
    get_policy_anomalies = Endpoint(operations.get_policy_anomalies)
    get_policy_alerts = Endpoint(operations.get_policy_alerts)
    get_policy_alerts_feed = Endpoint(operations.get_policy_alerts_feed)
    get_policy_benchmarks = Endpoint(operations.get_policy_benchmarks)

    # Policy services: Ask what vendors' published policies say about refunds, cancellations, returns, and trials. An
    # answer by itself never authorizes an action.
    ask_refund_workflow = Endpoint(operations.ask_refund_workflow)

    # Audit chain: Read the chain: all entries of a scope in order, linked by hashes.
    get_chain = Endpoint(operations.get_chain)
    get_checkpoint = Endpoint(operations.get_checkpoint)

    # Operations: Check an instance's readiness and liveness, and read its metrics and public settings.
    get_status = Endpoint(operations.get_status)
    get_livez = Endpoint(operations.get_livez)
    get_readyz = Endpoint(operations.get_readyz)
    get_metrics = Endpoint(operations.get_metrics)
    get_runtime_config = Endpoint(operations.get_runtime_config)
    get_proof_metrics = Endpoint(operations.get_proof_metrics)
    submit_pilot = Endpoint(operations.submit_pilot)
    confirm_pilot = Endpoint(operations.confirm_pilot)
    export_pilots = Endpoint(operations.export_pilots)

    # Migrations: Read the rulebook changes that a scope has proposed, approved, and applied. People make them on the
    # command line with `gate migrate`. A new scope has none.
    list_routes = Endpoint(operations.list_routes)
    list_migrations = Endpoint(operations.list_migrations)
    get_migration = Endpoint(operations.get_migration)
    get_migration_report = Endpoint(operations.get_migration_report)
    get_migration_report_markdown = Endpoint(operations.get_migration_report_markdown)
    get_migration_report_html = Endpoint(operations.get_migration_report_html)

    # Registries: Look up public keys, policies, rulebooks, adapters, and patterns.
    list_receipt_keys = Endpoint(operations.list_receipt_keys)
    list_attestation_keys = Endpoint(operations.list_attestation_keys)

    if TYPE_CHECKING:

        @overload
        def list_policy_bundles(self, *, hash: None = None, request_id: str | None = None) -> PolicyBundleRegistry: ...

        @overload
        def list_policy_bundles(self, *, hash: str, request_id: str | None = None) -> PolicyBundleAnswer: ...

        def list_policy_bundles(
            self, *, hash: str | None = None, request_id: str | None = None
        ) -> PolicyBundleRegistry | PolicyBundleAnswer: ...

    else:
        list_policy_bundles = Endpoint(operations.list_policy_bundles)

    get_rulebook = Endpoint(operations.get_rulebook)
    list_trusted_adapters = Endpoint(operations.list_trusted_adapters)

    if TYPE_CHECKING:

        @overload
        def list_policy_patterns(
            self, *, pattern_id: None = None, tag: str | None = None, request_id: str | None = None
        ) -> PolicyPatterns: ...

        @overload
        def list_policy_patterns(
            self, *, pattern_id: str, tag: str | None = None, request_id: str | None = None
        ) -> PolicyPatternAnswer: ...

        def list_policy_patterns(
            self, *, pattern_id: str | None = None, tag: str | None = None, request_id: str | None = None
        ) -> PolicyPatterns | PolicyPatternAnswer: ...

    else:
        list_policy_patterns = Endpoint(operations.list_policy_patterns)

    list_policy_sources = Endpoint(operations.list_policy_sources)
    get_policy_table = Endpoint(operations.get_policy_table)
    get_policy_source = Endpoint(operations.get_policy_source)

    # Contract: Fetch the published contract: JSON Schemas, conformance fixtures, and golden replays. You may cache
    # all of it for an hour.
    list_schemas = Endpoint(operations.list_schemas)
    get_schema = Endpoint(operations.get_schema)
    list_conformance_fixtures = Endpoint(operations.list_conformance_fixtures)
    get_conformance_fixture = Endpoint(operations.get_conformance_fixture)
    list_golden_replays = Endpoint(operations.list_golden_replays)
    get_golden_replays = Endpoint(operations.get_golden_replays)

    # Documentation: Read this API description, as a program or as a person.
    get_openapi = Endpoint(operations.get_openapi)
    get_docs = Endpoint(operations.get_docs)
    get_docs_metadata = Endpoint(operations.get_docs_metadata)


class AsyncEndpoints:
    """Every endpoint, for asyncio."""

    # Decide: Ask whether an action is allowed, before it happens.
    decide = AsyncEndpoint(operations.decide)
    try_decide = AsyncEndpoint(operations.try_decide)

    # Records: Find and fetch stored decisions.
    find_decisions = AsyncEndpoint(operations.find_decisions)
    get_decision = AsyncEndpoint(operations.get_decision)

    # Lifecycle: Report what happened after a decision: the execution, the outcome, the CRM sync, and the owner's
    # resolution.
    report_execution = AsyncEndpoint(operations.report_execution)
    list_executions = AsyncEndpoint(operations.list_executions)
    report_outcome = AsyncEndpoint(operations.report_outcome)
    list_outcomes = AsyncEndpoint(operations.list_outcomes)
    resolve_decision = AsyncEndpoint(operations.resolve_decision)
    get_resolution = AsyncEndpoint(operations.get_resolution)
    report_crm_sync = AsyncEndpoint(operations.report_crm_sync)
    list_crm_syncs = AsyncEndpoint(operations.list_crm_syncs)

    # Verify: Check that a record or a packet is unchanged and was signed by a trusted key. These endpoints answer
    # 200 even when the record is not verified: read `verified`.
    verify_stored_decision = AsyncEndpoint(operations.verify_stored_decision)
    verify_supplied_record = AsyncEndpoint(operations.verify_supplied_record)
    describe_verification = AsyncEndpoint(operations.describe_verification)
    verify_exported_record = AsyncEndpoint(operations.verify_exported_record)
    describe_packet_verification = AsyncEndpoint(operations.describe_packet_verification)
    verify_exported_packet = AsyncEndpoint(operations.verify_exported_packet)
    export_packet = AsyncEndpoint(operations.export_packet)

    # Replay: Repeat stored decisions, or ask what they would have been with other facts. Nothing here is stored, and
    # nothing lets an action proceed.
    replay_decision = AsyncEndpoint(operations.replay_decision)
    diff_decision = AsyncEndpoint(operations.diff_decision)
    simulate_counterfactuals = AsyncEndpoint(operations.simulate_counterfactuals)

    # Reports: Learn how well a policy works, from the outcomes of its decisions. A report never authorizes an
    # action.
    get_policy_confidence = AsyncEndpoint(operations.get_policy_confidence)
    get_policy_effectiveness = AsyncEndpoint(operations.get_policy_effectiveness)
    get_policy_anomalies = AsyncEndpoint(operations.get_policy_anomalies)
    get_policy_alerts = AsyncEndpoint(operations.get_policy_alerts)
    get_policy_alerts_feed = AsyncEndpoint(operations.get_policy_alerts_feed)
    get_policy_benchmarks = AsyncEndpoint(operations.get_policy_benchmarks)

    # Policy services: Ask what vendors' published policies say about refunds, cancellations, returns, and trials. An
    # answer by itself never authorizes an action.
    ask_refund_workflow = AsyncEndpoint(operations.ask_refund_workflow)

    # Audit chain: Read the chain: all entries of a scope in order, linked by hashes.
    get_chain = AsyncEndpoint(operations.get_chain)
    get_checkpoint = AsyncEndpoint(operations.get_checkpoint)

    # Operations: Check an instance's readiness and liveness, and read its metrics and public settings.
    get_status = AsyncEndpoint(operations.get_status)
    get_livez = AsyncEndpoint(operations.get_livez)
    get_readyz = AsyncEndpoint(operations.get_readyz)
    get_metrics = AsyncEndpoint(operations.get_metrics)
    get_runtime_config = AsyncEndpoint(operations.get_runtime_config)
    get_proof_metrics = AsyncEndpoint(operations.get_proof_metrics)
    submit_pilot = AsyncEndpoint(operations.submit_pilot)
    confirm_pilot = AsyncEndpoint(operations.confirm_pilot)
    export_pilots = AsyncEndpoint(operations.export_pilots)

    # Migrations: Read the rulebook changes that a scope has proposed, approved, and applied. People make them on the
    # command line with `gate migrate`. A new scope has none.
    list_routes = AsyncEndpoint(operations.list_routes)
    list_migrations = AsyncEndpoint(operations.list_migrations)
    get_migration = AsyncEndpoint(operations.get_migration)
    get_migration_report = AsyncEndpoint(operations.get_migration_report)
    get_migration_report_markdown = AsyncEndpoint(operations.get_migration_report_markdown)
    get_migration_report_html = AsyncEndpoint(operations.get_migration_report_html)

    # Registries: Look up public keys, policies, rulebooks, adapters, and patterns.
    list_receipt_keys = AsyncEndpoint(operations.list_receipt_keys)
    list_attestation_keys = AsyncEndpoint(operations.list_attestation_keys)

    if TYPE_CHECKING:

        @overload
        async def list_policy_bundles(
            self, *, hash: None = None, request_id: str | None = None
        ) -> PolicyBundleRegistry: ...

        @overload
        async def list_policy_bundles(self, *, hash: str, request_id: str | None = None) -> PolicyBundleAnswer: ...

        async def list_policy_bundles(
            self, *, hash: str | None = None, request_id: str | None = None
        ) -> PolicyBundleRegistry | PolicyBundleAnswer: ...

    else:
        list_policy_bundles = AsyncEndpoint(operations.list_policy_bundles)

    get_rulebook = AsyncEndpoint(operations.get_rulebook)
    list_trusted_adapters = AsyncEndpoint(operations.list_trusted_adapters)

    if TYPE_CHECKING:

        @overload
        async def list_policy_patterns(
            self, *, pattern_id: None = None, tag: str | None = None, request_id: str | None = None
        ) -> PolicyPatterns: ...

        @overload
        async def list_policy_patterns(
            self, *, pattern_id: str, tag: str | None = None, request_id: str | None = None
        ) -> PolicyPatternAnswer: ...

        async def list_policy_patterns(
            self, *, pattern_id: str | None = None, tag: str | None = None, request_id: str | None = None
        ) -> PolicyPatterns | PolicyPatternAnswer: ...

    else:
        list_policy_patterns = AsyncEndpoint(operations.list_policy_patterns)

    list_policy_sources = AsyncEndpoint(operations.list_policy_sources)
    get_policy_table = AsyncEndpoint(operations.get_policy_table)
    get_policy_source = AsyncEndpoint(operations.get_policy_source)

    # Contract: Fetch the published contract: JSON Schemas, conformance fixtures, and golden replays. You may cache
    # all of it for an hour.
    list_schemas = AsyncEndpoint(operations.list_schemas)
    get_schema = AsyncEndpoint(operations.get_schema)
    list_conformance_fixtures = AsyncEndpoint(operations.list_conformance_fixtures)
    get_conformance_fixture = AsyncEndpoint(operations.get_conformance_fixture)
    list_golden_replays = AsyncEndpoint(operations.list_golden_replays)
    get_golden_replays = AsyncEndpoint(operations.get_golden_replays)

    # Documentation: Read this API description, as a program or as a person.
    get_openapi = AsyncEndpoint(operations.get_openapi)
    get_docs = AsyncEndpoint(operations.get_docs)
    get_docs_metadata = AsyncEndpoint(operations.get_docs_metadata)
