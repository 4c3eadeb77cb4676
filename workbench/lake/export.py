"""Export: what the ledger's chains have gained goes into files, exactly once.

    exporter = Exporter(ledger, Path("var/lake"))
    for scope in ledger.tail.scopes():
        for manifest in exporter.export(scope): ...

A commit is the replacement of the scope's manifest: the files of a batch are written and synced before, and what reads
them learns of them by it. Killed before, the batch is exported again from the same chain position, and its files take
the place of those that nobody knows of.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import polars as pl

from gate.errors import OperatorError
from gate.ledger import Ledger
from gate.ledger.reads.tail import FollowedEntry, FollowedScope, Span
from workbench.columns import ENTRY_TABLES, TIME_COLUMNS, schema
from workbench.lake.entries import (
    ENTRY_UNREADABLE,
    EVENT_TIMES,
    Frames,
    Personal,
    Rulebooks,
    chunks,
    concat,
    erased_from,
    forgotten,
    frames,
    has_event_time,
    held,
    untimed,
)
from workbench.lake.files import Files, read, scan
from workbench.lake.lease import unwritable
from workbench.lake.manifest import LakeFile, Manifest, Retired, directory_of, load, save

BATCH: Final = 40_000
"""How many entries go into one commit, about."""

# Of fewer, what is done once for each page would take a tenth of all.
_PAGE: Final = 20_000

LINGER: Final = 3600.0
"""How long a file that was replaced stays for readers of an earlier manifest, in seconds."""

LINGERING_BYTES: Final = 2 * 1024**3
"""How many bytes of replaced files stay at most, for each scope."""

_BATCH_BYTES: Final = 256 * 1024 * 1024


class Exporter:
    """Exports the chains of a ledger into a lake. The caller must hold the lease."""

    def __init__(
        self,
        ledger: Ledger,
        lake: Path,
        personal: Personal | None = None,
        *,
        batch: int = BATCH,
        page: int = _PAGE,
        rest: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Takes the ledger, the lake's directory, and what is left out.

        Args:
            ledger: The ledger.
            lake: The lake's directory.
            personal: What is left out.
            batch: How many entries go into one commit, about.
            page: How many entries are read at once, at most.
            rest: Called between pages and between files, where others may have their turn.
            clock: The clock, in seconds since 1970, UTC.
        """
        self._ledger = ledger
        self._lake = lake
        self._personal = personal or Personal()
        self._batch = batch
        self._page = min(batch, page)
        self._rest = rest
        self._clock = clock

    def manifest(self, scope: FollowedScope) -> Manifest:
        """What the lake holds of a scope; an empty manifest where it holds nothing, or what is now personal.

        Raises:
            OperatorError: `LAKE_MANIFEST_INVALID`, `LAKE_OF_ANOTHER_LEDGER`, or `LAKE_LEAVES_OUT_MORE` if it leaves out
                fields that this exporter does not: a process with old settings must not export them again.
        """
        new = Manifest(scope.scope_id, scope.name, scope.head.chain_id, personal=self._personal.marks)
        found = load(self._lake, scope.scope_id)
        if found is None:
            return new
        require_same_chain(self._ledger, found, scope)
        if back := sorted(set(found.personal) - set(new.personal)):
            raise OperatorError(
                "LAKE_LEAVES_OUT_MORE",
                f"The lake of scope {found.scope} leaves out {', '.join(back)}, but the setting personal_fields no "
                "longer does. Restart the service if you changed the setting. To export these fields again, remove "
                f"the folder scope={found.scope_id}.",
            )
        return found if found.personal == new.personal else replace(new, generation=found.generation)

    def export(self, scope: FollowedScope, *, most: int | None = None) -> Iterator[Manifest]:
        """Brings the lake up to a scope's head; gives the manifest after each commit, none where nothing is new.

        Args:
            scope: The scope, and its head.
            most: How many entries are exported at most; None for all.

        Raises:
            OperatorError: `LAKE_MANIFEST_INVALID`, `LAKE_OF_ANOTHER_LEDGER`, `LAKE_ENTRY_UNREADABLE`,
                or `LAKE_UNWRITABLE`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        manifest = self.manifest(scope)
        if scope.head.size == 0:
            return
        try:
            manifest = self._swept(manifest)
            batches = _batches(self._rows(scope, manifest, most), self._batch)
            while True:
                with _uncollected():
                    batch = next(batches, None)
                    if batch is None:
                        return
                    manifest = self._commit(manifest, batch)
                    # The collector would inspect every part of it without success.
                    del batch
                yield manifest
        except OSError as error:
            raise unwritable(self._lake, error) from error

    def _rows(
        self, scope: FollowedScope, manifest: Manifest, most: int | None
    ) -> Iterator[tuple[FollowedEntry, Frames]]:
        """The rows of the chain that the lake lacks, in parts, each with the last entry in it."""
        rulebooks = rulebooks_of(self._ledger, scope.scope_id, _held_rulebooks(self._lake, manifest))
        up_to = scope.head.size if most is None else min(scope.head.size, manifest.position + most)
        spans = self._ledger.tail.spans(scope.scope_id, after=manifest.position, up_to=up_to, size=self._page)

        # In one thread: inflating gives up the interpreter for each entry, and a second thread would pass it back and
        # forth for longer than inflating takes.
        for span in spans:
            require_consecutive(span)
            self._rest()
            for chunk in chunks(span.rows):
                yield FollowedEntry._make(chunk[-1]), frames(scope.scope_id, chunk, rulebooks, self._personal)
                self._rest()

    def _commit(self, manifest: Manifest, batch: Sequence[tuple[FollowedEntry, Frames]]) -> Manifest:
        last = batch[-1][0]
        rows = concat([part for _, part in batch])
        now = self._clock()
        files = Files(self._lake, manifest, last.position, last.merkle_root)
        written = []
        if "facts" in rows:
            rows["facts"] = held(rows["facts"])
        for table, frame in rows.items():
            for file in files.write_months(table, frame, TIME_COLUMNS[table]):
                written.append(file)
                self._rest()
        stale: list[LakeFile] = []
        if "erasures" in rows:
            stale, rewritten = _forget(self._lake, manifest, rows["erasures"], files)
            written += rewritten
        files.sync()
        manifest = replace(
            manifest.replaced(stale, written, now),
            generation=manifest.generation + 1,
            position=last.position,
            merkle_root=last.merkle_root,
            link_hash=last.link_hash,
        )
        if "erasures" in rows:
            erased = rows["erasures"]["decision_position"]
            kept = tuple(file for file in manifest.retired if not _tells(self._lake, file.path, erased))
            manifest = replace(manifest, retired=kept)
        save(self._lake, manifest)
        if "erasures" in rows:
            # Erased data does not linger, not even for readers: one that misses a file reads the manifest again.
            _remove_unlisted(self._lake, manifest, lambda file: _table(file.name) in EVENT_TIMES)
        return manifest

    def _swept(self, manifest: Manifest) -> Manifest:
        """Removes what was replaced an hour ago, and what no manifest knows of and is as old, or of other settings.

        Of tables from which erasures take something, files that no manifest knows of go at once: an export that erased
        it may have been killed before it came to that.
        """
        if manifest.position == 0:
            directory_of(self._lake, manifest.scope_id).mkdir(mode=0o700, exist_ok=True)
            save(self._lake, manifest)
            _remove_unlisted(self._lake, manifest, lambda _: True)
            return manifest
        before = self._clock() - LINGER
        lingering = _lingering(manifest, before)
        gone = {file.path for file in manifest.retired} - {file.path for file in lingering}
        if gone:
            # Dropped from the manifest first: unlisted files are removed below or, after a crash, an hour later.
            manifest = replace(manifest, retired=lingering)
            save(self._lake, manifest)
        _remove_unlisted(
            self._lake,
            manifest,
            lambda file: (
                _table(file.name) in EVENT_TIMES
                or str(file.relative_to(self._lake)) in gone
                or file.stat().st_mtime < before
            ),
        )
        return manifest


@contextmanager
def _uncollected() -> Iterator[None]:
    """Nothing that a batch is made of refers back to itself, and to look for what does takes a third of an export."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def rulebooks_of(ledger: Ledger, scope_id: str, held: Iterable[str] = ()) -> Rulebooks:
    """The rulebooks of a scope; `held` are the hashes of those that the lake holds."""
    return Rulebooks(lambda hash_: ledger.rulebooks.body(scope_id, hash_), held)


