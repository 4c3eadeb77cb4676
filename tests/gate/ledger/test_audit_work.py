"""What an audit costs, and that it may run beside the service and in several processes."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select, update

from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.instance.audit import chains, check_chain, check_chains
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.reads import audited
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.tables import entries
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES
from tests.end_to_end.site import wait_until
from tests.support.samples import GRANT, HELD, sample_request
from tests.support.torture import size

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

NUMBERS = itertools.count()


def live(instance: Instance, authority: Authority, decisions: int, outcomes: int = 1) -> None:
    """Decisions with their keys, and reports about each of them."""
    gate, lifecycle = instance.gate(), instance.lifecycle()
    executed = {"execution_status": "executed", "target_system": "crm", "executor": {"type": "agent", "id": "a"}}
    for number in itertools.islice(NUMBERS, decisions):
        record = gate.decide(authority, sample_request(), request_id="req_1", idempotency_key=f"key-{number}").record
        lifecycle.report(authority, EXECUTIONS, record["decision_id"], executed, idempotency_key="once")
        for _ in range(outcomes):
            lifecycle.report(authority, OUTCOMES, record["decision_id"], {"outcome_status": "succeeded"})


def live_held(instance: Instance, authority: Authority, scope: Scope, decisions: int, receipts: int = 1) -> None:
    """Held decisions that are granted, and of which the last receipt says executed."""
    directory, lifecycle, resolutions = instance.ledger.directory, instance.lifecycle(), instance.resolutions()
    owner = directory.authenticate(directory.create_key(scope, {"resolve"}, None, utc_now())[0], utc_now())
    for _ in range(decisions):
        record = instance.gate().decide(authority, sample_request(**HELD), request_id="req_1").record
        resolutions.resolve(owner, record["decision_id"], GRANT, idempotency_key="once")
        for number in range(1, receipts + 1):
            status = "executed" if number == receipts else "queued"
            lifecycle.report(authority, EXECUTIONS, record["decision_id"], {"execution_status": status})


class Work:
    """What a database was asked to do."""

    def __init__(self) -> None:
        self.statements = 0
        self.steps = 0

    def step(self) -> None:
        self.steps += 1


@contextmanager
def counted(instance: Instance) -> Iterator[Work]:
    """Counts the statements, and in steps of 50 what SQLite's virtual machine does for them: rows that are read, and
    rows that are passed over.
    """
    work = Work()
    store = instance.ledger.store

    def watch(connection: sqlite3.Connection, *_: Any) -> None:
        connection.set_progress_handler(work.step, 50)

    def count(*_: Any) -> None:
        work.statements += 1

    # Connections that are made from now on are watched.
    store.engine.dispose()
    event.listen(store.engine, "connect", watch)
    event.listen(store.engine, "before_cursor_execute", count)
    yield work
    event.remove(store.engine, "connect", watch)
    event.remove(store.engine, "before_cursor_execute", count)
    store.engine.dispose()


@on_sqlite
@pytest.mark.parametrize(("decisions", "outcomes"), [(30, 1), (1, 60)], ids=["many decisions", "many outcomes of one"])
@pytest.mark.heavy
def test_four_times_the_entries_take_four_times_the_work(
    instance: Instance,
    authority: Authority,
    scope: Scope,
    monkeypatch: pytest.MonkeyPatch,
    decisions: int,
    outcomes: int,
) -> None:
    """Not sixteen times, as where something is looked for among all entries for each of them."""
    # As many pages as a longer chain has.
    monkeypatch.setattr(audited, "STRETCH", 10)
    live(instance, authority, decisions, outcomes)
    with counted(instance) as once:
        read, finding = check_chain(instance, scope.scope_id)
        assert (read, finding) == (decisions * (2 + outcomes), None)
    more = 3 * decisions if decisions > 1 else 0
    live(instance, authority, more)
    if not more:
        decision_id = rows_of(instance)[0]
        for _ in range(3 * (2 + outcomes)):
            instance.lifecycle().report(authority, OUTCOMES, decision_id, {"outcome_status": "succeeded"})
    with counted(instance) as fourfold:
        assert check_chain(instance, scope.scope_id) == (4 * read, None)
    assert once.steps > read / 5
    assert fourfold.steps < 5 * once.steps
    assert fourfold.statements < 5 * once.statements


@on_sqlite
@pytest.mark.parametrize(("decisions", "receipts"), [(25, 1), (1, 60)], ids=["many decisions", "many receipts of one"])
@pytest.mark.heavy
def test_four_times_the_held_decisions_or_receipts_take_four_times_the_work(
    instance: Instance,
    authority: Authority,
    scope: Scope,
    monkeypatch: pytest.MonkeyPatch,
    decisions: int,
    receipts: int,
) -> None:
    monkeypatch.setattr(audited, "STRETCH", 10)
    live_held(instance, authority, scope, decisions, receipts)
    with counted(instance) as once:
        read, finding = check_chain(instance, scope.scope_id)
    assert (read, finding) == (decisions * (2 + receipts), None)
    if decisions > 1:
        live_held(instance, authority, scope, 3 * decisions, receipts)
    else:
        decision_id = rows_of(instance)[0]
        for _ in range(3 * read):
            instance.lifecycle().report(authority, EXECUTIONS, decision_id, {"execution_status": "executed"})
    with counted(instance) as fourfold:
        assert check_chain(instance, scope.scope_id) == (4 * read, None)
    assert once.steps > read / 5
    assert fourfold.steps < 5 * once.steps
    assert fourfold.statements < 5 * once.statements


def test_a_ledger_without_reviews_is_asked_for_none(instance: Instance, authority: Authority, scope: Scope) -> None:
    live(instance, authority, 3)
    asked: list[str] = []

    def watch(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "reviews" in statement:
            asked.append(statement)

    event.listen(instance.ledger.store.engine, "before_cursor_execute", watch)
    assert check_chain(instance, scope.scope_id) == (9, None)
    event.remove(instance.ledger.store.engine, "before_cursor_execute", watch)
    # Once for a chain, whether it has rows too many: beyond either end, and in all.
    assert len(asked) == 3


def rows_of(instance: Instance) -> list[str]:
    with instance.ledger.store.read() as connection:
        return list(connection.execute(select(entries.c.decision_id).order_by(entries.c.position)).scalars())


@on_sqlite
def test_every_query_of_the_audit_finds_its_rows_by_an_index(instance: Instance, scope: Scope) -> None:
    """For each entry, that is; what stands beside the chain is read once, from one end to the other."""
    plans: dict[str, list[str]] = {}
    store = instance.ledger.store
    assert isinstance(store, SqliteLedgerStore)

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT"):
            plans[statement] = [row[3] for row in cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]

    event.listen(store.engine, "before_cursor_execute", explain)
    ids, digests = ["dec_1", "dec_2"], [bytes(32), bytes([1]) * 32]
    with instance.ledger.audited.snapshot(scope.scope_id) as seen:
        seen.head_at("chain", 5)
        seen.entries(5, 10, 1000)
        seen.searchable(5, 10)
        seen.claimed(digests)
        seen.latest(ids)
        list(seen.decisions(ids))
        list(seen.registered(ids))
        list(seen.entries_at([1, 2]))
        seen.erasures(ids)
        seen.outcome_dates(ids)
        seen.reviews.of(ids)
        seen.reviews.resolutions([1, 2])
        list(seen.reviews.receipts(ids))
        per_entry = len(plans)
        seen.claims(bytes(32), 5)
        seen.registrations(("a", b"1"), 5)
        seen.beyond(10)
        seen.count_claims(10)
        seen.reviews.count(10)
        seen.reviews.places("dec_1", 5)
        seen.stray_outcome()
        seen.miscounted()
    event.remove(store.engine, "before_cursor_execute", explain)
    assert per_entry == 13
    for statement, plan in list(plans.items())[:per_entry]:
        assert all(step.startswith(("SEARCH", "USE TEMP B-TREE")) for step in plan), (statement, plan)
        assert all("(scope_id=? AND " in step for step in plan if step.startswith("SEARCH")), (statement, plan)
    scans = [step for plan in plans.values() for step in plan if step.startswith("SCAN")]
    # Their own sub-queries, and no table.
    assert not [
        step for step in scans if step.split()[1] in ("entries", "claims", "decisions", "rulebooks", "reviews")
    ], scans


@pytest.mark.heavy
def test_a_ledger_in_use_is_never_found_broken(
    instance: Instance, authority: Authority, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer appends decisions, reports and erasures, new rulebooks among them, while the chain is checked."""
    monkeypatch.setattr(audited, "STRETCH", 4)
    monkeypatch.setattr(chains, "_STRETCH", 9)
    live(instance, authority, 3, outcomes=2)
    stop, failed = threading.Event(), []

    def write() -> None:
        gate, lifecycle = instance.gate(), instance.lifecycle()
        try:
            for number in itertools.count():
                if stop.is_set():
                    return
                live(instance, authority, 1, outcomes=2)
                body = sample_request()
                body["rulebook"]["version"] = f"2030-{number}"
                record = gate.decide(authority, body, request_id="req_1").record
                lifecycle.report(authority, OUTCOMES, record["decision_id"], {"outcome_status": "pending"})
                live_held(instance, authority, scope, 1, receipts=2)
                # Outcomes of decisions that the audit has passed already, or will still come to.
                ids = rows_of(instance)
                lifecycle.report(authority, OUTCOMES, ids[0], {"outcome_status": "failed"})
                erase(instance.ledger, record["decision_id"], "asked for", utc_now())
        except Exception as error:  # noqa: BLE001 - shown by the test's own thread
            failed.append(error)

    def goes_on() -> bool:
        return bool(failed) or instance.ledger.entries.head(scope.scope_id).size > sizes[-1]

    writer = threading.Thread(target=write)
    writer.start()
    sizes: list[int] = []
    try:
        for _ in range(size(6, 60)):
            read, finding = check_chain(instance, scope.scope_id)
            assert finding is None, finding
            sizes.append(read)
            # One thread may keep the other from running for the whole of a short audit.
            wait_until(goes_on)
    finally:
        stop.set()
        writer.join()
    assert failed == []
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert instance.ledger.entries.head(scope.scope_id).size > sizes[-1]


