"""`gate lake`: export the ledger to Parquet, and maintain the export."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final, TypedDict

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, note, print_json, progress, say, table
from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.reads.tail import FollowedScope
from workbench.history.sets import all_of as histories_of
from workbench.history.upkeep import faults as history_faults
from workbench.lake.cohorts import fault as frozen_fault
from workbench.lake.cohorts import frozen_months, keep_frozen
from workbench.lake.compaction import Compactor
from workbench.lake.entries import Personal
from workbench.lake.lease import lease
from workbench.lake.manifest import Manifest, load
from workbench.lake.upkeep import bring_up
from workbench.lake.verify import verify as find_faults

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Export the ledger to Parquet files for analysis.")

ScopeName = Annotated[str | None, typer.Option("--scope", help="Only this scope. Default: all scopes.")]

_PATIENCE: Final = 30.0


class _Fault(TypedDict):
    """Something that is not as it should be."""

    check: str
    detail: str


class _VerifiedScope(TypedDict):
    """What was found of a scope."""

    scope: str
    whole: bool
    entries_checked: int
    faults: list[_Fault]


class _VerifiedHistory(TypedDict):
    """What was found of an imported history."""

    scope: str
    name: str
    whole: bool
    rows: int
    faults: list[str]


class _VerifiedMonth(TypedDict):
    """What was found of a frozen month."""

    month: str
    whole: bool
    fault: str | None


@app.command()
def export(
    scope: ScopeName = None, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Update the lake from the ledger, compact it, and freeze the month's benchmarks (without `--scope`). A running
    service does this on its own. The next export continues an interrupted one.
    """
    with instance_at(home, database_url) as instance, _writing(instance):
        scopes = _scopes(instance, scope)
        held = {found.scope_id: _held(instance, found).position for found in scopes}
        missing = sum(max(0, found.head.size - held[found.scope_id]) for found in scopes)
        done = 0
        with progress("Exporting", missing, as_json=as_json) as tell:
            for found in scopes:
                reached = held[found.scope_id]
                for manifest in _bring_up(instance, found):
                    reached = max(reached, manifest.position)
                    tell(done + reached - held[found.scope_id])
                done += reached - held[found.scope_id]
        results = [_status(instance, found) for found in scopes]
        if scope is None:
            lake = instance.settings.lake_directory
            month = keep_frozen(instance.ledger, lake, _personal(instance), utc_now())
            if month is not None and not as_json:
                note(f"Froze the benchmarks of {month}.")
        _print(instance, results, as_json)


