"""One policy: how well it does, by version and by week, what it decides and why, and what its outcomes measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from gate.policy.confidence import HIGH, MEDIUM
from gate.policy.effectiveness import GRANTED, LET_THROUGH, Standing
from gate.policy.questions import VERDICTS
from gate.records.changes import RouteEntry
from workbench.charts import counts, metrics, weekly
from workbench.columns import ADVISORY, NO_VERDICT
from workbench.dashboard.store.ledger import VersionChange
from workbench.dashboard.views import links, offered
from workbench.dashboard.views.decided.changes import changes
from workbench.dashboard.views.figure import Canvas, Figure
from workbench.dashboard.views.flagged.anomalies import Flagged, shown
from workbench.dashboard.views.html import render
from workbench.dashboard.views.imported.source import charted, source_of
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.migrations import results
from workbench.dashboard.views.page import Page
from workbench.dashboard.views.shares import mix
from workbench.engines import findings
from workbench.engines.activity import Activity
from workbench.engines.effectiveness import EffectivenessReport
from workbench.engines.findings import FEW
from workbench.engines.listing import Names
from workbench.engines.rendering import cut, listed
from workbench.engines.wording import counted, day, decided_by, described, joined, phrase, stated, whole_percent
from workbench.lake.reader import ImportedSet

MOST_METRICS: Final = 6
"""How many metrics are charted, those of the most decisions; the others are in a table."""

MOST_FLAGGED: Final = 3
"""How many anomalies the page names, the strongest."""

MOST_ROWS: Final = 120
"""How many rows a table of weeks has, the latest of them."""

_COMPARING: Final = ("Versions are ", "By ", "The rarer texts")
"""What the notes of a report on how versions are compared begin with."""

_STATUSES: Final = ("succeeded", "partial", "failed", "reverted")
_GRANTED: Final = "Granted, not executed yet"
"""What became of an action whose review was granted: once it is executed, it counts as let through."""

_ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "collect_outcomes": f"Report more outcomes: an assessment needs at least {FEW} cases.",
        "review_version": "Find out what changed in the version that does worse than the others.",
        "report_outcomes": "Report the missing outcomes: fewer than half of the approved decisions have a final one.",
        "healthy": f"Nothing to do: the interval of the success rate lies above {whole_percent(HIGH)}.",
        "monitor_outcomes": f"Check again when there are more outcomes: success may be below {whole_percent(HIGH)}.",
        "review_policy": f"Find the weeks and rules with bad results: success may be below {whole_percent(MEDIUM)}.",
    }
)


@dataclass(frozen=True, slots=True)
class Found:
    """The results for a policy.

    Attributes:
        names: The names to choose from.
        compared: How well each version does, of the verdict and the period that were asked for.
        asked: The same of the version that was asked for.
        done: The activity of that version over time.
        held: How many of its decisions are held.
        flagged: The anomalies of all of its versions.
        change: The changes of the requested version; None if no version was requested.
        routes: The policy's routes, in the order of the chain.
        histories: The names of the scope's imported histories.
        imported: The history whose cases are shown; None for the chain's decisions.
    """

    names: Names
    compared: EffectivenessReport
    asked: EffectivenessReport
    done: Activity
    held: int
    flagged: Sequence[Flagged]
    change: VersionChange | None
    routes: Sequence[RouteEntry]
    histories: Sequence[str] = ()
    imported: ImportedSet | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """The charts of the page; None where there is nothing to draw.

    Attributes:
        weekly: Success by week and version.
        verdicts: Verdicts by week; None where no case has one.
        rules: What decided.
        reasons: The reasons.
        latency: How long first outcomes take.
        metrics: What outcomes measured, by name.
    """

    weekly: Figure | None
    verdicts: Figure | None
    rules: Figure
    reasons: Figure
    latency: Figure | None
    metrics: Mapping[str, Figure]


def view(location: Location, found: Found, figures: Figures, *, now: datetime) -> Page:
    """The page of a policy that made decisions.

    Args:
        location: Where it is, with its policy.
        found: The results.
        figures: The charts.
        now: The moment.
    """
    done = found.done
    rest = done.metrics.filter(~pl.col("name").is_in(list(figures.metrics)))
    context = {
        "source": source_of(location, found.imported),
        "shown": _shown(location),
        "all_url": _widest(location),
        "whatif_url": location.to("whatif").url,
        "summary": _summary(location, found),
        "flagged": _flagged(location, found),
        "changes": None if found.change is None else changes(found.change),
        "figures": figures,
        "metrics": [
            {
                "figure": each,
                "rows": _rows_of(location, found, done.metrics.filter(pl.col("name") == name)),
                "weeks": _metric_weeks(found, name),
            }
            for name, each in figures.metrics.items()
        ],
        "more_metrics": _rows_of(location, found, rest),
        "weeks": _weeks(location, found.asked),
        "versions": _versions(location, found.compared),
        "versions_finding": findings.versions(found.compared.body),
        "comparison": _comparison(found.compared.body),
        "by_verdict": _by_verdict(location, found.compared.body),
        "dispositions": _dispositions(found.asked.body),
        "versions_left_out": found.compared.body["coverage"]["versions"] - len(found.compared.body["versions"]),
        "no_verdict": _no_verdict(found),
        "verdict_weeks": _verdict_weeks(location, done),
        "rules": [_hit(location, row, "rule") for row in _hitting(location, done).iter_rows(named=True)],
        "never": _never(location, done),
        "reasons": [_hit(location, row, "reason_code") for row in done.reasons.iter_rows(named=True)],
        # The file of an imported case need not have one.
        "reasons_named": not done.reasons["reason_code"].is_null().all(),
        "latency": _latency(location, done),
        "left_out": _left_out(done),
        "most_rows": MOST_ROWS,
        "few": FEW,
    }
    return Page(
        location,
        _title(location, found),
        render("policy.html", context),
        _filters(location, found.names, found.histories),
        links=offered.periods(location, now),
    )


def _no_verdict(found: Found) -> str:
    """Why there is no verdict to show, as a sentence."""
    named = found.imported is None or found.imported.has_verdicts
    return "None of these cases has a verdict." if named else "The map of these cases has no verdict."


def figures(location: Location, found: Found, canvas: Canvas) -> Figures:
    """The charts of the page; each is drawn while the next is composed.

    Args:
        location: Where the page is, with its policy.
        found: The results.
        canvas: The canvas of the charts.
    """
    done = charted(found.done)

    def of_week(row: Mapping[str, Any]) -> str:
        return links.decisions(location, **links.week_of(location, row["week"]))

    def of_week_and_verdict(row: Mapping[str, Any]) -> str:
        return links.decisions(location, verdict=row["verdict"], **links.week_of(location, row["week"]))

    def of_rule(row: Mapping[str, Any]) -> str:
        return links.decisions(location, rule=row["rule"], verdict=row["verdict"])

    def of_reason(row: Mapping[str, Any]) -> str:
        return links.decisions(location, reason=row["reason_code"], verdict=row["verdict"])

    def of_version(row: Mapping[str, Any]) -> str:
        return links.decisions(location, version=row["policy_version"])

    hitting, begin = _hitting(location, done), canvas.begin
    begun = {}
    # What takes longest first.
    if (drawing := results.begin(location, found.asked, found.routes, canvas)) is not None:
        begun["weekly"] = drawing
    begun |= {
        "rules": begin(counts.rules(hitting, findings.rules(hitting), (), link=of_rule)),
        "reasons": begin(counts.reasons(done.reasons, findings.reasons(done.reasons), (), link=of_reason)),
    }
    if done.weekly["decisions"].sum():
        chart = weekly.verdicts(done.weekly, findings.verdicts(done.weekly), (), link=of_week_and_verdict)
        begun["verdicts"] = begin(chart)
    if done.with_outcome:
        begun["latency"] = begin(weekly.latency(done.latency, findings.latency(done.latency), (), link=of_week))
    measured = {
        name: begin(metrics.by_version(done.metrics, name, findings.metric(done.metrics, name), (), link=of_version))
        for name in _charted(done)
    }
    drawn = {name: wait() for name, wait in begun.items()}
    return Figures(
        weekly=drawn.get("weekly"),
        verdicts=drawn.get("verdicts"),
        rules=drawn["rules"],
        reasons=drawn["reasons"],
        latency=drawn.get("latency"),
        metrics={name: wait() for name, wait in measured.items()},
    )


def empty(location: Location, names: Names, histories: Sequence[str] = (), *, known: bool, now: datetime) -> Page:
    """The page where no decision is left to look at.

    Args:
        location: Where it is.
        names: The names to choose from.
        histories: The names of the scope's imported histories.
        known: Whether the policy decided anything at all.
        now: The moment.
    """
    context = {
        "source": source_of(location, None),
        "known": known,
        "swapped": offered.swapped(location),
        "policy": location.policy,
        "scope": location.scope,
        "overview": location.to("overview").url,
        "advisory_url": location.to("decisions", rule=ADVISORY).url if location.policy in names.advisory else None,
        "shown": _shown(location),
        "wider": _wider(location),
    }
    title = f"No decisions by {cut(location.policy or '')} match these filters"
    if not known:
        title = f"No decisions by {cut(location.policy)}" if location.policy else "No policy has made a decision yet"
    periods = offered.periods(location, now) if known else {}
    filters = _filters(location, names, histories) if names.policies or histories else ()
    return Page(location, title, render("policy_empty.html", context), filters, links=periods)


def _title(location: Location, found: Found) -> str:
    policy_id, body = location.policy or "", found.asked.body
    if not Standing(**body["outcomes"]).terminal:
        return findings.volume(policy_id, found.done.weekly)
    if location.version is not None:
        own = found.compared.parts("version").get(location.version, Standing())
        return findings.version(found.compared.body, location.version, own)
    finding = found.asked.finding()
    return f"{cut(policy_id)}: {finding}" if body["versions_below_others"] else finding


def _filters(location: Location, names: Names, histories: Sequence[str]) -> tuple[Any, ...]:
    versions = names.versions.get(location.policy or "", ())
    return (
        offered.policies(names.policies, all_=None),
        offered.versions(versions),
        offered.verdicts(),
        *offered.period(),
        *offered.sources(location, histories),
    )


def _shown(location: Location) -> str | None:
    """Which decisions are shown, in words; None where it is all of the policy."""
    parts = [] if location.version is None else [f"by version {cut(location.version)}"]
    parts += [] if location.verdict is None else [f"with the verdict {location.verdict}"]
    since = None if location.since is None else f"made from {_day(location.since)}{'' if location.until else ' on'}"
    until = None if location.until is None else f"{'' if since else 'made '}until {_day(location.until)}"
    period = " ".join(part for part in (since, until) if part)
    parts += [period] if period else []
    return joined(parts) if parts else None


def _day(value: str) -> str:
    """A day, or a moment, as the filters of the period have them."""
    return day(date.fromisoformat(value)) if len(value) == len("2026-07-13") else stated(value)


def _widest(location: Location) -> str:
    return location.change(version=None, verdict=None, since=None, until=None).url


def _wider(location: Location) -> dict[str, str]:
    """Links that each take away one filter, or all of them: URL by label."""
    found = {
        label: location.change(**dict.fromkeys(names)).url
        for label, names in (
            ("all versions", ("version",)),
            ("all verdicts", ("verdict",)),
            ("all time", ("since", "until")),
        )
        if any(getattr(location, name) is not None for name in names)
    }
    return found if len(found) == 1 else {**found, "everything": _widest(location)}


def _summary(location: Location, found: Found) -> dict[str, Any]:
    body, here = found.asked.body, location.to("decisions")
    through: Mapping[str, Any] | None = next((of for of in _dispositions(body) if of["name"] == LET_THROUGH), None)
    outcomes, verdicts = Standing(**body["outcomes"]), {of["verdict"]: of["decisions"] for of in body["verdicts"]}
    recommendation = body["recommendation"]
    return {
        "in_chain": found.imported is None,
        "decisions": outcomes.decisions,
        "decisions_url": here.url,
        "first": body["coverage"]["from"],
        "last": body["coverage"]["to"],
        "mix": mix(
            {verdict: verdicts.get(verdict, 0) for verdict in VERDICTS},
            {verdict: here.change(verdict=verdict).url for verdict in VERDICTS},
        ),
        "through": through,
        "success": body["success_rate"],
        "terminal": outcomes.terminal,
        "outcomes": [
            {"status": status, "count": body["outcomes"][status], "url": here.change(outcome=status).url}
            for status in _STATUSES
            if body["outcomes"][status]
        ],
        "coverage": body["terminal_coverage"],
        "unreported": outcomes.unreported,
        "unreported_url": here.change(outcome="unreported").url,
        "held": found.held,
        "held_url": here.change(state="held").url,
        "recommendation": recommendation,
        "advice": _ADVICE[recommendation],
        "review_url": _review_url(location, found) if recommendation == "review_version" else None,
        "needed": recommendation != "healthy",
    }


def _flagged(location: Location, looked: Found) -> dict[str, Any]:
    """The anomalies that may account for what the page shows: those of high severity, and open ones, of the period in
    which its decisions were made.
    """
    # Anomalies are those of all versions and verdicts, and their reports too.
    coverage, there = looked.asked.body["coverage"], location.change(version=None, verdict=None)
    made = there.change(since=coverage["from"], until=coverage["to"])
    found = [each for each in shown(made, looked.flagged) if each.anomaly["severity"] == "high" or _alarming(each)]
    return {
        "rows": [
            {
                "told": findings.headline(each.policy_id, each.anomaly),
                "url": links.anomaly(there, each.policy_id, each.anomaly["anomaly_id"]),
            }
            for each in found[:MOST_FLAGGED]
        ],
        "more": max(0, len(found) - MOST_FLAGGED),
        "all_url": there.to("anomalies").url,
    }


def _alarming(of: Flagged) -> bool:
    return of.open and of.anomaly["severity"] == "medium"


def _review_url(location: Location, found: Found) -> str | None:
    """The page of the version that does worse than the others; of several, of the one with the most decisions."""
    below = [of for of in found.compared.body["versions"] if of["below_others"]]
    most = max(below, key=lambda of: of["decisions"], default=None)
    return None if most is None else location.change(version=most["policy_version"]).url


def _weeks(location: Location, report: EffectivenessReport) -> dict[str, Any]:
    rows = report.weekly.sort("week", "policy_version", descending=[True, False])
    return {
        "more": max(0, rows.height - MOST_ROWS),
        "rows": [
            {
                "week": row["week"],
                "version": row["policy_version"],
                "success": (row["success_rate"], row["low"], row["high"]),
                "terminal": Standing(*(row[status] for status in Standing._fields)).terminal,
                "decisions": row["decisions"],
                "url": links.decisions(location, version=row["policy_version"], **links.week_of(location, row["week"])),
            }
            for row in rows.head(MOST_ROWS).iter_rows(named=True)
        ],
    }


def _versions(location: Location, report: EffectivenessReport) -> list[dict[str, Any]]:
    return [
        {
            "version": of["policy_version"],
            "url": location.change(version=of["policy_version"]).url,
            "here": of["policy_version"] == location.version,
            "below": of["below_others"],
            "worse_by": _worse_by(of["compared"] or {}),
            "decisions": of["decisions"],
            "decisions_url": links.decisions(location, version=of["policy_version"]),
            "success": tuple(of["let_through"]["success_rate"].values()),
            "terminal": Standing(**of["let_through"]["outcomes"]).terminal,
            "like": None if of["compared"] is None else of["compared"]["standardized"],
            "coverage": of["terminal_coverage"],
            "first": of["first"],
            "last": of["last"],
        }
        for of in report.body["versions"]
    ]


def _comparison(body: Mapping[str, Any]) -> dict[str, Any]:
    """On what footing versions are compared, and what is said of it."""
    comparison = body["comparison"]
    facts = joined([cut(described(fact)) for fact in comparison["facts"]]) if comparison["facts"] else None
    several = body["coverage"]["versions"] > 1
    return {
        "facts": facts,
        "decisions": comparison["decisions"],
        "sentences": comparison["sentences"],
        "notes": [note for note in body["notes"] if note.startswith(_COMPARING)] if several else [],
    }


def _worse_by(compared: Mapping[str, Any]) -> str:
    """Among which cases a version does worse than the others, in words; empty where it does not."""
    by = ["among like cases"] if compared.get("like_below_others") else []
    by += ["among cases that the others mostly stop"] if compared.get("admits_worse") else []
    return joined(by) if by else ""


def _by_verdict(location: Location, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The versions and verdicts."""
    return [
        {
            "version": of["policy_version"],
            "verdict": of["verdict"],
            "decisions": of["decisions"],
            "url": None
            if of["verdict"] == NO_VERDICT
            else links.decisions(location, version=of["policy_version"], verdict=of["verdict"]),
            "success": tuple(of["success_rate"].values()),
            "terminal": Standing(**of["outcomes"]).terminal,
            "failures": of["failure_rate"],
        }
        for of in body["versions_by_verdict"][:MOST_ROWS]
    ]


