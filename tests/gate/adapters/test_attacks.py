"""Attacks of adapters, in every setting, and what they have to find: nothing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from gate.adapters.manifest import Adapter
from gate.adapters.worker import Workers
from gate.errors import AdapterFailed
from tests.gate.adapters.attacks import (
    ATTACKS,
    DENIED,
    ROUTES,
    SECRET_NAME,
    Grounds,
    Outcome,
    Variant,
    field_of,
    reached,
    variants,
)
from tests.gate.adapters.support import adapter, eventually, facts, workers_of
from tests.support.torture import size

pytestmark = pytest.mark.heavy

_ROOT: Final = Path(__file__).parents[3]
_NOBODY: Final = 65534
_VARIANTS: Final = variants()

_DIFFERS: Final = {
    "an address": 'return {"found": repr(object())}',
    "a hash by address": 'return {"found": [hash(object), hash(None), hash(len)]}',
    "what the kernel drew for the zygote": "libc.getauxval.restype = ctypes.c_void_p\n"
    'return {"found": ctypes.string_at(libc.getauxval(25), 16).hex()}',
    "the numbers of processes": "frame = sys._getframe()\nfound = []\nwhile frame is not None:\n"
    '    found.append([it for name, it in frame.f_locals.items() if name == "pid"])\n    frame = frame.f_back\n'
    'return {"found": found}',
}
"""What is no clock and no source of random numbers, and could still make the facts of equal inputs differ."""

_OVERDUE: Final = """
frame = sys._getframe()
while not hasattr(frame.f_locals.get("self"), "_calls"):
    frame = frame.f_back
