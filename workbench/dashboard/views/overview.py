"""All policies of a scope at a glance, and before them what matters today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from markupsafe import Markup

from workbench.charts.sparkline import sparkline
from workbench.dashboard.store.health import Health
from workbench.dashboard.views import links
from workbench.dashboard.views.html import ago, render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.findings import FEW
from workbench.engines.glance import Glance
from workbench.engines.rendering import cut
from workbench.engines.wording import counted, joined, whole_percent

HEADLINES: Final = 3
"""How many sentences stand above the table."""

_SEVERITIES: Final = ("high", "medium", "low")
_TRENDS: Final = {
    "falling": ("bad", "falling"),
    "rising": ("good", "rising"),
    "steady": ("quiet", "steady"),
    "unknown": ("few", "too few cases"),
}


@dataclass(frozen=True, slots=True)
class Headline:
    """A sentence that matters today.

    Attributes:
        tone: bad, warn or good.
        text: The sentence.
        url: Where to look.
    """

    tone: str
    text: str
    url: str


def view(
    location: Location,
    found: Glance,
    anomalies: Mapping[str, Sequence[Mapping[str, Any]]],
    health: Health,
    *,
    as_of: datetime,
    now: datetime,
    not_looked: int = 0,
) -> Page:
    """The overview.

    Args:
        location: Where it is.
        found: The policies.
        anomalies: The open anomalies of each policy that was looked at, the strongest first, without those dismissed.
        health: How ledger, chain, lake and checkpoints are.
        as_of: When the ledger was read.
        now: The moment.
        not_looked: How many policies were not looked at for anomalies.
    """
    rows = [_row(location, row, anomalies.get(row["policy_id"]), found) for row in found.frame.iter_rows(named=True)]
    headlines = _headlines(location, found, anomalies, health, now)
    context = {
        "headlines": headlines,
        "rows": rows,
        "health": health,
        "as_of": as_of,
        "decisions": int(found.frame["decisions"].sum()),
        "not_looked": not_looked,
        "few": FEW,
    }
    return Page(location, _title(location, found, headlines), render("overview.html", context))


def _title(location: Location, found: Glance, headlines: Sequence[Headline]) -> str:
    if not found.frame.height:
        return f"No decisions in scope {cut(location.scope or '')} yet"
    wrong = [headline for headline in headlines if headline.tone != "good"]
    policies = counted(found.frame.height, "policy", "policies")
    if not wrong:
        return f"{policies}: nothing needs attention"
    return f"{policies}: {counted(len(wrong), 'thing')} {'needs' if len(wrong) == 1 else 'need'} attention"


def _headlines(
    location: Location,
    found: Glance,
    anomalies: Mapping[str, Sequence[Mapping[str, Any]]],
    health: Health,
    now: datetime,
) -> list[Headline]:
    """What matters most: broken proof, then the strongest anomalies, then falling success, then what waits longest."""
    said = [Headline("bad", f"{part.name}: {part.told}", "#health") for part in health.parts if not part.well]
    strongest = sorted(
        (
            (anomaly["anomaly_score"], policy_id, anomaly)
            for policy_id, each in anomalies.items()
            for anomaly in each[:1]
        ),
        key=lambda of: (-of[0], of[1]),
    )
    said += [
        Headline(
            "bad" if anomaly["severity"] == "high" else "warn",
            f"{cut(policy_id)}: {anomaly['summary']}",
            links.anomaly(location, policy_id, anomaly["anomaly_id"]),
        )
        for _, policy_id, anomaly in strongest
        if anomaly["severity"] != "low"
    ]
    for row in found.frame.iter_rows(named=True):
        if row["trend"] == "falling":
            text = (
                f"{cut(row['policy_id'])} succeeds less often in its last 28 days than before; over all, "
                f"{whole_percent(row['success_rate'])} of its cases succeeded."
            )
            said.append(Headline("warn", text, links.policy(location, row["policy_id"])))
    held = [row for row in found.frame.iter_rows(named=True) if row["held"]]
    if held:
        number, oldest = sum(row["held"] for row in held), min(row["oldest_held_at"] for row in held)
        text = f"{counted(number, 'decision')} held for review, the oldest for {ago(oldest, now)}."
        said.append(Headline("warn", text, location.to("held").url))
    if not said and found.frame.height:
        return [
            Headline("good", "No open anomaly, no falling success, nothing held, and the proof is whole.", "#health")
        ]
    return said[:HEADLINES]


def _row(
    location: Location, row: Mapping[str, Any], anomalies: Sequence[Mapping[str, Any]] | None, found: Glance
) -> dict[str, Any]:
    policy_id = row["policy_id"]
    terminal = sum(row[status] for status in ("succeeded", "partial", "failed", "reverted"))
    here = location.to("decisions", policy=policy_id)
    severities = [of["severity"] for of in anomalies or ()]
    told = joined([f"{severities.count(each):,} {each}" for each in _SEVERITIES if each in severities])
    weeks = found.weekly.filter(found.weekly["policy_id"] == policy_id).sort("week")
    tone, trend = _TRENDS[row["trend"]]
    return {
        "policy": policy_id,
        "url": links.policy(location, policy_id),
        "decisions": row["decisions"],
        "decisions_url": here.url,
        "verdicts": [
            {"verdict": verdict, "share": row[verdict] / row["decisions"], "url": here.change(verdict=verdict).url}
            for verdict in ("yes", "no", "review")
        ],
        "success": (row["success_rate"], row["low"], row["high"]),
        "terminal": terminal,
        "thin": terminal < FEW,
        "trend": trend,
        "tone": tone,
        "spark": Markup(  # noqa: S704  made of numbers, and of a label that it escapes
            sparkline(weeks["success_rate"].to_list(), label=f"Success rate of {cut(policy_id)} by week")
        ),
        "anomalies": None if anomalies is None else told or "none",
        "alarm": "high" in severities,
        "anomalies_url": location.to("anomalies", policy=policy_id).url,
        "held": row["held"],
        "held_url": location.to("held", policy=policy_id).url,
        "version": row["latest_version"],
        "version_url": location.to("policy", policy=policy_id, version=row["latest_version"]).url,
        "last": row["last_decision_at"],
    }
