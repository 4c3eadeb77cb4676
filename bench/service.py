"""POST /api/decide over HTTP, with signatures and a durable ledger, beside a bare JSON route under the same server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from api.cli import serve
from api.cli.options import instance_at
from bench.load import Client, Load
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.samples import ROOT, decide_request
from bench.servers import Server, ServerFailed, connect_evenly, environment, free_port, running
from bench.tables import table

WORKERS: Final = 2
CONNECTIONS: Final = 8

_ROUNDS: Final = 7
_SECONDS: Final = 4.0
_QUICK_ROUNDS: Final = 5
_QUICK_SECONDS: Final = 0.5
_WARM_UP_SECONDS: Final = 1.0

_SYNCS: Final = 200
_SYNC_BYTES: Final = 4096

_PATH: Final = "/api/decide"
_SCOPE: Final = "bench"
_GATE: Final = Path(sys.executable).with_name("gate")
_BLOCKING_THREADS: Final = serve._THREADS


def run(*, quick: bool) -> dict[str, Any]:
    """Puts both services under the same load in turn.

    Raises:
        Mismatch: An answer was wrong, or the ledger does not hold one record for each answer.
    """
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    with scratch() as directory:
        home = directory / "home"
        sync_ms = _sync_ms(directory)
        key = _create_key(home)
        with _bare(directory) as bare, _gate(home, directory) as gate:
            loads, answers = _load({"bare": bare, "decide": gate}, key, rounds, seconds)
            resident_mb = [round(size, 1) for size in gate.resident_mb()]
        records = _records(home)
    if records != answers["decide"]:
        raise Mismatch(f"{answers['decide']} requests were answered with 200, and the chain holds {records} records.")
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "blocking_threads": _BLOCKING_THREADS,
        "rounds": rounds,
        "round_s": seconds,
        "body_bytes": len(decide_request()),
        "records": records,
        "bare": _summary(loads["bare"]),
        "decide": _summary(loads["decide"]),
        "decide/bare": ratio(_rates(loads["decide"]), _rates(loads["bare"])).to_dict(),
        "disk_sync": sync_ms.to_dict("ms"),
        "worker_resident_mb": resident_mb,
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    rows: list[list[str]] = []
    for subject in ("bare", "decide"):
        taken = result[subject]
        rows.append([f"{subject}, requests/s", *_cells(taken["rate"], "_per_s", ".0f")])
        rows.append([f"{subject}, p50 ms", *_cells(taken["p50"], "_ms")])
        rows.append([f"{subject}, p99 ms", *_cells(taken["p99"], "_ms")])
    rows.append(["decide/bare, requests/s", *_cells(result["decide/bare"], "", ".3f")])
    rows.append(["disk sync of 4 KB, ms", *_cells(result["disk_sync"], "_ms", ".3f")])
    by_round = [
        [str(index + 1), *(f"{result[subject]['rounds_per_s'][index]:.0f}" for subject in ("bare", "decide"))]
        for index in range(result["rounds"])
    ]
    memory = " and ".join(f"{size:.0f}" for size in result["worker_resident_mb"])
    return "\n\n".join(
        [
            f"Service: {result['workers']} workers, {result['blocking_threads']} threads each, {result['connections']} "
            f"connections, {result['body_bytes']} bytes a request; {result['records']} records, one for each answer",
            table(["", "median", "min..max"], rows),
            table(["requests/s in round", "bare", "decide"], by_round),
            f"Memory of the workers at the end: {memory} MB",
        ]
    )


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory on the disk that the project lies on, deleted afterwards: /tmp may be memory, which syncs nothing."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=build) as directory:
        yield Path(directory)


def _load(
    servers: Mapping[str, Server], key: str, rounds: int, seconds: float
) -> tuple[dict[str, list[Load]], dict[str, int]]:
    clients: dict[str, Client] = {}
    try:
        for name, server in servers.items():
            connections = connect_evenly(server, CONNECTIONS, WORKERS)
            clients[name] = Client(connections, _PATH, [f"x-api-key: {key}"], decide_request())
        warm_up = {name: client.run(_WARM_UP_SECONDS) for name, client in clients.items()}
        loads = alternate({name: _round(client, seconds) for name, client in clients.items()}, rounds)
    finally:
        for client in clients.values():
            client.close()
    answers = {name: warm_up[name].answers + sum(load.answers for load in loads[name]) for name in clients}
    return loads, answers


def _round(client: Client, seconds: float) -> Callable[[], Load]:
    return lambda: client.run(seconds)


@contextmanager
def _bare(directory: Path) -> Iterator[Server]:
    port = free_port()
    arguments = [str(port), str(WORKERS), str(_BLOCKING_THREADS)]
    with running([sys.executable, "-m", "bench.bare", *arguments], port, directory / "bare.log") as server:
        yield server


@contextmanager
def _gate(home: Path, directory: Path) -> Iterator[Server]:
    port = free_port()
    options = ["--home", str(home), "--port", str(port), "--workers", str(WORKERS)]
    with running([str(_GATE), "serve", *options], port, directory / "gate.log") as server:
        yield server


def _create_key(home: Path) -> str:
    options = ["--scope", _SCOPE, "--plan", "unlimited", "--json", "--home", str(home)]
    made = subprocess.run([_GATE, "keys", "create", *options], capture_output=True, cwd=ROOT, env=environment())
    if made.returncode != 0:
        raise ServerFailed(f"No key could be made:\n{made.stderr.decode(errors='replace')}")
    return str(orjson.loads(made.stdout)["key"])


def _records(home: Path) -> int:
    with instance_at(home, f"sqlite:///{home / 'ledger.db'}") as instance:
        scope = instance.ledger.directory.scope(_SCOPE)
        size = instance.ledger.entries.head(scope.scope_id).size
        counted = sum(1 for _ in instance.ledger.entries.walk(scope.scope_id, up_to=size))
    if counted != size:
        raise Mismatch(f"The chain's head says {size} records and {counted} are there.")
    return counted


def _sync_ms(directory: Path) -> Spread:
    descriptor = os.open(directory / "sync", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with closing(os.fdopen(descriptor, "wb", buffering=0)) as file:
        return spread([_timed_sync_ms(file.fileno()) for _ in range(_SYNCS)])


def _timed_sync_ms(descriptor: int) -> float:
    started = time.perf_counter()
    os.write(descriptor, bytes(_SYNC_BYTES))
    os.fdatasync(descriptor)
    return (time.perf_counter() - started) * 1000


def _rates(loads: Sequence[Load]) -> list[float]:
    return [load.per_second for load in loads]


def _summary(loads: Sequence[Load]) -> dict[str, Any]:
    return {
        "rate": spread(_rates(loads)).to_dict("per_s"),
        "rounds_per_s": [round(rate, 1) for rate in _rates(loads)],
        "p50": spread([load.latency_ms(50) for load in loads]).to_dict("ms"),
        "p99": spread([load.latency_ms(99) for load in loads]).to_dict("ms"),
    }


def _cells(figures: Mapping[str, float], suffix: str, form: str = ".2f") -> list[str]:
    return Spread(*(figures[f"{name}{suffix}"] for name in ("median", "min", "max"))).cells(form)
