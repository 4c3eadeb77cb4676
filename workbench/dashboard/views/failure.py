"""A page that says why the one that was asked for is not there."""

from __future__ import annotations

from gate.errors import GateError
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page


def view(location: Location, error: GateError) -> Page:
    """The page for an error that says what was wrong and what to do."""
    return _page(location, error.message)


def unforeseen(location: Location) -> Page:
    """The page for an error that nobody foresaw; the operator's log has it."""
    return _page(location, "The page could not be made. Load it again; the operator finds the reason in the log.")


def _page(location: Location, message: str) -> Page:
    overview = location.to("overview").url
    return Page(
        location, "This page cannot be shown", render("failure.html", {"message": message, "overview": overview})
    )
