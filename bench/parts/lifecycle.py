"""Execution receipts, outcomes, and replays over HTTP, compared with decide and the bare route; and packet exports.

Each report is about a decision that the service has not used since, so that no cache answers it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import cycle
from typing import Any, Final

import httpx
import orjson

from api.cli.options import instance_at
from bench.disk import scratch, sync_ms
from bench.measure import Mismatch, Spread, ratio, spread
from bench.samples import decide_request
from bench.servers import Server
from bench.subjects import (
    BLOCKING_THREADS,
    CONNECTIONS,
    SCOPE,
    WORKERS,
    Round,
    Subject,
    bare,
    create_key,
    gate,
    rates,
    rounds_table_rows,
    sqlite_url,
    summary,
    summary_rows,
    under_load,
)
from bench.tables import table
from gate.clock import utc_now
from gate.encoding.strict_json import parse
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority
from gate.records.reports.receipts import EXECUTIONS

_ROUNDS: Final = 7
_SECONDS: Final = 3.0
_QUICK_ROUNDS: Final = 3
_QUICK_SECONDS: Final = 0.5
# More than are reported on in one round, so that the next one meets none that a worker still remembers.
_DECISIONS: Final = 40_000
_QUICK_DECISIONS: Final = 12_000
_RECEIPTS: Final = 1000
_EXPORTS: Final = 20
_SUBJECTS: Final = ("bare", "decide", "execution", "outcome", "replay")

_EXECUTION: Final[Mapping[str, Any]] = {
    "execution_status": "executed",
    "action_taken": "approve_discount",
    "target_system": "crm",
    "target_object_id": "deal-1042",
    "execution_id": "run-1",
    "executor": {"type": "service", "id": "worker-1"},
    "state_before_hash": "sha256:" + "0" * 64,
    "state_after_hash": "sha256:" + "1" * 64,
}
_OUTCOME: Final[Mapping[str, Any]] = {
    "outcome_status": "succeeded",
    "action_taken": "approve_discount",
    "action_executed": True,
    "observed_metrics": {"revenue_eur": 1200.5, "hours_to_close": 26},
}


def run(*, quick: bool) -> dict[str, Any]:
    """Puts the writes after a decision under the same load as decide, in turn, and exports a packet again and again.

    Raises:
        Mismatch: An answer was wrong, or a chain does not hold one entry for each answer.
    """
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    with scratch() as directory:
        home = directory / "home"
        disk_sync = sync_ms(directory)
        key = create_key(home, sqlite_url(home))
        with instance_at(home, sqlite_url(home)) as instance:
            authority = instance.ledger.directory.authenticate(key, utc_now())
            decisions = _decide(instance, authority, _QUICK_DECISIONS if quick else _DECISIONS)
            reported = _report(instance, authority, decisions[0])
            before = instance.ledger.entries.head(authority.scope_id).size
        with (
            bare(directory, workers=WORKERS, pinned=True) as floor,
            gate(home, sqlite_url(home), directory, workers=WORKERS) as server,
        ):
            subjects = {"bare": Subject(floor, WORKERS, "")} | _subjects(server, key, decisions[1:])
            taken, answers = under_load(subjects, rounds, seconds)
            packet = _export(server, key, decisions[0], reported)
            resident_mb = [round(size, 1) for size in server.resident_mb().values()]
        with instance_at(home, sqlite_url(home)) as instance:
            found = instance.ledger.entries.head(instance.ledger.directory.scope(SCOPE).scope_id).size
    written = sum(answers[name] for name in ("decide", "execution", "outcome"))
    if found - before != written:
        raise Mismatch(f"{written} writes were answered, and the chain has {found - before} more entries.")
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "blocking_threads": BLOCKING_THREADS,
        "rounds": rounds,
        "round_s": seconds,
        "decisions": len(decisions),
        "written": written,
        **{name: summary(rounds_) for name, rounds_ in taken.items()},
        **{f"{name}/bare": _ratio(taken, name, "bare") for name in _SUBJECTS[1:]},
        "replay_time/decide_time": _ratio(taken, "decide", "replay"),
        "packet": packet,
        "disk_sync": disk_sync.to_dict("ms"),
        "worker_resident_mb": resident_mb,
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    subjects = {name: result[name] for name in _SUBJECTS}
    rows = [row for name, taken in subjects.items() for row in summary_rows(name, taken)]
    for name in _SUBJECTS[1:]:
        rows.append([f"{name}/bare, requests/s", *Spread.from_dict(result[f"{name}/bare"]).cells(".3f")])
    rows.append(["replay/decide, time a request", *Spread.from_dict(result["replay_time/decide_time"]).cells(".2f")])
    packet = result["packet"]
    rows.append(["packet export, ms", *Spread.from_dict(packet["export"], "ms").cells(".0f")])
    rows.append(["disk sync of 4 KB, ms", *Spread.from_dict(result["disk_sync"], "ms").cells(".3f")])
    return "\n\n".join(
        [
            f"After the decision: {result['workers']} workers, {result['connections']} connections, "
            f"{result['decisions']} decisions; {result['written']} entries written, one for each answer",
            table(["", "median", "min..max"], rows),
            table(["requests/s in round", *subjects], rounds_table_rows(subjects)),
            f"The packet has {packet['receipts']} receipts and {packet['links']} links in {packet['bytes']} bytes",
        ]
    )


def _decide(instance: Instance, authority: Authority, count: int) -> list[str]:
    decider, body = instance.gate(), parse(decide_request())
    return [decider.decide(authority, body, request_id="req_bench").record["decision_id"] for _ in range(count)]


def _report(instance: Instance, authority: Authority, decision_id: str) -> int:
    lifecycle = instance.lifecycle()
    for _ in range(_RECEIPTS):
        lifecycle.report(authority, EXECUTIONS, decision_id, dict(_EXECUTION))
    return _RECEIPTS


def _subjects(server: Server, key: str, decisions: list[str]) -> dict[str, Subject]:
    def posts(name: str, body: Mapping[str, Any], status: int) -> Subject:
        paths = cycle([f"/api/decision/{decision_id}/{name}" for decision_id in decisions])
        return Subject(server, WORKERS, key, paths=paths, body=orjson.dumps(body), status=status)

    return {
        "decide": Subject(server, WORKERS, key),
        "execution": posts("execution", _EXECUTION, 201),
        "outcome": posts("outcome", _OUTCOME, 201),
        "replay": posts("replay", {}, 200),
    }


def _ratio(taken: Mapping[str, list[Round]], one: str, other: str) -> dict[str, float]:
    return ratio(rates(taken[one]), rates(taken[other])).to_dict()


def _export(server: Server, key: str, decision_id: str, receipts: int) -> dict[str, Any]:
    """Exports a packet with as many receipts and links as it can hold, one export after the other."""
    times = []
    limits = "execution_limit=1000&outcome_limit=1000&chain_limit=1000"
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers={"x-api-key": key}) as client:
        for _ in range(_EXPORTS):
            started = time.perf_counter()
            answer = client.get(f"/api/decision/{decision_id}/packet?{limits}")
            times.append((time.perf_counter() - started) * 1000)
            if answer.status_code != 200:
                raise Mismatch(f"A packet was not exported: {answer.text[:800]}")
        packet = orjson.loads(answer.content)
    if len(packet["execution_receipts"]) != receipts:
        raise Mismatch(f"{receipts} receipts were made, and the packet has {len(packet['execution_receipts'])}.")
    return {
        "receipts": receipts,
        "links": len(packet["audit_chain"]["retained_links"]),
        "bytes": len(answer.content),
        "export": spread(times).to_dict("ms"),
    }
