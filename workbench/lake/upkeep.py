"""Brings a scope of the lake up to the ledger: export and compaction take turns, so that neither runs far ahead.

Next to a service, they work at a pace: short slices with rests between them, unless the lake is late.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from gate.ledger import Ledger
from workbench.lake.compaction import Compactor
from workbench.lake.entries import Personal
from workbench.lake.export import Exporter
from workbench.lake.manifest import Manifest, load

SLICE: Final = 0.02
"""After how much work there is a rest, in seconds of processor time."""

RESTS: Final = 3.0
"""How long a rest is: so many times what was worked before it."""

LATE: Final = 4.0
"""From when on there is no rest, in seconds since the moment up to which the lake holds all."""

_TURN: Final = 50_000
# What is made of them takes a slice or two.
_PAGE: Final = 1_000


class Pace:
    """The pace of one thread that keeps a lake."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Takes a clock, what tells the processor time that this thread has worked, both in seconds, and what waits."""
        self._clock = clock
        self._worked = worked
        self._sleep = sleep
        self._followed = clock()
        self._rested = 0.0

    def begin(self) -> float:
        """Begins a pass, in the thread that makes it; gives the moment, for `followed`."""
        self._rested = self._worked()
        return self._clock()

    def followed(self, until: float) -> None:
        """Notes that the lake holds all that was acknowledged until a moment."""
        self._followed = until

    def rest(self) -> None:
        """Rests where a slice was worked since the last rest; not at all where the lake is late."""
        worked = self._worked() - self._rested
        if worked < SLICE:
            return
        # Work that goes on is the only thing that brings a late lake back, however busy the processors are.
        room = self._followed + LATE - self._clock()
        if room > 0:
            self._sleep(min(worked * RESTS, room))
        self._rested = self._worked()


def bring_up(
    ledger: Ledger,
    lake: Path,
    scope_id: str,
    personal: Personal,
    *,
    many: int = 1,
    behind: int = 0,
    pace: Pace | None = None,
) -> Iterator[Manifest]:
    """Exports new entries of a scope's chain, and compacts. The caller must hold the lease.

    Args:
        ledger: The ledger.
        lake: The lake's directory.
        scope_id: The scope.
        personal: The fields that are left out.
        many: The number of small files of a kind that may stay.
        behind: The number of chain positions that the cases may lag behind.
        pace: The pace of background work; None for work that somebody waits for.

    Returns:
        The manifest after each commit.

    Raises:
        OperatorError: As `Exporter.export` and `Compactor.compact`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    # The lease's holder reads the head, so that it is never behind what another process has exported.
    scope = ledger.tail.scope(scope_id)
    if scope is None:
        return
    exporter = Exporter(ledger, lake, personal)
    if pace is not None:
        exporter = Exporter(ledger, lake, personal, page=_PAGE, rest=pace.rest)
    compactor = Compactor(lake)
    position = 0
    while True:
        yield from exporter.export(scope, most=_TURN)
        found = load(lake, scope_id)
        if found is None:
            return
        for manifest in compactor.compact(found, many=many, behind=behind):
            yield manifest
            if pace is not None:
                pace.rest()
        if found.position >= scope.head.size or found.position == position:
            return
        position = found.position
