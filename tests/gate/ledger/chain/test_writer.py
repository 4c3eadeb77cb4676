"""What the head decides for an append: the month's cap, the caller's access, and whether it is in the chain already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import text, update

from gate.errors import ServiceUnavailable
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import FULL_ACCESS, ApiKey, Scope
from gate.ledger.access.scopes import Directory
from gate.ledger.chain.writer import AccessChanged, Appended, AppendResult, CapReached, Claim, Claimed, NewEntry, _write
from gate.ledger.stores import postgres
from gate.ledger.tables import chain_heads
from gate.proof import chain
from tests.independent import verifier
from tests.support.entries import entry
from tests.support.samples import NOW, in_threads, ledger_url

JUNE = "2026-06"


def capped(ledger: Ledger, cap: int) -> Scope:
    return ledger.directory.create_scope(f"capped-at-{cap}", "starter", NOW, monthly_cap=cap)


def in_month(scope: Scope, number: int, month: str) -> NewEntry:
    return entry(scope.scope_id, number, created_at=f"{month}-11T12:00:00.000Z")


def execution(scope: Scope, number: int) -> NewEntry:
    return entry(scope.scope_id, 0, entry_type="execution")._replace(entry_id=f"exe_{number:032x}")


def left(outcome: AppendResult) -> int | None:
    assert isinstance(outcome, Appended), outcome
    return outcome.remaining


class TestCap:
    """So many records a month, and not one more."""

    def test_it_is_exact_and_says_what_is_left(self, ledger: Ledger) -> None:
        scope = capped(ledger, 3)
        assert [left(ledger.entries.append(entry(scope.scope_id, number))) for number in range(3)] == [2, 1, 0]
        for number in (3, 4):
            assert ledger.entries.append(entry(scope.scope_id, number)) == CapReached(3)
        assert (ledger.entries.head(scope.scope_id).size, ledger.entries.used(scope.scope_id, JUNE)) == (3, 3)

    def test_a_cap_of_none_admits_none_and_no_cap_counts_nothing(self, ledger: Ledger, scope: Scope) -> None:
        shut = capped(ledger, 0)
        assert ledger.entries.append(entry(shut.scope_id, 0)) == CapReached(0)
        assert left(ledger.entries.append(entry(scope.scope_id, 0))) is None
        assert ledger.entries.used(scope.scope_id, JUNE) == 0

    def test_a_used_key_answers_at_the_cap_and_a_refused_one_stays_free(self, ledger: Ledger) -> None:
        scope = capped(ledger, 1)
        used, free = Claim("decide", "", "used", "a" * 64), Claim("decide", "", "free", "b" * 64)
        assert left(ledger.entries.append(entry(scope.scope_id, 0, used))) == 0
        assert ledger.entries.append(entry(scope.scope_id, 1, free)) == CapReached(1)
        assert ledger.entries.append(entry(scope.scope_id, 2, used)) == Claimed(1, "a" * 64)
        assert ledger.entries.claimed(scope.scope_id, free) is None

    def test_months_count_apart_and_a_clock_set_wrong_and_back_finds_its_counts(self, ledger: Ledger) -> None:
        scope = capped(ledger, 2)
        months = [JUNE, "2038-01", JUNE, JUNE, "1970-01", "2038-01", "2038-01", "1970-01", "1970-01", JUNE, "2026-07"]
        outcomes = [ledger.entries.append(in_month(scope, number, month)) for number, month in enumerate(months)]
        found = ["full" if isinstance(outcome, CapReached) else left(outcome) for outcome in outcomes]
        assert found == [1, 1, 0, "full", 1, 0, "full", 0, "full", "full", 1]
        used = {month: ledger.entries.used(scope.scope_id, month) for month in sorted({*months, "2026-08"})}
        assert used == {"1970-01": 2, JUNE: 2, "2026-07": 1, "2026-08": 0, "2038-01": 2}

    def test_it_is_for_decisions_alone(self, ledger: Ledger) -> None:
        scope = capped(ledger, 1)
        ledger.entries.append(entry(scope.scope_id, 0))
        for number in range(3):
            assert left(ledger.entries.append(execution(scope, number))) is None
        assert ledger.entries.append(entry(scope.scope_id, 1)) == CapReached(1)
        assert (ledger.entries.head(scope.scope_id).size, ledger.entries.used(scope.scope_id, JUNE)) == (4, 1)

    def test_it_holds_within_a_group(self, ledger: Ledger) -> None:
        scope, claim = capped(ledger, 2), Claim("decide", "", "k", "a" * 64)
        batch = [
            in_month(scope, 0, "2026-07"),
            execution(scope, 0),
            entry(scope.scope_id, 1, claim),
            entry(scope.scope_id, 2, claim),
            entry(scope.scope_id, 3),
            entry(scope.scope_id, 4),
            in_month(scope, 5, "2026-07"),
            entry(scope.scope_id, 6, claim),
        ]
        outcomes: Sequence[Any] = ledger.entries._writer._commit(lambda: batch)
        expected = [1, None, 1, Claimed(3, "a" * 64), 0, CapReached(2), 0, Claimed(3, "a" * 64)]
        assert [found.remaining if isinstance(found, Appended) else found for found in outcomes] == expected
        assert ledger.entries.used(scope.scope_id, JUNE) == ledger.entries.used(scope.scope_id, "2026-07") == 2

    def test_requests_at_the_same_moment_share_it(self, ledger: Ledger) -> None:
        scope, other = capped(ledger, 30), open_ledger(ledger_url(ledger))

        def append(part: int) -> list[AppendResult]:
            mine = (ledger, other)[part % 2]
            return [mine.entries.append(entry(scope.scope_id, 100 * part + number)) for number in range(10)]

        outcomes = [outcome for part in in_threads(8, append) for outcome in part]
        assert sorted(o.remaining or 0 for o in outcomes if isinstance(o, Appended)) == list(range(30))
        assert outcomes.count(CapReached(30)) == 50
        head, links = ledger.entries.latest_links(scope.scope_id, 100)
        assert (len(links), chain.find_break(links, end=head)) == (30, None)
        other.close()

    def test_another_cap_holds_from_the_next_append_on(self, ledger: Ledger) -> None:
        scope = capped(ledger, 1)
        assert left(ledger.entries.append(entry(scope.scope_id, 0))) == 0
        assert ledger.entries.append(entry(scope.scope_id, 1)) == CapReached(1)
        ledger.directory.set_plan(scope, "team", NOW, monthly_cap=2)
        assert left(ledger.entries.append(entry(scope.scope_id, 1))) == 0
        ledger.directory.set_plan(scope, "starter", NOW, monthly_cap=1)
        assert ledger.entries.append(entry(scope.scope_id, 2)) == CapReached(1)
        ledger.directory.set_plan(scope, "unlimited", NOW)
        assert left(ledger.entries.append(entry(scope.scope_id, 2))) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda directory, scope, made: directory.disable_key(made.key_id, NOW),
        lambda directory, scope, made: directory.rotate_key(made.key_id, timedelta(), NOW),
        lambda directory, scope, made: directory.rotate_key(made.key_id, timedelta(hours=1), NOW),
        lambda directory, scope, made: directory.set_plan(scope, "starter", NOW),
    ],
    ids=["disabled", "rotated", "rotated with overlap", "plan"],
)
def test_an_append_trusts_no_access_that_was_looked_up_before_a_change_elsewhere(
    ledger: Ledger, scope: Scope, change: Callable[[Directory, Scope, ApiKey], object]
) -> None:
    key, made = ledger.directory.create_key(scope, FULL_ACCESS, None, NOW)
    claim = Claim("decide", "", "used", "a" * 64)
    first = entry(scope.scope_id, 0, claim)._replace(access_epoch=ledger.directory.authenticate(key, NOW).access_epoch)
    assert isinstance(ledger.entries.append(first), Appended)
    other = open_ledger(ledger_url(ledger))
    change(other.directory, scope, made)
    other.close()
    for late in (entry(scope.scope_id, 1), entry(scope.scope_id, 1, claim)):
        assert ledger.entries.append(late._replace(access_epoch=first.access_epoch)) == AccessChanged()
    assert ledger.entries.head(scope.scope_id).size == 1
    now = entry(scope.scope_id, 1)._replace(access_epoch=(first.access_epoch or 0) + 1)
    assert isinstance(ledger.entries.append(now), Appended)
    assert isinstance(ledger.entries.append(entry(scope.scope_id, 2)), Appended), "nobody's access matters"


def test_a_change_in_one_scope_is_nothing_to_another(ledger: Ledger, scope: Scope) -> None:
    other = ledger.directory.create_scope("other", "unlimited", NOW)
    key, _ = ledger.directory.create_key(scope, FULL_ACCESS, None, NOW)
    epoch = ledger.directory.authenticate(key, NOW).access_epoch
    ledger.directory.set_plan(other, "team", NOW)
    ledger.directory.create_key(scope, FULL_ACCESS, None, NOW)
    assert isinstance(ledger.entries.append(entry(scope.scope_id, 0)._replace(access_epoch=epoch)), Appended)


@pytest.mark.parametrize("claim", [None, Claim("decide", "", "k", "a" * 64)], ids=["no key", "key"])
def test_what_was_committed_unheard_is_found_again_and_not_doubled(ledger: Ledger, claim: Claim | None) -> None:
    scope = capped(ledger, 2)
    first = ledger.entries.append(entry(scope.scope_id, 0, claim))
    ledger.directory.set_plan(scope, "starter", NOW, monthly_cap=2)
    batch = [entry(scope.scope_id, 0, claim)._replace(access_epoch=0), entry(scope.scope_id, 1)]
    again, second = ledger.store.run(lambda transaction, _: _write(transaction, batch, tried=True))
    assert isinstance(first, Appended)
    assert isinstance(again, Appended)
    assert chain.record_link(again.link) == chain.record_link(first.link)
    assert (left(again), left(second)) == (1, 0)
    head, links = ledger.entries.latest_links(scope.scope_id, 10)
    assert (len(links), ledger.entries.used(scope.scope_id, JUNE)) == (2, 2)
    assert chain.find_break(links, end=head) is None


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_on_postgresql_a_connection_that_breaks_after_the_commit_costs_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope, claim = capped(ledger, 3), Claim("decide", "", "k", "a" * 64)
    commit, commits = postgres._PostgresTransaction.commit, 0

    def commit_unheard(transaction: postgres._PostgresTransaction, writes: Any) -> None:
        nonlocal commits
        commits += 1
        commit(transaction, writes)
        if commits == 1:
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(postgres._PostgresTransaction, "commit", commit_unheard)
    assert left(ledger.entries.append(entry(scope.scope_id, 0, claim))) == 2
    assert commits == 2
    assert left(ledger.entries.append(entry(scope.scope_id, 1))) == 1
    assert ledger.entries.claimed(scope.scope_id, claim) == Claimed(1, "a" * 64)
    assert ledger.entries.head(scope.scope_id).size == 2


def test_a_failed_append_says_what_the_database_said(ledger: Ledger, scope: Scope) -> None:
    with ledger.store.write() as connection:
        connection.execute(text("ALTER TABLE claims RENAME TO gone"))
    with pytest.raises(ServiceUnavailable, match="claims"):
        ledger.entries.append(entry(scope.scope_id, 0, Claim("decide", "", "k", "a" * 64)))
    assert isinstance(ledger.entries.append(entry(scope.scope_id, 0)), Appended)


def test_where_storage_fails_while_entries_are_tried_one_by_one_the_rest_waits_for_nothing(
    ledger: Ledger, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tries = ledger.store, 0
    run = store.run

    def failing(work: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ServiceUnavailable("SVC_STORAGE_UNAVAILABLE", "A row.") from store.engine.dialect.loaded_dbapi.Error()
        if tries == 3:
            raise ServiceUnavailable("SVC_STORAGE_UNAVAILABLE", "No turn came.")
        return run(work)

    monkeypatch.setattr(store, "run", failing)
    outcomes = ledger.entries.append_all([entry(scope.scope_id, number) for number in range(500)])
    assert tries == 3
    assert isinstance(outcomes[0], Appended)
    assert {str(outcome) for outcome in outcomes[1:]} == {str(outcomes[1])}
    assert isinstance(outcomes[-1], ServiceUnavailable)
    assert ledger.entries.head(scope.scope_id).size == 1


def test_positions_go_on_beyond_four_bytes(ledger: Ledger, scope: Scope) -> None:
    ledger.entries.append(entry(scope.scope_id, 0))
    with ledger.store.write() as connection:
        connection.execute(
            update(chain_heads).where(chain_heads.c.scope_id == scope.scope_id).values(chain_size=2**31 - 1)
        )
    claim = Claim("decide", "", "far", "a" * 64)
    for number in (1, 2, 3):
        outcome = ledger.entries.append(entry(scope.scope_id, number, claim if number == 3 else None))
        assert isinstance(outcome, Appended)
        assert outcome.link["chain_position"] == 2**31 - 1 + number
    assert ledger.entries.claimed(scope.scope_id, claim) == Claimed(2**31 + 2, "a" * 64)
    found = ledger.entries.at(scope.scope_id, 2**31 + 2)
    assert found is not None
    assert found == ledger.entries.decision(scope.scope_id, f"dec_{3:032x}")
    head, links = ledger.entries.latest_links(scope.scope_id, 3)
    assert head.size == 2**31 + 2
    assert verifier.link_failures(links[1:]) == []
