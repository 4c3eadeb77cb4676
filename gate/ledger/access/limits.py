"""Rate limits: how many decide requests a key may make in a sliding minute, counted across all processes.

The moments of a key's admitted requests are kept, so that a window is exact: in any 60 seconds no more requests are
admitted than the plan allows. They are moments of a clock that nobody sets: on SQLite the machine's monotonic clock,
which all its processes share, on PostgreSQL the server's. A clock that fell back (a restarted machine) moves the kept
moments with it, as if no time had passed since the last request.
"""

from __future__ import annotations

import array
import math
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from sqlalchemy import bindparam, insert, select, text, update

from gate.errors import ServiceUnavailable
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.stores.store import Answer, Row, Statement, Store, Transaction, unavailable
from gate.ledger.tables import limits_metadata, rate_windows

WINDOW: Final = 60.0
"""The length of the sliding window, in seconds."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What a key's limit says to a request.

    Attributes:
        limit: Requests allowed in a window.
        remaining: How many more would be admitted now.
        retry_after: Whole seconds until one more is; 0 where this request is admitted.
    """

    limit: int
    remaining: int
    retry_after: int

    @property
    def admitted(self) -> bool:
        """Whether the request may go on."""
        return self.retry_after == 0


class RateLimiter:
    """Counts the requests of keys."""

    def __init__(self, store: Store, reopen: Callable[[], Store] | None = None) -> None:
        """Works on a store made by `open_limits`, which `close` closes, or on a ledger's PostgreSQL store.

        Args:
            store: The store.
            reopen: Opens the file that is in the store's place, where it is one of its own.
        """
        self._store = store
        self._reopen = reopen
        self._reopening = Lock()

    def admit(self, scope_id: str, key_id: str, limit: int) -> Rate:
        """Admits a request, and counts it, or refuses it, which counts for nothing.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it cannot be counted, so it cannot be admitted.
        """
        (rate,) = self.admit_all(scope_id, key_id, limit, 1)
        return rate

    def admit_all(self, scope_id: str, key_id: str, limit: int, requests: int) -> list[Rate]:
        """As `admit`, of so many requests that came together: as many as the window has room for are admitted, the
        first ones.

        Raises:
            ServiceUnavailable: As `admit`.
        """
        # A try whose answer was lost may have counted already; counting again only uses up the window sooner.
        return self._do(
            lambda store: store.run(lambda transaction, _: self._count(transaction, scope_id, key_id, limit, requests))
        )

    def probe(self) -> None:
        """Requires that requests can be counted.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        self._do(lambda store: store.probe())

    def _do(self, work: Callable[[Store], Answer]) -> Answer:
        store = self._store
        try:
            return work(store)
        except ServiceUnavailable:
            if not self._is_replaced(store):
                raise
        return work(self._store)

    def _is_replaced(self, store: Store) -> bool:
        """Whether a store's file was removed or replaced, so that what is in its place now is to be used instead."""
        with self._reopening:
            if self._store is store:
                if self._reopen is None or not isinstance(store, SqliteLedgerStore) or store.is_in_place():
                    return False
                # The old one is not closed, for others may be in the middle of it: a descriptor stays open.
                try:
                    self._store = self._reopen()
                except OSError as error:
                    raise unavailable(str(error.strerror)) from error
            return True

    def _count(self, transaction: Transaction, scope_id: str, key_id: str, limit: int, requests: int) -> list[Rate]:
        key = {"scope": scope_id, "key": key_id}
        # The moment is taken under the lock, so that moments are kept in their order.
        rows, now = self._window(transaction, key)
        kept = array.array("d", rows[0][0] if rows else b"")
        moments = _current(kept, now)
        room = min(requests, max(0, limit - len(moments)))
        admitted = [Rate(limit, limit - len(moments) - number, 0) for number in range(1, room + 1)]
        moments.extend([now] * room)
        # A window without room is kept once where the clock fell back, not at every refusal: otherwise it would start
        # again until the clock has caught up.
        if room or kept[-1] > now:
            transaction.commit([(_KEEP if rows else _START, [{**key, "moments": moments.tobytes()}])])
        if room == requests:
            return admitted
        refused = Rate(limit, 0, max(1, math.ceil(moments[len(moments) - limit] + WINDOW - now)))
        return admitted + [refused] * (requests - room)

    def _window(self, transaction: Transaction, key: dict[str, str]) -> tuple[list[Row], float]:
        if self._store.engine.name != "postgresql":
            (rows,) = transaction.ask([(_WINDOW, [key])])
            return rows, time.monotonic()
        _, _, rows, ((now,),) = transaction.ask(
            [(_UNSYNCED, [{}]), (_LOCK_KEY, [key]), (_WINDOW, [key]), (_SERVER_TIME, [{}])]
        )
        return rows, float(now)

    def close(self) -> None:
        """Closes the store."""
        self._store.close()


def open_limits(store: Store) -> RateLimiter:
    """The limiter that belongs to a ledger's store.

    Raises:
        OSError: Its file cannot be opened.
    """
    if not isinstance(store, SqliteLedgerStore):
        return RateLimiter(store)

    def reopen() -> Store:
        limits = SqliteLedgerStore(_limits_file(store), create=True, durable=False)
        with limits.write() as connection:
            limits_metadata.create_all(connection)
        return limits

    return RateLimiter(reopen(), reopen)


def replace_damaged_limits(store: Store) -> None:
    """Creates the limits' file again if a crash of the machine damaged it, because the file is never synced to disk.
    Call it while nothing else has the file open. The windows begin empty.

    Raises:
        OSError: The file cannot be removed.
    """
    if not isinstance(store, SqliteLedgerStore):
        return
    file = _limits_file(store)
    if not file.exists():
        return
    with closing(sqlite3.connect(file)) as connection:
        try:
            if connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return
        except sqlite3.OperationalError:
            # It is in use, or cannot be opened now: the process that counts in it will say so.
            return
        except sqlite3.DatabaseError:
            pass
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _limits_file(store: SqliteLedgerStore) -> Path:
    return store.database.with_name(f"{store.database.name}.limits")


_WINDOW: Final = Statement(
    select(rate_windows.c.admitted).where(
        rate_windows.c.scope_id == bindparam("scope"), rate_windows.c.key_id == bindparam("key")
    )
)
_START: Final = Statement(
    insert(rate_windows).values(scope_id=bindparam("scope"), key_id=bindparam("key"), admitted=bindparam("moments"))
)
_KEEP: Final = Statement(
    update(rate_windows)
    .where(rate_windows.c.scope_id == bindparam("scope"), rate_windows.c.key_id == bindparam("key"))
    .values(admitted=bindparam("moments"))
)
# No request waits for the disk only to be counted.
_UNSYNCED: Final = Statement(text("SELECT set_config('synchronous_commit', 'off', true)"))
# A key has no row to lock before its first request.
_LOCK_KEY: Final = Statement(text("SELECT pg_advisory_xact_lock(hashtextextended(:scope || :key, 0))"))
_SERVER_TIME: Final = Statement(text("SELECT extract(epoch FROM clock_timestamp())"))


def _current(moments: array.array[float], now: float) -> array.array[float]:
    """The moments that still count, ascending."""
    if moments and moments[-1] > now:
        shift = now - moments[-1]
        moments = array.array("d", (moment + shift for moment in moments))
    return array.array("d", (moment for moment in moments if moment > now - WINDOW))
