"""`POST /api/decide` over HTTP, with signatures and a durable ledger, compared with a bare JSON route.

Both use the same web server, with and without binding workers to processors. By default, `gate serve` binds them if
there are enough processors, and the server of the bare route does not. Requests contain the rulebook, or refer to it
and ask for the minimal view. They come from a few connections, and from many.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

from bench.disk import scratch, sync_ms
from bench.measure import Spread, ratio
from bench.samples import decide_request, reference_request
from bench.subjects import (
    BLOCKING_THREADS,
    CONNECTIONS,
    WORKERS,
    Subject,
    bare,
    create_key,
    gate,
    rates,
    register,
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
_CROWD: Final = 32
_SUBJECTS: Final = ("bare", "bare_pinned", "decide", "reference", "reference_crowd", "decide_unpinned")
_HOMES: Final = {
    "decide": "decide",
    "reference": "decide",
    "reference_crowd": "decide",
    "decide_unpinned": "decide_unpinned",
}
_COMPARED: Final = (
    ("decide", "bare"),
    ("decide", "bare_pinned"),
    ("reference", "bare_pinned"),
    ("reference", "decide"),
    ("reference_crowd", "bare_pinned"),
    ("decide_unpinned", "bare"),
    ("bare_pinned", "bare"),
)


def run(*, quick: bool) -> dict[str, Any]:
    """Puts both services under the same load in turn.

    Raises:
        Mismatch: An answer was wrong, or the ledger does not hold one record for each answer.
    """
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    with scratch() as directory:
        homes = {name: directory / name for name in dict.fromkeys(_HOMES.values())}
        disk_sync = sync_ms(directory)
        keys = {name: create_key(home, sqlite_url(home)) for name, home in homes.items()}
        for home in homes.values():
            register(home, sqlite_url(home))
        with ExitStack() as stack:
            servers = {
                "bare": stack.enter_context(bare(directory, workers=WORKERS)),
                "bare_pinned": stack.enter_context(bare(directory, workers=WORKERS, pinned=True)),
            } | {
                name: stack.enter_context(
                    gate(home, sqlite_url(home), directory, workers=WORKERS, pinned=name == "decide")
                )
                for name, home in homes.items()
            }
            subjects = {name: Subject(server, WORKERS, keys.get(name, "")) for name, server in servers.items()}
            referring = partial(Subject, servers["decide"], WORKERS, keys["decide"], body=reference_request())
            subjects |= {"reference": referring(), "reference_crowd": referring(connections=_CROWD)}
            subjects = {name: subjects[name] for name in _SUBJECTS}
            taken, answers = under_load(subjects, rounds, seconds)
            resident_mb = [round(size, 1) for size in servers["decide"].resident_mb().values()]
        for name, home in homes.items():
            made = sum(answers[subject] for subject, its_home in _HOMES.items() if its_home == name)
            require_records(home, sqlite_url(home), made)
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "crowd_connections": _CROWD,
        "blocking_threads": BLOCKING_THREADS,
        "rounds": rounds,
        "round_s": seconds,
        "body_bytes": len(decide_request()),
        "reference_body_bytes": len(reference_request()),
        "records": sum(answers[name] for name in _HOMES),
        **{name: summary(rounds_) for name, rounds_ in taken.items()},
        **{f"{name}/{floor}": ratio(rates(taken[name]), rates(taken[floor])).to_dict() for name, floor in _COMPARED},
        "disk_sync": disk_sync.to_dict("ms"),
        "worker_resident_mb": resident_mb,
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    subjects = {name: result[name] for name in _SUBJECTS}
    rows = [row for name, taken in subjects.items() for row in summary_rows(name, taken)]
    for name, floor in _COMPARED:
        rows.append([f"{name}/{floor}, requests/s", *Spread.from_dict(result[f"{name}/{floor}"]).cells(".3f")])
    rows.append(["disk sync of 4 KB, ms", *Spread.from_dict(result["disk_sync"], "ms").cells(".3f")])
    memory = " and ".join(f"{size:.0f}" for size in result["worker_resident_mb"])
    return "\n\n".join(
        [
            f"Service: {result['workers']} workers, {result['blocking_threads']} threads each, {result['connections']} "
            f"connections, {result['crowd_connections']} in a crowd; {result['body_bytes']} bytes a request, "
            f"{result['reference_body_bytes']} by a reference; {result['records']} records, one for each answer",
            table(["", "median", "min..max"], rows),
            table(["requests/s in round", *subjects], rounds_table_rows(subjects)),
            f"Memory of the workers at the end: {memory} MB",
        ]
    )
