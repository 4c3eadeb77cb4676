"""What is anomalous about a policy's decisions: wrong lives of decisions, shifted rates, odd values, other facts.

    report = anomalies(open_lake("var/lake").scope("acme"), "refund_policy")
    report.to_dict()["anomalies"][0]["summary"]
    report.plot()

What is counted here, `gate.anomalies` judges; the formulas are in docs/anomalies.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gate.anomalies.report import MAX_ITEMS, anomaly_report, find, strongest
from gate.anomalies.scores import THRESHOLD
from gate.confidence import MIN_SAMPLE
from workbench.engines.anomaly_counts import choose, count, decisions_shown
from workbench.engines.arguments import (
    require_limit,
    require_max_items,
    require_min_sample,
    require_snapshot,
    require_text,
    require_threshold,
)
from workbench.lake.reader import Snapshot


@dataclass(frozen=True, slots=True)
class AnomalyReport:
    """What is anomalous about a policy's decisions.

    Attributes:
        body: The report as the service answers it, with `anomaly_hash`.
        scope: The scope's name.
    """

    body: dict[str, Any]
    scope: str

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return self.body


def anomalies(
    snapshot: Snapshot,
    policy_id: str,
    *,
    policy_version: str | None = None,
    limit: int | None = None,
    min_sample: int = MIN_SAMPLE,
    threshold: float = THRESHOLD,
    max_items: int = MAX_ITEMS,
) -> AnomalyReport:
    """What is anomalous about a policy's decisions in a scope.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        policy_version: One of its versions; None for all.
        limit: How many decisions are looked at, the latest in the chain, 1 to 1,000,000; None for all.
        min_sample: How many cases a window needs, and what it is compared with, 1 to 10,000.
        threshold: The least score that is listed, 0 to 1.
        max_items: How many anomalies are listed, 1 to 200.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    require_snapshot(snapshot)
    require_text("policy_id", policy_id, optional=False)
    require_text("policy_version", policy_version)
    require_limit(limit)
    require_min_sample(min_sample)
    require_threshold(threshold)
    require_max_items(max_items)
    choice = choose(snapshot, policy_id, policy_version, limit)
    counted = count(snapshot, choice, min_sample)
    found = find(counted, policy_id=policy_id, min_sample=min_sample)
    listed = strongest(found, threshold=threshold, max_items=max_items)
    body = anomaly_report(
        counted,
        found,
        decisions_shown(choice.cases, [anomaly.shown for anomaly in listed]),
        policy_id=policy_id,
        policy_version=policy_version,
        min_sample=min_sample,
        threshold=threshold,
        max_items=max_items,
        limit=limit,
    )
    return AnomalyReport(body, snapshot.scope)
