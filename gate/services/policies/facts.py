"""The facts of a policy question: data from the table and from the caller, without a verdict.

Every fact is always there, so that no rule can approve because one is absent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Final

from gate.services.policies.questions import Question
from gate.services.policies.table import NEVER, NO_OFFER, Entry, Unfound, age_in_days

MAX_DAYS: Final = 36500
"""The most days that may have passed; a larger number is a mistake."""

_NO_WINDOW: Final = -1


def usable_days(value: object) -> float | None:
    """A number of days, 0 to `MAX_DAYS`; None for anything else, including `true` and text with digits."""
    if type(value) not in (int, float):
        return None
    days: float = value  # type: ignore[assignment]
    return days if math.isfinite(days) and 0 <= days <= MAX_DAYS else None


def facts_of(
    question: Question,
    found: Entry | Unfound,
    *,
    days: float | None,
    confirmed: frozenset[str],
    today: date,
    max_age_days: int,
) -> Mapping[str, object]:
    """The facts that the question's rulebook decides over.

    Args:
        question: The question.
        found: The entry, or why there is none.
        days: How many days have passed, where that is known.
        confirmed: The names of the conditions that the caller confirms.
        today: The current day, in UTC.
        max_age_days: How long after its last verification an entry answers.
    """
    entry: Entry | None = None if isinstance(found, Unfound) else found
    return {
        "entry": f"{found.what}_unknown" if isinstance(found, Unfound) else found["decision_mode"],
        "source": _source(entry, today, max_age_days),
        "conditions_confirmed": entry is not None and _names(entry) <= confirmed,
        **_TERMS[question.service](entry, days),
    }


def _names(entry: Entry) -> set[str]:
    return {condition["name"] for condition in entry.get("conditions", [])}


def _source(entry: Entry | None, today: date, max_age_days: int) -> str:
    age = None if entry is None else age_in_days(entry, today)
    if age is None:
        return "unverified"
    return "current" if age <= max_age_days else "stale"


def _windowed(name: str, fact: str, entry: Entry | None, days: float | None) -> Mapping[str, object]:
    window = None if entry is None else entry.get("windows", {}).get(name)
    limited = isinstance(window, int)
    return {
        fact: window != NEVER,
        "days_missing": limited and days is None,
        "days_left": _left(window, days) if isinstance(window, int) and days is not None else _NO_WINDOW,
    }


def _left(window: int, days: float) -> float:
    """What is left of a window, as people count: of 30 days, 0.1 are left after 29.9. The last day belongs to the
    window, and a moment later does not.
    """
    left = Decimal(window) - Decimal(repr(days))
    return int(left) if left == left.to_integral_value() else float(left)


def _cancelling(entry: Entry | None, days: float | None) -> Mapping[str, object]:
    windows = {} if entry is None else entry.get("windows", {})
    free, locked = windows.get("free_days"), windows.get("locked_days")
    return {
        "days_missing": bool(windows) and days is None,
        "locked_days_left": 0 if locked is None or days is None else _left(locked, days),
        "free_days_left": _NO_WINDOW if free is None or days is None else _left(free, days),
        "has_penalty": entry is None or bool(entry.get("penalties", True)),
    }


def _offered(entry: Entry | None, _days: float | None) -> Mapping[str, object]:
    offers = NO_OFFER if entry is None else entry.get("offers", NO_OFFER)
    return {"trial_offered": offers != NO_OFFER}


_TERMS: Final = {
    "refund": lambda entry, days: _windowed("refund_days", "refundable", entry, days),
    "return": lambda entry, days: _windowed("return_days", "returnable", entry, days),
    "cancel": _cancelling,
    "trial": _offered,
}
