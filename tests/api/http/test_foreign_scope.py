"""Whoever asks for what another scope holds is answered as if it did not exist: byte for byte, at every operation that
the interface description has, or will have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

import pytest
from flask.testing import FlaskClient

from gate.clock import new_id, utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS
from gate.rulebooks.rulebook import load
from tests.contract.frozen import current
from tests.independent.verifier import canonical_hash
from tests.support.migrations import desk
from tests.support.samples import REPORTS, sample_request, sample_rulebook

DOCUMENT: Final = current()
OPERATIONS: Final = {
    f"{method.upper()} {path}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if {"apiKey": []} in operation["security"]
}
POLICY: Final = "foreign_pricing"
MIGRATION: Final = "foreign_pricing_2026_07"
VERSION: Final = "2026-07-01"
RULEBOOK: Final = {**sample_rulebook(), "rulebook_id": POLICY, "version": VERSION}
"""What only the other scope decides by."""

OF_RECORDS: Final = ("decision_id", "chain_id")
"""Path parameters whose values only the service gives out, so that a foreign one is compared with an unknown one."""

CHOSEN: Final = {
    "policy_id": POLICY,
    "rulebook_id": POLICY,
    "policy_version": VERSION,
    "version": VERSION,
    "target_object_id": "deal-1042",
    "migration_id": MIGRATION,
    "cursor": "1",
    "ticketing_system": "zendesk",
    "service": "refund",
}
"""Ids that callers choose: the same one is asked for before another scope has it, and after."""

REQUEST_ID: Final = re.compile(r"req_[0-9a-f]{32}")
DATE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
HASH: Final = re.compile(r"[0-9a-f]{64}")


def parameters(operation: dict[str, Any], place: str) -> list[str]:
    """The names of an operation's parameters that stand in the path, or in the query."""
    given = [
        DOCUMENT["components"]["parameters"][parameter["$ref"].rpartition("/")[2]] if "$ref" in parameter else parameter
        for parameter in operation["parameters"]
    ]
    return [parameter["name"] for parameter in given if parameter["in"] == place]


class Scopes:
    """Two scopes of one instance: one that holds something, and one that asks for it."""

    def __init__(self, client: FlaskClient, instance: Instance) -> None:
        self.client = client
        self.instance = instance
        directory, now = instance.ledger.directory, utc_now()
        self.scope, asking = (directory.create_scope(name, "unlimited", now) for name in ("owner", "asking"))
        self.owner, self.asking = (
            directory.create_key(scope, FULL_ACCESS, None, now)[0] for scope in (self.scope, asking)
        )
        # No key that may decide may resolve.
        self.resolving = directory.create_key(asking, {"resolve"}, None, now)[0]
        # The one that asks holds something of its own.
        self.report_on(self.decide(self.asking, sample_rulebook()), self.asking)

    def decide(self, key: str, rulebook: dict[str, Any]) -> dict[str, Any]:
        """A record."""
        request = {**sample_request(), "rulebook": rulebook}
        headers = {"x-api-key": key, "x-idempotency-key": "order-1"}
        response = self.client.post("/api/decide", json=request, headers=headers)
        assert response.status_code == 200
        record: dict[str, Any] = response.get_json()
        return record

    def report_on(self, record: dict[str, Any], key: str) -> None:
        """Reports of every kind."""
        headers = {"x-api-key": key, "x-idempotency-key": "order-1"}
        for kind, body in REPORTS.items():
            response = self.client.post(f"{record['decision_url']}/{kind}", json=body, headers=headers)
            assert response.status_code == 201

    def own(self) -> dict[str, Any]:
        """Makes what the other scope has no business with; its record."""
        desk(self.instance, self.scope).route(MIGRATION, load(RULEBOOK))
        record = self.decide(self.owner, RULEBOOK)
        self.report_on(record, self.owner)
        return record

    def ask(
        self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None, *, key: str | None = None
    ) -> tuple[Any, ...]:
        """What the other scope is answered: status, headers and body, but for ids of the request and dates."""
        response = self.client.open(
            path,
            method=method,
            query_string=query,
            headers={"x-api-key": key or self.asking, "x-idempotency-key": "order-1", "x-request-id": "trace-1"},
            **({} if body is None else {"json": body}),
        )
        assert response.status_code < 500
        headers = sorted(f"{name}: {value}" for name, value in response.headers if name.lower() != "date")
        text = REQUEST_ID.sub("<request>", "\n".join([*headers, response.get_data(as_text=True)]))
        if DATE.search(text):
            # Whatever is hashed with a date has another hash each time.
            text = HASH.sub("<hash>", DATE.sub("<date>", text))
        return response.status_code, text


