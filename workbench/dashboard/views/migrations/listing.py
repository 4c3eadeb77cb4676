"""The migrations of a scope, and where its rulebook ids lead: by which routes, since when, and on whose word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from gate.ids import parse_timestamp
from gate.migration.standing import Standing
from gate.records.changes import RouteEntry
from workbench.dashboard.views.figure import Figure
from workbench.dashboard.views.html import ago, render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Choice, Page
from workbench.engines.wording import counted

OPEN = ("proposed", "approved")
"""The states in which something is still to be decided or done."""

MOST_CHARTS: Final = 3
"""How many policies are charted where all are shown."""

TONES = {"proposed": "few", "approved": "good", "applied": "good", "rejected": "bad", "rolled_back": "bad"}
"""How states look."""


def listing(
    location: Location,
    found: Sequence[Standing],
    routes: Mapping[str, Sequence[RouteEntry]],
    figures: Mapping[tuple[str, str], Mapping[str, Any]],
    charts: Mapping[str, Figure],
    *,
    now: datetime,
) -> Page:
    """The migrations of a scope, the latest first, and the history of its routes.

    Args:
        location: Where it is; its policy narrows both.
        found: The migrations.
        routes: The routes by rulebook id, in the order of the chain.
        figures: How a version did, by policy and version: {decisions, success}.
        charts: The chart of a policy's results with its routes, where there is one, by rulebook id.
        now: The current moment.
    """
    wanted = [each for each in found if location.policy in (None, *_ids(each))]
    rows = [
        {
            "id": each.migration_id,
            "url": Location("migration", scope=location.scope, id=each.migration_id).url,
            "state": each.state.replace("_", " "),
            "tone": TONES.get(each.state, ""),
            "candidates": [f"{of['rulebook_id']} {of['version']}" for of in each.proposed["candidates"]],
            "author": each.author,
            "ago": ago(parse_timestamp(each.proposed["recorded_at"]), now),
            "decided": None if each.decided is None else each.decided["actor"]["id"],
        }
        for each in wanted
    ]
    timelines = [
        {
            "rulebook": rulebook_id,
            "url": location.change(policy=rulebook_id).url,
            "chart": charts.get(rulebook_id),
            "steps": _steps(location, rulebook_id, of, figures),
        }
        for rulebook_id, of in sorted(routes.items())
        if location.policy in (None, rulebook_id)
    ]
    waiting = sum(each.state in OPEN for each in wanted)
    title = f"{counted(waiting, 'open migration')}" if waiting else "No migration is waiting"
    names = sorted({*routes, *(name for each in found for name in _ids(each))})
    filters = (Choice("policy", "Policy", {"": "all", **{name: name for name in names}}),)
    return Page(location, title, render("migrations.html", {"rows": rows, "timelines": timelines}), filters)


def _ids(of: Standing) -> list[str]:
    return [each["rulebook_id"] for each in of.proposed["candidates"]]


def _steps(
    location: Location,
    rulebook_id: str,
    routes: Sequence[RouteEntry],
    figures: Mapping[tuple[str, str], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The routes of a rulebook id, the latest first, each with how its version did while it was in force."""
    steps = []
    for at, route in enumerate(routes):
        until = routes[at + 1]["recorded_at"] if at + 1 < len(routes) else None
        version = route["to"]["version"]
        steps.append(
            {
                "since": route["recorded_at"],
                "until": until,
                "version": version,
                "before": None if route["from"] is None else route["from"]["version"],
                "back": route["cause"] == "rollback",
                "by": route["actor"]["id"],
                "note": route["note"],
                "migration": route["migration_id"],
                "url": Location("migration", scope=location.scope, id=route["migration_id"]).url,
                "figures": figures.get((rulebook_id, version)),
                "policy_url": Location("policy", scope=location.scope, policy=rulebook_id, version=version).url,
            }
        )
    return steps[::-1]
