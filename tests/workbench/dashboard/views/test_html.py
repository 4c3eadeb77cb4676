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
from workbench.dashboard.views.html import (
    ago,
    breaking,
    clock,
    hours,
    lasting,
    line,
    number,
    points,
    prose,
    render,
    short,
    when,
)
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


@pytest.mark.parametrize(
    ("span", "told"),
    [
        (timedelta(seconds=-5), "less than a minute"),
        (timedelta(seconds=29), "less than a minute"),
        (timedelta(seconds=59), "1 minute"),
        (timedelta(minutes=59, seconds=40), "1 hour"),
        (timedelta(minutes=90), "1 h 30 min"),
        (timedelta(hours=3, minutes=59, seconds=20), "3 h 59 min"),
        (timedelta(hours=3, minutes=59, seconds=55), "4 hours"),
        (timedelta(hours=23, minutes=59, seconds=55), "1 day"),
        (timedelta(hours=47), "1 day 23 h"),
        (timedelta(hours=47, minutes=45), "2 days"),
        (timedelta(days=1234, hours=2), "1,234 days 2 h"),
    ],
)
def test_how_long_something_lasts(span: timedelta, told: str) -> None:
    assert lasting(span) == told


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=400)))
def test_what_lasts_is_off_by_half_a_unit_at_most(span: timedelta) -> None:
    told = lasting(span).replace(",", "")
    minutes = {"minute": 1, "min": 1, "hour": 60, "h": 60, "day": 1440}
    parts = re.findall(r"([0-9]+) ([a-z]+?)s?\b", told)
    said = timedelta(minutes=sum(int(number_) * minutes[unit] for number_, unit in parts))
    # Half a minute below a day; half an hour from there on, as the minute was rounded before.
    most = timedelta(minutes=0.5) if span < timedelta(days=1) else timedelta(minutes=30.5)
    assert abs(said - span) <= most


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
