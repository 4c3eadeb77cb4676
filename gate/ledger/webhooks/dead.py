"""The deliveries that failed: listed, replayed, counted, and removed in time with the events that nobody needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from gate.errors import OperatorError
from gate.ids import timestamp
from gate.ledger.access.operator_log import record
from gate.ledger.stores.store import Store, unheard_of
from gate.ledger.tables import chain_heads, webhook_deliveries, webhook_endpoints, webhook_events
from gate.ledger.webhooks.deliveries import DELIVERIES, Delivery
from gate.ledger.webhooks.endpoints import Endpoint, retry_now
from gate.records.webhooks.types import wants

_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Backlog:
    """The events that an endpoint has not accepted.

    Attributes:
        new: How many events of its scope were not looked at yet.
        pending: How many wait for another try, or behind such a one.
        dead: How many were given up.
    """

    new: int
    pending: int
    dead: int


class DeadLetters:
    """The failed deliveries of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def failed(self, endpoint: Endpoint, *, limit: int) -> list[Delivery]:
        """The deliveries of an endpoint that are dead or wait, oldest first.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        of = {"scope": endpoint.scope_id, "endpoint": endpoint.endpoint_id}
        with self._store.read() as connection:
            return [replace(Delivery(*row), stored=True) for row in connection.execute(DELIVERIES.limit(limit), of)]

    def backlog(self, endpoint: Endpoint) -> Backlog:
        """How much an endpoint has not taken.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        of = {"scope": endpoint.scope_id, "endpoint": endpoint.endpoint_id, "after": endpoint.cursor}
        with self._store.read() as connection:
            new = connection.execute(_NEW, of).scalar_one()
            states = {row.state: row.number for row in connection.execute(_STATES, of)}
        return Backlog(int(new), int(states.get("pending", 0)), int(states.get("dead", 0)))

    def replay(
        self, endpoint: Endpoint, now: datetime, *, event_id: str | None = None, since: str | None = None
    ) -> int:
        """Sends an endpoint its dead events, and retries waiting events at once. Or it sends one event, or all events
        since a moment, delivered or not.

        Only events that the outbox still has, since the endpoint was added, and of types that it subscribes to. New
        events need no replay.

        Args:
            endpoint: The endpoint.
            now: The current moment.
            event_id: The one event.
            since: UTC timestamp.

        Returns:
            How many are sent again.

        Raises:
            OperatorError: `WEBHOOK_EVENT_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        of = {"scope": endpoint.scope_id, "endpoint": endpoint.endpoint_id}
        with self._store.write() as connection:
            if event_id is None and since is None:
                waited = retry_now(connection, endpoint, now)
                replayed = waited + connection.execute(_REVIVE, {**of, "now": timestamp(now)}).rowcount
            else:
                replayed = _replay_events(connection, endpoint, now, event_id, since)
            details = {"scope": endpoint.scope, "events": replayed}
            record(connection, "webhook.replayed", endpoint.endpoint_id, details, now)
        return int(replayed)

    def prune(self, kept: timedelta, now: datetime) -> int:
        """Removes dead letters of a certain age, what waits for a disabled endpoint, and then the events that
        every active endpoint has.

        Args:
            kept: How long they are kept.
            now: The current moment.

        Returns:
            How many events were removed.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        before = timestamp(now - kept)
        with self._store.read() as connection:
            scopes = connection.execute(_OLD, {"before": before}).scalars().all()
        return sum(self._pruned(scope_id, before) for scope_id in scopes)

    def _pruned(self, scope_id: str, before: str) -> int:
        removed = 0
        while True:
            of = {"scope": scope_id, "before": before}
            # A transaction for each thousand, so that decisions do not wait long.
            with self._store.write() as connection:
                if not removed:
                    connection.execute(_FORGET_DEAD, of)
                    connection.execute(_FORGET_DISABLED, of)
                numbers = connection.execute(_UNNEEDED, of).scalars().all()
                if numbers:
                    connection.execute(_DELETE_EVENT, [{"scope": scope_id, "number": number} for number in numbers])
            removed += len(numbers)
            if len(numbers) < _AT_ONCE:
                return removed


