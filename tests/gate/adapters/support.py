"""Adapters made from a source text, and what tests see of the processes that run them."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gate.adapters.manifest import Adapter
from gate.adapters.worker import Workers

DEADLINE_SECONDS: Final = 90.0
"""How long a condition may take to come about, on however slow a machine."""

KIND: Final = """
def facts(given):
    return {"sum": sum(given["numbers"]), "name": given["name"].upper()}
"""
"""A well-behaved adapter: it answers `KIND_FACTS` to `KIND_GIVEN`."""

KIND_GIVEN: Final = b'{"name":"ada","numbers":[1,2,3]}'
KIND_FACTS: Final = {"sum": 6, "name": "ADA"}


_REFUSED: Final = {"unshare": {"x86_64": 272, "aarch64": 97}, "personality": {"x86_64": 135, "aarch64": 92}}
_REFUSING: Final = """
import ctypes, os, struct, sys
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
program, libc = Program(len(steps), ctypes.cast(code, ctypes.c_void_p)), ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


def refusing(call: str, *command: str) -> list[str]:
    """A command that runs another, to which a system call is refused, as a container's or a unit's filter does."""
    return [sys.executable, "-c", _REFUSING, str(_REFUSED[call][platform.machine()]), *command]


def adapter(
    adapter_id: str,
    source: str,
    *,
    timeout_ms: int = 10_000,
    memory_bytes: int = 64 * 1024 * 1024,
    output_bytes: int = 64 * 1024,
) -> Adapter:
    """An adapter of that source that takes and gives any JSON."""
    manifest: Any = {
        "adapter_id": adapter_id,
        "version": "1.0.0",
        "implementation_hash": hashlib.sha256(source.encode()).hexdigest(),
        "limits": {"timeout_ms": timeout_ms, "memory_bytes": memory_bytes, "output_bytes": output_bytes},
        "input_schema": {},
        "output_schema": {},
    }
    return Adapter(manifest, source.encode())


def facts(workers: Workers, called: Adapter, given: bytes = b"{}") -> Any:
    """What an adapter answers, parsed."""
    return json.loads(workers.run(called, given))


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes about before the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def parent_of(pid: int) -> int | None:
    """A process's parent; None where there is no such process, or only its exit status is left."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold anything.
    state, parent = text.rpartition(")")[2].split()[:2]
    return None if state in "ZX" else int(parent)


def descendants(pid: int) -> list[int]:
    """The living descendants of a process, parents first."""
    found = [pid]
    for known in found:
        found += [child for child in _children(known) if parent_of(child) == known and child not in found]
    return found[1:]


def _children(pid: int) -> list[int]:
    """What the threads of a process started, or took over, and nobody waited for yet."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        # A thread may end at any moment, and leaves its children to another one.
        with suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in task.read_text().split()]
    return found


def zygotes(workers: Workers) -> list[int]:
    """The processes of a zygote, which is started where there is none: the outer, and the inner where there is one."""
    in_force = workers.measures().in_force
    outer = workers.process_id()
    assert outer is not None
    return [outer, *descendants(outer)[:1]] if "process_namespace" in in_force else [outer]


def workers_of(workers: Workers) -> list[int]:
    """The workers that a zygote runs now."""
    own = zygotes(workers)
    return [pid for pid in descendants(own[0]) if pid not in own]


def has_no_workers(workers: Workers) -> bool:
    """Whether a zygote comes to have no worker left."""
    return eventually(lambda: not workers_of(workers))


def descriptors(pid: int) -> list[str]:
    """What a process's descriptors stand for; nothing where that is not for this user to see."""
    folder = Path(f"/proc/{pid}/fd")
    found = []
    try:
        links = list(folder.iterdir())
    except PermissionError:
        return []
    for link in links:
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            # Another thread's, closed meanwhile.
            continue
        # This listing has a descriptor, too.
        if target != str(folder):
            found.append(target)
    return sorted(found)


def resident_bytes(pids: Sequence[int]) -> int:
    """How much memory of their own some processes take, what they share counted once.

    What comes from files is left out: how much of that is a process's depends on who else has the file.
    """
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except PermissionError:
            lines = []
        held = [int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:")]
        if held:
            total += held[0] * 1024
        else:
            _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
            total += (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return total
