"""What decisions are worth that would go another way if facts were others.

moved(report, snapshot, "refund_cost")
"""

from __future__ import annotations

from workbench.engines.counterfactuals import CounterfactualReport
from workbench.lake.reader import Snapshot
from workbench.migration.source import FACT, LakeHistory, fact_value


def moved(report: CounterfactualReport, snapshot: Snapshot, metric: str) -> dict[tuple[str, str], tuple[int, float]]:
    """What the decisions are worth that would go another way: how many have the value, and its sum, by their verdict
    and the other one.

    Args:
        report: What would have been decided.
        snapshot: The chain that it is about.
        metric: A metric of the latest outcomes, or a fact as `inputs.<path>`.
    """
    history = LakeHistory(snapshot, report.body["policy_id"])
    if metric.startswith(FACT):
        values = history.facts([metric.removeprefix(FACT)]).select("position", fact_value(metric).alias("value"))
    else:
        values = history.values(metric)
    return {(was, then): (count, total) for was, then, count, total in report.moved(values).rows()}
