"""The queue of reviews in a real ledger: its pages by state, owner and age, however long it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.reviews import ReviewRow, Reviews
from gate.ledger.tables import reviews

FIRST = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
OWNERS = ("risk-desk", "Team Zürich", "")
STATES = ("held", "held", "granted", "held", "refused")


def row(number: int, scope_id: str = "acme") -> dict[str, Any]:
    """The review of the decision made so many minutes after the first."""
    created_at = FIRST + timedelta(minutes=number)
    return {
        "scope_id": scope_id,
        "decision_id": f"dec_{number:04}",
        "position": 3 * number,
        "state": STATES[number % len(STATES)],
        "owner": OWNERS[number % len(OWNERS)],
        "policy_id": "refund_policy",
        "action": "refund",
        "created_at": timestamp(created_at),
        "due_at": timestamp(created_at + timedelta(hours=4)),
        "grant_seconds": 3_600,
        "resolved_position": None,
        "resolved_at": None,
    }


ROWS = [row(number) for number in range(60)]


@pytest.fixture
def kept(instance: Instance) -> Reviews:
    store = instance.ledger.store
    with store.write() as connection:
        connection.execute(insert(reviews), [*ROWS, row(0, "other"), row(1, "other")])
    return instance.ledger.reviews


def ids(found: list[ReviewRow]) -> list[str]:
    return [review.decision_id for review in found]


def expected(**wanted: str) -> list[str]:
    return [each["decision_id"] for each in ROWS if all(each[name] == value for name, value in wanted.items())]


def paged(kept: Reviews, **asked: Any) -> list[str]:
    """Every page one after another, each beginning beyond the last review of the one before."""
    found: list[str] = []
    beyond = None
    while page := kept.page("acme", beyond=beyond, limit=7, **asked):
        assert len(page) <= 7
        found += ids(page)
        beyond = page[-1].position
    return found


@pytest.mark.parametrize("owner", [None, *OWNERS, "nobody", "\0", "\ud800"])
@pytest.mark.parametrize("state", ["held", "granted", "refused", "expired"])
def test_the_pages_together_have_every_review_once_in_either_order(
    kept: Reviews, state: str, owner: str | None
) -> None:
    wanted = expected(state=state) if owner is None else expected(state=state, owner=owner)
    assert paged(kept, state=state, owner=owner) == wanted
    assert paged(kept, state=state, owner=owner, oldest=False) == wanted[::-1]


def test_a_page_can_be_of_reviews_that_wait_for_some_time(kept: Reviews) -> None:
    before = timestamp(FIRST + timedelta(minutes=8))
    early = [each for each in expected(state="held") if each < "dec_0008"]
    assert ids(kept.page("acme", state="held", created_before=before, limit=50)) == early
    assert ids(kept.page("acme", state="held", created_before=before, oldest=False, limit=2)) == early[:-3:-1]
    assert kept.page("acme", state="held", created_before=timestamp(FIRST), limit=50) == []


def test_a_review_is_read_back_as_it_was_kept(kept: Reviews) -> None:
    assert kept.page("acme", state="held", owner="Team Zürich", limit=1) == [ReviewRow(**ROWS[1])]
    assert ids(kept.page("other", state="held", limit=9)) == ["dec_0000", "dec_0001"]


def test_what_waits_is_counted_by_owner_with_what_is_due_by_a_moment(kept: Reviews) -> None:
    by = FIRST + timedelta(hours=4, minutes=20)
    found = kept.waiting("acme", by)
    held = [each for each in ROWS if each["state"] == "held"]
    assert [waiting.owner for waiting in found] == ["risk-desk", "Team Zürich", ""]
    for waiting in found:
        of = [each for each in held if each["owner"] == waiting.owner]
        due = sum(each["due_at"] <= timestamp(by) for each in of)
        assert (waiting.number, waiting.oldest_at, waiting.due) == (len(of), of[0]["created_at"], due)
        assert 0 < due < len(of)
    assert kept.waiting("nowhere", by) == []
