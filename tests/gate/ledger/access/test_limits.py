"""Rate limits: a sliding minute, exact, shared by all that count, on a clock that may be set back."""

from __future__ import annotations

import stat
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from gate.clock import utc_now
from gate.errors import ServiceUnavailable
from gate.instance.instance import Instance
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.access.limits import WINDOW, Rate, RateLimiter, open_limits, replace_damaged_limits
from tests.support.samples import LimitClock, in_threads, ledger_url, sample_request, sqlite_file


@pytest.fixture
def limiter(instance: Instance) -> RateLimiter:
    return instance.limiter


def test_a_window_slides_and_says_what_is_left_and_when_there_is_more(
    limiter: RateLimiter, limit_clock: LimitClock
) -> None:
    begin = limit_clock.now

    def at(seconds: float) -> Rate:
        limit_clock.now = begin + seconds
        return limiter.admit("scope", "key", 3)

    assert at(0) == Rate(3, 2, 0)
    assert at(10.5) == Rate(3, 1, 0)
    assert at(20) == Rate(3, 0, 0)
    assert at(20) == Rate(3, 0, 40)
    assert at(20.25) == Rate(3, 0, 40)
    assert at(59.75) == Rate(3, 0, 1), "a request counts for a whole minute"
    assert at(60) == Rate(3, 0, 0), "and no longer"
    assert at(60) == Rate(3, 0, 11)
    assert at(70.25) == Rate(3, 0, 1)
    assert at(70.5) == Rate(3, 0, 0)
    assert at(200) == Rate(3, 2, 0)


def test_whoever_waits_as_long_as_told_is_admitted(limiter: RateLimiter, limit_clock: LimitClock) -> None:
    waited = []
    for offset in (0.125, 7.5, 0.0, 31.0, 0.0, 0.25, 3.0, 0.0, 45.0):
        limit_clock.now += offset
        rate = limiter.admit("scope", "key", 4)
        if not rate.admitted:
            waited.append(rate.retry_after)
            limit_clock.now += rate.retry_after
            assert limiter.admit("scope", "key", 4).admitted
    assert waited == [22, 7, 28]


def test_refused_requests_count_for_nothing(limiter: RateLimiter, limit_clock: LimitClock) -> None:
    assert limiter.admit("scope", "key", 1).admitted
    for second in range(1, 60):
        limit_clock.now += 1
        assert limiter.admit("scope", "key", 1) == Rate(1, 0, 60 - second)
    limit_clock.now += 1
    assert limiter.admit("scope", "key", 1).admitted


def test_requests_that_come_together_are_counted_as_one_after_the_other(
    limiter: RateLimiter, limit_clock: LimitClock
) -> None:
    serial = count()

    @settings(max_examples=20)
    @given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 160)), min_size=1, max_size=12), st.integers(1, 7))
    def holds(groups: list[tuple[int, int]], limit: int) -> None:
        key_id = f"key-{next(serial)}"
        for requests, quarters in groups:
            together = limiter.admit_all("together", key_id, limit, requests)
            assert together == [limiter.admit("alone", key_id, limit) for _ in range(requests)]
            limit_clock.now += quarters / 4

    holds()


def test_keys_have_windows_of_their_own(limiter: RateLimiter, limit_clock: LimitClock) -> None:
    keys = [("a", "b"), ("a", "bc"), ("ab", "c"), ("b", "a")]
    for scope_id, key_id in keys:
        assert limiter.admit(scope_id, key_id, 1).admitted
    for scope_id, key_id in keys:
        assert not limiter.admit(scope_id, key_id, 1).admitted


def test_another_plan_counts_what_was_admitted_under_the_one_before(
    limiter: RateLimiter, limit_clock: LimitClock
) -> None:
    for _ in range(5):
        assert limiter.admit("scope", "key", 600).admitted
        limit_clock.now += 1
    assert limiter.admit("scope", "key", 2) == Rate(2, 0, 58), "until all but one of the five are a minute old"
    assert limiter.admit("scope", "key", 600) == Rate(600, 594, 0)


