"""Timestamps: what is read as a moment, and what is not."""

from __future__ import annotations

import pytest

from gate.ids import event_fault, parse_timestamp, timestamp
from tests.support.samples import cases


@pytest.mark.parametrize(("text", "utc"), cases("timestamps"), ids=ascii)
def test_a_time_with_its_zone_is_read_and_nothing_else(text: str, utc: str | None) -> None:
    if utc is None:
        with pytest.raises(ValueError, match=r"\w"):
            parse_timestamp(text)
    else:
        assert timestamp(parse_timestamp(text)) == utc


@pytest.mark.parametrize(("text", "code"), cases("event_times"), ids=ascii)
def test_an_event_is_timed_in_one_form_and_not_far_ahead_of_the_clock(text: str, code: str | None) -> None:
    fault = event_fault(text, parse_timestamp("2026-01-31T12:00:00.000Z"))
    assert (None if fault is None else fault[0]) == code
    unbounded = event_fault(text, None)
    assert (None if unbounded is None else unbounded[0]) == (None if code == "future" else code)


@pytest.mark.parametrize("text", ["2026-02-30T12:00:00.000Z", "2026-01-31T24:00:00.000Z"])
def test_a_day_or_time_that_does_not_exist_is_called_that(text: str) -> None:
    assert event_fault(text, None) == (
        "format",
        "There is no such day or time. Send when it happened, such as 2026-01-31T12:00:00.000Z.",
    )
