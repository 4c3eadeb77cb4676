"""Trusted adapters: a call in a contained worker and a bare fork, decisions over HTTP, and the memory of both.

The fork is of a process with the zygote's modules. It ends at once, and the parent waits for it: a separate process
cannot cost less. All calls are made in turn, round by round. `baseline` is a call with only the baseline measures of
`gate/adapters/containment.py`. `4_threads` are calls of four threads that share the workers, as in the service. Over
HTTP, one service decides with the same rulebook: with facts from the request (`direct`), and with facts from an
adapter.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import orjson

from bench.disk import scratch, sync_ms
from bench.lakes import goal_lines, judged
from bench.measure import Mismatch, Spread, alternate, percentile, ratio, spread
from bench.samples import ROOT
from bench.servers import Server, children_of
from bench.subjects import (
    BLOCKING_THREADS,
    CONNECTIONS,
    WORKERS,
    Subject,
    create_key,
    gate,
    rates,
    require_records,
    rounds_table_rows,
    sqlite_url,
    summary,
    summary_rows,
    under_load,
)
from bench.tables import table
from gate.adapters.manifest import Adapter
from gate.adapters.registry import registered
from gate.adapters.worker import Workers
from gate.encoding.canonical import canonical
from gate.errors import AdapterFailed

MEDIAN_BAR_MS: Final = 5.0
"""What a call is to take at most, at the median."""

P99_BAR_MS: Final = 25.0
"""What all calls but one in a hundred are to take at most."""

_ROUNDS: Final = 10
_CALLS: Final = 220
_SERVICE_ROUNDS: Final = 7
_SECONDS: Final = 3.0
_MEMORY_CALLS: Final = 1000
_QUICK_ROUNDS: Final = 3
_QUICK_CALLS: Final = 40
_QUICK_SERVICE_ROUNDS: Final = 3
_QUICK_SECONDS: Final = 0.5
_QUICK_MEMORY_CALLS: Final = 100
_UNTIMED: Final = 10
_THREADS: Final = 4
_LOOK_SECONDS: Final = 0.002
_KIB_PER_MIB: Final = 1024

_FLOOR: Final = "fork"
_THREADED: Final = f"{_THREADS}_threads"
_WAYS: Final = ("direct", "adapter")

_GIVEN: Final[Mapping[str, Mapping[str, Any]]] = {
    "solana_execution_gate@1.0.0": {
        "sol_amount": 12.5,
        "risk_level": "medium",
        "evidence_level": "strong",
        "quorum_signed": True,
        "budget_within_policy": True,
        "recipient_verified": True,
    },
    "refund_facts@1.0.0": {
        "as_of": "2026-09-03",
        "order": {
            "order_id": "order-1",
            "placed_on": "2026-08-20",
            "lines": [
                {"line_id": "line-1", "paid_minor": 4900, "refunded_minor": 0, "final_sale": False, "returned": True},
                {"line_id": "line-2"},
            ],
            "customer_refunds_on": ["2025-11-02"],
        },
        "payment": {
            "order_id": "order-1",
            "currency": "EUR",
            "captured_minor": 12900,
            "refunded_minor": 0,
            "method_id": "card-1",
            "fraud_flag": False,
            "dispute_statuses": ["won"],
        },
        "claim": {
            "amount_minor": 4900,
            "reason": "item_defective",
            "line_ids": ["line-1"],
            "payout_method_id": "card-1",
            "evidence": ["photo"],
        },
    },
}
_MADE: Final[Mapping[str, Mapping[str, Any]]] = {
    "solana_execution_gate@1.0.0": {
        **_GIVEN["solana_execution_gate@1.0.0"],
        "decision_score": 92,
        "decision_edge_points": 35,
        "confidence_pct": 94,
    },
    "refund_facts@1.0.0": {
        "amount": 49.0,
        "currency": "EUR",
        "share_of_payment_percent": 37.99,
        "exceeds_claimed_lines": False,
        "payment_of_order": True,
        "days_since_purchase": 14,
        "reason": "item_defective",
        "final_sale": False,
        "fraud_flag": False,
        "chargeback_open": False,
        "chargeback_lost": False,
        "prior_refunds_12_months": 1,
        "to_original_payment_method": True,
        "evidence": ["photo"],
        "item_returned": True,
        "some_item_returned": True,
    },
}
_OVER_HTTP: Final = "refund_facts@1.0.0"
_RULEBOOK: Final = ROOT / "data" / "rulebooks" / "refund_policy.json"
_OUTCOME: Final = ("APPROVE", "SELLER_AT_FAULT")

# As the zygote: its modules, and nothing that is collected.
_FORKS: Final = """
import gc, json, os, sys, time
from gate.adapters import zygote
for name in zygote.MODULES:
    __import__(name)
