"""/openapi.json: complete, valid, self-contained, and true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from flask import Flask
from flask.testing import FlaskClient

from api.app import create_app
from api.errors import DECIDE_PATHS, codes
from api.keeper import STATE_VARIABLE
from gate import labels
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.proof import chain
from gate.proof.chain import link_material
from gate.proof.checkpoint import sign_checkpoint
from gate.records.views import project
from gate.verify import verify_packet, verify_record
from tests.contract.frozen import current
from tests.support.samples import (
    ATTESTATION_KEYS,
    NOW,
    RECEIPT_KEYS,
    RECEIPT_SIGNER,
    TRUST,
    make_packet,
    make_record,
    sample_request,
    sample_rulebook,
)
from tests.support.tampering import with_value

DOCUMENT = current()
OPERATIONS = [(path, method) for path, item in DOCUMENT["paths"].items() for method in item]


def operation(path: str, method: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][path][method]
    return found


def example(name: str) -> Any:
    return parse(resources.path("schemas", "examples", f"{name}.json").read_bytes(), max_depth=64)


def media_types() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every JSON body of the document, by the operation and status that it belongs to."""
    for path, method in OPERATIONS:
        described = operation(path, method)
        bodies = {"request": described["requestBody"]} if "requestBody" in described else {}
        for name, body in (bodies | described["responses"]).items():
            for media in body.get("content", {}).values():
                yield f"{method} {path} {name}", media


def examples() -> list[Any]:
    return [
        pytest.param(media["schema"], given["value"], id=f"{where} {name}")
        for where, media in media_types()
        for name, given in media.get("examples", {}).items()
    ]


