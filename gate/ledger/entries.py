"""The chain's entries: appended in groups, read by decision and by position. No entry is ever updated or deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, insert, select, update
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from gate import chain
from gate.canonical import canonical
from gate.chain import Head
from gate.errors import GateError, ServiceUnavailable
from gate.labels import CHAIN, MERKLE_STRATEGY
from gate.ledger.group_commit import GroupCommit
from gate.ledger.store import SqliteStore
from gate.ledger.tables import chain_heads, claims, entries

_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Claim:
    """An idempotency key in use.

    Attributes:
        operation: What the key is used for: decide, and later execution, outcome and crm-sync.
        decision_id: The decision it is used on; "" for decide. A key is unique per (scope, operation, decision).
        key: The caller's key.
        input_hash: H of the payload it was used with.
    """

    operation: str
    decision_id: str
    key: str
    input_hash: str

    def digest(self, scope_id: str) -> bytes:
        """The 32 bytes under which the claim is stored."""
        return hashlib.sha256(canonical([scope_id, self.operation, self.decision_id, self.key])).digest()


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to be appended.

    Attributes:
        scope_id: The scope whose chain it extends.
        entry_id: Its own id; the decision_id for a decision.
        link: What its chain link is made of.
        body: The stored record's JSON bytes.
        request: The request's JSON bytes, for a decision.
        claim: The idempotency key that it claims.
    """

    scope_id: str
    entry_id: str
    link: chain.Entry
    body: bytes
    request: bytes | None = None
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """The entry is in the chain, durably, under this link."""

    link: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claimed:
    """The idempotency key was claimed before, by the entry at this position, with this payload."""

    position: int
    input_hash: str


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as stored: its link, its body and, for a decision, its request."""

    link: dict[str, Any]
    entry_id: str
    body: bytes
    request: bytes | None


class Entries:
    """The entries of a ledger."""

    def __init__(self, store: SqliteStore) -> None:
        """Works on the given store."""
        self._store = store
        self._commits: GroupCommit[NewEntry, Appended | Claimed] = GroupCommit(self._commit)

    def append(self, entry: NewEntry) -> Appended | Claimed:
        """Appends an entry to its scope's chain and returns once it is durable, or says who claimed its key first.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: nothing was acknowledged.
        """
        return self._commits.submit(entry)

    def claimed(self, scope_id: str, claim: Claim) -> Claimed | None:
        """Who claimed an idempotency key."""
        with self._store.read() as connection:
            digest = claim.digest(scope_id)
            return _claimed(connection, [scope_id], {digest}).get(digest)

    def decision(self, scope_id: str, decision_id: str) -> StoredEntry | None:
        """A decision by its id."""
        with self._store.read() as connection:
            row = connection.execute(
                _ENTRY.where(entries.c.decision_id == bindparam("id"), entries.c.entry_id == bindparam("id")),
                {"scope": scope_id, "id": decision_id},
            ).one_or_none()
            return None if row is None else _stored(connection, row)

    def at(self, scope_id: str, position: int) -> StoredEntry | None:
        """An entry by its position."""
        with self._store.read() as connection:
            row = connection.execute(
                _ENTRY.where(entries.c.position == bindparam("at")), {"scope": scope_id, "at": position}
            ).one_or_none()
            return None if row is None else _stored(connection, row)

    def head(self, scope_id: str) -> Head:
        """The end of a scope's chain."""
        with self._store.read() as connection:
            return _heads(connection, [scope_id])[scope_id]

    def latest_links(self, scope_id: str, limit: int) -> tuple[Head, list[dict[str, Any]]]:
        """A scope's head and its last links, ascending, seen at one moment."""
        with self._store.read() as connection:
            head = _heads(connection, [scope_id])[scope_id]
            found = _page(connection, head, scope_id, head.size - limit, limit)
            return head, [entry.link for entry in found]

    def walk(self, scope_id: str, *, up_to: int) -> Iterator[StoredEntry]:
        """A scope's entries from position 1 to `up_to`, a page in memory at a time."""
        for after in range(0, up_to, _PAGE):
            with self._store.read() as connection:
                head = _heads(connection, [scope_id])[scope_id]
                page = _page(connection, head, scope_id, after, min(_PAGE, up_to - after))
            yield from page

    def _commit(self, batch: Sequence[NewEntry]) -> Sequence[Appended | Claimed | GateError]:
        try:
            return self._commit_together(batch)
        except ServiceUnavailable as error:
            # Where the database itself is locked, full or failing, trying again would only wait longer.
            database_fails = not isinstance(error.__cause__, SQLAlchemyError) or isinstance(
                error.__cause__, OperationalError
            )
            if len(batch) == 1 or database_fails:
                return [error] * len(batch)
        # One bad entry must not fail the others, so each gets a transaction of its own.
        return [self._commit([entry])[0] for entry in batch]

    def _commit_together(self, batch: Sequence[NewEntry]) -> Sequence[Appended | Claimed | GateError]:
        with self._store.write() as connection:
            # In order, so that two writers never wait for each other's heads.
            scope_ids = sorted({entry.scope_id for entry in batch})
            heads = _heads(connection, scope_ids, lock=True)
            digests = [entry.claim.digest(entry.scope_id) if entry.claim else None for entry in batch]
            taken = _claimed(connection, scope_ids, {digest for digest in digests if digest is not None})
            results: list[Appended | Claimed] = []
            entry_rows: list[dict[str, Any]] = []
            claim_rows: list[dict[str, Any]] = []
            for entry, digest in zip(batch, digests, strict=True):
                if digest is not None and digest in taken:
                    results.append(taken[digest])
                    continue
                link = chain.append(heads[entry.scope_id], entry.link)
                heads[entry.scope_id] = chain.head_of(link)
                entry_rows.append(_entry_row(entry, link))
                if digest is not None and entry.claim is not None:
                    taken[digest] = Claimed(link["chain_position"], entry.claim.input_hash)
                    claim_rows.append(
                        {
                            "scope_id": entry.scope_id,
                            "claim": digest,
                            "input_hash": entry.claim.input_hash,
                            "position": link["chain_position"],
                        }
                    )
                results.append(Appended(link))
            if entry_rows:
                connection.execute(_INSERT_ENTRY, entry_rows)
                connection.execute(
                    _MOVE_HEAD, [_head_row(row["scope_id"], heads) for row in _last_of_scope(entry_rows)]
                )
            if claim_rows:
                connection.execute(_INSERT_CLAIM, claim_rows)
        return results


