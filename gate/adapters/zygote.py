"""`python -m gate.adapters.zygote`: forks one worker for each call of an adapter, and says how each of them ended.

It starts clean: no key, no environment, and no descriptor but its own. It reads the code that it may run from standard
input (see `worker`), and encloses itself. It never runs an adapter's code itself. A new worker does so for each call. A
call arrives over the control socket as the number of an adapter and two descriptors:

    the call's socket    the worker reads the input from it, to its end; the zygote writes to it how the worker ended
    a pipe               the worker writes its answer to it

The zygote ends when its control socket does, and its workers with it. The standard library alone is imported here.
"""

from __future__ import annotations

import builtins
import errno
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any, Final

from gate.adapters.containment import ANSWER, BASELINE, DESCRIPTORS, MEASURES, Containment

# How a worker ended, as the zygote tells it.
EXITED: Final = 1
SIGNALLED: Final = 2
TIMED_OUT: Final = 3
ENDING: Final = struct.Struct("!BB")
"""How a worker ended: one of the three above, and its exit status or signal."""

CALL: Final = struct.Struct("!H")
"""The number of the adapter that is called."""

# With what status a worker exits.
ANSWERED: Final = 0
RAISED: Final = 10
DENIED: Final = 11
NOT_JSON: Final = 12
NOT_CONTAINED: Final = 13

MODULES: Final = (
    "__future__",
    "bisect",
    "collections",
    "collections.abc",
    "decimal",
    "fractions",
    "functools",
    "itertools",
    "math",
    "operator",
    "re",
    "string",
    "typing",
)
"""What an adapter may import: what computes, and tells neither the time nor anything of the machine, nor draws lots."""

# What an adapter has no use for: what reaches beyond the facts, and what differs from one run to the next.
_WITHHELD: Final = frozenset(
    ("breakpoint", "compile", "eval", "exec", "globals", "help", "id", "input", "locals", "memoryview", "open", "print")
) | {"vars"}

_PIECE: Final = 64 * 1024
_DESCRIPTORS: Final = struct.Struct("=2i")
# linux/time.h
_CLOCK_REALTIME_COARSE: Final = 5
_PROBE_SECONDS: Final = 1
_PROBE_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Adapter:
    """What a worker runs: the compiled source, and its limits in bytes and seconds."""

    code: CodeType
    memory: int
    seconds: float


@dataclass(slots=True)
class _Call:
    """A worker under way: its call's socket, and when it is overdue, in monotonic seconds."""

    socket: socket.socket
    overdue: float
    timed_out: bool = False


class _Denied(ImportError):
    """An adapter imports what it may not."""


def main() -> None:
    """Runs the zygote until its control socket ends."""
    control = socket.socket(fileno=int(sys.argv[1]))
    try:
        told = json.loads(sys.stdin.buffer.read())
        os.environ.clear()
        modules = _preload()
        adapters = [
            _Adapter(
                compile(adapter["source"], f"<{adapter['name']}>", "exec", dont_inherit=True),
                adapter["memory_bytes"],
                adapter["timeout_ms"] / 1000,
            )
            for adapter in told["adapters"]
        ]
        containment = Containment()
        containment.enclose(beyond_baseline=told["beyond_baseline"])
        zygote = _Zygote(control, containment, adapters)
        in_force = zygote.prove()
    except (OSError, ValueError, SyntaxError) as error:
        # The words of an OSError, without its number.
        control.send(json.dumps({"error": getattr(error, "strerror", None) or str(error)}).encode())
        return
    control.send(json.dumps({"in_force": in_force}).encode())
    clock = "clock_stopped" in in_force
    # What adapters do not import is gone from here on.
    sys.modules.clear()
    sys.modules.update(modules)
    # What is here stays, so that no collection has to look through it, and no worker has to copy its pages for that.
    gc.collect()
    gc.disable()
    gc.freeze()
    call = zygote.serve()
    if call is None:
        os._exit(0)
    # From here on it is a worker's process. That of the zygote's own is gone with its frames: an adapter that looked
    # through them would find until when calls may last, and so the time.
    del zygote, control, told, in_force
    status = NOT_CONTAINED
    try:
        status = _work(containment, modules, *call, clock=clock)
    finally:
        os._exit(status)


