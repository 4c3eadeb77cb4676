"""POST /api/decide over HTTP, with signatures and a durable ledger, beside a bare JSON route under the same server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bench.disk import scratch, sync_ms
from bench.measure import Spread, ratio
from bench.samples import decide_request
from bench.subjects import (
    BLOCKING_THREADS,
    CONNECTIONS,
    WORKERS,
    Subject,
    bare,
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

_ROUNDS: Final = 7
_SECONDS: Final = 4.0
_QUICK_ROUNDS: Final = 5
_QUICK_SECONDS: Final = 0.5


def run(*, quick: bool) -> dict[str, Any]:
    """Puts both services under the same load in turn.

    Raises:
        Mismatch: An answer was wrong, or the ledger does not hold one record for each answer.
    """
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    with scratch() as directory:
        home = directory / "home"
        disk_sync = sync_ms(directory)
        key = create_key(home, sqlite_url(home))
        with bare(directory) as plain, gate(home, sqlite_url(home), directory) as service:
            subjects = {"bare": Subject(plain, WORKERS, key), "decide": Subject(service, WORKERS, key)}
            taken, answers = under_load(subjects, rounds, seconds)
            resident_mb = [round(size, 1) for size in service.resident_mb().values()]
        require_records(home, sqlite_url(home), answers["decide"])
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "blocking_threads": BLOCKING_THREADS,
        "rounds": rounds,
        "round_s": seconds,
        "body_bytes": len(decide_request()),
        "records": answers["decide"],
        "bare": summary(taken["bare"]),
        "decide": summary(taken["decide"]),
        "decide/bare": ratio(rates(taken["decide"]), rates(taken["bare"])).to_dict(),
        "disk_sync": disk_sync.to_dict("ms"),
        "worker_resident_mb": resident_mb,
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    subjects = {name: result[name] for name in ("bare", "decide")}
    rows = [row for name, taken in subjects.items() for row in summary_rows(name, taken)]
    rows.append(["decide/bare, requests/s", *Spread.from_dict(result["decide/bare"]).cells(".3f")])
    rows.append(["disk sync of 4 KB, ms", *Spread.from_dict(result["disk_sync"], "ms").cells(".3f")])
    memory = " and ".join(f"{size:.0f}" for size in result["worker_resident_mb"])
    return "\n\n".join(
        [
            f"Service: {result['workers']} workers, {result['blocking_threads']} threads each, {result['connections']} "
            f"connections, {result['body_bytes']} bytes a request; {result['records']} records, one for each answer",
            table(["", "median", "min..max"], rows),
            table(["requests/s in round", *subjects], rounds_table_rows(subjects)),
            f"Memory of the workers at the end: {memory} MB",
        ]
    )
