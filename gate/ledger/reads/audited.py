"""What the audit of a chain reads: a stretch of entries, and the rows that have to follow from them.

    with ledger.audited.snapshot(scope_id) as seen:
        rows = seen.entries(after, up_to, room)
        decisions = seen.searchable(after, rows[-1].position)

Everything that one snapshot gives was there at one moment, so that an entry which is appended or erased meanwhile never
looks like damage. Values are as they are stored: something else may have written them, and what is no text is shown and
not raised. No query takes longer than its own rows: many keys are asked for at once, and each finds its own index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.types import LargeBinary, TypeEngine

from gate.ledger.chain.entries import head_of_scope
from gate.ledger.chain.outcomes import STATUSES
from gate.ledger.packing import unpack
from gate.ledger.reads.audited_reviews import SeenReviews
from gate.ledger.reads.raw import EACH, every, raw, scoped, shown
from gate.ledger.stores.store import Store
from gate.ledger.tables import (
    Utf8,
    chain_heads,
    changes,
    claims,
    decisions,
    entries,
    latest_outcomes,
    migration_documents,
    outcome_counts,
    review_owners,
    reviews,
    rulebooks,
    scopes,
)
from gate.proof.chain import Head

STRETCH: Final = 256
"""How many entries a stretch has at most."""

# Bodies may have a megabyte each: so many are fetched at a time, and not all that were asked for.
_AT_ONCE: Final = 16
_LOST_SHOWN: Final = 20


# Those with the most to lose first.
_OF_SCOPES: Final = (
    entries,
    scopes,
    chain_heads,
    rulebooks,
    changes,
    migration_documents,
    reviews,
    review_owners,
    decisions,
    claims,
    latest_outcomes,
    outcome_counts,
)


class AuditedEntry(NamedTuple):
    """An entry as it is stored, its body and request inflated."""

    position: Any
    entry_type: Any
    entry_id: Any
    decision_id: Any
    record_hash: Any
    receipt_hash: Any
    policy_id: Any
    policy_version: Any
    created_at: Any
    leaf_hash: Any
    merkle_root: Any
    link_hash: Any
    body: Any
    request: Any
    confidence: Any


class StoredDecision(NamedTuple):
    """A decision that other entries are about."""

    decision_id: str
    position: int
    body: bytes
    has_request: bool


class StoredRegistration(NamedTuple):
    """A row of the registry."""

    rulebook_id: Any
    version: Any
    hash: Any
    body: Any
    registration: Any
    registered_at: Any


class ChangeRow(NamedTuple):
    """A row of the changes, with the body of the entry that it finds."""

    position: Any
    entry_type: Any
    subject: Any
    body: Any


class DocumentRow(NamedTuple):
    """A document that the entries of migrations cite."""

    hash: Any
    kind: Any
    body: Any


class ClaimRow(NamedTuple):
    """A row of the claims."""

    claim: Any
    input_hash: Any
    position: Any


class Stray(NamedTuple):
    """A row that belongs to no entry: its table, the chain position that it names, and its key."""

    table: str
    position: int | None
    row: str


class AuditedLedger:
    """Reads a ledger for its audit."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def lost_scopes(self) -> list[tuple[str, str]]:
        """The scopes with rows that no audit of a chain reads, because they have no name or no chain head: each with
        the first table that has such rows. It takes time in proportion to the rows.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        found: dict[str, str] = {}
        with self._unhurried() as connection:
            known = select(scopes.c.scope_id).join(chain_heads, chain_heads.c.scope_id == scopes.c.scope_id)
            for table in _OF_SCOPES:
                ids = select(table.c.scope_id).where(table.c.scope_id.not_in(known)).distinct()
                for scope_id in connection.execute(ids.limit(_LOST_SHOWN)).scalars():
                    found.setdefault(scope_id, table.name)
        return [(table, scope_id) for scope_id, table in sorted(found.items())]

    @contextmanager
    def snapshot(self, scope_id: str) -> Iterator[Snapshot]:
        """A scope as it is at one moment.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._unhurried() as connection:
            yield Snapshot(connection, scope_id)

    @contextmanager
    def _unhurried(self) -> Iterator[Connection]:
        with self._store.read() as connection:
            if connection.dialect.name == "postgresql":
                # A scan of a whole table takes longer than a request may.
                connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            yield connection


