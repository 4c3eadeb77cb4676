"""The order of one endpoint's deliveries, whatever it takes and refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gate.ids import parse_timestamp, timestamp
from gate.ledger.webhooks.deliveries import Delivery, Page
from gate.ledger.webhooks.endpoints import Endpoint
from gate.services.webhooks.lanes import DOWN, into_lanes, joined, run_lane
from gate.services.webhooks.retries import MAX_TRIES
from gate.services.webhooks.transport import Answer

BEGAN = datetime(2037, 1, 1, tzinfo=UTC)
TAKEN, REFUSED, GONE = (
    Answer(204, None, 0.0),
    Answer(500, "It answered 500.", 0.0),
    Answer(410, "It answered 410.", 0.0),
)


def endpoint(delivered_at: str | None = None) -> Endpoint:
    return Endpoint("s", "s", "whe_1", "https://x", 1, timestamp(BEGAN), None, None, 0, 1, None, delivered_at)


def event(seq: int, subject: str) -> Delivery:
    return Delivery(seq, f"evt_{seq}", "decision.review", subject, b"{}", timestamp(BEGAN))


class Endless:
    """An endpoint's rows in a dict, and rounds over them as the deliverer has them."""

    def __init__(self, subjects: list[str]) -> None:
        self.fresh = [event(seq, subject) for seq, subject in enumerate(subjects, start=1)]
        self.rows: dict[int, Delivery] = {}
        self.now = BEGAN
        self.tried: list[int] = []
        self.taken: list[int] = []

    def round(self, answers: list[bool], page: int) -> None:
        fresh, self.fresh = self.fresh[:page], self.fresh[page:]
        pending = [row for row in self.rows.values() if row.state == "pending"]
        lanes, waiting = into_lanes(Page(sorted(pending, key=lambda of: of.seq), fresh, 0), self.now)
        left = iter(answers)

        async def attempt(delivery: Delivery) -> Answer:
            self.tried.append(delivery.seq)
            return TAKEN if next(left, True) else REFUSED

        for lane in lanes:
            outcome = asyncio.run(run_lane(lane, attempt, lambda: self.now, lambda: 0.5))
            for row in outcome.kept:
                self.rows[row.seq] = replace(row, stored=True)
            for row in outcome.delivered:
                self.rows.pop(row.seq, None)
                self.taken.append(row.seq)
        for row in waiting:
            self.rows[row.seq] = replace(row, stored=True)
        due = [row.next_at for row in self.rows.values() if row.state == "pending" and row.next_at is not None]
        if due:
            self.now = max(self.now, parse_timestamp(min(due)))


@given(
    st.lists(st.sampled_from("abc"), max_size=12),
    st.lists(st.lists(st.booleans(), max_size=12), max_size=12),
    st.integers(1, 5),
)
def test_no_event_is_lost_and_subjects_keep_their_order(
    subjects: list[str], answers: list[list[bool]], page: int
) -> None:
    at = Endless(subjects)
    for each in answers:
        at.round(each, page)
    for _ in range(40):
        at.round([], page)
    dead = {row.seq for row in at.rows.values() if row.state == "dead"}
    assert sorted([*at.taken, *dead]) == list(range(1, len(subjects) + 1))
    for subject in "abc":
        mine = [seq for seq in at.taken if subjects[seq - 1] == subject]
        assert mine == sorted(mine)


def test_one_that_fails_holds_back_its_subject_alone() -> None:
    at = Endless(["a", "b", "a", "b"])
    at.round([False], 10)
    assert (at.tried, at.taken) == ([1, 2, 4], [2, 4])
    assert [(row.seq, row.attempts, row.next_at is None) for row in at.rows.values()] == [(1, 1, False), (3, 0, True)]


def test_what_is_given_up_lets_the_next_one_pass() -> None:
    at = Endless(["a", "a"])
    for _ in range(MAX_TRIES):
        at.round([False, True], 10)
    assert at.rows[1].state == "dead"
    assert (at.tried.count(1), at.taken) == (MAX_TRIES, [2])
    assert at.now - BEGAN > timedelta(days=3)


def test_once_it_says_that_it_is_gone_everything_waits() -> None:
    async def gone(delivery: Delivery) -> Answer | None:
        return GONE if delivery.seq == 1 else None

    lane = [event(1, "a"), event(2, "a")]
    outcome = asyncio.run(run_lane(lane, gone, lambda: BEGAN, lambda: 0.5))
    other = asyncio.run(run_lane([event(3, "b"), event(4, "b")], gone, lambda: BEGAN, lambda: 0.5))
    assert outcome.gone
    assert [(of.seq, of.next_at) for of in (*outcome.kept, *other.kept)] == [
        (1, timestamp(BEGAN)),
        (2, None),
        (3, timestamp(BEGAN)),
        (4, None),
    ]


def test_an_endpoint_that_was_down_gets_what_waits_at_once_and_one_bad_event_does_not_count() -> None:
    failed_at = timestamp(BEGAN + timedelta(hours=1))
    later = timestamp(BEGAN + timedelta(days=1))

    def waiting(count: int) -> Page:
        rows = [
            replace(event(seq, f"s{seq}"), attempts=3, last_at=failed_at, next_at=later, stored=True)
            for seq in range(count)
        ]
        return Page(rows, [event(99, "new")], 99)

    async def takes(delivery: Delivery) -> Answer:
        return TAKEN

    taken = asyncio.run(run_lane([event(99, "new")], takes, lambda: BEGAN, lambda: 0.5))
    assert joined(endpoint(timestamp(BEGAN)), waiting(DOWN), [taken], []).recovered
    assert not joined(endpoint(timestamp(BEGAN)), waiting(DOWN - 1), [taken], []).recovered
    assert not joined(endpoint(later), waiting(DOWN), [taken], []).recovered
