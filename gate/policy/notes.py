"""A sentence that the reports about a policy share."""

from __future__ import annotations

from collections.abc import Iterator


def without_advice(advisory: int) -> Iterator[str]:
    """That a report does not count advisory decisions, in a sentence; nothing where there are none to leave out.

    Args:
        advisory: How many decisions with the report's policy_id are advisory.
    """
    if advisory:
        number, are = ("1 decision", "is") if advisory == 1 else (f"{advisory:,} decisions", "are")
        yield f"{number} with this policy_id {are} advisory and not counted here: no rulebook decided."


def by_clock(clock: str) -> Iterator[str]:
    """What a report says of its dates where they are not those of the records."""
    if clock == "occurred":
        yield (
            "Dates are event times as callers reported them, unchecked. Where callers reported none, the recorded "
            "date counts."
        )
