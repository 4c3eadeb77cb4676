"""Processes that share one command's work: spawned, so that they inherit no locks and no descriptors."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def begin_worker() -> None:
    """Lets a spawned process end with the command that it works for, and with nothing else."""
    # Ctrl-C reaches every process of the command; the first one stops the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


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
