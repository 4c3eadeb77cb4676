"""Every operation of the service as a function that gives its `Call`, named as in the OpenAPI document. Pure.

    call = decide(request, idempotency_key="order-77")
    call.body       # the canonical JSON of the request

What an operation needs is positional, and what it takes besides goes by name; what is None is left out, and the service
chooses. Arguments that no service could be sent, or that would lead to another endpoint, are refused here with
RequestRefused, SVC_API_REQUEST_INVALID; bodies that are no I-JSON with MaterialRefused, SVC_API_JSON_INVALID. All else
the service judges.
"""

from gate.client.operations.chains import (
    get_chain,
    get_checkpoint,
)
from gate.client.operations.contract import (
    get_conformance_fixture,
    get_golden_replays,
    get_schema,
    list_conformance_fixtures,
    list_golden_replays,
    list_schemas,
)
from gate.client.operations.decisions import (
    decide,
    find_decisions,
    get_decision,
)
from gate.client.operations.documentation import (
    get_docs,
    get_docs_metadata,
    get_openapi,
)
from gate.client.operations.lifecycle import (
    list_crm_syncs,
    list_executions,
    list_outcomes,
    report_crm_sync,
    report_execution,
    report_outcome,
)
from gate.client.operations.registries import (
    get_policy_source,
    get_rulebook,
    list_attestation_keys,
    list_policy_bundles,
    list_policy_patterns,
    list_policy_sources,
    list_receipt_keys,
    list_trusted_adapters,
)
from gate.client.operations.replays import (
    diff_decision,
    replay_decision,
    simulate_counterfactuals,
)
from gate.client.operations.reports import (
    get_policy_alerts,
    get_policy_anomalies,
    get_policy_benchmarks,
    get_policy_confidence,
    get_policy_effectiveness,
)
from gate.client.operations.service import (
    get_livez,
    get_metrics,
    get_proof_metrics,
    get_readyz,
    get_runtime_config,
    get_status,
)
from gate.client.operations.verification import (
    describe_packet_verification,
    describe_verification,
    export_packet,
    verify_exported_packet,
    verify_exported_record,
    verify_stored_decision,
    verify_supplied_record,
)

__all__ = [
    "decide",
    "describe_packet_verification",
    "describe_verification",
    "diff_decision",
    "export_packet",
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
    "get_openapi",
    "get_policy_alerts",
    "get_policy_anomalies",
    "get_policy_benchmarks",
    "get_policy_confidence",
    "get_policy_effectiveness",
    "get_policy_source",
    "get_proof_metrics",
    "get_readyz",
    "get_rulebook",
    "get_runtime_config",
    "get_schema",
    "get_status",
    "list_attestation_keys",
    "list_conformance_fixtures",
    "list_crm_syncs",
    "list_executions",
    "list_golden_replays",
    "list_outcomes",
    "list_policy_bundles",
    "list_policy_patterns",
    "list_policy_sources",
    "list_receipt_keys",
    "list_schemas",
    "list_trusted_adapters",
    "replay_decision",
    "report_crm_sync",
    "report_execution",
    "report_outcome",
    "simulate_counterfactuals",
    "verify_exported_packet",
    "verify_exported_record",
    "verify_stored_decision",
    "verify_supplied_record",
]
