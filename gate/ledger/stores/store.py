"""One database behind a few methods. Code for a particular database is only here, in `sqlite`, and in `postgres`.

- `with store.read() as connection`: statements that all see one snapshot
- `with store.write() as connection`: a transaction, durable at the end of the block
- `store.run(work)`: a transaction for appends, with statements that are compiled once and sent together. It is tried
  again after a temporary failure.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeVar

from sqlalchemy import ClauseElement, Connection, Dialect, Engine, Insert, Select, Table
from sqlalchemy.exc import SQLAlchemyError

from gate.encoding.stored_json import parse_stored
from gate.errors import GateError, MaterialRefused, ServiceUnavailable, StorageUnavailable

WRITE_TIMEOUT: Final = 5.0
"""How long a writer waits for its turn, in seconds."""

PROBE_TIMEOUT: Final = 2.0
"""How long a probe waits for its turn, in seconds: who asks for readiness does not wait longer for an answer."""

Row: TypeAlias = Sequence[Any]
"""A row as a driver hands it out; its members are those of the statement that asked for it."""

Parameters: TypeAlias = Callable[[Mapping[str, object]], Sequence[object]]
"""What makes a driver's parameters of named values."""

Answer = TypeVar("Answer")

_FIRST_PAUSE: Final = 0.01
# SQLite joins at most 500 queries into one.
_TOGETHER: Final = 256


