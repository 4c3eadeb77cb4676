"""Backups of an instance. A backup is one file, made while the instance runs, from which the instance can be restored.

The file is one SQLite database. It contains the ledger's tables as of one moment, and the files of imported histories
in the table `history_files`. The settings and keys of the instance are in `instance_files`. It contains private keys,
so its mode is 0600. Keep it as safe as the keys.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from gate.errors import OperatorError, ServiceUnavailable
from gate.instance.histories import TABLE, add_histories, restore_histories
from gate.instance.instance import Instance, open_instance
from gate.instance.keys import read_hmac_secret, write_private
from gate.instance.pilots import PILOT_FILE
from gate.instance.settings import FILE_NAME, LOG_NAME, load_settings
from gate.instance.webhooks import KEY_FILE
from gate.ledger import open_ledger, open_store, schema
from gate.ledger.stores.copies import copy_pages, copy_rows, copy_to_file, is_empty
from gate.ledger.stores.store import Store
from gate.proof.signing import HMAC_SHA256

_KEPT: Final = (FILE_NAME, "keys/*.json", "keys/*.pem", PILOT_FILE, KEY_FILE, LOG_NAME)


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds.

    Attributes:
        file: Where it is.
        size: Its bytes.
        entries: How many chain entries it has.
        missing: A file that the instance needs and that is not in it: an HMAC secret, which is kept elsewhere.
        logged: Whether the operator log has it; not where nothing can be written to the ledger, and a backup from a
            full disk must not fail for that.
    """

    file: Path
    size: int
    entries: int
    missing: Path | None
    logged: bool


def make_backup(instance: Instance, file: Path, now: datetime) -> Backup:
    """Writes a backup of an instance; complete and on disk when it returns, and otherwise not there at all.

    Raises:
        OperatorError: `BACKUP_EXISTS` or `BACKUP_UNWRITABLE`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the ledger cannot be read.
    """
    if file.exists():
        raise OperatorError("BACKUP_EXISTS", f"{file} already exists. Choose another file name.")
    if not file.parent.is_dir():
        raise OperatorError(
            "BACKUP_UNWRITABLE",
            f"The backup {file} cannot be written: the directory {file.parent} does not exist. Create it first.",
        )
    try:
        with _scratch(file) as scratch:
            # The ledger before the keys: a key is on disk before it signs, so no record here lacks its key.
            copy_to_file(instance.ledger.store, scratch)
            entries = _add_files(scratch, instance.settings.home, instance.settings.lake_directory)
            _seal(scratch)
            size = scratch.stat().st_size
            _sync(scratch)
            # A link fails where a file came in between, and a rename would replace it.
            file.hardlink_to(scratch)
            _sync(file.parent)
    except (OSError, sqlite3.Error) as error:
        raise OperatorError("BACKUP_UNWRITABLE", f"The backup {file} cannot be written: {_reason(error)}.") from error
    logged = False
    with suppress(ServiceUnavailable):
        with instance.ledger.operator_log.recording("instance.backed_up", str(file.absolute()), now) as details:
            details["entries"] = entries
        logged = True
    return Backup(file, size, entries, instance.settings.receipt_hmac_secret_file, logged)


def restore_backup(file: Path, home: Path, database_url: str | None, now: datetime) -> None:
    """Lays an instance out from a backup, where there is none.

    Args:
        file: The backup.
        home: The directory of the new instance.
        database_url: The location of its ledger, if it is not `ledger.db` in the directory: the path of a new SQLite
            file, or an empty PostgreSQL database.
        now: The current moment.

    Raises:
        OperatorError: `BACKUP_UNREADABLE`, `INSTANCE_EXISTS`, `LEDGER_EXISTS`, `INSTANCE_UNWRITABLE`,
            `HMAC_SECRET_UNUSABLE` where the instance signs with a secret that is not there, or what `open_ledger`
            raises.
        ServiceUnavailable: `SVC_CHECKPOINT_UNAVAILABLE`: the instance is restored, and the log of its checkpoints
            cannot be written; `gate chain epoch` does that later.
    """
    if (home / FILE_NAME).exists():
        raise OperatorError(
            "INSTANCE_EXISTS", f"The directory {home} already holds an instance. Choose an empty directory."
        )
    files = _files_in(file)
    ledger_url = _ledger_url(files[FILE_NAME], home, database_url)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "keys").mkdir(mode=0o700, exist_ok=True)
        # The ledger comes last but for the settings, which mark an instance as complete and only have to be renamed:
        # what breaks off before can be done again.
        ready = home / f".{FILE_NAME}.restored"
        for name, content in files.items():
            # A log that is there already saw more than the one in the backup.
            if name != LOG_NAME or not (home / name).exists():
                write_private(ready if name == FILE_NAME else home / name, content)
        restore_histories(file, _lake(files[FILE_NAME], home))
        with _scratch(home / "restored.db") as scratch:
            copy_pages(file, scratch)
            _drop_files(scratch)
            _place(scratch, ledger_url)
        ready.replace(home / FILE_NAME)
        _sync(home)
    except (OSError, sqlite3.Error) as error:
        raise OperatorError(
            "INSTANCE_UNWRITABLE", f"The instance cannot be restored into {home}: {_reason(error)}."
        ) from error
    with closing(open_instance(load_settings(home, database_url=database_url))) as instance:
        with instance.ledger.operator_log.recording("instance.restored", str(file.absolute()), now):
            pass
        if instance.signers().receipt is not None:
            # The lost ledger may have gone on after the backup, and so may this host's kept checkpoints of it.
            instance.checkpoints.begin_epoch(_restored_from(file), now)


