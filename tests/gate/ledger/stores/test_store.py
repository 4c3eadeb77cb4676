"""The store: durable settings, exclusive writers, nothing half written, foreign errors translated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, select, text

from gate.errors import OperatorError, ServiceUnavailable
from gate.ledger import Ledger, open_ledger, schema
from gate.ledger.tables import chain_heads, limits_metadata, metadata
from tests.support.samples import ledger_url


def rows(ledger: Ledger) -> int:
    with ledger.store.read() as connection:
        return len(connection.execute(select(chain_heads)).all())


def test_a_block_that_fails_writes_nothing(ledger: Ledger) -> None:
    before = rows(ledger)

    def write_and_fail() -> None:
        with ledger.store.write() as connection:
            connection.execute(
                insert(chain_heads).values(scope_id="s", chain_id="c", chain_size=0, plan="starter", access_epoch=0)
            )
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert rows(ledger) == before
    with ledger.store.write() as connection:
        connection.execute(
            insert(chain_heads).values(scope_id="s", chain_id="c", chain_size=0, plan="starter", access_epoch=0)
        )
    assert rows(ledger) == before + 1


def test_database_errors_become_the_products_own_and_quote_no_values(ledger: Ledger) -> None:
    with pytest.raises(ServiceUnavailable) as refusal, ledger.store.read() as connection:
        connection.execute(text("SELECT * FROM nowhere WHERE secret = :s"), {"s": "hunter2"})
    assert refusal.value.code == "SVC_STORAGE_UNAVAILABLE"
    assert "nowhere" in refusal.value.message
    assert "hunter2" not in str(refusal.value)


def test_the_migrations_make_exactly_the_tables_that_the_code_uses(ledger: Ledger) -> None:
    with ledger.store.read() as connection:
        tables: Any = [metadata, limits_metadata] if connection.dialect.name == "postgresql" else metadata
        assert compare_metadata(MigrationContext.configure(connection), tables) == []


def test_an_empty_or_newer_ledger_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(OperatorError, match="There is no ledger in"):
        open_ledger(f"sqlite:///{tmp_path}/empty.db")
    with ledger.store.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(OperatorError, match="schema 9999") as refusal:
        open_ledger(ledger_url(ledger))
    assert refusal.value.code == "LEDGER_SCHEMA_UNFIT"
    assert schema.HEAD in refusal.value.message
