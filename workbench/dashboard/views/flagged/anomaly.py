"""One anomaly: its evidence, the decisions that show it, the next steps, and its dismissals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import polars as pl

from gate.ledger.access.dismissals import NOTE_LENGTH, Dismissal
from gate.policy.anomalies.anomaly import AnomalyDocument
from gate.policy.questions import OPEN_DAYS
from workbench.dashboard.views import links
from workbench.dashboard.views.figure import Figure
from workbench.dashboard.views.flagged.anomalies import TONES, Flagged
from workbench.dashboard.views.html import number, points, render
from workbench.dashboard.views.location import Location, LocationInvalid
from workbench.dashboard.views.page import Form, Page
from workbench.dashboard.views.tables import Cell, Table, table
from workbench.engines.anomalies.going_back import GoingBack
from workbench.engines.anomalies.sentences import (
    KINDS,
    days,
    effect,
    evidence,
    grown,
    improved,
    reasons,
    severity_means,
    shown,
    surroundings,
)
from workbench.engines.findings import anomaly as finding
from workbench.engines.rendering import cut, percent
from workbench.engines.wording import counted, day, described, joined, phrase

FIRST: Final = 20
"""How many of its decisions the page lists."""

_GATHERED: Final = ("lifecycle_break", "metric_outlier")
_BESIDE: Final = 5
_REPORTS: Final[Mapping[str, str]] = {
    "effectiveness": "policy",
    "confidence": "policy",
    "anomalies": "anomalies",
    "benchmarks": "benchmarks",
}
_SEARCHED: Final[Mapping[str, str]] = {
    "policy_id": "policy",
    "from": "since",
    "to": "until",
    "verdict": "verdict",
    "reason_code": "reason",
    "policy_version": "version",
}


@dataclass(frozen=True, slots=True)
class Found:
    """An anomaly and what its report gives of it.

    Attributes:
        flagged: The anomaly.
        decisions: The first of its decisions, as cases, the order in which they are listed.
        whole: How many decisions it has.
        beside: The numbers of its chart.
        chart: Its chart.
        back: The decisions that the version before would have made; None if no new version came with the anomaly, or
            none is known before it.
    """

    flagged: Flagged
    decisions: pl.DataFrame
    whole: int
    beside: pl.DataFrame
    chart: Figure
    back: GoingBack | None


def at_that_time(flagged: Flagged, every: Sequence[Flagged]) -> list[Flagged]:
    """The strongest anomalies of the same policy whose windows overlap an anomaly's, without those dismissed.

    Broken promises and metrics far from usual are collected from all dates, and say nothing about one period.
    """
    window = flagged.anomaly["window"]
    found = [
        each
        for each in every
        if each.at != flagged.at
        and each.dismissal is None
        and each.anomaly["kind"] not in _GATHERED
        and each.anomaly["window"]["from"] < window["to"]
        and window["from"] < each.anomaly["window"]["to"]
    ]
    return sorted(found, key=lambda each: -each.anomaly["anomaly_score"])[:_BESIDE]


def view(
    location: Location,
    found: Found,
    history: Sequence[Dismissal],
    others: Sequence[Flagged],
    *,
    may_dismiss: bool,
    as_of: datetime,
) -> Page:
    """The page of an anomaly.

    Args:
        location: Where it is.
        found: The anomaly.
        history: Every act on it, from the first on.
        others: The anomalies of the same time.
        may_dismiss: Whether the user may dismiss and reopen it.
        as_of: When the ledger was read.
    """
    flagged, anomaly = found.flagged, found.flagged.anomaly
    policy_id, dismissal = flagged.policy_id, flagged.dismissal
    context = {
        "anomaly": anomaly,
        "kind": KINDS[anomaly["kind"]],
        "tone": TONES[anomaly["severity"]],
        "score": f"{anomaly['anomaly_score']:.2f}",
        "means": severity_means(anomaly["severity"]),
        "days": days(anomaly),
        "effect": effect(anomaly, location.value),
        "looked_at": _looked_at(location),
        "policy": policy_id,
        "policy_url": links.policy(location, policy_id),
        "list_url": location.to("anomalies", policy=policy_id).url,
        "open": flagged.open,
        "improved": improved(anomaly),
        "open_days": OPEN_DAYS,
        "dismissal": dismissal,
        "grown": None if dismissal is None else grown(dismissal.anomaly.severity, dismissal.anomaly.score, anomaly),
        "others": []
        if anomaly["kind"] in _GATHERED
        else [
            {"summary": each.anomaly["summary"], "url": links.anomaly(location, policy_id, each.anomaly["anomaly_id"])}
            for each in others
        ],
        "reasons": reasons(anomaly),
        "evidence": evidence(anomaly),
        "numbers": _numbers(location, anomaly),
        "drawn": replace(found.chart, finding=surroundings(anomaly)),
        "beside": _beside(found),
        "decisions": _decisions(location, found),
        "decisions_finding": _first(found),
        "all_url": location.to("decisions", policy=policy_id, anomaly=anomaly["anomaly_id"]).url,
        "steps": [{"what": step["what"], "url": page_of(location, step["href"])} for step in anomaly["look_at_next"]],
        "back": _back(location, policy_id, anomaly, found.back),
        "notebook": links.download("notebook", location, **_of_notebook(location, policy_id, anomaly)),
        "history": [_act(act) for act in history],
        "may_dismiss": may_dismiss,
        "as_of": as_of,
    }
    return Page(location, finding(anomaly), render("anomaly.html", context), forms=_forms(flagged, may_dismiss))


def page_of(location: Location, href: str | None) -> str | None:
    """The page that shows what a path of the service's API answers; None where there is none."""
    if href is None:
        return None
    split = urlsplit(href)
    match [unquote(part) for part in split.path.split("/")]:
        case ["", "api", "decision", decision_id, "packet"]:
            return _held(location.to("decision", id=decision_id))
        case ["", "api", "decision", "policies", policy_id, report] if report in _REPORTS:
            return _held(location.to(_REPORTS[report], policy=policy_id))
        case ["", "api", "decisions"]:
            conditions = dict(parse_qsl(split.query))
            if conditions.keys() <= _SEARCHED.keys():
                made = {_SEARCHED[name]: value for name, value in conditions.items()}
                return _held(location.to("decisions", **made))
    return None


