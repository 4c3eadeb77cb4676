"""Computes what several sessions ask for once, and keeps the latest of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, Final, TypeVar

from cachetools import LRUCache

Value = TypeVar("Value")


class Memo:
    """A bounded cache: the first caller computes, callers meanwhile wait for it, and a failure is not kept."""

    def __init__(self, size: int) -> None:
        """Keeps so many values, those asked for last."""
        self._lock: Final = Lock()
        self._kept: LRUCache[Hashable, Future[Any]] = LRUCache(size)

    def get(
        self, key: Hashable, compute: Callable[[], Value], *, still: Callable[[Value], bool] = lambda _: True
    ) -> Value:
        """The value under a key, computed where it is not kept.

        Args:
            key: Whatever the value follows from, and nothing less.
            compute: Makes it; all waiting callers get its exception.
            still: Whether a kept value may still be used; where it may not, it is computed again.
        """
        found, mine = self._found(key, still)
        if mine:
            try:
                found.set_result(compute())
            except BaseException as error:  # noqa: BLE001  those who wait must hear of it, whatever it is
                with self._lock:
                    if self._kept.get(key) is found:
                        del self._kept[key]
                found.set_exception(error)
        return found.result()

    def _found(self, key: Hashable, still: Callable[[Value], bool]) -> tuple[Future[Value], bool]:
        """What is kept under a key, or is going to be, and whether the caller has to compute it."""
        with self._lock:
            found: Future[Value] | None = self._kept.get(key)
            # One that failed is about to be removed, and is raised to those who asked meanwhile.
            old = found is not None and found.done() and found.exception() is None and not still(found.result())
            if found is not None and not old:
                return found, False
            made: Future[Value] = Future()
            self._kept[key] = made
            return made, True

    def drop(self, dead: Callable[[Any], bool]) -> None:
        """Forgets the values whose keys nobody will ask for again."""
        with self._lock:
            for key in [key for key in self._kept if dead(key)]:
                del self._kept[key]
