"""The endpoints of webhooks.

An endpoint gets the events that happen after it was added. The head of its scope has the types of all its endpoints,
including disabled ones. When an endpoint is enabled again, it gets the events of the meantime, if the outbox still has
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, insert, or_, select, update

from gate.clock import new_id
from gate.errors import OperatorError
from gate.ids import parse_timestamp, timestamp
from gate.ledger.access.authority import Scope
from gate.ledger.access.operator_log import record
from gate.ledger.stores.store import Store, unheard_of
from gate.ledger.tables import chain_heads, scopes, webhook_deliveries, webhook_endpoints
from gate.records.webhooks.types import types_of

BY_OPERATOR: Final = "operator"
GONE: Final = "gone"
"""Why an endpoint is disabled: an operator did it, or it answered 410."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where events of a scope are sent.

    Attributes:
        scope_id: The scope.
        scope: Its name.
        endpoint_id: Its id.
        url: Where to.
        events: The types that it subscribes to, as bits.
        created_at: UTC timestamp.
        disabled_at: UTC timestamp; None where it is active.
        disabled_by: `BY_OPERATOR` or `GONE`; None where it is active.
        cursor: The number of the last event of its scope that it needs no more, or that waits for it elsewhere.
        generation: How often its secret was rotated.
        rotated_until: Until when the secret before signs as well; UTC timestamp, or None.
        delivered_at: When it took an event last; UTC timestamp, or None.
    """

    scope_id: str
    scope: str
    endpoint_id: str
    url: str
    events: int
    created_at: str
    disabled_at: str | None
    disabled_by: str | None
    cursor: int
    generation: int
    rotated_until: str | None
    delivered_at: str | None

    def generations(self, now: datetime) -> list[int]:
        """The generations of the secrets that sign now, the newest first."""
        rotating = self.rotated_until is not None and now < parse_timestamp(self.rotated_until)
        return [self.generation, *([self.generation - 1] if rotating else [])]


class Endpoints:
    """The endpoints of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def add(self, scope: Scope, url: str, events: int, now: datetime) -> Endpoint:
        """Adds an endpoint, which hears of what happens from now on.

        Args:
            scope: The scope.
            url: Where its events go.
            events: The types that it subscribes to, as bits.
            now: The current moment.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        endpoint_id = new_id("whe", now)
        with self._store.write() as connection:
            # The head before the operator log, as in every transaction that takes both locks.
            last = connection.execute(_LOCK_HEAD, {"scope": scope.scope_id}).scalar_one()
            connection.execute(
                insert(webhook_endpoints).values(
                    scope_id=scope.scope_id,
                    endpoint_id=endpoint_id,
                    url=url,
                    events=events,
                    created_at=timestamp(now),
                    cursor=last,
                    generation=1,
                )
            )
            _set_mask(connection, scope.scope_id)
            record(connection, "webhook.added", endpoint_id, _details(scope.name, events), now)
        return self.find(endpoint_id)

    def all(self, scope_id: str | None = None) -> list[Endpoint]:
        """The endpoints of a scope, or of all, in the order in which they were added.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        query = ENDPOINTS if scope_id is None else ENDPOINTS.where(webhook_endpoints.c.scope_id == scope_id)
        with self._store.read() as connection:
            return [endpoint_of(row) for row in connection.execute(query.order_by(webhook_endpoints.c.endpoint_id))]

    def find(self, endpoint_id: str) -> Endpoint:
        """The endpoint of an id.

        Raises:
            OperatorError: `WEBHOOK_UNKNOWN`.
        """
        row = None
        if not unheard_of(endpoint_id):
            with self._store.read() as connection:
                query = ENDPOINTS.where(webhook_endpoints.c.endpoint_id == endpoint_id)
                row = connection.execute(query).one_or_none()
        if row is None:
            raise _unknown(endpoint_id)
        return endpoint_of(row)

    def disable(self, endpoint: Endpoint, now: datetime) -> bool:
        """Sends an endpoint nothing more for now; whether it was active.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            disabled = disable(connection, endpoint, BY_OPERATOR, now)
            if disabled:
                record(connection, "webhook.disabled", endpoint.endpoint_id, {"scope": endpoint.scope}, now)
        return disabled

    def enable(self, endpoint: Endpoint, now: datetime) -> bool:
        """Sends an endpoint what happened since it was disabled, and what failed before; whether it was disabled.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            found = webhook_endpoints.c.disabled_at.is_not(None)
            statement = update(webhook_endpoints).where(*_itself(endpoint), found)
            enabled = bool(connection.execute(statement.values(disabled_at=None, disabled_by=None)).rowcount)
            if enabled:
                retry_now(connection, endpoint, now)
                record(connection, "webhook.enabled", endpoint.endpoint_id, {"scope": endpoint.scope}, now)
        return enabled

    def remove(self, endpoint: Endpoint, now: datetime) -> None:
        """Removes an endpoint with all that was not delivered to it.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            connection.execute(_LOCK_HEAD, {"scope": endpoint.scope_id})
            connection.execute(delete(webhook_endpoints).where(*_itself(endpoint)))
            mine = webhook_deliveries.c.endpoint_id == endpoint.endpoint_id
            connection.execute(
                delete(webhook_deliveries).where(webhook_deliveries.c.scope_id == endpoint.scope_id, mine)
            )
            _set_mask(connection, endpoint.scope_id)
            record(connection, "webhook.removed", endpoint.endpoint_id, {"scope": endpoint.scope}, now)

    def rotate(self, endpoint: Endpoint, overlap: timedelta, now: datetime) -> Endpoint:
        """Gives an endpoint a new secret; the one before signs as well for a while.

        Args:
            endpoint: The endpoint.
            overlap: For how long both sign.
            now: The current moment.

        Raises:
            OperatorError: `WEBHOOK_ROTATION_OPEN`: two secrets sign already. `WEBHOOK_UNKNOWN`: it was removed
                meanwhile.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        until = timestamp(now + overlap)
        with self._store.write() as connection:
            rotated = {"generation": webhook_endpoints.c.generation + 1, "rotated_until": until}
            # The statement itself looks for an open rotation, so that of two operators one alone begins another.
            last_until = webhook_endpoints.c.rotated_until
            closed = or_(last_until.is_(None), last_until <= timestamp(now))
            statement = update(webhook_endpoints).where(*_itself(endpoint), closed)
            if not connection.execute(statement.values(**rotated)).rowcount:
                raise _not_rotated(connection, endpoint)
            details = {"scope": endpoint.scope, "until": until}
            record(connection, "webhook.secret_rotated", endpoint.endpoint_id, details, now)
        return self.find(endpoint.endpoint_id)


