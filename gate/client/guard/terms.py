"""Under what terms a guard lets a body run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gate.client.errors import AlreadyStarted
from gate.client.store.intents import Store

if TYPE_CHECKING:
    from gate.verify import Trust

MAX_AGE: Final = 300.0
"""How old the verdict may be when the body begins, in seconds, where nothing else is said."""

OnReview: TypeAlias = Literal["raise", "wait"]
"""What a guard does where the action is held for review: it raises, or it waits for the owner."""

REVIEW_SECONDS: Final = 300.0
"""How long the owner of a held action is waited for, in seconds, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Under what terms a guard lets a body run.

    Attributes:
        store: Where intents are kept.
        trust: Gives the keys that a record must be signed with.
        seconds: How long one call to the service may take with all its tries.
        tries: How often a call is sent at most.
        scope_hash: Gives the scope that must have decided, as records name it; None for any.
        max_age: How old the verdict, or the owner's grant, may be when the body begins, in seconds. None for
            `MAX_AGE`, and for a grant until it ends.
        recover: The recovery hook.
        waits: Whether the owner of a held action is waited for.
        review_seconds: How long, in seconds.
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
        """How old the verdict may be when the body begins, in seconds."""
        return MAX_AGE if self.max_age is None else self.max_age
