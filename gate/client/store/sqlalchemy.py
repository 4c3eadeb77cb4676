"""A guard's store in your own database: SQLite or PostgreSQL, through SQLAlchemy.

    store = SqlAlchemyStore(engine)
    store.create_tables()  # or use `metadata` in your own migrations

With `within`, one transaction commits the action and the store's data about it together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Final

from gate.client.store.intents import Intent, Store, StoreUnavailable
from gate.client.store.statements import (
    IDENTIFY,
    IDENTITY,
    VERSION,
    WITHOUT_RESOLUTIONS,
    Row,
    SqlStore,
    Step,
    Values,
    new_identity,
    of_another_release,
    run_steps,
    unavailable,
)
from gate.errors import OperatorError

try:
    from sqlalchemy import (
        BigInteger,
        Column,
        Connection,
        Engine,
        Index,
        Integer,
        LargeBinary,
        MetaData,
        String,
        Table,
        Text,
        TextClause,
        inspect,
        text,
    )
    from sqlalchemy.event import listen
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError
    from sqlalchemy.orm import Session, SessionTransaction, scoped_session
except ImportError as _error:
    raise ImportError(
        "gate.client.store.sqlalchemy needs SQLAlchemy 2, which is not installed: pip install "
        "'.[sqlalchemy]'. SqliteStore needs no extra package."
    ) from _error

log = logging.getLogger("gate.client")

metadata: Final = MetaData()
"""The tables `gate_store`, `gate_intents` and `gate_reports`, for your own migrations."""

_TIME: Final = String(24)
# SQLite knows one integer type, of 64 bits.
_BIG: Final = BigInteger().with_variant(Integer(), "sqlite")

Table(
    "gate_store",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("value", Text, nullable=False),
)

Table(
    "gate_intents",
    metadata,
    Column("intent_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("state", String(20), nullable=False),
    Column("asked_hash", String(64), nullable=False),
    Column("asked_at", _TIME, nullable=False),
    Column("started_at", _TIME),
    Column("started_by", String(40)),
    Column("changed_at", _TIME, nullable=False),
    Column("asked", LargeBinary, nullable=False),
    Column("answered", LargeBinary),
    Column("told", LargeBinary),
    Column("resolved", LargeBinary),
    Index("gate_intents_by_state", "state", "asked_at"),
)

Table(
    "gate_reports",
    metadata,
    Column("report_id", _BIG, primary_key=True),
    Column("intent_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("decision_id", Text, nullable=False),
    Column("scope_hash", String(64), nullable=False),
    Column("idempotency_key", Text, nullable=False),
    Column("told_at", _TIME, nullable=False),
    Column("refused", LargeBinary),
    Column("body", LargeBinary, nullable=False),
    # The number of a delivered report is never given to another one.
    sqlite_autoincrement=True,
)

# A body that runs in a transaction of its own may keep others waiting for an intent that long.
_WAIT: Final = text("SET LOCAL lock_timeout = '5s'")
_UPGRADED: Final = "UPDATE gate_store SET value = :version WHERE name = 'version' AND value = :was"


class SqlAlchemyStore(SqlStore):
    """A guard's store in tables of your own database. Threads and processes may share it like the engine.

    Each method is a short transaction on its own connection. The settings of the engine and the database determine how
    durable it is and how long it waits. On PostgreSQL, it waits at most 5 seconds for a lock.
    """

    def __init__(self, engine: Engine) -> None:
        """Takes the engine of the database. The store connects when it is first used.

        Args:
            engine: An SQLAlchemy engine for SQLite or PostgreSQL.

        Raises:
            StoreUnavailable: `INTENTS_UNAVAILABLE`: the database is neither SQLite nor PostgreSQL.
        """
        self._dialect: Final = engine.dialect.name
        if self._dialect not in ("sqlite", "postgresql"):
            raise unavailable(self._dialect, "it is neither SQLite nor PostgreSQL", "Use one of these, or SqliteStore.")
        # Whatever the engine's default is: one that commits each statement would tear transitions apart.
        self._engine: Final = (
            engine.execution_options(isolation_level="READ COMMITTED") if self._dialect == "postgresql" else engine
        )
        self._identity: str | None = None

    @property
    def identity(self) -> str:
        """The store's unique id, which its tables keep. The first use of the tables creates it.

        Raises:
            StoreUnavailable: Also `INTENTS_VERSION`: this release does not support the version of the tables.
        """
        if self._identity is None:
            self._identity = self._identify()
        return self._identity

    def create_tables(self) -> None:
        """Creates missing tables, and updates the tables of an earlier release.

        Raises:
            StoreUnavailable: `INTENTS_UNAVAILABLE` or `INTENTS_VERSION`.
        """
        for table in metadata.sorted_tables:
            with self._translated():
                try:
                    table.create(self._engine, checkfirst=True)
                except DBAPIError:
                    # Another process may have been quicker; then there is nothing left to do.
                    table.create(self._engine, checkfirst=True)
        self._require_version()

    def within(self, session: Session | scoped_session[Session]) -> Store:
        """Returns the store for an action whose effects are all in one session's transaction.

        The store commits requests and permissions immediately, in its own transactions. It writes the start of the
        body, its end, and its reports through the session. If you commit, they are stored together with the effects of
        the body. If you roll back, the intent is still permitted, and the body may run again.

        Use it only if the body writes everything through this session. If the body also sends, pays, or calls
        something, a rollback can make that happen twice. If the body itself commits, the store writes the end and the
        reports in its own transactions from then on.

        The session's transaction must see what others commit while it is open. On PostgreSQL, use READ COMMITTED, or
        read nothing before. On SQLite, enter the guard before the session's first write: the store and the session
        would wait for each other until the busy timeout raises `StoreUnavailable`, and nothing runs.

        Args:
            session: A session on the same database, or a `scoped_session`. It must not commit each statement. Roll
                it back after a `StoreUnavailable`.

        Raises:
            OperatorError: `STORE_SEPARATE`: the argument is not a `Session`. An `AsyncSession` is none.
            StoreUnavailable: `INTENTS_UNAVAILABLE` or `INTENTS_VERSION`.
        """
        own = session() if isinstance(session, scoped_session) else session
        if not isinstance(own, Session):
            raise OperatorError(
                "STORE_SEPARATE",
                f"session is a {type(session).__name__}, and the guard cannot write in its transaction; "
                "pass a sqlalchemy.orm.Session.",
            )
        return _Within(self, own)

    def _read(self, sql: str, values: Values) -> Sequence[Row]:
        self._require_version()
        return self._rows(sql, values)

    def _write(self, *steps: Step) -> int:
        self._require_version()
        return self._run(steps)

    def _rows(self, sql: str, values: Values) -> Sequence[Row]:
        with self._translated(), self._engine.connect() as connection:
            return connection.execute(_text(sql), values).all()

    def _run(self, steps: Sequence[Step]) -> int:
        with self._translated(), self._engine.connect() as connection, connection.begin() as transaction:
            self._begin(connection)
            changed = run_steps(_executed(connection), steps)
            if not changed:
                transaction.rollback()
            return changed

    def _run_within(self, session: Session, steps: Sequence[Step]) -> int:
        self._require_version()
        with self._translated():
            connection = session.connection()
            if connection.engine.url != self._engine.url:
                raise self._unavailable("the session is for another database", "Give the store the session's engine.")
            if len(steps) == 1:
                return run_steps(_executed(connection), steps)
            # All of them or none, whatever interrupts them: the caller may commit what is there.
            with connection.begin_nested() as savepoint:
                changed = run_steps(_executed(connection), steps)
                if not changed:
                    savepoint.rollback()
                return changed

    def _require_version(self) -> None:
        # Whoever has the identity has checked the version.
        _ = self.identity

    def _identify(self) -> str:
        said = self._said()
        if said.get("version") in (None, str(WITHOUT_RESOLUTIONS)):
            self._add_resolutions()
            said = self._said()
        if not said.keys() >= {"identity", "version"}:
            told = {"identity": new_identity(), "version": str(VERSION)}
            self._run([Step(IDENTIFY, {"name": name, "value": told[name]}, needed=False) for name in told])
            said = self._said()
        if said["version"] != str(VERSION):
            raise of_another_release(self._where, said["version"])
        return said["identity"]

    def _add_resolutions(self) -> None:
        """Adds the column `resolved` to tables of an earlier release, whose processes can still use them.

        Raises:
            StoreUnavailable: `INTENTS_UNAVAILABLE`: also if this user may not change the tables.
        """
        try:
            with self._translated(), self._engine.connect() as connection, connection.begin():
                self._begin(connection)
                if "resolved" not in {column["name"] for column in inspect(connection).get_columns("gate_intents")}:
                    kind = metadata.tables["gate_intents"].c.resolved.type.compile(self._engine.dialect)
                    once = "IF NOT EXISTS " if self._dialect == "postgresql" else ""
                    connection.execute(text(f"ALTER TABLE gate_intents ADD COLUMN {once}resolved {kind}"))
                connection.execute(_text(_UPGRADED), {"version": str(VERSION), "was": str(WITHOUT_RESOLUTIONS)})
        except StoreUnavailable as error:
            # Another process may have been quicker.
            if self._said().get("version") != str(VERSION):
                mend = (
                    "Its tables are of an earlier release: call create_tables() once as their owner, which adds the "
                    "column resolved to gate_intents."
                )
                raise unavailable(self._where, self._reason(error.__cause__ or error), mend) from error

    def _begin(self, connection: Connection) -> None:
        """Makes the transaction a writing one from its first statement."""
        if self._dialect == "postgresql":
            connection.execute(_WAIT)
        elif not _has_begun(connection):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def _said(self) -> Mapping[str, str]:
        return dict(map(tuple, self._rows(IDENTITY, {})))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            # SQLAlchemy's own text would repeat the statement and its values.
            said = getattr(error, "orig", None) or error
            raise self._unavailable(self._reason(said)) from said

    def _reason(self, said: BaseException) -> str:
        # Without an SQLSTATE nothing was sent, and the driver may name anything that it was given to connect with.
        code = getattr(said, "sqlstate", None) or getattr(said, "pgcode", None)
        if self._dialect == "postgresql" and code is None:
            return f"it could not be reached: {type(said).__name__}"
        return str(said).strip().partition("\n")[0].partition(" with text ")[0]

    @property
    def _where(self) -> str:
        # Never the URL, which may have passwords in other places than the one for them.
        return f"in the {self._dialect} database {self._engine.url.database or ''}".rstrip()

    def _unavailable(self, why: str, do: str = "") -> StoreUnavailable:
        mend = "Check that the database is reachable and has the tables of create_tables()."
        return unavailable(self._where, why, do or mend)


class _Within(SqlAlchemyStore):
    """A store whose `start`, `unstart`, `finish` and `tell` are part of a session's transaction."""

    def __init__(self, store: SqlAlchemyStore, session: Session) -> None:
        super().__init__(store._engine)
        self._identity = store.identity
        self._session = session
        self._begun_in: SessionTransaction | None = None
        self._begun: Intent | None = None

    @property
    def follows_session(self) -> bool:
        """See `Store.follows_session`. False after the body has committed."""
        if self._begun is None or not self._has_ended():
            return True
        try:
            found = self.find(self._begun.intent_id)
        except StoreUnavailable:
            return True
        return found is None or found.started_by != self._begun.started_by

    def when_kept(self, then: Callable[[], None]) -> None:
        """See `Store.when_kept`. It calls the function when the session is committed."""
        if self._has_ended():
            then()
            return
        if _WAITING not in self._session.info:
            self._session.info[_WAITING] = set()
            listen(self._session, "after_commit", _tell_waiting)
        self._session.info[_WAITING].add(then)

    def start(self, intent: Intent, at: str, by: str) -> bool:
        """See `Store.start`."""
        started = super().start(intent, at, by)
        self._begun_in, self._begun = self._session.get_transaction(), replace(intent, started_by=by)
        return started

    def _write_of_body(self, *steps: Step) -> int:
        if self._has_ended():
            # Committed in the body, and what is written through the session now may never be. Rolled back, and there
            # is nothing to write to.
            log.warning("A transaction of the session ended inside a guarded block; end it after the block.")
            return self._run(steps)
        return self._run_within(self._session, steps)

    def _has_ended(self) -> bool:
        """Whether the transaction in which the body was started is over."""
        return self._begun_in is not None and self._session.get_transaction() is not self._begun_in


_WAITING: Final = "gate.client: to be told of the commit"


def _tell_waiting(session: Session) -> None:
    waiting = session.info.get(_WAITING, set())
    for then in waiting:
        then()
    # The end of a savepoint is called a commit as well.
    if not session.in_nested_transaction():
        waiting.clear()


@cache
def _text(sql: str) -> TextClause:
    return text(sql)


def _executed(connection: Connection) -> Callable[[str, Values], int]:
    return lambda sql, values: connection.execute(_text(sql), values).rowcount


def _has_begun(connection: Connection) -> bool:
    """Whether SQLite is in a transaction already, as it is where the engine's listeners begin it."""
    driver = connection.connection.driver_connection
    return driver is not None and bool(driver.in_transaction)
