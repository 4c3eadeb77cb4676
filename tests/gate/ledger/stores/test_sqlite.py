"""The SQLite store: durable settings, exclusive writers, a bounded WAL, private files."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert

from gate.errors import OperatorError, ServiceUnavailable
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import Scope
from gate.ledger.chain import writer
from gate.ledger.stores import sqlite
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.stores.store import Statement
from gate.ledger.tables import rulebooks
from tests.support.samples import NOW, sqlite_file


@pytest.fixture
def database_url() -> None:
    """SQLite alone."""


def test_every_connection_syncs_every_commit(ledger: Ledger) -> None:
    for open_ in (ledger.store.read, ledger.store.write):
        with open_() as connection:
            found = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "wal_autocheckpoint", "foreign_keys")
            }
        assert found == {"journal_mode": "wal", "synchronous": 2, "wal_autocheckpoint": 2000, "foreign_keys": 1}


def test_a_writer_locks_the_database_before_it_reads(ledger: Ledger) -> None:
    """BEGIN IMMEDIATE: a deferred transaction would let two writers read the same head."""
    other = SqliteLedgerStore(sqlite_file(ledger))
    with ledger.store.write():
        connection = other.engine.raw_connection()
        connection.cursor().execute("PRAGMA busy_timeout=0")
        with pytest.raises(Exception, match="locked"):
            connection.cursor().execute("BEGIN IMMEDIATE")
        connection.close()
    other.close()


def test_writers_in_threads_and_through_several_openings_take_turns(ledger: Ledger) -> None:
    inside, most = 0, 0
    guard = threading.Lock()
    second = SqliteLedgerStore(sqlite_file(ledger))

    def write(where: SqliteLedgerStore) -> None:
        nonlocal inside, most
        for _ in range(10):
            with where.write():
                with guard:
                    inside += 1
                    most = max(most, inside)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=write, args=(where,)) for where in (ledger.store, second) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    second.close()


def test_a_writer_that_gets_no_turn_is_told_so(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WRITE_TIMEOUT", 0.05)
    lock = os.open(f"{sqlite_file(ledger)}.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(ServiceUnavailable, match="another process holds the lock of the ledger"), ledger.store.write():
        pass
    os.close(lock)
    with ledger.store.write():
        pass


def test_a_long_wal_is_copied_into_the_database_and_used_again(ledger: Ledger) -> None:
    wal = sqlite_file(ledger).with_name("ledger.db-wal")
    row = {"rulebook_id": "r", "version": "v", "hash": "h", "registration": b"", "body": b"x" * 1_000_000}
    for transaction in range(8):
        with ledger.store.write() as connection:
            for number in range(6):
                name = f"{transaction}-{number}"
                connection.execute(insert(rulebooks).values(**row | {"scope_id": name}))
    assert wal.stat().st_size < 30_000_000
    assert sqlite_file(ledger).stat().st_size > 30_000_000


def test_files_are_readable_by_their_owner_alone(ledger: Ledger, scope: Scope) -> None:
    for file in sqlite_file(ledger).parent.iterdir():
        if file.is_file():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "sqlite://", "sqlite:///:memory:", "mysql://h/d", "/var/ledger.db"],
)
def test_a_url_that_names_no_ledger_is_refused(url: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        open_ledger(url)
    assert refusal.value.code == "DATABASE_URL_INVALID"
    assert "secret" not in refusal.value.message


@pytest.mark.parametrize(("file", "create"), [("nowhere/ledger.db", True), ("ledger.db", False)])
def test_a_ledger_that_is_not_there_is_refused_and_not_made(tmp_path: Path, file: str, create: bool) -> None:
    with pytest.raises(OperatorError) as refusal:
        open_ledger(f"sqlite:///{tmp_path}/{file}", create=create)
    assert refusal.value.code == "DATABASE_UNREACHABLE"
    assert list(tmp_path.iterdir()) == []


def test_nobody_waits_to_note_a_use(ledger: Ledger, key: str) -> None:
    with ledger.store.write():
        assert ledger.directory.authenticate(key, NOW).plan == "unlimited"
    assert ledger.directory.keys()[0].last_used_at is None


def test_what_every_append_asks_is_found_by_index(ledger: Ledger) -> None:
    statements = [found for found in vars(writer).values() if isinstance(found, Statement)]
    searched = 0
    with ledger.store.read() as connection:
        for statement in statements:
            sql, _ = statement.on(connection.dialect)
            if not sql.startswith("INSERT"):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", (None,) * sql.count("?"))
                steps = [row.detail for row in plan]
                assert steps, sql
                assert all(step.startswith("SEARCH") for step in steps), (sql, steps)
                searched += 1
    assert searched == 6


def test_the_reports_of_a_decision_are_found_without_walking_the_scope(ledger: Ledger, scope: Scope) -> None:
    asked: list[tuple[str, Any]] = []
    event.listen(ledger.store.engine, "before_cursor_execute", lambda *arguments: asked.append(arguments[2:4]))
    assert ledger.entries.reports(scope.scope_id, "dec_1", "execution", limit=20, room=1000, before=90) == ([], False)
    ((sql, parameters),) = [found for found in asked if "entry_type" in found[0]]
    with ledger.store.read() as connection:
        plan = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    assert any("entries_by_decision (scope_id=? AND decision_id=?)" in step for step in plan), plan
    assert not any(step.endswith("sqlite_autoindex_entries_1 (scope_id=?)") for step in plan), plan


def test_a_ledger_that_is_stuck_is_not_waited_for_by_everybody(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = os.open(f"{sqlite_file(ledger)}.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    monkeypatch.setattr(sqlite, "WRITE_TIMEOUT", 0.05)
    with pytest.raises(ServiceUnavailable, match="another process holds the lock of the ledger"), ledger.store.write():
        pass
    monkeypatch.setattr(sqlite, "WRITE_TIMEOUT", 600)
    with pytest.raises(ServiceUnavailable, match="another process holds the lock of the ledger"), ledger.store.write():
        pass
    os.close(lock)
    with ledger.store.write():
        pass
