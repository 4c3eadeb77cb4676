"""All policies at a glance: what came of the decisions of each, in every scope that is looked at.

roll_up(open_lake("var/lake")).frame
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import altair as alt
import polars as pl

from gate.confidence import Counts, wilson_interval
from gate.effectiveness import Standing
from workbench.engines.charts import rates
from workbench.engines.rendering import page, readable
from workbench.lake.reader import Lake, Snapshot

_BY: Final = ("scope", "policy_id")
_RATES: Final = ("effectiveness_score", "success_rate", "low", "high", "terminal_coverage")


@dataclass(frozen=True, slots=True)
class RollUp:
    """What came of the decisions of all policies.

    Attributes:
        frame: {scope, policy_id, decisions, <a column for each outcome status>, unreported, effectiveness_score,
            success_rate, low, high, terminal_coverage}, by scope and policy.
    """

    frame: pl.DataFrame

    def to_dict(self) -> dict[str, Any]:
        """{policies: [a row each]}."""
        return {"policies": self.frame.to_dicts()}

    def _repr_html_(self) -> str:
        columns = (*_BY, "decisions", *_RATES)
        return page(
            "All policies", [("policies", self.frame.height)], ("by policy", readable(self.frame.select(columns)))
        )

    def plot(self) -> alt.LayerChart | alt.FacetChart:
        """The success rate of each policy in each scope, with its interval."""
        named = self.frame.with_columns(pl.concat_str("policy_id", "scope", separator=" in ").alias("name"))
        return rates(
            named.sort("policy_id", "scope"),
            "name",
            named="Policy and scope",
            title="What came of each policy, by scope",
        )


def roll_up(lake: Lake | Snapshot) -> RollUp:
    """What came of the decisions of all policies, in a whole lake or in one scope of it.

    Args:
        lake: The lake, or a scope's snapshot.
    """
    snapshots = [lake] if isinstance(lake, Snapshot) else list(lake.snapshots.values())
    names = {snapshot.manifest.scope_id: snapshot.scope for snapshot in snapshots}
    counted = pl.collect_all(
        [
            snapshot.cases().group_by("scope_id", "policy_id", "outcome_status").agg(pl.len().alias("decisions"))
            for snapshot in snapshots
        ],
        engine="streaming",
    )
    standings: dict[tuple[str, str], dict[str, int]] = {}
    for scope_id, policy_id, status, decisions in (row for frame in counted for row in frame.rows()):
        standings.setdefault((names[scope_id], policy_id), {})[status or "unreported"] = decisions
    rows = [_row(scope, policy_id, Standing(**found)) for (scope, policy_id), found in sorted(standings.items())]
    numbers = dict.fromkeys(("decisions", *Counts._fields, "unreported"), pl.Int64)
    schema = {**dict.fromkeys(_BY, pl.String), **numbers, **dict.fromkeys(_RATES, pl.Float64)}
    return RollUp(pl.DataFrame(rows, schema=schema))


def _row(scope: str, policy_id: str, standing: Standing) -> dict[str, Any]:
    low, high = wilson_interval(standing.succeeded, standing.terminal)
    return {
        "scope": scope,
        "policy_id": policy_id,
        "decisions": standing.decisions,
        **standing._asdict(),
        "effectiveness_score": standing.score,
        "success_rate": standing.success_rate,
        "low": low,
        "high": high,
        "terminal_coverage": standing.terminal_coverage,
    }
