"""A `gate migrate` command that is killed before each statement of its transactions that write, one after the other.

It runs in processes of its own that start no thread before they fork, so that every point costs a fork and no start.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.migrating import SCOPE, CommandDesk

THE_END: Final = "the end"
"""What comes after the last statement: all is done, and nobody was told."""


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
        before: The first words of the statement that was not made, or `THE_END`.
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


def killed_everywhere(
    desk: CommandDesk, folder: Path, arguments: Sequence[str], by: str, every: int = 1
) -> list[Killed]:
    """Kills a command before the first statement of its transactions that write, in a copy of a desk; then before the
    second, and so on to the end.

    Args:
        desk: The desk, which stays as it is.
        folder: Where the copies are made.
        arguments: The command, as `CommandDesk.migrate` takes it.
        by: Who signs it.
        every: Every which statement is chosen.
    """
    # Loads what they need, once. Not what proves a proposal: it starts threads, and they are not forked.
    _state(desk)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a process with threads cannot be forked"
    found: list[Killed] = []
    number = 0
    while True:
        place = folder / str(number)
        copy = desk.copy(place)
        statement = _killed(lambda copy=copy: copy.migrate(*arguments, by=by), place / "killed", number)  # type: ignore[misc]
        # In a process of its own as well, for the same reason.
        state, (code, told), again = _apart(lambda copy=copy: _afterwards(copy, arguments, by), place / "after")  # type: ignore[misc]
        found.append(Killed(statement, State(**state), code, told, State(**again)))
        shutil.rmtree(place)
        if statement == THE_END:
            return found
        number += every


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


def _killed(work: Callable[[], object], note: Path, number: int) -> str:
    """Runs a work in a process that is killed before its so many-th statement, or at the end; before which that was."""
    process = os.fork()
    if not process:
        point = _Point(note, number)
        sqlite3.connect = sys.modules["sqlite3.dbapi2"].connect = point.connect  # type: ignore[attr-defined, assignment]
        work()
        point.end()
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    return note.read_text()


class _Point:
    """The point at which this process is killed."""

    def __init__(self, note: Path, number: int) -> None:
        self._note = note
        self._left = number
        self._connect = sqlite3.connect

    def connect(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        """A connection whose statements are watched."""
        writing = False

        def watch(statement: str) -> None:
            nonlocal writing
            writing = writing or statement.startswith("BEGIN IMMEDIATE")
            if writing:
                self.pass_(statement)
            writing = writing and not statement.startswith(("COMMIT", "ROLLBACK"))

        connection: sqlite3.Connection = self._connect(*arguments, **options)
        connection.set_trace_callback(watch)
        return connection

    def pass_(self, statement: str) -> None:
        """Goes on before a statement, or ends there."""
        if not self._left:
            self._kill(" ".join(statement.split()[:3]))
        self._left -= 1

    def end(self) -> None:
        """Ends."""
        self._kill(THE_END)

    def _kill(self, before: str) -> None:
        self._note.write_text(before)
        os.kill(os.getpid(), signal.SIGKILL)


def _apart(work: Callable[[], Any], file: Path) -> Any:
    """What a work gives in another process."""
    process = os.fork()
    if not process:
        file.write_text(json.dumps(work()))
        os._exit(0)
    _, status = os.waitpid(process, 0)
    assert status == 0
    return json.loads(file.read_text())
