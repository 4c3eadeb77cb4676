"""Verdicts, reasons, rules, delays of outcomes and metrics: what each chart shows, leaves out and says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
import pytest

from tests.workbench.charts.frames import latency, leads, metrics, mix, reasons, rules
from workbench.charts.colours import FEW, FIGURE, OF

if TYPE_CHECKING:
    import altair as alt

Chart: TypeAlias = "alt.LayerChart | alt.FacetChart"


def layers(chart: Chart) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each layer of a chart, with its rows."""
    spec: dict[str, Any] = chart.to_dict()
    return [(layer, spec["datasets"][layer.get("data", spec.get("data"))["name"]]) for layer in spec["layer"]]


def notes(chart: Chart) -> str:
    from workbench.charts.svg import titles

    return " ".join(titles(chart).notes)


def verdicts_of(frame: pl.DataFrame, **more: Any) -> Chart:
    from workbench.charts.weekly import verdicts

    return verdicts(frame, "Verdicts", [], **more)


def latency_of(frame: pl.DataFrame, **more: Any) -> Chart:
    from workbench.charts.weekly import latency as plotted

    return plotted(frame, "Latency", [], **more)


def reasons_of(frame: pl.DataFrame, **more: Any) -> Chart:
    from workbench.charts.counts import reasons as plotted

    return plotted(frame, "Reasons", [], **more)


def rules_of(frame: pl.DataFrame, **more: Any) -> Chart:
    from workbench.charts.counts import rules as plotted

    return plotted(frame, "Rules", [], **more)


def metrics_of(frame: pl.DataFrame, **more: Any) -> Chart:
    from workbench.charts.metrics import by_version

    return by_version(frame, "revenue_eur", "Metrics", [], **more)


@pytest.mark.parametrize(
    ("plot", "frame"),
    [
        (verdicts_of, mix(1)),
        (latency_of, latency(1.0)),
        (reasons_of, reasons("A")),
        (rules_of, rules("a", never=("b",))),
        (metrics_of, metrics("revenue_eur", "1")),
    ],
)
@pytest.mark.parametrize("some", [0, 1, None], ids=["none", "one row", "all"])
def test_each_is_drawn_at_both_widths_of_no_row_one_row_and_more(
    plot: Callable[..., Chart], frame: pl.DataFrame, some: int | None
) -> None:
    from workbench.charts.svg import to_svg

    chart = plot(frame if some is None else frame.head(some), link=leads)
    for width in (880, 350):
        assert (some != 0) is ("<a " in to_svg(chart, width=width))


def test_a_weeks_bars_stand_on_each_other_in_the_order_of_verdicts_over_all_versions() -> None:
    ((_, rows),) = layers(verdicts_of(mix(2)))
    first = [(of["verdict"], of["below"], of["above"]) for of in rows[:3]]
    assert first == [("yes", 0, 30), ("no", 30, 50), ("review", 50, 60)]
    assert [of["below"] for of in rows[3:]] == [0, 30, 50]


def test_verdicts_have_the_colours_of_their_meaning() -> None:
    for chart in (verdicts_of(mix(1)), reasons_of(reasons("A", "B"))):
        scale = layers(chart)[0][0]["encoding"]["color"]["scale"]
        assert dict(zip(scale["domain"], scale["range"], strict=True)) == {of: OF[of] for of in ("yes", "no", "review")}


def test_a_bar_leads_to_its_week_and_verdict_and_says_its_share() -> None:
    ((_, rows),) = layers(verdicts_of(mix(1), link=lambda row: f"/{row['week']}/{row['verdict']}"))
    assert [of["href"] for of in rows] == [
        f"https://workbench.invalid/2026-06-01/{verdict}" for verdict in ("yes", "no", "review")
    ]
    assert rows[2]["says"] == "Review, week of 1 June 2026: 17% of 60 decisions; shows these decisions"


