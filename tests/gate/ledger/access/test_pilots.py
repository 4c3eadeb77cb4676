"""Submissions for pilots: stored apart, bounded, found, and erased without a trace but the log's."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest
from sqlalchemy import text

from gate.errors import OperatorError
from gate.ids import timestamp
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import Scope
from gate.ledger.access.pilots import Pilot
from gate.ledger.stores.sqlite import SqliteLedgerStore
from tests.support.samples import NOW, PILOT, in_threads, ledger_url, sqlite_file

FIRST: Final = Pilot(f"plt_{1:032x}", **PILOT, submitted_at=timestamp(NOW))
LONG_AGO: Final = NOW - timedelta(days=30)


def numbered(number: int, **members: str) -> Pilot:
    return replace(FIRST, pilot_id=f"plt_{number:032x}", **members)


def add(ledger: Ledger, *pilots: Pilot, most: int = 100) -> list[bool]:
    return [ledger.pilots.add(pilot, kept_since=LONG_AGO, most=most) for pilot in pilots]


def stored(ledger: Ledger) -> list[Pilot]:
    return [pilot for page in ledger.pilots.pages() for pilot in page]


def test_a_submission_is_found_as_it_was_added(ledger: Ledger) -> None:
    odd = numbered(2, name="é\U0001f600\u200f", use='"')
    assert add(ledger, FIRST, odd) == [True, True]
    assert stored(ledger) == [FIRST, odd]
    assert ledger.pilots.find(odd.pilot_id) == odd
    assert [ledger.pilots.find(unknown) for unknown in ("", "plt_0", "\0", "\ud800", "x" * 10_000)] == [None] * 5


def test_a_confirmation_keeps_its_first_moment(ledger: Ledger) -> None:
    add(ledger, FIRST, numbered(2))
    assert ledger.pilots.confirm(FIRST.pilot_id, NOW)
    assert ledger.pilots.confirm(FIRST.pilot_id, NOW + timedelta(days=1))
    assert not ledger.pilots.confirm("plt_0", NOW)
    assert stored(ledger) == [replace(FIRST, confirmed_at=timestamp(NOW)), numbered(2)]


def test_only_those_that_wait_count_and_old_ones_are_removed(ledger: Ledger) -> None:
    old = numbered(1, submitted_at=timestamp(LONG_AGO - timedelta(milliseconds=1)))
    assert add(ledger, old, numbered(2), most=2) == [True, True]
    ledger.pilots.confirm(numbered(2).pilot_id, NOW)
    assert add(ledger, numbered(3), numbered(4), numbered(5), most=2) == [True, True, False]
    assert [pilot.pilot_id for pilot in stored(ledger)] == [numbered(number).pilot_id for number in (2, 3, 4)]


def test_submissions_at_one_moment_never_pass_the_bound(ledger: Ledger) -> None:
    others = [open_ledger(ledger_url(ledger)) for _ in range(2)]
    try:
        taken = in_threads(12, lambda number: add(others[number % 2], numbered(number), most=5)[0])
    finally:
        for other in others:
            other.close()
    assert sum(taken) == 5
    assert len(stored(ledger)) == 5


def test_an_erasure_takes_all_or_none_and_logs_ids_alone(ledger: Ledger, scope: Scope) -> None:
    add(ledger, FIRST, numbered(2), numbered(3))
    before = len(ledger.operator_log.latest(100))
    for wrong in (["plt_0"], [FIRST.pilot_id, "plt_0"], [FIRST.pilot_id, "\0"]):
        with pytest.raises(OperatorError) as refused:
            ledger.pilots.erase(wrong, NOW)
        assert refused.value.code == "PILOT_UNKNOWN"
    assert len(stored(ledger)) == 3
    ledger.pilots.erase([FIRST.pilot_id, numbered(2).pilot_id, FIRST.pilot_id], NOW)
    assert stored(ledger) == [numbered(3)]
    logged = [(entry.action, entry.subject, entry.details) for entry in ledger.operator_log.latest(100)[before:]]
    assert logged == [("pilot.erased", FIRST.pilot_id, {}), ("pilot.erased", numbered(2).pilot_id, {})]
    assert ledger.entries.head(scope.scope_id).size == 0


def test_what_was_erased_is_in_no_file_of_the_ledger(ledger: Ledger) -> None:
    if not isinstance(ledger.store, SqliteLedgerStore):
        pytest.skip("PostgreSQL's files are its operator's.")
    add(ledger, numbered(1, name="canary-in-the-ledger"), numbered(2))
    ledger.pilots.erase([FIRST.pilot_id], NOW)
    with ledger.store.read() as connection:
        connection.execute(text("SELECT 1"))
    files = list(sqlite_file(ledger).parent.glob("ledger.db*"))
    assert not [file.name for file in files if b"canary-in-the-ledger" in file.read_bytes()]
