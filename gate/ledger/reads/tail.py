"""Chains read from a position on: in the order of the chain, one bounded page at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sqlalchemy import bindparam, case, select

from gate.ledger.stores.store import Row, Statement, Store, unheard_of
from gate.ledger.tables import chain_heads, entries, scopes
from gate.proof.chain import Head

PAGE_ENTRIES: Final = 5_000
"""How many entries a page has at most, unless fewer are asked for."""

_PAGE_BYTES: Final = 32 * 1024 * 1024


class FollowedScope(NamedTuple):
    """A scope and the end of its chain."""

    scope_id: str
    name: str
    head: Head


class FollowedEntry(NamedTuple):
    """An entry as it is stored. Its body, request, and confidence are packed with `packing.pack`."""

    position: int
    entry_type: str
    entry_id: str
    decision_id: str
    decision_position: int | None
    """Where the decision stands that the entry is about; its own position for a decision."""
    record_hash: str
    receipt_hash: str | None
    policy_id: str | None
    policy_version: bytes | None
    created_at: str
    leaf_hash: str
    merkle_root: str
    link_hash: str
    body: bytes
    request: bytes | None
    confidence: bytes | None


_BODY: Final = FollowedEntry._fields.index("body")
_REQUEST: Final = FollowedEntry._fields.index("request")


class Span(NamedTuple):
    """A page of a chain.

    Attributes:
        after: The position that it comes after.
        last: The position of its last entry.
        rows: The entries, each with the members of `FollowedEntry`; fewer than positions where the chain has gaps.
    """

    after: int
    last: int
    rows: Sequence[Row]


class Tail:
    """Reads the chains of a ledger from a position on."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def scopes(self) -> list[FollowedScope]:
        """All scopes with the ends of their chains, by id.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return [_scope(row) for row in self._store.fetch(_SCOPES, {})]

    def scope(self, scope_id: str) -> FollowedScope | None:
        """One scope with the end of its chain; None where there is none of that id.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if unheard_of(scope_id):
            return None
        rows = self._store.fetch(_SCOPE, {"scope": scope_id})
        return _scope(rows[0]) if rows else None

    def pages(
        self, scope_id: str, *, after: int, up_to: int, size: int = PAGE_ENTRIES
    ) -> Iterator[list[FollowedEntry]]:
        """The entries after a position, up to another, as `spans` gives them.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        for span in self.spans(scope_id, after=after, up_to=up_to, size=size):
            yield [FollowedEntry(*row) for row in span.rows]

    def spans(self, scope_id: str, *, after: int, up_to: int, size: int = PAGE_ENTRIES) -> Iterator[Span]:
        """The entries after a position, up to another, in pages of at most so many entries and about 32 MB as stored.

        What stands at a position never changes, but for what an erasure takes out of it; so the pages are those of one
        moment, whichever moment they are read at.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        while after < up_to:
            span = self._span(scope_id, after, min(after + size, up_to))
            yield span
            after = span.last

    def _span(self, scope_id: str, after: int, last: int) -> Span:
        page: list[Row] = []
        room = _PAGE_BYTES
        with self._store.stream(_ENTRIES, {"scope": scope_id, "after": after, "last": last}) as rows:
            for row in rows:
                page.append(row)
                room -= len(row[_BODY]) + (0 if row[_REQUEST] is None else len(row[_REQUEST]))
                if room < 0:
                    return Span(after, row[0], page)
        return Span(after, last, page)


_HEADS: Final = select(
    scopes.c.scope_id,
    scopes.c.name,
    chain_heads.c.chain_id,
    chain_heads.c.chain_size,
    chain_heads.c.merkle_root,
    chain_heads.c.link_hash,
).join(chain_heads, chain_heads.c.scope_id == scopes.c.scope_id)
_SCOPES: Final = Statement(_HEADS.order_by(scopes.c.scope_id))
_SCOPE: Final = Statement(_HEADS.where(scopes.c.scope_id == bindparam("scope")))

_decided = entries.alias("decided")
_DECISION_POSITION: Final = case(
    (entries.c.entry_id == entries.c.decision_id, entries.c.position),
    else_=select(_decided.c.position)
    .where(
        _decided.c.scope_id == entries.c.scope_id,
        _decided.c.decision_id == entries.c.decision_id,
        _decided.c.entry_id == entries.c.decision_id,
    )
    .scalar_subquery(),
).label("decision_position")
_RANGE: Final = (
    entries.c.scope_id == bindparam("scope"),
    entries.c.position > bindparam("after"),
    entries.c.position <= bindparam("last"),
)
_ENTRIES: Final = Statement(
    select(*(_DECISION_POSITION if name == "decision_position" else entries.c[name] for name in FollowedEntry._fields))
    .where(*_RANGE)
    .order_by(entries.c.position)
)


def _scope(row: Row) -> FollowedScope:
    scope_id, name, *head = row
    return FollowedScope(scope_id, bytes(name).decode(), Head(*head))
