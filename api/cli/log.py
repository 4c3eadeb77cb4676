"""`gate log`: show the operator log."""

from __future__ import annotations

import textwrap
from typing import Annotated

import orjson
import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import WIDTH, print_json, say
from gate.ledger.access.operator_log import LogEntry

app = typer.Typer(add_completion=False)


@app.command()
def log(
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The number of latest entries to show.")] = 50,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show what operators changed in scopes, plans, keys, users, and the ledger. Exit code 1 if the log was altered.
    Save the output of `gate log --json` elsewhere to detect entries removed from the end. Each `entry_hash` is the
    content hash of the entry's other fields and of `previous_entry_hash`, the hash of the entry before it.
    """
    with instance_at(home, database_url) as instance:
        entries = instance.ledger.operator_log.latest(limit)
        broken_at = instance.ledger.operator_log.find_break()
    if as_json:
        print_json({"whole": broken_at is None, "broken_at": broken_at, "entries": [e.to_dict() for e in entries]})
    else:
        for entry in entries:
            for line in _lines(entry):
                say(line)
        if broken_at is not None:
            say(f"BROKEN at position {broken_at}: this entry was changed or removed.", style="red")
    raise typer.Exit(0 if broken_at is None else 1)


def _lines(entry: LogEntry) -> list[str]:
    """An entry on a line; the operator and the details indented below it."""
    when = entry.created_at[:19].replace("T", " ")
    first = f"{entry.position:>5}  {when}Z  {entry.action}  {entry.subject}"
    details = ", ".join(f"{name}: {orjson.dumps(value).decode()}" for name, value in entry.details.items())
    below = f"by {entry.operator}" + (f"; {details}" if details else "")
    return [first, *textwrap.wrap(below, WIDTH, initial_indent=" " * 7, subsequent_indent=" " * 7)]
