"""A benchmark report over HTTP in an instance with 200 scopes that all opted in, and freezing a month of them.

Every scope has decisions of the month before last in its chain, and their outcomes. The lake contains them all, and the
service freezes the month. The benchmark report alternates with a confidence report, which counts only a few outcomes
and so shows the cost of a report without reading a lake. Freezing is timed over the unchanged lake, each time into an
empty folder.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np

from bench.disk import scratch
from bench.lakes import goal_lines, judged
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.samples import decide_request
from bench.subjects import WORKERS, gate, sqlite_url
from bench.tables import table
from gate.clock import utc_now
from gate.encoding.strict_json import parse
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from gate.policy.peers import beginning, decided_in, earlier, folded
from gate.records.reports.receipts import OUTCOMES
from workbench.lake.cohorts import frozen_months, keep_frozen, month_due
from workbench.lake.entries import Personal
from workbench.lake.upkeep import bring_up

_POLICY: Final = "pricing_exception"
_SCOPES: Final = 200
_QUICK_SCOPES: Final = 24
_DECISIONS: Final = 46
_ROUNDS: Final = 31
_QUICK_ROUNDS: Final = 7
_FREEZES: Final = 5
_APPENDING: Final = 16
_TIMEOUT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_REPORT_MS: Final = 300


def run(*, quick: bool) -> dict[str, Any]:
    """Takes the figures.

    Raises:
        Mismatch: The report does not tell what the scopes' outcomes give.
    """
    scopes, rounds = (_QUICK_SCOPES, _QUICK_ROUNDS) if quick else (_SCOPES, _ROUNDS)
    with scratch() as directory:
        home = directory / "home"
        month = month_due(utc_now())
        create_instance(home, base_url="http://127.0.0.1", now=beginning(earlier(month, 4)))
        instance = open_instance(load_settings(home, database_url=sqlite_url(home)))
        try:
            succeeded = [20 + number % (_DECISIONS - 19) for number in range(scopes)]
            with ThreadPoolExecutor(_APPENDING) as pool:
                keys = list(pool.map(partial(_live, instance, month), range(scopes), succeeded))
            freezes = _freezes(instance)
        finally:
            instance.close()
        with (
            gate(home, sqlite_url(home), directory, workers=WORKERS) as server,
            httpx.Client(
                base_url=f"http://127.0.0.1:{server.port}",
                headers={"x-api-key": keys[0]},
                timeout=_TIMEOUT_SECONDS,
                trust_env=False,
            ) as client,
        ):
            _await_report(client)
            subjects = {
                "benchmarks": partial(_benchmarks_ms, client, month, succeeded),
                "confidence": partial(_confidence_ms, client),
            }
            for ask in subjects.values():
                ask()
            taken = alternate(subjects, rounds)
    times = {name: spread(figures).to_dict("ms") for name, figures in taken.items()}
    return {
        "scopes": scopes,
        "rounds": rounds,
        "times": times,
        "benchmarks/confidence": ratio(taken["benchmarks"], taken["confidence"]).to_dict(),
        "freeze": spread(freezes).to_dict("ms"),
        "goals": [judged("benchmarks", spread(taken["benchmarks"]).median, _REPORT_MS, unit="ms")],
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    asked = [[name, *Spread.from_dict(figures, "ms").cells(".1f")] for name, figures in result["times"].items()]
    asked.append(["benchmarks/confidence, time", *Spread.from_dict(result["benchmarks/confidence"]).cells()])
    asked.append(["freezing a month", *Spread.from_dict(result["freeze"], "ms").cells(".0f")])
    return "\n\n".join(
        [
            f"Benchmarks of {result['scopes']} scopes over HTTP, {result['rounds']} alternating rounds",
            table(["ms", "median", "min..max"], asked),
            goal_lines(result["goals"]),
        ]
    )


def _live(instance: Instance, month: str, number: int, succeeded: int) -> str:
    """Lets a scope take part that decided two months ago, and whose outcomes came a month later; a key of it."""
    directory, made = instance.ledger.directory, beginning(decided_in(month))
    scope = directory.create_scope(f"scope-{number}", "unlimited", made)
    key, _ = directory.create_key(scope, FULL_ACCESS, None, made)
    instance.ledger.benchmarks.choose(scope, made, opted_in=True)
    authority = directory.authenticate(key, made)
    moment = [made + timedelta(days=1)]

    def clock() -> datetime:
        return moment[0]

    decider, lifecycle = instance.gate(clock), instance.lifecycle(clock)
    request = parse(decide_request())
    decisions = [
        decider.decide(authority, request, request_id="req_1").record["decision_id"] for _ in range(_DECISIONS)
    ]
    moment[0] = beginning(earlier(month, 1)) + timedelta(days=1)
    for at, decision_id in enumerate(decisions):
        status = "succeeded" if at < succeeded else "failed"
        lifecycle.report(authority, OUTCOMES, decision_id, {"outcome_status": status})
    return key


def _freezes(instance: Instance) -> list[float]:
    """Exports everything, and freezes the month so often; the milliseconds of each time."""
    lake, personal = instance.settings.lake_directory, Personal()
    lake.mkdir()
    for scope in instance.ledger.tail.scopes():
        for _ in bring_up(instance.ledger, lake, scope.scope_id, personal):
            pass
    return [_timed_freeze_ms(instance, lake, personal) for _ in range(_FREEZES)]


def _timed_freeze_ms(instance: Instance, lake: Path, personal: Personal) -> float:
    if frozen_months(lake):
        shutil.rmtree(lake / "benchmarks")
    started = time.perf_counter()
    keep_frozen(instance.ledger, lake, personal, utc_now())
    return (time.perf_counter() - started) * 1000


def _await_report(client: httpx.Client) -> None:
    """Waits until the analytics process answers."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while (answer := client.get(_path("benchmarks"))).status_code == httpx.codes.SERVICE_UNAVAILABLE:
        if time.monotonic() > deadline:
            raise Mismatch(f"No report was made: {answer.text[:800]}")
        time.sleep(_POLL_SECONDS)


def _benchmarks_ms(client: httpx.Client, month: str, succeeded: Sequence[int]) -> float:
    taken, report = _timed_get(client, _path("benchmarks"))
    across = report["cross_customer"]
    # The first scope asks; NumPy rounds and ranks the others anew.
    rates = np.clip(np.floor(np.array(succeeded[1:]) / _DECISIONS * 20 + 0.5), 1, 19)
    expected = {
        f"p{percent}": round(float(np.quantile(rates, percent / 100, method="inverted_cdf")) / 20, 2)
        for percent in (10, 25, 50, 75, 90)
    }
    told = (across["month"], across["scopes_at_least"], (across["percentiles"] or {}).get("success_rate"))
    if told != (month, folded(len(succeeded) - 1), expected):
        raise Mismatch(f"The others' success rates are {expected}, and the report says {across}.")
    return taken


def _confidence_ms(client: httpx.Client) -> float:
    taken, report = _timed_get(client, _path("confidence"))
    if report["coverage"]["decisions"] != _DECISIONS:
        raise Mismatch(f"{_DECISIONS} outcomes are in the ledger, and confidence counts {report['coverage']}.")
    return taken


def _path(report: str) -> str:
    return f"/api/decision/policies/{_POLICY}/{report}"


def _timed_get(client: httpx.Client, path: str) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    answer = client.get(path)
    taken = (time.perf_counter() - started) * 1000
    if answer.status_code != httpx.codes.OK:
        raise Mismatch(f"{path} was not answered with a report but with {answer.status_code}: {answer.text[:800]}")
    return taken, answer.json()
