"""Decisions over HTTP, and the refusals of requests for them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from gate.encoding import resources
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope


def decide(client: FlaskClient, key: str | None, body: Any, **headers: str) -> TestResponse:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        sent["x-api-key"] = key
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post("/api/decide", data=data, content_type="application/json", headers=sent)


def chain_size(instance: Instance, scope: Scope) -> int:
    return instance.ledger.entries.head(scope.scope_id).size


def refused(response: TestResponse, status: int, error: str) -> dict[str, Any]:
    assert (response.status_code, response.json["error"] if response.json else None) == (status, error)
    body: dict[str, Any] = response.get_json()
    jsonschema.Draft202012Validator(resources.schema("error")).validate(body)
    assert body["c"] == "unclear"
    assert not {"verdict", "application_verdict", "decision"} & body.keys()
    assert body["message"].endswith(".")
    assert body["request_id"].startswith("req_")
    return body
