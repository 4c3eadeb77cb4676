"""The operator log: acts on scopes, plans, keys, users, signing keys, and the ledger, with their actor and time.

It is append-only, and each entry's hash binds the hash before it, so that an entry that was changed or taken out shows.
"""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, LargeBinary, Row, func, insert, select, text, type_coerce

from gate.encoding.canonical import canonical, content_hash
from gate.errors import ServiceUnavailable
from gate.ids import timestamp
from gate.ledger.stores.store import Store, read_object
from gate.ledger.tables import Utf8, operator_log


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One thing that an operator did.

    Attributes:
        position: Its place, from 1.
        created_at: UTC timestamp.
        operator: The login name and host it was done from, or the user who did it in the workbench.
        action: For example key.disabled.
        subject: The subject of the act: a scope's name, a key's id, or a file.
        details: What else tells one such action from another. Never a secret.
        entry_hash: H of the rest and of the entry_hash before it.
    """

    position: int
    created_at: str
    operator: str
    action: str
    subject: str
    details: Mapping[str, object]
    entry_hash: str

    def to_dict(self) -> dict[str, object]:
        """The entry as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


class OperatorLog:
    """The operator log of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    @contextmanager
    def recording(self, action: str, subject: str, now: datetime) -> Iterator[dict[str, object]]:
        """Runs a block that acts outside of the ledger, together with its log entry. If the ledger cannot be written,
        the block does not run. If the block fails, nothing is logged.

        Yields:
            The entry's details, for the block to fill in.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        details: dict[str, object] = {}
        with self._store.write() as connection:
            # The lock comes before the block, so that acts are logged in the order in which they were done.
            lock(connection)
            yield details
            # A crash between the block and the commit leaves an act without its entry. An entry that is written first
            # could tell of an act that never happened.
            record(connection, action, subject, details, now)

    def latest(self, limit: int) -> list[LogEntry]:
        """The last entries, ascending."""
        with self._store.read() as connection:
            rows = connection.execute(_ENTRIES.order_by(operator_log.c.position.desc()).limit(limit)).all()
        return [_shown(row) for row in reversed(rows)]

    def find_break(self) -> int | None:
        """The position of the first entry that does not follow from what is before it; None where the log is whole.

        Entries taken from its end leave no trace here: who needs that kept sends the log elsewhere.
        """
        before, expected = None, 1
        with self._store.read() as connection:
            for row in connection.execute(_ENTRIES.order_by(operator_log.c.position)):
                try:
                    entry = _entry(row)
                except _UNREADABLE:
                    return expected
                if entry.position != expected or entry.entry_hash != _hash(entry.to_dict(), before):
                    return expected
                before, expected = entry.entry_hash, expected + 1
        return None


def record(
    connection: Connection,
    action: str,
    subject: str,
    details: Mapping[str, object],
    now: datetime,
    *,
    operator: str | None = None,
) -> None:
    """Adds an entry in the transaction that does what it says.

    Args:
        connection: The transaction.
        action: For example key.disabled.
        subject: The subject of the act.
        details: What else tells one such action from another. Never a secret.
        now: The current moment.
        operator: Who does it, where that is not the login name and host of this process; see `in_workbench`.
    """
    lock(connection)
    last = connection.execute(
        select(operator_log.c.position, operator_log.c.entry_hash).where(
            operator_log.c.position == select(func.max(operator_log.c.position)).scalar_subquery()
        )
    ).one_or_none()
    entry: dict[str, object] = {
        "position": 1 if last is None else last.position + 1,
        "created_at": timestamp(now),
        "operator": operator or _operator(),
        "action": action,
        # File names can hold bytes that are not text.
        "subject": subject.encode("utf-8", "backslashreplace").decode(),
        "details": dict(details),
    }
    entry["entry_hash"] = _hash(entry, None if last is None else last.entry_hash)
    connection.execute(insert(operator_log).values(**entry | {"details": canonical(entry["details"])}))


def in_workbench(user: str) -> str:
    """A user of the workbench, in the form in which the log states an actor. No login name and host look like that."""
    return f"{user} (workbench)"


def was_recorded(connection: Connection, action: str, subject: str, since: datetime, now: datetime) -> bool:
    """Whether an action on a subject is among the last entries, from after one moment up to another."""
    last = select(func.max(operator_log.c.position)).scalar_subquery()
    query = select(operator_log.c.position).where(
        operator_log.c.position > last - _LAST_ENTRIES,
        operator_log.c.action == action,
        operator_log.c.subject == subject,
        operator_log.c.created_at > timestamp(since),
        # A clock that was set back leaves later entries, which are of another time.
        operator_log.c.created_at <= timestamp(now),
    )
    return connection.execute(query.limit(1)).first() is not None


def lock(connection: Connection) -> None:
    """Makes the transaction the only one that adds entries."""
    if connection.dialect.name == "postgresql":
        # SQLite has one writer anyway.
        connection.execute(text("LOCK TABLE operator_log IN EXCLUSIVE MODE"))


# The log has no index but its positions, and may be long.
_LAST_ENTRIES: Final = 1000

# Text as it is stored: one damaged value must not keep the rest from being read.
_ENTRIES: Final = select(
    *(
        type_coerce(column, LargeBinary).label(column.name) if isinstance(column.type, Utf8) else column
        for column in operator_log.c
    )
)
_UNREADABLE: Final = (ServiceUnavailable, UnicodeDecodeError, TypeError)


def _hash(entry: Mapping[str, object], before: str | None) -> str:
    covered = {name: value for name, value in entry.items() if name != "entry_hash"}
    return content_hash({**covered, "previous_entry_hash": before})


def _entry(row: Row[Any]) -> LogEntry:
    details = read_object(row.details, f"operator log entry {row.position}")
    return LogEntry(
        row.position,
        row.created_at,
        bytes(row.operator).decode(),
        row.action,
        bytes(row.subject).decode(),
        details,
        row.entry_hash,
    )


def _shown(row: Row[Any]) -> LogEntry:
    try:
        return _entry(row)
    except _UNREADABLE:
        return LogEntry(row.position, row.created_at, "", row.action, "", {"unreadable": True}, row.entry_hash)


def _operator() -> str:
    user_id = os.getuid()
    try:
        name = pwd.getpwuid(user_id).pw_name
    except KeyError:
        name = f"uid {user_id}"
    return f"{name}@{socket.gethostname()}"
