"""One decide in process, stage by stage, and the same through Flask.

The stages are called as the service calls them and in its order, each decision going through all of them, so that each
stage meets the caches as the one before it leaves them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from flask.testing import FlaskClient

from api.app import create_app
from api.http.logs import open_log
from api.http.responses import json_response
from api.routes.decisions import _headers
from bench import bare
from bench.disk import scratch, sync_ms
from bench.measure import Mismatch, Spread, percentile
from bench.samples import decide_request
from bench.subjects import SCOPE, sqlite_url
from bench.tables import table
from gate.clock import new_id, utc_now
from gate.decisions.claims import DECIDE, Created, Proposal, read_claim, settle
from gate.decisions.decide import DecisionGate, _entry
from gate.encoding.canonical import content_hash, is_plain
from gate.encoding.strict_json import parse
from gate.ids import timestamp
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.access.caller import Caller
from gate.proof.chain import record_link
from gate.records.documents import Record
from gate.records.envelope import input_material
from gate.records.record import Identity, build_record
from gate.records.request import read_request
from gate.records.views import project

_REPETITIONS: Final = 4000
_QUICK_REPETITIONS: Final = 300
_WARM_UP: Final = 100

_REQUEST: Final = decide_request()

_TOTAL: Final = "POST /api/decide, test client"
_BARE: Final = "bare JSON route, test client"


@dataclass(slots=True)
class _Laps:
    """Times of consecutive stages, in microseconds."""

    by_stage: dict[str, list[float]] = field(default_factory=dict)
    last: int = 0

    def start(self) -> None:
        self.last = time.perf_counter_ns()

    def lap(self, stage: str) -> None:
        now = time.perf_counter_ns()
        self.by_stage.setdefault(stage, []).append((now - self.last) / 1000)
        # Not `now`: what noting a lap costs is no part of the next one.
        self.last = time.perf_counter_ns()


@dataclass(frozen=True, slots=True)
class _Setting:
    instance: Instance
    gate: DecisionGate
    key: str
    scope_id: str


def run(*, quick: bool) -> dict[str, Any]:
    """Profiles on SQLite; as `profile`."""
    with scratch() as directory:
        disk_sync = sync_ms(directory).to_dict("ms")
        return {**profile(directory / "home", sqlite_url(directory / "home"), quick=quick), "disk_sync": disk_sync}


def profile(home: Path, database_url: str, *, quick: bool) -> dict[str, Any]:
    """Times the stages of a few thousand decisions, and as many requests to both applications, in turn.

    Args:
        home: Where to create the instance.
        database_url: Its ledger, empty or not there yet.
        quick: Whether a few hundred have to do.

    Raises:
        Mismatch: A request was not answered with 200, or the chain does not hold one record for each decision.
    """
    repetitions = _QUICK_REPETITIONS if quick else _REPETITIONS
    with ExitStack() as stack:
        setting = _set_up(home, database_url, stack)
        log = open_log(stream=stack.enter_context((home / "log").open("wb")))
        application = create_app(setting.instance, log=log).test_client()
        plain = bare.create_app().test_client()
        # The first request registers the rulebook, so that the stages find it.
        _post(application, setting.key, "first")
        for number in range(_WARM_UP):
            _turn(setting, application, plain, f"warm-{number}", _Laps())
        # As a worker does once it has loaded everything.
        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)
        laps = _Laps()
        for number in range(repetitions):
            _turn(setting, application, plain, f"turn-{number}", laps)
        records = setting.instance.ledger.entries.head(setting.scope_id).size
    if records != 1 + 2 * (_WARM_UP + repetitions):
        raise Mismatch(f"{1 + 2 * (_WARM_UP + repetitions)} decisions were made, and the chain holds {records}.")
    total, plain_total = laps.by_stage.pop(_TOTAL), laps.by_stage.pop(_BARE)
    return {
        "repetitions": repetitions,
        "stages": {stage: _summary(times) for stage, times in laps.by_stage.items()},
        "stages_together": _summary([sum(times) for times in zip(*laps.by_stage.values(), strict=True)]),
        "flask_total": _summary(total),
        "flask_bare": _summary(plain_total),
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as a table."""
    whole = result["flask_total"]["median_us"]
    named = {
        **result["stages"],
        "stages together": result["stages_together"],
        _TOTAL: result["flask_total"],
        _BARE: result["flask_bare"],
    }
    rows = [
        [name, f"{times['median_us']:.1f}", f"{times['p10_us']:.1f}..{times['p90_us']:.1f}", f"{share:.1f} %"]
        for name, times in named.items()
        for share in [100 * times["median_us"] / whole]
    ]
    if "disk_sync" in result:
        synced = Spread.from_dict(result["disk_sync"], "ms")
        sync_us = Spread(1000 * synced.median, 1000 * synced.lowest, 1000 * synced.highest)
        rows.append(["disk sync of 4 KB (min..max)", *sync_us.cells(".1f"), ""])
    return "\n\n".join(
        [
            f"Profile of one decide in process, {result['repetitions']} repetitions",
            table(["microseconds", "median", "p10..p90", "of the whole"], rows),
        ]
    )


