"""The outbox of webhooks: events written in the transaction of what they tell.

    outbox.add(scope_id, seq, entry.event, position)   by the writer, for the entries of one group
    tell(connection, scope_id, [(event, position)], now)    by every other transaction

An event's number comes from the scope's locked head. So numbers are given in the order of commits, and a reader that
has seen one has seen every smaller one. A scope without endpoints writes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, insert, select, update

from gate.clock import new_id, utc_now
from gate.ids import timestamp
from gate.ledger.stores.store import Statement
from gate.ledger.tables import chain_heads, webhook_events
from gate.records.webhooks.events import Event, event_body
from gate.records.webhooks.types import wants


class Outbox:
    """The events of one group of appends, whose heads are locked.

    Attributes:
        rows: What `INSERT_EVENT` has to write.
    """

    def __init__(self) -> None:
        """Begins without events."""
        self.rows: list[dict[str, object]] = []

    def add(self, scope_id: str, seq: int, event: Event, position: int, **more: object) -> None:
        """Adds an event.

        Args:
            scope_id: The scope.
            seq: Its number, which comes from the locked head.
            event: The event.
            position: The chain position of the entry that it is about.
            more: Further members of the event's data, as `event_body` takes them.
        """
        self.rows.append(_row(scope_id, seq, event, utc_now(), chain_position=position, **more))


def tell(
    connection: Connection, scope_id: str, events: Iterable[tuple[Event, int | None]], now: datetime
) -> list[Event]:
    """Writes those events that the scope's endpoints subscribe to, in the transaction of what they tell.

    It locks the scope's head.

    Args:
        connection: The transaction.
        scope_id: The scope.
        events: Each event, with the chain position of its entry where it has one.
        now: The current moment.

    Returns:
        The events that were written.
    """
    offered = list(events)
    head = connection.execute(_LOCK_EVENTS, {"scope": scope_id}).one_or_none() if offered else None
    if head is None or not head.webhook_events:
        return []
    wanted = [(event, position) for event, position in offered if wants(head.webhook_events, event.type)]
    rows = [
        _row(scope_id, head.event_seq + number, event, now, chain_position=position)
        for number, (event, position) in enumerate(wanted, start=1)
    ]
    if rows:
        connection.execute(insert(webhook_events), rows)
        last = {"event_seq": head.event_seq + len(rows)}
        connection.execute(update(chain_heads).where(chain_heads.c.scope_id == scope_id).values(**last))
    return [event for event, _ in wanted]


def _row(scope_id: str, seq: int, event: Event, now: datetime, **more: object) -> dict[str, object]:
    at = timestamp(now)
    return {
        "scope_id": scope_id,
        "seq": seq,
        "event_id": new_id("evt", now),
        "type": event.type,
        "subject": event.subject,
        "body": event_body(event, at, **more),
        "created_at": at,
    }


INSERT_EVENT: Final = Statement(insert(webhook_events))
"""Writes events; the head, which is moved in the same transaction, gets the number of the last one."""
_LOCK_EVENTS: Final = (
    select(chain_heads.c.webhook_events, chain_heads.c.event_seq)
    .where(chain_heads.c.scope_id == bindparam("scope"))
    .with_for_update()
)
