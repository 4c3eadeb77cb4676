"""Which anomalies are alerts, how long each is open, and how they stand."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.policy.anomalies.alerts import MAX_ALERTS, alerts_report, open_alerts
from gate.policy.anomalies.breaks import Broken
from gate.policy.questions import AlertsQuestion
from tests.gate.policy.anomalies.support import NOTHING, counted, report_of

AS_OF = "2026-06-30T12:00:00.000Z"


def report_with(kind: str = "duplicate_execution", last: str = AS_OF, as_of: str = AS_OF) -> dict[str, Any]:
    """A report with one anomaly, of a window that ended then."""
    broken = Broken(kind, 1, 1000, "2026-01-05T00:00:00.000Z", last, (7,))
    return report_of(counted(broken=[broken], decisions=30, as_of=as_of))


def alerts_of(*alerts: Any, **more: Any) -> dict[str, Any]:
    told = {"policies": 1, "more_policies": 0, "as_of": AS_OF, "chain_position": 9, "merkle_root": "a" * 64}
    return alerts_report(alerts, AlertsQuestion(), **{**told, **more})


@pytest.mark.parametrize(
    ("last", "is_open"),
    [
        (AS_OF, True),
        ("2026-04-01T12:00:00.001Z", True),
        ("2026-04-01T12:00:00.000Z", True),
        ("2026-04-01T11:59:59.999Z", False),
        ("2026-07-09T00:00:00.000Z", True),
    ],
)
def test_an_anomaly_is_open_until_so_many_days_after_its_window(last: str, is_open: bool) -> None:
    assert bool(open_alerts(report_with(last=last), AlertsQuestion())) is is_open


@pytest.mark.parametrize(("open_days", "is_open"), [(1, False), (29, False), (30, True), (400, True)])
def test_it_is_open_as_long_as_is_asked(open_days: int, is_open: bool) -> None:
    question = AlertsQuestion(open_days=open_days)
    assert bool(open_alerts(report_with(last="2026-05-31T12:00:00.000Z"), question)) is is_open


@pytest.mark.parametrize(
    ("kind", "is_alert"),
    [
        ("duplicate_execution", True),
        ("executed_without_yes", True),
        ("state_mismatch", False),
        ("outcome_reversed", False),
    ],
)
def test_only_what_is_high_is_an_alert(kind: str, is_alert: bool) -> None:
    assert bool(open_alerts(report_with(kind), AlertsQuestion())) is is_alert


def test_an_alert_names_its_policy_and_the_path_of_its_report() -> None:
    (alert,) = open_alerts(report_with(), AlertsQuestion())
    assert alert["policy_id"] == "refunds"
    assert alert["report"] == "/api/decision/policies/refunds/anomalies?threshold=0.8"
    assert alert["anomaly"] == report_with()["anomalies"][0]


def test_a_chain_without_entries_has_no_alerts() -> None:
    assert open_alerts(report_of(NOTHING), AlertsQuestion()) == []


def test_alerts_that_cost_the_same_stand_by_their_scores_and_of_equal_ones_by_their_subjects() -> None:
    low, *_ = open_alerts(report_with(), AlertsQuestion())
    high, *_ = open_alerts(report_with("executed_without_yes"), AlertsQuestion())
    other, *_ = open_alerts(report_with("binding_mismatch"), AlertsQuestion())
    told = alerts_of(low, other, high)
    assert told == alerts_of(high, low, other)
    stand = [(of["anomaly"]["anomaly_score"], of["anomaly"]["subject"]) for of in told["alerts"]]
    assert stand == [(1, "executed_without_yes"), (0.9, "binding_mismatch"), (0.9, "duplicate_execution")]


def test_alerts_stand_by_what_they_cost_whatever_their_scores() -> None:
    dear = Broken("duplicate_execution", 40, 1000, "2026-01-05T00:00:00.000Z", AS_OF, (7,))
    costly = open_alerts(report_of(counted(broken=[dear], decisions=1000, as_of=AS_OF)), AlertsQuestion())
    strong = open_alerts(report_with("executed_without_yes"), AlertsQuestion())
    told = alerts_of(*strong, *costly)["alerts"]
    assert [(of["anomaly"]["anomaly_score"], of["anomaly"]["effect"]["cases"]) for of in told] == [(0.9, 40), (1, 1)]


def test_of_more_than_a_hundred_all_are_counted_and_the_strongest_are_listed() -> None:
    (weak,), (strong,) = (
        open_alerts(report_with(kind), AlertsQuestion()) for kind in ("duplicate_execution", "executed_without_yes")
    )
    told = alerts_of(*[weak] * MAX_ALERTS, strong)
    assert (told["alert_count"], len(told["alerts"])) == (101, 100)
    assert told["alerts"][0] == strong


def test_the_answer_keeps_the_contract_and_carries_its_hash() -> None:
    for alerts in ([], open_alerts(report_with(), AlertsQuestion())):
        told = alerts_of(*alerts)
        jsonschema.Draft202012Validator(resources.schema("policy-alerts")).validate(told)
        assert told.pop("alerts_hash") == content_hash(told)
