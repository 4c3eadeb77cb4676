"""The anomalies of a policy or of all policies of a scope, what is high and costs most first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from gate.ids import timestamp
from gate.ledger.access.dismissals import Dismissal
from gate.policy.anomalies.anomaly import AnomalyDocument, order
from gate.policy.questions import OPEN_DAYS
from workbench.dashboard.views import links, offered
from workbench.dashboard.views.figure import Figure
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.anomalies.sentences import KINDS, counts, days, effect, improved, several, strongest
from workbench.engines.findings import anomalies as finding
from workbench.engines.listing import Names
from workbench.engines.rendering import cut
from workbench.engines.wording import counted

MOST: Final = 100
"""How many anomalies the list has at most."""

TONES: Final[Mapping[str, str]] = {"high": "bad", "medium": "warn", "low": "quiet"}
"""The colour of each severity."""

_NARROWING: Final = ("since", "until", "version", "verdict", "clock")


@dataclass(frozen=True, slots=True)
class Flagged:
    """An anomaly of a list.

    Attributes:
        policy_id: The policy of the report that lists it.
        at: Its place in that report, from 0.
        anomaly: The anomaly.
        open: Whether its window ended not long before the chain's last entry, nobody dismissed it, and it is no
            improvement.
        dismissal: Its last dismissal; None where it is not dismissed.
    """

    policy_id: str
    at: int
    anomaly: AnomalyDocument
    open: bool
    dismissal: Dismissal | None


@dataclass(frozen=True, slots=True)
class Looked:
    """At what a list looked.

    Attributes:
        policies: The policies whose anomalies it has.
        decisions: How many decisions they made.
        more: How many policies of the scope it left out.
        report: The report, where it is of one policy.
    """

    policies: Sequence[str]
    decisions: int
    more: int
    report: Mapping[str, Any] | None


def within(location: Location, anomaly: AnomalyDocument) -> bool:
    """Whether the window of an anomaly and the period of a location have any time in common."""
    since, until = location.period()
    first, last = anomaly["window"]["from"], anomaly["window"]["to"]
    # A window of days ends at the midnight after the last; that of a single decision has no length.
    begun = since is None or last > timestamp(since) or first == last == timestamp(since)
    return begun and (until is None or first < timestamp(until))


def shown(location: Location, found: Sequence[Flagged]) -> list[Flagged]:
    """Those that a list shows, what is high and costs most first: of its period, and as it says, only open or dismissed
    ones too.
    """
    kept = [each for each in found if within(location, each.anomaly)]
    if location.show == "open":
        kept = [each for each in kept if each.open]
    elif location.show is None:
        kept = [each for each in kept if each.dismissal is None]
    return sorted(kept, key=lambda each: (order(each.anomaly), each.policy_id, each.at))


def view(
    location: Location,
    found: Sequence[Flagged],
    looked: Looked,
    names: Names,
    metrics: Sequence[str],
    chart: Figure | None,
    *,
    as_of: datetime,
    now: datetime,
) -> Page:
    """The list.

    Args:
        location: Where it is.
        found: All anomalies of the policies that were looked at.
        looked: The searched policies.
        names: The names to choose from.
        metrics: The metrics in which costs can be estimated.
        chart: Those that are shown over time, where they are of one policy.
        as_of: When the ledger was read.
        now: The moment.
    """
    listed = shown(location, found)
    hidden = sum(each.dismissal is not None and within(location, each.anomaly) for each in found)
    context = {
        "rows": [_row(location, each) for each in listed[:MOST]],
        "left_out": max(0, len(listed) - MOST),
        "hidden": hidden,
        "dismissed_shown": location.show == "dismissed",
        "only_open": location.show == "open",
        "dismissed_url": location.change(show="dismissed").url,
        "choices": _choices(location, found),
        "swapped": offered.swapped(location),
        "open_days": OPEN_DAYS,
        "looked": looked,
        "drawn": None if chart is None else replace(chart, finding=strongest([each.anomaly for each in listed])),
        "narrowed": _narrowed(location),
        "of_a_period": location.since is not None or location.until is not None,
        "widened": location.change(**dict.fromkeys((*_NARROWING, "show"))).url,
        "value": location.value,
        "valued": any(each.anomaly["effect"]["value"] is not None for each in listed),
        "found": len(found),
        "as_of": as_of,
    }
    filters = (
        offered.policies(names.policies),
        *((offered.versions(names.versions.get(location.policy, ())),) if location.policy is not None else ()),
        offered.verdicts(),
        *offered.period(),
        offered.clocks(),
        *((offered.values(metrics),) if metrics or location.value is not None else ()),
    )
    title = _title(location, listed, looked, hidden)
    return Page(location, title, render("anomalies.html", context), filters, links=offered.periods(location, now))


def _choices(location: Location, found: Sequence[Flagged]) -> list[dict[str, Any]]:
    """Which of the anomalies can be shown: each choice with how many it has."""
    choices = (("open", "Open"), (None, "Open and past"), ("dismissed", "All, with dismissed"))
    places = [(location.change(show=show), words) for show, words in choices]
    return [
        {"words": words, "url": place.url, "number": len(shown(place, found)), "current": place.show == location.show}
        for place, words in places
    ]


def _title(location: Location, listed: Sequence[Flagged], looked: Looked, hidden: int) -> str:
    if not looked.policies:
        return f"No decisions in scope {cut(location.scope or '')} yet"
    period = " in this period" if location.since or location.until else ""
    if location.show == "open" and not listed:
        return f"No open anomalies in {_of(looked)}{period}"
    if looked.report is not None and not listed and not hidden and not _narrowed(location):
        return finding(looked.report)
    several_ = several([each.anomaly for each in listed], of=_of(looked), opened=sum(each.open for each in listed))
    return f"{several_}{period}" if listed else f"{several_}{period}{', except dismissed ones' if hidden else ''}"


def _of(looked: Looked) -> str:
    if looked.report is not None:
        return cut(looked.report["policy_id"])
    return counted(len(looked.policies), "policy", "policies")


def _narrowed(location: Location) -> bool:
    return any(getattr(location, name) is not None for name in _NARROWING)


def _row(location: Location, flagged: Flagged) -> dict[str, Any]:
    anomaly = flagged.anomaly
    url = links.anomaly(location, flagged.policy_id, anomaly["anomaly_id"])
    return {
        "severity": anomaly["severity"],
        "tone": TONES[anomaly["severity"]],
        "score": f"{anomaly['anomaly_score']:.2f}",
        "policy": flagged.policy_id,
        "policy_url": links.policy(location, flagged.policy_id),
        "kind": KINDS[anomaly["kind"]],
        "summary": anomaly["summary"],
        "url": url,
        "when": days(anomaly),
        "decisions": counts(anomaly),
        "effect": effect(anomaly, location.value),
        "open": flagged.open,
        "improved": improved(anomaly),
        "dismissal": flagged.dismissal,
    }
