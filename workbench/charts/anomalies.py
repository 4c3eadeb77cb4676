"""All anomalies of a report over time, and one of them with its context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import altair as alt
import polars as pl

from gate.policy.anomalies.anomaly import AnomalyDocument
from workbench.charts import colours
from workbench.charts.drawing import (
    COUNT,
    PERCENT,
    SHARE,
    Drawn,
    Link,
    labels,
    legend,
    linked,
    months,
    names_axis,
    rows,
    titled,
    tooltip,
    with_links,
)
from workbench.charts.rates import most
from workbench.engines.anomalies.sentences import KINDS
from workbench.engines.findings import FEW
from workbench.engines.findings import anomaly as found_in
from workbench.engines.rendering import cut
from workbench.engines.wording import counted, day, described, in_words, phrase, whole_percent

_SEVERITIES: Final = ("high", "medium", "low")
_WIDTH: Final = 680
_HEIGHT: Final = 280
_STEP: Final = 22
_VALUES: Final = 6
_LONGEST_BINS: Final = 20
# A window of one hour must still be visible in a year.
_LEAST: Final = timedelta(days=3)
_BEFORE: Final = "the weeks before"
_WITHIN: Final = "the window"


def overview(frame: pl.DataFrame, finding: str, notes: Sequence[str], *, link: Link | None = None) -> Drawn:
    """Each anomaly of a report as a bar from where it begins to where it ends, the strongest on top.

    Args:
        frame: The anomalies, as a report lists them, with `at`, the place of each in the report.
        finding: The sentence above the chart.
        notes: What was looked at.
        link: What the bar of an anomaly leads to; `at` is its place in the report, from 0.
    """
    called = [f"{at}. {_called(*row)}" for at, row in enumerate(frame.select("kind", "subject").iter_rows(), 1)]
    shown = with_links(frame, link, _says, shows="the anomaly")
    shown = shown.with_columns(
        pl.Series("name", labels(called), pl.String),
        pl.col("kind").replace_strict(KINDS, return_dtype=pl.String),
        pl.max_horizontal("to", pl.col("from") + _LEAST).alias("until"),
    )
    shown, left_out = most(shown, pl.col("score"))
    base = rows(shown).encode(
        y=alt.Y("name:N", sort=None, axis=names_axis(None)),
        x=alt.X("from:T", title="Time span (UTC)", axis=months(pl.concat([shown["from"], shown["until"]]))),
        tooltip=tooltip("severity", "score", "kind", "from", "to", "decisions", "summary"),
    )
    scale = alt.Scale(domain=list(_SEVERITIES), range=[colours.OF[severity] for severity in _SEVERITIES])
    bars = base.mark_bar(height=10).encode(
        x2=alt.X2("until:T"),
        # Clear of the scores next to the bars.
        color=alt.Color("severity:N", legend=alt.Legend(title="Severity", offset=48), scale=scale, sort=None),
    )
    scores = base.mark_text(align="left", dx=6, fontSize=11).encode(
        x=alt.X("until:T"), text=alt.Text("score:Q", format=".2f")
    )
    how = ["Right of each bar: its score, from 0 to 1."] if shown.height else []
    if left_out:
        how.append(f"{left_out:,} more with lower scores are left out.")
    layers = [linked(bars, link), scores]
    return titled(layers, finding, [*notes, " ".join(how)], width=_WIDTH, height=alt.Step(_STEP), outside=200)


def shift(anomaly: AnomalyDocument, beside: pl.DataFrame, notes: Sequence[str], *, link: Link | None = None) -> Drawn:
    """The rates that shifted, week by week, with the window and the weeks it is compared with."""
    changes = anomaly["numbers"]["changes"][:_VALUES]
    of_values = [(change["of"], change["value"]) for change in changes]
    shown_names = labels([value if of != "reason" else f"reason {value}" for of, value in of_values])
    of_what = legend("What shifted")
    # A caller may well have a reason code that is called `yes`.
    told_apart = colours.of_names([value if of != "reason" else "" for of, value in of_values])
    named = pl.DataFrame({"of": [of for of, _ in of_values], "value": [value for _, value in of_values]})
    named = named.with_columns(pl.Series("label", shown_names, pl.String))
    shown = beside.join(named, on=["of", "value"]).sort("label", "week")
    shown = with_links(shown.with_columns((pl.col("whole") < FEW).alias("few")), link, _says_share)
    colour = alt.Color("label:N", legend=of_what, scale=alt.Scale(domain=shown_names, range=told_apart))
    shapes = alt.Scale(domain=shown_names, range=list(colours.SHAPES[: len(shown_names)]))
    ended = anomaly["kind"] == "outcome_shift"
    whole = "Share of let-through cases (with a final outcome)" if ended else "Share of decisions"
    base = rows(shown).encode(
        x=_time("week:T", "Week of the decision (from Monday, UTC)"),
        y=alt.Y("rate:Q", title=whole, axis=PERCENT, scale=SHARE),
        color=colour,
        tooltip=tooltip("week", "label", "rate", "count", "whole"),
    )
    lines = base.mark_line(strokeWidth=2)
    points = base.mark_point(filled=True, size=50, opacity=1).encode(
        shape=alt.Shape("label:N", legend=of_what, scale=shapes),
        color=alt.condition("datum.few", alt.value(colours.FEW), colour),
    )
    grey = [f"Gray: fewer than {FEW} {'cases' if ended else 'decisions'}."] if shown["few"].any() else []
    return _titled([_shade(anomaly), lines, linked(points, link)], anomaly, [*notes, *grey], shaded=True)


def level(anomaly: AnomalyDocument, beside: pl.DataFrame, notes: Sequence[str], *, link: Link | None = None) -> Drawn:
    """Where the values of a metric lie, week by week, with the window: medians, and the middle half of the values."""
    shown = beside.with_columns((pl.col("values") < FEW).alias("few"))
    shown = with_links(shown, link, _says_level)
    metric = labels([described(anomaly["numbers"]["metric"])])[0]
    scale = alt.Scale(zero=False)
    base = rows(shown).encode(
        x=_time("week:T", "Week of the decision (from Monday, UTC)"),
        tooltip=tooltip("week", "values", "low", "median", "high"),
    )
    half = base.mark_area(opacity=0.25, color=colours.FIGURE).encode(
        y=alt.Y("low:Q", title=metric, scale=scale), y2=alt.Y2("high:Q")
    )
    line = base.mark_line(strokeWidth=2, color=colours.FIGURE).encode(y=alt.Y("median:Q", title=metric, scale=scale))
    points = base.mark_point(filled=True, size=50, opacity=1).encode(
        y=alt.Y("median:Q", title=metric, scale=scale),
        color=alt.condition("datum.few", alt.value(colours.FEW), alt.value(colours.FIGURE)),
    )
    told = ["Line: the median. Band: the middle half of the values."]
    told += [f"Gray: fewer than {FEW} values."] if shown["few"].any() else []
    version = anomaly["numbers"]["levels"][0]["version"]
    told += [f"Only version {cut(version)}."] if version is not None else []
    return _titled([_shade(anomaly), half, line, linked(points, link)], anomaly, [*notes, *told], shaded=True)


def count(anomaly: AnomalyDocument, beside: pl.DataFrame, notes: Sequence[str], *, link: Link | None = None) -> Drawn:
    """How many decisions there were, by day or week around a window of volume, by week for a break."""
    shown = with_links(beside, link, _says_count)
    unit = "Week" if (beside["unit"] == "week").all() else "Day"
    bars = (
        rows(shown)
        .mark_bar(color=colours.FIGURE)
        .encode(
            x=_time("start:T", f"{unit} of the decision (UTC)"),
            y=alt.Y("decisions:Q", title="Decisions", axis=COUNT),
            tooltip=tooltip("start", "decisions"),
        )
    )
    # A break has no window: it begins with its first decision and ends with its last.
    if anomaly["kind"] == "lifecycle_break":
        return _titled([linked(bars, link)], anomaly, notes)
    return _titled([_shade(anomaly), linked(bars, link)], anomaly, notes, shaded=True)


def drift(anomaly: AnomalyDocument, notes: Sequence[str]) -> Drawn:
    """The fact that drifted most: the share of decisions in each bin, before and within the window."""
    fact = anomaly["numbers"]["facts"][0]
    wholes = {when: max(1, sum(of[when] for of in fact["bins"])) for when in ("before", "within")}
    bins = fact["bins"][:_LONGEST_BINS]
    shown = pl.DataFrame(
        [
            {"holds": holds, "when": when, "share": of[key] / wholes[key], "decisions": of[key]}
            for of, holds in zip(bins, labels([of["holds"] for of in bins]), strict=True)
            for key, when in (("before", _BEFORE), ("within", _WITHIN))
        ]
    )
    when = alt.Scale(domain=[_BEFORE, _WITHIN], range=[colours.REFERENCE, colours.FIGURE])
    bars = (
        rows(shown)
        .mark_bar()
        .encode(
            y=alt.Y("holds:N", sort=None, axis=names_axis(labels([described(fact["fact"])])[0])),
            yOffset=alt.YOffset("when:N", sort=[_BEFORE, _WITHIN]),
            x=alt.X("share:Q", title="Share of decisions", axis=PERCENT),
            color=alt.Color("when:N", title="Decided in", scale=when),
            tooltip=tooltip("holds", "when", "share", "decisions"),
        )
    )
    others = len(anomaly["numbers"]["facts"]) - 1
    told = [f"Population stability index {fact['stability_index']:.2f}."]
    told += [f"{others:,} more facts drifted less."] if others else []
    return _titled([bars], anomaly, [*notes, " ".join(told)], height=alt.Step(12))


def outlier(anomaly: AnomalyDocument, notes: Sequence[str], *, link: Link | None = None) -> Drawn:
    """The farthest values of a metric, each with what is usual for its kind."""
    numbers = anomaly["numbers"]
    shown = pl.DataFrame(
        [
            {"name": f"{at + 1}. {id_[-8:]}", "decision_id": id_, **far}
            for at, (id_, far) in enumerate(zip(anomaly["decision_ids"], numbers["farthest"], strict=False))
        ]
    )
    shown = with_links(shown, link, _says_value, shows="the decision")
    base = rows(shown).encode(
        y=alt.Y("name:N", sort=None, axis=names_axis("Decision (end of its id)")),
        tooltip=tooltip("decision_id", "value", "usual", "modified_z"),
    )
    scale = alt.Scale(zero=False, padding=40, type="log" if numbers["scale"] == "ratio" else "linear")
    axis = alt.X("usual:Q", title=labels([described(numbers["metric"])])[0], scale=scale)
    rules = base.mark_rule(strokeWidth=1.5, color="#888888").encode(x=axis, x2=alt.X2("value:Q"))
    usual = base.mark_tick(thickness=3, size=14, color=colours.REFERENCE).encode(x=alt.X("usual:Q"))
    values = base.mark_point(filled=True, size=80, opacity=1, color=colours.FIGURE).encode(x=alt.X("value:Q"))
    under = shown["usual"] > shown["value"]
    number = base.encode(x=alt.X("value:Q"), text=alt.Text("value:Q", format=",.6~g"))
    above = number.transform_filter("datum.value >= datum.usual").mark_text(align="left", dx=8, fontSize=11)
    below = number.transform_filter("datum.usual > datum.value").mark_text(align="right", dx=-8, fontSize=11)
    told = "Ticks: the usual value. Dots: the reported value."
    beside = [layer for layer, any_ in ((above, (~under).any()), (below, under.any())) if any_]
    return _titled([rules, usual, linked(values, link), *beside], anomaly, [*notes, told], height=alt.Step(_STEP))


def _called(kind: str, subject: str | None) -> str:
    """An anomaly in two or three words."""
    if subject is None:
        return KINDS[kind]
    if kind == "lifecycle_break":
        return phrase(subject)
    of_metric = kind in ("metric_outlier", "metric_shift")
    return f"{KINDS[kind]}: {cut(in_words(subject))}" if of_metric else f"{KINDS[kind]} by {subject}"


def _says(row: Mapping[str, Any]) -> str:
    """What the bar of an anomaly shows."""
    when = day(row["from"]) if day(row["from"]) == day(row["to"]) else f"{day(row['from'])} to {day(row['to'])}"
    return f"{row['severity'].capitalize()} severity, {when}: {row['summary'].removesuffix('.')}"


def _says_share(row: Mapping[str, Any]) -> str:
    """What a point of a week shows."""
    return f"{row['label']}, week of {day(row['week'])}: {whole_percent(row['rate'])} of {row['whole']:,}"


def _says_level(row: Mapping[str, Any]) -> str:
    """What the point of a week shows of a metric."""
    when = f"Week of {day(row['week'])}"
    return f"{when}: a median of {row['median']:,.6g} of {counted(row['values'], 'value')}"


def _says_count(row: Mapping[str, Any]) -> str:
    """What the bar of a day or a week shows."""
    when = f"Week of {day(row['start'])}" if row["unit"] == "week" else day(row["start"])
    return f"{when}: {counted(row['decisions'], 'decision')}"


def _says_value(row: Mapping[str, Any]) -> str:
    """What the point of a decision shows."""
    return f"Decision {row['decision_id']}: {row['value']:,.6g}, where {row['usual']:,.6g} is usual"


def _titled(
    layers: Sequence[alt.Chart],
    anomaly: AnomalyDocument,
    notes: Sequence[str],
    *,
    height: int | alt.Step = _HEIGHT,
    shaded: bool = False,
) -> Drawn:
    first, last = _window(anomaly)
    # A window ends where it is over: of days and weeks, at the midnight after the last.
    until = max(first, last - timedelta(milliseconds=1))
    when = day(first) if day(first) == day(until) else f"{day(first)} to {day(until)}"
    told = f"{anomaly['severity'].capitalize()} severity, score {anomaly['anomaly_score']:.2f}. {when}."
    how = "Yellow: the window." if shaded else ""
    return titled(
        layers, found_in(anomaly), [told, " ".join([*notes, how]).strip()], width=_WIDTH, height=height, outside=140
    )


def _shade(anomaly: AnomalyDocument) -> alt.Chart:
    first, last = _window(anomaly)
    shown = pl.DataFrame({"first": [first], "last": [max(last, first + _LEAST)]})
    shade: alt.Chart = (
        rows(shown).mark_rect(opacity=0.3, color=colours.WINDOW).encode(x=alt.X("first:T"), x2=alt.X2("last:T"))
    )
    return shade


def _time(column: str, title: str) -> alt.X:
    return alt.X(column, title=title, axis=alt.Axis(format="%-d %b %Y", labelOverlap="greedy"))


def _window(anomaly: AnomalyDocument) -> tuple[datetime, datetime]:
    window = anomaly["window"]
    return datetime.fromisoformat(window["from"]), datetime.fromisoformat(window["to"])