def chart_link(location: Location, anomaly: AnomalyDocument, row: Mapping[str, Any]) -> str | None:
    """What a mark of its chart leads to: the decisions of a week or a day, or one decision."""
    if "decision_id" in row:
        return links.decision(location, row["decision_id"])
    here = location.to("decisions")
    if "week" in row:
        here = here.change(**links.week(row["week"]))
        if "of" not in row:
            return _held(here)
        return _held(here.change(**{row["of"]: row["value"]}))
    if anomaly["kind"] == "lifecycle_break":
        here = here.change(anomaly=anomaly["anomaly_id"])
    start = row["start"].date()
    if row["unit"] == "week":
        return here.change(**links.week(start)).url
    return here.change(since=start.isoformat(), until=start.isoformat()).url


def _forms(flagged: Flagged, may_dismiss: bool) -> tuple[Form, ...]:
    if not may_dismiss:
        return ()
    label = f"Why? (1 to {NOTE_LENGTH:,} characters, saved with your name)"
    if flagged.dismissal is not None:
        return (Form("reopen", label, "Reopen this anomaly", flagged.anomaly["anomaly_id"]),)
    return (Form("dismiss", label, "Dismiss this anomaly", flagged.anomaly["anomaly_id"]),)


def _act(act: Dismissal) -> dict[str, Any]:
    return {
        "did": "Dismissed" if act.dismissed else "Reopened",
        "by": act.acted_by,
        "at": act.acted_at,
        "note": act.note,
        "then": f"{phrase(act.anomaly.severity)} severity, score {act.anomaly.score:.2f}",
    }


def _of_notebook(location: Location, policy_id: str, anomaly: AnomalyDocument) -> dict[str, str]:
    asked = {name: getattr(location, name) for name in ("version", "verdict", "clock")}
    chosen = {name: value for name, value in asked.items() if value is not None}
    return {"policy": policy_id, "anomaly": anomaly["anomaly_id"], **chosen}


