"""Every report of a scope in which callers named everything so that it would run as a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tests.support.samples import sample_rulebook
from tests.workbench.charts.frames import charts as of_frames
from tests.workbench.made_up import DAY, HOUR, MONDAY, WEEK, MadeUp
from workbench.engines.anomalies.report import AnomalyReport, anomalies
from workbench.engines.benchmarks import benchmarks
from workbench.engines.confidence import confidence
from workbench.engines.counterfactuals import counterfactuals
from workbench.engines.effectiveness import effectiveness
from workbench.engines.roll_up import roll_up
from workbench.lake.reader import Snapshot

if TYPE_CHECKING:
    import altair as alt

TAGS: Final = '</script><img src="//evil.example/x" onerror="alert(1)"><script>alert(2)</script><!--<script>'
TEXTS: Final = "&lt;img src=x onerror=alert(3)&gt;'+alert(4)+'\"]);alert(5)//${alert(6)}[a].b\\"
LINES: Final = "\u2028</title><svg onload=alert(7)>\u202e\n]]><iframe src=javascript:alert(8)>\x1b[31m\x00"
NAMES: Final = (TAGS, f"{TEXTS} {LINES}")
"""Tags; and what breaks templates, expressions, entities, lines and terminals."""

KINDS: Final = {"lifecycle_break", "outcome_shift", "verdict_shift", "volume", "metric_outlier", "fact_drift"}


@dataclass(frozen=True, slots=True)
class Shown:
    """What the engines show of a scope.

    Attributes:
        charts: Every chart that they plot, by a name.
        pages: Every report as a page.
        tables: Frames as Polars shows them.
    """

    charts: dict[str, alt.LayerChart | alt.FacetChart]
    pages: list[str]
    tables: list[str]


def named(name: str, lake: Path) -> Snapshot:
    """A scope whose scope name, policy, version, reasons, rules, metrics and facts are all named alike."""
    chain = MadeUp()
    body: dict[str, Any] = {**sample_rulebook(), "rulebook_id": name, "version": name}
    # A dot would lead to a field within a field.
    fact = name.replace(".", "")
    schema = body["input_schema"]
    body["input_schema"] = {**schema, "properties": {**schema["properties"], fact: {"type": "string"}}}
    for week in range(24):
        last = week == 14
        for number in range(120 if last else 24):
            at = MONDAY + week * WEEK + HOUR * number
            facts = {"discount_percent": 10, "margin_percent": 22, fact: name if last else "a"}
            decision_id = chain.decide(
                at,
                reason=name if last and number % 2 else "OTHER",
                version=name,
                policy_id=name,
                facts=facts,
                rulebook=body,
            )
            chain.entries[-1] |= {"evidence": ["CODE", f"rule:{name}"], "action": name}
            value = 1e6 if (week, number) == (5, 5) else 1 + (5 * number + 3 * week) % 7
            chain.outcome(decision_id, at + DAY, "failed" if last else "succeeded", observed_metrics={name: value})
            chain.receipt(decision_id, at + DAY, flags=["ACTION_BINDING_MISMATCH"])
    snapshot = chain.snapshot(lake)
    return replace(snapshot, manifest=replace(snapshot.manifest, scope=name))


def shown(name: str, lake: Path) -> Shown:
    """Everything that the engines show of it."""
    snapshot = named(name, lake)
    of = effectiveness(snapshot, name)
    odd = anomalies(snapshot, name, threshold=0, max_items=200)
    again = counterfactuals(snapshot, name, patch={"unread": name, "margin_percent": 1})
    reports: list[Any] = [
        of,
        effectiveness(snapshot, name, policy_version=name),
        confidence(snapshot, name, action=name),
        odd,
        benchmarks(snapshot, name, policy_version=name),
        again,
        roll_up(snapshot),
    ]
    charts = {f"{at} {type(report).__name__}": report.plot() for at, report in enumerate(reports)}
    charts |= {f"by {by}": of.plot(by) for by in ("version", "verdict", "rule")}
    charts |= dict(_each(odd))
    charts |= of_frames(name)
    frames = [snapshot.cases().collect(), snapshot.metrics().collect(), pl.DataFrame({name: [name]})]
    frames += [report.frame for report in reports]
    return Shown(charts, [of._repr_html_() for of in reports], [frame._repr_html_() for frame in frames])


def _each(odd: AnomalyReport) -> Iterator[tuple[str, alt.LayerChart | alt.FacetChart]]:
    """The first anomaly of each kind."""
    kinds = [of["kind"] for of in odd.body["anomalies"]]
    assert {*kinds} >= KINDS, kinds
    for kind in sorted(KINDS):
        yield kind, odd.plot(kinds.index(kind))
