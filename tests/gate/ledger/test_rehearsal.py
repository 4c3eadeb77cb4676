"""Replay, diff and counterfactuals over either database."""

from __future__ import annotations

from typing import Any

import pytest

from gate.decisions.again.counterfactuals import read_counterfactuals
from gate.decisions.again.rehearsal import Rehearsal
from gate.decisions.again.replay import CURRENT, read_replay
from gate.decisions.decide import DecisionGate
from gate.errors import LineageMismatch, NotFound, RequestRefused
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority
from tests.support.rulebooks import stricter_rulebook
from tests.support.samples import rows_of, sample_request

NULLED = {"scenarios": [{"scenario_id": "u0", "label": "\u0000", "context_patch": {"inputs": {"note": "\u0000é😀"}}}]}


@pytest.fixture
def gate(instance: Instance) -> DecisionGate:
    return instance.gate()


@pytest.fixture
def rehearsal(gate: DecisionGate, instance: Instance) -> Rehearsal:
    return Rehearsal(gate.sources, instance.ledger, gate.advisor)


def decide(gate: DecisionGate, authority: Authority, request: dict[str, Any]) -> Any:
    return gate.decide(authority, request, request_id="req_1").record


def test_a_decision_is_made_again_as_it_was_and_as_it_would_be_now(
    gate: DecisionGate, rehearsal: Rehearsal, authority: Authority, instance: Instance
) -> None:
    request = sample_request(discount_percent=10, margin_percent=22, note="\u0000é😀")
    record = decide(gate, authority, request)
    stored = rehearsal.stored(authority.scope_id, record["decision_id"])
    assert rehearsal.replay(stored, read_replay({}, (CURRENT,)), "full")["replay_status"] == "matched"
    decide(gate, authority, {**request, "rulebook": stricter_rulebook()})
    before = rows_of(instance.ledger.store)
    assert rehearsal.replay(stored, read_replay({}), "full")["replay_status"] == "matched"
    drifted = rehearsal.replay(stored, read_replay({}, (CURRENT,)), "full")
    assert (drifted["replay_status"], drifted["decision"]["verdict"]) == ("drifted", "no")
    simulated = rehearsal.counterfactuals(stored, read_counterfactuals(NULLED), "full")
    assert simulated["scenarios"][0]["recommendation"] == "would_block"
    assert rows_of(instance.ledger.store) == before


def test_a_decision_is_found_in_its_scope_alone(gate: DecisionGate, rehearsal: Rehearsal, authority: Authority) -> None:
    record = decide(gate, authority, sample_request())
    for scope_id, decision_id in (("other", record["decision_id"]), (authority.scope_id, "dec_unknown")):
        with pytest.raises(NotFound):
            rehearsal.stored(scope_id, decision_id)


def test_what_is_erased_or_changed_is_not_made_again(
    gate: DecisionGate, rehearsal: Rehearsal, authority: Authority, instance: Instance
) -> None:
    record = decide(gate, authority, sample_request())

    def replay_after(change: str) -> None:
        with instance.ledger.store.write() as connection:
            connection.exec_driver_sql(change)
        rehearsal.replay(rehearsal.stored(authority.scope_id, record["decision_id"]), read_replay({}), "full")

    with pytest.raises(LineageMismatch):
        replay_after("UPDATE entries SET leaf_hash = link_hash")
    with pytest.raises(RequestRefused) as refusal:
        replay_after("UPDATE entries SET request = NULL")
    assert refusal.value.code == "REPLAY_INPUT_UNAVAILABLE"
