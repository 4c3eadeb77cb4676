"""`gate keys`: the API keys of scopes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from api.cli.confirmation import DryRun, Yes, confirm
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import minute, note, print_json, say, table
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.ids import parse_timestamp, timestamp
from gate.instance.instance import Instance
from gate.instance.settings import FILE_NAME
from gate.ledger.access.authority import ACCESS, FULL_ACCESS, PLANS, ApiKey, Scope

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Create, list, disable, and rotate API keys. Changes apply from the next request on.\n\n"
    "The access `decide` opens POST /api/decide with registered rulebooks, and with `register` also with new ones. The "
    "access `read` opens stored decisions, verification, replay, reports, and packets. The access `report` opens "
    "execution receipts, outcomes, and CRM syncs. The access `resolve` opens resolutions of held decisions, and cannot "
    "be combined with `decide`.",
)

KeyId = Annotated[str, typer.Argument(help="The id of the key, from `gate keys list`.")]


@app.command()
def create(
    scope: Annotated[str, typer.Option(help="The scope. It is created if it does not exist.")],
    plan: Annotated[
        str | None, typer.Option(help=f"Set the scope's plan: {', '.join(PLANS)}. A new scope has starter.")
    ] = None,
    access: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(ACCESS)}. Repeatable. Default: all but resolve.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            help="The service refuses the key from this day or time on, in UTC: 2027-01-31, or 2027-01-31T09:30:00Z."
        ),
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Create a key and print it. The key is shown only once, because the ledger stores only its hash."""
    in_new_home = not (home / FILE_NAME).is_file()
    with instance_at(home, database_url, create=True) as instance:
        if in_new_home and not instance.settings.database_url:
            note("A server with another home does not accept its keys; give that server's directory with --home.")
        owner, is_new = _scope_on_plan(instance, scope, plan)
        made = instance.ledger.directory.create_key(owner, access or FULL_ACCESS, _end(expires), utc_now())
    _print_new(*made, owner, as_json, in_new_scope=is_new)


@app.command("list")
def list_keys(
    scope: Annotated[str | None, typer.Option(help="List only the keys of this scope.")] = None,
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
        rows = [
            [
                key.key_id,
                names[key.scope_id],
                key.status(utc_now()),
                "full" if key.access == FULL_ACCESS else ", ".join(sorted(key.access)),
                minute(key.expires_at),
                minute(key.last_used_at),
            ]
            for key in keys
        ]
        columns = ["key_id", "scope", "status", "access", "expires (UTC)", "last used (UTC)"]
        table(columns, rows, wraps=("scope", "access"))


@app.command()
def disable(
    key_id: KeyId,
    yes: Yes = False,
    dry_run: DryRun = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Disable a key immediately and permanently."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.key(key_id)
        if dry_run:
            _show_plan(found, _scope_of(instance, found), {"ends_at": timestamp(utc_now())}, as_json)
            return
        if found.disabled_at is None:
            confirm(f"Disables the key {key_id} (scope {_scope_of(instance, found).name}) at once.", yes=yes)
        key = instance.ledger.directory.disable_key(key_id, utc_now())
    if as_json:
        print_json({"key_id": key_id, "status": "disabled", "disabled_at": key.disabled_at})
    else:
        say(f"Disabled the key {key_id}. The service refuses it from now on.")


@app.command()
def rotate(
    key_id: KeyId,
    overlap_hours: Annotated[
        float, typer.Option(min=0, max=8760, help="The hours for which the old key keeps working. 0 ends it at once.")
    ] = 0,
    yes: Yes = False,
    dry_run: DryRun = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Create a key that replaces another, with the same scope, access, and expiry, and print it. Without an overlap,
    the old key ends at once, and the command asks for confirmation.
    """
    with instance_at(home, database_url) as instance:
        directory = instance.ledger.directory
        old = directory.key(key_id)
        owner = _scope_of(instance, old)
        if dry_run:
            _show_plan(old, owner, {"ends_at": timestamp(utc_now() + timedelta(hours=overlap_hours))}, as_json)
            return
        if overlap_hours == 0 and old.status(utc_now()) == "active":
            confirm(
                f"Disables the key {key_id} (scope {owner.name}) at once; --overlap-hours keeps it working longer.",
                yes=yes,
            )
        key, made = directory.rotate_key(key_id, timedelta(hours=overlap_hours), utc_now())
        ended = directory.key(key_id)
    ends_at = ended.disabled_at or ended.expires_at
    _print_new(key, made, owner, as_json, replaced={"key_id": key_id, "ends_at": ends_at})
    if not as_json:
        note(
            f"The old key {key_id} is disabled from now on."
            if ended.disabled_at
            else f"The old key {key_id} keeps working until {ends_at}."
        )


def _scope_of(instance: Instance, key: ApiKey) -> Scope:
    return next(scope for scope in instance.ledger.directory.scopes() if scope.scope_id == key.scope_id)


def _show_plan(key: ApiKey, scope: Scope, change: dict[str, object], as_json: bool) -> None:
    if as_json:
        print_json(
            {"dry_run": True, "key_id": key.key_id, "scope": scope.name, "status": key.status(utc_now()), **change}
        )
        return
    used = f"last used {key.last_used_at}" if key.last_used_at else "never used"
    say(f"The key {key.key_id} (scope {scope.name}, {key.status(utc_now())}, {used}) would end at {change['ends_at']}.")
    say("Nothing was changed.")


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


def _print_new(
    key: str,
    made: ApiKey,
    scope: Scope,
    as_json: bool,
    *,
    in_new_scope: bool = False,
    replaced: dict[str, object] | None = None,
) -> None:
    if as_json:
        shown: dict[str, object] = {"key": key, "key_id": made.key_id, "scope": scope.name, "plan": scope.plan}
        print_json(shown if replaced is None else {**shown, "replaces": replaced})
        return
    say(key)
    owner = f"the {'new ' if in_new_scope else ''}scope {scope.name} (plan {scope.plan})"
    until = "" if made.expires_at is None else f" It works until {made.expires_at}."
    # On stderr: a redirected stdout is a file with the key and nothing else.
    note(f"This is the key {made.key_id} of {owner}.{until} It will not be shown again.")


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


def _end(text: str | None) -> datetime | None:
    """When a key expires: at the beginning of the day that an option names, as users do, or at a date and time.

    Raises:
        OperatorError: DATE_INVALID.
    """
    try:
        return datetime.strptime(text or "", "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return moment(text)


def moment(text: str | None) -> datetime | None:
    """The date and time that an option gives, or None.

    Raises:
        OperatorError: `DATE_INVALID`.
    """
    if text is None:
        return None
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise OperatorError(
            "DATE_INVALID", f"{text!r} is not a date and time in UTC; write it as 2027-01-31T00:00:00Z."
        ) from error
