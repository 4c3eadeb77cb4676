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
from tests.support.samples import sample_request


def decide(client: FlaskClient, key: str | None, body: Any, **headers: str) -> TestResponse:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        sent["x-api-key"] = key
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post("/api/decide", data=data, content_type="application/json", headers=sent)


def item(body: Any = None, idempotency_key: str | None = None) -> dict[str, Any]:
    """A request of a batch; by default one that is approved."""
    key = {} if idempotency_key is None else {"idempotency_key": idempotency_key}
    return {"request": sample_request() if body is None else body, **key}


def send_batch(client: FlaskClient, key: str | None, batch: Any, **headers: str) -> TestResponse:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        sent["x-api-key"] = key
    data = batch if isinstance(batch, bytes) else json.dumps(batch).encode()
    return client.post("/api/decide/batch", data=data, content_type="application/json", headers=sent)


def results_of(response: TestResponse) -> list[dict[str, Any]]:
    """What became of each request of a batch."""
    assert response.status_code == 200, response.text
    results: list[dict[str, Any]] = response.get_json()["results"]
    errors = jsonschema.Draft202012Validator(resources.schema("error"))
    for result in results:
        if result["status"] == "refused":
            assert result.keys() == {"status", "http_status", "error"}
            errors.validate(result["error"])
            assert not {"verdict", "application_verdict", "decision"} & result["error"].keys()
        else:
            assert result.keys() == {"status", "http_status", "record"}
            assert (result["status"] in ("created", "replayed"), result["http_status"]) == (True, 200)
    return results


def decide_batch(client: FlaskClient, key: str, items: list[dict[str, Any]], **headers: str) -> list[dict[str, Any]]:
    return results_of(send_batch(client, key, {"requests": items}, **headers))


def brief(results: list[dict[str, Any]]) -> list[str | tuple[int, str]]:
    """Of each result its status, or the status and code of its error."""
    return [
        (result["http_status"], result["error"]["error"]) if result["status"] == "refused" else result["status"]
        for result in results
    ]


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
