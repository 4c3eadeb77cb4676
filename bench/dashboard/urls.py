"""Addresses of the dashboard's pages. Each is used once, so that every answer is computed."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Final
from urllib.parse import urlencode

from bench.dashboard.instance import POLICY
from bench.subjects import SCOPE

FILTERED: Final = ("policy", "decisions")
"""The pages that take most filters."""

VERDICTS: Final = ("yes", "no", "review")

YEAR: Final = date(2025, 1, 1)
"""The first day of the decisions."""

_DAYS: Final = 365


class Urls:
    """Pages with filters, each asked for once."""

    def __init__(self, seed: int, decision_id: str) -> None:
        """Takes the seed, and a decision that can be shown."""
        self._random = random.Random(seed)
        self._decision_id = decision_id
        self._asked: set[str] = set()

    def new(self) -> str:
        """A page at random, most of them with filters that none had before."""
        page = self._random.choice(("overview", *["policy", "decisions", "anomalies"] * 2, "benchmarks", "held"))
        return f"/?{_query()}" if page == "overview" else self.filtered(page)

    def filtered(self, page: str) -> str:
        """A page of the large policy with filters that none had before, as far as it takes any."""
        while True:
            first, last = sorted(self._random.sample(range(_DAYS), 2))
            since, until = (YEAR + timedelta(days=day) for day in (first, last))
            named = {"policy": POLICY}
            if page in ("policy", "decisions", "anomalies"):
                named |= {"since": since.isoformat(), "until": until.isoformat()}
            if page in FILTERED:
                named["verdict"] = self._random.choice(VERDICTS)
            url = f"/{page}?{_query(**named)}"
            if url not in self._asked or "since" not in named:
                self._asked.add(url)
                return url

    def all_pages(self) -> list[str]:
        """Every page without filters, and those that take most filters with new ones."""
        pages = [
            f"/{page}?{_query(policy=POLICY)}" for page in ("policy", "anomalies", "benchmarks", "decisions", "held")
        ]
        decision = f"/decision?{_query(id=self._decision_id)}"
        return [f"/?{_query()}", *pages, decision, *map(self.filtered, FILTERED)]


def _query(**named: str) -> str:
    return urlencode({"scope": SCOPE, **named})
