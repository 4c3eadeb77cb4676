"""What each message is answered, as the protocol says: tests/cases/mcp_messages.json."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from api.mcp.versions import HANDSHAKE_VERSIONS, MAX_BATCH
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from tests.api.deciding import chain_size
from tests.api.mcp.messages import META, case_request, post, send, well_formed
from tests.support.samples import cases


@pytest.mark.parametrize("case", cases("mcp_messages"), ids=lambda case: str(case["name"]))
def test_a_message_is_answered_as_the_protocol_says(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, case: dict[str, Any]
) -> None:
    body, headers = case_request(case)
    response = well_formed(post(client, key, body, **headers))
    assert response.status_code == case["status"]
    assert chain_size(instance, scope) == 0
    if case["status"] == 202:
        return
    answer = response.get_json()
    if "batch" in case:
        assert [[one["id"], one.get("error", {}).get("code")] for one in answer] == case["batch"]
        return
    sent = json.loads(body) if "result" in case else {}
    assert answer["id"] == case.get("id", sent.get("id", 1))
    if "error" in case:
        assert answer["error"]["code"] == case["error"]
        assert answer["error"]["message"].endswith(".")
    else:
        assert answer["result"].items() >= case["result"].items()


def test_the_answer_to_an_unknown_version_lists_those_that_are_supported(client: FlaskClient, key: str) -> None:
    answer = send(client, key, {"jsonrpc": "2.0", "id": 3, "method": "ping"}, mcp_protocol_version="1999-01-01")
    data = answer.get_json()["error"]["data"]
    assert data == {"supported": ["2026-07-28", *HANDSHAKE_VERSIONS], "requested": "1999-01-01"}


def test_a_batch_is_bounded(client: FlaskClient, key: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert len(send(client, key, [message] * MAX_BATCH).get_json()) == MAX_BATCH
    assert send(client, key, [message] * (MAX_BATCH + 1)).get_json()["error"]["code"] == -32600


def test_what_names_the_server_stands_in_every_result_of_the_newest_version(client: FlaskClient, key: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
    answer = send(client, key, message, mcp_protocol_version="2026-07-28", mcp_method="server/discover").get_json()
    named = answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert named["name"] == "decision-gate"
