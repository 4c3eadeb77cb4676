"""`gate policies`: the policy tables of the policy services."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at, read_file
from api.cli.output import counted, note, print_json, say, table
from gate.clock import utc_now
from gate.errors import FieldError, MaterialRefused, OperatorError
from gate.services.policies.in_force import InForce, ignored, released_file, why_ignored
from gate.services.policies.questions import BY_SERVICE
from gate.services.policies.table import PolicyTable, age_in_days, read_table

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Check, copy, and list the policy tables that the policy services answer from.",
)


@app.command("list")
def list_(home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the active policy tables, and the faults of files that are not active. Exit code 1 if a file is broken."""
    with instance_at(home, database_url) as instance:
        found = instance.policy_tables.all()
        max_age, directory = instance.settings.policy_max_age_days, instance.settings.policy_tables_directory
    today, unread = utc_now().date(), ignored(directory)
    code = 0 if all(one.fault is None for one in found) else 1
    if as_json:
        tables = [_listed(one, today, max_age) for one in found]
        print_json({"directory": str(directory), "tables": tables, "ignored": unread})
        raise typer.Exit(code)
    rows = [
        [
            one.table.service,
            one.origin,
            str(len(one.table.entries)),
            str(_answering(one.table, today, max_age)),
            one.table.hash[:12],
            one.fault,
        ]
        for one in found
    ]
    table(["service", "origin", "entries", "answering", "hash", "fault"], rows, wraps=("fault",))
    say(f"The service reads files from {directory}. A policy service without a file uses the table of this release.")
    for name in unread:
        note(f"gate: {why_ignored(directory / name)}")
    raise typer.Exit(code)


def _listed(found: InForce, today: date, max_age: int) -> dict[str, object]:
    return {
        "service": found.table.service,
        "origin": found.origin,
        "hash": found.table.hash,
        "entries": len(found.table.entries),
        "answering": _answering(found.table, today, max_age),
        "fault": found.fault,
    }


def _answering(read: PolicyTable, today: date, max_age: int) -> int:
    """How many entries can answer with a verdict: not review_only, and verified lately enough."""
    ages = [age_in_days(entry, today) for entry in read.entries if entry["decision_mode"] != "review_only"]
    return sum(age is not None and age <= max_age for age in ages)


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Policy tables, each named after its service: refund.json.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Check policy tables before the service reads them. Exit code 1 if one is broken."""
    checked = [(file, *_checked(file)) for file in files]
    if as_json:
        print_json(
            {
                "files": [
                    {"file": str(file), "ok": read is not None, "errors": [error.to_dict() for error in errors]}
                    for file, read, _, errors in checked
                ]
            }
        )
    else:
        for file, read, message, errors in checked:
            if read is not None:
                modes = Counter(entry["decision_mode"] for entry in read.entries)
                told = ", ".join(f"{count} {mode}" for mode, count in sorted(modes.items())) or "none"
                entries = counted(len(read.entries), "entry", "entries")
                say(f"{file} is a valid policy table of {read.service}: {entries} ({told})")
                continue
            say(f"{file}: {message.replace(' (see errors)', '')}")
            for error in errors:
                say(f"  {error.field}: {error.message} ({error.code})")
    raise typer.Exit(0 if all(read is not None for _, read, _, _ in checked) else 1)


def _checked(file: Path) -> tuple[PolicyTable | None, str, list[FieldError]]:
    if file.suffix != ".json" or file.stem not in BY_SERVICE:
        raise OperatorError("USAGE_INVALID", why_ignored(file))
    try:
        return read_table(read_file(file), file.stem, utc_now().date()), "", []
    except MaterialRefused as error:
        return None, error.message, list(error.errors)


@app.command()
def copy(
    services: Annotated[list[str], typer.Argument(help="Services: refund, cancel, return, trial.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
) -> None:
    """Copy tables of this release into the instance, so that you can edit them. Existing files are kept."""
    if unknown := [service for service in services if service not in BY_SERVICE]:
        raise OperatorError("USAGE_INVALID", f"There is no service {unknown[0]}; use {', '.join(BY_SERVICE)}.")
    with instance_at(home, database_url) as instance:
        directory = instance.settings.policy_tables_directory
    for service in services:
        file = directory / f"{service}.json"
        try:
            directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            with file.open("xb") as written:
                written.write(released_file(service).read_bytes())
        except FileExistsError:
            note(f"{file} already exists and was not changed.")
        except OSError as error:
            raise OperatorError("FILE_UNWRITABLE", f"{file} cannot be written: {error.strerror}.") from error
        else:
            say(f"Wrote {file}. The service reads it at the next question, and again after each change.")
