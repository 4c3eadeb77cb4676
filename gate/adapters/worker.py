"""One call of an adapter in a process of its own, and what comes of it, read with a bound.

    workers = Workers(registered())
    workers.run(adapter, canonical(input))      # the JSON text of its facts
    workers.measures()                          # what holds a worker on this machine

A process that calls adapters starts a zygote for them, which ends with it, and starts another where that one is gone.
What is given to a worker is canonical JSON, so that equal inputs are the same to it.
"""

from __future__ import annotations

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
from typing import Any, Final

from gate.adapters import zygote
from gate.adapters.containment import fixed_addresses
from gate.adapters.manifest import Adapter
from gate.errors import AdapterFailed

WORKERS: Final = min(64, 2 * (os.cpu_count() or 1) + 1)
"""How many workers a process has at a time; more of them would only take processor time from each other."""

_START_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 30.0
_WAIT_SECONDS: Final = 5.0
# Beyond the worker's own time: until it is forked, and until its end is told.
_GRACE_SECONDS: Final = 2.0
_ENDING_MILLISECONDS: Final = 200
_PIECE: Final = 64 * 1024

_NO_REPORT: Final = b'{"error": "what forks them ended at its start"}'

_PACKAGES: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Measures:
    """What holds a worker on this machine.

    Attributes:
        in_force: The measures in force, of `containment.MEASURES`; empty where no worker can run.
        reason: Why none can run, as a clause; None where one can.
    """

    in_force: tuple[str, ...]
    reason: str | None


