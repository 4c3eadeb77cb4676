"""`gate erase`: remove personal data from a decision."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from api.cli.confirmation import DryRun, Yes, confirm
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import fail, print_json, say
from gate.clock import utc_now
from gate.decisions.erasure import erasable, require_reason
from gate.decisions.erasure import erase as erase_decision
from gate.errors import OperatorError
from gate.instance.instance import Instance

app = typer.Typer(add_completion=False)

_LAKE_PATIENCE: Final = 30.0
_NOTHING_ERASED = ("DECISION_NOT_FOUND", "DECISION_ALREADY_ERASED")


@app.command()
def erase(
    decision: Annotated[str, typer.Option(help="The id of the decision.")],
    reason: Annotated[
        str, typer.Option(help="The reason, in 1 to 500 characters. It stays in the chain, so write no names in it.")
    ],
    yes: Yes = False,
    dry_run: DryRun = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Erase a decision's request, its facts, and the tested values or the upstream's answer. This cannot be undone.

    The record, its hashes, its signature, and the chain stay, and note the erasure. The service can keep running. Older
    backups, other hosts' lakes and copies elsewhere still contain the data.

    Exit codes: 0 erased; 1 nothing was erased, because the decision is unknown or was erased before; 2 the command
    failed. If the code is `ERASURE_UNFINISHED`, run the command again.
    """
    require_reason(reason)
    try:
        with instance_at(home, database_url) as instance:
            scope, parts = erasable(instance.ledger, decision)
            if dry_run:
                _show_plan(decision, scope, parts, as_json)
                return
            if parts:
                confirm(f"Erases {', '.join(parts)} of the decision {decision} (scope {scope}).", yes=yes)
            try:
                erased = erase_decision(instance.ledger, decision, reason, utc_now())
            except OperatorError as error:
                if error.code == "DECISION_ALREADY_ERASED":
                    # The earlier run may have been interrupted before this step.
                    _erase_in_lake(instance, None)
                raise
            _erase_in_lake(instance, erased.scope)
    except OperatorError as error:
        if error.code not in _NOTHING_ERASED:
            raise
        fail(error, as_json=as_json)
        raise typer.Exit(1) from error
    named = ", ".join(erased.erasure["erased"])
    if as_json:
        print_json({"scope": erased.scope, **erased.erasure})
    else:
        say(
            f"Erased {named} of the decision {decision} (scope {erased.scope}). The chain notes the erasure without "
            f"the erased data."
        )
        say("Older backups, and copies of the record or the request elsewhere, still contain the data.")


def _show_plan(decision: str, scope: str, parts: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": True, "scope": scope, "decision_id": decision, "erased": parts})
    elif parts:
        say(f"Would erase {', '.join(parts)} of the decision {decision} (scope {scope}). Nothing was changed.")
    else:
        say(f"The decision {decision} (scope {scope}) was erased before. Nothing was changed.")


def _erase_in_lake(instance: Instance, name: str | None) -> None:
    """Removes the erased data from the lake, if there is one: the erasure is an entry, and exported like any other.

    Args:
        instance: The instance.
        name: The scope of the decision; every scope where None.

    Raises:
        OperatorError: ERASURE_UNFINISHED.
    """
    lake = instance.settings.lake_directory
    if not lake.is_dir():
        return
    try:
        # Loaded where there is a lake; its libraries are an extra of their own.
        from workbench.lake.entries import Personal
        from workbench.lake.export import Exporter
        from workbench.lake.lease import lease
        from workbench.lake.manifest import load

        personal = Personal.of(instance.settings.personal_fields)
        with lease(lake, patience=_LAKE_PATIENCE):
            for scope in instance.ledger.tail.scopes():
                held = name in (None, scope.name) and load(lake, scope.scope_id) is not None
                for _ in Exporter(instance.ledger, lake, personal).export(scope) if held else ():
                    pass
    except Exception as error:
        raise OperatorError(
            "ERASURE_UNFINISHED",
            f"The data is erased from the ledger, but the lake {lake} may still contain a copy ({error}). Update the "
            f"lake with `gate lake export`, or remove it.",
        ) from error
