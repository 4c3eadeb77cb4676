"""The ledger's contract: every test here runs on SQLite and on PostgreSQL, unless it says which one it is about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gate.instance.instance import Instance
from tests.support.postgres import database_of


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is."""
    with database_of(request) as url:
        yield url


@pytest.fixture
def instance(home: Path, instance: Instance) -> Instance:
    """One of each test's own: these look at its files, and damage them."""
    return instance
