"""What keeps a worker from everything but computing: each measure, applied by the process to itself.

A zygote applies what holds for it and for all that it forks, once (`enclose`); each worker applies the rest before any
adapter's code runs (`contain`). Neither can be undone. The standard library alone is imported here.

    no_new_privs         a worker gains nothing by executing anything
    seccomp              every system call but those of computing, of memory and of writing the answer ends the worker
    rlimits              address space, processor time, files, descriptors, processes and core dumps are bounded
    clock_stopped        the clocks that can be read without a system call stand at 0 or cannot be read
    addresses_fixed      where things lie in memory is not drawn again for each zygote, and neither is what the kernel
                         hands a new process to draw from; who starts the zygote sets it (`fixed_addresses`)
    not_dumpable         no process of the same user can trace it or read its memory
    unprivileged_user    it is not root's
    no_capabilities      it has no capability, not even in a user namespace of its own
    network_namespace    it sees no network, not even a loopback that is up
    ipc_namespace        it sees no shared memory and no message queue of others
    process_namespace    it sees no process but the zygote and its workers, all of which end with the zygote
    empty_root           its file system is an empty directory that was removed

The first three are the baseline, which needs no privilege; without it no adapter runs.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

BASELINE: Final = ("no_new_privs", "seccomp", "rlimits")
"""What must be active for an adapter to run at all."""

MEASURES: Final = (
    *BASELINE,
    "clock_stopped",
    "addresses_fixed",
    "not_dumpable",
    "unprivileged_user",
    "no_capabilities",
    "network_namespace",
    "ipc_namespace",
    "process_namespace",
    "empty_root",
)
"""Every measure."""

ANSWER: Final = 3
"""The descriptor that a worker writes its answer to, the only one that it has."""

DESCRIPTORS: Final = 256
"""How many descriptors the zygote may have: two for each call under way, and a handful."""

_NOBODY: Final = 65534

# linux/prctl.h, linux/sched.h, linux/capability.h
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_SECCOMP: Final = 22
_PR_CAPBSET_DROP: Final = 24
_PR_SET_TSC: Final = 26
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_MODE_FILTER: Final = 2
_PR_TSC_SIGSEGV: Final = 2
_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWIPC: Final = 0x08000000
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWPID: Final = 0x20000000
_CLONE_NEWNET: Final = 0x40000000
_CAPABILITY_VERSION_3: Final = 0x20080522
_LAST_CAPABILITY: Final = 63

# linux/mman.h
_PROT_READ: Final = 1
_PROT_EXEC: Final = 4
_MAP_PRIVATE: Final = 0x02
_MAP_FIXED: Final = 0x10
_MAP_ANONYMOUS: Final = 0x20
_MADV_DONTNEED: Final = 4
_MADV_FREE: Final = 8

# linux/personality.h, linux/auxvec.h
_ADDR_NO_RANDOMIZE: Final = 0x0040000
_PERSONALITY_ASKED: Final = 0xFFFFFFFF
_AT_RANDOM: Final = 25
_AT_RANDOM_BYTES: Final = 16

# linux/audit.h and each architecture's unistd.h.
_ARCHITECTURES: Final = {
    "x86_64": (
        0xC000003E,
        {
            "write": 1,
            "mmap": 9,
            "mprotect": 10,
            "munmap": 11,
            "brk": 12,
            "mremap": 25,
            "madvise": 28,
            "clock_gettime": 228,
            "exit_group": 231,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "write": 64,
            "exit_group": 94,
            "clock_gettime": 113,
            "brk": 214,
            "munmap": 215,
            "mremap": 216,
            "mmap": 222,
            "mprotect": 226,
            "madvise": 233,
        },
    ),
}

# linux/filter.h and linux/seccomp.h. `struct seccomp_data` holds the number, the architecture, the instruction pointer
# and six arguments of 64 bits, of which the lower half is loaded.
_LOAD: Final = 0x20
_JUMP_IF_EQUAL: Final = 0x15
_JUMP_IF_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM
_KILL_PROCESS: Final = 0x80000000
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4

_SUPPORTED: Final = sys.platform == "linux" and sys.byteorder == "little" and platform.machine() in _ARCHITECTURES


def _argument(index: int) -> int:
    return 16 + 8 * index


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class Containment:
    """Contains this process and those that it forks; made before anything is applied.

    Attributes:
        in_force: The active measures that `enclose` could apply. `zygote` adds those of workers after checking that
            they hold.
    """

    def __init__(self) -> None:
        """Prepares what workers apply, so that they only have to apply it.

        Raises:
            OSError: This system has not what the baseline needs.
        """
        if not _SUPPORTED:
            where = f"{platform.system()} on {platform.machine()}"
            raise OSError(0, f"workers can be contained only on Linux on x86_64 or aarch64, but this is {where}")
        self.in_force: list[str] = []
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._instructions = _filter(platform.machine())
        self._program = _Program(
            len(self._instructions) // 8,
            ctypes.cast(ctypes.c_char_p(self._instructions), ctypes.c_void_p),
        )
        self._libc.mmap.restype = ctypes.c_void_p
        self._clocks = _clocks()
        self._size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    def enclose(self, *, beyond_baseline: bool) -> None:
        """Applies to this process, and so to all that it forks, what can be applied.

        Args:
            beyond_baseline: Whether to apply more than the baseline, as far as that can be.

        Raises:
            OSError: The baseline cannot be applied.
        """
        self._prctl(_PR_SET_CHILD_SUBREAPER, 1)
        personality = self._libc.personality(ctypes.c_ulong(_PERSONALITY_ASKED))
        if personality >= 0 and personality & _ADDR_NO_RANDOMIZE:
            self._libc.getauxval.restype = ctypes.c_void_p
            if (drawn := self._libc.getauxval(ctypes.c_ulong(_AT_RANDOM))) is not None:
                ctypes.memset(drawn, 0, _AT_RANDOM_BYTES)
            self.in_force.append("addresses_fixed")
        for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
            resource.setrlimit(limit, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        if beyond_baseline:
            self._separate()
            self._apply("empty_root", self._empty_root)
            self._apply("unprivileged_user", _drop_user)
        self._prctl(_PR_SET_NO_NEW_PRIVS, 1)
        self.in_force.insert(0, "no_new_privs")
        if beyond_baseline:
            self._apply("no_capabilities", self._drop_capabilities)
            self._apply("not_dumpable", lambda: self._prctl(_PR_SET_DUMPABLE, 0))
        if "process_namespace" in self.in_force:
            # Last, for a change of user undoes it. The parent only waits, and so ends before this process if killed.
            self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def die_with_parent(self, parent: int) -> None:
        """Ends this process when the thread that forked it ends, at once where that has happened."""
        self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    def contain(self, memory: int, seconds: int, *, clock: bool) -> None:
        """Contains this process for good: from here on it can compute, write to `ANSWER` and end.

        Args:
            memory: How many bytes it may allocate.
            seconds: How many seconds of processor time it may take.
            clock: Whether the clocks are to be stopped.

        Raises:
            OSError: It could not be contained.
        """
        if clock:
            self._stop_clocks()
        for limit, value in (
            (resource.RLIMIT_AS, self._size + memory),
            (resource.RLIMIT_CPU, seconds),
            (resource.RLIMIT_NPROC, 0),
            (resource.RLIMIT_NOFILE, 0),
        ):
            resource.setrlimit(limit, (value, value))
        self._prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(self._program))

    def _separate(self) -> None:
        """Enters namespaces of its own. An ordinary user may where user namespaces are open to everyone."""
        user, group = os.geteuid(), os.getegid()
        if self._unshares(_CLONE_NEWNET):
            self.in_force.append("network_namespace")
        elif self._unshares(_CLONE_NEWUSER):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
            self._apply("network_namespace", lambda: self._unshare(_CLONE_NEWNET))
        else:
            return
        self._unshares(_CLONE_NEWNS)
        self._apply("ipc_namespace", lambda: self._unshare(_CLONE_NEWIPC))
        self._apply("process_namespace", self._enter_process_namespace)

    def _enter_process_namespace(self) -> None:
        """Goes on as the first process of a namespace; the process that was here waits for its end."""
        self._unshare(_CLONE_NEWPID)
        if (inner := os.fork()) != 0:
            os.closerange(0, DESCRIPTORS)
            _, status = os.waitpid(inner, 0)
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)

    def _empty_root(self) -> None:
        """Makes an empty directory the root. It is removed first, so that nothing can be made in it."""
        for folder in ("/tmp", "/var/tmp", "/dev/shm"):  # noqa: S108 -- it has a random name, and is removed at once
            path = Path(folder, f"gate-{os.urandom(16).hex()}")
            try:
                path.mkdir(0o500)
            except OSError:
                continue
            try:
                os.chdir(path)
            finally:
                path.rmdir()
            os.chroot(".")
            return
        raise OSError

    def _drop_capabilities(self) -> None:
        for capability in range(_LAST_CAPABILITY + 1):
            # Needs a capability itself, and only bounds what executing a file could give, which seccomp denies.
            self._libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        header, held = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), ctypes.create_string_buffer(24)
        self._libc.capset(header, bytes(24))
        # Where a filter of the service's own forbids it, there may be none to drop.
        self._call("capget", self._libc.capget(header, held))
        if any(held.raw):
            raise OSError(errno.EPERM, "capabilities remain")

    def _stop_clocks(self) -> None:
        """Puts zeros where the kernel keeps its clocks.

        By them the code that reads the clocks takes a coarse one to stand at 0, and asks the kernel for the others,
        which refuses. That code stays, for the interpreter looks at a clock whenever it takes a lock.
        """
        for start, length in self._clocks:
            flags = _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_FIXED
            size = ctypes.c_size_t(length)
            found = self._libc.mmap(ctypes.c_void_p(start), size, _PROT_READ, flags, -1, ctypes.c_long(0))
            self._call("mmap", 0 if found == start else -1)
        if platform.machine() == "x86_64":
            # The processor's own counter, which needs no memory.
            self._prctl(_PR_SET_TSC, _PR_TSC_SIGSEGV)

    def _apply(self, measure: str, do: Callable[[], None]) -> None:
        try:
            do()
        except OSError:
            return
        self.in_force.append(measure)

    def _unshare(self, what: int) -> None:
        self._call("unshare", self._libc.unshare(what))

    def _unshares(self, what: int) -> bool:
        return bool(self._libc.unshare(what) == 0)

    def _prctl(self, option: int, value: int, more: int = 0) -> None:
        arguments = (ctypes.c_ulong(value), ctypes.c_ulong(more), ctypes.c_ulong(0), ctypes.c_ulong(0))
        self._call(f"prctl {option}", self._libc.prctl(option, *arguments))

    def _call(self, what: str, result: int) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")


@contextmanager
def fixed_addresses() -> Iterator[None]:
    """While the block runs, what this thread executes has its addresses where they always are, if that may be set.

    Of this process nothing changes: addresses are drawn when a file is executed.
    """
    if not _SUPPORTED:
        yield
        return
    libc = ctypes.CDLL(None)
    before = libc.personality(ctypes.c_ulong(_PERSONALITY_ASKED))
    if before < 0:
        # A container may refuse the call.
        yield
        return
    libc.personality(ctypes.c_ulong(before | _ADDR_NO_RANDOMIZE))
    try:
        yield
    finally:
        libc.personality(ctypes.c_ulong(before))


def _drop_user() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def _clocks() -> list[tuple[int, int]]:
    """Where the kernel's pages of clocks are: address and length of each part."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, _, name = line.partition(" ")
        if "[vvar" in name:
            start, end = (int(address, 16) for address in span.split("-"))
            found.append((start, end - start))
    return found


