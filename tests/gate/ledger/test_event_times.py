"""When things happened: what callers say of it is bound by their requests, kept with them and erased with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
import pytest
from sqlalchemy import select, update

from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.decisions.lifecycle import Reported
from gate.encoding.canonical import content_hash
from gate.errors import IdempotencyConflict, RequestRefused, ServiceUnavailable
from gate.ids import parse_timestamp, timestamp
from gate.instance.audit import Finding, check_chain
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.packing import pack, unpack
from gate.ledger.tables import entries
from gate.records.reports.receipts import OUTCOMES
from tests.independent import verifier
from tests.support.samples import cases, sample_request, sqlite_file

CLOCK: Final = parse_timestamp("2026-01-31T12:00:00.000Z")
DECIDED_AT: Final = "2019-04-01T08:00:00.000Z"
CAME_ABOUT: Final = "2019-04-09T17:30:00.250Z"


@dataclass(frozen=True, slots=True)
class Told:
    """A decision and two outcomes, the second without a time of its own."""

    instance: Instance
    authority: Authority
    scope: Scope
    decision_id: str
    outcome: Mapping[str, Any]

    def reports(self) -> list[Any]:
        """The outcomes as the service lists them."""
        found, _ = self.instance.lifecycle().reports(self.authority, OUTCOMES, self.decision_id, limit=9, before=None)
        return list(found)

    def report(self, **body: Any) -> Reported:
        """Reports an outcome under the key of the first one."""
        sent = {"outcome_status": "succeeded", **body}
        return self.instance.lifecycle().report(
            self.authority, OUTCOMES, self.decision_id, sent, idempotency_key="out-1"
        )

    def finding(self) -> Finding | None:
        """What an audit of the chain finds."""
        return check_chain(self.instance, self.scope.scope_id)[1]


@pytest.fixture
def told(instance: Instance, authority: Authority, scope: Scope) -> Told:
    request = {**sample_request(), "occurred_at": DECIDED_AT}
    made = instance.gate().decide(authority, request, request_id="req_1", idempotency_key="dec-1")
    decision_id, lifecycle = made.record["decision_id"], instance.lifecycle()
    body = {"outcome_status": "succeeded", "occurred_at": CAME_ABOUT}
    report = lifecycle.report(authority, OUTCOMES, decision_id, body, idempotency_key="out-1").report
    lifecycle.report(authority, OUTCOMES, decision_id, {"outcome_status": "reverted"})
    return Told(instance, authority, scope, decision_id, dict(report))


def stored(instance: Instance, position: int) -> Any:
    with instance.ledger.store.read() as connection:
        return connection.execute(select(entries).where(entries.c.position == position)).one()


def store(instance: Instance, position: int, **values: bytes | None) -> None:
    """Writes over columns of an entry, as somebody with the database at hand could."""
    packed = {name: None if value is None else pack(value) for name, value in values.items()}
    with instance.ledger.store.write() as connection:
        connection.execute(update(entries).where(entries.c.position == position).values(packed))


def body_of(instance: Instance, position: int) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(unpack(stored(instance, position).body))
    return body


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("text", "code"), cases("event_times"), ids=ascii)
def test_a_time_is_taken_in_one_form_and_at_most_five_minutes_ahead(
    instance: Instance, authority: Authority, text: str, code: str | None
) -> None:
    now = utc_now()
    # The same table by the clock of now, before which no key signs.
    moved = text
    if code in (None, "future") and text.startswith("2026"):
        moved = timestamp(parse_timestamp(text) - CLOCK + parse_timestamp(timestamp(now)))
    gate, lifecycle = instance.gate(lambda: now), instance.lifecycle(lambda: now)
    made = gate.decide(authority, sample_request(), request_id="req_1").record

    def decide() -> None:
        record = gate.decide(authority, {**sample_request(), "occurred_at": moved}, request_id="req_1").record
        assert record["input_hash"] == content_hash({**sample_request(), "occurred_at": moved})
        assert "occurred_at" not in orjson.dumps(record).decode()
        assert gate.request_body(authority, record["decision_id"]) == {**sample_request(), "occurred_at": moved}

    def report() -> None:
        body = {"outcome_status": "succeeded", "occurred_at": moved}
        found: Any = lifecycle.report(authority, OUTCOMES, made["decision_id"], body).report
        assert found["occurred_at"] == moved
        assert verifier.event_time_holds(found, body)

    for act in (decide, report):
        if code is None:
            act()
            continue
        with pytest.raises(RequestRefused) as refused:
            act()
        assert refused.value.code == "SVC_API_REQUEST_INVALID"
        assert [(error.field, error.code) for error in refused.value.errors] == [("occurred_at", code)]


def test_an_outcome_repeats_its_time_outside_of_its_hash(told: Told) -> None:
    assert told.finding() is None
    latest, first = told.reports()
    assert first == told.outcome
    assert (first["occurred_at"], "occurred_at" in latest) == (CAME_ABOUT, False)
    assert first["outcome_hash"] == verifier.outcome_hash(first)
    assert first["outcome_hash"] == verifier.outcome_hash({**first, "occurred_at": DECIDED_AT})
    assert verifier.event_time_holds(first, orjson.loads(unpack(stored(told.instance, 2).request)))
    # Nothing more is kept than what the time needs.
    assert stored(told.instance, 3).request is None


def test_a_key_that_was_used_answers_the_same_outcome_and_refuses_another_time(told: Told) -> None:
    again = told.report(occurred_at=CAME_ABOUT)
    assert (again.status, again.report) == ("replayed", told.outcome)
    assert orjson.dumps(again.report) == orjson.dumps(told.outcome)
    for other in ({"occurred_at": DECIDED_AT}, {}):
        with pytest.raises(IdempotencyConflict):
            told.report(**other)
    gate = told.instance.gate()
    request = {**sample_request(), "occurred_at": DECIDED_AT}
    replayed = gate.decide(told.authority, request, request_id="req_2", idempotency_key="dec-1")
    assert (replayed.status, replayed.record["decision_id"]) == ("replayed", told.decision_id)
    with pytest.raises(IdempotencyConflict):
        gate.decide(told.authority, sample_request(), request_id="req_2", idempotency_key="dec-1")


def test_a_time_that_was_changed_is_found_by_the_audit_and_shown_to_nobody(told: Told) -> None:
    row, body = stored(told.instance, 2), body_of(told.instance, 2)
    request = orjson.loads(unpack(row.request))
    without = {name: value for name, value in body.items() if name != "occurred_at"}
    forged: dict[str, dict[str, Any]] = {
        "another time": {"body": {**body, "occurred_at": DECIDED_AT}},
        "a time of another type": {"body": {**body, "occurred_at": 7}},
        "no time": {"body": without},
        "another request": {"request": {**request, "occurred_at": DECIDED_AT}},
        "another time, and a request that says it": {
            "body": {**body, "occurred_at": DECIDED_AT},
            "request": {**request, "occurred_at": DECIDED_AT},
        },
        "a request that is none": {"request": []},
        "no request": {"request": None},
    }
    for how, columns in forged.items():
        changed = {name: None if value is None else orjson.dumps(value) for name, value in columns.items()}
        store(told.instance, 2, **changed)
        finding = told.finding()
        assert finding is not None, how
        assert (finding.position, finding.table) == (2, "entries"), how
        with pytest.raises(ServiceUnavailable):
            told.reports()
        store(told.instance, 2, body=unpack(row.body), request=unpack(row.request))
    assert told.finding() is None


def test_the_audit_says_which_times_differ(told: Told) -> None:
    store(told.instance, 2, body=orjson.dumps({**body_of(told.instance, 2), "occurred_at": DECIDED_AT}))
    finding = told.finding()
    assert finding is not None
    assert (
        f"The stored outcome contradicts its request. It says occurred_at '{DECIDED_AT}', but its request says "
        f"'{CAME_ABOUT}'."
    ) in str(finding)


def test_a_time_that_was_added_to_an_outcome_is_found(told: Told) -> None:
    store(told.instance, 3, body=orjson.dumps({**body_of(told.instance, 3), "occurred_at": CAME_ABOUT}))
    finding = told.finding()
    assert finding is not None
    assert finding.position == 3
    assert "its request is not stored" in str(finding)


def test_erasing_a_decision_erases_when_it_and_its_outcomes_came_about(told: Told) -> None:
    erase(told.instance.ledger, told.decision_id, "asked for", utc_now())
    assert told.finding() is None
    assert [stored(told.instance, position).request for position in (1, 2, 3)] == [None] * 3
    assert all("occurred_at" not in report for report in told.reports())
    left = {name: value for name, value in told.outcome.items() if name != "occurred_at"}
    assert told.reports()[1] == left
    # The key of the outcome still stands for it.
    assert told.report(occurred_at=CAME_ABOUT).report == left


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_nothing_of_an_erased_time_stays_in_the_files_of_the_ledger(told: Told) -> None:
    needle = told.outcome["outcome_input_hash"]
    packed = bytes(stored(told.instance, 2).request)
    file = sqlite_file(told.instance.ledger)
    files = [file, file.with_name(f"{file.name}-wal")]
    assert any(packed in of.read_bytes() for of in files if of.exists())
    erase(told.instance.ledger, told.decision_id, "asked for", utc_now())
    assert not any(packed in of.read_bytes() for of in files if of.exists())
    assert body_of(told.instance, 2)["outcome_input_hash"] == needle


def test_an_outcome_after_the_erasure_may_say_when_it_came_about(told: Told) -> None:
    erase(told.instance.ledger, told.decision_id, "asked for", utc_now())
    lifecycle = told.instance.lifecycle()
    body = {"outcome_status": "failed", "occurred_at": CAME_ABOUT}
    lifecycle.report(told.authority, OUTCOMES, told.decision_id, body)
    assert told.finding() is None
    assert told.reports()[0]["occurred_at"] == CAME_ABOUT


def test_an_erased_time_that_was_put_back_is_found(told: Told) -> None:
    row = stored(told.instance, 2)
    erase(told.instance.ledger, told.decision_id, "asked for", utc_now())
    store(told.instance, 2, body=unpack(row.body), request=unpack(row.request))
    finding = told.finding()
    assert finding is not None
    assert finding.position == 2
    assert "though its decision was erased at position 4" in str(finding)