def test_no_more_than_fifteen_reasons_are_shown_the_most_frequent_first() -> None:
    names = [f"REASON_{number:02}" for number in range(20)]
    chart = reasons_of(reasons(*reversed(names)))
    (bars, rows), (_, numbers) = layers(chart)
    assert [of["name"] for of in numbers] == names[:4:-1]
    assert {of["name"] for of in rows} == {*names[5:]}
    assert bars["encoding"]["y"]["sort"] == names[:4:-1]
    assert "5 more reasons with fewer decisions are left out." in notes(chart)


def test_a_reason_with_two_verdicts_is_one_row_with_both_and_their_sum_beside_it() -> None:
    (_, rows), (_, numbers) = layers(reasons_of(reasons("A", "B"), link=leads))
    assert [(of["label"], of["verdict"]) for of in rows] == [("A", "yes"), ("A", "review"), ("B", "no")]
    assert [of["told"] for of in numbers] == ["40 (80%)", "10 (20%)"]
    assert rows[0]["says"] == "A, yes: 20 decisions, 80% of 40 cases succeeded; shows these decisions"


def test_rules_are_named_as_people_know_them_and_those_that_never_hit_are_shown_as_such() -> None:
    frame = rules("a", never=("never",)).with_columns(pl.col("rule").replace({"rule:a": "schema:failed"}))
    (_, rows), (_, numbers) = layers(rules_of(frame, link=lambda row: f"/{row['rule']}"))
    assert [(of["label"], of["told"]) for of in numbers] == [("the schema check", "10 (100%)"), ("never", "never hit")]
    (row,) = rows
    assert row["href"].endswith("/schema:failed")
    assert "80% of 40 cases succeeded, the last on 1 July 2026" in row["says"]


@pytest.mark.parametrize(("hours", "unit", "length"), [(10, "hours", 10), (30, "days", 1.25)])
def test_delays_are_in_hours_or_days_by_their_size(hours: float, unit: str, length: float) -> None:
    (line, rows), _ = layers(latency_of(latency(hours)))
    assert line["encoding"]["y"]["title"] == f"Time from the decision to its first outcome ({unit})"
    assert sorted(of["length"] for of in rows) == [length, 3 * length]


def test_the_lines_of_delays_pause_over_weeks_without_an_outcome_and_few_outcomes_are_grey() -> None:
    chart = latency_of(latency(5, 6, None, 7))
    _, (points, rows) = layers(chart)
    assert [of["run"] for of in rows] == [1, 1, 2, 3, 3, 4]
    assert "Grey" not in notes(chart)
    few = latency_of(latency(5, with_outcome=19))
    assert points["encoding"]["color"]["condition"]["value"] == FEW
    assert [of["few"] for of in layers(few)[1][1]] == [True, True]
    assert "Gray: fewer than 20 outcomes." in notes(few)
    assert "recent weeks look faster than they are" in notes(few)


def test_a_metric_is_shown_by_version_in_its_unit_and_thin_ones_are_grey() -> None:
    frame = pl.concat(
        [metrics("revenue_eur", "1", "2"), metrics("revenue_eur", "3", decisions=19), metrics("other", "4")]
    )
    chart = metrics_of(frame)
    (bars, rows), *_ = layers(chart)
    assert bars["encoding"]["x"]["title"] == "Revenue (EUR)"
    assert [(of["label"], of["told"], of["colour"]) for of in rows] == [
        ("1", "12 of 40", FIGURE),
        ("2", "13 of 40", FIGURE),
        ("3", "12 of 19", FEW),
    ]
    assert "Gray: fewer than 20 values." in notes(chart)


def test_a_metrics_tick_says_the_median_and_the_middle_half() -> None:
    (_, rows), *_ = layers(metrics_of(metrics("revenue_eur", "1"), link=leads))
    assert rows[0]["says"] == (
        "Version 1: median 12 of 40 values, the middle half from 10 to 15; shows these decisions"
    )
