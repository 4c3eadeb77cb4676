"""Sentences that the reports about a policy share."""

from __future__ import annotations

from collections.abc import Iterator


def without_advice(advisory: int) -> Iterator[str]:
    """A sentence saying that the report does not count advisory decisions; none if there are none.

    Args:
        advisory: The number of advisory decisions with the report's policy_id.
    """
    if advisory:
        number, are = ("1 decision", "is") if advisory == 1 else (f"{advisory:,} decisions", "are")
        yield f"{number} with this policy_id {are} advisory and not counted here: no rulebook decided."


def by_clock(clock: str) -> Iterator[str]:
    """A sentence about the dates of a report that does not use the recorded ones."""
    if clock == "occurred":
        yield (
            "Dates are event times as callers reported them, unchecked. Where callers reported none, the recorded "
            "date counts."
        )
