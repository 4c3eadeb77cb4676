"""`gate migrate list`, `show`, `report`, and `status`: read the migrations and routes of a scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.migrate.acts import MigrationId
from api.cli.migrate.signing import ScopeName
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import minute, note, print_json, print_text, records, say, table
from gate.errors import OperatorError
from gate.migration.standing import STATES

if TYPE_CHECKING:
    from gate.decisions.migrations.documents import StoredMigration
    from gate.ledger.shadows import Shadow


def list_migrations(
    scope: ScopeName,
    state: Annotated[
        str | None,
        typer.Option("--state", help=f"List only migrations in this state: {', '.join(STATES)}.", show_default=False),
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List a scope's migrations, the latest first."""
    from gate.decisions.migrations.documents import migration_summary

    if state not in (None, *STATES):
        raise OperatorError("USAGE_INVALID", f"{state!r} is no state of migrations; it is one of {', '.join(STATES)}.")
    with instance_at(home, database_url) as instance:
        found = instance.migrations().migrations(instance.ledger.directory.scope(scope))
    shown = [migration_summary(of) for of in found if state in (None, of.state)]
    if as_json:
        print_json({"migrations": shown})
        return
    rows = [
        [
            of["migration_id"],
            of["state"].replace("_", " "),
            ", ".join(f"{each['rulebook_id']} {each['version']}" for each in of["candidates"]),
            of["proposed_by"],
            minute(of["proposed_at"]),
            of["decided_by"],
        ]
        for of in shown
    ]
    table(["migration", "state", "candidates", "author", "proposed (UTC)", "decided by"], rows, wraps=("candidates",))


def show(
    migration_id: MigrationId,
    scope: ScopeName,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show a migration: its manifest, its state, and whether its evidence is stale."""
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        migrations = instance.migrations()
        stored = migrations.migration(of, migration_id)
        document = migrations.document(of, stored)
        shadow = migrations.shadows(of).get(migration_id)
    if as_json:
        print_json(document)
        return
    standing = stored.standing
    records(
        ["migration", "state", "summary", "candidates", "manifest", "evidence"],
        [
            [
                migration_id,
                standing.sentence(),
                stored.manifest.get("summary"),
                ", ".join(f"{each['rulebook_id']} {each['version']}" for each in standing.proposed["candidates"]),
                standing.proposed["manifest_hash"],
                standing.evidence_hash,
            ]
        ],
    )
    for entry in stored.entries:
        said = f": {entry['note']}" if entry["note"] else ""
        say(f"  {minute(entry['recorded_at'])}  {entry['event']} by {entry['actor']['id']}{said}")
    for route in stored.routes:
        said = f": {route['note']}" if route["note"] else ""
        done = "applied" if route["cause"] == "apply" else "rolled back"
        led = f"{route['rulebook_id']} -> {route['to']['version']}"
        say(f"  {minute(route['recorded_at'])}  {led}, {done} by {route['actor']['id']}{said}")
    if standing.state in ("proposed", "approved"):
        _print_obstacles(_obstacles(document, stored))
    if shadow is not None:
        say(_shadowed(shadow, scope))


def report(
    migration_id: MigrationId,
    scope: ScopeName,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="The file to write: FILE.html, FILE.md or FILE.json.", show_default=False),
    ] = None,
    of_shadow: Annotated[
        bool, typer.Option("--shadow", help="Report what the migration's shadow found so far, instead of the dry run.")
    ] = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Report the evidence of a migration: as Markdown here, or as HTML, Markdown, or JSON in a file."""
    from gate.decisions.migrations.rules import no_shadow
    from workbench.migration.report import as_markdown, write_report
    from workbench.shadows.live import live_evidence

    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        migrations = instance.migrations()
        stored = migrations.migration(of, migration_id)
        document = migrations.document(of, stored)
        shadow = migrations.shadows(of).get(migration_id)
    evidence = stored.evidence
    if of_shadow:
        if shadow is None:
            raise no_shadow(migration_id, scope)
        evidence = live_evidence(evidence, shadow)
    if output is not None:
        write_report(output, document, evidence)
        note(f"Wrote the report of {migration_id} to {output}.")
    elif as_json:
        print_json(evidence)
    else:
        print_text(as_markdown(document, evidence))


def status(
    scope: ScopeName,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show the routes of a scope, and the migrations that wait for a person."""
    from gate.decisions.migrations.documents import migration_summary, routes_document
    from gate.migration.approval import needs_approval

    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        migrations = instance.migrations()
        routes = migrations.routes(of)
        waiting = [found for found in migrations.migrations(of) if found.state in ("proposed", "approved")]
        shadows = migrations.shadows(of)
        proposals = [migrations.migration(of, found.migration_id) for found in waiting]
        obstacles = {each.standing.migration_id: _obstacles(migrations.document(of, each), each) for each in proposals}
    ready = {
        found.standing.migration_id
        for found in proposals
        if found.standing.approval is not None or not needs_approval(found.manifest, found.evidence)
    }
    if as_json:
        waits = [migration_summary(found) for found in waiting]
        print_json({**routes_document(routes), "waiting": waits, "shadows": list(shadows)})
        return
    if routes:
        rows = [
            [
                rulebook_id,
                of[-1]["to"]["version"],
                of[-1]["cause"],
                of[-1]["migration_id"],
                of[-1]["actor"]["id"],
                minute(of[-1]["recorded_at"]),
            ]
            for rulebook_id, of in routes.items()
        ]
        table(["rulebook", "version", "by", "migration", "who", "since (UTC)"], rows)
    else:
        say(f"The scope {scope} has no route yet, so each request states the version of its rulebook.")
    for found in waiting:
        then = "to be applied" if found.migration_id in ready else "for an approver"
        say(f"{found.migration_id} was {found.sentence()}, and waits {then}.")
        _print_obstacles(obstacles[found.migration_id])
    for shadow in shadows.values():
        say(_shadowed(shadow, scope))


def _obstacles(document: Mapping[str, Any], stored: StoredMigration) -> list[str]:
    """What keeps an open migration from being approved or applied, a line each."""
    from gate.migration.approval import find_gate_faults

    stale = [f"stale: {sentence}" for sentence in document["stale"]]
    return [*stale, *(f"The gate: {fault}" for fault in find_gate_faults(stored.evidence))]


def _print_obstacles(obstacles: Sequence[str]) -> None:
    for obstacle in obstacles:
        say(obstacle, style="yellow")


def _shadowed(shadow: Shadow, scope: str) -> str:
    return (
        f"A shadow of {shadow.migration_id} has run since {minute(shadow.started_at)} UTC; `gate migrate shadow show "
        f"{shadow.migration_id} --scope {scope}` shows what it found."
    )
