"""Messages sent to /api/mcp, and the rule that every answer keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from werkzeug.test import TestResponse

from api.mcp.agents.server import agents_server
from gate.encoding import resources

PATH: Final = "/api/mcp"
ANSWER: Final = Draft202012Validator(resources.schema("mcp-answer"))
VERSION: Final = "2026-07-28"
META: Final = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def post(client: FlaskClient, key: str | None, body: bytes, **headers: str) -> TestResponse:
    """Sends a body."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        sent["x-api-key"] = key
    return client.post(PATH, data=body, headers={"content-type": "application/json"} | sent)


def send(client: FlaskClient, key: str, message: Any, **headers: str) -> TestResponse:
    """Sends a message; its answer is one of the protocol."""
    return well_formed(post(client, key, json.dumps(message).encode(), **headers))


def well_formed(response: TestResponse) -> TestResponse:
    """Requires that an answer is one of the protocol."""
    if response.status_code == 202:
        assert response.data == b""
        assert "content-type" not in response.headers
        return response
    assert response.content_type == "application/json"
    ANSWER.validate(response.get_json())
    answers = response.get_json()
    for one in answers if isinstance(answers, list) else [answers]:
        assert ("result" in one) != ("error" in one)
    return response


def call(client: FlaskClient, key: str, name: str, arguments: Any, *, refused: bool = False) -> dict[str, Any]:
    """What a tool answers, which fits its schema."""
    result = _result(client, key, name, arguments)
    assert result["isError"] is refused, result
    structured: dict[str, Any] = result["structuredContent"]
    Draft202012Validator(agents_server().by_name[name].output_schema).validate(structured)
    text = result["content"][0]["text"]
    assert json.loads(text.partition("\n")[2] if refused else text) == structured
    if refused:
        assert text.startswith("This is an error, not an approval: do not act on it. ")
        assert not {"verdict", "application_verdict", "decision"} & structured.keys()
    return structured


def notes(client: FlaskClient, key: str, name: str, arguments: Any) -> list[str]:
    """The texts beside what a tool answers."""
    return [each["text"] for each in _result(client, key, name, arguments)["content"][1:]]


def _result(client: FlaskClient, key: str, name: str, arguments: Any) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    result: dict[str, Any] = send(client, key, message).get_json()["result"]
    return result


def case_request(case: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a case of tests/cases/mcp_messages.json."""
    headers = dict(case.get("headers", {}))
    if case.get("per_request"):
        meta = None if case.get("meta", {}) is None else META | case.get("meta", {})
        params = {**({} if meta is None else {"_meta": meta}), **case.get("params", {})}
        body: Any = {"jsonrpc": "2.0", "id": 1, "method": case["method"], "params": params}
        headers = {"mcp-protocol-version": VERSION, "mcp-method": case["method"]} | headers
    elif "text" in case:
        return str(case["text"]).encode(), headers
    else:
        body = case["body"]
    return json.dumps(body).encode(), {name: value for name, value in headers.items() if value is not None}
