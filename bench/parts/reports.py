"""Reports on policies over large lakes: their cost, compared with other libraries, and their effect on decisions.

`bench.lakes` builds the lakes. The service reads them as its own, because their manifests have the head of a small
chain in its ledger. The effectiveness report is requested over HTTP: for a policy alone in its scope, and for a policy
of the same size among many others in the same files. In the same rounds, the same server answers a confidence report,
which counts only a few outcomes and so shows the cost of a report without counting.

The roll-up of all policies is compared with DuckDB, with one thread per processor, and with pandas, on the same files.
Deciding is put under load in three ways. First the analytics process is idle, then it exports the new decisions. Last
it exports while a client requests the report of the large policy again and again. The delay of the lake is
measured while decisions arrive at a steady rate.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx

from api.cli.options import instance_at
from bench.disk import scratch
from bench.lakes import INCIDENT, Contents, Expected, Policy, goal_lines, judged, write_cases
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.samples import decide_request
from bench.servers import Server
from bench.subjects import (
    CONNECTIONS,
    SCOPE,
    WORKERS,
    Round,
    Subject,
    create_key,
    gate,
    rates,
    require_records,
    sqlite_url,
    summary,
    summary_rows,
)
from bench.tables import table
from gate.clock import new_id, utc_now
from gate.encoding.strict_json import parse
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.reads.tail import FollowedScope
from gate.policy.effectiveness import Standing
from gate.proof.chain import Head
from gate.records.reports.receipts import OUTCOMES
from workbench.engines.roll_up import roll_up
from workbench.lake.manifest import load
from workbench.lake.reader import Lake, open_lake

_QUICK_PART: Final = 20

# The policy of the requests that the load makes, so that its report reads their tail.
_POLICY: Final = "pricing_exception"
_RARE: Final = Policy("rare_exception", 100)
_OUTCOMES: Final = 1_000_000
_OTHERS: Final = 20
_OTHERS_OUTCOMES: Final = 10_000_000
_ROLLED_OUTCOMES: Final = 5_000_000
_LIMIT: Final = 10_000
# The scope of one large policy, which is also decided in, and that of the same among others.
_ALONE: Final = "alone"
_AMONG: Final = "among"
_FIRST_DECISIONS: Final = 12

_REPORT_ROUNDS: Final = 31
_QUICK_REPORT_ROUNDS: Final = 7
_ROLL_UP_ROUNDS: Final = 11
_QUICK_ROLL_UP_ROUNDS: Final = 3
_LOAD_ROUNDS: Final = 9
_LOAD_SECONDS: Final = 4.0
_QUICK_LOAD_ROUNDS: Final = 3
_QUICK_LOAD_SECONDS: Final = 1.5

# A lone policy's report so often before its process's memory is looked at.
_REPORTS_BEFORE: Final = 10
_TIMEOUT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05

_REPORT_MS: Final = 150
_ANOMALIES_MS: Final = 500
_AMONG_RATIO: Final = 1.5
_MEMORY_MB: Final = 1024
_DUCKDB_RATIO: Final = 2.0
_PANDAS_RATIO: Final = 3.0
_P99_RATIO: Final = 2.0

_PARTS: Final = {"versions": "policy_version", "verdicts": "verdict", "rules": "rule", "weeks": "week"}
_BY: Final = ("scope_id", "policy_id", "outcome_status")
_CONDITIONS: Final = ("still", "exporting", "beside")

# How far the lake falls behind at a steady rate: how often that is looked at, and how many requests go out at once.
_STEADY_PER_S: Final = 1_000
_STEADY_SECONDS: Final = 60.0
_QUICK_STEADY_SECONDS: Final = 8.0
_LOOK_SECONDS: Final = 0.2
_AT_ONCE: Final = 50
_LAG_S: Final = 10
_EXPORTING_RATIO: Final = 0.95

Counted = Mapping[tuple[str, str | None], int]


@dataclass(frozen=True, slots=True)
class _Scope:
    """A scope of the service with a large lake.

    Attributes:
        key: A key of it.
        contents: What its lake was made of.
    """

    key: str
    contents: Contents


def run(*, quick: bool) -> dict[str, Any]:
    """Measures reports, the roll-up, and deciding during reports.

    Raises:
        Mismatch: An answer was wrong, subjects differ, or the analytics process ended too early.
    """
    part = _QUICK_PART if quick else 1
    with scratch() as directory:
        rolled = _rolled(
            directory / "rolled", _ROLLED_OUTCOMES // part, _QUICK_ROLL_UP_ROUNDS if quick else _ROLL_UP_ROUNDS
        )
        shutil.rmtree(directory / "rolled")
        home = directory / "home"
        scopes = _build(home, _OUTCOMES // part, _OTHERS_OUTCOMES // part)
        with gate(home, sqlite_url(home), directory, workers=WORKERS) as server:
            pid = _analytics_of(server)
            reports = _reports(server, pid, scopes, _QUICK_REPORT_ROUNDS if quick else _REPORT_ROUNDS)
            rounds, seconds = (_QUICK_LOAD_ROUNDS, _QUICK_LOAD_SECONDS) if quick else (_LOAD_ROUNDS, _LOAD_SECONDS)
            deciding = _deciding(server, pid, home, scopes[_ALONE], rounds, seconds)
            lag = _lag(server, home, scopes[_ALONE], _QUICK_STEADY_SECONDS if quick else _STEADY_SECONDS)
            if _analytics_of(server) != pid:
                raise Mismatch("The analytics process ended while it was measured, and another was started.")
        require_records(home, sqlite_url(home), 2 * _FIRST_DECISIONS + deciding["answers"] + lag["answers"])
    times, memory = reports["times"], reports["memory_mb"]
    goals = [
        judged(_of(reports, _ALONE), Spread.from_dict(times[_ALONE], "ms").median, _REPORT_MS, unit="ms"),
        judged("the same among the others", reports["among/alone"]["median"], _AMONG_RATIO, unit="times"),
        judged(
            f"anomalies of {reports['lakes'][_ALONE]['decisions']:,} decisions",
            Spread.from_dict(times[f"anomalies {_ALONE}"], "ms").median,
            _ANOMALIES_MS,
            unit="ms",
        ),
        judged("peak memory after the first", memory["one_policy"], _MEMORY_MB, unit="MB"),
        judged("roll-up compared with DuckDB", rolled["roll_up/duckdb"]["median"], _DUCKDB_RATIO, unit="times"),
        judged(
            "pandas compared with the roll-up",
            rolled["pandas/roll_up"]["median"],
            _PANDAS_RATIO,
            unit="times",
            least=True,
        ),
        judged(
            "99th percentile of decide, during reports",
            deciding["p99 beside/still"]["median"],
            _P99_RATIO,
            unit="times",
        ),
        judged(
            "rate of decide, during the export",
            deciding["rate exporting/still"]["median"],
            _EXPORTING_RATIO,
            unit="times",
            least=True,
        ),
        judged(f"lake lag at {_STEADY_PER_S:,} decisions/s", lag["longest_s"], _LAG_S, unit="s"),
    ]
    return {"reports": reports, "rolled": rolled, "deciding": deciding, "lag": lag, "goals": goals}


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    reports, rolled, deciding, lag = (result[name] for name in ("reports", "rolled", "deciding", "lag"))
    asked = [[name, *Spread.from_dict(figures, "ms").cells(".1f")] for name, figures in reports["times"].items()]
    asked.append(["among/alone, time", *Spread.from_dict(reports["among/alone"]).cells()])
    counted = [
        [f"{name}, s", *Spread.from_dict(figures, "s").cells(".3f")] for name, figures in rolled["times"].items()
    ]
    counted += [
        [f"{name}, time", *Spread.from_dict(rolled[name]).cells()] for name in ("roll_up/duckdb", "pandas/roll_up")
    ]
    load = [row for name in _CONDITIONS for row in summary_rows(name, deciding[name])]
    for name in ("p50", "p99", "rate"):
        load.append([f"{name} beside/still", *Spread.from_dict(deciding[f"{name} beside/still"]).cells()])
    load.append(["rate exporting/still", *Spread.from_dict(deciding["rate exporting/still"]).cells()])
    load.append(["a report meanwhile, ms", *Spread.from_dict(deciding["report"], "ms").cells(".0f")])
    memory = reports["memory_mb"]
    return "\n\n".join(
        [
            *(
                f"Scope {name}: {lake['rows']:,} cases in {lake['files']} files of {lake['bytes'] / 1e6:,.0f} MB in all"
                for name, lake in reports["lakes"].items()
            ),
            f"Effectiveness and anomalies over HTTP, {reports['rounds']} alternating rounds of one request each",
            table(["ms", "median", "min..max"], asked),
            f"Peak memory of the analytics process: {memory['start']:.0f} MB before the first report, "
            f"{memory['one_policy']:.0f} MB after those of scope {_ALONE}, {memory['all']:.0f} MB after all",
            f"Roll-up of {rolled['outcomes']:,} outcomes in {rolled['files']} files, {rolled['policies']} policies, "
            f"{rolled['threads']} threads, {rolled['rounds']} alternating rounds",
            table(["", "median", "min..max"], counted),
            f"Deciding: {WORKERS} workers, {CONNECTIONS} connections, {deciding['rounds']} alternating rounds of "
            f"{deciding['round_s']:g} s; beside it {deciding['reports']} reports, and {deciding['exported']:,} entries "
            f"exported",
            table(["", "median", "min..max"], load),
            f"The lake at {lag['rate_per_s']:,.0f} decisions/s for {lag['seconds']:.0f} s: behind by "
            f"{lag['median_s']:.1f} s at the median and {lag['longest_s']:.1f} s at most",
            goal_lines(result["goals"]),
        ]
    )


def _of(reports: Mapping[str, Any], scope: str) -> str:
    return f"effectiveness of {reports['lakes'][scope]['decisions']:,} decisions"


def _build(home: Path, outcomes: int, others: int) -> dict[str, _Scope]:
    """An instance with two scopes, each with a small chain and a lake that says it is made from it."""
    keys = {_ALONE: create_key(home, sqlite_url(home))}
    with instance_at(home, sqlite_url(home)) as instance:
        directory = instance.ledger.directory
        scope = directory.create_scope(_AMONG, "unlimited", utc_now())
        keys[_AMONG], _ = directory.create_key(scope, FULL_ACCESS, None, utc_now())
        for key in keys.values():
            _begin_chain(instance, key)
        policies = {_ALONE: [Policy(_POLICY, outcomes), _RARE]}
        policies[_AMONG] = [*policies[_ALONE], *_others(others)]
        watched = [policy.policy_id for policy in policies[_ALONE]]
        lake = instance.settings.lake_directory
        return {
            name: _Scope(keys[name], write_cases(lake, scope, policies[name], seed=number, watched=watched))
            for number, scope in enumerate(instance.ledger.tail.scopes())
            for name in [_ALONE if scope.name == SCOPE else _AMONG]
        }


def _begin_chain(instance: Instance, key: str) -> None:
    authority = instance.ledger.directory.authenticate(key, utc_now())
    decider, lifecycle = instance.gate(), instance.lifecycle()
    for _ in range(_FIRST_DECISIONS):
        made = decider.decide(authority, parse(decide_request()), request_id=new_id("req", utc_now()))
        lifecycle.report(authority, OUTCOMES, made.record["decision_id"], {"outcome_status": "succeeded"})


def _others(outcomes: int) -> list[Policy]:
    return [Policy(f"policy_{number:02d}", outcomes // _OTHERS) for number in range(_OTHERS)]


def _analytics_of(server: Server) -> int:
    """The analytics process of a server."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        # It is a thread's child, and those are listed by thread.
        for children in Path(f"/proc/{server.pid}/task").glob("*/children"):
            with suppress(FileNotFoundError):
                for pid in map(int, children.read_text().split()):
                    if b"api.analytics.process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        return pid
        time.sleep(_POLL_SECONDS)
    raise Mismatch("The server has no analytics process.")


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024, 1)