def _set_up(home: Path, database_url: str, stack: ExitStack) -> _Setting:
    create_instance(home, database_url=database_url)
    instance = open_instance(load_settings(home, database_url=database_url))
    stack.callback(instance.close)
    scope = instance.ledger.directory.create_scope(SCOPE, "unlimited", utc_now())
    key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    return _Setting(instance, instance.gate(), key, scope.scope_id)


def _turn(setting: _Setting, application: FlaskClient, plain: FlaskClient, name: str, laps: _Laps) -> None:
    laps.start()
    _decide(setting, f"stages-{name}", laps.lap)
    laps.start()
    _post(application, setting.key, f"flask-{name}")
    laps.lap(_TOTAL)
    _post(plain, setting.key, f"bare-{name}")
    laps.lap(_BARE)


def _decide(setting: _Setting, idempotency_key: str, lap: Callable[[str], None]) -> None:
    """What the service does for a request: `api.routes.decisions.decide` and, in it, `DecisionGate.decide`."""
    gate = setting.gate
    request_id = new_id("req", utc_now())
    authority = setting.instance.ledger.directory.recognize(setting.key, utc_now())
    authority.require("decide")
    lap("recognition of the key")
    body = parse(_REQUEST)
    lap("strict parse")
    plain = is_plain(body)
    input_hash = content_hash(input_material(body), plain=plain)
    claim = read_claim(DECIDE, "", idempotency_key, input_hash)
    lap("input hash")
    request = read_request(body, input_hash, plain=plain)
    lap("request shape and conflicts")
    rulebook = gate.sources.rulebook(authority.scope_id, request)
    lap("rulebook through the cache")
    facts = gate.sources.facts(request, gate.sources.invocation(request))
    scope_id = authority.scope_id
    registered = gate.sources.registered(scope_id, rulebook, None) or gate.sources.register(scope_id, rulebook)
    signers, now = gate.signing()
    lap("registration and signing keys")
    explained = rulebook.evaluator.explain(facts.values)
    lap("evaluation with explanation")
    identity = Identity(new_id("dec", now), request_id, idempotency_key, timestamp(now))
    schema_url = setting.instance.settings.schema_url
    record = build_record(
        request, rulebook, registered.metadata, facts, explained, identity, signers, schema_url=schema_url
    )
    lap("record (hashes, two signatures)")
    entry = _entry(scope_id, request, record, claim, None)
    lap("entry (bytes to store)")
    caller = Caller(setting.instance.ledger.directory, authority, "decide", utc_now)
    settled = settle(setting.instance.ledger.entries, caller, Proposal(claim, lambda: (entry, record)))
    lap("append with sync")
    if not isinstance(settled, Created):
        raise Mismatch("The idempotency key was used before.")
    full: Record = {**record, "audit_chain": record_link(settled.appended.link)}
    json_response(project(full, "full"), headers={**_headers(full), "x-idempotency-status": "created"})
    lap("projection, JSON and headers")


def _post(client: FlaskClient, key: str, idempotency_key: str) -> None:
    headers = {"x-api-key": key, "x-idempotency-key": idempotency_key}
    response = client.post("/api/decide", data=_REQUEST, content_type="application/json", headers=headers)
    if response.status_code != HTTPStatus.OK:
        raise Mismatch(f"A request was answered with {response.status}: {response.text}")


def _summary(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    shown = {"median_us": 50, "p10_us": 10, "p90_us": 90}
    return {name: round(percentile(ordered, percent), 2) for name, percent in shown.items()}
