"""Imports a history: reads it in stretches, writes it next to the sets, and makes it visible when it is complete.

    done = import_history(plan)
    done.found.history_hash

Progress is saved after each stretch, so the same command continues where a killed one stopped. A stretch depends only
on the sources and the map, so the set has the same bytes after any number of interruptions. A rehearsal does everything
except writing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import orjson
import polars as pl

from gate.encoding.canonical import content_hash
from gate.errors import OperatorError
from gate.ids import parse_timestamp, timestamp
from workbench.history import sets
from workbench.history.accounts.account import Account, account_of, read_account
from workbench.history.accounts.cells import shown_refused
from workbench.history.csv_source import CsvSource
from workbench.history.ids import SeenIds, seen_ids
from workbench.history.mapping import Map
from workbench.history.row_sources import JsonSource, ParquetSource
from workbench.history.sets import HistorySet, SourceFile
from workbench.history.sources import LINE, ROW, Batch, Cursor, Refused, Source, opened, require_unchanged
from workbench.history.tables import POSITION, Tables
from workbench.history.values import read_values
from workbench.lake.entries import Personal
from workbench.lake.files import write_parquet
from workbench.lake.lease import lease, unwritable
from workbench.lake.manifest import FILE_NAME, LakeFile, sync_directory, write_durably

_PATIENCE: Final = 30.0
_STATE: Final = "state.json"
_IDS: Final = "ids.db"
_DUPLICATE: Final = ("duplicate_id", "An earlier row has this id.")

_Reader: TypeAlias = CsvSource | JsonSource | ParquetSource


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be imported, and as what.

    Attributes:
        lake: The lake's directory.
        scope_id: The scope.
        scope: Its name.
        name: The set's name.
        map_: The map.
        sources: The files, in order.
        personal: What is left out.
        now: The moment of the import, in UTC.
    """

    lake: Path
    scope_id: str
    scope: str
    name: str
    map_: Map
    sources: Sequence[Source]
    personal: Personal
    now: datetime

    @property
    def directory(self) -> Path:
        """Where the set is to lie."""
        return sets.directory_of(self.lake, self.scope_id, self.name)

    @property
    def staging(self) -> Path:
        """Where it is made. No set's name begins with a dot."""
        return self.directory.with_name(f".importing-{self.name}")

    @property
    def key(self) -> str:
        """What the bytes of the set depend on."""
        return content_hash(
            {
                "importer_version": sets.IMPORTER_VERSION,
                "scope_id": self.scope_id,
                "files": [[source.sha256, source.kind, source.name] for source in self.sources],
                "map_hash": self.map_.hash,
                "personal": list(self.personal.marks),
            }
        )

    def set_of(self, account: Account, files: Sequence[LakeFile], erased: Sequence[str]) -> HistorySet:
        """The set that its rows are."""
        return HistorySet(
            self.scope_id,
            self.scope,
            self.name,
            tuple(SourceFile(source.name, source.bytes, source.sha256) for source in self.sources),
            self.map_.document,
            account.rows,
            account.refused,
            tuple(sorted(erased)),
            self.personal.marks,
            tuple(files),
        )


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of an import.

    Attributes:
        account: What was understood; None where the set was there already and nothing was read.
        found: The set; None for a rehearsal, and where refused rows stopped the import or no row was understood.
        already: Whether it was there already.
        resumed: How many rows an earlier, broken-off import had read.
    """

    account: Account | None
    found: HistorySet | None
    already: bool = False
    resumed: int = 0


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A stretch of the sources that was read."""

    cursor: Cursor
    account: Account
    tables: dict[str, pl.DataFrame]
    refused: Sequence[Refused]


@dataclass(slots=True)
class _Done:
    """The stretches so far.

    Attributes:
        now: When the import began.
        cursor: How far the sources were read.
        account: What was understood.
        stretches: How many there are.
        files: What they wrote.
    """

    now: datetime
    cursor: Cursor = field(default_factory=Cursor)
    account: Account = field(default_factory=Account)
    stretches: int = 0
    files: list[LakeFile] = field(default_factory=list)


def rehearse(
    plan: Plan,
    refused_to: BinaryIO | None = None,
    told: Callable[[int], None] = lambda done: None,
) -> Imported:
    """Reads everything, and writes nothing.

    Args:
        plan: What would be imported.
        refused_to: Where every refused row is written, as JSON Lines; None for nowhere.
        told: Told how many bytes of the sources were read.

    Raises:
        OperatorError: `HISTORY_SOURCE_UNUSABLE`, `HISTORY_SOURCE_CHANGED` or `HISTORY_COLUMN_MISSING`.
    """
    account = Account()
    with seen_ids(None) as seen:
        for stretch in _stretches(plan, _Done(plan.now), seen, frozenset(), tabled=False):
            account = account.plus(stretch.account)
            if refused_to is not None:
                refused_to.write(_lines(stretch.refused))
            told(_bytes_read(plan, stretch.cursor))
    return Imported(account, None)


