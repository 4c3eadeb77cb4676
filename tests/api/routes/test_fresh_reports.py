"""What was reported a moment ago is in the next report, however much of the ledger has been exported by then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from flask.testing import FlaskClient

from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.verify import verify_packet
from tests.api.routes.reports import POLICY, Caller, Change
from tests.independent import recount, verifier


@pytest.fixture
def caller(client: FlaskClient, key: str) -> Caller:
    return Caller(client, key)


def test_a_decision_is_in_the_next_report(caller: Caller, changes: Sequence[Change]) -> None:
    for number, change in enumerate(changes, start=1):
        change()
        caller.decide(version=str(number % 2))
        assert caller.get(f"{POLICY}/effectiveness")["outcomes"]["unreported"] == number
        caller.assert_fresh()
        caller.assert_fresh(policy_version="1", limit=1)


@pytest.mark.heavy
def test_an_outcome_is_in_the_next_report_and_takes_the_place_of_the_one_before(
    caller: Caller, changes: Sequence[Change]
) -> None:
    decision_id = caller.decide()
    told = ("pending", "succeeded", "review", "failed", "reverted", "partial", "pending", "succeeded")
    for change, status in zip(changes, told, strict=True):
        change()
        caller.tell(decision_id, status, observed_metrics={"days": len(status)})
        for path in ("effectiveness", "confidence"):
            outcomes = caller.get(f"{POLICY}/{path}")["outcomes"]
            assert outcomes == dict.fromkeys(outcomes, 0) | {status: 1}
        metrics = caller.get(f"{POLICY}/effectiveness")["metrics"]
        assert [(metric["decisions"], metric["max"]) for metric in metrics] == [(1, len(status))]
        caller.assert_fresh(min_sample=1)
        change()
        caller.assert_fresh(min_sample=1)


@pytest.mark.heavy
def test_outcomes_of_old_decisions_are_in_the_next_report(caller: Caller, changes: Sequence[Change]) -> None:
    old = [caller.decide(version=str(number % 3), discount_percent=5, margin_percent=5 * number) for number in range(9)]
    for number, change in enumerate(changes):
        change()
        caller.tell(old[number], recount.REPORTED[number % 6], action_executed=bool(number % 2))
        caller.executed(old[-1])
        caller.assert_fresh()
        caller.assert_fresh(limit=3, min_sample=1)


@pytest.mark.heavy
def test_what_another_scope_reports_is_in_no_report(
    client: FlaskClient, caller: Caller, instance: Instance, changes: Sequence[Change]
) -> None:
    directory = instance.ledger.directory
    other = directory.create_scope("other", "unlimited", utc_now())
    stranger = Caller(client, directory.create_key(other, FULL_ACCESS, None, utc_now())[0])
    for change in changes:
        change()
        stranger.tell(stranger.decide(), "failed")
        caller.tell(caller.decide(), "succeeded")
        caller.assert_fresh()
        stranger.assert_fresh()


@pytest.mark.heavy
def test_an_erased_decision_counts_as_before(
    caller: Caller, instance: Instance, scope: Scope, changes: Sequence[Change]
) -> None:
    for change in changes:
        decision_id = caller.decide()
        change()
        caller.tell(decision_id, "succeeded")
        caller.entries.append({**erase(instance.ledger, decision_id, "They asked for it.", utc_now()).erasure})
        caller.assert_fresh()
        change()
        caller.tell(decision_id, "failed")
        caller.assert_fresh()
    assert caller.get(f"{POLICY}/effectiveness")["outcomes"]["failed"] == len(changes)


@pytest.mark.heavy
def test_packets_carry_the_reports_of_this_moment_and_verify(
    client: FlaskClient, caller: Caller, instance: Instance, changes: Sequence[Change]
) -> None:
    decision_id = caller.decide()
    caller.tell(caller.decide(version="2"), "failed")
    for change in changes:
        change()
        caller.tell(caller.decide(), "succeeded")
        caller.tell(decision_id, "succeeded", observed_metrics={"margin": 1e308})
        packet = caller.get(f"/api/decision/{decision_id}/packet")
        told = packet["policy_intelligence"]
        of_decision: dict[str, Any] = {"policy_version": "1", "verdict": "yes", "action": "approve_discount"}
        assert told["effectiveness"] == recount.effectiveness(caller.entries, "pricing_exception", policy_version="1")
        assert told["confidence"] == recount.confidence(caller.entries, "pricing_exception", **of_decision)
        assert told["effectiveness"] == caller.get(f"{POLICY}/effectiveness", policy_version="1")
        assert told["confidence"] == caller.get(f"{POLICY}/confidence", **of_decision)
        assert verify_packet(packet, instance.trust()).verified
    keys = client.get("/api/decision/receipt-keys").get_json()
    attesting = client.get("/.well-known/rulebook-attestation-keys.json").get_json()
    assert verifier.packet_failures(packet, keys, attestation_keys=attesting) == []


def test_a_packet_whose_effectiveness_was_changed_does_not_verify(caller: Caller, instance: Instance) -> None:
    decision_id = caller.decide()
    caller.tell(decision_id, "failed")
    packet = caller.get(f"/api/decision/{decision_id}/packet")
    packet["policy_intelligence"]["effectiveness"]["recommendation"] = "healthy"
    assert not verify_packet(packet, instance.trust()).verified
