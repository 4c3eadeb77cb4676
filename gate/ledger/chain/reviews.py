"""The reviews of held decisions, as one append of a batch sees and changes them.

The transaction that appends a held decision writes its row, with the owner and the time limit of the scope's settings
at that time. A resolution sets the state of the row once. A receipt of a granted action marks it as executed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import bindparam, insert, literal_column, or_, select, update

from gate.ids import parse_timestamp, timestamp
from gate.ledger.stores.store import Row, Statement
from gate.ledger.tables import review_owners, reviews

if TYPE_CHECKING:
    from gate.ledger.chain.writer import NewEntry
    from gate.proof.chain import Link

HELD: Final = "held"
GRANTED: Final = "granted"
EXECUTED: Final = "executed"
STATES: Final = (HELD, GRANTED, "refused", "expired", EXECUTED)
"""Where a review may stand."""

GRANT_SECONDS: Final = 86_400
"""How long a grant opens an action where the settings say nothing, in seconds."""

MAX_SECONDS: Final = 366 * 86_400
"""The longest time limit, and the longest that a grant opens an action, in seconds."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an execution receipt of a held decision depends on, and what it says.

    Attributes:
        granted: Whether the review was granted when the receipt's flags were made.
        executed: Whether it says that the granted action was executed, and nothing speaks against it.
    """

    granted: bool
    executed: bool


class Review(NamedTuple):
    """Where a review stands: its state, and the chain position and the moment of its resolution, if there is one."""

    state: str
    resolved_position: int | None = None
    resolved_at: str | None = None

    @property
    def granted(self) -> bool:
        """Whether the owner granted the action."""
        return self.state in (GRANTED, EXECUTED)


class Terms(NamedTuple):
    """Who owns a review, how long they have, and how long their grant opens the action; both in seconds."""

    owner: str = ""
    within_seconds: int | None = None
    grant_seconds: int = GRANT_SECONDS


_Decision = tuple[str, str]
"""A scope's id and a decision's."""


class Reviews:
    """The reviews that a batch is about."""

    def __init__(self, found: Sequence[Row], owners: Sequence[Row]) -> None:
        """Takes the rows that `queries` found."""
        self._found = {(row[0], row[1]): Review(*row[2:]) for row in found}
        self._settings: dict[str, dict[tuple[str, str], Terms]] = {}
        for scope_id, rulebook_id, action, owner, within, grant in owners:
            terms = Terms(bytes(owner).decode(), within, grant)
            self._settings.setdefault(scope_id, {})[rulebook_id, bytes(action).decode()] = terms
        self._held: list[dict[str, object]] = []
        self._changed: set[_Decision] = set()

    @staticmethod
    def queries(batch: Sequence[NewEntry]) -> list[tuple[Statement, list[dict[str, object]]]]:
        """What to ask for a batch: the reviews that its entries are about, and the owners of those that it begins."""
        about = {
            (entry.scope_id, entry.link.decision_id): None
            for entry in batch
            if entry.answer is not None or entry.receipt is not None
        }
        begun = {(entry.scope_id, entry.link.policy_id): None for entry in batch if is_held(entry)}
        return [
            (_REVIEWS, [{"scope": scope_id, "decision": decision_id} for scope_id, decision_id in about]),
            (_OWNERS, [{"scope": scope_id, "rulebook": rulebook_id} for scope_id, rulebook_id in begun]),
        ]

    def of(self, entry: NewEntry) -> Review | None:
        """Where the review of an entry's decision stands; None where there is none."""
        return self._found.get((entry.scope_id, entry.link.decision_id))

    def hold(self, entry: NewEntry, link: Link) -> str | None:
        """Begins the review of a decision that is held; when it expires, or None without a time limit."""
        decided, created_at = entry.decided, link["created_at"]
        action = "" if decided is None else decided.action
        terms = terms_of(self._settings.get(entry.scope_id, {}), link["policy_id"] or "", action)
        due = due_at(created_at, terms.within_seconds)
        self._held.append(
            {
                "scope_id": entry.scope_id,
                "decision_id": link["decision_id"],
                "position": link["chain_position"],
                "state": HELD,
                "owner": terms.owner.encode(),
                "policy_id": link["policy_id"],
                "action": action.encode(),
                "created_at": created_at,
                "due_at": due,
                "grant_seconds": terms.grant_seconds,
                "resolved_position": None,
                "resolved_at": None,
            }
        )
        return due

    def resolve(self, entry: NewEntry, state: str, link: Link) -> None:
        """Gives a held review its resolution."""
        self._change(entry, Review(state, link["chain_position"], link["created_at"]))

    def execute(self, entry: NewEntry, review: Review) -> None:
        """Records that a granted action was executed."""
        self._change(entry, review._replace(state=EXECUTED))

    def writes(self) -> list[tuple[Statement, list[dict[str, object]]]]:
        """The rows to write."""
        changed: list[dict[str, object]] = [
            {"scope": scope_id, "decision": decision_id, **_changes(self._found[scope_id, decision_id])}
            for scope_id, decision_id in sorted(self._changed)
        ]
        return [(_HOLD, self._held), (_CHANGE, changed)]

    def _change(self, entry: NewEntry, review: Review) -> None:
        decision = entry.scope_id, entry.link.decision_id
        self._found[decision] = review
        self._changed.add(decision)


def is_held(entry: NewEntry) -> bool:
    """Whether an entry is a decision that is held for its owner: a review that is not advisory."""
    decided = entry.decided
    return decided is not None and decided.verdict == "review" and not decided.advisory


def terms_of(settings: Mapping[tuple[str, str], Terms], rulebook_id: str, action: str) -> Terms:
    """The most specific terms for a rulebook and an action; "" means all others."""
    for of in ((rulebook_id, action), (rulebook_id, ""), ("", "")):
        if of in settings:
            return settings[of]
    return Terms()


def due_at(created_at: str, within_seconds: int | None) -> str | None:
    """When a review expires, as a UTC timestamp; None without a time limit."""
    if within_seconds is None:
        return None
    return timestamp(parse_timestamp(created_at) + timedelta(seconds=within_seconds))


def _changes(review: Review) -> Mapping[str, object]:
    return {"new_state": review.state, "resolution": review.resolved_position, "at": review.resolved_at}


_REVIEWS: Final = Statement(
    select(
        reviews.c.scope_id, reviews.c.decision_id, reviews.c.state, reviews.c.resolved_position, reviews.c.resolved_at
    ).where(reviews.c.scope_id == bindparam("scope"), reviews.c.decision_id == bindparam("decision"))
)
_OWNERS: Final = Statement(
    select(
        review_owners.c.scope_id,
        review_owners.c.rulebook_id,
        review_owners.c.action,
        review_owners.c.owner,
        review_owners.c.within_seconds,
        review_owners.c.grant_seconds,
    ).where(
        review_owners.c.scope_id == bindparam("scope"),
        or_(review_owners.c.rulebook_id == bindparam("rulebook"), review_owners.c.rulebook_id == literal_column("''")),
    )
)
_HOLD: Final = Statement(insert(reviews))
_CHANGE: Final = Statement(
    update(reviews)
    .where(reviews.c.scope_id == bindparam("scope"), reviews.c.decision_id == bindparam("decision"))
    .values(state=bindparam("new_state"), resolved_position=bindparam("resolution"), resolved_at=bindparam("at"))
)
