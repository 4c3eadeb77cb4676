"""The reviews of held decisions: the queue, one of them as a case, and where the one of a decision stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, cast

from gate.decisions.cited import CitedRecords
from gate.decisions.reviews.resolutions import Resolutions
from gate.decisions.reviews.standing import ReviewStanding
from gate.errors import GateError
from gate.instance.instance import Instance
from gate.ledger.chain.reviews import HELD, STATES
from gate.ledger.reads.decisions import Criteria, Page
from gate.ledger.reviews import ReviewRow, Waiting
from gate.records.documents import Cited, Record
from gate.verify import Verification
from gate.verify.resolution import verify_resolution
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.store.snapshots import FRESH_FOR, SCOPES

if TYPE_CHECKING:
    from gate.verify.reports import ReportedOn

SOON: Final = timedelta(hours=1)
"""A review is due soon if its time limit is over within this time."""

ROWS: Final = 50
"""How many reviews a page of the queue shows."""

LIKE: Final = 500
"""Among how many reviews of each state those like another one are looked for, the newest."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the review of a decision stands.

    Attributes:
        review: What the ledger says; None where it is not as its resolution says.
        verification: Whether its resolution is as it was made; None where there is none.
        fault: Why there is nothing to say; None where there is.
    """

    review: ReviewStanding | None
    verification: Verification | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around a review in the queue.

    Attributes:
        earlier: The id of the held decision before it; None for the first.
        later: The id of the one behind it; None for the last.
        like: How earlier reviews of the same policy and action ended: how many, by state.
    """

    earlier: str | None
    later: str | None
    like: Mapping[str, int]


class ReviewReads:
    """Reads the reviews of an instance's ledger."""

    def __init__(self, instance: Instance, clock: Callable[[], datetime]) -> None:
        """Takes the instance and the clock."""
        self._instance: Final = instance
        self._reviews: Final = instance.ledger.reviews
        self._owners: Final = instance.ledger.review_owners
        self._clock: Final = clock
        self._waiting: Final = Memo(SCOPES)
        self.resolutions: Final[Resolutions] = instance.resolutions(clock)

    def waiting(self, scope_id: str) -> list[Waiting]:
        """The held reviews of a scope by owner, with those that are due soon, as `FRESH_FOR` ago or later.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """

        def count() -> tuple[datetime, list[Waiting]]:
            at = self._clock()
            return at, self._reviews.waiting(scope_id, at + SOON)

        found = self._waiting.get(scope_id, count, still=lambda of: self._clock() - of[0] < FRESH_FOR)
        return found[1]

    def recount(self, scope_id: str) -> None:
        """Counts the held reviews of a scope again, after somebody resolved one and expects a lower number."""
        self._waiting.drop(lambda key: key == scope_id)

    def owners(self, scope_id: str) -> list[str]:
        """The owners that a scope's settings name, or that have something to answer, by name.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        named = {each.terms.owner for each in self._owners.of(scope_id)}
        return sorted((named | {each.owner for each in self.waiting(scope_id)}) - {""})

    def queue(self, scope_id: str, state: str, owner: str | None, beyond: int | None) -> Page:
        """A page of the reviews in a state: those that are held oldest first, all others newest first.

        Args:
            scope_id: The scope.
            state: One of `chain.reviews.STATES`.
            owner: The owner who must answer; "" for reviews without an owner, None for all.
            beyond: The chain position beyond which the page begins; None for the first.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        criteria = Criteria(state=state, owner=owner)
        return self._instance.ledger.decisions.search(
            scope_id, criteria, limit=ROWS, before=beyond, oldest_first=state == HELD
        )

    def find(self, scope_id: str, decision_id: str) -> ReviewRow | None:
        """The review of a decision; None where it is not held for an owner.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return self._reviews.find(scope_id, decision_id)

    def cited(self, review: ReviewRow) -> Cited:
        """Of the record of a review's decision, what reports cite: its action above all.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return CitedRecords(self._instance.ledger.entries).find(review.scope_id, review.decision_id)

    def following(self, review: ReviewRow, owner: str | None) -> str | None:
        """The held decision behind a review, or else the oldest one; None where nothing is held.

        Args:
            review: The review.
            owner: The owner whose reviews count, as `queue` takes it.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        later = self._beside(review, owner, oldest=True)
        if later is not None:
            return later
        first = self._reviews.page(review.scope_id, state=HELD, owner=owner, limit=1)
        return first[0].decision_id if first and first[0].decision_id != review.decision_id else None

    def around(self, review: ReviewRow, owner: str | None) -> Around:
        """What stands around a review in the queue of an owner, as `queue` takes it.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        later, earlier = (self._beside(review, owner, oldest=oldest) for oldest in (True, False))
        return Around(earlier, later, self._like(review))

    def standing(self, scope_id: str, record: Record) -> Standing | None:
        """Where the review of a decision stands; None where it is not held for an owner.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the ledger cannot be read.
        """
        if self.find(scope_id, record["decision_id"]) is None:
            return None
        try:
            review = self.resolutions.standing(scope_id, record["decision_id"])
        except GateError as error:
            return Standing(None, fault=error.message)
        resolution = review["resolution"]
        if resolution is None:
            return Standing(review)
        return Standing(review, verify_resolution(resolution, cast("ReportedOn", record), self._instance.trust()))

    def _beside(self, review: ReviewRow, owner: str | None, *, oldest: bool) -> str | None:
        found = self._reviews.page(
            review.scope_id, state=HELD, owner=owner, oldest=oldest, beyond=review.position, limit=1
        )
        return found[0].decision_id if found else None

    def _like(self, review: ReviewRow) -> Mapping[str, int]:
        """Among the newest of each state, back to where all of them are known."""
        pages = [
            self._reviews.page(review.scope_id, state=state, oldest=False, limit=LIKE)
            for state in STATES
            if state != HELD
        ]
        known = max((page[-1].position for page in pages if len(page) == LIKE), default=0)
        return Counter(_alike(review, (each for page in pages for each in page if each.position >= known)))


def _alike(review: ReviewRow, among: Iterable[ReviewRow]) -> Iterable[str]:
    named = (review.policy_id, review.action)
    return (
        each.state
        for each in among
        if (each.policy_id, each.action) == named and each.decision_id != review.decision_id
    )