def _dispositions(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What became of the actions."""
    return [
        {
            "name": of["disposition"],
            "words": _GRANTED if of["disposition"] == GRANTED else phrase(of["disposition"]),
            "decisions": of["decisions"],
            "success": tuple(of["success_rate"].values()),
            "terminal": Standing(**of["outcomes"]).terminal,
            "coverage": of["terminal_coverage"],
        }
        for of in body["dispositions"]
    ]


def _metric_weeks(found: Found, name: str) -> dict[str, Any]:
    """The medians of a metric by week, the latest first."""
    rows = [of for of in reversed(found.asked.body["metrics_by_week"]) if of["name"] == name]
    return {
        "more": max(0, len(rows) - MOST_ROWS),
        "rows": [{**of, "week": date.fromisoformat(of["week"])} for of in rows[:MOST_ROWS]],
    }


def _verdict_weeks(location: Location, done: Activity) -> dict[str, Any]:
    by_week = done.weekly.group_by("week", "verdict").agg(pl.col("decisions").sum())
    rows: dict[date, dict[str, int]] = {}
    for week, verdict, decisions in by_week.sort("week", descending=True).iter_rows():
        rows.setdefault(week, {})[verdict] = decisions
    return {
        "more": max(0, len(rows) - MOST_ROWS),
        "rows": [
            {
                "week": week,
                "cells": [
                    {
                        "verdict": verdict,
                        "count": of.get(verdict, 0),
                        "url": links.decisions(location, verdict=verdict, **links.week_of(location, week)),
                    }
                    for verdict in VERDICTS
                ],
            }
            for week, of in list(rows.items())[:MOST_ROWS]
        ],
    }


def _hit(location: Location, row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A row of the rules or of the reasons."""
    filters = {"rule": row["rule"]} if name == "rule" else {"reason": row["reason_code"]}
    return {
        "name": decided_by(row["rule"]) if name == "rule" else row["reason_code"],
        "verdict": row["verdict"],
        "decisions": row["decisions"],
        "url": links.decisions(location, verdict=row["verdict"], **filters) if row["decisions"] else None,
        "success": (row["success_rate"], row["low"], row["high"]),
        "terminal": row["terminal"],
        "last": row.get("last_hit_at"),
    }


def _hitting(location: Location, done: Activity) -> pl.DataFrame:
    """The rules; without those that never hit where filters may have left out what they decided."""
    return done.rules if _whole(location) else done.rules.filter(pl.col("decisions") > 0)


def _whole(location: Location) -> bool:
    return (location.verdict, location.since, location.until) == (None, None, None)


def _never(location: Location, done: Activity) -> str | None:
    """The rules that never hit, in words."""
    names = [decided_by(rule) for rule in done.rules.filter(pl.col("decisions") == 0)["rule"]]
    if not names:
        return None
    rules = f"{counted(len(names), 'rule')} {'never hit' if _whole(location) else 'made none of these decisions'}"
    advice = " Remove the rules that you do not need, or test that they can hit." if _whole(location) else ""
    return f"{rules}: {listed(names)}.{advice}"


def _latency(location: Location, done: Activity) -> dict[str, Any]:
    rows = done.latency.sort("week", descending=True)
    return {
        "more": max(0, rows.height - MOST_ROWS),
        "rows": [
            {**row, "url": links.decisions(location, **links.week_of(location, row["week"]))}
            for row in rows.head(MOST_ROWS).iter_rows(named=True)
        ],
    }


def _charted(done: Activity) -> Sequence[str]:
    return done.metrics["name"].unique(maintain_order=True)[:MOST_METRICS].to_list()


def _rows_of(location: Location, found: Found, rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Metrics by version, each median with its interval where there are values enough for one."""
    ends = {
        (of["name"], of["policy_version"]): (of["low"], of["high"]) for of in found.compared.body["metrics_by_version"]
    }
    return [
        {
            **row,
            **dict(zip(("low", "high"), ends.get((row["name"], row["policy_version"]), (None, None)), strict=True)),
            "metric": described(row["name"]),
            "version": row["policy_version"],
            "url": links.decisions(location, version=row["policy_version"]),
        }
        for row in rows.iter_rows(named=True)
    ]


def _left_out(done: Activity) -> list[str]:
    """What a policy with very many names has besides, in sentences."""
    told = (
        (done.rules_left_out, "row", "of the rules"),
        (done.reasons_left_out, "row", "of the reasons"),
        (done.metrics_left_out, "metric", "with fewer values"),
        (done.versions_left_out, "version", "with fewer decisions"),
    )
    return [f"{counted(number, noun)} {of}" for number, noun, of in told if number]
