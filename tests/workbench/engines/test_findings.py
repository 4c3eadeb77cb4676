"""The sentence above a chart: its finding with the numbers, or that there is none; and the words of tables and axes."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gate.policy.anomalies.breaks import RULES
from gate.policy.anomalies.statistics import Share
from gate.policy.effectiveness import Group, Standing, together
from gate.policy.effectiveness_report import effectiveness_report
from gate.policy.questions import EffectivenessQuestion
from gate.policy.versions import compare_versions
from tests.gate.policy.counting import AT
from tests.support.reports import EMPTY, report_of_versions
from tests.workbench.charts.frames import latency, metrics, mix, reasons, rules
from tests.workbench.engines.edges import POLICY, chained, decision, outcome, snapshot_of
from workbench.engines import findings
from workbench.engines.confidence import confidence
from workbench.engines.effectiveness import effectiveness
from workbench.engines.findings import approvals, worth
from workbench.engines.wording import amount, day, described, heading, in_words, moment, month, span, whole_percent

GOOD, BAD = Standing(succeeded=86, failed=14), Standing(succeeded=63, failed=37)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({}, "No decisions by p"),
        ({"1": Standing(pending=2, unreported=29)}, "None of 31 decisions by p has a final outcome yet"),
        ({"1": Standing(succeeded=19)}, "Too few let-through cases to judge p: 19 of at least 20"),
        ({"1": GOOD}, "p succeeded in 86% of 100 let-through cases"),
        ({"1": GOOD, "2": GOOD}, "p succeeded in 86% of 200 let-through cases; no version does worse than the others"),
        # Of nine cases nothing can be said.
        ({"1": GOOD, "2": Standing(failed=9)}, "p succeeded in 79% of 109 let-through cases"),
        (
            {"1": GOOD, "2": BAD},
            "Version 2 succeeded in 63% of 100 let-through cases, the others in 86% of 100 like ones",
        ),
        (
            {**{f"v{at}": Standing(succeeded=90, failed=10) for at in range(20)}, "x": BAD, "y": BAD},
            "Versions x and y do worse than the others",
        ),
    ],
)
def test_the_title_of_versions_states_the_finding_or_that_there_is_none(
    parts: dict[str, Standing], sentence: str
) -> None:
    assert findings.versions_success(report_of_versions(parts)) == sentence


@pytest.mark.parametrize(
    ("part", "parts", "sentence"),
    [
        ("verdict", {"yes": GOOD, "no": BAD}, "Verdict no succeeded in 63% of 100 cases, the others in 86% of 100"),
        (
            "rule",
            {"rule:a": GOOD, "rule:b": GOOD, "rule:default": BAD},
            "Decisions by the default outcome succeeded in 63% of 100 cases, the others in 86% of 200",
        ),
        (
            "rule",
            {**{f"rule:{at}": Standing(succeeded=90, failed=10) for at in range(20)}, "rule:x": BAD, "rule:y": BAD},
            "Decisions by x and y succeeded in 63% of 200 cases, the others in 90% of 2,000",
        ),
    ],
)
def test_the_title_states_the_finding(part: str, parts: dict[str, Standing], sentence: str) -> None:
    assert findings.success("p", part, parts) == sentence


def test_a_version_that_met_harder_cases_is_not_said_to_do_worse() -> None:
    cells = {
        "A": {"easy": Share(810, 900), "hard": Share(60, 100)},
        "B": {"easy": Share(90, 100), "hard": Share(540, 900)},
    }
    parts = {"A": Standing(succeeded=870, failed=130), "B": Standing(succeeded=630, failed=370)}
    counted = replace(
        EMPTY,
        by_version={name: Group(of, AT, AT) for name, of in parts.items()},
        by_disposition={"let_through": together(parts.values())},
        let_through=parts,
        compared=compare_versions(cells, 1.0, min_sample=20),
    )
    body = effectiveness_report(counted, EffectivenessQuestion("p"))
    assert findings.versions(body) == "None of 2 versions does worse than the others among like cases"
    assert findings.versions_success(body).endswith("; no version does worse than the others")
    assert findings.version(body, "B", parts["B"]) == (
        "Version B of p succeeded in 75% and the others in 75%, adjusted to one mix of cases (unadjusted: 63% of 1,000 "
        "let-through cases and 87% of 1,000)"
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
            "Compared with the median of others: success rate 0.9 points below and approval rate 4.5 points above",
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


def test_verdicts_are_told_with_their_shares_of_all_decisions() -> None:
    assert findings.verdicts(mix(2)) == "120 decisions: 50% yes, 33% no, 17% review"
    assert findings.verdicts(mix(1).filter(pl.col("verdict") == "no")) == "20 decisions: 100% no"
    assert findings.verdicts(mix(0)) == "No decisions"


def test_the_most_frequent_reason_is_told_with_its_share() -> None:
    assert findings.reasons(reasons("A", "B")) == "A is the most frequent of 2 reasons: 40 of 50 decisions (80%)"
    assert findings.reasons(reasons("A")) == "A is the only reason, of 20 decisions"
    assert findings.reasons(reasons()) == "No decisions"
    equal = reasons("B", "A").with_columns(pl.lit(5).alias("decisions")).filter(pl.col("verdict") != "review")
    assert findings.reasons(equal).startswith("A is the most frequent of 2 reasons: 5 of 10")


def test_rules_that_never_hit_are_counted() -> None:
    some = rules("a", "b", never=("c",))
    assert findings.rules(some) == "a is the most frequent of 2 rules: 20 of 30 decisions (67%); 1 rule never hit"
    assert findings.rules(rules("a")) == "a is the only rule, of 10 decisions"
    assert findings.rules(rules(never=("a", "b"))) == "No decisions; 2 rules never hit"
    assert findings.rules(rules("x" * 100)).startswith(f"{'x' * 60}... is the only rule")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (latency(), "No decisions"),
        (latency(None, None), "No outcome with a date yet, of 120 decisions"),
        (latency(5.0, with_outcome=19), "Too few outcomes to judge how long they take: no week has 20"),
        (
            latency(20.0),
            "In the week of 1 June 2026, half of 40 first outcomes came within 20 hours, 90% within 2.5 days",
        ),
        (
            latency(1.0, 2.0, None, 12.0),
            "In a typical week, half of the first outcomes came within 2 hours, 90% within 6 hours "
            "(medians of 3 weeks)",
        ),
    ],
)
def test_the_time_to_an_outcome_is_that_of_weeks_with_enough_of_them(rows: pl.DataFrame, sentence: str) -> None:
    assert findings.latency(rows) == sentence


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (metrics("revenue_eur"), "No values of revenue (EUR)"),
        (metrics("other", "1"), "No values of revenue (EUR)"),
        (
            metrics("revenue_eur", "1", decisions=19),
            "Too few values of revenue (EUR) to compare versions: none has 20",
        ),
        (metrics("revenue_eur", "1"), "The median of revenue (EUR) is 12 in 40 decisions by version 1"),
        (
            metrics("revenue_eur", "b", "a"),
            "The median of revenue (EUR) is lowest with version b (12) and highest with version a (13)",
        ),
        (
            metrics("revenue_eur", "1", "2").with_columns(pl.lit(7.0).alias("median")),
            "The median of revenue (EUR) is 7 for each of 2 versions",
        ),
    ],
)
def test_the_medians_of_a_metric_are_compared_between_versions(rows: pl.DataFrame, sentence: str) -> None:
    assert findings.metric(rows, "revenue_eur") == sentence


@pytest.mark.parametrize(
    ("hours", "told"),
    [(0.0, "0 minutes"), (0.5, "30 minutes"), (1, "1 hour"), (5.5, "5.5 hours"), (47, "47 hours"), (48, "2 days")],
)
def test_a_length_of_time_is_told_in_the_unit_that_suits_it(hours: float, told: str) -> None:
    assert span(hours) == told
    assert span(24 * 365) == "365 days"


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({}, "No decisions by version 2 of p"),
        ({"2": Standing(succeeded=7)}, "Too few cases to judge version 2 of p: 7 of at least 20"),
        ({"2": BAD}, "Version 2 of p succeeded in 63% of 100 let-through cases"),
        (
            {"1": GOOD, "2": BAD},
            "Version 2 of p succeeded in 63% of 100 let-through cases, the others in 86% of 100 like ones",
        ),
        ({"1": Standing(succeeded=19), "2": BAD}, "Version 2 of p succeeded in 63% of 100 let-through cases"),
    ],
)
def test_a_version_is_compared_with_the_others_where_these_have_cases(
    parts: dict[str, Standing], sentence: str
) -> None:
    assert findings.version(report_of_versions(parts), "2", parts.get("2", Standing())) == sentence


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({}, "No version decided"),
        ({"1": GOOD}, "Version 1 made every decision"),
        ({"1": GOOD, "2": GOOD}, "None of 2 versions does worse than the others among like cases"),
        ({"1": GOOD, "2": BAD}, "1 of 2 versions does worse than the others: 2"),
        ({"1": GOOD, "2": Standing(failed=9)}, "Too few like cases to compare 2 versions: fewer than two have 20"),
        (
            {"1": Standing(succeeded=9000), **dict.fromkeys("abcde", BAD)},
            "5 of 6 versions do worse than the others: a, b, c and 2 more",
        ),
    ],
)
def test_versions_that_do_worse_are_named(parts: dict[str, Standing], sentence: str) -> None:
    assert findings.versions(report_of_versions(parts)) == sentence


def fifties(*succeeded: int) -> pl.DataFrame:
    """Weeks with so many successes of 50 cases each."""
    days = [date(2026, 1, 5) + timedelta(weeks=at) for at in range(len(succeeded))]
    return pl.DataFrame({"week": days, "succeeded": succeeded, "failed": [50 - each for each in succeeded]})


def test_the_lowest_and_the_highest_week_are_dated() -> None:
    assert findings.weeks(fifties(40, 20, 45)) == (
        "Success was lowest in the week of 12 January 2026 (40% of 50 cases) and highest in the week of "
        "19 January 2026 (90% of 50)"
    )
    low = fifties(0, 0, 0, 9).tail(1).with_columns(failed=pl.lit(2, pl.Int64))
    assert findings.weeks(pl.concat([fifties(40, 20, 45), low])).startswith(
        "Among weeks of at least 20 cases, success was lowest in the week of 12 January 2026 (40% of 50 cases)"
    )
    assert findings.weeks(fifties(40)) == "In the week of 5 January 2026, 80% of 50 cases succeeded"
    assert findings.weeks(fifties(40, 40)) == "Each of 2 weeks succeeded in 80% of its cases"
    few = fifties(0, 9).tail(1).with_columns(failed=pl.lit(2, pl.Int64))
    assert findings.weeks(pl.concat([fifties(40), few])) == (
        "Only the week of 5 January 2026 has at least 20 cases: 80% of 50 succeeded"
    )
    none = fifties(40).with_columns(pl.lit(0).alias("succeeded"))
    assert findings.weeks(none) == "Too few cases to compare weeks: none has 20"


def test_two_versions_in_one_week_are_one_week() -> None:
    rows = pl.concat([fifties(50), fifties(0)])
    assert findings.weeks(rows) == "In the week of 5 January 2026, 50% of 100 cases succeeded"


def test_a_policy_without_final_outcomes_is_told_by_its_verdicts() -> None:
    rows = pl.DataFrame({"verdict": ["yes", "review"], "decisions": [3, 1]})
    assert findings.volume("p", rows) == "4 decisions by p, none with a final outcome yet: 75% yes, 25% review"
    assert findings.volume("p", rows.clear()) == "No decisions by p"


def found(kind: str, subject: str = "", *, start: str, end: str, **more: Any) -> dict[str, Any]:
    """An anomaly with a window."""
    return {"kind": kind, "subject": subject, "window": {"from": f"{start}Z", "to": f"{end}Z"}, **more}


@pytest.mark.parametrize(
    ("anomaly", "sentence"),
    [
        (
            found(
                "outcome_shift",
                start="2026-10-12T00:00:00.000",
                end="2026-10-19T00:00:00.000",
                summary="The share of outcomes that succeeded fell from 89.5% to 33.5%.",
                numbers={},
            ),
            "p: the share of outcomes that succeeded fell from 89.5% to 33.5%, in the week of 12 October 2026",
        ),
        (
            found(
                "volume",
                start="2026-10-16T00:00:00.000",
                end="2026-10-17T00:00:00.000",
                numbers={"decisions": 174, "cells": 1, "grain": "day", "usual": 34},
            ),
            "p: 174 decisions in 1 day, where 34 are usual, on 16 October 2026",
        ),
        (
            found(
                "lifecycle_break",
                "outcome_overdue",
                start="2026-01-01T05:00:00.000",
                end="2026-10-17T07:00:00.000",
                numbers={"count": 75, "of": 1309},
            ),
            "p: 75 of 1,309 decisions were executed more than 30 days ago without a final outcome",
        ),
        (
            found(
                "lifecycle_break",
                "binding_mismatch",
                start="2026-01-01T05:00:00.000",
                end="2026-10-17T07:00:00.000",
                numbers={"count": 1, "of": 1309},
            ),
            "p: 1 of 1,309 decisions has a receipt that states another target",
        ),
    ],
)
def test_a_headline_names_policy_numbers_and_time(anomaly: dict[str, Any], sentence: str) -> None:
    assert findings.headline("p", anomaly) == sentence


def test_a_headline_names_the_time_of_a_break_where_that_is_asked_for() -> None:
    window = {"start": "2026-01-01T05:00:00.000", "end": "2026-01-03T05:00:00.000"}
    broken = found("lifecycle_break", "duplicate_execution", **window, numbers={"count": 1, "of": 9})
    assert findings.headline("p", broken, when=True) == (
        "p: 1 of 9 decisions was executed more than once without being reverted, from 1 January 2026 to 3 January 2026"
    )


def test_every_broken_promise_has_a_sentence_of_its_own() -> None:
    window = {"start": "2026-01-01T05:00:00.000", "end": "2026-01-02T05:00:00.000"}
    for subject in RULES:
        told = findings.headline("p", found("lifecycle_break", subject, **window, numbers={"count": 2, "of": 9}))
        assert told.startswith("p: 2 of 9 decisions "), subject


@pytest.mark.parametrize(
    ("value", "shown"),
    [(143.8, "143.8"), (0.000123, "0.000123"), (1e6, "1,000,000"), (-1234567.4, "-1,234,567"), (1e300, "1e+300")],
)
def test_a_measured_number_is_written_whole_as_far_as_it_is_read(value: float, shown: str) -> None:
    assert amount(value) == shown


def part(was: str, then: str, values: int, total: float | None, metric: str = "loss_eur") -> dict[str, Any]:
    """What a metric comes to in the decisions that go from one verdict to another."""
    return {"metric": metric, "verdict": was, "then_verdict": then, "values": values, "sum": total}


@pytest.mark.parametrize(
    ("cases", "parts", "sentence"),
    [
        (3, [(3, 7.5)], "loss_eur of the 3 that would be approved comes to 7.5."),
        (1, [(1, 7.5)], "loss_eur of the one that would be approved comes to 7.5."),
        (
            13,
            [(3, 600.0), (1, 10.36)],
            "Of the 13 that would be approved, 4 have values of loss_eur, which come to 610.36; the other 9 have none.",
        ),
        (
            2,
            [(1, 5.0)],
            "Of the 2 that would be approved, 1 has a value of loss_eur, which is 5; the other one has none.",
        ),
        (2, [(0, 0.0)], "None of the 2 that would be approved has a value of loss_eur."),
        (1, [], "The one that would be approved has no value of loss_eur."),
        (2, [(2, None)], "loss_eur of the 2 that would be approved comes to more than can be shown."),
    ],
)
def test_a_sum_is_told_with_the_decisions_that_have_no_value(
    cases: int, parts: list[tuple[int, float | None]], sentence: str
) -> None:
    moved = [part("no", "yes", values, total) for values, total in parts]
    assert worth("loss_eur", cases, moved, "would be approved") == [sentence]


def test_nothing_is_summed_over_no_decisions() -> None:
    assert worth("loss_eur", 0, [], "would be approved") == []


def test_approvals_that_would_begin_and_end_are_told_with_each_metric() -> None:
    body: dict[str, Any] = {
        "redecided": 400,
        "verdicts": {"before": {"yes": 100, "no": 300}},
        "let_through": {"more": 312, "fewer": 2},
        "metrics": ["loss_eur", "inputs.amount"],
        "worth": [
            part("no", "yes", 300, 40_000.0),
            part("yes", "review", 2, 9.0),
            part("no", "yes", 312, 5.0, "inputs.amount"),
        ],
    }
    assert approvals(body) == [
        "312 more would be approved, and 2 would no longer be.",
        "Of the 312 that would be approved, 300 have values of loss_eur, which come to 40,000; the other 12 have none.",
        "loss_eur of the 2 that would no longer be approved comes to 9.",
        "inputs.amount of the 312 that would be approved comes to 5.",
        "None of the 2 that would no longer be approved has a value of inputs.amount.",
        "A decision that was not approved has a metric only if its action happened anyway.",
    ]
    assert len(approvals({**body, "metrics": ["inputs.amount"], "worth": body["worth"][2:]})) == 3
    assert approvals({**body, "verdicts": {"before": {"none": 400}}}) == []
    same = {**body, "let_through": {"more": 0, "fewer": 0}, "worth": []}
    assert approvals(same) == ["No approval would be gained or lost."]
