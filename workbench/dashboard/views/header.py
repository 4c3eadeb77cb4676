"""What stands around every page: the head with its navigation, the heading, and links among the filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

from gate.ledger.access.users import User
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page

_NAVIGATION: Final = (
    ("overview", "Overview", ("overview",)),
    ("policy", "Policy", ("policy",)),
    ("anomalies", "Anomalies", ("anomalies", "anomaly")),
    ("benchmarks", "Benchmarks", ("benchmarks",)),
    ("decisions", "Decisions", ("decisions", "decision")),
    ("held", "Held", ("held",)),
    ("reviews", "Reviews", ("reviews", "review")),
    ("drafts", "Drafts", ("drafts", "draft", "cases", "revisions", "compare", "propose")),
    ("whatif", "What if", ("whatif",)),
    ("histories", "Histories", ("histories",)),
    ("migrations", "Migrations", ("migrations", "migration")),
)
# What goes along from page to page.
_CARRIED: Final = ("scope", "policy", "since", "until")


def view(location: Location, user: User | None) -> Markup:
    """The head of a page: where one is, where one can go, and who is signed in."""
    carried = {name: getattr(location, name) for name in _CARRIED}
    items = [
        {"label": label, "url": Location(page, **_taken(page, carried)).url, "here": location.page in pages}
        for page, label, pages in _NAVIGATION
    ]
    scopes = [] if user is None else sorted(user.scopes.values())
    others = [{"label": name, "url": Location(scope=name).url, "here": name == location.scope} for name in scopes]
    context = {"items": items, "scopes": others, "scope": location.scope, "user": None if user is None else user.name}
    return render("header.html", context)


def main(page: Page, time: int) -> Markup:
    """A page's heading and all beneath it; `time` tells it from what was shown before."""
    return render("main.html", {"title": page.title, "html": page.html, "page": page.location.page, "time": time})


def links(urls: Mapping[str, str], location: Location) -> Markup:
    """Filters that are links."""
    return render("links.html", {"urls": urls, "here": location.url})


def fault(message: str) -> Markup:
    """Why an act was not done."""
    return render("fault.html", {"message": message})


def _taken(page: str, carried: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: value for name, value in carried.items() if name in Location(page).filters}