def _client(port: int, key: str) -> httpx.Client:
    return httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"x-api-key": key}, timeout=_TIMEOUT_SECONDS, trust_env=False
    )


def _path(policy_id: str, report: str = "effectiveness", **query: int) -> str:
    named = "&".join(f"{name}={value}" for name, value in query.items())
    return f"/api/decision/policies/{policy_id}/{report}" + (f"?{named}" if named else "")


def _reports(server: Server, pid: int, scopes: Mapping[str, _Scope], rounds: int) -> dict[str, Any]:
    """Asks for each report in turn, every one of them counted before, so that files and libraries are warm."""
    clients = {name: _client(server.port, scope.key) for name, scope in scopes.items()}
    try:
        _await_report(clients[_ALONE])
        start = _peak_mb(pid)
        warm = {name: _subjects(name, clients[name], scopes[name].contents) for name in (_ALONE, _AMONG)}
        for ask in _REPORTS_BEFORE * list(warm[_ALONE].values()):
            ask()
        one_policy = _peak_mb(pid)
        subjects = {name: ask for of in warm.values() for name, ask in of.items()}
        subjects["confidence"] = partial(_confidence_ms, clients[_ALONE])
        for ask in subjects.values():
            ask()
        taken = alternate(subjects, rounds)
        memory = {"start": start, "one_policy": one_policy, "all": _peak_mb(pid)}
    finally:
        for client in clients.values():
            client.close()
    return {
        "rounds": rounds,
        "lakes": {
            name: {
                "rows": of.contents.rows,
                "files": of.contents.files,
                "bytes": of.contents.bytes,
                "decisions": of.contents.standings[_POLICY].decisions,
                "outcomes": of.contents.standings[_POLICY].reported,
            }
            for name, of in scopes.items()
        },
        "times": {name: spread(times).to_dict("ms") for name, times in taken.items()},
        "among/alone": ratio(taken[_AMONG], taken[_ALONE]).to_dict(),
        "memory_mb": memory,
    }


