"""gate users: adding, listing, roles, passwords that no other process sees, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import pytest

from gate.clock import utc_now
from gate.errors import AccessRefused
from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from tests.support.command_line import run_gate

PASSWORD: Final = "correct horse battery é"
OTHER: Final = "staple of the battery"

Gate = Callable[..., "CompletedProcess[str]"]


@pytest.fixture(scope="module")
def with_users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of an instance with the scopes acme and globex, the user ada in both, and ben in globex until 2999."""
    home = tmp_path_factory.mktemp("with-users") / "home"
    for scope in ("acme", "globex"):
        run_gate("scopes", "create", scope, "--home", str(home))
    both = ("--scope", "acme", "--scope", "globex", "--role", "author")
    ben = ("--scope", "globex", "--role", "viewer", "--expires", "2999-01-31")
    for name, options in (("ada", both), ("ben", ben)):
        done = run_gate("users", "add", name, *options, "--home", str(home), stdin=f"{PASSWORD}\n")
        assert done.returncode == 0, done.stderr
    return home


@pytest.fixture
def home(with_users: Path, tmp_path: Path) -> Path:
    """A copy of it, of the test's own."""
    return Path(shutil.copytree(with_users, tmp_path / "home"))


@pytest.fixture
def gate(home: Path) -> Gate:
    """Runs `gate ...` against that instance."""

    def run(*arguments: str, stdin: str = "") -> CompletedProcess[str]:
        return run_gate(*arguments, "--home", str(home), stdin=stdin)

    return run


