"""Updates the running shadows: the candidates of open migrations decide the exported tail of the chain again.

    watcher = Watcher(ledger, lake, migrations)
    watcher.look()             # runs if the lake grew, and returns at once if that is too early

It reads what the lake holds at that time. No candidate runs where decisions are made, and none authorizes anything.
Each update is complete: the dry run covers everything that was decided since the shadow started.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from gate.clock import utc_now
from gate.decisions.migrations.documents import ProposedRulebook
from gate.decisions.migrations.reading import Migrations
from gate.errors import GateError, OperatorError
from gate.ledger import Ledger
from gate.ledger.shadows import Shadow
from gate.migration.standing import Standing
from workbench.lake.export import require_same_chain
from workbench.lake.fresh import MAX_UNRESOLVED
from workbench.lake.manifest import Manifest, load
from workbench.lake.reader import Snapshot

# What dry runs are made with takes longer to load than all else here, and most services run no shadow.
if TYPE_CHECKING:
    from gate.rulebooks.analysis.difference import Difference
    from workbench.migration.source import LakeHistory

PAUSE: Final = 10.0
"""How many seconds pass between two looks at least."""

PATIENCE: Final = 20.0
"""How many times as long as the last looks took, too: they take at most a twentieth of a processor."""

# A file whose bytes are no longer those that were written can make Polars panic, which is no Exception to Python.
_ANYTHING: Final = (Exception, pl.exceptions.PanicException)

_Key = tuple[str, str]


class Watcher:
    """Looks at the shadows of a ledger."""

    def __init__(
        self,
        ledger: Ledger,
        lake: Path,
        migrations: Migrations,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Composes a watcher.

        Args:
            ledger: The ledger.
            lake: The lake's directory; it need not be there yet.
            migrations: The migrations, which it reads.
            clock: Seconds that pass, from any moment on.
            now: The current moment, in UTC.
        """
        self._ledger = ledger
        self._lake = lake
        self._migrations = migrations
        self._clock = clock
        self._now = now
        self._due = clock()
        # What the last look at each shadow was about, and why it failed.
        self._seen: dict[_Key, object] = {}
        self._failed: dict[_Key, str] = {}
        # An exact comparison may take longer than the dry run, and is the same every time.
        self._differences: dict[tuple[str, str], Difference] = {}

    def look(self) -> list[BaseException]:
        """Looks at every shadow whose chain the lake followed further, unless it is too early for that.

        Returns:
            What newly kept single shadows from being looked at; the others are not kept waiting.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the ledger cannot tell its shadows.
        """
        if self._clock() < self._due:
            return []
        running = self._ledger.shadows.running()
        self._forget_others(running)
        if not running:
            return []
        _load()
        began, used = self._clock(), time.process_time()
        failed: list[BaseException] = []
        looked = False
        for shadow in running:
            try:
                looked = self._look(shadow) or looked
            except _ANYTHING as error:  # whatever it is, the other shadows do not wait for it
                looked = True
                if self._is_new(shadow, error):
                    failed.append(error)
        if looked:
            ended = self._clock()
            # Polars works on several processors at once.
            self._due = ended + max(PAUSE, PATIENCE * max(ended - began, time.process_time() - used))
        return failed

    def _forget_others(self, running: list[Shadow]) -> None:
        kept = {(of.scope_id, of.migration_id) for of in running}
        for known in (self._seen, self._failed):
            for key in known.keys() - kept:
                del known[key]
        if not running:
            self._differences.clear()

    def _look(self, shadow: Shadow) -> bool:
        """Looks at a shadow; whether there was something new to see."""
        standing = self._migrations.standing(shadow, shadow.migration_id)
        manifest = load(self._lake, shadow.scope_id)
        if standing is None or manifest is None or manifest.position < shadow.from_position:
            return False
        # The files of a lake whose compaction fails again and again would take more memory than a look is worth.
        if manifest.position - manifest.compacted > MAX_UNRESOLVED:
            return False
        key = shadow.scope_id, shadow.migration_id
        seen = shadow.started_at, standing.evidence_hash, manifest.position
        if self._seen.get(key) == seen:
            return False
        self._require_own(shadow, manifest)
        self._ledger.shadows.keep(shadow, self._found(shadow, standing, manifest), self._now())
        self._seen[key] = seen
        self._failed.pop(key, None)
        return True

    def _require_own(self, shadow: Shadow, manifest: Manifest) -> None:
        scope = self._ledger.tail.scope(shadow.scope_id)
        if scope is not None:
            require_same_chain(self._ledger, manifest, scope)

    def _found(self, shadow: Shadow, standing: Standing, manifest: Manifest) -> dict[str, Any]:
        from workbench.migration.source import LakeHistory

        snapshot = tail_of(self._lake, manifest, shadow.from_position)
        rulebooks = {}
        for candidate in self._migrations.candidates(shadow, standing):
            history = Tail(LakeHistory(snapshot, candidate.rulebook.rulebook_id), shadow.from_position)
            rulebooks[candidate.rulebook.rulebook_id] = self._dry_run(shadow, candidate, history)
        read_at = {
            "chain_id": manifest.chain_id,
            "chain_position": manifest.position,
            "merkle_root": manifest.merkle_root,
        }
        return {"evidence_hash": standing.evidence_hash, "read_at": read_at, "rulebooks": rulebooks}

    def _dry_run(self, shadow: Shadow, candidate: ProposedRulebook, history: Tail) -> dict[str, Any]:
        from workbench.migration.history import dry_run

        rulebook, dependency = candidate.rulebook, candidate.dependency
        active = self._migrations.base(shadow, rulebook.rulebook_id)
        base = None if active is None else self._migrations.rulebook(shadow, active)
        pair = ("" if base is None else base.hash, rulebook.hash)
        run = dry_run(
            history,
            rulebook,
            base,
            adapter_manifest_hash=None if dependency is None else dependency["manifest_hash"],
            difference=self._differences.get(pair),
        )
        if run.difference is not None:
            self._differences[pair] = run.difference
        return run.body

    def _is_new(self, shadow: Shadow, error: BaseException) -> bool:
        """Keeps why a look failed, for `gate migrate shadow show`; whether that was not told before."""
        if isinstance(error, OperatorError) and error.code == "LAKE_MOVED_ON":
            # Facts were erased, or files compacted away, while it looked; the next look opens the lake again.
            return False
        why = _sentence(error)
        key = shadow.scope_id, shadow.migration_id
        if self._failed.get(key) == why:
            return False
        self._failed[key] = why
        # Where the ledger is what failed, the log alone has it.
        with suppress(GateError):
            self._ledger.shadows.fail(shadow, why)
        return True


