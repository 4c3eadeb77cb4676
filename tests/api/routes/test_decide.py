"""POST /api/decide: every request field, response field, header, view and refusal."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.http.requests import MAX_BODY
from gate.clock import utc_now
from gate.decisions.claims import MAX_IDEMPOTENCY_KEY
from gate.encoding.canonical import content_hash
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS, Scope
from tests.api.deciding import chain_size, decide, refused
from tests.end_to_end.support import ROOT
from tests.independent import verifier
from tests.support.documentation import section
from tests.support.rulebooks import change
from tests.support.samples import LimitClock, cases, sample_request, sample_rulebook


def test_an_approval_is_a_signed_chained_record_that_verifies_elsewhere(
    client: FlaskClient, key: str, instance: Instance
) -> None:
    request = sample_request()
    response = decide(client, key, request, x_idempotency_key="order-1", x_request_id="trace-1")
    assert response.status_code == 200
    record = response.get_json()
    assert (record["c"], record["v"], record["verdict"]) == ("yes", "APPROVE", "yes")
    assert record["rulebook_contract"]["schema_url"] == "http://gate.example/schemas/rulebook-v1.schema.json"
    assert record["audit_chain"]["chain_position"] == 1
    failures = verifier.record_failures(
        record,
        instance.receipt_keys.registry().to_dict(),
        attestation_keys=instance.registry_keys.registry().to_dict(),
        request_body=request,
    )
    assert failures == []


def test_every_response_header(client: FlaskClient, key: str) -> None:
    response = decide(client, key, sample_request(), x_idempotency_key="order-1", x_request_id="trace-1")
    record = response.get_json()
    assert {name: value for name, value in response.headers.items() if name.startswith("x-")} == {
        "x-decision-id": record["decision_id"],
        "x-decision-record-hash": record["record_hash"],
        "x-decision-receipt-hash": record["receipt_hash"],
        "x-decision-receipt-signature": record["receipt_signature"],
        "x-decision-verify-url": record["verify_url"],
        "x-idempotency-status": "created",
        "x-request-id": "trace-1",
        "x-content-type-options": "nosniff",
    }
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("inputs", "verdict", "reason", "rule"),
    [
        (
            {"discount_percent": 10, "margin_percent": 22},
            "yes",
            "STANDARD_EXCEPTION_ALLOWED",
            "approve_standard_exception",
        ),
        ({"discount_percent": 10, "margin_percent": 2}, "no", "MARGIN_FLOOR_BREACH", "block_below_margin_floor"),
        ({"discount_percent": 40, "margin_percent": 22}, "review", "NO_RULE_MATCHED", None),
        ({"discount_percent": 10}, "review", "INPUT_SCHEMA_FAILED", None),
        ({"discount_percent": True, "margin_percent": 22}, "review", "INPUT_SCHEMA_FAILED", None),
        ({"discount_percent": None, "margin_percent": 22}, "review", "INPUT_SCHEMA_FAILED", None),
    ],
)
def test_facts_decide(
    client: FlaskClient, key: str, inputs: dict[str, Any], verdict: str, reason: str, rule: str | None
) -> None:
    record = decide(client, key, sample_request(**inputs)).get_json()
    assert (record["verdict"], record["reason_code"], record["matched_rule_id"]) == (verdict, reason, rule)


@pytest.mark.parametrize("context", [None, {}, {"inputs": {}}])
def test_absent_facts_are_no_facts(client: FlaskClient, key: str, context: Any) -> None:
    request = {"mode": "rulebook", "rulebook": sample_rulebook()} | ({} if context is None else {"context": context})
    record = decide(client, key, request).get_json()
    assert record["verdict"] == "review"
    assert record["evaluation"]["missing_fields"] == ["discount_percent", "margin_percent"]


@pytest.mark.parametrize("case", cases("decide_refusals"), ids=lambda case: case["name"])
def test_a_refused_request_leaves_no_record_and_claims_no_key(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, case: dict[str, Any]
) -> None:
    body = case.get("body", sample_request())
    for name in case.get("unset", []):
        del body[name]
    for path, value in case.get("set", {}).items():
        change(body, path, value)
    answer = refused(decide(client, key, body, x_idempotency_key="k"), case["status"], case["error"])
    for name, code in case.get("fields", []):
        assert (name, code) in [(error["field"], error["code"]) for error in answer["errors"]]
    assert case.get("details", {}).items() <= answer.items()
    assert chain_size(instance, scope) == 0
    assert decide(client, key, sample_request(), x_idempotency_key="k").headers["x-idempotency-status"] == "created"


@dataclass
class Wrong:
    """A decide request that faults are put into."""

    path: str = "/api/decide"
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    body: dict[str, Any] = field(default_factory=sample_request)
    raw: bytes | None = None


def _registered_anew(wrong: Wrong) -> None:
    wrong.body["rulebook"]["rules"][0]["condition"]["value"] = 14


def _unregistered_adapter(wrong: Wrong) -> None:
    wrong.body["adapter"] = {"adapter_id": "a", "version": "1", "manifest_hash": "0" * 64, "input": {}}
    wrong.body["context"].pop("inputs", None)


# By its status and code, what puts a fault into a request that has every later one already, from the last to the first.
FAULTS: dict[tuple[int, str], Callable[[Wrong], object]] = {
    (404, "SVC_API_NOT_FOUND"): lambda wrong: setattr(wrong, "path", "/api/decides"),
    (405, "SVC_API_METHOD_NOT_ALLOWED"): lambda wrong: setattr(wrong, "method", "PUT"),
    (413, "SVC_API_PAYLOAD_TOO_LARGE"): lambda wrong: setattr(wrong, "raw", b"{" * (MAX_BODY + 1)),
    (415, "SVC_API_MEDIA_TYPE_UNSUPPORTED"): lambda wrong: wrong.headers.update({"content-type": "text/plain"}),
    (401, "SVC_API_UNAUTHORIZED"): lambda wrong: wrong.headers.update({"x-api-key": "dgk_unknown"}),
    (429, "SVC_API_RATE_LIMITED"): lambda wrong: wrong.headers.update({"x-api-key": wrong.headers["exhausted"]}),
    (400, "SVC_API_JSON_INVALID"): lambda wrong: setattr(wrong, "raw", b"{"),
    (422, "SVC_API_REQUEST_INVALID"): lambda wrong: wrong.headers.update(
        {"x-idempotency-key": "k" * (MAX_IDEMPOTENCY_KEY + 1)}
    ),
    (409, "SVC_API_IDEMPOTENCY_CONFLICT"): lambda wrong: wrong.headers.update({"x-idempotency-key": "used"}),
    (422, "RULEBOOK_BINDING_MODE_UNSUPPORTED"): lambda wrong: wrong.body.update(binding_mode=None),
    (422, "RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN"): lambda wrong: wrong.body.update(verdict="yes"),
    (422, "SVC_API_REQUEST_INVALID of the body"): lambda wrong: wrong.body.update(colour="red"),
    (422, "RULEBOOK_BINDING_MODE_CONFLICT"): lambda wrong: wrong.body.update(rulebook_ref={"hash": "0" * 64}),
    (422, "TRUSTED_ADAPTER_INPUT_CONFLICT"): lambda wrong: wrong.body["context"].update(inputs={}),
    (422, "RULEBOOK_INVALID"): lambda wrong: wrong.body["rulebook"].update(rules=[]),
    (422, "TRUSTED_ADAPTER_NOT_REGISTERED"): _unregistered_adapter,
    (409, "RULEBOOK_VERSION_CONFLICT"): _registered_anew,
    (429, "SVC_API_MONTHLY_CAP_EXCEEDED"): lambda wrong: None,
}
# On the page beside these: they exclude what comes later in the list, and have tests of their own.
ALONE = {
    "SVC_ADVISORY_UNCONFIGURED",
    "SVC_ADVISORY_BUSY",
    "SVC_ADVISORY_UPSTREAM_FAILED",
    "RULEBOOK_REF_UNKNOWN",
    "TRUSTED_ADAPTER_INVALID",
    "TRUSTED_ADAPTER_MANIFEST_MISMATCH",
    "TRUSTED_ADAPTER_INPUT_INVALID",
    "SVC_SIGNING_UNAVAILABLE",
    "SVC_STORAGE_UNAVAILABLE",
}


def test_the_page_lists_the_checks_in_the_order_that_is_tested() -> None:
    page = (ROOT / "docs" / "reference" / "errors" / "README.md").read_text()
    steps = section(page, "## Order of checks").partition("\nFor reports")[0]
    listed = re.findall(r"`((?:SVC|RULEBOOK|TRUSTED)_[A-Z_]+)`", steps)
    ordered = [code for code in dict.fromkeys(listed) if code not in ALONE]
    assert ordered == list(dict.fromkeys(code.removesuffix(" of the body") for _, code in FAULTS))
    assert listed.count("SVC_API_REQUEST_INVALID") == 3
    assert set(listed) >= ALONE


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[1])
def test_of_several_faults_the_first_in_the_order_of_the_page_answers(
    client: FlaskClient,
    key: str,
    instance: Instance,
    scope: Scope,
    limit_clock: LimitClock,
    fault: tuple[int, str],
) -> None:
    directory = instance.ledger.directory
    exhausted, _ = directory.create_key(scope, FULL_ACCESS, None, utc_now())
    directory.set_plan(scope, "starter", utc_now(), monthly_cap=1)
    assert decide(client, key, sample_request(), x_idempotency_key="used").status_code == 200
    for _ in range(20):
        client.post("/api/decide", data=b"{}", headers={"x-api-key": exhausted, "content-type": "application/json"})
    wrong = Wrong()
    wrong.headers |= {"x-api-key": key, "exhausted": exhausted}
    order = list(FAULTS)
    for later in reversed(order[order.index(fault) :]):
        FAULTS[later](wrong)
    raw = wrong.raw if wrong.raw is not None else json.dumps(wrong.body).encode()
    response = client.open(wrong.path, method=wrong.method, data=raw, headers=wrong.headers)
    status, code = fault
    assert (response.status_code, response.get_json()["error"]) == (status, code.removesuffix(" of the body"))
    assert chain_size(instance, scope) == 1


def test_checks_before_the_body_come_in_order(client: FlaskClient, key: str) -> None:
    big = b"x" * (1024 * 1024 + 1)

    def post(data: bytes, type_: str, key: str | None) -> TestResponse:
        return client.post(
            "/api/decide", data=data, content_type=type_, headers={} if key is None else {"x-api-key": key}
        )

    response = client.put("/api/decide", data=big)
    refused(response, 405, "SVC_API_METHOD_NOT_ALLOWED")
    assert response.headers["allow"] == "OPTIONS, POST"
    refused(post(big, "text/plain", None), 413, "SVC_API_PAYLOAD_TOO_LARGE")
    refused(post(b"{", "text/plain", None), 415, "SVC_API_MEDIA_TYPE_UNSUPPORTED")
    refused(post(b"{", "application/json", None), 401, "SVC_API_UNAUTHORIZED")
    refused(post(b"{", "application/json", key), 400, "SVC_API_JSON_INVALID")
    refused(post(b"", "application/json", key), 400, "SVC_API_JSON_INVALID")
    assert post(b"{}", "application/json; charset=utf-8", key).status_code == 422
    assert client.get("/api/nowhere").status_code == 404


def test_a_body_at_the_limit_is_read_and_a_compressed_one_is_not(client: FlaskClient, key: str) -> None:
    padded = sample_request()
    padded["context"]["note"] = ""
    padded["context"]["note"] = "x" * (1024 * 1024 - len(json.dumps(padded)))
    assert len(json.dumps(padded)) == 1024 * 1024
    assert decide(client, key, padded).status_code == 200
    padded["context"]["note"] += "x"
    refused(decide(client, key, padded), 413, "SVC_API_PAYLOAD_TOO_LARGE")
    refused(decide(client, key, sample_request(), content_encoding="gzip"), 415, "SVC_API_MEDIA_TYPE_UNSUPPORTED")


def test_a_body_that_ended_early_never_decides(client: FlaskClient, key: str) -> None:
    whole = json.dumps(sample_request()).encode()
    response = client.post(
        "/api/decide",
        data=whole,
        content_type="application/json",
        headers={"x-api-key": key},
        environ_overrides={"CONTENT_LENGTH": str(len(whole) + 100)},
    )
    refused(response, 400, "SVC_API_JSON_INVALID")


@pytest.mark.parametrize("number", ["1e400", "NaN", "Infinity", "-Infinity", "9007199254740993"])
def test_a_number_that_no_double_holds_never_approves(client: FlaskClient, key: str, number: str) -> None:
    text = json.dumps(sample_request(discount_percent=10, margin_percent=777)).replace("777", number)
    refused(decide(client, key, text.encode()), 400, "SVC_API_JSON_INVALID")


def test_a_duplicate_fact_never_approves(client: FlaskClient, key: str) -> None:
    text = json.dumps(sample_request(margin_percent=2, discount_percent=10)).replace(
        '"margin_percent": 2', '"margin_percent": 2, "margin_percent": 22'
    )
    refused(decide(client, key, text.encode()), 400, "SVC_API_JSON_INVALID")


class TestKeys:
    """Who may decide."""

    def test_no_key_and_unknown_keys_are_unauthorized(self, client: FlaskClient, key: str) -> None:
        for sent in (None, "", "x", key[:-1], f"{key}x", "dgk_0_0"):
            answer = refused(decide(client, sent, sample_request()), 401, "SVC_API_UNAUTHORIZED")
            assert answer["v"] == "unauthorized"
            assert key not in json.dumps(answer)

    def test_a_key_in_the_address_is_no_key(self, client: FlaskClient, key: str) -> None:
        response = client.post(f"/api/decide?x-api-key={key}", json=sample_request())
        refused(response, 401, "SVC_API_UNAUTHORIZED")

    def test_disabled_expired_and_lacking_keys_are_forbidden(
        self, client: FlaskClient, instance: Instance, scope: Scope
    ) -> None:
        directory = instance.ledger.directory
        disabled, made = directory.create_key(scope, FULL_ACCESS, None, utc_now())
        directory.disable_key(made.key_id, utc_now())
        lacking, _ = directory.create_key(scope, {"read", "report", "register"}, None, utc_now())
        for sent in (disabled, lacking):
            answer = refused(decide(client, sent, sample_request()), 403, "SVC_API_UNAUTHORIZED")
            assert answer["v"] == "unauthorized"
        assert chain_size(instance, scope) == 0

    def test_a_key_without_register_decides_only_with_registered_rulebooks(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        deciding, _ = instance.ledger.directory.create_key(scope, {"decide"}, None, utc_now())
        refused(decide(client, deciding, sample_request()), 403, "SVC_API_UNAUTHORIZED")
        assert decide(client, key, sample_request()).status_code == 200
        assert decide(client, deciding, sample_request()).status_code == 200


class TestRulebookReferences:
    """Rulebooks named instead of sent."""

    @pytest.mark.parametrize(
        "reference",
        [
            {"rulebook_id": "pricing_exception", "version": "2026-06-11"},
            {"hash": "c986eb64d4d724d7a86436458d3d6502a97fea01ef1f7f37c015d94426fb56ee"},
        ],
    )
    def test_a_registered_rulebook_decides_by_reference(
        self, client: FlaskClient, key: str, instance: Instance, reference: dict[str, str]
    ) -> None:
        sent = decide(client, key, sample_request()).get_json()
        request = sample_request()
        del request["rulebook"]
        request["rulebook_ref"] = reference
        referred = decide(client, key, request).get_json()
        assert referred["rulebook"] == sent["rulebook"]
        assert referred["rulebook_registry"] == sent["rulebook_registry"]
        assert referred["rulebook_attestation"]["bundle_hash"] == sent["rulebook_attestation"]["bundle_hash"]
        assert referred["input_hash"] == content_hash(request) != sent["input_hash"]
        keys = instance.receipt_keys.registry().to_dict()
        assert verifier.record_failures(referred, keys, request_body=request, rulebook=sample_rulebook()) == []

    def test_another_scopes_rulebook_is_unknown(self, client: FlaskClient, key: str, instance: Instance) -> None:
        assert decide(client, key, sample_request()).status_code == 200
        other = instance.ledger.directory.create_scope("other", "starter", utc_now())
        other_key, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
        request = sample_request()
        del request["rulebook"]
        request["rulebook_ref"] = {"rulebook_id": "pricing_exception", "version": "2026-06-11"}
        refused(decide(client, other_key, request), 422, "RULEBOOK_REF_UNKNOWN")

    def test_a_version_never_takes_another_body(self, client: FlaskClient, key: str) -> None:
        assert decide(client, key, sample_request()).status_code == 200
        request = sample_request()
        request["rulebook"]["rules"][0]["condition"]["value"] = 1
        answer = refused(decide(client, key, request), 409, "RULEBOOK_VERSION_CONFLICT")
        assert answer["v"] == "rulebook_version_conflict"
        request["rulebook"]["version"] = "2026-06-12"
        assert decide(client, key, request).status_code == 200

    def test_every_record_cites_the_first_registration(self, client: FlaskClient, key: str) -> None:
        first, second = (decide(client, key, sample_request()).get_json() for _ in range(2))
        assert first["rulebook_registry"] == second["rulebook_registry"]
        assert first["rulebook_registry"]["registered_at"] <= first["created_at"]


class TestIdempotency:
    """Created, replayed, conflict."""

    def test_the_same_payload_is_replayed_byte_for_byte(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        first = decide(client, key, sample_request(), x_idempotency_key="order-1")
        again = decide(client, key, sample_request(), x_idempotency_key="order-1")
        assert (first.headers["x-idempotency-status"], again.headers["x-idempotency-status"]) == ("created", "replayed")
        assert again.data == first.data
        assert first.get_json()["idempotency_key"] == "order-1"
        assert chain_size(instance, scope) == 1

    def test_numbers_of_equal_value_and_members_in_another_order_are_the_same_payload(
        self, client: FlaskClient, key: str
    ) -> None:
        first = decide(client, key, sample_request(discount_percent=10, margin_percent=22), x_idempotency_key="k")
        respelled = dict(reversed(sample_request(margin_percent=22.0, discount_percent=10.0).items()))
        again = decide(client, key, respelled, x_idempotency_key="k")
        assert again.headers["x-idempotency-status"] == "replayed"
        assert again.data == first.data

    @pytest.mark.parametrize("view", ["minimal", "standard", "full"])
    def test_another_view_of_the_same_record_is_replayed(self, client: FlaskClient, key: str, view: str) -> None:
        full = decide(client, key, sample_request(), x_idempotency_key="k").get_json()
        again = decide(client, key, sample_request() | {"response_view": view}, x_idempotency_key="k")
        assert again.headers["x-idempotency-status"] == "replayed"
        assert again.get_json().items() <= full.items()

    @pytest.mark.parametrize(
        "changed",
        [
            {"context": {"inputs": {"discount_percent": 11, "margin_percent": 22}}},
            {"question": "?"},
            {"colour": "not even a request"},
            {"mode": "single", "question": "?"},
        ],
    )
    def test_another_payload_conflicts_before_anything_else_is_said_of_it(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, changed: dict[str, Any]
    ) -> None:
        first = decide(client, key, sample_request(), x_idempotency_key="order-1").get_json()
        body = sample_request() | changed
        answer = refused(decide(client, key, body, x_idempotency_key="order-1"), 409, "SVC_API_IDEMPOTENCY_CONFLICT")
        assert answer["v"] == "idempotency_conflict"
        assert answer["idempotency_key"] == "order-1"
        assert answer["decision_id"] == first["decision_id"]
        assert answer["existing_input_hash"] == first["input_hash"]
        assert answer["input_hash"] == content_hash(body)
        assert chain_size(instance, scope) == 1

    def test_a_conflicting_request_registers_no_rulebook(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        decide(client, key, sample_request(), x_idempotency_key="k")
        request = sample_request()
        request["rulebook"]["version"] = "never registered"
        refused(decide(client, key, request, x_idempotency_key="k"), 409, "SVC_API_IDEMPOTENCY_CONFLICT")
        registry = instance.ledger.rulebooks
        assert registry.find_version(scope.scope_id, "pricing_exception", "never registered") is None

    def test_scopes_do_not_share_keys(self, client: FlaskClient, key: str, instance: Instance) -> None:
        other = instance.ledger.directory.create_scope("other", "starter", utc_now())
        other_key, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
        for sent in (key, other_key):
            response = decide(client, sent, sample_request(), x_idempotency_key="k")
            assert response.headers["x-idempotency-status"] == "created"

    def test_without_a_key_every_call_creates(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        records = [decide(client, key, sample_request()).get_json() for _ in range(2)]
        assert records[0]["decision_id"] != records[1]["decision_id"]
        assert "idempotency_key" not in records[0]
        assert chain_size(instance, scope) == 2

    @pytest.mark.parametrize("sent", ["", "é", "a\tb", "k" * (MAX_IDEMPOTENCY_KEY + 1)])
    def test_a_key_that_could_be_cut_or_misread_is_refused(self, client: FlaskClient, key: str, sent: str) -> None:
        response = client.post(
            "/api/decide", json=sample_request(), headers={"x-api-key": key, "x-idempotency-key": sent}
        )
        refused(response, 422, "SVC_API_REQUEST_INVALID")

    def test_the_longest_key_is_kept_whole(self, client: FlaskClient, key: str) -> None:
        longest = "k" * MAX_IDEMPOTENCY_KEY
        record = decide(client, key, sample_request(), x_idempotency_key=longest).get_json()
        assert record["idempotency_key"] == longest


class TestViews:
    """Which view is answered."""

    @pytest.mark.parametrize(
        ("body", "headers", "view"),
        [
            (None, {}, "full"),
            ("minimal", {}, "minimal"),
            ("standard", {}, "standard"),
            ("full", {}, "full"),
            (None, {"x_decision_response_view": "minimal"}, "minimal"),
            (None, {"prefer": "return=standard"}, "standard"),
            (None, {"prefer": 'respond-async, return="minimal"; x=1'}, "minimal"),
            (None, {"prefer": "Return=Minimal"}, "minimal"),
            (None, {"prefer": "return=representation"}, "full"),
            (None, {"prefer": "wait=10"}, "full"),
            (None, {"x_decision_response_view": "standard", "prefer": "return=minimal"}, "standard"),
            ("full", {"x_decision_response_view": "standard", "prefer": "return=minimal"}, "full"),
        ],
    )
    def test_the_body_wins_over_the_header_and_the_header_over_prefer(
        self, client: FlaskClient, key: str, body: str | None, headers: dict[str, str], view: str
    ) -> None:
        request = sample_request() | ({} if body is None else {"response_view": body})
        record = decide(client, key, request, **headers).get_json()
        found = "full" if "evaluation" in record else "standard" if "evidence" in record else "minimal"
        assert found == view
        assert record["v"] == "APPROVE"

    def test_a_used_key_replays_whatever_view_the_header_names(self, client: FlaskClient, key: str) -> None:
        first = decide(client, key, sample_request(), x_idempotency_key="k")
        again = decide(client, key, sample_request(), x_idempotency_key="k", x_decision_response_view="tiny")
        assert (again.headers["x-idempotency-status"], again.data) == ("replayed", first.data)

    def test_a_header_that_names_no_view_is_refused(self, client: FlaskClient, key: str) -> None:
        response = decide(client, key, sample_request(), x_decision_response_view="tiny")
        answer = refused(response, 422, "SVC_API_REQUEST_INVALID")
        assert answer["errors"][0]["field"] == "x-decision-response-view"

    def test_the_view_is_no_part_of_the_input_hash(self, client: FlaskClient, key: str) -> None:
        hashes = set()
        for view in ({}, {"response_view": "minimal"}, {"response_view": "standard"}, {"response_view": "full"}):
            made = decide(client, key, sample_request() | view).get_json()
            hashes.add(client.get(made["decision_url"], headers={"x-api-key": key}).get_json()["input_hash"])
        assert hashes == {content_hash(sample_request())}

    def test_all_views_keep_the_same_proof(self, client: FlaskClient, key: str) -> None:
        views = [
            decide(client, key, sample_request() | {"response_view": view}, x_idempotency_key="k").get_json()
            for view in ("minimal", "standard", "full")
        ]
        for name in (
            "decision_id",
            "record_hash",
            "receipt_hash",
            "policy_bundle_hash",
            "receipt_key_id",
            "receipt_signature",
            "receipt_signature_algorithm",
            "receipt_public_key_fingerprint",
            "verify_url",
        ):
            assert len({view[name] for view in views}) == 1, name


@pytest.mark.parametrize(
    ("sent", "echoed"),
    [("trace-1", True), ("a" * 160, True), ("a" * 161, False), ("a b", False), ("<script>", False), ("", False)],
)
def test_a_safe_request_id_is_echoed_and_the_record_keeps_its_own(
    client: FlaskClient, key: str, sent: str, echoed: bool
) -> None:
    response = decide(client, key, sample_request(), x_request_id=sent)
    record = response.get_json()
    assert record["request_id"].startswith("req_")
    assert response.headers["x-request-id"] == (sent if echoed else record["request_id"])


def test_an_error_is_found_in_logs_by_its_request_id(client: FlaskClient) -> None:
    response = client.post("/api/decide", json={})
    assert response.headers["x-request-id"] == response.get_json()["request_id"]


def test_money_is_the_callers_number_untouched(client: FlaskClient, key: str) -> None:
    text = json.dumps(sample_request()).replace("1200.5", "0.1000000000000000055511151231257827")
    record = decide(client, key, text.encode()).get_json()
    assert record["action_binding"]["amount"] == 0.1
    big = decide(client, key, json.dumps(sample_request()).replace("1200.5", "9007199254740991").encode())
    assert b'"amount":9007199254740991' in big.data


def test_u0000_and_astral_characters_are_legal_everywhere(client: FlaskClient, key: str, instance: Instance) -> None:
    request = sample_request(discount_percent=10, margin_percent=22, note="\u0000😀")
    request["rulebook"]["version"] = "v\u0000😀"
    request["context"]["target_object_id"] = "\u0000"
    record = decide(client, key, request).get_json()
    assert record["policy_version"] == "v\u0000😀"
    stored = client.get(record["decision_url"], headers={"x-api-key": key}).get_json()
    assert stored == record
    keys = instance.receipt_keys.registry().to_dict()
    assert verifier.record_failures(stored, keys, request_body=request) == []


def test_without_a_signing_key_nothing_is_decided(
    client: FlaskClient, key: str, instance: Instance, scope: Scope
) -> None:
    first = decide(client, key, sample_request(), x_idempotency_key="k")
    (instance.settings.home / "keys" / "receipt.json").unlink()
    refused(decide(client, key, sample_request()), 503, "SVC_SIGNING_UNAVAILABLE")
    assert chain_size(instance, scope) == 1
    again = decide(client, key, sample_request(), x_idempotency_key="k")
    assert again.data == first.data, "what was signed before is still replayed"


def test_without_storage_nothing_is_decided(client: FlaskClient, key: str, instance: Instance) -> None:
    assert decide(client, key, sample_request()).status_code == 200
    with instance.ledger.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE entries RENAME TO gone")
    answer = refused(decide(client, key, sample_request(), x_idempotency_key="k"), 503, "SVC_STORAGE_UNAVAILABLE")
    assert answer["v"] == "service_unavailable"
    with instance.ledger.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE gone RENAME TO entries")
    response = decide(client, key, sample_request(), x_idempotency_key="k")
    assert (response.status_code, response.headers["x-idempotency-status"]) == (200, "created")


def test_an_unexpected_failure_says_nothing_of_the_request(
    client: FlaskClient, log: BytesIO, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gate.decisions import decide as module

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(sample_request()["context"]["subject"])

    monkeypatch.setattr(module, "build_record", fail)
    response = decide(client, key, sample_request())
    refused(response, 500, "SVC_INTERNAL_ERROR")
    logged = log.getvalue().decode()
    assert key not in logged
    assert "customer-9" not in logged
    assert response.get_json()["request_id"] in logged
    assert "RuntimeError" in logged


def test_a_request_is_not_changed_by_being_answered(client: FlaskClient, key: str) -> None:
    request = sample_request()
    before = copy.deepcopy(request)
    decide(client, key, request)
    assert request == before
