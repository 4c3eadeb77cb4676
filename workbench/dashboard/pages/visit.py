"""Who asks for which page, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workbench.dashboard.store.access import Access
from workbench.dashboard.views.location import Location


@dataclass(frozen=True, slots=True)
class Visit:
    """A look at a page.

    Attributes:
        access: Who asks, and what they may do.
        location: What they ask for; its scope is that of the access.
        now: The moment, in UTC.
        narrow: Whether the page is shown on a narrow screen.
    """

    access: Access
    location: Location
    now: datetime
    narrow: bool = False

    @property
    def chart_width(self) -> int:
        """How wide a chart is, in pixels."""
        return 350 if self.narrow else 880
