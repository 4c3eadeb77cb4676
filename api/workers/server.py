"""The web server's parent process. It is the parent process of `granian`, but it never gives up on a worker.

`granian` 2.8 ends the whole server when a worker dies twice within 5.5 seconds, and has no setting for that. It also
waits for each worker in two threads. At a stop, one of them can miss that the worker has ended, and report that it was
killed. This module replaces the loop and the watching threads of `granian` by one loop that reaps workers itself.

It relies on these undocumented parts of `granian`. The project pins the exact version, and the tests in
`tests/api/workers` check these parts:

- `MPServer._serve_loop(spawn_target, target_loader)`, which runs between `startup` and `shutdown`;
- `MPServer._spawn_worker(idx, target, callback_loader)`, `wrks`, `interrupt_signal`, `reload_signal`, `_reload`;
- `WorkerProcess.inner`, a `multiprocessing.Process`, and `WorkerProcess._watch`, which `start` calls.
"""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from granian.server.mp import MPServer, WorkerProcess
from structlog.typing import FilteringBoundLogger

from api.workers.roster import Roster, Slot, cause_of, take_reason, write_facts
from gate.clock import utc_now


class Server(MPServer):
    """A `granian` server that restarts dead workers, with growing pauses, as long as it runs."""

    def __init__(self, target: str, *, directory: Path, log: FilteringBoundLogger, **settings: Any) -> None:
        """Takes the application's factory, a private folder for the roster, the log, and the settings of `granian`."""
        super().__init__(target, **settings)
        self._directory = directory
        self._log = log

    def startup(self, spawn_target: Callable[..., None], target_loader: Callable[..., Any]) -> None:
        """Starts the workers."""
        # First, for a worker reads it as soon as it answers.
        self._roster = Roster(self.workers, time.monotonic())
        self._write()
        super().startup(spawn_target, target_loader)  # type: ignore[no-untyped-call]

    def _spawn_worker(self, idx: int, target: Any, callback_loader: Any) -> WorkerProcess:  # type: ignore[override]
        worker: WorkerProcess = super()._spawn_worker(idx, target, callback_loader)
        worker._watch = lambda: None  # type: ignore[method-assign]
        return worker

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        with _signalled() as woken:
            while not self.interrupt_signal:
                if self.reload_signal:
                    self._replace_all(spawn_target, target_loader)
                self._reap()
                self._restart_due(spawn_target, target_loader)
                # Also that of a worker which has died since it was looked at: it is ready at once.
                running = [worker.inner.sentinel for slot, worker in self._slots() if slot["running"]]
                if woken in wait([*running, woken], self._roster.next_restart(time.monotonic())):
                    woken.recv(4096)

    def _slots(self) -> list[tuple[Slot, WorkerProcess]]:
        return list(zip(self._roster.facts["workers"], self.wrks, strict=True))

    def _replace_all(self, spawn_target: Any, target_loader: Any) -> None:
        self._reload(spawn_target, target_loader)  # type: ignore[no-untyped-call]
        for number in range(1, self.workers + 1):
            self._roster.started(number, time.monotonic())
        self._write()

    def _reap(self) -> None:
        for slot, worker in self._slots():
            if slot["running"] and worker.inner.exitcode is not None:
                reason = take_reason(self._directory, worker.inner.pid)
                self._died(slot["worker"], cause_of(worker.inner.exitcode, reason), worker.inner.pid)

    def _restart_due(self, spawn_target: Any, target_loader: Any) -> None:
        for number in self._roster.due(time.monotonic()):
            worker = self._spawn_worker(number - 1, spawn_target, target_loader)
            try:
                worker.start()  # type: ignore[no-untyped-call]
            except OSError as error:
                # No process or no memory is to be had now.
                self._died(number, f"not started: {error.strerror}", None)
                continue
            self.wrks[number - 1] = worker
            self._roster.started(number, time.monotonic())
            self._log.info("worker_restarted", worker=number, pid=worker.inner.pid)
            self._write()

    def _died(self, number: int, cause: str, pid: int | None) -> None:
        death, pause = self._roster.died(number, cause, utc_now(), time.monotonic())
        self._log.error(
            "worker_died",
            worker=number,
            pid=pid,
            cause=cause,
            ran_seconds=death["ran_seconds"],
            restart_in_seconds=pause,
        )
        self._write()

    def _write(self) -> None:
        try:
            write_facts(self._directory, self._roster.facts)
        except OSError as error:
            # Readiness may then be out of date; the workers go on.
            self._log.error("roster_not_written", reason=error.strerror)


@contextmanager
def _signalled() -> Iterator[socket.socket]:
    """A socket that can be read from after a signal came, however shortly before the loop began to wait."""
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(before)
        reader.close()
        writer.close()
