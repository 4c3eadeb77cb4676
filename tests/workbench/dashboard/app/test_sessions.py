"""Sessions on the server: found by their id alone, living while the user does, and bounded in number."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import User
from tests.support.samples import NOW
from workbench.dashboard.app import sessions
from workbench.dashboard.app.sessions import IDLE, LIFETIME, Sessions


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(ledger: Ledger, clock: Clock) -> Sessions:
    return Sessions(ledger.users, clock)


@pytest.fixture
def ada(ledger: Ledger, scope: Scope, quick_passwords: None) -> User:
    return ledger.users.add("ada", "correct horse battery", [scope], "viewer", None, NOW)


def handle_of(kept: Sessions, session_id: str) -> str:
    session = kept.find(session_id)
    assert session is not None
    return session.handle


def test_a_session_is_found_by_its_id_and_by_nothing_else(kept: Sessions, ada: User) -> None:
    ids = [kept.begin(ada) for _ in range(3)]
    handles = [handle_of(kept, session_id) for session_id in ids]
    assert len({*ids, *handles}) == 6
    for handle in handles:
        assert kept.find(handle) is None
        assert kept.user(handle) == ada
    assert [kept.user(session_id) for session_id in ids] == [None] * 3
    # Neither an id nor the name is kept as it is.
    assert [session_id for session_id in ids if session_id in repr(vars(kept))] == []
    kept.end(handles[0])
    kept.end(handles[0])
    assert [kept.find(session_id) is None for session_id in ids] == [True, False, False]


def test_a_look_that_is_no_act_does_not_put_off_the_end(kept: Sessions, ada: User, clock: Clock) -> None:
    handle = handle_of(kept, kept.begin(ada))
    clock.now += IDLE / 2
    assert kept.user(handle, active=False) == ada
    clock.now += IDLE / 2
    assert kept.user(handle) is None
    handle = handle_of(kept, kept.begin(ada))
    end = clock.now + LIFETIME
    while clock.now + IDLE / 2 < end:
        clock.now += IDLE / 2
        assert kept.user(handle) is not None
    clock.now = end
    assert kept.user(handle) is None


def test_a_user_of_another_epoch_has_no_session(kept: Sessions, ada: User, ledger: Ledger) -> None:
    session_id = kept.begin(ada)
    handle = handle_of(kept, session_id)
    ledger.users.sign_out("ada", NOW)
    assert kept.user(handle) is None
    # It is over for good, and not only refused.
    assert kept.find(session_id) is None
    assert (kept.over(handle), kept.over_by_id(session_id)) == ("changed", "changed")
    kept.end(handle)
    assert kept.over(handle) == "changed"


def test_why_a_session_is_over_is_remembered_for_a_day(kept: Sessions, ada: User, clock: Clock) -> None:
    session_id = kept.begin(ada)
    handle = handle_of(kept, session_id)
    assert kept.over(handle) is None
    clock.now += IDLE
    assert (kept.over(handle), kept.over_by_id(session_id)) == ("idle", "idle")
    clock.now += LIFETIME
    assert kept.over(handle) == "long"
    other = handle_of(kept, kept.begin(ada))
    kept.end(other)
    assert kept.over(other) == "elsewhere"
    clock.now += timedelta(days=1)
    kept.begin(ada)
    assert (kept.over(other), kept.over_by_id("unknown")) == ("long", "long")


def test_the_oldest_sessions_go_where_there_are_too_many(
    kept: Sessions, ada: User, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_MOST", 3)
    ids = []
    for _ in range(5):
        clock.now += timedelta(seconds=1)
        ids.append(kept.begin(ada))
    assert [kept.find(session_id) is not None for session_id in ids] == [False, False, True, True, True]
    # One that is over goes before those that are not, though they are older.
    kept.end(handle_of(kept, ids[4]))
    ids.append(kept.begin(ada))
    assert [kept.find(session_id) is not None for session_id in ids[2:]] == [True, True, False, True]


def test_a_slow_act_does_not_bring_the_end_of_a_session_forward(
    kept: Sessions, ada: User, clock: Clock, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, current = handle_of(kept, kept.begin(ada)), ledger.users.current

    def meanwhile(user_id: str, epoch: int, now: datetime) -> User | None:
        monkeypatch.undo()
        # Another act begins later, and is done first.
        clock.now += IDLE / 2
        assert kept.user(handle) == ada
        return current(user_id, epoch, now)

    monkeypatch.setattr(ledger.users, "current", meanwhile)
    assert kept.user(handle) == ada
    clock.now += IDLE * 3 / 4
    assert kept.user(handle) == ada
