"""A program whose purchases are guarded, and whose runs end in every way that there is."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from sqlalchemy import create_engine

from gate.client import AlreadyStarted, Blocked, Client, GateUnavailable, Guard, SqliteStore, Store
from gate.client.store.sqlalchemy import SqlAlchemyStore

ENDS: Final = {
    "forgotten": "already started: None",
    "done": "already started: executed",
    "failed": "already started: failed",
    "refused": "blocked",
    "died in the body": "already started: None",
    "died before the body": "granted",
    "waits for delivery": "already started: executed",
    "never asked": "granted",
}
"""By the end of a run: how the next one with the same intent must end."""

_DIED: Final = 70


@dataclass(frozen=True, slots=True)
class Program:
    """The guarded program.

    Attributes:
        url: The service.
        key: Its API key.
        registry: The receipt keys that it has pinned.
        place: Where its store is: a path, or the URL of a PostgreSQL database.
        rulebook: The rulebook that decides.
    """

    url: str
    key: str
    registry: Mapping[str, Any]
    place: str
    rulebook: str

    def client(self, store: Store) -> Client:
        """A client with the store."""
        return Client(self.url, key=self.key, registry=self.registry, store=store, tries=1)

    def asked(self, end: str) -> dict[str, Any]:
        """The arguments of the guard for the run that ends so, as JSON."""
        amount = 90_000 if end == "refused" else 120
        facts = {"amount": amount, "supplier": {"country": "FR" if end == "refused" else "AT"}, "quantity": 3}
        return {"rulebook": self.rulebook, "facts": facts, "action": "buy", "target": ["shop", f"order {end}"]}

    def guard(self, client: Client, end: str) -> Guard:
        """The guard for the run that ends so."""
        return guard_of(client, self.asked(end))

    def run_until(self, stop: Callable[[], object]) -> None:
        """Every run, the last ones while and after something stops the service."""
        with opened(self.place) as store, self.client(store) as client:
            with self.guard(client, "forgotten"):
                pass
            assert client.flush().failure is None
            soon = datetime.now(UTC) + timedelta(seconds=1)
            assert store.forget(soon.isoformat(timespec="milliseconds").replace("+00:00", "Z")) == 1
            with self.guard(client, "done") as permit:
                permit.describe(result="3 pieces", external_ref="order-1", state_before_hash="sha256:0")
                permit.outcome("succeeded", metrics={"days": 2})
            with suppress(RuntimeError), self.guard(client, "failed"):
                raise RuntimeError("out of stock")
            with suppress(Blocked), self.guard(client, "refused"):
                raise AssertionError("the body ran")
            assert client.flush().failure is None
            for end in ("died in the body", "died before the body"):
                self._die(end)
            with self.guard(client, "waits for delivery") as permit:
                stop()
                permit.describe(result="3 pieces")
                permit.outcome("pending")
            with suppress(GateUnavailable), self.guard(client, "never asked"):
                raise AssertionError("the body ran")

    def _die(self, end: str) -> None:
        process = multiprocessing.get_context("spawn").Process(target=_run_and_die, args=(self, end))
        process.start()
        process.join(60)
        assert process.exitcode == _DIED

    def told(self) -> dict[str, Any]:
        """Every run as the store knows it, and the reports that wait, as JSON."""
        with opened(self.place) as store, self.client(store) as client:
            intents = [self._intent(store, client, end) for end in ENDS]
            pending = [
                {"kind": each.kind, "decision_id": each.decision_id, "idempotency_key": each.idempotency_key}
                for each in store.undelivered(100)
            ]
        return {"intents": intents, "pending": pending}

    def _intent(self, store: Store, client: Client, end: str) -> dict[str, Any]:
        said = said_of(store, self.guard(client, end).intent_id)
        return {"end": end, "then": ENDS[end], "asked": self.asked(end), "said": said}


@contextmanager
def opened(place: str) -> Iterator[Store]:
    """The store in a file, or in a PostgreSQL database, where its tables are made."""
    if not place.startswith("postgresql:"):
        with SqliteStore(Path(place)) as in_file:
            yield in_file
        return
    engine = create_engine(place.replace("postgresql:", "postgresql+psycopg:", 1))
    try:
        in_database = SqlAlchemyStore(engine)
        in_database.create_tables()
        yield in_database
    finally:
        engine.dispose()


def guard_of(client: Client, asked: Mapping[str, Any]) -> Guard:
    """The guard with arguments that were kept as JSON."""
    return client.guard(asked["rulebook"], asked["facts"], action=asked["action"], target=tuple(asked["target"]))


def became_of(client: Client, asked: Mapping[str, Any]) -> str:
    """How the next run with an intent ends."""
    try:
        with guard_of(client, asked):
            return "granted"
    except Blocked:
        return "blocked"
    except AlreadyStarted as refusal:
        execution = refusal.execution or {}
        return f"already started: {execution.get('execution_status')}"


def said_of(store: Store, intent_id: str) -> dict[str, Any]:
    """An intent as a store knows it, as JSON."""
    found = store.find(intent_id)
    assert found is not None
    return {
        "intent_id": found.intent_id,
        "attempt": found.attempt,
        "state": found.state.value,
        "started_at": found.started_at,
        "request": found.request if found.asked else None,
        "record": found.record,
        "execution": found.execution,
    }


def _run_and_die(program: Program, end: str) -> None:
    with opened(program.place) as store, program.client(store) as client:
        if end == "died before the body":
            with patch.object(store, "start", side_effect=lambda *_: os._exit(_DIED)), program.guard(client, end):
                return
        with program.guard(client, end):
            os._exit(_DIED)
