"""All policies of a scope at a glance, and before them what matters today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from markupsafe import Markup

from gate.ledger.reviews import Waiting
from gate.policy.anomalies.anomaly import AnomalyDocument, order
from gate.policy.questions import OPEN_DAYS, VERDICTS
from workbench.charts.sparkline import sparkline
from workbench.columns import ADVISORY
from workbench.dashboard.store.health import Health
from workbench.dashboard.views import links
from workbench.dashboard.views.flagged.anomalies import Flagged
from workbench.dashboard.views.html import ago, render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.dashboard.views.reviews.queue import owners_of
from workbench.dashboard.views.reviews.words import waits
from workbench.dashboard.views.shares import mix
from workbench.engines import findings
from workbench.engines.anomalies.sentences import improved
from workbench.engines.effectiveness import EffectivenessReport
from workbench.engines.findings import FEW
from workbench.engines.glance import Glance
from workbench.engines.rendering import cut
from workbench.engines.wording import counted, whole_percent

HEADLINES: Final = 3
"""How many sentences stand above the table."""

_SEVERITIES: Final = ("high", "medium", "low")
_PROOF, _HARM, _WORSE, _FALLING, _PROMISE, _WAITING, _CHANGE, _OVERDUE, _UNUSUAL = range(9)
# Where an anomaly of medium severity stands; a change of verdicts, volume or facts is no harm by itself.
_MEDIUM: Final = {
    "outcome_shift": _PROMISE,
    "lifecycle_break": _PROMISE,
    "metric_outlier": _UNUSUAL,
    "metric_shift": _UNUSUAL,
}
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
        about: Its subject; of several about one subject, the page shows the first in rank.
        rank: Its place; lower ranks matter more.
    """

    tone: str
    text: str
    url: str
    about: str
    rank: tuple[int, float]


def view(
    location: Location,
    found: Glance,
    flagged: Mapping[str, Sequence[Flagged]],
    effectiveness: Mapping[str, EffectivenessReport],
    health: Health,
    *,
    as_of: datetime,
    now: datetime,
    not_looked: int = 0,
    waiting: Sequence[Waiting] = (),
) -> Page:
    """The overview.

    Args:
        location: Where it is.
        found: The policies.
        flagged: The anomalies of each policy that was looked at, the strongest first.
        effectiveness: How well each policy that was looked at does.
        health: The health of ledger, chain, lake, and checkpoints.
        as_of: When the ledger was read.
        now: The moment.
        not_looked: How many policies were not looked at for anomalies.
        waiting: The held reviews by owner.
    """
    anomalies = {policy_id: [each.anomaly for each in of if each.open] for policy_id, of in flagged.items()}
    rows = [_row(location, row, anomalies.get(row["policy_id"]), found) for row in found.frame.iter_rows(named=True)]
    headlines = _headlines(location, found, anomalies, effectiveness, health, waiting, now)
    context = {
        "headlines": headlines,
        "past": _last_high(location, flagged),
        "open_days": OPEN_DAYS,
        "rows": rows,
        "health": health,
        "as_of": as_of,
        "decisions": int(found.frame["decisions"].sum()),
        "not_looked": not_looked,
        "advisory": found.advisory,
        "advisory_url": location.to("decisions", rule=ADVISORY).url,
        "few": FEW,
        "waiting": owners_of(location, waiting, now),
        "waiting_title": _waits(waiting, now),
        "queue_url": location.to("reviews").url,
    }
    return Page(location, _title(location, found, headlines), render("overview.html", context))


def _title(location: Location, found: Glance, headlines: Sequence[Headline]) -> str:
    if not found.frame.height:
        binding = "binding " if found.advisory else ""
        return f"No {binding}decisions in scope {cut(location.scope or '')} yet"
    wrong = [headline for headline in headlines if headline.tone != "good"]
    policies = counted(found.frame.height, "policy", "policies")
    if not wrong:
        return f"{policies}: nothing needs attention"
    return f"{policies}: {counted(len(wrong), 'thing')} {'needs' if len(wrong) == 1 else 'need'} attention"


