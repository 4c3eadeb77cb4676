"""Places for stores: a file of the guard's own, and databases of the caller's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from gate.client.store import Store
from gate.client.store.sqlalchemy import SqlAlchemyStore
from tests.gate.client.store.places import KINDS, Place, place_at
from tests.support.postgres import Postgres


@pytest.fixture(scope="session")
def callers_database(postgres: Postgres) -> Iterator[str]:
    """The URL of a PostgreSQL database with the guard's tables; making one for every test would take too long."""
    with postgres.database() as url:
        url = url.replace("postgresql:", "postgresql+psycopg:")
        engine = create_engine(url)
        SqlAlchemyStore(engine).create_tables()
        engine.dispose()
        yield url


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Which stores."""
    named: str = request.param
    return named


@pytest.fixture
def place(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A place with nothing in it."""
    url = request.getfixturevalue("callers_database") if kind.startswith("postgresql") else None
    place = place_at(kind, tmp_path, url)
    if url is not None:
        place.wipe()
    yield place
    place.close()


@pytest.fixture
def store(place: Place) -> Store:
    """A store there."""
    return place.open()
