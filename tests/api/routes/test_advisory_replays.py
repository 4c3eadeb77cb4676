"""Replay, diff, verification and erasure of advisory decisions: what they answer, and that none of them writes."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient
from sqlalchemy import update
from werkzeug.test import TestResponse

from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.encoding import resources
from gate.instance.instance import Instance
from gate.labels import DECISION_CONTRACT, VIEWS
from gate.ledger.access.authority import Scope
from gate.ledger.tables import entries
from gate.services.advisory.advisor import Advisor
from tests.api.deciding import chain_size, decide
from tests.support.samples import sample_request
from tests.support.upstreams import ADVISORY_REQUESTS, Server, fitting

REPLAY_RESULT = jsonschema.Draft202012Validator(resources.schema("replay-result"))
ERROR = jsonschema.Draft202012Validator(resources.schema("error"))
SINGLE = ADVISORY_REQUESTS["single"]


@pytest.fixture
def record(client: FlaskClient, key: str, upstream: Server) -> dict[str, Any]:
    """An advisory yes."""
    made: dict[str, Any] = decide(client, key, SINGLE).get_json()
    return made


def again(client: FlaskClient, key: str, record: dict[str, Any], body: Any, endpoint: str = "replay") -> TestResponse:
    return client.post(f"{record['decision_url']}/{endpoint}", json=body, headers={"x-api-key": key})


def refused(response: TestResponse, status: int, error: str) -> dict[str, Any]:
    body: dict[str, Any] = response.get_json()
    assert (response.status_code, body["error"]) == (status, error)
    ERROR.validate(body)
    assert "decision" not in body
    return body


@pytest.mark.parametrize("endpoint", ["replay", "diff"])
@pytest.mark.parametrize("mode", ADVISORY_REQUESTS)
def test_the_same_answer_makes_the_same_record(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, upstream: Server, mode: str, endpoint: str
) -> None:
    record = decide(client, key, ADVISORY_REQUESTS[mode], x_idempotency_key="order-7").get_json()
    response = again(client, key, record, {}, endpoint)
    assert response.status_code == 200, response.get_json()
    result = response.get_json()
    REPLAY_RESULT.validate(result)
    assert (result["replay_against"], result["replay_status"], result["drift"]) == ("current", "matched", [])
    assert "replay_contract" not in result
    assert result["decision"]["record_hash"] == record["record_hash"]
    assert result["decision"]["decision_contract"] == DECISION_CONTRACT
    assert not {"receipt_signature", "audit_chain", "decision_confidence"} & result["decision"].keys()
    assert len(upstream.asked) == 2
    assert upstream.asked[0][2] == upstream.asked[1][2]
    assert chain_size(instance, scope) == 1


@pytest.mark.parametrize("view", VIEWS)
def test_another_answer_is_told_as_drift(
    client: FlaskClient, key: str, upstream: Server, record: dict[str, Any], view: str
) -> None:
    upstream.answer({"answer": "no", "reason": "The terms exclude it."})
    result = again(client, key, record, {"response_view": view}).get_json()
    REPLAY_RESULT.validate(result)
    assert result["replay_status"] == "drifted"
    assert {each["field"] for each in result["drift"]} == {"verdict", "evidence", "record_hash"}
    assert result["decision"]["verdict"] == "no"
    assert result["decision"]["decision_contract"] == DECISION_CONTRACT


def test_a_historical_replay_is_refused(client: FlaskClient, key: str, record: dict[str, Any]) -> None:
    body = refused(again(client, key, record, {"replay_mode": "historical"}), 422, "REPLAY_MODE_INVALID")
    assert body["supported_replay_modes"] == ["current"]


def test_a_question_of_the_callers_own_is_asked_instead(
    client: FlaskClient, key: str, upstream: Server, record: dict[str, Any]
) -> None:
    result = again(client, key, record, {"input": {"question": "May we refund order 8?"}}).get_json()
    REPLAY_RESULT.validate(result)
    assert [each["field"] for each in result["drift"]] == ["record_hash"]
    assert "order 8" in upstream.asked[-1][2]["messages"][1]["content"]


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"mode": "rulebook", "rulebook_ref": {"rulebook_id": "a", "version": "1"}}, "input.mode"),
        ({"mode": "multi", "question": "Which?"}, "input.context.options"),
        ({"question": "Is password=hunter2hunter2 good?"}, "input.question"),
    ],
)
def test_an_input_that_cannot_be_asked_is_named(
    client: FlaskClient, key: str, upstream: Server, record: dict[str, Any], sent: Any, field: str
) -> None:
    body = refused(again(client, key, record, {"input": sent}), 422, "SVC_API_REQUEST_INVALID")
    assert [error["field"] for error in body["errors"]] == [field]
    assert len(upstream.asked) == 1


def test_a_binding_decision_is_not_compared_with_advice(client: FlaskClient, key: str, upstream: Server) -> None:
    binding = decide(client, key, sample_request()).get_json()
    response = again(client, key, binding, {"replay_mode": "current", "input": SINGLE})
    refused(response, 422, "SVC_API_REQUEST_INVALID")
    assert upstream.asked == []


def test_a_key_that_may_only_read_cannot_ask_the_upstream(
    client: FlaskClient, instance: Instance, scope: Scope, upstream: Server, record: dict[str, Any]
) -> None:
    reader, _ = instance.ledger.directory.create_key(scope, frozenset({"read"}), None, utc_now())
    for endpoint in ("replay", "diff"):
        body = refused(again(client, reader, record, {}, endpoint), 403, "SVC_API_UNAUTHORIZED")
        assert "'decide'" in body["message"]
    assert len(upstream.asked) == 1


def test_an_upstream_that_fails_fails_the_replay(
    client: FlaskClient, key: str, upstream: Server, record: dict[str, Any]
) -> None:
    upstream.answer("not JSON")
    refused(again(client, key, record, {}), 502, "SVC_ADVISORY_UPSTREAM_FAILED")


def test_without_an_upstream_there_is_no_replay(
    client: FlaskClient, key: str, instance: Instance, record: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(instance.__dict__, "advisor", Advisor(None))
    refused(again(client, key, record, {}), 503, "SVC_ADVISORY_UNCONFIGURED")
    stored = client.get(record["decision_url"], headers={"x-api-key": key}).get_json()
    assert stored == record


def test_there_are_no_counterfactuals(client: FlaskClient, key: str, upstream: Server, record: dict[str, Any]) -> None:
    scenario = {"scenario_id": "other", "label": "Other", "context_patch": {"inputs": {"a": 1}}}
    response = again(client, key, record, {"scenarios": [scenario]}, "counterfactuals")
    body = refused(response, 422, "COUNTERFACTUAL_INPUT_UNAVAILABLE")
    assert "advisory" in body["message"]
    assert len(upstream.asked) == 1


def test_what_was_erased_is_gone_and_the_rest_still_verifies(
    client: FlaskClient, key: str, instance: Instance, record: dict[str, Any]
) -> None:
    erase(instance.ledger, record["decision_id"], "asked for", utc_now())
    headers = {"x-api-key": key}
    stored = client.get(record["decision_url"], headers=headers).get_json()
    assert stored["evaluation"] is None
    assert stored["decision_contract"] == DECISION_CONTRACT
    assert "terms" not in str(stored)
    verified = client.post(record["verify_url"], json={}, headers=headers).get_json()
    assert verified["verified"] is True, verified
    assert verified["checks"]["evaluation"] is None
    assert verified["checks"]["input_hash"] is None
    refused(again(client, key, record, {}), 422, "REPLAY_INPUT_UNAVAILABLE")
    result = again(client, key, record, {"input": SINGLE}).get_json()
    assert result["replay_status"] == "matched"
    kept = client.post(
        "/api/decision/verify", json={"record": {**stored, "reason_code": "ADVISORY_NO", "verdict": "no"}}
    ).get_json()
    assert kept["verified"] is False


def test_a_record_that_was_altered_is_not_replayed(
    client: FlaskClient, key: str, instance: Instance, upstream: Server, record: dict[str, Any]
) -> None:
    with instance.ledger.store.write() as connection:
        connection.execute(update(entries).values(record_hash="f" * 64))
    refused(again(client, key, record, {}), 409, "REPLAY_LINEAGE_MISMATCH")
    assert len(upstream.asked) == 1


def test_the_record_verifies_at_every_endpoint(client: FlaskClient, key: str, record: dict[str, Any]) -> None:
    headers = {"x-api-key": key}
    for url, body in (
        (record["verify_url"], {}),
        (record["verify_url"], {"record": record, "input": SINGLE}),
        ("/api/decision/verify", {"record": record, "input": SINGLE}),
    ):
        verified = client.post(url, json=body, headers=headers).get_json()
        assert verified["verified"] is True, verified
        assert verified["checks"]["decision_contract"] is True
    for change in ({"decision_contract": None}, {"evaluator_version": "svc_rulebook_v1"}):
        altered = client.post("/api/decision/verify", json={"record": {**record, **change}}).get_json()
        assert altered["verified"] is False
    other = {"record": record, "input": {"question": "Another?"}}
    assert client.post("/api/decision/verify", json=other).get_json()["verified"] is False


def test_the_packet_holds_the_record_and_no_report_counts_it(
    client: FlaskClient, key: str, record: dict[str, Any]
) -> None:
    packet = client.get(f"{record['decision_url']}/packet", headers={"x-api-key": key}).get_json()
    assert packet["decision_record"] == record
    assert fitting("single")["reason"] in str(packet["decision_record"]["evaluation"])