gc.collect()
gc.disable()
gc.freeze()
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        started = time.perf_counter()
        if (pid := os.fork()) == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        times.append((time.perf_counter() - started) * 1000)
    print(json.dumps(times), flush=True)
"""

# The worker's memory can be looked at while it is at its most: the facts are made, and it goes on until it is ended.
_STAYS: Final = b"""

made_of = facts


def facts(given):
    made = made_of(given)
    while made:
        pass
"""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Calls of one round.

    Attributes:
        times_ms: The time of each.
        seconds: How long all of them took.
    """

    times_ms: Sequence[float]
    seconds: float

    @property
    def median_ms(self) -> float:
        """The time of a call at the median."""
        return percentile(sorted(self.times_ms), 50)

    @property
    def per_second(self) -> float:
        """The calls a second."""
        return len(self.times_ms) / self.seconds


def run(*, quick: bool) -> dict[str, Any]:
    """Times calls and the bare fork, measures their memory, and puts a service under load with both.

    Raises:
        AdapterFailed: No worker can run on this machine.
        Mismatch: An answer was wrong, or the ledger does not hold one record for each answer.
    """
    rounds, calls, memory_calls = (
        (_QUICK_ROUNDS, _QUICK_CALLS, _QUICK_MEMORY_CALLS) if quick else (_ROUNDS, _CALLS, _MEMORY_CALLS)
    )
    calls_result = _time_calls(rounds, calls)
    return {
        **calls_result,
        "memory": _memory(memory_calls),
        "service": _service(*((_QUICK_SERVICE_ROUNDS, _QUICK_SECONDS) if quick else (_SERVICE_ROUNDS, _SECONDS))),
        "goals": list(_goals(calls_result["calls"])),
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    service, memory = result["service"], result["memory"]
    ways = {name: service[name] for name in _WAYS}
    return "\n\n".join(
        [
            f"Calls of adapters: {result['rounds']} rounds of {result['calls_per_round']} calls; in force: "
            f"{', '.join(result['in_force'])}; at the baseline: {', '.join(result['baseline_in_force'])}",
            table(["milliseconds a call", "median", "min..max", "all", "max"], _call_rows(result)),
            table(["ratio, p50, and calls/s", "median", "min..max"], _ratio_rows(result)),
            f"Memory of what forks workers, idle after {memory['calls']:,} calls (and after one), and of a worker",
            table(["MiB", "Rss", "Pss", "private", "after one: Rss", "Pss", "private"], _memory_rows(memory)),
            f"Decides over HTTP: {service['workers']} workers, {service['blocking_threads']} threads each, "
            f"{service['connections']} connections; {service['records']} records, one for each answer",
            table(
                ["", "median", "min..max"],
                [
                    *(row for name, taken in ways.items() for row in summary_rows(name, taken)),
                    ["adapter/direct, requests/s", *Spread.from_dict(service["adapter/direct"]).cells(".3f")],
                    ["disk sync of 4 KB, ms", *Spread.from_dict(service["disk_sync"], "ms").cells(".3f")],
                ],
            ),
            table(["requests/s in round", *ways], rounds_table_rows(ways)),
            goal_lines(result["goals"]),
        ]
    )


def _call_rows(result: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for name, taken in result["calls"].items():
        every = taken["all"]
        rows.append([f"{name}, p50", *Spread.from_dict(taken["p50"], "ms").cells(), f"{every['p50_ms']:.2f}", ""])
        cells = Spread.from_dict(taken["p99"], "ms").cells()
        rows.append([f"{name}, p99", *cells, f"{every['p99_ms']:.2f}", f"{every['max_ms']:.2f}"])
    return rows


def _ratio_rows(result: Mapping[str, Any]) -> list[list[str]]:
    ratios = [[name, *Spread.from_dict(figures).cells()] for name, figures in result["ratios"].items()]
    calls = [
        [f"{name}, calls/s", *Spread.from_dict(taken["rate"], "per_s").cells(".0f")]
        for name, taken in result["calls"].items()
    ]
    return ratios + calls


def _memory_rows(memory: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for where in ("everything", "baseline"):
        for name, after in memory[where]["idle"].items():
            before = memory[where]["after_one_call"][name]
            rows.append([f"{where}: {name} process", *_memory_cells(after), *_memory_cells(before)])
    for name, sizes in memory["worker_peak"].items():
        rows.append([f"worker of {name}, most", *_memory_cells(sizes), "", "", ""])
    return rows


def _memory_cells(sizes: Mapping[str, float | None]) -> list[str]:
    return ["not told" if size is None else f"{size:.1f}" for size in sizes.values()]


def _goals(calls: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in _GIVEN:
        every = calls[name]["all"]
        yield judged(f"{name}, p50", every["p50_ms"], MEDIAN_BAR_MS, unit="ms")
        yield judged(f"{name}, p99", every["p99_ms"], P99_BAR_MS, unit="ms")


def _adapters() -> dict[str, Adapter]:
    """The adapters that are measured, by name."""
    return {adapter.name: adapter for adapter in registered() if adapter.name in _GIVEN}


def _time_calls(rounds: int, calls: int) -> dict[str, Any]:
    with (
        closing(Workers(registered())) as workers,
        closing(Workers(registered(), beyond_baseline=False)) as baseline,
        _forks() as fork,
    ):
        subjects: dict[str, Callable[[], _Batch]] = {_FLOOR: partial(fork, calls)}
        compared = []
        for name, adapter in _adapters().items():
            subjects |= {
                name: partial(_batch, workers, adapter, calls),
                f"{name}_baseline": partial(_batch, baseline, adapter, calls),
                f"{name}_{_THREADED}": partial(_threaded_batch, workers, adapter, calls),
            }
            compared += [(name, _FLOOR), (f"{name}_baseline", _FLOOR), (name, f"{name}_baseline")]
            compared.append((f"{name}_{_THREADED}", name))
        alternate(subjects, 1)
        taken = alternate(subjects, rounds)
        in_force, baseline_in_force = workers.measures().in_force, baseline.measures().in_force
    medians = {name: [batch.median_ms for batch in batches] for name, batches in taken.items()}
    return {
        "rounds": rounds,
        "calls_per_round": calls,
        "threads": _THREADS,
        "in_force": list(in_force),
        "baseline_in_force": list(baseline_in_force),
        "median_bar_ms": MEDIAN_BAR_MS,
        "p99_bar_ms": P99_BAR_MS,
        "calls": {name: _summary(batches) for name, batches in taken.items()},
        "ratios": {f"{over}/{under}": ratio(medians[over], medians[under]).to_dict() for over, under in compared},
    }


def _batch(workers: Workers, adapter: Adapter, calls: int) -> _Batch:
    for _ in range(_UNTIMED):
        _call_ms(workers, adapter)
    started = time.perf_counter()
    times = [_call_ms(workers, adapter) for _ in range(calls)]
    return _Batch(times, time.perf_counter() - started)


def _threaded_batch(workers: Workers, adapter: Adapter, calls: int) -> _Batch:
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda _: _call_ms(workers, adapter), range(_UNTIMED)))
        started = time.perf_counter()
        times = list(pool.map(lambda _: _call_ms(workers, adapter), range(calls)))
        return _Batch(times, time.perf_counter() - started)


def _call_ms(workers: Workers, adapter: Adapter) -> float:
    """The time of one call, from its input to the text of its facts."""
    given = canonical(_GIVEN[adapter.name])
    started = time.perf_counter()
    answer = workers.run(adapter, given)
    took = (time.perf_counter() - started) * 1000
    if orjson.loads(answer) != _MADE[adapter.name]:
        raise Mismatch(f"{adapter.name} makes other facts: {answer[:800]!r}")
    return took


@contextmanager
def _forks() -> Iterator[Callable[[int], _Batch]]:
    """What times so many bare forks, in a process of the zygote's size."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-S", "-s", "-B", "-c", _FORKS],
        env={"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def fork(number: int) -> _Batch:
        if process.stdin is None or process.stdout is None:
            raise Mismatch("What forks has no pipes.")
        process.stdin.write(f"{number + _UNTIMED}\n")
        process.stdin.flush()
        if not (line := process.stdout.readline()):
            raise Mismatch("What forks ended.")
        times = json.loads(line)[_UNTIMED:]
        return _Batch(times, sum(times) / 1000)

    with process:
        try:
            yield fork
        finally:
            process.kill()


def _summary(batches: Sequence[_Batch]) -> dict[str, Any]:
    ordered = [sorted(batch.times_ms) for batch in batches]
    every = sorted(took for times in ordered for took in times)
    return {
        **{
            f"p{percent}": spread([percentile(times, percent) for times in ordered]).to_dict("ms")
            for percent in (50, 99)
        },
        "all": {
            "calls": len(every),
            **{f"p{percent}_ms": round(percentile(every, percent), 4) for percent in (50, 99)},
            "max_ms": round(every[-1], 4),
        },
        "rate": spread([batch.per_second for batch in batches]).to_dict("per_s"),
    }


def _memory(calls: int) -> dict[str, Any]:
    return {
        "calls": calls,
        "everything": _idle_memory(calls, beyond_baseline=True),
        "baseline": _idle_memory(calls, beyond_baseline=False),
        "worker_peak": {name: _worker_peak(adapter) for name, adapter in _adapters().items()},
    }


def _idle_memory(calls: int, *, beyond_baseline: bool) -> dict[str, Any]:
    """The memory of what forks workers, after one call and after so many."""
    with closing(Workers(registered(), beyond_baseline=beyond_baseline)) as workers:
        adapters = list(_adapters().values())
        _call_ms(workers, adapters[0])
        first = {name: _sizes(pid) for name, pid in _zygotes(workers).items()}
        for number in range(calls - 1):
            _call_ms(workers, adapters[number % len(adapters)])
        return {"after_one_call": first, "idle": {name: _sizes(pid) for name, pid in _zygotes(workers).items()}}


def _zygotes(workers: Workers) -> dict[str, int]:
    """The processes of a zygote that runs no worker: the inner, which forks, and the outer, where there is one."""
    outer = workers.process_id()
    if outer is None:
        raise Mismatch("What forks workers ended.")
    if "process_namespace" not in workers.measures().in_force:
        return {"only": outer}
    return {"outer": outer, "inner": children_of(outer)[0]}


def _worker_peak(adapter: Adapter) -> dict[str, float | None]:
    """The most memory that a worker was seen to have until its facts were made."""
    stays = Adapter(adapter.manifest, adapter.source + _STAYS)
    most: dict[str, float | None] = {}
    with closing(Workers([stays])) as workers, ThreadPoolExecutor(1) as pool:
        workers.measures()
        forks = list(_zygotes(workers).values())[-1]
        ended = pool.submit(workers.run, stays, canonical(_GIVEN[adapter.name]))
        while not ended.done():
            for pid in children_of(forks):
                # It ends at any moment.
                with suppress(FileNotFoundError, ProcessLookupError):
                    most = _most(most, _sizes(pid))
            time.sleep(_LOOK_SECONDS)
        error = ended.exception()
    if not isinstance(error, AdapterFailed) or error.code != "TRUSTED_ADAPTER_EXECUTION_TIMEOUT" or not most:
        raise Mismatch(f"A worker of {adapter.name} that was to stay did not.") from error
    return most


def _most(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> dict[str, float | None]:
    return {
        name: max((size for size in (one.get(name), found) if size is not None), default=None)
        for name, found in other.items()
    }


def _sizes(pid: int) -> dict[str, float | None]:
    """What a process has in memory, in MiB: all of it, its share of what it shares, and what is its alone.

    A process that cannot be traced tells the first alone, to whoever is not privileged.

    Raises:
        FileNotFoundError: It ended.
        ProcessLookupError: It ended.
    """
    try:
        told = _kib(Path(f"/proc/{pid}/smaps_rollup"))
    except PermissionError:
        told = {}
    told = told or _kib(Path(f"/proc/{pid}/status"))
    named = {
        "rss_mib": told.get("Rss", told.get("VmRSS")),
        "pss_mib": told.get("Pss"),
        "private_mib": told["Private_Clean"] + told["Private_Dirty"] if "Private_Dirty" in told else None,
    }
    return {name: None if size is None else round(size / _KIB_PER_MIB, 2) for name, size in named.items()}


def _kib(file: Path) -> dict[str, int]:
    """The sizes that a file of /proc tells, in KiB."""
    lines = (line.split() for line in file.read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if words[-1] == "kB"}


def _service(rounds: int, seconds: float) -> dict[str, Any]:
    with scratch() as directory:
        home = directory / "home"
        disk_sync = sync_ms(directory)
        key = create_key(home, sqlite_url(home))
        bodies = {"direct": _request(_MADE[_OVER_HTTP]), "adapter": _request(None)}
        with gate(home, sqlite_url(home), directory, workers=WORKERS) as server:
            for name, body in bodies.items():
                _require_decision(server, key, body, by_adapter=name == "adapter")
            subjects = {name: Subject(server, WORKERS, key, body=body) for name, body in bodies.items()}
            taken, answers = under_load(subjects, rounds, seconds)
        records = len(bodies) + sum(answers.values())
        require_records(home, sqlite_url(home), records)
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "blocking_threads": BLOCKING_THREADS,
        "rounds": rounds,
        "round_s": seconds,
        "adapter_name": _OVER_HTTP,
        "body_bytes": {name: len(body) for name, body in bodies.items()},
        "records": records,
        **{name: summary(rounds_) for name, rounds_ in taken.items()},
        "adapter/direct": ratio(rates(taken["adapter"]), rates(taken["direct"])).to_dict(),
        "disk_sync": disk_sync.to_dict("ms"),
    }


def _request(inputs: Mapping[str, Any] | None) -> bytes:
    """A Decision Request with the rulebook inline: over these facts, or over those that the adapter makes."""
    context = {
        "requested_action": "issue_refund",
        "target_system": "payments",
        "target_object_id": "order-1042",
        "actor": "refund-agent@example.com",
    }
    adapter = _adapters()[_OVER_HTTP]
    invocation = {
        "adapter_id": adapter.adapter_id,
        "version": adapter.version,
        "manifest_hash": adapter.manifest_hash,
        "input": _GIVEN[_OVER_HTTP],
    }
    rulebook = orjson.loads(_RULEBOOK.read_bytes())
    if inputs is None:
        return orjson.dumps({"mode": "rulebook", "rulebook": rulebook, "context": context, "adapter": invocation})
    # In a scope, a version of a rulebook has its facts from one place.
    rulebook["version"] += "-direct"
    return orjson.dumps({"mode": "rulebook", "rulebook": rulebook, "context": {**context, "inputs": inputs}})


def _require_decision(server: Server, key: str, body: bytes, *, by_adapter: bool) -> None:
    """Looks whether a service decides as it should, of facts that come from where they should."""
    answer = httpx.post(
        f"http://127.0.0.1:{server.port}/api/decide",
        content=body,
        headers={"x-api-key": key, "content-type": "application/json", "x-idempotency-key": f"first-{by_adapter}"},
        trust_env=False,
    )
    record = answer.json()
    if answer.status_code != httpx.codes.OK or (record["application_verdict"], record["reason_code"]) != _OUTCOME:
        raise Mismatch(f"A decide was answered with {answer.status_code}: {answer.text[:800]}")
    if record.get("adapter_facts") != (_MADE[_OVER_HTTP] if by_adapter else None):
        raise Mismatch(f"A record tells other facts of an adapter: {record.get('adapter_facts')}")
