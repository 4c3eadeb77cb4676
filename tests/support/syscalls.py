"""System calls of running processes, seen and made to fail, by ptrace through ctypes (Linux on x86-64 and arm64).

Of its own, because python-ptrace asks each thread in turn whether it has stopped and sleeps between two rounds, which
is slow with many threads and mixes up their order, and stops what it attaches to with SIGSTOP. PTRACE_SEIZE does not,
and PTRACE_GET_SYSCALL_INFO (Linux 5.3) tells a call's start from its end.

Only the thread that has attached to a process may make ptrace calls on it, so one thread does it all. It is a thread of
the test process, because a common setting (Yama's ptrace_scope) lets a process trace nothing but its descendants.
While a direct child of the test process is traced, nothing may wait for it or poll it; if it ends meanwhile, its exit
code is lost.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Each call's number on x86-64 and on arm64, and what its arguments are.
_CALLS: Final = {
    "write": (1, 64, "buffer"),
    "open": (2, None, "name"),
    "close": (3, 57, "file"),
    "pwrite64": (18, 68, "buffer"),
    "writev": (20, 66, "vector"),
    "sendto": (44, 206, "buffer"),
    "sendmsg": (46, 211, "message"),
    "fsync": (74, 82, "file"),
    "fdatasync": (75, 83, "file"),
    "ftruncate": (77, 46, "file"),
    "rename": (82, None, "name"),
    "unlink": (87, None, "name"),
    "openat": (257, 56, "name at"),
    "unlinkat": (263, 35, "name at"),
    "renameat": (264, 38, "name at"),
    "sync_file_range": (277, 84, "file"),
    "pwritev": (296, 70, "vector"),
    "sendmmsg": (307, 269, "message"),
    "renameat2": (316, 276, "name at"),
    "pwritev2": (328, 287, "vector"),
}
_X86_64: Final = platform.machine() == "x86_64"
_NAMES: Final = {(on_x86_64 if _X86_64 else on_arm64): name for name, (on_x86_64, on_arm64, _) in _CALLS.items()}
_NEW_NAME: Final = {"rename": 1, "renameat": 3, "renameat2": 3}
_MOST_DATA: Final = 1 << 20

_SYSCALL, _SETREGSET, _SEIZE, _INTERRUPT, _LISTEN = 24, 0x4205, 0x4206, 0x4207, 0x4208
_GETREGSET, _GET_SYSCALL_INFO = 0x4204, 0x420E
_EVENT_STOP: Final = 128
_AT_FDCWD: Final = -100
# TRACESYSGOOD, and TRACEFORK, TRACEVFORK, TRACECLONE and TRACEEXEC: what a traced thread starts is traced as well.
_OPTIONS: Final = 0x1F
_REGISTERS, _ARM_SYSTEM_CALL = 1, 0x404
# __WALL and __WNOTHREAD: a wait for this thread's tracees and children, and for no other thread's.
_MINE: Final = 0x4000_0000 | 0x2000_0000

# A PyDLL keeps the interpreter's lock: these calls never block, and giving the lock away costs more than they take.
_LIBC: Final = ctypes.PyDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Fault:
    """A system call that fails without being made.

    Attributes:
        syscall: Its name.
        path_suffix: How the path of its file ends.
        error: The errno it fails with.
        times: How often; always where None.
    """

    syscall: str
    path_suffix: str
    error: int
    times: int | None = None


@dataclass(slots=True)
class Event:
    """A system call.

    Attributes:
        began: When it was entered, and `ended` when it returned, on one clock that counts from 1: what caused what
            has the smaller number.
        thread: The thread's id.
        name: The call's name.
        path: The file it is about, absolute, or `socket:[...]` and the like; "" where none is to be found.
        data: What it writes; for a rename the new name.
        result: What it returned, `-errno` for a failure; None while it runs.
        injected: Whether a fault made it fail.
    """

    began: int
    thread: int
    name: str
    path: str
    data: bytes = b""
    result: int | None = None
    ended: int | None = None
    injected: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether it has returned without an error."""
        return self.result is not None and self.result >= 0


