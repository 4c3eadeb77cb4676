"""Hostile strings in every member, id, parameter and header: an error that is documented, or a success that is right.

The routes and their parameters are those of the application, so that a new one is covered as it comes.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from io import BytesIO
from itertools import product
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.description.documents import openapi_document
from api.http.state import State
from gate.encoding import resources
from gate.instance.audit import check_chain
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.records.envelope import input_material
from tests.api.deciding import chain_size, decide
from tests.support.postgres import database_of
from tests.support.samples import case_text, cases, sample_request
from tests.support.torture import size

pytestmark = pytest.mark.heavy

STRINGS: Final = [(case["name"], case_text(case)) for case in cases("hostile_strings")]
DECLARED: Final = {
    path: {
        parameter["name"]
        for operation in operations.values()
        for parameter in operation["parameters"]
        if parameter.get("in") == "query"
    }
    for path, operations in openapi_document("http://gate.example")["paths"].items()
}
PARAMETERS: Final = sorted(set().union(*DECLARED.values()))
HEADERS: Final = (
    "x-api-key",
    "x-idempotency-key",
    "x-request-id",
    "prefer",
    "x-decision-response-view",
    "x-metrics-token",
    "host",
    "accept",
    "accept-encoding",
    "authorization",
    "content-encoding",
    "cookie",
    "forwarded",
    "if-modified-since",
    "if-none-match",
    "origin",
    "range",
    "referer",
    "transfer-encoding",
    "user-agent",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-http-method-override",
)
# So many of them are read by the service or its framework.
_READ: Final = HEADERS.index("host") + 1
_ARGUMENT: Final = re.compile(r"<\w+>")
_SAFE: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,160}")
_ERROR: Final = jsonschema.Draft202012Validator(resources.schema("error"))
_each_database = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The file of the home, and PostgreSQL where a test asks for it."""
    if not hasattr(request, "param"):
        yield None
        return
    with database_of(request) as url:
        yield url


@pytest.fixture
def client(client: FlaskClient) -> FlaskClient:
    """A client that looks for no cookie, which would take it a fourth of the time: the service sets none."""
    return client.application.test_client(use_cookies=False)


def require_sound(response: TestResponse, what: object) -> None:
    """Requires a documented error or a success, under headers that nobody wrote into."""
    for name, value in response.headers.items():
        assert f"{name}{value}".isprintable(), (what, name, value)
        assert "evil" not in name.lower(), (what, name, value)
    assert _SAFE.fullmatch(response.headers["x-request-id"]), what
    assert response.status_code < 500, (what, response.data[:500])
    if response.status_code >= 400:
        _ERROR.validate(response.get_json())
        assert not {"verdict", "application_verdict", "decision"} & response.get_json().keys(), what
    else:
        # The root alone leads elsewhere, whatever it is asked with.
        assert response.status_code == 200 or response.headers.get("location") == "/docs", (what, response.status_code)


