"""What the outcomes of a policy's decisions say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response

from api.http.auth import authenticate
from api.http.requests import confidence_headers, json_response, query_choice, query_integer, query_share, query_text
from api.http.state import state
from gate.policy.anomalies.alerts import MOST_OPEN_DAYS, OPEN_DAYS
from gate.policy.anomalies.report import MAX_ITEMS, MOST_ITEMS
from gate.policy.anomalies.scores import THRESHOLD
from gate.policy.confidence import MIN_SAMPLE
from gate.policy.peers import MAX_DECISIONS, MAX_SCOPES, MIN_DECISIONS, MIN_SCOPES
from gate.policy.reports import confidence_report

blueprint = Blueprint("reports", __name__)

MAX_LIMIT = 1_000_000
MAX_SAMPLE = 10_000

_VERDICTS = ("yes", "no", "review")


@blueprint.get("/api/decision/policies/<policy_id>/effectiveness")
def get_effectiveness(policy_id: str) -> Response:
    """How well the policy does, counted over its decisions in the caller's scope.

    A policy that has none there is one without decisions, whether or not there is one of that id.
    """
    authority = authenticate("read", code="SVC_POLICY_EFFECTIVENESS_UNAUTHORIZED")
    version = query_text("policy_version")
    limit = query_integer("limit", default=None, lowest=1, highest=MAX_LIMIT)
    min_sample = query_integer("min_sample", default=MIN_SAMPLE, lowest=1, highest=MAX_SAMPLE)
    report = state().reports.effectiveness(
        authority.scope_id, policy_id, policy_version=version, limit=limit, min_sample=min_sample
    )
    return json_response(report, headers=_effectiveness_headers(report))


@blueprint.get("/api/decision/policies/<policy_id>/anomalies")
def get_anomalies(policy_id: str) -> Response:
    """What is anomalous about the policy's decisions in the caller's scope.

    A policy that has none there is one without decisions, whether or not there is one of that id.
    """
    authority = authenticate("read", code="SVC_POLICY_ANOMALIES_UNAUTHORIZED")
    report = state().reports.anomalies(
        authority.scope_id,
        policy_id,
        policy_version=query_text("policy_version"),
        limit=query_integer("limit", default=None, lowest=1, highest=MAX_LIMIT),
        min_sample=query_integer("min_sample", default=MIN_SAMPLE, lowest=1, highest=MAX_SAMPLE),
        threshold=query_share("threshold", default=THRESHOLD),
        max_items=query_integer("max_items", default=MAX_ITEMS, lowest=1, highest=MOST_ITEMS),
    )
    headers = {
        "x-policy-anomalies-count": str(report["anomaly_count"]),
        "x-policy-anomalies-recommendation": report["recommendation"],
        "x-policy-anomalies-hash": report["anomaly_hash"],
    }
    return json_response(report, headers=headers)


@blueprint.get("/api/policy-alerts")
def get_policy_alerts() -> Response:
    """The open anomalies of high severity, of all policies of the caller's scope."""
    authority = authenticate("read")
    open_days = query_integer("open_days", default=OPEN_DAYS, lowest=1, highest=MOST_OPEN_DAYS)
    return json_response(state().reports.policy_alerts(authority.scope_id, open_days=open_days))


@blueprint.get("/api/decision/policies/<policy_id>/confidence")
def get_confidence(policy_id: str) -> Response:
    """How far the outcomes of the policy's decisions support it.

    A policy that has none in the caller's scope is insufficiently known, whether or not there is one of that id.
    """
    authority = authenticate("read", code="SVC_POLICY_CONFIDENCE_UNAUTHORIZED")
    version, action = query_text("policy_version"), query_text("action")
    verdict = query_choice("verdict", _VERDICTS)
    limit = query_integer("limit", default=None, lowest=1, highest=MAX_LIMIT)
    min_sample = query_integer("min_sample", default=MIN_SAMPLE, lowest=1, highest=MAX_SAMPLE)
    coverage = state().instance.ledger.outcomes.cover(
        authority.scope_id, policy_id, version=version, verdict=verdict, action=action, limit=limit
    )
    report = confidence_report(
        coverage,
        policy_id=policy_id,
        policy_version=version,
        verdict=verdict,
        action=action,
        min_sample=min_sample,
        limit=limit,
    )
    return json_response(report, headers=confidence_headers(report))


@blueprint.get("/api/decision/policies/<policy_id>/benchmarks")
def get_benchmarks(policy_id: str) -> Response:
    """How the policy does beside that of other scopes that take part.

    A policy that has no decisions in the caller's scope is one without any, whether or not there is one of that id.
    """
    authority = authenticate("read", code="SVC_POLICY_BENCHMARKS_UNAUTHORIZED")
    version = query_text("policy_version")
    limit = query_integer("limit", default=None, lowest=1, highest=MAX_LIMIT)
    scopes = query_integer("min_cohort_scopes", default=MIN_SCOPES, lowest=MIN_SCOPES, highest=MAX_SCOPES)
    decisions = query_integer(
        "min_cohort_decisions", default=MIN_DECISIONS, lowest=MIN_DECISIONS, highest=MAX_DECISIONS
    )
    report = state().reports.benchmarks(
        authority.scope_id,
        policy_id,
        policy_version=version,
        limit=limit,
        min_cohort_scopes=scopes,
        min_cohort_decisions=decisions,
    )
    headers = {
        "x-policy-benchmarks-recommendation": report["recommendation"],
        "x-policy-benchmarks-hash": report["benchmark_hash"],
    }
    return json_response(report, headers=headers)


def _effectiveness_headers(report: Mapping[str, Any]) -> dict[str, str]:
    score = report["effectiveness_score"]
    return {
        **({} if score is None else {"x-policy-effectiveness-score": str(score)}),
        "x-policy-effectiveness-recommendation": report["recommendation"],
        "x-policy-effectiveness-hash": report["effectiveness_hash"],
    }
