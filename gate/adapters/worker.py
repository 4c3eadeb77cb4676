"""One call of an adapter in a process of its own, and what comes of it, read with a bound.

    workers = Workers(registered())
    workers.run(adapter, canonical(input))      # the JSON text of its facts
    workers.measures()                          # what holds a worker on this machine

A process that calls adapters starts a zygote for them. The zygote ends with the process, and is replaced if it dies. A
slow start delays only calls of adapters. The input of a worker is canonical JSON, so that equal inputs are equal bytes.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

from gate.adapters import zygote
from gate.adapters.containment import fixed_addresses
from gate.adapters.manifest import Adapter
from gate.errors import AdapterFailed

WORKERS: Final = min(64, 2 * (os.cpu_count() or 1) + 1)
"""How many workers a process has at a time; more of them would only take processor time from each other."""

WAIT_SECONDS: Final = 5.0
"""How long a call waits for a worker, and until workers can be had at all."""

_CALLS: Final = 256
"""How many calls may be under way or wait: half as many as a server has threads, so that those who call no adapter are
answered however slow the adapters are.
"""

_START_SECONDS: Final = 20.0
_RETRY_SECONDS: Final = 30.0
# Beyond the worker's own time: until it is forked, and until its end is reported.
_GRACE_SECONDS: Final = 2.0
_ENDING_MILLISECONDS: Final = 200
_PIECE: Final = 64 * 1024

_NO_REPORT: Final = b'{"error": "what forks them ended at its start"}'

_PACKAGES: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Measures:
    """What holds a worker on this machine.

    Attributes:
        in_force: The active measures, of `containment.MEASURES`; empty if no worker can run.
        reason: Why none can run, as a clause; None where one can.
        known: Whether that was found out; not where a start is still under way.
    """

    in_force: tuple[str, ...]
    reason: str | None
    known: bool = True


class Workers:
    """Runs adapters, each call in a worker of its own; for all threads of a process."""

    def __init__(
        self, adapters: Sequence[Adapter], *, required: Sequence[str] = (), beyond_baseline: bool = True
    ) -> None:
        """Starts nothing yet.

        Args:
            adapters: What can be called.
            required: Measures without which nothing runs, in addition to the baseline.
            beyond_baseline: Whether more than the baseline is applied where it can be.
        """
        self._numbers = {adapter.name: number for number, adapter in enumerate(adapters)}
        self._required = tuple(required)
        told = [
            {
                "name": adapter.name,
                "source": adapter.source.decode(),
                "memory_bytes": adapter.memory_bytes,
                "timeout_ms": adapter.timeout_ms,
            }
            for adapter in adapters
        ]
        self._setup = json.dumps({"beyond_baseline": beyond_baseline, "adapters": told}).encode()
        self._closed = False
        self._begin()
        _EVERY.add(self)

    def _begin(self) -> None:
        self._calls = threading.BoundedSemaphore(_CALLS)
        self._free = threading.BoundedSemaphore(WORKERS)
        self._lock = threading.Lock()
        self._zygote: _Zygote | None = None

    def begin_in_child(self) -> None:
        """Resets the state in a forked copy of the process. A lock may be held by a thread that the copy lacks, and the
        zygote does not belong to the copy.
        """
        if (zygote := self._zygote) is not None:
            zygote.end()
        self._begin()

    def start(self) -> None:
        """Starts what forks workers, where it is not running, and does not wait until it can."""
        with suppress(OSError):
            self._current()

    def run(self, adapter: Adapter, given: bytes) -> bytes:
        """The JSON text of the facts that an adapter makes; whether they are facts is not looked at.

        Args:
            adapter: One of those that this was made for.
            given: Its input, as canonical JSON.

        Raises:
            AdapterFailed: `TRUSTED_ADAPTER_CAPABILITY_DENIED`, `TRUSTED_ADAPTER_EXECUTION_TIMEOUT`,
                `TRUSTED_ADAPTER_EXECUTION_FAILED`, or `TRUSTED_ADAPTER_OUTPUT_INVALID` where it is too much or no JSON.
        """
        if not self._calls.acquire(blocking=False):
            raise failed(adapter.name, "EXECUTION_TIMEOUT", f"{_CALLS} other calls are waiting for a worker")
        try:
            # Before a worker's place is taken, which would be held for as long as that takes.
            self._started()
            if not self._free.acquire(timeout=WAIT_SECONDS):
                raise failed(adapter.name, "EXECUTION_TIMEOUT", f"no worker was free for {WAIT_SECONDS:g} seconds")
            try:
                ending, answer = self._started().call(self._numbers[adapter.name], given, adapter)
            finally:
                self._free.release()
        except _Unavailable as why:
            raise failed(adapter.name, "EXECUTION_FAILED", f"no worker can run on this machine: {why}") from why
        except OSError as error:
            # No descriptor, no memory, no such kind of socket.
            raise failed(adapter.name, "EXECUTION_FAILED", f"no worker can run now: {error.strerror}") from error
        finally:
            self._calls.release()
        return _answered(adapter, ending, answer)

    def measures(self, *, wait: float = WAIT_SECONDS) -> Measures:
        """What holds a worker on this machine, found out by trying.

        Args:
            wait: How long to wait until that is known, in seconds.
        """
        try:
            zygote = self._current()
        except OSError as error:
            return Measures((), f"the process that forks them cannot be started: {error.strerror}")
        if not zygote.ready.wait(wait):
            return Measures((), zygote.failed_before or "the process that forks them is starting", known=False)
        return Measures(() if zygote.error is not None else zygote.in_force, self._lacking(zygote))

    def process_id(self) -> int | None:
        """The process id of the zygote, where there is one."""
        with self._lock:
            return self._zygote.process.pid if self._zygote is not None and self._zygote.is_alive() else None

    def close(self) -> None:
        """Ends the zygote, and what it runs; nothing is called any more."""
        with self._lock:
            self._closed = True
            if self._zygote is not None:
                self._zygote.end()
                self._zygote = None

    def _started(self) -> _Zygote:
        """A zygote that runs what it is given.

        Raises:
            _Unavailable: There is none, and why.
            OSError: None can be started.
        """
        zygote = self._current()
        if not zygote.ready.wait(WAIT_SECONDS):
            raise _Unavailable(
                zygote.failed_before or f"the process that forks them did not start within {WAIT_SECONDS:g} seconds"
            )
        if (reason := self._lacking(zygote)) is not None:
            raise _Unavailable(reason)
        return zygote

    def _current(self) -> _Zygote:
        """The zygote, ready or not, or one that failed to start and is not to be tried again yet."""
        with self._lock:
            if self._closed:
                raise OSError(errno.ESHUTDOWN, "The service is stopping")
            zygote, failed_before = self._zygote, None
            if zygote is not None:
                if not zygote.ready.is_set() or zygote.is_alive():
                    return zygote
                # One that fails may have been killed at its start, and another is tried at once; but that once.
                again = zygote.failed_before is None or time.monotonic() >= zygote.tried + _RETRY_SECONDS
                if zygote.error is not None and not again:
                    return zygote
                zygote.end()
                failed_before = zygote.error
            self._zygote = _Zygote(self._setup, failed_before)
            return self._zygote

    def _lacking(self, zygote: _Zygote) -> str | None:
        """Why a zygote that is ready may not run anything, as a clause; None where it may."""
        if zygote.error is not None:
            return zygote.error
        missing = [measure for measure in self._required if measure not in zygote.in_force]
        return (
            f"adapter_isolation requires measures that are not available here: {', '.join(missing)}"
            if missing
            else None
        )


class _Report(TypedDict, total=False):
    """What the process that forks workers says of itself: what holds them, or why there can be none."""

    in_force: list[str]
    error: str


class _Unavailable(Exception):
    """No worker can run, and why, as a clause."""


class _Zygote:
    """A zygote, as the process that started it sees it.

    Attributes:
        process: The process.
        failed_before: Why the start before this one failed, as a clause; None where it did not, or there was none.
        ready: Set once it is known whether it runs anything; what follows is to be read from then on.
        tried: When that was, in monotonic seconds.
        in_force: The measures that it found active.
        error: Why it runs nothing, as a clause; None where it does.
    """

    def __init__(self, setup: bytes, failed_before: str | None) -> None:
        """Starts it, and does not wait until it is ready."""
        self.failed_before = failed_before
        self.ready = threading.Event()
        self.tried = 0.0
        self.in_force: tuple[str, ...] = ()
        self.error: str | None = None
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, fixed_addresses():
            self.process = subprocess.Popen(  # noqa: S603 -- this interpreter, on a module of this package
                [sys.executable, "-P", "-S", "-s", "-B", "-m", zygote.__name__, str(theirs.fileno())],
                # Nothing of this process's own; and a set of texts is in the same order in every zygote.
                env={"PYTHONHASHSEED": "0", "PYTHONPATH": str(_PACKAGES)},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        # Also if the process that started it is gone, or this process ends.
        self._end = weakref.finalize(self, _end, os.getpid(), self._control, self.process)
        try:
            threading.Thread(target=self._prepare, args=(setup,), daemon=True).start()
        except RuntimeError as error:
            self.end()
            raise OSError(errno.EAGAIN, "There is no capacity for one more thread") from error

    def _prepare(self, setup: bytes) -> None:
        late = threading.Event()

        def end_late() -> None:
            late.set()
            self.process.kill()

        overdue = threading.Timer(_START_SECONDS, end_late)
        overdue.daemon = True
        overdue.start()
        # One that is ended reads no further, and tells nothing.
        if self.process.stdin is not None:
            with suppress(OSError), self.process.stdin as stdin:
                stdin.write(setup)
        told = self._report()
        overdue.cancel()
        if late.is_set():
            told = {"error": f"the process that forks them was not ready within {_START_SECONDS:g} seconds"}
        self.in_force, self.error = tuple(told.get("in_force", ())), told.get("error")
        self.tried = time.monotonic()
        if self.error is not None:
            self.end()
        self.ready.set()

    def _report(self) -> _Report:
        try:
            report: _Report | None = json.loads(self._control.recv(_PIECE) or _NO_REPORT)
            self._control.settimeout(_GRACE_SECONDS)
        except (OSError, ValueError):
            report = None
        # What died while it wrote may have left any JSON.
        return (
            report if isinstance(report, dict) else {"error": "the process that forks them sent an unreadable message"}
        )

    def is_alive(self) -> bool:
        """Whether it still listens."""
        return self._end.alive and not self._hangs_up(0)

    def _hangs_up(self, milliseconds: int) -> bool:
        """Whether the other end of the control socket is closed, or will be so soon."""
        poll = select.poll()
        try:
            poll.register(self._control, 0)
        except ValueError:
            # Closed here, by another thread that found it out.
            return True
        return bool(poll.poll(milliseconds))

    def end(self) -> None:
        """Ends it."""
        self._end()

    def call(self, number: int, given: bytes, adapter: Adapter) -> tuple[tuple[int, int] | None, bytes | None]:
        """Runs an adapter.

        Args:
            number: The adapter's number.
            given: Its input.
            adapter: The adapter, for its limits.

        Returns:
            How the worker ended, as `zygote.ENDING` has it, None where that was not told; and its answer, None where it
            is too long.
        """
        deadline = time.monotonic() + adapter.timeout_ms / 1000 + _GRACE_SECONDS
        called, theirs = socket.socketpair()
        reads, writes = os.pipe()
        answer: bytes | None = b""
        with called, os.fdopen(reads, "rb", buffering=0) as answers:
            try:
                with theirs:
                    socket.send_fds(self._control, [zygote.CALL.pack(number)], [theirs.fileno(), writes])
            except OSError:
                self.end()
                return None, b""
            finally:
                os.close(writes)
            try:
                called.settimeout(_left(deadline))
                # Where the worker ended before it had read all, how it ended is still to be read.
                with suppress(BrokenPipeError, ConnectionResetError):
                    called.sendall(given)
                    called.shutdown(socket.SHUT_WR)
                answer = _read(answers.fileno(), adapter.output_bytes, deadline)
                if answer is None:
                    # That this end is closed makes the zygote end the worker.
                    return (zygote.EXITED, zygote.ANSWERED), None
                called.settimeout(_left(deadline))
                told = called.recv(zygote.ENDING.size)
            except TimeoutError:
                # It watches over no worker any more. The next call starts another.
                self.end()
                return (zygote.TIMED_OUT, 0), b""
            except OSError:
                told = b""
        if len(told) == zygote.ENDING.size:
            return zygote.ENDING.unpack(told), answer
        # Either it has no room for one more process, or it is ending, and the last of what it forked ends with it.
        if self._hangs_up(_ENDING_MILLISECONDS):
            self.end()
        return None, answer


_EVERY: Final[weakref.WeakSet[Workers]] = weakref.WeakSet()


def _begin_in_child() -> None:
    for workers in _EVERY:
        workers.begin_in_child()


os.register_at_fork(after_in_child=_begin_in_child)


def _end(owner: int, control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    if os.getpid() == owner:
        process.kill()
        process.wait()
    control.close()


def _left(deadline: float) -> float:
    """How many seconds are left.

    Raises:
        TimeoutError: None are.
    """
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left


def _read(descriptor: int, most: int, deadline: float) -> bytes | None:
    """What is read to its end; None where that is more than the most.

    Raises:
        TimeoutError: It has no end by the deadline.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    pieces: list[bytes] = []
    size = 0
    while size <= most:
        if not poll.poll(max(0.0, 1000 * (deadline - time.monotonic()))):
            raise TimeoutError
        if not (piece := os.read(descriptor, _PIECE)):
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
    return None