class Trace:
    """What is seen of some processes; `events` grows while they are traced."""

    def __init__(self, pids: Sequence[int], faults: Sequence[Fault], limit: float) -> None:
        """Starts the thread that traces; `ready` is set once nothing that the processes do escapes it, or it failed."""
        self.events: list[Event] = []
        self.ready = threading.Event()
        self.error: OSError | None = None
        self._faults = faults
        self._injected: Counter[Fault] = Counter()
        self._running: dict[int, Event] = {}
        self._clock = 0
        self._bell: int | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, args=(pids, limit), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Lets the processes go on untraced."""
        self._stopping = True
        if (bell := self._bell) is not None:
            os.kill(bell, signal.SIGKILL)
        # When the tracing thread is no more, the kernel has let every tracee go, wherever it stood. That is after join.
        task = Path(f"/proc/self/task/{self._thread.native_id}")
        deadline = time.monotonic() + 10
        while task.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the tracing thread does not end")
            time.sleep(0.001)
        self._thread.join(10)

    def _run(self, pids: Sequence[int], limit: float) -> None:
        # What ends the endless wait for a tracee is that a child of this thread ends; so there is one, to be killed.
        with subprocess.Popen(["sleep", str(limit)]) as bell:
            self._bell = bell.pid
            try:
                self._trace(bell.pid, {thread for pid in pids for thread in _attach(pid)})
                if not self._stopping:
                    raise TimeoutError(f"the trace was not stopped within {limit:g} seconds")
            except OSError as error:
                self.error = error
            finally:
                self._bell = None
                self.ready.set()
                bell.kill()

    def _trace(self, bell: int, expected: set[int]) -> None:
        while True:
            thread, status = os.waitpid(-1, _MINE)
            if thread == bell:
                return
            if os.WIFSTOPPED(status):
                # A thread may be killed at any moment; its end is then what is waited for next.
                with suppress(ProcessLookupError):
                    self._stopped(thread, os.WSTOPSIG(status), status >> 16)
            else:
                self._running.pop(thread, None)
            expected.discard(thread)
            if not expected:
                self.ready.set()

    def _stopped(self, thread: int, sign: int, event: int) -> None:
        if sign == signal.SIGTRAP | 0x80:
            self._syscall(thread)
            _ptrace(_SYSCALL, thread)
        elif event == _EVENT_STOP and sign != signal.SIGTRAP:
            # SIGSTOP or the like has stopped the whole process, until SIGCONT.
            _ptrace(_LISTEN, thread)
        else:
            _ptrace(_SYSCALL, thread, 0, 0 if event else sign)

    def _syscall(self, thread: int) -> None:
        self._clock += 1
        info = ctypes.create_string_buffer(88)
        _ptrace(_GET_SYSCALL_INFO, thread, len(info), ctypes.addressof(info))
        # 1 is a start, with the call's number and arguments; 2 is an end, with the result in the number's place.
        kind, number, *arguments = struct.unpack_from("<B23xQ6Q", info.raw)
        if kind == 1 and number in _NAMES:
            event = _decoded(self._clock, thread, _NAMES[number], arguments)
            fault = next((fault for fault in self._faults if self._fits(fault, event)), None)
            if fault is not None:
                _skip(thread, -fault.error)
                self._injected[fault] += 1
                event.injected = True
            self._running[thread] = event
            self.events.append(event)
        elif kind == 2 and (returning := self._running.pop(thread, None)):
            (returning.result,) = struct.unpack_from("<q", info.raw, 24)
            returning.ended = self._clock

    def _fits(self, fault: Fault, event: Event) -> bool:
        left = fault.times is None or self._injected[fault] < fault.times
        return left and fault.syscall == event.name and event.path.endswith(fault.path_suffix)


@contextmanager
def tracing(pids: int | Iterable[int], faults: Sequence[Fault] = (), *, limit: float = 60) -> Iterator[Trace]:
    """Traces processes, and the threads and processes they start, while the block runs.

    Args:
        pids: The processes.
        faults: What fails meanwhile; the first that fits a call counts.
        limit: After how many seconds the processes are let go in any case; the block then ends in an error.

    Raises:
        OSError: A process cannot be traced, or the limit was exceeded.
    """
    trace = Trace([pids] if isinstance(pids, int) else list(pids), faults, limit)
    try:
        if not trace.ready.wait(10):
            raise TimeoutError("the processes did not stop for the tracer")
        if trace.error is None:
            yield trace
    finally:
        trace.stop()
    if trace.error is not None:
        raise trace.error


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    children: dict[int, list[int]] = {}
    # Tests call this over and over while they wait, and a glob would take three times as long.
    for process in os.scandir("/proc"):
        with suppress(OSError):
            if process.name.isdigit():
                parent = int(Path(process.path, "stat").read_bytes().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(process.name))
    found = [pid]
    for known in found:
        found.extend(children.get(known, []))
    return found[1:]


@functools.cache
def available() -> str | None:
    """Why processes cannot be traced here; None where they can."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return f"system calls are not traced on {sys.platform} {platform.machine()}"
    echo = [sys.executable, "-SEc", "import os; os.write(1, os.read(0, 1))"]
    with subprocess.Popen(echo, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            with tracing(child.pid, [Fault("write", "", errno.EIO, times=1)], limit=10):
                child.stdin.write(b"x")
                child.stdin.close()
                echoed = child.stdout.read()
        except OSError as error:
            return f"ptrace: {error}"
        finally:
            child.kill()
    return "ptrace makes no system call fail" if echoed else None


def _attach(pid: int) -> set[int]:
    """Attaches to every thread of a process and asks each to stop once; the threads."""
    seized: set[int] = set()
    seen: set[int] = set()
    # Until no thread is new: one that is not yet attached to may start another.
    while fresh := {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()} - seen:
        seen |= fresh
        for thread in fresh:
            try:
                _ptrace(_SEIZE, thread, 0, _OPTIONS)
                _ptrace(_INTERRUPT, thread)
                seized.add(thread)
            except ProcessLookupError:
                continue
            except PermissionError:
                # Also what is said of a thread that is ending, or that the kernel attached to when it was started.
                if not re.search(rf"^(TracerPid:\t{threading.get_native_id()}$|State:\t[XZ])", _status(thread), re.M):
                    raise
    if not seized:
        raise ProcessLookupError(errno.ESRCH, f"process {pid} has ended")
    return seized


def _status(thread: int) -> str:
    try:
        return Path(f"/proc/{thread}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "State:\tX"


def _decoded(clock: int, thread: int, name: str, arguments: Sequence[int]) -> Event:
    kind, (first, second, third), data = _CALLS[name][2], arguments[:3], b""
    if kind == "name":
        path = str(Path(_link(thread, "cwd")) / _text(thread, first))
    elif kind == "name at":
        folder = "cwd" if ctypes.c_int(first).value == _AT_FDCWD else f"fd/{first & 0xFFFF_FFFF}"
        path = str(Path(_link(thread, folder)) / _text(thread, second))
    else:
        path = _link(thread, f"fd/{first & 0xFFFF_FFFF}")
    if kind == "buffer":
        data = _memory(thread, second, third)
    elif kind == "vector":
        data = _gathered(thread, second, third)
    elif kind == "message":
        # Of several messages the first: enough to see what is being sent.
        header = _memory(thread, second + 16, 16)
        data = _gathered(thread, *struct.unpack("<QQ", header)) if len(header) == 16 else b""
    elif name in _NEW_NAME:
        data = os.fsencode(_text(thread, arguments[_NEW_NAME[name]]))
    return Event(clock, thread, name, path, data)


def _gathered(thread: int, vector: int, count: int) -> bytes:
    raw = _memory(thread, vector, 16 * count)
    return b"".join(_memory(thread, *part) for part in struct.iter_unpack("<QQ", raw[: len(raw) // 16 * 16]))


def _memory(thread: int, address: int, size: int) -> bytes:
    with suppress(OSError, OverflowError), Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        return os.pread(memory.fileno(), min(size, _MOST_DATA), address)
    return b""


def _text(thread: int, address: int) -> str:
    return os.fsdecode(_memory(thread, address, 4096).partition(b"\0")[0])


def _link(thread: int, name: str) -> str:
    try:
        return str(Path(f"/proc/{thread}/{name}").readlink())
    except OSError:
        return ""


def _skip(thread: int, result: int) -> None:
    """Makes a call that is being entered return at once: its number becomes -1, and its result stands already."""
    registers = (ctypes.c_int64 * 64)()
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(registers), ctypes.sizeof(registers))
    _ptrace(_GETREGSET, thread, _REGISTERS, ctypes.addressof(vector))
    if _X86_64:
        registers[10], registers[15] = result, -1
    else:
        registers[0] = result
        number = ctypes.c_int(-1)
        other = (ctypes.c_uint64 * 2)(ctypes.addressof(number), ctypes.sizeof(number))
        _ptrace(_SETREGSET, thread, _ARM_SYSTEM_CALL, ctypes.addressof(other))
    _ptrace(_SETREGSET, thread, _REGISTERS, ctypes.addressof(vector))


def _ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    if _LIBC.ptrace(ctypes.c_long(request), thread, ctypes.c_void_p(address), ctypes.c_void_p(data)) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
