"""The workbench: the lake that a ledger is exported to, and the engines that answer questions about it.

    from workbench import activity, anomalies, benchmarks, confidence, counterfactuals, effectiveness, glance
    from workbench import migration_dry_run, open_lake, policy_alerts, roll_up
    from workbench import Criteria, decision_names, find_decisions, held_decisions

The modules:

    columns      every table and column of the lake
    lake         export, compaction, reading, and verification of the Parquet files
    history      imported past cases: a set of files next to the chain, read as it is
    facts        facts in columns: the JSON type and the value of each field that rulebooks read
    evaluator    a rulebook as one expression over these columns
    engines      a module for each question, and the reports that answer it
    migration    decisions that a proposed rulebook would have made, and the report of a migration
    shadows      decisions that candidates make about new requests, evaluated by the analytics process
    charts       the charts of these reports
    analytics    the process that keeps the lake current and answers the service's reports
    alerting     notifies webhooks of new anomalies, in that process
    dashboard    the pages in a browser, a process of its own
    whatif       decisions under other facts, or under another version
    values       values that can be summed over decisions, and exact sums
    kept         results of queries over single files of the lake, which never change
    period       days and moments as people write them
    notebooks    `gate notebook`: a notebook written for your own scope and policy
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from workbench.engines.activity import activity
    from workbench.engines.anomalies.alerts import policy_alerts
    from workbench.engines.anomalies.report import anomalies
    from workbench.engines.benchmarks import benchmarks
    from workbench.engines.confidence import confidence
    from workbench.engines.counterfactuals import counterfactuals
    from workbench.engines.effectiveness import effectiveness
    from workbench.engines.glance import glance
    from workbench.engines.listing import Criteria, decision_names, find_decisions, held_decisions
    from workbench.engines.roll_up import roll_up
    from workbench.lake.reader import open_lake
    from workbench.migration.asked import migration_dry_run

__all__ = [
    "Criteria",
    "activity",
    "anomalies",
    "benchmarks",
    "confidence",
    "counterfactuals",
    "decision_names",
    "effectiveness",
    "find_decisions",
    "glance",
    "held_decisions",
    "migration_dry_run",
    "open_lake",
    "policy_alerts",
    "roll_up",
]

_PLACES: Final = MappingProxyType(
    {
        "Criteria": "workbench.engines.listing",
        "activity": "workbench.engines.activity",
        "anomalies": "workbench.engines.anomalies.report",
        "benchmarks": "workbench.engines.benchmarks",
        "confidence": "workbench.engines.confidence",
        "counterfactuals": "workbench.engines.counterfactuals",
        "decision_names": "workbench.engines.listing",
        "effectiveness": "workbench.engines.effectiveness",
        "find_decisions": "workbench.engines.listing",
        "glance": "workbench.engines.glance",
        "held_decisions": "workbench.engines.listing",
        "migration_dry_run": "workbench.migration.asked",
        "open_lake": "workbench.lake.reader",
        "policy_alerts": "workbench.engines.anomalies.alerts",
        "roll_up": "workbench.engines.roll_up",
    }
)


def __getattr__(name: str) -> Any:
    # An export needs no engines, and should not wait until they are loaded.
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