def import_history(
    plan: Plan,
    *,
    allow_refused: bool = False,
    refused_to: BinaryIO | None = None,
    told: Callable[[int], None] = lambda done: None,
) -> Imported:
    """Imports a history, or continues an interrupted import.

    Args:
        plan: The import.
        allow_refused: Whether to import although some rows are refused, as long as others are understood.
        refused_to: As for `rehearse`.
        told: As for `rehearse`.

    Raises:
        OperatorError: As `rehearse`; `HISTORY_EXISTS` if the name has other content; `HISTORY_MANIFEST_INVALID`,
            `LAKE_BUSY`, or `LAKE_UNWRITABLE`.
    """
    folder = sets.folder_of(plan.lake, plan.scope_id)
    with lease(folder, patience=_PATIENCE), _writing(folder):
        there = sets.load(plan.lake, plan.scope_id, plan.name)
        if there is not None:
            _require_same(plan, there)
            if _is_whole(plan.lake, there):
                return Imported(None, there, already=True)
        erased = () if there is None else there.erased
        done = _begin(plan)
        resumed = done.account.read
        with seen_ids(plan.staging / _IDS) as seen:
            seen.forget_after(resumed)
            for stretch in _stretches(plan, done, seen, frozenset(erased), tabled=True):
                _keep(plan, done, stretch)
                told(_bytes_read(plan, done.cursor))
        if refused_to is not None:
            _copy_refused(plan, refused_to)
        if not done.account.rows or (done.account.refused and not allow_refused):
            # Cells of the sources are not left lying about.
            shutil.rmtree(plan.staging)
            return Imported(done.account, None, resumed=resumed)
        found = plan.set_of(done.account, done.files, erased)
        _publish(plan, found)
        return Imported(done.account, found, resumed=resumed)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable(folder, error) from error


def foreseen(plan: Plan, account: Account, *, allow_refused: bool) -> str:
    """The result that an import would have after this rehearsal.

    It is `nothing` if the history already exists, `refuse_name` if the name has other content, `refuse_empty` if no row
    was understood, `refuse_rows`, or `import`.

    Args:
        plan: The rehearsed import.
        account: The report of the rehearsal.
        allow_refused: As for `import_history`.

    Raises:
        OperatorError: `HISTORY_MANIFEST_INVALID`.
    """
    there = sets.load(plan.lake, plan.scope_id, plan.name)
    if there is not None and _differences(plan, there):
        return "refuse_name"
    if there is not None and _is_whole(plan.lake, there):
        return "nothing"
    if not account.rows:
        return "refuse_empty"
    return "refuse_rows" if account.refused and not allow_refused else "import"


def _differences(plan: Plan, there: HistorySet) -> list[str]:
    """In what a set differs from the one that is planned under its name."""
    wanted = plan.set_of(Account(), (), ())
    told = [
        ("files", [of.sha256 for of in there.sources] != [of.sha256 for of in wanted.sources]),
        ("map", there.map_hash != wanted.map_hash),
        ("importer", there.importer_version != wanted.importer_version),
        ("personal_fields", there.personal != wanted.personal),
    ]
    return [what for what, differs in told if differs]


def _require_same(plan: Plan, there: HistorySet) -> None:
    """Refuses another content under a name that is taken."""
    if differing := _differences(plan, there):
        raise OperatorError(
            "HISTORY_EXISTS",
            f"Scope {plan.scope} already has a history {plan.name} with other content (different: "
            f"{', '.join(differing)}). Choose another name, or remove it first: `gate history remove {plan.name} "
            f"--scope {plan.scope}`.",
        )


def _is_whole(lake: Path, there: HistorySet) -> bool:
    return all((lake / file.path).is_file() and (lake / file.path).stat().st_size == file.bytes for file in there.files)


# --- Reading ----------------------------------------------------------------------------------------------------------


def _stretches(plan: Plan, done: _Done, seen: SeenIds, erased: frozenset[str], *, tabled: bool) -> Iterator[_Stretch]:
    # An import that goes on reads the rest as of the moment when it began, for the same bytes.
    plan = replace(plan, now=done.now)
    tables = Tables(plan.map_, plan.scope_id, plan.personal)
    begun, read, rows = done.cursor, done.account.read, done.account.rows
    for number, source in enumerate(plan.sources):
        if number < begun.source:
            continue
        cursor = begun if number == begun.source else Cursor(number)
        with opened(source.path) as file:
            for batch in _reader(source, file, plan.map_.columns).batches(cursor):
                stretch = _stretch(plan, source, batch, seen, (read, rows), tables if tabled else None, erased)
                read, rows = read + stretch.account.read, rows + stretch.account.rows
                yield stretch
        require_unchanged(source)


def _reader(source: Source, file: BinaryIO, columns: Sequence[str]) -> _Reader:
    readers: dict[str, type[CsvSource | JsonSource | ParquetSource]] = {
        "csv": CsvSource,
        "jsonl": JsonSource,
        "parquet": ParquetSource,
    }
    return readers[source.kind](source.path, file, columns)


