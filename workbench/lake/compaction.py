"""Compaction: merges many small files into few, and gives each decision its latest outcome, its metrics, and its
receipt.

    compactor = Compactor(Path("var/lake"))
    for manifest in compactor.compact(manifest): ...

So a report is a scan and not a join, even if an outcome came long after its decision. Each step is one commit, like
that of an export. A killed step runs again.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import polars as pl

from workbench.columns import ENTRY_TABLES, TIME_COLUMNS, schema
from workbench.lake.cases import (
    DECISION_COLUMNS,
    EXECUTION_COLUMNS,
    MEASURED_COLUMNS,
    OUTCOME_COLUMNS,
    RESOLUTION_COLUMNS,
    Reports,
    measured,
    reported_on,
    unreported,
    updated,
)
from workbench.lake.entries import together
from workbench.lake.files import Files, by_month, read, scan
from workbench.lake.lease import unwritable
from workbench.lake.manifest import LakeFile, Manifest, save

STEP: Final = 200_000
"""How many chain positions one step resolves at most; fewer where their outcomes are `LARGE`."""

FULL: Final = 250_000
"""How many rows make a file that is not merged any more."""

LARGE: Final = 256 * 1024 * 1024
"""How much memory the rows of such a file take, in bytes, where that comes first."""

_STEP_UP: Final = 8
MANY: Final = 8
"""How many small files of a table and month are let be before they are merged, unless that is asked for."""


_Change: TypeAlias = tuple[list[LakeFile], list[LakeFile]]
"""The files that others replace, and those others."""


class Compactor:
    """Compacts the lake's files of a scope. The caller must hold the lease."""

    def __init__(self, lake: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Takes the lake's directory and the clock, in seconds since 1970, UTC."""
        self._lake = lake
        self._clock = clock

    def compact(self, manifest: Manifest, *, many: int = 1, behind: int = 0) -> Iterator[Manifest]:
        """Resolves the cases and merges small files; gives the manifest after each commit.

        Args:
            manifest: The scope's manifest, as it stands in the lake.
            many: How many small files of a table and month are let be.
            behind: By how many chain positions the cases may be behind before they are resolved.

        Raises:
            OperatorError: `LAKE_UNWRITABLE`.
        """
        try:
            while manifest.compacted + behind < manifest.position:
                manifest = self._resolve(manifest, _step_end(manifest))
                yield manifest
            for small in list(_small(manifest, many)):
                manifest = self._merge(manifest, small)
                yield manifest
        except OSError as error:
            raise unwritable(self._lake, error) from error

    def _resolve(self, manifest: Manifest, up_to: int) -> Manifest:
        """Takes the entries after the cases' own position, up to another, into the cases and their metrics."""
        decisions, outcomes, executions, resolutions = (
            self._read(manifest, table, manifest.compacted, up_to, columns)
            for table, columns in (
                ("decisions", DECISION_COLUMNS),
                ("outcomes", tuple(dict.fromkeys((*OUTCOME_COLUMNS, *MEASURED_COLUMNS)))),
                ("executions", EXECUTION_COLUMNS),
                ("resolutions", RESOLUTION_COLUMNS),
            )
        )
        files = Files(self._lake, manifest, up_to, self._root(manifest, up_to))
        changes = [
            self._cases(manifest, files, decisions, (outcomes, executions, resolutions)),
            self._metrics(manifest, files, outcomes),
        ]
        old, written = ([file for change in changes for file in change[at]] for at in (0, 1))
        return self._save(replace(manifest, compacted=up_to), old, written, files)

    def _cases(self, manifest: Manifest, files: Files, decisions: pl.DataFrame, reports: Reports) -> _Change:
        new = updated(unreported(decisions), *reports)
        reported = reported_on(reports)
        old: list[LakeFile] = []
        written: list[LakeFile] = []
        months = dict(by_month(new, TIME_COLUMNS["cases"])) if new.height else {}
        for file in manifest.of("cases"):
            grown = _takes(manifest, file) and file.month in months
            if not grown and not reported.is_between(*_span(file)).any():
                continue
            before = read(self._lake / file.path)
            after = updated(before, *reports)
            if grown:
                after = pl.concat([after, months.pop(file.month)])
            elif not before["position"].is_in(reported.implode()).any():
                # Another month's file has these positions.
                continue
            old.append(file)
            written.append(files.write("cases", file.month, after))
        written += [files.write("cases", month, rows) for month, rows in months.items()]
        return old, written

    def _metrics(self, manifest: Manifest, files: Files, outcomes: pl.DataFrame) -> _Change:
        """The metrics of these outcomes in the place of those of earlier ones about the same decisions."""
        old: list[LakeFile] = []
        written: list[LakeFile] = []
        reported = outcomes["decision_position"].unique()
        for file in manifest.of("metrics"):
            path, here = self._lake / file.path, reported.filter(reported.is_between(*_span(file)))
            again = pl.col("position").is_in(here.implode())
            if here.is_empty() or scan([path], schema("metrics")).filter(again).head(1).collect().is_empty():
                continue
            old.append(file)
            written += [files.write("metrics", file.month, rest) for rest in _pieces(read(path).filter(~again))]
        for month, rows in by_month(measured(outcomes), TIME_COLUMNS["metrics"]):
            written += [files.write("metrics", month, piece) for piece in _pieces(rows)]
        return old, written

    def _merge(self, manifest: Manifest, small: Sequence[LakeFile]) -> Manifest:
        last = max(small, key=lambda file: file.chain_position)
        files = Files(self._lake, manifest, last.chain_position, last.merkle_root)
        table = small[0].table
        frame = together(table, [read(self._lake / file.path) for file in small])
        return self._save(manifest, small, [files.write(table, small[0].month, frame)], files)

    def _save(self, manifest: Manifest, old: Sequence[LakeFile], new: Sequence[LakeFile], files: Files) -> Manifest:
        files.sync()
        manifest = replace(manifest.replaced(old, new, self._clock()), generation=manifest.generation + 1)
        save(self._lake, manifest)
        return manifest

    def _read(
        self, manifest: Manifest, table: str, after: int, up_to: int, columns: Sequence[str] | None
    ) -> pl.DataFrame:
        names = [
            self._lake / file.path
            for file in manifest.of(table)
            if file.first_position <= up_to and file.last_position > after
        ]
        if not names:
            return pl.DataFrame(schema=schema(table, columns))
        rows = scan(names, schema(table)).filter(pl.col("position").is_between(after + 1, up_to))
        return rows.select(schema(table, columns).names()).collect(engine="streaming")

    def _root(self, manifest: Manifest, position: int) -> str:
        """The chain's root at a position that the lake holds."""
        if position == manifest.position:
            return str(manifest.merkle_root)
        for table in ENTRY_TABLES.values():
            found = self._read(manifest, table, position - 1, position, ("position", "merkle_root"))
            if found.height:
                return str(found["merkle_root"][0])
        return str(manifest.merkle_root)


def _step_end(manifest: Manifest) -> int:
    """Up to which position a step resolves: by the number of positions, and by what their outcomes take in memory,
    which may be a handful of numbers or many long names.
    """
    end = min(manifest.compacted + STEP, manifest.position)
    room = LARGE
    for file in manifest.of("outcomes"):
        if file.last_position > manifest.compacted:
            room -= file.unpacked
            if room < 0 and file.first_position - 1 > manifest.compacted:
                return min(end, file.first_position - 1)
    return end


def _pieces(metrics: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Metrics in parts of at most about a full file, those of a decision in one: a file is named by its positions."""
    metrics = metrics.sort("position")
    positions = metrics["position"]
    number = max(math.ceil(metrics.height / FULL), math.ceil(metrics.estimated_size() / LARGE), 1)
    start = 0
    while start < metrics.height:
        last = positions[min(start + math.ceil(metrics.height / number), metrics.height) - 1]
        end = int(positions.search_sorted(last, side="right"))
        yield metrics.slice(start, end - start)
        start = end


def _span(file: LakeFile) -> tuple[int, int]:
    return file.first_position, file.last_position


def _takes(manifest: Manifest, file: LakeFile) -> bool:
    """Whether a file of cases takes more rows: the last of its month, while it is not full."""
    same = (other.first_position for other in manifest.of("cases") if other.month == file.month)
    return file.rows < FULL and file.unpacked < LARGE and file.first_position == max(same)


def _small(manifest: Manifest, many: int) -> Iterator[list[LakeFile]]:
    """The files to merge: those of a table and month of similar size, so that no file is rewritten for a few rows. If
    few may stay, all small ones.
    """
    groups: defaultdict[tuple[str, str, int], list[LakeFile]] = defaultdict(list)
    for file in sorted(manifest.files, key=lambda file: file.first_position):
        if file.rows < FULL and file.unpacked < LARGE and file.table != "cases":
            size = 0 if many == 1 else int(math.log(file.rows, _STEP_UP))
            groups[file.table, file.month, size].append(file)
    for files in groups.values():
        if len(files) <= many:
            continue
        group: list[LakeFile] = []
        rows = unpacked = 0
        for file in files:
            group.append(file)
            rows, unpacked = rows + file.rows, unpacked + file.unpacked
            if rows >= FULL or unpacked >= LARGE:
                yield group
                group, rows, unpacked = [], 0, 0
        if len(group) > 1:
            yield group
