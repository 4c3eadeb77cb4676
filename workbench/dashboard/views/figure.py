"""A chart as part of a page: the drawing, and the notes that stand under it. Its heading is the page's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from workbench.charts.drawing import Drawn
from workbench.charts.inline.plans import Draw, drawn_here
from workbench.charts.svg import plan, titles


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart, drawn.

    Attributes:
        svg: The drawing.
        notes: The data behind it, and how to read it.
        finding: What it shows, as a sentence without its full stop.
        id: What tells it apart from the others of its page.
    """

    svg: Markup
    notes: tuple[str, ...]
    finding: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The canvas for charts of a page, without the titles that the page writes.

    Attributes:
        width: How wide they are, in pixels.
        draw: What draws them.
    """

    width: int
    draw: Draw = drawn_here

    def figure(self, chart: Drawn) -> Figure:
        """A chart, drawn."""
        return self.begin(chart)()

    def begin(self, chart: Drawn) -> Callable[[], Figure]:
        """Begins to draw a chart; what it returns waits for the figure. So several are drawn at once."""
        about, planned = titles(chart), plan(chart, width=self.width, titled=False)
        drawing = self.draw(planned)
        # A drawing contains nothing but shapes and texts.
        return lambda: Figure(Markup(drawing()), about.notes, about.finding, planned.id)  # noqa: S704
