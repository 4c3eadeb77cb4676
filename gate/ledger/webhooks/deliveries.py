"""The outbox as an endpoint has to be sent it, and what came of each try.

    for endpoint in deliveries.due(now): ...           those that have something to be sent
    page = deliveries.page(endpoint)                   what waits for another try, and what is new
    deliveries.keep(endpoint, page.last, tried, now)   the cursor and the failures, in one transaction

A delivered event leaves no row, because the cursor covers it. If a process dies before `keep`, the next one sends the
events of the round again, with the same ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, delete, exists, insert, or_, select, update

from gate.ids import timestamp
from gate.ledger.stores.store import Store
from gate.ledger.tables import webhook_deliveries, webhook_endpoints, webhook_events
from gate.ledger.webhooks.endpoints import ENDPOINTS, GONE, Endpoint, disable, endpoint_of, retry_now
from gate.records.webhooks.types import mask_of

PAGE: Final = 200
"""How many new events of an endpoint are looked at in one round."""

MAX_PENDING: Final = 1000
"""While so many events of an endpoint wait for another try, newer ones stay in the outbox."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event on its way to an endpoint.

    Attributes:
        seq: The event's number in its scope.
        event_id: Its id.
        type: Its type.
        subject: The id of what it is about.
        body: The bytes to send.
        created_at: UTC timestamp.
        state: pending or dead.
        attempts: How many tries failed.
        next_at: When the next one is due; None at once, or as soon as nothing of the subject is before it.
        last_at: When the last try was; UTC timestamp, or None.
        last_status: The HTTP status that it was answered with, or None.
        last_error: Why it failed, as a sentence, or None.
        stored: Whether the ledger has a row of it, in addition to the event's row.
    """

    seq: int
    event_id: str
    type: str
    subject: str
    body: bytes
    created_at: str
    state: str = "pending"
    attempts: int = 0
    next_at: str | None = None
    last_at: str | None = None
    last_status: int | None = None
    last_error: str | None = None
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """The events that may be sent to an endpoint now.

    Attributes:
        pending: What failed before, or waits behind such a one; by number.
        fresh: The new events, by number; only the types that it subscribes to.
        last: The number of the last event that was looked at.
    """

    pending: list[Delivery]
    fresh: list[Delivery]
    last: int


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a round.

    Attributes:
        delivered: The deliveries that the endpoint took.
        kept: Those that it did not take, and new ones that wait behind them, as they are to be stored.
        gone: Whether it answered that it is gone.
        recovered: Whether it took something after everything before had failed.
    """

    delivered: list[Delivery]
    kept: list[Delivery]
    gone: bool = False
    recovered: bool = False


class Deliveries:
    """The deliveries to the endpoints of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def due(self, now: datetime) -> list[Endpoint]:
        """The active endpoints that have something new or something due.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            return [endpoint_of(row) for row in connection.execute(_DUE, {"now": timestamp(now)})]

    def page(self, endpoint: Endpoint) -> Page:
        """The events that may be sent to an endpoint now.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        of = {"scope": endpoint.scope_id, "endpoint": endpoint.endpoint_id, "cursor": endpoint.cursor}
        with self._store.read() as connection:
            pending = [replace(Delivery(*row), stored=True) for row in connection.execute(PENDING, of)]
            rows = [] if len(pending) >= MAX_PENDING else connection.execute(_FRESH, of).all()
        fresh = [Delivery(*row) for row in rows if mask_of([row.type]) & endpoint.events]
        return Page(pending, fresh, rows[-1].seq if rows else endpoint.cursor)

    def keep(self, endpoint: Endpoint, last: int, tried: Tried, now: datetime) -> bool:
        """Keeps what came of a round.

        Args:
            endpoint: The endpoint, as it was when the round began.
            last: The number of the last event that the round looked at.
            tried: What came of it.
            now: The current moment.

        Returns:
            Whether it was kept; not where the endpoint was removed, or another process delivers to it.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        mine = {"scope": endpoint.scope_id, "endpoint": endpoint.endpoint_id}
        changed = [{**mine, "number": of.seq} for of in (*tried.delivered, *tried.kept) if of.stored]
        moved: dict[str, object] = {"cursor": last}
        if tried.delivered:
            moved["delivered_at"] = timestamp(now)
        with self._store.write() as connection:
            # Only from where this round began: the cursor of a second process that delivers is not moved back.
            if not connection.execute(_MOVE.values(**moved), {**mine, "began": endpoint.cursor}).rowcount:
                return False
            if changed:
                connection.execute(_DELETE, changed)
            if tried.kept:
                connection.execute(insert(webhook_deliveries), [_row(endpoint, of) for of in tried.kept])
            if tried.recovered:
                retry_now(connection, endpoint, now)
            if tried.gone:
                disable(connection, endpoint, GONE, now)
        return True