@app.command()
def status(
    scope: ScopeName = None, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Show how far the lake lags behind the ledger, and its size: 0 up to date, 1 behind."""
    with instance_at(home, database_url) as instance:
        results = [_status(instance, found) for found in _scopes(instance, scope)]
        _print(instance, results, as_json)
    raise typer.Exit(0 if all(result["behind"] == 0 for result in results) else 1)


@app.command()
def compact(
    scope: ScopeName = None, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Merge small files, and find the latest outcome and receipt of each decision."""
    with instance_at(home, database_url) as instance, _writing(instance):
        scopes = _scopes(instance, scope)
        for found in scopes:
            _compact(instance, found)
        results = [_status(instance, found) for found in scopes]
        _print(instance, results, as_json)


@app.command()
def verify(
    scope: ScopeName = None,
    against_ledger: Annotated[
        bool, typer.Option("--against-ledger", help="Also compare every row and frozen month with the ledger.")
    ] = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Check the files against their manifest and the chain: 0 whole, 1 damaged. The output lists the damaged places."""
    results: list[_VerifiedScope] = []
    frozen: list[_VerifiedMonth] = []
    imported: list[_VerifiedHistory] = []
    # Without the lease, which the service would wait for: files that are replaced meanwhile linger.
    with instance_at(home, database_url) as instance:
        lake = instance.settings.lake_directory
        for found in _scopes(instance, scope):
            for of in histories_of(lake, found.scope_id):
                wrong = list(history_faults(lake, of))
                imported.append(
                    {"scope": found.name, "name": of.name, "whole": not wrong, "rows": of.rows, "faults": wrong}
                )
            manifest = load(lake, found.scope_id)
            if manifest is None:
                continue
            ledger = instance.ledger if against_ledger else None
            # After the manifest, which a service moves on meanwhile.
            now = instance.ledger.tail.scope(found.scope_id)
            faults: list[_Fault] = [
                {"check": finding.check, "detail": finding.detail}
                for finding in find_faults(lake, manifest, ledger, now)
            ]
            results.append(
                {"scope": found.name, "whole": not faults, "entries_checked": manifest.position, "faults": faults}
            )
        for month in frozen_months(lake) if scope is None else ():
            fault = frozen_fault(lake, month, instance.ledger if against_ledger else None, _personal(instance))
            frozen.append({"month": month, "whole": fault is None, "fault": fault})
    whole = all(result["whole"] for result in (*results, *frozen, *imported))
    if as_json:
        print_json({"whole": whole, "scopes": results, "benchmarks": frozen, "histories": imported})
    elif not results and not frozen and not imported:
        say("The lake is empty. Run `gate lake export` to fill it from the ledger.")
    for result in () if as_json else results:
        if result["whole"]:
            say(f"whole    {result['scope']}: {counted(result['entries_checked'], 'entry', 'entries')}", style="green")
        for finding in result["faults"]:
            say(f"DAMAGED  {result['scope']}: {finding['check']}: {finding['detail']}", style="red")
    for checked in () if as_json else frozen:
        if checked["whole"]:
            say(f"whole    benchmarks of {checked['month']}", style="green")
        else:
            say(f"DAMAGED  benchmarks of {checked['month']}: {checked['fault']}", style="red")
    for history in () if as_json else imported:
        named = f"history {history['name']} of {history['scope']}"
        if history["whole"]:
            say(f"whole    {named}: {counted(history['rows'], 'row')}", style="green")
        for told in history["faults"]:
            say(f"DAMAGED  {named}: {told}", style="red")
    if not as_json and not all(history["whole"] for history in imported):
        say("A damaged history is not in the ledger: import its files again, or restore it from a backup.")
    if not as_json and not all(result["whole"] for result in (*results, *frozen)):
        say(
            "Remove the folder of a damaged scope, or the file of a damaged month. `gate lake export` then rebuilds it "
            "from the ledger."
        )
    raise typer.Exit(0 if whole else 1)


@contextmanager
def _writing(instance: Instance) -> Iterator[None]:
    with lease(instance.settings.lake_directory, patience=_PATIENCE):
        yield


def _held(instance: Instance, scope: FollowedScope) -> Manifest:
    found = load(instance.settings.lake_directory, scope.scope_id)
    return found or Manifest(scope.scope_id, scope.name, scope.head.chain_id)


def _bring_up(instance: Instance, scope: FollowedScope) -> Iterator[Manifest]:
    return bring_up(instance.ledger, instance.settings.lake_directory, scope.scope_id, _personal(instance))


def _personal(instance: Instance) -> Personal:
    return Personal.of(instance.settings.personal_fields)


def _compact(instance: Instance, scope: FollowedScope) -> None:
    lake = instance.settings.lake_directory
    manifest = load(lake, scope.scope_id)
    if manifest is not None:
        for _ in Compactor(lake).compact(manifest):
            pass


def _scopes(instance: Instance, name: str | None) -> list[FollowedScope]:
    if name is None:
        return sorted(instance.ledger.tail.scopes(), key=lambda scope: scope.name)
    # Raises for a name that no scope has.
    wanted = instance.ledger.directory.scope(name).scope_id
    return [scope for scope in instance.ledger.tail.scopes() if scope.scope_id == wanted]


def _status(instance: Instance, scope: FollowedScope) -> dict[str, object]:
    found = _held(instance, scope)
    # After the manifest, which a service moves on meanwhile.
    now = instance.ledger.tail.scope(scope.scope_id) or scope
    return {
        "scope": scope.name,
        "scope_id": scope.scope_id,
        "ledger_position": now.head.size,
        "position": found.position,
        "behind": now.head.size - found.position,
        "compacted": found.compacted,
        "merkle_root": found.merkle_root,
        "files": len(found.files),
        "rows": sum(file.rows for file in found.files),
        "bytes": sum(file.bytes for file in found.files),
        "left_out": list(found.personal),
    }


def _print(instance: Instance, results: list[dict[str, object]], as_json: bool) -> None:
    if as_json:
        months = frozen_months(instance.settings.lake_directory)
        print_json({"scopes": results, "benchmarks": months[-1] if months else None})
        return
    columns = {
        "scope": "scope",
        "entries": "ledger_position",
        "exported": "position",
        "behind": "behind",
        "compacted": "compacted",
        "files": "files",
        "bytes": "bytes",
    }
    table(
        list(columns),
        [[f"{result[of]:,}" if of != "scope" else result[of] for of in columns.values()] for result in results],
    )
