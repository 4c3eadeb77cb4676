"""Group commit: many requests, one transaction, one sync of the disk.

Each request thread queues its item in a lane. The first thread to find no leader in its lane leads. When it gets its
turn to write, it commits everything queued, hands the lead to the next waiting thread, and wakes the threads whose
items it committed. There is no writer thread, so an idle service has no hand-over, and a busy one batches on its own.

Before its commit, a leader waits a moment for as many items as came together last time. Callers that one commit
answered send their next requests at the same time. Without the wait, they would split into two groups that wait for
each other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Final, Generic, TypeAlias, TypeVar

from gate.errors import GateError, ServiceUnavailable
from gate.ledger.stores.store import WRITE_TIMEOUT

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BATCH: Final = 64
"""How many items a commit takes that were submitted by themselves; items that were submitted together stay together."""

MAX_QUEUE: Final = 4096
"""How many items may wait for a commit."""

_GATHER_SECONDS: Final = 0.002

Take: TypeAlias = Callable[[], Sequence[Item]]
"""Gives the batch, the same at every call. Called as late as can be, so that it holds all that came until then."""


class _Waiting(Generic[Item, Result]):
    __slots__ = ("items", "leads", "outcomes", "wake")

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.leads = False
        self.outcomes: Sequence[Result | GateError] | None = None
        # A bare lock wakes one thread at a third of the cost of an Event.
        self.wake = threading.Lock()
        self.wake.acquire()


class _Lane(Generic[Item, Result]):
    __slots__ = ("expected", "gathering", "led", "name", "queue")

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: deque[_Waiting[Item, Result]] = deque()
        self.led = False
        # How many threads there were at the end of the last commit, with those whose items it committed.
        self.expected = 1
        # Whether the leader, whose item is the first in the queue, waits for as many.
        self.gathering = False


class GroupCommit(Generic[Item, Result]):
    """Runs `commit` over batches of what threads submit.

    Attributes:
        waiting: A context that a thread waits in, so that other threads can continue.
    """

    def __init__(self, commit: Callable[[Take[Item]], Sequence[Result | GateError]]) -> None:
        """Takes the function that makes a batch durable and answers each of its items, in order."""
        self.waiting: Callable[[], AbstractContextManager[None]] = nullcontext
        self._commit = commit
        self._mutex = threading.Lock()
        # A lane is here for as long as someone leads it, or several are expected.
        self._lanes: dict[str, _Lane[Item, Result]] = {}
        self._queued = 0

    @property
    def queued(self) -> int:
        """How many items wait for a commit."""
        return self._queued

    def submit(self, item: Item, lane: str = "") -> Result:
        """The result for one item, once it is durable.

        Args:
            item: The item.
            lane: Items of one lane are committed together and in turn, those of two lanes side by side.

        Raises:
            GateError: What commit answered for the item.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the queue is full, or no commit came within the time limit.
        """
        (outcome,) = self.submit_all((item,), lane)
        if isinstance(outcome, GateError):
            raise outcome
        return outcome

    def submit_all(self, items: Sequence[Item], lane: str = "") -> Sequence[Result | GateError]:
        """The result for each of some items, or what went wrong with it, once one commit has made all of them durable.

        Raises:
            ServiceUnavailable: As `submit`, for all of them.
        """
        waiting: _Waiting[Item, Result] = _Waiting(items)
        with self._mutex:
            if self._queued >= MAX_QUEUE:
                raise _unavailable("too many requests are waiting for the ledger")
            joined = self._lanes.get(lane)
            if joined is None:
                joined = self._lanes[lane] = _Lane(lane)
            joined.queue.append(waiting)
            self._queued += len(items)
            if not joined.led:
                joined.led = waiting.leads = True
            elif joined.gathering and len(joined.queue) >= joined.expected:
                joined.gathering = False
                joined.queue[0].wake.release()
        with self.waiting():
            if waiting.leads or self._wait(waiting, joined.queue):
                self._lead(waiting, joined)
        if waiting.outcomes is None:
            raise _unavailable("the commit was interrupted")
        return waiting.outcomes

    def _wait(self, waiting: _Waiting[Item, Result], queue: deque[_Waiting[Item, Result]]) -> bool:
        """Waits until the item is committed (False) or its thread is to lead (True)."""
        if not waiting.wake.acquire(timeout=WRITE_TIMEOUT):
            with self._mutex:
                if not waiting.leads:
                    if waiting not in queue:
                        # A leader took it and is still at work: only the idempotency key can tell how that ended.
                        raise _unavailable(f"no commit within {WRITE_TIMEOUT:g} seconds; it may still complete")
                    queue.remove(waiting)
                    self._queued -= len(waiting.items)
                    raise _unavailable(f"no turn to commit within {WRITE_TIMEOUT:g} seconds")
                # The lead came as the wait ended. Its waking is used up here, for a leader may be woken once more.
                waiting.wake.acquire(blocking=False)
        return waiting.leads

    def _gather(self, leader: _Waiting[Item, Result], lane: _Lane[Item, Result]) -> None:
        """Waits for as many threads as are expected, but not for long."""
        with self._mutex:
            lane.gathering = waits = len(lane.queue) < lane.expected
        if waits:
            leader.wake.acquire(timeout=_GATHER_SECONDS)
            with self._mutex:
                lane.gathering = False

    def _lead(self, leader: _Waiting[Item, Result], lane: _Lane[Item, Result]) -> None:
        batch: list[_Waiting[Item, Result]] = []
        queue = lane.queue

        def take() -> Sequence[Item]:
            if not batch:
                with self._mutex:
                    taken = 0
                    while queue and (not batch or taken + len(queue[0].items) <= MAX_BATCH):
                        batch.append(queue.popleft())
                        taken += len(batch[-1].items)
                    self._queued -= taken
            return [item for waiting in batch for item in waiting.items]

        try:
            self._gather(leader, lane)
            # `batch` is empty until the commit calls `take`.
            outcomes = iter(self._commit(take))
            for waiting in batch:
                waiting.outcomes = [*islice(outcomes, len(waiting.items))]
        finally:
            # Where the commit broke off before it took a batch, this thread's own item is still the first in the queue
            # and would be handed the lead, with nobody there to take it.
            take()
            with self._mutex:
                lane.expected = min(len(batch) + len(queue), MAX_BATCH)
                lane.led = bool(queue)
                if queue:
                    queue[0].leads = True
                    queue[0].wake.release()
                elif lane.expected <= 1:
                    del self._lanes[lane.name]
            for waiting in batch:
                if not waiting.leads:
                    waiting.wake.release()


def _unavailable(why: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE", f"Nothing was acknowledged: {why}. Retry with the same idempotency key."
    )
