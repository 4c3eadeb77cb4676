"""The file: how it is made, who may read it, what it is refused for, and that a refusal leaves it as it was."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import create_engine

from gate.client.store import Intent, SqliteStore, State, sqlite, statements
from gate.client.store.intents import StoreUnavailable
from gate.client.store.sqlalchemy import SqlAlchemyStore
from tests.gate.client.store.support import AT, BY, attempt, finished, latest, permitted

ROOT: Final = Path(__file__).parents[4]
NOBODY: Final = 65534


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the store is to be."""
    return tmp_path / "intents.db"


@pytest.fixture
def store(file: Path) -> Iterator[SqliteStore]:
    """A store there, which nothing was done with."""
    with SqliteStore(file) as store:
        yield store


def changed(file: Path, *statements: str) -> None:
    """Changes a database by the way, as an operator or another program may."""
    connection = sqlite3.connect(file, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def connection_of(store: SqliteStore) -> sqlite3.Connection:
    assert store._opened is not None
    return store._opened.connection


class TestFile:
    def test_nothing_is_made_before_it_is_used(self, store: SqliteStore, tmp_path: Path) -> None:
        assert list(tmp_path.iterdir()) == []
        assert store.find("refund-1") is None
        assert sorted(found.name for found in tmp_path.iterdir()) == [
            f"intents.db{suffix}" for suffix in ("", "-shm", "-wal", ".lock")
        ]

    def test_files_and_new_folders_are_their_owners_alone(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            with SqliteStore(tmp_path / "new" / "folders" / "intents.db") as store:
                store.hold(attempt())
                found = {
                    path.relative_to(tmp_path).as_posix(): oct(stat.S_IMODE(path.stat().st_mode))
                    for path in tmp_path.rglob("*")
                }
        finally:
            os.umask(before)
        assert found == {
            "new": "0o700",
            "new/folders": "0o700",
            **{f"new/folders/intents.db{suffix}": "0o600" for suffix in ("", "-shm", "-wal", ".lock")},
        }

    def test_every_commit_has_reached_the_disk(self, store: SqliteStore) -> None:
        store.hold(attempt())
        found = {
            name: connection_of(store).execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "secure_delete")
        }
        assert found == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}

    def test_a_closed_store_is_opened_again_when_it_is_used(self, store: SqliteStore, file: Path) -> None:
        store.close()
        store.hold(attempt())
        identity = store.identity
        store.close()
        store.close()
        assert not file.with_name("intents.db-wal").exists()
        assert latest(store, "refund-1") == attempt()
        assert store.identity == identity

    def test_one_file_by_several_names_is_one_store(self, store: SqliteStore, file: Path, tmp_path: Path) -> None:
        store.hold(attempt())
        (tmp_path / "link").symlink_to(file)
        before = Path.cwd()
        os.chdir(tmp_path)
        try:
            for name in ("link", "./intents.db", tmp_path / "link"):
                with SqliteStore(name) as other:
                    assert other.identity == store.identity
                    assert not other.hold(attempt())
        finally:
            os.chdir(before)
        assert not (tmp_path / "link.lock").exists()

    @pytest.mark.parametrize("name", [":memory:", "a?mode=ro", "a#b", "100%.db", "é ü.db"])
    def test_any_name_is_a_files_name(self, name: str, tmp_path: Path) -> None:
        with SqliteStore(tmp_path / name) as store:
            store.hold(attempt())
        assert (tmp_path / name).stat().st_size > 0
        with SqliteStore(tmp_path / name) as store:
            assert store.find("refund-1") == attempt()

    def test_a_file_that_its_maker_did_not_live_to_fill_is_filled(self, store: SqliteStore, file: Path) -> None:
        file.touch()
        assert store.hold(attempt())

    def test_the_tables_are_those_of_a_callers_database(self, store: SqliteStore, file: Path, tmp_path: Path) -> None:
        engine = create_engine(f"sqlite:///{tmp_path}/caller.db")
        SqlAlchemyStore(engine).create_tables()
        engine.dispose()
        assert store.identity
        assert columns(file) == columns(tmp_path / "caller.db")

    def test_what_is_asked_often_is_found_by_index(self, store: SqliteStore) -> None:
        finished(store)
        texts = {name: text for name, text in vars(statements).items() if isinstance(text, str) and "WHERE" in text}
        values: dict[str, Any] = dict.fromkeys(
            (
                "intent_id",
                "attempt",
                "now",
                "at",
                "was",
                "state",
                "answered",
                "told",
                "was_told",
                "limit",
                "by",
                "report_id",
                "refused",
            ),
            "x",
        )
        transitions = ("_SUPERSEDE_UNTOLD", "_SUPERSEDE_TOLD", "_ANSWER", "_START", "_UNSTART", "_FINISH", "_REPORTED")
        for name in ("_ATTEMPTS", *transitions, "_DELIVERED"):
            plan = connection_of(store).execute(f"EXPLAIN QUERY PLAN {texts[name]}", values).fetchall()
            assert all(step.startswith("SEARCH") for *_, step in plan), (name, plan)
        plan = connection_of(store).execute(f"EXPLAIN QUERY PLAN {texts['_UNDELIVERED']}", {"limit": 1}).fetchall()
        assert [step for *_, step in plan] == ["SCAN gate_reports"]


