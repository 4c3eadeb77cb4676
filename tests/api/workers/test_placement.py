"""Workers that keep to one processor each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from api.workers.placement import PROCESSORS_VARIABLE, processors_to_keep_to

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process choose its processors")

_WORKER = """
import os, sys
from pathlib import Path
from api.workers.placement import keep_to_one
print(keep_to_one(Path(sys.argv[1])), sorted(os.sched_getaffinity(0)), flush=True)
sys.stdin.read()
"""

USABLE = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []


@contextmanager
def worker(lock_file: Path, processors: str) -> Iterator[str]:
    """A process that has looked for a processor, and what it says of itself."""
    environment = {**os.environ, PROCESSORS_VARIABLE: processors}
    with subprocess.Popen(
        [sys.executable, "-c", _WORKER, str(lock_file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def test_each_worker_keeps_to_a_processor_of_its_own_until_it_ends(tmp_path: Path) -> None:
    lock_file, named = tmp_path / "workers.lock", ",".join(map(str, USABLE))
    with ExitStack() as others:
        for processor in USABLE[:-1]:
            assert others.enter_context(worker(lock_file, named)) == f"{processor} [{processor}]"
        last = others.enter_context(ExitStack())
        said = last.enter_context(worker(lock_file, named))
        assert said == f"{USABLE[-1]} [{USABLE[-1]}]"
        with worker(lock_file, named) as surplus:
            assert surplus == f"None {USABLE}"
        last.close()
        with worker(lock_file, named) as successor:
            assert successor == said, "a worker that was killed leaves its processor to the next"


def test_workers_are_left_to_the_kernel_where_they_are_fewer_than_the_processors(tmp_path: Path) -> None:
    assert processors_to_keep_to(len(USABLE)) == ",".join(map(str, USABLE))
    assert processors_to_keep_to(len(USABLE) + 1) == ""
    with worker(tmp_path / "workers.lock", "") as said:
        assert said == f"None {USABLE}"
    assert not (tmp_path / "workers.lock").exists()
