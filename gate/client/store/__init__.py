"""What makes a guarded action happen at most once, kept on the caller's side: see `intents` for the protocol.

`SqliteStore` needs a local disk and nothing else. `SqlAlchemyStore`, in `gate.client.store.sqlalchemy`, keeps it in a
database of the caller's, with what the action does there in the same transaction where that is wanted.
"""

from __future__ import annotations

from gate.client.store.intents import Intent, Report, State, Store
from gate.client.store.sqlite import SqliteStore

__all__ = ["Intent", "Report", "SqliteStore", "State", "Store"]
