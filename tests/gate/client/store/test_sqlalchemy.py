"""A database of the caller's: transactions shared with the body, engines of every setting, and what is refused."""

from __future__ import annotations

import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gate.client.store import State, sqlalchemy
from gate.client.store.intents import OUTCOME, StoreUnavailable
from gate.client.store.sqlalchemy import SqlAlchemyStore
from tests.end_to_end.support import free_port
from tests.gate.client.store.places import Place
from tests.gate.client.store.support import AT, BY, attempt, begun, execution, latest, permitted

CALLERS: Final = ("sqlite", "postgresql")
CONFIDENTIAL: Final = "the terms of 4711"


@pytest.fixture(params=CALLERS)
def kind(request: pytest.FixtureRequest) -> str:
    """Which database."""
    named: str = request.param
    return named


@pytest.fixture
def engine(place: Place) -> Engine:
    """The caller's engine, with a table of the caller's."""
    engine = place.engine()
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS refunds"))
        connection.execute(text("CREATE TABLE refunds (amount INTEGER NOT NULL)"))
    return engine


@pytest.fixture
def store(engine: Engine) -> SqlAlchemyStore:
    """A store on it."""
    return SqlAlchemyStore(engine)


def refunds(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return [amount for (amount,) in connection.execute(text("SELECT amount FROM refunds"))]


def refund(session: Session, amount: int | None = 7) -> None:
    session.execute(text("INSERT INTO refunds VALUES (:amount)"), {"amount": amount})


class TestWithinASession:
    def test_what_is_rolled_back_was_never_started(self, store: SqlAlchemyStore, engine: Engine) -> None:
        with Session(engine) as session:
            within = store.within(session)
            intent = permitted(within)
            assert within.start(intent, AT, BY)
            refund(session)
            assert within.finish(begun(intent), execution(intent))
            within.tell(execution(intent, OUTCOME))
            session.rollback()
        assert latest(store, "refund-1") == intent
        assert intent.state is State.PERMITTED
        assert store.undelivered(10) == []
        assert refunds(engine) == []

    def test_what_is_committed_is_started_and_told_with_its_effects(
        self, store: SqlAlchemyStore, engine: Engine
    ) -> None:
        with Session(engine) as session:
            within = store.within(session)
            intent = permitted(within)
            assert within.start(intent, AT, BY)
            refund(session)
            assert within.finish(begun(intent), execution(intent))
            within.tell(execution(intent, OUTCOME))
            # Nobody else sees any of it yet.
            assert latest(store, "refund-1") == latest(within, "refund-1") == intent
            assert store.undelivered(10) == within.undelivered(10) == []
            session.commit()
        found = latest(store, "refund-1")
        assert (found.state, found.told) == (State.STARTED, execution(intent).body)
        assert [report.kind for report in store.undelivered(10)] == ["execution", "outcome"]
        assert refunds(engine) == [7]

    def test_a_body_that_fails_in_the_database_leaves_the_intent_permitted(
        self, store: SqlAlchemyStore, engine: Engine
    ) -> None:
        intent = permitted(store)
        with Session(engine) as session:
            assert store.within(session).start(intent, AT, BY)
            with pytest.raises(IntegrityError):
                refund(session, None)
        assert latest(store, "refund-1") == intent

    def test_what_did_not_begin_is_permitted_again(self, store: SqlAlchemyStore, engine: Engine) -> None:
        intent = permitted(store)
        with Session(engine) as session, session.begin():
            within = store.within(session)
            assert within.start(intent, AT, BY)
            assert not within.start(intent, AT, BY)
            within.unstart(begun(intent))
            assert not within.finish(begun(intent), execution(intent))
        assert latest(store, "refund-1") == intent
        assert store.undelivered(10) == []

    def test_of_two_sessions_one_starts_an_intent(
        self, store: SqlAlchemyStore, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlalchemy, "_WAIT", text("SET LOCAL lock_timeout = '50ms'"))
        intent = permitted(store)
        other = SqlAlchemyStore(impatient(place))
        with Session(place.engine()) as session:
            assert store.within(session).start(intent, AT, BY)
            # Whether it is started is not known before the session has ended.
            with pytest.raises(StoreUnavailable, match="lock"):
                other.start(intent, AT, BY)
            with pytest.raises(StoreUnavailable, match="lock"):
                other.hold(attempt(number=2), instead_of=intent)
            session.commit()
        assert not other.start(intent, AT, BY)
        assert not other.hold(attempt(number=2), instead_of=intent)

    def test_a_session_on_another_database_is_refused(
        self, store: SqlAlchemyStore, engine: Engine, tmp_path: Path
    ) -> None:
        intent = permitted(store)
        elsewhere = create_engine(f"sqlite:///{tmp_path}/elsewhere.db")
        with Session(elsewhere) as session, pytest.raises(StoreUnavailable, match="another database"):
            store.within(session).start(intent, AT, BY)
        elsewhere.dispose()
        with Session(engine.execution_options(logging_token="caller")) as session, session.begin():
            assert store.within(session).start(intent, AT, BY)


def impatient(place: Place) -> Engine:
    """An engine that does not wait for a lock of SQLite's."""
    engine = place.engine()
    if place.kind == "sqlite":

        @event.listens_for(engine, "connect")
        def connect(connection: sqlite3.Connection, _: object) -> None:
            connection.execute("PRAGMA busy_timeout = 50")

    return engine


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_session_that_wrote_before_keeps_the_guard_out_of_sqlite(
    place: Place, store: SqlAlchemyStore, engine: Engine
) -> None:
    guarded = SqlAlchemyStore(impatient(place))
    assert guarded.identity == store.identity
    with Session(engine) as session:
        refund(session)
        with pytest.raises(StoreUnavailable, match="database is locked"):
            guarded.within(session).hold(attempt())
        session.commit()
    assert store.find("refund-1") is None
    assert refunds(engine) == [7]


def autocommits(place: Place) -> Engine:
    engine = create_engine(place.location, isolation_level="AUTOCOMMIT")
    place._engines.append(engine)
    return engine


def serializable(place: Place) -> Engine:
    engine = create_engine(place.location, isolation_level="SERIALIZABLE")
    place._engines.append(engine)
    return engine


def begins_itself(place: Place) -> Engine:
    """As callers do who do not want the driver to begin transactions."""
    engine = place.engine()
    if place.kind == "sqlite":

        @event.listens_for(engine, "connect")
        def connect(connection: sqlite3.Connection, _: object) -> None:
            connection.isolation_level = None

        @event.listens_for(engine, "begin")
        def begin(connection: Any) -> None:
            connection.exec_driver_sql("BEGIN")

    return engine


class TestEngines:
    @pytest.mark.parametrize("make", [autocommits, serializable, begins_itself])
    def test_a_transition_is_whole_whatever_the_engine_is_set_to(
        self, make: Callable[[Place], Engine], place: Place, store: SqlAlchemyStore, engine: Engine
    ) -> None:
        intent = permitted(store)
        # An attempt that came from nowhere, so that the second half of the transition fails.
        with engine.begin() as connection:
            connection.execute(
                text(
                    "INSERT INTO gate_intents (intent_id, attempt, state, asked_hash, asked_at, changed_at, asked) "
                    "SELECT intent_id, 2, 'held', asked_hash, asked_at, changed_at, asked FROM gate_intents"
                )
            )
        own = SqlAlchemyStore(make(place))
        assert not own.hold(attempt(number=2), instead_of=intent)
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM gate_intents WHERE attempt = 2"))
        assert latest(store, "refund-1") == intent
        assert own.start(intent, AT, BY)
        assert not own.start(intent, AT, BY)

    @pytest.mark.parametrize("make", [autocommits, begins_itself])
    def test_an_engine_is_left_as_it_was_set(self, make: Callable[[Place], Engine], place: Place) -> None:
        engine = make(place)
        with engine.connect() as connection:
            before = connection.get_isolation_level()
        permitted(SqlAlchemyStore(engine))
        with engine.connect() as connection:
            assert connection.get_isolation_level() == before


class TestRefusals:
    def test_a_database_without_the_tables_is_told_what_it_lacks(
        self, place: Place, store: SqlAlchemyStore, engine: Engine
    ) -> None:
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE gate_intents RENAME TO gone"))
        try:
            with pytest.raises(StoreUnavailable, match=r"gate_intents.*create_tables\(\)") as refusal:
                store.find("refund-1")
            assert refusal.value.code == "INTENTS_UNAVAILABLE"
        finally:
            with engine.begin() as connection:
                connection.execute(text("ALTER TABLE gone RENAME TO gate_intents"))
        assert store.hold(attempt())

    def test_tables_of_a_newer_release_are_refused(self, place: Place, store: SqlAlchemyStore, engine: Engine) -> None:
        assert store.identity
        with engine.begin() as connection:
            connection.execute(text("UPDATE gate_store SET value = '3' WHERE name = 'version'"))
        try:
            for call in (lambda: place.open().identity, lambda: place.open().hold(attempt())):
                with pytest.raises(StoreUnavailable, match="has version 3") as refusal:
                    call()
                assert refusal.value.code == "INTENTS_VERSION"
        finally:
            with engine.begin() as connection:
                connection.execute(text("UPDATE gate_store SET value = '2' WHERE name = 'version'"))

    def test_a_refusal_repeats_nothing_that_was_to_be_stored(self, store: SqlAlchemyStore, engine: Engine) -> None:
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE gate_intents RENAME TO gone"))
        try:
            with pytest.raises(StoreUnavailable) as refusal:
                store.answer(attempt(), CONFIDENTIAL.encode(), State.PERMITTED)
        finally:
            with engine.begin() as connection:
                connection.execute(text("ALTER TABLE gone RENAME TO gate_intents"))
        assert CONFIDENTIAL not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize("query", ["", "?sslpassword=s3cret"])
def test_a_database_out_of_reach_is_told_without_its_password(query: str) -> None:
    engine = create_engine(f"postgresql+psycopg://teller:s3cret@127.0.0.1:{free_port()}/accounts{query}")
    with pytest.raises(StoreUnavailable, match="postgresql database accounts") as refusal:
        SqlAlchemyStore(engine).find("refund-1")
    assert "s3cret" not in "".join(traceback.format_exception(refusal.value))
    assert isinstance(refusal.value.__cause__, Exception)
    with pytest.raises(StoreUnavailable):
        SqlAlchemyStore(engine).create_tables()


def test_a_database_that_the_statements_are_not_for_is_refused() -> None:
    engine = create_engine("mysql+pymysql://teller:s3cret@127.0.0.1/accounts", module=sqlite3)
    with pytest.raises(StoreUnavailable, match="neither SQLite nor PostgreSQL") as refusal:
        SqlAlchemyStore(engine)
    assert "s3cret" not in str(refusal.value)
