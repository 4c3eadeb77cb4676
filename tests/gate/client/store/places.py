"""Stores of every kind, over places that several processes share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from gate.client.store import Intent, Report, SqliteStore, Store
from gate.client.store.sqlalchemy import SqlAlchemyStore, metadata

KINDS: Final = ("file", "sqlite", "postgresql")
SESSION_KINDS: Final = ("sqlite in sessions", "postgresql in sessions")


class InSessions(SqlAlchemyStore):
    """What `within` gives, for a session that is committed after every call."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._bound = engine

    @contextmanager
    def _committed(self) -> Iterator[Store]:
        with Session(self._bound) as session, session.begin():
            yield self.within(session)

    def start(self, intent: Intent, at: str, by: str) -> bool:
        with self._committed() as store:
            return store.start(intent, at, by)

    def unstart(self, intent: Intent) -> None:
        with self._committed() as store:
            store.unstart(intent)

    def finish(self, intent: Intent, report: Report) -> bool:
        with self._committed() as store:
            return store.finish(intent, report)

    def tell(self, report: Report) -> None:
        with self._committed() as store:
            store.tell(report)


@dataclass
class Place:
    """Where stores of one kind keep the same things.

    Attributes:
        kind: Which stores: one of KINDS or SESSION_KINDS.
        location: A file, or the URL of a database.
    """

    kind: str
    location: str
    _engines: list[Engine] = field(default_factory=list)
    _files: list[SqliteStore] = field(default_factory=list)

    def open(self) -> Store:
        """Another store of this place, with connections of its own."""
        if self.kind == "file":
            self._files.append(SqliteStore(self.location))
            return self._files[-1]
        return (InSessions if self.kind in SESSION_KINDS else SqlAlchemyStore)(self.engine())

    def engine(self) -> Engine:
        """An engine of its own."""
        self._engines.append(create_engine(self.location))
        return self._engines[-1]

    def wipe(self) -> None:
        """Empties the tables."""
        url = f"sqlite:///{self.location}" if self.kind == "file" else self.location
        engine = create_engine(url, poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(metadata.tables["gate_intents"].delete())
            connection.execute(metadata.tables["gate_reports"].delete())

    def close(self) -> None:
        """Closes every store that was opened here."""
        for engine in self._engines:
            engine.dispose()
        for store in self._files:
            store.close()


def place_at(kind: str, folder: Path, postgres_url: str | None) -> Place:
    """A place of a kind, with tables where it needs them."""
    if kind == "file":
        return Place(kind, str(folder / "intents.db"))
    place = Place(kind, postgres_url or f"sqlite:///{folder}/caller.db")
    SqlAlchemyStore(place.engine()).create_tables()
    return place