def _filter(machine: str) -> bytes:
    """The filter of system calls, in classic BPF.

    Memory may be mapped only where it is no file's and cannot be executed, and only `ANSWER` may be written to.
    """
    architecture, numbers = _ARCHITECTURES[machine]
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for name in ("exit_group", "brk", "munmap", "mremap"):
        code += [(_JUMP_IF_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _ALLOW)]
    code += [(_JUMP_IF_EQUAL, 0, 1, numbers["clock_gettime"]), (_RETURN, 0, 0, _REFUSE)]
    code += _where(numbers["write"], [(_LOAD, 0, 0, _argument(0)), (_JUMP_IF_EQUAL, 0, 1, ANSWER)])
    # Of the kinds of advice, some are orders to the kernel.
    code += _where(
        numbers["madvise"],
        [(_LOAD, 0, 0, _argument(2)), (_JUMP_IF_EQUAL, 1, 0, _MADV_DONTNEED), (_JUMP_IF_EQUAL, 0, 1, _MADV_FREE)],
    )
    code += _where(numbers["mprotect"], [(_LOAD, 0, 0, _argument(2)), (_JUMP_IF_ANY_BIT, 1, 0, _PROT_EXEC)])
    code += _where(
        numbers["mmap"],
        [
            (_LOAD, 0, 0, _argument(2)),
            (_JUMP_IF_ANY_BIT, 3, 0, _PROT_EXEC),
            (_LOAD, 0, 0, _argument(3)),
            (_JUMP_IF_ANY_BIT, 0, 1, _MAP_ANONYMOUS),
        ],
    )
    code.append((_RETURN, 0, 0, _KILL_PROCESS))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _where(number: int, test: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Allows a system call where a test of its arguments falls through, and ends the process where it jumps by one."""
    return [
        (_JUMP_IF_EQUAL, 0, len(test) + 2, number),
        *test,
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _KILL_PROCESS),
    ]
