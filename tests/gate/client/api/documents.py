"""The documents of the client, and the schemas that they are by."""

from __future__ import annotations

from typing import Any

from gate.client.api import types

VIEWS = ("/$defs/full", "/$defs/standard", "/$defs/minimal", "/$defs/after_erasure")

ROOTS: dict[Any, tuple[str, tuple[str, ...]]] = {
    types.DecisionRequest: ("decision-request", ("",)),
    types.AdapterInvocation: ("trusted-adapter-invocation", ("",)),
    types.ExecutionReport: ("execution-request", ("",)),
    types.OutcomeReport: ("outcome-request", ("",)),
    types.CrmSyncReport: ("crm-sync-request", ("",)),
    types.RecordVerificationRequest: ("verification-request", ("/$defs/material",)),
    types.PacketVerificationRequest: ("packet-verification-request", ("/$defs/material",)),
    types.ReplayRequest: ("replay-request", ("",)),
    types.CounterfactualsRequest: ("counterfactuals-request", ("",)),
    types.DecisionRecord: ("decision-record-v1", VIEWS),
    types.DecisionSearch: ("decision-search", ("",)),
    types.ExecutionReceipt: ("execution-receipt", ("",)),
    types.ExecutionList: ("execution-receipt", ("/$defs/list",)),
    types.OutcomeRecord: ("outcome-record", ("",)),
    types.OutcomeList: ("outcome-record", ("/$defs/list",)),
    types.CrmSync: ("crm-sync-record", ("",)),
    types.CrmSyncAnswer: ("crm-sync-record", ("/$defs/answer",)),
    types.CrmSyncList: ("crm-sync-record", ("/$defs/list",)),
    types.Chain: ("chain", ("",)),
    types.Checkpoint: ("checkpoint", ("",)),
    types.ConfidenceReport: ("confidence-report", ("",)),
    types.EffectivenessReport: ("effectiveness-report", ("",)),
    types.BenchmarkReport: ("benchmark-report", ("",)),
    types.AnomalyReport: ("anomaly-report", ("",)),
    types.Anomaly: ("anomaly-report", ("/$defs/anomaly",)),
    types.PolicyAlerts: ("policy-alerts", ("",)),
    types.Rulebook: ("rulebook-v1", ("",)),
    types.PolicyPatterns: ("policy-patterns", ("/$defs/registry",)),
    types.PolicyPatternAnswer: ("policy-patterns", ("/$defs/single",)),
    types.PolicyBundleRegistry: ("policy-bundles", ("/$defs/registry",)),
    types.PolicyBundleAnswer: ("policy-bundles", ("/$defs/single",)),
    types.TrustedAdapters: ("trusted-adapters", ("",)),
    types.AdapterManifest: ("trusted-adapter-manifest", ("",)),
    types.PolicySources: ("policy-sources", ("",)),
    types.RulebookMetadata: ("rulebook-metadata", ("",)),
    types.DecisionPacket: ("decision-packet-v1", ("",)),
    types.VerificationResult: ("verification-result", ("",)),
    types.PacketVerificationResult: ("packet-verification-result", ("",)),
    types.VerificationEndpoint: ("verification-endpoint", ("",)),
    types.ReplayResult: ("replay-result", ("",)),
    types.CounterfactualsResult: ("counterfactuals-result", ("",)),
    types.Status: ("status", ("",)),
    types.Probe: ("probe", ("",)),
    types.RuntimeConfig: ("runtime-config", ("",)),
    types.ProofMetrics: ("proof-metrics", ("",)),
    types.KeyRegistryDocument: ("key-registry", ("",)),
    types.ContractIndex: ("contract-index", ("",)),
    types.ConformanceIndex: ("conformance-index", ("",)),
    types.ConformanceFixture: ("conformance-fixture", ("",)),
    types.GoldenReplayIndex: ("golden-replay-index", ("",)),
    types.GoldenReplays: ("golden-replay-cases", ("",)),
    types.DocsMetadata: ("docs", ("",)),
}
