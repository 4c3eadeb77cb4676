"""POST /api/decide/batch with 100 requests beside single decides, by a reference, in records a second."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any, Final

import orjson

from bench.disk import scratch
from bench.load import KEY
from bench.measure import Spread, ratio, spread
from bench.samples import reference_request
from bench.subjects import (
    CONNECTIONS,
    WORKERS,
    Subject,
    create_key,
    gate,
    rates,
    register,
    require_records,
    sqlite_url,
    summary,
    summary_rows,
    under_load,
)
from bench.tables import table

_REQUESTS: Final = 100
_BAR: Final = 4
_AIM: Final = 10
_ROUNDS: Final = 7
_SECONDS: Final = 4.0
_QUICK_ROUNDS: Final = 5
_QUICK_SECONDS: Final = 0.5


def run(*, quick: bool) -> dict[str, Any]:
    """Puts both endpoints under load in turn.

    Raises:
        Mismatch: An answer was wrong, or the ledger does not hold one record for each request.
    """
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    body = _body()
    with scratch() as directory:
        home = directory / "batch"
        key = create_key(home, sqlite_url(home))
        register(home, sqlite_url(home))
        with gate(home, sqlite_url(home), directory, workers=WORKERS) as server:
            subjects = {
                "single": Subject(server, WORKERS, key, body=reference_request()),
                "batch": Subject(server, WORKERS, key, paths=repeat("/api/decide/batch"), body=body),
            }
            taken, answers = under_load(subjects, rounds, seconds)
        records = answers["single"] + _REQUESTS * answers["batch"]
        require_records(home, sqlite_url(home), records)
    made = {"single": rates(taken["single"]), "batch": [_REQUESTS * rate for rate in rates(taken["batch"])]}
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "rounds": rounds,
        "round_s": seconds,
        "requests_in_a_batch": _REQUESTS,
        "body_bytes": len(body),
        "records": records,
        **{name: summary(rounds_) for name, rounds_ in taken.items()},
        **{f"{name}_records": spread(figures).to_dict("per_s") for name, figures in made.items()},
        "batch/single": ratio(made["batch"], made["single"]).to_dict() | {"bar": _BAR, "aim": _AIM},
    }


def _body() -> bytes:
    """A batch whose requests have keys of their own in each that is sent."""
    request = orjson.loads(reference_request())
    keys = [f"{KEY.decode()}-{number}" for number in range(_REQUESTS)]
    return orjson.dumps({"requests": [{"request": request, "idempotency_key": key} for key in keys]})


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    rows = [
        [f"{name}, records/s", *Spread.from_dict(result[f"{name}_records"], "per_s").cells(".0f")]
        for name in ("single", "batch")
    ]
    compared = result["batch/single"]
    rows.append(["batch/single, records/s", *Spread.from_dict(compared).cells(".2f")])
    rows += [row for name in ("single", "batch") for row in summary_rows(name, result[name])]
    met = "met" if compared["median"] >= compared["bar"] else "missed"
    return "\n\n".join(
        [
            f"Batch: {result['requests_in_a_batch']} requests in {result['body_bytes']} bytes, {result['workers']} "
            f"workers, {result['connections']} connections; {result['records']} records, one for each request",
            table(["", "median", "min..max"], rows),
            f"batch/single: the bar of {compared['bar']} is {met}; the aim is {compared['aim']}",
        ]
    )
