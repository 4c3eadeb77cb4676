"""Reads CSV as in RFC 4180: UTF-8, commas, quotes doubled within quotes, and a header. Lines end in `LF` or `CRLF`.

The ends of records in a block are found before any of it is parsed. So a record without an end is refused as soon as it
is longer than `MAX_RECORD`, and is never held as a whole.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from gate.errors import OperatorError
from workbench.history.sources import LINE, MAX_RECORD, MAX_ROWS, ROW, Batch, Cursor, Refused, unusable
from workbench.lake.names import choices, shown

_BLOCK: Final = 8 * 1024 * 1024
_MAX_COLUMNS: Final = 2_000
_BOM: Final = b"\xef\xbb\xbf"
_MAGIC: Final = {
    b"\xff\xfe": "is UTF-16, and not UTF-8; save it as UTF-8",
    b"\xfe\xff": "is UTF-16, and not UTF-8; save it as UTF-8",
    b"PAR1": "is a Parquet file; rename it to .parquet, or set `format: parquet` in the map",
}
_QUOTE, _COMMA, _LF, _CR = b'",\n\r'

_Numbers = NDArray[np.int64]


class CsvSource:
    """A CSV file whose header was read."""

    def __init__(self, path: Path, file: BinaryIO, columns: Sequence[str]) -> None:
        """Reads the header.

        Raises:
            OperatorError: `HISTORY_SOURCE_UNUSABLE`, or `HISTORY_COLUMN_MISSING`.
        """
        self._path, self._file, self._columns = path, file, columns
        start = file.read(4)
        for magic, why in _MAGIC.items():
            if start.startswith(magic):
                raise unusable(path, why)
        self._begin = len(_BOM) if start.startswith(_BOM) else 0
        header, self._after, self._header_lines = self._header()
        self._width = len(header)
        self._places = {name: f"c{header.index(name)}" for name in columns}

    def batches(self, cursor: Cursor) -> Iterator[Batch]:
        """The rows after a cursor, batch by batch.

        Raises:
            OperatorError: `HISTORY_SOURCE_UNUSABLE`, with the line.
        """
        cursor = Cursor(cursor.source, cursor.offset or self._after, cursor.row, cursor.line or self._header_lines)
        rest = b""
        self._file.seek(cursor.offset)
        while True:
            # A batch depends on where it begins alone, so that an import that goes on makes the same ones.
            read = self._file.read(_BLOCK - len(rest))
            final, block = len(rest) + len(read) < _BLOCK, rest + read
            if not block:
                return
            if final and not block.endswith(b"\n"):
                block += b"\n"
            records = self._records(block, cursor.line, final=final).first(MAX_ROWS)
            batch = self._batch(records, cursor)
            cursor, rest = batch.cursor, block[records.end :]
            yield batch

    def _batch(self, records: _Records, cursor: Cursor) -> Batch:
        blank, wide = records.blank(), records.cells() != self._width
        wrong = wide & ~blank
        numbers = np.cumsum(~blank) + cursor.row
        lines = records.lines + cursor.line
        refused = tuple(
            self._refused(int(numbers[at]), int(lines[at]), int(records.cells()[at])) for at in np.flatnonzero(wrong)
        )
        kept = ~wrong & ~blank
        frame = self._parsed(records.text(kept if wrong.any() else None), int(kept.sum()))
        frame = frame.with_columns(pl.Series(ROW, numbers[kept], pl.Int64), pl.Series(LINE, lines[kept], pl.Int64))
        end = Cursor(
            cursor.source,
            cursor.offset + len(records.block),
            int(numbers[-1]) if len(numbers) else cursor.row,
            cursor.line + records.feeds,
        )
        return Batch(frame, refused, end)

    def _refused(self, row: int, line: int, cells: int) -> Refused:
        reason = f"The row has {cells} cells, and the header {self._width}."
        return Refused(self._path.name, row, line, None, None, "cells", reason)

    def _parsed(self, text: bytes, rows: int) -> pl.DataFrame:
        places = list(dict.fromkeys(self._places.values()))
        if not rows:
            return pl.DataFrame(schema=dict.fromkeys(self._places, pl.String))
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=arrow_csv.ReadOptions(
                column_names=[f"c{at}" for at in range(self._width)], block_size=2 * MAX_RECORD
            ),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=places, column_types=dict.fromkeys(places, pa.large_string())
            ),
        )
        read: Any = pl.from_arrow(table)
        if read.height != rows:
            raise AssertionError(f"{self._path}: {read.height} rows were parsed of {rows}")
        cells: pl.DataFrame = read.select(pl.col(place).alias(name) for name, place in self._places.items())
        return cells

    # --- The ends of records ------------------------------------------------------------------------------------------

    def _records(self, block: bytes, line: int, *, final: bool) -> _Records:
        """The whole records at the beginning of a block."""
        if (nul := block.find(b"\0")) >= 0:
            self._fail(block, nul, line, "has a NUL byte: it is not text, or is UTF-16; save it as UTF-8")
        codes = np.frombuffer(block, np.uint8)
        quotes = np.flatnonzero(codes == _QUOTE)
        feeds = np.flatnonzero(codes == _LF)
        ends = feeds[_outside(quotes, feeds)] + 1
        end = int(ends[-1]) if len(ends) else 0
        longest = np.diff(ends, prepend=0)
        if len(longest) and int(longest.max()) > MAX_RECORD:
            self._too_long(block, int(ends[int(longest.argmax())] - longest.max()), line)
        if len(block) - end > MAX_RECORD:
            self._too_long(block, end, line)
        if final and end < len(block):
            self._fail(
                block,
                end,
                line,
                "has an unclosed quote in the row that starts there; double the quotes inside a cell",
            )
        quotes = quotes[: np.searchsorted(quotes, end)]
        feeds = feeds[: np.searchsorted(feeds, end)]
        self._require_well_formed(block, codes[:end], quotes, line)
        commas = np.flatnonzero(codes[:end] == _COMMA)
        return _Records(block[:end], ends, feeds, commas[_outside(quotes, commas)], end)

    def _require_well_formed(self, block: bytes, codes: NDArray[np.uint8], quotes: _Numbers, line: int) -> None:
        returns = np.flatnonzero(codes == _CR)
        returns = returns[_outside(quotes, returns)]
        lone = returns[codes[returns + 1] != _LF] if len(returns) else returns
        if len(lone):
            self._fail(block, int(lone[0]), line, "has a carriage return without a line feed; end lines in LF or CRLF")
        opening, closing = quotes[::2], quotes[1::2]
        # A record that is whole ends in a line feed, so there is a character after each closing quote.
        before = codes[opening - 1]
        stray = opening[(opening > 0) & ~np.isin(before, (_COMMA, _LF, _QUOTE))]
        late = closing[~np.isin(codes[closing + 1], (_COMMA, _LF, _CR, _QUOTE))]
        if len(stray) or len(late):
            at = int(min([*stray[:1], *late[:1]]))
            self._fail(
                block, at, line, "has a quote inside a cell; put the cell in quotes, and double the quotes inside it"
            )
        try:
            block[: len(codes)].decode()
        except UnicodeDecodeError as error:
            self._fail(block, error.start, line, "is not UTF-8; save it as UTF-8")

    def _too_long(self, block: bytes, start: int, line: int) -> NoReturn:
        self._fail(block, start, line, f"has a row of more than {MAX_RECORD:,} bytes, or an unclosed quote in it")

    def _fail(self, block: bytes, at: int, line: int, why: str) -> NoReturn:
        number = line + block.count(b"\n", 0, at) + 1
        raise unusable(self._path, f"{why} (line {number:,})")

    # --- The header ---------------------------------------------------------------------------------------------------

    def _header(self) -> tuple[list[str], int, int]:
        """The names of the columns, where the rows begin, and how many lines stand before them."""
        self._file.seek(self._begin)
        block = self._file.read(MAX_RECORD + 1)
        final = len(block) <= MAX_RECORD
        if final and block and not block.endswith(b"\n"):
            block += b"\n"
        codes = np.frombuffer(block, np.uint8)
        feeds = np.flatnonzero(codes == _LF)
        ends = feeds[_outside(np.flatnonzero(codes == _QUOTE), feeds)] + 1
        if not len(ends) and not final:
            self._too_long(block, 0, 0)
        text = block[: int(ends[0])] if len(ends) else block
        self._records(text, 0, final=True)
        names = next(csv.reader(text.decode().splitlines(keepends=True), strict=True), []) if text.strip() else []
        self._require_header(names)
        return names, min(self._begin + len(text), self._size()), text.count(b"\n")

    def _size(self) -> int:
        return self._file.seek(0, 2)

    def _require_header(self, names: Sequence[str]) -> None:
        if not names:
            raise unusable(self._path, "has no header: its first line must name the columns")
        if len(names) > _MAX_COLUMNS:
            raise unusable(self._path, f"has {len(names):,} columns; at most {_MAX_COLUMNS:,} are read")
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise unusable(self._path, f"has the column {shown(twice[0])} twice; give each column its own name")
        require_columns(self._path, self._columns, names)


@dataclass(frozen=True, slots=True)
class _Records:
    """Whole records: where each ends, the line feeds, and the commas between cells."""

    block: bytes
    ends: _Numbers
    line_feeds: _Numbers
    commas: _Numbers
    end: int

    @property
    def starts(self) -> _Numbers:
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1]]) if len(self.ends) else self.ends

    @property
    def feeds(self) -> int:
        return len(self.line_feeds)

    @property
    def lines(self) -> _Numbers:
        """On which line each begins, from 1."""
        return np.searchsorted(self.line_feeds, self.starts).astype(np.int64) + 1

    def cells(self) -> _Numbers:
        return (np.searchsorted(self.commas, self.ends) - np.searchsorted(self.commas, self.starts) + 1).astype(
            np.int64
        )

    def blank(self) -> NDArray[np.bool_]:
        """Which of them are empty lines."""
        codes = np.frombuffer(self.block, np.uint8)
        length = self.ends - self.starts
        blank: NDArray[np.bool_] = (length == 1) | ((length == 2) & (codes[self.starts] == _CR))
        return blank

    def text(self, kept: NDArray[np.bool_] | None) -> bytes:
        """Their bytes; of some of them where they are named."""
        if kept is None:
            return self.block
        return b"".join(self.block[start:end] for start, end in zip(self.starts[kept], self.ends[kept], strict=True))

    def first(self, most: int) -> _Records:
        """The first of them."""
        if len(self.ends) <= most:
            return self
        end = int(self.ends[most - 1])
        return _Records(
            self.block[:end],
            self.ends[:most],
            self.line_feeds[: np.searchsorted(self.line_feeds, end)],
            self.commas[: np.searchsorted(self.commas, end)],
            end,
        )


def _outside(quotes: _Numbers, places: _Numbers) -> NDArray[np.bool_]:
    """Which places are in no quotes: an even number of quotes stands before them."""
    if not len(quotes):
        return np.ones(len(places), np.bool_)
    outside: NDArray[np.bool_] = np.searchsorted(quotes, places) % 2 == 0
    return outside


def require_columns(path: Path, wanted: Sequence[str], names: Sequence[str]) -> None:
    """Refuses a file that lacks a mapped column.

    Raises:
        OperatorError: `HISTORY_COLUMN_MISSING`.
    """
    for name in wanted:
        if name not in names:
            hint = " Its cells may be separated by semicolons or tabs; use commas." if len(names) == 1 else ""
            raise OperatorError(
                "HISTORY_COLUMN_MISSING",
                f"{path} has no column {shown(name)}, which the map names. {choices(name, names)}{hint}",
            )
