"""Group commit: many requests, one transaction, one sync of the disk.

Each request thread queues its item in a lane. The first to find nobody leading its lane leads: once it has its turn to
write, it commits everything queued, hands the lead to the next one waiting, and wakes those whose items it committed.
There is no writer thread, so that an idle service pays no hand-over and a busy one batches by itself.

A leader first gives as many items as came together last time a moment to come again: callers that were answered by one
commit send their next requests at the same time, and would otherwise fall into two groups that wait for each other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from gate.errors import GateError, ServiceUnavailable
from gate.ledger.stores.store import WRITE_TIMEOUT

Item = TypeVar("Item")
Result = TypeVar("Result")

# One INSERT for all, of up to 16 values each, and one for their counts: SQLite takes 32,766 in a statement since 3.32.
MAX_BATCH: Final = 64
MAX_QUEUE: Final = 4096

_GATHER_SECONDS: Final = 0.002

Take: TypeAlias = Callable[[], Sequence[Item]]
"""Gives the batch, the same at every call. Called as late as can be, so that it holds all that came until then."""


class _Waiting(Generic[Item, Result]):
    __slots__ = ("item", "leads", "outcome", "wake")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.leads = False
        self.outcome: Result | GateError | None = None
        # A bare lock wakes one thread at a third of the cost of an Event.
        self.wake = threading.Lock()
        self.wake.acquire()


class _Lane(Generic[Item, Result]):
    __slots__ = ("expected", "gathering", "led", "name", "queue")

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: deque[_Waiting[Item, Result]] = deque()
        self.led = False
        # How many items there were at the end of the last commit, with those that it committed.
        self.expected = 1
        # Whether the leader, whose item is the first in the queue, waits for as many.
        self.gathering = False


class GroupCommit(Generic[Item, Result]):
    """Runs `commit` over batches of what threads submit."""

    def __init__(self, commit: Callable[[Take[Item]], Sequence[Result | GateError]]) -> None:
        """Takes the function that makes a batch durable and answers each of its items, in order."""
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
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: the queue is full, or no commit came within the time limit.
        """
        waiting: _Waiting[Item, Result] = _Waiting(item)
        with self._mutex:
            if self._queued >= MAX_QUEUE:
                raise _unavailable("too many requests wait for the ledger")
            joined = self._lanes.get(lane)
            if joined is None:
                joined = self._lanes[lane] = _Lane(lane)
            joined.queue.append(waiting)
            self._queued += 1
            if not joined.led:
                joined.led = waiting.leads = True
            elif joined.gathering and len(joined.queue) >= joined.expected:
                joined.gathering = False
                joined.queue[0].wake.release()
        if waiting.leads or self._wait(waiting, joined.queue):
            self._lead(waiting, joined)
        if isinstance(waiting.outcome, GateError):
            raise waiting.outcome
        if waiting.outcome is None:
            raise _unavailable("the commit broke off")
        return waiting.outcome

    def _wait(self, waiting: _Waiting[Item, Result], queue: deque[_Waiting[Item, Result]]) -> bool:
        """Waits until the item is committed (False) or its thread is to lead (True)."""
        if not waiting.wake.acquire(timeout=WRITE_TIMEOUT):
            with self._mutex:
                if not waiting.leads:
                    if waiting not in queue:
                        # A leader took it and is still at work: only the idempotency key can tell how that ended.
                        raise _unavailable(f"no commit within {WRITE_TIMEOUT:g} seconds, and it may yet come")
                    queue.remove(waiting)
                    self._queued -= 1
                    raise _unavailable(f"no turn to commit within {WRITE_TIMEOUT:g} seconds")
                # The lead came as the wait ended. Its waking is used up here, for a leader may be woken once more.
                waiting.wake.acquire(blocking=False)
        return waiting.leads

    def _gather(self, leader: _Waiting[Item, Result], lane: _Lane[Item, Result]) -> None:
        """Waits for as many items as are expected, but not for long."""
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
                    batch.extend(queue.popleft() for _ in range(min(len(queue), MAX_BATCH)))
                    self._queued -= len(batch)
            return [waiting.item for waiting in batch]

        try:
            self._gather(leader, lane)
            # `batch` is empty here. The commit fills it by calling `take`, before zip reads it.
            for waiting, outcome in zip(batch, self._commit(take), strict=True):
                waiting.outcome = outcome
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
