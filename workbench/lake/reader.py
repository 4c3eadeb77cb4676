"""Reads the lake, with Polars or any other Parquet reader.

    lake = open_lake("var/lake")
    lake.scope("acme").cases().group_by("policy_id").len().collect()
    duckdb.sql(lake.sql("outcomes"))
    pandas.read_parquet(lake.files("outcomes"))

The manifests alone say which files belong to the lake, so a reader always sees a complete state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Final, TypeAlias, cast

import polars as pl
from polars.datatypes import DataTypeClass

from gate.errors import OperatorError
from gate.policy.bounds import OneOf, require, span
from gate.policy.questions import CLOCKS, VERDICTS
from gate.records.advisory import ADVISORY_POLICIES
from workbench.columns import CHANGE_IDS, ENTRY_TABLES, IS_ADVISORY, TABLES, TIME, TIME_COLUMNS, schema
from workbench.facts import columns_of
from workbench.history import sets
from workbench.lake.cases import (
    DECISION_COLUMNS,
    EXECUTION_COLUMNS,
    MEASURED_COLUMNS,
    OUTCOME_COLUMNS,
    RESOLUTION_COLUMNS,
    WEEK,
    measured,
    performed_at,
    reported_on,
    unreported,
    updated,
)
from workbench.lake.entries import EVENT_TIMES, Frames, erased_from, forgotten, untimed
from workbench.lake.files import scan
from workbench.lake.manifest import LakeFile, Manifest, load_all
from workbench.lake.names import choices, shown

_TYPE: Final = ":type"
_SQL_TYPES: Final[Mapping[type[pl.DataType], str]] = {
    pl.Int64: "BIGINT",
    pl.Float64: "DOUBLE",
    pl.Boolean: "BOOLEAN",
    pl.Date: "DATE",
    pl.Datetime: "TIMESTAMP WITH TIME ZONE",
}

RECORDED: Final = CLOCKS[0]

EVENT_DATES: Final[Mapping[str, Mapping[str, pl.Expr]]] = {
    "decisions": {"created_at": pl.col("occurred_at")},
    "facts": {"created_at": pl.col("occurred_at")},
    "outcomes": {"reported_at": pl.col("occurred_at")},
    "executions": {"reported_at": performed_at()},
    "metrics": {"reported_at": pl.col("occurred_at")},
    "cases": {
        "created_at": pl.col("occurred_at"),
        "outcome_reported_at": pl.col("outcome_occurred_at"),
        "first_outcome_at": pl.col("first_outcome_event_at"),
        "last_outcome_at": pl.col("last_outcome_event_at"),
        "execution_reported_at": pl.col("execution_event_at"),
        "first_executed_at": pl.col("first_executed_event_at"),
    },
}
"""The dates of each table that the clock `occurred` replaces, each with the time of the event, which may be null."""


@dataclass(frozen=True, slots=True)
class ImportedSet:
    """The history set that a snapshot reads.

    Attributes:
        name: Its name.
        history_hash: The hash of its content.
        rows: The number of imported rows.
        refused: The number of rows in its files that the import refused.
        erased: The number of rows that were erased since.
        has_verdicts: Whether its map defines a verdict.
    """

    name: str
    history_hash: str
    rows: int
    refused: int
    erased: int
    has_verdicts: bool

    @property
    def mark(self) -> dict[str, object]:
        """`coverage.history` of every report over the set."""
        return {
            "name": self.name,
            "history_hash": self.history_hash,
            "rows": self.rows,
            "refused": self.refused,
            "erased": self.erased,
        }

    @property
    def note(self) -> str:
        """The sentence that every report over the set contains."""
        return (
            f"These are imported cases of the history {self.name} (history_hash {self.history_hash[:12]}), which "
            "are unverified; they are not in the chain."
        )


RESOLVED: Final = ("cases", "metrics")
"""The tables that compaction derives from the others."""

REPORTS: Final = ("outcomes", "executions", "resolutions")
"""The tables from which a case takes the latest entry."""


@dataclass(frozen=True, slots=True)
class Window:
    """A selection of decisions.

    Attributes:
        since: Only decisions made at this moment or later; None for all.
        until: Only decisions made before this moment; None for all.
        verdict: Only decisions with this verdict; None for all.
    """

    since: datetime | None = None
    until: datetime | None = None
    verdict: str | None = None

    def of(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The rows of the selected decisions. The rows need the columns `created_at` and, for a verdict, `verdict`."""
        if self.since is not None:
            rows = rows.filter(_not_before(self.since))
        if self.until is not None:
            rows = rows.filter(~_not_before(self.until))
        return rows if self.verdict is None else rows.filter(pl.col("verdict") == self.verdict)