def columns(file: Path) -> dict[str, Any]:
    """What a database says of its tables: their columns, keys and indexes."""
    connection = sqlite3.connect(file)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
    found = {}
    for table in tables:
        rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
        # VARCHAR(20) is TEXT to SQLite.
        found[table] = [
            (name, "TEXT" if kind.startswith("VARCHAR") else kind, required, default, key)
            for _, name, kind, required, default, key in rows
        ]
        for _, index, unique, origin, partial in connection.execute(f"PRAGMA index_list({table})").fetchall():
            found[index] = [unique, origin, partial, *connection.execute(f"PRAGMA index_info({index})").fetchall()]
    connection.close()
    return found


def newer(file: Path) -> None:
    with SqliteStore(file) as store:
        store.hold(attempt())
    changed(file, "PRAGMA user_version = 3")


def nameless(file: Path) -> None:
    newer(file)
    changed(file, "PRAGMA user_version = 2", "DELETE FROM gate_store")


def cut(file: Path) -> None:
    with SqliteStore(file) as store:
        store.hold(attempt())
    os.truncate(file, 5000)


def scribbled(file: Path) -> None:
    with SqliteStore(file) as store:
        permitted(store)
    content = bytearray(file.read_bytes())
    content[4096:] = bytes([0x5A]) * (len(content) - 4096)
    file.write_bytes(content)


UNUSABLE: Final[list[tuple[str, Callable[[Path], object], str, str]]] = [
    ("a newer release's", newer, "INTENTS_VERSION", "has version 3"),
    (
        "another program's",
        lambda file: changed(file, "CREATE TABLE t (x)"),
        "INTENTS_UNAVAILABLE",
        "another application",
    ),
    (
        "marked by another",
        lambda file: changed(file, "PRAGMA user_version=1"),
        "INTENTS_UNAVAILABLE",
        "another application",
    ),
    ("no database", lambda file: file.write_text("{}" * 500), "INTENTS_UNAVAILABLE", "not a database"),
    ("a folder", lambda file: file.mkdir(), "INTENTS_UNAVAILABLE", "not a database"),
    ("cut", cut, "INTENTS_UNAVAILABLE", "malformed|disk I/O"),
    ("scribbled over", scribbled, "INTENTS_UNAVAILABLE", "malformed"),
    ("without an identity", nameless, "INTENTS_UNAVAILABLE", "lost its identity"),
]


def of_another_in_wal(file: Path) -> None:
    changed(file, "PRAGMA journal_mode=WAL", "CREATE TABLE t (x)")


NO_STORES: Final[list[tuple[str, Callable[[Path], object], str]]] = [
    ("a folder", lambda file: file.mkdir(), "it is not a database"),
    ("a pipe", os.mkfifo, "it is not a database"),
    ("a letter", lambda file: file.write_text("x"), "it is not a database"),
    ("a text", lambda file: file.write_text("# How to use it\n" * 100), "it is not a database"),
    ("a header", lambda file: file.write_bytes(b"SQLite format 3\0" + bytes(1000)), "it is not a database"),
    ("another program's", lambda file: changed(file, "CREATE TABLE t (x)"), "it belongs to another application"),
    ("another program's, in WAL", of_another_in_wal, "it belongs to another application"),
]


