"""An instance as its operator and its callers see it: the command line, real servers, and clients that do not give up.

site = Site(home, database_url)
key = site.create_key("acme")
with site.serving() as server, Load([server.url], key) as load:
    load.wait_for(100)
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import httpx
import orjson
from typer.testing import CliRunner, Result

from api.cli.main import app
from gate.decisions.stored import stored_record
from gate.instance.audit import check_chain
from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from gate.ledger import Ledger, open_ledger
from gate.ledger.chain.entries import StoredEntry
from gate.proof import chain
from gate.records.reports.receipts import CRM_SYNCS, KINDS
from tests.end_to_end.support import Server, free_port, post_decide, running
from tests.independent import verifier
from tests.support.samples import REPORTS, sample_request
from tests.support.syscalls import descendants

GATE: Final = str(Path(sys.executable).with_name("gate"))

PATIENCE: Final = 90.0
"""How long anything may take that is going to happen, in seconds."""

# What runs a command in this process takes its output from all threads.
_COMMAND_LINE: Final = threading.Lock()

Task = TypeVar("Task")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Site:
    """An instance on disk.

    Attributes:
        home: Its directory.
        database_url: Its ledger, where that is not in the directory.
    """

    home: Path
    database_url: str | None

    def command(self, *arguments: str) -> list[str]:
        """A `gate` command for this instance."""
        ledger = [] if self.database_url is None else ["--database-url", self.database_url]
        return [GATE, *arguments, "--home", str(self.home), *ledger]

    def gate(self, *arguments: str) -> Any:
        """What a `gate` command that succeeds prints as JSON."""
        done = self.invoke(*arguments, "--json")
        assert done.exit_code == 0, f"{done.output}{done.exception!r}"
        return json.loads(done.stdout)

    def invoke(self, *arguments: str) -> Result:
        """What a `gate` command does. It runs in this process, which spares it a start."""
        with _COMMAND_LINE:
            return CliRunner().invoke(app, self.command(*arguments)[1:])

    def create_key(self, scope: str, plan: str = "unlimited") -> str:
        """A new key of a scope, which is created with it where there is none."""
        key: str = self.gate("keys", "create", "--scope", scope, "--plan", plan)["key"]
        return key

    def serving(self, workers: int = 2, *options: str, ready: str = "is ready at") -> AbstractContextManager[Server]:
        """A server while the block runs, with further options of `gate serve`; without reports unless they are asked
        for with --analytics, for each of many servers would load what they are computed with. It is waited for until a
        line that it prints matches `ready`.
        """
        port = free_port()
        if "--analytics" not in options:
            options = (*options, "--no-analytics")
        command = self.command("serve", "--port", str(port), "--workers", str(workers), *options)
        return running(command, self.home.parent, f"http://127.0.0.1:{port}", ready)

    @property
    def ledger_url(self) -> str:
        """The URL under which processes open the ledger."""
        return load_settings(self.home, database_url=self.database_url).ledger_url

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """The ledger while the block runs."""
        ledger = open_ledger(self.ledger_url)
        try:
            yield ledger
        finally:
            ledger.close()

    def entries(self, scope: str) -> list[StoredEntry]:
        """A scope's entries."""
        with self.ledger() as ledger:
            scope_id = ledger.directory.scope(scope).scope_id
            return list(ledger.entries.walk(scope_id, up_to=ledger.entries.head(scope_id).size))

    def chain(self, scope: str) -> list[StoredEntry]:
        """A scope's entries. Their chain has to be whole, record by record and, for another verifier, link by link."""
        entries = self.entries(scope)
        links = [entry.link for entry in entries]
        assert [link["chain_position"] for link in links] == list(range(1, len(links) + 1))
        assert verifier.link_failures(links) == []
        with closing(open_instance(load_settings(self.home, database_url=self.database_url))) as instance:
            assert check_chain(instance, instance.ledger.directory.scope(scope).scope_id) == (len(links), None)
        return entries

    def require_exactly(
        self,
        answers: Mapping[str, bytes],
        scope: str,
        url: str,
        key: str,
        reports: Mapping[str, bytes] | None = None,
        *,
        ended_connections: int = 0,
    ) -> None:
        """Requires that a scope's chain is whole and holds a record for each idempotency key that was answered, the one
        that the answer showed, and no other; and that the service shows each as it was, and verifies it.

        Args:
            answers: The answered records, by idempotency key.
            scope: The scope.
            url: The service.
            key: A key of the scope.
            reports: The answered reports, by kind and idempotency key. They are there as they were answered, once.
            ended_connections: How many connections that the database ended a read may meet, each with a 503.
        """
        entries = self.chain(scope)
        records = [stored_record(entry) for entry in entries if entry.link["entry_type"] == "decision"]
        reported = [answered_report(entry) for entry in entries if entry.link["entry_type"] != "decision"]
        assert sorted(reported) == sorted((reports or {}).items())
        assert self.gate("chain", "check", "--scope", scope)["whole"] is True
        assert Counter(record["idempotency_key"] for record in records) == Counter(answers.keys())
        with httpx.Client(headers={"x-api-key": key}, timeout=PATIENCE, trust_env=False) as client:

            def shown(body: bytes) -> bytes:
                path = f"{url}/api/decision/{json.loads(body)['decision_id']}"
                answer = client.get(path)
                # Each try takes one ended connection out of a worker's pool.
                for _ in range(ended_connections):
                    if answer.status_code != 503:
                        break
                    answer = client.get(path)
                return answer.content

            assert side_by_side(shown, answers.values()) == list(answers.values())
        assert set(verification(url, key, records).values()) <= {None}


