"""The idempotency keys that are in use now, across all threads, processes, and hosts of an instance.

    with reservations.reserve(digest) as free: ...      free is False while someone else is inside

A reservation tells a caller early that the first request is unfinished. Correctness does not depend on it: the claim in
the transaction of the append ensures that a key makes one entry. A reservation is a lock that ends with its holder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from gate.ledger.stores.store import Store


class Reservations:
    """The keys in use."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store
        self._held: set[bytes] = set()
        self._lock = Lock()

    @contextmanager
    def reserve(self, digest: bytes) -> Iterator[bool]:
        """Holds a key for as long as the block runs; False where someone else holds it.

        Args:
            digest: The claim's digest.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        # Locks of the system and of the database do not distinguish threads of one process.
        with self._lock:
            free = digest not in self._held
            if free:
                self._held.add(digest)
        if not free:
            yield False
            return
        try:
            with self._store.reserve(_number(digest)) as locked:
                yield locked
        finally:
            with self._lock:
                self._held.discard(digest)


def _number(digest: bytes) -> int:
    """62 bits that represent a digest. Two keys that share them merely wait for each other."""
    # It has to fit PostgreSQL's signed 64-bit keys and, with one byte behind it, a file's offsets.
    return int.from_bytes(digest[:8]) >> 2
