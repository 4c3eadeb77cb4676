"""Where in the dashboard one is: a page, and the filters that the query string holds.

    Location.read("/decisions?scope=acme&verdict=review").verdict == "review"
    Location("policy", scope="acme", policy="refund_policy").url == "/policy?scope=acme&policy=refund_policy"

Every page and all of its filters are in the URL, so that bookmarks, links, and the browser's history need nothing else.
An unknown parameter is an error: a misspelled filter is never silently ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from gate.errors import GateError
from gate.ledger.stores.store import has_utf8
from workbench.period import begin, end

MAX_URL: Final = 4096
"""The longest URL that is read, in characters."""

NOBODY: Final = "(nobody)"
"""The value of the filter `owner` for reviews that have none."""

LONGEST: Final = 200
"""The longest value of a filter, in characters."""

_COMMON: Final = ("scope", "policy", "version")
_PERIOD: Final = ("since", "until")
_PLACES: Final = ("before", "after")
# As no filter at all.
_RECORDED: Final = ("clock", "recorded")
_LISTED: Final = ("verdict", *_PERIOD, "reason", "rule", "target", "before", "after")

PAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "overview": ("scope",),
        "policy": (*_COMMON, "verdict", *_PERIOD, "clock", "history"),
        "anomalies": (*_COMMON, "verdict", *_PERIOD, "clock", "value", "show"),
        "anomaly": (*_COMMON, "verdict", "clock", "value", "id"),
        "benchmarks": (*_COMMON,),
        "decisions": (*_COMMON, *_LISTED, "state", "outcome", "ref", "anomaly", "clock", "history"),
        "decision": ("scope", "id"),
        "drafts": ("scope", "policy", "version"),
        "draft": ("scope", "id"),
        "cases": ("scope", "id"),
        "revisions": ("scope", "id"),
        "propose": ("scope", "id"),
        "whatif": (*_COMMON, "verdict", *_PERIOD, "id", "by", "metric", "clock", "history"),
        "histories": ("scope",),
        "migrations": ("scope", "policy"),
        "migration": ("scope", "id"),
        "compare": ("scope", "id", "base"),
        "held": ("scope", "policy", "reason", "target", "age", "before", "after"),
        "reviews": ("scope", "owner", "state", "done", "before", "after"),
        "review": ("scope", "owner", "id", "done"),
    }
)
"""Every page, with the parameters that it takes."""


class LocationInvalid(GateError):
    """`DASHBOARD_ADDRESS_INVALID`: the page of a URL does not exist, or does not accept a parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameters:
    scope: str | None = None
    policy: str | None = None
    version: str | None = None
    verdict: str | None = None
    since: str | None = None
    until: str | None = None
    reason: str | None = None
    rule: str | None = None
    state: str | None = None
    outcome: str | None = None
    target: str | None = None
    ref: str | None = None
    age: str | None = None
    show: str | None = None
    id: str | None = None
    anomaly: str | None = None
    base: str | None = None
    by: str | None = None
    value: str | None = None
    metric: str | None = None
    before: str | None = None
    after: str | None = None
    clock: str | None = None
    history: str | None = None
    owner: str | None = None
    done: str | None = None