class Workers:
    """Runs adapters, each call in a worker of its own; for all threads of a process."""

    def __init__(
        self, adapters: Sequence[Adapter], *, required: Sequence[str] = (), beyond_baseline: bool = True
    ) -> None:
        """Starts nothing yet.

        Args:
            adapters: What can be called.
            required: Measures without which nothing runs, beside those of the baseline.
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
        self._free = threading.BoundedSemaphore(WORKERS)
        self._lock = threading.Lock()
        self._zygote: _Zygote | None = None

    def run(self, adapter: Adapter, given: bytes) -> bytes:
        """The JSON text of the facts that an adapter makes; whether they are facts is not looked at.

        Args:
            adapter: One of those that this was made for.
            given: Its input, as canonical JSON.

        Raises:
            AdapterFailed: TRUSTED_ADAPTER_CAPABILITY_DENIED, TRUSTED_ADAPTER_EXECUTION_TIMEOUT,
                TRUSTED_ADAPTER_EXECUTION_FAILED, or TRUSTED_ADAPTER_OUTPUT_INVALID where it is too much or no JSON.
        """
        if not self._free.acquire(timeout=_WAIT_SECONDS):
            raise failed(adapter, "EXECUTION_TIMEOUT", f"no worker was free for {_WAIT_SECONDS:g} seconds")
        try:
            started = self._started()
            if (reason := _lacking(started, self._required)) is not None:
                raise failed(adapter, "EXECUTION_FAILED", f"no worker can run on this machine, for {reason}")
            ending, answer = started.call(self._numbers[adapter.name], given, adapter)
        except OSError as error:
            # No descriptor, no memory, no such kind of socket.
            raise failed(adapter, "EXECUTION_FAILED", f"no worker can run now, for {error.strerror}") from error
        finally:
            self._free.release()
        return _answered(adapter, ending, answer)

    def measures(self) -> Measures:
        """What holds a worker on this machine, found out by trying."""
        try:
            started = self._started()
        except OSError as error:
            return Measures((), f"what forks them cannot be started: {error.strerror}")
        return Measures(() if started.error is not None else started.in_force, _lacking(started, self._required))

    def process_id(self) -> int | None:
        """The process id of the zygote, where there is one."""
        with self._lock:
            return self._zygote.process.pid if self._zygote is not None and self._zygote.is_alive() else None

    def close(self) -> None:
        """Ends the zygote, and what it runs."""
        with self._lock:
            if self._zygote is not None:
                self._zygote.end()
                self._zygote = None

    def _started(self) -> _Zygote:
        with self._lock:
            if self._zygote is not None and self._zygote.owner == os.getpid() and not self._zygote.is_alive():
                if self._zygote.error is not None and time.monotonic() < self._zygote.tried + _RETRY_SECONDS:
                    return self._zygote
                self._zygote.end()
                self._zygote = None
            # A forked copy of this process leaves alone what is not its own.
            if self._zygote is None or self._zygote.owner != os.getpid():
                self._zygote = _Zygote(self._setup)
            return self._zygote


def _lacking(started: _Zygote, required: Sequence[str]) -> str | None:
    """Why a zygote may not run anything, as a clause; None where it may."""
    if started.error is not None:
        return started.error
    missing = [measure for measure in required if measure not in started.in_force]
    return f"adapter_isolation asks for what is not in force here: {', '.join(missing)}" if missing else None


class _Zygote:
    """A zygote, as the process that started it sees it.

    Attributes:
        process: The process.
        owner: The process that started it.
        tried: When it was known whether it runs anything, in monotonic seconds.
        in_force: The measures that it found in force.
        error: Why it runs nothing, as a clause; None where it does.
    """

    def __init__(self, setup: bytes) -> None:
        self.owner = os.getpid()
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
        # Also where whoever started it is gone, or this process ends.
        self._end = weakref.finalize(self, _end, self.owner, self._control, self.process)
        if self.process.stdin is not None:
            with suppress(BrokenPipeError), self.process.stdin as stdin:
                stdin.write(setup)
        told = self._report()
        self.in_force: Final[tuple[str, ...]] = tuple(told.get("in_force", ()))
        self.error: Final[str | None] = told.get("error")
        self.tried: Final = time.monotonic()
        if self.error is not None:
            self.end()

    def _report(self) -> dict[str, Any]:
        self._control.settimeout(_START_SECONDS)
        try:
            report = json.loads(self._control.recv(_PIECE) or _NO_REPORT)
        except TimeoutError:
            return {"error": f"what forks them was not ready within {_START_SECONDS:g} seconds"}
        except (OSError, ValueError):
            report = None
        return report if isinstance(report, dict) else {"error": "what forks them could not be understood"}

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
        with called, os.fdopen(reads, "rb", buffering=0) as answers:
            try:
                with theirs:
                    socket.send_fds(self._control, [zygote.CALL.pack(number)], [theirs.fileno(), writes])
            except OSError:
                self.end()
                return None, b""
            finally:
                os.close(writes)
            called.settimeout(max(0.0, deadline - time.monotonic()))
            try:
                # Where the worker ended before it had read all, how it ended is still to be read.
                with suppress(BrokenPipeError, ConnectionResetError):
                    called.sendall(given)
                    called.shutdown(socket.SHUT_WR)
                answer = _read(answers.fileno(), adapter.output_bytes, deadline)
                if answer is None:
                    # That this end is closed makes the zygote end the worker.
                    return (zygote.EXITED, zygote.ANSWERED), None
                called.settimeout(max(0.0, deadline - time.monotonic()))
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


def _end(owner: int, control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    control.close()
    if os.getpid() == owner:
        process.kill()
        process.wait()


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
        raise failed(adapter, "OUTPUT_INVALID", f"it answers more than {adapter.output_bytes} bytes")
    if ending is None:
        raise failed(adapter, "EXECUTION_FAILED", "what runs it ended, and is started again")
    how, status = ending
    if ending == (zygote.EXITED, zygote.ANSWERED):
        return answer
    # It is the worker's own word, and goes into a sentence.
    text = answer.decode("utf-8", "replace")[:_LONGEST_TOLD]
    told = "".join(letter if letter.isprintable() else "?" for letter in text)
    if how == zygote.TIMED_OUT:
        raise failed(adapter, "EXECUTION_TIMEOUT", f"it took longer than {adapter.timeout_ms} ms")
    if ending == (zygote.SIGNALLED, signal.SIGSYS):
        raise failed(adapter, "CAPABILITY_DENIED", "it asks the operating system for more than it may")
    if how == zygote.SIGNALLED:
        raise failed(adapter, "EXECUTION_FAILED", f"the operating system ended it ({signal.Signals(status).name})")
    if status == zygote.DENIED:
        raise failed(adapter, "CAPABILITY_DENIED", told)
    if status == zygote.NOT_JSON:
        raise failed(adapter, "OUTPUT_INVALID", told)
    if status == zygote.RAISED:
        raise failed(adapter, "EXECUTION_FAILED", told)
    raise failed(adapter, "EXECUTION_FAILED", f"it ended with status {status}")


_LONGEST_TOLD: Final = 200


def failed(adapter: Adapter, code: str, why: str) -> AdapterFailed:
    """The error of a call; `code` without its prefix, `why` as a clause."""
    return AdapterFailed(
        f"TRUSTED_ADAPTER_{code}",
        f"The trusted adapter {adapter.name} made no facts: {why}. Nothing was recorded, and nothing is approved.",
    )
