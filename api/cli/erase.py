"""gate erase: take a person's data out of a decision."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import fail, print_json, say
from gate.clock import utc_now
from gate.decisions.erasure import erase as erase_decision
from gate.errors import OperatorError
from gate.instance.instance import Instance

app = typer.Typer(add_completion=False)

_LAKE_PATIENCE: Final = 30.0
_NOTHING_ERASED = ("DECISION_NOT_FOUND", "DECISION_ALREADY_ERASED")


@app.command()
def erase(
    decision: Annotated[str, typer.Option(help="The decision_id.")],
    reason: Annotated[str, typer.Option(help="Why, in 1 to 500 characters. It stays in the chain: name nobody.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Erase a decision's request, its facts and the values that were tested, while the service works.

    This cannot be undone. The record, its hashes, its signature and the chain stay, and say that it was erased.
    Exits with 1 where nothing was erased: the decision is unknown, or was erased before.
    """
    try:
        with instance_at(home, database_url) as instance:
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
            f"Erased of the decision {decision} (scope {erased.scope}): {named}. The chain notes that it was erased "
            f"and keeps nothing of it."
        )
        say("Backups made before, and records and requests that others have, still hold it.")


def _erase_in_lake(instance: Instance, name: str | None) -> None:
    """Takes what was erased out of the lake, where there is one: the erasure is an entry, and exported like any other.

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
            f"What was erased is out of the ledger, and the lake {lake} may still hold a copy ({error}); bring it up "
            f"to the ledger with `gate lake export`, or remove it.",
        ) from error
