"""What makes a guarded action happen at most once, kept on the caller's side: see `intents` for the protocol.

`SqliteStore` needs a local disk and nothing else. `SqlAlchemyStore`, in `gate.client.store.sqlalchemy`, keeps it in a
database of the caller's, with what the action does there in the same transaction where that is wanted.

    intents       the protocol: the states of an intent, and which write leads from one to the next
    statements    that protocol as SQL for both databases; each transition stands there once
    sqlite        a file of the guard's own
    sqlalchemy    tables in the caller's database
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