def _preload() -> dict[str, ModuleType]:
    for name in MODULES:
        __import__(name)
    # Both are loaded at their first use, which a worker could not.
    json.dumps("", ensure_ascii=False)
    json.loads("[]")
    return {name: sys.modules[name] for name in MODULES}


class _Zygote:
    """Forks workers, and looks after them."""

    def __init__(self, control: socket.socket, containment: Containment, adapters: list[_Adapter]) -> None:
        self._control = control
        self._containment = containment
        self._adapters = adapters
        self._pid = os.getpid()
        self._calls: dict[int, _Call] = {}
        self._clock = False

    def prove(self) -> list[str]:
        """The active measures, those of workers found out by workers that try to get past them.

        Raises:
            OSError: The baseline is not active.
        """
        found = list(self._containment.in_force)
        if self._ends_by(lambda: os.getppid(), signal.SIGSYS):
            found += ["seccomp", "rlimits"]
        if missing := [name for name in BASELINE if name not in found]:
            raise OSError(0, f"a worker was not restricted by {', '.join(missing)}")
        self._clock = True
        if self._ends_by(_tell_time, signal.SIGSYS):
            found.append("clock_stopped")
        else:
            self._clock = False
        return sorted(found, key=MEASURES.index)

    def _ends_by(self, attempt: Callable[[], object], *signals: int) -> bool:
        pid = os.fork()
        if pid == 0:
            with suppress(BaseException):
                self._containment.contain(_PROBE_BYTES, _PROBE_SECONDS, clock=self._clock)
                attempt()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) in signals

    def serve(self) -> tuple[_Adapter, socket.socket, int] | None:
        """Answers calls until the control socket ends.

        Returns:
            In the zygote, None, once no call will come any more. In each worker that it forked, the call: the adapter,
            the call's socket, and the descriptor to answer to.
        """
        woken, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.epoll()
        poll.register(self._control.fileno(), select.EPOLLIN)
        poll.register(woken, select.EPOLLIN)
        callers: dict[int, int] = {}
        while True:
            due = min((call.overdue for call in self._calls.values() if not call.timed_out), default=None)
            wait = -1.0 if due is None else max(0.0, due - time.monotonic())
            for descriptor, _ in poll.poll(wait):
                if descriptor == self._control.fileno():
                    called = self._receive()
                    if called is None:
                        # Workers end with this process, which forked them.
                        return None
                    pid = self._fork(*called)
                    if pid == 0:
                        return called
                    if pid is not None:
                        held = called[1].fileno()
                        callers[held] = pid
                        # Without a mask it tells one thing: that the caller has gone.
                        poll.register(held, 0)
                elif descriptor == woken:
                    with suppress(BlockingIOError):
                        os.read(woken, _PIECE)
                elif descriptor in callers:
                    poll.unregister(descriptor)
                    os.kill(callers.pop(descriptor), signal.SIGKILL)
            now = time.monotonic()
            for pid, call in self._calls.items():
                if call.overdue <= now and not call.timed_out:
                    call.timed_out = True
                    os.kill(pid, signal.SIGKILL)
            for pid, status in _ended():
                if (ended := self._calls.pop(pid, None)) is not None:
                    if callers.pop(ended.socket.fileno(), None) is not None:
                        poll.unregister(ended.socket.fileno())
                    _tell(ended, status)

    def _receive(self) -> tuple[_Adapter, socket.socket, int] | None:
        """The next call; None where none will come any more."""
        message, told, _, _ = self._control.recvmsg(CALL.size, socket.CMSG_SPACE(_DESCRIPTORS.size))
        if not message:
            return None
        called, answer = _DESCRIPTORS.unpack(told[0][2])
        return self._adapters[CALL.unpack(message)[0]], socket.socket(fileno=called), answer

    def _fork(self, adapter: _Adapter, called: socket.socket, answer: int) -> int | None:
        """Forks a worker for a call, and gives its process id, 0 in the worker; None where there is no room for one."""
        try:
            pid = os.fork()
        except OSError:
            # Whoever called sees the call's socket closed.
            called.close()
            os.close(answer)
            return None
        if pid == 0:
            signal.set_wakeup_fd(-1)
            self._containment.die_with_parent(self._pid)
            return 0
        os.close(answer)
        self._calls[pid] = _Call(called, time.monotonic() + adapter.seconds)
        return pid


