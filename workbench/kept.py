"""Results of queries over single files of the lake, kept in memory: files never change, so neither do these.

    kept = Kept(64 * 1024 * 1024)
    frame = kept.of(snapshot, "cases", ("refund_policy", "by week"), lambda part: part.cases("refund_policy")...)

The query is asked of each file, and of all rows that are in no file as they are now; the caller adds up what it gives.
So the first report about a policy reads its files, and the next one what came since.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Final, NamedTuple

import polars as pl
from cachetools import LRUCache

from workbench.lake.reader import Snapshot

Query = Callable[[Snapshot], pl.LazyFrame]


class Asked(NamedTuple):
    """A query: its table, a name for everything else that its result depends on, and the function that runs it."""

    table: str
    name: Hashable
    query: Query


class Kept:
    """Results up to so many bytes; those that were asked for least recently go first."""

    def __init__(self, size: int) -> None:
        """Takes how many bytes of results are kept; of 0 none are."""
        self._lock: Final = Lock()
        self._frames: Final[LRUCache[Hashable, pl.DataFrame]] = LRUCache(size, _size)

    def of(self, snapshot: Snapshot, table: str, name: Hashable, query: Query) -> pl.DataFrame:
        """The results of a query over each part of a chain, concatenated.

        Args:
            snapshot: The chain.
            table: The table that the query reads: cases, metrics, or facts.
            name: Everything that the result depends on in addition to the rows.
            query: The query.
        """
        (found,) = self.several(snapshot, [Asked(table, name, query)])
        return found

    def several(self, snapshot: Snapshot, asked: Sequence[Asked]) -> list[pl.DataFrame]:
        """The results of several queries, as from `of`. Results that are not kept are read together.

        Args:
            snapshot: The chain.
            asked: The queries.
        """
        if not self._frames.maxsize:
            return pl.collect_all([of.query(snapshot) for of in asked], engine="streaming")
        parts = {table: snapshot.by_file(table) for table in dict.fromkeys(of.table for of in asked)}
        keys = [[("" if file is None else file.sha256, of.name) for file, _ in parts[of.table]] for of in asked]
        with self._lock:
            frames = {key: self._frames[key] for of in keys for key in of if key in self._frames}
        missing = {
            key: of.query(part)
            for of, known in zip(asked, keys, strict=True)
            for key, (_, part) in zip(known, parts[of.table], strict=True)
            if key not in frames
        }
        made = dict(zip(missing, pl.collect_all(missing.values(), engine="streaming"), strict=True))
        with self._lock:
            for key, frame in made.items():
                if key[0] and _size(frame) <= self._frames.maxsize:
                    self._frames[key] = frame
        frames |= made
        return [pl.concat([frames[key] for key in of]) for of in keys]


def _size(frame: pl.DataFrame) -> float:
    # An empty frame takes room as well.
    return frame.estimated_size() + 1024
