"""POST /api/decide/batch: what refuses a batch as a whole, so that none of its requests leaves anything behind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.routes.batches import MAX_BATCH_BODY
from gate.clock import utc_now
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, MAX_REQUEST_VALUES
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.records.batch import MAX_REQUEST, MAX_REQUESTS, MAX_WITH_ADAPTERS
from tests.api.deciding import brief, chain_size, decide_batch, item, refused, send_batch
from tests.support.samples import cases, sample_request

INVALID = "SVC_API_BATCH_INVALID"


@pytest.fixture
def good() -> list[dict[str, Any]]:
    """Requests that would be approved."""
    return [item(None, "k0"), item(None, "k1")]


def invalid(response: TestResponse) -> list[tuple[str, str]]:
    """The members at fault of a batch that is refused."""
    body = refused(response, 400, INVALID)
    assert body["v"] == "batch_invalid"
    return [(fault["field"], fault["code"]) for fault in body["errors"]]


def nothing_happened(client: FlaskClient, key: str, instance: Instance, scope: Scope) -> bool:
    """Whether there is no record, and the keys of the good requests are free."""
    if chain_size(instance, scope):
        return False
    return brief(decide_batch(client, key, [item(None, "k0"), item(None, "k1")])) == ["created", "created"]


@pytest.mark.parametrize("case", cases("batch_refusals"), ids=lambda case: case["name"])
def test_a_batch_of_the_wrong_shape_is_refused(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, case: dict[str, Any]
) -> None:
    batch = case["batch"]
    if isinstance(batch, dict) and isinstance(batch.get("requests"), list) and batch["requests"]:
        batch["requests"].append(item(None, "k0"))
    assert invalid(send_batch(client, key, batch)) == [tuple(fault) for fault in case["fields"]]
    assert nothing_happened(client, key, instance, scope)


def test_malformed_json_decides_nothing(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, good: list[dict[str, Any]]
) -> None:
    text = json.dumps({"requests": good})
    twice = text.replace('"discount_percent": 10', '"discount_percent": 10, "discount_percent": 1', 1)
    for body in (text[:-1], f"{text}]", twice, text.replace("1200.5", "1e400", 1), ""):
        refused(send_batch(client, key, body.encode()), 400, "SVC_API_JSON_INVALID")
    assert nothing_happened(client, key, instance, scope)


def test_an_idempotency_key_for_all_is_refused(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, good: list[dict[str, Any]]
) -> None:
    for sent in ("order-1", ""):
        response = send_batch(client, key, {"requests": good}, x_idempotency_key=sent)
        assert invalid(response) == [("x-idempotency-key", "unknown_field")]
    assert nothing_happened(client, key, instance, scope)


def test_a_header_that_names_no_view_is_refused(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, good: list[dict[str, Any]]
) -> None:
    for batch in ({"requests": good}, {"requests": good, "response_view": "full"}):
        response = send_batch(client, key, batch, x_decision_response_view="tiny")
        refused(response, 422, "SVC_API_REQUEST_INVALID")
    assert nothing_happened(client, key, instance, scope)


class TestBounds:
    """How many requests, how large, how deep."""

    def test_five_hundred_requests_and_not_one_more(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, good: list[dict[str, Any]]
    ) -> None:
        small = {"request": {"mode": "rulebook"}}
        batch = good + [small] * (MAX_REQUESTS - 1)
        assert invalid(send_batch(client, key, {"requests": batch})) == [("requests", "too_many")]
        assert chain_size(instance, scope) == 0
        results = brief(decide_batch(client, key, batch[:MAX_REQUESTS]))
        assert results == ["created"] * 2 + [(422, "SVC_API_REQUEST_INVALID")] * (MAX_REQUESTS - 2)

    def test_a_request_of_one_mebibyte_and_not_one_byte_more(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, good: list[dict[str, Any]]
    ) -> None:
        request = sample_request() | {"question": ""}
        room = MAX_REQUEST - len(json.dumps(request, separators=(",", ":")))
        too_long = [*good, item(request | {"question": "x" * (room + 1)})]
        assert invalid(send_batch(client, key, {"requests": too_long})) == [("requests[2].request", "too_long")]
        assert nothing_happened(client, key, instance, scope)
        # As alone, it may still have more characters than its schema allows a question.
        longest = [item(), item(request | {"question": "x" * room})]
        assert brief(decide_batch(client, key, longest))[0] == "created"

    def test_a_request_nested_as_deep_as_alone_and_no_deeper(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, good: list[dict[str, Any]]
    ) -> None:
        def nested(depth: int) -> dict[str, Any]:
            request = sample_request()
            # The request, context and inputs are three levels.
            value: Any = 1
            for _ in range(depth - 3):
                value = [value]
            request["context"]["inputs"]["deep"] = value
            return request

        too_deep = [item(nested(MAX_REQUEST_DEPTH + 1)), *good]
        assert invalid(send_batch(client, key, {"requests": too_deep})) == [("requests[0].request", "too_deep")]
        far_too_deep = [item(nested(100)), *good]
        refused(send_batch(client, key, {"requests": far_too_deep}), 400, "SVC_API_JSON_INVALID")
        assert nothing_happened(client, key, instance, scope)
        assert brief(decide_batch(client, key, [item(nested(MAX_REQUEST_DEPTH))])) == ["created"]

    def test_a_request_of_more_values_than_alone_is_refused(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, good: list[dict[str, Any]]
    ) -> None:
        request = sample_request()
        request["context"]["inputs"]["many"] = [0] * MAX_REQUEST_VALUES
        response = send_batch(client, key, {"requests": [*good, item(request)]})
        assert invalid(response) == [("requests[2].request", "too_many")]
        assert nothing_happened(client, key, instance, scope)

    def test_a_body_of_sixteen_mebibytes_and_not_one_byte_more(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, good: list[dict[str, Any]]
    ) -> None:
        body = json.dumps({"requests": good}).encode()
        response = send_batch(client, key, body + b" " * (MAX_BATCH_BODY + 1 - len(body)))
        refused(response, 413, "SVC_API_PAYLOAD_TOO_LARGE")
        assert chain_size(instance, scope) == 0
        assert send_batch(client, key, body + b" " * (MAX_BATCH_BODY - len(body))).status_code == 200

    def test_twenty_one_adapters_are_refused(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, good: list[dict[str, Any]]
    ) -> None:
        invoking = item({"mode": "rulebook", "adapter": {}})
        batch = good + [invoking] * (MAX_WITH_ADAPTERS + 1)
        response = send_batch(client, key, {"requests": batch})
        assert invalid(response) == [(f"requests[{MAX_WITH_ADAPTERS + 2}].request.adapter", "too_many")]
        assert nothing_happened(client, key, instance, scope)


class TestKeys:
    """Who may send a batch."""

    def test_without_a_key_or_with_another_the_batch_is_refused(
        self, client: FlaskClient, instance: Instance, scope: Scope, key: str, good: list[dict[str, Any]]
    ) -> None:
        reader, _ = instance.ledger.directory.create_key(scope, {"read", "report", "register"}, None, utc_now())
        for sent, status in ((None, 401), (f"{key}x", 401), (reader, 403)):
            batches: list[Any] = [{"requests": good}, {"requests": []}, b"{"]
            for batch in batches:
                refused(send_batch(client, sent, batch), status, "SVC_API_UNAUTHORIZED")
        assert nothing_happened(client, key, instance, scope)

    def test_without_register_only_registered_rulebooks_decide(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        decider, _ = instance.ledger.directory.create_key(scope, {"decide"}, None, utc_now())
        assert brief(decide_batch(client, key, [item()])) == ["created"]
        unknown = sample_request()
        unknown["rulebook"]["version"] = "2"
        results = decide_batch(client, decider, [item(), item(unknown), item()])
        assert brief(results) == ["created", (403, "SVC_API_UNAUTHORIZED"), "created"]
        assert instance.ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", "2") is None


def test_other_methods_and_media_types_are_refused(client: FlaskClient, key: str, good: list[dict[str, Any]]) -> None:
    headers = {"x-api-key": key}
    assert client.get("/api/decide/batch", headers=headers).status_code == 405
    text = json.dumps({"requests": good})
    response = client.post("/api/decide/batch", data=text, content_type="text/plain", headers=headers)
    refused(response, 415, "SVC_API_MEDIA_TYPE_UNSUPPORTED")
