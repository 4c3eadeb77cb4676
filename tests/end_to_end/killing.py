"""A `gate migrate` command that is killed before each statement that it writes with, one after the other.

It runs in processes of its own that start no thread before they fork, so that every point costs a fork and no start.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.migrating import SCOPE, CommandDesk

_WRITES: Final = re.compile(r"\s*(BEGIN IMMEDIATE|INSERT|UPDATE|DELETE|COMMIT)")


@dataclass(frozen=True, slots=True)
class State:
    """What a scope is like.

    Attributes:
        whole: Whether its chain is.
        entries: How many entries it has.
        routes: Where its rulebook ids lead, by id.
        migrations: The states of its migrations, by id.
    """

    whole: bool
    entries: int
    routes: dict[str, str]
    migrations: dict[str, str]


@dataclass(frozen=True, slots=True)
class Killed:
    """What came of a command that was killed.

    Attributes:
        before: The first words of the statement that was not made.
        state: The scope after it.
        code: The exit code of the same command, made again.
        told: What it printed, to people or in errors.
        again: The scope after that.
    """

    before: str
    state: State
    code: int
    told: str
    again: State


def killed_everywhere(desk: CommandDesk, folder: Path, arguments: Sequence[str], by: str) -> list[Killed]:
    """Kills a command before its first statement that writes, in a copy of a desk; then before the second, and so on.

    Args:
        desk: The desk, which stays as it is.
        folder: Where the copies are made.
        arguments: The command, as `CommandDesk.migrate` takes it.
        by: Who signs it.
    """
    # Loaded once, and not by each that is killed.
    import workbench.migration.proof  # noqa: F401

    found: list[Killed] = []
    while True:
        place = folder / str(len(found))
        shutil.copytree(desk.home.parent, place)
        copy = CommandDesk(place / desk.home.name, desk.folder)
        statement = _killed(lambda copy=copy: copy.migrate(*arguments, by=by), place / "killed", len(found))  # type: ignore[misc]
        if statement is None:
            return found
        # In a process of its own as well: what proves a proposal starts threads, and none may be here.
        state, (code, told), again = _apart(lambda copy=copy: _afterwards(copy, arguments, by), place / "after")  # type: ignore[misc]
        found.append(Killed(statement, State(**state), code, told, State(**again)))
        shutil.rmtree(place)


def _afterwards(desk: CommandDesk, arguments: Sequence[str], by: str) -> Any:
    state = _state(desk)
    repeated = desk.migrate(*arguments, by=by)
    return state, (repeated.returncode, repeated.stdout + repeated.stderr), _state(desk)


def _state(desk: CommandDesk) -> dict[str, Any]:
    checked = json.loads(desk.gate("chain", "check", "--scope", SCOPE, "--json").stdout)
    return {
        "whole": checked["whole"],
        "entries": checked["chains"][0]["entries_checked"],
        "routes": {of["rulebook_id"]: of["to"]["version"] for of in desk.answer("status")["routes"]},
        "migrations": {of["migration_id"]: of["state"] for of in desk.answer("list")["migrations"]},
    }


def _killed(work: Callable[[], object], note: Path, number: int) -> str | None:
    """Runs a work in a process that is killed before it writes for the so many-th time; before which statement that
    was, and None where it ended before.
    """
    process = os.fork()
    if not process:
        _kill_before(note, number)
        work()
        os._exit(0)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return note.read_text()
    return None


def _kill_before(note: Path, number: int) -> None:
    """Kills this process before it writes to SQLite for the so many-th time."""
    connect, seen = sqlite3.connect, [0]

    def watch(statement: str) -> None:
        if _WRITES.match(statement):
            if seen[0] == number:
                note.write_text(" ".join(statement.split()[:3]))
                os.kill(os.getpid(), signal.SIGKILL)
            seen[0] += 1

    def watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(watch)
        return connection

    for module in (sqlite3, sys.modules["sqlite3.dbapi2"]):
        module.connect = watched  # type: ignore[attr-defined]


def _apart(work: Callable[[], Any], file: Path) -> Any:
    """What a work gives in another process."""
    process = os.fork()
    if not process:
        file.write_text(json.dumps(work()))
        os._exit(0)
    _, status = os.waitpid(process, 0)
    assert status == 0
    return json.loads(file.read_text())
