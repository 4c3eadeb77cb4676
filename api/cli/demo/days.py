"""The number of the demo's decisions on each day, and their times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from random import Random
from typing import Final

from api.cli.demo.parameters import Calendar

_HOUR_MS: Final = 60 * 60 * 1000


def day_weights(random: Random, calendar: Calendar, dates: Sequence[datetime], noise: float) -> list[float]:
    """Draws the share of a year's decisions for each day, by weekday, month, and chance."""
    weights = [
        calendar["weekdays"][date.weekday()] * calendar["months"][date.month - 1] * math.exp(random.gauss(0, noise))
        for date in dates
    ]
    return [weight if day >= calendar.get("from_day", 0) else 0.0 for day, weight in enumerate(weights)]


def time_of_day(random: Random, hours: Sequence[float]) -> int:
    """Draws a time, in milliseconds after midnight, by the weights of the hours."""
    (hour,) = random.choices(range(24), hours)
    return hour * _HOUR_MS + random.randrange(_HOUR_MS)


def spread(total: int, weights: Sequence[float]) -> list[int]:
    """Splits a number into whole parts by weights. The sum of the parts is always that number."""
    whole = math.fsum(weights)
    ends = [0, *(round(total * part / whole) for part in accumulate(weights))]
    # The last sum may differ from the whole by a rounding.
    ends[-1] = total
    return [ends[at + 1] - ends[at] for at in range(len(weights))]
