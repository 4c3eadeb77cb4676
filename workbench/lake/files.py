"""The lake's Parquet files: written whole, synced, and named before any manifest speaks of them."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NotRequired, TypedDict

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.lake.manifest import LakeFile, Manifest, directory_of, sync_directory, write_durably

ROW_GROUP: Final = 65_536
"""How many rows a row group has at most."""

# How the rows of a file are sorted: by policy first, so that a reader of one policy skips the others.
_ORDER: Final = ("policy_id", "position")
_ORDERS: Final[Mapping[str, Sequence[str]]] = {
    "metrics": ("policy_id", "name", "position"),
    "migrations": ("migration_id", "position"),
}


class _Packing(TypedDict):
    """How columns are written."""

    compression: str
    compression_level: NotRequired[int]
    use_dictionary: NotRequired[list[str]]
    write_statistics: NotRequired[list[str]]


_MONTHS: Final = 12
# Fewer rows are not worth a row group of their own.
_SMALL_GROUP: Final = 4_096
_WELL_PACKED: Final[_Packing] = {"compression": "zstd", "compression_level": 1}
# What readers choose rows by.
_TOLD: Final = frozenset({"position", "decision_position", "policy_id", "created_at", "reported_at"})
# How many files wait to be synced at most; each of them is open.
_UNSYNCED: Final = 16


class Files:
    """Writes the files of one commit of a scope."""

    def __init__(self, lake: Path, manifest: Manifest, chain_position: int, merkle_root: str) -> None:
        """Takes the manifest that the commit begins with, and how far the chain was followed for it."""
        self._lake = lake
        self._manifest = manifest
        self._chain_position = chain_position
        self._merkle_root = merkle_root
        self._directories: set[Path] = set()
        # Wait for the disk while the next file is made, which takes as long.
        self._syncing = ThreadPoolExecutor(1, "sync")
        self._unsynced: deque[Future[None]] = deque()

    def write(self, table: str, month: str, frame: pl.DataFrame) -> LakeFile:
        """Writes the rows of one table and month to a file of their own, durable once `sync` has returned.

        Args:
            table: The table.
            month: The month.
            frame: The rows.

        Raises:
            OSError: It cannot be written.
        """
        rows = in_order(table, frame)
        return self._write(table, month, rows, _arrow(rows))

    def write_months(self, table: str, frame: pl.DataFrame, time: str) -> Iterator[LakeFile]:
        """Writes the rows of one table to a file for each UTC month of a time column, as `write` does.

        Raises:
            OSError: One cannot be written.
        """
        months = list(by_month(in_order(table, frame), time))
        # All at once: of a few rows, converting takes as long as writing them.
        arrow = _arrow(pl.concat([rows for _, rows in months], rechunk=True))
        start = 0
        for month, rows in months:
            yield self._write(table, month, rows, arrow.slice(start, rows.height))
            start += rows.height

    def _write(self, table: str, month: str, rows: pl.DataFrame, arrow: pa.Table) -> LakeFile:
        first, last = _positions(rows)
        directory = directory_of(self._lake, self._manifest.scope_id) / f"month={month}"
        if directory not in self._directories:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{table}-{first:012d}-{last:012d}-{self._manifest.generation + 1}.parquet"
        place = str((directory / name).relative_to(self._lake))
        content, written = _made(place, table, month, rows, arrow)
        # Under its own name at once: nobody reads a file that no manifest lists.
        self._unsynced.append(self._syncing.submit(_sync, _write(directory / name, content)))
        if len(self._unsynced) > _UNSYNCED:
            self._unsynced.popleft().result()
        self._directories.add(directory)
        return replace(written, chain_position=self._chain_position, merkle_root=self._merkle_root)

    def sync(self) -> None:
        """Makes the files written durable, and their names.

        Raises:
            OSError: One cannot be.
        """
        while self._unsynced:
            self._unsynced.popleft().result()
        for directory in self._directories | {directory.parent for directory in self._directories}:
            sync_directory(directory)
        self._directories.clear()


def write_parquet(file: Path, path: str, table: str, frame: pl.DataFrame) -> LakeFile:
    """Writes the rows of a table to a file whose name is not durable yet; the caller says where they came from.

    Args:
        file: The file.
        path: Where it lies, or will, from the lake's directory.
        table: The table.
        frame: The rows.

    Raises:
        OSError: It cannot be written.
    """
    rows = in_order(table, frame)
    content, written = _made(path, table, "", rows, _arrow(rows))
    write_durably(file, content)
    return written


def _write(file: Path, content: bytes) -> int:
    """Writes a file of mode 0600, which is not durable yet; its descriptor."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as opened:
            opened.write(content)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _made(path: str, table: str, month: str, frame: pl.DataFrame, arrow: pa.Table) -> tuple[bytes, LakeFile]:
    """The content of a file, and what a manifest says of it; `frame` and `arrow` both hold its rows, in its order."""
    first, last = _positions(frame)
    content = _parquet(arrow, _row_groups(frame[_ORDERS.get(table, _ORDER)[0]]))
    return content, LakeFile(
        path=path,
        table=table,
        month=month,
        rows=frame.height,
        first_position=first,
        last_position=last,
        bytes=len(content),
        unpacked=int(frame.estimated_size()),
        sha256=hashlib.sha256(content).hexdigest(),
        chain_position=0,
        merkle_root="",
    )


