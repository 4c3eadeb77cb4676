"""Chains read from a position on, for whoever follows them: in the order of the chain, a bounded page at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sqlalchemy import bindparam, case, func, literal_column, select

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
    """An entry as it is stored; its body, request and confidence packed as `packing.pack` leaves them."""

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


class Tail:
    """Reads the chains of a ledger from a position on."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def scopes(self) -> list[FollowedScope]:
        """All scopes with the ends of their chains, by id.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        return [_scope(row) for row in self._store.fetch(_SCOPES, {})]

    def scope(self, scope_id: str) -> FollowedScope | None:
        """One scope with the end of its chain; None where there is none of that id.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        if unheard_of(scope_id):
            return None
        rows = self._store.fetch(_SCOPE, {"scope": scope_id})
        return _scope(rows[0]) if rows else None

    def pages(
        self, scope_id: str, *, after: int, up_to: int, size: int = PAGE_ENTRIES
    ) -> Iterator[list[FollowedEntry]]:
        """The entries after a position, up to another, in pages of at most so many entries and about 32 MB as stored.

        What stands at a position never changes, but for what an erasure takes out of it; so the pages are those of one
        moment, whichever moment they are read at.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        for first, last in self.spans(scope_id, after=after, up_to=up_to, size=size):
            yield [FollowedEntry(*row) for row in self.rows(scope_id, first, last)]

    def spans(self, scope_id: str, *, after: int, up_to: int, size: int = PAGE_ENTRIES) -> Iterator[tuple[int, int]]:
        """The pages of `pages`, each as the position that it comes after and that of its last entry.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        while after < up_to:
            last = self._page_end(scope_id, after, min(after + size, up_to))
            yield after, last
            after = last

    def rows(self, scope_id: str, after: int, last: int) -> Sequence[Row]:
        """The entries after a position, up to another, each with the members of `FollowedEntry`; fewer where some are
        missing.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        return self._store.fetch(_ENTRIES, {"scope": scope_id, "after": after, "last": last})

    def _page_end(self, scope_id: str, after: int, last: int) -> int:
        span = {"scope": scope_id, "after": after, "last": last}
        [(end, size)] = self._store.fetch(_SIZE, span)
        room = _PAGE_BYTES
        if end is not None and size > room:
            end = after
            for position, size in self._store.fetch(_SIZES, span):
                room -= int(size)
                if room < 0 and end > after:
                    break
                end = position
        # A page covers at least one position even where the chain has a gap, or no reader would get past it.
        return max(end or after, after + 1)


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
_STORED: Final = func.length(entries.c.body) + func.coalesce(func.length(entries.c.request), literal_column("0"))
_SIZES: Final = Statement(select(entries.c.position, _STORED).where(*_RANGE).order_by(entries.c.position))
# Of a page as a whole, which is nearly always all that has to be known.
_SIZE: Final = Statement(select(func.max(entries.c.position), func.sum(_STORED)).where(*_RANGE))


def _scope(row: Row) -> FollowedScope:
    scope_id, name, *head = row
    return FollowedScope(scope_id, bytes(name).decode(), Head(*head))
