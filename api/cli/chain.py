"""`gate chain`: check audit chains against the stored records, and sign checkpoints."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from api.cli.checkpoint import read_checkpoint
from api.cli.checkpoints import begin_epoch, make_checkpoint
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, note, print_json, say
from api.cli.output import progress as progress_bar
from gate.clock import utc_now
from gate.errors import OperatorError, ServiceUnavailable
from gate.instance.audit import Audit, Comparison, check_chains, check_checkpoint, compare
from gate.instance.checkpoint_log import CheckpointLog
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.proof.checkpoint import Checkpoint

Processes = Annotated[
    int | None,
    typer.Option(min=1, max=256, help="The number of processes that check. Default: one for each processor."),
]
ShowProgress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Show progress on stderr. Default: on a terminal."),
]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Check audit chains, and sign checkpoints of them.")


@app.command()
def check(
    scope: Annotated[str | None, typer.Option(help="Check only this scope's chain. Default: every chain.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="An earlier checkpoint. Its chain must still contain it.")
    ] = None,
    checkpoint_log: Annotated[
        list[Path] | None,
        typer.Option(
            help="Another log of kept checkpoints, from another host or an export. Repeatable. This host's "
            "own log is always compared."
        ),
    ] = None,
    processes: Processes = None,
    progress: ShowProgress = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Recompute every chain and compare the kept checkpoints: 0 whole, 1 broken, with the place, 2 the command failed.

    The service can keep running. The next check covers entries that are appended after this one started.
    """
    kept = None if checkpoint is None else read_checkpoint(checkpoint)
    with instance_at(home, database_url) as instance:
        scopes = _scopes(instance, scope)
        results = chain_results(instance, scopes, processes=processes, asked=progress, as_json=as_json)
        if scope is None:
            results += [_lost_result(*found) for found in instance.ledger.audited.lost_scopes()]
        if kept is not None:
            results.append(_checkpoint_result(instance, scopes, kept))
        chosen = None if scope is None else {found.scope_id for found in scopes}
        logs = log_results(instance, checkpoint_log or [], chosen)
        _tell_broken(instance, results, logs)
    whole = all(result["whole"] for result in (*results, *logs))
    if as_json:
        print_json({"whole": whole, "chains": results, "checkpoint_logs": logs})
    else:
        for result in results:
            print_result(result)
        for log in logs:
            print_log(log)
        if not logs:
            note("No kept checkpoints were compared: this host has no checkpoint log, and --checkpoint-log names none.")
    raise typer.Exit(0 if whole else 1)


app.command("checkpoint")(make_checkpoint)
app.command("epoch")(begin_epoch)


def _tell_broken(instance: Instance, results: list[dict[str, object]], logs: list[LogResult]) -> None:
    """Tells webhooks of the chains that do not hold, as far as the ledger can still be written."""
    found: list[tuple[str, str, int | None]] = []
    for result in results:
        if not result["whole"]:
            position = result.get("broken_at")
            check = "checkpoint" if "checkpoint" in result else "entries"
            found.append((str(result["chain_id"]), check, position if isinstance(position, int) else None))
    chains = {scope.name: scope.chain_id for scope in instance.ledger.directory.scopes()} if found or logs else {}
    for log in logs:
        named = {chains.get(str(wrong["scope"])) for wrong in log["contradictions"]}
        found += [(chain_id, "checkpoint_log", None) for chain_id in sorted(filter(None, named))]
    try:
        instance.webhooks.tell_broken(found, utc_now())
    except ServiceUnavailable as error:
        note(f"No webhook event was recorded: {error.message}")


def _scopes(instance: Instance, name: str | None) -> list[Scope]:
    directory = instance.ledger.directory
    return directory.scopes() if name is None else [directory.scope(name)]


