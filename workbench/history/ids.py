"""Whether an id was seen before, exactly, over as many rows as there are: on disk, in memory of a fixed size."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

_CACHE: Final = "PRAGMA cache_size = -65536"


class SeenIds:
    """The ids of the rows so far, each with the row's number in the whole set."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Takes the database; `seen_ids` opens one."""
        self._connection = connection

    def forget_after(self, row: int) -> None:
        """Takes out what a broken-off stretch added: the ids of later rows."""
        with self._connection:
            self._connection.execute("DELETE FROM ids WHERE row > ?", (row,))

    def add(self, ids: Sequence[str], rows: Sequence[int]) -> list[bool]:
        """Adds the ids of some rows; which of them were there already, of an earlier row."""
        connection = self._connection
        with connection:
            before = connection.total_changes
            connection.executemany("INSERT OR IGNORE INTO ids VALUES (?, ?)", zip(ids, rows, strict=True))
            if connection.total_changes - before == len(ids):
                return [False] * len(ids)
        find = "SELECT row FROM ids WHERE id = ?"
        return [connection.execute(find, (id_,)).fetchone()[0] != row for id_, row in zip(ids, rows, strict=True)]


@contextmanager
def seen_ids(file: Path | None) -> Iterator[SeenIds]:
    """The ids in a file, which is made where there is none; in a file of the system's own, for as long, where None."""
    # An empty name is a private file that SQLite keeps in memory while it is small, and removes.
    with closing(sqlite3.connect("" if file is None else file)) as connection:
        connection.execute(_CACHE)
        connection.execute("CREATE TABLE IF NOT EXISTS ids (id TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID")
        yield SeenIds(connection)
