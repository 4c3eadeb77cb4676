"""The filters that pages offer, each in one way everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from workbench.dashboard.views.location import Location, day_before
from workbench.dashboard.views.page import Choice, Entry
from workbench.engines.rendering import on_one_line
from workbench.engines.wording import decided_by, phrase

_ALL: Final = ""
_DAYS: Final[Mapping[str, int]] = MappingProxyType({"7 days": 7, "28 days": 28, "90 days": 90, "365 days": 365})


def policies(names: Iterable[str], *, all_: str | None = "All policies") -> Choice:
    """Which policy; a page that needs one offers no `all_`."""
    return Choice("policy", "Policy", _options(names, all_))


def versions(names: Iterable[str]) -> Choice:
    """Which version of the policy, the latest first."""
    return Choice("version", "Version", _options(reversed(list(names)), "All versions"))


def verdicts() -> Choice:
    """Which verdict."""
    return Choice("verdict", "Verdict", _options(("yes", "no", "review"), "All verdicts"))


def reasons(codes: Iterable[str]) -> Choice:
    """Which reason code."""
    return Choice("reason", "Reason", _options(codes, "All reasons"))


def rules(names: Iterable[str]) -> Choice:
    """What decided."""
    return Choice("rule", "Decided by", {_ALL: "All rules", **{name: on_one_line(decided_by(name)) for name in names}})


def words(name: str, label: str, values: Iterable[str], all_: str) -> Choice:
    """One of some words of the protocol, such as states."""
    return Choice(name, label, {_ALL: all_, **{value: phrase(value) for value in values}})


def target() -> Entry:
    """The object that decisions are about."""
    return Entry("target", "Target", "full name")


def period() -> tuple[Entry, Entry]:
    """From which day to which day."""
    return Entry("since", "From (UTC)", "YYYY-MM-DD"), Entry("until", "To (UTC)", "YYYY-MM-DD")


def clocks() -> Choice:
    """By which dates decisions are shown, and cut by a period."""
    return Choice("clock", "Dates", {_ALL: "When recorded", "occurred": "When it happened"})


def values(metrics: Iterable[str]) -> Choice:
    """The metric in which costs are estimated."""
    return Choice("value", "Cost in", _options(metrics, "No metric"))


def histories_of(names: Iterable[str]) -> Choice:
    """The scope's own decisions, or the cases of one of its imported histories."""
    imported = {name: f"Imported: {on_one_line(name)}" for name in names}
    return Choice("history", "Source", {_ALL: "Decisions in the chain", **imported})


def sources(location: Location, histories: Iterable[str]) -> tuple[Choice, ...]:
    """The choices of dates and source that a page has.

    Args:
        location: The page.
        histories: The names of the scope's imported histories.
    """
    names = list(histories)
    # All dates of imported cases are those of their events.
    dates = () if location.history is not None else (clocks(),)
    return (*dates, *((histories_of(names),) if names or location.history is not None else ()))


def periods(location: Location, now: datetime) -> dict[str, str]:
    """Usual periods until now, as links."""
    last = {name: location.change(since=day_before(now, days), until=None).url for name, days in _DAYS.items()}
    return {**last, "All time": location.change(since=None, until=None).url}


def swapped(location: Location) -> str | None:
    """The page with the first and the last moment of its period swapped; None where the first is not after the last."""
    since, until = location.period()
    if since is None or until is None or since < until:
        return None
    return location.change(since=location.until, until=location.since).url


def _options(names: Iterable[str], all_: str | None) -> dict[str, str]:
    every = {} if all_ is None else {_ALL: all_}
    return {**every, **{name: on_one_line(name) for name in names}}