@dataclass(frozen=True, slots=True)
class Location(_Parameters):
    """A page with its filters; None where a filter narrows nothing.

    Attributes:
        page: One of `PAGES`.
        scope: The scope's name; the user's first one where None.
        policy: A policy's id.
        version: One of its versions.
        verdict: yes, no or review.
        since: The first day, `2026-07-13`, or the first moment, in UTC.
        until: The last day, or the moment before which; in UTC.
        reason: A reason code.
        rule: What decided, as the record's evidence says.
        state: One of the states of a decision (`workbench.engines.listing.STATES`), or of a review
            (`gate.ledger.chain.reviews.STATES`).
        outcome: The status of the latest outcome; `unreported` without one.
        target: The object that a decision is about.
        ref: A decision's or a request's id.
        age: How long a held decision has waited: up to a `day`, a `week`, a `month` of 4 weeks, a `quarter` of 13
            weeks, or `longer`. Each range starts where the range before it ends.
        show: `open` for the anomalies that are open, `dismissed` for those that were dismissed, too.
        id: The id of what a page is about.
        anomaly: The id of an anomaly whose decisions are listed.
        by: The version of the policy that decides again; None for the version registered last.
        value: The metric of outcomes in which anomalies' costs are estimated.
        metric: What a what-if sums: a metric of outcomes, or a fact as `inputs.NAME`.
        base: The text to compare a draft with: `revision 3`, or a rulebook's id and version.
        before: The chain position before which a list continues.
        after: The chain position after which a list continues.
        clock: `occurred` for the dates of events, by which a period is cut as well; those of the record where None.
        history: The imported history whose cases are shown in place of the chain's decisions.
        owner: The owner of the reviews; `NOBODY` for those without an owner.
        done: The decision that was resolved a moment ago, before the page was asked for; on the page of its own review,
            it had been resolved before.
    """

    page: str = "overview"

    @classmethod
    def page_of(cls, url: str) -> Self:
        """The page that a URL names, without its filters, whatever these are; the overview where it names none."""
        try:
            page = _split(url)[0].strip("/") if len(url) <= MAX_URL else ""
        except LocationInvalid:
            page = ""
        return cls(page if page in PAGES else "overview")

    @classmethod
    def read(cls, url: str) -> Self:
        """The location that a URL of the dashboard names.

        Args:
            url: Path and query string.

        Raises:
            LocationInvalid: The page does not exist, or does not accept a parameter.
        """
        if len(url) > MAX_URL:
            raise _invalid(f"The address is longer than {MAX_URL:,} characters. Go to the overview.")
        path, query = _split(url)
        page = path.strip("/") or "overview"
        if page not in PAGES:
            raise _invalid(f"There is no page {_shown('/' + page)}. Go to the overview.")
        given: dict[str, Any] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name not in PAGES[page]:
                takes = ", ".join(PAGES[page])
                raise _invalid(f"The page {page} has no filter {_shown(name)}; it accepts {takes}.")
            if name in given:
                raise _invalid(f"The filter {name} is given twice; remove one of them.")
            if len(value) > LONGEST:
                raise _invalid(f"The filter {name} is longer than {LONGEST} characters; shorten it.")
            if not has_utf8(value):
                raise _invalid(f"The filter {name} contains an invalid character; enter it again.")
            if value and (name, value) != _RECORDED:
                given[name] = _checked(name, value)
        if "anomaly" in given and "policy" not in given:
            raise _invalid("The filter anomaly needs the filter policy. Choose the policy of the anomaly.")
        return cls(page, **given)

    @property
    def url(self) -> str:
        """Path and query string."""
        path = "/" if self.page == "overview" else f"/{self.page}"
        given = {name: value for name, value in self.filters.items() if value is not None}
        query = urlencode(given, errors="replace")
        return f"{path}?{query}" if query else path

    @property
    def filters(self) -> dict[str, str | None]:
        """The parameters that the page takes, by name."""
        return {name: getattr(self, name) for name in PAGES[self.page]}

    @property
    def place(self) -> str:
        """The page, and the id of what it is about: a reader who goes to another place begins at its heading."""
        return self.page if self.id is None else f"{self.page} {self.id}"

    def to(self, page: str, **changes: str | None) -> Self:
        """Another page with the filters that both pages have, and some changes. A list starts from its beginning.

        Args:
            page: The page.
            changes: Parameters by name; None removes one.
        """
        kept: dict[str, Any] = {name: value for name, value in self.filters.items() if name in PAGES[page]}
        kept |= {name: None for name in _PLACES if name in PAGES[page]}
        if page != self.page:
            # What the page is about, and not a filter.
            kept.pop("id", None)
        there = replace(type(self)(page), **{**kept, **changes})
        if there.policy is not None:
            return there
        # An anomaly is one of a policy, and so is the version of a list whose policy is removed.
        return replace(there, anomaly=None, version=None if "policy" in changes else there.version)

    def change(self, **changes: str | None) -> Self:
        """The same page with some filters changed. A list starts from its beginning."""
        kept = self.to(self.page, **changes)
        return kept if "id" in changes else replace(kept, id=self.id)

    def period(self) -> tuple[datetime | None, datetime | None]:
        """From when, and until before when, in UTC; None where it is open."""
        return begin(self.since), end(self.until)


def day_before(moment: datetime, days: int) -> str:
    """The date so many days before a moment, for `since`."""
    return (moment.astimezone(UTC) - timedelta(days=days)).date().isoformat()


def _split(url: str) -> tuple[str, str]:
    """Path and query string; of an address elsewhere only what could be one here."""
    try:
        split = urlsplit(url)
    except ValueError as error:
        raise _invalid("The address cannot be read. Go to the overview.") from error
    return split.path, split.query


def _checked(name: str, value: str) -> str:
    allowed = _CHOICES.get(name)
    if allowed is not None and value not in allowed:
        raise _invalid(f"The filter {name} cannot be {_shown(value)}; it must be one of {', '.join(allowed)}.")
    if name in _PERIOD:
        try:
            begin(value)
        except ValueError as error:
            raise _invalid(
                f"The filter {name} cannot be {_shown(value)}; write a day such as 2026-07-13, in UTC."
            ) from error
    if name in _PLACES and not (value.isascii() and value.isdecimal() and len(value) <= 15):
        raise _invalid(f"The filter {name} must be a chain position, a whole number. Go to the first page of the list.")
    return value


_CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "verdict": ("yes", "no", "review"),
        "age": ("day", "week", "month", "quarter", "longer"),
        "show": ("open", "dismissed"),
        "clock": ("recorded", "occurred"),
        "outcome": ("succeeded", "partial", "failed", "reverted", "pending", "review", "unreported"),
    }
)


def _shown(text: str) -> str:
    line = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return f"“{line[:40]}...”" if len(line) > 40 else f"“{line}”"


def _invalid(message: str) -> LocationInvalid:
    return LocationInvalid("DASHBOARD_ADDRESS_INVALID", message)
