"""The guard's store. It runs on the caller's side, and makes sure that a guarded action happens at most once.

`SqliteStore` needs only a local disk. `SqlAlchemyStore`, in `gate.client.store.sqlalchemy`, uses tables in your own
database, and can share a transaction with the action.

    intents       the protocol: the states of an intent, and the writes between them
    statements    the protocol as SQL for both databases; each transition is defined there once
    sqlite        the store in a file
    sqlalchemy    the store in tables of the caller's database
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gate.client.store.intents import Intent, Report, State, Store

# Callers that keep intents elsewhere, or guard nothing, need not load SQLite.
if TYPE_CHECKING:
    from gate.client.store.sqlite import SqliteStore

__all__ = ["Intent", "Report", "SqliteStore", "State", "Store"]


def __getattr__(name: str) -> object:
    if name != "SqliteStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gate.client.store.sqlite import SqliteStore

    return SqliteStore
