"""The policy tables that were active, in order. Comparing them finds changes, and the last one stays active while the
operator's file is broken. Rows are never deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, insert, select

from gate.ids import timestamp
from gate.ledger.access.operator_log import lock
from gate.ledger.stores.store import Store
from gate.ledger.tables import policy_tables

OPERATOR: Final = "operator"
RELEASE: Final = "release"


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A policy table that was active.

    Attributes:
        service: `refund`, `cancel`, `return`, or `trial`.
        number: Its place among the tables of the service, from 1.
        table_hash: H of the table.
        body: Its file.
        origin: operator, or release where it came with the product.
        in_force_at: Since when; UTC timestamp.
    """

    service: str
    number: int
    table_hash: str
    body: bytes
    origin: str
    in_force_at: str


class PolicyTables:
    """The policy tables of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def keep(self, service: str, table_hash: str, body: bytes, origin: str, now: datetime) -> None:
        """Keeps the table that is active from now on, unless it is the last one kept.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            # Workers that read a new file at once come one after the other.
            lock(connection)
            last = _last(connection, service)
            if last is not None and last.table_hash == table_hash:
                return
            number = 1 if last is None else last.number + 1
            connection.execute(
                insert(policy_tables).values(
                    service=service,
                    number=number,
                    table_hash=table_hash,
                    body=body,
                    origin=origin,
                    in_force_at=timestamp(now),
                )
            )

    def last(self, service: str) -> KeptTable | None:
        """The table that was kept last for a service, or None.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            return _last(connection, service)

    def latest(self, most: int) -> list[KeptTable]:
        """The tables kept last, of all services together, the newest first.

        Args:
            most: How many.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        query = select(policy_tables).order_by(
            policy_tables.c.in_force_at.desc(), policy_tables.c.service, policy_tables.c.number.desc()
        )
        with self._store.read() as connection:
            return [KeptTable(**row._mapping) for row in connection.execute(query.limit(most))]

    def before(self, table: KeptTable) -> KeptTable | None:
        """The table that a table took the place of, or None.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        query = select(policy_tables).where(
            policy_tables.c.service == table.service, policy_tables.c.number == table.number - 1
        )
        with self._store.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else KeptTable(**row._mapping)


def _last(connection: Connection, service: str) -> KeptTable | None:
    query = select(policy_tables).where(policy_tables.c.service == service).order_by(policy_tables.c.number.desc())
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else KeptTable(**row._mapping)
