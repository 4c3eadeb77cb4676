"""Details that the OpenAPI document lacks: names in Python, and more exact types.

A place is a component or a part of one: `Status`, `AuditChain.verification` (a field), `KeyRegistry.keys[]` (the items
of an array), `RuntimeConfig.modes{}` (the additional fields of an object).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from api.description.spec import Schema


@dataclass(frozen=True, slots=True)
class Names:
    """The vocabulary of a client.

    Attributes:
        types: The names of types at places, if they differ from the names of the component and its fields. A place
            with an enum gives its name to all equal enums.
        meant: The place or schema to use for a place that the document describes less exactly.
        views: The components of the views of a component.
        fixed: The components whose constants have their only word as their type. Other constants are labels that a
            later release may change, and are plain strings.
        headers: The header parameters that callers may give, by their names in Python.
        left_out: The header parameters that callers do not need.
        bodies: The argument names of bodies that are not called `request`, by their components.
        alone: The query parameters that make an operation answer with a single entry, by operation.
        forms: The functions for all media types of an operation but the first.
        advice: Additional advice about arguments for callers in Python.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    meant: Mapping[str, str | Schema] = field(default_factory=dict)
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    bodies: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)


# What callers of the client import: a name that is changed here breaks their programs.
_TYPES: Final = {
    # Words.
    "AuditChainLink.entry_type": "EntryType",
    "CRMSyncRequest.sync_direction": "SyncDirection",
    "CRMSyncRequest.sync_status": "SyncStatus",
    "ConfidenceReport.level": "ConfidenceLevel",
    "DecisionRecordVerdict": "Verdict",
    "DecisionRequest.mode": "Mode",
    "DecisionRequest.response_view": "View",
    "ExecutionReceipt.flags[]": "ExecutionFlag",
    "ExecutionRequest.execution_status": "ExecutionStatus",
    "MigrationEntry.event": "MigrationStatus",
    "MigrationsSummary.state": "MigrationState",
    "OutcomeRequest.outcome_status": "OutcomeStatus",
    "PolicyBundlesEntry.status": "PolicyStatus",
    "RoutesActor.type": "ActorType",
    "RoutesEntry.cause": "RouteCause",
    "RuntimeConfig.receipt_signing": "ReceiptSigning",
    "RuntimeConfig.registry_signing": "RegistrySigning",
    "Status.status": "Readiness",
    "VerificationResult.key_source": "KeySource",
    # What is sent.
    "CRMSyncRequest": "CrmSyncReport",
    "CounterfactualsRequestScenario": "Scenario",
    "DecisionRequest.context": "DecisionContext",
    "DecisionRequest.rulebook_ref": "RulebookRef",
    "ExecutionRequest": "ExecutionReport",
    "ExecutionRequest.executor": "Executor",
    "OutcomeRequest": "OutcomeReport",
    "PacketVerificationRequestMaterial": "PacketVerificationRequest",
    "TrustedAdapterInvocation": "AdapterInvocation",
    "VerificationRequestMaterial": "RecordVerificationRequest",
    # Records.
    "DecisionRecordActionBinding": "ActionBinding",
    "DecisionRecordAuditChain": "ChainPlace",
    "DecisionRecordDecisionConfidence": "DecisionConfidence",
    "DecisionRecordErased": "Erased",
    "DecisionRecordEvaluation": "Evaluation",
    "DecisionRecordEvaluation.invalid_fields[]": "InvalidField",
    "DecisionRecordEvaluation.rules[]": "RuleEvaluation",
    "DecisionRecordEvaluation.rules[].tests[]": "EvaluatedTest",
    "DecisionRecordEvidenceManifest": "EvidenceManifest",
    "DecisionRecordEvidenceManifest.sources[]": "EvidenceSource",
    "DecisionRecordIntegrity": "Integrity",
    "DecisionRecordIntegrity.signature": "ReceiptSigner",
    "DecisionRecordPolicyBundle": "RecordedPolicyBundle",
    "DecisionRecordRegistryAttestation": "RegistryAttestation",
    "DecisionRecordRulebook": "RulebookIdentity",
    "DecisionRecordRulebookAttestation": "RulebookAttestation",
    "DecisionRecordRulebookAttestation.bundle": "AttestedBundle",
    "DecisionRecordRulebookAttestation.bundle.outcome": "AttestedOutcome",
    "DecisionRecordRulebookAttestation.signature": "AttestationSignature",
    "DecisionRecordRulebookContract": "RulebookContract",
    "DecisionRecordRulebookRegistry": "RulebookRegistration",
    "DecisionRecordRuntimeBinding": "RuntimeBinding",
    "DecisionSearchFound": "FoundDecision",
    # Reports about a decision, and the chain.
    "AuditChain": "Chain",
    "AuditChain.verification": "ChainVerification",
    "AuditChainLink": "ChainLink",
    "CRMSyncRecord": "CrmSync",
    "CRMSyncRecordAnswer": "CrmSyncAnswer",
    "CRMSyncRecordList": "CrmSyncList",
    "ExecutionReceiptList": "ExecutionList",
    "OutcomeRecordList": "OutcomeList",
    # Reports about a policy.
    "AnomalyReport.coverage": "AnomalyCoverage",
    "AnomalyReport.parameters": "AnomalyParameters",
    "AnomalyReport.severities": "AnomalySeverities",
    "AnomalyReportAnomaly": "Anomaly",
    "AnomalyReportAnomaly.look_at_next[]": "AnomalyStep",
    "AnomalyReportAnomaly.window": "AnomalyWindow",
    "AnomalyReportNumbers": "AnomalyNumbers",
    "AnomalyReportNumbers.changes[]": "ShiftedRate",
    "AnomalyReportNumbers.changes[].difference": "RateDifference",
    "AnomalyReportNumbers.facts[]": "DriftedFact",
    "AnomalyReportNumbers.facts[].bins[]": "FactBin",
    "AnomalyReportNumbers.farthest[]": "FarValue",
    "AnomalyReportNumbers.levels[]": "ShiftedMetric",
    "AnomalyReportShare": "CountedShare",
    "BenchmarkReport.coverage": "BenchmarkCoverage",
    "BenchmarkReport.cross_customer": "CrossCustomer",
    "BenchmarkReport.cross_customer.deltas": "CohortDeltas",
    "BenchmarkReport.cross_customer.percentiles": "CohortPercentiles",
    "BenchmarkReport.your_metrics": "OwnMetrics",
    "BenchmarkReportPercentiles": "Percentiles",
    "ConfidenceReport.coverage": "Coverage",
    "ConfidenceReport.versions[]": "VersionConfidence",
    "ConfidenceReportCounts": "OutcomeCounts",
    "ConfidenceReportRate": "Rate",
    "EffectivenessReport.bounds": "SuccessBounds",
    "EffectivenessReport.coverage": "EffectivenessCoverage",
    "EffectivenessReport.metrics[]": "ObservedMetric",
    "EffectivenessReport.rules[]": "RuleEffectiveness",
    "EffectivenessReport.verdicts[]": "VerdictEffectiveness",
    "EffectivenessReport.versions[]": "VersionEffectiveness",
    "EffectivenessReport.weeks[]": "WeekEffectiveness",
    "EffectivenessReportStanding": "Standing",
    "PolicyAlerts.coverage": "AlertsCoverage",
    "PolicyAlertsAlert": "PolicyAlert",
    # Migrations.
    "Migrations": "MigrationList",
    "MigrationsCandidate": "MigrationCandidate",
    "MigrationsSummary": "MigrationSummary",
    "Routes": "RouteList",
    "RoutesActor": "Actor",
    "RoutesEntry": "Route",
    "RoutesVersion": "RulebookVersion",
    # Registries.
    "KeyRegistry": "KeyRegistryDocument",
    "KeyRegistry.keys[]": "PublicKeyEntry",
    "PolicyBundlesEntry": "PolicyBundleEntry",
    "PolicyBundlesPolicyBundle": "PolicyBundle",
    "PolicyBundlesRegistry": "PolicyBundleRegistry",
    "PolicyBundlesSingle": "PolicyBundleAnswer",
    "PolicyPatternsCrmSyncTemplate": "CrmSyncTemplate",
    "PolicyPatternsOutcomeTemplate": "OutcomeTemplate",
    "PolicyPatternsPattern": "PolicyPattern",
    "PolicyPatternsPattern.decision_request_template": "DecisionRequestTemplate",
    "PolicyPatternsPattern.sdk_examples": "PatternExamples",
    "PolicyPatternsRegistry": "PolicyPatterns",
    "PolicyPatternsSingle": "PolicyPatternAnswer",
    "PolicySources.policy_sources[]": "PolicySource",
    "RulebookMetadata.rulebook.adapter_dependency": "AdapterDependency",
    "RulebookV1": "Rulebook",
    "RulebookV1.input_schema": "RulebookInputs",
    "RulebookV1.input_schema.properties{}": "RulebookField",
    "RulebookV1Condition": "RulebookCondition",
    "RulebookV1Outcome": "RulebookOutcome",
    "RulebookV1Rule": "RulebookRule",
    "TrustedAdapterManifest": "AdapterManifest",
    "TrustedAdapterManifest.limits": "AdapterLimits",
    # Packets, verification, replay.
    "CounterfactualsResultDifference": "ScenarioDifference",
    "CounterfactualsResultOutcome": "ScenarioBase",
    "CounterfactualsResultScenario": "ScenarioResult",
    "DecisionPacket.audit_chain": "PacketChain",
    "DecisionPacket.audit_chain.verification_hints": "VerificationHints",
    "DecisionPacket.policy_intelligence": "PolicyIntelligence",
    "PacketVerificationResult.steps": "PacketVerificationSteps",
    "PacketVerificationResultStep": "VerificationStep",
    "ReplayResult.decision": "ReplayedDecision",
    "ReplayResultDifference": "ReplayDifference",
    # The contract, the service, its documentation.
    "ConformanceFixture.expected": "FixtureExpectation",
    "ConformanceFixture.request": "FixtureRequest",
    "ConformanceIndex.fixtures[]": "ConformanceEntry",
    "ContractIndex.schemas[]": "SchemaEntry",
    "Docs": "DocsMetadata",
    "DocsEndpoint": "EndpointEntry",
    "DocsPlan": "Plan",
    "DocsRateLimits": "RateLimits",
    "DocsSchema": "SchemaLink",
    "GoldenReplayCases": "GoldenReplays",
    "GoldenReplayCasesCase": "GoldenCase",
    "GoldenReplayCasesCase.expected": "GoldenOutcome",
    "GoldenReplayCasesCase.frozen": "GoldenHashes",
    "GoldenReplayCasesCase.rulebook": "GoldenRulebook",
    "GoldenReplayCorpusIndex": "GoldenReplayIndex",
    "GoldenReplayCorpusIndex.files[]": "GoldenReplayFile",
    "RuntimeConfig.limits": "RequestLimits",
}

