"""Where workers run: one to each processor, where a server has as many workers as the machine has processors.

A worker's threads take turns at the interpreter. Where the kernel spreads them over processors, each turn moves what
the worker works on from one processor's cache to another's; workers that keep to one answer about a third more.
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

PROCESSORS_VARIABLE: Final = "GATE_PROCESSORS"

# The locks of the processors that workers keep to, for as long as this process lives.
_kept: list[int] = []


def processors_to_keep_to(workers: int) -> str:
    """The processors that a server's workers are to keep to, as `PROCESSORS_VARIABLE` tells them; "" for none.

    With fewer workers than processors the kernel has room to find a better place; and a container that may use part of
    a large machine sees all of its processors, of which it must not choose one that others use as well.
    """
    if sys.platform != "linux":
        return ""
    usable = sorted(os.sched_getaffinity(0))
    return ",".join(map(str, usable)) if len(usable) == workers else ""


def keep_to_one(lock_file: Path) -> int | None:
    """Binds this process to a processor that no other worker on the same lock file keeps to.

    Args:
        lock_file: Held, a byte for each processor, by the workers of all servers of an instance. The kernel frees what
            a worker held when it ends, however it ends.

    Returns:
        The processor; None where none is to be kept to, or none is left.
    """
    named = os.environ.get(PROCESSORS_VARIABLE, "")
    if sys.platform != "linux" or not named:
        return None
    # A worker that cannot choose its processor still works, wherever the kernel puts it.
    with suppress(OSError):
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        _kept.append(descriptor)
        for processor in map(int, named.split(",")):
            if _try_lock(descriptor, processor):
                os.sched_setaffinity(0, {processor})
                return processor
    return None


def _try_lock(descriptor: int, byte: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True
