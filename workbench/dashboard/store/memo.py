"""Computes what several sessions ask for once, and keeps the latest of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, Final, TypeVar

from cachetools import LRUCache

Value = TypeVar("Value")


class Memo:
    """A bounded cache: who asks first computes, who asks meanwhile waits, and a failure is not kept."""

    def __init__(self, size: int) -> None:
        """Keeps so many values, those asked for last."""
        self._lock: Final = Lock()
        self._kept: LRUCache[Hashable, Future[Any]] = LRUCache(size)

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The value under a key, computed where it is not kept.

        Args:
            key: Whatever the value follows from, and nothing less.
            compute: Makes it; what it raises is raised to all who wait.
        """
        with self._lock:
            found: Future[Value] | None = self._kept.get(key)
            mine = found is None
            if found is None:
                found = self._kept[key] = Future()
        if mine:
            try:
                found.set_result(compute())
            except BaseException as error:  # noqa: BLE001  those who wait must hear of it, whatever it is
                with self._lock:
                    self._kept.pop(key, None)
                found.set_exception(error)
        return found.result()