def _answered(adapter: Adapter, ending: tuple[int, int] | None, answer: bytes | None) -> bytes:
    """The answer of a worker that ended as it should.

    Raises:
        AdapterFailed: It did not.
    """
    if answer is None:
        raise failed(adapter.name, "OUTPUT_INVALID", f"its answer is larger than {adapter.output_bytes} bytes")
    if ending is None:
        raise failed(adapter.name, "EXECUTION_FAILED", "its parent process ended and is being restarted")
    how, status = ending
    if ending == (zygote.EXITED, zygote.ANSWERED):
        return answer
    # It is the worker's own word, and goes into a sentence.
    text = answer.decode("utf-8", "replace")[:_LONGEST_TOLD]
    told = "".join(letter if letter.isprintable() else "?" for letter in text)
    if how == zygote.TIMED_OUT:
        raise failed(adapter.name, "EXECUTION_TIMEOUT", f"it took longer than {adapter.timeout_ms} ms")
    if ending == (zygote.SIGNALLED, signal.SIGSYS):
        raise failed(adapter.name, "CAPABILITY_DENIED", "it made a system call that is not allowed")
    if how == zygote.SIGNALLED:
        raise failed(
            adapter.name, "EXECUTION_FAILED", f"the operating system killed it ({signal.Signals(status).name})"
        )
    if status == zygote.DENIED:
        raise failed(adapter.name, "CAPABILITY_DENIED", told)
    if status == zygote.NOT_JSON:
        raise failed(adapter.name, "OUTPUT_INVALID", told)
    if status == zygote.RAISED:
        raise failed(adapter.name, "EXECUTION_FAILED", told)
    raise failed(adapter.name, "EXECUTION_FAILED", f"it ended with status {status}")


_LONGEST_TOLD: Final = 200


def failed(name: str, code: str, why: str) -> AdapterFailed:
    """The error of a call of the adapter of that name; `code` without its prefix, `why` as a clause."""
    return AdapterFailed(
        f"TRUSTED_ADAPTER_{code}",
        f"The trusted adapter {name} returned no facts: {why}. Nothing was recorded, and nothing is approved.",
    )
