"""A request for a page: its user, its location, and its time."""

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
        access: The user, and the rights of the user.
        location: The requested page; its scope is that of the access.
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
        """The canvas for its charts, as wide as the page allows."""
        return Canvas(350 if self.narrow else 880, self.draw)
