"""The targets of marks, rows, and names: pages of this dashboard, with filters that show the selected decisions."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final
from urllib.parse import urlencode

from workbench.dashboard.views.location import LONGEST, Location

_WEEK: Final = timedelta(days=6)


def decisions(location: Location, **filters: str | None) -> str:
    """The decisions behind a mark: those of its page, narrowed further."""
    return location.to("decisions", **filters).url


def decision(location: Location, decision_id: str) -> str:
    """One decision's story."""
    return location.to("decision", id=decision_id).url


def case(location: Location, decision_id: str) -> str:
    """The page of a decision; for an imported case, which has none, the list of its history."""
    if location.history is None:
        return decision(location, decision_id)
    return Location("decisions", scope=location.scope, history=location.history, ref=decision_id).url


def policy(location: Location, policy_id: str) -> str:
    """A policy's page."""
    return location.to("policy", policy=policy_id).url


def anomaly(location: Location, policy_id: str, anomaly_id: str) -> str:
    """One anomaly's page."""
    return location.to("anomaly", policy=policy_id, id=anomaly_id).url


def narrowed(location: Location, name: str, value: str | None) -> str | None:
    """The decisions that share a value with others; None where no URL holds it.

    Args:
        location: The page that leads there.
        name: The filter.
        value: The value.
    """
    return location.to("decisions", **{name: value}).url if value and len(value) <= LONGEST else None


def week(monday: date) -> dict[str, str]:
    """The filters of a week."""
    return {"since": monday.isoformat(), "until": (monday + _WEEK).isoformat()}


def week_of(location: Location, monday: date) -> dict[str, str | None]:
    """The filters of a week on a page that may show a part of it only."""
    filters: dict[str, str | None] = {**week(monday)}
    start, end = Location("decisions", **filters).period()
    since, until = location.period()
    if since is not None and start is not None and since > start:
        filters["since"] = location.since
    if until is not None and end is not None and until < end:
        filters["until"] = location.until
    return filters


def download(what: str, location: Location, **parameters: str) -> str:
    """A file of the scope: `packet`, `record`, `keys`, `notebook` or `dry-run`."""
    return f"/download/{what}?{urlencode({'scope': location.scope or '', **parameters})}"