def _await_report(client: httpx.Client) -> None:
    """Waits until the analytics process answers, with a report that counts nothing."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while (answer := client.get(_path("nothing"))).status_code == httpx.codes.SERVICE_UNAVAILABLE:
        if time.monotonic() > deadline:
            raise Mismatch(f"No report was made: {answer.text[:800]}")
        time.sleep(_POLL_SECONDS)


def _subjects(scope: str, client: httpx.Client, contents: Contents) -> dict[str, Callable[[], float]]:
    """The reports of a scope, each checked against what was drawn; they give the milliseconds that they took."""
    large, rare = contents.watched[_POLICY], contents.watched[_RARE.policy_id]
    limit = min(_LIMIT, large.standing.decisions)
    return {
        scope: partial(_effectiveness_ms, client, _path(_POLICY), partial(_check, large)),
        f"{scope}, limit={limit}": partial(
            _effectiveness_ms, client, _path(_POLICY, limit=limit), partial(_check_standing, large.latest(limit))
        ),
        f"{scope}, {rare.standing.decisions} decisions": partial(
            _effectiveness_ms, client, _path(_RARE.policy_id), partial(_check, rare)
        ),
        f"anomalies {scope}": partial(_anomalies_ms, client, large.standing.decisions),
    }


def _anomalies_ms(client: httpx.Client, decisions: int) -> float:
    """The anomaly report, which has to find when many decisions went wrong."""
    taken, report = _timed_get(client, _path(_POLICY, "anomalies"))
    found = [of["window"] for of in report["anomalies"] if of["kind"] == "outcome_shift" and of["severity"] == "high"]
    windows = [tuple(date.fromisoformat(window[end][:10]) for end in ("from", "to")) for window in found]
    if windows != [INCIDENT] or report["coverage"]["decisions"] != decisions:
        raise Mismatch(f"The anomaly report of {decisions} decisions has {INCIDENT} and nothing else: {windows}.")
    return taken


def _effectiveness_ms(client: httpx.Client, path: str, check: Callable[[Mapping[str, Any]], None]) -> float:
    taken, report = _timed_get(client, path)
    check(report)
    return taken


def _confidence_ms(client: httpx.Client) -> float:
    taken, report = _timed_get(client, _path(_POLICY, "confidence"))
    if report["outcomes"]["succeeded"] != _FIRST_DECISIONS:
        raise Mismatch(f"{_FIRST_DECISIONS} outcomes are in the ledger, and confidence counts {report['outcomes']}.")
    return taken


def _timed_get(client: httpx.Client, path: str) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    answer = client.get(path)
    taken = (time.perf_counter() - started) * 1000
    if answer.status_code != httpx.codes.OK:
        raise Mismatch(f"{path} was not answered with a report but with {answer.status_code}: {answer.text[:800]}")
    return taken, answer.json()


def _check(expected: Expected, report: Mapping[str, Any]) -> None:
    _check_standing(expected.standing, report)
    for part, member in _PARTS.items():
        found = {row[member]: row["outcomes"] for row in report[part]}
        if found != {name: standing._asdict() for name, standing in expected.parts[part].items()}:
            raise Mismatch(f"The report counts other {part} than were drawn: {found}")
    metrics = {
        row["name"]: tuple(row[name] for name in ("decisions", "min", "median", "max")) for row in report["metrics"]
    }
    if metrics != expected.metrics:
        raise Mismatch(f"{expected.metrics} was measured, and the report says {metrics}.")


def _check_standing(expected: Standing, report: Mapping[str, Any]) -> None:
    if report["outcomes"] != expected._asdict():
        raise Mismatch(f"The report counts {report['outcomes']}, and NumPy {expected._asdict()}.")


def _rolled(lake: Path, outcomes: int, rounds: int) -> dict[str, Any]:
    """Counts all policies' outcomes with each library in turn."""
    import duckdb

    lake.mkdir()
    head = Head("rolled", 1, "0" * 64, "0" * 64)
    contents = write_cases(lake, FollowedScope("rolled", "rolled", head), _others(outcomes), seed=1)
    opened, threads = open_lake(lake), os.cpu_count() or 1
    files = [str(file) for file in opened.files("cases")]
    with duckdb.connect(config={"threads": threads}) as connection:
        counts: dict[str, Callable[[], Counted]] = {
            "roll_up": partial(_count_with_roll_up, opened),
            "duckdb": partial(_count_with_duckdb, connection, files),
            "pandas": partial(_count_with_pandas, files),
        }
        drawn = {
            (policy_id, None if status == "unreported" else status): number
            for policy_id, standing in contents.standings.items()
            for status, number in standing._asdict().items()
            if number
        }
        taken = alternate(
            {name: partial(_timed_count_s, name, count, drawn) for name, count in counts.items()}, rounds + 1
        )
    # The first round of each is its warm-up.
    times = {name: figures[1:] for name, figures in taken.items()}
    return {
        "rounds": rounds,
        "threads": threads,
        "policies": len(contents.standings),
        "outcomes": sum(standing.reported for standing in contents.standings.values()),
        "files": contents.files,
        "times": {name: spread(figures).to_dict("s") for name, figures in times.items()},
        "roll_up/duckdb": ratio(times["roll_up"], times["duckdb"]).to_dict(),
        "pandas/roll_up": ratio(times["pandas"], times["roll_up"]).to_dict(),
    }


