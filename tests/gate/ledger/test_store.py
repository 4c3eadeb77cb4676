"""The store: durable settings, exclusive writers, nothing half written, foreign errors translated."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, select, text

from gate.errors import OperatorError, ServiceUnavailable
from gate.ledger import Ledger, open_ledger, schema, store
from gate.ledger.scopes import Scope
from gate.ledger.store import SqliteStore
from gate.ledger.tables import chain_heads, metadata, rulebooks


def rows(ledger: Ledger) -> int:
    with ledger.store.read() as connection:
        return len(connection.execute(select(chain_heads)).all())


def test_every_connection_syncs_every_commit(ledger: Ledger) -> None:
    for open_ in (ledger.store.read, ledger.store.write):
        with open_() as connection:
            found = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "wal_autocheckpoint", "foreign_keys")
            }
        assert found == {"journal_mode": "wal", "synchronous": 2, "wal_autocheckpoint": 4096, "foreign_keys": 1}


def test_a_block_that_fails_writes_nothing(ledger: Ledger) -> None:
    before = rows(ledger)

    def write_and_fail() -> None:
        with ledger.store.write() as connection:
            connection.execute(insert(chain_heads).values(scope_id="s", chain_id="c", chain_size=0))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert rows(ledger) == before
    with ledger.store.write() as connection:
        connection.execute(insert(chain_heads).values(scope_id="s", chain_id="c", chain_size=0))
    assert rows(ledger) == before + 1


def test_a_writer_locks_the_database_before_it_reads(ledger: Ledger) -> None:
    """BEGIN IMMEDIATE: a deferred transaction would let two writers read the same head."""
    other = SqliteStore(ledger.store.database)
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
    second = SqliteStore(ledger.store.database)

    def write(where: SqliteStore) -> None:
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
    monkeypatch.setattr(store, "WRITE_TIMEOUT", 0.05)
    lock = os.open(f"{ledger.store.database}.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(ServiceUnavailable, match="another process holds the ledger"), ledger.store.write():
        pass
    os.close(lock)
    with ledger.store.write():
        pass


def test_a_long_wal_is_copied_into_the_database_and_used_again(ledger: Ledger) -> None:
    wal = ledger.store.database.with_name("ledger.db-wal")
    row = {"rulebook_id": "r", "version": "v", "hash": "h", "registration": b"", "body": b"x" * 1_000_000}
    for transaction in range(8):
        with ledger.store.write() as connection:
            for number in range(6):
                name = f"{transaction}-{number}"
                connection.execute(insert(rulebooks).values(**row | {"scope_id": name}))
    assert wal.stat().st_size < 30_000_000
    assert ledger.store.database.stat().st_size > 30_000_000


def test_database_errors_become_the_products_own_and_quote_no_values(ledger: Ledger) -> None:
    with pytest.raises(ServiceUnavailable) as refusal, ledger.store.read() as connection:
        connection.execute(text("SELECT * FROM nowhere WHERE secret = :s"), {"s": "hunter2"})
    assert refusal.value.code == "SVC_STORAGE_UNAVAILABLE"
    assert "nowhere" in refusal.value.message
    assert "hunter2" not in str(refusal.value)


def test_files_are_readable_by_their_owner_alone(ledger: Ledger, scope: Scope) -> None:
    for file in ledger.store.database.parent.iterdir():
        if file.is_file():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "sqlite://", "sqlite:///:memory:", "postgresql://u:secret@h/d", "mysql://h/d", "/var/ledger.db"],
)
def test_a_url_that_names_no_sqlite_file_is_refused(url: str) -> None:
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


def test_the_migrations_make_exactly_the_tables_that_the_code_uses(ledger: Ledger) -> None:
    with ledger.store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_an_empty_or_newer_ledger_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(OperatorError, match="schema none"):
        open_ledger(f"sqlite:///{tmp_path}/empty.db")
    with ledger.store.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(OperatorError, match="schema 9999") as refusal:
        open_ledger(f"sqlite:///{ledger.store.database}")
    assert refusal.value.code == "LEDGER_SCHEMA_UNFIT"
    assert schema.HEAD in refusal.value.message
