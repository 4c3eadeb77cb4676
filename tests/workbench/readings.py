"""Chains of decisions with a reading each, as somebody draws them."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tests.workbench.made_up import DAY, MONDAY, WEEK, MadeUp

METRIC: Final = "reading"
"""The metric that decisions of `readings` have."""

Draw = Callable[[random.Random, int], float]
"""Draws a reading of a week."""


def read(chain: MadeUp, at: datetime, value: float, version: str = "1") -> None:
    """A decision that was let through and succeeded a day later, with a reading."""
    decision_id = chain.decide(at, version=version)
    chain.receipt(decision_id, at)
    chain.outcome(decision_id, at + DAY, "succeeded", observed_metrics={METRIC: round(value, 3)})


def readings(draw: Draw, *, weeks: int = 24, per_week: int = 60, seed: int = 1) -> MadeUp:
    """So many readings in each week, at any time of it."""
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    chain = MadeUp()
    for week in range(weeks):
        for minute in sorted(chance.sample(range(7 * 24 * 60), per_week)):
            read(chain, MONDAY + week * WEEK + minute * timedelta(minutes=1), draw(chance, week))
    return chain
