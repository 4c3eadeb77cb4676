"""All policies at a glance: the results of their decisions, in one or several scopes.

roll_up(open_lake("var/lake")).frame
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from gate.policy.confidence import Counts, wilson_interval
from gate.policy.effectiveness import Standing
from workbench.engines.arguments import require_lake
from workbench.engines.findings import policies
from workbench.engines.rendering import interval, page, percent, readable
from workbench.lake.reader import Lake, Snapshot

if TYPE_CHECKING:
    import altair as alt

_BY: Final = ("scope", "policy_id")
_PROMPTED: Final = 20
# Which column of the table in a prompt is a number.
_COUNT: Final = 2
_RATES: Final = ("effectiveness_score", "success_rate", "low", "high", "terminal_coverage")


@dataclass(frozen=True, slots=True)
class RollUp:
    """The results of the decisions of all policies.

    Attributes:
        frame: `{scope, policy_id, decisions, <a column for each outcome status>, unreported, effectiveness_score,
            success_rate, low, high, terminal_coverage}`, by scope and policy.
    """

    frame: pl.DataFrame

    def to_dict(self) -> dict[str, object]:
        """The report as JSON, `{policies: [one object for each row]}`."""
        return {"policies": self.frame.to_dicts()}

    def __repr__(self) -> str:
        told = [("scope", "policy", "decisions", "success rate (95%)", "terminal")]
        told += [
            (_line(scope), _line(policy_id), f"{decisions:,}", interval(rate, low, high), percent(covered))
            for scope, policy_id, decisions, rate, low, high, covered in self._worst_first()
            .select(*_BY, "decisions", "success_rate", "low", "high", "terminal_coverage")
            .head(_PROMPTED)
            .iter_rows()
        ]
        wide = [max(map(len, column)) for column in zip(*told, strict=True)]
        lines = [
            "  ".join(
                text.rjust(width) if at == _COUNT else text.ljust(width)
                for at, (text, width) in enumerate(zip(row, wide, strict=True))
            ).rstrip()
            for row in told
        ]
        left = self.frame.height - _PROMPTED
        more = [f"and {left:,} more; .frame has them all"] if left > 0 else []
        return "\n".join(["Roll-up: no decisions"] if self.frame.is_empty() else [*lines, *more])

    def _repr_html_(self) -> str:
        columns = (*_BY, "decisions", *_RATES)
        rows = readable(self._worst_first().select(columns))
        said = [f"{policies(self.frame)}."]
        return page("All policies", [("policies", self.frame.height)], ("The lowest interval first", rows), said=said)

    def plot(self) -> alt.LayerChart | alt.FacetChart:
        """A chart of the success rate of each policy in each scope, with its interval. The lowest end comes first."""
        from workbench.charts.rates import rates

        named = self._worst_first().with_columns(pl.concat_str("policy_id", "scope", separator=" in ").alias("name"))
        notes = ["The policy with the lowest end of its interval comes first."] if named.height else []
        return rates(named, "name", named="Policy and scope", finding=policies(self.frame), notes=notes)

    def _worst_first(self) -> pl.DataFrame:
        """By the low end of the interval; those without a rate last."""
        return self.frame.sort(pl.col("success_rate").is_null(), "low", *_BY)


def roll_up(lake: Lake | Snapshot) -> RollUp:
    """Summarizes the decisions of all policies, in a whole lake or in one scope.

    Args:
        lake: The lake, or a scope's snapshot.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    require_lake(lake)
    snapshots = [lake] if isinstance(lake, Snapshot) else list(lake.snapshots.values())
    names = {snapshot.manifest.scope_id: snapshot.title for snapshot in snapshots}
    counted = pl.collect_all(
        [
            snapshot.binding()
            .cases()
            .group_by("scope_id", "policy_id", "outcome_status")
            .agg(pl.len().alias("decisions"))
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


def _line(name: str) -> str:
    """A whole name, on one line."""
    return "".join(character if character.isprintable() else "\ufffd" for character in name)


def _row(scope: str, policy_id: str, standing: Standing) -> dict[str, str | float | None]:
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
