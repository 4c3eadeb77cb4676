"""The zygote when it is killed, stopped or left alone, and what it brings along."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from gate.adapters import containment, zygote
from gate.adapters.manifest import Adapter
from gate.adapters.worker import Measures, Workers
from gate.encoding.canonical import canonical
from gate.errors import AdapterFailed
from tests.gate.adapters.attacks import FAILED, TIMEOUT
from tests.gate.adapters.support import (
    KIND,
    KIND_FACTS,
    KIND_GIVEN,
    adapter,
    descendants,
    descriptors,
    eventually,
    facts,
    has_no_workers,
    parent_of,
    refusing,
    workers_of,
    zygotes,
)

pytestmark = pytest.mark.heavy

_ROOT: Final = Path(__file__).parents[3]
_SECRET: Final = "a-secret-of-the-process-that-starts-it"
_KIND: Final = adapter("kind", KIND)
_SLOW: Final = adapter("slow", 'def facts(given):\n    return {"sum": sum(number % 7 for number in range(3_000_000))}')
_ENDLESS: Final = adapter("endless", "def facts(given):\n    while True:\n        pass", timeout_ms=600_000)
_SHORT: Final = adapter("short", KIND, timeout_ms=200)
_ORDERED: Final = adapter(
    "ordered", 'def facts(given):\n    return {"names": list(set(given["names"])), "hash": hash(given["names"][0])}'
)
_TYPES: Final = adapter(
    "types", "def facts(given):\n    return {name: type(value).__name__ for name, value in given.items()}"
)
_SPOILS: Final = adapter(
    "spoils",
    'kept = []\ndef facts(given):\n    import re, typing\n    found = [getattr(re, "spoilt", 0), len(kept)]\n'
    "    re.spoilt = 1\n    kept.append(given)\n"
    '    names = __builtins__["__import__"].__globals__\n    names["spoilt"] = names.get("spoilt", 0) + 1\n'
    '    names["builtins"].sum = None\n    names["MODULES"] = ()\n'
    '    return {"found": [*found, names["spoilt"]]}',
)
_ALL: Final = (_KIND, _SLOW, _ENDLESS, _SHORT, _ORDERED, _TYPES, _SPOILS)

_OWNER: Final = """
import sys
from tests.gate.adapters.test_zygote import _ALL, _ENDLESS, Workers
workers = Workers(_ALL, beyond_baseline=sys.argv[1] == "True")
workers.measures()
print(workers.process_id(), flush=True)
workers.run(_ENDLESS, b"{}")
"""

_MEASURES: Final = """
from tests.gate.adapters.test_zygote import _ALL, _KIND, KIND_GIVEN, Workers
workers = Workers(_ALL)
workers.run(_KIND, KIND_GIVEN)
print(*workers.measures().in_force)
workers.close()
"""

_FORKS: Final = """
import os
from tests.gate.adapters.test_zygote import _ALL, _KIND, KIND_GIVEN, Workers
workers = Workers(_ALL)
workers.run(_KIND, KIND_GIVEN)
own = workers.process_id()
child = os.fork()
if child == 0:
    workers.run(_KIND, KIND_GIVEN)
    apart = workers.process_id() != own
    workers.close()
    os._exit(0 if apart else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
workers.run(_KIND, KIND_GIVEN)
assert workers.process_id() == own
# As another thread may hold it at that moment, which is not there in the copy.
workers._lock.acquire()
child = os.fork()
if child == 0:
    workers.run(_KIND, KIND_GIVEN)
    workers.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.fixture(params=[True, False], ids=["all measures", "the baseline alone"])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Workers with all measures, and with the baseline alone."""
    made = Workers(_ALL, beyond_baseline=request.param)
    try:
        yield made
    finally:
        made.close()


# Without a process namespace both are the same process.
_EACH: Final = pytest.mark.parametrize("which", [0, -1], ids=["outer", "inner"])


@_EACH
def test_a_zygote_killed_before_the_first_call_and_between_calls_is_started_again(workers: Workers, which: int) -> None:
    for _ in range(3):
        running = zygotes(workers)
        os.kill(running[which], signal.SIGKILL)
        assert _gone(running)
        assert facts(workers, _KIND, KIND_GIVEN) == KIND_FACTS
        assert workers.process_id() not in running


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Workers whose zygotes hang at their start, for as long as `sys.executable` is what the fixture makes of it."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    made = Workers(_ALL)
    try:
        yield made
    finally:
        made.close()


def test_a_start_that_hangs_is_told_and_waited_for_by_calls_alone(
    hanging: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging.start()
    assert hanging.measures(wait=0) == Measures((), "the process that forks them is starting", known=False)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(_code, hanging, _KIND) for _ in range(2)]
        assert hanging.measures(wait=0) == Measures((), "the process that forks them is starting", known=False)
        assert not any(call.done() for call in calls)
        process = hanging.process_id()
        assert process is not None
        monkeypatch.undo()
        os.kill(process, signal.SIGKILL)
        assert [call.result() for call in calls] == [FAILED] * 2
    # It may have been killed, as it was: another is tried at once.
    assert facts(hanging, _KIND, KIND_GIVEN) == KIND_FACTS


def test_a_start_that_fails_is_tried_again_at_once_and_then_not_for_a_while(hanging: Workers) -> None:
    hanging.start()
    first = hanging.process_id()
    assert first is not None
    os.kill(first, signal.SIGKILL)
    reason = hanging.measures().reason
    assert reason == "what forks them ended at its start"
    # While the second hangs, whoever asks is told of the first.
    assert hanging.measures(wait=0) == Measures((), reason, known=False)
    second = hanging.process_id()
    assert second not in (None, first)
    os.kill(second or 0, signal.SIGKILL)
    assert hanging.measures().reason == reason
    with pytest.raises(AdapterFailed, match=reason):
        hanging.run(_KIND, KIND_GIVEN)
    assert hanging.process_id() is None


def test_one_that_does_not_read_what_it_is_told_is_ended(hanging: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.adapters.worker._START_SECONDS", 0.3)
    # More than the pipe to it holds.
    made = Workers([adapter("large", f"# {'x' * 200_000}{KIND}")])
    try:
        assert made.measures().reason == "the process that forks them was not ready within 0.3 seconds"
    finally:
        made.close()


def test_nothing_is_called_after_the_end(workers: Workers) -> None:
    assert facts(workers, _KIND, KIND_GIVEN) == KIND_FACTS
    workers.close()
    assert _code(workers, _KIND) == FAILED
    assert workers.process_id() is None


def test_close_ends_what_hangs_at_its_start(hanging: Workers) -> None:
    hanging.start()
    process = hanging.process_id()
    assert process is not None
    hanging.close()
    assert _gone([process])


@_EACH
def test_calls_under_way_when_the_zygote_is_killed_fail_once_each_and_the_next_succeeds(
    workers: Workers, which: int
) -> None:
    running = zygotes(workers)
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(_code, workers, called) for called in (_ENDLESS, _ENDLESS, _ENDLESS)]
        assert eventually(lambda: len(workers_of(workers)) == 3)
        under_way = workers_of(workers)
        os.kill(running[which], signal.SIGKILL)
        assert [call.result() for call in calls] == [FAILED] * 3
    # At once: that it has gone is known from the calls that failed.
    assert facts(workers, _KIND, KIND_GIVEN) == KIND_FACTS
    assert _gone([*running, *under_way])


def test_zygotes_killed_again_and_again_under_load_cost_only_calls_that_were_under_way(workers: Workers) -> None:
    with ThreadPoolExecutor(3) as pool:
        for _ in range(4):
            running = zygotes(workers)
            calls = [pool.submit(_code, workers, _SLOW) for _ in range(3)]
            assert eventually(lambda: bool(_workers_of_any(running)) or all(call.done() for call in calls))  # noqa: B023
            os.kill(running[-1], signal.SIGKILL)
            assert {call.result() for call in calls} <= {None, FAILED}
            assert _gone(running)
            assert facts(workers, _KIND, KIND_GIVEN) == KIND_FACTS
    assert has_no_workers(workers)


def test_a_worker_that_is_killed_fails_its_own_call_alone(workers: Workers) -> None:
    running = zygotes(workers)
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(_code, workers, _ENDLESS)
        assert eventually(lambda: len(workers_of(workers)) == 1)
        other = pool.submit(facts, workers, _KIND, KIND_GIVEN)
        assert other.result() == KIND_FACTS
        os.kill(workers_of(workers)[0], signal.SIGKILL)
        assert call.result() == FAILED
    assert facts(workers, _KIND, KIND_GIVEN) == KIND_FACTS
    assert zygotes(workers) == running


def test_a_stopped_zygote_is_a_timeout_and_another_takes_its_place(workers: Workers) -> None:
    running = zygotes(workers)
    os.kill(running[-1], signal.SIGSTOP)
    assert _code(workers, _SHORT) == TIMEOUT
    # At once, for it is known that it has to be replaced.
    assert facts(workers, _KIND, KIND_GIVEN) == KIND_FACTS
    assert _gone(running)


@pytest.mark.parametrize("beyond_baseline", [True, False], ids=["all measures", "the baseline alone"])
def test_nothing_outlives_the_process_that_owns_the_workers(beyond_baseline: bool) -> None:
    command = [sys.executable, "-c", _OWNER, str(beyond_baseline)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        outer = int(owner.stdout.readline())
        # The worker, and the inner process where there is one.
        count = 1 + _separates(beyond_baseline)
        assert eventually(lambda: len(descendants(outer)) == count)
        running = [outer, *descendants(outer)]
        owner.kill()
        assert _gone(running)


@pytest.mark.parametrize(
    ("call", "beyond"),
    [("personality", {"addresses_fixed"}), ("unshare", {"network_namespace", "ipc_namespace", "process_namespace"})],
)
def test_what_the_machine_refuses_is_not_said_to_be_in_force_and_adapters_run(call: str, beyond: set[str]) -> None:
    command = refusing(call, sys.executable, "-c", _MEASURES)
    run = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    in_force = set(run.stdout.split())
    assert set(containment.BASELINE) <= in_force
    assert not beyond & in_force


def test_a_forked_copy_of_the_owner_starts_a_zygote_of_its_own() -> None:
    run = subprocess.run([sys.executable, "-c", _FORKS], cwd=_ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_close_ends_the_zygote_and_its_workers(workers: Workers) -> None:
    running = zygotes(workers)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(_code, workers, _ENDLESS)
        assert eventually(lambda: len(workers_of(workers)) == 1)
        running += workers_of(workers)
        workers.close()
        assert call.result() == FAILED
    assert _gone(running)


def test_the_zygote_has_no_environment_and_no_descriptor_of_the_process_that_starts_it(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATE_OWNER_SECRET", _SECRET)
    file = tmp_path / "held"
    file.write_text(_SECRET)
    held = os.open(file, os.O_RDWR)
    os.set_inheritable(held, True)
    try:
        running = zygotes(workers)
        for pid in running:
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
            except PermissionError:
                # Not even the user who started it may look.
                assert "not_dumpable" in workers.measures().in_force
                continue
            names = {entry.partition(b"=")[0] for entry in environment.split(b"\0") if entry}
            assert names <= {b"PYTHONHASHSEED", b"PYTHONPATH"}
            assert _SECRET.encode() not in environment
            assert str(file) not in descriptors(pid)
            assert not any(target.startswith(str(tmp_path)) for target in descriptors(pid))
    finally:
        os.close(held)


def test_a_worker_has_one_descriptor_and_it_is_no_other_worker_s(workers: Workers) -> None:
    zygotes(workers)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(_code, workers, _ENDLESS) for _ in range(2)]
        assert eventually(lambda: len(workers_of(workers)) == 2)
        if os.geteuid() == 0 or "not_dumpable" not in workers.measures().in_force:
            # It has more until it has read its input.
            assert eventually(lambda: all(len(descriptors(pid)) == 1 for pid in workers_of(workers)))
            held = [descriptors(pid) for pid in workers_of(workers)]
            assert all(target.startswith("pipe:") for (target,) in held)
            assert held[0] != held[1]
        workers.close()
        assert [call.result() for call in calls] == [FAILED] * 2


def test_what_an_adapter_changes_in_its_process_is_not_there_in_the_next_call(workers: Workers) -> None:
    assert [facts(workers, _SPOILS) for _ in range(3)] == [{"found": [0, 0, 1]}] * 3
    assert facts(workers, _KIND, KIND_GIVEN) == KIND_FACTS


def test_an_order_that_depends_on_hashes_is_the_same_in_every_zygote() -> None:
    given = canonical({"names": [f"name {number}" for number in range(200)]})
    found = set()
    for beyond_baseline in (True, True, True, False):
        made = Workers(_ALL, beyond_baseline=beyond_baseline)
        try:
            found.add(made.run(_ORDERED, given))
        finally:
            made.close()
    assert len(found) == 1


def test_numbers_arrive_as_canonical_json_has_them(workers: Workers) -> None:
    given = canonical({"whole": 1.0, "large": 1e15, "broken": 1.5, "number": 7, "true": True, "nothing": None})
    assert facts(workers, _TYPES, given) == {
        "whole": "int",
        "large": "int",
        "broken": "float",
        "number": "int",
        "true": "bool",
        "nothing": "NoneType",
    }


@pytest.mark.parametrize("module", [zygote, containment], ids=["zygote", "containment"])
def test_what_runs_in_the_zygote_imports_the_standard_library_alone(module: object) -> None:
    file = Path(str(vars(module)["__file__"]))
    imported = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module))
    own = {"gate.adapters.zygote", "gate.adapters.containment"}
    assert {name for name in imported - own if name.partition(".")[0] not in sys.stdlib_module_names} == set()
    # What comes along with it, as the import of any module of a package does.
    for package in ("gate", "gate.adapters"):
        tree = ast.parse(Path(str(vars(sys.modules[package])["__file__"])).read_text())
        assert [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)] == []


def _workers_of_any(running: list[int]) -> list[int]:
    """The descendants of a zygote, whether it still runs or not, that are none of its own processes."""
    return [pid for pid in descendants(running[0]) if pid not in running]


def _separates(beyond_baseline: bool) -> bool:
    """Whether there is an inner process, in that setting on this machine."""
    made = Workers(_ALL, beyond_baseline=beyond_baseline)
    try:
        return "process_namespace" in made.measures().in_force
    finally:
        made.close()


def _code(workers: Workers, called: Adapter) -> str | None:
    try:
        json.loads(workers.run(called, KIND_GIVEN))
    except AdapterFailed as failure:
        return failure.code
    return None


def _gone(pids: list[int]) -> bool:
    """Whether processes come to their end."""
    return eventually(lambda: all(parent_of(pid) is None for pid in pids))
