"""gate chain: check audit chains against the stored records, and sign checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.checkpoint import read_checkpoint
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say
from api.cli.output import progress as progress_bar
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.instance.audit import Audit, check_chains, check_checkpoint
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.proof import chain

Processes = Annotated[
    int | None, typer.Option(min=1, max=256, help="In how many processes; default: one for each processor.")
]
ShowProgress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Show the progress on stderr; default: where a person watches."),
]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Check audit chains, and sign checkpoints of them.")


@app.command()
def check(
    scope: Annotated[str | None, typer.Option(help="Only this scope's chain; default: every chain.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A checkpoint kept from earlier; its chain must still contain it.")
    ] = None,
    processes: Processes = None,
    progress: ShowProgress = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Recompute every chain, and all that follows from it, from the stored records: 0 whole, 1 broken, with the place.

    The service may be in use meanwhile; what is appended after the check began is left to the next one.
    """
    kept = None if checkpoint is None else read_checkpoint(checkpoint)
    with instance_at(home, database_url) as instance:
        scopes = _scopes(instance, scope)
        results = chain_results(instance, scopes, processes=processes, asked=progress, as_json=as_json)
        if kept is not None:
            results.append(_checkpoint_result(instance, scopes, kept))
    whole = all(result["whole"] for result in results)
    if as_json:
        print_json({"whole": whole, "chains": results})
    else:
        for result in results:
            print_result(result)
    raise typer.Exit(0 if whole else 1)


@app.command("checkpoint")
def make_checkpoint(
    scope: Annotated[str, typer.Option(help="The scope whose chain to sign.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Print a signed checkpoint of a chain in JSON. Keep it where the instance's operators cannot change it."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        signer = instance.signers().receipt
        if signer is None:
            raise OperatorError(
                "SIGNING_OFF", "Receipt signing is off, and an unsigned checkpoint would prove nothing."
            )
        head = instance.ledger.entries.head(found.scope_id)
        print_json(chain.checkpoint(head, timestamp(utc_now()), signer))


def _scopes(instance: Instance, name: str | None) -> list[Scope]:
    directory = instance.ledger.directory
    return directory.scopes() if name is None else [directory.scope(name)]


def chain_results(
    instance: Instance, scopes: list[Scope], *, processes: int | None, asked: bool | None, as_json: bool
) -> list[dict[str, object]]:
    """Checks the chains of scopes, and says of each what was found.

    Args:
        instance: The instance.
        scopes: The scopes.
        processes: In how many processes; None for one for each processor.
        asked: Whether to show the progress; None where a person watches.
        as_json: Whether the command prints for machines: then no progress is shown.
    """
    total = sum(instance.ledger.entries.head(scope.scope_id).size for scope in scopes)
    with progress_bar("Entries", total, as_json=as_json, asked=asked) as told:
        audits = check_chains(instance, [scope.scope_id for scope in scopes], processes=processes, told=told)
    return [_result(scope, audit) for scope, audit in zip(scopes, audits, strict=True)]


def _result(scope: Scope, audit: Audit) -> dict[str, object]:
    finding = audit.finding
    return {
        "scope": scope.name,
        "chain_id": scope.chain_id,
        "entries_checked": audit.entries,
        "whole": finding is None,
        "broken_at": None if finding is None else finding.position,
        "reason": None if finding is None else finding.reason,
        "table": None if finding is None else finding.table,
        "row": None if finding is None else finding.row,
    }


def _checkpoint_result(instance: Instance, scopes: list[Scope], checkpoint: chain.Checkpoint) -> dict[str, object]:
    chain_id = checkpoint["chain_id"]
    found = next((scope for scope in scopes if scope.chain_id == chain_id), None)
    if found is None:
        raise OperatorError("CHECKPOINT_FOREIGN", "The checkpoint is of no chain that was checked; name its --scope.")
    reason = check_checkpoint(instance, found.scope_id, checkpoint)
    return {"scope": found.name, "chain_id": chain_id, "checkpoint": True, "whole": reason is None, "reason": reason}


def print_result(result: dict[str, object]) -> None:
    what = "checkpoint" if "checkpoint" in result else f"chain {result['chain_id']}"
    if result["whole"]:
        detail = "the chain contains it" if "checkpoint" in result else f"{result['entries_checked']} entries"
        say(f"whole   {result['scope']}: {what}, {detail}", style="green")
    else:
        where = f" at position {result['broken_at']}" if result.get("broken_at") else ""
        say(f"BROKEN  {result['scope']}: {what}{where}: {result['reason']}", style="red")
        if result.get("row"):
            say(f"        the row {result['row']} of the table {result['table']}", style="red")
