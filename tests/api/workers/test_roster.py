"""When a dead worker is started again, and how readiness shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.workers.roster import (
    LONGEST_PAUSE,
    SHORT_SECONDS,
    STABLE_SECONDS,
    Roster,
    cause_of,
    pause_after,
    read_facts,
    workers_part,
    write_facts,
)

AT = datetime(2026, 11, 24, 20, 40, tzinfo=UTC)


def die(roster: Roster, worker: int, now: float) -> float:
    """A death and the restart that follows it; the moment of the restart."""
    _, pause = roster.died(worker, "signal SIGKILL", AT, now)
    assert roster.due(now + pause) == [worker]
    roster.started(worker, now + pause)
    return now + pause


def test_the_first_death_is_followed_by_a_restart_at_once() -> None:
    roster = Roster(2, now=100.0)
    roster.died(1, "signal SIGKILL", AT, 200.0)
    assert (roster.due(200.0), roster.next_restart(200.0)) == ([1], 0.0)


def test_pauses_grow_up_to_a_limit_and_begin_anew_after_a_worker_has_run_long_enough() -> None:
    roster, now, pauses = Roster(1, now=0.0), 1.0, []
    for _ in range(8):
        _, pause = roster.died(1, "exit code 1", AT, now)
        assert roster.due(now + pause / 2) == ([] if pause else [1])
        roster.started(1, now + pause)
        pauses.append(pause)
        now += pause + 1
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, LONGEST_PAUSE, LONGEST_PAUSE]
    assert roster.died(1, "exit code 1", AT, now + STABLE_SECONDS)[1] == 0.0


@given(st.integers(min_value=0, max_value=10**9))
def test_no_pause_is_longer_than_the_longest(streak: int) -> None:
    assert 0.0 <= pause_after(streak) <= pause_after(streak + 1) <= LONGEST_PAUSE


def test_one_death_degrades_nothing_while_the_worker_comes_back() -> None:
    roster = Roster(2, now=0.0)
    roster.died(2, "signal SIGKILL", AT, 5.0)
    part = workers_part(roster.facts, 5.1)
    assert (part["ready"], part["asked"], part["running"], part["deaths"]) == (True, 2, 1, 1)
    assert part["last_deaths"] == [
        {"worker": 2, "at": "2026-11-24T20:40:00.000Z", "cause": "signal SIGKILL", "ran_seconds": 5.0}
    ]


def test_a_worker_that_is_missing_for_a_while_degrades_readiness() -> None:
    roster = Roster(2, now=0.0)
    roster.died(2, "signal SIGKILL", AT, 5.0)
    part = workers_part(roster.facts, 5.0 + SHORT_SECONDS)
    assert part["ready"] is False
    assert "1 of 2 workers" in part["reason"]


def test_a_worker_that_keeps_dying_degrades_readiness_until_it_has_run_long_enough() -> None:
    roster, now = Roster(2, now=0.0), 1.0
    for _ in range(3):
        now = die(roster, 2, now) + 1
    restarted = now - 1
    part = workers_part(roster.facts, now)
    assert (part["ready"], part["running"], part["crash_looping"]) == (False, 2, [2])
    assert "Worker 2 keeps dying: 3 times" in part["reason"]
    assert "SIGKILL" in part["reason"]
    recovered = workers_part(roster.facts, restarted + STABLE_SECONDS)
    assert (recovered["ready"], recovered["crash_looping"], recovered["deaths"]) == (True, [], 3)


def test_deaths_of_different_workers_are_no_crash_loop() -> None:
    roster, now = Roster(4, now=0.0), 1.0
    for worker in (1, 2, 3, 4):
        now = die(roster, worker, now)
    assert workers_part(roster.facts, now)["ready"] is True


def test_only_the_last_deaths_are_kept_and_all_are_counted() -> None:
    roster, now = Roster(1, now=0.0), 1.0
    for _ in range(40):
        now = die(roster, 1, now)
    part = workers_part(roster.facts, now)
    assert (part["deaths"], len(part["last_deaths"])) == (40, 10)


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [
        (-9, None, "signal SIGKILL"),
        (-9, "ignored", "signal SIGKILL"),
        (-34, None, "signal SIGRTMIN"),
        (-63, None, "signal 63"),
        (1, None, "exit code 1"),
        (1, "LookupError at x.py:3", "exit code 1: LookupError at x.py:3"),
    ],
)
def test_a_cause_names_the_signal_or_the_exit_code(code: int, reason: str | None, said: str) -> None:
    assert cause_of(code, reason) == said


def test_the_facts_come_back_from_the_file_as_they_were_written(tmp_path: Path) -> None:
    assert read_facts(tmp_path) is None
    roster = Roster(2, now=1.5)
    roster.died(1, "exit code 3", AT, 2.25)
    write_facts(tmp_path, roster.facts)
    assert read_facts(tmp_path) == roster.facts
    (tmp_path / "workers.json").write_text("{")
    assert read_facts(tmp_path) is None
