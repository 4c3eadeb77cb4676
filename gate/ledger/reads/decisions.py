"""The search of a scope's decisions, newest first, over narrow rows that are stored next to the records.

A search looks through so many rows and no more: it answers what it found there, and where to go on from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, UnaryExpression, false, func, select

from gate.ledger.chain.writer import SEARCHABLE
from gate.ledger.packing import unpack
from gate.ledger.reviews import ReviewRow, reviews_of
from gate.ledger.stores.store import Store, read_object, unheard_of
from gate.ledger.tables import decisions, entries, reviews
from gate.records.documents import Record

LOOKED_THROUGH: Final = 20_000
"""How many decisions one search looks through."""

_READ: Final = 8 * 1024 * 1024
"""How many bytes of records one search reads, and at least one of them."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """The conditions that a decision must meet to be found; None for no condition.

    Attributes:
        verdict: yes, no or review.
        policy_id: The policy's id.
        policy_version: The policy's version.
        reason_code: The reason code.
        target_object_id: The resource that it is bound to.
        since: The first created_at, as a UTC timestamp.
        until: The first created_at that is too late.
        state: Where its review stands; one of `chain.reviews.STATES`.
        owner: The owner of its review, "" for none; only together with a state.
    """

    verdict: str | None = None
    policy_id: str | None = None
    policy_version: str | None = None
    reason_code: str | None = None
    target_object_id: str | None = None
    since: str | None = None
    until: str | None = None
    state: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A decision that was found: its chain position, its stored record, and its review where it is held."""

    position: int
    record: Record
    review: ReviewRow | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What a search found.

    Attributes:
        found: The decisions, newest first; there may be none, and yet more to look through.
        next_position: What to search before to go on; None where everything was looked through.
    """

    found: list[Found]
    next_position: int | None


class Decisions:
    """Searches the decisions of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def search(
        self,
        scope_id: str,
        criteria: Criteria,
        *,
        limit: int,
        before: int | None = None,
        oldest_first: bool = False,
        looked_through: int = LOOKED_THROUGH,
    ) -> Page:
        """The decisions of a scope that meet the criteria, newest first in chain order unless asked otherwise.

        Args:
            scope_id: The scope.
            criteria: The conditions that they must meet.
            limit: How many at most.
            before: Only those beyond this chain position in that order; None for the first.
            oldest_first: Whether the oldest come first.
            looked_through: How many are looked through at most.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the ledger or a record in it cannot be read.
        """
        if any(unheard_of(text) for text in (criteria.policy_id or "", criteria.reason_code or "")):
            return Page([], None)
        with self._store.read() as connection:
            order = _OLDEST if oldest_first else _NEWEST
            positions, end = _matches(connection, scope_id, criteria, before, limit + 1, looked_through, order)
            found: list[Found] = []
            read = 0
            for position in positions[:limit]:
                body = _body(connection, scope_id, position)
                record: Record = read_object(body, f"the decision at chain position {position}")
                read += len(body)
                if _is_bound_to(record, criteria.target_object_id):
                    found.append(Found(position, record))
                if read > _READ and position != positions[-1]:
                    return Page(_reviewed(connection, scope_id, found), position)
            found = _reviewed(connection, scope_id, found)
            if len(positions) > limit:
                return Page(found, positions[limit - 1])
            return Page(found, end)


class _Order(NamedTuple):
    """An order of chain positions: the clause, what is beyond a position, and what gives the last of several."""

    by: Callable[[ColumnElement[int]], UnaryExpression[int]]
    beyond: Callable[[ColumnElement[int], int], ColumnElement[bool]]
    last: Callable[[ColumnElement[int]], ColumnElement[int]]


_NEWEST: Final = _Order(lambda position: position.desc(), lambda position, at: position < at, func.min)
_OLDEST: Final = _Order(lambda position: position.asc(), lambda position, at: position > at, func.max)


