"""`gate rulebook list` and `show`: list the versions that a scope has registered, and print or write one of them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import minute, note, print_json, table
from gate.errors import OperatorError, RulebookRefused
from gate.records.documents import RulebookPointer

_LISTED: Final = 1000


def list_rulebooks(
    scope: Annotated[str, typer.Option("--scope", help="The scope.", show_default=False)],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List the rulebooks that are registered in a scope, latest first, with the active version of each route."""
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        found = instance.ledger.rulebooks.listed(of.scope_id, limit=_LISTED + 1)
        in_force = {routes[-1]["to"]["hash"] for routes in instance.migrations().routes(of).values()}
    shown, more = found[:_LISTED], len(found) > _LISTED
    if as_json:
        rulebooks = [{**asdict(each), "routed": each.hash in in_force} for each in shown]
        print_json({"rulebooks": rulebooks, "more": more})
        return
    rows = [
        [
            each.rulebook_id,
            each.version,
            minute(each.registered_at),
            "active" if each.hash in in_force else None,
            each.hash,
        ]
        for each in shown
    ]
    table(["rulebook", "version", "registered (UTC)", "route", "hash"], rows)
    if more:
        note(f"Only the latest {_LISTED:,} are listed; there are more.")
    if shown:
        command = f"gate rulebook show RULEBOOK_ID --scope {scope} --version VERSION --output FILE"
        note(f"To start the next version from one of them: `{command}`.")


def show(
    rulebook_id: Annotated[str, typer.Argument(help="The id of the rulebook.", show_default=False)],
    scope: Annotated[str, typer.Option("--scope", help="The scope.", show_default=False)],
    version: Annotated[
        str | None, typer.Option("--version", help="The version. Default: the version that its route leads to.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write to this new file instead of stdout.", show_default=False)
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show a registered version of a rulebook as a file, from which you can make the next version.

    It is the rulebook as records cite it, without descriptions. No file is overwritten.
    """
    reference: RulebookPointer = {"rulebook_id": rulebook_id}
    if version is not None:
        reference["version"] = version
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        try:
            rulebook = instance.gate().sources.referenced(of.scope_id, reference)
        except RulebookRefused as error:
            raise _unknown(scope, reference, error) from error
    if output is None:
        print_json(rulebook.body)
        return
    _write(output, json.dumps(rulebook.body, indent=2, ensure_ascii=False) + "\n")
    if as_json:
        named = {"rulebook_id": rulebook.rulebook_id, "version": rulebook.version, "hash": rulebook.hash}
        print_json({**named, "file": str(output)})
    else:
        note(f"Wrote {rulebook.rulebook_id} {rulebook.version} to {output}.")


def _unknown(scope: str, asked: RulebookPointer, error: RulebookRefused) -> OperatorError:
    """The service's error about a reference in a request, in the terms of the command's options."""
    known = ", ".join(error.details.get("registered_versions", ()))
    if not known:
        there = "The scope has registered no version of it"
    elif "version" in asked:
        there = f"This version is not registered. Registered versions, newest first: {known}"
    else:
        there = f"It has no route, so give a version with --version. Registered versions, newest first: {known}"
    named = " ".join(str(name) for name in asked.values())
    return OperatorError(error.code, f"{named}: {there}. `gate rulebook list --scope {scope}` lists all rulebooks.")


def _write(file: Path, text: str) -> None:
    """Writes a file that is not there yet.

    Raises:
        OperatorError: RULEBOOK_EXISTS or RULEBOOK_UNWRITABLE.
    """
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError as error:
        raise OperatorError("RULEBOOK_EXISTS", f"{file} already exists; choose another file.") from error
    except OSError as error:
        raise OperatorError("RULEBOOK_UNWRITABLE", f"{file} cannot be written: {error.strerror}.") from error
