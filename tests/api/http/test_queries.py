"""Query parameters: an operation for holders of a key takes those that its description names, and says so."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.contract.frozen import current

LISTED: dict[str, dict[str, list[str]]] = {"key": {}, "none": {}}
_DOCUMENT = current()
for _path, _item in _DOCUMENT["paths"].items():
    if "get" in _item:
        _shared = _DOCUMENT["components"]["parameters"]
        _parameters = [
            _shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in _item["get"]["parameters"]
        ]
        if _names := [one["name"] for one in _parameters if one["in"] == "query"]:
            _called = "key" if {"apiKey": []} in _item["get"].get("security", []) else "none"
            LISTED[_called][re.sub(r"\{.*?\}", "x", _path)] = _names


def faults(client: FlaskClient, url: str, key: str) -> list[dict[str, Any]]:
    """What is wrong with the query of a request."""
    response = client.get(url, headers={"x-api-key": key})
    body = response.get_json()
    assert (response.status_code, body["error"]) == (400, "SVC_API_QUERY_INVALID")
    found: list[dict[str, Any]] = body["errors"]
    assert body["message"] == f"The query parameter {found[0]['field']} {found[0]['message'].removeprefix('It ')}"
    assert body["message"].endswith(".")
    return found


def test_the_operations_are_those_of_the_service() -> None:
    assert {path.rpartition("/")[2] for path in LISTED["key"]} == {
        *("decisions", "packet", "execution", "outcome", "crm-sync", "x", "rulebooks"),
        *(
            "confidence",
            "effectiveness",
            "anomalies",
            "policy-alerts",
            "policy-alerts.atom",
            "benchmarks",
            "routes",
            "migrations",
        ),
    }
    assert {path.rpartition("/")[2] for path in LISTED["none"]} == {"policy-bundles", "policy-patterns"}


@pytest.mark.parametrize(("path", "names"), LISTED["key"].items())
def test_a_parameter_that_is_not_known_is_refused_and_the_known_ones_named(
    client: FlaskClient, key: str, path: str, names: list[str]
) -> None:
    for unknown in (f"{names[0]}s", names[0].upper(), "Limit", "%00", ""):
        (fault,) = faults(client, f"{path}?{unknown}=1", key)
        assert fault["code"] == "unknown_parameter"
        assert fault["message"].endswith(f"Known parameters: {', '.join(names)}.")
    # Also beside one that is known, and each of several.
    found = faults(client, f"{path}?{names[0]}=1&b=2&a=1&a=3", key)
    assert [(fault["field"], fault["code"]) for fault in found] == [(name, "unknown_parameter") for name in "ab"]


@pytest.mark.parametrize("path", LISTED["key"])
def test_the_key_comes_before_the_query(client: FlaskClient, path: str) -> None:
    assert client.get(f"{path}?unknown=1").status_code == 401


@pytest.mark.parametrize("path", LISTED["none"])
def test_what_anyone_may_ask_ignores_what_it_does_not_know(client: FlaskClient, path: str) -> None:
    assert client.get(f"{path}?unknown=1").data == client.get(path).data


def test_no_more_are_told_than_anyone_reads_and_of_a_long_name_the_beginning(client: FlaskClient, key: str) -> None:
    found = faults(client, "/api/decisions?" + "&".join(f"{'x' * 300}{number}=1" for number in range(60)), key)
    assert len(found) == 50
    assert found[0]["field"] == f"{'x' * 200}..."


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=0", "It must be a whole number from 1 to 1000."),
        ("limit=1&limit=2", "It was sent more than once; send it once."),
        ("verdict=", "It is empty; give it a value or remove it."),
        ("verdict=maybe", "It must be one of yes, no, review; send one of them, or leave it out."),
        (
            "from=2026-01-01",
            "It must be a time with a time zone, for example 2026-01-31T12:00:00.000Z.",
        ),
        (
            "from=2026-01-01T00:00:00+01:00",
            "It must be a time with a time zone, for example 2026-01-31T12:00:00.000Z. In a query string, write "
            "+ as %2B.",
        ),
        ("cursor=x", "It must be the next_cursor of an earlier answer."),
        (
            "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
            "It is before from; send a later time.",
        ),
    ],
)
def test_what_is_allowed_is_told(client: FlaskClient, key: str, query: str, message: str) -> None:
    (fault,) = faults(client, f"/api/decisions?{query}", key)
    assert fault["message"] == message


def test_a_plus_that_is_written_as_such_is_one(client: FlaskClient, key: str) -> None:
    path = "/api/decisions?from=2026-01-01T00:00:00%2B01:00"
    assert client.get(path, headers={"x-api-key": key}).status_code == 200
