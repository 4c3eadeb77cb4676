"""The dry runs of drafts. Each continues when nobody watches, until it is started again or the process ends.

    proofs.begin(key, asked, work)
    stop = proofs.watch(key, lambda proof: ...)     # now, and whenever it has come further
    proofs.find(key)

A dry run is not evidence yet: that is stored where a migration is proposed, all of it or nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

from gate.encoding.strict_json import JsonObject
from gate.errors import GateError
from workbench.dashboard.studio.workshop import Work, WorkCancelled, Workshop

Key: TypeAlias = tuple[str, str]
"""A scope's id, and a draft's."""

MAX_KEPT: Final = 20
"""How many dry runs are kept at most; the oldest that is done makes room."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request for a dry run.

    Attributes:
        migration_id: The name of the migration.
        summary: What changes and why.
        metric: The metric whose money is reported; None for none.
        since: Only decisions from this day on; None for all.
        history: The imported history whose cases are decided again; None for the decisions in the chain.
        hash: The draft's rulebook.
        cases: The hash of its cases.
        by: The user who asked.
        at: When, UTC timestamp.
    """

    migration_id: str
    summary: str
    metric: str | None
    since: str | None
    history: str | None
    hash: str
    cases: str
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """A dry run.

    Attributes:
        asked: Its request.
        state: Whether it is running, done, canceled, or failed.
        done: How many chain positions are done.
        of: The number of all chain positions; 0 until it is known.
        result: {manifest, evidence, dependency} where it is done.
        fault: Why it failed, as a sentence.
    """

    asked: Asked
    state: Literal["running", "done", "cancelled", "failed"] = "running"
    done: int = 0
    of: int = 0
    result: Mapping[str, Any] | None = None
    fault: str = ""


Watcher: TypeAlias = Callable[[DryRun], None]


class Proofs:
    """The dry runs of all drafts."""

    def __init__(self, workshop: Workshop) -> None:
        """Has none yet.

        Args:
            workshop: What does them.
        """
        self._workshop: Final = workshop
        self._lock: Final = Lock()
        self._runs: OrderedDict[Key, DryRun] = OrderedDict()
        self._works: dict[Key, Work] = {}
        self._watchers: dict[Key, list[Watcher]] = {}

    def begin(self, key: Key, asked: Asked, arguments: JsonObject) -> None:
        """Begins the dry run of a draft, and ends one that is still running for it.

        Args:
            key: The draft.
            asked: The request.
            arguments: As `works.WORKS["prove"]` takes them.
        """
        work = self._workshop.begin("prove", arguments, lambda progress: self._told(key, work, progress))
        with self._lock:
            before = self._works.get(key)
            self._works[key] = work
            self._runs[key] = DryRun(asked)
            self._runs.move_to_end(key)
            self._make_room()
        if before is not None:
            before.cancel()
        self._tell(key)
        self._workshop.beside(lambda: self._wait(key, work))

    def cancel(self, key: Key) -> None:
        """Ends the dry run of a draft, if one is running."""
        with self._lock:
            work = self._works.get(key)
        if work is not None:
            work.cancel()

    def find(self, key: Key) -> DryRun | None:
        """The dry run of a draft; None where there is none, or none any more."""
        with self._lock:
            return self._runs.get(key)

    def forget(self, key: Key) -> None:
        """Forgets the dry run of a proposed draft; its result is in the ledger."""
        with self._lock:
            if key not in self._works:
                self._runs.pop(key, None)

    def watch(self, key: Key, watcher: Watcher) -> Callable[[], None]:
        """Tells a watcher about the progress of a draft's dry run; the returned function ends that."""
        with self._lock:
            self._watchers.setdefault(key, []).append(watcher)

        def stop() -> None:
            with self._lock:
                watchers = self._watchers.get(key, [])
                if watcher in watchers:
                    watchers.remove(watcher)
                if not watchers:
                    self._watchers.pop(key, None)

        return stop

    def _wait(self, key: Key, work: Work) -> None:
        try:
            result = work.result()
        except WorkCancelled:
            self._change(key, work, state="cancelled")
        except GateError as error:
            self._change(key, work, state="failed", fault=error.message)
        else:
            self._change(key, work, state="done", result=result)

    def _told(self, key: Key, work: Work, progress: JsonObject) -> None:
        self._change(key, work, done=progress["done"], of=progress["of"])

    def _change(self, key: Key, work: Work, **changes: Any) -> None:
        with self._lock:
            # Another one may have taken its place.
            if self._works.get(key) is not work or key not in self._runs:
                return
            self._runs[key] = replace(self._runs[key], **changes)
            if "state" in changes:
                del self._works[key]
        self._tell(key)

    def _tell(self, key: Key) -> None:
        with self._lock:
            run, watchers = self._runs.get(key), list(self._watchers.get(key, ()))
        for watcher in watchers:
            if run is not None:
                watcher(run)

    def _make_room(self) -> None:
        for key in list(self._runs):
            if len(self._runs) <= MAX_KEPT:
                return
            if key not in self._works:
                del self._runs[key]
