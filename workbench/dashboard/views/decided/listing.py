"""Decisions in a table, a page of them at a time: what the pages of all decisions and of those held have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from gate.policy.confidence import Counts
from workbench.columns import ADVISORY
from workbench.dashboard.views import links
from workbench.dashboard.views.html import ago
from workbench.dashboard.views.location import Location
from workbench.engines.listing import SHORTEST_REF, Criteria, Listing
from workbench.engines.wording import decided_by, phrase

OUTCOMES: Final = (*Counts._fields, "unreported")
"""The statuses of an outcome that can be searched for."""

_TONES: Final = {"yes": "good", "no": "bad", "review": "warn"}
# What of a URL does not narrow a list.
_NO_FILTERS: Final = ("scope", "before", "after", "clock", "history")
_LABELS: Final = {"ref": "id", "since": "first day", "until": "last day", "rule": "rule that decided"}


def criteria(location: Location, **more: Any) -> Criteria:
    """The criteria of a location's filters.

    Args:
        location: The page with its filters.
        more: Criteria that the page adds, or puts in the place of those.
    """
    since, until = location.period()
    asked = {
        "policy_id": location.policy,
        "policy_version": location.version,
        "verdict": location.verdict,
        "reason_code": location.reason,
        "rule": location.rule,
        "since": since,
        "until": until,
        "state": location.state,
        "outcome_status": location.outcome,
        "target": location.target,
        "ref": location.ref,
    }
    return Criteria(**{**asked, **more})


def rows(location: Location, found: Listing, now: datetime) -> list[dict[str, Any]]:
    """The rows of a table of decisions.

    Args:
        location: The page that shows them, whose filters its links keep.
        found: The decisions.
        now: The moment at which ages are taken.
    """
    return [_row(location, row, now) for row in found.frame.iter_rows(named=True)]


def pager(location: Location, found: Listing, *, oldest_first: bool = False) -> dict[str, Any]:
    """Where in a list its page is, and where the others are.

    Args:
        location: The page with its filters.
        found: The page's decisions.
        oldest_first: Whether the list begins with the oldest.
    """
    shown = found.frame.height
    before = found.total - found.newer - shown if oldest_first else found.newer
    older = None if found.next_before is None else location.change(before=str(found.next_before)).url
    newer = None if found.next_after is None else location.change(after=str(found.next_after)).url
    begin, end = ("oldest", "newest") if oldest_first else ("newest", "oldest")
    ahead, back = (newer, older) if oldest_first else (older, newer)
    moved = location.before is not None or location.after is not None
    return {
        "first": before + 1,
        "last": before + shown,
        "total": found.total,
        "order": f"{begin} first",
        "links": [
            (label, url)
            for label, url in (
                (f"{phrase(begin)} first page", location.change().url if moved and back else None),
                ("Newer" if not oldest_first else "Older", back),
                ("Older" if not oldest_first else "Newer", ahead),
            )
            if url is not None
        ],
        "beginning": location.change().url,
        "end": end,
    }


def set_filters(location: Location) -> Iterator[tuple[str, str, Location]]:
    """The filters that narrow a list: each by its name, in words, and the page without it."""
    for name, value in location.filters.items():
        if value is not None and name not in _NO_FILTERS:
            yield name, _LABELS.get(name, name), location.change(**{name: None})


def widened(location: Location, totals: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """How an empty list is filled: each filter in words, the URL without it, and how many decisions that has.

    Args:
        location: The page with its filters.
        totals: How many decisions there are without each filter.
    """
    found = [(words, without.url, totals[name]) for name, words, without in set_filters(location)]
    return sorted((each for each in found if each[2]), key=lambda of: -of[2])


def _row(location: Location, row: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    decision_id, policy_id, version = row["decision_id"], row["policy_id"], row["policy_version"]
    advisory = row["rule"] == ADVISORY
    imported = "history" in location.filters and location.history is not None
    return {
        "at": row["created_at"],
        "age": ago(row["created_at"], now),
        "id": decision_id,
        "short": decision_id[-SHORTEST_REF:],
        # The ledger has no record of an imported case.
        "url": None if imported else links.decision(location, decision_id),
        "policy": policy_id,
        "advisory": advisory,
        # No policy has a page for advice.
        "policy_url": None if advisory else links.policy(location, policy_id),
        "version": version,
        "version_url": None if advisory else location.to("policy", policy=policy_id, version=version).url,
        "verdict": row["verdict"] or "-",
        "tone": "" if advisory else _TONES.get(row["verdict"], ""),
        "reason": row["reason_code"],
        "reason_url": _narrowed(location, "reason", row["reason_code"]),
        "rule": decided_by(row["rule"] or "-"),
        "rule_url": _narrowed(location, "rule", row["rule"]),
        "action": row["action"],
        "target": row["target_object_id"] or None,
        "target_url": _narrowed(location, "target", row["target_object_id"]),
        "state": phrase(row["state"] or "-"),
        "outcome": None if row["outcome_status"] is None else phrase(row["outcome_status"]),
        "erased": row["erased"],
    }


def _narrowed(location: Location, name: str, value: str | None) -> str | None:
    """The list narrowed to a value; None where no URL holds it, or the list is that already."""
    if (
        name not in location.filters
        or getattr(location, name) == value
        or links.narrowed(location, name, value) is None
    ):
        return None
    return location.change(**{name: value}).url