def answered_report(entry: StoredEntry) -> tuple[str, bytes]:
    """The kind and idempotency key of a stored report, and the body that it was answered with."""
    kind = next(kind for kind in KINDS if kind.entry_type == entry.link["entry_type"])
    report = {**orjson.loads(entry.body), "audit_chain": chain.record_link(entry.link)}
    body = {"decision_id": report["decision_id"], "crm_sync": report} if kind is CRM_SYNCS else report
    return f"{kind.name} {report['idempotency_key']}", orjson.dumps(body)


def verification(url: str, key: str, records: Iterable[Mapping[str, Any]]) -> dict[str, str | None]:
    """What the service says when it verifies stored records: by decision, None or the error."""
    with httpx.Client(headers={"x-api-key": key}, timeout=PATIENCE, trust_env=False) as client:

        def verified(record: Mapping[str, Any]) -> tuple[str, str | None]:
            result = client.get(f"{url}/api/decision/{record['decision_id']}/verify").json()
            assert result["verified"] is ("error" not in result), result
            return record["decision_id"], result.get("error")

        return dict(side_by_side(verified, records))


class Crew:
    """Threads that take turn after turn until the block ends."""

    def __init__(self, count: int, turn: Callable[[int], None]) -> None:
        """Takes how many there are, and what each does in a turn; it is given the thread's number."""
        self._count = count
        self._turn = turn
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(count)
        self._running: list[Future[None]] = []

    def __enter__(self) -> Crew:
        """Starts the threads."""
        self._running = [self._threads.submit(self._run, number) for number in range(self._count)]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Lets every thread end its turn. What one of them raised is raised here."""
        self._stop.set()
        self._threads.shutdown()
        if kind is None:
            self._require_no_failure()

    def wait_until(self, true: Callable[[], bool]) -> None:
        """Waits until something is so; what one of the threads raises meanwhile is raised here."""
        wait_until(lambda: true() or any(thread.done() for thread in self._running))
        self._require_no_failure()

    def _require_no_failure(self) -> None:
        for thread in self._running:
            if thread.done():
                thread.result()

    def _run(self, number: int) -> None:
        while not self._stop.is_set():
            self._turn(number)


class Load:
    """Clients that decide without a break, each decision under an idempotency key of its own.

    What is not answered with a success is sent again under its key, before anything else and until it is.

    Attributes:
        urls: The servers that the clients ask, by turns.
        answers: The bodies of the answers, by idempotency key.
        reports: The bodies of the answers to reports, by their kind and idempotency key.
        failures: What came instead of an answer, by status or kind, and how often.
        retried: How many requests were sent more than once.
        found: How many of those were answered with what had been made before.
    """

    def __init__(
        self, urls: Sequence[str], key: str, *, clients: int = 4, pause: float = 0.0, reporting: bool = False
    ) -> None:
        """Takes the servers, the API key, how many clients there are, how long they rest between decisions, and whether
        they report about each of them, by turns of each kind.
        """
        self.urls = urls
        self.answers: dict[str, bytes] = {}
        self.reports: dict[str, bytes] = {}
        self._reporting = reporting
        self.failures: Counter[str] = Counter()
        self.retried = 0
        self.found = 0
        self._pause = pause
        self._lock = threading.Lock()
        headers = {"x-api-key": key, "content-type": "application/json"}
        self._clients = [httpx.Client(headers=headers, timeout=30, trust_env=False) for _ in range(clients)]
        self._orders = count(1)
        self._crew = Crew(clients, self._decide)

    def __enter__(self) -> Load:
        """Starts the clients."""
        self._crew.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Lets every client get the answer that it waits for."""
        self._crew.__exit__(kind, error, at)
        for client in self._clients:
            client.close()

    def wait_for(self, more: int, *, until: Callable[[], bool] = lambda: False) -> None:
        """Waits until so many more decisions were answered, or until something else is so."""
        goal = len(self.answers) + more
        self._crew.wait_until(lambda: len(self.answers) >= goal or until())

    def _decide(self, client: int) -> None:
        number = next(self._orders)
        name = f"order {number}"
        decided = self._answer(client, name, "/api/decide", request_of(name))
        with self._lock:
            self.answers[name] = decided.content
        if self._reporting:
            kind = KINDS[number % len(KINDS)].name
            path = f"{decided.json()['decision_url']}/{kind}"
            reported = self._answer(client, name, path, orjson.dumps(REPORTS[kind]))
            with self._lock:
                self.reports[f"{kind} {name}"] = reported.content
        time.sleep(self._pause)

    def _answer(self, client: int, name: str, path: str, content: bytes) -> httpx.Response:
        deadline = time.monotonic() + PATIENCE
        failures = 0
        while isinstance(answer := self._ask(client, name, path, content), str):
            failures += 1
            with self._lock:
                self.failures[answer] += 1
            assert time.monotonic() < deadline, f"{name} is not answered at {path}: {answer}"
            time.sleep(0.2)
        with self._lock:
            self.retried += failures > 0
            self.found += answer.headers["x-idempotency-status"] == "replayed"
        return answer

    def _ask(self, client: int, name: str, path: str, content: bytes) -> httpx.Response | str:
        try:
            answer = self._clients[client].post(
                f"{self.urls[client % len(self.urls)]}{path}", content=content, headers={"x-idempotency-key": name}
            )
        except httpx.TransportError as error:
            return type(error).__name__
        return answer if answer.is_success else str(answer.status_code)


