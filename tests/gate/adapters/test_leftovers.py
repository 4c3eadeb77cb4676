"""What is left of many calls of every kind: no process, no descriptor, no memory."""

from __future__ import annotations

import gc
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from gate.adapters.worker import Workers
from gate.errors import AdapterFailed
from tests.gate.adapters.attacks import DENIED, FAILED, INVALID, TIMEOUT
from tests.gate.adapters.support import (
    KIND,
    KIND_FACTS,
    KIND_GIVEN,
    adapter,
    descriptors,
    eventually,
    facts,
    has_no_workers,
    parent_of,
    resident_bytes,
    zygotes,
)

pytestmark = pytest.mark.heavy

_CALLS: Final = 10_000 if "GATE_TORTURE" in os.environ else 200
_THREADS: Final = 4
_SPARE_BYTES: Final = 8 * 1024 * 1024

_ALLOCATES: Final = """
def facts(given):
    held = bytearray(24 << 20)
    return {"sum": sum(given["numbers"]), "name": given["name"].upper()}
"""
_WRITES: Final = 'def facts(given):\n    return {"text": "x" * 300_000}'
_RAISES: Final = "def facts(given):\n    raise ValueError"
_IMPORTS: Final = "import socket"
_LOOPS: Final = "def facts(given):\n    while True:\n        pass"
_ALLOCATES_TOO_MUCH: Final = "def facts(given):\n    return [bytearray(1 << 20) for _ in range(1 << 20)]"
_FORKS: Final = 'def facts(given):\n    return __builtins__["__import__"].__globals__["os"].fork()'

_KINDS: Final = (
    # How it is called, how often among a hundred calls, and the code of its failure.
    (adapter("kind", KIND), 60, None),
    (adapter("allocates", _ALLOCATES), 6, None),
    (adapter("raises", _RAISES), 12, FAILED),
    (adapter("imports", _IMPORTS), 8, DENIED),
    (adapter("writes", _WRITES, output_bytes=1000), 6, INVALID),
    (adapter("forks", _FORKS), 5, DENIED),
    (adapter("allocates_too_much", _ALLOCATES_TOO_MUCH), 2, FAILED),
    (adapter("loops", _LOOPS, timeout_ms=30), 1, TIMEOUT),
)


@pytest.mark.parametrize("beyond_baseline", [True, False], ids=["all measures", "the baseline alone"])
def test_many_calls_leave_no_process_and_no_descriptor_and_no_memory(beyond_baseline: bool) -> None:
    mixture = [(called, code) for called, share, code in _KINDS for _ in range(share)]
    assert len(mixture) == 100
    workers = Workers([called for called, _, _ in _KINDS], beyond_baseline=beyond_baseline)

    def call(number: int) -> tuple[str, str | None, str | None]:
        # 37 has no divisor in common with 100, so that every kind comes among any hundred calls.
        called, code = mixture[number * 37 % 100]
        try:
            assert facts(workers, called, KIND_GIVEN) == KIND_FACTS
        except AdapterFailed as failure:
            return called.adapter_id, code, failure.code
        return called.adapter_id, code, None

    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            # What a process takes at its first calls stays with it.
            warm = list(pool.map(call, range(100)))
            running = zygotes(workers)
            # What other tests left to be collected would be closed at any moment.
            gc.collect()
            assert _is_idle(workers)
            before, memory = _descriptors(running), resident_bytes(running)
            ends = list(pool.map(call, range(_CALLS)))
            assert _is_idle(workers)
            after, grown = _descriptors(running), resident_bytes(running) - memory
    finally:
        workers.close()

    wrong = Counter((name, code) for name, expected, code in warm + ends if code != expected)
    assert wrong == {}
    assert Counter(after) - Counter(before) == Counter()
    assert grown < _SPARE_BYTES
    assert eventually(lambda: all(parent_of(pid) is None for pid in running))


def _is_idle(workers: Workers) -> bool:
    """Whether a zygote comes to have nothing to look after: no worker, and no socket but the one it is called by."""

    def has_one_socket() -> bool:
        return sum(target.startswith("socket:") for target in descriptors(zygotes(workers)[-1])) <= 1

    return has_no_workers(workers) and eventually(has_one_socket)


def _descriptors(zygote: list[int]) -> list[tuple[int, str]]:
    """What this process and a zygote have open, each with the process that has it."""
    return [(pid, target) for pid in (os.getpid(), *zygote) for target in descriptors(pid)]
