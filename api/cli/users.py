"""`gate users`: the people who sign in to the workbench, and their roles in scopes.

Commands ask for a password on the terminal, or read it from stdin or a file. They do not take it as an argument or a
variable, because other processes can see those.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at, read_file
from api.cli.output import ask_secret, minute, print_json, say, table
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.instance.keys import write_private
from gate.ledger.access.users import ROLES, User, Users

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Add people who use the workbench, and grant them roles in scopes.\n\n"
    "A viewer sees decisions, reports, and alerts. An author also dismisses anomalies, and proposes, applies, and "
    "rolls back migrations. An approver also dismisses anomalies, and approves, rejects, applies, and rolls back "
    "migrations.\n\n"
    "A user cannot be removed, because the operator log refers to users: disable the user instead.",
)

Name = Annotated[str, typer.Argument(help="The name of the user.")]
ScopeName = Annotated[str, typer.Option("--scope", help="The scope.")]
Role = Annotated[str, typer.Option(help=f"The role: one of {', '.join(ROLES)}.")]
Expires = Annotated[
    str | None, typer.Option(help="The user cannot sign in from this day on, in UTC, such as 2027-01-31.")
]
PasswordFile = Annotated[
    Path | None, typer.Option(help="A file with the password in its first line. Use - for stdin.", show_default=False)
]


@app.command()
def add(
    name: Name,
    scope: Annotated[list[str], typer.Option(help="A scope in which the user gets the role. Repeatable.")],
    role: Role,
    expires: Expires = None,
    password_file: PasswordFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Add a user with a role in one or more scopes.

    The command asks for the password on a terminal, and otherwise reads it from stdin or a file. A password has 12 to
    256 characters and is not the user's name.
    """
    ends = _day(expires)
    with instance_at(home, database_url) as instance:
        users = instance.ledger.users
        scopes = [instance.ledger.directory.scope(each) for each in scope]
        users.require_addable(name, role, ends, utc_now())
        password = _password(name, password_file)
        made = users.add(name, password, scopes, role, ends, utc_now())
    _tell(
        made,
        f"Added the user {name} as {role} in {', '.join(sorted(made.scopes.values()))}. Start the dashboard with `gate "
        "workbench`, and sign in there.",
        as_json=as_json,
    )