def _held_rulebooks(lake: Path, manifest: Manifest) -> list[str]:
    files = [lake / file.path for file in manifest.of("rulebooks")]
    return scan(files, schema("rulebooks")).select("policy_hash").collect()["policy_hash"].to_list()


def require_same_chain(ledger: Ledger, manifest: Manifest, scope: FollowedScope) -> None:
    """Requires that what a manifest says was exported is the beginning of a scope's chain.

    Raises:
        OperatorError: `LAKE_OF_ANOTHER_LEDGER`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    if manifest.position == 0:
        return
    after = manifest.position - 1
    pages = ledger.tail.pages(scope.scope_id, after=after, up_to=min(manifest.position, scope.head.size))
    found = next(pages, [])
    if [(entry.position, entry.merkle_root) for entry in found] != [(manifest.position, manifest.merkle_root)]:
        raise OperatorError(
            "LAKE_OF_ANOTHER_LEDGER",
            f"Entry {manifest.position} of scope {manifest.scope} in the lake differs from the ledger's: this is "
            "another ledger, or it was restored from an older backup. If that was intended, remove the lake's "
            f"folder scope={manifest.scope_id}, and export again.",
        )


def require_consecutive(span: Span) -> None:
    """Requires that the entries of a page follow one another without a gap.

    Raises:
        OperatorError: `LAKE_ENTRY_UNREADABLE`.
    """
    positions = [span.after, *(row[0] for row in span.rows), span.last + 1]
    for before, position in pairwise(positions):
        if position != before + 1:
            raise OperatorError(
                ENTRY_UNREADABLE,
                f"The chain has no entry at position {before + 1}. The entries before it are in the lake; run `gate "
                f"chain check` to see the damage.",
            )


def _batches(
    parts: Iterator[tuple[FollowedEntry, Frames]], size: int
) -> Iterator[Sequence[tuple[FollowedEntry, Frames]]]:
    batch: list[tuple[FollowedEntry, Frames]] = []
    rows, room = 0, _BATCH_BYTES
    for part in parts:
        batch.append(part)
        rows += sum(part[1][table].height for table in ENTRY_TABLES.values() if table in part[1])
        room -= sum(int(frame.estimated_size()) for frame in part[1].values())
        if rows >= size or room < 0:
            yield batch
            batch, rows, room = [], 0, _BATCH_BYTES
    if batch:
        yield batch


def _forget(
    lake: Path, manifest: Manifest, erasures: pl.DataFrame, files: Files
) -> tuple[list[LakeFile], list[LakeFile]]:
    """The files that hold what was erased, and those that take their place without it."""
    erased = erasures["decision_position"]
    stale, rewritten = [], []
    for table in EVENT_TIMES:
        for file in manifest.of(table):
            # Outcomes stand at positions of their own, after those of their decisions.
            first = 1 if table == "outcomes" else file.first_position
            here = erased.filter(erased.is_between(first, file.last_position))
            if here.is_empty() or not _holds(lake / file.path, table, here):
                continue
            frame = read(lake / file.path)
            if table == "facts":
                left = forgotten(frame, here)
            else:
                left = frame.with_columns(untimed(table, erased_from(table, here)))
            stale.append(file)
            rewritten.append(files.write(table, file.month, left))
    return stale, rewritten


def _holds(path: Path, table: str, erased: pl.Series) -> bool:
    """Whether a file holds something that was erased of the decisions at some positions."""
    rows = scan([path], schema(table)).filter(erased_from(table, erased))
    if table != "facts":
        rows = rows.filter(has_event_time(table))
    return bool(rows.head(1).collect().height)


def _lingering(manifest: Manifest, before: float) -> tuple[Retired, ...]:
    """The files replaced since a moment, the latest of them, as many as a disk can spare."""
    room = LINGERING_BYTES
    kept: list[Retired] = []
    for file in sorted(manifest.retired, key=lambda file: file.at, reverse=True):
        room -= file.bytes
        if file.at >= before and room >= 0:
            kept.append(file)
    return tuple(kept)


def _tells(lake: Path, path: str, erased: pl.Series) -> bool:
    """Whether a replaced file goes at once: one of facts, or one that holds what was erased of some decisions."""
    table = _table(path)
    if table not in EVENT_TIMES or table == "facts":
        return table == "facts"
    try:
        return _holds(lake / path, table, erased)
    except FileNotFoundError:
        return False


def _table(path: str) -> str:
    """The table of a file of the lake, by its name."""
    return Path(path).name.removeprefix(".").partition("-")[0]


def _remove_unlisted(lake: Path, manifest: Manifest, choose: Callable[[Path], bool]) -> None:
    """Removes the files of a scope that its manifest does not list, not even as retired, and that are chosen."""
    listed = {file.path for file in manifest.files} | {file.path for file in manifest.retired}
    for file in directory_of(lake, manifest.scope_id).glob("month=*/*"):
        if str(file.relative_to(lake)) not in listed and _is_ours(file) and choose(file):
            with suppress(FileNotFoundError):
                file.unlink()


def _is_ours(file: Path) -> bool:
    return file.name.endswith((".parquet", ".parquet.tmp"))
