"""When a failed delivery is tried again, and when it is given up: the schedule that Standard Webhooks advises."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

DELAYS: Final = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1800, 7200, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
"""How long after each failed try the next one comes, before jitter: ten tries in about three days."""

JITTER: Final = 0.2
"""By what share of itself a delay may be longer."""

MAX_TRIES: Final = len(DELAYS) + 1


def next_try(failed: int, now: datetime, chance: float) -> datetime | None:
    """When a delivery is tried again; None where it is dead.

    Args:
        failed: How many tries failed, at least one.
        now: When the last one failed.
        chance: A random number from 0 to 1, so that endpoints that failed together are not tried together.
    """
    if failed >= MAX_TRIES:
        return None
    return now + DELAYS[failed - 1] * (1 + JITTER * chance)
