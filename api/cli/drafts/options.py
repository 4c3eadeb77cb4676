"""Options that the commands of drafts share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.migrate.signing import signed_in
from api.cli.options import instance_at

if TYPE_CHECKING:
    from pathlib import Path

    from gate.decisions.drafts import DraftActs
    from gate.instance.instance import Instance
    from gate.ledger.access.authority import Scope
    from gate.ledger.access.users import User

DraftId = Annotated[str, typer.Argument(metavar="DRAFT", help="The id of the draft.", show_default=False)]
ScopeName = Annotated[str, typer.Option("--scope", help="The scope.", show_default=False)]


@contextmanager
def drafting(
    home: Path, database_url: str | None, scope: str, user: str | None, token_file: Path | None
) -> Iterator[tuple[Instance, Scope, User, DraftActs]]:
    """Opens the instance for a change of a draft while the block runs.

    Returns:
        The instance, the scope, the signed-in user, and the acts on drafts.

    Raises:
        GateError: There is no such instance or scope, or the user is not signed in.
    """
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        who = signed_in(instance, user, token_file)
        yield instance, of, who, instance.draft_acts()
