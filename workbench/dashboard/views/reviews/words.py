"""Times, owners, and actions of reviews in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gate.ids import parse_timestamp
from gate.ledger.chain.reviews import HELD
from workbench.dashboard.store.reviews import SOON
from workbench.dashboard.views.decided.checks import value
from workbench.dashboard.views.html import ago, clock, lasting
from workbench.engines.rendering import cut
from workbench.engines.wording import phrase

STATES: Final[Mapping[str, str]] = {
    HELD: "held",
    "granted": "granted",
    "refused": "refused",
    "expired": "expired",
    "executed": "granted and executed",
}
"""The states of reviews in words."""

CHOICES: Final[Mapping[str, str]] = {**STATES, "granted": "only granted"}
"""The states side by side, where nobody should look for those that were executed among the granted ones."""

# From here on a number has more digits than anybody reads.
_GREATEST: Final = 1e15

TONES: Final[Mapping[str, str]] = {
    HELD: "warn",
    "granted": "good",
    "refused": "bad",
    "expired": "",
    "executed": "good",
}


@dataclass(frozen=True, slots=True)
class Due:
    """When a time limit or a grant ends, in words.

    Attributes:
        text: The words.
        tone: How urgent it is, such as bad where a time limit is over; empty where it is not.
    """

    text: str
    tone: str = ""


def due(due_at: str | None, now: datetime) -> Due:
    """When a held review expires.

    Args:
        due_at: The end of its time limit, as a UTC timestamp; None without one.
        now: The moment.
    """
    if due_at is None:
        return Due("no time limit")
    at = parse_timestamp(due_at)
    if at <= now:
        return Due(f"overdue by {lasting(now - at)}", "bad")
    if at - now <= SOON:
        return Due(f"due soon: in {lasting(at - now)}", "warn")
    return Due(f"due in {lasting(at - now)}")


def grant(ends_at: str | None, now: datetime) -> Due:
    """Until when a grant opens its action, or since when it does not.

    Args:
        ends_at: The end of the grant, as a UTC timestamp; None without one.
        now: The moment.
    """
    if ends_at is None:
        return Due("no grant")
    if parse_timestamp(ends_at) <= now:
        return Due(f"ended {clock(parse_timestamp(ends_at))}", "warn")
    return Due(f"open until {clock(parse_timestamp(ends_at))}", "good")


def waits(created_at: str, now: datetime) -> str:
    """How long something has waited, or did until a moment."""
    return ago(parse_timestamp(created_at), now)


def owned(owner: str | None) -> str:
    """The owner of a review, or that there is none."""
    return cut(owner) if owner else "no owner"


def asked(record: Mapping[str, Any]) -> str:
    """The action that was asked for, in one line: `Refund order on ORDER-12, 120 EUR`."""
    binding = record["action_binding"]
    action = cut(phrase(binding["proposed_action"] or record["action"]))
    target = f" on {cut(binding['resource'])}" if binding["resource"] else ""
    amount = worth(record)
    return f"{action}{target}{f', {amount}' if amount else ''}"


def worth(record: Mapping[str, Any]) -> str:
    """The amount that the action is about, with its currency; empty where the request names none."""
    binding = record["action_binding"]
    if binding.get("amount") in (None, ""):
        return ""
    amount, currency = binding["amount"], binding.get("currency")
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool) and abs(amount) < _GREATEST
    number = f"{amount:,}" if is_number else cut(value(amount))
    return f"{number} {cut(value(currency))}" if currency not in (None, "") else number
