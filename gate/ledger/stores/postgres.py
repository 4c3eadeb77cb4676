"""The PostgreSQL store: one transaction a scope, ordered by the row lock on the scope's head.

Reads see one snapshot (REPEATABLE READ, read only). Appends run under READ COMMITTED, where each statement after the
lock sees what the lock's last holder committed. A connection that died in the pool is found before it is used, or, on
the append path, by failing and being tried again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from threading import Lock
from typing import Any, Final

from psycopg import Error, OperationalError
from sqlalchemy import URL, Connection, Dialect, create_engine, text

from gate.errors import GateError, OperatorError
from gate.ledger.stores.store import PROBE_TIMEOUT, WRITE_TIMEOUT, Row, Statement, Store, Transaction, driver_error

DRIVER: Final = "postgresql+psycopg"

# What may be over in a moment, as classes and codes of SQLSTATE: serialization failures and deadlocks, lost
# connections, a server that restarts.
_CONFLICTS: Final = frozenset({"40001", "40P01"})
_LOST_CODES: Final = frozenset({"57P01", "57P02", "57P03"})
_LOST_CLASS: Final = "08"
# The driver remembers how it reads a statement of no more parameters, which costs more than to send several statements.
_PARAMETERS: Final = 50
# How many rows of a stream are in memory at most.
_STREAMED: Final = 100
_TIMEOUT_MS: Final = int(WRITE_TIMEOUT * 1000)
# A server that vanished without a word is given up within this many seconds.
_SILENCE_SECONDS: Final = 10
# This session's own: whatever the server's defaults are, a commit waits for the disk, and nothing waits for ever.
_SESSION: Final = {
    "application_name": "decision-gate",
    "synchronous_commit": "on",
    "default_transaction_isolation": "read\\ committed",
    "statement_timeout": _TIMEOUT_MS,
    "lock_timeout": _TIMEOUT_MS,
    "idle_in_transaction_session_timeout": 4 * _TIMEOUT_MS,
    "client_encoding": "utf8",
}


class PostgresLedgerStore(Store):
    """A PostgreSQL database."""

    def __init__(self, url: URL) -> None:
        """Works on the database of a URL; connects when it is first used."""
        url = url.set(drivername=DRIVER)
        arguments = {
            "connect_timeout": int(WRITE_TIMEOUT),
            "options": " ".join(f"-c {name}={value}" for name, value in _SESSION.items()),
            "keepalives_idle": _SILENCE_SECONDS,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": _SILENCE_SECONDS * 1000,
        }
        pool: dict[str, Any] = {"pool_size": 8, "max_overflow": 56, "pool_timeout": WRITE_TIMEOUT}
        super().__init__(create_engine(url, connect_args=arguments, pool_pre_ping=True, **pool))
        self._reading = self.engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        # Asking a connection whether it lives costs a round trip, and an append that meets a dead one is tried again.
        # Each scope with work leads an append of its own; they wait for one of a few connections.
        self._appending = create_engine(url, connect_args=arguments, **pool | {"max_overflow": 0})
        self._session: Any = None
        self._reserving = Lock()

    @property
    def location(self) -> str:
        """The URL, its password hidden."""
        return self.engine.url.render_as_string()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """See `Store.read`."""
        with self._translated(), self._reading.begin() as connection:
            yield connection

    def fetch(self, statement: Statement, values: Mapping[str, object]) -> Sequence[Row]:
        """See `Store.fetch`."""
        text, parameters = statement.on(self.engine.dialect)
        with self.read() as connection:
            return connection.exec_driver_sql(text, tuple(parameters(values))).all()

    @contextmanager
    def stream(self, statement: Statement, values: Mapping[str, object]) -> Iterator[Iterator[Row]]:
        """See `Store.stream`."""
        text, parameters = statement.on(self.engine.dialect)
        with self.read() as connection:
            streaming = connection.execution_options(yield_per=_STREAMED)
            with closing(streaming.exec_driver_sql(text, tuple(parameters(values)))) as rows:
                yield iter(rows)

    @contextmanager
    def write(self, *, patience: float | None = None) -> Iterator[Connection]:
        """See `Store.write`."""
        with self._translated(), self.engine.begin() as connection:
            if patience is not None:
                # 0 would mean to wait for ever.
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, int(patience * 1000))}")
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        with self._translated():
            pooled = self._appending.raw_connection()
            try:
                yield _PostgresTransaction(pooled.driver_connection, self.engine.dialect)
            except BaseException as error:
                pooled.invalidate()
                if isinstance(error, Error) and _is_lost(error):
                    # The other connections of the pool are likely to have died with this one.
                    self._appending.dispose()
                raise
            finally:
                pooled.close()

    @contextmanager
    def reserve(self, number: int) -> Iterator[bool]:
        """See `Store.reserve`. One session holds the advisory locks of this process; without it they are free."""
        if not self._advise("SELECT pg_try_advisory_lock(%s)", number):
            yield False
            return
        try:
            yield True
        finally:
            with suppress(GateError):
                self._advise("SELECT pg_advisory_unlock(%s)", number)

    def _advise(self, statement: str, number: int) -> bool:
        with self._reserving, self._translated():
            if self._session is not None:
                try:
                    return self._ask_session(statement, number)
                except Error as error:
                    # The server may have been restarted since the session was used last; a new one then answers.
                    if not _is_lost(error):
                        raise
            return self._ask_session(statement, number)

    def _ask_session(self, statement: str, number: int) -> bool:
        try:
            if self._session is None:
                pooled = self.engine.raw_connection()
                self._session = pooled.driver_connection
                pooled.detach()
                self._session.autocommit = True
            return bool(self._session.execute(statement, [number]).fetchone()[0])
        except BaseException:
            if self._session is not None:
                self._session.close()
                self._session = None
            raise

    def overwrite(self) -> bool:
        """See `Store.overwrite`. The files are the server's; its operator vacuums the table."""
        return True

    def lane(self, scope_id: str) -> str:
        """One a scope, so that a database that is sharded by scope never needs two shards for one transaction."""
        return scope_id

    def _passes(self, error: GateError) -> bool:
        cause = driver_error(error)
        return isinstance(cause, Error) and (cause.sqlstate in _CONFLICTS or _is_lost(cause))

    def probe(self) -> None:
        """See `Store.probe`."""
        with self.write(patience=PROBE_TIMEOUT) as connection:
            # Written again unchanged: the one table that always has exactly one row.
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = version_num")

    def size(self) -> int:
        """The bytes of the database on the server's disk."""
        with self.read() as connection:
            return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())

    def disk_left(self) -> int | None:
        """None: the disk is the server's."""
        return None

    def close(self) -> None:
        """Closes every connection."""
        with self._reserving:
            if self._session is not None:
                self._session.close()
        self.engine.dispose()
        self._appending.dispose()

    def require_durable(self) -> None:
        """Refuses a server that acknowledges what is not on its disk.

        Raises:
            OperatorError: `DATABASE_NOT_DURABLE`, or `DATABASE_UNREACHABLE`.
        """
        try:
            with self.read() as connection:
                lax = [
                    name
                    for name in ("fsync", "full_page_writes")
                    if connection.execute(text("SELECT current_setting(:name)"), {"name": name}).scalar_one() != "on"
                ]
        except GateError as error:
            raise OperatorError(
                "DATABASE_UNREACHABLE",
                f"The ledger {self.location} cannot be reached: {driver_error(error)}".strip().partition("\n")[0],
            ) from error
        if lax:
            raise OperatorError(
                "DATABASE_NOT_DURABLE",
                f"The PostgreSQL server has {' and '.join(lax)} turned off, so a crash would lose acknowledged "
                "writes. Turn it on in postgresql.conf.",
            )


