"""The chain's entries: appended by the writer, read by decision and by position, never deleted, and changed by nothing
but an erasure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, func, select

from gate.errors import GateError
from gate.labels import CHAIN, MERKLE_STRATEGY
from gate.ledger.chain.writer import AppendObserver, AppendResult, Claim, Claimed, NewEntry, Writer
from gate.ledger.packing import unpack
from gate.ledger.stores.store import Statement, Store, unheard_of
from gate.ledger.tables import chain_heads, claims, entries, rulebooks, usage
from gate.proof.chain import Head, Link, RecordLink, record_link

# Bodies have up to a few megabytes each, and a page of them is in memory at a time.
_PAGE: Final = 64
# Each may be as large as a request body.
_REPORTS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as stored: its link, its body, a decision's confidence, and a decision's or an outcome's request."""

    link: Link
    entry_id: str
    body: bytes
    request: bytes | None
    confidence: bytes | None


@dataclass(frozen=True, slots=True)
class LinkedBody:
    """The body of a decision with what its leaf is made of, as stored."""

    body: bytes
    decision_id: str
    record_hash: str
    receipt_hash: str | None
    leaf_hash: str


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report about a decision, as stored: its chain position, its part of the link, its body, and its request if that
    is kept.
    """

    position: int
    link: RecordLink
    body: bytes
    request: bytes | None = None


@dataclass(frozen=True, slots=True)
class History:
    """A decision and what followed it, seen at one moment.

    Attributes:
        decision: The decision.
        executions: Its last execution receipts, newest first.
        outcomes: Its last outcomes, newest first.
        resolutions: Its resolution, where it was held and resolved.
        links: The chain's links from the decision's own on, ascending.
        whole: Whether all reports that were asked for had room.
    """

    decision: StoredEntry
    executions: list[StoredReport]
    outcomes: list[StoredReport]
    resolutions: list[StoredReport]
    links: list[Link]
    whole: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """The size of a ledger, across all scopes."""

    scopes: int
    entries: int
    rulebooks: int


class Entries:
    """The entries of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store
        self._writer = Writer(store)

    def append(self, entry: NewEntry) -> AppendResult:
        """Appends an entry to its scope's chain and returns once it is durable, or says why it is not in the chain.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was acknowledged.
        """
        return self._writer.append(entry)

    def append_all(self, new: Sequence[NewEntry]) -> Sequence[AppendResult | GateError]:
        """Appends entries of one scope, in order and in one commit; says of each what `append` says, or would raise.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: none of them was acknowledged.
        """
        return self._writer.append_all(new)

    def wait_in(self, waiting: Callable[[], AbstractContextManager[None]]) -> None:
        """Lets threads wait for a commit in something from now on, for others to go on meanwhile."""
        self._writer.wait_in(waiting)

    def observe(self, observer: AppendObserver) -> None:
        """Lets someone watch the appends from now on."""
        self._writer.observer = observer

    def probe_claims(self) -> None:
        """Requires that used idempotency keys can be found.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        self.claimed("", Claim("decide", "", "", ""))

    def claimed(self, scope_id: str, claim: Claim) -> Claimed | None:
        """Who claimed an idempotency key."""
        with self._store.read() as connection:
            row = connection.execute(_CLAIMED, {"scope": scope_id, "key": claim.stored_as(scope_id)}).one_or_none()
        return None if row is None else Claimed(row.position, row.input_hash)

    def decision(self, scope_id: str, decision_id: str) -> StoredEntry | None:
        """A decision by its id."""
        if unheard_of(decision_id):
            return None
        with self._store.read() as connection:
            return stored_decision(connection, scope_id, decision_id)

    def linked_body(self, scope_id: str, decision_id: str) -> LinkedBody | None:
        """The body of a decision with its leaf, which is all that a report about it needs."""
        if unheard_of(decision_id):
            return None
        rows = self._store.fetch(_LINKED_BODY, {"scope": scope_id, "id": decision_id})
        if not rows:
            return None
        body, *linked = rows[0]
        return LinkedBody(unpack(body), *linked)

    def reports(
        self, scope_id: str, decision_id: str, entry_type: str, *, limit: int, room: int, before: int | None = None
    ) -> tuple[list[StoredReport], bool]:
        """The entries of one type about a decision, newest first, and whether there are more.

        Args:
            scope_id: The scope.
            decision_id: The decision.
            entry_type: execution, outcome, crm_sync, resolution or erasure.
            limit: How many at most.
            room: How many bytes of them are held at most; the one that exceeds them is the last that is given.
            before: Only those at an earlier chain position; None for the newest.
        """
        found: list[StoredReport] = []
        with (
            self._store.read() as connection,
            closing(_reports(connection, scope_id, decision_id, entry_type, limit + 1, before)) as reports,
        ):
            for report in reports:
                if len(found) == limit or room < 0:
                    return found, True
                found.append(report)
                room -= len(report.body)
        return found, False

    def history(
        self, scope_id: str, decision_id: str, *, executions: int, outcomes: int, links: int, room: int
    ) -> History | None:
        """A decision with what followed it, or None where there is none of that id.

        Args:
            scope_id: The scope.
            decision_id: The decision.
            executions: How many of its last execution receipts.
            outcomes: How many of its last outcomes.
            links: How many of the chain's links, from its own on.
            room: How many bytes of reports are held at most; the one that exceeds them is the last that is read.
        """
        if unheard_of(decision_id):
            return None
        with self._store.read() as connection:
            row = connection.execute(_DECISION, {"scope": scope_id, "id": decision_id}).one_or_none()
            if row is None:
                return None
            head = head_of_scope(connection, scope_id)
            history = History(
                _stored(connection, row),
                [],
                [],
                [],
                [link for link, _ in _page(connection, _LINK, head, scope_id, row.position - 1, links)],
                whole=True,
            )
            wanted = (
                ("resolution", 1, history.resolutions),
                ("execution", executions, history.executions),
                ("outcome", outcomes, history.outcomes),
            )
            for entry_type, limit, found in wanted:
                with closing(_reports(connection, scope_id, decision_id, entry_type, limit, None)) as reports:
                    for report in reports:
                        found.append(report)
                        room -= len(report.body)
                        if room < 0:
                            return replace(history, whole=False)
            return history

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
            return head_of_scope(connection, scope_id)

    def heads_at(self, scope_id: str, positions: Collection[int]) -> dict[int, Head]:
        """The heads that a scope's chain had at some positions; without those that it does not reach.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            chain_id = head_of_scope(connection, scope_id).chain_id
            rows = connection.execute(_HEADS_AT, {"scope": scope_id, "positions": list(positions)})
            return {row.position: Head(chain_id, row.position, row.merkle_root, row.link_hash) for row in rows}

    def latest_links(self, scope_id: str, limit: int) -> tuple[Head, list[Link]]:
        """A scope's head and its last links, ascending, seen at one moment."""
        with self._store.read() as connection:
            head = head_of_scope(connection, scope_id)
            return head, [link for link, _ in _page(connection, _LINK, head, scope_id, head.size - limit, limit)]

    def walk(self, scope_id: str, *, up_to: int) -> Iterator[StoredEntry]:
        """A scope's entries from position 1 to `up_to`, a page in memory at a time."""
        # One snapshot a page, not one for the whole walk: a reader that stays keeps SQLite from starting its WAL over
        # and PostgreSQL from vacuuming. Up to a known position only erasures change anything.
        for after in range(0, up_to, _PAGE):
            with self._store.read() as connection:
                head = head_of_scope(connection, scope_id)
                page = _page(connection, _ENTRY, head, scope_id, after, min(_PAGE, up_to - after))
            yield from (_entry(link, row) for link, row in page)

    def used(self, scope_id: str, month: str) -> int:
        """How many records a scope with a monthly cap made in a UTC month (2026-11)."""
        with self._store.read() as connection:
            return connection.execute(_USED, {"scope": scope_id, "of_month": month}).scalar_one_or_none() or 0

    def totals(self) -> Totals:
        """How much the ledger holds, seen at one moment."""
        with self._store.read() as connection:
            scopes, size = connection.execute(_TOTALS).one()
            registered = connection.execute(select(func.count()).select_from(rulebooks)).scalar_one()
        return Totals(scopes, int(size), registered)

    def count_since(self, scope_id: str, decision_id: str) -> int:
        """How many entries a scope has from the first one on about a decision of this id or a later one; ids sort by
        time. It takes one look, however many there are.
        """
        with self._store.read() as connection:
            first = connection.execute(_FIRST_SINCE, {"scope": scope_id, "id": decision_id}).scalar_one_or_none()
            return 0 if first is None else head_of_scope(connection, scope_id).size - first + 1


