"""Stretches judged in several processes. Each process has its own ledger, memory, and interpreter."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Final

from gate.errors import OperatorError
from gate.instance.audit.stretch import Auditor, Judged
from gate.instance.processes import WorkerPool, calm_collector
from gate.ledger import open_ledger
from gate.verify import Trust

# Enough that no process waits for the next one, and few enough that little work is wasted if a chain breaks.
_AHEAD: Final = 3


@dataclass(frozen=True, slots=True)
class Task:
    """A stretch to be judged; its members are the arguments of `Auditor.judge`."""

    scope_id: str
    chain_id: str
    after: int
    up_to: int


def judge_in_processes(
    ledger_url: str, trust: Trust, tasks: Iterable[Task], processes: int
) -> Iterator[tuple[Task, Judged]]:
    """Judges stretches in so many processes, and gives what they found in the order of the stretches.

    Args:
        ledger_url: The ledger.
        trust: The keys that signatures are verified with.
        tasks: The stretches; asked for as processes become free.
        processes: How many.

    Raises:
        OperatorError: `CHECK_INTERRUPTED`: a process was ended.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    pool = WorkerPool(processes, _begin, ledger_url, trust)
    waiting: deque[tuple[Task, Future[Judged]]] = deque()
    try:
        for task in tasks:
            waiting.append((task, pool.submit(_judge, task)))
            if len(waiting) > _AHEAD * processes:
                done, judged = waiting.popleft()
                yield done, judged.result()
        while waiting:
            done, judged = waiting.popleft()
            yield done, judged.result()
    except BrokenProcessPool as error:
        raise OperatorError(
            "CHECK_INTERRUPTED",
            "A process of the check was killed, perhaps because memory ran out. Run the check again with fewer "
            "--processes.",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


# Made at the start of a process, for all its stretches.
_auditor: list[Auditor] = []


def _begin(ledger_url: str, trust: Trust) -> None:
    # What was loaded stays: no collection has to look at it.
    gc.freeze()
    _auditor.append(Auditor(open_ledger(ledger_url), trust))


def _judge(task: Task) -> Judged:
    with calm_collector():
        return _auditor[0].judge(task.scope_id, task.chain_id, task.after, task.up_to)
