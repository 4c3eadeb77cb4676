"""Reports on policies from the outcomes of their decisions."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeVar

from flask import Blueprint, Response

from api.feeds import atom
from api.http.auth import authenticate
from api.http.requests import query_choice, query_integer, query_share, query_text, query_time, require_period
from api.http.responses import confidence_headers, json_response
from api.http.state import state
from gate.policy.anomalies.alerts import with_policy_changes
from gate.policy.bounds import Bound, Moment, OneOf, Share, Text, Whole
from gate.policy.questions import (
    AlertsQuestion,
    AnomaliesQuestion,
    BenchmarksQuestion,
    ConfidenceQuestion,
    EffectivenessQuestion,
    Question,
    ReportDocument,
)
from gate.policy.reports import confidence_report

Asked = TypeVar("Asked", bound=Question)

blueprint = Blueprint("reports", __name__)

MAX_CHANGES: Final = 50
"""The number of newest policy tables that are checked for changes."""


@blueprint.get("/api/decision/policies/<policy_id>/effectiveness")
def get_effectiveness(policy_id: str) -> Response:
    """The effectiveness of the policy, counted over its decisions in the caller's scope.

    An unknown policy id gets the report of a policy without decisions.
    """
    authority = authenticate("read", code="SVC_POLICY_EFFECTIVENESS_UNAUTHORIZED")
    question = _asked(EffectivenessQuestion, policy_id=policy_id)
    report = state().reports.answer(authority.scope_id, question)
    return json_response(report, headers=_effectiveness_headers(report))


@blueprint.get("/api/decision/policies/<policy_id>/anomalies")
def get_anomalies(policy_id: str) -> Response:
    """The anomalies of the policy's decisions in the caller's scope.

    An unknown policy id gets the report of a policy without decisions.
    """
    authority = authenticate("read", code="SVC_POLICY_ANOMALIES_UNAUTHORIZED")
    report = state().reports.answer(authority.scope_id, _asked(AnomaliesQuestion, policy_id=policy_id))
    headers = {
        "x-policy-anomalies-count": str(report["anomaly_count"]),
        "x-policy-anomalies-recommendation": str(report["recommendation"]),
        "x-policy-anomalies-hash": str(report["anomaly_hash"]),
    }
    return json_response(report, headers=headers)


@blueprint.get("/api/policy-alerts")
def get_policy_alerts() -> Response:
    """The open anomalies of high severity of all policies in the caller's scope, and the changes of policy tables."""
    return json_response(_alerts())


@blueprint.get("/api/policy-alerts.atom")
def get_policy_alerts_feed() -> Response:
    """The same alerts as an Atom feed."""
    base_url = state().instance.settings.base_url
    return Response(atom(_alerts(), base_url), content_type="application/atom+xml; charset=utf-8")


def _alerts() -> dict[str, Any]:
    authority = authenticate("read")
    report = state().reports.answer(authority.scope_id, _asked(AlertsQuestion))
    changes = state().instance.policy_tables.changes(MAX_CHANGES)
    return with_policy_changes(report, [change.to_dict() for change in changes])


@blueprint.get("/api/decision/policies/<policy_id>/confidence")
def get_confidence(policy_id: str) -> Response:
    """How far the outcomes of the policy's decisions support it.

    An unknown policy id gets the report of a policy without decisions, which is insufficiently known.
    """
    authority = authenticate("read", code="SVC_POLICY_CONFIDENCE_UNAUTHORIZED")
    question = _asked(ConfidenceQuestion, policy_id=policy_id)
    if question.is_narrowed:
        # The ledger counts all that was ever reported; the lake has the dates.
        report = state().reports.answer(authority.scope_id, question)
    else:
        report = confidence_report(state().instance.ledger.outcomes.cover(authority.scope_id, question), question)
    return json_response(report, headers=confidence_headers(report))


@blueprint.get("/api/decision/policies/<policy_id>/benchmarks")
def get_benchmarks(policy_id: str) -> Response:
    """The policy compared with that of other participating scopes.

    An unknown policy id gets the report of a policy without decisions.
    """
    authority = authenticate("read", code="SVC_POLICY_BENCHMARKS_UNAUTHORIZED")
    report = state().reports.answer(authority.scope_id, _asked(BenchmarksQuestion, policy_id=policy_id))
    headers = {
        "x-policy-benchmarks-recommendation": str(report["recommendation"]),
        "x-policy-benchmarks-hash": str(report["benchmark_hash"]),
    }
    return json_response(report, headers=headers)


def _asked(kind: type[Asked], **path: str) -> Asked:
    """The question that the query asks, with its own defaults for what was not sent.

    Args:
        kind: The question.
        path: The members that the path names.

    Raises:
        RequestRefused: SVC_API_QUERY_INVALID.
    """
    bounds = {name: bound for name, bound in kind.bounds().items() if name not in path}
    # The answer names the first of several faults: texts come before all else, whatever the order of the members.
    texts_first = sorted(bounds, key=lambda name: not isinstance(bounds[name], Text))
    sent = {name: _sent(name, bounds[name]) for name in texts_first}
    require_period(*(of if isinstance(of := sent.get(name), datetime) else None for name in ("since", "until")))
    return kind.of({**path, **{name: value for name, value in sent.items() if value is not None}})


def _sent(name: str, bound: Bound) -> str | int | float | datetime | None:
    """A query parameter within its bound; None where it was not sent."""
    match bound:
        case Text():
            return query_text(name)
        case OneOf(words):
            return query_choice(name, words)
        case Whole(lowest, highest):
            return query_integer(name, None, lowest, highest)
        case Share():
            return query_share(name)
        case Moment():
            return query_time(name)


def _effectiveness_headers(report: ReportDocument) -> dict[str, str]:
    score = report["effectiveness_score"]
    return {
        **({} if score is None else {"x-policy-effectiveness-score": str(score)}),
        "x-policy-effectiveness-recommendation": str(report["recommendation"]),
        "x-policy-effectiveness-hash": str(report["effectiveness_hash"]),
    }
