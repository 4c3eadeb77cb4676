"""`POST /api/decide/batch` with 100 requests compared with single decisions by a reference, in records per second.

Both are also measured with random idempotency keys, which the ledger writes to more places.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from itertools import repeat
from typing import Any, Final

import orjson

from bench.disk import scratch
from bench.load import KEY, scattered
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
_SUBJECTS: Final = ("single", "batch", "single_scattered", "batch_scattered")
_BAR: Final = 4
_AIM: Final = 10
_ROUNDS: Final = 7
_SECONDS: Final = 3.0
_QUICK_ROUNDS: Final = 5
_QUICK_SECONDS: Final = 0.5


def run(*, quick: bool) -> dict[str, Any]:
    """Puts both endpoints under load in turn.

    Raises:
        Mismatch: An answer was wrong, or the ledger does not hold one record for each request.
    """
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    body = _body("bench")
    paths = repeat("/api/decide/batch")
    with scratch() as directory:
        home = directory / "batch"
        key = create_key(home, sqlite_url(home))
        register(home, sqlite_url(home))
        with gate(home, sqlite_url(home), directory, workers=WORKERS) as server:
            subjects = {
                "single": Subject(server, WORKERS, key, body=reference_request()),
                "batch": Subject(server, WORKERS, key, paths=paths, body=body),
                "single_scattered": Subject(server, WORKERS, key, body=reference_request(), idempotency_key=scattered),
                "batch_scattered": Subject(
                    server, WORKERS, key, paths=paths, body=_body(""), idempotency_key=scattered
                ),
            }
            taken, answers = under_load(subjects, rounds, seconds)
        records = sum(_records(name) * number for name, number in answers.items())
        require_records(home, sqlite_url(home), records)
    made = {name: [_records(name) * rate for rate in rates(rounds_)] for name, rounds_ in taken.items()}
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
        "batch/single, scattered": ratio(made["batch_scattered"], made["single_scattered"]).to_dict(),
    }


def _records(name: str) -> int:
    """How many records an answer of a subject stands for."""
    return _REQUESTS if name.startswith("batch") else 1


def _body(first: str) -> bytes:
    """A batch whose requests have keys of their own in each that is sent.

    Args:
        first: What all keys begin with; "" for beginnings that are far from each other.
    """
    request = orjson.loads(reference_request())
    beginnings = [first or sha256(b"%d" % number).hexdigest()[:8] for number in range(_REQUESTS)]
    keys = [f"{beginning}-{KEY.decode()}-{number}" for number, beginning in enumerate(beginnings)]
    return orjson.dumps({"requests": [{"request": request, "idempotency_key": key} for key in keys]})


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    rows = [
        [f"{name}, records/s", *Spread.from_dict(result[f"{name}_records"], "per_s").cells(".0f")] for name in _SUBJECTS
    ]
    compared = result["batch/single"]
    rows.append(["batch/single, records/s", *Spread.from_dict(compared).cells(".2f")])
    rows.append(["the same, scattered keys", *Spread.from_dict(result["batch/single, scattered"]).cells(".2f")])
    rows += [row for name in _SUBJECTS for row in summary_rows(name, result[name])]
    met = "met" if compared["median"] >= compared["bar"] else "missed"
    return "\n\n".join(
        [
            f"Batch: {result['requests_in_a_batch']} requests in {result['body_bytes']} bytes, {result['workers']} "
            f"workers, {result['connections']} connections; {result['records']} records, one for each request",
            table(["", "median", "min..max"], rows),
            f"batch/single: the bar of {compared['bar']} is {met}; the aim is {compared['aim']}",
        ]
    )
