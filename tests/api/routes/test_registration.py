"""Warnings to a request that registers a rulebook, and hints to requests that say something else than they mean."""

from __future__ import annotations

from typing import Any, Final

import jsonschema
import pytest
from flask.testing import FlaskClient

from gate.clock import utc_now
from gate.encoding import resources
from gate.errors import FieldError
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS
from gate.rulebooks.advice import find_warnings
from tests.api.deciding import decide, refused
from tests.support.samples import sample_request

WARNINGS: Final = "x-rulebook-warnings"
HINT: Final = "x-decision-hint"


def misspelt(version: str = "1") -> Any:
    """A request whose rulebook blocks by a field that nobody sends."""
    request = sample_request()
    request["rulebook"]["version"] = version
    request["rulebook"]["rules"][0]["condition"]["field"] = "margin_prcent"
    return request


class TestWarnings:
    """The warnings about a rulebook, at its registration and later."""

    def test_the_request_that_registers_is_told_and_later_ones_are_not(self, client: FlaskClient, key: str) -> None:
        first = decide(client, key, misspelt(), x_idempotency_key="k")
        assert (first.status_code, first.get_json()["verdict"]) == (200, "yes")
        assert first.headers[WARNINGS] == "undeclared_field rules[0].condition.field"
        for again in (decide(client, key, misspelt(), x_idempotency_key="k"), decide(client, key, misspelt())):
            assert (again.status_code, WARNINGS in again.headers) == (200, False)
        replayed = decide(client, key, misspelt(), x_idempotency_key="k")
        assert replayed.data == first.data

    def test_a_rulebook_without_faults_has_none(self, client: FlaskClient, key: str) -> None:
        assert WARNINGS not in decide(client, key, sample_request()).headers

    def test_the_header_is_short_and_the_metadata_has_them_all(self, client: FlaskClient, key: str) -> None:
        request = misspelt()
        test = {"field": "nowhere", "operator": "exists"}
        request["rulebook"]["rules"][0]["condition"] = {"any": [test] * 12}
        record = decide(client, key, request)
        told = record.headers[WARNINGS]
        assert told.count("undeclared_field rules[0].condition.any[") == 8
        assert told.endswith(", and 4 more")
        query = {"hash": record.get_json()["rulebook"]["hash"]}
        answer = client.get("/api/decision/rulebooks", query_string=query, headers={"x-api-key": key}).get_json()
        jsonschema.Draft202012Validator(resources.schema("rulebook-metadata")).validate(answer)
        assert answer["rulebook"] == record.get_json()["rulebook_registry"]
        assert [warning["code"] for warning in answer["warnings"]] == ["undeclared_field"] * 12
        assert answer["warnings"][0]["message"].startswith("'nowhere' is neither declared nor required")

    def test_comments_are_unknown_on_the_wire(self, client: FlaskClient, key: str) -> None:
        request = sample_request()
        request["rulebook"] |= {"description": "x", "$schema": "y"}
        body = refused(decide(client, key, request), 422, "RULEBOOK_INVALID")
        assert [(error["field"], error["code"]) for error in body["errors"]] == [
            ("rulebook.$schema", "unknown_field"),
            ("rulebook.description", "unknown_field"),
        ]
        assert "gate rulebook convert" in body["errors"][0]["message"]


def reference(**named: str) -> Any:
    request = sample_request()
    del request["rulebook"]
    return request | {"rulebook_ref": named}


class TestUnknownReferences:
    """RULEBOOK_REF_UNKNOWN."""

    def test_it_names_the_versions_that_there_are(self, client: FlaskClient, key: str) -> None:
        unknown = reference(rulebook_id="pricing_exception", version="2026-9")
        body = refused(decide(client, key, unknown), 422, "RULEBOOK_REF_UNKNOWN")
        assert body["registered_versions"] == []
        assert "No version of pricing_exception is registered in this scope." in body["message"]
        for number in range(12):
            request = sample_request()
            request["rulebook"]["version"] = f"v{number}"
            assert decide(client, key, request).status_code == 200
        body = refused(decide(client, key, unknown), 422, "RULEBOOK_REF_UNKNOWN")
        assert len(body["registered_versions"]) == 10
        assert set(body["registered_versions"]) <= {f"v{number}" for number in range(12)}
        assert f"{', '.join(body['registered_versions'])}, and older versions." in body["message"]
        assert "gate rulebook register" in body["message"]

    def test_it_says_so_of_a_hash(self, client: FlaskClient, key: str) -> None:
        body = refused(decide(client, key, reference(hash="0" * 64)), 422, "RULEBOOK_REF_UNKNOWN")
        assert f"No rulebook with the hash {'0' * 64} is registered in this scope." in body["message"]
        assert "registered_versions" not in body

    def test_versions_of_another_scope_are_never_named(self, client: FlaskClient, key: str, instance: Instance) -> None:
        assert decide(client, key, sample_request()).status_code == 200
        other = instance.ledger.directory.create_scope("other", "starter", utc_now())
        other_key, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
        unknown = reference(rulebook_id="pricing_exception", version="2026-9")
        body = refused(decide(client, other_key, unknown), 422, "RULEBOOK_REF_UNKNOWN")
        assert (body["registered_versions"], "2026-06-11" in body["message"]) == ([], False)