def _headlines(
    location: Location,
    found: Glance,
    anomalies: Mapping[str, Sequence[AnomalyDocument]],
    effectiveness: Mapping[str, EffectivenessReport],
    health: Health,
    waiting: Sequence[Waiting],
    now: datetime,
) -> list[Headline]:
    """What matters most, of each policy one sentence: broken proof, harm, what waits, and only then what is unusual."""
    every = [(policy_id, each) for policy_id, of in anomalies.items() for each in of]
    listed = sorted(every, key=lambda of: (order(of[1]), of[0]))
    ranked = [
        *_broken_proof(health),
        *(_of_anomaly(location, policy_id, each, place) for place, (policy_id, each) in enumerate(listed)),
        *(_of_versions(location, found, policy_id, report) for policy_id, report in effectiveness.items()),
        *_falling(location, found),
        *_held(location, found, waiting, now),
    ]
    said: dict[str, Headline] = {}
    for headline in sorted(filter(None, ranked), key=lambda of: of.rank):
        said.setdefault(headline.about, headline)
    if not said and found.frame.height:
        text = (
            "No open anomalies, no version that does worse, no falling rates, nothing held, and all proof checks pass."
        )
        return [Headline("good", text, "#health", "", (0, 0.0))]
    return list(said.values())[:HEADLINES]


def _broken_proof(health: Health) -> Iterator[Headline]:
    for part in health.parts:
        if part.well is False:
            yield Headline("bad", f"{part.name}: {part.told}", "#health", f"proof {part.name}", (_PROOF, 0.0))


def _of_anomaly(location: Location, policy_id: str, anomaly: AnomalyDocument, place: int) -> Headline | None:
    """What an anomaly is; those of one rank in the order in which lists have them."""
    severity, kind, weight = anomaly["severity"], anomaly["kind"], float(place)
    if severity == "low" and (kind != "lifecycle_break" or anomaly["decisions"] < FEW):
        return None
    if severity == "high":
        rank = _HARM
    elif severity == "low":
        rank, weight = _OVERDUE, -float(anomaly["decisions"])
    else:
        rank = _MEDIUM.get(kind, _CHANGE)
    text = f"{findings.headline(policy_id, anomaly)}."
    url = links.anomaly(location, policy_id, anomaly["anomaly_id"])
    return Headline("bad" if severity == "high" else "warn", text, url, policy_id, (rank, weight))


def _last_high(location: Location, flagged: Mapping[str, Sequence[Flagged]]) -> dict[str, str] | None:
    """The last anomaly of high severity that is past, where none is open: it is not forgotten at once."""
    high = [each for of in flagged.values() for each in of if each.anomaly["severity"] == "high"]
    past = [each for each in high if each.dismissal is None and not improved(each.anomaly)]
    if not past or any(each.open for each in past):
        return None
    last = max(past, key=lambda each: each.anomaly["window"]["to"])
    return {
        "text": f"{findings.headline(last.policy_id, last.anomaly, when=True)}.",
        "url": links.anomaly(location, last.policy_id, last.anomaly["anomaly_id"]),
    }


def _of_versions(location: Location, found: Glance, policy_id: str, report: EffectivenessReport) -> Headline | None:
    """A policy with a version that does worse than its others; those with the most decisions first."""
    below = [of["policy_version"] for of in report.body["versions"] if of["below_others"]]
    if not below:
        return None
    latest = found.frame.filter(found.frame["policy_id"] == policy_id)["latest_version"].to_list()
    text = f"{cut(policy_id)}: {_lowered(report.finding())}."
    url = location.to("policy", policy=policy_id, version=below[0] if len(below) == 1 else None).url
    decisions = report.body["coverage"]["decisions"]
    return Headline("bad" if latest[0] in below else "warn", text, url, policy_id, (_WORSE, -decisions))


