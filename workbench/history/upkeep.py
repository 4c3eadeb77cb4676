"""Keeping history sets: erasing rows by their ids, removing a set, and holding its files against its manifest."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from gate.errors import OperatorError
from workbench.columns import schema
from workbench.history import sets
from workbench.history.sets import HistorySet
from workbench.history.tables import POSITION, ROW_PREFIX
from workbench.lake.files import read, scan, write_parquet
from workbench.lake.lease import lease, unwritable
from workbench.lake.manifest import FILE_NAME, LakeFile, sync_directory
from workbench.lake.names import shown

_PATIENCE: Final = 30.0
_PIECE: Final = 1024 * 1024


class Erased(NamedTuple):
    """What an erasure did.

    Attributes:
        found: The set after it.
        now: The ids of the rows that it erased.
        before: The ids among those given that were erased before.
    """

    found: HistorySet
    now: tuple[str, ...]
    before: tuple[str, ...]


def erase(lake: Path, scope_id: str, scope: str, name: str, ids: Sequence[str]) -> Erased:
    """Erases rows of a set; their ids stay in its manifest, so that importing the files again does not bring them back.

    Args:
        lake: The lake's directory.
        scope_id: The scope.
        scope: Its name.
        name: The set.
        ids: The rows' own ids, or their decision ids, which begin with `row:`; one that is erased already stays so.

    Raises:
        OperatorError: `HISTORY_UNKNOWN`; `HISTORY_ROW_UNKNOWN`, and nothing is erased; `HISTORY_MANIFEST_INVALID`,
            `LAKE_BUSY`, or `LAKE_UNWRITABLE`.
    """
    folder = sets.folder_of(lake, scope_id)
    sets.require(lake, scope_id, scope, name)
    with lease(folder, patience=_PATIENCE):
        found = sets.require(lake, scope_id, scope, name)
        try:
            there = _positions(lake, found, ids)
            own = tuple(dict.fromkeys(_own_id(found, there, of) for of in ids))
            before = tuple(of for of in own if of in found.erased)
            erased = _erased(lake, found, {of: there[of] for of in own if of not in found.erased})
            # Also what an erasure that was broken off left behind.
            _sweep(sets.directory_of(lake, scope_id, name), erased)
        except OSError as error:
            raise unwritable(folder, error) from error
    return Erased(erased, tuple(of for of in own if of not in before), before)


def _positions(lake: Path, found: HistorySet, ids: Sequence[str]) -> dict[str, int]:
    """The positions of the rows that ids may mean, by the rows' own ids; those that are erased have none."""
    cases = scan([lake / file.path for file in found.files if file.table == "cases"], schema("cases"))
    # A row's own id may begin with the prefix.
    wanted = pl.Series(sorted({*ids, *(f"{ROW_PREFIX}{of}" for of in ids)}), dtype=pl.String)
    rows = cases.filter(pl.col("decision_id").is_in(wanted.implode())).select("decision_id", POSITION)
    return {id_.removeprefix(ROW_PREFIX): position for id_, position in rows.collect(engine="streaming").iter_rows()}


def _own_id(found: HistorySet, there: Mapping[str, int], given: str) -> str:
    """The row's own id that an id means: it itself, or what follows the prefix."""
    meant = [of for of in dict.fromkeys((given, given.removeprefix(ROW_PREFIX))) if of in there or of in found.erased]
    if len(meant) > 1:
        raise OperatorError(
            "HISTORY_ROW_UNKNOWN",
            f"{shown(given)} may mean two rows, so nothing was erased. Write {shown(ROW_PREFIX + given)} for the "
            f"row with this id, or {shown(meant[1])} for the other one.",
        )
    if not meant:
        raise OperatorError(
            "HISTORY_ROW_UNKNOWN",
            f"The history {found.name} of scope {found.scope} has no row {shown(given)}, so nothing was erased. "
            "Check the id: it is the cell of the column that the map uses as id.",
        )
    return meant[0]


def _erased(lake: Path, found: HistorySet, rows: Mapping[str, int]) -> HistorySet:
    if not rows:
        return found
    positions = pl.Series(sorted(rows.values()), dtype=pl.Int64)
    directory = sets.directory_of(lake, found.scope_id, found.name)
    generation = found.generation + 1
    files = [
        kept
        for file in found.files
        for kept in _without(lake, file, positions, f"{file.table}-{file.first_position:012d}-{generation}.parquet")
    ]
    erased = replace(found, files=tuple(files), erased=tuple(sorted({*found.erased, *rows})), generation=generation)
    sync_directory(directory)
    sets.save(directory, erased)
    sync_directory(directory)
    return erased


def _without(lake: Path, file: LakeFile, positions: pl.Series, name: str) -> Iterator[LakeFile]:
    """A file without the rows at some positions; nothing where no row is left."""
    if not positions.is_between(file.first_position, file.last_position).any():
        yield file
        return
    rows = read(lake / file.path)
    left = rows.filter(~pl.col(POSITION).is_in(positions.implode()))
    if left.height == rows.height:
        yield file
    elif left.height:
        place = Path(file.path).with_name(name)
        yield write_parquet(lake / place, str(place), file.table, left)


def _sweep(directory: Path, found: HistorySet) -> None:
    """Removes the files that the manifest does not list."""
    kept = {FILE_NAME, *(Path(file.path).name for file in found.files)}
    for file in directory.iterdir():
        if file.name not in kept:
            file.unlink()
    sync_directory(directory)


def remove(lake: Path, scope_id: str, scope: str, name: str) -> None:
    """Removes a set, and what an import of it that was broken off left behind.

    Raises:
        OperatorError: `HISTORY_UNKNOWN`, `LAKE_BUSY` or `LAKE_UNWRITABLE`.
    """
    sets.require_name(name)
    directory = sets.directory_of(lake, scope_id, name)
    staging, removed = (directory.with_name(f".{what}-{name}") for what in ("importing", "removed"))
    if not any(of.exists() for of in (directory, staging, removed)):
        raise sets.unknown(scope, name, sets.names_of(lake, scope_id))
    with lease(directory.parent, patience=_PATIENCE):
        try:
            shutil.rmtree(removed, ignore_errors=True)
            if directory.exists():
                # In one step: half of a set is never there to be read.
                directory.rename(removed)
                sync_directory(directory.parent)
            for left in (removed, staging):
                if left.exists():
                    shutil.rmtree(left)
            sync_directory(directory.parent)
        except OSError as error:
            raise unwritable(directory.parent, error) from error


def faults(lake: Path, found: HistorySet) -> Iterator[str]:
    """What is wrong with the files of a set, each as a sentence; nothing where all is well."""
    for file in found.files:
        try:
            digest = _digest(lake / file.path)
        except OSError as error:
            yield f"{file.path} cannot be read: {error.strerror}."
            continue
        if digest != (file.sha256, file.bytes):
            yield f"{file.path} was changed or damaged after it was written."
    rows = sum(file.rows for file in found.files if file.table == "cases")
    if rows != found.rows - len(found.erased):
        yield f"Its files have {rows:,} rows; the manifest says {found.rows:,}, {len(found.erased):,} of them erased."


def _digest(file: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return digest.hexdigest(), size
