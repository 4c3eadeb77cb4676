"""What several processes do to one ledger at once. Each of them has to load this, so that it loads little itself."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any, Final, TypeVar

from gate.ledger import open_ledger
from gate.ledger.access.limits import open_limits
from gate.ledger.chain.writer import Appended, NewEntry
from gate.proof import chain

PART: Final = 100_000
"""How many serial numbers each process has to itself."""

Done = TypeVar("Done")

_MEETING_SECONDS: Final = 60.0
_WORKING_SECONDS: Final = 1200.0
_meetings: Final[list[Barrier]] = []


class Processes:
    """Some processes beside this one."""

    def __init__(self, executor: ProcessPoolExecutor, count: int) -> None:
        """Takes what runs them, and how many there are."""
        self._executor = executor
        self._count = count

    def each(self, work: Callable[..., Done], *arguments: Any) -> list[Done]:
        """What work gives in each of them, called with the arguments and the process's number."""
        running = [self._executor.submit(work, *arguments, number) for number in range(self._count)]
        return [done.result(_WORKING_SECONDS) for done in running]


@contextmanager
def new_processes(count: int) -> Iterator[Processes]:
    """So many processes while the block runs."""
    spawn = multiprocessing.get_context("spawn")
    meeting = spawn.Barrier(count)
    with ProcessPoolExecutor(count, mp_context=spawn, initializer=_join, initargs=(meeting,)) as executor:
        yield Processes(executor, count)


def _join(meeting: Barrier) -> None:
    _meetings.append(meeting)


def _meet() -> None:
    """Waits until every process is as far as this one."""
    (meeting,) = _meetings
    meeting.wait(_MEETING_SECONDS)


def append_many(url: str, scope_id: str, count: int, part: int) -> None:
    """Appends entries of its own to a chain."""
    ledger = open_ledger(url)
    _meet()
    for number in range(count):
        serial = part * PART + number
        link = chain.Entry(
            entry_type="decision",
            decision_id=f"dec_{serial:032x}",
            record_hash=f"{serial:064x}",
            receipt_hash="e" * 64,
            policy_id="pricing_exception",
            policy_version="2026-06-11",
            created_at="2026-06-11T12:00:00.000Z",
        )
        assert isinstance(ledger.entries.append(NewEntry(scope_id, link.decision_id, link, b"{}")), Appended)
    ledger.close()


@dataclass
class Asked:
    """What a rate limiter answered one process.

    Attributes:
        admitted: The moments before and after each admission.
        refused: How many refusals there were.
        waits: How long the refusals said to wait, in seconds.
    """

    admitted: list[tuple[float, float]]
    refused: int
    waits: set[int]


def ask_often(url: str, scope_id: str, key_id: str, limit: int, seconds: float, _: int) -> Asked:
    """Asks a rate limiter 15 times, and on for so long."""
    ledger = open_ledger(url)
    limiter = open_limits(ledger.store)
    asked = Asked([], 0, set())
    _meet()
    end = time.monotonic() + seconds
    while len(asked.admitted) + asked.refused < 15 or time.monotonic() < end:
        before = time.monotonic()
        rate = limiter.admit(scope_id, key_id, limit)
        if rate.admitted:
            asked.admitted.append((before, time.monotonic()))
        else:
            asked.refused += 1
            asked.waits.add(rate.retry_after)
    limiter.close()
    ledger.close()
    return asked
