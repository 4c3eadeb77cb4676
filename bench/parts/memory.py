"""The resident memory of the service's workers, at start and after many decisions on SQLite.

Growth is measured twice: from the start, and from the first tenth of the decisions on, when the caches of the workers
are full. A leak shows in the second figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from bench.disk import scratch
from bench.measure import Mismatch
from bench.servers import Server
from bench.subjects import CONNECTIONS, WORKERS, Subject, create_key, gate, require_records, sqlite_url
from bench.tables import table

_DECISIONS: Final = 100_000
_QUICK_DECISIONS: Final = 3_000
_STEPS: Final = 10


def run(*, quick: bool) -> dict[str, Any]:
    """Looks at the workers' memory before the first decision and after each tenth of them.

    Raises:
        Mismatch: An answer was wrong, a worker was replaced, or the ledger does not hold one record for each answer.
    """
    decisions = _QUICK_DECISIONS if quick else _DECISIONS
    with scratch() as directory:
        home = directory / "home"
        key = create_key(home, sqlite_url(home))
        with gate(home, sqlite_url(home), directory, workers=WORKERS) as server:
            seen = _load(server, key, decisions)
        require_records(home, sqlite_url(home), decisions)
    first, warm, last = (list(seen[at].values()) for at in (0, decisions // _STEPS, decisions))
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "decisions": decisions,
        "resident_mb": [
            {"decisions": done, "workers": [round(size, 1) for size in sizes.values()]} for done, sizes in seen.items()
        ],
        "growth_mb": [round(after - before, 1) for before, after in zip(first, last, strict=True)],
        "growth_after_first_tenth_mb": [round(after - before, 1) for before, after in zip(warm, last, strict=True)],
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as a table."""
    workers = range(result["workers"])
    rows = [
        [f"{seen['decisions']:,} decisions", *(f"{size:.1f}" for size in seen["workers"])]
        for seen in result["resident_mb"]
    ]
    rows.append(["growth", *(f"{size:+.1f}" for size in result["growth_mb"])])
    rows.append(["growth after the first tenth", *(f"{size:+.1f}" for size in result["growth_after_first_tenth_mb"])])
    return "\n\n".join(
        [
            f"Memory: {result['workers']} workers, {result['connections']} connections, SQLite",
            table(["resident MB after", *(f"worker {number + 1}" for number in workers)], rows),
        ]
    )


def _load(server: Server, key: str, decisions: int) -> dict[int, dict[int, float]]:
    """The workers' memory, by the decisions made until then."""
    with closing(Subject(server, WORKERS, key).connect()) as client:
        seen = {0: server.resident_mb()}
        for done in range(decisions // _STEPS, decisions + 1, decisions // _STEPS):
            client.run(requests=decisions // _STEPS)
            seen[done] = server.resident_mb()
            if seen[done].keys() != seen[0].keys():
                raise Mismatch("A worker was replaced while its memory was watched.")
    return seen