def test_a_full_window_opens_within_a_minute_of_a_clock_that_was_set_back(
    limiter: RateLimiter, limit_clock: LimitClock
) -> None:
    for _ in range(2):
        assert limiter.admit("scope", "key", 2).admitted
    limit_clock.now -= 7200
    assert limiter.admit("scope", "key", 2) == Rate(2, 0, 60)
    limit_clock.now += 30
    assert limiter.admit("scope", "key", 2) == Rate(2, 0, 30)
    limit_clock.now += 30
    assert limiter.admit("scope", "key", 2) == Rate(2, 1, 0)


Move: TypeAlias = Callable[[float], float]

# Quarters of a second are exact at every moment until 2038, so that the edges are those of the rule.
MOVES: st.SearchStrategy[Move] = st.one_of(
    st.integers(0, 4 * 70).map(lambda quarters: lambda now: now + quarters / 4),
    st.integers(0, 12).map(lambda quarters: lambda now: now + quarters / 4),
    st.sampled_from([-7200.0, 7200.0, -61.0, -60.0, -30.0, -0.25]).map(lambda jump: lambda now: max(0.0, now + jump)),
    st.sampled_from([0.0, 2.0**31]).map(lambda moment: lambda now: moment),
)


def test_whatever_the_clock_does_no_minute_has_more_requests_and_none_waits_longer(
    limiter: RateLimiter, limit_clock: LimitClock
) -> None:
    begin, serial = limit_clock.now, count()

    @settings(max_examples=60)
    @given(st.lists(MOVES, min_size=1, max_size=30), st.integers(1, 3))
    def holds(moves: list[Move], limit: int) -> None:
        key_id = f"key-{next(serial)}"
        limit_clock.now = begin
        # A clock that knows no way back: while the real one falls, it stands.
        steady, set_back = 0.0, -WINDOW
        admitted: list[float] = []
        for move in moves:
            before, limit_clock.now = limit_clock.now, move(limit_clock.now)
            steady += max(0.0, limit_clock.now - before)
            if limit_clock.now < before:
                set_back = steady
            rate = limiter.admit("scope", key_id, limit)
            in_window = sum(moment > steady - WINDOW for moment in admitted)
            if rate.admitted:
                assert in_window < limit
                assert 0 <= rate.remaining < limit
                admitted.append(steady)
            else:
                assert rate.remaining == 0
                assert 1 <= rate.retry_after <= WINDOW
                assert in_window >= limit or steady < set_back + WINDOW

    holds()


def test_first_requests_in_concurrency_share_one_window(limiter: RateLimiter, limit_clock: LimitClock) -> None:
    rates = in_threads(16, lambda _: limiter.admit("scope", "key", 5))
    assert sorted(rate.remaining for rate in rates if rate.admitted) == [0, 1, 2, 3, 4]


def test_all_that_have_the_ledger_open_share_the_windows(
    ledger: Ledger, limiter: RateLimiter, limit_clock: LimitClock
) -> None:
    other = open_ledger(ledger_url(ledger))
    others = open_limits(other.store)
    rates = in_threads(12, lambda number: (limiter, others)[number % 2].admit("scope", "key", 7))
    assert sum(rate.admitted for rate in rates) == 7
    others.close()
    other.close()


