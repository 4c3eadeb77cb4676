"""Each scope's lake and the ledger's tail, as of a moment that all sessions share.

A snapshot is kept for some seconds: pages that are opened together show the same numbers, and reports over them are
computed once. A page says as of when it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from gate.ledger import Ledger
from workbench.dashboard.store.memo import Memo
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.reader import Snapshot

FRESH_FOR: Final = timedelta(seconds=20)
"""For how long a snapshot is shown, before the ledger is asked again."""

SCOPES: Final = 16
"""Of how many scopes the latest is kept: a snapshot holds the ledger's tail in memory."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A scope's chain as it was.

    Attributes:
        snapshot: All of it.
        at: When it was read.
    """

    snapshot: Snapshot
    at: datetime


class Snapshots:
    """The latest snapshot of each scope that somebody looks at."""

    def __init__(self, read: Callable[[str], Snapshot], clock: Callable[[], datetime]) -> None:
        """Takes what reads a scope's snapshot, as `reading` makes it, and the clock."""
        self._read = read
        self._clock = clock
        self._memo = Memo(SCOPES)

    def latest(self, scope_id: str) -> Seen:
        """A scope's chain, at most `FRESH_FOR` old.

        Raises:
            ServiceUnavailable: `SVC_REPORT_UNAVAILABLE` or `SVC_STORAGE_UNAVAILABLE`.
        """
        # Read again though nothing was added: files that compaction has replaced are deleted after an hour.
        return self._memo.get(scope_id, lambda: self._now(scope_id), still=self._is_fresh)

    def _now(self, scope_id: str) -> Seen:
        # Its age counts from before it is read.
        at = self._clock()
        return Seen(self._read(scope_id), at)

    def _is_fresh(self, seen: Seen) -> bool:
        return self._clock() - seen.at < FRESH_FOR


def reading(ledger: Ledger, lake: Path, personal: Personal) -> Callable[[str], Snapshot]:
    """What reads a scope's snapshot: the lake, and what it lacks from the ledger."""
    return lambda scope_id: fresh(ledger, lake, scope_id, personal)
