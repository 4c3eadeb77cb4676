"""Processes that draw charts. A chart takes about 50 ms, and blocks its process.

    with Renderers() as renderers:
        waits = [renderers.draw(plan) for plan in plans]      # started, as many at a time as there are processes
        drawings = [wait() for wait in waits]

The calls return in the order of the plans.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from threading import Lock
from types import TracebackType
from typing import Final, Self

from gate.instance.processes import WorkerPool
from workbench.charts.inline.plans import Plan, drawn

_PROCESSES: Final = 2
_EMPTY: Final = Plan(b'{"data": {"values": []}, "mark": "point"}', "")


class Renderers:
    """Draws in other processes. One that dies is replaced, and what it was drawing is drawn again, once."""

    def __init__(self, processes: int = _PROCESSES) -> None:
        """Starts so many processes, which end with this one."""
        self._processes: Final = processes
        self._lock: Final = Lock()
        self._pool = self._started()

    def __enter__(self) -> Self:
        """The renderers, started."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends the processes."""
        self._pool.shutdown(cancel_futures=True)

    def draw(self, plan: Plan) -> Callable[[], str]:
        """Starts a drawing.

        Args:
            plan: The input of the drawing.

        Returns:
            A function that waits for the <svg> element. It raises `ValueError` if the specification cannot be drawn,
            and `BrokenProcessPool` if the process died twice.
        """
        began, pool = self._begun(plan)

        def wait() -> str:
            try:
                return began.result()
            except BrokenProcessPool:
                self._replace(pool)
                return self._begun(plan)[0].result()

        return wait

    def _begun(self, plan: Plan) -> tuple[Future[str], WorkerPool]:
        pool = self._pool
        try:
            return pool.submit(drawn, plan), pool
        except BrokenProcessPool:
            self._replace(pool)
            return self._pool.submit(drawn, plan), self._pool

    def _replace(self, broken: WorkerPool) -> None:
        with self._lock:
            if self._pool is broken:
                self._pool = self._started()

    def _started(self) -> WorkerPool:
        pool = WorkerPool(self._processes)
        # Each of these starts a process, since none is idle yet.
        for _ in range(self._processes):
            pool.submit(drawn, _EMPTY)
        return pool
