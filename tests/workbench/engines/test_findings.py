"""The sentence above a chart: its finding with the numbers, or that there is none; and the words of tables and axes."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from gate.policy.effectiveness import Standing
from tests.workbench.engines.edges import POLICY, chained, decision, outcome, snapshot_of
from workbench.engines import findings
from workbench.engines.confidence import confidence
from workbench.engines.effectiveness import effectiveness
from workbench.engines.wording import day, described, heading, in_words, moment, month, whole_percent

GOOD, BAD = Standing(succeeded=86, failed=14), Standing(succeeded=63, failed=37)


@pytest.mark.parametrize(
    ("part", "parts", "sentence"),
    [
        ("version", {}, "No decisions by p"),
        ("version", {"1": Standing(pending=2, unreported=29)}, "No outcome of p is terminal yet, of 31 decisions"),
        ("version", {"1": Standing(succeeded=19)}, "Too few cases to judge p: 19 of at least 20"),
        ("version", {"1": GOOD}, "p succeeded in 86% of 100 cases"),
        ("version", {"1": GOOD, "2": GOOD}, "p succeeded in 86% of 200 cases; no version does worse than the others"),
        # Of nine cases nothing can be said.
        ("version", {"1": GOOD, "2": Standing(failed=9)}, "p succeeded in 79% of 109 cases"),
        ("version", {"1": GOOD, "2": BAD}, "Version 2 succeeded in 63% of 100 cases, the others in 86% of 100"),
        ("verdict", {"yes": GOOD, "no": BAD}, "Verdict no succeeded in 63% of 100 cases, the others in 86% of 100"),
        (
            "rule",
            {"rule:a": GOOD, "rule:b": GOOD, "rule:default": BAD},
            "Decisions by the default outcome succeeded in 63% of 100 cases, the others in 86% of 200",
        ),
    ],
)
def test_the_title_states_the_finding_or_that_there_is_none(
    part: str, parts: dict[str, Standing], sentence: str
) -> None:
    assert findings.success("p", part, parts) == sentence


def test_several_that_do_worse_are_counted_together() -> None:
    parts = {**{f"v{at}": Standing(succeeded=90, failed=10) for at in range(20)}, "x": BAD, "y": BAD}
    assert findings.success("p", "version", parts) == (
        "Versions x and y succeeded in 63% of 200 cases, the others in 90% of 2,000"
    )


@pytest.mark.parametrize(
    ("rate", "told"),
    [(0.0, "0%"), (1.0, "100%"), (0.001, "less than 1%"), (0.9999, "more than 99%"), (0.625, "62%"), (0.994, "99%")],
)
def test_no_share_is_rounded_to_none_or_all(rate: float, told: str) -> None:
    assert whole_percent(rate) == told


def benchmark(rate: float | None, terminal: int = 100, *, withheld: bool = False) -> dict[str, Any]:
    of = None if withheld else {"success_rate": {"p25": 0.8, "p75": 0.9}}
    own = {"success_rate": rate, "terminal": terminal}
    return {"policy_id": "p", "your_metrics": own, "cross_customer": {"percentiles": of}}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (benchmark(None, 0), "p has no case to compare"),
        (benchmark(0.5, 4), "Too few cases to compare p: 4 of at least 20"),
        (benchmark(0.85, withheld=True), "p succeeded in 85% of 100 cases; not compared with others"),
        (benchmark(0.75), "p succeeded in 75% of 100 cases, below the middle half of others (80% to 90%)"),
        (benchmark(0.9), "p succeeded in 90% of 100 cases, within the middle half of others (80% to 90%)"),
        (benchmark(0.95), "p succeeded in 95% of 100 cases, above the middle half of others (80% to 90%)"),
    ],
)
def test_a_benchmark_says_where_the_own_rate_lies(body: dict[str, Any], sentence: str) -> None:
    assert findings.benchmark(body) == sentence


@pytest.mark.parametrize(
    ("name", "axis", "sentence"),
    [
        ("revenue_eur", "Revenue (EUR)", "revenue (EUR)"),
        ("margin_percent", "Margin (%)", "margin (%)"),
        ("days_to_close", "Days to close", "days to close"),
        ("order.total_usd", "Order total (USD)", "order total (USD)"),
        ("amount", "Amount", "amount"),
        ("days", "Days", "days"),
        ("Größe in m²", "Größe in m²", "Größe in m²"),
        ("Net_Margin", "Net_Margin", "Net_Margin"),
    ],
)
def test_metrics_and_facts_are_shown_in_words_with_their_unit(name: str, axis: str, sentence: str) -> None:
    assert (described(name), in_words(name)) == (axis, sentence)


def test_dates_are_written_out() -> None:
    assert day(date(2026, 7, 14)) == "14 July 2026"
    assert moment(datetime(2026, 7, 14, tzinfo=UTC)) == "14 July 2026"
    assert moment(datetime(2026, 7, 14, 5, 20, 9, tzinfo=UTC)) == "14 July 2026, 05:20 UTC"
    assert month("2026-09-30T23:59:59.999Z") == "September 2026"
    assert heading("terminal_coverage") == "Terminal coverage"


def test_a_page_begins_with_its_finding_and_shows_no_name_of_a_field(tmp_path: Path) -> None:
    entries = [entry for number in range(30) for entry in (decision(number), outcome(number))]
    snapshot = snapshot_of(chained(entries), tmp_path)
    for report in (effectiveness(snapshot, POLICY), confidence(snapshot, POLICY)):
        html = report._repr_html_()
        cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", html)
        assert [
            cell for cell in cells if re.search(r"[a-z]_[a-z]|\d{4}-\d\d-\d\dT|:", cell) and "UTC" not in cell
        ] == []
        assert "8 June 2026" in html
        assert "</h3><p>" in html
        assert "100% " in html
        assert "@media print" in html


@pytest.mark.parametrize(
    ("across", "sentence"),
    [
        (
            {"deltas": {"success_rate": -0.00917, "approval_rate": 0.044611, "terminal_coverage": None}},
            "Beside the median of others: success rate 0.9 points below and approval rate 4.5 points above",
        ),
        (
            {"deltas": {"success_rate": 0.0, "approval_rate": None, "terminal_coverage": None}},
            "No rate differs from the median of others",
        ),
        ({"deltas": None, "reason": "not_opted_in"}, "Nothing is compared: this scope does not take part"),
        ({"deltas": None, "reason": "not_frozen"}, "Nothing is compared: no month has been frozen yet"),
    ],
)
def test_rates_are_told_beside_the_median_of_others(across: dict[str, Any], sentence: str) -> None:
    assert findings.beside_others({"cross_customer": across}) == sentence
