"""Where the reviews of a scope stand.

    ledger.reviews.find(scope_id, decision_id)       # one review
    ledger.reviews.page(scope_id, state="held", limit=50)    # the 50 that wait longest
    ledger.reviews.due(now, 500)                     # the held reviews whose time limit is over

A review keeps the owner and the time limit that were set when its decision was made. No hash covers either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, bindparam, func, literal_column, select

from gate.ids import parse_timestamp, timestamp
from gate.ledger.chain.reviews import EXECUTED, GRANTED, HELD, MAX_SECONDS
from gate.ledger.stores.store import Store, has_utf8, unheard_of
from gate.ledger.tables import reviews


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """Where a review stands. Times are UTC timestamps.

    Attributes:
        scope_id: The scope.
        decision_id: The decision that is held.
        position: Its chain position.
        state: One of `chain.reviews.STATES`.
        owner: The owner who must answer; "" if the review has no owner.
        policy_id: The policy that held it.
        action: The action label of the decision.
        created_at: When the decision was made.
        due_at: When the review expires; None without a time limit.
        grant_seconds: How long a grant opens the action.
        resolved_position: The chain position of its resolution; None while there is none.
        resolved_at: When it was resolved; None while it is not.
    """

    scope_id: str
    decision_id: str
    position: int
    state: str
    owner: str
    policy_id: str
    action: str
    created_at: str
    due_at: str | None
    grant_seconds: int
    resolved_position: int | None
    resolved_at: str | None

    @property
    def granted(self) -> bool:
        """Whether the owner granted the action."""
        return self.state in (GRANTED, EXECUTED)

    @property
    def grant_ends_at(self) -> str | None:
        """When the owner's grant ends, as a UTC timestamp; None where they did not grant the action."""
        if not self.granted or self.resolved_at is None:
            return None
        return timestamp(parse_timestamp(self.resolved_at) + timedelta(seconds=self.grant_seconds))

    def is_due(self, now: datetime) -> bool:
        """Whether its time limit is over at a moment."""
        return self.due_at is not None and self.due_at <= timestamp(now)


class Waiting(NamedTuple):
    """The held reviews of an owner: their number, since when the oldest waits, and how many have to be answered by the
    moment that was asked for.
    """

    owner: str
    number: int
    oldest_at: str
    due: int


class OpenGrants(NamedTuple):
    """Grants that open an action still: their number, and when the last of them ends as a UTC timestamp."""

    number: int
    until: str | None


