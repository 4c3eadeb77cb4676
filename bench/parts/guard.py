"""The cost of the guard of `gate.client` on top of a decide: its calls, its stages, its store, and its import.

Every round of every subject opens a new client, so that no subject always has a lucky worker. As in production, the
receipts are delivered in the background while guarded calls run, and the measurement waits for the last ones.
`guard_undelivered` is the guard alone: its receipts are delivered after the measurement.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx

from api.cli.options import instance_at
from bench.disk import scratch, sync_ms
from bench.measure import Mismatch, Spread, alternate, percentile, spread
from bench.samples import ROOT, decide_request, rulebook_body
from bench.servers import environment
from bench.subjects import SCOPE, WORKERS, create_key, gate, sqlite_url
from bench.tables import table
from gate.client import AsyncClient, AsyncGuard, Client, Delivery, Guard, Intent, Permit, Report, SqliteStore, State
from gate.client.connection import KEY_FILE, REGISTRY, URL
from gate.client.guard.delivery import Courier
from gate.client.guard.entering import enter
from gate.client.guard.leaving import leave
from gate.client.guard.proposal import Proposal, propose
from gate.client.transport.flow import Consult, Do, Effect, Send
from gate.client.transport.flow import run as run_flow
from gate.clock import utc_now
from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse_document
from gate.ids import timestamp
from gate.verify import verify_record

OVERHEAD_BAR_MS: Final = 2.0
"""What the guard is to add to a decide at most, at the median."""

IMPORT_BAR_MS: Final = 150.0
"""What a process that imports the client and ends is to take at most, at the median."""

_ROUNDS: Final = 7
_CALLS: Final = 100
_SPLIT_INTENTS: Final = 400
_STORE_INTENTS: Final = 300
_QUICK_ROUNDS: Final = 3
_QUICK_CALLS: Final = 30
_QUICK_SPLIT_INTENTS: Final = 60
_QUICK_STORE_INTENTS: Final = 60
_UNTIMED: Final = 5
_STARTS: Final = 15
_THREADS: Final = (1, 4)
_DELIVERY_MS: Final = 60_000
_POLL_SECONDS: Final = 0.002

_RULEBOOK: Final = rulebook_body()
_REFERENCE: Final = f"{_RULEBOOK['rulebook_id']}@{_RULEBOOK['version']}"
_ACTION: Final = "approve_discount"
_FACTS: Final[Mapping[str, Any]] = {"discount_percent": 10, "margin_percent": 22}

_COMPARED: Final = (
    ("decide", "httpx"),
    ("guard", "decide"),
    ("guard_undelivered", "decide"),
    ("async_guard", "async_decide"),
)
_STAGES: Final = {
    "to_find": "proposal: request and name of the intent",
    "find": "store: find",
    "to_hold": "request of the attempt",
    "hold": "store: hold",
    "to_send": "call made ready",
    "send": "decide over HTTP",
    "to_answer": "answer read, record verified",
    "answer": "store: answer",
    "to_start": "record judged",
    "start": "store: start",
    "to_finish": "permit and receipt made",
    "finish": "store: finish",
    "verify": "verification of a record, by itself",
    "all_but_send": "all but the call",
}
_PROGRAMS: Final = {
    "interpreter": "pass",
    "import": "import gate.client",
    "import_and_decide": (
        "import json, sys; from gate.client import Client; "
        "Client().decide(json.loads(sys.argv[1]), idempotency_key=sys.argv[2])"
    ),
}


@dataclass(frozen=True, slots=True)
class _Batch:
    """Calls made one after the other.

    Attributes:
        times_ms: The time of each.
        rest_ms: How long it took after the last until the receipts of all were at the service; None where that is no
            part of the subject.
    """

    times_ms: Sequence[float]
    rest_ms: float | None = None

    @property
    def delivered_ms(self) -> float:
        """The time of one call with the delivery of its receipt."""
        return (sum(self.times_ms) + (self.rest_ms or 0.0)) / len(self.times_ms)


@dataclass(frozen=True, slots=True)
class _Sample:
    """What the store keeps of one intent: the attempt, the answer with its record, and the receipt."""

    intent: Intent
    answer: bytes
    report: Report


@dataclass(slots=True)
class _Site:
    """A service, and who calls it.

    Attributes:
        environment: What clients are told of it.
        store: The store that all of them share, as those of a process that runs for long do: its WAL has its full size,
            and is written over again.
        calls: How many calls of a batch are timed.
        numbers: Tells the objects of the actions apart.
        decided: How many decisions were asked for.
        begun: The decisions under which bodies ran.
    """

    environment: Mapping[str, str]
    store: SqliteStore
    calls: int
    numbers: count[int] = field(default_factory=count)
    decided: int = 0
    begun: list[str] = field(default_factory=list)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of a client."""
        names = {"url": URL, "key_file": KEY_FILE, "registry": REGISTRY}
        return {name: self.environment[variable] for name, variable in names.items()} | {"store": self.store}

    def targets(self, number: int) -> list[tuple[str, str]]:
        """So many objects that no action was about before."""
        self.decided += number
        return [("crm", f"deal-{next(self.numbers)}") for _ in range(number)]

    def proposals(self) -> list[Proposal]:
        """What a batch of plain decides asks for: what a guard would, without its own member."""
        return [
            propose(_REFERENCE, _FACTS, action=_ACTION, target=target) for target in self.targets(_UNTIMED + self.calls)
        ]

    def guard(self, client: Client, target: tuple[str, str]) -> Guard:
        """A guard of a thread."""
        return client.guard(_REFERENCE, _FACTS, action=_ACTION, target=target)

    def async_guard(self, client: AsyncClient, target: tuple[str, str]) -> AsyncGuard:
        """A guard of an event loop."""
        return client.guard(_REFERENCE, _FACTS, action=_ACTION, target=target)


