"""A guard's store in an SQLite file on a local disk. WAL with `synchronous=FULL` syncs each transaction to disk.

A lock file next to it serializes writers, checkpoints, and the creation of the file. Without it, SQLite before 3.51.3
can corrupt a WAL that two connections write and reset at the same moment.

The store closes its connection before a fork and opens it again at the next use. A child must not inherit an open
connection. SQLite counts the locks of a file per process, so the child would rely on a lock that only its parent has.
When the last other process closes the file, SQLite would remove the WAL, and the commits of the child would be lost.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Final
from urllib.parse import quote
from weakref import WeakSet

from gate.client.store.intents import StoreUnavailable
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

PATIENCE: Final = 5.0
"""How long a writer waits for its turn, in seconds."""

TABLES: Final = (
    """
    CREATE TABLE gate_store (
        name TEXT NOT NULL PRIMARY KEY,
        value TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE gate_intents (
        intent_id TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        state TEXT NOT NULL,
        asked_hash TEXT NOT NULL,
        asked_at TEXT NOT NULL,
        started_at TEXT,
        started_by TEXT,
        changed_at TEXT NOT NULL,
        asked BLOB NOT NULL,
        answered BLOB,
        told BLOB,
        resolved BLOB,
        PRIMARY KEY (intent_id, attempt)
    )
    """,
    "CREATE INDEX gate_intents_by_state ON gate_intents (state, asked_at)",
    # AUTOINCREMENT: the number of a delivered report is never given to another one.
    """
    CREATE TABLE gate_reports (
        report_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        intent_id TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        kind TEXT NOT NULL,
        decision_id TEXT NOT NULL,
        scope_hash TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        told_at TEXT NOT NULL,
        refused BLOB,
        body BLOB NOT NULL
    )
    """,
)
"""The tables. `gate.client.store.sqlalchemy` defines the same tables for SQLAlchemy."""

_ADD_RESOLUTIONS: Final = "ALTER TABLE gate_intents ADD COLUMN resolved BLOB"
# "gate", in the file's header: whose file this is.
_APPLICATION: Final = 0x67617465
_POLL: Final = 0.0002
_SMALLEST_PAGE: Final = 512
_DATABASE_OF_ANOTHER: Final = "it belongs to another application"
_GIVE_ITS_OWN: Final = "Give the guard a file of its own."


class Found(Enum):
    """The kind of file at the path of a store.

    Attributes:
        NOTHING: No file, or an empty one: it can become a store.
        STORE: A store of any release.
        DATABASE: A database of another application.
        OTHER: Not a database: a directory, or a file of another kind.
    """

    NOTHING = auto()
    STORE = auto()
    DATABASE = auto()
    OTHER = auto()


def found_at(path: Path) -> Found:
    """Finds out the kind of file at the path of a store, without creating or changing anything.

    Args:
        path: The file. It may already be open, in this process or in others.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(os.path.realpath(path))
    try:
        status = path.stat()
    except FileNotFoundError:
        return Found.NOTHING
    if not stat.S_ISREG(status.st_mode):
        return Found.OTHER
    if status.st_size < _SMALLEST_PAGE:
        # SQLite takes a file of a single byte for an empty one, and would write over it.
        return Found.OTHER if status.st_size else Found.NOTHING
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        # SQLite says no more than that it could not open it.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    try:
        # Opened by SQLite alone: to close another descriptor of the file would end the locks that this process has on
        # it. What is immutable it reads without a lock, a WAL or any other file beside it.
        with closing(sqlite3.connect(f"{_uri(path)}?mode=ro&immutable=1", uri=True)) as connection:
            if _value(connection, "PRAGMA application_id") == _APPLICATION:
                return Found.STORE
            if not _is_new(connection):
                return Found.DATABASE
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            return Found.OTHER
        if error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT and Path(f"{path}.lock").exists():
            # A store looks like this while its WAL is copied into it. Opening it, under its lock, will tell.
            return Found.STORE
        raise OSError(errno.EIO, _reason(error), str(path)) from error
    # Everything in it may still be in the WAL.
    return Found.STORE if Path(f"{path}-wal").exists() else Found.NOTHING


@dataclass(frozen=True, slots=True)
class _Opened:
    """The open file.

    Attributes:
        connection: The connection.
        lock: The file descriptor of the lock.
        files: The device and inode of the database, its WAL and its lock.
        identity: The store's identity.
        process: The id of the process that opened the connection.
    """

    connection: sqlite3.Connection
    lock: int
    files: Sequence[tuple[int, int]]
    identity: str
    process: int


class SqliteStore(SqlStore):
    """A guard's store in an SQLite file. Threads may share the store, and processes may share the file.

    The first use opens the file. It is closed when the process ends, at the latest.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Takes the path of the file, without opening it yet.

        Args:
            path: The file. The store creates it (mode 0600) and missing folders above it (mode 0700). It must be on a
                local disk, and outlive the process and its container: without it, nothing remembers which actions
                were done.
        """
        # SQLite names the WAL after the file that a symbolic link leads to.
        self._path: Final = Path(os.path.realpath(path))
        self._turn: Final = threading.Lock()
        self._opened: _Opened | None = None
        with _forks:
            _stores.add(self)

    @property
    def identity(self) -> str:
        """The store's unique id, which the file keeps."""
        with self._use() as opened:
            return opened.identity

    def close(self) -> None:
        """Closes the file. The next use of the store opens it again."""
        with self._turn:
            self._close()

    def __enter__(self) -> SqliteStore:
        """Returns the store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        self.close()

    def _read(self, sql: str, values: Values) -> Sequence[Row]:
        with self._use() as opened:
            rows: Sequence[Row] = opened.connection.execute(sql, values).fetchall()
            return rows

    def _write(self, *steps: Step) -> int:
        with self._use() as opened:
            return self._committed(opened, steps)

    def _write_soon(self, *steps: Step) -> int:
        with self._use() as opened:
            # The WAL is written in order, so that the next commit with FULL takes this one to the disk as well.
            opened.connection.execute("PRAGMA synchronous=NORMAL")
            try:
                return self._committed(opened, steps)
            finally:
                opened.connection.execute("PRAGMA synchronous=FULL")

    def _committed(self, opened: _Opened, steps: Sequence[Step]) -> int:
        with self._exclusive(opened.lock), _transaction(opened.connection) as connection:
            self._require_files(opened)
            changed = run_steps(lambda sql, values: connection.execute(sql, values).rowcount, steps)
            connection.execute("COMMIT" if changed else "ROLLBACK")
            return changed

    @contextmanager
    def _use(self) -> Iterator[_Opened]:
        if not self._turn.acquire(timeout=PATIENCE):
            raise self._unavailable("other threads are using it")
        try:
            if self._opened is None:
                self._opened = self._open()
            if self._opened.process != os.getpid():
                raise self._unavailable("it was opened before a fork that Python did not notice")
            yield self._opened
        except (sqlite3.Error, OSError) as error:
            raise self._unavailable(_reason(error)) from error
        finally:
            self._turn.release()

    def _open(self) -> _Opened:
        # Before anything is created next to another application's file.
        found = found_at(self._path)
        if found is Found.OTHER:
            raise self._unavailable("it is not a database", _GIVE_ITS_OWN)
        if found is Found.DATABASE:
            raise self._unavailable(_DATABASE_OF_ANOTHER, _GIVE_ITS_OWN)
        _make_folders(self._path.parent)
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with self._exclusive(lock):
                if not self._path.exists():
                    # Only ever a new file: to close another descriptor of it would end the locks that SQLite has on it.
                    os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
                # mode=rw: a file that is gone must not come back empty.
                connection = sqlite3.connect(
                    f"{_uri(self._path)}?mode=rw",
                    uri=True,
                    timeout=PATIENCE,
                    isolation_level=None,
                    check_same_thread=False,
                )
                try:
                    identity = self._prepare(connection)
                    return _Opened(connection, lock, self._files(), identity, os.getpid())
                except BaseException:
                    connection.close()
                    raise
        except BaseException:
            os.close(lock)
            raise

    def _prepare(self, connection: sqlite3.Connection) -> str:
        """Requires that a file is a store, or makes an empty one a store; its identity."""
        is_new = _is_new(connection)
        application, version = (_value(connection, f"PRAGMA {name}") for name in ("application_id", "user_version"))
        if application != _APPLICATION and not is_new:
            raise self._unavailable(_DATABASE_OF_ANOTHER, _GIVE_ITS_OWN)
        if application == _APPLICATION and version not in (VERSION, WITHOUT_RESOLUTIONS):
            raise of_another_release(str(self._path), version)
        if _value(connection, "PRAGMA journal_mode=WAL") != "wal":
            raise self._unavailable("SQLite cannot share files there", "Put it on a local disk.")
        for pragma in ("synchronous=FULL", "trusted_schema=OFF", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")
        if application != _APPLICATION:
            with _transaction(connection):
                for statement in TABLES:
                    connection.execute(statement)
                connection.execute(IDENTIFY, {"name": "identity", "value": new_identity()})
                connection.execute(f"PRAGMA application_id={_APPLICATION}")
                connection.execute(f"PRAGMA user_version={VERSION}")
                connection.execute("COMMIT")
        elif version == WITHOUT_RESOLUTIONS:
            # Processes of an earlier release can still use the open file: they never name the column.
            with _transaction(connection):
                connection.execute(_ADD_RESOLUTIONS)
                connection.execute(f"PRAGMA user_version={VERSION}")
                connection.execute("COMMIT")
        identity: str | None = dict(connection.execute(IDENTITY).fetchall()).get("identity")
        if identity is None:
            raise self._unavailable("it has lost its identity", "Restore a copy of the file that has its identity.")
        return identity

    def _close(self) -> None:
        opened = self._opened
        # An inherited connection is not even dropped, for that would close it.
        if opened is not None and opened.process == os.getpid():
            self._opened = None
            os.close(opened.lock)
            opened.connection.close()

    @contextmanager
    def _exclusive(self, lock: int) -> Iterator[None]:
        deadline = time.monotonic() + PATIENCE
        # Polled, because a blocking flock cannot be given up, and a stopped process would then hold everyone.
        while not _try_lock(lock):
            if time.monotonic() > deadline:
                raise self._unavailable("another process has locked it")
            time.sleep(_POLL)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)

    def _require_files(self, opened: _Opened) -> None:
        """Requires that the open files are still at their paths, because writes to replaced files would be lost."""
        try:
            if self._files() == opened.files:
                return
        except FileNotFoundError:
            pass
        raise self._unavailable(
            "its file was removed or replaced while it was open",
            (
                "Restore the same file, never an older copy, and restart the process; with an older or "
                "empty store, an action could happen twice."
            ),
        )

    def _files(self) -> Sequence[tuple[int, int]]:
        found = [os.stat(f"{self._path}{suffix}") for suffix in ("", "-wal", ".lock")]  # noqa: PTH116 - at every write
        return [(stat.st_dev, stat.st_ino) for stat in found]

    def _unavailable(self, why: str, do: str = "") -> StoreUnavailable:
        mend = "Check that it is a file on a local disk with free space, and that this user may write to it."
        return unavailable(str(self._path), why, do or mend)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A transaction that is rolled back unless the block has committed it."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _make_folders(folder: Path) -> None:
    """Creates a folder and those above it durably, so that they survive a power failure."""
    if folder.exists():
        return
    _make_folders(folder.parent)
    folder.mkdir(0o700, exist_ok=True)
    above = os.open(folder.parent, os.O_RDONLY)
    try:
        os.fsync(above)
    finally:
        os.close(above)


def _uri(path: Path) -> str:
    return f"file:{quote(os.fsencode(path))}"


def _is_new(connection: sqlite3.Connection) -> bool:
    """Whether a database is empty, and no application marked it as its own."""
    marks = [_value(connection, f"PRAGMA {name}") for name in ("application_id", "user_version")]
    return marks == [0, 0] and bool(_value(connection, "SELECT count(*) = 0 FROM sqlite_master"))


def _value(connection: sqlite3.Connection, sql: str) -> object:
    row: Sequence[object] = connection.execute(sql).fetchone()
    return row[0]


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _reason(error: sqlite3.Error | OSError) -> str:
    # SQLite quotes text that it cannot read.
    return str(error.strerror) if isinstance(error, OSError) else str(error).partition(" with text ")[0]


_stores: Final[WeakSet[SqliteStore]] = WeakSet()
_forks: Final = threading.Lock()
_closed: Final[list[SqliteStore]] = []


def _before_fork() -> None:
    _forks.acquire()
    for store in list(_stores):
        # Nobody is in a transaction then, and the child finds no lock that one of the parent's threads has. A thread
        # has its turn for twice PATIENCE at most, unless the disk hangs: it waits for the file lock, then for SQLite's.
        # If that is not enough, the fork continues; `_use` refuses what the child inherits, by its process.
        if store._turn.acquire(timeout=2 * PATIENCE):
            _closed.append(store)
            with suppress(sqlite3.Error, OSError):
                store._close()


def _after_fork() -> None:
    while _closed:
        _closed.pop()._turn.release()
    _forks.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
