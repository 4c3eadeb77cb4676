"""Who owns the reviews of a scope, and where its reviews stand.

    ledger.reviews.set_owner(scope, "refund_policy", "", Terms("risk-desk", 14_400, 3_600), now)
    ledger.reviews.find(scope_id, decision_id)       # one review
    ledger.reviews.page(scope_id, state="held", limit=50)    # the 50 that wait longest
    ledger.reviews.due(now, 500)                     # the held reviews whose time limit is over

Owners are settings of a scope, and never part of a rulebook. A review keeps the owner and the time limit that were set
when its decision was made; `reassign` gives those that are held the present ones. No hash covers either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, bindparam, delete, func, literal_column, select, update

from gate.errors import OperatorError
from gate.ids import parse_timestamp, timestamp
from gate.ledger.access.authority import Scope
from gate.ledger.access.operator_log import record
from gate.ledger.chain.reviews import EXECUTED, GRANTED, HELD, Terms, due_at, terms_of
from gate.ledger.stores.store import Store, has_utf8, insert_absent, unheard_of
from gate.ledger.tables import review_owners, reviews

MAX_OWNER: Final = 200
"""How many characters the name of an owner may have."""

MAX_SECONDS: Final = 366 * 86_400
"""The longest time limit, and the longest that a grant opens an action, in seconds."""

_REASSIGNED_AT_ONCE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns which reviews of a scope.

    Attributes:
        rulebook_id: Of which rulebook; "" for all that no other setting names.
        action: Of which action; "" for every other action of the rulebook.
        terms: The owner, their time limit, and how long their grant opens the action.
        set_at: UTC timestamp.
    """

    rulebook_id: str
    action: str
    terms: Terms
    set_at: str


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """Where a review stands. Times are UTC timestamps.

    Attributes:
        scope_id: The scope.
        decision_id: The decision that is held.
        position: Its chain position.
        state: One of `chain.reviews.STATES`.
        owner: Who has to answer; "" where nobody was named.
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


class Reviews:
    """The reviews of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def set_owner(self, scope: Scope, rulebook_id: str, action: str, terms: Terms, now: datetime) -> Ownership:
        """Names the owner of the reviews that begin from now on.

        Args:
            scope: The scope.
            rulebook_id: Of which rulebook; "" for all that no other setting names.
            action: Of which action; "" for every other action of the rulebook.
            terms: The owner, their time limit, and how long their grant opens the action.
            now: The current moment.

        Raises:
            OperatorError: REVIEW_OWNER_INVALID.
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        _require_ownership(rulebook_id, action, terms)
        values = {"owner": terms.owner, "within_seconds": terms.within_seconds, "grant_seconds": terms.grant_seconds}
        with self._store.write() as connection:
            key = {"scope_id": scope.scope_id, "rulebook_id": rulebook_id, "action": action}
            insert_absent(connection, review_owners, {**key, **values, "set_at": timestamp(now)})
            connection.execute(
                update(review_owners).where(*_of(scope, rulebook_id, action)).values(**values, set_at=timestamp(now))
            )
            details = {"scope": scope.name, "action": action, **values}
            record(connection, "review.owner_set", rulebook_id or "*", details, now)
        return Ownership(rulebook_id, action, terms, timestamp(now))

    def remove_owner(self, scope: Scope, rulebook_id: str, action: str, now: datetime) -> None:
        """Removes a setting; reviews that are held keep their owner and time limit.

        Raises:
            OperatorError: REVIEW_OWNER_UNKNOWN.
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        with self._store.write() as connection:
            known = not unheard_of(rulebook_id) and has_utf8(action)
            removed = known and connection.execute(delete(review_owners).where(*_of(scope, rulebook_id, action)))
            if not removed or not removed.rowcount:
                named = f"{rulebook_id or 'every rulebook'}{f', action {action}' if action else ''}"
                raise OperatorError(
                    "REVIEW_OWNER_UNKNOWN",
                    f"The scope {scope.name} has no owner set for {named}; `gate review owners list --scope "
                    f"{scope.name}` shows those that are set.",
                )
            record(connection, "review.owner_removed", rulebook_id or "*", {"scope": scope.name, "action": action}, now)

    def owners(self, scope_id: str) -> list[Ownership]:
        """What is set for a scope, by rulebook and action.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        with self._store.read() as connection:
            return _owners(connection, scope_id)

    def reassign(self, scope: Scope, rulebook_id: str, action: str, now: datetime) -> int:
        """Gives the held reviews that a setting is about the owner and the time limit that are set now.

        It goes on in steps, between which others append; a review that is resolved meanwhile keeps its owner.

        Returns:
            How many reviews changed hands.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        changed, after = 0, 0
        while True:
            with self._store.write() as connection:
                settings = {(each.rulebook_id, each.action): each.terms for each in _owners(connection, scope.scope_id)}
                page = list(
                    connection.execute(
                        _HELD_AFTER, {"scope": scope.scope_id, "after": after, "many": _REASSIGNED_AT_ONCE}
                    )
                )
                for row in page:
                    named = rulebook_id in ("", row.policy_id) and action in ("", row.action)
                    terms = terms_of(settings, row.policy_id, row.action)
                    due = due_at(row.created_at, terms.within_seconds)
                    if named and (row.owner, row.due_at, row.grant_seconds) != (terms.owner, due, terms.grant_seconds):
                        connection.execute(
                            _REASSIGN,
                            {
                                "scope": scope.scope_id,
                                "decision": row.decision_id,
                                "to": terms.owner,
                                "due": due,
                                "seconds": terms.grant_seconds,
                            },
                        )
                        changed += 1
                if len(page) < _REASSIGNED_AT_ONCE:
                    if changed:
                        details = {"scope": scope.name, "action": action, "reviews": changed}
                        record(connection, "review.reassigned", rulebook_id or "*", details, now)
                    return changed
                after = page[-1].position

    def find(self, scope_id: str, decision_id: str) -> ReviewRow | None:
        """The review of a decision; None where it is not held for an owner.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        if unheard_of(decision_id):
            return None
        with self._store.read() as connection:
            row = connection.execute(_ONE, {"scope": scope_id, "decision": decision_id}).one_or_none()
        return None if row is None else _row(row)

    def of(self, scope_id: str, decision_ids: Sequence[str]) -> dict[str, ReviewRow]:
        """The reviews of some decisions, by decision; without those that are not held for an owner.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        with self._store.read() as connection:
            return reviews_of(connection, scope_id, decision_ids)

    def due(self, now: datetime, limit: int) -> list[ReviewRow]:
        """The held reviews of all scopes whose time limit is over, the longest overdue first.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        query = (
            select(reviews)
            .where(reviews.c.state == HELD, reviews.c.due_at.is_not(None), reviews.c.due_at <= timestamp(now))
            .order_by(reviews.c.due_at)
            .limit(limit)
        )
        with self._store.read() as connection:
            return [_row(row) for row in connection.execute(query)]

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
            owner: Who has to answer; "" for those that have no owner, None for all.
            oldest: Whether the oldest come first, and not the newest.
            beyond: The chain position after which, or, newest first, before which the page begins; None for the first.
            created_before: Only those whose decision was made before this UTC timestamp; None for all.
            limit: How many at most.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
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
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
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


def _owners(connection: Connection, scope_id: str) -> list[Ownership]:
    query = select(review_owners).where(review_owners.c.scope_id == scope_id)
    return sorted(
        (
            Ownership(row.rulebook_id, row.action, Terms(row.owner, row.within_seconds, row.grant_seconds), row.set_at)
            for row in connection.execute(query)
        ),
        key=lambda ownership: (ownership.rulebook_id, ownership.action),
    )


def _of(scope: Scope, rulebook_id: str, action: str) -> tuple[Any, ...]:
    columns = review_owners.c
    return columns.scope_id == scope.scope_id, columns.rulebook_id == rulebook_id, columns.action == action


def _row(row: Row[Any]) -> ReviewRow:
    return ReviewRow(**row._mapping)


def _require_ownership(rulebook_id: str, action: str, terms: Terms) -> None:
    if action and not rulebook_id:
        raise _invalid("An action is one of a rulebook; name the rulebook as well.")
    for name, text, longest in (("rulebook id", rulebook_id, 120), ("action", action, 140)):
        if len(text) > longest or unheard_of(text):
            raise _invalid(f"The {name} must have at most {longest} characters of UTF-8.")
    owner = terms.owner
    if not owner.strip() or len(owner) > MAX_OWNER or not has_utf8(owner) or not owner.isprintable():
        raise _invalid(f"The owner must be 1 to {MAX_OWNER} printable characters, such as a team's name.")
    for name, seconds in (("time limit", terms.within_seconds), ("grant's validity", terms.grant_seconds)):
        if seconds is not None and not 1 <= seconds <= MAX_SECONDS:
            raise _invalid(f"The {name} must be between 1 second and {MAX_SECONDS // 86_400} days.")


def _invalid(message: str) -> OperatorError:
    return OperatorError("REVIEW_OWNER_INVALID", message)


# Built once: every resolution and every receipt of a held decision asks it.
_ONE: Final = select(reviews).where(
    reviews.c.scope_id == bindparam("scope"), reviews.c.decision_id == bindparam("decision")
)
_HELD_AFTER: Final = (
    select(reviews)
    .where(reviews.c.scope_id == bindparam("scope"), reviews.c.state == HELD, reviews.c.position > bindparam("after"))
    .order_by(reviews.c.position)
    .limit(bindparam("many"))
)
_REASSIGN: Final = (
    update(reviews)
    .where(
        reviews.c.scope_id == bindparam("scope"),
        reviews.c.decision_id == bindparam("decision"),
        reviews.c.state == HELD,
    )
    .values(owner=bindparam("to"), due_at=bindparam("due"), grant_seconds=bindparam("seconds"))
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
