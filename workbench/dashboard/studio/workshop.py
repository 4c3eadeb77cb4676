"""Processes for work that takes longer than a click. Each can be ended at any moment.

    work = workshop.begin("examine", {"text": text})
    work.result()               # in a thread of its own
    work.cancel()               # from any other: the process is ended, and `result` raises WorkCancelled

They give way to people who wait for a page: they take a tenth of a busy processor, and pause between two steps while a
page is being made. A process that finished its work waits for the next, because it takes a second to start. A process
whose work was canceled ends at once.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from threading import Condition
from typing import Any, Final

import orjson

from gate.encoding.strict_json import JsonObject
from gate.errors import OperatorError, ServiceUnavailable
from gate.instance.processes import begin_worker, starting

_NICE: Final = 10
# How long a step waits for pages at most, in seconds, so that many clicks delay a work and do not stop it.
_PATIENCE: Final = 2.0
_LOOKS_SECONDS: Final = 0.02
# How many may wait for a process; more wait for a thread, and are ended from there as well.
_WAITING: Final = 8


class WorkCancelled(OperatorError):
    """`WORK_CANCELLED`: the work was ended on request."""

    def __init__(self) -> None:
        """Says so."""
        super().__init__("WORK_CANCELLED", "This was canceled before it finished. Nothing changed.")


class Workshop:
    """A few processes that do one work after the other."""

    def __init__(self, processes: int = 2) -> None:
        """Starts no process yet.

        Args:
            processes: How much is done at a time; more has to wait.
        """
        self._most: Final = processes
        # Without a lock: a process that is killed could not let go of one.
        self._pages: Final = multiprocessing.get_context("spawn").RawValue("i", 0)
        self._changed: Final = Condition()
        self._busy: set[_Process] = set()
        self._idle: list[_Process] = []
        self._taken = 0
        self._closed = False
        self._threads: Final = ThreadPoolExecutor(processes + _WAITING, "workshop")

    def begin(
        self, name: str, arguments: JsonObject, told: Callable[[JsonObject], None] = lambda progress: None
    ) -> Work:
        """Something to do, which `Work.result` does.

        Args:
            name: One of `works.WORKS`.
            arguments: What it takes.
            told: Told of its progress, in the thread that waits for the result.
        """
        return Work(self, name, arguments, told)

    def beside(self, wait: Callable[[], None]) -> None:
        """Calls what waits for a result, in a thread of the workshop's own."""
        with suppress(RuntimeError):
            self._threads.submit(wait)

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Lets no work take its next step while the block runs, which makes a page."""
        with self._changed:
            self._pages.value += 1
        try:
            yield
        finally:
            with self._changed:
                self._pages.value -= 1

    def warm(self) -> None:
        """Starts a process if there is none, so that the first work need not wait for it."""
        with self._changed:
            if self._closed or self._idle or self._busy:
                return
            self._idle.append(_Process(self._pages))

    def close(self) -> None:
        """Ends every process, and with it what it was doing."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            for process in self._busy:
                process.kill()
            self._changed.notify_all()
        for process in idle:
            process.end()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _take(self, work: Work) -> _Process:
        with self._changed:
            while self._taken >= self._most and not (work.cancelled or self._closed):
                self._changed.wait()
            if work.cancelled or self._closed:
                raise WorkCancelled
            self._taken += 1
            process = None
            while self._idle and process is None:
                process = self._idle.pop()
                process = process if process.lives() else None
            process = process or _Process(self._pages)
            self._busy.add(process)
            return process

    def _give_back(self, process: _Process, *, usable: bool) -> None:
        with self._changed:
            self._taken -= 1
            self._busy.discard(process)
            keeps = usable and not self._closed and not self._idle
            if keeps:
                self._idle.append(process)
            self._changed.notify_all()
        if not keeps:
            process.end()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Work:
    """Something that a process of a workshop does."""

    def __init__(
        self, workshop: Workshop, name: str, arguments: JsonObject, told: Callable[[JsonObject], None]
    ) -> None:
        """Is made by `Workshop.begin`."""
        self._workshop: Final = workshop
        self._message: Final = orjson.dumps({"work": name, "arguments": arguments})
        self._told: Final = told
        self._process: _Process | None = None
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether it was canceled."""
        return self._cancelled

    def cancel(self) -> None:
        """Ends it, wherever it is. Where it is done already, nothing happens."""
        self._cancelled = True
        if (process := self._process) is not None:
            process.kill()
        self._workshop._wake()

    def result(self) -> JsonObject:
        """Does it, and waits until it is done.

        Raises:
            WorkCancelled: `WORK_CANCELLED`.
            OperatorError: It cannot be done; the work says why.
            ServiceUnavailable: `WORK_LOST`: its process ended before it was done.
        """
        process = self._workshop._take(self)
        usable = False
        try:
            self._process = process
            if self._cancelled:
                raise WorkCancelled
            answer = self._answer(process)
            usable = not self._cancelled
        except (EOFError, OSError) as error:
            if self._cancelled:
                raise WorkCancelled from error
            raise ServiceUnavailable("WORK_LOST", "The process ended before it finished. Try again.") from error
        finally:
            self._process = None
            self._workshop._give_back(process, usable=usable)
        if (fault := answer.get("fault")) is not None:
            raise OperatorError(fault["code"], fault["message"])
        return dict(answer["done"])

    def _answer(self, process: _Process) -> Any:
        process.connection.send_bytes(self._message)
        while True:
            answer = orjson.loads(process.connection.recv_bytes())
            if "told" not in answer:
                return answer
            self._told(answer["told"])


class _Process:
    """A process that does one work after the other."""

    def __init__(self, pages: Any) -> None:
        self.connection, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_serve, args=(there, pages), daemon=True)
        with starting():
            self._process.start()
        there.close()

    def lives(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        """Ends it; who waits for its answer learns that."""
        self._process.kill()

    def end(self) -> None:
        """Ends it and forgets it, when nobody waits for an answer."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def _serve(connection: Connection, pages: Any) -> None:
    begin_worker()
    os.nice(_NICE)
    # Half of the processors stay with those who wait for pages. Polars reads this as it is loaded.
    os.environ["POLARS_MAX_THREADS"] = str(max(1, (os.cpu_count() or 1) // 2))
    # Loaded here, and not in the process that starts this one.
    from workbench.dashboard.studio.works import do

    def tell(progress: JsonObject) -> None:
        connection.send_bytes(orjson.dumps({"told": progress}))
        until = time.monotonic() + _PATIENCE
        while pages.value and time.monotonic() < until:
            time.sleep(_LOOKS_SECONDS)

    with suppress(EOFError, OSError):
        while True:
            message = orjson.loads(connection.recv_bytes())
            connection.send_bytes(orjson.dumps(do(message["work"], message["arguments"], tell)))