def _looked_at(location: Location) -> str | None:
    """In which decisions it was looked for, in words; None where in all of the policy, by the dates of the record."""
    parts = [] if location.version is None else [f"by version {cut(location.version)}"]
    parts += [] if location.verdict is None else [f"with the verdict {location.verdict}"]
    dated = ", dated as they happened" if location.clock is not None else ""
    if not parts:
        return "all decisions of the policy, dated as they happened" if dated else None
    return f"only decisions {joined(parts)}{dated}"


def _back(
    location: Location, policy_id: str, anomaly: AnomalyDocument, back: GoingBack | None
) -> dict[str, Any] | None:
    """What going back would have changed, where each of the new versions is compared with the one before it, and the
    dry run of going back over the whole past.
    """
    if back is None:
        return None
    compared = [(cut(each), _held(location.to("policy", policy=policy_id, version=each))) for each in back.versions]
    dry_run = links.download("dry-run", location, **_of_notebook(location, policy_id, anomaly))
    return {"said": " ".join(back.sentences()), "compared": compared, "dry_run": dry_run, "before": cut(back.before)}


def _first(found: Found) -> str:
    listed = found.decisions.height
    if found.flagged.anomaly["kind"] == "metric_outlier" and listed < found.flagged.anomaly["decisions"]:
        return f"The {listed:,} farthest of {counted(found.flagged.anomaly['decisions'], 'decision')} that show it"
    if listed < found.whole:
        return f"{shown(found.flagged.anomaly, found.whole)}; these are the latest {listed:,}"
    return shown(found.flagged.anomaly, found.whole)


def _decisions(location: Location, found: Found) -> list[dict[str, Any]]:
    return [
        {**row, "url": links.decision(location, row["decision_id"])} for row in found.decisions.iter_rows(named=True)
    ]


def _numbers(location: Location, anomaly: AnomalyDocument) -> Table:
    numbers = anomaly["numbers"]
    match anomaly["kind"]:
        case "lifecycle_break":
            rows = [(f"{numbers['count']:,}", f"{numbers['of']:,}", percent(numbers["share"]))]
            return table("Numbers", "Decisions of this policy.", ("#With it", "#Cases in scope", "#Share"), rows)
        case "volume":
            return _volume(numbers)
        case "metric_outlier":
            return _outliers(location, anomaly)
        case "metric_shift":
            return _levels(numbers["levels"])
        case "fact_drift":
            return _facts(numbers["facts"])
    return _changes(numbers["changes"])


def _changes(changes: Sequence[Mapping[str, Any]]) -> Table:
    columns = (
        "Share of",
        "#Weeks before",
        "#Window",
        "#Difference (points)",
        "#95% interval (points)",
        "#Effect",
        "#Chance",
        "#Certain up to",
    )
    aged = " Outcomes are compared at equal age." if changes[0]["of"] == "outcome" else ""
    caption = (
        f"Points are percentage points. Effect is Cohen's h. Chance is the p-value of Fisher's exact test; a change is "
        f"certain if it is at most the value in the last column.{aged}"
    )
    return table("Numbers of the changes", caption, columns, map(tuple, map(_change, changes)))


def _change(change: Mapping[str, Any]) -> Iterator[str]:
    yield f"{change['of']} {change['value']}"
    for when in ("before", "within"):
        yield f"{percent(change[when]['rate'])} of {change[when]['of']:,}"
    difference = change["difference"]
    yield points(difference["rate"])
    yield f"{points(difference['low'])} to {points(difference['high'])}"
    yield f"{change['cohens_h']:+.2f}"
    yield f"{change['p_value']:.1e}"
    yield f"{change['required_p']:.1e}"


def _levels(levels: Sequence[Mapping[str, Any]]) -> Table:
    columns = (
        "What",
        "#Median before",
        "#Median in the window",
        "#Middle half before",
        "#Middle half in the window",
        "#Effect",
        "#Chance",
        "#Certain up to",
    )
    whom = " Before are the other versions, in the same weeks." if levels[0]["version"] is not None else ""
    tails = " Of tails, they are Cohen's h and Fisher's test." if any("tail" in level for level in levels) else ""
    caption = f"Effect is Cliff's delta. Chance is the p-value of a test by ranks.{tails}{whom}"
    return table("Numbers of the metric", caption, columns, map(tuple, map(_level, levels)))


