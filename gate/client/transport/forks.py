"""Renews what a forked process must not inherit from its parent: locks of other threads, connections, and threads.

A server that loads the application before it forks gives its workers its client. Each worker can use it like its own.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class BeginsAnew(Protocol):
    """An object that starts again in a forked process."""

    def begin(self) -> None:
        """Resets the object to its initial state, without closing anything: open resources belong to the parent."""


# Weakly, so that an unused client is not kept alive for a fork that may never come.
_known: WeakSet[BeginsAnew] = WeakSet()


def begin_in_forks(thing: BeginsAnew) -> None:
    """Starts an object now, and again in every process that is forked from this one."""
    thing.begin()
    _known.add(thing)


def _forked() -> None:
    for thing in list(_known):
        thing.begin()


os.register_at_fork(after_in_child=_forked)
