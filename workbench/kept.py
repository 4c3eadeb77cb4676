"""Results of queries over single files of the lake, kept in memory: files never change, so neither do these.

    kept = Kept(64 * 1024 * 1024)
    frame = kept.of(snapshot, "cases", ("refund_policy", "by week"), lambda part: part.cases("refund_policy")...)

The query is asked of each file, and of all rows that are in no file as they are now; the caller adds up what it gives.
So the first report about a policy reads its files, and the next one what came since.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

import polars as pl
from cachetools import LRUCache

from workbench.lake.reader import Snapshot

Query = Callable[[Snapshot], pl.LazyFrame]


class Kept:
    """Results up to so many bytes; those that were asked for least recently go first."""

    def __init__(self, size: int) -> None:
        """Takes how many bytes of results are kept; of 0 none are."""
        self._lock: Final = Lock()
        self._frames: Final[LRUCache[Hashable, pl.DataFrame]] = LRUCache(size, _size)

    def of(self, snapshot: Snapshot, table: str, name: Hashable, query: Query) -> pl.DataFrame:
        """What a query gives of each part of a chain, one below the other.

        Args:
            snapshot: The chain.
            table: The table that the query reads: cases, metrics or facts.
            name: Whatever the query follows from beside the rows, and nothing less.
            query: The query.
        """
        if not self._frames.maxsize:
            return query(snapshot).collect(engine="streaming")
        parts = snapshot.by_file(table)
        keys = [("" if file is None else file.sha256, name) for file, _ in parts]
        with self._lock:
            found = {key: self._frames[key] for key in keys if key in self._frames}
        missing = [at for at, key in enumerate(keys) if key not in found]
        made = pl.collect_all([query(parts[at][1]) for at in missing], engine="streaming")
        frames = {keys[at]: frame for at, frame in zip(missing, made, strict=True)}
        with self._lock:
            for key, frame in frames.items():
                if key[0] and _size(frame) <= self._frames.maxsize:
                    self._frames[key] = frame
        return pl.concat([frames[key] if key in frames else found[key] for key in keys])


def _size(frame: pl.DataFrame) -> float:
    # An empty frame takes room as well.
    return frame.estimated_size() + 1024
