"""What is wrong in a scope now: the open anomalies of high severity, of all its policies.

policy_alerts(open_lake("var/lake").scope("acme"))["alerts"]
"""

from __future__ import annotations

from typing import Any

import polars as pl

from gate.policy.anomalies.alerts import MAX_POLICIES, MOST_OPEN_DAYS, OPEN_DAYS, alerts_report, open_alerts
from gate.policy.anomalies.report import MOST_ITEMS
from gate.policy.anomalies.scores import HIGH
from workbench.engines.anomalies.report import anomalies
from workbench.engines.arguments import require_snapshot, require_whole
from workbench.engines.slicing import date_of
from workbench.lake.reader import Snapshot


def policy_alerts(snapshot: Snapshot, *, open_days: int = OPEN_DAYS) -> dict[str, Any]:
    """The open alerts of a scope, as the service answers them.

    Args:
        snapshot: The scope's chain.
        open_days: How many days after its window an anomaly is open, 1 to 400.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    require_snapshot(snapshot)
    require_whole("open_days", open_days, 1, MOST_OPEN_DAYS)
    counted = snapshot.cases().group_by("policy_id").agg(pl.len().alias("decisions")).collect(engine="streaming")
    ordered = counted.sort("decisions", "policy_id", descending=[True, False])["policy_id"].to_list()
    policies = ordered[:MAX_POLICIES]
    reports = [anomalies(snapshot, of, threshold=HIGH, max_items=MOST_ITEMS).to_dict() for of in policies]
    return alerts_report(
        [alert for report in reports for alert in open_alerts(report, open_days)],
        open_days=open_days,
        policies=len(policies),
        more_policies=len(ordered) - len(policies),
        as_of=date_of(snapshot.last_entry_at()) or max((of["coverage"]["as_of"] for of in reports), default=None),
        chain_position=snapshot.position,
        merkle_root=snapshot.merkle_root,
    )
