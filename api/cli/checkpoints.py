"""`gate chain checkpoint` and `gate chain epoch`: sign and export checkpoints, and begin a new checkpoint log epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from api.cli.confirmation import Yes, confirm
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, note, print_json, say
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.instance.checkpoint_log import CheckpointLog
from gate.verify.checkpoint import is_checkpoint


def make_checkpoint(
    scope: Annotated[str | None, typer.Option(help="The scope whose chain to sign or export.")] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Write every checkpoint that this host has kept to this new file, one JSON object per line."),
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Print a signed checkpoint of a chain, or export the kept checkpoints.

    Give it to someone who cannot write to this instance's database or disk. With `--export`, the command first keeps a
    checkpoint of each chain that grew, and exits with 1 if a chain contradicts its last one.
    """
    if scope is None and export is None:
        raise OperatorError(
            "USAGE_INVALID", "Name the chain with --scope NAME, or export all of them with --export FILE."
        )
    with instance_at(home, database_url) as instance:
        found = None if scope is None else instance.ledger.directory.scope(scope)
        if export is None and found is not None:
            head = instance.ledger.entries.head(found.scope_id)
            made = instance.checkpoints.sign(found.scope_id, head, timestamp(utc_now()))
            if made is None:
                raise _signing_off()
            print_json(made)
            return
        round_ = instance.checkpoints.keep(utc_now())
        if round_ is None or export is None:
            raise _signing_off()
        with _new_file(export) as file:
            count, chains = _export(instance.checkpoints.log, None if found is None else found.chain_id, file)
    refused = [refusal for refusal in round_.refused if found is None or refusal.chain_id == found.chain_id]
    if as_json:
        print_json({"file": str(export), "checkpoints": count, "chains": chains, "refused": len(refused)})
    else:
        say(f"Wrote {counted(count, 'checkpoint')} of {counted(chains, 'chain')} to {export}.")
        for refusal in refused:
            say(f"No new checkpoint: {refusal.reason}", style="red")
    raise typer.Exit(1 if refused else 0)


def begin_epoch(
    reason: Annotated[
        str,
        typer.Option(
            help="Why the chains may be shorter than before, in 1 to 500 characters. It stays in the checkpoint log "
            "and the operator log."
        ),
    ],
    yes: Yes = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Begin a new epoch of the checkpoint log, after the database itself was restored or failed over.

    Run `gate chain check` first, and accept only a loss that you expect. The service then signs checkpoints again, from
    the chains as they are now. Earlier checkpoints stay in the log, and `gate chain check` lists the entries that they
    saw and that are gone. If several hosts share the database, run the command on each. `gate restore` begins an epoch
    by itself.
    """
    with instance_at(home, database_url) as instance:
        found = instance.checkpoints.look(utc_now())
        for refusal in () if found is None else found.refused:
            note(f"Contradicted: {refusal.reason}")
        confirm("Accepts every chain as it is now; `gate chain check` shows what is missing or different.", yes=yes)
        with instance.ledger.operator_log.recording("checkpoints.epoch_begun", reason, utc_now()) as details:
            chains = details["chains"] = instance.checkpoints.begin_epoch(reason, utc_now())
        log = instance.checkpoints.log.file
    if as_json:
        print_json({"log": str(log), "chains": chains, "reason": reason})
    else:
        say(f"Began a new epoch of {log} with {counted(chains, 'chain')}.")


def _export(log: CheckpointLog, chain_id: str | None, file: BinaryIO) -> tuple[int, int]:
    """Writes the lines of a log, or of one chain with every epoch; how many checkpoints, and of how many chains."""
    count, chains = 0, set()
    for line in log.lines():
        document = line.document
        if is_checkpoint(document):
            if chain_id not in (None, document["chain_id"]):
                continue
            count += 1
            chains.add(document["chain_id"])
        file.write(line.text + b"\n")
    return count, len(chains)


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError as error:
        raise OperatorError(
            "FILE_UNWRITABLE", f"{path} cannot be written: {error.strerror}; give a new file name."
        ) from error
    with os.fdopen(descriptor, "wb") as opened:
        yield opened


def _signing_off() -> OperatorError:
    return OperatorError("SIGNING_OFF", "Receipt signing is off, and an unsigned checkpoint would prove nothing.")
