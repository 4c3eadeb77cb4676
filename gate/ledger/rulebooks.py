"""The rulebook registry: (scope, rulebook_id, version) is bound for good to one hash and evaluator.

A registration has its own transaction, which commits before any record cites it. The first writer wins, and every
record cites the stored registration. The annotations of a registration are comments: no hash covers them, and the
operator may replace them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from threading import Lock
from typing import Any, Final

from cachetools import LRUCache
from sqlalchemy import Connection, Row, bindparam, delete, insert, select

from gate.encoding.canonical import canonical, compact, content_hash
from gate.errors import RulebookRefused
from gate.ids import timestamp
from gate.ledger.access.operator_log import record
from gate.ledger.chain.writer import CapReached
from gate.ledger.stores.store import Store, insert_absent, read_object, unavailable, unheard_of
from gate.ledger.tables import chain_heads, rulebook_annotations, rulebooks, usage
from gate.records.attestation import registration_hash
from gate.records.documents import Registration
from gate.rulebooks.documents import Annotations
from gate.rulebooks.rulebook import Rulebook

_CACHED: Final = 4096


@dataclass(frozen=True)
class Registered:
    """A registration as stored.

    Attributes:
        rulebook_id: The rulebook's id.
        version: Its version.
        hash: Its hash.
        metadata: The registration's metadata with registry_attestation, as records cite it.
    """

    rulebook_id: str
    version: str
    hash: str
    metadata: Registration

    @cached_property
    def compacted(self) -> Mapping[str, object]:
        """What records cite of it, as `envelope.envelope` takes it: the same for all of them, and so made once."""
        return {"rulebook_registry": compact(self.metadata)}


@dataclass(frozen=True, slots=True)
class Listed:
    """A registration in a list.

    Attributes:
        rulebook_id: The rulebook's id.
        version: Its version.
        hash: Its hash.
        registered_at: When it was registered.
    """

    rulebook_id: str
    version: str
    hash: str
    registered_at: str


@dataclass(frozen=True, slots=True)
class OperatorAct:
    """A change that an operator makes, for the operator log.

    Attributes:
        scope: The name of the scope.
        now: The current moment.
    """

    scope: str
    now: datetime

    def log(self, connection: Connection, action: str, rulebook: Rulebook, **details: str) -> None:
        """Logs an act on a rulebook in the transaction that does it."""
        reference = {"rulebook_id": rulebook.rulebook_id, "version": rulebook.version, "hash": rulebook.hash}
        record(connection, f"rulebook.{action}", self.scope, {**reference, **details}, self.now)


class RulebookRegistry:
    """The registered rulebooks of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store
        # Registrations never change: once seen, one needs no second look.
        self._by_hash: LRUCache[tuple[str, str], Registered] = LRUCache(_CACHED)
        self._by_version: LRUCache[tuple[str, str, str], Registered] = LRUCache(_CACHED)
        self._lock = Lock()

    def find(self, scope_id: str, hash_: str) -> Registered | None:
        """The registration of a rulebook by its hash."""
        if unheard_of(hash_):
            return None
        with self._lock:
            known = self._by_hash.get((scope_id, hash_))
        if known is not None:
            return known
        with self._store.read() as connection:
            row = connection.execute(_BY_HASH, {"scope": scope_id, "hash": hash_}).one_or_none()
        return None if row is None else self._remember(scope_id, row)

    def find_version(self, scope_id: str, rulebook_id: str, version: str) -> Registered | None:
        """The registration of a rulebook by its id and version."""
        if unheard_of(rulebook_id):
            return None
        with self._lock:
            known = self._by_version.get((scope_id, rulebook_id, version))
        if known is not None:
            return known
        with self._store.read() as connection:
            row = _by_version(connection, scope_id, rulebook_id, version)
        return None if row is None else self._remember(scope_id, row)

    def latest(self, scope_id: str, rulebook_id: str) -> Registered | None:
        """The version of a rulebook that was registered last; of several at one moment, the last by code points."""
        if unheard_of(rulebook_id):
            return None
        with self._store.read() as connection:
            row = connection.execute(_LATEST, {"scope": scope_id, "rulebook": rulebook_id}).one_or_none()
        return None if row is None else self._remember(scope_id, row)

    def versions(self, scope_id: str, rulebook_id: str, *, limit: int) -> list[str]:
        """The registered versions of a rulebook, those registered last first, at most `limit`."""
        if unheard_of(rulebook_id):
            return []
        with self._store.read() as connection:
            values = {"scope": scope_id, "rulebook": rulebook_id, "limit": limit}
            return list(connection.execute(_VERSIONS, values).scalars())

    def listed(self, scope_id: str, *, limit: int) -> list[Listed]:
        """The registrations of a scope, at most `limit`, by rulebook id; of each, those registered last first."""
        with self._store.read() as connection:
            rows = connection.execute(_LISTED, {"scope": scope_id, "limit": limit})
            return [Listed(row.rulebook_id, row.version, row.hash, row.registered_at) for row in rows]

    def annotations(self, scope_id: str, hash_: str) -> Annotations:
        """The annotations of a registered rulebook; {} where it has none."""
        with self._store.read() as connection:
            stored = connection.execute(_ANNOTATIONS, {"scope": scope_id, "hash": hash_}).scalar_one_or_none()
        found: Annotations = {} if stored is None else read_object(stored, f"the annotations of rulebook {hash_}")
        return found

    def annotate(self, scope_id: str, rulebook: Rulebook, annotations: Annotations, act: OperatorAct) -> bool:
        """Stores annotations for a registered rulebook, and replaces existing ones.

        Args:
            scope_id: The scope.
            rulebook: The rulebook.
            annotations: The annotations.
            act: What to log where they change.

        Returns:
            Whether they changed.
        """
        new = canonical(annotations)
        key = {"scope": scope_id, "hash": rulebook.hash}
        with self._store.write() as connection:
            if connection.execute(_ANNOTATIONS, key).scalar_one_or_none() == new:
                return False
            connection.execute(_REMOVE_ANNOTATIONS, key)
            row = {"scope_id": scope_id, "hash": rulebook.hash, "annotations": new}
            connection.execute(insert(rulebook_annotations).values(**row, annotated_at=timestamp(act.now)))
            act.log(connection, "annotated", rulebook, annotations_hash=content_hash(annotations))
        return True

    def probe(self) -> None:
        """Requires that registrations can be read.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        self.find_version("", "", "")

    def body(self, scope_id: str, hash_: str) -> Any:
        """The body of a registered rulebook, or None."""
        with self._store.read() as connection:
            row = connection.execute(_BY_HASH, {"scope": scope_id, "hash": hash_}).one_or_none()
        return None if row is None else read_object(row.body, f"rulebook {hash_}")

    def register(
        self,
        scope_id: str,
        rulebook: Rulebook,
        metadata: Registration,
        act: OperatorAct | None = None,
    ) -> Registered:
        """Registers a rulebook, or returns what was registered before.

        Args:
            scope_id: The scope.
            rulebook: The rulebook.
            metadata: The metadata to store if this is the first registration.
            act: What to log of a first registration; None where a request registers.

        Raises:
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`: the id and version are bound to another hash.
        """
        with self._store.write() as connection:
            row = _bound(connection, scope_id, rulebook, metadata, act)
        return self._settled(scope_id, rulebook, row)

    def register_for_record(
        self, scope_id: str, rulebook: Rulebook, metadata: Registration, month: str
    ) -> Registered | CapReached:
        """Registers a rulebook as `register`, unless it is new and its scope may make no more records.

        Args:
            scope_id: The scope.
            rulebook: The rulebook.
            metadata: The metadata to store if this is the first registration.
            month: The UTC month (2026-11) of the record that it is registered for.

        Raises:
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`.
        """
        with self._store.write() as connection:
            row = _by_version(connection, scope_id, rulebook.rulebook_id, rulebook.version)
            if row is None:
                # Under the lock that every append takes, so that the scope has room for a record when this commits.
                cap = _used_up(connection, scope_id, month)
                if cap is not None:
                    return CapReached(cap)
                row = _bound(connection, scope_id, rulebook, metadata)
        return self._settled(scope_id, rulebook, row)

    def _settled(self, scope_id: str, rulebook: Rulebook, row: Row[Any] | None) -> Registered:
        if row is None or row.hash != rulebook.hash:
            raise version_conflict(rulebook, None if row is None else row.hash)
        return self._remember(scope_id, row)

    def _remember(self, scope_id: str, row: Row[Any]) -> Registered:
        metadata = read_object(row.registration, f"rulebook {row.hash}")
        attestation = metadata.get("registry_attestation")
        signed = attestation.get("attestation_hash") if isinstance(attestation, dict) else None
        if metadata.get("hash") != row.hash or registration_hash(metadata) != signed:
            raise unavailable(f"the registration of rulebook {row.hash} was changed after it was made")
        found = Registered(row.rulebook_id, row.version, row.hash, metadata)
        with self._lock:
            self._by_hash[scope_id, found.hash] = found
            self._by_version[scope_id, found.rulebook_id, found.version] = found
        return found


def version_conflict(rulebook: Rulebook, registered_hash: str | None) -> RulebookRefused:
    """The refusal of a rulebook whose id and version are bound to another hash."""
    return RulebookRefused(
        "RULEBOOK_VERSION_CONFLICT",
        f"{rulebook.rulebook_id} {rulebook.version} is already registered with a different body. Give the "
        "changed rulebook a new version.",
        details={"hash": rulebook.hash, "registered_hash": registered_hash},
    )


_BY_HASH: Final = select(rulebooks).where(
    rulebooks.c.scope_id == bindparam("scope"), rulebooks.c.hash == bindparam("hash")
)
_LATEST: Final = (
    select(rulebooks)
    .where(rulebooks.c.scope_id == bindparam("scope"), rulebooks.c.rulebook_id == bindparam("rulebook"))
    .order_by(rulebooks.c.registered_at.desc(), rulebooks.c.version.desc())
    .limit(1)
)
_VERSIONS: Final = (
    select(rulebooks.c.version)
    .where(rulebooks.c.scope_id == bindparam("scope"), rulebooks.c.rulebook_id == bindparam("rulebook"))
    .order_by(rulebooks.c.registered_at.desc(), rulebooks.c.version.desc())
    .limit(bindparam("limit"))
)
_LISTED: Final = (
    select(rulebooks.c.rulebook_id, rulebooks.c.version, rulebooks.c.hash, rulebooks.c.registered_at)
    .where(rulebooks.c.scope_id == bindparam("scope"))
    .order_by(rulebooks.c.rulebook_id, rulebooks.c.registered_at.desc(), rulebooks.c.version.desc())
    .limit(bindparam("limit"))
)
_ANNOTATIONS: Final = select(rulebook_annotations.c.annotations).where(
    rulebook_annotations.c.scope_id == bindparam("scope"), rulebook_annotations.c.hash == bindparam("hash")
)
_REMOVE_ANNOTATIONS: Final = delete(rulebook_annotations).where(
    rulebook_annotations.c.scope_id == bindparam("scope"), rulebook_annotations.c.hash == bindparam("hash")
)


def _bound(
    connection: Connection,
    scope_id: str,
    rulebook: Rulebook,
    metadata: Registration,
    act: OperatorAct | None = None,
) -> Row[Any] | None:
    """The registration under a rulebook's id and version, made now and logged if there was none."""
    named = rulebook.rulebook_id, rulebook.version
    row = _by_version(connection, scope_id, *named)
    if row is not None:
        return row
    insert_absent(
        connection,
        rulebooks,
        {
            "scope_id": scope_id,
            "rulebook_id": rulebook.rulebook_id,
            "version": rulebook.version,
            "hash": rulebook.hash,
            "body": canonical(rulebook.body),
            "registration": canonical(metadata),
            "registered_at": metadata["registered_at"],
        },
    )
    # Read again: on PostgreSQL another writer may have come first, and then its row is the registration.
    row = _by_version(connection, scope_id, *named)
    if act is not None and row is not None and row.hash == rulebook.hash:
        act.log(connection, "registered", rulebook)
    return row


def _used_up(connection: Connection, scope_id: str, month: str) -> int | None:
    """The monthly cap of a scope that has made as many records in a month; None where it may make more."""
    cap = connection.execute(_LOCKED_CAP, {"scope": scope_id}).scalar_one()
    if cap is None:
        return None
    used = connection.execute(_USED, {"scope": scope_id, "of_month": month}).scalar_one_or_none() or 0
    return int(cap) if used >= cap else None


_LOCKED_CAP: Final = (
    select(chain_heads.c.monthly_cap).where(chain_heads.c.scope_id == bindparam("scope")).with_for_update()
)
_USED: Final = select(usage.c.records).where(
    usage.c.scope_id == bindparam("scope"), usage.c.month == bindparam("of_month")
)


def _by_version(connection: Connection, scope_id: str, rulebook_id: str, version: str) -> Row[Any] | None:
    return connection.execute(
        select(rulebooks).where(
            rulebooks.c.scope_id == scope_id,
            rulebooks.c.rulebook_id == rulebook_id,
            rulebooks.c.version == version,
        )
    ).one_or_none()
