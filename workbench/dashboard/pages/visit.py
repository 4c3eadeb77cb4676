"""Who asks for which page, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workbench.charts.inline.plans import Draw, drawn_here
from workbench.dashboard.store.access import Access
from workbench.dashboard.views.figure import Canvas
from workbench.dashboard.views.location import Location


@dataclass(frozen=True, slots=True)
class Visit:
    """A look at a page.

    Attributes:
        access: Who asks, and what they may do.
        location: What they ask for; its scope is that of the access.
        now: The moment, in UTC.
        narrow: Whether the page is shown on a narrow screen.
        draw: What draws its charts.
    """

    access: Access
    location: Location
    now: datetime
    narrow: bool = False
    draw: Draw = drawn_here

    @property
    def canvas(self) -> Canvas:
        """What its charts are drawn on, as wide as the page has room for."""
        return Canvas(350 if self.narrow else 880, self.draw)