def disable(connection: Connection, endpoint: Endpoint, by: str, now: datetime) -> bool:
    """Disables an endpoint in a transaction; whether it was active."""
    statement = update(webhook_endpoints).where(*_itself(endpoint), webhook_endpoints.c.disabled_at.is_(None))
    return bool(connection.execute(statement.values(disabled_at=timestamp(now), disabled_by=by)).rowcount)


def retry_now(connection: Connection, endpoint: Endpoint, now: datetime) -> int:
    """Makes everything that waits for an endpoint due at once, in each subject's order; how much would have waited."""
    table = webhook_deliveries.c
    mine = (table.scope_id == endpoint.scope_id) & (table.endpoint_id == endpoint.endpoint_id)
    waiting = mine & (table.state == "pending")
    later = waiting & (table.next_at > timestamp(now))
    return int(connection.execute(update(webhook_deliveries).where(later).values(next_at=timestamp(now))).rowcount)


def endpoint_of(row: Row[Any]) -> Endpoint:
    """The endpoint of a row of `ENDPOINTS`."""
    members: tuple[Any, ...] = tuple(row)
    return Endpoint(*members)


def _not_rotated(connection: Connection, endpoint: Endpoint) -> OperatorError:
    """Why no secret was rotated, as the transaction sees it."""
    query = select(webhook_endpoints.c.rotated_until).where(*_itself(endpoint))
    until = connection.execute(query).scalar_one_or_none()
    if until is None:
        return _unknown(endpoint.endpoint_id)
    return OperatorError(
        "WEBHOOK_ROTATION_OPEN",
        f"The secret of the endpoint {endpoint.endpoint_id} was already rotated, and the previous secret signs "
        f"until {until}. Rotate again after that. If a secret leaked, add the endpoint again with `gate webhooks "
        f"add`, and remove this one with `gate webhooks remove {endpoint.endpoint_id}`.",
    )


def _unknown(endpoint_id: str) -> OperatorError:
    return OperatorError(
        "WEBHOOK_UNKNOWN", f"There is no webhook endpoint {endpoint_id!r}. `gate webhooks list` shows all endpoints."
    )


def _set_mask(connection: Connection, scope_id: str) -> None:
    """Brings the types in a scope's head, which is locked, up to its endpoints."""
    mask = 0
    for events in connection.execute(_EVENTS, {"scope": scope_id}).scalars():
        mask |= events
    connection.execute(update(chain_heads).where(chain_heads.c.scope_id == scope_id).values(webhook_events=mask))


def _details(scope: str, events: int) -> dict[str, object]:
    # Not the URL: it may have a token in it.
    return {"scope": scope, "events": list(types_of(events))}


def _itself(endpoint: Endpoint) -> list[Any]:
    return [
        webhook_endpoints.c.scope_id == endpoint.scope_id,
        webhook_endpoints.c.endpoint_id == endpoint.endpoint_id,
    ]


_LOCK_HEAD: Final = (
    select(chain_heads.c.event_seq).where(chain_heads.c.scope_id == bindparam("scope")).with_for_update()
)
_EVENTS: Final = select(webhook_endpoints.c.events).where(webhook_endpoints.c.scope_id == bindparam("scope"))
ENDPOINTS: Final = select(
    webhook_endpoints.c.scope_id,
    scopes.c.name,
    *(webhook_endpoints.c[name] for name in Endpoint.__slots__ if name not in ("scope_id", "scope")),
).join(scopes, scopes.c.scope_id == webhook_endpoints.c.scope_id)
"""Endpoints, with the members of `Endpoint` in their order."""