return {"time": [other.overdue for other in frame.f_locals["self"]._calls.values()]}
"""

_HARMLESS: Final = (
    "TCP sockets", "UDP sockets", "UNIX sockets", "DNS", "file read", "file write", "environment", "exec", "signals",
    "clock", "randomness", "ctypes",
)  # fmt: skip
"""Attacks whose first variant does nothing but what it is there to show."""

_LOOSE: Final = """
import json, os, sys
from gate.adapters import zygote
source, given = json.load(sys.stdin)
names = {"__builtins__": zygote._builtins(sys.modules, []), "__name__": "adapter"}
exec(source, names)
print(json.dumps(names["facts"](given)))
"""

Attack = Callable[[Variant], Outcome]


@pytest.fixture(scope="module", params=[True, False], ids=["all measures", "the baseline alone"])
def attack(request: pytest.FixtureRequest) -> Iterator[Attack]:
    """What attacks, with all measures and with the baseline alone."""
    with field_of(_VARIANTS, beyond_baseline=request.param) as made:
        yield made


@pytest.mark.parametrize("name", [known.name for known in ATTACKS])
def test_no_variant_of_an_attack_escapes_or_makes_facts_or_harms_the_next_call(attack: Attack, name: str) -> None:
    outcomes = [attack(variant) for variant in _VARIANTS if variant.attack == name]
    assert len(outcomes) >= 6
    _holds(outcomes)


def test_no_attack_of_an_ordinary_user_escapes() -> None:
    # In the short form the two settings share the variants. The user who runs the tests tries all of them in both.
    run = _as_ordinary_user([sys.executable, "-B", "-m", "tests.gate.adapters.attacks", *size(["shared"], [])])
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["user"] != 0
    assert [setting["beyond_baseline"] for setting in report["settings"]] == [True, False]
    for number, setting in enumerate(report["settings"]):
        assert setting["reason"] is None
        outcomes = [Outcome(**outcome) for outcome in setting["outcomes"]]
        expected = size(_VARIANTS[number::2], _VARIANTS)
        assert [(it.attack, it.variant) for it in outcomes] == [(it.attack, it.name) for it in expected]
        # Each attack is among them.
        assert {it.attack for it in outcomes} == {it.name for it in ATTACKS}
        _holds(outcomes)


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_that_the_attacks_take_leads_to_the_real_modules(route: str) -> None:
    # Otherwise they would fail at the first step, and show nothing of what holds them.
    called = adapter("route", reached(route, 'return {"page": resource.getpagesize(), "null": libc.atoi(b"7")}'))
    workers = Workers([called])
    try:
        assert facts(workers, called) == {"page": os.sysconf("SC_PAGESIZE"), "null": 7}
    finally:
        workers.close()


@pytest.mark.parametrize("name", _HARMLESS)
def test_an_attack_gets_what_it_wants_where_nothing_holds_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise it would show nothing that it fails in a worker.
    monkeypatch.setenv(SECRET_NAME, "x")
    source = reached("import", next(iter(next(known for known in ATTACKS if known.name == name).bodies.values())))
    with Grounds(tmp_path) as grounds:
        told = json.dumps([source, json.loads(grounds.asked())])
        run = subprocess.run([sys.executable, "-c", _LOOSE], cwd=_ROOT, input=told, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        traces = grounds.traces()
        assert run.stdout or traces
        assert bool(traces) == (name in ("TCP sockets", "UDP sockets", "UNIX sockets", "file write", "exec"))


def test_every_system_call_that_computing_does_not_need_ends_the_worker() -> None:
    # Those that the filter lets through for some arguments have attacks of their own; 335 and 336 are those of probes,
    # which the kernel keeps from any filter and which do nothing but where the kernel itself set one.
    allowed = {"x86_64": {1, 9, 10, 11, 12, 25, 28, 228, 231}, "aarch64": {64, 94, 113, 214, 215, 216, 222, 226, 233}}
    body = 'found = libc.syscall(ctypes.c_long(given["number"]), *[ctypes.c_long(0)] * 6)\nreturn {"found": found}'
    called = adapter("any_call", reached("import", body))
    workers = Workers([called])
    passed = []
    try:
        for number in sorted(set(range(480)) - allowed[os.uname().machine] - {335, 336}):
            try:
                passed.append((number, facts(workers, called, b'{"number":%d}' % number)))
            except AdapterFailed as failure:
                if failure.code != DENIED:
                    passed.append((number, failure.message))
    finally:
        workers.close()
    assert passed == []


@pytest.mark.parametrize("what", _DIFFERS)
def test_nothing_that_an_adapter_finds_in_its_process_differs_between_calls_and_zygotes(what: str) -> None:
    called = adapter("differs", reached("import", _DIFFERS[what]))
    found = {answer for _ in range(3) for answer in _answers(called, 20)}
    assert len(found) == 1


def test_an_adapter_finds_no_time_in_what_the_zygote_keeps_of_another_call() -> None:
    endless = adapter("endless", "def facts(given):\n    while True:\n        pass", timeout_ms=600_000)
    looks = adapter("looks", reached("import", _OVERDUE))
    workers = Workers([endless, looks])
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(workers.run, endless, b"{}")
            assert eventually(lambda: len(workers_of(workers)) == 1)
            try:
                found = facts(workers, looks)
            except AdapterFailed:
                found = {"time": []}
        finally:
            workers.close()
    assert found == {"time": []}


def _answers(called: Adapter, count: int) -> Iterator[str]:
    """What a new zygote answers."""
    workers = Workers([called])
    try:
        for _ in range(count):
            try:
                yield json.dumps(facts(workers, called))
            except AdapterFailed as failure:
                yield failure.message
    finally:
        workers.close()


def _holds(outcomes: list[Outcome]) -> None:
    """Asserts that no attack got anything, that each failed as it should, and that the workers went on."""
    escaped = [(outcome.variant, outcome.escapes) for outcome in outcomes if outcome.escapes]
    assert escaped == [], f"{len(escaped)} of {len(outcomes)} escaped"
    assert [(it.attack, it.variant, it.code, it.message) for it in outcomes if not it.expected] == []
    assert [it.variant for it in outcomes if not it.well_after] == []


def _as_ordinary_user(command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command run from the project's folder, by a user who is not root.

    Where this is root, its files may lie in folders that nobody else may enter. Those are replaced, for the command
    alone, by folders that hold what it needs and nothing else.
    """
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    if os.geteuid() != 0:
        return subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)
    if missing := [tool for tool in ("unshare", "mount", "setpriv", "sh") if shutil.which(tool) is None]:
        pytest.skip(f"root can run nothing as another user here, without {', '.join(missing)}")
    needed = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), _ROOT, Path(sysconfig.get_path("stdlib"))}
    script = ["set -e"]
    for number, closed in enumerate(sorted({it for path in needed if (it := _closed_ancestor(path)) is not None})):
        opened = f"$OPENED/{number}"
        script.append(f"mkdir -m 755 {opened}")
        for path in sorted(needed):
            if path.is_relative_to(closed):
                place = f"{opened}/{shlex.quote(str(path.relative_to(closed)))}"
                script += [f"mkdir -p {place}", f"mount --bind {shlex.quote(str(path))} {place}"]
        script.append(f"mount --rbind {opened} {shlex.quote(str(closed))}")
    script.append(f"cd {shlex.quote(str(_ROOT))}")
    user = f"--reuid={_NOBODY} --regid={_NOBODY} --clear-groups"
    script.append(f"exec setpriv {user} -- {shlex.join(command)}")
    # The folders are made in a file system of that namespace, and end with it.
    opening = "mount -t tmpfs -o mode=755 tmpfs /mnt && OPENED=/mnt && umask 022"
    inside = ["unshare", "--mount", "sh", "-c", "\n".join([opening, *script])]
    if (
        tried := subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    ).returncode:
        pytest.skip(f"root may not make a mount namespace here, so that no other user can run this: {tried.stderr}")
    return subprocess.run(inside, env=environment, capture_output=True, text=True, check=False)


def _closed_ancestor(path: Path) -> Path | None:
    """The first folder on the way to a path that others may not enter."""
    on_the_way = [*reversed(path.parents), path]
    return next((folder for folder in on_the_way if not folder.stat().st_mode & 0o001), None)