@app.command("list")
def list_users(
    scope: Annotated[str | None, typer.Option(help="List only the users with a role in this scope.")] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List users with their roles."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.users.users(None if scope is None else instance.ledger.directory.scope(scope))
    if as_json:
        print_json({"users": [_shown(user) for user in found]})
        return
    rows = [
        [
            user.name,
            user.status(utc_now()),
            ", ".join(f"{user.scopes[scope_id]}: {role}" for scope_id, role in user.roles.items()),
            minute(user.expires_at),
            minute(user.last_sign_in_at),
        ]
        for user in found
    ]
    table(["user", "status", "roles", "expires (UTC)", "last sign-in (UTC)"], rows, wraps=("user", "roles"))


@app.command()
def grant(
    name: Name,
    scope: ScopeName,
    role: Role,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Give a user a role in a scope, which replaces any other role there. This ends the user's sessions."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        user = instance.ledger.users.grant(name, found, role, utc_now())
    _tell(
        user,
        f"The user {name} has the role {role} in the scope {scope}. A changed role ends open sessions.",
        as_json=as_json,
    )


@app.command()
def revoke(
    name: Name,
    scope: ScopeName,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Remove a user's role in a scope, and end the user's sessions."""
    with instance_at(home, database_url) as instance:
        user = instance.ledger.users.revoke(name, instance.ledger.directory.scope(scope), utc_now())
    left = "" if user.roles else f" {name} has no role left; `gate users disable {name}` also prevents signing in."
    _tell(user, f"The user {name} no longer sees the scope {scope}.{left}", as_json=as_json)


@app.command()
def disable(name: Name, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Disable a user immediately, and end the user's sessions. `gate users enable` reverses it."""
    _change(
        home,
        database_url,
        lambda users: users.disable(name, utc_now()),
        f"Disabled the user {name} and ended all sessions. `gate users enable {name}` reverses this.",
        as_json=as_json,
    )


@app.command()
def enable(
    name: Name,
    expires: Expires = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Let a disabled user sign in again. With `--expires`, also an expired user."""
    ends = _day(expires)
    with instance_at(home, database_url) as instance:
        user = instance.ledger.users.enable(name, utc_now(), ends)
    if user.status(utc_now()) == "expired":
        told = f"The user {name} is enabled, but expired at {user.expires_at}; repeat this with a later --expires."
    else:
        told = f"The user {name} can sign in, with the same password as before."
    _tell(user, told, as_json=as_json)


@app.command("password")
def set_password(
    name: Name,
    password_file: PasswordFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Set a new password, and end the user's sessions. The command asks for it on a terminal, and otherwise reads it
    from stdin or a file.
    """
    with instance_at(home, database_url) as instance:
        users = instance.ledger.users
        users.user(name)
        user = users.set_password(name, _password(name, password_file), utc_now())
    _tell(user, f"Set the password of the user {name} and ended all sessions.", as_json=as_json)


@app.command("sign-in")
def sign_in(
    name: Name,
    token_file: Annotated[
        Path, typer.Option(help="The file to write the session token to, with mode 0600.", show_default=False)
    ],
    hours: Annotated[int, typer.Option(help="The hours until the session ends, up to 24.", min=1, max=24)] = 8,
    password_file: PasswordFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Sign a user in for commands that a person signs, such as `gate migrate approve`, and write a session token."""
    with instance_at(home, database_url) as instance:
        users = instance.ledger.users
        user = users.sign_in(name, _password(name, password_file, twice=False), utc_now())
        token, expires_at = users.begin_session(user, timedelta(hours=hours), utc_now())
    try:
        write_private(token_file, f"{token}\n".encode())
    except OSError as error:
        raise OperatorError("FILE_UNWRITABLE", f"{token_file} cannot be written: {error.strerror}.") from error
    if as_json:
        print_json({"name": user.name, "token_file": str(token_file), "expires_at": expires_at})
        return
    say(
        f"Signed in as {user.name} until {expires_at}. Use --token-file {token_file} with `gate migrate` and "
        f"`gate review`; `gate users sign-out {user.name}` ends the session."
    )


@app.command("sign-out")
def sign_out(name: Name, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """End all sessions of a user."""
    _change(
        home,
        database_url,
        lambda users: users.sign_out(name, utc_now()),
        f"Ended all sessions of the user {name}.",
        as_json=as_json,
    )


def _change(home: Path, database_url: str | None, change: Callable[[Users], User], told: str, *, as_json: bool) -> None:
    with instance_at(home, database_url) as instance:
        user = change(instance.ledger.users)
    _tell(user, told, as_json=as_json)


def _tell(user: User, told: str, *, as_json: bool) -> None:
    if as_json:
        print_json(_shown(user))
    else:
        say(told)


def _shown(user: User) -> dict[str, object]:
    return {
        "user_id": user.user_id,
        "name": user.name,
        "status": user.status(utc_now()),
        "roles": {user.scopes[scope_id]: role for scope_id, role in user.roles.items()},
        "created_at": user.created_at,
        "expires_at": user.expires_at,
        "disabled_at": user.disabled_at,
        "last_sign_in_at": user.last_sign_in_at,
    }


def _password(name: str, file: Path | None, *, twice: bool = True) -> str:
    """A password: typed on the terminal, twice where it is new, or else the first line of a file or of stdin.

    Raises:
        OperatorError: FILE_UNREADABLE, PASSWORD_MISSING or PASSWORD_UNFIT.
    """
    if file in (None, Path("-")) and (typed := ask_secret(f"Password of {name}", twice=twice)) is not None:
        return typed
    line = read_file(file or Path("-")).partition(b"\n")[0].removesuffix(b"\r")
    if not line:
        raise OperatorError(
            "PASSWORD_MISSING",
            "The first line of the input has no password; type it on a terminal, send it to stdin, or give its file "
            "with --password-file.",
        )
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise OperatorError("PASSWORD_UNFIT", "The password is not UTF-8; save it in that encoding.") from error


def _day(text: str | None) -> datetime | None:
    """The beginning of the day that an option names, in UTC, or None.

    Raises:
        OperatorError: DATE_INVALID.
    """
    if text is None:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise OperatorError("DATE_INVALID", f"{text!r} is not a date; write --expires 2027-01-31.") from error
