"""Processes that share one command's work: spawned, so that they inherit no locks and no descriptors; and what every
process that stays does once it has loaded.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

_CTRL_C = frozenset({signal.SIGINT})


def calm_garbage() -> None:
    """Keeps the collector of garbage to what a request leaves behind, and from looking in the middle of a batch."""
    # Loaded modules stay for good; no later collection needs to look through them.
    gc.collect()
    gc.freeze()
    # A batch of 100 decisions keeps 7,000 objects until it is answered, and a cycle is rare.
    gc.set_threshold(20_000, 20, 20)


class WorkerPool(ProcessPoolExecutor):
    """Spawned processes that end with the command that they work for, and with nothing else."""

    def __init__(self, processes: int, begin: Callable[..., None] | None = None, *arguments: Any) -> None:
        """Starts no process yet.

        Args:
            processes: How many there are at most.
            begin: What each calls first; None for nothing.
            arguments: What it is called with.
        """
        super().__init__(processes, multiprocessing.get_context("spawn"), begin_worker, (begin, arguments))

    def submit(self, *work: Any, **named: Any) -> Future[Any]:
        """As any executor; starts processes where some are missing."""
        with starting():
            return super().submit(*work, **named)


@contextmanager
def starting() -> Iterator[None]:
    """Holds Ctrl-C back while the block starts processes, which `begin_worker` lets through again."""
    # A process has the mask of the thread that starts it: Ctrl-C, which reaches every process of the command, would end
    # one that only loads its modules yet, with a traceback.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _CTRL_C)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker(begin: Callable[..., None] | None = None, arguments: tuple[Any, ...] = ()) -> None:
    """The first function that a process of a command calls. The process ends with the command, and leaves Ctrl-C to it.

    Args:
        begin: What it calls then; None for nothing.
        arguments: The arguments of that function.
    """
    # The first process of the command stops the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _CTRL_C)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if begin is not None:
        begin(*arguments)


@contextmanager
def calm_collector() -> Iterator[None]:
    """Collects garbage less often while the block runs, which makes and drops many documents and hardly any cycle."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with_parent() -> None:
    """Ends the process when the first one is gone: killed, it stops nobody, and a part of the work is of no use."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
