"""Pages without a browser: a store over a made-up chain, visits of users in each role, and what a page's HTML holds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Final

from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import User
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.access import Access, access
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.store.reports import ScopeReports
from workbench.dashboard.store.snapshots import Seen
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.kept import Kept
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot

NOW: Final = datetime(2026, 11, 25, 12, tzinfo=UTC)

# What a browser shows apart from what follows.
_APART: Final = {"td", "th", "li", "p", "h2", "dd", "dt", "strong", "caption", "summary"}
_VOID: Final = {"br", "meta", "input", "wbr"}
_HTML: Final = {
    *(
        "a",
        "br",
        "caption",
        "code",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "h2",
        "li",
        "nav",
        "ol",
    ),
    *("p", "span", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_SVG: Final = {"svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clippath", "a", "title", "desc"}


class MadeUpStore(Store):
    """A store whose lake is a snapshot; everything else is the instance's."""

    def __init__(self, instance: Instance, snapshot: Snapshot, memo: Memo) -> None:
        super().__init__(instance, Personal(), lambda: NOW)
        self._snapshot = snapshot
        self._memo = memo

    def reports(self, access: Access) -> ScopeReports:
        """Answers about the snapshot."""
        return ScopeReports("made up", Seen(self._snapshot, NOW), self._memo, Kept(0))


def visit(scope: Scope, url: str | Location, role: str = "author", *, name: str = "ada", narrow: bool = False) -> Visit:
    """A look of a user in a role at a page of a scope."""
    user = User(
        "usr_1",
        name,
        {scope.scope_id: role},
        {scope.scope_id: scope.name},
        created_at="2026-01-01T00:00:00.000Z",
        expires_at=None,
        disabled_at=None,
        last_sign_in_at=None,
        epoch=1,
    )
    location = Location.read(url) if isinstance(url, str) else url
    return Visit(access(user, scope.name), location, NOW, narrow)


@dataclass
class Read(HTMLParser):
    """HTML as a browser would read it.

    Attributes:
        text: Its text, on one line.
        links: Where it leads, in order.
        tags: The names of its elements.
        attributes: The names of their attributes, with their values.
        open: The elements that are open.
    """

    text: str = ""
    links: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    attributes: list[tuple[str, str]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        # Those that skip a chart stay on the page.
        links = [value or "" for name, value in attrs if name == "href"]
        self.links += [link for link in links if re.fullmatch("#after-[0-9a-z-]*", link) is None]
        if tag in _VOID:
            self.text += "" if tag == "wbr" else " "
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in _APART:
            self.text += " "

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: Page) -> Read:
    """A page's HTML, which is well formed."""
    found = Read()
    found.feed(str(page.html))
    found.close()
    assert found.open == []
    found.text = " ".join(found.text.split())
    return found


def require_harmless(page: Page) -> Read:
    """Requires that no element, attribute or address of a page was made from the names that it shows."""
    found = read(page)
    assert found.tags <= _HTML | _SVG, found.tags - _HTML - _SVG
    assert [name for name, _ in found.attributes if name.startswith("on") or name in ("src", "srcdoc", "action")] == []
    assert [link for link in found.links if not link.startswith("/") or link[1:2] in ("/", "\\")] == []
    assert all(link.isascii() and link.isprintable() for link in found.links)
    return found
