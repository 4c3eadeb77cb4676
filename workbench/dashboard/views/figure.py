"""A chart as part of a page: the drawing, and the notes that stand under it. Its heading is the page's."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from workbench.charts.drawing import Drawn
from workbench.charts.svg import titles, to_svg


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart, drawn.

    Attributes:
        svg: The drawing.
        notes: What was looked at, and how to read it.
        finding: What it shows, as a sentence without its full stop.
    """

    svg: Markup
    notes: tuple[str, ...]
    finding: str = ""


def figure(chart: Drawn, width: int) -> Figure:
    """A chart at a width, without the titles that its page writes.

    Args:
        chart: The chart.
        width: The width, in pixels.
    """
    about = titles(chart)
    # `to_svg` lets through nothing but shapes and texts of a chart.
    return Figure(Markup(to_svg(chart, width=width, titled=False)), about.notes, about.finding)  # noqa: S704