def require_kept(client: FlaskClient, authority: Authority, response: TestResponse, body: Any) -> None:
    """Requires that a decision's request is kept as it was sent."""
    state: State = client.application.extensions["gate"]
    assert state.gate.request_body(authority, response.get_json()["decision_id"]) == input_material(body)


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where each member and element within a value stands."""
    for step, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, step)
        yield from _places(item, (*path, step))


def _request() -> dict[str, Any]:
    """A Decision Request with every member that a request over a sent rulebook may have."""
    body = sample_request(discount_percent=10, margin_percent=22, note="n", more={"deep": ["x"]})
    return {**body, "question": "May it?", "binding_mode": "direct_declarative_rulebook", "response_view": "full"}


def _with(place: tuple[str | int, ...], change: Callable[[Any, Any], None]) -> dict[str, Any]:
    """A request that is changed at a place: `change` is given what holds the place, and the last step to it."""
    body = _request()
    holder: Any = body
    for step in place[:-1]:
        holder = holder[step]
    change(holder, place[-1])
    return body


def _bodies(text: str, number: int) -> Iterator[tuple[object, dict[str, Any]]]:
    """Requests that hold a text: as each member and element, and as the name of one beside each."""

    def replace(holder: Any, step: Any) -> None:
        holder[step] = text

    def name(holder: Any, step: Any) -> None:
        if isinstance(holder, dict):
            holder[text] = copy.deepcopy(holder[step])

    for index, place in enumerate(_places(_request())):
        # A text stands at some places, and at each place some of the texts; within the rulebook fewer.
        if (index + number) % (size(48, 1) if place[0] == "rulebook" and len(place) > 2 else size(15, 1)):
            continue
        yield (*place, "=", text[:40]), _with(place, replace)
        if place[-1] in ("mode", "workflow", "note", "deep", "rules", "name", "properties", "type", "field", "action"):
            yield (*place, "beside", text[:40]), _with(place, name)
    reference = {"mode": "rulebook", "context": _request()["context"]}
    references: list[dict[str, str]] = [
        {"hash": text},
        {"rulebook_id": text, "version": "2026-06-11"},
        {"rulebook_id": "pricing_exception", "version": text},
        {text: text},
    ]
    # One of them and one of the members of an adapter hold each text, by turns.
    first, each = size((number % 4, 4), (0, 1))
    for sent in references[first::each]:
        yield ("rulebook_ref", sent), {**reference, "rulebook_ref": sent}
    adapter: dict[str, Any] = {"adapter_id": "a", "version": "1", "manifest_hash": "0" * 64, "input": {}}
    request = _request()
    del request["context"]["inputs"], request["binding_mode"]
    request["rulebook"]["version"] = f"of an adapter, {number}"
    for member in list(adapter)[first::each]:
        yield ("adapter", member), {**request, "adapter": {**adapter, member: text}}
    yield ("adapter.input",), {**request, "adapter": {**adapter, "input": {text: {text: [text]}}}}


def test_every_member_of_a_request(
    client: FlaskClient, key: str, authority: Authority, instance: Instance, scope: Scope
) -> None:
    made = 0
    for number, (name, text) in enumerate(STRINGS):
        for count, (what, body) in enumerate(_bodies(text, number)):
            if isinstance(body.get("rulebook"), dict) and body["rulebook"].get("version") == "2026-06-11":
                # One that differs is another version, or it would be refused for that alone.
                body["rulebook"]["version"] = f"v{number}.{count}"
            response = decide(client, key, body)
            require_sound(response, (name, what))
            if response.status_code == 200:
                assert _is_unicode(text)
                made += 1
                require_kept(client, authority, response, body)
    assert made > len(STRINGS)
    assert chain_size(instance, scope) == made
    # Which verifies every record as well.
    assert check_chain(instance, scope.scope_id) == (made, None)


# Asked of each text at each place, and some are long.
@cache
def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


@_each_database
def test_facts_ids_and_versions_are_kept_byte_for_byte(
    client: FlaskClient, key: str, authority: Authority, instance: Instance, scope: Scope
) -> None:
    made = 0
    for number, (name, text) in enumerate(STRINGS):
        body = _request()
        facts = {**body["context"]["inputs"], f"{text}.": text}
        body["context"] |= {"target_object_id": text, "actor": {text: text}, "inputs": facts}
        version = f"{text[:60]}{number}"
        body["rulebook"]["version"] = version
        response = decide(client, key, body, x_idempotency_key=f"order {number}")
        require_sound(response, name)
        if not _is_unicode(text):
            assert response.get_json()["error"] == "SVC_API_JSON_INVALID", name
            continue
        made += 1
        assert response.status_code == 200, (name, response.data[:500])
        require_kept(client, authority, response, body)
        record = response.get_json()
        # In the end all of them are verified, where they are.
        if number % size(5, 1) == 0:
            verified = client.get(f"/api/decision/{record['decision_id']}/verify", headers={"x-api-key": key})
            assert verified.get_json()["verified"] is True, name
        assert record["action_binding"]["resource"] == text
        assert record["policy_version"] == version
        reference = {"rulebook_id": "pricing_exception", "version": version}
        referred = {"mode": "rulebook", "rulebook_ref": reference, "context": body["context"]}
        response = decide(client, key, referred)
        made += 1
        assert response.get_json()["policy_hash"] == record["policy_hash"], name
        again = decide(client, key, body, x_idempotency_key=f"order {number}")
        assert again.headers["x-idempotency-status"] == "replayed"
    assert check_chain(instance, scope.scope_id) == (made, None)


def _some(at: int, instance: Instance | None = None) -> list[tuple[str, str]]:
    """Some of the texts for each of many places, so that each text stands at several; all of them in `make torture`.

    On PostgreSQL each stands at fewer places, but those that its text refuses stand at every one.
    """
    on_postgresql = instance is not None and instance.ledger.store.engine.name == "postgresql"
    each = size(18 if on_postgresql else 9, 1)
    return [
        (name, text)
        for number, (name, text) in enumerate(STRINGS)
        if (number + at) % each == 0 or (on_postgresql and ("\0" in text or not _is_unicode(text)))
    ]


def _get(client: FlaskClient, path: str, *, key: str, query: str = "", method: str = "GET") -> TestResponse:
    """An answer to a target, whose percent-encodings are decoded as a server does."""
    decoded = unquote_to_bytes(path.encode("utf-8", "surrogatepass")).decode("latin-1")
    environ = {"PATH_INFO": decoded, "QUERY_STRING": query}
    return client.open("/", method=method, headers={"x-api-key": key}, environ_overrides=environ)


def _filled(rule: str, argument: str, text: str) -> str:
    """A rule with a text as one of its arguments, and a letter as each other."""
    return _ARGUMENT.sub("x", rule.replace(f"<{argument}>", "\0")).replace("\0", text)


@_each_database
def test_every_id_in_a_path(client: FlaskClient, key: str, instance: Instance, scope: Scope) -> None:
    seen = set()
    for at, rule in enumerate(client.application.url_map.iter_rules()):
        for argument, method in product(rule.arguments, (rule.methods or set()) - {"HEAD", "OPTIONS"}):
            for name, text in _some(at, instance):
                # Decoded, both are one but where the text has a percent sign itself.
                written_out = [quote(text, safe="", errors="surrogatepass")] if "%" in text else []
                for written in (text, *written_out):
                    path = _filled(rule.rule, argument, written)
                    response = _get(client, path, key=key, method=method)
                    require_sound(response, (rule.rule, argument, name))
                    assert b"root:" not in response.data
                    assert b"[build-system]" not in response.data
            seen.add(argument)
    assert {"decision_id", "chain_id"} <= seen
    assert chain_size(instance, scope) == 0


def _reads(client: FlaskClient, path: str, parameters: Collection[str], key: str) -> bool:
    """Whether a route reads one of query parameters: it then refuses to have it twice."""
    query = "&".join(f"{parameter}=1&{parameter}=2" for parameter in parameters)
    response = _get(client, path, key=key, query=query)
    return response.status_code == 400 and response.get_json().get("errors", [{}])[0].get("code") == "duplicate"


@_each_database
def test_every_query_parameter(client: FlaskClient, key: str, instance: Instance, scope: Scope) -> None:
    seen = set()
    for at, rule in enumerate(client.application.url_map.iter_rules()):
        path = _ARGUMENT.sub("x", rule.rule)
        if "GET" not in (rule.methods or ()):
            continue
        read = sorted(DECLARED.get(_ARGUMENT.sub(lambda name: f"{{{name[0][1:-1]}}}", rule.rule), ()))
        # Which they are does not depend on the database.
        if instance.ledger.store.engine.name == "sqlite":
            assert [parameter for parameter in read if not _reads(client, path, [parameter], key)] == []
            assert not _reads(client, path, [each for each in PARAMETERS if each not in read], key)
        for number, (name, text) in enumerate(_some(at, instance)):
            value = quote(text, safe="%", errors="surrogatepass")
            queries = [f"{parameter}={value}" for parameter in read]
            if number % 10 == 0 and instance.ledger.store.engine.name == "sqlite":
                queries.append(f"{value}={value}&{value}&={value}")
            for query in queries:
                require_sound(_get(client, path, key=key, query=query), (rule.rule, query[:40], name))
        seen.update(read)
    assert {"limit", "hash", "pattern_id"} <= seen
    assert chain_size(instance, scope) == 0


@_each_database
def test_every_header(client: FlaskClient, key: str, instance: Instance, scope: Scope) -> None:
    # Of the headers, only the first two reach the ledger.
    headers = HEADERS if instance.ledger.store.engine.name == "sqlite" else HEADERS[:2]
    body = json.dumps(sample_request()).encode()
    made = 0
    for at, header in enumerate(headers):
        variable = f"HTTP_{header.upper().replace('-', '_')}"
        # Every text where it is read or shown, and some of them where it is not.
        for number, (name, text) in enumerate(STRINGS if at < _READ else _some(at)):
            sent = text.encode("utf-8", "surrogatepass").decode("latin-1")
            environ = {"HTTP_X_API_KEY": key, variable: sent}
            response = client.post("/api/decide", data=body, content_type="application/json", environ_overrides=environ)
            require_sound(response, (header, name))
            if header == "x-request-id":
                assert (response.headers[header] == sent) == (_SAFE.fullmatch(sent) is not None), name
            if header == "x-idempotency-key" and response.status_code == 200:
                assert response.get_json()["idempotency_key"] == text
            made += response.status_code == 200 and response.headers["x-idempotency-status"] == "created"
            path = "/metrics" if header == "x-metrics-token" else "/api/decision/x"
            # What is answered without a body, to each text under some of the headers.
            if path != "/metrics" and (number + at) % size(3, 1):
                continue
            require_sound(client.get(path, environ_overrides=environ), (header, path, name))
    for name, text in STRINGS if len(headers) > _READ else _some(0):
        sent = text.encode("utf-8", "surrogatepass").decode("latin-1")
        for environ in ({"CONTENT_TYPE": sent}, {"CONTENT_TYPE": f"application/json;{sent}"}):
            response = client.post("/api/decide", data=body, environ_overrides={"HTTP_X_API_KEY": key, **environ})
            require_sound(response, ("content-type", name))
            made += response.status_code == 200
    assert chain_size(instance, scope) == made


def test_the_log_is_one_object_a_line_whatever_was_sent(client: FlaskClient, log: BytesIO) -> None:
    for _, text in STRINGS:
        sent = text.encode("utf-8", "surrogatepass").decode("latin-1")
        environ = {"HTTP_X_API_KEY": sent, "HTTP_X_REQUEST_ID": sent, "HTTP_USER_AGENT": sent, "PATH_INFO": f"/{sent}"}
        client.post("/", environ_overrides=environ)
        client.post("/", environ_overrides={**environ, "PATH_INFO": "/api/decide"})
        client.get("/", environ_overrides={**environ, "PATH_INFO": f"/api/decision/{sent}"})
    lines = log.getvalue().split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line)["event"] for line in lines] == ["request"] * 3 * len(STRINGS)
    assert all(line.decode().isprintable() for line in lines)


def test_a_long_name_is_not_told_again_for_each_member_under_it(client: FlaskClient, key: str) -> None:
    outputs = sample_request(**{"A" * 300_000: [{"action": 1}] * 10_000})
    unknown = sample_request()
    unknown["rulebook"]["input_schema"]["properties"]["A" * 300_000] = {f"x{number}": 1 for number in range(100)}
    for body, code in ((outputs, "RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN"), (unknown, "RULEBOOK_INVALID")):
        response = decide(client, key, body)
        assert response.get_json()["error"] == code
        assert len(response.data) < 100_000
