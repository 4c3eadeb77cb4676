"""The registries of policies: the service's own bundles and patterns, open to all, and a scope's own rulebooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.app import create_app
from gate.clock import utc_now
from gate.encoding import resources
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger import Ledger
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.rulebooks.bundles import own_rulebooks
from gate.rulebooks.rulebook import load
from tests.independent.verifier import canonical_hash
from tests.support.postgres import database_of
from tests.support.samples import sample_request, sample_rulebook

BUNDLES: Final = "/api/decision/policy-bundles"
SOURCES: Final = "/rules/policy-sources.json"
PATTERNS: Final = "/api/decision/policy-patterns"
RULEBOOKS: Final = "/api/decision/rulebooks"
PATTERN_IDS: Final = [
    "agent_action_gate",
    "crm_writeback_gate",
    "pricing_exception",
    "refund_from_order",
    "refund_review",
]
UNKNOWN: Final = "0" * 64

HOSTILE: Final = {
    "64 KB": "a" * 65_536,
    "NUL": "%00",
    "NUL inside": "a%00b",
    "a lone percent": "%",
    "half an escape": "%e",
    "no UTF-8": "%ff%fe",
    "a lone surrogate": "%ed%a0%80",
    "CRLF": "a%0d%0aset-cookie:%20a=b",
    "bidi": "%e2%80%ae",
    "SQL": "'%20OR%20'1'%3d'1",
    "a wildcard": "%25",
    "a path": "../../keys/receipt",
    "a hash in upper case": load(sample_rulebook()).hash.upper(),
}
hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


def body_of(response: TestResponse, schema: str, shape: str = "") -> dict[str, Any]:
    """The body of an answer 200, which is as its schema says."""
    body: dict[str, Any] = response.get_json()
    assert response.status_code == 200, body
    document = resources.schema(schema)
    validator = jsonschema.Draft202012Validator({**document, "$ref": f"#/$defs/{shape}"} if shape else document)
    validator.validate(body)
    return body


def refused(response: TestResponse, status: int, code: str) -> dict[str, Any]:
    """The body of an answer that refuses."""
    body: dict[str, Any] = response.get_json()
    assert (response.status_code, body["error"]) == (status, code)
    jsonschema.Draft202012Validator(resources.schema("error")).validate(body)
    assert response.headers["cache-control"] == "no-store"
    assert "set-cookie" not in response.headers
    return body


def faults_of(response: TestResponse) -> list[tuple[str, str]]:
    """The parameters that an answer calls unusable, and why."""
    return [(fault["field"], fault["code"]) for fault in refused(response, 400, "SVC_API_QUERY_INVALID")["errors"]]


def decide(client: FlaskClient, key: str, request: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/api/decide", json=request, headers={"x-api-key": key})
    record: dict[str, Any] = response.get_json()
    assert response.status_code == 200, record
    return record


# Bundles


def test_the_bundle_registry_lists_the_services_own_policies(client: FlaskClient) -> None:
    response = client.get(BUNDLES)
    body = body_of(response, "policy-bundles", "registry")
    assert response.headers["cache-control"] == "public, max-age=3600"
    assert body["count"] == len(body["policy_bundles"]) == len(own_rulebooks()) == 10
    assert [(entry["policy_id"], entry["policy_version"], entry["status"]) for entry in body["policy_bundles"]] == [
        ("agent_action_policy", "2026-09-01", "active"),
        ("cancellation_penalty", "2026-11-28", "active"),
        ("crm_writeback_policy", "2026-09-01", "active"),
        ("pricing_exception", "2026-06-11", "active"),
        ("refund_eligibility", "2026-11-28", "active"),
        ("refund_order_policy", "2026-11-16", "active"),
        ("refund_policy", "2026-02-01", "historical"),
        ("refund_policy", "2026-09-01", "active"),
        ("return_eligibility", "2026-11-28", "active"),
        ("trial_terms", "2026-11-28", "active"),
    ]
    for entry in body["policy_bundles"]:
        bundle = entry["policy_bundle"]
        assert entry["policy_bundle_hash"] == canonical_hash(bundle)
        assert [bundle["id"], bundle["version"], bundle["hash"]] == [
            entry["policy_id"],
            entry["policy_version"],
            entry["policy_hash"],
        ]
        assert {name: bundle[name] for name in ("hash_algorithm", "canonicalization")} == {
            name: body[name] for name in ("hash_algorithm", "canonicalization")
        }


@pytest.mark.parametrize("name", ["policy_hash", "policy_bundle_hash"])
def test_a_bundle_is_resolved_by_either_hash(client: FlaskClient, name: str) -> None:
    for entry in client.get(BUNDLES).get_json()["policy_bundles"]:
        response = client.get(BUNDLES, query_string={"hash": entry[name]})
        assert body_of(response, "policy-bundles", "single") == {"policy_bundle_entry": entry}


def test_a_record_of_an_own_policy_leads_to_its_bundle_and_its_source(client: FlaskClient, key: str) -> None:
    record = decide(client, key, sample_request())
    entry = client.get(BUNDLES, query_string={"hash": record["policy_bundle_hash"]}).get_json()["policy_bundle_entry"]
    assert entry["policy_bundle"] == record["policy_bundle"]
    assert canonical_hash(client.get(entry["source"]).get_json()) == record["policy_hash"]


def test_what_a_scope_registers_is_no_part_of_the_bundle_registry(client: FlaskClient, key: str) -> None:
    before = client.get(BUNDLES).data
    request = sample_request()
    request["rulebook"]["version"] = "of our own"
    record = decide(client, key, request)
    assert client.get(BUNDLES).data == before
    for hash_ in (record["policy_hash"], record["policy_bundle_hash"]):
        response = client.get(BUNDLES, query_string={"hash": hash_}, headers={"x-api-key": key})
        refused(response, 404, "SVC_POLICY_BUNDLE_NOT_FOUND")
    assert client.get("/rules/pricing_exception/of our own.json").status_code == 404


@hostile
def test_an_unknown_bundle_hash_is_not_found_whatever_it_is(client: FlaskClient, text: str) -> None:
    refused(client.get(f"{BUNDLES}?hash={text}"), 404, "SVC_POLICY_BUNDLE_NOT_FOUND")


# Sources


def test_the_source_of_every_own_policy_is_served(client: FlaskClient) -> None:
    response = client.get(SOURCES)
    body = body_of(response, "policy-sources")
    assert response.headers["cache-control"] == "public, max-age=60"
    entries = client.get(BUNDLES).get_json()["policy_bundles"]
    told = ("policy_id", "policy_version", "policy_hash", "status", "source")
    assert body["policy_sources"] == [{name: entry[name] for name in told} for entry in entries]
    assert body["count"] == len(entries)
    for source in body["policy_sources"]:
        served = client.get(source["source"])
        assert served.status_code == 200
        assert served.headers["cache-control"] == "public, max-age=3600"
        assert source["source"] == f"/rules/{source['policy_id']}/{source['policy_version']}.json"
        rulebook = load(served.get_json())
        assert [rulebook.rulebook_id, rulebook.version] == [source["policy_id"], source["policy_version"]]
        assert rulebook.hash == canonical_hash(served.get_json()) == source["policy_hash"]


def test_every_policy_table_in_force_is_served(client: FlaskClient) -> None:
    tables = body_of(client.get(SOURCES), "policy-sources")["policy_tables"]
    assert [table["service"] for table in tables] == ["refund", "cancel", "return", "trial"]
    for table in tables:
        served = client.get(table["source"])
        assert served.headers["cache-control"] == "public, max-age=60"
        body = body_of(served, "policy-table-v1")
        assert canonical_hash(body) == table["table_hash"]
        assert len(body["entries"]) == table["entries"]
        assert client.get(table["rulebook"]).get_json()["rulebook_id"] == table["tool"]
    refused(client.get("/rules/policy-tables/refunds.json"), 404, "SVC_API_NOT_FOUND")


@hostile
def test_a_source_that_is_not_shipped_is_not_found(client: FlaskClient, text: str) -> None:
    for path in (f"/rules/refund_policy/{text}.json", f"/rules/{text}/2026-09-01.json", f"/rules/{text}"):
        refused(client.get(path), 404, "SVC_API_NOT_FOUND")


@pytest.mark.parametrize(
    "path",
    [
        "/rules",
        "/rules/",
        "/rules/refund_policy",
        "/rules/refund_policy/2026-09-01",
        "/rules/refund_policy/2026-06-11.json",
        "/rules/pricing_exception/2026-09-01.json",
        "/rules/historical/refund_policy.2026-02-01.json",
        "/rules/refund_policy/%2e%2e/2026-09-01.json",
        "/rules/refund_policy/2026-09-01.json/",
        "/rules/refund_policy/2026-09-01.JSON",
    ],
)
def test_a_source_is_found_under_its_own_path_alone(client: FlaskClient, path: str) -> None:
    refused(client.get(path), 404, "SVC_API_NOT_FOUND")


# Patterns


def test_the_pattern_registry_lists_every_pattern(client: FlaskClient) -> None:
    response = client.get(PATTERNS)
    body = body_of(response, "policy-patterns", "registry")
    assert response.headers["cache-control"] == "public, max-age=3600"
    assert [pattern["pattern_id"] for pattern in body["patterns"]] == PATTERN_IDS
    assert body["count"] == 5


def test_a_pattern_is_found_by_its_id_and_by_its_policys(client: FlaskClient) -> None:
    for pattern in client.get(PATTERNS).get_json()["patterns"]:
        for id_ in (pattern["pattern_id"], pattern["policy_id"]):
            response = client.get(PATTERNS, query_string={"pattern_id": id_})
            assert body_of(response, "policy-patterns", "single") == {"policy_pattern": pattern}


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ("crm", ["crm_writeback_gate", "pricing_exception"]),
        ("payments", ["refund_from_order", "refund_review"]),
        ("CRM", []),
        ("nothing", []),
    ],
)
def test_a_tag_filters_the_pattern_registry(client: FlaskClient, tag: str, found: list[str]) -> None:
    body = body_of(client.get(PATTERNS, query_string={"tag": tag}), "policy-patterns", "registry")
    assert [pattern["pattern_id"] for pattern in body["patterns"]] == found
    assert body["count"] == len(found)


def test_a_pattern_asked_for_with_a_tag_must_bear_it(client: FlaskClient) -> None:
    asked = {"pattern_id": "refund_review", "tag": "payments"}
    assert client.get(PATTERNS, query_string=asked).get_json()["policy_pattern"]["pattern_id"] == "refund_review"
    refused(client.get(PATTERNS, query_string={**asked, "tag": "crm"}), 404, "SVC_POLICY_PATTERN_NOT_FOUND")


@hostile
def test_an_unknown_pattern_is_not_found_and_an_unknown_tag_selects_nothing(client: FlaskClient, text: str) -> None:
    refused(client.get(f"{PATTERNS}?pattern_id={text}"), 404, "SVC_POLICY_PATTERN_NOT_FOUND")
    assert client.get(f"{PATTERNS}?tag={text}").get_json() == {"patterns": [], "count": 0}


@pytest.mark.parametrize("pattern_id", PATTERN_IDS)
def test_a_patterns_request_is_answered_with_a_yes_that_verifies(
    client: FlaskClient, key: str, pattern_id: str
) -> None:
    pattern = client.get(PATTERNS, query_string={"pattern_id": pattern_id}).get_json()["policy_pattern"]
    record = decide(client, key, pattern["decision_request_template"])
    assert (record["verdict"], record["policy_version"]) == ("yes", pattern["recommended_policy_version"])
    assert (
        record["action"] == record["action_binding"]["proposed_action"] == pattern["outcome_template"]["action_taken"]
    )
    result = client.post("/api/decision/verify", json={"record": record}).get_json()
    assert result["verified"] is True
    # Its placeholders name members of the record.
    for template in (pattern["outcome_template"], pattern["crm_sync_template"]):
        assert all(value[1:-1] in record for value in template.values() if str(value).startswith("<"))


# Parameters of the public registries


@pytest.mark.parametrize(("path", "name"), [(BUNDLES, "hash"), (PATTERNS, "pattern_id"), (PATTERNS, "tag")])
def test_an_empty_or_repeated_parameter_is_refused(client: FlaskClient, path: str, name: str) -> None:
    assert faults_of(client.get(f"{path}?{name}=")) == [(name, "too_short")]
    assert faults_of(client.get(f"{path}?{name}=crm&{name}=crm")) == [(name, "duplicate")]


@pytest.mark.parametrize("path", [BUNDLES, SOURCES, PATTERNS])
def test_the_public_registries_ask_for_no_key_and_look_at_none(client: FlaskClient, path: str) -> None:
    assert client.get(path).data == client.get(path, headers={"x-api-key": "dgk_unknown"}).data


# Registered rulebooks


class TestRegisteredRulebooks:
    """On either database."""

    @pytest.fixture(params=["sqlite", "postgresql"])
    def database_url(self, request: pytest.FixtureRequest) -> Iterator[str | None]:
        """Where the ledger is."""
        with database_of(request) as url:
            yield url

    @pytest.fixture
    def record(self, client: FlaskClient, key: str) -> dict[str, Any]:
        """A record of the scope, whose rulebook is so registered."""
        return decide(client, key, sample_request())

    def test_the_metadata_of_a_rulebook_is_found_as_records_cite_it(
        self, client: FlaskClient, key: str, record: dict[str, Any]
    ) -> None:
        by_hash = {"hash": record["rulebook"]["hash"]}
        by_version = {"rulebook_id": "pricing_exception", "version": "2026-06-11"}
        for query in (
            by_hash,
            by_version,
            by_hash | by_version,
            by_hash | {"rulebook_id": "pricing_exception"},
            by_hash | {"version": "2026-06-11"},
        ):
            response = look_up(client, key, **query)
            body = body_of(response, "rulebook-metadata")
            assert body == {"ok": True, "rulebook": record["rulebook_registry"], "warnings": []}
            assert body["rulebook"]["registry_attestation"] == record["registry_attestation"]
            assert response.headers["cache-control"] == "no-store"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"hash": UNKNOWN},
            {"rulebook_id": "pricing_exceptions"},
            {"version": "2026-06-12"},
            {"version": "2026-06-1"},
        ],
    )
    def test_all_that_is_sent_must_match(
        self, client: FlaskClient, key: str, record: dict[str, Any], wrong: dict[str, str]
    ) -> None:
        right = {"hash": record["rulebook"]["hash"], "rulebook_id": "pricing_exception", "version": "2026-06-11"}
        refused(look_up(client, key, **(right | wrong)), 404, "SVC_RULEBOOK_NOT_FOUND")
        del right["hash"]
        if "hash" not in wrong:
            refused(look_up(client, key, **(right | wrong)), 404, "SVC_RULEBOOK_NOT_FOUND")

    def test_another_scopes_rulebook_is_answered_like_one_that_does_not_exist(
        self, client: FlaskClient, ledger: Ledger, record: dict[str, Any]
    ) -> None:
        stranger = ledger.directory.create_scope("stranger", "unlimited", utc_now())
        key, _ = ledger.directory.create_key(stranger, FULL_ACCESS, None, utc_now())
        theirs, nobodys = {"hash": record["rulebook"]["hash"]}, {"hash": UNKNOWN}
        pair = {"rulebook_id": "pricing_exception", "version": "2026-06-11"}
        answers = [look_up(client, key, **query) for query in (theirs, nobodys, pair, pair | {"version": "none"})]
        for answer in answers:
            refused(answer, 404, "SVC_RULEBOOK_NOT_FOUND")
        assert len({without_ids(answer) for answer in answers}) == 1

    def test_two_scopes_with_one_rulebook_each_see_their_own_registration(
        self, client: FlaskClient, ledger: Ledger, record: dict[str, Any]
    ) -> None:
        other = ledger.directory.create_scope("other", "unlimited", utc_now())
        key, _ = ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
        theirs = decide(client, key, sample_request())
        found = look_up(client, key, hash=record["rulebook"]["hash"]).get_json()["rulebook"]
        assert found == theirs["rulebook_registry"]
        assert found["scope_hash"] != record["rulebook_registry"]["scope_hash"]

    @pytest.mark.parametrize("name", ["hash", "rulebook_id", "version"])
    def test_hostile_text_is_not_found(self, client: FlaskClient, key: str, name: str) -> None:
        decide(client, key, sample_request())
        others = {"hash": "", "rulebook_id": "&version=2026-06-11", "version": "&rulebook_id=pricing_exception"}
        for text in HOSTILE.values():
            response = client.get(f"{RULEBOOKS}?{name}={text}{others[name]}", headers={"x-api-key": key})
            refused(response, 404, "SVC_RULEBOOK_NOT_FOUND")

    def test_hostile_text_in_a_reference_is_unknown_to_decide(self, client: FlaskClient, key: str) -> None:
        request = sample_request()
        del request["rulebook"]
        for text in HOSTILE.values():
            name = unquote(text)[:120]
            for reference in ({"rulebook_id": name, "version": "1"}, {"rulebook_id": "a", "version": name[:80]}):
                response = client.post(
                    "/api/decide", json=request | {"rulebook_ref": reference}, headers={"x-api-key": key}
                )
                refused(response, 422, "RULEBOOK_REF_UNKNOWN")

    def test_a_version_that_holds_a_nul_is_found(self, client: FlaskClient, key: str) -> None:
        request = sample_request()
        request["rulebook"]["version"] = "v\u0000é😀"
        record = decide(client, key, request)
        response = client.get(
            f"{RULEBOOKS}?rulebook_id=pricing_exception&version=v%00%c3%a9%f0%9f%98%80", headers={"x-api-key": key}
        )
        assert body_of(response, "rulebook-metadata")["rulebook"] == record["rulebook_registry"]


def look_up(client: FlaskClient, key: str, **query: str) -> TestResponse:
    return client.get(RULEBOOKS, query_string=query, headers={"x-api-key": key})


def without_ids(response: TestResponse) -> bytes:
    request_id: str = response.get_json()["request_id"]
    body: bytes = response.data
    return body.replace(request_id.encode(), b"")


@pytest.mark.parametrize(
    ("query", "faults"),
    [
        ("", [("rulebook_id", "required"), ("version", "required")]),
        ("?rulebook_id=a", [("version", "required")]),
        ("?version=a", [("rulebook_id", "required")]),
        ("?name=a", [("name", "unknown_parameter")]),
        ("?hash=", [("hash", "too_short")]),
        ("?rulebook_id=&version=a", [("rulebook_id", "too_short")]),
        ("?rulebook_id=a&version=", [("version", "too_short")]),
        (f"?hash={UNKNOWN}&version=", [("version", "too_short")]),
        (f"?hash={UNKNOWN}&hash={UNKNOWN}", [("hash", "duplicate")]),
        ("?rulebook_id=a&version=b&version=b", [("version", "duplicate")]),
        ("?rulebook_id=a&rulebook_id=b&version=b", [("rulebook_id", "duplicate")]),
    ],
)
def test_a_lookup_that_is_not_exact_is_refused_by_name(
    client: FlaskClient, key: str, query: str, faults: list[tuple[str, str]]
) -> None:
    assert faults_of(client.get(f"{RULEBOOKS}{query}", headers={"x-api-key": key})) == faults


def test_the_lookup_asks_for_a_key_before_it_looks_at_the_query(client: FlaskClient) -> None:
    for headers in ({}, {"x-api-key": "dgk_unknown"}):
        for query in ("", f"?hash={UNKNOWN}"):
            refused(client.get(f"{RULEBOOKS}{query}", headers=headers), 401, "SVC_API_UNAUTHORIZED")


@pytest.mark.parametrize(("access", "status"), [("read", 404), ("decide", 403), ("report", 403), ("register", 403)])
def test_the_lookup_needs_the_access_read(
    client: FlaskClient, ledger: Ledger, scope: Scope, access: str, status: int
) -> None:
    key, _ = ledger.directory.create_key(scope, frozenset({access}), None, utc_now())
    code = "SVC_RULEBOOK_NOT_FOUND" if status == 404 else "SVC_API_UNAUTHORIZED"
    refused(look_up(client, key, hash=UNKNOWN), status, code)


def test_without_registry_signing_the_metadata_says_that_it_is_unsigned(home: Path) -> None:
    (home / "settings.toml").write_text('registry_signing = "off"\n')
    with closing(open_instance(load_settings(home))) as instance:
        directory, client = instance.ledger.directory, create_app(instance).test_client()
        scope = directory.create_scope("acme", "unlimited", utc_now())
        key, _ = directory.create_key(scope, FULL_ACCESS, None, utc_now())
        record = decide(client, key, sample_request())
        body = body_of(look_up(client, key, hash=record["policy_hash"]), "rulebook-metadata")
    attestation = body["rulebook"]["registry_attestation"]
    assert [attestation[name] for name in ("status", "key_id", "signature")] == ["unsigned", None, None]


def test_a_ledger_that_cannot_be_read_is_told(client: FlaskClient, instance: Instance, key: str) -> None:
    look_up(client, key, hash=UNKNOWN)
    with instance.ledger.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE rulebooks RENAME TO gone")
    refused(look_up(client, key, hash=UNKNOWN), 503, "SVC_STORAGE_UNAVAILABLE")
    for path in (BUNDLES, SOURCES, PATTERNS):
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", [BUNDLES, SOURCES, PATTERNS, RULEBOOKS, "/rules/refund_policy/2026-09-01.json"])
def test_a_registry_is_read_only(client: FlaskClient, key: str, path: str) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        response = client.open(path, method=method, headers={"x-api-key": key})
        assert refused(response, 405, "SVC_API_METHOD_NOT_ALLOWED")
        assert response.headers["allow"] == "GET, HEAD, OPTIONS"
