"""What is wrong with the HTTP request is answered as everywhere: keys, origins, media types, sizes, methods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from api.http.requests import MAX_BODY
from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from tests.api.mcp.messages import PATH, call, post, well_formed
from tests.support.samples import sample_request

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()


def refused(response: Any, status: int, error: str) -> None:
    assert (response.status_code, response.get_json()["error"]) == (status, error)


@pytest.mark.parametrize("method", ["initialize", "ping", "tools/list", "tools/call", "server/discover", "nothing"])
@pytest.mark.parametrize("key", [None, "dgk_unknown", "dgk_00000000000000000000000000000000_wrong"])
def test_nothing_is_answered_without_a_key(client: FlaskClient, method: str, key: str | None) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "decide"}}).encode()
    refused(post(client, key, message), 401, "SVC_API_UNAUTHORIZED")
    refused(post(client, key, b"{"), 401, "SVC_API_UNAUTHORIZED")


def test_a_disabled_key_hears_of_that_alone(client: FlaskClient, instance: Instance, key: str) -> None:
    well_formed(post(client, key, PING))
    instance.ledger.directory.disable_key(key.split("_")[1], utc_now())
    for body in (PING, b"{", b"[]", json.dumps({"jsonrpc": "2.0", "method": "x"}).encode()):
        refused(post(client, key, body), 403, "SVC_API_UNAUTHORIZED")


@pytest.mark.parametrize(
    ("tool", "arguments", "access"),
    [
        ("decide", {"request": sample_request()}, "decide"),
        ("report_execution", {"decision_id": "dec_1", "report": {"execution_status": "executed"}}, "report"),
        ("report_outcome", {"decision_id": "dec_1", "report": {"outcome_status": "failed"}}, "report"),
        ("verify", {"decision_id": "dec_1"}, "read"),
        ("verify", {"record": {}}, "read"),
        ("explain", {"decision_id": "dec_1"}, "read"),
        ("replay", {"decision_id": "dec_1"}, "read"),
        ("list_rulebooks", {}, "read"),
    ],
)
def test_a_tool_needs_the_access_of_its_endpoint(
    client: FlaskClient, instance: Instance, scope: Scope, tool: str, arguments: dict[str, Any], access: str
) -> None:
    others = frozenset({"decide", "report", "read", "register"} - {access})
    key, _ = instance.ledger.directory.create_key(scope, others, None, utc_now())
    found = call(client, key, tool, arguments, refused=True)
    assert found["http_status"] == 403
    assert f"lacks the access {access!r}" in found["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
def test_other_methods_are_not_taken(client: FlaskClient, key: str, method: str) -> None:
    response = client.open(PATH, method=method, headers={"x-api-key": key})
    refused(response, 405, "SVC_API_METHOD_NOT_ALLOWED")
    assert "POST" in response.headers["allow"]


ORIGINS = {
    "http://localhost": True,
    "http://localhost:6274": True,
    "https://127.0.0.1:8080": True,
    "http://127.9.9.9": True,
    "http://[::1]:3000": True,
    "https://agents.example.com": True,
    "https://agents.example.com:444": False,
    "http://agents.example.com": False,
    "https://evil.example": False,
    "http://localhost.evil.example": False,
    "http://localhost@evil.example": False,
    "http://evil@localhost": False,
    "http://[::2]": False,
    "http://[": False,
    "http://localhost:port": False,
    "http://localhost/path": False,
    "ftp://localhost": False,
    "null": False,
    "": False,
}


@pytest.fixture
def allowing(monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """The home of an instance that allows an origin."""
    monkeypatch.setenv("GATE_ALLOWED_ORIGINS", '["https://agents.example.com"]')
    return home


def test_a_page_may_ask_from_this_machine_or_where_the_operator_allows_it(
    allowing: Path, client: FlaskClient, key: str
) -> None:
    for origin, allowed in ORIGINS.items():
        assert (post(client, key, PING, origin=origin).status_code == 200) is allowed, origin
        # The origin is refused before the key is looked at.
        assert (post(client, None, PING, origin=origin).status_code == 401) is allowed, origin


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("application/json, text/event-stream", 200),
        ("text/event-stream, application/json;q=0.1", 200),
        ("application/json;charset=utf-8", 200),
        ("application/*", 200),
        ("*/*", 200),
        ("text/event-stream", 406),
        ("application/json;q=0", 406),
        ("text/html", 406),
    ],
)
def test_the_answer_is_json_or_none(client: FlaskClient, key: str, accept: str, status: int) -> None:
    assert post(client, key, PING, accept=accept).status_code == status


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/json-rpc", "application/json; charset=latin-1", ""]
)
def test_the_body_is_json_by_its_media_type(client: FlaskClient, key: str, content_type: str) -> None:
    response = client.post(PATH, data=PING, headers={"x-api-key": key, "content-type": content_type})
    refused(response, 415, "SVC_API_MEDIA_TYPE_UNSUPPORTED")


def test_the_body_is_bounded(client: FlaskClient, key: str) -> None:
    padded = PING + b" " * (MAX_BODY - len(PING))
    well_formed(post(client, key, padded))
    refused(post(client, key, padded + b" "), 413, "SVC_API_PAYLOAD_TOO_LARGE")
