"""The ledger: scopes and keys, registered rulebooks, and the chain of everything that was decided and reported.

    ledger = open_ledger("sqlite:////var/lib/gate/ledger.db")
    ledger.entries.append(entry)      # returns once the entry is durable

`open_ledger` is the one way in for the server, the command line and tests.
"""

from __future__ import annotations

from typing import Final

from gate.errors import OperatorError
from gate.ledger import schema
from gate.ledger.entries import Entries
from gate.ledger.rulebooks import RulebookRegistry
from gate.ledger.scopes import Directory
from gate.ledger.store import SqliteStore, open_store


class Ledger:
    """An open ledger.

    Attributes:
        directory: Scopes and API keys.
        rulebooks: Registered rulebooks.
        entries: The chains' entries.
        store: The database beneath them.
    """

    def __init__(self, store: SqliteStore) -> None:
        """Works on a store whose schema is current."""
        self.store: Final = store
        self.directory: Final = Directory(store)
        self.rulebooks: Final = RulebookRegistry(store)
        self.entries: Final = Entries(store)

    def close(self) -> None:
        """Closes every connection."""
        self.store.close()


def open_ledger(database_url: str, *, create: bool = False) -> Ledger:
    """Opens a ledger.

    Args:
        database_url: For example `sqlite:////absolute/path/ledger.db`.
        create: Whether to create the database, and its tables where it is empty.

    Raises:
        OperatorError: DATABASE_URL_INVALID, DATABASE_UNREACHABLE, or LEDGER_SCHEMA_UNFIT where the tables are not those
            of this release.
    """
    store = open_store(database_url, create=create)
    found = schema.revision(store)
    if found is None and create:
        schema.upgrade(store)
        found = schema.revision(store)
    if found != schema.HEAD:
        store.close()
        raise OperatorError(
            "LEDGER_SCHEMA_UNFIT",
            f"The ledger has schema {found or 'none'} and this release needs {schema.HEAD}; "
            f"use the release that made it, or create the ledger first.",
        )
    return Ledger(store)
