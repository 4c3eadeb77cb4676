"""What several processes do to one store at once, and what one does until it is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any, Final, TypeVar

from gate.client.store import State
from gate.client.store.sqlalchemy import SqlAlchemyStore
from tests.gate.client.store.places import Place
from tests.gate.client.store.support import AT, BY, attempt, begun, execution, latest, permitted
from tests.support.processes import forked

PROCESSES: Final = 3

Done = TypeVar("Done")

_ENDLESS: Final = 1_000_000
_SECONDS: Final = 120.0
_meetings: Final[list[Barrier]] = []


class Several:
    """Some processes beside this one."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._executor = executor

    def each(self, work: Callable[..., Done], *arguments: Any) -> list[Done]:
        """What work gives in each of them, called with the arguments and the process's number."""
        running = [self._executor.submit(work, *arguments, number) for number in range(PROCESSES)]
        return [done.result(_SECONDS) for done in running]


@contextmanager
def several_processes() -> Iterator[Several]:
    """Processes that load what is in here, and no more of the product."""
    context = forked()
    meeting = context.Barrier(PROCESSES)
    with ProcessPoolExecutor(PROCESSES, context, initializer=_join, initargs=(meeting,)) as executor:
        yield Several(executor)


def _join(meeting: Barrier) -> None:
    _meetings.append(meeting)


def _meet() -> None:
    """Waits until every process is as far as this one."""
    (meeting,) = _meetings
    meeting.wait(_SECONDS)


def start_all(kind: str, location: str, prefix: str, count: int, _: int) -> list[str]:
    """Starts so many permitted intents; those that it was let start."""
    place = Place(kind, location)
    store = place.open()
    seen = [latest(store, f"{prefix}-{number}") for number in range(count)]
    _meet()
    won = [intent.intent_id for intent in seen if store.start(intent, AT, BY)]
    place.close()
    return won


def start_or_replace(kind: str, location: str, prefix: str, count: int, part: int) -> list[tuple[str, str]]:
    """Starts so many permitted intents, or puts another attempt in their place; what it was let do."""
    place = Place(kind, location)
    store = place.open()
    seen = [latest(store, f"{prefix}-{number}") for number in range(count)]
    does = "start" if part % 2 else "hold"
    _meet()
    won = [
        (intent.intent_id, does)
        for intent in seen
        if (
            store.start(intent, AT, BY)
            if does == "start"
            else store.hold(attempt(intent.intent_id, 2), instead_of=intent)
        )
    ]
    place.close()
    return won


def begin(kind: str, location: str, _: int) -> tuple[str, bool]:
    """Makes a store where there is none; its identity, and whether it was let hold an intent."""
    place = Place(kind, location)
    _meet()
    store = place.open()
    if isinstance(store, SqlAlchemyStore):
        store.create_tables()
    found = store.identity, store.hold(attempt())
    place.close()
    return found


def work_until_killed(kind: str, location: str, told: Connection) -> None:
    """Takes one intent after another all the way, and tells of each step after it was acknowledged."""
    store = Place(kind, location).open()
    for number in range(_ENDLESS):
        name = f"refund-{number}"
        intent = permitted(store, name)
        told.send((name, State.PERMITTED))
        assert store.start(intent, AT, BY)
        told.send((name, State.STARTED))
        assert store.finish(begun(intent), execution(intent))
        (report,) = store.undelivered(2)
        store.delivered(report)
        told.send((name, State.REPORTED))
