"""The history sets of an instance in its backups: imported past cases, which no ledger has.

They lie in the lake's directory as `history/scope=<id>/<name>/`, each with a manifest that names its files.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import orjson

from gate.errors import OperatorError
from gate.instance.keys import write_private

TABLE: Final = "history_files"
"""The table of a backup that holds their files."""

_MANIFEST: Final = "manifest.json"
_SETS: Final = f"history/scope=*/*/{_MANIFEST}"
_NAME: Final = re.compile(r"history/scope=[A-Za-z0-9_-]+/[a-z][a-z0-9_.-]{0,79}/[a-z][a-z0-9_.-]*", re.ASCII)
_TRIES: Final = 5


def add_histories(connection: sqlite3.Connection, lake: Path) -> None:
    """Adds the sets of a lake to a backup, each as it was at one moment.

    Raises:
        OSError: A file cannot be read.
    """
    connection.execute(f"CREATE TABLE {TABLE} (name TEXT PRIMARY KEY, content BLOB NOT NULL)")
    for manifest in sorted(lake.glob(_SETS)):
        if _NAME.fullmatch(str(manifest.relative_to(lake))):
            _add(connection, lake, manifest)


def _add(connection: sqlite3.Connection, lake: Path, manifest: Path) -> None:
    folder = str(manifest.parent.relative_to(lake))
    for left in reversed(range(_TRIES)):
        try:
            for name, content in _contents(lake, manifest):
                connection.execute(f"INSERT INTO {TABLE} VALUES (?, ?)", (name, content))  # noqa: S608
        except FileNotFoundError:
            # Rows were erased, or the set removed, while it was read.
            connection.execute(f"DELETE FROM {TABLE} WHERE name LIKE ? || '/%'", (folder,))  # noqa: S608
            if not manifest.exists():
                return
            if not left:
                raise
        else:
            return


def _contents(lake: Path, manifest: Path) -> Iterator[tuple[str, bytes]]:
    text = manifest.read_bytes()
    yield str(manifest.relative_to(lake)), text
    try:
        listed = [file["path"] for file in orjson.loads(text)["files"]]
    except (ValueError, KeyError, TypeError):
        # Damaged as it is; `gate lake verify` and the restored instance say so.
        listed = []
    for path in listed:
        yield path, (lake / path).read_bytes()


def restore_histories(file: Path, lake: Path) -> None:
    """Lays out the sets of a backup in a lake; none where it has none, or is of an earlier release.

    Raises:
        OperatorError: `BACKUP_UNREADABLE`: it names a file that is no set's.
        OSError: A file cannot be written.
        sqlite3.Error: The backup cannot be read.
    """
    with closing(sqlite3.connect(file)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)).fetchone() is None:
            return
        # The manifest of a set goes last, for it makes the others be seen.
        names = [name for (name,) in connection.execute(f"SELECT name FROM {TABLE}")]  # noqa: S608
        for name in sorted(names, key=lambda each: (each.endswith(f"/{_MANIFEST}"), each)):
            if _NAME.fullmatch(name) is None:
                raise OperatorError(
                    "BACKUP_UNREADABLE",
                    f"{file} contains a file name that no history can have. Use another backup.",
                )
            find = f"SELECT content FROM {TABLE} WHERE name = ?"  # noqa: S608
            target = lake / name
            for folder in (*reversed(target.parents[:4]),):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(target, connection.execute(find, (name,)).fetchone()[0])
