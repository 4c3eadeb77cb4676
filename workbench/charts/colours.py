"""The colours of all charts: one for each meaning, which people with any colour vision tell apart.

Meanings have colours of Okabe and Ito's palette. Policy versions and reason codes have no meaning of their own: their
colours are Tol's "muted" ones, each with a shape, so that no version looks like a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

_GREEN: Final = "#009e73"
_VERMILION: Final = "#d55e00"
_SKY: Final = "#56b4e9"

OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Verdicts, and the outcomes that answer to them.
        "yes": _GREEN,
        "no": _VERMILION,
        "review": _SKY,
        "succeeded": _GREEN,
        "partial": "#e69f00",
        "failed": _VERMILION,
        "reverted": "#cc79a7",
        "pending": "#8c8c8c",
        "unreported": "#8c8c8c",
        # Severities, from dark to light.
        "high": "#7f2704",
        "medium": "#d94801",
        "low": "#fdae6b",
    }
)
"""The colour of each verdict, outcome status and severity. `review` is one meaning, as a verdict and as an outcome."""

FIGURE: Final = "#0072b2"
"""The scope's own numbers, where they are no verdict or outcome."""

REFERENCE: Final = "#404040"
"""What the own numbers are compared with: other scopes, earlier weeks, usual values, a score."""

FEW: Final = "#b8b8b8"
"""Rates of too few cases."""

WINDOW: Final = "#f0e442"
"""The time that an anomaly is about."""

NAMES: Final = ("#332288", "#44aa99", "#882255", "#999933", "#aa4499", "#88ccee", "#117733", "#ddcc77")
"""Versions and other names, in their order."""

SHAPES: Final = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)
"""For each of them a shape, so that nothing depends on colour alone."""


def of_names(names: Sequence[str]) -> list[str]:
    """The colour of each name: that of its meaning, or else the next of `NAMES`; at most as many as there are."""
    free = iter(NAMES)
    return [OF.get(name) or next(free) for name in names]
