"""Dates of events: a period has what happened in it, and everything that a page leads to has the same decisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.ids import timestamp
from tests.workbench.dashboard.policies import MadeUpStore, read
from tests.workbench.made_up import DAY, HOUR, MONDAY, WEEK, MadeUp

URL = "scope=acme&policy=refunds&since=2026-01-05&until=2026-01-11"


@pytest.fixture
def store(tmp_path: Path) -> MadeUpStore:
    """Three decisions of a week, recorded in it; seven of the same week, recorded nine weeks later."""
    chain = MadeUp()
    for number in range(10):
        happened = MONDAY + number * HOUR
        recorded = happened + DAY if number < 3 else happened + 9 * WEEK
        chain.outcome(chain.decide(recorded, occurred_at=timestamp(happened)), recorded + DAY)
    return MadeUpStore(chain.snapshot(tmp_path))


@pytest.mark.parametrize(("clock", "decisions"), [("recorded", 3), ("occurred", 10)])
def test_a_period_has_what_the_clock_dates_into_it(store: MadeUpStore, clock: str, decisions: int) -> None:
    listed = read(store.page(f"/decisions?{URL}&clock={clock}"))
    assert f"of {decisions} decisions, newest first" in listed.text
    policy = read(store.page(f"/policy?{URL}&clock={clock}"))
    assert f"Decisions {decisions} " in policy.text
    weeks = [url for url, told in policy.links if url.startswith("/decisions?") and told == str(decisions)]
    assert weeks
    for url in weeks:
        assert f"of {decisions} decisions, newest first" in read(store.page(url)).text, url
