"""What a forked process must not take over from its parent: locks that another thread held, connections, threads.

A server that loads the application before it forks its workers hands them its client; each goes on with it as if it
were its own.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class BeginsAnew(Protocol):
    """Something that begins anew in a forked process."""

    def begin(self) -> None:
        """Makes what it holds as it was when it was made; closes nothing, for that is the parent's."""


# Weakly: a client that nobody uses any more is not kept alive for a fork that may never come.
_known: WeakSet[BeginsAnew] = WeakSet()


def begin_in_forks(thing: BeginsAnew) -> None:
    """Begins something now, and again in every process that is forked from this one."""
    thing.begin()
    _known.add(thing)


def _forked() -> None:
    for thing in list(_known):
        thing.begin()


os.register_at_fork(after_in_child=_forked)
