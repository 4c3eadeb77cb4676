"""gate keys: the API keys of scopes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import note, print_json, say, table
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.ids import parse_timestamp
from gate.instance.instance import Instance
from gate.instance.settings import FILE_NAME
from gate.ledger.access.authority import ACCESS, FULL_ACCESS, PLANS, ApiKey, Scope

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Create, list, disable and rotate API keys.")


@app.command()
def create(
    scope: Annotated[str, typer.Option(help="The scope; it is created where there is none of that name.")],
    plan: Annotated[str | None, typer.Option(help=f"The scope's plan from now on: {', '.join(PLANS)}.")] = None,
    access: Annotated[list[str] | None, typer.Option(help=f"Repeatable: {', '.join(ACCESS)}. Default: all.")] = None,
    expires: Annotated[str | None, typer.Option(help="When the key ends: 2027-01-31T00:00:00Z.")] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Create a key and print it. It is shown this once; only its hash is kept."""
    in_new_home = not (home / FILE_NAME).is_file()
    with instance_at(home, database_url, create=True) as instance:
        if in_new_home and not instance.settings.database_url:
            note("A server on another home does not know its keys; name that server's directory with --home.")
        owner, is_new = _scope_on_plan(instance, scope, plan)
        made = instance.ledger.directory.create_key(owner, access or FULL_ACCESS, moment(expires), utc_now())
    _print_new(*made, owner, as_json, in_new_scope=is_new)


@app.command("list")
def list_keys(
    scope: Annotated[str | None, typer.Option(help="Only the keys of this scope.")] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List keys, without their secrets."""
    with instance_at(home, database_url) as instance:
        directory = instance.ledger.directory
        names = {found.scope_id: found.name for found in directory.scopes()}
        keys = directory.keys(directory.scope(scope) if scope is not None else None)
    shown = [_shown(key, names[key.scope_id]) for key in keys]
    if as_json:
        print_json({"keys": shown})
    else:
        columns = ["key_id", "scope", "status", "access", "created", "expires", "last used"]
        rows = [[", ".join(cell) if isinstance(cell, list) else cell for cell in key.values()] for key in shown]
        table(columns, rows)


@app.command()
def disable(
    key_id: Annotated[str, typer.Argument(help="The key's id, as `gate keys list` names it.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Disable a key at once and for good."""
    with instance_at(home, database_url) as instance:
        key = instance.ledger.directory.disable_key(key_id, utc_now())
    if as_json:
        print_json({"key_id": key_id, "status": "disabled", "disabled_at": key.disabled_at})
    else:
        say(f"Disabled the key {key_id}; requests with it are refused from now on.")


@app.command()
def rotate(
    key_id: Annotated[str, typer.Argument(help="The key's id, as `gate keys list` names it.")],
    overlap_hours: Annotated[float, typer.Option(min=0, max=8760, help="How long the old key still works.")] = 0,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Replace a key by a new one with the same scope, access and expiry, and print the new one."""
    with instance_at(home, database_url) as instance:
        directory = instance.ledger.directory
        key, made = directory.rotate_key(key_id, timedelta(hours=overlap_hours), utc_now())
        owner = next(scope for scope in directory.scopes() if scope.scope_id == made.scope_id)
    _print_new(key, made, owner, as_json)


def _scope_on_plan(instance: Instance, name: str, plan: str | None) -> tuple[Scope, bool]:
    """The scope of that name, on the plan where one is named, and whether it is new."""
    directory = instance.ledger.directory
    try:
        found = directory.scope(name)
    except OperatorError:
        return directory.create_scope(name, plan or "starter", utc_now()), True
    if plan is not None and plan != found.plan:
        found = directory.set_plan(found, plan, utc_now())
    return found, False


def _print_new(key: str, made: ApiKey, scope: Scope, as_json: bool, *, in_new_scope: bool = False) -> None:
    if as_json:
        print_json({"key": key, "key_id": made.key_id, "scope": scope.name, "plan": scope.plan})
        return
    say(key)
    owner = f"the {'new ' if in_new_scope else ''}scope {scope.name} (plan {scope.plan})"
    say(f"This is the key {made.key_id} of {owner}. It is not shown again.")


def _shown(key: ApiKey, scope: str) -> dict[str, object]:
    return {
        "key_id": key.key_id,
        "scope": scope,
        "status": key.status(utc_now()),
        "access": sorted(key.access),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "last_used_at": key.last_used_at,
    }


def moment(text: str | None) -> datetime | None:
    """The moment that an option names, or None.

    Raises:
        OperatorError: DATE_INVALID.
    """
    if text is None:
        return None
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise OperatorError(
            "DATE_INVALID", f"{text!r} is no date and time in UTC; write it as 2027-01-31T00:00:00Z."
        ) from error