def _replay_events(
    connection: Connection, endpoint: Endpoint, now: datetime, event_id: str | None, since: str | None
) -> int:
    if event_id is not None and unheard_of(event_id):
        raise _unknown(event_id)
    events = webhook_events.c
    chosen = events.event_id == event_id if event_id is not None else events.created_at >= since
    query = select(events.seq, events.type, events.subject).where(
        events.scope_id == endpoint.scope_id,
        events.seq <= _CURSOR,
        # The event's own date: the anomaly that it is about may have begun before the endpoint was added.
        events.created_at >= endpoint.created_at,
        chosen,
    )
    of = {"scope": endpoint.scope_id, "endpoint": endpoint.endpoint_id}
    rows = connection.execute(query, of).all()
    wanted = [row for row in rows if wants(endpoint.events, row.type)]
    if event_id is not None and not wanted:
        raise _unknown(event_id)
    mine = {"scope_id": endpoint.scope_id, "endpoint_id": endpoint.endpoint_id}
    due = {"state": "pending", "attempts": 0, "next_at": timestamp(now)}
    if wanted:
        connection.execute(_FORGET, [{**of, "number": row.seq} for row in wanted])
        again = [{**mine, "seq": row.seq, "subject": row.subject, **due} for row in wanted]
        connection.execute(insert(webhook_deliveries), again)
    return len(wanted)


def _unknown(event_id: str) -> OperatorError:
    return OperatorError(
        "WEBHOOK_EVENT_UNKNOWN",
        f"The outbox has no event {event_id!r} that can be sent to this endpoint again. Check the id. An event "
        "can be sent again, delivered or not, if the endpoint subscribes to its type and existed when it "
        "happened. The setting webhook_kept_days says for how many days events are kept.",
    )


_OWN: Final = (
    webhook_deliveries.c.scope_id == bindparam("scope"),
    webhook_deliveries.c.endpoint_id == bindparam("endpoint"),
)
_CURSOR: Final = (
    select(webhook_endpoints.c.cursor)
    .where(webhook_endpoints.c.scope_id == bindparam("scope"), webhook_endpoints.c.endpoint_id == bindparam("endpoint"))
    .scalar_subquery()
)
_NEW: Final = (
    select(func.count())
    .select_from(webhook_events)
    .where(webhook_events.c.scope_id == bindparam("scope"), webhook_events.c.seq > bindparam("after"))
)
_STATES: Final = (
    select(webhook_deliveries.c.state, func.count().label("number")).where(*_OWN).group_by(webhook_deliveries.c.state)
)
_REVIVE: Final = (
    update(webhook_deliveries)
    .where(*_OWN, webhook_deliveries.c.state == "dead")
    .values(state="pending", attempts=0, next_at=bindparam("now"))
)
_FORGET: Final = delete(webhook_deliveries).where(*_OWN, webhook_deliveries.c.seq == bindparam("number"))
_OLD: Final = select(webhook_events.c.scope_id).where(webhook_events.c.created_at < bindparam("before")).distinct()
_FORGET_DEAD: Final = delete(webhook_deliveries).where(
    webhook_deliveries.c.scope_id == bindparam("scope"),
    webhook_deliveries.c.state == "dead",
    webhook_deliveries.c.last_at < bindparam("before"),
)
_DISABLED: Final = select(webhook_endpoints.c.endpoint_id).where(
    webhook_endpoints.c.scope_id == bindparam("scope"), webhook_endpoints.c.disabled_at.is_not(None)
)
_OLD_EVENTS: Final = select(webhook_events.c.seq).where(
    webhook_events.c.scope_id == bindparam("scope"), webhook_events.c.created_at < bindparam("before")
)
_FORGET_DISABLED: Final = delete(webhook_deliveries).where(
    webhook_deliveries.c.scope_id == bindparam("scope"),
    webhook_deliveries.c.endpoint_id.in_(_DISABLED),
    webhook_deliveries.c.seq.in_(_OLD_EVENTS),
)
# Where no endpoint is active, none holds an event back.
_HAD_BY_ALL: Final = (
    select(
        func.coalesce(
            func.min(webhook_endpoints.c.cursor),
            select(chain_heads.c.event_seq).where(chain_heads.c.scope_id == bindparam("scope")).scalar_subquery(),
        )
    )
    .where(webhook_endpoints.c.scope_id == bindparam("scope"), webhook_endpoints.c.disabled_at.is_(None))
    .scalar_subquery()
)
_CITED: Final = select(webhook_deliveries.c.seq).where(webhook_deliveries.c.scope_id == bindparam("scope"))
_UNNEEDED: Final = (
    _OLD_EVENTS.where(webhook_events.c.seq <= _HAD_BY_ALL, webhook_events.c.seq.not_in(_CITED))
    .order_by(webhook_events.c.seq)
    .limit(_AT_ONCE)
)
_DELETE_EVENT: Final = delete(webhook_events).where(
    webhook_events.c.scope_id == bindparam("scope"), webhook_events.c.seq == bindparam("number")
)
