"""gate status: whether an instance is ready, and what it holds."""

from __future__ import annotations

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say, table
from api.operations import readiness

app = typer.Typer()


@app.command()
def status(home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Show readiness and each scope's chain. Exits with 1 where the instance is degraded."""
    with instance_at(home, database_url) as instance:
        report = readiness(instance)
        chains = [
            {
                "scope": scope.name,
                "plan": scope.plan,
                "chain_id": scope.chain_id,
                "chain_size": instance.ledger.entries.head(scope.scope_id).size,
            }
            for scope in instance.ledger.directory.scopes()
        ]
        where = {"home": str(instance.settings.home), "location": instance.ledger.store.location}
    if as_json:
        print_json({**report, **where, "scopes": chains})
    else:
        say(f"{report['status']}: {where['location']}", style="green" if report["ok"] else "red")
        parts = {name: part for name, part in report.items() if isinstance(part, dict) and "ready" in part}
        table(
            ["part", "ready", "reason"],
            [[name, "yes" if part["ready"] else "no", part.get("reason")] for name, part in parts.items()],
        )
        say("")
        table(["scope", "plan", "chain", "entries"], [list(found.values()) for found in chains])
    raise typer.Exit(0 if report["ok"] else 1)