def _restored_from(file: Path) -> str:
    """The reason of the epoch that a restore begins: it names the backup by its name and its digest."""
    with file.open("rb") as opened:
        opened.seek(-64, os.SEEK_END)
        digest = opened.read().decode()
    name = file.name.encode("utf-8", "backslashreplace").decode()
    return f"Restored from the backup {name[:300]} with SHA-256 {digest}."


def _reason(error: OSError | sqlite3.Error) -> str:
    # An OSError's own text names the temporary file.
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _lake(file: bytes, home: Path) -> Path:
    """Where the restored instance will look for its lake."""
    with TemporaryDirectory() as directory:
        Path(directory, FILE_NAME).write_bytes(file)
        settings = load_settings(Path(directory))
        lake = settings.lake_directory
    # A path that the settings do not begin at the root is the home's own.
    return home / lake.relative_to(directory) if lake.is_relative_to(directory) else lake


def _ledger_url(file: bytes, home: Path, database_url: str | None) -> str:
    """Where the restored instance will look for its ledger: as its own settings say, unless the operator says so."""
    with TemporaryDirectory() as directory:
        Path(directory, FILE_NAME).write_bytes(file)
        settings = load_settings(Path(directory), database_url=database_url)
    if settings.receipt_signing == HMAC_SHA256:
        read_hmac_secret(settings.receipt_hmac_secret_file)
    return settings.database_url or f"sqlite:///{home.absolute() / 'ledger.db'}"


def _place(scratch: Path, ledger_url: str) -> None:
    """Puts a ledger in a SQLite file where a URL names, its tables brought up to this release's."""
    source = open_ledger(f"sqlite:///{scratch}", upgrade=True)
    try:
        target = _new_store(ledger_url)
        try:
            if schema.revision(target) is None:
                schema.upgrade(target)
            copy_rows(source.store, target)
        finally:
            target.close()
    finally:
        source.close()


def _new_store(ledger_url: str) -> Store:
    target = open_store(ledger_url, create=True)
    if schema.revision(target) is not None and not is_empty(target):
        target.close()
        raise OperatorError(
            "LEDGER_EXISTS",
            f"{target.location}, set by the backup's settings or by --database-url, already holds a ledger. Give "
            "an empty database with --database-url.",
        )
    return target


def _add_files(scratch: Path, home: Path, lake: Path) -> int:
    """Adds the instance's files to the copied ledger; how many chain entries it has."""
    with closing(sqlite3.connect(scratch)) as connection:
        # A backup is one file: no part of it may stay in a WAL.
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("CREATE TABLE instance_files (name TEXT PRIMARY KEY, content BLOB NOT NULL)")
        for pattern in _KEPT:
            for found in sorted(home.glob(pattern)):
                row = (str(found.relative_to(home)), found.read_bytes())
                connection.execute("INSERT INTO instance_files VALUES (?, ?)", row)
        add_histories(connection, lake)
        connection.commit()
        entries: int = connection.execute("SELECT count(*) FROM entries").fetchone()[0]
        return entries


def _files_in(file: Path) -> dict[str, bytes]:
    if not file.is_file():
        raise OperatorError(
            "BACKUP_UNREADABLE", f"There is no backup file {file}. Give a file that `gate backup` wrote."
        )
    if not _holds(file):
        raise OperatorError(
            "BACKUP_UNREADABLE", f"{file} is damaged, or was not written by `gate backup`. Use another backup."
        )
    try:
        with closing(sqlite3.connect(file)) as connection:
            damage = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
            files = dict(connection.execute("SELECT name, content FROM instance_files"))
    except sqlite3.Error as error:
        raise OperatorError("BACKUP_UNREADABLE", f"{file} cannot be read as a backup: {error}.") from error
    expected = FILE_NAME in files and all(
        name in (FILE_NAME, LOG_NAME, PILOT_FILE, KEY_FILE)
        or (Path(name).parent == Path("keys") and Path(name).suffix in (".json", ".pem"))
        for name in files
    )
    if damage != ["ok"] or not expected:
        raise OperatorError(
            "BACKUP_UNREADABLE", f"{file} is damaged, or was not written by `gate backup`. Use another backup."
        )
    return files


_SEAL: Final = b"gate backup sha256 "


def _digest(file: Path, size: int) -> bytes:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(min(size, 1 << 20)):
            digest.update(piece)
            size -= len(piece)
    return digest.hexdigest().encode()


def _seal(file: Path) -> None:
    """Appends the digest of what the file holds. SQLite does not read beyond its last page."""
    digest = _digest(file, file.stat().st_size)
    with file.open("ab") as opened:
        opened.write(_SEAL + digest)


def _holds(file: Path) -> bool:
    size = file.stat().st_size - len(_SEAL) - 64
    if size < 0:
        return False
    with file.open("rb") as opened:
        opened.seek(size)
        return opened.read() == _SEAL + _digest(file, size)


def _drop_files(scratch: Path) -> None:
    with closing(sqlite3.connect(scratch)) as connection:
        # The pages that held the private keys are overwritten, not merely freed.
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("DROP TABLE instance_files")
        connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
        connection.commit()


@contextmanager
def _scratch(beside: Path) -> Iterator[Path]:
    """An empty private file in the same directory, removed with the extra files of SQLite."""
    scratch = beside.with_name(f".{beside.name}.{secrets.token_hex(4)}")
    os.close(os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield scratch
    finally:
        for suffix in ("", "-wal", "-shm", "-journal", ".lock"):
            scratch.with_name(scratch.name + suffix).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