def failed(delivery: Delivery, status: int | None, error: str, next_at: datetime | None, now: datetime) -> Delivery:
    """A delivery after a failed try.

    Args:
        delivery: The delivery as it was tried.
        status: The HTTP status of the answer, or None.
        error: Why it failed, as a sentence.
        next_at: When it is tried again; None where it is dead.
        now: When it failed.
    """
    return replace(
        delivery,
        state="dead" if next_at is None else "pending",
        attempts=delivery.attempts + 1,
        next_at=None if next_at is None else timestamp(next_at),
        last_at=timestamp(now),
        last_status=status,
        last_error=error,
    )


def _row(endpoint: Endpoint, delivery: Delivery) -> dict[str, object]:
    kept = {name: getattr(delivery, name) for name in _STATE}
    return {"scope_id": endpoint.scope_id, "endpoint_id": endpoint.endpoint_id, **kept}


_STATE: Final = ("seq", "subject", "state", "attempts", "next_at", "last_at", "last_status", "last_error")
_EVENT: Final = tuple(webhook_events.c[name] for name in ("seq", "event_id", "type", "subject", "body", "created_at"))
_TRIED: Final = tuple(
    webhook_deliveries.c[name] for name in ("state", "attempts", "next_at", "last_at", "last_status", "last_error")
)
DELIVERIES: Final = (
    select(*_EVENT, *_TRIED)
    .join(
        webhook_deliveries,
        (webhook_deliveries.c.scope_id == webhook_events.c.scope_id)
        & (webhook_deliveries.c.seq == webhook_events.c.seq),
    )
    .where(
        webhook_deliveries.c.scope_id == bindparam("scope"), webhook_deliveries.c.endpoint_id == bindparam("endpoint")
    )
    .order_by(webhook_deliveries.c.seq)
)
"""The deliveries of an endpoint, with the members of `Delivery` in their order."""

# A page can make every event of it wait.
PENDING: Final = DELIVERIES.where(webhook_deliveries.c.state == "pending").limit(MAX_PENDING + PAGE)
_FRESH: Final = (
    select(*_EVENT)
    .where(webhook_events.c.scope_id == bindparam("scope"), webhook_events.c.seq > bindparam("cursor"))
    .order_by(webhook_events.c.seq)
    .limit(PAGE)
)
_MOVE: Final = update(webhook_endpoints).where(
    webhook_endpoints.c.scope_id == bindparam("scope"),
    webhook_endpoints.c.endpoint_id == bindparam("endpoint"),
    webhook_endpoints.c.cursor == bindparam("began"),
)
_DELETE: Final = delete(webhook_deliveries).where(
    webhook_deliveries.c.scope_id == bindparam("scope"),
    webhook_deliveries.c.endpoint_id == bindparam("endpoint"),
    webhook_deliveries.c.seq == bindparam("number"),
)
_DUE: Final = ENDPOINTS.where(
    webhook_endpoints.c.disabled_at.is_(None),
    or_(
        exists().where(
            webhook_events.c.scope_id == webhook_endpoints.c.scope_id, webhook_events.c.seq > webhook_endpoints.c.cursor
        ),
        exists().where(
            webhook_deliveries.c.scope_id == webhook_endpoints.c.scope_id,
            webhook_deliveries.c.endpoint_id == webhook_endpoints.c.endpoint_id,
            webhook_deliveries.c.state == "pending",
            webhook_deliveries.c.next_at <= bindparam("now"),
        ),
    ),
)
