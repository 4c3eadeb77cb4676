"""The published contract over HTTP: everybody may read it, and it is what records cite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient

from gate.contract.published import published
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from tests.independent.verifier import canonical_hash

# The indexes under their short addresses, and the schema that each document of a folder follows.
INDEXES = {
    "/schemas/": "contract-index",
    "/conformance/": "conformance-index",
    "/conformance/index.json": "conformance-index",
    "/replay/": "golden-replay-index",
    "/replay/index.json": "golden-replay-index",
}
DOCUMENTS = {"conformance": "conformance-fixture", "replay": "golden-replay-cases"}


def read(client: FlaskClient, path: str) -> Any:
    response = client.get(path)
    assert response.status_code == 200, path
    return response.get_json()


def validate(document: Any, schema: str) -> None:
    jsonschema.Draft202012Validator(resources.schema(schema)).validate(document)


@pytest.mark.parametrize(("path", "schema"), INDEXES.items())
def test_an_index_follows_its_schema(client: FlaskClient, path: str, schema: str) -> None:
    validate(read(client, path), schema)


def test_the_contract_lists_every_schema_with_its_address_and_hash(client: FlaskClient) -> None:
    index = read(client, "/schemas/")
    files = {file.name for file in resources.path("schemas").glob("*.schema.json")}
    assert {entry["url"] for entry in index["schemas"]} == {f"/schemas/{file}" for file in files}
    for entry in index["schemas"]:
        schema = read(client, entry["url"])
        assert entry["hash"] == canonical_hash(schema)
        assert entry["title"] == schema["title"]
    assert (index["interface_version"], index["compatibility_policy"]) == ("1.13.0", "compatibility_policy_v1")


@pytest.mark.parametrize(("folder", "members"), [("conformance", "fixtures"), ("replay", "files")])
def test_an_index_names_every_file_of_its_folder_with_its_hash(client: FlaskClient, folder: str, members: str) -> None:
    index = read(client, read(client, "/schemas/")[f"{folder}_url"])
    assert index == read(client, f"/{folder}/")
    files = {file.name for file in resources.path("schemas", folder).iterdir()}
    assert {entry["path"] for entry in index[members]} == files - {"index.json"}
    for entry in index[members]:
        document = read(client, f"/{folder}/{entry['path']}")
        validate(document, DOCUMENTS[folder])
        assert entry["sha256"] == canonical_hash(document)


def test_a_fixture_is_published_under_its_id(client: FlaskClient) -> None:
    for entry in read(client, "/conformance/")["fixtures"]:
        fixture = read(client, f"/conformance/{entry['fixture_id']}.json")
        assert (fixture["fixture_id"], fixture["title"]) == (entry["fixture_id"], entry["title"])


def test_whoever_has_a_document_is_told_that_it_has_not_changed(client: FlaskClient) -> None:
    for path, document in published().items():
        first = client.get(path)
        assert first.headers["cache-control"] == "public, max-age=3600"
        assert first.headers["etag"] == f'"{document.hash}"' == f'"{content_hash(first.get_json())}"'
        again = client.get(path, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.data, again.headers["etag"]) == (304, b"", first.headers["etag"])
        assert client.get(path, headers={"if-none-match": '"another"'}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/schemas",
        "/conformance",
        "/replay",
        "/schemas/nothing.schema.json",
        "/schemas/rulebook-v1",
        "/schemas/index.json",
        "/schemas/..%2f..%2fpyproject.schema.json",
        "/schemas/replay/index.json",
        "/conformance/nothing.json",
        "/conformance/..%2freplay%2findex.json",
        "/conformance/../replay/index.json",
        "/replay/operators",
        "/replay/%00.json",
        "/replay//index.json",
    ],
)
def test_what_the_contract_does_not_hold_is_not_found(client: FlaskClient, path: str) -> None:
    response = client.get(path)
    body: Mapping[str, Any] = response.get_json()
    assert (response.status_code, body["error"]) == (404, "SVC_API_NOT_FOUND")
    assert response.headers["cache-control"] == "no-store"
    validate(body, "error")


def test_the_contract_is_read_and_not_written(client: FlaskClient) -> None:
    for path in ("/schemas/", "/conformance/index.json", "/replay/operators.json"):
        assert client.head(path).status_code == 200
        response = client.post(path, json={})
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
