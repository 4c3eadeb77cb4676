"""`gate restore`: restore an instance from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.chain import Processes, ShowProgress, chain_results, log_results, print_log, print_result
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say
from gate.clock import utc_now
from gate.instance.backup import restore_backup
from gate.instance.settings import load_settings

app = typer.Typer(add_completion=False)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `gate backup` wrote.")],
    check: Annotated[bool, typer.Option(help="Recompute every chain from the restored records.")] = True,
    processes: Processes = None,
    progress: ShowProgress = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Restore an instance from a backup into an empty directory: 0 restored, 1 restored but a chain is broken, 2
    failed.

    The backup's checksum finds damage, but not a change on purpose: only checkpoints kept elsewhere show that. Entries
    made after the backup are missing. The kept checkpoints, of this host and elsewhere, show how many. If checkpoint
    logs of the lost instance survived, copy them into the new home directory first. With `--database-url`, the
    ledger goes into that empty database. Never run a restored instance next to the original. An interrupted restore can
    be repeated.

    Keys, users, and signing keys are those of the backup: before you start the service, disable, rotate, or compromise
    again what was disabled, rotated, or compromised since.
    """
    restore_backup(file, home, database_url, utc_now())
    with instance_at(home, database_url) as instance:
        scopes = instance.ledger.directory.scopes()
        results = chain_results(instance, scopes, processes=processes, asked=progress, as_json=as_json) if check else []
        logs = log_results(instance, []) if check else []
    named = load_settings(home).database_url
    whole = all(result["whole"] for result in (*results, *logs))
    if as_json:
        print_json({"home": str(home), "whole": whole if check else None, "chains": results, "checkpoint_logs": logs})
    else:
        say(f"Restored the instance in {home.absolute()}.")
        say("API keys, users, and signing keys are those of the backup: repeat what was disabled or rotated since.")
        if database_url and named and named != database_url:
            say("Its settings.toml still has the address of the old ledger; change database_url there.")
        for result in results:
            print_result(result)
        for log in logs:
            print_log(log)
    raise typer.Exit(0 if whole else 1)
