"""`gate backup`: back up an instance to one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, print_json, say
from gate.clock import utc_now
from gate.errors import ServiceUnavailable
from gate.instance.backup import make_backup
from gate.instance.instance import Instance

app = typer.Typer(add_completion=False)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write. It must not exist.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Write the ledger, the settings, the signing keys, and `checkpoints.jsonl` to one file. The service can keep
    running.

    The file contains private keys: protect it like the keys. It contains imported histories, but neither the HMAC
    secret nor the lake, which is exported again. Copy checkpoint logs that are elsewhere or have a date yourself.
    """
    with instance_at(home, database_url) as instance:
        made = make_backup(instance, file, utc_now())
        contradicted = _contradicted(instance)
    missing = None if made.missing is None else str(made.missing)
    if as_json:
        print_json(
            {
                "file": str(made.file),
                "bytes": made.size,
                "entries": made.entries,
                "not_included": missing,
                "logged": made.logged,
                "contradicted": contradicted,
            }
        )
        return
    size = f"{counted(made.entries, 'entry', 'entries')}, {made.size} bytes"
    say(f"Wrote {made.file}: {size}. It holds private keys: protect it like them.")
    if missing is not None:
        say(f"It does not hold the HMAC secret {missing}; back that file up as well.")
    if not made.logged:
        say("The ledger is read-only now, so the operator log has no entry about this backup.")
    for reason in contradicted:
        say(f"Backed up as it is, but: {reason} Run `gate chain check`, and keep older backups.", style="red")


def _contradicted(instance: Instance) -> list[str]:
    """Why the chains contradict the kept checkpoints, if they do; this does not stop the backup."""
    try:
        found = instance.checkpoints.look(utc_now())
    except ServiceUnavailable as error:
        return [error.message]
    return [] if found is None else [refusal.reason for refusal in found.refused]
