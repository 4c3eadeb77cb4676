"""The audit of a chain: a change to any column of any entry, or of what is derived from entries, is found.

(What a person sees of it: tests/api/cli.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from sqlalchemy import Connection, LargeBinary, Row, Table, and_, delete, insert, select, type_coerce, update

from gate.clock import utc_now
from gate.decisions.erasure import build, erase, left_of
from gate.instance.audit import Finding, check_chain
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.packing import pack, unpack
from gate.ledger.tables import claims, decisions, entries, latest_outcomes, outcome_counts
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, KINDS, OUTCOMES, report_hash
from tests.support.samples import sample_request
from tests.support.torture import size

SIZE = 12
ERASED, ERASURE = 3, 11
EXECUTION, OUTCOME, CRM_SYNC = 4, 6, 9
OTHER_JSON: tuple[Any, ...] = ("", None, "other", {}, [], False)

# What a database may give back otherwise is in the columns; what follows from them it has no part in.
on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def lived(instance: Instance, authority: Authority) -> Instance:
    """A chain with an entry of every type: three decisions, reports about two of them, the third one erased."""
    gate, lifecycle = instance.gate(), instance.lifecycle()
    ids = []
    for number, margin in enumerate((22, 5, 22)):
        request = sample_request(discount_percent=10, margin_percent=margin)
        made = gate.decide(authority, request, request_id="req_1", idempotency_key=f"order-{number}")
        ids.append(made.record["decision_id"])
    for kind, decision_id, body in (
        (
            EXECUTIONS,
            ids[0],
            {"execution_status": "executed", "target_system": "crm", "executor": {"type": "agent", "id": "a"}},
        ),
        (OUTCOMES, ids[0], {"outcome_status": "pending"}),
        (OUTCOMES, ids[0], {"outcome_status": "succeeded", "observed_metrics": {"margin": 21.5}}),
        (OUTCOMES, ids[1], {"outcome_status": "review"}),
        (OUTCOMES, ids[2], {"outcome_status": "failed"}),
        (CRM_SYNCS, ids[0], {"sync_status": "written", "mapped_fields": {"stage": "won", "tags": ["a"]}}),
        (CRM_SYNCS, ids[1], {"sync_status": "failed"}),
    ):
        lifecycle.report(authority, kind, decision_id, body, idempotency_key=f"{kind.name}-{body}"[:99])
    erase(instance.ledger, ids[2], "asked for", utc_now())
    gate.decide(authority, sample_request(), request_id="req_1", idempotency_key="order-9")
    return instance


@contextmanager
def changed(instance: Instance, table: Table, row: Row[Any], values: dict[str, Any] | None) -> Iterator[None]:
    """Other values in a row, or no such row, while the block runs."""
    key = [column.name for column in table.primary_key]
    old = dict(row._mapping)

    def write(connection: Connection, was: dict[str, Any], now: dict[str, Any] | None) -> None:
        at = and_(*(table.c[name] == was[name] for name in key))
        connection.execute(delete(table).where(at) if now is None else update(table).where(at).values(now))

    with instance.ledger.store.write() as connection:
        write(connection, old, values)
    yield
    with instance.ledger.store.write() as connection:
        if values is None:
            connection.execute(insert(table), old)
        else:
            write(connection, old | values, old)


def rows(instance: Instance, table: Table) -> list[Row[Any]]:
    with instance.ledger.store.read() as connection:
        return list(connection.execute(select(table).order_by(*table.primary_key)))


def row_at(instance: Instance, position: int) -> Row[Any]:
    return rows(instance, entries)[position - 1]


def other(value: Any) -> Any:
    """A value of the same type, or one in the place of none."""
    if isinstance(value, int):
        return value + 99
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    return "no" if value == "yes" else f"{value or ''}x"[-20:]


def found(instance: Instance, scope: Scope) -> Finding | None:
    return check_chain(instance, scope.scope_id)[1]


def test_a_chain_with_every_type_of_entry_is_whole(lived: Instance, scope: Scope) -> None:
    assert check_chain(lived, scope.scope_id) == (SIZE, None)
    types = [row.entry_type for row in rows(lived, entries)]
    assert set(types) == {"decision", *(kind.entry_type for kind in KINDS), "erasure"}
    assert (types[ERASED - 1], types[ERASURE - 1]) == ("decision", "erasure")
    assert row_at(lived, SIZE).confidence is not None


@pytest.mark.heavy
def test_a_change_to_any_column_of_an_entry_is_found_at_its_place(lived: Instance, scope: Scope) -> None:
    missed = []
    for position in (1, ERASED, EXECUTION, OUTCOME, CRM_SYNC, ERASURE, SIZE):
        row = row_at(lived, position)
        for name, value in row._mapping.items():
            values = [other(value)]
            if name in ("body", "request", "confidence"):
                values = [b"{}", b"\xff", b'{"x": 1}'] + ([None] if name == "request" and value else [])
            if name == "position":
                values = [99]
            for tampered in values:
                with changed(lived, entries, row, {name: tampered}):
                    broken = found(lived, scope)
                if broken is None or broken.position not in (position, found_at(position), position + 1, SIZE):
                    missed.append((position, name, tampered, broken))
    assert missed == []
    assert found(lived, scope) is None


def test_what_is_no_text_any_more_is_found_and_ends_nothing(lived: Instance, scope: Scope) -> None:
    """Where text is kept as bytes, something else wrote bytes that are none."""
    for table in (entries, decisions, latest_outcomes):
        for version, whole in ((type_coerce(b"\xff\xfe", LargeBinary), False), ("2026-06-11", True)):
            with lived.ledger.store.write() as connection:
                connection.execute(update(table).values(policy_version=version))
            assert (found(lived, scope) is None) is whole, table.name


def test_an_entry_that_is_gone_or_of_an_unknown_type_is_found(lived: Instance, scope: Scope) -> None:
    for row in rows(lived, entries):
        with changed(lived, entries, row, None):
            assert found(lived, scope) is not None, row.position
        with changed(lived, entries, row, {"entry_type": "packet"}):
            broken = found(lived, scope)
        assert broken is not None
        assert broken.position == found_at(row.position)


def found_at(position: int) -> int:
    """Where a fault of an entry is found first: an erasure's where its decision tells of it."""
    return ERASED if position == ERASURE else position