class TestHints:
    """Requests that are read otherwise than they were meant."""

    @pytest.mark.parametrize("name", ["input", "Inputs", "facts"])
    def test_facts_under_another_name_are_pointed_at_and_never_approve(
        self, client: FlaskClient, key: str, name: str
    ) -> None:
        request = sample_request()
        request["context"][name] = request["context"].pop("inputs")
        for _ in range(2):
            answer = decide(client, key, request, x_idempotency_key="k")
            record = answer.get_json()
            assert (record["verdict"], record["reason_code"]) == ("review", "INPUT_SCHEMA_FAILED")
            assert answer.headers[HINT] == f"context.{name} is not read; the facts belong in context.inputs."

    @pytest.mark.parametrize(
        "context",
        [
            {},
            {"inputs": {}},
            {"inputs": {}, "input": {}},
            {"fact\u017f": {}},
            {"input_form": {}},
            {"target_system": "crm", "target_systems": ["crm"]},
            {"target_\u017fystem": "crm"},
            {"target_system\n": "crm"},
            {"target" + "_" * 40 + "system": "crm"},
            {"factor": 3, "accounts": 2, "object": "a", "currencies": [], "flow": "a", "target": "a"},
            {**{f"note_{number}": 1 for number in range(100)}, "target_sytem": "crm"},
        ],
    )
    def test_other_requests_get_no_hint(self, client: FlaskClient, key: str, context: dict[str, Any]) -> None:
        answer = decide(client, key, sample_request() | {"context": context})
        assert (answer.status_code, HINT in answer.headers) == (200, False)

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("target_objectid", "target_object_id"),
            ("targetObjectId", "target_object_id"),
            ("target_object", "target_object_id"),
            ("target_sytem", "target_system"),
            ("Target-System", "target_system"),
            ("taregt_sysetm", "target_system"),
            ("request_action", "requested_action"),
            ("mutaiton", "mutation"),
            ("actr", "actor"),
            ("subjects", "subject"),
            ("ammount", "amount"),
            ("curency", "currency"),
        ],
    )
    def test_a_misspelt_target_is_decided_and_named(self, client: FlaskClient, key: str, name: str, meant: str) -> None:
        request = sample_request()
        request["context"].pop(meant, None)
        answer = decide(client, key, {**request, "context": {**request["context"], name: "a-1"}})
        assert answer.get_json()["verdict"] == "yes"
        assert answer.headers[HINT] == f"context.{name} is not part of the action binding; did you mean {meant}?"

    def test_every_slip_is_named(self, client: FlaskClient, key: str) -> None:
        context = {"target_sytem": "crm", "target_objectid": "deal-1042", "input": {}, "workfow": "pricing"}
        answer = decide(client, key, sample_request() | {"context": context})
        assert answer.headers[HINT] == (
            "context.target_sytem is not part of the action binding; did you mean target_system? "
            "context.target_objectid is not part of the action binding; did you mean target_object_id? "
            "context.input is not read; the facts belong in context.inputs. "
            "context.workfow is only part of the hash; did you mean workflow?"
        )

    def test_facts_at_the_root_are_told_where_they_belong(self, client: FlaskClient, key: str) -> None:
        body = refused(decide(client, key, sample_request() | {"inputs": {}}), 422, "SVC_API_REQUEST_INVALID")
        (error,) = body["errors"]
        assert (error["field"], "context.inputs" in error["message"]) == ("inputs", True)

    @pytest.mark.parametrize("name", ["rulebook", "rulebook_ref"])
    def test_a_missing_mode_is_named(self, client: FlaskClient, key: str, name: str) -> None:
        request = sample_request() if name == "rulebook" else reference(rulebook_id="pricing_exception", version="1")
        del request["mode"]
        body = refused(decide(client, key, request), 422, "RULEBOOK_BINDING_MODE_CONFLICT")
        assert body["message"].startswith(f'{name} is sent without mode; add "mode": "rulebook"')
        body = refused(decide(client, key, request | {"mode": "multi"}), 422, "RULEBOOK_BINDING_MODE_CONFLICT")
        assert body["message"].startswith(f"{name} is sent with mode multi")


def test_a_registered_rulebook_is_looked_over_at_its_registration_alone(
    client: FlaskClient, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def noted(body: Any) -> list[FieldError]:
        looked.append(body["version"])
        return find_warnings(body)

    monkeypatch.setattr("gate.decisions.sources.find_warnings", noted)
    for version in ("1", "1", "2", "1", "2"):
        assert decide(client, key, misspelt(version)).status_code == 200
    assert looked == ["1", "2"]
