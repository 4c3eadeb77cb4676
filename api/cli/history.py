"""`gate history`: import, list, and remove histories (a team's past cases) of a scope, and erase their rows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at, read_file
from api.cli.output import counted, print_json, progress, say, table
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.instance.instance import Instance
from workbench.history import sets, upkeep
from workbench.history.accounts.account import FIRST, Account
from workbench.history.accounts.summary import columns_of, range_of, warnings_of
from workbench.history.importing import Imported, Plan, foreseen, import_history, rehearse
from workbench.history.mapping import read_map
from workbench.history.sets import HistorySet
from workbench.history.sources import examine
from workbench.lake.entries import Personal

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Import past cases to try rulebooks on, before the first decision here.",
)

ScopeName = Annotated[str, typer.Option("--scope", help="The scope.", show_default=False)]
SetName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the history.", show_default=False)]

_REASONS_SHOWN: Final = 20
_LONGEST: Final = 16


@app.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="CSV, Parquet, or JSON Lines files, in order.", show_default=False),
    ],
    map_file: Annotated[
        Path, typer.Option("--map", help="The map in YAML or JSON: what each column contains.", show_default=False)
    ],
    scope: ScopeName,
    name: Annotated[str, typer.Option("--name", help="The name of the history.", show_default=False)],
    check: Annotated[bool, typer.Option("--check", help="Rehearse: read everything, and write nothing.")] = False,
    allow_refused: Annotated[
        bool, typer.Option("--allow-refused", help="Import the valid rows even if other rows are refused.")
    ] = False,
    refused: Annotated[
        Path | None,
        typer.Option("--refused", help="Write every refused row to this file, as JSON Lines.", show_default=False),
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import files of past cases as a history of a scope. Rehearse with `--check` first.

    Repeat the command to continue an interrupted import. It does nothing if the history already exists.

    Exit codes: 0 imported; 1 nothing is imported, because rows are refused or there are none (with `--check`: would
    be); 2 the command failed.
    """
    sets.require_name(name)
    map_ = read_map(read_file(map_file), str(map_file))
    sources = [examine(file, map_.format) for file in files]
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        settings = instance.settings
        personal = Personal.of(settings.personal_fields)
        plan = Plan(settings.lake_directory, of.scope_id, of.name, name, map_, sources, personal, utc_now())
        total = sum(source.bytes for source in sources)
        would = None
        with _refused_file(refused) as target, progress("Reading", total, as_json=as_json) as told:
            if check:
                done = rehearse(plan, target, told)
                would = foreseen(plan, done.account or Account(), allow_refused=allow_refused)
            else:
                done = import_history(plan, allow_refused=allow_refused, refused_to=target, told=told)
        if done.found is not None and not done.already:
            _log(instance, "history.imported", done.found)
    _report(plan, done, would=would, refused=refused, as_json=as_json)
    stopped = done.found is None if would is None else would.startswith("refuse")
    raise typer.Exit(1 if stopped else 0)


