"""The instance that tests use in turn: each finds it empty, and a new one where another left more than rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from gate.clock import utc_now
from gate.instance.instance import Instance
from tests.support.instances import InstanceInTurn


@pytest.fixture
def in_turn(tmp_path: Path, laid_out: Path) -> Iterator[InstanceInTurn]:
    homes = (tmp_path / str(number) for number in count())
    shared = InstanceInTurn(lambda: Path(shutil.copytree(laid_out, next(homes))))
    yield shared
    shared.close()


def sql(statement: str) -> Callable[[Instance], None]:
    def run(instance: Instance) -> None:
        with instance.ledger.store.write() as connection:
            connection.exec_driver_sql(statement)

    return run


def test_it_is_the_same_and_empty_where_only_rows_were_written(in_turn: InstanceInTurn) -> None:
    first = in_turn.take()
    scope = first.ledger.directory.create_scope("acme", "unlimited", utc_now())
    assert first.limiter.admit(scope.scope_id, "key", 1).admitted
    second = in_turn.take()
    assert second.ledger.store is first.ledger.store
    assert second.ledger.directory is not first.ledger.directory
    assert second.ledger.entries.totals().scopes == 0
    again = second.ledger.directory.create_scope("acme", "unlimited", utc_now())
    assert second.limiter.admit(again.scope_id, "key", 1).admitted


@pytest.mark.parametrize(
    "change",
    [
        sql("CREATE TRIGGER fault BEFORE INSERT ON scopes BEGIN SELECT RAISE(ABORT, 'no'); END"),
        sql("ALTER TABLE entries RENAME TO gone"),
        sql("UPDATE alembic_version SET version_num = '9999'"),
        lambda instance: (instance.settings.home / "keys" / "receipt.json").unlink(),
        lambda instance: instance.receipt_keys.rotate(utc_now()),
        lambda instance: (instance.settings.home / "settings.toml").write_text(""),
        lambda instance: (instance.settings.home / "keys").chmod(0o755),
        lambda instance: instance.settings.lake_directory.mkdir(),
        lambda instance: (instance.settings.home / "ledger.db.limits").unlink(),
        lambda instance: instance.close(),
    ],
)
def test_there_is_a_new_one_where_anything_else_was_changed(
    in_turn: InstanceInTurn, change: Callable[[Instance], object]
) -> None:
    first = in_turn.take()
    change(first)
    second = in_turn.take()
    assert second.settings.home != first.settings.home
    second.ledger.directory.create_scope("acme", "unlimited", utc_now())


def test_there_is_a_new_one_for_other_settings(in_turn: InstanceInTurn, monkeypatch: pytest.MonkeyPatch) -> None:
    first = in_turn.take()
    monkeypatch.setenv("GATE_BASE_URL", "http://other.example")
    assert first.settings.base_url != in_turn.take().settings.base_url == "http://other.example"
    monkeypatch.undo()
    assert in_turn.take().settings.base_url == first.settings.base_url
