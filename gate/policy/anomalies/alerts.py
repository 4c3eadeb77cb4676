"""Alerts: the open anomalies of high severity, of all policies of a scope.

An anomaly stays open for a number of days after its window, counted to the date of the chain's last entry. Nobody
acknowledges or closes an alert: a fixed cause stops producing it, and a persistent one keeps it open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypedDict

from gate.encoding.canonical import content_hash
from gate.ids import parse_timestamp, timestamp
from gate.labels import ALERTS
from gate.policy.anomalies.anomaly import AnomalyDocument, order, report_of
from gate.policy.anomalies.scores import HIGH
from gate.policy.anomalies.weekly.stretch import moved
from gate.policy.questions import OPEN_DAYS, AlertsQuestion

MAX_ALERTS: Final = 100
"""The most alerts that are listed, the most costly first."""

MAX_POLICIES: Final = 100
"""The most policies that are examined, those with the most decisions."""


class Alert(TypedDict):
    """An anomaly of high severity that is open, with the report that lists it."""

    policy_id: str
    anomaly: AnomalyDocument
    report: str


def open_alerts(report: Mapping[str, Any], question: AlertsQuestion) -> list[Alert]:
    """The open alerts of an anomaly report.

    Args:
        report: The report, of every anomaly of high severity.
        question: The question.
    """
    return [
        {
            "policy_id": report["policy_id"],
            "anomaly": anomaly,
            "report": report_of(report["policy_id"], "anomalies", threshold=str(HIGH)),
        }
        for anomaly in still_open(report, question.open_days)
        if anomaly["anomaly_score"] >= HIGH
    ]


def still_open(report: Mapping[str, Any], open_days: int = OPEN_DAYS) -> list[AnomalyDocument]:
    """The anomalies of a report that are open, of whatever severity.

    Args:
        report: The report.
        open_days: How many days after its window an anomaly is open.
    """
    as_of = report["coverage"]["as_of"]
    if as_of is None:
        return []
    since = timestamp(moved(parse_timestamp(as_of), -timedelta(days=open_days)))
    return [anomaly for anomaly in report["anomalies"] if anomaly["window"]["to"] >= since]


def alerts_report(
    alerts: Sequence[Alert],
    question: AlertsQuestion,
    *,
    policies: int,
    more_policies: int,
    as_of: str | None,
    chain_position: int,
    merkle_root: str | None,
) -> dict[str, Any]:
    """The open alerts of a scope (`policy_alerts_v1`).

    Args:
        alerts: Those of each policy, as `open_alerts` gives them.
        question: The question.
        policies: How many policies were looked at.
        more_policies: How many were not.
        as_of: The date of the chain's last entry.
        chain_position: The last position of the scope's chain that was read.
        merkle_root: The chain's rolling root there.

    Returns:
        The report, with `alerts_hash` over the rest of it.
    """
    ordered = sorted(alerts, key=lambda alert: (order(alert["anomaly"]), alert["policy_id"]))
    report = {
        "policy_alerts_version": ALERTS,
        "alert_count": len(alerts),
        "alerts": ordered[:MAX_ALERTS],
        "open_days": question.open_days,
        "coverage": {
            "policies": policies,
            "more_policies": more_policies,
            "as_of": as_of,
            "chain_position": chain_position,
            "merkle_root": merkle_root,
        },
    }
    return {**report, "alerts_hash": content_hash(report)}


def with_policy_changes(report: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A report of alerts that also has the changes of the service's policy tables; the report itself without any.

    Args:
        report: The report, as `alerts_report` gives it.
        changes: The changes, the newest first.
    """
    if not changes:
        return {**report}
    told = {**{name: value for name, value in report.items() if name != "alerts_hash"}, "policy_changes": [*changes]}
    return {**told, "alerts_hash": content_hash(told)}
