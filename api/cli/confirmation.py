"""Asks for confirmation before a command does something that cannot be undone.

On a terminal the command asks. In a script or a job it needs `--yes`, because a prompt would wait forever there.
`--dry-run` shows the effect and changes nothing.
"""

from __future__ import annotations

from typing import Annotated

import typer

from api.cli.output import ask
from gate.errors import OperatorError

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation. Required if there is no terminal.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the effect, and change nothing.")]


def confirm(effect: str, *, yes: bool) -> None:
    """Returns if the operator confirms, on the terminal or with `--yes`.

    Args:
        effect: A sentence about the effect.
        yes: Whether `--yes` was given.

    Raises:
        OperatorError: `CONFIRMATION_REQUIRED` or `CONFIRMATION_DECLINED`.
    """
    if yes:
        return
    confirmed = ask(f"{effect} This cannot be undone. Continue?")
    if confirmed is None:
        raise OperatorError(
            "CONFIRMATION_REQUIRED",
            f"{effect} This cannot be undone. Nothing was changed; repeat the command with --yes to confirm.",
        )
    if not confirmed:
        raise OperatorError("CONFIRMATION_DECLINED", "Nothing was changed.")
