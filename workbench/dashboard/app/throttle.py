"""How often somebody may try to sign in: so many failures within some minutes, by name, by address and by both."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

from cachetools import LRUCache

WITHIN: Final = timedelta(minutes=5)
"""The time in which failures are counted."""

BY_BOTH: Final = 5
"""Failures of one name from one address."""

BY_NAME: Final = 50
"""Failures of one name, from wherever: many, so that a stranger does not easily lock a user out."""

BY_ADDRESS: Final = 30
"""Failures from one address, of whatever name."""

_REMEMBERED: Final = 10_000


class Throttle:
    """Counts failed attempts to sign in."""

    def __init__(self) -> None:
        """Has seen no failure."""
        self._lock = Lock()
        self._failures: LRUCache[tuple[str, str], deque[datetime]] = LRUCache(_REMEMBERED)

    def wait(self, name: str, address: str, now: datetime) -> int:
        """For how many seconds a sign-in is refused without being tried; 0 where it may be tried."""
        with self._lock:
            waits = [self._wait(key, most, now) for key, most in _counted(name, address)]
        return max(waits)

    def failed(self, name: str, address: str, now: datetime) -> list[str]:
        """Counts a failure.

        Returns:
            The limits that it reached: any of `name`, `address`, and `both`. It refuses further attempts unchecked.
        """
        reached = []
        with self._lock:
            for limit, (key, most) in zip(("both", "name", "address"), _counted(name, address), strict=True):
                was_waiting = self._wait(key, most, now)
                self._failures.setdefault(key, deque(maxlen=most)).append(now)
                if not was_waiting and self._wait(key, most, now):
                    reached.append(limit)
        return reached

    def _wait(self, key: tuple[str, str], most: int, now: datetime) -> int:
        failures = self._failures.get(key, deque())
        if len(failures) < most or now - failures[0] >= WITHIN:
            return 0
        return max(1, int((failures[0] + WITHIN - now).total_seconds()))


def _counted(name: str, address: str) -> tuple[tuple[tuple[str, str], int], ...]:
    name = name.casefold()[:100]
    return ((name, address), BY_BOTH), ((name, ""), BY_NAME), (("", address), BY_ADDRESS)
