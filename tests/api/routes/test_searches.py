"""GET /api/decisions: what a reviewer finds, page by page, and what is refused. (Criteria: tests/gate/ledger.)"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.routes.searches import _SHOWN
from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.ids import not_before, parse_timestamp, timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS, Scope
from tests.support.samples import make_record, sample_request


@pytest.fixture
def records(client: FlaskClient, key: str) -> list[dict[str, Any]]:
    """Five decisions, newest first; the second and the fourth are denied."""
    found = []
    for number in range(5):
        request = sample_request(discount_percent=10, margin_percent=22 - 17 * (number % 2))
        request["context"]["target_object_id"] = f"deal-{number}"
        found.append(client.post("/api/decide", json=request, headers={"x-api-key": key}).get_json())
    return found[::-1]


def search(client: FlaskClient, key: str, **query: Any) -> TestResponse:
    return client.get("/api/decisions", query_string=query, headers={"x-api-key": key})


def found(client: FlaskClient, key: str, **query: Any) -> dict[str, Any]:
    response = search(client, key, **query)
    assert response.status_code == 200, response.data
    body: dict[str, Any] = response.get_json()
    jsonschema.Draft202012Validator(resources.schema("decision-search")).validate(body)
    assert body["count"] == len(body["decisions"])
    return body


def pages(client: FlaskClient, key: str, **query: Any) -> Iterator[list[dict[str, Any]]]:
    cursor: dict[str, str] = {}
    while True:
        body = found(client, key, **query, **cursor)
        yield body["decisions"]
        if body["next_cursor"] is None:
            return
        cursor = {"cursor": body["next_cursor"]}


def test_a_decision_is_shown_by_what_tells_it_from_others(
    client: FlaskClient, key: str, records: list[dict[str, Any]]
) -> None:
    body = found(client, key)
    assert body["next_cursor"] is None
    for shown, record in zip(body["decisions"], records, strict=True):
        assert shown.pop("chain_position") == record["audit_chain"]["chain_position"]
        assert shown == {name: record[name] for name in _SHOWN}
        assert client.get(shown["decision_url"], headers={"x-api-key": key}).get_json() == record


def test_every_parameter_narrows_the_search(client: FlaskClient, key: str, records: list[dict[str, Any]]) -> None:
    third = records[2]["created_at"]
    ids = [record["decision_id"] for record in records]
    for query, expected in (
        ({"verdict": "no"}, [ids[1], ids[3]]),
        ({"policy_id": "pricing_exception", "policy_version": "2026-06-11"}, ids),
        ({"policy_id": "other"}, []),
        ({"policy_version": "2026-06-12"}, []),
        ({"reason_code": "MARGIN_FLOOR_BREACH", "limit": 1}, [ids[1]]),
        ({"target_object_id": "deal-3"}, [ids[1]]),
        ({"from": third}, [r["decision_id"] for r in records if r["created_at"] >= third]),
        ({"to": third}, [r["decision_id"] for r in records if r["created_at"] < third]),
        ({"from": third.replace("Z", "+00:00")}, [r["decision_id"] for r in records if r["created_at"] >= third]),
        ({"from": third, "to": third}, []),
    ):
        assert [shown["decision_id"] for shown in found(client, key, **query)["decisions"]] == expected, query


def test_pages_hold_every_decision_once_while_more_are_made(
    client: FlaskClient, key: str, records: list[dict[str, Any]]
) -> None:
    seen = []
    for page in pages(client, key, limit=2):
        assert len(page) <= 2
        seen += [shown["decision_id"] for shown in page]
        client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
    assert seen == [record["decision_id"] for record in records]


def test_a_bound_between_two_milliseconds_leaves_out_what_was_before_it() -> None:
    moment = parse_timestamp("2026-06-11T12:30:45.678Z")
    for microseconds, expected in ((0, ".678Z"), (1, ".679Z"), (999, ".679Z"), (1000, ".679Z")):
        assert not_before(moment + timedelta(microseconds=microseconds)) == f"2026-06-11T12:30:45{expected}"
    last = parse_timestamp("9999-12-31T23:59:59.999999Z")
    assert not_before(last) == timestamp(last)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("verdict=maybe", "verdict"),
        ("verdict=YES", "verdict"),
        ("verdict=", "verdict"),
        ("verdict=yes&verdict=no", "verdict"),
        ("policy_id=", "policy_id"),
        ("policy_version=", "policy_version"),
        ("reason_code=a&reason_code=a", "reason_code"),
        ("target_object_id=", "target_object_id"),
        ("from=yesterday", "from"),
        ("from=2026-06-11", "from"),
        ("from=2026-06-11T00:00:00", "from"),
        ("to=2026-13-11T00:00:00Z", "to"),
        ("to=0001-01-01T00:00:00%2B23:59", "to"),
        ("to=%00", "to"),
        ("from=2026-06-12T00:00:00Z&to=2026-06-11T00:00:00Z", "to"),
        ("cursor=x", "cursor"),
        ("cursor=-1", "cursor"),
        ("cursor=", "cursor"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=1.0", "limit"),
    ],
)
def test_a_parameter_that_means_nothing_is_refused(client: FlaskClient, key: str, query: str, field: str) -> None:
    response = client.get(f"/api/decisions?{query}", headers={"x-api-key": key})
    assert (response.status_code, response.get_json()["error"]) == (400, "SVC_API_QUERY_INVALID")
    assert [fault["field"] for fault in response.get_json()["errors"]] == [field]


def test_other_scopes_find_nothing(
    client: FlaskClient, records: list[dict[str, Any]], scope: Scope, instance: Instance
) -> None:
    other = instance.ledger.directory.create_scope("other", "unlimited", utc_now())
    foreign, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
    empty = {"count": 0, "decisions": [], "next_cursor": None}
    for query in ({}, {"target_object_id": "deal-1"}, {"cursor": "3"}):
        assert found(client, foreign, **query) == empty


def test_searching_needs_a_key_with_read(client: FlaskClient, scope: Scope, instance: Instance) -> None:
    assert client.get("/api/decisions").status_code == 401
    deciding, _ = instance.ledger.directory.create_key(scope, {"decide", "report"}, None, utc_now())
    response = search(client, deciding, verdict="maybe")
    assert (response.status_code, response.get_json()["error"]) == (403, "SVC_API_UNAUTHORIZED")


def test_the_example_is_what_a_search_finds() -> None:
    record = make_record()
    example = resources.path("schemas", "examples", "decision-search.json").read_bytes()
    shown = {**{name: record[name] for name in _SHOWN}, "chain_position": 1}

    assert parse(example) == {"count": 1, "decisions": [shown], "next_cursor": None}
