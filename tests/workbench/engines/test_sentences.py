"""What pages write about anomalies: findings over each part, reasons in words, and how far one grew."""

from __future__ import annotations

from typing import Any

import pytest

from gate.policy.anomalies.breaks import RULES
from workbench.engines.anomalies import sentences


def listed(severity: str, score: float, **more: Any) -> Any:
    """An anomaly as a report lists it, as far as a sentence reads it."""
    window = {"from": "2026-10-12T00:00:00.000Z", "to": "2026-10-19T00:00:00.000Z"}
    return {"severity": severity, "anomaly_score": score, "window": window, "summary": "The share rose.", **more}


def change(of: str, value: str, p_value: float) -> dict[str, Any]:
    """A change from 90% to 30%."""
    before, within = {"count": 90, "of": 100, "rate": 0.9}, {"count": 30, "of": 100, "rate": 0.3}
    return {"of": of, "value": value, "before": before, "within": within, "p_value": p_value, "required_p": 1e-6}


@pytest.mark.parametrize(
    ("severities", "opened", "sentence"),
    [
        ([], 0, "No anomalies in 4 policies"),
        (["high"], 1, "1 anomaly in 4 policies: 1 high; open"),
        (["high"], 0, "1 anomaly in 4 policies: 1 high; none is open"),
        (["low", "high", "low"], 3, "3 anomalies in 4 policies: 1 high and 2 low; all are open"),
        (["low", "medium", "high"], 1, "3 anomalies in 4 policies: 1 high, 1 medium and 1 low; 1 is open"),
        (["low", "low", "low"], 2, "3 anomalies in 4 policies: 3 low; 2 are open"),
        (["low", "low"], None, "2 anomalies in 4 policies: 2 low"),
    ],
)
def test_a_list_is_counted_by_severity_and_by_what_is_open(
    severities: list[str], opened: int | None, sentence: str
) -> None:
    found = [listed(severity, 0.5) for severity in severities]
    assert sentences.several(found, of="4 policies", opened=opened) == sentence


def test_the_strongest_is_named_with_its_score() -> None:
    found = [listed("low", 0.4), listed("high", 0.91, summary="174 decisions\nin 3 days.")]
    assert sentences.strongest(found) == "The strongest has score 0.91: 174 decisions\ufffdin 3 days"


def test_a_window_ends_with_its_last_day() -> None:
    assert sentences.days(listed("high", 0.9)) == "12 October 2026 to 18 October 2026"
    moment = {"from": "2026-10-12T05:00:00.000Z", "to": "2026-10-12T05:00:00.000Z"}
    assert sentences.days(listed("high", 0.9, window=moment)) == "12 October 2026"


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("outcome_fell:succeeded", "The share of outcomes that succeeded fell."),
        ("reason_rose:A:B_C", "The share of reason A:B_C rose."),
        ("verdict_fell:no", "The share of verdict no fell."),
        ("fact_drifted:days_since_purchase", "The values of days since purchase changed."),
        ("fact_drifted:a:b", "The values of a:b changed."),
        ("more_decisions_than_usual", "There were more decisions than usual."),
        ("metric_far_from_usual", "Values of the metric are unusual."),
        *((name, f"{rule.meaning}.") for name, rule in RULES.items()),
    ],
)
def test_each_reason_is_a_sentence(reason: str, sentence: str) -> None:
    assert sentences.reasons(listed("high", 0.9, reasons=[reason])) == [sentence]


@pytest.mark.parametrize(
    ("p_values", "sentence"),
    [
        ([1e-9], "1 rate changed, by more than chance explains"),
        ([1e-9, 1e-3], "2 rates changed; chance may explain 1 of the changes"),
        ([1e-3, 1e-3], "2 rates changed; chance may explain 2 of the changes"),
    ],
)
def test_changes_that_chance_may_explain_are_counted(p_values: list[float], sentence: str) -> None:
    changes = [change("outcome", "succeeded", p_value) for p_value in p_values]
    found = listed("high", 0.9, kind="outcome_shift", numbers={"changes": changes})
    assert sentences.evidence(found) == sentence
    assert sentences.surroundings(found) == "Succeeded: 30% of 100 in the window, 90% of 100 before"


@pytest.mark.parametrize(
    ("reason", "many"), [("more_decisions_than_usual", "many"), ("fewer_decisions_than_usual", "few")]
)
def test_a_volume_is_told_as_many_or_few(reason: str, many: str) -> None:
    numbers = {"grain": "day", "cells": 3, "decisions": 174, "times": 5.12, "modified_z": 8.57, "required_z": 4.57}
    found = listed("high", 0.8, kind="volume", reasons=[reason], numbers=numbers)
    assert sentences.surroundings(found) == f"174 decisions in 3 days: 5.1 times as {many} as usual"
    assert sentences.evidence(found) == (
        "The count lies 8.6 robust standard deviations from usual; it stands out from 4.6"
    )


def test_severities_are_explained_by_their_scores() -> None:
    assert "0.8" in sentences.severity_means("high")
    assert "0.6 to below 0.8" in sentences.severity_means("medium")
    assert "below 0.6" in sentences.severity_means("low")


def test_one_that_grew_is_told_apart_from_one_that_did_not() -> None:
    now = listed("high", 0.82)
    assert sentences.grown("medium", 0.67, now) == (
        "It has grown since: medium, score 0.67, then; high, score 0.82, now"
    )
    assert sentences.grown("high", 0.82, now).startswith("It has not grown since: high, score 0.82, then")


@pytest.mark.parametrize(
    ("kind", "cases", "said", "whole"),
    [
        ("lifecycle_break", 1, "1 decision, lasting", "1 decision shows it"),
        ("metric_outlier", 9, "9 decisions, lasting", "9 decisions show it"),
        ("metric_shift", 60, "60 decisions, lasting", "60 decisions of the window"),
        ("outcome_shift", 60, "About 60 decisions, lasting", "60 decisions of the window"),
        ("fact_drift", 1, "About 1 decision, lasting", "1 decision of the window"),
        ("volume", 60, "About 60 decisions, lasting", "60 decisions of the window"),
    ],
)
def test_what_is_counted_is_not_about_and_not_every_decision_of_a_window_shows_it(
    kind: str, cases: int, said: str, whole: str
) -> None:
    effect = {"cases": cases, "value": None, "lasting": True, "harm": None}
    found = listed("low", 0.5, kind=kind, effect=effect)
    assert sentences.effect(found) == said
    assert sentences.shown(found, cases) == whole
