"""The subcommands of `gate review`."""

from __future__ import annotations

import typer

from api.cli.review.owners import owners
from api.cli.review.queue import list_reviews, show
from api.cli.review.resolving import grant, refuse

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Set owners of held decisions, and grant or refuse the decisions. A resolution is final. A person signs it "
    "with --user or --token-file, and needs the role approver.",
)
app.add_typer(owners, name="owners")
app.command("list")(list_reviews)
app.command("show")(show)
app.command("grant")(grant)
app.command("refuse")(refuse)
