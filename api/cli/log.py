"""gate log: what operators did."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say, table
from gate.ledger.access.operator_log import LogEntry

app = typer.Typer(add_completion=False)


@app.command()
def log(
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many entries to show, the latest.")] = 50,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show what was done to scopes, plans, keys and the ledger, by whom and when. Exits with 1 where it was altered."""
    with instance_at(home, database_url) as instance:
        entries = instance.ledger.operator_log.latest(limit)
        broken_at = instance.ledger.operator_log.find_break()
    if as_json:
        print_json({"whole": broken_at is None, "broken_at": broken_at, "entries": [e.to_dict() for e in entries]})
    else:
        table(["position", "when", "operator", "action", "subject", "details"], map(_row, entries))
        if broken_at is not None:
            say(f"BROKEN at position {broken_at}: the entry there was changed, or is not there.", style="red")
    raise typer.Exit(0 if broken_at is None else 1)


def _row(entry: LogEntry) -> list[object]:
    details = orjson.dumps(dict(entry.details)).decode()
    return [entry.position, entry.created_at, entry.operator, entry.action, entry.subject, details]