def _falling(location: Location, found: Glance) -> Iterator[Headline]:
    for row in found.frame.filter(found.frame["trend"] == "falling").iter_rows(named=True):
        text = (
            f"{cut(row['policy_id'])} succeeded less often in its last 28 days than before. Overall, "
            f"{whole_percent(row['success_rate'])} of its cases succeeded."
        )
        url = links.policy(location, row["policy_id"])
        yield Headline("warn", text, url, row["policy_id"], (_FALLING, -row["decisions"]))


def _held(location: Location, found: Glance, waiting: Sequence[Waiting], now: datetime) -> Iterator[Headline]:
    if waiting:
        due = any(each.due for each in waiting)
        url = location.to("reviews").url
        yield Headline("warn", f"{_waits(waiting, now)}.", url, "reviews", (_HARM if due else _WAITING, 0.0))
        return
    held = found.frame.filter(found.frame["held"] > 0)
    if held.height:
        number, oldest = int(held["held"].sum()), min(held["oldest_held_at"].to_list())
        verb = "is" if number == 1 else "are"
        text = f"{counted(number, 'decision')} {verb} waiting for review, the oldest for {ago(oldest, now)}."
        yield Headline("warn", text, location.to("held").url, "held decisions", (_WAITING, 0.0))


def _waits(waiting: Sequence[Waiting], now: datetime) -> str:
    """How many reviews wait, the oldest for how long, and how many of them are due soon."""
    number, due = sum(each.number for each in waiting), sum(each.due for each in waiting)
    if not number:
        return "No review is waiting for an answer"
    oldest = waits(min(each.oldest_at for each in waiting), now)
    soon = f"; {due:,} {'is' if due == 1 else 'are'} overdue or due within an hour" if due else ""
    since = f"for {oldest}" if number == 1 else f"the oldest for {oldest}"
    return f"{counted(number, 'review')} {'is' if number == 1 else 'are'} waiting for an answer, {since}{soon}"


def _lowered(sentence: str) -> str:
    return f"{sentence[0].lower()}{sentence[1:]}"


def _row(
    location: Location, row: Mapping[str, Any], anomalies: Sequence[Mapping[str, Any]] | None, found: Glance
) -> dict[str, Any]:
    policy_id = row["policy_id"]
    here = location.to("decisions", policy=policy_id)
    severities = [of["severity"] for of in anomalies or ()]
    told = [f"{severities.count(each):,} {each}" for each in _SEVERITIES if each in severities]
    weeks = found.weekly.filter(found.weekly["policy_id"] == policy_id).sort("week")
    terminal = int(weeks["terminal"].sum())
    tone, trend = _TRENDS[row["trend"]]
    return {
        "policy": policy_id,
        "url": links.policy(location, policy_id),
        "decisions": row["decisions"],
        "decisions_url": here.url,
        "mix": mix(
            {verdict: row[verdict] for verdict in VERDICTS},
            {verdict: here.change(verdict=verdict).url for verdict in VERDICTS},
        ),
        "success": (row["success_rate"], row["low"], row["high"]),
        "terminal": terminal,
        "trend": trend,
        "tone": tone,
        "spark": _spark(policy_id, weeks["success_rate"].to_list()),
        "anomalies": None if anomalies is None else told,
        "alarm": "high" in severities,
        "anomalies_url": location.to("anomalies", policy=policy_id, show="open").url,
        "held": row["held"],
        "held_url": location.to("held", policy=policy_id).url,
        "version": row["latest_version"],
        "version_url": location.to("policy", policy=policy_id, version=row["latest_version"]).url,
        "last": row["last_decision_at"],
    }


def _spark(policy_id: str, rates: Sequence[float | None]) -> Markup:
    known = [whole_percent(rate) for rate in rates if rate is not None]
    told = f", the last {known[-1]}" if known else ": none yet"
    label = f"Success rate of {cut(policy_id)} in each of {counted(len(rates), 'week')}{told}"
    return Markup(sparkline(rates, label=label))  # noqa: S704  made of numbers, and of a label that it escapes