def _matches(
    connection: Connection,
    scope_id: str,
    criteria: Criteria,
    before: int | None,
    limit: int,
    looked_through: int,
    order: _Order,
) -> tuple[list[int], int | None]:
    """The first positions that meet the criteria, and where the looking ended if more may follow."""
    # A window of reviews is read whole, so that it begins as small as a page and grows where little matches.
    size = looked_through if criteria.state is None else min(limit, looked_through)
    positions: list[int] = []
    while True:
        window = _window(scope_id, criteria, before, size, order)
        positions += connection.execute(_matching(window, criteria, limit - len(positions), order)).scalars()
        end = _end(connection, window, size, order)
        looked_through -= size
        if len(positions) == limit or end is None or looked_through == 0:
            return positions, end
        before, size = end, min(looked_through, _GROWTH * size)


_GROWTH: Final = 8


def _window(scope_id: str, criteria: Criteria, before: int | None, looked_through: int, order: _Order) -> Select[Any]:
    """The rows that are looked through. A verdict and a review's state have indexes of their own, and cost no looking.

    Raises:
        ValueError: An owner without a state, which no index finds.
    """
    if criteria.state is not None:
        return _window_of_reviews(scope_id, criteria, before, looked_through, order)
    if criteria.owner is not None:
        raise ValueError("An owner requires a state. Send both.")
    columns = decisions.c
    chosen = [columns.scope_id == scope_id]
    chosen += [] if criteria.verdict is None else [columns.verdict == criteria.verdict]
    chosen += [] if before is None else [order.beyond(columns.position, before)]
    return select(decisions).where(*chosen).order_by(order.by(columns.position)).limit(looked_through)


def _window_of_reviews(
    scope_id: str, criteria: Criteria, before: int | None, looked_through: int, order: _Order
) -> Select[Any]:
    columns = reviews.c
    chosen = [columns.scope_id == scope_id, columns.state == criteria.state]
    chosen += [] if criteria.owner is None else [columns.owner == criteria.owner]
    chosen += [] if criteria.verdict in (None, "review") else [false()]
    chosen += [] if before is None else [order.beyond(columns.position, before)]
    # Positions alone first: joined at once, the planner may walk the decisions of the scope in their order.
    found = (
        select(columns.position).where(*chosen).order_by(order.by(columns.position)).limit(looked_through).subquery()
    )
    return select(decisions).where(decisions.c.scope_id == scope_id, decisions.c.position.in_(select(found.c.position)))


def _reviewed(connection: Connection, scope_id: str, found: Sequence[Found]) -> list[Found]:
    """What was found, with the reviews of those that are held for an owner."""
    ids = [each.record["decision_id"] for each in found if each.record["verdict"] == "review"]
    held = reviews_of(connection, scope_id, ids)
    return [replace(each, review=held.get(each.record["decision_id"])) for each in found]


def _matching(window: Select[Any], criteria: Criteria, limit: int, order: _Order) -> Select[Any]:
    rows = window.subquery()
    named = ("policy_id", "policy_version", "reason_code")
    chosen = [rows.c[name] == getattr(criteria, name) for name in named if getattr(criteria, name) is not None]
    if criteria.target_object_id is not None:
        chosen.append(rows.c.target_object_id == criteria.target_object_id[:SEARCHABLE])
    chosen += [] if criteria.since is None else [rows.c.created_at >= criteria.since]
    chosen += [] if criteria.until is None else [rows.c.created_at < criteria.until]
    return select(rows.c.position).where(*chosen).order_by(order.by(rows.c.position)).limit(limit)


def _body(connection: Connection, scope_id: str, position: int) -> bytes:
    chosen = select(entries.c.body).where(entries.c.scope_id == scope_id, entries.c.position == position)
    return unpack(connection.execute(chosen).scalar_one_or_none() or b"")


def _is_bound_to(record: Mapping[str, object], target_object_id: str | None) -> bool:
    if target_object_id is None:
        return True
    binding = record.get("action_binding")
    return isinstance(binding, dict) and binding.get("resource") == target_object_id


def _end(connection: Connection, window: Select[Any], looked_through: int, order: _Order) -> int | None:
    """Where a window ends that may have others behind it."""
    rows = window.subquery()
    count, last = connection.execute(select(func.count(), order.last(rows.c.position))).one()
    return last if count == looked_through else None
