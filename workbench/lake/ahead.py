"""Working ahead: what is read and inflated next is got ready in threads while the last of it is being written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def ahead(work: Callable[[Task], Answer], tasks: Iterable[Task], *, workers: int) -> Iterator[Answer]:
    """What work gives for each task, in their order; at most so many are got ready before they are asked for.

    What work raises is raised where its answer would be given.
    """
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Answer]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(work, task))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # Whoever asks for no more waits for no more than what has begun.
            for future in waiting:
                future.cancel()
