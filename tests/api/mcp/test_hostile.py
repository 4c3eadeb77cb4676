"""Whatever is sent, the answer is one of the protocol, no error is unforeseen, and nothing is decided by accident."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.mcp.agents.server import agents_server
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from tests.api.deciding import chain_size
from tests.api.mcp.messages import META, post, send, well_formed
from tests.support.samples import case_text, cases, sample_request

FORESEEN = {200, 202, 400, 404}
TOOLS = tuple(agents_server().by_name)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(
    ["request", "decision_id", "report", "record", "input", "idempotency_key", "limit", "public_key"]
)
arguments = st.dictionaries(names | st.text(max_size=4), json_values, max_size=4)
params = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(TOOLS) | json_values,
        "arguments": arguments | json_values,
        "_meta": st.just(META) | json_values,
        "protocolVersion": json_values,
        "cursor": json_values,
    },
)
methods = st.sampled_from(["initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/x"])
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | json_values,
        "id": st.integers() | st.text(max_size=5) | json_values,
        "method": methods | json_values,
        "params": params | json_values,
        "result": json_values,
    },
)
bodies = messages | st.lists(messages | json_values, max_size=4) | json_values
headers = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.sampled_from(["2026-07-28", "2025-11-25", "2025-03-26", "x"]),
        "mcp-method": methods,
        "mcp-name": st.sampled_from([*TOOLS, "=?base64?ZGVjaWRl?=", "=?base64?\x7f?="]),
    },
)
shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def foreseen(log: BytesIO) -> bool:
    return b'"event":"unexpected"' not in log.getvalue()


@shared
@given(body=bodies, sent=headers)
def test_any_json_is_answered(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, log: BytesIO, body: Any, sent: dict[str, str]
) -> None:
    response = well_formed(post(client, key, json.dumps(body).encode(), **sent))
    assert response.status_code in FORESEEN
    assert foreseen(log)
    assert chain_size(instance, scope) == 0


@shared
@given(body=st.binary(max_size=200))
def test_any_bytes_are_answered(client: FlaskClient, key: str, log: BytesIO, body: bytes) -> None:
    assert well_formed(post(client, key, body)).status_code in FORESEEN
    assert foreseen(log)


@shared
@given(tool=st.sampled_from(TOOLS), given_arguments=arguments)
def test_any_arguments_are_answered_with_what_the_tool_says_of_itself(
    client: FlaskClient, key: str, log: BytesIO, tool: str, given_arguments: dict[str, Any]
) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": given_arguments},
    }
    response = well_formed(post(client, key, json.dumps(message).encode()))
    if response.status_code == 400:
        # A number that no double stands for, for example.
        assert response.get_json()["error"]["code"] == -32700
        return
    result = response.get_json()["result"]
    assert agents_server().by_name[tool].output_schema
    if result["isError"]:
        assert result["content"][0]["text"].startswith("This is an error, not an approval")
        assert "verdict" not in result["structuredContent"]
    assert foreseen(log)


PLACES = [
    ("jsonrpc",),
    ("id",),
    ("method",),
    ("params",),
    ("params", "name"),
    ("params", "arguments"),
    ("params", "arguments", "request"),
    ("params", "arguments", "request", "rulebook"),
    ("params", "arguments", "request", "context"),
    ("params", "arguments", "idempotency_key"),
    ("params", "arguments", "response_view"),
]

VALUES: Sequence[Any] = (None, True, 0, -1, 1.5, "", "\u0000", "x" * 5000, [], [1], {}, {"a": {}}, 2**53, 1e300)


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_a_value_of_any_type_in_any_place_decides_nothing(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, log: BytesIO, place: tuple[str, ...]
) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "decide", "arguments": {"request": sample_request()}},
    }
    for number, value in enumerate(VALUES):
        message: Any = copy.deepcopy(call)
        if place[-1] != "idempotency_key":
            message["params"]["arguments"]["idempotency_key"] = f"k{number}"
        node = message
        for step in place[:-1]:
            node = node[step]
        if place == ("id",) and isinstance(value, int | str) and value is not True and value != 2**53:
            continue
        node[place[-1]] = value
        response = well_formed(post(client, key, json.dumps(message).encode()))
        assert response.status_code in FORESEEN
        result: Any = None if response.status_code == 202 else response.get_json().get("result")
        # A context is open, and may lack every fact.
        if place[-1] == "context" and isinstance(value, dict):
            assert result["structuredContent"]["verdict"] == "review"
        else:
            assert result is None or result["isError"] is True, value
    assert chain_size(instance, scope) == (2 if place[-1] == "context" else 0)
    assert foreseen(log)


@pytest.mark.parametrize("depth", [40, 68, 1000, 100_000])
def test_a_message_that_nests_too_deep_is_no_message(client: FlaskClient, key: str, log: BytesIO, depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        deep = opening * depth + b"1" + closing * depth
        whole = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"decide","arguments":{"request":%s}}}'
        for body in (deep, whole % deep):
            response = well_formed(post(client, key, body))
            assert response.status_code in FORESEEN
            answers = response.get_json()
            for answer in answers if isinstance(answers, list) else [answers]:
                assert "error" in answer or answer["result"]["isError"]
    assert foreseen(log)


def test_a_very_long_name_is_shown_by_its_beginning(client: FlaskClient, key: str) -> None:
    for params in ({"name": "x" * 500_000}, {"name": "decide", "arguments": "x" * 500_000}):
        answer = send(client, key, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert len(answer.data) < 1000
    assert len(send(client, key, {"jsonrpc": "2.0", "id": 1, "method": "x" * 500_000}).data) < 1000


@pytest.mark.parametrize("case", cases("hostile_strings"), ids=lambda case: str(case["name"]))
def test_hostile_strings_name_no_decision(client: FlaskClient, key: str, log: BytesIO, case: Any) -> None:
    text = case_text(case)
    for tool in ("verify", "explain", "replay"):
        params = {"name": tool, "arguments": {"decision_id": text}}
        answer = send(client, key, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        # Half of a surrogate pair makes a body that is no JSON here.
        assert answer.status_code == 400 or answer.get_json()["result"]["isError"] is True
    assert foreseen(log)
