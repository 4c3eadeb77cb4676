"""Advisory decisions and the engines: no report about a policy counts one, and lists show and mark all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest

from gate.clock import utc_now
from gate.errors import OperatorError
from gate.policy.questions import (
    AnomaliesQuestion,
    BenchmarksQuestion,
    ConfidenceQuestion,
    CounterfactualsQuestion,
    EffectivenessQuestion,
)
from gate.rulebooks.rulebook import load
from tests.support.advice import ACTED_ON, NAMESAKE, QUESTIONS, Advice, namesake_rulebook
from tests.workbench.support import Shared, advised, bring_together, bring_up
from workbench.engines import benchmarks, confidence, counterfactuals, effectiveness
from workbench.engines.activity import activity
from workbench.engines.anomalies import report as anomalies
from workbench.engines.anomalies.alerts import policy_alerts
from workbench.engines.glance import glance
from workbench.engines.listing import Criteria, decision_names, find_decisions, held_decisions
from workbench.engines.roll_up import roll_up
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.reader import Snapshot
from workbench.migration.asked import migration_dry_run, version_in_force
from workbench.migration.history import dry_run
from workbench.migration.source import LakeHistory
from workbench.shadows.watcher import Tail
from workbench.values import known_values
from workbench.whatif import decide_slice

ENDPOINTS: dict[str, Callable[[Snapshot, str], dict[str, Any]]] = {
    "effectiveness": lambda of, policy_id: effectiveness.answer(of, EffectivenessQuestion(policy_id)).to_dict(),
    "anomalies": lambda of, policy_id: anomalies.answer(of, AnomaliesQuestion(policy_id)).to_dict(),
    "benchmarks": lambda of, policy_id: benchmarks.answer(of, BenchmarksQuestion(policy_id)).to_dict(),
    "counterfactuals": lambda of, policy_id: counterfactuals.answer(of, CounterfactualsQuestion(policy_id)).to_dict(),
    "confidence": lambda of, policy_id: confidence.answer(of, ConfidenceQuestion(policy_id)).to_dict(),
}
NOTED = ("effectiveness", "anomalies", "benchmarks", "counterfactuals")


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shared, Advice]]:
    with advised(tmp_path_factory.mktemp("advice") / "home") as made:
        yield made


@pytest.fixture(scope="module", params=["ledger", "lake", "compacted"])
def snapshot(request: pytest.FixtureRequest, _made: tuple[Shared, Advice]) -> Snapshot:
    """The chain, read from the ledger, from the lake, and from a lake that is compacted."""
    shared, _ = _made
    if request.param != "ledger":
        bring_up(shared.instance, shared.lake, shared.scope)
    if request.param == "compacted":
        bring_together(shared.lake, shared.scope)
    return fresh(shared.instance.ledger, shared.lake, shared.scope.scope_id, Personal())


@pytest.fixture
def given(_made: tuple[Shared, Advice]) -> Advice:
    """What is in the scope."""
    return _made[1]


def notes(report: dict[str, Any]) -> list[str]:
    return [note for note in report["notes"] if "advisory" in note]


def test_effectiveness_counts_the_rulebooks_decisions_alone(snapshot: Snapshot) -> None:
    report = ENDPOINTS["effectiveness"](snapshot, NAMESAKE)
    assert report["coverage"]["decisions"] == 2
    assert (report["outcomes"]["succeeded"], report["outcomes"]["failed"], report["outcomes"]["unreported"]) == (
        1,
        0,
        1,
    )
    assert [of["rule"] for of in report["rules"]] == ["rule:approve_standard_exception"]
    assert [(metric["name"], metric["max"]) for metric in report["metrics"]] == [("margin", 7.0)]
    assert notes(report) == ["4 decisions with this policy_id are advisory and not counted here: no rulebook decided."]


@pytest.mark.parametrize("name", NOTED)
def test_a_policy_id_of_advice_alone_has_an_empty_report_that_says_so(snapshot: Snapshot, name: str) -> None:
    report = ENDPOINTS[name](snapshot, "advisory.multi")
    counted = report["your_metrics"]["present"] if name == "benchmarks" else report["coverage"] | report
    assert counted["decisions"] == 0
    assert notes(report) == ["1 decision with this policy_id is advisory and not counted here: no rulebook decided."]


@pytest.mark.parametrize("name", ENDPOINTS)
def test_no_other_report_knows_of_it(snapshot: Snapshot, name: str) -> None:
    assert notes(ENDPOINTS[name](snapshot, "pricing_exception")) == []


def test_confidence_is_that_of_the_service(snapshot: Snapshot, given: Advice) -> None:
    for policy_id in (NAMESAKE, "advisory.multi", "pricing_exception"):
        service = given.get(f"/api/decision/policies/{policy_id}/confidence")
        report = ENDPOINTS["confidence"](snapshot, policy_id)
        assert report == service
        assert sum(report["outcomes"].values()) == (0 if policy_id == "advisory.multi" else 1)


@pytest.mark.parametrize("policy_id", ["advisory.multi", "advisory.runtime", NAMESAKE])
def test_anomalies_say_of_it_only_that_somebody_acted_on_it(snapshot: Snapshot, given: Advice, policy_id: str) -> None:
    """Each piece of advice was executed, by another action than its own, which is no break of its own here."""
    report = anomalies.answer(snapshot, AnomaliesQuestion(policy_id, threshold=0.0, min_sample=1))
    (found,) = report.to_dict()["anomalies"]
    executed = [given.advisory[name] for name in ACTED_ON]
    acted_on = {of["decision_id"] for of in executed if of["policy_id"] == policy_id}
    assert (found["subject"], found["severity"]) == ("executed_without_yes", "high")
    assert found["decisions"] == len(acted_on)
    assert set(found["decision_ids"]) == acted_on
    assert set(report.decisions(0).collect()["decision_id"]) == acted_on
    (alert,) = [of for of in policy_alerts(snapshot)["alerts"] if of["policy_id"] == policy_id]
    assert alert["anomaly"]["anomaly_id"] == found["anomaly_id"]


def test_counterfactuals_decide_none_of_it_anew(snapshot: Snapshot) -> None:
    report = ENDPOINTS["counterfactuals"](snapshot, NAMESAKE)
    assert (report["decisions"], report["redecided"], report["unknown"], report["changed"]) == (2, 2, 0, 0)
    redecided = decide_slice(snapshot, NAMESAKE, {"margin_percent": 1}, metrics=["margin"])
    assert (redecided.body["decisions"], redecided.body["verdict_changed"]) == (2, 2)
    assert redecided.verdicts[0].worth == {"margin": (1, 7.0)}


def test_dry_runs_and_shadows_decide_none_of_it_anew(snapshot: Snapshot) -> None:
    candidate = load({**namesake_rulebook(), "version": "2"})
    history = LakeHistory(snapshot, NAMESAKE)
    for run in (
        dry_run(history, candidate, None, metric="margin"),
        dry_run(Tail(history, 0), candidate, None),
        migration_dry_run(snapshot, NAMESAKE, {**namesake_rulebook(), "version": "2"}),
    ):
        assert run.body["decisions"] == 2
    assert history.decisions().collect().height == history.adapters().collect().height == 2
    assert history.values("margin").collect()["value"].to_list() == [7.0]
    assert history.values("advice").collect().is_empty()
    assert known_values(snapshot, NAMESAKE, [candidate.body])[0] == "margin"
    assert "advice" not in known_values(snapshot, NAMESAKE, [candidate.body])
    assert version_in_force(snapshot, NAMESAKE) == namesake_rulebook()["version"]


def test_a_scope_in_one_look_counts_policies_and_says_what_it_leaves_out(snapshot: Snapshot) -> None:
    found = glance(snapshot)
    assert dict(found.frame.select("policy_id", "decisions").iter_rows()) == {"pricing_exception": 3, NAMESAKE: 2}
    assert found.frame["held"].sum() == 1
    assert found.weekly["decisions"].sum() == 5
    assert found.advisory == len(QUESTIONS)
    rolled = roll_up(snapshot).frame
    assert dict(rolled.select("policy_id", "decisions").iter_rows()) == {"pricing_exception": 3, NAMESAKE: 2}
    done = activity(snapshot, NAMESAKE)
    assert (done.decisions, done.with_outcome) == (2, 1)
    assert done.metrics["name"].to_list() == ["margin"]
    assert set(done.reasons["reason_code"]) == {"STANDARD_EXCEPTION_ALLOWED"}


@pytest.mark.parametrize("policy_id", ["advisory.multi", "advisory.runtime"])
def test_who_asks_for_advice_as_a_policy_learns_what_it_is(snapshot: Snapshot, policy_id: str) -> None:
    with pytest.raises(OperatorError) as refused:
        effectiveness.effectiveness(snapshot, policy_id)
    assert refused.value.code == "LAKE_POLICY_UNKNOWN"
    assert refused.value.message.startswith(
        f"All decisions of '{policy_id}' in scope 'acme' are advisory, so no policy made them."
    )


def test_lists_show_it(snapshot: Snapshot, given: Advice) -> None:
    whole = find_decisions(snapshot, Criteria())
    assert whole.total == 5 + len(QUESTIONS)
    rows = {row["decision_id"]: row for row in whole.frame.iter_rows(named=True)}
    states = {name: rows[record["decision_id"]]["state"] for name, record in given.advisory.items()}
    assert states == {
        **dict.fromkeys(("single", "multi", "runtime", "erased"), "executed"),
        **dict.fromkeys(("refused", "unclear"), "advisory"),
    }
    assert {rows[record["decision_id"]]["rule"] for record in given.advisory.values()} == {"advisory"}
    assert rows[given.advisory["erased"]["decision_id"]]["erased"]
    for criteria, total in (
        (Criteria(rule="advisory"), len(QUESTIONS)),
        (Criteria(state="advisory"), 2),
        (Criteria(policy_id="advisory.multi"), 1),
        (Criteria(target="order-9"), 1),
        (Criteria(state="held"), 1),
        (Criteria(state="refused"), 1),
        (Criteria(erased=True), 1),
        (Criteria(ref=given.advisory["multi"]["decision_id"][-8:]), 1),
    ):
        found = find_decisions(snapshot, criteria)
        assert found.total == found.frame.height == total, criteria
        if criteria.state is not None:
            assert set(found.frame["state"]) == {criteria.state}


def test_nobody_has_to_review_it(snapshot: Snapshot, given: Advice) -> None:
    held = held_decisions(snapshot, now=utc_now())
    assert held.frame["policy_id"].to_list() == ["pricing_exception"]


def test_names_tell_policies_from_advice(snapshot: Snapshot) -> None:
    names = decision_names(snapshot)
    assert names.policies == ["pricing_exception", NAMESAKE]
    assert sorted(names.advisory) == ["advisory.multi", "advisory.runtime", "advisory.single"]
    assert names.versions["advisory.runtime"] == ["1"]
    assert "ADVISORY_SCORES" in names.reason_codes
    assert names.review_reasons == ["NO_RULE_MATCHED"]


def test_facts_of_a_policy_are_found_as_before(snapshot: Snapshot) -> None:
    facts = snapshot.facts(["discount_percent"], NAMESAKE).collect()
    assert facts["discount_percent:number"].to_list() == [10.0, 10.0]
    assert snapshot.facts(["discount_percent"]).select(pl.len()).collect().item() == 5
