"""Charts of reports: what they leave out, and where their lines break."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from workbench.engines.effectiveness import EffectivenessReport

STATUSES = ("succeeded", "partial", "failed", "reverted", "pending", "review", "unreported")
MONDAY = date(2026, 6, 1)


def row(decisions: int = 4, **more: Any) -> dict[str, Any]:
    counts = {**dict.fromkeys(STATUSES, 0), "succeeded": decisions, "decisions": decisions}
    return {**counts, "success_rate": 1.0, "low": 0.5, "high": 1.0, "terminal_coverage": 1.0, **more}


BODY: dict[str, Any] = {"policy_id": "p", "policy_version": None, "versions_below_others": 0, "versions": []}


def weekly(weeks: dict[str, list[int]]) -> dict[str, Any]:
    """The chart of versions that decided in so many weeks after the first."""
    rows = [
        row(week=MONDAY + timedelta(weeks=week), policy_version=version) for version in weeks for week in weeks[version]
    ]
    report = EffectivenessReport(BODY, pl.DataFrame(), pl.DataFrame(rows), "acme")
    drawn: dict[str, Any] = report.plot().to_dict()
    return drawn


def charted(rows: pl.DataFrame) -> dict[str, Any]:
    """The chart of rates by name."""
    from workbench.charts.rates import rates

    drawn: dict[str, Any] = rates(rows, "name", named="Name", title="Rates").to_dict()
    return drawn


def drawn_rows(chart: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that a chart shows."""
    (rows,) = chart["datasets"].values()
    return list(rows)


@pytest.mark.parametrize(
    ("weeks", "runs"),
    [
        ({"1": [0, 1, 2]}, [{0, 1, 2}]),
        ({"1": [0, 1, 4, 5], "2": [2, 3]}, [{0, 1}, {4, 5}, {2, 3}]),
        ({"1": [0, 2], "2": [1, 2]}, [{0}, {2}, {1, 2}]),
    ],
)
def test_a_line_does_not_lead_over_weeks_in_which_its_version_decided_nothing(
    weeks: dict[str, list[int]], runs: list[set[int]]
) -> None:
    found: dict[int, set[int]] = {}
    for each in drawn_rows(weekly(weeks)):
        week = (date.fromisoformat(each["week"][:10]) - MONDAY).days // 7
        found.setdefault(each["run"], set()).add(week)
        assert each["alone"] is (len(runs[each["run"] - 1]) == 1)
    assert list(found.values()) == runs


def test_more_versions_than_can_be_told_apart_are_left_out_and_counted() -> None:
    from workbench.charts.rates import COLOURS, SHAPES

    chart = weekly({f"{number:02}": [0, 1] for number in range(len(COLOURS) + 3)})
    assert len({each["policy_version"] for each in drawn_rows(chart)}) == len(COLOURS) == len(SHAPES)
    assert "3 more" in chart["title"]["subtitle"][-1]


def test_rates_show_those_with_the_most_outcomes_in_their_order() -> None:
    rows = pl.DataFrame([row(1 + number % 7, name=f"{number:03}") for number in range(100)])
    chart = charted(rows)
    names = [each["name"] for each in drawn_rows(chart)]
    assert names == sorted(names)
    assert len(names) == 40
    assert {int(name) % 7 for name in names} == {6, 5, 4}
    assert "60 more" in chart["title"]["subtitle"][-1]


def test_a_row_without_a_rate_is_not_drawn() -> None:
    rows = pl.DataFrame([row(name="known"), row(0, name="unknown", success_rate=None)])
    drawn = drawn_rows(charted(rows))
    assert [each["told"] for each in drawn] == ["100.0% of 4"]


def drawn_by(report: EffectivenessReport) -> dict[str, Any]:
    drawn: dict[str, Any] = report.plot().to_dict()
    return drawn


def test_weeks_of_which_little_is_known_yet_are_hollow_and_the_subtitle_says_so() -> None:
    rows = [
        row(week=MONDAY + timedelta(weeks=week), policy_version="1", terminal_coverage=covered)
        for week, covered in enumerate((1.0, 0.5, 0.49))
    ]
    chart = drawn_by(EffectivenessReport(BODY, pl.DataFrame(), pl.DataFrame(rows), "acme"))
    assert [each["open"] for each in drawn_rows(chart)] == [False, False, True]
    assert any("Hollow points" in line for line in chart["title"]["subtitle"])
    assert not any("Hollow points" in line for line in weekly({"1": [0, 1]})["title"]["subtitle"])


def test_a_version_below_the_others_is_named_beside_the_scope() -> None:
    versions = [{"policy_version": "2", "below_others": True}, {"policy_version": "1", "below_others": False}]
    body = {**BODY, "policy_version": "2", "versions_below_others": 1, "versions": versions}
    rows = pl.DataFrame([row(week=MONDAY, policy_version="2")])
    subtitle = drawn_by(EffectivenessReport(body, pl.DataFrame(), rows, "acme"))["title"]["subtitle"]
    assert subtitle[:2] == ["Scope acme; version 2.", "Below the other versions: 2."]


@pytest.mark.parametrize(("last", "format_"), [(3, "%d %b %Y"), (30, "%b %Y")])
def test_the_weeks_are_told_with_month_and_year(last: int, format_: str) -> None:
    chart = weekly({"1": [0, last]})
    assert chart["layer"][0]["encoding"]["x"]["axis"]["format"] == format_


def test_an_empty_chart_says_why() -> None:
    without = pl.DataFrame([row(0, name="unknown", success_rate=None)], schema_overrides={"success_rate": pl.Float64})
    for rows, told in ((without, "There are no terminal outcomes."), (without.clear(), "There are no decisions.")):
        assert charted(rows)["title"]["subtitle"] == [told]