def _timed_count_s(name: str, count: Callable[[], Counted], drawn: Counted) -> float:
    started = time.perf_counter()
    found = count()
    taken = time.perf_counter() - started
    if found != drawn:
        raise Mismatch(f"{name} counts other outcomes than were drawn: {found}")
    return taken


def _count_with_roll_up(lake: Lake) -> Counted:
    return {
        (row["policy_id"], None if status == "unreported" else status): row[status]
        for row in roll_up(lake).frame.rows(named=True)
        for status in Standing._fields
        if row[status]
    }


def _count_with_duckdb(connection: Any, files: Sequence[str]) -> Counted:
    query = "SELECT scope_id, policy_id, outcome_status, count(*) FROM read_parquet($1) GROUP BY ALL"
    return {
        (policy_id, status): number for _, policy_id, status, number in connection.execute(query, [files]).fetchall()
    }


def _count_with_pandas(files: Sequence[str]) -> Counted:
    import pandas as pd

    counted = pd.read_parquet(files, columns=list(_BY)).groupby(list(_BY), observed=True, dropna=False).size()
    return {
        (policy_id, None if pd.isna(status) else status): int(number)
        for (_, policy_id, status), number in counted.items()
    }


def _deciding(server: Server, pid: int, home: Path, scope: _Scope, rounds: int, seconds: float) -> dict[str, Any]:
    """The same load with the analytics process standing still and with it working, in turn."""
    subject = Subject(server, WORKERS, scope.key)
    expected = scope.contents.standings[_POLICY].reported
    with instance_at(home, sqlite_url(home)) as instance, _asking(server.port, scope.key, expected) as asking:

        def still() -> Round:
            _settle(instance)
            os.kill(pid, signal.SIGSTOP)
            try:
                return subject.round(seconds=seconds)
            finally:
                os.kill(pid, signal.SIGCONT)

        def beside() -> Round:
            before.append(_exported(instance))
            asking.send(True)
            taken = subject.round(seconds=seconds)
            asking.send(False)
            answered.append(_answered(asking))
            exported.append(_exported(instance) - before[-1])
            return taken

        def exporting() -> Round:
            return subject.round(seconds=seconds)

        answered: list[Sequence[float]] = []
        before: list[int] = []
        exported: list[int] = []
        untold = [still(), exporting(), beside()]
        answered.clear()
        exported.clear()
        taken = alternate({"still": still, "exporting": exporting, "beside": beside}, rounds)
        if not sum(exported):
            # It has its turn every two seconds, which short rounds can miss, and exports then what they made.
            _settle(instance)
            exported.append(_exported(instance) - before[-1])
    if not all(answered) or not sum(exported):
        raise Mismatch(
            f"Beside the load {sum(map(len, answered))} reports were made and {sum(exported)} entries exported."
        )
    latencies = {
        percent: [[round_.load.latency_ms(percent) for round_ in taken[name]] for name in ("beside", "still")]
        for percent in (50, 99)
    }
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "rounds": rounds,
        "round_s": seconds,
        "answers": sum(round_.load.answers for round_ in chain(untold, *taken.values())),
        "reports": sum(map(len, answered)),
        "report": spread([ms for times in answered for ms in times]).to_dict("ms"),
        "exported": sum(exported),
        **{name: summary(taken[name]) for name in _CONDITIONS},
        **{f"p{percent} beside/still": ratio(*pair).to_dict() for percent, pair in latencies.items()},
        **{
            f"rate {name}/still": ratio(rates(taken[name]), rates(taken["still"])).to_dict()
            for name in ("exporting", "beside")
        },
    }


