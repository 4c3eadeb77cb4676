"""Scopes for benchmarks: chains of any counts, without the cost of deciding."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl

from gate.policy.peers import MonthCounts, beginning, earlier
from workbench.columns import schema
from workbench.lake.manifest import Manifest
from workbench.lake.reader import Snapshot

POLICY: Final = "refunds"


def chain_of(scope_id: str, months: Mapping[str, MonthCounts], lake: Path, policy_id: str = POLICY) -> Snapshot:
    """A chain with so many decisions in each month, whose outcomes were reported in the month after it.

    Args:
        scope_id: The scope, which is also its name.
        months: By month, what comes of its decisions.
        lake: The lake's directory, which holds nothing of it.
        policy_id: The policy that decides.
    """
    decisions: list[dict[str, Any]] = []
    outcomes: list[dict[str, Any]] = []
    for month, counts in sorted(months.items()):
        made, told = beginning(month), beginning(earlier(month, -1))
        first = len(decisions) + len(outcomes) + 1
        decisions += [
            _entry(scope_id, first + number, policy_id, created_at=_at(made, number))
            | {"verdict": "yes" if number < counts.approved else "no"}
            for number in range(counts.decisions)
        ]
        outcomes += [
            _entry(scope_id, first + counts.decisions + number, policy_id, reported_at=_at(told, number))
            | {
                # The last decisions: those that succeed need not be those that were approved.
                "decision_position": first + counts.decisions - 1 - number,
                "outcome_status": "succeeded" if number < counts.succeeded else "failed",
            }
            for number in range(counts.terminal)
        ]
    tail = {"decisions": _frame("decisions", decisions), "outcomes": _frame("outcomes", outcomes)}
    position = len(decisions) + len(outcomes)
    root = f"{position:064x}" if position else None
    return Snapshot(lake, Manifest(scope_id, scope_id, f"chain_{scope_id}"), position, root, tail)


def _at(first: datetime, number: int) -> datetime:
    return first + timedelta(seconds=number)


def _entry(scope_id: str, position: int, policy_id: str, **dates: datetime) -> dict[str, Any]:
    return {"scope_id": scope_id, "position": position, "policy_id": policy_id, "policy_version": "1", **dates}


def _frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema(table), orient="row", infer_schema_length=None)