class TestRefusals:
    @pytest.mark.parametrize(("make", "why"), [case[1:] for case in NO_STORES], ids=[it[0] for it in NO_STORES])
    def test_what_can_be_no_store_is_refused_and_nothing_is_left_beside_it(
        self, make: Callable[[Path], object], why: str, file: Path, tmp_path: Path
    ) -> None:
        make(file)
        before = file.read_bytes() if file.is_file() else None
        with SqliteStore(file) as store, pytest.raises(StoreUnavailable) as refusal:
            store.find("refund-1")
        assert refusal.value.code == "INTENTS_UNAVAILABLE"
        assert refusal.value.message == (
            f"The guard's store {file} cannot be used now ({why}). Give the guard a file of its own."
        )
        assert list(tmp_path.iterdir()) == [file]
        assert (file.read_bytes() if file.is_file() else None) == before

    def test_a_file_that_is_not_to_be_read_is_refused_and_nothing_is_left_beside_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder, SqliteStore(Path(folder, "secret")) as store:
            Path(folder, "secret").write_text("x" * 1000)
            Path(folder, "secret").chmod(0)
            Path(folder).chmod(0o777)
            with without_privileges(), pytest.raises(StoreUnavailable, match="Permission denied"):
                store.find("refund-1")
            assert [found.name for found in Path(folder).iterdir()] == ["secret"]

    def test_a_broken_database_of_another_is_refused_and_nothing_is_left_beside_it(
        self, store: SqliteStore, file: Path
    ) -> None:
        changed(file, "CREATE TABLE t (x)")
        content = bytearray(file.read_bytes())
        content[100:108] = b"\xff" * 8
        file.write_bytes(content)
        with pytest.raises(StoreUnavailable, match="malformed"):
            store.find("refund-1")
        assert list(file.parent.iterdir()) == [file]

    def test_a_store_that_is_just_being_made_is_not_taken_for_somebody_elses(self, file: Path) -> None:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("PRAGMA journal_mode=WAL")
        with SqliteStore(file) as store:
            assert store.hold(attempt())
        other.close()

    def test_a_store_whose_wal_is_just_being_moved_into_it_is_not_taken_for_a_broken_one(
        self, store: SqliteStore, file: Path
    ) -> None:
        store.hold(attempt())
        wal = Path(f"{file}-wal").read_bytes()
        store.close()
        first_page = file.read_bytes()[:4096]
        Path(f"{file}-wal").write_bytes(wal)
        file.write_bytes(first_page)
        assert sqlite.found_at(file) is sqlite.Found.STORE
        assert latest(store, "refund-1") == attempt()

    def test_to_look_at_an_open_file_ends_none_of_its_locks(self, store: SqliteStore, file: Path) -> None:
        store.hold(attempt())
        assert sqlite.found_at(file) is sqlite.Found.STORE
        with SqliteStore(file) as other:
            assert latest(other, "refund-1") == attempt()
        # Who finds no lock does this, and takes the WAL away from under the store.
        code = f"import sqlite3; sqlite3.connect({str(file)!r}, timeout=0).execute('PRAGMA journal_mode=DELETE')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "database is locked" in done.stderr
        assert store.hold(attempt("refund-2"))

    @pytest.mark.parametrize(("make", "code", "says"), [case[1:] for case in UNUSABLE], ids=[it[0] for it in UNUSABLE])
    def test_a_file_that_is_no_store_of_this_release_is_refused_and_left_alone(
        self, make: Callable[[Path], object], code: str, says: str, file: Path
    ) -> None:
        make(file)
        before = file.read_bytes() if file.is_file() else None
        for _ in range(2):
            with SqliteStore(file) as store, pytest.raises(StoreUnavailable, match=says) as refusal:
                store.hold(attempt())
            assert refusal.value.code == code
            assert str(file) in refusal.value.message
        assert (file.read_bytes() if file.is_file() else None) == before

    @pytest.mark.parametrize("place", ["file/intents.db", "file/below/intents.db", "/proc/nowhere/intents.db"])
    def test_a_place_where_no_file_can_be_is_refused(self, place: str, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        store = SqliteStore(tmp_path / place)
        for call in (lambda: store.hold(attempt()), lambda: store.find("refund-1"), lambda: store.identity):
            with pytest.raises(StoreUnavailable) as refusal:
                call()
            assert isinstance(refusal.value.__cause__, OSError)

    @pytest.mark.parametrize("mode", [0o555, 0o755])
    def test_a_file_of_another_user_is_refused(self, mode: int) -> None:
        with tempfile.TemporaryDirectory() as folder, SqliteStore(Path(folder) / "intents.db") as store:
            store.hold(attempt())
            store.close()
            Path(folder, "intents.db").chmod(0o444)
            Path(folder, "intents.db.lock").chmod(0o444)
            Path(folder).chmod(mode)
            with without_privileges(), pytest.raises(StoreUnavailable, match="Permission denied"):
                store.hold(attempt("refund-2"))
            Path(folder).chmod(0o755)

    def test_a_full_disk_refuses_what_does_not_fit_and_keeps_the_rest(self, store: SqliteStore) -> None:
        intent = permitted(store)
        with at_most(256 * 1024):
            with pytest.raises(StoreUnavailable, match="disk"):
                store.hold(sized(attempt("large"), 2 * 1024 * 1024))
            assert latest(store, "refund-1") == intent
            assert store.find("large") is None
            assert store.start(intent, AT, BY)
        assert store.hold(sized(attempt("large"), 2 * 1024 * 1024))

    def test_who_waits_in_vain_is_told_so(
        self, store: SqliteStore, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite, "PATIENCE", 0.05)
        intent = permitted(store)
        lock = os.open(f"{file}.lock", os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreUnavailable, match="another process has locked it"):
            store.start(intent, AT, BY)
        # Reading goes on.
        assert latest(store, "refund-1") == intent
        os.close(lock)
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked") as refusal:
            store.start(intent, AT, BY)
        assert isinstance(refusal.value.__cause__, sqlite3.OperationalError)
        other.execute("ROLLBACK")
        other.close()
        with store._turn, pytest.raises(StoreUnavailable, match="other threads are using it"):
            store.start(intent, AT, BY)
        assert store.start(intent, AT, BY)

    @pytest.mark.parametrize("suffix", ["", "-wal", ".lock"])
    def test_nothing_is_written_to_a_file_that_is_no_longer_in_its_place(
        self, suffix: str, store: SqliteStore, file: Path
    ) -> None:
        intent = permitted(store)
        taken, kept = Path(f"{file}{suffix}"), file.with_name("kept")
        taken.rename(kept)
        with pytest.raises(StoreUnavailable, match="removed or replaced") as refusal:
            store.start(intent, AT, BY)
        assert "Restore the same file, never an older copy" in refusal.value.message
        taken.touch()
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            store.start(intent, AT, BY)
        kept.replace(taken)
        assert store.start(intent, AT, BY)

    def test_an_interrupted_write_is_undone_and_holds_nobody(self, store: SqliteStore, file: Path) -> None:
        intent = permitted(store)

        def interrupt(*_: object) -> int:
            raise KeyboardInterrupt

        connection_of(store).set_progress_handler(interrupt, 1)
        with pytest.raises((KeyboardInterrupt, StoreUnavailable)):
            store.start(intent, AT, BY)
        connection_of(store).set_progress_handler(None, 1)
        with SqliteStore(file) as other:
            assert latest(other, "refund-1") == intent
            assert other.start(intent, AT, BY)


def sized(intent: Intent, size: int) -> Intent:
    """An attempt whose request is so many bytes long."""
    return replace(intent, asked=b"x" * size)


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Files of this process can become so many bytes long."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@contextmanager
def without_privileges() -> Iterator[None]:
    """This process is a user who may do what everybody may."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


class TestBaseInstall:
    def test_the_file_needs_no_sqlalchemy_and_the_other_store_says_what_it_needs(self) -> None:
        code = (
            "import sys, gate.client.store\n"
            "assert 'sqlalchemy' not in sys.modules\n"
            "sys.modules['sqlalchemy'] = None\n"
            "import gate.client.store.sqlalchemy\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.stderr.splitlines()[-1] == (
            "ImportError: gate.client.store.sqlalchemy needs SQLAlchemy 2, which is not installed: pip install "
            "'.[sqlalchemy]'. SqliteStore needs no extra package."
        )


def test_a_fork_beside_threads_that_hold_the_store_for_long_is_not_waited_for_for_ever(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PATIENCE", 0.05)
    store.hold(attempt())
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store._turn:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    sqlite._before_fork()
    sqlite._after_fork()
    done.set()
    thread.join()
    assert latest(store, "refund-1").state is State.HELD
