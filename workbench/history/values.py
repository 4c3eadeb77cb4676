"""The cells of some rows, typed according to the map, or refused with a reason.

    typed = read_values(batch.frame, map_, "2023.csv", now)
    typed.frame        # a column for each field of the map, with the complete rows
    typed.refused      # the others, each with its first fault

Nothing is guessed. A number is written as in JSON. A boolean is true or false, or defined in the map. Cells that mean
"no value" are listed in null_values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

import polars as pl

from gate.encoding.strict_json import MAX_SAFE_INTEGER
from gate.ids import AHEAD, timestamp
from workbench.columns import OUTCOME_STATUS, VERDICT
from workbench.history.mapping import Map, Member
from workbench.history.reasons import MAX_TEXT, NUMBER, reason_of, sentences_of
from workbench.history.sources import LINE, ROW, Refused

Bound: TypeAlias = float | str | None
"""The end of a range: a number, or a time as text."""

_WHOLE: Final = r"^-?[0-9]+$"
_CONTROL: Final = r"[\x00-\x1f\x7f-\x9f\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{2069}\u{feff}]"
_TRUTHS: Final = {"true": True, "false": False}
_ID: Final = "id"
_DECIDED: Final = "occurred_at"
_NEEDED: Final = (_ID, _DECIDED)
_UNREPORTED: Final = "unreported"
_BAD: Final = ":bad:"
_EMPTY: Final = ":empty:"
_CELL: Final = ":cell:"
_FAULT: Final = ":fault"


@dataclass(frozen=True, slots=True)
class Tally:
    """The cells of a field.

    Attributes:
        values: The number of understood cells.
        absent: The number of empty cells.
        refused: The number of refused cells.
        examples: The first three understood cells, as in the file.
        least: The smallest understood number, or the earliest time in UTC; None for other kinds of fields.
        greatest: The greatest number, or the latest time.
    """

    values: int = 0
    absent: int = 0
    refused: int = 0
    examples: tuple[str, ...] = ()
    least: Bound = None
    greatest: Bound = None


@dataclass(frozen=True, slots=True)
class Typed:
    """Rows that were read by a map.

    Attributes:
        frame: The whole rows: a typed column for each member by its name, `ROW` and `LINE`.
        refused: The other rows, in their order.
        tallies: What all of them had, by member.
        reasons: How many rows have each fault, by column, stable word and reason; a row may have several.
    """

    frame: pl.DataFrame
    refused: tuple[Refused, ...]
    tallies: dict[str, Tally]
    reasons: Counter[tuple[str | None, str, str]]

    def without(self, duplicates: int) -> Typed:
        """With so many ids counted as refused, because earlier rows have them."""
        of = self.tallies[_ID]
        counted = replace(of, values=of.values - duplicates, refused=of.refused + duplicates)
        return replace(self, tallies={**self.tallies, _ID: counted})


def read_values(frame: pl.DataFrame, map_: Map, file: str, now: datetime) -> Typed:
    """The rows of a batch as the map has them.

    Args:
        frame: The cells as texts.
        map_: The map.
        file: What messages call the file.
        now: The moment of the import. No past case was decided later.
    """
    empty = pl.Series(list(map_.null_values), dtype=pl.String)
    blanked = frame.lazy().with_columns(
        pl.when(~pl.col(name).is_in(empty.implode())).then(pl.col(name)) for name in map_.columns
    )
    typed = blanked.select(
        ROW,
        LINE,
        *(_value(of).alias(of.name) for of in map_.members),
        *(pl.col(name).alias(f"{_CELL}{name}") for name in map_.columns),
    ).collect()
    checks: list[pl.Expr] = []
    for number, member in enumerate(map_.members):
        cell, value = pl.col(f"{_CELL}{member.column}"), pl.col(member.name)
        checks.append(_bad(member, cell, value, now).fill_null(value=False).alias(f"{_BAD}{number}"))
        checks.append(cell.is_null().alias(f"{_EMPTY}{number}"))
    read = typed.with_columns(checks)
    bad = [f"{_BAD}{number}" for number in range(len(map_.members))]
    first = pl.min_horizontal(pl.when(pl.col(name)).then(pl.lit(at, pl.Int32)) for at, name in enumerate(bad))
    read = read.with_columns(first.alias(_FAULT))
    whole = read if not read[_FAULT].count() else read.filter(pl.col(_FAULT).is_null())
    kept = whole.select(ROW, LINE, *(of.name for of in map_.members))
    sentences = _sentences(read, map_)
    refused = tuple(_refused(read, frame, map_, file, sentences))
    return Typed(kept, refused, _tallies(read, frame, map_), _reasons(read, map_, sentences))


def _value(member: Member) -> pl.Expr:
    cell = pl.col(member.column)
    if member.time is not None:
        return member.time.read(cell)
    if member.kind == "choice":
        dtype = VERDICT if member.name == "verdict" else OUTCOME_STATUS
        meant = {of: status for of, status in (member.values or {}).items() if status != _UNREPORTED}
        return _meaning(cell, meant, pl.String).cast(dtype)
    if member.kind == "boolean":
        return _meaning(cell, member.values or _TRUTHS, pl.Boolean)
    if member.kind in ("number", "integer"):
        return _number(cell)
    return cell


def _meaning(cell: pl.Expr, values: Any, dtype: Any) -> pl.Expr:
    if not values:
        return pl.lit(None, dtype)
    return cell.replace_strict([*values], [*values.values()], default=None, return_dtype=dtype)


def _number(cell: pl.Expr) -> pl.Expr:
    # Adding 0 leaves no -0, which JSON's canonical text does not have.
    number = pl.when(cell.str.contains(NUMBER)).then(cell).cast(pl.Float64, strict=False) + 0.0
    return pl.when(number.is_finite()).then(number)


def _bad(member: Member, cell: pl.Expr, value: pl.Expr, now: datetime) -> pl.Expr:
    there = cell.is_not_null()
    if member.kind == "id":
        return ~there | (cell.str.len_chars() > MAX_TEXT) | cell.str.contains(_CONTROL)
    if member.kind == "text":
        return cell.str.len_chars() > MAX_TEXT
    if member.kind == "choice":
        return there & ~cell.is_in(pl.Series([*(member.values or {})], dtype=pl.String).implode())
    if member.kind == "integer":
        return there & (value.is_null() | (value != value.floor()) | (value.abs() > MAX_SAFE_INTEGER))
    if member.kind == "number":
        # An integer beyond these would be stored as another one.
        rounded = cell.str.contains(_WHOLE) & (value.abs() > MAX_SAFE_INTEGER)
        return there & (value.is_null() | rounded)
    if member.kind == "string":
        return pl.lit(value=False)
    if member.name == _DECIDED:
        return ~there | value.is_null() | (value > now + AHEAD)
    return there & value.is_null()


def _sentences(read: pl.DataFrame, map_: Map) -> dict[int, pl.Series]:
    """Why cells are refused, row by row, by the place of each member that has more than one reason."""
    found = {}
    for number, member in enumerate(map_.members):
        bad = read[f"{_BAD}{number}"]
        if not bad.any():
            continue
        cells = read.select(pl.when(bad).then(pl.col(f"{_CELL}{member.column}"))).to_series()
        sentences = sentences_of(member, cells, read[member.name])
        if sentences is not None:
            found[number] = sentences
    return found


def _refused(
    read: pl.DataFrame, frame: pl.DataFrame, map_: Map, file: str, sentences: Mapping[int, pl.Series]
) -> Iterator[Refused]:
    at = read[_FAULT].is_not_null().arg_true()
    if not len(at):
        return
    faults = read.select(ROW, LINE, _FAULT)[at]
    for place, (row, line, fault) in zip(at, faults.iter_rows(), strict=True):
        member = map_.members[fault]
        sentence = sentences[fault][place] or "" if fault in sentences else ""
        code, reason = reason_of(member, empty=read[f"{_EMPTY}{fault}"][place], sentence=sentence)
        yield Refused(file, row, line, member.column, frame[member.column][place], code, reason)


def _reasons(read: pl.DataFrame, map_: Map, sentences: Mapping[int, pl.Series]) -> Counter[tuple[str | None, str, str]]:
    found: Counter[tuple[str | None, str, str]] = Counter()
    for number, member in enumerate(map_.members):
        bad, is_empty = read[f"{_BAD}{number}"], read[f"{_EMPTY}{number}"]
        for empty in (True, False):
            if rows := int((bad & (is_empty if empty else ~is_empty)).sum()):
                # Members that read one column and refuse a cell for the same reason refuse the same rows.
                whys = [("", rows)]
                if number in sentences and not empty:
                    whys = sentences[number].drop_nulls().value_counts().rows()
                for why, of in whys:
                    found[(member.column, *reason_of(member, empty=empty, sentence=why))] = of
    return found


def _tallies(read: pl.DataFrame, frame: pl.DataFrame, map_: Map) -> dict[str, Tally]:
    sums = read.select(pl.col(f"^{_BAD}.*$", f"^{_EMPTY}.*$").sum()).row(0, named=True)
    bounds = _bounds(read, map_)
    tallies = {}
    for number, member in enumerate(map_.members):
        empty = sums[f"{_EMPTY}{number}"] or 0
        # A needed cell that is empty is refused, and counts once.
        refused = sums[f"{_BAD}{number}"] or 0
        both = empty if member.name in _NEEDED else 0
        understood = ~read[f"{_BAD}{number}"] & ~read[f"{_EMPTY}{number}"]
        examples = frame[member.column].gather(understood.arg_true().head(3)).to_list()
        values = read.height - refused - empty + both
        tallies[member.name] = Tally(values, empty - both, refused, tuple(examples), *bounds.get(number, ()))
    return tallies


def _bounds(read: pl.DataFrame, map_: Map) -> dict[int, tuple[Bound, Bound]]:
    """The least and the greatest of the understood numbers and times, by the place of their member."""
    ranged = [number for number, of in enumerate(map_.members) if of.time or of.kind in ("number", "integer")]
    understood = {number: pl.col(map_.members[number].name).filter(~pl.col(f"{_BAD}{number}")) for number in ranged}
    found = read.select(
        *(of.min().alias(f"least {number}") for number, of in understood.items()),
        *(of.max().alias(f"greatest {number}") for number, of in understood.items()),
    ).row(0)
    written = [timestamp(of) if isinstance(of, datetime) else of for of in found]
    return dict(zip(ranged, zip(written[: len(ranged)], written[len(ranged) :], strict=True), strict=True))
