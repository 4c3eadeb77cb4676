"""The verify endpoints: any exported record by anyone, stored ones by their scope."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient

from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.encoding import resources
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS
from gate.proof.signing import Ed25519Signer, public_key_pem
from tests.support.samples import make_record, sample_request
from tests.support.tampering import as_doubles


@pytest.fixture
def record(client: FlaskClient, key: str) -> dict[str, Any]:
    response = client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
    made: dict[str, Any] = response.get_json()
    return made


def result_of(response: Any, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.data
    body: dict[str, Any] = response.get_json()
    jsonschema.Draft202012Validator(resources.schema("verification-result")).validate(body)
    assert body["ok"] is body["verified"]
    return body


def test_the_endpoint_describes_itself_to_anyone(client: FlaskClient) -> None:
    body = client.get("/api/decision/verify").get_json()
    assert body["endpoint"] == "/api/decision/verify"
    assert body["accepts"].keys() == {"record", "input", "public_key"}
    for name in ("receipt_keys_url", "attestation_keys_url"):
        assert client.get(body[name]).status_code == 200


@pytest.mark.parametrize("wrapped", [True, False])
def test_anyone_can_verify_an_exported_record(client: FlaskClient, record: dict[str, Any], wrapped: bool) -> None:
    body = {"record": record} if wrapped else record
    result = result_of(client.post("/api/decision/verify", json=body))
    assert result["verified"] is True
    assert result["key_source"] == "server"
    assert result["checks"]["attestation_signature"] is True
    assert result["checks"]["input_hash"] is None


def test_integers_can_be_written_as_doubles(client: FlaskClient, key: str, record: dict[str, Any]) -> None:
    sent = {"record": as_doubles(record), "input": as_doubles(sample_request())}
    stored = f"/api/decision/{record['decision_id']}/verify"
    for path in ("/api/decision/verify", stored):
        result = result_of(client.post(path, json=sent, headers={"x-api-key": key}))
        assert (result["verified"], result["checks"]["input_hash"]) == (True, True)


def test_the_original_input_is_checked_when_it_is_sent(client: FlaskClient, record: dict[str, Any]) -> None:
    sent = {"record": record, "input": sample_request()}
    result = result_of(client.post("/api/decision/verify", json=sent))
    assert (result["verified"], result["checks"]["input_hash"], result["checks"]["rulebook_hash"]) == (True, True, True)
    sent["input"]["context"]["inputs"]["discount_percent"] = 11
    result = result_of(client.post("/api/decision/verify", json=sent))
    assert (result["verified"], result["error"]) == (False, "INPUT_MISMATCH")
    assert result["checks"]["facts_hash"] is False


def test_a_changed_record_is_not_verified_and_the_place_is_named(client: FlaskClient, record: dict[str, Any]) -> None:
    result = result_of(client.post("/api/decision/verify", json=record | {"reason_code": "OTHER_REASON"}))
    assert (result["verified"], result["integrity_valid"], result["authenticity_valid"]) == (False, False, True)
    assert result["checks"]["record_hash"] is False
    assert result["actual"]["record_hash"] == record["record_hash"] != result["expected"]["record_hash"]
    assert "record_hash" in result["message"]


def test_a_record_of_another_service_is_not_verified(client: FlaskClient) -> None:
    result = result_of(client.post("/api/decision/verify", json=make_record()))
    assert (result["verified"], result["integrity_valid"], result["error"]) == (False, True, "SIGNING_KEY_UNKNOWN")


def test_a_key_that_the_request_supplies_shows_integrity_only(client: FlaskClient) -> None:
    from tests.support.samples import RECEIPT_SIGNER

    sent = {"record": make_record(), "public_key": RECEIPT_SIGNER.public_key}
    result = result_of(client.post("/api/decision/verify", json=sent))
    assert (result["verified"], result["integrity_valid"], result["key_source"]) == (False, True, "request")
    assert result["checks"]["receipt_signature"] is True
    wrong = Ed25519Signer("receipt_test", b"w" * 32)
    result = result_of(client.post("/api/decision/verify", json=sent | {"public_key": wrong.public_key}))
    assert (result["checks"]["receipt_signature"], result["error"]) == (None, "SIGNING_KEY_UNKNOWN")


def test_a_partial_view_is_incomplete(client: FlaskClient, key: str, record: dict[str, Any]) -> None:
    minimal = client.get(record["decision_url"], headers={"x-api-key": key, "prefer": "return=minimal"}).get_json()
    result = result_of(client.post("/api/decision/verify", json=minimal))
    assert (result["verified"], result["error"]) == (False, "RECORD_INCOMPLETE")


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ([], 422, "SVC_API_REQUEST_INVALID"),
        ("record", 422, "SVC_API_REQUEST_INVALID"),
        ({"record": "x"}, 422, "SVC_API_REQUEST_INVALID"),
        ({}, 422, "SVC_API_REQUEST_INVALID"),
        ({"input": {}}, 422, "SVC_API_REQUEST_INVALID"),
        ({"record": {}, "inptu": {}}, 422, "SVC_API_REQUEST_INVALID"),
        ({"record": {}, "public_key": 1}, 422, "SVC_API_REQUEST_INVALID"),
        ({"record": {}, "public_key": "x"}, 422, "PUBLIC_KEY_INVALID"),
        ({"record": {}, "public_key": public_key_pem(bytes(32))}, 422, "PUBLIC_KEY_INVALID"),
    ],
)
def test_what_holds_no_record_is_refused(client: FlaskClient, body: Any, status: int, error: str) -> None:
    response = client.post("/api/decision/verify", json=body)
    assert (response.status_code, response.get_json()["error"]) == (status, error)
    assert "c" not in response.get_json()


def test_verification_takes_larger_and_deeper_bodies_than_decide_and_has_its_limits(client: FlaskClient) -> None:
    large = json.dumps({"record": {"x": "y" * (2 * 1024 * 1024)}})
    assert client.post("/api/decision/verify", data=large, content_type="application/json").status_code == 200
    huge = b" " * (16 * 1024 * 1024 + 1)
    assert client.post("/api/decision/verify", data=huge, content_type="application/json").status_code == 413
    for depth, status in ((63, 200), (64, 400)):
        nested = b'{"record":' + b'{"a":' * (depth - 1) + b"[]" + b"}" * depth
        response = client.post("/api/decision/verify", data=nested, content_type="application/json")
        assert response.status_code == status, depth


class TestStored:
    """GET and POST /api/decision/{id}/verify."""

    def test_a_stored_record_verifies_with_its_stored_request(
        self, client: FlaskClient, key: str, record: dict[str, Any]
    ) -> None:
        for method in (client.get, client.post):
            result = result_of(method(record["verify_url"], headers={"x-api-key": key}))
            assert result["verified"] is True
            assert [result["checks"][name] for name in ("input_hash", "facts_hash", "rulebook_hash")] == [True] * 3

    def test_a_supplied_record_must_be_the_stored_one(
        self, client: FlaskClient, key: str, record: dict[str, Any]
    ) -> None:
        headers = {"x-api-key": key}
        same = result_of(client.post(record["verify_url"], json={"record": record}, headers=headers))
        assert (same["verified"], same["checks"]["stored_record"]) == (True, True)
        other = client.post("/api/decide", json=sample_request(), headers=headers).get_json()
        result = result_of(client.post(record["verify_url"], json=other, headers=headers))
        assert (result["verified"], result["error"]) == (False, "RECORD_MISMATCH")
        assert (result["checks"]["decision_id"], result["checks"]["stored_record"]) == (False, False)

    def test_a_supplied_record_needs_no_stored_one(
        self, client: FlaskClient, key: str, record: dict[str, Any], instance: Instance
    ) -> None:
        other = instance.ledger.directory.create_scope("other", "starter", utc_now())
        other_key, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
        response = client.post(record["verify_url"], json=record, headers={"x-api-key": other_key})
        result = result_of(response)
        assert (result["verified"], result["checks"]["stored_record"]) == (True, None)

    def test_foreign_and_unknown_decisions_look_alike(
        self, client: FlaskClient, key: str, record: dict[str, Any], instance: Instance
    ) -> None:
        other = instance.ledger.directory.create_scope("other", "starter", utc_now())
        other_key, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
        answers = []
        for path in (record["decision_url"], "/api/decision/dec_unknown"):
            for suffix, method in (("", "GET"), ("/verify", "GET"), ("/verify", "POST")):
                response = client.open(path + suffix, method=method, headers={"x-api-key": other_key})
                assert response.status_code == 404
                body = response.get_json()
                assert body.pop("request_id").startswith("req_")
                answers.append(body)
        assert all(answer == answers[0] for answer in answers)
        assert answers[0]["error"] == "SVC_DECISION_NOT_FOUND"

    @pytest.mark.parametrize(("suffix", "method"), [("", "GET"), ("/verify", "GET"), ("/verify", "POST")])
    def test_reading_needs_a_key_with_read(
        self, client: FlaskClient, record: dict[str, Any], instance: Instance, suffix: str, method: str
    ) -> None:
        path = record["decision_url"] + suffix
        assert client.open(path, method=method).status_code == 401
        scope = instance.ledger.directory.scope("acme")
        deciding, _ = instance.ledger.directory.create_key(scope, {"decide"}, None, utc_now())
        response = client.open(path, method=method, headers={"x-api-key": deciding})
        assert (response.status_code, response.get_json()["error"]) == (403, "SVC_API_UNAUTHORIZED")

    def test_the_ledger_entry_is_the_record_as_it_was_answered(
        self, client: FlaskClient, key: str, record: dict[str, Any]
    ) -> None:
        headers = {"x-api-key": key}
        assert client.get(record["decision_url"], headers=headers).get_json() == record
        minimal = client.get(record["decision_url"], headers=headers | {"x-decision-response-view": "minimal"})
        assert minimal.get_json().items() < record.items()

    def test_a_supplied_input_is_checked_against_the_stored_record(
        self, client: FlaskClient, key: str, record: dict[str, Any]
    ) -> None:
        headers = {"x-api-key": key}
        good = client.post(record["verify_url"], json={"input": sample_request()}, headers=headers)
        assert result_of(good)["verified"] is True
        wrong = client.post(record["verify_url"], json={"input": sample_request(margin_percent=1)}, headers=headers)
        assert result_of(wrong)["checks"]["input_hash"] is False

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE entries SET link_hash = record_hash WHERE position = 1",
            "UPDATE entries SET merkle_root = record_hash WHERE position = 1",
            "UPDATE entries SET leaf_hash = record_hash WHERE position = 1",
            "UPDATE entries SET record_hash = leaf_hash WHERE position = 1",
            "UPDATE entries SET created_at = '2026-01-01T00:00:00.000Z' WHERE position = 1",
        ],
    )
    def test_a_link_changed_in_the_ledger_is_found_out(
        self, client: FlaskClient, key: str, record: dict[str, Any], instance: Instance, change: str
    ) -> None:
        client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
        with instance.ledger.store.write() as connection:
            connection.exec_driver_sql(change)
        result = result_of(client.get(record["verify_url"], headers={"x-api-key": key}))
        assert (result["verified"], result["checks"]["audit_chain.link_hash"]) == (False, False)

    def test_a_record_changed_in_the_ledger_is_found_out(
        self, client: FlaskClient, key: str, record: dict[str, Any], instance: Instance
    ) -> None:
        with instance.ledger.store.write() as connection:
            changed = json.dumps({n: v for n, v in record.items() if n != "audit_chain"} | {"verdict": "no"})
            connection.exec_driver_sql("UPDATE entries SET body = ?", (changed.encode(),))
        result = result_of(client.get(record["verify_url"], headers={"x-api-key": key}))
        assert (result["verified"], result["checks"]["record_hash"]) == (False, False)


class TestErased:
    """GET and POST /api/decision/{id}/verify, once the decision was erased."""

    @pytest.fixture
    def left(self, client: FlaskClient, key: str, record: dict[str, Any], instance: Instance) -> dict[str, Any]:
        """What is left of the record."""
        erase(instance.ledger, record["decision_id"], "asked for", utc_now())
        left: dict[str, Any] = client.get(record["decision_url"], headers={"x-api-key": key}).get_json()
        return left

    def test_the_chain_confirms_what_a_stored_record_says_was_erased(
        self, client: FlaskClient, key: str, left: dict[str, Any]
    ) -> None:
        for method, body in ((client.get, None), (client.post, None), (client.post, left)):
            result = result_of(method(left["verify_url"], headers={"x-api-key": key}, json=body))
            assert (result["verified"], result["notice"]) == (True, "MATERIAL_ERASED")
            assert (result["checks"]["erasure"], result["checks"]["evaluation"]) == (True, None)
        offline = result_of(client.post("/api/decision/verify", json=left))
        assert (offline["verified"], offline["notice"], offline["checks"]["erasure"]) == (True, "MATERIAL_ERASED", None)

    def test_a_record_that_was_exported_before_still_is_the_stored_one(
        self, client: FlaskClient, key: str, record: dict[str, Any], left: dict[str, Any]
    ) -> None:
        body = {"record": record, "input": sample_request()}
        result = result_of(client.post(left["verify_url"], json=body, headers={"x-api-key": key}))
        assert (result["verified"], "notice" in result, "error" in result) == (True, False, False)
        names = ("stored_record", "erasure", "evaluation", "input_hash", "facts_hash")
        assert [result["checks"][name] for name in names] == [True] * 5
        changed = record | {"evaluation": record["evaluation"] | {"matched": False}}
        assert result_of(client.post(left["verify_url"], json=changed, headers={"x-api-key": key}))["verified"] is False

    @pytest.mark.parametrize(
        "note", [{"erasure_id": "era_0"}, {"erased_at": "2026-01-01T00:00:00.000Z"}, {"members": ["evaluation"]}]
    )
    def test_another_note_than_the_chains_is_found_out(
        self, client: FlaskClient, key: str, left: dict[str, Any], note: dict[str, Any]
    ) -> None:
        told = left | {"erased": left["erased"] | note}
        result = result_of(client.post(left["verify_url"], json=told, headers={"x-api-key": key}))
        assert (result["verified"], result["error"]) == (False, "RECORD_MISMATCH")
        assert (result["checks"]["erasure"], result["checks"]["stored_record"]) == (False, False)

    def test_a_record_that_only_says_it_was_erased_is_found_out(
        self, client: FlaskClient, key: str, record: dict[str, Any], instance: Instance
    ) -> None:
        note = {"erasure_id": "era_0", "erased_at": record["created_at"], "members": ["evaluation", "input"]}
        feigned = record | {"evaluation": None, "erased": note}
        result = result_of(client.post(record["verify_url"], json=feigned, headers={"x-api-key": key}))
        assert (result["verified"], result["checks"]["erasure"]) == (False, False)
        other = instance.ledger.directory.create_scope("other", "starter", utc_now())
        foreign, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
        unknown = result_of(client.post(record["verify_url"], json=feigned, headers={"x-api-key": foreign}))
        assert unknown["checks"]["erasure"] is None

    @pytest.mark.parametrize("back", ["body", "erasure", "link"])
    def test_an_erasure_that_was_undone_in_the_ledger_is_found_out(
        self, client: FlaskClient, key: str, record: dict[str, Any], instance: Instance, back: str
    ) -> None:
        with instance.ledger.store.read() as connection:
            (before,) = connection.exec_driver_sql("SELECT body FROM entries WHERE position = 1").one()
        erase(instance.ledger, record["decision_id"], "asked for", utc_now())
        changes: dict[str, tuple[str, tuple[Any, ...]]] = {
            "body": ("UPDATE entries SET body = ? WHERE position = 1", (before,)),
            "erasure": ("UPDATE entries SET body = ? WHERE position = 2", (b'{"erasure_hash": "x"}',)),
            "link": ("UPDATE entries SET leaf_hash = record_hash WHERE position = 2", ()),
        }
        with instance.ledger.store.write() as connection:
            connection.exec_driver_sql(*changes[back])
        result = result_of(client.get(record["verify_url"], headers={"x-api-key": key}))
        assert (result["verified"], result["error"]) == (False, "RECORD_MISMATCH")
        assert result["checks"]["erasure"] is False


def test_records_signed_before_a_rotation_still_verify_and_compromise_ends_that(
    client: FlaskClient, key: str, record: dict[str, Any], instance: Instance
) -> None:
    instance.receipt_keys.rotate(utc_now())
    assert result_of(client.post("/api/decision/verify", json=record))["verified"] is True
    newer = client.post("/api/decide", json=sample_request(), headers={"x-api-key": key}).get_json()
    assert newer["receipt_key_id"] != record["receipt_key_id"]
    instance.receipt_keys.compromise(record["receipt_key_id"], utc_now(), utc_now())
    result = result_of(client.post("/api/decision/verify", json=record))
    assert (result["verified"], result["integrity_valid"], result["error"]) == (False, True, "SIGNING_KEY_NOT_TRUSTED")
    assert result_of(client.post("/api/decision/verify", json=newer))["verified"] is True
