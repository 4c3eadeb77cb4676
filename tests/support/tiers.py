"""Which tests `make check` runs: all but the heavy ones, which find themselves.

A test is heavy if it is in tests/end_to_end, has a parameter or a fixture that stands for PostgreSQL, or says so
itself with `pytest.mark.heavy`: so do those that hold something at its full size, or in every way there is, and take a
second or more for it. Where a light test starts a server after all, it fails, in every tier.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final

import pytest

HEAVY: Final = "heavy"
END_TO_END: Final = Path(__file__).parents[1] / "end_to_end"

MOST_PROCESSES: Final = 8
"""How many processes a light test may start. An application that calls adapters starts one, a replay a few."""

# Programs that serve, as they stand in a command.
_SERVERS: Final = {"serve", "run", "initdb", "pg_ctl", "postgres"}
_STARTERS: Final = {"gate", "make", "initdb", "pg_ctl", "postgres"}

_NAMES: Final = (str, Path)

_checking = False
_running: pytest.Item | None = None
_started = 0


def choose(expression: str) -> bool:
    """Takes the expression that pytest's -m was given; whether this is `make check`."""
    global _checking
    _checking = expression == f"not {HEAVY}"
    return _checking


def examples(number: int) -> int:
    """How many examples a property is tried on: so many in `make test`, a fourth of them in `make check`."""
    return max(number // 4, 1) if _checking else number


def mark(items: Iterable[pytest.Item]) -> None:
    """Marks the heavy tests that do not say so themselves."""
    for item in items:
        if _is_end_to_end(item.path) or _uses_postgres(item):
            item.add_marker(HEAVY)


def order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The same tests, the longest files first: a file is one process's, and none is to be left over at the end.

    Files of tests/end_to_end, whose tests wait for servers much of their time, take turns with others, whose tests
    hardly wait. In a file, those on PostgreSQL come last, so that what its tests share is made once for each database.
    """
    heavy = Counter(item.path for item in items if item.get_closest_marker(HEAVY))
    longest_first = sorted(dict.fromkeys(item.path for item in items), key=lambda path: -heavy[path])
    turns = {end_to_end: count() for end_to_end in (True, False)}
    places = {path: (next(turns[_is_end_to_end(path)]), not _is_end_to_end(path)) for path in longest_first}
    return sorted(items, key=lambda item: (places[item.path], _uses_postgres(item)))


# Files are few, and tests are many.
@cache
def _is_end_to_end(path: Path) -> bool:
    return path.is_relative_to(END_TO_END)


def _uses_postgres(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params.values() if callspec is not None else ()
    # The kind of a database, or a file that is named for one.
    names = [os.path.basename(value) for value in parameters if isinstance(value, _NAMES)]  # noqa: PTH119 - in a tenth
    return "postgres" in getattr(item, "fixturenames", ()) or any(name.startswith("postgresql") for name in names)


@contextmanager
def during(item: pytest.Item) -> Iterator[None]:
    """Holds a test to its tier while it runs, its fixtures included."""
    global _running, _started
    _running, _started = item, 0
    try:
        yield
    finally:
        _running = None


def require_heavy(what: str) -> None:
    """Requires that the test that runs is a heavy one.

    Raises:
        AssertionError: It is a light one.
    """
    if _running is not None and _running.get_closest_marker(HEAVY) is None:
        raise AssertionError(f"{_running.nodeid} {what}: mark it with pytest.mark.heavy (tests/support/tiers.py)")


def watch() -> None:
    """Watches the processes that this one starts, for good."""
    sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[object, ...]) -> None:
    global _started
    if event == "os.fork":
        _started += 1
    elif event == "subprocess.Popen":
        _started += 1
        words = [os.fsdecode(word) for word in _words(arguments[1]) if isinstance(word, str | bytes | os.PathLike)]
        names = {Path(word).name for word in words}
        # A server that heavy tests shared is stopped after the last test of the process, which may be a light one.
        if names & _STARTERS and names & _SERVERS and "stop" not in words:
            require_heavy(f"starts a server ({' '.join(words)[:80]})")
    else:
        return
    if _started > MOST_PROCESSES:
        require_heavy(f"starts {_started} processes")


def _words(command: object) -> Sequence[object]:
    return command if isinstance(command, list | tuple) else str(command).split()
