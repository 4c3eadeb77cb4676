"""The processor time of one decide, stage by stage, compared with its budget.

The stages run in the order of the service, so that each finds the processor's caches as the stage before left them. The
rest of a whole request through the `WSGI` application is the framework's time.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from wsgiref.types import WSGIEnvironment

from flask import g
from flask.ctx import RequestContext

from api.app import create_app
from api.http.logs import open_log
from api.http.metrics import Metrics
from api.http.observation import observe
from api.http.responses import json_response
from api.http.turns import Turns
from api.routes.decisions import _headers
from bench.disk import scratch, sync_ms
from bench.measure import Mismatch, Spread, percentile
from bench.samples import reference_request, rulebook_body
from bench.subjects import SCOPE, sqlite_url
from bench.tables import table
from gate.clock import new_id, utc_now
from gate.decisions.claims import DECIDE, read_claim
from gate.decisions.decide import DecisionGate, _entry
from gate.decisions.stored import appended_record
from gate.encoding.canonical import content_hash, is_plain
from gate.encoding.strict_json import parse
from gate.ids import timestamp
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.processes import calm_garbage
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.chain.writer import Appended, NewEntry
from gate.records.documents import Record
from gate.records.envelope import input_material
from gate.records.record import Identity, build_record
from gate.records.request import hint, read_request
from gate.records.views import project
from gate.rulebooks.rulebook import load

_TURNS: Final = 1000
_QUICK_TURNS: Final = 100
_WARM_UP: Final = 50
_BATCH: Final = 4

_FRAMEWORK: Final = "routing and framework"
_KEY: Final = "recognition of the key, limits"
_READ: Final = "parse, shape, input hash"
_RECORD: Final = "evaluation, record, hashes, two signatures"
_APPEND: Final = f"append, in batches of {_BATCH}"
_ANSWER: Final = "projection, headers, log, counters"
_ALONE: Final = "append, alone"
_WHOLE: Final = "whole request, append alone"

BUDGET: Final = {_FRAMEWORK: 200, _KEY: 20, _READ: 40, _RECORD: 120, _APPEND: 100, _ANSWER: 40}
"""The processor time that each stage may take, in microseconds; docs/explanation/performance.md explains it."""

_TOGETHER: Final = 550


@dataclass(slots=True)
class _Laps:
    """Processor times of consecutive stages, in microseconds."""

    by_stage: dict[str, list[float]] = field(default_factory=dict)
    last: int = 0

    def start(self) -> None:
        self.last = time.thread_time_ns()

    def lap(self, stage: str, times: int = 1) -> None:
        now = time.thread_time_ns()
        self.by_stage.setdefault(stage, []).append((now - self.last) / 1000 / times)
        # Not `now`: what noting a lap costs is no part of the next one.
        self.last = time.thread_time_ns()


@dataclass(frozen=True, slots=True)
class _Setting:
    instance: Instance
    gate: DecisionGate
    service: Turns
    context: Callable[[WSGIEnvironment], RequestContext]
    key: str
    body: bytes


def run(*, quick: bool) -> dict[str, Any]:
    """Profiles on SQLite; as `profile`."""
    with scratch() as directory:
        disk_sync = sync_ms(directory).to_dict("ms")
        return {**profile(directory / "home", sqlite_url(directory / "home"), quick=quick), "disk_sync": disk_sync}


def profile(home: Path, database_url: str, *, quick: bool) -> dict[str, Any]:
    """Times the stages of a few thousand decisions by a reference, and as many whole requests, in turn.

    Args:
        home: Where to create the instance.
        database_url: Its ledger, which is empty or does not exist.
        quick: Whether to time only a few hundred decisions.

    Raises:
        Mismatch: The status of an answer was not 200, or the chain does not have one record for each decision.
    """
    turns = _QUICK_TURNS if quick else _TURNS
    with ExitStack() as stack:
        setting = _set_up(home, database_url, stack)
        for number in range(_WARM_UP):
            _turn(setting, f"warm-{number}", _Laps())
        # As a worker does once it has loaded everything.
        stack.callback(gc.set_threshold, *gc.get_threshold())
        calm_garbage()
        stack.callback(gc.unfreeze)
        laps = _Laps()
        for number in range(turns):
            _turn(setting, f"turn-{number}", laps)
        scope_id = setting.instance.ledger.directory.scope(SCOPE).scope_id
        records = setting.instance.ledger.entries.head(scope_id).size
    if records != (expected := (_WARM_UP + turns) * 2 * (_BATCH + 1)):
        raise Mismatch(f"{expected} decisions were made, and the chain holds {records}.")
    found = {stage: _summary(times) for stage, times in laps.by_stage.items()}
    median = {stage: times["median_us"] for stage, times in found.items()}
    alone = median[_ALONE] + sum(median[stage] for stage in BUDGET if stage not in (_FRAMEWORK, _APPEND))
    found[_FRAMEWORK] = {"median_us": round(median[_WHOLE] - alone, 2)}
    return {
        "decisions": turns * 2 * (_BATCH + 1),
        "stages": {stage: {**found[stage], "budget_us": budget} for stage, budget in BUDGET.items()},
        "together_us": round(sum(found[stage]["median_us"] for stage in BUDGET), 2),
        "budget_us": _TOGETHER,
        "append_alone": found[_ALONE],
        "whole_request": found[_WHOLE],
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as a table."""
    rows = [
        [stage, f"{times['median_us']:.0f}", _range(times), f"{times['budget_us']}"]
        for stage, times in result["stages"].items()
    ]
    rows.append(["together", f"{result['together_us']:.0f}", "", f"{result['budget_us']}"])
    rows += [
        [name, f"{times['median_us']:.0f}", _range(times), ""]
        for name, times in ((_ALONE, result["append_alone"]), (_WHOLE, result["whole_request"]))
    ]
    if "disk_sync" in result:
        synced = Spread.from_dict(result["disk_sync"], "ms")
        rows.append(["disk sync of 4 KB, wall (min..max)", f"{1000 * synced.median:.0f}", synced.cells(".3f")[1], ""])
    return "\n\n".join(
        [
            f"Processor time of one decide in process, {result['decisions']} decisions by a reference",
            table(["microseconds", "median", "p10..p90", "budget"], rows),
        ]
    )


