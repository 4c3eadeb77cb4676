"""gate rulebook show: a version that a scope has registered, printed or written to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import note, print_json
from gate.errors import OperatorError
from gate.records.documents import RulebookPointer


def show(
    rulebook_id: Annotated[str, typer.Argument(help="The rulebook's id.", show_default=False)],
    scope: Annotated[str, typer.Option("--scope", help="The scope.", show_default=False)],
    version: Annotated[
        str | None, typer.Option("--version", help="The version; else the one that its route leads to.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write it to a new file instead.", show_default=False)
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show a version of a rulebook that is registered in a scope, as a file from which the next version can be made.

    It is the rulebook as records cite it, without descriptions. No file is ever overwritten.
    """
    reference: RulebookPointer = {"rulebook_id": rulebook_id}
    if version is not None:
        reference["version"] = version
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        rulebook = instance.gate().sources.referenced(of.scope_id, reference)
    if output is None:
        print_json(rulebook.body)
        return
    _write(output, json.dumps(rulebook.body, indent=2, ensure_ascii=False) + "\n")
    if as_json:
        named = {"rulebook_id": rulebook.rulebook_id, "version": rulebook.version, "hash": rulebook.hash}
        print_json({**named, "file": str(output)})
    else:
        note(f"Wrote {rulebook.rulebook_id} {rulebook.version} to {output}.")


def _write(file: Path, text: str) -> None:
    """Writes a file that is not there yet.

    Raises:
        OperatorError: RULEBOOK_EXISTS or RULEBOOK_UNWRITABLE.
    """
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError as error:
        raise OperatorError("RULEBOOK_EXISTS", f"{file} exists already; choose another file.") from error
    except OSError as error:
        raise OperatorError("RULEBOOK_UNWRITABLE", f"{file} cannot be written: {error.strerror}.") from error
