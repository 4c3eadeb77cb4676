"""Scores: each measure has three marks, and a score between them follows a straight line.

    mark          score   severity
    noticeable    0.35    low: listed, unless a caller asks for another threshold
    considerable  0.6     medium
    great         0.8     high: an alert

The marks are conventions from the literature of each measure, or follow from the protocol. None was fitted to data.
`docs/reference/formulas/anomalies.md` has the source of each.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

THRESHOLD: Final = 0.35
"""The least score that is listed by default."""

MEDIUM: Final = 0.6
HIGH: Final = 0.8

BELOW_HIGH: Final = 0.79
"""The greatest score of findings that are uncertain, few, or the purpose of a change."""

SEVERITIES: Final = ("high", "medium", "low")

_DIGITS: Final = 6


class Marks(NamedTuple):
    """The marks of a measure: noticeable, considerable, and great."""

    noticeable: float
    considerable: float
    great: float


EFFECT: Final = Marks(0.2, 0.5, 0.8)
"""Cohen's h: small, medium, large. It is taken at the end of its interval that is nearer to zero."""

HARM: Final = Marks(0.2, 0.35, 0.5)
"""Cohen's h of worse outcomes: a medium effect on results is great."""

INDEX: Final = Marks(0.1, 0.25, 0.5)
"""The population stability index: 0.1 is some change, 0.25 a large one, and twice that ends the scale."""

DELTA: Final = Marks(0.147, 0.33, 0.474)
"""Cliff's delta: small, medium, large. It is taken at the end of its interval that is nearer to zero."""

TIMES: Final = Marks(2.0, 3.0, 5.0)
"""The number of decisions as a multiple of the usual one."""

SURPLUS: Final = Marks(0.05, 0.25, 0.5)
"""The surplus or deficit of decisions, as a share of a usual week."""

MANY_FAR: Final = 0.1
"""The share of outliers from which a metric can raise an alert, at the low end of its interval. Values with heavy tails
have fewer.
"""

FAR: Final = Marks(1.0, 2.0, 4.0)
"""The distance of an outlier, as a multiple of the required distance."""

SHARE: Final = Marks(0.05, 0.2, 0.5)
"""The share of decisions with an unmet obligation: 1 in 20, 1 in 5, half."""


def score(strength: float, marks: Marks) -> float:
    """The score of a strength, 0 to 1, six decimals. It grows with the strength and stays below 1."""
    points = ((0.0, 0.0), (marks.noticeable, THRESHOLD), (marks.considerable, MEDIUM), (marks.great, HIGH))
    for (low, at_low), (high, at_high) in pairwise(points):
        if strength < high:
            return round(at_low + (at_high - at_low) * (strength - low) / (high - low), _DIGITS)
    return round(1 - (1 - HIGH) * marks.great / strength, _DIGITS)


def severity(of: float) -> str:
    """The severity of a score: high, medium, or low."""
    return "high" if of >= HIGH else "medium" if of >= MEDIUM else "low"