def _set_up(home: Path, database_url: str, stack: ExitStack) -> _Setting:
    create_instance(home, database_url=database_url)
    instance = open_instance(load_settings(home, database_url=database_url))
    stack.callback(instance.close)
    scope = instance.ledger.directory.create_scope(SCOPE, "unlimited", utc_now())
    key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    gate = instance.gate()
    gate.sources.register(scope.scope_id, load(rulebook_body()))
    log = open_log(stream=stack.enter_context((home / "log").open("wb")))
    app = create_app(instance, log=log)
    return _Setting(instance, gate, Turns(app, 30), app.request_context, key, reference_request())


def _turn(setting: _Setting, name: str, laps: _Laps) -> None:
    """Decisions by stages, those of one turn appended together and one alone, and as many whole requests."""
    for together in (_BATCH, 1):
        prepared = [_prepare(setting, f"stages-{name}-{together}-{number}", laps) for number in range(together)]
        laps.start()
        outcomes = setting.instance.ledger.entries.append_all([entry for entry, _ in prepared])
        laps.lap(_ALONE if together == 1 else _APPEND, together)
        for (_, record), outcome in zip(prepared, outcomes, strict=True):
            if not isinstance(outcome, Appended):
                raise Mismatch("The idempotency key was used before.")
            _answer(setting, record, outcome, laps)
    for number in range(_BATCH + 1):
        laps.start()
        _post(setting, f"whole-{name}-{number}")
        laps.lap(_WHOLE)


def _prepare(setting: _Setting, idempotency_key: str, laps: _Laps) -> tuple[NewEntry, Record]:
    """What `api.routes.decisions.decide` and, in it, `DecisionGate.decide` do until the entry is appended."""
    gate = setting.gate
    request_id = new_id("req", utc_now())
    laps.start()
    authority = setting.instance.ledger.directory.recognize(setting.key, utc_now())
    authority.require("decide")
    laps.lap(_KEY)
    body = parse(setting.body)
    plain = is_plain(body)
    input_hash = content_hash(input_material(body), plain=plain)
    claim = read_claim(DECIDE, "", idempotency_key, input_hash)
    request = read_request(body, input_hash, now=utc_now(), plain=plain)
    laps.lap(_READ)
    scope_id = authority.scope_id
    rulebook = gate.sources.rulebook(scope_id, request)
    facts = gate.sources.facts(request, gate.sources.invocation(request))
    registered = gate.sources.registered(scope_id, rulebook, None) or gate.sources.register(scope_id, rulebook)
    signers, now = gate.signing()
    explained = rulebook.evaluator.explain(facts.values)
    identity = Identity(new_id("dec", now), request_id, idempotency_key, timestamp(now))
    schema_url = setting.instance.settings.schema_url
    record = build_record(
        request, rulebook, registered.metadata, facts, explained, identity, signers, schema_url=schema_url
    )
    entry = _entry(scope_id, request, record, claim, None)._replace(access_epoch=authority.access_epoch)
    laps.lap(_RECORD)
    return entry, record


def _answer(setting: _Setting, record: Record, appended: Appended, laps: _Laps) -> None:
    """What the service does for the answer: the view, its headers, its line in the log, and the counters."""
    with setting.context(_environ(setting, "")):
        vars(g).update(started=time.perf_counter(), request_id=record["request_id"], caller_request_id=None)
        laps.start()
        full = appended_record(record, appended)
        hint({"mode": "rulebook", "context": {}})
        response = json_response(
            project(full, "minimal"), headers={**_headers(full), "x-idempotency-status": "created"}
        )
        _metrics.decision(full["verdict"], "created")
        observe(response)
        laps.lap(_ANSWER)


_metrics: Final = Metrics()


def _post(setting: _Setting, idempotency_key: str) -> None:
    told: list[str] = []

    def start(status: str, _: Sequence[tuple[str, str]], __: object = None) -> Callable[[bytes], object]:
        told.append(status)
        return _unused

    answered: Iterable[bytes] = setting.service(_environ(setting, idempotency_key), start)
    body = b"".join(answered)
    if told != ["200 OK"]:
        raise Mismatch(f"A request was answered with {told[0]}: {body.decode()}")


def _unused(_: bytes) -> None:
    """What WSGI has for applications of old; nothing here writes with it."""


def _environ(setting: _Setting, idempotency_key: str) -> WSGIEnvironment:
    return {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/api/decide",
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8080",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(setting.body)),
        "HTTP_HOST": "127.0.0.1",
        "HTTP_X_API_KEY": setting.key,
        "HTTP_X_IDEMPOTENCY_KEY": idempotency_key,
        "wsgi.input": BytesIO(setting.body),
        "wsgi.errors": sys.stderr,
        "wsgi.url_scheme": "http",
    }


def _range(times: Mapping[str, float]) -> str:
    return f"{times['p10_us']:.0f}..{times['p90_us']:.0f}" if "p10_us" in times else ""


def _summary(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    shown = {"median_us": 50, "p10_us": 10, "p90_us": 90}
    return {name: round(percentile(ordered, percent), 2) for name, percent in shown.items()}
