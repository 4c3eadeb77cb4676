"""Pages about policies, without a browser: a made-up chain, the page at a URL, and what its HTML holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final, cast

from gate.ledger.access.users import User
from gate.ledger.reviews import Waiting
from tests.workbench.made_up import DAY, HOUR, MONDAY, WEEK, MadeUp
from workbench.dashboard.pages.routes import load
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.access import Access
from workbench.dashboard.store.health import Health, Part
from workbench.dashboard.store.ledger import VersionChange
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.store.reports import ScopeReports
from workbench.dashboard.store.snapshots import Seen
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.kept import Kept
from workbench.lake.reader import Snapshot

NOW: Final = datetime(2026, 6, 1, 12, tzinfo=UTC)
WELL: Final = Health((Part("Chain", well=True, told="It holds."),))

HOSTILE: Final = (
    '<script>alert(1)</script>"><img src=x onerror=1>',
    "'><svg/onload=alert(2)>{{ 7*7 }}{% raw %}`<b>`",
    "two\nlines\r\u2028\x00\x1b[31m\u202eevil\u2066\u200f",
    "x" * 10_000,
)
"""Names that would break out of a page."""


class MadeUpStore:
    """A store over a snapshot, where somebody dismissed some anomalies."""

    def __init__(self, snapshot: Snapshot, dismissed: Sequence[str] = (), health: Health = WELL) -> None:
        self._reports = ScopeReports("s1", Seen(snapshot, NOW), Memo(1000), Kept(0))
        self._dismissed = dismissed
        self._health = health
        self.dismissals = self
        self.ledger = self
        self.migrations = self
        self.reviews = self

    def reports(self, access: Access) -> ScopeReports:
        return self._reports

    def health(self, access: Access) -> Health:
        return self._health

    def latest(self, scope_id: str, ids: Sequence[str]) -> Mapping[str, Any]:
        return {each: Dismissed() for each in ids if each in self._dismissed}

    def changes(self, scope_id: str, rulebook_id: str, version: str) -> VersionChange:
        return VersionChange(version, None, None)

    def routes(self, access: Access, rulebook_id: str) -> Mapping[str, Any]:
        return {}

    def waiting(self, scope_id: str) -> list[Waiting]:
        return []

    def page(self, url: str | Location, *, narrow: bool = False) -> Page:
        """The page at a URL."""
        user = User("usr_1", "ada", {"s1": "viewer"}, {"s1": "acme"}, "", None, None, None, 1)
        location = Location.read(url) if isinstance(url, str) else url
        return load(cast(Store, self), Visit(Access(user, "s1", "acme", "viewer"), location, NOW, narrow))


@dataclass(frozen=True)
class Dismissed:
    """What is known of a dismissed anomaly."""

    dismissed: bool = True


def rulebook_of(policy_id: str, version: str, *rules: str) -> dict[str, Any]:
    """What of a rulebook with these rules is counted."""
    schema: dict[str, Any] = {"required": [], "properties": {}}
    named = [{"rule_id": rule, "condition": {"field": "amount"}} for rule in rules]
    return {"rulebook_id": policy_id, "version": version, "input_schema": schema, "rules": named}


def decided(
    lake: Path,
    policy_id: str = "refunds",
    versions: Sequence[str] = ("v1", "v2"),
    name: str = "small",
    *,
    metrics: int = 2,
) -> Snapshot:
    """Eight weeks of a policy: its second version, of the last three, does worse; and a few of a second policy.

    Args:
        lake: The lake's directory.
        policy_id: The policy.
        versions: Its two versions.
        name: What its rules, reasons and metrics are called, with a number or a word after it.
        metrics: How many metrics its outcomes have.
    """
    chain = MadeUp()
    for week in range(8):
        version = versions[week >= 5]
        body = rulebook_of(policy_id, version, name, f"{name}.never")
        for number in range(40):
            at = MONDAY + week * WEEK + number * HOUR
            verdict = "review" if number % 4 == 3 else "yes"
            decision_id = chain.decide(
                at,
                verdict=verdict,
                reason=f"{name}{verdict}",
                version=version,
                policy_id=policy_id,
                rulebook=body,
                rule="rule:default" if verdict == "review" else f"rule:{name}",
            )
            if verdict == "yes":
                status = "failed" if number % (2 if week >= 5 else 10) == 0 else "succeeded"
                measured = {f"{name}{at}": float(number % 7) for at in range(metrics)}
                chain.outcome(decision_id, at + DAY, status, observed_metrics=measured)
    for number in range(3):
        other = chain.decide(MONDAY + number * HOUR, policy_id="trials", rulebook=rulebook_of("trials", "1"))
        chain.receipt(other, MONDAY + number * HOUR + DAY)
    return chain.snapshot(lake)


@dataclass
class Read(HTMLParser):
    """HTML as a browser would read it.

    Attributes:
        shape: The names of its elements, and with each the names of its attributes.
        links: Where its links lead, with their texts.
        text: All of its text, each space once.
        headings: The texts of its h2.
        rows: The cells of its tables.
    """

    shape: set[tuple[str, str]] = field(default_factory=set)
    links: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""
    headings: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape |= {(tag, ""), *((tag, name) for name, _ in attrs)}
        self._open += [] if tag == "br" else [tag]
        if tag == "a":
            self.links.append((dict(attrs).get("href") or "", ""))
        elif tag == "h2":
            self.headings.append("")
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape |= {(tag, ""), *((tag, name) for name, _ in attrs)}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text = " ".join(f"{self.text} {data}".split())
        if "a" in self._open:
            url, told = self.links[-1]
            self.links[-1] = url, f"{told}{data}".strip()
        if "h2" in self._open:
            self.headings[-1] += data
        if self._open and self._open[-1] not in ("tr", "tbody", "thead", "table") and "tr" in self._open:
            self.rows[-1][-1] = " ".join(f"{self.rows[-1][-1]} {data}".split())


def read(page: Page) -> Read:
    """A page's HTML, which is well formed."""
    found = Read()
    found.feed(str(page.html))
    found.close()
    assert found._open == []
    return found


def require_harmless(page: Page, usual: Read) -> None:
    """Requires that a page holds no element and no attribute that a usual one lacks, and no foreign address."""
    found = read(page)
    assert found.shape <= usual.shape, found.shape - usual.shape
    assert [url for url, _ in found.links if not url.startswith(("/", "#")) or url.startswith(("//", "/\\"))] == []
    assert all(url.isascii() and url.isprintable() for url, _ in found.links)
    assert page.title.isprintable()
