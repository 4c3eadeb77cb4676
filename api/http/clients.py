"""The rate limit of clients without a key: a number of requests per address and minute, counted by all workers.

The workers share a small file of fixed size with the counts. So many addresses take no memory, and a flood of requests
never reaches the ledger. Two addresses that share a place in the file share its count. Outsiders cannot find such
pairs, because the places come from a keyed hash. Workers that count one address at the same moment may lose a count.
"""

from __future__ import annotations

import fcntl
import mmap
import secrets
import struct
import time
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Final

WINDOW: Final = 60
"""The length of a window in seconds. A window begins with its first counted request."""

_KEY_BYTES: Final = 32
_PLACES: Final = 1 << 16
# When its window began, on the machine's monotonic clock, and the requests since.
_PLACE: Final = struct.Struct("<dQ")
_SIZE: Final = _KEY_BYTES + _PLACES * _PLACE.size


class ClientCounts:
    """Counts the requests of addresses."""

    def __init__(self, file: Path | None) -> None:
        """Opens the counts that the workers of an instance share. Without a file, the counts belong to this process.

        Raises:
            OSError: The file cannot be opened.
        """
        self._lock = Lock()
        self._shared = _keyed(mmap.mmap(-1, _SIZE)) if file is None else _opened(file)

    def wait(self, purpose: str, address: str, limit: int) -> int:
        """Counts a request and returns 0. If the address has reached the limit, returns the seconds until the next
        allowed request.

        Args:
            purpose: The purpose of the request; each purpose has separate counts.
            address: The client.
            limit: The number of requests in a window.
        """
        key = self._shared[:_KEY_BYTES]
        digest = blake2b(f"{purpose} {address}".encode(), key=key, digest_size=4).digest()
        place = _KEY_BYTES + int.from_bytes(digest, "little") % _PLACES * _PLACE.size
        with self._lock:
            now = time.monotonic()
            began, count = _PLACE.unpack_from(self._shared, place)
            # A window that begins later than now is of another start of the machine.
            if not began <= now < began + WINDOW:
                began, count = now, 0
            if count >= limit:
                return max(1, int(began + WINDOW - now) + 1)
            _PLACE.pack_into(self._shared, place, began, count + 1)
            return 0


def _opened(file: Path) -> mmap.mmap:
    with file.open("a+b") as opened:
        # Workers start together, and one of them makes the key.
        fcntl.flock(opened, fcntl.LOCK_EX)
        file.chmod(0o600)
        opened.truncate(_SIZE)
        shared = _keyed(mmap.mmap(opened.fileno(), _SIZE))
        # Not by closing: what is mapped keeps a descriptor of its own, and the lock with it.
        fcntl.flock(opened, fcntl.LOCK_UN)
        return shared


def _keyed(shared: mmap.mmap) -> mmap.mmap:
    if not any(shared[:_KEY_BYTES]):
        shared[:_KEY_BYTES] = secrets.token_bytes(_KEY_BYTES)
    return shared
