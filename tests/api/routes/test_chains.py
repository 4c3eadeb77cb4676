"""The audit chain over HTTP, and its checkpoints."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient

from gate.clock import utc_now
from gate.encoding import resources
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS, Scope
from tests.independent import verifier
from tests.support.samples import sample_request


@pytest.fixture
def records(client: FlaskClient, key: str) -> list[dict[str, Any]]:
    headers = {"x-api-key": key}
    return [client.post("/api/decide", json=sample_request(), headers=headers).get_json() for _ in range(25)]


def get(client: FlaskClient, key: str, path: str) -> Any:
    return client.get(f"/api/decision/chains/{path}", headers={"x-api-key": key})


def validate(name: str, body: Any) -> None:
    jsonschema.Draft202012Validator(resources.schema(name)).validate(body)


@pytest.mark.parametrize(("query", "count"), [("", 20), ("?limit=1", 1), ("?limit=25", 25), ("?limit=1000", 25)])
def test_the_last_links_are_shown_and_hold(
    client: FlaskClient, key: str, records: list[dict[str, Any]], scope: Scope, query: str, count: int
) -> None:
    body = get(client, key, f"{scope.chain_id}{query}").get_json()
    validate("chain", body)
    links = body["retained_links"]
    assert (body["chain_id"], body["chain_size"], len(links)) == (scope.chain_id, 25, count)
    assert (links[-1]["merkle_root"], links[-1]["link_hash"]) == (body["merkle_root"], body["head_link_hash"])
    assert verifier.link_failures(links) == []
    assert body["verification"] == {
        "valid": True,
        "links_checked": count,
        "from_position": 26 - count,
        "to_position": 25,
        "broken_at": None,
        "reason": None,
    }
    for link, record in zip(links, records[-count:], strict=True):
        assert {name: link[name] for name in record["audit_chain"]} == record["audit_chain"]
        assert link["record_hash"] == record["record_hash"]


def test_an_empty_chain_is_whole(client: FlaskClient, key: str, scope: Scope) -> None:
    body = get(client, key, scope.chain_id).get_json()
    validate("chain", body)
    assert (body["chain_size"], body["merkle_root"], body["head_link_hash"]) == (0, None, None)
    assert (body["retained_links"], body["verification"]["valid"]) == ([], True)


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "", "1.0", "٣", "1e3", "99999999999"])
def test_a_limit_out_of_bounds_is_refused(client: FlaskClient, key: str, scope: Scope, limit: str) -> None:
    response = get(client, key, f"{scope.chain_id}?limit={limit}")
    assert (response.status_code, response.get_json()["error"]) == (400, "SVC_API_QUERY_INVALID")
    assert response.get_json()["errors"][0]["field"] == "limit"


@pytest.mark.parametrize("suffix", ["", "/checkpoint"])
def test_another_scopes_chain_looks_like_an_unknown_one(
    client: FlaskClient, key: str, scope: Scope, instance: Instance, suffix: str
) -> None:
    other = instance.ledger.directory.create_scope("other", "starter", utc_now())
    other_key, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
    answers = []
    for chain_id in (scope.chain_id, "chain_unknown"):
        response = get(client, other_key, f"{chain_id}{suffix}")
        assert response.status_code == 404
        answers.append({name: value for name, value in response.get_json().items() if name != "request_id"})
    assert answers[0] == answers[1]
    assert answers[0]["error"] == "SVC_CHAIN_NOT_FOUND"


@pytest.mark.parametrize("suffix", ["", "/checkpoint"])
def test_a_chain_needs_a_key_with_read_under_its_own_code(
    client: FlaskClient, scope: Scope, instance: Instance, suffix: str
) -> None:
    response = client.get(f"/api/decision/chains/{scope.chain_id}{suffix}")
    assert (response.status_code, response.get_json()["error"]) == (401, "SVC_CHAIN_UNAUTHORIZED")
    deciding, _ = instance.ledger.directory.create_key(scope, {"decide"}, None, utc_now())
    response = get(client, deciding, f"{scope.chain_id}{suffix}")
    assert (response.status_code, response.get_json()["error"]) == (403, "SVC_CHAIN_UNAUTHORIZED")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET record_hash = leaf_hash WHERE position = 24",
        "UPDATE entries SET created_at = '2020-01-01T00:00:00.000Z' WHERE position = 25",
        "DELETE FROM entries WHERE position = 25",
        "DELETE FROM entries WHERE position = 23",
        "UPDATE chain_heads SET merkle_root = link_hash",
    ],
)
def test_a_chain_changed_in_the_ledger_is_not_valid(
    client: FlaskClient, key: str, records: list[dict[str, Any]], scope: Scope, instance: Instance, change: str
) -> None:
    with instance.ledger.store.write() as connection:
        connection.exec_driver_sql(change)
    verification = get(client, key, scope.chain_id).get_json()["verification"]
    assert verification["valid"] is False
    assert verification["broken_at"] in (23, 24, 25)
    assert verification["reason"].endswith(".")


def test_a_checkpoint_is_signed_by_the_receipt_key(
    client: FlaskClient, key: str, records: list[dict[str, Any]], scope: Scope, instance: Instance
) -> None:
    made = get(client, key, f"{scope.chain_id}/checkpoint").get_json()
    validate("checkpoint", made)
    assert (made["chain_id"], made["chain_size"]) == (scope.chain_id, 25)
    assert made["link_hash"] == records[-1]["audit_chain"]["link_hash"]
    assert verifier.checkpoint_failures(made, instance.receipt_keys.registry().to_dict()) == []


def test_without_receipt_signing_there_is_no_checkpoint(client: FlaskClient, key: str, scope: Scope, home: Any) -> None:
    from api.app import create_app
    from gate.instance.settings import load_settings

    (home / "settings.toml").write_text('receipt_signing = "off"\n')
    response = get(create_app(load_settings(home)).test_client(), key, f"{scope.chain_id}/checkpoint")
    assert (response.status_code, response.get_json()["error"]) == (503, "SVC_SIGNING_UNAVAILABLE")
