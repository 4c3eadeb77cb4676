"""The conditions under which a guard runs a body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gate.client.errors import AlreadyStarted
from gate.client.store.intents import Store

if TYPE_CHECKING:
    from gate.verify import Trust

MAX_AGE: Final = 300.0
"""The default maximum age of a verdict when the body starts, in seconds."""

OnReview: TypeAlias = Literal["raise", "wait"]
"""What a guard does if the action is held for review: it raises an error, or it waits for the owner."""

REVIEW_SECONDS: Final = 300.0
"""How long a guard waits for the owner of a held action by default, in seconds."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions under which a guard runs a body.

    Attributes:
        store: The store of the intents.
        trust: Returns the keys that records must be signed with.
        seconds: The time limit of one call with all its retries.
        tries: How often to send a call at most.
        scope_hash: Returns the scope that must decide, as records state it, or None for any scope.
        max_age: The maximum age of the verdict or the grant when the body starts, in seconds. None means `MAX_AGE`
            for a verdict; a grant is then valid until it ends.
        recover: The recovery hook.
        waits: Whether to wait for the owner of a held action.
        review_seconds: How long to wait, in seconds.
    """

    store: Store
    trust: Callable[[], Trust]
    seconds: float
    tries: int
    scope_hash: Callable[[], str | None]
    max_age: float | None = None
    recover: Callable[[AlreadyStarted], object] | None = None
    waits: bool = False
    review_seconds: float = REVIEW_SECONDS

    @property
    def verdict_age(self) -> float:
        """The maximum age of the verdict when the body starts, in seconds."""
        return MAX_AGE if self.max_age is None else self.max_age