_Since: TypeAlias = tuple[pl.Series, list[pl.DataFrame]]


@dataclass(frozen=True, repr=False)
class Snapshot:
    """The tables of a scope's chain, up to one position.

    Attributes:
        lake: The lake's directory.
        manifest: The scope's content in the lake.
        tail: The rows of later entries, by table.
        position: The chain position up to which the snapshot is complete.
        merkle_root: The chain's root at that position; None for an empty chain.
        windows: The slices that restrict its tables; empty for the whole chain.
        advisory: Whether its tables include advisory decisions and the reports about them.
        clock: The dates of its rows, `recorded` or `occurred`.
        imported: The history set that it reads; None for the scope's own chain.
    """

    lake: Path
    manifest: Manifest
    position: int
    merkle_root: str | None
    tail: Frames = field(default_factory=dict)
    windows: tuple[Window, ...] = ()
    advisory: bool = True
    clock: str = RECORDED
    imported: ImportedSet | None = None
    # A report asks for the cases a dozen times, in slices of one snapshot, which share what they do not cut.
    _since: dict[tuple[str | None, tuple[str, ...]], _Since] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        sliced = ", sliced" if self.windows else ""
        binding = "" if self.advisory else ", without advisory decisions"
        dated = "" if self.clock == RECORDED else ", by event time"
        if self.imported is not None:
            return f"<Snapshot of {self.scope}, history {self.imported.name}: {self.position:,} imported rows{sliced}>"
        return f"<Snapshot of {self.scope}: {self.position:,} entries{sliced}{binding}{dated}>"

    @property
    def scope(self) -> str:
        """The scope's name."""
        return self.manifest.scope

    @property
    def title(self) -> str:
        """The scope's name as reports show it. For an imported history, it includes the history's name."""
        return self.scope if self.imported is None else f"{self.scope}, imported history {self.imported.name}"

    @property
    def histories(self) -> list[str]:
        """The names of the scope's history sets, which hold imported past cases."""
        return sets.names_of(self.lake, self.manifest.scope_id)

    def history(self, name: str) -> Snapshot:
        """A history set of the scope. Every engine that does not need the chain can read it.

        Its positions are row numbers, and its reports say that its cases are unverified.

        Raises:
            OperatorError: `HISTORY_UNKNOWN`, or `HISTORY_MANIFEST_INVALID`.
        """
        return history_of(self.lake, self.manifest.scope_id, self.scope, name)

    def slice(self, since: date | None = None, until: date | None = None, verdict: str | None = None) -> Snapshot:
        """The same chain, restricted to some of its decisions and the reports about them. Every engine can read it.

        `position` and `merkle_root` stay those of the whole chain. Rulebooks, migrations, routes, `files`, and `sql`
        are not restricted.

        Args:
            since: Only decisions from this moment on. A date, or a datetime without a time zone, is in UTC.
            until: Only decisions before this moment. A date includes its whole day.
            verdict: Only decisions with this verdict: `yes`, `no`, or `review`.

        Raises:
            OperatorError: `ENGINE_ARGUMENT_INVALID`.
        """
        require("verdict", verdict, OneOf(VERDICTS), optional=True)
        window = Window(*span(since, until), verdict)
        return self if window == Window() else replace(self, windows=(*self.windows, window))

    def on(self, clock: str) -> Snapshot:
        """The same chain, dated by a clock. All its slices use that clock, also slices made earlier.

        With `occurred`, engines read event times where callers sent them, and recorded times otherwise. For decisions,
        `created_at` and `week` follow `occurred_at`. Outcomes follow their own `occurred_at`. Execution receipts follow
        `executed_at`, unless it lies more than 5 minutes after their report. The order of the chain stays the same, and
        so does the choice of the latest report. `files` and `sql` do not change.

        Args:
            clock: `recorded` or `occurred`.

        Raises:
            OperatorError: `ENGINE_ARGUMENT_INVALID`.
        """
        require("clock", clock, OneOf(CLOCKS))
        return replace(self, clock=clock)

    def binding(self, policy_id: str | None = None) -> Snapshot:
        """The same chain without its advisory decisions and the reports about them. Every report about policies reads
        it, because advisory decisions are not made by a policy.

        Args:
            policy_id: The only policy that is needed; None for all.
        """
        # No advisory decision has another policy_id: a question about one need not look at the rules of a million.
        concerned = policy_id is None or policy_id in ADVISORY_POLICIES
        return replace(self, advisory=False) if concerned else self

    def count_advisory(self, policy_id: str) -> int:
        """The number of advisory decisions with this policy_id, which `binding` leaves out."""
        if policy_id not in ADVISORY_POLICIES:
            return 0
        cases = self.with_advice().cases(policy_id).filter(IS_ADVISORY)
        return int(cases.select(pl.len()).collect(engine="streaming").item())

    def with_advice(self) -> Snapshot:
        """The same chain with its advisory decisions, which `binding` leaves out."""
        return replace(self, advisory=True)

    def within(self, decisions: pl.LazyFrame) -> pl.LazyFrame:
        """The rows of decisions that belong to the slice; all rows if the chain is not sliced.

        Args:
            decisions: Rows with `created_at`, `rule`, and, for a slice by verdict, `verdict`.
        """
        decisions = self._in_windows(decisions)
        return decisions if self.advisory else decisions.filter(~IS_ADVISORY)

    def _in_windows(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        for window in self.windows:
            rows = window.of(rows)
        return rows

    def table(self, name: str) -> pl.LazyFrame:
        """The rows of a table. The rows of `facts` omit the typed columns of fields; use `facts()` for those.

        Raises:
            OperatorError: `LAKE_TABLE_UNKNOWN`.
        """
        _require_table(name)
        if name == "cases":
            return self.cases()
        if name == "metrics":
            return self.metrics()
        if name == "facts":
            return self.facts(())
        if name == "rulebooks":
            # The tail repeats rulebooks that the lake holds.
            return self._rows(name, self.manifest.of(name)).unique("policy_hash", keep="first", maintain_order=True)
        rows = self._rows(name, self.manifest.of(name))
        if name in CHANGE_IDS:
            return rows
        return self.within(rows) if name == "decisions" else self._about(rows, "decision_position")

    def at(self, table: str, positions: pl.Series) -> pl.LazyFrame:
        """The rows of entries at some chain positions of the whole chain. It opens only files that can contain them.

        Args:
            table: A table of entries, such as decisions.
            positions: The positions.

        Raises:
            OperatorError: `LAKE_TABLE_UNKNOWN`.
        """
        _require_table(table)
        files = [
            file
            for file in self.manifest.of(table)
            if positions.is_between(file.first_position, file.last_position).any()
        ]
        return self._rows(table, files).filter(at_positions(positions))

    def last_entry_at(self) -> datetime | None:
        """When the entry at `position` was recorded, or the end of the slice if that is earlier.

        It is None if the lake does not hold that entry. With the clock `occurred`, if any entry has an event time, it
        is the latest date of any entry of the chain. For an imported history, it is the date of the last case.
        """
        last = self._last_entry_at() if self.clock == RECORDED else self._last_event_at()
        # Without an end, the time after a slice would count as time in which nothing was decided.
        ends = [window.until for window in self.windows if window.until is not None]
        return None if last is None else min([last, *ends])

    def _last_entry_at(self) -> datetime | None:
        if self.imported is not None:
            # Rows are in the order of their files, and in no order of time. Files hold outcomes of the future, by a
            # slip or as what is planned: they end with their last case.
            return cast("datetime | None", self.resolved("cases").select(pl.col("created_at").max()).collect().item())
        for name in ENTRY_TABLES.values():
            files = [file for file in self.manifest.of(name) if file.last_position >= self.position]
            if files or name in self.tail:
                last = self._rows(name, files).filter(pl.col("position") == self.position)
                found = last.select(TIME_COLUMNS[name]).collect().to_series()
                if found.len():
                    return cast("datetime", found[0])
        return None

    def _last_event_at(self) -> datetime | None:
        dates = []
        for name in ENTRY_TABLES.values():
            told = pl.col(TIME_COLUMNS[name])
            event = EVENT_DATES.get(name, {}).get(TIME_COLUMNS[name], pl.lit(None, TIME))
            rows = self._recorded(name, self.manifest.of(name))
            dates.append(rows.select(pl.coalesce(event, told).max().alias("last"), event.is_not_null().any()))
        found = [of.row(0) for of in pl.collect_all(dates, engine="streaming")]
        if not any(sent for _, sent in found):
            # Without any event the clocks are one, and dates that were recorded need not ascend with positions.
            return self._last_entry_at()
        # The entry at the end of the chain may be about what happened long before.
        return cast("datetime", max(last for last, _ in found if last is not None))

    def resolved(self, table: str) -> pl.LazyFrame:
        """The cases or the metrics, as far as compaction has resolved them."""
        return self._scan(table, self.manifest.of(table), None)

    def cases(self, policy_id: str | None = None) -> pl.LazyFrame:
        """Each decision with the latest reports about it, for one policy or for all."""
        resolved = self._scan("cases", self.manifest.of("cases"), policy_id)
        known, added = self._since_resolved(policy_id)
        if known.len():
            resolved = resolved.filter(~pl.col("position").is_in(known.implode()))
        parts = [resolved, *(rows.lazy() for rows in added)]
        return self.within(self._dated("cases", pl.concat(parts)))

    def _since_resolved(self, policy_id: str | None) -> _Since:
        """Which resolved cases were reported on since, by position; and those and the later cases as they are now."""
        asked = (policy_id, tuple(file.path for file in self.manifest.of("cases")))
        if asked not in self._since:
            self._since[asked] = self._find_since_resolved(policy_id)
        return self._since[asked]

    def _find_since_resolved(self, policy_id: str | None) -> _Since:
        decisions = self._recent("decisions", DECISION_COLUMNS, policy_id)
        reports = (
            self._recent("outcomes", (*OUTCOME_COLUMNS, "policy_id"), policy_id),
            self._recent("executions", (*EXECUTION_COLUMNS, "policy_id"), policy_id),
            self._recent("resolutions", (*RESOLUTION_COLUMNS, "policy_id"), policy_id),
        )
        added = []
        reported = reported_on(reports)
        known = reported.filter(reported <= self.manifest.compacted)
        if known.len():
            touched = pl.col("position").is_in(known.implode())
            holding = [
                file
                for file in self.manifest.of("cases")
                if known.is_between(file.first_position, file.last_position).any()
            ]
            changed = self._scan("cases", holding, policy_id).filter(touched).collect(engine="streaming")
            added.append(updated(changed, *reports))
        if decisions.height:
            added.append(updated(unreported(decisions), *reports))
        return known, added

    def metrics(self, policy_id: str | None = None) -> pl.LazyFrame:
        """The metrics of each decision's latest outcome, one row for each name, for one policy or for all."""
        resolved = self._scan("metrics", self.manifest.of("metrics"), policy_id)
        outcomes = self._recent("outcomes", MEASURED_COLUMNS, policy_id)
        reported = outcomes["decision_position"].unique()
        known = reported.filter(reported <= self.manifest.compacted)
        if known.len():
            resolved = resolved.filter(~pl.col("position").is_in(known.implode()))
        rows = self._dated("metrics", pl.concat([resolved, measured(outcomes).lazy()]))
        return self._about(rows, "position", policy_id)

    def facts(self, fields: Iterable[str], policy_id: str | None = None) -> pl.LazyFrame:
        """The facts of decisions, with typed columns for some fields.

        If no rulebook that decided declares or tests a field, its columns are null, and its values are only in
        `inputs`. `fact_fields` lists the fields that have typed columns.

        Args:
            fields: The fields, each as a dotted path.
            policy_id: Only decisions of this policy; None for all.

        Raises:
            OperatorError: `LAKE_FACT_INVALID`: one string was given instead of a list.
        """
        if isinstance(fields, str):
            raise OperatorError("LAKE_FACT_INVALID", f"Give facts in a list: facts([{fields!r}]).")
        fields = tuple(fields)
        types = {**schema("facts"), **{name: dtype for of in fields for name, dtype in columns_of(of).items()}}
        files = [self.lake / file.path for file in self.manifest.of("facts")]
        parts = [scan(files, pl.Schema(types))]
        if "facts" in self.tail:
            tail = self.tail["facts"]
            missing = [pl.lit(None, dtype).alias(name) for name, dtype in types.items() if name not in tail.columns]
            parts.append(tail.lazy().with_columns(missing).select(list(types)))
        rows = pl.concat(parts)
        if policy_id is not None:
            rows = rows.filter(pl.col("policy_id") == policy_id)
        if "erasures" in self.tail:
            # Exported before it was erased; the next export takes it out of the file.
            rows = rows.pipe(lambda frame: forgotten_lazily(frame, types, self.tail["erasures"]["decision_position"]))
        rows = self._dated("facts", rows)
        # Facts have the date of their decision, and not its verdict; and advisory decisions have none.
        by_verdict = any(window.verdict is not None for window in self.windows)
        return self._about(rows, "position", policy_id) if by_verdict else self._in_windows(rows)

    def by_file(self, table: str) -> list[tuple[LakeFile | None, Snapshot]]:
        """The chain in parts that share no row of a table.

        Each file whose rows have not changed since it was written is one part. One further part, without a file, holds
        all other rows.

        Args:
            table: `cases`, `metrics`, or `facts`.
        """
        # A slice of a file is not the file, nor are its rows with other dates; what was erased since is still in it.
        plain = not self.windows and self.advisory and self.clock == RECORDED
        whole = plain and not (table == "facts" and "erasures" in self.tail)
        changed = self._reported_since() if whole and table != "facts" else pl.Series([], dtype=pl.Int64)
        unchanged = [
            file
            for file in (self.manifest.of(table) if whole else ())
            if not changed.is_between(file.first_position, file.last_position).any()
        ]
        paths = {file.path for file in unchanged}
        rest = tuple(file for file in self.manifest.files if file.path not in paths)
        return [
            *(
                (file, replace(self, manifest=replace(self.manifest, files=(file,)), tail={}, _since={}))
                for file in unchanged
            ),
            (None, replace(self, manifest=replace(self.manifest, files=rest))),
        ]

    def _reported_since(self) -> pl.Series:
        """The decisions about which something was reported since cases were resolved, by their positions."""
        outcomes, executions, resolutions = (self._recent(name, ("decision_position",), None) for name in REPORTS)
        return reported_on((outcomes, executions, resolutions))

    def fact_fields(self) -> list[str]:
        """The fields of facts that have typed columns, whatever the policy."""
        columns = {
            name
            for file in self.manifest.of("facts")
            for name in pl.read_parquet_schema(self.lake / file.path)
            if name.endswith(_TYPE)
        }
        columns |= {name for name in self.tail.get("facts", pl.DataFrame()).columns if name.endswith(_TYPE)}
        return sorted(name.removesuffix(_TYPE) for name in columns)

    def files(self, table: str, *, stale: bool = False) -> list[Path]:
        """The files that hold a table's rows, for any Parquet reader.

        Args:
            table: The table.
            stale: Whether cases and metrics may lack the reports since the last compaction.

        Raises:
            OperatorError: `LAKE_TABLE_UNKNOWN`; `LAKE_NOT_COMPACTED`: cases or metrics lack later reports, and `stale`
                is false.
        """
        _require_table(table)
        if table in RESOLVED and self.manifest.compacted < self.position and not stale:
            raise OperatorError(
                "LAKE_NOT_COMPACTED",
                f"The files of {table} lack the latest entries of scope {self.scope} (resolved: "
                f"{self.manifest.compacted} of {self.position}). Run `gate lake compact` on the lake's instance "
                f"(--home, if that is not var) and open the lake again; or use table({table!r}), which adds them; "
                "or pass stale=True.",
            )
        return [self.lake / file.path for file in self.manifest.of(table)]

    def sql(self, table: str, *, stale: bool = False) -> str:
        """A DuckDB query that returns a table's rows. Print it, or run it with `duckdb.sql(...)`.

        Args:
            table: The table.
            stale: As for `files`.

        Raises:
            OperatorError: As for `files`.
        """
        return _query(table, self.files(table, stale=stale))

    def _about(self, rows: pl.LazyFrame, position: str, policy_id: str | None = None) -> pl.LazyFrame:
        """The rows that are about decisions of the slice, whose positions stand in a column."""
        if not self.windows and self.advisory:
            return rows
        decisions = self._rows("decisions", self.manifest.of("decisions"))
        if policy_id is not None:
            decisions = decisions.filter(pl.col("policy_id") == policy_id)
        span = _span(decisions, self.windows) if self.advisory else None
        if span is not None:
            return rows.filter(pl.col(position).is_between(*span))
        chosen = self.within(decisions).select(pl.col("position").alias(position))
        return rows.join(chosen, on=position, how="semi")

    def _recent(self, table: str, columns: Sequence[str] | None, policy_id: str | None) -> pl.DataFrame:
        """What came after the cases were resolved."""
        after = self.manifest.compacted
        files = [file for file in self.manifest.of(table) if file.last_position > after]
        types = schema(table, columns)
        if not files and table not in self.tail:
            return pl.DataFrame(schema=types)
        rows = self._recorded(table, files).filter(pl.col("position") > after)
        if policy_id is not None:
            rows = rows.filter(pl.col("policy_id") == policy_id)
        return rows.select(types.names()).collect(engine="streaming")

    def _rows(self, table: str, files: Sequence[LakeFile]) -> pl.LazyFrame:
        return self._dated(table, self._recorded(table, files))

    def _dated(self, table: str, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The rows of a table as the clock dates them."""
        dates = {} if self.clock == RECORDED else EVENT_DATES.get(table, {})
        if not dates:
            return rows
        rows = rows.with_columns(pl.coalesce(of, name).alias(name) for name, of in dates.items())
        return rows.with_columns(WEEK) if table == "cases" else rows

    def _recorded(self, table: str, files: Sequence[LakeFile]) -> pl.LazyFrame:
        parts = [self._scan(table, files, None)]
        if table in self.tail:
            parts.append(self.tail[table].lazy())
        return pl.concat(parts)

    def _scan(self, table: str, files: Sequence[LakeFile], policy_id: str | None) -> pl.LazyFrame:
        rows = scan([self.lake / file.path for file in files], schema(table))
        if "erasures" in self.tail and table in EVENT_TIMES:
            # As of facts: exported before it was erased, so that rows of the tail have nothing of it.
            rows = rows.with_columns(untimed(table, erased_from(table, self.tail["erasures"]["decision_position"])))
        return rows if policy_id is None else rows.filter(pl.col("policy_id") == policy_id)


class Lake:
    """A lake in the state it had when it was opened. Open it again to see later exports.

    Attributes:
        directory: The lake's directory.
        snapshots: The snapshot of each scope, by the scope's name.
    """

    def __init__(self, directory: Path, manifests: Iterable[Manifest]) -> None:
        """Takes the directory and the manifests of its scopes. Use `open_lake` instead."""
        self.directory: Final = directory
        manifests = list(manifests)
        _require_distinct(directory, manifests)
        self.snapshots: Final[Mapping[str, Snapshot]] = {
            manifest.scope: Snapshot(directory, manifest, manifest.position, manifest.merkle_root)
            for manifest in manifests
        }

    def __repr__(self) -> str:
        return f"<Lake {self.directory.name}: {', '.join(self.scopes) or 'no scopes'}>"

    @property
    def scopes(self) -> list[str]:
        """The names of its scopes."""
        return sorted(self.snapshots)

    def scope(self, name: str) -> Snapshot:
        """The snapshot of one scope.

        Raises:
            OperatorError: `LAKE_SCOPE_UNKNOWN`.
        """
        if name not in self.snapshots:
            raise OperatorError(
                "LAKE_SCOPE_UNKNOWN",
                f"The lake {self.directory} has no scope {shown(name)}. {choices(name, self.snapshots)} `gate lake "
                f"export` on its instance (--home, if that is not var) brings it up to the ledger.",
            )
        return self.snapshots[name]

    def table(self, name: str) -> pl.LazyFrame:
        """The rows of a table, in all scopes.

        Raises:
            OperatorError: `LAKE_TABLE_UNKNOWN`.
        """
        _require_table(name)
        return pl.concat([pl.LazyFrame(schema=schema(name)), *(of.table(name) for of in self.snapshots.values())])

    def files(self, table: str, *, stale: bool = False) -> list[Path]:
        """The files that hold a table's rows, in all scopes. For one scope, use `scope(name).files(table)`.

        Args:
            table: The table.
            stale: As for `Snapshot.files`.

        Raises:
            OperatorError: `LAKE_TABLE_UNKNOWN`, or `LAKE_NOT_COMPACTED`.
        """
        _require_table(table)
        return [file for of in self.snapshots.values() for file in of.files(table, stale=stale)]

    def sql(self, table: str, *, stale: bool = False) -> str:
        """A DuckDB query that returns a table's rows, in all scopes. For one scope, use `scope(name).sql(table)`.

        Args:
            table: The table.
            stale: As for `Snapshot.files`.

        Raises:
            OperatorError: `LAKE_TABLE_UNKNOWN`, or `LAKE_NOT_COMPACTED`.
        """
        return _query(table, self.files(table, stale=stale))


@contextmanager
def unmoved() -> Iterator[None]:
    """Reads files. An erasure may have removed one of them.

    Raises:
        OperatorError: `LAKE_MOVED_ON`.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise OperatorError(
            "LAKE_MOVED_ON",
            "Facts or times were erased since the lake was opened, so its files are gone; open it again.",
        ) from error


def open_lake(path: str | Path) -> Lake:
    """Opens a lake in its current state.

    Args:
        path: The lake's directory: `lake` in the instance's home.

    Raises:
        OperatorError: `LAKE_MISSING`, or `LAKE_MANIFEST_INVALID`.
    """
    directory = Path(path).absolute()
    manifests = load_all(directory)
    held = {manifest.scope_id for manifest in manifests}
    manifests += _without_chain(directory, [of for of in sets.scopes_of(directory) if of not in held])
    if not manifests:
        within = f" Did you mean {directory / 'lake'}?" if load_all(directory / "lake") else ""
        raise OperatorError(
            "LAKE_MISSING",
            f"There is no lake in {directory}.{within} `gate lake export` creates one from the ledger, and `gate "
            "demo` creates a ledger to try it with.",
        )
    return Lake(directory, manifests)


def history_of(lake: Path, scope_id: str, scope: str, name: str) -> Snapshot:
    """A history set of a scope, as from `Snapshot.history`. The lake need not hold the scope's chain.

    Raises:
        OperatorError: `HISTORY_UNKNOWN`, or `HISTORY_MANIFEST_INVALID`.
    """
    found = sets.require(lake, scope_id, scope, name)
    counted = found.rows, found.refused, len(found.erased)
    imported = ImportedSet(found.name, found.history_hash, *counted, has_verdicts="verdict" in found.map)
    return Snapshot(lake, found.as_manifest(), found.rows, None, imported=imported)


def _without_chain(lake: Path, scope_ids: Iterable[str]) -> list[Manifest]:
    """Scopes of whose chains the lake holds nothing, and which have history sets."""
    found = [sets.all_of(lake, scope_id) for scope_id in scope_ids]
    return [Manifest(of[0].scope_id, of[0].scope, chain_id="") for of in found if of]


def forgotten_lazily(facts: pl.LazyFrame, types: Mapping[str, pl.DataType], positions: pl.Series) -> pl.LazyFrame:
    """Facts without those of the decisions at some positions, as `entries.forgotten`."""
    return facts.map_batches(lambda frame: forgotten(frame, positions), schema=pl.Schema(types), streamable=True)


def at_positions(positions: pl.Series) -> pl.Expr:
    """Whether a row has one of some chain positions."""
    at = pl.col("position")
    # A reader of Parquet can skip row groups by the ends of a range alone.
    return at.is_between(positions.min(), positions.max()) & at.is_in(positions.implode())


def _span(decisions: pl.LazyFrame, windows: Sequence[Window]) -> tuple[int, int] | None:
    """The first and the last position of the decisions of some windows; None where others may lie between them.

    A period is a span, save where decisions of one moment were committed in another order, and comparing with two
    numbers takes a tenth of a join's time.
    """
    if any(window.verdict is not None for window in windows):
        return None
    never = pl.lit(value=False)
    early = pl.any_horizontal(never, *(~_not_before(of.since) for of in windows if of.since is not None))
    late = pl.any_horizontal(never, *(_not_before(of.until) for of in windows if of.until is not None))
    at, chosen = pl.col("position"), ~(early | late)
    ends = (at.filter(chosen).min(), at.filter(chosen).max(), at.filter(early).max(), at.filter(late).min())
    named = [of.alias(str(number)) for number, of in enumerate(ends)]
    first, last, before, after = decisions.select(named).collect(engine="streaming").row(0)
    if first is None:
        # No position lies between these.
        return 1, 0
    together = (before is None or before < first) and (after is None or last < after)
    return (first, last) if together else None


def _not_before(moment: datetime) -> pl.Expr:
    """Whether a decision was made at a moment or later."""
    made = pl.col("created_at")
    # The column has milliseconds, and Polars cuts off what a literal has beyond them.
    return made > moment if moment.microsecond % 1000 else made >= moment


def _require_distinct(directory: Path, manifests: Sequence[Manifest]) -> None:
    for name, count in Counter(manifest.scope for manifest in manifests).items():
        if count > 1:
            folders = ", ".join(f"scope={manifest.scope_id}" for manifest in manifests if manifest.scope == name)
            raise OperatorError(
                "LAKE_OF_ANOTHER_LEDGER",
                f"The lake {directory} holds several scopes named {name!r} ({folders}), but the ledger has one: "
                "remove the folders of the others (`gate lake status --json` shows its scope_id).",
            )


def _require_table(name: str) -> None:
    if name not in TABLES:
        raise OperatorError("LAKE_TABLE_UNKNOWN", f"The lake has no table {shown(name)}. {choices(name, TABLES)}")


def _query(table: str, files: Sequence[Path]) -> str:
    if not files:
        columns = ", ".join(
            f'CAST(NULL AS {_sql_type(column.dtype)}) AS "{name}"' for name, column in TABLES[table].items()
        )
        return f"SELECT {columns} WHERE false"
    listed = ",\n  ".join(_quoted(str(file)) for file in files)
    # Made only of the manifest's own paths, quoted.
    return f"SELECT * FROM read_parquet([\n  {listed}\n], union_by_name = true, hive_partitioning = false)"  # noqa: S608


def _sql_type(dtype: pl.DataType | DataTypeClass) -> str:
    """What DuckDB calls a type of the lake."""
    if isinstance(dtype, pl.List):
        return f"{_sql_type(dtype.inner)}[]"
    if isinstance(dtype, pl.Struct):
        return f"STRUCT({', '.join(f'{field.name} {_sql_type(field.dtype)}' for field in dtype.fields)})"
    return next((name for of, name in _SQL_TYPES.items() if dtype == of), "VARCHAR")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
