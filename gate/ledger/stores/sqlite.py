"""The SQLite store: WAL with synchronous=FULL, so that a commit has reached the disk when it returns.

A file lock, shared by all processes of the instance, serializes writers and checkpoints. SQLite before 3.51.3 can
corrupt a WAL file that two connections write and reset at the same moment. Waiting for a file lock is also faster than
SQLite's own retry sleeps.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection, Dialect, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from gate.errors import GateError
from gate.ledger.stores.store import (
    PROBE_TIMEOUT,
    WRITE_TIMEOUT,
    Row,
    Statement,
    Store,
    Transaction,
    unavailable,
)

# The commit that makes the WAL this many pages long (8 MiB) copies it into the database file, still under the lock.
_CHECKPOINT_PAGES: Final = 2000
_LOCK_POLL: Final = 0.0001
_STUCK_PATIENCE: Final = 0.05
_READER_POLL: Final = 0.05
# Where things stand in a WAL (sqlite.org/fileformat2.html, "WAL File Format"), in bytes.
_WAL_HEADER: Final = 32
_WAL_PAGE_SIZE: Final = slice(8, 12)
_WAL_SALTS: Final = slice(16, 24)
_FRAME_HEADER: Final = 24
_FRAME_SALTS: Final = slice(8, 16)
_PIECE: Final = 1024 * 1024
# SQLite takes 32,766 in a statement since 3.32.
_PARAMETERS: Final = 30_000
# Each number of rows is a statement of its own.
_REMEMBERED_STATEMENTS: Final = 512


class SqliteLedgerStore(Store):
    """A database file of SQLite and its file lock."""

    def __init__(self, database: Path, *, create: bool = False, durable: bool = True) -> None:
        """Opens the file.

        Args:
            database: The file.
            create: Whether to create it (mode 0600) where there is none.
            durable: Whether a commit waits for the disk.

        Raises:
            OSError: It cannot be opened.
        """
        self.database: Final = database
        # SQLite itself would create a file that others may read; its WAL takes over the mode of the file. This
        # comes before the store connects: closing a descriptor drops every lock that the process has on the file.
        os.close(os.open(database, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
        self._files = tuple(f"{database}{suffix}" for suffix in ("", "-wal"))
        self._opened = _identity(self._files[0])[:2]
        self._seen: tuple[tuple[int, int, int] | None, ...] = (_identity(self._files[0]), None)
        # A file next to the database, for the same reason.
        self._lock_file = os.open(database.with_name(f"{database.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        self._turn = threading.Lock()
        self._stuck = False
        self._closed = False
        self._pragmas = (
            "journal_mode=WAL",
            f"synchronous={'FULL' if durable else 'OFF'}",
            "busy_timeout=1000",
            f"wal_autocheckpoint={_CHECKPOINT_PAGES}",
            "cache_size=-8192",
            "foreign_keys=ON",
            "trusted_schema=OFF",
            # Erased data is overwritten, not merely freed.
            "secure_delete=ON",
        )
        super().__init__(
            create_engine(
                URL.create("sqlite", database=str(database)),
                creator=self._connect,
                pool_size=8,
                max_overflow=56,
                pool_timeout=WRITE_TIMEOUT,
            )
        )
        event.listen(self.engine, "connect", self._prepare)
        event.listen(self.engine, "begin", _begin)
        self._writing = self.engine.execution_options(begin="IMMEDIATE")
        # One connection for all appends, for they come one at a time: taking one from the pool would cost each of them.
        self._appending: PoolProxiedConnection | None = None

    @property
    def location(self) -> str:
        """The file."""
        return str(self.database)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """See `Store.read`."""
        with self._translated(), self.engine.begin() as connection:
            yield connection

    def fetch(self, statement: Statement, values: Mapping[str, object]) -> Sequence[Row]:
        """See `Store.fetch`."""
        text, parameters = statement.on(self.engine.dialect)
        with self._translated():
            pooled = self.engine.raw_connection()
            try:
                rows: list[Row] = pooled.cursor().execute(text, parameters(values)).fetchall()
                return rows
            finally:
                pooled.close()

    @contextmanager
    def stream(self, statement: Statement, values: Mapping[str, object]) -> Iterator[Iterator[Row]]:
        """See `Store.stream`."""
        text, parameters = statement.on(self.engine.dialect)
        with (
            self._translated(),
            closing(self.engine.raw_connection()) as pooled,
            closing(pooled.cursor()) as cursor,
        ):
            yield cursor.execute(text, parameters(values))

    @contextmanager
    def write(self, *, patience: float | None = None) -> Iterator[Connection]:
        """See `Store.write`."""
        with self._translated(), self.exclusive(patience), self._writing.begin() as connection:
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        with self._translated(), self.exclusive():
            if self._appending is None:
                self._appending = self.engine.raw_connection()
                # The WAL is created again if nobody had the file open.
                self._seen = (self._seen[0], None)
            cursor = self._appending.cursor()
            try:
                # The file lock orders the processes of this instance. IMMEDIATE takes SQLite's own write lock before
                # the head is read, so the chain cannot fork even where something else writes to the file (ADR 4).
                cursor.execute("BEGIN IMMEDIATE")
                self._require_files()
                yield _SqliteTransaction(cursor, self.engine.dialect)
                if cursor.connection.in_transaction:
                    # Work that had nothing to write did not commit.
                    cursor.execute("ROLLBACK")
            except BaseException:
                # Some failures have undone the transaction already. Closing alone would not undo it while anything,
                # such as the traceback of an error that is kept, still holds one of its statements.
                with suppress(sqlite3.Error):
                    cursor.execute("ROLLBACK")
                    cursor.close()
                self._appending.invalidate()
                self._appending = None
                raise
            cursor.close()

    def _require_files(self) -> None:
        """Requires that the open files are those in their place, for what is written to others would be lost.

        Neither the database nor its WAL becomes another file, or a shorter one, while it is open.
        """
        found = tuple(map(_identity, self._files))
        for now, before in zip(found, self._seen, strict=True):
            if before is not None and (now[:2] != before[:2] or now[2] < before[2]):
                raise unavailable("its file was replaced or truncated")
        self._seen = found

    def is_in_place(self) -> bool:
        """Whether the file that was opened is still the one in its place."""
        try:
            return _identity(self._files[0])[:2] == self._opened
        except OSError:
            return False

    @contextmanager
    def reserve(self, number: int) -> Iterator[bool]:
        """See `Store.reserve`. The number is a place in the lock file, which need not be that long."""
        try:
            # A POSIX record lock. It does not meet the flock by which writers take turns on the same file, and the
            # system releases it when the process dies, so no key stays reserved after a crash (ADR 7).
            fcntl.lockf(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):
            yield False
            return
        except OSError as error:
            raise unavailable(str(error.strerror)) from error
        try:
            yield True
        finally:
            fcntl.lockf(self._lock_file, fcntl.LOCK_UN, 1, number)

    def overwrite(self) -> bool:
        """See `Store.overwrite`: the WAL still has pages as they were, and these are filled with zeros.

        It keeps its length, because another process that has it open would take a shorter file for a truncated one.
        """
        deadline = time.monotonic() + WRITE_TIMEOUT
        while not self._overwrite_wal():
            if time.monotonic() > deadline:
                return False
            # Without the turn, so that nobody who writes has to wait for a reader.
            time.sleep(_READER_POLL)
        return True

    def _overwrite_wal(self) -> bool:
        wal = self._files[1]
        with self._translated(), self.exclusive():
            before = _wal_salts(wal)
            pooled = self.engine.raw_connection()
            try:
                cursor = pooled.cursor()
                if _is_copied(cursor):
                    cursor.execute("BEGIN IMMEDIATE")
                    cursor.execute("PRAGMA user_version = 0")
                    cursor.execute("COMMIT")
            finally:
                pooled.close()
            # The log starts over with the first commit after it was copied, unless a reader came in between. Until it
            # has, what is committed stands behind the old frames, and nothing before it may be touched.
            if _wal_salts(wal) == before:
                return False
            _zero_behind_last_frame(wal)
            return True

    def lane(self, scope_id: str) -> str:
        """One for all: the file has one writer at a time."""
        return ""

    def _passes(self, error: GateError) -> bool:
        # Waiting for the file happens inside, and a full or failing disk stays that way.
        return False

    def probe(self) -> None:
        """See `Store.probe`."""
        with self.write(patience=PROBE_TIMEOUT) as connection:
            self._require_files()
            # It lies in the file's first page, so that setting it is a write, whatever it was before.
            connection.exec_driver_sql("PRAGMA user_version = 0")

    def size(self) -> int:
        """The bytes of the database file and of its WAL."""
        files = (self.database, self.database.with_name(f"{self.database.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def disk_left(self) -> int | None:
        """The bytes free for this user in the file's file system."""
        return shutil.disk_usage(self.database.parent).free

    def close(self) -> None:
        """Closes every connection. The last one to close copies the WAL into the file, so it takes the lock."""
        if self._closed:
            return
        self._closed = True
        try:
            with self._translated(), self.exclusive():
                if self._appending is not None:
                    self._appending.close()
                self.engine.dispose()
        finally:
            os.close(self._lock_file)

    @contextmanager
    def exclusive(self, patience: float | None = None) -> Iterator[None]:
        """The turn to write: no thread and no process of the instance has it at the same time.

        Args:
            patience: How long to wait for it, in seconds. None means `WRITE_TIMEOUT`, or much less while others have
                waited that long without success, so that requests do not pile up behind a stuck ledger.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it did not come in time.
        """
        if patience is None:
            patience = _STUCK_PATIENCE if self._stuck else WRITE_TIMEOUT
        deadline = time.monotonic() + patience
        # Threads first, then processes: all threads share one descriptor, and flock grants it the lock again.
        if not self._turn.acquire(timeout=patience):
            raise unavailable("other requests hold the lock of the ledger")
        try:
            # Polled, because a blocking flock cannot be given up, and a stopped process would then hold everyone.
            while not _try_lock(self._lock_file):
                if time.monotonic() > deadline:
                    self._stuck = self._stuck or patience >= WRITE_TIMEOUT
                    raise unavailable("another process holds the lock of the ledger")
                time.sleep(_LOCK_POLL)
            self._stuck = False
            try:
                yield
            finally:
                fcntl.flock(self._lock_file, fcntl.LOCK_UN)
        finally:
            self._turn.release()

    def _connect(self) -> sqlite3.Connection:
        # mode=rw: a file that is gone must not come back empty.
        return sqlite3.connect(
            f"file:{quote(str(self.database))}?mode=rw",
            uri=True,
            check_same_thread=False,
            cached_statements=_REMEMBERED_STATEMENTS,
        )

    def _prepare(self, connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        # The driver would begin transactions by itself, deferred, and so let two writers read the same chain head.
        connection.isolation_level = None
        for pragma in self._pragmas:
            connection.execute(f"PRAGMA {pragma}")


class _SqliteTransaction(Transaction):
    def __init__(self, cursor: Any, dialect: Dialect) -> None:
        self._cursor = cursor
        self._dialect = dialect

    # Whatever can be said in one step is: at every step this thread gives up the interpreter while it holds the ledger.

    def ask(self, queries: Sequence[tuple[Statement, Sequence[Mapping[str, object]]]]) -> list[list[Row]]:
        execute = self._cursor.execute
        return [
            [row for query in statement.over(self._dialect, rows, _PARAMETERS) for row in execute(*query).fetchall()]
            if rows
            else []
            for statement, rows in queries
        ]

    def commit(self, writes: Sequence[tuple[Statement, Sequence[Mapping[str, object]]]]) -> None:
        for statement, rows in writes:
            for write in statement.over(self._dialect, rows, _PARAMETERS):
                self._cursor.execute(*write)
        # With synchronous=FULL this returns once the WAL is synced; NORMAL would let answers leave before (ADR 4).
        self._cursor.execute("COMMIT")


def _is_copied(cursor: DBAPICursor) -> bool:
    """Copies the WAL into the database; whether all of it is there and nobody reads from the WAL any more."""
    (busy, *_) = cursor.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
    return not busy


def _wal_salts(wal: str) -> bytes:
    """Tells a WAL's frames from those before it last started over; empty if it has no header yet."""
    with Path(wal).open("rb") as file:
        return file.read(_WAL_HEADER)[_WAL_SALTS]


def _zero_behind_last_frame(wal: str) -> None:
    """Fills with zeros what stands in a WAL behind the frames of its present salts, which no one reads any more."""
    with Path(wal).open("r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        header = file.read(_WAL_HEADER)
        frame = _FRAME_HEADER + int.from_bytes(header[_WAL_PAGE_SIZE])
        end = _WAL_HEADER
        while end + frame <= size:
            file.seek(end)
            if file.read(_FRAME_HEADER)[_FRAME_SALTS] != header[_WAL_SALTS]:
                break
            end += frame
        file.seek(end)
        while (at := file.tell()) < size:
            file.write(bytes(min(_PIECE, size - at)))
        os.fsync(file.fileno())


def _identity(file: str) -> tuple[int, int, int]:
    stat = os.stat(file)  # noqa: PTH116 - asked at every append, and Path.stat takes twice as long
    return stat.st_dev, stat.st_ino, stat.st_size


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('begin', 'DEFERRED')}")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