def _work(
    containment: Containment,
    modules: Mapping[str, ModuleType],
    adapter: _Adapter,
    called: socket.socket,
    answer: int,
    *,
    clock: bool,
) -> int:
    """Runs an adapter, in the worker; the status to exit with."""
    pieces = []
    while piece := called.recv(_PIECE):
        pieces.append(piece)
    given = json.loads(b"".join(pieces))
    if answer != ANSWER:
        os.dup2(answer, ANSWER)
    os.closerange(0, ANSWER)
    os.closerange(ANSWER + 1, DESCRIPTORS)
    containment.contain(adapter.memory, int(adapter.seconds) + 1, clock=clock)
    denied: list[str] = []
    try:
        namespace: dict[str, Any] = {"__builtins__": _builtins(modules, denied), "__name__": "adapter"}
        exec(adapter.code, namespace)  # noqa: S102 -- the registered source, by its hash
        facts = namespace["facts"](given)
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it is the adapter's, and this process ends
        # Where its facts are made: nothing of its input is reported.
        _write(_fault(error, adapter.code.co_filename).encode())
        return DENIED if denied else RAISED
    if denied:
        # It may have been swallowed, and is reported nevertheless.
        _write(f"it imports {denied[0]}".encode())
        return DENIED
    try:
        text = json.dumps(_plain(facts), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        _write(b"a fact holds half of a character")
        return NOT_JSON
    except ValueError:
        _write(b"a fact is no finite number, or holds itself")
        return NOT_JSON
    except (TypeError, RecursionError) as error:
        _write(str(error).encode())
        return NOT_JSON
    _write(text)
    return ANSWERED


def _tell_time() -> None:
    """Ends this process with SIGSYS where no clock can be read."""
    try:
        time.time()
    except OSError:
        if time.clock_gettime(_CLOCK_REALTIME_COARSE) == 0:
            os.getppid()


def _ended() -> list[tuple[int, int]]:
    """The processes that ended, each with its status: workers, and whatever else may have been left to this one."""
    found = []
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(ended)
    return found


def _tell(call: _Call, status: int) -> None:
    if call.timed_out:
        told = ENDING.pack(TIMED_OUT, 0)
    elif os.WIFSIGNALED(status):
        told = ENDING.pack(SIGNALLED, os.WTERMSIG(status))
    else:
        told = ENDING.pack(EXITED, os.WEXITSTATUS(status))
    with call.socket as caller, suppress(OSError):
        caller.send(told, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def _builtins(modules: Mapping[str, ModuleType], denied: list[str]) -> dict[str, object]:
    """What an adapter's code finds without importing it."""

    def import_(
        name: str, globals_: object = None, locals_: object = None, wanted: object = (), level: int = 0
    ) -> ModuleType:
        if level != 0 or name not in modules:
            denied.append(name)
            raise _Denied(f"it imports {name}", name=name)
        return modules[name] if wanted else modules[name.partition(".")[0]]

    kept = {name: value for name, value in vars(builtins).items() if name not in _WITHHELD}
    return {**kept, "__import__": import_}


def _plain(value: object) -> object:
    """A value as it is, where it is made of nothing but what JSON has.

    Raises:
        TypeError: It is not.
    """
    if isinstance(value, dict):
        if any(type(name) is not str for name in value):
            raise TypeError("the name of a fact is not text")
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or type(value) in (str, int, float, bool):
        return value
    raise TypeError(f"a fact is a {type(value).__name__}, which is not a JSON type")


def _fault(error: BaseException, file: str) -> str:
    lines = []
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == file:
            lines.append(at.tb_lineno)
        at = at.tb_next
    if isinstance(error, _Denied):
        return str(error)
    # By the name that the language has for it: an adapter may make a name of what it was given.
    known = next(kind.__name__ for kind in type(error).__mro__ if vars(builtins).get(kind.__name__) is kind)
    return f"it raised {known} in line {lines[-1] if lines else 0}"


def _write(text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        try:
            rest = rest[os.write(ANSWER, rest) :]
        except OSError as error:
            if error.errno == errno.EPIPE:
                return
            raise


if __name__ == "__main__":
    main()
