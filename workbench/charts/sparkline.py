"""A line the size of a word, as SVG: how a number went, without axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Final

from workbench.charts.colours import FIGURE, variable

_WIDTH: Final = 120
_HEIGHT: Final = 28
# So much room has the last dot.
_MARGIN: Final = 3
_DOT: Final = 2.5

_Point = tuple[float, float]


def sparkline(values: Sequence[float | None], *, label: str) -> str:
    """A small line chart of numbers at equal distances, from their least to their greatest.

    Args:
        values: The numbers; None, and what is not finite, leaves a gap.
        label: What they show, for a reader who does not see it.
    """
    drawn = "".join(_lines(_points(values)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sparkline" role="img" aria-label="{escape(label)}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}">{drawn}</svg>'
    )


def _points(values: Sequence[float | None]) -> list[_Point | None]:
    known = [value for value in values if value is not None and math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    step = (_WIDTH - 2 * _MARGIN) / max(len(values) - 1, 1)

    def point(at: int, value: float) -> _Point:
        # Equal numbers lie in the middle.
        up = (value - low) / (high - low) if high > low else 0.5
        return _MARGIN + at * step, _HEIGHT - _MARGIN - up * (_HEIGHT - 2 * _MARGIN)

    return [point(at, value) if value is not None and math.isfinite(value) else None for at, value in enumerate(values)]


def _lines(points: Sequence[_Point | None]) -> Iterator[str]:
    colour = variable(FIGURE)
    for known, run in groupby(points, key=lambda point: point is not None):
        line = [point for point in run if point is not None]
        if known and len(line) > 1:
            yield f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{_joined(line)}"/>'
        elif known:
            yield _circle(line[0], 1.0, colour)
    last = next((point for point in reversed(points) if point is not None), None)
    if last is not None:
        yield _circle(last, _DOT, colour)


def _joined(line: Sequence[_Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in line)


def _circle(point: _Point, radius: float, colour: str) -> str:
    return f'<circle cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="{radius:g}" fill="{colour}"/>'