class _PostgresTransaction(Transaction):
    """Sends what belongs together in one round trip, as PostgreSQL's pipeline mode allows."""

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self._connection = connection
        self._dialect = dialect

    def ask(self, queries: Sequence[tuple[Statement, Sequence[Mapping[str, object]]]]) -> list[list[Row]]:
        answers = []
        with self._connection.pipeline():
            for statement, rows in queries:
                asked = statement.over(self._dialect, rows, _PARAMETERS)
                answers.append([self._connection.cursor().execute(*query) for query in asked])
        return [[row for cursor in cursors for row in cursor.fetchall()] for cursors in answers]

    def commit(self, writes: Sequence[tuple[Statement, Sequence[Mapping[str, object]]]]) -> None:
        with self._connection.pipeline():
            for statement, rows in writes:
                for write in statement.over(self._dialect, rows, _PARAMETERS):
                    self._connection.cursor().execute(*write)
            # The COMMIT travels with the rows. Leaving the block waits for its answer, and raises where it failed.
            self._connection.commit()


def _is_lost(error: Error) -> bool:
    """Whether the connection is gone, or the server with it."""
    state = error.sqlstate
    if state is None:
        # A connection that broke off tells no SQLSTATE.
        return isinstance(error, OperationalError)
    return state in _LOST_CODES or state.startswith(_LOST_CLASS)