_TEMPLATE: Final = sample_request()


def request_of(name: str) -> bytes:
    """A Decision Request that is no other's."""
    return orjson.dumps({**_TEMPLATE, "context": {**_TEMPLATE["context"], "source_record_id": name}})


def decides(server: Server, key: str) -> bool:
    """Whether a decision is answered on a new connection. A worker that is being replaced may refuse one."""
    try:
        return post_decide(server.url, key, sample_request()).status_code == 200
    except httpx.TransportError:
        return False


def asked(url: str) -> httpx.Response:
    """What an address answers, asked again while a worker that is being replaced refuses the connection."""
    found: list[httpx.Response] = []

    def answers() -> bool:
        try:
            found.append(httpx.get(url, timeout=PATIENCE, trust_env=False))
        except httpx.TransportError:
            return False
        return True

    wait_until(answers)
    return found[0]


def workers_of(server: Server) -> list[int]:
    """The processes of a server that answer requests."""
    return _processes_of(server, b"spawn_main")


def analytics_of(server: Server) -> list[int]:
    """The process of a server that computes reports; none while it is being started again."""
    return _processes_of(server, b"api.analytics.process")


def _processes_of(server: Server, running: bytes) -> list[int]:
    found = []
    for pid in descendants(server.process.pid):
        try:
            if running in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def wait_until(true: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Waits until something is so. Looks more and more seldom, for what is waited for needs the processor."""
    deadline = time.monotonic() + patience
    pause = 0.01
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(pause)
        pause = min(1.3 * pause, 0.1)


def connections_of(server: Server) -> dict[int, int]:
    """How many connections each worker of a server has open."""
    port = f"{int(server.url.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port}") and row[3] == "01"}

    def open_in(pid: int) -> int:
        return sum(str(file.readlink()) in sockets for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink())

    return {pid: open_in(pid) for pid in workers_of(server)}


def side_by_side(work: Callable[[Task], Done], tasks: Iterable[Task], threads: int = 8) -> list[Done]:
    """What work gives for each task, done in several threads; in the tasks' order."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, tasks, timeout=20 * PATIENCE))