def _level(level: Mapping[str, Any]) -> Iterator[str]:
    yield phrase(level["of"])
    for when in ("before", "within"):
        yield number(level[when]["median"])
    for when in ("before", "within"):
        yield f"{number(level[when]['lower_quartile'])} to {number(level[when]['upper_quartile'])}"
    yield f"{level['tail']['cohens_h'] if 'tail' in level else level['cliffs_delta']:+.2f}"
    yield f"{level['p_value']:.1e}"
    yield f"{level['required_p']:.1e}"


def _facts(facts: Sequence[Mapping[str, Any]]) -> Table:
    caption = "Population stability index: from 0.1 some change, from 0.25 a large change."
    rows = [(described(of["fact"]), f"{of['stability_index']:.2f}", f"{of['p_value']:.1e}") for of in facts]
    return table("Facts that drifted", caption, ("Fact", "#Stability index", "#Chance (p-value)"), rows)


def _volume(numbers: Mapping[str, Any]) -> Table:
    grain = numbers["grain"]
    columns = (
        f"#{phrase(grain)}s",
        "#Decisions",
        f"#Usual for such {grain}s",
        "#Times",
        "#Distance",
        "#Threshold",
    )
    row = (
        number(numbers["cells"]),
        number(numbers["decisions"]),
        number(numbers["usual"]),
        f"{numbers['times']:.1f}",
        f"{numbers['modified_z']:.1f}",
        f"{numbers['required_z']:.1f}",
    )
    caption = "Usual is the median of the same kind before. Distances are in robust standard deviations."
    return table("Numbers of the volume", caption, columns, [row])


def _outliers(location: Location, anomaly: AnomalyDocument) -> Table:
    numbers = anomaly["numbers"]
    unit = described(numbers["metric"])
    rows = [
        (
            Cell(id_, links.decision(location, id_)),
            number(far["value"]),
            number(far["usual"]),
            f"{far['modified_z']:,.3g}",
        )
        for id_, far in zip(anomaly["decision_ids"], numbers["farthest"], strict=False)
    ]
    by = "as ratios" if numbers["scale"] == "ratio" else "as differences"
    caption = (
        f"The values farthest from the median of their kind, measured {by}. The median of all is "
        f"{number(numbers['median'])}; a value stands out from {numbers['required_z']:.1f} robust standard deviations."
    )
    return table("Farthest values", caption, ("Decision", f"#{unit}", "#Usual", "#Distance"), rows)


def _beside(found: Found) -> Table | None:
    """The numbers of its chart, where `_numbers` has them not."""
    anomaly, beside = found.flagged.anomaly, found.beside
    if anomaly["kind"] == "fact_drift":
        fact = anomaly["numbers"]["facts"][0]
        rows = [(of["holds"], f"{of['before']:,}", f"{of['within']:,}") for of in fact["bins"]]
        columns = (described(fact["fact"]), "#Decisions before", "#Decisions in the window")
        return table("Numbers of the chart", "Decisions by value of the fact.", columns, rows)
    if "median" in beside.columns:
        levels = [
            (day(week), f"{values:,}", number(low), number(median), number(high))
            for week, values, low, median, high in beside.select("week", "values", "low", "median", "high").iter_rows()
        ]
        heads = ("Week from", "#Values", "#Lower quartile", "#Median", "#Upper quartile")
        return table("Numbers of the chart", "By week of the decision, from Monday, UTC.", heads, levels)
    if "week" in beside.columns:
        shares = [
            (day(week), f"{of} {value}", percent(rate), f"{count:,}", f"{whole:,}")
            for week, of, value, count, whole, rate in beside.select(
                "week", "of", "value", "count", "whole", "rate"
            ).iter_rows()
        ]
        heads = ("Week from", "Share of", "#Share", "#Count", "#Of all")
        return table("Numbers of the chart", "By week of the decision, from Monday, UTC.", heads, shares)
    if "start" in beside.columns:
        counts = [(day(start), f"{decisions:,}") for start, _, decisions in beside.iter_rows()]
        unit = "Week from" if (beside["unit"] == "week").all() else "Day"
        return table("Numbers of the chart", "By date of the decision, UTC.", (unit, "#Decisions"), counts)
    return None


def _held(location: Location) -> str | None:
    """The address of a page; None where no address can hold it, such as a reason code of a thousand characters."""
    try:
        Location.read(location.url)
    except LocationInvalid:
        return None
    return location.url
