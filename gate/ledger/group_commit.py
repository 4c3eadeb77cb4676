"""Group commit: many requests, one transaction, one sync of the disk.

Each request thread queues its item. The first to find nobody leading leads: it commits everything queued, hands the
lead to the next one waiting, and wakes those whose items it committed. There is no writer thread, so that an idle
service pays no hand-over and a busy one batches by itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from gate.errors import GateError, ServiceUnavailable
from gate.ledger.store import WRITE_TIMEOUT

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BATCH: Final = 256
MAX_QUEUE: Final = 4096


class _Waiting(Generic[Item, Result]):
    __slots__ = ("item", "leads", "outcome", "wake")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.leads = False
        self.outcome: Result | GateError | None = None
        # A bare lock wakes one thread at a third of the cost of an Event.
        self.wake = threading.Lock()
        self.wake.acquire()


class GroupCommit(Generic[Item, Result]):
    """Runs `commit` over batches of what threads submit."""

    def __init__(self, commit: Callable[[Sequence[Item]], Sequence[Result | GateError]]) -> None:
        """Takes the function that makes a batch durable and answers each of its items, in order."""
        self._commit = commit
        self._mutex = threading.Lock()
        self._queue: deque[_Waiting[Item, Result]] = deque()
        self._led = False

    def submit(self, item: Item) -> Result:
        """The result for one item, once it is durable.

        Raises:
            GateError: What commit answered for the item.
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: the queue is full, or no commit came within the time limit.
        """
        waiting: _Waiting[Item, Result] = _Waiting(item)
        with self._mutex:
            if len(self._queue) >= MAX_QUEUE:
                raise _unavailable("too many requests wait for the ledger")
            self._queue.append(waiting)
            leads = not self._led
            self._led = True
        if leads or self._wait(waiting):
            self._lead()
        if isinstance(waiting.outcome, GateError):
            raise waiting.outcome
        if waiting.outcome is None:
            raise _unavailable("the commit broke off")
        return waiting.outcome

    def _wait(self, waiting: _Waiting[Item, Result]) -> bool:
        """Waits until the item is committed (False) or its thread is to lead (True)."""
        if not waiting.wake.acquire(timeout=WRITE_TIMEOUT):
            with self._mutex:
                if not waiting.leads:
                    if waiting not in self._queue:
                        raise _unavailable(f"no commit within {WRITE_TIMEOUT:g} seconds, and it may yet come")
                    self._queue.remove(waiting)
                    raise _unavailable(f"no turn to commit within {WRITE_TIMEOUT:g} seconds")
        return waiting.leads

    def _lead(self) -> None:
        with self._mutex:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]
        try:
            for waiting, outcome in zip(batch, self._commit([waiting.item for waiting in batch]), strict=True):
                waiting.outcome = outcome
        finally:
            with self._mutex:
                self._led = bool(self._queue)
                if self._queue:
                    self._queue[0].leads = True
                    self._queue[0].wake.release()
            for waiting in batch:
                if not waiting.leads:
                    waiting.wake.release()


def _unavailable(why: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE", f"Nothing was acknowledged: {why}. Retry with the same idempotency key."
    )
