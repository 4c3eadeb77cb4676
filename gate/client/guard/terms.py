"""Under what terms a guard lets a body run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gate.client.errors import AlreadyStarted
from gate.client.store.intents import Store

if TYPE_CHECKING:
    from gate.verify import Trust

MAX_AGE: Final = 300.0
"""How old the verdict may be when the body begins, in seconds, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Under what terms a guard lets a body run.

    Attributes:
        store: Where intents are kept.
        trust: Gives the keys that a record must be signed with.
        seconds: How long one call to the service may take with all its tries.
        tries: How often a call is sent at most.
        scope_hash: Gives the scope that must have decided, as records name it; None for any.
        max_age: How old the verdict may be when the body begins, in seconds.
        recover: The recovery hook.
    """

    store: Store
    trust: Callable[[], Trust]
    seconds: float
    tries: int
    scope_hash: Callable[[], str | None]
    max_age: float = MAX_AGE
    recover: Callable[[AlreadyStarted], object] | None = None
