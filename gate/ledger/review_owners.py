"""Who owns the reviews of a scope.

    ledger.review_owners.set(scope, "refund_policy", "", Terms("risk-desk", 14_400, 3_600), now)

Owners are settings of a scope, and never part of a rulebook. A review keeps the owner and the time limit that were set
when its decision was made; `reassign` gives those that are held the present ones. No hash covers either.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, select, update

from gate.errors import OperatorError
from gate.ids import timestamp
from gate.ledger.access.authority import Scope
from gate.ledger.access.operator_log import record
from gate.ledger.chain.reviews import HELD, MAX_SECONDS, Terms, due_at, terms_of
from gate.ledger.stores.store import Store, has_utf8, insert_absent, unheard_of
from gate.ledger.tables import review_owners, reviews

MAX_OWNER: Final = 200
"""How many characters the name of an owner may have."""

_REASSIGNED_AT_ONCE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns which reviews of a scope.

    Attributes:
        rulebook_id: The rulebook; "" for all rulebooks without a setting of their own.
        action: The action; "" for every other action of the rulebook.
        terms: The owner, their time limit, and how long their grant opens the action.
        set_at: UTC timestamp.
    """

    rulebook_id: str
    action: str
    terms: Terms
    set_at: str


class ReviewOwners:
    """The owners that are set in a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def set(self, scope: Scope, rulebook_id: str, action: str, terms: Terms, now: datetime) -> Ownership:
        """Names the owner of the reviews that begin from now on.

        Args:
            scope: The scope.
            rulebook_id: The rulebook; "" for all rulebooks without a setting of their own.
            action: The action; "" for every other action of the rulebook.
            terms: The owner, their time limit, and how long their grant opens the action.
            now: The current moment.

        Raises:
            OperatorError: `REVIEW_OWNER_INVALID`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
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

    def remove(self, scope: Scope, rulebook_id: str, action: str, now: datetime) -> None:
        """Removes a setting; reviews that are held keep their owner and time limit.

        Raises:
            OperatorError: `REVIEW_OWNER_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            known = not unheard_of(rulebook_id) and has_utf8(action)
            removed = known and connection.execute(delete(review_owners).where(*_of(scope, rulebook_id, action)))
            if not removed or not removed.rowcount:
                named = f"{rulebook_id or 'every rulebook'}{f', action {action}' if action else ''}"
                raise OperatorError(
                    "REVIEW_OWNER_UNKNOWN",
                    f"The scope {scope.name} has no owner set for {named}. `gate review owners list --scope "
                    f"{scope.name}` shows the owners that are set.",
                )
            record(connection, "review.owner_removed", rulebook_id or "*", {"scope": scope.name, "action": action}, now)

    def of(self, scope_id: str) -> list[Ownership]:
        """The settings of a scope, by rulebook and action.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            return _owners(connection, scope_id)

    def reassign(self, scope: Scope, rulebook_id: str, action: str, now: datetime) -> int:
        """Gives the held reviews that a setting is about the owner and the time limit that are set now.

        The time limit counts from `now`. Counted from the decision, it might be over before the new owner learns of it.
        A review that already has this owner and limit keeps its time. The change runs in steps, and others can append
        in between. A review that is resolved meanwhile keeps its owner.

        Returns:
            How many reviews changed hands.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        changed = 0
        after: int | None = 0
        while after is not None:
            with self._store.write() as connection:
                moved, after = _reassigned(connection, scope.scope_id, rulebook_id, action, after, timestamp(now))
                changed += moved
                if after is None and changed:
                    details = {"scope": scope.name, "action": action, "reviews": changed}
                    record(connection, "review.reassigned", rulebook_id or "*", details, now)
        return changed


def _reassigned(
    connection: Connection, scope_id: str, rulebook_id: str, action: str, after: int, now: str
) -> tuple[int, int | None]:
    """One step of `reassign`: how many reviews changed hands, and the position after which the next step begins."""
    settings = {(each.rulebook_id, each.action): each.terms for each in _owners(connection, scope_id)}
    page = connection.execute(_HELD_AFTER, {"scope": scope_id, "after": after, "many": _REASSIGNED_AT_ONCE}).all()
    changed = 0
    for row in page:
        named = rulebook_id in ("", row.policy_id) and action in ("", row.action)
        terms = terms_of(settings, row.policy_id, row.action)
        same = (terms.owner, due_at(row.created_at, terms.within_seconds), terms.grant_seconds)
        if named and (row.owner, row.due_at, row.grant_seconds) != same:
            set_to = {"to": terms.owner, "due": due_at(now, terms.within_seconds), "seconds": terms.grant_seconds}
            connection.execute(_REASSIGN, {"scope": scope_id, "decision": row.decision_id, **set_to})
            changed += 1
    return changed, page[-1].position if len(page) == _REASSIGNED_AT_ONCE else None


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


def _require_ownership(rulebook_id: str, action: str, terms: Terms) -> None:
    if action and not rulebook_id:
        raise _invalid("An action belongs to a rulebook. Give the rulebook, too.")
    for name, text, longest in (("rulebook id", rulebook_id, 120), ("action", action, 140)):
        if len(text) > longest or unheard_of(text):
            raise _invalid(f"The {name} must have at most {longest} characters in UTF-8.")
    owner = terms.owner
    if not owner.strip() or len(owner) > MAX_OWNER or not has_utf8(owner) or not owner.isprintable():
        raise _invalid(f"The owner must be 1 to {MAX_OWNER} printable characters, such as a team's name.")
    for name, seconds in (("time limit", terms.within_seconds), ("grant's validity", terms.grant_seconds)):
        if seconds is not None and not 1 <= seconds <= MAX_SECONDS:
            raise _invalid(f"The {name} must be between 1 second and {MAX_SECONDS // 86_400} days.")


def _invalid(message: str) -> OperatorError:
    return OperatorError("REVIEW_OWNER_INVALID", message)


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
