"""The subcommands of `gate drafts`."""

from __future__ import annotations

import typer

from api.cli.drafts.cases import app as cases
from api.cli.drafts.proving import dry_run, propose
from api.cli.drafts.reading import check, compare, list_drafts, revisions, show
from api.cli.drafts.writing import add, close, fork, merge_, new, remove, rename, reopen, save, set_

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Write rulebooks as drafts with cases, shared with the workbench.",
)

app.command("list")(list_drafts)
app.command()(new)
app.command()(show)
app.command()(check)
app.command()(save)
app.command("set")(set_)
app.command()(add)
app.command()(remove)
app.command("merge")(merge_)
app.command()(fork)
app.command()(revisions)
app.command()(compare)
app.command()(rename)
app.command()(close)
app.command()(reopen)
app.command("dry-run")(dry_run)
app.command()(propose)
app.add_typer(cases, name="cases")