@pytest.fixture
def scopes(client: FlaskClient, instance: Instance) -> Scopes:
    return Scopes(client, instance)


def bodies(operation: dict[str, Any]) -> Iterator[Any]:
    """What to send to an operation: nothing much, and every example of its description."""
    if "requestBody" not in operation:
        yield None
        return
    yield {}
    for example in operation["requestBody"]["content"]["application/json"].get("examples", {}).values():
        yield example["value"]


def is_about_a_record(name: str) -> bool:
    return bool(set(parameters(OPERATIONS[name], "path")) & set(OF_RECORDS))


@pytest.mark.parametrize("name", [name for name in OPERATIONS if is_about_a_record(name)])
def test_a_foreign_id_is_answered_as_an_unknown_one(scopes: Scopes, name: str) -> None:
    record = scopes.own()
    method, path = name.split(" ")
    foreign = {"decision_id": record["decision_id"], "chain_id": record["audit_chain"]["chain_id"]}
    unknown = {"decision_id": new_id("dec", utc_now()), "chain_id": f"chain_{'0' * 24}"}
    statuses = set()
    key = scopes.resolving if OPERATIONS[name]["x-access"] == "resolve" else None
    for body in bodies(OPERATIONS[name]):
        for query in (None, {"limit": "1"}):
            answers = [scopes.ask(method, path.format(**ids), body, query, key=key) for ids in (foreign, unknown)]
            assert answers[0] == answers[1]
            statuses.add(answers[0][0])
    assert 404 in statuses
    if method == "GET":
        assert scopes.ask(method, path.format(**foreign), key=scopes.owner)[0] == 200


def queries(operation: dict[str, Any], hash_: str) -> Iterator[dict[str, str]]:
    """Every none, one and two of the ids that an operation may be asked for."""
    known = {**CHOSEN, "hash": hash_}
    taken = [(name, known[name]) for name in parameters(operation, "query") if name in known]
    for size in range(3):
        yield from map(dict, combinations(taken, size))


def requests(name: str, hash_: str) -> Iterator[Any]:
    """What to send to an operation that has no id of a record in its path."""
    if name != "POST /api/decide":
        yield from bodies(OPERATIONS[name])
        return
    request = sample_request()
    del request["rulebook"]
    for reference in ({"hash": hash_}, {"rulebook_id": POLICY, "version": VERSION}):
        yield {**request, "rulebook_ref": reference}


@pytest.mark.parametrize("name", [name for name in OPERATIONS if not is_about_a_record(name)])
def test_what_another_scope_makes_changes_no_answer(scopes: Scopes, name: str) -> None:
    method, path = name.split(" ")
    hash_ = canonical_hash(RULEBOOK)
    questions = [
        (method, path.format(**CHOSEN), body, query)
        for body in requests(name, hash_)
        for query in queries(OPERATIONS[name], hash_)
    ]
    before = [scopes.ask(*question) for question in questions]
    assert scopes.own()["policy_hash"] == hash_
    assert [scopes.ask(*question) for question in questions] == before


def test_every_id_that_an_operation_takes_is_one_that_these_tests_know() -> None:
    taken = {
        name
        for operation in OPERATIONS.values()
        for place in ("path", "query")
        for name in parameters(operation, place)
        if re.search(r"(id|hash|version|cursor)$", name)
    }
    assert taken <= {*OF_RECORDS, *CHOSEN, "hash"}
