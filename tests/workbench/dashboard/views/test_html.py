"""How text, numbers and moments become HTML: escaped, and in the unit that reads best."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup, escape

from workbench.dashboard.views import header
from workbench.dashboard.views.html import ago, breaking, clock, hours, line, number, points, prose, render, short, when
from workbench.dashboard.views.location import Location

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (timedelta(seconds=-5), "less than a minute"),
        (timedelta(seconds=59), "less than a minute"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(minutes=59, seconds=59), "59 minutes"),
        (timedelta(hours=1), "1 hour"),
        (timedelta(hours=47), "1 day"),
        (timedelta(days=1234), "1,234 days"),
    ],
)
def test_how_long_ago(before: timedelta, told: str) -> None:
    assert ago(NOW - before, NOW) == told


def test_numbers() -> None:
    assert [number(value) for value in (None, 0, 1204, -3)] == ["-", "0", "1,204", "-3"]
    assert [hours(value) for value in (None, 0, 0.5, 1, 47.94, 48, 240)] == [
        *("-", "0 min", "30 min", "1.0 h", "47.9 h", "2.0 days", "10.0 days")
    ]
    assert [points(share) for share in (None, 0.123, -0.5)] == ["-", "+12.3", "-50.0"]


def test_moments_are_in_utc() -> None:
    east = timezone(timedelta(hours=9))
    assert clock(datetime(2026, 7, 14, 5, 20, tzinfo=east)) == "2026-07-13 20:20"
    assert when(None) == "-"
    assert when(datetime(2026, 7, 14, 5, 20, tzinfo=UTC)) == when(datetime(2026, 7, 14, 5, 20))  # noqa: DTZ001
    assert "14 July 2026, 05:20 UTC" in when("2026-07-14T05:20:31.000Z")


@given(st.text(max_size=300))
def test_no_text_becomes_anything_but_text(text: str) -> None:
    for shown in (prose(text), breaking(text)):
        assert isinstance(shown, Markup)
        assert not set(re.sub("</?code>|<wbr>", "", shown)) & set("<>\"'")
    for plain in (line(text), short(text)):
        # A template escapes it; it stays on its line.
        assert not isinstance(plain, Markup)
        assert not set(plain) & set("\n\r\x1b\x00\u2028\u202e")


def test_commands_stand_between_backticks() -> None:
    assert prose("Run `gate <x>`, then go.") == "Run <code>gate &lt;x&gt;</code>, then go."
    # One alone begins no command.
    assert prose("a ` b <i>") == escape("a ` b <i>")


def test_a_template_without_one_of_its_values_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("fault.html", {})


def test_names_around_a_page_are_text() -> None:
    hostile = '"><img src=x onerror=1>\n\u202e'
    location = Location("policy", scope=hostile, policy=hostile, since="2026-07-13")
    head = str(header.view(location, None))
    assert "<img" not in head
    assert "Overview" in head
    assert "policy=%22%3E%3Cimg" in head
    links = str(header.links({hostile: '/?scope="><img>'}, location))
    assert "<img" not in links
    assert "<img" not in str(header.fault(hostile))