_ENTRY: Final = select(entries).where(entries.c.scope_id == bindparam("scope"))
_INSERT_ENTRY: Final = insert(entries)
_INSERT_CLAIM: Final = insert(claims)
_HEADS: Final = select(chain_heads).where(chain_heads.c.scope_id.in_(bindparam("scopes", expanding=True)))
_LOCK_HEADS: Final = _HEADS.with_for_update()
_MOVE_HEAD: Final = (
    update(chain_heads)
    .where(chain_heads.c.scope_id == bindparam("scope"))
    .values(
        chain_size=bindparam("size"),
        merkle_root=bindparam("root"),
        link_hash=bindparam("link"),
    )
)
_CLAIMED: Final = select(claims).where(
    claims.c.scope_id.in_(bindparam("scopes", expanding=True)),
    claims.c.claim.in_(bindparam("digests", expanding=True)),
)


def _heads(connection: Connection, scope_ids: Sequence[str], *, lock: bool = False) -> dict[str, Head]:
    rows = connection.execute(_LOCK_HEADS if lock else _HEADS, {"scopes": scope_ids})
    return {row.scope_id: Head(row.chain_id, row.chain_size, row.merkle_root, row.link_hash) for row in rows}


def _claimed(connection: Connection, scope_ids: Sequence[str], digests: set[bytes]) -> dict[bytes, Claimed]:
    if not digests:
        return {}
    rows = connection.execute(_CLAIMED, {"scopes": scope_ids, "digests": sorted(digests)})
    return {row.claim: Claimed(row.position, row.input_hash) for row in rows}


def _entry_row(entry: NewEntry, link: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "scope_id": entry.scope_id,
        "position": link["chain_position"],
        "entry_type": link["entry_type"],
        "entry_id": entry.entry_id,
        "decision_id": link["decision_id"],
        "record_hash": link["record_hash"],
        "receipt_hash": link["receipt_hash"],
        "policy_id": link["policy_id"],
        "policy_version": link["policy_version"],
        "created_at": link["created_at"],
        "leaf_hash": link["leaf_hash"],
        "merkle_root": link["merkle_root"],
        "link_hash": link["link_hash"],
        "body": entry.body,
        "request": entry.request,
    }


def _last_of_scope(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({row["scope_id"]: row for row in rows}.values())


def _head_row(scope_id: str, heads: Mapping[str, Head]) -> dict[str, Any]:
    head = heads[scope_id]
    return {"scope": scope_id, "size": head.size, "root": head.merkle_root, "link": head.link_hash}


def _page(connection: Connection, head: Head, scope_id: str, after: int, limit: int) -> list[StoredEntry]:
    """Entries after a position, ascending. Each link's `previous` members are those of the row before it."""
    rows = connection.execute(
        _ENTRY.where(entries.c.position >= bindparam("from"), entries.c.position <= bindparam("to")).order_by(
            entries.c.position
        ),
        {"scope": scope_id, "from": after, "to": after + limit},
    ).all()
    found: list[StoredEntry] = []
    before = Head(head.chain_id)
    for row in rows:
        if row.position > after:
            found.append(StoredEntry(_link(row, before), row.entry_id, row.body, row.request))
        before = replace(before, size=row.position, merkle_root=row.merkle_root, link_hash=row.link_hash)
    return found


def _stored(connection: Connection, row: Row[Any]) -> StoredEntry:
    head = _heads(connection, [row.scope_id])[row.scope_id]
    return _page(connection, head, row.scope_id, row.position - 1, 1)[0]


def _link(row: Row[Any], before: Head) -> dict[str, Any]:
    return {
        "decision_chain_version": CHAIN,
        "chain_id": before.chain_id,
        "chain_position": row.position,
        "previous_link_hash": before.link_hash,
        "previous_merkle_root": before.merkle_root,
        "leaf_hash": row.leaf_hash,
        "merkle_root": row.merkle_root,
        "merkle_strategy": MERKLE_STRATEGY,
        "entry_type": row.entry_type,
        "decision_id": row.decision_id,
        "record_hash": row.record_hash,
        "receipt_hash": row.receipt_hash,
        "policy_id": row.policy_id,
        "policy_version": row.policy_version,
        "created_at": row.created_at,
        "link_hash": row.link_hash,
    }