@on_one_database
@pytest.mark.heavy
def test_a_report_that_was_changed_with_its_hash_is_found(lived: Instance, scope: Scope) -> None:
    missed = []
    for position, kind in ((EXECUTION, EXECUTIONS), (OUTCOME, OUTCOMES), (CRM_SYNC, CRM_SYNCS)):
        row = row_at(lived, position)
        report = orjson.loads(unpack(row.body))
        for at, name in enumerate(sorted({*report, "x", "external_ref", "crm_record_url"} - {kind.hash_member})):
            for number, value in enumerate(OTHER_JSON):
                forged = {**report, name: value}
                # Some of the values for each member; all of them in `make torture`.
                if forged == report or (at + number) % size(3, 1):
                    continue
                forged[kind.hash_member] = report_hash(kind, forged)
                with changed(lived, entries, row, {"body": pack(orjson.dumps(forged))}):
                    broken = found(lived, scope)
                if broken is None or broken.position != position:
                    missed.append((kind.name, name, value, broken))
    assert missed == []


@on_one_database
@pytest.mark.parametrize("added", [{"note": None}, {"note": ""}, {"deal": {}}, {"tags": ["a", []]}], ids=str)
def test_an_empty_part_that_was_added_to_a_crm_sync_is_found(
    lived: Instance, scope: Scope, added: dict[str, Any]
) -> None:
    """Its hash stays what it was."""
    row = row_at(lived, CRM_SYNC)
    sync = orjson.loads(unpack(row.body))
    forged = {**sync, "mapped_fields": sync["mapped_fields"] | added}
    assert report_hash(CRM_SYNCS, forged) == sync["sync_hash"]
    with changed(lived, entries, row, {"body": pack(orjson.dumps(forged))}):
        broken = found(lived, scope)
    assert broken is not None
    assert broken.position == CRM_SYNC
    assert "mapped_fields" in broken.reason


@on_one_database
def test_what_is_missing_of_a_decision_has_to_have_been_erased(lived: Instance, scope: Scope) -> None:
    row = row_at(lived, 1)
    record = orjson.loads(unpack(row.body))
    feigned = build(record, True, "never asked for", "era_0", row.created_at)
    for values, told in (
        ({"request": None}, "no erasure of it"),
        ({"body": pack(orjson.dumps({**record, "evaluation": None}))}, "evaluation"),
        ({"body": pack(orjson.dumps(left_of(record, feigned))), "request": None}, "no such erasure"),
        ({"body": pack(orjson.dumps(left_of(record, feigned)))}, "no such erasure"),
    ):
        with changed(lived, entries, row, values):
            broken = found(lived, scope)
        assert broken is not None
        assert (broken.position, told in broken.reason) == (1, True), broken.reason