def test_what_cannot_be_counted_is_not_admitted(limiter: RateLimiter) -> None:
    assert limiter.admit("scope", "key", 5).admitted
    with limiter._store.write() as connection:
        connection.execute(text("ALTER TABLE rate_windows RENAME TO gone"))
    with pytest.raises(ServiceUnavailable) as refusal:
        limiter.admit("scope", "key", 5)
    assert refusal.value.code == "SVC_STORAGE_UNAVAILABLE"
    with limiter._store.write() as connection:
        connection.execute(text("ALTER TABLE gone RENAME TO rate_windows"))
    assert limiter.admit("scope", "key", 5).remaining == 3


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
class TestTheFileBesideSqlite:
    """ledger.db.limits."""

    @pytest.fixture
    def file(self, ledger: Ledger) -> Path:
        return sqlite_file(ledger).with_name("ledger.db.limits")

    def test_it_is_private_and_waits_for_no_disk(self, limiter: RateLimiter, file: Path) -> None:
        limiter.admit("scope", "key", 5)
        laid_beside = sorted(file.parent.glob("ledger.db.limits*"))
        assert [found.name.removeprefix(file.name) for found in laid_beside] == ["", "-shm", "-wal", ".lock"]
        assert {stat.S_IMODE(found.stat().st_mode) for found in laid_beside} == {0o600}
        with limiter._store.read() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 0

    def test_a_refusal_writes_nothing_to_the_ledger(
        self, client: FlaskClient, ledger: Ledger, limit_clock: LimitClock
    ) -> None:
        scope = ledger.directory.create_scope("small", "starter", utc_now())
        key, _ = ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())

        def status() -> int:
            return client.post("/api/decide", json=sample_request(), headers={"x-api-key": key}).status_code

        def ledger_bytes() -> list[bytes]:
            return [sqlite_file(ledger).with_name(name).read_bytes() for name in ("ledger.db", "ledger.db-wal")]

        assert {status() for _ in range(20)} == {200}
        before = ledger_bytes()
        assert {status() for _ in range(5)} == {429}
        assert ledger_bytes() == before

    def test_windows_survive_a_restart(self, ledger: Ledger, limit_clock: LimitClock) -> None:
        first = open_limits(ledger.store)
        assert first.admit("scope", "key", 2).remaining == 1
        first.close()
        replace_damaged_limits(ledger.store)
        second = open_limits(ledger.store)
        assert second.admit("scope", "key", 2).remaining == 0
        second.close()

    @pytest.mark.parametrize("damaged_from", [0, 4096], ids=["header", "page"])
    def test_a_damaged_file_is_made_anew(
        self, ledger: Ledger, file: Path, limit_clock: LimitClock, damaged_from: int
    ) -> None:
        first = open_limits(ledger.store)
        for number in range(40):
            first.admit("scope", f"key-{number:060}", 2)
        first.close()
        whole = file.read_bytes()
        assert len(whole) > 2 * 4096
        file.write_bytes(whole[:damaged_from] + b"\xa5" * 4096 + whole[damaged_from + 4096 :])
        replace_damaged_limits(ledger.store)
        assert [found.name for found in file.parent.glob("ledger.db.limits*")] == ["ledger.db.limits.lock"]
        second = open_limits(ledger.store)
        assert second.admit("scope", f"key-{0:060}", 2).remaining == 1
        second.close()

    def test_where_there_is_none_none_is_made(self, ledger: Ledger, file: Path) -> None:
        replace_damaged_limits(ledger.store)
        assert not file.exists()


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_on_postgresql_the_windows_are_not_logged_to_disk(ledger: Ledger) -> None:
    with ledger.store.read() as connection:
        kind = connection.execute(text("SELECT relpersistence FROM pg_class WHERE relname = 'rate_windows'"))
        assert kind.scalar_one() == "u"


def test_limits_whose_file_was_removed_or_replaced_begin_anew(instance: Instance, ledger: Ledger) -> None:
    if ledger.store.engine.name != "sqlite":
        pytest.skip("PostgreSQL keeps them in a table")
    file = sqlite_file(ledger).with_name("ledger.db.limits")
    first, second = instance.limiter, open_limits(ledger.store)
    assert first.admit("scope", "key", 2).remaining == 1
    assert second.admit("scope", "key", 2).remaining == 0
    for name in ("", "-wal", "-shm"):
        file.with_name(file.name + name).unlink(missing_ok=True)
    assert first.admit("scope", "key", 2).remaining == 1
    assert second.admit("scope", "key", 2).remaining == 0, "the two count together again"
    assert not first.admit("scope", "key", 2).admitted
    second.close()


def test_a_database_whose_transactions_would_see_old_snapshots_does_not_disturb_limits(
    instance: Instance, ledger: Ledger
) -> None:
    if ledger.store.engine.name != "postgresql":
        pytest.skip("it is a setting of PostgreSQL")
    engine = ledger.store.engine
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = engine.url.database
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_isolation TO 'serializable'"))
    ledger.store.close()
    admitted: list[bool] = []
    in_threads(16, lambda number: admitted.append(instance.limiter.admit("s", f"key {number % 2}", 100).admitted))
    assert admitted == [True] * 16
