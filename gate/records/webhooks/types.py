"""The types of events. Each has a bit, so that a scope's head stores the types with an endpoint in one number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

REVIEW: Final = "decision.review"
RESOLUTION: Final = "resolution.made"
ALERT: Final = "anomaly.alert"
PROPOSED: Final = "migration.proposed"
APPROVED: Final = "migration.approved"
ROUTE: Final = "route.changed"
CHECKPOINT: Final = "checkpoint.made"
BROKEN: Final = "chain.broken"
TEST: Final = "webhook.test"
"""The type of the event that `gate webhooks test` sends. Nobody can subscribe to it."""

EVENT_TYPES: Final = (REVIEW, RESOLUTION, ALERT, PROPOSED, APPROVED, ROUTE, CHECKPOINT, BROKEN)
"""The types that endpoints can subscribe to. The ledger stores their positions in this tuple: append new ones."""


def mask_of(types: Iterable[str]) -> int:
    """The bits of some types, as one number.

    Raises:
        ValueError: One of them is not a type of event.
    """
    mask = 0
    for each in types:
        mask |= 1 << EVENT_TYPES.index(each)
    return mask


def types_of(mask: int) -> tuple[str, ...]:
    """The types whose bits a number has. Bits of unknown types are ignored."""
    return tuple(each for place, each in enumerate(EVENT_TYPES) if mask >> place & 1)


def wants(mask: int, event_type: str) -> bool:
    """Whether a number has the bit of a type."""
    return bool(mask & _BITS[event_type])


_BITS: Final = {each: 1 << place for place, each in enumerate(EVENT_TYPES)}
