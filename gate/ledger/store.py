"""One database, seen as two verbs: `read` and `write`. Everything foreign stays in here.

SQLite writes with WAL and synchronous=FULL: a commit has reached the disk when it returns. A file lock, shared by all
processes of the instance, serializes writers and checkpoints: SQLite before 3.51.3 can corrupt a WAL file that two
connections write and reset at the same moment, and waiting in the kernel is faster than SQLite's own retry sleeps.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from gate.errors import GateError, MaterialRefused, OperatorError, ServiceUnavailable
from gate.strict_json import MAX_VERIFY_DEPTH, parse

WRITE_TIMEOUT: Final = 5.0
"""How long a writer waits for its turn, in seconds."""

# The commit that makes the WAL this many pages long (16 MiB) copies it into the database file, still under the lock.
_CHECKPOINT_PAGES: Final = 4096
_LOCK_POLL: Final = 0.0001


class SqliteStore:
    """A SQLite database file and its file lock."""

    def __init__(self, database: Path, *, create: bool = False) -> None:
        """Opens the file.

        Args:
            database: The file.
            create: Whether to create it (mode 0600) where there is none.

        Raises:
            OSError: It cannot be opened.
        """
        self.database: Final = database
        os.close(os.open(database, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
        self._lock_file = os.open(database.with_name(f"{database.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        self._turn = threading.Lock()
        self._closed = False
        self.engine: Final[Engine] = create_engine(
            URL.create("sqlite", database=str(database)), pool_size=8, max_overflow=56, pool_timeout=WRITE_TIMEOUT
        )
        event.listen(self.engine, "connect", _prepare)
        event.listen(self.engine, "begin", _begin)
        self._writing = self.engine.execution_options(begin="IMMEDIATE")

    @property
    def location(self) -> str:
        """Where the database is, for operators."""
        return str(self.database)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection whose statements all see one snapshot.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        with _translated(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self, *, patience: float | None = None) -> Iterator[Connection]:
        """A transaction that is on disk when the block has ended without an exception, and undone otherwise.

        Args:
            patience: How long to wait for the turn, in seconds; `WRITE_TIMEOUT` where None.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: no turn came in time, or the database failed.
        """
        with (
            _translated(),
            self._exclusive(WRITE_TIMEOUT if patience is None else patience),
            self._writing.begin() as connection,
        ):
            yield connection

    def close(self) -> None:
        """Closes every connection. The last one to close copies the WAL into the file, so it takes the lock."""
        if self._closed:
            return
        self._closed = True
        try:
            with _translated(), self._exclusive(WRITE_TIMEOUT):
                self.engine.dispose()
        finally:
            os.close(self._lock_file)

    @contextmanager
    def _exclusive(self, patience: float) -> Iterator[None]:
        deadline = time.monotonic() + patience
        if not self._turn.acquire(timeout=patience):
            raise _unavailable("other requests hold the ledger")
        try:
            # Polled, because a blocking flock cannot be given up, and a stopped process would then hold everyone.
            while not _try_lock(self._lock_file):
                if time.monotonic() > deadline:
                    raise _unavailable("another process holds the ledger")
                time.sleep(_LOCK_POLL)
            try:
                yield
            finally:
                fcntl.flock(self._lock_file, fcntl.LOCK_UN)
        finally:
            self._turn.release()


def open_store(database_url: str, *, create: bool = False) -> SqliteStore:
    """The store that a database URL names: `sqlite:////absolute/path/ledger.db`.

    Args:
        database_url: The URL.
        create: Whether to create the database where there is none.

    Raises:
        OperatorError: DATABASE_URL_INVALID: it names no database that this release supports.
    """
    try:
        url = make_url(database_url)
    except SQLAlchemyError as error:
        raise OperatorError("DATABASE_URL_INVALID", f"The database URL cannot be read: {error}") from error
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        raise OperatorError(
            "DATABASE_URL_INVALID",
            f"The database URL {url.render_as_string()} names no SQLite file; write sqlite:////absolute/path/ledger.db.",
        )
    try:
        return SqliteStore(Path(url.database), create=create)
    except OSError as error:
        raise OperatorError(
            "DATABASE_UNREACHABLE",
            f"The ledger {url.database} cannot be opened: {error.strerror}. "
            f"If it was lost, restore it from a backup; an instance gets no second ledger.",
        ) from error


def read_object(stored: bytes, what: str) -> dict[str, Any]:
    """The JSON object in stored bytes.

    Args:
        stored: The bytes.
        what: What they are, for the error.

    Raises:
        ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: they hold no JSON object.
    """
    try:
        # SQLite hands out text where something else wrote text.
        found = parse(stored, max_depth=MAX_VERIFY_DEPTH) if isinstance(stored, bytes) else None
    except MaterialRefused:
        found = None
    if not isinstance(found, dict):
        raise ServiceUnavailable(
            "SVC_STORAGE_UNAVAILABLE",
            f"What is stored of {what} is not readable; the operator must check the chain.",
        )
    return found


def _prepare(connection: Any, _: ConnectionPoolEntry) -> None:
    # The driver would begin transactions by itself, deferred, and so let two writers read the same chain head.
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "busy_timeout=1000",
        f"wal_autocheckpoint={_CHECKPOINT_PAGES}",
        "cache_size=-8192",
        "foreign_keys=ON",
        "trusted_schema=OFF",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('begin', 'DEFERRED')}")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except GateError:
        raise
    except (SQLAlchemyError, OSError) as error:
        raise _unavailable(_reason(error)) from error


def _reason(error: Exception) -> str:
    """The driver's own words; SQLAlchemy's would repeat the statement and its values."""
    return str(getattr(error, "orig", None) or type(error).__name__)


def _unavailable(why: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        f"The ledger cannot be used now ({why}). Nothing was acknowledged; retry with the same idempotency key.",
    )
