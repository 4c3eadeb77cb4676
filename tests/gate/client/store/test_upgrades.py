"""Stores of an earlier release, whose intents had no column for resolutions: used on as they are, by old and new."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.pool import NullPool

from gate.client.store import State, Store
from gate.client.store.intents import StoreUnavailable
from gate.client.store.sqlalchemy import SqlAlchemyStore
from tests.gate.client.store.places import Place
from tests.gate.client.store.support import AT, BY, attempt, finished, in_review, latest, permitted

EARLIER_HOLD = """
    INSERT INTO gate_intents (intent_id, attempt, state, asked_hash, asked_at, changed_at, asked)
    VALUES ('earlier', 1, 'held', :hash, :at, :at, :asked)
"""


def database_of(place: Place) -> Engine:
    return create_engine(f"sqlite:///{place.location}" if place.kind == "file" else place.location, poolclass=NullPool)


def set_back(place: Place) -> None:
    """Makes a place what an earlier release has left there."""
    store = place.open()
    for prepare, name in ((permitted, "permitted"), (finished, "finished"), (in_review, "in review")):
        prepare(store, name)
    place.close()
    engine = database_of(place)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE gate_intents DROP COLUMN resolved"))
        if place.kind == "file":
            connection.execute(text("PRAGMA user_version = 1"))
        else:
            connection.execute(text("UPDATE gate_store SET value = '1' WHERE name = 'version'"))
    engine.dispose()


def version_of(place: Place) -> object:
    engine = database_of(place)
    asked = "PRAGMA user_version" if place.kind == "file" else "SELECT value FROM gate_store WHERE name = 'version'"
    with engine.connect() as connection:
        found = connection.execute(text(asked)).scalar()
    engine.dispose()
    return found


def columns_of(place: Place) -> list[str]:
    engine = database_of(place)
    found = [column["name"] for column in inspect(engine).get_columns("gate_intents")]
    engine.dispose()
    return found


def require_whole(store: Store) -> None:
    """Requires that everything is there, and goes on from where it was."""
    assert latest(store, "permitted").state is State.PERMITTED
    assert store.start(latest(store, "permitted"), AT, BY)
    assert latest(store, "finished").told is not None
    assert [report.intent_id for report in store.undelivered(9)] == ["finished"]
    assert latest(store, "in review").resolution is None
    assert store.resolve(latest(store, "in review"), b"{}", State.PERMITTED)
    assert latest(store, "in review").resolved == b"{}"


def test_an_earlier_store_keeps_everything_and_takes_resolutions(place: Place) -> None:
    identity = place.open().identity
    set_back(place)
    store = place.open()
    require_whole(store)
    assert store.identity == identity
    assert str(version_of(place)) == "2"
    assert columns_of(place).count("resolved") == 1


def test_of_many_that_open_an_earlier_store_at_once_none_fails(place: Place) -> None:
    set_back(place)
    stores = [place.open() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda store: latest(store, "finished").told is not None, stores))
    assert found == [True] * 6
    require_whole(stores[0])


def test_an_earlier_process_goes_on_with_a_store_that_was_brought_up_to_date(place: Place) -> None:
    set_back(place)
    engine = database_of(place)
    with closing(engine.connect()) as earlier:
        earlier.execute(text("SELECT told FROM gate_intents")).all()
        earlier.rollback()
        assert place.open().identity
        earlier.execute(
            text(EARLIER_HOLD),
            {"hash": attempt().asked_hash, "at": AT, "asked": attempt().asked},
        )
        earlier.commit()
    engine.dispose()
    assert latest(place.open(), "earlier").state is State.HELD


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_tables_that_were_never_used_by_their_release_get_the_column(place: Place) -> None:
    set_back(place)
    engine = database_of(place)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM gate_store"))
    engine.dispose()
    store = place.open()
    assert isinstance(store, SqlAlchemyStore)
    store.create_tables()
    require_whole(store)


@pytest.mark.parametrize("kind", ["postgresql"])
def test_a_user_who_may_not_change_the_tables_is_referred_to_their_owner(place: Place) -> None:
    set_back(place)
    engine = database_of(place)
    with engine.begin() as connection:
        connection.execute(text("DROP ROLE IF EXISTS clerk"))
        connection.execute(text("CREATE ROLE clerk"))
        connection.execute(
            text("GRANT SELECT, INSERT, UPDATE, DELETE ON gate_store, gate_intents, gate_reports TO clerk")
        )
    clerk = create_engine(place.location, poolclass=NullPool, connect_args={"options": "-c role=clerk"})
    try:
        with pytest.raises(StoreUnavailable, match=r"must be owner.*create_tables\(\) once as their owner") as refusal:
            SqlAlchemyStore(clerk).find("permitted")
        assert refusal.value.code == "INTENTS_UNAVAILABLE"
        SqlAlchemyStore(engine).create_tables()
        assert SqlAlchemyStore(clerk).find("permitted") is not None
    finally:
        SqlAlchemyStore(engine).create_tables()
        with engine.begin() as connection:
            connection.execute(text("DROP OWNED BY clerk"))
            connection.execute(text("DROP ROLE clerk"))
        engine.dispose()
