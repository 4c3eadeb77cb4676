"""A misspelt policy, version, scope or table is refused with the names that there are; the service's reports stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gate.errors import GateError, OperatorError
from gate.policy.questions import EffectivenessQuestion
from tests.support.samples import sample_rulebook
from tests.workbench.made_up import DAY, MONDAY, MadeUp
from workbench.engines import effectiveness as engine
from workbench.engines.anomalies.report import anomalies
from workbench.engines.benchmarks import benchmarks
from workbench.engines.confidence import confidence
from workbench.engines.counterfactuals import counterfactuals
from workbench.engines.effectiveness import effectiveness
from workbench.lake.names import choices
from workbench.lake.reader import Lake, Snapshot

ASKED: list[Callable[..., Any]] = [anomalies, benchmarks, confidence, counterfactuals, effectiveness]


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """A scope that decided by two policies, one of them in two versions."""
    chain = MadeUp()
    for policy_id, version in (("refund_policy", "2026-01"), ("refund_policy", "2026-02"), ("pricing", "7")):
        body = {**sample_rulebook(), "rulebook_id": policy_id, "version": version}
        decision_id = chain.decide(MONDAY, policy_id=policy_id, version=version, rulebook=body)
        chain.outcome(decision_id, MONDAY + DAY, observed_metrics={"margin": 1})
    return chain.snapshot(tmp_path)


def refused(ask: Callable[[], object]) -> str:
    with pytest.raises(OperatorError) as caught:
        ask()
    assert isinstance(caught.value, GateError)
    assert caught.value.code in ("LAKE_POLICY_UNKNOWN", "LAKE_SCOPE_UNKNOWN", "LAKE_TABLE_UNKNOWN")
    return caught.value.message


@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.__name__)
def test_an_unknown_policy_or_version_is_refused_with_those_that_there_are(
    ask: Callable[..., Any], snapshot: Snapshot
) -> None:
    assert refused(lambda: ask(snapshot, "refund_polcy")) == (
        "Scope 'acme' has no decision of policy 'refund_polcy'. Did you mean 'refund_policy'? "
        "There are 'pricing' and 'refund_policy'."
    )
    assert refused(lambda: ask(snapshot, "refund_policy", policy_version="7")) == (
        "'refund_policy' in scope 'acme' has no version '7'. There are '2026-01' and '2026-02'."
    )
    assert ask(snapshot, "refund_policy", policy_version="2026-02").to_dict()["policy_version"] == "2026-02"


def test_the_question_of_the_service_about_an_unknown_policy_gets_an_empty_report(snapshot: Snapshot) -> None:
    body = engine.answer(snapshot, EffectivenessQuestion("refund_polcy")).to_dict()
    assert body["coverage"]["decisions"] == 0


def test_a_scope_without_any_decision_refuses_no_policy(tmp_path: Path) -> None:
    for ask in ASKED:
        assert ask(MadeUp().snapshot(tmp_path), "refund_policy").to_dict()["policy_id"] == "refund_policy"


def test_an_unknown_scope_or_table_is_refused_with_those_that_there_are(snapshot: Snapshot, tmp_path: Path) -> None:
    lake = Lake(tmp_path, [snapshot.manifest])
    assert "no scope 'acmee'. Did you mean 'acme'? There is 'acme'." in refused(lambda: lake.scope("acmee"))
    assert "no table 'outcome'. Did you mean 'outcomes'? There are 'cases', " in refused(lambda: lake.table("outcome"))


def test_the_message_lists_twenty_names_at_most_and_what_does_not_print_as_escapes() -> None:
    many = choices("policy-5\n", [f"policy-{number:03}" for number in range(3_000)])
    assert many.endswith(", 'policy-019' and 2,980 more.")
    assert len(many) < 500
    assert choices("x", ["a\x1b[31m\u202e", "b" * 500]) == f"There are 'a\\x1b[31m\\u202e' and '{'b' * 120}...'."
    assert choices("y" * 1_000_000, []) == "There is none yet."


def test_a_metric_that_no_outcome_measured_is_refused_with_those_that_there_are(snapshot: Snapshot) -> None:
    with pytest.raises(OperatorError) as caught:
        counterfactuals(snapshot, "refund_policy", metrics=["margn"])
    assert caught.value.code == "METRIC_UNKNOWN"
    assert caught.value.message.startswith(
        "No outcome has the metric 'margn', and it is not a fact in the form inputs.NAME."
    )
    assert "Did you mean 'margin'? There are" in caught.value.message
    with pytest.raises(OperatorError, match=r"not a fact in the form inputs\.NAME"):
        counterfactuals(snapshot, "refund_policy", metrics=["margin", "inputs.amuont"])
    assert counterfactuals(snapshot, "refund_policy", metrics=["margin"]).to_dict()["metrics"] == ["margin"]
