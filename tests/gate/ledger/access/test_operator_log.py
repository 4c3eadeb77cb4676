"""The operator log: every action has its entry, in one transaction with it, and none can be changed unseen."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from typing import Any, TypeAlias

import pytest
from sqlalchemy import Executable, LargeBinary, Update, delete, insert, literal, select, text, update

from gate.errors import OperatorError, ServiceUnavailable
from gate.ids import timestamp
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import FULL_ACCESS, ApiKey, Scope
from gate.ledger.access.scopes import Directory
from gate.ledger.tables import operator_log
from tests.support.samples import NOW, in_threads, ledger_url, rows_of

Action: TypeAlias = Callable[[Directory, Scope, ApiKey], object]

ACTIONS: dict[str, Action] = {
    "scope.created": lambda directory, scope, key: directory.create_scope("other-2", "team", NOW, monthly_cap=7),
    "scope.plan_changed": lambda directory, scope, key: directory.set_plan(scope, "starter", NOW),
    "key.created": lambda directory, scope, key: directory.create_key(
        scope, {"read", "decide"}, NOW + timedelta(hours=1), NOW
    ),
    "key.disabled": lambda directory, scope, key: directory.disable_key(key.key_id, NOW),
    "key.rotated": lambda directory, scope, key: directory.rotate_key(key.key_id, timedelta(), NOW),
}
DETAILS: dict[str, dict[str, Any]] = {
    "scope.created": {"plan": "team", "monthly_cap": 7},
    "scope.plan_changed": {"plan": "starter", "monthly_cap": 10_000},
    "key.created": {"scope": "acme", "access": ["decide", "read"], "expires_at": timestamp(NOW + timedelta(hours=1))},
    "key.disabled": {},
}


@pytest.fixture
def made(ledger: Ledger, scope: Scope) -> ApiKey:
    return ledger.directory.create_key(scope, FULL_ACCESS, None, NOW)[1]


def actions_in(ledger: Ledger) -> list[str]:
    return [entry.action for entry in ledger.operator_log.latest(1000)]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_logged_with_who_did_what_and_when(
    ledger: Ledger, scope: Scope, made: ApiKey, action: str
) -> None:
    ACTIONS[action](ledger.directory, scope, made)
    entry = ledger.operator_log.latest(1)[0]
    assert (entry.position, entry.action, entry.created_at) == (3, action, timestamp(NOW))
    assert entry.operator == f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"
    newest = max(ledger.directory.keys(), key=lambda key: key.key_id != made.key_id)
    subjects = {"scope.created": "other-2", "scope.plan_changed": "acme", "key.created": newest.key_id}
    assert entry.subject == subjects.get(action, made.key_id)
    assert entry.details == DETAILS.get(action, {"new_key_id": newest.key_id})
    assert ledger.operator_log.find_break() is None


def test_what_cannot_be_logged_is_not_done(ledger: Ledger, scope: Scope, made: ApiKey) -> None:
    def execute(statement: str) -> None:
        with ledger.store.write() as connection:
            connection.execute(text(statement))

    before = rows_of(ledger.store)
    execute("ALTER TABLE operator_log RENAME TO gone")
    for action in ACTIONS.values():
        with pytest.raises(ServiceUnavailable):
            action(ledger.directory, scope, made)
    execute("ALTER TABLE gone RENAME TO operator_log")
    assert rows_of(ledger.store) == before


def test_what_is_not_done_is_not_logged(ledger: Ledger, scope: Scope, made: ApiKey) -> None:
    directory = ledger.directory
    directory.disable_key(made.key_id, NOW)
    before = actions_in(ledger)
    refused: list[Callable[[], object]] = [
        lambda: directory.create_scope("acme", "team", NOW),
        lambda: directory.create_scope("x", "gold", NOW),
        lambda: directory.create_scope("x", "unlimited", NOW, monthly_cap=1),
        lambda: directory.create_scope("x", "starter", NOW, monthly_cap=-1),
        lambda: directory.set_plan(scope, "gold", NOW),
        lambda: directory.create_key(scope, {"root"}, None, NOW),
        lambda: directory.disable_key("0123", NOW),
        lambda: directory.rotate_key(made.key_id, timedelta(), NOW),
    ]
    for attempt in refused:
        with pytest.raises(OperatorError):
            attempt()
    directory.disable_key(made.key_id, NOW + timedelta(days=1))
    assert actions_in(ledger) == before


def test_no_secret_reaches_the_log(ledger: Ledger, scope: Scope) -> None:
    key, made = ledger.directory.create_key(scope, FULL_ACCESS, None, NOW)
    rotated, _ = ledger.directory.rotate_key(made.key_id, timedelta(), NOW)
    rows = rows_of(ledger.store)
    hashes = [cell for row in rows["api_keys"] for cell in row if len(str(cell)) == 64]
    assert len(hashes) == 2
    for secret in (key, rotated, key.split("_", 2)[2], rotated.split("_", 2)[2], *hashes):
        assert secret not in str(rows["operator_log"])


def test_the_latest_entries_are_ascending(ledger: Ledger) -> None:
    for number in range(4):
        with ledger.operator_log.recording("test.done", f"{number}", NOW) as details:
            details["number"] = number
    assert [entry.position for entry in ledger.operator_log.latest(3)] == [2, 3, 4]
    assert [entry.details["number"] for entry in ledger.operator_log.latest(99)] == [0, 1, 2, 3]


def test_a_recorded_block_that_fails_leaves_no_entry(ledger: Ledger) -> None:
    with pytest.raises(RuntimeError), ledger.operator_log.recording("test.done", "x", NOW):
        raise RuntimeError
    assert ledger.operator_log.latest(9) == []
    with ledger.operator_log.recording("test.done", "y", NOW):
        pass
    assert [entry.position for entry in ledger.operator_log.latest(9)] == [1]


class TestTampering:
    """Five entries, and what becomes of the log when somebody changes them."""

    @pytest.fixture
    def ledger(self, ledger: Ledger) -> Ledger:
        for number in range(5):
            with ledger.operator_log.recording("test.done", "subject", NOW + timedelta(seconds=number)) as details:
                details["number"] = number
        return ledger

    def break_after(self, ledger: Ledger, *changes: Executable) -> int | None:
        """Where the log breaks after changes, which are then undone."""
        with ledger.store.write() as connection:
            kept = [dict(row) for row in connection.execute(select(operator_log)).mappings()]
            for change in changes:
                connection.execute(change)
        found = ledger.operator_log.find_break()
        with ledger.store.write() as connection:
            connection.execute(delete(operator_log))
            connection.execute(insert(operator_log), kept)
        assert ledger.operator_log.find_break() is None
        return found

    def test_a_changed_entry_is_named(self, ledger: Ledger) -> None:
        values: list[dict[str, Any]] = [
            {"position": 77},
            {"created_at": "2026-06-11T12:00:00.000Z"},
            {"operator": "somebody@else"},
            {"action": "test.undone"},
            {"subject": "object"},
            {"details": b'{"number":99}'},
            {"details": b"{}"},
            {"entry_hash": "0" * 64},
        ]
        assert {name for change in values for name in change} == set(operator_log.c.keys())
        for position, change in product((1, 3, 5), values):
            found = self.break_after(ledger, at(position).values(change))
            assert found == position, (position, change)

    def test_an_entry_that_cannot_be_read_is_named(self, ledger: Ledger) -> None:
        for column in ("details", "subject", "operator"):
            found = self.break_after(ledger, at(3).values({column: literal(b"\xff", LargeBinary)}))
            assert found == 3, column

    def test_an_entry_taken_out_is_missed(self, ledger: Ledger) -> None:
        for position in (1, 3):
            taken_out = delete(operator_log).where(operator_log.c.position == position)
            assert self.break_after(ledger, taken_out) == position
        close_ranks = [at(position).values(position=position - 1) for position in (3, 4, 5)]
        assert self.break_after(ledger, delete(operator_log).where(operator_log.c.position == 2), *close_ranks) == 2

    def test_entries_in_another_order_are_named(self, ledger: Ledger) -> None:
        moves = [at(before).values(position=after) for before, after in ((2, 99), (4, 2), (99, 4))]
        assert self.break_after(ledger, *moves) == 2


def at(position: int) -> Update:
    return update(operator_log).where(operator_log.c.position == position)


def test_operators_at_the_same_moment_get_positions_without_gap_or_fork(ledger: Ledger, scope: Scope) -> None:
    other = open_ledger(ledger_url(ledger))

    def operate(number: int) -> None:
        mine = (ledger, other)[number % 2]
        for turn in range(4):
            with mine.operator_log.recording("test.done", f"{number}", NOW) as details:
                details["turn"] = turn
            mine.directory.create_key(scope, FULL_ACCESS, None, NOW)

    in_threads(6, operate)
    entries = ledger.operator_log.latest(1000)
    assert [entry.position for entry in entries] == list(range(1, 1 + 1 + 6 * 4 * 2))
    assert ledger.operator_log.find_break() is None
    other.close()


def test_a_key_that_several_disable_at_once_is_disabled_once(ledger: Ledger, made: ApiKey) -> None:
    found = in_threads(8, lambda number: ledger.directory.disable_key(made.key_id, NOW + timedelta(seconds=number)))
    assert len({key.disabled_at for key in found}) == 1
    assert actions_in(ledger).count("key.disabled") == 1


def test_a_key_that_several_rotate_at_once_is_rotated_once(ledger: Ledger, made: ApiKey) -> None:
    def rotate(_: int) -> str:
        try:
            ledger.directory.rotate_key(made.key_id, timedelta(), NOW)
        except OperatorError as error:
            return error.code
        return "rotated"

    assert sorted(in_threads(8, rotate)) == ["KEY_NOT_ACTIVE"] * 7 + ["rotated"]
    assert len(ledger.directory.keys()) == 2
