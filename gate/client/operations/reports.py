"""What outcomes say of a policy, and how well it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gate.client.transport.building import asked, member
from gate.client.transport.calls import Call

if TYPE_CHECKING:
    from gate.client.types import (
        AnomalyReport,
        BenchmarkReport,
        ConfidenceReport,
        EffectivenessReport,
        PolicyAlerts,
        Verdict,
    )


def get_policy_confidence(
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: Verdict | None = None,
    action: str | None = None,
    limit: int | None = None,
    min_sample: int | None = None,
    request_id: str | None = None,
) -> Call[ConfidenceReport]:
    """How far the outcomes of a policy's last `limit` decisions support it."""
    path = f"/api/decision/policies/{member('policy_id', policy_id)}/confidence"
    query = {
        "policy_version": policy_version,
        "verdict": verdict,
        "action": action,
        "limit": limit,
        "min_sample": min_sample,
    }
    return asked("getPolicyConfidence", path, query=query, request_id=request_id)


def get_policy_effectiveness(
    policy_id: str,
    *,
    policy_version: str | None = None,
    limit: int | None = None,
    min_sample: int | None = None,
    request_id: str | None = None,
) -> Call[EffectivenessReport]:
    """How well a policy does, by its last `limit` decisions."""
    path = f"/api/decision/policies/{member('policy_id', policy_id)}/effectiveness"
    query = {"policy_version": policy_version, "limit": limit, "min_sample": min_sample}
    return asked("getPolicyEffectiveness", path, query=query, request_id=request_id)


def get_policy_benchmarks(
    policy_id: str,
    *,
    policy_version: str | None = None,
    limit: int | None = None,
    min_cohort_scopes: int | None = None,
    min_cohort_decisions: int | None = None,
    request_id: str | None = None,
) -> Call[BenchmarkReport]:
    """How a policy does beside that of other scopes that opted in."""
    path = f"/api/decision/policies/{member('policy_id', policy_id)}/benchmarks"
    query = {
        "policy_version": policy_version,
        "limit": limit,
        "min_cohort_scopes": min_cohort_scopes,
        "min_cohort_decisions": min_cohort_decisions,
    }
    return asked("getPolicyBenchmarks", path, query=query, request_id=request_id)


def get_policy_anomalies(
    policy_id: str,
    *,
    policy_version: str | None = None,
    limit: int | None = None,
    min_sample: int | None = None,
    threshold: float | None = None,
    max_items: int | None = None,
    request_id: str | None = None,
) -> Call[AnomalyReport]:
    """What is anomalous about a policy's last `limit` decisions."""
    path = f"/api/decision/policies/{member('policy_id', policy_id)}/anomalies"
    query = {
        "policy_version": policy_version,
        "limit": limit,
        "min_sample": min_sample,
        "threshold": threshold,
        "max_items": max_items,
    }
    return asked("getPolicyAnomalies", path, query=query, request_id=request_id)


def get_policy_alerts(*, open_days: int | None = None, request_id: str | None = None) -> Call[PolicyAlerts]:
    """The open anomalies of high severity, of all policies of the key's scope."""
    return asked("getPolicyAlerts", "/api/policy-alerts", query={"open_days": open_days}, request_id=request_id)
