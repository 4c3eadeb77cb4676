"""gate restore: lay an instance out from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.chain import Processes, ShowProgress, chain_results, print_result
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say
from gate.clock import utc_now
from gate.instance.backup import restore_backup
from gate.instance.settings import load_settings

app = typer.Typer(add_completion=False)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `gate backup` made.")],
    check: Annotated[bool, typer.Option(help="Recompute every chain from the restored records.")] = True,
    processes: Processes = None,
    progress: ShowProgress = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Lay an instance out from a backup, in a directory that has none: 0 restored, 1 restored and a chain is broken.

    What was acknowledged after the backup is not in it: compare the chains with checkpoints that were kept elsewhere.
    """
    restore_backup(file, home, database_url, utc_now())
    with instance_at(home, database_url) as instance:
        scopes = instance.ledger.directory.scopes()
        results = chain_results(instance, scopes, processes=processes, asked=progress, as_json=as_json) if check else []
    named = load_settings(home).database_url
    whole = all(result["whole"] for result in results)
    if as_json:
        print_json({"home": str(home), "whole": whole if check else None, "chains": results})
    else:
        say(f"Restored the instance in {home.absolute()}.")
        if database_url and named and named != database_url:
            say("Its settings.toml still names the ledger it had: change database_url there.")
        for result in results:
            print_result(result)
    raise typer.Exit(0 if whole else 1)
