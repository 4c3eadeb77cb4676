"""Frames as the charts of the dashboard take them, with every name as a test wants it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import polars as pl

from workbench.engines import findings

if TYPE_CHECKING:
    import altair as alt

MONDAY: Final = date(2026, 6, 1)
VERDICTS: Final = ("yes", "no", "review")

_RATES: Final = {"success_rate": 0.8, "low": 0.7, "high": 0.9}
_NO_RATES: Final = {"success_rate": None, "low": None, "high": None}
_MIX: Final = {"week": pl.Date, "policy_version": pl.String, "verdict": pl.String, "decisions": pl.Int64}
_COUNTED: Final = {
    **{"verdict": pl.String, "decisions": pl.Int64, "terminal": pl.Int64},
    **dict.fromkeys(_RATES, pl.Float64),
}
_LATENCY: Final = {
    **{"week": pl.Date, "decisions": pl.Int64, "with_outcome": pl.Int64},
    **{"median_hours": pl.Float64, "p90_hours": pl.Float64},
}
_METRICS: Final = {
    **{"name": pl.String, "policy_version": pl.String, "decisions": pl.Int64},
    **dict.fromkeys(("p25", "median", "p75", "min", "max"), pl.Float64),
}


def mix(weeks: int = 6, version: str = "1") -> pl.DataFrame:
    """Decisions by week, version and verdict: every week 30 yes, 20 no and 10 review, half of them by each version."""
    rows = [
        (MONDAY + timedelta(weeks=week), each, verdict, decisions)
        for week in range(weeks)
        for each in (version, "other")
        for verdict, decisions in zip(VERDICTS, (15, 10, 5), strict=True)
    ]
    return pl.DataFrame(rows, schema=_MIX, orient="row")


def reasons(*names: str) -> pl.DataFrame:
    """Reasons with their decisions, each with ten fewer than the one before; the first stands for two verdicts."""
    rows = [
        {"reason_code": name, "verdict": verdict, "decisions": 10 * (len(names) - at), "terminal": 40, **_RATES}
        for at, name in enumerate(names)
        for verdict in (("yes", "review") if at == 0 else ("no",))
    ]
    return pl.DataFrame(rows, schema={"reason_code": pl.String, **_COUNTED})


def rules(*names: str, never: tuple[str, ...] = ()) -> pl.DataFrame:
    """Rules with their decisions likewise, and some that never hit."""
    hit = datetime(2026, 7, 1, 12, tzinfo=UTC)
    rows = [
        {
            **{"rule": f"rule:{name}", "verdict": "yes", "decisions": 10 * (len(names) - at), "terminal": 40},
            **{**_RATES, "last_hit_at": hit},
        }
        for at, name in enumerate(names)
    ]
    rows += [
        {
            **{"rule": f"rule:{name}", "verdict": None, "decisions": 0, "terminal": 0},
            **{**_NO_RATES, "last_hit_at": None},
        }
        for name in never
    ]
    return pl.DataFrame(rows, schema={"rule": pl.String, **_COUNTED, "last_hit_at": pl.Datetime("ms", "UTC")})


def latency(*medians: float | None, with_outcome: int = 40) -> pl.DataFrame:
    """Weeks with the median hours to a first outcome, and three times as many for 90% of them."""
    rows = [
        (MONDAY + timedelta(weeks=week), 60, *((0, None, None) if half is None else (with_outcome, half, 3 * half)))
        for week, half in enumerate(medians)
    ]
    return pl.DataFrame(rows, schema=_LATENCY, orient="row")


def metrics(name: str, *versions: str, decisions: int = 40) -> pl.DataFrame:
    """Values of a metric by version, each a little higher than those of the one before."""
    rows = [
        (name, version, decisions, 10.0 + at, 12.0 + at, 15.0 + at, 0.0, 900.0) for at, version in enumerate(versions)
    ]
    return pl.DataFrame(rows, schema=_METRICS, orient="row")


def leads(row: Mapping[str, object]) -> str:
    """A link with every value of a row."""
    return "/decisions?" + "&".join(f"{name}={quote(str(value), safe='')}" for name, value in row.items())


def charts(name: str) -> dict[str, alt.LayerChart | alt.FacetChart]:
    """Each of these charts, of frames in which everything has this name, with links."""
    from workbench.charts import counts, weekly
    from workbench.charts import metrics as measured

    notes = [f"Policy {name}."]
    named, other = (name, f"{name} 2", "b"), (f"never {name}",)
    by_reason, by_rule = reasons(*named), rules(*named, never=other)
    values = metrics(name, *named)
    return {
        "verdicts": weekly.verdicts(mix(6, name), findings.verdicts(mix(6, name)), notes, link=leads),
        "latency": weekly.latency(latency(20, 30, None, 40), findings.latency(latency(20, 30)), notes, link=leads),
        "reasons": counts.reasons(by_reason, findings.reasons(by_reason), notes, link=leads),
        "rules": counts.rules(by_rule, findings.rules(by_rule), notes, link=leads),
        "metrics": measured.by_version(values, name, findings.metric(values, name), notes, link=leads),
    }