@on_sqlite
@pytest.mark.heavy
def test_several_processes_find_the_same_as_one(
    instance: Instance, authority: Authority, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "_STRETCH", 7)
    live(instance, authority, 10)
    second = instance.ledger.directory.create_scope("second", "unlimited", utc_now())
    scopes = [scope.scope_id, second.scope_id]
    told: list[int] = []
    whole, empty = check_chains(instance, scopes, processes=2, told=told.append)
    assert (whole.entries, whole.finding, empty.entries, empty.finding) == (30, None, 0, None)
    assert told[-1] == 30
    assert told == sorted(told)
    with instance.ledger.store.write() as connection:
        # The first of two, in stretches that are judged by different processes.
        for position in (16, 23):
            connection.execute(update(entries).where(entries.c.position == position).values(record_hash="0" * 64))
    in_two, _ = check_chains(instance, scopes, processes=2)
    in_one, _ = check_chains(instance, scopes, processes=1)
    assert (in_two.entries, in_two.finding) == (in_one.entries, in_one.finding)
    assert in_two.finding is not None
    assert in_two.finding.position == 16


@on_sqlite
@pytest.mark.heavy
def test_decisions_that_there_was_no_room_to_remember_are_read_again(
    instance: Instance, authority: Authority, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page is one entry, and nothing is held from one to the next."""
    monkeypatch.setattr("gate.instance.audit.stretch._HELD_BYTES", 1)
    monkeypatch.setattr("gate.instance.audit.registrations._HELD_BYTES", 1)
    monkeypatch.setattr("gate.instance.audit.stretch._PAGE_BYTES", 1)
    live(instance, authority, 5)
    assert check_chain(instance, scope.scope_id) == (15, None)
