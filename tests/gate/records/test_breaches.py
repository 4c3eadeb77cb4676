"""How receipts break a grant: by their date, with five minutes for clocks that differ, and by the action they name."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.records.reports.breaches import breaches, last_executed_at
from gate.records.reports.receipts import ACTION_TAKEN_MISMATCH, BINDING_MISMATCH, NOT_APPROVED

ENDS: Final = "2026-06-12T08:00:00.000Z"
LATE: Final = (
    "A receipt is dated 2026-06-12 08:06 UTC, more than 5 minutes after the grant ended (2026-06-12 08:00 UTC)."
)


def at(minutes: float) -> str:
    """A moment of the hour in which the grant ends, by minutes behind its end."""
    return f"2026-06-12T08:{int(minutes):02d}:{round(minutes % 1 * 60):02d}.000Z" if minutes >= 0 else before(-minutes)


def before(minutes: float) -> str:
    return f"2026-06-12T07:{60 - int(minutes):02d}:00.000Z"


def receipt(reported: float, executed: float | None = None, status: str = "executed", *flags: str) -> Any:
    told: dict[str, Any] = {"execution_status": status, "reported_at": at(reported), "flags": list(flags)}
    if executed is not None:
        told["executed_at"] = at(executed)
    return told | {"action_taken": "refund \u202eorder"} if ACTION_TAKEN_MISMATCH in flags else told


@pytest.mark.parametrize(
    ("receipts", "is_late"),
    [
        ([], False),
        ([receipt(5)], False),
        ([receipt(6.5)], True),
        ([receipt(30, executed=-1)], False),
        ([receipt(30, executed=5)], False),
        ([receipt(6.5, executed=6.5)], True),
        # A date that had not come by the report says nothing: the report's own stands.
        ([receipt(-2, executed=6.5)], False),
        ([receipt(6.5, executed=40)], True),
        # One dated a little after its report stands as it is.
        ([receipt(2, executed=6.5)], True),
        ([receipt(6.5, None, "queued")], True),
        ([receipt(6.5), receipt(1, None, "queued")], False),
        ([receipt(6.5), receipt(6, None, "queued")], True),
        ([receipt(1), receipt(6.5)], True),
        ([receipt(6.5, None, "reverted"), receipt(6.5, None, "failed")], False),
        # Before the grant, or without one; this is another breach.
        ([receipt(6.5, None, "executed", NOT_APPROVED)], False),
        ([receipt(6.5, None, "executed", BINDING_MISMATCH)], True),
    ],
)
def test_a_receipt_is_late_when_it_is_dated_more_than_five_minutes_after_the_grant(
    receipts: list[Any], is_late: bool
) -> None:
    assert breaches(receipts, ENDS) == ([LATE] if is_late else [])


def test_a_receipt_that_names_another_action_is_told_with_its_name() -> None:
    other = receipt(-3, None, "executed", ACTION_TAKEN_MISMATCH)
    (told,) = breaches([other, receipt(-4)], ENDS)
    assert told.startswith('A receipt states a different action from the granted one: "refund ')
    assert breaches([receipt(-3, None, "skipped", ACTION_TAKEN_MISMATCH)], ENDS) == []
    assert breaches([receipt(6.5, None, "executed", ACTION_TAKEN_MISMATCH)], ENDS) == [LATE, told]


@given(st.lists(st.integers(-50, 59), max_size=5))
def test_receipts_are_late_when_any_of_them_is(reported: list[int]) -> None:
    told = breaches([receipt(minutes) for minutes in reported], ENDS)
    assert bool(told) == any(minutes > 5 for minutes in reported)


def test_the_last_execution_is_the_newest_receipt_that_says_executed() -> None:
    assert last_executed_at([]) is None
    assert last_executed_at([receipt(9, None, "reviewed"), receipt(7), receipt(5)]) == at(7)