class Snapshot:
    """A scope at one moment."""

    def __init__(self, connection: Connection, scope_id: str) -> None:
        """Reads over a connection whose statements all see one snapshot."""
        self._connection = connection
        self._scope = {"scope": scope_id}
        self.reviews = SeenReviews(connection, scope_id)

    def head(self) -> Head:
        """The end of the chain."""
        return head_of_scope(self._connection, self._scope["scope"])

    def head_at(self, chain_id: str, position: int) -> Head | None:
        """What the entry at a position says that the chain's end was then; None where there is no entry."""
        if position == 0:
            return Head(chain_id)
        row = self._connection.execute(_ROOT, {**self._scope, "at": position}).one_or_none()
        return None if row is None else Head(chain_id, *row)

    def entries(self, after: int, up_to: int, room: int) -> list[AuditedEntry]:
        """The entries after a position: at least one, at most `STRETCH`, and not many more bytes than there is room.

        Args:
            after: The position that they come after.
            up_to: The last position that may be among them.
            room: How many bytes their bodies and requests may have, inflated.
        """
        found = []
        for row in self._stream(_ENTRIES, {"after": after, "to": min(up_to, after + STRETCH)}):
            stored = AuditedEntry(*row)
            stored = stored._replace(body=unpack(stored.body), request=unpack(stored.request))
            found.append(stored)
            room -= sum(len(part) for part in (stored.body, stored.request) if isinstance(part, bytes))
            if room < 0:
                break
        return found

    def searchable(self, after: int, up_to: int) -> dict[Any, Mapping[str, Any]]:
        """The rows that decisions are searched by, of the positions after one and up to another, by their position."""
        rows = self._connection.execute(_SEARCHABLE, {**self._scope, "after": after, "to": up_to})
        return {row["position"]: dict(row) for row in rows.mappings()}

    def changes(self, after: int, up_to: int) -> dict[Any, tuple[Any, Any]]:
        """What the changes of the positions after one and up to another are found by, type and subject, by position."""
        rows = self._connection.execute(_CHANGES, {**self._scope, "after": after, "to": up_to})
        return {position: (entry_type, subject) for position, entry_type, subject in rows}

    def found_changes(self, up_to: int) -> Iterator[ChangeRow]:
        """All changes up to a position, in the order of the chain, one after the other."""
        for row in self._stream(_FOUND_CHANGES, {"to": up_to}):
            found = ChangeRow(*row)
            yield found._replace(body=unpack(found.body))

    def routes(self, rulebook_ids: Sequence[str]) -> Iterator[ChangeRow]:
        """The routes of some rulebook ids, in the order of the chain."""
        if rulebook_ids:
            for row in self._stream(_ROUTES, {"each": rulebook_ids}):
                found = ChangeRow(*row)
                yield found._replace(body=unpack(found.body))

    def documents(self) -> Iterator[DocumentRow]:
        """The documents that the entries of migrations cite, one after the other."""
        for row in self._stream(_DOCUMENTS, {}):
            found = DocumentRow(*row)
            yield found._replace(body=unpack(found.body))

    def stray_change(self) -> Stray | None:
        """A row of the changes that finds no entry of its type."""
        row = self._connection.execute(_STRAY_CHANGE, self._scope).one_or_none()
        return None if row is None else Stray(changes.name, row[0], shown(row[1]))

    def claimed(self, keys: Sequence[bytes]) -> dict[bytes, ClaimRow]:
        """The claims that are stored under these keys."""
        rows = (ClaimRow(*row) for row in self._each(_CLAIMED, keys))
        return {bytes(row.claim): row for row in rows}

    def latest(self, decision_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """The rows of these decisions' latest outcomes."""
        if not decision_ids:
            return {}
        rows = self._connection.execute(_LATEST, {**self._scope, "each": decision_ids})
        return {row["decision_id"]: dict(row) for row in rows.mappings()}

    def outcome_dates(self, decision_ids: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """When the first and the last of all outcomes of these decisions were reported."""
        return {decision_id: (first, last) for decision_id, first, last in self._each(_DATES, decision_ids)}

    def decisions(self, decision_ids: Sequence[str]) -> Iterator[StoredDecision]:
        """These decisions, those that there are, one after the other."""
        if decision_ids:
            for decision_id, position, body, has_request in self._stream(_DECISIONS, {"each": decision_ids}):
                yield StoredDecision(decision_id, position, unpack(body), bool(has_request))

    def erasures(self, decision_ids: Sequence[str]) -> dict[str, tuple[int, str, bytes]]:
        """The last erasure of each of these decisions: its position, its leaf, and its body."""
        found = {}
        for decision_id, position, leaf_hash, body in self._each(_ERASURES, decision_ids):
            found[decision_id] = position, leaf_hash, unpack(body)
        return found

    def registered(self, hashes: Sequence[str]) -> Iterator[StoredRegistration]:
        """The registrations of these rulebooks, one after the other."""
        if hashes:
            yield from (StoredRegistration(*row) for row in self._stream(_BY_HASH, {"each": hashes}))

    def registrations(self, after: tuple[str, bytes] | None, limit: int) -> list[StoredRegistration]:
        """The next registrations in the order of their id and version.

        Args:
            after: The id and version that they come after; None for the first.
            limit: How many at most.
        """
        rulebook_id, version = after or ("", b"")
        values = {"rulebook": rulebook_id, "version": version, "limit": limit}
        return [StoredRegistration(*row) for row in self._stream(_REGISTRATIONS, values)]

    def count_claims(self, up_to: int) -> int:
        """The number of keys that lead to an entry up to a position."""
        return int(self._connection.execute(_COUNT_CLAIMS, {**self._scope, "to": up_to}).scalar_one())

    def claims(self, after: bytes | None, limit: int) -> list[ClaimRow]:
        """The next claims in the order of their keys, after one of them or from the first."""
        rows = self._connection.execute(_CLAIMS, {**self._scope, "after": after or b"", "limit": limit})
        return [ClaimRow(*row) for row in rows]

    def entries_at(self, positions: Sequence[Any]) -> Iterator[AuditedEntry]:
        """The entries at these positions, one after the other, without their requests."""
        if positions:
            for row in self._stream(_AT, {"each": positions}):
                stored = AuditedEntry(*row)
                yield stored._replace(body=unpack(stored.body), request=None)

    def beyond(self, size: int) -> Stray | None:
        """A row that names a position beyond the chain's end, or before its beginning."""
        values = {**self._scope, "to": size}
        for name, query in _BEYOND:
            row = self._connection.execute(query, values).one_or_none()
            if row is not None:
                return Stray(name, row[0], shown(row[1]))
        return None

    def stray_outcome(self) -> Stray | None:
        """A row of the latest outcomes that belongs to no outcome of its decision."""
        row = self._connection.execute(_STRAY_OUTCOME, self._scope).one_or_none()
        return None if row is None else Stray(latest_outcomes.name, row[0], shown(row[1]))

    def miscounted(self) -> Mapping[str, str] | None:
        """The values of a cohort whose counts do not match its latest outcomes."""
        for query in (_UNCOUNTED, _OVERCOUNTED):
            row = self._connection.execute(query, self._scope).one_or_none()
            if row is not None:
                return {name: shown(part) for name, part in zip(_COHORT, row[: len(_COHORT)], strict=True)}
        return None

    def _each(self, query: Select[Any], values: Sequence[object]) -> Iterable[Any]:
        return self._connection.execute(query, {**self._scope, "each": values}) if values else ()

    def _stream(self, query: Select[Any], values: Mapping[str, object]) -> Iterator[Any]:
        rows = self._connection.execution_options(yield_per=_AT_ONCE).execute(query, {**self._scope, **values})
        with closing(rows):
            yield from rows


_ENTRY: Final = scoped(entries, *(raw(entries.c[name]) for name in AuditedEntry._fields))
_ENTRIES: Final = _ENTRY.where(entries.c.position > bindparam("after"), entries.c.position <= bindparam("to")).order_by(
    entries.c.position
)
_AT: Final = _ENTRY.with_only_columns(
    *(
        literal(None).label(name) if name in ("request", "confidence") else raw(entries.c[name])
        for name in AuditedEntry._fields
    )
).where(entries.c.position.in_(EACH))
_ROOT: Final = scoped(entries, entries.c.position, entries.c.merkle_root, entries.c.link_hash).where(
    entries.c.position == bindparam("at")
)
_SEARCHABLE: Final = scoped(decisions, *every(decisions)).where(
    decisions.c.position > bindparam("after"), decisions.c.position <= bindparam("to")
)
_CLAIM_ROW: Final = scoped(claims, *(raw(claims.c[name]) for name in ClaimRow._fields))
_CLAIMED: Final = _CLAIM_ROW.where(claims.c.claim.in_(EACH))
_LATEST: Final = scoped(latest_outcomes, *every(latest_outcomes)).where(latest_outcomes.c.decision_id.in_(EACH))
# Grouped without a bound on the position: the planner would take that for an invitation to walk the whole scope.
_DATES: Final = (
    scoped(entries, entries.c.decision_id, func.min(entries.c.created_at), func.max(entries.c.created_at))
    .where(entries.c.decision_id.in_(EACH), entries.c.entry_type == "outcome")
    .group_by(entries.c.decision_id)
)
_DECISIONS: Final = scoped(
    entries, entries.c.decision_id, entries.c.position, raw(entries.c.body), entries.c.request.is_not(None)
).where(entries.c.decision_id.in_(EACH), entries.c.entry_id == entries.c.decision_id)
_ERASURES: Final = (
    scoped(entries, entries.c.decision_id, entries.c.position, entries.c.leaf_hash, raw(entries.c.body))
    .where(entries.c.decision_id.in_(EACH), entries.c.entry_type == "erasure")
    .order_by(entries.c.decision_id, entries.c.position + 0)
)
_REGISTRATION: Final = scoped(rulebooks, *(raw(rulebooks.c[name]) for name in StoredRegistration._fields))
_BY_HASH: Final = _REGISTRATION.where(rulebooks.c.hash.in_(EACH))
_REGISTRATIONS: Final = (
    _REGISTRATION.where(
        or_(
            rulebooks.c.rulebook_id > bindparam("rulebook"),
            and_(
                rulebooks.c.rulebook_id == bindparam("rulebook"),
                type_coerce(rulebooks.c.version, LargeBinary) > bindparam("version", type_=LargeBinary),
            ),
        )
    )
    .order_by(rulebooks.c.rulebook_id, rulebooks.c.version)
    .limit(bindparam("limit"))
)
_OF_CHANGE: Final = (changes.c.scope_id == entries.c.scope_id) & (changes.c.position == entries.c.position)
_CHANGES: Final = scoped(changes, changes.c.position, changes.c.entry_type, changes.c.subject).where(
    changes.c.position > bindparam("after"), changes.c.position <= bindparam("to")
)
_CHANGE_ROW: Final = scoped(
    changes, changes.c.position, changes.c.entry_type, changes.c.subject, raw(entries.c.body)
).join(entries, _OF_CHANGE)
_FOUND_CHANGES: Final = _CHANGE_ROW.where(changes.c.position <= bindparam("to")).order_by(changes.c.position)
_ROUTES: Final = _CHANGE_ROW.where(changes.c.entry_type == "route", changes.c.subject.in_(EACH)).order_by(
    changes.c.position
)
_DOCUMENTS: Final = scoped(
    migration_documents,
    migration_documents.c.hash,
    migration_documents.c.kind,
    raw(migration_documents.c.body),
).order_by(migration_documents.c.hash)
_STRAY_CHANGE: Final = (
    select(changes.c.position, changes.c.subject)
    .select_from(changes.outerjoin(entries, _OF_CHANGE))
    .where(
        changes.c.scope_id == bindparam("scope"),
        or_(entries.c.position.is_(None), entries.c.entry_type != changes.c.entry_type),
    )
    .order_by(changes.c.position)
    .limit(1)
)
_COUNT_CLAIMS: Final = scoped(claims, func.count()).where(claims.c.position <= bindparam("to"))
_CLAIMS: Final = (
    _CLAIM_ROW.where(claims.c.claim > bindparam("after", type_=LargeBinary))
    .order_by(claims.c.claim)
    .limit(bindparam("limit"))
)


def _first(table: Table, key: Column[Any], outside: ColumnElement[bool]) -> Select[Any]:
    return scoped(table, table.c.position, raw(key)).where(outside).order_by(table.c.position).limit(1)


# Each end for itself, so that each is found at an end of the index.
_BEYOND: Final = [
    (table.name, _first(table, key, outside))
    for table, key in (
        (entries, entries.c.entry_id),
        (decisions, decisions.c.position),
        (changes, changes.c.subject),
        (reviews, reviews.c.decision_id),
        (claims, claims.c.claim),
    )
    for outside in (table.c.position > bindparam("to"), table.c.position < 1)
]

_SAME: Final = (entries.c.scope_id == latest_outcomes.c.scope_id) & (entries.c.position == latest_outcomes.c.position)
_STRAY_OUTCOME: Final = (
    select(latest_outcomes.c.position, latest_outcomes.c.decision_id)
    .select_from(latest_outcomes.outerjoin(entries, _SAME))
    .where(
        latest_outcomes.c.scope_id == bindparam("scope"),
        or_(
            entries.c.position.is_(None),
            entries.c.entry_type != "outcome",
            entries.c.decision_id != latest_outcomes.c.decision_id,
        ),
    )
    .order_by(latest_outcomes.c.position)
    .limit(1)
)

_COHORT: Final = ("policy_id", "policy_version", "verdict", "action")


def _counted(*kept: str) -> Select[Any]:
    """The counts that the latest outcomes give, under some of what they are counted under, and nothing for the rest."""
    latest = latest_outcomes.c
    under = [
        type_coerce(latest[name], _plain(latest[name])).label(name)
        if name in kept
        else literal(b"" if isinstance(latest[name].type, Utf8) else "", _plain(latest[name])).label(name)
        for name in _COHORT
    ]
    return scoped(
        latest_outcomes,
        *under,
        *(func.sum(case((latest.outcome_status == status, 1), else_=0)).label(status) for status in STATUSES),
        func.min(latest.first_reported_at).label("first_reported_at"),
        func.max(latest.last_reported_at).label("last_reported_at"),
    ).group_by(*(latest[name] for name in kept))


def _plain(column: Column[Any]) -> TypeEngine[Any]:
    return LargeBinary() if isinstance(column.type, Utf8) else column.type


_RECOUNT: Final = _counted(*_COHORT).union_all(_counted("policy_id", "verdict", "action"), _counted("policy_id"))
_COUNTS: Final = scoped(
    outcome_counts,
    *(
        type_coerce(outcome_counts.c[name], _plain(outcome_counts.c[name])).label(name)
        for name in (*_COHORT, *STATUSES, "first_reported_at", "last_reported_at")
    ),
)


def _difference(one: Any, other: Any) -> Select[Any]:
    """One row that is in one query and not in the other."""
    rows = select(one.subquery()).except_(select(other.subquery())).subquery()
    return select(rows).limit(1)


# The database compares them, in sorted runs that spill to its disk, for there may be as many cohorts as decisions.
_UNCOUNTED: Final = _difference(_RECOUNT, _COUNTS)
_OVERCOUNTED: Final = _difference(_COUNTS, _RECOUNT)
