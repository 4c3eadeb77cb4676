"""The entries that change how a scope decides: migrations and routes, appended under the lock of the scope's head.

    with ledger.changes.changing(scope_id, scope, now) as change:
        found = change.migrations("refunds_2026_12")      # nobody appends meanwhile
        change.append(MIGRATIONS, entry)

All of a block is one transaction: its entries, the documents that they cite, the scope's route epoch, and the operator
log. The index by which entries are found, the table `changes`, is written with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson
from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from gate.errors import GateError, ServiceUnavailable
from gate.ids import timestamp
from gate.ledger.access.operator_log import record
from gate.ledger.chain.outbox import tell
from gate.ledger.packing import pack, unpack
from gate.ledger.shadows import Shadow, read_shadows
from gate.ledger.stores.store import Store, insert_absent, read_object, unheard_of
from gate.ledger.tables import chain_heads, changes, decisions, entries, migration_documents, shadows
from gate.proof import chain
from gate.proof.chain import Head
from gate.records.changes import MIGRATIONS, ROUTES, EntryKind, MigrationEntry, RouteEntry, entry_link, find_fault
from gate.records.webhooks.events import Event, migration_changed, route_changed


@dataclass(frozen=True, slots=True)
class ActiveRoute:
    """Where a rulebook id led at one moment.

    Attributes:
        epoch: The scope's route epoch then.
        route: The entry by which it led there; None where there was no route.
    """

    epoch: int
    route: RouteEntry | None


class ChangeReader:
    """Reads the changes of a scope over a connection whose statements all see one snapshot."""

    def __init__(self, connection: Connection, scope_id: str) -> None:
        """Reads over a connection."""
        self._connection = connection
        self._scope_id = scope_id

    def migrations(self, migration_id: str | None = None) -> list[MigrationEntry]:
        """The entries about migrations, in the order of the chain; about one where it is named.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: one is not as it was made.
        """
        return self._entries(MIGRATIONS, migration_id)

    def routes(self, rulebook_id: str | None = None) -> list[RouteEntry]:
        """The routes, in the order of the chain; of one rulebook id where it is named.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: one is not as it was made.
        """
        return self._entries(ROUTES, rulebook_id)

    def _entries(self, kind: EntryKind, subject: str | None) -> list[Any]:
        if subject is not None and unheard_of(subject):
            return []
        query = _ENTRIES if subject is None else _ENTRIES.where(changes.c.subject == subject)
        rows = self._connection.execute(query, {"scope": self._scope_id, "type": kind.entry_type})
        return [_as_made(kind, row) for row in rows]

    def document(self, hash_: str) -> Any:
        """A document that an entry cites; None where there is none of that hash.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it cannot be read.
        """
        if unheard_of(hash_):
            return None
        stored = self._connection.execute(_DOCUMENT, {"scope": self._scope_id, "hash": hash_}).scalar_one_or_none()
        return None if stored is None else read_object(unpack(stored), f"the document {hash_}")

    def shadows(self) -> dict[str, Shadow]:
        """The shadows that run, by the ids of their migrations.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: what one found cannot be read.
        """
        return {of.migration_id: of for of in read_shadows(self._connection, self._scope_id)}

    def count_decided(self, policy_id: str, *, after: int) -> int:
        """How many decisions of a policy came after a chain position."""
        values = {"scope": self._scope_id, "policy": policy_id, "after": after}
        return int(self._connection.execute(_DECIDED_AFTER, values).scalar_one())


class Change(ChangeReader):
    """A transaction in which nobody else appends to a scope's chain."""

    def __init__(self, connection: Connection, scope_id: str, scope: str, head: Head, now: datetime) -> None:
        """Works in a transaction that holds the lock of the scope's head."""
        super().__init__(connection, scope_id)
        self._head = head
        self._scope = scope
        self._now = now
        self._moves_routes = False
        self._events: list[tuple[Event, int | None]] = []

    def append(self, kind: EntryKind, entry: MigrationEntry | RouteEntry) -> int:
        """Appends an entry; its chain position."""
        document: Mapping[str, Any] = entry
        link = chain.append(self._head, entry_link(kind, document), plain=True)
        self._head = chain.head_of(link)
        members: Mapping[str, object] = link
        row = {column.name: members[column.name] for column in entries.c if column.name in members} | {
            "scope_id": self._scope_id,
            "position": link["chain_position"],
            "entry_id": document[kind.id_member],
            "body": pack(orjson.dumps(document)),
        }
        self._connection.execute(insert(entries), row)
        found = {"position": link["chain_position"], "entry_type": kind.entry_type}
        subject = document[kind.subject_member]
        self._connection.execute(insert(changes).values(scope_id=self._scope_id, subject=subject, **found))
        self._moves_routes = self._moves_routes or kind is ROUTES
        event = route_changed(document) if kind is ROUTES else migration_changed(document)
        if event is not None:
            self._events.append((event, link["chain_position"]))
        return link["chain_position"]

    def store(self, kind: str, hash_: str, body: bytes) -> None:
        """Keeps a document under its hash, unless it is already there."""
        row = {"scope_id": self._scope_id, "hash": hash_, "kind": kind, "body": pack(body)}
        insert_absent(self._connection, migration_documents, {**row, "stored_at": timestamp(self._now)})

    def start_shadow(self, migration_id: str, by: str) -> None:
        """Starts the shadow of a migration, which has none, from the decision that comes next."""
        self._connection.execute(
            insert(shadows).values(
                scope_id=self._scope_id,
                migration_id=migration_id,
                started_at=timestamp(self._now),
                started_by=by,
                from_position=self._head.size,
            )
        )
        self.log("migration.shadow_started", migration_id, by=by, from_position=self._head.size)

    def stop_shadow(self, migration_id: str, by: str) -> bool:
        """Stops the shadow of a migration, with what it found; whether one ran."""
        of = (shadows.c.scope_id == self._scope_id) & (shadows.c.migration_id == migration_id)
        ran = bool(self._connection.execute(delete(shadows).where(of)).rowcount)
        if ran:
            self.log("migration.shadow_stopped", migration_id, by=by)
        return ran

    def log(self, action: str, subject: str, **details: object) -> None:
        """Adds an entry to the operator log."""
        record(self._connection, action, subject, {"scope": self._scope, **details}, self._now)

    def finish(self) -> None:
        """Moves the scope's head to the last entry, and its route epoch where a route was appended; tells webhooks."""
        moved = {
            "chain_size": self._head.size,
            "merkle_root": self._head.merkle_root,
            "link_hash": self._head.link_hash,
        }
        epoch = {"route_epoch": chain_heads.c.route_epoch + 1} if self._moves_routes else {}
        statement = update(chain_heads).where(chain_heads.c.scope_id == self._scope_id)
        self._connection.execute(statement.values(**moved, **epoch))
        tell(self._connection, self._scope_id, self._events, self._now)


