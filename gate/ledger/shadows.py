"""The running shadows: migrations whose candidates decide new decisions again, and their results so far.

    for shadow in ledger.shadows.running(): ...        what the analytics process has to look at
    ledger.shadows.keep(shadow, found, now)            what it found, for `gate migrate shadow show`

They are started and stopped in the transactions of `gate.ledger.chain.changes`, where nobody changes a migration
meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import orjson
from sqlalchemy import ColumnElement, Connection, Row, select, update

from gate.ids import timestamp
from gate.ledger.packing import pack, unpack
from gate.ledger.stores.store import Store, read_object
from gate.ledger.tables import shadows


@dataclass(frozen=True, slots=True)
class Shadow:
    """A shadow that runs.

    Attributes:
        scope_id: The scope.
        migration_id: The migration.
        started_at: UTC timestamp.
        started_by: The name of the user who started it.
        from_position: The chain position at which it was started; it looks at the decisions after that.
        found: What it found last: {evidence_hash, read_at, rulebooks}, the proposal that it looked at, how far the
            chain was then, and the figures of a dry run by rulebook id. None before the first look.
        found_at: When that was found, UTC timestamp; None before the first look.
        failure: Why the last look failed, as a sentence; None where it did not.
    """

    scope_id: str
    migration_id: str
    started_at: str
    started_by: str
    from_position: int
    found: Mapping[str, Any] | None = None
    found_at: str | None = None
    failure: str | None = None

    def of_evidence(self, evidence_hash: str) -> Shadow:
        """The shadow without what it found of an earlier proposal."""
        if self.found is None or self.found["evidence_hash"] == evidence_hash:
            return self
        return replace(self, found=None, found_at=None)

    def to_dict(self) -> dict[str, Any]:
        """The shadow as a JSON object: `read_at` and `rulebooks` are null before the first look."""
        found = self.found or {"read_at": None, "rulebooks": None}
        return {
            "migration_id": self.migration_id,
            "running": True,
            "started_at": self.started_at,
            "started_by": self.started_by,
            "from_position": self.from_position,
            "looked_at": self.found_at,
            "read_at": found["read_at"],
            "rulebooks": found["rulebooks"],
            "failure": self.failure,
        }


class Shadows:
    """The shadows of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def running(self) -> list[Shadow]:
        """All shadows that run, without what they found.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            return [_shadow(row) for row in connection.execute(_RUNNING)]

    def keep(self, shadow: Shadow, found: Mapping[str, Any], now: datetime) -> None:
        """Keeps what a shadow found; nothing where it was stopped meanwhile, even if it was started again.

        Several hosts have one lake each. The results of a host with a more recent lake are not replaced by those of
        another.

        Args:
            shadow: The shadow, as it was when it looked.
            found: What it found, as `Shadow.found`.
            now: The current moment.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            kept = connection.execute(select(shadows.c.found).where(*_itself(shadow)).with_for_update()).scalar()
            before = _found(kept, shadow.migration_id)
            if before is not None and _is_later(before, found):
                return
            values = {"found": pack(orjson.dumps(dict(found))), "found_at": timestamp(now), "failure": None}
            connection.execute(update(shadows).where(*_itself(shadow)).values(**values))

    def fail(self, shadow: Shadow, failure: str) -> None:
        """Keeps why a look failed, in addition to the earlier results.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            connection.execute(update(shadows).where(*_itself(shadow)).values(failure=failure))


def read_shadows(connection: Connection, scope_id: str) -> list[Shadow]:
    """The shadows that run in a scope, with what they found.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: what one found cannot be read.
    """
    rows = connection.execute(_OF_SCOPE.where(shadows.c.scope_id == scope_id))
    return [
        replace(_shadow(row), found=_found(row.found, row.migration_id), found_at=row.found_at, failure=row.failure)
        for row in rows
    ]


def _itself(shadow: Shadow) -> list[ColumnElement[bool]]:
    """Its row, and not that of one that was started after it."""
    return [
        shadows.c[name] == getattr(shadow, name) for name in ("scope_id", "migration_id", "started_at", "from_position")
    ]


def _is_later(found: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether something was found of the same proposal further on in the chain."""
    position, at = (of["read_at"]["chain_position"] for of in (found, other))
    return bool(found["evidence_hash"] == other["evidence_hash"] and position > at)


def _shadow(row: Row[Any]) -> Shadow:
    return Shadow(row.scope_id, row.migration_id, row.started_at, row.started_by, row.from_position)


def _found(stored: bytes | None, migration_id: str) -> Mapping[str, Any] | None:
    return None if stored is None else read_object(unpack(stored), f"what the shadow of {migration_id} found")


_OF_SCOPE: Final = select(shadows).order_by(shadows.c.migration_id)
# What they found may be large, and a new look does not need it.
_ITSELF: Final = ("scope_id", "migration_id", "started_at", "started_by", "from_position")
_RUNNING: Final = select(*(shadows.c[name] for name in _ITSELF)).order_by(shadows.c.scope_id, shadows.c.migration_id)
