"""POST /api/decide/batch: what becomes of each request, beside what becomes of it alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from gate.encoding.canonical import content_hash
from gate.instance.audit import check_chain
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.records.batch import MAX_REQUESTS
from gate.records.views import project
from tests.api.deciding import brief, chain_size, decide, decide_batch, item, results_of, send_batch
from tests.independent import verifier
from tests.support.postgres import database_of
from tests.support.rulebooks import change
from tests.support.samples import cases, sample_request

BLOCKED = sample_request(discount_percent=10, margin_percent=2)
HELD = sample_request(discount_percent=40, margin_percent=22)
CONFLICT = (409, "SVC_API_IDEMPOTENCY_CONFLICT")
INVALID = (422, "SVC_API_REQUEST_INVALID")


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is."""
    with database_of(request) as url:
        yield url


def without_request_id(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "request_id"}


def refusals() -> list[dict[str, Any]]:
    """The requests that are refused alone, as far as they are objects."""
    bodies = []
    for case in cases("decide_refusals"):
        body = case.get("body", sample_request())
        for name in case.get("unset", []):
            del body[name]
        for path, value in case.get("set", {}).items():
            change(body, path, value)
        if isinstance(body, dict) and body.get("mode", "single") == "rulebook":
            bodies.append(body)
    return bodies


def test_created_replayed_and_refused_in_one_batch_each_as_alone(
    client: FlaskClient, key: str, instance: Instance, scope: Scope
) -> None:
    used = decide(client, key, sample_request(), x_idempotency_key="used").get_json()
    results = decide_batch(
        client,
        key,
        [
            item(BLOCKED, "a"),
            item(sample_request(), "used"),
            item(BLOCKED, "used"),
            item(HELD),
            item({"mode": "rulebook", "colour": "red"}, "b"),
            item(sample_request(), "c"),
        ],
    )
    assert brief(results) == ["created", "replayed", CONFLICT, "created", INVALID, "created"]
    assert [results[at]["record"]["verdict"] for at in (0, 3, 5)] == ["no", "review", "yes"]
    assert results[1]["record"] == used
    for result in results:
        if result["status"] == "created":
            record = result["record"]
            assert client.get(record["decision_url"], headers={"x-api-key": key}).get_json() == record
    assert chain_size(instance, scope) == 4
    assert check_chain(instance, scope.scope_id)[1] is None
    # What a refused request claimed is free.
    assert brief(decide_batch(client, key, [item(sample_request(), "b")])) == ["created"]


def test_the_records_of_a_batch_verify_elsewhere_and_stand_in_the_chain_in_their_order(
    client: FlaskClient, key: str, instance: Instance
) -> None:
    assert decide(client, key, sample_request()).status_code == 200
    bodies = [sample_request(discount_percent=number, margin_percent=22) for number in range(12)]
    results = decide_batch(client, key, [item(body, f"k{number}") for number, body in enumerate(bodies)])
    records = [result["record"] for result in results]
    keys = instance.receipt_keys.registry().to_dict()
    attested = instance.registry_keys.registry().to_dict()
    for body, record in zip(bodies, records, strict=True):
        assert verifier.record_failures(record, keys, attestation_keys=attested, request_body=body) == []
        assert record["input_hash"] == content_hash(body)
    assert [record["audit_chain"]["chain_position"] for record in records] == list(range(2, 14))
    assert [record["idempotency_key"] for record in records] == [f"k{number}" for number in range(12)]
    assert len({record["decision_id"] for record in records}) == 12


def test_every_refusal_is_that_of_a_single_call_and_fails_no_other(
    client: FlaskClient, key: str, instance: Instance, scope: Scope
) -> None:
    wrong = refusals()
    assert len(wrong) > 40
    # Alternating with good ones.
    items = [each for body in wrong for each in (item(body), item())]
    results = decide_batch(client, key, items)
    assert {result["status"] for result in results[1::2]} == {"created"}
    assert chain_size(instance, scope) == len(wrong)
    for body, result in zip(wrong, results[::2], strict=True):
        alone = decide(client, key, body)
        assert result["status"] == "refused"
        assert result["http_status"] == alone.status_code
        assert without_request_id(result["error"]) == without_request_id(alone.get_json())


def test_keys_of_batches_and_of_single_calls_are_the_same_keys(client: FlaskClient, key: str) -> None:
    request = sample_request()
    (made,) = decide_batch(client, key, [item(request | {"response_view": "full"}, "of a batch")])
    again = decide(client, key, request, x_idempotency_key="of a batch")
    assert (again.headers["x-idempotency-status"], again.get_json()) == ("replayed", made["record"])
    other = decide(client, key, BLOCKED, x_idempotency_key="of a batch")
    assert other.get_json()["existing_input_hash"] == content_hash(request)
    alone = decide(client, key, request | {"response_view": "minimal"}, x_idempotency_key="alone").get_json()
    (replayed,) = decide_batch(client, key, [item(request | {"response_view": "full"}, "alone")])
    assert replayed["status"] == "replayed"
    assert alone.items() <= replayed["record"].items()


