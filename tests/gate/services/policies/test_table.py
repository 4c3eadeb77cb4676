"""A policy table that an author got wrong is refused, with the place of each fault."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gate.errors import MaterialRefused
from gate.services.policies.in_force import released
from gate.services.policies.questions import BY_SERVICE
from gate.services.policies.table import MAX_TABLE_BYTES, read_table
from tests.support.samples import CASES, cases


def refused(text: bytes, service: str = "refund") -> MaterialRefused:
    with pytest.raises(MaterialRefused) as caught:
        read_table(text, service)
    assert caught.value.code == "POLICY_TABLE_INVALID"
    assert caught.value.message.startswith("The file is not a policy table")
    return caught.value


def table(service: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CASES / "policy_tables" / f"{service}.json").read_bytes())
    return found


@pytest.mark.parametrize("case", cases("policy_table_faults"), ids=lambda case: case["name"])
def test_a_fault_is_named_with_its_place(case: dict[str, Any]) -> None:
    body = table(case["service"])
    entry = body["entries"][case.get("entry", 0)]
    entry.update(case.get("set", {}))
    for name in case.get("remove", []):
        del entry[name]
    body.update(case.get("root", {}))
    errors = refused(json.dumps(body).encode(), case["service"]).errors
    assert [[error.field, error.code] for error in errors] == case["errors"]
    assert all(error.message.endswith(".") for error in errors)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "It is not JSON"),
        (b"[", "It is not JSON"),
        (b'{"service": "refund", "service": "refund"}', "appears twice"),
        (b'{"entries": 1e400}', "too large"),
        (b"\xff", "not valid UTF-8"),
        (b" " * (MAX_TABLE_BYTES + 1), "bytes; at most"),
    ],
)
def test_a_file_that_is_no_json_is_refused(text: bytes, says: str) -> None:
    assert says in refused(text).message


@pytest.mark.parametrize("service", BY_SERVICE)
def test_the_tables_of_the_release_are_valid_and_conservative(service: str) -> None:
    entries = released(service).entries
    assert len({entry["vendor"] for entry in entries}) >= 5
    for entry in entries:
        assert entry["source"].startswith("https://")
        # Nobody has read their sources, so that none of them may answer.
        assert (entry["decision_mode"], entry["last_verified"]) == ("review_only", None)
        assert entry["notes"].startswith("Not verified: ")
