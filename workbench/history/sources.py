"""The files that a history is imported from: opened read-only, regular, and of a known kind.

    source = examine(Path("2023.csv"), None)
    for batch in batches(source, map_, Cursor()): ...

The cells of a row are texts, whatever the kind of the file. Only the map says which types they have.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import polars as pl

from gate.errors import OperatorError

MAX_RECORD: Final = 1024 * 1024
"""How many bytes a row takes at most."""

MAX_ROWS: Final = 131_072
"""How many rows are looked at together."""

ROW: Final = ":row"
LINE: Final = ":line"
"""The columns with a row's number in its file, from 1, and the line it begins on; null where there are no lines."""

_KINDS: Final = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_PIECE: Final = 1024 * 1024
_OTHERS: Final = {
    b"PK\x03\x04": "is a workbook or zip archive, which cannot be read: save each sheet as CSV in UTF-8, or unpack it",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook, which cannot be read: save each sheet as CSV in UTF-8",
    b"\x1f\x8b": "is compressed with gzip; unpack it first",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; unpack it first",
    b"\xfd7zXZ": "is compressed with xz; unpack it first",
}
"""How files begin that are neither text nor Parquet, and what to do with them."""
_LONGEST_MARK: Final = 8


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is imported.

    Attributes:
        path: Its path.
        kind: `csv`, `parquet`, or `jsonl`.
        bytes: Its size.
        sha256: The hash of its bytes.
        changed: When it was last changed, in nanoseconds, according to the file system.
    """

    path: Path
    kind: str
    bytes: int
    sha256: str
    changed: int

    @property
    def name(self) -> str:
        """Its name, without its folder."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the sources were read.

    Attributes:
        source: Which of them, from 0.
        offset: How many bytes of it were read, or of a Parquet file, rows.
        row: How many rows of it.
        line: How many lines of it.
    """

    source: int = 0
    offset: int = 0
    row: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that is not imported.

    Attributes:
        file: The file's name.
        row: Its number in the file, from 1.
        line: The line it begins on; None where files have no lines.
        column: The column at fault; None where the whole row is.
        value: The cell; None where the whole row is at fault, or the cell is missing.
        code: What is wrong, as a stable word.
        reason: The same for a person.
    """

    file: str
    row: int
    line: int | None
    column: str | None
    value: str | None
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a source.

    Attributes:
        frame: Their cells as texts, the mapped columns by name, with `ROW` and `LINE`.
        refused: Rows that are no rows of such a file.
        cursor: How far the source is read with them.
        typed: The columns that the file has as dates or times, whose texts have one form.
    """

    frame: pl.DataFrame
    refused: tuple[Refused, ...]
    cursor: Cursor
    typed: frozenset[str] = frozenset()

    @property
    def rows(self) -> int:
        """How many rows there are, refused ones too."""
        return self.frame.height + len(self.refused)


def examine(path: Path, kind: str | None) -> Source:
    """A file that is to be imported; reads it once, for its hash.

    Args:
        path: The file. A link that the operator names is followed.
        kind: Its kind; None where its suffix tells.

    Raises:
        OperatorError: `HISTORY_SOURCE_UNUSABLE`.
    """
    kind = kind or _KINDS.get(path.suffix.lower())
    digest = hashlib.sha256()
    with opened(path) as file:
        _require_rows(path, file.read(_LONGEST_MARK))
        file.seek(0)
        while piece := file.read(_PIECE):
            digest.update(piece)
        known = os.fstat(file.fileno())
    if kind is None:
        raise unusable(path, f"has a name that does not end in {', '.join(_KINDS)}; set `format:` in the map")
    return Source(path, kind, known.st_size, digest.hexdigest(), known.st_mtime_ns)


def _require_rows(path: Path, start: bytes) -> None:
    """Refuses a workbook or a compressed file, whatever its name or the map says."""
    for mark, why in _OTHERS.items():
        if start.startswith(mark):
            raise unusable(path, why)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading.

    Raises:
        OperatorError: `HISTORY_SOURCE_UNUSABLE`.
    """
    try:
        # A pipe in the file's place would wait for its other end for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not the name of a file"
        raise unusable(path, f"cannot be read: {why}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise unusable(path, "is not a regular file; give a file of rows")
    with os.fdopen(descriptor, "rb") as file:
        try:
            yield file
        except OSError as error:
            raise unusable(path, f"cannot be read: {error.strerror}") from error


def require_unchanged(source: Source) -> None:
    """Refuses a file that was changed while it was imported.

    Raises:
        OperatorError: `HISTORY_SOURCE_CHANGED`.
    """
    try:
        found = source.path.stat()
    except OSError as error:
        raise unusable(source.path, f"cannot be read: {error.strerror}") from error
    if (found.st_size, found.st_mtime_ns) != (source.bytes, source.changed):
        raise OperatorError("HISTORY_SOURCE_CHANGED", f"{source.path} was changed during the import; import it again.")


def unusable(path: Path, why: str) -> OperatorError:
    """HISTORY_SOURCE_UNUSABLE, with the reason in it."""
    return OperatorError("HISTORY_SOURCE_UNUSABLE", f"{path} {why}.")
