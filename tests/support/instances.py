"""An instance that the tests of a process use one after another, each with an empty ledger of its own.

What takes long stays: the files, the database connections, and the statements that SQLAlchemy compiled for them. All
that remembers anything above the stores is made anew for each test, and the tables are emptied. Where the test before
touched anything else, such as a key file, the schema or the settings, there is a new instance instead.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from api.app import COUNTS_FILE
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger import Ledger
from gate.ledger.access.limits import RateLimiter
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.tables import limits_metadata, metadata

# Files of which only the place is kept in mind: every commit writes to them.
_LEDGER = "ledger.db"

# Of the ledger and of the limits.
_EMPTYING = tuple(
    [f"DELETE FROM {table.name}" for table in reversed(tables.sorted_tables)]  # noqa: S608 - the product's names
    for tables in (metadata, limits_metadata)
)


class InstanceInTurn:
    """Hands out an instance to one test at a time."""

    def __init__(self, make_home: Callable[[], Path]) -> None:
        """Takes what lays out the home directory of a fresh instance, each time another one."""
        self._make_home = make_home
        self._kept: _Kept | None = None

    def take(self) -> Instance:
        """The instance, with an empty ledger. It is not to be closed; `close` is what closes it."""
        # Only now: what the test before had patched is as it was again.
        if self._kept is None or not self._kept.emptied():
            self.close()
            self._kept = _Kept(self._make_home())
        return self._kept.instance()

    def close(self) -> None:
        """Closes it."""
        if self._kept is not None:
            self._kept.opened.close()
        self._kept = None


class _Kept:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._environment = _environment()
        self.opened = open_instance(load_settings(home))
        assert isinstance(self.opened.ledger.store, SqliteLedgerStore)
        limits = self.opened.limiter._store
        assert isinstance(limits, SqliteLedgerStore)
        self._stores = (self.opened.ledger.store, limits)
        for store in self._stores:
            # Makes its WAL.
            store.probe()
        self._found = self._state()

    def instance(self) -> Instance:
        """The instance, as one that was opened just now."""
        ledger, limits = self._stores
        instance = Instance(self.opened.settings, Ledger(ledger))
        instance.__dict__["limiter"] = RateLimiter(limits, self.opened.limiter._reopen)
        return instance

    def emptied(self) -> bool:
        """Whether it is as it was at first, after its tables were emptied."""
        if any(store._closed or store._stuck or store._turn.locked() for store in self._stores):
            return False
        # The counts of clients without a key begin anew, as for a service that was started now.
        (self._home / COUNTS_FILE).unlink(missing_ok=True)
        if self._environment != _environment() or self._state() != self._found:
            return False
        for store, statements in zip(self._stores, _EMPTYING, strict=True):
            with store.write() as connection:
                # Without SQLAlchemy, which would take longer than the database.
                found = connection.connection.driver_connection
                assert isinstance(found, sqlite3.Connection)
                for statement in statements:
                    found.execute(statement)
        return True

    def _state(self) -> object:
        schemas = []
        for store in self._stores:
            with store.read() as connection:
                schemas.append(connection.exec_driver_sql("PRAGMA schema_version").scalar_one())
                if store is self._stores[0]:
                    revisions = connection.exec_driver_sql("SELECT version_num FROM alembic_version").all()
        return dict(_files(self._home)), schemas, [row[0] for row in revisions]


def _files(directory: str | Path) -> Iterator[tuple[str, object]]:
    """All that is in a directory, at any depth."""
    # In half the time that pathlib takes.
    with os.scandir(directory) as entries:
        for entry in entries:
            found = entry.stat()
            place = (found.st_ino, found.st_mode)
            changes = () if entry.name.startswith(_LEDGER) else (found.st_size, found.st_mtime_ns)
            yield entry.path, (*place, *changes)
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)


def _environment() -> object:
    return {name: value for name, value in os.environ.items() if name.upper().startswith("GATE_")}
