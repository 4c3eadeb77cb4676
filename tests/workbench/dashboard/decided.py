"""A small ledger for the pages about decisions, and how their HTML is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from gate.instance.instance import Instance
from gate.ledger.access.users import User
from tests.workbench.support import Chain, Shared, shared
from workbench.dashboard.pages.routes import load
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.access import Access
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.lake.entries import Personal


@dataclass
class Site:
    """A dashboard over an instance that others fill."""

    of: Shared
    chain: Chain
    store: Store

    @property
    def instance(self) -> Instance:
        return self.of.instance

    def access(self, scope: str = "acme") -> Access:
        """A viewer of a scope."""
        scope_id = self.of.scope.scope_id if scope == "acme" else "another"
        user = User("usr_1", "ada", {scope_id: "viewer"}, {scope_id: scope}, "", None, None, None, 1)
        return Access(user, scope_id, scope, "viewer")

    def visit(self, url: str, scope: str = "acme") -> Page:
        """The page at a URL, as a viewer of the scope sees it."""
        return load(self.store, Visit(self.access(scope), Location.read(url), self.chain.now))


@contextmanager
def site(directory: Path, personal: Personal | None = None) -> Iterator[Site]:
    """Makes one in a directory; its chain is still empty."""
    with shared(directory) as of:
        chain = Chain(of.instance, of.authority)

        def now() -> datetime:
            return chain.now

        yield Site(of, chain, Store(of.instance, personal or Personal(), now))


@dataclass
class Read(HTMLParser):
    """HTML as a browser has it.

    Attributes:
        elements: The names of its elements and of their attributes.
        links: Where its links lead, by their text.
        rows: The cells of its tables' rows.
    """

    elements: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    rows: list[list[str]] = field(default_factory=list)
    downloads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []
        self._link: str | None = None
        self._in_cell = False
        self._linked = ""

    @property
    def text(self) -> str:
        """All of its text, each space once."""
        return " ".join("".join(self._texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements |= {tag, *(f"@{name}" for name in given)}
        if tag == "a":
            self._link, self._linked = given.get("href"), ""
            if "download" in given and self._link is not None:
                self.downloads.append(self._link)
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._link is not None:
            self.links[self._linked.strip()] = self._link
            self._link = None
        elif tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        self._texts.append(data)
        if self._in_cell:
            self.rows[-1][-1] += data
        self._linked += data


def read(page: Page) -> Read:
    """The HTML of a page, read."""
    reader = Read()
    reader.feed(str(page.html))
    reader.close()
    return reader


ALLOWED = {
    *("p", "a", "div", "span", "code", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "nav", "br"),
    *("dl", "dt", "dd", "h2", "h3", "ul", "ol", "li", "details", "summary", "wbr"),
    *("@class", "@href", "@role", "@aria-label", "@tabindex", "@scope", "@title", "@data-label", "@id", "@open"),
    "@download",
}
"""All that these pages are made of."""

HOSTILE: tuple[Any, ...] = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=1>',
    "'><svg/onload=alert(2)>{{ 7*7 }}{% raw %}",
    "two\nlines\r\u2028\x00\x1b[31m",
    "\u202eevil\u2066\u200f",
    "`<b>`",
    "x" * 10_000,
)