_TEXT_OR_TEXTS: Final[Schema] = {"type": ["string", "array"], "items": {"type": "string"}}

# Answers show many parts as plain objects, or repeat them, because their members are described elsewhere.
_MEANT: Final[Mapping[str, str | Schema]] = {
    "CRMSyncRecord.audit_chain": "DecisionRecordAuditChain",
    "CounterfactualsResult.rulebook": "DecisionRecordRulebook",
    "CounterfactualsResultScenario.evaluation": "DecisionRecordEvaluation",
    "DecisionRecordAuditChain.entry_type": "AuditChainLink.entry_type",
    "DecisionRecordDecisionConfidence.level": "ConfidenceReport.level",
    "DecisionRecordDecisionConfidence.policy_stability": "ConfidenceReport.policy_stability",
    "DecisionRecordIntegrity.signature": {
        "description": "The key that signed the receipt.",
        "type": ["object", "null"],
        "required": ["algorithm", "key_id", "public_key_fingerprint"],
        "properties": {
            "algorithm": {"$ref": "#/components/schemas/DecisionRecordReceiptSignatureAlgorithm"},
            "key_id": {"description": "As receipt_key_id of the record.", "type": "string"},
            "public_key_fingerprint": {
                "description": "As receipt_public_key_fingerprint of the record.",
                "type": ["string", "null"],
            },
        },
    },
    "DecisionRecordRulebookAttestation.bundle.rulebook": "DecisionRecordRulebook",
    "DecisionRecordRulebookAttestation.bundle.runtime_binding": "DecisionRecordRuntimeBinding",
    "DecisionRecordRulebookRegistry.adapter_dependency": "RulebookMetadata.rulebook.adapter_dependency",
    # A rulebook comes from a file more often than from a program.
    "DecisionRequest.rulebook": {"type": "object"},
    "DecisionSearchFound.action_binding": "DecisionRecordActionBinding",
    "EffectivenessReportRate": "ConfidenceReportRate",
    "ExecutionReceipt.action_binding": "DecisionRecordActionBinding",
    "ExecutionReceipt.audit_chain": "DecisionRecordAuditChain",
    "ExecutionReceipt.executor": "ExecutionRequest.executor",
    "GoldenReplayCases.rulebooks[]": "RulebookV1",
    "GoldenReplayCasesCase.adapter": "TrustedAdapterInvocation",
    "GoldenReplayCasesCase.expected.invalid_fields[]": "DecisionRecordEvaluation.invalid_fields[]",
    "Migration.routes[]": "RoutesEntry",
    "MigrationActor": "RoutesActor",
    "MigrationCandidate": "MigrationsCandidate",
    "OutcomeRecord.action_binding": "DecisionRecordActionBinding",
    "OutcomeRecord.audit_chain": "DecisionRecordAuditChain",
    "PolicyAlertsAlert.anomaly": "AnomalyReportAnomaly",
    "PolicyPatternsPattern.decision_request_template.adapter": "TrustedAdapterInvocation",
    "PolicyPatternsPattern.decision_request_template.context": "DecisionRequest.context",
    "PolicyPatternsPattern.decision_request_template.rulebook": "RulebookV1",
    "ReplayResult.decision.rulebook": "DecisionRecordRulebook",
    "ReplayResultDifference.replayed": _TEXT_OR_TEXTS,
    "ReplayResultDifference.stored": _TEXT_OR_TEXTS,
    "RulebookMetadata.rulebook": "DecisionRecordRulebookRegistry",
    "RulebookV1Condition.operator": "RulebookV1Test.operator",
    "TrustedAdapters.adapters[]": "TrustedAdapterManifest",
}

