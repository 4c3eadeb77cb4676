"""What anomalies look like: all of a report over time, and one of them beside what it stands out from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import altair as alt
import polars as pl

from gate.policy.anomalies.anomaly import AnomalyDocument
from workbench.charts.rates import COLOURS, PERCENT, SHAPES, SHARE, most, told_of
from workbench.engines.rendering import cut

_SEVERITIES: Final = {"high": "#d55e00", "medium": "#e69f00", "low": "#56b4e9"}
"""Of the colours that the colour-blind tell apart, by severity."""

_CALLED: Final = {
    "lifecycle_break": "Break",
    "outcome_shift": "Outcomes shifted",
    "verdict_shift": "Verdicts shifted",
    "volume": "Volume",
    "metric_outlier": "Metric",
    "fact_drift": "Facts drifted",
}
_SHADE: Final = "#d55e00"
_WIDTH: Final = 680
_HEIGHT: Final = 280
_STEP: Final = 22
_VALUES: Final = 6
_LONGEST_BINS: Final = 20
# A window of one hour must still be visible in a year.
_LEAST: Final = timedelta(days=3)
_BESIDE: Final = timedelta(weeks=10)


def overview(frame: pl.DataFrame, policy_id: str, about: Sequence[str]) -> alt.LayerChart | alt.FacetChart:
    """Each anomaly of a report as a bar from where it begins to where it ends, the strongest on top."""
    called = [
        f"{_CALLED[kind]}: {cut(subject)}" if subject else _CALLED[kind]
        for kind, subject in frame.select("kind", "subject").iter_rows()
    ]
    rows = frame.with_columns(
        pl.Series("name", [f"{at + 1}. {name}" for at, name in enumerate(called)], pl.String),
        pl.max_horizontal("to", pl.col("from") + _LEAST).alias("until"),
    )
    rows, left_out = most(rows, pl.col("score"))
    base = alt.Chart(rows).encode(
        y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(grid=True, labelLimit=320)),
        x=alt.X("from:T", title="From when to when (UTC)", axis=alt.Axis(format="%b %Y", labelOverlap=True)),
        tooltip=told_of("severity", "score", "kind", "subject", "from", "to", "decisions", "summary"),
    )
    scale = alt.Scale(domain=list(_SEVERITIES), range=list(_SEVERITIES.values()))
    bars = base.mark_bar(height=10).encode(
        x2=alt.X2("until:T"), color=alt.Color("severity:N", title="Severity", scale=scale, sort=None)
    )
    scores = base.mark_text(align="left", dx=6, fontSize=11).encode(
        x=alt.X("until:T"), text=alt.Text("score:Q", format=".2f")
    )
    subtitle = [*about, "Beside each bar its score." if rows.height else "Nothing stands out."]
    if left_out:
        subtitle.append(f"{left_out:,} more with lower scores are left out.")
    title = alt.TitleParams(f"What is anomalous about {cut(policy_id)}", subtitle=subtitle, anchor="start")
    return alt.layer(bars, scores).properties(title=title, width=_WIDTH, height=alt.Step(_STEP))


def shift(anomaly: AnomalyDocument, weekly: pl.DataFrame, about: Sequence[str]) -> alt.LayerChart | alt.FacetChart:
    """The rates that shifted, week by week, with the window and the weeks it is compared with."""
    changes = anomaly["numbers"]["changes"]
    shown = [(change["of"], change["value"]) for change in changes[:_VALUES]]
    names = [value if of != "reason" else f"reason {value}" for of, value in shown]
    named = pl.DataFrame({"of": [of for of, _ in shown], "value": [value for _, value in shown], "name": names})
    first, last = _window(anomaly)
    near = pl.col("week").is_between((first - _BESIDE).date(), (last + _BESIDE).date())
    rows = weekly.join(named, on=["of", "value"]).filter(near & pl.col("rate").is_not_null()).sort("name", "week")
    scale = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    shapes = alt.Scale(domain=names, range=list(SHAPES[: len(names)]))
    whole = f"Share of {'terminal outcomes' if anomaly['kind'] == 'outcome_shift' else 'decisions'}"
    base = alt.Chart(rows).encode(
        x=_time("week:T", "Week of the decision (its Monday, UTC)"),
        y=alt.Y("rate:Q", title=whole, axis=PERCENT, scale=SHARE),
        color=alt.Color("name:N", title="What shifted", scale=scale),
        tooltip=told_of("week", "name", "rate", "count", "whole"),
    )
    lines = base.mark_line(strokeWidth=2)
    points = base.mark_point(filled=True, size=50, opacity=1).encode(
        shape=alt.Shape("name:N", title="What shifted", scale=shapes)
    )
    return _titled([_shade(anomaly), lines, points], anomaly, about, shaded=True)


def count(anomaly: AnomalyDocument, cases: pl.LazyFrame, about: Sequence[str]) -> alt.LayerChart | alt.FacetChart:
    """How many decisions there were, by day around a window of volume, by week for a break."""
    every = "1w" if anomaly["kind"] == "lifecycle_break" else "1d"
    first, last = _window(anomaly)
    near = pl.col("created_at").is_between(first - _BESIDE, last + _BESIDE)
    start = pl.col("created_at").dt.truncate(every).alias("start")
    rows = cases.filter(near).group_by(start).agg(pl.len().alias("decisions")).sort("start").collect()
    called = "Week" if every == "1w" else "Day"
    bars = (
        alt.Chart(rows)
        .mark_bar(color=COLOURS[0])
        .encode(
            x=_time("start:T", f"{called} of the decision (UTC)"),
            y=alt.Y("decisions:Q", title="Decisions"),
            tooltip=told_of("start", "decisions"),
        )
    )
    return _titled([_shade(anomaly), bars], anomaly, about, shaded=True)


def drift(anomaly: AnomalyDocument, about: Sequence[str]) -> alt.LayerChart | alt.FacetChart:
    """The fact that drifted most: the share of decisions in each bin, before and within the window."""
    fact = anomaly["numbers"]["facts"][0]
    wholes = {name: max(1, sum(of[name] for of in fact["bins"])) for name in ("before", "within")}
    rows = pl.DataFrame(
        [
            {"holds": cut(of["holds"]), "when": when, "share": of[name] / wholes[name], "decisions": of[name]}
            for of in fact["bins"][:_LONGEST_BINS]
            for name, when in (("before", "the weeks before"), ("within", "the window"))
        ]
    )
    when = alt.Scale(domain=["the weeks before", "the window"], range=[COLOURS[0], _SHADE])
    bars = (
        alt.Chart(rows)
        .mark_bar()
        .encode(
            y=alt.Y("holds:N", title=fact["fact"], sort=None, axis=alt.Axis(labelLimit=320)),
            yOffset=alt.YOffset("when:N", sort=["the weeks before", "the window"]),
            x=alt.X("share:Q", title="Share of decisions", axis=PERCENT),
            color=alt.Color("when:N", title="Decided in", scale=when),
            tooltip=told_of("holds", "when", "share", "decisions"),
        )
    )
    told = f"{fact['fact']}: stability index {fact['stability_index']:.2f}."
    return _titled([bars], anomaly, [*about, told], height=alt.Step(12))


def outlier(anomaly: AnomalyDocument, about: Sequence[str]) -> alt.LayerChart | alt.FacetChart:
    """The farthest values of a metric, each with what is usual for its kind."""
    numbers = anomaly["numbers"]
    rows = pl.DataFrame(
        [
            {"name": f"{at + 1}. {id_[-8:]}", "decision_id": id_, **far}
            for at, (id_, far) in enumerate(zip(anomaly["decision_ids"], numbers["farthest"], strict=False))
        ]
    )
    base = alt.Chart(rows).encode(
        y=alt.Y("name:N", title="Decision (end of its id)", sort=None),
        tooltip=told_of("decision_id", "value", "usual", "modified_z"),
    )
    scale = alt.Scale(zero=False, type="log" if numbers["scale"] == "ratio" else "linear")
    axis = alt.X("usual:Q", title=numbers["metric"], scale=scale)
    rules = base.mark_rule(strokeWidth=1.5, color="#888888").encode(x=axis, x2=alt.X2("value:Q"))
    usual = base.mark_tick(thickness=3, size=14, color=COLOURS[0]).encode(x=alt.X("usual:Q"))
    values = base.mark_point(filled=True, size=80, opacity=1, color=_SHADE).encode(x=alt.X("value:Q"))
    distances = base.mark_text(align="left", dx=8, fontSize=11).encode(
        x=alt.X("value:Q"), text=alt.Text("modified_z:Q", format=".1f")
    )
    told = "Ticks: what is usual. Dots: the value, with its distance in robust standard deviations."
    return _titled([rules, usual, values, distances], anomaly, [*about, told], height=alt.Step(_STEP))


def _titled(
    layers: Sequence[alt.Chart],
    anomaly: AnomalyDocument,
    about: Sequence[str],
    *,
    height: int | alt.Step = _HEIGHT,
    shaded: bool = False,
) -> alt.LayerChart | alt.FacetChart:
    told = [anomaly["summary"], *about, *(["Shaded: the window."] if shaded else [])]
    severity, name = anomaly["severity"], _CALLED[anomaly["kind"]]
    called = f"{name}: {cut(anomaly['subject'])}" if anomaly["subject"] else name
    title = alt.TitleParams(f"{called} ({severity}, {anomaly['anomaly_score']:.2f})", subtitle=told, anchor="start")
    return alt.layer(*layers).properties(title=title, width=_WIDTH, height=height)


def _shade(anomaly: AnomalyDocument) -> alt.Chart:
    first, last = _window(anomaly)
    rows = pl.DataFrame({"first": [first], "last": [max(last, first + _LEAST)]})
    shade: alt.Chart = (
        alt.Chart(rows).mark_rect(opacity=0.15, color=_SHADE).encode(x=alt.X("first:T"), x2=alt.X2("last:T"))
    )
    return shade


def _time(column: str, title: str) -> alt.X:
    return alt.X(column, title=title, axis=alt.Axis(format="%d %b %Y", labelOverlap=True))


def _window(anomaly: AnomalyDocument) -> tuple[datetime, datetime]:
    window = anomaly["window"]
    return datetime.fromisoformat(window["from"]), datetime.fromisoformat(window["to"])
