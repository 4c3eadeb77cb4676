"""Processes that share one command's work leave Ctrl-C to it, from their first instruction on."""

from __future__ import annotations

import os
import signal

from gate.instance.processes import WorkerPool


def test_a_process_that_only_begins_is_not_ended_by_ctrl_c() -> None:
    with WorkerPool(1) as pool:
        working = pool.submit(os.getpid)
        # It has not even loaded its modules yet.
        (started,) = pool._processes
        os.kill(started, signal.SIGINT)
        assert working.result(60) == started


def test_a_process_that_works_is_not_ended_by_ctrl_c_and_what_it_begins_with_is_done_once() -> None:
    with WorkerPool(1, _begin, "given") as pool:
        started = pool.submit(os.getpid).result(60)
        os.kill(started, signal.SIGINT)
        assert pool.submit(_begun_with).result(60) == ["given"]
        # The one that they work for hears it as before.
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


_begun: list[str] = []


def _begin(given: str) -> None:
    _begun.append(given)


def _begun_with() -> list[str]:
    return _begun