def _lag(server: Server, home: Path, scope: _Scope, seconds: float) -> dict[str, Any]:
    """By how many seconds the lake is behind the ledger while decisions come at a steady rate."""
    answers = 0
    lags: list[float] = []
    # When the chain had which length, as long as the lake has not.
    heads: list[tuple[float, int]] = []
    with (
        instance_at(home, sqlite_url(home)) as instance,
        closing(Subject(server, WORKERS, scope.key).connect()) as client,
    ):
        _settle(instance)
        started = looked = time.perf_counter()
        while (now := time.perf_counter()) - started < seconds:
            if now - looked >= _LOOK_SECONDS:
                looked = now
                heads.append((now, instance.ledger.entries.head(_scope_id(instance)).size))
                exported = _exported(instance)
                heads = [head for head in heads if head[1] > exported]
                lags.append(now - heads[0][0] if heads else 0.0)
            if answers + _AT_ONCE <= (now - started) * _STEADY_PER_S:
                answers += client.run(requests=_AT_ONCE).answers
            else:
                time.sleep(_AT_ONCE / _STEADY_PER_S / 10)
        taken = time.perf_counter() - started
        _settle(instance)
    return {
        "answers": answers,
        "seconds": round(taken, 1),
        "rate_per_s": round(answers / taken, 1),
        "median_s": round(median(lags), 2),
        "longest_s": round(max(lags), 2),
    }


