"""A decide whose rulebook id leads to a version by a route, compared with a decide that states the version.

Both go through Flask in one process, in turns of a few hundred. The processor times of the process are compared.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from itertools import count
from typing import Any, Final

import orjson

from api.app import create_app
from api.http.logs import open_log
from bench.disk import scratch
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.samples import decide_request, rulebook_body
from bench.subjects import SCOPE, sqlite_url
from bench.tables import table
from gate.clock import new_id, utc_now
from gate.ids import timestamp
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.records.changes import ROUTES, route_entry
from gate.rulebooks.rulebook import Rulebook, load

_ROUNDS: Final = 15
_QUICK_ROUNDS: Final = 3
_REQUESTS: Final = 400
_MOST: Final = 1.1
"""How many times the processor time of a pinned version a route may take."""

_PINNED: Final = "version named"
_ROUTED: Final = "by the route"


def run(*, quick: bool) -> dict[str, Any]:
    """Decides by a route and by a version in turns.

    Args:
        quick: Whether a few turns have to do.

    Raises:
        Mismatch: A request was not answered with 200, or not by the version that both lead to.
    """
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    with scratch() as directory, (directory / "log").open("wb") as log:
        home = directory / "home"
        create_instance(home, database_url=sqlite_url(home))
        instance = open_instance(load_settings(home, database_url=sqlite_url(home)))
        try:
            scope = instance.ledger.directory.create_scope(SCOPE, "unlimited", utc_now())
            key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
            rulebook = load(rulebook_body())
            instance.gate().sources.register(scope.scope_id, rulebook)
            _lead_to(instance, scope, rulebook)
            application = create_app(instance, log=open_log(stream=log)).test_client()
            turns = {
                name: _turn(application, key, reference, rulebook)
                for name, reference in {
                    _PINNED: {"rulebook_id": rulebook.rulebook_id, "version": rulebook.version},
                    _ROUTED: {"rulebook_id": rulebook.rulebook_id},
                }.items()
            }
            for turn in turns.values():
                turn()
            gc.collect()
            gc.freeze()
            try:
                taken = alternate(turns, rounds)
            finally:
                gc.unfreeze()
        finally:
            instance.close()
    beside = ratio(taken[_ROUTED], taken[_PINNED])
    return {
        "rounds": rounds,
        "requests": _REQUESTS,
        "processor_us": {name: spread(times).to_dict() for name, times in taken.items()},
        "route/version": beside.to_dict(),
        "goals": [
            {
                "what": "processor time by the route, compared with a named version",
                "figure": round(beside.median, 4),
                "unit": "times",
                "least": False,
                "goal": _MOST,
                "met": beside.median <= _MOST,
            }
        ],
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as a table."""
    rows = [[name, *Spread.from_dict(times).cells(".1f")] for name, times in result["processor_us"].items()]
    rows.append(["route / version", *Spread.from_dict(result["route/version"]).cells(".3f")])
    return "\n\n".join(
        [
            f"Deciding by a route, {result['rounds']} rounds of {result['requests']} requests each",
            table(["processor time of a decide in microseconds", "median", "min..max"], rows),
        ]
    )


def _lead_to(instance: Instance, scope: Scope, rulebook: Rulebook) -> None:
    """Gives the rulebook's id a route to it, as an applied migration does."""
    now = utc_now()
    with instance.ledger.changes.changing(scope.scope_id, scope.name, now) as change:
        entry = route_entry(
            entry_id=new_id("rte", now),
            rulebook_id=rulebook.rulebook_id,
            before=None,
            after={"version": rulebook.version, "hash": rulebook.hash},
            cause="apply",
            migration_id="first",
            approval_hash=None,
            evidence_hash="0" * 64,
            actor={"type": "service", "id": "bench"},
            note="",
            recorded_at=timestamp(now),
        )
        change.append(ROUTES, entry)


def _turn(application: Any, key: str, reference: Mapping[str, str], rulebook: Rulebook) -> Callable[[], float]:
    """What decides some hundred times and gives the microseconds of processor time that one took."""
    request = orjson.loads(decide_request())
    del request["rulebook"]
    body = orjson.dumps({**request, "rulebook_ref": reference})
    numbers = count()
    name = "-".join(reference)

    def decide() -> None:
        headers = {"x-api-key": key, "x-idempotency-key": f"{name}-{next(numbers)}"}
        response = application.post("/api/decide", data=body, content_type="application/json", headers=headers)
        if response.status_code != HTTPStatus.OK or response.json["policy_version"] != rulebook.version:
            raise Mismatch(f"A request was answered with {response.status}: {response.text}")

    def turn() -> float:
        begun = time.process_time()
        for _ in range(_REQUESTS):
            decide()
        return (time.process_time() - begun) / _REQUESTS * 1e6

    return turn
