"""The options that identify the user who signs: a name with a password, or the token of a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.options import read_file
from api.cli.output import ask_secret
from gate.clock import utc_now
from gate.errors import OperatorError

# Checking a manifest needs no ledger.
if TYPE_CHECKING:
    from gate.instance.instance import Instance
    from gate.ledger.access.users import User

UserName = Annotated[
    str | None,
    typer.Option("--user", help="The user who signs. The command asks for the password.", show_default=False),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file", help="The file with the session token that `gate users sign-in` wrote.", show_default=False
    ),
]
Note = Annotated[str, typer.Option("--note", help="A note for later readers. The chain stores it.")]
ScopeName = Annotated[str, typer.Option("--scope", help="The scope.", show_default=False)]


def signed_in(instance: Instance, name: str | None, token_file: Path | None) -> User:
    """The user who runs a command.

    Raises:
        OperatorError: `USAGE_INVALID`, `FILE_UNREADABLE` or `PASSWORD_MISSING`.
        AccessRefused: `SIGN_IN_REFUSED` or `SESSION_OVER`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    users = instance.ledger.users
    if (name is None) == (token_file is None):
        either = "--user NAME, which asks for the password, or --token-file FILE of a session"
        wrong = f"The command needs a user: {either}." if name is None else f"Give {either}, not both."
        raise OperatorError("USAGE_INVALID", wrong)
    if token_file is not None:
        return users.of_session(read_file(token_file).decode("utf-8", "replace").strip(), utc_now())
    password = ask_secret(f"Password of {name}", twice=False)
    if password is None:
        raise OperatorError(
            "PASSWORD_MISSING",
            "There is no terminal to ask for the password. Sign in with `gate users sign-in`, and give the token's "
            "file with --token-file.",
        )
    return users.sign_in(str(name), password, utc_now())
