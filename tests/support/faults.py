"""Faults in a live database, placed with the means of the database itself and taken away again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.stores.store import Store

# The SQLSTATE of an error that a program raises, and of a full disk.
RAISED: Final = "P0001"
DISK_FULL: Final = "53100"


def run(store: Store, *statements: str) -> None:
    """Runs statements in one transaction, however impatient the store is made."""
    with store.write(patience=10) as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@contextmanager
def refused(store: Store, event: str, table: str, *, code: str = RAISED) -> Iterator[None]:
    """The database refuses to insert into a table, or to update it."""
    if isinstance(store, SqliteLedgerStore):
        run(store, f"CREATE TRIGGER fault BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, 'no room'); END")
    else:
        run(
            store,
            _function(f"RAISE EXCEPTION 'no room' USING ERRCODE = '{code}'"),
            f"CREATE TRIGGER fault BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION fault()",
        )
    try:
        yield
    finally:
        run(store, "DROP TRIGGER fault" if isinstance(store, SqliteLedgerStore) else "DROP FUNCTION fault CASCADE")


@contextmanager
def refused_at_commit(store: Store, table: str) -> Iterator[None]:
    """The database takes every row for a table, and refuses the commit."""
    if isinstance(store, SqliteLedgerStore):
        run(
            store,
            "CREATE TABLE fault (scope_id REFERENCES scopes DEFERRABLE INITIALLY DEFERRED)",
            _FAULT_AT_COMMIT.replace("<table>", table),
        )
    else:
        run(
            store,
            _function("RAISE EXCEPTION 'no room'"),
            f"CREATE CONSTRAINT TRIGGER fault AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED "
            f"FOR EACH ROW EXECUTE FUNCTION fault()",
        )
    try:
        yield
    finally:
        if isinstance(store, SqliteLedgerStore):
            run(store, "DROP TRIGGER fault_at_commit", "DROP TABLE fault")
        else:
            run(store, "DROP FUNCTION fault CASCADE")


@contextmanager
def table_gone(store: Store, table: str) -> Iterator[None]:
    """A table is not there."""
    run(store, f"ALTER TABLE {table} RENAME TO gone")
    try:
        yield
    finally:
        run(store, f"ALTER TABLE gone RENAME TO {table}")


@contextmanager
def keyless(store: Store, table: str) -> Iterator[None]:
    """A table has neither a primary key nor any other constraint."""
    run(store, f"ALTER TABLE {table} RENAME TO kept", _COPY.replace("<table>", table))
    try:
        yield
    finally:
        run(store, f"DROP TABLE {table}", f"ALTER TABLE kept RENAME TO {table}")


_FAULT_AT_COMMIT: Final = (
    "CREATE TRIGGER fault_at_commit AFTER INSERT ON <table> BEGIN INSERT INTO fault VALUES ('nobody'); END"
)
_COPY: Final = "CREATE TABLE <table> AS SELECT * FROM kept"


def _function(body: str) -> str:
    return f"CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body}; END$$"
