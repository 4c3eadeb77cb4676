"""`gate migrate shadow start`, `stop`, `show`: an open migration decides new decisions too, without any effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from api.cli.migrate.acts import MigrationId
from api.cli.migrate.signing import ScopeName, TokenFile, UserName, signed_in
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say, table
from gate.errors import OperatorError

if TYPE_CHECKING:
    from gate.ledger.shadows import Shadow

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Let the candidate of an open migration decide new decisions too, without any effect.",
)

_STYLES = {"danger": "red", "warning": "yellow", "good": "green", "note": ""}


@app.command()
def start(
    migration_id: MigrationId,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Start the shadow of a migration that is proposed or approved.

    From now on, the service's reporting process decides every decision again with the candidate. This authorizes
    nothing.
    """
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        who = signed_in(instance, user, token_file)
        shadow = instance.migration_acts().start_shadow(of, who, migration_id)
    if as_json:
        print_json(shadow.to_dict())
        return
    say(f"Started the shadow of {migration_id} as {who.name}, from chain position {shadow.from_position:,} on.")
    say(
        f"It has no effect on decisions, and needs a running `gate serve` with reports. `gate migrate shadow show "
        f"{migration_id} --scope {scope}` shows its results."
    )


@app.command()
def stop(
    migration_id: MigrationId,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Stop the shadow of a migration, and show its last result, which is not stored."""
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        who = signed_in(instance, user, token_file)
        shadow = instance.migration_acts().stop_shadow(of, who, migration_id)
    if as_json:
        print_json({**shadow.to_dict(), "running": False})
        return
    say(f"Stopped the shadow of {migration_id} as {who.name}. Its last result:")
    _tell(shadow)


@app.command()
def show(
    migration_id: MigrationId,
    scope: ScopeName,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show what the shadow of a migration found so far: how many decisions differ, and which rules caused it."""
    from gate.decisions.migrations.rules import no_shadow

    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        migrations = instance.migrations()
        standing = migrations.migration(of, migration_id).standing
        shadow = migrations.shadows(of).get(migration_id)
    if shadow is not None and as_json:
        print_json(shadow.to_dict())
    elif shadow is not None:
        _tell(shadow)
    elif standing.state in ("proposed", "approved"):
        raise no_shadow(migration_id, scope)
    else:
        raise OperatorError(
            "SHADOW_NOT_RUNNING",
            f"No shadow of {migration_id} is running. The migration was {standing.sentence()}, which ends its shadow.",
        )


def _tell(shadow: Shadow) -> None:
    from workbench.engines.wording import decided_by
    from workbench.migration.sentences import percent
    from workbench.shadows.live import shadow_lines

    for line in shadow_lines(shadow):
        say(line.text, style=_STYLES[line.level])
    histories = {} if shadow.found is None else shadow.found["rulebooks"]
    rows = [
        [
            rulebook_id,
            decided_by(of["rule"]),
            of["verdict"],
            decided_by(of["then_rule"]),
            of["then_verdict"],
            f"{of['decisions']:,}",
            percent(of["share"]),
        ]
        for rulebook_id, history in histories.items()
        for of in history["transitions"]
    ]
    if rows:
        sides = ["active rule", "active verdict", "candidate rule", "candidate verdict"]
        table(["rulebook", *sides, "decisions", "share"], rows)