def chain_results(
    instance: Instance, scopes: list[Scope], *, processes: int | None, asked: bool | None, as_json: bool
) -> list[dict[str, object]]:
    """Checks the chains of scopes, and returns the result for each.

    Args:
        instance: The instance.
        scopes: The scopes.
        processes: The number of processes; None means one for each processor.
        asked: Whether to show progress; None shows it on a terminal.
        as_json: Whether the command prints JSON, which turns progress off.
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


def _lost_result(table: str, scope_id: str) -> dict[str, object]:
    return {
        "scope": scope_id,
        "chain_id": "unknown",
        "entries_checked": 0,
        "whole": False,
        "broken_at": None,
        "reason": "It has rows, but no name or no chain head; restore a backup without faults in `gate chain check`.",
        "table": table,
        "row": scope_id,
    }


def _checkpoint_result(instance: Instance, scopes: list[Scope], checkpoint: Checkpoint) -> dict[str, object]:
    chain_id = checkpoint["chain_id"]
    found = next((scope for scope in scopes if scope.chain_id == chain_id), None)
    if found is None:
        raise OperatorError(
            "CHECKPOINT_FOREIGN", "The checkpoint belongs to none of the checked chains; give its scope with --scope."
        )
    reason = check_checkpoint(instance, found.scope_id, checkpoint)
    return {"scope": found.name, "chain_id": chain_id, "checkpoint": True, "whole": reason is None, "reason": reason}


def log_results(instance: Instance, further: list[Path], scope_ids: set[str] | None = None) -> list[LogResult]:
    """Compares this host's checkpoint log, if there is one, and other logs with the chains.

    Args:
        instance: The instance.
        further: The files of the other logs.
        scope_ids: The scopes whose chains are compared; None means all.

    Raises:
        OperatorError: `FILE_UNREADABLE`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    own = instance.settings.checkpoint_log_file
    for file in further:
        if not file.is_file():
            raise OperatorError("FILE_UNREADABLE", f"There is no checkpoint log {file}; check the path.")
    files = {file.resolve(): file for file in (own, *further) if file.is_file()}
    return [_compared(instance, CheckpointLog(file), scope_ids) for file in files.values()]


class LogResult(TypedDict):
    """The result of comparing a checkpoint log with the chains; `reason` says why the log cannot be read."""

    file: str
    whole: bool
    compared: int
    unverified: int
    contradicted: int
    contradictions: list[dict[str, object]]
    cut: list[dict[str, object]]
    reason: str | None


def _compared(instance: Instance, log: CheckpointLog, scope_ids: set[str] | None) -> LogResult:
    try:
        found, reason = compare(instance, log, scope_ids), None
    except ServiceUnavailable as error:
        found, reason = Comparison(str(log.file)), error.message
    return {
        "file": found.file,
        "whole": found.holds and reason is None,
        "compared": found.compared,
        "unverified": found.unverified,
        "contradicted": found.contradicted,
        "contradictions": [asdict(contradiction) for contradiction in found.contradictions],
        "cut": [asdict(cut) for cut in found.cuts],
        "reason": reason,
    }


def print_log(log: LogResult) -> None:
    """Prints the result for a checkpoint log, with its first contradictions and all entries that restores removed."""
    if log["whole"]:
        contained = counted(log["compared"], "checkpoint")
        others = ", and a restore accounts for the others" if log["cut"] else ""
        say(f"whole   checkpoint log {log['file']}: the chains contain {contained}{others}", style="green")
    elif log["reason"] is not None:
        say(f"BROKEN  checkpoint log {log['file']}: {log['reason']}", style="red")
    else:
        say(f"BROKEN  checkpoint log {log['file']}: {counted(log['contradicted'], 'line')} contradicted", style="red")
    for found in log["contradictions"]:
        scope = "" if found["scope"] is None else f"{found['scope']}: "
        say(f"        {found['place']}: {scope}{found['reason']}", style="red")
    if log["contradicted"] > len(log["contradictions"]):
        say(f"        and {log['contradicted'] - len(log['contradictions'])} more", style="red")
    if log["unverified"]:
        say(f"        {counted(log['unverified'], 'checkpoint')} signed with a key that is not trusted", style="yellow")
    for cut in log["cut"]:
        which = cut["scope"] or f"chain {cut['chain_id']}"
        gone = f"entry {cut['last']}" if cut["first"] == cut["last"] else f"entries {cut['first']} to {cut['last']}"
        say(f"cut     {which}: {gone}; {cut['begun_at']}: {cut['reason']}", style="yellow")


def print_result(result: dict[str, object]) -> None:
    what = "checkpoint" if "checkpoint" in result else f"chain {result['chain_id']}"
    if result["whole"]:
        detail = (
            "the chain contains it"
            if "checkpoint" in result
            else counted(int(str(result["entries_checked"])), "entry", "entries")
        )
        say(f"whole   {result['scope']}: {what}, {detail}", style="green")
    else:
        where = f" at position {result['broken_at']}" if result.get("broken_at") else ""
        say(f"BROKEN  {result['scope']}: {what}{where}: {result['reason']}", style="red")
        if result.get("row"):
            say(f"        the row {result['row']} of the table {result['table']}", style="red")