def printed(done: CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def code_of(done: CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (2, "")
    return str(json.loads(done.stderr)["error"])


def signs_in(home: Path, name: str, password: str) -> bool:
    with closing(open_instance(load_settings(home))) as instance:
        try:
            instance.ledger.users.sign_in(name, password, utc_now())
        except AccessRefused:
            return False
        return True


def test_users_are_listed_with_their_roles_and_without_secrets(gate: Gate, home: Path) -> None:
    assert signs_in(home, "ada", PASSWORD)
    ada, ben = printed(gate("users", "list", "--json"))["users"]
    assert ada == {
        "user_id": ada["user_id"],
        "name": "ada",
        "status": "active",
        "roles": {"acme": "author", "globex": "author"},
        "created_at": ada["created_at"],
        "expires_at": None,
        "disabled_at": None,
        "last_sign_in_at": ada["last_sign_in_at"],
    }
    assert ada["last_sign_in_at"] > ada["created_at"]
    assert (ben["name"], ben["roles"], ben["last_sign_in_at"]) == ("ben", {"globex": "viewer"}, None)
    assert ben["expires_at"] == "2999-01-31T00:00:00.000Z"
    assert printed(gate("users", "list", "--scope", "acme", "--json"))["users"] == [ada]
    heading, first, second = gate("users", "list").stdout.splitlines()
    assert heading.split() == ["user", "status", "roles", "expires", "(UTC)", "last", "sign-in", "(UTC)"]
    assert first.split()[:6] == ["ada", "active", "acme:", "author,", "globex:", "author"]
    assert "2999-01-31 00:00" in second
    shown = gate("users", "list", "--json").stdout + gate("users", "list").stdout + gate("log", "--json").stdout
    assert not [secret for secret in (PASSWORD, "battery", "argon2") if secret in shown]


def test_adding_says_how_to_open_the_dashboard(gate: Gate, home: Path) -> None:
    done = gate("users", "add", "cleo", "--scope", "globex", "--role", "approver", stdin=f"{PASSWORD}\r\nignored\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "Added the user cleo as approver in globex. Start the dashboard with `gate workbench`, and sign in there.\n"
    )
    assert signs_in(home, "cleo", PASSWORD)


@pytest.mark.parametrize("content", [PASSWORD, f"{PASSWORD}\n", f"{PASSWORD}\r\nsecond\n"])
def test_a_password_is_the_first_line_of_a_file(gate: Gate, home: Path, tmp_path: Path, content: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(content.replace(PASSWORD, OTHER).encode())
    done = gate("users", "password", "ada", "--password-file", str(file))
    assert done.stdout == "Set the password of the user ada and ended all sessions.\n"
    assert [signs_in(home, "ada", password) for password in (PASSWORD, OTHER)] == [False, True]


def test_a_terminal_is_asked_twice_and_shows_nothing(home: Path) -> None:
    controlling, terminal = os.openpty()
    command = ["gate", "users", "password", "ada", "--home", str(home)]
    script = f"import sys; sys.argv = {command!r}; from api.cli.main import main; main()"
    shown = b""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=terminal,
        stderr=terminal,
        stdout=terminal,
        # Without a terminal of the session, which it would ask instead.
        start_new_session=True,
    ) as asking:
        os.close(terminal)
        for number in (1, 2):
            # What is typed before echo is off would be shown.
            while shown.count(b": ") < number:
                shown += os.read(controlling, 4096)
            os.write(controlling, f"{OTHER}\n".encode())
        assert asking.wait(60) == 0
    shown += os.read(controlling, 4096)
    os.close(controlling)
    assert b"Password of ada: " in shown
    assert b"Set the password of the user ada" in shown
    assert OTHER.encode() not in shown
    assert signs_in(home, "ada", OTHER)


def test_a_role_is_granted_changed_and_revoked(gate: Gate) -> None:
    user = printed(gate("users", "grant", "ben", "--scope", "acme", "--role", "approver", "--json"))
    assert user["roles"] == {"acme": "approver", "globex": "viewer"}
    told = gate("users", "grant", "ben", "--scope", "globex", "--role", "author").stdout
    assert told.startswith("The user ben has the role author in the scope globex.")
    assert printed(gate("users", "revoke", "ben", "--scope", "acme", "--json"))["roles"] == {"globex": "author"}
    told = gate("users", "revoke", "ben", "--scope", "globex").stdout
    assert told.startswith("The user ben no longer sees the scope globex. ben has no role left; ")
    assert [user["name"] for user in printed(gate("users", "list", "--scope", "globex", "--json"))["users"]] == ["ada"]


def test_a_user_is_disabled_enabled_and_signed_out(gate: Gate, home: Path) -> None:
    assert "`gate users enable ada` reverses this." in gate("users", "disable", "ada").stdout
    assert printed(gate("users", "disable", "ada", "--json"))["status"] == "disabled"
    assert not signs_in(home, "ada", PASSWORD)
    assert gate("users", "enable", "ada").stdout == "The user ada can sign in, with the same password as before.\n"
    assert signs_in(home, "ada", PASSWORD)
    assert gate("users", "sign-out", "ada").stdout == "Ended all sessions of the user ada.\n"
    later = printed(gate("users", "enable", "ben", "--expires", "2999-02-01", "--json"))
    assert later["expires_at"] == "2999-02-01T00:00:00.000Z"
    actions = [entry["action"] for entry in printed(gate("log", "--json"))["entries"]]
    assert actions[4:] == [
        "user.disabled",
        "user.sign_in_refused",
        "user.enabled",
        "user.signed_in",
        "user.signed_out",
        "user.enabled",
    ]


def of_session(home: Path, token: str) -> str:
    """Whose session a token is of, or the code of the refusal."""
    with closing(open_instance(load_settings(home))) as instance:
        try:
            return instance.ledger.users.of_session(token, utc_now()).name
        except AccessRefused as error:
            return error.code


def test_a_session_of_the_command_line_ends_with_whatever_ends_the_others(
    gate: Gate, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "token"

    def signed_in(*options: str) -> str:
        made = printed(gate("users", "sign-in", "ada", "--token-file", str(file), *options, "--json", stdin=PASSWORD))
        assert (made["name"], file.stat().st_mode & 0o777) == ("ada", 0o600)
        return file.read_text().strip()

    token = signed_in()
    assert of_session(home, token) == "ada"
    assert of_session(home, f"{token}x") == of_session(home, "") == "SESSION_OVER"
    # Nothing that is stored is the token.
    assert not any(token.encode() in stored.read_bytes() for stored in home.glob("ledger.db*"))
    gate("users", "sign-out", "ada")
    assert of_session(home, token) == "SESSION_OVER"
    token = signed_in("--hours", "1")
    with closing(open_instance(load_settings(home))) as instance, pytest.raises(AccessRefused):
        instance.ledger.users.of_session(token, utc_now() + timedelta(hours=1))
    gate("users", "disable", "ada")
    assert of_session(home, token) == "SESSION_OVER"
    assert code_of(gate("users", "sign-in", "ada", "--token-file", str(file), "--json", stdin=PASSWORD)) == (
        "SIGN_IN_REFUSED"
    )


@pytest.mark.parametrize(
    ("command", "stdin", "code"),
    [
        ("add ada --scope acme --role viewer", PASSWORD, "USER_EXISTS"),
        ("add ADA --scope acme --role viewer", PASSWORD, "USER_EXISTS"),
        ("add a/b --scope acme --role viewer", PASSWORD, "USER_NAME_INVALID"),
        ("add cleo --scope nowhere --role viewer", PASSWORD, "SCOPE_UNKNOWN"),
        ("add cleo --scope acme --role admin", PASSWORD, "ROLE_UNKNOWN"),
        ("add cleo --scope acme --role viewer --expires 2001-01-31", PASSWORD, "USER_EXPIRY_PAST"),
        ("add cleo --scope acme --role viewer --expires 2999-02-30", PASSWORD, "DATE_INVALID"),
        ("add cleo --scope acme --role viewer", "too short", "PASSWORD_UNFIT"),
        ("add cleo --scope acme --role viewer", f"\n{PASSWORD}", "PASSWORD_MISSING"),
        ("add cleo --scope acme --role viewer --password-file /nowhere", PASSWORD, "FILE_UNREADABLE"),
        ("add cleo --role viewer", PASSWORD, "USAGE_INVALID"),
        ("add cleo --scope acme --role viewer --password secret", PASSWORD, "USAGE_INVALID"),
        ("password nobody", PASSWORD, "USER_UNKNOWN"),
        ("password ada", "", "PASSWORD_MISSING"),
        ("grant ada --scope acme --role admin", "", "ROLE_UNKNOWN"),
        ("grant nobody --scope acme --role viewer", "", "USER_UNKNOWN"),
        ("revoke ben --scope acme", "", "ROLE_MISSING"),
        ("enable ada --expires 2001-01-31", "", "USER_EXPIRY_PAST"),
        ("sign-out nobody", "", "USER_UNKNOWN"),
        ("list --scope nowhere", "", "SCOPE_UNKNOWN"),
    ],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(gate: Gate, command: str, stdin: str, code: str) -> None:
    before = gate("users", "list", "--json").stdout, gate("log", "--json").stdout
    assert code_of(gate("users", *command.split(), "--json", stdin=stdin)) == code
    assert (gate("users", "list", "--json").stdout, gate("log", "--json").stdout) == before


def test_a_password_that_is_no_text_is_refused(gate: Gate, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"\xff" * 20)
    assert code_of(gate("users", "password", "ada", "--password-file", str(file), "--json")) == "PASSWORD_UNFIT"


@pytest.mark.parametrize("command", ["list", "add ada --scope acme --role viewer", "disable ada", "password ada"])
def test_no_command_makes_an_instance(tmp_path: Path, command: str) -> None:
    done = run_gate("users", *command.split(), "--home", str(tmp_path / "nowhere"), "--json", stdin=PASSWORD)
    assert code_of(done) == "INSTANCE_MISSING"
    assert list(tmp_path.iterdir()) == []


def test_of_two_processes_that_add_one_name_at_once_one_succeeds(gate: Gate, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    go = tmp_path / "go"

    def command(name: str) -> list[str]:
        options = ["--scope", "acme", "--role", "viewer", "--password-file", str(file), "--home", str(home), "--json"]
        script = f"""
import pathlib, sys, time
import api.cli.users, gate.instance.instance
from api.cli.main import main
print("ready", file=sys.stderr, flush=True)
while not pathlib.Path({str(go)!r}).exists():
    time.sleep(0.005)
sys.argv = {["gate", "users", "add", name, *options]!r}
main()
"""
        return [sys.executable, "-c", script]

    started = [
        subprocess.Popen(command(name), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in ("Cleo", "cleo")
    ]
    for process in started:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
    go.touch()
    ended = [process.communicate(timeout=60) for process in started]
    assert sorted(process.returncode for process in started) == [0, 2]
    (refused,) = [err for (_, err), process in zip(ended, started, strict=True) if process.returncode]
    assert json.loads(refused)["error"] == "USER_EXISTS"
    names = [user["name"].lower() for user in printed(gate("users", "list", "--json"))["users"]]
    assert names.count("cleo") == 1
    assert printed(gate("log", "--json"))["whole"]