NAMES: Final = Names(
    types=_TYPES,
    meant=_MEANT,
    views={
        "DecisionRecord": (
            "DecisionRecordStandard",
            "DecisionRecordMinimal",
            "DecisionRecordAfterErasure",
            "DecisionRecordAdvisory",
        )
    },
    fixed=frozenset({"TrustedAdapterManifest"}),
    headers={
        "x-decision-response-view": "view",
        "x-idempotency-key": "idempotency_key",
        "x-request-id": "request_id",
    },
    # `view` says the same as Prefer, and the client keeps no answers.
    left_out=frozenset({"Prefer", "if-none-match"}),
    bodies={
        "CRMSyncRequest": "report",
        "ExecutionRequest": "report",
        "OutcomeRequest": "report",
        "PacketVerificationRequest": "material",
        "VerificationRequest": "material",
    },
    alone={"listPolicyBundles": "hash", "listPolicyPatterns": "pattern_id"},
    forms={
        "getMigrationReport": {
            "text/markdown": "get_migration_report_markdown",
            "text/html": "get_migration_report_html",
        },
    },
    advice={
        "idempotency_key": "Without a key, the client makes one for this call and its own retries. Only your own key "
        "makes a retry after a crash safe."
    },
)
"""The vocabulary of `gate.client`."""