def _stretch(
    plan: Plan,
    source: Source,
    batch: Batch,
    seen: SeenIds,
    before: tuple[int, int],
    tables: Tables | None,
    erased: frozenset[str],
) -> _Stretch:
    read, rows = before
    typed = read_values(batch.frame, plan.map_.typed(batch.typed), source.name, plan.now)
    # Numbers that grow over all files, whatever their rows are called.
    first = batch.cursor.row - batch.rows
    numbers = (typed.frame[ROW] + (read - first)).to_list()
    twice = pl.Series(seen.add(typed.frame["id"].to_list(), numbers), dtype=pl.Boolean)
    duplicates = _duplicates(typed.frame.filter(twice), source, plan.map_)
    frame = typed.frame.filter(~twice)
    others = [*batch.refused, *duplicates]
    account = account_of(typed.without(len(duplicates)), others, frame, source.name)
    refused = sorted((*typed.refused, *others), key=lambda of: of.row)
    made = {}
    if tables is not None:
        positions = pl.int_range(rows + 1, rows + frame.height + 1, dtype=pl.Int64, eager=True).alias(POSITION)
        frame = frame.with_columns(positions)
        made = tables.of(frame.filter(~pl.col("id").is_in([*erased])) if erased else frame)
    return _Stretch(batch.cursor, account, made, refused)


def _duplicates(rows: pl.DataFrame, source: Source, map_: Map) -> list[Refused]:
    column = map_.members[0].column
    return [
        Refused(source.name, row, line, column, id_, *_DUPLICATE)
        for row, line, id_ in rows.select(ROW, LINE, "id").iter_rows()
    ]


def _bytes_read(plan: Plan, cursor: Cursor) -> int:
    """How many bytes of the sources were read, about."""
    before = sum(source.bytes for source in plan.sources[: cursor.source])
    source = plan.sources[cursor.source]
    return before + (min(cursor.offset, source.bytes) if source.kind != "parquet" else 0)


# --- Writing ----------------------------------------------------------------------------------------------------------


def _begin(plan: Plan) -> _Done:
    """What an earlier import of the same left behind; nothing where it was of another, or there was none."""
    staging, done = plan.staging, _Done(plan.now)
    state = staging / _STATE
    kept = orjson.loads(state.read_bytes()) if state.is_file() else {}
    if kept.get("key") != plan.key or "began" not in kept:
        if staging.exists():
            shutil.rmtree(staging)
        staging.mkdir(mode=0o700)
        write_durably(state, orjson.dumps({"key": plan.key, "began": timestamp(plan.now)}))
        sync_directory(staging)
        return done
    done.now = parse_timestamp(kept["began"])
    while (stretch := _stretch_file(plan, done.stretches + 1)).is_file():
        body = orjson.loads(stretch.read_bytes())
        done.stretches += 1
        done.cursor = Cursor(**body["cursor"])
        done.account = done.account.plus(read_account(body["account"]))
        done.files += [LakeFile(**file) for file in body["files"]]
    return done


def _stretch_file(plan: Plan, number: int) -> Path:
    return plan.staging / f"stretch-{number:06d}.json"


def _refused_file(plan: Plan, number: int) -> Path:
    return plan.staging / f"refused-{number:06d}.jsonl"


def _keep(plan: Plan, done: _Done, stretch: _Stretch) -> None:
    """Writes a stretch: its files first, and what tells of them last."""
    number = done.stretches + 1
    files = []
    for table, frame in stretch.tables.items():
        name = f"{table}-{number:06d}.parquet"
        place = (plan.directory / name).relative_to(plan.lake)
        files.append(write_parquet(plan.staging / name, str(place), table, frame))
    write_durably(_refused_file(plan, number), _lines(stretch.refused))
    sync_directory(plan.staging)
    body = {
        "cursor": asdict(stretch.cursor),
        "account": stretch.account.state(),
        "files": [asdict(file) for file in files],
    }
    write_durably(_stretch_file(plan, number), orjson.dumps(body))
    sync_directory(plan.staging)
    done.stretches, done.cursor = number, stretch.cursor
    done.account = done.account.plus(stretch.account)
    done.files += files


def _lines(refused: Sequence[Refused]) -> bytes:
    return b"".join(orjson.dumps(shown_refused(of), option=orjson.OPT_APPEND_NEWLINE) for of in refused)


def _copy_refused(plan: Plan, target: BinaryIO) -> None:
    number = 1
    while (kept := _refused_file(plan, number)).is_file():
        with kept.open("rb") as file:
            shutil.copyfileobj(file, target)
        number += 1


def _publish(plan: Plan, found: HistorySet) -> None:
    """Puts the set in its place, in one step."""
    staging, directory = plan.staging, plan.directory
    sets.save(staging, found)
    kept = {FILE_NAME, *(Path(file.path).name for file in found.files)}
    # The state goes last: without it, an import starts from the beginning.
    for file in sorted(staging.iterdir(), key=lambda each: each.name == _STATE):
        if file.name not in kept:
            file.unlink()
    sync_directory(staging)
    if directory.exists():
        shutil.rmtree(directory)
    staging.rename(directory)
    sync_directory(directory.parent)
    sync_directory(directory.parent.parent)