class Reviews:
    """The reviews of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def find(self, scope_id: str, decision_id: str) -> ReviewRow | None:
        """The review of a decision; None where it is not held for an owner.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if unheard_of(decision_id):
            return None
        with self._store.read() as connection:
            row = connection.execute(_ONE, {"scope": scope_id, "decision": decision_id}).one_or_none()
        return None if row is None else _row(row)

    def of(self, scope_id: str, decision_ids: Sequence[str]) -> dict[str, ReviewRow]:
        """The reviews of some decisions, by decision; without those that are not held for an owner.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            return reviews_of(connection, scope_id, decision_ids)

    def due(self, now: datetime, limit: int) -> list[ReviewRow]:
        """The held reviews of all scopes whose time limit is over, the longest overdue first.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        query = (
            select(reviews)
            .where(reviews.c.state == HELD, reviews.c.due_at.is_not(None), reviews.c.due_at <= timestamp(now))
            .order_by(reviews.c.due_at)
            .limit(limit)
        )
        with self._store.read() as connection:
            return [_row(row) for row in connection.execute(query)]

    def open_grants(self, now: datetime) -> OpenGrants:
        """The grants of all scopes that have not ended and were not reported as executed.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        earliest = timestamp(now - timedelta(seconds=MAX_SECONDS))
        with self._store.read() as connection:
            granted = connection.execute(_GRANTED_SINCE, {"earliest": earliest})
            ends = [parse_timestamp(at) + timedelta(seconds=seconds) for at, seconds in granted]
        still = [end for end in ends if end > now]
        return OpenGrants(len(still), timestamp(max(still)) if still else None)

    def page(
        self,
        scope_id: str,
        *,
        state: str,
        owner: str | None = None,
        oldest: bool = True,
        beyond: int | None = None,
        created_before: str | None = None,
        limit: int,
    ) -> list[ReviewRow]:
        """The reviews of a scope in a state, in chain order.

        Args:
            scope_id: The scope.
            state: One of `chain.reviews.STATES`.
            owner: The owner who must answer; "" for reviews without an owner, None for all.
            oldest: Whether the oldest come first, and not the newest.
            beyond: The chain position after which, or, newest first, before which the page begins; None for the first.
            created_before: Only those whose decision was made before this UTC timestamp; None for all.
            limit: How many at most.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if any(not has_utf8(text) for text in (state, owner or "")):
            return []
        columns, position = reviews.c, reviews.c.position
        chosen = [columns.scope_id == scope_id, columns.state == state]
        chosen += [] if owner is None else [columns.owner == owner]
        chosen += [] if beyond is None else [position > beyond if oldest else position < beyond]
        chosen += [] if created_before is None else [columns.created_at < created_before]
        query = select(reviews).where(*chosen).order_by(position if oldest else position.desc()).limit(limit)
        with self._store.read() as connection:
            return [_row(row) for row in connection.execute(query)]

    def waiting(self, scope_id: str, due_by: datetime) -> list[Waiting]:
        """The held reviews of a scope by owner, the owner whose oldest review waits longest first.

        Args:
            scope_id: The scope.
            due_by: The moment up to which a time limit counts as due.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            asked = {"scope": scope_id, "by": timestamp(due_by)}
            due = {row.owner: row.due for row in connection.execute(_DUE_BY_OWNER, asked)}
            held = connection.execute(_HELD_BY_OWNER, {"scope": scope_id}).all()
            if not held:
                return []
            firsts = [row.first for row in held]
            query = select(reviews.c.position, reviews.c.created_at).where(
                reviews.c.scope_id == scope_id, reviews.c.state == HELD, reviews.c.position.in_(firsts)
            )
            created_at = {row.position: row.created_at for row in connection.execute(query)}
        found = [Waiting(row.owner, row.number, created_at[row.first], due.get(row.owner, 0)) for row in held]
        return sorted(found, key=lambda waiting: (waiting.oldest_at, waiting.owner))


def reviews_of(connection: Connection, scope_id: str, decision_ids: Sequence[str]) -> dict[str, ReviewRow]:
    """As `Reviews.of`, over a connection."""
    known = [decision_id for decision_id in decision_ids if not unheard_of(decision_id)]
    if not known:
        return {}
    query = select(reviews).where(reviews.c.scope_id == scope_id, reviews.c.decision_id.in_(known))
    return {row.decision_id: _row(row) for row in connection.execute(query)}


def _row(row: Row[Any]) -> ReviewRow:
    return ReviewRow(**row._mapping)


# Built once: every resolution and every receipt of a held decision asks it.
_ONE: Final = select(reviews).where(
    reviews.c.scope_id == bindparam("scope"), reviews.c.decision_id == bindparam("decision")
)
_GRANTED_SINCE: Final = select(reviews.c.resolved_at, reviews.c.grant_seconds).where(
    reviews.c.state == GRANTED, reviews.c.resolved_at > bindparam("earliest")
)
# Of the index by owner alone; what is due has one of its own.
_HELD_BY_OWNER: Final = (
    select(reviews.c.owner, func.count().label("number"), func.min(reviews.c.position).label("first"))
    .where(reviews.c.scope_id == bindparam("scope"), reviews.c.state == HELD)
    .group_by(reviews.c.owner)
)
_DUE_BY_OWNER: Final = (
    select(reviews.c.owner, func.count().label("due"))
    .where(
        reviews.c.scope_id == bindparam("scope"),
        # Written out, for the index is one of these rows alone.
        reviews.c.state == literal_column(f"'{HELD}'"),
        reviews.c.due_at.is_not(None),
        reviews.c.due_at <= bindparam("by"),
    )
    .group_by(reviews.c.owner)
)
