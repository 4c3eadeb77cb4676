"""The subjects under load over HTTP, which are the gate and the bare route, and their results."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Final

from sqlalchemy import func, select

from api.cli.options import instance_at
from api.http import turns
from bench.load import Client, Load, counting
from bench.measure import Mismatch, Spread, alternate, spread
from bench.samples import decide_request, rulebook_body
from bench.servers import Cpu, Server, connect_evenly, free_port, running
from gate.clock import utc_now
from gate.instance.instance import Instance, create_instance
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.tables import entries
from gate.proof.chain import find_break
from gate.rulebooks.rulebook import load

WORKERS: Final = 2
CONNECTIONS: Final = 8
BLOCKING_THREADS: Final = turns.WORKING
SCOPE: Final = "bench"

_WARM_UP_SECONDS: Final = 1.0
# Further options of `gate serve`: none, so that the service is measured as users run it.
_SERVE_OPTIONS: Final[Sequence[str]] = ()
_GATE: Final = Path(sys.executable).with_name("gate")
_CHECKED_LINKS: Final = 1000


@dataclass(frozen=True, slots=True)
class Subject:
    """A server under load.

    Attributes:
        server: The server.
        workers: The number of its processes that answer requests.
        key: The API key of the requests.
        database: Returns the CPU time of its database server.
        paths: The path of each request, continued from round to round.
        body: The body of the requests.
        status: The expected status of each answer.
        connections: The number of connections.
        idempotency_key: The key of each request, by its number.
    """

    server: Server
    workers: int
    key: str
    database: Callable[[], Cpu] | None = None
    paths: Iterator[str] = field(default_factory=lambda: repeat("/api/decide"))
    body: bytes = decide_request()
    status: int = 200
    connections: int = CONNECTIONS
    idempotency_key: Callable[[int], bytes] = counting

    def connect(self) -> Client:
        """A client with as many connections."""
        connections = connect_evenly(self.server, self.connections, self.workers)
        headers = [f"x-api-key: {self.key}"]
        return Client(connections, self.paths, headers, self.body, self.status, self.idempotency_key)

    def round(self, *, seconds: float = math.inf, requests: float = math.inf) -> Round:
        """One round of so many seconds or requests, over connections of its own: servers close idle ones."""
        with closing(self.connect()) as client:
            cpu, database = self.server.cpu(), self.database and self.database()
            load = client.run(seconds, requests=requests)
        return Round(
            load,
            self.server.cpu() - cpu,
            None if self.database is None or database is None else self.database() - database,
        )


@dataclass(frozen=True, slots=True)
class Round:
    """One round of load on one subject.

    Attributes:
        load: What the client saw.
        cpu: The CPU time that the server's workers took meanwhile.
        database: That of its database server, where there is one.
    """

    load: Load
    cpu: Cpu
    database: Cpu | None


@contextmanager
def bare(directory: Path, *, workers: int, pinned: bool = False) -> Iterator[Server]:
    """The bare route, served while the block runs; its log goes to the directory."""
    port = free_port()
    arguments = [str(port), str(workers), str(BLOCKING_THREADS)]
    if pinned:
        arguments.append(str(directory / f"bare-{port}.lock"))
    with running([sys.executable, "-m", "bench.bare", *arguments], port, directory / f"bare-{port}.log") as server:
        yield server


@contextmanager
def gate(home: Path, database_url: str, directory: Path, *, workers: int, pinned: bool = True) -> Iterator[Server]:
    """The service of an instance, served while the block runs; its log goes to the directory."""
    port = free_port()
    options = [*_instance_options(home, database_url), "--port", str(port), "--workers", str(workers)]
    options += ["--pin-workers" if pinned else "--no-pin-workers", *_SERVE_OPTIONS]
    with running([str(_GATE), "serve", *options], port, directory / f"gate-{port}.log") as server:
        yield server


def create_key(home: Path, database_url: str) -> str:
    """A key of the scope `SCOPE`, which it creates, as it does the instance."""
    create_instance(home, database_url=database_url)
    with instance_at(home, database_url) as instance:
        directory, now = instance.ledger.directory, utc_now()
        key, _ = directory.create_key(directory.create_scope(SCOPE, "unlimited", now), FULL_ACCESS, None, now)
        return key


def register(home: Path, database_url: str) -> None:
    """Registers the rulebook that `samples.reference_request` refers to in the scope `SCOPE`."""
    with instance_at(home, database_url) as instance:
        scope_id = instance.ledger.directory.scope(SCOPE).scope_id
        instance.gate().sources.register(scope_id, load(rulebook_body()))


def sqlite_url(home: Path) -> str:
    """The ledger in a home, by name, so that no database set in the environment is written to."""
    return f"sqlite:///{home / 'ledger.db'}"


def under_load(
    subjects: Mapping[str, Subject], rounds: int, seconds: float
) -> tuple[dict[str, list[Round]], dict[str, int]]:
    """Puts every subject under the same load in turn.

    Returns:
        The rounds of each subject, and how many requests each answered, warm-up included.
    """
    warm_up = {name: subject.round(seconds=_WARM_UP_SECONDS) for name, subject in subjects.items()}
    taken = alternate({name: partial(subject.round, seconds=seconds) for name, subject in subjects.items()}, rounds)
    answers = {name: sum(round_.load.answers for round_ in [warm_up[name], *taken[name]]) for name in subjects}
    return taken, answers


def require_records(home: Path, database_url: str, expected: int) -> None:
    """Looks whether a ledger holds as many records of the scope as it should, the latest in a whole chain.

    Raises:
        Mismatch: It does not.
    """
    with instance_at(home, database_url) as instance:
        counted = count_records(instance)
    if counted != expected:
        raise Mismatch(f"There should be {expected} records in the chain, one for each answer; there are {counted}.")


def count_records(instance: Instance) -> int:
    """How many records the scope has.

    Raises:
        Mismatch: The chain's head says another number, or the latest links do not lead to it.
    """
    scope_id = instance.ledger.directory.scope(SCOPE).scope_id
    head, links = instance.ledger.entries.latest_links(scope_id, _CHECKED_LINKS)
    if (found := find_break(links, end=head)) is not None:
        raise Mismatch(f"The chain does not hold at position {found.position}: {found.reason}")
    with instance.ledger.store.read() as connection:
        counted = connection.execute(
            select(func.count()).select_from(entries).where(entries.c.scope_id == scope_id)
        ).scalar_one()
    if counted != head.size:
        raise Mismatch(f"The chain's head says {head.size} records and {counted} are there.")
    return counted


def rates(rounds: Sequence[Round]) -> list[float]:
    """The requests answered a second, round by round."""
    return [round_.load.per_second for round_ in rounds]


def summary(rounds: Sequence[Round]) -> dict[str, Any]:
    """What the rounds of one subject showed, for the results."""
    databases = [round_.database for round_ in rounds if round_.database is not None]
    beside = {"database_cpu_us_per_request": _cpu(rounds, databases)} if databases else {}
    return {
        "rate": spread(rates(rounds)).to_dict("per_s"),
        "rounds_per_s": [round(rate, 1) for rate in rates(rounds)],
        "p50": spread([round_.load.latency_ms(50) for round_ in rounds]).to_dict("ms"),
        "p99": spread([round_.load.latency_ms(99) for round_ in rounds]).to_dict("ms"),
        "cpu_us_per_request": _cpu(rounds, [round_.cpu for round_ in rounds]),
        **beside,
    }


def summary_rows(name: str, taken: Mapping[str, Any]) -> list[list[str]]:
    """The rows of a table for a summary."""
    rows = [
        [f"{name}, requests/s", *Spread.from_dict(taken["rate"], "per_s").cells(".0f")],
        [f"{name}, p50 ms", *Spread.from_dict(taken["p50"], "ms").cells()],
        [f"{name}, p99 ms", *Spread.from_dict(taken["p99"], "ms").cells()],
    ]
    for member, whose in (("cpu_us_per_request", "CPU"), ("database_cpu_us_per_request", "database's CPU")):
        for mode, figures in taken.get(member, {}).items():
            rows.append([f"{name}, {whose} us a request, {mode}", *Spread.from_dict(figures).cells(".0f")])
    return rows


def rounds_table_rows(taken: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """The requests a second of each subject, a row a round."""
    by_round = zip(*(subject["rounds_per_s"] for subject in taken.values()), strict=True)
    return [[str(number), *(f"{rate:.0f}" for rate in found)] for number, found in enumerate(by_round, 1)]


def _instance_options(home: Path, database_url: str) -> list[str]:
    return ["--home", str(home), "--database-url", database_url]


def _cpu(rounds: Sequence[Round], taken: Sequence[Cpu]) -> dict[str, Any]:
    answers = [round_.load.answers for round_ in rounds]
    user = [1e6 * cpu.user_s / number for cpu, number in zip(taken, answers, strict=True)]
    system = [1e6 * cpu.system_s / number for cpu, number in zip(taken, answers, strict=True)]
    return {"user": spread(user).to_dict(), "system": spread(system).to_dict()}
