"""Imported histories of a scope, and the import of an uploaded file.

A rehearsal says what was understood of the file; the same bytes, with the same map and name, can then be imported. The
file lies in a private folder until it is imported, another one is sent, or its sender leaves the page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

import polars as pl

from gate.decisions.migrations.rules import require_act
from gate.errors import OperatorError
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import User
from workbench.dashboard.store.reports import ScopeReports
from workbench.history import sets
from workbench.history.importing import Imported, Plan, import_history, rehearse
from workbench.history.mapping import read_map
from workbench.history.sets import HistorySet
from workbench.history.sources import examine
from workbench.lake.entries import Personal

MAP: Final = "The map"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The plan or the result of an import.

    Attributes:
        plan: The plan of the import.
        imported: How the file was read, and the imported set once it exists.
    """

    plan: Plan
    imported: Imported


@dataclass(frozen=True, slots=True)
class Listed:
    """A set in the list of a scope.

    Attributes:
        name: Its name.
        found: What it holds; None where it cannot be read.
        first: When its first case was decided; None where it has none.
        last: When its last case was.
    """

    name: str
    found: HistorySet | None
    first: datetime | None = None
    last: datetime | None = None


class Histories:
    """The imported histories of scopes."""

    def __init__(self, instance: Instance, personal: Personal, clock: Callable[[], datetime]) -> None:
        """Composes it.

        Args:
            instance: The instance.
            personal: What its lake leaves out.
            clock: The current moment, in UTC.
        """
        self._instance: Final = instance
        self._lake: Final = instance.settings.lake_directory
        self._personal: Final = personal
        self._clock: Final = clock

    def of(self, scope_id: str, reports: ScopeReports) -> list[Listed]:
        """The sets of a scope, by name.

        Args:
            scope_id: The scope.
            reports: Answers about it.
        """
        return [self._listed(scope_id, name, reports) for name in sets.names_of(self._lake, scope_id)]

    def require_import(self, user: User, scope: Scope) -> None:
        """Requires that a user may import.

        Raises:
            AccessForbidden: `HISTORY_FORBIDDEN`.
        """
        require_act(user, scope, "draft", "approve", code="HISTORY_FORBIDDEN")

    def rehearse(self, scope: Scope, user: User, name: str, map_text: str, file: Path) -> Rehearsal:
        """Says what would be imported of a file, and writes nothing.

        Args:
            scope: The scope.
            user: The user who imports.
            name: The name of the history.
            map_text: The map.
            file: The file, in a folder of this process.

        Raises:
            AccessForbidden: `HISTORY_FORBIDDEN`.
            OperatorError: `HISTORY_NAME_INVALID`, `HISTORY_MAP_INVALID`, or as `workbench.history.importing.rehearse`.
        """
        plan = self._plan(scope, user, name, map_text, file)
        try:
            return Rehearsal(plan, rehearse(plan))
        except OperatorError as error:
            raise _without_folder(error, file) from error

    def import_(self, scope: Scope, user: User, rehearsed: Rehearsal, *, allow_refused: bool) -> Rehearsal:
        """Imports what was rehearsed, and logs it.

        Args:
            scope: The scope.
            user: The user who imports.
            rehearsed: The rehearsal.
            allow_refused: Whether it is imported although rows are refused.

        Raises:
            AccessForbidden: `HISTORY_FORBIDDEN`.
            OperatorError: `HISTORY_NOT_REHEARSED`: the file is another one by now; or as
                `workbench.history.importing.import_history`.
        """
        self.require_import(user, scope)
        plan = rehearsed.plan
        (source,) = plan.sources
        try:
            if examine(source.path, plan.map_.format).sha256 != source.sha256:
                raise OperatorError("HISTORY_NOT_REHEARSED", "The file has changed. Rehearse it first.")
            done = import_history(plan, allow_refused=allow_refused)
        except OperatorError as error:
            raise _without_folder(error, source.path) from error
        if done.found is not None and not done.already:
            log, subject = self._instance.ledger.operator_log, f"{scope.name}/{plan.name}"
            with log.recording("history.imported", subject, self._clock()) as details:
                found = done.found
                details.update({"history_hash": found.history_hash, "rows": found.rows, "by": user.name})
        return replace(rehearsed, imported=done)

    def _plan(self, scope: Scope, user: User, name: str, map_text: str, file: Path) -> Plan:
        self.require_import(user, scope)
        sets.require_name(name)
        map_ = read_map(map_text.encode("utf-8", "replace"), MAP)
        try:
            source = examine(file, map_.format)
        except OperatorError as error:
            raise _without_folder(error, file) from error
        return Plan(self._lake, scope.scope_id, scope.name, name, map_, [source], self._personal, self._clock())

    def _listed(self, scope_id: str, name: str, reports: ScopeReports) -> Listed:
        try:
            return Listed(name, sets.load(self._lake, scope_id, name), *reports.of_source(name).span())
        except (OperatorError, OSError, pl.exceptions.PolarsError):
            # Removed meanwhile, or its files are damaged: the others are shown all the same.
            return Listed(name, None)


def _without_folder(error: OperatorError, file: Path) -> OperatorError:
    """An error that names a file as its sender knows it."""
    return OperatorError(error.code, error.message.replace(str(file), file.name))
