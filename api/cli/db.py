"""`gate db`: upgrade the schema of the ledger."""

from __future__ import annotations

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json
from api.cli.output import print_json, say
from gate.clock import utc_now
from gate.instance.instance import upgrade_ledger
from gate.instance.settings import load_settings
from gate.ledger.schema import HEAD

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Upgrade the ledger's tables to this release.")


@app.callback()
def db() -> None:
    """Keeps `upgrade` a subcommand of its own."""


@app.command()
def upgrade(home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Upgrade the ledger's tables from an older release to this one.

    Stop every server, and make a backup with the old release first. The upgrade is one transaction. Only the backup can
    undo it.
    """
    before = upgrade_ledger(load_settings(home, database_url=database_url), utc_now())
    if as_json:
        print_json({"from": before, "to": HEAD})
    elif before == HEAD:
        say(f"The ledger already has schema {HEAD}; nothing was changed.")
    else:
        say(f"Upgraded the ledger from schema {before} to {HEAD}.")
