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
from workbench.engines.rendering import page
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
        return page("All policies", [("policies", self.frame.height)], ("by policy", self.frame.select(columns)))

    def plot(self) -> alt.LayerChart | alt.FacetChart:
        """The success rate of each policy with its interval, scope by scope."""
        rows = self.frame.filter(pl.col("success_rate").is_not_null())
        base = alt.Chart(rows).encode(
            y=alt.Y("policy_id:N", title="Policy"),
            yOffset="scope:N",
            color=alt.Color("scope:N", title="Scope"),
        )
        rate = alt.X("success_rate:Q", title="Success rate (share of terminal outcomes)", axis=alt.Axis(format="%"))
        points = base.mark_point(filled=True, size=50).encode(x=rate, tooltip=rows.columns)
        intervals = base.mark_rule().encode(x=alt.X("low:Q", scale=alt.Scale(domain=[0, 1])), x2="high:Q")
        title = alt.TitleParams("What came of each policy", subtitle="With 95 % Wilson intervals, by scope.")
        return alt.layer(intervals, points).properties(title=title, width=560)


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
