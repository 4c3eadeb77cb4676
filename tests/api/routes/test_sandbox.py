"""The sandbox: the shape of a decision for anyone, and nothing that anybody could take for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.instance.instance import Instance
from gate.labels import VIEWS
from gate.ledger.access.authority import Scope
from gate.ledger.tables import metadata
from gate.records.envelope import envelope, receipt_material
from gate.verify import Trust, verify_record
from tests.api.deciding import decide, refused
from tests.end_to_end.site import Site
from tests.independent import verifier
from tests.support.command_line import run_gate
from tests.support.samples import cases, sample_request
from tests.support.sandbox import DISGUISES, unmarked

PATH = "/api/sandbox/decide"
LIMIT = 64 * 1024
OF_ITS_OWN = {
    "decision_record_version",
    "decision_id",
    "request_id",
    "created_at",
    "rulebook_attestation",
    "integrity",
    "record_hash",
    "receipt_hash",
}
WITHHELD = {
    "receipt_key_id",
    "receipt_signature",
    "receipt_signature_algorithm",
    "receipt_public_key_fingerprint",
    "rulebook_registry",
    "registry_attestation",
    "audit_chain",
    "verify_url",
    "replay_url",
    "decision_url",
}

Ask: TypeAlias = Callable[..., TestResponse]


@pytest.fixture
def ask(client: FlaskClient) -> Ask:
    """Asks the sandbox, each time from another address, so that no limit is met by chance."""
    addresses = count(1)

    def asked(body: Any, content_type: str = "application/json", **headers: str) -> TestResponse:
        return client.post(
            PATH,
            data=body if isinstance(body, bytes) else json.dumps(body).encode(),
            content_type=content_type,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            environ_base={"REMOTE_ADDR": f"2001:db8:0:{next(addresses):x}::1"},
        )

    return asked


def held(instance: Instance) -> dict[str, int]:
    """How many rows each table of the ledger has."""
    with instance.ledger.store.read() as connection:
        return {table.name: len(connection.execute(table.select()).all()) for table in metadata.sorted_tables}


def request_of(case: dict[str, Any]) -> Any:
    """The request of a case: `body`, or the sample without `unset` and with `set`, by dotted paths."""
    if "body" in case:
        return case["body"]
    request: Any = sample_request()
    for name in case.get("unset", []):
        del request[name]
    for path, value in case.get("set", {}).items():
        *outer, last = path.split(".")
        holder = request
        for step in outer:
            holder = holder[int(step) if isinstance(holder, list) else step]
        holder[int(last) if isinstance(holder, list) else last] = value
    return request


class TestAnswer:
    @pytest.mark.parametrize("view", VIEWS)
    def test_it_has_the_members_of_a_record_in_each_view_but_those_that_bind(
        self, client: FlaskClient, ask: Ask, key: str, view: str
    ) -> None:
        answer = ask(sample_request(), x_decision_response_view=view).get_json()
        record = decide(client, key, sample_request(), x_decision_response_view=view).get_json()
        assert answer.keys() == record.keys() - WITHHELD | {"sandbox", "notice"}
        assert (answer["sandbox"], answer["decision_record_version"]) == (True, "decision_sandbox_v1")
        assert "not a Decision Record" in answer["notice"]
        jsonschema.Draft202012Validator(resources.schema("sandbox-answer")).validate(answer)

    @pytest.mark.parametrize("facts", [{"discount_percent": 10, "margin_percent": 22}, {"margin_percent": 1}])
    def test_it_says_what_the_decision_would_say(
        self, client: FlaskClient, ask: Ask, key: str, facts: dict[str, Any]
    ) -> None:
        request = sample_request(**facts)
        answer, record = ask(request).get_json(), decide(client, key, request).get_json()
        same = answer.keys() & record.keys() - OF_ITS_OWN
        assert {"verdict", "evaluation", "input_hash", "output_hash", "policy_hash", "policy_bundle_hash"} <= same
        assert {name: answer[name] for name in same} == {name: record[name] for name in same}
        assert answer["rulebook_attestation"]["bundle_hash"] == record["rulebook_attestation"]["bundle_hash"]

    def test_nothing_in_it_is_signed(self, ask: Ask) -> None:
        answer = ask(sample_request()).get_json()
        signature = answer["rulebook_attestation"]["signature"]
        assert (signature["status"], signature["key_id"], signature["signature"]) == ("unsigned", None, None)
        assert answer["integrity"]["signature"] is None
        assert "ed25519:" not in json.dumps(answer)

    def test_its_id_leads_nowhere(self, client: FlaskClient, ask: Ask, key: str) -> None:
        decision_id = ask(sample_request()).get_json()["decision_id"]
        assert decision_id.startswith("sbx_")
        for method, suffix in (("GET", ""), ("GET", "/verify"), ("POST", "/replay"), ("GET", "/packet")):
            path = f"/api/decision/{decision_id}{suffix}"
            assert client.open(path, method=method, headers={"x-api-key": key}).status_code == 404

    def test_nothing_is_stored_and_nobody_is_recognized(
        self, client: FlaskClient, ask: Ask, instance: Instance, key: str, log: BytesIO
    ) -> None:
        before = held(instance)
        for sent in ({}, {"x_api_key": key}, {"x_api_key": "dgk_wrong"}, {"x_idempotency_key": "order-1"}):
            answer = ask(sample_request(), **sent)
            assert answer.status_code == 200
            told = {name.lower() for name, _ in answer.headers}
            assert not [name for name in told if name.startswith(("x-decision-", "x-idempotency", "x-ratelimit"))]
            assert "idempotency_key" not in answer.get_json()
        assert held(instance) == before
        token = instance.settings.metrics_token.read_text().strip()
        metrics = client.get("/metrics", headers={"x-metrics-token": token}).get_data(as_text=True)
        assert "gate_decisions_total{" not in metrics
        assert "key_id" not in log.getvalue().decode()

    def test_it_warns_of_the_rulebook_and_of_facts_in_the_wrong_place(self, ask: Ask) -> None:
        request = sample_request()
        request["rulebook"]["input_schema"]["required"] = []
        request["rulebook"]["default_outcome"]["decision"] = "yes"
        request["context"]["input"] = request["context"].pop("inputs")
        answer = ask(request)
        assert "approves_without_facts input_schema.required" in answer.headers["x-rulebook-warnings"]
        assert "context.inputs" in answer.headers["x-decision-hint"]

    def test_the_view_of_the_body_goes_before_that_of_a_header(self, ask: Ask) -> None:
        body = {**sample_request(), "response_view": "minimal"}
        assert "created_at" not in ask(body, x_decision_response_view="full").get_json()
        assert "created_at" in ask(sample_request(), prefer="return=standard").get_json()

    def test_hostile_facts_are_facts(self, ask: Ask) -> None:
        hostile: list[Any] = ["\u0000", "\u202e", "=1+1", 1e300, [[[]]], {"": None}, "x" * 50_000, 2**53 - 1]
        for value in hostile:
            answer = ask(sample_request(discount_percent=value, margin_percent=22))
            assert (answer.status_code, answer.get_json()["verdict"]) == (200, "review"), value


class TestRefusals:
    @pytest.mark.parametrize("case", cases("sandbox_refusals"), ids=lambda case: str(case["name"]))
    def test_what_only_the_real_endpoint_has_is_refused_with_the_reason(self, ask: Ask, case: dict[str, Any]) -> None:
        body = refused(ask(request_of(case)), 422, "SANDBOX_REQUEST_UNSUPPORTED")
        assert [(error["field"], error["code"]) for error in body["errors"]] == [(case["field"], "sandbox")]
        assert case["says"] in body["message"]
        assert "POST /api/decide" in body["message"]

    @pytest.mark.parametrize("case", cases("decide_refusals"), ids=lambda case: str(case["name"]))
    def test_what_decide_refuses_is_refused_alike(
        self, client: FlaskClient, ask: Ask, key: str, case: dict[str, Any]
    ) -> None:
        answer = refused(ask(request_of(case)), 422, ask(request_of(case)).get_json()["error"])
        if answer["error"] == "SANDBOX_REQUEST_UNSUPPORTED":
            # What decide would have looked up, invoked or asked next.
            assert case["error"] in (
                "SVC_ADVISORY_UNCONFIGURED",
                *(["SVC_API_REQUEST_INVALID"] if answer["errors"][0]["field"] == "mode" else []),
                "RULEBOOK_REF_UNKNOWN",
                "TRUSTED_ADAPTER_NOT_REGISTERED",
                "TRUSTED_ADAPTER_INVALID",
                "RULEBOOK_INVALID",
            )
            return
        expected = decide(client, key, request_of(case)).get_json()
        assert {**answer, "request_id": ""} == {**expected, "request_id": ""}

    def test_bodies_are_bounded_and_read_strictly(self, client: FlaskClient, ask: Ask) -> None:
        refused(ask(b" " * (LIMIT + 1)), 413, "SVC_API_PAYLOAD_TOO_LARGE")
        for body in (b" " * LIMIT, b'{"a": 1' + b"0" * 300 + b"}", b"[" * 33 + b"]" * 33, b'{"a": 1, "a": 1}', b""):
            refused(ask(body), 400, "SVC_API_JSON_INVALID")
        refused(ask(b"{}", content_type="text/plain"), 415, "SVC_API_MEDIA_TYPE_UNSUPPORTED")
        assert client.get(PATH).status_code == 405

    def test_the_limit_comes_before_the_body_is_read_and_holds_for_one_address(
        self, client: FlaskClient, home: Path, instance: Instance, key: str
    ) -> None:
        limit, sample = instance.settings.sandbox_requests_per_minute, json.dumps(sample_request()).encode()

        def send(address: str, body: bytes) -> TestResponse:
            headers = {"x-api-key": key}
            origin = {"REMOTE_ADDR": address}
            return client.post(PATH, data=body, headers=headers, content_type="application/json", environ_base=origin)

        assert [send("203.0.113.1", b"{").status_code for _ in range(limit)] == [400] * limit
        for body in (b"{", sample):
            told = refused(send("203.0.113.1", body), 429, "SVC_API_RATE_LIMITED")
            assert 0 < told["retry_after"] <= 61
        refused(send("203.0.113.1", b" " * (LIMIT + 1)), 413, "SVC_API_PAYLOAD_TOO_LARGE")
        assert send("203.0.113.2", sample).status_code == 200
        assert decide(client, key, sample_request()).status_code == 200

    @pytest.mark.heavy
    def test_the_limit_holds_over_all_workers(self, tmp_path: Path) -> None:
        with Site(tmp_path / "home", None).serving(2) as server:
            # A connection each, so that both workers are asked.
            statuses = [
                httpx.post(f"{server.url}{PATH}", json=sample_request(), trust_env=False, timeout=30).status_code
                for _ in range(16)
            ]
        assert statuses == [200] * 10 + [429] * 6


class TestProof:
    @pytest.mark.parametrize("disguise", DISGUISES)
    def test_no_verifier_takes_it_for_a_record(
        self, client: FlaskClient, ask: Ask, instance: Instance, key: str, scope: Scope, disguise: str, tmp_path: Path
    ) -> None:
        request = sample_request()
        # Of other facts: a record of the same facts would be a decision.
        record = decide(client, key, sample_request(discount_percent=12, margin_percent=30)).get_json()
        dressed = DISGUISES[disguise](ask(request).get_json(), record)
        at_hand = f"/api/decision/{record['decision_id']}/verify"
        for path, body, headers in (
            ("/api/decision/verify", dressed, {}),
            ("/api/decision/verify", {"record": dressed, "input": request}, {}),
            (at_hand, {"record": dressed}, {"x-api-key": key}),
        ):
            found = client.post(path, json=body, headers=headers).get_json()
            assert found["verified"] is False
            assert found["error"]
        receipts, attestations = instance.receipt_keys.registry(), instance.registry_keys.registry()
        trust = Trust(receipt_keys=receipts, attestation_keys=attestations, source="registry")
        assert not verify_record(dressed, trust, request_body=request).verified
        assert verifier.record_failures(dressed, receipts.to_dict(), attestation_keys=attestations.to_dict())
        for name, content in (("record", dressed), ("registry", receipts.to_dict())):
            (tmp_path / f"{name}.json").write_text(json.dumps(content))
        done = run_gate("verify", str(tmp_path / "record.json"), "--registry", str(tmp_path / "registry.json"))
        assert done.returncode == 1

    def test_a_verifier_says_what_it_is(self, client: FlaskClient, ask: Ask) -> None:
        for view in VIEWS:
            answer = ask(sample_request(), x_decision_response_view=view).get_json()
            found = client.post("/api/decision/verify", json=answer).get_json()
            assert (found["error"], found["verified"]) == ("RECORD_INCOMPLETE", False)
            assert "a sandbox response" in found["message"]

    def test_its_hashes_hold_under_its_own_version_alone(self, ask: Ask) -> None:
        answer = ask(sample_request()).get_json()
        assert answer["record_hash"] == content_hash(envelope(answer))
        assert answer["receipt_hash"] == content_hash(receipt_material(answer))
        assert answer["record_hash"] != content_hash(envelope(unmarked(answer)))
        assert answer["receipt_hash"] != content_hash(receipt_material(unmarked(answer)))
