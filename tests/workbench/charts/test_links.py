"""What the marks of each report's charts lead to, and that without links the charts stay as they are in notebooks."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from xml.etree.ElementTree import fromstring

import pytest

from tests.workbench.charts.frames import leads
from tests.workbench.hostile import KINDS, named
from workbench.engines.anomalies.report import AnomalyReport, anomalies
from workbench.engines.benchmarks import benchmarks
from workbench.engines.effectiveness import EffectivenessReport, effectiveness
from workbench.lake.reader import Snapshot

_A: Final = "{http://www.w3.org/2000/svg}a"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A scope with anomalies of every kind, in which everything is named `plain`."""
    return named("plain", tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def odd(snapshot: Snapshot) -> AnomalyReport:
    return anomalies(snapshot, "plain", threshold=0, max_items=200)


@pytest.fixture(scope="module")
def done(snapshot: Snapshot) -> EffectivenessReport:
    return effectiveness(snapshot, "plain")


def led_to(chart: Any) -> list[tuple[dict[str, str], str]]:
    """The row that each link of a chart was made of, and its label."""
    from workbench.charts.svg import to_svg

    links = fromstring(to_svg(chart, width=880)).iter(_A)  # noqa: S314 - made by this process
    return [
        (
            {name: values[0] for name, values in parse_qs(urlsplit(link.attrib["href"]).query).items()},
            link.attrib["aria-label"],
        )
        for link in links
    ]


def test_every_listed_anomaly_leads_to_itself(odd: AnomalyReport) -> None:
    found = led_to(odd.plot(link=leads))
    assert [int(row["at"]) for row, _ in found] == [*range(len(odd.body["anomalies"]))]
    assert [row["kind"] for row, _ in found] == [of["kind"] for of in odd.body["anomalies"]]
    for (_, label), of in zip(found, odd.body["anomalies"], strict=True):
        assert label.startswith(of["severity"].capitalize())
        assert of["summary"].removesuffix(".") in label
        assert label.endswith("; shows the anomaly")


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("outcome_shift", "week"),
        ("verdict_shift", "week"),
        ("volume", "start"),
        ("lifecycle_break", "start"),
        ("metric_outlier", "decision_id"),
    ],
)
def test_the_marks_of_one_anomaly_lead_to_their_decisions(kind: str, column: str, odd: AnomalyReport) -> None:
    at = [of["kind"] for of in odd.body["anomalies"]].index(kind)
    found = led_to(odd.plot(at, link=leads))
    assert found
    assert all(row[column] for row, _ in found)
    assert all(
        label.endswith("; shows the decision" if kind == "metric_outlier" else "decisions") for _, label in found
    )


@pytest.mark.parametrize(
    ("by", "column", "value"),
    [("version", "policy_version", "plain"), ("verdict", "verdict", "yes"), ("rule", "rule", "rule:plain")],
)
def test_a_bar_of_rates_leads_to_its_part_under_the_name_that_it_is_filtered_by(
    by: str, column: str, value: str, done: EffectivenessReport
) -> None:
    ((row, label),) = led_to(done.plot(by, link=leads))
    assert row[column] == value
    assert label.endswith(" of 672; shows these decisions")


def test_every_week_leads_to_its_decisions(done: EffectivenessReport) -> None:
    found = led_to(done.plot(link=leads))
    assert len(found) == 24
    assert {row["policy_version"] for row, _ in found} == {"plain"}
    assert found[0][0]["week"] == "2026-01-05"
    assert found[0][1] == "Version plain, week of 5 January 2026: 100% of 24 cases; shows these decisions"


def test_every_rate_of_benchmarks_leads_somewhere(snapshot: Snapshot) -> None:
    found = led_to(benchmarks(snapshot, "plain").plot(link=leads))
    assert [row["metric"] for row, _ in found] == ["success_rate", "approval_rate", "terminal_coverage"]
    assert found[0][1].startswith("Success rate: ")


def test_in_a_notebook_no_chart_has_a_link(odd: AnomalyReport, done: EffectivenessReport, snapshot: Snapshot) -> None:
    plotted = [done.plot(), done.plot("rule"), odd.plot(), benchmarks(snapshot, "plain").plot()]
    kinds = [of["kind"] for of in odd.body["anomalies"]]
    plotted += [odd.plot(kinds.index(kind)) for kind in sorted(KINDS)]
    for chart in plotted:
        for layer in chart.to_dict()["layer"]:
            assert not {"href", "description"} & {*layer["encoding"]}
