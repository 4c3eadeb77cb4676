"""What anyone can read: key registries, the published schema, readiness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient

from api.app import create_app
from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.instance.instance import Instance
from gate.instance.settings import load_settings
from gate.proof.signing import load_registry
from gate.verify import Trust, verify_record
from tests.support.samples import sample_request

REGISTRIES = ["/api/decision/receipt-keys", "/.well-known/rulebook-attestation-keys.json"]


@pytest.mark.parametrize("path", REGISTRIES)
def test_public_keys_are_published_with_their_states(client: FlaskClient, instance: Instance, path: str) -> None:
    ring = instance.receipt_keys if "receipt" in path else instance.registry_keys
    ring.rotate(utc_now())
    document = client.get(path).get_json()
    jsonschema.Draft202012Validator(resources.schema("key-registry")).validate(document)
    assert load_registry(document) == ring.registry()
    assert [key["status"] for key in document["keys"]] == ["retired", "active"]
    assert document["active_key_id"] == document["keys"][1]["key_id"]
    assert "PRIVATE" not in str(document)


def test_the_two_registries_hold_different_keys(client: FlaskClient) -> None:
    first, second = (client.get(path).get_json()["keys"][0] for path in REGISTRIES)
    assert first["public_key"] != second["public_key"]


def test_without_signing_no_key_is_active_and_past_keys_stay(home: Path) -> None:
    (home / "settings.toml").write_text('receipt_signing = "off"\nregistry_signing = "off"\n')
    client = create_app(load_settings(home)).test_client()
    for path in REGISTRIES:
        document = client.get(path).get_json()
        assert (len(document["keys"]), document["active_key_id"]) == (1, None)
        assert [key["status"] for key in document["keys"]] == ["retired"]


def test_under_hmac_no_receipt_key_is_listed_as_active_and_what_one_signed_still_verifies(
    client: FlaskClient, key: str, home: Path
) -> None:
    record = client.post("/api/decide", json=sample_request(), headers={"x-api-key": key}).get_json()
    secret = home / "hmac"
    secret.write_text("a secret of at least 32 bytes, yes")
    (home / "settings.toml").write_text(f'receipt_signing = "hmac-sha256"\nreceipt_hmac_secret_file = "{secret}"\n')
    under_hmac = create_app(load_settings(home)).test_client()
    receipts, registry = (under_hmac.get(path).get_json() for path in REGISTRIES)
    jsonschema.Draft202012Validator(resources.schema("key-registry")).validate(receipts)
    assert ([of["status"] for of in receipts["keys"]], receipts["active_key_id"]) == (["retired"], None)
    assert [of["status"] for of in registry["keys"]] == ["active"]
    trust = Trust(receipt_keys=load_registry(receipts), attestation_keys=load_registry(registry))
    assert verify_record(record, trust).verified
    # Signing by Ed25519 again, the same key is active again.
    (home / "settings.toml").write_text("")
    again = create_app(load_settings(home)).test_client().get(REGISTRIES[0]).get_json()
    assert [of["status"] for of in again["keys"]] == ["active"]


def test_the_schema_that_records_cite_is_served(client: FlaskClient, key: str) -> None:
    record = client.post("/api/decide", json=sample_request(), headers={"x-api-key": key}).get_json()
    contract = record["rulebook_contract"]
    served = client.get(contract["schema_url"].removeprefix("http://gate.example"))
    assert content_hash(served.get_json()) == contract["schema_hash"]


@pytest.mark.parametrize(
    "path",
    ["//", "/api/decision", "/api/nothing", "/api/decision/a/b/c", "//livez", "//metrics", "/api//decide", "/livez/"],
)
def test_an_unknown_path_is_told_in_json(client: FlaskClient, path: str) -> None:
    # The client of the tests would take the first word after two slashes for a host.
    response = client.get("/", environ_overrides={"PATH_INFO": path})
    body: dict[str, Any] = response.get_json()
    assert (response.status_code, body["error"]) == (404, "SVC_API_NOT_FOUND")
    assert "c" not in body
    jsonschema.Draft202012Validator(resources.schema("error")).validate(body)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_root_leads_to_the_page_about_the_api(client: FlaskClient, method: str) -> None:
    response = client.open("/", method=method)
    assert (response.status_code, response.headers["location"]) == (302, "/docs")
    assert client.open("/", method=method, follow_redirects=True).status_code == 200


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_the_root_takes_nothing(client: FlaskClient, method: str) -> None:
    response = client.open("/", method=method)
    assert (response.status_code, response.get_json()["error"]) == (405, "SVC_API_METHOD_NOT_ALLOWED")


def test_a_key_in_the_wrong_header_is_refused_with_a_hint(client: FlaskClient, key: str) -> None:
    for path in ("/api/decide", "/api/decision/x/execution"):
        response = client.post(path, json=sample_request(), headers={"authorization": f"Bearer {key}"})
        body = response.get_json()
        assert (response.status_code, body["v"]) == (401, "unauthorized")
        assert "x-api-key" in body["message"]
        assert "Authorization" in body["message"]
        assert key not in response.get_data(as_text=True)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/decision/status", "GET, HEAD, OPTIONS"),
        ("/api/decision/receipt-keys", "GET, HEAD, OPTIONS"),
        ("/api/decision/verify", "GET, HEAD, OPTIONS, POST"),
        ("/api/decision/x/verify", "GET, HEAD, OPTIONS, POST"),
    ],
)
def test_another_method_is_told_which_are_allowed(client: FlaskClient, path: str, allowed: str) -> None:
    response = client.delete(path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)
    assert response.get_json()["error"] == "SVC_API_METHOD_NOT_ALLOWED"


def test_no_answer_allows_other_origins(client: FlaskClient) -> None:
    response = client.options("/api/decide", headers={"origin": "https://evil.example"})
    assert not [name for name, _ in response.headers.items() if name.lower().startswith("access-control")]
