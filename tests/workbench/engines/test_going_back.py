"""What the version before would have decided, where a new one came with an anomaly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gate.errors import OperatorError
from gate.rulebooks.rulebook import load
from tests.workbench.made_up import HOUR, MONDAY, WEEK, MadeUp
from tests.workbench.rollouts import A_WEEK, AFTER, POLICY, pricing, rollout
from workbench.engines.anomalies.going_back import GoingBack
from workbench.engines.anomalies.report import AnomalyReport, anomalies


@pytest.fixture(scope="module")
def loosened() -> MadeUp:
    """The second version approves any margin."""
    return rollout(pricing("1"), pricing("2", floor=0))


def reported(chain: MadeUp, lake: Path, policy_id: str = POLICY) -> AnomalyReport:
    return anomalies(chain.snapshot(lake), policy_id)


def back_from(report: AnomalyReport, kind: str = "outcome_shift") -> GoingBack | None:
    """Going back from the first anomaly of a kind."""
    return report.going_back(next(at for at, of in enumerate(report.body["anomalies"]) if of["kind"] == kind))


def within(chain: MadeUp, window: dict[str, str]) -> list[dict[str, Any]]:
    """The decisions of a window."""
    return [of for of in chain.entries if window["from"] <= of.get("created_at", "") < window["to"]]


@pytest.mark.parametrize("kind", ["outcome_shift", "verdict_shift"])
def test_going_back_decides_the_window_as_the_gate_does_by_the_version_before(
    loosened: MadeUp, tmp_path: Path, kind: str
) -> None:
    report = reported(loosened, tmp_path)
    back = back_from(report, kind)
    assert back is not None
    (anomaly,) = [of for of in report.body["anomalies"] if of["kind"] == kind]
    decisions = within(loosened, anomaly["window"])
    evaluator = load(pricing("1")).evaluator
    other = {
        of["decision_id"]
        for of in decisions
        if evaluator.decide(loosened.requests[of["decision_id"]]["context"]["inputs"]).decision != of["verdict"]
    }
    assert 0 < len(other) < len(decisions)
    assert set(back.report.decisions.collect()["decision_id"]) == other
    assert back.report.body["redecided"] == len(decisions)
    assert (back.before, back.versions) == ("1", ("2",))
    assert back.sentences() == [
        f"Going back to version 1 would have changed the verdict of {len(other)} of {len(decisions)} decisions (33%).",
        f"{len(other)} of those with another verdict failed or were reverted.",
    ]
    assert repr(back) == " ".join(back.sentences())


def test_the_last_entry_of_the_chain_is_in_a_window_that_goes_on(tmp_path: Path) -> None:
    body = pricing("2", floor=0)
    chain = rollout(pricing("1"), body, late=False)
    chain.decide(MONDAY + (AFTER + 2) * WEEK - HOUR, policy_id=POLICY, version="2", rulebook=body)
    back = back_from(reported(chain, tmp_path), "verdict_shift")
    assert back is not None
    assert back.report.body["decisions"] == 2 * A_WEEK + 1


def test_going_back_is_to_the_version_that_decided_most(tmp_path: Path) -> None:
    chain = rollout(pricing("1"), pricing("2", floor=0), trial=pricing("trial", floor=0))
    back = back_from(reported(chain, tmp_path))
    assert back is not None
    assert back.before == "1"


def test_a_version_that_is_as_strict_would_have_changed_no_verdict(tmp_path: Path) -> None:
    back = back_from(reported(rollout(pricing("1", floor=0), pricing("2", floor=0)), tmp_path))
    assert back is not None
    whole = back.report.body["decisions"]
    assert back.sentences() == [
        f"Going back to version 1 would not have changed the verdict of any of {whole} decisions."
    ]


def test_facts_that_are_gone_are_counted_apart(tmp_path: Path) -> None:
    chain = rollout(pricing("1"), pricing("2", floor=0))
    new = [of["decision_id"] for of in chain.entries if of.get("policy_version") == "2"]
    now = MONDAY + (AFTER + 4) * WEEK
    chain.erase(new[1], now)
    back = back_from(reported(chain, tmp_path / "one"), "verdict_shift")
    assert back is not None
    assert back.sentences()[-1] == "The facts of 1 more are gone."
    for decision_id in [new[0], *new[2:]]:
        chain.erase(decision_id, now)
    back = back_from(reported(chain, tmp_path / "all"), "verdict_shift")
    assert back is not None
    assert back.sentences() == ["The effect of going back to version 1 is unknown: the facts are gone."]


def test_without_a_new_version_there_is_nothing_to_go_back_to(tmp_path: Path) -> None:
    report = reported(rollout(pricing("1"), pricing("1", floor=0)), tmp_path)
    assert report.body["anomaly_count"]
    assert [report.going_back(at) for at in range(report.body["anomaly_count"])] == [None] * report.body[
        "anomaly_count"
    ]


def test_a_version_before_whose_rulebook_cannot_decide_is_left_out(loosened: MadeUp, tmp_path: Path) -> None:
    chain = rollout(pricing("1"), pricing("2", floor=0))
    for decision in chain.entries:
        if decision.get("policy_version") == "1":
            chain.requests[decision["decision_id"]]["rulebook"] = {"rulebook_id": POLICY, "version": "1"}
    assert back_from(reported(chain, tmp_path)) is None


def test_a_place_without_an_anomaly_is_refused(loosened: MadeUp, tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as refused:
        reported(loosened, tmp_path).going_back(999)
    assert refused.value.code == "ENGINE_ARGUMENT_INVALID"


def test_names_stay_on_one_line(tmp_path: Path) -> None:
    name = f"1\n\u2028\x1b[31m{'x' * 70}"
    back = back_from(reported(rollout(pricing(name), pricing("2", floor=0)), tmp_path))
    assert back is not None
    assert repr(back).isprintable()
    assert "x" * 70 not in repr(back)