def _settle(instance: Instance) -> None:
    """Waits until the lake holds all that the ledger does, so that nobody is stopped in the middle of a transaction."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while _exported(instance) < instance.ledger.entries.head(_scope_id(instance)).size:
        if time.monotonic() > deadline:
            raise Mismatch(f"The lake was not brought up to the ledger within {_TIMEOUT_SECONDS:g} seconds.")
        time.sleep(_POLL_SECONDS)


def _exported(instance: Instance) -> int:
    manifest = load(instance.settings.lake_directory, _scope_id(instance))
    return 0 if manifest is None else manifest.position


def _scope_id(instance: Instance) -> str:
    return instance.ledger.directory.scope(SCOPE).scope_id


@contextmanager
def _asking(port: int, key: str, expected: int) -> Iterator[Connection]:
    """A process that asks for the large policy's report while it is told to, and takes nothing from the load client."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_ask, args=(port, key, expected, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        _answered(ours)
        yield ours
    finally:
        process.kill()
        process.join()
        ours.close()


def _ask(port: int, key: str, expected: int, orders: Connection) -> None:
    """Told True, it asks again and again until it is told False, and then tells how long each answer took.

    It begins by telling of none, once it is ready; a text tells what went wrong.
    """
    # A terminal's Ctrl-C reaches every process; the first one stops this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with _client(port, key) as client, suppress(EOFError, BrokenPipeError):
        orders.send([])
        while orders.recv():
            times: list[float] = []
            try:
                # Once at least, however short the round.
                while not times or not orders.poll():
                    taken, report = _timed_get(client, _path(_POLICY))
                    if (found := sum(report["outcomes"].values()) - report["outcomes"]["unreported"]) != expected:
                        raise Mismatch(f"There are {expected} outcomes, and the report counts {found}.")
                    times.append(taken)
            except (Mismatch, httpx.HTTPError) as error:
                orders.recv()
                orders.send(f"{type(error).__qualname__}: {error}")
                return
            orders.recv()
            orders.send(times)


def _answered(asking: Connection) -> Sequence[float]:
    """What the asking process tells.

    Raises:
        Mismatch: It was not answered, or wrongly.
    """
    if not asking.poll(_TIMEOUT_SECONDS):
        raise Mismatch(f"A report took longer than {_TIMEOUT_SECONDS:g} seconds.")
    told: str | list[float] = asking.recv()
    if isinstance(told, str):
        raise Mismatch(f"A report beside the load was not what it should be. {told}")
    return told
