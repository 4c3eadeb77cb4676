"""`gate migrate approve`, `reject`, `apply`, `rollback`: the acts on migrations that the chain stores with a name."""

from __future__ import annotations

from typing import Annotated

import typer

from api.cli.migrate.signing import Note, ScopeName, TokenFile, UserName, signed_in
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say
from gate.records.changes import RouteEntry

MigrationId = Annotated[str, typer.Argument(help="The id of the migration.", show_default=False)]


def approve(
    migration_id: MigrationId,
    scope: ScopeName,
    evidence: Annotated[
        str, typer.Option("--evidence", help="The hash of the evidence that you read.", show_default=False)
    ],
    user: UserName = None,
    token_file: TokenFile = None,
    note: Note = "",
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Approve a migration on its evidence. The author cannot approve it, and stale evidence cannot be approved."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        who = signed_in(instance, user, token_file)
        standing = instance.migration_acts().approve(found, who, migration_id, evidence, note)
    if as_json:
        print_json({"migration_id": migration_id, "status": standing.status, "entry": standing.approval})
    else:
        command = f"gate migrate apply {migration_id} --scope {scope} --user NAME"
        say(f"Approved {migration_id} as {who.name}. It decides nothing yet; apply it with `{command}`.")


def reject(
    migration_id: MigrationId,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    note: Note = "",
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Reject a migration, or withdraw its approval before it is applied. The author withdraws a migration this way."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        who = signed_in(instance, user, token_file)
        standing = instance.migration_acts().reject(found, who, migration_id, note)
    if as_json:
        print_json({"migration_id": migration_id, "status": standing.status, "entry": standing.decided})
    else:
        own = standing.author == who.name
        done, again = ("Withdrew", "You can") if own else ("Rejected", "Its author can")
        say(f"{done} {migration_id} as {who.name}. {again} propose it again.")


def apply(
    migration_id: MigrationId,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    note: Note = "",
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Route the rulebook ids of an approved migration to its candidates, from the next decision on."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        who = signed_in(instance, user, token_file)
        migrations = instance.migrations()
        before = {of.migration_id for of in migrations.migrations(found) if of.state in ("proposed", "approved")}
        routes = instance.migration_acts().apply(found, who, migration_id, note)
        closed = [of.migration_id for of in migrations.migrations(found) if of.state == "superseded"]
    if as_json:
        print_json({"migration_id": migration_id, "routes": routes})
        return
    for route in routes:
        say(f"{route['rulebook_id']}: {_moved(route)}.", style="green")
    say("Active from the next decision on.")
    for superseded in sorted(before.intersection(closed)):
        say(f"Superseded {superseded}: it proposed another version of a rulebook that was applied.")
    for route in routes:
        if route["from"] is not None:
            command = f"gate migrate rollback {route['rulebook_id']} --scope {scope} --from {route['to']['version']}"
            say(f"To roll back: `{command} --user NAME`.")


def rollback(
    rulebook_id: Annotated[str, typer.Argument(help="The id of the rulebook.", show_default=False)],
    scope: ScopeName,
    active: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="VERSION",
            help="Roll back only if this version is active, so that running the command twice rolls back once.",
            show_default=False,
        ),
    ] = None,
    user: UserName = None,
    token_file: TokenFile = None,
    note: Note = "",
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Route a rulebook id back to the version that was applied before the active one, from the next decision on."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        who = signed_in(instance, user, token_file)
        route = instance.migration_acts().rollback(found, who, rulebook_id, note, active=active)
    if as_json:
        print_json({"rulebook_id": rulebook_id, "route": route})
        return
    say(f"{rulebook_id}: {_moved(route)}.", style="green")
    say(f"Active from the next decision on. Its evidence is that of {route['migration_id']}.")


def _moved(route: RouteEntry) -> str:
    before = route["from"]
    return f"{'no version' if before is None else before['version']} -> {route['to']['version']}"
