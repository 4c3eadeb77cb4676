"""Charts of reports: what they leave out, and where their lines break."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from gate.policy.effectiveness import Standing
from tests.support.reports import report_of_versions
from workbench.engines.effectiveness import EffectivenessReport

STATUSES = ("succeeded", "partial", "failed", "reverted", "pending", "review", "unreported")
MONDAY = date(2026, 6, 1)


def row(decisions: int = 4, **more: Any) -> dict[str, Any]:
    counts = {**dict.fromkeys(STATUSES, 0), "succeeded": decisions, "decisions": decisions}
    return {**counts, "success_rate": 1.0, "low": 0.5, "high": 1.0, "terminal_coverage": 1.0, **more}


BODY: dict[str, Any] = report_of_versions({"1": Standing(succeeded=100)})


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

    drawn: dict[str, Any] = rates(rows, "name", named="Name", finding="Rates").to_dict()
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
    from workbench.charts.colours import NAMES, SHAPES

    chart = weekly({f"{number:02}": [0, 1] for number in range(len(NAMES) + 3)})
    assert len({each["policy_version"] for each in drawn_rows(chart)}) == len(NAMES) == len(SHAPES)
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


def notes(chart: dict[str, Any]) -> str:
    return " ".join(chart["title"]["subtitle"])


def title(chart: dict[str, Any]) -> str:
    return " ".join(chart["title"]["text"])


def test_weeks_with_pending_outcomes_are_hollow_and_a_note_says_so() -> None:
    covered = (60, 58, 62, 30, 20)
    rows = [
        {**row(ended, week=MONDAY + timedelta(weeks=week), policy_version="1"), "decisions": 100}
        for week, ended in enumerate(covered)
    ]
    # Of two decisions, one without an outcome says nothing about the week.
    rows.append({**row(1, week=MONDAY + timedelta(weeks=5), policy_version="1"), "decisions": 2})
    chart = drawn_by(EffectivenessReport(BODY, pl.DataFrame(), pl.DataFrame(rows), "acme"))
    assert [each["open"] for each in drawn_rows(chart)] == [False, False, False, True, True, False]
    # Half a year later, nothing more is expected of them.
    rows.append(row(60, week=MONDAY + timedelta(weeks=26), policy_version="1"))
    later = drawn_by(EffectivenessReport(BODY, pl.DataFrame(), pl.DataFrame(rows), "acme"))
    assert not any(each["open"] for each in drawn_rows(later))
    assert "Hollow: recent weeks that still lack many outcomes" in notes(chart)
    assert "Hollow" not in notes(weekly({"1": [0, 1]}))


def test_rates_of_fewer_than_twenty_cases_are_grey_and_a_note_says_so() -> None:
    from workbench.charts.colours import FEW, FIGURE

    rows = [row(number, week=MONDAY + timedelta(weeks=number), policy_version="1") for number in (19, 20)]
    chart = drawn_by(EffectivenessReport(BODY, pl.DataFrame(), pl.DataFrame(rows), "acme"))
    assert [each["few"] for each in drawn_rows(chart)] == [True, False]
    drawn = charted(pl.DataFrame([row(number, name=str(number)) for number in (19, 20)]))
    assert [each["colour"] for each in drawn_rows(drawn)] == [FEW, FIGURE]
    for grey in (chart, drawn):
        assert "Gray: fewer than 20 cases." in notes(grey)
    assert "Grey" not in notes(charted(pl.DataFrame([row(20, name="1")])))


def test_the_title_names_the_version_that_does_worse_with_its_numbers_and_those_of_the_others() -> None:
    bad = {"succeeded": 63, "failed": 37, "success_rate": 0.63}
    rows = [row(100, week=MONDAY, policy_version="1"), row(100, week=MONDAY, policy_version="2", **bad)]
    body = report_of_versions({"1": Standing(succeeded=100), "2": Standing(succeeded=63, failed=37)})
    report = EffectivenessReport({**body, "policy_version": "2"}, pl.DataFrame(), pl.DataFrame(rows), "acme")
    chart = drawn_by(report)
    assert title(chart) == ("Version 2 succeeded in 63% of 100 let-through cases, the others in 100% of 100 like ones")
    assert chart["title"]["subtitle"][0] == "Policy p in scope acme, version 2."


@pytest.mark.parametrize(("last", "format_"), [(3, "%-d %b %Y"), (30, "%b %Y")])
def test_the_weeks_are_told_with_month_and_year(last: int, format_: str) -> None:
    chart = weekly({"1": [0, last]})
    assert chart["layer"][0]["encoding"]["x"]["axis"]["format"] == format_


def test_long_names_stay_apart_and_are_cut_in_their_middle_alone() -> None:
    long = [f"{'release-' * 12}{number}" for number in (1, 2)] + [
        f"x{'y' * 100}{number}{'z' * 30}" for number in (1, 2)
    ]
    drawn = drawn_rows(charted(pl.DataFrame([row(name=name) for name in ["short", "w" * 80, *long]])))
    shown = [each["label"] for each in drawn]
    assert shown[:2] == ["short", "w" * 80]
    assert len(set(shown)) == 6
    assert shown[2].endswith("release-1")
    assert all(len(label) <= 84 for label in shown)
    (axis,) = {json.dumps(layer["encoding"]["y"]["axis"]) for layer in charted(pl.DataFrame([row(name="a")]))["layer"]}
    assert json.loads(axis)["labelLimit"] == 0


def test_a_meaning_has_one_colour_everywhere_and_within_a_chart_no_two_share_one() -> None:
    from workbench.charts import colours

    for meanings in (("yes", "no", "review"), STATUSES[:5], ("high", "medium", "low")):
        assert len({colours.OF[meaning] for meaning in meanings}) == len(meanings)
    assert colours.of_names(["failed", "x", "yes", "y"]) == [
        colours.OF["failed"],
        colours.NAMES[0],
        colours.OF["yes"],
        colours.NAMES[1],
    ]
    # No version looks like a verdict, a figure or what it is compared with.
    assert not {*colours.NAMES} & {*colours.OF.values(), colours.FIGURE, colours.REFERENCE, colours.FEW}


def test_verdicts_have_their_colours_and_other_names_that_of_own_figures() -> None:
    from workbench.charts import colours

    rows = pl.DataFrame([row(40, name=name, part="verdict") for name in ("yes", "no", "review")])
    chart: dict[str, Any] = EffectivenessReport(BODY, rows, pl.DataFrame(), "acme").plot("verdict").to_dict()
    assert [each["colour"] for each in drawn_rows(chart)] == [colours.OF[name] for name in ("yes", "no", "review")]
    body = report_of_versions(dict.fromkeys(("yes", "no", "review"), Standing(succeeded=40)))
    chart = EffectivenessReport(body, pl.DataFrame(), pl.DataFrame(), "acme").plot("version").to_dict()
    # A version may be called `yes`.
    assert {each["colour"] for each in drawn_rows(chart)} == {colours.FIGURE}


def test_axes_and_tooltips_show_no_name_of_a_column() -> None:
    for chart in (weekly({"1": [0, 1]}), charted(pl.DataFrame([row(name="a")]))):
        for layer in chart["layer"]:
            shown = [of.get("title") for of in layer["encoding"].get("tooltip", [])]
            shown += [
                of.get("title") or of.get("axis", {}).get("title")
                for channel, of in layer["encoding"].items()
                if channel in ("x", "y")
            ]
            assert not [text for text in shown if text and "_" in text]


def test_a_policy_without_decisions_or_outcomes_is_drawn_as_an_empty_chart_that_says_so() -> None:
    some = pl.DataFrame([row(0, week=MONDAY, policy_version="1", success_rate=None)])
    some = some.with_columns(pl.lit(30).alias("decisions"), pl.lit(30).alias("unreported"))
    some = some.with_columns(pl.col("success_rate").cast(pl.Float64))
    for rows, parts, told in (
        (some.clear(), {}, "No decisions by p"),
        (some, {"1": Standing(unreported=30)}, "None of 30 decisions by p has a final outcome yet"),
    ):
        chart = drawn_by(EffectivenessReport(report_of_versions(parts), pl.DataFrame(), rows, "acme"))
        assert title(chart) == told
        assert drawn_rows(chart) == []
