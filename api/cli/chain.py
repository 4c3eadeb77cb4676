"""gate chain: check audit chains against the stored records, and sign checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.checkpoint import read_checkpoint
from api.cli.checkpoints import begin_epoch, make_checkpoint
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say
from gate.errors import OperatorError
from gate.instance.audit import check_chain, check_checkpoint
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.proof.checkpoint import Checkpoint

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Check audit chains, and sign checkpoints of them.")


@app.command()
def check(
    scope: Annotated[str | None, typer.Option(help="Only this scope's chain; default: every chain.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A checkpoint kept from earlier; its chain must still contain it.")
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Recompute every link and root from the stored records: 0 whole, 1 broken, with the place."""
    kept = None if checkpoint is None else read_checkpoint(checkpoint)
    with instance_at(home, database_url) as instance:
        scopes = _scopes(instance, scope)
        results = [chain_result(instance, found) for found in scopes]
        if kept is not None:
            results.append(_checkpoint_result(instance, scopes, kept))
    whole = all(result["whole"] for result in results)
    if as_json:
        print_json({"whole": whole, "chains": results})
    else:
        for result in results:
            print_result(result)
    raise typer.Exit(0 if whole else 1)


app.command("checkpoint")(make_checkpoint)
app.command("epoch")(begin_epoch)


def _scopes(instance: Instance, name: str | None) -> list[Scope]:
    directory = instance.ledger.directory
    return directory.scopes() if name is None else [directory.scope(name)]


def chain_result(instance: Instance, scope: Scope) -> dict[str, object]:
    checked, broken = check_chain(instance, scope.scope_id)
    return {
        "scope": scope.name,
        "chain_id": scope.chain_id,
        "entries_checked": checked,
        "whole": broken is None,
        "broken_at": None if broken is None else broken.position,
        "reason": None if broken is None else broken.reason,
    }


def _checkpoint_result(instance: Instance, scopes: list[Scope], checkpoint: Checkpoint) -> dict[str, object]:
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
