"""Several processes and one store: what is started is started once, and what was acknowledged is there."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from gate.client.store import SqliteStore, State, Store
from tests.gate.client.store import forking, racing
from tests.gate.client.store.places import Place
from tests.gate.client.store.racing import Several, several_processes
from tests.gate.client.store.support import AT, BY, attempt, latest, permitted
from tests.support.postgres import Postgres
from tests.support.processes import forked
from tests.support.torture import size

pytestmark = pytest.mark.heavy

ROUNDS: Final = size(40, 5000)
ORDER: Final = (State.PERMITTED, State.STARTED, State.REPORTED)


@pytest.fixture(scope="module")
def several() -> Iterator[Several]:
    """Processes beside this one."""
    with several_processes() as started:
        yield started


def test_of_all_processes_that_start_an_intent_or_replace_it_one_goes_on(
    place: Place, store: Store, several: Several
) -> None:
    for number in range(ROUNDS):
        permitted(store, f"start-{number}")
        permitted(store, f"either-{number}")
    started = several.each(racing.start_all, place.kind, place.location, "start", ROUNDS)
    assert Counter(name for won in started for name in won) == {f"start-{number}": 1 for number in range(ROUNDS)}
    did = several.each(racing.start_or_replace, place.kind, place.location, "either", ROUNDS)
    outcomes = dict(each for won in did for each in won)
    assert sum(map(len, did)) == len(outcomes) == ROUNDS
    for name, what in outcomes.items():
        intent = latest(store, name)
        assert (intent.state, intent.attempt) == ((State.STARTED, 1) if what == "start" else (State.HELD, 2))


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_processes_that_make_a_file_at_once_make_one_store(kind: str, several: Several, tmp_path: Path) -> None:
    location = f"{tmp_path}/new/intents.db" if kind == "file" else f"sqlite:///{tmp_path}/caller.db"
    found = several.each(racing.begin, kind, location)
    assert len({identity for identity, _ in found}) == 1
    assert sum(held for _, held in found) == 1


def test_processes_that_make_tables_at_once_make_one_store(several: Several, postgres: Postgres) -> None:
    with postgres.database() as url:
        found = several.each(racing.begin, "postgresql", url.replace("postgresql:", "postgresql+psycopg:"))
    assert len({identity for identity, _ in found}) == 1
    assert sum(held for _, held in found) == 1


def test_a_process_that_is_killed_loses_nothing_that_was_acknowledged(place: Place, store: Store) -> None:
    context = forked()
    hears, told = context.Pipe(duplex=False)
    process = context.Process(target=racing.work_until_killed, args=(place.kind, place.location, told))
    process.start()
    told.close()
    acknowledged = dict(hears.recv() for _ in range(size(40, 2000)))
    process.kill()
    try:
        while True:
            name, state = hears.recv()
            acknowledged[name] = state
    except EOFError:
        process.join()
    hears.close()
    for name, state in acknowledged.items():
        # The step that it was in the middle of may be whole, or not be.
        assert ORDER.index(latest(store, name).state) in (ORDER.index(state), ORDER.index(state) + 1)
    unfinished = [latest(store, name) for name, state in acknowledged.items() if state is not State.REPORTED]
    assert len(unfinished) <= 1
    for intent in unfinished:
        assert store.start(intent, AT, BY) is (intent.state is State.PERMITTED)
    assert store.hold(attempt("after"))


@pytest.mark.parametrize(
    ("work", "held"),
    [
        (
            forking.outlive_the_parent,
            ["before", "child, not alone", "parent", "child, alone", "another process"],
        ),
        (forking.fork_while_threads_write, [f"child-{number}" for number in range(10)]),
        (forking.fork_without_python, ["before", "after"]),
    ],
)
def test_a_fork_loses_nothing_and_blocks_nobody(work: Callable[[Path], None], held: list[str], tmp_path: Path) -> None:
    file = tmp_path / "intents.db"
    process = multiprocessing.get_context("spawn").Process(target=work, args=(file,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    with SqliteStore(file) as store:
        for name in held:
            assert latest(store, name) == attempt(name)
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
