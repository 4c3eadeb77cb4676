"""Asking before something that cannot be undone.

On a terminal the command asks. Elsewhere, in a script or a job, it needs `--yes`: a prompt would wait forever there,
and going on without one would make a slip permanent. `--dry-run` shows the effect and changes nothing.
"""

from __future__ import annotations

from typing import Annotated

import typer

from api.cli.output import ask
from gate.errors import OperatorError

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation. Required if there is no terminal.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the effect, and change nothing.")]


def confirm(effect: str, *, yes: bool) -> None:
    """Returns if the operator confirms an effect, on the terminal or with `--yes`.

    Args:
        effect: A sentence that says what is going to happen.
        yes: Whether `--yes` was given.

    Raises:
        OperatorError: CONFIRMATION_REQUIRED, or CONFIRMATION_DECLINED.
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
