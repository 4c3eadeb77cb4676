"""Copies of whole ledgers: between stores row by row, and page by page between SQLite files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy import insert, select

from gate.ledger import schema
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.stores.store import Store
from gate.ledger.tables import metadata

# Rows hold up to a few megabytes each; this many are in memory at a time.
_ROWS: Final = 32


def copy_to_file(store: Store, file: Path) -> None:
    """Writes every table, as of one moment, into an empty SQLite file. Nobody who writes meanwhile has to wait.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the ledger cannot be read.
        sqlite3.Error: The file cannot be written.
    """
    if isinstance(store, SqliteLedgerStore):
        copy_pages(store.database, file)
        return
    target = SqliteLedgerStore(file)
    try:
        schema.upgrade(target)
        copy_rows(store, target)
    finally:
        target.close()


def copy_rows(source: Store, target: Store) -> None:
    """Copies the rows of every table, as of one moment, into the same tables of another store, which are empty.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    with source.read() as reading, target.write() as writing:
        for table in metadata.sorted_tables:
            rows = reading.execution_options(yield_per=_ROWS).execute(select(table).order_by(*table.primary_key))
            for page in rows.mappings().partitions():
                writing.execute(insert(table), [dict(row) for row in page])


def copy_pages(source: Path, target: Path) -> None:
    """Copies a database in SQLite, as of one moment, over another file.

    Raises:
        sqlite3.Error: One cannot be read, or the other not written.
    """
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
        read.backup(written)


def is_empty(store: Store) -> bool:
    """Whether no table of a ledger has a row."""
    with store.read() as connection:
        return not any(connection.execute(select(table).limit(1)).first() for table in metadata.sorted_tables)