_ENTRY: Final = select(entries).where(entries.c.scope_id == bindparam("scope"))
_DECISION: Final = _ENTRY.where(entries.c.decision_id == bindparam("id"), entries.c.entry_id == bindparam("id"))
_LINKED_BODY: Final = Statement(_DECISION.with_only_columns(*(entries.c[name] for name in LinkedBody.__slots__)))
_LINK: Final = select(*(column for column in entries.c if column.name not in ("body", "request", "confidence"))).where(
    entries.c.scope_id == bindparam("scope")
)
_HEADS_AT: Final = select(entries.c.position, entries.c.merkle_root, entries.c.link_hash).where(
    entries.c.scope_id == bindparam("scope"), entries.c.position.in_(bindparam("positions", expanding=True))
)
_HEAD: Final = select(chain_heads).where(chain_heads.c.scope_id == bindparam("scope"))
_TOTALS: Final = select(func.count(), func.coalesce(func.sum(chain_heads.c.chain_size), 0))
_CLAIMED: Final = select(claims).where(claims.c.scope_id == bindparam("scope"), claims.c.claim == bindparam("key"))
_USED: Final = select(usage.c.records).where(
    usage.c.scope_id == bindparam("scope"), usage.c.month == bindparam("of_month")
)
_FIRST_SINCE: Final = (
    select(entries.c.position)
    .where(entries.c.scope_id == bindparam("scope"), entries.c.decision_id >= bindparam("id"))
    .order_by(entries.c.decision_id)
    .limit(1)
)


