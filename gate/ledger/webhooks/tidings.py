"""What webhooks tell once, of things that no transaction of the ledger makes: checkpoints in their log, chains that a
check finds broken, anomalies that a report finds.

    tidings.scopes("anomaly.alert")                   the scopes that want to hear
    tidings.tell_once(scope_id, event, key, now)      whether it is told now, for the first time

One transaction stores the event and the mark that it was sent. A process that dies before the transaction sends the
event again later.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, delete, insert, select

from gate.ids import timestamp
from gate.ledger.chain.outbox import tell
from gate.ledger.stores.store import Store
from gate.ledger.tables import chain_heads, webhook_told
from gate.records.webhooks.events import Event
from gate.records.webhooks.types import mask_of


class Tidings:
    """The one-time events of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def scopes(self, event_type: str) -> dict[str, str]:
        """The ids of the scopes with an endpoint for a type of event, by the ids of their chains.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            rows = connection.execute(_SUBSCRIBED).all()
        return {row.chain_id: row.scope_id for row in rows if row.webhook_events & mask_of([event_type])}

    def tell_once(self, scope_id: str, event: Event, key: str, now: datetime, *, size: int = 0) -> bool:
        """Puts an event into the outbox, unless it was sent before or nobody subscribes to it.

        Args:
            scope_id: The scope.
            event: The event.
            key: What tells it from others of its type.
            now: The current moment.
            size: Its size by now. The event is sent again when it is larger.

        Returns:
            Whether the event was sent now.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        of = {"scope": scope_id, "type": event.type, "key": key}
        with self._store.read() as connection:
            if _is_told(connection.execute(_TOLD, of).scalar_one_or_none(), size):
                return False
        with self._store.write() as connection:
            # Under the lock of the scope's head, so that of two processes the second sees what the first told.
            connection.execute(_LOCK_HEAD, {"scope": scope_id})
            if _is_told(connection.execute(_TOLD, of).scalar_one_or_none(), size):
                return False
            if not tell(connection, scope_id, [(event, None)], now):
                return False
            connection.execute(_FORGET, of)
            told = {"scope_id": scope_id, "type": event.type, "key": key, "size": size, "told_at": timestamp(now)}
            connection.execute(insert(webhook_told).values(**told))
        return True


def _is_told(size: int | None, now: int) -> bool:
    return size is not None and size >= now


_SUBSCRIBED: Final = select(chain_heads.c.scope_id, chain_heads.c.chain_id, chain_heads.c.webhook_events).where(
    chain_heads.c.webhook_events != 0
)
_LOCK_HEAD: Final = select(chain_heads.c.scope_id).where(chain_heads.c.scope_id == bindparam("scope")).with_for_update()
_ITSELF: Final = (
    webhook_told.c.scope_id == bindparam("scope"),
    webhook_told.c.type == bindparam("type"),
    webhook_told.c.key == bindparam("key"),
)
_TOLD: Final = select(webhook_told.c.size).where(*_ITSELF)
_FORGET: Final = delete(webhook_told).where(*_ITSELF)