def members(schema: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Every property in a schema, by its dotted path."""
    if isinstance(schema, dict):
        for name, member in schema.get("properties", {}).items():
            yield f"{where}.{name}", member
            yield from members(member, f"{where}.{name}")
        for keyword in ("items", "additionalProperties"):
            yield from members(schema.get(keyword), f"{where}[]")


def resolved(node: Any) -> Any:
    while isinstance(node, dict) and "$ref" in node:
        found = DOCUMENT
        for step in node["$ref"].split("/")[1:]:
            found = found[step]
        node = found
    return node


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for name, value in node.items():
            if name not in ("example", "examples"):
                yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def routes(app: Flask) -> set[tuple[str, str]]:
    return {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        # The root leads a browser to /docs, and is no part of the contract.
        if rule.rule != "/"
    }


@pytest.mark.heavy
def test_the_served_document_is_valid_openapi_3_1(client: FlaskClient) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    document = client.get("/openapi.json").get_json()
    OpenAPIV31SpecValidator(document).validate()
    assert document["openapi"].startswith("3.1")
    assert document["info"]["version"] == labels.INTERFACE_VERSION
    assert document["servers"] == [{"url": "http://gate.example", "description": "This instance."}]


def test_the_document_may_be_kept_and_asked_for_again(client: FlaskClient) -> None:
    first = client.get("/openapi.json")
    again = client.get("/openapi.json", headers={"if-none-match": first.headers["etag"]})
    assert first.headers["cache-control"] == "public, max-age=3600"
    assert (again.status_code, again.data) == (304, b"")


def test_the_document_describes_exactly_what_the_service_answers(instance: Instance) -> None:
    served = routes(create_app(instance))
    # The route of one schema is a case of the one for all of them.
    served.discard(("/schemas/rulebook-v1.schema.json", "get"))
    assert set(OPERATIONS) == served


def test_the_document_refers_to_nothing_outside_itself() -> None:
    found = set(references(DOCUMENT))
    assert all(reference.startswith("#/components/") for reference in found)
    assert all(resolved({"$ref": reference}) for reference in found)
    assert not [text for text in ("$id", "$schema", "$defs") if f'"{text}":' in str(DOCUMENT).replace("'", '"')]


def test_the_names_of_the_components_are_those_of_classes() -> None:
    assert {"DecisionRecord", "DecisionRequest", "RulebookV1", "RulebookV1Condition", "Error"} <= set(
        DOCUMENT["components"]["schemas"]
    )
    assert all(re.fullmatch(r"([A-Z][a-z0-9]*)+", name) for name in DOCUMENT["components"]["schemas"])


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_operation_says_what_it_is_and_whom_it_answers(path: str, method: str) -> None:
    described = operation(path, method)
    assert described["summary"]
    assert described["description"].endswith(".")
    assert described["tags"][0] in {tag["name"] for tag in DOCUMENT["tags"]}
    assert bool(described["security"]) == (described["x-access"] != "public")
    given = {resolved(parameter)["name"] for parameter in described["parameters"]}
    assert set(re.findall(r"{(\w+)}", path)) <= given
    assert "x-request-id" in given


def test_operation_ids_are_unique() -> None:
    ids = [operation(path, method)["operationId"] for path, method in OPERATIONS]
    assert len(set(ids)) == len(ids)


def test_every_parameter_header_and_member_is_described() -> None:
    parts = [
        (name, part)
        for kind in ("parameters", "headers", "securitySchemes")
        for name, part in DOCUMENT["components"][kind].items()
    ]
    parts += [
        (resolved(parameter)["name"], resolved(parameter))
        for path, method in OPERATIONS
        for parameter in operation(path, method)["parameters"]
    ]
    parts += [found for name, schema in DOCUMENT["components"]["schemas"].items() for found in members(schema, name)]
    parts += list(DOCUMENT["components"]["schemas"].items())
    silent = [
        name
        for name, part in parts
        if part is not False
        and not (isinstance(part, dict) and (part.get("description") or resolved(part).get("description")))
    ]
    assert silent == []


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_error_code_of_an_operation_is_answered_under_its_status(path: str, method: str) -> None:
    described = operation(path, method)
    for code in described["x-error-codes"]:
        status, word = codes()[code]
        given = described["responses"][str(status)]["content"]["application/json"]["examples"][code]["value"]
        assert (given["error"], given["v"]) == (code, word)
        assert ("c" in given) == (path in DECIDE_PATHS)
        assert code in described["responses"][str(status)]["description"]
    refuses_origins = "SVC_API_ORIGIN_FORBIDDEN" in described["x-error-codes"]
    assert ("403" in described["responses"]) == ({"apiKey": []} in described["security"] or refuses_origins)


def test_every_error_code_is_one_that_some_operation_answers() -> None:
    named = {code for path, method in OPERATIONS for code in operation(path, method)["x-error-codes"]}
    # These two are answered where there is no operation.
    assert codes().keys() - named == {"SVC_API_METHOD_NOT_ALLOWED"}
    assert DOCUMENT["x-error-codes"].keys() == codes().keys()


@pytest.mark.parametrize(("schema", "value"), examples())
def test_every_example_fits_its_schema(schema: dict[str, Any], value: Any) -> None:
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)
    jsonschema_rs.Draft202012Validator(whole, offline=True).validate(value)


def test_the_decide_example_is_a_record_that_anyone_can_make_again() -> None:
    request, record = example("decide-request"), example("decide-record")
    assert request == sample_request()
    assert record == make_record(request)
    assert example("decide-record-minimal") == project(record, "minimal")
    assert example("rulebook") == sample_rulebook()
    metadata = {"ok": True, "rulebook": record["rulebook_registry"], "warnings": []}
    assert example("rulebook-metadata") == metadata
    assert example("receipt-keys") == RECEIPT_KEYS.to_dict()
    assert example("attestation-keys") == ATTESTATION_KEYS.to_dict()


def test_the_batch_example_is_answered_so(client: FlaskClient, key: str) -> None:
    request, result = example("decide-batch-request"), example("decide-batch-result")
    assert request["requests"][0]["request"] == example("decide-request")
    assert [item.get("record") for item in result["results"]] == [example("decide-record-minimal"), None]
    answer = client.post("/api/decide/batch", json=request, headers={"x-api-key": key}).get_json()

    def shape(of: Any) -> Any:
        return [
            (one["status"], one["http_status"], (one.get("record") or one["error"]).keys()) for one in of["results"]
        ]

    # A fresh scope has no key for attestations, and its instance signs its receipts.
    assert shape(answer) == shape(result)
    assert answer["results"][1]["error"] | {"request_id": ""} == result["results"][1]["error"] | {"request_id": ""}


def test_the_verification_examples_are_what_the_service_finds() -> None:
    request, record = example("decide-request"), example("decide-record")
    trust = replace(TRUST, source="server")
    assert example("verification-result") == verify_record(record, trust, request_body=request).to_dict()
    tampered = verify_record({**record, "verdict": "no"}, trust, request_body=request)
    assert example("verification-result-tampered") == tampered.to_dict()
    assert (example("verification-result")["verified"], tampered.verified) == (True, False)
    assert example("verification-request") == {"record": record, "input": request}


def test_the_packet_examples_are_what_the_service_makes_and_finds() -> None:
    packet = example("decision-packet")
    assert packet == make_packet()
    trust = replace(TRUST, source="server")
    assert example("packet-verification-request") == {"packet": packet}
    assert example("packet-verification-result") == verify_packet(packet, trust).to_dict()
    tampered = with_value(packet, ("outcome_records", 0, "outcome_status"), "failed")
    assert example("packet-verification-result-tampered") == verify_packet(tampered, trust).to_dict()


def test_the_chain_examples_hold() -> None:
    record, shown = example("decide-record"), example("chain")
    link = chain.append(chain.Head("chain_test"), link_material(record))
    assert shown["retained_links"] == [link]
    head = chain.Head("chain_test", 1, link["merkle_root"], link["link_hash"])
    assert (shown["chain_size"], shown["merkle_root"], shown["head_link_hash"]) == (1, head.merkle_root, head.link_hash)
    assert example("checkpoint") == sign_checkpoint(head, timestamp(NOW), RECEIPT_SIGNER)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("verification-endpoint", "/api/decision/verify"),
        ("packet-verification-endpoint", "/api/decision/packet/verify"),
        ("status", "/api/decision/status"),
        ("livez", "/livez"),
        ("readyz", "/readyz"),
        ("runtime-config", "/api/runtime-config"),
        ("policy-sources", "/rules/policy-sources.json"),
        ("rulebook", "/rules/pricing_exception/2026-06-11.json"),
    ],
)
def test_the_examples_of_public_answers_are_what_the_service_answers(
    client: FlaskClient, instance: Instance, name: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert instance.adapters.measures().reason is None
    state = tmp_path / "checkpoints.json"
    state.write_bytes(b'{"kept": true, "looked_at": "2026-06-11T12:30:45.000Z", "refused": 0}')
    monkeypatch.setenv(STATE_VARIABLE, str(state))
    monkeypatch.setattr("api.app.utc_now", lambda: NOW)
    answered = client.get(path).get_data(as_text=True).replace("http://gate.example", "https://gate.example")
    assert parse(answered.encode()) == example(name)


def test_an_example_request_is_decided_and_verified_as_it_stands(client: FlaskClient, scope: Scope, key: str) -> None:
    headers = {"x-api-key": key}
    for name in ("decide-request", "decide-request-reference"):
        answer = client.post("/api/decide", json=example(name), headers=headers)
        assert (answer.status_code, answer.get_json()["verdict"]) == (200, "yes")
    assert client.post("/api/decision/verify", json=example("verification-request")).get_json()["integrity_valid"]


def test_what_a_decision_answers_fits_the_document(client: FlaskClient, key: str) -> None:
    described = operation("/api/decide", "post")["responses"]["200"]
    for view in labels.VIEWS:
        answer = client.post(
            "/api/decide", json=sample_request(), headers={"x-api-key": key, "x-decision-response-view": view}
        )
        name = {"minimal": "DecisionRecordMinimal", "standard": "DecisionRecordStandard", "full": "DecisionRecord"}[
            view
        ]
        schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer.get_json())
        told = {header.lower() for header, _ in answer.headers if header.lower().startswith("x-")}
        assert told - {"x-content-type-options"} <= described["headers"].keys()
