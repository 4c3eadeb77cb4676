"""All decisions of a scope that meet some filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from workbench.dashboard.views import links, offered
from workbench.dashboard.views.decided.listing import OUTCOMES, criteria, pager, rows, widened
from workbench.dashboard.views.decided.searched import found as said
from workbench.dashboard.views.html import render
from workbench.dashboard.views.imported.source import source_of
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Choice, Entry, Page
from workbench.engines.listing import STATES, Listing, Names
from workbench.engines.rendering import cut
from workbench.lake.reader import ImportedSet


def view(
    location: Location,
    found: Listing,
    names: Names,
    *,
    as_of: datetime,
    now: datetime,
    without: Mapping[str, int] | None = None,
    elsewhere: str | None = None,
    anomaly: str | None = None,
    unlisted: bool = False,
    histories: Sequence[str] = (),
    imported: ImportedSet | None = None,
) -> Page:
    """The page of decisions.

    Args:
        location: Where it is.
        found: The decisions.
        names: The names that the filters offer.
        as_of: When the ledger was read.
        now: The moment.
        without: Where none was found, how many decisions there are without each filter.
        elsewhere: Where none was found, the only decision that has the id that is asked for, without the other filters.
        anomaly: The page of the anomaly whose decisions alone are listed; None where all are.
        unlisted: Whether the ledger holds the decision that is asked for by its id, and the list does not yet.
        histories: The names of the scope's imported histories.
        imported: The history whose cases are listed; None for the chain's decisions.
    """
    context = {
        "imported": imported is not None,
        "source": source_of(location, imported),
        "rows": rows(location, found, now),
        "pager": pager(location, found),
        "caption": "Decisions, newest first",
        "with_age": False,
        "targets_kept": found.targets_kept,
        "by_target": location.target is not None,
        "anomaly": None if anomaly is None else {"url": anomaly, "without": location.change(anomaly=None).url},
        "widened": widened(location, without or {}) if not found.total else [],
        "all_url": Location("decisions", scope=location.scope).url,
        "elsewhere": None if elsewhere is None else links.decision(location, elsewhere),
        "swapped": offered.swapped(location),
        "unlisted": links.decision(location, location.ref or "") if unlisted else None,
        "filtered": any(value for name, value in location.filters.items() if name != "scope"),
        "as_of": as_of,
    }
    return Page(
        location,
        _title(location, found),
        render("decisions.html", context),
        filters=_filters(location, names, histories),
        links=offered.periods(location, now),
    )


def _title(location: Location, found: Listing) -> str:
    told = said(found.total, criteria(location))
    if location.anomaly is not None:
        return f"{told}, among those that show the anomaly"
    if told.endswith(("decision", "decisions")):
        return f"{told} in scope {cut(location.scope or '')}"
    return told


def _filters(location: Location, names: Names, histories: Sequence[str]) -> tuple[Choice | Entry, ...]:
    return (
        Entry("ref", "Decision or request ID", "full ID or its last 8 characters"),
        offered.target(),
        offered.policies(dict.fromkeys([*names.policies, *names.advisory])),
        *([offered.versions(names.versions.get(location.policy, ()))] if location.policy is not None else []),
        offered.verdicts(),
        offered.reasons(names.reason_codes),
        *([offered.rules(names.rules)] if location.rule is not None else []),
        offered.words("state", "State", STATES, "All states"),
        offered.words("outcome", "Outcome", OUTCOMES, "All outcomes"),
        *offered.period(),
        *offered.sources(location, histories),
    )