def run(*, quick: bool) -> dict[str, Any]:
    """Times every subject in turn against one service, then the stages of the guard, its store, and its import.

    Raises:
        Mismatch: A call failed, a body did not run exactly once for its intent, or an execution receipt is missing in
            the ledger.
    """
    rounds, calls, split, writes = (
        (_QUICK_ROUNDS, _QUICK_CALLS, _QUICK_SPLIT_INTENTS, _QUICK_STORE_INTENTS)
        if quick
        else (_ROUNDS, _CALLS, _SPLIT_INTENTS, _STORE_INTENTS)
    )
    with scratch() as directory:
        home = directory / "home"
        disk_sync = sync_ms(directory)
        key = create_key(home, sqlite_url(home))
        with (
            gate(home, sqlite_url(home), directory, workers=WORKERS) as server,
            SqliteStore(directory / "intents.db") as store,
        ):
            site = _Site(_tell(directory, f"http://127.0.0.1:{server.port}", key), store, calls)
            _guard(site, deliver=True)
            taken = _time_calls(site, rounds)
            stages, sample = _split(site, split)
            started = _time_starts(site)
        _require_receipts(home, site)
        rates = _time_store(directory, sample, rounds, writes)
    return {
        "workers": WORKERS,
        "rounds": rounds,
        "calls_per_round": calls,
        "intents": len(site.begun),
        "overhead_bar_ms": OVERHEAD_BAR_MS,
        "import_bar_ms": IMPORT_BAR_MS,
        "calls": {name: _summary(batches) for name, batches in taken.items()},
        "overheads": {f"{over}-{under}": _overhead(taken, over, under) for over, under in _COMPARED},
        "split_intents": split,
        "split": stages,
        "starts": started,
        "store_writes": rates,
        "disk_sync": disk_sync.to_dict("ms"),
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    return "\n\n".join(
        [
            f"The guard: {result['workers']} workers, SQLite, one caller; {result['rounds']} rounds of "
            f"{result['calls_per_round']} calls; {result['intents']} bodies ran, one for each intent and receipt",
            table(["milliseconds a call", "median", "min..max"], _call_rows(result)),
            f"Stages of one guarded call, {result['split_intents']} intents, receipts kept back",
            table(["microseconds", "median", "p10..p90"], _stage_rows(result)),
            table(["milliseconds a process", "median", "min..max"], _start_rows(result)),
            table(
                ["guard's store, writes/s", "median", "min..max"],
                [
                    [f"{threads} thread{'s' if threads != '1' else ''}", *Spread.from_dict(rate, "per_s").cells(".0f")]
                    for threads, rate in result["store_writes"].items()
                ],
            ),
        ]
    )


def _call_rows(result: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for name, taken in result["calls"].items():
        rows.append([f"{name}, p50", *Spread.from_dict(taken["p50"], "ms").cells()])
        rows.append([f"{name}, p99", *Spread.from_dict(taken["p99"], "ms").cells()])
        if "receipt_delivered" in taken:
            cells = Spread.from_dict(taken["receipt_delivered"], "ms").cells()
            rows.append([f"{name}, mean until the receipt is delivered", *cells])
    for over, under in _COMPARED:
        bar = f" (bar {result['overhead_bar_ms']:g})" if "guard" in over else ""
        cells = Spread.from_dict(result["overheads"][f"{over}-{under}"], "ms").cells()
        rows.append([f"{over} - {under}, p50{bar}", *cells])
    rows.append(["disk sync of 4 KB", *Spread.from_dict(result["disk_sync"], "ms").cells()])
    return rows


def _stage_rows(result: Mapping[str, Any]) -> list[list[str]]:
    return [
        [_STAGES.get(name, name), f"{stage['median_us']:.0f}", f"{stage['p10_us']:.0f}..{stage['p90_us']:.0f}"]
        for name, stage in result["split"].items()
    ]


def _start_rows(result: Mapping[str, Any]) -> list[list[str]]:
    named = {
        "interpreter": "empty interpreter",
        "import": f"import gate.client (bar {result['import_bar_ms']:g})",
        "import_alone": "the import alone",
        "import_and_decide": "import, first client and first call",
        "first_call_alone": "first client and first call alone",
    }
    return [[called, *Spread.from_dict(result["starts"][name], "ms").cells(".0f")] for name, called in named.items()]


def _tell(directory: Path, url: str, key: str) -> dict[str, str]:
    """What clients are told of the service, which knows the rulebook afterwards."""
    key_file, registry = directory / "key", directory / "receipt-keys.json"
    key_file.touch(0o600)
    key_file.write_text(key)
    with Client(url, key_file=key_file) as client:
        registry.write_bytes(canonical(client.list_receipt_keys()))
        client.decide(parse_document(decide_request()), idempotency_key="first")
    return {URL: url, KEY_FILE: str(key_file), REGISTRY: str(registry)}


def _time_calls(site: _Site, rounds: int) -> dict[str, list[_Batch]]:
    return alternate(
        {
            "httpx": partial(_httpx, site),
            "decide": partial(_decide, site),
            "guard": partial(_guard, site, deliver=True),
            "guard_undelivered": partial(_guard, site, deliver=False),
            "async_decide": lambda: asyncio.run(_async_decide(site)),
            "async_guard": lambda: asyncio.run(_async_guard(site)),
        },
        rounds,
    )


def _httpx(site: _Site) -> _Batch:
    options = site.options
    key = Path(options["key_file"]).read_text()
    headers = {"x-api-key": key, "content-type": "application/json", "accept": "application/json"}
    requests = [(canonical(proposal.body), f"httpx-{proposal.intent_id}") for proposal in site.proposals()]
    with httpx.Client(headers=headers, trust_env=False) as client:

        def post(request: tuple[bytes, str]) -> None:
            content, idempotency_key = request
            response = client.post(
                f"{options['url']}/api/decide", content=content, headers={"x-idempotency-key": idempotency_key}
            )
            if response.status_code != httpx.codes.OK:
                raise Mismatch(f"A request was answered with {response.status_code}: {response.text[:800]}")

        return _Batch(_timed(post, requests))


def _decide(site: _Site) -> _Batch:
    with Client(**site.options) as client:
        return _Batch(
            _timed(
                lambda proposal: client.decide(proposal.body, idempotency_key=f"decide-{proposal.intent_id}"),
                site.proposals(),
            )
        )


def _guard(site: _Site, *, deliver: bool) -> _Batch:
    with Client(**site.options) as client:
        courier = client._courier
        if not deliver:
            client._courier = _AsleepCourier(lambda _: Delivery())

        def act(target: tuple[str, str]) -> None:
            with site.guard(client, target) as permit:
                site.begun.append(permit.decision_id)

        times = _timed(act, site.targets(_UNTIMED + site.calls))
        if not deliver:
            if len(site.store.undelivered(len(times))) != len(times):
                raise Mismatch("Receipts that were to be kept back were delivered.")
            courier.deliver()
        rest_ms = _await_delivery(site)
    return _Batch(times, rest_ms if deliver else None)


class _AsleepCourier(Courier):
    def wake(self) -> None:
        """Does nothing."""


async def _async_decide(site: _Site) -> _Batch:
    times = []
    async with AsyncClient(**site.options) as client:
        for proposal in site.proposals():
            started = time.perf_counter()
            await client.decide(proposal.body, idempotency_key=f"decide-{proposal.intent_id}")
            times.append(_since_ms(started))
    return _Batch(times[_UNTIMED:])


async def _async_guard(site: _Site) -> _Batch:
    times = []
    async with AsyncClient(**site.options) as client:
        for target in site.targets(_UNTIMED + site.calls):
            started = time.perf_counter()
            async with site.async_guard(client, target) as permit:
                site.begun.append(permit.decision_id)
            times.append(_since_ms(started))
        return _Batch(times[_UNTIMED:], await asyncio.to_thread(_await_delivery, site))


def _timed(call: Callable[[Any], object], arguments: Sequence[Any]) -> list[float]:
    times = []
    for argument in arguments:
        started = time.perf_counter()
        call(argument)
        times.append(_since_ms(started))
    return times[_UNTIMED:]


def _since_ms(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def _summary(batches: Sequence[_Batch]) -> dict[str, Any]:
    ordered = [sorted(batch.times_ms) for batch in batches]
    summary: dict[str, Any] = {
        f"p{percent}": spread([percentile(times, percent) for times in ordered]).to_dict("ms") for percent in (50, 99)
    }
    if batches[0].rest_ms is not None:
        summary["receipt_delivered"] = spread([batch.delivered_ms for batch in batches]).to_dict("ms")
    return summary


def _overhead(taken: Mapping[str, Sequence[_Batch]], over: str, under: str) -> dict[str, float]:
    medians = {name: [percentile(sorted(batch.times_ms), 50) for batch in taken[name]] for name in (over, under)}
    return spread([more - less for more, less in zip(medians[over], medians[under], strict=True)]).to_dict("ms")


def _split(site: _Site, intents: int) -> tuple[dict[str, Any], _Sample]:
    """Times what the guard's flows compute (`to_hold`) and what they ask for (`hold`), stage by stage; and a sample of
    what was kept.
    """
    laps: dict[str, list[float]] = {}
    with Client(**site.options) as client:
        for target in site.targets(_UNTIMED + intents):
            sample = _lap(site, client, target, laps)
        client.flush()
        _await_delivery(site)
    timed = {stage: times[_UNTIMED:] for stage, times in laps.items()}
    own = [times for stage, times in timed.items() if stage not in ("send", "verify")]
    timed["all_but_send"] = [sum(times) for times in zip(*own, strict=True)]
    return {stage: _stage_summary(times) for stage, times in timed.items()}, sample


def _lap(site: _Site, client: Client, target: tuple[str, str], laps: dict[str, list[float]]) -> _Sample:
    last = time.perf_counter_ns()

    def lap(stage: str) -> None:
        nonlocal last
        laps.setdefault(stage, []).append((time.perf_counter_ns() - last) / 1000)
        # Not the moment before: what noting a lap costs is no part of the next one.
        last = time.perf_counter_ns()

    def perform(effect: Effect) -> Any:
        stage = _stage_of(effect)
        lap(f"to_{stage}")
        came = client._engine._perform(effect)
        lap(stage)
        return came

    guard = site.guard(client, target)
    terms = guard._terms
    wanted = guard._wanted
    assert isinstance(wanted, Proposal)
    intent, record = run_flow(enter(wanted, terms), perform)
    permit = Permit(client._engine, lambda: None, terms.store, intent, record)
    site.begun.append(permit.decision_id)
    run_flow(leave(terms, permit, None), perform)
    trust, request = terms.trust(), intent.request
    last = time.perf_counter_ns()
    verified = verify_record(record, trust, request_body=request).verified
    lap("verify")
    if not verified:
        raise Mismatch(f"The record {permit.decision_id} does not verify.")
    return _Sample(intent, canonical(record), permit.execution_report(None))


def _stage_of(effect: Effect) -> str:
    if isinstance(effect, Send):
        return "send"
    if isinstance(effect, Do | Consult):
        return str(getattr(effect.work, "func", effect.work).__name__)
    raise Mismatch(f"The guard asked for something that is no stage of it: {effect!r}")


def _stage_summary(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    shown = {"median_us": 50, "p10_us": 10, "p90_us": 90}
    return {name: round(percentile(ordered, percent), 1) for name, percent in shown.items()}


def _time_starts(site: _Site) -> dict[str, Any]:
    """The time of fresh processes from their start to their end."""
    told = environment() | dict(site.environment)
    body = canonical(propose(_REFERENCE, _FACTS, action=_ACTION, target=("crm", "deal-first")).body).decode()
    keys = count()

    def started(program: str) -> float:
        arguments = [sys.executable, "-c", program, body, f"start-{next(keys)}"]
        began = time.perf_counter()
        ended = subprocess.run(arguments, capture_output=True, cwd=ROOT, env=told)
        took = _since_ms(began)
        if ended.returncode != 0:
            raise Mismatch(f"A process failed:\n{ended.stderr.decode(errors='replace')}")
        return took

    programs = {name: partial(started, program) for name, program in _PROGRAMS.items()}
    alternate(programs, 1)
    taken = alternate(programs, _STARTS)
    site.decided += 1 + _STARTS
    empty, imported, decided = (taken[name] for name in _PROGRAMS)
    alone = {
        "import_alone": [more - less for more, less in zip(imported, empty, strict=True)],
        "first_call_alone": [more - less for more, less in zip(decided, imported, strict=True)],
    }
    return {"processes": _STARTS, **{name: spread(times).to_dict("ms") for name, times in (taken | alone).items()}}


def _time_store(directory: Path, sample: _Sample, rounds: int, intents: int) -> dict[str, Any]:
    """The writes a second of whole intents, four for each, by so many threads that share a store."""
    names = count()
    with SqliteStore(directory / "writes.db") as store:
        subjects = {
            str(threads): partial(_writes_per_s, store, sample, names, threads, intents) for threads in _THREADS
        }
        taken = alternate(subjects, rounds)
    return {threads: spread(rates).to_dict("per_s") for threads, rates in taken.items()}


def _writes_per_s(store: SqliteStore, sample: _Sample, names: count[int], threads: int, intents: int) -> float:
    def write(name: str) -> bool:
        intent = replace(sample.intent, intent_id=name)
        return (
            store.hold(intent)
            and store.answer(intent, sample.answer, State.PERMITTED)
            and store.start(intent, timestamp(utc_now()), "bench")
            and store.finish(replace(intent, started_by="bench"), replace(sample.report, intent_id=name))
        )

    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        written = list(pool.map(write, [f"int_{next(names)}" for _ in range(intents)]))
        took = time.perf_counter() - started
    if not all(written):
        raise Mismatch("The store refused an intent that nobody else wrote.")
    return 4 * intents / took


def _await_delivery(site: _Site) -> float:
    """Waits until no receipt waits any more; how long that took, in milliseconds."""
    started = time.perf_counter()
    while site.store.undelivered(1):
        if _since_ms(started) > _DELIVERY_MS:
            raise Mismatch(f"Receipts are still not delivered after {_DELIVERY_MS / 1000:g} s.")
        time.sleep(_POLL_SECONDS)
    if refused := site.store.set_aside(1):
        raise Mismatch(f"The service refused a receipt: {refused[0].refused}")
    return _since_ms(started)


def _require_receipts(home: Path, site: _Site) -> None:
    """Looks whether each body ran under a decision of its own, and whether the ledger has one receipt for each."""
    with instance_at(home, sqlite_url(home)) as instance:
        scope_id = instance.ledger.directory.scope(SCOPE).scope_id
        entries = instance.ledger.entries
        told = Counter(
            (entry.link["entry_type"], entry.link["decision_id"])
            for entry in entries.walk(scope_id, up_to=entries.head(scope_id).size)
        )
    executions = Counter({decision_id: number for (kind, decision_id), number in told.items() if kind == "execution"})
    if (begun := Counter(site.begun)) != executions or set(begun.values()) != {1}:
        raise Mismatch(
            f"{begun.total()} bodies ran under {len(begun)} decisions, and the ledger has {executions.total()} "
            f"receipts of {len(executions)}."
        )
    # One more: the decision that told the service the rulebook.
    if (made := told.total() - executions.total()) != site.decided + 1:
        raise Mismatch(f"{site.decided + 1} decisions were asked for, and the ledger has {made}.")
