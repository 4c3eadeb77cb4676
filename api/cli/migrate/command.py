"""The subcommands of `gate migrate`."""

from __future__ import annotations

import typer

from api.cli.migrate.acts import apply, approve, reject, rollback
from api.cli.migrate.check import check
from api.cli.migrate.drafting import new
from api.cli.migrate.proving import dry_run, propose
from api.cli.migrate.reading import list_migrations, report, show, status
from api.cli.migrate.shadow import app as shadow

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Prove a change of a rulebook on past decisions, have it approved, route to it, and roll it back.",
)

app.command()(new)
app.command()(check)
app.command("dry-run")(dry_run)
app.command()(propose)
app.command()(report)
app.command()(approve)
app.command()(reject)
app.command()(apply)
app.command()(rollback)
app.command("list")(list_migrations)
app.command()(show)
app.command()(status)
app.add_typer(shadow, name="shadow")