class TestEqualKeys:
    """Requests of one batch with one key."""

    def test_the_first_creates_and_the_others_replay_or_conflict(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        invalid = sample_request() | {"colour": "red"}
        sent = [item(HELD, "k"), item(HELD, "k"), item(BLOCKED, "k"), item(invalid, "k"), item(HELD, "other")]
        results = decide_batch(client, key, sent)
        assert brief(results) == ["created", "replayed", CONFLICT, CONFLICT, "created"]
        assert results[1]["record"] == results[0]["record"]
        for result, body in zip(results[2:4], (BLOCKED, invalid), strict=True):
            alone = decide(client, key, body, x_idempotency_key="k").get_json()
            assert without_request_id(result["error"]) == without_request_id(alone)
        assert [results[at]["record"]["audit_chain"]["chain_position"] for at in (0, 4)] == [1, 2]
        assert chain_size(instance, scope) == 2
        again = decide_batch(client, key, sent)
        assert brief(again) == ["replayed", "replayed", CONFLICT, CONFLICT, "replayed"]
        assert [again[at]["record"] for at in (0, 1, 4)] == [results[at]["record"] for at in (0, 1, 4)]

    def test_a_refused_first_leaves_its_key_to_the_next(self, client: FlaskClient, key: str) -> None:
        invalid = sample_request() | {"colour": "red"}
        results = decide_batch(client, key, [item(invalid, "k"), item(HELD, "k"), item(invalid, "k")])
        assert brief(results) == [INVALID, "created", CONFLICT]

    def test_one_that_conflicts_registers_no_rulebook(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        other = sample_request()
        other["rulebook"]["version"] = "never registered"
        assert brief(decide_batch(client, key, [item(None, "k"), item(other, "k")])) == ["created", CONFLICT]
        registry = instance.ledger.rulebooks
        assert registry.find_version(scope.scope_id, "pricing_exception", "never registered") is None

    def test_five_hundred_of_them_are_one_record(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        results = decide_batch(client, key, [item(None, "k")] * MAX_REQUESTS, x_decision_response_view="minimal")
        assert brief(results) == ["created"] + ["replayed"] * (MAX_REQUESTS - 1)
        assert len({result["record"]["decision_id"] for result in results}) == 1
        assert chain_size(instance, scope) == 1


def test_the_view_of_a_record_is_the_requests_the_batchs_or_the_headers(client: FlaskClient, key: str) -> None:
    items = [item(sample_request() | {"response_view": "standard"}), item()]

    def views(response: Any) -> list[str]:
        records = [result["record"] for result in results_of(response)]
        return ["full" if "evaluation" in r else "standard" if "evidence" in r else "minimal" for r in records]

    minimal = {"requests": items, "response_view": "minimal"}
    assert views(send_batch(client, key, {"requests": items})) == ["standard", "full"]
    assert views(send_batch(client, key, minimal)) == ["standard", "minimal"]
    header = {"x_decision_response_view": "standard", "prefer": "return=minimal"}
    assert views(send_batch(client, key, {"requests": items}, **header)) == ["standard", "standard"]
    assert views(send_batch(client, key, {"requests": items}, prefer="return=minimal")) == ["standard", "minimal"]
    assert views(send_batch(client, key, minimal, **header)) == ["standard", "minimal"]
    (full,) = decide_batch(client, key, [item(None, "k")])
    shown = results_of(send_batch(client, key, {"requests": [item(None, "k")], "response_view": "minimal"}))
    assert shown[0]["record"] == project(full["record"], "minimal")


def test_advice_is_refused_and_the_rest_decided(client: FlaskClient, key: str) -> None:
    question = {"mode": "single", "question": "May this discount be given?"}
    results = decide_batch(client, key, [item(), item(question, "k"), item({"question": "Why?"}), item()])
    assert brief(results) == ["created", INVALID, INVALID, "created"]
    assert [fault["field"] for fault in results[1]["error"]["errors"]] == ["mode"]


def test_an_unusable_idempotency_key_refuses_its_request_alone(client: FlaskClient, key: str) -> None:
    keys = ["", "é", "a\tb", "k" * 301, "k" * 300]
    results = decide_batch(client, key, [item(None, name) for name in keys])
    assert brief(results) == [INVALID] * 4 + ["created"]
    alone = decide(client, key, sample_request(), x_idempotency_key="k" * 301).get_json()
    assert without_request_id(results[3]["error"]) == without_request_id(alone)


def test_a_hint_names_the_request_it_is_about(client: FlaskClient, key: str) -> None:
    slip = sample_request()
    slip["context"]["actionn"] = slip["context"].pop("requested_action")
    slip["context"]["Mutation"] = slip["context"].pop("mutation")
    hint = decide(client, key, slip).headers["x-decision-hint"]
    response = send_batch(client, key, {"requests": [item(), item(slip)]})
    assert response.headers["x-decision-hint"] == f"requests[1]: {hint}"
    assert "x-decision-hint" not in send_batch(client, key, {"requests": [item()]}).headers
