"""A page that says why the one that was asked for is not there."""

from __future__ import annotations

from typing import Final

from gate.errors import GateError
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page

_LISTS: Final = {"decision": "decisions", "anomaly": "anomalies"}


def view(location: Location, error: GateError) -> Page:
    """The page for an error that says what was wrong and what to do."""
    return _page(location, error.message)


def unforeseen(location: Location) -> Page:
    """The page for an error that nobody foresaw; the operator's log has it."""
    return _page(
        location, "The server could not create this page. Load it again. The operator finds the reason in the log."
    )


def _page(location: Location, message: str) -> Page:
    links = {"Go to the overview": location.to("overview").url}
    if location.page != "overview":
        page = _LISTS.get(location.page, location.page)
        links = {f"Go to {page} without filters": Location(page, scope=location.scope).url, **links}
    context = {"message": message, "links": links}
    return Page(location, "This page cannot be shown", render("failure.html", context))
