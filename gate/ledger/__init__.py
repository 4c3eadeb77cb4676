"""The ledger: scopes and keys, registered rulebooks, and the chain of everything that was decided and reported.

    ledger = open_ledger("sqlite:////var/lib/gate/ledger.db")
    ledger.entries.append(entry)      # returns once the entry is durable

`open_ledger` is the one way in for the server, the command line and tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from gate.errors import OperatorError
from gate.ledger import schema
from gate.ledger.entries import Entries
from gate.ledger.operator_log import OperatorLog
from gate.ledger.rulebooks import RulebookRegistry
from gate.ledger.scopes import Directory
from gate.ledger.sqlite import SqliteStore
from gate.ledger.store import Store


class Ledger:
    """An open ledger.

    Attributes:
        directory: Scopes and API keys.
        rulebooks: Registered rulebooks.
        entries: The chains' entries.
        operator_log: What operators did.
        store: The database beneath them.
    """

    def __init__(self, store: Store) -> None:
        """Works on a store whose schema is current."""
        self.store: Final = store
        self.directory: Final = Directory(store)
        self.rulebooks: Final = RulebookRegistry(store)
        self.entries: Final = Entries(store)
        self.operator_log: Final = OperatorLog(store)

    def close(self) -> None:
        """Closes every connection."""
        self.store.close()


def open_ledger(database_url: str, *, create: bool = False, upgrade: bool = False) -> Ledger:
    """Opens a ledger.

    Args:
        database_url: `sqlite:////absolute/path/ledger.db` or `postgresql://user:password@host/database`.
        create: Whether to create the database file, and the tables where there are none.
        upgrade: Whether to bring older tables to those of this release.

    Raises:
        OperatorError: DATABASE_URL_INVALID, DATABASE_UNREACHABLE, DATABASE_NOT_DURABLE, LEDGER_OUTDATED where the
            tables are those of an older release, or LEDGER_SCHEMA_UNFIT where there are none or those of a newer one.
    """
    store = open_store(database_url, create=create)
    try:
        found = schema.revision(store)
        if (found is None and create) or (found in schema.OLDER and upgrade):
            schema.upgrade(store)
            found = schema.revision(store)
        if found in schema.OLDER:
            raise OperatorError(
                "LEDGER_OUTDATED",
                f"The ledger has schema {found} and this release needs {schema.HEAD}; stop the servers, make a backup "
                f"with the release that made it, and run `gate db upgrade`.",
            )
        if found != schema.HEAD:
            raise OperatorError(
                "LEDGER_SCHEMA_UNFIT",
                f"The ledger has schema {found or 'none'} and this release needs {schema.HEAD}; "
                f"use the release that made it, or create the ledger first.",
            )
    except BaseException:
        store.close()
        raise
    return Ledger(store)


def open_store(database_url: str, *, create: bool = False) -> Store:
    """The store that a database URL names, whatever tables it has.

    Raises:
        OperatorError: DATABASE_URL_INVALID, DATABASE_UNREACHABLE or DATABASE_NOT_DURABLE.
    """
    try:
        url = make_url(database_url)
    except (SQLAlchemyError, ValueError) as error:
        # Not the library's words: they repeat the URL, with a password that may be in it.
        raise OperatorError(
            "DATABASE_URL_INVALID",
            "The database URL cannot be read; write sqlite:////absolute/path/ledger.db or "
            "postgresql://user:password@host/database.",
        ) from error
    backend = url.get_backend_name()
    if backend == "postgresql":
        # Loaded where it is used: its driver takes a while to import.
        from gate.ledger.postgres import PostgresStore

        store = PostgresStore(url)
        store.require_durable()
        return store
    if backend != "sqlite" or not url.database or url.database == ":memory:":
        raise OperatorError(
            "DATABASE_URL_INVALID",
            f"The database URL {url.render_as_string()} names neither a SQLite file nor a PostgreSQL database; write "
            f"sqlite:////absolute/path/ledger.db or postgresql://user:password@host/database.",
        )
    try:
        return SqliteStore(Path(url.database), create=create)
    except OSError as error:
        raise OperatorError(
            "DATABASE_UNREACHABLE",
            f"The ledger {url.database} cannot be opened: {error.strerror}. "
            f"If it was lost, restore it from a backup; an instance gets no second ledger.",
        ) from error
