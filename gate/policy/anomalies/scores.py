"""How strong an anomaly is: each measure has three marks, and a score between them follows a straight line.

    mark          score   severity
    noticeable    0.35    low: listed, unless a caller asks for another threshold
    considerable  0.6     medium
    great         0.8     high: an alert

The marks are conventions of the measures' own literature, or follow from what the protocol asks; none was fitted to
data. `docs/reference/formulas/anomalies.md` names the source of each.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

THRESHOLD: Final = 0.35
"""The least score that is listed, unless the caller asks otherwise."""

MEDIUM: Final = 0.6
HIGH: Final = 0.8

BELOW_HIGH: Final = 0.79
"""The greatest score of what is not certain, not many, or what a change is made for."""

SEVERITIES: Final = ("high", "medium", "low")

_DIGITS: Final = 6


class Marks(NamedTuple):
    """Where a measure is noticeable, considerable and great."""

    noticeable: float
    considerable: float
    great: float


EFFECT: Final = Marks(0.2, 0.5, 0.8)
"""Cohen's h: small, medium, large. It is that end of its interval which is nearer to none."""

HARM: Final = Marks(0.2, 0.35, 0.5)
"""Cohen's h of outcomes that got worse: a medium effect on results is great."""

INDEX: Final = Marks(0.1, 0.25, 0.5)
"""The population stability index: 0.1 some change, 0.25 a great one; twice that is the end of the scale."""

DELTA: Final = Marks(0.147, 0.33, 0.474)
"""Cliff's delta: small, medium, large. It is that end of its interval which is nearer to none."""

TIMES: Final = Marks(2.0, 3.0, 5.0)
"""How many times as many decisions as usual."""

SURPLUS: Final = Marks(0.05, 0.25, 0.5)
"""The decisions more or fewer than usual, as a share of those of a usual week."""

MANY_FAR: Final = 0.1
"""The least share of a metric's values that lies far out where an alert is made of it, by the low end of its interval:
of values with heavy tails fewer do.
"""

FAR: Final = Marks(1.0, 2.0, 4.0)
"""How many times as far out as what stands out among so many values."""

SHARE: Final = Marks(0.05, 0.2, 0.5)
"""The share of decisions with an obligation that was not met: one of twenty, one of five, half."""


def score(strength: float, marks: Marks) -> float:
    """The score of a strength, 0 to 1, six decimals; it grows with the strength and stays below 1."""
    points = ((0.0, 0.0), (marks.noticeable, THRESHOLD), (marks.considerable, MEDIUM), (marks.great, HIGH))
    for (low, at_low), (high, at_high) in pairwise(points):
        if strength < high:
            return round(at_low + (at_high - at_low) * (strength - low) / (high - low), _DIGITS)
    return round(1 - (1 - HIGH) * marks.great / strength, _DIGITS)


def severity(of: float) -> str:
    """high, medium or low."""
    return "high" if of >= HIGH else "medium" if of >= MEDIUM else "low"
