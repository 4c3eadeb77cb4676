"""Where a test with servers keeps its ledger. What asks for one of these runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.end_to_end.site import Site
from tests.support.postgres import Postgres

Databases = Callable[[], str | None]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def databases(request: pytest.FixtureRequest) -> Iterator[Databases]:
    """Makes an empty database and names its URL; None stands for the file in an instance's home."""
    with ExitStack() as made:
        if request.param == "sqlite":
            yield lambda: None
        else:
            server: Postgres = request.getfixturevalue("postgres")
            yield lambda: made.enter_context(server.database())


@pytest.fixture
def database_url(databases: Databases) -> str | None:
    """An empty database."""
    return databases()


@pytest.fixture
def site(tmp_path: Path, database_url: str | None) -> Site:
    """Where an instance is going to be, with nothing in it."""
    return Site(tmp_path / "home", database_url)
