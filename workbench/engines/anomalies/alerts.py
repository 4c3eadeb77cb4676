"""What is wrong in a scope now: the open anomalies of high severity, of all its policies.

policy_alerts(open_lake("var/lake").scope("acme"))["alerts"]
"""

from __future__ import annotations

from typing import Any

import polars as pl

from gate.policy.anomalies.alerts import MAX_POLICIES, alerts_report, open_alerts
from gate.policy.anomalies.scores import HIGH
from gate.policy.questions import MOST_ITEMS, OPEN_DAYS, AlertsQuestion, AnomaliesQuestion
from workbench.columns import IS_ADVISORY
from workbench.engines.anomalies import report as anomalies
from workbench.engines.arguments import require_chain, require_snapshot
from workbench.engines.slicing import date_of
from workbench.kept import Kept
from workbench.lake.reader import Snapshot


def policy_alerts(snapshot: Snapshot, *, open_days: int = OPEN_DAYS) -> dict[str, Any]:
    """The open alerts of a scope, as the service answers them.

    Args:
        snapshot: The scope's chain.
        open_days: How many days after its window an anomaly is open, 1 to 400.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    require_snapshot(snapshot)
    return answer(snapshot, AlertsQuestion(open_days=open_days))


def answer(snapshot: Snapshot, question: AlertsQuestion, kept: Kept | None = None) -> dict[str, Any]:
    """The open alerts of a scope, as the service answers them.

    Args:
        snapshot: The scope's chain.
        question: The question.
        kept: What was counted of the lake's files before; nothing is kept where None.
    """
    require_chain(snapshot, "Alerts are about a chain")
    # For advisory decisions, only executions are reported.
    cases = snapshot.cases().filter(~IS_ADVISORY | (pl.col("times_unapproved") > 0))
    counted = cases.group_by("policy_id").agg(pl.len().alias("decisions")).collect(engine="streaming")
    ordered = counted.sort("decisions", "policy_id", descending=[True, False])["policy_id"].to_list()
    policies = ordered[:MAX_POLICIES]
    asked = [AnomaliesQuestion(of, threshold=HIGH, max_items=MOST_ITEMS) for of in policies]
    reports = [anomalies.answer(snapshot, each, kept).to_dict() for each in asked]
    return alerts_report(
        [alert for report in reports for alert in open_alerts(report, question)],
        question,
        policies=len(policies),
        more_policies=len(ordered) - len(policies),
        as_of=date_of(snapshot.last_entry_at()) or max((of["coverage"]["as_of"] for of in reports), default=None),
        chain_position=snapshot.position,
        merkle_root=snapshot.merkle_root,
    )
