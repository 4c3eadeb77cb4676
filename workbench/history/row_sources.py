"""JSON Lines and Parquet, read like CSV: cells as texts, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gate.encoding.strict_json import parse
from gate.errors import MaterialRefused
from workbench.history.csv_source import require_columns
from workbench.history.sources import LINE, MAX_RECORD, MAX_ROWS, ROW, Batch, Cursor, Refused, unusable
from workbench.lake.names import shown

_ROWS_OF_PARQUET: Final = 16_384
_MAX_GROUP: Final = 512 * 1024 * 1024
_MAX_BATCH: Final = 256 * 1024 * 1024
_MAX_BLOCK: Final = 8 * 1024 * 1024
_MAX_FOOTER: Final = 16 * 1024 * 1024
_NESTED: Final = "A column holds one value, but this is an array or an object."


class JsonSource:
    """A file of JSON Lines: an object on each line. A column is a member, or a path of members: `order.total`."""

    def __init__(self, path: Path, file: BinaryIO, columns: Sequence[str]) -> None:
        """Takes the open file."""
        self._path, self._file, self._columns = path, file, columns

    def batches(self, cursor: Cursor) -> Iterator[Batch]:
        """The rows after a cursor, batch by batch.

        Raises:
            OperatorError: `HISTORY_SOURCE_UNUSABLE`, with the line.
        """
        self._file.seek(cursor.offset)
        while True:
            batch = self._batch(cursor)
            if batch.cursor.offset == cursor.offset:
                return
            cursor = batch.cursor
            yield batch

    def _batch(self, cursor: Cursor) -> Batch:
        cells: dict[str, list[str | None]] = {name: [] for name in self._columns}
        rows, lines = [], []
        refused = []
        offset, row, line = cursor.offset, cursor.row, cursor.line
        while row - cursor.row < MAX_ROWS and offset - cursor.offset < _MAX_BLOCK:
            text = self._file.readline(MAX_RECORD + 1)
            if not text:
                break
            offset, line = offset + len(text), line + 1
            if len(text) > MAX_RECORD:
                raise unusable(self._path, f"has a line of more than {MAX_RECORD:,} bytes (line {line:,})")
            if line == 1:
                text = text.removeprefix(b"\xef\xbb\xbf")
            if not text.strip():
                continue
            row += 1
            found = self._read(text, row, line)
            if isinstance(found, Refused):
                refused.append(found)
                continue
            for name, value in found.items():
                cells[name].append(value)
            rows.append(row)
            lines.append(line)
        frame = pl.DataFrame(
            {**cells, ROW: rows, LINE: lines},
            schema={**dict.fromkeys(self._columns, pl.String), ROW: pl.Int64, LINE: pl.Int64},
        )
        return Batch(frame, tuple(refused), Cursor(cursor.source, offset, row, line))

    def _read(self, text: bytes, row: int, line: int) -> dict[str, str | None] | Refused:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise unusable(self._path, f"is not UTF-8; save it as UTF-8 (line {line:,})") from error
        try:
            found = orjson.loads(text)
            if text.count(b":") != _colons(found):
                # The strict reader takes several times as long, and refuses what this one mends: a repeated member.
                found = parse(text)
        except orjson.JSONDecodeError:
            return self._refused(row, line, None, "json", "The line is not JSON.")
        except MaterialRefused as error:
            return self._refused(row, line, None, "json", f"The line is not acceptable JSON. {error.message}")
        if not isinstance(found, dict):
            return self._refused(row, line, None, "json", "The line is not a JSON object.")
        cells: dict[str, str | None] = {}
        for name in self._columns:
            value = found[name] if name in found else _within(found, name)
            if isinstance(value, list | dict):
                return self._refused(row, line, name, "nested", _NESTED)
            cells[name] = _text(value)
        return cells

    def _refused(self, row: int, line: int, column: str | None, code: str, reason: str) -> Refused:
        return Refused(self._path.name, row, line, column, None, code, reason)


def _colons(value: Any) -> int:
    """How many colons the JSON of a value has; fewer than its text where a member stands there twice."""
    if isinstance(value, dict):
        return sum(1 + name.count(":") + _colons(item) for name, item in value.items())
    if isinstance(value, list):
        return sum(map(_colons, value))
    return value.count(":") if isinstance(value, str) else 0


def _within(found: Mapping[str, Any], path: str) -> Any:
    value: Any = found
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


class ParquetSource:
    """A Parquet file whose footer was read: each row group is measured before any of it is unpacked."""

    def __init__(self, path: Path, file: BinaryIO, columns: Sequence[str]) -> None:
        """Reads the footer.

        Raises:
            OperatorError: `HISTORY_SOURCE_UNUSABLE`, or `HISTORY_COLUMN_MISSING`.
        """
        self._path, self._columns = path, list(columns)
        try:
            self._require_footer(file)
            file.seek(0)
            self._file = pq.ParquetFile(
                file, thrift_string_size_limit=_MAX_FOOTER, thrift_container_size_limit=1_000_000
            )
            types = self._file.schema_arrow
        except (pa.ArrowException, OSError, ValueError) as error:
            raise unusable(path, "is not a complete Parquet file") from error
        if len(set(types.names)) != len(types.names):
            twice = next(name for name in types.names if types.names.count(name) > 1)
            raise unusable(path, f"has the column {shown(twice)} twice; give each column its own name")
        require_columns(path, columns, types.names)
        for name in columns:
            if pa.types.is_nested(types.field(name).type):
                raise unusable(path, f"has lists or structs in the column {shown(name)}; a column holds one value")
        self._typed = frozenset(
            name
            for name in columns
            if pa.types.is_date(types.field(name).type) or pa.types.is_timestamp(types.field(name).type)
        )
        texts = [name for name in columns if _is_text(types.field(name).type)]
        # As dictionaries a text that is repeated stands once, until it is known how much all of it takes.
        file.seek(0)
        self._file = pq.ParquetFile(
            file,
            read_dictionary=texts,
            thrift_string_size_limit=_MAX_FOOTER,
            thrift_container_size_limit=1_000_000,
        )
        self._require_groups()

    def _require_footer(self, file: BinaryIO) -> None:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        end = file.read(8)
        if not end.endswith(b"PAR1"):
            raise unusable(self._path, "is not a complete Parquet file")
        length = int.from_bytes(end[:4], "little")
        if length > _MAX_FOOTER:
            raise unusable(self._path, f"has a footer of {length:,} bytes; at most {_MAX_FOOTER:,} are read")

    def _require_groups(self) -> None:
        metadata = self._file.metadata
        wanted = {*self._columns}
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            size = sum(
                column.total_uncompressed_size
                for column in map(group.column, range(group.num_columns))
                if column.path_in_schema in wanted
            )
            if not 0 <= size <= _MAX_GROUP:
                raise unusable(
                    self._path,
                    f"has a row group that unpacks to {size:,} bytes (row group {number + 1}); at most {_MAX_GROUP:,} "
                    f"are read: write it with smaller row groups",
                )

    def batches(self, cursor: Cursor) -> Iterator[Batch]:
        """The rows after a cursor, batch by batch.

        Raises:
            OperatorError: `HISTORY_SOURCE_UNUSABLE`, with the row.
        """
        groups, skipped = self._groups_after(cursor.row)
        row = first = cursor.row
        parts: list[pl.DataFrame] = []
        try:
            for group in groups:
                # One at a time, so that a batch depends on where it begins alone.
                for read in self._file.iter_batches(_ROWS_OF_PARQUET, row_groups=[group], columns=self._columns):
                    piece, skipped = read.slice(skipped), max(0, skipped - read.num_rows)
                    if piece.num_rows:
                        parts.append(self._texts(piece, row))
                        row += piece.num_rows
                    if row - first >= MAX_ROWS:
                        yield self._joined(parts, first, cursor.source)
                        parts, first = [], row
        except (pa.ArrowException, OSError) as error:
            raise unusable(self._path, f"is damaged after row {row:,}") from error
        if parts:
            yield self._joined(parts, first, cursor.source)

    def _groups_after(self, row: int) -> tuple[list[int], int]:
        """The row groups that hold rows after some, and how many rows of the first of them are to be skipped."""
        metadata = self._file.metadata
        first = 0
        while first < metadata.num_row_groups and row >= metadata.row_group(first).num_rows:
            row -= metadata.row_group(first).num_rows
            first += 1
        return list(range(first, metadata.num_row_groups)), row

    def _joined(self, parts: Sequence[pl.DataFrame], first: int, source: int) -> Batch:
        frame = pl.concat(parts)
        rows = pl.int_range(first + 1, first + frame.height + 1, dtype=pl.Int64, eager=True).alias(ROW)
        end = first + frame.height
        frame = frame.with_columns(rows, pl.lit(None, pl.Int64).alias(LINE))
        return Batch(frame, (), Cursor(source, end, end, 0), self._typed)

    def _texts(self, read: pa.RecordBatch, row: int) -> pl.DataFrame:
        total = 0
        for name in self._columns:
            longest, taken = _sizes(read.column(name))
            total += taken
            if longest > MAX_RECORD or total > _MAX_BATCH:
                raise unusable(
                    self._path,
                    f"has rows that unpack to more than can be read (column {shown(name)}, after row {row:,}): a cell "
                    f"may take {MAX_RECORD:,} bytes, and {_ROWS_OF_PARQUET:,} rows {_MAX_BATCH:,}",
                )
        frame: Any = pl.from_arrow(read)
        texts: pl.DataFrame = frame.select(_as_text(name, dtype) for name, dtype in frame.schema.items())
        return texts


def _is_text(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(dtype)
        or pa.types.is_large_string(dtype)
        or pa.types.is_binary(dtype)
        or pa.types.is_large_binary(dtype)
    )


def _sizes(column: pa.Array) -> tuple[int, int]:
    """The bytes of the longest cell, and of all cells, as they are unpacked."""
    if not isinstance(column, pa.DictionaryArray):
        return 0, column.nbytes
    if not len(column.dictionary) or not _is_text(column.dictionary.type):
        return 0, column.nbytes
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return pc.max(lengths).as_py() or 0, pc.sum(lengths.take(column.indices)).as_py() or 0


def _as_text(name: str, dtype: pl.DataType) -> pl.Expr:
    cell = pl.col(name)
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone is None:
            return cell.dt.strftime("%Y-%m-%dT%H:%M:%S%.f")
        return cell.dt.convert_time_zone("UTC").dt.strftime("%Y-%m-%dT%H:%M:%S%.fZ")
    if isinstance(dtype, pl.Binary):
        return cell.cast(pl.String, strict=False)
    return cell.cast(pl.String)