@contextmanager
def _refused_file(path: Path | None) -> Iterator[BinaryIO | None]:
    if path is None:
        yield None
        return
    try:
        with path.open("wb") as file:
            yield file
    except OSError as error:
        raise OperatorError("FILE_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error


def _log(instance: Instance, action: str, of: HistorySet, **more: object) -> None:
    with instance.ledger.operator_log.recording(action, f"{of.scope}/{of.name}", utc_now()) as details:
        details.update({"history_hash": of.history_hash, "rows": of.rows, **more})


def _report(plan: Plan, done: Imported, *, would: str | None, refused: Path | None, as_json: bool) -> None:
    columns = [] if done.account is None else columns_of(done.account, plan.map_)
    warnings = [] if done.account is None else warnings_of(done.account, plan.map_)
    if as_json:
        account = {} if done.account is None else done.account.to_dict()
        print_json(
            {
                "scope": plan.scope,
                "name": plan.name,
                "checked": would is not None,
                **({} if would is None else {"import_would": would}),
                "imported": done.found is not None,
                "already": done.already,
                "resumed_after": done.resumed,
                **({} if done.found is None else {"history_hash": done.found.history_hash}),
                "map_hash": plan.map_.hash,
                **account,
                "columns": columns,
                "warnings": warnings,
            }
        )
        return
    if done.account is not None:
        _print_account(done.account, columns, warnings)
        if done.account.refused and refused is not None:
            say(f"Wrote the refused rows to {refused}.")
    if would is not None and done.account is not None:
        _print_foreseen(plan, done.account, would)
    else:
        _print_end(plan, done)


def _print_account(account: Account, columns: Sequence[dict[str, Any]], warnings: Sequence[str]) -> None:
    table(
        ["column", "is", "type", "values", "absent", "refused", "such as", "from ... to"],
        [
            [
                of["column"],
                of["member"],
                of["type"],
                f"{of['values']:,}",
                f"{of['absent']:,}",
                f"{of['refused']:,}",
                ", ".join(each if len(each) <= _LONGEST else f"{each[:_LONGEST]}..." for each in of["examples"]),
                range_of(of),
            ]
            for of in columns
        ],
    )
    span = f", decided from {account.first[:10]} to {account.last[:10]}" if account.first and account.last else ""
    refused = f"; {counted(account.refused, 'row')} refused" if account.refused else ""
    say(f"{counted(account.read, 'row')} read, {counted(account.rows, 'row')} understood{span}{refused}.")
    for warning in warnings:
        say(warning, style="yellow")
    body = account.to_dict()
    for of in body["reasons"][:_REASONS_SHOWN]:
        where = "" if of["column"] is None else f" in {of['column']}"
        say(f"{of['rows']:,} refused{where}: {of['reason']}", style="red")
    if not account.refused:
        return
    say("The refused rows:" if account.refused <= FIRST else f"The first {FIRST} of the refused rows:")
    table(
        ["file", "row", "line", "column", "value", "reason"],
        [[of["file"], of["row"], of["line"], of["column"], of["value"], of["reason"]] for of in body["first_refused"]],
        wraps=("reason", "value"),
    )


def _print_foreseen(plan: Plan, account: Account, would: str) -> None:
    ends = {
        "nothing": f"An import would do nothing: the history {plan.name} of {plan.scope} already has these files.",
        "refuse_name": f"An import would be refused: {plan.scope} already has another history named {plan.name}. "
        f"Choose another name, or remove that history first: `gate history remove {plan.name} --scope {plan.scope}`.",
        "refuse_empty": f"An import would be refused: {_nothing(account)}",
        "refuse_rows": "An import would be refused, because rows are refused. Correct the files or the map, or add "
        f"--allow-refused to import {counted(account.rows, 'row')} without them.",
        "import": f"An import would add {counted(account.rows, 'row')}.",
    }
    say("Nothing was written.")
    say(ends[would], style="red" if would.startswith("refuse") else None)


def _print_end(plan: Plan, done: Imported) -> None:
    if done.already and done.found is not None:
        say(f"The history {plan.name} of {plan.scope} already has these files: {done.found.history_hash}")
    elif done.found is not None:
        say(f"Imported the history {plan.name} of {plan.scope}: {done.found.history_hash}", style="green")
        say(f"In Python: open_lake(...).scope({plan.scope!r}).history({plan.name!r}).")
    elif done.account is not None and not done.account.rows:
        say(f"Nothing was imported: {_nothing(done.account)}", style="red")
    else:
        say(
            "Nothing was imported, because rows were refused. Correct the files or the map, or add --allow-refused to "
            "import the other rows.",
            style="red",
        )


def _nothing(account: Account) -> str:
    """Why there is nothing to import."""
    if account.read:
        return "no row was understood. Correct the files or the map."
    return "the files have no rows. Give files with past cases."


@app.command("list")
def list_(
    scope: Annotated[str | None, typer.Option("--scope", help="Only this scope. Default: all scopes.")] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List the histories, with their hashes."""
    with instance_at(home, database_url) as instance:
        lake = instance.settings.lake_directory
        if scope is None:
            scopes = sorted(instance.ledger.tail.scopes(), key=lambda of: of.name)
            ids = [of.scope_id for of in scopes]
        else:
            ids = [instance.ledger.directory.scope(scope).scope_id]
        found = [of for scope_id in ids for of in sets.all_of(lake, scope_id)]
    if as_json:
        print_json({"histories": [_listed(of) for of in found]})
        return
    if not found:
        say("There are no histories. `gate history import` creates one from files of past cases.")
        return
    table(
        ["scope", "name", "policy", "rows", "refused", "erased", "history_hash"],
        [
            [
                of.scope,
                of.name,
                of.map["policy_id"],
                f"{of.rows:,}",
                f"{of.refused:,}",
                f"{len(of.erased):,}",
                of.history_hash,
            ]
            for of in found
        ],
    )


def _listed(of: HistorySet) -> dict[str, object]:
    return {
        "scope": of.scope,
        "name": of.name,
        "policy_id": of.map["policy_id"],
        "rows": of.rows,
        "refused": of.refused,
        "erased": len(of.erased),
        "bytes": sum(file.bytes for file in of.files),
        "sources": [{"name": each.name, "bytes": each.bytes, "sha256": each.sha256} for each in of.sources],
        "map_hash": of.map_hash,
        "importer_version": of.importer_version,
        "left_out": list(of.personal),
        "history_hash": of.history_hash,
    }


@app.command()
def remove(
    name: SetName, scope: ScopeName, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Remove a history, or the rest of an interrupted import. Only its files can restore it."""
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        upkeep.remove(instance.settings.lake_directory, of.scope_id, of.name, name)
        with instance.ledger.operator_log.recording("history.removed", f"{of.name}/{name}", utc_now()):
            pass
    if as_json:
        print_json({"scope": of.name, "removed": name})
    else:
        say(f"Removed the history {name} of {of.name}.")


@app.command()
def erase(
    name: SetName,
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ROW_ID...",
            help="The ids of the rows, as in the files, or row:ID as in reports.",
            show_default=False,
        ),
    ],
    scope: ScopeName,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Erase rows of a history. They stay erased if you import the same files again. Remove them from your files
    yourself.
    """
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        found, now, before = upkeep.erase(instance.settings.lake_directory, of.scope_id, of.name, name, ids)
        if now:
            # The ids of people's rows stay out of the log.
            _log(instance, "history.rows_erased", found, erased=len(found.erased))
    if as_json:
        print_json(
            {
                "scope": of.name,
                "name": name,
                "erased_now": len(now),
                "erased_before": len(before),
                "erased": len(found.erased),
                "history_hash": found.history_hash,
            }
        )
        return
    if before:
        them = "it" if len(before) == 1 else "them"
        say(f"{counted(len(before), 'row')} of {name} had been erased before; nothing changed for {them}.")
    if now:
        again = f"`gate lake verify --scope {shlex.quote(of.name)}`"
        say(f"Erased {counted(len(now), 'row')} of {name}; its history_hash is now {found.history_hash}.")
        say(f"Older backups still contain them. {again} checks the files.")