class Statement:
    """A statement compiled once for each dialect, so that running it costs what the driver costs and no more.

    Its values reach the driver as they are: text of a `Utf8` column has to be given, and is handed out, as bytes.
    """

    def __init__(self, statement: ClauseElement) -> None:
        """Takes a statement whose parameters are all named."""
        # Else SQLite copies each page that an insert of several rows touches, to undo that one alone, which costs three
        # times as much as inserting. A transaction is undone as a whole where anything in it fails.
        self._statement = (
            statement.prefix_with("OR ROLLBACK", dialect="sqlite") if isinstance(statement, Insert) else statement
        )
        self._compiled: dict[str, tuple[str, Parameters]] = {}
        self._of_several: dict[tuple[str, int], str] = {}

    def on(self, dialect: Dialect) -> tuple[str, Parameters]:
        """The SQL text for a dialect, and what puts named values in the order of the text."""
        found = self._compiled.get(dialect.name)
        if found is None:
            # Two threads may compile it at once, to the same text. By position for every driver: psycopg's own style is
            # by name, and one name cannot have the values of several rows.
            style: Any = type(dialect)
            compiled: Any = self._statement.compile(
                dialect=dialect if dialect.positional else style(paramstyle="format")
            )
            found = self._compiled[dialect.name] = (str(compiled), _in_order(compiled.positiontup))
        return found

    def over(
        self, dialect: Dialect, rows: Sequence[Mapping[str, object]], most: int
    ) -> Iterator[tuple[str, Sequence[object]]]:
        """What to execute for rows of named values: few statements where one can be of several rows, or else one each.

        Args:
            dialect: The dialect.
            rows: The rows.
            most: How many parameters a statement may have.
        """
        if not rows:
            return
        text, parameters = self.on(dialect)
        if len(rows) == 1:
            yield text, parameters(rows[0])
            return
        values = [*map(parameters, rows)]
        together = min(_TOGETHER, most // max(1, len(values[0]))) if self._joins else 1
        for at in range(0, len(values), together):
            some = values[at : at + together]
            if len(some) == 1:
                yield text, some[0]
            else:
                yield self._several(dialect.name, text, len(some)), [*chain.from_iterable(some)]

    @property
    def _joins(self) -> bool:
        if isinstance(self._statement, Select):
            # Rows that are locked cannot be joined with others.
            return self._statement._for_update_arg is None
        return isinstance(self._statement, Insert)

    def _several(self, dialect: str, text: str, rows: int) -> str:
        found = self._of_several.get((dialect, rows))
        if found is None:
            before, insert, values = text.partition(" VALUES ")
            found = before + insert + ", ".join([values] * rows) if insert else " UNION ALL ".join([text] * rows)
            self._of_several[dialect, rows] = found
        return found


def _in_order(names: Sequence[str]) -> Parameters:
    """What puts named values in the order of a statement's text."""
    # itemgetter gives a bare value for one name, and takes none at all.
    return itemgetter(*names) if len(names) > 1 else lambda values: tuple(values[name] for name in names)


class Transaction(ABC):
    """A transaction for appends. It rolls back everything that was not committed at the end."""

    @abstractmethod
    def ask(self, queries: Sequence[tuple[Statement, Sequence[Mapping[str, object]]]]) -> list[list[Row]]:
        """The rows that each query finds with all of its values, run in order; no rows where there are no values."""

    @abstractmethod
    def commit(self, writes: Sequence[tuple[Statement, Sequence[Mapping[str, object]]]]) -> None:
        """Runs each statement over its rows, and commits; durable when it returns."""


class Store(ABC):
    """A database that keeps a ledger.

    Attributes:
        engine: What SQLAlchemy works with.
    """

    def __init__(self, engine: Engine) -> None:
        """Takes the engine."""
        self.engine: Final = engine

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the database is, for operators; never with a password."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """A connection whose statements all see one snapshot.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """

    @abstractmethod
    def fetch(self, statement: Statement, values: Mapping[str, object]) -> Sequence[Row]:
        """The rows of one query, at no more cost than the driver's own.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """

    @abstractmethod
    def stream(self, statement: Statement, values: Mapping[str, object]) -> AbstractContextManager[Iterator[Row]]:
        """The rows of one query as `fetch` gives them, a few in memory at a time, while the block runs.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """

    @abstractmethod
    def write(self, *, patience: float | None = None) -> AbstractContextManager[Connection]:
        """A transaction that is on disk when the block has ended without an exception, and undone otherwise.

        Args:
            patience: How long to wait for the turn, in seconds; `WRITE_TIMEOUT` where None.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: no turn came in time, or the database failed.
        """

    def run(self, work: Callable[[Transaction, bool], Answer]) -> Answer:
        """Does work in a transaction for appends, which it has to commit, and again where what failed it may be over.

        Args:
            work: Takes the transaction, and whether it was tried before: it may then be committed already, without this
                process having heard so.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`, as `write`, or what failed it did not pass within
                `WRITE_TIMEOUT`.
        """
        deadline = time.monotonic() + WRITE_TIMEOUT
        pause, tried = _FIRST_PAUSE, False
        while True:
            try:
                with self._transaction() as transaction:
                    return work(transaction, tried)
            except ServiceUnavailable as error:
                if not self._passes(error) or time.monotonic() + pause > deadline:
                    raise
            # Random, so that two processes never retry in step.
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - a pause is no secret
            pause, tried = 2 * pause, True

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction for appends; raises as `write` does."""

    @abstractmethod
    def lane(self, scope_id: str) -> str:
        """Which appends share a transaction: those of scopes with the same answer."""

    @abstractmethod
    def reserve(self, number: int) -> AbstractContextManager[bool]:
        """A lock of this process on a number below 2^62, for as long as the block runs; False, at once, where another
        process has it. It ends with the process. Threads of one process are not told apart.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """

    @abstractmethod
    def overwrite(self) -> bool:
        """Overwrites the copies that the database's own files still have of what was erased.

        Returns:
            Whether none is left; False where somebody who reads an older state kept that from being done.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """

    @abstractmethod
    def _passes(self, error: GateError) -> bool:
        """Whether what failed a transaction may be over in a moment."""

    @abstractmethod
    def probe(self) -> None:
        """Requires that a write becomes durable now, by one that changes nothing anyone reads.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """

    @abstractmethod
    def size(self) -> int:
        """How much disk the ledger takes, in bytes."""

    @abstractmethod
    def disk_left(self) -> int | None:
        """How many bytes can still be written where the database is; None where this process cannot see that."""

    @abstractmethod
    def close(self) -> None:
        """Closes every connection."""

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except GateError:
            raise
        except (SQLAlchemyError, OSError, self.engine.dialect.loaded_dbapi.Error) as error:
            raise unavailable(_reason(error)) from error


def unavailable(why: str) -> StorageUnavailable:
    """`SVC_STORAGE_UNAVAILABLE`, with the reason in it."""
    return StorageUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        f"The ledger is not available ({why}). Nothing was acknowledged; retry with the same idempotency key.",
        why=why,
    )


def insert_absent(connection: Connection, table: Table, values: Mapping[str, object]) -> None:
    """Inserts a row unless there is one of its key already."""
    # Loading the other database's as well would add a tenth to a command's start.
    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    connection.execute(dialect.insert(table).values(**values).on_conflict_do_nothing())


def driver_error(error: GateError) -> BaseException | None:
    """The message of the database's driver behind an error of the product."""
    cause = error.__cause__
    return getattr(cause, "orig", None) or cause


def unheard_of(name: str) -> bool:
    """Whether no stored id, hash, or name can equal a text. Text in PostgreSQL cannot contain U+0000, and no database
    accepts text without a UTF-8 form.
    """
    return "\0" in name or not has_utf8(name)


def has_utf8(text: str) -> bool:
    """Whether a text has a UTF-8 form. It has none if it contains half of a surrogate pair. In an argument of a
    command, such a half represents a byte that is not text.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_object(stored: bytes, what: str) -> Any:
    """The JSON object in stored bytes.

    Args:
        stored: The bytes.
        what: Its name in the error.

    Returns:
        The object, as a dict. Its type is left open: the caller knows which document is stored there.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: they hold no JSON object.
    """
    try:
        # SQLite returns text where something else wrote text.
        found = parse_stored(stored) if isinstance(stored, bytes) else None
    except MaterialRefused:
        found = None
    if not isinstance(found, dict):
        raise ServiceUnavailable(
            "SVC_STORAGE_UNAVAILABLE",
            f"The stored copy of {what} is not readable. The operator must check the chain.",
        )
    return found


def _reason(error: BaseException) -> str:
    """The driver's own first line; SQLAlchemy's would repeat the statement and its values."""
    if isinstance(error, OSError):
        return str(error.strerror)
    said = getattr(error, "orig", None) or error
    # Without an SQLSTATE nothing was sent, and the driver's message names host, database and user.
    if getattr(said, "sqlstate", "") is None:
        return "the database cannot be reached"
    # SQLite quotes text that it cannot read.
    return str(said).strip().partition("\n")[0].partition(" with text ")[0] or type(error).__name__
