"""gate backup: one file from which an instance can be laid out anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say
from gate.clock import utc_now
from gate.instance.backup import make_backup

app = typer.Typer(add_completion=False)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to make; it must not be there yet.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Write the ledger, the settings and the signing keys into one file, while the service works.

    The file holds private keys: keep it as safe as they are.
    """
    with instance_at(home, database_url) as instance:
        made = make_backup(instance, file, utc_now())
    missing = None if made.missing is None else str(made.missing)
    if as_json:
        print_json(
            {
                "file": str(made.file),
                "bytes": made.size,
                "entries": made.entries,
                "not_included": missing,
                "logged": made.logged,
            }
        )
        return
    say(f"Wrote {made.file}: {made.entries} entries, {made.size} bytes. It holds private keys; keep it as safe.")
    if missing is not None:
        say(f"The HMAC secret {missing} is not in it; keep that as well.")
    if not made.logged:
        say("The ledger takes no writes now, so the operator log does not have it.")