def scan(files: list[Path], types: pl.Schema) -> pl.LazyFrame:
    """The rows of files that a manifest lists; columns that a file has not are null, others are passed over."""
    if not files:
        return pl.LazyFrame(schema=types)
    # Paths are not patterns, and folder names do not become columns.
    return pl.scan_parquet(
        files, schema=types, glob=False, hive_partitioning=False, missing_columns="insert", extra_columns="ignore"
    )


def read(file: Path) -> pl.DataFrame:
    """All rows of a file, with whatever columns it has."""
    return pl.read_parquet(file, glob=False, hive_partitioning=False)


def by_month(frame: pl.DataFrame, time: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of a frame by the UTC month of a time column, ascending; those of a month stay in their order."""
    month = pl.col(time).dt.year() * _MONTHS + pl.col(time).dt.month() - 1
    months = frame.select(month).to_series()
    if not months.is_sorted():
        frame, months = frame.sort(month, maintain_order=True), months.sort()
    start = 0
    for length, number in months.rle().struct.unnest().rows():
        yield _named(number), frame.slice(start, length)
        start += length


def _named(month: int) -> str:
    """The name of a month, by how many began before it since the year 0."""
    return f"{month // _MONTHS:04d}-{month % _MONTHS + 1:02d}"


def in_order(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows in the order in which the table's files have them."""
    # A column that holds one value, as the policy often does, takes no part in it.
    varying = [name for name in _ORDERS.get(table, _ORDER) if name == "position" or frame[name].n_unique() > 1]
    if len(varying) == 1 and frame[varying[0]].is_sorted():
        return frame
    return frame.sort(varying)


def _positions(frame: pl.DataFrame) -> tuple[int, int]:
    low: Any = frame["position"].min()
    high: Any = frame["position"].max()
    return int(low), int(high)


def _arrow(frame: pl.DataFrame) -> pa.Table:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _parquet(arrow: pa.Table, groups: Sequence[tuple[int, int]]) -> bytes:
    content = pa.BufferOutputStream()
    packing = _quickly_packed(arrow.schema) if arrow.num_rows < _SMALL_GROUP else _WELL_PACKED
    with pq.ParquetWriter(content, arrow.schema, **packing) as writer:
        for start, length in groups:
            writer.write_table(arrow.slice(start, length), row_group_size=ROW_GROUP)
    written: bytes = content.getvalue().to_pybytes()
    return written


def _quickly_packed(schema: pa.Schema) -> _Packing:
    """How small files are written, which are merged soon: what takes longer to make than it saves is left out."""
    made = [each.name for each in schema if pa.types.is_dictionary(each.type)]
    return {
        "compression": "snappy",
        "use_dictionary": made,
        "write_statistics": [name for name in schema.names if name in _TOLD],
    }


def _row_groups(policies: pl.Series) -> Sequence[tuple[int, int]]:
    """Where each row group starts, and its length, in rows that are sorted by what is in this column: row groups end
    where a policy ends, or whatever else the rows are sorted by.
    """
    if len(policies) <= _SMALL_GROUP:
        return [(0, len(policies))]
    groups: list[tuple[int, int]] = []
    start = length = 0
    for run in policies.rle().struct.field("len").to_list():
        if length and (length + run > ROW_GROUP or length >= _SMALL_GROUP):
            groups.append((start, length))
            start, length = start + length, 0
        length += run
    return [*groups, (start, length)]