def head_of_scope(connection: Connection, scope_id: str) -> Head:
    """The end of a scope's chain, as a transaction sees it."""
    row = connection.execute(_HEAD, {"scope": scope_id}).one()
    return Head(row.chain_id, row.chain_size, row.merkle_root, row.link_hash)


def _page(
    connection: Connection, query: Select[Any], head: Head, scope_id: str, after: int, limit: int
) -> list[tuple[Link, Row[Any]]]:
    """Links after a position, ascending, with their rows. A link's `previous` members are those of the row before."""
    rows = connection.execute(
        query.where(entries.c.position >= bindparam("from"), entries.c.position <= bindparam("to")).order_by(
            entries.c.position
        ),
        {"scope": scope_id, "from": after, "to": after + limit},
    ).all()
    found = []
    before = Head(head.chain_id)
    for row in rows:
        if row.position > after:
            found.append((_link(row, before), row))
        before = Head(head.chain_id, row.position, row.merkle_root, row.link_hash)
    return found


def stored_decision(connection: Connection, scope_id: str, decision_id: str) -> StoredEntry | None:
    """A decision by its id, as a transaction sees it."""
    row = connection.execute(_DECISION, {"scope": scope_id, "id": decision_id}).one_or_none()
    return None if row is None else _stored(connection, row)


def _stored(connection: Connection, row: Row[Any]) -> StoredEntry:
    head = head_of_scope(connection, row.scope_id)
    ((link, _),) = _page(connection, _LINK, head, row.scope_id, row.position - 1, 1)
    return _entry(link, row)


def _entry(link: Link, row: Row[Any]) -> StoredEntry:
    request = None if row.request is None else unpack(row.request)
    return StoredEntry(link, row.entry_id, unpack(row.body), request, row.confidence)


def _reports(
    connection: Connection, scope_id: str, decision_id: str, entry_type: str, limit: int, before: int | None
) -> Generator[StoredReport, None, None]:
    head = head_of_scope(connection, scope_id)
    # Not the bare position, which the planner would take for an invitation to walk the whole scope in its order.
    position = entries.c.position + 0
    # Positions first: sorting whole bodies would hold all of them at once.
    last = (
        select(entries.c.position)
        .where(
            entries.c.scope_id == scope_id,
            entries.c.decision_id == decision_id,
            entries.c.entry_type == entry_type,
            *(() if before is None else (position < before,)),
        )
        .order_by(position.desc())
        .limit(limit)
        .subquery()
    )
    rows = connection.execution_options(yield_per=_REPORTS_AT_ONCE).execute(
        select(entries)
        .where(entries.c.scope_id == scope_id, entries.c.position.in_(select(last.c.position)))
        .order_by(entries.c.position.desc())
    )
    with closing(rows):
        for row in rows:
            link = record_link(_link(row, Head(head.chain_id)))
            request = None if row.request is None else unpack(row.request)
            yield StoredReport(row.position, link, unpack(row.body), request)


def _link(row: Row[Any], before: Head) -> Link:
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