def _load() -> None:
    """Loads what dry runs are made with, once, so that the first look is not held to take as long as that."""
    import workbench.migration.history  # noqa: F401


def _sentence(error: BaseException) -> str:
    if isinstance(error, GateError):
        return f"{error.message} ({error.code})"
    return f"An unexpected error, {type(error).__qualname__}; the service's log says where."


class Tail:
    """The decisions of a history after a chain position; see `workbench.migration.source.History`."""

    def __init__(self, history: LakeHistory, after: int) -> None:
        """Takes the whole history, and the position."""
        self._history = history
        self._after = after

    @property
    def rulebook_id(self) -> str:
        """As `History.rulebook_id`."""
        return self._history.rulebook_id

    @property
    def read_at(self) -> Any:
        """As `History.read_at`."""
        return self._history.read_at

    @property
    def size(self) -> int:
        """As `History.size`."""
        return self._history.size

    def decisions(self) -> pl.LazyFrame:
        """As `History.decisions`."""
        return self._later(self._history.decisions())

    def facts(self, fields: Any) -> pl.LazyFrame:
        """As `History.facts`."""
        return self._later(self._history.facts(fields))

    def adapters(self) -> pl.LazyFrame:
        """As `History.adapters`."""
        return self._later(self._history.adapters())

    def values(self, metric: str) -> pl.LazyFrame:
        """As `History.values`."""
        return self._later(self._history.values(metric))

    def ids(self, positions: pl.Series) -> Any:
        """As `History.ids`."""
        return self._history.ids(positions)

    def _later(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.filter(pl.col("position") > self._after)


def tail_of(lake: Path, manifest: Manifest, after: int) -> Snapshot:
    """What the lake holds of a chain, without the files in which nothing comes after a position: a look costs what was
    decided since, and not what the lake holds.
    """
    # Rulebooks stand at no position.
    files = tuple(of for of in manifest.files if of.table == "rulebooks" or of.last_position > after)
    return Snapshot(lake, replace(manifest, files=files), manifest.position, manifest.merkle_root)
