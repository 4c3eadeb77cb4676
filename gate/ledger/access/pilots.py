"""Those who ask for a pilot, as they wrote it: outside of every scope and chain, until an operator erases them.

Nothing here is exported to the lake or logged, and the operator log names a submission by its id alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select, text, update

from gate.errors import OperatorError
from gate.ids import timestamp
from gate.ledger.access.operator_log import record
from gate.ledger.stores.store import Store, unheard_of
from gate.ledger.tables import pilots


@dataclass(frozen=True, slots=True)
class Pilot:
    """A submission. Dates are UTC timestamps.

    Attributes:
        pilot_id: Opaque; sorts by time.
        name: The person's name.
        email: The person's e-mail address.
        company: The company's name.
        use: The planned use of the service.
        submitted_at: When it came.
        confirmed_at: When it was confirmed; None where it was not.
    """

    pilot_id: str
    name: str
    email: str
    company: str
    use: str
    submitted_at: str
    confirmed_at: str | None = None


class Pilots:
    """The submissions of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def add(self, pilot: Pilot, *, kept_since: datetime, most: int) -> bool:
        """Adds a submission, where there is room for it.

        Args:
            pilot: The submission.
            kept_since: Submissions before this moment that were not confirmed are removed.
            most: How many submissions may wait to be confirmed.

        Returns:
            Whether it was added.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        oldest = timestamp(kept_since)
        with self._store.read() as connection:
            # A flood that meets a full table takes no turn from those who write decisions.
            if _waiting(connection, oldest) >= most:
                return False
        with self._store.write() as connection:
            if connection.dialect.name == "postgresql":
                # SQLite has one writer anyway.
                connection.execute(text("LOCK TABLE pilots IN SHARE ROW EXCLUSIVE MODE"))
            connection.execute(delete(pilots).where(pilots.c.confirmed_at.is_(None), pilots.c.submitted_at < oldest))
            if _waiting(connection, oldest) >= most:
                return False
            connection.execute(insert(pilots).values({name: getattr(pilot, name) for name in Pilot.__slots__}))
        return True

    def find(self, pilot_id: str) -> Pilot | None:
        """The submission of that id, or None.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        asked = "" if unheard_of(pilot_id) else pilot_id
        with self._store.read() as connection:
            row = connection.execute(select(pilots).where(pilots.c.pilot_id == asked)).one_or_none()
        return None if row is None else _pilot(row)

    def confirm(self, pilot_id: str, now: datetime) -> bool:
        """Notes that a submission was confirmed; False where it is not there any more.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        confirmed = update(pilots).where(pilots.c.pilot_id == pilot_id)
        with self._store.write() as connection:
            at = func.coalesce(pilots.c.confirmed_at, timestamp(now))
            return connection.execute(confirmed.values(confirmed_at=at)).rowcount == 1

    def pages(self) -> Iterator[list[Pilot]]:
        """All submissions, oldest first, some at a time; one page at least.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        after = ""
        while True:
            query = select(pilots).where(pilots.c.pilot_id > after).order_by(pilots.c.pilot_id).limit(_PAGE)
            with self._store.read() as connection:
                page = [_pilot(row) for row in connection.execute(query)]
            yield page
            if len(page) < _PAGE:
                return
            after = page[-1].pilot_id

    def erase(self, pilot_ids: Collection[str], now: datetime) -> None:
        """Removes submissions, all or none, and overwrites the copies that the database's own files have.

        Raises:
            OperatorError: `PILOT_UNKNOWN`; or `ERASURE_UNFINISHED`, where they are removed and a copy is left.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            for pilot_id in dict.fromkeys(pilot_ids):
                gone = None if unheard_of(pilot_id) else delete(pilots).where(pilots.c.pilot_id == pilot_id)
                if gone is None or connection.execute(gone).rowcount == 0:
                    raise OperatorError(
                        "PILOT_UNKNOWN",
                        f"There is no submission {pilot_id}, so nothing was erased. `gate pilot list` shows all "
                        "submissions.",
                    )
                record(connection, "pilot.erased", pilot_id, {}, now)
        if not self._store.overwrite():
            raise OperatorError(
                "ERASURE_UNFINISHED",
                "The submissions are erased, but the write-ahead log of the ledger still holds a copy, because "
                "another process is reading it. The next erasure after running backups and checks have ended "
                "overwrites that copy.",
            )


_PAGE: Final = 200


def _waiting(connection: Connection, oldest: str) -> int:
    """How many submissions wait to be confirmed, of those that are kept."""
    waiting = pilots.c.confirmed_at.is_(None) & (pilots.c.submitted_at >= oldest)
    return int(connection.scalar(select(func.count()).select_from(pilots).where(waiting)) or 0)


def _pilot(row: Row[Any]) -> Pilot:
    return Pilot(**row._mapping)
