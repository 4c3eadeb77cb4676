"""A policy table that an author got wrong is refused, with the place of each fault."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from gate.errors import MaterialRefused
from gate.services.policies.in_force import released, released_file
from gate.services.policies.questions import BY_SERVICE
from gate.services.policies.table import MAX_TABLE_BYTES, age_in_days, read_table
from tests.gate.services.policies.tables import NOW
from tests.support.samples import CASES, cases


def refused(text: bytes, service: str = "refund") -> MaterialRefused:
    with pytest.raises(MaterialRefused) as caught:
        read_table(text, service, NOW.date())
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
    assert case.get("says", "") in errors[0].message


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


@pytest.mark.parametrize("service", BY_SERVICE)
def test_a_table_of_the_release_passes_the_check_of_an_operators_table(service: str) -> None:
    assert read_table(released_file(service).read_bytes(), service, NOW.date()).hash == released(service).hash


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_verification_of_the_day_after_today_has_begun_elsewhere(ahead: int) -> None:
    body = table("refund")
    body["entries"][0]["last_verified"] = (NOW.date() + timedelta(days=ahead)).isoformat()
    entry = read_table(json.dumps(body).encode(), "refund", NOW.date()).entries[0]
    assert age_in_days(entry, NOW.date()) == 0


@pytest.mark.parametrize(("free", "locked"), [(30, 30), (31, 30), (0, 0)])
def test_free_days_that_reach_beyond_the_minimum_term_are_no_fault(free: int, locked: int) -> None:
    body = table("cancel")
    body["entries"][1]["windows"] = {"free_days": free, "locked_days": locked}
    assert read_table(json.dumps(body).encode(), "cancel", NOW.date()).entries[1]["windows"]["free_days"] == free
