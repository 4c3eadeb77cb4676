"""Version labels and fixed words of the protocol, from the specification's versioning table."""

from __future__ import annotations

from typing import Final

INTERFACE_VERSION: Final = "1.13.0"
PROTOCOL: Final = "decision_protocol_v1"
RECORD: Final = "decision_record_v1"
SANDBOX: Final = "decision_sandbox_v1"
PACKET: Final = "decision_packet_v1"
RULEBOOK_SCHEMA: Final = "rulebook_v1"
EXECUTION: Final = "decision_execution_v1"
OUTCOME: Final = "decision_outcome_v1"
CRM_SYNC: Final = "decision_crm_sync_v1"
ERASURE: Final = "decision_erasure_v1"
RESOLUTION: Final = "decision_resolution_v1"
MIGRATION_ENTRY: Final = "decision_migration_v1"
ROUTE: Final = "decision_route_v1"
CONFIDENCE: Final = "decision_confidence_v1"
EFFECTIVENESS: Final = "policy_effectiveness_v1"
BENCHMARKS: Final = "policy_benchmarks_v1"
ANOMALIES: Final = "policy_anomalies_v1"
ALERTS: Final = "policy_alerts_v1"
COUNTERFACTUALS: Final = "decision_counterfactuals_v1"
RULEBOOK_REGISTRY: Final = "decision_rulebook_registry_v1"
REGISTRY_ATTESTATION: Final = "decision_registry_attestation_v1"
APPLICATION_BINDING: Final = "svc_application_binding_v1"
COMPATIBILITY_POLICY: Final = "compatibility_policy_v1"
GOLDEN_REPLAY: Final = "rulebook_v1_golden_replay_v1"
HISTORICAL_REPLAY: Final = "historical_rulebook_replay_v1"
MIGRATION: Final = "rulebook_migration_v1"
MIGRATION_EVIDENCE: Final = "rulebook_migration_evidence_v1"

CHAIN: Final = "decision_chain_v1"
CHECKPOINT: Final = "decision_checkpoint_v1"
CHECKPOINT_EPOCH: Final = "decision_checkpoint_epoch_v1"
MERKLE_STRATEGY: Final = "rolling_sha256_pair_v1"
RULEBOOK_ATTESTATION: Final = "rulebook_attestation_v1"
RULEBOOK_ATTESTATION_SIGNATURE: Final = "rulebook_attestation_signature_v1"
EVALUATOR: Final = "svc_rulebook_v1"
ADVISORY_EVALUATOR: Final = "svc_advisory_v1"

HASH_ALGORITHM: Final = "sha256"
CANONICALIZATION: Final = "json.sort_deep.v1"

PRODUCTION_CORE: Final = "hybrid_declarative_rulebook_with_trusted_adapters"
BINDING_DIRECT: Final = "direct_declarative_rulebook"
BINDING_ADAPTER: Final = "trusted_adapter_facts_then_declarative_rulebook"
BINDING_MODES: Final = (BINDING_DIRECT, BINDING_ADAPTER)
ADAPTER_AUTHORITY: Final = "facts_only"
VERDICT_AUTHORITY: Final = "declarative_rulebook"
CUSTOMER_CODE: Final = "rejected"

DECISION_CONTRACT: Final = {
    "authority": "advisory_only",
    "production_verdict": False,
    "production_binding_required": True,
}
"""The decision_contract of every advisory record; no other record has one."""

VIEWS: Final = ("minimal", "standard", "full")
ENTRY_TYPES: Final = ("decision", "execution", "outcome", "crm_sync", "erasure", "migration", "route", "resolution")

OUTPUT_MATERIAL: Final = frozenset(
    {
        "runtime_binding",
        "trusted_adapter",
        "adapter_facts",
        "rulebook_attestation",
        "decision_contract",
        "application_verdict",
        "action",
    }
)
"""The response-only fields: refused at the root, in context, and at any depth of the facts of a rulebook request."""

ROOT_OUTPUT_MATERIAL: Final = OUTPUT_MATERIAL | {
    "rulebook_contract",
    "input_hash",
    "decision_id",
    "record_hash",
    "receipt_hash",
    "verify_url",
    "replay_url",
    "engine",
    "evaluator_version",
    "verdict",
    "reason_code",
    "matched_rule_id",
}
"""The fields that are refused at the root of a rulebook request."""
