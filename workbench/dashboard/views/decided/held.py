"""The decisions that wait for a reviewer: their number, their age, and their list, oldest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from gate.policy.anomalies.counted import TERMINAL
from workbench.dashboard.views import offered
from workbench.dashboard.views.decided.listing import criteria, pager, rows, widened
from workbench.dashboard.views.decided.searched import waiting
from workbench.dashboard.views.html import ago, render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Choice, Page
from workbench.engines.listing import AGES, Criteria, HeldSummary, Listing, Names, held_for
from workbench.engines.rendering import cut
from workbench.engines.wording import counted

AGE_OF: Final[Mapping[str, str]] = MappingProxyType(
    dict(zip(("day", "week", "month", "quarter", "longer"), AGES, strict=True))
)
"""The age that each value of the filter stands for."""


def asked(location: Location, now: datetime) -> Criteria:
    """The criteria of the held decisions that a location lists.

    Args:
        location: The page with its filters.
        now: The moment at which ages are taken.
    """
    since, until = held_for(AGE_OF[location.age], now) if location.age is not None else (None, None)
    return criteria(location, state="held", since=since, until=until)


def view(
    location: Location,
    found: Listing,
    summary: HeldSummary,
    names: Names,
    *,
    oldest: datetime | None,
    now: datetime,
    without: Mapping[str, int] | None = None,
) -> Page:
    """The page of held decisions.

    Args:
        location: Where it is.
        found: The decisions.
        summary: The held decisions that meet all filters but the age, counted.
        names: The names that the filters offer.
        oldest: When the oldest of the decisions was made; None where there are none.
        now: The moment at which ages are taken.
        without: Where none was found, how many are held without each filter.
    """
    context = {
        "rows": rows(location, found, now),
        "pager": pager(location, found, oldest_first=True),
        "caption": "Held decisions, oldest first",
        "with_age": True,
        "imported": False,
        "held": summary.decisions,
        "filtered": True,
        "groups": [_group(location, row, now) for row in summary.frame.iter_rows(named=True)],
        "left_out": summary.left_out,
        "most": _most(location, summary),
        "ages": [
            {"words": words, "number": summary.ages[words], "url": location.change(age=age).url}
            for age, words in AGE_OF.items()
        ],
        "eldest": _eldest(summary),
        "ended": _ended(summary),
        "outcomes": [
            (f"{number:,} {status}", location.to("decisions", state="held", outcome=status).url)
            for status, number in _done(summary).items()
        ],
        "eldest_shown": f"{counted(found.total, 'decision')} to review, longest held first",
        "narrowed": any((location.policy, location.reason, location.target)),
        "targets_kept": found.targets_kept,
        "widened": widened(location, without or {}) if not found.total else [],
        "all_url": Location("held", scope=location.scope).url,
        "as_of": now,
        "queue_url": location.to("reviews").url,
    }
    return Page(
        location,
        _title(location, found, oldest, now),
        render("held.html", context),
        filters=(
            offered.policies(names.policies),
            offered.reasons(names.review_reasons),
            offered.target(),
            Choice("age", "Held for", {"": "Any time", **AGE_OF}),
        ),
    )


def _title(location: Location, found: Listing, oldest: datetime | None, now: datetime) -> str:
    longest = None if oldest is None else ago(oldest, now)
    age = None if location.age is None else AGE_OF[location.age]
    return waiting(found.total, criteria(location, state="held"), longest, age)


def _group(location: Location, row: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    policy_id, reason = row["policy_id"], row["reason_code"]
    return {
        "policy": policy_id,
        "policy_url": location.to("policy", policy=policy_id).url,
        "reason": reason,
        "url": location.to("held", policy=policy_id, reason=reason, age=None).url,
        "decisions": row["decisions"],
        "oldest": ago(row["oldest_at"], now),
        "newest": ago(row["newest_at"], now),
    }


def _eldest(summary: HeldSummary) -> str:
    """How many have been held for the longest of the ages that there are."""
    age = next((age for age in reversed(AGES) if summary.ages[age]), AGES[0])
    verb = "has" if summary.ages[age] == 1 else "have"
    return f"{summary.ages[age]:,} of {summary.decisions:,} {verb} been held for {age}"


def _done(summary: HeldSummary) -> dict[str, int]:
    """How many have an outcome that says what came of an action, which nobody let them take."""
    return {status: number for status, number in summary.outcomes.items() if status in TERMINAL}


def _ended(summary: HeldSummary) -> str:
    """How many have an outcome already."""
    number = sum(_done(summary).values())
    return f"{counted(number, 'held decision')} already {'has' if number == 1 else 'have'} an outcome"


def _most(location: Location, summary: HeldSummary) -> str:
    if summary.frame.is_empty():
        return ""
    row = summary.frame.row(0, named=True)
    of = "" if location.policy is not None else f", by {cut(row['policy_id'])}"
    return f"{row['decisions']:,} of {summary.decisions:,} are held for the reason {cut(row['reason_code'])}{of}"
