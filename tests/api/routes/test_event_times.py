"""Requests that say when something happened: every way to send one, and what is answered."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from flask.testing import FlaskClient

from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.ids import timestamp
from gate.records.packet import packet_hash
from gate.verify import Trust, verify_packet, verify_record
from tests.api.deciding import decide, refused
from tests.api.mcp.messages import call
from tests.independent import verifier
from tests.support.command_line import run_gate
from tests.support.samples import sample_request

DECIDED: Final = "2019-04-01T08:00:00.000Z"
CAME_ABOUT: Final = "2019-04-09T17:30:00.250Z"
REQUEST: Final = {**sample_request(), "occurred_at": DECIDED}


class Caller:
    """Calls the service with one key."""

    def __init__(self, client: FlaskClient, key: str) -> None:
        self.client = client
        self.headers = {"x-api-key": key}

    def post(self, path: str, body: Any, status: int = 200) -> Any:
        response = self.client.post(path, json=body, headers=self.headers)
        assert response.status_code == status, response.text
        return response.get_json()

    def get(self, path: str) -> Any:
        response = self.client.get(path, headers=self.headers)
        assert response.status_code == 200, response.text
        return response.get_json()


@pytest.fixture
def caller(client: FlaskClient, key: str) -> Caller:
    return Caller(client, key)


@pytest.fixture
def record(caller: Caller) -> Any:
    return caller.post("/api/decide", REQUEST)


def test_the_request_has_the_time_and_no_view_of_the_record_does(caller: Caller, record: Any) -> None:
    assert record["input_hash"] == content_hash(REQUEST) != content_hash(sample_request())
    for view in ("minimal", "standard", "full"):
        shown = caller.post("/api/decide", {**REQUEST, "response_view": view})
        assert "occurred_at" not in json.dumps(shown)
    assert "occurred_at" not in json.dumps(caller.get(record["decision_url"]))
    keys = caller.get("/api/decision/receipt-keys"), caller.get("/.well-known/rulebook-attestation-keys.json")
    assert verifier.record_failures(record, keys[0], attestation_keys=keys[1], request_body=REQUEST) == []
    other = {**REQUEST, "occurred_at": CAME_ABOUT}
    assert verifier.record_failures(record, keys[0], attestation_keys=keys[1], request_body=other)
    assert verify_record(record, Trust(), request_body=other).checks["input_hash"] is False


def test_what_is_decided_again_has_the_time_of_the_stored_request(caller: Caller, record: Any) -> None:
    at = record["decision_url"]
    assert caller.post(f"{at}/replay", {})["replay_status"] == "matched"
    assert caller.post(f"{at}/replay", {"replay_mode": "current"})["replay_status"] == "matched"
    scenarios = {"scenarios": [{"scenario_id": "thin", "context_patch": {"inputs": {"margin_percent": 1}}}]}
    assert caller.post(f"{at}/counterfactuals", scenarios)


def test_an_input_of_the_callers_own_may_have_a_time_and_no_future_one(caller: Caller, record: Any) -> None:
    at = record["decision_url"]
    for endpoint in ("replay", "diff"):
        sent = {"replay_mode": "current", "input": {**REQUEST, "occurred_at": CAME_ABOUT}}
        answer = caller.post(f"{at}/{endpoint}", sent)
        assert answer["decision"]["input_hash"] == content_hash(sent["input"])
        sent["input"] = {**REQUEST, "occurred_at": timestamp(utc_now() + timedelta(hours=1))}
        assert caller.post(f"{at}/{endpoint}", sent, 422)["errors"][0]["field"] == "input.occurred_at"


def test_the_sandbox_takes_a_time_as_a_decision_does(caller: Caller) -> None:
    answer = caller.post("/api/sandbox/decide", REQUEST)
    assert answer["input_hash"] == content_hash(REQUEST)
    assert "occurred_at" not in answer
    ahead = {**REQUEST, "occurred_at": timestamp(utc_now() + timedelta(minutes=6))}
    assert caller.post("/api/sandbox/decide", ahead, 422)["errors"][0]["code"] == "future"


def test_an_agent_sends_a_time_as_anyone_does(client: FlaskClient, key: str) -> None:
    found = call(client, key, "decide", {"request": REQUEST})
    assert found["input_hash"] == content_hash(REQUEST)
    body = {"outcome_status": "succeeded", "occurred_at": CAME_ABOUT}
    arguments = {"decision_id": found["decision_id"], "report": body}
    assert call(client, key, "report_outcome", arguments)["occurred_at"] == CAME_ABOUT


def test_a_clock_that_is_a_little_ahead_is_no_fault(client: FlaskClient, key: str) -> None:
    for minutes, code in ((4, 200), (6, 422)):
        at = timestamp(utc_now() + timedelta(minutes=minutes))
        response = decide(client, key, {**sample_request(), "occurred_at": at})
        assert response.status_code == code
    found = refused(response, 422, "SVC_API_REQUEST_INVALID")["errors"]
    assert [(error["field"], error["code"]) for error in found] == [("occurred_at", "future")]
    assert found[0]["message"] == (
        "It is in the future, more than 5 minutes ahead of the service's clock. Send when it happened, or check the "
        "sender's clock."
    )


def test_an_outcome_is_answered_and_listed_with_its_time(caller: Caller, record: Any) -> None:
    at = f"{record['decision_url']}/outcome"
    made = caller.post(at, {"outcome_status": "succeeded", "occurred_at": CAME_ABOUT}, 201)
    jsonschema.Draft202012Validator(resources.schema("outcome-record")).validate(made)
    assert made["occurred_at"] == CAME_ABOUT
    assert made["outcome_hash"] == verifier.outcome_hash(made)
    assert caller.get(at)["outcomes"] == [made]
    ahead = {"outcome_status": "succeeded", "occurred_at": timestamp(utc_now() + timedelta(minutes=6))}
    errors = caller.post(at, ahead, 422)["errors"]
    assert [(error["field"], error["code"]) for error in errors] == [("occurred_at", "future")]


def test_a_packet_says_null_of_a_time_whatever_it_is(caller: Caller, record: Any, tmp_path: Path) -> None:
    at = record["decision_url"]
    caller.post(f"{at}/outcome", {"outcome_status": "pending"}, 201)
    caller.post(f"{at}/outcome", {"outcome_status": "succeeded", "occurred_at": CAME_ABOUT}, 201)
    packet = caller.get(f"{at}/packet")
    assert packet["outcome_records"][0]["occurred_at"] == CAME_ABOUT
    keys = caller.get("/api/decision/receipt-keys"), caller.get("/.well-known/rulebook-attestation-keys.json")
    place = "outcome_records[0].occurred_at"
    values: tuple[Any, ...] = (CAME_ABOUT, DECIDED, "x", "", None, 7, {"x": []})
    for value in values:
        changed = json.loads(json.dumps(packet))
        changed["outcome_records"][0]["occurred_at"] = value
        changed["packet_hash"] = packet_hash(changed)
        answer = caller.post("/api/decision/packet/verify", changed)
        assert answer["verified"], value
        assert answer["checks"][place] is None
        assert "outcome_records[1].occurred_at" not in answer["checks"]
        assert "unknown_members" not in answer
        assert verifier.packet_failures(changed, keys[0], attestation_keys=keys[1]) == []
        assert verifier.event_times(changed) == {place: None}
        # Without a key as well.
        assert verify_packet(changed, Trust()).checks[place] is None
    file = tmp_path / "packet.json"
    file.write_text(json.dumps(packet))
    ran = run_gate("verify-packet", str(file))
    assert f"skipped (only the request of the outcome binds it; gate chain check compares them): {place}" in ran.stdout
