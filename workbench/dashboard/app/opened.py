"""How many pages a user has open: each is a Bokeh session with its own document, which takes memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from gate.errors import LimitReached

MOST: Final = 100
"""How many pages a user may have open, those counted that were closed some seconds ago."""


class OpenPages:
    """Counts them, in the server's one thread."""

    def __init__(self) -> None:
        """None is open."""
        self._by_user: Final[Counter[str]] = Counter()

    def open(self, user: str) -> tuple[LimitReached | None, Callable[[], None]]:
        """Notes that a page was opened.

        Args:
            user: Who opened it.

        Returns:
            Why it shows nothing, where the user has too many; and what to call once it is gone.
        """
        self._by_user[user] += 1
        return (_too_many() if self._by_user[user] > MOST else None), lambda: self._close(user)

    def _close(self, user: str) -> None:
        self._by_user[user] -= 1
        if not self._by_user[user]:
            del self._by_user[user]


def _too_many() -> LimitReached:
    return LimitReached(
        "DASHBOARD_TOO_MANY_PAGES",
        f"You have more than {MOST} pages of the dashboard open. Close some, then reload this page in half a minute.",
    )