class Changes:
    """The changes of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    @contextmanager
    def changing(self, scope_id: str, scope: str, now: datetime) -> Iterator[Change]:
        """A transaction in which nobody else appends to a scope's chain; undone where the block raises.

        Args:
            scope_id: The scope.
            scope: Its name, for the operator log.
            now: The current moment.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was done.
        """
        with self._store.write() as connection:
            # The head before the operator log, as in every transaction that takes both locks.
            head = connection.execute(_LOCK_HEAD, {"scope": scope_id}).one()
            before = Head(head.chain_id, head.chain_size, head.merkle_root, head.link_hash)
            change = Change(connection, scope_id, scope, before, now)
            yield change
            change.finish()

    @contextmanager
    def reading(self, scope_id: str) -> Iterator[ChangeReader]:
        """A scope's changes as they are at one moment.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            yield ChangeReader(connection, scope_id)

    def active(self, scope_id: str, rulebook_id: str) -> ActiveRoute:
        """Where a rulebook id leads now.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            epoch = connection.execute(_EPOCH, {"scope": scope_id}).scalar_one()
            row = None
            if not unheard_of(rulebook_id):
                row = connection.execute(_LAST_ROUTE, {"scope": scope_id, "rulebook": rulebook_id}).one_or_none()
        return ActiveRoute(epoch, None if row is None else _as_made(ROUTES, row))


def _as_made(kind: EntryKind, row: Row[Any, Any, Any]) -> Any:
    """An entry that is as it was made and linked.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    what = f"the {kind.entry_type} at chain position {row.position}"
    entry = read_object(unpack(row.body), what)
    try:
        link = entry_link(kind, entry)
        leaf = chain.leaf(kind.entry_type, link.decision_id, link.record_hash, None)
        holds = find_fault(kind, entry) is None and leaf == row.leaf_hash
    except (KeyError, TypeError, AttributeError, GateError):
        holds = False
    if not holds:
        raise ServiceUnavailable(
            "SVC_STORAGE_UNAVAILABLE",
            f"In the ledger, {what} was changed after it was made. The operator must run `gate chain check`.",
        )
    return entry


_LOCK_HEAD: Final = select(chain_heads).where(chain_heads.c.scope_id == bindparam("scope")).with_for_update()
_EPOCH: Final = select(chain_heads.c.route_epoch).where(chain_heads.c.scope_id == bindparam("scope"))
_ENTRIES: Final = (
    select(entries.c.position, entries.c.leaf_hash, entries.c.body)
    .join(changes, (changes.c.scope_id == entries.c.scope_id) & (changes.c.position == entries.c.position))
    .where(changes.c.scope_id == bindparam("scope"), changes.c.entry_type == bindparam("type"))
    .order_by(changes.c.position)
)
_LAST_ROUTE: Final = select(entries.c.position, entries.c.leaf_hash, entries.c.body).where(
    entries.c.scope_id == bindparam("scope"),
    entries.c.position
    == select(func.max(changes.c.position))
    .where(
        changes.c.scope_id == bindparam("scope"),
        changes.c.entry_type == ROUTES.entry_type,
        changes.c.subject == bindparam("rulebook"),
    )
    .scalar_subquery(),
)
_DOCUMENT: Final = select(migration_documents.c.body).where(
    migration_documents.c.scope_id == bindparam("scope"), migration_documents.c.hash == bindparam("hash")
)
_DECIDED_AFTER: Final = (
    select(func.count())
    .select_from(decisions)
    .where(
        decisions.c.scope_id == bindparam("scope"),
        decisions.c.policy_id == bindparam("policy"),
        decisions.c.position > bindparam("after"),
    )
)
