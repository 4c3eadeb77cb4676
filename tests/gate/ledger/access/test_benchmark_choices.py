"""Which scopes take part in benchmarks: as chosen, as it was at a moment, and never changed afterwards."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gate.errors import ServiceUnavailable
from gate.ids import timestamp
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import Scope
from gate.ledger.access.benchmark_choices import Choice
from gate.ledger.stores.store import Store
from tests.support.samples import NOW, in_threads, ledger_url, rows_of
from tests.support.scopes import scope_of_old

A_DAY = timedelta(days=1)
A_MOMENT = timedelta(milliseconds=1)


def logged(ledger: Ledger) -> list[tuple[str, str]]:
    return [(entry.action, entry.subject) for entry in ledger.operator_log.latest(1000)]


def test_nobody_takes_part_until_an_operator_says_so(ledger: Ledger, scope: Scope) -> None:
    assert ledger.benchmarks.current(scope.scope_id) is None
    assert ledger.benchmarks.members(NOW + 100 * A_DAY) == []


def test_a_choice_holds_until_the_next_and_is_logged_with_it(ledger: Ledger, scope: Scope) -> None:
    other = scope_of_old(ledger, "other é", "team", NOW)
    begun = len(logged(ledger))
    assert ledger.benchmarks.choose(scope, NOW, opted_in=True)
    assert ledger.benchmarks.choose(other, NOW + A_DAY, opted_in=True)
    assert ledger.benchmarks.choose(scope, NOW + 2 * A_DAY, opted_in=False)
    assert ledger.benchmarks.current(scope.scope_id) == Choice(False, timestamp(NOW + 2 * A_DAY))
    assert ledger.benchmarks.current(other.scope_id) == Choice(True, timestamp(NOW + A_DAY))
    assert logged(ledger)[begun:] == [
        ("scope.benchmarks_opted_in", "acme"),
        ("scope.benchmarks_opted_in", "other é"),
        ("scope.benchmarks_opted_out", "acme"),
    ]
    assert ledger.operator_log.find_break() is None


def test_who_took_part_is_told_of_every_moment(ledger: Ledger, scope: Scope) -> None:
    other = ledger.directory.create_scope("other", "team", NOW)
    for days, of, opted_in in ((0, scope, True), (1, other, True), (2, scope, False), (3, scope, True)):
        ledger.benchmarks.choose(of, NOW + days * A_DAY, opted_in=opted_in)
    both = sorted([scope.scope_id, other.scope_id])

    def members(days: int, moments: int = 1) -> list[str]:
        return ledger.benchmarks.members(NOW + days * A_DAY + moments * A_MOMENT)

    # What is chosen at a moment holds after it.
    assert [members(days) for days in range(4)] == [[scope.scope_id], both, [other.scope_id], both]
    assert [members(days, 0) for days in range(4)] == [[], [scope.scope_id], both, [other.scope_id]]


def test_who_is_opted_out_by_a_clock_that_went_back_is_out(ledger: Ledger, scope: Scope) -> None:
    ledger.benchmarks.choose(scope, NOW + 2 * A_DAY, opted_in=True)
    assert ledger.benchmarks.choose(scope, NOW + A_DAY, opted_in=False)
    assert ledger.benchmarks.current(scope.scope_id) == Choice(False, timestamp(NOW + A_DAY))
    assert ledger.benchmarks.members(NOW + 3 * A_DAY) == []


@pytest.mark.parametrize("opted_in", [True, False])
def test_a_choice_that_holds_already_changes_and_logs_nothing(ledger: Ledger, scope: Scope, opted_in: bool) -> None:
    if opted_in:
        ledger.benchmarks.choose(scope, NOW, opted_in=True)
    before = rows_of(ledger.store)
    assert not ledger.benchmarks.choose(scope, NOW + A_DAY, opted_in=opted_in)
    assert rows_of(ledger.store) == before


def test_operators_who_choose_at_once_come_one_after_the_other(ledger: Ledger, scope: Scope) -> None:
    ledgers = [open_ledger(ledger_url(ledger)) for _ in range(6)]
    changed = in_threads(6, lambda number: ledgers[number].benchmarks.choose(scope, NOW, opted_in=True))
    assert sorted(changed) == [False] * 5 + [True]
    assert len(rows_of(ledger.store)["benchmark_choices"]) == 1
    assert ledger.operator_log.find_break() is None
    for opened in ledgers:
        opened.close()


def test_where_the_log_cannot_be_written_nothing_is_chosen(ledger: Ledger, scope: Scope) -> None:
    def change(sql: str, store: Store = ledger.store) -> None:
        with store.write() as connection:
            connection.exec_driver_sql(sql)

    change("ALTER TABLE operator_log RENAME TO gone")
    with pytest.raises(ServiceUnavailable):
        ledger.benchmarks.choose(scope, NOW, opted_in=True)
    change("ALTER TABLE gone RENAME TO operator_log")
    assert ledger.benchmarks.current(scope.scope_id) is None