@on_one_database
def test_what_was_erased_has_to_stay_so(lived: Instance, scope: Scope, authority: Authority) -> None:
    """Somebody who kept it puts it back, or lets the record tell of another erasure."""
    row, untouched = row_at(lived, ERASED), row_at(lived, 1)
    record = orjson.loads(unpack(row.body))
    whole = {name: value for name, value in record.items() if name != "erased"}
    note = record["erased"]
    for values, position in (
        ({"request": untouched.request}, ERASED),
        ({"body": pack(orjson.dumps(whole))}, ERASED),
        ({"body": pack(orjson.dumps({**record, "erased": note | {"erasure_id": "era_0"}}))}, ERASED),
        ({"body": pack(orjson.dumps({**record, "erased": note | {"erased_at": row.created_at}}))}, ERASED),
        ({"body": pack(orjson.dumps({**record, "erased": note | {"members": ["evaluation"]}}))}, ERASED),
    ):
        with changed(lived, entries, row, values):
            broken = found(lived, scope)
        assert broken is not None
        assert broken.position == position, broken.reason


@on_one_database
def test_a_decision_that_comes_back_whole_is_found_at_its_erasure(
    instance: Instance, authority: Authority, scope: Scope
) -> None:
    record = instance.gate().decide(authority, sample_request(), request_id="req_1").record
    before = row_at(instance, 1)
    erase(instance.ledger, record["decision_id"], "asked for", utc_now())
    with changed(instance, entries, row_at(instance, 1), {"body": before.body, "request": before.request}):
        broken = found(instance, scope)
    assert broken is not None
    assert (broken.position, "still holds the erased data" in broken.reason) == (2, True)


@on_one_database
@pytest.mark.heavy
def test_a_claim_that_leads_elsewhere_is_found_with_its_place(lived: Instance, scope: Scope) -> None:
    for row in rows(lived, claims):
        for values in (None, {"position": row.position + 1}, {"input_hash": "x"}, {"claim": bytes(32)}):
            with changed(lived, claims, row, values):
                broken = found(lived, scope)
            assert broken is not None
            assert (broken.position, "idempotency key" in broken.reason) == (row.position, True)


@on_one_database
@pytest.mark.parametrize("table", [decisions, latest_outcomes, outcome_counts], ids=lambda table: table.name)
@pytest.mark.heavy
def test_a_derived_row_that_its_entries_do_not_give_is_found(lived: Instance, scope: Scope, table: Table) -> None:
    kept = rows(lived, table)
    assert len(kept) >= 3
    missed = []
    for row in kept:
        changes: list[dict[str, Any] | None] = [None]
        changes += [{name: other(value)} for name, value in row._mapping.items() if name != "scope_id"]
        for values in changes:
            with changed(lived, table, row, values):
                broken = found(lived, scope)
            if broken is None or f"table {table.name} " not in broken.reason:
                missed.append((values, broken))
    assert missed == []


@on_one_database
@pytest.mark.parametrize("table", [decisions, latest_outcomes, outcome_counts], ids=lambda table: table.name)
def test_a_derived_row_of_nothing_is_found(lived: Instance, scope: Scope, table: Table) -> None:
    values = dict(rows(lived, table)[0]._mapping)
    apart: dict[str, dict[str, Any]] = {
        "decisions": {"position": 5},
        "latest_outcomes": {"decision_id": "dec_0"},
        "outcome_counts": {"action": "a"},
    }
    with lived.ledger.store.write() as connection:
        connection.execute(insert(table), values | apart[table.name])
    broken = found(lived, scope)
    assert broken is not None
    assert f"table {table.name} " in broken.reason
    assert "restore a backup" in broken.reason


def test_other_scopes_are_not_looked_at(lived: Instance, scope: Scope) -> None:
    second = lived.ledger.directory.create_scope("second", "unlimited", utc_now())
    with lived.ledger.store.write() as connection:
        connection.execute(delete(decisions).where(decisions.c.scope_id == scope.scope_id))
    assert check_chain(lived, second.scope_id) == (0, None)
