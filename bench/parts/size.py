"""What a durable decide costs over HTTP with few and with many stored records of one scope, on SQLite.

`bench.stored` says how the records are made. In each round the service starts over either ledger and answers so many
requests; the few are a new copy every time, so that they stay few. The bare route has the same load in the same rounds.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from api.cli.options import instance_at
from bench.disk import scratch, sync_ms
from bench.measure import Spread, alternate, ratio
from bench.stored import stored_copy
from bench.subjects import (
    CONNECTIONS,
    WORKERS,
    Round,
    Subject,
    bare,
    gate,
    rates,
    require_records,
    rounds_table_rows,
    sqlite_url,
    summary,
    summary_rows,
)
from bench.tables import table

_FEW: Final = 1_000
_MANY: Final = 1_000_000
_QUICK_MANY: Final = 20_000

_ROUNDS: Final = 11
_REQUESTS: Final = 2_000
_QUICK_ROUNDS: Final = 3
_QUICK_REQUESTS: Final = 300
# So many before each round, counted in requests of a round: they make the WAL as long as it gets. From then on it is
# written over, as in a service that runs for long.
_WARM_UP: Final = 0.5
# The bare route is so much faster, and a round of it should last as long.
_BARE_REQUESTS: Final = 8


def run(*, quick: bool) -> dict[str, Any]:
    """Puts the bare route and the service over both ledgers under the same load in turn.

    Raises:
        Mismatch: An answer was wrong, a ledger does not hold one record more for each answer, or its chain is broken.
    """
    rounds, requests = (_QUICK_ROUNDS, _QUICK_REQUESTS) if quick else (_ROUNDS, _REQUESTS)
    many, added = _QUICK_MANY if quick else _MANY, _added(requests)
    with scratch() as directory:
        home = directory / "many"
        key = stored_copy(many, home)
        before = _bytes(home)
        disk_sync = sync_ms(directory)
        with bare(directory, workers=WORKERS, pinned=True) as server:
            plain = Subject(server, WORKERS, key)
            plain.round(requests=requests)
            taken = alternate(
                {
                    "bare": partial(plain.round, requests=_BARE_REQUESTS * requests),
                    "few": partial(_few, directory, requests),
                    "many": partial(_round, home, key, directory, requests),
                },
                rounds,
            )
        require_records(home, sqlite_url(home), many + rounds * added)
        after = _bytes(home)
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "rounds": rounds,
        "round_requests": requests,
        "bare": summary(taken["bare"]),
        "few": {"records_before": _FEW, "records_after": _FEW + added, **summary(taken["few"])},
        "many": {
            "records_before": many,
            "records_after": many + rounds * added,
            "ledger_bytes_before": before,
            "ledger_bytes_after": after,
            **summary(taken["many"]),
        },
        "few/bare": ratio(rates(taken["few"]), rates(taken["bare"])).to_dict(),
        "many/bare": ratio(rates(taken["many"]), rates(taken["bare"])).to_dict(),
        "few/many": ratio(rates(taken["few"]), rates(taken["many"])).to_dict(),
        "disk_sync": disk_sync.to_dict("ms"),
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    few, many = result["few"], result["many"]
    subjects = {"bare": result["bare"], **{f"{taken['records_before']:,}": taken for taken in (few, many)}}
    rows = [row for name, taken in subjects.items() for row in summary_rows(name, taken)]
    for name in ("few/bare", "many/bare"):
        rows.append([f"{name}, requests/s", *Spread.from_dict(result[name]).cells(".3f")])
    rows.append(["few/many, requests/s: the ratio of costs", *Spread.from_dict(result["few/many"]).cells(".3f")])
    rows.append(["disk sync of 4 KB, ms", *Spread.from_dict(result["disk_sync"], "ms").cells(".3f")])
    return "\n\n".join(
        [
            f"Size: {result['workers']} workers, {result['connections']} connections, {result['round_requests']:,} "
            f"requests a round, records of one scope on SQLite",
            f"The few grow from {few['records_before']:,} to {few['records_after']:,} in each round. "
            f"The many grow from {many['records_before']:,} to {many['records_after']:,} in all, and their ledger "
            f"from {many['ledger_bytes_before'] / 1e6:,.0f} to {many['ledger_bytes_after'] / 1e6:,.0f} MB.",
            table(["", "median", "min..max"], rows),
            table(["requests/s in round", *subjects], rounds_table_rows(subjects)),
        ]
    )


def _few(directory: Path, requests: int) -> Round:
    home = directory / "few"
    key = stored_copy(_FEW, home)
    try:
        taken = _round(home, key, directory, requests)
        require_records(home, sqlite_url(home), _FEW + _added(requests))
    finally:
        shutil.rmtree(home)
    return taken


def _round(home: Path, key: str, directory: Path, requests: int) -> Round:
    with gate(home, sqlite_url(home), directory, workers=WORKERS) as server:
        subject = Subject(server, WORKERS, key)
        subject.round(requests=_added(requests) - requests)
        return subject.round(requests=requests)


def _added(requests: int) -> int:
    """How many records a round adds."""
    return requests + int(_WARM_UP * requests)


def _bytes(home: Path) -> int:
    with instance_at(home, sqlite_url(home)) as instance:
        return instance.ledger.store.size()
